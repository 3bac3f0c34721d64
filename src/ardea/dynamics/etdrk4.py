"""Exponential time differencing, fourth-order Runge–Kutta, for periodic fields (Kassam & Trefethen 2005).

For û_t = ℓû + N(û), with ℓ diagonal in Fourier space, one step h with z = ℓh is

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy import fft
from numpy.typing import NDArray

from ardea.core.problem import Array
from ardea.dynamics.field_terms import FieldTerm

Modes = NDArray[np.complex128]
# Points of the trapezoidal rule on the circle of radius 1; its error falls faster than any power of their number.
CIRCLE_POINTS = 64
# Convention: so many step lengths are remembered; evenly spaced times need a few.
MOST_TABLES = 64


@dataclass(frozen=True)
class Coefficients:
    """The exponentials and weights of one step length h, one value per Fourier mode."""

    half: Modes
    full: Modes
    inner: Modes
    first: Modes
    middle: Modes
    last: Modes

    @classmethod
    def of(cls, linear: Modes, h: float) -> Coefficients:
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


def step(modes: Modes, nonlinear: Callable[[Modes], Modes], c: Coefficients) -> Modes:
    """Return the Fourier modes one step later."""
    n_u = nonlinear(modes)
    half = c.half * modes
    a = half + c.inner * n_u
    n_a = nonlinear(a)
    n_b = nonlinear(half + c.inner * n_a)
    n_c = nonlinear(c.half * a + c.inner * (2 * n_b - n_u))
    return c.full * modes + c.first * n_u + c.middle * (n_a + n_b) + c.last * n_c


@dataclass(frozen=True, eq=False)
class SpectralEquation:
    """u_t = Σ ξ_pq u^p ∂^q u for one field, periodic in one space dimension.

    Terms ∂^q u and u make up ℓ; the rest is evaluated on the grid and truncated where products alias: with the
    highest degree D of a product, modes from n/(D + 1) on are dropped from N. Terms with u_x are differentiated as a
    whole, u^p u_x = ∂(u^{p+1})/(p + 1), which keeps the mean exactly.

    Parameters
    ----------
    terms : sequence of FieldTerm
        Terms of one field in one space dimension.
    coefficients : array of shape (n_terms,)
        ξ.
    n_x : int
        Number of grid points.
    length : float
        Period.

    Examples
    --------
    >>> from ardea.dynamics import FieldTerms
    >>> library = FieldTerms(1, 2)
    >>> xi = [{"u_xx": 0.5, "u u_x": -1.0}.get(name, 0.0) for name in library.names()]
    >>> burgers = SpectralEquation(library.terms(), xi, n_x=32, length=2 * np.pi)
    >>> x = 2 * np.pi * np.arange(32) / 32
    >>> bool(np.allclose(burgers.derivative(np.sin(x)), -np.sin(x) * np.cos(x) - 0.5 * np.sin(x)))
    True
    """

    terms: Sequence[FieldTerm]
    coefficients: Array
    n_x: int
    length: float

    def __post_init__(self) -> None:
        if any(len(term.exponents) != 1 or len(term.orders) != 1 for term in self.terms):
            raise ValueError("SpectralEquation holds one field in one space dimension")
        if len(self.terms) != len(self.coefficients):
            raise ValueError(f"got {len(self.coefficients)} coefficients for {len(self.terms)} terms")

    def solve(self, u0: Array, t: Array, max_step: float) -> Array:
        """Integrate from a field at t[0]; every interval between times is cut into equal steps.

        Parameters
        ----------
        u0 : array of shape (n_x,)
            The field at t[0].
        t : array of shape (n_t,)
            Ascending times.
        max_step : float
            Longest step.

        Returns
        -------
        array of shape (n_x, n_t)
            Space first, then time. If the field blows up, a ValueError says when.
        """
        out = np.empty((self.n_x, len(t)))
        out[:, 0] = u0
        modes = self.modes(u0)
        for i, interval in enumerate(np.diff(t)):
            with np.errstate(over="ignore", invalid="ignore"):
                modes = self.advanced(modes, interval, int(np.ceil(interval / max_step - 1e-9)))
                out[:, i + 1] = self.field(modes)
            if not np.all(np.isfinite(out[:, i + 1])):
                raise ValueError(f"the field blew up between t = {t[i]:g} and t = {t[i + 1]:g}; try a smaller max_step")
        return out

    def advanced(self, modes: Modes, interval: float, n_steps: int) -> Modes:
        """Return the modes after so many equal steps over an interval."""
        # Rounding in t must not count as another step length.
        h = float(f"{interval / n_steps:.12g}")
        if h not in self._tables:
            if len(self._tables) >= MOST_TABLES:
                self._tables.clear()
            self._tables[h] = Coefficients.of(self.linear, h)
        for _ in range(n_steps):
            modes = step(modes, self.nonlinear, self._tables[h])
        return modes

    def modes(self, u: Array) -> Modes:
        """Return the Fourier modes of a field."""
        return np.asarray(fft.rfft(u))

    def field(self, modes: Modes) -> Array:
        """Return the field on the grid."""
        return np.asarray(fft.irfft(modes, n=self.n_x))

    def largest(self, modes: Modes) -> float:
        """Return the largest |u| on the grid."""
        return float(np.max(np.abs(self.field(modes))))

    def derivative(self, u: Array) -> Array:
        """Return u_t for a field of shape (n_x,) or (n_x, n_t)."""
        modes = fft.rfft(np.asarray(u, dtype=float).T)
        return fft.irfft(self.linear * modes + self.nonlinear(modes), n=self.n_x).T

    @cached_property
    def linear(self) -> Modes:
        """ℓ = Σ_q ξ_0q (ik)^q + ξ_10, one value per mode."""
        table = self._table
        symbol = np.full(len(self._ik), table.get((1, 0), 0.0), dtype=complex)
        for (power, order), value in table.items():
            if power == 0 and order > 0:
                symbol += value * self._symbols[order]
        return symbol

    def nonlinear(self, modes: Modes) -> Modes:
        """Return N: everything that is not ℓ, along the last axis."""
        u = fft.irfft(modes, n=self.n_x)
        total = np.zeros(modes.shape, dtype=complex)
        if self._flux is not None:
            total = self._symbols[1] * fft.rfft(_horner(self._flux, u))
        if self._plain:
            total += fft.rfft(sum(self._times_derivative(order, modes, u) for order in self._plain))
        total[..., self._first_aliased :] = 0.0
        return total

    def _times_derivative(self, order: int, modes: Modes, u: Array) -> Array:
        """Return P_q(u) ∂^q u on the grid; the factor is 1 for q = 0."""
        polynomial = _horner(self._plain[order], u)
        return polynomial * fft.irfft(self._symbols[order] * modes, n=self.n_x) if order else polynomial

    @cached_property
    def _tables(self) -> dict[float, Coefficients]:
        """Coefficients by step length."""
        return {}

    @cached_property
    def _table(self) -> dict[tuple[int, int], float]:
        """Coefficient by power and order of the derivative."""
        pairs = zip(self.terms, self.coefficients, strict=True)
        return {(term.exponents[0], term.orders[0]): float(xi) for term, xi in pairs if xi}

    @cached_property
    def _ik(self) -> Modes:
        return np.asarray(2j * np.pi / self.length * np.arange(self.n_x // 2 + 1), dtype=complex)

    @cached_property
    def _symbols(self) -> list[Modes]:
        """(ik)^q, q = 0, 1, …; the highest mode of an even n has no odd derivative."""
        highest = max((order for _, order in self._table), default=0)
        symbols = [np.asarray(self._ik**order, dtype=complex) for order in range(max(highest, 1) + 1)]
        if self.n_x % 2 == 0:
            for odd in symbols[1::2]:
                odd[-1] = 0.0
        return symbols

    @cached_property
    def _plain(self) -> dict[int, list[float]]:
        """Polynomials P_q of N = … + Σ P_q(u) ∂^q u, for q = 0 and q ≥ 2, lowest power first."""
        groups: dict[int, list[float]] = {}
        for (power, order), value in self._table.items():
            linear = (power, order) == (1, 0) or (power == 0 and order > 0)
            if not linear and order != 1:
                factors = groups.setdefault(order, [])
                factors += [0.0] * (power + 1 - len(factors))
                factors[power] = value
        return groups

    @cached_property
    def _flux(self) -> list[float] | None:
        """Polynomial F of N = … + ∂F(u), lowest power first."""
        terms = {
            power + 1: value / (power + 1) for (power, order), value in self._table.items() if order == 1 and power
        }
        return [terms.get(power, 0.0) for power in range(max(terms) + 1)] if terms else None

    @cached_property
    def _first_aliased(self) -> int:
        degrees = [power + (order > 0) for power, order in self._table]
        return int(np.ceil(self.n_x / (max(degrees, default=1) + 1)))


def _horner(factors: Sequence[float], u: Array) -> Array:
    """Return Σ factors_p u^p."""
    value = np.full_like(u, factors[-1])
    for factor in reversed(factors[:-1]):
        value *= u
        if factor:
            value += factor
    return value
