"""Ardea inside PySINDy: an optimizer for `pysindy.SINDy` that keeps the posterior.

PySINDy builds the library Θ and the derivatives; `BaseOptimizer.fit` multiplies rows by √w where weights are given,
divides columns by their norms where asked, and calls `_reduce`, which fits the estimator. Coefficients are scaled back
by PySINDy, their covariance here: with D = diag(1/‖θ_j‖), ξ = Dξ̃ and Σ = DΣ̃D.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ardea.core.evidence import Estimate
from ardea.core.problem import Array
from ardea.equation import Equation
from ardea.estimators.advice import SuspectDataWarning
from ardea.estimators.base import BaseARD
from ardea.estimators.family import SparseARD
from ardea.estimators.search import ARDSearch

try:
    from pysindy.optimizers import BaseOptimizer
except ImportError as error:
    raise ImportError("ardea.pysindy needs PySINDy: pip install 'ardea[pysindy]'.") from error


class ARDOptimizer(BaseOptimizer):
    """An estimator of Ardea as the optimizer of `pysindy.SINDy`.

    Parameters
    ----------
    estimator : estimator of ardea or ARDSearch, optional
        What to fit, with ``fit_intercept=False``: the constant is a term of PySINDy's library. None:
        ``SparseARD(fit_intercept=False)``. An :class:`ardea.ARDSearch` chooses for every equation on its own.
    normalize_columns : bool, default=False
        Divide the columns by their norms first. Calibrated strengths do not depend on it; numbers given for `tau` and
        `lam` then refer to the normalised columns.
    unbias : bool, default=False
        Refit by least squares on the terms found, which replaces the posterior mean and its covariance by those of the
        refit (``credible_interval(kind="refit")`` of the estimators).
    copy_X : bool, default=True
        Whether PySINDy copies the library first.

    Attributes
    ----------
    coef_ : ndarray of shape (n_targets, n_features)
        Coefficients, exactly zero for terms that are not in the model.
    coef_std_ : ndarray of shape (n_targets, n_features)
        Their standard deviations, zero off the support.
    coef_covariance_ : list of ndarray of shape (k, k)
        For every target the covariance of its k non-zero coefficients, in the order of the columns.
    noise_variance_ : ndarray of shape (n_targets,)
        σ² of a row of weight 1.
    ind_ : ndarray of bool, shape (n_targets, n_features)
        The support.
    estimator_ : estimator, or a list of ARDSearch (one per target)
        Fitted to the rows as PySINDy passes them: weighted, and normalised where asked.

    Notes
    -----
    The rows are taken for independent. Derivatives of smoothed data, and the overlapping windows of `WeakPDELibrary`,
    are not: there more false terms come in than asked for, and error bars are off.
    :class:`ardea.dynamics.Discovery` accounts for it. Noise in the states biases the coefficients, whatever the
    optimizer.

    Weights are relative precisions here, as PySINDy takes them: rows are multiplied by √w and counted as one each, so a
    common factor changes nothing but σ². (The estimators of Ardea take weights for counts.) Rows of weight zero, and
    rows with NaN, are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import pysindy as ps
    >>> from ardea.pysindy import ARDOptimizer
    >>> rng = np.random.default_rng(4)
    >>> x = rng.normal(size=(300, 2))
    >>> x_dot = np.column_stack([-0.5 * x[:, 0], 2 * x[:, 0] * x[:, 1]]) + 0.01 * rng.normal(size=x.shape)
    >>> model = ps.SINDy(optimizer=ARDOptimizer(), feature_library=ps.PolynomialLibrary(3))
    >>> model.fit(x, 0.1, x_dot=x_dot, feature_names=["x", "y"]).print()
    (x)' = -0.500 x
    (y)' =  2.000 x y
    >>> model.optimizer.coef_std_[0, 1].round(5)
    np.float64(0.00059)
    """

    def __init__(
        self,
        estimator: BaseARD | ARDSearch | None = None,
        *,
        normalize_columns: bool = False,
        unbias: bool = False,
        copy_X: bool = True,
    ) -> None:
        super().__init__(normalize_columns=normalize_columns, unbias=unbias, copy_X=copy_X)
        self.estimator = estimator

    def set_params(self, **parameters: Any) -> ARDOptimizer:
        """Set parameters, those of the estimator as ``estimator__name``."""
        super().set_params(**parameters)
        return self

    def fit(self, x_: Any, y: Any, sample_weight: ArrayLike | None = None, **reduce_kws: Any) -> ARDOptimizer:
        """Fit every target; `pysindy.SINDy.fit` calls this, with library and derivatives in rows.

        Rows with NaN are left out; `sample_weight` is the relative precision of every row, or one number.
        """
        _check_estimator(self._chosen())
        x, y = np.asarray(x_, dtype=float), np.asarray(y, dtype=float)
        weight = None if sample_weight is None else _checked_weight(sample_weight, x)
        used = ~np.isnan(x).any(axis=1) & ~np.isnan(y.reshape(len(y), -1)).any(axis=1)
        if weight is not None:
            used &= weight > 0
            weight = weight[used]
        x, y = x[used], y[used]
        empty = np.flatnonzero(~x.any(axis=0))
        if self.normalize_columns and empty.size:
            raise ValueError(
                f"Columns {', '.join(map(str, empty[:10]))} of the library are zero and cannot be normalised: leave "
                "those terms out, or use normalize_columns=False."
            )
        super().fit(x, y, sample_weight=weight, **reduce_kws)
        self._set_uncertainty()
        return self

    def _chosen(self) -> BaseARD | ARDSearch:
        return SparseARD(fit_intercept=False) if self.estimator is None else self.estimator

    def _reduce(self, x: Array, y: Array) -> None:
        """Fit the estimator to prepared rows and set `coef_` in their units."""
        estimator = self._chosen()
        with warnings.catch_warnings():
            # PySINDy itself repeats rows: those of every bag of an ensemble, and patches of its weak form.
            warnings.filterwarnings("ignore", ".*exact copies", SuspectDataWarning)
            if isinstance(estimator, ARDSearch):
                self.estimator_: Any = [clone(estimator).fit(x, np.ascontiguousarray(target)) for target in y.T]
                self.equations_: list[Equation] = [one.best_estimator_.equations_[0] for one in self.estimator_]
            else:
                self.estimator_ = clone(estimator).fit(x, y)
                self.equations_ = self.estimator_.equations_
        self._set_coefficients([equation.posterior for equation in self.equations_])

    def _unbias(self, x: Array, y: Array) -> None:
        """Replace the posterior by least squares on the support."""
        refits = [equation.refit for equation in self.equations_ if equation.refit is not None]
        if len(refits) < len(self.equations_):
            raise ValueError("unbias=True needs more rows than terms: use unbias=False, a sparser model, or more rows.")
        self._set_coefficients(refits)

    def _set_coefficients(self, estimates: list[Estimate]) -> None:
        self._estimates = estimates
        pairs = zip(self.equations_, estimates, strict=True)
        self.coef_ = np.array([equation.spread(estimate.mean) for equation, estimate in pairs])
        self.history_.append(self.coef_)

    def _set_uncertainty(self) -> None:
        """Set support, standard deviations and covariances in the user's units."""
        unit = 1 / np.linalg.norm(self.Theta_, axis=0) if self.normalize_columns else np.ones(self.Theta_.shape[1])
        units = [unit[list(equation.support)] for equation in self.equations_]
        scaled = zip(self._estimates, units, strict=True)
        self.coef_covariance_ = [estimate.covariance * np.outer(one, one) for estimate, one in scaled]
        pairs = zip(self.equations_, self.coef_covariance_, strict=True)
        self.coef_std_ = np.array([equation.spread(np.sqrt(one.diagonal())) for equation, one in pairs])
        self.ind_ = np.array([equation.spread(np.ones(len(equation.support))) > 0 for equation in self.equations_])
        self.noise_variance_ = np.array([estimate.noise_variance for estimate in self._estimates])

    @property
    def complexity(self) -> int:
        """Number of non-zero coefficients."""
        check_is_fitted(self)
        return int(np.count_nonzero(self.coef_))


def _check_estimator(estimator: Any) -> None:
    tried = estimator.estimator if isinstance(estimator, ARDSearch) else estimator
    for model in tried if isinstance(tried, list | tuple) else [tried]:
        if not isinstance(model, BaseARD):
            raise TypeError(
                f"estimator must be one of ardea's estimators, or an ARDSearch of them; got {type(model).__name__}. "
                "For others there is pysindy.WrappedOptimizer."
            )
        if model.fit_intercept:
            raise ValueError(
                f"{type(model).__name__} would fit an intercept, which PySINDy cannot show: the constant is a term of "
                f"the library. Give {type(model).__name__}(fit_intercept=False)."
            )


def _checked_weight(sample_weight: ArrayLike, x: Array) -> Array:
    """Return one weight per row."""
    given = np.asarray(sample_weight, dtype=float)
    if not given.any():
        raise ValueError("At least one sample_weight must be above zero.")
    every = float(given) if given.ndim == 0 else given.ravel()
    weight: Array = _check_sample_weight(every, x, dtype=np.float64, ensure_non_negative=True)
    return weight
