"""Fig. L63_stats: Lorenz 63 from 251 rows at 1 % noise, quintic library, sixth-order differences, choice by oracle.

The noise is 1 % of the standard deviation of all states and times together, as the authors ran it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ardea.core.problem import Array
from ardea.dynamics import Discovery, Polynomials, systems
from ardea.dynamics.differences import finite_difference
from ardea.paper.drawing import boxes
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.records import Records, Row
from ardea.paper.replay import Grids, published_difference
from ardea.paper.study import METRICS, Discovered, Regression, Study
from ardea.paper.tables import comparison, summed_over_dimensions

NOISE_SHARE = 0.01
LIBRARY = Polynomials(5)


def noisy_states(settings: Settings, number: int) -> Array:
    """Return the states of trial `number`: start and noise from the authors' stream (seed 0 is theirs)."""
    system = systems.lorenz63()
    stream = np.random.RandomState(settings.seed)
    for _ in range(number + 1):
        start = np.array([0.0, 0.0, 15.0]) + 5 * stream.randn(3)
        noise = stream.randn(system.n_rows, 3)
    _, clean = system.simulate(start)
    return clean + NOISE_SHARE * np.std(clean) * noise


def data(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield the three equations of trial `number`."""
    system, x = systems.lorenz63(), noisy_states(settings, number)
    theta = LIBRARY.evaluate(x)
    difference = published_difference if settings.variant == "published" else finite_difference
    slopes = difference(x, system.dt)
    for dimension, coef in enumerate(system.true_coefficients(LIBRARY)):
        yield Regression(theta, slopes[:, dimension], coef, {"dimension": dimension})


def discovered(settings: Settings, number: int) -> Iterator[Discovered]:
    """Yield what Discovery finds from the states of trial `number`."""
    system = systems.lorenz63()
    found = Discovery(LIBRARY).fit(noisy_states(settings, number), system.dt)
    for dimension, truth in enumerate(system.true_coefficients(LIBRARY)):
        yield Discovered(found.coef_[dimension], truth, {"dimension": dimension})


def grids(problem: Regression) -> Grids:
    """Return the authors' strengths; λ in units of ‖y‖²."""
    return Grids(
        alpha=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        lam=tuple(problem.lam_unit * factor for factor in (0, 1e-1, 1, 1e1, 1e2, 1e3, 1e4)),
        tau_m=(0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1),
        tau_l=(np.inf, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1, 2, 5, 10),
        tau_map=(0, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3),
    )


STUDIES = (Study(data, grids, "oracle", discovered=discovered), Study(data, grids, "aicc"))


def trial(settings: Settings, number: int) -> list[Row]:
    """Return one row per equation and method; the corrected variant also chooses by AICc, as the paper could not."""
    once = settings.part == "beyond" or settings.variant == "published"
    studies = STUDIES[:1] if once else STUDIES
    return [{"criterion": study.criterion} | row for study in studies for row in study.trial(settings, number)]


def by_oracle(records: Records) -> Records:
    """Return the rows of the paper's figure: chosen by the oracle, summed over the three equations."""
    return summed_over_dimensions(records.where(criterion="oracle"))


def table(records: Records) -> str:
    """Return the errors summed over the three equations."""
    text, without_oracle = comparison(by_oracle(records)), records.where(criterion="aicc")
    if not without_oracle:
        return text
    return f"{text}\n\nStrengths chosen by AICc instead:\n\n{comparison(summed_over_dimensions(without_oracle))}"


def draw(records: Records, figure: Any) -> None:
    """Draw the errors summed over the three equations."""
    boxes(by_oracle(records), figure)


LORENZ63 = Experiment(
    name="lorenz63",
    label="fig:L63_stats",
    what="Lorenz 63, quintic library, errors summed over the three equations, strengths chosen by an oracle",
    sizes={"quick": {"trials": 1}, "paper": {"trials": 10}},
    trial=trial,
    keys=("criterion", "dimension", "method"),
    metrics=METRICS,
    table=table,
    draw=draw,
    core_seconds={
        ("quick", "corrected"): 1,
        ("quick", "published"): 3,
        ("paper", "corrected"): 5,
        ("paper", "published"): 25,
    },
    figure_size=(11.0, 3.4),
    variants=("corrected", "published"),
    beyond=True,
)
