"""States along a chain of steps: the band against the dense Hessian, and the compiled loops against NumPy's."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from ardea.dynamics import chain
from ardea.dynamics.chain import Chain, NumpyLoops

SHAPES = [(1, 1, 1), (5, 3, 7), (12, 2, 0), (4, 6, 30)]


def drawn(steps, n, seed=0):
    rng = np.random.default_rng(seed)
    precisions = rng.uniform(0.5, 2.0, (steps, n))
    precisions[steps // 2] = 0.0  # a gap
    weights = rng.uniform(0.1, 1.0, (steps + 1, n))
    return Chain(rng.normal(size=(steps, n, n)), rng.normal(size=(steps, n, n)), weights, precisions)


def dense(of):
    """Return R and H."""
    steps, n, _ = of.before.shape
    R = np.zeros((steps * n, (steps + 1) * n))
    for i in range(steps):
        R[i * n : (i + 1) * n, i * n : (i + 1) * n] = of.before[i]
        R[i * n : (i + 1) * n, (i + 1) * n : (i + 2) * n] = of.after[i]
    return R, np.diag(of.weights.ravel()) + R.T @ np.diag(of.precisions.ravel()) @ R


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def loops(request, monkeypatch):
    if request.param == "compiled" and chain.compiled is None:
        pytest.skip("installed without a compiler")
    monkeypatch.setenv("ARDEA_LOOP", request.param)


@pytest.mark.parametrize(("steps", "n", "p"), SHAPES)
def test_all_is_what_the_dense_matrices_say(steps, n, p):
    of, rng = drawn(steps, n), np.random.default_rng(1)
    R, H = dense(of)
    rows = rng.normal(size=(steps, n, p))
    expected = R.T @ (of.precisions.ravel()[:, None] * rows.reshape(steps * n, p))
    np.testing.assert_allclose(of.pulled(rows), expected, atol=1e-12)
    for below in range(2 * n):
        np.testing.assert_allclose(of.band[: len(H) - below, below], np.diag(H, -below), atol=1e-12)
    whole = H.reshape(steps + 1, n, steps + 1, n)
    for i in range(steps + 1):
        np.testing.assert_allclose(of.blocks[0][i], whole[i, :, i], atol=1e-12)
    for i in range(steps):
        np.testing.assert_allclose(of.blocks[1][i], whole[i + 1, :, i], atol=1e-12)
    L, right = np.linalg.cholesky(H), rng.normal(size=(len(H), p))
    np.testing.assert_allclose(of.factor.forward(right), np.linalg.solve(L, right), atol=1e-9)
    np.testing.assert_allclose(of.factor.backward(right), np.linalg.solve(L.T, right), atol=1e-9)
    np.testing.assert_allclose(of.factor.solved(right), np.linalg.solve(H, right), atol=1e-9)
    assert of.log_determinant == pytest.approx(np.linalg.slogdet(H)[1])


@pytest.mark.parametrize("n", [3, 20])
def test_a_border_in_parts_leaves_what_the_whole_leaves(n, monkeypatch):
    """S = B'Q⁻¹(B − RH⁻¹R'Q⁻¹B) and b likewise, of any number of steps at a time."""
    steps, k, rng = 7, 4, np.random.default_rng(5)
    of = drawn(steps, n)
    B, target, pull = rng.normal(size=(steps, n, k)), rng.normal(size=(steps, n)), rng.normal(size=(steps + 1, n))
    (R, H), Q, flat = dense(of), np.diag(of.precisions.ravel()), B.reshape(steps * n, k)
    state = np.linalg.solve(H, np.column_stack([R.T @ Q @ flat, R.T @ Q @ target.ravel() + pull.ravel()]))
    S, b = flat.T @ Q @ (flat - R @ state[:, :k]), flat.T @ Q @ (target.ravel() - R @ state[:, k])
    for at_once in (1, 3, steps, steps + 1, 50):
        monkeypatch.setattr(chain, "MOST_AT_ONCE", at_once * n * (k + 1))
        found = of.reduced(of.factor, lambda part: B[part], k, target, pull)
        np.testing.assert_allclose(found[0], S, atol=1e-9)
        np.testing.assert_allclose(found[1], b, atol=1e-9)
        v = np.linalg.solve(np.linalg.cholesky(H), R.T @ Q @ target.ravel() + pull.ravel())
        np.testing.assert_allclose(found[2].ravel(), v, atol=1e-9)


@pytest.mark.parametrize("n", [3, 20])
def test_covariances_are_blocks_of_the_inverse(n):
    of = drawn(6, n)
    inverse = np.linalg.inv(dense(of)[1]).reshape(7, n, 7, n)
    own, below = of.factor.covariances
    for i in range(7):
        np.testing.assert_allclose(own[i], inverse[i, :, i], atol=1e-9)
    for i in range(6):
        np.testing.assert_allclose(below[i], inverse[i + 1, :, i], atol=1e-9)


@pytest.mark.parametrize("n", [2, 20])
def test_slope_of_the_determinant_counts_parameters(n):
    """∂ ln|H|/∂ ln w is the trace of W_l H⁻¹; over all weights and precisions it is the size of H."""
    of = drawn(8, n)
    exact = np.diag(np.linalg.inv(dense(of)[1]) @ np.diag(of.weights.ravel())).reshape(9, n).sum(axis=0)
    found, of_steps = of.used()
    np.testing.assert_allclose(found, exact, rtol=1e-9)
    assert sum(found) + sum(of_steps) == pytest.approx(9 * n)


@pytest.mark.parametrize("n", [2, 20])
def test_a_hessian_that_is_not_positive_has_no_factor(n):
    of = drawn(3, n)
    broken = Chain(of.before, of.after, -10 * np.ones_like(of.weights), of.precisions)
    assert broken.factor is None
    assert np.isnan(broken.log_determinant)


@pytest.mark.skipif(chain.compiled is None, reason="installed without a compiler")
def test_compiled_steps_are_those_of_numpy():
    rng = np.random.default_rng(2)
    for n in (1, 2, 5):
        (J, J_m, J_b), h = rng.normal(size=(3, 8, n, n)), rng.uniform(0.1, 1.0, 8)
        for one, other in zip(
            NumpyLoops.step_blocks(J, J_m, J_b, h), chain.compiled.step_blocks(J, J_m, J_b, h), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-14)


def test_states_without_steps_stand_alone():
    """Without any step between them, H is the weights."""
    of = drawn(3, 2)
    alone = Chain(of.before, of.after, of.weights, np.zeros_like(of.precisions))
    H = block_diag(*of.weights.ravel())
    np.testing.assert_allclose(alone.band[:, 0], np.diag(H))
    assert np.all(alone.band[:, 1:] == 0)
