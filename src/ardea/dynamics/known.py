"""What all systems with known equations have in common: they simulate themselves, add noise, and tell their terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ardea.core.lazy import cached_property
from ardea.core.problem import Array
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Library
from ardea.dynamics.simulation import checked_times

ALL_ODES: dict[str, Callable[[], Any]] = {}
ALL_MAPS: dict[str, Callable[[], Any]] = {}
ALL_PDES: dict[str, Callable[[], Any]] = {}
ALL_FIELDS: dict[str, Callable[[], Any]] = {}
# Where systems are listed, and how the left-hand sides of their equations are written.
LISTS: dict[str, tuple[dict[str, Any], str]] = {
    "ode": (ALL_ODES, "{}'"),
    "map": (ALL_MAPS, "{} after one step"),
    "pde": (ALL_PDES, "{}_t"),
    "field": (ALL_FIELDS, "{}_t"),
}


@dataclass(frozen=True, eq=False)
class System(ABC):
    """A system with known equations.

    Attributes
    ----------
    kind : {"ode", "map", "pde", "field"}
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

    kind: Literal["ode", "map", "pde", "field"]
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


def listed(system: System, told: str | None) -> Callable[[], Any]:
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
