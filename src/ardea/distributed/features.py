"""Features that are evaluated block by block, so that Θ never exists as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import ArrayLike

from ardea.core.problem import Array
from ardea.distributed.rows import lazy_matrix


def features(
    library: Any,
    data: Any,
    *,
    space: Sequence[ArrayLike | float] | None = None,
    periodic: bool | Sequence[bool] = False,
    order: int = 6,
    time: str = "t",
) -> da.Array:
    """Return Θ of a library, lazily.

    Parameters
    ----------
    library : Library or FieldTerms of ardea.dynamics
        Terms. For `FieldTerms` the data are fields on a grid, else states in rows.
    data : Dask array or data frame of shape (rows, n_states); fields
        States; or a field as a Dask array of shape (n_x, …, n_t), space first, then time; a list of such arrays for
        several fields; an xarray DataArray, or a Dataset of fields.
    space : sequence, optional
        For every space axis its points (ascending) or its step. An xarray object brings its own.
    periodic : bool or sequence of bool
        Whether the point after the last is the first again; for all space axes, or for each.
    order : int
        Order of the finite differences: central inside, one-sided at the ends that are not periodic.
    time : str
        The time axis of an xarray object; all its other axes are space.

    Returns
    -------
    dask.array.Array of shape (rows or grid points, n_terms)
        States: in the order given. Fields: one row for every grid point, block by block, in C order within a block.
        `field_rows` puts anything on the same grid into this order.

    Examples
    --------
    >>> import dask.array as da
    >>> from ardea.dynamics import Polynomials
    >>> states = da.random.default_rng(0).normal(size=(1000, 3), chunks=(100, 3))
    >>> features(Polynomials(2), states).shape
    (1000, 10)
    """
    from ardea.dynamics import FieldTerms

    if not isinstance(library, FieldTerms):
        return _state_features(library, data)
    fields, space = _fields(data, space, time)
    n_axes = fields[0].ndim - 1
    if space is None or len(space) != n_axes:
        raise ValueError(f"The fields have {n_axes} space axes: give `space`, the points or the step of each.")
    wraps = [periodic] * n_axes if isinstance(periodic, bool) else list(periodic)
    terms = library.terms(len(fields), n_axes)
    factors = list(dict.fromkeys((term.field, term.orders) for term in terms if term.field is not None))

    def derivative(field: int, orders: tuple[int, ...]) -> da.Array:
        values = fields[field]
        for axis, times in enumerate(orders):
            if times:
                values = field_derivative(
                    values, space[axis], axis=axis, derivative=times, order=order, periodic=wraps[axis]
                )
        return values

    parts = [field_rows(values, fields[0]) for values in (*fields, *(derivative(*factor) for factor in factors))]
    return da.map_blocks(
        partial(_field_columns, library, len(fields), factors, n_axes),
        *parts,
        chunks=(parts[0].chunks[0], (len(terms),)),
        new_axis=1,
        meta=np.empty((0, len(terms))),
        token="ardea-features",
    )


def _state_features(library: Any, data: Any) -> da.Array:
    states, _ = lazy_matrix(data)
    n_terms = library.n_terms(states.shape[1])
    return da.map_blocks(
        library.evaluate,
        states,
        chunks=(states.chunks[0], (n_terms,)),
        meta=np.empty((0, n_terms)),
        token="ardea-features",
    )


def _field_columns(library: Any, n_fields: int, factors: list[Any], n_axes: int, *parts: Array) -> Array:
    """Return the terms at the grid points of a block, from the values of its fields and of their derivatives."""
    values = dict(zip(factors, parts[n_fields:], strict=True))
    columns: Array = library.evaluate(parts[:n_fields], lambda *factor: values[factor], n_axes=n_axes)
    return columns


def field_derivative(
    field: da.Array,
    step_or_points: ArrayLike | float,
    *,
    axis: int = 0,
    derivative: int = 1,
    order: int = 6,
    periodic: bool = False,
) -> da.Array:
    """Return a derivative of a field along one axis, lazily: `ardea.dynamics.finite_difference` of the whole field.

    Every block borrows from its neighbours as many points as the stencil reaches.

    Parameters
    ----------
    field : Dask array
        Samples on a grid.
    step_or_points, axis, derivative, order, periodic
        As for `finite_difference`.

    Examples
    --------
    >>> import dask.array as da
    >>> x = da.linspace(0, 1, 1000, chunks=100)
    >>> float(abs(field_derivative(x**3, 1 / 999) - 3 * x**2).max()) < 1e-10
    True
    """
    axis %= field.ndim
    step = _step(step_or_points, field.shape[axis], axis)
    if periodic and np.ndim(step):
        raise ValueError("Periodic differences need a uniform step; leave periodic=False for uneven points.")
    if field.numblocks[axis] == 1:
        difference = partial(_difference, step, axis, derivative, order, periodic)
        return da.map_blocks(difference, field, meta=field._meta.astype(float), token="ardea-derivative")
    reach = derivative + order
    _check_blocks(field, axis, reach)
    borrowed = da.overlap.overlap(field, depth={axis: reach}, boundary={axis: "periodic" if periodic else "none"})
    ends = np.cumsum([0, *field.chunks[axis]]).tolist()

    def of_block(block: Array, block_id: tuple[int, ...] | None = None) -> Array:
        number = block_id[axis] if block_id else 0
        start, stop = ends[number], ends[number + 1]
        before = reach if periodic else min(reach, start)
        local = step if np.ndim(step) == 0 else np.asarray(step)[start - before : start - before + block.shape[axis]]
        values = _difference(local, axis, derivative, order, False, block)
        return np.take(values, range(before, before + stop - start), axis=axis)

    return da.map_blocks(
        of_block, borrowed, chunks=field.chunks, meta=field._meta.astype(float), token="ardea-derivative"
    )


def field_rows(values: da.Array, field: da.Array) -> da.Array:
    """Return values on the grid of a field in the order of the rows of `features`: block by block of the field.

    Parameters
    ----------
    values : Dask array
        For instance the time derivative.
    field : Dask array
        The field that `features` was given (the first of several); its blocks decide the order.

    Examples
    --------
    >>> import dask.array as da
    >>> u = da.arange(6, chunks=6).reshape(2, 3)
    >>> field_rows(u, u.rechunk((2, 2))).compute().tolist()
    [0, 1, 3, 4, 2, 5]
    """
    if values.shape != field.shape:
        raise ValueError(f"The values have the shape {values.shape}, but the field has {field.shape}.")
    return da.reshape_blockwise(values.rechunk(field.chunks), values.size)


def _difference(step_or_points: Any, axis: int, derivative: int, order: int, periodic: bool, block: Array) -> Array:
    from ardea.dynamics.differences import finite_difference

    return finite_difference(block, step_or_points, derivative=derivative, order=order, axis=axis, periodic=periodic)


def _step(step_or_points: ArrayLike | float, size: int, axis: int) -> float | Array:
    """Return one step where the points are uniform, so that every block has the same; else the points."""
    if np.ndim(step_or_points) == 0:
        return float(np.asarray(step_or_points))
    points = np.asarray(step_or_points, dtype=float)
    if points.shape != (size,):
        raise ValueError(f"Axis {axis} has {size} points, but {points.size} coordinates were given.")
    steps = np.diff(points)
    uniform = np.ptp(steps) <= 1e-8 * steps.mean()
    return float(points[-1] - points[0]) / (size - 1) if uniform else points


def _check_blocks(field: da.Array, axis: int, reach: int) -> None:
    """Refuse blocks thinner than what their neighbours borrow: cutting anew here would change the order of rows."""
    thinnest = min(field.chunks[axis])
    if thinnest < reach:
        raise ValueError(
            f"A block has {thinnest} points along axis {axis}, but the differences borrow {reach} from it. Cut the "
            f"field into larger blocks first, u = u.rechunk({{{axis}: n}}), none with fewer than {reach} points."
        )


def _fields(data: Any, space: Any, time: str) -> tuple[list[da.Array], Any]:
    """Return the fields as Dask arrays of one shape and one chunking, and the points of their space axes."""
    if type(data).__module__.startswith("xarray"):
        data, space = _from_xarray(data, space, time)
    fields = [da.asarray(field) for field in (data if isinstance(data, list | tuple) else [data])]
    if fields[0].ndim < 2:
        raise ValueError("A field needs at least one space axis and then time.")
    if any(field.shape != fields[0].shape for field in fields):
        raise ValueError(f"The fields differ in shape: {', '.join(str(field.shape) for field in fields)}.")
    return [field.rechunk(fields[0].chunks) for field in fields], space


def _from_xarray(data: Any, space: Any, time: str) -> tuple[list[Any], Any]:
    arrays = list(data.data_vars.values()) if hasattr(data, "data_vars") else [data]
    if time not in arrays[0].dims:
        raise ValueError(f"The field has the axes {', '.join(map(str, arrays[0].dims))}; say which is time (time=…).")
    axes = [axis for axis in arrays[0].dims if axis != time]
    points = [arrays[0][axis].values for axis in axes] if space is None else space
    return [array.transpose(*axes, time).data for array in arrays], points
