"""The methods, each a function (X, y) -> Outcome, all without intercept.

Packages are imported inside the functions, so that one that is not installed costs only its own rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cases import Array

SKGLM_SHARE = 0.05


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
    """MCPRegression of skglm on columns of equal norm √m, at a fixed 5 % of the penalty that keeps no term."""
    from skglm import MCPRegression

    scale = np.sqrt(np.einsum("ij,ij->j", X, X) / X.shape[0])
    scale[scale == 0] = 1.0
    unit = X / scale
    strongest = np.abs(unit.T @ y).max() / X.shape[0]
    model = MCPRegression(alpha=SKGLM_SHARE * strongest, fit_intercept=False).fit(unit, y)
    return Outcome(np.ravel(model.coef_) / scale)


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
    "STLSQ": stlsq,
    "SR3": sr3,
}
FLOORS: dict[str, Callable[[Any, Array], Outcome]] = {"X.T @ X": gram, "QR": qr}
