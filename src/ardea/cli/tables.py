"""Tables and arrays for `discover`: columns with gaps, dates as times, arrays on named axes.

Tables larger than memory are the business of :mod:`ardea.readers`.
"""

from __future__ import annotations

import csv
import gzip
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ardea.cli.console import Failure, named
from ardea.core.memory import require
from ardea.core.problem import Array
from ardea.readers import (
    LONGEST_LINE,
    MISSING,
    NPY_DAMAGE,
    TextFormat,
    open_text,
    refuse_kind,
    text_format,
    zarr_arrays,
)

TEXT, ARRAYS = (".csv", ".tsv", ".txt", ".dat"), (".npz", ".nc", ".nc4", ".cdf", ".zarr")
KNOWN = (*TEXT, ".npy", ".parquet", ".pq", *ARRAYS)
# A table takes about so many times its size as text when it is read at once.
EXPANSION = 8
IN_PARTS = "Give a part of it, or a table that can be read in blocks (CSV, NPY, Parquet)."


def suffix_of(path: Path) -> str:
    """Return the ending that tells the kind of a file; .csv for .csv.gz."""
    if not path.exists():
        raise Failure(f"There is no file {path}.")
    if path.suffix.lower() not in (*ARRAYS, ".parquet") and not (path.is_dir() and any(path.glob("*.parquet"))):
        refuse_kind(path)
    ending = path.suffixes[-2] if path.suffix == ".gz" and len(path.suffixes) > 1 else path.suffix
    return ending.lower()


@dataclass(frozen=True)
class Columns:
    """Named columns of a table, of numbers or of text as read.

    Attributes
    ----------
    path : Path
        The file, for messages.
    values : dict of str to ndarray
        The columns.
    lines : ndarray of int, optional
        Number of every row's line in a text file.
    written : TextFormat, optional
        How a text file is written.
    """

    path: Path
    values: dict[str, NDArray[Any]]
    lines: NDArray[np.int_] | None = None
    written: TextFormat | None = None

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column by name, or by number where no column bears it as a name."""
        return self.values[self.name(name)]

    def name(self, name: str) -> str:
        """Return the full name of a column given by name or number."""
        return named(name, list(self.values), f"{self.path} has no column")

    def numbers(self, name: str) -> Array:
        """Return a column as numbers; empty fields are gaps (NaN)."""
        column = self[name]
        if column.dtype.kind in "fiub":
            return column.astype(float)
        return np.array([self._number(name, row, entry) for row, entry in enumerate(column)], dtype=float)

    def times(self, name: str) -> NDArray[Any]:
        """Return a column as times: numbers, or dates."""
        column = self[name]
        if column.dtype.kind != "M":
            try:
                return self.numbers(name)
            except Failure:
                column = self._dates(name)
        return column

    def _dates(self, name: str) -> NDArray[Any]:
        entries = self[name]
        try:
            return np.array([str(entry).removesuffix("Z") for entry in entries], dtype="datetime64[us]")
        except ValueError:
            for row, entry in enumerate(entries):
                self._number(name, row, entry, "neither a number nor a date such as 2024-05-31 or 2024-05-31T12:00")
            raise

    def _number(self, name: str, row: int, entry: Any, trouble: str = "not a number") -> float:
        value = self._value(entry)
        if value is None:
            raise Failure(f"{self.path}, {self.place(row)}, column {self.name(name)!r}: {str(entry)!r} is {trouble}.")
        return value

    def _value(self, entry: Any) -> float | None:
        """Return a number, NaN for a gap, None for what is neither."""
        if self.written is not None:
            return self.written.number(str(entry))
        try:
            return np.nan if str(entry).strip().lower() in MISSING else float(entry)
        except (TypeError, ValueError):
            return None

    def texts(self, names: Iterable[str]) -> list[str]:
        """Return those of some columns that hold more text than numbers."""
        return [name for name in names if self._mostly_text(self.values[name])]

    def _mostly_text(self, column: NDArray[Any]) -> bool:
        if column.dtype.kind in "fiub":
            return False
        values = [self._value(entry) for entry in column]
        balance = sum(1 if value is None else -int(not np.isnan(value)) for value in values)
        return balance > 1  # one cell may be a slip

    def place(self, row: int) -> str:
        """Return how a row is called in messages."""
        return f"row {row}" if self.lines is None else f"line {self.lines[row]}"


def read_columns(path: Path, memory: int, decimal: str | None = None) -> Columns:
    """Read a whole table: CSV and other text, NPY, or Parquet (extra `frames`)."""
    suffix = suffix_of(path)
    if suffix in TEXT:
        return _read_text(path, memory, decimal)
    if suffix == ".npy":
        table = _loaded(path)
        if isinstance(table, dict):
            raise Failure(f"{path} is an archive of arrays: let its name end in .npz.")
        if table.ndim not in (1, 2) or table.dtype.kind not in "fiub" or not table.size:
            raise Failure(f"{path} holds {table.dtype} of shape {table.shape}; a table of numbers is needed.")
        return Columns(path, {f"x{j}": column for j, column in enumerate(table.reshape(len(table), -1).T)})
    if suffix in (".parquet", ".pq"):
        return _read_parquet(path)
    raise Failure(f"{path}: the ending {suffix!r} is not known. Read are {', '.join(KNOWN)}, and .csv.gz.")


def _read_text(path: Path, memory: int, decimal: str | None) -> Columns:
    written = text_format(path, decimal)
    rows = list(_rows(path, memory // EXPANSION, written))
    if not rows:
        raise Failure(f"{path} is empty.")
    _, first = rows[0]
    headed = not all(written.is_number(field) for field in first)
    names = first if headed else [f"x{j}" for j in range(len(first))]
    body = rows[1:] if headed else rows
    if len(set(names)) < len(names):
        raise Failure(f"{path}: column names appear twice in the first line.")
    if not body:
        raise Failure(f"{path} has no rows.")
    for line, fields in body:
        if len(fields) != len(names):
            raise Failure(f"{path}, line {line}: {len(fields)} columns, but the first line has {len(names)}.")
    table = np.array([fields for _, fields in body], dtype=object)
    lines = np.array([line for line, _ in body])
    return Columns(path, {name: table[:, j] for j, name in enumerate(names)}, lines, written)


def _within(file: IO[str], most: int, path: Path) -> Iterator[str]:
    """Yield lines until there are more letters than memory allows: a small packed file may hold any number."""
    left = most
    while line := file.readline(min(left + 1, LONGEST_LINE)):
        left -= len(line)
        if left < 0 or len(line) == LONGEST_LINE:
            raise Failure(f"{path} unpacks to more than fits into --memory: raise it, or give the file unpacked.")
        yield line


def _rows(path: Path, most: int, written: TextFormat) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of every line that is not empty."""
    try:
        with open_text(path, written.encoding, newline="") as file:
            lines = _within(file, most, path)
            if written.separator is not None:
                reader = csv.reader(lines, delimiter=written.separator)
                pairs = ((reader.line_num, [field.strip() for field in row]) for row in reader)
            else:
                pairs = ((number, line.split()) for number, line in enumerate(lines, 1))
            yield from ((number, row) for number, row in pairs if any(row))
    except (UnicodeDecodeError, csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Failure(f"{path} cannot be read as text: {error}") from error


def _read_parquet(path: Path) -> Columns:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'ardea[frames]'.") from error
    try:
        if path.is_file():
            metadata = parquet.read_metadata(path)
            require(8 * metadata.num_rows * metadata.num_columns, f"{path} as a whole", IN_PARTS)
        table = parquet.read_table(path)
        return Columns(path, {name: table.column(name).to_numpy() for name in table.column_names})
    except (ArrowException, ArithmeticError, LookupError, OSError, TypeError, ValueError) as error:
        raise Failure(f"{path} cannot be read as Parquet: {error}") from error


def _loaded(path: Path) -> Any:
    """Return the array of an NPY file, or all arrays of an NPZ file by name; never unpickled."""
    with path.open("rb") as file:
        try:
            require(path.stat().st_size, f"{path} as a whole", IN_PARTS)
            content = np.load(file, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return content
            entries = content.zip.infolist()
            if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
                raise ValueError("it is not packed as NumPy does")
            # An entry never gives more bytes than the archive says it has.
            unpacked = sum(entry.file_size for entry in entries)
            require(unpacked, f"{path}, unpacked,", IN_PARTS)
            return {name: _numbers(content[name], name) for name in content.files}
        except NPY_DAMAGE as error:
            raise Failure(f"{path} cannot be read as arrays of numbers: {error}") from error


def _numbers(entry: Any, name: str) -> NDArray[Any]:
    if not isinstance(entry, np.ndarray):
        raise ValueError(f"the entry {name!r} is no array")
    if entry.ndim > 1 and not entry.size:
        raise ValueError(f"the entry {name!r} of shape {entry.shape} is empty")
    return entry


@dataclass(frozen=True)
class NamedArray:
    """An array, and the names of its axes where the file tells them."""

    values: NDArray[Any]
    axes: tuple[str, ...] | None = None


def read_arrays(path: Path) -> dict[str, NamedArray]:
    """Read named arrays: NPZ, or NetCDF and Zarr as xarray writes them (extra `fields`)."""
    if suffix_of(path) == ".npz":
        content = _loaded(path)
        if not isinstance(content, dict):
            raise Failure(f"{path} holds one array without a name; an NPZ archive is needed.")
        return {name: NamedArray(values) for name, values in content.items()}
    return _read_dataset(path)


def _read_dataset(path: Path) -> dict[str, NamedArray]:
    try:
        import xarray
    except ImportError as error:
        raise ImportError("NetCDF and Zarr need xarray: pip install 'ardea[fields]'.") from error
    if path.suffix.lower() == ".zarr":
        zarr_arrays(path)  # refuses what would run code
    engine: dict[str, Any] = {"engine": "zarr", "consolidated": False} if path.suffix.lower() == ".zarr" else {}
    try:
        with xarray.open_dataset(path, **engine) as data:
            return {
                str(name): NamedArray(np.asarray(one.values), tuple(map(str, one.dims)))
                for name, one in data.variables.items()
            }
    except Exception as error:  # the packages behind xarray raise errors of many kinds
        raise Failure(f"{path} cannot be read: {error}") from error
