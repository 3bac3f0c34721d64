"""Test functions on a grid.

One test function is a product φ(x₁)…φ(t) with φ(i) = (1 − (i/r)²)⁸, |i| ≤ r, of unit norm, and one radius per axis.
Radii follow the data: r = 3√16/ω*, ω* the corner of the cumulated spectrum of the smoothed field along the axis, at
most a tenth of the axis, at least 6 points and 4 splines. Centres lie on a lattice of stride f·r, f = .35 or what
leaves about 500.

Many samples per radius add cost, not accuracy: sums of a smooth function against φ are exact to the smoothness of φ
with about ten samples per radius. So `place_windows` gives every test function twice: on the grid, and on the grid
thinned to every d-th sample of each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from ardea.core.lazy import cached_property
from ardea.core.problem import Array
from ardea.dynamics.differences import along_axis, bend_of, outer
from ardea.dynamics.terms import Orders

# Convention: the test function that trajectories have too.
POWER = 8
# Derived: φ has POWER − 1 continuous derivatives, and sums against the last one are rough.
HIGHEST_ORDER = POWER - 2
# Measured, as the next six: most exact supports on the equations of `systems` at noise of .1 to 25 %.
RADIUS_OVER_CORNER = 3 * np.sqrt(2 * POWER)
SMALLEST_RADIUS = 6
# Largest radius as a share of the axis: short axes else leave too few functions to tell terms apart.
LARGEST_SHARE = 1 / 10
# Splines per radius: narrower functions are not resolved by the splines, which take part of their noise away.
# Where this asks for wider functions than the largest share, it wins, up to a sixth of the axis.
SPLINES_PER_RADIUS, WIDEST_SHARE = 4.0, 1 / 6
# Derived: so many splines along an axis resolve the widest functions. With 16 the rows of right equations show 5 % less
# noise than the fields have.
FEWEST_SPLINES = round(SPLINES_PER_RADIUS / WIDEST_SHARE)
SMALLEST_STRIDE = 0.35
FUNCTIONS = 500
# Measured: with so many samples per radius, sums of smooth fields are exact to 1e-8.
ENOUGH_SAMPLES = 10
# Measured on waves of up to two periods per radius: sums by parts that are exact for polynomials of this degree are
# right to 1e-6, and few samples leave as many numbers free as they need to stay as smooth. Equations for polynomials
# are solved to this share.
EXACT_DEGREE, LEAST_FREE, ROUNDING = 20, 5, 1e-13


@dataclass(frozen=True, eq=False)
class AxisWindows:
    """Test functions along one axis: radius, distance of the centres and first centre in units of its samples."""

    n_samples: int
    step: float
    radius: int
    stride: int
    first: int

    @property
    def width(self) -> int:
        """Number of samples of a window."""
        return 2 * self.radius + 1

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """First sample of every window."""
        return np.arange(self.first - self.radius, self.n_samples - self.width + 1, self.stride)

    @cached_property
    def shapes(self) -> list[Array]:
        """φ and its derivatives up to the highest order at the samples of a window; φ has unit norm.

        Sums against samples of φ⁗ are wrong by 9 % for long waves and ten samples per radius. So φ times a polynomial
        is added to every derivative, such that sums by parts are exact for all polynomials p of a degree,
        Σ φ^(q) p = (−1)^q Σ φ p^(q): 2e-6 is left. Where an equation holds at the samples, rows have no other error.
        """
        place = np.arange(-self.radius, self.radius + 1) / self.radius
        bump = np.polynomial.Polynomial([1.0, 0.0, -1.0]) ** POWER
        size, length = np.linalg.norm(bump(place)), self.radius * self.step
        phi, *others = [bump.deriv(q)(place) / size for q in range(HIGHEST_ORDER + 1)]
        degree = min(EXACT_DEGREE, self.width - LEAST_FREE)
        powers, units = legendre.legvander(place, degree), np.eye(degree + 1)
        gram, shapes = powers.T @ (phi[:, None] * powers), [phi]
        for q, shape in enumerate(others, 1):
            derived = legendre.legval(place, legendre.legder(units, q, axis=0))
            lack = (-1) ** q * derived @ phi - powers.T @ shape
            added = phi * (powers @ np.linalg.lstsq(gram, lack, rcond=ROUNDING)[0])
            exact = shape + added
            exact -= phi * (exact.sum() / phi.sum())  # a large constant would show what rounding leaves of its sum
            shapes.append(exact / length**q)
        return shapes

    @cached_property
    def matrices(self) -> list[Array]:
        """The same of all windows, each of shape (windows, n_samples)."""
        matrices = np.zeros((HIGHEST_ORDER + 1, len(self.starts), self.n_samples))
        for order, shape in enumerate(self.shapes):
            for row, start in enumerate(self.starts):
                matrices[order, row, start : start + self.width] = shape
        return list(matrices)


@dataclass(frozen=True, eq=False)
class Windows:
    """Test functions on a grid: space axes first, time last. They are listed time window by time window."""

    axes: tuple[AxisWindows, ...]
    kept: NDArray[np.intp] | None = None  # those of the lattice that are used; None: all

    @property
    def lattice(self) -> tuple[int, ...]:
        """Number of windows along every axis."""
        return tuple(len(axis.starts) for axis in self.axes)

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of samples along every axis."""
        return tuple(axis.n_samples for axis in self.axes)

    @property
    def n_functions(self) -> int:
        """Number of test functions."""
        return prod(self.lattice) if self.kept is None else len(self.kept)

    def tested_in_time(self, values: Array, order: int = 0) -> Array:
        """Return the sums of values on the grid against φ^(order) in time alone."""
        return along_axis(self.axes[-1].matrices[order], values, values.ndim - 1)

    def tested_in_space(self, values: Array, orders: Orders) -> Array:
        """Return the sums of values, tested in time, against ∂^orders φ in space; shape (n_functions,)."""
        for axis, order in enumerate(orders):
            values = along_axis(self.axes[axis].matrices[order], values, axis)
        tested = np.moveaxis(values, -1, 0).ravel()
        return tested if self.kept is None else tested[self.kept]

    def spread(self, weights: Array, orders: Orders) -> Array:
        """Return Σ_i weights_i ∂^orders φ_i on the grid; `orders` holds one order per axis, time last."""
        if self.kept is not None:
            some, weights = weights, np.zeros(prod(self.lattice))
            weights[self.kept] = some
        values = np.moveaxis(weights.reshape(self.lattice[-1], *self.lattice[:-1]), 0, -1)
        for axis, order in enumerate(orders):
            values = along_axis(self.axes[axis].matrices[order].T, values, axis)
        return values


def spectral_radii(
    fields: Sequence[Array], n_splines: Sequence[int], known: Sequence[NDArray[np.bool_] | None] | None = None
) -> tuple[float, ...]:
    """Return r of every axis in samples: 3√16/ω*, ω* the corner of the cumulated mean |FFT| of the smoothed fields.

    The fields are centred, scaled to unit deviation and tapered by Hann windows along all axes. `n_splines` says how
    many splines the smoothest of them has along every axis, `known` where a field is known, None for everywhere: of
    the lines along an axis those with the fewest gaps are taken.
    """
    shape = fields[0].shape
    taper = outer([np.hanning(n) for n in shape])
    spectra = [np.zeros(n // 2) for n in shape]
    for field, where in zip(fields, known or [None] * len(fields), strict=True):
        inside = np.ones(shape, dtype=bool) if where is None else where
        spread = float(field[inside].std())
        tapered = taper * inside * (field - field[inside].mean()) / (spread if spread > 0 else 1.0)
        for axis in range(len(shape)):
            gaps = np.count_nonzero(~inside, axis=axis)
            lines = np.moveaxis(tapered, axis, -1)[gaps == gaps.min()]
            spectra[axis] += np.abs(np.fft.rfft(lines)).mean(axis=0)[1:]
    return tuple(_radius(*axis) for axis in zip(shape, n_splines, spectra, strict=True))


def _radius(n: int, n_splines: int, spectrum: Array) -> float:
    corner = 2 * np.pi * (bend_of(np.cumsum(spectrum)) + 1) / n
    resolved = max(SPLINES_PER_RADIUS * n / n_splines, ENOUGH_SAMPLES)
    least = max(SMALLEST_RADIUS, min(resolved, WIDEST_SHARE * n))
    return float(max(least, min(RADIUS_OVER_CORNER / corner, LARGEST_SHARE * n)))


def place_windows(
    shape: Sequence[int], steps: Sequence[float], radii: Sequence[float]
) -> tuple[Windows, Windows, tuple[int, ...]]:
    """Return the test functions on the grid, on the thinned grid, and by how much every axis is thinned.

    Given are the samples along every axis, time last, their distances, and radii in samples.

    Examples
    --------
    >>> windows, thinned, factors = place_windows((100, 300), (0.1, 0.01), (8.0, 35.0))
    >>> factors, windows.lattice == thinned.lattice, [axis.radius for axis in windows.axes]
    ((1, 3), True, [8, 36])
    """
    room = prod((n - 2 * radius) / radius for n, radius in zip(shape, radii, strict=True))
    share = max(SMALLEST_STRIDE, (room / FUNCTIONS) ** (1 / len(shape)))
    full, thinned, factors = [], [], []
    for n, step, radius in zip(shape, steps, radii, strict=True):
        factor = max(1, int(radius / ENOUGH_SAMPLES))
        samples, reach, stride = (n - 1) // factor + 1, round(radius / factor), max(1, round(share * radius / factor))
        first = reach + (samples - 1 - 2 * reach) % stride // 2
        thinned.append(AxisWindows(samples, factor * step, reach, stride, first))
        full.append(AxisWindows(n, step, factor * reach, factor * stride, factor * first))
        factors.append(factor)
    return Windows(tuple(full)), Windows(tuple(thinned)), tuple(factors)
