"""Many files, each read in blocks by one worker: for data of more blocks than a scheduler can count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from ardea.core.compression import CompressedRows
from ardea.distributed.compress import boxed, merged, one_each
from ardea.tables.rows import DEFAULT_MEMORY, open_rows


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


def _compressed_file(names: Any, settings: dict[str, Any]) -> Any:
    path = names[0]
    rows = open_rows(path, settings["target"], columns=settings["columns"], memory=settings["memory"])
    if list(rows.names) != list(settings["names"]):
        raise ValueError(f"{path}: the columns are not those of the first file, in the same order.")
    return boxed(rows.compressed(progress=False).compression)
