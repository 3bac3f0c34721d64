"""Fig. FP_FN_curve: false negative against false positive rate for ΘᵀΘ = I, one curve per ξ, the same for all methods.

The paper does not say which σ and ξ it used. Here σ = 1 and ξ = 1 … 5. Every curve is also simulated: with σ known and
one orthonormal column, ARDvi keeps the column if and only if |θᵀy| > √α.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea import rates
from ardea.core.problem import Array
from ardea.estimators.family import ARDvi
from ardea.paper.drawing import line_style
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.records import Records, Row
from ardea.paper.tables import markdown, number

SIGMA = 1.0
N_POINTS = 81
N_COLUMNS = 100
# Strengths α at which the curve is simulated.
SIMULATED = (1.0, 2.0, 4.0, 8.0, 16.0)


def trial(settings: Settings, index: int) -> list[Row]:
    """Return the curve at ξ = index + 1, and simulated points on it."""
    xi = float(index + 1)
    rows: list[Row] = []
    for z in np.linspace(0, 8, N_POINTS):
        names: Row = {"xi": xi, "kind": "theory", "z": float(z)}
        rows.append(names | _rates(float(z) ** 2, xi))
    for alpha in SIMULATED:
        kept_null, kept_true = (_share_kept(settings, index, alpha, value) for value in (0.0, xi))
        names = {"xi": xi, "kind": "simulated", "z": float(np.sqrt(alpha))}
        rows.append(names | {"fp": kept_null, "fn": 1 - kept_true})
    return rows


def _rates(alpha: float, xi: float) -> Row:
    return {
        "fp": float(rates.false_positive_rate("vi", alpha, sigma=SIGMA)),
        "fn": float(rates.false_negative_rate("vi", alpha, xi, sigma=SIGMA)),
    }


def _share_kept(settings: Settings, index: int, alpha: float, xi: float) -> float:
    """Return the share of orthonormal columns with coefficient ξ that ARDvi keeps, over several problems of 100."""
    generator = np.random.default_rng([settings.seed, index, int(alpha), int(xi)])
    y: Array = xi + SIGMA * generator.standard_normal((N_COLUMNS, settings.sizes["draws"]))
    model = ARDvi(alpha, noise_variance=SIGMA**2, fit_intercept=False).fit(np.eye(N_COLUMNS), y)
    return float(model.support_.mean())


def table(records: Records) -> str:
    """Return theory and simulation side by side."""
    rows = []
    for point in records.where(kind="simulated"):
        theory = _rates(float(point["z"]) ** 2, float(point["xi"]))
        cells = [float(value) for value in (point["fp"], theory["fp"], point["fn"], theory["fn"])]
        rows.append([f"{point['xi']:g}", f"{point['z']:.2f}", *map(number, cells)])
    return markdown(["ξ/σ", "cut z", "FP simulated", "FP theory", "FN simulated", "FN theory"], rows)


def draw(records: Records, figure: Any) -> None:
    """Draw the curves and the simulated points."""
    ax = figure.subplots()
    for i, xi in enumerate(records.distinct("xi")):
        part = records.where(xi=xi, kind="theory")
        ax.plot(part.column("fp"), part.column("fn"), label=f"ξ = {xi:g} σ", **line_style(i))
        points = records.where(xi=xi, kind="simulated")
        ax.plot(points.column("fp"), points.column("fn"), "o", color="0", markersize=3)
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("false negative rate")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.legend(title="lines: theory, dots: simulated", fontsize="small", title_fontsize="small")


FPFN_CURVE = Experiment(
    name="fpfn-curve",
    label="fig:FP_FN_curve",
    what="false negative against false positive rate, orthonormal columns, σ = 1",
    sizes={"quick": {"trials": 3, "draws": 3}, "paper": {"trials": 5, "draws": 40}},
    trial=trial,
    keys=("xi", "kind", "z"),
    metrics=("fp", "fn"),
    table=table,
    draw=draw,
    core_seconds={("quick", "corrected"): 1, ("paper", "corrected"): 5},
    figure_size=(4.6, 4.0),
)
