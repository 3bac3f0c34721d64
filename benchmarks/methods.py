"""The methods, each a function (X, y) -> Outcome, all without intercept.

Packages are imported inside the functions, so that one that is not installed costs only its own rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cases import Array

FOLDS = 5
# Penalties of MCP: shares of the largest, below which all is zero; the usual grid of a path, and skglm's default γ.
SHARES = np.geomspace(1.0, 1e-3, 15)
# Of skglm's inner solver; its default of 50,000 takes minutes where columns are nearly dependent.
MOST_EPOCHS = 1000


@dataclass(frozen=True)
class Outcome:
    """Coefficients (d,), and for the Bayesian methods prior variances γ (d,) and noise variance σ²."""

    coef: Array
    gamma: Array | None = None
    noise: float | None = None


def ard(X: Array, y: Array) -> Outcome:
    """Ardea's ARD with its defaults."""
    from ardea import ARD

    return _of_ardea(ARD(fit_intercept=False).fit(X, y))


def sparse_ard(X: Array, y: Array) -> Outcome:
    """Ardea's SparseARD with its defaults."""
    from ardea import SparseARD

    return _of_ardea(SparseARD(fit_intercept=False).fit(X, y))


def _of_ardea(model: Any) -> Outcome:
    return Outcome(model.coef_, model.prior_variance_, float(model.noise_variance_))


def ard_regression(X: Array, y: Array) -> Outcome:
    """scikit-learn's ARDRegression with its defaults; γ = 1/lambda_ where it kept the term, zero where it pruned it."""
    from sklearn.linear_model import ARDRegression

    model = ARDRegression(fit_intercept=False).fit(X, y)
    kept = model.lambda_ < model.threshold_lambda
    gamma = np.where(kept, 1 / np.where(kept, model.lambda_, 1.0), 0.0)
    return Outcome(model.coef_, gamma, float(1 / model.alpha_))


def fastrvm(X: Array, y: Array) -> Outcome:
    """Sequential sparse Bayes of fastrvm on the given columns, with the settings of its RVR.

    RVR itself only takes kernels of rows against rows, so the backend that it calls is called here. The backend works
    on unit columns and reports precisions divided by ‖θ‖², where multiplied would be right for the coefficients that
    it reports; that is undone, and the cost then agrees with its own log_marginal_likelihood_trace.
    """
    from fastrvm import _sparsebayes_bindings as backend

    max_iter, intercept, verbose = 10000, False, False
    add_first, delete_first, noise_fixed, noise_std = False, True, False, None
    machine = backend.SparseBayes(
        backend.Likelihood.Gaussian,
        max_iter,
        intercept,
        verbose,
        add_first,
        delete_first,
        noise_fixed,
        noise_std,
    )
    result = machine.inference(X, y)
    index = np.ravel(result["relevant_idx"]).astype(np.intp)
    coefficients, gamma = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    coefficients[index] = np.ravel(result["mean"])
    gamma[index] = 1 / (np.ravel(result["alpha"]) * np.linalg.norm(X[:, index], axis=0) ** 4)
    return Outcome(coefficients, gamma, float(1 / result["beta"]))


def abess(X: Array, y: Array) -> Outcome:
    """Best subset by splicing, the size chosen by abess's default criterion (extended BIC)."""
    from abess import LinearRegression

    return Outcome(np.ravel(LinearRegression(fit_intercept=False).fit(X, y).coef_))


def skglm(X: Array, y: Array) -> Outcome:
    """MCPRegression of skglm on columns of equal norm √m, the penalty by cross-validation."""
    scale = np.sqrt(np.einsum("ij,ij->j", X, X) / X.shape[0])
    scale[scale == 0] = 1.0
    return Outcome(np.ravel(MCPRegressionCV(fit_intercept=False).fit(X / scale, y).coef_) / scale)


class MCPRegressionCV:
    """MCP with the penalty by five-fold cross-validation, which skglm leaves to its user."""

    def __init__(self, fit_intercept: bool = True) -> None:
        self.fit_intercept = fit_intercept

    def fit(self, X: Array, y: Array) -> MCPRegressionCV:
        """Choose the penalty and fit."""
        from skglm import MCPRegression
        from sklearn.model_selection import GridSearchCV

        largest = np.abs(X.T @ (y - y.mean() * self.fit_intercept)).max() / len(y)
        search = GridSearchCV(
            MCPRegression(1.0, max_epochs=MOST_EPOCHS, fit_intercept=self.fit_intercept),
            {"alpha": largest * SHARES},
            cv=FOLDS,
            scoring="neg_mean_squared_error",
            error_score="raise",  # a limit of CPU time too
        )
        self.model = search.fit(X, y).best_estimator_
        self.coef_ = self.model.coef_
        return self

    def predict(self, X: Array) -> Array:
        """Predict y."""
        return np.asarray(self.model.predict(X), dtype=float)


def lasso_cv(X: Array, y: Array) -> Outcome:
    """scikit-learn's LassoCV with its defaults."""
    from sklearn.linear_model import LassoCV

    return Outcome(LassoCV(fit_intercept=False).fit(X, y).coef_)


def lasso_lars_ic(X: Array, y: Array) -> Outcome:
    """scikit-learn's LassoLarsIC by BIC, its noise by least squares where there are more rows than columns.

    Elsewhere it asks its user for the noise; the variance of y is what is known without a fit.
    """
    from sklearn.linear_model import LassoLarsIC

    noise = None if X.shape[0] > X.shape[1] else float(np.var(y))
    return Outcome(LassoLarsIC("bic", fit_intercept=False, noise_variance=noise).fit(X, y).coef_)


def stlsq(X: Array, y: Array) -> Outcome:
    """PySINDy's sequentially thresholded least squares with its defaults."""
    from pysindy import STLSQ

    return Outcome(np.ravel(STLSQ().fit(X, y).coef_))


def sr3(X: Array, y: Array) -> Outcome:
    """PySINDy's SR3 with its defaults."""
    from pysindy import SR3

    return Outcome(np.ravel(SR3().fit(X, y).coef_))


def gram(X: Array, y: Array) -> Outcome:
    """No method: one product X.T @ X, the least that anything has to do that compresses tall data."""
    X.T @ X
    return Outcome(np.zeros(X.shape[1]))


def qr(X: Array, y: Array) -> Outcome:
    """No method: the triangle of one QR factorisation of X."""
    np.linalg.qr(X, mode="r")
    return Outcome(np.zeros(X.shape[1]))


OPERATOR = "SparseARD (operator)"
REFERENCE = "ARDRegression"
METHODS: dict[str, Callable[[Any, Array], Outcome]] = {
    "ARD": ard,
    "SparseARD": sparse_ard,
    OPERATOR: sparse_ard,
    REFERENCE: ard_regression,
    "fastrvm": fastrvm,
    "abess": abess,
    "skglm": skglm,
    "LassoCV": lasso_cv,
    "LassoLarsIC": lasso_lars_ic,
    "STLSQ": stlsq,
    "SR3": sr3,
}
FLOORS: dict[str, Callable[[Any, Array], Outcome]] = {"X.T @ X": gram, "QR": qr}
