import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

import dense_twin as twin
from ardea.core.lasso import weighted_lasso

PRECISION = 1e-9


def random_case(seed, m, d, coherence=0.5):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(m, d)) + coherence * rng.normal(size=(m, 1))
    y = theta @ (rng.normal(size=d) * (rng.random(d) < 0.4)) + 0.3 * rng.normal(size=m)
    return theta, y, rng


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 100_000),
    m=st.integers(1, 25),
    d=st.integers(1, 40),
    exponent=st.floats(-4, 1),
    spread=st.floats(0, 2),
    coherence=st.sampled_from([0.0, 1.0, 30.0]),
)
def test_kkt_conditions_hold(seed, m, d, exponent, spread, coherence):
    theta, y, rng = random_case(seed, m, d, coherence)
    weights = 10.0 ** (exponent + rng.uniform(-spread, spread, d)) * np.linalg.norm(theta, axis=0)
    solution = weighted_lasso(twin.as_problem(theta, y), weights)
    assert twin.lasso_violation(theta, y, weights, solution) < PRECISION
    assert twin.lasso_gap(theta, y, weights, solution) < 1e-6


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), m=st.integers(2, 20), d=st.integers(2, 30), scale=st.floats(1e-3, 1e3))
def test_any_warm_start_leads_to_the_same_solution(seed, m, d, scale):
    theta, y, rng = random_case(seed, m, d)
    weights = 10.0 ** rng.uniform(-2, 0, d) * np.linalg.norm(theta, axis=0)
    problem = twin.as_problem(theta, y)
    cold = weighted_lasso(problem, weights)
    start = scale * rng.normal(size=d) * (rng.random(d) < 0.5)
    warm = weighted_lasso(problem, weights, start)
    np.testing.assert_allclose(
        twin.lasso_objective(theta, y, weights, warm), twin.lasso_objective(theta, y, weights, cold), rtol=1e-10
    )
    np.testing.assert_allclose(warm, cold, rtol=1e-6, atol=1e-8 * np.abs(cold).max(initial=1.0))


def test_warm_start_at_the_solution_visits_one_face(monkeypatch):
    theta, y, _ = random_case(0, 40, 20)
    problem, weights = twin.as_problem(theta, y), np.full(20, 2.0)
    cold = weighted_lasso(problem, weights)
    faces, gram = [], problem.active.gram
    monkeypatch.setattr(problem.active, "gram", lambda index: faces.append(index) or gram(index))
    np.testing.assert_allclose(weighted_lasso(problem, weights, cold), cold, rtol=1e-12)
    assert len(faces) == 1


@pytest.mark.parametrize(("m", "d"), [(60, 15), (30, 50)])
def test_agrees_with_scikit_learn_on_scaled_columns(m, d):
    theta, y, rng = random_case(3, m, d)
    weights = rng.uniform(0.5, 2, d) * 3.0
    theirs = Lasso(alpha=1 / m, fit_intercept=False, tol=1e-14, max_iter=200_000).fit(theta / weights, y)
    ours = weighted_lasso(twin.as_problem(theta, y), weights)
    np.testing.assert_allclose(ours, theirs.coef_ / weights, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(ours == 0, theirs.coef_ == 0)


def test_orthogonal_columns_are_soft_thresholded():
    rng = np.random.default_rng(4)
    rho = rng.uniform(0.1, 10, 12)
    theta = twin.orthogonal_columns(rng, 30, rho)
    y, weights = rng.normal(size=30) * 2, rng.uniform(0, 3, 12)
    correlation = theta.T @ y
    expected = np.sign(correlation) * np.maximum(np.abs(correlation) - weights, 0.0) / rho
    solution = weighted_lasso(twin.as_problem(theta, y), weights)
    np.testing.assert_allclose(solution, expected, atol=1e-13)
    np.testing.assert_array_equal(solution == 0, expected == 0)


def test_zero_columns_and_infinite_weights_stay_at_zero():
    theta, y, _ = random_case(5, 20, 8)
    theta[:, 2] = 0.0
    weights = np.full(8, 0.1)
    weights[4] = np.inf
    rest = np.array([0, 1, 3, 5, 6, 7])
    solution = weighted_lasso(twin.as_problem(theta, y), weights, np.ones(8))
    alone = weighted_lasso(twin.as_problem(theta[:, rest], y), weights[rest])
    assert solution[2] == 0
    assert solution[4] == 0
    np.testing.assert_allclose(solution[rest], alone, atol=1e-12)


def test_all_weights_infinite_or_all_columns_zero_give_the_empty_model():
    theta, y, _ = random_case(5, 20, 8)
    for columns, weights in ((theta, np.full(8, np.inf)), (0 * theta, np.ones(8))):
        solution = weighted_lasso(twin.as_problem(columns, y), weights, np.ones(8))
        assert not solution.any()


def test_weight_zero_leaves_a_coefficient_free():
    theta, y, _ = random_case(6, 30, 6)
    weights = np.array([0.0, 4.0, 4.0, 0.0, 4.0, 4.0])
    solution = weighted_lasso(twin.as_problem(theta, y), weights)
    gradient = theta.T @ (y - theta @ solution)
    np.testing.assert_allclose(gradient[[0, 3]], 0.0, atol=1e-11)
    assert twin.lasso_violation(theta, y, weights, solution) < PRECISION


@pytest.mark.parametrize("m", [30, 4])
def test_all_weights_zero_is_least_squares(m):
    theta, y, _ = random_case(7, m, 6)
    solution = weighted_lasso(twin.as_problem(theta, y), np.zeros(6))
    least = np.linalg.lstsq(theta, y, rcond=None)[0]
    np.testing.assert_allclose(theta @ solution, theta @ least, atol=1e-9)


def test_weights_above_every_correlation_give_the_empty_model():
    theta, y, _ = random_case(8, 20, 8)
    weights = np.abs(theta.T @ y) * (1 + 1e-9)
    assert not weighted_lasso(twin.as_problem(theta, y), weights).any()


@pytest.mark.parametrize("weight", [0.5, 0.0])
def test_equal_columns_cost_no_more_than_one_of_them(weight):
    theta, y, _ = random_case(9, 20, 5)
    copies = np.column_stack([theta, theta[:, :3], theta[:, :3]])
    weights = np.full(11, weight)
    for start in (None, np.ones(11), np.linspace(-1, 1, 11)):
        many = weighted_lasso(twin.as_problem(copies, y), weights, start)
        one = weighted_lasso(twin.as_problem(theta, y), weights[:5])
        np.testing.assert_allclose(copies @ many, theta @ one, atol=1e-9)
        assert twin.lasso_violation(copies, y, weights, many) < PRECISION


def test_of_equal_columns_the_cheaper_one_is_used():
    theta, y, _ = random_case(10, 20, 1)
    theta = np.column_stack([theta, theta, -theta])
    solution = weighted_lasso(twin.as_problem(theta, y), np.array([0.3, 0.2, 0.1]), np.ones(3))
    np.testing.assert_array_equal(solution != 0, [False, False, True])


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), m=st.integers(1, 20), d=st.integers(1, 25))
def test_ridge_and_shift_are_additional_rows(seed, m, d):
    theta, y, rng = random_case(seed, m, d)
    weights, ridge, shift = rng.uniform(0.1, 2, d), rng.uniform(0.01, 3, d), rng.normal(size=d)
    solution = weighted_lasso(twin.as_problem(theta, y), weights, ridge=ridge, shift=shift)
    more_rows = np.vstack([theta, np.diag(np.sqrt(ridge))])
    more_y = np.concatenate([y, shift / np.sqrt(ridge)])
    augmented = weighted_lasso(twin.as_problem(more_rows, more_y), weights)
    np.testing.assert_allclose(solution, augmented, rtol=1e-7, atol=1e-9)
    assert twin.lasso_violation(theta, y, weights, solution, ridge, shift) < 1e-8


def test_shift_alone_moves_the_correlations():
    rng = np.random.default_rng(11)
    theta = twin.orthogonal_columns(rng, 10, np.ones(3))
    y, shift = rng.normal(size=10), np.array([2.0, -3.0, 0.1])
    linear = theta.T @ y + shift
    expected = np.sign(linear) * np.maximum(np.abs(linear) - 1.0, 0.0)
    solution = weighted_lasso(twin.as_problem(theta, y), np.ones(3), shift=shift)
    np.testing.assert_allclose(solution, expected, atol=1e-13)


@pytest.mark.parametrize("condition", [1e4, 1e6])
def test_ill_conditioned_columns_are_solved_too(condition):
    rng = np.random.default_rng(12)
    u, _ = np.linalg.qr(rng.normal(size=(40, 15)))
    v, _ = np.linalg.qr(rng.normal(size=(15, 15)))
    theta = u * np.geomspace(1, 1 / condition, 15) @ v
    y = theta @ rng.normal(size=15) + 1e-3 * rng.normal(size=40)
    weights = np.full(15, 1e-4)
    solution = weighted_lasso(twin.as_problem(theta, y), weights)
    assert twin.lasso_violation(theta, y, weights, solution) < PRECISION
