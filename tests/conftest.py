"""Data with known truth, and the family of estimators that every check runs over."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from multiprocessing.forkserver import ensure_running

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD
from ardea.cli import models
from ardea.show import report

# Tests with @given alone take the number of examples from the profile: few and always the same ones by default; many,
# from --hypothesis-seed, with `--hypothesis-profile=stability` (see benchmarks/stability.py).
_slow_is_fine = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=4, derandomize=True, **_slow_is_fine)
settings.register_profile("stability", max_examples=40, print_blob=True, **_slow_is_fine)
settings.load_profile("quick")


@pytest.fixture(scope="session", autouse=True)
def _one_thread_of_blas():
    """Small matrices: threads of BLAS only get into each other's way, badly so on a busy machine."""
    with threadpool_limits(1):
        yield


# What children import beyond what the command line and Dask's workers import at once.
LATE = ("jinja2", "narwhals", "pandas", "pyarrow", "pytest", "tqdm")


@pytest.fixture(scope="session")
def forkserver():
    """Processes forked from one that has imported all that they need, and has one thread: they start at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["ardea.cli.predict", "ardea.paper.catalogue", "ardea.distributed", *LATE])
        ensure_running()
        yield context


FAMILY = (ARD, ARDvi, ARDr, MSTSBL, LSTSBL, MAPSTSBL, SparseARD)


@dataclass(frozen=True)
class Data:
    """y = X·coef + intercept + noise of standard deviation sigma."""

    X: np.ndarray
    y: np.ndarray
    coef: np.ndarray
    sigma: float


def sparse_data(seed=0, m=80, d=12, k=3, sigma=0.5, shift=2.0):
    """Correlated off-centre columns of different size, k of them with coefficients of 1 to 3."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(m, d)) + 0.5 * rng.normal(size=(m, 1))
    X = (mixed + shift * rng.normal(size=d)) * 2.0 ** rng.integers(-1, 2, d)
    coef = np.zeros(d)
    coef[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(1, 3, k)
    return Data(X, X @ coef + 1.5 + sigma * rng.normal(size=m), coef, sigma)


def orthogonal_data(seed=0, m=80, d=60, k=15, sigma=0.3):
    """Orthogonal columns with squared norms ρ ~ U[1, 3]; no intercept."""
    rng = np.random.default_rng(seed)
    rho = rng.uniform(1, 3, d)
    X = np.linalg.qr(rng.normal(size=(m, d)))[0] * np.sqrt(rho)
    coef = np.zeros(d)
    coef[:k] = rng.normal(size=k)
    return Data(X, X @ coef + sigma * rng.normal(size=m), coef, sigma)


def linear_data(seed=0, n=250, k=25):
    """The paper's Linear problem: singular values from 1e-2 to 1, noise of 10 % of the signal's deviation."""
    rng = np.random.default_rng(seed)
    u, _, vt = np.linalg.svd(rng.normal(size=(n, n)))
    X = (u * np.logspace(-2, 0, n)) @ vt
    coef = np.zeros(n)
    coef[rng.choice(n, k, replace=False)] = rng.normal(size=k)
    signal = X @ coef
    sigma = 0.1 * float(np.std(signal))
    return Data(X, signal + sigma * rng.normal(size=n), coef, sigma)


def complement_basis(flat):
    """Return orthonormal columns that span everything orthogonal to the columns of `flat`."""
    flat = np.asarray(flat, dtype=float).reshape(len(flat), -1)
    return np.linalg.qr(flat, mode="complete")[0][:, flat.shape[1] :]


def evidence_cost(X, y, gamma, noise):
    """Return L = log|Σ_y| + yᵀΣ_y⁻¹y, densely."""
    covariance = noise * np.eye(len(y)) + (X * gamma) @ X.T
    return np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y)


def evidence_slopes(X, y, gamma, noise):
    """Return M_j = θ_jᵀΣ_y⁻¹θ_j and q_j = θ_jᵀΣ_y⁻¹y, densely."""
    covariance = noise * np.eye(len(y)) + (X * gamma) @ X.T
    solved = np.linalg.solve(covariance, X)
    return np.einsum("ij,ij->j", X, solved), solved.T @ y


@pytest.fixture(params=FAMILY, ids=lambda kind: kind.__name__)
def estimator(request):
    """Every estimator in turn, at its defaults."""
    return request.param()


# Keeps some of the columns that explain nothing, so that supports are not trivial.
LENIENT = {ARDvi: {"alpha": 1.5}, ARDr: {"lam": 5.0}, SparseARD: {"false_terms": 3.0}}


def lenient(kind, **parameters):
    return kind(**(LENIENT.get(kind, {"false_terms": 4.0} if kind is not ARD else {}) | parameters))


def assert_same_fit(one, other, rtol=1e-8):
    """All numbers agree to rtol, relative to the largest of each attribute."""
    np.testing.assert_array_equal(one.support_, other.support_)
    for name in ("coef_", "intercept_", "coef_std_", "noise_variance_", "prior_variance_", "log_evidence_"):
        value, expected = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        size = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        np.testing.assert_allclose(value, expected, rtol=rtol, atol=rtol * size, err_msg=name)


def assert_same_moments(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def two_targets(seed=3):
    data = sparse_data(seed)
    other = data.X @ np.roll(data.coef, 1) + np.random.default_rng(seed).normal(size=len(data.y))
    return data.X, np.column_stack([data.y, other])


def wide(sigma, m=100, d=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d))
    return X, X[:, :3] @ [1.0, 2.0, 3.0] + sigma * rng.normal(size=m)


def sparse_columns(m, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.2)
    y = 2 * X[:, 1] - 3 * X[:, 4] + 0.2 * rng.normal(size=m)
    return X, y


WHOLE = {".svg": b"</svg>", ".png": b"IEND\xaeB`\x82"}  # how files of figures end


@pytest.fixture
def no_figures(monkeypatch):
    """Commands write the end of a figure instead of a figure, and reports without any: a second each is saved."""
    monkeypatch.setattr(models, "figure_bytes", lambda draw, kind: WHOLE[f".{kind}"])
    monkeypatch.setattr(report, "svg", lambda *_: "")


def spoiled(array, value):
    """Return a copy with one entry replaced."""
    array = array.copy()
    array.flat[3] = value
    return array
