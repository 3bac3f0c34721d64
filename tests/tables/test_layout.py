"""What separates columns, what stands above and below a table, and which columns number its rows."""

import numpy as np
import pytest

from ardea.tables.reading import open_table
from ardea.tables.rows import open_rows
from ardea.tables.series import Choice, read_series
from ardea.tables.table import TableError, shortened

ROWS = [f"{74.8 - k} l/min,{55.9 - k:.1f}%,{'AB'[k % 2]},€{118 - k}.00" for k in range(40)]


def written(tmp_path, *lines, name="table.csv"):
    (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / name


@pytest.mark.parametrize("above", [(), ("Report generated 2024-05-01", "Plant 7", "")])
def test_commas_of_all_lines_win_over_blanks_before_units(tmp_path, above):
    table = open_table(written(tmp_path, *above, "Flow (l/min),Humidity,Line,Cost", *ROWS))
    assert (table.separator, table.names) == (",", ["Flow (l/min)", "Humidity", "Line", "Cost"])


def test_a_first_row_of_units_is_data_above_the_same_units_alone(tmp_path):
    rows = [f"{k}.5 kPa;{40 - k}.1 kPa" for k in range(30)]
    table = open_table(written(tmp_path, *rows))
    assert (table.separator, table.names) == (";", ["x0", "x1"])
    assert open_table(written(tmp_path, "0 h;2 h", "1.5;2.5", "3.5;4.5", name="hours.csv")).names == ["0 h", "2 h"]


@pytest.mark.parametrize("seed", range(3))
def test_blanks_separate_numbers_with_decimal_commas(tmp_path, seed):
    numbers = np.random.default_rng(seed).normal(size=(30, 4)).round(2)
    rows = [" ".join(f"{one:.2f}".replace(".", ",") for one in row) for row in numbers]
    for width in (2, 3, 4):
        cut = [" ".join(row.split()[:width]) for row in rows]
        for header in ([], [" ".join("abcd"[:width])]):
            table = open_table(written(tmp_path, *header, *cut, name="numbers.txt"))
            assert (table.separator, len(table.names)) == (None, width)


def test_lines_above_names_may_have_empty_cells(tmp_path):
    rows = [f"{k};{k * 0.5};{k % 7};{k % 3}".replace(".", ",") for k in range(30)]
    table = open_table(written(tmp_path, "Logger;12;;", "Site;North;;", "", "a;b;c;y", *rows))
    assert table.names == ["a", "b", "c", "y"]
    assert "the table begins below 'Logger 12, Site North'" in table.remarks
    table = open_table(written(tmp_path, "Results 2024;;;", ";;;", "a;b;c;y", *rows))
    assert "the table begins below 'Results 2024'" in table.remarks
    gaps = open_table(written(tmp_path, "1;2;;", "3;4;5;6", *rows, name="gaps.csv"))
    assert not gaps.headed  # numbers with gaps are no lines above others


def test_a_note_below_the_table_is_offered_to_be_left_out(tmp_path):
    path = written(tmp_path, "a,b,c,y", *(f"{k},{k**2},{k % 7},{k}" for k in range(40)), "Note: preliminary")
    with pytest.raises(TableError, match="line 42: 1 column, but the first line has 4") as error:
        open_rows(path, "y").arrays()
    assert error.value.lines == (42,)


def test_a_row_of_totals_in_a_column_of_numbers_is_named(tmp_path):
    rows = [f"{k};{k * 0.5};{k % 7}" for k in range(1, 40)]
    path = written(tmp_path, "Nr;a;y", *rows, "Summe;390;120")
    with pytest.raises(TableError, match="line 41 is called as a row of totals is") as error:
        open_rows(path, "y").arrays()
    assert (error.value.lines, error.value.tokens) == ((41,), ())
    counted = open_rows(path, "y", na=["Summe"], missing="drop")
    assert counted.columns == ["a"]


COUNTS = ["id", "ID", "Nr.", "respondent_id", "sample_no", "Sample No.", "customerID", "case", "sample number", "Row #"]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("first", [0, 1, 10001])
def test_numbers_of_rows_are_left_out(tmp_path, name, first):
    path = written(tmp_path, f"{name},a,y", *(f"{first + k},{k % 7},{k % 3}" for k in range(30)))
    assert open_rows(path, "y").columns == ["a"]


SOUND = ["dose", "number of rooms", "pH", "idle", "period", "solid", "video", "noise", "sampled", "casein", "year"]


@pytest.mark.parametrize("name", SOUND)
def test_other_columns_that_rise_by_one_stay(tmp_path, name):
    path = written(tmp_path, f"{name},a,y", *(f"{k},{k % 7},{k % 3}" for k in range(30)))
    assert open_rows(path, "y").columns == [name, "a"]


def test_numbers_of_things_that_all_differ_are_no_categories(tmp_path):
    ids = np.random.default_rng(0).permutation(30)
    rows = open_rows(written(tmp_path, "respondent_id,site,y", *(f"{k},{k % 4},{k % 3}" for k in ids)), "y")
    said = {name: next(one for one in rows.remarks if f"{name!r} holds whole" in one) for name in rows.columns}
    assert said["respondent_id"].endswith("as no two are equal, leave them out with --drop respondent_id")
    assert said["site"].endswith("--categorical site")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_lines_and_cells_that_are_not_there_are_told(tmp_path, separator):
    lines = ["a,b,y", *(f"{k},{k / 7:.3f},{k % 3}" for k in range(60))]
    path = written(tmp_path, *(line.replace(",", separator) for line in lines), name="table.txt")
    table = open_table(path, na=["98", "7", "none"], drop_lines=[5, 500])
    assert len(next(table.frames(100, ["a"]))) == 59
    assert table.unmet() == ["--drop-lines names line 500, and there are 61", "--na 98: no cell holds this"]


def test_lists_that_are_cut_say_how_many_more():
    assert shortened(list("abcdefgh")) == "a, b, c, d, e and 3 more"


def test_units_stand_above_columns_with_a_few_other_cells(tmp_path):
    path = tmp_path / "logger.csv"
    cells = ["---" if row in (5, 17) else f"{11 + 0.1 * row:.1f}".replace(".", ",") for row in range(60)]
    path.write_text(
        "t;T;heat\n;°C;\n" + "".join(f"{row};{cell};{row % 2}\n" for row, cell in enumerate(cells)), encoding="utf-8"
    )
    table = open_table(path)
    assert "the second row, °C, was read as units" in table.remarks
    with pytest.raises(TableError, match="line 8, column 'T': '---' is not a number") as one:
        read_series(path, Choice(time="t"))
    assert one.value.tokens == ("---",)
    assert read_series(path, Choice(time="t"), na=["---"]).x.shape == (60, 2)
    rows = "".join(f"2024-05-{row:02};{row}.5;{'on' if row % 2 else 'off'}\n" for row in range(1, 29))
    path.write_text("date;T;heat\n2024-04-30;---;off\n" + rows, encoding="utf-8")  # a first row of data
    assert not any("units" in one for one in open_table(path).remarks)


def test_a_row_of_totals_is_named_though_other_cells_are_empty(tmp_path):
    rows = [f"{'AB'[k % 2]},{k * k % 17}.5,{k}" for k in range(30)]
    lake = open_rows(written(tmp_path, "lake,x,y", *rows, "TOTAL,,435"), "y", missing="drop")
    lake.arrays()
    assert lake.n_left_out == 1
    assert lake.doubts == [
        "Line 32 is called 'TOTAL' in column 'lake': if that is no row like the others, leave it out with "
        "--drop-lines 32."
    ]


def test_a_cell_with_a_separator_is_told_to_need_quotes(tmp_path):
    path = written(tmp_path, "a,b,y", *(f"{k},red,{k}" for k in range(20)), "20,red, dark,21", "21,red")
    with pytest.raises(TableError) as one:
        open_rows(path, "y").arrays()
    assert "line 22: 4 columns, but the first line has 3 (a cell that holds ',' needs quotes around it)" in str(
        one.value
    )
    assert "line 23: 2 columns, but the first line has 3" in str(one.value).splitlines()[-1]
    assert str(one.value).count("quotes") == 1


def test_a_wrong_cell_among_numbers_with_units_may_be_taken_as_empty(tmp_path):
    cells = [f"{10 + k / 10:.1f} °C" for k in range(40)]
    cells[20] = "1Z.4 °C"
    path = written(tmp_path, "T,y", *(f"{cell},{k * k % 11}" for k, cell in enumerate(cells)))
    with pytest.raises(TableError, match=r"line 22, column 'T': '1Z\.4 °C' is not a number") as one:
        open_rows(path, "y").arrays()
    assert one.value.tokens == ("1Z.4 °C",)
    assert open_rows(path, "y", na=["1Z.4 °C"], missing="drop").arrays()[0].shape == (39, 1)
