"""What the cells of a column are: numbers, dates, one of a few texts, or gaps; and all of them as numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array
from ardea.names import printable

# What stands in cells that hold nothing (a convention: what pandas takes, and what R, SAS and spreadsheets write).
# "Na" is not among them: it is sodium.
MISSING = (
    *("", "-", "--", "?", ".", "NA", "na", "N/A", "n/a", "n.a.", "#N/A", "<NA>", "nan", "NaN", "NAN", "NULL", "null"),
    *("Null", "None", "none", "NONE", "#DIV/0!", "#VALUE!", "#REF!"),
)
# A column of at most so many different texts is one of categories (a convention; more columns than that help nobody).
MOST_LEVELS = 20
# So many problems of a file are listed; one more tells that there are others.
MOST_PROBLEMS = 10
# Names that a message lists, and that are compared letter by letter with a wrong one (conventions: a line, a second).
SHOWN_NAMES, MOST_COMPARED = 20, 5000
_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
PLAIN = rf"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}|[+-]?(?:inf|infinity|INF|Infinity|Inf)"
# 1,5 and 1.234,5: the comma stands before decimals. 1,234 and 1,234.5: it groups thousands. 1,234 alone may be either.
DECIMAL_COMMA = rf"[+-]?(?:[0-9]+,[0-9]*|,[0-9]+|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+(?:,[0-9]*)?){_EXPONENT}"
THOUSANDS = rf"[+-]?[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+(?:\.[0-9]*)?{_EXPONENT}"
ANY_NUMBER = re.compile(f"(?:{PLAIN}|{DECIMAL_COMMA}|{THOUSANDS})")
WHOLE_NUMBER = re.compile("[+-]?[0-9]+")
NUMERIC = "fiub"
Kind = Literal["numbers", "dates", "texts", "many different texts"]


class TableError(ValueError):
    """Everything that is wrong with a file, in one message.

    Attributes
    ----------
    columns, others : tuple of str
        Columns that cannot be used as they are, so that leaving them out helps; and those that can.
    """

    def __init__(
        self, path: Any, problems: Sequence[str], columns: Iterable[str] = (), others: Iterable[str] = ()
    ) -> None:
        shown = list(problems[:MOST_PROBLEMS])
        if len(problems) > MOST_PROBLEMS:
            shown.append("and more")
        super().__init__(f"{path}, {shown[0]}" if len(shown) == 1 else "\n  ".join([f"{path}:", *shown]))
        self.columns, self.others = tuple(dict.fromkeys(columns)), tuple(others)


def is_missing(cell: str, na: Iterable[str] = ()) -> bool:
    """Whether a cell holds nothing."""
    return cell in MISSING or cell in na


def is_numeric(column: Any) -> bool:
    """Whether a column of a frame holds numbers already."""
    return column.dtype.kind in NUMERIC


def stripped(column: Any, na: Iterable[str]) -> Any:
    """Return a column as texts without blanks around them, missing where nothing stands."""
    if is_numeric(column):  # codes: 1 and 1.0 are the same text
        column = column.map(lambda value: f"{value:.17g}", na_action="ignore")
    texts = column.astype("string").str.strip().str.replace("−", "-")
    return texts.mask(texts.isin([*MISSING, *na]))


def as_dates(cells: Any) -> NDArray[Any]:
    """Return texts as dates in UTC, not a time where they are none."""
    import pandas as pd

    texts = pd.Series(cells, dtype="string").str.strip()
    texts = texts.where(texts.str.match(r"[0-9]{4}(?:-|[01][0-9][0-3][0-9]$|[01][0-9][0-3][0-9]T)"))
    dates = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    found: NDArray[Any] = dates.dt.tz_localize(None).to_numpy()
    return found


def compact_dates(values: Any) -> NDArray[Any] | None:
    """Return whole numbers such as 20240331 as dates, None where some number is none.

    Examples
    --------
    >>> compact_dates(np.array([20240331, 20240401.0]))
    array(['2024-03-31T00:00:00', '2024-04-01T00:00:00'], dtype='datetime64[s]')
    >>> compact_dates(np.array([20240332])) is None
    True
    """
    numbers = np.asarray(values, dtype=float)
    known = ~np.isnan(numbers)
    # Years 1700 to 2299: what measured series bear (a convention).
    if not known.any() or not np.all((numbers[known] >= 17000101) & (numbers[known] <= 22991231)):
        return None
    if np.any(numbers[known] != np.floor(numbers[known])):
        return None
    whole = np.where(known, numbers, 0).astype(np.int64)
    year, month, day = whole // 10000, whole // 100 % 100, whole % 100
    start = (year - 1970).astype("M8[Y]").astype("M8[M]") + (month - 1)
    dates = start.astype("M8[D]") + (day - 1)
    same = (month >= 1) & (month <= 12) & (day >= 1) & (dates.astype("M8[M]") == start)
    if not same[known].all():
        return None
    return np.where(known, dates, np.datetime64("NaT")).astype("M8[s]")


def as_numbers(column: Any, mark: str | None, na: Iterable[str]) -> tuple[Array, NDArray[np.bool_]]:
    """Return a column as numbers, NaN where there is none, and where a cell holds something else.

    `mark` is what stands before decimals; without one a comma makes no number.
    """
    if is_numeric(column):
        return column.to_numpy(dtype=float), np.zeros(len(column), dtype=bool)
    texts = stripped(column, na)
    notations = {None: PLAIN, ".": f"{PLAIN}|{THOUSANDS}", ",": f"{DECIMAL_COMMA}|[+-]?[0-9]+{_EXPONENT}"}
    notation = notations[mark]
    sound = texts.str.fullmatch(notation).fillna(False).to_numpy(dtype=bool)
    if mark == ",":
        plain = texts.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    else:
        plain = texts.str.replace(",", "", regex=False)
    cells = np.where(sound, plain.to_numpy(dtype=object, na_value="nan"), "nan")
    return cells.astype(float), ~sound & texts.notna().to_numpy(dtype=bool)


def level_names(column: str, levels: Sequence[str]) -> list[str]:
    """Return the names of the columns that stand for the texts of a column: all but the first, its reference.

    Examples
    --------
    >>> level_names("colour", ["blue", "green", "red"])
    ['colour=green', 'colour=red']
    """
    return [safe_name(f"{column}={level}") for level in levels[1:]]


def indicators(column: Any, levels: Sequence[str], na: Iterable[str]) -> tuple[Array, NDArray[np.bool_]]:
    """Return 1 where a cell holds a text, for all but the first of them, NaN for gaps; and where it holds another."""
    texts = stripped(column, na)
    empty = texts.isna().to_numpy(dtype=bool)
    values = texts.to_numpy(dtype=object, na_value="")
    found = (values[:, None] == np.array(levels, dtype=object)).astype(float)
    bad = ~empty & ~found.any(axis=1)
    found[empty] = np.nan
    return found[:, 1:], bad


class Seen:
    """What was seen of one column that is not of numbers only, over all blocks."""

    def __init__(self, numbers: int = 0, most_levels: float = MOST_LEVELS) -> None:
        self.numbers, self.texts, self._most = numbers, 0, most_levels
        self.levels: set[str] = set()
        self.dates, self._dotted = True, False
        # Commas that can only stand before decimals, that can only group thousands, that could do both.
        self.decimal = self.thousands = self.either = False
        self._largest_whole = np.nan

    def add(self, column: Any, na: Iterable[str]) -> None:
        """Count the cells of one block."""
        counts = stripped(column, na).value_counts()
        cells = [str(cell) for cell in counts.index]
        numbers = [ANY_NUMBER.fullmatch(cell) is not None for cell in cells]
        texts = [cell for cell, number in zip(cells, numbers, strict=True) if not number]
        n_numbers = int(counts.to_numpy()[numbers].sum())
        self.numbers += n_numbers
        self.texts += int(counts.sum()) - n_numbers
        self.dates = self.dates and not np.isnat(as_dates(texts)).any()
        if len(self.levels) <= self._most:
            self.levels.update(cells if len(cells) <= self._most else cells[: MOST_LEVELS + 1])
        for cell, number in zip(cells, numbers, strict=True):
            if number:
                self._add_number(cell)

    def _add_number(self, cell: str) -> None:
        if not re.fullmatch(PLAIN, cell):
            decimal, grouped = bool(re.fullmatch(DECIMAL_COMMA, cell)), bool(re.fullmatch(THOUSANDS, cell))
            self.decimal |= decimal and not grouped
            self.thousands |= grouped and not decimal
            self.either |= decimal and grouped
        elif WHOLE_NUMBER.fullmatch(cell):
            self._largest_whole = np.fmax(self._largest_whole, abs(float(cell)))
        else:
            self._dotted |= "." in cell

    @property
    def kind(self) -> Kind:
        """What the column is, by most of its cells: one text more than numbers may be a slip."""
        if self.texts - self.numbers <= 1 and not (self.texts and not self.numbers):
            return "numbers"
        if self.dates and not self.numbers:
            return "dates"
        return "texts" if len(self.levels) <= self._most else "many different texts"

    def mark(self, of_file: str | None, separator: str | None) -> str:
        """Return what stands before decimals in the column.

        What can only be one of the two decides, then what other columns of the file say. Else 12,345 beside 999 is a
        thousand, since in a column of decimals some would have other than three digits; and else commas stand before
        decimals, unless they also separate the columns.
        """
        if self.decimal != self.thousands:
            return "," if self.decimal else "."
        if self._dotted or not self.either:
            return "."
        return of_file or ("." if self._largest_whole < 1000 or separator == "," else ",")


class Columns:
    """Columns of a table as numbers: texts of few kinds encoded, commas in numbers read as the whole column tells.

    Parameters
    ----------
    table : Table
        The file.
    used : list of str
        Columns that are asked for.
    categorical : list of str, optional
        Columns to encode. By default those of at most 20 different texts.
    levels : dict of str to list of str, optional
        Texts of columns that were encoded before.

    Attributes
    ----------
    names : list of str
        One for every column of numbers: of an encoded one, for every text but the first, its reference.
    levels : dict of str to list of str
        The texts of columns that are encoded.
    remarks : list of str
        What was inferred.
    """

    def __init__(
        self,
        table: Any,
        used: Sequence[str],
        categorical: Sequence[str] | None = None,
        levels: dict[str, list[str]] | None = None,
    ) -> None:
        self._table, self._used, self._categorical = table, list(used), categorical
        self.levels = {name: texts for name, texts in (levels or {}).items() if name in used}
        self.seen = {name: Seen(most_levels=np.inf) for name in categorical or ()}
        self._marks: dict[str, str] = {}
        self._n_seen = 0
        self.remarks: list[str] = []

    def look(self, frame: Any) -> None:
        """Count what the cells of a block are."""
        for name, kind in zip(self._used, frame.dtypes.to_numpy(), strict=True):
            if name not in self.seen and kind.kind not in NUMERIC:
                self.seen[name] = Seen(self._n_seen)
        for name, one in self.seen.items():
            one.add(frame[name], self._table.na)
        self._n_seen += len(frame)

    def settle(self) -> None:
        """Decide what every column is; raise TableError where some cannot be used."""
        unusable = []
        for name, one in self.seen.items():
            wanted = one.kind == "texts" if self._categorical is None else name in self._categorical
            if wanted and name not in self.levels:
                self.levels[name] = sorted(one.levels)
                self._remark_on_texts(name)
            elif name not in self.levels and one.kind != "numbers":
                unusable.append(name)
        if unusable:
            said = [f"column {name!r} holds {self.seen[name].kind}, not numbers" for name in unusable]
            raise TableError(self._table.path, said, unusable, [one for one in self._used if one not in unusable])
        self._settle_commas({name: one for name, one in self.seen.items() if name not in self.levels})

    def _remark_on_texts(self, name: str) -> None:
        texts, names = self.levels[name], self.names_of(name)
        if not names:
            self.remarks.append(f"column {name!r} is the same in every row and was left out")
            return
        shown = ", ".join(names[:5]) + ", …" * (len(names) > 5)
        self.remarks.append(f"column {name!r} holds {len(texts)} texts: encoded as {shown}, against {texts[0]!r}")

    def _settle_commas(self, seen: dict[str, Seen]) -> None:
        strict = {"," if one.decimal else "." for one in seen.values() if one.decimal != one.thousands}
        of_file = self._table.decimal or (strict.pop() if len(strict) == 1 else None)
        for name, one in seen.items():
            self._marks[name] = self._table.told_decimal or one.mark(of_file, self._table.separator)
            if one.decimal or one.thousands or one.either:
                read = "stand before decimals" if self._marks[name] == "," else "group thousands"
                self.remarks.append(f"commas in column {name!r} {read}")

    def names_of(self, column: str) -> list[str]:
        """Return the names of the columns of numbers that one column gives."""
        return level_names(column, self.levels[column]) if column in self.levels else [column]

    @property
    def names(self) -> list[str]:
        """Return the names of all columns of numbers."""
        return [name for column in self._used for name in self.names_of(column)]

    def numbers(self, frame: Any, first: int = 0) -> Array:
        """Return a block that begins at row `first` as numbers, gaps as NaN; raise TableError for other cells."""
        texts = any(kind.kind not in NUMERIC for kind in frame.dtypes.to_numpy())
        if not texts and not self.levels:
            return np.asarray(frame.to_numpy(dtype=float))
        parts, problems = [], []
        for name in self._used:
            values, bad = self._converted(frame[name], name)
            parts.append(values)
            for row in np.flatnonzero(bad):
                problems.append((first + int(row), name, f"{str(frame[name].iloc[row])!r} is {self._trouble(name)}"))
        if problems:
            raise self.wrong(problems)
        return np.column_stack(parts)

    def _converted(self, column: Any, name: str) -> tuple[Array, NDArray[np.bool_]]:
        if name in self.levels:
            return indicators(column, self.levels[name], self._table.na)
        return as_numbers(column, self._marks.get(name), self._table.na)

    def _trouble(self, name: str) -> str:
        known = ", ".join(self.levels.get(name, []))
        return f"none of the texts that are known: {known}" if known else "not a number"

    def wrong(self, cells: list[tuple[int, str, str]]) -> TableError:
        """Return the error of cells that cannot be used: row, column and what is wrong."""
        columns = {name for _, name, _ in cells}
        listed = placed(self._table, cells)
        if all(trouble.endswith("is not a number") for _, _, trouble in cells):  # then rows may be of other length, too
            found = self._table.problems([name for name in self._used if name not in self.levels])
            listed = found if len(found) >= len(listed) else listed
        return TableError(self._table.path, listed, columns, [name for name in self._used if name not in columns])


def placed(table: Any, cells: list[tuple[int, str, str]]) -> list[str]:
    """Return what is wrong with cells (row, column, trouble), each with its place; one more than are shown."""
    shown = sorted(cells)[: MOST_PROBLEMS + 1]
    places = table.places([row for row, _, _ in shown])
    return [f"{place}, column {name!r}: {trouble}" for place, (_, name, trouble) in zip(places, shown, strict=True)]


# Columns by name -----------------------------------------------------------------------------------------------------


def safe_name(name: str) -> str:
    r"""Return a name in one line that a terminal can print: control characters are written as escapes.

    Examples
    --------
    >>> safe_name("Temp\n (°C)"), safe_name("a\x1b[31m")
    ('Temp (°C)', 'a\\x1b[31m')
    """
    return printable(" ".join(name.split()))


def sound_names(fields: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names that are there, printable and different, and what had to be changed.

    Examples
    --------
    >>> sound_names(["a", "", "a"])[0]
    ['a', 'x1', 'a.2']
    """
    remarks, names, taken, used = [], [], set(fields), set[str]()
    for j, given in enumerate(fields):
        name = safe_name(given) or f"x{j}"
        if name in used or (name != given and name in taken):
            name = next(f"{name}.{n}" for n in range(2, len(fields) + 2) if f"{name}.{n}" not in taken)
        names.append(name)
        used.add(name)
        taken.add(name)
        if name != given.strip():
            remarks.append(f"column {j + 1} is named {name!r} in place of {given!r}")
    if len(remarks) > 3:  # a convention: more lines would bury the rest
        remarks = [f"{len(remarks)} columns without a usable name were renamed, such as {remarks[0]}"]
    return names, remarks


def named(entry: str | int, names: Sequence[str], where: str) -> str:
    """Return a column given by name, or by number (from 0; −1 is the last) where no column bears it as a name.

    Examples
    --------
    >>> named("price", ["area", "price"], "a.csv has no column"), named("-2", ["area", "price"], "")
    ('price', 'area')
    """
    if entry in names:
        return str(entry)
    if not isinstance(entry, bool) and re.fullmatch("-?[0-9]{1,9}", str(entry)):
        number = int(entry)
        if -len(names) <= number < len(names):
            return names[number]
    raise unknown(entry, names, where)


def split_names(text: str) -> list[str]:
    """Return the names in a list with commas between them; quotes keep a name with commas together.

    Examples
    --------
    >>> split_names('x, "Residence time, s",z')
    ['x', 'Residence time, s', 'z']
    """
    return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]


def joined_names(names: Iterable[str]) -> str:
    """Return names as one list that `split_names` takes apart again.

    Examples
    --------
    >>> joined_names(["Date", "Residence time, s"])
    'Date,"Residence time, s"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def listed(texts: Iterable[str] | None, names: Sequence[str], where: str) -> list[str]:
    """Return the columns that lists name; a text that is a column's name as a whole is that column.

    Examples
    --------
    >>> listed(["time, s", "b,-1"], ["time, s", "b", "c"], "")
    ['time, s', 'b', 'c']
    """
    found: list[str] = []
    for text in texts or []:
        parts = [text] if text in names else split_names(text)
        found += [named(part, names, where) for part in parts]
    return found


def unknown(name: str | int, known: Iterable[str], where: str) -> ValueError:
    """Return the error of a name that a file does not have, with the names that come closest.

    Examples
    --------
    >>> str(unknown("prize", ["price", "area"], "a.csv has no column"))
    "a.csv has no column 'prize'. Did you mean 'price'? There are price, area."
    """
    names = list(known)
    close = _closest(str(name), names)
    meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    return ValueError(f"{where} {name!r}.{meant} There are {shown or 'none'}.")


def _closest(name: str, names: Sequence[str]) -> list[str]:
    """Return up to three names that differ in case only, or contain it or lie in it, or are spelt much alike."""
    small = name.strip().lower()
    same = [one for one in names if one.lower() == small]
    part = [one for one in names if small and (small in one.lower() or one.lower() in small)]
    lowered = {one.lower(): one for one in reversed(names)}
    alike = [lowered[one] for one in get_close_matches(small, list(lowered)[:MOST_COMPARED], 3)]
    return same or list(dict.fromkeys([*(part if len(small) > 1 else []), *alike]))[:3]
