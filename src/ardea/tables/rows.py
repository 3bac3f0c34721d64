"""Rows of a regression from a file: the target and the columns to explain it with, in blocks that fit into memory."""

from __future__ import annotations

import shlex
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ardea.core.compression import COMPRESSION_COLUMN_LIMIT, CompressedRows
from ardea.core.problem import Array, require
from ardea.names import counted
from ardea.tables.columns import Columns, texts_of
from ardea.tables.dates import looks_like_dates, names_time
from ardea.tables.levels import few_rows_of_texts, told_nested
from ardea.tables.notation import FEW
from ardea.tables.reading import Header, open_table
from ardea.tables.series import set_back, times_of
from ardea.tables.table import (
    BYTES_PER_NUMBER,
    BYTES_PER_TEXT,
    DEFAULT_MEMORY,
    MOST_PROBLEMS,
    Table,
    TableError,
    bytes_of,
    shortened,
)
from ardea.tables.wrong import told_besides, told_totals

# Its square is finite, and so is the sum of ten millions of them.
LARGEST_NUMBER = 1e150
# Blocks need not be larger: compression works on a megabyte at a time.
LARGEST_BLOCK = 64 * 2**20
# Unless memory is short: a frame of 100,000 columns takes pandas seconds, however few its rows (measured).
LEAST_ROWS = 256
# Tables of more cells are not read once more to count the texts in empty cells (a convention: a second).
MOST_CELLS = 10**6
# Steps of time so many times the median are gaps; where more than this share of the steps are, they are uneven instead:
# conventions.
GAP, MOST_GAPS = 1.5, 0.1
Missing = Literal["refuse", "drop"]


class Rows:
    """Rows of a regression in a file.

    Attributes
    ----------
    table : Table
        The file.
    names : tuple of str
        Columns of X; a column of texts gives one for every text but the first, its reference.
    targets : tuple of str
        Columns of y; of two texts one counts as 1 and the other as 0.
    levels, signs : dict of str to list of str
        The texts of columns that are encoded, and the sign or unit that was left out of the numbers of others.
    fits : bool
        Whether all rows fit into memory.
    n_read, n_left_out : int
        Rows that `blocks` has read so far, and those of them left out since they have gaps.
    gaps : dict of str to int
        How many of these rows have a gap in a column, for columns that have any.
    remarks, doubts : list of str
        How the file was read, and what of it gives reason for doubt.

    Columns that are empty, or that are called an index and count the rows, are left out; the latter unless `wanted`.
    """

    def __init__(
        self,
        table: Table,
        targets: Sequence[str],
        columns: Sequence[str],
        *,
        memory: int | str = DEFAULT_MEMORY,
        missing: Missing = "refuse",
        categorical: Sequence[str] | None = None,
        levels: dict[str, list[str]] | None = None,
        wanted: Collection[str] = (),
    ) -> None:
        if missing not in ("refuse", "drop"):
            raise ValueError(f"missing={missing!r} is not known: choose 'refuse' or 'drop'.")
        if not columns or len({*columns, *targets}) < len(columns) + len(targets):
            raise ValueError(
                f"{table.path}: the columns to explain with must be at least one, once each, and not the target."
            )
        self.table, self.targets, self.memory, self._missing = table, tuple(targets), bytes_of(memory), missing
        self._columns = Columns(table, [*columns, *targets], categorical, levels)
        self._forget()
        self.rows_per_block = self._fitting_rows()
        self._read_already: Iterator[Any] | None = None
        self._n_rows = 0
        try:
            self.fits = self._survey(columns if levels is None else (), wanted)
        except TableError as error:
            fresh = Columns(table, [*columns, *targets], categorical, levels)
            raise error if error.columns else told_besides(error, table, fresh) from None
        self.levels, self.signs = self._columns.levels, self._columns.signs
        self.names = tuple(self._columns.names[: len(self._columns.names) - len(targets)])
        if texts := [name for name in targets if len(self.levels.get(name, "01")) != 2]:
            raise TableError(table.path, [f"column {name!r} holds texts, not numbers" for name in texts], texts)
        if not self.names:
            raise TableError(table.path, [f"no column is left to explain {', '.join(targets)} with"])

    @property
    def target_names(self) -> list[str]:
        """Return what y is called: of a column of two texts, the column and the text that counts as 1."""
        return [one for name in self.targets for one in self._columns.names_of(name)]

    @property
    def columns(self) -> list[str]:
        """Return the columns of the file that X is made of."""
        return [name for name in self._columns.used if name not in self.targets]

    @property
    def remarks(self) -> list[str]:
        """Return how the file was read."""
        n = self.n_left_out
        verbs = "have empty cells and were" if n > 1 else "has empty cells and was"
        left_out = [f"{n} of {self.n_read} rows {verbs} left out"] if n else []
        return [*self.table.remarks, *self.table.unmet(), *self._columns.remarks, *self._noticed, *left_out]

    @property
    def doubts(self) -> list[str]:
        """Return what of it gives reason for doubt."""
        doubts = [*self._columns.doubts(), *self._totals(), *self._nested]
        if 2 * self.n_left_out <= self.n_read:
            return doubts
        told = f"{self._emptiest(self.columns)}: leaving out such columns (--drop) keeps more rows"
        if self.gaps.most_common(1)[0][0] in self.targets:
            told = f"the target, {self._emptiest(self.targets)}"
        return [*doubts, f"More than half of the rows were left out. Most empty cells are in {told}."]

    def _totals(self) -> list[str]:
        """Tell of rows that bear a name for sums or means in a column of texts, used or not."""
        table, numbers = self.table, {*self._columns.used}.difference(self.levels)
        texts = [name for name in table.names if name not in numbers]
        small = not table.once and self.n_read * table.width <= MOST_CELLS
        return told_totals(table, texts, self.n_read) if texts and small else []

    def _forget(self) -> None:
        """Forget what was counted when the rows were last read."""
        self.n_read = self.n_left_out = 0
        self.gaps = Counter[str]()
        self._left_out: list[Any] = []  # their numbers
        self._noticed, self._nested = list[str](), list[str]()

    def _survey(self, optional: Iterable[str], wanted: Collection[str]) -> bool:
        """Read all rows that fit into memory, all others too where some column is not of numbers; return if all fit."""
        used = self._columns.used
        whole = BYTES_PER_NUMBER * len(used) * (self.table.n_rows or 0)
        if whole <= self.memory:
            require(whole, f"{self.table.path} as a whole")
        frames, head, size = self.table.frames(self.rows_per_block, used), deque[Any](), 0.0
        for frame in frames:
            self._columns.look(frame)
            texts = len(self._columns.seen)
            self._n_rows += len(frame)
            size += len(frame) * (BYTES_PER_NUMBER * len(used) + BYTES_PER_TEXT * texts)
            head.append(frame)
            if size > self.memory and not texts:
                self._read_already = _emptied(head, frames)
                return False
            if size > self.memory and self.table.once:
                said = "is a pipe with more rows of text than fit into memory"
                raise ValueError(f"{self.table.path} {said}: save it to a file first, or raise the bound on memory.")
            if size > self.memory:
                head.clear()
        self._columns.leave_out(optional, wanted)
        self._columns.settle()
        self._columns.note_codes([name for name in optional if name not in wanted])
        self._read_already = _emptied(head, ()) if size <= self.memory else None
        return size <= self.memory

    def _sound_blocks(self) -> Iterator[Array]:
        """Yield columns and targets side by side, without rows that have gaps."""
        self._forget()
        frames, self._read_already = self._read_already, None
        for frame in frames or self.table.frames(self.rows_per_block, self._columns.used):
            block = self._columns.numbers(frame, range(self.n_read, self.n_read + len(frame)))
            flat = block.ravel(order="K")
            with np.errstate(over="ignore", invalid="ignore"):
                sound = np.isfinite(flat @ flat)
            whole = block if sound else self._whole_rows(block)
            self.n_read += len(block)
            if len(whole):
                yield whole
        if not self.n_read:
            raise ValueError(f"{self.table.path} has no rows.")
        if self.n_left_out == self.n_read:
            problem = f"every row has empty cells, most of them in {self._emptiest(self._columns.used)}"
            raise TableError(self.table.path, [problem], [self.gaps.most_common(1)[0][0]])

    def _whole_rows(self, block: Array) -> Array:
        """Return the rows without gaps, and count the others; refuse what is no gap and no number either."""
        empty = np.isnan(block)
        bad = ~(np.abs(block) <= LARGEST_NUMBER)
        if self._missing == "drop":
            bad &= ~empty
        owners = [column for column in self._columns.used for _ in self._columns.names_of(column)]
        if bad.any():
            cells = np.argwhere(bad)[: MOST_PROBLEMS + 1]
            error = self._columns.wrong([(self.n_read + int(i), owners[j], _trouble(block[i, j])) for i, j in cells])
            if np.isinf(block[bad]).all() and bad.sum(axis=0).max() <= max(1, FEW * len(block)):
                error.tokens = tuple(sorted({str(value) for value in block[bad].tolist()}))
            raise error
        # Columns of one owner are empty together.
        self.gaps += Counter(dict(zip(owners, empty.sum(axis=0).tolist(), strict=True)))
        left_out = empty.any(axis=1)
        self._left_out.append(self.n_read + np.flatnonzero(left_out))
        self.n_left_out += int(left_out.sum())
        return block[~left_out]

    def _emptiest(self, columns: Collection[str]) -> str:
        """Return those of some columns with most gaps, with their numbers, as text."""
        found = ((name, count) for name, count in self.gaps.most_common() if count and name in columns)
        return ", ".join(f"{name!r} ({count})" for name, count in islice(found, 3))

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Yield (X, y), block by block; y has a second axis where there are several targets.

        A value that is infinite or beyond 1e150 raises ValueError, with its row and column; so does one that is
        missing, unless rows with gaps are to be left out.
        """
        split = len(self.names)
        for block in self._sound_blocks():
            yield block[:, :split], block[:, split] if len(self.targets) == 1 else block[:, split:]

    def arrays(self) -> tuple[Array, Array]:
        """Return X and y as a whole."""
        split, start = len(self.names), 0
        X, y = np.empty((self._n_rows, split)), np.empty((self._n_rows, len(self.targets)))
        for block in self._sound_blocks():
            stop = start + len(block)
            X[start:stop], y[start:stop] = block[:, :split], block[:, split:]
            start = stop
        self._look_at(X[:start])
        return X[:start], y[:start, 0] if len(self.targets) == 1 else y[:start]

    def labels(self, column: str) -> NDArray[Any]:
        """Return the texts of another column, for the rows that `arrays` has returned."""
        labels = self._all_labels(column)[~self._is_left_out]
        if none := sum(label is None for label in labels):
            told = f"column {column!r} has {counted(none, 'empty cell')}, so that its row has no group. Fill them."
            raise ValueError(f"{self.table.path}: {told}")
        return labels

    def groups(self, column: str | None, series: bool) -> NDArray[Any] | None:
        """Return the labels of groups, or of several series, for an estimator's `fit`; None where there is one series.

        Rows beside those left out are no neighbours, nor are those between which time jumps: with gaps, every stretch
        is a series of its own.
        """
        labels = None if column is None else self.labels(column)
        if not (series and self.fits):
            return labels
        left_out = self._is_left_out
        every = np.zeros(left_out.size) if column is None else self._all_labels(column)
        jump = self._jumps(every)
        if left_out.any():
            self._noticed.append("a row left out ends a series: what comes after it is taken as another one")
        if not (left_out | jump).any():
            return labels
        before, found = Counter[Any](), []
        for label, new in zip(every, left_out | jump, strict=True):
            before[label] += int(new)
            found.append(f"{label}, {before[label]}")
        return np.array(found, dtype=object)[~left_out]

    def _jumps(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the rows before which time jumps, by a column of times; say what was found."""
        jump = np.zeros(labels.size, dtype=bool)
        name, times = self._time_column()
        if times is None or times.size != labels.size:
            return jump
        groups = [np.flatnonzero(labels == one) for one in dict.fromkeys(labels.tolist())]
        steps = np.concatenate([np.diff(times[rows]) for rows in groups]).astype(float)
        after = np.concatenate([rows[1:] for rows in groups])
        local = groups if self.table.zone is None and times.dtype.kind == "M" and not np.all(steps > 0) else []
        zone = next(filter(None, (set_back(times[rows]) for rows in local)), None)
        if zone or not np.all(steps >= 0):
            but = f", as clocks are set back in {zone}: --zone {zone} counts them right" if zone else ""
            self._noticed.append(f"rows of a series must be in the order of time, and by {name!r} they are not{but}")
            return jump
        forward = steps[steps > 0]
        large = steps > GAP * np.median(forward) if forward.size else np.zeros(steps.size, dtype=bool)
        if large.sum() + steps.size - forward.size > MOST_GAPS * steps.size:
            self._noticed.append(f"the steps of {name!r} are uneven, while those of a series are taken to be even")
        elif large.any():
            jump[after[large]] = True
            gaps = counted(int(large.sum()), "gap")
            self._noticed.append(f"{name!r} has {gaps}: what comes after a gap is taken as another series")
        return jump

    def _time_column(self) -> tuple[str, Array | None]:
        """Return the first column with a name for times; else the first that is left out of the fit and holds dates."""
        if self.table.once:
            return "", None
        if (named := next(filter(names_time, self.table.names), None)) is not None:
            return named, self._times(named)
        for name in (one for one in self.table.names if one not in self._columns.used):
            if (times := self._times(name)) is not None and times.dtype.kind == "M":
                return name, times
        return "", None

    def _times(self, name: str) -> Array | None:
        """Return a column as times, None where some cell is none."""
        import pandas as pd

        column = pd.concat(self.table.frames(self.rows_per_block, [name]), ignore_index=True)
        try:
            return times_of(self.table, column, name)[0]
        except ValueError:
            return None

    def line_of(self, row: int) -> int | None:
        """Return the line of the file that holds a row of `arrays`; None where a file has no lines."""
        number = int(np.flatnonzero(~self._is_left_out)[row])
        return next((line for line, _ in islice(self.table.numbered_rows(), number, None)), None)

    @property
    def _is_left_out(self) -> NDArray[np.bool_]:
        gap = np.zeros(self.n_read, dtype=bool)
        gap[np.concatenate([[], *self._left_out]).astype(np.intp)] = True
        return gap

    def _all_labels(self, column: str) -> NDArray[Any]:
        """Return the texts of another column, None where there is none."""
        if self.table.once or not self.fits:
            raise ValueError(f"{self.table.path}: labels ({column!r}) need a file that fits into memory.")
        found: list[Any] = []
        for frame in self.table.frames(self.rows_per_block, [column]):
            codes, texts = texts_of(frame[column], self.table.empty)
            found += [texts[code] if code >= 0 else None for code in codes]
        return np.array(found, dtype=object)

    def _look_at(self, X: Array) -> None:
        """Notice columns that look like dates or never change, and texts that were taken as empty."""
        for name, column in zip(self.names, X.T, strict=True):
            if column[0] >= 17000101 and looks_like_dates(column):
                self._noticed.append(f"column {name!r} looks like dates ({column[0]:.0f}) but is used as a number")
        same = [self.names[j] for j in np.flatnonzero(np.ptp(X, axis=0) == 0)] if len(X) > 1 else []
        for name in (one for one in same if self.gaps[one]):
            what = f"column {name!r} is the same in every row that has it, and empty in {self.gaps[name]}"
            self._noticed.append(f"{what}: if empty means no, --categorical {shlex.quote(name)}")
        if same := [name for name in same if not self.gaps[name]]:
            self._noticed.append(f"the same in every row, so that nothing can be said of it: {shortened(same)}")
        self._nested = told_nested(self.names, X, self.levels)
        self._noticed += few_rows_of_texts(len(X), self.levels)
        if self.n_left_out and self.n_read * len(self._columns.used) <= MOST_CELLS:
            self._noticed += self._taken_as_empty()

    def _taken_as_empty(self) -> list[str]:
        """Return which texts in columns with gaps were taken as empty, and how many cells."""
        table, found = self.table, Counter[str]()
        used = [table.names.index(name) for name in self.gaps]
        for _, row in table.numbered_rows():
            found.update(row[j] for j in used if j < len(row) and row[j] and row[j] in table.empty)
        hints = {token: "" if token in table.na else "; --na none: not" for token in found}
        most = found.most_common(5)
        return [f"{token!r} was taken as empty ({counted(count, 'cell')}{hints[token]})" for token, count in most]

    def compressed(self, progress: bool | None = None) -> CompressedRows:
        """Read all rows and return their compression, for an estimator's `fit` (as X, with None for y)."""
        from tqdm import tqdm

        if len(self.names) > COMPRESSION_COLUMN_LIMIT:
            most = f"at most {COMPRESSION_COLUMN_LIMIT} are read in blocks"
            raise ValueError(f"{self.table.path} has {len(self.names)} columns; {most}.")
        fixed, row = self._bytes()
        held = f"A block of {self.table.path}"
        require(fixed + self.rows_per_block * row, held, "Give a smaller bound on memory (memory=, or --memory).")
        hidden = None if progress is None else not progress  # None: where standard error is no terminal
        with tqdm(desc=self.table.path.name, total=self.table.n_rows, unit=" rows", disable=hidden) as bar:

            def blocks() -> Iterator[tuple[Array, Array, None]]:
                for X, y in self.blocks():
                    bar.update(self.n_read - bar.n)
                    yield X, y.reshape(len(y), -1), None

            one = len(self.targets) == 1
            return replace(CompressedRows.from_blocks(blocks()), names=self.names, one_target=one)

    def _bytes(self) -> tuple[int, float]:
        """Return what is needed however few rows a block has (a factor, a second one, and their stack), and for each.

        A row is there as it is read, in a frame, as a block, and so is the one before.
        """
        width = 1 + len(self._columns.used)
        fixed = 4 * 8 * width**2 if width <= COMPRESSION_COLUMN_LIMIT else 0
        return fixed, self.table.bytes_per_row + 8 * 4 * (width - 1)

    def _fitting_rows(self) -> int:
        """Return how many rows fit, beside the factors of the compression and what is read already (half)."""
        fixed, row = self._bytes()
        rows = max(1, int(min((self.memory - fixed) / 2, max(LARGEST_BLOCK, LEAST_ROWS * row)) // row))
        if fixed + row > self.memory:
            needed = f"{fixed + row:.0f} are needed for one row"
            raise ValueError(f"{self.table.path}: memory={self.memory} bytes is too little; {needed}.")
        if self.table.stored_bytes > self.memory:
            stored = f"what is stored together takes {self.table.stored_bytes} bytes, more than memory={self.memory}"
            raise ValueError(f"{self.table.path}: {stored}. Give more, or store it in smaller chunks.")
        together = self.table.stored_rows
        return rows if rows < together else rows - rows % together


def _emptied(head: deque[Any], rest: Iterable[Any]) -> Iterator[Any]:
    """Yield what was read, and let go of it, then the rest."""
    while head:
        yield head.popleft()
    yield from rest


def _trouble(value: float) -> str:
    if np.isnan(value):
        return "the cell is empty or NaN. Fill it, or leave such rows out: missing='drop'"
    return f"{value} is {'not a finite number' if np.isinf(value) else 'too large to be squared; take a larger unit'}"


def open_rows(
    path: str | Path,
    target: str | int | Sequence[str | int],
    *,
    columns: Sequence[str | int] | None = None,
    memory: int | str = DEFAULT_MEMORY,
    missing: Missing = "refuse",
    categorical: Sequence[str] | None = None,
    header: Header = "auto",
    decimal: str | None = None,
    na: Sequence[str] = (),
) -> Rows:
    r"""Open a table for reading in blocks of rows.

    Parameters
    ----------
    path : str or Path
        A file of any kind that `open_table` reads.
    target : str, int or a list of these
        Column to explain, by name or by number (from 0; −1 is the last).
    columns : list of str or int, optional
        Columns to explain it with; by default all others but an index that counts the rows.
    memory : int or str, default="1 GB"
        Bound on the memory for blocks, in bytes or as text such as "500 MB".
    missing : {"refuse", "drop"}, default="refuse"
        Rows in which a cell in use is empty, NA or NaN are an error, or are left out.
    categorical : list of str, optional
        Columns to encode, one column for every text but the first. By default those of at most 20 different texts.
    header, decimal, na
        As for `open_table`.

    Returns
    -------
    Rows

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "table.csv"
    >>> _ = path.write_text("a,b,y\n1,red,3\n4,blue,6\n")
    >>> rows = open_rows(path, "y")
    >>> rows.names
    ('a', 'b=red')
    >>> next(rows.blocks())
    (array([[1., 1.],
           [4., 0.]]), array([3., 6.]))
    >>> folder.cleanup()

    Rows beyond memory are compressed one block after another, and an estimator (or an `ARDSearch` that does not
    resample) is fitted to the result: ``SparseARD().fit(open_rows(path, "y").compressed(), None)``.
    """
    table = open_table(path, header=header, decimal=decimal, na=na)
    given: Any = target if isinstance(target, list | tuple) else [target]
    targets = [table.target(one) for one in given]
    named = [table.column(one) for one in columns or ()]
    chosen = named if columns is not None else [name for name in table.names if name not in set(targets)]
    return Rows(table, targets, chosen, memory=memory, missing=missing, categorical=categorical, wanted=named)
