"""What is said of samples: values that are no readings, rounding, switches, rows far off; times of one moment."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import pearson3

import ardea
from ardea.dynamics import AmbiguityWarning, Custom, Discovery, Fourier, MisfitWarning, Polynomials
from ardea.dynamics.collocation import nodes_of, unknown_inputs
from ardea.dynamics.pursuit import SLIGHT_GAIN
from ardea.dynamics.readings import said_of_inputs, said_of_spoiled, said_of_states
from ardea.dynamics.series import Clock, Series
from ardea.dynamics.simulation import SimulationWarning
from ardea.dynamics.states import dependent_errors, ends_off, smoothed, undersampled
from ardea.dynamics.told import at_rest, common_functions, fits_of

RNG = np.random.default_rng


def told(column, name="x"):
    series = [plain(np.arange(float(len(column))), np.array(column, float)[:, None])]
    return [*said_of_spoiled(series, [name]), *said_of_states(series, [name])]


def plain(t, x):
    """Return a series without inputs."""
    return Series(t, x, np.empty((len(t), 0)))


SMOOTH = np.cos(np.linspace(0, 9, 60))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (np.where(np.arange(60) % 7 == 3, -999, SMOOTH), "x is -999 in 9 rows"),
        (np.where(np.arange(60) == 30, 1e6, SMOOTH), "x is 1e+06 in 1 row"),
        (np.arange(60) // 10 % 2, "only the values 0 and 1"),
        (np.round(20 * np.exp(-np.arange(60) / 40)), "rounded to 1"),
        (np.full(60, 3.0), "x is 3 in every row"),
    ],
)
def test_what_is_no_reading_is_told(column, words):
    (said,) = told(column)
    assert words in said


@pytest.mark.parametrize(
    "column",
    [
        SMOOTH,
        10.0 ** np.arange(12),  # its last value is far from the rest, as it must be
        np.round(SMOOTH, 1),  # coarse, but it moves from row to row
    ],
)
def test_plain_readings_are_not_talked_of(column):
    assert told(column) == []


def test_rows_that_were_written_twice_are_told():
    t, rng = np.arange(60.0), np.random.default_rng(2)
    x = np.column_stack([np.sin(t / 5), np.cos(t / 5)]) + 0.01 * rng.normal(size=(60, 2))
    assert said_of_states([plain(t, x)], ["x", "v"]) == []
    x[[11, 31, 32]] = x[[10, 30, 30]]
    (said,) = said_of_states([plain(t, x)], ["x", "v"])
    assert said.startswith("3 rows repeat the row before them in every state, the first at t = 11, ")
    assert said_of_states([plain(t, np.round(x, 1))], ["x", "v"]) == []  # chance makes coarse readings alike


def swings(rows=120, noise=0.02, seed=3):
    t, rng = np.linspace(0, 20, rows), np.random.default_rng(seed)
    return t, np.column_stack([np.sin(t), np.cos(t)]) + noise * rng.normal(size=(rows, 2))


@pytest.mark.parametrize("every", [2, 4, 8])
@pytest.mark.parametrize("digits", [2, 9])
def test_states_that_were_filled_in_between_readings_are_told(every, digits):
    t, x = swings()
    x = np.round(x, digits)
    assert said_of_states([plain(t, x)], ["x", "y"]) == []
    x[:, 1] = x[np.arange(120) // every * every, 1]
    (text,) = said_of_states([plain(t, x)], ["x", "y"])
    assert text.startswith("y repeats the reading before it in ")
    assert 0 <= int(re.search(r"in (\d+) rows", text)[1]) - (120 - 120 // every) <= 2  # chance repeats some more


def test_rounded_readings_were_not_filled_in():
    """Where a state turns or comes to rest, readings come again, between others that are near."""
    for seed in range(100):
        t, x = swings(noise=0.1, seed=seed)
        for digits in (0, 1, 2):
            assert not any("filled in" in text for text in said_of_states([plain(t, np.round(x, digits))], ["x", "y"]))
    falling = np.round(1000 * np.exp(-np.linspace(0, 9, 90)))[:, None]  # an epidemic that ends
    assert told(falling[:, 0], "S") == []


def test_series_that_repeat_each_other_are_told():
    t, x = swings()
    one, other, part = plain(t, x), plain(t, swings(seed=4)[1]), plain(t[:70], x[50:])
    assert said_of_states([one, other], ["x", "y"]) == []
    (text,) = said_of_states([one, other, part], ["x", "y"])
    assert text.startswith("Series 3 has 70 rows of series 1 again: ")
    (text,) = said_of_states([one, one, one], ["x", "y"])
    assert text.startswith("Series 2 has 120 rows of series 1 again (and 1 more series of others): ")
    counts = [plain(t, np.random.default_rng(seed).poisson(2, size=(120, 1)).astype(float)) for seed in range(3)]
    assert not any("again" in text for text in said_of_states(counts, ["n"]))  # chance makes counts alike


def test_states_that_add_up_to_the_same_are_told():
    t, x = swings()
    total = np.column_stack([x, 5 - x[:, 0] + 2 * x[:, 1]])
    (text,) = said_of_states([plain(t, total)], ["x", "y", "z"])
    assert text.startswith("x - 2 y + z is 5 in every row: ")
    total[:, 2] += 0.01 * np.random.default_rng(0).normal(size=120)
    assert said_of_states([plain(t, total)], ["x", "y", "z"]) == []


def test_readings_that_were_filled_in_here_and_there_are_told():
    for seed in range(20):
        t, x = swings(seed=seed)
        x = x[: np.random.default_rng(seed).integers(60, 120)]
        filled = 1 + np.random.default_rng(seed).choice(len(x) - 2, size=len(x) // 10, replace=False)
        x[np.sort(filled), 1] = x[np.sort(filled) - 1, 1]
        (text,) = said_of_states([plain(t[: len(x)], x)], ["x", "y"])
        assert text.startswith("y repeats the reading before it in ")


def test_an_input_that_follows_the_states_is_told():
    t, x = swings()
    follows = -3 * x[:, 0] - 0.4 * x[:, 1]
    (text,) = said_of_states([Series(t, x, follows[:, None])], ["x", "y", "u"])
    assert text.startswith("x + 0.133333 y + 0.333333 u is 0 in every row: an input follows the states")


def test_inputs_that_are_copies_are_told():
    t, x = swings()
    pump = np.sin(t / 3)
    (text,) = said_of_spoiled([Series(t, x, np.column_stack([pump, 3 * pump + 1]))], ["x", "y", "pump", "valve"])
    assert text.startswith("valve is 1 + 3 pump in every row: ")


def test_copies_of_a_state_are_told():
    x = np.column_stack([SMOOTH, np.sin(np.linspace(0, 9, 60)), SMOOTH])
    (said,) = said_of_spoiled([plain(np.arange(60.0), x)], ["x", "v", "x again"])
    assert said.startswith("x and x again are the same in every row: ")
    x[:, 2] *= 1000
    (said,) = said_of_spoiled([plain(np.arange(60.0), x)], ["x", "v", "x_mm"])
    assert said.startswith("x and x_mm are the same but for a factor of 1000 in every row: ")
    x[0, 2] *= 1.001
    assert said_of_spoiled([plain(np.arange(60.0), x)], ["x", "v", "x_mm"]) == []
    x[:, 2] = 32 + 1.8 * x[:, 0]
    (said,) = said_of_spoiled([plain(np.arange(60.0), x)], ["°C", "v", "°F"])
    assert said.startswith("°F is 32 + 1.8 °C in every row: ")
    x[:, 2] = 1 - x[:, 0]
    (said,) = said_of_spoiled([plain(np.arange(60.0), x)], ["S", "v", "I"])
    assert said.startswith("I is 1 - S in every row: ")


def test_what_spoils_a_state_is_told_of_once():
    t, rng = np.linspace(0, 10, 60), RNG(0)
    x = np.column_stack([np.cos(2 * t), -np.sin(2 * t), np.zeros(60)]) + 0.01 * rng.normal(size=(60, 3))
    x[:, 2] = 4
    with pytest.warns(AmbiguityWarning, match="p is 4 in every row"):
        model = Discovery(Polynomials(2)).fit(x, t, feature_names=["x", "v", "p"])
    assert len(model.warnings_) == 1
    x[[5, 30], 0] = -999
    with pytest.warns(AmbiguityWarning, match="x is -999 in 2 rows"):
        model = Discovery(Polynomials(1)).fit(x[:, :2], t, feature_names=["x", "v"])
    assert len(model.warnings_) == 1


def test_a_schedule_may_list_only_the_times_when_an_input_switches(tmp_path):
    """A tank that a pump fills: a model knows from its data that the pump is on or off, and from its file."""
    t = np.arange(0, 40, 0.5)
    pump, level = (t % 12 < 5).astype(float)[:, None], np.zeros(80)
    for i in range(79):  # x' = u − x/4, exactly
        level[i + 1] = 4 * pump[i, 0] + (level[i] - 4 * pump[i, 0]) * np.exp(-0.125)
    noisy = level + 0.001 * RNG(0).normal(size=80)
    model = Discovery(Polynomials(1)).fit(noisy, t, u=pump, feature_names=["level", "pump"])
    times = np.array([0.0, 20, 60, 61])
    ardea.save(model, tmp_path / "model.ardea")
    expected = [0, 4 * (1 - np.exp(-5)), 4 * (1 - np.exp(-5)) * np.exp(-10)]
    for one in (model, ardea.load(tmp_path / "model.ardea")):
        rows = one.simulate([0.0], times, u=np.array([[1.0], [0], [1], [1]]))
        np.testing.assert_allclose(rows[:3, 0], expected, atol=0.01)


def test_inputs_that_switch_unseen_or_never_change():
    t = np.concatenate([np.arange(20.0), np.arange(40.0, 60.0)])
    series = Series(t, np.cos(t)[:, None], np.column_stack([t > 30, np.ones(40)]).astype(float))
    switched, constant = said_of_inputs([series], ["x", "on", "one"])
    assert "on changes between t = 19 and 40" in switched
    assert "one never changes" in constant
    assert said_of_inputs([Series(t[:20], series.x[:20], (t[:20, None] > 10).astype(float))], ["x", "on"]) == []


def test_codes_for_missing_inputs_are_told():
    t, on = np.arange(40.0), np.arange(40) // 8 % 2.0
    on[17] = -9999
    (said,) = said_of_inputs([Series(t, np.cos(t)[:, None], on[:, None])], ["x", "on"])
    assert "on is -9999 in 1 row" in said


def decay(t, seed=0):
    return 10 * np.exp(-0.15 * t) + 0.1 * RNG(seed).normal(size=t.shape)


def test_single_samples_far_off_are_named():
    t = np.linspace(0, 20, 100)
    x = decay(t)
    x[30] += 5
    with pytest.warns(AmbiguityWarning, match=r"x0 lies many times its usual noise off its curve at t = 6.06061 \("):
        Discovery(Polynomials(2)).fit(x, t)


def uneven(seed, rows=150):
    t = 0.1 * (np.arange(rows) + RNG(seed).uniform(-0.3, 0.3, rows))
    return t, np.sin(t) + RNG(seed + 1).normal(scale=0.01, size=rows)


@pytest.mark.parametrize("row", [0, -1])
def test_first_and_last_readings_that_are_off_are_named(row):
    t, x = uneven(0)
    x[row] += 0.5
    (said,) = ends_off([plain(t, x[:, None])], ["x"])
    assert said.startswith(f"x at t = {t[row]:.6g} ")


def test_ends_are_hardly_ever_named_by_chance():
    named = [ends_off([plain(t, x[:, None])], ["x"]) for t, x in map(uneven, range(10, 110))]
    assert sum(map(len, named)) <= 2


@pytest.mark.parametrize("readings", [3, 7, 12])
def test_bursts_of_readings_are_one_series(readings):
    """Some readings within seconds, every hour: as exact as readings at any other times, and none is lost."""
    t = (np.arange(48.0)[:, None] + 10 * np.arange(readings) / 3600).ravel()
    model = Discovery(Polynomials(2)).fit(decay(t), t)
    assert model.equations_[0].terms == ("x0",)
    assert abs(model.equations_[0].coefficients[0] + 0.15) < 4 * model.equations_[0].std[0]
    assert model.rows_used_ == 48 * readings


def test_rows_of_one_time_are_joined():
    """Two clocks in one table: rows that differ by rounding alone, or not at all, are one row."""
    t, rng = np.arange(0, 15, 0.3), RNG(1)
    x = np.column_stack([np.cos(t), -np.sin(t)]) * np.exp(-0.05 * t)[:, None] + 0.02 * rng.normal(size=(50, 2))
    whole = Discovery(Polynomials(1)).fit(x, t)
    for later in (t, np.nextafter(t, 99)):
        apart = np.full((100, 2), np.nan)
        apart[::2, 0], apart[1::2, 1] = x.T
        joined = Discovery(Polynomials(1)).fit(apart, np.column_stack([t, later]).ravel())
        np.testing.assert_array_equal(joined.coefficients(), whole.coefficients())
    with pytest.raises(ValueError, match="ascend strictly"):
        Discovery().fit(np.repeat(x, 2, axis=0), np.repeat(t, 2))


def test_columns_of_frames_are_states_and_inputs_by_their_names():
    """Whatever their index; a column without a name is as good as an array."""
    t, on = np.linspace(0, 10, 80), pd.Series(np.arange(80) // 10 % 2.0, name="on")
    x = pd.Series(decay(t), name="cells", index=pd.date_range("2024", periods=80))
    model = Discovery(Polynomials(1)).fit(x, t, u=on)
    assert model.get_feature_names() == ["1", "cells", "on"]
    expected = Discovery(Polynomials(1)).fit(x.to_numpy(), t).coefficients()
    for one in (x, x.rename(None), pd.Series(x.to_numpy())):
        np.testing.assert_array_equal(Discovery(Polynomials(1)).fit(one, t).coefficients(), expected)
    runs = Discovery(Polynomials(1)).fit([x[:40], x[40:]], [t[:40], t[40:]])
    assert runs.equations_[0].terms == ("cells",)


def test_states_may_differ_in_the_kind_of_their_noise():
    t, rng = np.linspace(0, 12, 120), RNG(3)
    parent = 100 * np.exp(-0.8 * t)
    daughter = 160 * (np.exp(-0.3 * t) - np.exp(-0.8 * t))
    x = np.column_stack([parent * (1 + 0.1 * rng.normal(size=120)), daughter + rng.normal(size=120)])
    model = Discovery(Polynomials(2)).fit(x, t)
    assert model.noise_kind_ == "mixed"
    assert [one.terms for one in model.equations_] == [("x0",), ("x0", "x1")]
    for one, truth in zip(model.equations_, ([-0.8], [0.8, -0.3]), strict=True):
        assert np.all(np.abs(one.coefficients - truth) < 4 * one.std)


def test_an_equation_all_of_whose_terms_are_known_is_fitted():
    t = np.linspace(0, 5, 60)
    x = np.exp(-t) + 0.01 * RNG(0).normal(size=60)
    every = dict.fromkeys(("1", "T", "T^2", "T^3"))
    model = Discovery(known={"T": every}).fit(x, t, feature_names=["T"])
    assert model.equations_[0].terms == tuple(every)


def test_what_an_input_moves_is_not_at_rest():
    """A decay that ends in a few rows; and the same rows of a system whose input goes on jumping."""
    t, decay = np.arange(40.0), np.exp(-np.arange(40.0))[:, None]
    rows = {"still": np.zeros((40, 1)), "moved": RNG(0).normal(size=(40, 1))}
    nodes = {name: nodes_of([Series(t, decay, u)], 1) for name, u in rows.items()}
    (said,) = at_rest(nodes["still"], decay, np.array([0.01]), 10)
    assert said.startswith("The states come to rest: in 35 of 40 rows")  # exp(−5) < 0.01
    assert at_rest(nodes["moved"], decay, np.array([0.01]), 10) == []


def test_noise_of_few_rows_has_no_memory():
    """Chance makes 40 readings that are all noise look like an oscillation of few readings a period in at most 5 %."""
    taken, t = 0, np.arange(40.0)
    for seed in range(100):
        nodes = nodes_of([Series(t, RNG(seed).normal(size=(40, 1)), np.empty((40, 0)))], 1)
        taken += undersampled(nodes, smoothed(nodes), np.array([0.5]))
    assert taken <= 5
    fast = np.cos(2.2 * t)[:, None] + 0.05 * RNG(0).normal(size=(40, 1))
    nodes = nodes_of([Series(t, fast, np.empty((40, 0)))], 1)
    assert undersampled(nodes, np.zeros_like(fast), np.array([0.5]))


def test_how_much_a_state_varies_does_not_depend_on_what_was_found():
    """A wave that a library of one constant cannot follow: it is told that nothing fits, not that it hardly moves."""
    t = np.linspace(0, 12, 100)
    x = np.cos(t)[:, None] + 0.05 * RNG(1).normal(size=(100, 1))
    with pytest.warns((AmbiguityWarning, MisfitWarning)):
        model = Discovery(Polynomials(0)).fit(x, t)
    (varies,) = model.searched_.excitation
    assert varies == pytest.approx(np.std(np.cos(t)) / model.searched_.sample_noise[0], rel=0.05)
    assert not any("varies only" in one for one in model.warnings_)


def test_a_rival_with_noise_of_another_kind_is_named():
    """Counts of a predator and its prey, in which what noise is decides what terms are: both models are told of."""

    def slopes(_, z):
        return [0.6 * z[0] - 0.03 * z[0] * z[1], -0.8 * z[1] + 0.025 * z[0] * z[1]]

    t, found = np.linspace(0, 40, 60), Discovery(Polynomials(2))
    x = solve_ivp(slopes, (0, 40), [30, 10], t_eval=t, rtol=1e-9, atol=1e-9).y.T
    with pytest.warns(AmbiguityWarning):
        found.fit(RNG(3).poisson(x).astype(float), t, feature_names=["x", "y"])
    second = found.equations_[1]
    named = {tuple(sorted(one.terms)) for one in (second, *second.rivals)}
    assert ("x y", "y") in named
    pursuit = found.searched_.pursuit
    best = min(map(pursuit.score, pursuit.elsewhere))
    assert pursuit.score(found.searched_.fit) <= best + 2 * SLIGHT_GAIN + 1e-9


def oscillation(seed=0, rows=100, noise=0.02):
    t, rng = 0.2 * np.arange(rows), np.random.default_rng(seed)
    x = solve_ivp(lambda _, y: [y[1], -y[0] - 0.1 * y[1]], (0, t[-1]), [1, 0], t_eval=t, rtol=1e-9).y.T
    return x + noise * rng.normal(size=x.shape), t


def quietly(model, *data, **options):
    """Return a fit, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*data, **options)
    return model, [str(one.message) for one in caught]


@pytest.mark.parametrize("size", [0.5, 3.0])
def test_several_samples_far_off_are_named_too(size):
    x, t = oscillation()
    x[[15, 37, 60, 81], 0] += size * np.array([1, -1, -1, 1])
    _, texts = quietly(Discovery(Polynomials(1)), x, t, feature_names=["x", "v"])
    (text,) = [one for one in texts if "off its curve" in one]
    assert text.startswith("x lies many times its usual noise off its curve at t = 3 (")
    assert "t = 7.4 (" in text
    assert "t = 12 (" in text
    assert "and 1 more" in text


@pytest.mark.parametrize("louder", [1, -1])
def test_noise_that_changes_is_no_mistake_of_single_readings(louder):
    x, t = oscillation(rows=160, noise=0.0)
    size = np.where(np.arange(160) < 80, 0.01, 0.15)[::louder, None]
    noisy = x + size * np.random.default_rng(4).normal(size=x.shape)
    _, texts = quietly(Discovery(Polynomials(1)), noisy, t, feature_names=["x", "v"])
    changes = [one for one in texts if re.match(r"The noise of [xv] is \d+\.\d times", one)]
    assert changes
    assert all(f"times {'larger' if louder > 0 else 'smaller'} from about t = 16 on" in one for one in changes)
    assert not any("off its curve" in one for one in texts)


def pendulum(amplitude, seed):
    t, rng = np.linspace(0, 25, 250), np.random.default_rng(seed)
    x = solve_ivp(lambda _, y: [y[1], -4 * np.sin(y[0]) - 0.1 * y[1]], (0, 25), [amplitude, 0], t_eval=t, rtol=1e-9).y.T
    return x + 0.05 * rng.normal(size=x.shape), t


def test_powers_that_stand_in_for_a_sine_are_told():
    x, t = pendulum(2.5, 1)
    with pytest.warns(MisfitWarning, match=r"not among the candidates, such as sin\(x\) in the equation of \(v\)'"):
        Discovery().fit(x, t, feature_names=["x", "v"])
    model = Discovery(Polynomials(3) + Fourier(1)).fit(x, t, feature_names=["x", "v"])
    assert [set(one.terms) for one in model.equations_] == [{"v"}, {"v", "sin(x)"}]
    assert model.warnings_ == []


def test_powers_are_told_that_one_function_could_take_the_place_of():
    """A stone thrown up and falling, with drag v |v|: v and v³ follow it as well, with a term more."""
    t, rng = np.arange(60) * 0.1, np.random.default_rng(2)
    v = solve_ivp(lambda _, v: -9.81 - 0.02 * np.abs(v) * v, (0, 5.9), [30.0], t_eval=t, rtol=1e-9).y.T
    noisy = v + 0.02 * v.std() * rng.normal(size=v.shape)
    with pytest.warns(MisfitWarning, match=r"such as v \|v\| in the equation of \(v\)', in place of v and v\^3,"):
        Discovery().fit(noisy, t, feature_names=["v"])


def test_a_function_is_named_where_its_lack_looks_like_noise_of_the_process():
    """Dry friction: what powers of v leave of it moves the states; sign(v) does without that."""
    t, rng = np.arange(250) * 0.1, np.random.default_rng(5)
    slopes = lambda _, y: [y[1], -1.5 * y[0] - 0.3 * np.tanh(y[1] / 0.005)]  # noqa: E731
    x = solve_ivp(slopes, (0, 25), [4.0, 0.0], t_eval=t, rtol=1e-8, max_step=0.05).y.T
    model, texts = quietly(
        Discovery(), x + 0.02 * x.std(axis=0) * rng.normal(size=x.shape), t, feature_names=["x", "v"]
    )
    assert model.process_noise_[1] > 0
    assert any("such as sign(v) in the equation of (v)', in place of v and v^3," in text for text in texts)


def test_powers_that_stand_in_for_a_fraction_are_told():
    """Two genes that switch each other off, u' = 4/(1 + v^2) - u: five powers of both fit alike."""
    rng, t, runs = np.random.default_rng(1), np.linspace(0, 8, 60), []
    for start in ([3, 1], [1, 3], [0.2, 0.3], [4, 3.5]):
        x = solve_ivp(lambda _, y: 4 / (1 + y[::-1] ** 2) - y, (0, 8), start, t_eval=t, rtol=1e-9, atol=1e-10).y.T
        runs.append(x * (1 + 0.05 * rng.normal(size=x.shape)))
    _, texts = quietly(Discovery(), runs, [t] * 4, feature_names=["u", "v"])
    assert any(
        re.search(r"such as 1/\([uv]\^2 \+ \S+\^2\) in the equation of \([uv]\)', in place of", one) for one in texts
    )


def moving_inflow(s):
    return 0.6 + 0.25 * np.sin(s / 40) + 0.15 * np.sin(s / 13)


def switching_inflow(s):
    return np.where(s // 54 % 2 == 0, 0.9, 0.3)


@pytest.mark.parametrize("inflow", [moving_inflow, switching_inflow])
def test_all_powers_of_a_state_next_to_an_input_are_told(inflow):
    """A tank, level' = 0.05 inflow - 0.04 sqrt(level): all but one of the terms stand in for the root.

    Where the inflow has two levels, inflow² is a constant and inflow: a third way to stand in for it, at one price.
    """
    t, rng = 2.0 * np.arange(200), np.random.default_rng(901)
    fall = lambda s, y: 0.05 * inflow(s) - 0.04 * np.sqrt(y)  # noqa: E731
    x = solve_ivp(fall, (0, 398), [1.0], t_eval=t, rtol=1e-9, max_step=2.0).y.T
    noisy = x + 0.02 * x.std() * rng.normal(size=x.shape)
    model, texts = quietly(Discovery(), noisy, t, u=inflow(t)[:, None], feature_names=["level", "inflow"])
    assert "inflow^2" not in model.equations()[0]
    assert any("such as sqrt(level) in the equation of (level)', in place of" in one for one in texts)


def test_what_is_wrong_with_data_is_said_before_the_search():
    """A candidate that cannot be computed ends the search: what spoils a state has been said."""
    x, t = oscillation(rows=80, noise=0.01)
    x[[7, 30, 31, 60], 0] = -999.0

    def unknown(state):
        raise RuntimeError("the search has begun")

    library = Polynomials(1) + Custom([unknown], names=["unknown({})"])
    with pytest.warns(AmbiguityWarning, match="is -999 in 4 rows"), pytest.raises(RuntimeError, match="has begun"):
        Discovery(library).fit(x, t, feature_names=["x", "v"])


def test_levels_of_an_input_that_switches_are_no_codes():
    switching = np.repeat([-1.3, 3.0, -1.0, 3.9], 25)
    given = [Series(np.arange(100.0), np.sin(np.arange(100.0))[:, None], switching[:, None])]
    assert said_of_inputs(given, ["x", "I"]) == []
    switching[[7, 60]] = 400.0
    assert any("400" in one for one in said_of_inputs(given, ["x", "I"]))


def test_a_noisier_series_has_no_outliers():
    runs, times = [], []
    for noise in (0.01, 0.2):
        x, t = oscillation(rows=80, noise=noise)
        runs.append(x)
        times.append(t)
    _, texts = quietly(Discovery(Polynomials(1)), runs, times, feature_names=["x", "v"])
    assert not any("off its curve" in one or "from about" in one for one in texts)
    assert sum(" in series 2 is " in one and " times that in series 1" in one for one in texts) == 2
    runs[0][40, 0] += 1.0
    _, texts = quietly(Discovery(Polynomials(1)), runs, times, feature_names=["x", "v"])
    assert any("off its curve at t = 8 of series 1 (" in one for one in texts)


@pytest.mark.parametrize("jumps", [False, True])
def test_what_jumps_is_not_judged_with_noise_of_the_process(jumps):
    """That likelihood asks for derivatives: of 600 rows of a pushed oscillator it was 33 for a sign(v) too many."""
    wider = SimpleNamespace(fitted=lambda *_: "exact", learned=lambda *_: "driven")
    pursuit = SimpleNamespace(levels=[np.ones(1)] * 4, with_process=True)
    start = SimpleNamespace(coefficients=np.ones((1, 2)))
    assert fits_of(pursuit, wider, start, jumps) == ["exact", "driven"][: 1 if jumps else 2]


def test_one_column_that_oscillates_is_told_of_the_second_order():
    x, t = oscillation()
    _, texts = quietly(Discovery(), x[:, :1], t, feature_names=["x"])
    assert any("try derivative_order=2" in one for one in texts)


def test_states_above_zero_have_no_use_for_absolute_values():
    x, _ = oscillation()
    above = x + np.array([5.0, 0.0])
    noise = np.full(2, 0.05)
    shown = {term.name(["x", "v"]) for term in common_functions(x, noise)}
    assert {"|x|", "v |v|", "sign(x)"} < shown
    assert not any("log" in one or "sqrt" in one or "/" in one for one in shown)
    shown = {term.name(["x", "v"]) for term in common_functions(above, noise)}
    assert {one for one in shown if "|" in one or "sign" in one} == {"|v|", "sign(v)", "v |v|"}
    middle = f"{np.median(above[:, 0]):.3g}"
    assert {"sqrt(x)", "log(x)", "1/x", f"1/(x + {middle})", f"1/(x^2 + {middle}^2)"} < shown


def test_readings_that_are_cut_off_or_stuck_are_told():
    t, rng = np.linspace(0, 20, 120), np.random.default_rng(3)
    x = np.column_stack([np.sin(t), np.cos(t)]) + 0.02 * rng.normal(size=(120, 2))
    assert said_of_states([Series(t, x, np.empty((120, 0)))], ["x", "y"]) == []
    cut = np.column_stack([np.minimum(x[:, 0], 0.9), x[:, 1]])
    (text,) = said_of_states([Series(t, cut, np.empty((120, 0)))], ["x", "y"])
    assert text.startswith(f"x is at its largest value, 0.9, in {np.sum(x[:, 0] >= 0.9)} rows: if readings are cut off")
    stuck = x.copy()
    stuck[40:50, 1] = stuck[40, 1]
    (text,) = said_of_states([Series(t, stuck, np.empty((120, 0)))], ["x", "y"])
    assert text.startswith(f"y is {stuck[40, 1]:.6g} in 10 rows in a row, up to t = {t[49]:.6g}: if its sensor")
    assert f"--na={float(stuck[40, 1])!r} on the command line" in text
    stuck[3, 0] = stuck[40, 1]  # a reading like others
    (text,) = said_of_states([Series(t, stuck, np.empty((120, 0)))], ["x", "y"])
    assert "in the file, as it is the value of 1 other reading, too" in text
    assert "--na" not in text
    counts = rng.poisson(0.7, size=(120, 1)).astype(float)  # zeros of small counts are readings
    assert said_of_states([Series(t, counts, np.empty((120, 0)))], ["n"]) == []


def test_a_state_that_rests_at_its_least_value_is_not_called_cut_off_alone():
    """A decay ends at zero, a dose comes after some time; what is cut off comes back."""
    t = np.linspace(0, 10, 101)
    decay, dose = np.round(5 * np.exp(-1.5 * t), 4), np.where(t < 2, 0.0, np.exp(2 - t) - np.exp(6 - 3 * t))
    for x, where in ((decay, "the end"), (dose, "the start"), (np.where(t < 8, dose, 0), "both")):
        (text,) = said_of_states([Series(t, x[:, None], np.empty((101, 0)))], ["c"])
        place = "the start or the end" if where == "both" else where
        assert f"c stays at its least value, 0, in {np.sum(x == 0)} rows, all at {place} of a series." in text
        assert "If it is at rest there, these readings are right. If they are cut off" in text
    two = [Series(t, x[:, None], np.empty((101, 0))) for x in (decay, dose)]
    assert "at the start or the end of a series" in said_of_states(two, ["c"])[0]
    swing = np.maximum(np.sin(t[:, None]) + 0.01 * np.random.default_rng(0).normal(size=(101, 1)), 0)
    assert "c is at its least value, 0, in" in said_of_states([Series(t, swing, np.empty((101, 0)))], ["c"])[0]


def test_a_state_may_have_no_readings_in_one_of_several_series():
    t, x = np.arange(60.0), np.cos(np.arange(60.0)[:, None] * [0.1, 0.13])
    without = np.column_stack([x[:, 0], np.full(60, np.nan)])
    assert said_of_states([plain(t, x), plain(t, without)], ["x", "y"]) == []


def test_few_rows_a_period_may_hide_a_faster_motion():
    rng, t = np.random.default_rng(0), np.arange(120) * 0.982  # 1.6 rows a period
    x = np.column_stack([np.cos(4 * t), -4 * np.sin(4 * t)])
    _, texts = quietly(Discovery(Polynomials(1)), x + 0.02 * rng.normal(size=x.shape), t, feature_names=["x", "v"])
    assert any(one.startswith("There are fewer than four rows in a period") for one in texts)
    t = np.arange(120) * 0.2  # eight
    x = np.column_stack([np.cos(4 * t), -4 * np.sin(4 * t)])
    model, texts = quietly(Discovery(Polynomials(1)), x + 0.02 * rng.normal(size=x.shape), t, feature_names=["x", "v"])
    assert (model.equations_[1].terms, texts) == (("x",), [])


def test_a_model_that_cannot_be_run_over_its_own_rows_is_told():
    """Rows are lost and times closed up: what follows the jump nevertheless blows up."""
    t, rng = np.linspace(0, 25, 120), np.random.default_rng(1007)
    slopes = lambda _, z: [0.9 * z[0] - 0.4 * z[0] * z[1], -0.7 * z[1] + 0.25 * z[0] * z[1]]  # noqa: E731
    x = solve_ivp(slopes, (0, 25), [3.0, 1.0], t_eval=t, rtol=1e-9, atol=1e-11, method="LSODA").y.T
    x += 0.03 * x.std(axis=0) * rng.normal(size=x.shape)
    lost = int(rng.integers(40, 80))
    x = np.delete(x, np.s_[lost : lost + 8], axis=0)
    model, texts = quietly(Discovery(), x, t[:112], feature_names=["p", "q"])
    with pytest.warns(SimulationWarning, match="the model blows up"):
        model.simulate(None, t[:112])
    assert any(re.match(r"Run over its own rows, \|x\| passed its limit at t = .* blows up", one) for one in texts)


def test_errors_that_follow_each_other_are_told():
    """Of white noise hardly ever; of noise with memory, and of nodes in any number of stretches."""
    rng, names = np.random.default_rng(4), ["x"]
    nodes = nodes_of([Series(np.arange(60.0), np.zeros((60, 1)), np.empty((60, 0))) for _ in range(5)])
    assert not any(dependent_errors(nodes, rng.normal(size=(300, 1)), names) for _ in range(2000))
    noise = rng.normal(size=(302, 1))
    (text,) = dependent_errors(nodes, noise[2:] + noise[1:-1] + noise[:-2], names)
    assert text.startswith("What the samples of x leave is not noise")


def test_sums_of_many_lags_have_the_chance_that_is_told():
    """Of 20,000 draws of white noise as many exceed two of these deviations as normal numbers do."""
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(20_000, 500))
    total = sum(np.einsum("ij,ij->i", noise[:, k:], noise[:, :-k]) for k in range(1, 19))
    number = sum(500 - k for k in range(1, 19))
    chance = pearson3.sf(total / np.sqrt(number), 3 * 17 / np.sqrt(number))
    for level in (0.05, 0.01, 0.001):
        assert np.sum(chance < level) == pytest.approx(20_000 * level, abs=4 * np.sqrt(20_000 * level))


def test_rounded_readings_that_repeat_were_not_written_twice():
    t, rng = np.arange(60.0), np.random.default_rng(2)
    x = np.round(10 / (1 + np.exp(-(t - 25) / 8)) + 0.1 * rng.normal(size=60), 3)[:, None]
    x[[20, 40]] = x[[19, 39]]
    one = [Series(t, x, np.empty((60, 0)))]
    assert any("rows repeat the row before" in text for text in said_of_states(one, ["x"]))
    x = np.round(x, 2)
    assert not any(
        "rows repeat the row before" in text for text in said_of_states([Series(t, x, one[0].inputs)], ["x"])
    )


def test_series_are_cut_where_inputs_that_move_are_not_known():
    t, rng = np.arange(240.0), np.random.default_rng(1)

    def out(t):
        return 5 + 6 * np.sin(2 * np.pi * (t - 3) / 24)

    x = solve_ivp(lambda t, y: -0.12 * (y - out(t)) + 0.4, (0, 239), [19.0], t_eval=t, rtol=1e-9, max_step=0.5).y.T
    x += 0.15 * rng.normal(size=x.shape)
    known = np.r_[0:100, 112:240]
    with pytest.warns(AmbiguityWarning, match=r"Between t = 99 and 112 there are no readings of inputs, and these"):
        model = Discovery(Polynomials(2)).fit(x[known], t[known], u=out(t[known]), feature_names=["T", "out"])
    low, high = np.transpose(model.equations_[0].interval())
    assert model.equations_[0].terms == ("1", "T", "out")
    assert np.all((low < [0.4, -0.12, 0.12]) & (high > [0.4, -0.12, 0.12]))
    assert not np.any(model.process_noise_)
    slow = Series(t[known], x[known], (t[known, None] / 240) ** 2)  # known well enough in the gap
    assert unknown_inputs(slow) == []
    u = out(t)
    u[100:112] = np.nan
    same, texts = quietly(Discovery(Polynomials(2)), x, t, u=u, feature_names=["T", "out"])
    assert len(texts) == 1
    assert "the 12 rows in between are left out" in texts[0]
    np.testing.assert_allclose(same.coefficients(), model.coefficients(), rtol=1e-6)


@pytest.mark.parametrize("factor", [3.0, 1 / 3])
def test_noise_that_is_told_wrong_is_named_and_not_the_library_blamed(factor):
    x, t = oscillation()
    model, texts = quietly(Discovery(Polynomials(2), noise_std=0.02 * factor), x, t, feature_names=["x", "v"])
    assert [one.terms for one in model.equations_] == [("v",), ("x", "v")]
    assert texts[0].startswith(f"noise_std={0.02 * factor:.3g} is ")
    assert not any("no candidate fits" in one for one in texts)


def test_pushes_are_told_from_row_to_row():
    """Over a row of length h the states move by process_noise_·√h, whatever steps were computed with."""
    rng, t, x = np.random.default_rng(0), 0.5 * np.arange(400), np.zeros(400)
    for i in range(399):
        x[i + 1] = x[i] * np.exp(-0.35) + 0.6 * np.sqrt((1 - np.exp(-0.7)) / 1.4) * rng.normal()
    y = x + 0.1 * rng.normal(size=400)
    model, texts = quietly(Discovery(Polynomials(1)), y, t, feature_names=["rate"])
    (told,) = [float(one.split("moves rate by ")[1].split(" ")[0]) for one in texts if "moves rate by" in one]
    assert told == pytest.approx(float(model.process_noise_[0]) * np.sqrt(0.5), rel=0.05)


def test_names_and_noise_that_cannot_be_are_refused():
    x, t = oscillation()
    with pytest.raises(ValueError, match="have the name 'a': rename one of them"):
        Discovery().fit(pd.DataFrame(x, columns=["a", "a"]), t)
    with pytest.raises(ValueError, match="one for each of the 2 states"):
        Discovery(noise_std=[0.1, 0.1, 0.1]).fit(x, t)


@pytest.mark.parametrize("seed", [2, 7])
def test_parts_of_a_model_that_ended_at_worse_states_are_tried_again(seed):
    """Of a chaotic map, the likelihood has many optima."""
    x = np.full((120, 2), 0.1)
    for i in range(119):
        x[i + 1] = 1 - 1.4 * x[i, 0] ** 2 + x[i, 1], 0.3 * x[i, 0]
    y = x + 0.02 * np.random.default_rng(seed).normal(size=x.shape)
    model = Discovery(discrete_time=True).fit(y, 1.0, feature_names=["a", "b"])
    assert [set(one.terms) for one in model.equations_] == [{"1", "b", "a^2"}, {"a"}]


def test_text_among_numbers_is_told_with_its_column():
    frame = pd.DataFrame({"run": ["Run 1"] * 20, "x": np.exp(-np.arange(20.0))})
    with pytest.raises(ValueError, match="x must be numbers, and column 'run' holds texts"):
        Discovery().fit(frame, 1.0)
    with pytest.raises(ValueError, match="u must be numbers, and column 'mode' holds texts"):
        Discovery().fit(frame[["x"]], 1.0, u=pd.DataFrame({"mode": ["on", "off"] * 10}))


def test_one_row_and_inputs_that_are_lacking_are_told():
    with pytest.raises(ValueError, match="x0 has no two samples in any series"):  # and nothing of an empty slice
        Discovery().fit(np.ones((1, 1)), 1.0)
    t, u = np.arange(80.0), (np.arange(80) % 20 < 8).astype(float)
    x = np.zeros(80)
    for k in range(79):
        x[k + 1] = 0.8 * x[k] + u[k]
    x = x + 0.01 * np.random.default_rng(0).normal(size=80)
    model = Discovery(Polynomials(1), discrete_time=True).fit(x, u=u)
    with pytest.raises(ValueError, match="have 1 input; give as u their values, a row for every time"):
        model.simulate([1.0], t)


def test_times_in_messages_are_dates_where_those_of_the_data_were():
    clock = Clock("h", "2024-01-01")
    told = ["between t = 1.5 and 48, where", "x at t = 1e+02 (3) lies", "at 5", "a t = b"]
    dated = [
        "between 2024-01-01T01:30:00 and 2024-01-03T00:00:00, where",
        "x at 2024-01-05T04:00:00 (3) lies",
        *told[2:],
    ]
    assert clock.dated(told) == dated
    assert Clock("h").dated(told) == told
    clock = Clock("h", "2023-10-28T06:30:00")  # six digits of hours carry seconds first, and minutes only later
    assert clock.dated(["at t = 26.8333", "at t = 1234.83"]) == ["at 2023-10-29T09:20:00", "at 2023-12-18T17:20"]
    assert Clock("h", "2024-01-01T00:00:00+00:00").dated(["at t = 1."]) == ["at 2024-01-01T01:00:00+00:00."]


@pytest.mark.parametrize(("n", "rows", "smooth", "said"), [(40, 200, True, 1), (40, 60, False, 1), (40, 200, False, 0)])
def test_many_states_and_points_of_a_field_are_told(n, rows, smooth, said):
    """Sums of three waves, at the points in their order or in none."""
    rng, t, x = np.random.default_rng(1), np.linspace(0, 4, rows), np.linspace(0, 10, n)
    u = sum(np.sin(k * (x - t[:, None]) + k**2) for k in (0.5, 1.0, 1.7)) + 0.05 * rng.normal(size=(rows, n))
    u = u if smooth else u[:, rng.permutation(n)]
    told = said_of_states([plain(t, u)], [f"u{i}" for i in range(n)])
    asked = "points of a field" if smooth else "so many states"
    assert [asked in text for text in told] == [True] * said
