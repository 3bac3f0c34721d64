"""Equations found from data: the rows, the whitening, and what Discovery does with every kind of data."""

import io
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sympy
import xarray as xr
from scipy.integrate import solve_ivp
from sklearn.base import clone

from ardea import SparseARD, load, save
from ardea.dynamics import AmbiguityWarning, Custom, Discovery, FieldTerms, Polynomials, systems
from ardea.dynamics.equations import Rival, summary_line
from ardea.dynamics.errors_in_variables import JITTER, Equations, FirstPass, Fit
from ardea.dynamics.pieces import (
    Piece,
    corner_frequency,
    derivative_piece,
    map_piece,
    noise_levels,
    stretches,
    weak_piece,
    window_radius,
)
from ardea.dynamics.states import RowScheme, checked_trajectories
from ardea.dynamics.subsets import ard_supports
from ardea.dynamics.tournament import Tournament
from ardea.show.notebook import discovery_html

NAMES = ["x", "y", "z"]
LORENZ = [{"x", "y"}, {"x", "y", "x z"}, {"z", "x y"}]


def none(m):
    return np.empty((m, 0))


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


def terms_of(found):
    return [set(equation.terms) for equation in found.equations_]


# Rows -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", ["uniform", "uneven"])
def test_the_weak_form_is_exact_integration_by_parts(times):
    """D x = V x′ for a smooth x, whatever the times."""
    rng = np.random.default_rng(0)
    steps = np.full(300, 0.02) if times == "uniform" else 0.02 * rng.uniform(0.6, 1.4, 300)
    t = np.cumsum(steps)
    x, slope = np.sin(3 * t) + t**2, 3 * np.cos(3 * t) + 2 * t
    piece = weak_piece(t, x[:, None], none(300), [0.4, 0.2])
    tolerance = 1e-6  # windows of ten steps; twenty alone reach 1e-9
    np.testing.assert_allclose(piece.D @ x, piece.V @ slope, atol=tolerance * np.abs(piece.D @ x).max())
    np.testing.assert_allclose(piece.D @ piece.D.T, np.eye(piece.n_rows), atol=1e-8)


def test_gaps_cut_a_trajectory():
    t = 0.1 * np.delete(np.arange(120), [30, 31])
    x = np.sin(t)[:, None]
    x[70] = np.nan
    assert [len(part[0]) for part in stretches(t, x, none(118))] == [30, 40, 47]
    assert [len(part[0]) for part in stretches(np.arange(1000.0), np.ones((1000, 1)), none(1000))] == [334, 333, 333]


def test_the_window_follows_the_time_scale_of_the_data():
    t = np.linspace(0, 40, 801)
    slow, fast = (np.column_stack([np.sin(f * t), np.cos(f * t)]) for f in (1.0, 4.0))
    assert corner_frequency([(t, fast)]) > 2 * corner_frequency([(t, slow)])
    assert window_radius([(t, fast)]) < window_radius([(t, slow)])
    assert window_radius([(t, slow)]) <= 801 / 6 * 0.05 + 1e-12


@pytest.mark.parametrize("uneven", [False, True])
def test_noise_levels_are_those_of_the_channels(uneven):
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.uniform(0.7, 1.3, 2000) if uneven else np.ones(2000)) * 0.01
    true = np.array([0.1, 0.01])
    x = np.column_stack([np.sin(t), np.cos(2 * t)]) + true * rng.normal(size=(2000, 2))
    piece = Piece(t, x, none(2000), np.eye(2), np.eye(2))
    np.testing.assert_allclose(noise_levels([piece]), true, rtol=0.06)


def test_the_joint_covariance_is_that_of_the_linearised_rows():
    """C = Σ_l s_l² L_l L_lᵀ with the L_l written out, for all equations at once."""
    rng = np.random.default_rng(2)
    t = 0.05 * np.arange(60)
    x, noise = rng.normal(size=(60, 2)), np.array([0.3, 1.2])
    piece = weak_piece(t, x, none(60), [0.5])
    library = Polynomials(2)
    supports, coefficients = ((1, 4), (2, 3)), (np.array([0.7, -0.4]), np.array([1.1, 0.2]))
    errors = 0.1 * rng.normal(size=x.shape)
    equations = Equations([piece], library, [0, 1], noise)
    fit = Fit(supports, coefficients, 0.0, [errors])
    loads = []
    for i in range(2):
        xi = np.zeros(6)
        xi[list(supports[i])] = coefficients[i]
        slopes = library.directional(x - errors, xi)
        loads.append(np.hstack([noise[j] * ((i == j) * piece.D - piece.V * slopes[:, j]) for j in range(2)]))
    dense = np.vstack(loads)
    C = dense @ dense.T
    C += JITTER * np.trace(C) / len(C) * np.eye(len(C))
    A, z = equations.design(fit)
    factor = np.linalg.cholesky(C)
    theta = piece.V @ library.evaluate(x - errors)
    expected = np.zeros((2 * piece.n_rows, 4))
    expected[: piece.n_rows, :2], expected[piece.n_rows :, 2:] = theta[:, [1, 4]], theta[:, [2, 3]]
    np.testing.assert_allclose(A, np.linalg.solve(factor, expected), rtol=1e-6, atol=1e-8)
    stacked = np.concatenate([piece.D @ (x - errors)[:, i] for i in range(2)])
    stacked += np.concatenate(loads, axis=0) @ np.concatenate([errors[:, j] / noise[j] for j in range(2)])
    np.testing.assert_allclose(z, np.linalg.solve(factor, stacked), rtol=1e-6, atol=1e-8)
    partialled, rest = equations.system(fit, 1)
    others = A[:, :2]
    projector = np.eye(len(z)) - others @ np.linalg.pinv(others)
    np.testing.assert_allclose(partialled[:, [2, 3]], projector @ A[:, 2:], atol=1e-8)
    np.testing.assert_allclose(rest, projector @ z, atol=1e-8)


def test_estimated_errors_bring_the_states_closer_to_the_truth(lorenz, noisy_lorenz):
    (t, truth), (_, x) = lorenz, noisy_lorenz
    piece = weak_piece(t, x, none(len(t)), [0.5, 0.25])
    library = Polynomials(2)
    true = systems.lorenz63().true_coefficients(library)
    equations = Equations([piece], library, range(3), np.full(3, np.std(x - truth)))
    fit = equations.fitted([tuple(np.flatnonzero(row).tolist()) for row in true])
    assert np.std(x - fit.errors[0] - truth) < 0.6 * np.std(x - truth)
    assert fit.rss / equations.n_rows == pytest.approx(1.0, abs=0.2)


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
    t = 0.01 * np.arange(400)
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
    t = np.arange(0, 40, 0.05)
    push = np.sin(1.3 * t) + np.cos(0.6 * t)

    def flow(s, v):
        return [v[1], -v[0] - 0.2 * v[1] + 2 * (np.sin(1.3 * s) + np.cos(0.6 * s))]

    x = solve_ivp(flow, (0, 40), [1.0, 0.0], t_eval=t, rtol=1e-9, atol=1e-9).y.T
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
    np.testing.assert_allclose(model.right_hand_side_.row(x[3]), model.predict(x[3:4])[0], rtol=1e-12)
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
    found = Discovery().fit(field)
    assert terms_of(found) == [{"w w_s", "w_ss"}]
    given = Discovery().fit(u, t, space=system.space, feature_names=["w"])
    np.testing.assert_allclose(found.coef_, given.coef_, rtol=1e-10)


def test_dates_give_the_rates_of_the_numbers_they_stand_for(noisy_lorenz, model):
    t, x = noisy_lorenz
    exact = np.round(1e6 * t).astype("timedelta64[us]")  # one unit of time is a second, the step 0.05 s
    when = np.datetime64("2024-03-31T01:30", "us") + exact
    zoned = pd.DatetimeIndex(when).tz_localize("UTC").tz_convert("Europe/Vienna")  # clocks are put forward inside
    kinds = [when, pd.DatetimeIndex(when), pd.Series(when), zoned, exact, list(pd.DatetimeIndex(when).to_pydatetime())]
    for kind in kinds:
        found = Discovery(Polynomials(3)).fit(x, kind, feature_names=NAMES)
        assert found.time_unit_ == "s"
        np.testing.assert_allclose(found.coef_, model.coef_, rtol=1e-6, atol=1e-9)
    assert model.time_unit_ is None
    np.testing.assert_allclose(found.simulate(x[0], when[:20]), model.simulate(x[0], t[:20]), rtol=1e-5)
    assert found.score(x, when) == pytest.approx(model.score(x, t), abs=1e-6)
    slow = Discovery(Polynomials(3)).fit(x, np.datetime64("2024-01-01") + 7200 * exact, feature_names=NAMES)
    assert slow.time_unit_ == "min"  # a step of 360 s
    np.testing.assert_allclose(slow.coef_ * 120, model.coef_, rtol=1e-6, atol=1e-9)
    told = io.StringIO()
    slow.print(file=told)
    assert told.getvalue().rstrip().endswith("rates of change are per minute.")


def test_the_unit_of_dates_may_be_chosen_and_never_guessed_for_numbers(noisy_lorenz, model):
    t, x = noisy_lorenz
    when = np.datetime64("2024-01-01", "us") + np.round(1e6 * t).astype("timedelta64[us]")
    hourly = Discovery(Polynomials(3)).fit(x, when, feature_names=NAMES, time_unit="h")
    np.testing.assert_allclose(hourly.coef_ / 3600, model.coef_, rtol=1e-6, atol=1e-9)
    told = Discovery(Polynomials(3)).fit(x, t, feature_names=NAMES, time_unit="d")
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


@pytest.mark.parametrize("step", [pd.Timedelta("50ms"), np.timedelta64(50, "ms")], ids=lambda one: type(one).__name__)
def test_a_step_may_be_a_duration(noisy_lorenz, model, step):
    _, x = noisy_lorenz
    one = Discovery(Polynomials(3)).fit(x, step, feature_names=NAMES)
    assert one.time_unit_ == "s"
    np.testing.assert_allclose(one.coef_, model.coef_, rtol=1e-6, atol=1e-9)
    halves, numbers = (Discovery(Polynomials(3)).fit([x[:120], x[120:]], each) for each in (step, 0.05))
    np.testing.assert_allclose(halves.coef_, numbers.coef_, rtol=1e-9)


def test_what_the_fit_warned_of_is_shown_in_a_notebook_and_kept_in_a_file(tmp_path):
    t, x = systems.lorenz63().noisy(0.1, seed=2)
    x[:, 2] = 1 + 0.01 * np.random.default_rng(0).normal(size=len(x))
    with pytest.warns(AmbiguityWarning, match="fixed point"):
        found = Discovery(Polynomials(1)).fit(x, t, feature_names=NAMES, time_unit="h")
    (doubt,) = [one for one in found.warnings_ if "fixed point" in one]
    path = tmp_path / "model.ardea"
    save(found, path)
    for one in (found, load(path)):
        assert doubt.split("(")[0] in discovery_html(one)
        assert "rates per hour" in discovery_html(one)


def test_dated_fields_have_rates_in_their_unit():
    x, t = np.linspace(0, 20, 100), np.linspace(0, 6, 80)
    u = np.sin(x[:, None] - t) + 0.5 * np.sin(2 * (x[:, None] - t))
    when = np.datetime64("2024-01-01", "us") + np.round(3.6e9 * 24 * t).astype("timedelta64[us]")
    field = xr.DataArray(u, dims=["x", "t"], coords={"x": x, "t": when})
    found = [
        Discovery(FieldTerms(1, 2)).fit(*data, space=(x,), time_unit="d") for data in ((u, t), (u, when), (field, None))
    ]
    assert [one.time_unit_ for one in found] == ["d"] * 3
    for one in found[1:]:
        np.testing.assert_allclose(one.coef_, found[0].coef_, rtol=1e-6, atol=1e-9)


def test_a_rival_is_compared_with_a_whitening_of_its_own():
    """Its excess is the difference of the scores that a tournament gives, and the warning is kept."""
    t, x = systems.lorenz63().noisy(0.1, seed=2)
    with pytest.warns(AmbiguityWarning, match="hardly tell") as caught:
        found = Discovery().fit(x, t, feature_names=NAMES)
    assert found.warnings_ == [str(one.message) for one in caught]
    one, equation = found._found[1], found.equations_[1]
    rival = equation.rivals[0]
    assert abs(rival.excess) < 1
    tournament = Tournament(one.equation, ard_supports)
    support = tuple(found.get_feature_names().index(term) for term in rival.terms)
    scores = [tournament.settled(tournament.contender(each)).score for each in (support, one.support)]
    assert rival.excess == pytest.approx(scores[0] - scores[1], abs=0.01)
    assert [other.excess for other in equation.rivals] == sorted(other.excess for other in equation.rivals)


def test_a_rival_that_is_ahead_is_said_to_be(model):
    ahead = replace(model.equations_[0], rivals=(Rival(("x", "z"), -14.0), Rival(("y",), -0.04), Rival(("z",), 4.2)))
    text = summary_line(ahead, "(x)'", 0.95)[-1]
    assert "x, z (14.0 ahead); y (0.0 behind); z (4.2 behind)" in text
    doubtful = copy(model)
    doubtful.equations_ = [ahead]
    doubtful.feature_names_ = ["x"]
    (doubt,) = doubtful._doubts(np.array([10.0]))
    assert "not come to rest" in doubt
    assert "14.0 ahead" in doubt


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
        ({"x": np.ones((8, 2)), "t": 0.1}, "needs at least"),
        ({"x": np.ones((50, 2)), "t": np.arange(49)}, "t has 49 entries"),
        ({"x": np.ones((50, 2)), "t": -1.0}, "positive"),
        ({"x": np.ones((50, 2)), "t": np.zeros(50)}, "ascend"),
        ({"x": [], "t": 0.1}, "empty list"),
        ({"x": np.full((50, 2), np.inf), "t": 0.1}, "infinities"),
        ({"x": np.full((50, 2), np.nan), "t": 0.1}, "no row without NaN"),
        ({"x": np.array([["a"]]), "t": 0.1}, "numbers"),
        ({"x": np.ones((50, 2, 2)), "t": 0.1}, "space"),
        ({"x": np.ones((50, 2)), "t": 0.1, "feature_names": ["a"]}, "feature_names"),
        ({"x": np.ones((50, 2)), "t": 0.1, "u": np.ones(49)}, "u has 49 rows"),
        ({"x": np.ones((50, 2)), "t": 0.1, "x_dot": np.ones((50, 1))}, "x_dot has shape"),
    ],
)
def test_bad_data_are_refused_with_advice(arguments, message):
    with pytest.raises(ValueError, match=message):
        Discovery().fit(**arguments)


@pytest.mark.parametrize("parameters", [{"form": "strong"}, {"differentiation": "magic"}, {"library": 3}])
def test_bad_parameters(parameters):
    with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
        Discovery(**parameters).fit(np.ones((50, 2)), 0.1)


def test_pieces_too_short_are_left_out():
    assert derivative_piece(np.arange(5.0), np.ones((5, 1)), none(5), "finite", 6) is None
    assert map_piece(np.arange(1.0), np.ones((1, 1)), none(1)) is None
    assert weak_piece(np.arange(20.0), np.ones((20, 1)), none(20), [30.0]) is None


@pytest.mark.slow
def test_intervals_cover_the_truth_over_many_draws():
    """95 % intervals of all coefficients of Lorenz 63 over 100 draws at 1 % noise."""
    truth, hits = systems.lorenz63().true_coefficients(Polynomials(2)), []
    for seed in range(100):
        t, x = systems.lorenz63().noisy(0.01, seed=1000 + seed)
        found = Discovery(Polynomials(2)).fit(x, t)
        for equation, row in zip(found.equations_, truth, strict=True):
            hits += list(np.abs(equation.coefficients - row[list(equation.support)]) <= equation.half_widths())
    assert 0.90 <= np.mean(hits) <= 0.99


# The first pass, shared by all supports


@pytest.mark.parametrize("form", ["weak", "derivative"])
@pytest.mark.parametrize("states", [[1], [0, 1, 2]])
def test_fits_from_the_shared_first_pass_are_those_from_zero(form, states):
    system = systems.lorenz63()
    t, x = system.noisy(0.01, 3)
    trajectories, *_ = checked_trajectories(x, t, None, None, None)
    pieces = RowScheme(form, False, "finite", 6).pieces(trajectories)
    equations = Equations(pieces, system.library, states, np.ones(3))
    first = FirstPass(equations)
    for supports in ([(1, 2)] * len(states), [(0, 1, 5)] * len(states), [()] * len(states)):
        for passes in (1, 2, 3):
            ours, plain = (equations.fitted(supports, start, passes) for start in (first, None))
            np.testing.assert_allclose(ours.rss, plain.rss, rtol=1e-8)
            for one, other in zip(ours.coefficients, plain.coefficients, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_fit_that_has_settled_is_returned_as_it_is():
    system = systems.lorenz63()
    t, x = system.noisy(0.01, 3)
    trajectories, *_ = checked_trajectories(x, t, None, None, None)
    equations = Equations(
        RowScheme("weak", False, "finite", 6).pieces(trajectories), system.library, [0], 0.01 * x.std(axis=0)
    )
    fit = equations.fitted([(1, 2)])
    assert fit.settled
    assert equations.fitted([(1, 2)], fit) is fit
    assert equations.fitted([(1, 2)], passes=1).settled is False


def test_progress_is_shown_on_request_only(lorenz, capsys):
    t, x = lorenz
    Discovery(Polynomials(2)).fit(x, t)
    assert capsys.readouterr().err == ""
    Discovery(Polynomials(2), verbose=1, n_jobs=1).fit(x, t)
    assert "3/3 equations" in capsys.readouterr().err
