"""The compiled look at residuals: the same statistics, and the same messages, as the tests that hold the maths."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import fft, special

from ardea import ARD, SparseARD
from ardea.estimators import dependence, residuals
from ardea.estimators import sizes as sizes_of

pytestmark = pytest.mark.skipif(dependence.compiled is None, reason="installed without a compiler")
KINDS = (
    "equal",
    "series",
    "heavy",
    "grows",
    "far",
    "gross",
    "slipped",
    "resting",
    "codes",
    "repeated",
    "constant",
    "rounded",
    "sorted",
    "wide",
)


def drawn(kind, seed, m=90):
    """Return rows of which two columns explain y, and errors of some kind."""
    rng, d = np.random.default_rng(seed), 80 if kind == "wide" else 7  # more than are looked at
    X, e = rng.normal(size=(m, d)), rng.normal(size=m)
    if kind == "series":
        X = np.cumsum(X, axis=0)
        for t in range(1, m):
            e[t] += 0.5 * e[t - 1]
    if kind == "heavy":
        e = rng.standard_t(3, size=m)
    if kind == "grows":
        e *= np.exp(X[:, 0])
    if kind == "far":
        X[:2] *= 8
        e[:2] += rng.choice([0, 8])
    if kind == "gross":
        e[5] += 60
    if kind == "slipped":
        e[: rng.integers(5, 20)] += 12
    if kind == "resting":
        X[3] *= 40
        e[3] += 15 * rng.normal()
    if kind == "constant":
        X[:, 3] = 7.0
    y = X[:, 0] - 0.5 * X[:, 1] + e
    if kind == "codes":
        y = np.round(y > 0).astype(float)
    if kind == "rounded":
        y = np.round(y)
    order = {"repeated": rng.integers(m, size=m), "sorted": np.argsort(y)}.get(kind, np.arange(m))
    return X[order], y[order]


def told(model, X, y):
    """Return what a fit says, and how many rows it counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model.warnings_, model.effective_rows_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", [ARD, SparseARD])
def test_messages_are_those_of_the_tests_themselves(kind, estimator, monkeypatch):
    rows = [drawn(kind, seed) for seed in range(12)]
    looked = [told(estimator(), *one) for one in rows]
    monkeypatch.setattr(dependence, "compiled", None)
    np.testing.assert_equal(looked, [told(estimator(), *one) for one in rows])


def test_ordinary_rows_are_looked_at_only_once(monkeypatch):
    """Nine in ten fits to ordinary rows end with the look; one in twenty looks on by chance, by order alone."""
    looked_on = []
    sample = dependence._sample
    monkeypatch.setattr(dependence, "_sample", lambda *given: (looked_on.append(given), sample(*given))[1])
    for seed in range(60):
        told(ARD(), *drawn("equal", seed))
    assert 1 <= len(looked_on) <= 9


@pytest.mark.parametrize("m", [60, 61, 2500])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_statistics_are_those_of_the_tests(m, k):
    rng = np.random.default_rng(m + k)
    X = rng.normal(size=(m, 6)) + 3
    X[7] *= 3
    kept, rate, n = rng.permutation(6)[:k], 0.05, min(m, 2048)
    coefficients, y = rng.normal(size=k), rng.normal(size=m)
    y += X[:, kept] @ coefficients + 2.0
    cut = -special.ndtri(rate / 2)
    ranges = np.array([X.min(axis=0), X.max(axis=0)])
    look = dependence.compiled.look(X[:n], y[:n], ranges, kept, coefficients, 2.0, n / m, cut)
    errors = (y - X[:, kept] @ coefficients - 2.0)[:n]
    errors /= np.abs(errors).max()
    fitted = residuals.basis_of(np.ones(n), X[:n, kept]) * np.sqrt(n / m)
    # Errors, and what was fitted
    np.testing.assert_allclose(look.rows[0], errors - errors.mean(), atol=1e-12)
    np.testing.assert_allclose(look.rows[2:].T @ look.rows[2:], fitted @ fitted.T, atol=1e-10)
    # Sizes
    sizes = sizes_of.unequal_sizes(X[:n], errors, fitted, rate, kept)
    leverage = (fitted**2).sum(axis=1)
    squares = errors**2 / np.maximum(1 - leverage, 1 - residuals.MOST_TAKEN)
    shares = (X[:n] - X[:n].mean(axis=0)) ** 2
    v = squares @ shares / shares.sum(axis=0) / squares.mean()
    np.testing.assert_allclose(look.false_terms, (2 * special.ndtr(-cut / np.sqrt(v))).mean(), rtol=1e-10)
    np.testing.assert_allclose(look.of_kept, v[kept].max(initial=0.0), rtol=1e-10)
    np.testing.assert_allclose(look.noise, sizes.noise, rtol=1e-10)
    np.testing.assert_allclose(residuals.tail_of_kurtosis(look.kurtosis, n), sizes_of._heavy_tails(errors), rtol=1e-8)
    squares = np.sort((X - X.mean(axis=0))[:, kept] ** 2, axis=0)
    if n == m:
        assert (squares[-3:].sum(axis=0) <= look.carried * squares.sum(axis=0) * (1 + 1e-9)).all()
    # Rows far out: squares that the fit leaves without them
    far = np.argsort(-leverage)[: look.theirs.size]
    hat, left = fitted @ fitted.T, errors - fitted @ (fitted.T @ errors)
    np.testing.assert_allclose(look.left, left @ left, rtol=1e-10)
    for count, found in enumerate(look.theirs, 1):
        some = far[:count]
        block = np.eye(count) - hat[np.ix_(some, some)]
        np.testing.assert_allclose(found, left[some] @ np.linalg.solve(block, left[some]), rtol=1e-8)
    assert (k == 0) == (look.theirs.size == 0)
    # Neighbours
    near = residuals._near(n)
    transforms = fft.rfft(look.rows)
    found = dependence.compiled.neighbours(transforms, *near[:4])
    chance = near.chance(*found, look.kurtosis)
    largest = dependence.compiled.largest(fft.irfft(transforms[:2], n), n // 3, transforms[1, 0].real)
    chance = min(chance, residuals._of_lags(largest, n))
    np.testing.assert_allclose(chance, residuals.harm_in_order(X[:n], errors, fitted).chance, rtol=1e-7)


@pytest.mark.parametrize("kind", ["codes", "repeated", "constant", "sorted"])
def test_rows_out_of_the_ordinary_are_left_to_the_tests(kind):
    X, y = drawn(kind, 1)
    ranges, none = np.array([X.min(axis=0), X.max(axis=0)]), np.empty(0, dtype=np.intp)
    assert dependence.compiled.look(X, y, ranges, none, np.empty(0), 0.0, 1.0, 2.0) is None
