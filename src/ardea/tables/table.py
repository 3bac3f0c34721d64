"""A table in a file, whatever its format: columns by name, rows in frames, and all that is wrong in one message."""

from __future__ import annotations

import csv
import io
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from ardea.names import printable

# Names that a message lists, and that are compared letter by letter with a wrong one (conventions: a line, a second).
SHOWN_NAMES, MOST_COMPARED = 20, 5000
# So many problems of a file are listed; one more tells that there are others.
MOST_PROBLEMS = 10
DEFAULT_MEMORY = "1 GB"
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
# More is as good as no bound: what a signed 64-bit number of bytes holds, halved.
MOST_MEMORY = 2**62
# What stands in cells that hold nothing (a convention: what pandas takes, and what R, SAS and spreadsheets write).
# "Na" is not among them: it is sodium.
MISSING = (
    *("", "-", "--", "?", ".", "NA", "na", "N/A", "n/a", "n.a.", "#N/A", "<NA>", "nan", "NaN", "NAN", "NULL", "null"),
    *("Null", "None", "none", "NONE", "#DIV/0!", "#VALUE!", "#REF!"),
)
# Of rows held as a whole: the frame, X, and two copies while it is worked on; a text as a Python object, measured.
BYTES_PER_NUMBER, BYTES_PER_TEXT = 32, 100


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
    that are wrong, where taking them as empty helps. `runs` are columns of few texts, which may tell runs apart.
    `lines` are those that are in the way of all others.
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
    ) -> None:
        shown = [*problems[:MOST_PROBLEMS], *(["and more"] if len(problems) > MOST_PROBLEMS else [])]
        super().__init__(f"{path}, {shown[0]}" if len(shown) == 1 else "\n  ".join([f"{path}:", *shown]))
        self.columns, self.others, self.tokens = tuple(dict.fromkeys(columns)), tuple(others), tuple(tokens)
        self.runs, self.lines = tuple(runs), tuple(lines)


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
    other_sheets: Sequence[str] = ()
    unnamed: Collection[str] = ()  # columns whose name was empty

    def __init__(self, path: Path, names: list[str], remarks: Sequence[str] = (), na: Sequence[str] = ()) -> None:
        self.path, self.names, self.remarks, self.na = path, names, list(remarks), tuple(na)
        told = {one for one in na if one != "none"}
        self.empty = {"", *told} if "none" in na else {*MISSING, *told}  # what stands in cells that hold nothing
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
        return listed(texts, self.names, f"{self.path} has no column")

    def target(self, entry: str | int) -> str:
        """Return the column to explain, by name or number."""
        try:
            return self.column(entry)
        except ValueError as error:
            line = next((line for line, row in islice(self.numbered_rows(), MOST_COMPARED) if row[0] == entry), None)
            told = (
                [] if line is None else [f"Line {line} begins with it: if its rows are columns, transpose the table."]
            )
            told += [f"Other sheets (--sheet) are {', '.join(self.other_sheets)}."] if self.other_sheets else []
            raise ValueError(" ".join([str(error), *told])) from error

    def numbered_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows of a text as they are written, each with the number of its first line; of others none."""
        return iter(())

    def placed(self, cells: Sequence[tuple[int, str, str]]) -> list[str]:
        """Return what is wrong with cells (row, column, trouble), each with its place; one more than are shown."""
        shown = sorted(cells)[: MOST_PROBLEMS + 1]
        lines = [line for line, _ in islice(self.numbered_rows(), max((row + 1 for row, _, _ in shown), default=0))]
        places = [f"line {lines[row]}" if lines else f"row {row}" for row, _, _ in shown]
        return [f"{place}, column {name!r}: {trouble}" for place, (_, name, trouble) in zip(places, shown, strict=True)]


# Names ----------------------------------------------------------------------------------------------------------------


def safe_name(name: str) -> str:
    """Return a name in one line that a terminal can print: control characters are written as escapes."""
    return printable(" ".join(name.split()))


def shortened(names: Sequence[str], most: int = 5) -> str:
    """Return the first names of a list, with quotes around those that have a comma."""
    shown = [repr(name) if "," in name else name for name in names[:most]]
    return ", ".join(shown) + ", …" * (len(names) > most)


def sound_names(fields: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names that are there, printable and different, and what had to be changed.

    Of a name that several columns bear none keeps it, so that nobody means one of them and gets another.

    Examples
    --------
    >>> sound_names(["a", "b", "a"])[0]
    ['a.1', 'b', 'a.2']
    """
    safe = [safe_name(given) or f"x{j}" for j, given in enumerate(fields)]
    counts, seen, taken, remarks, names = Counter(safe), Counter[str](), set(safe), [], []
    for j, (given, name) in enumerate(zip(fields, safe, strict=True)):
        if counts[name] > 1:
            seen[name] = next(n for n in count(seen[name] + 1) if f"{name}.{n}" not in taken)
            name = f"{name}.{seen[name]}"
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
    if not isinstance(entry, bool) and re.fullmatch("-?[0-9]{1,9}", str(entry)):
        number = int(entry)
        if -len(names) <= number < len(names):
            return names[number]
    raise unknown(entry, names, where)


def joined_names(names: Iterable[str]) -> str:
    """Return names as one list that `listed` takes apart again."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def listed(texts: Iterable[str] | None, names: Sequence[str], where: str) -> list[str]:
    """Return the columns that lists name; quotes, or being a name as a whole, keep one with commas together."""
    found: list[str] = []
    for text in texts or []:
        parts = [text] if text in names else next(csv.reader([text], skipinitialspace=True), [])
        found += [named(part.strip(), names, where) for part in parts]
    return found


def unknown(name: str | int, known: Iterable[str], where: str) -> ValueError:
    """Return the error of a name that a file does not have, with the names that come closest."""
    names = list(known)
    close = _closest(str(name), names)
    meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return ValueError(f"{where} {name!r}.{meant} There are {shortened(names, SHOWN_NAMES) or 'none'}.")


def _closest(name: str, names: Sequence[str]) -> list[str]:
    """Return up to three names that differ in case or a number only, or contain it, lie in it, or are spelt alike."""
    small = name.strip().lower()
    same = [one for one in names if re.sub(r"\.[0-9]+$", "", one.lower()) == small][:3]
    part = [one for one in names if small and (small in one.lower() or one.lower() in small)]
    lowered = {one.lower(): one for one in reversed(names)}
    alike = [lowered[one] for one in get_close_matches(small, list(lowered)[:MOST_COMPARED], 3)]
    return same or list(dict.fromkeys([*(part if len(small) > 1 else []), *alike]))[:3]
