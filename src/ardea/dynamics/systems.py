"""Systems whose equations are known: ordinary differential equations, maps, and fields, for trying methods on.

Every factory returns a `System`, which simulates itself, adds noise, and states its true terms by name. Lorenz 63,
Lorenz 96 and Kuramoto–Sivashinsky are set up as in the paper (with what its text leaves open as its authors ran it).

>>> from ardea.dynamics import systems
>>> t, x = systems.lorenz63().simulate()
>>> x.shape
(251, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ardea.core.problem import Array
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Fourier, Polynomials
from ardea.dynamics.truth import Pde, StateSystem, System, system_of_states
from ardea.names import default_names

ALL_ODES: dict[str, Callable[[], StateSystem]] = {}
ALL_MAPS: dict[str, Callable[[], StateSystem]] = {}
ALL_PDES: dict[str, Callable[[], Pde]] = {}


def _always(system: System, told: str, listed: dict[str, Callable[[], Any]]) -> Callable[[], Any]:
    """Return, and list, a function that gives one system."""

    def factory() -> System:
        return system

    factory.__name__ = factory.__qualname__ = system.name
    factory.__doc__ = told
    return listed.setdefault(system.name, factory)


def _ode(name: str, told: str, equations: str, start: tuple[Any, float, int], *more: Any) -> Callable[[], StateSystem]:
    system = system_of_states(name, equations, start[0], start[1:], *more)
    prime = "'" if system.kind == "ode" else " after one step"
    text = ", ".join(one.replace(": ", f"{prime} = ") for one in equations.split("; "))
    return _always(system, f"{told}: {text}.", ALL_ODES if system.kind == "ode" else ALL_MAPS)


@lru_cache(maxsize=32)
def lorenz63(seed: int = 0) -> StateSystem:
    """Lorenz 63: x' = 10(y − x), y' = x(28 − z) − y, z' = xy − (8/3)z; 251 rows at dt = .05, quintic library.

    Parameters
    ----------
    seed : int
        Seed of the start, drawn from N((0, 0, 15), 5² I) as in the paper.
    """
    equations = "x: 10 * (y - x); y: x * (28 - z) - y; z: x * y - 8 / 3 * z"
    start = np.array([0.0, 0.0, 15.0]) + 5.0 * np.random.default_rng(seed).normal(size=3)
    return system_of_states("lorenz63", equations, start, (0.05, 251), Polynomials(5))


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
    j, x = np.arange(n), default_names(n)
    sides = [f"(x{(i + 1) % n} - x{(i - 2) % n}) * x{(i - 1) % n} - x{i} + {float(forcing)!r}" for i in range(n)]
    equations = "; ".join(f"{name}: {side}" for name, side in zip(x, sides, strict=True))
    return system_of_states("lorenz96", equations, np.exp(-((j - n // 2) ** 2) / 16), (0.05, 200), Polynomials(2))


ALL_ODES |= {"lorenz63": lorenz63, "lorenz96": lorenz96}

rossler = _ode(
    "rossler",
    "Rössler, chaotic; z comes in spikes",
    "x: -y - z; y: x + 0.2 * y; z: 0.2 + z * (x - 5.7)",
    ((3.0, 5.0, 0.0), 0.05, 1200),
)
halvorsen = _ode(
    "halvorsen",
    "Halvorsen, chaotic",
    "x: -1.4 * x - 4 * (y + z) - y**2; y: -1.4 * y - 4 * (z + x) - z**2; z: -1.4 * z - 4 * (x + y) - x**2",
    ((-5.0, 0.0, 0.0), 0.02, 600),
)
thomas = _ode(
    "thomas",
    "Thomas, slow chaos; needs sines",
    "x: sin(y) - 0.2 * x; y: sin(z) - 0.2 * y; z: sin(x) - 0.2 * z",
    ((2.0, 0.0, -1.0), 0.2, 800),
    Polynomials(2) + Fourier(2),
)
van_der_pol = _ode(
    "van_der_pol",
    "Van der Pol, a limit cycle, reached from inside",
    "x: v; v: 1.5 * (1 - x**2) * v - x",
    ((0.5, 0.0), 0.05, 400),
)
duffing = _ode("duffing", "Duffing, damped, two wells", "x: v; v: x - x**3 - 0.1 * v", ((2.0, 0.0), 0.05, 500))
lotka_volterra = _ode(
    "lotka_volterra",
    "Lotka–Volterra, closed orbits",
    "x: 2 / 3 * x - 4 / 3 * x * y; y: x * y - y",
    ((1.8, 1.3), 0.1, 400),
)
linear_oscillator = _ode(
    "linear_oscillator",
    "Damped linear oscillator; decays",
    "x: -0.1 * x + 2 * y; y: -2 * x - 0.1 * y",
    ((2.0, 0.0), 0.05, 500),
)
cubic_oscillator = _ode(
    "cubic_oscillator",
    "Damped cubic oscillator; decays and slows down",
    "x: -0.1 * x**3 + 2 * y**3; y: -2 * x**3 - 0.1 * y**3",
    ((2.0, 0.0), 0.02, 1000),
)
fitzhugh_nagumo = _ode(
    "fitzhugh_nagumo",
    "FitzHugh–Nagumo, spikes between slow stretches",
    "v: v - v**3 / 3 - w + 0.5; w: 0.08 * (v + 0.7 - 0.8 * w)",
    ((-1.0, 1.0), 0.2, 1000),
)
brusselator = _ode(
    "brusselator",
    "Brusselator, a limit cycle with steep flanks",
    "x: 1 - 4 * x + x**2 * y; y: 3 * x - x**2 * y",
    ((1.0, 1.0), 0.05, 600),
)
selkov = _ode(
    "selkov",
    "Sel'kov's glycolysis, a limit cycle",
    "x: -x + 0.08 * y + x**2 * y; y: 0.6 - 0.08 * y - x**2 * y",
    ((1.0, 2.0), 0.1, 600),
)
hopf = _ode(
    "hopf",
    "Hopf normal form; spirals in to a circle",
    "x: 0.1 * x - y - 0.1 * x * (x**2 + y**2); y: x + 0.1 * y - 0.1 * y * (x**2 + y**2)",
    ((3.0, 0.0), 0.05, 500),
)
slow_manifold = _ode(
    "slow_manifold",
    "Slow manifold: y falls onto a curve near y = x² and decays along it",
    "x: -0.2 * x; y: 2.0 * (x**2 - y)",
    ((2.0, -2.0), 0.02, 500),
    Polynomials(2),
)
sir = _ode(
    "sir",
    "Epidemic (SIR, as fractions), one wave",
    "s: -2 * s * i; i: 2 * s * i - 0.5 * i",
    ((0.98, 0.02), 0.05, 300),
    Polynomials(2),
)
pendulum = _ode(
    "pendulum",
    "Damped pendulum; needs a sine",
    "a: w; w: -sin(a) - 0.1 * w",
    ((2.8, 0.0), 0.1, 400),
    Polynomials(2) + Fourier(1),
)
logistic_map = _ode(
    "logistic_map", "Logistic map, chaotic", "x: 3.8 * x * (1 - x)", ((0.3,), 1.0, 200), Polynomials(3), "map"
)
henon_map = _ode(
    "henon_map",
    "Hénon map, chaotic",
    "x: 1 - 1.4 * x**2 + y; y: 0.3 * x",
    ((0.1, 0.1), 1.0, 300),
    Polynomials(3),
    "map",
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


def _bumps() -> Array:
    x = _grid(256, 80.0)
    return np.asarray(
        0.6 * np.exp(-((x - 15) ** 2) / 8) + 1.5 * np.exp(-((x - 40) ** 2) / 20) + 0.2 * np.exp(-((x - 62) ** 2) / 3)
    )


def _pde(name: str, told: str, true_terms: Mapping[str, float], u0: Array, *more: Any) -> Callable[[], Pde]:
    text = " + ".join(f"{number:g} {term}" for term, number in true_terms.items()).replace("+ -", "- ")
    return _always(_field(name, true_terms, u0, *more), f"{told}: u_t = {text}.", ALL_PDES)


def _field(name: str, true_terms: Mapping[str, float], u0: Array, size: tuple[float, float, int, float]) -> Pde:
    """Return a field, given its period, the time between rows, their number, and the longest internal step."""
    length, dt, n_rows, max_step = size
    return Pde("pde", name, ("u",), (true_terms,), u0, dt, n_rows, FieldTerms(4, 4), length, max_step)


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
    u0, terms = np.cos(x / 8) * (1 + np.sin(x / 16)), {"u u_x": -1.0, "u_xx": -1.0, "u_xxxx": -1.0}
    return _field("kuramoto_sivashinsky", terms, u0, (length, 0.14, 1072, 0.01))


ALL_PDES |= {"kuramoto_sivashinsky": kuramoto_sivashinsky}

burgers = _pde(
    "burgers",
    "Burgers; waves steepen and merge",
    {"u u_x": -1.0, "u_xx": 0.1},
    _waves(256, 5, seed=1),
    (10.0, 0.05, 200, 0.01),
)
korteweg_de_vries = _pde(
    "korteweg_de_vries",
    "Korteweg–de Vries; solitons of several speeds pass through each other",
    {"u u_x": -1.0, "u_xxx": -1.0},
    2.0 * (1 + _waves(256, 4, seed=2)),
    (40.0, 0.05, 200, 0.005),
)
kdv_burgers = _pde(
    "kdv_burgers",
    "Korteweg–de Vries–Burgers",
    {"u u_x": -1.0, "u_xx": 0.2, "u_xxx": -0.5},
    2.0 * _waves(256, 4, seed=3),
    (30.0, 0.05, 200, 0.005),
)
modified_kdv = _pde(
    "modified_kdv",
    "KdV with a cubic flux (modified KdV)",
    {"u^2 u_x": -1.0, "u_xxx": -1.0},
    _waves(256, 6, seed=4),
    (30.0, 0.02, 200, 0.005),
)
swift_hohenberg = _pde(
    "swift_hohenberg",
    "Swift–Hohenberg with a quadratic term; a pattern grows and settles",
    {"u": -0.7, "u_xx": -2.0, "u_xxxx": -1.0, "u^2": 1.0, "u^3": -1.0},
    1.2 * _waves(256, 8, seed=7),
    (16 * np.pi, 0.05, 200, 0.0125),
)
fisher_kpp = _pde(
    "fisher_kpp",
    "Fisher–KPP; bumps grow into fronts that run into each other",
    {"u_xx": 1.0, "u": 1.0, "u^2": -1.0},
    _bumps(),
    (80.0, 0.04, 200, 0.02),
)
allen_cahn = _pde(
    "allen_cahn",
    "Allen–Cahn; domains of ±1 form and coarsen",
    {"u_xx": 0.5, "u": 1.0, "u^3": -1.0},
    1.5 * _waves(256, 6, seed=10),
    (24.0, 0.025, 200, 0.0125),
)
advection_diffusion = _pde(
    "advection_diffusion",
    "Advection and diffusion, linear: every mode moves and decays on its own",
    {"u_x": -1.0, "u_xx": 0.2},
    _waves(256, 8, seed=7),
    (20.0, 0.025, 200, 0.025),
)
nonlinear_diffusion = _pde(
    "nonlinear_diffusion",
    "Diffusion that grows with the field",
    {"u_x": -0.5, "u_xx": 0.4, "u^2 u_xx": 0.4},
    1.5 * _waves(256, 5, seed=10),
    (14.0, 0.02, 200, 0.004),
)
