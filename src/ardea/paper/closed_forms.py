"""Trials at given strengths: the closed forms of :mod:`ardea.rates`, and what the estimators do where these hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from ardea import rates
from ardea.core.problem import Array
from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi
from ardea.paper.experiment import Row, Settings
from ardea.paper.regressions import LINEAR_NOISE, METHODS, Regression, linear, scores
from ardea.paper.replay import cheap_to_remove, fit_at_known_noise, posed, threshold

ESTIMATORS: dict[rates.Method, Callable[..., Any]] = {"vi": ARDvi, "r": ARDr, "m": MSTSBL, "l": LSTSBL, "map": MAPSTSBL}
NAMES = dict(zip(ESTIMATORS, METHODS[1:], strict=True))


# Orthogonal columns with ρ ~ U[1, 3], the first coefficients N(0, 1), the rest zero, σ known.


def orthogonal_data(settings: Settings, number: int) -> tuple[Array, Array, Array, Array]:
    """Return Θ, ρ, ξ and noise of unit variance: one noise vector for all levels of a trial, one Θ for all studies."""
    n, n_terms = settings.sizes["columns"], settings.sizes["terms"]
    generator = np.random.default_rng([settings.seed, number])
    rho = generator.uniform(1, 3, n)
    basis = np.linalg.qr(generator.standard_normal((n, n)))[0]
    coef = np.zeros(n)
    coef[:n_terms] = generator.standard_normal(n_terms)
    return basis * np.sqrt(rho), rho, coef, generator.standard_normal(n)


def orthogonal(
    settings: Settings, number: int, *, method: rates.Method, strengths: tuple[float, ...], over_noise: bool = False
) -> list[Row]:
    """Return one row per noise level σ and strength; `over_noise` divides the strengths by σ²."""
    theta, rho, coef, noise = orthogonal_data(settings, number)
    true = coef != 0
    rows: list[Row] = []
    for sigma in np.logspace(-3, 0, settings.sizes["levels"]).tolist():
        y = theta @ coef + sigma * noise
        for strength in strengths:
            plain = strength / sigma**2 if over_noise else strength
            model = ESTIMATORS[method](plain, noise_variance=sigma**2, fit_intercept=False).fit(theta, y)
            added = rates.false_positive_rate(method, plain, rho=rho[~true], sigma=sigma)
            missed = rates.false_negative_rate(method, plain, coef[true], rho=rho[true], sigma=sigma)
            expected = {"expected_added": float(added.sum()), "expected_missed": float(missed.sum())}
            rows.append({"sigma": sigma, "strength": float(strength)} | scores(model.coef_, coef) | expected)
    return rows


# False negative against false positive rate for ΘᵀΘ = I, one curve per ξ, the same for all methods. The paper does not
# say which σ and ξ it used. Here σ = 1 and ξ = 1 … 5. With σ known, ARDvi keeps an orthonormal column where |θᵀy| > √α.


def fpfn_curve(settings: Settings, index: int) -> list[Row]:
    """Return the curve at ξ = index + 1, and simulated points on it."""
    xi = float(index + 1)
    rows: list[Row] = []
    for z in np.linspace(0, 8, 81).tolist():
        fp, fn = rates.false_positive_rate("vi", z**2), rates.false_negative_rate("vi", z**2, xi)
        rows.append({"xi": xi, "kind": "theory", "z": z, "fp": float(fp), "fn": float(fn)})
    for alpha in (1.0, 2.0, 4.0, 8.0, 16.0):
        kept = []
        for value in (0.0, xi):  # the share of orthonormal columns with this coefficient, over several problems of 100
            generator = np.random.default_rng([settings.seed, index, int(alpha), int(value)])
            y: Array = value + generator.standard_normal((100, settings.sizes["draws"]))
            model = ARDvi(alpha, noise_variance=1.0, fit_intercept=False).fit(np.eye(100), y)
            kept.append(float(model.support_.mean()))
        rows.append({"xi": xi, "kind": "simulated", "z": float(np.sqrt(alpha)), "fp": kept[0], "fn": 1 - kept[1]})
    return rows


# Rates against ρ, with strengths such that FP = FN at ρ = 1. The paper does not say which σ, ξ and range of ρ it used.

XI = 3.0


def rho_rates(settings: Settings, index: int) -> list[Row]:
    """Return the rates of one method over ρ from 0.1 to 1000."""
    import pandas as pd

    def gap(z: float) -> float:
        return float(rates.false_positive_rate("vi", z**2) - rates.false_negative_rate("vi", z**2, XI))

    method, balanced = rates.METHODS[index], optimize.brentq(gap, 1e-6, 40.0, xtol=1e-14)
    strength = float(rates.equivalent("vi", balanced**2, method))
    rho = np.logspace(-1, 3, settings.sizes["points"])
    columns = {
        "method": NAMES[method],
        "rho": rho,
        "strength": strength,
        "fp": rates.false_positive_rate(method, strength, rho=rho),
        "fn": rates.false_negative_rate(method, strength, XI, rho=rho),
        "psi": rates.psi(method, strength, rho=rho),
    }
    return pd.DataFrame(columns).to_dict("records")


# ARDvi and MAP-STSBL, equal on orthogonal columns, against the condition number κ: singular values evenly spaced in
# [1/κ, 1], σ known.

ALPHA = 5.0
TAU = float(rates.equivalent("vi", ALPHA, "map"))
KAPPA_SIGMAS = (0.01, 0.1)


def kappa(settings: Settings, number: int) -> list[Row]:
    """Return one row per condition number, noise level and method."""
    n, n_terms = settings.sizes["columns"], settings.sizes["terms"]
    rows: list[Row] = []
    for i, condition in enumerate(np.logspace(0, 8, settings.sizes["levels"]).tolist()):
        generator = np.random.default_rng([settings.seed, number, i])
        left, _, right = np.linalg.svd(generator.standard_normal((n, n)))
        theta = left @ np.diag(np.linspace(1 / condition, 1, n)) @ right
        coef = np.zeros(n)
        coef[:n_terms] = generator.standard_normal(n_terms)
        for sigma in KAPPA_SIGMAS:
            y = theta @ coef + sigma * generator.standard_normal(n)
            for method, estimate in _kappa_fits(settings.published, theta, y, sigma**2).items():
                found = scores(estimate, coef)
                shares = {"fp": found["added"] / (n - n_terms), "fn": found["missed"] / n_terms}
                rows.append({"kappa": condition, "sigma": sigma, "method": method} | shares)
    return rows


def _kappa_fits(published: bool, theta: Array, y: Array, noise: float) -> dict[str, Array]:
    """Return the coefficients of both methods."""
    if published:
        problem = posed(theta, y)
        last = threshold(fit_at_known_noise(problem, noise), cheap_to_remove, TAU, fit_at_known_noise)
        return {"ARDvi": fit_at_known_noise(problem, noise, ALPHA).xi, "MAP-STSBL": last.xi}
    known: Any = {"noise_variance": noise, "fit_intercept": False}
    models = {"ARDvi": ARDvi(ALPHA, **known), "MAP-STSBL": MAPSTSBL(TAU, **known)}
    return {method: model.fit(theta, y).coef_ for method, model in models.items()}


# Relative merits, measured where the paper gives an opinion: every method at the strength whose closed form lets one
# false term through at the true σ, on the data of the linear example.


def _calibrated(problem: Regression) -> dict[str, Any]:
    """Return plain ARD and every method at one expected false term, column by column where ρ matters."""
    sigma = LINEAR_NOISE * float(np.std(problem.theta @ problem.coef))
    rho = (problem.theta**2).sum(axis=0)
    models = {"ARD": ARD(fit_intercept=False)}
    for method, estimator in ESTIMATORS.items():
        # Uncapped, this λ shrinks every term until nothing is left; η as in Sec. 6.
        capped = {"eta": 0.1} if method == "r" else {}
        strength = rates.strength_for(method, 1 / rho.size, rho=rho, sigma=sigma)
        models[NAMES[method]] = estimator(strength, fit_intercept=False, **capped)
    return models


def merits(settings: Settings, number: int) -> list[Row]:
    """Return one row per method: the quickest of a few repetitions, and what was found.

    `named` counts the removed columns for which the method can name a statistic and a threshold.
    """
    (problem,) = linear(settings, number)
    rows: list[Row] = []
    for method, model in _calibrated(problem).items():
        seconds = []
        for _ in range(settings.sizes["repetitions"]):
            start = time.process_time()
            model.fit(problem.theta, problem.y)
            seconds.append(time.process_time() - start)
        dropped = model.trace_.dropped
        extra = {
            "kept": int(model.support_.sum()),
            "steps": int(model.n_iter_),
            "named": len(dropped),
            "rounds": max((column.round for column in dropped), default=0),
        }
        names = {"method": method, "milliseconds": 1e3 * min(seconds)}
        rows.append(names | scores(model.coef_, problem.coef) | extra)
    return rows
