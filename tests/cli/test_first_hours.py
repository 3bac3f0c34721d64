"""What newcomers met in their first hour: said clearly, all at once, with a command that works."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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
