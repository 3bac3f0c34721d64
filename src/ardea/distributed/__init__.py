"""Dask: compress every block where it lies, merge the small factors in a tree; the rest is the ordinary core.

`fit`, `partial_fit` and `predict` of the estimators take Dask arrays and data frames themselves. This package is what
they call, and adds features that are evaluated block by block:

- `compress(X, y, sample_weight)`: the rows of Dask collections as one small factor;
- `compress_files(paths, target)`: the same of many files, each read in blocks by one worker;
- `features(library, X)`: Θ of a library of :mod:`ardea.dynamics`, lazily, from states or from fields;
- `field_derivative`, `field_rows`: a derivative of a field on a grid, and a field as the rows that `features` has.

``import ardea`` does not load it, and so needs no Dask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ardea.core.problem import Array
from ardea.names import counted

try:
    import dask.array as da
except ImportError as error:
    raise ImportError("ardea.distributed needs Dask: pip install 'ardea[distributed]'.") from error

from ardea.distributed.compress import BlockError, compress, compress_files, lazy_matrix

__all__ = ["BlockError", "compress", "compress_files", "features", "field_derivative", "field_rows"]

# Features that are evaluated block by block, so that Θ never exists as a whole ----------------------------------------


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
        states, _ = lazy_matrix(data)
        return _theta(library.evaluate, [states], library.n_terms(states.shape[1]))
    fields, space = _fields(data, space, time)
    n_axes = fields[0].ndim - 1
    if space is None or len(space) != n_axes:
        raise ValueError(f"The fields have {n_axes} space axes: give `space`, the points or the step of each.")
    wraps = [periodic] * n_axes if isinstance(periodic, bool) else list(periodic)

    def derivative(field: int, orders: tuple[int, ...]) -> da.Array:
        values = fields[field]
        for axis, (points, wrap, times) in enumerate(zip(space, wraps, orders, strict=True)):
            if times:
                values = field_derivative(values, points, axis=axis, derivative=times, order=order, periodic=wrap)
        return values

    return _field_features(library, fields, derivative)


def _field_features(library: Any, fields: Sequence[da.Array], derivative: Callable[..., da.Array]) -> da.Array:
    from ardea.dynamics.field_terms import plain

    n_axes, n_fields = fields[0].ndim - 1, len(fields)
    terms = library.terms(n_fields, n_axes)
    jets = [jet for term in terms for monomial in plain(term) for jet, _ in monomial.factors]
    factors = list(dict.fromkeys((jet.field, jet.orders) for jet in jets if any(jet.orders)))

    def columns(*parts: Array) -> Any:
        """Return the terms at the grid points of a block, from the values of its fields and of their derivatives."""
        values = dict(zip(factors, parts[n_fields:], strict=True))
        return library.evaluate(parts[:n_fields], lambda *factor: values[factor], n_axes=n_axes)

    parts = [field_rows(values, fields[0]) for values in (*fields, *(derivative(*factor) for factor in factors))]
    return _theta(columns, parts, len(terms), new_axis=1)


def _theta(columns: Callable[..., Any], parts: Sequence[da.Array], n_terms: int, **details: Any) -> da.Array:
    shape: dict[str, Any] = {"chunks": (parts[0].chunks[0], (n_terms,)), "meta": np.empty((0, n_terms))}
    return da.map_blocks(columns, *parts, token="ardea-features", **shape, **details)


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
    from ardea.dynamics.differences import finite_difference

    axis %= field.ndim
    step, points = _step_and_points(step_or_points, field, axis)
    if periodic and points:
        raise ValueError("Periodic differences need a uniform step; leave periodic=False for uneven points.")
    reach, thinnest = derivative + order, min(field.chunks[axis])
    if thinnest < reach:  # cutting anew here would change the order of rows
        raise ValueError(
            f"A block has {counted(thinnest, 'point')} along axis {axis}, but the differences borrow {reach} from it. "
            "Cut the "
            f"field into larger blocks first, u = u.rechunk({{{axis}: n}}), none with fewer than {reach} points."
        )

    def difference(block: Array, *where: Array) -> Array:
        at = where[0].ravel() if where else step
        return finite_difference(block, at, derivative=derivative, order=order, axis=axis)

    return da.map_overlap(
        difference,
        *(field, *points),
        depth={axis: reach},
        boundary={axis: "periodic" if periodic else "none"},
        meta=np.empty((0,) * field.ndim),
        token="ardea-derivative",
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


def _step_and_points(step_or_points: Any, field: da.Array, axis: int) -> tuple[float, list[da.Array]]:
    """Return one step where the points are uniform, so that every block has the same; else the points, cut likewise."""
    from ardea.dynamics.differences import UNIFORM

    if np.ndim(step_or_points) == 0:
        return float(step_or_points), []
    points, size = np.asarray(step_or_points, dtype=float), field.shape[axis]
    if points.shape != (size,):
        raise ValueError(f"Axis {axis} has {counted(size, 'point')}, but {points.size} coordinates were given.")
    steps = np.diff(points)
    if np.ptp(steps) <= UNIFORM * steps.mean():
        return float(points[-1] - points[0]) / (size - 1), []
    column = points.reshape([size if other == axis else 1 for other in range(field.ndim)])
    return float("nan"), [da.from_array(column, chunks={axis: field.chunks[axis]})]


def _fields(data: Any, space: Any, time: str) -> tuple[list[da.Array], Any]:
    """Return the fields as Dask arrays of one shape and one chunking, and the points of their space axes."""
    from ardea.dynamics.fields import xarray_fields

    if hasattr(data, "coords"):
        arrays = xarray_fields(data, time)
        space = [arrays[0][axis].values for axis in arrays[0].dims[:-1]] if space is None else space
        data = [array.data for array in arrays]
    fields = [da.asarray(field) for field in (data if isinstance(data, list | tuple) else [data])]
    if fields[0].ndim < 2:
        raise ValueError("A field needs at least one space axis and then time.")
    if any(field.shape != fields[0].shape for field in fields):
        raise ValueError(f"The fields differ in shape: {', '.join(str(field.shape) for field in fields)}.")
    return [field.rechunk(fields[0].chunks) for field in fields], space
