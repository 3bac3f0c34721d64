"""Fields whose equations are known, for trying methods on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ardea.core.problem import Array
from ardea.dynamics.field_simulation import SpectralEquation
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.known import ALL_PDES, System, listed


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


def _pde(u0: Array, length: float, dt: float, max_step: float) -> Callable[[Any], Callable[[], Pde]]:
    """Make a function that returns the terms of u_t a factory of its system."""
    size = (u0, dt, 200, FieldTerms(4, 4), length, max_step)
    return lambda terms: listed(Pde("pde", terms.__name__, ("u",), (terms(),), *size), terms.__doc__)


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


ALL_PDES |= {"kuramoto_sivashinsky": kuramoto_sivashinsky}


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
