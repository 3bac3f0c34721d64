"""Closed-form rates against simulation with the estimators themselves (the paper's orthogonal experiment, σ known).

125×125, half the paper's size, with orthogonal columns, ρ ~ U[1, 3], 25 coefficients from N(0, 1). On orthogonal
columns a term is kept or not whatever the others do, so the number of added (missed) terms is a sum of independent
Bernoulli variables, each with the closed form's FP (FN) of its column: mean Σp, variance Σp(1 − p). Every cell
(method × noise × strength) draws its own data.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import special, stats
from threadpoolctl import threadpool_limits

from ardea import LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, rates
from ardea.estimators.advice import UnequalErrorsWarning

ESTIMATORS = {"vi": ARDvi, "r": ARDr, "m": MSTSBL, "l": LSTSBL, "map": MAPSTSBL}
SIGMAS = (0.05, 0.2, 1.0)
# Strengths are named by the false positive rate they give a column of ρ = 2; other columns have other rates.
TARGETS = (0.2, 0.05, 0.01)
CELLS = list(product(ESTIMATORS, SIGMAS, TARGETS))
SIZE, TRUE_TERMS, DESIGNS, TRIALS = 125, 25, 2, 8
# Two-sided 7e-6 per cell for a normal variable; the sums below have variances of at least 5.
LARGEST_Z = 4.5
SMALLEST_VARIANCE = 5.0


@dataclass(frozen=True)
class Cell:
    """What was drawn and what was kept; one entry per design, trial and column."""

    kept: np.ndarray
    coef: np.ndarray
    rho: np.ndarray
    strength: float

    @property
    def true(self):
        return self.coef != 0


@cache
def simulated(method, sigma, target):
    strength = float(rates.strength_for(method, target, rho=2.0, sigma=sigma))
    rng = np.random.default_rng([2024, CELLS.index((method, sigma, target))])
    # Small matrices: threads that wait for each other cost minutes on a busy machine. Of hundreds of fits one is warned
    # of by chance.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnequalErrorsWarning)
        drawn = [_design(method, sigma, strength, rng) for _ in range(DESIGNS)]
    kept, coef, rho = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    return Cell(kept, coef, rho, strength)


def _design(method, sigma, strength, rng):
    """Return support, coefficients and ρ of one Θ, all (trials, columns): every trial has its own ξ and noise."""
    rho = rng.uniform(1, 3, SIZE)
    X = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0] * np.sqrt(rho)
    coef = np.zeros((TRIALS, SIZE))
    coef[:, :TRUE_TERMS] = rng.normal(size=(TRIALS, TRUE_TERMS))
    Y = X @ coef.T + sigma * rng.normal(size=(SIZE, TRIALS))
    model = ESTIMATORS[method](strength, noise_variance=sigma**2, fit_intercept=False).fit(X, Y)
    return model.support_, coef, np.broadcast_to(rho, coef.shape)


def z_score(happened, probability):
    """Return (count − Σp)/√Σp(1 − p)."""
    variance = (probability * (1 - probability)).sum()
    assert variance > SMALLEST_VARIANCE
    return (happened.sum() - probability.sum()) / np.sqrt(variance)


def added_z(method, sigma, target):
    cell = simulated(method, sigma, target)
    rate = rates.false_positive_rate(method, cell.strength, rho=cell.rho, sigma=sigma)
    return z_score(cell.kept[~cell.true], rate[~cell.true])


def missed_z(method, sigma, target):
    cell = simulated(method, sigma, target)
    rate = rates.false_negative_rate(method, cell.strength, cell.coef, rho=cell.rho, sigma=sigma)
    return z_score(~cell.kept[cell.true], rate[cell.true])


@pytest.mark.parametrize(("method", "sigma", "target"), CELLS)
def test_added_and_missed_terms_are_those_of_the_closed_forms(method, sigma, target):
    assert abs(added_z(method, sigma, target)) < LARGEST_Z
    assert abs(missed_z(method, sigma, target)) < LARGEST_Z


@pytest.mark.parametrize("z_of", [added_z, missed_z])
def test_all_cells_together_scatter_as_they_should(z_of):
    """Σz² over independent cells is χ²: no small error in all of them, and no scatter below that of chance."""
    square = sum(z_of(*cell) ** 2 for cell in CELLS)
    assert 1e-3 < stats.chi2.cdf(square, len(CELLS)) < 1 - 1e-3


@pytest.mark.parametrize("method", ESTIMATORS)
@pytest.mark.parametrize("sigma", SIGMAS[:2])
def test_the_printed_false_negative_formula_is_rejected(method, sigma):
    """Sec. 5 prints σψ for ψ. With σ < 1 that expects far fewer missed terms than every estimator misses."""
    for target in TARGETS:
        cell = simulated(method, sigma, target)
        v = sigma**2 / cell.rho
        cut = sigma * rates.psi(method, cell.strength, rho=cell.rho, sigma=sigma)
        above, below = ((cell.coef + sign * cut) / np.sqrt(2 * v) for sign in (1, -1))
        printed = 0.5 * (special.erf(above) - special.erf(below))[cell.true]
        missed = (~cell.kept)[cell.true].sum()
        # Poisson's tail bounds that of a sum of Bernoulli variables beyond its mean (Hoeffding 1956).
        assert missed > printed.sum() + 1
        assert stats.poisson.sf(missed - 1, printed.sum()) < 1e-6
