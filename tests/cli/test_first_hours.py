"""What newcomers met in their first hour: said clearly, all at once, with a command that works."""

from __future__ import annotations

import json
import shlex
import zipfile

import numpy as np
import pandas as pd
import pytest

import ardea
from ardea.cli import main

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture
def loads():
    """A load that follows a mass and a speed."""
    rng = np.random.default_rng(21)
    frame = pd.DataFrame({"mass": rng.uniform(1, 20, 60), "speed": rng.normal(size=60)}).round(3)
    return frame.assign(load=(2 * frame.mass + frame.speed + 0.1 * rng.normal(size=60)).round(3))


def written(frame, path):
    frame.to_csv(path, index=False)
    return str(path)


def refused(capsys, *arguments):
    """Run a command that must not work, and return what it says."""
    assert main(list(map(str, arguments))) == 1
    return capsys.readouterr().err


def done(capsys, *arguments):
    assert main(list(map(str, arguments))) == 0
    return capsys.readouterr()


# Numbers and their units ----------------------------------------------------------------------------------------------


def in_units(mass, other, factor, rows):
    """Return masses in kg, and those of some rows in another unit."""
    return [f"{factor * m:.3f}{other}" if i in rows else f"{m:.3f} kg" for i, m in enumerate(mass)]


@pytest.mark.parametrize(("other", "told"), [(" lb", "lb in 2 cells"), ("", "no unit in 2 cells")])
def test_few_numbers_in_another_unit_are_named_with_their_lines(loads, tmp_path, capsys, other, told):
    table = loads.assign(mass=in_units(loads.mass, other, 2.2, (7, 9)))
    path = written(table, tmp_path / "loads.csv")
    said = refused(capsys, "fit", path, "--target", "load")
    assert f"column 'mass' mixes numbers in different units: kg in 58 cells (first in line 2) and {told}" in said
    assert f"(first in line 9). Write all of them in one unit\n  To leave such lines out: ardea fit {path}" in said
    out, _ = done(capsys, "fit", path, "--target", "load", *said.split("--target load ")[1].split())
    assert "(58 rows)" in out
    assert "the unit kg in column 'mass' was left out" in out


def test_half_the_numbers_in_another_unit_are_not_left_out(loads, tmp_path, capsys):
    table = loads.assign(mass=in_units(loads.mass, " g", 1000, range(0, 60, 2)))
    said = refused(capsys, "fit", written(table, tmp_path / "loads.csv"), "--target", "load")
    assert "g in 30 cells (first in line 2) and kg in 30 cells (first in line 3)" in said
    assert "--drop mass" in said
    assert "--drop-lines" not in said


def test_units_at_few_of_plain_numbers_are_counted_before_the_cells(loads, tmp_path, capsys):
    mass = [f"{2.2 * m:.1f} lb" if i in (7, 9) else f"{m:.3f}" for i, m in enumerate(loads.mass)]
    said = refused(capsys, "fit", written(loads.assign(mass=mass), tmp_path / "loads.csv"), "--target", "load")
    assert "no unit in 58 cells (first in line 2) and lb in 2 cells (first in line 9)" in said
    assert f"line 9, column 'mass': '{mass[7]}' is not a number" in said


def test_a_model_refuses_rows_in_different_units(loads, tmp_path, capsys):
    done(capsys, "fit", written(loads, tmp_path / "loads.csv"), "--target", "load", "--out", tmp_path / "run")
    table = loads.assign(mass=in_units(loads.mass, " lb", 2.2, (7, 9)))
    said = refused(capsys, "predict", tmp_path / "run" / "model.ardea", written(table, tmp_path / "new.csv"))
    assert "kg in 58 cells (first in line 2) and lb in 2 cells (first in line 9)" in said


@pytest.mark.parametrize("mark", ["'", "’"])
def test_apostrophes_group_thousands(loads, tmp_path, capsys, mark):
    grouped = [f"{1000 * m:,.1f}".replace(",", mark) for m in loads.mass]
    plain, _ = done(
        capsys, "fit", written(loads.assign(mass=(1000 * loads.mass).round(1)), tmp_path / "p.csv"), "--target=load"
    )
    out, _ = done(capsys, "fit", written(loads.assign(mass=grouped), tmp_path / "g.csv"), "--target=load")
    first = next(one for one in grouped if mark in one)
    assert out == f"{plain}How g.csv was read:\n  apostrophes in column 'mass' group thousands ({first})\n"


# Runs of equations ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swings(tmp_path_factory):
    """Return a model of three runs, a, b and c, of a damped oscillator that starts at 1, 2 and 3."""
    t, rng, parts = np.arange(0, 6, 0.1), np.random.default_rng(0), []
    for run, size in (("a", 1), ("b", 2), ("c", 3)):
        x, v = (size * np.exp(-0.5 * t) * wave(2 * t) for wave in (np.cos, np.sin))
        noise = 0.002 * rng.normal(size=(2, t.size))
        parts.append(pd.DataFrame({"run": run, "t": t.round(1) + size, "x": x + noise[0], "v": noise[1] - v}))
    place = tmp_path_factory.mktemp("swings")
    path = written(pd.concat(parts), place / "runs.csv")
    options = ["--time", "t", "--series", "run", "--degree", "1", "--out", str(place / "run")]
    assert main(["discover", path, *options]) == 0
    return place / "run" / "model.ardea"


def test_a_run_begins_as_a_named_run_of_the_data_did(swings, capsys):
    for number, run in enumerate("abc", 1):
        out, said = done(capsys, "simulate", swings, "--until", 5, "--step", 1, "--series", run)
        rows = np.loadtxt(out.splitlines(), delimiter=",", skiprows=1)
        np.testing.assert_allclose(rows[:, 0], np.arange(number, 6))
        np.testing.assert_allclose(rows[0, 1:], [number, 0], atol=0.01)
        size = number * np.exp(-0.5 * (rows[:, 0] - number))
        np.testing.assert_allclose(rows[:, 1], size * np.cos(2 * (rows[:, 0] - number)), atol=0.02)
        assert f"The start is that of run '{run}', at t = {number}.0." in said
    _, said = done(capsys, "simulate", swings, "--until", 5)
    assert "at the first row of run 'a' (--series RUN begins as another: b, c), at t = 1.0." in said


def test_a_run_goes_on_from_a_time_that_is_named(swings, capsys):
    out, said = done(capsys, "simulate", swings, "--until", 6, "--step", 1, "--series", "b", "--from", 4)
    whole, _ = done(capsys, "simulate", swings, "--until", 6, "--step", 1, "--series", "b")
    assert out.splitlines()[1:] == whole.splitlines()[3:]
    assert "The start is that of run 'b', at t = 2.0." in said
    assert "give --start, the states at --from" in refused(
        capsys, "simulate", swings, "--until", 6, "--series", "b", "--from", 1
    )


def test_a_run_that_noise_moves_goes_on_from_the_latest_row(tmp_path, capsys):
    rng, parts = np.random.default_rng(2), []
    for run, start in (("a", 5.0), ("b", -4.0)):
        x = np.empty(100)
        x[0] = start
        for i in range(99):
            x[i + 1] = x[i] + 0.5 * (1.0 - 0.4 * x[i]) + 0.35 * rng.normal()
        parts.append(pd.DataFrame({"run": run, "t": 0.5 * np.arange(100), "x": x + 0.05 * rng.normal(size=100)}))
    path = written(pd.concat(parts), tmp_path / "drift.csv")
    done(capsys, "discover", path, "--time", "t", "--series", "run", "--degree", 1, "--out", tmp_path / "run")
    model = tmp_path / "run" / "model.ardea"
    for run, part in zip("ab", parts, strict=True):
        for begin, row, where in ((49.5, 99, "last row of"), (20.2, 40, "latest row of"), (0, 0, "first row of")):
            named = ["--series", run] if run == "b" else []
            out, said = done(capsys, "simulate", model, "--from", begin, "--until", 60, "--step", 5, *named)
            first = float(out.splitlines()[1].split(",")[1])
            assert abs(first - part["x"].to_numpy()[row]) < 0.3
            assert f"The start is the smoothed state at the {where} run '{run}'" in said
            assert f"at t = {row / 2}." in said


def test_runs_that_are_not_there_are_refused_with_those_that_are(swings, loads, tmp_path, capsys):
    assert "has no run 'd'. There are a, b, c." in refused(capsys, "simulate", swings, "--until", 5, "--series", "d")
    both = ["--series", "a", "--start", "1,2"]
    assert "leave out --start." in refused(capsys, "simulate", swings, "--until", 5, *both)
    alone = written(pd.DataFrame({"t": np.arange(40) / 10, "x": np.exp(-np.arange(40) / 10)}), tmp_path / "alone.csv")
    done(capsys, "discover", alone, "--time", "t", "--degree", 1, "--form", "weak", "--out", tmp_path / "run")
    said = refused(capsys, "simulate", tmp_path / "run" / "model.ardea", "--until", 5, "--series", "a")
    assert "the model knows no runs by name" in said


@pytest.mark.parametrize("forged", [[], ["a"], ["a", 0.0], ["a", 0.0, "x", 1.0], [0.0, 1.0, 2.0]])
def test_starts_that_are_none_are_refused(swings, tmp_path, forged):
    model = ardea.load(swings)
    assert [*model.table_["starts"]] == ["a", "b", "c"]
    ardea.save(model, tmp_path / "model.ardea")
    with zipfile.ZipFile(tmp_path / "model.ardea") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    tree = json.loads(parts["header.json"])
    holder = next(one for one in nested(tree) if isinstance(one, dict) and "starts" in one)
    holder["starts"] = [forged]
    with zipfile.ZipFile(tmp_path / "model.ardea", "w") as file:
        for name, content in {**parts, "header.json": json.dumps(tree).encode()}.items():
            file.writestr(name, content)
    with pytest.raises(ardea.ModelFileError, match="one of names, each with what belongs to it"):
        ardea.load(tmp_path / "model.ardea")


def nested(tree):
    """Yield all parts of a tree of lists and dicts."""
    yield tree
    for one in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from nested(one)


def test_a_start_is_told_by_names_in_any_order(swings, capsys):
    plain = done(capsys, "simulate", swings, "--until", 2, "--start", "1,2").out
    for start in ("x=1,v=2", "v=2, x=1"):
        assert done(capsys, "simulate", swings, "--until", 2, "--start", start).out == plain
    for start, told in [
        ("x=1", "v is lacking"),
        ("x=1,w=2", "w is none of them; v is lacking"),
        ("x=1,2", "all of them with their names, or none"),
        ("x=1,v=2,x=3", "one is given twice"),
        ("1,2,3", "got 3"),
    ]:
        said = refused(capsys, "simulate", swings, "--until", 2, "--start", start)
        assert "--start needs 2 numbers, for x, v" in said
        assert told in said


def test_times_of_a_run_have_the_digits_of_their_step(swings, capsys):
    for options in (["--step", "0.1", "--until", "1"], ["--until", "10"]):
        out, _ = done(capsys, "simulate", swings, "--start", "1,0", *options)
        times = [line.split(",")[0] for line in out.splitlines()[1:12]]
        assert times == ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"]
    out, _ = done(capsys, "simulate", swings, "--start", "1,0", "--step", "0.333333333333333", "--until", "1")
    assert out.splitlines()[2].startswith("0.333333333333333,")


# Everything that is wrong, at once ------------------------------------------------------------------------------------


def test_all_names_that_are_not_there_and_all_that_is_lacking_are_told_at_once(loads, swings, tmp_path, capsys):
    path = written(loads, tmp_path / "loads.csv")
    wrong = ["--drop", "foo,sped", "--columns", "Mass", "--groups", "who", "--keep", "kept", "--strength", "3"]
    said = refused(capsys, "fit", path, *wrong)
    for told in ("--target COLUMN", "'foo'", "'sped'. Did you mean 'speed'?", "'Mass'. Did you mean 'mass'?", "'who'"):
        assert told in said
    assert "has no column 'kept'" in said
    assert "--strength is alpha, lam or tau" in said
    assert said.count("There are mass, speed, load.") == 1
    runs = swings.parent.parent / "runs.csv"
    named = ["--states", "x,w", "--inputs", "u", "--series", "runs"]
    said = refused(capsys, "discover", runs, *named, "--time", "T")
    assert all(f"no column {name!r}" in said for name in ("w", "u", "runs", "T"))
    said = refused(capsys, "discover", runs, *named)
    assert "Say when the rows were taken: --time COLUMN" in said
    assert all(f"no column {name!r}" in said for name in ("w", "u", "runs"))


def test_columns_of_no_use_and_wrong_cells_are_told_at_once(loads, tmp_path, capsys):
    table = loads.assign(name=[f"n{i}x" for i in range(60)], day=pd.date_range("2024-01-01", periods=60).astype(str))
    table = table.astype({"speed": object, "load": object})
    table.loc[9, "speed"], table.loc[19, "load"] = "bad", "x3"
    said = refused(capsys, "fit", written(table, tmp_path / "loads.csv"), "--target", "load")
    for told in (
        "column 'name' holds many different texts",
        "column 'day' holds dates, not numbers",
        "line 11, column 'speed': 'bad' is not a number",
        "line 21, column 'load': 'x3' is not a number",
        "write 'day' as a number, such as the days (or seconds) since the first row",
    ):
        assert told in said
    tried = shlex.split(said.split("Try: ")[1].splitlines()[0])
    assert "(58 of 60 rows)" in done(capsys, *tried[1:]).out


def test_rows_of_other_length_and_columns_of_no_use_are_told_at_once(loads, tmp_path, capsys):
    table = loads.assign(name=[f"n{i}x" for i in range(60)], day=pd.date_range("2024-01-01", periods=60).astype(str))
    lines = table.to_csv(index=False).splitlines()
    lines[30] += ",7"
    (tmp_path / "loads.csv").write_text("\n".join(lines))
    said = refused(capsys, "fit", tmp_path / "loads.csv", "--target", "load")
    for told in ("column 'name' holds many different texts", "column 'day' holds dates", "line 31: 6 columns, but"):
        assert told in said
    tried = shlex.split(said.split("Try: ")[1].splitlines()[0])
    assert "(59 rows)" in done(capsys, *tried[1:]).out
    lines[10] = lines[10].replace(str(loads.speed[9]), "bad")
    (tmp_path / "loads.csv").write_text("\n".join(lines))
    said = refused(capsys, "fit", tmp_path / "loads.csv", "--target", "load")
    assert "line 11, column 'speed': 'bad' is not a number" in said
    assert said.count("line 31: 6 columns, but") == 1
    assert "column 'name' holds many different texts" in said
    assert "Try" not in said  # as no options take both away


# Maps, pages and names ------------------------------------------------------------------------------------------------


def test_a_map_is_offered_where_times_count_and_nothing_was_found(tmp_path, capsys):
    x = [0.3]
    for _ in range(119):
        x.append(3.7 * x[-1] * (1 - x[-1]))
    path = written(pd.DataFrame({"k": range(120), "x": x}), tmp_path / "map.csv")
    out, _ = done(capsys, "discover", path, "--time", "k")
    command = out.split("find a map, x[k+1] = f(x[k]): ")[1].splitlines()[0]
    found, _ = done(capsys, *shlex.split(command)[1:])
    assert "(x)[k+1] = (3.7" in found
    assert "find a map" not in found
    half = written(pd.DataFrame({"k": np.arange(120) / 2, "x": x}), tmp_path / "half.csv")
    assert "find a map" not in done(capsys, "discover", half, "--time", "k").out


@pytest.mark.parametrize("name", ["page", "page.pdf"])
def test_a_page_is_named_as_one(swings, tmp_path, capsys, name):
    said = refused(capsys, "report", swings, "--out", tmp_path / name)
    assert f"ends in .html, .htm, .xhtml: --out {tmp_path / 'page.html'}." in said
    assert not (tmp_path / name).exists()


def test_columns_that_differ_in_case_are_named_for_each_that_is_lacking(loads, tmp_path, capsys):
    done(capsys, "fit", written(loads, tmp_path / "loads.csv"), "--target", "load", "--out", tmp_path / "run")
    upper = written(loads.rename(columns=str.title), tmp_path / "upper.csv")
    said = refused(capsys, "predict", tmp_path / "run" / "model.ardea", upper)
    assert "has no column 'mass'. Did you mean 'Mass'?" in said
    assert "has no column 'speed'. Did you mean 'Speed'?" in said
    assert said.count("There are Mass, Speed, Load.") == 1


def test_warnings_call_the_target_by_its_name(loads, tmp_path, capsys):
    table = loads.assign(load=np.minimum(loads.load, 30.0))
    _, said = done(capsys, "fit", written(table, tmp_path / "loads.csv"), "--target", "load")
    assert f"{np.sum(table.load == 30)} of 60 values of load are equal to the largest, 30" in said
    assert "load looks cut off" in said
    other = table.rename(columns={"load": "top", "speed": "speed in y"})
    _, said = done(capsys, "fit", written(other, tmp_path / "other.csv"), "--target", "top")
    assert "values of y are equal" in said  # for "speed in y" is no target
