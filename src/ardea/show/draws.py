"""Posterior draws of regression equations for ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ardea.core.problem import Array
from ardea.equation import Equation, KeptTerms


def to_arviz(equations: Sequence[Equation], n_draws: int = 1000, random_state: Any = None) -> Any:
    """Return draws from the posterior as ArviZ's InferenceData (a DataTree from ArviZ 1.0 on).

    The group `posterior` has one chain of independent draws: `coef` of the kept terms (dimension `term`), equal to
    ``model.sample(n_draws, random_state)``, and `intercept` given them where there is one. γ and σ² are fixed at their
    estimates, so they are not drawn; σ² is the attribute `noise_variance`. With several equations there is a dimension
    `target`, and a term dropped for one of them is zero there.

    Parameters
    ----------
    equations : sequence of Equation
        Those of one fitted estimator, `equations_`.
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
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 10))
    >>> model = SparseARD().fit(X, 2 * X[:, 3] + rng.normal(size=200))
    >>> draws = model.to_arviz(n_draws=100, random_state=0).posterior
    >>> dict(draws["coef"].sizes), draws["term"].values.tolist()
    ({'chain': 1, 'draw': 100, 'term': 1}, ['x3'])
    """
    generator = check_random_state(random_state)
    several = len(equations) > 1
    drawn = [one.spread(one.posterior.sample(n_draws, generator).T).T for one in equations]
    kept = sorted({j for one in equations for j in one.support})
    targets = ["target"] if several else []
    variables, dims = {"coef": _by_draw([draws[:, kept] for draws in drawn])}, {"coef": [*targets, "term"]}
    if equations[0].intercept is not None:
        pairs = zip(equations, drawn, strict=True)
        variables["intercept"] = _by_draw([_intercepts(one.kept, draws, generator) for one, draws in pairs])
        dims["intercept"] = targets
    names = equations[0].vocabulary.names
    coords = {"term": [names[j] for j in kept], **({"target": [one.name for one in equations]} if several else {})}
    data = _for_arviz(variables, coords=coords, dims=dims)
    noise = np.array([one.posterior.noise_variance for one in equations])
    data["posterior"].attrs["noise_variance"] = noise if several else float(noise[0])
    return data


def _for_arviz(variables: dict[str, Array], **axes: Any) -> Any:
    """Return draws in ArviZ's form, whichever version is installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # that ArviZ itself is going to change
            import arviz
    except ImportError as error:
        raise ImportError("to_arviz() needs ArviZ: pip install 'ardea[arviz]'.") from error
    old = "InferenceData" in vars(arviz)  # asking for the attribute makes ArviZ 1 warn
    return arviz.from_dict(posterior=variables, **axes) if old else arviz.from_dict({"posterior": variables}, **axes)


def _by_draw(values: Sequence[Array]) -> Array:
    """Return one array (draws, …) for each target as (1 chain, draws, [targets,] …)."""
    moved = np.stack(values, axis=1)[None]
    return moved if len(values) > 1 else moved[:, :, 0]


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
