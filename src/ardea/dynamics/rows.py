"""Rows of a stretch of a series: the linear operators V and D with D x = VΘ(x)ξ.

- Weak form: for a test function φ that vanishes with its derivatives at the ends of its window, −∫φ′x dt = ∫φ Θ(x)ξ dt.
  V holds φ and D holds −φ′ times quadrature weights: x and Θ(x) are splines through the samples, integrated exactly.
  Sums over the samples alone are biased where windows are narrow, by 4 % at a radius of two steps.
- Derivative form: V takes the rows, D is a difference matrix.
- Maps x_{i+1} = f(x_i): V takes all rows but the last, D all but the first.

Windows: φ(τ) = (1 − (τ/r)²)⁸ for |τ| ≤ r, centred at every sample, with radius r and r/2. The radius follows from the
data: r = 2√16/ω*, ω* the corner of the cumulated spectrum. Neighbouring windows overlap, so the rows are combined to
orthonormal ones: of D = UΛ^½Wᵀ the directions with λ > 1e-4 λ_max are kept, D ← Wᵀ, V ← Λ^-½UᵀV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import linalg, sparse
from scipy.interpolate import BSpline, make_interp_spline

from ardea.core.problem import Array
from ardea.dynamics.differences import (
    SPLINE_DEGREE,
    SPLINES_PER_GCV,
    SplineSmoother,
    bend_of,
    difference_matrix,
    spectral_derivative,
)
from ardea.dynamics.series import Series
from ardea.names import counted

Form = Literal["trajectory", "weak", "derivative"]
Differentiation = Literal["finite", "smoothed", "spectral"]

# φ = (1 − s²)^p has p − 1 continuous derivatives. Measured (see `search`): with 4
# and 12 as many of the 54 supports are exact.
POWER = 8
# Radii of the windows relative to the one that the spectrum gives. Measured: of 54 supports 52 are exact with both, 47
# with the first alone, 50 with a third of 1/4.
RELATIVE_RADII = (1.0, 0.5)
# Rows of windows that overlap are dependent: directions below this share of the largest eigenvalue are left out.
# Measured: with 1e-3 one support more is exact of 54, with 1e-5 as many as with this.
KEPT_EIGENVALUE = 1e-4
# Fewer steps than this resolve φ badly; a window longer than this share of a stretch leaves too few rows of it.
# Measured: with 3 the same 54 supports, with a share of 1/3 one less is exact.
SMALLEST_RADIUS, LARGEST_SHARE = 4, 1 / 6
# Derived: the fewest samples that can be smoothed by splines of degree 7, to tell the truncation error.
FEWEST_ROWS = SPLINE_DEGREE + 2
# A convention: times are equal to so many digits.
ROUNDED = 1e-9
# Derived: so many points integrate φ times a spline exactly.
GAUSS_POINTS = (2 * POWER + SPLINE_DEGREE) // 2 + 1


@dataclass(frozen=True, eq=False)
class Stretch:
    """A stretch of a series without gaps, m samples, and its N rows D x = VΘ(x)ξ."""

    data: Series
    V: Array
    D: Array
    truncation: Array  # per state, the variance of the rows' own error, which noise in the states does not explain

    @property
    def n_rows(self) -> int:
        """Number of equations N."""
        return self.V.shape[0]

    @cached_property
    def gram_of_D(self) -> Array:
        """DDᵀ."""
        return self.D @ self.D.T


def corner_frequency(parts: Sequence[Series]) -> float:
    """Return ω*, where the cumulated mean |FFT| of the standardised states bends.

    The bend is the middle point of the two-segment line from the first to the last point of the curve that fits it
    best. Parts of different length add up, each weighted by its rows.
    """
    corners = []
    for part in parts:
        t, m = part.t, part.t.size
        even = np.linspace(t[0], t[-1], m)
        values = np.column_stack([np.interp(even, t, column) for column in part.x.T])
        deviation = values.std(axis=0)
        values = (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        spectrum = np.abs(np.fft.rfft(values * np.hanning(m)[:, None], axis=0)).mean(axis=1)[1:]
        step = (t[-1] - t[0]) / (m - 1)
        corners.append(2 * np.pi * (bend_of(np.cumsum(spectrum)) + 1) / (m * step))
    return float(np.average(corners, weights=[part.t.size for part in parts]))


def window_radius(parts: Sequence[Series]) -> float:
    """Return r in units of time: 2√16/ω*, at least 4 steps and at most a sixth of the longest stretch."""
    steps = np.concatenate([np.diff(part.t) for part in parts])
    step, longest = float(np.median(steps)), max(part.t.size for part in parts)
    radius = 2 * np.sqrt(2 * POWER) / (corner_frequency(parts) * step)
    return float(np.clip(round(radius), SMALLEST_RADIUS, max(SMALLEST_RADIUS, LARGEST_SHARE * longest))) * step


def stretch_rows(
    series: Sequence[Series],
    form: str = "weak",
    discrete_time: bool = False,
    differentiation: Differentiation = "finite",
    order: int = 6,
) -> list[Stretch]:
    """Cut series at their gaps, and make the rows of every stretch that is long enough."""
    parts = [part for one in series for part in one.stretches()]
    if discrete_time:
        built = [map_rows(part) for part in parts]
    elif form == "derivative":
        built = [derivative_rows(part, differentiation, order) for part in parts]
    else:
        long_enough = [part for part in parts if part.t.size >= FEWEST_ROWS]
        if not long_enough:
            longest = max((part.t.size for part in parts), default=0)
            raise ValueError(
                f"The longest stretch without a gap has {counted(longest, 'row')}; a window of the weak form needs at "
                "least "
                f"{FEWEST_ROWS}. Take more samples, or form='derivative'."
            )
        radius = window_radius(long_enough)
        built = [weak_rows(part, [radius * share for share in RELATIVE_RADII]) for part in long_enough]
    return [one for one in built if one is not None]


def weak_rows(data: Series, radii: Sequence[float]) -> Stretch | None:
    """Return orthonormal rows of windows of several radii; None where no window fits."""
    t = data.t
    room = np.minimum(t - t[0], t[-1] - t) + ROUNDED * (t[-1] - t[0])
    fitting = [radius for radius in radii if np.any(room >= radius)]
    if not fitting or t.size < FEWEST_ROWS:
        return None
    rows = [_windowed(t, t[room >= radius], radius) for radius in fitting]
    V, D = (np.vstack(blocks) for blocks in zip(*rows, strict=True))
    values, W = linalg.eigh(D.T @ D, check_finite=False)
    kept = values > KEPT_EIGENVALUE * values[-1]
    W, values = W[:, kept], values[kept]
    V, D = (D @ W).T @ V / values[:, None], np.ascontiguousarray(W.T)
    return Stretch(data, V, D, truncation(data, V, D, integrated=True))


def _window(scaled: Array) -> tuple[Array, Array]:
    """Return φ and dφ/ds at s = τ/r, zero outside |s| < 1."""
    inside = np.clip(1.0 - scaled**2, 0.0, None)
    return inside**POWER, -2 * POWER * scaled * inside ** (POWER - 1)


def _windowed(t: Array, centres: Array, radius: float) -> tuple[Array, Array]:
    """Return V and D of windows at some centres, of equal norm whatever their radius.

    Between samples x is a spline, x(τ) = B(τ)A⁻¹x with A = B(t), so V = ∫φB dτ A⁻¹, summed over Gauss points.
    """
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS_POINTS)
    half = np.diff(t) / 2
    where = ((t[:-1] + half)[:, None] + half[:, None] * nodes).ravel()
    mass = (half[:, None] * weights).ravel() / np.sqrt(radius * np.mean(2 * half))
    knots = make_interp_spline(t, t, k=SPLINE_DEGREE).t
    between, at_samples = (BSpline.design_matrix(one, knots, SPLINE_DEGREE) for one in (where, t))
    # Of every centre, the points inside its window: entries of a matrix with one row per window.
    first, last = np.searchsorted(where, centres - radius), np.searchsorted(where, centres + radius)
    starts = np.append(0, np.cumsum(last - first))
    inside = np.arange(starts[-1]) + np.repeat(first - starts[:-1], last - first)
    phi, slope = _window((where[inside] - np.repeat(centres, last - first)) / radius)
    both = [sparse.csr_array((one * mass[inside], inside, starts)) for one in (phi, -slope / radius)]
    moments = [(one @ between[: one.shape[1]]).toarray() for one in both]
    V, D = np.split(sparse.linalg.splu(at_samples.T.tocsc()).solve(np.vstack(moments).T).T, 2)
    return V, D


def derivative_rows(data: Series, kind: Differentiation, order: int) -> Stretch | None:
    """Return rows that are derivatives at every sample: differences, smoothing splines, or Fourier modes.

    Each is a matrix D, so the noise of neighbouring rows is known: s²DDᵀ. Slow components of the derivative carry
    almost no noise; there the truncation error decides.
    """
    t = data.t
    if t.size < max(order + 2, FEWEST_ROWS):
        return None
    if kind == "finite":
        D = difference_matrix(t.size, t, order=order).toarray()
    elif kind == "smoothed":
        smoother = SplineSmoother.fit(data.x, t, factor=1.0)
        D = smoother.derivative_basis(1) @ smoother.basis.T
    else:
        D = spectral_derivative(np.eye(t.size), t.size * (t[-1] - t[0]) / (t.size - 1))
    V = np.eye(t.size)
    return Stretch(data, V, D, truncation(data, V, D, integrated=False))


def map_rows(data: Series) -> Stretch | None:
    """Return the rows of a map: the state one step later against functions of the state now."""
    if data.t.size < 2:
        return None
    identity = np.eye(data.t.size)
    return Stretch(data, identity[:-1], identity[1:], np.zeros(data.x.shape[1]))


def truncation(data: Series, V: Array, D: Array, *, integrated: bool) -> Array:
    """Return the variance of the rows' own error, one number per state.

    x̃ is a spline of degree 7 through the data, smoothed, and x̃′ its exact derivative, so D x̃ − V x̃′ says how far the
    rows are from an identity, whatever the noise. Where terms are integrated too, those of higher degree vary faster:
    the relative error is that of all states, scaled alike, and of their squares, with derivative 2x̃x̃′.
    """
    smoother = SplineSmoother.fit(data.x, data.t, factor=1.0 if integrated else SPLINES_PER_GCV)
    smooth, slope = smoother.smooth(data.x), smoother.smooth(data.x, derivative=1)
    if not integrated:
        return np.asarray(np.mean((D @ smooth - V @ slope) ** 2, axis=0))
    deviation = smooth.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    unit, rate = (smooth - smooth.mean(axis=0)) / scale, slope / scale
    values, rates = np.hstack([unit, unit**2]), np.hstack([rate, 2 * unit * rate])
    relative = np.sum((D @ values - V @ rates) ** 2) / max(np.sum((V @ rates) ** 2), np.finfo(float).tiny)
    return np.asarray(relative * np.mean((V @ slope) ** 2, axis=0))
