"""How often Discovery says that no candidate of a field fits: libraries that lack the truth, and fits that are right.

    python -m benchmarks.field_misfit [--seed 3000] [--noises 0,.001,.01] [--only lacking|right] [--shown]

Lacking: eight equations whose terms the default library does not hold, and the fields of `ardea.dynamics.systems` with
libraries that are too small, 20 cases at every noise. Right: all fields of `systems` with the library that holds their
terms, ten draws at 0.1, 1 and 10 % and one without noise; counted are those whose support is exact. A warning is a
`MisfitWarning`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from threadpoolctl import threadpool_limits

from ardea.dynamics import Discovery, FieldTerms, MisfitWarning
from ardea.dynamics.systems import ALL_PDES

Array = NDArray[np.float64]
# From derivative(u, order), u, the angle 2πx/L and the time to u_t.
Slope = Callable[[Callable[[Array, int], Array], Array, Array, float], Array]

POINTS, TIMES, LENGTH = 128, 150, 10.0
ANGLE = 2 * np.pi * np.arange(POINTS) / POINTS
START = 1 + 0.5 * np.cos(ANGLE) + 0.3 * np.sin(2 * ANGLE)
MIXED = 0.1 * np.cos(ANGLE) + 0.3 * np.sin(3 * ANGLE) + 0.2 * np.cos(5 * ANGLE)
# The slope, the start and the last time of equations outside the default library.
OUTSIDE: dict[str, tuple[Slope, Array, float]] = {
    "porous medium": (lambda d, u, _a, _s: d(u * u, 2), START, 2.0),
    "Cahn–Hilliard": (lambda d, u, _a, _s: d(u**3 - u, 2) - 0.05 * d(u, 4), MIXED, 3.0),
    "speed depends on x": (lambda d, u, a, _s: -(1 + 0.6 * np.cos(a)) * d(u, 1) + 0.05 * d(u, 2), START, 4.0),
    "speed depends on t": (lambda d, u, _a, s: -(1 + 0.8 * np.sin(3 * s)) * u * d(u, 1) + 0.1 * d(u, 2), START, 4.0),
    "forced Burgers": (lambda d, u, a, s: -u * d(u, 1) + 0.2 * d(u, 2) + np.cos(2 * a - s), START, 6.0),
    "sin(3u)": (lambda d, u, _a, _s: 0.2 * d(u, 2) + np.sin(3 * u), 3 * START, 4.0),
    "u_x^2": (lambda d, u, _a, _s: 0.1 * d(u, 2) - 0.5 * d(u, 1) ** 2, START, 3.0),
}
# Powers and derivatives of libraries that are too small.
SMALL = [
    ("burgers", 4, 1),
    ("burgers", 0, 4),
    ("korteweg_de_vries", 4, 2),
    ("kdv_burgers", 4, 2),
    ("modified_kdv", 1, 4),
    ("swift_hohenberg", 2, 4),
    ("swift_hohenberg", 4, 2),
    ("fisher_kpp", 1, 4),
    ("allen_cahn", 2, 4),
    ("advection_diffusion", 4, 1),
    ("nonlinear_diffusion", 0, 4),
    ("kuramoto_sivashinsky", 4, 3),
]


def derivative(u: Array, order: int) -> Array:
    """Return a derivative on the periodic grid."""
    waves = 2j * np.pi / LENGTH * np.arange(POINTS // 2 + 1)
    return np.asarray(np.fft.irfft(waves**order * np.fft.rfft(u), POINTS))


def solved(slope: Callable[[float, Array], Array], start: Array, last: float) -> tuple[Array, Array]:
    """Return times and the solution, one column for every time."""
    t = np.linspace(0, last, TIMES)
    run = solve_ivp(slope, (0, last), start, t_eval=t, method="LSODA", rtol=1e-8, atol=1e-9)
    return t, run.y


def sine_gordon() -> tuple[Array, Array]:
    """Return times and u of u_tt = u_xx − sin 3u, of which no equation for u_t holds."""

    def slope(_time: float, state: Array) -> Array:
        u, v = np.split(state, 2)
        return np.concatenate([v, derivative(u, 2) - np.sin(3 * u)])

    t, both = solved(slope, np.concatenate([START - 1, np.zeros(POINTS)]), 8.0)
    return t, both[:POINTS]


def outside(name: str) -> tuple[Array, Array]:
    """Return times and field of an equation outside the default library."""
    slope, start, last = OUTSIDE[name]
    return solved(lambda time, u: slope(derivative, u, ANGLE, time), start, last)


def lacking(noise: float, seed: int) -> list[tuple[str, Any]]:
    """Return name and fitted arguments (field, times, coordinates, library) of all cases that lack the truth."""
    rng, cases = np.random.default_rng(seed), []
    space = (LENGTH * np.arange(POINTS) / POINTS,)
    for name, (t, u) in [*((name, outside(name)) for name in OUTSIDE), ("u_tt", sine_gordon())]:
        cases.append((name, (u + noise * u.std() * rng.normal(size=u.shape), t, space, FieldTerms())))
    for name, powers, derivatives in SMALL:
        system = ALL_PDES[name]()
        t, u = system.noisy(noise, seed)
        cases.append((f"{name}, {powers}, {derivatives}", (u, t, system.space, FieldTerms(powers, derivatives))))
    return cases


def right(noise: float, seed: int) -> list[tuple[str, Any, list[str]]]:
    """Return name, fitted arguments and true terms of all fields of `systems`."""
    cases = []
    for name, make in ALL_PDES.items():
        system = make()
        t, u = system.noisy(noise, seed)
        cases.append((name, (u, t, system.space, system.library), sorted(system.true_terms[0])))
    return cases


def fitted(u: Array, t: Array, space: tuple[Array, ...], library: FieldTerms) -> tuple[Discovery, int]:
    """Return the model and the number of its warnings of misfit."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model = Discovery(library).fit(u, t, space=space)
    return model, sum(issubclass(one.category, MisfitWarning) for one in raised)


def main() -> None:
    """Fit all cases and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=3000, help="seed of the first draw")
    parser.add_argument("--noises", default="0,.001,.01", help="of the cases that lack the truth")
    parser.add_argument("--only", choices=["lacking", "right"])
    parser.add_argument("--draws", type=int, default=10, help="draws of right cases at every noise")
    parser.add_argument("--shown", action="store_true", help="a line for every fit")
    options = parser.parse_args()

    def show(name: str, noise: float, model: Discovery, warned: int, start: float) -> None:
        if options.shown:
            spent = time.process_time() - start
            print(f"{name}, {noise}: {spent:.1f} s, misfit {model.misfit_}, {warned} warnings, {model.equations()}")

    with threadpool_limits(1):
        for noise in [] if options.only == "right" else map(float, options.noises.split(",")):
            told, slowest = [], 0.0
            for name, given in lacking(noise, options.seed):
                start = time.process_time()
                model, warned = fitted(*given)
                show(name, noise, model, warned, start)
                slowest = max(slowest, time.process_time() - start)
                told.append(warned > 0)
            print(
                f"lacking, noise {noise:g}: warned {sum(told)} of {len(told)}, at most {slowest:.0f} s each", flush=True
            )
        exact = alarms = fits = 0
        for noise in [] if options.only == "lacking" else (0.0, 0.001, 0.01, 0.1):
            for draw in range(options.draws if noise else 1):
                for name, given, terms in right(noise, options.seed + draw):
                    start = time.process_time()
                    model, warned = fitted(*given)
                    fits, same = fits + 1, sorted(model.equations_[0].terms) == terms
                    exact, alarms = exact + same, alarms + (same and warned > 0)
                    if warned or not same:
                        show(name, noise, model, warned, start)
        if fits:
            print(f"right: {exact} of {fits} exact, {alarms} of these warned of")


if __name__ == "__main__":
    main()
