"""Fields on a grid: checked, smoothed by splines, and covered by the test functions of `windows`.

What samples show before an equation is sought is told:

*Structure.* What splines leave of a field is taken for noise, and noise is white. The part R_a = (1 − P_a)u outside the
splines of one axis is what is finer than these along it. Of white noise, neighbours in R_a along another axis are as
independent as the samples are, whatever P_a is: their correlation is zero, with a standard deviation of one over the
root of the degrees of freedom. Structure that the grid does not resolve along axis a goes on along the other axes.

*Mistakes.* A sample is one if it lies beyond all its neighbours in space and time by more than they differ from each
other, and by many times the noise. A shock moves between its neighbours, and never beyond them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from ardea.core.lazy import explained
from ardea.core.problem import Array
from ardea.dynamics.differences import SPLINE_CAP, SPLINE_DEGREE, SmoothedField, TensorSplines, along_axis, outer
from ardea.dynamics.field_gaps import filled, without_gaps
from ardea.dynamics.readings import copied, given_twice, steps_of
from ardea.dynamics.series import Clock, as_numbers
from ardea.dynamics.terms import Jet
from ardea.dynamics.windows import (
    FEWEST_SPLINES,
    SMALLEST_RADIUS,
    place_windows,
    rounding_noise,
    spectral_radii,
    unit_of,
)
from ardea.names import default_axis_names, default_field_names, in_a_row

# Conventions: steps of a uniform grid differ by less than this share; for points that were rounded, so many digits
# below the step are tried.
UNIFORM, DIGITS = 1e-6, 6
# Conventions: how dense points are is seen over so many blocks of an axis. The noise of rows is taken to be that of an
# even grid; with this ratio it is off by up to a factor of two.
BLOCKS, LARGEST_THINNING = 10, 4.0
# Derived from rounding, 2e-16 summed over a field: what varies by less is constant, and less noise is rounding error.
LEAST_NOISE = 1e-12
# Conventions: noise of rows that is so many times that of samples is told, as a misfit is; noise of up to so many times
# 1/√12 of the unit is that of rounding.
LEAST_TOLD, ONLY_ROUNDED = 1.5, 1.1
# What splines leave is structure if so much of it goes on to the next sample, by so many standard deviations. Measured
# on the ten equations of the noise tables with white noise of .01 to 100 %: .014 and 2.9 at most; on fields of
# Kuramoto–Sivashinsky on a fourth to an eighth of their points .7 to 1 and 16 to 63.
LEAST_STRUCTURE, LEAST_SURE = 0.3, 5.0
# What splines leave is noise, with a kurtosis of 3; near a shock it is ringing, and far more. Measured on all fields of
# `systems`: 3.1 at most where there is noise and no shock, 15 to 99 with a shock and noise of up to 10 %. Without noise
# they leave less than this share of the field, unless there is a shock.
LARGEST_KURTOSIS, LEAST_ROUGH = 6.0, 1e-3
# Derived: what six neighbours say of a sample misses it near a jump by half of that, and by an eighth if the jump takes
# two steps, 1/4 of the largest of these; by (2 sin(π/n))⁵/20 of a step where there are n samples in a wave, 1/9 at 5.
LEAST_JUMP = 0.2
# Conventions: how noise grows with |u| is read off so many groups of samples; so many mistakes are named.
GROUPS, NAMED = 20, 3
# Conventions: a mistake lies beyond all samples so near it by six times the noise, so about eight times off the field,
# by so many times their range, which is four times the noise where the field is smooth, and by this share of the
# deviation of the field, below which readings may be rounded. Measured on all fields of `systems`: none with white
# noise of up to 100 %, noise of 10 % of u itself, or shocks; 10 of 10 of eight deviations.
NEAR, BEYOND, RANGES, LEAST_BEYOND = 2, 6.0, 1.5, 0.02
# Derived: the median of |second difference| of white noise of deviation 1, √6 times that of a normal variable; a
# rounded peak is one unit above all others near it, and a mistake is more.
MEDIAN_OF_BENDS, UNITS_BEYOND = 0.6745 * 6**0.5, 1.5
# What is said of samples.
SAID = {
    "structure": "What is taken for noise of {name}, {share:.2g} % of its standard deviation, is not independent "
    "between samples: either {name} changes faster along {where} than its grid shows, or samples were smoothed or "
    "filled in along another axis. Terms, coefficients and intervals may then be wrong, however well the equation "
    "fits. Take more points along {where}, or every second one of smoothed samples",
    "rounding": "{name} is rounded to {unit:.3g}, and neighbours mostly are by the same amount: what rounding leaves "
    "does not average out, and counts as noise of {noise:.2g}. Terms may be missing or wrong. Take finer readings",
    "mistakes": "Single samples of {name} are far beyond all samples near them, {n} in all: at {where}. Set mistakes "
    "to NaN: as numbers they change terms and intervals",
    "growth": "The noise of {name} grows with |{name}|, and one size is taken for all samples: intervals may be too "
    "narrow or too wide. See whether a part of the domain with {name} of one size gives the same equation",
}


class Fields:
    """Fields on a grid: checked, smoothed, with test functions; shared by the equations of all fields.

    Axes whose points are uneven get an even grid of as many points, on which the splines are evaluated.
    `values` has shape (n_x, …, n_t) for one field, or a last axis of fields. Fields in `known` follow; they have no
    noise, and their shape may lack the time axis. NaN are gaps. Per field, `noise`, `left`, `reach` and `excitation`
    are the standard deviation s of its noise, that of samples without gaps with which û would be as noisy, the largest
    |u|, and how much u varies in units of s; `moving` says whether it changes with time. `splines` are those of û on
    the grid, `errors` those of its errors on the thinned grid. `windows` and `thinned` are the test functions on both;
    the thinned grid has every d-th sample, d in `factors`. `together` is what is to be said of all runs.

    Examples
    --------
    >>> x, t = np.linspace(0, 6, 80), np.linspace(0, 1, 60)
    >>> u = np.sin(2 * x[:, None] - t) + 0.01 * np.random.default_rng(0).normal(size=(80, 60))
    >>> Fields(u, (x,), t).noise.round(3).tolist()
    [0.01]
    """

    def __init__(
        self,
        values: ArrayLike,
        space: Sequence[ArrayLike],
        t: ArrayLike,
        names: Sequence[str] | None = None,
        axes: Sequence[str] | None = None,
        known: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        self.axes = _different(default_axis_names(len(space)) if axes is None else axes, len(space), "space axes")
        read = [_axis(*axis) for axis in zip([*space, t], [*self.axes, "t"], strict=True)]
        points, self._even = [axis for axis, _ in read], [even for _, even in read]
        grid = tuple(map(len, points))
        fields = _one_per_field(values, grid)
        self.names = _different(default_field_names(len(fields)) if names is None else names, len(fields), "fields")
        self.n_measured, self.n_known = len(fields), len(known or {})
        fields += [_known_field(name, one, grid) for name, one in (known or {}).items()]
        self.names = _different([*self.names, *(known or {})], len(fields), "fields, the known ones too,")
        _different([*self.names, *self.axes, "t"], len(fields) + len(points), "fields and axes")
        _check_values(fields, self.names, self.n_measured)
        self.space, self.t, self.n_fields = tuple(points[:-1]), points[-1], len(fields)
        self.reach, self.middle = np.array([(np.nanmax(np.abs(u)), np.nanmean(u)) for u in fields]).T
        self.spread = np.array([np.nanstd(u) for u in fields])
        self.moving = [bool(np.any(np.abs(np.diff(u)) > LEAST_NOISE * np.nanmax(np.abs(u)))) for u in fields]
        self._smooth(fields, points)
        self.excitation = self.spread[: self.n_measured] / self.noise[: self.n_measured]

    def _smooth(self, fields: Sequence[Array], points: Sequence[Array]) -> None:
        found = [
            (filled if np.any(np.isnan(u)) else SmoothedField.of)(u, points, self._even, FEWEST_SPLINES) for u in fields
        ]
        self.splines, self._coefficients = [one.splines for one in found], [one.coefficients for one in found]
        smooth = [self.derivative(Jet(i, (0,) * len(self.space))) for i in range(self.n_fields)]
        self.noise = np.maximum([one.noise for one in found], LEAST_NOISE * self.spread)
        self.noise[self.n_measured :] = 0.0
        self.units = [unit_of(u) for u in fields[: self.n_measured]]
        self.rough, self.structured, self.together = dict[int, Array](), set[int](), list[str]()
        self.told = [told for i in range(self.n_measured) for told in self._seen(i, fields[i], points)]
        self.told += [
            f"{alike} at every point: no data tell which acts. Leave one out (python -m ardea.explain ambiguity)."
            for i, j in combinations(range(self.n_fields), 2)
            if (alike := copied(fields[i].ravel(), fields[j].ravel(), self.names[i], self.names[j]))
        ]
        measured = found[: self.n_measured]
        steps = [(where[-1] - where[0]) / (len(where) - 1) for where in points]
        n_splines = np.min([[axis.n_basis for axis in one.splines.smoothers] for one in measured], axis=0)
        radii = spectral_radii(smooth[: self.n_measured], n_splines.tolist(), [one.known for one in measured])
        self.windows, self.thinned, self.factors = place_windows(fields[0].shape, steps, radii)
        self.errors = [splines.thinned(self.factors) for splines in self.splines]
        if gaps := [one.known for one in found if one.known is not None]:
            self.windows, self.thinned = without_gaps(self.windows, self.thinned, gaps)
        self.told += self._rounded(smooth)
        self.left = self.noise / np.sqrt([one.density for one in found])

    def _rounded(self, smooth: Sequence[Array]) -> list[str]:
        """Raise noise to what rounding leaves in the rows, at most; return what is to be said of it."""
        told = []
        for field, unit in enumerate(self.units):
            own, structured = float(self.noise[field]), field in self.structured and self._only_rounded(field)
            if own < unit:  # more noise makes errors of rounding independent
                self.noise[field] = noise = rounding_noise(smooth[field], unit, own, self.windows)
                self.structured |= {field} if noise > own else set()
                if structured or noise > LEAST_TOLD * own:
                    told.append(self._said("rounding", field, unit=unit, noise=noise))
        return told

    def _seen(self, field: int, u: Array, points: Sequence[Array]) -> list[str]:
        """Set whether a field jumps or has structure that splines leave; return what is to be said of its samples."""
        splines, axes = self.splines[field], [*self.axes, "t"]
        if n := len(mistakes := mistakes_in(u, self.units[field])):
            where = "; ".join(
                ", ".join(f"{axis} = {along[i]:.6g}" for axis, along, i in zip(axes, points, place, strict=True))
                for place in mistakes[:NAMED]
            )
            more = f"; and {n - NAMED} more" if n > NAMED else ""
            return [self._said("mistakes", field, n=n, where=where + more)]
        smooth = splines.values(self._coefficients[field])
        left = np.where(np.isnan(u), 0.0, u - smooth)
        share, coarse = float(self.noise[field] / self.spread[field]), unresolved_axes(smooth + left, splines)
        if share > LEAST_ROUGH and kurtosis(left) > LARGEST_KURTOSIS and may_jump(u):
            if not coarse and kurtosis(evened(left, smooth)) < LARGEST_KURTOSIS:
                return [self._said("growth", field)]
            if not np.any(np.isnan(u)) and all(grid is None for grid in self._even):
                self.rough[field] = u
                return []
        self.structured |= {field} if coarse else set()
        if share <= LEAST_ROUGH or not coarse or self._only_rounded(field):
            return []
        return [self._said("structure", field, where=in_a_row([axes[i] for i in coarse]), share=100 * share)]

    def _said(self, what: str, field: int, **numbers: Any) -> str:
        """Return what is to be warned of the samples of a field."""
        return f"{SAID[what].format(name=self.names[field], **numbers)} (python -m ardea.explain ambiguity)."

    def _only_rounded(self, field: int) -> bool:
        """Whether the noise of a field is what rounding leaves."""
        return bool(self.noise[field] <= ONLY_ROUNDED * self.units[field] / 12**0.5)

    def smoothed(self) -> Array:
        """Return û of all fields at the samples, shape (n_x, …, n_t, fields)."""
        pairs = zip(self.splines, self._coefficients, strict=True)
        return np.stack([splines.values(coefficients) for splines, coefficients in pairs], axis=-1)

    def derivative(self, jet: Jet, factors: Sequence[int] | None = None) -> Array:
        """Return a derivative of û on the grid, or at every d-th sample."""
        return self.splines[jet.field].derivative(self._coefficients[jet.field], jet.orders, factors)

    def sampled(self, jet: Jet) -> Array:
        """Return a derivative on the grid, the samples themselves instead of û where û does not follow them."""
        return self.rough[jet.field] if self._is_raw(jet) else self.derivative(jet)

    def covariance(self, one: Jet, other: Jet, factors: Sequence[int] | None = None) -> Array | float:
        """Return the covariance of the noise that `sampled` has in two jets; that of `derivative` where it thins."""
        raw = factors is None and one == other and self._is_raw(one)
        if raw or one.field != other.field:
            return raw * float(self.noise[one.field]) ** 2
        splines = self.splines[one.field]
        pairs = zip(splines.bases(one.orders, factors), splines.bases(other.orders, factors), strict=True)
        return float(self.left[one.field]) ** 2 * outer([np.einsum("ik,ik->i", *pair) for pair in pairs])

    def _is_raw(self, jet: Jet) -> bool:
        return jet.field in self.rough and not any(jet.orders)


@dataclass(frozen=True)
class FieldWishes:
    """What users say of fields: coordinates, whether complex ones are split, known fields, and equations wanted."""

    space: Any = None
    split: bool = False
    known: Mapping[str, Any] | None = None
    equations: Sequence[str] | None = None


def read_fields(
    x: Any, t: Any, given: FieldWishes, names: Sequence[str] | None = None, time_unit: str | None = None
) -> tuple[list[Fields], Clock]:
    """Return arrays, a list of them, or xarray objects as fields, one for every run, and how times are counted.

    xarray objects (a DataArray, or a Dataset of several fields) bring coordinates and names, where these are not given.
    Times may be numbers, dates, or the step between them, the same for all runs or a list; a known field is one array
    for all runs or a list.
    """
    axes, space = None, given.space
    if hasattr(x, "coords"):
        arrays = xarray_fields(x)
        *axes, time = arrays[0].dims
        coordinates = arrays[0].coords
        t = coordinates[time] if t is None and time in coordinates else t
        if space is None and all(axis in coordinates for axis in axes):
            space = [coordinates[axis] for axis in axes]
        own = [array.name for array in arrays]
        names = own if names is None and None not in own else names
        x = np.stack([np.ma.filled(array.to_masked_array(), np.nan) for array in arrays], axis=-1)
    if space is None or t is None:
        raise ValueError("Fields need space=(x₁, …), the coordinates of the space axes, and t, the times.")
    space = [space] if np.isscalar(space) or (isinstance(space, np.ndarray) and space.ndim == 1) else list(space)
    runs = list(x) if isinstance(x, list | tuple) and np.ndim(x[0]) > len(space) else [x]
    sizes = zip(space, np.shape(runs[0]), strict=False)  # a number is the distance of points
    space = [points * np.arange(size) if np.ndim(points) == 0 else points for points, size in sizes]
    if given.split:
        runs = [_parts(one, len(space) + 1) for one in runs]
        names = names if names is None or len(names) != 1 else None
    several = isinstance(t, list | tuple) and len(t) == len(runs) and np.ndim(t[0]) == 1
    times, clock = as_numbers(t if several else [t] * len(runs), time_unit)
    data = []
    for run, (one, when) in enumerate(zip(runs, times, strict=True)):
        known = {name: _of_run(name, values, run, len(runs)) for name, values in (given.known or {}).items()}
        if np.ndim(when) == 0 and np.ndim(one) > len(space):
            when = when * np.arange(np.shape(one)[len(space)])
        data.append(Fields(one, space, when, names, axes, known))
    if len({one.n_measured for one in data}) > 1:
        raise ValueError("All runs must have the same fields, in the same order.")
    data[0].together = _given_twice(runs, len(space)) if len(data) > 1 else []
    return data, clock


@explained("ambiguity")
def _given_twice(runs: Sequence[Any], n_axes: int) -> Iterator[str]:
    """Yield what is to be warned of runs that have times of each other."""
    plain: list[Array] = [np.ma.filled(np.ma.asarray(one, dtype=float), np.nan) for one in runs]
    rows = [np.nan_to_num(np.moveaxis(one, n_axes, 0).reshape(one.shape[n_axes], -1)) for one in plain]
    steps = [steps_of(np.hstack([one[:-1], one[1:]]), np.any(one[:-1] != one[1:], axis=1)) for one in rows]
    yield from given_twice(steps, [len(one) for one in rows], "run", "runs", "times")


def xarray_fields(data: Any, time: str | None = None) -> list[Any]:
    """Return the fields of a DataArray or Dataset as DataArrays with the same axes, space first, time last.

    `time` names the time axis. None: the axis called t or time, else the last.
    """
    arrays = list(data.data_vars.values()) if hasattr(data, "data_vars") else [data]
    dims = list(arrays[0].dims) if arrays else []
    named = [axis for axis in dims if axis == time or (time is None and axis in ("t", "time"))]
    if len(dims) < 2 or (time is not None and not named):
        listed = ", ".join(map(str, dims)) or "none"
        raise ValueError(f"A field needs space axes and a time axis; say which is time (time=…). Its axes: {listed}.")
    last = named[0] if len(named) == 1 else dims[-1]
    return [array.transpose(*(axis for axis in dims if axis != last), last) for array in arrays]


# Checks


def _axis(points: ArrayLike, name: str) -> tuple[Array, Array | None]:
    """Return the points of an axis, and the even grid on which splines are evaluated, None where they are even.

    Points that rounding alone keeps from being even are made so.
    """
    array = np.asarray(points, dtype=float)
    if array.ndim == 1 and len(array) > 1 and np.all(np.diff(array) < 0):
        raise ValueError(
            f"{name} is descending: turn it and the fields around along this axis, {name}[::-1], or use "
            f"sortby({name!r}) of xarray."
        )
    if array.ndim != 1 or len(array) < 2 or not np.all(np.diff(array) > 0):
        raise ValueError(f"{name} must be one-dimensional and strictly ascending.")
    least = max(ceil((SPLINE_DEGREE + 1) / SPLINE_CAP), 2 * SMALLEST_RADIUS + 1)
    if len(array) < least:
        raise ValueError(f"{name} has {len(array)} points, too few for splines and test functions: at least {least}.")
    even = np.linspace(array[0], array[-1], len(array))
    for digit in 10.0 ** (np.floor(np.log10(even[1] - even[0])) - np.arange(DIGITS)):
        written = np.abs(array / digit - np.round(array / digit)).max() < UNIFORM
        if written and np.abs(array - even).max() <= digit:
            return even, None
    if np.ptp(np.diff(array)) <= UNIFORM * (even[1] - even[0]):
        return array, None
    block = max(len(array) // BLOCKS, 1)
    spans = array[block:] - array[:-block]
    if spans.max() > LARGEST_THINNING * spans.min():
        raise ValueError(
            f"{name} is {spans.max() / spans.min():.1f} times as dense in some places as in others; up to "
            f"{LARGEST_THINNING:g} times is allowed. Interpolate the fields to a uniform grid first, or cut the domain."
        )
    return array, even


def _one_per_field(values: Any, grid: tuple[int, ...]) -> list[Array]:
    if np.iscomplexobj(values):
        raise ValueError(
            "The field is complex, and equations are found for real ones: fit(…, split=True) takes its real and its "
            "imaginary part as two fields."
        )
    fields: Array = np.asarray(np.ma.filled(np.ma.asarray(values, dtype=float), np.nan))
    if fields.shape == grid:
        return [fields]
    if fields.ndim == len(grid) + 1 and fields.shape[:-1] == grid and fields.shape[-1]:
        return [np.ascontiguousarray(fields[..., i]) for i in range(fields.shape[-1])]
    raise ValueError(
        f"space and t say the grid is {grid}: give fields of this shape (space axes first, then time), or with a last "
        f"axis of fields; got {fields.shape}."
    )


def _known_field(name: str, values: ArrayLike, grid: tuple[int, ...]) -> Array:
    array = np.asarray(values, dtype=float)
    if array.shape not in (grid, grid[:-1]):
        raise ValueError(f"The known field {name} must have the shape {grid}, or {grid[:-1]}, got {array.shape}.")
    return np.ascontiguousarray(np.broadcast_to(array if array.shape == grid else array[..., None], grid))


def _of_run(name: str, values: Any, run: int, n_runs: int) -> Any:
    """Return what a known field is in one of the runs."""
    several = isinstance(values, list | tuple) and len(values) > 0 and hasattr(values[0], "shape")
    if several and len(values) != n_runs > 1:
        raise ValueError(
            f"The known field {name} is a list of {len(values)} arrays, and there are {n_runs} runs: give one array "
            "for each, or one that all have in common."
        )
    return values[run] if several and len(values) == n_runs else values


def _parts(values: Any, n_axes: int) -> Any:
    """Return a complex field as real part and imaginary part, along a last axis."""
    if not np.iscomplexobj(values):
        raise ValueError("split=True is for complex fields, and this one is real: leave it out.")
    field = np.ma.asarray(values)
    if field.ndim > n_axes + 1 or (field.ndim == n_axes + 1 and field.shape[-1] != 1):
        raise ValueError("split=True is for one complex field: give the parts of several as real fields.")
    field = field.reshape(field.shape[:n_axes])
    return np.ma.stack([field.real, field.imag], axis=-1)


def _check_values(fields: Sequence[Array], names: Sequence[str], n_measured: int) -> None:
    for number, (name, u) in enumerate(zip(names, fields, strict=True)):
        seen = u[~np.isnan(u)]
        if not np.all(np.isfinite(seen)):
            raise ValueError(f"The field {name} holds infinities: set them to NaN to leave a gap.")
        if not seen.size:
            raise ValueError(f"The field {name} has no number on the whole grid: leave it out.")
        if np.ptp(seen) <= LEAST_NOISE * np.abs(seen).max():
            so = "it has no equation to find" if number < n_measured else "every term with it repeats one without it"
            raise ValueError(f"The field {name} is constant, so {so}: leave it out.")


def _different(names: Sequence[Any], n: int, what: str) -> list[str]:
    listed = [names] if isinstance(names, str) else [str(name) for name in names]
    if len(listed) != n or len(set(listed)) != n:
        raise ValueError(f"The {what} need {n} different names, got {listed}.")
    return listed


# Samples


def unresolved_axes(values: Array, splines: TensorSplines) -> list[int]:
    """Return the axes along which a field without gaps has structure that its splines leave.

    Examples
    --------
    Waves of 2.4 points along the first axis and of 50 along the second:

    >>> x, t = np.arange(60.0), np.arange(100.0)
    >>> u = np.sin(2.6 * x[:, None] - 0.12 * t) + 0.01 * np.random.default_rng(0).normal(size=(60, 100))
    >>> unresolved_axes(u, SmoothedField.of(u, (x, t), (None, None), 24).splines)
    [0]
    """

    def goes_on(left: Array, axis: int) -> float:
        """Return the correlation of neighbours along an axis."""
        lines = np.moveaxis(left, axis, 0)
        square = np.sum(lines[1:] ** 2) + np.sum(lines[:-1] ** 2)
        return float(2 * np.sum(lines[1:] * lines[:-1]) / square) if square else 0.0

    found = []
    for axis, smoother in enumerate(splines.smoothers):
        left = values - along_axis(smoother.basis @ smoother.basis.T, values, axis)
        freedom = (1 - smoother.n_basis / values.shape[axis]) * left.size
        others = [goes_on(left, other) for other in range(values.ndim) if other != axis]
        if max(others) > max(LEAST_STRUCTURE, LEAST_SURE / np.sqrt(freedom)):
            found.append(axis)
    return found


def mistakes_in(values: Array, unit: float = 0.0) -> NDArray[np.intp]:
    """Return where single samples lie far beyond all others near them, one row of indices for each.

    `unit` is that to which values are rounded, 0 if to none.

    Examples
    --------
    >>> x, t = np.linspace(0, 6, 80), np.linspace(0, 1, 60)
    >>> u = np.sin(2 * x[:, None] - t) + 0.01 * np.random.default_rng(0).normal(size=(80, 60))
    >>> u[30, 20] += 3.0
    >>> mistakes_in(u).tolist()
    [[30, 20]]
    """
    bends = [np.diff(values, 2, axis=axis) for axis in range(values.ndim)]
    seen = [np.abs(bend[np.isfinite(bend)]) for bend in bends]  # none where no three samples stand in a row
    noise = min((float(np.median(one)) / MEDIAN_OF_BENDS for one in seen if one.size), default=np.inf)
    size, width = float(np.nanstd(values)), 2 * NEAR + 1
    least = max(BEYOND * noise, LEAST_BEYOND * size, UNITS_BEYOND * unit)
    around = sliding_window_view(np.pad(values, NEAR, constant_values=np.nan), (width,) * values.ndim)
    found = []
    for sign in (1.0, -1.0):
        upward = np.where(np.isnan(values), -np.inf, sign * values)
        places = np.argwhere((ndimage.maximum_filter(upward, width) == upward) & np.isfinite(upward))
        near = sign * around[tuple(places.T)].reshape(len(places), -1)
        own = near[:, near.shape[1] // 2].copy()
        near[:, near.shape[1] // 2] = np.nan
        # A shock may just have come in at a corner, which has no neighbours on both sides.
        known = np.any((places > 0) & (places < np.array(values.shape) - 1), axis=1)
        known &= np.sum(np.isfinite(near), axis=1) > width
        near, own, places = near[known], own[known], places[known]
        beyond = own - np.nanmax(near, axis=1)
        range_of_others = np.nanmax(near, axis=1) - np.nanmin(near, axis=1)
        found.append(places[beyond > np.maximum(RANGES * range_of_others, least)])
    return np.concatenate(found)


def may_jump(values: Array) -> bool:
    """Return whether some sample is far from a curve through three neighbours on both sides along an axis of space."""
    along = [axis for axis in range(values.ndim - 1) if values.shape[axis] > 6]
    steps = [[np.abs(np.diff(values, n, axis=axis)) for n in (1, 6)] for axis in along]
    sizes = [[float(np.max(one, initial=0.0, where=np.isfinite(one))) for one in both] for both in steps]
    return any(sixth / 20 > LEAST_JUMP * first for first, sixth in sizes)


def kurtosis(values: Array) -> float:
    """Return E r⁴/(E r²)², 3 for normal variables."""
    square = values**2
    return float(np.mean(square**2) / np.mean(square) ** 2)


def evened(left: Array, smooth: Array) -> Array:
    """Return what splines leave in units of its size where |û| is as large: noise that grows with |u| is even then."""
    groups = np.array_split(np.argsort(np.abs(smooth), axis=None), GROUPS)
    out = left.ravel().copy()
    for group in groups:
        out[group] /= max(float(np.sqrt(np.mean(out[group] ** 2))), float(np.finfo(float).tiny))
    return out
