"""States, joint draws and runs of models in trajectory form."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import ardea
from ardea.dynamics import AmbiguityWarning, Discovery, Polynomials, systems
from ardea.dynamics.found import Joint
from ardea.dynamics.right_hand_side import RightHandSide
from ardea.dynamics.simulation import Driven, simulate_draws


@pytest.fixture(scope="module")
def lorenz():
    t, x = systems.lorenz63().noisy(0.05, seed=0)
    return t, x, Discovery(Polynomials(2)).fit(x, t, feature_names=["x", "y", "z"])


@pytest.fixture(scope="module")
def positions():
    t, x = systems.duffing().noisy(0.05, seed=0)
    return t, x, Discovery(derivative_order=2).fit(x[:, 0], t, feature_names=["x"])


def test_states_have_the_rows_given(lorenz):
    t, x, model = lorenz
    (frame,) = model.states_
    assert list(frame.columns) == ["time", "x", "y", "z", "x std", "y std", "z std"]
    np.testing.assert_array_equal(frame["time"], t)
    truth = systems.lorenz63().simulate()[1]
    z = (frame[["x", "y", "z"]].to_numpy() - truth) / frame[["x std", "y std", "z std"]].to_numpy()
    assert np.mean(np.abs(z) < 3) > 0.95
    # Smoothed states are much closer to the truth than samples are.
    assert np.std(frame[["x", "y", "z"]].to_numpy() - truth) < 0.3 * np.std(x - truth)


def test_states_of_several_series_with_gaps(lorenz):
    t, x, _ = lorenz
    gap = x[:120].copy()
    gap[40:43] = np.nan  # bridged: at even times the states in it are known too
    late = np.r_[0:60, 110:150]  # a gap that is bridged by points that were not given
    broken = np.r_[t[:60], t[60:100] + 40 * 2.5, 500.0]  # two gaps that are not bridged, the last row alone
    data = [gap, x[late], x[:101]]
    with pytest.warns(AmbiguityWarning, match="Series 2 has 56 rows of series 1 again"):
        model = Discovery(Polynomials(2)).fit(data, [t[:120], t[late], broken])
    for frame, times in zip(model.states_, [t[:120], t[late], broken], strict=True):
        np.testing.assert_array_equal(frame["time"], times)
    first, second, third = (frame.drop(columns="time").to_numpy() for frame in model.states_)
    assert np.isfinite(first).all()
    assert np.isfinite(second).all()
    assert np.isfinite(third[:-1]).all()
    assert np.isnan(third[-1]).all()
    assert first[41, 3] > first[30, 3]
    np.testing.assert_allclose(second[:40, :3], first[:40, :3], atol=6 * first[:40, 3:].max())


def test_other_forms_have_no_states(lorenz, tmp_path):
    t, x, model = lorenz
    ardea.save(model, tmp_path / "model")
    weak = Discovery(Polynomials(2), form="weak").fit(x, t)
    for other in (weak, ardea.load(tmp_path / "model")):
        with pytest.raises(AttributeError, match="trajectory"):
            other.states_  # noqa: B018
    with pytest.raises(ValueError, match="x0"):
        weak.simulate(t=t)


def test_draws_have_the_joint_covariance(lorenz):
    _, _, model = lorenz
    kept = [(i, j) for i, one in enumerate(model.equations_) for j in one.support]
    draws = model.sample(40_000, random_state=0)
    flat = np.stack([draws[:, i, j] for i, j in kept], axis=1)
    expected = model.searched_.covariance
    unit = np.sqrt(expected.diagonal())
    np.testing.assert_allclose(np.cov(flat.T) / np.outer(unit, unit), expected / np.outer(unit, unit), atol=0.03)
    joint = model.joint_.estimate(model.equations_)
    np.testing.assert_allclose(joint.covariance / np.outer(unit, unit), expected / np.outer(unit, unit), atol=1e-10)
    assert np.count_nonzero(draws[0]) == len(kept)


def test_runs_from_the_first_state_spread_as_the_states_do():
    # To first order the bands of the smoothed states are those of runs whose start is drawn with the coefficients, even
    # of a chaotic flow. The more noise, the wider the runs: measured 1.02 times at 1 %, 1.3 to 1.7 times at 5 %.
    t, x = systems.lorenz63().noisy(0.002, seed=0)
    model = Discovery(Polynomials(2)).fit(x, t)
    frame = model.states_[0].to_numpy()[:60]
    states, std = frame[:, 1:4], frame[:, 4:]
    bands = model.simulate(t=t[:60], n_samples=1000, random_state=0)
    ratio = bands.samples.std(axis=0) / std
    assert 0.9 < ratio.min() < ratio.max() < 1.1
    assert np.abs(bands.median - states).max() < 0.5 * std.max()
    np.testing.assert_allclose(model.simulate(t=t[:20]), states[:20], atol=0.2 * std.max())


def test_positions_alone(positions, tmp_path):
    t, _, model = positions
    (equation,) = model.equations_
    assert equation.terms == ("x", "x'", "x^3")
    assert equation.left.text == "(x)''"
    assert equation.latex().startswith(r"\ddot{x} = ")
    assert r"\dot{x}" in equation.latex()
    space = {}
    exec(equation.python("acceleration"), space)
    row = np.array([[0.5, -0.2]])
    assert space["acceleration"](x=0.5, x_dot=-0.2) == pytest.approx(model.predict(row)[0, 0])
    frame = model.states_[0]
    assert list(frame.columns) == ["time", "x", "x'", "x std", "x' std"]
    assert np.std(frame["x'"] - systems.duffing().simulate()[1][:, 1]) < 0.02
    ardea.save(model, tmp_path / "model")
    loaded = ardea.load(tmp_path / "model")
    assert loaded.equations() == model.equations()
    for start in (None, [1.0, 0.0]):
        runs = [one.simulate(start, t[:30], n_samples=5, random_state=0).samples for one in (model, loaded)]
        np.testing.assert_array_equal(*runs)
    np.testing.assert_array_equal(loaded.predict(row), model.predict(row))


def test_positions_are_a_row_of_states(positions):
    sympy = pytest.importorskip("sympy")
    _, _, model = positions
    assert model.sympy()[0].free_symbols == {sympy.Symbol("x"), sympy.Symbol("x'")}


def test_positions_that_cannot_be_meant():
    t, x = systems.duffing().noisy(0.02, seed=0)
    with pytest.raises(ValueError, match=r"have the name .x'.: rename one of them"):
        Discovery(derivative_order=2).fit(x, t, feature_names=["x", "x'"])
    with pytest.raises(ValueError, match="leave x_dot out"):
        Discovery(derivative_order=2).fit(x[:, 0], t, x_dot=x[:, 1])


def test_measured_derivatives_are_the_derivative_form():
    system = systems.linear_oscillator()
    t, x = system.simulate()
    noisy = system.exact_derivative(x) + 0.01 * np.random.default_rng(0).normal(size=x.shape)
    assert Discovery(Polynomials(1)).fit(x, t, x_dot=noisy).form_ == "derivative"


@pytest.mark.parametrize("discrete_time", [False, True])
def test_driven_runs_have_the_variance_of_theory(discrete_time):
    # dx = −x dt + q dW: variance q²(1 − exp(−2t))/2. x_{k+1} = x/2 + q e: variance q²(1 − 4^−k)/(1 − 1/4).
    slope, q = (0.5, 0.3) if discrete_time else (-1.0, 0.3)
    rhs = RightHandSide(Polynomials(1), np.tile([[[0.0, slope]]], (4000, 1, 1)), n_states=1)
    driven = Driven(np.array([q]), np.zeros(1), np.ones(1), 0.1, np.random.RandomState(0))
    t = np.array([0.0, 1.0, 2.0, 3.0])
    settings = {"limit": 100.0, "atol": 1e-8, "discrete_time": discrete_time, "driven": driven}
    x, _ = simulate_draws(rhs, [0.0], t, **settings)
    expected = q**2 * ((1 - 4.0**-t) / 0.75 if discrete_time else (1 - np.exp(-2 * t)) / 2)
    np.testing.assert_allclose(x[:, :, 0].var(axis=0), expected, rtol=0.08)


@pytest.mark.parametrize(("power", "usual"), [(1.0, 2.0), (0.5, 5.0)])
def test_noise_of_the_process_grows_with_the_state_in_simulations_too(power, usual):
    """dx = q (x/u)^p dW from x = 3: variance 9(exp(q²t/u²) − 1) for p = 1, and 3 q²t/u for p = ½."""
    q, t = 0.4, np.array([0.0, 1.0, 2.0])
    rhs = RightHandSide(Polynomials(1), np.zeros((4000, 1, 2)), n_states=1)
    driven = Driven(np.array([q]), np.array([power]), np.array([usual]), 0.1, np.random.RandomState(1))
    x, _ = simulate_draws(rhs, [3.0], t, limit=100.0, atol=1e-8, driven=driven)
    expected = 9 * np.expm1(q**2 * t / usual**2) if power == 1 else 3 * q**2 * t / usual
    np.testing.assert_allclose(x[:, :, 0].var(axis=0), expected, rtol=0.08)


def test_bands_hold_the_noise_of_the_process():
    rng = np.random.default_rng(0)
    n, h, q = 800, 0.05, 0.5
    x = np.zeros((n, 2))
    x[0] = [1.0, 0.0]
    turn = np.array([[0.0, 1.0], [-1.0, -0.2]])
    for i in range(n - 1):
        x[i + 1] = x[i] + h * turn @ (x[i] + h / 2 * turn @ x[i]) + q * np.sqrt(h) * rng.normal(size=2)
    with warnings.catch_warnings(action="ignore"):
        model = Discovery(Polynomials(1)).fit(x + 0.02 * rng.normal(size=x.shape), h)
    np.testing.assert_allclose(model.process_noise_, q, rtol=0.1)
    t = np.arange(0, 1.01, 0.5)
    spread = model.simulate(x[0], t, n_samples=500, random_state=0).samples.std(axis=0)
    np.testing.assert_allclose(spread[1], q * np.sqrt(0.5), rtol=0.15)


def test_a_forged_correlation_is_refused(lorenz, tmp_path):
    _, _, model = lorenz
    joint = model.joint_
    size = len(joint.correlation)
    sizes = [len(one.support) for one in model.equations_]
    within = joint.correlation + 0.1 * (Joint.between(sizes, np.ones((size, size))) == 0)
    too_much = Joint.between(sizes, np.where(np.add.outer(np.arange(size), np.arange(size)) % 2, -0.999, 0.999))
    lopsided = np.triu(joint.correlation)
    try:
        for forged in (within, too_much, lopsided):
            fields = {**vars(joint), "correlation": forged}
            model.joint_ = Joint(**fields)
            ardea.save(model, tmp_path / "forged")
            with pytest.raises(ardea.ModelFileError):
                ardea.load(tmp_path / "forged")
    finally:
        model.joint_ = joint


@pytest.fixture(scope="module")
def drifting():
    """Two runs that noise moves, with times of their own, and the model found from them."""
    rng, h, runs = np.random.default_rng(2), 0.5, []
    for start in (5.0, -4.0):
        x = np.empty(100)
        x[0] = start
        for i in range(99):
            x[i + 1] = x[i] + h * (1.0 - 0.4 * x[i]) + 0.5 * np.sqrt(h) * rng.normal()
        runs.append(x + 0.05 * rng.normal(size=100))
    times = [h * np.arange(100), 10 + h * np.arange(100)]
    with warnings.catch_warnings(action="ignore"):
        model = Discovery(Polynomials(1)).fit([run[:, None] for run in runs], times)
    assert np.all(model.process_noise_ > 0)
    return times, model


def test_a_run_that_noise_moves_goes_on_from_the_latest_row(drifting, tmp_path):
    times, model = drifting
    states = model.searched_.states()
    ardea.save(model, tmp_path / "drifting")
    loaded = ardea.load(tmp_path / "drifting")
    for one in (model, loaded):
        for row in (0, 40, 99):
            t = times[0][row]
            np.testing.assert_allclose(one.simulate(t=[t, t + 0.1])[0, 0], states[0][row, 0], rtol=1e-12)
            later = one.simulate(t=[t + 0.2, t + 0.3])
            np.testing.assert_allclose(later, one.simulate(t=[t, t + 0.2, t + 0.3])[1:], rtol=1e-8)
            np.testing.assert_array_equal(one.joint_.before([t + 10], 1).mean, states[1][row, :1])
    draws = [one.simulate(t=[20.0, 21.0], n_samples=20, random_state=0).samples for one in (model, loaded)]
    np.testing.assert_array_equal(*draws)


def test_what_is_known_of_all_rows_is_what_is_known_of_the_ends(drifting):
    joint = drifting[1].joint_
    known = joint.rows.of_series(0)
    for row, end in ((0, joint.first), (-1, joint.last)):
        for name in ("mean", "gain", "covariance", "time"):
            np.testing.assert_allclose(getattr(known[row], name), getattr(end, name), rtol=1e-9, atol=1e-15)


def test_without_noise_that_moves_it_a_run_within_the_data_is_the_fitted_one(lorenz):
    t, _, model = lorenz
    assert model.joint_.rows is None
    np.testing.assert_allclose(model.simulate(t=t[30:40]), model.simulate(t=t[:40])[30:], rtol=1e-6)
    np.testing.assert_array_equal(model.simulate(t=t[-1:])[0], model.joint_.last.mean)


@pytest.mark.parametrize("change", [{"series": 1}, {"time": -1.0}, {"mean": 2}, {"gain": 2}, {"covariance": -1.0}])
def test_forged_states_of_rows_are_refused(drifting, tmp_path, change):
    model = drifting[1]
    joint = model.joint_
    ((name, by),) = change.items()
    value = getattr(joint.rows, name)
    forged = value + by if name == "series" else value[by:] if name in ("mean", "gain") else by * value
    try:
        model.joint_ = replace(joint, rows=replace(joint.rows, **{name: forged}))
        ardea.save(model, tmp_path / "forged")
        with pytest.raises(ardea.ModelFileError):
            ardea.load(tmp_path / "forged")
    finally:
        model.joint_ = joint
