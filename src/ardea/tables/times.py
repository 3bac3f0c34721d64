"""A column of a table as times: numbers, dates in any order of day and month, or times of a day."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.names import counted
from ardea.tables.columns import FEW, as_numbers, is_numeric, sign_of, texts_of
from ardea.tables.dates import (
    OF_DAY,
    as_dates,
    compact_dates,
    dates_by_order,
    localized,
    name_zones,
    rise,
    time_of_day,
)
from ardea.tables.table import Table, TableError

# A convention: of cells that are no times so many are shown.
MOST_SHOWN = 3
# Of two orders of day and month, the one without a step that is so many times the usual one is right (a convention).
LONG_STEPS = 10.0
A_DATE = "a date such as 2024-05-31 or 2024-05-31T12:00"
HALF_DAY = np.timedelta64(12, "h")


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


def _times_as_written(table: Table, frame: Any, name: str) -> tuple[NDArray[Any], list[str], bool]:
    column = frame[name]
    dates, order = _by_order(table, column)
    times = _as_times(column, table) if dates is None else dates
    bad = np.isnan(times) if times.dtype.kind == "f" else np.isnat(times)
    if bad.any():
        cells = [(row, name, _no_time(str(cell))) for row, cell in column[bad].items()]
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


def _no_time(cell: str) -> str:
    """Return why a cell is no time, with what to do."""
    if cell.strip() in ("", "nan", "None", "NaT"):
        return "is empty, and its row is not"
    if re.fullmatch(r"\d{1,2}([/.-])\d{1,2}\1\d{2}(\s.*)?", cell):
        return f"{cell!r} has a year of two digits: write {A_DATE}"
    if OF_DAY.fullmatch(cell):
        return f"{cell!r} is a time of day, and others are none: write {A_DATE}, or a number of seconds"
    if re.fullmatch(r"[-+.\d]+(e[-+]?\d+)?\s*[a-zA-Zµ]+", cell):
        return f"{cell!r} has a unit: write the number alone"
    if re.fullmatch(r"[-+]?\d*,\d+", cell):
        return f"{cell!r} has a decimal comma: write a point, or say that all numbers have one with --decimal ,"
    return f"{cell!r} is neither a number nor {A_DATE}"


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
