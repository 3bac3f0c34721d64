"""Fig. L96_stats: Lorenz 96 with 40 states from 200 rows at 1 % noise, quadratic library, choice by oracle.

A trial is one equation. Its text says 201 rows in two places and 200 in one; the authors ran 200.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy.integrate import odeint

from ardea.core.problem import Array
from ardea.dynamics import Discovery, Polynomials, systems
from ardea.dynamics.differences import finite_difference
from ardea.paper.drawing import boxes
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.replay import Grids, published_difference
from ardea.paper.study import METRICS, Discovered, Regression, Study
from ardea.paper.tables import comparison

NOISE_SHARE = 0.01
LIBRARY = Polynomials(2)


def noisy_states(states: int, seed: int, published: bool) -> Array:
    """Return the states; the noise is the authors' at seed 0."""
    system = systems.lorenz96(states)
    clean = _authors_trajectory(system) if published else system.simulate()[1]
    noise = np.random.RandomState(seed).randn(*clean.shape)
    return np.asarray(clean + NOISE_SHARE * np.std(clean) * noise)


def data(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield equation `number`."""
    system = systems.lorenz96(settings.sizes["states"])
    published = settings.variant == "published"
    x = noisy_states(settings.sizes["states"], settings.seed, published)
    theta = LIBRARY.evaluate(x)
    slopes = (published_difference if published else finite_difference)(x, system.dt)
    yield Regression(theta, slopes[:, number], system.true_coefficients(LIBRARY)[number])


def _authors_trajectory(system: systems.Ode) -> Array:
    """Return the trajectory with the solver and the loose tolerance of the authors: in chaos they decide its end."""
    solution: Array = odeint(lambda x, _: np.array(system.flow(*x)), system.x0, system.t)
    return solution


@lru_cache(maxsize=2)
def discovery(states: int, seed: int) -> Array:
    """Return what Discovery finds for all equations: once, not in every trial of a process."""
    return Discovery(LIBRARY).fit(noisy_states(states, seed, published=False), systems.lorenz96(states).dt).coef_


def discovered(settings: Settings, number: int) -> Iterator[Discovered]:
    """Yield what Discovery finds for equation `number`."""
    states = settings.sizes["states"]
    truth = systems.lorenz96(states).true_coefficients(LIBRARY)[number]
    yield Discovered(discovery(states, settings.seed)[number], truth, {})


def grids(problem: Regression) -> Grids:
    """Return the authors' strengths; λ in units of ‖y‖²."""
    return Grids(
        alpha=(1, 2, 4, 8, 10, 16, 32, 64, 128, 256, 512),
        lam=tuple(problem.lam_unit * factor for factor in (0, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2)),
        tau_m=(0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1),
        tau_l=(np.inf, 1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1, 2, 5, 10),
        tau_map=(0, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3, 1e4),
    )


STUDY = Study(data, grids, "oracle", discovered=discovered)
LORENZ96 = Experiment(
    name="lorenz96",
    label="fig:L96_stats",
    what="Lorenz 96, quadratic library, one trial per equation, strengths chosen by an oracle",
    sizes={"quick": {"trials": 2, "states": 8}, "paper": {"trials": 40, "states": 40}},
    trial=STUDY.trial,
    keys=("method",),
    metrics=METRICS,
    table=comparison,
    draw=boxes,
    core_seconds={
        ("quick", "corrected"): 2,
        ("quick", "published"): 2,
        ("paper", "corrected"): 30,
        ("paper", "published"): 115,
    },
    figure_size=(11.0, 3.4),
    variants=("corrected", "published"),
    beyond=True,
)
