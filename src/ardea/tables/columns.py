"""What the cells of a column are: numbers, dates, one of a few texts, or gaps; and all of them as numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array
from ardea.tables.table import MOST_PROBLEMS, Table, TableError, safe_name, unknown

# What stands in cells that hold nothing (a convention: what pandas takes, and what R, SAS and spreadsheets write).
# "Na" is not among them: it is sodium.
MISSING = (
    *("", "-", "--", "?", ".", "NA", "na", "N/A", "n/a", "n.a.", "#N/A", "<NA>", "nan", "NaN", "NAN", "NULL", "null"),
    *("Null", "None", "none", "NONE", "#DIV/0!", "#VALUE!", "#REF!"),
)
# A column of at most so many different texts is one of categories (a convention; more columns than that help nobody).
MOST_LEVELS = 20
# Wrong cells are few where at most this share of a column is wrong, or one: then the column is sound (a convention).
FEW = 0.1
_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
_INFINITE = "[+-]?(?:inf|infinity|INF|Infinity|Inf)"
PLAIN = rf"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}|{_INFINITE}"
# 1,5 and 1.234,5: the comma stands before decimals. 1,234 and 1,234.5: it groups thousands. 1,234 alone may be either.
DECIMAL_COMMA = rf"[+-]?(?:[0-9]+,[0-9]*|,[0-9]+|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+(?:,[0-9]*)?){_EXPONENT}"
THOUSANDS = rf"[+-]?[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+(?:\.[0-9]*)?{_EXPONENT}"
# 1.775: a number as it stands, or thousands where the comma stands before decimals.
DOTTED = r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+"
# 1 234 567,8 with blanks, narrow or not to be broken, between thousands.
_BLANK = "[ \u00a0\u2009\u202f]"
SPACED = rf"[+-]?[1-9][0-9]{{0,2}}(?:{_BLANK}[0-9]{{3}})+(?:[.,][0-9]*)?"
ANY_NUMBER = re.compile(f"(?:{PLAIN}|{DECIMAL_COMMA}|{THOUSANDS}|{SPACED})")
# How numbers are written by what stands before decimals; without a mark a comma makes no number.
NOTATIONS = {
    None: PLAIN,
    ".": f"{PLAIN}|{THOUSANDS}",
    ",": f"{DECIMAL_COMMA}|[+-]?[0-9]+{_EXPONENT}|{_INFINITE}",
}
SIGNED = re.compile(r"[$€£¥]\s*[+-]?[0-9][0-9., ]*|[+-]?[0-9][0-9., ]*\s*[%‰$€£¥]")
DAY_FIRST = re.compile(r"[0-3]?[0-9]([./])[01]?[0-9]\1(?:[12][0-9])?[0-9]{2}(?:[ T][0-9:.]+)?$")
WHOLE_NUMBER = re.compile("[+-]?[0-9]+")
NUMERIC = "fiub"
ROLES = {True: "stand before decimals", False: "group thousands"}
Cells = tuple[Array, NDArray[np.bool_]]


def empty_tokens(na: Iterable[str]) -> tuple[str, ...]:
    """Return what stands in cells that hold nothing: the usual and what is told; "none" turns the usual off."""
    told = tuple(na)
    return ("", *(one for one in told if one != "none")) if "none" in told else (*MISSING, *told)


def is_missing(cell: str, na: Iterable[str] = ()) -> bool:
    """Whether a cell holds nothing."""
    return cell in empty_tokens(na)


def is_numeric(column: Any) -> bool:
    """Whether a column of a frame holds numbers already."""
    return column.dtype.kind in NUMERIC


def stripped(column: Any, na: Iterable[str]) -> Any:
    """Return a column as texts without blanks around them, missing where nothing stands."""
    if is_numeric(column):  # codes: 1 and 1.0 are the same text
        column = column.map(lambda value: f"{value:.17g}", na_action="ignore")
    texts = column.astype("string").str.strip().str.replace("−", "-")
    spaced = texts.str.fullmatch(SPACED).fillna(False)
    if spaced.any():
        texts = texts.mask(spaced, texts.str.replace(_BLANK, "", regex=True))
    return texts.mask(texts.isin(empty_tokens(na)))


def as_numbers(column: Any, mark: str | None, na: Iterable[str]) -> Cells:
    """Return a column as numbers, NaN where there is none, and where a cell holds something else."""
    if is_numeric(column):
        return column.to_numpy(dtype=float), np.zeros(len(column), dtype=bool)
    texts = stripped(column, na)
    sound = texts.str.fullmatch(NOTATIONS[mark]).fillna(False).to_numpy(dtype=bool)
    plain = texts.str.replace("." if mark == "," else ",", "", regex=False).str.replace(",", ".", regex=False)
    cells = np.where(sound, plain.to_numpy(dtype=object, na_value="nan"), "nan")
    return cells.astype(float), ~sound & texts.notna().to_numpy(dtype=bool)


def indicators(column: Any, levels: Sequence[str], na: Iterable[str]) -> Cells:
    """Return 1 where a cell holds a text, for all but the first of them, NaN for gaps; and where it holds another."""
    texts = stripped(column, na)
    found = (texts.to_numpy(dtype=object, na_value="")[:, None] == np.array(levels, dtype=object)).astype(float)
    empty, known = texts.isna().to_numpy(dtype=bool), found.any(axis=1)
    found[empty | ~known] = np.nan
    return found[:, 1:], ~empty & ~known


def level_names(column: str, levels: Sequence[str]) -> list[str]:
    """Return the names of the columns that stand for the texts of a column: all but the first, its reference."""
    return [safe_name(f"{column}={level}") for level in levels[1:]]


# Dates ----------------------------------------------------------------------------------------------------------------


def as_dates(cells: Any) -> NDArray[Any]:
    """Return texts as dates in UTC, not a time where they are none."""
    import pandas as pd

    texts = pd.Series(cells, dtype="string").str.strip()
    texts = texts.where(texts.str.match(r"[0-9]{4}(?:-|[01][0-9][0-3][0-9]$|[01][0-9][0-3][0-9]T)"))
    dates = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    found: NDArray[Any] = dates.dt.tz_localize(None).to_numpy()
    return found


def compact_dates(values: Any) -> NDArray[Any] | None:
    """Return whole numbers such as 20240331 as dates, None where some number is none."""
    numbers = np.asarray(values, dtype=float)
    known = ~np.isnan(numbers)
    # Years 1700 to 2299: what measured series bear (a convention).
    if not known.any() or not np.all((numbers[known] >= 17000101) & (numbers[known] <= 22991231)):
        return None
    whole = np.where(known, numbers, 0).astype(np.int64)
    months, days = whole // 10000 * 12 + whole // 100 % 100 - 1 - 12 * 1970, whole % 100
    dates = months.astype("M8[M]").astype("M8[D]") + (days - 1)
    again = dates.astype("M8[M]").astype(np.int64) == months
    sound = (whole == numbers) & (whole // 100 % 100 <= 12) & (whole // 100 % 100 >= 1) & (days >= 1) & again
    return np.where(known, dates, np.datetime64("NaT")).astype("M8[s]") if sound[known].all() else None


def looks_like_dates(values: Array) -> bool:
    """Whether all are numbers such as 20240331, or 2024033105 with the hour."""
    days, hours = np.divmod(values, 100)
    return compact_dates(values) is not None or (bool(np.all(hours < 24)) and compact_dates(days) is not None)


# Commas and dots in numbers -------------------------------------------------------------------------------------------


def notation_of(cell: str) -> str:
    """Return what the comma or dot in a number tells.

    A comma that can only stand before decimals ("decimal"), only group thousands ("thousands"), or do both ("either");
    a dot that can only stand before decimals ("point"), or also group thousands ("dots"); a "whole" number; or "".
    """
    cell = re.sub(_BLANK, "", cell) if re.fullmatch(SPACED, cell) else cell
    if WHOLE_NUMBER.fullmatch(cell):
        return "whole"
    if re.fullmatch(PLAIN, cell):
        return "dots" if re.fullmatch(DOTTED, cell) else "point" if "." in cell else ""
    decimal, grouped = re.fullmatch(DECIMAL_COMMA, cell), re.fullmatch(THOUSANDS, cell)
    return "either" if decimal and grouped else "decimal" if decimal else "thousands" if grouped else ""


def decided(notations: set[str]) -> str | None:
    """Return what stands before decimals, None where nothing or both can."""
    comma, point = "decimal" in notations, not notations.isdisjoint({"thousands", "point"})
    return None if comma == point else "," if comma else "."


# Columns --------------------------------------------------------------------------------------------------------------


class Column:
    """What was seen of a column that does not hold numbers only, over all blocks."""

    def __init__(self, name: str, numbers: int = 0, most_levels: float = MOST_LEVELS) -> None:
        self.name, self.numbers, self.texts, self._most = name, numbers, 0, most_levels
        self.levels: set[str] = set()
        self.dates, self.spaced, self.signed, self._n_signed = True, "", "", 0
        self.tokens: dict[str, None] = {}
        self.notations: set[str] = set()
        self._largest_whole = np.nan
        self.mark: str | None = None  # what stands before decimals, once that is settled

    def add(self, column: Any, na: Iterable[str]) -> None:
        """Count the cells of one block."""
        counts = stripped(column, na).value_counts()
        if not self.spaced and not is_numeric(column):
            raw = column.astype("string").str.strip()
            self.spaced = next(iter(raw[raw.str.fullmatch(SPACED).fillna(False)].head(1)), "")
        cells = [str(cell) for cell in counts.index]
        numbers = [cell for cell in cells if ANY_NUMBER.fullmatch(cell)]
        texts = [cell for cell in cells if not ANY_NUMBER.fullmatch(cell)]
        signed = [cell for cell in texts if SIGNED.fullmatch(cell)]
        self.numbers += int(counts[numbers].sum())
        self.texts += int(counts[texts].sum())
        self._n_signed += int(counts[signed].sum())
        self.signed = self.signed or next(iter(signed), "")
        self.tokens.update(dict.fromkeys(texts[: MOST_PROBLEMS + 1]))
        self.dates = self.dates and (not np.isnat(as_dates(texts)).any() or all(map(DAY_FIRST.match, texts)))
        if len(self.levels) <= self._most:
            self.levels.update(cells if len(cells) <= self._most else cells[: MOST_LEVELS + 1])
        self.notations.update(map(notation_of, numbers))
        whole = (abs(float(cell)) for cell in numbers if WHOLE_NUMBER.fullmatch(cell))
        self._largest_whole = np.fmax(self._largest_whole, max(whole, default=np.nan))

    @property
    def few_wrong(self) -> bool:
        """Whether so few cells are no numbers that they are slips."""
        return self.texts <= max(1, FEW * (self.texts + self.numbers))

    @property
    def contents(self) -> str:
        """What the column holds, by most of its cells: one text more than numbers may be a slip."""
        if self.texts - self.numbers <= 1 and not (self.texts and not self.numbers):
            return "numbers"
        if 2 * self._n_signed > self.texts + self.numbers:
            return f"numbers with a sign, such as {self.signed!r}: remove the sign"
        if self.dates and not self.numbers:
            return "dates, not numbers"
        return "texts, not numbers" if len(self.levels) <= self._most else "many different texts, not numbers"

    def settle_mark(self, told: str | None, of_file: str | None, separator: str | None) -> list[str]:
        """Decide what stands before decimals, and return what is not a matter of course about it.

        What can only be one of the two decides, then what other columns of the file say. Else 12,345 beside 999 is a
        thousand, since in a column of decimals some would have other than three digits; and else commas stand before
        decimals, unless they also separate the columns.
        """
        found = self.notations
        strict = found & {"decimal", "thousands"}
        if len(strict) == 1:
            mark = "," if "decimal" in strict else "."
        elif "point" in found or not found & {"either", "dots"}:
            mark = "."
        elif of_file or "either" not in found:
            mark = of_file or "."
        else:
            mark = "." if self._largest_whole < 1000 or separator == "," else ","
        self.mark = told or mark
        return self._said(told or of_file)

    def _said(self, of_file: str | None) -> list[str]:
        remarks, found, where = [], self.notations, f"in column {self.name!r}"
        if found & {"decimal", "thousands", "either"}:
            doubt = found & {"decimal", "thousands", "either", "point"} == {"either"} and not of_file
            other = f"; if not, give --decimal {'.' if self.mark == ',' else ','}" if doubt else ""
            remarks.append(f"commas {where} {ROLES[self.mark == ',']}{other}")
        if "dots" in found and "," in (self.mark, of_file):
            remarks.append(f"dots {where} {ROLES[self.mark == '.']}, since commas stand before decimals elsewhere")
        return [*remarks, *([f"blanks {where} group thousands ({self.spaced})"] if self.spaced else [])]


class Columns:
    """Columns of a table as numbers: texts of few kinds encoded, commas in numbers read as the whole column tells.

    By default columns of at most 20 different texts are encoded, else those that `categorical` names; `levels` are the
    texts of columns that were encoded before, of which others are gaps.
    """

    def __init__(
        self,
        table: Table,
        used: Sequence[str],
        categorical: Sequence[str] | None = None,
        levels: dict[str, list[str]] | None = None,
    ) -> None:
        known = set(table.names)
        if missing := [name for name in used if name not in known]:
            raise unknown(missing[0], table.names, f"{table.path} has no column")
        self._table, self.used, self._categorical = table, list(used), categorical
        self._unknown: Counter[tuple[str, str]] = Counter()
        self.levels = {name: texts for name, texts in (levels or {}).items() if name in used}
        self.seen = {name: Column(name, most_levels=np.inf) for name in categorical or ()}
        self._n_seen = 0
        self.empty = dict.fromkeys(used)
        self.remarks: list[str] = []

    def look(self, frame: Any) -> None:
        """Count what the cells of a block are."""
        for name, kind in zip(self.used, frame.dtypes.to_numpy(), strict=True):
            if name not in self.seen and kind.kind not in NUMERIC:
                self.seen[name] = Column(name, self._n_seen)
            if kind.kind == "b" and self._n_seen == 0:
                self.remarks.append(f"true and false in column {name!r} were read as 1 and 0")
        self.empty = {name: None for name in self.empty if not frame[name].notna().any()}
        for name, one in self.seen.items():
            one.add(frame[name], self._table.na)
        self._n_seen += len(frame)

    def leave_out(self, names: Sequence[str]) -> None:
        """Use columns no more that hold nothing, and say so."""
        for name in names:
            self.used.remove(name)
            self.seen.pop(name, None)
            self.remarks.append(f"column {name!r} is empty in every row and was left out")

    def settle(self) -> None:
        """Decide what every column is; raise TableError where some cannot be used."""
        unusable = {}
        for name, one in self.seen.items():
            if name in self.levels:
                continue
            contents = one.contents
            if name in self._categorical if self._categorical is not None else contents == "texts, not numbers":
                self.levels[name] = sorted(one.levels)
                self._remark_on_texts(name)
            elif contents != "numbers":
                unusable[name] = f"column {name!r} holds {contents}"
        if unusable:
            others = [name for name in self.used if name not in unusable]
            raise TableError(self._table.path, [*unusable.values()], unusable, others)
        numbers = [one for name, one in self.seen.items() if name not in self.levels]
        strict = {decided(one.notations) for one in numbers} - {None}
        of_file = self._table.decimal or (strict.pop() if len(strict) == 1 else None)
        for one in numbers:
            self.remarks += one.settle_mark(self._table.told_decimal, of_file, self._table.separator)

    def _remark_on_texts(self, name: str) -> None:
        texts, names = self.levels[name], self.names_of(name)
        shown = ", ".join(names[:5]) + ", …" * (len(names) > 5)
        encoded = f"holds {len(texts)} texts: encoded as {shown}, against {texts[0]!r}" if names else ""
        self.remarks.append(f"column {name!r} {encoded or 'is the same in every row and was left out'}")

    def names_of(self, column: str) -> list[str]:
        """Return the names of the columns of numbers that one column gives."""
        return level_names(column, self.levels[column]) if column in self.levels else [column]

    @property
    def names(self) -> list[str]:
        """Return the names of all columns of numbers."""
        return [name for column in self.used for name in self.names_of(column)]

    def numbers(self, frame: Any, first: int = 0) -> Array:
        """Return a block that begins at row `first` as numbers, gaps as NaN; raise TableError for other cells."""
        frame = frame if frame.shape[1] == len(self.used) else frame[self.used]
        if not self.levels and all(kind.kind in NUMERIC for kind in frame.dtypes.to_numpy()):
            return np.asarray(frame.to_numpy(dtype=float))
        parts, problems = [], []
        for name in self.used:
            column = frame[name]
            if name in self.levels:
                values, bad = indicators(column, self.levels[name], self._table.na)
                self._unknown.update((name, str(cell).strip()) for cell in column[bad])
            else:
                values, bad = as_numbers(column, self.seen[name].mark if name in self.seen else None, self._table.na)
                wrong = [
                    (first + int(row), f"{str(column.iloc[row])!r} is not a number") for row in np.flatnonzero(bad)
                ]
                problems += [(row, name, trouble) for row, trouble in wrong]
            parts.append(values)
        if problems:
            raise self.wrong(problems)
        return np.column_stack(parts)

    def read(self, pieces: Sequence[tuple[int, Any]]) -> list[Array]:
        """Return frames, each with the number of its first row, as numbers: all of them tell what the columns are."""
        for _, frame in pieces:
            self.look(frame)
        self.settle()
        return [self.numbers(frame, first) for first, frame in pieces]

    def unknown_texts(self) -> list[str]:
        """Return which texts were taken as gaps: with their number of rows, and what they may have meant."""
        said = []
        for (name, text), count in self._unknown.items():
            error = unknown(text, self.levels[name], f"column {name!r} ({count} row{'s' * (count > 1)}): unknown text")
            said.append(f"{error} It was taken as empty.")
        return said

    def wrong(self, cells: list[tuple[int, str, str]]) -> TableError:
        """Return the error of cells that cannot be used: row, column and what is wrong."""
        columns = dict.fromkeys(name for _, name, _ in cells)
        listed = self._table.placed(cells)
        if all(trouble.endswith("is not a number") for _, _, trouble in cells):  # then rows may be of other length, too
            found = self._table.problems([name for name in self.used if name not in self.levels])
            listed = found if len(found) >= len(listed) else listed
        others = [name for name in self.used if name not in columns]
        seen = [self.seen[name] for name in columns if name in self.seen]
        few = len(seen) == len(columns) and all(one.few_wrong for one in seen)
        tokens = dict.fromkeys(token for one in seen for token in one.tokens if few)
        return TableError(self._table.path, listed, columns, others, tokens)
