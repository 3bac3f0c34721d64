"""Every block of rows to its R-factor where it lies, and the factors merged in a tree.

A block of m rows becomes a triangle of width w = 1 + columns + targets (:mod:`ardea.core.compression`), where the block
is made. FAN_IN triangles are merged by one task, FAN_IN of those by another, until one is left; only that one travels
to the client. Every mismatch that shows without computing anything is told before anything is computed. Lost workers,
retries and memory are Dask's business.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import get_scheduler
from dask.callbacks import Callback
from numpy.typing import NDArray
from scipy import sparse

from ardea.core.compression import COMPRESSION_COLUMN_LIMIT, CompressedRows, is_lazy
from ardea.core.problem import Array
from ardea.names import counted
from ardea.tables.rows import open_rows
from ardea.tables.table import DEFAULT_MEMORY

# Kinds of NumPy's types that are real numbers: floats, integers with and without sign, booleans.
REAL = "fiub"
# Measured (benchmarks/large.py): more at once cost the same per merge and make longer waits; fewer make more tasks.
FAN_IN = 8
# Convention: after a failure without a cluster at most so many blocks that were under way are tried again.
MOST_TRIED_AGAIN = 32
# Seconds within which a scheduler has told all that it blames for one dead worker. Derived: it collects its messages to
# a client for some milliseconds.
LAST_REPORTS = 0.2

Boxed = NDArray[np.object_]
Done = Callable[[], Any]


class BlockError(RuntimeError):
    """A block of rows could not be computed; the message says which, and the cause is attached."""


def compress(X: Any, y: Any, sample_weight: Any = None, *, verbose: int = 0) -> CompressedRows:
    """Compress the rows of Dask collections.

    The estimators do this by themselves. Done once by hand, the result can be fitted by many models, as X with None
    for y.

    Parameters
    ----------
    X : Dask array or data frame of shape (n_samples, n_features)
        The columns to choose from.
    y : Dask array, series or data frame, or array
        What they should explain. Blocks of rows as in X; an array whose blocks differ is cut anew.
    sample_weight : Dask array or series, or array, optional
        Counts, one for every row.
    verbose : int
        1 shows progress on standard error.

    Returns
    -------
    CompressedRows
        In memory, of size O((n_features + n_targets)²).

    Raises
    ------
    ValueError
        Where blocks do not match, or one holds NaN, infinity or a negative weight.
    BlockError
        Where a block cannot be computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import ardea
    >>> rng = da.random.default_rng(1)
    >>> X = rng.normal(size=(10_000, 8), chunks=(1_000, 8))
    >>> y = X[:, 2] - 3 * X[:, 5] + rng.normal(scale=0.1, size=10_000, chunks=1_000)
    >>> rows = compress(X, y)
    >>> rows.shape
    (10000, 8)
    >>> ardea.SparseARD().fit(rows, None).coef_.round(2)
    array([ 0.,  0.,  1.,  0.,  0., -3.,  0.,  0.])
    """
    return compressed(LazyRows.of(X, y, sample_weight), verbose=verbose)


def compressed(rows: LazyRows, *, verbose: int = 0) -> CompressedRows:
    """Compress rows whose blocks have been paired; see `compress`."""
    blocks = [rows.X, rows.Y, *([] if rows.weight is None else [rows.weight[:, None]])]
    one_a_block = one_each(rows.X.numblocks[0])
    factors = da.map_blocks(_compressed_block, *blocks, drop_axis=1, token="ardea-compress", **one_a_block)
    try:
        compression = merged(factors, "block", shown=bool(verbose))
    except UnsoundBlock as unsound:
        raise ValueError(unsound.message(rows.X.chunks[0], rows.names)) from None
    if compression.n_samples == 0:
        weights = "All sample weights are zero: at least one row must count."
        raise ValueError("X has no rows." if rows.weight is None else weights)
    return replace(compression, names=rows.names, one_target=rows.one_target)


def _compressed_block(x: Any, y: Array, weight: Array | None = None, block_id: tuple[int, ...] = (0,)) -> Boxed:
    """Return the compression of one block, after the checks that `fit` makes of arrays."""
    (number,) = block_id[:1]
    x, y = x if sparse.issparse(x) else np.asarray(x), np.asarray(y, dtype=np.float64)
    for name, part in (("y", y), ("sample_weight", weight)):
        if part is not None and part.shape[0] != x.shape[0]:
            told = f"X has {counted(x.shape[0], 'row')} here, but {name} has {part.shape[0]}"
            raise UnsoundBlock(number, f"{told}: call compute_chunk_sizes() on both, so that they can be matched.")
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)[:, 0]
        check_finite("sample_weight", weight, number)
        if (weight < 0).any():
            raise UnsoundBlock(number, "sample_weight is negative.", int(np.argmax(weight < 0)))
        x, y, weight = x[weight > 0], y[weight > 0], weight[weight > 0]
    with np.errstate(all="ignore"):
        compression = CompressedRows.from_arrays(x, y, weight)
    if not np.isfinite(compression.factor).all():  # NaN or infinity in any row ends up here: sound rows need no check
        check_finite("X", x, number)
        check_finite("y", y, number)
    return boxed(compression)


def compress_files(
    paths: Sequence[str | Path],
    target: str | int | Sequence[str | int],
    *,
    columns: Sequence[str | int] | None = None,
    memory: int | str = DEFAULT_MEMORY,
    verbose: int = 0,
) -> CompressedRows:
    """Compress the rows of many files: a task reads a whole file, block by block, and the factors are merged in a tree.

    The scheduler counts files, not blocks, so files may be far larger than the memory of a worker.

    Parameters
    ----------
    paths : sequence of str or Path
        Files with the same columns, which every worker can read; the client looks at the first.
    target, columns, memory
        As for `ardea.tables.rows.open_rows`; the memory is that of one task.
    verbose : int
        1 shows progress on standard error.

    Returns
    -------
    CompressedRows
        For an estimator's `fit`, as X with None for y.

    Raises
    ------
    BlockError
        Where a file cannot be read; it names the file, row and column.

    Examples
    --------
    >>> import tempfile
    >>> import ardea
    >>> folder = tempfile.TemporaryDirectory()
    >>> rng = np.random.default_rng(1)
    >>> for year in range(3):
    ...     rows = rng.normal(size=(200, 5))
    ...     rows[:, 4] = rows[:, 1] + 0.1 * rows[:, 4]
    ...     np.save(Path(folder.name) / f"{year}.npy", rows)
    >>> rows = compress_files(sorted(Path(folder.name).iterdir()), target=-1)
    >>> rows.shape, np.flatnonzero(ardea.SparseARD().fit(rows, None).support_)
    ((600, 4), array([1]))
    >>> folder.cleanup()
    """
    if not paths:
        raise ValueError("No file was given: pass at least one path.")
    settings: dict[str, Any] = {"target": target, "columns": columns, "memory": memory}
    first = open_rows(paths[0], **settings)
    files = da.from_array(np.array([str(path) for path in paths], dtype=object), chunks=1)
    factors = files.map_blocks(_compressed_file, first.names, settings, token="ardea-file", **one_each(len(paths)))
    one_target = not isinstance(target, list | tuple)
    return replace(merged(factors, "file", shown=bool(verbose)), names=first.names, one_target=one_target)


def _compressed_file(files: Boxed, names: Sequence[str], settings: dict[str, Any]) -> Boxed:
    rows = open_rows(files[0], **settings)
    if list(rows.names) != list(names):
        raise ValueError(f"{files[0]}: the columns are not those of the first file, in the same order.")
    return boxed(rows.compressed(progress=False))


@dataclass(frozen=True)
class LazyRows:
    """Row blocks of X, of Y (always with two axes) and of the weights: as many of each, none of them computed."""

    X: da.Array  # all columns of a row in one block
    Y: da.Array
    weight: da.Array | None
    names: tuple[str, ...] | None  # of the columns of X, where it is a data frame
    one_target: bool  # whether y had one axis

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
        mend = "Make X one too (dask.array.from_array), or pass y.compute() and sample_weight.compute()."
        raise TypeError(f"y or sample_weight is a Dask collection, but X is not. {mend}")
    array, names = _as_array("X", X)
    if array.ndim != 2:
        raise ValueError(f"X must have two axes, rows and columns; got {array.ndim}.")
    if math.isnan(array.shape[1]) or 0 in array.shape:
        mend = "at least one row and one column are needed, and compute_chunk_sizes() where Dask does not know them"
        raise ValueError(f"X has the shape {array.shape}: {mend}.")
    if array.shape[1] > COMPRESSION_COLUMN_LIMIT:
        raise ValueError(
            f"X has {array.shape[1]} columns. Dask collections are compressed to a factor of that size squared, which "
            f"is limited to {COMPRESSION_COLUMN_LIMIT} columns: leave some out, or pass an array or an ardea.Operator."
        )
    if array.numblocks[1] > 1:
        array = array.rechunk({0: "auto", 1: -1} if known(array) else {1: -1})
    return array, names


def _as_array(name: str, data: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return data as an array of real numbers, and the names of its columns where it is a data frame."""
    if hasattr(type(data), "to_dask_array"):  # data frames and series
        frame = data if data.ndim == 2 else data.to_frame()
        wrong = [str(label) for label, dtype in frame.dtypes.items() if dtype.kind not in REAL]
        if wrong:
            told = ", ".join(wrong[:10])
            raise TypeError(f"{name} has columns that are not numbers: {told}. Leave them out or encode them.")
        labels = tuple(frame.columns)
        return data.astype("float64").to_dask_array(), labels if all(isinstance(one, str) for one in labels) else None
    data = getattr(data, "data", data) if hasattr(data, "coords") else data
    if not isinstance(data, da.Array | np.ndarray):
        mend = "make it a Dask array (dask.array.from_delayed) or a Dask data frame (dask.dataframe.from_delayed)"
        raise TypeError(f"{name} is a {type(data).__name__}, which has no rows: {mend}.")
    if data.dtype.kind not in REAL:
        raise TypeError(f"{name} holds {data.dtype}, but real numbers are needed.")
    return data, None


def _matched(name: str, data: Any, X: da.Array, axes: tuple[int, ...]) -> da.Array:
    """Return y or the weights in as many blocks as X, of as many rows; what is in memory is cut as X is.

    Where the rows in the blocks are unknown in number, blocks are taken as they come.
    """
    array, _ = _as_array(name, data if is_lazy(data) else np.asarray(data))
    in_memory = isinstance(array, np.ndarray)
    if array.ndim not in axes:
        raise ValueError(f"{name} must have {' or '.join(map(str, axes))} axes; got {array.ndim}.")
    if known(X) and (in_memory or known(array)):
        if array.shape[0] != X.shape[0]:
            raise ValueError(
                f"X has {counted(X.shape[0], 'row')}, but {name} has {array.shape[0]}. Give as many of each."
            )
        chunks = (X.chunks[0], *((size,) for size in array.shape[1:]))
        return da.from_array(array, chunks=chunks) if in_memory else array.rechunk(chunks)
    if in_memory or array.numblocks[0] != X.numblocks[0]:
        there = "is in memory" if in_memory else f"has {array.numblocks[0]}"
        raise ValueError(
            f"X has {X.numblocks[0]} blocks of rows and {name} {there}, and how many rows they have is unknown. Call "
            "compute_chunk_sizes() (for data frames to_dask_array(lengths=True)) first, or take both from one frame."
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
    """Return function(rows of X), lazily and block by block: one number for every row, or `n_outputs`.

    `n_features` and `names` are the columns that the model was fitted to.
    """
    array, given = lazy_matrix(X)
    if array.shape[1] != n_features:
        raise ValueError(f"X has {counted(array.shape[1], 'column')}; the model was fitted to {n_features}.")
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


def boxed(compression: CompressedRows) -> Boxed:
    """Return a compression as an array with one entry, which is what Dask takes for a block."""
    box = np.empty(1, dtype=object)
    box[0] = compression
    return box


def one_each(n_blocks: int) -> dict[str, Any]:
    """Return what `map_blocks` needs to know of blocks with one compression each."""
    return {"chunks": ((1,) * n_blocks,), "dtype": object, "meta": np.empty(0, dtype=object)}


def merged(factors: da.Array, unit: str, *, shown: bool) -> CompressedRows:
    """Compute the compressions of all blocks and merge them: on the cluster that is connected, else in this process.

    Every block of the array is a box with one CompressedRows; `unit` says what a block is called in the progress bar. A
    block that fails is named in a BlockError, and the others are not waited for.
    """
    from tqdm import tqdm

    root = _tree(factors)
    client = getattr(get_scheduler(), "__self__", None)  # the scheduler of a cluster is a method of its client
    with tqdm(total=factors.npartitions, desc="rows", unit=unit, disable=not shown) as bar:
        if client is None:
            return _computed_here(factors, root, bar.update)
        return _computed_on(client, factors, root, bar.update)


def _tree(factors: da.Array) -> da.Array:
    """Return the merged factor: FAN_IN at a time, level by level."""
    while factors.npartitions > 1:
        groups = factors.rechunk(FAN_IN, method="tasks")
        factors = groups.map_blocks(_merged_box, token="ardea-merge", **one_each(groups.npartitions))
    return factors


def _merged_box(box: Boxed) -> Boxed:
    return boxed(reduce(CompressedRows.merge, box))


def _computed_on(client: Any, factors: da.Array, root: da.Array, done: Done) -> CompressedRows:
    """Compute on a cluster: every block's future is let go when it is done, so only the tree keeps factors alive."""
    from distributed import as_completed, futures_of

    persisted = client.persist([factors, root], retries=dask.get_annotations().get("retries"))
    parts, (last,) = (futures_of(collection) for collection in persisted)
    del persisted
    try:
        for part in as_completed(parts):
            if part.status != "finished":
                raise _failed_there(part, parts)
            part.release()
            done()
        result: CompressedRows = last.result()[0]
    finally:  # done, or failed, or the user's Ctrl-C: nobody waits for what is left
        for future in (*parts, last):
            future.release()
    return result


def _failed_there(first: Any, parts: Sequence[Any]) -> BaseException:
    """Return the error to raise; Dask blames all blocks at once that a dead worker had."""
    from distributed import KilledWorker

    error = first.exception()
    if not isinstance(error, KilledWorker):
        return _block_error([first.key[1]], error)
    time.sleep(LAST_REPORTS)
    problem = "the worker that had it died, several times over; most often it had not enough memory"
    mend = "Make the blocks smaller (X.rechunk), or give the workers more memory."
    return _block_error([part.key[1] for part in parts if part.status == "error"], error, f"{problem}. {mend}")


def _computed_here(factors: da.Array, root: da.Array, done: Done) -> CompressedRows:
    """Compute with threads or processes; of the blocks under way, the one that failed is found by trying them again."""
    blocks, suspects = set(factors.__dask_keys__()), set()

    def ended(key: Any, *_: Any) -> None:
        if key in blocks:
            done()

    def finish(dsk: Any, state: Any, errored: bool) -> None:
        """Find the blocks that were being computed, or waited for what was."""
        open_keys = list(state["running"])
        while open_keys:
            key = open_keys.pop()
            if key in blocks:
                suspects.add(key[1])
            else:
                open_keys += state["dependents"].get(key, ())

    try:
        with Callback(posttask=ended, finish=finish):
            result: CompressedRows = root.compute()[0]
    except UnsoundBlock:
        raise
    except Exception as error:
        for number in sorted(suspects)[:MOST_TRIED_AGAIN]:
            try:
                factors.blocks[number].compute(scheduler="synchronous")
            except Exception as again:
                raise _block_error([number], again) from again
        raise BlockError(f"A block failed, and succeeded when it was tried again: {error!r}") from error
    return result


def _block_error(numbers: Sequence[int], error: BaseException, problem: str = "") -> BaseException:
    """Return the error to raise for a block that failed."""
    if isinstance(error, UnsoundBlock):
        return error
    problem = problem or f"it could not be computed: {type(error).__name__}: {error}"
    named = BlockError(f"Block {' or '.join(map(str, sorted(numbers)))}: {problem}")
    named.__cause__ = error
    return named
