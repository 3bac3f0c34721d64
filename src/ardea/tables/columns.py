"""What the cells of a column are: numbers, dates, one of a few texts, or gaps; and all of them as numbers."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array
from ardea.names import counted, told_once, words_of
from ardea.tables.dates import DAY_FIRST, OF_DAY, as_dates
from ardea.tables.levels import doubt_of_levels, indicators, level_names, rank, told_of_levels
from ardea.tables.marks import Sizes
from ardea.tables.notation import (
    APOSTROPHES,
    BLANK,
    CODE_NAMES,
    FEW,
    MARKS,
    MINORITY,
    MINUS,
    NEGATIVES,
    NOTATION,
    NUMBER_WORDS,
    RARE,
    READ_WITH,
    ROLES,
    ROW_WORDS,
    SIGNED,
    SPACED,
)
from ardea.tables.table import MOST_PROBLEMS, Table, TableError, unknown
from ardea.tables.wrong import error_of_cells, example_of, few_tokens, told_units, uneven_or_wrong

# A column of at most so many different texts is one of categories (a convention; more columns than that help nobody).
MOST_LEVELS = 20
# Rows that a run has at least, on average (a convention: fewer tell nothing of how a system moves).
FEWEST_IN_A_RUN = 5
NUMERIC = "fiub"
Cells = tuple[Array, NDArray[np.bool_]]
DATES, TIMES_OF_DAY = "dates, not numbers", "times of day, not numbers"

# Cells ----------------------------------------------------------------------------------------------------------------


def tidied(cell: str) -> str:
    """Return a cell without blanks around it or marks of thousands, with a hyphen for a minus or for brackets.

    Examples
    --------
    >>> tidied("7\u202f910,97 €"), tidied("($1,200.50)"), tidied("278,30-")
    ('7910,97 €', '$-1,200.50', '-278,30')
    """
    cell = MINUS.sub("-", cell.strip())
    for form in NEGATIVES.values() if not cell[:1].isdigit() or cell[-1] == "-" else ():
        cell = form.sub(r"\g<before>-\g<digits>\g<after>", cell) if form.fullmatch(cell) else cell
    found = SPACED.fullmatch(cell)
    return found["before"] + re.sub(BLANK, "", found["digits"]) + found["after"] if found else cell


def notation_of(cell: str) -> str:
    """Return how a number is written, by its name in `NOTATIONS`; nothing where a cell holds no number."""
    found = NOTATION.fullmatch(tidied(cell))
    return str(found.lastgroup) if found else ""


def sign_of(cell: str) -> str:
    """Return the sign or the unit of a number.

    Examples
    --------
    >>> sign_of("$1,200"), sign_of("101.3 kPa")
    ('$', 'kPa')
    """
    found = SIGNED.fullmatch(tidied(cell))
    return (found[1] or found[2]) if found else ""


def unit_of(cell: str) -> str | None:
    """Return the sign or the unit of a number, "" where it has none; None where a cell holds no number."""
    return "" if notation_of(cell) else sign_of(cell) or None


def told_by(kinds: Counter[str]) -> dict[str, int]:
    """Return how many numbers can only have been written with each mark before decimals."""
    return {",": kinds["comma"] + kinds["decimal"], ".": kinds["thousands"] + kinds["point"]}


def decided(kinds: Counter[str]) -> str | None:
    """Return what stands before decimals, by what most numbers can only be; None where nothing, or no clear majority.

    Examples
    --------
    >>> decided(Counter(point=40, either=79, decimal=1)), decided(Counter(either=79, decimal=1))
    ('.', None)
    """
    (less, _), (more, mark) = sorted((count, mark) for mark, count in told_by(kinds).items())
    doubtful = mark == "," and not kinds["comma"] and more < RARE * kinds["either"]
    return None if less > MINORITY * more or not more or doubtful else mark


def is_numeric(column: Any) -> bool:
    """Whether a column of a frame holds numbers already."""
    return column.dtype.kind in NUMERIC


def texts_of(column: Any, empty: Set[str]) -> tuple[NDArray[np.intp], list[str]]:
    """Return which text every cell holds, −1 where it holds nothing, and the different texts."""
    import pandas as pd

    # Codes: 1 and 1.0 are the same text.
    write = "{:.17g}".format if is_numeric(column) else str
    codes, cells = pd.factorize(column)
    texts = pd.Series([tidied(write(cell)) for cell in cells], dtype=object)
    places, different = pd.factorize(texts.mask(texts.isin(empty)))
    return np.append(places, -1)[codes], list(different)


def as_numbers(column: Any, mark: str | None, empty: Set[str], sign: str = "") -> Cells:
    """Return a column as numbers, all with a sign or none, NaN for gaps, and where a cell holds something else."""
    if is_numeric(column):
        return column.to_numpy(dtype=float), np.zeros(len(column), dtype=bool)
    codes, texts = texts_of(column, empty)
    texts = [tidied(text.replace(sign, "")) if sign and SIGNED.fullmatch(text) else text for text in texts]
    sound = [notation_of(text) in READ_WITH[mark] for text in texts]
    plain = [text.replace("." if mark == "," else ",", "").replace(",", ".") for text in texts]
    numbers = [float(text) if good else np.nan for text, good in zip(plain, sound, strict=True)]
    return np.array([*numbers, np.nan])[codes], ~np.array([*sound, True])[codes]


def names_things(words: Sequence[str]) -> bool:
    """Whether a name of some words is one of things: by its last word, or the last before "number", of "site no"."""
    return any(map(CODE_NAMES.fullmatch, [*words[-1:], *[one for one in words if one not in NUMBER_WORDS][-1:]]))


# Columns --------------------------------------------------------------------------------------------------------------


class Column:
    """What was seen of a column that does not hold numbers only, over all blocks."""

    def __init__(
        self, name: str, n_numbers: int = 0, most_levels: float = MOST_LEVELS, within: Sequence[float] | None = None
    ) -> None:
        self.name, self._most = name, most_levels
        self.kinds = Counter({"plain": n_numbers})  # cells by notation, or "signed", or "" for other texts
        self.levels, self.n_different = set[str](), 0  # texts, and how many at most
        self.tokens: dict[str, None] = {}  # texts, as they came
        self.dates, self.signed = True, ""
        self._forms: dict[str, str] = {}  # how numbers are written besides, each with the first cell
        self.sizes = Sizes(within)
        self.sign, self._bare = "", Counter[tuple[str, str]]()  # signed cells, by sign and how their number is written
        self.mark: str | None = None  # what stands before decimals, once that is settled

    def add(self, column: Any, empty: Set[str]) -> None:
        """Count the cells of one block."""
        codes, cells = texts_of(column, empty)
        kinds = {cell: notation_of(cell) or ("signed" if SIGNED.fullmatch(cell) else "") for cell in cells}
        counts = np.bincount(codes[codes >= 0], minlength=len(cells)).tolist()
        for (cell, kind), count in zip(kinds.items(), counts, strict=True):
            self.kinds[kind] += count
            if kind == "signed":
                sign = sign_of(cell)
                bare = tidied(cell.replace(sign, ""))
                self._bare[sign, notation_of(bare)] += count
                self.sizes.add({bare: notation_of(bare)})
        texts = sorted((cell for cell, kind in kinds.items() if kind in ("", "signed")), key=kinds.__getitem__)
        self.sizes.add(kinds)
        self.signed = self.signed or next((cell for cell in texts if kinds[cell]), "")
        self.tokens.update(dict.fromkeys(texts[: MOST_PROBLEMS + 1]))
        self.dates = self.dates and (not np.isnat(as_dates(texts)).any() or all(map(DAY_FIRST.match, texts)))
        self.n_different += len(cells)
        if len(self.levels) <= self._most:
            self.levels.update(cells if len(cells) <= self._most else cells[: MOST_LEVELS + 1])
        given = [] if is_numeric(column) else [str(cell).strip() for cell in column.unique()]
        for how, form in {"": SPACED, **NEGATIVES}.items():
            if how not in self._forms and (cell := next(filter(form.fullmatch, given), "")):
                self._forms[how] = cell

    def settle_sign(self, decimal: str | None) -> list[str]:
        """Take one sign that all numbers bear as part of how they are written, unless 1.234 € is in doubt; say so."""
        signs, kinds = ({pair[part] for pair in self._bare} for part in (0, 1))
        doubtful = "" in kinds or (decimal is None and kinds & {"dots", "either"})
        if len(signs) != 1 or doubtful or self.n_texts < self.kinds.total():
            return []
        (self.sign,) = signs
        self.kinds = Counter({"": self.kinds[""]}) + Counter({kind: n for (_, kind), n in self._bare.items()})
        self.tokens = {token: None for token in self.tokens if not SIGNED.fullmatch(token)}
        what = "sign" if self.sign in "$€£¥%‰" else "unit"
        return [f"the {what} {self.sign} in column {self.name!r} was left out ({self.signed})"]

    @property
    def units(self) -> Counter[str]:
        """How many numbers have which sign or unit, "" for none; nothing once one was left out of all of them."""
        counts = Counter({"": self.kinds.total() - self.n_texts})
        for (sign, _), count in self._bare.items():
            counts[sign] += count
        return Counter() if self.sign else +counts

    @property
    def n_texts(self) -> int:
        """Number of cells that hold neither a number nor nothing."""
        return self.kinds[""] + self.kinds["signed"]

    @property
    def n_wrong(self) -> int:
        """Number of cells that hold something else than a number, as numbers are written in this column."""
        return sum(count for kind, count in self.kinds.items() if kind not in READ_WITH[self.mark])

    @property
    def contents(self) -> str:
        """What the column holds, by most of its cells: one text more than numbers may be a slip."""
        texts, cells = self.n_texts, self.kinds.total()
        gaps = len(self.tokens) == 1 and len(self.levels) > self._most  # one text among many numbers
        if not texts or (texts < cells and (2 * texts - cells <= 1 or gaps)):
            return "numbers"
        if 2 * self.kinds["signed"] > cells:
            unclear = any(kind in ("dots", "either") for _, kind in self._bare)
            doubt = ", or say with --decimal what stands before decimals" if unclear else ""
            return f"numbers with a sign or a unit, such as {self.signed!r}: write the numbers alone{doubt}"
        if self.dates and texts == cells:
            return DATES
        if self.tokens and all(map(OF_DAY.fullmatch, self.tokens)):
            return TIMES_OF_DAY
        return "texts, not numbers" if len(self.levels) <= self._most else "many different texts, not numbers"

    def tells_runs(self, n_rows: int) -> bool:
        """Whether every row has a text that others have, too, so that they may tell runs or groups apart."""
        return 1 < self.n_different <= n_rows / FEWEST_IN_A_RUN and self.kinds[""] == n_rows

    @property
    def doubtful(self) -> str:
        """The notation of numbers that are decimals or thousands, if no other of the column tells; else nothing."""
        found = self.kinds.keys() & {"comma", "decimal", "thousands", "point", *MARKS}
        return next(iter(found)) if len(found) == 1 and found <= MARKS.keys() else ""

    @property
    def likely_mark(self) -> str | None:
        """What stands before decimals, by the sizes of the numbers; None where they do not tell."""
        thousands = self.sizes.groups_thousands if self.doubtful else None
        return None if thousands is None else MARKS[self.doubtful][thousands]

    def settle_mark(self, table: Table, of_file: str | None, guess: str | None) -> tuple[list[str], list[str]]:
        """Decide what stands before decimals; return what is not a matter of course about it, and what is in doubt.

        What can only be one of the two decides, unless it is few cells against all of the file, which are errors then;
        else the file does, by what is certain or by a guess.
        """
        found, own, told = self.kinds.keys(), decided(self.kinds), table.told_decimal
        contrary = told_by(self.kinds)[own] if own else 0
        slips = contrary <= max(1, FEW * self.kinds.total()) and contrary < self.kinds.total()
        own = None if slips and (of_file or guess) else own
        self.mark, of_file = told or own or of_file or guess or ".", told or of_file
        remarks, doubts, where = list[str](), list[str](), f"in column {self.name!r}"
        if self.doubtful and not of_file:
            kind, thousands = self.doubtful, self.mark == MARKS[self.doubtful].thousands
            remarks.append(self.sizes.told(self.name, kind, thousands))
            if self.sizes.mixed and self.likely_mark is None and table.separator != ",":
                doubts.append(self.sizes.doubt(self.name, kind, thousands))
            return [*remarks, *self._told_forms()], doubts
        if self.doubtful and not told and self.likely_mark not in (None, self.mark):
            doubts.append(self.sizes.contrary(self.name, self.mark == MARKS[self.doubtful].thousands))
        if found & {"comma", "decimal", "thousands", "either"} and not (
            table.decimal == self.mark == ","
        ):  # which is said once
            remarks.append(f"commas {where} {ROLES[self.mark == ',']}")
        if "dots" in found and "," in (self.mark, of_file):
            remarks.append(f"dots {where} {ROLES[self.mark == '.']}, since commas stand before decimals elsewhere")
        return [*remarks, *self._told_forms()], doubts

    def _told_forms(self) -> list[str]:
        """Return how numbers are written besides, with a cell each."""
        remarks, where = list[str](), f"in column {self.name!r}"
        for how, cell in self._forms.items():
            mark = "apostrophes" if {*cell} & {*APOSTROPHES} else "blanks"
            remarks.append(
                f"{how} {where} make numbers negative ({cell})" if how else f"{mark} {where} {ROLES[False]} ({cell})"
            )
        return remarks


class Columns:
    """Columns of a table as numbers: texts of few kinds encoded, commas in numbers read as the whole column tells.

    Columns of at most 20 different texts are encoded, and those that `categorical` names; where it is empty, only those
    of `if_text` that hold so few texts. `levels` are the texts of columns that were encoded before, of which others are
    gaps, `signs` what stood at the numbers of others, and `within` the least and the greatest of these.
    """

    def __init__(
        self,
        table: Table,
        used: Sequence[str],
        categorical: Sequence[str] | None = None,
        levels: dict[str, list[str]] | None = None,
        if_text: Sequence[str] = (),
        signs: dict[str, list[str]] | None = None,
        within: dict[str, Sequence[float]] | None = None,
    ) -> None:
        known = set(table.names)
        if missing := [name for name in (*used, *(categorical or ())) if name not in known]:
            raise unknown(missing[0], table.names, f"{table.path} has no column")
        self._table, self.used, self._categorical = table, list(used), categorical or ()
        self._if_text = set(used if categorical is None or self._categorical else if_text)
        self._unknown: Counter[tuple[str, str]] = Counter()
        self._signs_before, self._within, self._doubts = signs, within or {}, list[str]()
        self.levels = {name: texts for name, texts in (levels or {}).items() if name in used}
        self.seen = {name: Column(name, most_levels=np.inf) for name in categorical or () if name in used}
        self._n_seen = 0
        self._empty, self._same = dict.fromkeys(used), list[str]()
        words = {name: words_of(name) for name in used}
        ends = {name: own[-1] in NUMBER_WORDS for name, own in words.items() if own}
        counting = (name for name, own in words.items() if ends.get(name) or (len(own) == 1 and own[0] in ROW_WORDS))
        self._counting = dict.fromkeys([*counting, *(name for name in used if name in table.unnamed)])
        self._codes: dict[str, set[float]] = {  # each with some of its values
            name: set() for name, own in words.items() if names_things(own) or (ends.get(name) and own[0] in ROW_WORDS)
        }
        self._different = {*self._codes}  # those whose cells all differ, as far as blocks tell
        self.remarks: list[str] = []

    def look(self, frame: Any) -> None:
        """Count what the cells of a block are."""
        for name, kind in zip(self.used, frame.dtypes.to_numpy(), strict=True):
            if name not in self.seen and kind.kind not in NUMERIC:
                self.seen[name] = Column(name, self._n_seen, within=self._within.get(name))
            if kind.kind == "b" and self._n_seen == 0:
                self.remarks.append(f"true and false in column {name!r} were read as 1 and 0")
        self._empty = {name: None for name in self._empty if not frame[name].notna().any()}
        places = np.arange(self._n_seen, self._n_seen + len(frame))
        starts = {name: {*(frame[name] - places).dropna()} for name in self._counting if is_numeric(frame[name])}
        starts = {name: own | (self._counting[name] or set()) for name, own in starts.items()}
        self._counting = {name: own for name, own in starts.items() if len(own) == 1}  # one more in every row
        whole = (name for name in self._codes if is_numeric(frame[name]) and not (frame[name] % 1).any())
        self._codes = {name: self._codes[name] | {*frame[name].dropna().unique()[:3].tolist()} for name in whole}
        self._different = {name for name in self._different & self._codes.keys() if frame[name].is_unique}
        for name, one in self.seen.items():
            one.add(frame[name], self._table.empty)
        self._n_seen += len(frame)

    def note_codes(self, explaining: Iterable[str]) -> None:
        """Tell of whole numbers under a name for things, which count as amounts: of two it makes no difference."""
        codes = {name for name, values in self._codes.items() if len(values) > 2}.difference(self.levels)
        for name in (one for one in explaining if one in codes and one in self.used):
            told = f"column {name!r} holds whole numbers, which count as amounts: if they name"
            each = f"things, give each its own term with --categorical {shlex.quote(name)}"
            rows = f"the rows, as no two are equal, leave them out with --drop {shlex.quote(name)}"
            self.remarks.append(f"{told} {rows if name in self._different else each}")

    def leave_out(self, optional: Iterable[str], wanted: Collection[str] = ()) -> None:
        """Use those of some columns no more that tell nothing, or count the rows and are not wanted; say so."""
        names = set(optional) if self._n_seen else set()
        told = dict.fromkeys(self._empty, "is empty in every row and")
        unwanted = [name for name in self._counting if name not in wanted]
        told |= dict.fromkeys(self._same, "has one value only and")
        told |= dict.fromkeys(unwanted, "only counts the rows (name it to keep it) and")
        for name, why in told.items():
            if name in names:
                self.used.remove(name)
                self.seen.pop(name, None)
                self.remarks.append(f"column {name!r} {why} was left out")

    def settle(self) -> None:
        """Decide what every column is; raise TableError where some cannot be used."""
        unusable, strange, signs = dict[str, str](), dict[str, list[int]](), list[tuple[str, str]]()
        for name, one in self.seen.items():
            if name in self.levels:
                continue
            told = self._table.told_decimal or self._table.decimal
            signs += [(name, said) for said in one.settle_sign(told)] if name not in self._categorical else []
            contents = one.contents
            if name in self._categorical or (name in self._if_text and contents == "texts, not numbers"):
                texts, ticked = sorted(one.levels, key=rank), one.kinds.total() < self._n_seen
                self.levels[name] = ["", *texts] if ticked and len(texts) == 1 else texts
                self.remarks += told_of_levels(name, self.levels[name])
                self._doubts += [] if name in self._categorical else doubt_of_levels(name, texts)
            elif contents != "numbers":
                unusable[name] = f"column {name!r} holds {contents}"
                if "texts" in contents:
                    unusable[name] += example_of(self._table, name, unit_of)
                if contents.startswith("numbers") and len(one.units) > 1:
                    unusable[name], strange[name] = told_units(self._table, name, one.units, unit_of)
        self.remarks += told_once(signs)
        numbers = [one for name, one in self.seen.items() if name not in self.levels and name not in unusable]
        self._settle_marks(numbers)
        if unusable:
            raise self._without(unusable, strange, [one for one in numbers if one.n_wrong])

    def _settle_marks(self, numbers: Sequence[Column]) -> None:
        of_file = self._table.decimal or decided(sum((one.kinds for one in numbers), self._table.notations))
        likely, told = {one.name: one.likely_mark for one in numbers}, list[tuple[str, str]]()
        marks, guess = {*likely.values()} - {None}, None
        if len(marks) == 1:
            (guess,) = marks
        elif any("either" in one.kinds for one in numbers):
            # Commas that separate columns as well stand before no decimals.
            guess = "." if self._table.separator == "," or any(one.sizes.mixed for one in numbers) else ","
        for one in numbers:
            remarks, doubts = one.settle_mark(self._table, of_file, likely[one.name] or guess)
            told += [(one.name, said) for said in remarks]
            self._doubts += doubts
        self.remarks += told_once(told)

    def _without(self, unusable: dict[str, str], strange: dict[str, list[int]], wrong: Sequence[Column]) -> TableError:
        """Return the error of columns that cannot be used, and of the wrong cells of others.

        Given are what is said of the former, lines with strange units, and the columns with wrong cells.
        """
        others = [name for name in self.used if name not in unusable]
        cells = uneven_or_wrong(self._table, [one.name for one in wrong], unit_of)[0] if wrong else []
        ways: dict[str, Any] = {"tokens": few_tokens(wrong)}
        ways["runs"] = [name for name in unusable if self.seen[name].tells_runs(self._n_seen)]
        ways["clocks"] = [name for name in unusable if self.seen[name].contents in (DATES, TIMES_OF_DAY)]
        if all(strange.get(name) for name in unusable):  # then these lines are all that is in the way
            ways["lines"] = sorted({line for own in strange.values() for line in own})
        else:
            ways["useless"] = unusable
        return TableError(self._table.path, [*unusable.values(), *cells], unusable, others, **ways)

    def names_of(self, column: str) -> list[str]:
        """Return the names of the columns of numbers that one column gives."""
        return level_names(column, self.levels[column]) if column in self.levels else [column]

    @property
    def names(self) -> list[str]:
        """Return the names of all columns of numbers."""
        return [name for column in self.used for name in self.names_of(column)]

    def numbers(self, frame: Any, rows: Sequence[int]) -> Array:
        """Return a block of rows, by their numbers, as numbers, gaps as NaN; raise TableError for other cells."""
        frame = frame if frame.shape[1] == len(self.used) else frame[self.used]
        if not self.levels and all(kind.kind in NUMERIC for kind in frame.dtypes.to_numpy()):
            return np.asarray(frame.to_numpy(dtype=float))
        parts, problems = [], []
        for name in self.used:
            column = frame[name]
            if name in self.levels:
                values, bad = indicators(*texts_of(column, self._table.empty), self.levels[name])
                self._unknown.update((name, str(cell).strip()) for cell in column[bad])
            else:
                told = (self.seen[name].mark, self.seen[name].sign) if name in self.seen else (None, "")
                values, bad = as_numbers(column, told[0], self._table.empty, told[1])
                wrong = zip(np.flatnonzero(bad).tolist(), column[bad], strict=True)
                problems += [(rows[row], name, self._no_number(name, str(cell))) for row, cell in wrong]
            parts.append(values)
        if problems:
            raise self.wrong(problems)
        return np.column_stack(parts)

    def _no_number(self, name: str, cell: str) -> str:
        """Say that a cell holds no number, and why one that looks like one does not suit the others."""
        if not notation_of(cell) or self._table.told_decimal or name not in self.seen:
            return f"{cell!r} is not a number"
        one = self.seen[name]
        one.tokens[cell] = None
        comma, plain = one.mark == ",", not one.kinds.keys() & {"thousands", "either"}
        role = f"dots {ROLES[True]}" if plain and not comma else f"commas {ROLES[comma]}"
        return f"{cell!r} is not a number, as {role} here: correct it (or, if they do not, --decimal {',.'[comma]})"

    def read(self, frame: Any, optional: Sequence[str] = ()) -> Array:
        """Return a frame, whose index numbers its rows, as numbers: all of it tells what the columns are.

        Columns that are optional, and empty, count the rows or never change, are left out.
        """
        self.look(frame)
        texts = [name for name in optional if name in self.seen]
        same = [name for name in optional if name not in texts and frame[name].min() == frame[name].max()]
        self._same = same + [
            n for n in texts if len(self.seen[n].levels) == 1 and self.seen[n].kinds.total() == self._n_seen
        ]
        self.leave_out(optional if len(self._same) < len(optional) else ())
        self.settle()
        return self.numbers(frame, frame.index)

    @property
    def signs(self) -> dict[str, list[str]]:
        """Return the sign or unit of every column of numbers that has one: of its cells, else from the row of units."""
        units = self._table.units | {name: one.sign for name, one in self.seen.items() if one.sign}
        return {name: [units[name]] for name in self.used if name in units and name not in self.levels}

    def doubts(self) -> list[str]:
        """Return which signs differ from those before, and which texts were taken as gaps, and what they may mean."""
        before = self.signs if self._signs_before is None else self._signs_before
        pairs = {name: [*(one.get(name, ["none"])[0] for one in (before, self.signs))] for name in self.used}
        told = "column {!r} had the sign or unit {} when the model was fitted, and have {} here"
        changed = [told.format(name, old, new) for name, (old, new) in pairs.items() if old != new]
        other = [f"Numbers of {'; of '.join(changed)}: see that they count in the same unit."] if changed else []
        other = [*self._doubts, *other]
        for (name, text), count in self._unknown.items():
            where = f"column {name!r} ({counted(count, 'row')}): unknown text"
            other.append(f"{unknown(text, self.levels[name], where)} It was taken as empty.")
        return other

    def wrong(self, cells: list[tuple[int, str, str]]) -> TableError:
        """Return the error of cells that cannot be used: row, column and what is wrong."""
        return error_of_cells(self._table, self.used, [*self.levels], self.seen, cells, unit_of)
