"""Time series and fields from files: what `Discovery.fit` takes, with gaps where cells are empty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array, Index
from ardea.names import counted, nor_others
from ardea.tables.columns import Columns, texts_of
from ardea.tables.dates import OF_DAY, names_time, rise, set_back, set_forward
from ardea.tables.reading import ending_of, open_table
from ardea.tables.table import (
    ARRAYS,
    BYTES_PER_NUMBER,
    DEFAULT_MEMORY,
    NamedArray,
    Table,
    TableError,
    all_named,
    bytes_of,
    read_arrays,
    shortened,
    unknown,
)
from ardea.tables.times import lines_of, times_of

# Steps of a clock differ by no more than this share, which leaves room for times rounded to three digits of a step.
EVEN = 1e-3
# What is kept of a table larger than memory: 20,000 rows, of which no search needs more (a convention), in stretches
# that hold several windows of the weak form each.
STRETCH, MOST_STRETCHES = 400, 50


@dataclass(frozen=True)
class Choice:
    """Which columns or arrays of a file are what: names, numbers, or lists of them."""

    time: str | None = None  # or a date and a time of day, with a comma between
    states: Sequence[str] = ()  # or fields; by default all others
    inputs: Sequence[str] = ()
    series: str | None = None  # whose value tells several series apart
    space: Sequence[str] = ()  # coordinates of the axes of a field


@dataclass(frozen=True)
class Series:
    """States or fields with their times; lists of arrays where there are several series."""

    x: Any  # states or field
    t: Any  # times, numbers or dates; or None
    u: Any  # inputs, or None
    names: list[str]  # of states (or fields), then of inputs
    space: tuple[Array, ...] | None = None  # coordinates of the axes of a field
    levels: dict[str, list[str]] = field(default_factory=dict)  # the texts of inputs that were encoded
    remarks: list[str] = field(default_factory=list)  # how the file was read
    doubts: list[str] = field(default_factory=list)  # and what of it gives reason for doubt
    time: str = ""  # the column of times
    zoned: bool = False  # whether they name their time zones: they are in UTC here

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        first = self.u[0] if isinstance(self.u, list) else self.u
        return 0 if first is None else int(first.shape[1])

    def require_samples(self, path: Path) -> None:
        """Refuse states that have no two samples, by name."""
        n = len(self.names) - self.n_inputs
        counts = sum(np.isfinite(one).sum(axis=0) for one in (self.x if isinstance(self.x, list) else [self.x]))
        few = {name: int(count) for name, count in zip(self.names[:n], counts, strict=True) if count < 2}
        if few:
            told = [f"column {name!r} has {counted(found, 'sample')}: no state" for name, found in few.items()]
            raise TableError(path, told, few, [name for name in self.names[:n] if name not in few])

    def described(self) -> str:
        """Return what was read, in one line."""
        states = self.names[: len(self.names) - self.n_inputs]
        shown = shortened(states, 8)
        if self.space is not None:
            grid = " × ".join(str(points.size) for points in self.space)
            return f"field {shown} on {grid} points at {np.size(self.t)} times"
        series = self.x if isinstance(self.x, list) else [self.x]
        text = f"{counted(sum(map(len, series)), 'row')} of {counted(len(states), 'state')} ({shown})"
        text += f", {self.n_inputs} input{'s' * (self.n_inputs > 1)}" if self.n_inputs else ""
        return text + (f" in {len(series)} series" if len(series) > 1 else "")


def read_series(
    path: Path,
    choice: Choice,
    *,
    memory: int | str = DEFAULT_MEMORY,
    levels: dict[str, list[str]] | None = None,
    **settings: Any,
) -> Series:
    """Read a time series or a field; `levels` are texts as encoded before, `settings` those of `open_table`."""
    if ending_of(path) in ARRAYS:
        return _from_arrays(read_arrays(path), path, choice)
    if choice.space:
        raise ValueError("--space is for fields in NPZ, NetCDF or Zarr files.")
    return _from_table(open_table(path, **settings), choice, bytes_of(memory), levels)


# Tables ---------------------------------------------------------------------------------------------------------------


def _from_table(table: Table, choice: Choice, memory: int, levels: dict[str, list[str]] | None) -> Series:
    inputs = table.columns(choice.inputs)
    clock = [] if choice.time is None else table.columns([choice.time])
    time, label = clock[0] if clock else None, None if choice.series is None else table.column(choice.series)
    apart = dict.fromkeys([*clock, *(one for one in (label,) if one is not None), *inputs])
    states = table.columns(choice.states) or [name for name in table.names if name not in apart]
    if not states or apart.keys() & set(states):
        raise ValueError("The states must be at least one column, and none of them the time, the series or an input.")
    frame, ends, whole = _sampled(table, list(dict.fromkeys([*states, *inputs, *apart])), memory)
    if time is not None:
        frame = _with_one_time(_without_end(frame, table), table, clock)
    if not whole and (time is None or label is not None):
        raise ValueError(f"{table.path} is larger than --memory: name its times with --time, and give one series.")
    columns = Columns(table, [*states, *inputs], categorical=(), levels=levels, if_text=inputs)
    try:
        numbers = columns.read(frame[[*states, *inputs]], optional=() if choice.states else states)
    except TableError as error:
        error.clocks = tuple(one for one in error.clocks if time and _make_one_time(frame, table, time, one))
        raise
    states = [name for name in states if name in columns.used]
    if not states:
        raise TableError(table.path, ["every column that could be a state is empty"])
    split = sum(len(columns.names_of(name)) for name in states)
    times: Any
    times, said, zoned = (None, [], False) if time is None else times_of(table, frame, time, label)
    if time is not None and label is None and whole:
        if rise(times[::-1]):
            numbers, times, said = numbers[::-1], times[::-1], [*said, "times descend: rows were turned around"]
        _require_order(table, times, time)
    parts = np.split(np.arange(len(numbers)), [end for end in ends if end < len(numbers)])
    if label is not None:
        parts, left_out = _grouped(frame[label], table, numbers, times, time or "", split)
        said = [*said, *left_out]
    blocks = [numbers[part] for part in parts]
    x, u = ([block[:, part] for block in blocks] for part in (slice(split), slice(split, None)))
    t = None if times is None else [times[part] for part in parts]
    missing, of = (sum(int(count(block)) for block in x) for count in (lambda block: np.isnan(block).sum(), np.size))
    gaps = [f"{missing} of {of} samples are missing (empty cells, or what stands for them)"] if missing else []
    said += [f"times are put together of columns {clock[0]!r} and {clock[1]!r}"] if len(clock) == 2 else []
    remarks, doubts = [*table.remarks, *table.unmet(), *columns.remarks, *said, *gaps], columns.doubts()
    doubts += [] if time else [*_clocks(states, blocks[0])]
    doubts += [] if zoned or t is None else [*_skipped_hours(t, time or "")][:1]
    alone = whole and label is None
    return Series(
        x[0] if alone else x,
        t[0] if alone and t else t,
        None if not inputs else u[0] if alone else u,
        columns.names,
        levels=columns.levels,
        remarks=remarks,
        doubts=doubts,
        time=time or "",
        zoned=zoned,
    )


def _make_one_time(frame: Any, table: Table, *columns: str) -> bool:
    """Whether one of two columns holds times of day and the other does not."""
    texts = [texts_of(frame[name], table.empty)[1] for name in columns]
    return sum(all(map(OF_DAY.fullmatch, one)) for one in texts) == 1


def _with_one_time(frame: Any, table: Table, clock: list[str]) -> Any:
    """Return a frame whose first column of times holds the time of day of a second one as well."""
    if len(clock) == 1:
        return frame
    if len(clock) > 2:
        raise ValueError(f"{table.path}: a time is one column, or a date and a time of day: not {', '.join(clock)}.")
    cells = [(codes, [*texts, ""]) for codes, texts in (texts_of(frame[name], table.empty) for name in clock)]
    cells.sort(key=lambda one: all(map(OF_DAY.fullmatch, one[1][:-1])))  # the time of day comes second
    (days, dates), (times, hours) = cells
    texts = [f"{dates[day]} {hours[hour]}".strip() for day, hour in zip(days, times, strict=True)]
    return frame.assign(**{clock[0]: np.array(texts, dtype=object)})


def _without_end(frame: Any, table: Table) -> Any:
    """Return a frame without the rows at its end in which nothing stands, as spreadsheets write them."""
    filled = ~(frame.isna() | frame.isin(list(table.empty))).all(axis=1).to_numpy()
    return frame.iloc[: int(np.flatnonzero(filled).max(initial=-1)) + 1]


def _require_order(table: Table, times: NDArray[Any], name: str, rows: Any = None, series: str = "") -> None:
    """Refuse times that do not ascend, with the first line that is out of order, and all such lines if they are few."""
    rows = np.arange(times.size) if rows is None else rows
    latest = np.maximum.accumulate(times)
    late = np.flatnonzero(~(times[1:] > latest[:-1])) + 1
    if late.size:
        row, others = int(late[0]), nor_others(late.size - 1)
        clock = times.dtype.kind == "m"
        one, before = (str(np.datetime64(0, "us") + x)[11:19] if clock else x for x in (times[row], latest[row - 1]))
        (place,) = table.placed([(int(rows[row]), name, f"{one} does not come after {before}{others}")])
        if (zone := set_back(times)) is not None:
            told = f"Clocks are set back by an hour there in {zone}, at the end of summer time, so that it comes twice."
            raise TableError(table.path, [f"{place}. {told}"], zone=zone)
        told = "Are these several runs? Then --series names the column that tells them apart. Else sort the rows"
        told = f"Sort the rows of series {series!r} by time" if series else told
        few = lines_of(table, rows[late].tolist(), times.size)
        raise TableError(table.path, [f"{place}. {told}, and average rows of one time."], lines=few)


def _skipped_hours(series: list[NDArray[Any]], name: str) -> Iterator[str]:
    """Tell of an hour without rows where clocks are set forward."""
    for times in series:
        if (found := set_forward(times)) is not None:
            before, after = (str(one)[:19] for one in times[found[1] - 1 : found[1] + 1])
            yield (
                f"An hour is lacking in column {name!r} from {before} to {after}, where clocks are set forward in "
                f"{found[0]}: if times are local there, --zone {found[0]} counts them right."
            )


def _grouped(
    labels: Any, table: Table, numbers: Array, times: Any, time: str, n_states: int
) -> tuple[list[Index], list[str]]:
    """Return the rows of every series, by the texts that tell them apart, in the order of their first rows.

    Series without a sample, and rows without a text, are left out; and told.
    """
    codes, texts = texts_of(labels, table.empty)
    groups = {one: np.flatnonzero(codes == one) for one in dict.fromkeys(codes.tolist())}
    seen = {one: rows for one, rows in groups.items() if one >= 0 and np.isfinite(numbers[rows, :n_states]).any()}
    if not seen:
        raise ValueError(f"{table.path}: column {labels.name!r} tells no series with a sample apart.")
    if max(map(len, seen.values())) < 2:
        told = (
            f"column {labels.name!r} makes every row a series: leave out --series, or name a column whose texts repeat"
        )
        raise ValueError(f"{table.path}: {told}.")
    silent = [texts[one] for one in groups if one >= 0 and one not in seen]
    said = [f"series without a sample were left out: {shortened(silent)}"] if silent else []
    if -1 in groups:
        unnamed = counted(len(groups[-1]), "row")
        said.append(f"{unnamed} without a text in column {labels.name!r} belong to no series and were left out")
    for one, rows in seen.items() if times is not None else ():
        _require_order(table, times[rows], time, rows, texts[one])
    return list(seen.values()), said


def _sampled(table: Table, used: list[str], memory: int) -> tuple[Any, list[int], bool]:
    """Return all rows of a table, or stretches spread evenly over one larger than memory; where they end; if all.

    The index of the frame are the numbers of its rows.
    """
    import pandas as pd

    frames: list[Any] = []
    kept: list[Any] = []
    start, number, stride, whole = 0, 0, 1, True
    rows = max(1, int(memory / 2 // (table.bytes_per_row + BYTES_PER_NUMBER * len(used))))
    for frame in table.frames(min(rows, 100 * STRETCH), used):
        frame.index = pd.RangeIndex(start, start + len(frame))
        frames += [frame] if whole else []
        for first in range(0, len(frame), STRETCH):
            if number % stride == 0:
                kept.append(frame.iloc[first : first + STRETCH])
            number += 1
            if len(kept) > MOST_STRETCHES:
                kept, stride = kept[::2], 2 * stride
        start += len(frame)
        if start * BYTES_PER_NUMBER * len(used) > memory:
            frames, whole = [], False
    if not start:
        raise ValueError(f"{table.path} has no rows.")
    ends = [] if whole else np.cumsum([*map(len, kept[:-1])], dtype=int).tolist()
    return pd.concat(frames if whole else kept), ends, whole


def _clocks(states: list[str], x: Array) -> Iterator[str]:
    """Tell of states that rise from row to row as times do: evenly, or under a name for times."""
    for name, steps in zip(states, np.diff(x.T), strict=False):
        rises = steps.size > 1 and np.all(steps > 0)
        if rises and (np.ptp(steps) <= EVEN * steps.mean() or names_time(name)):
            yield f"column {name!r} rises strictly: did you mean --time {name!r}?"


# Arrays ---------------------------------------------------------------------------------------------------------------


def _from_arrays(arrays: dict[str, NamedArray], path: Path, choice: Choice) -> Series:
    """Return the states or fields that are chosen."""
    if choice.inputs or choice.series:
        raise ValueError("--inputs and --series are for tables (CSV, Parquet, NPY).")
    where = f"{path} has no array"
    if choice.time is not None and choice.time not in arrays:
        raise unknown(choice.time, arrays, where)
    t = None if choice.time is None else _array_times(arrays[choice.time], choice.time, path)
    states, axes = (all_named(names, list(arrays), where) for names in (choice.states, choice.space))
    lines = [name for name, one in arrays.items() if one.values.ndim == 1 and one.values.dtype.kind in "fiu"]
    wide = [name for name, one in arrays.items() if one.values.ndim > 1 and one.values.dtype.kind in "fiuc"]
    chosen = states or wide or [name for name in lines if name != choice.time]
    if not chosen:
        raise ValueError(f"{path} holds no array of numbers but the time.")
    first = arrays[chosen[0]]
    if first.values.ndim == 1:
        shapes = {name: arrays[name].values.shape for name in chosen}
        if len(set(shapes.values())) > 1:
            raise ValueError(f"{path}: the arrays have different shapes: {shapes}. Choose with --states.")
        return Series(np.column_stack([arrays[name].values for name in chosen]).astype(float), t, None, list(chosen))
    space = axes or _space_axes(first, arrays, [name for name in lines if name != choice.time], t)
    if space and t is not None:
        return _field(arrays, chosen, space, t, str(choice.time), path)
    if len(chosen) > 1:
        raise ValueError(f"{path} holds several tables, {', '.join(chosen)}: choose one with --states.")
    return _states(chosen[0], first, t, path)


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


def _field(arrays: dict[str, NamedArray], chosen: list[str], space: list[str], t: Any, time: str, path: Path) -> Series:
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
    return Series(fields[0] if len(fields) == 1 else np.stack(fields, axis=-1), t, None, list(chosen), points)


def _states(name: str, array: NamedArray, t: Any, path: Path) -> Series:
    """Return a table in an array: rows are times."""
    values = np.asarray(array.values).astype(float)
    if values.ndim != 2 or (t is not None and t.size not in values.shape):
        raise ValueError(
            f"{path}: the array {name!r} has shape {values.shape}. A table has two axes, one as long as the times; a "
            "field needs arrays with the coordinates of its other axes (--space)."
        )
    if t is not None and values.shape[0] != t.size:
        values = values.T
    return Series(values, t, None, [f"{name}{j}" for j in range(values.shape[1])])
