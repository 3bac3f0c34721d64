"""States and fields in files of arrays (NPZ, NetCDF, Zarr): which array is what, and along which axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array, Index
from ardea.tables.columns import notation_of
from ardea.tables.empties import Codes
from ardea.tables.table import NamedArray, Table, all_named, unknown

# Points that an axis of a field needs for one test function of the least radius (docs/fields.md).
FEWEST_POINTS = 13
AS_POINTS = "Every time has the same {} values of {!r}, as the points of a field"
# States or fields, times, inputs, names, coordinates.
Found = tuple[Any, Any, None, list[str], tuple[Array, ...] | None]


def states_or_fields(
    arrays: dict[str, NamedArray],
    path: Path,
    time: str | None,
    named: Sequence[str],
    placed: Sequence[str],
    codes: Codes,
) -> Found:
    """Return the states or fields that are chosen: x, t, no inputs, names, and coordinates of the axes of fields.

    Codes for "no value" are NaN in these, and stay what they are in times and coordinates.
    """
    where = f"{path} has no array"
    if time is not None and time not in arrays:
        raise unknown(time, arrays, where)
    t = None if time is None else _array_times(arrays[time], time, path)
    states, axes = (all_named(names, list(arrays), where) for names in (named, placed))
    lines = [name for name, one in arrays.items() if one.values.ndim == 1 and one.values.dtype.kind in "fiu"]
    wide = [name for name, one in arrays.items() if one.values.ndim > 1 and one.values.dtype.kind in "fiuc"]
    chosen = states or wide or [name for name in lines if name != time]
    if not chosen:
        raise ValueError(f"{path} holds no array of numbers but the time.")
    arrays = arrays | {
        name: replace(arrays[name], values=codes.emptied(np.asarray(arrays[name].values))) for name in chosen
    }
    first = arrays[chosen[0]]
    if first.values.ndim == 1:
        shapes = {name: arrays[name].values.shape for name in chosen}
        if len(set(shapes.values())) > 1:
            raise ValueError(f"{path}: the arrays have different shapes: {shapes}. Choose with --states.")
        return (np.column_stack([arrays[name].values for name in chosen]).astype(float), t, None, list(chosen), None)
    space = axes or _space_axes(first, arrays, [name for name in lines if name != time], t)
    if space and t is not None:
        return _field(arrays, chosen, space, t, str(time), path)
    if len(chosen) > 1:
        raise ValueError(f"{path} holds several tables, {', '.join(chosen)}: choose one with --states.")
    return _table(chosen[0], first, t, path)


def _array_times(array: NamedArray, name: str, path: Path) -> NDArray[Any]:
    """Return times as numbers or dates; dates of other calendars (cftime) as durations from the first."""
    times = np.asarray(array.values)
    if times.ndim != 1:
        raise ValueError(f"{path}: the array {name!r} has shape {times.shape}; times have one axis.")
    if times.dtype.kind == "O":
        return np.array([one - times[0] for one in times], dtype="timedelta64[us]")
    return times if times.dtype.kind in "mM" else times.astype(float)


def _space_axes(array: NamedArray, arrays: dict[str, NamedArray], lines: list[str], t: Any) -> list[str] | None:
    """Return the arrays that hold coordinates of every axis but the time's; None where some axis has none."""
    if array.axes is not None:
        found = [axis for axis in array.axes if axis in lines]
        return found if len(found) == array.values.ndim - 1 else None
    lengths = list(array.values.shape)
    if t is None or t.size not in lengths:
        return None
    # Space first, then time: of two axes as long as the time, the last is its own.
    del lengths[len(lengths) - 1 - lengths[::-1].index(t.size)]
    chosen: list[str] = []
    for length in lengths:
        chosen += [name for name in lines if name not in chosen and len(arrays[name].values) == length][:1]
    return chosen if len(chosen) == len(lengths) else None


def _field(arrays: dict[str, NamedArray], chosen: list[str], space: list[str], t: Any, time: str, path: Path) -> Found:
    points = tuple(np.asarray(arrays[name].values).astype(float).ravel() for name in space)
    wanted = (*(one.size for one in points), t.size)
    fields = []
    for name in chosen:
        array = arrays[name]
        values = np.asarray(array.values)
        if array.axes is not None and set(array.axes) == {*space, time}:
            values = values.transpose([array.axes.index(axis) for axis in (*space, time)])
        elif values.shape != wanted and values.shape == (wanted[-1], *wanted[:-1]):
            values = np.moveaxis(values, 0, -1)
        if values.shape != wanted:
            axes = " × ".join(space)
            raise ValueError(f"{path}: the array {name!r} has shape {values.shape}; {axes} × {time} is {wanted}.")
        fields.append(values if values.dtype.kind == "c" else values.astype(float))
    return (fields[0] if len(fields) == 1 else np.stack(fields, axis=-1), t, None, list(chosen), points)


def told_axes(arrays: dict[str, NamedArray], found: Found) -> list[str]:
    """Return in which order the axes of a field were read, where neither their names nor their lengths tell."""
    _, t, _, (name, *_), space = found
    if space is None or arrays[name].axes is not None or {one.size for one in space} != {np.size(t)}:
        return []
    told = f"axes of {name!r} were read as space, then time: all have {np.size(t)} points, so that lengths do not tell"
    return [f"{told}. If time comes first, store np.moveaxis({name}, 0, -1)"]


def _table(name: str, array: NamedArray, t: Any, path: Path) -> Found:
    """Return a table in an array: rows are times."""
    values = np.asarray(array.values).astype(float)
    if values.ndim != 2 or (t is not None and t.size not in values.shape):
        raise ValueError(
            f"{path}: the array {name!r} has shape {values.shape}. A table has two axes, one as long as the times; a "
            "field needs arrays with the coordinates of its other axes (--space)."
        )
    if t is not None and values.shape[0] != t.size:
        values = values.T
    return (values, t, None, [f"{name}{j}" for j in range(values.shape[1])], None)


# Fields whose samples are the rows of a table -------------------------------------------------------------------------


def on_grid(
    table: Table, numbers: dict[str, Array], times: NDArray[Any], axes: list[str], states: list[str]
) -> tuple[Array, NDArray[Any], tuple[Array, ...]]:
    """Return fields on the grid of all coordinates and times, NaN where no row is; the times; and the coordinates."""
    t, last = np.unique(times, return_inverse=True)
    found = [np.unique(numbers[name], return_inverse=True) for name in axes]
    space, shape = tuple(points for points, _ in found), (*(points.size for points, _ in found), t.size)
    if not all(np.isfinite(points).all() for points in space) or np.any(times != times):
        raise ValueError(f"{table.path}: every row needs a time, and a number in {' and '.join(map(repr, axes))}.")
    cells = np.ravel_multi_index((*(place for _, place in found), last), shape)
    first = np.unique(cells, return_index=True)[1]
    if first.size < cells.size:
        row = int(np.setdiff1d(np.arange(cells.size), first)[0])
        raise ValueError("\n".join(table.placed([(row, axes[0], "an earlier row has the same time and place")])))
    if 2 * cells.size < np.prod(shape):
        grid = " × ".join(map(str, shape))
        raise ValueError(
            f"{table.path}: {cells.size} rows are less than half of the grid of {grid} points and times. A field needs "
            "the same points at every time."
        )
    out = np.full((np.prod(shape), len(states)), np.nan)
    out[cells] = np.column_stack([numbers[name] for name in states])
    x = out.reshape(*shape, len(states))
    return x[..., 0] if len(states) == 1 else x, t, space


def axes_of_field(columns: dict[str, Array], times: NDArray[Any]) -> Iterator[tuple[str, int]]:
    """Yield columns with the same values at every time, as many as an axis needs points, and how many these are."""
    t, row = np.unique(times, return_inverse=True)
    for name, values in columns.items() if t.size > 1 and len(columns) > 1 else ():
        points, place = np.unique(values, return_inverse=True)
        full = points.size >= FEWEST_POINTS and points.size * t.size == times.size
        if full and np.unique(place * t.size + row).size == times.size:
            yield name, points.size


def numbered_as_points(label: str, runs: dict[str, Index], times: NDArray[Any]) -> Iterator[str]:
    """Tell of series that are numbered and have the same times, as the points of a field."""
    first = times[next(iter(runs.values()))]
    same = len(runs) >= FEWEST_POINTS and all(np.array_equal(times[rows], first) for rows in runs.values())
    if same and all(map(notation_of, runs)):
        told = f"{AS_POINTS.format(len(runs), label)}. If it is one"
        yield f"{told}, read it with --space {label} in place of --series {label}."
