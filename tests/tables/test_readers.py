"""Files larger than memory: every format gives the model of the rows in memory, and says what is wrong with a file."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import pickle
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zarr
from pyarrow import parquet

from ardea import ARD, ARDSearch, ARDvi, SparseARD
from ardea.tables.reading import open_table
from ardea.tables.rows import open_rows
from ardea.tables.series import Choice, read_series
from ardea.tables.table import TableError, bytes_of, joined_names

ROWS = 500


def fit_file(estimator, path, target, progress=None, **settings):
    return estimator.fit(open_rows(path, target, **settings).compressed(progress), None)


NAMES = ["a", "b", "c", "d", "e", "y", "z"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(ROWS, 7)) + 2
    rows[:, 5] = rows[:, 1] - 3 * rows[:, 3] + 0.2 * rows[:, 5]
    rows[:, 6] = rows[:, 0] + 0.1 * rows[:, 6]
    return rows


def write_csv(path, table, separator=",", header=True):
    frame = pd.DataFrame(table, columns=NAMES)
    frame.to_csv(path, sep=separator, header=header, index=False, float_format="%.17g")


def write_parquet_folder(path, table):
    path.mkdir()
    for number, part in enumerate(np.split(table, [300])):
        pd.DataFrame(part, columns=NAMES).to_parquet(path / f"part-{number}.parquet", index=False, row_group_size=70)


def write_zarr_group(path, table):
    group = zarr.open_group(path, mode="w")
    group.create_array("X", data=table[:, :5], chunks=(60, 5))
    group.create_array("y", data=table[:, 5], chunks=(100,))
    group.create_array("z", data=table[:, 6], chunks=(500,))


WRITERS = {
    "table.csv": write_csv,
    "table.tsv": lambda path, table: write_csv(path, table, "\t"),
    "table.txt": lambda path, table: write_csv(path, table, " "),
    "semicolon.csv": lambda path, table: write_csv(path, table, ";"),
    "table.csv.gz": write_csv,
    "table.parquet": lambda path, table: pd.DataFrame(table, columns=NAMES).to_parquet(path, row_group_size=90),
    "folder": write_parquet_folder,
    "table.npy": np.save,
    "fortran.npy": lambda path, table: np.save(path, np.asfortranarray(table)),
    "table.zarr": lambda path, table: zarr.create_array(path, data=table, chunks=(64, 3)),
    "group.zarr": write_zarr_group,
}
NAMED = dict.fromkeys(WRITERS, ("y", "z")) | dict.fromkeys(["table.npy", "fortran.npy", "table.zarr"], (5, 6))


@pytest.fixture(params=list(WRITERS))
def file(request, tmp_path, table):
    path = tmp_path / request.param
    WRITERS[request.param](path, table)
    return path, *NAMED[request.param]


def test_blocks_hold_all_rows_in_order(file, table):
    path, target, other = file
    for memory in ("1 GB", 30_000):
        rows = open_rows(path, [target, other], memory=memory)
        assert rows.table.n_rows in (None, ROWS)
        assert rows.fits == (memory == "1 GB")
        blocks = list(rows.blocks())
        assert all(len(X) <= rows.rows_per_block for X, _ in blocks)
        np.testing.assert_array_equal(np.vstack([X for X, _ in blocks]), table[:, :5])
        np.testing.assert_array_equal(np.vstack([y for _, y in blocks]), table[:, 5:])
    assert len(blocks) > 2


def test_model_of_a_file_is_the_model_of_its_rows(file, table):
    path, target, other = file
    model = fit_file(SparseARD(), path, target, memory=20_000)
    reference = SparseARD().fit(np.delete(table, 5, axis=1), table[:, 5])
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.noise_variance_, reference.noise_variance_, rtol=1e-8)
    assert len(model.feature_names_in_) == 6
    both = fit_file(ARD(), path, [target, other])
    np.testing.assert_allclose(both.coef_, ARD().fit(table[:, :5], table[:, 5:]).coef_, rtol=1e-8, atol=1e-12)


def test_names_and_chosen_columns(tmp_path, table):
    path = tmp_path / "table.csv"
    write_csv(path, table)
    rows = open_rows(path, "y", columns=["d", "b"])
    assert rows.names == ("d", "b")
    assert rows.targets == ("y",)
    model = fit_file(SparseARD(always_keep=["a"]), path, -2, columns=["a", "b", "d"])
    assert list(model.feature_names_in_) == ["a", "b", "d"]
    assert model.support_[0]


def test_search_on_a_file(tmp_path, table):
    np.save(tmp_path / "t.npy", table[:, :6])
    search = fit_file(ARDSearch(ARDvi()), tmp_path / "t.npy", -1)
    assert search.best_strength_ == ARDSearch(ARDvi()).fit(table[:, :5], table[:, 5]).best_strength_


def test_a_file_without_header(tmp_path, table):
    write_csv(tmp_path / "t.csv", table, header=False)
    rows = open_rows(tmp_path / "t.csv", 5)
    assert rows.names == ("x0", "x1", "x2", "x3", "x4", "x6")
    np.testing.assert_array_equal(np.vstack([X for X, _ in rows.blocks()]), np.delete(table, 5, axis=1))


def test_progress_reaches_the_end(tmp_path, table, capsys):
    for name in ("table.csv", "table.npy"):
        WRITERS[name](tmp_path / name, table)
        fit_file(ARD(), tmp_path / name, -1, memory=30_000, progress=True)
        shown = capsys.readouterr().err
        assert f"{ROWS}/{ROWS}" in shown or f"{ROWS} rows" in shown
        fit_file(ARD(), tmp_path / name, -1, memory=30_000)
        assert capsys.readouterr().err == ""  # no terminal


# What is wrong with a file --------------------------------------------------------------------------------------------


def text_file(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return path


def read(path, target="y", **settings):
    return list(open_rows(path, target, **settings).blocks())


def test_an_unreadable_number_is_named_by_line_and_column(tmp_path):
    path = text_file(tmp_path, "a,b,y\n1,2,3\n\n4,five,6\n7,8,9\n")
    with pytest.raises(ValueError, match=r"t\.csv, line 4, column 'b': 'five' is not a number"):
        read(path)
    assert len(read(path, columns=["a"])[0][0]) == 3  # the column is not asked for
    with pytest.raises(ValueError, match=r"line 3, column 'a': the cell is empty or NaN.*missing='drop'"):
        read(text_file(tmp_path, "a,y\n1,2\n,3\n"))
    with pytest.raises(ValueError, match="line 3, column 'y': the cell is empty or NaN"):
        read(text_file(tmp_path, "a,y\n1,2\n2,nan\n"))


@pytest.mark.parametrize("line", ["1,2", "1,2,3,4"])
def test_a_line_of_other_length_is_named(tmp_path, line):
    path = text_file(tmp_path, f"a,b,y\n1,2,3\n4,5,6\n{line}\n")
    with pytest.raises(ValueError, match=rf"line 4: {line.count(',') + 1} columns, but the first line has 3"):
        read(path)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        open_rows(tmp_path / "none.csv", 0)
    with pytest.raises(ValueError, match="spreadsheet of a kind that is not read: save it as CSV"):
        open_rows(text_file(tmp_path, "", "t.ods"), 0)
    with pytest.raises(ValueError, match="empty"):
        open_rows(text_file(tmp_path, ""), 0)
    with pytest.raises(ValueError, match="empty"):
        open_rows(text_file(tmp_path, "# only a comment\n"), 0)
    with pytest.raises(ValueError, match="no rows"):
        read(text_file(tmp_path, "a,y\n"))
    binary = tmp_path / "b.csv"
    binary.write_bytes(bytes(range(256)) * 10)
    with pytest.raises(ValueError, match=r"cannot be read as text|binary"):
        open_rows(binary, 0)
    packed = tmp_path / "cut.csv.gz"
    packed.write_bytes(gzip.compress(b"a,y\n" + b"1,2\n" * 100_000)[:-20])
    with pytest.raises(ValueError, match="cannot be read"):
        read(packed)
    for ending in (".parquet", ".npy"):
        with pytest.raises(ValueError, match="cannot be read"):
            open_rows(text_file(tmp_path, "rubbish", "t" + ending), 0)
    (tmp_path / "t.zarr").mkdir()
    with pytest.raises(ValueError, match=r"cannot be read|no array"):
        open_rows(tmp_path / "t.zarr", 0)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="is a directory"):
        open_rows(tmp_path / "folder", 0)


def test_spreadsheets_need_a_package_and_say_which(tmp_path, monkeypatch):
    path = text_file(tmp_path, "", "t.xlsx")
    monkeypatch.setattr("ardea.tables.spreadsheets.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install openpyxl"):
        open_rows(path, 0)


def test_spreadsheets_are_read_like_text(tmp_path, monkeypatch):
    """What openpyxl hands over, without openpyxl: cells as they are typed, empty ones as empty texts."""
    cells = [
        ["a", "colour", "y"],
        ["m/s", "", "kg"],
        [1, "red", 2.5],
        ["", "blue", 3],
        [4, "red", "NA"],
        [5, "blue", 6],
    ]
    monkeypatch.setattr("ardea.tables.spreadsheets.find_spec", lambda name: True)
    monkeypatch.setattr(pd, "read_excel", lambda path, **_: pd.DataFrame(cells, dtype=object))
    monkeypatch.setattr("ardea.tables.reading.sheet_names", lambda path: ["Sheet1"])
    rows = open_rows(text_file(tmp_path, "", "t.xlsx"), "y", missing="drop")
    ((X, y),) = rows.blocks()
    np.testing.assert_array_equal(np.column_stack([X, y]), [[1, 1, 2.5], [5, 0, 6]])
    assert rows.names == ("a", "colour=red")
    assert any("units" in one for one in rows.remarks)
    with pytest.raises(TableError, match="line 4, column 'a': the cell is empty"):
        read(text_file(tmp_path, "", "t.xlsx"))


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("ardea.tables.reading.LONGEST_LINE", 1000)
    with pytest.raises(ValueError, match="a line is longer than 1000"):
        open_rows(text_file(tmp_path, "1," * 1000), 0)


def test_a_row_that_no_line_of_the_file_begins_is_told_by_its_number(tmp_path):
    """A line end of its own among others makes a row of gaps, of which the lines as Python reads them know nothing."""
    (tmp_path / "t.csv").write_bytes(b'"a";"b c";y\r\n1;2;"3"\r\n4;5;6\r\xc2\x85\n')
    with pytest.raises(TableError, match="row 2, column 'a': the cell is empty"):
        list(open_rows(tmp_path / "t.csv", 0).blocks())


def test_columns_that_are_not_there_or_asked_for_twice(tmp_path):
    path = text_file(tmp_path, "a,b,y\n1,2,3\n")
    with pytest.raises(ValueError, match=r"no column .u.\. There are a, b, y"):
        open_rows(path, "u")
    with pytest.raises(ValueError, match=r"no column 3\. There are a, b, y"):
        open_rows(path, 3)
    for settings in ({"columns": ["a", "y"]}, {"columns": ["a", "a"]}, {"columns": []}):
        with pytest.raises(ValueError, match="at least one, once each, and not the target"):
            open_rows(path, "y", **settings)


class Trap:
    """Writes a file when it is unpickled."""

    def __reduce__(self):
        return open, ("/tmp/ardea-was-unpickled", "w")


def test_npy_is_never_unpickled(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.array([[Trap(), 1]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot be read as an array of numbers"):
        open_rows(path, 0)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="cannot be read as an array of numbers"):
        open_rows(path, 0)


def test_npy_that_promises_more_than_it_holds(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 500)})
    (tmp_path / "t.npy").write_bytes(header.getvalue() + bytes(800))
    with pytest.raises(ValueError, match="cannot be read"):
        open_rows(tmp_path / "t.npy", 0)
    np.save(tmp_path / "t.npy", np.zeros((3, 3, 3)))
    with pytest.raises(ValueError, match=r"shape \(3, 3, 3\); a table"):
        open_rows(tmp_path / "t.npy", 0)


def test_parquet_with_nulls_and_text(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1, None, 3], "b": ["u", "v", "w"], "y": [1.0, 2.0, 3.0]}), path)
    with pytest.raises(ValueError, match="row 1, column 'a': the cell is empty"):
        read(path, columns=["a"])
    rows = open_rows(path, "y", missing="drop")
    assert rows.names == ("a", "b=v", "b=w")


def test_the_index_of_a_frame_is_a_column_if_it_has_a_name_or_holds_dates(tmp_path):
    frame = pd.DataFrame({"x": np.arange(6.0) ** 2, "z": np.arange(6.0) ** 3, "y": np.arange(6.0)})
    days = pd.date_range("2024-01-01", periods=6)
    given = {"filtered": frame[frame.x != 4], "named": frame.set_index("z"), "dates": frame.set_index(days)}
    names = {"filtered": ["x", "z", "y"], "named": ["x", "y", "z"], "dates": ["x", "z", "y", "index"]}
    for kind, one in given.items():
        one.to_parquet(path := tmp_path / f"{kind}.parquet")
        table = open_table(path)
        assert table.names == names[kind]
        (read_again,) = table.frames(10, ["x", "y"])
        np.testing.assert_array_equal(read_again, one[["x", "y"]].to_numpy())
        assert bool(table.remarks) == (kind == "filtered")


def test_zarr_arrays_must_fit_together(tmp_path):
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("a", data=np.zeros(5))
    group.create_array("y", data=np.zeros(6))
    with pytest.raises(ValueError, match=r"equally many rows; found \[5, 6\]"):
        open_rows(tmp_path / "g.zarr", "y")
    zarr.create_array(tmp_path / "t.zarr", data=np.zeros((10_000, 4)), chunks=(10_000, 4))
    with pytest.raises(ValueError, match="smaller chunks"):
        open_rows(tmp_path / "t.zarr", 0, memory=100_000)


# Memory ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["", "much", "-1 GB", "1.5.2 GB", "3 PB", 0, -5, 1.5, True])
def test_memory_that_is_not_understood(memory):
    with pytest.raises(ValueError, match="memory"):
        bytes_of(memory)


def test_too_little_memory_says_how_much_is_needed(tmp_path):
    np.save(tmp_path / "t.npy", np.zeros((10, 100)))
    with pytest.raises(ValueError, match=r"too little; [0-9]+ are needed") as caught:
        open_rows(tmp_path / "t.npy", 0, memory=300_000)
    needed = int(str(caught.value).split("too little; ")[1].split()[0])
    assert open_rows(tmp_path / "t.npy", 0, memory=needed).rows_per_block == 1


PEAK = """
import sys
from pathlib import Path
from ardea import ARD
from ardea.tables.rows import open_rows

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))

ARD().fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 4.1])
for path in sys.argv[1:]:
    next(open_rows(path, -1, memory="24 MB").blocks())
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    ARD().fit(open_rows(path, -1, memory="40 MB").compressed(), None)
    print(status("VmHWM") - before)
"""


def test_memory_stays_within_the_bound(tmp_path):
    """Tables of 80 MB (csv: 15 MB of text) in 40 MB: peak of resident memory above the start, in its own process."""
    table = np.random.default_rng(0).normal(size=(1_000_000, 10)).round(8)
    paths = [tmp_path / f"t.{ending}" for ending in ("npy", "parquet", "csv", "zarr")]
    np.save(paths[0], table)
    columns = pa.table({f"x{j}": table[:, j] for j in range(10)})
    parquet.write_table(columns, paths[1], row_group_size=len(table), use_dictionary=False, compression="none")
    pd.DataFrame(table[:120_000]).to_csv(paths[2], index=False)
    zarr.create_array(paths[3], data=table, chunks=(50_000, 10), compressors=None)
    command = [sys.executable, "-W", "ignore", "-c", PEAK, *map(str, paths)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    for path, extra in zip(paths, told, strict=True):
        assert float(extra) < 40e6 / 2**20, path.suffix


# Tables as laboratories write them


def test_gaps_in_time_end_a_series(tmp_path):
    """By the column of dates or times, used or not; a shuffled table and uneven steps are told of."""
    days = [f"2024-01-{day:02d}" for day in range(1, 29) if day not in (10, 11, 20)]

    def read(dates):
        path = tmp_path / "t.csv"
        path.write_text("date,a,y\n" + "".join(f"{day},{j},{j % 3}\n" for j, day in enumerate(dates)), encoding="utf-8")
        rows = open_rows(path, "y", columns=["a"])
        rows.arrays()
        return rows.groups(None, series=True), " ".join(rows.remarks)

    groups, said = read(days)
    assert [len(list(part)) for _, part in itertools.groupby(groups)] == [9, 8, 8]
    assert "'date' has 2 gaps" in said
    groups, said = read(days[::-1])
    assert groups is None
    assert "order of time" in said
    groups, said = read([day for j, day in enumerate(days) if j % 5])
    assert groups is None
    assert "steps of 'date' are uneven" in said
    assert read(days[:9]) == (None, "")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["2024-03-31T10:00+01:00", "2024-03-31T10:30"], "names its time zone and 2024-03-31T10:30 does not"),
        (["0.0 s", "0.1 min"], "has a unit"),
        (["12:00", "noon"], "time of day, and others are none"),
    ],
)
def test_times_that_cannot_be_told_say_why(tmp_path, cells, message):
    path = tmp_path / "t.csv"
    path.write_text("t,x\n" + "".join(f"{cell},1.5\n" for cell in cells), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_series(path, Choice("t"))


def test_rows_left_out_end_a_series(tmp_path):
    """Of their own label only; where nothing is left out, or rows are no series, labels stay as they are."""
    path = tmp_path / "t.csv"
    path.write_text("a,who,y\n1,p,1\n2,q,2\n,p,3\n3,q,4\n4,p,5\n5,q,6\n", encoding="utf-8")
    rows = open_rows(path, "y", columns=["a"], missing="drop")
    rows.arrays()
    assert rows.groups(None, series=False) is None
    assert rows.groups("who", series=False).tolist() == ["p", "q", "q", "p", "q"]
    together = rows.groups(None, series=True)
    assert [len(set(part)) for part in (together[:2], together[2:], together)] == [1, 1, 2]
    p, q = rows.groups("who", series=True)[[0, 3]], rows.groups("who", series=True)[[1, 2, 4]]
    assert (len(set(p)), len(set(q))) == (2, 1)
    assert any("ends a series" in remark for remark in rows.remarks)
    whole = open_rows(path, "y", columns=["who"], missing="drop")
    whole.arrays()
    assert whole.groups(None, series=True) is None


GAPPED = "a,b,y\n1,2,3\n,5,6\n7,NA,9\n10,11,12\n13,14,nan\n16,17,18\n"


@pytest.mark.parametrize("memory", ["1 GB", 1500])
def test_rows_with_gaps_are_left_out_and_counted(tmp_path, memory):
    path = tmp_path / "t.csv"
    path.write_text(GAPPED, encoding="utf-8")
    rows = open_rows(path, "y", memory=memory, missing="drop")
    assert (rows.rows_per_block < 6) == (memory != "1 GB")
    for _ in range(2):  # reading again counts again, from zero
        blocks = list(rows.blocks())
        table = np.vstack([np.column_stack(block) for block in blocks])
        np.testing.assert_array_equal(table, [[1, 2, 3], [10, 11, 12], [16, 17, 18]])
        assert (rows.n_read, rows.n_left_out, rows.gaps) == (6, 3, {"a": 1, "b": 1, "y": 1})
    only_b = open_rows(path, "b", columns=["a"], missing="drop")
    assert sum(len(X) for X, _ in only_b.blocks()) == 4  # a gap in a column that is not used does no harm
    path.write_text("a,y\n,1\n2,\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"every row has empty cells, most of them in 'a' \(1\), 'y' \(1\)"):
        list(open_rows(path, "y", missing="drop").blocks())
    with pytest.raises(ValueError, match="missing='fill' is not known"):
        open_rows(path, "y", missing="fill")


def test_gaps_of_arrays_are_left_out_but_infinities_are_not(tmp_path):
    table = np.arange(12.0).reshape(4, 3)
    table[1, 0] = np.nan
    np.save(tmp_path / "t.npy", table)
    ((X, y),) = open_rows(tmp_path / "t.npy", -1, missing="drop").blocks()
    np.testing.assert_array_equal(np.column_stack([X, y]), table[[0, 2, 3]])
    table[2, 1] = np.inf
    np.save(tmp_path / "t.npy", table)
    with pytest.raises(ValueError, match="row 2, column 'x1': inf is not a finite number"):
        list(open_rows(tmp_path / "t.npy", -1, missing="drop").blocks())


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("gap", [True, False])
def test_decimal_commas_are_found(tmp_path, separator, header, gap):
    table = np.random.default_rng(0).normal(size=(30, 4)).round(3)
    lines = [separator.join(f"{value:.3f}" for value in row).replace(".", ",") for row in table]
    if gap:
        lines.append(separator.join(["", "1,5", "2", "3,25"]))
    names = [separator.join(["a, in s", "b", "c", "y"])] if header else []
    path = tmp_path / "t.csv"
    path.write_text("\n".join([*names, *lines]), encoding="utf-8")
    ((X, y),) = open_rows(path, -1, missing="drop").blocks()
    np.testing.assert_array_equal(np.column_stack([X, y]), table)


def cells_of(path, **settings):
    """Return all cells of a table of numbers, gaps as NaN."""
    every = [joined_names(open_table(path, **settings).names)]
    return read_series(path, Choice(states=every), **settings).x


def test_decimals_can_be_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;y\n1,5;2\n1.234,5;3\n2,5;4\n", encoding="utf-8")
    np.testing.assert_array_equal(cells_of(path)[:, 0], [1.5, 1234.5, 2.5])
    path.write_text("a;y\n1,5;2\n2,5;4\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2, column 'a': '1,5' is not a number"):
        list(open_rows(path, "y", decimal=".").blocks())
    path.write_text("a,y\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="cannot stand before decimals"):
        open_rows(path, "y", decimal=",")


@pytest.mark.parametrize(
    ("column", "numbers", "said"),
    [
        (["12,345", "999", "1,000"], [12345, 999, 1000], "group thousands"),
        (["12,345", "999,5"], [12.345, 999.5], "stand before decimals"),
        (["12,345", "1999"], [12.345, 1999], "stand before decimals"),  # 1999 would be written 1,999
        (["1,234,567", "12,345"], [1234567, 12345], "group thousands"),
        (["12,345", "0,5"], [12.345, 0.5], "stand before decimals"),
        (["12,345", "7.5"], [12345, 7.5], "group thousands"),
        (["1.234,5", "2.345.678"], [1234.5, 2345678], "stand before decimals"),
    ],
)
def test_commas_are_decided_by_the_whole_column(tmp_path, column, numbers, said):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["n;a", *(f"{i};{cell}" for i, cell in enumerate(column))]), encoding="utf-8")
    series = read_series(path, Choice())
    np.testing.assert_array_equal(series.x[:, 1], numbers)
    # Where the first rows leave no doubt the parser is told at once.
    assert any(said in one for one in series.remarks) or all("," not in cell or "." not in cell for cell in column)
    rows = open_rows(path, "n")
    np.testing.assert_array_equal(rows.arrays()[0][:, 0], numbers)


def test_commas_far_down_decide_too(tmp_path):
    """The first thousand rows could be either; one row far below can not."""
    path = tmp_path / "t.csv"
    path.write_text("n;a\n" + "1;12,345\n" * 1000 + "2;7,5\n", encoding="utf-8")
    assert cells_of(path)[0, 1] == 12.345
    path.write_text("n;a\n" + "1;12,345\n" * 1000 + "2;1,234,567\n", encoding="utf-8")
    assert cells_of(path)[0, 1] == 12345


def test_commas_that_come_after_the_first_block_are_refused_where_nobody_looked(tmp_path):
    """Blocks of numbers are read once: a notation that appears later is an error, never a guess."""
    path = tmp_path / "t.csv"
    path.write_text("n;a\n" + "1;12\n" * 3000 + "2;12,345\n", encoding="utf-8")
    rows = open_rows(path, "n", memory=20_000)
    with pytest.raises(TableError, match="line 3002, column 'a': '12,345'"):
        list(rows.blocks())
    ((X, _),) = open_rows(path, "n").blocks()
    assert X[-1, 0] == 12345


# Rows of empty cells, separators, headers, units, comments


def test_rows_of_empty_cells_stay_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n,\n3,4\n\n5,6\n", encoding="utf-8")
    np.testing.assert_array_equal(cells_of(path), [[1, 2], [np.nan, np.nan], [3, 4], [5, 6]])
    path.write_text("n\n1\n\n3\nNA\n5\n\n\n", encoding="utf-8")  # of one column, a blank line is an empty cell
    np.testing.assert_array_equal(cells_of(path).ravel(), [1, np.nan, 3, np.nan, 5])
    path.write_bytes(b"n\r\n1\r\n\r\n3\r\n")
    np.testing.assert_array_equal(cells_of(path).ravel(), [1, np.nan, 3])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " ", "   "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends(tmp_path, separator, end):
    path = tmp_path / "t.txt"
    lines = [separator.join(row) for row in (["a", "b", "c"], ["1", "2.5", "3"], ["4", "5", "nan"])]
    path.write_bytes(end.join([*lines, ""]).encode())
    np.testing.assert_array_equal(cells_of(path), [[1, 2.5, 3], [4, 5, np.nan]])


def test_rows_that_end_in_a_separator(tmp_path):
    for text in ("a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4,\n", "1.5,2,\n3,4,\n"):
        path = text_file(tmp_path, text)
        assert cells_of(path).shape[1] == 2
        assert any("ends in a separator" in one for one in open_table(path).remarks)


@pytest.mark.parametrize(
    ("text", "header", "names", "rows"),
    [
        ("2019,2020\n1.5,2.5\n3.5,4.5\n", "auto", ["2019", "2020"], 2),  # no other number is whole
        ("0,1,2\n1.5,2.5,0.5\n", "auto", ["0", "1", "2"], 1),
        ("0,1\n0.5,0.9\n1.5,0.1\n", "auto", ["x0", "x1"], 3),  # may be the first values of a series
        ("2019,2020\n1,2\n3,4\n", "auto", ["x0", "x1"], 3),
        ("2019,2020\n1,2\n3,4\n", "yes", ["2019", "2020"], 2),
        ("2019,2020\n1.5,2.5\n", "no", ["x0", "x1"], 2),
        ("1,NA\n2,3\n", "auto", ["x0", "x1"], 2),
        ("n,1\n2,3\n", "auto", ["n", "1"], 1),
    ],
)
def test_headers_of_numbers(tmp_path, text, header, names, rows):
    table = open_table(text_file(tmp_path, text), header=header)
    assert table.names == names
    assert table.headed == (names[0] != "x0")
    assert sum(len(frame) for frame in table.frames(100, names)) == rows
    if header == "auto" and text[0] in "02":
        assert any("first row" in one and "--header" in one for one in table.remarks)


def test_units_and_comments(tmp_path):
    path = text_file(tmp_path, "# made by hand\nt,v,m\ns,m/s,kg\n0,1,2\n# a break\n1,3,4\n")
    np.testing.assert_array_equal(cells_of(path), [[0, 1, 2], [1, 3, 4]])
    assert any("units" in one and "m/s" in one for one in open_table(path).remarks)
    assert "2 lines begin with # and were left out, such as '# made by hand'" in open_table(path).remarks
    # A column of texts has no unit, and a first row of texts is none.
    assert cells_of(text_file(tmp_path, "a,b\n1,2\n"), header="yes").shape == (1, 2)
    table = open_table(text_file(tmp_path, "who,what\nAnn,red\nBo,blue\n"))
    assert not table.remarks
    path = text_file(tmp_path, "Sample #,y\n1,2\n")
    assert open_table(path).names == ["Sample #", "y"]
    path = text_file(tmp_path, "# t x\n0 1\n1 2\n", "t.txt")  # as numpy.savetxt writes names
    assert open_table(path).names == ["t", "x"]
    assert open_table(path).remarks == ["names are taken from the comment before the rows"]
    np.testing.assert_array_equal(cells_of(path), [[0, 1], [1, 2]])


def test_missing_tokens(tmp_path):
    usual = ["", "NA", "N/A", "nan", "NaN", "NULL", "-", "?", "None"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b", "1,2", *(f"{one},3" for one in usual)]), encoding="utf-8")
    assert np.isnan(cells_of(path)[1:, 0]).all()
    path.write_text("a,b\n1,2\n-999,3\nkaputt,4\n5,6\n", encoding="utf-8")
    np.testing.assert_array_equal(cells_of(path, na=("-999", "kaputt"))[:, 0], [1, np.nan, np.nan, 5])


def test_names_that_cannot_stay(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'a,a,,"x\x1b[31m","Temp\n(K)",y\n1,2,3,4,5,6\n')
    table = open_table(path)
    assert table.names == ["a#1", "a#2", "x2", "x\\x1b[31m", "Temp (K)", "y"]
    assert table.remarks
    np.testing.assert_array_equal(cells_of(path), [[1, 2, 3, 4, 5, 6]])


def test_a_hundred_thousand_columns_are_named(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"gene {j}" for j in range(100_000)]
    path.write_text(",".join(names) + "\n" + ",".join(["1.5"] * len(names)) + "\n", encoding="utf-8")
    assert open_table(path).names == names


def test_quoted_cells_with_line_breaks_and_separators(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,note,y\n1,"one\ntwo, three",2\n3,"x ""y"" z",4\n5,plain,\n', encoding="utf-8")
    rows = open_rows(path, "y", columns=["a"], missing="drop")
    np.testing.assert_array_equal(rows.arrays()[0].ravel(), [1, 3])
    with pytest.raises(TableError, match="line 5, column 'y': the cell is empty"):
        read(path, columns=["a"])  # the row begins in line 5: the first takes two


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_packed_text(tmp_path, ending):
    path = tmp_path / f"t.csv{ending}"
    pd.DataFrame({"a": [1.5, 2.0], "b": [3.0, 4.0]}).to_csv(path, index=False)
    np.testing.assert_array_equal(cells_of(path), [[1.5, 3], [2, 4]])


def test_pipes_are_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    text = "a,b,y\n" + "1,2,3\n4,5,6\n" * 50_000

    def through_pipe(use):
        writer = threading.Thread(target=lambda: path.write_text(text, encoding="utf-8"))
        writer.start()
        try:
            return use()
        finally:
            writer.join()

    rows = through_pipe(lambda: open_rows(path, "y"))
    assert rows.arrays()[0].shape == (100_000, 2)
    with pytest.raises(ValueError, match="only once"):
        rows.arrays()
    model = through_pipe(lambda: open_rows(path, "y", memory="2 MB").compressed())  # more than fits, read on
    assert model.shape == (100_000, 2)
    text = text.replace("4", "x")
    with pytest.raises(ValueError, match="is a pipe with more rows of text"):
        through_pipe(lambda: open_rows(path, "y", memory="2 MB"))


def test_all_problems_are_listed(tmp_path):
    lines = [f"{i},{i + 0.5},{2 * i}" for i in range(40)]
    lines[3], lines[7], lines[20], lines[30] = "3,oops,6", "7,7.5", "20,20.5,40,50", "30,what,60"
    path = text_file(tmp_path, "\n".join(["a,b,y", *lines]))
    with pytest.raises(TableError) as caught:
        read(path)
    text = str(caught.value)
    assert "line 5, column 'b': 'oops' is not a number" in text
    assert "line 9: 2 columns, but the first line has 3" in text
    assert "line 22: 4 columns" in text
    assert "line 32, column 'b': 'what'" in text
    path = text_file(tmp_path, "\n".join(["a,y", *("x,1" if i % 3 == 0 else "2,1" for i in range(99))]))
    with pytest.raises(TableError, match="and more") as caught:
        read(path)
    assert str(caught.value).count("line ") == 10


# Texts and dates


def test_texts_are_encoded_against_the_first(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("colour,a,y\nred,1,1\nblue,2,2\n,3,3\ngreen,4,4\nred,5,5\n", encoding="utf-8")
    for memory in ("1 GB", 3000):
        rows = open_rows(path, "y", missing="drop", memory=memory)
        assert rows.names == ("colour=green", "colour=red", "a")
        assert rows.levels == {"colour": ["blue", "green", "red"]}
        X = np.vstack([X for X, _ in rows.blocks()])
        np.testing.assert_array_equal(X, [[0, 1, 1], [0, 0, 2], [1, 0, 4], [0, 1, 5]])
        assert rows.gaps == {"colour": 1}
    assert any("'colour' holds 3 texts" in one and "against 'blue'" in one for one in rows.remarks)
    with pytest.raises(TableError, match="holds texts, not numbers") as caught:
        open_rows(path, "y", categorical=[])
    assert caught.value.columns == ("colour",)
    codes = open_rows(path, "y", columns=["a"], categorical=["a"])
    assert codes.names == ("a=2", "a=3", "a=4", "a=5")


def test_columns_that_are_no_numbers_are_all_named(tmp_path):
    path = tmp_path / "t.csv"
    days = [f"2024-01-{i + 1:02},name {i},{i % 2},{i}" for i in range(30)]
    path.write_text("\n".join(["Date,Who,a,y", *days]), encoding="utf-8")
    with pytest.raises(TableError) as caught:
        open_rows(path, "y")
    assert "'Date' holds dates" in str(caught.value)
    assert "'Who' holds many different texts" in str(caught.value)
    assert caught.value.columns == ("Date", "Who")


def test_a_column_that_looks_like_dates_is_pointed_out(tmp_path):
    path = text_file(tmp_path, "day,y\n20240331,1\n20240401,2\n20240402,4\n")
    rows = open_rows(path, "y")
    rows.arrays()
    assert any("'day' looks like dates (20240331)" in one for one in rows.remarks)


@pytest.mark.parametrize(
    ("times", "hours"),
    [
        (["20240331", "20240401", "20240403"], [0, 24, 72]),
        (["2024-03-31", "2024-04-01", "2024-04-03"], [0, 24, 72]),
        (["2024-03-31T00:00Z", "2024-03-31T01:00Z", "2024-03-31T02:30Z"], [0, 1, 2.5]),
        (["2024-03-31 00:00:00", "2024-03-31 01:00:00", "2024-03-31 02:30:00"], [0, 1, 2.5]),
        # Across the change to summer time: what the clocks show goes back, what they mean does not.
        (["2024-03-31T01:30+01:00", "2024-03-31T03:30+02:00", "2024-03-31T04:30+02:00"], [0, 1, 2]),
    ],
)
def test_dates_as_times(tmp_path, times, hours):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["when,x", *(f"{t},{i}" for i, t in enumerate(times))]), encoding="utf-8")
    series = read_series(path, Choice(time="when"))
    assert series.t.dtype.kind == "M"
    np.testing.assert_array_equal((series.t - series.t[0]) / np.timedelta64(1, "h"), hours)


def test_the_order_of_day_and_month_is_that_which_suits_all_dates_or_their_succession(tmp_path):
    for dates in (["03/01/2021", "13/01/2021"], ["12.1.2021", "1.2.2021"], ["1-9-2021 12:00", "30-9-2021 00:00"]):
        series = read_series(text_file(tmp_path, "\n".join(["t,x", *(f"{one},1" for one in dates)])), Choice(time="t"))
        assert series.t[0] < series.t[1] < np.datetime64("2021-10-01")
        assert "was read as day, month, year" in series.remarks[0]
    american = read_series(text_file(tmp_path, "t,x\n01/03/2021,1\n01/13/2021,2\n"), Choice(time="t"))
    np.testing.assert_array_equal(american.t, np.array(["2021-01-03", "2021-01-13"], dtype="M8[s]"))
    with pytest.raises(ValueError, match="may be day, month, year"):
        read_series(text_file(tmp_path, "t,x\n01/03/2021,1\n02/03/2021,2\n"), Choice(time="t"))


def test_times_that_are_none_are_listed(tmp_path):
    path = text_file(tmp_path, "t,x\n0,1\nsoon,2\n,3\n3,4\n")
    with pytest.raises(TableError) as caught:
        read_series(path, Choice(time="t"))
    assert "line 3, column 't': 'soon' is neither a number nor a date" in str(caught.value)
    assert "line 4" in str(caught.value)


@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
def test_calendars_of_climate_models(tmp_path, calendar):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("cftime")
    times = xarray.date_range("2000-02-27", periods=4, calendar=calendar, use_cftime=True)
    path = tmp_path / "t.nc"
    xarray.Dataset({"u": ("time", [1.0, 2.0, np.nan, 4.0])}, {"time": times}).to_netcdf(path)
    series = read_series(path, Choice(time="time", states=["u"]))
    np.testing.assert_array_equal((series.t - series.t[0]) / np.timedelta64(1, "D"), [0, 1, 2, 3])
    np.testing.assert_array_equal(series.x.ravel(), [1, 2, np.nan, 4])


def test_encodings(tmp_path):
    path = tmp_path / "t.csv"
    text = "Temp (°C),y\n1,2\n3,4\n"
    for encoding, said in (("utf-8", ""), ("utf-8-sig", ""), ("cp1252", "cp1252"), ("utf-16", "UTF-16")):
        path.write_bytes(text.encode(encoding))
        rows = open_rows(path, "y")
        assert rows.names == ("Temp (°C)",)
        assert rows.arrays()[0].ravel().tolist() == [1, 3]
        assert [one for one in rows.remarks if said in one] == rows.remarks
        assert bool(rows.remarks) == bool(said)
    path.write_bytes(b"\x81\x8d,y\n1,2\n")
    with pytest.raises(ValueError, match="neither UTF-8 nor Windows-1252"):
        open_rows(path, "y")


# Marks in numbers that other columns decide


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("p;y\n1.775;17,7\n612;6,1\n2.000.000;1,5\n", [1775, 612, 2000000]),
        ("p;y\n100.444;17,7\n100.604;6,1\n", [100444, 100604]),
        ("p;y\n1.5;17,7\n2.775;6,1\n", [1.5, 2.775]),  # 1.5 is no thousand
        ("p;y\n1,775;17.7\n1,612;6.1\n", [1775, 1612]),
        ('p,y\n"1,775",17.7\n612,6.1\n', [1775, 612]),
        ("p;y\n1 775;17,7\n12 345,5;6,1\n7;1,5\n", [1775, 12345.5, 7]),
        ("p,y\n1\u202f775,17.7\n12\u00a0345.5,6.1\n", [1775, 12345.5]),
    ],
)
def test_marks_in_numbers_are_decided_by_the_file_and_said(tmp_path, text, numbers):
    rows = open_rows(text_file(tmp_path, text), "y")
    np.testing.assert_array_equal(rows.arrays()[0].ravel(), numbers)
    assert any("column 'p'" in one for one in rows.remarks) or numbers[0] == 1.5


def test_marks_that_stay_in_doubt_name_the_option(tmp_path):
    path = text_file(tmp_path, "p;y\n1.775;1\n3.100;3\n")
    rows = open_rows(path, "y")
    assert rows.arrays()[0][0, 0] == 1.775
    said = "in column 'p' stand before decimals ({} was read as 1.775); if not, give --decimal {}"
    assert "dots " + said.format("1.775", ",") in rows.remarks
    assert open_rows(path, "y", decimal=",").arrays()[0][0, 0] == 1775
    path = text_file(tmp_path, "p;y\n1,775;1\n3,100;3\n")
    rows = open_rows(path, "y")
    assert "commas " + said.format("1,775", ".") in rows.remarks
    assert not open_rows(text_file(tmp_path, "p,y\n1.775,1\n3.100,3\n"), "y").remarks  # commas separate


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("decides", [True, False])
def test_a_slip_among_thousands_does_not_turn_the_mark_of_a_file(tmp_path, separator, mark, decides):
    if mark == "," and not decides:
        return  # 5.774 is a decimal then, which the remarks say
    rng = np.random.default_rng(7)
    a, y = rng.integers(600, 20000, (2, 70))
    texts = [[f"{value:,}" for value in column] for column in (a, y)]
    texts[1][8] = "19,0770"
    texts += [[f"{value:.1f}" for value in rng.uniform(1, 9, 70)]] if decides else []
    lines = [["a", "y", "d"][: len(texts)], *map(list, zip(*texts, strict=True))]
    swapped = str.maketrans(",.", ".,") if mark == "," else {}
    text = "".join(separator.join(f'"{cell.translate(swapped)}"' for cell in line) + "\n" for line in lines)
    path = text_file(tmp_path, text)
    slip = "19,0770".translate(swapped)
    with pytest.raises(
        TableError, match=f"line 10, column 'y': '{slip}' is not a number, as commas .* correct it"
    ) as one:
        open_rows(path, "y").arrays()
    assert one.value.tokens == (slip,)
    rows = open_rows(path, "y", na=[slip], missing="drop")
    np.testing.assert_array_equal(rows.arrays()[1], np.delete(y, 8))


def test_the_mark_that_a_column_far_below_shows_is_said(tmp_path):
    text = "a;y\n" + "".join(f"{5 + row},774;{row}\n" for row in range(150)) + "7,5;8\n8,25;3\n9,1;2\n"
    rows = open_rows(text_file(tmp_path, text), "y")
    assert rows.arrays()[0][0, 0] == 5.774
    assert "commas in column 'a' stand before decimals" in rows.remarks


def test_a_first_row_of_minus_signs_is_data(tmp_path):
    path = text_file(tmp_path, "\u22121,\u22122\n\u22123,4\n")
    np.testing.assert_array_equal(cells_of(path), [[-1, -2], [-3, 4]])
    assert not open_table(path).headed


def test_a_point_before_an_exponent_groups_no_thousands(tmp_path):
    path = text_file(tmp_path, "a;y\n1.234e+01;1,5\n2.345e+01;2,5\n")
    with pytest.raises(TableError, match=r"line 2, column 'a': '1\.234e\+01' is not a number"):
        open_rows(path, "y", decimal=",").arrays()


def test_a_category_that_is_not_there_is_named(tmp_path):
    path = text_file(tmp_path, "a,y\n1,2\n3,4\n")
    with pytest.raises(ValueError, match=r"no column 'colour'\. There are a, y"):
        open_rows(path, "y", categorical=["colour"])


def test_a_file_of_separators_alone(tmp_path):
    assert open_table(text_file(tmp_path, ";\n;\n;\n"), header="yes").names == ["x0"]


def test_a_name_of_two_columns_means_neither(tmp_path):
    path = text_file(tmp_path, "a,y,y\n1,2,3\n4,5,7\n")
    for wrong in ({"target": "y"}, {"target": "a", "columns": ["y"]}):
        with pytest.raises(ValueError, match=r"no column 'y'. Did you mean 'y#1' or 'y#2'\?"):
            open_rows(path, **wrong)
    assert open_rows(path, 2).names == ("a", "y#1")
    assert open_rows(path, "a").names == ("y#1", "y#2")
    assert "column 2 (counted from 0) is named 'y#2' in place of 'y'" in open_table(path).remarks


def test_dates_as_people_write_them(tmp_path):
    """With slashes, the year first or last, one digit or two, halves of the day, or parts of a second."""
    written = [
        ["2024/04/03", "2024/04/04", "2024/04/15"],
        ["2024/4/3", "2024/4/4", "2024/4/15"],
        ["03/04/2024", "04/04/2024", "15/04/2024"],
        ["4/3/2024", "4/4/2024", "4/15/2024"],
        ["2024-04-03T00:00:00.000000", "2024-04-04T00:00:00.000000", "2024-04-15T00:00:00.000000"],
        ["4/3/2024 12:00 AM", "4/4/2024 12:00 AM", "4/15/2024 12:00 AM"],
    ]
    for dates in written:
        path = text_file(tmp_path, "when,x\n" + "".join(f"{one},{i}\n" for i, one in enumerate(dates)))
        series = read_series(path, Choice("when"))
        np.testing.assert_array_equal(series.t, np.array(["2024-04-03", "2024-04-04", "2024-04-15"], "M8[us]"))
        with pytest.raises(ValueError, match="column 'when' holds dates, not numbers"):
            open_rows(path, "x", categorical=[])
    path = text_file(tmp_path, "when,x\n2024/04/03 7:05,1\n2024/04/03 1:05:00.5 PM,2\n")
    assert np.diff(read_series(path, Choice("when")).t)[0] == np.timedelta64(21_600_500, "ms")


def test_what_was_inferred_is_said(tmp_path):
    def said(text, **settings):
        rows = open_rows(text_file(tmp_path, text), -1, missing="drop", **settings)
        rows.arrays()
        return "; ".join(rows.remarks)

    assert "separated by semicolons; commas stand before decimals" in said("a;y\n1,5;2\n2,5;4\n")
    assert "no header was found: columns are named x0, x1" in said("1.5,2\n2.5,4\n")
    assert "true and false in column 'a' were read as 1 and 0" in said("a,y\ntrue,2\nfalse,4\n")
    assert "the same in every row, so that nothing can be said of it: a" in said("a,b,y\n7,1,2\n7,2,4\n")
    assert "'NA' was taken as empty (1 cell; --na none: not)" in said("a,y\nEU,2\nNA,4\nUS,3\n")
    assert "encoded as a=NA, a=US" in said("a,y\nEU,2\nNA,4\nUS,3\n", na=["none"])
    assert "column 't' looks like dates (2024033105)" in said("t,y\n2024033105,2\n2024033106,4\n")
    assert not said("a,y\n1,2\n2,4\n")


def test_a_column_without_any_value_is_left_out(tmp_path):
    path = text_file(tmp_path, "a,b,y\n1,,2\n2,NA,4\n,,5\n")
    rows = open_rows(path, "y", missing="drop")
    np.testing.assert_array_equal(rows.arrays()[0], [[1], [2]])
    assert "column 'b' is empty in every row and was left out" in rows.remarks
    with pytest.raises(TableError, match="'when' holds dates"):
        open_rows(text_file(tmp_path, "when,y\n31.01.2024,1\n1.2.2024,2\n"), "y")


def test_sheets_are_chosen_by_name_or_number(tmp_path):
    path = tmp_path / "t.xlsx"
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"note": ["read me"]}).to_excel(book, sheet_name="about", index=False)
        pd.DataFrame({"a": [1, 2], "y": [3, 5]}).to_excel(book, sheet_name="data", index=False)
    for sheet in ("data", "1"):
        np.testing.assert_array_equal(cells_of(path, sheet=sheet), [[1, 3], [2, 5]])
    with pytest.raises(ValueError, match="no sheet 'date': there are about, data"):
        open_table(path, sheet="date")
    with pytest.raises(ValueError, match=r"no column 'y'.*Other sheets \(--sheet\) are data"):
        open_rows(path, "y")
    with pytest.raises(ValueError, match="is no spreadsheet"):
        open_table(text_file(tmp_path, "a,y\n1,2\n"), sheet="1")


def test_a_column_may_be_called_by_the_sign_of_comments(tmp_path):
    path = text_file(tmp_path, "#,a,y\n7,2,3\n9,4,5\n8,6,7\n")
    assert open_table(path).names == ["#", "a", "y"]
    with pytest.raises(ValueError, match=r"all its lines begin with #.*put names above"):
        open_table(text_file(tmp_path, "#1,2\n#2,3\n"))
