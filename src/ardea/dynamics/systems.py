"""Systems whose equations are known: ordinary differential equations, maps, and fields, for trying methods on.

Every factory returns a `System`, which simulates itself, adds noise, and states its true terms by name. Lorenz 63,
Lorenz 96 and Kuramoto–Sivashinsky are set up as in the paper (with what its text leaves open as its authors ran it).

>>> from ardea.dynamics import systems
>>> t, x = systems.lorenz63().simulate()
>>> x.shape
(251, 3)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from ardea.core.problem import Array
from ardea.dynamics.etdrk4 import FieldEquation
from ardea.dynamics.libraries import FieldTerms, Fourier, Library, Polynomials
from ardea.names import default_names

Kind = Literal["ode", "map", "pde"]
Equations = tuple[Mapping[str, float], ...]
# Maps the states (one array each) to their derivatives, or to their next values.
Flow = Callable[..., tuple[Array, ...] | Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class System(ABC):
    """A system with known equations.

    Attributes
    ----------
    name : str
        Name of the factory.
    feature_names : tuple of str
        One name per state; ("u",) for a field.
    true_terms : tuple of dict
        Per equation, the name of every true term and its coefficient.
    x0 : array
        Default start: shape (n_states,), or (n_x,) for a field.
    dt : float
        Default time between rows.
    n_rows : int
        Default number of times.
    library : Library or FieldTerms
        A library that holds the true terms.
    kind : {"ode", "map", "pde"}
        What the equations mean: a derivative, the next value, or a derivative of a field.
    """

    kind: ClassVar[Kind]

    name: str
    feature_names: tuple[str, ...]
    true_terms: Equations
    x0: Array = field(repr=False)
    dt: float
    n_rows: int
    library: Library | FieldTerms

    @property
    def t(self) -> Array:
        """The default times, from 0."""
        return np.asarray(self.dt * np.arange(self.n_rows), dtype=float)

    def simulate(self, x0: ArrayLike | None = None, t: ArrayLike | None = None) -> tuple[Array, Array]:
        """Return times and states without noise.

        Parameters
        ----------
        x0 : array-like, optional
            Start, at t[0].
        t : array-like, optional
            Ascending times.

        Returns
        -------
        t : array of shape (n_t,)
            The times.
        x : array of shape (n_t, n_states), or (n_x, n_t) for a field
            The solution; the default one is computed once.
        """
        if x0 is None and t is None:
            return self.t, self._default_solution.copy()
        start = self.x0 if x0 is None else np.asarray(x0, dtype=float)
        if start.shape != self.x0.shape:
            raise ValueError(f"{self.name} starts from an array of shape {self.x0.shape}, got {start.shape}")
        times = self.t if t is None else np.asarray(t, dtype=float)
        if times.ndim != 1 or len(times) < 2 or not np.all(np.diff(times) > 0):
            raise ValueError("t must be one-dimensional, at least two times, and strictly ascending")
        return times, self._solve(start, times)

    def noisy(
        self, noise: float, seed: int, x0: ArrayLike | None = None, t: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Return times and states with Gaussian noise.

        Parameters
        ----------
        noise : float
            Standard deviation of the noise as a fraction of the standard deviation of the whole array of states, all
            states and times together (as in the paper): every state carries the same noise.
        seed : int
            Seed of `numpy.random.default_rng`.
        x0, t : array-like, optional
            As in `simulate`.
        """
        if noise < 0:
            raise ValueError(f"noise is a fraction of the standard deviation and cannot be negative, got {noise}")
        times, x = self.simulate(x0, t)
        return times, x + noise * np.std(x) * np.random.default_rng(seed).normal(size=x.shape)

    def true_coefficients(self, library: Library | FieldTerms | None = None) -> Array:
        """Return the true ξ, shape (n_equations, n_terms), in the columns of a library (default: the system's own).

        A ValueError names the true terms that the library lacks.
        """
        names = (library or self.library).names(self.feature_names)
        missing = sorted({name for equation in self.true_terms for name in equation} - set(names))
        if missing:
            raise ValueError(f"the library lacks true terms of {self.name}: {', '.join(missing)}")
        return np.array([[equation.get(name, 0.0) for name in names] for equation in self.true_terms])

    @abstractmethod
    def exact_derivative(self, x: ArrayLike) -> Array:
        """Return the right-hand side at states x, in their shape (for a map: the next states)."""

    @cached_property
    def _default_solution(self) -> Array:
        return self._solve(self.x0, self.t)

    @abstractmethod
    def _solve(self, x0: Array, t: Array) -> Array:
        """Return the solution at the times t from x0 at t[0]."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _StateSystem(System):
    """A system of finitely many states, given by its flow."""

    flow: Flow = field(repr=False)

    def exact_derivative(self, x: ArrayLike) -> Array:
        """Return the right-hand side at every row of x."""
        return np.asarray(self.flow(*np.asarray(x, dtype=float).T)).T


@dataclass(frozen=True, eq=False, kw_only=True)
class Ode(_StateSystem):
    """x' = flow(x), integrated by DOP853 with relative and absolute tolerance 1e-12."""

    kind: ClassVar[Kind] = "ode"

    def _solve(self, x0: Array, t: Array) -> Array:
        solution = solve_ivp(
            lambda _, x: np.asarray(self.flow(*x)),
            (t[0], t[-1]),
            x0,
            method="DOP853",
            t_eval=t,
            rtol=1e-12,
            atol=1e-12,
        )
        if not solution.success:
            raise ValueError(f"{self.name} could not be integrated from {x0}: {solution.message}")
        return np.ascontiguousarray(solution.y.T)


@dataclass(frozen=True, eq=False, kw_only=True)
class Map(_StateSystem):
    """x_{n+1} = flow(x_n); t counts the iterations."""

    kind: ClassVar[Kind] = "map"

    def _solve(self, x0: Array, t: Array) -> Array:
        steps = np.rint((t - t[0]) / self.dt).astype(int)
        if not np.allclose((t - t[0]) / self.dt, steps):
            raise ValueError(f"{self.name} is a map: t must move in whole steps of {self.dt:g}")
        x = np.empty((steps[-1] + 1, len(x0)))
        x[0] = x0
        for i in range(steps[-1]):
            x[i + 1] = self.flow(*x[i])
        return x[steps]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pde(System):
    """u_t = Σ ξ u^p ∂^q u, periodic in one space dimension, solved by ETDRK4.

    Attributes
    ----------
    length : float
        Period.
    max_step : float
        Longest internal time step.
    """

    kind: ClassVar[Kind] = "pde"

    length: float
    max_step: float

    @property
    def space(self) -> tuple[Array]:
        """The grid, length·i/n_x, as the tuple that `Discovery.fit` takes."""
        return (self.length * np.arange(len(self.x0)) / len(self.x0),)

    @cached_property
    def equation(self) -> FieldEquation:
        """The right-hand side."""
        terms = FieldTerms(4, 4)
        return FieldEquation(terms.terms(), self.true_coefficients(terms)[0], len(self.x0), self.length)

    def exact_derivative(self, x: ArrayLike) -> Array:
        """Return u_t for a field of shape (n_x, n_t) or (n_x,), by FFT."""
        return self.equation.derivative(np.asarray(x, dtype=float))

    def _solve(self, x0: Array, t: Array) -> Array:
        return self.equation.solve(x0, t, self.max_step)


def _ode(
    name: str,
    feature_names: str,
    true_terms: Equations,
    flow: Flow,
    x0: ArrayLike,
    dt: float,
    n_rows: int,
    library: Library | None = None,
) -> Ode:
    return Ode(
        name=name,
        feature_names=tuple(feature_names.split()),
        true_terms=true_terms,
        flow=flow,
        x0=np.asarray(x0, dtype=float),
        dt=dt,
        n_rows=n_rows,
        library=library or Polynomials(3),
    )


@lru_cache(maxsize=32)
def lorenz63(seed: int = 0) -> Ode:
    """Lorenz 63: x' = 10(y − x), y' = x(28 − z) − y, z' = xy − (8/3)z; 251 rows at dt = .05, quintic library.

    Parameters
    ----------
    seed : int
        Seed of the start, drawn from N((0, 0, 15), 5² I) as in the paper.
    """
    beta = 8 / 3
    return _ode(
        "lorenz63",
        "x y z",
        ({"x": -10.0, "y": 10.0}, {"x": 28.0, "y": -1.0, "x z": -1.0}, {"z": -beta, "x y": 1.0}),
        lambda x, y, z: (10 * (y - x), x * (28 - z) - y, x * y - beta * z),
        np.array([0.0, 0.0, 15.0]) + 5.0 * np.random.default_rng(seed).normal(size=3),
        0.05,
        251,
        Polynomials(5),
    )


@lru_cache(maxsize=32)
def lorenz96(n: int = 40, forcing: float = 16.0) -> Ode:
    """Lorenz 96: x_j' = (x_{j+1} − x_{j−2}) x_{j−1} − x_j + F, indices modulo n; quadratic library.

    200 rows at dt = .05 from exp(−(j − n/2)²/16), j = 0 … n − 1.

    Parameters
    ----------
    n : int
        Number of states, at least 4.
    forcing : float
        F.
    """
    if n < 4:
        raise ValueError(f"Lorenz 96 needs at least 4 states, got {n}")
    j = np.arange(n)
    after, before, second = (j + 1) % n, (j - 1) % n, (j - 2) % n
    names = default_names(n)

    def flow(*states: Array) -> Array:
        x = np.array(states)
        return np.asarray((x[after] - x[second]) * x[before] - x + forcing)

    def product(a: int, b: int) -> str:
        return f"{names[min(a, b)]} {names[max(a, b)]}"

    return _ode(
        "lorenz96",
        " ".join(names),
        tuple(
            {"1": forcing, names[i]: -1.0, product(after[i], before[i]): 1.0, product(second[i], before[i]): -1.0}
            for i in range(n)
        ),
        flow,
        np.exp(-((j - n // 2) ** 2) / 16),
        0.05,
        200,
        Polynomials(2),
    )


@lru_cache(maxsize=32)
def rossler() -> Ode:
    """Rössler: x' = −y − z, y' = x + .2y, z' = .2 + z(x − 5.7). Chaotic; z comes in spikes."""
    return _ode(
        "rossler",
        "x y z",
        ({"y": -1.0, "z": -1.0}, {"x": 1.0, "y": 0.2}, {"1": 0.2, "z": -5.7, "x z": 1.0}),
        lambda x, y, z: (-y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)),
        (3.0, 5.0, 0.0),
        0.05,
        1200,
    )


@lru_cache(maxsize=32)
def halvorsen() -> Ode:
    """Halvorsen: x' = −1.4x − 4y − 4z − y² and the same with x, y, z turned round. Chaotic."""
    return _ode(
        "halvorsen",
        "x y z",
        (
            {"x": -1.4, "y": -4.0, "z": -4.0, "y^2": -1.0},
            {"y": -1.4, "z": -4.0, "x": -4.0, "z^2": -1.0},
            {"z": -1.4, "x": -4.0, "y": -4.0, "x^2": -1.0},
        ),
        lambda x, y, z: (
            -1.4 * x - 4 * (y + z) - y**2,
            -1.4 * y - 4 * (z + x) - z**2,
            -1.4 * z - 4 * (x + y) - x**2,
        ),
        (-5.0, 0.0, 0.0),
        0.02,
        600,
    )


@lru_cache(maxsize=32)
def thomas() -> Ode:
    """Thomas: x' = sin y − .2x and the same with x, y, z turned round. Slow chaos; needs sines."""
    return _ode(
        "thomas",
        "x y z",
        ({"x": -0.2, "sin(y)": 1.0}, {"y": -0.2, "sin(z)": 1.0}, {"z": -0.2, "sin(x)": 1.0}),
        lambda x, y, z: (np.sin(y) - 0.2 * x, np.sin(z) - 0.2 * y, np.sin(x) - 0.2 * z),
        (2.0, 0.0, -1.0),
        0.2,
        800,
        Polynomials(2) + Fourier(2),
    )


@lru_cache(maxsize=32)
def van_der_pol() -> Ode:
    """Van der Pol: x' = v, v' = 1.5(1 − x²)v − x. A limit cycle, reached from inside."""
    return _ode(
        "van_der_pol",
        "x v",
        ({"v": 1.0}, {"x": -1.0, "v": 1.5, "x^2 v": -1.5}),
        lambda x, v: (v, 1.5 * (1 - x**2) * v - x),
        (0.5, 0.0),
        0.05,
        400,
    )


@lru_cache(maxsize=32)
def duffing() -> Ode:
    """Duffing, damped, two wells: x' = v, v' = x − x³ − .1v."""
    return _ode(
        "duffing",
        "x v",
        ({"v": 1.0}, {"x": 1.0, "v": -0.1, "x^3": -1.0}),
        lambda x, v: (v, x - x**3 - 0.1 * v),
        (2.0, 0.0),
        0.05,
        500,
    )


@lru_cache(maxsize=32)
def lotka_volterra() -> Ode:
    """Lotka–Volterra: x' = (2/3)x − (4/3)xy, y' = xy − y. Closed orbits."""
    return _ode(
        "lotka_volterra",
        "x y",
        ({"x": 2 / 3, "x y": -4 / 3}, {"y": -1.0, "x y": 1.0}),
        lambda x, y: (2 / 3 * x - 4 / 3 * x * y, x * y - y),
        (1.8, 1.3),
        0.1,
        400,
    )


@lru_cache(maxsize=32)
def linear_oscillator() -> Ode:
    """Damped linear oscillator: x' = −.1x + 2y, y' = −2x − .1y. Decays."""
    return _ode(
        "linear_oscillator",
        "x y",
        ({"x": -0.1, "y": 2.0}, {"x": -2.0, "y": -0.1}),
        lambda x, y: (-0.1 * x + 2 * y, -2 * x - 0.1 * y),
        (2.0, 0.0),
        0.05,
        500,
    )


@lru_cache(maxsize=32)
def cubic_oscillator() -> Ode:
    """Damped cubic oscillator: x' = −.1x³ + 2y³, y' = −2x³ − .1y³. Decays and slows down."""
    return _ode(
        "cubic_oscillator",
        "x y",
        ({"x^3": -0.1, "y^3": 2.0}, {"x^3": -2.0, "y^3": -0.1}),
        lambda x, y: (-0.1 * x**3 + 2 * y**3, -2 * x**3 - 0.1 * y**3),
        (2.0, 0.0),
        0.02,
        1000,
    )


@lru_cache(maxsize=32)
def fitzhugh_nagumo() -> Ode:
    """FitzHugh–Nagumo: v' = v − v³/3 − w + .5, w' = .08(v + .7 − .8w). Spikes between slow stretches."""
    return _ode(
        "fitzhugh_nagumo",
        "v w",
        ({"1": 0.5, "v": 1.0, "w": -1.0, "v^3": -1 / 3}, {"1": 0.056, "v": 0.08, "w": -0.064}),
        lambda v, w: (v - v**3 / 3 - w + 0.5, 0.08 * (v + 0.7 - 0.8 * w)),
        (-1.0, 1.0),
        0.2,
        1000,
    )


@lru_cache(maxsize=32)
def brusselator() -> Ode:
    """Brusselator: x' = 1 − 4x + x²y, y' = 3x − x²y. A limit cycle with steep flanks."""
    return _ode(
        "brusselator",
        "x y",
        ({"1": 1.0, "x": -4.0, "x^2 y": 1.0}, {"x": 3.0, "x^2 y": -1.0}),
        lambda x, y: (1 - 4 * x + x**2 * y, 3 * x - x**2 * y),
        (1.0, 1.0),
        0.05,
        600,
    )


@lru_cache(maxsize=32)
def selkov() -> Ode:
    """Sel'kov's glycolysis: x' = −x + .08y + x²y, y' = .6 − .08y − x²y. A limit cycle."""
    return _ode(
        "selkov",
        "x y",
        ({"x": -1.0, "y": 0.08, "x^2 y": 1.0}, {"1": 0.6, "y": -0.08, "x^2 y": -1.0}),
        lambda x, y: (-x + 0.08 * y + x**2 * y, 0.6 - 0.08 * y - x**2 * y),
        (1.0, 2.0),
        0.1,
        600,
    )


@lru_cache(maxsize=32)
def hopf() -> Ode:
    """Hopf normal form: x' = .1x − y − .1x(x² + y²), y' = x + .1y − .1y(x² + y²). Spirals in to a circle."""
    return _ode(
        "hopf",
        "x y",
        (
            {"x": 0.1, "y": -1.0, "x^3": -0.1, "x y^2": -0.1},
            {"x": 1.0, "y": 0.1, "x^2 y": -0.1, "y^3": -0.1},
        ),
        lambda x, y: (0.1 * x - y - 0.1 * x * (x**2 + y**2), x + 0.1 * y - 0.1 * y * (x**2 + y**2)),
        (3.0, 0.0),
        0.05,
        500,
    )


@lru_cache(maxsize=32)
def slow_manifold() -> Ode:
    """Slow manifold: x' = −.2x, y' = 2(x² − y). y falls onto a curve near y = x² and decays along it."""
    return _ode(
        "slow_manifold",
        "x y",
        ({"x": -0.2}, {"y": -2.0, "x^2": 2.0}),
        lambda x, y: (-0.2 * x, 2.0 * (x**2 - y)),
        (2.0, -2.0),
        0.02,
        500,
        Polynomials(2),
    )


@lru_cache(maxsize=32)
def sir() -> Ode:
    """Epidemic (SIR, as fractions): s' = −2si, i' = 2si − .5i. One wave."""
    return _ode(
        "sir",
        "s i",
        ({"s i": -2.0}, {"i": -0.5, "s i": 2.0}),
        lambda s, i: (-2 * s * i, 2 * s * i - 0.5 * i),
        (0.98, 0.02),
        0.05,
        300,
        Polynomials(2),
    )


@lru_cache(maxsize=32)
def pendulum() -> Ode:
    """Damped pendulum: a' = w, w' = −sin a − .1w. Needs a sine."""
    return _ode(
        "pendulum",
        "a w",
        ({"w": 1.0}, {"w": -0.1, "sin(a)": -1.0}),
        lambda a, w: (w, -np.sin(a) - 0.1 * w),
        (2.8, 0.0),
        0.1,
        400,
        Polynomials(2) + Fourier(1),
    )


@lru_cache(maxsize=32)
def logistic_map() -> Map:
    """Logistic map: x ← 3.8x(1 − x). Chaotic."""
    return Map(
        name="logistic_map",
        feature_names=("x",),
        true_terms=({"x": 3.8, "x^2": -3.8},),
        flow=lambda x: (3.8 * x * (1 - x),),
        x0=np.array([0.3]),
        dt=1.0,
        n_rows=200,
        library=Polynomials(3),
    )


@lru_cache(maxsize=32)
def henon_map() -> Map:
    """Hénon map: x ← 1 − 1.4x² + y, y ← .3x. Chaotic."""
    return Map(
        name="henon_map",
        feature_names=("x", "y"),
        true_terms=({"1": 1.0, "x^2": -1.4, "y": 1.0}, {"x": 0.3}),
        flow=lambda x, y: (1 - 1.4 * x**2 + y, 0.3 * x),
        x0=np.array([0.1, 0.1]),
        dt=1.0,
        n_rows=300,
        library=Polynomials(3),
    )


def _pde(
    name: str, true_terms: Mapping[str, float], u0: Array, length: float, dt: float, n_rows: int, max_step: float
) -> Pde:
    return Pde(
        name=name,
        feature_names=("u",),
        true_terms=(true_terms,),
        x0=u0,
        dt=dt,
        n_rows=n_rows,
        library=FieldTerms(4, 4),
        length=length,
        max_step=max_step,
    )


def _grid(n: int, length: float) -> Array:
    return length * np.arange(n) / n


def _waves(n: int, n_modes: int, seed: int) -> Array:
    """Return a sum of the first modes with random phases and decaying amplitudes, scaled to a largest value of 1."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(n) / n
    modes = np.arange(1, n_modes + 1)
    phases, sizes = rng.uniform(0, 2 * np.pi, n_modes), rng.uniform(0.5, 1.0, n_modes) / np.sqrt(modes)
    u = np.cos(modes[:, None] * angle + phases[:, None]).T @ sizes
    return np.asarray(u / np.max(np.abs(u)))


@lru_cache(maxsize=4)
def kuramoto_sivashinsky(n_x: int = 512) -> Pde:
    """Kuramoto–Sivashinsky: u_t = −u u_x − u_xx − u_xxxx on [0, 32π); 512 × 1072 at dt = .14, steps of .01.

    The start is cos(x/8)(1 + sin(x/16)).

    Parameters
    ----------
    n_x : int
        Number of grid points.
    """
    length = 32 * np.pi
    x = _grid(n_x, length)
    return _pde(
        "kuramoto_sivashinsky",
        {"u u_x": -1.0, "u_xx": -1.0, "u_xxxx": -1.0},
        np.cos(x / 8) * (1 + np.sin(x / 16)),
        length,
        0.14,
        1072,
        0.01,
    )


@lru_cache(maxsize=32)
def burgers() -> Pde:
    """Burgers: u_t = −u u_x + .1 u_xx. Waves steepen and merge."""
    return _pde("burgers", {"u u_x": -1.0, "u_xx": 0.1}, _waves(256, 5, seed=1), 10.0, 0.05, 200, 0.01)


@lru_cache(maxsize=32)
def korteweg_de_vries() -> Pde:
    """Korteweg–de Vries: u_t = −u u_x − u_xxx. Solitons of several speeds pass through each other."""
    u0 = 2.0 * (1 + _waves(256, 4, seed=2))
    return _pde("korteweg_de_vries", {"u u_x": -1.0, "u_xxx": -1.0}, u0, 40.0, 0.05, 200, 0.005)


@lru_cache(maxsize=32)
def kdv_burgers() -> Pde:
    """Korteweg–de Vries–Burgers: u_t = −u u_x + .2 u_xx − .5 u_xxx."""
    return _pde(
        "kdv_burgers",
        {"u u_x": -1.0, "u_xx": 0.2, "u_xxx": -0.5},
        2.0 * _waves(256, 4, seed=3),
        30.0,
        0.05,
        200,
        0.005,
    )


@lru_cache(maxsize=32)
def modified_kdv() -> Pde:
    """KdV with a cubic flux (modified KdV): u_t = −u² u_x − u_xxx."""
    return _pde("modified_kdv", {"u^2 u_x": -1.0, "u_xxx": -1.0}, _waves(256, 6, seed=4), 30.0, 0.02, 200, 0.005)


@lru_cache(maxsize=32)
def swift_hohenberg() -> Pde:
    """Swift–Hohenberg with a quadratic term: u_t = −.7u − 2u_xx − u_xxxx + u² − u³. A pattern grows and settles."""
    return _pde(
        "swift_hohenberg",
        {"u": -0.7, "u_xx": -2.0, "u_xxxx": -1.0, "u^2": 1.0, "u^3": -1.0},
        1.2 * _waves(256, 8, seed=7),
        16 * np.pi,
        0.05,
        200,
        0.0125,
    )


@lru_cache(maxsize=32)
def fisher_kpp() -> Pde:
    """Fisher–KPP: u_t = u_xx + u − u². Bumps grow into fronts that run into each other."""
    x = _grid(256, 80.0)
    u0 = 0.6 * np.exp(-((x - 15) ** 2) / 8) + 1.5 * np.exp(-((x - 40) ** 2) / 20) + 0.2 * np.exp(-((x - 62) ** 2) / 3)
    return _pde("fisher_kpp", {"u_xx": 1.0, "u": 1.0, "u^2": -1.0}, u0, 80.0, 0.04, 200, 0.02)


@lru_cache(maxsize=32)
def allen_cahn() -> Pde:
    """Allen–Cahn: u_t = .5 u_xx + u − u³. Domains of ±1 form and coarsen."""
    return _pde(
        "allen_cahn", {"u_xx": 0.5, "u": 1.0, "u^3": -1.0}, 1.5 * _waves(256, 6, seed=10), 24.0, 0.025, 200, 0.0125
    )


@lru_cache(maxsize=32)
def advection_diffusion() -> Pde:
    """Advection and diffusion: u_t = −u_x + .2 u_xx. Linear: every mode moves and decays on its own."""
    return _pde("advection_diffusion", {"u_x": -1.0, "u_xx": 0.2}, _waves(256, 8, seed=7), 20.0, 0.025, 200, 0.025)


@lru_cache(maxsize=32)
def nonlinear_diffusion() -> Pde:
    """Diffusion that grows with the field: u_t = −.5 u_x + .4 u_xx + .4 u² u_xx."""
    return _pde(
        "nonlinear_diffusion",
        {"u_x": -0.5, "u_xx": 0.4, "u^2 u_xx": 0.4},
        1.5 * _waves(256, 5, seed=10),
        14.0,
        0.02,
        200,
        0.004,
    )


ALL_ODES: dict[str, Callable[[], Ode]] = {
    factory.__name__: factory
    for factory in (
        lorenz63,
        lorenz96,
        rossler,
        halvorsen,
        thomas,
        van_der_pol,
        duffing,
        lotka_volterra,
        linear_oscillator,
        cubic_oscillator,
        fitzhugh_nagumo,
        brusselator,
        selkov,
        hopf,
        slow_manifold,
        sir,
        pendulum,
    )
}
ALL_MAPS: dict[str, Callable[[], Map]] = {factory.__name__: factory for factory in (logistic_map, henon_map)}
ALL_PDES: dict[str, Callable[[], Pde]] = {
    factory.__name__: factory
    for factory in (
        kuramoto_sivashinsky,
        burgers,
        korteweg_de_vries,
        kdv_burgers,
        modified_kdv,
        swift_hohenberg,
        fisher_kpp,
        allen_cahn,
        advection_diffusion,
        nonlinear_diffusion,
    )
}
