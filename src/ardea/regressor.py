"""What all estimators share: input checks, compression, attributes, prediction, intervals."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ardea.core.columns import Array, Index
from ardea.core.compression import COMPRESSION_COLUMN_LIMIT, Compression
from ardea.core.pose import SparseSource, pose_array, pose_implicit
from ardea.core.problem import Coordinates, Problem
from ardea.core.result import Fit, Status, Trace
from ardea.inputs import checked_keep, checked_positive
from ardea.operators import Operator, OperatorSource
from ardea.task import Task
from ardea.terms import IntervalKind, Summary, Terms, columns_of, terms_of


class CollapseWarning(ConvergenceWarning):
    """The learned noise variance cannot be trusted: the model nearly interpolates the data."""


class BaseARD(SelectorMixin, MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):
    """What all estimators share: input checks, compression, attributes, prediction, intervals."""

    # The parameter that decides how many terms are kept, if there is one.
    strength_name: str | None = None
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

    def __init__(
        self,
        noise_variance: float | None,
        fit_intercept: bool,
        always_keep: Any,
        max_iter: int,
        tol: float,
        verbose: int,
    ) -> None:
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.always_keep = always_keep
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    @abstractmethod
    def _solve_one(self, task: Task, near: Fit | None = None) -> Fit:
        """Return the fit of one target; it may start from the fit of a strength nearby."""

    def _strength(self, n_columns: int) -> Array | None:
        """Return the strengths, checked, one per column; None where there are none or they are calibrated."""
        return None

    def _rule_unit_power(self) -> int:
        """Return how the statistics in the trace change with the unit of a coefficient."""
        return 0

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> BaseARD:
        """Fit to all rows at once.

        Parameters
        ----------
        X : array, data frame, sparse matrix or ardea.Operator of shape (n_samples, n_features)
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
        X, Y, weight = self._checked_rows(X, y, sample_weight, first=True)
        keep = checked_keep(self.always_keep, X.shape[1], getattr(self, "feature_names_in_", None))
        self.__dict__.pop("_stream", None)
        self._set_solution(*self._posed(X, Y, weight, keep))
        return self

    def _posed(self, X: Any, Y: Array, weight: Array | None, keep: list[int]) -> tuple[list[Problem], Coordinates]:
        """Return one problem per target: compressed where rows outnumber columns, else with Θ kept as it is."""
        m, d = X.shape
        if isinstance(X, Operator):
            return pose_implicit(OperatorSource.of(X), Y, weight, intercept=self.fit_intercept, keep=keep)
        if m > d and d <= COMPRESSION_COLUMN_LIMIT:
            return Compression.from_arrays(X, Y, weight).pose(intercept=self.fit_intercept, keep=keep)
        if sparse.issparse(X):
            source = SparseSource(sparse.csc_array(X))
            return pose_implicit(source, Y, weight, intercept=self.fit_intercept, keep=keep)
        return pose_array(X, Y, weight, intercept=self.fit_intercept, keep=keep)

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> BaseARD:
        """Add a block of rows to a stream; the model of all rows so far is solved when it is first asked for.

        The result equals `fit` on all the rows together, in memory that does not grow with their number (above 5,000
        columns the rows are kept). After `fit`,
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
        if isinstance(X, Operator):
            raise ValueError("An Operator cannot be added to a stream of rows; use fit.")
        X, Y, weight = self._checked_rows(X, y, sample_weight, first=stream is None)
        checked_keep(self.always_keep, X.shape[1], getattr(self, "feature_names_in_", None))
        if sparse.issparse(X) and X.shape[1] > COMPRESSION_COLUMN_LIMIT:
            raise ValueError(f"A stream of sparse blocks needs at most {COMPRESSION_COLUMN_LIMIT} columns; use fit.")
        block = Compression.from_arrays(X, Y, weight)
        self._stream = block if stream is None else stream.merge(block)
        for name in self._SOLVED:
            self.__dict__.pop(name, None)
        return self

    def __getattr__(self, name: str) -> Any:
        if name in BaseARD._SOLVED and "_stream" in self.__dict__:
            self._check_parameters()
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
        if hasattr(self, "false_terms"):
            checked_positive("false_terms", self.false_terms)

    def _checked_rows(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, first: bool
    ) -> tuple[Any, Array, Array | None]:
        if isinstance(X, Operator):
            y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
            check_consistent_length(X, y)
        if isinstance(X, Operator) or (first and _sound_arrays(X, y)):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        else:
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
        self._strength(X.shape[1])
        if first:
            self._one_target = y.ndim == 1
        Y = y.reshape(y.shape[0], -1)
        if sample_weight is None:
            return X, Y, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        used = weight > 0
        if not used.any():
            raise ValueError("All sample weights are zero: at least one row must count.")
        if used.all() or isinstance(X, Operator):
            return X, Y, weight
        return X[used], Y[used], weight[used]

    def _tasks(self, problems: Sequence[Problem], coordinates: Coordinates) -> list[Task]:
        """Return one task per target."""
        flat, m = coordinates.flat, coordinates.total_weight
        if flat.kept.size and m <= flat.rank:
            raise ValueError(
                f"The {flat.kept.size} columns in always_keep (and the intercept) fit the {m:g} rows exactly, so "
                "nothing is left to learn from. Keep fewer columns, or add rows."
            )
        return [
            Task(
                problem,
                coordinates.coefficient_unit(t),
                float(coordinates.targets[t]) ** 2,
                self.noise_variance,
                int(self.max_iter),
                float(self.tol),
            )
            for t, problem in enumerate(problems)
        ]

    def _set_solution(self, problems: Sequence[Problem], coordinates: Coordinates) -> None:
        fits = [self._solve_one(task) for task in self._tasks(problems, coordinates)]
        self._adopt(problems, coordinates, fits)

    def _adopt(self, problems: Sequence[Problem], coordinates: Coordinates, fits: Sequence[Fit]) -> None:
        """Take the fits for this model's own: warnings, then attributes."""
        known = self.noise_variance is not None
        for t, fit in enumerate(fits):
            self._tell(fit, coordinates, t)
        self._terms: list[Terms] = [
            terms_of(problem, fit, coordinates, t, noise_known=known)
            for t, (problem, fit) in enumerate(zip(problems, fits, strict=True))
        ]
        self._set_attributes(problems, fits, coordinates)

    def _set_attributes(self, problems: Sequence[Problem], fits: Sequence[Fit], coordinates: Coordinates) -> None:
        terms = self._terms
        self.coef_ = self._stacked([t.coefficients(t.posterior) for t in terms])
        self.intercept_ = self._stacked([t.intercept_value for t in terms])
        self.coef_std_ = self._stacked([t.standard_deviations(t.posterior) for t in terms])
        self.support_ = self._stacked([_mask(t.support, t.n_features) for t in terms])
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
            _trace_in_units(f.trace, p, u, s, power) for f, p, u, s in zip(fits, problems, units, scales, strict=True)
        ]
        self.trace_ = traces[0] if self._one_target else traces

    def _stacked(self, values: list[Any]) -> Any:
        return values[0] if self._one_target else np.array(values)

    def _tell(self, fit: Fit, coordinates: Coordinates, target: int) -> None:
        """Turn a status into a warning, and print where asked."""
        k, m = fit.posterior.active.size + coordinates.flat.kept.size, coordinates.total_weight
        where = "" if self._one_target else f"Target {target}: "
        if fit.status.advice:
            text = fit.status.advice.format(max_iter=self.max_iter, gap=fit.kkt_gap, tol=self.tol, k=k, m=m)
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
                f"{fit.status.value}"
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
        if not isinstance(X, Operator):
            X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), reset=False)
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(f"The operator has {X.shape[1]} columns; the model was fitted to {self.n_features_in_}.")
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
            columns_of(X, support) @ terms.coefficients(terms.posterior)[support] + terms.intercept_value,
            dtype=np.float64,
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
        if not isinstance(level, Real) or not 0 < level < 1:
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
        possible = len(self._terms) * self.n_features_in_
        caption = f"{type(self).__name__}: {total} of {possible} terms kept, noise σ = {sigma}"
        return Summary(table, caption)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return np.asarray(np.atleast_2d(self.support_).any(axis=0))


def _sound_arrays(X: Any, y: Any) -> bool:
    """Whether X and y are arrays that scikit-learn's checks would pass unchanged, at a fraction of their cost.

    A sum is finite only if all its terms are; a sum that overflows is left to the full check.
    """
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.dtype != np.float64 or y.dtype != np.float64:
        return False
    if X.ndim != 2 or y.ndim not in {1, 2} or X.shape[0] != y.shape[0] or 0 in X.shape or 0 in y.shape:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()) and np.isfinite(y.sum()))


def _mask(index: Index, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=bool)
    mask[index] = True
    return mask


def _with_flat(gamma: Array, coordinates: Coordinates) -> Array:
    """Return prior variances with infinity for the columns whose prior is flat."""
    gamma[coordinates.flat.kept] = np.inf
    return gamma


def _log_evidence(problem: Problem, fit: Fit, scale: float) -> float:
    """Return −½(m ln 2π + log|Σ_y| + yᵀΣ_y⁻¹y) in the user's units of y."""
    return float(-0.5 * (problem.n_rows * (np.log(2 * np.pi) + 2 * np.log(scale)) + fit.posterior.cost))


def _trace_in_units(trace: Trace, problem: Problem, unit: Array, scale: float, power: int) -> Trace:
    scales = unit**power
    dropped = tuple(
        replace(d, statistic=float(d.statistic * scales[d.column]), threshold=float(d.threshold * scales[d.column]))
        for d in trace.dropped
    )
    cost = trace.cost + 2 * problem.n_rows * np.log(scale)
    return replace(trace, cost=cost, noise_variance=trace.noise_variance * scale**2, dropped=dropped)
