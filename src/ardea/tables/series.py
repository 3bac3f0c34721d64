"""Time series and fields from files: what `Discovery.fit` takes, with gaps where cells are empty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array, Index
from ardea.names import counted, nor_others
from ardea.tables.arrays import AS_POINTS, axes_of_field, numbered_as_points, on_grid, states_or_fields, told_axes
from ardea.tables.columns import FEWEST_IN_A_RUN, Columns, as_numbers, is_numeric, sign_of, texts_of
from ardea.tables.dates import (
    OF_DAY,
    as_dates,
    compact_dates,
    dates_by_order,
    in_zones,
    localized,
    name_zones,
    names_time,
    no_time,
    set_forward,
    time_of_day,
)
from ardea.tables.empties import Codes
from ardea.tables.endings import ending_of
from ardea.tables.notation import FEW
from ardea.tables.reading import open_table
from ardea.tables.table import (
    ARRAYS,
    BYTES_PER_NUMBER,
    DEFAULT_MEMORY,
    Table,
    TableError,
    all_of,
    bytes_of,
    read_arrays,
    shortened,
)

# Steps of a clock differ by no more than this share, which leaves room for times rounded to three digits of a step.
EVEN = 1e-3
# What is kept of a table larger than memory: 20,000 rows, of which no search needs more (a convention), in stretches
# that hold several windows of the weak form each.
STRETCH, MOST_STRETCHES = 400, 50
# A convention: of cells that are no times so many are shown.
MOST_SHOWN = 3
# Of two orders of day and month, the one without a step that is so many times the usual one is right (a convention).
LONG_STEPS = 10.0
HALF_DAY = np.timedelta64(12, "h")
SET_BACK = "Clocks are set back by an hour in {}, at the end of summer time, so that it comes twice."


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
    labels: tuple[str, ...] = ()  # what tells several series apart, of each

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
        if choice.inputs or choice.series or settings.get("zone"):
            raise ValueError("--inputs, --series and --zone are for tables (CSV, Parquet, NPY).")
        codes, arrays = Codes(settings.get("na", ())), read_arrays(path)
        found = states_or_fields(arrays, path, choice.time, choice.states, choice.space, codes)
        return Series(*found, remarks=[*codes.unmet(), *told_axes(arrays, found)])
    table, room = open_table(path, **settings), bytes_of(memory)
    return _field_from_table(table, choice, room) if choice.space else _from_table(table, choice, room, levels)


# Tables ---------------------------------------------------------------------------------------------------------------


def _from_table(table: Table, choice: Choice, memory: int, levels: dict[str, list[str]] | None) -> Series:
    single = ([] if one is None else [one] for one in (choice.time, choice.series))
    lists = (partial(table.columns, texts) for texts in (*single, choice.inputs, choice.states))
    clock, labels, inputs, states = all_of(*lists)
    time, label, apart = next(iter(clock), None), next(iter(labels), None), dict.fromkeys([*clock, *labels, *inputs])
    states = states or [name for name in table.names if name not in apart]
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
    times, said, zoned = (None, [], False) if time is None else _times_once(table, frame, time, label)
    if time is not None and label is None and whole:
        if rise(times[::-1]):
            numbers, times, said = numbers[::-1], times[::-1], [*said, "times descend: rows were turned around"]
        _require_order(table, times, time, zoned, columns=dict(zip(states, numbers.T, strict=False)))
    parts, runs = np.split(np.arange(len(numbers)), [end for end in ends if end < len(numbers)]), dict[str, Index]()
    if label is not None:
        runs, left_out = _grouped(frame[label], table, numbers, times, time or "", zoned, split)
        parts, said = [*runs.values()], [*said, *left_out]
    blocks = [numbers[part] for part in parts]
    x, u = ([block[:, part] for block in blocks] for part in (slice(split), slice(split, None)))
    t = None if times is None else [times[part] for part in parts]
    missing, of = (sum(int(count(block)) for block in x) for count in (lambda block: np.isnan(block).sum(), np.size))
    gaps = [f"{missing} of {of} samples are missing (empty cells, or what stands for them)"] if missing else []
    said += [f"times are put together of columns {clock[0]!r} and {clock[1]!r}"] if len(clock) == 2 else []
    remarks, doubts = [*table.remarks, *table.unmet(), *columns.remarks, *said, *gaps], columns.doubts()
    doubts += [] if label is None or times is None else [*numbered_as_points(label, runs, times)]
    doubts += [*_clocks(states, blocks[0]), *([] if zoned or t is None else [*_skipped_hours(t, time or "")][:1])]
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
        labels=tuple(runs),
    )


def _field_from_table(table: Table, choice: Choice, memory: int) -> Series:
    """Return a field whose rows are its samples, each with its time and the coordinates of its point."""
    if choice.time is None or choice.inputs or choice.series:
        raise ValueError("--space needs --time, and neither --inputs nor --series: other columns are fields.")
    (time,), axes, states = all_of(
        *(partial(table.columns, one) for one in ([choice.time], choice.space, choice.states))
    )
    states = states or [name for name in table.names if name not in (time, *axes)]
    if not states or {time, *axes} & set(states):
        raise ValueError("The fields must be at least one column, and none of them the time or a coordinate.")
    frame, _, whole = _sampled(table, [time, *axes, *states], memory)
    if not whole:
        raise ValueError(f"{table.path} is larger than --memory: fields are read as a whole.")
    numbers = (columns := Columns(table, [*axes, *states], categorical=())).read(frame[[*axes, *states]], optional=())
    times, said, zoned = times_of(table, frame, time)
    x, t, space = on_grid(table, dict(zip(columns.names, numbers.T, strict=True)), times, axes, states)
    remarks = [*table.remarks, *table.unmet(), *columns.remarks, *said]
    return Series(x, t, None, states, space, remarks=remarks, doubts=columns.doubts(), time=time, zoned=zoned)


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


def _runs(columns: dict[str, Array], times: NDArray[Any]) -> list[str]:
    """Return columns of few whole numbers within each of which times rise."""
    few = {name: np.unique(one) for name, one in columns.items() if np.all(one == np.round(one))}
    many = range(2, times.size // FEWEST_IN_A_RUN + 1)
    return [n for n, own in few.items() if own.size in many and all(rise(times[columns[n] == one]) for one in own)]


def _require_order(
    table: Table, times: NDArray[Any], name: str, zoned: bool, rows: Any = None, series: str = "", columns: Any = None
) -> None:
    """Refuse times that do not ascend, with the first line that is out of order, and all such lines if they are few."""
    rows = np.arange(times.size) if rows is None else rows
    latest = np.maximum.accumulate(times)
    late = np.flatnonzero(~(times[1:] > latest[:-1])) + 1
    if late.size:
        row, others = int(late[0]), nor_others(late.size - 1)
        clock = times.dtype.kind == "m"
        one, before = (str(np.datetime64(0, "us") + x)[11:19] if clock else x for x in (times[row], latest[row - 1]))
        (place,) = table.placed([(int(rows[row]), name, f"{one} does not come after {before}{others}")])
        if (zone := None if zoned else set_back(times)) is not None:
            raise TableError(table.path, [f"{place}. {SET_BACK.format(zone)}"], zone=zone)
        told = "Are these several runs? Then --series names the column that tells them apart. Else sort the rows"
        told = f"Sort the rows of series {series!r} by time" if series else told
        few = lines_of(table, rows[late].tolist(), times.size)
        for axis, points in axes_of_field(columns or {}, times):
            raise TableError(table.path, [f"{place}. {AS_POINTS.format(points, axis)}."], space=axis)
        raise TableError(
            table.path, [f"{place}. {told}, and average rows of one time."], lines=few, runs=_runs(columns or {}, times)
        )


def _skipped_hours(series: list[NDArray[Any]], name: str) -> Iterator[str]:
    """Tell of an hour without rows where clocks are set forward."""
    for times in series:
        if times.dtype.kind == "M" and (found := set_forward(times)) is not None:
            before, after = (str(one)[:19] for one in times[found[1] - 1 : found[1] + 1])
            yield (
                f"An hour is lacking in column {name!r} from {before} to {after}, where clocks are set forward in "
                f"{found[0]}: if times are local there, --zone {found[0]} counts them right."
            )


def _grouped(
    labels: Any, table: Table, numbers: Array, times: Any, time: str, zoned: bool, n_states: int
) -> tuple[dict[str, Index], list[str]]:
    """Return the rows of every series, by the texts that tell them apart, in the order of their first rows.

    Series without a sample, and rows without a text, are left out; and told.
    """
    codes, texts = texts_of(labels, table.empty)
    groups = {one: np.flatnonzero(codes == one) for one in dict.fromkeys(codes.tolist())}
    seen = {one: rows for one, rows in groups.items() if one >= 0 and np.isfinite(numbers[rows, :n_states]).any()}
    if not seen:
        raise ValueError(f"{table.path}: column {labels.name!r} tells no series with a sample apart.")
    if max(map(len, seen.values())) < 2:
        told = f"column {labels.name!r} makes every row a series: leave out --series, or name a column whose"
        raise ValueError(f"{table.path}: {told} texts repeat.")
    silent = [texts[one] for one in groups if one >= 0 and one not in seen]
    said = [f"series without a sample were left out: {shortened(silent)}"] if silent else []
    if -1 in groups:
        unnamed = counted(len(groups[-1]), "row")
        said.append(f"{unnamed} without a text in column {labels.name!r} belong to no series and were left out")
    for one, rows in seen.items() if times is not None else ():
        _require_order(table, times[rows], time, zoned, rows, texts[one])
    return {texts[one]: rows for one, rows in seen.items()}, said


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


# Times ----------------------------------------------------------------------------------------------------------------


def times_of(table: Table, frame: Any, name: str, label: str | None = None) -> tuple[NDArray[Any], list[str], bool]:
    """Return a column as times: numbers, or dates; what was inferred; and whether they are in UTC by their zones.

    Dates without a zone are of that of the table, if it has one, in every series that a label tells apart.
    """
    times, said, zoned = _times_as_written(table, frame, name)
    if table.zone is None or times.dtype.kind != "M":
        return times, said, zoned
    if zoned:
        raise ValueError(f"{table.path}: times of column {name!r} name their time zones: leave out --zone.")
    codes = np.zeros(times.size) if label is None else texts_of(frame[label], table.empty)[0]
    utc = times.copy()
    for rows in (codes == one for one in np.unique(codes)):
        utc[rows] = localized(times[rows], table.zone)
    read = f"times are counted in UTC, as those of {table.zone} ({str(times[0])[:19]} is {str(utc[0])[:19]} UTC)"
    return utc, [*said, read], True


def _times_once(table: Table, frame: Any, name: str, label: str | None) -> tuple[NDArray[Any], list[str], bool]:
    """Return a column as times as `times_of` does; refuse copies of rows, where times are in order without them."""
    found = times, _, zoned = times_of(table, frame, name, label)
    if _in_order(table, frame, times, zoned, label) is not None or not np.any(copies := frame.duplicated().to_numpy()):
        return found
    others = frame[~copies]
    zone = _in_order(table, others, times_of(table, others, name, label)[0], zoned, label)
    if zone is not None:
        rows = frame.index.to_numpy()[copies].tolist()
        few, others = lines_of(table, rows, len(frame)), f" and {counted(len(rows) - 1, 'other')}" * (len(rows) > 1)
        told = (
            f"this row{others} repeat{'s' * (not others)} what stands above, time and values"
            + f". {SET_BACK}" * bool(zone)
        )
        told = told.format(zone) + ". In pandas drop_duplicates() leaves such rows out." * (not few)
        raise TableError(table.path, table.placed([(rows[0], name, told)]), lines=few, zone=zone or None)
    return found


def _in_order(table: Table, frame: Any, times: NDArray[Any], zoned: bool, label: str | None) -> str | None:
    """Return "" where times of every series ascend, a zone whose clocks are set back where they do not; else None."""
    codes = np.zeros(times.size) if label is None else texts_of(frame[label], table.empty)[0]
    runs = [times[codes == one] for one in np.unique(codes)]
    zones = ["" if rise(run) or run.size < 2 else None if zoned else set_back(run) for run in runs]
    return None if None in zones else max(filter(None, zones), default="")


def _times_as_written(table: Table, frame: Any, name: str) -> tuple[NDArray[Any], list[str], bool]:
    column = frame[name]
    dates, order = _by_order(table, column)
    times = _as_times(column, table) if dates is None else dates
    bad = np.isnan(times) if times.dtype.kind == "f" else np.isnat(times)
    if bad.any():
        cells = [(row, name, no_time(str(cell))) for row, cell in column[bad].items()]
        more = [f"and {len(cells) - MOST_SHOWN} more of column {name!r}"] * (len(cells) > MOST_SHOWN)
        lines = lines_of(table, [row for row, _, _ in cells], len(column))
        raise TableError(table.path, [*table.placed(cells)[:MOST_SHOWN], *more], lines=lines)
    zoned, first = _zoned(column, table), column.iloc[0]
    in_zone = [f"times name their time zones and are counted in UTC ({first} is {times[0]!s:.19} UTC)"] * zoned
    if order:  # shown by a date that tells it
        days = [str(one)[:10] for one in times]
        shown = next((row for row, day in enumerate(days) if day[5:7] != day[8:10]), 0)
        read = f"column {name!r} was read as {order} ({column.iloc[shown]} is {days[shown]})"
        return times, [read, *in_zone], zoned
    if times.dtype.kind == "m":
        times, nights = _unbroken(times)
        many = f"day, past {counted(nights, 'midnight')}" if nights else "one day"
        return times, [f"column {name!r} was read as times of {many} ({first})"], False
    if times.dtype.kind == "f" and (unit := sign_of(str(first))):
        return times, [f"the unit {unit} in column {name!r} was left out ({first})"], False
    if times.dtype.kind == "M" and is_numeric(column):
        return times, [f"column {name!r} was read as dates ({first:.0f})"], False
    return times, in_zone, zoned


def _zoned(column: Any, table: Table) -> bool:
    """Whether times name their time zones: all of them or none."""
    if column.dtype.kind == "M" or is_numeric(column):
        return getattr(column.dtype, "tz", None) is not None
    return name_zones(texts_of(column, table.empty)[1], f"{table.path}, column {column.name!r}")


def _unbroken(clock: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return times of day, with a day more after each midnight, by which clocks fall far; and how many there are."""
    steps = np.diff(clock, prepend=clock[:1])
    back = steps < np.timedelta64(0)
    if not np.all(steps[back] <= -HALF_DAY):
        return clock, 0
    return clock + np.cumsum(back) * np.timedelta64(1, "D"), int(back.sum())


def _by_order(table: Table, column: Any) -> tuple[NDArray[Any] | None, str]:
    """Return texts such as 31/05/2024 as dates, and in which order they are; nothing where they are others.

    Of two orders that both suit the texts, dates must rise in one, or rise evenly.
    """
    if is_numeric(column) or column.dtype.kind == "M":
        return None, ""
    codes, texts = texts_of(column, table.empty)
    orders = dates_by_order(texts)
    dates = {order: np.append(one, np.datetime64("NaT"))[codes] for order, one in orders.items()}
    known = {order: one[~np.isnat(one)] for order, one in dates.items()}
    rising = [order for order, one in known.items() if rise(one)]
    if len(even := [order for order in rising if _even(known[order])]) == 1:
        rising = even
    steps = [np.diff(one) for one in known.values()]
    same = all(np.array_equal(steps[0], one) for one in steps)
    if len(orders) > 1 and len(rising) != 1 and not (rising and same):
        first, second = (f"{order} ({str(one[0])[:10]})" for order, one in orders.items())
        raise ValueError(
            f"{table.path}, column {column.name!r}: {texts[0]} may be {first} or {second}, and no other date decides. "
            "Write dates as 2024-05-31."
        )
    order = next(iter(rising or orders), "")
    return dates.get(order), order


def _even(times: NDArray[Any]) -> bool:
    """Return whether no step is much longer than the usual one."""
    steps = np.diff(times).astype(float)
    return bool(steps.max() <= LONG_STEPS * np.median(steps))


def _as_times(column: Any, table: Table) -> NDArray[Any]:
    """Return numbers or dates, nothing of either where a cell is neither."""
    import pandas as pd

    if column.dtype.kind == "M":
        return np.asarray(pd.to_datetime(column, utc=True).dt.tz_localize(None))
    if is_numeric(column):
        numbers = column.to_numpy(dtype=float)
        dates = None if (numbers % 1 > 0).any() else compact_dates(numbers)
        return numbers if dates is None else dates
    codes, texts = texts_of(column, table.empty)
    if texts and all(map(OF_DAY.fullmatch, texts)):
        return np.array([*map(time_of_day, texts), "NaT"], dtype="m8[us]")[codes]
    if len(units := {sign_of(text) for text in texts}) == 1 and "" not in units:
        return as_numbers(column, table.decimal or ".", table.empty, *units)[0]
    dates = as_dates([*texts, ""])[codes]
    mostly = np.isnat(dates).sum() <= len(dates) / 2
    return dates if mostly else as_numbers(column, table.decimal or ".", table.empty)[0]


def lines_of(table: Table, rows: list[int], n_rows: int) -> list[int]:
    """Return the lines of rows that are in the way of all others, if they are few."""
    few = set(rows) if len(rows) <= max(1, FEW * n_rows) else ()
    return [line for number, (line, _) in enumerate(table.numbered_rows()) if number in few] if few else []


def rise(times: NDArray[Any]) -> bool:
    """Whether every time is later than the one before."""
    return times.size > 1 and bool(np.all(times[1:] > times[:-1]))


def set_back(times: NDArray[Any]) -> str | None:
    """Return a zone whose clocks are set back wherever times go back, so that they rise in UTC."""
    return next((zone for zone, utc in in_zones(times) if rise(utc)), None)
