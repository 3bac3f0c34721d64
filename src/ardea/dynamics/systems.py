"""Systems whose equations are known: ordinary differential equations, maps, and fields, for trying methods on.

Every factory returns a `System`, which simulates itself, adds noise, and states its true terms by name. Lorenz 63,
Lorenz 96 and Kuramoto–Sivashinsky are set up as in the paper (with what its text leaves open as its authors ran it).

>>> from ardea.dynamics import systems
>>> t, x = systems.lorenz63().simulate()
>>> x.shape
(251, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from ardea.core.problem import Array
from ardea.dynamics.field_systems import *  # noqa: F403  (fields stand here for users, too: `systems.burgers`)
from ardea.dynamics.known import ALL_FIELDS as ALL_FIELDS
from ardea.dynamics.known import ALL_MAPS as ALL_MAPS
from ardea.dynamics.known import ALL_ODES, System, listed
from ardea.dynamics.known import ALL_PDES as ALL_PDES
from ardea.dynamics.libraries import Library, Polynomials
from ardea.dynamics.parametric import Fourier
from ardea.dynamics.terms import State, Term, Wave
from ardea.names import default_names


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


class Expansion(dict[Term, float]):
    """Σ number · term, closed under sums and products: what a function of states amounts to.

    Examples
    --------
    >>> x, y = (Expansion({Term.monomial([i]): 1.0}) for i in range(2))
    >>> {term.name("xy"): number for term, number in (x * (28 - y) - np.sin(y)).items()}
    {'x y': -1.0, 'x': 28.0, 'sin(y)': -1.0}
    """

    def __add__(self, other: Expansion | float) -> Expansion:
        total = Expansion(self)
        for term, number in _expanded(other).items():
            total[term] = total.get(term, 0.0) + number
        return total

    def __mul__(self, other: Expansion | float) -> Expansion:
        total = Expansion()
        for term, number in _expanded(other).items():
            total += Expansion({own * term: number * value for own, value in self.items()})
        return total

    def __sub__(self, other: Expansion | float) -> Expansion:
        return self + _expanded(other) * -1.0

    def __rsub__(self, other: float) -> Expansion:
        return self * -1.0 + other

    def __neg__(self) -> Expansion:
        return self * -1.0

    def __truediv__(self, other: float) -> Expansion:
        return self * (1 / other)

    def __pow__(self, exponent: int) -> Expansion:
        return self if exponent == 1 else self * self ** (exponent - 1)

    __radd__, __rmul__ = __add__, __mul__

    def sin(self) -> Expansion:
        """Return the sine of a state: `np.sin` calls this."""
        (term,) = self
        return Expansion({Term.of(Wave("sin", 1, term.arguments[0])): 1.0})


def _expanded(value: Expansion | float) -> Expansion:
    return value if isinstance(value, Expansion) else Expansion({Term(): float(value)})


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


def _ode(*start: Any, **more: Any) -> Callable[[Any], Callable[[], StateSystem]]:
    """Make a flow a factory of its system, given the start, the time between rows, and their number."""
    return lambda flow: listed(_of_flow(flow.__name__, flow, signature(flow).parameters, *start, **more), flow.__doc__)


@lru_cache(maxsize=32)
def lorenz63(seed: int = 0) -> StateSystem:
    """Lorenz 63: x' = 10(y − x), y' = x(28 − z) − y, z' = xy − (8/3)z; 251 rows at dt = 0.05, quintic library.

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


ALL_ODES |= {"lorenz63": lorenz63, "lorenz96": lorenz96}


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
