"""Rows of a regression from a file: the target and the columns to explain it with, in blocks that fit into memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ardea.core.compression import COMPRESSION_COLUMN_LIMIT, CompressedRows, Compression
from ardea.core.memory import require
from ardea.core.problem import Array
from ardea.tables.columns import FEW, Columns, looks_like_dates
from ardea.tables.reading import Header, open_table
from ardea.tables.table import (
    BYTES_PER_NUMBER,
    BYTES_PER_TEXT,
    DEFAULT_MEMORY,
    MOST_PROBLEMS,
    Table,
    TableError,
    bytes_of,
)

# Its square is finite, and so is the sum of ten millions of them.
LARGEST_NUMBER = 1e150
# Blocks need not be larger: compression works on a megabyte at a time.
LARGEST_BLOCK = 64 * 2**20
# Unless memory is short: a frame of 100,000 columns takes pandas seconds, however few its rows (measured).
LEAST_ROWS = 256
# Tables of more cells are not read once more to count the texts in empty cells (a convention: a second).
MOST_CELLS = 10**6
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
        Columns of y.
    levels : dict of str to list of str
        The texts of columns that are encoded.
    fits : bool
        Whether all rows fit into memory.
    n_read, n_left_out : int
        Rows that `blocks` has read so far, and those of them left out since they have gaps.
    gaps : dict of str to int
        How many of these rows have a gap in a column, for columns that have any.
    remarks : list of str
        How the file was read.
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
    ) -> None:
        if missing not in ("refuse", "drop"):
            raise ValueError(f"missing={missing!r} is not known: choose 'refuse' or 'drop'.")
        if not columns or len({*columns, *targets}) < len(columns) + len(targets):
            raise ValueError(
                f"{table.path}: the columns to explain with must be at least one, once each, and not the target."
            )
        self.table, self.targets, self.memory, self._missing = table, tuple(targets), bytes_of(memory), missing
        self._used, self._may_leave_out = [*columns, *targets], levels is None
        self._columns = Columns(table, self._used, categorical, levels)
        self.n_read = self.n_left_out = 0
        self.gaps: dict[str, int] = {}
        self.rows_per_block = self._fitting_rows()
        self.fits = False
        self._head: deque[Any] = deque()
        self._rest: Iterator[Any] | None = None
        self._n_rows = 0
        self._survey()
        self.levels = self._columns.levels
        self.remarks = [*table.remarks, *self._columns.remarks]
        self.names = tuple(self._columns.names[: len(self._columns.names) - len(targets)])
        if texts := [name for name in targets if name in self.levels]:
            raise TableError(table.path, [f"column {name!r} holds texts, not numbers" for name in texts], texts)
        if not self.names:
            raise TableError(table.path, [f"no column is left to explain {', '.join(targets)} with"])

    def _survey(self) -> None:
        """Read all rows that fit into memory, and all others too where some column in use is not of numbers."""
        whole = BYTES_PER_NUMBER * len(self._used) * (self.table.n_rows or 0)
        if whole <= self.memory:
            require(whole, f"{self.table.path} as a whole")
        self._rest = self.table.frames(self.rows_per_block, self._used)
        size = 0.0
        for frame in self._rest:
            self._columns.look(frame)
            texts = len(self._columns.seen)
            self._n_rows += len(frame)
            size += len(frame) * (BYTES_PER_NUMBER * len(self._used) + BYTES_PER_TEXT * texts)
            self._head.append(frame)
            if size > self.memory and not texts:
                return
            if size > self.memory and self.table.once:
                raise ValueError(
                    f"{self.table.path} is a pipe with more rows of text than fit into memory: save it to a file "
                    "first, or raise the bound on memory."
                )
            if size > self.memory:
                self._head.clear()
        self.fits = size <= self.memory
        self._rest = None
        empty = [name for name in self._used if name in self._columns.empty and name not in self.targets]
        if empty and self._n_rows and self._may_leave_out:
            self._columns.leave_out(empty)
            self._used = [name for name in self._used if name not in empty]
        self._columns.settle()

    def _frames(self) -> Iterator[Any]:
        """Yield what was read already and the rest; or all again."""
        if not self._head and self._rest is None:
            yield from self.table.frames(self.rows_per_block, self._used)
            return
        while self._head:
            yield self._head.popleft()
        rest, self._rest = self._rest, None
        yield from rest or ()

    def _sound_blocks(self) -> Iterator[Array]:
        """Yield columns and targets side by side, without rows that have gaps."""
        self.n_read = self.n_left_out = 0
        self.gaps = {}
        for frame in self._frames():
            block = self._columns.numbers(frame, self.n_read)
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
            problem = f"every row has empty cells, most of them in {self.emptiest()}"
            raise TableError(self.table.path, [problem], self._emptiest()[:1])

    def _whole_rows(self, block: Array) -> Array:
        """Return the rows without gaps, and count the others; refuse what is no gap and no number either."""
        empty = np.isnan(block)
        bad = ~(np.abs(block) <= LARGEST_NUMBER)
        if self._missing == "drop":
            bad &= ~empty
        owners = [column for column in self._used for _ in self._columns.names_of(column)]
        if bad.any():
            cells = np.argwhere(bad)[: MOST_PROBLEMS + 1]
            error = self._columns.wrong([(self.n_read + int(i), owners[j], _trouble(block[i, j])) for i, j in cells])
            if np.isinf(block[bad]).all() and bad.sum(axis=0).max() <= max(1, FEW * len(block)):
                error.tokens = tuple(sorted({str(value) for value in block[bad].tolist()}))
            raise error
        # Columns of one owner are empty together.
        for name, count in dict(zip(owners, empty.sum(axis=0).tolist(), strict=True)).items():
            if count:
                self.gaps[name] = self.gaps.get(name, 0) + count
        left_out = empty.any(axis=1)
        self.n_left_out += int(left_out.sum())
        return block[~left_out]

    def _emptiest(self) -> list[str]:
        return sorted(self.gaps, key=lambda name: -self.gaps[name])

    def emptiest(self, most: int = 3) -> str:
        """Return the columns with most gaps, with their numbers, as text."""
        return ", ".join(f"{name!r} ({self.gaps[name]})" for name in self._emptiest()[:most])

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Yield (X, y), block by block; y has a second axis where there are several targets.

        A value that is infinite or beyond 1e150 raises ValueError, with its row and column; so does one that is
        missing, unless rows with gaps are to be left out.
        """
        split = len(self.names)
        for block in self._sound_blocks():
            rows = np.ascontiguousarray(block)
            yield rows[:, :split], rows[:, split] if len(self.targets) == 1 else rows[:, split:]

    def arrays(self) -> tuple[Array, Array]:
        """Return X and y as a whole."""
        split, start = len(self.names), 0
        X, y = np.empty((self._n_rows, split)), np.empty((self._n_rows, len(self.targets)))
        for block in self._sound_blocks():
            stop = start + len(block)
            X[start:stop], y[start:stop] = block[:, :split], block[:, split:]
            start = stop
        self._remark_on(X[:start])
        return X[:start], y[:start, 0] if len(self.targets) == 1 else y[:start]

    def _remark_on(self, X: Array) -> None:
        """Tell of columns that look like dates, that never change, and of texts that were taken as empty."""
        for name, column in zip(self.names, X.T, strict=True):
            if column[0] >= 17000101 and looks_like_dates(column):
                self.remarks.append(f"column {name!r} looks like dates ({column[0]:.0f}) but is used as a number")
        if len(X) > 1 and (same := [self.names[j] for j in np.flatnonzero(np.ptp(X, axis=0) == 0)]):
            self.remarks.append(f"the same in every row, so that nothing can be said of it: {', '.join(same[:5])}")
        if self.n_left_out and self.n_read * len(self._used) <= MOST_CELLS:
            self.remarks += self.table.taken_as_empty(list(self.gaps))

    def compressed(self, progress: bool | None = None) -> CompressedRows:
        """Read all rows and return their compression, for an estimator's `fit` (as X, with None for y)."""
        if len(self.names) > COMPRESSION_COLUMN_LIMIT:
            most = f"at most {COMPRESSION_COLUMN_LIMIT} are read in blocks"
            raise ValueError(f"{self.table.path} has {len(self.names)} columns; {most}.")
        held = self._fixed_bytes() + self.rows_per_block * self._bytes_per_row()
        require(held, f"A block of {self.table.path}", "Give a smaller bound on memory (memory=, or --memory).")
        blocks = ((X, y.reshape(len(y), -1), None) for X, y in self._counted(progress))
        return CompressedRows(Compression.from_blocks(blocks), self.names, len(self.targets) == 1)

    def _counted(self, progress: bool | None) -> Iterator[tuple[Array, Array]]:
        """Yield the blocks and show how many rows have been read."""
        from tqdm import tqdm

        hidden = None if progress is None else not progress  # None: where standard error is no terminal
        with tqdm(desc=self.table.path.name, total=self.table.n_rows, unit=" rows", disable=hidden) as bar:
            for block in self.blocks():
                bar.update(self.n_read - bar.n)
                yield block

    def _bytes_per_row(self) -> float:
        """Return what a row takes while it is worked on: as it is read, in a frame, as a block, the one before."""
        return self.table.bytes_per_row + 8 * 4 * len(self._used)

    def _fixed_bytes(self) -> int:
        """Return what is needed however few rows a block has: a factor, a second one, and their stack."""
        width = 1 + len(self._used)
        return 4 * 8 * width**2 if width <= COMPRESSION_COLUMN_LIMIT else 0

    def _fitting_rows(self) -> int:
        """Return how many rows fit, beside the factors of the compression and what is read already (half)."""
        fixed, row = self._fixed_bytes(), self._bytes_per_row()
        rows = max(1, int(min((self.memory - fixed) / 2, max(LARGEST_BLOCK, LEAST_ROWS * row)) // row))
        if fixed + row > self.memory:
            needed = f"{fixed + row:.0f} are needed for one row"
            raise ValueError(f"{self.table.path}: memory={self.memory} bytes is too little; {needed}.")
        if self.table.stored_bytes > self.memory:
            stored = f"what is stored together takes {self.table.stored_bytes} bytes, more than memory={self.memory}"
            raise ValueError(f"{self.table.path}: {stored}. Give more, or store it in smaller chunks.")
        together = self.table.stored_rows
        return rows if rows < together else rows - rows % together


def _trouble(value: float) -> str:
    if np.isnan(value):
        return "the cell is empty or NaN. Fill it, or leave such rows out: missing='drop'"
    large = np.isfinite(value)
    return f"{value} is {'too large to be squared; take a larger unit' if large else 'not a finite number'}"


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
        Columns to explain it with; all others by default.
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
    if columns is None:
        chosen = [name for name in table.names if name not in set(targets)]
    else:
        chosen = [table.column(one) for one in columns]
    return Rows(table, targets, chosen, memory=memory, missing=missing, categorical=categorical)
