"""The noise that rows of fields have from errors of the fields that lie in a space of splines.

Along an axis with even points the splines are orthonormal there, and what smoothing leaves of white noise is white in
them. Along one with uneven points they are orthonormal at these, and evaluated on an even grid. Between points far from
each other the smoothed field has more noise than a sample, up to many times as much, and where points are dense less.
With D the splines on the even grid, errors have the covariance s²DDᵀ along this axis instead of s²P.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ardea.core.lazy import cached_property
from ardea.core.problem import Array
from ardea.dynamics.differences import TensorSplines, along_axis, outer
from ardea.dynamics.terms import Orders
from ardea.dynamics.windows import Windows

# Derived: with so many samples per radius the sum of a product of two bumps, a Gaussian of a deviation of .18 radii, is
# right to 1e-6. Measured on kdv_burgers: whitened covariances move by less than 1e-3.
TIMES_PER_RADIUS = 5
# Measured on a field of 32³ × 50: with so many numbers of patches at once, 8 MB, sums are fastest.
MOST_NUMBERS = 2**20
# A convention: rounding is tried with so many shifts of a field.
SHIFTS = 8


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
            blocks += products[0, 0] @ _flat(within)
            if derived:
                blocks += products[0, 1] @ _flat(mixed)
                blocks += products[1, 0] @ _flat(mixed.transpose(0, 2, 1))
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


def rounding_noise(smooth: Array, unit: float, noise: float, windows: Windows) -> float:
    """Return the noise that rows show of rounded samples: s, or more where errors of rounding go on over many samples.

    The errors of a field û + δ are those that rounding makes of it and of noise beyond its own, unit²/12, δ spread over
    a unit. Summed against ∂φ along every axis, as rows do, they are as large as white noise of the size returned.

    Examples
    --------
    Values that hardly change are all rounded by the same amount:

    >>> from ardea.dynamics.windows import place_windows
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


def _flat(matrices: Array) -> Array:
    """Return one matrix per time as one row per time."""
    return matrices.reshape(len(matrices), -1)
