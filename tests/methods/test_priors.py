import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import dense_twin as twin
from ardea.core.evidence import NoiseRule, Setting
from ardea.core.lasso import penalised_step
from ardea.core.loop import Status, solve
from ardea.priors import (
    Bounds,
    CappedLinear,
    Concave,
    Convex,
    Flat,
    Gamma,
    Linear,
    Log,
    NegativeLog,
    Tanh,
    in_coordinates,
)

GAMMA = np.array([1e-3, 0.02, 0.3, 0.9, 1.4, 5.0, 30.0])
NOISE = 0.4
CONCAVE = {
    "flat": Flat(),
    "linear": Linear(2.0),
    "linear over noise": Linear(2.0, over_noise=True),
    "capped": CappedLinear(2.0, 1.0),
    "capped over noise": CappedLinear(2.0, 1.0, over_noise=True),
    "tanh": Tanh(2.0, 0.5),
    "log": Log(2.0, 0.5),
    "gamma < 1": Gamma(0.3, 2.0),
    "gamma = 1": Gamma(1.0, 2.0),
    "gamma > 1": Gamma(3.0, 2.0),
    "concave": Concave(np.sqrt, lambda g: 0.5 / np.sqrt(g)),
}
SQUARE = Convex(lambda g: 0.5 * g**2, lambda g: g)
CONVEX = {
    "square": SQUARE,
    "bounds": Bounds(0.05, 0.8),
    "upper bound": Bounds(0.0, 0.8),
    "negative log": NegativeLog(1.5),
    "user's with bounds": Convex(lambda g: 0.3 * g**1.5, lambda g: 0.45 * np.sqrt(g), 0.0, 2.0),
}


def tiny_case(seed=0, m=12, d=3, scale=1.0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(m, d)) + 0.4 * rng.normal(size=(m, 1))
    return theta, scale * (theta @ np.array([1.0, 0.6, 0.0])[:d] + np.sqrt(NOISE) * rng.normal(size=m))


def solved(theta, y, prior, **options):
    d = theta.shape[1]
    setting = Setting(twin.as_problem(theta, y), prior, NoiseRule(NOISE), np.ones(d))
    return solve(setting, **{"tol": 1e-9, "max_iter": 3000, **options})


def full_cost(theta, y, prior, gamma):
    convex = 0.0 if prior.convex is None else prior.convex.value(gamma).sum()
    return twin.cost(theta, y, gamma, NOISE) + prior.value(gamma, NOISE).sum() + convex


def generic_minimum(theta, y, prior, lower, upper, starts=12):
    """Minimise the whole objective over γ by a general method from many starts."""
    rng = np.random.default_rng(1)
    d = theta.shape[1]
    upper = np.minimum(np.broadcast_to(upper, d), 1e3)
    box = list(zip(np.broadcast_to(lower, d), upper, strict=True))
    ends = []
    for _ in range(starts):
        start = np.clip(10.0 ** rng.uniform(-2, 1, d), lower, upper)
        ends.append(
            optimize.minimize(
                lambda g: full_cost(theta, y, prior, g),
                start,
                method="L-BFGS-B",
                bounds=box,
                options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
            )
        )
    return min(ends, key=lambda end: end.fun)


@pytest.mark.parametrize("prior", CONCAVE.values(), ids=CONCAVE)
def test_slopes_and_curvatures_are_derivatives(prior):
    step = 1e-6 * GAMMA
    rise = (prior.value(GAMMA + step, NOISE) - prior.value(GAMMA - step, NOISE)) / (2 * step)
    np.testing.assert_allclose(prior.slope(GAMMA, NOISE), rise, rtol=1e-6, atol=1e-8)
    bend = (prior.slope(GAMMA + step, NOISE) - prior.slope(GAMMA - step, NOISE)) / (2 * step)
    np.testing.assert_allclose(prior.curvature(GAMMA, NOISE), bend, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("prior", CONCAVE.values(), ids=CONCAVE)
def test_concave_parts_are_concave_and_never_falling(prior):
    gamma = np.geomspace(1e-6, 1e3, 400)
    slope = prior.slope(gamma, NOISE)
    assert np.all(slope >= 0)
    assert np.all(np.diff(slope) <= 0)
    value = prior.value(gamma, NOISE)
    middle = prior.value((gamma[:-1] + gamma[1:]) / 2, NOISE)
    assert np.all(middle >= (value[:-1] + value[1:]) / 2 - 1e-12 * np.abs(middle))


@pytest.mark.parametrize("convex", CONVEX.values(), ids=CONVEX)
def test_convex_parts_are_convex_with_the_right_slope(convex):
    gamma = np.linspace(0.06, 0.79, 50)
    step = 1e-6
    rise = (convex.value(gamma + step) - convex.value(gamma - step)) / (2 * step)
    np.testing.assert_allclose(convex.slope(gamma), rise, rtol=1e-6, atol=1e-8)
    assert np.all(np.diff(convex.slope(gamma)) >= 0)


@pytest.mark.parametrize("convex", CONVEX.values(), ids=CONVEX)
def test_the_scalar_minimiser_minimises(convex):
    size, c = (a.ravel() for a in np.meshgrid([1e-3, 0.1, 1.0, 4.0], [1e-2, 0.5, 3.0, 50.0]))
    lower, upper = convex.bounds
    found = convex.minimiser(size, c)
    assert np.all((found >= lower) & (found <= upper))

    def objective(gamma):
        return size**2 / gamma + c * gamma + convex.value(gamma)

    best = objective(found)
    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert np.all(objective(np.clip(found * factor, lower, upper)) >= best - 1e-12 * np.abs(best))


def test_linear_is_gamma_of_shape_one_with_half_its_rate():
    linear, gamma = Linear(3.0), Gamma(1.0, 1.5)
    assert gamma.convex is None
    for name in ("value", "slope", "curvature"):
        np.testing.assert_allclose(getattr(linear, name)(GAMMA, NOISE), getattr(gamma, name)(GAMMA, NOISE))


@pytest.mark.parametrize("shape", [0.3, 1.0, 2.5])
def test_gamma_is_the_logarithm_of_its_density(shape):
    prior, rate = Gamma(shape, 0.7), 0.7
    total = prior.value(GAMMA, NOISE) + (0 if prior.convex is None else prior.convex.value(GAMMA))
    np.testing.assert_allclose(total, 2 * rate * GAMMA - 2 * (shape - 1) * np.log(GAMMA), rtol=1e-13)


def test_over_noise_divides_the_strength_by_the_noise():
    given, scaled = CappedLinear(2.0 / NOISE, 1.0), CappedLinear(2.0, 1.0, over_noise=True)
    np.testing.assert_allclose(scaled.value(GAMMA, NOISE), given.value(GAMMA, NOISE))
    np.testing.assert_allclose(scaled.slope(GAMMA, NOISE), given.slope(GAMMA, NOISE))
    np.testing.assert_allclose(given.value(GAMMA, NOISE), 5.0 * np.minimum(GAMMA, 1.0))


def test_strengths_may_differ_from_column_to_column():
    lam = np.linspace(0.5, 3, GAMMA.size)
    for prior, one in ((Linear(lam), Linear), (Tanh(lam, 0.5), lambda s: Tanh(s, 0.5)), (Log(lam), Log)):
        expected = [one(s).slope(g, NOISE) for s, g in zip(lam, GAMMA, strict=True)]
        np.testing.assert_allclose(prior.slope(GAMMA, NOISE), expected)


@pytest.mark.parametrize("bad", [(0.0, 1.0), (-1.0, 1.0), (1.0, -1.0)])
def test_a_gamma_prior_needs_positive_parameters(bad):
    with pytest.raises(ValueError, match="gamma prior"):
        Gamma(*bad)


def test_a_gamma_prior_without_rate_is_refused_where_the_cost_has_no_minimum():
    """One column with θᵀy far above the noise: log|Σ_y| + yᵀΣ_y⁻¹y − 2(shape − 1) ln γ, whose constant is left out."""
    gamma, rho, noise, explained = np.geomspace(1e-2, 1e12, 200), 7.0, 0.3, 50.0

    def cost(shape):
        total = noise + gamma * rho
        return np.log(total) - explained * gamma * rho / total - 2 * (shape - 1) * np.log(gamma)

    for shape in (1.5, 1.6, 3.0):
        assert (np.diff(cost(shape)) < 1e-12).all()
        with pytest.raises(ValueError, match=r"shape < 1\.5; got .*the larger γ is, the better.*rate above 0"):
            Gamma(shape, 0.0)
        assert Gamma(shape, 1e-9).convex is not None
    assert 0 < np.argmin(cost(1.49)) < gamma.size - 1
    assert Gamma(1.49, 0.0).convex is not None


@pytest.mark.parametrize("bad", [(-1.0, 1.0), (2.0, 1.0), (1.0, 1.0)])
def test_bounds_must_be_in_order(bad):
    with pytest.raises(ValueError, match="Bounds"):
        Bounds(*bad)


PRIORS = {
    "square": Flat() & SQUARE,
    "bounds": Flat() & Bounds(0.05, 0.8),
    "upper bound": Flat() & Bounds(0.0, 0.3),
    "linear and upper bound": Linear(0.8) & Bounds(0.0, 0.3),
    "gamma": Gamma(2.0, 1.0),
    "gamma without rate": Gamma(1.2, 0.0),
    "user's with bounds": Log(0.5) & CONVEX["user's with bounds"],
    "linear": Linear(0.8),
}


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("seed", range(2))
def test_solutions_agree_with_a_generic_minimiser(prior, seed):
    theta, y = tiny_case(seed)
    lower, upper = (0.0, np.inf) if prior.convex is None else prior.convex.bounds
    floor = np.maximum(lower, 1e-8 if isinstance(prior, Gamma) else 0.0)
    reference = generic_minimum(theta, y, prior, floor, upper)
    fit = solved(theta, y, prior, tol=1e-6)
    assert fit.status is Status.CONVERGED
    assert np.all((fit.gamma >= lower) & (fit.gamma <= upper))
    np.testing.assert_allclose(full_cost(theta, y, prior, fit.gamma), reference.fun, rtol=1e-8)
    np.testing.assert_allclose(fit.gamma, reference.x, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("seed", range(4))
def test_tight_tolerances_are_reached_bounds_or_not(prior, seed):
    theta, y = tiny_case(seed)
    fit = solved(theta, y, prior, tol=1e-10, max_iter=60)
    assert fit.status is Status.CONVERGED


@pytest.mark.parametrize("convex", CONVEX.values(), ids=CONVEX)
@pytest.mark.parametrize(("m", "d"), [(12, 3), (5, 8)])
def test_the_inner_step_minimises_over_coefficients_and_variances_together(convex, m, d):
    rng = np.random.default_rng(3)
    theta, y, c = rng.normal(size=(m, d)), 2 * rng.normal(size=m), rng.uniform(0.5, 20, d)
    xi = penalised_step(twin.as_problem(theta, y), c, NOISE, convex, np.zeros(d))

    def objective(x):
        gamma = np.maximum(convex.minimiser(np.abs(x), c), 1e-300)
        penalty = np.where(x == 0, 0.0, x**2 / gamma) + c * gamma + convex.value(gamma)
        return np.sum((y - theta @ x) ** 2) / NOISE + penalty.sum()

    best = objective(xi)
    for _ in range(300):
        size = 10.0 ** rng.uniform(-6, 0)
        assert objective(xi + size * rng.normal(size=d) * (rng.random(d) < 0.5)) >= best - 1e-9 * best


@pytest.mark.parametrize("name", ["square", "upper bound", "user's with bounds"])
def test_the_inner_step_has_exact_zeros_below_the_slope_of_the_penalty(name):
    """At zero the penalty on ξ rises with slope 2√(c + f′(0)), so θᵀy must exceed σ²√(c + f′(0))."""
    rng = np.random.default_rng(4)
    rho, c = rng.uniform(0.5, 3, 9), rng.uniform(0.5, 20, 9)
    theta = twin.orthogonal_columns(rng, 12, rho)
    ratio = np.tile([0.5, 0.99, 1.01], 3)
    y = theta @ (NOISE * np.sqrt(c) * ratio * rng.choice([-1, 1], 9) / rho)
    for start in (np.zeros(9), np.ones(9)):
        xi = penalised_step(twin.as_problem(theta, y), c, NOISE, CONVEX[name], start)
        np.testing.assert_array_equal(xi == 0, ratio < 1)


@pytest.mark.parametrize("prior", [Flat() & Bounds(1e-3, 5.0), Gamma(1.2, 1.0)], ids=["lower bound", "gamma"])
@pytest.mark.parametrize("seed", range(3))
def test_some_priors_rule_out_exact_zeros(prior, seed):
    theta, y = tiny_case(seed, m=20)
    assert np.any(solved(theta, y, Flat()).gamma == 0) or seed
    assert np.all(solved(theta, y, prior).gamma > 0)


@pytest.mark.parametrize("seed", range(3))
def test_an_upper_bound_alone_keeps_exact_zeros(seed):
    rng = np.random.default_rng(seed)
    theta = twin.orthogonal_columns(rng, 30, np.full(12, 20.0))
    y = theta @ np.where(np.arange(12) < 3, 2.0, 0.0) + np.sqrt(NOISE) * rng.normal(size=30)
    fit = solved(theta, y, Flat() & Bounds(0.0, 1.0))
    unbounded = np.maximum((theta.T @ y / 20) ** 2 - NOISE / 20, 0.0)
    np.testing.assert_allclose(fit.gamma, np.minimum(unbounded, 1.0), rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(fit.gamma == 0, unbounded == 0)


def least_squares(theta, y):
    return theta.T @ y / (theta**2).sum(axis=0)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), lam=st.floats(0.01, 200), eta=st.floats(0.001, 5))
def test_the_capped_linear_prior_cuts_at_the_closed_form_from_the_start_of_ard(seed, lam, eta):
    rng = np.random.default_rng(seed)
    rho = rng.uniform(0.5, 3, 10)
    theta, y = twin.orthogonal_columns(rng, 15, rho), 1.5 * rng.normal(size=15)
    v, estimate = NOISE / rho, least_squares(theta, y)
    ard = np.maximum(estimate**2 - v, 0.0)
    fit = solved(theta, y, CappedLinear(lam, eta), start=ard)
    psi = np.sqrt(v + np.minimum(lam * v**2, eta))
    decided = np.abs(np.abs(estimate) / psi - 1) > 1e-6
    np.testing.assert_array_equal((fit.gamma > 0)[decided], (np.abs(estimate) > psi)[decided])
    beyond = ard >= eta
    np.testing.assert_allclose(fit.gamma[beyond], ard[beyond], rtol=1e-6)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    v=st.floats(1e-3, 1e2),
    xi=st.floats(0.0, 10.0),
    lam=st.floats(0.0, 1e3),
)
def test_appendix_b_the_cubic_has_exactly_one_positive_root(v, xi, lam):
    roots = np.roots([v, xi, -(lam * v + 1), -lam * xi])
    real = roots[np.abs(roots.imag) < 1e-9 * (1 + np.abs(roots))].real
    positive = real[real > 1e-9 * np.abs(roots).max()]
    assert positive.size == 1
    inflection = (-xi + np.sqrt(xi**2 + 3 * v * (1 + lam * v))) / (3 * v)
    assert positive[0] > inflection


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), lam=st.floats(0.01, 300), from_ard=st.booleans())
def test_appendix_b_fixed_points_of_the_linear_prior(seed, lam, from_ard):
    """Zero exactly where |ρ⁻¹θᵀy| ≤ √(v + λv²).

    Elsewhere √c is the root of the cubic, and u = v + γ that of λu² + u = ŷ².
    """
    rng = np.random.default_rng(seed)
    rho = rng.uniform(0.5, 3, 8)
    theta = twin.orthogonal_columns(rng, 12, rho)
    v = NOISE / rho
    cut = np.sqrt(v + lam * v**2)
    estimate = cut * rng.choice([-1, 1], 8) * np.tile([0.5, 0.999, 1.001, 2.0], 2)
    y = theta @ estimate
    start = np.maximum(estimate**2 - v, 0.0) if from_ard else None
    fit = solved(theta, y, Linear(lam), start=start)
    np.testing.assert_array_equal(fit.gamma > 0, np.abs(estimate) > cut)
    expected = (np.sqrt(1 + 4 * lam * estimate**2) - 1) / (2 * lam) - v
    kept = fit.gamma > 0
    np.testing.assert_allclose(fit.gamma[kept], expected[kept], rtol=1e-5)
    omega = np.sqrt(1 / (v + fit.gamma) + lam)
    xi = fit.gamma * omega
    cubic = v * omega**3 + xi * omega**2 - (lam * v + 1) * omega - lam * xi
    np.testing.assert_allclose(cubic[kept] / omega[kept], 0.0, atol=1e-8)


def test_a_gamma_prior_of_small_shape_never_brings_a_column_back():
    theta, y = tiny_case(0)
    start = np.array([0.5, 0.0, 0.5])
    fit = solved(theta, y, Gamma(0.6, 0.1), start=start)
    assert fit.gamma[1] == 0
    assert fit.gamma[0] > 0
    slope = Gamma(0.6, 0.1).slope(np.maximum(fit.gamma, 1e-300), NOISE)
    assert twin.evidence_violation(theta, y, fit.gamma, NOISE, extra_slope=slope) < 1e-6


UNITS = np.array([3.0, 0.02, 400.0])


@pytest.mark.parametrize("prior", [*CONCAVE.values(), *PRIORS.values()], ids=[*CONCAVE, *PRIORS])
def test_in_other_coordinates_a_prior_has_the_same_values_and_scaled_slopes(prior):
    gamma, noise_unit = np.array([0.06, 0.1, 0.25]), 7.0
    inside = in_coordinates(prior, UNITS, noise_unit)
    there, noise = gamma / UNITS, NOISE / noise_unit
    np.testing.assert_allclose(inside.value(there, noise), prior.value(gamma, NOISE), rtol=1e-13)
    np.testing.assert_allclose(inside.slope(there, noise), prior.slope(gamma, NOISE) * UNITS, rtol=1e-13)
    np.testing.assert_allclose(
        inside.curvature(there, noise), prior.curvature(gamma, NOISE) * UNITS**2, rtol=1e-6, atol=1e-12
    )
    if prior.convex is None:
        assert inside.convex is None
        return
    ours, theirs = inside.convex, prior.convex
    np.testing.assert_allclose(ours.value(there), theirs.value(gamma), rtol=1e-13)
    np.testing.assert_allclose(ours.slope(there), theirs.slope(gamma) * UNITS, rtol=1e-13)
    for mine, other in zip(ours.bounds, theirs.bounds, strict=True):
        np.testing.assert_allclose(mine * UNITS, np.broadcast_to(other, 3))
    size, c = np.array([0.2, 0.5, 1.0]), np.array([1.0, 2.0, 0.3])
    np.testing.assert_allclose(
        ours.minimiser(size / np.sqrt(UNITS), c * UNITS) * UNITS, theirs.minimiser(size, c), rtol=1e-10
    )


@pytest.mark.parametrize(
    "prior",
    [*PRIORS.values(), CappedLinear(0.5, 0.4, over_noise=True)],
    ids=[*PRIORS, "capped over noise"],
)
def test_in_other_coordinates_a_prior_has_the_same_solution(prior):
    theta, y = tiny_case(1)
    column_units, unit = np.array([2.0, 0.25, 16.0]), 4.0
    inside = in_coordinates(prior, (unit / column_units) ** 2, unit**2)
    scaled = Setting(twin.as_problem(theta / column_units, y / unit), inside, NoiseRule(NOISE / unit**2), np.ones(3))
    there = solve(scaled, tol=1e-8, max_iter=100)
    here = solved(theta, y, prior, tol=1e-8, max_iter=100)
    np.testing.assert_allclose(there.gamma * (unit / column_units) ** 2, here.gamma, rtol=1e-5, atol=1e-10)


def test_a_prior_with_a_convex_part_takes_no_second_one():
    with pytest.raises(ValueError, match="convex part of its own"):
        Gamma(2.0, 1.0) & Bounds(0.0, 1.0)
    with pytest.raises(ValueError, match="convex one"):
        Bounds(0.0, 1.0) & Bounds(0.0, 2.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        Linear(1.0) & Linear(1.0)
    assert (Bounds(0.0, 1.0) & Linear(1.0)).convex is not None


@pytest.mark.parametrize("prior", [CappedLinear, Tanh, Log])
@pytest.mark.parametrize(("lam", "eta"), [(-1.0, 1.0), (np.nan, 1.0), (np.inf, 1.0), (1.0, 0.0), (1.0, np.nan)])
def test_priors_refuse_strengths_that_are_none(prior, lam, eta):
    with pytest.raises(ValueError, match="lam >= 0"):
        prior(lam, eta)
