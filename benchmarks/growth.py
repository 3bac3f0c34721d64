"""How CPU time grows with rows, columns and terms of a regression, and with rows, states and candidates of a discovery.

``python -m benchmarks.growth [--limit 100]`` measures every point in a process of its own, prints the fitted exponents
(slope of log time over log size on the upper half of the sizes) and saves ``growth.json`` and ``growth.png``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import ONE_THREAD, ROOT, Record, machine, measured, save_json, summary
from benchmarks.tables import machine_line, markdown, seconds

STYLES = {
    "SparseARD": {"marker": "o", "linestyle": "-", "color": "black"},
    "ARD": {"marker": "s", "linestyle": "--", "color": "tab:blue"},
    "ARDRegression": {"marker": "^", "linestyle": ":", "color": "tab:red"},
    "Discovery": {"marker": "o", "linestyle": "-", "color": "black"},
    "weak form": {"marker": "s", "linestyle": "--", "color": "tab:blue"},
}
Measure = Callable[[str, int, int, float], Record]


@dataclass(frozen=True)
class Curve:
    """Sizes of one axis, and how a method is measured at one of them."""

    axis: str
    sizes: tuple[int, ...]
    methods: tuple[str, ...]
    measure: Measure


def regression(case: str, method: str, size: int, repeat: int, limit: float) -> Record:
    """Measure a regression; `case` is the pattern of the case's name."""
    return measured(case.format(size), method, repeat=repeat, seed=0, limit=limit)


def discovery(axis: str, method: str, size: int, repeat: int, limit: float) -> Record:
    """Measure a discovery in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.growth", "--one", axis, method, str(size), "--repeat", str(repeat)]
    environment, record = {**os.environ, **ONE_THREAD}, {"case": f"{axis} {size}", "method": method}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=1.2 * limit + 10
        )
    except subprocess.TimeoutExpired:
        return {**record, "timeout": limit}
    record = {**record, **json.loads(done.stdout.splitlines()[-1])}
    return {**record, "timeout": limit} if record["cpu"] > limit else record


def one_discovery(axis: str, method: str, size: int, repeat: int) -> Record:
    """Return the CPU time of a discovery from samples with 1 % noise, and whether its terms are those of the truth."""
    from ardea.dynamics import Discovery, Polynomials, systems

    system = systems.lorenz96(size) if axis == STATES else systems.lorenz63()
    times = None if axis == STATES else np.arange(size if axis == ROWS else 1000) * 0.02
    t, x = system.noisy(0.01, seed=0, t=times)
    library = Polynomials(DEGREES[size] if axis == CANDIDATES else 2)
    model = Discovery(library, form="weak" if method == "weak form" else None)
    taken: list[float] = []
    while len(taken) < repeat:
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x, t, feature_names=system.feature_names)
        taken.append(time.process_time() - start)
    exact = [set(one.terms) for one in model.equations_] == [set(one) for one in system.true_terms]
    return {"cpu": min(taken), "exact": exact, "form": model.form_}


ROWS, STATES, CANDIDATES = "rows of a discovery", "states (Lorenz 96)", "candidates of each equation"
# Candidates in three states, by their degree.
DEGREES = {10: 2, 20: 3, 35: 4, 56: 5, 84: 6, 120: 7}
CURVES = (
    Curve(
        "rows m (d = 25 columns)",
        tuple(2**p for p in range(12, 23, 2)),
        ("SparseARD", "ARD", "ARDRegression"),
        partial(regression, "gauss_{}x25"),
    ),
    Curve(
        "columns d (m = 1000 rows)",
        (500, 1000, 2000, 5000, 10000, 20000, 50000),
        ("SparseARD", "ARDRegression"),
        partial(regression, "gauss_1000x{}"),
    ),
    Curve(
        "true terms k (2000 × 1000)",
        (10, 20, 50, 100, 200, 400),
        ("SparseARD", "ARD", "ARDRegression"),
        partial(regression, "gauss_2000x1000_k{}"),
    ),
    Curve(ROWS, (250, 500, 1000, 2000, 4000, 8000, 16000), ("Discovery", "weak form"), partial(discovery, ROWS)),
    Curve(STATES, (5, 10, 20, 40), ("Discovery", "weak form"), partial(discovery, STATES)),
    Curve(CANDIDATES, tuple(DEGREES), ("Discovery", "weak form"), partial(discovery, CANDIDATES)),
)


def points(curve: Curve, method: str, *, repeat: int, limit: float, largest: float) -> list[Record]:
    """Measure one method at growing sizes until one exceeds the limit."""
    records: list[Record] = []
    for size in (s for s in curve.sizes if s <= largest):
        record = curve.measure(method, size, repeat, limit)
        records.append({**record, "size": size})
        print(summary(record), flush=True)
        if "timeout" in record or "cpu" not in record:
            break
    return records


def finished(records: Sequence[Record]) -> tuple[list[int], list[float]]:
    """Return sizes and times of the points that were finished in time."""
    done = [(r["size"], r["cpu"]) for r in records if "cpu" in r and "timeout" not in r]
    return [size for size, _ in done], [cpu for _, cpu in done]


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float | None:
    """Return the slope of log time over log size on the upper half of the sizes; None for fewer than two points."""
    count = max(2, (len(sizes) + 1) // 2)
    if len(sizes) < 2:
        return None
    return float(np.polyfit(np.log(sizes[-count:]), np.log(times[-count:]), 1)[0])


def fitted(label: str, records: Sequence[Record]) -> dict[str, Any]:
    """Return a curve's points with its exponent."""
    return {"method": label, "exponent": exponent(*finished(records)), "points": list(records)}


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Return the exponents and the largest size of every curve."""
    rows = []
    for axis, curves in results.items():
        for curve in curves:
            sizes, times = finished(curve["points"])
            slope = "–" if curve["exponent"] is None else f"{curve['exponent']:.2f}"
            last = f"{seconds(times[-1])} at {sizes[-1]}" if sizes else "–"
            rows.append([axis, curve["method"], slope, last])
    return markdown(("growth in", "method", "exponent", "largest finished"), rows)


def draw(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Draw the curves, log-log, one panel for each axis."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, panels = plt.subplots(2, 3, figsize=(15, 8), layout="constrained")
    for panel, (axis, curves) in zip(panels.flat, results.items(), strict=True):
        for curve in curves:
            slope = "" if curve["exponent"] is None else f", exponent {curve['exponent']:.2f}"
            panel.loglog(*finished(curve["points"]), label=curve["method"] + slope, **STYLES[curve["method"]])
        panel.set(xlabel=axis, ylabel="CPU time (s)")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(visible=True, alpha=0.3)
        panel.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Measure, print, save and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=100.0, help="CPU seconds for one fit; a method ends there")
    parser.add_argument("--largest", type=float, default=np.inf, help="largest number of rows or columns")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/growth.json"))
    parser.add_argument("--picture", type=Path, default=Path("docs/growth.png"))
    parser.add_argument("--one", nargs=3, metavar=("AXIS", "METHOD", "SIZE"), help="print one discovery's record")
    options = parser.parse_args()
    if options.one:
        axis, method, size = options.one
        print(json.dumps(one_discovery(axis, method, int(size), options.repeat)))
        return
    about = machine()
    results: dict[str, list[dict[str, Any]]] = {}
    for curve in CURVES:
        results[curve.axis] = []
        for method in curve.methods:
            found = points(curve, method, repeat=options.repeat, limit=options.limit, largest=options.largest)
            results[curve.axis].append(fitted(method, found))
            save_json(options.out, {"machine": about, "curves": results})
    draw(results, options.picture)
    print(f"\n{machine_line(about)}\n\n{table(results)}")


if __name__ == "__main__":
    main()
