"""Tables and series as people have them: what is odd is said, with its line, and every command offered works."""

from __future__ import annotations

import html
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ardea.cli import main
from ardea.tables.series import Choice, read_series

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture
def stores():
    """Sales that follow two of three columns."""
    rng = np.random.default_rng(11)
    frame = pd.DataFrame({"a": rng.uniform(5, 20, 60), "b": rng.uniform(0, 3, 60), "c": rng.normal(50, 8, 60)})
    return frame.assign(y=100 + 3 * frame.a - 8 * frame.b + rng.normal(size=60)).round(2)


# How a table is read is tested here, not how equations are found: the form that takes a tenth of the time.
QUICK = ("--degree", "1", "--form", "weak")


@pytest.fixture
def heater():
    """A tank that a switch heats: x' = −0.5 x + 2 u, sampled exactly."""
    t = np.arange(0, 20, 0.2)
    on, x = t // 4 % 2 == 0, np.zeros(t.size)
    for i in range(1, t.size):
        rest = 4.0 * on[i - 1]
        x[i] = rest + (x[i - 1] - rest) * np.exp(-0.1)
    noise = 0.01 * np.random.default_rng(3).normal(size=t.size)
    return pd.DataFrame({"t": t.round(2), "x": (x + noise).round(4), "heater": np.where(on, "ON", "OFF")})


def written(frame, path, **settings):
    frame.to_csv(path, index=False, **settings)
    return str(path)


def run(capsys, *arguments):
    """Run a command that must work, and return what it says: on standard output, and on standard error."""
    assert main(list(map(str, arguments))) == 0
    return capsys.readouterr()


def record(capsys, *arguments):
    return json.loads(run(capsys, *arguments, "--json").out)


def terms(found):
    return [one["name"] for one in found["equations"][0]["terms"]]


def offered(capsys, *arguments):
    """Run a command that must fail, then every command that it offers, which must work; return these."""
    assert main(list(map(str, arguments))) == 1
    said = capsys.readouterr().err
    commands = ["ardea" + part.split("\n")[0] for part in said.split(": ardea")[1:]]
    assert commands, said
    for one in commands:
        assert main(shlex.split(one)[1:]) == 0, one
        capsys.readouterr()
    return commands


@pytest.mark.parametrize("name", [None, "Total", "S0"])
def test_a_row_of_totals_is_told_with_its_line_and_left_out(stores, tmp_path, capsys, name):
    whole = pd.concat([stores, stores.sum().to_frame().T], ignore_index=True)
    if name:
        whole.insert(0, "store", [*(f"S{i % 5}" for i in range(60)), name])
    path = written(whole, tmp_path / "sales.csv")
    said = run(capsys, "fit", path, "--target", "y", "--out", tmp_path / "run").err
    assert "Line 62, the last of 61, holds the sums of the others in 4 of 4 columns" in said
    assert ("Line 62 is called 'Total' in column 'store'" in said) == (name == "Total")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.count("holds the sums of the others") == 1
    assert "nothing in the fit gives reason for doubt" not in page
    found = record(capsys, "fit", path, "--target", "y", "--drop-lines", "62")
    assert (terms(found), found["rows"], found["warnings"]) == (["a", "b"], 60, [])


def test_rows_of_means_and_deviations_are_told_by_their_names(stores, tmp_path, capsys):
    below = pd.DataFrame([stores.mean(), stores.std()]).round(2)
    whole = pd.concat([stores, below], ignore_index=True)
    whole.insert(0, "who", [*(f"S{i}" for i in range(60)), "Mean", "SD"])
    path = written(whole, tmp_path / "below.csv")
    said = record(capsys, "fit", path, "--target", "y", "--drop", "who")["warnings"][0]
    assert said.startswith("Lines 62 and 63 are called 'Mean' and 'SD' in column 'who'")
    found = record(capsys, "fit", path, "--target", "y", "--drop", "who", *said.rstrip(".").split()[-2:])
    assert (found["rows"], found["warnings"]) == (60, [])


def test_lines_are_counted_as_an_editor_does(stores, tmp_path, capsys):
    path = tmp_path / "sales.csv"
    lines = stores.to_csv(index=False).splitlines()
    total = ",".join(map(str, stores.sum().round(2)))
    path.write_text("\n".join(["# from the till", "", *lines[:30], "# a remark", *lines[30:], total, ""]))
    assert "Line 65, the last" in run(capsys, "fit", path, "--target", "y").err
    found = record(capsys, "fit", path, "--target", "y", "--drop-lines", "4-6,65")
    assert (found["rows"], found["warnings"]) == (57, [])
    assert main(["fit", str(path), "--target", "y", "--drop-lines", "65", "--memory", "30 kB"]) == 0
    assert "(60 rows)" in capsys.readouterr().out


def test_codes_are_told_with_the_option_that_works(stores, tmp_path, capsys):
    for code, cells in {-999: "-999.0", 9999: "9999.00", -1e30: "-1e30"}.items():
        text = stores.astype(object)
        text.loc[[3, 17, 40], "a"] = cells
        path = written(text, tmp_path / "codes.csv")
        (said,) = record(capsys, "fit", path, "--target", "y")["warnings"]
        assert said.startswith(f"a is {code:g} in 3 rows")
        option = said.partition("(")[2].partition(")")[0]
        found = record(capsys, "fit", path, "--target", "y", *option.split())
        assert (terms(found), found["rows_left_out"], found["warnings"]) == (["a", "b"], 3, [])


def test_a_model_remembers_what_stands_in_empty_cells(stores, tmp_path, capsys):
    text = stores.astype(object)
    text.loc[[3, 17], "a"], text.loc[5, "b"] = "broken", "broken"
    path = written(text, tmp_path / "na.csv")
    run(capsys, "fit", path, "--target", "y", "--na", "broken", "--out", tmp_path / "run")
    model = tmp_path / "run" / "model.ardea"
    assert record(capsys, "predict", model, path)["rows_without"] == 3
    page = tmp_path / "page.html"
    assert main(["report", str(model), "--data", path, "--target", "y", "--out", str(page)]) == 0


def test_a_switch_of_texts_is_an_input_that_simulate_knows_again(heater, tmp_path, capsys):
    path = written(heater, tmp_path / "heater.csv")
    offered(capsys, "discover", path, "--time", "t", *QUICK)
    found = record(
        capsys, "discover", path, "--time", "t", "--degree", "1", "--inputs", "heater", "--out", tmp_path / "run"
    )
    assert terms(found) == ["x", "heater=ON"]
    for one, truth in zip(found["equations"][0]["terms"], (-0.5, 2.0), strict=True):
        assert abs(one["coef"] - truth) < 4 * one["std"]
    switched = written(heater.assign(x=0), tmp_path / "switched.csv")
    start = ["simulate", tmp_path / "run" / "model.ardea", "--start", "0", "--until", "3", "--step", "1"]
    last = run(capsys, *start, "--inputs", switched).out.splitlines()[-1]
    assert float(last.split(",")[1]) == pytest.approx(4 * (1 - np.exp(-1.5)), abs=0.05)
    # The folder, and the only column that can hold the times.
    start[1], path = tmp_path / "run", written(heater[["t", "heater"]].rename(columns={"t": "h"}), tmp_path / "h.csv")
    assert run(capsys, *start, "--inputs", path).out.splitlines()[-1] == last
    for told, cells in (
        ("unknown text '1'. There are OFF, ON.", {"ON": 1, "OFF": 0}),
        ("unknown text 'on'. Did you mean 'ON'?", {"ON": "on"}),
        ("Empty are heater=ON in row 1", {"ON": ""}),
    ):
        wrong = written(heater[["t", "heater"]].replace({"heater": cells}), tmp_path / "wrong.csv")
        assert main([*map(str, start), "--inputs", wrong]) == 1
        assert told in capsys.readouterr().err


def test_what_is_off_is_the_reference_whatever_the_case(heater, tmp_path, capsys):
    mixed = written(heater.replace({"heater": {"OFF": "off"}}), tmp_path / "mixed.csv")
    assert terms(record(capsys, "discover", mixed, "--time", "t", "--degree", "1", "--inputs", "heater")) == [
        "x",
        "heater=ON",
    ]


def test_columns_that_hardly_hold_anything_are_left_out_by_the_command_that_is_offered(heater, tmp_path, capsys):
    note = heater.assign(note="").drop(columns="heater")
    note.loc[7, "note"] = "restart"
    (tried,) = offered(capsys, "discover", written(note, tmp_path / "note.csv"), "--time", "t", *QUICK)
    assert "--states x" in tried
    rare = written(heater.assign(rare=np.where(heater.index == 3, 1.5, np.nan)), tmp_path / "rare.csv")
    options = ["--time", "t", *QUICK, "--inputs", "heater"]
    assert "column 'rare' has one value only and was left out" in record(capsys, "discover", rare, *options)["remarks"]
    (tried,) = offered(capsys, "discover", rare, *options, "--states", "x,rare")
    assert "--states x --inputs heater" in tried
    empty = written(heater.assign(p=np.nan), tmp_path / "empty.csv")
    found = record(capsys, "discover", empty, "--time", "t", *QUICK, "--inputs", "heater")
    assert "column 'p' is empty in every row and was left out" in found["remarks"]
    many = heater.assign(who=[f"A{i}" for i in range(100)])
    assert len(offered(capsys, "discover", written(many, tmp_path / "many.csv"), "--time", "t", *QUICK)) == 3


def test_series_without_a_sample_and_rows_without_a_name_are_left_out(heater, tmp_path, capsys):
    runs = pd.concat([heater.assign(run=name) for name in ("p", "q", "r", None)]).drop(columns="heater")
    runs.loc[runs["run"] == "q", "x"] = np.nan
    found = record(capsys, "discover", written(runs, tmp_path / "runs.csv"), "--time", "t", *QUICK, "--series", "run")
    assert "in 2 series" in found["read"]
    assert "series without a sample were left out: q" in found["remarks"]
    assert any("100 rows without a text in column 'run'" in one for one in found["remarks"])


@pytest.mark.parametrize(("name", "first"), [(None, 0), ("index", 1), ("Unnamed: 0", 0), ("ID", 1)])
def test_a_column_that_counts_the_rows_is_left_out_unless_it_is_named(stores, tmp_path, capsys, name, first):
    numbered = stores.assign(y=stores.y + 0.5 * np.arange(60))  # so that it would explain something
    numbered.index += first
    path = str(tmp_path / "index.csv")
    numbered.to_csv(path, index_label=name)
    found = record(capsys, "fit", path, "--target", "y")
    assert found["columns"] == 3
    assert any("only counts the rows" in one for one in found["remarks"])
    called = name or "x0"
    assert called in terms(record(capsys, "fit", path, "--target", "y", "--columns", f"{called},a,b,c"))
    shuffled = str(tmp_path / "shuffled.csv")
    numbered.sample(frac=1, random_state=0).to_csv(shuffled, index_label=name)  # then it may tell something
    assert record(capsys, "fit", shuffled, "--target", "y")["columns"] == 4


def test_equations_have_no_index_for_a_state(heater, tmp_path, capsys):
    heater.to_csv(tmp_path / "index.csv")
    found = record(capsys, "discover", tmp_path / "index.csv", "--time", "t", *QUICK, "--inputs", "heater")
    assert found["names"] == ["x", "heater=ON"]


def test_a_model_of_changes_that_misses_the_levels_says_so(tmp_path, capsys):
    rng, t = np.random.default_rng(0), np.linspace(0, 1, 100)
    x = rng.normal(size=100)
    y = 10 * (t - 0.3) ** 2 + 0.3 * x + 0.1 * rng.normal(size=100)
    path = written(pd.DataFrame({"slow": t, "x": x, "y": y}), tmp_path / "trend.csv")
    said = run(capsys, "fit", path, "--target", "y", "--rows", "series").err
    assert "With --rows series the terms explain" in said
    assert "leave --rows out" in said


def test_predictions_are_printed_for_people_and_what_was_read_is_no_warning(stores, tmp_path, capsys):
    path = written(stores, tmp_path / "sales.csv", sep=";", decimal=",")
    run(capsys, "fit", path, "--target", "y", "--out", tmp_path / "run")
    coefficients = pd.read_csv(tmp_path / "run" / "coefficients.csv", index_col="term").loc["intercept"]
    assert coefficients["low 95%"] < coefficients["coef"] < coefficients["high 95%"]
    assert coefficients["high 95%"] - coefficients["coef"] == pytest.approx(2 * coefficients["std"], rel=0.05)
    said = run(capsys, "predict", tmp_path / "run" / "model.ardea", path)
    assert max(map(len, ",".join(said.out.splitlines()[1:]).split(","))) <= 8
    assert said.err.startswith("How sales.csv was read:\n  columns are separated by semicolons\n")
    assert "warning" not in said.err


def test_the_list_of_warnings_says_what_they_are_and_can_be_cut():
    command = [sys.executable, "-m", "ardea.explain"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "ambiguity          The data do not settle an equation.\n" in told
    for names in ([], ["misfit", "ambiguity"]):
        shell = f"{shlex.join([*command, *names])} | head -n 1 > {os.devnull}"
        assert subprocess.run(shell, shell=True, capture_output=True, text=True, check=True).stderr == ""


def program_on(page):
    text = page.read_text(encoding="utf-8").partition("In Python, with the same data")[2]
    return html.unescape(text.partition("<code>")[2].partition("</code>")[0])


def test_the_program_in_a_report_runs_as_it_stands(stores, heater, tmp_path, capsys, monkeypatch):
    """It reads the file as the command did, and finds the same."""
    monkeypatch.chdir(tmp_path)
    total = ";".join(f"{one:.2f}".replace(".", ",") for one in [*stores.sum(), 0]) + "\n"
    frame = stores.assign(site=np.where(stores.index % 3, "north", "south"))
    Path("sales.csv").write_text(frame.to_csv(index=False, sep=";", decimal=",") + total.replace("0,00", "all"))
    options = ["--drop-lines", "62", "--interactions", "--out", "run"]
    said = run(capsys, "fit", "sales.csv", "--target", "y", *options).out
    exec(program_on(tmp_path / "run" / "report.html"), {})
    assert capsys.readouterr().out.splitlines()[0] in said
    written(heater, tmp_path / "heater.csv")
    options = ["--time", "t", "--inputs", "heater", *QUICK, "--out", "moving"]
    formula = record(capsys, "discover", "heater.csv", *options)["equations"][0]["formula"]
    exec(program_on(tmp_path / "moving" / "report.html"), {})
    assert capsys.readouterr().out.splitlines()[0] == formula


def test_an_export_with_titles_units_and_an_identifier(stores, tmp_path, capsys):
    """Titles that fill up their row with separators, a row of units, 1.234,5 kPa, identifiers from 1001 on."""
    frame = stores.assign(y=[f"{one:.2f} kPa".replace(".", ",") for one in stores.y])
    frame.insert(0, "id", range(1001, 1061))
    frame["site"] = np.where(stores.index % 3, "north", np.where(stores.index % 2, "North", "west"))
    head, body = frame.to_csv(index=False, sep=";", decimal=",").split("\n", 1)
    path = tmp_path / "export.csv"
    path.write_bytes(f"Sales 2024;;;;;\nof 31.12.;;;;;\n{head}\n;€;m²;;;\n{body}".encode("cp1252"))
    found = record(capsys, "fit", path, "--target", "y")
    assert terms(found) == ["a", "b"]
    for said in (
        "the table begins below 'Sales 2024, of 31.12.'",
        "the second row, €, m², was read as units",
        "the unit kPa in column 'y' was left out (120,58 kPa)",
        "column 'id' only counts the rows (name it to keep it) and was left out",
        "texts of column 'site' differ in case alone: North, north",
    ):
        assert said in found["remarks"]
    assert sum("commas" in one for one in found["remarks"]) == 1


def test_dates_of_one_day_need_no_order_of_day_and_month(heater, tmp_path, capsys):
    when = pd.date_range("2024-03-09 10:00", periods=100, freq="5min").strftime("%m/%d/%Y %I:%M %p")
    path = written(heater.assign(t=when), tmp_path / "day.csv")
    found = record(capsys, "discover", path, "--time", "t", "--degree", "1", "--inputs", "heater")
    assert found["equations"][0]["terms"][0]["coef"] == pytest.approx(-0.5 * 0.2 / 5, rel=0.02)


def test_times_that_stand_twice_are_left_out_by_the_command_that_is_offered(heater, tmp_path, capsys):
    twice = pd.concat([heater[:61], heater[60:]]).drop(columns="heater").assign(offset=0.5)
    path = written(twice, tmp_path / "twice.csv")
    (tried,) = offered(capsys, "discover", path, "--time", "t", *QUICK)
    assert "--drop-lines 63" in tried
    found = record(capsys, *shlex.split(tried)[1:])
    assert found["names"] == ["x"]
    assert "column 'offset' has one value only and was left out" in found["remarks"]


def test_times_of_a_day_and_times_that_descend(heater, tmp_path, capsys):
    of_day = (pd.Timestamp("2024") + pd.to_timedelta(heater.t, unit="s")).dt.strftime("%H:%M:%S.%f")
    options = ["--time", "t", *QUICK, "--inputs", "heater"]
    forward = record(capsys, "discover", written(heater, tmp_path / "t.csv"), *options)["equations"]
    late = (pd.Timestamp("2024") + pd.to_timedelta(heater.t + 86400 - heater.t[9], unit="s")).dt.strftime("%H:%M:%S.%f")
    frames = {"times of one day": heater.assign(t=of_day), "rows were turned around": heater[::-1]}
    frames["times of day, past 1 midnight"] = heater.assign(t=late)
    for said, frame in frames.items():
        found = record(capsys, "discover", written(frame, tmp_path / "t.csv"), *options)
        assert any(said in one for one in found["remarks"])
        assert found["equations"][0]["formula"] == forward[0]["formula"]


@pytest.mark.parametrize("written_as", ["%Y-%m-%d", "%d/%m/%Y", "%Y%m%d"])
def test_a_date_and_a_time_of_day_in_two_columns_are_one_time(written_as, heater, tmp_path, capsys):
    times = pd.Timestamp("2024-03-30T23:59:50") + pd.to_timedelta(heater.t, unit="s")
    whole = written(heater.assign(t=times.astype(str)), tmp_path / "one.csv")
    apart = heater.assign(t=times.dt.strftime(written_as)).rename(columns={"t": "day"})
    apart.insert(1, "clock", times.dt.strftime("%H:%M:%S.%f"))
    path = written(apart, tmp_path / "two.csv")
    options = [*QUICK, "--inputs", "heater"]
    alone = record(capsys, "discover", whole, "--time", "t", *options)["equations"][0]["formula"]
    found = record(capsys, "discover", path, "--time", "clock,day", *options)
    assert found["equations"][0]["formula"] == alone
    assert "times are put together of columns 'clock' and 'day'" in found["remarks"]
    tried = offered(capsys, "discover", path, "--time", "day", *options)[0]
    assert "--time day,clock" in tried
    assert record(capsys, *shlex.split(tried)[1:])["equations"][0]["formula"] == alone


def test_a_target_of_two_texts_is_one_and_zero(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=90), "dose": rng.normal(size=90)})
    won = table.age + 0.3 * rng.normal(size=90) > 0
    numbers = written(table.assign(won=won.astype(int)), tmp_path / "numbers.csv")
    texts = written(table.assign(won=np.where(won, "Yes", "no")), tmp_path / "texts.csv")
    (of_numbers,), (of_texts,) = (
        record(capsys, "fit", path, "--target", "won")["equations"] for path in (numbers, texts)
    )
    assert of_texts["terms"] == of_numbers["terms"]
    assert of_texts["left"] == "won=Yes"


def test_numbers_that_may_name_things_are_told_and_encoded_by_the_option_that_is_named(tmp_path, capsys):
    rng = np.random.default_rng(0)
    site, dose = rng.choice([101, 102, 205], size=90), rng.normal(size=90)
    table = pd.DataFrame({"Site no": site, "dose": dose, "y": (site == 102) + dose + 0.1 * rng.normal(size=90)})
    path = written(table, tmp_path / "sites.csv")
    (said,) = (one for one in record(capsys, "fit", path, "--target", "y")["remarks"] if "count as amounts" in one)
    options = shlex.split(said[said.index("--categorical") :])
    found = record(capsys, "fit", path, "--target", "y", *options)
    assert {one["name"] for one in found["equations"][0]["terms"]} == {"Site no=102", "dose"}
    assert not any("count as amounts" in one for one in found["remarks"])


@pytest.mark.parametrize(
    "name", ["hospital", "Klinik", "PLZ", "sexe", "Monat", "treatment group", "zip code", "ward no"]
)
@pytest.mark.parametrize("values", [[1, 2, 5], [0, 1], [3.5, 1, 2]])
def test_whole_numbers_are_told_by_a_name_for_things_if_they_are_more_than_two(tmp_path, capsys, name, values):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(values, size=60), f"{name} size": rng.integers(1, 9, 60)})
    path = written(table.assign(y=rng.normal(size=60)), tmp_path / "table.csv")
    told = [one for one in record(capsys, "fit", path, "--target", "y")["remarks"] if "count as amounts" in one]
    assert len(told) == (values == [1, 2, 5])
    assert all(f"{name!r} holds whole numbers" in one for one in told)


@pytest.mark.parametrize("mark", ["x", "1"])
def test_marks_and_empty_cells_are_one_and_zero(mark, tmp_path, capsys):
    rng = np.random.default_rng(0)
    marked, x = np.arange(60) % 3 == 0, rng.normal(size=60)
    y = 5 * marked + x + 0.1 * rng.normal(size=60)
    path = written(pd.DataFrame({"promo": np.where(marked, mark, ""), "x": x, "y": y}), tmp_path / "marks.csv")
    plain = record(capsys, "fit", path, "--target", "y")
    if mark == "1":  # empty may mean that nobody looked
        (said,) = (one for one in plain["remarks"] if "--categorical" in one)
        plain = record(capsys, "fit", path, "--target", "y", *shlex.split(said[said.index("--categorical") :]))
    numbers = pd.DataFrame({f"promo={mark}": marked.astype(int), "x": x, "y": y})
    sure = record(capsys, "fit", written(numbers, tmp_path / "numbers.csv"), "--target", "y")
    assert plain["equations"][0]["terms"] == sure["equations"][0]["terms"]
    assert plain["rows"] == 60


def test_named_categories_come_beside_those_that_texts_make(tmp_path, capsys):
    rng = np.random.default_rng(0)
    site, man = rng.integers(1, 5, 100), rng.integers(0, 2, 100)
    y = 2 * (site == 2) + man + 0.1 * rng.normal(size=100)
    path = written(pd.DataFrame({"site": site, "sex": np.where(man, "m", "f"), "y": y}), tmp_path / "cat.csv")
    found = record(capsys, "fit", path, "--target", "y", "--categorical", "site")
    assert {one["name"] for one in found["equations"][0]["terms"]} == {"site=2", "sex=m"}
    assert main(["fit", path, "--target", "y", "--categorical", "none"]) == 1
    assert "column 'sex' holds texts, not numbers" in capsys.readouterr().err


def test_numbers_in_another_unit_than_those_fitted_are_told(tmp_path, capsys):
    rng = np.random.default_rng(0)
    share = rng.integers(1, 40, 100)
    given = pd.DataFrame({"disc": [f"{one}%" for one in share], "y": 0.1 * share + rng.normal(size=100)})
    model = tmp_path / "model"
    run(capsys, "fit", written(given, tmp_path / "given.csv"), "--target", "y", "--out", model)
    for cells, told in (("0.1 0.2", "none"), ("10€ 20€", "€"), ("10% 20%", None)):
        (tmp_path / "new.csv").write_text("\n".join(["disc", *cells.split()]) + "\n")
        _, said = run(capsys, "predict", model, tmp_path / "new.csv")
        assert ("had the sign or unit" in said) == (told is not None)
        assert told is None or f"unit % when the model was fitted, and have {told} here" in said


def test_units_in_the_first_column_do_not_make_blanks_the_separator(tmp_path, capsys):
    for mark in ",;":
        lines = [mark.join(["weight", "pos", "grade"])]
        lines += [mark.join([f"{i % 5} kg", f"{i % 5 + 0.01 * (i % 3):.2f}", "AB"[i % 2]]) for i in range(60)]
        (tmp_path / "units.csv").write_text("\n".join(lines) + "\n")
        found = record(capsys, "fit", tmp_path / "units.csv", "--target", "pos")
        assert found["equations"][0]["terms"][0]["name"] == "weight"


def test_brackets_make_numbers_negative(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = [f"{v:,.2f}" if v > 0 else f"({-v:,.2f})" for v in (2000 * x).round(2)]
    found = record(capsys, "fit", written(pd.DataFrame({"x": x, "y": y}), tmp_path / "books.csv"), "--target", "y")
    assert found["equations"][0]["terms"][0]["coef"] == pytest.approx(2000, rel=1e-3)
    assert any("make numbers negative" in one for one in found["remarks"])


def test_times_with_a_unit_and_a_text_that_never_changes(heater, tmp_path, capsys):
    options = ["--time", "t", *QUICK, "--inputs", "heater"]
    plain = record(capsys, "discover", written(heater, tmp_path / "plain.csv"), *options)["equations"]
    noted = heater.assign(t=heater.t.map("{:.2f} s".format), status="OK")
    found = record(capsys, "discover", written(noted, tmp_path / "noted.csv"), *options)
    assert found["equations"] == plain
    assert {"column 'status' has one value only and was left out", "the unit s in column 't' was left out (0.00 s)"} < {
        *found["remarks"]
    }


def test_the_target_is_no_column_to_drop_and_no_cure_for_its_own_gaps(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=80), "y": rng.normal(size=80)})
    table.loc[20:, "y"] = np.nan
    path = written(table, tmp_path / "gaps.csv")
    assert main(["fit", path, "--target", "y", "--drop", "y"]) == 1
    assert "--drop names the target, 'y'" in capsys.readouterr().err
    _, said = run(capsys, "fit", path, "--target", "y", "--missing", "drop")
    assert "Most empty cells are in the target, 'y' (60)." in said
    assert "--drop" not in said


def test_a_clock_that_goes_back_without_a_midnight_is_refused_in_hours(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("t,x\n20:00:00,1\n20:10:00,2\n20:05:00,3\n20:20:00,4\n")
    assert main(["discover", str(tmp_path / "t.csv"), "--time", "t"]) == 1
    assert "line 4, column 't': 20:05:00 does not come after 20:10:00." in capsys.readouterr().err


def test_a_header_that_stands_again_and_units_in_every_cell(heater, tmp_path, capsys):
    lines = heater.to_csv(index=False).splitlines()
    (tmp_path / "twice.csv").write_text("\n".join([*lines[:30], lines[0], *lines[30:]]))
    assert main(["discover", str(tmp_path / "twice.csv"), "--time", "t", "--inputs", "heater"]) == 1
    assert "--drop-lines 31" in capsys.readouterr().err
    units = heater.astype(str).agg(lambda row: ",".join(f"{cell} kg" for cell in row), axis=1)
    (tmp_path / "units.csv").write_text("\n".join([lines[0], *units]))
    assert main(["discover", str(tmp_path / "units.csv"), "--time", "t"]) == 1
    assert "column 'x' holds numbers with a sign or a unit" in capsys.readouterr().err


def test_a_table_that_lies_on_its_side_and_a_target_of_words(stores, tmp_path, capsys):
    stores.T.to_csv(tmp_path / "side.csv", header=False)
    assert main(["fit", str(tmp_path / "side.csv"), "--target", "y"]) == 1
    assert "Line 4 begins with it: if its rows are columns, transpose the table." in capsys.readouterr().err
    words = np.select([stores.y > 120, stores.y > 100], ["high", "middle"], "low")
    path = written(stores.assign(y=words), tmp_path / "words.csv")
    assert main(["fit", path, "--target", "y"]) == 1
    assert "must hold numbers, or two texts" in capsys.readouterr().err


def test_the_cell_that_is_no_date_is_named_and_empty_rows_at_the_end_are_left_out(heater, tmp_path, capsys):
    days = (pd.Timestamp("2024-01-05") + pd.to_timedelta(7 * np.arange(len(heater)), unit="D")).strftime("%m/%d/%Y")
    dated = heater.assign(t=days)
    options = ["--time", "t", *QUICK, "--inputs", "heater"]
    path = Path(written(dated, tmp_path / "dated.csv"))
    whole, text = record(capsys, "discover", path, *options), path.read_text()
    path.write_text(text + ",,\n,,\n")
    assert record(capsys, "discover", path, *options)["equations"] == whole["equations"]
    for last, told in (
        ("Total,17,ON\n", f"line {len(heater) + 2}, column 't': 'Total' is neither a number nor a date"),
        (",17,ON\n", f"line {len(heater) + 2}, column 't': is empty, and its row is not"),
    ):
        path.write_text(text + last)
        assert main(["discover", str(path), *options]) == 1
        said = capsys.readouterr().err
        assert told in said
        assert "01/05/2024" not in said
    path = written(dated.assign(t=dated.t.str[:-4] + dated.t.str[-2:]), path)
    assert main(["discover", path, *options]) == 1
    assert "'01/05/24' has a year of two digits" in capsys.readouterr().err


def test_runs_that_are_not_in_order_are_told_by_name(heater, tmp_path, capsys):
    runs = pd.concat([heater.assign(run="A"), heater.iloc[::-1].assign(run="B")]).drop(columns="heater")
    path = written(runs, tmp_path / "runs.csv")
    assert main(["discover", path, "--time", "t", "--series", "run", *QUICK]) == 1
    assert "Sort the rows of series 'B' by time" in capsys.readouterr().err


def test_lines_that_are_no_readings_are_left_out_by_the_command_that_is_offered(heater, tmp_path, capsys):
    rows = heater.drop(columns="heater").assign(t=pd.date_range("2024-03-01", periods=100).strftime("%d.%m.%Y"))
    totals = pd.concat([rows, pd.DataFrame({"t": ["Sum"], "x": [rows.x.sum()]})])
    (tried,) = offered(capsys, "discover", written(totals, tmp_path / "totals.csv"), "--time", "t", *QUICK)
    assert tried.endswith("--drop-lines 102")


def test_the_order_of_day_and_month_without_a_long_step_is_taken(tmp_path, capsys):
    """Readings every ten minutes around midnight of 9 March: read as 3 September they have a gap of a month."""
    times = pd.date_range("2024-03-09 20:00", periods=60, freq="10min")
    x = np.exp(-0.05 * np.arange(60)) + 0.01 * np.random.default_rng(0).normal(size=60)
    rows = pd.DataFrame({"when": times.strftime("%m/%d/%Y %I:%M %p"), "prey, total": x})
    found = record(capsys, "discover", written(rows, tmp_path / "us.csv"), "--time", "when", *QUICK)
    assert any("was read as month, day, year" in one for one in found["remarks"])
    assert "1 state ('prey, total')" in found["read"]


def test_a_report_knows_the_inputs_of_its_model(heater, tmp_path, capsys):
    data, folder = written(heater, tmp_path / "heater.csv"), tmp_path / "found"
    main(["discover", data, "--time", "t", *QUICK, "--inputs", "heater", "--out", str(folder)])
    model = str(next(folder.glob("*.ardea")))
    main(["report", model, "--data", data, "--time", "t", "--out", str(tmp_path / "report.html")])
    assert "wrote" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["day", "date"])
def test_gaps_are_noticed_in_any_column_of_dates(tmp_path, capsys, name):
    rng, days = np.random.default_rng(0), np.arange(60) + 30 * (np.arange(60) >= 40)
    rows = pd.DataFrame({name: pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D"), "a": rng.normal(size=60)})
    rows["y"] = rows["a"] + rng.normal(size=60)
    path = written(rows, tmp_path / "daily.csv")
    found = record(capsys, "fit", path, "--target", "y", "--drop", name, "--rows", "series")
    assert f"'{name}' has 1 gap: what comes after a gap is taken as another series" in found["remarks"]


def test_a_column_to_keep_and_to_drop_is_told_to_be_both(stores, tmp_path, capsys):
    path = written(stores, tmp_path / "sales.csv")
    target, other = stores.columns[-1], stores.columns[0]
    assert main(["fit", str(path), "--target", target, "--keep", other, "--drop", other]) == 1
    assert f"--keep and --drop both name {other}: leave out one of them." in capsys.readouterr().err


@pytest.mark.parametrize("told", [["--rows", "series"], ["--groups", "site"], ["--groups", "site", "--rows", "series"]])
def test_the_program_of_a_page_knows_which_rows_belong_together(tmp_path, no_figures, capsys, told):
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"site": np.repeat(["n", "o", "s", "w"], 30), "a": rng.normal(size=120)})
    frame["y"] = 2 * frame.a + np.convolve(rng.normal(size=120), [0.7, 0.5, 0.3])[:120]
    frame.loc[40, "a"] = np.nan
    frame.to_csv(tmp_path / "table.csv", index=False)
    command = ["fit", str(tmp_path / "table.csv"), "--target", "y", *told, "--missing", "drop"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    formula = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("y = "))
    exec(program_on(tmp_path / "run" / "report.html"), {})
    assert formula in capsys.readouterr().out


def test_subtotals_of_groups_are_told_with_one_command(tmp_path, capsys):
    rng = np.random.default_rng(4)
    parts = []
    for region in ("North", "South", "West", "Ost"):
        part = pd.DataFrame(rng.normal(10, 2, (6, 2)).round(2), columns=["a", "b"])
        part["y"] = (2 * part.a + 0.1 * rng.normal(size=6)).round(2)
        total = part.sum().to_frame().T
        parts += [
            part.assign(region=region),
            total.assign(region=f"{region} {'Ergebnis' if region == 'Ost' else 'Total'}"),
        ]
    written(pd.concat([*parts, total.assign(region="Grand Total")]), path := tmp_path / "sub.csv")
    said = record(capsys, "fit", path, "--target", "y", "--drop", "region")["warnings"][0]
    assert said.startswith(
        "Lines 8, 15, 22, 29 and 30 are called 'North Total', 'South Total', 'West Total', 'Ost Ergeb"
    )
    assert said.endswith("--drop-lines 8,15,22,29,30.")
    again = record(capsys, "fit", path, "--target", "y", "--drop", "region", "--drop-lines", "8,15,22,29,30")
    assert not any("are called" in one for one in again["warnings"])


@pytest.mark.parametrize("patients", [15, 25])
def test_repeated_measures_are_told_with_the_command_that_takes_groups(tmp_path, capsys, patients):
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(patients), 6)
    frame = pd.DataFrame({"patient": [f"P{k:02d}" for k in who], "dose": (10 * rng.integers(0, 4, patients))[who]})
    frame["visit"] = np.tile(np.arange(6), patients)
    frame["y"] = (frame.visit + rng.normal(0, 3, patients)[who] + rng.normal(size=len(who))).round(2)
    written(frame, path := tmp_path / "visits.csv")
    if patients > 20:
        assert main(["fit", str(path), "--target", "y"]) == 1
        assert f"ardea fit {path} --target y --groups patient" in capsys.readouterr().err
    else:
        found = record(capsys, "fit", path, "--target", "y")
        said = next(one for one in found["warnings"] if "of column 'patient', dose never changes" in one)
        assert "--groups patient. To leave the texts out: --drop patient." in said
        assert any("6 rows for each of its 15 texts" in one for one in found["remarks"])
    found = record(capsys, "fit", path, "--target", "y", "--groups", "patient")
    assert {"visit"} <= {one["name"] for one in found["equations"][0]["terms"]} <= {"visit", "dose"}
    assert not any("never changes" in one for one in found["warnings"])
    changing = written(frame.assign(dose=rng.permutation(frame.dose)), tmp_path / "changing.csv")
    if patients <= 20:
        assert not any("never changes" in one for one in record(capsys, "fit", changing, "--target", "y")["warnings"])


@pytest.mark.parametrize("share", [3, 20, 33])
def test_one_text_among_many_numbers_is_offered_as_no_value(stores, tmp_path, capsys, share):
    frame = stores.astype(object)
    frame.loc[: share - 1, "b"] = ".."
    path = written(frame, tmp_path / "bank.csv")
    assert main(["fit", str(path), "--target", "y"]) == 1
    command = shlex.split(capsys.readouterr().err.rpartition("empty: ")[2])
    assert command[-2:] == ["--na", ".."]
    found = record(capsys, *command[1:])
    assert (found["rows"], found["rows_left_out"]) == (60 - share, share)


def test_dashes_before_digits_are_minus_signs(stores, tmp_path, capsys):
    frame = stores.assign(a=stores.a - 10)
    plain, dashed = tmp_path / "plain.csv", tmp_path / "dashed.csv"
    written(frame, plain)
    dashed.write_text(plain.read_text().replace("-", "–"), encoding="utf-8")
    one, other = (record(capsys, "fit", path, "--target", "y")["equations"] for path in (plain, dashed))
    assert one == other
    dashed.write_text(plain.read_text().replace("-", "1–", 1), encoding="utf-8")
    assert main(["fit", str(dashed), "--target", "y"]) == 1
    assert "1–" in capsys.readouterr().err


def test_what_is_the_same_of_many_columns_is_told_once(tmp_path, capsys):
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.uniform(1000, 9000, (40, 12)), columns=[f"{400 + 5 * k} nm" for k in range(12)])
    y = frame.iloc[:, 3] / 100 + rng.normal(size=40)
    text = frame.map(lambda value: f"{value:,.2f}".replace(",", " ").replace(".", ",")).assign(y=y.round(2))
    text["y"] = text["y"].astype(str).str.replace(".", ",")
    text.to_csv(tmp_path / "spectra.csv", sep=";", index=False)
    remarks = record(capsys, "fit", tmp_path / "spectra.csv", "--target", "y")["remarks"]
    (said,) = [one for one in remarks if "blanks" in one]
    assert said.startswith("blanks in column '400 nm' group thousands")
    assert said.endswith("and so on in 11 more columns")


def test_fields_whose_lengths_do_not_tell_the_axes_say_how_they_were_read(tmp_path):
    x, t = np.linspace(0, 1, 30), np.linspace(0, 2, 30)
    u = np.exp(-t) * np.sin(x)[:, None]
    for name, arrays, told in (
        ("square", {"u": u, "x": x, "t": t}, True),
        ("first", {"u": u[:20].T, "x": x[:20], "t": t}, False),
        ("last", {"u": u[:20], "x": x[:20], "t": t}, False),
    ):
        np.savez(tmp_path / f"{name}.npz", **arrays)
        series = read_series(tmp_path / f"{name}.npz", Choice("t", space=["x"]))
        assert series.x.shape == (len(arrays["x"]), 30)
        assert any("were read as space, then time: all have 30 points" in one for one in series.remarks) == told
