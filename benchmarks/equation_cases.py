"""What `benchmarks.equations` measures: cases, each a set of trials, and the data, candidates and truth of every trial.

Unless a trial says that something is told, a fit gets the data and the candidates and nothing else. The noise of a
trial comes from its seed and its name; the same seed at another noise level gives the same errors times another
number. Noise is in shares of the standard deviation of all states together (`np.std` of the whole array), except in
ODEBench.

dysts
    82 chaotic flows, 10 periods of 100 points; polynomials of the flow's own degree (that is told).
odebench
    37 polynomial systems from their first start, noise x(1 + σξ); polynomials of degree 3, or more where needed.
lorenz
    Lorenz 63, 1,000 rows at dt = .01, quadratic candidates.
gaps
    Lorenz 63, 251 rows at dt = .05, rows or single values lost at random, or times jittered by ±30 % of a step.
short
    A circle and Lorenz 63: 20 series of 20 rows, and one.
positions
    Five oscillators x'' = f(x, x') of which x is measured; cubic candidates in x and x', for the pendulum also waves.
hare_lynx
    21 years of pelts of the Hudson's Bay Company. "True" are the terms of Lotka and Volterra with a published Bayesian
    fit: B. Carpenter, Predator–prey population dynamics: the Lotka–Volterra model in Stan, 2018.
process
    Motions that noise drives, measured with 2 % noise.
efficiency
    Every ordinary differential equation of `ardea.dynamics.systems`, against its Cramér–Rao bound.
time
    Lorenz 63 and Lorenz 96 (40 states). All other trials tell their CPU time as well.
constants
    Terms with unknown constants inside, among cubic candidates and a family of them: predators that saturate (Holling),
    an enzyme (Michaelis and Menten; two starts), a toggle switch with Hill terms (four starts), a pendulum in unknown
    units of angle, an epidemic with saturating incidence.
quick
    Twelve flows of dysts at 10 % and Lorenz 63 at 20 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np

from ardea.dynamics import Oscillation, Polynomials, Saturation, systems
from benchmarks.cramer_rao import variances
from benchmarks.motions import (
    Array,
    Motion,
    Truth,
    dysts,
    kept,
    lorenz,
    odebench,
    of_system,
    oscillators,
    polynomial_motion,
)

Bound = list[dict[str, float]]

# Noise of a state that is not measured, in units of that of the others.
UNMEASURED = 1e3
# Steps of the stochastic integrator between two rows.
FINE_STEPS = 50
HARE = "30 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22 25.4 27.1 40.3 57 76.6 52.3 19.5 11.2 7.6 14.6 16.2 24.7"
LYNX = "4 6.1 9.8 35.2 59.4 41.7 19 13 8.3 9.1 7.4 8 12.3 19.5 45.7 51.1 29.7 15.8 9.7 10.1 8.6"
QUICK_FLOWS = (
    *("Aizawa", "AtmosphericRegime", "Chen", "HindmarshRose", "HyperRossler", "HyperXu", "LiuChen", "Lorenz"),
    *("SprottE", "SprottTorus", "VallisElNino", "ZhouChen"),
)


@dataclass(frozen=True)
class Trial:
    """One fit."""

    case: str
    name: str
    variant: str
    noise: float
    seed: int

    def generator(self) -> np.random.Generator:
        """Return the source of the trial's errors."""
        return np.random.default_rng([self.seed, crc32(self.name.encode())])


@dataclass(frozen=True, eq=False)
class Sample:
    """What a trial gives to `Discovery(library, **options).fit(x, t, feature_names=names)`, and what is true."""

    x: Any
    t: Any
    names: Sequence[str]
    library: Any
    truth: Truth
    options: Mapping[str, Any] = field(default_factory=dict)
    # The least variance of every true coefficient, where it is known.
    bound: Callable[[], Bound] | None = None
    # True constants inside terms, by letter, of every equation.
    constants: tuple[Mapping[str, float], ...] = ()


@dataclass(frozen=True)
class Case:
    """Trials over all names, variants, noise levels and draws; `told` are variants in which more is told."""

    names: Callable[[], Iterable[str]]
    noises: tuple[float, ...]
    draws: int
    sample: Callable[[Trial], Sample]
    groups: tuple[str, ...] = ("noise",)
    variants: tuple[str, ...] = ("",)
    told: tuple[str, ...] = ()


def trials_of(
    case: str, *, names: Sequence[str], noises: Sequence[float], draws: int | None, seed: int, told: bool
) -> list[Trial]:
    """Return the trials of a case, for some or (where empty) all of its names and noise levels."""
    if case == "quick":
        flows = trials_of("dysts", names=QUICK_FLOWS, noises=(0.1,), draws=1, seed=seed, told=told)
        return flows + trials_of("lorenz", names=(), noises=(0.2,), draws=8, seed=seed, told=told)
    plan = CASES[case]
    known = list(plan.names())
    for name in names:
        if name not in known:
            raise SystemExit(f"{name!r} is not in {case}; choose from {', '.join(known)}")
    variants = plan.variants + (plan.told if told else ())
    levels = noises or plan.noises
    choices = product(names or known, variants, levels, range(draws or plan.draws))
    return [Trial(case, name, variant, noise, seed + draw) for name, variant, noise, draw in choices]


# Motions with additive noise


def noisy(trial: Trial, motion: Motion, options: Mapping[str, Any] | None = None) -> Sample:
    """Return all states of a motion with additive noise."""
    x = motion.solution()
    s = trial.noise * float(np.std(x))
    y = x + s * trial.generator().normal(size=x.shape)
    return Sample(
        y, motion.t, motion.states, motion.library, motion.truth, options or {}, additive(motion, [(x, motion.t)], s)
    )


def additive(motion: Motion, series: Sequence[tuple[Array, Array]], s: float) -> Callable[[], Bound] | None:
    """Return a function that gives the bound for equal noise of all states; None without noise."""

    def bound() -> Bound:
        least = variances(motion, [(x, t, 1.0) for x, t in series])
        return [{term: s**2 * value for term, value in terms.items()} for terms in least]

    return bound if s > 0 else None


def sample_lorenz(trial: Trial) -> Sample:
    """Return Lorenz 63, 1,000 rows; the size of the noise may be told."""
    motion = lorenz(0.01, 1000, 2)
    told = {"noise_std": trial.noise * float(np.std(motion.solution()))} if trial.variant else {}
    return noisy(trial, motion, told)


def sample_time(trial: Trial) -> Sample:
    """Return systems whose CPU time is asked."""
    return noisy(trial, lorenz(0.01, 1000, 2) if trial.name == "lorenz63 fine" else of_system(trial.name))


def sample_odebench(trial: Trial) -> Sample:
    """Return ODEBench with noise proportional to the states.

    The bound takes the size of the noise as known; what it tells of the states, of order σ², is left out.
    """
    motion = odebench()[trial.name]
    x, t = motion.solution(), motion.t
    y = x * (1 + trial.noise * trial.generator().normal(size=x.shape))
    s = np.maximum(np.abs(x), 1e-6 * np.max(np.abs(x)))

    def bound() -> Bound:
        least = variances(motion, [(x, t, s)])
        return [{term: trial.noise**2 * value for term, value in terms.items()} for terms in least]

    told = {"noise": "proportional"} if trial.variant else {}
    return Sample(y, t, motion.states, motion.library, motion.truth, told, bound if trial.noise > 0 else None)


# Data as they are

GAPS = (
    *("20 % of rows lost", "40 % of rows lost", "20 % of rows NaN", "40 % of rows NaN", "20 % of values NaN"),
    "times jittered",
)


def sample_gaps(trial: Trial) -> Sample:
    """Return Lorenz 63, 251 rows, with rows or values lost, or uneven times."""
    start = systems.lorenz63().x0.tolist()
    motion = lorenz(0.05, 251, 5 if trial.name == "quintic" else 3, start)
    generator = trial.generator()
    t = motion.t
    if trial.variant == "times jittered":
        t = t + 0.05 * generator.uniform(-0.3, 0.3, t.size)
        t = t - t[0]
    x = motion.solution(t=t)
    s = trial.noise * float(np.std(x))
    y = x + s * generator.normal(size=x.shape)
    weights = np.ones_like(y)
    if "%" in trial.variant:
        share = float(trial.variant.split()[0]) / 100
        lost = generator.random(y.shape if "values" in trial.variant else (len(y), 1)) < share
        weights = np.where(np.broadcast_to(lost, y.shape), UNMEASURED, 1.0)
        y = np.where(lost, np.nan, y)
    left = np.all(np.isfinite(y), axis=1) if "lost" in trial.variant else np.ones(len(y), dtype=bool)

    def bound() -> Bound:
        return variances(motion, [(x[left], t[left], s * weights[left])])

    return Sample(y[left], t[left], motion.states, motion.library, motion.truth, {}, bound if s > 0 else None)


def sample_short(trial: Trial) -> Sample:
    """Return series of 20 rows, one or 20 of them, from random starts."""
    generator = trial.generator()
    number = 1 if trial.variant.startswith("one") else 20
    if trial.name == "circle":
        t = 0.3 * np.arange(20)
        motion = polynomial_motion("circle", [[((0, 1), 1.0)], [((1, 0), -1.0)]], np.array([1.0, 0.0]), t, 3)
        radius, angle = generator.uniform(0.5, 2.0, number), generator.uniform(0, 2 * np.pi, number)
        starts = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    else:
        motion = lorenz(0.05, 20, 2)
        starts = lorenz(0.05, 1000, 2).solution()[generator.integers(20, 1000, number)]
    clean = [motion.solution(start) for start in starts]
    s = trial.noise * float(np.std(np.vstack(clean)))
    series = [x + s * generator.normal(size=x.shape) for x in clean]
    times = [motion.t] * number
    bound = additive(motion, [(x, motion.t) for x in clean], s)
    data: tuple[Any, Any] = (series[0], times[0]) if number == 1 else (series, times)
    return Sample(*data, motion.states, motion.library, motion.truth, {}, bound)


def sample_positions(trial: Trial) -> Sample:
    """Return oscillators of which only the position is measured."""
    motion = oscillators()[trial.name]
    x = motion.solution()
    s = trial.noise * float(np.std(x[:, 0]))
    y = x[:, :1] + s * trial.generator().normal(size=(len(x), 1))

    def bound() -> Bound:
        return variances(motion, [(x, motion.t, np.broadcast_to([s, UNMEASURED * s], x.shape).copy())])[1:]

    told = {"derivative_order": 2}
    return Sample(y, motion.t, ["x"], motion.library, motion.truth[1:], told, bound if s > 0 else None)


def sample_hare_lynx(trial: Trial) -> Sample:
    """Return the pelts, with cubic or quadratic candidates."""
    x = np.array([HARE.split(), LYNX.split()], dtype=float).T
    truth = ({"hare": 0.55, "hare lynx": -0.028}, {"lynx": -0.80, "hare lynx": 0.024})
    told = {"noise": "proportional"} if trial.variant else {}
    t = np.arange(1900.0, 1921.0)
    return Sample(x, t, ["hare", "lynx"], Polynomials(2 if trial.name == "quadratic" else 3), truth, told)


# Constants inside terms


@dataclass(frozen=True, eq=False)
class Inside:
    """A motion with constants inside its terms, and the starts of its experiment."""

    motion: Motion
    starts: tuple[tuple[float, ...], ...]
    constants: tuple[Mapping[str, float], ...]


def with_constants() -> dict[str, Inside]:
    """Return motions with constants inside their terms."""
    saturating, waves = Polynomials(3) + Saturation(), Polynomials(3) + Oscillation()

    def one(name: str, states: str, truth: Truth, flow: Any, t: Array, library: Any, starts: Any, *K: Any) -> Inside:
        return Inside(Motion(name, tuple(states), truth, flow, np.array(starts[0]), t, library), tuple(starts), K)

    def holling(x: Array) -> Array:
        eaten = x[0] * x[1] / (0.8 + x[0])
        return np.array([x[0] - x[0] ** 2 / 3 - 1.2 * eaten, eaten - 0.5 * x[1]])

    def infected(x: Array) -> Array:
        new = 0.72 * x[0] * x[1] / (0.3 + x[1])
        return np.array([-new, new - 0.4 * x[1]])

    hunted = ({"x": 1.0, "x^2": -1 / 3, "x y/(K + x)": -1.2}, {"y": -0.5, "x y/(K + x)": 1.0})
    switched = ({"u": -1.0, "1/(K^2 + v^2)": 3.0}, {"v": -1.0, "1/(K^2 + u^2)": 2.5})
    spread = ({"S I/(K + I)": -0.72}, {"S I/(K + I)": 0.72, "I": -0.4})
    swung = ({"v": 1.0}, {"sin(w x)": -1.3, "v": -0.1})
    motions = [
        one(
            "holling", "xy", hunted, holling, np.linspace(0, 50, 500), saturating, [(1.0, 1.0)], {"K": 0.8}, {"K": 0.8}
        ),
        one(
            *("michaelis_menten", "S", ({"S/(K + S)": -1.5},), lambda x: -1.5 * x / (0.7 + x), np.linspace(0, 10, 200)),
            *(saturating, [(5.0,), (1.0,)], {"K": 0.7}),
        ),
        one(
            *("toggle", "uv", switched, lambda x: np.array([3 / (1 + x[1] ** 2) - x[0], 2.5 / (1 + x[0] ** 2) - x[1]])),
            *(np.linspace(0, 20, 200), saturating, [(0.1, 2.0), (2.0, 0.1), (3.0, 2.9), (0.2, 0.1)], {"K": 1.0}),
            {"K": 1.0},
        ),
        one(
            *("pendulum", "xv", swung, lambda x: np.array([x[1], -1.3 * np.sin(1.7 * x[0]) - 0.1 * x[1]])),
            *(np.linspace(0, 20, 500), waves, [(1.5, 0.0)], {}, {"w": 1.7}),
        ),
        one(
            *("epidemic", "SI", spread, infected, np.linspace(0, 40, 400), saturating, [(0.99, 0.01)]),
            *({"K": 0.3}, {"K": 0.3}),
        ),
    ]
    return {inside.motion.name: inside for inside in motions}


def sample_constants(trial: Trial) -> Sample:
    """Return a motion with constants inside its terms, from all starts of its experiment."""
    inside, generator = with_constants()[trial.name], trial.generator()
    motion = inside.motion
    clean = [motion.solution(np.array(start)) for start in inside.starts]
    s = trial.noise * float(np.std(np.vstack(clean)))
    series = [x + s * generator.normal(size=x.shape) for x in clean]
    times = [motion.t] * len(series)
    return Sample(series, times, motion.states, motion.library, motion.truth, constants=inside.constants)


# Process noise


@dataclass(frozen=True, eq=False)
class Driven:
    """A motion that white noise drives: dx = f(x) dt + diag(strength) dW."""

    motion: Motion
    strength: Array


def driven() -> dict[str, Driven]:
    """Return the motions with process noise; that of Lorenz 63 is .3 a step and state."""
    spiral = [[((1, 0), -0.5), ((0, 1), 1.5)], [((1, 0), -1.5), ((0, 1), -0.5)]]
    well = [[((0, 1), 1.0)], [((1, 0), 1.0), ((3, 0), -1.0), ((0, 1), -0.5)]]
    duffing = polynomial_motion("duffing", well, np.array([1.0, 0.0]), 0.1 * np.arange(2000), 3)
    linear = polynomial_motion("ornstein_uhlenbeck", spiral, np.array([1.0, 0.0]), 0.1 * np.arange(2000), 2)
    return {
        "lorenz63": Driven(lorenz(0.02, 2000, 2), np.full(3, 0.3 / np.sqrt(0.02))),
        "duffing": Driven(duffing, np.array([0.0, 0.5])),
        "ornstein_uhlenbeck": Driven(linear, np.array([0.5, 0.5])),
    }


def sample_process(trial: Trial) -> Sample:
    """Return a driven motion, measured with noise.

    The bound is that of a motion seen without noise and all the time, (∫ θθᵀ dt)⁻¹ × strength². It is optimistic, and
    says nothing of equations without process noise.
    """
    one, generator = driven()[trial.name], trial.generator()
    motion, own = one.motion, generator.spawn(1)[0]
    x = kept(("driven", motion, one.strength, motion.t, trial.seed), lambda: diffused(one, own))
    y = x + trial.noise * float(np.std(x)) * generator.normal(size=x.shape)

    def bound() -> Bound:
        names = list(motion.library.names(motion.states))
        values, step, least = motion.library.evaluate(x), motion.t[1] - motion.t[0], []
        for terms, strength in zip(motion.truth, one.strength, strict=True):
            columns = values[:, [names.index(term) for term in terms]]
            variance = strength**2 * np.diag(np.linalg.inv(columns.T @ columns * step))
            least.append(dict(zip(terms, variance.tolist(), strict=True)))
        return least

    return Sample(y, motion.t, motion.states, motion.library, motion.truth, {}, bound)


def diffused(one: Driven, generator: np.random.Generator) -> Array:
    """Integrate with fine steps: Euler–Maruyama for the noise, Heun's rule for the drift."""
    motion, flow = one.motion, one.motion.flow
    step = (motion.t[1] - motion.t[0]) / FINE_STEPS
    size = one.strength * np.sqrt(step)
    rows = np.empty((len(motion.t), len(motion.x0)))
    rows[0] = x = motion.x0
    for row in range(1, len(rows)):
        for kick in size * generator.normal(size=(FINE_STEPS, len(x))):
            slope = flow(x)
            x = x + step / 2 * (slope + flow(x + step * slope + kick)) + kick
        rows[row] = x
    return rows


CASES = {
    "dysts": Case(dysts, (0.0, 0.01, 0.05, 0.1, 0.2), 1, lambda trial: noisy(trial, dysts()[trial.name])),
    "odebench": Case(
        *(odebench, (0.0, 0.01, 0.03, 0.05), 1, sample_odebench, ("variant", "noise")),
        told=("kind of noise told",),
    ),
    "lorenz": Case(
        *(lambda: ["lorenz63"], (0.1, 0.2, 0.3), 40, sample_lorenz, ("variant", "noise")),
        told=("size of noise told",),
    ),
    "gaps": Case(lambda: ["cubic", "quintic"], (0.01,), 20, sample_gaps, ("name", "variant"), GAPS),
    "short": Case(
        *(lambda: ["circle", "lorenz63"], (0.0, 0.01, 0.05), 10, sample_short, ("name", "variant", "noise")),
        variants=("20 series of 20 rows", "one series of 20 rows"),
    ),
    "positions": Case(oscillators, (0.01, 0.05, 0.1), 10, sample_positions, ("name", "noise")),
    "hare_lynx": Case(
        *(lambda: ["cubic", "quadratic"], (0.0,), 1, sample_hare_lynx, ("name", "variant")),
        told=("kind of noise told",),
    ),
    "constants": Case(with_constants, (0.01, 0.05), 10, sample_constants, ("name", "noise")),
    "process": Case(driven, (0.02,), 10, sample_process, ("name",)),
    "efficiency": Case(
        *(lambda: systems.ALL_ODES, (0.01, 0.05, 0.2), 5, lambda trial: noisy(trial, of_system(trial.name)), ("noise",))
    ),
    "time": Case(lambda: ["lorenz63", "lorenz63 fine", "lorenz96"], (0.01,), 3, sample_time, ("name",)),
}
