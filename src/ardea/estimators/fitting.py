"""How all estimators are fitted: validate → pose → solve → attributes; whole or as a stream."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ardea.core.compression import CompressedRows, Compression
from ardea.core.problem import Array, Coordinates, Problem
from ardea.core.result import Fit, Trace
from ardea.equation import Equation, Left
from ardea.estimators.advice import fit_advice
from ardea.estimators.inputs import (
    CheckedRows,
    checked_keep,
    checked_positive,
    checked_rows,
    checked_wish,
)
from ardea.methods.kept import kept_terms
from ardea.methods.task import Method, Wish, tasks_of
from ardea.names import ColumnNames, default_names

SOLVED = ("equations_", "warnings_", "kkt_gap_", "n_iter_", "trace_")
DERIVED = (
    "coef_",
    "intercept_",
    "support_",
    "coef_std_",
    "covariance_",
    "noise_variance_",
    "prior_variance_",
    "log_evidence_",
)


class Fitting(BaseEstimator):
    """What all estimators share; a subclass declares its parameters and its method."""

    method: ClassVar[Method]
    # Name of the parameter that decides how many terms are kept; None where there is none.
    strength_name: ClassVar[str | None]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "method"):
            cls.strength_name = cls.method.strength

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

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
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
        rows = checked_rows(self, X, y, sample_weight, first=True)
        self._forget()
        self._stream: Compression | None = None
        self._ranges, self._one_target = rows.ranges, rows.one_target
        self._solve(rows)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
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
        stream: Compression | None = self.__dict__.get("_stream")
        if stream is None and "equations_" in self.__dict__:
            warnings.warn(
                "partial_fit begins a new stream: the rows given to fit() are not part of it. Pass them through "
                "partial_fit too if they should be.",
                UserWarning,
                stacklevel=2,
            )
        rows = checked_rows(self, X, y, sample_weight, first=stream is None)
        self._checked(rows.n_columns)
        block = rows.compressed()
        whole = block if stream is None else stream.merge(block)
        self._stream, self._ranges = whole, whole.ranges
        self._one_target = rows.one_target if stream is None else self._one_target
        self._forget()
        return self

    def _solve(self, rows: CheckedRows) -> None:
        """Pose, solve and adopt."""
        keep, wish = self._checked(rows.n_columns)
        problems, coordinates = rows.pose(intercept=bool(self.fit_intercept), keep=keep)
        tasks = tasks_of(problems, coordinates, self.noise_variance, int(self.max_iter), float(self.tol))
        self._adopt(problems, coordinates, [self.method.solve(task, wish, None) for task in tasks])

    def _solved(self, name: str) -> Any:
        """Solve the rows streamed so far, which sets all fitted attributes, and return one of them."""
        stream: Compression | None = self.__dict__.get("_stream")
        if stream is None:
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit or partial_fit first.")
        self._check_parameters()
        rows = CompressedRows(stream, None, self._one_target)
        self._solve(CheckedRows(rows, np.empty((0, stream.n_targets)), None, stream.ranges, self._one_target))
        return self.__dict__[name]

    def _like(self, other: Any, rows: CheckedRows) -> None:
        """Take over the columns of another model of the same rows."""
        self.n_features_in_ = other.n_features_in_
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_ = other.feature_names_in_
        self._stream, self._ranges, self._one_target = None, rows.ranges, True

    def _forget(self) -> None:
        for name in (*SOLVED, *DERIVED):
            self.__dict__.pop(name, None)

    # Fitted attributes: `fit` sets them all; after `partial_fit` the first one that is read solves for all of them.

    @cached_property
    def equations_(self) -> list[Equation]:
        """One equation for every target."""
        return self._solved("equations_")

    @cached_property
    def warnings_(self) -> list[str]:
        """What the user was told."""
        return self._solved("warnings_")

    @cached_property
    def kkt_gap_(self) -> Any:
        """Certificate of every target."""
        return self._solved("kkt_gap_")

    @cached_property
    def n_iter_(self) -> Any:
        """Steps of the outer loop."""
        return self._solved("n_iter_")

    @cached_property
    def trace_(self) -> Any:
        """What happened on the way."""
        return self._solved("trace_")

    @cached_property
    def coef_(self) -> Array:
        """Posterior means; exactly zero for dropped terms."""
        return self._stacked([one.spread(one.coefficients) for one in self.equations_])

    @cached_property
    def intercept_(self) -> Any:
        """Posterior mean of the constant."""
        return self._stacked([one.intercept or 0.0 for one in self.equations_])

    @cached_property
    def support_(self) -> NDArray[np.bool_]:
        """Which terms are kept."""
        return self._stacked([one.spread(np.ones(len(one.support))) > 0 for one in self.equations_])

    @cached_property
    def coef_std_(self) -> Array:
        """Posterior standard deviations."""
        return self._stacked([one.spread(one.std) for one in self.equations_])

    @cached_property
    def covariance_(self) -> Any:
        """Posterior covariance of the kept terms."""
        covariances = [one.covariance for one in self.equations_]
        return covariances[0] if self._one_target else covariances

    @cached_property
    def noise_variance_(self) -> Any:
        """Noise variance σ²."""
        return self._stacked([one.posterior.noise_variance for one in self.equations_])

    @cached_property
    def prior_variance_(self) -> Array:
        """Prior variances γ; infinite for `always_keep`."""
        return self._stacked([one.kept.prior_variances(self.n_features_in_) for one in self.equations_])

    @cached_property
    def log_evidence_(self) -> Any:
        """Logarithm of the evidence."""
        return self._stacked([one.kept.log_evidence for one in self.equations_])

    def _stacked(self, values: list[Any]) -> Any:
        return values[0] if self._one_target else np.array(values)

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
        if hasattr(self, "false_terms"):
            checked_positive("false_terms", self.false_terms)

    def _checked(self, n_columns: int) -> tuple[list[int], Wish]:
        """Return the columns to keep and what is asked of the method, for so many columns."""
        keep = checked_keep(self.always_keep, n_columns, getattr(self, "feature_names_in_", None))
        return keep, checked_wish(self.get_params(deep=False), self.method, n_columns)

    def _adopt(self, problems: Sequence[Problem], coordinates: Coordinates, fits: Sequence[Fit]) -> None:
        """Take the fits for this model's own: warnings, then attributes."""
        known, names = self.noise_variance is not None, self._names()
        self.warnings_ = []
        for t, (problem, fit) in enumerate(zip(problems, fits, strict=True)):
            self._tell(problem, fit, coordinates, "" if self._one_target else f"Target {t}: ")
        targets = ["y"] if self._one_target else list(default_names(len(fits), "y"))
        equations = [
            Equation(Left(targets[t]), ColumnNames(names), kept_terms(problem, fit, coordinates, t, noise_known=known))
            for t, (problem, fit) in enumerate(zip(problems, fits, strict=True))
        ]
        traces = [
            _trace_in_units(fit.trace, problem, coordinates, t, self.method.unit_power)
            for t, (problem, fit) in enumerate(zip(problems, fits, strict=True))
        ]
        self._set_attributes(equations, [fit.kkt_gap for fit in fits], [fit.n_iter for fit in fits], traces)

    def _set_attributes(
        self, equations: list[Equation], gaps: list[float], counts: list[int], traces: list[Trace]
    ) -> None:
        """Set the fitted attributes of one or several targets."""
        _check_units(equations, self._names())
        self.equations_ = equations
        self.kkt_gap_, self.n_iter_ = self._stacked(gaps), self._stacked(counts)
        self.trace_ = traces[0] if self._one_target else traces
        for name in DERIVED:
            getattr(self, name)

    def _tell(self, problem: Problem, fit: Fit, coordinates: Coordinates, where: str) -> None:
        """Turn what a user should know of a fit into warnings; print where asked."""
        told = fit_advice(
            problem,
            fit,
            coordinates,
            known_noise=self.noise_variance is not None,
            limits={"max_iter": self.max_iter, "tol": self.tol},
            names=self._names(),
        )
        for text, category in told:
            self.warnings_.append(where + text)
            warnings.warn(where + text, category, stacklevel=5)
        if self.verbose:
            k = fit.posterior.active.size + coordinates.flat.kept.size
            print(
                f"{where or type(self).__name__ + ': '}{fit.n_iter} steps, {k} terms, kkt_gap {fit.kkt_gap:.1e}, "
                f"{fit.status.value}"
            )


def _check_units(equations: Sequence[Equation], names: Sequence[str]) -> None:
    """Refuse coefficients whose variance is no number, rather than report a standard deviation of zero."""
    for kept in (equation.kept for equation in equations):
        variance = kept.posterior.covariance.diagonal()
        lost = ~np.isfinite(variance) | (variance == 0)
        if lost.any() and kept.posterior.noise_variance > 0:
            listed = ", ".join(names[int(j)] for j in kept.active[lost][:3])
            raise ValueError(
                f"The variance of the coefficients of {listed} overflows: give these columns, or y, in another unit "
                "(numbers within 1e±150 of each other)."
            )


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
