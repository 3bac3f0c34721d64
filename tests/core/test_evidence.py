import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import dense_twin as twin
from ardea.core.compression import CompressedRows
from ardea.core.evidence import NoiseRule, posterior, slopes_and_scores

SHAPES = [(40, 6), (12, 12), (10, 25)]


def random_case(m, d, seed=0):
    """Return Θ, y and prior variances from 1e-4 to 1e2, a third of them zero."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(m, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    gamma = 10.0 ** rng.uniform(-4, 2, d) * (rng.random(d) < 0.67)
    return theta, rng.normal(size=m) * 3, gamma


@pytest.mark.parametrize(("m", "d"), SHAPES)
@pytest.mark.parametrize("noise", [1e-3, 1.0, 50.0])
def test_cost_slopes_and_scores_are_those_of_the_dense_twin(m, d, noise):
    theta, y, gamma = random_case(m, d)
    problem = twin.as_problem(theta, y)
    post = posterior(problem, gamma, noise)
    np.testing.assert_allclose(post.cost, twin.cost(theta, y, gamma, noise), rtol=1e-9)
    np.testing.assert_allclose(post.log_determinant, twin.log_determinant(theta, gamma, noise), rtol=1e-9)
    np.testing.assert_allclose(post.quadratic, twin.quadratic(theta, y, gamma, noise), rtol=1e-8)
    slopes, scores = slopes_and_scores(problem, post)
    np.testing.assert_allclose(slopes, twin.slopes(theta, gamma, noise), rtol=1e-7)
    q = twin.scores(theta, y, gamma, noise)
    np.testing.assert_allclose(scores, q, rtol=1e-7, atol=1e-9 * np.abs(q).max())


@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_posterior_moments_are_those_of_the_dense_twin(m, d):
    theta, y, gamma = random_case(m, d)
    post = posterior(twin.as_problem(theta, y), gamma, 0.3)
    mean, covariance = twin.posterior_moments(theta, y, gamma, 0.3)
    active = post.active
    np.testing.assert_array_equal(active, np.flatnonzero(gamma))
    np.testing.assert_allclose(post.mean, mean[active], rtol=1e-8, atol=1e-10)
    block = covariance[np.ix_(active, active)]
    np.testing.assert_allclose(post.covariance, block, rtol=1e-7, atol=1e-9 * block.max())
    np.testing.assert_allclose(post.rss, np.sum((y - theta @ mean) ** 2), rtol=1e-8)
    np.testing.assert_allclose(post.n_undetermined, np.sum(covariance.diagonal()[active] / gamma[active]), rtol=1e-7)


@pytest.mark.parametrize(("m", "d"), SHAPES)
@pytest.mark.parametrize("keep", [(), (2,)])
def test_integrating_the_intercept_out_equals_projecting_it_out(m, d, keep):
    theta, y, gamma = random_case(m, d)
    theta, y, noise = theta + 5.0, y - 7.0, 0.7
    gamma[list(keep)] = 0.0
    (problem,), coordinates = CompressedRows.from_arrays(theta, y[:, None]).pose(intercept=True, keep=keep)
    A, z = twin.without_flat(np.column_stack([np.ones(m), theta[:, list(keep)]]), theta, y)
    A[:, list(keep)] = 0.0
    unit, scale = coordinates.coefficient_unit(0), coordinates.targets[0]
    post = posterior(problem, gamma / unit**2, noise / scale**2)
    free_rows = m - 1 - len(keep)
    assert problem.n_rows == free_rows
    np.testing.assert_allclose(post.cost + free_rows * np.log(scale**2), twin.cost(A, z, gamma, noise), rtol=1e-9)
    live = np.isin(np.arange(d), keep, invert=True)
    slopes, scores = slopes_and_scores(problem, post)
    np.testing.assert_allclose(slopes[live] / unit[live] ** 2, twin.slopes(A, gamma, noise)[live], rtol=1e-7)
    q = twin.scores(A, z, gamma, noise)
    np.testing.assert_allclose(scores / unit, q, rtol=1e-6, atol=1e-9 * np.abs(q).max())


def test_without_active_columns_everything_is_the_noise():
    theta, y, _ = random_case(10, 4)
    problem, nothing = twin.as_problem(theta, y), np.zeros(4)
    post = posterior(problem, nothing, 2.0)
    assert post.active.size == 0
    np.testing.assert_allclose(post.cost, 10 * np.log(2.0) + y @ y / 2, rtol=1e-14)
    slopes, scores = slopes_and_scores(problem, post)
    np.testing.assert_allclose(slopes, (theta**2).sum(axis=0) / 2)
    np.testing.assert_allclose(scores, theta.T @ y / 2)


def cancelling_case(seed, k):
    """Return 9×7 columns, one of them a duplicate and one nearly dependent, with variances 1e-3 to 1 on the first k."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(9, 7))
    theta[:, 5] = theta[:, 0] - 2 * theta[:, 1] + 1e-5 * theta[:, 5]
    theta[:, 6] = theta[:, 0]
    return theta, np.where(np.arange(7) < k, 10.0 ** rng.uniform(-3, 0, 7), 0.0)


@pytest.mark.parametrize("share", [1e-2, 1e-5, 1e-7, 1e-9, 1e-12, 1e-14])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_slopes_keep_their_digits_when_the_noise_is_tiny(share, seed):
    theta, gamma = cancelling_case(seed, k=4)
    y = np.random.default_rng(seed).normal(size=9)
    noise = share * y.var()
    assert_exact_slopes_and_scores(theta, y, gamma, noise)


def assert_exact_slopes_and_scores(theta, y, gamma, noise):
    """Compare with rational arithmetic; q on the scale of its bound, q² ≤ M·yᵀΣ_y⁻¹y."""
    problem = twin.as_problem(theta, y)
    post = posterior(problem, gamma, noise)
    slopes, scores = slopes_and_scores(problem, post)
    exact_slopes, exact_scores = twin.exact_slopes_and_scores(theta, y, gamma, noise)
    np.testing.assert_allclose(slopes, exact_slopes, rtol=1e-8)
    bound = np.sqrt(exact_slopes * post.quadratic)
    np.testing.assert_allclose((scores - exact_scores) / bound, 0.0, atol=1e-8)


@pytest.mark.parametrize("noise", [1e-6, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("variance", [1.0, 1e-3, 1e-8])
def test_slopes_keep_their_digits_on_active_duplicates(noise, variance):
    theta, gamma = cancelling_case(0, k=4)
    gamma[0], gamma[6] = 1.0, variance
    assert_exact_slopes_and_scores(theta, theta[:, 2], gamma, noise)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(seed=st.integers(0, 10_000), exponent=st.floats(-16, 0), k=st.integers(1, 6), equal=st.booleans())
def test_slopes_are_never_negative(seed, exponent, k, equal):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(5, 6))
    if equal:
        theta[:, 1:4] = theta[:, [0]]
    gamma = np.where(np.arange(6) < k, 10.0 ** rng.uniform(-14, 3, 6), 0.0)
    problem = twin.as_problem(theta, theta @ rng.normal(size=6))
    slopes, _ = slopes_and_scores(problem, posterior(problem, gamma, 10.0**exponent))
    assert np.all(slopes >= 0)


@pytest.mark.parametrize("noise", [1e-6, 1e-10, 1e-12, 1e-14, 1e-18])
def test_variances_of_equal_columns_add_however_singular_their_block(noise):
    rng = np.random.default_rng(3)
    theta, y = rng.normal(size=(8, 1)), rng.normal(size=8)
    one = posterior(twin.as_problem(theta, y), np.array([3.0]), noise)
    three = posterior(twin.as_problem(theta.repeat(3, axis=1), y), np.ones(3), noise)
    np.testing.assert_allclose(three.quadratic, one.quadratic, rtol=1e-9)
    np.testing.assert_allclose(three.log_determinant, one.log_determinant, rtol=0, atol=1e-6)
    np.testing.assert_allclose(three.n_undetermined, 2 + one.n_undetermined, rtol=0, atol=1e-6)
    np.testing.assert_allclose(three.mean.sum(), one.mean.sum(), rtol=1e-9)


def central_difference(function, at, step):
    return (function(at + step) - function(at - step)) / (2 * step)


@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_slope_of_the_cost_in_gamma_is_m_minus_q_squared(m, d):
    theta, y, gamma = random_case(m, d, seed=1)
    gamma, noise = gamma + 0.1, 0.5
    problem = twin.as_problem(theta, y)
    post = posterior(problem, gamma, noise)
    slopes, scores = slopes_and_scores(problem, post)
    gradient = slopes - scores**2
    for j in range(d):
        moved = np.arange(d) == j

        def cost(g, moved=moved):
            return posterior(problem, np.where(moved, g, gamma), noise).cost

        difference = central_difference(cost, gamma[j], 1e-5 * gamma[j])
        np.testing.assert_allclose(gradient[j], difference, rtol=1e-5, atol=1e-6 / gamma[j])


@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_slope_of_the_cost_in_the_noise(m, d):
    theta, y, gamma = random_case(m, d, seed=1)
    problem, noise = twin.as_problem(theta, y), 0.5
    post = posterior(problem, gamma, noise)
    degrees = m - post.active.size + post.n_undetermined
    slope = (degrees - post.rss / noise) / noise
    np.testing.assert_allclose(slope, twin.noise_slope(theta, y, gamma, noise), rtol=1e-7)
    difference = central_difference(lambda s: posterior(problem, gamma, s).cost, noise, 1e-5)
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


@pytest.mark.parametrize(("m", "d"), [(40, 6), (25, 20)])
def test_noise_rule_rests_exactly_where_the_cost_is_stationary_in_the_noise(m, d):
    theta, y, gamma = random_case(m, d, seed=2)
    problem, rule = twin.as_problem(theta, y), NoiseRule()
    s = optimize.brentq(lambda s: twin.noise_slope(theta, y, gamma, s), 1e-3, 1e3, xtol=1e-14, rtol=1e-14)
    np.testing.assert_allclose(rule.update(problem, posterior(problem, gamma, s)), s, rtol=1e-10)
    elsewhere = rule.update(problem, posterior(problem, gamma, 2 * s))
    assert abs(elsewhere / (2 * s) - 1) > 1e-3


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 12), d=st.integers(1, 12), exponent=st.floats(-4, 2))
def test_appendix_a_the_quadratic_term_is_a_minimum_over_coefficients(seed, m, d, exponent):
    rng = np.random.default_rng(seed)
    theta, y, gamma, noise = (
        rng.normal(size=(m, d)),
        rng.normal(size=m),
        10.0 ** rng.uniform(-2, 2, d),
        10.0**exponent,
    )
    stacked = np.vstack([theta / np.sqrt(noise), np.diag(1 / np.sqrt(gamma))])
    right = np.concatenate([y / np.sqrt(noise), np.zeros(d)])
    xi = np.linalg.lstsq(stacked, right, rcond=None)[0]
    minimum = np.sum((y - theta @ xi) ** 2) / noise + np.sum(xi**2 / gamma)
    post = posterior(twin.as_problem(theta, y), gamma, noise)
    np.testing.assert_allclose(post.quadratic, minimum, rtol=1e-9)
    np.testing.assert_allclose(post.mean, xi, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(minimum, twin.quadratic(theta, y, gamma, noise), rtol=1e-7)
