"""Simulation of periodic fields in any number of space dimensions.

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

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np
from numpy import fft
from numpy.typing import ArrayLike, NDArray
from scipy.fft import next_fast_len

from ardea.core.problem import Array
from ardea.dynamics.field_terms import LARGEST_GROWTH, Jets, plain, weak_form
from ardea.dynamics.simulation import checked_start, checked_times, warn_stopped
from ardea.dynamics.terms import FieldTerm, FunctionOfFields, Jet, Orders
from ardea.dynamics.windows import HIGHEST_ORDER

Modes = NDArray[np.complex128]
# Fields that are not solved for, by their index, as functions of time.
Given = Mapping[int, Callable[[float], Array]]
# Points of the trapezoidal rule on the circle of radius 1; its error falls faster than any power of their number.
CIRCLE_POINTS = 64
# Convention: so many step lengths are remembered; evenly spaced times need a few.
MOST_TABLES = 64
# Convention: steps times points that a run takes at most, about a minute of work (measured: 1e6 points a second on
# 64 × 64, and a step of few points takes as long as one of this many).
MOST_WORK, FEW_POINTS = 2**26, 1000
# A blow-up is looked for from so many steps on: with fewer, steps too long for the explicit part blow up as well
# (measured on the fields of `ardea.dynamics.systems`).
STEPS_OF_BLOW_UP = 64
# Convention: a field whose jump across the seam is this many times its largest jump inside is not periodic.
SEAM_FACTOR = 5.0
# Convention: steps of an even grid differ by less than this share; it allows for rounded coordinates.
UNIFORM = 1e-4
# Relative errors below this are rounding: about 500 units of it, one for each of some hundred steps.
ROUNDING = 1e-13
# A convention: functions such as sin(u) alias as products of so many factors do.
DEGREE_OF_FUNCTIONS = 3
# Why a run ends: no number of steps will do, or |u| passed its limit; or it takes too long.
STOPS = (
    "the step size collapsed at t = {t:.4g}: the solution is singular there",
    "|u| passed its limit near t = {t:.4g}: the model blows up",
)
SLOW = "the simulation was given up at t = {t:.4g} after many steps: the model may be ill-posed, else go on from there"


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
        total = np.zeros((4, *z.shape), dtype=complex)
        for point in np.exp(2j * np.pi * (np.arange(CIRCLE_POINTS) + 0.5) / CIRCLE_POINTS):
            r = z + point
            e = np.exp(r)
            total[0] += (np.exp(r / 2) - 1) / r
            total[1] += (-4 - r + e * (4 - 3 * r + r**2)) / r**3
            total[2] += 2 * (2 + r + e * (-2 + r)) / r**3
            total[3] += (-4 - 3 * r - r**2 + e * (4 - r)) / r**3
        return cls(np.exp(z / 2), np.exp(z), *(h / CIRCLE_POINTS * total))


class SplitEquation(NamedTuple):
    """Right-hand side Σ_f Σ_β c ∂^β u_f + Σ_α ∂^α (Σ c monomial) of one field.

    `linear` has c by field and orders β, `products` by orders α and monomial. Derivatives stand in front of products as
    far as integration by parts carries them: u u_x = (u²)_x/2 keeps the mean of u exactly. Not so in products
    `with_given` fields, which are not differentiated.
    """

    linear: dict[Jet, float]
    products: dict[Orders, dict[FieldTerm, float]]
    with_given: dict[FieldTerm, float]

    @classmethod
    def of(cls, terms: Sequence[FieldTerm], coefficients: Array, solved: Sequence[int], n_axes: int) -> SplitEquation:
        """Return the equation of some terms with these coefficients."""
        linear, products = dict[Jet, float](), dict[Orders, dict[FieldTerm, float]]()
        with_given = dict[FieldTerm, float]()
        for term, value in zip(terms, coefficients.tolist(), strict=True):
            if not value:
                continue
            (jet, power), *others = term.factors or ((None, 0),)
            if isinstance(jet, Jet) and jet.power == power == 1 and not others and jet.field in solved:
                linear[jet] = value
            elif set(fields_in(term)) <= set(solved):
                for (orders, monomial), factor in weak_form(term, n_axes).items():
                    part = products.setdefault(orders, {})
                    part[monomial] = part.get(monomial, 0.0) + value * factor * (-1.0) ** sum(orders)
            else:
                with_given |= {monomial: value * factor for monomial, factor in plain(term).items()}
        return cls(linear, products, with_given)

    @property
    def degree(self) -> int:
        """The largest number of factors of a product of fields that are solved for."""
        monomials = [monomial for part in self.products.values() for monomial in part]
        return max((sum(map(_degree, one.factors)) for one in monomials), default=1)


def fields_in(term: FieldTerm) -> list[int]:
    """Return the indices of the fields that a term has, those inside its functions too."""
    inside = [jet.factor.arguments if isinstance(jet, FunctionOfFields) else [jet.field] for jet, _ in term.factors]
    return [int(field) for fields in inside for field in fields]


def summed(products: Mapping[FieldTerm, float], jets: Jets, grid: Sequence[int]) -> Array:
    """Return Σ c monomial on a grid."""
    return np.broadcast_to(jets.total(products), grid)


def _degree(factor: tuple[Jet | FunctionOfFields, int]) -> int:
    return factor[1] * (DEGREE_OF_FUNCTIONS if isinstance(factor[0], FunctionOfFields) else 1)


def modes_of(fields: Array, n_axes: int) -> Modes:
    """Return the modes of real fields along their last axes."""
    return fft.rfftn(fields, axes=range(-n_axes, 0))


def fields_of(modes: Modes, grid: Sequence[int]) -> Array:
    """Return real fields on a grid."""
    return fft.irfftn(modes, grid, axes=range(-len(grid), 0))


class FieldFlow:
    """Σ ξ_gi θ_i, what equations of some fields, `solved`, say of ∂_t u_g, or with `order` 2 of ∂_t² u_g.

    Other fields are `given` on the grid as functions of time.
    """

    def __init__(
        self,
        terms: Sequence[FieldTerm],
        coefficients: ArrayLike,
        n_axes: int,
        solved: Sequence[int] = (0,),
        given: Given | None = None,
        order: int = 1,
    ) -> None:
        rows = np.asarray(coefficients, dtype=float).reshape(len(solved), -1)
        self._parts = [SplitEquation.of(terms, row, solved, n_axes) for row in rows]
        self._place, self._given = {field: place for place, field in enumerate(solved)}, dict(given or {})
        self.n, self.order = len(solved), order


class FineGrid:
    """A grid of so many points that products of fields do not alias, n(D + 1)/2 along every axis for D factors.

    Modes are those of the coarse grid, without the highest of an even n, whose phase is not known.
    """

    def __init__(self, grid: Sequence[int], degree: int) -> None:
        self.grid = tuple(next_fast_len(ceil(n * (degree + 1) / 2), real=True) for n in grid)
        self._scale, self._shape = prod(self.grid) / prod(grid), (*grid[:-1], grid[-1] // 2 + 1)
        self._wide = (*self.grid[:-1], self.grid[-1] // 2 + 1)
        # Blocks of modes with wavenumbers from zero up and, along all axes but the last, from below zero down.
        ups = [slice(0, (n + 1) // 2) for n in grid]
        downs = [slice(-((n - 1) // 2), None) for n in grid[:-1]]
        self._blocks = list(product(*zip(ups, downs, strict=False), ups[-1:]))

    def values(self, modes: Modes) -> Array:
        """Return one field on the fine grid."""
        wide = np.zeros(self._wide, dtype=complex)
        for block in self._blocks:
            wide[block] = modes[block]
        return fields_of(wide, self.grid) * self._scale

    def modes(self, values: Array) -> Modes:
        """Return the modes of a field on the fine grid, as far as the coarse one has them."""
        wide, modes = modes_of(values, len(self.grid)), np.zeros(self._shape, dtype=complex)
        for block in self._blocks:
            modes[block] = wide[block]
        modes /= self._scale
        return modes


class SpectralEquation(FieldFlow):
    """Equations of fields that are periodic in all space dimensions.

    Of ∂_t u_g, terms that are linear in u_g make up ℓ. The rest is N: terms that are linear in other fields, and
    products. With the highest degree D of a product, these are evaluated on a grid of n(D + 1)/2 points along every
    axis, so that nothing aliases. Products with given fields are taken on the grid itself.

    Fields and modes have the shape (fields, *grid), fields those solved for, then, with `order` 2, their rates.

    Examples
    --------
    >>> from ardea.dynamics import FieldTerms
    >>> library = FieldTerms(1, 2)
    >>> xi = [{"u_xx": 0.5, "u u_x": -1.0}.get(name, 0.0) for name in library.names()]
    >>> burgers = SpectralEquation(library.terms(), [xi], (32,), (2 * np.pi,))
    >>> x = 2 * np.pi * np.arange(32) / 32
    >>> bool(np.allclose(burgers.derivative(np.sin([x])), -np.sin(x) * np.cos(x) - 0.5 * np.sin(x)))
    True
    """

    def __init__(
        self,
        terms: Sequence[FieldTerm],
        coefficients: ArrayLike,
        grid: Sequence[int],
        lengths: Sequence[float],
        **fields: Any,
    ) -> None:
        super().__init__(terms, coefficients, len(grid), **fields)
        self.grid = tuple(grid)
        self._waves = _waves(grid, lengths)
        self._symbol = lru_cache(maxsize=None)(self._symbol_of)
        first = (self.order - 1) * self.n  # where what has equations begins: behind the fields, where these have rates
        shape = (*grid[:-1], grid[-1] // 2 + 1)
        self.linear = np.zeros((self.order * self.n, *shape), dtype=complex)
        self._coupled: list[tuple[int, int, Modes | float]] = [(i, self.n + i, 1.0) for i in range(first)]
        for row, part in enumerate(self._parts, first):
            for jet, value in part.linear.items():
                if self._place[jet.field] == row:
                    self.linear[row] += value * self._symbol(jet.orders)
                else:
                    self._coupled.append((row, self._place[jet.field], value * self._symbol(jet.orders)))
        degree = max([1, *(part.degree for part in self._parts)])
        self._first, self._fine = first, FineGrid(grid, degree)
        self._weights = lru_cache(maxsize=MOST_TABLES)(partial(Weights.of, self.linear))

    def _symbol_of(self, orders: Orders) -> Modes:
        """Return Π (ik)^q over the axes."""
        total = np.ones(1, dtype=complex)
        for axis, order in enumerate(orders):
            total = total * self._waves[axis][order]
        return total

    def largest(self, modes: Modes) -> Array:
        """Return the largest |u| of every field on the grid."""
        return np.abs(fields_of(modes, self.grid)).reshape(len(modes), -1).max(axis=1)

    def solve(self, start: Array, t: Array, max_step: float) -> Array:
        """Return fields of shape (times, fields, *grid) by equal steps between the times; a blow-up is a ValueError."""
        out = np.empty((len(t), *start.shape))
        out[0], modes = start, modes_of(start, len(self.grid))
        for i, interval in enumerate(np.diff(t)):
            n_steps = int(np.ceil(interval / max_step - 1e-9))
            modes, left = self.advanced(modes, t[i], float(interval), n_steps, np.finfo(float).max)
            if left < np.inf:
                raise ValueError(f"the field blew up between t = {t[i]:g} and t = {t[i + 1]:g}; try a smaller max_step")
            out[i + 1] = fields_of(modes, self.grid)
        return out

    def advanced(
        self, modes: Modes, begin: float, interval: float, n_steps: int, bound: Array | float
    ) -> tuple[Modes, float]:
        """Return the modes after equal steps over an interval, and when |u| passed its bound (inf: it did not)."""
        # Rounding in t must not count as another step length.
        step = float(f"{interval / n_steps:.12g}")
        weights = self._weights(step)
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(n_steps):
                modes = self._step(modes, begin + i * step, step, weights)
                if not np.all(self.largest(modes) <= bound):
                    return modes, interval * (i + 1) / n_steps
        return modes, np.inf

    def _step(self, modes: Modes, t: float, h: float, weights: Weights) -> Modes:
        """Return the modes one step later."""
        n_u = self.nonlinear(modes, t)
        half = weights.half * modes
        a = half + weights.inner * n_u
        n_a = self.nonlinear(a, t + h / 2)
        n_b = self.nonlinear(half + weights.inner * n_a, t + h / 2)
        n_c = self.nonlinear(weights.half * a + weights.inner * (2 * n_b - n_u), t + h)
        return weights.full * modes + weights.first * n_u + weights.middle * (n_a + n_b) + weights.last * n_c

    def nonlinear(self, modes: Modes, t: float = 0.0) -> Modes:
        """Return N: everything that is not ℓ."""
        total = np.zeros(modes.shape, dtype=complex)
        sampled, fine = Jets(lambda jet: self._jet(jet, modes, t)), Jets(lambda jet: self._fine_jet(jet, modes))
        for row, part in enumerate(self._parts, self._first):
            if part.with_given:
                total[row] += modes_of(summed(part.with_given, sampled, self.grid), len(self.grid))
            for orders, products in part.products.items():
                total[row] += self._symbol(orders) * self._fine.modes(summed(products, fine, self._fine.grid))
        for row, other, symbol in self._coupled:
            total[row] += symbol * modes[other]
        return total

    def _jet(self, jet: Jet, modes: Modes, t: float) -> Array:
        if jet.field in self._given:
            return self._given[jet.field](t)
        return fields_of(self._symbol(jet.orders) * modes[self._place[jet.field]], self.grid)

    def _fine_jet(self, jet: Jet, modes: Modes) -> Array:
        own = modes[self._place[jet.field]]
        return self._fine.values(self._symbol(jet.orders) * own if any(jet.orders) else own)

    def derivative(self, fields: Array, t: float = 0.0) -> Array:
        """Return the time derivative of fields."""
        modes = modes_of(np.asarray(fields, dtype=float), len(self.grid))
        return fields_of(self.linear * modes + self.nonlinear(modes, t), self.grid)


def _waves(grid: Sequence[int], lengths: Sequence[float]) -> list[list[Modes]]:
    """Return (ik)^q, q = 0 … 6, along every axis; the highest mode of an even n has no odd derivative."""
    waves = []
    for axis, (n, length) in enumerate(zip(grid, lengths, strict=True)):
        count = np.arange(n // 2 + 1) if axis == len(grid) - 1 else np.fft.fftfreq(n, 1 / n)
        ik = np.asarray(2j * np.pi / length * count, dtype=complex)
        symbols = [np.asarray(ik**order, dtype=complex) for order in range(HIGHEST_ORDER + 1)]
        if n % 2 == 0:
            for odd in symbols[1::2]:
                odd[n // 2] = 0.0
        waves.append([symbol.reshape(-1, *[1] * (len(grid) - 1 - axis)) for symbol in symbols])
    return waves


def simulate_fields(
    equation: SpectralEquation, start: ArrayLike, t: ArrayLike, *, limit: ArrayLike, rtol: float = 1e-6
) -> Array:
    """Integrate from fields of shape (fields, *grid) at t[0], with steps that adapt.

    Every interval between output times is solved with n and with 2n steps; n doubles until a fifteenth of their
    difference, the error of the finer solution, is within the tolerance: the errors of all intervals add up to at most
    rtol times the largest |u| of every field.

    The result has shape (n_reached, fields, *grid): fewer times, with a `SimulationWarning` that says why, if |u|
    passed its limit or became singular.

    Examples
    --------
    >>> from ardea.dynamics import FieldTerms
    >>> library = FieldTerms(1, 2)
    >>> heat = [float(name == "u_xx") for name in library.names()]
    >>> x = 2 * np.pi * np.arange(16) / 16
    >>> equation = SpectralEquation(library.terms(), heat, (16,), (2 * np.pi,))
    >>> u = simulate_fields(equation, [np.cos(x)], [0.0, 1.0], limit=10.0)
    >>> bool(np.allclose(u[1, 0], np.exp(-1) * np.cos(x)))
    True
    """
    times, wide = checked_times(t), (slice(None), *[None] * len(equation.grid))
    bound = np.broadcast_to(np.asarray(limit, dtype=float), len(equation.linear))
    first = checked_start(start, bound[wide])
    _check_well_posed(equation, float(times[-1] - times[0]))
    u = np.empty((len(times), *first.shape))
    u[0], modes, n_steps = first, modes_of(first, len(equation.grid)), 1
    size, work = equation.largest(modes), 0
    for i, interval in enumerate(np.diff(times)):
        tolerance = max(rtol * float(interval) / float(times[-1] - times[0]), ROUNDING)
        span = float(times[i]), float(interval)
        modes, n_steps, left = _interval(equation, modes, span, n_steps, tolerance * size, bound, tolerance)
        work += 3 * n_steps * (modes.size + FEW_POINTS)  # coarse and fine ones
        if left < np.inf or work > MOST_WORK:
            why, after = (STOPS[left > 0], left) if left < np.inf else (SLOW, 0.0)
            warn_stopped(why.format(t=float(times[i]) + after), i + 1, len(times))
            return u[: i + 1]
        u[i + 1] = fields_of(modes, equation.grid)
        size = np.maximum(size, equation.largest(modes))
    return u


def _interval(
    equation: SpectralEquation,
    modes: Modes,
    span: tuple[float, float],
    n_steps: int,
    atol: Array,
    limit: Array,
    rtol: float,
) -> tuple[Modes, int, float]:
    """Return the modes after an interval, the number of coarse steps to try in the next one, and when the run ends.

    That is inf if it goes on, 0 if no number of steps will do, and else when |u| passes its limit.
    """
    coarse, coarse_left = equation.advanced(modes, *span, n_steps, limit)
    while True:
        fine, fine_left = equation.advanced(modes, *span, 2 * n_steps, limit)
        if coarse_left == fine_left == np.inf:
            error = equation.largest(fine - coarse) / 15
            tolerance = np.maximum(atol, rtol * equation.largest(fine))
            if np.all(error <= tolerance):
                # Half as many steps would give about 16 times the error.
                return fine, max(1, n_steps // 2) if np.all(32 * error <= tolerance) else n_steps, np.inf
        elif n_steps >= STEPS_OF_BLOW_UP and _agree(coarse_left, fine_left, span[1] / n_steps):
            return fine, n_steps, fine_left
        if n_steps >= max(MOST_WORK // (4 * (modes.size + FEW_POINTS)), 2 * STEPS_OF_BLOW_UP):
            return fine, n_steps, 0.0
        coarse, coarse_left, n_steps = fine, fine_left, 2 * n_steps


def _agree(coarse: float, fine: float, step: float) -> bool:
    """Say whether two runs left their limit at one time; those with too long steps do so after a number of steps."""
    return 16 * step < fine < np.inf and abs(fine - coarse) <= 0.02 * fine + step


def checked_periods(space: Sequence[Array], start: Array, names: Sequence[str]) -> list[float]:
    """Return the periods of an even grid on which fields (fields, *grid) go on smoothly across the seams."""
    for axis, (points, name) in enumerate(zip(space, names, strict=True), 1):
        steps = np.diff(points)
        if np.ptp(steps) > UNIFORM * np.mean(steps):
            raise ValueError(
                f"{name} must be evenly spaced where a field is periodic; else give boundary=(left, right)."
            )
        seam = np.abs(start.take(0, axis) - start.take(-1, axis)).max(axis=tuple(range(1, start.ndim - 1)))
        if np.any(seam > SEAM_FACTOR * np.abs(np.diff(start, axis=axis)).max(axis=tuple(range(1, start.ndim)))):
            raise ValueError(
                f"The start jumps from the last point of {name} to the first, so it is not periodic. In one space "
                "dimension give boundary=(left, right), the values at both ends."
            )
    return [float(np.mean(np.diff(points))) * len(points) for points in space]


def _check_well_posed(equation: SpectralEquation, duration: float) -> None:
    """Refuse a linear part that grows rounding errors at the highest wavenumbers to order one."""
    edges = np.zeros(equation.linear.shape[1:], dtype=bool)
    for axis, n in enumerate(equation.grid):
        np.moveaxis(edges, axis, 0)[n // 2] = True
    linear = equation.linear.real
    growth = float(np.max(linear[:, edges] - linear.reshape(len(linear), -1)[:, :1]))
    if growth * duration > LARGEST_GROWTH:
        raise ValueError(
            f"the linear part is ill-posed: its derivatives grow the shortest waves of this grid by exp({growth:.3g} t)"
            ", so no solution can be computed; diffusion must be positive (u_xx) and u_xxxx negative"
        )
