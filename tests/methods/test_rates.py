import numpy as np
import pytest
from scipy import special, stats

from ardea import rates

STRENGTHS = {"vi": 4.0, "r": 60.0, "m": 0.2, "l": 0.8, "map": 1.5}
SIGMA, RHO = 0.3, 2.0
TARGETS = [1e-300, 1e-100, 1e-20, 1e-9, 1e-4, 0.01, 0.1, 0.25, 0.317]
DRAWS = 400_000


def scalar_fixed_point(method, strength, estimate, v):
    """Return which columns a method keeps on orthogonal columns, from its own rule (not from the cut's closed form).

    ARD keeps γ = max(ŷ² − v, 0) with posterior mean γŷ/(γ + v) and variance γv/(γ + v); ARDvi does so at αv; ARDr asks
    that the slope of the cost at γ = 0, 1/v + λ − ŷ²/v², be negative.
    """
    if method == "vi":
        return estimate**2 > strength * v
    if method == "r":
        return estimate**2 / v**2 > 1 / v + strength
    gamma = np.maximum(estimate**2 - v, 0.0)
    mean, variance = gamma * estimate / (gamma + v), np.maximum(gamma * v / (gamma + v), 1e-300)
    kept = gamma > 0
    if method == "m":
        return kept & (np.abs(mean) >= strength)
    exponent = mean**2 / (2 * variance)
    if method == "map":
        return kept & (exponent >= strength)
    return kept & (np.exp(-exponent) / np.sqrt(2 * np.pi * variance) <= strength)


def assert_within_binomial_error(simulated, rate, draws):
    assert abs(simulated - rate) < 4 * np.sqrt(rate * (1 - rate) / draws) + 4 / draws


def simulated_keep_rate(method, strength, xi, *, rho=RHO, sigma=SIGMA, seed=0):
    v = sigma**2 / rho
    estimate = xi + np.sqrt(v) * np.random.default_rng(seed).normal(size=DRAWS)
    return scalar_fixed_point(method, strength, estimate, v).mean()


@pytest.mark.parametrize("method", rates.METHODS)
def test_false_positive_rate_is_that_of_the_scalar_problem(method):
    rate = float(rates.false_positive_rate(method, STRENGTHS[method], rho=RHO, sigma=SIGMA))
    assert 0.001 < rate < 0.3
    assert_within_binomial_error(simulated_keep_rate(method, STRENGTHS[method], 0.0), rate, DRAWS)


@pytest.mark.parametrize("method", rates.METHODS)
@pytest.mark.parametrize("xi", [-0.7, 0.1, 0.4])
def test_false_negative_rate_is_that_of_the_scalar_problem(method, xi):
    rate = float(rates.false_negative_rate(method, STRENGTHS[method], xi, rho=RHO, sigma=SIGMA))
    assert_within_binomial_error(1 - simulated_keep_rate(method, STRENGTHS[method], xi), rate, DRAWS)


def test_the_printed_false_negative_formula_with_sigma_psi_is_wrong():
    sigma, alpha, xi = 0.1, 4.0, 0.25
    psi = float(rates.psi("vi", alpha, sigma=sigma))
    missed = 1 - simulated_keep_rate("vi", alpha, xi, rho=1.0, sigma=sigma)

    def general_formula(cut):
        a, b = (xi + cut) / (np.sqrt(2) * sigma), (xi - cut) / (np.sqrt(2) * sigma)
        return 0.5 * (special.erf(a) - special.erf(b))

    assert_within_binomial_error(missed, general_formula(psi), DRAWS)
    assert missed > 5 * general_formula(sigma * psi)
    np.testing.assert_allclose(
        rates.false_negative_rate("vi", alpha, xi, sigma=sigma), general_formula(psi), rtol=1e-12
    )


@pytest.mark.parametrize("method", rates.METHODS)
def test_false_negative_rate_at_zero_is_the_complement_of_the_false_positive_rate(method):
    strength = np.geomspace(1e-3, 1e2, 30)
    missed = rates.false_negative_rate(method, strength, 0.0, rho=RHO, sigma=SIGMA)
    added = rates.false_positive_rate(method, strength, rho=RHO, sigma=SIGMA)
    np.testing.assert_allclose(missed + added, 1.0, rtol=1e-13)


@pytest.mark.parametrize("method", rates.METHODS)
@pytest.mark.parametrize(("rho", "sigma"), [(1.0, 1.0), (250.0, 0.1), (1e-2, 3.0)])
def test_the_strength_for_a_rate_has_that_rate(method, rho, sigma):
    targets = np.array(TARGETS)
    strength = rates.strength_for(method, targets, rho=rho, sigma=sigma)
    reached = rates.false_positive_rate(method, strength, rho=rho, sigma=sigma)
    np.testing.assert_allclose(reached, targets, rtol=1e-10)


def test_only_variance_inflation_reaches_rates_above_plain_ards():
    above = 0.9
    assert float(rates.strength_for("vi", above)) < 1
    np.testing.assert_allclose(rates.false_positive_rate("vi", rates.strength_for("vi", above)), above, rtol=1e-12)
    for method in ("r", "m", "map"):
        assert float(rates.strength_for(method, above)) == 0
        np.testing.assert_allclose(rates.false_positive_rate(method, 0.0), rates.NO_PRUNING_RATE, rtol=1e-14)
    assert np.isposinf(rates.strength_for("l", above))
    np.testing.assert_allclose(rates.false_positive_rate("l", np.inf), rates.NO_PRUNING_RATE, rtol=1e-14)


@pytest.mark.parametrize("method", rates.METHODS)
@pytest.mark.parametrize("to", rates.METHODS)
def test_equivalent_strengths_go_there_and_back(method, to):
    strength = STRENGTHS[method] * np.array([1.0, 1.5, 3.0] if method != "l" else [1.0, 0.1, 1e-3])
    there = rates.equivalent(method, strength, to, rho=RHO, sigma=SIGMA)
    np.testing.assert_allclose(
        rates.cut(to, there, rho=RHO, sigma=SIGMA), rates.cut(method, strength, rho=RHO, sigma=SIGMA), rtol=1e-12
    )
    back = rates.equivalent(to, there, method, rho=RHO, sigma=SIGMA)
    np.testing.assert_allclose(back, strength, rtol=1e-10)


def test_map_and_inflation_are_related_by_alpha_is_two_tau_plus_one():
    tau = np.array([0.0, 0.3, 2.0, 50.0])
    for rho, sigma in ((1.0, 1.0), (7.0, 0.01)):
        alpha = rates.equivalent("map", tau, "vi", rho=rho, sigma=sigma)
        np.testing.assert_allclose(alpha, 2 * tau + 1, rtol=1e-14)


def test_cuts_are_the_closed_forms_of_the_paper():
    v, tau = SIGMA**2 / RHO, 0.4
    at = {"rho": RHO, "sigma": SIGMA}
    np.testing.assert_allclose(rates.psi("vi", 3.0, **at), np.sqrt(3 * v))
    np.testing.assert_allclose(rates.psi("map", 3.0, **at), np.sqrt(7 * v))
    np.testing.assert_allclose(rates.psi("r", 9.0, **at), np.sqrt(v + 9 * v**2))
    np.testing.assert_allclose(rates.psi("m", tau, **at), tau / 2 + np.sqrt(tau**2 + 4 * v) / 2)
    w = (float(rates.cut("l", tau, **at)) ** 2 - 1) / 2
    np.testing.assert_allclose(np.log((1 + 2 * w) / w) - 2 * w, np.log(4 * np.pi * v * tau**2), rtol=1e-12)


@pytest.mark.parametrize("method", rates.METHODS)
def test_extreme_arguments_stay_finite_and_monotone(method):
    strength = np.geomspace(1e-300, 1e300, 601)
    if method == "l":
        strength = strength[::-1]
    for rho, sigma in ((1.0, 1.0), (1e100, 1e-100), (1e-100, 1e100), (1e150, 1.0)):
        added = rates.false_positive_rate(method, strength, rho=rho, sigma=sigma)
        missed = rates.false_negative_rate(method, strength, sigma / np.sqrt(rho), rho=rho, sigma=sigma)
        for rate in (added, missed):
            assert np.all((rate >= 0) & (rate <= 1))
        assert np.all(np.diff(added) <= 0)
        assert np.all(np.diff(missed) >= -1e-15)


@pytest.mark.parametrize("method", rates.METHODS)
def test_false_negative_rate_falls_with_the_coefficient_to_the_last_digit(method):
    xi = np.geomspace(1e-3, 30, 200)
    missed = rates.false_negative_rate(method, STRENGTHS[method], xi)
    unsaturated = missed[missed < 0.999]
    assert np.all(np.diff(unsaturated) < 0)
    assert 0 < missed[-1] < 1e-100
    np.testing.assert_array_equal(missed, rates.false_negative_rate(method, STRENGTHS[method], -xi))


def test_rates_keep_their_digits_in_the_tail():
    tail = special.log_ndtr(2.0 - 20.0)
    np.testing.assert_allclose(np.log(rates.false_negative_rate("vi", 4.0, 20.0)), tail, rtol=1e-13)
    assert float(rates.false_negative_rate("vi", 4.0, 1e300)) == 0
    assert float(rates.false_negative_rate("vi", np.inf, 3.0)) == 1
    assert float(rates.false_positive_rate("l", 0.0)) == 0


def test_arguments_broadcast():
    rate = rates.false_negative_rate("r", np.ones((3, 1)), np.ones((1, 4)), rho=np.ones(4), sigma=2.0)
    assert rate.shape == (3, 4)
    assert rates.strength_for("m", np.full((2, 1), 0.1), rho=np.ones(5)).shape == (2, 5)


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_bad_strengths_are_refused(bad):
    for method in rates.METHODS:
        with pytest.raises(ValueError, match="strength"):
            rates.cut(method, bad)
        with pytest.raises(ValueError, match="strength"):
            rates.false_negative_rate(method, bad, 1.0)
        with pytest.raises(ValueError, match="strength"):
            rates.equivalent(method, bad, "vi")


@pytest.mark.parametrize("bad", [{"rho": 0.0}, {"rho": -1.0}, {"sigma": 0.0}, {"sigma": np.nan}])
def test_bad_scales_are_refused(bad):
    for function in (rates.cut, rates.psi, rates.false_positive_rate):
        with pytest.raises(ValueError, match="positive"):
            function("m", 1.0, **bad)
    with pytest.raises(ValueError, match="positive"):
        rates.strength_for("vi", 0.1, **bad)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.1, np.nan])
def test_bad_rates_are_refused(bad):
    with pytest.raises(ValueError, match=r"\(0, 1\]"):
        rates.strength_for("vi", bad)


def test_unknown_methods_are_refused_by_name():
    with pytest.raises(ValueError, match="'lasso'"):
        rates.cut("lasso", 1.0)
    with pytest.raises(ValueError, match="'lasso'"):
        rates.strength_for("lasso", 0.1)
    with pytest.raises(ValueError, match="'lasso'"):
        rates.equivalent("vi", 1.0, "lasso")


# Whole problems, curves and limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", rates.METHODS)
def test_expected_terms_are_the_sums_of_the_rates(method):
    rng = np.random.default_rng(0)
    xi, rho = np.where(np.arange(30) < 6, rng.normal(size=30), 0.0), rng.uniform(1, 3, 30)
    added, missed = rates.expected_terms(method, 0.5, xi, rho=rho, sigma=0.3)
    each = [
        rates.false_negative_rate(method, 0.5, x, rho=r, sigma=0.3)
        if x
        else rates.false_positive_rate(method, 0.5, rho=r, sigma=0.3)
        for x, r in zip(xi, rho, strict=True)
    ]
    np.testing.assert_allclose([added, missed], [sum(each[6:]), sum(each[:6])], rtol=1e-12)


def test_expected_terms_of_several_strengths_and_noises():
    added, missed = rates.expected_terms("map", np.ones((4, 1, 1)), np.ones(7), sigma=np.ones((1, 3, 1)))
    assert added.shape == missed.shape == (4, 3)
    with pytest.raises(ValueError, match="finite"):
        rates.expected_terms("map", 1.0, [np.nan])


def test_for_one_column_every_method_has_the_same_operating_curve():
    curves = [rates.operating_curve(method, [1.0, 2.0], rho=2.0, sigma=0.7) for method in rates.METHODS]
    for curve in curves:
        assert curve.false_negative.shape == curve.strength.shape == curve.false_positive.shape == (2, 200)
        np.testing.assert_allclose(curve.false_negative, curves[0].false_negative, rtol=1e-9)
        assert np.all(np.diff(curve.false_negative) < 0)


def leading_psi(method, strength, rho, sigma):
    """Eq. (large_rho) with ψ_ARDr and ψ_L put right."""
    v = sigma**2 / rho
    return {
        "vi": np.sqrt(strength * v),
        "map": np.sqrt((1 + 2 * strength) * v),
        "r": np.sqrt(v),
        "m": strength,
        "l": np.sqrt(v * (1 - np.log(2 * np.pi * v * strength**2))),
    }[method]


@pytest.mark.parametrize("method", rates.METHODS)
def test_the_cut_for_large_rho(method):
    ratios = [
        float(rates.psi(method, 3.0, rho=rho, sigma=0.5)) / leading_psi(method, 3.0, rho, 0.5) for rho in (1e6, 1e9)
    ]
    assert abs(ratios[0] - 1) < 0.01
    assert abs(ratios[1] - 1) <= max(abs(ratios[0] - 1), 1e-14)


def test_false_positives_for_large_rho():
    """Constant for vi and map; to that of plain ARD for r (the printed O(1/ρ) would give 1); to 0 for m and l."""
    rho = np.geomspace(1e3, 1e15, 5)
    found = {method: rates.false_positive_rate(method, 3.0, rho=rho) for method in rates.METHODS}
    for method in ("vi", "map"):
        np.testing.assert_allclose(found[method], found[method][0], rtol=1e-12)
    assert np.all(np.diff(found["r"]) > 0)
    np.testing.assert_allclose(found["r"][-1], rates.NO_PRUNING_RATE, rtol=1e-6)
    for method in ("m", "l"):
        assert np.all(np.diff(found[method]) <= 0)
    assert found["m"][-1] == 0
    assert 0 < found["l"][-1] < 1e-6


@pytest.mark.parametrize("degrees", [3, 12, 200])
@pytest.mark.parametrize("method", ["vi", "map"])
def test_with_learned_noise_a_column_alone_has_the_rate_asked_for(method, degrees):
    """Of one column that explains a share r² of y, r² ~ Beta(½, ν/2): both cuts lie where P(r² > cut) is the rate."""
    rate = np.array([0.2, 0.05, 1e-3])
    strength = rates.strength_for(method, rate, degrees=degrees)
    # ARDvi lets a column in where r² > α/m; ARD's t² = ν r²/(1 − r²) meets 1 + 2τ.
    t_square = 1 + 2 * strength
    cut = strength / (degrees + 1) if method == "vi" else t_square / (degrees + t_square)
    np.testing.assert_allclose(stats.beta(0.5, degrees / 2).sf(cut), rate, rtol=1e-9)


def test_with_many_rows_learned_noise_is_as_good_as_known():
    for method in rates.METHODS:
        np.testing.assert_allclose(
            rates.strength_for(method, 0.01, degrees=1e9), rates.strength_for(method, 0.01), rtol=1e-6, atol=0
        )
