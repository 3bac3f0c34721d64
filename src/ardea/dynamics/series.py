"""Series of states as the user gives them: checked, named, cut where there are gaps, with dates as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ardea.core.problem import Array
from ardea.names import counted, default_names, listed, nor_others
from ardea.tables.dates import have_zones

# Longer stretches are cut, so that the cost grows with the number of rows, not with its cube: a Cholesky factor of 400
# rows takes 2 ms.
LONGEST_STRETCH = 400
# A step longer than this many median steps is a gap; the second holds where most steps differ from the median one by
# more than a tenth (conventions).
GAP, UNEVEN_GAP, NEAR = 1.5, 4.0, 0.1
# Differences of these orders are tried for the level of the noise (a convention): the first annihilate straight lines,
# the last take eleven samples.
NOISE_ORDERS = range(2, 11)
# A share of the usual step: times that differ by less are the same, up to rounding (a convention).
SAME_TIME = 1e-6
# An input switches that in at least this share of the steps stays what it was; one may be held whose squared steps are
# this share of its variance: neighbours correlated by less than 0.95 (conventions).
HELD, JUMPING = 0.5, 0.1
# What a date in UTC ends in.
IN_UTC = "+00:00"
# Units of time in which dates are counted, and how a rate is read in them.
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
IN_WORDS = {"s": "second", "min": "minute", "h": "hour", "d": "day"}
# A convention: a unit up to this many times the step is still short enough, for hourly rows that come a little early.
LARGEST_RATIO = 1.1
# A time in a message, or two.
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
TIMES = re.compile(rf"\bt = ({NUMBER}(?: and {NUMBER})?)")


@dataclass(frozen=True, eq=False)
class Series:
    """One series, or a stretch of it: t, x (NaN where missing), inputs without noise, and x_dot where it was given."""

    t: Array
    x: Array
    inputs: Array
    x_dot: Array | None = None
    held: tuple[int, ...] = ()  # inputs that are held from row to row

    @property
    def values(self) -> Array:
        """States and inputs side by side."""
        return np.hstack([self.x, self.inputs]) if self.inputs.shape[1] else self.x

    def stretches(self) -> list[Series]:
        """Cut the series where values are missing or time jumps, and long stretches into parts.

        Examples
        --------
        >>> t = np.arange(40.0)
        >>> x = np.sin(t)[:, None]
        >>> x[20] = np.nan
        >>> series = Series(t, x, np.empty((40, 0)))
        >>> [len(part.t) for part in series.stretches()]
        [20, 19]
        """
        place = np.flatnonzero(np.isfinite(self.t) & np.all(np.isfinite(self.values), axis=1))
        t, x, inputs = self.t[place], self.x[place], self.inputs[place]
        steps = np.diff(t)
        usual = float(np.median(steps)) if steps.size else 1.0
        near_uniform = np.mean(np.abs(steps - usual) < NEAR * usual) > 0.5 if steps.size else True
        jump = steps > (GAP if near_uniform else UNEVEN_GAP) * usual
        broken = np.flatnonzero(jump | (np.diff(place) > 1)) + 1
        parts: list[Any] = []
        for rows in np.split(np.arange(t.size), broken):
            parts += np.array_split(rows, -(-rows.size // LONGEST_STRETCH)) if rows.size else []
        return [Series(t[rows], x[rows], inputs[rows]) for rows in parts]


def held_inputs(parts: Sequence[Array]) -> NDArray[np.bool_]:
    """Return which inputs switch: those that mostly stay what they were."""
    still = np.concatenate([np.diff(rows, axis=0) == 0 for rows in parts])
    return np.asarray(still.sum(axis=0) >= HELD * max(len(still), 1))  # a single row tells nothing


def jumping_inputs(parts: Sequence[Array]) -> tuple[int, ...]:
    """Return which inputs are no smooth curves from row to row: held in between, or sampled too rarely."""
    steps = np.concatenate([np.diff(rows, axis=0) for rows in parts])
    rows = np.concatenate([rows[:-1] for rows in parts])
    jump = np.nanmean(steps**2, axis=0) > JUMPING * np.nanvar(rows, axis=0)
    return tuple(np.flatnonzero(jump & ~held_inputs(parts)).tolist())


def input_curve(t: Array, rows: Array, held: Sequence[int] = ()) -> Callable[..., Array]:
    """Return inputs, known at some times, as a function of time: the last value of those that switch, else a spline.

    Some are known to be `held`: a schedule may list no more than its changes. `before` asks for the values just before
    a time.
    """
    switches = held_inputs([rows])
    switches[list(held)] = True
    spline = CubicSpline(t, rows)

    def at(times: Any, before: bool = False) -> Array:
        values = np.asarray(spline(times))
        last = np.searchsorted(t, times, side="left" if before else "right") - 1
        values[..., switches] = rows[np.clip(last, 0, len(t) - 1)][..., switches]
        return values

    return at


def checked_series(
    x: Any, t: Any, x_dot: Any, u: Any, feature_names: Sequence[str] | None, time_unit: str | None = None
) -> tuple[list[Series], list[str], Clock]:
    """Return the data as checked series, names of states and inputs, and how times are counted."""
    if isinstance(t, str):
        raise ValueError(f"t={t!r} is a text: give the times themselves, such as t=x[{t!r}], and leave them out of x.")
    if t is None:
        raise ValueError(
            "t is needed: the times of the rows, or the step between them (t=x.index where a frame has them there)."
        )
    several = isinstance(x, list | tuple)
    states = [_as_frame(one) for one in x] if several else [_as_frame(x)]
    if not states:
        raise ValueError("x is an empty list: give at least one trajectory.")
    one_step = np.isscalar(t) or isinstance(t, timedelta)
    # One array of times serves all trajectories that have its length; a list with an entry for each has their steps.
    common = several and hasattr(t, "__len__") and all(np.ndim(one) == 0 for one in t)
    common = common and all(len(one) == len(t) for one in states)
    common = common and not (isinstance(t, list | tuple) and len(t) == len(states))
    given: dict[str, list[Any]] = {"t": [t] * len(states) if one_step or common or not several else list(t)}
    for name, one in (("x_dot", x_dot), ("u", u)):
        given[name] = [_as_frame(part) for part in ([None] * len(states) if one is None else one if several else [one])]
    for name, values in given.items():
        if len(values) != len(states):
            what = "one array of times for each of them" if name == "t" else "one for each of them"
            raise ValueError(
                f"x has {counted(len(states), 'trajectory', 'trajectories')} and {name} "
                f"{counted(len(values), 'entry', 'entries')}: give {what} in a list."
            )
    times, clock = as_numbers(given["t"], time_unit)
    columns = labels_of(states[0])
    if columns is not None:
        states = [in_order(one, columns, "x") for one in states]
    series = []
    for number, (one, time, slope, control) in enumerate(zip(states, times, given["x_dot"], given["u"], strict=True)):
        where = f" of trajectory {number}" if several else ""
        series.append(_checked(_rows(one, "x", columns), time, slope, control, where))
    widths = {(one.x.shape[1], one.inputs.shape[1]) for one in series}
    if len(widths) > 1:
        raise ValueError("All trajectories must have the same states and inputs.")
    held = tuple(np.flatnonzero(held_inputs([one.inputs for one in series])).tolist())
    series = [replace(one, held=held) for one in series]
    names = _names(feature_names, columns, labels_of(given["u"][0]), *widths.pop())
    samples = np.max([np.isfinite(one.x).sum(axis=0) for one in series], axis=0)
    if few := [name for name, count in zip(names, samples, strict=False) if count < 2]:
        raise ValueError(f"{listed(few)} has no two samples in any series: leave it out.")
    return series, names, clock


def _as_frame(values: Any) -> Any:
    """Return a column of a frame as a frame of one column; one without a name as numbers."""
    if not hasattr(values, "to_frame") or np.ndim(values) != 1:
        return values
    return np.asarray(values) if values.name in (None, "") else values.to_frame()


def labels_of(values: Any) -> list[str] | None:
    """Return the names of a frame's columns, or of a series' entries; None for what has no names."""
    labels = values.columns if hasattr(values, "columns") else getattr(values, "index", None)
    return None if labels is None or callable(labels) else [str(label) for label in labels]


def in_order(values: Any, names: Sequence[str], what: str) -> Any:
    """Return numbers in the order of the names of a model, masked ones as NaN.

    A frame's columns (a series' entries) are found by name, whatever their order; if none of its names is known, they
    are taken as they stand, like those of an array.
    """
    labels = labels_of(values)
    if labels is not None and set(labels) & set(names):
        if set(labels) != set(names) or len(labels) != len(names):
            raise ValueError(
                f"{what} has {', '.join(labels)}, but the model is of {', '.join(names)}: rename or choose."
            )
        return np.asarray(values)[..., [labels.index(name) for name in names]]
    return unmasked(values)


def unmasked(values: Any) -> Any:
    """Return masked values as NaN, and what is not masked as it is."""
    masked = isinstance(values, np.ma.MaskedArray)
    return np.ma.filled(values.astype(float), np.nan) if masked else values


def _rows(values: Any, name: str, labels: list[str] | None = None) -> Array:
    """Return real numbers, one row per time; masked cells are missing (NaN)."""
    kind = np.asarray(values).dtype.kind
    if kind in "mM":
        raise ValueError(f"{name} holds dates or durations, which are not states: give numbers, and the dates as t.")
    if kind == "c":
        raise ValueError(f"{name} is complex: give its real and its imaginary part as two states.")
    try:
        array = np.asarray(unmasked(values), dtype=float)
    except (TypeError, ValueError) as error:
        columns = zip(
            labels or labels_of(values) or [], np.atleast_2d(np.asarray(values, dtype=object).T), strict=False
        )
        held = [repr(one) for one, column in columns if str(error).partition(": ")[2] in map(repr, column)]
        which = f", and column {held[0]} holds texts" if held else ""
        raise ValueError(f"{name} must be numbers{which}: {error}") from error
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must have shape (times, states), got {array.shape}; for fields give space=(x₁, …) as well."
        )
    return array


def _checked(x: Array, t: Any, x_dot: Any, u: Any, where: str) -> Series:
    m = len(x)
    times = _checked_times(t, m, where)
    if np.any(np.isinf(x)):
        raise ValueError(f"x{where} holds infinities: remove those rows, or set them to NaN to leave a gap.")
    if not np.any(np.isfinite(x)):
        raise ValueError(f"x{where} holds nothing but NaN: leave it out.")
    slopes = None if x_dot is None else _rows(x_dot, "x_dot")
    inputs = np.empty((m, 0)) if u is None else _rows(u, "u")
    for name, other in (("x_dot", slopes), ("u", inputs)):
        if other is not None and len(other) != m:
            raise ValueError(f"{name}{where} has {counted(len(other), 'row')}, x has {m}.")
    if slopes is not None and slopes.shape != x.shape:
        raise ValueError(f"x_dot{where} has shape {slopes.shape}, x has {x.shape}.")
    joined = _joined(Series(times, x, inputs, slopes))
    _check_ascending(joined.t, where)
    return joined


def _joined(series: Series) -> Series:
    """Return rows of one time as one row, as tables of several clocks have them, where no state has two samples then.

    Times that differ by rounding alone are one time.
    """
    t = series.t
    span = np.nanmax(t) - np.nanmin(t) if np.any(np.isfinite(t)) else 0.0
    group = np.concatenate([[0], np.cumsum(~(np.abs(np.diff(t)) <= SAME_TIME * span / len(t)))])
    if group[-1] == len(t) - 1:
        return series
    first = np.flatnonzero(np.diff(group, prepend=-1))
    if np.any(np.add.reduceat(np.isfinite(series.x), first) > 1):
        return series

    def one_each(values: Array) -> Array:
        last = np.append(first[1:], len(t))[group] - 1
        rows = np.where(np.isfinite(values), np.arange(len(t))[:, None], last[:, None])
        return np.take_along_axis(values, np.minimum.reduceat(rows, first), axis=0)

    slopes = None if series.x_dot is None else one_each(series.x_dot)
    return Series(t[first], one_each(series.x), one_each(series.inputs), slopes)


def _checked_times(t: Any, m: int, where: str) -> Array:
    try:
        given = np.asarray(np.ma.filled(t, np.nan) if isinstance(t, np.ma.MaskedArray) else t, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"t{where} must be numbers or dates (datetime64, such as pandas.to_datetime makes of text): {error}"
        ) from error
    if given.ndim == 0:
        if not given > 0 or not np.isfinite(given):
            raise ValueError(f"t{where} as a step must be a positive number, got {t!r}.")
        return np.asarray(given * np.arange(m), dtype=np.float64)
    times = given.ravel()
    if times.size != m:
        rows = f"x has {counted(m, 'row')}: every row is one time (x.T where they are columns)"
        raise ValueError(f"t{where} has {counted(times.size, 'entry', 'entries')}, {rows}.")
    return times


def _check_ascending(times: Array, where: str) -> None:
    """Refuse times that do not ascend."""
    known = np.flatnonzero(np.isfinite(times))
    span = np.ptp(times[known]) if known.size else 0.0
    late = np.flatnonzero(np.diff(times[known]) <= SAME_TIME * span / len(times))
    if late.size:
        before, row = known[late[0]], known[late[0] + 1]
        raise ValueError(
            f"t{where} must ascend strictly, but row {row} (counted from 0; t = {times[row]:g}) does not come after "
            f"row {before} (t = {times[before]:g}){nor_others(late.size - 1)}. Are these several runs? Then give them "
            "as a list (--series on the command line). Else sort the rows, and average those of one time. Dates of a "
            "local clock come twice as summer time ends: t.dt.tz_localize(zone, ambiguous='infer') tells them apart."
        )


def _names(
    given: Sequence[str] | None, frame: list[str] | None, input_frame: list[str] | None, n_states: int, n_inputs: int
) -> list[str]:
    inputs = input_frame or list(default_names(n_inputs, "u"))
    if given is None:
        return (frame or list(default_names(n_states))) + inputs
    names = [str(name) for name in given]
    if len(names) == n_states:
        names += inputs
    if len(names) != n_states + n_inputs or len(set(names)) != len(names):
        with_inputs = f" ({n_states + n_inputs} with the inputs)" if n_inputs else ""
        raise ValueError(f"feature_names must be {n_states} different names{with_inputs}, got {names}.")
    return names


def noise_levels(parts: Sequence[Series], sizes: Sequence[Array] | None = None) -> Array:
    """Return the standard deviation of every state's noise, from differences that smooth signals do not survive.

    The weights w over p + 1 neighbouring samples that annihilate polynomials below degree p leave noise of variance
    s²Σw²z², z what the noise is a share of (`sizes`, 1 by default). Truncation only adds, so the least of the estimates
    over p is taken.
    """
    n = parts[0].x.shape[1]
    units = [np.ones_like(part.x) for part in parts] if sizes is None else sizes
    estimates = []
    for p in NOISE_ORDERS:
        squares, count = np.zeros(n), 0
        for part, unit in zip(parts, units, strict=True):
            if part.t.size > p + 1:
                left = _annihilated(part.t, part.x, unit, p)
                squares += np.sum(left**2, axis=0)
                count += left.shape[0]
        if count > 4:
            estimates.append(squares / count)
    deviation = spread(parts) / np.sqrt(np.mean(np.concatenate(units) ** 2, axis=0))
    level = np.sqrt(np.min(estimates, axis=0)) if estimates else deviation
    # Without noise the estimates are truncation and rounding: keep the ratios between channels sane.
    relative = np.where(deviation > 0, level / np.where(deviation > 0, deviation, 1.0), 0.0)
    floor = max(1e-3 * float(relative.max(initial=0.0)), 1e-12)
    return np.where(deviation > 0, np.maximum(relative, floor) * deviation, 1.0)


def noise_degrees(n_samples: float) -> float:
    """Return about how many degrees of freedom the noise read off differences has.

    Neighbouring differences of order p are correlated: Σρ² = C(4p, 2p)/C(2p, p)², 4.0 for the highest order.
    """
    orders = [p for p in NOISE_ORDERS if n_samples - p > 4]
    degrees = [(n_samples - p) * comb(2 * p, p) ** 2 / comb(4 * p, 2 * p) for p in orders]
    return min(degrees, default=1.0)


def spread(parts: Sequence[Series]) -> Array:
    """Return the standard deviation of every state within its stretches."""
    return np.sqrt(np.mean([np.var(part.x, axis=0) for part in parts], axis=0))


def _annihilated(t: Array, x: Array, sizes: Array, p: int) -> Array:
    """Return divided differences of order p, in units of what noise of such sizes leaves of them."""
    index = np.arange(t.size - p)[:, None] + np.arange(p + 1)
    local = t[index]
    gaps = local[:, :, None] - local[:, None, :]
    gaps[:, np.arange(p + 1), np.arange(p + 1)] = np.mean(np.diff(t))
    weights = 1.0 / np.prod(gaps / np.mean(np.diff(t)), axis=2)
    left = np.einsum("ij,ijl->il", weights, x[index])
    return np.asarray(left / np.sqrt(np.einsum("ij,ijl->il", weights**2, sizes[index] ** 2)))


# Dates


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
        """Return messages in which times (t = 1.5) are dates, to the second, where they were dates."""
        if self.origin is None:
            return list(texts)
        return [TIMES.sub(lambda found: re.sub(NUMBER, self._date, found[1]), text) for text in texts]

    def _date(self, number: re.Match[str]) -> str:
        """Return a date to the second, or to the minute where the digits written carry none (`%g` cuts at six)."""
        passed, digits = float(number[0]), len(re.sub(r"e.*|\D", "", number[0]).lstrip("0"))
        step = 10.0 ** (np.floor(np.log10(abs(passed))) + 1 - digits) if digits >= 6 else 0.0
        grain: Any = "s" if step * SECONDS[self.unit or "s"] <= 1 else "m"
        date = self.dates(passed) + np.timedelta64(1, grain).astype("timedelta64[us]") // 2
        return f"{date.astype(f'M8[{grain}]')}{IN_UTC * self.zoned}"


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
