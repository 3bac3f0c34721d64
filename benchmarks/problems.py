"""Seeded problems with known truth for :mod:`benchmarks.calibration` and :mod:`benchmarks.selection`.

A calibration problem is a design (how the columns lie), a signal (how far the true terms stand out of the noise) and a
seed. The paper's Linear and Fourier problems are those of :mod:`benchmarks.cases`. No problem has an intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.cases import Array, Data, fourier, linear

PAPER_PROBLEMS: dict[str, Callable[[int], Data]] = {"linear": linear, "fourier": fourier}

TRUE_TERMS = 10
# σ over the standard deviation of Θξ; None: ξ = 0 and σ = 1.
SIGNALS: dict[str, float | None] = {"strong": 0.1, "weak": 1.0, "none": None}


@dataclass(frozen=True)
class Problem:
    """y = Xξ + noise of standard deviation sigma."""

    X: Array
    y: Array
    coef: Array
    sigma: float


@dataclass(frozen=True)
class Design:
    """How the columns are drawn, and whether the estimators are told σ²."""

    draw: Callable[[np.random.Generator], Array]
    noise_known: bool = False


def orthonormal(m: int, d: int, rng: np.random.Generator) -> Array:
    """Return m×d with orthonormal columns in random directions."""
    columns: Array = np.linalg.qr(rng.standard_normal((m, d)))[0]
    return columns


def orthogonal(m: int, d: int, rng: np.random.Generator) -> Array:
    """Return m×d with orthogonal columns of squared norms ρ ~ U[1, 3], as in the paper's Sec. 3."""
    return orthonormal(m, d, rng) * np.sqrt(rng.uniform(1, 3, d))


def gaussian(m: int, d: int, rng: np.random.Generator) -> Array:
    """Return m×d with independent N(0, 1) entries."""
    return rng.standard_normal((m, d))


def conditioned(m: int, d: int, condition: float, rng: np.random.Generator) -> Array:
    """Return m×d with singular values from 1/condition to 1, even on a logarithmic scale, and random rotations."""
    singular_values = np.logspace(-np.log10(condition), 0, d)
    return (orthonormal(m, d, rng) * singular_values) @ orthonormal(d, d, rng).T


def autoregressive(m: int, d: int, correlation: float, rng: np.random.Generator) -> Array:
    """Return m×d with N(0, 1) entries; columns i and j have the correlation c^|i − j| (AR(1) along a row)."""
    X = rng.standard_normal((m, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X


DESIGNS: dict[str, Design] = {
    "orthogonal 400×100": Design(partial(orthogonal, 400, 100)),
    "Gaussian 400×100": Design(partial(gaussian, 400, 100)),
    "Gaussian 250×200": Design(partial(gaussian, 250, 200)),
    "κ = 10, 400×100": Design(partial(conditioned, 400, 100, 10.0)),
    "κ = 100, 400×100": Design(partial(conditioned, 400, 100, 100.0)),
    "κ = 1e4, 400×100": Design(partial(conditioned, 400, 100, 1e4)),
    "AR(1) .5, 400×100": Design(partial(autoregressive, 400, 100, 0.5)),
    "AR(1) .9, 400×100": Design(partial(autoregressive, 400, 100, 0.9)),
    "Gaussian 100×300": Design(partial(gaussian, 100, 300)),
    "Gaussian 100×300, σ known": Design(partial(gaussian, 100, 300), noise_known=True),
}


def calibration_problem(design: str, signal: str, seed: int) -> Problem:
    """Return one problem: 10 true terms ±U[.5, 2] (none for the signal "none") and Gaussian noise.

    Examples
    --------
    >>> problem = calibration_problem("κ = 100, 400×100", "strong", seed=0)
    >>> problem.X.shape, int((problem.coef != 0).sum()), round(float(np.linalg.cond(problem.X)), 6)
    ((400, 100), 10, 100.0)
    """
    rng = np.random.default_rng(seed)
    X = DESIGNS[design].draw(rng)
    m, d = X.shape
    coef = np.zeros(d)
    share, sigma = SIGNALS[signal], 1.0
    if share is not None:
        places = rng.choice(d, TRUE_TERMS, replace=False)
        coef[places] = rng.choice([-1.0, 1.0], TRUE_TERMS) * rng.uniform(0.5, 2, TRUE_TERMS)
        sigma = share * float(np.std(X @ coef))
    return Problem(X, X @ coef + sigma * rng.standard_normal(m), coef, sigma)
