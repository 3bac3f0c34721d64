"""Pictures shared by several experiments; all read in grey."""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea.paper.records import Records
from ardea.paper.study import METRICS
from ardea.paper.tables import methods_in

TONES = ("0.0", "0.35", "0.55", "0.7", "0.45")
LINE_TONES = ("0.0", "0.25", "0.5", "0.1", "0.4")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
# Counts beyond the first of these are shown on a logarithmic axis that keeps zero.
WIDE_COUNTS = 30
COUNT_TICKS = (0, 1, 2, 5, 10, 20, 50, 100, 200)
METRIC_LABELS = {
    "l2": "ℓ² error of the coefficients",
    "l1": "ℓ¹ error of the coefficients",
    "added": "terms added",
    "missed": "terms missed",
}


def boxes(records: Records, figure: Any) -> None:
    """Draw the four metrics of every method: quartiles and median, whiskers at minimum and maximum."""
    methods = methods_in(records)
    for ax, metric in zip(figure.subplots(1, len(METRICS)), METRICS, strict=True):
        values = [records.where(method=method).column(metric) for method in methods]
        ax.boxplot(
            values,
            whis=(0, 100),
            widths=0.6,
            patch_artist=True,
            boxprops={"facecolor": "0.85", "edgecolor": "0.2"},
            medianprops={"color": "0", "linewidth": 1.6},
            whiskerprops={"color": "0.2"},
            capprops={"color": "0.2"},
        )
        ax.set_xticks(range(1, len(methods) + 1), methods, rotation=60, ha="right", rotation_mode="anchor")
        ax.set_ylabel(METRIC_LABELS[metric])
        _spread_axis(ax, np.concatenate(values), counts=metric in ("added", "missed"))
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)


def _spread_axis(ax: Any, values: Any, *, counts: bool) -> None:
    """Use a logarithmic axis where the values span decades; counts keep their zero."""
    largest, positive = values.max(initial=0.0), values[values > 0]
    if counts and largest > WIDE_COUNTS:
        ax.set_yscale("symlog", linthresh=5)
        ax.set_yticks([tick for tick in COUNT_TICKS if tick <= 1.3 * largest])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set_ylim(-0.4, 1.3 * largest)
    elif counts:
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set_ylim(-0.03 * max(largest, 1), 1.05 * max(largest, 1))
    elif positive.size and largest > 30 * positive.min():
        ax.set_yscale("log")


def levels(records: Records, figure: Any, *, level: str, axis: str, symbol: str) -> None:
    """Draw mean added and missed terms against a level (σ), dots measured, dashed lines predicted."""
    panels = figure.subplots(1, 2)
    for ax, name in zip(panels, ("added", "missed"), strict=True):
        for i, strength in enumerate(records.distinct("strength")):
            part = records.where(strength=strength)
            at = np.array(part.distinct(level))
            means = [
                [part.where(**{level: x}).column(column).mean() for x in at] for column in (name, f"expected_{name}")
            ]
            tone, marker = TONES[i], MARKERS[i]
            label = f"{symbol} = {_strength_text(strength)}"
            ax.plot(at, means[0], marker, color=tone, markersize=4, fillstyle="none" if i % 2 else "full", label=label)
            ax.plot(at, means[1], "--", color=tone, linewidth=1)
        ax.set_xscale("log")
        ax.set_xlabel(axis)
        ax.set_ylabel(f"mean number of {METRIC_LABELS[name]}")
        ax.grid(color="0.92")
        ax.set_axisbelow(True)
    panels[0].set_ylim(bottom=min(-1.0, panels[0].get_ylim()[0]))
    panels[1].legend(fontsize="small", title="dots: measured, dashes: theory", title_fontsize="small")


def _strength_text(strength: float) -> str:
    return "∞" if np.isinf(strength) else f"{strength:g}"


def line_style(i: int) -> dict[str, Any]:
    """Return colour, dash and marker of the i-th of several lines."""
    return {"color": LINE_TONES[i % len(LINE_TONES)], "linestyle": DASHES[i % len(DASHES)], "linewidth": 1.4}
