"""Coefficients with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ardea.dynamics.discovery import Discovery
from ardea.show.plots.canvas import DARK, SOFT, as_label, one_axes, panels, quiet
from ardea.show.report.described import Sum, described

# Coefficients that differ more than this in size are drawn in units of their standard errors.
LARGEST_SPREAD = 100.0
LARGEST_NUMBER = 12
ROW_HEIGHT = 0.24


def plot_coefficients(
    model: Any,
    ax: Any = None,
    *,
    level: float = 0.95,
    max_terms: int = 40,
    equations: Sequence[int] | None = None,
    targets: Sequence[str] | None = None,
) -> Any:
    """Draw every term kept with its interval, the numbers beside it.

    Where coefficients differ more than a hundredfold in size, each is drawn in units of its standard error.

    Parameters
    ----------
    model : estimator of ardea, ARDSearch or Discovery
        Fitted.
    ax : Axes or array of Axes, optional
        Where to draw: one, or one for every equation (target). New by default.
    level : float, default=0.95
        Probability inside the intervals.
    max_terms : int, default=40
        At most so many terms of an equation are drawn, those of the largest |t| first.
    equations : list of int, optional
        Which equations (targets) to draw; by default the first twelve.
    targets : list of str, optional
        Names of the targets of an estimator.

    Returns
    -------
    Axes, or an array of them for a Discovery or several targets
    """
    sums = described(model, level, targets)
    single = len(sums) == 1 and not isinstance(model, Discovery)
    if single:
        height = 0.9 + ROW_HEIGHT * max(min(len(sums[0].lines), max_terms), 1)
        return _draw(one_axes(ax, height=height), sums[0], level, max_terms)
    chosen = [sums[i] for i in (range(min(len(sums), LARGEST_NUMBER)) if equations is None else equations)]
    columns = min(len(chosen), 3)
    rows = -(-len(chosen) // columns)
    tallest = max(min(len(one.lines), max_terms) for one in chosen)
    axes = panels(ax, rows, columns, width=3.3, height=0.9 + ROW_HEIGHT * max(tallest, 1))
    for place, one in zip(axes.flat, chosen, strict=False):
        _draw(place, one, level, max_terms)
    for place in axes.flat[len(chosen) :]:
        place.set_axis_off()
    return axes


def _draw(ax: Any, one: Sum, level: float, max_terms: int) -> Any:
    lines = sorted(one.lines, key=lambda line: -abs(line.coef) / max(line.std, 1e-300))[:max_terms]
    lines = sorted(lines, key=one.lines.index)
    coef, std = (np.array([getattr(line, name) for line in lines]) for name in ("coef", "std"))
    ends = np.array([[line.low, line.high] for line in lines]).reshape(-1, 2)
    sizes = np.abs(coef[coef != 0])
    in_errors = bool(sizes.size and sizes.max() > LARGEST_SPREAD * sizes.min() and np.all(std > 0))
    unit = std if in_errors else np.ones_like(coef)
    at = np.arange(len(lines))[::-1]
    ax.axvline(0.0, color=SOFT, linewidth=0.8, linestyle=":")
    ax.errorbar(
        coef / unit,
        at,
        xerr=np.abs(ends - coef[:, None]).T / unit,
        fmt="o",
        color=DARK,
        markersize=4,
        capsize=2.5,
        linewidth=1.2,
    )
    ax.set_yticks(at, [as_label(line.name) for line in lines])
    ax.set_ylim(-0.7, max(len(lines), 1) - 0.3)
    for y, line in zip(at, lines, strict=True):
        ax.annotate(line.plus_minus(), (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    left_out = len(one.lines) - len(lines)
    percent = f"{100 * level:g} % intervals"
    ax.set_xlabel("coefficient / standard error" if in_errors else "coefficient")
    title = f"{as_label(one.left)}: {percent}" + (f" ({left_out} more terms)" if left_out else "")
    ax.set_title(title if lines else f"{as_label(one.left)}: no term", fontsize="medium")
    quiet(ax)
    return ax
