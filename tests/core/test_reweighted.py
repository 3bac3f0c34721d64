import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dense_twin as twin
from ardea.core.compression import CompressedRows
from ardea.core.evidence import FLOOR_TALL, FLOOR_WIDE, NoiseRule, Setting
from ardea.core.lasso import penalised_step
from ardea.core.loop import Status, loop_in_use, solve
from ardea.priors import Bounds, CappedLinear, Concave, Convex, Flat, Gamma, Linear, Log, Tanh

TIGHT = 1e-9
CASES = [("tall", 60, 12, 0), ("square", 30, 30, 1), ("wide", 25, 60, 2), ("coherent", 50, 20, 3)]
IDS = [case[0] for case in CASES]
PRIORS = {
    "flat": Flat(),
    "linear": Linear(2.0),
    "capped": CappedLinear(2.0, 0.5),
    "over noise": CappedLinear(0.5, 0.5, over_noise=True),
    "tanh": Tanh(2.0, 0.5),
    "log": Log(2.0, 0.5),
    "concave": Concave(lambda g: 3 * g / (1 + g), lambda g: 3 / (1 + g) ** 2),
    "gamma": Gamma(2.0, 1.0),
    "bounds": Flat() & Bounds(0.01, 0.7),
    "upper bound": Linear(0.5) & Bounds(0.0, 0.7),
    "square": Flat() & Convex(lambda g: 0.5 * g**2, lambda g: g),
}


@pytest.fixture(autouse=True, scope="module", params=["compiled", "numpy"])
def loop(request):
    """Run everything on the compiled loop and on its NumPy twin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARDEA_LOOP", request.param)
        if loop_in_use() != request.param:
            pytest.skip("the compiled loop is not installed")
        yield


def sparse_case(name, m, d, seed, noise=0.2):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(m, d)) + (3.0 * rng.normal(size=(m, 1)) if name == "coherent" else 0.0)
    xi = np.where(np.arange(d) < max(2, d // 8), rng.choice([-1.5, 1.0], d), 0.0)
    return theta, theta @ xi + np.sqrt(noise) * rng.normal(size=m)


def setting(theta, y, *, noise=0.2, prior=None, alpha=1.0, **options):
    d = theta.shape[1]
    rule = noise if hasattr(noise, "update") else NoiseRule(noise)
    inflation = np.broadcast_to(np.asarray(alpha, dtype=float), (d,)).copy()
    return Setting(twin.as_problem(theta, y), prior or Flat(), rule, inflation, **options)


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_the_cost_never_rises_at_known_noise(case, prior):
    theta, y = sparse_case(*case)
    fit = solve(setting(theta, y, prior=prior), max_iter=60)
    assert fit.trace.cost.size == fit.n_iter + 1 > 2
    assert np.all(np.diff(fit.trace.cost) <= 1e-10 * np.abs(fit.trace.cost[1:]))


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("alpha", [0.5, 4.0])
def test_the_inflated_cost_never_rises_and_is_the_cost_at_the_inflated_noise(case, alpha):
    theta, y = sparse_case(*case)
    fit = solve(setting(theta, y, alpha=alpha))
    assert np.all(np.diff(fit.trace.cost) <= 1e-10 * np.abs(fit.trace.cost[1:]))
    np.testing.assert_allclose(fit.trace.cost[-1], twin.cost(theta, y, fit.gamma, alpha * 0.2), rtol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("alpha", [1.0, 4.0])
@pytest.mark.parametrize("noise", [0.2, 0.02])
def test_fixed_points_satisfy_the_kkt_conditions_at_the_inflated_noise(case, alpha, noise):
    theta, y = sparse_case(*case)
    fit = solve(setting(theta, y, noise=noise, alpha=alpha), tol=TIGHT, max_iter=3000)
    assert fit.status is Status.CONVERGED
    assert fit.kkt_gap <= TIGHT
    assert 0 < np.count_nonzero(fit.gamma) <= min(theta.shape)
    assert twin.evidence_violation(theta, y, fit.gamma, alpha * noise) < 1e-7
    assert fit.noise == noise


@pytest.mark.parametrize("name", ["linear", "tanh", "log"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_fixed_points_with_a_concave_prior_satisfy_its_kkt_conditions(case, name):
    theta, y = sparse_case(*case)
    prior = PRIORS[name]
    fit = solve(setting(theta, y, prior=prior), tol=TIGHT, max_iter=3000)
    slope = prior.slope(fit.gamma, 0.2)
    assert fit.status is Status.CONVERGED
    assert twin.evidence_violation(theta, y, fit.gamma, 0.2, extra_slope=slope) < 1e-7


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_fit_holds_the_posterior_at_the_uninflated_noise(case):
    theta, y = sparse_case(*case)
    fit = solve(setting(theta, y, alpha=4.0))
    mean, covariance = twin.posterior_moments(theta, y, fit.gamma, 0.2)
    active = fit.posterior.active
    np.testing.assert_allclose(fit.posterior.mean, mean[active], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.posterior.covariance, covariance[np.ix_(active, active)], rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("noise", [0.2, NoiseRule()], ids=["known", "learned"])
@pytest.mark.parametrize("alpha", [1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_newton_steps_change_the_way_not_the_goal(noise, alpha, seed):
    theta, y = sparse_case("tall", 80, 10, seed)
    fast = solve(setting(theta, y, noise=noise, alpha=alpha), tol=TIGHT)
    slow = solve(setting(theta, y, noise=noise, alpha=alpha, newton=False), tol=TIGHT, max_iter=50_000)
    assert fast.status is slow.status is Status.CONVERGED
    assert fast.n_iter <= slow.n_iter
    np.testing.assert_array_equal(fast.gamma > 0, slow.gamma > 0)
    np.testing.assert_allclose(fast.gamma, slow.gamma, rtol=1e-5)
    np.testing.assert_allclose(fast.noise, slow.noise, rtol=1e-6)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), uniform=st.booleans(), exponent=st.floats(-3, 1))
def test_orthogonal_columns_have_the_closed_form_for_any_inflation(seed, uniform, exponent):
    rng = np.random.default_rng(seed)
    rho, noise = rng.uniform(0.1, 5, 8), 10.0**exponent
    theta, y = twin.orthogonal_columns(rng, 12, rho), 2 * rng.normal(size=12)
    alpha = np.full(8, 2.5) if uniform else rng.uniform(0.3, 9, 8)
    fit = solve(setting(theta, y, noise=noise, alpha=alpha), tol=1e-11, max_iter=2000)
    expected = np.maximum((theta.T @ y / rho) ** 2 - alpha * noise / rho, 0.0)
    np.testing.assert_array_equal(fit.gamma > 0, expected > 0)
    np.testing.assert_allclose(fit.gamma, expected, rtol=1e-6, atol=1e-9 * noise)


@pytest.mark.parametrize("case", CASES[::3], ids=IDS[::3])
def test_learned_noise_is_stationary_in_the_cost(case):
    theta, y = sparse_case(*case)
    fit = solve(setting(theta, y, noise=NoiseRule()), tol=TIGHT)
    assert fit.status is Status.CONVERGED
    scaled_slope = fit.noise * twin.noise_slope(theta, y, fit.gamma, fit.noise)
    assert abs(scaled_slope) < 1e-6 * theta.shape[0]
    assert twin.evidence_violation(theta, y, fit.gamma, fit.noise) < 1e-7
    assert 0.1 < fit.noise < 0.4


@pytest.mark.parametrize("inflated_rule", [False, True])
def test_learned_noise_follows_the_uninflated_posterior_unless_told_otherwise(inflated_rule):
    theta, y = sparse_case("tall", 60, 12, 5)
    alpha = 4.0
    fit = solve(setting(theta, y, noise=NoiseRule(), alpha=alpha, rule_inflated=inflated_rule), tol=TIGHT)
    at = fit.gamma / alpha if inflated_rule else fit.gamma
    mean, covariance = twin.posterior_moments(theta, y, at, fit.noise)
    active = fit.gamma > 0
    degrees = 60 - active.sum() + np.sum(covariance.diagonal()[active] / at[active])
    assert fit.status is Status.CONVERGED
    np.testing.assert_allclose(fit.noise, np.sum((y - theta @ mean) ** 2) / degrees, rtol=1e-7)
    assert twin.evidence_violation(theta, y, fit.gamma, alpha * fit.noise) < 1e-7


@pytest.mark.parametrize("start", [1e-4, 1.0, 1e3])
def test_learned_noise_does_not_depend_on_its_start(start):
    theta, y = sparse_case("tall", 60, 8, 6)
    reference = solve(setting(theta, y, noise=NoiseRule()), tol=TIGHT)
    fit = solve(setting(theta, y, noise=NoiseRule(initial=start)), tol=TIGHT)
    assert fit.trace.noise_variance[0] == start
    np.testing.assert_allclose(fit.noise, reference.noise, rtol=1e-7)
    np.testing.assert_allclose(fit.gamma, reference.gamma, rtol=1e-6)


def test_learned_noise_starts_at_the_mean_square_and_stops_at_its_floor():
    theta, y = sparse_case("tall", 20, 5, 7)
    tall, wide = twin.as_problem(theta, y), twin.as_problem(theta[:4], y[:4])
    assert NoiseRule().start(tall) == pytest.approx(y @ y / 20, rel=1e-14)
    assert NoiseRule().floor(tall) == pytest.approx(FLOOR_TALL * (y @ y) / 20, rel=1e-12)
    assert NoiseRule().floor(wide) == pytest.approx(FLOOR_WIDE * (y[:4] @ y[:4]) / 4, rel=1e-12)
    exact = twin.as_problem(theta, theta @ np.ones(5))
    fit = solve(Setting(exact, Flat(), NoiseRule(), np.ones(5)))
    assert fit.noise >= NoiseRule().floor(exact)
    np.testing.assert_allclose(fit.posterior.mean, 1.0, rtol=1e-6)


@pytest.mark.parametrize("noise", [0.2, None], ids=["known", "learned"])
def test_units_of_columns_and_target_do_not_matter(noise):
    theta, y = sparse_case("tall", 50, 15, 10)
    units, unit = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 15), 40.0
    rule = NoiseRule if noise else (lambda _: NoiseRule())
    plain = solve(setting(theta, y, noise=rule(0.2)), tol=TIGHT)
    other = solve(setting(theta * units, y * unit, noise=rule(0.2 * unit**2)), tol=TIGHT)
    np.testing.assert_array_equal(other.gamma > 0, plain.gamma > 0)
    np.testing.assert_allclose(other.gamma * units**2 / unit**2, plain.gamma, rtol=1e-6)
    np.testing.assert_allclose(other.noise / unit**2, plain.noise, rtol=1e-7)


def test_compressed_rows_give_the_fit_of_all_rows():
    theta, y = sparse_case("tall", 300, 8, 11)
    (problem,), coordinates = CompressedRows.from_arrays(theta, y[:, None]).pose(intercept=False)
    whole = solve(setting(theta, y, noise=NoiseRule()), tol=TIGHT)
    small = solve(Setting(problem, Flat(), NoiseRule(), np.ones(8)), tol=TIGHT)
    assert problem.columns.shape[0] <= 9
    np.testing.assert_allclose(small.gamma * coordinates.coefficient_unit(0) ** 2, whole.gamma, rtol=1e-6)
    np.testing.assert_allclose(small.noise * coordinates.targets[0] ** 2, whole.noise, rtol=1e-8)


@pytest.mark.parametrize("factor", [0.0, 1e-3, 1.0, 1e3])
def test_any_start_in_the_same_basin_ends_at_the_same_fixed_point(factor):
    theta, y = sparse_case("tall", 80, 8, 12)
    reference = solve(setting(theta, y), tol=TIGHT)
    fit = solve(setting(theta, y), start=np.full(8, factor), tol=TIGHT)
    np.testing.assert_allclose(fit.gamma, reference.gamma, rtol=1e-6)


def test_a_start_at_the_fixed_point_is_recognised_at_once():
    theta, y = sparse_case("tall", 80, 8, 12)
    fit = solve(setting(theta, y, alpha=3.0))
    again = solve(setting(theta, y, alpha=3.0), start=fit.gamma)
    assert again.n_iter == 0
    assert again.status is Status.CONVERGED
    np.testing.assert_allclose(again.gamma, fit.gamma, rtol=1e-14)


@pytest.mark.parametrize("start", [None, np.ones(4)], ids=["cold", "warm"])
@pytest.mark.parametrize("rule", [NoiseRule(), NoiseRule(0.5)], ids=["learned", "known"])
def test_a_constant_target_gives_the_empty_model(start, rule):
    rng = np.random.default_rng(13)
    (problem,), _ = CompressedRows.from_arrays(rng.normal(size=(20, 4)), np.full((20, 1), 3.3)).pose(intercept=True)
    fit = solve(Setting(problem, Flat(), rule, np.ones(4)), start=start)
    assert fit.status is Status.EMPTY_TARGET
    assert not fit.gamma.any()
    assert fit.posterior.active.size == 0


def test_statuses_are_told_apart():
    assert len(Status) == len(Status.__members__) >= 5


def test_a_target_of_pure_noise_below_every_cut_gives_the_empty_model():
    rng = np.random.default_rng(14)
    theta, y = rng.normal(size=(50, 6)), rng.normal(size=50)
    fit = solve(setting(theta, y, noise=1.0, alpha=30.0))
    assert not fit.gamma.any()
    assert fit.status is Status.CONVERGED


def test_no_columns_at_all():
    problem = twin.as_problem(np.ones((5, 2)), np.arange(5.0)).restrict(np.empty(0, dtype=np.intp))
    fit = solve(Setting(problem, Flat(), NoiseRule(), np.ones(0)))
    assert fit.gamma.shape == (0,)
    assert fit.noise == pytest.approx(6.0)


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_zero_columns_take_no_part(prior):
    theta, y = sparse_case("tall", 40, 6, 15)
    padded = np.insert(theta, [0, 3, 6], 0.0, axis=1)
    zero = ~padded.any(axis=0)
    plain = solve(setting(theta, y, prior=prior), tol=TIGHT, max_iter=200)
    fit = solve(setting(padded, y, prior=prior), tol=TIGHT, max_iter=200)
    assert np.all(fit.gamma[zero] == 0)
    np.testing.assert_allclose(fit.gamma[~zero], plain.gamma, rtol=1e-6)


def test_zero_columns_take_no_part_even_where_nothing_but_the_convex_part_moves_them():
    theta, y = sparse_case("tall", 40, 6, 15)
    padded = np.column_stack([theta, np.zeros(40)])
    prior = Gamma(1.2, 0.0)
    plain = solve(setting(theta, y, prior=prior), tol=TIGHT, max_iter=200)
    fit = solve(setting(padded, y, prior=prior), tol=TIGHT, max_iter=200)
    assert fit.gamma[-1] == 0
    np.testing.assert_allclose(fit.gamma[:-1], plain.gamma, rtol=1e-6)


def test_equal_columns_share_a_coefficient_without_changing_the_fit():
    theta, y = sparse_case("tall", 40, 6, 16)
    plain = solve(setting(theta, y), tol=TIGHT)
    twice = solve(setting(np.column_stack([theta, theta]), y), tol=TIGHT)
    np.testing.assert_allclose(twice.gamma[:6] + twice.gamma[6:], plain.gamma, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(twice.trace.cost[-1], plain.trace.cost[-1], rtol=1e-10)


def test_stopping_at_max_iter_says_so():
    theta, y = sparse_case("coherent", 50, 20, 17)
    fit = solve(setting(theta, y), max_iter=3)
    assert fit.status is Status.MAX_ITER
    assert fit.n_iter == 3
    assert fit.kkt_gap > 1e-6
    assert fit.trace.cost.size == fit.trace.noise_variance.size == fit.trace.n_terms.size == 4


@pytest.mark.parametrize("seed", range(3))
def test_learning_the_noise_of_pure_noise_with_more_columns_than_rows_collapses_and_says_so(seed):
    rng = np.random.default_rng(seed)
    theta, y = rng.normal(size=(16, 48)), rng.normal(size=16)
    assert solve(setting(theta, y, noise=NoiseRule())).status is Status.COLLAPSED
    assert solve(setting(theta, y, noise=1.0), max_iter=2000).status is not Status.COLLAPSED


def test_a_sparse_truth_with_more_columns_than_rows_does_not_collapse_under_inflation():
    rng = np.random.default_rng(18)
    theta = rng.normal(size=(80, 160))
    y = theta[:, :5].sum(axis=1) + 0.3 * rng.normal(size=80)
    fit = solve(setting(theta, y, noise=NoiseRule(), alpha=8.0))
    assert fit.status is Status.CONVERGED
    assert set(range(5)) <= set(np.flatnonzero(fit.gamma))
    assert 0.02 < fit.noise < 0.2


def test_inner_step_reaches_its_minimum_where_columns_outnumber_rows():
    rng = np.random.default_rng(2)
    theta = rng.normal(size=(25, 60))
    y = theta[:, :7] @ rng.choice([-1.5, 1.0], 7) + rng.normal(size=25)
    convex, c, noise = (Flat() & Bounds(0.01, 0.7)).convex, np.full(60, 5.0), 0.2
    xi = penalised_step(twin.as_problem(theta, y), c, noise, convex, np.zeros(60))
    gradient = theta.T @ (theta @ xi - y) + noise * xi / convex.minimiser(np.abs(xi), c)
    assert np.abs(gradient).max() <= 1e-6 * np.abs(theta.T @ y).max()
