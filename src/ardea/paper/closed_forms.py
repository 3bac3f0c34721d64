"""Trials at given strengths: the closed forms of :mod:`ardea.rates`, and what the estimators do where these hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from ardea import rates
from ardea.core.evidence import posterior, slopes_and_scores
from ardea.core.problem import Array, Problem
from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi
from ardea.paper.experiment import METHODS, Row, Settings
from ardea.paper.regressions import LINEAR_NOISE, Regression, linear, scores
from ardea.paper.replay import Outcome, cheap_to_remove, fit_at_known_noise, improbable, posed, threshold

ESTIMATORS: dict[rates.Method, Callable[..., Any]] = {"vi": ARDvi, "r": ARDr, "m": MSTSBL, "l": LSTSBL, "map": MAPSTSBL}
NAMES = dict(zip(ESTIMATORS, METHODS[1:], strict=True))
PAPER: Any = {"fit_intercept": False, "start": "paper"}


def rounds(model: Any) -> int:
    """Return the last round of the recursion in which a threshold dropped a column."""
    return max((column.round for column in model.trace_.dropped), default=0)


def expected(method: rates.Method, strength: ArrayLike, coef: Array, rho: Array, sigma: float = 1.0) -> Row:
    """Return how many false and missed terms the closed forms expect, given every column's ρ."""
    true, own = coef != 0, np.broadcast_to(strength, coef.shape)
    added = rates.false_positive_rate(method, own[~true], rho=rho[~true], sigma=sigma)
    missed = rates.false_negative_rate(method, own[true], coef[true], rho=rho[true], sigma=sigma)
    return {"expected_added": float(added.sum()), "expected_missed": float(missed.sum())}


# Orthogonal columns with ρ ~ U[1, 3], the first coefficients N(0, 1), the rest zero, σ known.


def orthogonal_data(settings: Settings, number: int) -> tuple[Array, Array, Array, Array]:
    """Return Θ, ρ, ξ and noise of unit variance, a column for every level; the same for all studies.

    As published one vector of noise serves all levels, scaled by σ, so that the points lie on smooth curves. That is
    all that differs: at known σ and on orthogonal columns the published code ends where the estimators do.
    """
    n, n_terms = settings.sizes["columns"], settings.sizes["terms"]
    generator = np.random.default_rng([settings.seed, number])
    rho = generator.uniform(1, 3, n)
    basis = np.linalg.qr(generator.standard_normal((n, n)))[0]
    coef = np.zeros(n)
    coef[:n_terms] = generator.standard_normal(n_terms)
    noise = generator.standard_normal((n, 1 if settings.published else settings.sizes["levels"]))
    return basis * np.sqrt(rho), rho, coef, np.broadcast_to(noise, (n, settings.sizes["levels"]))


def orthogonal(
    settings: Settings, number: int, *, method: rates.Method, strengths: tuple[float, ...], over_noise: bool = False
) -> list[Row]:
    """Return one row per noise level σ and strength; `over_noise` divides the strengths by σ²."""
    theta, rho, coef, noise = orthogonal_data(settings, number)
    rows: list[Row] = []
    for sigma, column in zip(np.logspace(-3, 0, settings.sizes["levels"]).tolist(), noise.T, strict=True):
        y = theta @ coef + sigma * column
        for strength in strengths:
            plain = strength / sigma**2 if over_noise else strength
            model = ESTIMATORS[method](plain, noise_variance=sigma**2, **PAPER).fit(theta, y)
            names = {"sigma": sigma, "strength": float(strength), "rounds": rounds(model)}
            rows.append(names | scores(model.coef_, coef) | expected(method, plain, coef, rho, sigma))
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
    for alpha, method in product((1.0, 2.0, 4.0, 8.0, 16.0), rates.METHODS):
        # The share of orthonormal columns with coefficient 0 or ξ that are kept, over several problems of 100 columns,
        # at the strength of this method that is worth α.
        strength, kept = float(rates.equivalent("vi", alpha, method)), []
        for value in (0.0, xi):
            generator = np.random.default_rng([settings.seed, index, int(alpha), int(value)])
            y: Array = value + generator.standard_normal((100, settings.sizes["draws"]))
            model = ESTIMATORS[method](strength, noise_variance=1.0, **PAPER).fit(np.eye(100), y)
            kept.append(float(model.support_.mean()))
        point = {"z": float(np.sqrt(alpha)), "fp": kept[0], "fn": 1 - kept[1], "draws": 100 * settings.sizes["draws"]}
        rows.append({"xi": xi, "kind": "simulated", "method": NAMES[method]} | point)
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
# [1/κ, 1], σ known. Beyond the paper the other methods, at strengths that are worth the same at κ = 1, and MAP-STSBL
# with the marginal variance, as App. C prints its rule.

ALPHA = 5.0
TAU = float(rates.equivalent("vi", ALPHA, "map"))
KAPPA_SIGMAS = (0.01, 0.1)
MARGINAL = "MAP-STSBL, 1/Σ_jj"


def kappa(settings: Settings, number: int) -> list[Row]:
    """Return one row per condition number, noise level and method, with what the theory of correlated columns says."""
    n, n_terms = settings.sizes["columns"], settings.sizes["terms"]
    rows: list[Row] = []
    for i, condition in enumerate(np.logspace(0, 8, settings.sizes["levels"]).tolist()):
        generator = np.random.default_rng([settings.seed, number, i])
        left, _, right = np.linalg.svd(generator.standard_normal((n, n)))
        theta = left @ np.diag(np.linspace(1 / condition, 1, n)) @ right
        coef = np.zeros(n)
        coef[:n_terms] = generator.standard_normal(n_terms)
        for sigma in KAPPA_SIGMAS:
            problem = posed(theta, theta @ coef + sigma * generator.standard_normal(n))
            fits = _kappa_fits(settings, theta, problem, sigma)
            for method, fit in fits.items():
                found = scores(fit.xi, coef)
                row = {"kappa": condition, "sigma": sigma, "method": method}
                row |= {"added": found["added"], "missed": found["missed"]}
                if "ARDvi" in fits:  # in how many columns the pattern is not that of ARDvi
                    row["differ"] = int(((fit.xi != 0) != (fits["ARDvi"].xi != 0)).sum())
                rows.append(row | correlated_rates(method, fit, coef, sigma))
    return rows


def _kappa_fits(settings: Settings, theta: Array, problem: Problem, sigma: float) -> dict[str, Outcome]:
    """Return the fits of both methods, or of the others."""
    noise, y = sigma**2, problem.target
    if settings.published:
        last = threshold(fit_at_known_noise(problem, noise), cheap_to_remove, TAU, fit_at_known_noise)
        return {"ARDvi": fit_at_known_noise(problem, noise, ALPHA), "MAP-STSBL": last}
    fits: dict[str, Outcome] = {}
    for method in ("vi", "map") if settings.variant == "corrected" else ("r", "m", "l"):
        strength = float(rates.equivalent("vi", ALPHA, method, sigma=sigma))
        model = ESTIMATORS[method](strength, noise_variance=noise, **PAPER).fit(theta, y)
        fits[NAMES[method]] = Outcome(problem, model.coef_, model.prior_variance_, noise)
    if settings.variant == "beyond":
        fits[MARGINAL] = threshold(fit_at_known_noise(problem, noise), improbable, TAU, fit_at_known_noise)
    return fits


def correlated_rates(method: str, fit: Outcome, coef: Array, sigma: float) -> Row:
    """Return the numbers of false and missed terms that the closed forms expect with every column's own precision.

    Off-orthogonal, s_j = θ_jᵀ(Σ_y − γ_jθ_jθ_jᵀ)⁻¹θ_j = M_j/(1 − γ_jM_j), what the data say of ξ_j beside the other
    columns of the fit, takes the place of ρ_j/σ². A column of t-value t beside them has, at a fixed point of ARD,
    γ = (t² − 1)/s and μ²/Σ_jj = t² − 1. The diagonal rule multiplies by (Σ⁻¹)_jj instead of 1/Σ_jj; with r = ρ_j/σ² and
    u = t² − 1 it drops where u(ru + s)/(u + 1) < 2τs, that is, below the positive root of ru² − (2τ − 1)su − 2τs.
    """
    post = posterior(fit.problem, fit.gamma, fit.noise)
    slopes = slopes_and_scores(fit.problem, post)[0]
    own = slopes / np.maximum(1 - fit.gamma * slopes, np.finfo(float).eps)
    kind: rates.Method = next(key for key, name in NAMES.items() if method.startswith(name))
    strength: Array = np.full(coef.size, float(rates.equivalent("vi", ALPHA, kind, sigma=sigma)))
    if method == "MAP-STSBL":
        r, half = fit.problem.square_norms / fit.noise, (TAU - 0.5) * own
        strength = (half + np.sqrt(half**2 + 2 * TAU * r * own)) / (2 * r)
    return expected(kind, strength, coef, own)


# Relative merits, measured where the paper gives an opinion: every method at the strength whose closed form lets one
# false term through at the true σ, on the data of the linear example. Beyond the paper, terms added and missed where it
# lets other shares of the columns through.

FALSE_SHARES = (*2.0 ** -np.arange(3, 10),)


def _calibrated(problem: Regression, share: float) -> dict[str, tuple[Any, Row]]:
    """Return every method where the closed form lets a share of irrelevant columns through, and what it then expects.

    Strengths differ from column to column where ρ matters.
    """
    sigma, true = LINEAR_NOISE * float(np.std(problem.theta @ problem.coef)), problem.coef != 0
    rho, models = (problem.theta**2).sum(axis=0), {}
    for method, estimator in ESTIMATORS.items():
        # Uncapped, this λ shrinks every term until nothing is left; η as in Sec. 6.
        capped = {"eta": 0.1} if method == "r" else {}
        strength = rates.strength_for(method, share, rho=rho, sigma=sigma)
        terms = expected(method, strength, problem.coef, rho, sigma) | {"expected_added": share * int((~true).sum())}
        models[NAMES[method]] = estimator(strength, **PAPER, **capped), terms
    return models


def _along_strengths(problem: Regression) -> list[Row]:
    """Return one row per share and method: terms added and missed, and what the closed forms expect."""
    rows: list[Row] = []
    for share in FALSE_SHARES:
        for method, (model, terms) in _calibrated(problem, share).items():
            found = scores(model.fit(problem.theta, problem.y).coef_, problem.coef)
            rows.append({"method": method, "added": found["added"], "missed": found["missed"]} | terms)
    return rows


def merits(settings: Settings, number: int) -> list[Row]:
    """Return one row per method: the quickest of a few repetitions, and what was found.

    `named` counts the removed columns for which the method can name a statistic and a threshold.
    """
    (problem,) = linear(settings, number)
    if settings.variant == "beyond":
        return _along_strengths(problem)
    rows: list[Row] = []
    calibrated = _calibrated(problem, 1 / problem.coef.size)
    models = {"ARD": ARD(**PAPER)} | {method: model for method, (model, _) in calibrated.items()}
    for method, model in models.items():
        seconds = []
        for _ in range(settings.sizes["repetitions"]):
            start = time.process_time()
            model.fit(problem.theta, problem.y)
            seconds.append(time.process_time() - start)
        extra = {
            "kept": int(model.support_.sum()),
            "steps": int(model.n_iter_),
            "named": len(model.trace_.dropped),
            "rounds": rounds(model),
        }
        names = {"method": method, "milliseconds": 1e3 * min(seconds)}
        rows.append(names | scores(model.coef_, problem.coef) | extra)
    return rows
