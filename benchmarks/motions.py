"""Motions with known equations: those of dysts, of ODEBench, of `ardea.dynamics.systems`, and some of our own.

Every `Motion` integrates itself (DOP853, relative tolerance 1e-12); solutions are kept in `results/.cache`, under a
name that depends on everything that goes into them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from ardea.dynamics import CommonTerms, Fourier, Polynomials, systems
from benchmarks.process import ROOT

Array = NDArray[np.float64]
Truth = tuple[Mapping[str, float], ...]
Flow = Callable[[Any], Any]

DATA = ROOT / "benchmarks" / "data"
CACHE = ROOT / "benchmarks" / "results" / ".cache"
TIGHT = 1e-12
# How dysts is usually sampled.
PERIODS, PER_PERIOD = 10, 100
# ODEBench: candidates are at least of this degree, so that little is told.
LEAST_DEGREE = 3
# Where Lorenz 63 starts in most publications on finding it.
LORENZ_START = (-8.0, 8.0, 27.0)


@dataclass(frozen=True, eq=False)
class Motion:
    """x' = flow(x) from x0 at the times t, with true terms by name, one mapping for every equation."""

    name: str
    states: tuple[str, ...]
    truth: Truth
    flow: Flow  # maps states of shape (n,) or (n, rows) to derivatives of the same shape; complex numbers allowed
    x0: Array
    t: Array
    library: Any

    def solution(self, x0: Array | None = None, t: Array | None = None) -> Array:
        """Return the states at the times, shape (times, n)."""
        start, times = self.x0 if x0 is None else x0, self.t if t is None else t
        return kept(("solution", self, start, times), lambda: integrated(self.flow, start, times))

    def term_columns(self) -> tuple[list[int], Array]:
        """Return, of every true term, the equation it is in and its column in the library."""
        names = list(self.library.names(self.states))
        pairs = [(row, names.index(term)) for row, terms in enumerate(self.truth) for term in terms]
        return [row for row, _ in pairs], np.array([column for _, column in pairs])


def integrated(flow: Flow, x0: Array, t: Array, tolerance: float = TIGHT) -> Array:
    """Return the solution at the times, shape (times, n)."""
    size = max(1.0, float(np.max(np.abs(x0))))
    solution = solve_ivp(
        lambda _, x: flow(x), (t[0], t[-1]), x0, method="DOP853", t_eval=t, rtol=tolerance, atol=tolerance * size
    )
    if not solution.success or not np.all(np.isfinite(solution.y)):
        raise ValueError(f"could not be integrated: {solution.message}")
    return np.ascontiguousarray(solution.y.T)


def kept(key: tuple[Any, ...], compute: Callable[[], Array]) -> Array:
    """Return an array from the cache; compute it where it is not there yet."""
    path = CACHE / f"{_digest(key)}.npy"
    if path.exists():
        return np.asarray(np.load(path))
    values = compute()
    CACHE.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.save(file, values)
    temporary.replace(path)
    return values


def _digest(key: tuple[Any, ...]) -> str:
    digest = hashlib.sha256()
    for part in key:
        if isinstance(part, Motion):
            digest.update(repr((part.name, part.states, [dict(terms) for terms in part.truth])).encode())
        else:
            digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return digest.hexdigest()[:24]


# Polynomials


def polynomial_flow(sides: Sequence[Sequence[tuple[Sequence[int], float]]]) -> Flow:
    """Return the flow of equations given as lists of (powers of the states, coefficient)."""
    powers = sorted({tuple(power) for side in sides for power, _ in side})
    weights = np.zeros((len(sides), len(powers)))
    for row, side in enumerate(sides):
        for power, coefficient in side:
            weights[row, powers.index(tuple(power))] += coefficient
    factors = [[(state, p) for state, p in enumerate(power) if p] for power in powers]

    def flow(x: Any) -> Any:
        terms = np.ones((len(powers), *np.shape(x)[1:]), dtype=np.result_type(x, float))
        for row, factor in enumerate(factors):
            for state, power in factor:
                terms[row] = terms[row] * x[state] ** power
        return np.tensordot(weights, terms, axes=1)

    return flow


def monomial(states: Sequence[str], powers: Sequence[int]) -> str:
    """Return the name of a product of powers as the libraries write it: `x^2 y`, `1`."""
    factors = [name if power == 1 else f"{name}^{power}" for name, power in zip(states, powers, strict=True) if power]
    return " ".join(factors) or "1"


def polynomial_motion(name: str, sides: Sequence[Any], x0: Array, t: Array, degree: int) -> Motion:
    """Return a motion given by the powers of its terms; states are called x0, x1, …."""
    states = tuple(f"x{i}" for i in range(len(sides)))
    truth = tuple({monomial(states, powers): float(number) for powers, number in side} for side in sides)
    return Motion(name, states, truth, polynomial_flow(sides), x0, t, Polynomials(degree))


@cache
def dysts() -> dict[str, Motion]:
    """Return the flows of dysts: ten periods of 100 points from the published start.

    What a fit is told of them is the degree of the flow, as the degree of the library, and nothing else.
    """
    motions = {}
    for one in json.loads((DATA / "dysts.json").read_text(encoding="utf-8")):
        t = one["period"] / PER_PERIOD * np.arange(PERIODS * PER_PERIOD)
        motions[one["name"]] = polynomial_motion(one["name"], one["truth"], np.array(one["x0"]), t, one["degree"])
    return motions


@cache
def odebench() -> dict[str, Motion]:
    """Return the polynomial systems of ODEBench from the first start; candidates of degree 3, or more where needed."""
    motions = {}
    for one in json.loads((DATA / "odebench.json").read_text(encoding="utf-8")):
        sides = _polynomials(one["right_hand_sides"], one["d"])
        if sides is None:
            continue
        degree = max(LEAST_DEGREE, *(sum(powers) for side in sides for powers, _ in side))
        t = np.linspace(0.0, one["t_end"], one["n_times"])
        name = f"ode{one['id']}"
        motions[name] = polynomial_motion(name, sides, np.array(one["x0"][0], dtype=float), t, degree)
    return motions


@cache
def odebench_whole() -> dict[str, tuple[Motion, Array]]:
    """Return all 63 systems of ODEBench from the first start, with their second start.

    The library is the same for all. The truth of an equation is its right-hand side, as one term.
    """
    import sympy

    found = {}
    for one in json.loads((DATA / "odebench.json").read_text(encoding="utf-8")):
        states = sympy.symbols([f"x{i}" for i in range(one["d"])])
        sides = [side.replace("x_", "x") for side in one["right_hand_sides"]]
        own = {str(state): state for state in states}
        functions = [sympy.lambdify(states, sympy.sympify(side, locals=own), "numpy") for side in sides]

        def flow(x: Any, functions: Sequence[Any] = functions) -> Any:
            return np.stack([np.broadcast_to(function(*x), np.shape(x)[1:]) for function in functions])

        first, second = (np.array(start, dtype=float) for start in one["x0"])
        t, name = np.linspace(0.0, one["t_end"], one["n_times"]), f"ode{one['id']}"
        truth = tuple({side: 1.0} for side in sides)
        found[name] = Motion(name, tuple(own), truth, flow, first, t, CommonTerms()), second
    return found


def _polynomials(sides: Sequence[str], n: int) -> list[list[tuple[tuple[int, ...], float]]] | None:
    """Return right-hand sides as powers and coefficients; None where one of them is not a polynomial."""
    import sympy

    states = sympy.symbols([f"x_{i}" for i in range(n)])
    expressions = [sympy.sympify(side, locals={str(state): state for state in states}) for side in sides]
    if not all(expression.is_polynomial(*states) for expression in expressions):
        return None
    expanded = [sympy.Poly(expression, *states).terms() for expression in expressions]
    return [[(tuple(map(int, powers)), float(number)) for powers, number in side if number != 0] for side in expanded]


# Systems of the package, and others


def of_system(name: str) -> Motion:
    """Return a system of `ardea.dynamics.systems` with its own start, times and library."""
    system = systems.ALL_ODES[name]()

    def flow(x: Any) -> Any:
        return np.stack([np.broadcast_to(side, np.shape(x)[1:]) for side in system.flow(*x)])

    return Motion(name, system.feature_names, system.true_terms, flow, system.x0, system.t, system.library)


def lorenz(dt: float, rows: int, degree: int, x0: Sequence[float] = LORENZ_START) -> Motion:
    """Return Lorenz 63 with start, times and candidates of one's own."""
    own = of_system("lorenz63")
    return Motion("lorenz63", own.states, own.truth, own.flow, np.array(x0), dt * np.arange(rows), Polynomials(degree))


def oscillator(name: str, force: Callable[[Any, Any], Any], terms: Mapping[str, float], *start: float) -> Motion:
    """Return x'' = force(x, x') as a motion of x and x' that estimates the terms of x'' only; 500 rows at dt = .05."""
    library = Polynomials(3) + Fourier(1) if "sin(x)" in terms else Polynomials(3)
    t, states = 0.05 * np.arange(500), ("x", "x'")
    return Motion(name, states, ({}, terms), lambda x: np.stack([x[1], force(*x)]), np.array(start), t, library)


@cache
def oscillators() -> dict[str, Motion]:
    """Return the five oscillators of which only the position is measured."""
    motions = [
        oscillator("duffing", lambda x, v: x - x**3 - 0.1 * v, {"x": 1.0, "x^3": -1.0, "x'": -0.1}, 2.0, 0.0),
        oscillator(
            *("van_der_pol", lambda x, v: 1.5 * (1 - x**2) * v - x, {"x": -1.0, "x'": 1.5, "x^2 x'": -1.5}, 0.5, 0.0)
        ),
        oscillator("rayleigh", lambda x, v: (1 - v**2) * v - x, {"x": -1.0, "x'": 1.0, "x'^3": -1.0}, 0.5, 0.0),
        oscillator("damped_cubic", lambda x, v: -2 * x**3 - 0.1 * v, {"x^3": -2.0, "x'": -0.1}, 2.0, 0.0),
        oscillator("pendulum", lambda x, v: -np.sin(x) - 0.1 * v, {"sin(x)": -1.0, "x'": -0.1}, 2.8, 0.0),
    ]
    return {motion.name: motion for motion in motions}
