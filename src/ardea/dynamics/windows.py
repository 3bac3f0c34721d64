"""Test functions on a grid, and the noise that rows of fields tested by them have.

One test function is a product φ(x₁)…φ(t) with φ(i) = (1 − (i/r)²)⁸, |i| ≤ r, of unit norm, and one radius per axis.
Radii follow the data: r = 3√16/ω*, ω* the corner of the cumulated spectrum of the smoothed field along the axis, at
most a tenth of the axis, at least 6 points and 4 splines. Centres lie on a lattice of stride f·r, f = .35 or what
leaves about 500.

Many samples per radius add cost, not accuracy: sums of a smooth function against φ are exact to the smoothness of φ
with about ten samples per radius. So `place_windows` gives every test function twice: on the grid, and on the grid
thinned to every d-th sample of each axis.

Errors of the fields lie in a space of splines, and what smoothing leaves of white noise is white in them. Along an axis
with uneven points they are orthonormal at these, and evaluated on an even grid: between points far from each other the
smoothed field has more noise than a sample, up to many times as much, and where points are dense less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy import linalg

from ardea.core.lazy import cached_property
from ardea.core.problem import Array
from ardea.dynamics.differences import TensorSplines, along_axis, bend_of, outer
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
# Each is a row of an equation. Twelve rows carry the three terms that a quarter of them allows
# (`core.problem.LARGEST_SHARE`); with fewer than twenty hardly any model can be told from another (a convention).
FEWEST_FUNCTIONS, FEW_FUNCTIONS = 12, 20
# Measured: with so many samples per radius, sums of smooth fields are exact to 1e-8.
ENOUGH_SAMPLES = 10
# Measured on waves of up to two periods per radius: sums by parts that are exact for polynomials of this degree are
# right to 1e-6, and few samples leave as many numbers free as they need to stay as smooth. Equations for polynomials
# are solved to this share.
EXACT_DEGREE, LEAST_FREE, ROUNDING = 20, 5, 1e-13
# A test function may have this share of its weight where the field is unknown. Derived: that of its last fifth, where
# even its fourth derivative is 1e-2 of its largest.
LARGEST_UNKNOWN = 1e-5
# Derived: with so many samples per radius the sum of a product of two bumps, a Gaussian of a deviation of .18 radii, is
# right to 1e-6. Measured on kdv_burgers: whitened covariances move by less than 1e-3.
TIMES_PER_RADIUS = 5
# Measured on a field of 32³ × 50: with so many numbers of patches at once, 8 MB, sums are fastest.
MOST_NUMBERS = 2**20
# Conventions: values nearer than this share of their range are the same, and steps that are whole numbers of the least
# of them within this much are those of rounded values.
SAME_VALUE, WHOLE = 1e-9, 0.01
# A convention: rounding is tried with so many shifts of a field.
SHIFTS = 8


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

    def within(self, known: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the test functions that weigh no place but those that are known."""
        places, plain = np.stack([~known, np.ones(self.grid)]), (0,) * (known.ndim - 1)
        unknown, whole = (self.tested_in_space(self.tested_in_time(one), plain) for one in places)
        return np.flatnonzero(unknown <= LARGEST_UNKNOWN * whole)

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
    radii = []
    for n, splines, spectrum in zip(shape, n_splines, spectra, strict=True):
        corner = 2 * np.pi * (bend_of(np.cumsum(spectrum)) + 1) / n
        resolved = max(SPLINES_PER_RADIUS * n / splines, ENOUGH_SAMPLES)
        least = max(SMALLEST_RADIUS, min(resolved, WIDEST_SHARE * n))
        radii.append(float(max(least, min(RADIUS_OVER_CORNER / corner, LARGEST_SHARE * n))))
    return tuple(radii)


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


# Noise


class NoiseCovariance:
    """Covariance W P Wᵀ of the rows for errors of one field that lie in a space of splines.

    With a the centre of a test function in space and c that in time, the weight of an error in a row is
    w = −(B_a φ_c + F_a ψ_c): B_a = Σ_j A_j ∂^j φ_a, ψ_c = (−1)^(m+1) φ_c^(m), and F_a = φ_a where the rows hold the
    m-th time derivative of this field, else 0. Projected on the splines along space, B_a becomes Z_a(t) and F_a a
    constant. So space is summed first, M_aa*(t) = Z_aᵀZ_a* of all pairs, and then time, by products with φ_cφ_c*,
    φ_cψ_c*, ψ_cφ_c* and ψ_cψ_c*.
    The projection along time is left out: it would cost the product form, and takes little (rows of true models lose
    less than 1 % of their noise, those of the roughest ones 3 %). M varies slowly and products of two bumps are near
    Gaussian, so a few of the times, every d-th, are summed.

    Where times are uneven, φ_c and ψ_c are multiplied by the root L = QSQᵀ of the covariance along time (see
    `noise_roots`): Σ_t M_aa*(t) (Lφ_c)(t) (Lφ_c*)(t) is what it should be where M is constant, and never negative.
    Its products are rough, so all times are summed, in groups of d. Terms that are linear with a coefficient of one
    value have weights that do not change: M is then taken once.

    The projection matters: terms such as u⁴u_xxxx have weights so rough that white errors would explain any residual.
    Those errors are not there, since smoothing has taken them out.
    """

    def __init__(
        self, windows: Windows, splines: TensorSplines, order: int = 1, roots: Sequence[Array | None] | None = None
    ) -> None:
        self.windows, self.order, self._splines = windows, order, splines
        self._roots = [None] * len(windows.axes) if roots is None else list(roots)
        self._every = max(1, windows.axes[-1].radius // TIMES_PER_RADIUS)
        # The splines at the samples of every window, shape (windows, splines, width), per space axis.
        self._bases = [
            (smoother.basis if root is None else smoother.basis @ root)[
                axis.starts[:, None] + np.arange(axis.width)
            ].transpose(0, 2, 1)
            for axis, smoother, root in zip(windows.axes[:-1], splines.smoothers[:-1], self._roots[:-1], strict=True)
        ]

    def upper(self, weights: Mapping[Orders, Array], derived: bool) -> Array:
        """Return the upper triangle, shape (n_functions, n_functions); what stands below is not meant.

        `weights` maps orders j of the test function in space to A_j on the grid; `derived` says whether the rows hold
        the time derivative of this field.
        """
        n_space, n_times = prod(self.windows.lattice[:-1]), self.windows.lattice[-1]
        first, second, products = self._time_pairs
        blocks = np.zeros((len(first), n_space * n_space))
        if weights:
            still = all(weight.strides[-1] == 0 for weight in weights.values())  # then one time stands for all
            few = {
                orders: weight[..., :1] if still else weight[..., :: self._every] for orders, weight in weights.items()
            }
            products = {key: one.sum(axis=1, keepdims=True) for key, one in products.items()} if still else products
            within, mixed = self._summed_over_space(few, products[0, 0].shape[1], derived)
            blocks += products[0, 0] @ within.reshape(len(within), -1)
            if derived:
                blocks += products[0, 1] @ mixed.reshape(len(mixed), -1)
                blocks += products[1, 0] @ mixed.transpose(0, 2, 1).reshape(len(mixed), -1)
        if derived:
            blocks += self._derived_blocks
        covariance = np.zeros((n_times, n_space, n_times, n_space))
        for i, j, block in zip(first, second, blocks.reshape(-1, n_space, n_space), strict=True):
            covariance[i, :, j] = block
        full, kept = covariance.reshape(n_times * n_space, n_times * n_space), self.windows.kept
        return full if kept is None else full[np.ix_(kept, kept)]

    def _summed_over_space(self, weights: Mapping[Orders, Array], n_times: int, derived: bool) -> tuple[Array, Array]:
        """Return Z_aᵀZ_a* and Z_aᵀF_a* of all pairs, one matrix per time; few times at once are in memory."""
        n_space = prod(self.windows.lattice[:-1])
        within, mixed = (np.zeros((n_times, n_space, n_space)) for _ in range(2))
        step = max(1, int(MOST_NUMBERS // self._bumps.size))
        for part in (slice(first, first + step) for first in range(0, n_times, step)):
            patches = self._patches({orders: weight[..., part] for orders, weight in weights.items()})
            parts = self._projected(patches).reshape(n_space, -1, patches.shape[-1])
            parts = np.ascontiguousarray(parts.transpose(2, 0, 1))
            for time, one in zip(range(n_times)[part], parts, strict=True):
                within[time] = one @ one.T  # half the work of a stack of products
            if derived:
                mixed[part] = parts @ self._bumps.T
        return within, mixed

    def _patches(self, weights: Mapping[Orders, Array]) -> Array:
        """Return B_a in the space window of every space centre, shape (centres…, widths…, times)."""
        space = self.windows.axes[:-1]
        widths, centres = [axis.width for axis in space], self.windows.lattice[:-1]
        total = np.zeros((*centres, *widths, next(iter(weights.values())).shape[-1]))
        places = tuple(slice(axis.starts[0], axis.starts[-1] + 1, axis.stride) for axis in space)
        for orders, weight in weights.items():
            seen = np.lib.stride_tricks.sliding_window_view(weight, widths, tuple(range(len(space))))[places]
            kernel = outer([axis.shapes[order] for axis, order in zip(space, orders, strict=True)])
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
        bump = outer([axis.shapes[0] for axis in space])[..., None]
        everywhere = np.broadcast_to(bump, (*self.windows.lattice[:-1], *bump.shape))
        return self._projected(everywhere).reshape(prod(self.windows.lattice[:-1]), -1)

    @cached_property
    def _derived_blocks(self) -> Array:
        _, _, products = self._time_pairs
        return np.outer(products[1, 1].sum(axis=1), self._bumps @ self._bumps.T)

    @cached_property
    def _time_pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], dict[tuple[int, int], Array]]:
        """Pairs c ≤ c* of time windows that overlap, and d times products of φ (0) and ψ (1), (pairs, few times)."""
        axis, every, root = self.windows.axes[-1], self._every, self._roots[-1]
        gaps = np.subtract.outer(axis.starts, axis.starts)
        both = [sign * axis.matrices[q] for sign, q in ((1, 0), ((-1) ** (self.order + 1), self.order))]
        if root is None:
            first, second = np.nonzero((gaps <= 0) & (-gaps < axis.width))
            few = [matrix[:, ::every] for matrix in both]
            products = {(p, q): every * few[p][first] * few[q][second] for p in (0, 1) for q in (0, 1)}
            return first, second, products
        basis = self._splines.smoothers[-1].basis
        first, second = np.nonzero(gaps <= 0)  # errors of windows that do not overlap depend on each other, too
        rough = [matrix @ basis @ root @ basis.T for matrix in both]
        edges = np.maximum(np.arange(0, axis.n_samples, every) - every // 2, 0)
        products = {
            (p, q): np.add.reduceat(rough[p][first] * rough[q][second], edges, axis=1) for p in (0, 1) for q in (0, 1)
        }
        return first, second, products

    def estimated(self, values: Array) -> Array:
        """Return errors on the grid times their covariance in units of s², as spline coefficients."""
        coefficients = self._splines.coefficients(values)
        for axis, root in enumerate(self._roots):
            coefficients = coefficients if root is None else along_axis(root @ root, coefficients, axis)
        return coefficients


def unit_of(values: Array) -> float:
    """Return the unit to which all values are rounded, 0 if to none.

    Examples
    --------
    >>> wave = np.sin(np.arange(50.0))
    >>> round(unit_of(wave.round(2)), 12), unit_of(wave)
    (0.01, 0.0)
    """
    steps = np.diff(np.unique(values[np.isfinite(values)]))
    steps = steps[steps > SAME_VALUE * steps.sum()]
    units = steps / steps.min()
    return float(steps.min()) if np.abs(units - np.round(units)).max() < WHOLE else 0.0


def rounding_noise(smooth: Array, unit: float, noise: float, windows: Windows) -> float:
    """Return the noise that rows show of rounded samples: s, or more where errors of rounding go on over many samples.

    The errors of a field û + δ are those that rounding makes of it and of noise beyond its own, unit²/12, δ spread over
    a unit. Summed against ∂φ along every axis, as rows do, they are as large as white noise of the size returned.

    Examples
    --------
    Values that hardly change are all rounded by the same amount:

    >>> windows, _, _ = place_windows((60, 60), (1.0, 1.0), (8.0, 8.0))
    >>> slow, fast = np.add.outer(np.arange(60.0), np.arange(60.0)) / 40, np.random.default_rng(0).normal(size=(60, 60))
    >>> [bool(rounding_noise(field, 1.0, 12**-0.5, windows) > 0.5) for field in (slow, 9 * fast)]
    [True, False]
    """
    rng, beyond = np.random.default_rng(0), np.sqrt(max(noise**2 - unit**2 / 12, 0.0))
    orders = np.eye(smooth.ndim, dtype=int)
    squares = np.zeros(len(orders))
    for shift in (np.arange(SHIFTS) + 0.5) / SHIFTS * unit:
        moved = smooth + shift
        errors = np.round((moved + beyond * rng.normal(size=smooth.shape)) / unit) * unit - moved
        for i, order in enumerate(map(tuple, orders.tolist())):
            tested = windows.tested_in_space(windows.tested_in_time(errors, order[-1]), order[:-1])
            norm = prod(float(np.linalg.norm(one.shapes[q])) for one, q in zip(windows.axes, order, strict=True))
            squares[i] += np.mean((tested / norm) ** 2) / SHIFTS
    return max(noise, float(np.sqrt(squares.max())))


def noise_roots(splines: TensorSplines, errors: TensorSplines, factors: Sequence[int]) -> list[Array | None]:
    """Return S for every axis, SSᵀ the covariance of errors in units of s² in terms of thinned splines.

    None where the points are even: SSᵀ is the identity there. `splines` are those of û, `errors` those on every d-th
    point of the even grid, d in `factors`. With D the former and Q the latter on the whole grid, an error Dz is about
    Q(QᵀQ)⁻¹QᵀDz, and sums over every d-th point are √d times smaller. S is the symmetric root, which is the most local.

    Examples
    --------
    Noise between two points 8 steps apart:

    >>> from ardea.dynamics.differences import SplineSmoother
    >>> t = np.delete(np.arange(40.0), np.arange(12, 19))
    >>> even = np.linspace(0, 39, 33)
    >>> own = TensorSplines([SplineSmoother(t, 24, even)])
    >>> (root,) = noise_roots(own, own.thinned((1,)), (1,))
    >>> basis = own.thinned((1,)).smoothers[0].basis
    >>> variance = np.sum((basis @ root) ** 2, axis=1)
    >>> bool(variance[(even > 14) & (even < 16)].min() > 2 > 1 > variance[25:30].max())
    True
    """
    roots = list[Array | None]()
    for own, thin, factor in zip(splines.smoothers, errors.smoothers, factors, strict=True):
        if own.at is None:
            roots.append(None)
            continue
        inside = slice((len(thin.points) - 1) * factor + 1)
        fine = replace(thin, at=own.at[inside]).derivative_basis(0)
        coefficients = np.sqrt(factor) * np.linalg.lstsq(fine, own.derivative_basis(0)[inside], rcond=None)[0]
        values, vectors = linalg.eigh(coefficients @ coefficients.T)
        roots.append((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
    return roots
