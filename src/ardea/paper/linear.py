"""Table 1 and Fig. linear_stats: 250 rows, 250 columns, condition number 100, 25 terms, 10 % noise, choice by AICc."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ardea.paper.drawing import boxes
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.replay import Grids
from ardea.paper.study import METRICS, Regression, Study
from ardea.paper.tables import comparison

CONDITION = 100
NOISE_SHARE = 0.1


def data(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield trial `number` of the authors' stream of random numbers (seed 0 is theirs).

    Per trial: a Gaussian matrix for the singular vectors, the support, the coefficients, the noise. Singular values are
    spread evenly on a log scale.
    """
    n, n_terms = settings.sizes["columns"], settings.sizes["terms"]
    stream = np.random.RandomState(settings.seed)
    for _ in range(number):
        _draws(stream, n, n_terms)
    matrix, support, coefficients, noise = _draws(stream, n, n_terms)
    left, _, right = np.linalg.svd(matrix)
    theta = left @ np.diag(np.logspace(-np.log10(CONDITION), 0, n)) @ right
    coef = np.zeros(n)
    coef[support] = coefficients
    clean = theta @ coef
    yield Regression(theta, clean + NOISE_SHARE * np.std(clean) * noise, coef)


def _draws(stream: np.random.RandomState, n: int, n_terms: int) -> tuple[np.ndarray, ...]:
    return stream.randn(n, n), stream.choice(n, n_terms, replace=False), stream.randn(n_terms), stream.randn(n)


def grids(problem: Regression) -> Grids:
    """Return the authors' strengths; λ in units of ‖y‖²."""
    return Grids(
        alpha=(1, 2, 4, 8, 10, 16, 32, 64, 128),
        lam=tuple(problem.lam_unit * factor for factor in (0, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2)),
        tau_m=(0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1),
        tau_l=(np.inf, 1e-4, 1e-3, 1e-2, 1e-1, 1, 2, 5, 10),
        tau_map=(0, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3),
    )


STUDY = Study(data, grids, "aicc")
LINEAR = Experiment(
    name="linear",
    label="tab:linear_example, fig:linear_stats",
    what="sparse linear system, singular values from 0.01 to 1, σ learned",
    sizes={
        "quick": {"trials": 3, "columns": 60, "terms": 6},
        "paper": {"trials": 100, "columns": 250, "terms": 25},
    },
    trial=STUDY.trial,
    keys=("method",),
    metrics=METRICS,
    table=comparison,
    draw=boxes,
    core_seconds={
        ("quick", "corrected"): 1,
        ("quick", "published"): 2,
        ("paper", "corrected"): 60,
        ("paper", "published"): 510,
    },
    figure_size=(11.0, 3.4),
    variants=("corrected", "published"),
    beyond=True,
)
