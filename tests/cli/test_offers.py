"""Commands that messages offer work, options that mean nothing are refused, and places are lines and dates."""

import re
import shlex
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import ardea
from ardea.cli import main
from ardea.cli.models import _what_may_help, in_words_of_file
from ardea.dynamics import Discovery
from ardea.tables.rows import open_rows
from ardea.tables.series import Choice, read_series


@pytest.fixture
def table(tmp_path):
    """A table of 60 rows in which -9 stands for nothing, and a fit to it that was told so."""
    rng = np.random.default_rng(21)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"]).round(3)
    frame["y"] = (2 * frame.a - frame.b + 0.1 * rng.normal(size=60)).round(3)
    frame["site"] = np.where(rng.random(60) < 0.5, "north", "south")
    frame["y"] += 3 * (frame.site == "south")
    text = frame.astype(object)
    text.loc[4, "a"] = "void"
    text.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.fixture
def model(table, no_figures, capsys):
    assert main(["fit", str(table), "--target", "y", "--na", "void", "--out", str(table.parent / "run")]) == 0
    capsys.readouterr()
    return table.parent / "run" / "model.ardea"


@pytest.fixture
def driven(tmp_path, no_figures, capsys):
    """Equations of a state and a switch over one night in Berlin, by times of UTC."""
    rng, t = np.random.default_rng(5), np.arange(300.0)
    u = (t % 60 < 25).astype(float)
    x = np.zeros(300)
    for k in range(299):
        x[k + 1] = x[k] * np.exp(-0.05) + u[k] * (1 - np.exp(-0.05)) / 0.05
    frame = pd.DataFrame({"when": pd.date_range("2024-05-01", periods=300, freq="min"), "x": x, "push": u})
    frame["x"] += 0.02 * rng.normal(size=300)
    frame.drop(index=range(130, 160)).to_csv(tmp_path / "driven.csv", index=False)
    command = ["discover", str(tmp_path / "driven.csv"), "--time", "when", "--inputs", "push", "--degree", "1"]
    assert main([*command, "--out", str(tmp_path / "motion")]) == 0
    return tmp_path / "motion" / "model.ardea", capsys.readouterr()


def run(capsys, *arguments):
    """Run a command that fails, and return what it says."""
    try:
        code = main([*map(str, arguments)])
    except SystemExit as left:
        code = left.code
    assert code
    return capsys.readouterr().err


def test_cells_to_take_as_empty_add_to_those_of_the_model(table, model, capsys):
    new = pd.read_csv(table, dtype=str)
    new.loc[9, "b"] = "broken"
    new.to_csv(table.parent / "new.csv", index=False)
    said = run(capsys, "predict", model, table.parent / "new.csv")
    assert "line 11, column 'b': 'broken' is not a number" in said
    command = shlex.split(said[said.index("empty: ") + 7 :])
    assert command[:4] == ["ardea", "predict", str(model), str(table.parent / "new.csv")]
    assert main(command[1:]) == 0  # void, too, is empty still
    out = capsys.readouterr().out.splitlines()
    assert [k for k, line in enumerate(out[1:]) if line == ",,,"] == [4, 9]


def test_options_that_mean_nothing_are_told(table, capsys):
    fit = ["fit", table, "--target", "y", "--na", "void"]
    assert "--criterion chooses among the models of --search" in run(capsys, *fit, "--criterion", "bic")
    assert main([*map(str, fit), "--na", "98", "--drop-lines", "500"]) == 0
    out = capsys.readouterr().out
    assert "--na 98: no cell holds this" in out
    assert "--na void" not in out
    assert "--drop-lines names line 500, and there are 61" in out


def test_what_is_misspelt_is_told_with_what_was_meant(table, capsys):
    assert "there is no command 'fitt'. Did you mean fit?" in run(capsys, "fitt", table)
    said = run(capsys, "discover", table, "--step", "1", "--noise", "poisson")
    assert "'poisson' is not one of additive, counts, proportional, auto" in said
    both = run(capsys, "report", table, "--target", "y", "--time", "a", "--out", table.parent / "page.html")
    assert "leave one of them out" in both
    frame = pd.read_csv(table).assign(a=np.arange(60) + 0.5)
    frame.drop(columns=["site"]).to_csv(table, index=False)
    assert "column 'y' makes every row a series" in run(capsys, "discover", table, "--time", "a", "--series", "y")


def test_a_saved_model_knows_its_target_and_its_time(table, model, driven, capsys):
    page = table.parent / "page.html"
    assert main(["report", str(model), "--data", str(table), "--out", str(page)]) == 0
    told = r"In rows with site=south, y is higher by (3\.0|2\.9)\d* than in rows with site=north \(95 % interval of "
    assert re.search(told, page.read_text())
    assert main(["report", str(driven[0]), "--data", str(driven[0].parents[1] / "driven.csv"), "--out", str(page)]) == 0


def program(page):
    """Return the program of a page."""
    (found,) = re.findall(r"<code>(import numpy.*?)</code>", page.read_text(), flags=re.DOTALL)
    return found.replace("&#39;", "'").replace("&gt;", ">").replace("&lt;", "<")


@pytest.mark.parametrize("moving", [False, True])
def test_the_program_on_a_page_about_a_saved_model_runs(model, driven, tmp_path, moving, capsys):
    place = driven[0] if moving else model
    assert main(["report", str(place), "--out", str(tmp_path / "page.html")]) == 0
    capsys.readouterr()
    exec(program(tmp_path / "page.html"), {})
    assert ardea.load(place).equations_[0].formula() in capsys.readouterr().out


def test_inputs_stand_in_the_program_that_fits_again(driven):
    assert "fit(x, t, u=u" in program(driven[0].parent / "report.html")


def test_equations_are_run_by_the_command_that_predict_offers(driven, table, capsys):
    said = run(capsys, "predict", driven[0], table)
    command = shlex.split(said[said.index("run them: ") + 10 :])
    assert command[-4:] == ["--until", "2024-05-01T04:59:00", "--inputs", "FILE"]
    command[-1] = str(driven[0].parents[1] / "driven.csv")
    assert main(command[1:]) == 0
    capsys.readouterr()
    inputs = ["--inputs", command[-1], "--until", "2024-05-01T04:00"]
    assert main(["simulate", str(driven[0]), "--start", "-1.0", *inputs]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(",-1.0")


def test_gaps_are_told_by_their_dates(driven):
    said = driven[1].err
    assert "changes between 2024-05-01T02:09:00 and 2024-05-01T02:40:00, where there are no rows" in said
    assert "tell the parts apart by a column, which --series names" in said
    assert any("between 2024-05-01T02:09:00 and" in one for one in ardea.load(driven[0]).warnings_)


def test_a_start_before_the_data_asks_for_the_states(tmp_path, no_figures, capsys):
    t = 1900 + np.arange(60.0)
    pd.DataFrame({"year": t, "x": 5 * np.exp(-0.05 * (t - 1900))}).to_csv(tmp_path / "decay.csv", index=False)
    assert main(["discover", str(tmp_path / "decay.csv"), "--time", "year", "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    said = run(capsys, "simulate", tmp_path / "run" / "model.ardea", "--from", "0", "--until", "5")
    assert "give --start, the states at --from" in said


def test_rows_are_told_as_lines_of_the_file(table):
    rows = open_rows(table, "y", na=["void"], missing="drop")
    rows.arrays()
    told = "a is kept because of 2 rows (rows 3, 10, counted from 0), which have 80 %"
    assert in_words_of_file([told], rows) == ["a is kept because of 2 rows (lines 5, 13), which have 80 %"]


def test_powers_of_switches_are_not_said_to_be_tried():
    names = ["1", "x", "on=YES", "x on=YES", "on=YES^2", "x (a b)^2", "x^2"]
    doubted = SimpleNamespace(warnings_=["may explain misfit"], get_feature_names=lambda: names, rows_used_=None)
    options = SimpleNamespace(degree=None, inputs=None, second_order=False, map=False)
    series = SimpleNamespace(
        t=np.array([0.0, 0.5]),
        space=None,
        n_inputs=2,
        u=np.array([[0.0, 1.0], [1.0, 0.0]]),
        names=["x", "on=YES", "a b"],
    )
    tried, _ = _what_may_help(doubted, series, options)
    assert tried == "Tried, and not enough: 1, x, on=YES, x on=YES, x^2."


def test_columns_of_dates_times_of_day_and_runs_are_offered_as_what_they_are(tmp_path, capsys):
    when = pd.date_range("2024-03-01 11:30", periods=60, freq="min")
    frame = pd.DataFrame({"Date": when.strftime("%d/%m/%Y"), "Time": when.strftime("%I:%M:%S %p")})
    frame.assign(x=np.exp(-0.1 * np.arange(60))).to_csv(tmp_path / "clock.csv", index=False)
    said = run(capsys, "discover", tmp_path / "clock.csv", "--time", "Date")
    assert f"ardea discover {tmp_path / 'clock.csv'} --time Date,Time" in said
    t = np.tile(np.arange(12.0), 3)
    frame = pd.DataFrame({"run": np.repeat([1, 2, 3], 12), "t": t, "x": np.repeat([1, 2, 4], 12) * np.exp(-0.2 * t)})
    frame.to_csv(tmp_path / "runs.csv", index=False)
    said = run(capsys, "discover", tmp_path / "runs.csv", "--time", "t")
    assert f"ardea discover {tmp_path / 'runs.csv'} --time t --series run" in said


def test_a_second_clock_among_the_states_is_told(tmp_path):
    t = np.arange(40.0)
    frame = pd.DataFrame({"n": 2 * t, "t": 0.1 * t, "x": np.cos(0.1 * t)})
    frame.to_csv(tmp_path / "two.csv", index=False)
    doubts = read_series(tmp_path / "two.csv", Choice("n")).doubts
    assert any("column 't' rises strictly" in one for one in doubts)


def test_a_model_of_a_field_is_run_in_python(tmp_path, capsys):
    x, t = np.arange(0, 2 * np.pi, np.pi / 16), np.linspace(0, 1, 40)
    u = sum(np.exp(-k * k * t) * np.sin(k * x + k)[:, None] for k in (1, 2, 3))
    model = Discovery().fit(u + 1e-3 * np.random.default_rng(1).normal(size=u.shape), t, space=(x,))
    ardea.save(model, tmp_path / "field.ardea")
    said = run(capsys, "simulate", tmp_path / "field.ardea", "--until", "1")
    loads, runs = said.splitlines()[2:4]
    names = {"start": u[:, 0], "t": t, "load": ardea.load}
    exec("\n".join(map(str.strip, (loads, runs))), names)
    assert names["run"].shape == u.shape
