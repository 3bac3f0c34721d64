"""Rows of Dask collections: X, y and weights in blocks that match, checks of a block, and prediction.

Every mismatch that shows without computing anything is told before anything is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from scipy import sparse

from ardea.core.compression import COMPRESSION_COLUMN_LIMIT, is_lazy
from ardea.core.problem import Array

# Kinds of NumPy's types that are real numbers: floats, integers with and without sign, booleans.
REAL = "fiub"


@dataclass(frozen=True)
class LazyRows:
    """Row blocks of X, of Y (always with two axes) and of the weights: as many of each, none of them computed.

    Attributes
    ----------
    X, Y : dask.array.Array
        All columns of a row in one block.
    weight : dask.array.Array or None
        One number for every row.
    names : tuple of str or None
        Columns of X, where it is a data frame.
    one_target : bool
        Whether y was one-dimensional.
    """

    X: da.Array
    Y: da.Array
    weight: da.Array | None
    names: tuple[str, ...] | None
    one_target: bool

    @classmethod
    def of(cls, X: Any, y: Any, weight: Any = None) -> LazyRows:
        """Pair the blocks of Dask collections (y and weights may also be arrays in memory)."""
        X, names = lazy_matrix(X)
        Y = _matched("y", y, X, axes=(1, 2))
        one_target = Y.ndim == 1
        weight = None if weight is None else _matched("sample_weight", weight, X, axes=(1,))
        return cls(X, Y[:, None] if one_target else Y, weight, names, one_target)


def known(array: da.Array) -> bool:
    """Whether the rows of every block are known in number."""
    return not any(math.isnan(size) for size in array.chunks[0])


def lazy_matrix(X: Any) -> tuple[da.Array, tuple[str, ...] | None]:
    """Return X as a Dask array with all columns of a row in one block, and the names of its columns.

    Columns cut into chunks are put together; the rows of a block are then chosen anew, by Dask's configuration
    (`array.chunk-size`), so that blocks do not grow.
    """
    if not is_lazy(X):
        raise TypeError(
            "y or sample_weight is a Dask collection, but X is not. Make X one too (dask.array.from_array), or pass "
            "y.compute() and sample_weight.compute()."
        )
    array, names = _as_array("X", X)
    if array.ndim != 2:
        raise ValueError(f"X must have two axes, rows and columns; got {array.ndim}.")
    if math.isnan(array.shape[1]):
        raise ValueError("The number of columns of X is unknown to Dask: call X.compute_chunk_sizes() first.")
    if 0 in array.shape:
        raise ValueError(f"X has the shape {array.shape}: at least one row and one column are needed.")
    if array.shape[1] > COMPRESSION_COLUMN_LIMIT:
        raise ValueError(
            f"X has {array.shape[1]} columns. Dask collections are compressed to a factor of that size squared, which "
            f"is limited to {COMPRESSION_COLUMN_LIMIT} columns: leave some out, or pass an array or an ardea.Operator."
        )
    if array.numblocks[1] > 1:
        array = array.rechunk({0: "auto", 1: -1} if known(array) else {1: -1})
    return array, names


def _as_array(name: str, data: Any) -> tuple[da.Array, tuple[str, ...] | None]:
    if hasattr(type(data), "to_dask_array"):  # data frames and series
        return _frame_array(name, data)
    data = getattr(data, "data", data) if hasattr(data, "coords") else data
    if not isinstance(data, da.Array | np.ndarray):
        raise TypeError(
            f"{name} is a {type(data).__name__}, which has no rows: make it a Dask array (dask.array.from_delayed) or "
            "a Dask data frame (dask.dataframe.from_delayed)."
        )
    if data.dtype.kind not in REAL:
        raise TypeError(f"{name} holds {data.dtype}, but real numbers are needed.")
    return data, None


def _frame_array(name: str, frame: Any) -> tuple[da.Array, tuple[str, ...] | None]:
    labels = list(frame.columns) if frame.ndim == 2 else [frame.name]
    dtypes = list(frame.dtypes) if frame.ndim == 2 else [frame.dtype]
    wrong = [str(label) for label, dtype in zip(labels, dtypes, strict=True) if dtype.kind not in REAL]
    if wrong:
        raise TypeError(
            f"{name} has columns that are not numbers: {', '.join(wrong[:10])}. Leave them out or encode them."
        )
    named = all(isinstance(label, str) for label in labels)
    return frame.astype("float64").to_dask_array(), tuple(labels) if named else None


def _matched(name: str, data: Any, X: da.Array, axes: tuple[int, ...]) -> da.Array:
    """Return y or the weights in as many blocks as X, of as many rows; what is in memory is cut as X is."""
    in_memory = not is_lazy(data)
    array, _ = _as_array(name, np.asarray(data) if in_memory else data)
    if array.ndim not in axes:
        raise ValueError(f"{name} must have {' or '.join(map(str, axes))} axes; got {array.ndim}.")
    if in_memory and not known(X):
        raise ValueError(
            f"{name} is in memory, but the number of rows in the blocks of X is unknown. Call X.compute_chunk_sizes() "
            "(for a data frame X.to_dask_array(lengths=True)) first, or give both as Dask collections."
        )
    if in_memory or (known(array) and known(X)):
        if array.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but {name} has {array.shape[0]}. Give as many of each.")
        chunks = (X.chunks[0], *((size,) for size in array.shape[1:]))
        return da.from_array(array, chunks=chunks) if in_memory else array.rechunk(chunks)
    if array.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"X has {X.numblocks[0]} blocks of rows and {name} has {array.numblocks[0]}, and the number of rows in "
            "them is unknown, so they cannot be matched. Call compute_chunk_sizes() on both (for data frames "
            "to_dask_array(lengths=True)), or take both from one frame."
        )
    return array.rechunk({1: -1}) if array.ndim == 2 else array


class UnsoundBlock(Exception):
    """What is wrong with a block, and where: raised where the block lies, put into words by the client."""

    def __init__(self, number: int, problem: str, row: int = -1, column: int = -1) -> None:
        super().__init__(number, problem, row, column)
        self.number, self.problem, self.row, self.column = number, problem, row, column

    def message(self, sizes: Sequence[float], names: Sequence[str] | None) -> str:
        """Return the message for the user; `sizes` are the rows of all blocks, NaN where they are not known."""
        where, first = "", sum(sizes[: self.number])
        if self.row >= 0:
            where = f", row {self.row} of the block" if math.isnan(first) else f", row {first + self.row}"
        if self.column >= 0:
            where += f", column {self.column}" + (f" ({names[self.column]!r})" if names is not None else "")
        return f"Block {self.number}{where}: {self.problem}"


def check_finite(name: str, block: Any, number: int) -> None:
    """Raise UnsoundBlock at the first row with NaN or infinity."""
    values = block.data if sparse.issparse(block) else block
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()) or np.isfinite(values).all():  # a sum is finite only if all its terms are
            return
    dense = block.toarray() if sparse.issparse(block) else block
    bad = ~np.isfinite(dense.reshape(dense.shape[0], -1))
    rows = np.flatnonzero(bad.any(axis=1))
    problem = f"{name} holds NaN or infinity in {rows.size} of {dense.shape[0]} rows; this is the first of them."
    column = int(np.argmax(bad[rows[0]])) if name == "X" else -1
    raise UnsoundBlock(number, problem, int(rows[0]), column)


def predicted(
    function: Callable[[Array], Array], X: Any, n_features: int, names: Sequence[str] | None, n_outputs: int | None
) -> da.Array:
    """Return function(rows of X), lazily and block by block.

    Parameters
    ----------
    function : callable
        From an array of rows to one number for each, or to `n_outputs` numbers.
    X : Dask array or data frame
        New rows.
    n_features, names
        Columns that the model was fitted to.
    n_outputs : int or None
        Length of the second axis; None: no second axis.
    """
    array, given = lazy_matrix(X)
    if array.shape[1] != n_features:
        raise ValueError(f"X has {array.shape[1]} columns; the model was fitted to {n_features}.")
    if given is not None and names is not None and list(given) != list(names):
        raise ValueError("The columns of X are not those the model was fitted to, in the same order.")

    sizes = array.chunks[0]

    def of_block(block: Array, block_id: tuple[int, ...] = (0,)) -> Array:
        try:
            check_finite("X", block, block_id[0])
        except UnsoundBlock as unsound:
            raise ValueError(unsound.message(sizes, given)) from None
        return function(np.asarray(block))

    targets = () if n_outputs is None else (n_outputs,)
    return da.map_blocks(
        of_block,
        array,
        chunks=(sizes, *((n,) for n in targets)),
        drop_axis=() if targets else 1,
        meta=np.empty((0, *targets)),
        token="ardea-predict",
    )
