"""What the cells of a column are: numbers, dates, one of a few texts, or gaps."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array

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
Kind = Literal["number", "category", "text", "date"]


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
    return column.dtype.kind in "fiub"


def stripped(column: Any, na: Iterable[str]) -> Any:
    """Return a column as texts without blanks around them, missing where nothing stands."""
    if is_numeric(column):  # codes: 1 and 1.0 are the same text
        column = column.map(lambda value: f"{value:.17g}", na_action="ignore")
    texts = column.astype("string").str.strip().str.replace("−", "-")
    return texts.mask(texts.isin([*MISSING, *na]))


@dataclass
class Seen:
    """What was seen of one column that is not of numbers only, over all blocks.

    Attributes
    ----------
    numbers, texts : int
        Cells that are numbers in some notation, and others.
    levels : set of str
        Different cells, up to one more than make categories.
    decimal, thousands, either : bool
        Whether some commas can only stand before decimals, can only group thousands, or could do both.
    largest_whole : float
        Largest whole number without a comma; NaN where there is none.
    dotted, dates : bool
        Whether a number has a decimal point; whether every text is a date.
    """

    numbers: int = 0
    texts: int = 0
    levels: set[str] = field(default_factory=set)
    decimal: bool = False
    thousands: bool = False
    either: bool = False
    largest_whole: float = np.nan
    dotted: bool = False
    dates: bool = True

    def add(self, column: Any, na: Iterable[str]) -> None:
        """Count the cells of one block."""
        if is_numeric(column):
            values = column.to_numpy(dtype=float)
            known = values[~np.isnan(values)]
            self.numbers += known.size
            whole = known == np.floor(known)
            self.dotted |= not whole.all()
            self.largest_whole = np.fmax(self.largest_whole, np.abs(known[whole]).max(initial=0) if known.size else 0)
            if len(self.levels) <= MOST_LEVELS:
                self._add_levels(f"{value:.17g}" for value in np.unique(known)[: MOST_LEVELS + 1])
            return
        counts = stripped(column, na).value_counts()
        for cell, count in zip(map(str, counts.index), counts.tolist(), strict=True):
            self._add_cell(cell, count)

    def _add_cell(self, cell: str, count: int) -> None:
        if not ANY_NUMBER.fullmatch(cell):
            self.texts += count
            self.dates = self.dates and is_date(cell)
        else:
            self.numbers += count
            self._add_number(cell)
        self._add_levels([cell])

    def _add_number(self, cell: str) -> None:
        if "," in cell or not re.fullmatch(PLAIN, cell):
            decimal, grouped = bool(re.fullmatch(DECIMAL_COMMA, cell)), bool(re.fullmatch(THOUSANDS, cell))
            self.decimal |= decimal and not grouped
            self.thousands |= grouped and not decimal
            self.either |= decimal and grouped
        elif WHOLE_NUMBER.fullmatch(cell):
            self.largest_whole = np.fmax(self.largest_whole, abs(float(cell)))
        else:
            self.dotted |= "." in cell

    def _add_levels(self, cells: Iterable[str]) -> None:
        for cell in cells:
            if len(self.levels) <= MOST_LEVELS:
                self.levels.add(cell)

    @property
    def kind(self) -> Kind:
        """What the column is, by most of its cells: one text more than numbers may be a slip."""
        if self.texts - self.numbers <= 1 and not (self.texts and not self.numbers):
            return "number"
        if self.dates and not self.numbers:
            return "date"
        return "category" if len(self.levels) <= MOST_LEVELS else "text"

    def mark(self, of_file: str | None, separator: str | None) -> str:
        """Return what stands before decimals in the column.

        What can only be one of the two decides, then what other columns of the file say. Else 12,345 beside 999 is a
        thousand, since in a column of decimals some would have other than three digits; and else commas stand before
        decimals, unless they also separate the columns.
        """
        if self.decimal != self.thousands:
            return "," if self.decimal else "."
        if self.dotted or not self.either:
            return "."
        if of_file is not None:
            return of_file
        if self.largest_whole < 1000:
            return "."
        return "." if separator == "," else ","


def is_date(cell: str) -> bool:
    """Whether a text is a date as ISO 8601 writes it, with time and zone where it has them.

    Examples
    --------
    >>> is_date("2024-03-31T12:00+02:00"), is_date("20240331"), is_date("soon"), is_date("1.2.2024")
    (True, True, False, False)
    """
    return not np.isnat(as_dates([cell])[0])


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


def safe_name(name: str) -> str:
    r"""Return a name in one line that a terminal can print: control characters are written as escapes.

    Examples
    --------
    >>> safe_name("Temp\n (°C)"), safe_name("a\x1b[31m")
    ('Temp (°C)', 'a\\x1b[31m')
    """
    joined = " ".join(name.split())
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in joined)


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


def decimal_marks(seen: dict[str, Seen], table: Any) -> tuple[dict[str, str], list[str]]:
    """Return what stands before decimals in every column that was seen to hold other than plain numbers; and say so."""
    strict = {"," if one.decimal else "." for one in seen.values() if one.decimal != one.thousands}
    of_file = table.decimal or (strict.pop() if len(strict) == 1 else None)
    marks, remarks = {}, []
    for name, one in seen.items():
        marks[name] = table.told_decimal or one.mark(of_file, table.separator)
        if one.decimal or one.thousands or one.either:
            read = "stand before decimals" if marks[name] == "," else "group thousands"
            remarks.append(f"commas in column {name!r} {read}")
    return marks, remarks


# Columns by name ------------------------------------------------------------------------------------------------------


def named(name: str, names: Sequence[str], where: str) -> str:
    """Return a column given by name, or by number where no column bears it as a name.

    Examples
    --------
    >>> named("price", ["area", "price"], "a.csv has no column"), named("-2", ["area", "price"], "")
    ('price', 'area')
    """
    if name in names:
        return name
    if re.fullmatch("-?[0-9]{1,9}", name) and -len(names) <= int(name) < len(names):
        return names[int(name)]
    raise unknown(name, names, where)


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


def unknown(name: str, known: Iterable[str], where: str) -> ValueError:
    """Return the error of a name that a file does not have, with the names that come closest.

    Examples
    --------
    >>> str(unknown("prize", ["price", "area"], "a.csv has no column"))
    "a.csv has no column 'prize'. Did you mean 'price'? There are price, area."
    """
    names = list(known)
    close = _closest(name, names)
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
