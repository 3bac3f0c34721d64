"""The seven estimators, as declarations: parameters, documentation, and which method of the one outer loop it is.

validate → pose → solve → attributes is in :mod:`ardea.estimators.base`; the methods are in :mod:`ardea.methods.task`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ardea import rates
from ardea.estimators.base import BaseARD
from ardea.estimators.documentation import estimator
from ardea.methods import task
from ardea.methods.task import Method
from ardea.methods.thresholds import Search
from ardea.priors import Convex, Prior
from ardea.rates import DEFAULT_FALSE_TERMS

# A convention: half an hour's patience for a thousand columns.
GRID_SIZE = 15
# Expected false terms at the strong end of a default grid, a convention; the weak end is that of plain ARD.
FEWEST_FALSE_TERMS = 1e-3


@estimator
class ARD(BaseARD):
    """Automatic relevance determination (Alg. 1 of the paper): choose prior variances that maximise the evidence.

    Every column has a prior variance γ of its own. The fit minimises L(γ) = log|Σ_y| + yᵀΣ_y⁻¹y with Σ_y = σ²I + ΘΓΘᵀ.
    A column whose γ becomes zero has a coefficient of exactly zero. Of irrelevant columns about 32 % are kept
    (Eq. VI_FP_rate at α = 1), so use :class:`SparseARD` if you want few terms.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import ARD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 10))
    >>> y = 3 * X[:, 2] + 0.1 * rng.normal(size=200)
    >>> bool(ARD().fit(X, y).support_[2])
    True
    """

    method = Method(task.plain)


@dataclass(eq=False, repr=False, kw_only=True)
class Calibrated(BaseARD):
    """An estimator whose strength follows, unless it is given, from the expected number of false terms."""

    false_terms: float = 1.0


@estimator
class ARDvi(Calibrated):
    """ARD with variance inflation (Alg. 2): pretend that the noise is larger, so that weak terms are dropped.

    The noise variance is multiplied by α where columns are chosen. An orthogonal column is then kept if and only if its
    t-statistic exceeds √α, so α sets the rate of false terms, whatever the units and the noise. The posterior and the
    learned noise variance do not use the factor.

    Parameters
    ----------
    alpha : float, array of shape (n_features,) or "calibrated", default="calibrated"
        The factor on the noise variance. "calibrated": such that `false_terms` irrelevant columns are kept on average.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import ARDvi
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> int(ARDvi(alpha=16).fit(X, y).support_.sum())
    1
    """

    method = Method(task.inflated, "alpha", zero_allowed=False)
    alpha: Any = "calibrated"


@estimator
class ARDr(Calibrated):
    """ARD with a penalty on the prior variances γ (Alg. 3), started at the γ of ARD.

    Minimises log|Σ_y| + yᵀΣ_y⁻¹y + Σ g(γ_j) + f(γ_j) with g concave and f convex. By default g(γ) = lam·min(γ, eta)
    and f = 0.

    Parameters
    ----------
    lam : float, array of shape (n_features,) or "calibrated", default="calibrated"
        The slope of g: larger values drop more columns.
    eta : float or array of shape (n_features,), optional
        The γ beyond which the penalty no longer grows. None: no limit where `lam` is a number; with "calibrated" the
        smallest value that leaves the rate of false terms unchanged, so that kept terms are not shrunk.
    prior : ardea.priors.Prior or ardea.priors.Convex, optional
        A penalty of your own instead of `lam` and `eta`: a concave g, a convex f, or both (``g & f``).

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import ARDr
    >>> from ardea.priors import CappedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> paper = CappedLinear(1e4, eta=0.1, over_noise=True)  # λσ⁻² min(γ, η), Sec. 6
    >>> int(ARDr(prior=paper).fit(X, y).support_.sum())
    1
    """

    method = Method(task.penalised, "lam")
    lam: Any = "calibrated"
    eta: ArrayLike | None = None
    _: KW_ONLY
    prior: Prior | Convex | None = None


@estimator
class MSTSBL(Calibrated):
    """ARD with a threshold on magnitude (Alg. 4): drop coefficients smaller than tau and refit, until none is dropped.

    This is the paper's M-STSBL (threshold sparse Bayesian regression of Zhang & Lin). A numeric `tau` depends on the
    units of the columns; the calibrated one does not.

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        The smallest magnitude of a coefficient that is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import MSTSBL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> model = MSTSBL(tau=0.5).fit(X, y)
    >>> int(model.support_.sum()), model.trace_.dropped[0].round
    (1, 1)
    """

    method = Method(task.magnitude, "tau", unit_power=1)
    tau: Any = "calibrated"


@estimator
class LSTSBL(Calibrated):
    """ARD with a threshold on likelihood (Alg. 5): drop columns whose posterior density at zero exceeds tau, and refit.

    A numeric `tau` depends on the units of the columns; the calibrated one does not.

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        The largest density N(0 | μ_j, Σ_jj) of a column that is kept. Infinity keeps all that ARD keeps.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import LSTSBL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> int(LSTSBL(tau=0.01).fit(X, y).support_.sum())
    1
    """

    method = Method(task.likelihood, "tau", infinity_allowed=True, sparse_first=True, unit_power=-1)
    tau: Any = "calibrated"


@estimator
class MAPSTSBL(Calibrated):
    """ARD with a price per term (Alg. 6): drop the set of columns that maximises the posterior, and refit.

    The prior exp(−τ‖ξ‖₀) charges tau for every term that is kept.

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        The price of a term. On orthogonal columns it keeps what ARDvi keeps at α = 2τ + 1.
    search : {"diagonal", "greedy", "forward-backward", "backward"}, default="diagonal"
        How the set of columns to drop is searched for; see :mod:`ardea.methods.thresholds`.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import MAPSTSBL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> int(MAPSTSBL(tau=5, search="backward").fit(X, y).support_.sum())
    1
    """

    method = Method(task.maximum_a_posteriori, "tau")
    tau: Any = "calibrated"
    _: KW_ONLY
    search: Search = "diagonal"


@estimator
class SparseARD(BaseARD):
    """The estimator to use by default: you say how many false terms you accept, and nothing else.

    1) :class:`ARDvi` finds candidates, at the strength that keeps max(1, false_terms) irrelevant columns on average.
    2) :class:`ARD` is fitted to the candidates.
    3) Backward elimination removes the weakest terms, at the strength that keeps `false_terms` irrelevant columns on
       average. ARD is fitted to what is left, and the two are repeated until no column is removed.

    Steps 2 and 3 are also run from plain ARD or, with more columns than rows, from ARDvi begun with little noise, and
    that result is taken where its evidence is clearly better. The method is not in the paper: with ``start="paper"`` it
    runs these steps without second tries.

    Parameters
    ----------
    false_terms : float, default=0.3
        How many terms would be kept on average if no column mattered.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 300))
    >>> y = 3 * X[:, 2] - 2 * X[:, 5] + rng.normal(size=200)
    >>> print(SparseARD().fit(X, y).summary())
    SparseARD: 2 of 300 terms kept, noise σ = 0.9726; posterior intervals
    <BLANKLINE>
    term   coef   std 95% low 95% high
    x2    3.058 0.063   2.934    3.181
    x5   -1.964 0.071  -2.105   -1.823
    """

    method = Method(task.sparse, "false_terms", sparse_first=True)
    _: KW_ONLY
    false_terms: float = DEFAULT_FALSE_TERMS


# What a search tries: the parameters of every model, from numbers, dicts of values, or the default strengths


def grid_of(model: BaseARD, grid: Any, n_columns: int) -> Iterator[dict[str, Any]]:
    """Yield the parameters of every model of a grid: numbers from strong to weak, others in the order given.

    The strength changes from each to the next, other parameters more slowly.
    """
    strength, name = model.method.strength, type(model).__name__
    if grid is None:
        yield from [{}] if strength is None else _default_grid(model, n_columns)
        return
    if not isinstance(grid, Mapping):
        if strength is None:
            raise ValueError(f"{name} has no strength to vary: give None, or a dict of parameters to values.")
        grid = {strength: grid}
    unknown = set(grid) - set(model.get_params())
    if unknown:
        raise ValueError(f"{name} has no parameter {', '.join(sorted(unknown))}.")
    varied = name_of_strength(model, grid)
    values = {key: _in_order(model, key, grid[key]) for key in sorted(grid, key=lambda key: key == varied)}
    for key, column in values.items():
        if not column:
            raise ValueError(f"strengths has no value for {key} of {name}: give at least one.")
    for combination in product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def name_of_strength(model: BaseARD, names: Iterable[str]) -> str:
    """Return which of some parameters is the strength; an empty text where none is."""
    return next((name for name in (model.method.strength, "false_terms") if name and name in names), "")


def _in_order(model: BaseARD, name: str, values: Any) -> list[Any]:
    """Return the values of a parameter as a list, numbers from strong to weak."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    listed = [listed] if isinstance(listed, str) or not isinstance(listed, Iterable) else list(listed)
    listed = [value.item() if isinstance(value, np.generic) else value for value in listed]
    if not all(map(is_number, listed)):
        return listed
    weak_last = name == "false_terms" or (model.method.sparse_first and name == model.method.strength)
    return sorted(listed, reverse=not weak_last)


def is_number(value: Any) -> bool:
    """Whether a value is one number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _default_grid(model: BaseARD, n_columns: int) -> Iterator[dict[str, Any]]:
    """Yield strengths from an expected .001 false terms to those of plain ARD.

    ARDvi's in α, which means the same for any data; those of the others in `false_terms`, since theirs depend on it.
    """
    for false_terms in np.geomspace(FEWEST_FALSE_TERMS, rates.NO_PRUNING_RATE * n_columns, GRID_SIZE):
        rate = min(false_terms / n_columns, rates.NO_PRUNING_RATE)
        if model.method.strength == "alpha":
            yield {"alpha": float(rates.strength_for("vi", rate))}
        else:
            yield {"false_terms": float(false_terms)}
