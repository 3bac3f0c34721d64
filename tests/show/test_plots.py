"""Pictures: what is drawn is what the model says."""

from __future__ import annotations

from copy import copy
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ardea
from ardea import ARD, ARDSearch, ARDvi, SparseARD, rates, show
from ardea.dynamics import AmbiguityWarning, Discovery, FieldTerms, systems
from ardea.dynamics.libraries import Polynomials
from ardea.show import canvas, fits
from ardea.show import motion as motion_plots
from conftest import sparse_data

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def no_open_figures():
    """Close what a test has drawn."""
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return sparse_data(seed=1)


@pytest.fixture(scope="module")
def model(data):
    return SparseARD().fit(data.X, data.y)


@pytest.fixture(scope="module")
def search(data):
    return ARDSearch(ARDvi(), strengths=[1, 2, 4, 8, 16]).fit(data.X, data.y)


@pytest.fixture(scope="module")
def motion():
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    return t, x, Discovery(Polynomials(2)).fit(x, t, feature_names=["p", "q"])


def title(ax):
    return ax.get_title(loc="left")


def test_coefficients_are_the_posterior_with_its_intervals(model):
    ax = model.plot_coefficients(level=0.9)
    interval = model.credible_interval(0.9)[model.support_]
    (points, caps, (bars,)) = ax.containers[0]
    drawn = np.array([segment[:, 0] for segment in bars.get_segments()])
    np.testing.assert_allclose(drawn, interval)
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"x{j}" for j in np.flatnonzero(model.support_)]
    np.testing.assert_allclose(points.get_xdata(), interval.mean(axis=1))
    assert len(caps) == 2


def test_coefficients_in_very_different_units_are_drawn_in_standard_errors(data):
    unit = np.ones(data.X.shape[1])
    unit[np.flatnonzero(data.coef)[0]] = 1e6
    ax = SparseARD().fit(data.X * unit, data.y).plot_coefficients()
    reference = SparseARD().fit(data.X, data.y)
    t = reference.coef_[reference.support_] / reference.coef_std_[reference.support_]
    np.testing.assert_allclose(ax.containers[0][0].get_xdata(), t, rtol=1e-6)
    assert "standard error" in ax.get_xlabel()


def test_prediction_band_holds_the_share_it_tells(model, data):
    ax = model.plot_prediction(data.X, data.y, level=0.8)
    mean, std = model.predict(data.X, return_std=True)
    inside = np.mean(np.abs(data.y - mean) <= stats.norm.ppf(0.9) * std)
    assert title(ax).startswith(f"{100 * inside:.3g} % of {data.y.size} rows")


def test_residuals_are_in_units_of_their_deviation(model, data):
    axes = model.plot_residuals(data.X, data.y)
    assert axes.shape == (3,)
    mean, std = model.predict(data.X, return_std=True)
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), (data.y - mean) / std)
    np.testing.assert_allclose(axes[1].lines[1].get_ydata(), np.sort((data.y - mean) / std))


def test_autocorrelation_of_a_cosine():
    """A long cosine is correlated with itself as cos(ω·lag), up to the rows that fall off the end."""
    series = np.cos(0.3 * np.arange(20000))
    for lag in (1, 5, 10):
        assert fits.autocorrelation(series, lag) == pytest.approx(np.cos(0.3 * lag), abs=2e-3)


def test_what_every_term_adds_is_what_least_squares_leaves(model, data):
    """The chosen terms leave 1 − R² of least squares; every further term leaves less, those not kept least."""
    ax = model.plot_pareto(data.X, data.y)
    kept, others = (line.get_xdata() for line in ax.lines)
    centred, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
    residual = y - centred[:, model.support_] @ np.linalg.lstsq(centred[:, model.support_], y, rcond=None)[0]
    assert kept[0] == 1
    assert kept[-1] == pytest.approx(residual @ residual / (y @ y), rel=1e-9)
    assert np.all(np.diff([*kept, *others]) < 0)
    labels = [label.get_text().removeprefix("+ ") for label in ax.get_yticklabels()]
    names = [f"x{j}" for j in np.flatnonzero(model.support_)]
    assert sorted(labels[1 : kept.size]) == sorted(names)
    assert not set(labels[kept.size :]) & set(names)
    assert [line.get_xdata().tolist() for line in model.plot_pareto().lines] == [kept.tolist(), []]  # without rows


def test_rivals_are_drawn_at_their_difference(motion):
    _, _, found = motion
    for ax, equation in zip(found.plot_pareto(), found.equations_, strict=True):
        chosen, others, _ = (line.get_xdata() for line in ax.lines)
        np.testing.assert_array_equal(chosen, [0])
        np.testing.assert_array_equal(others, [one.excess for one in equation.rivals])


def test_no_line_leads_across_a_gap_and_far_bands_do_not_hide_the_run(motion):
    t, x, found = motion
    there = np.r_[0:15, 40:60]
    axes = found.plot_simulation(x[0], t[there], n_samples=5, x=x[there], random_state=0)
    (line,) = [line for line in axes[0].lines if line.get_label() == "model"]
    assert np.flatnonzero(np.isnan(line.get_ydata())).tolist() == [15]
    ax = axes[0]
    ax.set_ylim(-1e6, 1e6)
    canvas.show_around(ax, "y", [0.0, 1.0, np.nan])
    assert ax.get_ylim() == (-canvas.ROOM, 1 + canvas.ROOM)


def test_paths_show_the_models_and_the_choice(search):
    ax = search.plot_path()
    order = np.argsort(search.path_["strength"])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), search.path_["k"][order])
    ax = show.plot_path_coefficients(search)
    chosen = np.flatnonzero(search.best_estimator_.support_)
    names = {text.get_text() for text in ax.texts}
    assert names == {f"x{j}" for j in chosen}
    dark = [line for line in ax.lines if line.get_color() == canvas.MODEL and len(line.get_xdata()) == 5]
    assert len(dark) == chosen.size


def test_a_path_without_strengths_is_refused(data):
    with pytest.raises(ValueError, match="no strengths"):
        show.plot_path(ARDSearch(ARD()).fit(data.X, data.y))


def test_operating_curves_pass_through_the_marked_rate():
    ax = show.plot_operating_curves([3.0], false_positive_rate=0.01)
    marks = [line for line in ax.lines if line.get_marker() == "o"]
    expected = rates.false_negative_rate("map", rates.strength_for("map", 0.01), 3.0)
    np.testing.assert_allclose(marks[0].get_ydata(), expected)


def test_labels_keep_their_order_and_distance():
    rng = np.random.default_rng(0)
    heights = rng.normal(size=30)
    placed = canvas.apart(heights, 0.2)
    assert np.all(np.diff(np.sort(placed)) >= 0.2 - 1e-12)
    np.testing.assert_array_equal(np.argsort(placed), np.argsort(heights))
    far = np.arange(5.0)
    np.testing.assert_array_equal(canvas.apart(far, 0.5), far)


def test_equations_have_one_panel_each(motion):
    _, _, model = motion
    axes = model.plot_coefficients()
    for ax, equation in zip(axes.flat, model.equations_, strict=True):
        np.testing.assert_allclose(ax.containers[0][0].get_xdata(), equation.coefficients)


def test_whitened_residuals_have_unit_size(motion):
    _, _, model = motion
    for residual, equation in zip(model.residuals(), model.equations_, strict=True):
        # Σr² = N − k by construction, half of it for each of the two states that were fitted together.
        assert stats.kstest(residual, "norm").pvalue > 1e-3
        assert residual @ residual == pytest.approx(equation.degrees / 2, rel=1e-3)
    assert model.plot_residuals().shape[1] == 2


def test_simulation_draws_run_and_bands(motion):
    t, x, model = motion
    axes = model.plot_simulation(x[0], t[:50], n_samples=30, x=x[:50], random_state=0)
    run = model.simulate(x[0], t[:50])
    bands = model.simulate(x[0], t[:50], n_samples=30, random_state=0)
    for i, ax in enumerate(axes):
        np.testing.assert_allclose(ax.lines[-1].get_ydata(), run[:, i])
        edge = ax.collections[0].get_paths()[0].vertices
        assert edge[:, 1].min() == pytest.approx(bands.lower[:, i].min())
        assert edge[:, 1].max() == pytest.approx(bands.upper[:, i].max())


def test_a_simulation_at_dates_is_drawn_at_dates_and_names_its_unit_else():
    system = systems.lotka_volterra()
    t, x = system.noisy(0.01, seed=0)
    when = np.datetime64("2024-05-31T12:00", "ms") + np.round(3.6e6 * t).astype("timedelta64[ms]")
    model = Discovery(Polynomials(2)).fit(x, when, time_unit="h")
    by_date = model.plot_simulation(x[0], when[:40], n_samples=3, x=x[:40], random_state=0)
    by_number = model.plot_simulation(x[0], (t - t[0])[:40], n_samples=3, random_state=0)
    assert by_date[0].lines[-1].get_xdata()[0] == when[0]
    np.testing.assert_allclose(by_date[0].lines[-1].get_ydata(), by_number[0].lines[-1].get_ydata(), rtol=1e-4)
    assert [axes[-1].get_xlabel() for axes in (by_date, by_number)] == ["t", "t (h)"]


def test_time_is_called_as_the_column_of_the_file_is(motion):
    t, x, model = motion
    model = copy(model)
    model.table_ = {"time": "year"}
    assert model.plot_simulation(x[0], t[:20], n_samples=0)[-1].get_xlabel() == "year"


def test_a_map_is_drawn_for_a_number_of_steps():
    _, n = systems.logistic_map().simulate()
    model = Discovery(discrete_time=True).fit(n, 1.0)
    (ax,) = model.plot_simulation(n[0], 20, 5, random_state=0)
    np.testing.assert_array_equal(ax.lines[-1].get_xdata(), np.arange(20))
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), model.simulate(n[0], 20)[:, 0])


def test_the_legend_leaves_room_for_the_power_of_ten_of_the_axis(motion):
    t, x, _ = motion
    model = Discovery(Polynomials(2)).fit(1e8 * x, t)
    (ax, *_) = model.plot_simulation(1e8 * x[0], t[:50], n_samples=3, x=1e8 * x[:50], random_state=0)
    ax.figure.canvas.draw()
    power = ax.yaxis.get_offset_text()
    assert power.get_text()
    assert not power.get_window_extent().overlaps(ax.get_legend().get_window_extent())


def test_a_field_is_drawn_next_to_data_and_their_difference():
    system = systems.burgers()
    t, u = system.noisy(0.01, seed=0)
    model = Discovery(FieldTerms(1, 2)).fit(u, t, space=system.space, feature_names=["w"])
    axes = model.plot_simulation(u[:, 0], t[:20], x=u[:, :20])
    data, run, rest = (ax.collections[0].get_array().reshape(u.shape[0], 20) for ax in axes)
    np.testing.assert_allclose(run, model.simulate(u[:, 0], t[:20]))
    np.testing.assert_allclose(rest, data - run)
    with pytest.raises(ValueError, match="plot_simulation"):
        model.plot_phase()


def test_a_surface_is_drawn_at_three_times(tmp_path):
    """Waves that drift, from the smoothed data on; the report has them too."""
    x, t = 2 * np.pi * np.arange(20) / 20, np.linspace(0, 2, 20)
    c = np.cos(x[:, None, None] - t) * np.sin(x[:, None] + 2 * t) + np.cos(2 * x[:, None] + 4 * t)
    c = c + 0.01 * np.random.default_rng(1000).normal(size=c.shape)
    with pytest.warns(AmbiguityWarning, match="c is one shape that only moves"):
        model = Discovery(FieldTerms(0, 1)).fit(c, t, space=(x, x), feature_names=["c"])
    axes = model.plot_simulation(None, t, x=c)
    assert axes.shape == (3, 3)
    assert [title(ax).split(":")[0] for ax in axes[0]] == ["Data", "The found equation", "Difference"]
    run = model.simulate(None, t)
    for line, moment in zip(axes, (6, 12, 19), strict=True):
        data, drawn, rest = (ax.collections[0].get_array().reshape(20, 20) for ax in line)
        np.testing.assert_allclose(data, c[..., moment])
        np.testing.assert_allclose(drawn, run[..., moment])
        np.testing.assert_allclose(rest, data - drawn)
    page = model.report(tmp_path / "page.html", c, t).read_text(encoding="utf-8")
    assert "run from the smoothed data" in page


def test_an_uncertain_start_widens_the_bands(motion):
    t, x, model = motion
    narrow, wide = (
        model.simulate(x[0], t[:30], n_samples=40, random_state=0, x0_std=std) for std in (np.zeros(2), np.full(2, 0.1))
    )
    np.testing.assert_allclose(narrow.lower[0], x[0])
    assert np.all(wide.upper[0] - wide.lower[0] > 0.2)


def test_states_with_their_bands(motion):
    t, x, model = motion
    axes = model.plot_states(x)
    frame = model.states_[0]
    for i, (ax, name) in enumerate(zip(axes, ["p", "q"], strict=True)):
        np.testing.assert_allclose(ax.lines[0].get_ydata(), x[:, i])
        np.testing.assert_allclose(ax.lines[1].get_ydata(), frame[name])
        edge = ax.collections[0].get_paths()[0].vertices[:, 1]
        assert edge.max() == pytest.approx((frame[name] + 1.959964 * frame[f"{name} std"]).max())
    assert title(axes[0]) == "The states behind the samples"
    with pytest.raises(AttributeError, match="trajectory"):
        Discovery(Polynomials(2), form="weak").fit(x, t).plot_states()


def test_no_line_leads_across_a_gap(motion):
    t, x, _ = motion
    rows = np.r_[0:100, 150:250]
    model = Discovery(Polynomials(1)).fit(x[rows], t[rows])
    drawn = model.plot_states(x[rows])[0].lines[-1].get_ydata()
    assert len(drawn) == 201
    assert np.flatnonzero(np.isnan(drawn)).tolist() == [100]


def test_pictures_of_positions_alone(tmp_path):
    t, x = systems.duffing().noisy(0.02, seed=0)
    model = Discovery(derivative_order=2).fit(x[:, 0], t, feature_names=["x"])
    assert [ax.get_ylabel() for ax in model.plot_states(x[:, 0])] == ["x", "x'"]
    assert [len(ax.lines) for ax in model.plot_simulation(None, t[:30], n_samples=5, x=x[:30, 0])] == [2, 1]
    ax = model.plot_phase(None, t[:30], n_samples=3, x=x[:30, 0])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "x'")
    model.plot_residuals(), model.plot_coefficients()
    page = model.report(tmp_path / "report.html", x[:, 0], t).read_text(encoding="utf-8")
    assert "The states behind the samples" in page
    assert "The found equations in the plane" in page
    ardea.save(model, tmp_path / "model")
    page = ardea.load(tmp_path / "model").report(tmp_path / "again.html", x[:, 0], t).read_text(encoding="utf-8")
    assert "Rates of change at the first row are not known" in page


def test_phase_portraits(motion):
    t, x, model = motion
    ax = model.plot_phase(x[0], t[:40], n_samples=5, random_state=0)
    run = model.simulate(x[0], t[:40])
    np.testing.assert_allclose(ax.lines[-1].get_xdata()[:: motion_plots.SUBSTEPS], run[:, 0], atol=1e-6)
    with pytest.raises(ValueError, match="x0 and t"):
        model.plot_phase()
    _, n = systems.logistic_map().simulate()
    line = Discovery(discrete_time=True).fit(n, 1.0).plot_phase(x=n)
    grid, f = line.lines[0].get_data()
    np.testing.assert_allclose(f, 3.8 * grid * (1 - grid), atol=1e-6)


def test_given_axes_are_used_and_returned(model, data):
    _, ax = plt.subplots()
    assert model.plot_coefficients(ax) is ax
    assert model.plot_prediction(data.X, data.y, ax) is ax
    with pytest.raises(ValueError, match="3 Axes"):
        model.plot_residuals(data.X, data.y, ax)


def test_figures_for_files_belong_to_no_window(model):
    assert show.figure_bytes(model.plot_coefficients, "svg").startswith(b"<?xml")
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", ["a$\\frac{$", "<b>&\"'", "a\x00\x1b\ud800\u202eb", "two\nlines", "x" * 500, ""])
def test_hostile_names_are_drawn_as_text(data, name):
    """Two dollar signs around nonsense would make matplotlib fail; control characters are not XML."""
    names = pd.Index([f"{name}{j}" for j in range(data.X.shape[1])], dtype=object)
    X = pd.DataFrame(data.X, columns=names)
    model = SparseARD().fit(X, data.y)
    drawn = show.figure_bytes(lambda: model.plot_coefficients(targets=[name]), "svg")
    ElementTree.fromstring(drawn)


def test_lines_that_differ_in_colour_differ_in_grey(model, search, data):
    """On every Axes two lines share neither dashes, marker nor shade, whatever their colour."""
    for draw in (model.plot_pareto, search.plot_path):
        ax = draw(*((data.X, data.y) if draw == model.plot_pareto else ()))
        lines = [line for axes in ax.figure.axes for line in axes.get_lines() if line.get_label()[0] != "_"]
        looks = {(line.get_linestyle(), line.get_marker()) for line in lines}
        assert len(looks) == len({line.get_label() for line in lines}) > 1


def test_every_title_is_a_sentence(model, data, search, motion):
    t, x, found = motion
    drawn = [
        model.plot_coefficients(),
        model.plot_prediction(data.X, data.y),
        *model.plot_residuals(data.X, data.y),
        model.plot_pareto(),
        search.plot_path(),
        search.plot_path_coefficients(),
        show.plot_operating_curves(),
        found.plot_residuals()[0, 0],
        found.plot_simulation(x[0], t[:20], n_samples=0)[0],
        found.plot_phase(x[0], t[:20], n_samples=0),
    ]
    assert all(len(title(ax).split()) > 3 for ax in drawn)


# Long names and small numbers

LONG = ["Temperature of the first reactor in °C", "Temperature of the first reactor in °F"]


@pytest.fixture(scope="module")
def long_names():
    t, x = systems.linear_oscillator().noisy(0.3, seed=3)
    with pytest.warns(AmbiguityWarning):
        return t[:80], x[:80], Discovery(Polynomials(3)).fit(x[:80], t[:80], feature_names=LONG)


def boxes(ax, *artists):
    """Return where artists are drawn."""
    ax.figure.canvas.draw()
    return [one.get_window_extent() for one in artists]


def test_a_power_of_ten_is_not_drawn_upon_the_label_of_an_axis():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * 1e4
    y = np.column_stack([X[:, one] * 3e-4 + rng.normal(size=80) for one in range(3)])
    for ax in SparseARD().fit(X, y).plot_coefficients().flat:
        offset, label = boxes(ax, ax.xaxis.get_offset_text(), ax.xaxis.label)
        assert ax.xaxis.get_offset_text().get_text()
        assert not offset.overlaps(label)


def test_titles_of_long_names_end_within_the_picture(long_names):
    t, x, model = long_names
    ax = model.plot_phase(None, t, n_samples=0)
    (box,) = boxes(ax, ax.title if ax.get_title() else ax._left_title)
    assert box.x1 <= ax.figure.bbox.x1
    assert title(ax).replace("\n", " ").startswith("The found equations in the plane of Temperature of the…")
    first, second = model.plot_simulation(None, t, n_samples=0, x=x)
    upper, lower = boxes(first, first.yaxis.label, second.yaxis.label)
    assert not upper.overlaps(lower)
    assert first.get_ylabel() != second.get_ylabel()


def test_rivals_have_labels_of_their_own(long_names):
    *_, model = long_names
    for ax, equation in zip(model.plot_pareto(), model.equations_, strict=True):
        labels = [one.get_text() for one in ax.get_yticklabels()]
        assert len({*labels}) == len(labels) == 1 + len(equation.rivals)
        assert any(label.startswith("without") for label in labels)
        assert not labels[0].endswith("…") or all(label.startswith("with") for label in labels[1:])
    long = f"{'x' * 23}…"
    assert canvas.as_labels(["x" * 30 + "1", "x" * 30 + "2", "y", "y"]) == [f"{long} (1)", f"{long} (2)", "y", "y"]


@pytest.fixture(scope="module")
def long_columns():
    rng, names = np.random.default_rng(2), ["MMMM-MMM-040 (gemittelte Werte)", "Vorlauf Heizkreis Süd", "濃度 mg/L"]
    X = pd.DataFrame(rng.normal(size=(300, 1003)), columns=[*names, *map(str, range(1000))])
    return SparseARD().fit(X, X[names].sum(axis=1).rename("Energieverbrauch gesamt, alle Werke") + rng.normal(size=300))


@pytest.mark.filterwarnings("ignore:Glyph")
def test_titles_beside_long_labels_end_within_the_picture(long_columns):
    ax = show.plot_coefficients(long_columns)
    canvas.finished(ax, "All titles are sentences that are broken where the picture ends, however long their words")
    (box,) = boxes(ax, ax._left_title)
    assert box.x1 <= ax.figure.bbox.x1


@pytest.mark.filterwarnings("ignore:Glyph")
def test_labels_of_a_short_logarithmic_axis_are_numbers_apart(long_columns):
    ax = np.ravel(show.plot_pareto(long_columns))[0]
    labels = [one for one in ax.get_xticklabels(which="both") if one.get_text()]
    shown, texts = boxes(ax, *labels), [one.get_text() for one in labels]
    assert {"0.2", "0.5", "1"} & {*texts}
    assert not any("10" in one for one in texts)
    assert all(a.x1 < b.x0 for a, b in pairwise(shown))


def test_letters_that_the_font_lacks_are_told_once(long_columns):
    with pytest.warns(UserWarning, match="font of the figures lacks letters") as told:
        canvas.figure_bytes(lambda: show.plot_coefficients(long_columns), "png")
    assert len(told) == 1


def test_labels_of_dates_do_not_run_into_each_other():
    t = pd.date_range("2024-03-30T17:00", periods=200, freq="6min")
    x = np.exp(-0.3 * np.arange(200.0) / 10)[:, None] + 0.001 * np.random.default_rng(0).normal(size=(200, 1))
    ax = np.ravel(show.plot_states(Discovery(Polynomials(1)).fit(x, t), x))[-1]
    ax.figure.canvas.draw()
    shown = boxes(ax, *(one for one in ax.get_xticklabels() if one.get_text()))
    inside = [box for box in shown if ax.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= ax.bbox.x1 + 1]
    assert len(inside) > 2
    assert all(a.x1 + 3 < b.x0 for a, b in pairwise(inside))


def test_axes_say_what_a_reader_needs():
    t = pd.date_range("2024-05-01", periods=60, freq="min", tz="Europe/Berlin")
    x = 3 * np.exp(-0.05 * np.arange(60.0))[:, None] + 0.01 * np.random.default_rng(1).normal(size=(60, 1))
    for times, label in ((t, "t (UTC)"), (t.tz_localize(None), "t"), (np.arange(60.0), "t")):
        model = Discovery(Polynomials(1)).fit(x, times)
        (place,) = show.plot_states(model, x)
        assert place.get_xlabel() == label
        assert place.figure.get_figheight() > 2.2
        ticks = [one.get_text() for one in show.plot_pareto(model).get_xticklabels()]
        assert ticks[:4] == ["0", "2", "4", "6"]


def test_a_difference_of_fields_is_seen():
    system = systems.advection_diffusion()
    t, u = system.noisy(0.02, seed=0)
    model = Discovery(FieldTerms(powers=1, derivatives=2)).fit(u, t, space=system.space)
    difference = show.plot_simulation(model, None, t, x=u)[-1]
    (mesh,) = difference.collections
    seen = np.asarray(mesh.get_array())
    least, most = mesh.get_clim()
    assert least == -most
    assert 0.9 < np.mean(np.abs(seen) < most) <= 1
    assert np.std(seen) > most / 4
