"""What all estimators share: how they are fitted and what a fitted model answers.

Fitted (validate → pose → solve → attributes) whole or as a stream; predictions, intervals, draws, tables and pictures
all come from the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ardea.core.compression import CompressedRows, is_lazy, merged_ranges, ranges_of
from ardea.core.implicit import Operator
from ardea.core.lazy import cached_property
from ardea.core.loop import Fit, Progress, Trace
from ardea.core.problem import Array, Coordinates, Index, Problem
from ardea.equation import Equation, kept_terms
from ardea.estimators.advice import Advice, ExtrapolationWarning, fit_advice, readings_advice, warn_caller
from ardea.estimators.dependence import independent_rows, rows_advice
from ardea.estimators.inputs import (
    ROW_KINDS,
    CheckedRows,
    RowKind,
    checked_keep,
    checked_new_rows,
    checked_positive,
    checked_rows,
    checked_wish,
    dense,
    in_single,
    is_single,
    meet_columns,
)
from ardea.estimators.told import extrapolation_advice
from ardea.methods.task import STARTS, Limits, Method, Start, Wish, tasks_of
from ardea.names import ColumnNames, Left, counted, default_names
from ardea.rates import NO_PRUNING_RATE, rate_for
from ardea.show.answers import Answers
from ardea.show.report import ShowsFit

# Copies of the kept columns are made of so many bytes of rows at a time: 16 MB, a convention.
PREDICTED_BYTES = 2**24


def _solved_for(name: str, text: str) -> cached_property[Any]:
    """Return a fitted attribute that the solver sets."""

    def value(self: BaseARD) -> Any:
        return self._solved(name)

    value.__doc__ = text
    return cached_property(value)


class _of_each:
    """A fitted attribute that follows from each equation, computed when it is read: one value, or those of all targets.

    `like_columns`: in the precision of X, as in scikit-learn.
    """

    def __init__(
        self, function: Callable[[Equation], Any], text: str, *, stacked: bool = True, like_columns: bool = False
    ) -> None:
        self.function, self.stacked, self.like_columns = function, stacked, like_columns
        self.__doc__ = text

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: BaseARD | None, owner: type) -> Any:
        """Return the value; the model remembers it as long as its equations."""
        if model is None:
            return self
        equations, known = model.equations_, model._answers
        if self.name not in known:
            values = [self.function(one) for one in equations]
            answer = model._stacked(values) if self.stacked or model._one_target else values
            known[self.name] = in_single(answer, keep_zeros=True) if self.like_columns and model._single else answer
        return known[self.name]


@dataclass(eq=False, repr=False, kw_only=True)
class BaseARD(ShowsFit, Answers, SelectorMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A model of few terms with its equations, one for every target; a subclass declares parameters and method."""

    method: ClassVar[Method]

    noise_variance: float | None = None
    fit_intercept: bool = True
    always_keep: Any = None
    max_iter: int = 500
    tol: float = 1e-6
    start: Start = "safe"
    rows: RowKind = "independent"
    verbose: int = 0

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Fit to all rows at once.

        Parameters
        ----------
        X : array, data frame, sparse matrix, Dask collection or ardea.Operator of shape (n_samples, n_features)
            The columns to choose from. Dask collections are compressed block by block, where they are computed.
        y : array-like or Dask collection of shape (n_samples,) or (n_samples, n_targets)
            What they should explain. Several targets share one compression of X.
        sample_weight : array-like or Dask collection of shape (n_samples,), optional
            Counts: a row of weight 2 is a row given twice. Divide weights that say how precise a row is by their mean;
            multiply those of a survey by Σw/Σw².
        groups : array-like of shape (n_samples,), optional
            The subject, batch or site of every row. With ``rows="groups"`` rows of one label share an error; with
            "series" every label is a series of its own; otherwise the fit tests whether rows of a label are dependent.

        Returns
        -------
        self
        """
        self._check_parameters()
        rows = checked_rows(self, X, y, sample_weight, groups, first=True)
        self._forget()
        self._stream: CompressedRows | None = None
        # Coefficients and predictions are given in the precision of X; computed they are in double.
        self._ranges, self._one_target, self._single = rows.ranges, rows.one_target, rows.single
        self._solve(rows)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Add a block of rows. The model of all rows so far is computed when you first ask for it.

        The result equals `fit` on all rows together, in memory that does not grow with their number (with more than
        5,000 columns the rows are kept). After `fit` a new stream begins, with a warning.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_rows, n_features)
            A block of rows, always with the same columns.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            What they should explain.
        sample_weight : array-like of shape (n_rows,), optional
            Counts: a row of weight 2 is a row given twice. Divide weights that say how precise a row is by their mean;
            multiply those of a survey by Σw/Σw².

        Returns
        -------
        self
        """
        self._check_parameters()
        if self.rows != "independent":
            raise ValueError(f"rows={self.rows!r} needs all rows at once: use fit.")
        stream: CompressedRows | None = self.__dict__.get("_stream")
        if stream is None and "equations_" in self.__dict__:
            text = (
                "partial_fit begins a new stream: the rows given to fit() are not part of it. Pass them through "
                "partial_fit too if they should be."
            )
            warn_caller(text, UserWarning)
        rows = checked_rows(self, X, y, sample_weight, first=stream is None)
        self._checked(rows.n_columns)
        block = rows.compressed()
        whole = block if stream is None else stream.merge(block)
        self._stream, self._ranges = whole, whole.ranges
        self._one_target = rows.one_target if stream is None else self._one_target
        self._single = rows.single and (stream is None or self._single)
        self._forget()
        return self

    def _solve(self, rows: CheckedRows) -> None:
        """Pose, solve and adopt."""
        keep, wish = self._checked(rows.n_columns)
        with threads_for(rows.operations):
            rows = self._independent(rows, keep)
            problems, coordinates = rows.pose(intercept=bool(self.fit_intercept), keep=keep)
            tasks = tasks_of(problems, coordinates, self._limits, self.start)
            if self.verbose:
                tasks = [replace(task, progress=Progress(type(self).__name__)) for task in tasks]
            self._adopt(rows, problems, coordinates, [self.method.solve(task, wish, None) for task in tasks])

    def _independent(self, rows: CheckedRows, keep: list[int]) -> CheckedRows:
        """Return rows that are independent, where those given depend on each other as `rows` says."""
        return independent_rows(rows, self.rows, bool(self.fit_intercept), keep, self._limits)

    @property
    def _limits(self) -> Limits:
        noise = None if self.noise_variance is None else float(self.noise_variance)
        return noise, int(self.max_iter), float(self.tol)

    def _solved(self, name: str) -> Any:
        """Solve the rows streamed so far, which sets all fitted attributes, and return one of them."""
        stream: CompressedRows | None = self.__dict__.get("_stream")
        if stream is None:
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit or partial_fit first.")
        self._check_parameters()
        self._solve(CheckedRows.of_compressed(replace(stream, one_target=self._one_target)))
        return self.__dict__[name]

    def _like(self, other: Any, rows: CheckedRows) -> None:
        """Take over the columns of another model of the same rows."""
        meet_columns(self, other.n_features_in_, getattr(other, "feature_names_in_", None), first=True)
        self._stream, self._ranges, self._one_target, self._single = None, rows.ranges, True, rows.single

    def _forget(self) -> None:
        for name in SOLVED:
            self.__dict__.pop(name, None)

    # Fitted attributes: after `partial_fit` the first one that is read solves. The equations tell the rest when asked.

    equations_ = _solved_for("equations_", "One equation for every target.")
    warnings_ = _solved_for("warnings_", "What the user was told.")
    kkt_gap_ = _solved_for("kkt_gap_", "Certificate of every target.")
    n_iter_ = _solved_for("n_iter_", "Steps of the outer loop.")
    trace_ = _solved_for("trace_", "What happened on the way.")
    effective_rows_ = _solved_for("effective_rows_", "So many independent rows would tell as much.")
    error_correlation_ = _solved_for("error_correlation_", "How errors of the rows depend on each other.")
    coef_ = _of_each(
        lambda one: one.spread(one.coefficients), "Posterior means; exactly zero for dropped terms.", like_columns=True
    )
    intercept_ = _of_each(lambda one: one.intercept or 0.0, "Posterior mean of the constant.", like_columns=True)
    support_ = _of_each(lambda one: one.spread(np.ones(len(one.support))) > 0, "Which terms are kept.")
    coef_std_ = _of_each(lambda one: one.spread(one.std), "Posterior standard deviations.", like_columns=True)
    covariance_ = _of_each(lambda one: one.covariance, "Posterior covariance of the kept terms.", stacked=False)
    noise_variance_ = _of_each(lambda one: one.posterior.noise_variance, "Noise variance σ².")
    prior_variance_ = _of_each(
        lambda one: one.kept.prior_variances(one.n_candidates), "Prior variances γ; infinite for `always_keep`."
    )
    log_evidence_ = _of_each(lambda one: one.kept.log_evidence, "Logarithm of the evidence.")

    def _names(self) -> Sequence[str]:
        """Return the names of the columns, x0, x1, … where there are none."""
        names = getattr(self, "feature_names_in_", None)
        return default_names(self.n_features_in_) if names is None else tuple(map(str, names))

    def __sklearn_is_fitted__(self) -> bool:
        return "equations_" in self.__dict__ or self.__dict__.get("_stream") is not None

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
        if not isinstance(self.start, str) or self.start not in STARTS:
            raise ValueError(f"start={self.start!r} is not known: choose {' or '.join(map(repr, STARTS))}.")
        if not isinstance(self.rows, str) or self.rows not in ROW_KINDS:
            raise ValueError(f"rows={self.rows!r} is not known: choose one of {', '.join(map(repr, ROW_KINDS))}.")
        if hasattr(self, "false_terms"):
            checked_positive("false_terms", self.false_terms)

    def _checked(self, n_columns: int) -> tuple[list[int], Wish]:
        """Return the columns to keep and what is asked of the method, for so many columns."""
        keep = checked_keep(self.always_keep, n_columns, getattr(self, "feature_names_in_", None))
        return keep, checked_wish(vars(self), self.method, n_columns)

    def _adopt(
        self, rows: CheckedRows, problems: Sequence[Problem], coordinates: Coordinates, fits: Sequence[Fit]
    ) -> None:
        """Take the fits to some rows for this model's own: warnings, then attributes."""
        self.warnings_, traces, effective = [*rows.given.told], [], []
        equations = self._equations(problems, coordinates, fits)
        spoiled = readings_advice(rows.given, equations[0].vocabulary.names, [one.name for one in equations])
        self._say(spoiled)  # alone: residuals that are odd may come from it
        for t, (problem, fit, equation) in enumerate(zip(problems, fits, equations, strict=True)):
            number, told = rows_advice(rows, self.rows, problem, fit, equation, t)
            self._tell(problem, fit, coordinates, [] if spoiled else told, "" if self._one_target else f"Target {t}: ")
            units = coordinates.coefficient_unit(t) ** self.method.unit_power, float(coordinates.targets[t])
            traces.append(fit.trace.in_units(problem.n_rows, *units, coordinates.log_volume))
            effective.append(number)
        found = effective, np.empty(0) if rows.whitened is None else rows.whitened.correlation
        self._set_attributes(equations, [fit.kkt_gap for fit in fits], [fit.n_iter for fit in fits], traces, *found)

    def _equations(self, problems: Sequence[Problem], coordinates: Coordinates, fits: Sequence[Fit]) -> list[Equation]:
        """Return the fits in the user's units."""
        lefts = ["y"] if self._one_target else default_names(len(fits), "y")
        names, known = ColumnNames(self._names()), self.noise_variance is not None
        rate = self._rate(problems[0].n_candidates)
        return [
            Equation(Left(left), names, kept_terms(problem, fit, coordinates, t, noise_known=known, rate=rate))
            for t, (left, problem, fit) in enumerate(zip(lefts, problems, fits, strict=True))
        ]

    def _rate(self, n_candidates: int) -> float | None:
        """Return how often chance keeps a column; None where the strength is the user's own."""
        if self.method.strength is None:  # plain ARD
            return NO_PRUNING_RATE
        wish = checked_wish(vars(self), self.method, self.n_features_in_)
        return rate_for(wish.false_terms, n_candidates) if wish.calibrated else None

    def _set_attributes(
        self,
        equations: list[Equation],
        gaps: list[float],
        counts: list[int],
        traces: list[Trace],
        effective: list[float],
        correlation: Array,
    ) -> None:
        """Set the fitted attributes of one or several targets."""
        _check_units(equations)
        self.equations_, self._answers = equations, dict[str, Any]()
        self.kkt_gap_, self.n_iter_ = self._stacked(gaps), self._stacked(counts)
        self.trace_ = traces[0] if self._one_target else traces
        self.effective_rows_, self.error_correlation_ = self._stacked(effective), correlation

    def _tell(self, problem: Problem, fit: Fit, coordinates: Coordinates, also: list[Advice], where: str) -> None:
        """Turn what a user should know of a fit, and of its rows, into warnings; print where asked."""
        told = fit_advice(
            problem,
            fit,
            coordinates,
            known_noise=self.noise_variance is not None,
            limits={"max_iter": self.max_iter, "tol": self.tol},
            names=self._names(),
        )
        self._say([*told, *also], where)
        if self.verbose:
            k = fit.posterior.active.size + coordinates.flat.kept.size
            done = f"{counted(fit.n_iter, 'step')}, {counted(k, 'term')}, kkt_gap {fit.kkt_gap:.1e}, {fit.status.value}"
            print(f"{where or type(self).__name__ + ': '}{done}")

    def _say(self, told: list[Advice], where: str = "") -> None:
        for text, category in told:
            self.warnings_.append(where + text)
            warn_caller(where + text, category)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return np.isin(np.arange(self.n_features_in_), [j for one in self.equations_ for j in one.support])

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict y, and if you ask for it the standard deviation of a new observation.

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
            Both are in single precision (float32) if the columns fitted and those given here are, and it can hold them.
        """
        check_is_fitted(self)
        answers: Iterator[Any]
        at: Any = partial(predicted, self.equations_, self._one_target)
        if is_lazy(X):
            from ardea.distributed.compress import predicted as predicted_lazily

            n_targets = None if self._one_target else len(self.equations_)
            fitted_to = (self.n_features_in_, getattr(self, "feature_names_in_", None), n_targets)
            answers = (predicted_lazily(partial(at, std=std), X, *fitted_to) for std in (False, True))
            if self._single and is_single(X):
                answers = (answer.astype(np.float32) for answer in answers)
        else:
            blocks = self._blocks(X)
            answers = (np.concatenate([at(block, std=std) for block in blocks]) for std in (False, True))
            if self._single and is_single(blocks[0]):
                answers = map(in_single, answers)
        return tuple(answers) if return_std else next(answers)

    def _blocks(self, X: Any) -> list[Any]:
        """Return the rows to predict, checked, in blocks; warn where they lie far outside those fitted."""
        X = checked_new_rows(self, X)
        if isinstance(X, Operator):
            return [X]
        support = np.flatnonzero(self._get_support_mask())
        height = max(1, PREDICTED_BYTES // (8 * (1 + support.size)))
        blocks = [X[start : start + height] for start in range(0, X.shape[0], height)]
        if (fitted := self.__dict__.get("_ranges")) is not None:
            met = reduce(merged_ranges, (ranges_of(block[:, support]) for block in blocks))
            if advice := extrapolation_advice(fitted[:, support], met, [self._names()[int(j)] for j in support]):
                warn_caller(advice, ExtrapolationWarning)
        return blocks

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


SOLVED = [name for name, part in vars(BaseARD).items() if isinstance(part, cached_property)]


def predicted(equations: Sequence[Equation], one_target: bool, X: Any, *, std: bool = False) -> Array:
    """Return the mean of every target at the rows of X, or the standard deviation of a new observation there."""
    if std:
        parts = [(one.kept, _columns(X, one.kept.active), _columns(X, one.kept.flat.kept)) for one in equations]
        each = [np.sqrt(kept.prediction_variance(*map(dense, columns))) for kept, *columns in parts]
    else:
        each = [_columns(X, one.kept.support) @ one.coefficients + (one.intercept or 0.0) for one in equations]
    return each[0] if one_target else np.column_stack(each)


def _columns(X: Any, index: Index) -> Any:
    """Return some columns of an array, a sparse matrix or an operator."""
    return X.take(index) if isinstance(X, Operator) else X[:, index]


def _check_units(equations: Sequence[Equation]) -> None:
    """Refuse coefficients whose variance is no number, rather than report a standard deviation of zero."""
    for one in equations:
        kept, variance = one.kept, one.kept.posterior.covariance.diagonal()
        lost = ~((variance > 0) & (variance < np.inf))
        if lost.any() and kept.posterior.noise_variance > 0:
            listed = ", ".join(one.vocabulary.names[int(j)] for j in kept.active[lost][:3])
            raise ValueError(
                f"The variance of the coefficients of {listed} overflows: give these columns, or y, in another unit "
                "(numbers within 1e±150 of each other)."
            )


# Threads of BLAS. Those that wait for each other cost more than they bring where a product takes less than a
# millisecond; on a busy machine they wait for the scheduler, and a fit of five milliseconds takes a second.
# Floating-point operations up to which one thread is used: a tenth of a second of one core.
MOST_FOR_ONE = 1e9

_lock = Lock()
_inside = 0  # how many hold BLAS at one thread now, from whatever threads of Python
_before: list[int] = []  # what it was set to before the first of them


@cache
def _libraries() -> list[Any]:
    """Return the libraries of BLAS that are loaded. Looking for them takes some ten milliseconds."""
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def threads_for(operations: float = 0.0) -> Iterator[None]:
    """Let BLAS work with one thread if so few operations are ahead, and set it back afterwards.

    BLAS has one setting for the whole process: the first to come changes it, the last to leave sets it back.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with threads_for(1e6):
    ...     {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}
    {1}
    """
    few = operations <= MOST_FOR_ONE
    if few:
        _count(1)
    try:
        yield
    finally:
        if few:
            _count(-1)


def _count(step: int) -> None:
    global _inside
    with _lock:
        if _inside == 0:
            _before[:] = [library.num_threads for library in _libraries()]
            _set([1] * len(_before))
        _inside += step
        if _inside == 0:
            _set(_before)


def _set(numbers: list[int]) -> None:
    for library, now, number in zip(_libraries(), _before, numbers, strict=True):
        if now > 1:
            library.set_num_threads(number)
