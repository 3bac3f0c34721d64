"""Test functions on the grid of a field: where they sit, sums against them, and the covariance of weighted noise.

One test function is a product φ(x₁)…φ(t) with φ(i) = (1 − (i/r)²)⁸, |i| ≤ r, of unit norm, and one radius per axis.
Radii follow the data: r = 3√16/ω*, ω* the corner of the cumulated spectrum of the smoothed field along the axis, at
most a tenth of the axis, at least 6 points and 4 splines. Centres lie on a lattice of stride f·r, f = .35 or what
leaves about 500.

Many samples per radius add cost, not accuracy: sums of a smooth function against φ are exact to the smoothness of φ
with about ten samples per radius. So `place_windows` gives every test function twice: on the grid, and on the grid
thinned to every d-th sample of each axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from ardea.dynamics.field_columns import Orders
from ardea.dynamics.pieces import bend_of

Array = NDArray[np.float64]

POWER = 8
RADIUS_OVER_CORNER = 3 * np.sqrt(2 * POWER)
SMALLEST_RADIUS = 6
# Largest radius as a share of the axis: short axes else leave too few functions to tell terms apart.
LARGEST_SHARE = 1 / 10
# Splines per radius: narrower functions are not resolved by the splines, which take part of their noise away.
# Where this asks for wider functions than the largest share, it wins, up to a sixth of the axis.
SPLINES_PER_RADIUS, WIDEST_SHARE = 4.0, 1 / 6
# φ has POWER − 1 continuous derivatives; sums against its last one are rough.
HIGHEST_ORDER = POWER - 2
SMALLEST_STRIDE = 0.35
FUNCTIONS = 500
# Samples per radius that thinning leaves.
ENOUGH_SAMPLES = 10


@dataclass(frozen=True, eq=False)
class AxisWindows:
    """Test functions along one axis, in units of its samples.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    step : float
        Their distance.
    radius, stride, first : int
        Radius, distance of the centres, and the first centre.
    """

    n_samples: int
    step: float
    radius: int
    stride: int
    first: int

    @property
    def n_centres(self) -> int:
        """Number of centres."""
        return (self.n_samples - 1 - self.radius - self.first) // self.stride + 1

    @property
    def start(self) -> int:
        """First sample of the first window."""
        return self.first - self.radius

    @property
    def last_start(self) -> int:
        """First sample of the last window."""
        return self.start + (self.n_centres - 1) * self.stride

    @property
    def width(self) -> int:
        """Number of samples of a window."""
        return 2 * self.radius + 1

    @cached_property
    def _shapes(self) -> dict[int, Array]:
        return {}

    def shape(self, order: int) -> Array:
        """Return φ^(order) at the samples of a window; φ has unit norm."""
        if order not in self._shapes:
            self._shapes[order] = self._shape(order)
        return self._shapes[order]

    def _shape(self, order: int) -> Array:
        place = np.arange(-self.radius, self.radius + 1) / self.radius
        bump = np.polynomial.Polynomial([1.0, 0.0, -1.0]) ** POWER
        size = np.linalg.norm(bump(place))
        return np.asarray(bump.deriv(order)(place) / (size * (self.radius * self.step) ** order))

    def matrix(self, order: int) -> Array:
        """Return φ^(order) of all centres, shape (n_centres, n_samples)."""
        matrix = np.zeros((self.n_centres, self.n_samples))
        shape = self.shape(order)
        for row in range(self.n_centres):
            start = self.start + row * self.stride
            matrix[row, start : start + self.width] = shape
        return matrix

    def refined(self, factor: int, n_samples: int) -> AxisWindows:
        """Return the same test functions on an axis with `factor` times as many samples."""
        return AxisWindows(
            n_samples, self.step / factor, self.radius * factor, self.stride * factor, self.first * factor
        )


@dataclass(frozen=True, eq=False)
class Windows:
    """Test functions on a grid: space axes first, time last."""

    axes: tuple[AxisWindows, ...]

    @property
    def lattice(self) -> tuple[int, ...]:
        """Number of centres along every axis."""
        return tuple(axis.n_centres for axis in self.axes)

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of samples along every axis."""
        return tuple(axis.n_samples for axis in self.axes)

    @property
    def n_functions(self) -> int:
        """Number of test functions."""
        return prod(self.lattice)

    @cached_property
    def _matrices(self) -> dict[tuple[int, int], Array]:
        return {}

    def matrix(self, axis: int, order: int) -> Array:
        """Return φ^(order) of all centres of one axis."""
        if (axis, order) not in self._matrices:
            self._matrices[axis, order] = self.axes[axis].matrix(order)
        return self._matrices[axis, order]

    def tested_in_time(self, values: Array, order: int = 0) -> Array:
        """Return the sums of values on the grid against φ^(order) in time alone."""
        return along_axis(self.matrix(len(self.axes) - 1, order), values, values.ndim - 1)

    def tested_in_space(self, values: Array, orders: Orders) -> Array:
        """Return the sums of values, tested in time, against ∂^orders φ in space; shape (n_functions,).

        Functions are listed time centre by time centre.
        """
        for axis, order in enumerate(orders):
            values = along_axis(self.matrix(axis, order), values, axis)
        return np.moveaxis(values, -1, 0).ravel()

    def spread(self, weights: Array, orders: Orders) -> Array:
        """Return Σ_i weights_i ∂^orders φ_i on the grid; `orders` holds one order per axis, time last."""
        values = np.moveaxis(weights.reshape(self.lattice[-1], *self.lattice[:-1]), 0, -1)
        for axis, order in enumerate(orders):
            values = along_axis(self.matrix(axis, order).T, values, axis)
        return values


class NoiseCovariance:
    """Covariance of the rows for errors of one field that lie in a spline space: W P Wᵀ.

    With a the centre of a test function in space and c that in time, the weight of an error in a row is
    w = −(B_a φ_c + F_a φ_c'): B_a = Σ_j A_j ∂^j φ_a, and F_a = φ_a where the rows hold the time derivative of this
    field, else 0. Projected on the splines along space, B_a becomes Z_a(t) and F_a a constant. So space is summed
    first, M_aa*(t) = Z_aᵀZ_a* of all pairs, and then time, by products with φ_cφ_c*, φ_cφ'_c*, φ'_cφ_c* and φ'_cφ'_c*.
    The projection along time is left out: it would cost the product form, and takes little (rows of true models lose
    less than 1 % of their noise, those of the roughest ones 3 %).

    The projection matters: terms such as u⁴u_xxxx have weights so rough that white errors would explain any residual.
    Those errors are not there, since smoothing has taken them out.

    Parameters
    ----------
    windows : Windows
        Test functions.
    bases : sequence of ndarray
        Orthonormal columns per space axis: the splines at the samples.
    """

    def __init__(self, windows: Windows, bases: Sequence[Array]) -> None:
        self.windows = windows
        self._bases = [
            _in_windows(basis, axis).transpose(0, 2, 1) for basis, axis in zip(bases, windows.axes[:-1], strict=True)
        ]

    def upper(self, weights: Mapping[Orders, Array], derived: bool) -> Array:
        """Return the upper triangle of W P Wᵀ, shape (n_functions, n_functions); what stands below is not meant.

        Parameters
        ----------
        weights : mapping
            From orders j of the test function in space to A_j on the grid.
        derived : bool
            Whether the rows hold the time derivative of this field.
        """
        n_space, n_times = prod(self.windows.lattice[:-1]), self.windows.lattice[-1]
        first, second, products = self._time_pairs
        blocks = np.zeros((len(first), n_space * n_space))
        if weights:
            parts = self._projected(self._patches(weights)).reshape(n_space, -1, self.windows.axes[-1].n_samples)
            parts = np.ascontiguousarray(parts.transpose(2, 0, 1))
            blocks += products[0, 0] @ _flat(parts @ parts.transpose(0, 2, 1))
            if derived:
                mixed = parts @ self._bumps.T
                blocks += products[0, 1] @ _flat(mixed)
                blocks += products[1, 0] @ _flat(mixed.transpose(0, 2, 1))
        if derived:
            blocks += self._derived_blocks
        covariance = np.zeros((n_times, n_space, n_times, n_space))
        for i, j, block in zip(first, second, blocks.reshape(-1, n_space, n_space), strict=True):
            covariance[i, :, j] = block
        return covariance.reshape(self.windows.n_functions, self.windows.n_functions)

    def _patches(self, weights: Mapping[Orders, Array]) -> Array:
        """Return B_a in the space window of every space centre, shape (centres…, widths…, times)."""
        space = self.windows.axes[:-1]
        widths, centres = [axis.width for axis in space], [axis.n_centres for axis in space]
        total = np.zeros((*centres, *widths, self.windows.axes[-1].n_samples))
        places = tuple(slice(axis.start, axis.last_start + 1, axis.stride) for axis in space)
        for orders, weight in weights.items():
            seen = np.lib.stride_tricks.sliding_window_view(weight, widths, tuple(range(len(space))))[places]
            kernel = _outer([axis.shape(order) for axis, order in zip(space, orders, strict=True)])
            total += kernel[..., None] * np.moveaxis(seen, len(space), -1)
        return total

    def _projected(self, patches: Array) -> Array:
        """Return functions in space windows in terms of the splines: widths become numbers of splines."""
        n = len(self._bases)
        for axis, basis in enumerate(self._bases):
            moved = np.moveaxis(patches, (axis, n + axis), (0, 1))
            out = basis @ moved.reshape(*moved.shape[:2], -1)
            patches = np.moveaxis(out.reshape(*out.shape[:2], *moved.shape[2:]), (0, 1), (axis, n + axis))
        return patches

    @cached_property
    def _bumps(self) -> Array:
        """F_a in terms of the splines, shape (space centres, splines)."""
        space = self.windows.axes[:-1]
        bump = _outer([axis.shape(0) for axis in space])[..., None]
        everywhere = np.broadcast_to(bump, (*(axis.n_centres for axis in space), *bump.shape))
        return self._projected(everywhere).reshape(prod(self.windows.lattice[:-1]), -1)

    @cached_property
    def _derived_blocks(self) -> Array:
        _, _, products = self._time_pairs
        return np.outer(products[1, 1].sum(axis=1), self._bumps @ self._bumps.T)

    @cached_property
    def _time_pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], dict[tuple[int, int], Array]]:
        """Pairs c ≤ c* of time windows that overlap, and φ_c^(p) φ_c*^(q), p, q ≤ 1, as matrices (pairs, times)."""
        axis = self.windows.axes[-1]
        gaps = np.subtract.outer(np.arange(axis.n_centres), np.arange(axis.n_centres))
        first, second = np.nonzero((gaps <= 0) & (-gaps * axis.stride < axis.width))
        matrices = [self.windows.matrix(len(self.windows.axes) - 1, order) for order in (0, 1)]
        products = {(p, q): matrices[p][first] * matrices[q][second] for p in (0, 1) for q in (0, 1)}
        return first, second, products


def spectral_radii(fields: Sequence[Array], n_splines: Sequence[int]) -> tuple[float, ...]:
    """Return r of every axis in samples: 3√16/ω*, ω* the corner of the cumulated mean |FFT| of the smoothed fields.

    The fields are centred, scaled to unit deviation and tapered by Hann windows along all axes.

    Parameters
    ----------
    fields : sequence of ndarray
        Smoothed fields on one grid.
    n_splines : sequence of int
        How many splines the smoothest of them has along every axis.
    """
    shape = fields[0].shape
    taper = _outer([np.hanning(n) for n in shape])
    spectra = [np.zeros(n // 2) for n in shape]
    for field in fields:
        spread = float(field.std())
        tapered = taper * (field - field.mean()) / (spread if spread > 0 else 1.0)
        for axis in range(len(shape)):
            others = tuple(other for other in range(len(shape)) if other != axis)
            spectra[axis] += np.abs(np.fft.rfft(tapered, axis=axis)).mean(axis=others)[1:]
    radii = []
    for n, k, spectrum in zip(shape, n_splines, spectra, strict=True):
        corner = 2 * np.pi * (bend_of(np.cumsum(spectrum)) + 1) / n
        least = max(SMALLEST_RADIUS, min(SPLINES_PER_RADIUS * n / k, WIDEST_SHARE * n))
        radii.append(max(least, min(RADIUS_OVER_CORNER / corner, LARGEST_SHARE * n)))
    return tuple(radii)


def place_windows(
    shape: Sequence[int], steps: Sequence[float], radii: Sequence[float]
) -> tuple[Windows, Windows, tuple[int, ...]]:
    """Return the test functions on the grid, on the thinned grid, and by how much every axis is thinned.

    Parameters
    ----------
    shape : sequence of int
        Samples along every axis, time last.
    steps : sequence of float
        Their distances.
    radii : sequence of float
        Radii in samples.

    Examples
    --------
    >>> windows, thinned, factors = place_windows((100, 300), (0.1, 0.01), (8.0, 35.0))
    >>> factors, windows.lattice == thinned.lattice, [axis.radius for axis in windows.axes]
    ((1, 3), True, [8, 36])
    """
    short = [n for n, radius in zip(shape, radii, strict=True) if n < 2 * radius + 1]
    if short:
        raise ValueError(f"{short[0]} points along an axis are too few for test functions; give at least 13")
    room = prod((n - 2 * radius) / radius for n, radius in zip(shape, radii, strict=True))
    share = max(SMALLEST_STRIDE, (room / FUNCTIONS) ** (1 / len(shape)))
    factors = tuple(max(1, int(radius / ENOUGH_SAMPLES)) for radius in radii)
    thinned = []
    for n, step, radius, factor in zip(shape, steps, radii, factors, strict=True):
        samples, reach = (n - 1) // factor + 1, round(radius / factor)
        stride = max(1, round(share * radius / factor))
        left_over = (samples - 1 - 2 * reach) % stride
        thinned.append(AxisWindows(samples, factor * step, reach, stride, reach + left_over // 2))
    full = [axis.refined(factor, n) for axis, factor, n in zip(thinned, factors, shape, strict=True)]
    return Windows(tuple(full)), Windows(tuple(thinned)), factors


def _flat(matrices: Array) -> Array:
    """Return one matrix per time as one row per time."""
    return matrices.reshape(len(matrices), -1)


def _in_windows(values: Array, axis: AxisWindows) -> Array:
    """Return the rows of a matrix in every window, shape (centres, width, columns)."""
    starts = np.arange(axis.start, axis.last_start + 1, axis.stride)
    return values[starts[:, None] + np.arange(axis.width)]


def _outer(vectors: Sequence[Array]) -> Array:
    total = vectors[0]
    for vector in vectors[1:]:
        total = np.multiply.outer(total, vector)
    return total


def along_axis(matrix: Array, values: Array, axis: int) -> Array:
    """Return the values multiplied by a matrix along one axis."""
    if axis == values.ndim - 1:
        return values @ matrix.T
    shape = values.shape
    flat = values.reshape(prod(shape[:axis]), shape[axis], -1)
    return (matrix @ flat).reshape(*shape[:axis], len(matrix), *shape[axis + 1 :])
