"""Times as numbers: dates counted in a unit from the first of them, and numbers told as dates again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.tables.dates import have_zones

# What a date in UTC ends in.
IN_UTC = "+00:00"
# Units of time in which dates are counted, and how a rate is read in them.
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
IN_WORDS = {"s": "second", "min": "minute", "h": "hour", "d": "day"}
# A convention: a unit up to this many times the step is still short enough; hourly rows that come a little early
# are hourly.
LARGEST_RATIO = 1.1
# A time in a message, or two.
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
TIMES = re.compile(rf"\bt = ({NUMBER}(?: and {NUMBER})?)")


def calendar(t: Any) -> NDArray[Any] | None:
    """Return dates as datetime64 (in UTC) and durations as timedelta64; None where t is neither.

    Taken are what pandas, polars, xarray and NumPy hold, and lists of `datetime`, `date` or `timedelta`.

    Examples
    --------
    >>> calendar([date(2024, 1, 1), date(2024, 1, 3)])
    array(['2024-01-01T00:00:00', '2024-01-03T00:00:00'], dtype='datetime64[s]')
    >>> calendar([0.0, 0.5]) is None
    True
    """
    given = np.asarray(t)
    first = given.flat[0] if given.dtype.kind == "O" and given.size else None
    if isinstance(first, date):
        given = np.array([_without_zone(one) for one in given.flat], dtype="datetime64").reshape(given.shape)
    elif isinstance(first, timedelta):
        given = given.astype("timedelta64[us]")
    elif given.dtype.kind not in "mM":
        return None
    elif isinstance(t, np.ma.MaskedArray):
        given = np.where(t.mask, np.array("NaT", dtype=given.dtype), given)
    return given.astype(np.promote_types(given.dtype, f"{given.dtype.kind}8[s]"))


def _without_zone(one: Any) -> Any:
    aware = isinstance(one, datetime) and one.tzinfo is not None
    return one.astimezone(UTC).replace(tzinfo=None) if aware else one


@dataclass(frozen=True)
class Clock:
    """How times are counted: in a unit, where it is known, and from a date, where times are dates.

    Examples
    --------
    >>> clock = Clock("h", "2024-01-01")
    >>> clock.numbers(np.array(["2024-01-02", "2024-01-03"], dtype="datetime64[D]"))
    array([24., 48.])
    >>> clock.dates([6.0])
    array(['2024-01-01T06:00:00.000000'], dtype='datetime64[us]')
    """

    unit: str | None = None
    origin: str | None = None  # ISO; with +00:00 where times named their zones, which are counted in UTC

    @property
    def zoned(self) -> bool:
        """Whether times named their zones."""
        return (self.origin or "").endswith(IN_UTC)

    @property
    def zero(self) -> Any:
        """The date that counts as zero."""
        return np.datetime64((self.origin or "NaT").removesuffix(IN_UTC), "us")

    def numbers(self, t: Any) -> Any:
        """Return times as numbers: dates from the origin (without one, from the first of them); others as they are."""
        found = calendar(t)
        if found is None:
            return t
        if self.unit is None:
            raise ValueError("The model was fitted to times in numbers: give numbers in their unit here, not dates.")
        if self.origin and not self.zoned and have_zones([t]):
            raise ValueError("The times of the fit named no time zones: give such dates here, or fit again with zones.")
        known = found[~np.isnat(found)]
        zero: Any = np.zeros((), found.dtype)
        if found.dtype.kind == "M":
            zero = self.zero if self.origin else known[0] if known.size else zero
        return np.asarray((found - zero) / np.timedelta64(1, "s") / SECONDS[self.unit], dtype=float)

    def dates(self, numbers: Any) -> Any:
        """Return times as dates, to the microsecond, where they were dates; else as they are."""
        if self.origin is None or self.unit is None:
            return numbers
        passed = np.asarray(numbers, dtype=float) * SECONDS[self.unit] * 1e6
        return self.zero + np.round(passed).astype("timedelta64[us]")

    def dated(self, texts: Iterable[str]) -> list[str]:
        """Return messages in which times (t = 1.5) are dates, to the second, where they were dates.

        Examples
        --------
        >>> Clock("h", "2024-01-01").dated(["There is a gap between t = 1.5 and 48."])
        ['There is a gap between 2024-01-01T01:30:00 and 2024-01-03T00:00:00.']
        """
        if self.origin is None:
            return list(texts)
        return [TIMES.sub(lambda found: re.sub(NUMBER, self._date, found[1]), text) for text in texts]

    def _date(self, number: re.Match[str]) -> str:
        return f"{self.dates(float(number[0]))!s:.19}{IN_UTC * self.zoned}"


def as_numbers(series: Sequence[Any], unit: str | None = None) -> tuple[list[Any], Clock]:
    """Return the times of several series (or steps) as numbers, and how they are counted.

    Dates are counted in `unit`, by default the longest that is not longer than their median step, from the first of
    them; of numbers it is told.

    Examples
    --------
    >>> as_numbers([np.array(["2024-01-01T00", "2024-01-01T06", "2024-01-01T12"], dtype="datetime64[h]")])
    ([array([ 0.,  6., 12.])], Clock(unit='h', origin='2024-01-01T00:00:00'))
    >>> as_numbers([[0.0, 0.5]])
    ([[0.0, 0.5]], Clock(unit=None, origin=None))
    """
    if unit is not None and unit not in SECONDS:
        raise ValueError(f"time_unit={unit!r} is not known: choose {', '.join(map(repr, SECONDS))}.")
    found = [calendar(t) for t in series]
    dated = [one for one in found if one is not None]
    if not dated:
        return list(series), Clock(unit)
    if len(dated) < len(found):
        raise ValueError("Some series have dates as times and others numbers: give one kind for all.")
    if any(one.dtype.kind == "M" and one.ndim == 0 for one in dated):
        raise ValueError("t is one date: give the dates of all rows, or the step between them as a duration.")
    known = np.concatenate([one[~np.isnat(one)] for one in dated if one.dtype.kind == "M"] or [np.empty(0)])
    clock = Clock(unit or _fitting_unit(dated), f"{known.min()}{IN_UTC * have_zones(series)}" if known.size else None)
    return [clock.numbers(one) for one in dated], clock


def _fitting_unit(series: Sequence[NDArray[Any]]) -> str:
    steps = np.concatenate([np.atleast_1d(one) if one.ndim == 0 else np.diff(one) for one in series])
    seconds = steps[~np.isnat(steps)] / np.timedelta64(1, "s")
    step = float(np.median(seconds)) if seconds.size else 1.0
    return max(
        (unit for unit in SECONDS if SECONDS[unit] <= LARGEST_RATIO * step), key=SECONDS.__getitem__, default="s"
    )
