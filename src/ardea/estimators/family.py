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
from ardea.methods import task
from ardea.methods.task import Method
from ardea.methods.thresholds import Search
from ardea.priors import Convex, Prior
from ardea.rates import DEFAULT_FALSE_TERMS

# A convention: half an hour's patience for a thousand columns.
GRID_SIZE = 15
# Expected false terms at the strong end of a default grid, a convention; the weak end is that of plain ARD.
FEWEST_FALSE_TERMS = 1e-3


class ARD(BaseARD):
    """Automatic relevance determination (Alg. 1): prior variances γ that maximise the evidence.

    Minimises L(γ) = log|Σ_y| + yᵀΣ_y⁻¹y with Σ_y = σ²I + ΘΓΘᵀ. Columns with γ = 0 have a coefficient of exactly zero,
    but of columns that explain nothing about 32 % are kept (Eq. VI_FP_rate at α = 1): use :class:`SparseARD` for few
    terms.

    Parameters
    ----------
    noise_variance : float, optional
        σ² if it is known; learned by default.
    fit_intercept : bool, default=True
        Whether a constant is added to the model (flat prior, integrated out).
    always_keep : list of int or str, or boolean mask, optional
        Columns known to belong to the model: flat prior, never pruned.
    max_iter : int, default=500
        Largest number of steps of one run of the outer loop (methods of several stages run it several times); reaching
        it warns.
    tol : float, default=1e-6
        Bound on `kkt_gap_`.
    start : {"safe", "paper"}, default="safe"
        "paper" runs the algorithm of the paper and nothing else. "safe" runs it again from elsewhere where the data
        show that it has failed: from least squares where an F test against all columns refutes the fit, and, for the
        other estimators, from a screened set or with a larger noise where it collapses (docs/methods, "Two starts").
    rows : {"independent", "series", "groups", "unequal"}, default="independent"
        What errors of the rows are like. "independent": so, and of equal size. "series": rows are in the order of time,
        and errors follow those before (an autoregression, whose order and coefficients are learned); `groups` of `fit`
        tells several series apart. "groups": rows of one label in `groups` share a part of their error. "unequal":
        errors are independent, but of unequal size; how it grows with the columns is learned, and large errors are
        drawn in (docs/dependent_rows). Fits to rows in memory warn where errors are seen not to be what they were taken
        for.
    verbose : int, default=0
        1 prints a line per fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Posterior means; exactly zero for dropped terms. In single precision if X is, like `intercept_` and `coef_std_`.
    intercept_ : float or ndarray of shape (n_targets,)
        Posterior mean of the constant.
    support_ : boolean ndarray of the shape of coef_
        Which terms are kept.
    prior_variance_ : ndarray of the shape of coef_
        γ; infinite for `always_keep`.
    noise_variance_ : float or ndarray of shape (n_targets,)
        σ², un-inflated; for ``rows="unequal"`` the mean over the rows, of errors drawn in.
    coef_std_ : ndarray of the shape of coef_
        Posterior standard deviations.
    covariance_ : ndarray of shape (k, k), or a list of them
        Posterior covariance of the kept terms.
    log_evidence_ : float or ndarray of shape (n_targets,)
        −½(m ln 2π + log|Σ_y| + yᵀΣ_y⁻¹y) at γ and σ²; m is less one for an intercept and one for every independent
        column in `always_keep`, which are integrated out.
    kkt_gap_ : float or ndarray of shape (n_targets,)
        Certificate: largest relative violation of q² = M on the support and q² ≤ M off it, over the columns that no
        threshold has removed.
    n_iter_ : int or ndarray of shape (n_targets,)
        Steps of the outer loop.
    trace_ : Trace, or a list of them
        Cost, σ² and number of terms at every step; columns dropped by a threshold.
    effective_rows_ : float or ndarray of shape (n_targets,)
        How many independent rows would tell least squares as much of a column as these do, on average over the columns.
        NaN where that cannot be told: streams, compressed rows, fewer than 20 rows, or a fit that nearly interpolates.
    error_correlation_ : ndarray
        What the errors of the rows were found to be: coefficients of the autoregression for ``rows="series"``, one
        correlation within groups for "groups"; empty where they were found, or taken, to be independent, and for
        "unequal".

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


@dataclass(eq=False, repr=False)
class ARDvi(BaseARD):
    """ARD with variance inflation (Alg. 2): the noise counts α times in c and in the lasso weights.

    Orthogonal columns are kept if and only if their t-statistic exceeds √α, so α = z² sets the false positive rate
    whatever the units and the noise. rss, posterior and the noise update use the un-inflated σ².

    Parameters
    ----------
    alpha : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Inflation. "calibrated": `false_terms` expected among columns that explain nothing.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, start, rows, verbose
        See :class:`ARD`, also for the fitted attributes.

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
    _: KW_ONLY
    false_terms: float = 1.0


@dataclass(eq=False, repr=False)
class ARDr(BaseARD):
    """ARD with a sparsity-promoting prior on γ (Alg. 3), started at ARD's γ.

    Minimises log|Σ_y| + yᵀΣ_y⁻¹y + Σ g(γ_j) + f(γ_j), by default with g(γ) = lam·min(γ, eta) and f = 0.

    Parameters
    ----------
    lam : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Slope of g.
    eta : float or array of shape (n_features,), optional
        Width of g: columns whose γ exceeds it are not penalised further. None: infinity where `lam` is given; with
        "calibrated" the least width that leaves the false positive rate as it is, so that kept terms are not shrunk.
    prior : ardea.priors.Prior or ardea.priors.Convex, optional
        Replaces `lam` and `eta`: any concave g, convex f, or both (``g & f``).
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, start, rows, verbose
        See :class:`ARD`, also for the fitted attributes.

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
    false_terms: float = 1.0


@dataclass(eq=False, repr=False)
class MSTSBL(BaseARD):
    """Magnitude-thresholded ARD (Alg. 4): drop |μ| < tau, refit on what is left, until nothing goes.

    The paper's M-STSBL (threshold sparse Bayesian regression of Zhang & Lin). Depends on the units of the columns
    unless calibrated.

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Smallest magnitude that is kept.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, start, rows, verbose
        See :class:`ARD`, also for the fitted attributes.

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
    _: KW_ONLY
    false_terms: float = 1.0


@dataclass(eq=False, repr=False)
class LSTSBL(BaseARD):
    """Likelihood-thresholded ARD (Alg. 5): drop columns whose posterior density at zero exceeds tau.

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Largest density N(0 | μ_j, Σ_jj) that is kept; infinity keeps all that ARD keeps.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, start, rows, verbose
        See :class:`ARD`, also for the fitted attributes.

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
    _: KW_ONLY
    false_terms: float = 1.0


@dataclass(eq=False, repr=False)
class MAPSTSBL(BaseARD):
    """MAP-thresholded ARD (Alg. 6): drop the set of columns that maximises the posterior under exp(−τ‖ξ‖₀).

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Price of a term. On orthogonal columns it keeps what ARDvi keeps at α = 2τ + 1.
    search : {"diagonal", "greedy", "forward-backward", "backward"}, default="diagonal"
        How the set is looked for; see :mod:`ardea.methods.thresholds`.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, start, rows, verbose
        See :class:`ARD`, also for the fitted attributes.

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
    false_terms: float = 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class SparseARD(BaseARD):
    """The calibrated default: say how many false terms you accept, nothing else.

    1) ARDvi at the inflation that lets max(1, false_terms) false columns through finds the candidates;
    2) ARD on them, from that σ²;
    3) MAP backward elimination on the covariance at the price τ that lets `false_terms` through, restrict, refit, until
       nothing goes.

    Where columns do not outnumber the rows, the elimination is also run from plain ARD, and its result taken where the
    evidence is clearly better. It is not in the paper: with ``start="paper"`` these steps are run without second tries.

    Parameters
    ----------
    false_terms : float, default=0.3
        Expected number of terms kept that explain nothing.
    noise_variance, fit_intercept, always_keep, max_iter, tol, start, rows, verbose
        See :class:`ARD`, also for the fitted attributes.

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
