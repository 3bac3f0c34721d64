"""The seven estimators: validate → compress → solve → attributes.

Each class names a combination of parts (inflation, prior, threshold) of the one loop in :mod:`ardea.core.reweighted`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ardea import rates
from ardea.core.columns import Array
from ardea.core.noise import Fixed, Learned, NoiseRule
from ardea.core.problem import COMPRESSION_COLUMN_LIMIT, Compression, Coordinates, Problem, pose_sparse
from ardea.core.result import Dropped, Fit, Status, Trace
from ardea.core.reweighted import GammaPrior, Setting, solve
from ardea.inputs import checked_keep, checked_positive, checked_strength
from ardea.priors import Both, CappedLinear, Convex, Flat, InCoordinates, Prior
from ardea.terms import IntervalKind, Summary, Terms, terms_of
from ardea.thresholds import (
    Calibrated,
    Given,
    Likelihood,
    Magnitude,
    MaximumAPosteriori,
    Rule,
    Search,
    Strength,
    embed,
    sequential,
)

SEARCHES: tuple[Search, ...] = ("diagonal", "greedy", "forward-backward", "backward")


class CollapseWarning(ConvergenceWarning):
    """The learned noise variance cannot be trusted: the model nearly interpolates the data."""


@dataclass(frozen=True)
class Task:
    """One target's problem and what every method needs to solve it.

    Attributes
    ----------
    problem : Problem
        In normalised coordinates.
    unit : ndarray of shape (d,)
        What one unit of each coefficient is worth in the user's units.
    noise_unit : float
        The same for σ².
    noise_variance : float or None
        Known σ², in the user's units.
    max_iter, tol : int, float
        Limits of the outer loop.
    """

    problem: Problem
    unit: Array
    noise_unit: float
    noise_variance: float | None
    max_iter: int
    tol: float

    @property
    def n_candidates(self) -> int:
        """Number of non-zero columns: what `false_terms` is shared out over."""
        return int((self.problem.square_norms > 0).sum())

    def false_positive_rate(self, false_terms: float) -> float:
        """Return false_terms per candidate column, at most the rate of plain ARD."""
        return float(min(false_terms / max(self.n_candidates, 1), rates.NO_PRUNING_RATE))

    def _noise_rule(self, initial: float | None) -> NoiseRule:
        if self.noise_variance is None:
            return Learned(initial)
        return Fixed(max(self.noise_variance / self.noise_unit, np.finfo(float).tiny))

    def run(
        self,
        problem: Problem | None = None,
        noise: float | None = None,
        *,
        prior: GammaPrior | None = None,
        inflation: Array | None = None,
        start: Array | None = None,
    ) -> Fit:
        """Run the outer loop; where inflation meets a collapse, once more with the noise rule at the inflated noise."""
        problem = self.problem if problem is None else problem
        setting = Setting(
            problem,
            Flat() if prior is None else prior,
            self._noise_rule(noise),
            np.ones(problem.n_columns) if inflation is None else inflation,
        )
        fit = solve(setting, start=start, max_iter=self.max_iter, tol=self.tol)
        if fit.status is Status.COLLAPSED and inflation is not None:
            setting = replace(setting, inflated_noise_rule=True)
            again = solve(setting, max_iter=self.max_iter, tol=self.tol)
            fit = again if again.status is Status.COLLAPSED else replace(again, status=Status.RESCUED)
        return fit

    def threshold(self, rule: Rule, problem: Problem | None = None, noise: float | None = None) -> Fit:
        """Threshold ARD sequentially."""
        return sequential(self.problem if problem is None else problem, rule, self.run, noise)

    def strength(
        self, method: rates.Method, given: Array | None, false_terms: float, unit_power: int
    ) -> Strength:
        """Return the user's strengths in these coordinates, or the calibrated ones."""
        if given is None:
            return Calibrated(method, self.false_positive_rate(false_terms))
        return Given(given / self.unit**unit_power)


class BaseARD(SelectorMixin, MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):
    """What all estimators share: input checks, compression, attributes, prediction, intervals."""

    noise_variance: float | None
    fit_intercept: bool
    always_keep: Any
    max_iter: int
    tol: float
    verbose: int

    # Set by the solution; a stream of blocks (partial_fit) sets them when one is first asked for.
    _SOLVED = (
        "coef_",
        "intercept_",
        "support_",
        "prior_variance_",
        "noise_variance_",
        "coef_std_",
        "covariance_",
        "log_evidence_",
        "kkt_gap_",
        "n_iter_",
        "trace_",
        "_terms",
    )

    @abstractmethod
    def _solve_one(self, task: Task) -> Fit:
        """Return the fit of one target."""

    def _rule_unit_power(self) -> int:
        """Return how the statistics in the trace change with the unit of a coefficient."""
        return 0

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> BaseARD:
        """Fit to all rows at once.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            The columns to choose from.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            What they should explain. Several targets share one compression of X.
        sample_weight : array-like of shape (n_samples,), optional
            Counts: a row of weight 2 is a row given twice. m becomes the sum of the weights.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("_stream", None)
        X, Y, weight = self._checked_rows(X, y, sample_weight, first=True)
        keep = checked_keep(self.always_keep, X.shape[1], getattr(self, "feature_names_in_", None))
        if sparse.issparse(X) and (X.shape[1] >= X.shape[0] or X.shape[1] > COMPRESSION_COLUMN_LIMIT):
            posed = pose_sparse(sparse.csc_array(X), Y, weight, intercept=self.fit_intercept, keep=keep)
        else:
            posed = Compression.from_arrays(X, Y, weight).pose(intercept=self.fit_intercept, keep=keep)
        self._set_solution(*posed)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> BaseARD:
        """Add a block of rows to a stream; the model of all rows so far is solved when it is first asked for.

        The result equals `fit` on all the rows together, in memory that does not grow with their number. After `fit`,
        a new stream begins, with a warning: `fit` keeps nothing that rows could be added to.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; every block with the same columns.

        Returns
        -------
        self
        """
        self._check_parameters()
        if "_stream" not in self.__dict__ and "coef_" in self.__dict__:
            warnings.warn(
                "partial_fit begins a new stream: the rows given to fit() are not part of it. Pass them through "
                "partial_fit too if they should be.",
                UserWarning,
                stacklevel=2,
            )
        stream = self.__dict__.get("_stream")
        X, Y, weight = self._checked_rows(X, y, sample_weight, first=stream is None)
        if sparse.issparse(X) and X.shape[1] > COMPRESSION_COLUMN_LIMIT:
            raise ValueError(f"A stream of sparse blocks needs at most {COMPRESSION_COLUMN_LIMIT} columns; use fit.")
        block = Compression.from_arrays(X, Y, weight)
        self._stream = block if stream is None else stream.merge(block)
        for name in self._SOLVED:
            self.__dict__.pop(name, None)
        return self

    def __getattr__(self, name: str) -> Any:
        if name in BaseARD._SOLVED and "_stream" in self.__dict__:
            stream: Compression = self.__dict__["_stream"]
            keep = checked_keep(self.always_keep, stream.n_features, self.__dict__.get("feature_names_in_"))
            self._set_solution(*stream.pose(intercept=self.fit_intercept, keep=keep))
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "coef_" in self.__dict__ or "_stream" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        if self.noise_variance is not None:
            checked_positive("noise_variance", self.noise_variance)
        checked_positive("max_iter", self.max_iter, whole=True)
        checked_positive("tol", self.tol)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept must be True or False; got {self.fit_intercept!r}.")
        if "false_terms" in self.get_params(deep=False):
            checked_positive("false_terms", self.false_terms)

    def _checked_rows(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, first: bool
    ) -> tuple[Any, Array, Array | None]:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            multi_output=True,
            y_numeric=True,
            reset=first,
        )
        if np.iscomplexobj(y):
            raise ValueError("Complex data not supported: fit the real and the imaginary part of y separately.")
        y = np.asarray(y, dtype=np.float64)
        if first:
            self._one_target = y.ndim == 1
        Y = y.reshape(y.shape[0], -1)
        if sample_weight is None:
            return X, Y, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        used = weight > 0
        if not used.any():
            raise ValueError("All sample weights are zero: at least one row must count.")
        return (X, Y, weight) if used.all() else (X[used], Y[used], weight[used])

    def _set_solution(self, problems: Sequence[Problem], coordinates: Coordinates) -> None:
        fits, terms = [], []
        for t, problem in enumerate(problems):
            unit = coordinates.coefficient_unit(t)
            noise_unit = float(coordinates.targets[t]) ** 2
            task = Task(problem, unit, noise_unit, self.noise_variance, int(self.max_iter), float(self.tol))
            fit = self._solve_one(task)
            self._tell(fit, coordinates, t)
            fits.append(fit)
            terms.append(
                terms_of(problem, fit, coordinates, t, noise_known=self.noise_variance is not None)
            )
        self._terms: list[Terms] = terms
        self._set_attributes(problems, fits, coordinates)

    def _set_attributes(
        self, problems: Sequence[Problem], fits: Sequence[Fit], coordinates: Coordinates
    ) -> None:
        terms = self._terms
        self.coef_ = self._stacked([t.coefficients(t.posterior) for t in terms])
        self.intercept_ = self._stacked([t.intercept_value for t in terms])
        self.coef_std_ = self._stacked([t.standard_deviations(t.posterior) for t in terms])
        self.support_ = self._stacked([np.isin(np.arange(t.n_features), t.support) for t in terms])
        self.noise_variance_ = self._stacked([t.posterior.noise for t in terms])
        covariances = [t.covariance(t.posterior) for t in terms]
        self.covariance_ = covariances[0] if self._one_target else covariances
        units = [coordinates.coefficient_unit(t) for t in range(len(fits))]
        self.prior_variance_ = self._stacked(
            [_with_flat(f.gamma * u**2, coordinates) for f, u in zip(fits, units, strict=True)]
        )
        scales = coordinates.targets
        self.log_evidence_ = self._stacked(
            [_log_evidence(p, f, s) for p, f, s in zip(problems, fits, scales, strict=True)]
        )
        self.kkt_gap_ = self._stacked([f.kkt_gap for f in fits])
        self.n_iter_ = self._stacked([f.n_iter for f in fits])
        power = self._rule_unit_power()
        traces = [
            _trace_in_units(f.trace, p, u, s, power)
            for f, p, u, s in zip(fits, problems, units, scales, strict=True)
        ]
        self.trace_ = traces[0] if self._one_target else traces

    def _stacked(self, values: list[Any]) -> Any:
        return values[0] if self._one_target else np.array(values)

    def _tell(self, fit: Fit, coordinates: Coordinates, target: int) -> None:
        """Turn a status into a warning, and print where asked."""
        k, m = fit.posterior.active.size + coordinates.flat.kept.size, coordinates.total_weight
        where = "" if self._one_target else f"Target {target}: "
        if fit.status.value:
            text = fit.status.value.format(max_iter=self.max_iter, gap=fit.kkt_gap, tol=self.tol, k=k, m=m)
            collapsed = fit.status in {Status.COLLAPSED, Status.RESCUED}
            warnings.warn(where + text, CollapseWarning if collapsed else ConvergenceWarning, stacklevel=5)
        elif m <= k + 1 and m != coordinates.n_samples:
            warnings.warn(
                f"{where}The weights add up to {m:g} rows for {k} terms. Weights are counts: if yours are relative, "
                "scale them to add up to the number of independent rows.",
                CollapseWarning,
                stacklevel=5,
            )
        if self.verbose:
            print(
                f"{where or type(self).__name__ + ': '}{fit.n_iter} steps, {k} terms, kkt_gap {fit.kkt_gap:.1e}, "
                f"{fit.status.name.lower()}"
            )

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict y, with the standard deviation of a new observation where asked.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            New rows.
        return_std : bool, default=False
            Also return √(σ² + variance of the mean), which includes the uncertainty of coefficients and intercept.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape, if asked for
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), reset=False)
        mean = np.column_stack([self._mean_of(terms, X) for terms in self._terms])
        mean = mean[:, 0] if self._one_target else mean
        if not return_std:
            return mean
        std = np.sqrt(np.column_stack([terms.prediction_variance(X) for terms in self._terms]))
        return mean, std[:, 0] if self._one_target else std

    @staticmethod
    def _mean_of(terms: Terms, X: Any) -> Array:
        support = terms.support
        return np.asarray(
            X[:, support] @ terms.coefficients(terms.posterior)[support] + terms.intercept_value, dtype=np.float64
        )

    def credible_interval(self, level: float = 0.95, kind: IntervalKind = "posterior") -> Array:
        """Return lower and upper ends of every coefficient's interval, zeros for dropped terms.

        Parameters
        ----------
        level : float, default=0.95
            Probability inside.
        kind : {"posterior", "refit"}, default="posterior"
            "posterior": the ARD posterior, shrunk towards zero; it covers less than `level` for coefficients of a few
            standard errors. "refit": least squares on the kept columns (a flat prior), for reporting.

        Returns
        -------
        ndarray of shape (n_features, 2), or (n_targets, n_features, 2)
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
        if kind not in {"posterior", "refit"}:
            raise ValueError(f"kind={kind!r} is not known: choose 'posterior' or 'refit'.")
        return np.asarray(self._stacked([terms.interval(level, kind) for terms in self._terms]))

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """Draw coefficients from the posterior.

        Parameters
        ----------
        n : int, default=1
            Number of draws.
        random_state : int, Generator, RandomState or None
            Seed.

        Returns
        -------
        ndarray of shape (n, n_features), or (n_targets, n, n_features)
        """
        check_is_fitted(self)
        n = int(checked_positive("n", n, whole=True))
        generator = random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)
        return np.asarray(self._stacked([terms.sample(n, generator) for terms in self._terms]))

    def summary(self, level: float = 0.95, kind: IntervalKind = "posterior") -> Summary:
        """Return the kept terms with their intervals as a table that prints.

        Parameters
        ----------
        level, kind
            As for `credible_interval`.
        """
        intervals = self.credible_interval(level, kind).reshape(len(self._terms), -1, 2)
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(self.n_features_in_)] if names is None else list(map(str, names))
        table: dict[str, list[Any]] = {} if self._one_target else {"target": []}
        percent = f"{100 * level:g}%"
        table |= {"term": [], "coef": [], "std": [], f"{percent} low": [], f"{percent} high": []}
        for t, terms in enumerate(self._terms):
            gaussian = terms.refit if kind == "refit" and terms.refit is not None else terms.posterior
            coefficients, deviations = terms.coefficients(gaussian), terms.standard_deviations(gaussian)
            for j in terms.support:
                row = [names[j], float(coefficients[j]), float(deviations[j]), *map(float, intervals[t, j])]
                row = row if self._one_target else [f"y{t}", *row]
                for column, value in zip(table.values(), row, strict=True):
                    column.append(value)
        total = sum(terms.support.size for terms in self._terms)
        sigma = ", ".join(f"{np.sqrt(terms.posterior.noise):.4g}" for terms in self._terms[:5])
        caption = f"{type(self).__name__}: {total} of {len(self._terms) * self.n_features_in_} terms kept, noise σ = {sigma}"
        return Summary(table, caption)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask: NDArray[np.bool_] = np.atleast_2d(self.support_).any(axis=0)
        return mask


def _with_flat(gamma: Array, coordinates: Coordinates) -> Array:
    """Return prior variances with infinity for the columns whose prior is flat."""
    gamma[coordinates.flat.kept] = np.inf
    return gamma


def _log_evidence(problem: Problem, fit: Fit, scale: float) -> float:
    """Return −½(m ln 2π + log|Σ_y| + yᵀΣ_y⁻¹y) in the user's units of y."""
    return float(-0.5 * (problem.n_rows * (np.log(2 * np.pi) + 2 * np.log(scale)) + fit.posterior.cost))


def _trace_in_units(trace: Trace, problem: Problem, unit: Array, scale: float, power: int) -> Trace:
    dropped = tuple(
        Dropped(d.column, d.round, d.statistic * unit[d.column] ** power, d.threshold * unit[d.column] ** power)
        for d in trace.dropped
    )
    cost = trace.cost + 2 * problem.n_rows * np.log(scale)
    return replace(trace, cost=cost, noise_variance=trace.noise_variance * scale**2, dropped=dropped)


class ARD(BaseARD):
    """Automatic relevance determination (Alg. 1): prior variances γ that maximise the evidence.

    Minimises L(γ) = log|Σ_y| + yᵀΣ_y⁻¹y with Σ_y = σ²I + ΘΓΘᵀ. Columns with γ = 0 have a coefficient of exactly zero, but of
    columns that explain nothing about 32 % are kept (Eq. VI_FP_rate at α = 1): use :class:`SparseARD` for few terms.

    Parameters
    ----------
    noise_variance : float, optional
        σ² if it is known; learned by default.
    fit_intercept : bool, default=True
        Whether a constant is added to the model (flat prior, integrated out).
    always_keep : list of int or str, or boolean mask, optional
        Columns known to belong to the model: flat prior, never pruned.
    max_iter : int, default=500
        Largest number of steps of the outer loop; reaching it warns.
    tol : float, default=1e-6
        Bound on `kkt_gap_`.
    verbose : int, default=0
        1 prints a line per fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Posterior means; exactly zero for dropped terms.
    intercept_ : float or ndarray of shape (n_targets,)
        Posterior mean of the constant.
    support_ : boolean ndarray of the shape of coef_
        Which terms are kept.
    prior_variance_ : ndarray of the shape of coef_
        γ; infinite for `always_keep`.
    noise_variance_ : float or ndarray of shape (n_targets,)
        σ², un-inflated.
    coef_std_ : ndarray of the shape of coef_
        Posterior standard deviations.
    covariance_ : ndarray of shape (k, k), or a list of them
        Posterior covariance of the kept terms.
    log_evidence_ : float or ndarray of shape (n_targets,)
        −½(m ln 2π + log|Σ_y| + yᵀΣ_y⁻¹y) at γ and σ², with m − 1 for m where an intercept is fitted.
    kkt_gap_ : float or ndarray of shape (n_targets,)
        Certificate: largest relative violation of q² = M on the support and q² ≤ M off it.
    n_iter_ : int or ndarray of shape (n_targets,)
        Steps of the outer loop.
    trace_ : Trace, or a list of them
        Cost, σ² and number of terms at every step; columns dropped by a threshold.

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

    def __init__(
        self,
        *,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.always_keep = always_keep
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _solve_one(self, task: Task) -> Fit:
        return task.run()


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
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
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

    def __init__(
        self,
        alpha: Any = "calibrated",
        *,
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.false_terms = false_terms
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.always_keep = always_keep
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _solve_one(self, task: Task) -> Fit:
        alpha = checked_strength("alpha", self.alpha, task.problem.n_columns, zero_allowed=False)
        return inflated(task, alpha, self.false_terms)


def inflated(task: Task, alpha: Array | None, false_terms: float) -> Fit:
    """Run with inflation α, or the one calibrated to `false_terms`."""
    if alpha is None:
        calibrated = rates.strength_for("vi", task.false_positive_rate(false_terms))
        alpha = np.full(task.problem.n_columns, float(calibrated))
    return task.run(inflation=alpha)


class ARDr(BaseARD):
    """ARD with a sparsity-promoting prior on γ (Alg. 3), started at ARD's γ.

    Minimises log|Σ_y| + yᵀΣ_y⁻¹y + Σ g(γ_j) + f(γ_j), by default with g(γ) = lam·min(γ, eta) and f = 0.

    Parameters
    ----------
    lam : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Slope of g.
    eta : float, default=inf
        Width of g: columns whose γ exceeds it are not penalised further.
    prior : ardea.priors.Prior or ardea.priors.Convex, optional
        Replaces `lam` and `eta`: any concave g, convex f, or both (``g & f``).
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
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

    def __init__(
        self,
        lam: Any = "calibrated",
        eta: float = np.inf,
        *,
        prior: Prior | Convex | None = None,
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.lam = lam
        self.eta = eta
        self.prior = prior
        self.false_terms = false_terms
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.always_keep = always_keep
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.prior is not None and not isinstance(self.prior, Prior | Convex):
            raise ValueError(
                f"prior={self.prior!r} is not a prior: give one of ardea.priors, or wrap your functions in "
                "ardea.priors.Concave or ardea.priors.Convex."
            )

    def _solve_one(self, task: Task) -> Fit:
        first = task.run()
        fit = task.run(noise=first.noise, prior=self._prior_for(task), start=first.gamma)
        return replace(fit, trace=first.trace.then(fit.trace), n_iter=first.n_iter + fit.n_iter)

    def _prior_for(self, task: Task) -> Prior:
        """Return the prior in the problem's coordinates."""
        if self.prior is not None:
            whole = self.prior if isinstance(self.prior, Prior) else Both(Flat(), self.prior)
            return InCoordinates(whole, task.unit**2, task.noise_unit)
        d = task.problem.n_columns
        eta = checked_strength("eta", self.eta, d, zero_allowed=False, infinity_allowed=True)
        if eta is None:
            raise ValueError("eta='calibrated' is not known: calibrate lam, and give eta as a number.")
        lam = checked_strength("lam", self.lam, d)
        if lam is not None:
            return InCoordinates(CappedLinear(lam, eta), task.unit**2, task.noise_unit)
        # λ = (z² − 1)ρ/σ² with the σ² of the moment.
        z_square = float(rates.strength_for("vi", task.false_positive_rate(self.false_terms)))
        return CappedLinear((z_square - 1) * task.problem.square_norms, eta / task.unit**2, over_noise=True)


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
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
        See :class:`ARD`, also for the fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import MSTSBL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> model = MSTSBL(tau=0.5).fit(X, y)
    >>> int(model.support_.sum()), model.trace_.dropped[0].threshold
    (1, 0.5)
    """

    def __init__(
        self,
        tau: Any = "calibrated",
        *,
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.tau = tau
        self.false_terms = false_terms
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.always_keep = always_keep
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _rule_unit_power(self) -> int:
        return Magnitude.unit_power

    def _solve_one(self, task: Task) -> Fit:
        tau = checked_strength("tau", self.tau, task.problem.n_columns)
        return task.threshold(Magnitude(task.strength("m", tau, self.false_terms, Magnitude.unit_power)))


class LSTSBL(BaseARD):
    """Likelihood-thresholded ARD (Alg. 5): drop columns whose posterior density at zero exceeds tau.

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Largest density N(0 | μ_j, Σ_jj) that is kept; infinity keeps all that ARD keeps.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
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

    def __init__(
        self,
        tau: Any = "calibrated",
        *,
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.tau = tau
        self.false_terms = false_terms
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.always_keep = always_keep
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _rule_unit_power(self) -> int:
        return Likelihood.unit_power

    def _solve_one(self, task: Task) -> Fit:
        tau = checked_strength("tau", self.tau, task.problem.n_columns, infinity_allowed=True)
        return task.threshold(Likelihood(task.strength("l", tau, self.false_terms, Likelihood.unit_power)))


class MAPSTSBL(BaseARD):
    """MAP-thresholded ARD (Alg. 6): drop the set of columns that maximises the posterior under exp(−τ‖ξ‖₀).

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Price of a term. On orthogonal columns it keeps what ARDvi keeps at α = 2τ + 1.
    search : {"diagonal", "greedy", "forward-backward", "backward"}, default="diagonal"
        How the set is looked for; see :class:`ardea.thresholds.MaximumAPosteriori`.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
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

    def __init__(
        self,
        tau: Any = "calibrated",
        *,
        search: Search = "diagonal",
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.tau = tau
        self.search = search
        self.false_terms = false_terms
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.always_keep = always_keep
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.search not in SEARCHES:
            raise ValueError(f"search={self.search!r} is not known: choose one of {', '.join(map(repr, SEARCHES))}.")

    def _solve_one(self, task: Task) -> Fit:
        tau = checked_strength("tau", self.tau, task.problem.n_columns)
        return task.threshold(MaximumAPosteriori(task.strength("map", tau, self.false_terms, 0), self.search))


class SparseARD(BaseARD):
    """The calibrated default: say how many false terms you accept, nothing else.

    1) ARDvi at the inflation that lets max(1, false_terms) false columns through finds the candidates;
    2) ARD on them, from that σ²;
    3) MAP backward elimination on the covariance at the price τ that lets `false_terms` through, restrict, refit, until
       nothing goes.

    Parameters
    ----------
    false_terms : float, default=0.3
        Expected number of terms kept that explain nothing.
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
        See :class:`ARD`, also for the fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 300))
    >>> y = 3 * X[:, 2] - 2 * X[:, 5] + rng.normal(size=100)
    >>> print(SparseARD().fit(X, y).summary())
    SparseARD: 2 of 300 terms kept, noise σ = 0.8818
    <BLANKLINE>
    term    coef      std  95% low  95% high
    ----  ------  -------  -------  --------
    x2     2.895  0.08947    2.719      3.07
    x5    -1.913  0.09104   -2.092    -1.735
    """

    def __init__(
        self,
        *,
        false_terms: float = 0.3,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.false_terms = false_terms
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.always_keep = always_keep
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _solve_one(self, task: Task) -> Fit:
        first = inflated(task, None, max(1.0, self.false_terms))
        candidates = first.posterior.active
        price = task.strength("map", None, self.false_terms, 0)
        fit = task.threshold(
            MaximumAPosteriori(price, "backward"), task.problem.restrict(candidates), first.noise
        )
        dropped = tuple(replace(d, column=int(candidates[d.column])) for d in fit.trace.dropped)
        fit = replace(
            fit,
            trace=first.trace.then(replace(fit.trace, dropped=dropped)),
            n_iter=first.n_iter + fit.n_iter,
            status=fit.status if fit.status.value else first.status,
        )
        return embed(task.problem, candidates, fit)
