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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from inspect import signature
from itertools import repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from ardea.core.problem import Array
from ardea.dynamics.field_simulation import SpectralEquation
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Fourier, Library, Polynomials
from ardea.dynamics.simulation import checked_times
from ardea.dynamics.terms import Expansion, State, Term
from ardea.names import default_names

ALL_ODES: dict[str, Callable[[], StateSystem]] = {}
ALL_MAPS: dict[str, Callable[[], StateSystem]] = {}
ALL_PDES: dict[str, Callable[[], Pde]] = {}
# Where systems are listed, and how the left-hand sides of their equations are written.
LISTS: dict[str, tuple[dict[str, Any], str]] = {
    "ode": (ALL_ODES, "{}'"),
    "map": (ALL_MAPS, "{} after one step"),
    "pde": (ALL_PDES, "{}_t"),
}


@dataclass(frozen=True, eq=False)
class System(ABC):
    """A system with known equations.

    Attributes
    ----------
    kind : {"ode", "map", "pde"}
        What the equations mean: a derivative, the next value, or a derivative of a field.
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
    """

    kind: Literal["ode", "map", "pde"]
    name: str
    feature_names: tuple[str, ...]
    true_terms: tuple[Mapping[str, float], ...]
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
        times = self.t if t is None else checked_times(t)
        if len(times) < 2:
            raise ValueError("t must hold at least two times")
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


@dataclass(frozen=True, eq=False)
class StateSystem(System):
    """x' = flow(x), integrated by DOP853 with relative and absolute tolerance 1e-12, or x_{n+1} = flow(x_n)."""

    # Maps the states (one array each) to their derivatives, or to their next values.
    flow: Callable[..., Any] = field(repr=False)

    def exact_derivative(self, x: ArrayLike) -> Array:
        """Return the right-hand side at every row of x."""
        return np.asarray(self.flow(*np.asarray(x, dtype=float).T)).T

    def _solve(self, x0: Array, t: Array) -> Array:
        if self.kind == "map":
            return self._iterate(x0, t)
        tight = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}
        solution = solve_ivp(lambda _, x: np.asarray(self.flow(*x)), (t[0], t[-1]), x0, t_eval=t, **tight)
        if not solution.success:
            raise ValueError(f"{self.name} could not be integrated from {x0}: {solution.message}")
        return np.ascontiguousarray(solution.y.T)

    def _iterate(self, x0: Array, t: Array) -> Array:
        steps = np.rint((t - t[0]) / self.dt).astype(int)
        if not np.allclose((t - t[0]) / self.dt, steps):
            raise ValueError(f"{self.name} is a map: t must move in whole steps of {self.dt:g}")
        x = np.empty((steps[-1] + 1, len(x0)))
        x[0] = x0
        for i in range(steps[-1]):
            x[i + 1] = self.flow(*x[i])
        return x[steps]


@dataclass(frozen=True, eq=False)
class Pde(System):
    """u_t = Σ ξ u^p ∂^q u, periodic in one space dimension, solved by ETDRK4.

    Attributes
    ----------
    length : float
        Period.
    max_step : float
        Longest internal time step.
    """

    length: float
    max_step: float

    @property
    def space(self) -> tuple[Array]:
        """The grid, length·i/n_x, as the tuple that `Discovery.fit` takes."""
        return (self.length * np.arange(len(self.x0)) / len(self.x0),)

    @cached_property
    def _equation(self) -> SpectralEquation:
        return SpectralEquation(FieldTerms(4, 4), self.true_coefficients(), len(self.x0), self.length)

    def exact_derivative(self, x: ArrayLike) -> Array:
        """Return u_t for a field of shape (n_x, n_t) or (n_x,), by FFT."""
        return self._equation.derivative(np.asarray(x, dtype=float))

    def _solve(self, x0: Array, t: Array) -> Array:
        return self._equation.solve(x0, t, self.max_step)


def _of_flow(
    name: str,
    flow: Callable[..., Any],
    names: Iterable[str],
    x0: ArrayLike,
    dt: float,
    n_rows: int,
    *,
    library: Library | None = None,
    kind: Any = "ode",
) -> StateSystem:
    """Return the system of a flow, which also tells its true terms."""
    states = tuple(names)
    sides = flow(*(Expansion({Term.of(State(i)): 1.0}) for i in range(len(states))))
    terms = tuple({term.name(states): number for term, number in side.items()} for side in sides)
    start = np.asarray(x0, dtype=float)
    return StateSystem(kind, name, states, terms, start, dt, n_rows, library or Polynomials(3), flow)


def _listed(system: System, told: str | None) -> Callable[[], Any]:
    """Return, and list, a function that gives one system and tells its equations."""

    def factory() -> System:
        return system

    listed, left = LISTS[system.kind]
    equations = ", ".join(map(_told, repeat(left), system.feature_names, system.true_terms))
    factory.__name__ = factory.__qualname__ = system.name
    factory.__doc__ = f"{str(told).removesuffix('.')}: {equations}."
    listed[system.name] = factory
    return factory


def _told(left: str, name: str, terms: Mapping[str, float]) -> str:
    """Return an equation such as x' = -0.5 x y + 2."""
    parts = [f"{number:g}" if term == "1" else f"{number:g} {term}" for term, number in terms.items()]
    return f"{left.format(name)} = {' + '.join(parts).replace('+ -', '- ')}"


def _ode(*start: Any, **more: Any) -> Callable[[Any], Callable[[], StateSystem]]:
    """Make a flow a factory of its system, given the start, the time between rows, and their number."""
    return lambda flow: _listed(_of_flow(flow.__name__, flow, signature(flow).parameters, *start, **more), flow.__doc__)


def _pde(u0: Array, length: float, dt: float, max_step: float) -> Callable[[Any], Callable[[], Pde]]:
    """Make a function that returns the terms of u_t a factory of its system."""
    size = (u0, dt, 200, FieldTerms(4, 4), length, max_step)
    return lambda terms: _listed(Pde("pde", terms.__name__, ("u",), (terms(),), *size), terms.__doc__)


def _waves(n_modes: int, seed: int) -> Array:
    """Return a sum of the first modes with random phases and decaying amplitudes, scaled to a largest value of 1."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(256) / 256
    modes = np.arange(1, n_modes + 1)
    phases, sizes = rng.uniform(0, 2 * np.pi, n_modes), rng.uniform(0.5, 1.0, n_modes) / np.sqrt(modes)
    u = np.cos(modes[:, None] * angle + phases[:, None]).T @ sizes
    return np.asarray(u / np.max(np.abs(u)))


def _bump(centre: float, spread: float) -> Array:
    """Return exp(−(x − centre)²/spread) on [0, 80)."""
    return np.asarray(np.exp(-((80.0 * np.arange(256) / 256 - centre) ** 2) / spread))


@lru_cache(maxsize=32)
def lorenz63(seed: int = 0) -> StateSystem:
    """Lorenz 63: x' = 10(y − x), y' = x(28 − z) − y, z' = xy − (8/3)z; 251 rows at dt = .05, quintic library.

    Parameters
    ----------
    seed : int
        Seed of the start, drawn from N((0, 0, 15), 5² I) as in the paper.
    """

    def flow(x: Any, y: Any, z: Any) -> Any:
        return 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z

    start = np.array([0.0, 0.0, 15.0]) + 5.0 * np.random.default_rng(seed).normal(size=3)
    return _of_flow("lorenz63", flow, "xyz", start, 0.05, 251, library=Polynomials(5))


@lru_cache(maxsize=32)
def lorenz96(n: int = 40, forcing: float = 16.0) -> StateSystem:
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

    def flow(*x: Any) -> Any:
        return tuple((x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + float(forcing) for i in range(n))

    start = np.exp(-((np.arange(n) - n // 2) ** 2) / 16)
    return _of_flow("lorenz96", flow, default_names(n), start, 0.05, 200, library=Polynomials(2))


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
    x = length * np.arange(n_x) / n_x
    u0, terms = np.cos(x / 8) * (1 + np.sin(x / 16)), {"u u_x": -1.0, "u_xx": -1.0, "u_xxxx": -1.0}
    return Pde("pde", "kuramoto_sivashinsky", ("u",), (terms,), u0, 0.14, 1072, FieldTerms(4, 4), length, 0.01)


ALL_ODES |= {"lorenz63": lorenz63, "lorenz96": lorenz96}
ALL_PDES |= {"kuramoto_sivashinsky": kuramoto_sivashinsky}


@_ode((3.0, 5.0, 0.0), 0.05, 1200)
def rossler(x: Any, y: Any, z: Any) -> Any:
    """Rössler, chaotic; z comes in spikes."""
    return -y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)


@_ode((-5.0, 0.0, 0.0), 0.02, 600)
def halvorsen(x: Any, y: Any, z: Any) -> Any:
    """Halvorsen, chaotic."""
    return -1.4 * x - 4 * (y + z) - y**2, -1.4 * y - 4 * (z + x) - z**2, -1.4 * z - 4 * (x + y) - x**2


@_ode((2.0, 0.0, -1.0), 0.2, 800, library=Polynomials(2) + Fourier(2))
def thomas(x: Any, y: Any, z: Any) -> Any:
    """Thomas, slow chaos; needs sines."""
    return np.sin(y) - 0.2 * x, np.sin(z) - 0.2 * y, np.sin(x) - 0.2 * z


@_ode((0.5, 0.0), 0.05, 400)
def van_der_pol(x: Any, v: Any) -> Any:
    """Van der Pol, a limit cycle, reached from inside."""
    return v, 1.5 * (1 - x**2) * v - x


@_ode((2.0, 0.0), 0.05, 500)
def duffing(x: Any, v: Any) -> Any:
    """Duffing, damped, two wells."""
    return v, x - x**3 - 0.1 * v


@_ode((1.8, 1.3), 0.1, 400)
def lotka_volterra(x: Any, y: Any) -> Any:
    """Lotka–Volterra, closed orbits."""
    return 2 / 3 * x - 4 / 3 * x * y, x * y - y


@_ode((2.0, 0.0), 0.05, 500)
def linear_oscillator(x: Any, y: Any) -> Any:
    """Damped linear oscillator; decays."""
    return -0.1 * x + 2 * y, -2 * x - 0.1 * y


@_ode((2.0, 0.0), 0.02, 1000)
def cubic_oscillator(x: Any, y: Any) -> Any:
    """Damped cubic oscillator; decays and slows down."""
    return -0.1 * x**3 + 2 * y**3, -2 * x**3 - 0.1 * y**3


@_ode((-1.0, 1.0), 0.2, 1000)
def fitzhugh_nagumo(v: Any, w: Any) -> Any:
    """FitzHugh–Nagumo, spikes between slow stretches."""
    return v - v**3 / 3 - w + 0.5, 0.08 * (v + 0.7 - 0.8 * w)


@_ode((1.0, 1.0), 0.05, 600)
def brusselator(x: Any, y: Any) -> Any:
    """Brusselator, a limit cycle with steep flanks."""
    return 1 - 4 * x + x**2 * y, 3 * x - x**2 * y


@_ode((1.0, 2.0), 0.1, 600)
def selkov(x: Any, y: Any) -> Any:
    """Sel'kov's glycolysis, a limit cycle."""
    return -x + 0.08 * y + x**2 * y, 0.6 - 0.08 * y - x**2 * y


@_ode((3.0, 0.0), 0.05, 500)
def hopf(x: Any, y: Any) -> Any:
    """Hopf normal form; spirals in to a circle."""
    return 0.1 * x - y - 0.1 * x * (x**2 + y**2), x + 0.1 * y - 0.1 * y * (x**2 + y**2)


@_ode((2.0, -2.0), 0.02, 500, library=Polynomials(2))
def slow_manifold(x: Any, y: Any) -> Any:
    """Slow manifold: y falls onto a curve near y = x² and decays along it."""
    return -0.2 * x, 2.0 * (x**2 - y)


@_ode((0.98, 0.02), 0.05, 300, library=Polynomials(2))
def sir(s: Any, i: Any) -> Any:
    """Epidemic (SIR, as fractions), one wave."""
    return -2 * s * i, 2 * s * i - 0.5 * i


@_ode((2.8, 0.0), 0.1, 400, library=Polynomials(2) + Fourier(1))
def pendulum(a: Any, w: Any) -> Any:
    """Damped pendulum; needs a sine."""
    return w, -np.sin(a) - 0.1 * w


@_ode((0.3,), 1.0, 200, kind="map")
def logistic_map(x: Any) -> Any:
    """Logistic map, chaotic."""
    return (3.8 * x * (1 - x),)


@_ode((0.1, 0.1), 1.0, 300, kind="map")
def henon_map(x: Any, y: Any) -> Any:
    """Hénon map, chaotic."""
    return 1 - 1.4 * x**2 + y, 0.3 * x


@_pde(_waves(5, seed=1), 10.0, 0.05, 0.01)
def burgers() -> Any:
    """Burgers; waves steepen and merge."""
    return {"u u_x": -1.0, "u_xx": 0.1}


@_pde(2.0 * (1 + _waves(4, seed=2)), 40.0, 0.05, 0.005)
def korteweg_de_vries() -> Any:
    """Korteweg–de Vries; solitons of several speeds pass through each other."""
    return {"u u_x": -1.0, "u_xxx": -1.0}


@_pde(2.0 * _waves(4, seed=3), 30.0, 0.05, 0.005)
def kdv_burgers() -> Any:
    """Korteweg–de Vries–Burgers."""
    return {"u u_x": -1.0, "u_xx": 0.2, "u_xxx": -0.5}


@_pde(_waves(6, seed=4), 30.0, 0.02, 0.005)
def modified_kdv() -> Any:
    """KdV with a cubic flux (modified KdV)."""
    return {"u^2 u_x": -1.0, "u_xxx": -1.0}


@_pde(1.2 * _waves(8, seed=7), 16 * np.pi, 0.05, 0.0125)
def swift_hohenberg() -> Any:
    """Swift–Hohenberg with a quadratic term; a pattern grows and settles."""
    return {"u": -0.7, "u_xx": -2.0, "u_xxxx": -1.0, "u^2": 1.0, "u^3": -1.0}


@_pde(0.6 * _bump(15, 8) + 1.5 * _bump(40, 20) + 0.2 * _bump(62, 3), 80.0, 0.04, 0.02)
def fisher_kpp() -> Any:
    """Fisher–KPP; bumps grow into fronts that run into each other."""
    return {"u_xx": 1.0, "u": 1.0, "u^2": -1.0}


@_pde(1.5 * _waves(6, seed=10), 24.0, 0.025, 0.0125)
def allen_cahn() -> Any:
    """Allen–Cahn; domains of ±1 form and coarsen."""
    return {"u_xx": 0.5, "u": 1.0, "u^3": -1.0}


@_pde(_waves(8, seed=7), 20.0, 0.025, 0.025)
def advection_diffusion() -> Any:
    """Advection and diffusion, linear: every mode moves and decays on its own."""
    return {"u_x": -1.0, "u_xx": 0.2}


@_pde(1.5 * _waves(5, seed=10), 14.0, 0.02, 0.004)
def nonlinear_diffusion() -> Any:
    """Diffusion that grows with the field."""
    return {"u_x": -0.5, "u_xx": 0.4, "u^2 u_xx": 0.4}
