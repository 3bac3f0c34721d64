"""Series of states as the user gives them: checked, named, and cut where there are gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.dynamics.times import as_numbers
from ardea.names import default_names

Array = NDArray[np.float64]

# Longer stretches are cut, so that the cost grows with the number of rows, not with its cube: a Cholesky factor of 400
# rows takes 2 ms.
LONGEST_STRETCH = 400
# A step longer than this many median steps is a gap; the second holds where most steps differ from the median one by
# more than a tenth (conventions).
GAP, UNEVEN_GAP, NEAR = 1.5, 4.0, 0.1


@dataclass(frozen=True, eq=False)
class Series:
    """One series, or a stretch of it.

    Attributes
    ----------
    t : ndarray of shape (m,)
        Times.
    x : ndarray of shape (m, n)
        Observed states; NaN where they are missing.
    inputs : ndarray of shape (m, n_u)
        Control inputs, without noise.
    x_dot : ndarray of shape (m, n), optional
        Derivatives, where they were given.
    """

    t: Array
    x: Array
    inputs: Array
    x_dot: Array | None = None

    @property
    def values(self) -> Array:
        """States and inputs side by side."""
        return np.hstack([self.x, self.inputs]) if self.inputs.shape[1] else self.x

    @property
    def sound(self) -> NDArray[np.bool_]:
        """Which rows have neither a missing time nor a missing value."""
        return np.isfinite(self.t) & np.all(np.isfinite(self.values), axis=1)

    def stretches(self, longest: int = LONGEST_STRETCH) -> list[Series]:
        """Cut the series where values are missing or time jumps, and long stretches into parts.

        Examples
        --------
        >>> t = np.arange(40.0)
        >>> x = np.sin(t)[:, None]
        >>> x[20] = np.nan
        >>> [len(part.t) for part in Series(t, x, np.empty((40, 0))).stretches()]
        [20, 19]
        """
        place = np.flatnonzero(self.sound)
        t, x, inputs = self.t[place], self.x[place], self.inputs[place]
        steps = np.diff(t)
        usual = float(np.median(steps)) if steps.size else 1.0
        near_uniform = np.mean(np.abs(steps - usual) < NEAR * usual) > 0.5 if steps.size else True
        jump = steps > (GAP if near_uniform else UNEVEN_GAP) * usual
        broken = np.flatnonzero(jump | (np.diff(place) > 1)) + 1
        parts: list[Any] = []
        for rows in np.split(np.arange(t.size), broken):
            parts += np.array_split(rows, -(-rows.size // longest)) if rows.size else []
        return [Series(t[rows], x[rows], inputs[rows]) for rows in parts]


def checked_series(
    x: Any, t: Any, x_dot: Any, u: Any, feature_names: Sequence[str] | None, time_unit: str | None = None
) -> tuple[list[Series], list[str], str | None]:
    """Return the data as checked series, names of states and inputs, and the unit of time where it is known."""
    if t is None:
        raise ValueError(
            "t is needed: the times of the rows, or the step between them (t=x.index where a frame has them there)."
        )
    several = isinstance(x, list | tuple)
    states = list(x) if several else [x]
    if not states:
        raise ValueError("x is an empty list: give at least one trajectory.")
    columns = [str(name) for name in states[0].columns] if hasattr(states[0], "columns") else None
    one_step = np.isscalar(t) or isinstance(t, timedelta)
    given = {
        "t": [t] * len(states) if one_step or not several else list(t),
        "x_dot": _of_each(x_dot, len(states), several),
        "u": _of_each(u, len(states), several),
    }
    for name, values in given.items():
        if len(values) != len(states):
            raise ValueError(f"{name} has {len(values)} trajectories, x has {len(states)}.")
    times, unit = as_numbers(given["t"], time_unit)
    series = []
    for number, (one, time, slope, control) in enumerate(zip(states, times, given["x_dot"], given["u"], strict=True)):
        where = f" of trajectory {number}" if several else ""
        series.append(_checked(_rows(one, "x"), time, slope, control, where))
    widths = {(one.x.shape[1], one.inputs.shape[1]) for one in series}
    if len(widths) > 1:
        raise ValueError("All trajectories must have the same states and inputs.")
    return series, _names(feature_names, columns, *widths.pop()), unit


def _of_each(value: Any, number: int, several: bool) -> list[Any]:
    if value is None:
        return [None] * number
    return list(value) if several else [value]


def as_real(values: Any, name: str) -> Array:
    """Return real numbers; masked cells are missing (NaN). Dates, complex numbers and text are refused.

    Examples
    --------
    >>> as_real(np.ma.masked_less([1.0, -9.0], 0), "x")
    array([ 1., nan])
    """
    masked = isinstance(values, np.ma.MaskedArray)
    kind = values.dtype.kind if masked else np.asarray(values).dtype.kind
    if kind in "mM":
        raise ValueError(f"{name} holds dates or durations, which are not states: give numbers, and the dates as t.")
    if kind == "c":
        raise ValueError(f"{name} is complex: give its real and its imaginary part as two states.")
    try:
        return np.asarray(np.ma.filled(values.astype(float), np.nan) if masked else values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error


def _rows(values: Any, name: str) -> Array:
    array = as_real(values, name)
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
    if not np.any(np.all(np.isfinite(x), axis=1)):
        raise ValueError(f"x{where} has no row without NaN.")
    slopes = None if x_dot is None else _rows(x_dot, "x_dot")
    inputs = np.empty((m, 0)) if u is None else _rows(u, "u")
    for name, other in (("x_dot", slopes), ("u", inputs)):
        if other is not None and len(other) != m:
            raise ValueError(f"{name}{where} has {len(other)} rows, x has {m}.")
    if slopes is not None and slopes.shape != x.shape:
        raise ValueError(f"x_dot{where} has shape {slopes.shape}, x has {x.shape}.")
    return Series(times, x, inputs, slopes)


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
        raise ValueError(f"t{where} has {times.size} entries, x has {m} rows.")
    if not np.all(np.diff(times[np.isfinite(times)]) > 0):
        raise ValueError(f"t{where} must ascend strictly: sort the rows and drop repeated times.")
    return times


def _names(given: Sequence[str] | None, frame: list[str] | None, n_states: int, n_inputs: int) -> list[str]:
    inputs = list(default_names(n_inputs, "u"))
    if given is None:
        return (frame or list(default_names(n_states))) + inputs
    names = [str(name) for name in given]
    if len(names) == n_states:
        names += inputs
    if len(names) != n_states + n_inputs or len(set(names)) != len(names):
        raise ValueError(
            f"feature_names must be {n_states} different names (or {n_states + n_inputs} with the inputs), got {names}."
        )
    return names
