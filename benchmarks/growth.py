"""How CPU time grows with the rows (d = 25) and with the columns (m = 1000).

``python -m benchmarks.growth [--limit 100]`` measures every point in a process of its own, prints the fitted exponents
(slope of log time over log size on the upper half of the sizes) and saves ``growth.json`` and ``growth.png``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import Record, machine, measured, save_json, summary
from benchmarks.tables import machine_line, markdown, seconds

STYLES = {
    "SparseARD": {"marker": "o", "linestyle": "-", "color": "black"},
    "ARD": {"marker": "s", "linestyle": "--", "color": "tab:blue"},
    "ARDRegression": {"marker": "^", "linestyle": ":", "color": "tab:red"},
}


@dataclass(frozen=True)
class Curve:
    """Sizes of one axis; `case` is the pattern of the case's name."""

    axis: str
    case: str
    sizes: tuple[int, ...]
    methods: tuple[str, ...]


ROWS = Curve(
    "rows m (d = 25 columns)",
    "gauss_{}x25",
    tuple(2**p for p in range(12, 23, 2)),
    ("SparseARD", "ARD", "ARDRegression"),
)
COLUMNS = Curve(
    "columns d (m = 1000 rows)",
    "gauss_1000x{}",
    (500, 1000, 2000, 5000, 10000, 20000, 50000),
    ("SparseARD", "ARDRegression"),
)


def points(curve: Curve, method: str, *, repeat: int, limit: float, largest: float) -> list[Record]:
    """Measure one method at growing sizes until one exceeds the limit."""
    records: list[Record] = []
    for size in (s for s in curve.sizes if s <= largest):
        record = measured(curve.case.format(size), method, repeat=repeat, seed=0, limit=limit)
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

    figure, panels = plt.subplots(1, len(results), figsize=(5 * len(results), 4), layout="constrained", squeeze=False)
    for panel, (axis, curves) in zip(panels[0], results.items(), strict=True):
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
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    about = machine()
    results: dict[str, list[dict[str, Any]]] = {}
    for curve in (ROWS, COLUMNS):
        results[curve.axis] = []
        for method in curve.methods:
            found = points(curve, method, repeat=options.repeat, limit=options.limit, largest=options.largest)
            results[curve.axis].append(fitted(method, found))
            save_json(options.out / "growth.json", {"machine": about, "curves": results})
    draw(results, options.out / "growth.png")
    print(f"\n{machine_line(about)}\n\n{table(results)}")


if __name__ == "__main__":
    main()
