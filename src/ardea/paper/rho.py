"""Fig. FP_FN_rho: rates against ρ, with strengths such that FP = FN at ρ = 1.

The paper does not say which σ, ξ and range of ρ it used. Here σ = 1, ξ = 3 and ρ from 0.1 to 1000.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize

from ardea import rates
from ardea.paper.drawing import line_style
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.records import Records, Row
from ardea.paper.tables import markdown, number

XI = 3.0
LOG_RHO = (-1, 3)
NAMES: dict[rates.Method, str] = {
    "vi": "ARDvi",
    "r": "ARDr",
    "m": "M-STSBL",
    "l": "L-STSBL",
    "map": "MAP-STSBL",
}


def balanced_cut(xi: float = XI) -> float:
    """Return the z at which FP = FN for ρ = σ = 1.

    Examples
    --------
    >>> z = balanced_cut()
    >>> bool(abs(rates.false_positive_rate("vi", z**2) - rates.false_negative_rate("vi", z**2, 3.0)) < 1e-12)
    True
    """

    def gap(z: float) -> float:
        return float(rates.false_positive_rate("vi", z**2) - rates.false_negative_rate("vi", z**2, xi))

    return float(optimize.brentq(gap, 1e-6, 40.0, xtol=1e-14))


def trial(settings: Settings, index: int) -> list[Row]:
    """Return the rates of one method over ρ."""
    method = rates.METHODS[index]
    strength = float(rates.equivalent("vi", balanced_cut() ** 2, method))
    rho = np.logspace(*LOG_RHO, settings.sizes["points"])
    fp = rates.false_positive_rate(method, strength, rho=rho)
    fn = rates.false_negative_rate(method, strength, XI, rho=rho)
    psi = rates.psi(method, strength, rho=rho)
    return [
        {
            "method": NAMES[method],
            "rho": float(r),
            "strength": strength,
            "fp": float(p),
            "fn": float(q),
            "psi": float(c),
        }
        for r, p, q, c in zip(rho, fp, fn, psi, strict=True)
    ]


def growth(records: Records, method: str) -> float:
    """Return d ln ψ/d ln ρ at the large end."""
    part = records.where(method=method)
    rho, psi = np.log(part.column("rho")), np.log(part.column("psi"))
    return float((psi[-1] - psi[-2]) / (rho[-1] - rho[-2]))


def table(records: Records) -> str:
    """Return the rates at the ends and the exponent of ψ for large ρ."""
    rows = []
    for method in records.distinct("method"):
        part = records.where(method=method)
        fp, fn = part.column("fp"), part.column("fn")
        cells = [float(part[0]["strength"]), fp[0], fp[-1], fn[0], fn[-1], growth(records, method)]
        rows.append([method, *map(number, cells)])
    ends = f"{records.column('rho').min():g}", f"{records.column('rho').max():g}"
    header = ["method", "strength", *(f"{rate} at ρ = {end}" for rate in ("FP", "FN") for end in ends)]
    return markdown([*header, "d ln ψ/d ln ρ at the end"], rows)


def draw(records: Records, figure: Any) -> None:
    """Draw FP and FN against ρ."""
    panels = figure.subplots(1, 2)
    for ax, name, label in zip(panels, ("fp", "fn"), ("false positive rate", "false negative rate"), strict=True):
        for i, method in enumerate(records.distinct("method")):
            part = records.where(method=method)
            # ARDvi and MAP-STSBL coincide: one is drawn as a thick light line under the other.
            style = line_style(i) if method != "ARDvi" else {"color": "0.8", "linewidth": 5}
            ax.plot(part.column("rho"), np.maximum(part.column(name), 1e-12), label=method, **style)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(1e-6, 1.3)
        ax.set_xlabel("squared norm of the column, ρ")
        ax.set_ylabel(label)
        ax.axvline(1, color="0.85", linewidth=0.8, zorder=0)
    panels[1].set_xlim(right=30)
    panels[1].legend(fontsize="small")


RHO = Experiment(
    name="rho",
    label="fig:FP_FN_rho",
    what="false positive and negative rates against ρ, equal at ρ = 1; σ = 1, ξ = 3",
    sizes={"quick": {"trials": 5, "points": 41}, "paper": {"trials": 5, "points": 81}},
    trial=trial,
    keys=("method", "rho"),
    metrics=("fp", "fn", "psi"),
    table=table,
    draw=draw,
    core_seconds={("quick", "corrected"): 1, ("paper", "corrected"): 1},
)
