"""``ardea simulate``: which times it takes and writes, of numbers, of dates, and of dates that name their zones."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

import ardea
from ardea.cli import main
from ardea.dynamics import Discovery, systems
from ardea.dynamics.libraries import Polynomials
from ardea.dynamics.series import Clock, as_numbers
from ardea.tables.series import Choice, read_series

START = pd.Timestamp("2024-01-01T08:00:00")


def decay(place, times, column="when"):
    """Write a series that decays by a twentieth a row, discover its equation from the file, and return the model."""
    steps = np.arange(len(times))
    x = 3 * np.exp(-0.05 * steps) + 0.001 * np.random.default_rng(0).normal(size=steps.size)
    pd.DataFrame({column: times, "pos": x}).to_csv(place / "data.csv", index=False)
    options = ["--time", column, "--degree", "1", "--form", "weak", "--out", str(place / "run")]
    assert main(["discover", str(place / "data.csv"), *options]) == 0
    return place / "run" / "model.ardea"


def simulated(capsys, *arguments):
    capsys.readouterr()
    assert main(["simulate", *map(str, arguments)]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    return header.split(",")[0], [row.split(",")[0] for row in rows], [float(row.split(",")[1]) for row in rows]


def refused(capsys, *arguments):
    capsys.readouterr()
    assert main(["simulate", *map(str, arguments)]) == 1
    return capsys.readouterr().err


def test_times_with_zones_are_told_asked_for_and_written(tmp_path, no_figures, capsys):
    zoned = decay(tmp_path, [f"{START + pd.Timedelta(minutes=k):%FT%T}+05:00" for k in range(60)])
    said = "times name their time zones and are counted in UTC (2024-01-01T08:00:00+05:00 is 2024-01-01T03:00:00 UTC)"
    assert said in capsys.readouterr().out
    at_eight = ["--start", 3, "--from", "2024-01-01T08:00+05:00", "--until", "2024-01-01T08:10+05:00", "--step", 5]
    name, times, x = simulated(capsys, zoned, *at_eight)
    assert name == "when"
    assert times == [f"2024-01-01 03:{minute}:00+00:00" for minute in ("00", "05", "10")]
    np.testing.assert_allclose(x, 3 * np.exp(-0.05 * np.array([0, 5, 10])), rtol=0.01)
    for option, other in (("--from", "--until"), ("--until", "--from")):
        both = [option, "2024-01-01T08:00:00", other, "2024-01-01T09:00:00Z"]
        told = refused(capsys, zoned, "--start", 3, *both)
        assert f"{option} 2024-01-01T08:00:00 has no time zone, and the times of the data had one" in told
    assert "the start, 2024-01-01T03:00:00+00:00." in refused(capsys, zoned, "--start", 3, "--until", -1)


def test_a_zone_is_refused_where_the_data_had_none(tmp_path, no_figures, capsys):
    model = decay(tmp_path, [f"{START + pd.Timedelta(minutes=k):%FT%T}" for k in range(60)])
    told = refused(capsys, model, "--start", 3, "--until", "2024-01-01T08:10:00+05:00")
    assert "--until 2024-01-01T08:10:00+05:00 has a time zone, and the times of the data had none" in told
    _, times, _ = simulated(capsys, model, "--start", 3, "--until", "2024-01-01T08:10:00", "--step", 5)
    assert times == [f"2024-01-01 08:{minute}:00" for minute in ("00", "05", "10")]


def test_inputs_are_asked_for_their_zones_and_run_up_to_their_end(tmp_path, capsys):
    t = pd.date_range(START, periods=95, freq="200ms", tz="UTC")
    rng = np.random.default_rng(1)
    u, x = np.sin(np.arange(95) / 9), np.zeros(95)
    for k in range(94):
        x[k + 1] = x[k] + 0.2 * (u[k] - 0.5 * x[k])
    model = Discovery(Polynomials(1), form="derivative")
    model.fit(x[:, None] + 1e-4 * rng.normal(size=(95, 1)), t, u=u[:, None], feature_names=["x", "push"])
    ardea.save(model, tmp_path / "model.ardea")
    for name, zone in (("zoned", "UTC"), ("plain", None)):
        pd.DataFrame({"t": t.tz_convert(zone) if zone else t.tz_localize(None), "push": u}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    start = [tmp_path / "model.ardea", "--start", 0, "--step", 5]
    plain = refused(capsys, *start, "--until", 18, "--inputs", tmp_path / "plain.csv")
    assert "The column of times 't' of" in plain
    assert "has no time zone, and the times of the data had one" in plain
    _, times, _ = simulated(capsys, *start, "--until", 18, "--inputs", tmp_path / "zoned.csv")
    assert times[-1] == "2024-01-01 08:00:15+00:00"  # and not 20 seconds, where inputs are not known
    beyond = refused(capsys, *start, "--until", 21, "--inputs", tmp_path / "zoned.csv")
    assert "has inputs from 2024-01-01T08:00:00+00:00 to 2024-01-01T08:00:18.800000+00:00" in beyond


@pytest.mark.parametrize(
    ("until", "step", "times"),
    [(1, 0.35, [0, 0.35, 0.7]), (19, 5, [0, 5, 10, 15]), (1, 0.1, np.arange(11) / 10), (0.3, 0.1, [0, 0.1, 0.2, 0.3])],
)
def test_no_row_is_after_until(tmp_path, capsys, until, step, times):
    t = np.arange(60.0)
    ardea.save(Discovery(Polynomials(1)).fit(3 * np.exp(-0.05 * t)[:, None], t), tmp_path / "model.ardea")
    name, found, _ = simulated(capsys, tmp_path, "--start", 3, "--until", until, "--step", step)
    assert name == "t"
    np.testing.assert_allclose(np.array(found, dtype=float), times, rtol=0, atol=1e-12)
    assert float(found[-1]) <= until
    assert len(simulated(capsys, tmp_path, "--start", 3, "--until", until)[1]) == 101
    told = refused(capsys, tmp_path, "--start", 3, "--until", until, "--step", 2 * until)
    assert "is longer than the run, which goes from 0.0 to" in told


def test_compact_dates_are_dates_where_those_of_the_data_were(tmp_path, no_figures, capsys):
    days = pd.date_range("2023-04-01", periods=60, freq="D")
    model = decay(tmp_path, [f"{day:%Y%m%d}" for day in days], "day")
    options = ["--start", 3, "--step", 30]
    found = simulated(capsys, model, *options, "--from", "20230401", "--until", "20230801")
    assert found[:2] == ("day", ["2023-04-01", "2023-05-01", "2023-05-31", "2023-06-30", "2023-07-30"])
    assert found == simulated(capsys, model, *options, "--from", "2023-04-01", "--until", "2023-08-01")
    assert simulated(capsys, model, *options, "--until", "60")[1] == ["2023-04-01", "2023-05-01", "2023-05-31"]


@pytest.mark.parametrize("held_by", ["pandas", "list"])
def test_zones_are_kept_from_python_to_the_command_line(tmp_path, capsys, held_by):
    t = pd.date_range("2024-01-01T08:00", periods=60, freq="min", tz="Asia/Karachi")
    x = 3 * np.exp(-0.05 * np.arange(60.0))
    model = Discovery(Polynomials(1)).fit(x[:, None], t if held_by == "pandas" else [*t.to_pydatetime()])
    assert model.time_origin_.endswith("+00:00")
    assert model.dates([0.0])[0] == np.datetime64("2024-01-01T03:00")
    np.testing.assert_allclose(model.elapsed(t), np.arange(60))
    ardea.save(model, tmp_path / "model.ardea")
    assert ardea.load(tmp_path).time_origin_ == model.time_origin_
    assert simulated(capsys, tmp_path, "--start", 3, "--until", 2, "--step", 1)[1][0] == "2024-01-01 03:00:00+00:00"


def test_zones_are_seen_however_a_file_holds_them(tmp_path):
    t = pd.date_range("2024-01-13T08:00", periods=9, freq="min", tz="Asia/Karachi")
    frame = pd.DataFrame({"t": t, "x": np.arange(9.0)})
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "zoned.parquet")
    frame.assign(t=t.strftime("%d/%m/%Y %H:%M%z")).to_csv(tmp_path / "zoned.csv", index=False)
    frame.assign(t=t.tz_localize(None)).to_parquet(tmp_path / "plain.parquet")
    for name in ("zoned.parquet", "zoned.csv"):
        series = read_series(tmp_path / name, Choice("t"))
        assert series.zoned
        assert series.t[0] == np.datetime64("2024-01-13T03:00")
        assert any("counted in UTC" in one for one in series.remarks)
    assert not read_series(tmp_path / "plain.parquet", Choice("t")).zoned
    mixed = (tmp_path / "zoned.csv").read_text().replace("+0500", "", 1)
    (tmp_path / "zoned.csv").write_text(mixed)
    with pytest.raises(ValueError, match="names its time zone and 13/01/2024 08:00 does not"):
        read_series(tmp_path / "zoned.csv", Choice("t"))


def test_zoned_dates_are_refused_by_a_model_of_dates_without_a_zone(tmp_path, no_figures, capsys):
    t = pd.date_range("2024-01-01T08:00", periods=60, freq="min")
    x = 3 * np.exp(-0.05 * np.arange(60.0))
    model = Discovery(Polynomials(1)).fit(x[:, None], t, feature_names=["pos"])
    with pytest.raises(ValueError, match="The times of the fit named no time zones"):
        model.elapsed(t.tz_localize("Asia/Karachi"))
    ardea.save(model, tmp_path / "model.ardea")
    pd.DataFrame({"when": t.tz_localize("Asia/Karachi"), "pos": x}).to_csv(tmp_path / "new.csv", index=False)
    page = ["--out", str(tmp_path / "page.html")]
    assert (
        main(["report", str(tmp_path / "model.ardea"), "--data", str(tmp_path / "new.csv"), "--time", "when", *page])
        == 1
    )
    assert "has a time zone, and the times of the data had none" in capsys.readouterr().err


def test_times_of_which_some_name_a_zone_are_refused():
    plain, aware = pd.date_range("2024-01-01", periods=3), pd.date_range("2024-01-01", periods=3, tz="UTC")
    for given in ([plain, aware], [[*plain[:2].to_pydatetime(), *aware[2:].to_pydatetime()]]):
        with pytest.raises(ValueError, match="Some times name their time zones and others do not"):
            as_numbers(given)
    assert as_numbers([plain, plain])[1] == Clock("d", str(plain.to_numpy()[0]))


def test_a_zone_that_is_named_holds_for_times_and_inputs(tmp_path, no_figures, capsys):
    rng, utc = np.random.default_rng(4), pd.date_range("2024-10-26 12:00", periods=150, freq="15min", tz="UTC")
    u = np.repeat(rng.integers(0, 2, 25), 6).astype(float)
    x = np.zeros(150)
    for k in range(149):
        x[k + 1] = u[k] + (x[k] - u[k]) * np.exp(-0.2)
    local = utc.tz_convert("Europe/Berlin").strftime("%Y-%m-%d %H:%M:%S")
    table = pd.DataFrame({"time": local, "x": x + 0.01 * rng.normal(size=150), "u": u})
    table.to_csv(tmp_path / "t.csv", index=False)
    known = ["--zone", "Europe/Berlin"]
    command = ["discover", str(tmp_path / "t.csv"), "--time", "time", "--inputs", "u", "--degree", "1", *known]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    run = ["simulate", str(tmp_path / "run" / "model.ardea"), "--inputs", str(tmp_path / "t.csv")]
    run += ["--until", "2024-10-27 20:00"]
    capsys.readouterr()
    assert main([*run, *known]) == 0
    out, said = capsys.readouterr()
    assert "2024-10-27 19:00:00+00:00" in out.splitlines()[-1]
    assert "The start is the smoothed state at the first row of the data, at time = 2024-10-26T12:00:00+00:00" in said
    assert main(run) == 1
    assert "or name it with --zone" in capsys.readouterr().err
    assert main([*run[:-1], "2024-10-27T19:00+00:00"]) == 1
    offered = capsys.readouterr().err.splitlines()[-1].partition("ardea simulate ")[2]
    assert main(["simulate", *shlex.split(offered)]) == 0
    assert "2024-10-27 19:00:00+00:00" in capsys.readouterr().out.splitlines()[-1]


def test_a_misfit_that_the_fit_was_told_of_is_told_again(tmp_path, capsys):
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    model = Discovery(Polynomials(1)).fit(x, t)
    model.warnings_ = [
        "No candidate fits (python -m ardea.explain misfit).",
        "Other (python -m ardea.explain few_rows).",
    ]
    ardea.save(model, tmp_path / "model.ardea")
    assert main(["simulate", str(tmp_path / "model.ardea"), "--until", "3"]) == 0
    said = capsys.readouterr().err
    assert "warning: No candidate fits" in said
    assert "Other" not in said


def test_a_model_knows_its_two_columns_of_times_and_what_tells_series_apart(tmp_path, no_figures, capsys):
    rng, frames = np.random.default_rng(2), []
    for run, begin in (("one", "2024-05-01 20:00"), ("two", "2024-05-03 21:00")):
        when = pd.date_range(begin, periods=200, freq="3min")
        push = (np.arange(200) % 40 < 15).astype(float)
        x = np.zeros(200)
        for k in range(199):
            x[k + 1] = 0.9 * x[k] + 0.5 * push[k]
        x += 0.01 * rng.normal(size=200)
        frames.append(pd.DataFrame({"Run": run, "Date": when.date, "Time": when.time, "x": x, "push": push}))
    data, model = tmp_path / "data.csv", tmp_path / "run" / "model.ardea"
    pd.concat(frames).to_csv(data, index=False)
    frames[1].drop(columns=["x", "Run"]).to_csv(tmp_path / "push.csv", index=False)
    told = ["--time", "Date,Time", "--series", "Run", "--inputs", "push", "--degree", "1"]
    assert main(["discover", str(data), *told, "--out", str(tmp_path / "run")]) == 0
    assert main(["report", str(model), "--data", str(data), "--out", str(tmp_path / "page.html")]) == 0
    capsys.readouterr()
    command = ["simulate", str(model), "--inputs", str(tmp_path / "push.csv"), "--start", "0"]
    assert main([*command, "--from", "2024-05-03T21:00", "--until", "2024-05-04T06:00"]) == 0
    assert capsys.readouterr().out.startswith('"Date,Time",x')


def test_a_page_says_whether_equations_hold_for_other_rows(tmp_path, no_figures, capsys):
    def write(name, rate):
        t, rng = np.linspace(0, 20, 400), np.random.default_rng(3)
        x = np.column_stack([np.cos(rate * t), -rate * np.sin(rate * t)]) + 0.01 * rng.normal(size=(400, 2))
        pd.DataFrame({"t": t, "p": x[:, 0], "q": x[:, 1]}).to_csv(tmp_path / name, index=False)

    write("own.csv", 1.0)
    write("other.csv", 3.0)
    told = ["--time", "t", "--degree", "1", "--out", str(tmp_path / "run")]
    assert main(["discover", str(tmp_path / "own.csv"), *told]) == 0
    page = tmp_path / "page.html"
    for name, said in (("own.csv", "The equations hold for"), ("other.csv", "The equations do not hold for")):
        capsys.readouterr()
        command = ["report", str(tmp_path / "run" / "model.ardea"), "--data", str(tmp_path / name)]
        assert main([*command, "--out", str(page)]) == 0
        assert said in capsys.readouterr().out
        assert said in page.read_text(encoding="utf-8")
    assert "nothing in the fit gives reason for doubt" not in page.read_text(encoding="utf-8")


def test_a_page_says_where_rows_were_not_checked(tmp_path, no_figures, capsys):
    t, rng = np.linspace(0, 20, 400), np.random.default_rng(3)
    frame = pd.DataFrame({"t": t, "p": np.cos(t) + 0.01 * rng.normal(size=400)})
    frame.to_csv(tmp_path / "own.csv", index=False)
    told = ["--time", "t", "--second-order", "--degree", "1", "--out", str(tmp_path / "run")]
    assert main(["discover", str(tmp_path / "own.csv"), *told]) == 0
    command = ["report", str(tmp_path / "run" / "model.ardea"), "--data", str(tmp_path / "own.csv")]
    assert main([*command, "--out", str(tmp_path / "page.html")]) == 0
    assert "These rows were not checked against the equations" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "These rows were not checked against the equations" in page
    assert "nothing in the fit gives reason for doubt" not in page
