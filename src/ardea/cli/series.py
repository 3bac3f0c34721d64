"""From a file and the options to what `Discovery.fit` takes: states with inputs, several series, or a field."""

from __future__ import annotations

import argparse
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ardea.cli.console import Failure, in_quotes, joined_names, listed, named, unknown
from ardea.cli.tables import (
    ARRAYS,
    EXPANSION,
    Columns,
    NamedArray,
    read_arrays,
    read_columns,
    suffix_of,
)
from ardea.core.problem import Array
from ardea.dynamics.times import as_numbers
from ardea.readers import bytes_of, open_rows

TIME_NAMES = {
    "t",
    "time",
    "times",
    "date",
    "datetime",
    "day",
    "days",
    "hour",
    "hours",
    "year",
    "years",
    "month",
    "zeit",
}
# Steps of a clock differ by no more than this share, which leaves room for rounded times.
EVEN = 1e-3
# What is kept of a table larger than memory.
STRETCH, MOST_STRETCHES = 400, 50


@dataclass(frozen=True)
class Series:
    """The arguments of `Discovery.fit`, and a line that says what they are.

    Attributes
    ----------
    x, t, u : array, or list of arrays for several series
        States or field, times (or a step), inputs or None.
    names : list of str
        Names of states (or fields), then of inputs.
    space : tuple of ndarray or None
        Coordinates of the space axes of a field.
    time_unit : str or None
        Unit of times that were dates.
    """

    x: Any
    t: Any
    u: Any
    names: list[str]
    space: tuple[Array, ...] | None = None
    time_unit: str | None = None

    def described(self) -> str:
        """Return what was read, in one line."""
        states = self.names[: len(self.names) - self.n_inputs]
        listed = ", ".join(states[:8]) + (", …" if len(states) > 8 else "")
        if self.space is not None:
            grid = " × ".join(str(points.size) for points in self.space)
            return f"field {listed} on {grid} points at {np.size(self.t)} times"
        series = self.x if isinstance(self.x, list) else [self.x]
        rows = sum(len(one) for one in series)
        text = f"{rows} rows of {len(states)} state{'s' * (len(states) > 1)} ({listed})"
        text += f", {self.n_inputs} input{'s' * (self.n_inputs > 1)}" if self.n_inputs else ""
        return text + (f" in {len(series)} series" if len(series) > 1 else "")

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        first = self.u[0] if isinstance(self.u, list) else self.u
        return 0 if first is None else int(first.shape[1])


def read_series(path: Path, options: argparse.Namespace) -> Series:
    """Read what the options name; a wrong name fails with the names that there are."""
    if options.time is not None and options.step is not None:
        raise Failure("Give --time or --step, not both.")
    if options.time is None and options.step is None and not options.map:
        raise Failure("Say when the rows were taken: --time COLUMN, or --step DT (or --map for discrete time).")
    if suffix_of(path) in ARRAYS:
        return _from_arrays(read_arrays(path), path, options)
    if options.space:
        raise Failure("--space is for fields in NPZ, NetCDF or Zarr files.")
    if _large(path, options):
        return _from_stretches(path, options)
    return _from_columns(read_columns(path, bytes_of(options.memory), options.decimal), options)


def _large(path: Path, options: argparse.Namespace) -> bool:
    """Whether a table is larger than --memory, by its size on disk."""
    size = sum(one.stat().st_size for one in path.rglob("*")) if path.is_dir() else path.stat().st_size
    return size * EXPANSION > bytes_of(options.memory)


def _from_stretches(path: Path, options: argparse.Namespace) -> Series:
    """Read a table block by block and keep stretches of rows, spread evenly over the whole."""
    if options.time is None or options.series is not None:
        raise Failure(f"{path} is larger than --memory: name its times with --time, and give one series in one file.")
    every = open_rows(path, 0, decimal=options.decimal)
    known, where = [*every.target_names, *every.names], f"{path} has no column"
    inputs = listed(options.inputs, known, where)
    wanted = None if options.states is None else [*listed(options.states, known, where), *inputs]
    memory = bytes_of(options.memory)
    rows = open_rows(path, named(options.time, known, where), columns=wanted, memory=memory, decimal=options.decimal)
    names = [*(name for name in rows.names if name not in inputs), *inputs]
    order = [rows.names.index(name) for name in names]
    kept: list[tuple[Array, Array]] = []
    number, stride = 0, 1
    for X, t in rows.counted_blocks():
        for start in range(0, len(t), STRETCH):
            if number % stride == 0:
                kept.append((X[start : start + STRETCH, order].copy(), t[start : start + STRETCH].copy()))
            number += 1
            if len(kept) > MOST_STRETCHES:
                kept, stride = kept[::2], 2 * stride
    n_states = len(names) - len(inputs)
    states, controls = [X[:, :n_states] for X, _ in kept], [X[:, n_states:] for X, _ in kept]
    return Series(states, [t for _, t in kept], controls if inputs else None, names)


def _from_columns(table: Columns, options: argparse.Namespace) -> Series:
    step = options.step or 1.0
    known, where = list(table.values), f"{table.path} has no column"
    inputs = listed(options.inputs, known, where)
    apart = {table.name(name) for name in (options.time, options.series) if name is not None} | set(inputs)
    states = listed(options.states, known, where) or [one for one in known if one not in apart]
    if not states or apart & set(states):
        raise Failure("The states must be at least one column, and none of them the time, the series or an input.")
    if texts := table.texts([*states, *inputs]):
        rest = joined_names(name for name in states if name not in texts)
        raise Failure(f"{table.path}: not numbers: {', '.join(texts)}. Try --states {in_quotes(rest or 'A,B')}")
    x = np.column_stack([table.numbers(name) for name in states])
    u = np.column_stack([table.numbers(name) for name in inputs]) if inputs else None
    t, unit = (None, None) if options.time is None else _counted(table.times(options.time), options)
    if t is not None and np.isnan(t).any():
        row = int(np.flatnonzero(np.isnan(t))[0])
        raise Failure(f"{table.path}, {table.place(row)}, column {table.name(options.time)!r}: the time is missing.")
    names = [*states, *inputs]
    if table.written is not None:
        for remark in table.written.remarks():
            warnings.warn(remark, stacklevel=2)
    if t is None:
        _warn_of_clocks(states, x)
    if options.series is None:
        return Series(x, step if t is None else t, u, names, time_unit=unit)
    labels = table[options.series]
    groups = [np.flatnonzero(labels == label) for label in dict.fromkeys(labels.tolist())]
    return Series(
        [x[rows] for rows in groups],
        step if t is None else [t[rows] for rows in groups],
        None if u is None else [u[rows] for rows in groups],
        names,
        time_unit=unit,
    )


def _warn_of_clocks(states: list[str], x: Array) -> None:
    """Warn of states that rise from row to row as times do: evenly, or under a name for times."""
    for name, values in zip(states, x.T, strict=True):
        steps = np.diff(values)
        if steps.size < 2 or not np.all(steps > 0):
            continue
        even = np.ptp(steps) <= EVEN * steps.mean()
        words = re.findall(r"[a-z]+", name.lower())
        if even or (words and words[0] in TIME_NAMES):
            warnings.warn(f"column {name!r} rises strictly: did you mean --time {in_quotes(name)}?", stacklevel=2)


def _from_arrays(arrays: dict[str, NamedArray], path: Path, options: argparse.Namespace) -> Series:
    if options.inputs or options.series:
        raise Failure("--inputs and --series are for tables (CSV, Parquet, NPY).")
    where = f"{path} has no array"
    if options.time is not None and options.time not in arrays:
        raise unknown(options.time, arrays, where)
    t, unit = (None, None) if options.time is None else _times(arrays[options.time], options, path)
    return replace(_arranged(arrays, t, path, options), time_unit=unit)


def _arranged(arrays: dict[str, NamedArray], t: Array | None, path: Path, options: argparse.Namespace) -> Series:
    """Return the states or fields that the options name."""
    where = f"{path} has no array"
    states, axes = listed(options.states, list(arrays), where), listed(options.space, list(arrays), where)
    lines = {name for name, one in arrays.items() if one.values.ndim == 1 and one.values.dtype.kind in "fiu"}
    wide = [name for name, one in arrays.items() if one.values.ndim > 1 and one.values.dtype.kind in "fiu"]
    chosen = states or wide or [name for name in arrays if name in lines and name != options.time]
    if not chosen:
        raise Failure(f"{path} holds no array of numbers but the time.")
    first = arrays[chosen[0]]
    if first.values.ndim == 1:
        x = np.column_stack([_alike(arrays[name].values, first.values, name, path) for name in chosen])
        return Series(x.astype(float), options.step if t is None else t, None, list(chosen))
    space = axes or _space_axes(first, arrays, lines - {options.time}, None if t is None else t.size)
    if space and t is not None:
        return _field(arrays, chosen, space, t, options.time, path)
    if len(chosen) > 1:
        raise Failure(f"{path} holds several tables, {', '.join(chosen)}: choose one with --states.")
    return _states(chosen[0], first, t, options, path)


def _times(array: NamedArray, options: argparse.Namespace, path: Path) -> tuple[Array, str | None]:
    if array.values.ndim != 1:
        raise Failure(f"{path}: the array {options.time!r} has shape {array.values.shape}; times have one axis.")
    return _counted(array.values if array.values.dtype.kind == "M" else array.values.astype(float), options)


def _counted(times: Any, options: argparse.Namespace) -> tuple[Array, str | None]:
    """Return times as numbers, and the unit in which dates were counted."""
    (numbers,), unit = as_numbers([times], options.time_unit)
    return numbers, unit


def _alike(values: Any, first: Any, name: str, path: Path) -> Any:
    if values.shape != first.shape:
        raise Failure(f"{path}: the array {name!r} has shape {values.shape}, not {first.shape} as the first.")
    return values


def _space_axes(
    array: NamedArray, arrays: dict[str, NamedArray], lines: set[str], n_times: int | None
) -> list[str] | None:
    """Return the arrays that hold coordinates of every axis but the time's; None where some axis has none."""
    if array.axes is not None:
        named = [axis for axis in array.axes if axis in lines]
        return named if len(named) == array.values.ndim - 1 else None
    lengths = list(array.values.shape)
    if n_times not in lengths:
        return None
    # Space first, then time: of two axes as long as the time, the last is its own.
    del lengths[len(lengths) - 1 - lengths[::-1].index(n_times)]
    found: list[str] = []
    for length in lengths:
        fitting = [
            name for name in arrays if name in lines and name not in found and len(arrays[name].values) == length
        ]
        if not fitting:
            return None
        found.append(fitting[0])
    return found


def _field(
    arrays: dict[str, NamedArray], chosen: list[str], space: list[str], t: Array, time: str, path: Path
) -> Series:
    points = tuple(arrays[name].values.astype(float).ravel() for name in space)
    wanted = (*(one.size for one in points), t.size)
    fields = []
    for name in chosen:
        array = arrays[name]
        values = array.values.astype(float)
        if array.axes is not None and set(array.axes) == {*space, time}:
            values = values.transpose([array.axes.index(axis) for axis in (*space, time)])
        elif values.shape != wanted and values.shape == (wanted[-1], *wanted[:-1]):
            values = np.moveaxis(values, 0, -1)
        if values.shape != wanted:
            raise Failure(
                f"{path}: the array {name!r} has shape {values.shape}; {' × '.join(space)} × {time} is {wanted}."
            )
        fields.append(values)
    return Series(fields[0] if len(fields) == 1 else np.stack(fields, axis=-1), t, None, list(chosen), points)


def _states(name: str, array: NamedArray, t: Array | None, options: argparse.Namespace, path: Path) -> Series:
    """Return a table in an array: rows are times."""
    values = array.values.astype(float)
    if values.ndim != 2 or (t is not None and t.size not in values.shape):
        raise Failure(
            f"{path}: the array {name!r} has shape {values.shape}. A table has two axes, one as long as the times; a "
            "field needs arrays with the coordinates of its other axes (--space)."
        )
    if t is not None and values.shape[0] != t.size:
        values = values.T
    return Series(
        values, (options.step or 1.0) if t is None else t, None, [f"{name}{j}" for j in range(values.shape[1])]
    )
