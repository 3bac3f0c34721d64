"""Tables larger than memory, read in blocks of rows: CSV, Parquet, NPY and Zarr.

`open_rows` says what is in a file and yields (X, y) in blocks that fit into a memory bound; `fit_file` compresses them
one after another and fits the result. Whatever the size of the file, memory holds one block, copies of it, and factors
of O(columns²).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import lzma
import math
import re
import struct
import tokenize
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ardea.core.compression import COMPRESSION_COLUMN_LIMIT, CompressedRows, Compression
from ardea.core.memory import require
from ardea.core.problem import Array
from ardea.progress import Progress

DEFAULT_MEMORY = "1 GB"
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
# A name as a string, in a list, beside its letters.
BYTES_PER_NAME = 80
LARGEST_NUMBER = 1e150
# More is as good as no bound.
MOST_MEMORY = 2**62
# A Python string costs this much beside its letters.
BYTES_PER_LINE = 120
# Blocks need not be larger: compression works on a megabyte at a time.
LARGEST_BLOCK = 256 * 2**20
# Arrow's usual page of a Parquet column, and how many of them it holds at a time.
ARROW_PAGE, ARROW_PAGES = 2**20, 2
# What a damaged NPY or NPZ file makes NumPy, and the modules it reads headers and archives with, raise.
NPY_DAMAGE = (
    zipfile.BadZipFile,
    tokenize.TokenError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,  # also RecursionError, and NotImplementedError for unknown compressions
    SyntaxError,
    TypeError,
    ValueError,
)
# A line of text longer than this is none.
LONGEST_LINE = 2**26
# What stands in cells that hold nothing.
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"}
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
# So much of a text is looked at before reading: bytes for its encoding, lines and letters for its separators.
ENCODING_CHUNK, ENCODING_CHUNKS = 2**18, 16
SAMPLE_LINES, SAMPLE_LETTERS = 100, 2**16
Missing = Literal["refuse", "drop"]


class CellError(ValueError):
    """A cell that is not a number.

    Attributes
    ----------
    column : str
        Where it stands.
    """

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


class NotNumbersError(ValueError):
    """Columns that hold something other than numbers.

    Attributes
    ----------
    names : tuple of str
        All such columns.
    """

    def __init__(self, message: str, names: Sequence[str]) -> None:
        super().__init__(message)
        self.names = tuple(names)


def open_rows(
    path: str | Path,
    target: str | int | Sequence[str | int],
    *,
    columns: Sequence[str | int] | None = None,
    memory: int | str = DEFAULT_MEMORY,
    missing: Missing = "refuse",
    decimal: str | None = None,
) -> RowFile:
    r"""Open a table for reading in blocks of rows.

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .tsv or .txt (also .gz of these), .parquet (or a folder of them), .npy or .zarr.
    target : str, int or a list of these
        Column to explain, by name or by number (from 0; −1 is the last).
    columns : list of str or int, optional
        Columns to explain it with; all others by default.
    memory : int or str, default="1 GB"
        Bound on the memory for blocks, in bytes or as text such as "500 MB".
    missing : {"refuse", "drop"}, default="refuse"
        Rows in which a cell in use is empty, NA or NaN are an error, or are left out.
    decimal : {".", ","}, optional
        What stands before the decimals in a text; found out by default.

    Returns
    -------
    RowFile
        With `names`, `n_rows` (None where only reading would tell), `n_blocks` and `blocks()`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "table.csv"
    >>> _ = path.write_text("a,b,y\n1,2,3\n4,5,6\n")
    >>> rows = open_rows(path, "y")
    >>> rows.names
    ('a', 'b')
    >>> next(rows.blocks())
    (array([[1., 2.],
           [4., 5.]]), array([3., 6.]))
    >>> folder.cleanup()
    """
    path = Path(path)
    bound = bytes_of(memory)
    if missing not in ("refuse", "drop"):
        raise ValueError(f"missing={missing!r} is not known: choose 'refuse' or 'drop'.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    kinds: dict[str, Any] = {".csv": CsvRows, ".tsv": CsvRows, ".txt": CsvRows, ".npy": NpyRows, ".zarr": ZarrRows}
    kinds |= {".parquet": ParquetRows, ".pq": ParquetRows}
    suffix = path.suffixes[-2] if path.suffix == ".gz" and len(path.suffixes) > 1 else path.suffix
    kind = kinds.get(suffix.lower())
    if kind is None and path.is_dir() and any(path.glob("*.parquet")):
        kind = ParquetRows
    if kind is None:
        refuse_kind(path)
        raise ValueError(f"{path}: the ending {suffix!r} is not known. Read are {', '.join(kinds)}, and .csv.gz.")
    if path.is_dir() and kind in (CsvRows, NpyRows):
        refuse_kind(path)
    rows: RowFile = kind(path, target, columns, bound, missing, decimal)
    return rows


def refuse_kind(path: Path) -> None:
    """Refuse folders and spreadsheets, with what to do instead."""
    if path.suffix.lower() in SPREADSHEETS:
        raise ValueError(f"{path} is a spreadsheet: save it as CSV.")
    if path.is_dir():
        raise ValueError(f"{path} is a directory, not a table: name a file in it.")


def fit_file(
    estimator: Any,
    path: str | Path,
    target: str | int | Sequence[str | int],
    *,
    columns: Sequence[str | int] | None = None,
    memory: int | str = DEFAULT_MEMORY,
    missing: Missing = "refuse",
    decimal: str | None = None,
    progress: bool | None = None,
) -> Any:
    """Fit an estimator, or an `ARDSearch` that does not resample, to all rows of a file larger than memory.

    Parameters
    ----------
    estimator : estimator of ardea
        What to fit; it is changed in place.
    path, target, columns, memory, missing, decimal
        As for `open_rows`.
    progress : bool, optional
        Whether to show progress on standard error; None: where that is a terminal.

    Returns
    -------
    estimator
        Fitted, with the file's column names.

    Examples
    --------
    >>> import tempfile
    >>> from ardea import SparseARD
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "rows.npy"
    >>> rows = np.random.default_rng(0).normal(size=(1000, 6))
    >>> rows[:, 5] = 2 * rows[:, 3] + 0.1 * rows[:, 5]
    >>> np.save(path, rows)
    >>> model = fit_file(SparseARD(false_terms=0.01), path, target=-1, memory="10 MB")
    >>> [str(name) for name in model.feature_names_in_[model.support_]]
    ['x3']
    >>> folder.cleanup()
    """
    rows = open_rows(path, target, columns=columns, memory=memory, missing=missing, decimal=decimal)
    return estimator.fit(rows.compressed(progress), None)


def bytes_of(memory: int | str) -> int:
    """Return a number of bytes given as text.

    Examples
    --------
    >>> bytes_of("1.5 GB"), bytes_of("2GiB"), bytes_of(1000)
    (1500000000, 2147483648, 1000)
    """
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[0-9]+)?)\s*([a-z]*)\s*", memory, re.IGNORECASE)
        unit = UNITS.get(match[2].upper()) if match else None
        if match is None or unit is None:
            raise ValueError(f"memory={memory!r} is not understood: give bytes, or text such as '500 MB' or '2 GiB'.")
        size = float(match[1]) * unit
        memory = int(size) if size < MOST_MEMORY else MOST_MEMORY
    if isinstance(memory, bool) or not isinstance(memory, int | np.integer) or memory <= 0:
        raise ValueError(f"memory must be above zero; got {memory!r}.")
    return int(memory)


class RowFile(ABC):
    """A table in a file.

    Attributes
    ----------
    path : Path
        Where it is.
    names : tuple of str
        Columns of X.
    target_names : tuple of str
        Columns of y.
    n_rows : int or None
        Number of rows, where it can be had without reading them.
    rows_per_block : int
        Rows that fit into the memory bound.
    n_read, n_left_out : int
        Rows that `blocks` has read so far, and those of them left out since they have gaps.
    gaps : dict of str to int
        How many of these rows have a gap in a column, for columns that have any.
    remarks : list of str
        What a reader of the results should know about how the file was read.
    """

    n_rows: int | None = None
    # Copies of a block: as it is read, as a table, the one before (let go when the next is there), and one to spare.
    _copies = 4

    def __init__(
        self,
        path: Path,
        target: Any,
        columns: Any,
        memory: int,
        missing: Missing = "refuse",
        decimal: str | None = None,
    ) -> None:
        self.path, self.memory = path, memory
        self._missing, self._decimal = missing, decimal
        self.n_read = self.n_left_out = 0
        self.gaps: dict[str, int] = {}
        self.remarks: list[str] = []
        every = self._opened()
        several = isinstance(target, list | tuple)
        targets = [self._number(entry, every) for entry in (target if several else [target])]
        if columns is None:
            chosen = [j for j in range(len(every)) if j not in targets]
        else:
            chosen = [self._number(entry, every) for entry in columns]
        if not chosen or set(chosen) & set(targets) or len({*chosen, *targets}) < len(chosen) + len(targets):
            raise ValueError(
                f"{path}: the columns to explain with must be at least one, once each, and not the target."
            )
        self._chosen, self._targets, self._one_target = chosen, targets, not several
        self.names, self.target_names = tuple(every[j] for j in chosen), tuple(every[j] for j in targets)
        self._every = every
        self.rows_per_block = self._fitting_rows()

    @abstractmethod
    def _opened(self) -> list[str]:
        """Look at the beginning of the file and return the names of its columns."""

    @abstractmethod
    def _tables(self, numbers: list[int]) -> Iterator[Array]:
        """Yield blocks of at most `rows_per_block` rows of the columns with these numbers."""

    def _bytes_per_row(self) -> float:
        """Return what a row takes in memory while it is worked on."""
        return 8 * self._copies * (len(self._chosen) + len(self._targets))

    def _place(self, row: int) -> str:
        """Return how a row is called in messages."""
        return f"row {row}"

    @property
    def n_blocks(self) -> int | None:
        """Number of blocks, where the number of rows is known."""
        return None if self.n_rows is None else math.ceil(self.n_rows / self.rows_per_block)

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Yield (X, y), block by block; y has a second axis where `target` is a list.

        A value that is infinite or beyond 1e150 raises ValueError, with its row and column; so does one that is
        missing, unless rows with gaps are to be left out.
        """
        numbers, split = [*self._chosen, *self._targets], len(self._chosen)
        self.n_read = self.n_left_out = 0
        self.gaps = {}
        for table in self._tables(numbers):
            flat = table.ravel(order="K")
            with np.errstate(over="ignore", invalid="ignore"):
                sound = np.isfinite(flat @ flat)
            rows = len(table)
            whole = table if sound else self._whole_rows(table, self.n_read, numbers)
            self.n_read += rows
            if len(whole):
                yield whole[:, :split], whole[:, split] if self._one_target else whole[:, split:]
        if not self.n_read:
            raise ValueError(f"{self.path} has no rows.")
        if self.n_left_out == self.n_read:
            raise ValueError(f"{self.path}: every row has empty cells, most of them in {self.emptiest()}.")

    def emptiest(self, most: int = 3) -> str:
        """Return the columns with most gaps, with their numbers, as text."""
        order = sorted(self.gaps, key=lambda name: -self.gaps[name])
        return ", ".join(f"{name!r} ({self.gaps[name]})" for name in order[:most])

    def _whole_rows(self, table: Array, first: int, numbers: list[int]) -> Array:
        """Return the rows without gaps, and count the others; refuse what is no gap and no number either."""
        self._check_size(table, first, numbers)
        empty = np.isnan(table)
        for j, count in zip(numbers, empty.sum(axis=0).tolist(), strict=True):
            if count:
                self.gaps[self._every[j]] = self.gaps.get(self._every[j], 0) + count
        left_out = empty.any(axis=1)
        self.n_left_out += int(left_out.sum())
        return table[~left_out]

    def compressed(self, progress: bool | None = None) -> CompressedRows:
        """Read all rows and return their compression, for an estimator's `fit` (as X, with None for y)."""
        if len(self.names) > COMPRESSION_COLUMN_LIMIT:
            raise ValueError(f"{self.path} has {len(self.names)} columns; at most {COMPRESSION_COLUMN_LIMIT} are read.")
        held = self._fixed_bytes() + self.rows_per_block * self._bytes_per_row()
        require(held, f"A block of {self.path}", "Give a smaller bound on memory (memory=, or --memory).")
        blocks = ((X, y.reshape(len(y), -1), None) for X, y in self.counted_blocks(progress))
        return CompressedRows(Compression.from_blocks(blocks), self.names, self._one_target)

    def counted_blocks(self, progress: bool | None = None) -> Iterator[tuple[Array, Array]]:
        """Yield the blocks and show how far reading has got."""
        with Progress(self.path.name, self._steps(), unit=self._unit(), shown=progress) as bar:
            yield from self._counted(bar)

    def _steps(self) -> int:
        return self.n_blocks or 0

    def _unit(self) -> str:
        return "blocks"

    def _counted(self, bar: Progress) -> Iterator[tuple[Array, Array]]:
        for block in self.blocks():
            yield block
            bar.step()

    def _fitting_rows(self) -> int:
        """Return how many rows fit, beside the factors of the compression."""
        fixed = self._fixed_bytes()
        rows = int(min(self.memory - fixed, LARGEST_BLOCK) // self._bytes_per_row())
        if rows < 1:
            needed = fixed + self._bytes_per_row()
            raise ValueError(
                f"{self.path}: memory={self.memory} bytes is too little; {needed:.0f} are needed for one row."
            )
        return rows

    def _fixed_bytes(self) -> int:
        """Return what is needed however few rows a block has: a factor, a second one, and their stack."""
        width = 1 + len(self._chosen) + len(self._targets)
        return 4 * 8 * width**2 if width <= COMPRESSION_COLUMN_LIMIT else 0

    def _number(self, entry: Any, every: list[str]) -> int:
        """Return the number of a column given by name or number."""
        if isinstance(entry, str):
            if entry not in every:
                shown = ", ".join(every[:20]) + (", …" if len(every) > 20 else "")
                raise ValueError(f"{self.path} has no column {entry!r}; its columns are {shown}.")
            return every.index(entry)
        if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not -len(every) <= entry < len(every):
            raise ValueError(f"{self.path} has {len(every)} columns, numbered from 0; got {entry!r}.")
        return int(entry) % len(every)

    def _check_size(self, table: Array, first: int, numbers: list[int]) -> None:
        """Name the first number that is none, or too large to be squared; gaps are let pass where rows may go."""
        bad = ~(np.abs(table) <= LARGEST_NUMBER)
        if self._missing == "drop":
            bad &= ~np.isnan(table)
        for row, column in np.argwhere(bad)[:1]:
            place = f"{self.path}, {self._place(first + int(row))}, column {self._every[numbers[column]]!r}"
            value = table[row, column]
            if np.isnan(value):
                raise ValueError(f"{place}: the cell is empty or NaN. Fill it, or leave such rows out: missing='drop'.")
            trouble = "too large to be squared; take a larger unit" if np.isfinite(value) else "not a finite number"
            raise ValueError(f"{place}: {value} is {trouble}.")

    def _check_width(self, columns: int) -> None:
        """Refuse more columns than have room for their names, before there are any."""
        if BYTES_PER_NAME * columns > self.memory:
            raise ValueError(f"{self.path} has {columns} columns, too many for memory={self.memory} bytes.")

    def _check_numbers(self, kinds: Sequence[str], names: Sequence[str]) -> None:
        """Refuse columns whose type is known not to be a number."""
        wrong = [f"{name!r} ({kind})" for name, kind in zip(names, kinds, strict=True) if kind]
        if wrong:
            raise NotNumbersError(
                f"{self.path}: the columns {', '.join(wrong[:10])} are not numbers. Name the columns to use, or encode "
                "these.",
                [name for name, kind in zip(names, kinds, strict=True) if kind],
            )


@dataclass(frozen=True)
class TextFormat:
    """How a table is written as text.

    Attributes
    ----------
    encoding : str
        Of its letters.
    separator : str or None
        What stands between fields; None: blanks.
    decimal : str
        What stands before the decimals of a number.
    """

    encoding: str
    separator: str | None
    decimal: str

    def fields(self, line: str) -> list[str]:
        """Return the fields of a line."""
        if self.separator is None:
            return line.split()
        return [field.strip() for field in next(csv.reader([line.strip("\r\n")], delimiter=self.separator))]

    def number(self, field: str) -> float | None:
        """Return the number in a field, NaN where it is a gap, None where it is neither.

        Examples
        --------
        >>> TextFormat("utf-8", ";", ",").number("75,01"), TextFormat("utf-8", ";", ",").number("1.234,5")
        (75.01, None)
        """
        if field.strip().lower() in MISSING:
            return math.nan
        if "_" in field or (self.decimal == "," and "." in field):
            return None
        try:
            return float(field.replace(",", ".") if self.decimal == "," else field)
        except ValueError:
            return None

    def is_number(self, field: str) -> bool:
        """Whether a field holds a number; "nan" is one, an empty field is not."""
        value = self.number(field)
        return value is not None and (not math.isnan(value) or field.strip().lower() == "nan")

    def remarks(self) -> list[str]:
        """Return what is unusual about the text."""
        said = {"cp1252": "The file is not UTF-8; it was read as Windows-1252 (cp1252)."}.get(self.encoding)
        return [said] if said else []


def text_format(path: Path, decimal: str | None = None) -> TextFormat:
    """Find out how a table is written, from its beginning."""
    encoding = _encoding_of(path)
    lines: list[str] = []
    with open_text(path, encoding) as file:
        letters = 0
        while len(lines) < 2 or (len(lines) < SAMPLE_LINES and letters < SAMPLE_LETTERS):
            line = next_line(file, path)
            if line is None:
                break
            lines.append(line)
            letters += len(line)
    if not lines:
        raise ValueError(f"{path} is empty.")
    separator = _separator_of(lines)
    if decimal == "," and separator == ",":
        raise ValueError(f"{path}: commas stand between the fields, so that they cannot stand before decimals.")
    return TextFormat(encoding, separator, decimal or _decimal_of(lines, separator))


def _separator_of(lines: Sequence[str]) -> str | None:
    """Return what is most frequent in the first line; commas may be decimal where another one is as frequent always."""
    first = lines[0]
    separator = max((",", ";", "\t"), key=first.count)
    if separator == ",":
        for other in ("\t", ";"):
            if other in first and len({line.count(other) for line in lines}) == 1:
                return other
    return separator if separator in first else None


def _decimal_of(lines: Sequence[str], separator: str | None) -> str:
    """Return a comma where some fields read like 75,01 and none like 75.01."""
    if separator == ",":
        return "."
    edge = r"\s" if separator is None else re.escape(separator)
    field = rf'(?:^|{edge})\s*"?[+-]?[0-9]*{{}}[0-9]+(?:[eE][+-]?[0-9]+)?"?\s*(?:{edge}|$)'
    commas, dots = (re.compile(field.format(sign)) for sign in (",", r"\."))
    found = any(commas.search(line) for line in lines) and not any(dots.search(line) for line in lines)
    return "," if found else "."


def _encoding_of(path: Path) -> str:
    """Return UTF-8, or else Windows-1252 where the beginning of the file can be read so."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    for encoding in ("utf-8-sig", "cp1252"):
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            with opener(path, "rb") as file:
                for number in range(ENCODING_CHUNKS):
                    chunk = file.read(ENCODING_CHUNK)
                    if number == 0 and chunk[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                        raise ValueError(f"{path} cannot be read as text: it is UTF-16. Save it as CSV in UTF-8.")
                    decoder.decode(chunk, final=not chunk)
                    if not chunk:
                        break
        except UnicodeDecodeError:
            continue
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} cannot be read as text: {error}") from error
        return encoding
    raise ValueError(f"{path} cannot be read as text: it is neither UTF-8 nor Windows-1252. Save it as CSV in UTF-8.")


def open_text(path: Path, encoding: str, newline: str | None = None) -> IO[str]:
    """Open a text, unpacked where its name ends in .gz."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    file: IO[str] = opener(path, "rt", encoding=encoding, newline=newline)
    return file


def next_line(file: IO[str], path: Path) -> str | None:
    """Return the next line that is not blank, or None."""
    try:
        for line in iter(lambda: file.readline(LONGEST_LINE), ""):
            if len(line) >= LONGEST_LINE:
                raise ValueError(f"{path}: a line is longer than {LONGEST_LINE} letters; this is no table.")
            if "\0" in line:
                raise ValueError(f"{path} holds binary data, not text.")
            if line.strip():
                return line
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read as text: {error}. Save it as CSV in UTF-8.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as text: {error}") from error
    return None


class CsvRows(RowFile):
    """Text with one row a line, separated by comma, semicolon, tab or blanks; the first line may hold names."""

    def _opened(self) -> list[str]:
        self._format = text_format(self.path, self._decimal)
        self.remarks += self._format.remarks()
        with self._text() as file:
            first = self._line(file) or ""
        self._check_width(self._width(first))
        fields = self._fields(first)
        self._header = not all(self._format.is_number(field) for field in fields)
        if self._header and len(set(fields)) < len(fields):
            raise ValueError(f"{self.path}: column names appear twice in the first line.")
        self._line_bytes = len(first)
        return fields if self._header else [f"x{j}" for j in range(len(fields))]

    def _text(self) -> IO[str]:
        return open_text(self.path, self._format.encoding)

    def _line(self, file: IO[str]) -> str | None:
        """Return the next line that is not blank, or None."""
        return next_line(file, self.path)

    def _fields(self, line: str) -> list[str]:
        try:
            return self._format.fields(line)
        except csv.Error as error:
            raise ValueError(f"{self.path} cannot be read as a table: {error}") from error

    def _width(self, line: str) -> int:
        separator = self._format.separator
        return len(line.split()) if separator is None else 1 + line.count(separator)

    def _bytes_per_row(self) -> float:
        letters = max(self._line_bytes, self._second_line_bytes)
        return super()._bytes_per_row() + BYTES_PER_LINE + 1.5 * letters

    @cached_property
    def _second_line_bytes(self) -> int:
        with self._text() as file:
            self._line(file)
            return len(self._line(file) or "")

    def _tables(self, numbers: list[int]) -> Iterator[Array]:
        with self._text() as file:
            if self._header:
                self._line(file)
            row = 0
            while block := self._lines(file):
                yield self._parsed(block, row, numbers)
                row += len(block)

    def _lines(self, file: IO[str]) -> list[str]:
        """Return the next lines: as many as a block has rows, or fewer where they are longer than the first ones."""
        lines: list[str] = []
        letters, most = 0, self.rows_per_block * max(self._line_bytes, self._second_line_bytes)
        while len(lines) < self.rows_per_block and letters <= most:
            line = self._line(file)
            if line is None:
                break
            lines.append(line)
            letters += len(line)
        return lines

    def _parsed(self, lines: list[str], row: int, numbers: list[int]) -> Array:
        """Return the numbers in lines: all at once, or one by one where some cell is no plain number."""
        if any(self._width(line) != len(self._every) for line in lines):
            self._check_widths(lines, row)
        if self._format.decimal == "," and any("." in line for line in lines):
            return self._parsed_singly(lines, row, numbers)  # 1.234 may be a thousand
        dotted = lines if self._format.decimal == "." else (line.replace(",", ".") for line in lines)
        settings: dict[str, Any] = {"delimiter": self._format.separator, "comments": None, "ndmin": 2, "quotechar": '"'}
        try:
            table = np.loadtxt(dotted, usecols=numbers, **settings)
        except (ValueError, OverflowError):
            return self._parsed_singly(lines, row, numbers)
        if len(table) != len(lines):
            raise ValueError(f"{self.path}, {self._place(row)} and following: a quoted field goes across lines.")
        return table

    def _parsed_singly(self, lines: list[str], row: int, numbers: list[int]) -> Array:
        table = np.empty((len(lines), len(numbers)))
        for i, line in enumerate(lines):
            fields = self._fields(line)
            if len(fields) != len(self._every):
                self._check_widths(lines, row)
            for k, j in enumerate(numbers):
                value = self._format.number(fields[j])
                if value is None:
                    raise self._cell_error(lines, row, numbers, (row + i, j, fields[j]))
                table[i, k] = value
        return table

    def _check_widths(self, lines: list[str], row: int) -> None:
        """Raise the error of the first line that has more or fewer columns than the first of the file."""
        for offset, line in enumerate(lines):
            if (width := len(self._fields(line))) != len(self._every):
                raise ValueError(
                    f"{self.path}, {self._place(row + offset)}: {width} columns, but the first line has "
                    f"{len(self._every)}."
                )

    def _cell_error(self, lines: list[str], row: int, numbers: list[int], cell: tuple[int, int, str]) -> ValueError:
        """Return the error of a cell that is no number; of whole columns where they are text for the most part."""
        balance = dict.fromkeys(numbers, 0)
        for line in lines:
            fields = self._fields(line)
            for j in numbers:
                value = self._format.number(fields[j])
                balance[j] += 1 if value is None else -int(not math.isnan(value))
        names = [self._every[j] for j in sorted(numbers) if balance[j] > 1]  # one cell may be a slip
        if names:
            return NotNumbersError(
                f"{self.path}: not numbers: {', '.join(names)}. Name the columns to use, or encode these.", names
            )
        number, j, text = cell
        name = self._every[j]
        return CellError(f"{self.path}, {self._place(number)}, column {name!r}: {text!r} is not a number.", name)

    def _place(self, row: int) -> str:
        """Return the line of a row: looked for only when there is something to say about it."""
        with self._text() as file:
            filled = (number for number, line in enumerate(file, 1) if line.strip())
            return f"line {next(islice(filled, row + self._header, None))}"

    def _steps(self) -> int:
        return max(1, self.path.stat().st_size // 10**6)

    def _unit(self) -> str:
        return "MB"

    def _counted(self, bar: Progress) -> Iterator[tuple[Array, Array]]:
        """Count megabytes, since the number of rows is not known; of compressed files an estimate."""
        letters = max(self._line_bytes, self._second_line_bytes)
        done = 0.0
        for X, y in self.blocks():
            yield X, y
            done += len(X) * letters / 1e6
            while bar.done < min(done, bar.total):
                bar.step()


class NpyRows(RowFile):
    """A two-dimensional array in NumPy's format, read in blocks; never unpickled.

    Not mapped into memory: a map counts against limits on addresses as a whole, and a file that is cut while it is
    mapped kills the process.
    """

    _copies = 3  # and the rows as they are stored

    def _opened(self) -> list[str]:
        try:
            with self.path.open("rb") as file:
                self._shape, self._by_columns, self._dtype = _npy_header(file)
                self._start = file.tell()
        except NPY_DAMAGE as error:
            raise ValueError(f"{self.path} cannot be read as an array of numbers: {error}") from error
        if len(self._shape) != 2 or self._dtype.kind not in "fiub":
            raise ValueError(
                f"{self.path} holds {self._dtype} of shape {self._shape}; a table of real numbers is needed."
            )
        promised, there = math.prod(self._shape) * self._dtype.itemsize, self.path.stat().st_size - self._start
        if promised > there:
            raise ValueError(f"{self.path} cannot be read: its {promised} bytes of numbers are cut short at {there}.")
        self._check_width(self._shape[1])
        self.n_rows = self._shape[0]
        return [f"x{j}" for j in range(self._shape[1])]

    def _bytes_per_row(self) -> float:
        stored = len(self._chosen) + len(self._targets) if self._by_columns else self._shape[1]
        return super()._bytes_per_row() + stored * self._dtype.itemsize

    def _tables(self, numbers: list[int]) -> Iterator[Array]:
        with self.path.open("rb") as file:
            for start in range(0, self._shape[0], self.rows_per_block):
                yield self._table(file, start, min(self.rows_per_block, self._shape[0] - start), numbers)

    def _table(self, file: BinaryIO, start: int, rows: int, numbers: list[int]) -> Array:
        height, width = self._shape
        if not self._by_columns:
            return self._stored(file, start * width, rows * width).reshape(rows, width)[:, numbers].astype(np.float64)
        table = np.empty((rows, len(numbers)))
        for place, j in enumerate(numbers):
            table[:, place] = self._stored(file, j * height + start, rows)
        return table

    def _stored(self, file: BinaryIO, first: int, count: int) -> NDArray[Any]:
        """Return numbers as they follow each other in the file."""
        file.seek(self._start + first * self._dtype.itemsize)
        numbers = np.fromfile(file, self._dtype, count)
        if numbers.size < count:
            raise ValueError(f"{self.path} was cut short while it was read.")
        return numbers


def _npy_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns lie together, and type; the file stands at the first number then."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it is of version {version[0]}.{version[1]}, which tables of numbers do not need")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = read(file)
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError("it holds objects, which could run code" if dtype.hasobject else f"its shape is {shape}")
    return shape, by_columns, dtype


class ParquetRows(RowFile):
    """A Parquet file, or a folder of them read in the order of their names; needs the extra `frames`."""

    def _opened(self) -> list[str]:
        self._files = sorted(self.path.glob("*.parquet")) if self.path.is_dir() else [self.path]
        if not self._files:
            raise ValueError(f"{self.path} holds no file that ends in .parquet.")
        self._rows, self._piece = [], 0.0
        for file in self._files:
            with _as_parquet(file):
                metadata = self._reader(file).metadata
                groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
                self._rows.append(metadata.num_rows)
                sizes = [group.total_byte_size / max(1, group.num_columns) for group in groups]
            self._piece = max([self._piece, *sizes])
        self.n_rows = sum(self._rows)
        with _as_parquet(self._files[0]):
            names = list(self._reader(self._files[0]).schema_arrow.names)
        if len(set(names)) < len(names):
            raise ValueError(f"{self.path}: column names appear twice.")
        return names

    def _fixed_bytes(self) -> int:
        """Return also the pages of every column that Arrow has unpacked."""
        columns = len(self._chosen) + len(self._targets)
        return super()._fixed_bytes() + int(columns * ARROW_PAGES * min(ARROW_PAGE, self._piece))

    @property
    def n_blocks(self) -> int:
        """Number of blocks; none goes across files."""
        return sum(math.ceil(rows / self.rows_per_block) for rows in self._rows)

    def _reader(self, file: Path) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(file, buffer_size=2**16, pre_buffer=False)

    def _tables(self, numbers: list[int]) -> Iterator[Array]:
        names = [self._every[j] for j in numbers]
        for file in self._files:
            with _as_parquet(file):
                reader = self._reader(file)
                schema = reader.schema_arrow
                batches = reader.iter_batches(self.rows_per_block, columns=names)
            self._check_schema(file, schema, names)
            while (table := self._next_table(file, batches, names)) is not None:
                yield table

    def _next_table(self, file: Path, batches: Iterator[Any], names: list[str]) -> Array | None:
        from pyarrow import default_memory_pool

        with _as_parquet(file):
            batch = next(batches, None)
            if batch is None:
                return None
            table = np.empty((batch.num_rows, len(names)))
            for j, name in enumerate(names):
                table[:, j] = batch.column(name).to_numpy(zero_copy_only=False)  # nulls become NaN
            del batch
            default_memory_pool().release_unused()  # Arrow would keep it for later
        return table

    def _check_schema(self, file: Path, schema: Any, names: list[str]) -> None:
        from pyarrow import types

        missing = [name for name in names if name not in schema.names]
        if missing:
            raise ValueError(f"{file} lacks the columns {', '.join(missing[:10])}.")
        fields = [schema.field(name).type for name in names]
        tests = (types.is_integer, types.is_floating, types.is_boolean)
        self._check_numbers(["" if any(test(field) for test in tests) else str(field) for field in fields], names)


class ZarrRows(RowFile):
    """A Zarr array of two axes, or a group of arrays with one row axis; needs the extra `fields`.

    In a group the target is the name of an array, and every other array of as many rows gives one column (one axis) or
    several, called name[0], name[1], …
    """

    _copies = 5  # chunks are unpacked side by side

    def _opened(self) -> list[str]:
        arrays = zarr_arrays(self.path)
        self._columns: list[tuple[str, Any, int]] = []
        for name, array in arrays.items():
            if array.ndim not in {1, 2} or array.dtype.kind not in "fiub":
                raise ValueError(f"{self.path}: {name or 'the array'} holds {array.dtype} of shape {array.shape}.")
            width = 1 if array.ndim == 1 else array.shape[1]
            self._check_width(width)
            labels = [name] if array.ndim == 1 else [f"{name or 'x'}[{j}]" if name else f"x{j}" for j in range(width)]
            self._columns += [(label, array, j) for j, label in enumerate(labels)]
        rows = {array.shape[0] for array in arrays.values()}
        if len(rows) != 1:
            raise ValueError(
                f"{self.path}: the arrays must have equally many rows; found {sorted(rows) or 'no array'}."
            )
        self.n_rows = rows.pop()
        return [label for label, _, _ in self._columns]

    def _fitting_rows(self) -> int:
        """Return a multiple of the tallest chunk, so that none is unpacked twice."""
        rows, tallest = super()._fitting_rows(), max(array.chunks[0] for array in self._needed())
        unpacked = sum(8 * math.prod(array.chunks) for array in self._needed())
        if unpacked > self.memory:
            raise ValueError(
                f"{self.path}: one chunk of every array is {unpacked} bytes, more than memory={self.memory}. Give "
                "more, or store it in smaller chunks."
            )
        return rows if rows < tallest else rows - rows % tallest

    def _needed(self) -> list[Any]:
        """Return the arrays that hold a column in use."""
        used = [self._columns[j][1] for j in (*self._chosen, *self._targets)]
        return list({id(array): array for array in used}.values())

    def _tables(self, numbers: list[int]) -> Iterator[Array]:
        for start in range(0, self.n_rows or 0, self.rows_per_block):
            rows = slice(start, start + self.rows_per_block)
            try:
                blocks = {id(array): np.asarray(array[rows]) for array in self._needed()}
            except Exception as error:  # so do its codecs
                raise ValueError(f"{self.path} cannot be read as Zarr: {error}") from error
            parts = [(blocks[id(array)], j) for _, array, j in (self._columns[number] for number in numbers)]
            table = np.empty((len(parts[0][0]), len(parts)))
            for column, (block, j) in enumerate(parts):
                table[:, column] = block if block.ndim == 1 else block[:, j]
            del blocks, parts
            yield table


@contextmanager
def _as_parquet(file: Path) -> Iterator[None]:
    """Turn what Arrow raises on a damaged file into one error that names it."""
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'ardea[frames]'.") from error
    try:
        yield
    except (ArrowException, ArithmeticError, LookupError, OSError, TypeError, ValueError) as error:
        raise ValueError(f"{file} cannot be read as Parquet: {error}") from error


def zarr_arrays(path: Path) -> dict[str, Any]:
    """Open a Zarr array (under the name "") or the arrays of a group; any that would be unpickled is refused."""
    try:
        import zarr
    except ImportError as error:
        raise ImportError("Zarr needs the package zarr: pip install 'ardea[fields]'.") from error
    try:
        store: Any = zarr.open(path, mode="r")
        arrays = {"": store} if hasattr(store, "shape") else dict(sorted(store.arrays()))
        codecs = [codec for array in arrays.values() for codec in (*array.filters, *array.compressors)]
    except Exception as error:  # zarr raises errors of many kinds
        raise ValueError(f"{path} cannot be read as Zarr: {error}") from error
    if any("pickle" in f"{type(codec).__module__} {type(codec).__name__}".lower() for codec in codecs):
        raise ValueError(f"{path} holds pickled data, which is never read: it could run code.")
    return arrays
