"""Fig. comparison_fig: the relative merits of the methods, measured where the paper gives an opinion.

Every method at the strength whose closed form lets one false term through at the true σ, on the data of the linear
example: processor time relative to plain ARD, rounds of the recursion, terms kept, added and missed, and for how many
removed columns the method can name a statistic and a threshold.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ardea import rates
from ardea.estimators.family import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi
from ardea.paper import linear
from ardea.paper.drawing import MARKERS
from ardea.paper.experiment import Experiment, Settings
from ardea.paper.records import Records, Row
from ardea.paper.study import METRICS, Regression, scores
from ardea.paper.tables import markdown, methods_in, number

ESTIMATORS: dict[str, tuple[rates.Method, Callable[..., Any]]] = {
    "ARDvi": ("vi", ARDvi),
    # Uncapped, this λ shrinks every term until nothing is left; η as in Sec. 6.
    "ARDr": ("r", partial(ARDr, eta=0.1)),
    "M-STSBL": ("m", MSTSBL),
    "L-STSBL": ("l", LSTSBL),
    "MAP-STSBL": ("map", MAPSTSBL),
}


def models(problem: Regression) -> dict[str, Any]:
    """Return plain ARD and every method at one expected false term, column by column where ρ matters."""
    sigma = linear.NOISE_SHARE * float(np.std(problem.theta @ problem.coef))
    rho = (problem.theta**2).sum(axis=0)
    rate = 1 / rho.size
    calibrated = {
        name: estimator(rates.strength_for(method, rate, rho=rho, sigma=sigma), fit_intercept=False)
        for name, (method, estimator) in ESTIMATORS.items()
    }
    return {"ARD": ARD(fit_intercept=False)} | calibrated


def trial(settings: Settings, number: int) -> list[Row]:
    """Return one row per method: the quickest of a few repetitions, and what was found."""
    (problem,) = linear.data(settings, number)
    rows: list[Row] = []
    for method, model in models(problem).items():
        seconds = []
        for _ in range(settings.sizes["repetitions"]):
            start = time.process_time()
            model.fit(problem.theta, problem.y)
            seconds.append(time.process_time() - start)
        found = scores(model.coef_, problem.coef)
        dropped = model.trace_.dropped
        extra: Row = {
            "kept": int(model.support_.sum()),
            "steps": int(model.n_iter_),
            "named": len(dropped),
            "rounds": max((column.round for column in dropped), default=0),
        }
        names: Row = {"method": method, "milliseconds": 1e3 * min(seconds)}
        rows.append(names | found | extra)
    return rows


def relative_cost(records: Records, method: str) -> float:
    """Return the median over trials of a method's time relative to plain ARD's."""
    plain, own = (records.where(method=name).column("milliseconds") for name in ("ARD", method))
    return float(np.median(own / plain))


def table(records: Records) -> str:
    """Return cost and sparsity of every method."""
    rows = []
    for method in methods_in(records):
        part = records.where(method=method)
        cells = [float(np.median(part.column("milliseconds"))), relative_cost(records, method)]
        cells += [
            float(part.column(name).mean()) for name in ("steps", "rounds", "kept", "added", "missed", "l2", "named")
        ]
        rows.append([method, *map(number, cells)])
    names = ["time / ARD", "steps", "rounds", "kept", "added", "missed", "ℓ² error", "removals with a reason"]
    header = ["method", "ms", *names]
    return markdown(header, rows)


def draw(records: Records, figure: Any) -> None:
    """Draw wrong terms against cost, one marker per method."""
    ax = figure.subplots()
    for i, method in enumerate(methods_in(records)):
        part = records.where(method=method)
        wrong = part.column("added") + part.column("missed")
        cost = relative_cost(records, method)
        thresholds = part.column("named").mean() > 0
        style = {"color": "0.15", "fillstyle": "full" if thresholds else "none", "markersize": 8}
        ax.plot(cost, wrong.mean(), MARKERS[i % len(MARKERS)], linestyle="none", label=method, **style)
    ax.set_xlabel("processor time relative to plain ARD (median)")
    ax.set_ylabel("wrong terms: added + missed (mean)")
    ax.set_ylim(bottom=0)
    ax.margins(x=0.18)
    ax.legend(title="filled: removals have a reason", fontsize="small", title_fontsize="small")
    ax.grid(color="0.92")
    ax.set_axisbelow(True)


MERITS = Experiment(
    name="merits",
    label="fig:comparison_fig",
    what="relative merits: measured cost and sparsity at one expected false term (closed form), linear example",
    sizes={
        "quick": {"trials": 2, "columns": 60, "terms": 6, "repetitions": 1},
        "paper": {"trials": 20, "columns": 250, "terms": 25, "repetitions": 3},
    },
    trial=trial,
    keys=("method",),
    metrics=(*METRICS, "milliseconds", "kept", "steps", "rounds", "named"),
    table=table,
    draw=draw,
    core_seconds={("quick", "corrected"): 1, ("paper", "corrected"): 7},
    figure_size=(5.0, 3.8),
)
