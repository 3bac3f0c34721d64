"""Fig. VI_MAP_k100: ARDvi and MAP-STSBL, equal on orthogonal columns (α = 5, τ = 2), against the condition number.

100×100, singular values evenly spaced in [1/κ, 1], 25 terms, σ known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea import rates
from ardea.core.problem import Array
from ardea.estimators.family import MAPSTSBL, ARDvi
from ardea.paper.drawing import line_style
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.records import Records, Row
from ardea.paper.replay import FINE, Learner, cheap_to_remove, posed
from ardea.paper.study import scores
from ardea.paper.tables import markdown, number

ALPHA = 5.0
TAU = float(rates.equivalent("vi", ALPHA, "map"))
SIGMAS = (0.01, 0.1)
LOG_KAPPA = (0, 8)


def trial(settings: Settings, number: int) -> list[Row]:
    """Return one row per condition number, noise level and method."""
    n, n_terms = settings.sizes["columns"], settings.sizes["terms"]
    rows: list[Row] = []
    for i, kappa in enumerate(np.logspace(*LOG_KAPPA, settings.sizes["levels"])):
        generator = np.random.default_rng([settings.seed, number, i])
        left, _, right = np.linalg.svd(generator.standard_normal((n, n)))
        theta = left @ np.diag(np.linspace(1 / kappa, 1, n)) @ right
        coef = np.zeros(n)
        coef[:n_terms] = generator.standard_normal(n_terms)
        for sigma in SIGMAS:
            y = theta @ coef + sigma * generator.standard_normal(n)
            for method, estimate in _estimates(settings, theta, y, sigma**2).items():
                names: Row = {"kappa": float(kappa), "sigma": sigma, "method": method}
                rows.append(names | _rates(estimate, coef))
    return rows


def _estimates(settings: Settings, theta: Array, y: Array, noise: float) -> dict[str, Array]:
    if settings.variant == "published":
        learner, problem = Learner(None), posed(theta, y)
        first = learner.fit(problem, noise, FINE)
        last = learner.threshold(first, cheap_to_remove, TAU, FINE)
        return {"ARDvi": learner.fit(problem, noise, FINE, alpha=ALPHA).xi, "MAP-STSBL": last.xi}
    models = {
        "ARDvi": ARDvi(ALPHA, noise_variance=noise, fit_intercept=False),
        "MAP-STSBL": MAPSTSBL(TAU, noise_variance=noise, fit_intercept=False),
    }
    return {name: model.fit(theta, y).coef_ for name, model in models.items()}


def _rates(estimate: Array, coef: Array) -> Row:
    found = scores(estimate, coef)
    n_terms = int((coef != 0).sum())
    return {"fp": float(found["added"]) / (coef.size - n_terms), "fn": float(found["missed"]) / n_terms}


def table(records: Records) -> str:
    """Return the mean rates at some condition numbers."""
    rows = []
    for sigma in records.distinct("sigma"):
        for kappa in records.distinct("kappa")[:: max(1, len(records.distinct("kappa")) // 8)]:
            here = records.where(sigma=sigma, kappa=kappa)
            cells = [
                number(float(here.where(method=method).column(rate).mean()))
                for rate in ("fp", "fn")
                for method in ("ARDvi", "MAP-STSBL")
            ]
            rows.append([f"{sigma:g}", f"{kappa:.0e}", *cells])
    header = ["σ", "κ", *(f"{rate} {method}" for rate in ("FP", "FN") for method in ("ARDvi", "MAP-STSBL"))]
    return markdown(header, rows)


def draw(records: Records, figure: Any) -> None:
    """Draw mean FP and FN against κ."""
    panels = figure.subplots(1, 2)
    for ax, name, label in zip(panels, ("fp", "fn"), ("false positive rate", "false negative rate"), strict=True):
        for i, method in enumerate(("ARDvi", "MAP-STSBL")):
            for j, sigma in enumerate(records.distinct("sigma")):
                part = records.where(method=method, sigma=sigma)
                kappa = part.distinct("kappa")
                means = [part.where(kappa=value).column(name).mean() for value in kappa]
                style = line_style(2 * i) | {"linestyle": ("-", "--")[j]}
                ax.plot(kappa, means, marker="os"[i], markersize=4, label=f"{method}, σ = {sigma:g}", **style)
        ax.set_xscale("log")
        ax.set_xlabel("condition number κ")
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
        ax.grid(color="0.92")
        ax.set_axisbelow(True)
    panels[0].axhline(float(rates.false_positive_rate("vi", ALPHA)), color="0.5", linestyle=":", linewidth=1)
    panels[1].legend(fontsize="small")


KAPPA = Experiment(
    name="kappa",
    label="fig:VI_MAP_k100",
    what="ARDvi against MAP-STSBL over the condition number, σ known (dotted: closed form at κ = 1)",
    sizes={
        "quick": {"trials": 6, "columns": 40, "terms": 10, "levels": 5},
        "paper": {"trials": 1000, "columns": 100, "terms": 25, "levels": 17},
    },
    trial=trial,
    keys=("sigma", "kappa", "method"),
    metrics=("fp", "fn"),
    table=table,
    draw=draw,
    core_seconds={
        ("quick", "corrected"): 1,
        ("quick", "published"): 1,
        ("paper", "corrected"): 285,
        ("paper", "published"): 230,
    },
    variants=("corrected", "published"),
)
