"""Times that are dates or durations, as numbers in a unit that suits the step between them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
TimeUnit = Literal["s", "min", "h", "d"]

SECONDS: dict[str, float] = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
IN_WORDS: dict[str, str] = {"s": "second", "min": "minute", "h": "hour", "d": "day"}
# A convention: a unit up to this many times the step is still short enough; hourly rows that come a little early
# are hourly.
LARGEST_RATIO = 1.1


def calendar(t: Any) -> NDArray[Any] | None:
    """Return dates as datetime64 (in UTC) and durations as timedelta64; None where t is neither.

    Taken are what pandas, polars, xarray and NumPy hold, and lists of `datetime`, `date` or `timedelta`.

    Examples
    --------
    >>> from datetime import date
    >>> calendar([date(2024, 1, 1), date(2024, 1, 3)])
    array(['2024-01-01T00:00:00', '2024-01-03T00:00:00'], dtype='datetime64[s]')
    >>> calendar([0.0, 0.5]) is None
    True
    """
    given = np.asarray(t)
    if given.dtype.kind in "mM" and isinstance(t, np.ma.MaskedArray):
        given = np.where(t.mask, np.array("NaT", dtype=given.dtype), given)
    if given.dtype.kind in "mM":
        return given.astype(np.promote_types(given.dtype, f"{given.dtype.kind}8[s]"))
    first = given.flat[0] if given.dtype.kind == "O" and given.size else None
    if isinstance(first, date):
        return calendar(np.array([_without_zone(one) for one in given.flat], dtype="datetime64").reshape(given.shape))
    if isinstance(first, timedelta):
        return calendar(given.astype("timedelta64[us]"))
    return None


def _without_zone(one: Any) -> Any:
    aware = isinstance(one, datetime) and one.tzinfo is not None
    return one.astimezone(UTC).replace(tzinfo=None) if aware else one


def fitting_unit(series: Sequence[NDArray[Any]]) -> TimeUnit:
    """Return the longest of s, min, h and d that is not longer than the median step of all series.

    Examples
    --------
    >>> fitting_unit([np.array(["2024-01-01T00", "2024-01-01T06", "2024-01-01T12"], dtype="M8[s]")])
    'h'
    """
    steps = [np.atleast_1d(one) if one.ndim == 0 else np.diff(one) for one in series]
    seconds = np.concatenate([step / np.timedelta64(1, "s") for step in steps])
    step = float(np.median(seconds[np.isfinite(seconds)])) if np.isfinite(seconds).any() else 1.0
    short: list[TimeUnit] = [unit for unit in get_args(TimeUnit) if SECONDS[unit] <= LARGEST_RATIO * step]
    return short[-1] if short else "s"


def dates_to_times(dates: NDArray[Any], unit: str) -> Array:
    """Return dates as numbers from the first of them; durations as they are.

    Examples
    --------
    >>> dates_to_times(np.array(["2024-01-01", "2024-01-03"], dtype="datetime64[us]"), "h")
    array([ 0., 48.])
    """
    known = dates[~np.isnat(dates)]
    origin = known[0] if dates.dtype.kind == "M" and known.size else np.zeros((), dates.dtype)
    return np.asarray((dates - origin) / np.timedelta64(1, "s") / SECONDS[unit], dtype=float)


def per_unit(unit: str | None) -> str:
    """Return how a rate is read: "per day"; nothing where the unit is not known."""
    return f"per {IN_WORDS[unit]}" if unit in IN_WORDS else ""


def as_numbers(series: Sequence[Any], unit: str | None = None) -> tuple[list[Any], str | None]:
    """Return the times of several series as numbers, and their unit where it is known: dates, durations, or told.

    Parameters
    ----------
    series : sequence
        Times of every series, or the step between them.
    unit : {"s", "min", "h", "d"}, optional
        Unit to use, or that numbers are in. By default the longest that is not longer than the median step of dates.

    Examples
    --------
    >>> as_numbers([np.array(["2024-01-01", "2024-01-03"], dtype="datetime64[D]")])
    ([array([0., 2.])], 'd')
    >>> as_numbers([[0.0, 0.5]])
    ([[0.0, 0.5]], None)
    """
    if unit is not None and unit not in SECONDS:
        raise ValueError(f"time_unit={unit!r} is not known: choose {', '.join(map(repr, SECONDS))}.")
    found = [calendar(t) for t in series]
    dated = [one for one in found if one is not None]
    if not dated:
        return list(series), unit
    if len(dated) < len(found):
        raise ValueError("Some series have dates as times and others numbers: give one kind for all.")
    if any(one.dtype.kind == "M" and one.ndim == 0 for one in dated):
        raise ValueError("t is one date: give the dates of all rows, or the step between them as a duration.")
    chosen = fitting_unit(dated) if unit is None else unit
    return [dates_to_times(one, chosen) for one in dated], chosen
