"""Tables larger than memory, read in blocks of rows: CSV, Parquet, NPY and Zarr.

`open_rows` says what is in a file and yields (X, y) in blocks that fit into a memory bound; `fit_file` compresses them
one after another and fits the result. Whatever the size of the file, memory holds one block, copies of it, and factors
of O(columns²).
"""

from __future__ import annotations

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
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ardea.core.columns import Array
from ardea.core.compression import COMPRESSION_COLUMN_LIMIT, Compression
from ardea.inputs import CompressedRows
from ardea.memory import require
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


def open_rows(
    path: str | Path,
    target: str | int | Sequence[str | int],
    *,
    columns: Sequence[str | int] | None = None,
    memory: int | str = DEFAULT_MEMORY,
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
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    kinds: dict[str, Any] = {".csv": CsvRows, ".tsv": CsvRows, ".txt": CsvRows, ".npy": NpyRows, ".zarr": ZarrRows}
    kinds |= {".parquet": ParquetRows, ".pq": ParquetRows}
    suffix = path.suffixes[-2] if path.suffix == ".gz" and len(path.suffixes) > 1 else path.suffix
    kind = kinds.get(suffix.lower())
    if kind is None and path.is_dir() and any(path.glob("*.parquet")):
        kind = ParquetRows
    if kind is None:
        raise ValueError(f"{path}: the ending {suffix!r} is not known. Read are {', '.join(kinds)}, and .csv.gz.")
    rows: RowFile = kind(path, target, columns, bound)
    return rows


def fit_file(
    estimator: Any,
    path: str | Path,
    target: str | int | Sequence[str | int],
    *,
    columns: Sequence[str | int] | None = None,
    memory: int | str = DEFAULT_MEMORY,
    progress: bool | None = None,
) -> Any:
    """Fit an estimator, or an `ARDSearch` that does not resample, to all rows of a file larger than memory.

    Parameters
    ----------
    estimator : estimator of ardea
        What to fit; it is changed in place.
    path, target, columns, memory
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
    rows = open_rows(path, target, columns=columns, memory=memory)
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
    """

    n_rows: int | None = None
    # Copies of a block: as it is read, as a table, the one before (let go when the next is there), and one to spare.
    _copies = 4

    def __init__(self, path: Path, target: Any, columns: Any, memory: int) -> None:
        self.path, self.memory = path, memory
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

        A value that is NaN, infinite or beyond 1e150 raises ValueError, with its row and column.
        """
        numbers, split, row = [*self._chosen, *self._targets], len(self._chosen), 0
        for table in self._tables(numbers):
            flat = table.ravel(order="K")
            with np.errstate(over="ignore", invalid="ignore"):
                sound = np.isfinite(flat @ flat)
            if not sound:
                self._check_size(table, row, numbers)
            row += len(table)
            yield table[:, :split], table[:, split] if self._one_target else table[:, split:]
        if not row:
            raise ValueError(f"{self.path} has no rows.")

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
        """Name the first number that is none, or too large to be squared."""
        bad = np.argwhere(~(np.abs(table) <= LARGEST_NUMBER))
        if len(bad):
            row, column = bad[0]
            name, value = self._every[numbers[column]], table[row, column]
            trouble = "too large to be squared; take a larger unit" if np.isfinite(value) else "not a finite number"
            raise ValueError(f"{self.path}, {self._place(first + int(row))}, column {name!r}: {value} is {trouble}.")

    def _check_width(self, columns: int) -> None:
        """Refuse more columns than have room for their names, before there are any."""
        if BYTES_PER_NAME * columns > self.memory:
            raise ValueError(f"{self.path} has {columns} columns, too many for memory={self.memory} bytes.")

    def _check_numbers(self, kinds: Sequence[str], names: Sequence[str]) -> None:
        """Refuse columns whose type is known not to be a number."""
        wrong = [f"{name!r} ({kind})" for name, kind in zip(names, kinds, strict=True) if kind]
        if wrong:
            raise ValueError(
                f"{self.path}: the columns {', '.join(wrong[:10])} are not numbers. Name the columns to use, or encode "
                "these."
            )


class CsvRows(RowFile):
    """Text with one row a line, separated by comma, semicolon, tab or blanks; the first line may hold names."""

    def _opened(self) -> list[str]:
        with self._text() as file:
            first = self._line(file)
        if first is None:
            raise ValueError(f"{self.path} is empty.")
        separator = max((",", ";", "\t"), key=first.count)
        self._separator = separator if separator in first else None
        self._check_width(self._width(first))
        fields = self._fields(first)
        self._header = not all(_is_number(field) for field in fields)
        if self._header and len(set(fields)) < len(fields):
            raise ValueError(f"{self.path}: column names appear twice in the first line.")
        self._line_bytes = len(first)
        return fields if self._header else [f"x{j}" for j in range(len(fields))]

    def _text(self) -> IO[str]:
        opener: Any = gzip.open if self.path.suffix == ".gz" else open
        file: IO[str] = opener(self.path, "rt", encoding="utf-8-sig", newline=None)
        return file

    def _line(self, file: IO[str]) -> str | None:
        """Return the next line that is not blank, or None."""
        try:
            for line in iter(lambda: file.readline(LONGEST_LINE), ""):
                if len(line) >= LONGEST_LINE:
                    raise ValueError(f"{self.path}: a line is longer than {LONGEST_LINE} letters; this is no table.")
                if "\0" in line:
                    raise ValueError(f"{self.path} holds binary data, not text.")
                if line.strip():
                    return line
        except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{self.path} cannot be read as text: {error}") from error
        return None

    def _fields(self, line: str) -> list[str]:
        if self._separator is None:
            return line.split()
        try:
            return [field.strip() for field in next(csv.reader([line.strip("\r\n")], delimiter=self._separator))]
        except csv.Error as error:
            raise ValueError(f"{self.path} cannot be read as a table: {error}") from error

    def _width(self, line: str) -> int:
        return len(line.split()) if self._separator is None else 1 + line.count(self._separator)

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
        settings: dict[str, Any] = {"delimiter": self._separator, "comments": None, "ndmin": 2, "quotechar": '"'}
        if any(self._width(line) != len(self._every) for line in lines):
            self._explain(lines, row, numbers)
        try:
            table = np.loadtxt(lines, usecols=numbers, **settings)
        except (ValueError, OverflowError) as error:
            self._explain(lines, row, numbers)
            raise ValueError(f"{self.path}, {self._place(row)} and following: {error}") from error
        if len(table) != len(lines):
            raise ValueError(f"{self.path}, {self._place(row)} and following: a quoted field goes across lines.")
        return table

    def _explain(self, lines: list[str], row: int, numbers: list[int]) -> None:
        """Raise the error of the first line that is wrong."""
        for offset, line in enumerate(lines):
            fields = self._fields(line)
            if len(fields) != len(self._every):
                raise ValueError(
                    f"{self.path}, {self._place(row + offset)}: {len(fields)} columns, but the first line has "
                    f"{len(self._every)}."
                ) from None
            for j in numbers:
                if not _is_number(fields[j]):
                    raise ValueError(
                        f"{self.path}, {self._place(row + offset)}, column {self._every[j]!r}: {fields[j]!r} is not a "
                        "number."
                    ) from None

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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
