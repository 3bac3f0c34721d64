"""The likelihood of a trajectory: steps and their derivatives, its optimum and information, and what is found on it."""

from dataclasses import replace

import numpy as np
import pytest

from ardea.dynamics import Fourier, Polynomials, systems
from ardea.dynamics.collocation import RightSide, Steps
from ardea.dynamics.nodes import nodes_of
from ardea.dynamics.series import Series
from ardea.dynamics.trajectory import Likelihood, Linearised, Point

RNG = np.random.default_rng


def series(t, x, u=None):
    return Series(t, x, np.empty((len(t), 0)) if u is None else u)


def rates(n):
    """F of x' = v."""
    out = np.zeros((2 * n, 2 * n))
    out[:n, n:] = np.eye(n)
    return out


def central(function, x, step=1e-5):
    """Return the derivative of an array by every entry of x, by central differences of fourth order."""
    columns = []
    for i in range(x.size):
        unit = np.zeros(x.size)
        unit[i] = step
        unit = unit.reshape(x.shape)
        near, far = (function(x + k * unit) - function(x - k * unit) for k in (1, 2))
        columns.append((8 * near - far).ravel() / (12 * step))
    return np.array(columns).T


# A kind of equation: library, number of states and of inputs, whether it is a map, and its fixed part.
KINDS = {
    "polynomials": (Polynomials(3), 2, 0, False, None),
    "sine": (Polynomials(1) + Fourier(2), 2, 0, False, None),
    "inputs": (Polynomials(2), 2, 1, False, None),
    "map": (Polynomials(2), 2, 0, True, None),
    "position": (Polynomials(3), 2, 0, False, rates(1)),
    "position and input": (Polynomials(2) + Fourier(1), 2, 1, False, rates(1)),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def posed(request):
    """A likelihood of two series with gaps, and some point that solves nothing."""
    library, n, n_inputs, discrete, fixed = request.param
    rng = RNG(1)
    t = np.arange(7.0) if discrete else np.cumsum(rng.uniform(0.05, 0.15, 7))
    data = []
    for start in (0, 3):
        x = rng.normal(size=(7, n))
        x[start + 1, 0] = np.nan
        if fixed is not None:
            x = x[:, :1]
        data.append(series(t + start, x, rng.normal(size=(7, n_inputs))))
    nodes = nodes_of(data, hidden=n - data[0].x.shape[1])
    of = Likelihood(nodes, library, discrete, fixed)
    coefficients = rng.normal(size=(n, of.d))
    if fixed is not None:
        coefficients[0] = 0.0
    states = nodes.y + 0.1 * rng.normal(size=nodes.y.shape)
    point = Point(states, coefficients, rng.uniform(0.5, 1, n), rng.uniform(0.2, 0.4, n))
    support = tuple(np.flatnonzero(coefficients).tolist())
    return of, point, support


def linearised(of, point, support):
    return Linearised(of, point, of.weights(point), support)


def dense(linear, support):
    """Return weights, precisions and R = ∂r/∂X, B = ∂r/∂ξ as matrices."""
    before, after = linear.steps.derivatives
    steps, n, _ = before.shape
    R = np.zeros((steps * n, (steps + 1) * n))
    for i in range(steps):
        rows = slice(i * n, (i + 1) * n)
        R[rows, rows] = before[i]
        R[rows, (i + 1) * n : (i + 2) * n] = after[i]
    B = linear.steps.border(*linear.of.placed(support)).reshape(steps * n, -1)
    return np.diag(linear.weights.ravel()), np.diag(linear.precisions.ravel()), R, B


# Steps ----------------------------------------------------------------------------------------------------------------


def test_derivatives_of_a_step(posed):
    of, point, support = posed
    linear = linearised(of, point, support)
    _, _, R, B = dense(linear, support)

    def of_states(states):
        return of.steps(replace(point, states=states)).residual

    def of_coefficients(values):
        coefficients = point.coefficients.copy()
        coefficients[of.placed(support)] = values
        return of.steps(replace(point, coefficients=coefficients)).residual

    values = point.coefficients[of.placed(support)]
    np.testing.assert_allclose(R, central(of_states, point.states, 1e-3), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(B, central(of_coefficients, values, 1e-3), rtol=1e-7, atol=1e-8)


def test_border_of_absent_candidates_is_that_of_present_ones_at_zero(posed):
    """In any order, and of terms in several equations."""
    of, point, support = posed
    shuffled = RNG(0).permutation(support)
    kept = shuffled[: len(shuffled) // 2]
    point = replace(point, coefficients=of.on_support(point.coefficients, kept))
    whole = of.steps(point).border(*of.placed(shuffled))
    nudged = point.coefficients.copy()
    for column, candidate in enumerate(shuffled):
        change = np.zeros(of.n * of.d)
        change[candidate] = 1e-4
        up, down = (replace(point, coefficients=nudged + sign * change.reshape(of.n, of.d)) for sign in (1, -1))
        slope = (of.steps(up).residual - of.steps(down).residual) / 2e-4
        np.testing.assert_allclose(whole[:, :, column], slope, rtol=1e-6, atol=1e-7)


def on_exact_states(system, t, library, substeps=1):
    """Return the steps along the exact solution of a system."""
    _, x = system.simulate(t=t)
    nodes = nodes_of([series(t, x)], substeps)
    return Steps(nodes, library, RightSide(library, system.true_coefficients(library)), x, False)


@pytest.mark.parametrize("name", ["lorenz63", "linear_oscillator", "van_der_pol", "pendulum"])
def test_steps_are_of_fourth_order_and_their_error_is_known(name):
    """Over a fixed time errors fall 16-fold when steps are halved; `truncation` is r at the exact states."""
    system = getattr(systems, name)()
    library = Polynomials(3) + Fourier(1)
    span, errors = 0.8 if name == "lorenz63" else 6.0, []
    for points in (81, 161):
        steps = on_exact_states(system, np.linspace(0, span, points), library)
        known = steps.truncation()
        assert np.linalg.norm(known - steps.residual) < 0.1 * np.linalg.norm(steps.residual)
        errors.append(np.abs(np.cumsum(steps.residual, axis=0)).max())
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.1)


def test_error_of_steps_that_are_driven():
    """x' = u − x with u = sin 3t."""
    t = np.linspace(0, 4, 41)
    x = ((np.sin(3 * t) - 3 * np.cos(3 * t)) / 10 + np.exp(-t))[:, None]
    nodes = nodes_of([series(t, x, np.sin(3 * t)[:, None])])
    library = Polynomials(1)
    steps = Steps(nodes, library, RightSide(library, np.array([[0.0, -1.0, 1.0]]), 1), x, False)
    inner = slice(3, -3)  # the spline of u is worse at its ends
    np.testing.assert_allclose(
        steps.truncation()[inner], steps.residual[inner], atol=0.15 * np.abs(steps.residual).max()
    )


# The optimum ----------------------------------------------------------------------------------------------------------


def test_band_is_the_dense_hessian(posed):
    of, point, support = posed
    linear = linearised(of, point, support)
    W, Q, R, _ = dense(linear, support)
    H = W + R.T @ Q @ R
    band = linear.band(linear.weights, linear.precisions)
    for below in range(2 * of.n):
        np.testing.assert_allclose(band[below, : len(H) - below], np.diag(H, -below), rtol=1e-12, atol=1e-12)
    assert np.all(H[np.abs(np.subtract.outer(np.arange(len(H)), np.arange(len(H)))) >= 2 * of.n] == 0)


def test_gradient_of_the_objective(posed):
    of, point, support = posed
    weights = of.weights(point)
    linear = linearised(of, point, support)

    def objective(states, values):
        coefficients = point.coefficients.copy()
        coefficients[of.placed(support)] = values
        moved = replace(point, states=states, coefficients=coefficients)
        return np.array([Linearised(of, moved, weights, support).objective])

    values = point.coefficients[of.placed(support)]
    by_states = central(lambda states: objective(states, values), point.states, 1e-3)
    by_values = central(lambda given: objective(point.states, given), values, 1e-3)
    scale = np.abs(by_states).max()
    np.testing.assert_allclose(2 * linear.gradient.ravel(), by_states[0], atol=1e-8 * scale)
    np.testing.assert_allclose(2 * linear.border[2], by_values[0], atol=1e-8 * scale)


def test_information_is_the_schur_complement(posed):
    """S = B'Q⁻¹B − B'Q⁻¹R H⁻¹ R'Q⁻¹B, b likewise, and J with the states at their best."""
    of, point, support = posed
    linear = linearised(of, point, support)
    W, Q, R, B = dense(linear, support)
    H, r, e = W + R.T @ Q @ R, linear.steps.residual.ravel(), linear.errors.ravel()
    half = W @ e + R.T @ Q @ r
    S, b, least = linear.information(support)
    cross = R.T @ Q @ B
    np.testing.assert_allclose(S, B.T @ Q @ B - cross.T @ np.linalg.solve(H, cross), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(b, B.T @ Q @ r - cross.T @ np.linalg.solve(H, half), rtol=1e-8, atol=1e-8)
    dx = -np.linalg.solve(H, half)
    assert least == pytest.approx(e @ W @ e + r @ Q @ r + 2 * half @ dx + dx @ H @ dx)
