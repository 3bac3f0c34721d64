"""The likelihood of a trajectory: steps and their derivatives, its optimum and information, and what is found on it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp, trapezoid
from scipy.interpolate import CubicSpline
from scipy.linalg import expm

from ardea.dynamics import AmbiguityWarning, Custom, Discovery, Fourier, MisfitWarning, Polynomials, systems
from ardea.dynamics.collocation import LONGEST_GAP, Fit, Point, RightSide, Steps, nodes_of
from ardea.dynamics.course import price_of
from ardea.dynamics.pursuit import Pursuit
from ardea.dynamics.series import Series
from ardea.dynamics.states import smoothed, smoothed_logarithms, state_deviations
from ardea.dynamics.trajectory import Likelihood, Linearised

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
    B = linear.steps.border(*linear.of.placed(support)).rows().reshape(steps * n, -1)
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


def test_border_along_a_change_within_an_equation_and_in_other_coordinates(posed):
    of, point, support = posed
    border, rng = of.steps(point).border(*of.placed(support)), RNG(3)
    change, rows = rng.normal(size=len(support)), border.rows()
    np.testing.assert_allclose(border.along(change), rows @ change, rtol=1e-10, atol=1e-12)
    for equation in np.unique(border.equations):
        own = rows[:, equation][:, border.equations == equation]
        np.testing.assert_allclose(border.within(equation), own, rtol=1e-10, atol=1e-12)
    weights = rng.normal(size=(len(support),) * 2) * (border.equations[:, None] == border.equations)
    np.testing.assert_allclose(border.combined(weights).rows(), rows @ weights, rtol=1e-9, atol=1e-11)


def test_border_of_absent_candidates_is_that_of_present_ones_at_zero(posed):
    """In any order, and of terms in several equations."""
    of, point, support = posed
    shuffled = RNG(0).permutation(support)
    kept = shuffled[: len(shuffled) // 2]
    point = replace(point, coefficients=of.on_support(point.coefficients, kept))
    whole = of.steps(point).border(*of.placed(shuffled)).rows()
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
    band = linear.chain.band.T
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
    _, Q, _, B = dense(linear, support)
    np.testing.assert_allclose(2 * B.T @ Q @ linear.steps.residual.ravel(), by_values[0], atol=1e-8 * scale)


def fisher(linear, support):
    A, p, least = linear.information(support)
    return A.T @ A, A.T @ p, least


def test_information_is_the_schur_complement(posed):
    """S = B'Q⁻¹B − B'Q⁻¹R H⁻¹ R'Q⁻¹B, b likewise, and J with the states at their best."""
    of, point, support = posed
    linear = linearised(of, point, support)
    W, Q, R, B = dense(linear, support)
    H, r, e = W + R.T @ Q @ R, linear.steps.residual.ravel(), linear.errors.ravel()
    half = W @ e + R.T @ Q @ r
    S, b, least = fisher(linear, support)
    cross = R.T @ Q @ B
    np.testing.assert_allclose(S, B.T @ Q @ B - cross.T @ np.linalg.solve(H, cross), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(b, B.T @ Q @ r - cross.T @ np.linalg.solve(H, half), rtol=1e-8, atol=1e-8)
    dx = -np.linalg.solve(H, half)
    assert np.sum(least) == pytest.approx(e @ W @ e + r @ Q @ r + 2 * half @ dx + dx @ H @ dx)


def test_scores_of_all_candidates_are_those_of_their_information(posed):
    """b/√S next to the support, S dense; read off 64 draws, its root has an error of 9 %."""
    of, point, support = posed
    kept = support[: len(support) // 3]
    linear = linearised(of, replace(point, coefficients=of.on_support(point.coefficients, kept)), kept)
    S, b, _ = fisher(linear, range(of.n * of.d))
    rest = np.setdiff1d(np.arange(of.n * of.d), kept)
    across = np.linalg.solve(S[np.ix_(kept, kept)], S[np.ix_(kept, rest)])
    left = S.diagonal()[rest] - np.sum(S[np.ix_(kept, rest)] * across, axis=0)
    expected = (b[rest] - across.T @ b[list(kept)]) / np.sqrt(left)
    score = linear.significance().ravel()
    known = left > 1e-6 * S.diagonal()[rest]
    assert np.all(score[list(kept)] == 0)
    np.testing.assert_allclose(score[rest][known], expected[known], rtol=4 / np.sqrt(128))
    rows = RNG(0).normal(size=(*linear.steps.residual.shape, 2))
    border = linear.steps.border(*of.placed(range(of.n * of.d))).rows()
    pulled = linear.steps.pulled_border(rows, of.d).reshape(2, -1)
    np.testing.assert_allclose(pulled, np.einsum("skc,skp->pc", border, rows), rtol=1e-10, atol=1e-12)


# Linear systems, where all is Gaussian --------------------------------------------------------------------------------

FLOW = np.array([[-0.3, 1.2], [-1.0, -0.1]])


def linear_likelihood(seed=0, rows=12, hidden=0, stretches=2):
    """Return the likelihood of noisy series of x' = FLOW x at uneven times with missing samples, and a point at it."""
    rng = RNG(seed)
    data = []
    for _ in range(stretches):
        t = np.cumsum(rng.uniform(0.1, 0.4, rows))
        x = rng.normal(size=(rows, 2)).cumsum(axis=0) * 0.2 + rng.normal(size=2)
        x[3, 0] = x[5, 1] = np.nan
        data.append(series(t, x[:, : 2 - hidden]))
    of = Likelihood(nodes_of(data, hidden=hidden), Polynomials(1))
    coefficients = np.column_stack([np.zeros(2), FLOW])
    return of, Point(of.nodes.y.copy(), coefficients, np.array([0.3, 0.2]), np.array([0.15, 0.25]))


def exact_marginal(of, point):
    """Return −2 ln p(y), mean and deviation of the states, x_1 of every stretch flat: densely, by running the steps."""
    linear = linearised(of, point, ())
    before, after = linear.steps.derivatives
    variance = np.where(linear.precisions > 0, 1 / np.where(linear.precisions > 0, linear.precisions, 1.0), 0.0)
    points, n = point.states.shape
    firsts = [0, *(np.flatnonzero(~of.nodes.joined) + 1)]
    start = np.zeros((points, n, len(firsts) * n))  # what every state has of the first ones
    driven = np.zeros((points, n, (points - 1) * n))  # and of the noise of the steps
    for i in range(points):
        if i in firsts:
            k = firsts.index(i) * n
            start[i, :, k : k + n] = np.eye(n)
        else:
            noise = np.zeros((n, (points - 1) * n))
            noise[:, (i - 1) * n : i * n] = np.eye(n)
            start[i] = np.linalg.solve(after[i - 1], -before[i - 1] @ start[i - 1])
            driven[i] = np.linalg.solve(after[i - 1], noise - before[i - 1] @ driven[i - 1])
    start, driven = start.reshape(points * n, -1), driven.reshape(points * n, -1)
    cov = (driven * variance.ravel()) @ driven.T
    seen = of.nodes.seen.ravel()
    y, s2 = of.nodes.y.ravel()[seen], np.broadcast_to(point.noise**2, of.nodes.y.shape).ravel()[seen]
    K, G = cov[np.ix_(seen, seen)] + np.diag(s2), start[seen]
    fisher = G.T @ np.linalg.solve(K, G)
    first = np.linalg.solve(fisher, G.T @ np.linalg.solve(K, y))
    left = y - G @ first
    deviance = np.linalg.slogdet(K)[1] + np.linalg.slogdet(fisher)[1] + left @ np.linalg.solve(K, left)
    gain = np.linalg.solve(K, cov[seen]).T
    mean = start @ first + gain @ left
    rest = start - gain @ G
    posterior = cov - gain @ cov[seen] + rest @ np.linalg.solve(fisher, rest.T)
    return deviance, mean.reshape(points, n), np.sqrt(posterior.diagonal()).reshape(points, n)


@pytest.mark.parametrize("hidden", [0, 1])
@pytest.mark.parametrize("stretches", [1, 2])
def test_deviance_states_and_deviations_are_those_of_the_exact_gaussian(hidden, stretches):
    """−2 ln p(y) less (samples − first states) ln 2π; so the states are those of a Rauch–Tung–Striebel smoother."""
    of, point = linear_likelihood(hidden=hidden, stretches=stretches)
    for scale in (1.0, 3.0, 0.1):  # of coefficients, s and q: what is left out depends on none
        at = Point(point.states, scale * point.coefficients, point.noise / scale, point.process * scale**2)
        best, linear = of.descended(at, (), settled=0.0)
        deviance, mean, deviation = exact_marginal(of, at)
        assert linear.deviance(at.noise) == pytest.approx(deviance, rel=1e-9)
        np.testing.assert_allclose(best.states, mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(state_deviations(linear, np.zeros((0, 0))), deviation, rtol=1e-8)


def test_deviance_at_other_noise():
    """That of the other noise, but for the states, which are still those of the first."""
    of, point = linear_likelihood()
    _, linear = of.descended(point, ())
    other = np.array([0.1, 0.4])
    moved = linearised(of, replace(linear.point, noise=other), ())
    assert linear.deviance(other) == pytest.approx(moved.deviance(other))


def test_deviations_hold_the_uncertainty_of_the_coefficients():
    """The blocks of the whole posterior of states and coefficients."""
    of, point = linear_likelihood(rows=20)
    support = (1, 2, 4, 5)
    _, linear = of.descended(point, support)
    W, Q, R, B = dense(linear, support)
    whole = np.block([[W + R.T @ Q @ R, R.T @ Q @ B], [B.T @ Q @ R, B.T @ Q @ B]])
    covariance = np.linalg.inv(fisher(linear, support)[0])
    np.testing.assert_allclose(covariance, np.linalg.inv(whole)[-4:, -4:], rtol=1e-8)
    deviation = np.sqrt(np.linalg.inv(whole).diagonal()[:-4]).reshape(-1, 2)
    np.testing.assert_allclose(state_deviations(linear, covariance), deviation, rtol=1e-8)


def test_optimum_has_no_gradient():
    of, point = linear_likelihood(rows=30)
    support = (1, 2, 4, 5)
    _, linear = of.descended(point, support)
    for _ in range(20):  # it stops where J settles, not where rounding begins
        linear = linear.moved(0.0)
    scale = np.abs(linear.weights * linear.errors).max()
    np.testing.assert_allclose(linear.gradient / scale, 0.0, atol=1e-9)
    _, Q, _, B = dense(linear, support)
    slope = B.T @ Q @ linear.steps.residual.ravel()
    np.testing.assert_allclose(slope / np.sqrt(np.diag(B.T @ Q @ B)), 0.0, atol=1e-7)


def least_over_states(of, point):
    """Return J with the states at their best, the coefficients given."""
    linear = linearised(of, point, ())
    for _ in range(6):
        linear = linear.moved(0.0)
    return linear.objective


def of_regression(problem, unit, values):
    """Return ‖Aξ − z‖² + rest."""
    left = problem.columns.matrix @ (values / unit) - problem.target
    return left @ left + problem.rest


def test_regression_on_candidates_is_the_objective_exactly_where_steps_are_linear():
    """Constants in a linear flow: r is linear in states and coefficients together."""
    of, point = linear_likelihood(rows=40)
    constants = (0, of.d)
    _, linear = of.descended(point, ())
    problem, unit = linear.problem(constants)
    for change in RNG(0).normal(size=(3, 2)):
        coefficients = linear.point.coefficients.copy()
        coefficients[:, 0] += change
        expected = least_over_states(of, replace(linear.point, coefficients=coefficients))
        assert of_regression(problem, unit, coefficients[:, 0]) == pytest.approx(expected, rel=1e-9)
    best, _ = of.descended(point, constants)
    np.testing.assert_allclose(problem.least_squares(np.arange(2))[0] * unit, best.coefficients[:, 0], rtol=1e-8)


def test_regression_on_all_candidates_is_the_objective_to_second_order():
    """Data that a flow fits: what is left out is of third order in ξ, of candidates present and absent."""
    t = np.linspace(0, 4, 41)
    x = np.array([expm(FLOW * time) @ [1.0, 0.5] for time in t])
    of = Likelihood(nodes_of([series(t, x)]), Polynomials(2))
    coefficients = np.zeros((2, of.d))
    coefficients[:, 1:3] = FLOW
    point = Point(x, coefficients, np.full(2, 0.1), np.full(2, 0.02))
    linear = linearised(of, point, (1, 2, of.d + 1, of.d + 2))
    problem, unit = linear.problem(tuple(range(2 * of.d)))
    direction = RNG(0).normal(size=(2, of.d))

    def left_out(size):
        values = coefficients + size * direction
        least = least_over_states(of, replace(point, coefficients=values))
        return (least - of_regression(problem, unit, values.ravel())) / least

    sizes = 2.0 ** -np.arange(4, 8)
    wrong = np.array([left_out(size) for size in sizes])
    np.testing.assert_allclose(wrong[1:] / wrong[:-1], 0.5, rtol=0.15)  # of first order, relative to J


@pytest.mark.parametrize("seed", range(3))
def test_least_squares_on_the_support_give_the_fit_back(seed):
    of, point = linear_likelihood(seed, rows=40)
    support = np.array([1, 2, 4, 5])
    _, linear = of.descended(point, tuple(support))
    for _ in range(20):
        linear = linear.moved(0.0)
    problem, unit = linear.problem(tuple(range(6)))
    fitted = problem.least_squares(support)[0] * unit[support]
    np.testing.assert_allclose(fitted, linear.point.coefficients.ravel()[support], rtol=1e-7)


# Noise of samples and of the process ----------------------------------------------------------------------------------


def driven(seed=0, rows=400, step=0.1, q=0.2, s=0.1):
    """Return noisy samples of dx = FLOW x dt + q dW."""
    rng = RNG(seed)
    passed = expm(FLOW * step)
    nearby = [expm(FLOW * step * (i + 0.5) / 8) for i in range(8)]
    root = np.linalg.cholesky(q**2 * step * sum(one @ one.T for one in nearby) / 8)
    x = np.zeros((rows, 2))
    for i in range(1, rows):
        x[i] = passed @ x[i - 1] + root @ rng.normal(size=2)
    return step * np.arange(rows), x + s * rng.normal(size=x.shape)


def around(of, point, support, step=0.05):
    """Return slope and curvature of the deviance by (ln s, ln q), by differences."""
    n = of.n

    def deviance(change):
        at = replace(point, noise=point.noise * np.exp(change[:n]), process=point.process * np.exp(change[n:]))
        return of.descended(at, support)[1].deviance(at.noise)

    units, here = step * np.eye(2 * n), deviance(np.zeros(2 * n))
    up, down = (np.array([deviance(sign * unit) for unit in units]) for sign in (1, -1))
    both = np.array([[deviance(one + other) for other in units] for one in units])
    curvature = (both - up[:, None] - up[None, :] + here) / step**2
    np.fill_diagonal(curvature, (up + down - 2 * here) / step**2)
    return (up - down) / (2 * step), curvature


def test_learned_noise_is_a_stationary_point_of_the_deviance():
    """With the coefficients known, s and q found by MacKay's rule make the exact deviance least."""
    t, y = driven()
    of = Likelihood(nodes_of([series(t, y)]), Polynomials(1), fixed=FLOW)
    point = Point(y, np.zeros((2, 3)), np.full(2, 0.2), np.full(2, 0.2))
    for _ in range(30):
        point = of.learned((), point, rounds=2).point

    slope, curvature = around(of, point, ())
    errors = np.sqrt(np.linalg.inv(curvature / 2).diagonal())
    np.testing.assert_allclose(np.linalg.solve(curvature, slope) / errors, 0.0, atol=0.1)


def test_fits_without_noise_of_the_process_forget_its_tilt():
    of, point = linear_likelihood(0, rows=40)
    support, levels = (1, 2, 4, 5), of.ladder(point.states, point.noise)
    plain, tilted = (of.fitted(support, replace(point, tilt=tilt), levels) for tilt in (None, np.full((2, 3), 50.0)))
    assert np.array_equal(plain.point.coefficients, tilted.point.coefficients)
    assert tilted.point.tilt is None


def test_noise_is_learned_to_the_end():
    """Also where the samples are much better than the steps, and the first guess of their noise is far too large."""
    t, y = driven(seed=4, rows=500, s=0.01)
    nodes = nodes_of([series(t, y)])
    of = Likelihood(nodes, Polynomials(1), fixed=FLOW)
    fit = of.learned((), Point(smoothed(nodes), np.zeros((2, 3)), np.full(2, 0.05), np.full(2, 0.05)))
    last = fit
    for _ in range(30):
        last = of.learned((), last.point, rounds=2)
    assert fit.deviance < last.deviance + 1.0


# Nodes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("substeps", [1, 2, 5])
def test_nodes_hold_every_sample_at_its_time(substeps):
    """Uneven times, a lost row, a state lost in one row, and a gap too long to bridge."""
    rng = RNG(0)
    t = np.cumsum(rng.uniform(0.8, 1.2, 40))
    t[12:] += 3.1
    t[30:] += LONGEST_GAP + 2
    x = rng.normal(size=(40, 2))
    x[5] = np.nan
    x[20, 1] = np.nan
    nodes = nodes_of([series(t, x), series(t, x)], substeps)
    for state in range(2):
        seen, known = nodes.seen[:, state], np.isfinite(x[:, state])
        np.testing.assert_array_equal(nodes.t[seen], np.tile(t[known], 2))
        np.testing.assert_array_equal(nodes.y[seen, state], np.tile(x[known, state], 2))
    np.testing.assert_array_equal(nodes.counts, 2 * np.isfinite(x).sum(axis=0))
    assert np.sum(~nodes.joined) == 3  # the gap of either, and the end of the first
    steps = np.diff(nodes.t)[nodes.joined]
    assert steps.min() > 0.6 / substeps
    assert steps.max() < 1.5 / substeps
    assert nodes.usual_step == pytest.approx(steps.mean())


def test_rows_of_nan_are_rows_left_out():
    rng = RNG(1)
    t, x = 0.1 * np.arange(60), rng.normal(size=(60, 2))
    lost = [0, 7, 8, 20, 59]
    holes, u = x.copy(), rng.normal(size=(60, 1))
    holes[lost] = np.nan
    known = np.delete(np.arange(60), lost)
    with_nan, without = nodes_of([series(t, holes)]), nodes_of([series(t[known], x[known])])
    for name in ("t", "y", "seen", "joined"):
        np.testing.assert_array_equal(getattr(with_nan, name), getattr(without, name))
    assert nodes_of([series(t, holes, u)]).inputs.shape == (len(with_nan.t), 1)


def test_inputs_are_interpolated_between_samples():
    t = np.linspace(0, 2, 41)
    u = np.sin(2 * t)[:, None]
    u[[3, 17]] = np.nan
    nodes = nodes_of([series(t, np.cos(t)[:, None], u)], substeps=3)
    np.testing.assert_allclose(nodes.inputs[:, 0], np.sin(2 * nodes.t), atol=2e-5)
    middle = (nodes.t[1:] + nodes.t[:-1]) / 2
    np.testing.assert_allclose(nodes.middle_inputs[:, 0], np.sin(2 * middle), atol=2e-5)


def test_states_without_samples_begin_as_rates_of_change():
    t = np.linspace(0, 6, 121)
    nodes = nodes_of([series(t, np.sin(t)[:, None])], substeps=2, hidden=1)
    assert not nodes.seen[:, 1].any()
    first = smoothed(nodes, hidden=1)
    np.testing.assert_allclose(first[:, 0], np.sin(nodes.t), atol=1e-4)
    np.testing.assert_allclose(first[:, 1], np.cos(nodes.t), atol=1e-2)


@pytest.mark.parametrize("rows", [2, 3, 5, 30])
def test_first_states_of_few_samples(rows):
    """Also of a state that was seen once, or never."""
    t = np.linspace(0, 1, rows)
    x = np.column_stack([1 + 2 * t, np.full(rows, np.nan), np.full(rows, np.nan)])
    x[rows // 2, 1] = 4.0
    first = smoothed(nodes_of([series(t, x)] * 4))
    np.testing.assert_allclose(first[:, 0], np.tile(1 + 2 * t, 4), atol=1e-6)
    np.testing.assert_array_equal(first[:, 1], 4.0)
    np.testing.assert_array_equal(first[:, 2], 0.0)


def test_steps_of_a_map_are_those_of_its_time():
    """Also where more than half of the rows are lost."""
    t = np.arange(30.0)
    x = np.full((30, 1), np.nan)
    x[::2] = 1.0
    x[1] = 1.0
    nodes = nodes_of([series(t, x)], discrete_time=True)
    np.testing.assert_array_equal(np.diff(nodes.t), 1.0)


# Several series, gaps, units ------------------------------------------------------------------------------------------


def test_a_single_zero_hides_no_decades():
    t = np.linspace(0, 6, 40)
    x = np.exp(np.column_stack([2 * t, t]))
    x[0, 0] = 0.0
    nodes = nodes_of([series(t, x)])
    np.testing.assert_allclose(nodes.decades, np.log10([np.exp(12 - 2 * t[1]), np.exp(6)]))
    found = smoothed_logarithms(nodes, nodes.decades > 2, False)
    np.testing.assert_allclose(found[1:, 0], x[1:, 0], rtol=1e-6)
    assert found[0, 0] > 0


def test_functions_of_positive_states_are_never_asked_of_what_lies_between_two_series():
    t, library = np.linspace(0, 50, 6), Custom([np.log], ["log({})"])
    runs = [series(t, np.linspace(first, last, 6)[:, None]) for first, last in ((9, 0.1), (4, 0.2))]
    of = Likelihood(nodes_of(runs), Polynomials(1) + library)
    point = Point(of.nodes.y, np.array([[0.0, 5.0, 0.0]]), np.full(1, 0.1), np.full(1, 0.1))
    assert of.steps(point).middles.min() > 0
    assert of.linearised(point, (1,)).problem((0, 1, 2)) is not None


def test_several_series_are_blocks_in_any_order():
    """Deviance, information and score add up over series, whatever their order."""
    t, y = driven(rows=60)
    pieces = [series(t[:20], y[:20]), series(t[20:45], y[20:45]), series(t[45:], y[45:])]
    coefficients = np.column_stack([np.zeros(2), FLOW])
    everything = tuple(range(6))

    def read(parts):
        of = Likelihood(nodes_of(parts), Polynomials(1))
        point = Point(of.nodes.y, coefficients, np.array([0.1, 0.2]), np.array([0.05, 0.1]))
        linear = of.descended(point, ())[1]
        return [linear.deviance(point.noise), *fisher(linear, everything)]

    alone = [read([one]) for one in pieces]
    for parts in (pieces, pieces[::-1]):
        for got, expected in zip(read(parts), map(sum, zip(*alone, strict=True)), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_states_never_seen_and_states_seen_now_and_then():
    """Of the exact Gaussian too: a state that no sample shows, and a state sampled at every third time."""
    of, point = linear_likelihood(rows=15, stretches=1)
    y, seen = of.nodes.y.copy(), of.nodes.seen.copy()
    seen[:, 1] &= np.arange(len(y)) % 3 == 0
    thinned = Likelihood(replace(of.nodes, y=np.where(seen, y, 0.0), seen=seen), Polynomials(1))
    best, linear = thinned.descended(point, ())
    deviance, mean, deviation = exact_marginal(thinned, point)
    assert linear.deviance(point.noise) == pytest.approx(deviance, rel=1e-9)
    np.testing.assert_allclose(best.states, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(state_deviations(linear, np.zeros((0, 0))), deviation, rtol=1e-8)


# At the Cramér–Rao bound ----------------------------------------------------------------------------------------------


def test_estimates_reach_the_bound_and_their_errors_are_standard_normal():
    """Lorenz 63, 5 % noise, true support: t of −y in y' at the truth is 50.8, and so it is reported."""
    library, system = Polynomials(2), systems.lorenz63()
    t = 0.01 * np.arange(1000)
    _, x = system.simulate([-8.0, 8.0, 27.0], t)
    truth, noise = system.true_coefficients(library), np.full(3, 0.05 * x.std())
    support = tuple(np.flatnonzero(truth).tolist())
    weakest = support.index(library.n_terms(3) + 2)
    distances = []
    for seed in range(4):
        nodes = nodes_of([series(t, x + noise * RNG(seed).normal(size=x.shape))])
        of, start = Likelihood(nodes, library), smoothed(nodes)
        point = of.fitted(support, Point(start, truth, noise, noise), of.ladder(start, noise)).point
        information = fisher(linearised(of, point, support), support)[0]
        bound = 1 / np.sqrt(np.linalg.inv(information)[weakest, weakest])
        assert bound == pytest.approx(50.8, rel=0.03)
        np.testing.assert_allclose(point.noise, noise, rtol=0.1)
        error = (point.coefficients - truth).ravel()[list(support)]
        distances.append(error @ information @ error)
    assert stats.chi2.ppf(5e-4, 28) < sum(distances) < stats.chi2.isf(5e-4, 28)
    exact = replace(point, states=x, coefficients=truth, noise=noise)
    information = fisher(linearised(of, exact, support), support)[0]
    assert 1 / np.sqrt(np.linalg.inv(information)[weakest, weakest]) == pytest.approx(50.8, rel=5e-3)


# Search ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_candidates", [10, 1000])
def test_price_of_a_term(n_candidates):
    """With many samples the square of the normal quantile; less is paid where more false terms are allowed."""
    expected = stats.norm.isf(0.02 / n_candidates / 2) ** 2
    assert price_of(0.02, n_candidates, 1e9) == pytest.approx(expected, rel=1e-5)
    prices = [price_of(false_terms, n_candidates, 200.0) for false_terms in (1e-300, 1e-12, 0.02, 1.0, n_candidates)]
    assert np.all(np.diff(prices) < 0)
    assert np.all(np.isfinite(prices))
    assert prices[-1] == pytest.approx(0.0, abs=1e-12)
    assert price_of(2.0 * n_candidates, n_candidates, 200.0) == prices[-1]
    assert price_of(0.02, 2 * n_candidates, 200.0) == pytest.approx(price_of(0.01, n_candidates, 200.0))


@pytest.mark.parametrize("promised", [False, True])
def test_ties_go_to_the_simpler_model_but_no_promise_is_tightened_by_them(promised):
    """A part of the best model is simpler, too; yet where false terms are promised, a term pays its price alone."""
    t = 0.1 * np.arange(40)
    of = Likelihood(nodes_of([series(t, np.sin(t)[:, None])], 1), Polynomials(3))
    point = Point(np.sin(t)[:, None], np.zeros((1, 4)), np.ones(1), np.ones(1))
    pursuit = Pursuit(of, point, [], 4.0, lambda problem, unit: [], (0, 1, 2, 3), promised)
    best, part, other = Fit((1, 3), point, 0.0), Fit((1,), point, 6.0), Fit((0, 2), point, 2.0)
    assert pursuit.chosen([best, part]) is (best if promised else part)
    assert pursuit.chosen([best, other]) is other
    assert pursuit.chosen([best, replace(part, deviance=8.0), replace(other, deviance=4.0)]) is best


def terms_of(model):
    return [set(equation.terms) for equation in model.equations_]


def distances_of(model, truth):
    """Return the errors of the coefficients in standard errors."""
    return (model.coef_ - truth)[model.coef_std_ > 0] / model.coef_std_[model.coef_std_ > 0]


LORENZ = [{"x", "y"}, {"x", "y", "x z"}, {"z", "x y"}]


@pytest.fixture(scope="module")
def lorenz():
    return systems.lorenz63().noisy(0.02, seed=3, t=0.03 * np.arange(200))


@pytest.fixture(scope="module")
def found(lorenz):
    t, x = lorenz
    return Discovery(Polynomials(2)).fit(x, t, feature_names=["x", "y", "z"])


def test_lorenz_needs_no_noise_of_the_process(found):
    assert terms_of(found) == LORENZ
    np.testing.assert_array_equal(found.process_noise_, 0.0)
    assert np.all(found.misfit_ < 1.5)
    assert found.rows_used_ == 200
    assert np.abs(distances_of(found, systems.lorenz63().true_coefficients(Polynomials(2)))).max() < 4


@pytest.mark.parametrize(("size", "duration"), [(1000.0, 1.0), (1e-6, 1e3)])
def test_units_do_not_matter(lorenz, found, size, duration):
    t, x = lorenz
    model = Discovery(Polynomials(2)).fit(size * x, duration * t, feature_names=["x", "y", "z"])
    assert terms_of(model) == LORENZ
    degree = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    unit = size ** (1.0 - degree) / duration
    np.testing.assert_allclose(model.coef_ / unit, found.coef_, rtol=1e-4)
    np.testing.assert_allclose(model.coef_std_ / unit, found.coef_std_, rtol=1e-3)


def test_series_in_any_order():
    rng = RNG(5)
    starts = systems.lorenz63().simulate(t=0.7 * np.arange(8))[1]
    t = 0.03 * np.arange(30)
    runs = [systems.lorenz63().simulate(start, t)[1] for start in starts]
    runs = [x + 0.1 * rng.normal(size=x.shape) for x in runs]
    one, other = (
        Discovery(Polynomials(2)).fit(some, [t] * 8, feature_names=["x", "y", "z"]) for some in (runs, runs[::-1])
    )
    assert terms_of(one) == LORENZ
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-4)
    np.testing.assert_allclose(one.coef_std_, other.coef_std_, rtol=1e-3)


def test_missing_samples_and_uneven_times():
    rng = RNG(2)
    t = np.cumsum(rng.uniform(0.6, 1.4, 250) * 0.03)
    _, x = systems.lorenz63().simulate(t=t - t[0])
    x += 0.01 * x.std() * rng.normal(size=x.shape)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[[40, 41, 100]] = np.nan
    with_nan = Discovery(Polynomials(2)).fit(x, t, feature_names=["x", "y", "z"])
    assert terms_of(with_nan) == LORENZ
    assert np.abs(distances_of(with_nan, systems.lorenz63().true_coefficients(Polynomials(2)))).max() < 4
    known = np.any(np.isfinite(x), axis=1)
    without = Discovery(Polynomials(2)).fit(x[known], t[known], feature_names=["x", "y", "z"])
    np.testing.assert_array_equal(with_nan.coef_, without.coef_)
    assert with_nan.rows_used_ == without.rows_used_ == known.sum()


def test_states_sampled_on_different_clocks():
    """No row has both states."""
    t, x = systems.van_der_pol().noisy(0.01, seed=1)
    x[::2, 0] = np.nan
    x[1::2, 1] = np.nan
    model = Discovery(Polynomials(3)).fit(x, t, feature_names=["x", "v"])
    assert terms_of(model) == [{"v"}, {"x", "v", "x^2 v"}]


def test_equation_of_second_order_from_positions_alone():
    """Duffing's equation at 1 % noise."""
    truth = {"x": 1.0, "x^3": -1.0, "x'": -0.2}
    t = np.linspace(0, 25, 500)
    run = solve_ivp(lambda _, z: [z[1], z[0] - z[0] ** 3 - 0.2 * z[1]], (0, 25), [0.5, 1.0], t_eval=t, rtol=1e-9)
    x = run.y[:1].T
    x = x + 0.01 * x.std() * RNG(0).normal(size=x.shape)
    model = Discovery(Polynomials(3), derivative_order=2).fit(x, t, feature_names=["x"])
    assert terms_of(model) == [set(truth)]
    names = model.get_feature_names()
    expected = np.array([[truth.get(name, 0.0) for name in names]])
    assert np.abs(distances_of(model, expected)).max() < 4
    told = Discovery(Polynomials(3), derivative_order=2, noise_std=0.01 * x.std()).fit(x, t, feature_names=["x"])
    np.testing.assert_allclose(told.coef_, model.coef_, rtol=0.02)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 7))])
def test_noise_of_the_process_is_recognised(seed):
    """dx = FLOW x dt + 0.2 dW, sampled with noise of about the same size as what a step adds."""
    t, y = driven(seed, rows=500, q=0.2, s=0.05)
    with pytest.warns(MisfitWarning, match="do not follow the equations exactly"):
        model = Discovery(Polynomials(2)).fit(y, t, feature_names=["x", "y"])
    of, fit = model.searched_.likelihood, model.searched_.fit
    _, curvature = around(of, fit.point, fit.support)
    errors = np.sqrt(np.linalg.inv(curvature / 2).diagonal())[2:]
    assert np.all(np.abs(np.log(model.process_noise_ / 0.2)) < 4 * errors)
    # −0.3 x and −0.1 y are 3.7 and 1.2 standard errors at the truth: they may be missed.
    assert [terms - own for terms, own in zip(terms_of(model), ({"x"}, {"y"}), strict=True)] == [{"y"}, {"x"}]
    truth = np.zeros((2, 6))
    truth[:, 1:3] = FLOW
    assert np.abs(distances_of(model, truth)).max() < 4
    with pytest.raises(ValueError, match="states themselves are noisy"):
        model.inclusion()
    # No rival without a term of many standard errors is close.
    for equation in model.equations_:
        sure = {
            term for term, t in zip(equation.terms, equation.coefficients / equation.std, strict=True) if abs(t) > 8
        }
        assert all(sure <= set(rival.terms) for rival in equation.rivals if rival.excess < 6)


def test_coefficients_are_unbiased_where_the_process_is_noisy():
    """At the true s and q; the mean of ten errors in standard errors is within four of its own."""
    errors = []
    for seed in range(10):
        t, y = driven(100 + seed, rows=500, q=0.2, s=0.05)
        of = Likelihood(nodes_of([series(t, y)]), Polynomials(1))
        start = Point(y, np.column_stack([np.zeros(2), FLOW]), np.full(2, 0.05), np.full(2, 0.2 * np.sqrt(0.1)))
        best = of.held((1, 2, 4, 5), start).point
        linear = Linearised(of, best, of.weights(best), (1, 2, 4, 5))
        deviations = np.sqrt(np.linalg.inv(fisher(linear, (1, 2, 4, 5))[0]).diagonal())
        errors.append((best.coefficients[:, 1:] - FLOW).ravel() / deviations)
    assert np.all(np.abs(np.mean(errors, axis=0)) < 4 / np.sqrt(10))


def test_noise_of_the_process_is_that_of_the_steps_where_samples_are_exact():
    t, y = driven(seed=2, rows=500, q=0.2, s=0.0)
    of = Likelihood(nodes_of([series(t, y)]), Polynomials(1), told=np.full(2, 1e-3))
    support = (1, 2, 4, 5)
    start = Point(y, np.column_stack([np.zeros(2), FLOW]), np.full(2, 1e-3), np.full(2, 0.3))
    fit = of.learned(support, start)
    np.testing.assert_allclose(fit.point.process / np.sqrt(0.1), 0.2, rtol=4 / np.sqrt(2 * 500))


def test_candidates_that_do_not_fit_are_told():
    t = np.linspace(0, 6, 200)
    run = solve_ivp(lambda _, z: -np.sin(3 * z), (0, 6), [1.0], t_eval=t, rtol=1e-9)
    x = run.y.T + 0.002 * RNG(0).normal(size=(200, 1))
    with pytest.warns(MisfitWarning) as caught:
        Discovery(Polynomials(1)).fit(x, t)
    assert any("do not follow the equations" in str(one.message) for one in caught)


def test_twenty_rows_of_a_circle():
    t = np.linspace(0, 6, 20)
    worst = []
    for seed in range(2):
        x = np.column_stack([np.cos(t), -np.sin(t)]) + 0.02 * RNG(seed).normal(size=(20, 2))
        model = Discovery(Polynomials(2)).fit(x, t, feature_names=["x", "y"])
        assert terms_of(model) == [{"y"}, {"x"}]
        truth = np.zeros((2, 6))
        truth[0, 2], truth[1, 1] = 1.0, -1.0
        worst.append(np.abs(distances_of(model, truth)).max())
    assert max(worst) < 3.5


# What strangers brought


@pytest.mark.parametrize("offset", [10, 100])
def test_an_offset_hides_no_terms_that_are_needed_together(offset):
    """v' = 4 offset − 4 x − 0.3 v: neither the constant nor x explains anything alone."""
    t = np.linspace(0, 10, 200)
    w, decay = np.sqrt(4 - 0.15**2), np.exp(-0.15 * t)
    x = np.column_stack([decay * np.cos(w * t), decay * (-0.15 * np.cos(w * t) - w * np.sin(w * t))])
    x = x + 0.01 * RNG(0).normal(size=x.shape) + [offset, 0]
    model = Discovery(Polynomials(1)).fit(x, t, feature_names=["x", "v"])
    assert terms_of(model) == [{"v"}, {"1", "x", "v"}]
    assert np.abs(distances_of(model, np.array([[0, 0, 1.0], [4.0 * offset, -4, -0.3]]))).max() < 4


def test_the_noise_of_counts_is_told_from_others():
    """Lotka and Volterra, counted; of equal size; of a tenth."""
    t, rng = np.linspace(0, 20, 200), RNG(3)
    flow = lambda _, x: [0.9 * x[0] - 0.012 * x[0] * x[1], -0.7 * x[1] + 0.006 * x[0] * x[1]]  # noqa: E731
    x = solve_ivp(flow, (0, 20), [300, 20], t_eval=t, rtol=1e-9, atol=1e-9).y.T
    for kind, y in {
        "counts": rng.poisson(x).astype(float),
        "additive": x + 5 * rng.normal(size=x.shape),
        "proportional": x * (1 + 0.1 * rng.normal(size=x.shape)),
    }.items():
        model = Discovery().fit(y, t, feature_names=["n", "p"])
        assert (model.noise_kind_, terms_of(model)) == (kind, [{"n", "n p"}, {"p", "n p"}])
        told = Discovery(noise=kind).fit(y, t, feature_names=["n", "p"])
        np.testing.assert_allclose(told.coef_, model.coef_, rtol=2e-2)


def test_few_counts_are_searched_with_the_noise_of_counts():
    """A radioactive chain: with additive noise, products of both states fit better than the truth does."""
    t = np.arange(25.0)
    parent = 900 * np.exp(-0.25 * t)
    child = 50 * np.exp(-0.1 * t) + 900 * 0.25 / (0.1 - 0.25) * (np.exp(-0.25 * t) - np.exp(-0.1 * t))
    x = RNG(105).poisson(np.column_stack([parent, child])).astype(float)
    model = Discovery().fit(x, t, feature_names=["A", "B"])
    assert (model.noise_kind_, terms_of(model)) == ("counts", [{"A"}, {"A", "B"}])


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_an_input_that_follows_a_wave_may_be_held_too(held, seed):
    """level′ = −0.08 level + pump, set anew every hour around a wave, or smooth: neighbours correlated by 0.6."""
    rng, t = np.random.default_rng(seed), np.arange(96.0)
    waves, phases = rng.uniform(0.3, 1.2, 3), rng.uniform(0, 6, 3)
    pump = np.clip(2 + np.sin(t / 5) + 0.5 * rng.normal(size=96), 0, None).round(1)
    if not held:
        pump = 2 + np.sin(np.outer(t, waves) + phases).sum(axis=1) / 2
    level = np.full(96, 25.0)
    fine = np.linspace(0, 1, 201)
    for k in range(95):
        of = np.full(201, pump[k]) if held else 2 + np.sin(np.outer(k + fine, waves) + phases).sum(axis=1) / 2
        level[k + 1] = level[k] * np.exp(-0.08) + trapezoid(np.exp(-0.08 * (1 - fine)) * of, fine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Discovery().fit(level + 0.2 * rng.normal(size=96), t, u=pump, feature_names=["level"])
    assert model.model_.held == ((0,) if held else ())
    assert model.equations_[0].terms == ("level", "u0")
    np.testing.assert_allclose(model.equations_[0].coefficients, [-0.08, 1.0], rtol=0.1)


def test_an_input_that_jumps_at_every_sample_is_held_where_the_data_say_so():
    """v' = −0.6 v + 1.5 u, u held for each half of a unit, or smooth in between."""
    t, rng = np.arange(0, 40, 0.5), RNG(0)
    u, a = rng.uniform(0, 2, 80), np.exp(-0.3)
    v = np.zeros(80)
    for i in range(79):
        v[i + 1] = v[i] * a + u[i] * 2.5 * (1 - a)
    model = Discovery(Polynomials(1)).fit(v + 0.03 * rng.normal(size=80), t, u=u, feature_names=["v", "u"])
    assert model.model_.held == (0,)
    assert np.abs(distances_of(model, np.array([[0, -0.6, 1.5]]))).max() < 4
    smooth = CubicSpline(t, u)
    run = solve_ivp(lambda s, y: -0.6 * y + 1.5 * smooth(s), (0, 40), [0.0], t_eval=t, rtol=1e-9, atol=1e-9).y[0]
    model = Discovery(Polynomials(1)).fit(run + 0.03 * rng.normal(size=80), t, u=u, feature_names=["v", "u"])
    assert model.model_.held == ()
    assert np.abs(distances_of(model, np.array([[0, -0.6, 1.5]]))).max() < 4


@pytest.mark.parametrize("top", [1e5, 1e9])
@pytest.mark.parametrize("kind", ["auto", "proportional"])
def test_small_states_count_as_much_as_large_ones_where_noise_is_in_proportion(kind, top):
    """N' = (−0.3 + u)N is a broken line in the logarithm, whose slopes least squares knows as well.

    The intervals are those of that regression up to the square of 5 %, whatever sizes N goes through.
    """
    growing = np.log(top / 50) / 0.7
    t = np.linspace(0, 10 + growing, 100)
    u = (t >= 10).astype(float)
    change = np.clip(t - t[np.argmax(u)], 0, None)
    x = np.exp(np.log(1000) - 0.3 * t + change + 0.05 * RNG(0).normal(size=100))
    model = Discovery(Polynomials(2), noise=kind).fit(x, t, u=u, feature_names=["N", "u"])
    (equation,) = model.equations_
    assert (model.noise_kind_, set(equation.terms)) == ("proportional", {"N", "N u"})
    assert not model.warnings_
    lines = np.column_stack([np.ones(100), t, change])
    slopes, (rss,) = np.linalg.lstsq(lines, np.log(x), rcond=None)[:2]
    std = np.sqrt(np.linalg.inv(lines.T @ lines).diagonal() * rss / 97)
    np.testing.assert_allclose(equation.std, std[1:], rtol=0.1)
    assert np.abs(equation.coefficients - slopes[1:]).max() < std.max() / 2


@pytest.mark.filterwarnings("ignore::ardea.dynamics.AmbiguityWarning")
def test_noise_of_five_percent_is_five_percent_of_small_states_too():
    """x' = −x over five decades: s² has the spread of χ² with 200 degrees of freedom, four deviations at most."""
    t = np.linspace(0, 12, 200)
    x = np.exp(-t)[:, None] * (1 + 0.05 * RNG(0).normal(size=(200, 1)))
    model = Discovery(Polynomials(2), noise="proportional").fit(x, t)
    assert terms_of(model) == [{"x0"}]
    usual = 0.05 * np.sqrt(np.mean(np.exp(-2 * t)))
    assert abs(model.equations_[0].noise / usual - 1) < 4 / np.sqrt(2 * 200)


def test_positions_with_little_noise_need_no_noise_of_the_process():
    """A damped oscillator: rates have no samples, so that nothing but the position says how exactly they hold."""
    t = np.arange(0, 20, 0.1)
    x = np.array([60 * expm(np.array([[0.0, 1], [-4, -0.1]]) * s)[0, 0] for s in t]) + 0.2 * RNG(101).normal(size=200)
    model = Discovery(Polynomials(1), derivative_order=2).fit(x, t)
    assert terms_of(model) == [{"x0", "x0'"}]
    assert not np.any(model.process_noise_)


@pytest.mark.filterwarnings("ignore::ardea.dynamics.AmbiguityWarning")
def test_states_far_from_zero_keep_their_digits():
    """x' = y − 1000, y' = 1000 − x: powers of x and y differ from straight lines by a millionth."""
    t = np.linspace(0, 20, 300)
    x = 1000 + 2 * np.column_stack([np.cos(t), -np.sin(t)])
    assert terms_of(Discovery(Polynomials(2)).fit(x, t, feature_names=["x", "y"])) == [{"1", "y"}, {"1", "x"}]
    noisy = Discovery(Polynomials(2)).fit(x + 0.02 * RNG(1).normal(size=x.shape), t, feature_names=["x", "y"])
    for equation, truth in zip(noisy.equations_, [{"1", "y"}, {"1", "x"}], strict=True):
        assert truth in [set(equation.terms), *(set(rival.terms) for rival in equation.rivals)]


def test_products_do_not_stand_in_for_straight_lines():
    """A ring of six states, cubic candidates."""
    t, k = np.linspace(0, 20, 300), np.linspace(0.3, 1.5, 6)
    flow = np.diag(k[:5], -1) - np.diag(k)
    flow[0, 5] = 0.5
    x = solve_ivp(lambda _, x: flow @ x, (0, 20), [5.0, 0, 0, 3, 0, 0], t_eval=t, rtol=1e-9, atol=1e-9).y.T
    model = Discovery().fit(x + 0.02 * RNG(1).normal(size=x.shape), t, feature_names=list("abcdef"))
    assert terms_of(model) == [{"a", "f"}, {"a", "b"}, {"b", "c"}, {"c", "d"}, {"d", "e"}, {"e", "f"}]


def test_equations_that_say_nothing_or_expand_something_else_are_told():
    """A state that follows another a hundred times faster than the samples; a fraction among cubic candidates."""
    t, rng = np.linspace(0, 20, 400), RNG(0)
    flow = lambda _, x: [-0.2 * x[0] + 0.1 * x[1], 500 * (x[0] ** 2 - x[1])]  # noqa: E731
    x = solve_ivp(flow, (0, 20), [1.5, 0.0], t_eval=t, rtol=1e-9, atol=1e-10, method="Radau").y.T
    with warnings.catch_warnings(action="ignore"):
        fast = Discovery().fit(x + 0.01 * rng.normal(size=x.shape), t, feature_names=["x", "y"])
    assert any("No coefficient of (y)' is known" in text for text in fast.warnings_)
    t = np.linspace(0, 30, 300)

    def holling(_, x):
        eaten = x[0] * x[1] / (1 + 0.8 * x[0])
        return [x[0] * (1 - x[0] / 5) - eaten, -0.3 * x[1] + 0.6 * eaten]

    x = solve_ivp(holling, (0, 30), [2.0, 0.5], t_eval=t, rtol=1e-9, atol=1e-10).y.T
    with warnings.catch_warnings(action="ignore"):
        fraction = Discovery().fit(x * (1 + 0.03 * RNG(1).normal(size=x.shape)), t, feature_names=["x", "y"])
    assert any("of 10 candidates: most likely they stand in" in text for text in fraction.warnings_)
    t, rng = np.linspace(0, 10, 30), RNG(0)
    runs = [
        solve_ivp(lambda _, x: -0.5 * x * np.log(x / 5), (0, 10), [start], t_eval=t, rtol=1e-9).y.T
        for start in (0.05, 0.3, 8.0)
    ]
    with pytest.warns(MisfitWarning, match="has 4 of 4 candidates"):
        Discovery().fit([x + 0.06 * rng.normal(size=x.shape) for x in runs], [t] * 3)


def test_a_chain_of_reactions_is_told_from_its_stand_ins():
    t, rates = np.linspace(0, 12, 300), np.array([0.5, 0.4, 0.6, 0.3, 0.5, 0.2])
    flow = np.diag(rates[:5], -1) - np.diag(rates)
    run = solve_ivp(lambda _, x: flow @ x, (0, 12), [5.0, 0, 0, 0, 0, 0], t_eval=t, rtol=1e-9, atol=1e-9)
    model = Discovery(Polynomials(2)).fit(
        run.y.T + 0.02 * RNG(0).normal(size=(300, 6)), t, feature_names=list("abcdef")
    )
    assert terms_of(model) == [{"a"}, {"a", "b"}, {"b", "c"}, {"c", "d"}, {"d", "e"}, {"e", "f"}]


@pytest.mark.parametrize("seed", [1026, 1039])
def test_a_dozen_short_experiments(seed):
    rng, t = RNG(seed), np.linspace(0, 3, 15)

    def rates(_, x):
        return [1.2 * x[0] - 0.3 * x[0] ** 2 - 0.6 * x[0] * x[1], -0.5 * x[1] + 0.3 * x[0] * x[1]]

    runs = [solve_ivp(rates, (0, 3), rng.uniform(0.5, 3, 2), t_eval=t, rtol=1e-9, atol=1e-9).y.T for _ in range(12)]
    x = [run + 0.03 * rng.normal(size=(15, 2)) for run in runs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguityWarning)
        warnings.simplefilter("ignore", MisfitWarning)
        model = Discovery().fit(x, [t] * 12, feature_names=["n", "p"])
    assert terms_of(model) == [{"n", "n^2", "n p"}, {"p", "n p"}]


def test_a_state_that_is_zero_is_said_to_be_a_fixed_point():
    with pytest.warns(AmbiguityWarning, match="fixed point"):
        Discovery().fit(np.zeros((50, 1)), 0.1)


def test_an_input_that_switches_is_held_between_samples():
    """x' = −x + u with u of zeros and ones is known in closed form; so are its coefficients, within their intervals."""
    rng, h, rows = RNG(3), 0.1, 200
    t, u = h * np.arange(rows), np.repeat(rng.integers(0, 2, rows // 10), 10).astype(float)
    x = np.empty((rows, 1))
    x[0] = 0.5
    for i in range(rows - 1):
        x[i + 1] = u[i] + (x[i] - u[i]) * np.exp(-h)
    y = x + 0.002 * rng.normal(size=x.shape)
    model = Discovery(Polynomials(2)).fit(y, t, u=u[:, None], feature_names=["x", "u"])  # u is its own square
    assert terms_of(model) == [{"x", "u"}]
    low, high = model.equations_[0].interval(0.95).T
    np.testing.assert_array_less(low, [-1.0, 1.0])
    np.testing.assert_array_less([-1.0, 1.0], high)
    np.testing.assert_allclose(model.simulate(x[0], t, u=u[:, None]), x, atol=0.005)


def test_samples_few_for_every_period_are_no_noise():
    """An oscillation of 2.4 samples a period: smoothing takes it for noise, the search does not."""
    t = 1.0 * np.arange(300)
    x = np.column_stack([np.cos(2.6 * t), -np.sin(2.6 * t)])
    with pytest.warns(AmbiguityWarning, match="fewer than four rows in a period"):
        model = Discovery(Polynomials(1)).fit(x + 0.02 * RNG(1).normal(size=x.shape), t, feature_names=["x", "y"])
    assert terms_of(model) == [{"y"}, {"x"}]
    assert np.abs(distances_of(model, np.array([[0.0, 0.0, 2.6], [0.0, -2.6, 0.0]]))).max() < 3.5


def test_two_positions():
    t = np.linspace(0, 15, 150)
    x = np.column_stack([np.cos(1.3 * t), np.sin(1.3 * t)]) + 0.02 * RNG(0).normal(size=(150, 2))
    model = Discovery(Polynomials(1), derivative_order=2).fit(x, t, feature_names=["x", "y"])
    assert terms_of(model) == [{"x"}, {"y"}]
    assert model.coef_[model.coef_ != 0] == pytest.approx([-1.69, -1.69], abs=0.02)


@pytest.mark.parametrize(("size", "time"), [(1e-8, 1.0), (1.0, 1e6)])
def test_units_do_not_matter_where_only_positions_are_measured(size, time):
    t, x = systems.duffing().noisy(0.02, seed=0)
    usual = Discovery(derivative_order=2).fit(x[:, 0], t, feature_names=["x"]).equations_[0]
    scaled = Discovery(derivative_order=2).fit(size * x[:, 0], time * t, feature_names=["x"]).equations_[0]
    assert scaled.terms == usual.terms
    np.testing.assert_allclose(scaled.std / scaled.coefficients, usual.std / usual.coefficients, rtol=1e-3)


def test_one_array_of_times_serves_all_trajectories():
    """Also where there are as many trajectories as times, which could be steps."""
    t, rng = 0.3 * np.arange(12), RNG(0)
    series = [np.column_stack([np.cos(t + a), -np.sin(t + a)]) + 0.01 * rng.normal(size=(12, 2)) for a in range(12)]
    together, apart = (Discovery(Polynomials(2)).fit(series, times) for times in (t, [t] * 12))
    np.testing.assert_array_equal(together.coef_, apart.coef_)
    assert terms_of(together) == [{"x1"}, {"x0"}]


def test_names_that_are_products_are_refused():
    x = RNG(0).normal(size=(50, 3)).cumsum(axis=0)
    with pytest.raises(ValueError, match="'x v'"):
        Discovery().fit(x, 0.1, feature_names=["x", "v", "x v"])


def test_of_many_candidates_the_trajectory_takes_what_the_weak_form_leaves_open():
    """1,092 candidates. Both forms find the truth; intervals of the trajectory hold it and are far narrower."""
    system = systems.lorenz96(12)
    t, x = system.noisy(0.02, seed=0)
    model, weak = (Discovery(Polynomials(2), form=form).fit(x[:100], t[:100]) for form in (None, "weak"))
    assert model.form_ == "trajectory"
    truth = system.true_coefficients(Polynomials(2))
    np.testing.assert_array_equal(model.coef_ != 0, truth != 0)
    distances = distances_of(model, truth)
    assert 0.5 < np.mean(distances**2) < 2
    assert np.median(weak.coef_std_[truth != 0] / model.coef_std_[truth != 0]) > 2
    assert model.inclusion(2, random_state=0).shape == truth.shape


def test_a_term_that_the_weak_form_closes_is_opened_again():
    """Twelve coupled oscillators: their weak damping is below the threshold of the weak form."""
    m, rng = 6, RNG(3)
    stiffness, coupling = rng.uniform(1.8, 3, m), rng.uniform(0.3, 0.8, m)

    def slopes(_, y):
        q, p = y[:m], y[m:]
        near = 0.5 * (np.roll(q, 1) + np.roll(q, -1))
        return np.concatenate([p, -stiffness * q - 0.05 * p + near - coupling * q * np.roll(q, -1)])

    t = np.linspace(0, 20, 400)
    x = solve_ivp(slopes, (0, 20), 0.6 * rng.normal(size=2 * m), t_eval=t, rtol=1e-9, atol=1e-10).y.T
    model = Discovery().fit(x + 0.03 * x.std() * RNG(0).normal(size=x.shape), t)
    assert [len(one.support) for one in model.equations_] == [1] * m + [5] * m
    assert all(abs(one.coefficients[0] - 1) < 4 * one.std[0] for one in model.equations_[:m])


def test_few_rows_that_move_are_told_where_a_system_comes_to_rest():
    """Two decays, within their noise after nine of 60 rows, with ten candidates; with three nothing is said."""
    t = np.linspace(0, 20, 60)
    x = np.exp(-np.outer(t, [1.6, 2.3])) + 0.01 * RNG(0).normal(size=(60, 2))
    with pytest.warns(AmbiguityWarning, match="come to rest: in 5[01] of 60 rows"):
        Discovery(Polynomials(3)).fit(x, t)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Discovery(Polynomials(1)).fit(x, t)


@pytest.mark.parametrize("seed", [3, 12])
def test_few_samples_a_period_at_uneven_times(seed):
    """An oscillator with 100 readings at random times of forty periods: splines through them are all noise."""
    rng = RNG(seed)
    t = np.sort(rng.uniform(0, 100, 100))
    x = solve_ivp(lambda _, x: [x[1], -6 * x[0] - 0.02 * x[1]], (0, 100), [1.0, 0.0], t_eval=t, rtol=1e-9, atol=1e-9)
    with pytest.warns(AmbiguityWarning, match="hardly tell this model from one in which"):  # where the damping acts
        model = Discovery(Polynomials(1)).fit(x.y.T + 0.03 * x.y.std(axis=1) * rng.normal(size=(100, 2)), t)
    assert terms_of(model) == [{"x1"}, {"x0", "x1"}]
    for one, truth in zip(model.equations_, ([1.0], [-6.0, -0.02]), strict=True):
        assert np.all(np.abs(one.coefficients - truth) < 4 * one.std)


@pytest.mark.parametrize("noise", ["auto", "proportional"])
def test_pushes_in_proportion_to_a_state(noise):
    """dn = n(1 − n)dt + 0.15 n dW, five runs: one size of the pushes for all n would hide how small ones grow."""
    rng, fine, runs = RNG(1), 0.01, []
    for _ in range(5):
        n = np.full(2000, 0.05)
        for i in range(1999):
            n[i + 1] = n[i] + fine * n[i] * (1 - n[i]) + 0.15 * n[i] * np.sqrt(fine) * rng.normal()
        runs.append(n[::20] * (1 + 0.02 * rng.normal(size=100)))
    with pytest.warns(MisfitWarning, match="do not follow the equations exactly"):
        model = Discovery(noise=noise).fit(runs, [0.2] * 5, feature_names=["n"])
    (growth,) = model.equations_
    assert growth.terms == ("n", "n^2")
    assert np.all(np.abs(growth.coefficients - [1, -1]) < 3 * growth.std)
    assert model.noise_kind_ == "proportional"
    usual = 0.15 * np.sqrt(np.mean(np.concatenate(runs) ** 2))
    assert model.process_noise_ == pytest.approx([usual], rel=0.2)
