"""What all estimators share: input checks, compression, attributes, prediction, intervals."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
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

from ardea.core.compression import COMPRESSION_COLUMN_LIMIT, CompressedRows, Compression, distinct_rows, merged_ranges, pose_array, ranges_of
from ardea.core.implicit import SparseSource, pose_implicit
from ardea.core.memory import require
from ardea.core.problem import Array, Coordinates, Index, Problem
from ardea.core.result import Fit, Status, Trace
from ardea.equation import Equation, IntervalKind, Left, Summary, python_function
from ardea.estimators.advice import Advice, CollapseWarning, ExtrapolationWarning, extrapolation_advice, fit_advice
from ardea.estimators.inputs import checked_keep, checked_positive, explained_where_unsound, is_lazy
from ardea.estimators.operators import Operator, OperatorSource
from ardea.methods.kept import kept_terms
from ardea.methods.task import Task
from ardea.names import ColumnNames, default_names
from ardea.show.notebook import ShowsTerms

# Copies of the kept columns are made of so many bytes of rows at a time.
PREDICTED_BYTES = 2**24


class BaseARD(ShowsTerms, SelectorMixin, MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):
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
        "warnings_",
        "equations_",
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
        X : array, data frame, sparse matrix, Dask collection or ardea.Operator of shape (n_samples, n_features)
            The columns to choose from. Dask arrays and data frames are compressed where their blocks lie.
        y : array-like or Dask collection of shape (n_samples,) or (n_samples, n_targets)
            What they should explain. Several targets share one compression of X.
        sample_weight : array-like or Dask collection of shape (n_samples,), optional
            Counts: a row of weight 2 is a row given twice. m becomes the sum of the weights.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, Y, weight, self._ranges = self._checked_rows(X, y, sample_weight, first=True)
        keep = checked_keep(self.always_keep, X.shape[1], getattr(self, "feature_names_in_", None))
        self.__dict__.pop("_stream", None)
        self._set_solution(*self._posed(X, Y, weight, keep))
        return self

    def to_arviz(self, n_draws: int = 1000, random_state: Any = None) -> Any:
        """Return posterior draws for ArviZ; see :func:`ardea.show.draws.to_arviz`."""
        from ardea.show.draws import to_arviz

        check_is_fitted(self)
        return to_arviz(self.equations_, n_draws, random_state)

    def to_sympy(self) -> Any:
        """Return the prediction as a SymPy expression of the kept columns; a list of them for several targets.

        Symbols are named by the columns. Coefficients keep all digits. Needs the extra `symbolic`.
        """
        check_is_fitted(self)
        expressions = [one.sympy() for one in self.equations_]
        return expressions[0] if self._one_target else expressions

    def to_python(self, name: str = "predict") -> str:
        """Return the source of a plain function of the kept columns; see :func:`ardea.equation.python_function`."""
        check_is_fitted(self)
        return python_function(self.equations_, name)

    def report(self, path: Any, X: Any = None, y: Any = None, **details: Any) -> Any:
        """Write one self-contained HTML page about the model; see :func:`ardea.show.report_page`."""
        from ardea.show import write_report

        return write_report(self, path, data=None if X is None else (X, y), **details)

    def plot_coefficients(self, ax: Any = None, **details: Any) -> Any:
        """Draw the terms with their intervals; see :func:`ardea.show.plot_coefficients`."""
        from ardea.show import plot_coefficients

        return plot_coefficients(self, ax, **details)

    def plot_prediction(self, X: Any, y: Any, ax: Any = None, **details: Any) -> Any:
        """Draw observed against predicted values with a band; see :func:`ardea.show.plot_prediction`."""
        from ardea.show import plot_prediction

        return plot_prediction(self, X, y, ax, **details)

    def plot_residuals(self, X: Any, y: Any, axes: Any = None, **details: Any) -> Any:
        """Draw residual diagnostics; see :func:`ardea.show.plot_residuals`."""
        from ardea.show import plot_residuals

        return plot_residuals(self, X, y, axes, **details)

    def plot_trace(self, ax: Any = None, **details: Any) -> Any:
        """Draw how the fit went, with its certificate; see :func:`ardea.show.plot_trace`."""
        from ardea.show import plot_trace

        return plot_trace(self, ax, **details)

    def _posed(self, X: Any, Y: Array, weight: Array | None, keep: list[int]) -> tuple[list[Problem], Coordinates]:
        """Return one problem per target: compressed where rows outnumber columns, else with Θ kept as it is."""
        m, d = X.shape
        if isinstance(X, CompressedRows):
            return X.compression.pose(intercept=self.fit_intercept, keep=keep)
        if isinstance(X, Operator):
            return pose_implicit(OperatorSource.of(X), Y, weight, intercept=self.fit_intercept, keep=keep)
        # Peaks as measured on several shapes; ill-conditioned columns may need half as much again.
        if m > d and d <= COMPRESSION_COLUMN_LIMIT:
            require(8 * 11 * (1 + d + Y.shape[1]) ** 2, f"Compressing {d} columns")
            return Compression.from_arrays(X, Y, weight, self._ranges).pose(intercept=self.fit_intercept, keep=keep)
        if sparse.issparse(X):
            source = SparseSource(sparse.csc_array(X))
            different = distinct_rows(X, Y, self._ranges)
            return pose_implicit(source, Y, weight, intercept=self.fit_intercept, keep=keep, n_distinct=different)
        require(8 * (1.2 * m * d + 4 * min(m, d) ** 2), f"A fit of {m} rows and {d} columns")
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
        X, Y, weight, ranges = self._checked_rows(X, y, sample_weight, first=stream is None)
        checked_keep(self.always_keep, X.shape[1], getattr(self, "feature_names_in_", None))
        if sparse.issparse(X) and X.shape[1] > COMPRESSION_COLUMN_LIMIT:
            raise ValueError(f"A stream of sparse blocks needs at most {COMPRESSION_COLUMN_LIMIT} columns; use fit.")
        block = X.compression if isinstance(X, CompressedRows) else Compression.from_arrays(X, Y, weight, ranges)
        self._stream = block if stream is None else stream.merge(block)
        self._ranges = self._stream.ranges
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
    ) -> tuple[Any, Array, Array | None, Array | None]:
        """Return X, the targets, the weights and the range of every column, sound; rows without weight are gone."""
        if any(map(is_lazy, (X, y, sample_weight))):
            X, y, sample_weight = self._compressed(X, y, sample_weight, first=first), None, None
        if isinstance(X, CompressedRows):
            taken = self._taken(X, y, sample_weight, first=first)
            return taken, np.empty((0, 0)), None, taken.compression.ranges
        if isinstance(X, Operator):
            y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
            check_consistent_length(X, y)
        ranges = _ranges_where_sound(X, y) if first else None
        if isinstance(X, Operator) or ranges is not None:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        else:
            if not sparse.issparse(X) and getattr(X, "dtype", None) not in (np.float64, np.float32):
                require(8 * np.prod(getattr(X, "shape", 0), dtype=float), "X as 64-bit numbers")
            with explained_where_unsound(X, y):
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
            ranges = ranges_of(X)
        if np.iscomplexobj(y):
            raise ValueError("Complex data not supported: fit the real and the imaginary part of y separately.")
        y = np.asarray(y, dtype=np.float64)
        self._strength(X.shape[1])
        if first:
            self._one_target = y.ndim == 1
        Y = y.reshape(y.shape[0], -1)
        if sample_weight is None:
            return X, Y, None, ranges
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        used = weight > 0
        if not used.any():
            raise ValueError("All sample weights are zero: at least one row must count.")
        if used.all() or isinstance(X, Operator):
            return X, Y, weight, ranges
        return X[used], Y[used], weight[used], ranges_of(X[used])

    def _compressed(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> CompressedRows:
        """Compress Dask collections, after all checks that can be made before."""
        from ardea.distributed.compress import compressed
        from ardea.distributed.rows import LazyRows

        rows = LazyRows.of(X, y, sample_weight)
        self._check_columns(rows.X.shape[1], rows.names, first=first)
        return compressed(rows, verbose=self.verbose)

    def _taken(self, rows: CompressedRows, y: Any, sample_weight: Any, *, first: bool) -> CompressedRows:
        """Take rows that are compressed already: remember their columns (first), or check them."""
        if y is not None or sample_weight is not None:
            raise ValueError("Compressed rows hold y and the weights already: pass None for both.")
        self._check_columns(rows.shape[1], rows.names, first=first)
        if first:
            self.n_features_in_, self._one_target = rows.shape[1], rows.one_target
            self.__dict__.pop("feature_names_in_", None)
            if rows.names is not None:
                self.feature_names_in_ = np.array(rows.names, dtype=object)
        return rows

    def _check_columns(self, columns: int, names: Sequence[str] | None, *, first: bool) -> None:
        self._strength(columns)
        known = getattr(self, "feature_names_in_", None)
        if first:
            checked_keep(self.always_keep, columns, None if names is None else np.array(names, dtype=object))
        elif columns != self.n_features_in_ or not (known is None or names is None or list(known) == list(names)):
            raise ValueError("The columns are not those of the first block, in the same order.")

    def _tasks(self, problems: Sequence[Problem], coordinates: Coordinates) -> list[Task]:
        """Return one task per target."""
        flat, m = coordinates.flat, coordinates.total_weight
        if flat.kept.size and m <= flat.rank:
            raise ValueError(
                f"The {flat.kept.size} columns in always_keep (and the intercept) fit the {m:g} rows exactly, so "
                "nothing is left to learn from. Keep fewer columns, or add rows."
            )
        with np.errstate(over="ignore", under="ignore"):
            squares = coordinates.targets**2
        if not np.all((squares >= np.finfo(float).tiny) & np.isfinite(squares)):
            raise ValueError("The square of y is no number of full precision (beyond 1e±150): give y in another unit.")
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
        self.warnings_: list[str] = []
        for t, (problem, fit) in enumerate(zip(problems, fits, strict=True)):
            self._tell(problem, fit, coordinates, t)
        targets = ["y"] if self._one_target else list(default_names(len(fits), "y"))
        vocabulary = ColumnNames(self._names())
        self.equations_ = [
            Equation(Left(targets[t]), vocabulary, kept_terms(problem, fit, coordinates, t, noise_known=known))
            for t, (problem, fit) in enumerate(zip(problems, fits, strict=True))
        ]
        self._check_units()
        self.kkt_gap_ = self._stacked([f.kkt_gap for f in fits])
        self.n_iter_ = self._stacked([f.n_iter for f in fits])
        traces = [
            _trace_in_units(fit.trace, problem, coordinates, t, self._rule_unit_power())
            for t, (problem, fit) in enumerate(zip(problems, fits, strict=True))
        ]
        self.trace_ = traces[0] if self._one_target else traces
        self._set_attributes()

    def _check_units(self) -> None:
        """Refuse coefficients whose variance is no number, rather than report a standard deviation of zero."""
        for kept in (equation.kept for equation in self.equations_):
            variance = kept.posterior.covariance.diagonal()
            lost = ~np.isfinite(variance) | (variance == 0)
            if lost.any() and kept.posterior.noise_variance > 0:
                names = ", ".join(self._names()[j] for j in kept.active[lost][:3])
                raise ValueError(
                    f"The variance of the coefficients of {names} is no number: give these columns, or y, in another "
                    "unit (numbers within 1e±150 of each other)."
                )

    def _set_attributes(self) -> None:
        """Set what follows from the equations alone."""
        equations = self.equations_
        self.coef_ = self._stacked([one.spread(one.coefficients) for one in equations])
        self.intercept_ = self._stacked([one.intercept or 0.0 for one in equations])
        self.coef_std_ = self._stacked([one.spread(one.std) for one in equations])
        self.support_ = self._stacked([one.spread(np.ones(len(one.support))) > 0 for one in equations])
        self.noise_variance_ = self._stacked([one.posterior.noise_variance for one in equations])
        covariances = [one.covariance for one in equations]
        self.covariance_ = covariances[0] if self._one_target else covariances
        self.prior_variance_ = self._stacked([one.kept.prior_variances(self.n_features_in_) for one in equations])
        self.log_evidence_ = self._stacked([one.kept.log_evidence for one in equations])

    def _stacked(self, values: list[Any]) -> Any:
        return values[0] if self._one_target else np.array(values)

    def _tell(self, problem: Problem, fit: Fit, coordinates: Coordinates, target: int) -> None:
        """Turn a status, or what a user should know of a sound fit, into warnings; print where asked."""
        k, m = fit.posterior.active.size + coordinates.flat.kept.size, coordinates.total_weight
        where = "" if self._one_target else f"Target {target}: "
        told: list[Advice]
        if fit.status.advice:
            text = fit.status.advice.format(max_iter=self.max_iter, gap=fit.kkt_gap, tol=self.tol, k=k, m=m)
            collapsed = fit.status in {Status.COLLAPSED, Status.RESCUED}
            told = [(text, CollapseWarning if collapsed else ConvergenceWarning)]
        elif m <= k + 1 and m != coordinates.n_samples:
            text = (
                f"The weights add up to {m:g} rows for {k} terms. Weights are counts: if yours are relative, "
                "scale them to add up to the number of independent rows (docs/warnings/collapse)."
            )
            told = [(text, CollapseWarning)]
        else:
            noise = None if self.noise_variance is None else fit.noise
            told = fit_advice(problem, fit.posterior, coordinates.flat.rank, noise, self._names())
        for text, category in told:
            self.warnings_.append(where + text)
            warnings.warn(where + text, category, stacklevel=5)
        if self.verbose:
            print(
                f"{where or type(self).__name__ + ': '}{fit.n_iter} steps, {k} terms, kkt_gap {fit.kkt_gap:.1e}, "
                f"{fit.status.value}"
            )

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict y, with the standard deviation of a new observation where asked.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            New rows. For Dask arrays and data frames the result is a Dask array, computed when it is asked for.
        return_std : bool, default=False
            Also return √(σ² + variance of the mean), which includes the uncertainty of coefficients and intercept.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape, if asked for
        """
        check_is_fitted(self)
        if is_lazy(X):
            return self._predict_lazily(X, return_std)
        if not isinstance(X, Operator):
            with explained_where_unsound(X, None):
                X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), reset=False)
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(f"The operator has {X.shape[1]} columns; the model was fitted to {self.n_features_in_}.")
        if isinstance(X, Operator):
            mean, std, _ = self._predicted(X, return_std)
            return (mean, std) if return_std else mean
        X = X.tocsr() if sparse.issparse(X) else X
        support = np.flatnonzero(self._get_support_mask())
        rows = max(1, PREDICTED_BYTES // (8 * (1 + support.size)))
        parts = [self._predicted(X[start : start + rows], return_std) for start in range(0, X.shape[0], rows)]
        if (fitted := self.__dict__.get("_ranges")) is not None:
            met = reduce(merged_ranges, (ranges for *_, ranges in parts))
            if advice := extrapolation_advice(fitted[:, support], met, [self._names()[j] for j in support]):
                warnings.warn(advice, ExtrapolationWarning, stacklevel=2)
        mean, std = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:2])
        return (mean, std) if return_std else mean

    def _predicted(self, X: Any, return_std: bool) -> tuple[Array, Array, Array]:
        """Return mean, standard deviation (empty unless asked for) and the ranges of the kept columns, of some rows."""
        mean = predicted_mean(self.equations_, self._one_target, X)
        std = predicted_std(self.equations_, self._one_target, X) if return_std else np.empty_like(mean[:0])
        if isinstance(X, Operator):
            return mean, std, np.empty((2, 0))
        return mean, std, ranges_of(X[:, np.flatnonzero(self._get_support_mask())])

    def _predict_lazily(self, X: Any, return_std: bool) -> Any:
        from ardea.distributed.rows import predicted

        n_targets = None if self._one_target else len(self.equations_)
        names = getattr(self, "feature_names_in_", None)
        mean, std = (
            predicted(partial(function, self.equations_, self._one_target), X, self.n_features_in_, names, n_targets)
            for function in (predicted_mean, predicted_std)
        )
        return (mean, std) if return_std else mean

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
        _check_interval(level, kind)
        return np.asarray(self._stacked([one.spread(one.interval(level, kind)) for one in self.equations_]))

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
        draws = [one.spread(one.posterior.sample(n, generator).T).T for one in self.equations_]
        return np.asarray(self._stacked(draws))

    def summary(self, level: float = 0.95, kind: IntervalKind = "posterior") -> Summary:
        """Return the kept terms with their intervals as a table that prints.

        Parameters
        ----------
        level, kind
            As for `credible_interval`.
        """
        check_is_fitted(self)
        _check_interval(level, kind)
        parts = [equation.table(level, kind) for equation in self.equations_]
        table = {title: [cell for part in parts for cell in part[title]] for title in parts[0]}
        if not self._one_target:
            lefts = [one.name for one in self.equations_ for _ in one.support]
            table = {"target": lefts} | table
        kept = sum(len(one.support) for one in self.equations_)
        sigma = ", ".join(f"{one.noise:.4g}" for one in self.equations_[:5])
        possible = len(self.equations_) * self.n_features_in_
        intervals_of = "posterior intervals, shrunk a little; kind='refit' for a report"
        if kind == "refit":
            intervals_of = "intervals of least squares on the kept terms"
        return Summary(
            table, f"{type(self).__name__}: {kept} of {possible} terms kept, noise σ = {sigma}; {intervals_of}"
        )

    def _names(self) -> Sequence[str]:
        """Return the names of the columns, x0, x1, … where there are none."""
        names = getattr(self, "feature_names_in_", None)
        return default_names(self.n_features_in_) if names is None else tuple(map(str, names))

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return np.asarray(np.atleast_2d(self.support_).any(axis=0))


def _check_interval(level: Any, kind: Any) -> None:
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
    if kind not in {"posterior", "refit"}:
        raise ValueError(f"kind={kind!r} is not known: choose 'posterior' or 'refit'.")


def predicted_mean(equations: Sequence[Equation], one_target: bool, X: Any) -> Array:
    """Return the mean of every target at the rows of X."""
    means = [_columns(X, one.kept.support) @ one.coefficients + (one.intercept or 0.0) for one in equations]
    stacked = np.column_stack(means)
    return stacked[:, 0] if one_target else stacked


def predicted_std(equations: Sequence[Equation], one_target: bool, X: Any) -> Array:
    """Return the standard deviation of a new observation of every target at the rows of X."""
    variances = [
        one.kept.prediction_variance(_dense(_columns(X, one.kept.active)), _dense(_columns(X, one.kept.flat.kept)))
        for one in equations
    ]
    deviations = np.sqrt(np.column_stack(variances))
    return deviations[:, 0] if one_target else deviations


def _columns(X: Any, index: Index) -> Any:
    """Return some columns of an array, a sparse matrix or an operator."""
    return X.take(index) if isinstance(X, Operator) else X[:, index]


def _dense(block: Any) -> Array:
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block, dtype=float)


def _ranges_where_sound(X: Any, y: Any) -> Array | None:
    """Return the range of every column of arrays that scikit-learn's checks would pass unchanged; None for others.

    The range of a column is finite only if all its values are, and needed anyway: this saves the pass of those checks.
    """
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.dtype != np.float64 or y.dtype != np.float64:
        return None
    if X.ndim != 2 or y.ndim not in {1, 2} or X.shape[0] != y.shape[0] or 0 in X.shape or 0 in y.shape:
        return None
    ranges = ranges_of(X)
    with np.errstate(over="ignore", invalid="ignore"):
        return ranges if np.isfinite(ranges).all() and np.isfinite(y.sum()) else None


def _trace_in_units(trace: Trace, problem: Problem, coordinates: Coordinates, target: int, power: int) -> Trace:
    """Return the trace in the user's units."""
    scales = coordinates.coefficient_unit(target) ** power
    scale = coordinates.targets[target]
    dropped = tuple(
        replace(d, statistic=float(d.statistic * scales[d.column]), threshold=float(d.threshold * scales[d.column]))
        for d in trace.dropped
    )
    cost = trace.cost + 2 * problem.n_rows * np.log(scale)
    return replace(trace, cost=cost, noise_variance=trace.noise_variance * scale**2, dropped=dropped)
