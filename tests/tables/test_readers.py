"""Files larger than memory: every format gives the model of the rows in memory, and says what is wrong with a file."""

from __future__ import annotations

import gzip
import io
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zarr
from pyarrow import parquet

from ardea import ARD, ARDSearch, ARDvi, SparseARD
from ardea.readers import NotNumbersError, bytes_of, fit_file, open_rows

ROWS = 500
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
        blocks = list(rows.blocks())
        assert rows.n_rows in (None, ROWS)
        assert rows.n_blocks in (None, len(blocks))
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
    assert rows.target_names == ("y",)
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
        done, total = shown.rsplit("] ", 1)[1].split()[0].split("/")
        assert done == total


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
    with pytest.raises(ValueError, match="spreadsheet: save it as CSV"):
        open_rows(text_file(tmp_path, "", "t.xlsx"), 0)
    with pytest.raises(ValueError, match="empty"):
        open_rows(text_file(tmp_path, ""), 0)
    with pytest.raises(ValueError, match="no rows"):
        read(text_file(tmp_path, "a,y\n"))
    with pytest.raises(ValueError, match="appear twice"):
        open_rows(text_file(tmp_path, "a,a,y\n1,2,3\n"), "y")
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
    with pytest.raises(ValueError, match=r"cannot be read as Zarr|no array"):
        open_rows(tmp_path / "t.zarr", 0)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("ardea.readers.LONGEST_LINE", 1000)
    with pytest.raises(ValueError, match="a line is longer than 1000"):
        open_rows(text_file(tmp_path, "1," * 1000), 0)


def test_columns_that_are_not_there_or_asked_for_twice(tmp_path):
    path = text_file(tmp_path, "a,b,y\n1,2,3\n")
    with pytest.raises(ValueError, match="no column 'u'; its columns are a, b, y"):
        open_rows(path, "u")
    with pytest.raises(ValueError, match="3 columns, numbered from 0; got 3"):
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
    with pytest.raises(ValueError, match=r"columns 'b' \(string\) are not numbers"):
        read(path)
    with pytest.raises(ValueError, match="row 1, column 'a': the cell is empty"):
        read(path, columns=["a"])


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
    with pytest.raises(ValueError, match="too little; 329632 are needed"):
        open_rows(tmp_path / "t.npy", 0, memory=300_000)
    assert open_rows(tmp_path / "t.npy", 0, memory=329_632).rows_per_block == 1


@pytest.mark.parametrize("ending", ["npy", "parquet", "csv", "zarr"])
def test_memory_stays_within_the_bound(tmp_path, ending):
    """A table of 80 MB (csv: 15 MB of text) in 40 MB: peak of resident memory above the start, in its own process."""
    rows = 1_000_000 if ending != "csv" else 120_000
    path = tmp_path / f"t.{ending}"
    table = np.random.default_rng(0).normal(size=(rows, 10)).round(8)
    if ending == "npy":
        np.save(path, table)
    elif ending == "zarr":
        zarr.create_array(path, data=table, chunks=(50_000, 10), compressors=None)
    elif ending == "parquet":
        columns = {f"x{j}": table[:, j] for j in range(10)}
        parquet.write_table(pa.table(columns), path, row_group_size=rows, use_dictionary=False, compression="none")
    else:
        pd.DataFrame(table).to_csv(path, index=False)
    code = f"""
        import resource, sys
        from pathlib import Path
        from ardea import ARD
        from ardea.readers import fit_file, open_rows

        def status(field):
            lines = Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))

        ARD().fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 4.1])
        next(open_rows({str(path)!r}, -1, memory="24 MB").blocks())
        Path("/proc/self/clear_refs").write_text("5")
        before = status("VmRSS")
        fit_file(ARD(), {str(path)!r}, -1, memory="40 MB")
        print(status("VmHWM") - before)
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    extra = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert extra < 40e6 / 2**20


# Tables as laboratories write them


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


def test_decimals_can_be_forced_and_thousands_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;y\n1,5;2\n1.234,5;3\n2,5;4\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"line 3, column 'a': '1\.234,5' is not a number"):
        list(open_rows(path, "y").blocks())
    path.write_text("a;y\n1,5;2\n2,5;4\n", encoding="utf-8")
    with pytest.raises(ValueError, match="not numbers: a"):
        list(open_rows(path, "y", decimal=".").blocks())
    path.write_text("a,y\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="cannot stand before decimals"):
        open_rows(path, "y", decimal=",")


def test_text_columns_are_all_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Date,Operator,a,y\n2024-01-01,Ann,1,2\n2024-01-02,Bo,,3\n", encoding="utf-8")
    with pytest.raises(NotNumbersError, match="not numbers: Date, Operator") as caught:
        list(open_rows(path, "y").blocks())
    assert caught.value.names == ("Date", "Operator")


def test_encodings(tmp_path):
    path = tmp_path / "t.csv"
    text = "Temp (°C),y\n1,2\n3,4\n"
    for encoding, said in (("utf-8", False), ("utf-8-sig", False), ("cp1252", True)):
        path.write_bytes(text.encode(encoding))
        rows = open_rows(path, "y")
        assert rows.names == ("Temp (°C)",)
        assert any("cp1252" in one for one in rows.remarks) == said
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(ValueError, match="UTF-16"):
        open_rows(path, "y")
    path.write_bytes(b"\x81\x8d,y\n1,2\n")
    with pytest.raises(ValueError, match="neither UTF-8 nor Windows-1252"):
        open_rows(path, "y")
    with pytest.raises(ValueError, match="is a directory"):
        open_rows(tmp_path, "y")
