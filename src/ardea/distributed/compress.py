"""Every block of rows to its R-factor where it lies, and the factors merged in a tree.

A block of m rows becomes a triangle of width w = 1 + columns + targets (:mod:`ardea.core.compression`), where the block
is made. FAN_IN triangles are merged by one task, FAN_IN of those by another, until one is left; only that one travels
to the client. Lost workers, retries and memory are Dask's business.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.callbacks import Callback
from numpy.typing import NDArray
from scipy import sparse

from ardea.core.compression import CompressedRows, Compression
from ardea.core.problem import Array
from ardea.distributed.rows import LazyRows, UnsoundBlock, check_finite
from ardea.tables.reading import DEFAULT_MEMORY
from ardea.tables.rows import open_rows

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
    >>> X = da.random.default_rng(0).normal(size=(10_000, 8), chunks=(1_000, 8))
    >>> y = X[:, 2] - 3 * X[:, 5]
    >>> rows = compress(X, y)
    >>> rows.shape
    (10000, 8)
    >>> ardea.SparseARD().fit(rows, None).coef_.round(3)
    array([ 0.,  0.,  1.,  0.,  0., -3.,  0.,  0.])
    """
    return compressed(LazyRows.of(X, y, sample_weight), verbose=verbose)


def compressed(rows: LazyRows, *, verbose: int = 0) -> CompressedRows:
    """Compress rows whose blocks have been paired; see `compress`."""
    weight = [] if rows.weight is None else [rows.weight[:, None]]
    blocks = (rows.X, rows.Y, *weight)
    one_a_block = one_each(rows.X.numblocks[0])
    factors = da.map_blocks(_compressed_block, *blocks, drop_axis=1, token="ardea-compress", **one_a_block)
    try:
        compression = merged(factors, "block", shown=bool(verbose))
    except UnsoundBlock as unsound:
        raise ValueError(unsound.message(rows.X.chunks[0], rows.names)) from None
    if compression.n_samples == 0:
        raise ValueError(
            "X has no rows." if rows.weight is None else "All sample weights are zero: at least one row must count."
        )
    return CompressedRows(compression, rows.names, rows.one_target)


def _compressed_block(x: Any, y: Array, weight: Array | None = None, block_id: tuple[int, ...] = (0,)) -> Boxed:
    """Return the compression of one block, after the checks that `fit` makes of arrays."""
    number = block_id[0]
    x = x if sparse.issparse(x) else np.asarray(x)
    y = np.asarray(y, dtype=np.float64)
    for name, part in (("y", y), ("sample_weight", weight)):
        if part is not None and part.shape[0] != x.shape[0]:
            advice = "call compute_chunk_sizes() on both, so that they can be matched"
            problem = f"X has {x.shape[0]} rows here, but {name} has {part.shape[0]}: {advice}."
            raise UnsoundBlock(number, problem)
    if weight is not None:
        x, y, weight = _counted(x, y, np.asarray(weight, dtype=np.float64)[:, 0], number)
    with np.errstate(all="ignore"):
        compression = Compression.from_arrays(x, y, weight)
    if not np.isfinite(compression.factor).all():  # NaN or infinity in any row ends up here: sound rows need no check
        check_finite("X", x, number)
        check_finite("y", y, number)
    return boxed(compression)


def _counted(x: Any, y: Array, weight: Array, number: int) -> tuple[Any, Array, Array]:
    """Return the rows that count, after a check of the weights."""
    check_finite("sample_weight", weight, number)
    if (weight < 0).any():
        raise UnsoundBlock(number, "sample_weight is negative.", int(np.argmax(weight < 0)))
    used = weight > 0
    return x[used], y[used], weight[used]


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
    first = open_rows(paths[0], target, columns=columns, memory=memory)
    one_target = not isinstance(target, list | tuple)
    settings = {"target": target, "columns": columns, "memory": memory, "names": first.names}
    names = da.from_array(np.array([str(path) for path in paths], dtype=object), chunks=1)
    factors = names.map_blocks(_compressed_file, settings, token="ardea-file", **one_each(len(paths)))
    return CompressedRows(merged(factors, "file", shown=bool(verbose)), first.names, one_target)


def _compressed_file(names: Boxed, settings: dict[str, Any]) -> Boxed:
    path = names[0]
    rows = open_rows(path, settings["target"], columns=settings["columns"], memory=settings["memory"])
    if list(rows.names) != list(settings["names"]):
        raise ValueError(f"{path}: the columns are not those of the first file, in the same order.")
    return boxed(rows.compressed(progress=False).compression)


def boxed(compression: Compression) -> Boxed:
    """Return a compression as an array with one entry, which is what Dask takes for a block."""
    box = np.empty(1, dtype=object)
    box[0] = compression
    return box


def one_each(n_blocks: int) -> dict[str, Any]:
    """Return what `map_blocks` needs to know of blocks with one compression each."""
    return {"chunks": ((1,) * n_blocks,), "dtype": object, "meta": np.empty(0, dtype=object)}


def merged(factors: da.Array, unit: str, *, shown: bool) -> Compression:
    """Compute the compressions of all blocks and merge them: on the cluster that is connected, else in this process.

    Every block of the array is a box with one Compression; `unit` says what a block is called in the progress bar. A
    block that fails is named in a BlockError, and the others are not waited for.
    """
    from tqdm import tqdm

    root, client = _tree(factors), _client()
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


def _merged_box(boxes: Boxed) -> Boxed:
    return boxed(reduce(Compression.merge, boxes))


def _client() -> Any:
    """Return the client that Dask would compute with; None where it is this process."""
    if "distributed" not in sys.modules:
        return None
    from distributed import Client, get_client

    scheduler = dask.config.get("scheduler", None)
    if isinstance(scheduler, Client):
        return scheduler
    if scheduler not in (None, "distributed", "dask.distributed"):
        return None
    try:
        return get_client()
    except ValueError:
        return None


def _computed_on(client: Any, factors: da.Array, root: da.Array, done: Done) -> Compression:
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
        result: Compression = last.result()[0]
    finally:  # done, or failed, or the user's Ctrl-C: nobody waits for what is left
        for future in (*parts, last):
            future.release()
    return result


def _failed_there(first: Any, parts: Sequence[Any]) -> BaseException:
    """Return the error to raise; Dask blames all blocks at once that a dead worker had."""
    from distributed import KilledWorker

    error = first.exception()
    if not isinstance(error, KilledWorker):
        return _block_error([_number(first.key)], error)
    time.sleep(LAST_REPORTS)
    blamed = [_number(part.key) for part in parts if part.status == "error"]
    problem = (
        "the worker that had it died, several times over; most often it had not enough memory. Make the blocks smaller "
        "(X.rechunk), or give the workers more memory."
    )
    return _block_error(blamed, error, problem)


def _number(key: Any) -> int:
    """Return which block a key of an array with one axis means: the name of the array comes first, then the block."""
    return int(key[1])


class _Running(Callback):
    """Knows what a scheduler of this process is doing: for the progress bar, and to find the block that failed."""

    def __init__(self, factors: da.Array, done: Done) -> None:
        super().__init__()
        self.blocks, self.done = set(factors.__dask_keys__()), done
        self.keys: set[Any] = set()
        self.dependents: Mapping[Any, Any] = {}

    def _pretask(self, key: Any, dsk: Any, state: Any) -> None:
        self.keys.add(key)
        self.dependents = state["dependents"]

    def _posttask(self, key: Any, result: Any, dsk: Any, state: Any, worker_id: Any) -> None:
        self.keys.discard(key)
        if key in self.blocks:
            self.done()

    def suspects(self) -> list[int]:
        """Return the blocks that were being computed, or waited for what was."""
        found, open_keys = set(), list(self.keys)
        while open_keys:
            key = open_keys.pop()
            if key in self.blocks:
                found.add(_number(key))
            else:
                open_keys += self.dependents.get(key, ())
        return sorted(found)


def _computed_here(factors: da.Array, root: da.Array, done: Done) -> Compression:
    """Compute with threads or processes; of the blocks under way, the one that failed is found by trying them again."""
    try:
        with _Running(factors, done) as running:
            result: Compression = root.compute()[0]
    except UnsoundBlock:
        raise
    except Exception as error:
        for number in running.suspects()[:MOST_TRIED_AGAIN]:
            if (again := _failure(factors.blocks[number])) is not None:
                raise _block_error([number], again)  # noqa: B904  # carries its own cause
        raise BlockError(f"A block failed, and succeeded when it was tried again: {error!r}") from error
    return result


def _failure(block: da.Array) -> Exception | None:
    """Return the error that computing one block alone raises, if it does."""
    try:
        block.compute(scheduler="synchronous")
    except Exception as error:
        return error
    return None


def _block_error(numbers: Sequence[int], error: BaseException, problem: str = "") -> BaseException:
    """Return the error to raise for a block that failed."""
    if isinstance(error, UnsoundBlock):
        return error
    problem = problem or f"it could not be computed: {type(error).__name__}: {error}"
    named = BlockError(f"Block {' or '.join(map(str, sorted(numbers)))}: {problem}")
    named.__cause__ = error
    return named
