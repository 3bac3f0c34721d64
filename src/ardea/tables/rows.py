"""Rows of a regression from a file: the target and the columns to explain it with, in blocks that fit into memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ardea.core.compression import COMPRESSION_COLUMN_LIMIT, CompressedRows, Compression
from ardea.core.memory import require
from ardea.core.problem import Array
from ardea.tables.columns import (
    MOST_PROBLEMS,
    Seen,
    TableError,
    as_numbers,
    compact_dates,
    decimal_marks,
    indicators,
    is_numeric,
    level_names,
)
from ardea.tables.reading import Table, open_table
from ardea.tables.text import Header

DEFAULT_MEMORY = "1 GB"
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
# More is as good as no bound: what a signed 64-bit number of bytes holds, halved.
MOST_MEMORY = 2**62
# Its square is finite, and so is the sum of ten millions of them.
LARGEST_NUMBER = 1e150
# Blocks need not be larger: compression works on a megabyte at a time.
LARGEST_BLOCK = 64 * 2**20
# Of rows held as a whole: the frame, X, and two copies while it is worked on; a text as a Python object, measured.
BYTES_PER_NUMBER, BYTES_PER_TEXT = 32, 100
Missing = Literal["refuse", "drop"]


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
    n_read, n_left_out : int
        Rows that `blocks` has read so far, and those of them left out since they have gaps.
    gaps : dict of str to int
        How many of these rows have a gap in a column, for columns that have any.
    fits : bool
        Whether all rows fit into memory.
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
        self._columns, self._categorical = list(columns), categorical
        self._used = [*columns, *targets]
        self.n_read = self.n_left_out = 0
        self.gaps: dict[str, int] = {}
        self.remarks: list[str] = list(table.remarks)
        self.rows_per_block = self._fitting_rows()
        self._marks: dict[str, str] = {}
        self.levels: dict[str, list[str]] = dict(levels or {})
        self.fits = False
        self._head: deque[Any] = deque()
        self._rest: Iterator[Any] | None = None
        self._survey()
        self.names = tuple(name for column in columns for name in self._names_of(column))
        if not self.names:
            raise TableError(table.path, [f"no column is left to explain {', '.join(targets)} with"])

    # What the columns are ---------------------------------------------------------------------------------------------

    def _survey(self) -> None:
        """Read all rows that fit into memory, and all others too where some column in use is not of numbers."""
        seen: dict[str, Seen] = {name: Seen() for name in self._categorical or ()}
        self._rest = self.table.frames(self.rows_per_block, self._used)
        n_read, size = 0, 0.0
        for frame in self._rest:
            for name in self._used:
                if name not in seen and not is_numeric(frame[name]):
                    seen[name] = Seen(numbers=n_read)
                if name in seen:
                    seen[name].add(frame[name], self.table.na)
            n_read += len(frame)
            size += len(frame) * (BYTES_PER_NUMBER * len(self._used) + BYTES_PER_TEXT * len(seen))
            self._head.append(frame)
            if size > self.memory and not seen:
                return
            if size > self.memory:
                self._refuse_pipe()
                self._head.clear()
        self.fits = size <= self.memory
        self._rest = None
        self._judge(seen)

    def _refuse_pipe(self) -> None:
        if self.table.once:
            raise ValueError(
                f"{self.table.path} is a pipe with more rows of text than fit into memory: save it to a file first, or "
                "raise the bound on memory."
            )

    def _frames(self) -> Iterator[Any]:
        """Yield what was read already and the rest; or all again."""
        if not self._head and self._rest is None:
            yield from self.table.frames(self.rows_per_block, self._used)
            return
        while self._head:
            yield self._head.popleft()
        rest, self._rest = self._rest, None
        yield from rest or ()

    def _judge(self, seen: dict[str, Seen]) -> None:
        """Settle what every column is that is not of numbers only."""
        forced = self._categorical or ()
        unusable = []
        for name, one in seen.items():
            wanted = name in forced or (self._categorical is None and one.kind == "category")
            if name in self.levels:
                continue
            if wanted and name not in self.targets:
                self._encode(name, one)
            elif one.kind != "number":
                unusable.append((name, one))
        if unusable:
            raise self._not_numbers(unusable)
        self._marks, said = decimal_marks({k: one for k, one in seen.items() if k not in self.levels}, self.table)
        self.remarks += said

    def _encode(self, name: str, one: Seen) -> None:
        self.levels[name] = texts = sorted(one.levels)
        if len(texts) < 2:
            self.remarks.append(f"column {name!r} is the same in every row and was left out")
            return
        others = ", ".join(self._names_of(name)[:5]) + (", …" if len(texts) > 6 else "")
        self.remarks.append(f"column {name!r} holds {len(texts)} texts: encoded as {others}, against {texts[0]!r}")

    def _not_numbers(self, unusable: list[tuple[str, Seen]]) -> TableError:
        said = {"date": "dates", "text": "many different texts", "category": "texts"}
        problems = [f"column {name!r} holds {said.get(one.kind, one.kind)}, not numbers" for name, one in unusable]
        return TableError(self.table.path, problems, [name for name, _ in unusable])

    def _names_of(self, column: str) -> list[str]:
        return level_names(column, self.levels[column]) if column in self.levels else [column]

    # Blocks -----------------------------------------------------------------------------------------------------------

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Yield (X, y), block by block; y has a second axis where there are several targets.

        A value that is infinite or beyond 1e150 raises ValueError, with its row and column; so does one that is
        missing, unless rows with gaps are to be left out.
        """
        self.n_read = self.n_left_out = 0
        self.gaps = {}
        split = len(self.names)
        for frame in self._frames():
            block = self._block(frame)
            rows = len(block)
            flat = block.ravel(order="K")
            with np.errstate(over="ignore", invalid="ignore"):
                sound = np.isfinite(flat @ flat)
            whole = block if sound else self._whole_rows(block)
            self.n_read += rows
            if len(whole):
                yield whole[:, :split], whole[:, split] if len(self.targets) == 1 else whole[:, split:]
        if not self.n_read:
            raise ValueError(f"{self.table.path} has no rows.")
        if self.n_left_out == self.n_read:
            raise TableError(
                self.table.path, [f"every row has empty cells, most of them in {self.emptiest()}"], self._emptiest()[:1]
            )

    def _block(self, frame: Any) -> Array:
        """Return a frame as numbers, encoded where it is text."""
        if not self.levels and not self._marks and all(is_numeric(frame[name]) for name in self._used):
            return np.ascontiguousarray(frame[self._used].to_numpy(dtype=float))
        parts, problems = [], []
        for name in self._used:
            if name in self.levels:
                values, bad = indicators(frame[name], self.levels[name], self.table.na)
            else:
                values, bad = as_numbers(frame[name], self._marks.get(name), self.table.na)
            parts.append(values)
            trouble = f"none of {', '.join(self.levels[name])}" if name in self.levels else "not a number"
            problems += [
                (self.n_read + int(row), name, f"{str(frame[name].iloc[row])!r} is {trouble}")
                for row in np.flatnonzero(bad)
            ]
        if problems:
            raise self._bad_cells(problems)
        return np.column_stack(parts)

    def _bad_cells(self, cells: list[tuple[int, str, str]]) -> TableError:
        if found := self.table.problems([name for name in self._used if name not in self.levels]):
            return TableError(self.table.path, found, [name for _, name, _ in cells])
        return bad_cells(self.table, cells, self._used)

    def _whole_rows(self, block: Array) -> Array:
        """Return the rows without gaps, and count the others; refuse what is no gap and no number either."""
        empty = np.isnan(block)
        bad = ~(np.abs(block) <= LARGEST_NUMBER)
        if self._missing == "drop":
            bad &= ~empty
        owners = [column for column in self._columns for _ in self._names_of(column)] + list(self.targets)
        if bad.any():
            raise self._unsound(block, bad, owners)
        counts = dict(zip(owners, empty.sum(axis=0).tolist(), strict=True))  # columns of one owner are empty together
        for name, count in counts.items():
            if count:
                self.gaps[name] = self.gaps.get(name, 0) + count
        left_out = empty.any(axis=1)
        self.n_left_out += int(left_out.sum())
        return block[~left_out]

    def _unsound(self, block: Array, bad: Any, owners: list[str]) -> TableError:
        cells = np.argwhere(bad)[: MOST_PROBLEMS + 1]
        places = self.table.places([self.n_read + int(row) for row, _ in cells])
        return TableError(
            self.table.path,
            [f"{at}, column {owners[j]!r}: {_trouble(block[i, j])}" for at, (i, j) in zip(places, cells, strict=True)],
            [owners[j] for _, j in cells],
        )

    def _emptiest(self) -> list[str]:
        return sorted(self.gaps, key=lambda name: -self.gaps[name])

    def emptiest(self, most: int = 3) -> str:
        """Return the columns with most gaps, with their numbers, as text."""
        return ", ".join(f"{name!r} ({self.gaps[name]})" for name in self._emptiest()[:most])

    # All of them ------------------------------------------------------------------------------------------------------

    def arrays(self) -> tuple[Array, Array]:
        """Return X and y as a whole."""
        X, y = (np.concatenate(parts) for parts in zip(*self.blocks(), strict=True))
        self._remark_on(X)
        return X, y

    def _remark_on(self, X: Array) -> None:
        for name, column in zip(self.names, X.T, strict=True):
            if column[0] >= 17000101 and compact_dates(column) is not None:
                self.remarks.append(f"column {name!r} looks like dates ({column[0]:.0f}) but is used as a number")

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

    # Memory -----------------------------------------------------------------------------------------------------------

    def _bytes_per_row(self) -> float:
        """Return what a row takes while it is worked on: as it is read, in a frame, as a block, the one before."""
        return self.table.bytes_per_row + 8 * 4 * len(self._used)

    def _fixed_bytes(self) -> int:
        """Return what is needed however few rows a block has: a factor, a second one, and their stack."""
        width = 1 + len(self._used)
        return 4 * 8 * width**2 if width <= COMPRESSION_COLUMN_LIMIT else 0

    def _fitting_rows(self) -> int:
        """Return how many rows fit, beside the factors of the compression."""
        fixed, row = self._fixed_bytes(), self._bytes_per_row()
        rows = max(1, int(min((self.memory - fixed) / 2, LARGEST_BLOCK) // row))  # the other half: what is read already
        if fixed + row > self.memory:
            needed = f"{fixed + row:.0f} are needed for one row"
            raise ValueError(f"{self.table.path}: memory={self.memory} bytes is too little; {needed}.")
        if self.table.stored_bytes > self.memory:
            stored = f"what is stored together takes {self.table.stored_bytes} bytes, more than memory={self.memory}"
            raise ValueError(f"{self.table.path}: {stored}. Give more, or store it in smaller chunks.")
        together = self.table.stored_rows
        return rows if rows < together else rows - rows % together


def numbers_of(table: Table, pieces: list[tuple[int, Any]], names: list[str]) -> tuple[list[Array], list[str]]:
    """Return columns as numbers, gaps as NaN."""
    seen: dict[str, Seen] = {}
    for name in names:
        if not all(is_numeric(frame[name]) for _, frame in pieces):
            seen[name] = Seen()
            for _, frame in pieces:
                seen[name].add(frame[name], table.na)
    if texts := [name for name, one in seen.items() if one.kind != "number"]:
        problems = [f"column {name!r} does not hold numbers" for name in texts]
        raise TableError(table.path, problems, texts, [name for name in names if name not in texts])
    marks, remarks = decimal_marks(seen, table)
    blocks, bad = [], []
    for first, frame in pieces:
        columns = [as_numbers(frame[name], marks.get(name), table.na) for name in names]
        blocks.append(np.column_stack([values for values, _ in columns]))
        for name, (_, wrong) in zip(names, columns, strict=True):
            texts = frame[name].iloc[np.flatnonzero(wrong)]
            bad += [(first + int(row), name, f"{str(text)!r} is not a number") for row, text in texts.items()]
    if bad:
        raise bad_cells(table, bad, names)
    return blocks, remarks


def bad_cells(table: Table, cells: list[tuple[int, str, str]], names: Sequence[str]) -> TableError:
    """Return the error of cells: row, column and what is wrong, among columns that were asked for."""
    shown = sorted(cells)[: MOST_PROBLEMS + 1]
    places = table.places([row for row, _, _ in shown])
    said = [f"{place}, column {name!r}: {trouble}" for place, (_, name, trouble) in zip(places, shown, strict=True)]
    columns = {name for _, name, _ in cells}
    return TableError(table.path, said, columns, [name for name in names if name not in columns])


def _trouble(value: float) -> str:
    if np.isnan(value):
        return "the cell is empty or NaN. Fill it, or leave such rows out: missing='drop'"
    return (
        f"{value} is {'too large to be squared; take a larger unit' if np.isfinite(value) else 'not a finite number'}"
    )


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
    """
    table = open_table(path, header=header, decimal=decimal, na=na)
    targets = [_named(one, table) for one in (target if isinstance(target, list | tuple) else [target])]
    if columns is None:
        chosen = [name for name in table.names if name not in targets]
    else:
        chosen = [_named(one, table) for one in columns]
    return Rows(table, targets, chosen, memory=memory, missing=missing, categorical=categorical)


def _named(entry: Any, table: Table) -> str:
    """Return the name of a column given by name or number."""
    names = table.names
    if isinstance(entry, str):
        if entry not in names:
            shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
            raise ValueError(f"{table.path} has no column {entry!r}; its columns are {shown}.")
        return entry
    if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not -len(names) <= entry < len(names):
        raise ValueError(f"{table.path} has {len(names)} columns, numbered from 0; got {entry!r}.")
    return names[int(entry)]


def fit_file(
    estimator: Any,
    path: str | Path,
    target: str | int | Sequence[str | int],
    *,
    progress: bool | None = None,
    **settings: Any,
) -> Any:
    """Fit an estimator, or an `ARDSearch` that does not resample, to all rows of a file larger than memory.

    Parameters
    ----------
    estimator : estimator of ardea
        What to fit; it is changed in place.
    path, target
        As for `open_rows`.
    progress : bool, optional
        Whether to show progress on standard error; None: where that is a terminal.
    **settings
        Others of `open_rows`, such as `columns` and `memory`.

    Returns
    -------
    estimator
        Fitted, with the file's column names.

    Examples
    --------
    >>> import tempfile
    >>> from ardea import SparseARD
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "rows.npy"
    >>> rows = np.random.default_rng(0).normal(size=(1000, 6))
    >>> rows[:, 5] = 2 * rows[:, 3] + 0.1 * rows[:, 5]
    >>> np.save(path, rows)
    >>> model = fit_file(SparseARD(false_terms=0.01), path, target=-1, memory="10 MB")
    >>> [str(name) for name in model.feature_names_in_[model.support_]]
    ['x3']
    >>> folder.cleanup()
    """
    return estimator.fit(open_rows(path, target, **settings).compressed(progress), None)
