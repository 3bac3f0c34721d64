"""Dots and commas before three digits, by the numbers around them; signs and blanks in cells."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ardea.cli import main
from ardea.tables.rows import open_rows


def rows_of(path, text):
    path.write_text(text, encoding="utf-8")
    return open_rows(path, "y")


def column_of(cells, separator=";", quote=""):
    return "p;y\n".replace(";", separator) + "".join(
        f"{quote}{cell}{quote}{separator}{i}\n" for i, cell in enumerate(cells)
    )


@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("separator", [";", "\t"])
def test_whole_numbers_that_end_where_the_marked_ones_begin_tell_thousands(tmp_path, mark, separator):
    cells = [cell.replace(".", mark) for cell in ("612", "2.046", "987", "1.540")]
    rows = rows_of(tmp_path / "t.csv", column_of(cells, separator))
    np.testing.assert_array_equal(rows.arrays()[0].ravel(), [612, 2046, 987, 1540])
    (said,) = (one for one in rows.remarks if "column 'p'" in one)
    assert said == (
        f"{'dots' if mark == '.' else 'commas'} in column 'p' group thousands ({cells[1]} was read as 2046), as the "
        f"numbers without go up to 987; if not, give --decimal {mark}"
    )
    assert not rows.doubts


def test_the_mark_of_one_column_is_that_of_the_file(tmp_path):
    rows = rows_of(tmp_path / "t.csv", "p;q;y\n612;1.250;1\n2.046;3.470;2\n987;2.145;3\n1.540;9.210;4\n")
    np.testing.assert_array_equal(rows.arrays()[0][:, 1], [1250, 3470, 2145, 9210])


def test_decimals_to_three_places_stay_decimals(tmp_path):
    """1999 would be 1.999, and 0.5 is no thousand; whole numbers near the others are a doubt that is a warning."""
    for cells in (["1.775", "1999"], ["1.775", "0.5", "612"], ["1.775", "0", "2.500"]):
        rows = rows_of(tmp_path / "t.csv", column_of(cells))
        np.testing.assert_array_equal(rows.arrays()[0].ravel(), [*map(float, cells)])
        assert not rows.doubts
    rows = rows_of(tmp_path / "t.csv", column_of(["1.775", "10", "5.250"]))
    np.testing.assert_array_equal(rows.arrays()[0].ravel(), [1.775, 10, 5.25])
    assert "whole numbers beside 1.775, which was read as 1.775" in rows.doubts[0]
    assert "give --decimal ,." in rows.doubts[0]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of a column within 900 to 5000, and of one a thousand times smaller."""
    folder, rng = tmp_path_factory.mktemp("models"), np.random.default_rng(0)
    for name, unit in (("large", 1), ("small", 1000)):
        x = np.append([900, 5000], rng.integers(900, 5000, 30)) / unit
        lines = [f"{a:.10g},{2 * a + b:.10g}" for a, b in zip(x, rng.normal(size=32) / unit, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["p,y", *lines]))
        assert main(["fit", str(folder / f"{name}.csv"), "--target", "y", "--out", str(folder / name)]) == 0
    return folder


def predicted(capsys, models, name, text):
    (models / "new.csv").write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert main(["predict", str(models / name / "model.ardea"), str(models / "new.csv"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    return np.array(told["predictions"]["prediction"]), told["remarks"], told["warnings"]


@pytest.mark.parametrize(("separator", "quote"), [(";", ""), ("\t", ""), (",", '"')])
@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize(("name", "unit"), [("large", 1), ("small", 1000)])
def test_new_rows_are_read_so_that_they_lie_among_the_numbers_fitted(
    models, capsys, name, unit, mark, separator, quote
):
    """Some of them may lie outside: 8500 does."""
    cells = [cell.replace(".", mark) for cell in ("3.251", "1.100", "2.450", "8.500")]
    said = predicted(capsys, models, name, column_of(cells, separator, quote))
    np.testing.assert_allclose(said[0] * unit, [6502, 2200, 4900, 17000], atol=20)
    assert any("as only so they lie among the numbers fitted" in one for one in said[1])


def test_a_file_that_contradicts_the_numbers_fitted_is_warned_of(models, capsys):
    """17.5 elsewhere says that dots stand before decimals."""
    values, _, warned = predicted(capsys, models, "large", "p;q\n3.251;17.5\n1.100;18.5\n")
    np.testing.assert_allclose(values, [6.5, 2.2], atol=20)
    assert "read as 3.251, as the rest of the file is written; but 3251 would suit the numbers fitted" in warned[0]


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u202f", "\u2009", "'", "’"])
def test_blanks_and_apostrophes_group_thousands_in_new_rows(models, capsys, blank):
    said = predicted(capsys, models, "large", column_of([f"3{blank}251", "900"]))
    np.testing.assert_allclose(said[0], [6502, 1800], atol=20)


def test_new_rows_that_lie_nowhere_among_the_numbers_fitted_are_read_as_usual_and_told(models, capsys):
    values, remarks, _ = predicted(capsys, models, "large", column_of(["9.251", "9.100"]))
    np.testing.assert_allclose(values, [18.5, 18.2], atol=20)
    assert any(
        "read neither way they lie among the numbers fitted, 900 to 5000; if not, give" in one for one in remarks
    )


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u202f", "\u2009", "’"])
@pytest.mark.parametrize(("unit", "ahead"), [(" m²", ""), ("\u00a0€", ""), ("", "$"), (" kg", "")])
def test_thousands_with_a_unit_in_the_cell(tmp_path, blank, unit, ahead):
    cells = [f"{ahead}{cell.replace(' ', blank)}{unit}" for cell in ("19 637", "683", "1 234 567")]
    rows = rows_of(tmp_path / "t.csv", column_of(cells))
    np.testing.assert_array_equal(rows.arrays()[0].ravel(), [19637, 683, 1234567])
    assert any("in column 'p' group thousands" in one for one in rows.remarks)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$100.50", "($200.50)", "($1,050.25)"], [100.5, -200.5, -1050.25]),
        (["$100.50", "$(200.50)", "$(1,050.25)"], [100.5, -200.5, -1050.25]),
        (["$100.50", "-$200.50", "-$1,050.25"], [100.5, -200.5, -1050.25]),
        (["100,5", "200,5-", "1.050,25-"], [100.5, -200.5, -1050.25]),
        (["100,50 €", "(200,50 €)", "(1.050,25 €)"], [100.5, -200.5, -1050.25]),
    ],
)
def test_negative_numbers_as_accounts_write_them(tmp_path, cells, numbers):
    rows = rows_of(tmp_path / "t.csv", column_of(cells))
    np.testing.assert_array_equal(rows.arrays()[0].ravel(), numbers)
    assert any(f"in column 'p' make numbers negative ({cells[1]})" in one for one in rows.remarks)


def test_texts_that_may_be_numbers_are_warned_of_with_a_cell(tmp_path):
    text = column_of(["12..5", "13..5", "12..5", "red"])
    rows = rows_of(tmp_path / "t.csv", text)
    told = "Column 'p' holds texts that begin with digits, such as '12..5', and each has its own term"
    assert [one.split(":")[0] for one in rows.doubts] == [told]
    assert not open_rows(tmp_path / "t.csv", "y", categorical=["p"]).doubts
    assert not rows_of(tmp_path / "t.csv", column_of(["red", "blue", "12..5", "red"])).doubts


def test_columns_of_many_texts_are_refused_with_a_cell_and_its_line(tmp_path):
    with pytest.raises(ValueError, match=r"'p' holds many different texts, not numbers \(line 3: 'a1'\)"):
        rows_of(tmp_path / "t.csv", column_of(["7", *(f"a{i}" for i in range(1, 30))]))
