"""Fig. KS_stats: Kuramoto–Sivashinsky at .1 % noise, 25 terms, sixth-order differences, choice by oracle.

Ten samples of 2,500 rows as in the paper; then all rows at once, which compression makes as cheap as a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ardea.core.problem import Array
from ardea.dynamics import Discovery, FieldTerms, systems
from ardea.dynamics.differences import finite_difference
from ardea.paper.drawing import boxes
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.lorenz63 import grids
from ardea.paper.records import Records
from ardea.paper.replay import published_difference
from ardea.paper.study import METRICS, Discovered, Regression, Study
from ardea.paper.tables import comparison

NOISE_SHARE = 0.001
LIBRARY = FieldTerms(powers=4, derivatives=4)
SAMPLE, ALL = "sample", "all"


def noisy_field(seed: int, n_x: int, n_t: int) -> Array:
    """Return the field of shape (n_x, n_t); the noise is the authors' at seed 0."""
    system = systems.kuramoto_sivashinsky(n_x)
    _, clean = system.simulate() if n_t == system.n_rows else system.simulate(t=system.t[:n_t])
    return np.asarray(clean + NOISE_SHARE * np.std(clean) * np.random.RandomState(seed).randn(*clean.shape))


@lru_cache(maxsize=2)
def all_rows(seed: int, published: bool, n_x: int, n_t: int) -> tuple[Array, Array]:
    """Return Θ and y at every point of the grid, time slowest: row = t·n_x + x."""
    system, u = systems.kuramoto_sivashinsky(n_x), noisy_field(seed, n_x, n_t)
    spacing = system.length / n_x
    in_time: Callable[..., Array] = published_difference if published else finite_difference
    in_space = published_difference if published else partial(finite_difference, periodic=True)
    slopes = in_time(u.T, system.dt)
    derivatives = [np.ones_like(u)] + [in_space(u, spacing, derivative=order) for order in range(1, 5)]
    theta = LIBRARY.evaluate([u.T], lambda field, orders: derivatives[orders[0]].T)
    return theta, slopes.ravel()


def data(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield sample `number` of rows (seed 0 is the authors' stream); the trial after the last sample has all rows."""
    sizes = settings.sizes
    published = settings.variant == "published"
    theta, y = all_rows(settings.seed, published, sizes["n_x"], sizes["n_t"])
    coef = systems.kuramoto_sivashinsky(sizes["n_x"]).true_coefficients(LIBRARY)[0]
    if number == sizes["trials"] - 1:
        if not published:
            yield Regression(theta, y, coef, {"rows": ALL})
        return
    stream = np.random.RandomState(settings.seed)
    stream.randn(sizes["n_x"], sizes["n_t"])  # the noise of the field
    for _ in range(number + 1):
        sample = stream.choice(y.size, sizes["sample"], replace=False)
    # The published code scales λ by ‖y‖² of all rows, the corrected one by that of the sample.
    unit = float(y @ y) if published else None
    yield Regression(theta[sample], y[sample], coef, {"rows": SAMPLE}, unit)


def discovered(settings: Settings, number: int) -> Iterator[Discovered]:
    """Yield what Discovery finds from the whole field, in the trial of all rows."""
    sizes = settings.sizes
    if number == sizes["trials"] - 1:
        system = systems.kuramoto_sivashinsky(sizes["n_x"])
        u = noisy_field(settings.seed, sizes["n_x"], sizes["n_t"])
        found = Discovery(LIBRARY).fit(u, system.dt, space=system.space)
        yield Discovered(found.coef_[0], system.true_coefficients(LIBRARY)[0], {"rows": ALL})


def table(records: Records) -> str:
    """Return the errors of the samples, and those of all rows."""
    whole = records.where(rows=ALL)
    text = comparison(records.where(rows=SAMPLE))
    return text if not whole else f"{text}\n\nAll rows at once:\n\n{comparison(whole)}"


def draw(records: Records, figure: Any) -> None:
    """Draw the errors of the samples."""
    boxes(records.where(rows=SAMPLE), figure)


STUDY = Study(data, grids, "oracle", replay_sign=-1.0, discovered=discovered)
KS = Experiment(
    name="ks",
    label="fig:KS_stats",
    what="Kuramoto–Sivashinsky, samples of the rows and all rows at once, strengths chosen by an oracle",
    sizes={
        "quick": {"trials": 3, "sample": 300, "n_x": 128, "n_t": 60},
        "paper": {"trials": 11, "sample": 2500, "n_x": 512, "n_t": 1072},
    },
    trial=STUDY.trial,
    keys=("rows", "method"),
    metrics=METRICS,
    table=table,
    draw=draw,
    core_seconds={
        ("quick", "corrected"): 2,
        ("quick", "published"): 5,
        ("paper", "corrected"): 15,
        ("paper", "published"): 10,
    },
    figure_size=(11.0, 3.4),
    variants=("corrected", "published"),
    beyond=True,
)
