"""Fields on a grid: checked, smoothed by splines, and covered by the test functions of `windows`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ardea.core.lazy import cached_property
from ardea.core.problem import Array
from ardea.dynamics.differences import SPLINE_CAP, SPLINE_DEGREE, SmoothedField, on_axes
from ardea.dynamics.field_gaps import filled
from ardea.dynamics.field_noise import rounding_noise
from ardea.dynamics.field_samples import (
    LARGEST_KURTOSIS,
    LEAST_ROUGH,
    evened,
    kurtosis,
    may_jump,
    mistakes_in,
    said_of_growth,
    said_of_mistakes,
    said_of_rounding,
    said_of_structure,
    unit_of,
    unresolved_axes,
)
from ardea.dynamics.field_terms import default_axis_names, default_field_names
from ardea.dynamics.readings import copied
from ardea.dynamics.series import Clock, as_numbers
from ardea.dynamics.terms import FieldTerm, FunctionOfFields, Jet
from ardea.dynamics.windows import FEWEST_SPLINES, SMALLEST_RADIUS, place_windows, spectral_radii
from ardea.names import counted

# Convention: steps of a uniform grid differ by less than this share.
UNIFORM = 1e-6
# Convention: so many digits below the step are tried for points that were rounded.
DIGITS = 6
# Conventions: how dense points are is seen over so many blocks of an axis. The noise of rows is taken to be that of an
# even grid; with this ratio it is off by up to a factor of two.
BLOCKS, LARGEST_THINNING = 10, 4.0
# Derived from rounding, 2e-16 summed over a field: what varies by less is constant, and less noise is rounding error.
LEAST_NOISE = 1e-12
# A convention, the same as of a misfit: noise of rows that is so many times that of samples is told.
LEAST_TOLD = 1.5
# A convention: noise of up to so many times 1/√12 of the unit is that of rounding.
ONLY_ROUNDED = 1.1
# A convention: with fewer rows, hardly any model can be told from another.
FEWEST_FUNCTIONS = 20
# A test function may have this share of its weight where the field is unknown. Derived: that of its last fifth, where
# even its fourth derivative is 1e-2 of its largest.
LARGEST_UNKNOWN = 1e-5


class Jets:
    """Derivatives of fields on a grid, and products of their powers, each computed once.

    Where a field is given with its noise, of variance s² = variance(jet), powers are those whose mean is that of the
    field without it (Hermite): H_p = u H_{p−1} − (p − 1) s² H_{p−2}.
    """

    def __init__(self, jet: Callable[[Jet], Array], variance: Callable[[Jet], float] | None = None) -> None:
        self._jet, self._variance = jet, variance
        self._values: dict[tuple[Any, int], Array] = {}

    def __call__(self, jet: Jet | FunctionOfFields, power: int = 1) -> Array:
        """Return a power of a jet or of a function."""
        if (jet, power) not in self._values:
            values = self._first(jet) if power == 1 else self(jet, power - 1) * self(jet)
            noise = self._variance(jet) if self._variance and power > 1 and isinstance(jet, Jet) else 0.0
            if noise:
                values = values - (power - 1) * noise * (self(jet, power - 2) if power > 2 else 1.0)
            self._values[jet, power] = values
        return self._values[jet, power]

    def _first(self, jet: Jet | FunctionOfFields) -> Array:
        return jet.values(self) if isinstance(jet, FunctionOfFields) else self._jet(jet)

    def monomial(self, monomial: FieldTerm) -> Array | float:
        """Return a product of powers of jets; 1 for the empty one."""
        total: Array | float = 1.0
        for jet, power in monomial.factors:
            total = self(jet, power) * total
        return total


class Fields:
    """Fields on a grid: checked, smoothed, with test functions; shared by the equations of all fields.

    Axes whose points are uneven get an even grid of as many points, on which the splines are evaluated.

    `values` has shape (n_x, …, n_t) for one field, or a last axis of fields. Fields in `known` follow; they have no
    noise, and their shape may lack the time axis. NaN are gaps. Per field, `noise`, `left`, `reach` and `excitation`
    are the standard deviation s of its noise, that of samples without gaps with which û would be as noisy, the largest
    |u|, and how much u varies in units of s;
    `splines` are those of û on the grid, `errors` those of its errors on the thinned grid. `windows` and `thinned` are
    the test functions on both; the thinned grid has every d-th sample, d in `factors`.

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
        points = [_axis_points(*axis) for axis in zip([*space, t], [*self.axes, "t"], strict=True)]
        self._even = [_even_grid(*axis) for axis in zip(points, [*self.axes, "t"], strict=True)]
        fields = _one_per_field(values, tuple(map(len, points)))
        self.names = _different(default_field_names(len(fields)) if names is None else names, len(fields), "fields")
        self.n_measured, self.n_known = len(fields), len(known or {})
        fields += [_known_field(name, one, tuple(map(len, points))) for name, one in (known or {}).items()]
        self.names = _different([*self.names, *(known or {})], len(fields), "fields, the known ones too,")
        _different([*self.names, *self.axes, "t"], len(fields) + len(points), "fields and axes")
        _check_values(fields, self.names, self.n_measured)
        self.space, self.t, self.n_fields = tuple(points[:-1]), points[-1], len(fields)
        self.reach, self.middle = (
            np.array([of(u) for u in fields]) for of in (lambda u: np.nanmax(np.abs(u)), np.nanmean)
        )
        self.spread = np.array([np.nanstd(u) for u in fields])
        self._smooth(fields, points)
        self.excitation = self.spread[: self.n_measured] / self.noise[: self.n_measured]

    def _smooth(self, fields: Sequence[Array], points: Sequence[Array]) -> None:
        found = [
            (filled if np.any(np.isnan(u)) else SmoothedField.of)(u, points, self._even, FEWEST_SPLINES) for u in fields
        ]
        self.splines, self._coefficients = [one.splines for one in found], [one.coefficients for one in found]
        plain = self.jets()
        smooth = [plain(Jet(i, (0,) * len(self.space))) for i in range(self.n_fields)]
        self.noise = np.maximum([one.noise for one in found], LEAST_NOISE * self.spread)
        self.noise[self.n_measured :] = 0.0
        self.units = [unit_of(u) for u in fields[: self.n_measured]]
        self.rough, self.structured = dict[int, Array](), set[int]()
        self.told = [told for i in range(self.n_measured) for told in self._seen(i, fields[i], points)]
        self.told += [
            f"{alike} at every point: no data tell which acts. Leave one out (python -m ardea.explain ambiguity)."
            for i, j in combinations(range(self.n_fields), 2)
            if (alike := copied(fields[i].ravel(), fields[j].ravel(), self.names[i], self.names[j]))
        ]
        measured = self.splines[: self.n_measured]
        steps = [(where[-1] - where[0]) / (len(where) - 1) for where in points]
        numbers = zip(*([smoother.n_basis for smoother in splines.smoothers] for splines in measured), strict=True)
        known = [one.known for one in found[: self.n_measured]]
        radii = spectral_radii(smooth[: self.n_measured], [min(of_axis) for of_axis in numbers], known)
        self.windows, self.thinned, self.factors = place_windows(fields[0].shape, steps, radii)
        self.errors = [splines.thinned(self.factors) for splines in self.splines]
        self._leave_out([one.known for one in found if one.known is not None])
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
                told += [said_of_rounding(self.names[field], unit, noise)] * (structured or noise > LEAST_TOLD * own)
        return told

    def _seen(self, field: int, u: Array, points: Sequence[Array]) -> list[str]:
        """Set whether a field jumps or has structure that splines leave; return what is to be said of its samples."""
        name, splines, axes = self.names[field], self.splines[field], [*self.axes, "t"]
        if len(mistakes := mistakes_in(u, self.units[field])):
            return [said_of_mistakes(name, mistakes, points, axes)]
        smooth = on_axes([one.basis for one in splines.smoothers], self._coefficients[field])
        left = np.where(np.isnan(u), 0.0, u - smooth)
        share, coarse = float(self.noise[field] / self.spread[field]), unresolved_axes(smooth + left, splines)
        if share > LEAST_ROUGH and kurtosis(left) > LARGEST_KURTOSIS and may_jump(u):
            if not coarse and kurtosis(evened(left, smooth)) < LARGEST_KURTOSIS:
                return [said_of_growth(name)]
            if not np.any(np.isnan(u)) and all(grid is None for grid in self._even):
                self.rough[field] = u
                return []
        self.structured |= {field} if coarse else set()
        if share <= LEAST_ROUGH or not coarse or self._only_rounded(field):
            return []
        return [said_of_structure(name, [axes[i] for i in coarse], share)]

    def _only_rounded(self, field: int) -> bool:
        """Whether the noise of a field is what rounding leaves."""
        return bool(self.noise[field] <= ONLY_ROUNDED * self.units[field] / 12**0.5)

    def _leave_out(self, known: Sequence[NDArray[np.bool_]]) -> None:
        """Leave out test functions that weigh places where a field is not known."""
        if not known:
            return
        places = np.stack([~np.all(known, axis=0), np.ones(self.windows.grid)])
        plain = (0,) * len(self.space)
        unknown, all_of_it = (self.windows.tested_in_space(self.windows.tested_in_time(one), plain) for one in places)
        kept = np.flatnonzero(unknown <= LARGEST_UNKNOWN * all_of_it)
        if len(kept) < FEWEST_FUNCTIONS:
            raise ValueError(
                f"The fields have so many gaps that {counted(len(kept), 'test function')} of {len(unknown)} can be "
                f"used, and at least {FEWEST_FUNCTIONS} are needed: cut the domain to a part with fewer gaps."
            )
        if len(kept) < len(unknown):
            self.windows, self.thinned = replace(self.windows, kept=kept), replace(self.thinned, kept=kept)

    @property
    def hint(self) -> str:
        """What else may be wrong where nothing fits: axes that were swapped show nowhere else."""
        *space, times = self.windows.grid
        return "" if times not in space else " See that the last axis is time: a space axis has as many points."

    def smoothed(self) -> Array:
        """Return û of all fields at the samples, shape (n_x, …, n_t, fields)."""
        pairs = zip(self.splines, self._coefficients, strict=True)
        return np.stack([on_axes([one.basis for one in own.smoothers], values) for own, values in pairs], axis=-1)

    def jets(self, factors: Sequence[int] | None = None) -> Jets:
        """Return the derivatives of û on the grid, or at every d-th sample; they live as long as what is returned."""
        return Jets(partial(self._derivative, factors))

    def _derivative(self, factors: Sequence[int] | None, jet: Jet) -> Array:
        return self.splines[jet.field].derivative(self._coefficients[jet.field], jet.orders, factors)

    def sampled_jets(self) -> Jets:
        """Return the derivatives on the grid, with the samples themselves instead of û where û does not follow them."""
        smooth = self.jets()

        def is_raw(jet: Jet) -> bool:
            return jet.field in self.rough and not any(jet.orders)

        return Jets(
            lambda jet: self.rough[jet.field] if is_raw(jet) else smooth(jet),
            lambda jet: float(self.noise[jet.field]) ** 2 if is_raw(jet) else 0.0,
        )

    @cached_property
    def thinned_jets(self) -> Jets:
        """The derivatives of û on the thinned grid."""
        return self.jets(self.factors)

    def corrected_jets(self, errors: dict[int, Array]) -> Jets:
        """Return the derivatives of û_c = û − ê on the thinned grid, ê per field as spline coefficients."""

        def corrected(jet: Jet) -> Array:
            (index, orders), base = jet, self.thinned_jets(jet)
            return base - self.errors[index].derivative(errors[index], orders) if index in errors else base

        return Jets(corrected)


@dataclass(frozen=True)
class FieldWishes:
    """What users say of fields: coordinates, whether complex ones are split, known fields, and equations wanted."""

    space: Any = None
    split: bool = False
    known: Mapping[str, Any] | None = None
    equations: Sequence[str] | None = None


def read_fields(
    x: Any,
    t: Any,
    space: Any,
    names: Sequence[str] | None = None,
    time_unit: str | None = None,
    split: bool = False,
    known: Mapping[str, Any] | None = None,
) -> tuple[list[Fields], Clock]:
    """Return arrays, a list of them, or xarray objects as fields, one for every run, and how times are counted.

    xarray objects (a DataArray, or a Dataset of several fields) bring coordinates and names, where these are not given.
    Times may be numbers, dates, or the step between them, the same for all runs or a list; a known field is one array
    for all runs or a list. `split` parts complex fields.
    """
    axes = None
    if hasattr(x, "coords"):
        arrays = xarray_fields(x)
        *axes, time = arrays[0].dims
        coordinates = arrays[0].coords
        t = coordinates[time] if t is None and time in coordinates else t
        space = (
            [coordinates[axis] for axis in axes]
            if space is None and all(axis in coordinates for axis in axes)
            else space
        )
        own = [array.name for array in arrays]
        names = own if names is None and None not in own else names
        x = np.stack([np.ma.filled(array.to_masked_array(), np.nan) for array in arrays], axis=-1)
    if space is None or t is None:
        raise ValueError("Fields need space=(x₁, …), the coordinates of the space axes, and t, the times.")
    space = [space] if np.isscalar(space) or (isinstance(space, np.ndarray) and space.ndim == 1) else list(space)
    runs = list(x) if isinstance(x, list | tuple) and np.ndim(x[0]) > len(space) else [x]
    sizes = zip(space, np.shape(runs[0]), strict=False)  # a number is the distance of points
    space = [points * np.arange(size) if np.ndim(points) == 0 else points for points, size in sizes]
    if split:
        runs = [_parts(one, len(space) + 1) for one in runs]
        names = names if names is None or len(names) != 1 else None
    several = isinstance(t, list | tuple) and len(t) == len(runs) and np.ndim(t[0]) == 1
    times, clock = as_numbers(t if several else [t] * len(runs), time_unit)
    data = []
    for run, (one, when) in enumerate(zip(runs, times, strict=True)):
        given = {name: _of_run(name, values, run, len(runs)) for name, values in (known or {}).items()}
        stepped = np.ndim(when) == 0 and np.ndim(one) > len(space)
        data.append(
            Fields(one, space, when * np.arange(np.shape(one)[len(space)]) if stepped else when, names, axes, given)
        )
    if len({one.n_measured for one in data}) > 1:
        raise ValueError("All runs must have the same fields, in the same order.")
    return data, clock


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


def _axis_points(points: ArrayLike, name: str) -> Array:
    """Return the points of an axis; those that rounding alone keeps from being even are made so."""
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
            return even
    return array


def _even_grid(points: Array, name: str) -> Array | None:
    """Return the even grid on which splines are evaluated; None where the points are even."""
    even = np.linspace(points[0], points[-1], len(points))
    if np.ptp(np.diff(points)) <= UNIFORM * (even[1] - even[0]):
        return None
    block = max(len(points) // BLOCKS, 1)
    spans = points[block:] - points[:-block]
    if spans.max() > LARGEST_THINNING * spans.min():
        raise ValueError(
            f"{name} is {spans.max() / spans.min():.1f} times as dense in some places as in others; up to "
            f"{LARGEST_THINNING:g} times is allowed. Interpolate the fields to a uniform grid first, or cut the domain."
        )
    return even


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
    if not isinstance(values, list | tuple) or not len(values) or not hasattr(values[0], "shape"):
        return values
    if len(values) == n_runs:
        return values[run]
    if n_runs == 1:
        return values
    raise ValueError(
        f"The known field {name} is a list of {len(values)} arrays, and there are {n_runs} runs: give one array for "
        "each, or one that all have in common."
    )


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
