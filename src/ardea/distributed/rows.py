"""X, y and weights as Dask arrays whose row blocks match, with every mismatch told before anything is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from ardea.core.compression import COMPRESSION_COLUMN_LIMIT
from ardea.estimators.inputs import is_lazy


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
        y = _beside("y", y, X)
        if y.ndim not in {1, 2}:
            raise ValueError(f"y must have one or two axes; got {y.ndim}.")
        Y = _matched("y", y if y.ndim == 2 else y[:, None], X)
        if weight is not None:
            weight = _beside("sample_weight", weight, X)
            if weight.ndim != 1:
                raise ValueError(f"sample_weight must have one axis; got {weight.ndim}.")
            weight = _matched("sample_weight", weight, X)
        return cls(X, Y, weight, names, y.ndim == 1)


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
    data = data.data if type(data).__module__.startswith("xarray") else data
    if not isinstance(data, da.Array):
        raise TypeError(
            f"{name} is a {type(data).__name__}, which has no rows: make it a Dask array (dask.array.from_delayed) or "
            "a Dask data frame (dask.dataframe.from_delayed)."
        )
    if data.dtype.kind not in "fiub":
        raise TypeError(f"{name} holds {data.dtype}, but real numbers are needed.")
    return data, None


def _frame_array(name: str, frame: Any) -> tuple[da.Array, tuple[str, ...] | None]:
    labels = list(frame.columns) if frame.ndim == 2 else [frame.name]
    dtypes = list(frame.dtypes) if frame.ndim == 2 else [frame.dtype]
    wrong = [str(label) for label, dtype in zip(labels, dtypes, strict=True) if dtype.kind not in "fiub"]
    if wrong:
        raise TypeError(
            f"{name} has columns that are not numbers: {', '.join(wrong[:10])}. Leave them out or encode them."
        )
    named = all(isinstance(label, str) for label in labels)
    return frame.astype("float64").to_dask_array(), tuple(labels) if named else None


def _beside(name: str, data: Any, X: da.Array) -> da.Array:
    """Return y or the weights as a Dask array; one in memory is cut as X is."""
    if is_lazy(data):
        return _as_array(name, data)[0]
    data = np.asarray(data)
    if data.dtype.kind not in "fiub":
        raise TypeError(f"{name} holds {data.dtype}, but real numbers are needed.")
    if not known(X):
        raise ValueError(
            f"{name} is in memory, but the number of rows in the blocks of X is unknown. Call X.compute_chunk_sizes() "
            "(for a data frame X.to_dask_array(lengths=True)) first, or give both as Dask collections."
        )
    _check_rows(name, data, X)
    return da.from_array(data, chunks=(X.chunks[0], *((size,) for size in data.shape[1:])))


def _matched(name: str, data: da.Array, X: da.Array) -> da.Array:
    """Return y or the weights in as many blocks as X, of as many rows."""
    if data.ndim == 2 and data.numblocks[1] > 1:
        data = data.rechunk({1: -1})
    if known(data) and known(X):
        _check_rows(name, data, X)
        return data if data.chunks[0] == X.chunks[0] else data.rechunk({0: X.chunks[0]})
    if data.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"X has {X.numblocks[0]} blocks of rows and {name} has {data.numblocks[0]}, and the number of rows in them "
            "is unknown, so they cannot be matched. Call compute_chunk_sizes() on both (for data frames "
            "to_dask_array(lengths=True)), or take both from one frame."
        )
    return data


def _check_rows(name: str, data: Any, X: da.Array) -> None:
    if data.ndim == 0 or data.shape[0] != X.shape[0]:
        rows = data.shape[0] if data.ndim else "no"
        raise ValueError(f"X has {X.shape[0]} rows, but {name} has {rows}. Give as many of each.")
