"""Equations found from data: what Discovery does with every kind of data, and what can be read off the model."""

import io
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sympy
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.interpolate import make_interp_spline
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from ardea import SparseARD
from ardea.dynamics import AmbiguityWarning, Custom, Discovery, FieldTerms, Polynomials, systems
from ardea.dynamics.discovery import regressor_supports
from ardea.dynamics.search import scored, whitened
from ardea.names import Rival
from ardea.show import model_html

NAMES = ["x", "y", "z"]
LORENZ = [{"x", "y"}, {"x", "y", "x z"}, {"z", "x y"}]


@pytest.fixture(scope="module")
def lorenz():
    return systems.lorenz63().simulate()


@pytest.fixture(scope="module")
def noisy_lorenz():
    return systems.lorenz63().noisy(0.01, seed=5)


@pytest.fixture(scope="module")
def model(noisy_lorenz):
    t, x = noisy_lorenz
    return Discovery(Polynomials(3)).fit(x, t, feature_names=NAMES)


@pytest.fixture(scope="module")
def swing():
    """An oscillator at a step of 0.1, whose search is quick, and its model: for how data are read."""
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    t, x = 0.1 * np.arange(125), x[::4]
    return t, x, Discovery(Polynomials(1)).fit(x, t, feature_names=["q", "p"])


def terms_of(found):
    return [set(equation.terms) for equation in found.equations_]


# Kinds of data --------------------------------------------------------------------------------------------------------


def test_lorenz_is_found_with_error_bars_that_hold_the_truth(model):
    assert terms_of(model) == LORENZ
    truth = systems.lorenz63().true_coefficients(Polynomials(3))
    off = np.abs(model.coefficients() - truth) / np.where(model.coef_std_ > 0, model.coef_std_, 1.0)
    assert off.max() < 4
    assert model.complexity == 7
    for equation in model.equations_:
        assert equation.noise == pytest.approx(0.01 * systems.lorenz63().simulate()[1].std(), rel=0.25)


@pytest.mark.parametrize("form", ["weak", "derivative"])
def test_data_without_noise(lorenz, form):
    t, x = lorenz
    found = Discovery(Polynomials(2), form=form).fit(x, t, feature_names=NAMES)
    assert terms_of(found) == LORENZ
    tolerance = 2e-3 if form == "weak" else 0.1  # windows of five steps, and differences, at this coarse step
    truth = systems.lorenz63().true_coefficients(Polynomials(2))
    np.testing.assert_allclose(found.coef_, truth, rtol=tolerance, atol=1e-12)


def test_derivative_form_with_noise():
    """Of data sampled finely enough that differences are not mostly truncation error."""
    t = 0.01 * np.arange(250)
    _, x = systems.lorenz63().simulate(t=t)
    x = x + 0.001 * x.std() * np.random.default_rng(3).normal(size=x.shape)
    assert terms_of(Discovery(Polynomials(2), form="derivative").fit(x, t, feature_names=NAMES)) == LORENZ


def test_derivatives_by_splines_and_by_fourier_modes():
    t = np.linspace(0, 8 * np.pi, 320, endpoint=False)
    rng = np.random.default_rng(0)
    x = np.column_stack([np.cos(t), -np.sin(t)]) + 0.01 * rng.normal(size=(320, 2))
    for kind in ("smoothed", "spectral"):
        found = Discovery(Polynomials(2), form="derivative", differentiation=kind).fit(x, t)
        assert terms_of(found) == [{"x1"}, {"x0"}], kind


def test_gaps_and_missing_rows(noisy_lorenz):
    t, x = noisy_lorenz
    holes = x.copy()
    holes[100] = np.nan
    holes[180:190, 1] = np.nan
    assert terms_of(Discovery(Polynomials(2)).fit(holes, t, feature_names=NAMES)) == LORENZ
    kept = np.delete(np.arange(len(t)), [60, 61, 150])
    assert terms_of(Discovery(Polynomials(2)).fit(x[kept], t[kept], feature_names=NAMES)) == LORENZ


def test_masked_cells_are_missing(swing):
    t, x, _ = swing
    holes, mask = x.copy(), np.zeros(x.shape, dtype=bool)
    mask[50], mask[80:90, 1] = True, True
    holes[mask] = np.nan
    masked = np.ma.masked_array(np.where(mask, -999.0, x), mask)
    first, second = (Discovery(Polynomials(1)).fit(one, t) for one in (masked, holes))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    late = np.ma.masked_array(t, mask.any(axis=1))
    first = Discovery(Polynomials(1)).fit(np.where(late.mask[:, None], np.nan, x), t)
    np.testing.assert_array_equal(Discovery(Polynomials(1)).fit(x, late).coef_, first.coef_)
    dates = np.datetime64("2024-01-01", "us") + np.round(1e6 * t).astype("timedelta64[us]")
    dated = Discovery(Polynomials(1)).fit(x, np.ma.masked_array(dates, late.mask))
    np.testing.assert_allclose(dated.coef_, first.coef_, rtol=1e-6, atol=1e-9)


def test_uneven_times():
    rng = np.random.default_rng(4)
    t = np.concatenate([[0.0], np.cumsum(rng.uniform(0.5, 1.5, size=400) * 0.03)])
    _, x = systems.lorenz63().simulate(t=t)
    x = x + 0.01 * x.std() * rng.normal(size=x.shape)
    assert terms_of(Discovery(Polynomials(2)).fit(x, t, feature_names=NAMES)) == LORENZ


def test_several_short_trajectories():
    rng = np.random.default_rng(5)
    t = 0.05 * np.arange(60)
    starts = [rng.normal(size=3) * 8 + [0, 0, 25] for _ in range(5)]
    x = [systems.lorenz63().simulate(x0=start, t=t)[1] for start in starts]
    x = [one + 0.01 * one.std() * rng.normal(size=one.shape) for one in x]
    together = Discovery(Polynomials(2)).fit(x, [t] * 5, feature_names=NAMES)
    assert terms_of(together) == LORENZ
    by_step = Discovery(Polynomials(2)).fit(x, 0.05, feature_names=NAMES)
    np.testing.assert_allclose(by_step.coef_, together.coef_, rtol=1e-6)


def test_channels_whose_noise_differs_tenfold(lorenz):
    t, x = lorenz
    rng = np.random.default_rng(6)
    share = np.array([0.02, 0.002, 0.02])
    noisy = x + share * x.std(axis=0) * rng.normal(size=x.shape)
    assert terms_of(Discovery(Polynomials(3)).fit(noisy, t, feature_names=NAMES)) == LORENZ


def test_derivatives_may_be_given(lorenz):
    t, x = lorenz
    rng = np.random.default_rng(7)
    slopes = systems.lorenz63().exact_derivative(x) + 0.5 * rng.normal(size=x.shape)
    found = Discovery(Polynomials(3)).fit(x, t, x_dot=slopes, feature_names=NAMES)
    assert terms_of(found) == LORENZ
    assert [equation.noise for equation in found.equations_] == pytest.approx([0.5] * 3, rel=0.15)


def test_control_inputs():
    t = np.arange(0, 20, 0.05)
    push = np.sin(1.3 * t) + np.cos(0.6 * t)

    def flow(s, v):
        return [v[1], -v[0] - 0.2 * v[1] + 2 * (np.sin(1.3 * s) + np.cos(0.6 * s))]

    x = solve_ivp(flow, (0, 20), [1.0, 0.0], t_eval=t, rtol=1e-9, atol=1e-9).y.T
    x = x + 0.01 * x.std() * np.random.default_rng(8).normal(size=x.shape)
    found = Discovery(Polynomials(2)).fit(x, t, u=push, feature_names=["x", "v"])
    assert terms_of(found) == [{"v"}, {"x", "v", "u0"}]
    np.testing.assert_allclose(found.coef_[1][np.flatnonzero(found.coef_[1])], [-1.0, -0.2, 2.0], rtol=0.05)


def test_maps():
    t, x = systems.henon_map().noisy(0.005, seed=1)
    found = Discovery(discrete_time=True).fit(x, t, feature_names=["x", "y"])
    assert terms_of(found) == [{"1", "x^2", "y"}, {"x"}]


@pytest.mark.parametrize("name", ["van_der_pol", "duffing", "selkov", "slow_manifold", "sir", "pendulum"])
def test_decaying_slow_and_spiking_systems(name):
    system = getattr(systems, name)()
    t, x = system.noisy(0.01, seed=3)
    found = Discovery(system.library).fit(x, t, feature_names=list(system.feature_names))
    np.testing.assert_array_equal(found.coef_ != 0, system.true_coefficients(system.library) != 0)


def test_five_percent_noise_needs_all_equations_together():
    t, x = systems.lorenz63().noisy(0.05, seed=1)
    assert terms_of(Discovery(Polynomials(3)).fit(x, t, feature_names=NAMES)) == LORENZ


def test_an_estimator_may_propose_the_terms(noisy_lorenz):
    t, x = noisy_lorenz
    found = Discovery(Polynomials(2), regressor=SparseARD(fit_intercept=False)).fit(x, t, feature_names=NAMES)
    assert terms_of(found) == LORENZ


@pytest.mark.parametrize("seed", range(3))
def test_an_estimator_sees_all_rows(seed):
    """With derivatives given, the terms that it proposes are those that it finds on the rows themselves."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(500, 8))
    x_dot = x[:, [0, 1, 2]] @ [0.3, -0.2, 0.15] + rng.normal(size=500)
    regressor = SparseARD(fit_intercept=False)
    found = Discovery(Polynomials(1), regressor=regressor).fit(x, 1.0, x_dot=np.tile(x_dot[:, None], 8))
    plain = clone(regressor).fit(Polynomials(1).evaluate(x), x_dot)
    problem, unit = whitened(found.searched_.results[0].rows, found.searched_.results[0].fit)
    assert problem.n_rows == 500
    assert regressor_supports(regressor, problem, unit) == [tuple(np.flatnonzero(plain.support_))]


def test_an_estimator_with_an_intercept_is_refused(noisy_lorenz):
    t, x = noisy_lorenz
    with pytest.raises(ValueError, match=r"the constant is a term .* Give SparseARD\(fit_intercept=False\)"):
        Discovery(regressor=SparseARD()).fit(x, t)
    with pytest.raises(TypeError, match="regressor must be one of ardea's estimators"):
        Discovery(regressor=LinearRegression()).fit(x, t)


def test_functions_of_ones_own():
    t = np.arange(0, 12, 0.02)
    x = solve_ivp(lambda s, v: [-0.5 * np.exp(v[0]) + np.cos(s)], (0, 12), [0.5], t_eval=t, rtol=1e-9, atol=1e-9).y.T
    x = x + 0.005 * x.std() * np.random.default_rng(9).normal(size=x.shape)
    library = Polynomials(2) + Custom([np.exp], ["exp({})"])
    found = Discovery(library).fit(x, t, u=np.cos(t), feature_names=["x", "c"])
    assert terms_of(found) == [{"c", "exp(x)"}]


# Reading the model ----------------------------------------------------------------------------------------------------


def test_equations_are_written(model):
    assert [sorted(line.replace("- ", "+ -").split(" + ")[0].split()[1:]) for line in model.equations()]
    written = io.StringIO()
    model.print(file=written)
    lines = written.getvalue().splitlines()
    assert lines[0].startswith("(x)' = (-") or lines[0].startswith("(x)' = (")
    assert " ± " in lines[0]
    assert model.equations(precision=1)[0] in ("-10.0 x + 10.0 y", "-9.9 x + 9.9 y", "-10.1 x + 10.1 y")
    assert model.latex().startswith("\\begin{aligned}\n\\dot{x} &= ")
    assert model.get_feature_names()[:4] == ["1", "x", "y", "z"]


def test_sympy_expressions_have_the_coefficients(model):
    x, y, z = sympy.symbols("x y z")
    values = {x: 1.3, y: -0.7, z: 2.1}
    expected = Polynomials(3).evaluate([[1.3, -0.7, 2.1]])[0] @ model.coef_.T
    np.testing.assert_allclose([float(e.subs(values)) for e in model.sympy()], expected, rtol=1e-12)


def test_the_model_predicts_and_scores(model, lorenz, noisy_lorenz):
    t, x = lorenz
    exact = systems.lorenz63().exact_derivative(x)
    np.testing.assert_allclose(model.predict(x), exact, atol=0.02 * exact.std())
    assert model.score(x, t) > 0.999
    assert model.score(x, t, x_dot=exact) > 0.999
    assert model.score(noisy_lorenz[1], t) > 0.99


def test_simulations_have_bands_that_hold_the_truth(model, lorenz):
    t, x = lorenz
    run = model.simulate(x[0], t[:20])
    assert run.shape == (20, 3)
    bands = model.simulate(x[0], t[:20], n_samples=60, random_state=0, level=0.99)
    assert np.all(bands.lower[1:] < bands.upper[1:])
    inside = (x[:20] >= bands.lower - 1e-6) & (x[:20] <= bands.upper + 1e-6)
    assert inside.mean() > 0.9
    again = model.simulate(x[0], t[:20], n_samples=60, random_state=0, level=0.99)
    np.testing.assert_array_equal(bands.upper, again.upper)


def test_draws_have_the_mean_and_covariance_of_the_coefficients(model):
    draws = model.sample(4000, random_state=1)
    assert np.all(draws[:, model.coef_ == 0] == 0)
    support = list(model.equations_[1].support)
    np.testing.assert_allclose(draws[:, 1, support].mean(axis=0), model.coef_[1, support], atol=5e-3)
    np.testing.assert_allclose(np.cov(draws[:, 1, support].T), model.coef_covariance_[1], rtol=0.15, atol=1e-7)


def test_inclusion_is_high_for_the_terms_found_and_seeded(model):
    first, second = (model.inclusion(n_resamples=8, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first[model.coef_ != 0].min() > 0.7
    assert first[model.coef_ == 0].mean() < 0.05


def test_frames_bring_their_names(noisy_lorenz):
    t, x = noisy_lorenz
    found = Discovery(Polynomials(2)).fit(pd.DataFrame(x, columns=["a", "b", "c"]), t)
    assert terms_of(found) == [{"a", "b"}, {"a", "b", "a c"}, {"c", "a b"}]


def test_xarray_fields_bring_coordinates_and_names():
    system = systems.burgers()
    t, u = system.noisy(0.01, seed=0)
    field = xr.DataArray(u, dims=("s", "t"), coords={"s": system.space[0], "t": t}, name="w")
    found = Discovery(FieldTerms(1, 2)).fit(field)
    assert terms_of(found) == [{"w w_s", "w_ss"}]
    given = Discovery(FieldTerms(1, 2)).fit(u, t, space=system.space, feature_names=["w"])
    np.testing.assert_allclose(found.coef_, given.coef_, rtol=1e-10)


def test_dates_give_the_rates_of_the_numbers_they_stand_for(swing):
    t, x, model = swing
    exact = np.round(1e6 * t).astype("timedelta64[us]")  # one unit of time is a second, the step 0.1 s
    when = np.datetime64("2024-03-31T01:30", "us") + exact
    zoned = pd.DatetimeIndex(when).tz_localize("UTC").tz_convert("Europe/Vienna")  # clocks are put forward inside
    kinds = [when, pd.DatetimeIndex(when), pd.Series(when), zoned, exact, list(pd.DatetimeIndex(when).to_pydatetime())]
    for kind in kinds:
        found = Discovery(Polynomials(1)).fit(x, kind)
        assert found.time_unit_ == "s"
        np.testing.assert_allclose(found.coef_, model.coef_, rtol=1e-6, atol=1e-9)
    assert model.time_unit_ is None
    np.testing.assert_allclose(found.simulate(x[0], when[:20]), model.simulate(x[0], t[:20]), rtol=1e-5)
    assert found.score(x, when) == pytest.approx(model.score(x, t), abs=1e-6)
    slow = Discovery(Polynomials(1)).fit(x, np.datetime64("2024-01-01") + 3600 * exact)
    assert slow.time_unit_ == "min"  # a step of 360 s
    np.testing.assert_allclose(slow.coef_ * 60, model.coef_, rtol=1e-6, atol=1e-9)
    told = io.StringIO()
    slow.print(file=told)
    assert told.getvalue().rstrip().endswith("rates of change are per minute.")


def test_the_unit_of_dates_may_be_chosen_and_never_guessed_for_numbers(swing):
    t, x, model = swing
    when = np.datetime64("2024-01-01", "us") + np.round(1e6 * t).astype("timedelta64[us]")
    hourly = Discovery(Polynomials(1)).fit(x, when, time_unit="h")
    np.testing.assert_allclose(hourly.coef_ / 3600, model.coef_, rtol=1e-6, atol=1e-9)
    told = Discovery(Polynomials(1)).fit(x, t, time_unit="d")
    assert told.time_unit_ == "d"
    assert np.array_equal(told.coef_, model.coef_)
    with pytest.raises(ValueError, match="not dates"):
        model.simulate(x[0], when[:20])
    with pytest.raises(ValueError, match="choose 's', 'min', 'h', 'd'"):
        Discovery().fit(x, when, time_unit="fortnight")
    with pytest.raises(ValueError, match="to_datetime"):
        Discovery().fit(x, [str(one) for one in when])
    with pytest.raises(ValueError, match="one kind"):
        Discovery().fit([x, x], [when, t])
    with pytest.raises(ValueError, match="one date"):
        Discovery().fit(x, when[0])


@pytest.mark.parametrize("step", [pd.Timedelta("100ms"), np.timedelta64(100, "ms")], ids=lambda one: type(one).__name__)
def test_a_step_may_be_a_duration(swing, step):
    _, x, model = swing
    one = Discovery(Polynomials(1)).fit(x, step)
    assert one.time_unit_ == "s"
    np.testing.assert_allclose(one.coef_, model.coef_, rtol=1e-6, atol=1e-9)
    halves, numbers = (Discovery(Polynomials(1), form="weak").fit([x[:60], x[60:]], each) for each in (step, 0.1))
    np.testing.assert_allclose(halves.coef_, numbers.coef_, rtol=1e-9)


def test_what_the_fit_warned_of_is_shown_in_a_notebook():
    t, x = systems.lorenz63().noisy(0.1, seed=2)
    x[:, 2] = 1 + 0.01 * np.random.default_rng(0).normal(size=len(x))
    with pytest.warns(AmbiguityWarning):
        found = Discovery(Polynomials(1), form="weak").fit(x, t, feature_names=NAMES, time_unit="h")
    (doubt,) = [one for one in found.warnings_ if "fixed point" in one]
    assert doubt.split("(")[0] in model_html(found)
    assert "rates of change are per hour" in model_html(found)


def test_dated_fields_have_rates_in_their_unit():
    x, t = np.linspace(0, 20, 100), np.linspace(0, 6, 80)
    u = np.sin(x[:, None] - t) + 0.5 * np.sin(2 * (x[:, None] - t))
    when = np.datetime64("2024-01-01", "us") + np.round(3.6e9 * 24 * t).astype("timedelta64[us]")
    field = xr.DataArray(u, dims=["x", "t"], coords={"x": x, "t": when})
    found = []
    for data in ((u, t), (u, when), (field, None)):
        with pytest.warns(AmbiguityWarning, match="u is one shape that only moves"):
            found.append(Discovery(FieldTerms(1, 2)).fit(*data, space=(x,), time_unit="d"))
    assert [one.time_unit_ for one in found] == ["d"] * 3
    for one in found[1:]:
        np.testing.assert_allclose(one.coef_, found[0].coef_, rtol=1e-6, atol=1e-9)


def test_a_rival_is_compared_with_a_whitening_of_its_own():
    """Its excess is the difference of the scores that a tournament gives, and the warning is kept."""
    t, x = systems.lorenz63().noisy(0.05, seed=3)
    with pytest.warns(AmbiguityWarning, match="hardly tell") as caught:
        found = Discovery(form="weak").fit(x, t, feature_names=NAMES)
    assert found.warnings_ == [str(one.message) for one in caught]
    one, equation = found.searched_.results[1], found.equations_[1]
    rival = equation.rivals[0]
    assert abs(rival.excess) < 1
    support = tuple(found.get_feature_names().index(term) for term in rival.terms)
    scores = [scored(one.rows, each, one.rows.fitted(each, passes=3)).score for each in (support, one.support)]
    assert rival.excess == pytest.approx(scores[0] - scores[1], abs=0.01)
    assert [other.excess for other in equation.rivals] == sorted(other.excess for other in equation.rivals)


def test_a_rival_that_is_better_is_said_to_be(model):
    better = replace(model.equations_[0], rivals=(Rival(("x", "z"), -14.0), Rival(("y",), -0.04), Rival(("z",), 4.2)))
    written = io.StringIO()
    other = copy(model)
    other.equations_ = [better, *model.equations_[1:]]
    other.print(file=written)
    expected = "not better than its neighbours: x, z (14.0 better); y (0.0 worse); z (4.2 worse)"
    assert expected in written.getvalue().splitlines()[1]


def test_numbers_are_those_of_least_squares_on_the_whitened_rows(noisy_lorenz):
    model = Discovery(form="weak").fit(noisy_lorenz[1], noisy_lorenz[0])
    for result, equation in zip(model.searched_.results, model.equations_, strict=True):
        A, z = result.rows.system(result.fit)
        columns = A[:, list(equation.support)]
        mean, rss, *_ = np.linalg.lstsq(columns, z, rcond=None)
        np.testing.assert_allclose(equation.coefficients, mean, rtol=1e-8)
        assert equation.degrees == len(z) - len(equation.support)
        covariance = (rss[0] + result.fit.floor) / equation.degrees * np.linalg.inv(columns.T @ columns)
        np.testing.assert_allclose(equation.covariance, covariance, rtol=1e-6)
    np.testing.assert_allclose([np.mean(one**2) for one in model.residuals()], 1.0, rtol=0.05)


def test_times_are_needed(noisy_lorenz):
    with pytest.raises(ValueError, match="t is needed"):
        Discovery().fit(noisy_lorenz[1])


def test_parameters_are_scikit_learns(noisy_lorenz):
    copy = clone(Discovery(Polynomials(2), form="derivative", order=4))
    assert copy.get_params()["order"] == 4
    assert copy.get_params()["library"] == Polynomials(2)


# When the data cannot tell --------------------------------------------------------------------------------------------


def test_a_fixed_point_is_said_to_be_one():
    x = 1 + 0.01 * np.random.default_rng(0).normal(size=(200, 1))
    with pytest.warns(AmbiguityWarning, match="fixed point"):
        found = Discovery(Polynomials(2)).fit(x, 0.1)
    assert terms_of(found) == [set()]
    assert found.equations() == ["0"]


def test_two_states_that_are_the_same_cannot_be_told_apart():
    t = np.arange(0, 20, 0.05)
    x = np.column_stack([np.exp(-0.1 * t)] * 2)
    x = x + 1e-3 * np.random.default_rng(0).normal(size=x.shape)
    with pytest.warns(AmbiguityWarning, match="hardly tell"):
        Discovery(Polynomials(1)).fit(x, t)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.arange(14.0).reshape(7, 2) ** [1, 2], "t": 0.1}, "needs at least"),
        ({"x": np.ones((50, 2)), "t": np.arange(49)}, "t has 49 entries"),
        ({"x": np.ones((50, 2)), "t": -1.0}, "positive"),
        ({"x": np.ones((50, 2)), "t": np.zeros(50)}, "ascend"),
        ({"x": [], "t": 0.1}, "empty list"),
        ({"x": np.full((50, 2), np.inf), "t": 0.1}, "infinities"),
        ({"x": np.full((50, 2), np.nan), "t": 0.1}, "nothing but NaN"),
        ({"x": np.array([["a"]]), "t": 0.1}, "numbers"),
        ({"x": np.ones((50, 2, 2)), "t": 0.1}, "space"),
        ({"x": np.ones((50, 2)), "t": 0.1, "feature_names": ["a"]}, "feature_names"),
        ({"x": np.ones((50, 2)), "t": 0.1, "u": np.ones(49)}, "u has 49 rows"),
        ({"x": np.ones((50, 2)), "t": 0.1, "x_dot": np.ones((50, 1))}, "x_dot has shape"),
        ({"x": np.ones((50, 2)) * 1j, "t": 0.1}, "x is complex"),
        ({"x": np.arange(50).astype("datetime64[D]"), "t": 0.1}, "x holds dates"),
        ({"x": np.ones((50, 2)), "t": 0.1, "u": np.ones(50) * 1j}, "u is complex"),
    ],
)
def test_bad_data_are_refused_with_advice(arguments, message):
    with pytest.raises(ValueError, match=message):
        Discovery().fit(**arguments)


@pytest.mark.parametrize("parameters", [{"form": "strong"}, {"differentiation": "magic"}, {"library": 3}])
def test_bad_parameters(parameters):
    with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
        Discovery(**parameters).fit(np.ones((50, 2)), 0.1)


@pytest.mark.slow
def test_intervals_cover_the_truth_over_many_draws():
    """95 % intervals of all coefficients of Lorenz 63 over 100 draws at 1 % noise."""
    truth, hits = systems.lorenz63().true_coefficients(Polynomials(2)), []
    for seed in range(100):
        t, x = systems.lorenz63().noisy(0.01, seed=1000 + seed)
        found = Discovery(Polynomials(2)).fit(x, t)
        for equation, row in zip(found.equations_, truth, strict=True):
            hits += list(
                np.abs(equation.coefficients - row[list(equation.support)]) <= equation.posterior.half_widths()
            )
    assert 0.90 <= np.mean(hits) <= 0.99


def test_progress_is_shown_on_request_only(swing, capsys):
    t, x, _ = swing
    Discovery(Polynomials(1)).fit(x, t)
    assert capsys.readouterr().err == ""
    Discovery(Polynomials(1), form="weak", verbose=1, n_jobs=1).fit(x, t)
    assert "2/2" in capsys.readouterr().err
    Discovery(Polynomials(1), verbose=1).fit(x, t)
    assert "fits" in capsys.readouterr().err


# Frames by name, masks, maps


@pytest.fixture(scope="module")
def oscillator(swing):
    t, x, _ = swing
    frame = pd.DataFrame(x, columns=["q", "p"])
    return t, frame, Discovery(Polynomials(1)).fit(frame, t)


def test_columns_of_frames_are_found_by_name(oscillator):
    t, frame, found = oscillator
    swapped = frame[["p", "q"]]
    np.testing.assert_array_equal(found.predict(swapped), found.predict(frame))
    assert found.score(swapped, t) == found.score(frame, t)
    half = len(t) // 2
    both, same = (
        Discovery(Polynomials(1), form="weak").fit([frame[:half], rest], [t[:half], t[half:]])
        for rest in (swapped[half:], frame[half:])
    )
    np.testing.assert_array_equal(both.coef_, same.coef_)
    np.testing.assert_array_equal(found.simulate(frame.loc[0, ["p", "q"]], t[:5]), found.simulate(frame.loc[0], t[:5]))


def test_columns_that_the_model_does_not_know_are_refused(oscillator):
    _, frame, found = oscillator
    with pytest.raises(ValueError, match="zzz, p, but the model is of q, p"):
        found.predict(frame.rename(columns={"q": "zzz"}))
    np.testing.assert_array_equal(found.predict(frame.set_axis(["a", "b"], axis=1)), found.predict(frame))


def test_masked_rows_are_predicted_as_missing(oscillator):
    _, frame, found = oscillator
    rows = np.ma.masked_array(frame.to_numpy()[:3].copy(), mask=False)
    rows[1] = np.ma.masked
    assert np.isnan(found.predict(rows)[1]).all()
    np.testing.assert_array_equal(found.predict(rows)[[0, 2]], found.predict(frame)[[0, 2]])


def test_a_map_needs_no_times():
    _, x = systems.henon_map().noisy(0.005, seed=1)
    model = Discovery(discrete_time=True)
    np.testing.assert_array_equal(model.fit(x).coef_, Discovery(discrete_time=True).fit(x, 1.0).coef_)


def test_inputs_bring_their_names(swing):
    t, x, _ = swing
    force = pd.DataFrame({"force": np.sin(t)})
    assert "force" in Discovery(Polynomials(1)).fit(x, t, u=force).get_feature_names()


def circles(n_series, m=20, step=0.1, noise=0.0, seed=0):
    """Return times and series of x' = y, y' = −x, of several sizes and phases."""
    rng = np.random.default_rng(seed)
    t = step * np.arange(m)
    phases, sizes = rng.uniform(0, 2 * np.pi, n_series), rng.uniform(0.5, 1.5, n_series)
    clean = [np.column_stack([np.sin(t + a), np.cos(t + a)]) * r for a, r in zip(phases, sizes, strict=True)]
    return [t] * n_series, [x + noise * x.std() * rng.normal(size=x.shape) for x in clean]


@pytest.mark.parametrize(("noise", "step"), [(0.0, 0.3), (0.01, 0.1), (0.05, 0.3)])
def test_short_series_have_no_bias(noise, step):
    t, x = circles(20, step=step, noise=noise, seed=3)
    found = Discovery(Polynomials(2)).fit(x, t)
    assert [one.terms for one in found.equations_] == [("x1",), ("x0",)]
    for equation, truth in zip(found.equations_, (1.0, -1.0), strict=True):
        assert abs(equation.coefficients[0] - truth) < 3 * equation.std[0] < 0.03


def test_one_short_series_without_noise_is_right_within_its_intervals():
    """Also where 1 − x² − y² = 0 lets terms of any size in: large coefficients do not lower truncation error."""
    for step in (0.1, np.pi / 10, 0.5):
        (t,), (x,) = circles(1, step=step)
        found = Discovery(Polynomials(2)).fit(x, t)
        assert [one.terms for one in found.equations_] == [("x1",), ("x0",)]
        for equation, truth in zip(found.equations_, (1.0, -1.0), strict=True):
            assert abs(equation.coefficients[0] - truth) < 2 * equation.std[0] < 2e-3


def test_data_without_noise_give_no_terms_of_rounding_error():
    """Halvorsen's equations, whose quadrature leaves 1e-10: intervals are tiny and hold the truth."""
    a, b = 1.4, 4.0

    def rates(_, s):
        x, y, z = s
        return [-a * x - b * y - b * z - y**2, -a * y - b * z - b * x - z**2, -a * z - b * x - b * y - x**2]

    t = np.linspace(0, 6, 401)
    solution = solve_ivp(rates, (0, 6), [-5.0, 0.0, 0.0], t_eval=t, method="LSODA", rtol=1e-11, atol=1e-12)
    found = Discovery(Polynomials(2)).fit(solution.y.T, t)
    for i, equation in enumerate(found.equations_):
        following = f"x{(i + 1) % 3}"
        truth = {f"x{j}": -a if j == i else -b for j in range(3)} | {f"{following}^2": -1.0}
        assert set(equation.terms) == set(truth)
        off = np.abs(equation.coefficients - [truth[name] for name in equation.terms])
        assert np.all(off < 3 * equation.std)
        assert np.all(equation.std < 1e-4)


def test_rows_lost_at_random_are_bridged(noisy_lorenz):
    t, x = noisy_lorenz
    kept = np.random.default_rng(7).uniform(size=len(t)) >= 0.2
    found = Discovery(Polynomials(2)).fit(x[kept], t[kept], feature_names=NAMES)
    with_nan = Discovery(Polynomials(2)).fit(np.where(kept[:, None], x, np.nan), t, feature_names=NAMES)
    assert terms_of(found) == terms_of(with_nan) == LORENZ
    assert found.rows_used_ == with_nan.rows_used_ == kept.sum()
    for equation, truth in zip(found.equations_, systems.lorenz63().true_coefficients(Polynomials(2)), strict=True):
        off = np.abs(equation.coefficients - truth[list(equation.support)])
        assert np.all(off < 3.5 * equation.std)


def test_jittered_times(lorenz):
    rng = np.random.default_rng(11)
    t, x = lorenz
    steps = np.sort(t[:-1] + (t[1] - t[0]) * rng.uniform(-0.3, 0.3, len(t) - 1))[1:]
    values = make_interp_spline(t, x, k=7)(steps)
    found = Discovery(Polynomials(2)).fit(
        values + 0.01 * x.std() * rng.normal(size=values.shape), steps, feature_names=NAMES
    )
    assert terms_of(found) == LORENZ
    for equation, truth in zip(found.equations_, systems.lorenz63().true_coefficients(Polynomials(2)), strict=True):
        assert np.all(np.abs(equation.coefficients - truth[list(equation.support)]) < 3.5 * equation.std)


def test_states_far_from_zero_and_inputs_with_gaps_are_told():
    t = np.linspace(0, 12, 120)
    u = np.sin(t)
    x = 0.9 / 1.16 * (0.4 * np.sin(t) - np.cos(t)) + np.exp(-0.4 * t)  # x' = -0.4 x + 0.9 u
    noisy = x + 0.01 * np.random.default_rng(0).normal(size=120)
    Discovery(Polynomials(2)).fit(noisy, t, u=u)
    with pytest.warns(AmbiguityWarning) as caught:
        Discovery(Polynomials(2)).fit(noisy + 300, t, u=u)
    assert "x0 varies by 0.62 around 300" in str(caught[-1].message)
    u[40:42] = np.nan
    with pytest.warns(AmbiguityWarning) as caught:
        Discovery(Polynomials(1)).fit(noisy, t, u=u)
    assert "input u0 is missing in 2 of 120 rows" in str(caught[0].message)
