"""A fitted model in the words of other programs: posterior draws for ArviZ.

Each takes an estimator of Ardea, or an ARDSearch (its chosen model).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ardea.core.problem import Array
from ardea.estimators.base import BaseARD
from ardea.estimators.search import ARDSearch
from ardea.methods.kept import KeptTerms


def to_arviz(model: BaseARD | ARDSearch, n_draws: int = 1000, random_state: Any = None) -> Any:
    """Return draws from the posterior as ArviZ's InferenceData (a DataTree from ArviZ 1.0 on).

    The group `posterior` has one chain of independent draws: `coef` of the kept terms (dimension `term`), equal to
    ``model.sample(n_draws, random_state)``, and `intercept` given them where there is one. γ and σ² are fixed at their
    estimates, so they are not drawn; σ² is the attribute `noise_variance`. With several targets there is a dimension
    `target`, and a term dropped for one of them is zero there.

    Parameters
    ----------
    model : estimator of ardea or ARDSearch
        Fitted.
    n_draws : int, default=1000
        Number of draws.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> from ardea.exports import to_arviz
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 10))
    >>> model = SparseARD().fit(X, 2 * X[:, 3] + rng.normal(size=200))
    >>> draws = to_arviz(model, n_draws=100, random_state=0).posterior
    >>> dict(draws["coef"].sizes), draws["term"].values.tolist()
    ({'chain': 1, 'draw': 100, 'term': 1}, ['x3'])
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # that ArviZ itself is going to change
            import arviz
    except ImportError as error:
        raise ImportError("to_arviz() needs ArviZ: pip install 'ardea[arviz]'.") from error
    fitted = _fitted(model)
    generator = check_random_state(random_state)
    coefficients = fitted.sample(n_draws, generator).reshape(len(fitted.equations_), -1, fitted.n_features_in_)
    kept = np.flatnonzero(fitted.get_support())
    variables = {"coef": _by_draw(coefficients[:, :, kept], fitted)}
    targets = [] if fitted._one_target else ["target"]
    dims = {"coef": [*targets, "term"]}
    if fitted.fit_intercept:
        pairs = zip(fitted.equations_, coefficients, strict=True)
        intercepts = np.array([_intercepts(one.kept, draws, generator) for one, draws in pairs])
        variables["intercept"], dims["intercept"] = _by_draw(intercepts, fitted), targets
    coords: dict[str, Any] = {"term": [fitted.equations_[0].vocabulary.names[j] for j in kept]}
    coords |= {} if fitted._one_target else {"target": [f"y{t}" for t in range(len(fitted.equations_))]}
    if "InferenceData" in vars(arviz):  # asking for the attribute makes ArviZ 1 warn
        data = arviz.from_dict(posterior=variables, coords=coords, dims=dims)
    else:
        data = arviz.from_dict({"posterior": variables}, coords=coords, dims=dims)
    data["posterior"].attrs["noise_variance"] = fitted.noise_variance_
    return data


def _by_draw(values: Array, fitted: BaseARD) -> Array:
    """Return (targets, draws, …) as (1 chain, draws, [targets,] …)."""
    moved = np.moveaxis(values, 0, 1)[None]
    return moved[:, :, 0] if fitted._one_target else moved


def _intercepts(kept: KeptTerms, draws: Array, generator: np.random.RandomState) -> Array:
    """Draw the intercept given draws of all coefficients (n, d).

    The flat coefficients β = (b, β_k), the intercept first, are N(h − Hξ, σ²G) given ξ, G = (FᵀF)⁻¹. Given β_k too,

        b ~ N(h_b − H_bξ + w(β_k − h_k + H_kξ), σ²(G_bb − wG_kb)),    w = G_bk G_kk⁻¹.
    """
    gram, centre = kept.flat.inverse_gram, kept.flat_mean(draws[:, kept.active])
    weights = gram[0, 1:] @ np.linalg.pinv(gram[1:, 1:])
    mean = centre[:, 0] + (draws[:, kept.flat.kept] - centre[:, 1:]) @ weights
    variance = kept.posterior.noise_variance * max(float(gram[0, 0] - weights @ gram[1:, 0]), 0.0)
    return np.asarray(mean + np.sqrt(variance) * generator.standard_normal(len(draws)))


def _fitted(model: BaseARD | ARDSearch) -> BaseARD:
    """Return the fitted estimator behind a model."""
    check_is_fitted(model)
    best = model.best_estimator_ if isinstance(model, ARDSearch) else model
    if not isinstance(best, BaseARD):
        raise TypeError(f"A {type(model).__name__} cannot be exported: give one of ardea's estimators or an ARDSearch.")
    return best
