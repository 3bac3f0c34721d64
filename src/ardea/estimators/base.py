"""What a fitted model answers: predictions, intervals, draws, tables, pictures; all from its equations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial, reduce
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ardea.core.compression import is_lazy, merged_ranges, ranges_of
from ardea.core.implicit import Operator
from ardea.core.problem import Array, Index
from ardea.equation import Equation, IntervalKind, Summary, python_function
from ardea.estimators.advice import ExtrapolationWarning, extrapolation_advice
from ardea.estimators.fitting import Fitting
from ardea.estimators.inputs import checked_positive, explained_where_unsound, refuse_masks_and_dates
from ardea.show.draws import to_arviz
from ardea.show.notebook import ShowsFit

# Copies of the kept columns are made of so many bytes of rows at a time: 16 MB, a convention.
PREDICTED_BYTES = 2**24


class BaseARD(ShowsFit, SelectorMixin, MultiOutputMixin, RegressorMixin, Fitting):
    """A model of few terms with its equations, one for every target."""

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return np.asarray(np.atleast_2d(self.support_).any(axis=0))

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
        if isinstance(X, Operator):
            return self._predict_operator(X, return_std)
        refuse_masks_and_dates("X", X)
        with explained_where_unsound(X, None):
            X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), reset=False)
        X = X.tocsr() if sparse.issparse(X) else X
        support = np.flatnonzero(self._get_support_mask())
        height = max(1, PREDICTED_BYTES // (8 * (1 + support.size)))
        blocks = [X[start : start + height] for start in range(0, X.shape[0], height)]
        if (fitted := self.__dict__.get("_ranges")) is not None:
            met = reduce(merged_ranges, (ranges_of(block[:, support]) for block in blocks))
            if advice := extrapolation_advice(fitted[:, support], met, [self._names()[int(j)] for j in support]):
                warnings.warn(advice, ExtrapolationWarning, stacklevel=2)
        mean = np.concatenate([predicted_mean(self.equations_, self._one_target, block) for block in blocks])
        if not return_std:
            return mean
        return mean, np.concatenate([predicted_std(self.equations_, self._one_target, block) for block in blocks])

    def _predict_operator(self, X: Operator, return_std: bool) -> Any:
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"The operator has {X.shape[1]} columns; the model was fitted to {self.n_features_in_}.")
        mean = predicted_mean(self.equations_, self._one_target, X)
        return (mean, predicted_std(self.equations_, self._one_target, X)) if return_std else mean

    def _predict_lazily(self, X: Any, return_std: bool) -> Any:
        from ardea.distributed.compress import predicted

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
        intervals_of = "posterior intervals"
        if kind == "refit":
            intervals_of = "intervals of least squares on the kept terms"
        return Summary(
            table, f"{type(self).__name__}: {kept} of {possible} terms kept, noise σ = {sigma}; {intervals_of}"
        )

    def to_arviz(self, n_draws: int = 1000, random_state: Any = None) -> Any:
        """Return posterior draws for ArviZ; see :func:`ardea.show.draws.to_arviz`."""
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


def _check_interval(level: Any, kind: Any) -> None:
    if not isinstance(level, Real) or not 0 < float(level) < 1:
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
