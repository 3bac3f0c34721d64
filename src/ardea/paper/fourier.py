"""Fig. fourier_stats: a function on [0, π]² from 250 points, 900 cosine modes, 50 terms, 10 % noise, choice by AICc."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ardea.core.problem import Array
from ardea.paper.drawing import boxes
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.replay import COARSE, Grids
from ardea.paper.study import METRICS, Regression, Study
from ardea.paper.tables import comparison

NOISE_SHARE = 0.1


def cosine_modes(points: Array, n_modes: int) -> Array:
    """Return cos(i x₁) cos(j x₂), i, j = 0 … n_modes − 1, as columns; j runs fastest.

    Examples
    --------
    >>> import numpy as np
    >>> cosine_modes(np.array([[0.0, np.pi]]), 2)
    array([[ 1., -1.,  1., -1.]])
    """
    first, second = (np.cos(points[:, [axis]] * np.arange(n_modes)) for axis in (0, 1))
    return np.asarray((first[:, :, None] * second[:, None, :]).reshape(points.shape[0], -1))


def data(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield trial `number` of the authors' stream (seed 0 is theirs): points, support, coefficients, noise."""
    m, n_modes, n_terms = (settings.sizes[name] for name in ("rows", "modes", "terms"))
    stream = np.random.RandomState(settings.seed)
    for _ in range(number + 1):
        points = np.pi * stream.rand(m, 2)
        support = stream.choice(n_modes**2, n_terms, replace=False)
        coefficients = stream.randn(n_terms)
        noise = stream.randn(m)
    theta = cosine_modes(points, n_modes)
    coef = np.zeros(n_modes**2)
    coef[support] = coefficients
    clean = theta @ coef
    yield Regression(theta, clean + NOISE_SHARE * np.std(clean) * noise, coef)


def grids(problem: Regression) -> Grids:
    """Return the authors' strengths; here λ is not in units of ‖y‖²."""
    return Grids(
        alpha=(1, 2, 4, 8, 10, 16, 32, 64, 128),
        lam=(0, 1e-2, 1e-1, 1, 1e1, 1e2),
        tau_m=(0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1),
        tau_l=(np.inf, 1e-4, 1e-3, 1e-2, 1e-1, 1, 2, 5, 10),
        tau_map=(0, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3),
    )


STUDY = Study(data, grids, "aicc", replay_tol=COARSE)
FOURIER = Experiment(
    name="fourier",
    label="fig:fourier_stats",
    what="function fitting in a cosine basis, more columns than rows, σ learned",
    sizes={
        "quick": {"trials": 2, "rows": 60, "modes": 10, "terms": 6},
        "paper": {"trials": 10, "rows": 250, "modes": 30, "terms": 50},
    },
    trial=STUDY.trial,
    keys=("method",),
    metrics=METRICS,
    table=comparison,
    draw=boxes,
    core_seconds={
        ("quick", "corrected"): 1,
        ("quick", "published"): 4,
        ("paper", "corrected"): 130,
        ("paper", "published"): 240,
    },
    figure_size=(11.0, 3.4),
    variants=("corrected", "published"),
    beyond=True,
)
