"""Rows of a stretch of a series: the linear operators V and D with D x = VΘ(x)ξ.

- Weak form: for a test function φ that vanishes with its derivatives at the ends of its window, −∫φ′x dt = ∫φ Θ(x)ξ dt.
  V holds φ and D holds −φ′ times quadrature weights: x and Θ(x) are splines through the samples, integrated exactly.
  Sums over the samples alone are biased where windows are narrow, by 4 % at a radius of two steps.
- Derivative form: V takes the rows, D is a difference matrix.
- Maps x_{i+1} = f(x_i): V takes all rows but the last, D all but the first.

Windows: φ(τ) = (1 − (τ/r)²)⁸ for |τ| ≤ r, centred at every sample, with radius r and r/2. The radius follows from the
data: r = 2√16/ω*, ω* the corner of the cumulated spectrum. Neighbouring windows overlap, so the rows are combined to
orthonormal ones: of D = UΛ^½Wᵀ the directions with λ > 1e-4 λ_max are kept, D ← Wᵀ, V ← Λ^-½UᵀV.

The rows D x_i = VΘ(x)ξ of one equation have noise that depends on its terms: they are whitened, and fitted at given
supports. Observed are x + e, e_l ~ N(0, s_l²). With an estimate ê and x̂ = x_obs − ê, to first order in e − ê

    D x_obs,i − V Σ_l J_l ê_l = VΘ(x̂)ξ + Σ_l L_l e_l,      J_l = ∂(Θξ)/∂x_l at x̂,  L_l = δ_il D − V diag(J_l),

so that the rows have the covariance

    C = Σ_l s_l² L_l L_lᵀ = s_i² DDᵀ − D diag(s_i²J_i)Vᵀ − V diag(s_i²J_i)Dᵀ + V diag(Σ_l s_l²J_l²)Vᵀ.

To second order, x̂ = x + δ, and δ = e − ê, of variance P, is uncorrelated with ê. J is taken at x̂ instead of x, so that
−Jδ + ½δᵀHδ, H the second derivatives, has the mean −½Σ_l P_l H_ll: Θ(x̂) reads Θ(x̂) − ½Σ_l P_l ∂²Θ/∂x_l² everywhere,
such as x² − P for x² (Hermite's forms). The trace of s²LᵀC⁻¹L is N: ê removes the share N/m of the noise of a state.

One pass: J at (x̂, ξ) → C = RRᵀ → A = R⁻¹VΘ(x̂), z → ξ by least squares on the support → ê_l = s_l² L_lᵀR⁻ᵀ(z − Aξ).
Passes are repeated until ξ settles. RSS/N is then the noise of the states in units of s, comparable between supports
although each has its own R. Fields do the same in their own way (`field_equation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import linalg, sparse
from scipy.interpolate import BSpline, make_interp_spline

from ardea.core.lazy import cached_property
from ardea.core.problem import Array, Index
from ardea.core.subsets import ROUNDING, Support
from ardea.dynamics.differences import (
    SPLINE_DEGREE,
    SPLINES_PER_GCV,
    SplineSmoother,
    bend_of,
    difference_matrix,
    spectral_derivative,
)
from ardea.dynamics.libraries import Library
from ardea.dynamics.search import EquationRows, RowsFit, log_fall
from ardea.dynamics.series import Series, noise_levels, spread
from ardea.dynamics.terms import CompiledTerms
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
# Twelve independent rows carry the three terms that a quarter of them allows (`core.problem.LARGEST_SHARE`).
FEWEST_EQUATION_ROWS = 12
# Settled: ξ moves by less than this share, and N ln RSS by less than what would change a comparison of supports.
# Measured (see `search`): ten times more and ten times less lead to the same 54 supports.
SETTLED, SETTLED_SCORE = 1e-3, 0.5
# Added to the diagonal of C, relative to its mean, against rounding. Measured: 1e-7 and 1e-11 lead to the same 54
# supports.
JITTER = 1e-9
# A convention: RSS below so many times what truncation error is estimated to leave is no evidence for a term. Measured:
# 1 and 16 lead to the same 54 supports.
FLOOR_MARGIN = 4.0
# A convention: second derivatives are differences over this many standard deviations of what ê leaves of the noise.
DIFFERENCE = 0.1


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
                f"least {FEWEST_ROWS}. Take more samples, or form='derivative'."
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


# Whitening


def given_equations(series: Sequence[Series], library: Library) -> list[GivenRows]:
    """Return the equations of all states where derivatives were given."""
    values = np.vstack([one.values for one in series])
    slopes = np.vstack([one.x_dot for one in series if one.x_dot is not None])
    sound = np.all(np.isfinite(values), axis=1) & np.all(np.isfinite(slopes), axis=1)
    theta = library.evaluate(values[sound])
    return [GivenRows(theta, slope) for slope in slopes[sound].T]


def state_equations(stretches: Sequence[Stretch], library: Library, discrete_time: bool = False) -> list[StateRows]:
    """Return the equations of all states over some stretches."""
    n_rows = sum(stretch.n_rows for stretch in stretches)
    if n_rows < FEWEST_EQUATION_ROWS:
        raise ValueError(
            f"The data give {n_rows} independent rows, too few to find an equation (at least {FEWEST_EQUATION_ROWS}): "
            "take more samples or longer series."
        )
    parts = [stretch.data for stretch in stretches]
    deviation = spread(parts)
    # Differences say nothing of the noise of a map.
    noise = np.where(deviation > 0, deviation, 1.0) if discrete_time else noise_levels(parts)
    excitation = np.full(len(noise), np.inf) if discrete_time else deviation / noise
    return [StateRows(stretches, library, state, noise, float(one)) for state, one in enumerate(excitation)]


class GivenRows(EquationRows):
    """The rows of an equation with derivatives given: y = Θ(x)ξ with white noise; nothing to whiten."""

    def __init__(self, theta: Array, y: Array) -> None:
        self.theta, self.y = theta, y
        self.n_rows, self.n_terms = theta.shape

    def system(self, fit: RowsFit) -> tuple[Array, Array]:
        """Return Θ and y."""
        return self.theta, self.y

    def passed(self, fit: RowsFit) -> RowsFit:
        """Return least squares on the support."""
        coefficients, residual = least_squares(self.theta[:, fit.support], self.y)
        floor = ROUNDING * float(self.y @ self.y)
        return RowsFit(fit.support, coefficients, float(residual @ residual), floor=floor, settled=True)


def least_squares(A: Array, z: Array) -> tuple[Array, Array]:
    """Return ξ and z − Aξ."""
    solution: Array = np.linalg.lstsq(A, z, rcond=None)[0].astype(float)
    return solution, z - A @ solution


class StateRows(EquationRows):
    """The rows of the equation of one state over all stretches; `noise` holds s of every state."""

    def __init__(
        self, stretches: Sequence[Stretch], library: Library, state: int, noise: Array, excitation: float = np.inf
    ) -> None:
        self.stretches, self.library, self.state, self.noise = list(stretches), library, state, noise
        self.n_terms = library.n_terms(self.stretches[0].data.values.shape[1])
        self.n_rows = sum(stretch.n_rows for stretch in self.stretches)
        self.noise_unit, self.excitation = float(noise[state]), excitation

    def system(self, fit: RowsFit) -> tuple[Array, Array]:
        """Return A and z of all candidate terms, whitened at a fit."""
        return _stacked([one.rows() for one in self._whitened(fit)])

    def passed(self, fit: RowsFit) -> RowsFit:
        """Return the fit after one more pass."""
        whitened = self._whitened(fit)
        if fit.errors:
            A, z = _stacked([one.rows(fit.support) for one in whitened])
        else:
            A, z = self._first_system[0][:, fit.support], self._first_system[1]
        if not (np.all(np.isfinite(A)) and np.all(np.isfinite(z))):
            raise np.linalg.LinAlgError
        coefficients, residual = least_squares(A, z)
        parts = np.split(residual, np.cumsum([one.stretch.n_rows for one in whitened])[:-1])
        errors = [one.state_errors(part) for one, part in zip(whitened, parts, strict=True)]
        floor = sum(one.floor for one in whitened)
        after = RowsFit(fit.support, coefficients, float(residual @ residual), errors, floor)
        return replace(after, settled=self._settled(fit, after))

    def _settled(self, before: RowsFit, after: RowsFit) -> bool:
        """Whether ξ hardly moves any more, and N ln RSS, by which supports are compared, neither."""
        moved = np.linalg.norm(after.coefficients - before.coefficients)
        if moved > SETTLED * np.linalg.norm(after.coefficients) or not np.isfinite(before.rss):
            return False
        return self.n_rows * abs(log_fall(before, after)) < SETTLED_SCORE

    def _whitened(self, fit: RowsFit) -> list[_WhitenedStretch]:
        if not fit.errors:
            return self._first
        pairs = zip(self.stretches, fit.errors, strict=True)
        return [_WhitenedStretch(self, stretch, fit, errors) for stretch, errors in pairs]

    # The pass that every fit from ξ = 0, ê = 0 begins with: J = 0, so C and A of all terms are the same for all.

    @cached_property
    def _first(self) -> list[_WhitenedStretch]:
        nothing = RowsFit((), np.empty(0), np.inf)
        return [_WhitenedStretch(self, one, nothing, np.zeros_like(one.data.x)) for one in self.stretches]

    @cached_property
    def _first_system(self) -> tuple[Array, Array]:
        return _stacked([one.rows() for one in self._first])


def _stacked(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    return np.vstack([A for A, _ in parts]), np.concatenate([z for _, z in parts])


def directional(library: Library, X: Array, coefficients: Array) -> Array:
    """Return ∂(Θξ)/∂x_l of one equation at every row, shape (rows, n_states); terms with ξ_i = 0 cost nothing."""
    support = np.flatnonzero(coefficients)
    reduced, numbers = library.slopes(X.shape[1], tuple(support.tolist()))
    return np.asarray(reduced.values(X.T).T @ (numbers @ coefficients[support]).reshape(-1, X.shape[1]))


@lru_cache(maxsize=2048)
def curved(library: Library, n_states: int, support: Support | None) -> list[tuple[int, Index, CompiledTerms]]:
    """Return for every state the places of terms (of all, or of a support) not linear in it, and these terms."""
    listed, places = library.listed(n_states), dict[int, list[int]]()
    chosen = tuple(range(len(listed))) if support is None else support
    for place, term in enumerate(listed[j] for j in chosen):
        for state in term.arguments:
            if any(state in reduced.arguments for _, reduced in term.derivative(state)):
                places.setdefault(state, []).append(place)
    return [
        (state, np.array(own), library.compiled(n_states, tuple(chosen[place] for place in own)))
        for state, own in places.items()
    ]


class _WhitenedStretch:
    """One stretch, whitened at a fit."""

    def __init__(self, of: StateRows, stretch: Stretch, fit: RowsFit, errors: Array) -> None:
        self.of, self.stretch, self.errors = of, stretch, errors
        self.values = replace(stretch.data, x=stretch.data.x - errors).values
        # P: s is the noise in units that RSS/N settles, and an upper bound where terms are missing.
        removed = (np.arange(len(of.noise)) == of.state) * stretch.n_rows / len(errors)
        scale = min(fit.rss / of.n_rows, 1.0) if np.isfinite(fit.rss) else 0.0
        self.left = scale * of.noise**2 * (1 - removed)
        self.slopes = self._slopes(fit)
        self.factor = linalg.cholesky(self._covariance(), lower=True, overwrite_a=True, check_finite=False)

    def _slopes(self, fit: RowsFit) -> Array:
        """Return J_l for all l, shape (m, n)."""
        if not np.any(fit.coefficients):
            return np.zeros_like(self.errors)
        xi = np.zeros(self.of.n_terms)
        xi[list(fit.support)] = fit.coefficients
        return directional(self.of.library, self.values, xi)[:, : self.errors.shape[1]]

    def _terms(self, support: Support | None = None) -> Array:
        """Return Θ(x̂) − ½ Σ_l P_l ∂²Θ/∂x_l², by second differences."""
        library, n_values, x = self.of.library, self.values.shape[1], self.values.T
        theta: Array = library.compiled(n_values, support).values(x)
        bent = np.zeros_like(theta)
        for state, places, terms in curved(library, n_values, support):
            if state < len(self.left) and self.left[state] > 0:
                shift = np.zeros((n_values, 1))
                shift[state] = DIFFERENCE * np.sqrt(self.left[state])
                bent[places] += terms.values(x + shift) + terms.values(x - shift) - 2 * theta[places]
        return (theta - bent / (2 * DIFFERENCE**2)).T

    @property
    def _own(self) -> tuple[Array, float]:
        """s_i²DDᵀ, and the variance of the rows' own error."""
        stretch, state = self.stretch, self.of.state
        return self.of.noise[state] ** 2 * stretch.gram_of_D, float(stretch.truncation[state])

    def _covariance(self) -> Array:
        stretch, weighted = self.stretch, self.of.noise**2 * self.slopes
        shared = np.sum(self.slopes * weighted, axis=1)
        half = (stretch.V * (0.5 * shared) - stretch.D * weighted[:, self.of.state]) @ stretch.V.T
        noise, own = self._own
        C = noise + half + half.T
        C.flat[:: len(C) + 1] += own + JITTER * np.trace(C) / len(C)
        return np.asarray(C)

    @property
    def floor(self) -> float:
        """RSS that truncation and rounding alone leave, at J = 0: large coefficients must not make it small."""
        (noise, own), N = self._own, self.stretch.n_rows
        rounding = ROUNDING * float(np.sum((self.stretch.D @ self.stretch.data.x[:, self.of.state]) ** 2))
        return float((FLOOR_MARGIN * N * own + rounding) / (own + np.trace(noise) / N))

    def rows(self, support: Support | None = None) -> tuple[Array, Array]:
        """Return A, of all terms or on a support, and z."""
        stretch, correction = self.stretch, np.einsum("il,il->i", self.slopes, self.errors)
        target = stretch.D @ stretch.data.x[:, self.of.state] - stretch.V @ correction
        stacked = np.column_stack([stretch.V @ self._terms(support), target])
        solved = linalg.solve_triangular(self.factor, stacked, lower=True, check_finite=False)
        return solved[:, :-1], solved[:, -1]

    def state_errors(self, residual: Array) -> Array:
        """Return ê_l = s_l² L_lᵀR⁻ᵀ(z − Aξ) of all states."""
        pulled = linalg.solve_triangular(self.factor, residual, lower=True, trans="T", check_finite=False)
        estimate = -self.slopes * (pulled @ self.stretch.V)[:, None]
        estimate[:, self.of.state] += pulled @ self.stretch.D
        return np.asarray(estimate * self.of.noise**2)
