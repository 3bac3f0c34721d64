"""What the cells of a column are: numbers, dates, one of a few texts, or gaps; and all of them as numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array
from ardea.tables.naming import safe_name, unknown

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
# So many problems of a file are listed; one more tells that there are others.
MOST_PROBLEMS = 10
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
SIGNED = re.compile(r"[$€£¥]\s*[+-]?[0-9][0-9., ]*|[+-]?[0-9][0-9., ]*\s*[%‰$€£¥]")
DAY_FIRST = re.compile(r"[0-3]?[0-9]([./])[01]?[0-9]\1(?:[12][0-9])?[0-9]{2}(?:[ T][0-9:.]+)?$")
WHOLE_NUMBER = re.compile("[+-]?[0-9]+")
NUMERIC = "fiub"
Kind = Literal["numbers", "dates", "texts", "many different texts"]


class TableError(ValueError):
    """Everything that is wrong with a file, in one message.

    Attributes
    ----------
    columns, others : tuple of str
        Columns that cannot be used as they are, so that leaving them out helps; and those that can.
    tokens : tuple of str
        What stands in the few cells that are wrong, where taking them as empty helps.
    """

    def __init__(
        self,
        path: Any,
        problems: Sequence[str],
        columns: Iterable[str] = (),
        others: Iterable[str] = (),
        tokens: Iterable[str] = (),
    ) -> None:
        shown = list(problems[:MOST_PROBLEMS])
        if len(problems) > MOST_PROBLEMS:
            shown.append("and more")
        super().__init__(f"{path}, {shown[0]}" if len(shown) == 1 else "\n  ".join([f"{path}:", *shown]))
        self.columns, self.others, self.tokens = tuple(dict.fromkeys(columns)), tuple(others), tuple(tokens)


def empty_tokens(na: Iterable[str]) -> tuple[str, ...]:
    """Return what stands in cells that hold nothing: the usual and what is told; "none" turns the usual off.

    Examples
    --------
    >>> empty_tokens(["none", "-999"])
    ('', '-999')
    """
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


def looks_like_dates(values: Array) -> bool:
    """Whether all are numbers such as 20240331, or 2024033105 with the hour.

    Examples
    --------
    >>> looks_like_dates(np.array([2024033123.0])), looks_like_dates(np.array([2024033124.0]))
    (True, False)
    """
    days, hours = np.divmod(values, 100)
    return compact_dates(values) is not None or (bool(np.all(hours < 24)) and compact_dates(days) is not None)


def as_numbers(column: Any, mark: str | None, na: Iterable[str]) -> tuple[Array, NDArray[np.bool_]]:
    """Return a column as numbers, NaN where there is none, and where a cell holds something else.

    `mark` is what stands before decimals; without one a comma makes no number.
    """
    if is_numeric(column):
        return column.to_numpy(dtype=float), np.zeros(len(column), dtype=bool)
    texts = stripped(column, na)
    notations = {None: PLAIN, ".": f"{PLAIN}|{THOUSANDS}", ",": f"{DECIMAL_COMMA}|[+-]?[0-9]+{_EXPONENT}|{_INFINITE}"}
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


class Notation:
    """What commas and dots in numbers were seen to be.

    Attributes
    ----------
    decimal, thousands, either : bool
        Commas that can only stand before decimals, that can only group thousands, that could do both.
    points, dots : bool
        Dots that can only stand before decimals, that could also group thousands.
    """

    def __init__(self) -> None:
        self.decimal = self.thousands = self.either = self.points = self.dots = False
        self.largest_whole = np.nan

    def add(self, cell: str) -> None:
        """Look at one number; a cell that is none says nothing."""
        cell = re.sub(_BLANK, "", cell) if re.fullmatch(SPACED, cell) else cell
        if WHOLE_NUMBER.fullmatch(cell):
            self.largest_whole = np.fmax(self.largest_whole, abs(float(cell)))
        elif re.fullmatch(PLAIN, cell):
            thousands = bool(re.fullmatch(DOTTED, cell))
            self.dots |= thousands
            self.points |= "." in cell and not thousands
        else:
            decimal, grouped = bool(re.fullmatch(DECIMAL_COMMA, cell)), bool(re.fullmatch(THOUSANDS, cell))
            self.decimal |= decimal and not grouped
            self.thousands |= grouped and not decimal
            self.either |= decimal and grouped

    @property
    def decided(self) -> str | None:
        """What stands before decimals, None where nothing or both can."""
        point = self.thousands or self.points
        return None if self.decimal == point else "," if self.decimal else "."

    def mark(self, of_file: str | None, separator: str | None) -> str:
        """Return what stands before decimals in a column.

        What can only be one of the two decides, then what other columns of the file say. Else 12,345 beside 999 is a
        thousand, since in a column of decimals some would have other than three digits; and else commas stand before
        decimals, unless they also separate the columns.
        """
        if self.decimal != self.thousands:
            return "," if self.decimal else "."
        if self.points or not (self.either or self.dots):
            return "."
        if of_file or not self.either:
            return of_file or "."
        return "." if self.largest_whole < 1000 or separator == "," else ","

    def said(self, name: str, mark: str, of_file: str | None) -> list[str]:
        """Return how commas and dots in a column were read, as far as it is not a matter of course."""
        found = []
        if self.decimal or self.thousands or self.either:
            doubt = self.either and not (self.decimal or self.thousands or self.points or of_file)
            other = f"; if not, give --decimal {'.' if mark == ',' else ','}" if doubt else ""
            found.append(f"commas in column {name!r} {_role(mark == ',')}{other}")
        if self.dots and (mark == "," or of_file == ","):
            found.append(f"dots in column {name!r} {_role(mark == '.')}, since commas stand before decimals elsewhere")
        return found


def _role(decimal: bool) -> str:
    return "stand before decimals" if decimal else "group thousands"


class Seen:
    """What was seen of one column that is not of numbers only, over all blocks."""

    def __init__(self, numbers: int = 0, most_levels: float = MOST_LEVELS) -> None:
        self.numbers, self.texts, self._most = numbers, 0, most_levels
        self.levels: set[str] = set()
        self.dates, self.spaced, self.signed, self.n_signed = True, "", "", 0
        self.tokens: dict[str, None] = {}
        self.notation = Notation()

    def add(self, column: Any, na: Iterable[str]) -> None:
        """Count the cells of one block."""
        counts = stripped(column, na).value_counts()
        if not self.spaced and not is_numeric(column):
            raw = column.astype("string").str.strip()
            self.spaced = next(iter(raw[raw.str.fullmatch(SPACED).fillna(False)].head(1)), "")
        cells = [str(cell) for cell in counts.index]
        numbers = [ANY_NUMBER.fullmatch(cell) is not None for cell in cells]
        texts = [cell for cell, number in zip(cells, numbers, strict=True) if not number]
        n_numbers = int(counts.to_numpy()[numbers].sum())
        self.numbers += n_numbers
        self.texts += int(counts.sum()) - n_numbers
        signed = [cell for cell in texts if SIGNED.fullmatch(cell)]
        self.n_signed += int(counts[signed].sum())
        self.signed = self.signed or next(iter(signed), "")
        self.tokens.update(dict.fromkeys(texts[: MOST_PROBLEMS + 1]))
        self.dates = self.dates and (not np.isnat(as_dates(texts)).any() or all(map(DAY_FIRST.match, texts)))
        if len(self.levels) <= self._most:
            self.levels.update(cells if len(cells) <= self._most else cells[: MOST_LEVELS + 1])
        for cell, number in zip(cells, numbers, strict=True):
            if number:
                self.notation.add(cell)

    @property
    def few_wrong(self) -> bool:
        """Whether so few cells are no numbers that they are slips."""
        return self.texts <= max(1, FEW * (self.texts + self.numbers))

    @property
    def has_signs(self) -> bool:
        """Whether most texts are numbers with a sign of percent or of money."""
        return 2 * self.n_signed > self.texts + self.numbers

    @property
    def kind(self) -> Kind:
        """What the column is, by most of its cells: one text more than numbers may be a slip."""
        if self.texts - self.numbers <= 1 and not (self.texts and not self.numbers):
            return "numbers"
        if self.dates and not self.numbers:
            return "dates"
        return "texts" if len(self.levels) <= self._most else "many different texts"


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
    skip_unknown : bool, default=False
        Whether another text than these is a gap, which is counted, instead of an error.

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
        skip_unknown: bool = False,
    ) -> None:
        self._table, self._used, self._categorical = table, list(used), categorical
        self._skip_unknown = skip_unknown
        self._unknown: Counter[tuple[str, str]] = Counter()
        self.levels = {name: texts for name, texts in (levels or {}).items() if name in used}
        self.seen = {name: Seen(most_levels=np.inf) for name in categorical or ()}
        self._marks: dict[str, str] = {}
        self._n_seen = 0
        self.empty = set(used)
        self.remarks: list[str] = []

    def look(self, frame: Any) -> None:
        """Count what the cells of a block are."""
        for name, kind in zip(self._used, frame.dtypes.to_numpy(), strict=True):
            if name not in self.seen and kind.kind not in NUMERIC:
                self.seen[name] = Seen(self._n_seen)
        self.empty -= {name for name in self.empty if frame[name].notna().any()}
        for name, kind in zip(self._used, frame.dtypes.to_numpy(), strict=True):
            if kind.kind == "b" and self._n_seen == 0:
                self.remarks.append(f"true and false in column {name!r} were read as 1 and 0")
        for name, one in self.seen.items():
            one.add(frame[name], self._table.na)
        self._n_seen += len(frame)

    def leave_out(self, names: Sequence[str]) -> None:
        """Use columns no more that hold nothing, and say so."""
        for name in names:
            self._used.remove(name)
            self.seen.pop(name, None)
            self.remarks.append(f"column {name!r} is empty in every row and was left out")

    def settle(self) -> None:
        """Decide what every column is; raise TableError where some cannot be used."""
        unusable = []
        for name, one in self.seen.items():
            encodable = one.kind == "texts" and not one.has_signs
            wanted = encodable if self._categorical is None else name in self._categorical
            if wanted and name not in self.levels:
                self.levels[name] = sorted(one.levels)
                self._remark_on_texts(name)
            elif name not in self.levels and one.kind != "numbers":
                unusable.append(name)
        if unusable:
            said = [f"column {name!r} holds {self._contents(name)}" for name in unusable]
            raise TableError(self._table.path, said, unusable, [one for one in self._used if one not in unusable])
        self._settle_commas({name: one for name, one in self.seen.items() if name not in self.levels})

    def _contents(self, name: str) -> str:
        """Return what a column holds in place of numbers."""
        one = self.seen[name]
        if one.has_signs:
            return f"numbers with a sign, such as {one.signed!r}: remove the sign"
        return f"{one.kind}, not numbers"

    def _remark_on_texts(self, name: str) -> None:
        texts, names = self.levels[name], self.names_of(name)
        if not names:
            self.remarks.append(f"column {name!r} is the same in every row and was left out")
            return
        shown = ", ".join(names[:5]) + ", …" * (len(names) > 5)
        self.remarks.append(f"column {name!r} holds {len(texts)} texts: encoded as {shown}, against {texts[0]!r}")

    def _settle_commas(self, seen: dict[str, Seen]) -> None:
        strict = {one.notation.decided for one in seen.values()} - {None}
        of_file = self._table.decimal or (strict.pop() if len(strict) == 1 else None)
        for name, one in seen.items():
            mark = self._table.told_decimal or one.notation.mark(of_file, self._table.separator)
            self._marks[name] = mark
            self.remarks += one.notation.said(name, mark, self._table.told_decimal or of_file)
            if one.spaced:
                self.remarks.append(f"blanks in column {name!r} group thousands ({one.spaced})")

    def names_of(self, column: str) -> list[str]:
        """Return the names of the columns of numbers that one column gives."""
        return level_names(column, self.levels[column]) if column in self.levels else [column]

    @property
    def names(self) -> list[str]:
        """Return the names of all columns of numbers."""
        return [name for column in self._used for name in self.names_of(column)]

    def numbers(self, frame: Any, first: int = 0) -> Array:
        """Return a block that begins at row `first` as numbers, gaps as NaN; raise TableError for other cells."""
        frame = frame if frame.shape[1] == len(self._used) else frame[self._used]
        texts = any(kind.kind not in NUMERIC for kind in frame.dtypes.to_numpy())
        if not texts and not self.levels:
            return np.asarray(frame.to_numpy(dtype=float))
        parts, problems = [], []
        for name in self._used:
            values, bad = self._converted(frame[name], name)
            if self._skip_unknown and name in self.levels:
                self._unknown.update((name, str(cell).strip()) for cell in frame[name][bad])
                values[bad], bad = np.nan, np.zeros_like(bad)
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

    def unknown_texts(self) -> list[str]:
        """Return what was skipped: every text with its number of rows, and what it may have meant."""
        said = []
        for (name, text), count in self._unknown.items():
            error = unknown(text, self.levels[name], f"column {name!r} ({count} row{'s' * (count > 1)}): unknown text")
            said.append(f"{error} No prediction there.")
        return said

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
        others = [name for name in self._used if name not in columns]
        seen = [self.seen.get(name) for name in columns]
        few = all(one is not None and one.few_wrong for one in seen)
        tokens = {token: None for one in seen if few and one is not None for token in one.tokens}
        return TableError(self._table.path, listed, columns, others, tokens)


def placed(table: Any, cells: list[tuple[int, str, str]]) -> list[str]:
    """Return what is wrong with cells (row, column, trouble), each with its place; one more than are shown."""
    shown = sorted(cells)[: MOST_PROBLEMS + 1]
    places = table.places([row for row, _, _ in shown])
    return [f"{place}, column {name!r}: {trouble}" for place, (_, name, trouble) in zip(places, shown, strict=True)]
