"""The six orthogonal studies: added and missed terms against σ, measured and predicted.

Θ has orthogonal columns with ρ ~ U[1, 3]; the first coefficients are N(0, 1), the rest zero; σ is known. One noise
vector serves all noise levels of a trial, and one Θ all studies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ardea import rates
from ardea.core.problem import Array
from ardea.estimators.family import LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi
from ardea.paper.drawing import levels
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.records import Row
from ardea.paper.study import scores
from ardea.paper.tables import by_level

LOG_SIGMA = (-3, 0)


@dataclass(frozen=True)
class Method:
    """An estimator as a function of its strength and σ², and the strength that its closed form takes."""

    rate: rates.Method
    estimator: Callable[..., Any]
    strengths: tuple[float, ...]
    over_noise: bool = False

    def at(self, strength: float, noise: float) -> tuple[Any, float]:
        """Return the estimator at a strength, and that strength as :mod:`ardea.rates` counts it."""
        plain = strength / noise if self.over_noise else strength
        return self.estimator(plain, noise_variance=noise, fit_intercept=False), plain


@dataclass(frozen=True)
class Draw:
    """One trial's data: y = Θξ + σν for every σ."""

    theta: Array
    rho: Array
    coef: Array
    noise: Array


def draw_data(settings: Settings, number: int) -> Draw:
    """Return the data of a trial."""
    n, n_terms = settings.sizes["columns"], settings.sizes["terms"]
    generator = np.random.default_rng([settings.seed, number])
    rho = generator.uniform(1, 3, n)
    basis = np.linalg.qr(generator.standard_normal((n, n)))[0]
    coef = np.zeros(n)
    coef[:n_terms] = generator.standard_normal(n_terms)
    return Draw(basis * np.sqrt(rho), rho, coef, generator.standard_normal(n))


def trial(method: Method, settings: Settings, number: int) -> list[Row]:
    """Return one row per noise level and strength."""
    data = draw_data(settings, number)
    rows: list[Row] = []
    for sigma in np.logspace(*LOG_SIGMA, settings.sizes["levels"]):
        y = data.theta @ data.coef + sigma * data.noise
        for strength in method.strengths:
            model, plain = method.at(strength, sigma**2)
            model.fit(data.theta, y)
            rows.append(
                {"sigma": float(sigma), "strength": float(strength)}
                | scores(model.coef_, data.coef)
                | _expected(method.rate, plain, data, float(sigma))
            )
    return rows


def _expected(method: rates.Method, strength: float, data: Draw, sigma: float) -> Row:
    """Return the sums of the closed-form rates over the columns of this trial."""
    true = data.coef != 0
    added = rates.false_positive_rate(method, strength, rho=data.rho[~true], sigma=sigma)
    missed = rates.false_negative_rate(method, strength, data.coef[true], rho=data.rho[true], sigma=sigma)
    return {"expected_added": float(added.sum()), "expected_missed": float(missed.sum())}


def _study(name: str, label: str, what: str, symbol: str, method: Method) -> Experiment:
    return Experiment(
        name=f"orthogonal-{name}",
        label=f"fig:{label}",
        what=f"added and missed terms against σ, orthogonal columns, {what}",
        sizes={
            "quick": {"trials": 4, "columns": 60, "terms": 6, "levels": 5},
            "paper": {"trials": 50, "columns": 250, "terms": 25, "levels": 25},
        },
        trial=partial(trial, method),
        keys=("sigma", "strength"),
        metrics=("added", "missed", "expected_added", "expected_missed", "l2"),
        table=partial(by_level, level="sigma"),
        draw=partial(levels, level="sigma", axis="noise σ", symbol=symbol),
        core_seconds={("quick", "corrected"): 1, ("paper", "corrected"): 60},
    )


VI = Method("vi", ARDvi, (1, 2, 4, 8))
R = Method("r", ARDr, (0, 10, 100, 10_000))
R_SCALED = Method("r", ARDr, (0, 1, 5, 10), over_noise=True)
M = Method("m", MSTSBL, (0, 0.01, 0.05, 0.25))
L = Method("l", LSTSBL, (np.inf, 1, 0.1, 0.01))
MAP = Method("map", MAPSTSBL, (0, 0.2, 2, 20))

ORTHOGONAL = (
    _study("vi", "orthonormal_variance_inflation", "ARDvi", "α", VI),
    _study("r", "orthonormal_ARDr_2", "ARDr with λ fixed", "λ", R),
    _study("r-scaled", "orthonormal_ARDr", "ARDr with λσ² fixed", "λσ²", R_SCALED),
    _study("m", "orthonormal_threshodling", "M-STSBL", "τ", M),
    _study("l", "orthonormal_L_STSBL", "L-STSBL", "τ", L),
    _study("map", "orthonormal_MAP_STSBL", "MAP-STSBL", "τ", MAP),
)
