"""Tables and arrays in files, whatever the format: names at once, rows in frames of a size that is asked for."""

from __future__ import annotations

import math
import re
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ardea.core.memory import require
from ardea.tables.arrays import IN_PARTS, NPY_DAMAGE, NamedArray, read_arrays
from ardea.tables.columns import ANY_NUMBER, MOST_PROBLEMS, TableError, empty_tokens, is_missing
from ardea.tables.naming import named, sound_names
from ardea.tables.text import SPREADSHEETS, Header, TextSource, numbered_rows, sheet_names, text_format

PARQUET, ARRAYS = (".parquet", ".pq"), (".npz", ".nc", ".nc4", ".cdf", ".zarr")
TEXT, PACKED = (".csv", ".tsv", ".txt", ".dat"), (".gz", ".bz2", ".xz")
KNOWN = (*TEXT, ".npy", *PARQUET, *SPREADSHEETS, *ARRAYS)


DEFAULT_MEMORY = "1 GB"
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
# More is as good as no bound: what a signed 64-bit number of bytes holds, halved.
MOST_MEMORY = 2**62
# Of rows held as a whole: the frame, X, and two copies while it is worked on; a text as a Python object, measured.
BYTES_PER_NUMBER, BYTES_PER_TEXT = 32, 100
# What pandas would else infer or leave out.
AS_THEY_ARE: dict[str, Any] = {"header": None, "index_col": False, "keep_default_na": False, "low_memory": False}
AS_THEY_ARE |= {"skipinitialspace": True}
# A name as a string in a list, beside its letters (measured with sys.getsizeof).
BYTES_PER_NAME = 80


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
        memory = int(min(float(match[1]) * unit, MOST_MEMORY))
    if isinstance(memory, bool) or not isinstance(memory, int | np.integer) or memory <= 0:
        raise ValueError(f"memory must be above zero; got {memory!r}.")
    return int(memory)


class Table(ABC):
    """A table in a file: the names of its columns, and its rows as pandas frames.

    Attributes
    ----------
    path : Path
        The file.
    names : list of str
        Its columns.
    headed : bool
        Whether the names come from the file; else they are x0, x1 and so on.
    n_rows : int or None
        Number of rows, where it can be had without reading them.
    bytes_per_row : float
        What a row takes in memory while it is read.
    stored_rows : int
        Rows that are stored together: frames of a multiple of them are read faster.
    stored_bytes : int
        What all that is stored together takes in memory.
    once : bool
        Whether the rows can be read only once (a pipe).
    remarks : list of str
        What was inferred about the file.
    na : tuple of str
        What else stands in cells that hold nothing.
    other_sheets : sequence of str
        Sheets of a spreadsheet that were not read.
    """

    headed, stored_rows, stored_bytes, once = True, 1, 0, False
    n_rows: int | None = None
    other_sheets: Sequence[str] = ()

    def __init__(self, path: Path, names: list[str], remarks: Sequence[str] = (), na: Sequence[str] = ()) -> None:
        self.path, self.names, self.remarks, self.na = path, names, list(remarks), tuple(na)
        self.bytes_per_row = 16.0 * len(names)
        self.given = names
        self.separator: str | None = None
        self.decimal: str | None = None
        self.told_decimal: str | None = None

    def target(self, entry: str | int) -> str:
        """Return the column to explain, by name or number; refuse a name that several columns bear."""
        places = [str(j) for j, name in enumerate(self.given) if name == entry]
        if len(places) > 1:
            numbers = f"{', '.join(places[:-1])} and {places[-1]}"
            raise ValueError(
                f"{self.path}: columns {numbers} (counted from 0) are both named {entry!r}. Give the number of the one "
                "that is meant, or rename one."
            )
        try:
            return named(entry, self.names, f"{self.path} has no column")
        except ValueError as error:
            if not self.other_sheets:
                raise
            raise ValueError(f"{error} Other sheets (--sheet) are {', '.join(self.other_sheets)}.") from error

    @abstractmethod
    def frames(self, rows: int, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns in frames of at most so many rows."""

    def places(self, rows: Sequence[int]) -> list[str]:
        """Return how rows are called in messages."""
        return [f"row {row}" for row in rows]

    def problems(self, names: Sequence[str]) -> list[str]:
        """Return what is wrong with the rows as they are stored."""
        return []

    def taken_as_empty(self, names: Sequence[str]) -> list[str]:
        """Return which texts in columns were taken as empty."""
        return []


def open_table(
    path: str | Path,
    *,
    header: Header = "auto",
    decimal: str | None = None,
    na: Sequence[str] = (),
    sheet: str | None = None,
) -> Table:
    r"""Open a table of any format and read its names.

    Parameters
    ----------
    path : str or Path
        CSV or other text (also packed: .gz, .bz2, .xz), Parquet (or a folder of it), NPY, NPZ, Excel, NetCDF or Zarr.
    header : {"auto", "yes", "no"}
        Whether the first row of a text or a spreadsheet holds names.
    decimal : {".", ","}, optional
        What stands before the decimals in a text; inferred by default.
    na : sequence of str
        Cells that hold nothing, besides the usual ones (empty, NA, nan, null, -, ? and so on); "none" turns these off.
    sheet : str, optional
        Which sheet of a spreadsheet, by name or number from 0; the first by default.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("a;b\n1,5;red\n2,5;blue\n")
    ...     table = open_table(path)
    ...     table.names, next(table.frames(10, ["a"]))["a"].tolist()
    (['a', 'b'], [1.5, 2.5])
    """
    path = Path(path)
    ending = ending_of(path)
    if sheet is not None and ending not in SPREADSHEETS:
        raise ValueError(f"{path} is no spreadsheet: leave out --sheet.")
    if ending in (".npy", *ARRAYS):
        return ArrayTable(path, read_arrays(path))
    if ending in PARQUET:
        return ParquetTable(path)
    return TextTable(path, header, decimal, na, sheet)


def ending_of(path: Path) -> str:
    """Return the ending that tells the kind of a file; .csv for .csv.gz and for pipes, .parquet for folders of it."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    ending = (path.with_suffix("") if path.suffix.lower() in PACKED else path).suffix.lower()
    if path.is_dir() and any(path.glob("*.parquet")):
        return ".parquet"
    if path.is_dir() and ending != ".zarr":
        raise ValueError(f"{path} is a directory, not a table: name a file in it.")
    if not path.is_file() and not path.is_dir():
        return ".csv"
    if ending in (".xls", ".ods"):
        raise ValueError(f"{path} is a spreadsheet of a kind that is not read: save it as CSV or .xlsx.")
    if ending not in KNOWN:
        raise ValueError(f"{path}: the ending {ending!r} is not known. Read are {', '.join(KNOWN)}, and .csv.gz.")
    return ending


class TextTable(Table):
    """Text with one row a line."""

    def __init__(
        self, path: Path, header: Header, decimal: str | None, na: Sequence[str], sheet: str | None = None
    ) -> None:
        source = TextSource(path, sheet)
        try:
            self.written = text_format(source, header=header, decimal=decimal, na=na)
        except BaseException:
            source.close()
            raise
        super().__init__(path, self.written.names, self.written.remarks, na)
        self.headed, self.separator, self.decimal = self.written.headed, self.written.separator, self.written.decimal
        self.given = self.written.given
        if path.suffix.lower() in SPREADSHEETS and sheet is None and len(sheets := sheet_names(path)) > 1:
            self.other_sheets = sheets[1:]
            self.remarks.append(f"the first of {len(sheets)} sheets was read; --sheet reads {', '.join(sheets[1:])}")
        # The parser holds the text, and two places of every field, in arrays that it doubles when they are full.
        self.bytes_per_row = 2.0 * self.written.line_bytes + 48 * self.written.width
        self.once, self.told_decimal = not path.is_file(), decimal
        self._source: TextSource | None = source
        if not self.once:
            self._close()

    def _close(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None

    def frames(self, rows: int, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns in frames of at most so many rows."""
        import pandas as pd

        if self.once and self._source is None:
            raise ValueError(f"{self.path} is a pipe, which can be read only once: save it to a file first.")
        source, self._source = self._source or TextSource(self.path, self.written.sheet), None
        n_read, gap_at_end = 0, False
        try:
            for frame in self._parsed(source, rows):
                n_read += len(frame)
                gap_at_end |= self.separator is None and bool(frame.iloc[:, -1].isna().any())
                yield frame if list(names) == list(frame.columns) else frame[list(names)]
        except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError, OverflowError) as error:
            raise self._damage(error, names) from error
        finally:
            source.close()
        uneven = self.separator and source.separators != n_read * (self.written.width - 1)
        if (gap_at_end or uneven) and (found := self.problems(names)):  # none where quotes hold separators
            raise TableError(self.path, found)

    def _parsed(self, source: TextSource, rows: int) -> Iterator[Any]:
        """Yield what pandas makes of the text; a first row that is too long is an error."""
        import pandas as pd

        try:
            reader = pd.read_csv(source.start(self.written), chunksize=rows, **self._settings())
        except pd.errors.EmptyDataError:
            return
        with reader:
            while True:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                    frame = next(reader, None)
                if frame is None:
                    return
                yield frame

    def _settings(self) -> dict[str, Any]:
        import pandas as pd

        names = [*self.names, *(f"\0{j}" for j in range(self.written.width - len(self.names)))]
        settings: dict[str, Any] = {"sep": self.separator or r"\s+", "decimal": self.decimal or ".", "names": names}
        settings |= {
            "na_values": list(empty_tokens(self.na)),
            "skip_blank_lines": self.written.width > 1,
            **AS_THEY_ARE,
        }
        if int(pd.__version__.split(".")[0]) < 3:  # later versions read numbers to the last digit anyway
            settings["float_precision"] = "round_trip"
        return settings

    def _damage(self, error: Exception, names: Sequence[str]) -> ValueError:
        found = [] if isinstance(error, UnicodeDecodeError) else self.problems(names)
        said = f"{self.path} cannot be read as text: {' '.join(str(error).split())}"
        return TableError(self.path, found) if found else ValueError(said)

    def problems(self, names: Sequence[str]) -> list[str]:
        """Return all rows of other length, and all cells that are no numbers in columns of numbers, by line."""
        if self.once:
            return []
        used = [(self.names.index(name), name) for name in names]
        found: list[tuple[int, str]] = []
        texts: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
        numbers = dict.fromkeys(names, 0)
        for line, row in numbered_rows(self.path, self.written):
            if len(row) != self.written.width:
                found.append((line, f"line {line}: {len(row)} columns, but the first line has {self.written.width}"))
                continue
            for j, name in used:
                if ANY_NUMBER.fullmatch(row[j]):
                    numbers[name] += 1
                elif not is_missing(row[j], self.na):
                    texts[name].append((line, f"line {line}, column {name!r}: {row[j]!r} is not a number"))
        found += [one for name in names if 0 < len(texts[name]) <= numbers[name] + 1 for one in texts[name]]
        return [said for _, said in sorted(found)]

    def taken_as_empty(self, names: Sequence[str]) -> list[str]:
        """Return which texts in columns were taken as empty, and how many cells; read again, so for messages only."""
        if self.once:
            return []
        used, found = [self.names.index(name) for name in names], Counter[str]()
        for _, row in numbered_rows(self.path, self.written):
            found.update(row[j] for j in used if j < len(row) and row[j] and is_missing(row[j], self.na))
        return [
            f"{token!r} was taken as empty ({count} cell{'s' * (count > 1)}"
            + ("" if token in self.na else "; --na none: not")
            + ")"
            for token, count in found.most_common(5)
        ]

    def places(self, rows: Sequence[int]) -> list[str]:
        """Return the lines of rows: looked for only when there is something to say about them."""
        if self.once or not rows:
            return super().places(rows)
        lines = [line for line, _ in islice(numbered_rows(self.path, self.written), max(rows) + 1)]
        return [f"line {lines[row]}" for row in rows]


class ParquetTable(Table):
    """A Parquet file, or a folder of them read in the order of their names; needs the extra `frames`."""

    def __init__(self, path: Path) -> None:
        self._files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        pages, rows = 0, 0
        for file in self._files:
            with _as_parquet(file):
                metadata = self._reader(file).metadata
                rows += metadata.num_rows
                groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
                pages = max([pages, *(group.total_byte_size for group in groups)])
        with _as_parquet(self._files[0]):
            given = list(self._reader(self._files[0]).schema_arrow.names)
        super().__init__(path, *sound_names(given))
        self.n_rows, self._given = rows, dict(zip(self.names, given, strict=True))

    def _reader(self, file: Path) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(file, buffer_size=2**16, pre_buffer=False)

    def frames(self, rows: int, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns in frames of at most so many rows; none goes across files."""
        from pyarrow import default_memory_pool

        given = [self._given[name] for name in names]
        for file in self._files:
            with _as_parquet(file):
                reader = self._reader(file)
                if missing := [name for name in given if name not in reader.schema_arrow.names]:
                    raise ValueError(f"it lacks the columns {', '.join(missing[:MOST_PROBLEMS])}")
                batches = reader.iter_batches(rows, columns=given)
            while True:
                with _as_parquet(file):
                    batch = next(batches, None)
                    if batch is None:
                        break
                    frame = batch.select(given).to_pandas(self_destruct=True).set_axis(list(names), axis=1)
                    del batch
                    default_memory_pool().release_unused()  # Arrow would keep it for later
                yield frame


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


class ArrayTable(Table):
    """Arrays with as many rows side by side; of an array with two axes, columns are name[0], name[1] and so on."""

    def __init__(self, path: Path, arrays: dict[str, NamedArray]) -> None:
        self._columns: dict[str, tuple[Any, int]] = {}
        for name, one in arrays.items():
            values = one.values
            if values.ndim not in (1, 2) or values.dtype.kind not in "fiubUTM":
                said = f"{name!r} holds" if name else "the array holds"
                raise ValueError(
                    f"{path}: {said} {values.dtype} of shape {values.shape}; a table of numbers is needed."
                )
            width = 1 if values.ndim == 1 else values.shape[1]
            require(BYTES_PER_NAME * width, f"The names of {width} columns of {path}", IN_PARTS)
            pattern = f"{name}[{{}}]" if name else "x{}"
            labels = [name or "x0"] if values.ndim == 1 else map(pattern.format, range(width))
            self._columns |= {label: (values, j) for j, label in enumerate(labels)}
        super().__init__(path, list(self._columns))
        self.headed = "" not in arrays
        lengths = {int(one.values.shape[0]) for one in arrays.values()}
        self.n_rows = lengths.pop() if len(lengths) == 1 else None
        chunks = [one.values.chunks for one in arrays.values() if getattr(one.values, "chunks", None)]
        self.stored_rows = max((int(one[0]) for one in chunks), default=1)
        self.stored_bytes = sum(8 * math.prod(one) for one in chunks)

    def frames(self, rows: int, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns in frames of at most so many rows."""
        import pandas as pd

        used = {id(self._columns[name][0]): self._columns[name][0] for name in names}
        lengths = sorted({int(values.shape[0]) for values in used.values()})
        if len(lengths) != 1:
            raise ValueError(f"{self.path}: the arrays must have equally many rows; found {lengths or 'no array'}.")
        for start in range(0, lengths[0], rows):
            try:
                parts = {key: np.asarray(values[start : start + rows]) for key, values in used.items()}
            except NPY_DAMAGE as error:
                raise ValueError(f"{self.path} cannot be read: {error}") from error
            columns = {name: (parts[id(self._columns[name][0])], self._columns[name][1]) for name in names}
            block = next(iter(parts.values()))
            if len(parts) == 1 and block.ndim == 2:
                yield pd.DataFrame(block[:, [j for _, j in columns.values()]], columns=list(names))
            else:
                yield pd.DataFrame({name: one if one.ndim == 1 else one[:, j] for name, (one, j) in columns.items()})
