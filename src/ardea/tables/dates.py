"""Dates and times of day as texts and numbers write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array

DAY_FIRST = re.compile(r"[0-3]?[0-9]([./])[0-3]?[0-9]\1(?:[12][0-9])?[0-9]{2}(?:[ T][0-9:.]+(?: ?[AaPp]\.?[Mm]\.?)?)?$")
# 2024/5/31, 7:05 and 1:05 PM, which are not ISO 8601.
YEAR_FIRST = re.compile(r"([0-9]{4})[/.]([0-9]{1,2})[/.]([0-9]{1,2})(?![0-9])")
CLOCK = re.compile(r"[ T]+([0-9]{1,2}):([0-9]{2}[0-9:.]*) ?(?:([AaPp])\.?[Mm]\.?)?$")
OF_DAY = re.compile(r"\d{1,2}:\d\d(:\d\d(\.\d*)?)?(?: ?[AaPp]\.?[Mm]\.?)?")
# The end of a time that names its zone.
ZONED = re.compile(r".*\d[Tt ]?\d.*:.*(?:[Zz]|[+-]\d\d(?::?\d\d)?)")
# What columns of times are called.
TIME_NAMES = re.compile("t|times?|timestamps?|date|datetime|days?|hours?|years?|months?|seconds?|zeit|datum")
A_DATE = "a date such as 2024-05-31 or 2024-05-31T12:00"
WRITTEN_DATE = re.compile(r"([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})((?:[ T].+)?)")
# Zones by whose clocks those of most people change (a convention; others change at the same local times).
CHANGING: tuple[str, ...] = ("Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "America/Santiago")
CHANGING += ("Australia/Sydney", "Pacific/Auckland")
HOUR = np.timedelta64(3600, "s")
# Longer steps than this share of all are gaps (a convention).
USUAL_STEPS = 0.99


def _iso(text: str) -> str:
    """Return a date as ISO 8601 writes it; other texts as they are.

    Examples
    --------
    >>> _iso("2024/5/31 1:05 PM"), _iso("2024-05-31T07:05:00.123456")
    ('2024-05-31T13:05', '2024-05-31T07:05:00.123456')
    """
    text = YEAR_FIRST.sub(lambda found: "{}-{:0>2}-{:0>2}".format(*found.groups()), text, count=1)
    clock = CLOCK.search(text)
    if clock is None:
        return text
    hour, half = int(clock[1]), (clock[3] or "").lower()
    hour = hour % 12 + 12 * (half == "p") if half else hour
    return f"{text[: clock.start()]}T{hour:02}:{clock[2]}"


def as_dates(texts: Sequence[str]) -> NDArray[Any]:
    """Return texts as dates in UTC, not a time where they are none."""
    import pandas as pd

    cells = pd.Series([*map(_iso, texts)], dtype="string")
    cells = cells.where(cells.str.match(r"[0-9]{4}(?:-|[01][0-9][0-3][0-9]$|[01][0-9][0-3][0-9]T)"))
    dates = pd.to_datetime(cells, format="ISO8601", utc=True, errors="coerce")
    found: NDArray[Any] = dates.dt.tz_localize(None).to_numpy()
    return found


def name_zones(texts: Sequence[str], where: str) -> bool:
    """Whether times name their time zones: all of them or none."""
    zoned = [bool(ZONED.fullmatch(text)) for text in texts]
    if any(zoned) and not all(zoned):
        with_zone, without = texts[zoned.index(True)], texts[zoned.index(False)]
        raise ValueError(
            f"{where}: {with_zone} names its time zone and {without} does not, so that their distance is not known. "
            "Write all times with a zone, or all without."
        )
    return any(zoned)


def have_zones(series: Sequence[Any]) -> bool:
    """Whether the dates of several series name their time zones: all of them or none."""
    zoned: set[bool] = set()
    for t in series:
        kind = getattr(t, "dtype", None)
        if kind is not None and str(kind) != "object":  # pandas calls the zone of a column tz, polars time_zone
            zoned.add(getattr(kind, "tz", getattr(kind, "time_zone", None)) is not None)
            continue
        zoned |= {one.tzinfo is not None for one in np.ravel(t) if isinstance(one, datetime) and one == one}
    if len(zoned) > 1:
        raise ValueError(
            "Some times name their time zones and others do not, so that their distance is not known. Give all with a "
            "zone, or all without."
        )
    return True in zoned


def in_utc(times: Any) -> Any:
    """Return dates in UTC as pandas holds those that name their zone; of several series a list."""
    import pandas as pd

    return [*map(in_utc, times)] if isinstance(times, list) else pd.DatetimeIndex(times, tz="UTC")


def compact_dates(values: Array) -> NDArray[Any] | None:
    """Return whole numbers such as 20240331 as dates, None where some number is none."""
    known = ~np.isnan(values)
    # Years 1700 to 2261: what measured series bear (a convention), and pandas counts in nanoseconds.
    if not known.any() or not np.all((values[known] >= 17000101) & (values[known] <= 22611231)):
        return None
    dates = np.full(len(values), np.datetime64("NaT"), dtype="M8[s]")
    dates[known] = as_dates([f"{value:.9g}" for value in values[known].tolist()])
    return None if np.isnat(dates[known]).any() else dates


def names_time(name: str) -> bool:
    """Whether a column is called as times are.

    Examples
    --------
    >>> names_time("Date (UTC)"), names_time("temperature")
    (True, False)
    """
    words = re.findall(r"[a-z]+", name.lower())
    return bool(words and TIME_NAMES.fullmatch(words[0]))


def looks_like_dates(values: Array) -> bool:
    """Whether all are numbers such as 20240331, or 2024033105 with the hour."""
    days, hours = np.divmod(values, 100)
    return compact_dates(values) is not None or (bool(np.all(hours < 24)) and compact_dates(days) is not None)


def dates_by_order(texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return texts such as 31/05/2024 as dates, by the order of day and month; only those orders that suit them.

    If most of the texts are such dates, the others are none in any order.

    Examples
    --------
    >>> list(dates_by_order(["03/01/2021", "13/01/2021"]))
    ['day, month, year']
    >>> len(dates_by_order(["03.01.2021 12:30"]))
    2
    """
    matches = [WRITTEN_DATE.fullmatch(text) for text in texts]
    written = np.array([match is not None for match in matches], dtype=bool)
    parts = [match.groups(default="") for match in matches if match]
    orders = {
        "day, month, year": [f"{year}-{b:0>2}-{a:0>2}{time}" for a, b, year, time in parts],
        "month, day, year": [f"{year}-{a:0>2}-{b:0>2}{time}" for a, b, year, time in parts],
    }
    found = {}
    for order, dates in ((order, as_dates(some)) for order, some in orders.items() if 2 * len(parts) > len(texts)):
        if not np.isnat(dates).any():
            found[order] = np.full(len(texts), np.datetime64("NaT"), dtype=dates.dtype)
            found[order][written] = dates
    return found


def time_of_day(text: str) -> np.timedelta64:
    """Return a time of day as what has passed of it.

    Examples
    --------
    >>> time_of_day("7:05:00.5") - time_of_day("07:05")
    np.timedelta64(500000,'us')
    >>> str(time_of_day("12:05 AM")), str(time_of_day("1:05 PM")) == str(time_of_day("13:05"))
    ('300000000 microseconds', True)
    """
    clock, half = text.rstrip("AaPpMm. "), re.search("[AaPp]", text)
    hours, minutes, *seconds = clock.split(":")
    hours = str(int(hours) % 12 + 12 * (half[0] in "Pp")) if half else hours
    since = 60 * (60 * int(hours) + int(minutes)) + float(seconds[0] if seconds else 0)
    return np.timedelta64(round(1e6 * since), "us")


def no_time(cell: str) -> str:
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


def localized(times: NDArray[Any], zone: str) -> NDArray[Any]:
    """Return local times of a zone in UTC; of an hour that comes twice, what stands after a step back is the second.

    Raises ValueError where a time does not exist, since clocks were set forward there.
    """
    import pandas as pd

    if times.size > 1 and times[0] > times[-1]:
        return localized(times[::-1], zone)[::-1]
    days = np.cumsum(np.diff(times.astype("M8[D]"), prepend=times[:1].astype("M8[D]")) != np.timedelta64(0))
    fell = np.cumsum(np.diff(times, prepend=times[:1] - HOUR) <= np.timedelta64(0))
    again = fell > np.concatenate([[0], fell])[np.searchsorted(days, days)]  # since the day began
    local = pd.DatetimeIndex(times).tz_localize(zone, ambiguous=~again, nonexistent="NaT")
    if np.any(none := np.asarray(local.isna())):
        raise ValueError(
            f"{str(times[np.argmax(none)])[:19]} did not exist in {zone}, where clocks were set forward: the times are "
            "of another zone, or of clocks that never change (Etc/GMT-1 is an hour before UTC all year)."
        )
    return np.asarray(local.tz_convert("UTC").tz_localize(None))


def in_zones(times: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield zones whose clocks change, with times in UTC if they are local times there."""
    for zone in CHANGING if times.dtype.kind == "M" and times.size > 1 else ():
        with suppress(ValueError):
            yield zone, localized(times, zone)


def set_forward(times: NDArray[Any]) -> tuple[str, int] | None:
    """Return a zone whose clocks are set forward where rising times skip an hour, and the first row behind such a gap.

    Steps there are longer than usual ones, of two hours at most, by half an hour or more, and are not if an hour less.
    """
    steps = np.diff(times)
    if times.dtype.kind == "M" and steps.size > 2 and steps.max() > HOUR:
        for zone, utc in in_zones(times):
            shorter = np.diff(utc) == steps - HOUR
            usual = np.sort(steps[~shorter])[int(USUAL_STEPS * np.sum(~shorter)) :][:1]
            seen = shorter.any() and np.all(usual <= 2 * HOUR) and usual.size
            if seen and np.all(np.abs(steps[shorter] - usual - 0.75 * HOUR) <= 0.25 * HOUR):
                return zone, int(np.argmax(shorter)) + 1
    return None
