"""Prediction on Dask collections: a function of rows, put off until its result is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np

from ardea.core.problem import Array
from ardea.distributed.compress import UnsoundBlock, check_finite
from ardea.distributed.rows import lazy_matrix


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

    def of_block(block: Array, block_id: tuple[int, ...] = (0,)) -> Array:
        try:
            check_finite("X", block, block_id[0])
        except UnsoundBlock as unsound:
            raise ValueError(unsound.message(array, given)) from None
        return function(np.asarray(block))

    shape = (0,) if n_outputs is None else (0, n_outputs)
    return da.map_blocks(
        of_block,
        array,
        chunks=array.chunks[:1] if n_outputs is None else (array.chunks[0], (n_outputs,)),
        drop_axis=1 if n_outputs is None else None,
        meta=np.empty(shape),
        token="ardea-predict",
    )
