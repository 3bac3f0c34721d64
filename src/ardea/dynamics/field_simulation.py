"""Simulation of one periodic field in one space dimension.

Exponential time differencing, fourth-order Runge–Kutta (Kassam & Trefethen 2005): for û_t = ℓû + N(û), with ℓ diagonal
in Fourier space, one step h with z = ℓh is

    a = e^{z/2} û + (h/2) φ(z/2) N(û)
    b = e^{z/2} û + (h/2) φ(z/2) N(a)
    c = e^{z/2} a + (h/2) φ(z/2) (2N(b) − N(û))
    û ← e^z û + h [f₁ N(û) + 2f₂ (N(a) + N(b)) + f₃ N(c)]

    φ(z) = (e^z − 1)/z,                          f₁ = (−4 − z + e^z(4 − 3z + z²))/z³,
    f₂ = (2 + z + e^z(−2 + z))/z³,               f₃ = (−4 − 3z − z² + e^z(4 − z))/z³.

These cancel badly near z = 0. They are entire functions, so each equals its mean over a circle around z (Cauchy),
where nothing cancels.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy import fft
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike, NDArray

from ardea.core.problem import Array
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.simulation import checked_start, checked_times, warn_stopped
from ardea.dynamics.terms import FieldTerm

Modes = NDArray[np.complex128]
# Points of the trapezoidal rule on the circle of radius 1; its error falls faster than any power of their number.
CIRCLE_POINTS = 64
# Convention: so many step lengths are remembered; evenly spaced times need a few.
MOST_TABLES = 64
# Convention: an interval between output times is cut into at most so many steps, about three seconds of work.
MOST_STEPS = 2**15
# A blow-up is looked for from so many steps on: with fewer, steps too long for the explicit part blow up as well
# (measured on the fields of `ardea.dynamics.systems`).
STEPS_OF_BLOW_UP = 64
# Convention: a field whose jump across the seam is this many times its largest jump inside is not periodic.
SEAM_FACTOR = 5.0
# Relative errors below this are rounding: about 500 units of it, one for each of some hundred steps.
ROUNDING = 1e-13
# Why a run ends: no number of steps will do, or |u| passed its limit.
STOPS = (
    "the step size collapsed at t = {t:.4g}: the solution is singular there",
    "|u| passed its limit near t = {t:.4g}: the model blows up",
)


class Weights(NamedTuple):
    """The exponentials and weights of one step length h, one value per Fourier mode."""

    half: Modes
    full: Modes
    inner: Modes
    first: Modes
    middle: Modes
    last: Modes

    @classmethod
    def of(cls, linear: Modes, h: float) -> Weights:
        """Return e^{z/2}, e^z, (h/2)φ(z/2), h f₁, 2h f₂, h f₃ at z = ℓh."""
        z = h * np.asarray(linear, dtype=complex)
        circle = np.exp(2j * np.pi * (np.arange(CIRCLE_POINTS) + 0.5) / CIRCLE_POINTS)
        r = z[..., None] + circle
        e = np.exp(r)
        return cls(
            half=np.exp(z / 2),
            full=np.exp(z),
            inner=h * np.mean((np.exp(r / 2) - 1) / r, axis=-1),
            first=h * np.mean((-4 - r + e * (4 - 3 * r + r**2)) / r**3, axis=-1),
            middle=2 * h * np.mean((2 + r + e * (-2 + r)) / r**3, axis=-1),
            last=h * np.mean((-4 - 3 * r - r**2 + e * (4 - r)) / r**3, axis=-1),
        )


class SpectralEquation:
    """u_t = Σ ξ_pq u^p ∂^q u for one field, periodic in one space dimension.

    Terms ∂^q u and u make up ℓ; the rest is evaluated on the grid and truncated where products alias: with the
    highest degree D of a product, modes from n/(D + 1) on are dropped from N. Terms with u_x are differentiated as a
    whole, u^p u_x = ∂(u^{p+1})/(p + 1), which keeps the mean exactly.

    Examples
    --------
    >>> library = FieldTerms(1, 2)
    >>> xi = [{"u_xx": 0.5, "u u_x": -1.0}.get(name, 0.0) for name in library.names()]
    >>> burgers = SpectralEquation(library, xi, n_x=32, length=2 * np.pi)
    >>> x = 2 * np.pi * np.arange(32) / 32
    >>> bool(np.allclose(burgers.derivative(np.sin(x)), -np.sin(x) * np.cos(x) - 0.5 * np.sin(x)))
    True
    """

    def __init__(self, library: FieldTerms, coefficients: ArrayLike, n_x: int, length: float) -> None:
        pairs = zip(library.terms(), np.ravel(np.asarray(coefficients, dtype=float)), strict=True)
        table = {_power_and_order(term): float(value) for term, value in pairs if value}
        self.n_x = n_x
        self._symbols = _symbols(n_x, length, max([1, *(order for _, order in table)]))
        self.linear = np.full(n_x // 2 + 1, table.get((1, 0), 0.0), dtype=complex)
        for (power, order), value in table.items():
            if power == 0 and order > 0:
                self.linear += value * self._symbols[order]
        rest = {(p, q): value for (p, q), value in table.items() if (p, q) != (1, 0) and (p > 0 or q == 0)}
        # N = ∂F(u) + Σ P_q(u) ∂^q u, for q = 0 and q ≥ 2.
        self._flux = _polynomial({p + 1: value / (p + 1) for (p, q), value in rest.items() if q == 1})
        self._factors = {
            order: _polynomial({p: value for (p, q), value in rest.items() if q == order})
            for order in dict.fromkeys(q for _, q in rest if q != 1)
        }
        degree = max((power + (order > 0) for power, order in table), default=1)
        self._first_aliased = int(np.ceil(n_x / (degree + 1)))
        self._weights = lru_cache(maxsize=MOST_TABLES)(partial(Weights.of, self.linear))

    def solve(self, u0: Array, t: Array, max_step: float) -> Array:
        """Return the field at the times, shape (n_x, n_t), by equal steps between them; a blow-up is a ValueError."""
        out = np.empty((self.n_x, len(t)))
        out[:, 0] = u0
        modes = fft.rfft(u0)
        for i, interval in enumerate(np.diff(t)):
            n_steps = int(np.ceil(interval / max_step - 1e-9))
            modes, left = self.advanced(modes, float(interval), n_steps, np.finfo(float).max)
            if left < np.inf:
                raise ValueError(f"the field blew up between t = {t[i]:g} and t = {t[i + 1]:g}; try a smaller max_step")
            out[:, i + 1] = self.field(modes)
        return out

    def advanced(self, modes: Modes, interval: float, n_steps: int, bound: float) -> tuple[Modes, float]:
        """Return the modes after equal steps over an interval, and when |u| passed its bound (inf: it did not)."""
        # Rounding in t must not count as another step length.
        weights = self._weights(float(f"{interval / n_steps:.12g}"))
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(n_steps):
                modes = self._step(modes, weights)
                if not self.largest(modes) <= bound:
                    return modes, interval * (i + 1) / n_steps
        return modes, np.inf

    def _step(self, modes: Modes, weights: Weights) -> Modes:
        """Return the modes one step later."""
        n_u = self.nonlinear(modes)
        half = weights.half * modes
        a = half + weights.inner * n_u
        n_a = self.nonlinear(a)
        n_b = self.nonlinear(half + weights.inner * n_a)
        n_c = self.nonlinear(weights.half * a + weights.inner * (2 * n_b - n_u))
        return weights.full * modes + weights.first * n_u + weights.middle * (n_a + n_b) + weights.last * n_c

    def nonlinear(self, modes: Modes) -> Modes:
        """Return N: everything that is not ℓ, along the last axis."""
        u = self.field(modes)
        total = np.zeros(modes.shape, dtype=complex)
        if self._flux:
            total = self._symbols[1] * fft.rfft(polyval(u, self._flux))
        if self._factors:
            total += fft.rfft(sum(self._product(order, modes, u) for order in self._factors))
        total[..., self._first_aliased :] = 0.0
        return total

    def _product(self, order: int, modes: Modes, u: Array) -> Array:
        """Return P_q(u) ∂^q u on the grid; the second factor is 1 for q = 0."""
        polynomial = polyval(u, self._factors[order])
        return np.asarray(polynomial * self.field(self._symbols[order] * modes) if order else polynomial)

    def field(self, modes: Modes) -> Array:
        """Return the field on the grid."""
        return np.asarray(fft.irfft(modes, n=self.n_x))

    def largest(self, modes: Modes) -> float:
        """Return the largest |u| on the grid."""
        return float(np.max(np.abs(self.field(modes))))

    def derivative(self, u: Array) -> Array:
        """Return u_t for a field of shape (n_x,) or (n_x, n_t)."""
        modes = fft.rfft(np.asarray(u, dtype=float).T)
        return self.field(self.linear * modes + self.nonlinear(modes)).T


def _power_and_order(term: FieldTerm) -> tuple[int, int]:
    """Return p and q of a term u^p ∂^q u."""
    powers = {jet.orders[0]: power for jet, power in term.factors}
    if term.derived_power or any(order and power > 1 for order, power in powers.items()):
        raise NotImplementedError("simulate() knows terms u^p ∂^q u only: fit without conservative=True.")
    return powers.get(0, 0), max(powers, default=0)


def _symbols(n_x: int, length: float, highest: int) -> list[Modes]:
    """Return (ik)^q, q = 0, 1, …; the highest mode of an even n has no odd derivative."""
    ik = np.asarray(2j * np.pi / length * np.arange(n_x // 2 + 1), dtype=complex)
    symbols = [np.asarray(ik**order, dtype=complex) for order in range(highest + 1)]
    if n_x % 2 == 0:
        for odd in symbols[1::2]:
            odd[-1] = 0.0
    return symbols


def _polynomial(coefficients: Mapping[int, float]) -> list[float]:
    """Return the coefficients of all powers, lowest first."""
    return [coefficients.get(power, 0.0) for power in range(max(coefficients, default=-1) + 1)]


def simulate_field(
    library: FieldTerms,
    coefficients: ArrayLike,
    u0: ArrayLike,
    x: ArrayLike,
    t: ArrayLike,
    *,
    limit: float,
    rtol: float = 1e-6,
) -> Array:
    """Integrate u_t = Σ ξ_pq u^p ∂^q u for one field, periodic in one space dimension, with steps that adapt.

    Every interval between output times is solved with n and with 2n steps; n doubles until a fifteenth of their
    difference, the error of the finer solution, is within the tolerance: the errors of all intervals add up to at most
    rtol times the largest |u|. The grid x covers one period, without the point that repeats the first.

    The result has shape (n_x, n_reached): fewer times, with a `SimulationWarning` that says why, if |u| passed the
    limit or became singular.

    Examples
    --------
    >>> library = FieldTerms(1, 2)
    >>> heat = [float(name == "u_xx") for name in library.names()]
    >>> x = 2 * np.pi * np.arange(16) / 16
    >>> u = simulate_field(library, heat, np.cos(x), x, [0.0, 1.0], limit=10.0)
    >>> bool(np.allclose(u[:, 1], np.exp(-1) * np.cos(x)))
    True
    """
    times, start = checked_times(t), checked_start(u0, limit)
    if start.ndim != 1:
        raise ValueError(f"u0 must be one field in one space dimension, of shape (n_x,), got {start.shape}")
    equation = SpectralEquation(library, coefficients, len(start), _checked_period(x, start))
    _check_well_posed(equation, float(times[-1] - times[0]))
    u = np.empty((len(start), len(times)))
    u[:, 0] = start
    modes, n_steps = fft.rfft(start), 1
    for i, interval in enumerate(np.diff(times)):
        size = float(np.max(np.abs(u[:, : i + 1])))
        tolerance = max(rtol * float(interval) / float(times[-1] - times[0]), ROUNDING)
        modes, n_steps, left = _interval(equation, modes, float(interval), n_steps, tolerance, size, limit)
        if left < np.inf:
            warn_stopped(STOPS[left > 0].format(t=float(times[i]) + left), i + 1, len(times))
            return u[:, : i + 1]
        u[:, i + 1] = equation.field(modes)
    return u


def _interval(
    equation: SpectralEquation, modes: Modes, interval: float, n_steps: int, rtol: float, size: float, limit: float
) -> tuple[Modes, int, float]:
    """Return the modes after an interval, the number of coarse steps to try in the next one, and when the run ends.

    That is inf if it goes on, 0 if no number of steps will do, and else when |u| passes its limit.
    """
    coarse, coarse_left = equation.advanced(modes, interval, n_steps, limit)
    while True:
        fine, fine_left = equation.advanced(modes, interval, 2 * n_steps, limit)
        if coarse_left == fine_left == np.inf:
            error, tolerance = equation.largest(fine - coarse) / 15, rtol * max(size, equation.largest(fine))
            if error <= tolerance:
                # Half as many steps would give about 16 times the error.
                return fine, max(1, n_steps // 2) if 32 * error < tolerance else n_steps, np.inf
        elif n_steps >= STEPS_OF_BLOW_UP and _agree(coarse_left, fine_left, interval / n_steps):
            return fine, n_steps, fine_left
        if n_steps >= MOST_STEPS:
            return fine, n_steps, 0.0
        coarse, coarse_left, n_steps = fine, fine_left, 2 * n_steps


def _agree(coarse: float, fine: float, step: float) -> bool:
    """Say whether two runs left their limit at one time; those with too long steps do so after a number of steps."""
    return 16 * step < fine < np.inf and abs(fine - coarse) <= 0.02 * fine + step


def _checked_period(x: ArrayLike, u0: Array) -> float:
    """Return the period of an evenly spaced grid on which the field goes on smoothly across the seam."""
    grid = np.asarray(x, dtype=float)
    if grid.shape != u0.shape or len(grid) < 4:
        raise ValueError(f"x must hold one position for each of the {len(u0)} values of u0 (at least 4)")
    steps = np.diff(grid)
    if not np.all(steps > 0) or np.ptp(steps) > 1e-4 * np.mean(steps):
        raise ValueError("x must be evenly spaced and ascending; interpolate u0 to such a grid")
    if abs(u0[0] - u0[-1]) > SEAM_FACTOR * np.max(np.abs(np.diff(u0))):
        raise ValueError(
            "u0 jumps from the last point of x to the first: simulate_field needs a periodic field over one period"
        )
    return float(np.mean(steps)) * len(grid)


def _check_well_posed(equation: SpectralEquation, duration: float) -> None:
    """Refuse a linear part that grows rounding errors at the highest wavenumber to order one."""
    growth = float(equation.linear[-1].real - equation.linear[0].real)
    if growth * duration > -np.log(np.finfo(float).eps):
        raise ValueError(
            f"the linear part is ill-posed: its derivatives grow the shortest waves of this grid by exp({growth:.3g} t)"
            ", so no solution can be computed; diffusion must be positive (u_xx) and u_xxxx negative"
        )
