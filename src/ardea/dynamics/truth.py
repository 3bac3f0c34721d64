"""Systems with known truth: they simulate themselves, add noise, and state their true terms by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from ardea.core.problem import Array
from ardea.dynamics.etdrk4 import SpectralEquation
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Library, Polynomials
from ardea.dynamics.terms import State, Term, Wave

Kind = Literal["ode", "map", "pde"]
Equations = Sequence[Mapping[str, float]]
# Maps the states (one array each) to their derivatives, or to their next values.
Flow = Callable[..., tuple[Array, ...] | Array]


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

    kind: Kind
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


@dataclass(frozen=True, eq=False)
class StateSystem(System):
    """x' = flow(x), integrated by DOP853 with relative and absolute tolerance 1e-12, or x_{n+1} = flow(x_n)."""

    flow: Flow = field(repr=False)

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
    def equation(self) -> SpectralEquation:
        """The right-hand side."""
        terms = FieldTerms(4, 4)
        return SpectralEquation(terms.terms(), self.true_coefficients(terms)[0], len(self.x0), self.length)

    def exact_derivative(self, x: ArrayLike) -> Array:
        """Return u_t for a field of shape (n_x, n_t) or (n_x,), by FFT."""
        return self.equation.derivative(np.asarray(x, dtype=float))

    def _solve(self, x0: Array, t: Array) -> Array:
        return self.equation.solve(x0, t, self.max_step)


class _Expanded:
    """Σ number · term, closed under sums and products: what a right-hand side written as text amounts to."""

    def __init__(self, parts: dict[Term, float]) -> None:
        self.parts = parts

    def __add__(self, other: _Expanded | float) -> _Expanded:
        parts = dict(self.parts)
        for term, number in _expanded(other).parts.items():
            parts[term] = parts.get(term, 0.0) + number
        return _Expanded(parts)

    def __mul__(self, other: _Expanded | float) -> _Expanded:
        total = _Expanded({})
        for term, number in _expanded(other).parts.items():
            total += _Expanded({own * term: number * value for own, value in self.parts.items()})
        return total

    def __sub__(self, other: _Expanded | float) -> _Expanded:
        return self + _expanded(other) * -1.0

    def __rsub__(self, other: float) -> _Expanded:
        return self * -1.0 + other

    def __neg__(self) -> _Expanded:
        return self * -1.0

    def __truediv__(self, other: float) -> _Expanded:
        return self * (1 / other)

    def __pow__(self, exponent: int) -> _Expanded:
        return self if exponent == 1 else self * self ** (exponent - 1)

    __radd__, __rmul__ = __add__, __mul__


def _expanded(value: _Expanded | float) -> _Expanded:
    return value if isinstance(value, _Expanded) else _Expanded({Term(): float(value)})


def _sine(state: _Expanded) -> _Expanded:
    (term,) = state.parts
    return _Expanded({Term.of(Wave("sin", 1, term.arguments[0])): 1.0})


def system_of_states(
    name: str,
    equations: str,
    x0: ArrayLike,
    times: tuple[float, int],
    library: Library | None = None,
    kind: Kind = "ode",
) -> StateSystem:
    """Return a system from text such as "x: y; y: -x": flow and true terms are both read off it."""
    names, sides = zip(*(one.split(": ") for one in equations.split("; ")), strict=True)
    code = f"lambda {', '.join(names)}: ({', '.join(sides)},)"
    parts = eval(code, {"sin": _sine})(*(_Expanded({Term.of(State(i)): 1.0}) for i in range(len(names))))
    terms = tuple({term.name(names): number for term, number in one.parts.items()} for one in parts)
    x0, flow = np.asarray(x0, dtype=float), eval(code, {"sin": np.sin})
    return StateSystem(kind, name, names, terms, x0, *times, library or Polynomials(3), flow)
