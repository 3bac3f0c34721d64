"""Every block of rows to its R-factor where it lies, and the factors merged in a tree.

A block of m rows becomes a triangle of width w = 1 + columns + targets (:mod:`ardea.core.compression`), in the same
Dask task that makes the block where Dask can fuse them. FAN_IN triangles are merged by one task, FAN_IN of those by
another, until one is left; only that one travels to the client. Lost workers, retries and memory are Dask's business.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask._task_spec import GraphNode
from dask.base import get_scheduler
from dask.callbacks import Callback
from dask.core import reverse_dict
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from scipy import sparse

from ardea.core.compression import CompressedRows, Compression
from ardea.core.problem import Array
from ardea.distributed.rows import LazyRows, known
from ardea.progress import Progress

FAN_IN = 8
# After a failure without a cluster: how many of the blocks that were not finished are tried again, to find the culprit.
MOST_TRIED_AGAIN = 32
# Seconds within which a scheduler has told all that it blames for one dead worker.
LAST_REPORTS = 0.2


class BlockError(RuntimeError):
    """A block of rows could not be computed; the message says which, and the cause is attached."""


class UnsoundBlock(Exception):
    """What is wrong with a block, and where: raised where the block lies, put into words by the client."""

    def __init__(self, number: int, problem: str, row: int = -1, column: int = -1) -> None:
        super().__init__(number, problem, row, column)
        self.number, self.problem, self.row, self.column = number, problem, row, column

    def message(self, X: da.Array, names: Sequence[str] | None) -> str:
        """Return the message for the user."""
        where = ""
        if self.row >= 0:
            first = sum(X.chunks[0][: self.number]) if known(X) else None
            where = f", row {self.row} of the block" if first is None else f", row {first + self.row}"
        if self.column >= 0:
            where += f", column {self.column}" + (f" ({names[self.column]!r})" if names is not None else "")
        return f"Block {self.number}{where}: {self.problem}"


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
    factors = _factors(rows)
    with Progress("rows", factors.npartitions, unit="blocks", shown=bool(verbose)) as bar:
        try:
            compression = computed(factors, bar)
        except UnsoundBlock as unsound:
            raise ValueError(unsound.message(rows.X, rows.names)) from None
    if compression.n_samples == 0:
        raise ValueError(
            "X has no rows." if rows.weight is None else "All sample weights are zero: at least one row must count."
        )
    return CompressedRows(compression, rows.names, rows.one_target)


def _factors(rows: LazyRows) -> da.Array:
    """Return the compression of every block, in the task that makes the block where Dask can fuse them.

    Only the keys of the blocks mean anything here: each is a Compression, not an array.
    """
    weight = [] if rows.weight is None else [rows.weight[:, None]]
    factors = da.map_blocks(
        _compressed_block,
        *(rows.X, rows.Y, *weight),
        dtype=object,
        meta=np.empty((0, 0), dtype=object),
        token="ardea-compress",
    )
    return _one_task_a_block(factors)


def _one_task_a_block(factors: da.Array) -> da.Array:
    """Return the same with one task for every block: all that only this block needs is done in it.

    Dask fuses chains, but not a table that X and y are both taken from. Left apart, such tables wait in memory for
    their parts, or travel between workers; and pieces of an array in memory get so low a rank that all of X would be
    made before the first of them arrives.
    """
    graph = dict(dask.optimize(factors)[0].__dask_graph__())
    dependents = reverse_dict({key: node.dependencies for key, node in graph.items()})
    fused: dict[Any, Any] = {}
    gone: set[Any] = set()
    for key in _keys(factors):
        members, counts, open_keys = [], Counter[Any](), [key]
        while open_keys:
            node = graph[open_keys.pop()]
            members.append(node)
            counts.update(node.dependencies)
            open_keys += [
                other
                for other in node.dependencies
                if other in graph and counts[other] == len(dependents[other]) and not graph[other].block_fusion
            ]
        gone.update(member.key for member in members)
        fused[key] = GraphNode.fuse(*members, key=key)
    rest = {key: node for key, node in graph.items() if key not in gone}
    name = factors.name
    return da.Array(HighLevelGraph({name: rest | fused}, {name: set()}), name, factors.chunks, meta=factors._meta)


def _compressed_block(x: Any, y: Array, weight: Array | None = None, block_id: tuple[int, int] = (0, 0)) -> Compression:
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
        weight = np.asarray(weight, dtype=np.float64)[:, 0]
        check_finite("sample_weight", weight, number)
        if (weight < 0).any():
            raise UnsoundBlock(number, "sample_weight is negative.", int(np.argmax(weight < 0)))
        used = weight > 0
        x, y, weight = x[used], y[used], weight[used]
    with np.errstate(all="ignore"):
        compression = Compression.from_arrays(x, y, weight)
    if not np.isfinite(
        compression.factor
    ).all():  # NaN or infinity in any row ends up here, so sound rows need no check
        check_finite("X", x, number)
        check_finite("y", y, number)
    return compression


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


def _tree(factors: da.Array) -> Delayed:
    """Return the merged factor: FAN_IN at a time, level by level."""
    keys: list[Any] = _keys(factors)
    name = f"ardea-merge-{factors.name}"
    tasks: dict[str, Any] = {}
    level = 0
    while len(keys) > 1 or not level:
        groups = [keys[start : start + FAN_IN] for start in range(0, len(keys), FAN_IN)]
        keys = [f"{name}-{level}-{number}" for number in range(len(groups))]
        tasks |= {key: (_merged, group) for key, group in zip(keys, groups, strict=True)}
        level += 1
    return Delayed(keys[0], HighLevelGraph.from_collections(name, tasks, dependencies=[factors]), layer=name)


def _keys(factors: da.Array) -> list[Any]:
    """Return the keys of the blocks; the block's number is the second entry."""
    return [key for (key,) in factors.__dask_keys__()]


def _merged(factors: Sequence[Compression]) -> Compression:
    return reduce(Compression.merge, factors)


def computed(factors: da.Array, bar: Progress) -> Compression:
    """Compute the tree on the cluster that is connected, else with Dask's scheduler of this process."""
    client = getattr(get_scheduler(), "__self__", None)
    root = _tree(factors)
    return _computed_here(factors, root, bar) if client is None else _computed_on(client, factors, root, bar)


def _computed_on(client: Any, factors: da.Array, root: Delayed, bar: Progress) -> Compression:
    """Compute on a cluster: every block's future is let go when it is done, so only the tree keeps factors alive."""
    from distributed import as_completed, futures_of

    persisted = client.persist([factors, root], retries=dask.get_annotations().get("retries"))
    blocks, (last,) = (futures_of(collection) for collection in persisted)
    try:
        for future in as_completed(blocks):
            if future.status != "finished":
                raise _block_error(_failed(blocks, future), future.exception())
            future.release()
            bar.step()
        result: Compression = last.result()
    finally:  # done, or failed, or the user's Ctrl-C: nobody waits for what is left
        for future in (*blocks, last):
            future.release()
    return result


def _failed(blocks: list[Any], first: Any) -> list[int]:
    """Return the blocks that failed: the first, or all that Dask blames at once for the death of a worker."""
    if type(first.exception()).__name__ != "KilledWorker":
        return [first.key[1]]
    time.sleep(LAST_REPORTS)
    return sorted(future.key[1] for future in blocks if future.status == "error")


class _Finished(Callback):
    """Notes which blocks are done, for the progress bar and for finding the one that failed."""

    def __init__(self, factors: da.Array, bar: Progress) -> None:
        super().__init__()
        self.open = set(_keys(factors))
        self.bar = bar

    def _posttask(self, key: Any, result: Any, dsk: Any, state: Any, worker_id: Any) -> None:
        if key in self.open:
            self.open.remove(key)
            self.bar.step()


def _computed_here(factors: da.Array, root: Delayed, bar: Progress) -> Compression:
    """Compute with threads or processes; a block that fails is found by trying the unfinished ones again."""
    finished = _Finished(factors, bar)
    try:
        with finished:
            result: Compression = root.compute()
    except UnsoundBlock:
        raise
    except Exception as error:
        for key in sorted(finished.open)[:MOST_TRIED_AGAIN]:
            again = _failure(factors, key)
            if again is not None:
                raise _block_error([key[1]], again)  # noqa: B904  # carries its own cause
        raise BlockError(f"A block failed, and succeeded when it was tried again: {error!r}") from error
    return result


def _failure(factors: da.Array, key: Any) -> Exception | None:
    """Return the error that computing one block alone raises, if it does."""
    try:
        dask.get(factors.__dask_graph__(), key)
    except Exception as error:
        return error
    return None


def _block_error(numbers: list[int], error: BaseException) -> BaseException:
    """Return the error to raise for a block that failed."""
    if isinstance(error, UnsoundBlock):
        return error
    problem = f"it could not be computed: {type(error).__name__}: {error}"
    if type(error).__name__ == "KilledWorker":
        problem = (
            "the worker that had it died, several times over; most often it had not enough memory. Make the blocks "
            "smaller (X.rechunk), or give the workers more memory."
        )
    named = BlockError(f"Block {' or '.join(map(str, numbers))}: {problem}")
    named.__cause__ = error
    return named
