"""Times on the command line: numbers, or dates with and without time zones, as the data of a model had them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ardea.cli.console import Failure
from ardea.core.problem import Array
from ardea.dynamics.series import IN_UTC, Clock
from ardea.tables.dates import compact_dates, in_utc
from ardea.tables.series import Series


def number_of(model: Any, moment: float | datetime, option: str) -> float:
    """Return a time in the unit of the model; 20240531 is a date where the times of the data were dates."""
    date: Any = moment
    if not isinstance(moment, datetime):
        compact = None if model.time_origin_ is None else compact_dates(np.array([moment]))
        if compact is None:
            return moment
        date = compact[0].item()
    if model.time_origin_ is None:
        raise Failure(f"{date} is a date, but the times of the data were numbers: give a number in their unit.")
    require_zone(model, date.tzinfo is not None, f"{option} {date.isoformat()}")
    moment_in_utc = date.astimezone(UTC).replace(tzinfo=None) if date.tzinfo else date
    return float(model.elapsed(np.array([moment_in_utc], dtype="datetime64[us]"))[0])


def require_zone(model: Any, zoned: bool, what: str) -> None:
    """Refuse dates that name a time zone where those of the data did not, or the other way round."""
    if clock_of(model).zoned and not zoned:
        raise Failure(
            f"{what} has no time zone, and the times of the data had one: add it, such as {IN_UTC} for UTC in "
            f"2024-05-31T12:00{IN_UTC}."
        )
    if zoned and not clock_of(model).zoned:
        raise Failure(f"{what} has a time zone, and the times of the data had none: leave it out.")


def require_zones(model: Any, series: Series, path: Path) -> None:
    """Refuse a file whose dates name time zones where those of the data did not, or the other way round."""
    times = series.t[0] if isinstance(series.t, list) else series.t
    if model.time_origin_ is not None and np.asarray(times).dtype.kind == "M":
        require_zone(model, series.zoned, f"The column of times {series.time!r} of {path}")


def clock_of(model: Any) -> Clock:
    """Return how the times of a model are counted."""
    return Clock(model.time_unit_, model.time_origin_)


def dates_of(model: Any, numbers: Array) -> Any:
    """Return times as the data had them: numbers, or dates, which say that they are in UTC if those had zones."""
    times = model.dates(numbers)
    return in_utc(times) if clock_of(model).zoned else times


def text_of(model: Any, number: float) -> str:
    """Return a time as text."""
    (text,) = map(str, model.dates(np.array([number])))
    return f"{text.removesuffix('.000000')}{IN_UTC * clock_of(model).zoned}"
