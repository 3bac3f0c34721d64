"""A table in a file, whatever its format: columns by name, rows in frames, and all that is wrong in one message.

Formats of their own are read here, those of text in `reading`: NPY, NPZ, NetCDF and Zarr (never unpickled), Parquet
and Excel.
"""

from __future__ import annotations

import csv
import io
import math
import re
import zipfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ardea.core.problem import require
from ardea.names import printable
from ardea.tables.empties import MISSING, Codes

# Names that a message lists, and that are compared letter by letter with a wrong one (conventions: a line, a second).
SHOWN_NAMES, MOST_COMPARED = 20, 5000
# So many problems of a file are listed; one more tells that there are others.
MOST_PROBLEMS = 10
DEFAULT_MEMORY = "1 GB"
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
# More is as good as no bound: what a signed 64-bit number of bytes holds, halved.
MOST_MEMORY = 2**62
# Of rows held as a whole: the frame, X, and two copies while it is worked on; a text as a Python object, measured.
BYTES_PER_NUMBER, BYTES_PER_TEXT = 32, 100
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # as pandas calls it in Parquet files
PARQUET, SPREADSHEETS = (".parquet", ".pq"), (".xlsx", ".xlsm")
ARRAYS = (".npz", ".nc", ".nc4", ".cdf", ".zarr")
IN_PARTS = "Give a part of it, or a table that can be read in blocks (CSV, NPY, Parquet)."
# A name as a string in a list, beside its letters (measured with sys.getsizeof).
BYTES_PER_NAME = 80


def bytes_of(memory: int | str) -> int:
    """Return a number of bytes given as text."""
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[0-9]+)?)\s*([a-z]*)\s*", memory, re.IGNORECASE)
        unit = UNITS.get(match[2].upper()) if match else None
        if match is None or unit is None:
            raise ValueError(f"memory={memory!r} is not understood: give bytes, or text such as '500 MB' or '2 GiB'.")
        memory = int(min(float(match[1]) * unit, MOST_MEMORY))
    if isinstance(memory, bool) or not isinstance(memory, int | np.integer) or memory <= 0:
        raise ValueError(f"memory must be above zero; got {memory!r}.")
    return int(memory)


class TableError(ValueError):
    """Everything that is wrong with a file, in one message.

    `columns` cannot be used as they are, so that leaving them out helps; `others` can. `tokens` stand in the few cells
    that are wrong, where taking them as empty helps. `runs` are columns of texts, which may tell runs apart.
    `lines` are those that are in the way of all others. `clocks` are columns of dates or of times of day. In
    `zone` clocks are set back where times of the file go back. `useless` are columns that neither helps,
    and `space` one that may be the coordinate of a field.
    """

    def __init__(
        self,
        path: Any,
        problems: Sequence[str],
        columns: Iterable[str] = (),
        others: Iterable[str] = (),
        tokens: Iterable[str] = (),
        runs: Iterable[str] = (),
        lines: Iterable[int] = (),
        clocks: Iterable[str] = (),
        zone: str | None = None,
        useless: Iterable[str] = (),
        space: str | None = None,
    ) -> None:
        self.path, self.problems = path, tuple(problems)
        shown = [*problems[:MOST_PROBLEMS], *(["and more"] if len(problems) > MOST_PROBLEMS else [])]
        super().__init__(f"{path}, {shown[0]}" if len(shown) == 1 else "\n  ".join([f"{path}:", *shown]))
        self.columns, self.others, self.tokens = tuple(dict.fromkeys(columns)), tuple(others), tuple(tokens)
        self.runs, self.lines, self.clocks, self.zone = tuple(runs), tuple(lines), tuple(clocks), zone
        self.useless, self.space = tuple(useless), space


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
    remarks : list of str
        What was inferred about the file.
    """

    headed = True
    n_rows: int | None = None
    once = False  # a pipe: its rows can be read only once
    stored_rows, stored_bytes = 1, 0  # what is stored together: frames of a multiple of these rows are read faster
    separator: str | None = None  # between fields of a text; None: blanks
    decimal: str | None = None  # what stands before decimals, where the beginning of a text leaves no doubt
    told_decimal: str | None = None
    keep_dots = False  # whether 1.234 of a text stays as it is written, where dots may group thousands
    zone: str | None = None  # of dates that name none
    codes: Codes | None = None  # of no value, where numbers are held as numbers
    other_sheets: Sequence[str] = ()
    unnamed: Collection[str] = ()  # columns whose name was empty

    def __init__(self, path: Path, names: list[str], remarks: Sequence[str] = (), na: Sequence[str] = ()) -> None:
        self.path, self.names, self.remarks, self.na = path, names, list(remarks), tuple(na)
        told = {one for one in na if one != "none"}
        self.empty = {"", *told} if "none" in na else {*MISSING, *told}  # what stands in cells that hold nothing
        self.units: dict[str, str] = {}  # of columns, where a row below the names holds them
        self.notations = Counter[str]()  # how the numbers at the beginning of a text are written
        self.width = len(names)  # fields of a row
        self.bytes_per_row = 16.0 * len(names)  # while it is read

    @abstractmethod
    def frames(self, rows: int, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns in frames of at most so many rows."""

    def column(self, entry: str | int) -> str:
        """Return a column by name or number."""
        return named(entry, self.names, f"{self.path} has no column")

    def columns(self, texts: Iterable[str] | None) -> list[str]:
        """Return the columns that lists name."""
        return all_named(texts, self.names, f"{self.path} has no column")

    def target(self, entry: str | int) -> str:
        """Return the column to explain, by name or number."""
        try:
            return self.column(entry)
        except Refused as error:
            lines = [line for line, row in islice(self.numbered_rows(), MOST_COMPARED) if row[0] == entry][:1]
            told = [f"Line {line} begins with it: if its rows are columns, transpose the table." for line in lines]
            told += [f"Other sheets (--sheet) are {', '.join(self.other_sheets)}."] if self.other_sheets else []
            raise Refused(error.said, [" ".join([*error.known, *told])]) from error

    def unmet(self) -> list[str]:
        """Return which lines to leave out, and cells to take as empty, a table does not have, once it was read."""
        return self.codes.unmet() if self.codes else []

    def numbered_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows of a text as they are written, each with the number of its first line; of others none."""
        return iter(())

    def placed(self, cells: Sequence[tuple[int, str, str]]) -> list[str]:
        """Return what is wrong with cells (row, column, trouble), each with its place; one more than are shown."""
        shown = sorted(cells)[: MOST_PROBLEMS + 1]
        lines = [line for line, _ in islice(self.numbered_rows(), max((row + 1 for row, _, _ in shown), default=0))]
        places = [f"line {lines[row]}" if row < len(lines) else f"row {row}" for row, _, _ in shown]
        return [f"{place}, column {name!r}: {trouble}" for place, (_, name, trouble) in zip(places, shown, strict=True)]


# Names ----------------------------------------------------------------------------------------------------------------


def safe_name(name: str) -> str:
    """Return a name in one line that a terminal can print: control characters are written as escapes."""
    return printable(" ".join(name.split()))


def composed(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return names, each as known ones spell it: ä is one letter, or an a and two dots, as some systems store it."""
    spelt = {normalize("NFC", name): name for name in known}
    return [spelt.get(normalize("NFC", name), name) for name in names]


def shortened(names: Sequence[str], most: int = 5) -> str:
    """Return the first names of a list, with quotes around those that have a comma."""
    shown = [repr(name) if "," in name else name for name in names[:most]]
    return ", ".join(shown) + f" and {len(names) - most} more" * (len(names) > most)


def sound_names(fields: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names that are there, printable and different, and what had to be changed.

    Of a name that several columns bear none keeps it, so that nobody means one of them and gets another; nor is it
    numbered as elsewhere: in pandas the second of two columns `a` is `a.1`.

    Examples
    --------
    >>> sound_names(["a", "b", "a"])[0]
    ['a#1', 'b', 'a#2']
    """
    safe = [safe_name(given) or f"x{j}" for j, given in enumerate(fields)]
    counts, seen, taken, remarks, names = Counter(safe), Counter[str](), set(safe), [], []
    for j, (given, name) in enumerate(zip(fields, safe, strict=True)):
        if counts[name] > 1:
            seen[name] = next(n for n in count(seen[name] + 1) if f"{name}#{n}" not in taken)
            name = f"{name}#{seen[name]}"
        names.append(name)
        taken.add(name)
        if name != given.strip():
            remarks.append(f"column {j} (counted from 0) is named {name!r} in place of {given!r}")
    if len(remarks) > 3:  # a convention: more lines would bury the rest
        remarks = [f"{len(remarks)} columns without a usable name were renamed, such as {remarks[0]}"]
    return names, remarks


def named(entry: str | int, names: Sequence[str], where: str) -> str:
    """Return a column given by name, or by number (from 0; −1 is the last) where no column bears it as a name."""
    if entry in names:
        return str(entry)
    if (spelt := composed([str(entry)], names)[0]) in names:
        return spelt
    if not isinstance(entry, bool) and re.fullmatch("-?[0-9]{1,9}", str(entry)):
        number = int(entry)
        if -len(names) <= number < len(names):
            return names[number]
    raise unknown(entry, names, where)


def joined_names(names: Iterable[str]) -> str:
    """Return names as one list that `all_named` takes apart again."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def all_named(texts: Iterable[str] | None, names: Sequence[str], where: str) -> list[str]:
    """Return the columns that lists name; quotes, or being a name as a whole, keep one with commas together."""
    found: list[str] = []
    for text in texts or []:
        parts = [text] if text in names else next(csv.reader([text], skipinitialspace=True), [])
        found += all_of(*(partial(named, part.strip(), names, where) for part in parts))
    return found


class Refused(ValueError):
    """What is wrong with arguments, in one message: a line for each, and which names there are."""

    def __init__(self, said: Iterable[str], known: Iterable[str]) -> None:
        self.said, self.known = tuple(dict.fromkeys(said)), tuple(dict.fromkeys(known))
        super().__init__((" " if len(self.said) == 1 else "\n").join([*self.said, *self.known]))


def all_of(*asked: Callable[[], Any]) -> list[Any]:
    """Return what all of several functions return; where some raise ValueError, raise one that says it all."""
    found, wrong = [], list[Refused]()
    for one in asked:
        try:
            found.append(one())
        except ValueError as error:
            wrong.append(error if isinstance(error, Refused) else Refused([str(error)], []))
    if wrong:
        raise Refused((said for one in wrong for said in one.said), (known for one in wrong for known in one.known))
    return found


def unknown(name: str | int, known: Iterable[str], where: str) -> Refused:
    """Return the error of a name that a file does not have, with the names that come closest."""
    names = list(known)
    close = _closest(str(name), names)
    meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return Refused([f"{where} {name!r}.{meant}"], [f"There are {shortened(names, SHOWN_NAMES) or 'none'}."])


def _closest(name: str, names: Sequence[str]) -> list[str]:
    """Return up to three names that differ in case or a number only, or contain it, lie in it, or are spelt alike."""
    small = name.strip().lower()
    same = [one for one in names if re.sub(r"[.#][0-9]+$", "", one.lower()) == small][:3]
    part = [one for one in names if small and (small in one.lower() or one.lower() in small)]
    lowered = {one.lower(): one for one in reversed(names)}
    alike = [lowered[one] for one in get_close_matches(small, list(lowered)[:MOST_COMPARED], 3)]
    return same or list(dict.fromkeys([*(part if len(small) > 1 else []), *alike]))[:3]


# Formats of their own -------------------------------------------------------------------------------------------------


@contextmanager
def readable(path: Path, kind: str) -> Iterator[None]:
    """Turn what the packages behind a format raise on damaged files, errors of many kinds, into one that names it."""
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        raise ValueError(f"{path} cannot be read as {kind}: {error}") from error


def package(name: str, extra: str) -> Any:
    """Return a package that comes with an extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"This format needs {name}: pip install 'ardea[{extra}]'.") from error


@dataclass(frozen=True)
class NamedArray:
    """An array, which may be read only when it is sliced, and the names of its axes where the file tells them."""

    values: Any
    axes: tuple[str, ...] | None = None


def read_arrays(path: Path) -> dict[str, NamedArray]:
    """Return the arrays of an NPZ, NetCDF or Zarr file by name, or the one of an NPY file under the name ""."""
    readers: dict[str, Callable[[Path], dict[str, Any]]]
    readers = {".npy": lambda path: {"": NpyFile(path)}, ".npz": _archive, ".zarr": _zarr_arrays}
    reader = readers.get(path.suffix.lower())
    arrays = {} if reader is None else reader(path)
    if reader is None or (reader is _zarr_arrays and all(map(_dimensions, arrays.values()))):
        return _dataset(path)
    return {name: NamedArray(values) for name, values in arrays.items()}


class NpyFile:
    """A two-dimensional array in NumPy's format, read in slices of rows; never unpickled.

    Not mapped into memory: a map counts against limits on addresses as a whole, and a file that is cut while it is
    mapped kills the process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with readable(path, "an array of numbers"), path.open("rb") as file:
            version = npy.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"it is of version {version[0]}.{version[1]}, which tables of numbers do not need")
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, self._by_columns, self.dtype = read(file)
            if self.dtype.hasobject or any(type(size) is not int or size < 0 for size in self.shape):
                raise ValueError(f"it holds objects, which could run code, or its shape is {self.shape}")
            self._start, self.ndim = file.tell(), len(self.shape)
            promised, there = math.prod(self.shape) * self.dtype.itemsize, path.stat().st_size - self._start
            if promised > there:
                raise ValueError(f"its {promised} bytes of numbers are cut short at {there}")

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        width = math.prod(self.shape[1:])
        with self.path.open("rb") as file:
            if not self._by_columns or self.ndim == 1:
                return self._stored(file, start * width, (stop - start) * width).reshape(stop - start, *self.shape[1:])
            columns = [self._stored(file, j * self.shape[0] + start, stop - start) for j in range(width)]
            return np.column_stack(columns)

    def _stored(self, file: Any, first: int, count: int) -> NDArray[Any]:
        """Return numbers as they follow each other in the file."""
        file.seek(self._start + first * self.dtype.itemsize)
        numbers = np.fromfile(file, self.dtype, count)
        if numbers.size < count:
            raise ValueError("it was cut short while it was read")
        return numbers


def _archive(path: Path) -> dict[str, NDArray[Any]]:
    """Return all arrays of an NPZ file by name; never unpickled."""
    with readable(path, "arrays of numbers"), path.open("rb") as file:
        content = np.load(file, allow_pickle=False)
        if isinstance(content, np.ndarray):
            raise ValueError("it holds one array without a name; let its name end in .npy")
        entries = content.zip.infolist()
        if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
            raise ValueError("it is not packed as NumPy does")
        # An entry never gives more bytes than the archive says it has.
        require(sum(entry.file_size for entry in entries), f"{path}, unpacked,", IN_PARTS)
        arrays = {name: content[name] for name in content.files}
        for name, entry in arrays.items():
            if not isinstance(entry, np.ndarray) or (entry.ndim > 1 and not entry.size):
                raise ValueError(f"the entry {name!r} is no array, or empty")
        return arrays


def _zarr_arrays(path: Path) -> dict[str, Any]:
    """Open a Zarr array (under the name "") or the arrays of a group; any that would be unpickled is refused."""
    zarr = package("zarr", "fields")
    with readable(path, "Zarr"):
        store: Any = zarr.open(path, mode="r")
        arrays = {"": store} if hasattr(store, "shape") else dict(sorted(store.arrays()))
        codecs = [codec for array in arrays.values() for codec in (*array.filters, *array.compressors)]
        if any("pickle" in f"{type(codec).__module__} {type(codec).__name__}".lower() for codec in codecs):
            raise ValueError("it holds pickled data, which is never read: it could run code.")
        return arrays


def _dimensions(array: Any) -> Any:
    """Return the names of the axes of a Zarr array, which xarray writes; None where there are none."""
    return getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")


def _dataset(path: Path) -> dict[str, NamedArray]:
    """Return the variables of a NetCDF or Zarr file as xarray decodes them: fill values are gaps, times are dates."""
    engine: dict[str, Any] = {"engine": "zarr", "consolidated": False} if path.suffix.lower() == ".zarr" else {}
    xarray = package("xarray", "fields")
    with readable(path, "NetCDF or Zarr"), xarray.open_dataset(path, **engine) as data:
        require(data.nbytes, f"{path} as a whole", IN_PARTS)
        variables = data.variables.items()
        return {str(name): NamedArray(np.asarray(one.values), tuple(map(str, one.dims))) for name, one in variables}


class ArrayTable(Table):
    """Arrays with as many rows side by side; of an array with two axes, columns are name[0], name[1] and so on."""

    def __init__(self, path: Path, arrays: dict[str, NamedArray], na: Sequence[str] = ()) -> None:
        self._columns: dict[str, tuple[Any, int]] = {}
        for name, one in arrays.items():
            values = one.values
            if values.ndim not in (1, 2) or values.dtype.kind not in "fiubUTM":
                said = f"{name!r} holds" if name else "the array holds"
                needed = "a table of numbers is needed"
                raise ValueError(f"{path}: {said} {values.dtype} of shape {values.shape}; {needed}.")
            width = 1 if values.ndim == 1 else values.shape[1]
            require(BYTES_PER_NAME * width, f"The names of {width} columns of {path}", IN_PARTS)
            pattern = f"{name}[{{}}]" if name else "x{}"
            labels = [name or "x0"] if values.ndim == 1 else map(pattern.format, range(width))
            self._columns |= {label: (values, j) for j, label in enumerate(labels)}
        super().__init__(path, list(self._columns), na=na)
        self.codes = Codes(na) if na else None
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
            with readable(self.path, "arrays of numbers"):
                parts = {key: np.asarray(values[start : start + rows]) for key, values in used.items()}
            columns = {name: (parts[id(self._columns[name][0])], self._columns[name][1]) for name in names}
            block = next(iter(parts.values()))
            if len(parts) == 1 and block.ndim == 2:
                frame = pd.DataFrame(block[:, [j for _, j in columns.values()]], columns=list(names))
            else:
                frame = pd.DataFrame({name: one if one.ndim == 1 else one[:, j] for name, (one, j) in columns.items()})
            yield frame if self.codes is None else self.codes.emptied_frame(frame)


class ParquetTable(Table):
    """A Parquet file, or a folder of them read in the order of their names; needs the extra `frames`."""

    def __init__(self, path: Path, na: Sequence[str] = ()) -> None:
        self._files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        rows = 0
        for file in reversed(self._files):
            with readable(file, "Parquet"):
                reader = self._reader(file)
                rows += reader.metadata.num_rows
                schema = reader.schema_arrow
        # What pandas calls an index without a name says where rows stood before; dates tell when they were taken.
        unnamed = [one.name for one in schema if UNNAMED_INDEX.fullmatch(one.name)]
        numbers = [one for one in unnamed if not str(schema.field(one).type).startswith(("timestamp", "date"))]
        given = [name for name in schema.names if name not in numbers]
        super().__init__(path, *sound_names(["index" if name in unnamed else name for name in given]), na)
        self.remarks += ["the index of the frame, which has no name, was left out"] if numbers else []
        self.codes = Codes(na) if na else None
        self.n_rows, self._given = rows, dict(zip(self.names, given, strict=True))

    def _reader(self, file: Path) -> Any:
        package("pyarrow", "frames")
        from pyarrow import parquet

        return parquet.ParquetFile(file, buffer_size=2**16, pre_buffer=False)

    def frames(self, rows: int, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns in frames of at most so many rows; none goes across files."""
        given = [self._given[name] for name in names]
        for file in self._files:
            with readable(file, "Parquet"):  # errors of whoever takes the frames do not pass through here
                reader = self._reader(file)
                if missing := [name for name in given if name not in reader.schema_arrow.names]:
                    raise ValueError(f"it lacks the columns {', '.join(missing[:MOST_PROBLEMS])}")
                for batch in reader.iter_batches(rows, columns=given):
                    columns = batch.select(given).replace_schema_metadata(None)  # an index is a column like others
                    frame = columns.to_pandas(self_destruct=True).set_axis(list(names), axis=1)
                    del columns
                    del batch
                    yield frame if self.codes is None else self.codes.emptied_frame(frame)
            package("pyarrow", "frames").default_memory_pool().release_unused()  # Arrow would keep it for later
