"""Operating curves: what a method trades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ardea import rates
from ardea.show.plots.canvas import DARK, DASHES, MIDDLE, SOFT, one_axes, quiet


def plot_operating_curves(
    t: Sequence[float] = (2.0, 3.0, 4.0, 5.0), ax: Any = None, *, false_positive_rate: float | None = None
) -> Any:
    """Draw the probability to miss a true term against that to keep a false one.

    For one column norm the curves are those of every method: each is a cut on the same statistic.

    Parameters
    ----------
    t : sequence of float, default=(2, 3, 4, 5)
        t-statistics |ξ|√ρ/σ of true terms, one curve each.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    false_positive_rate : float, optional
        A rate to mark, such as `false_terms` / columns.

    Returns
    -------
    matplotlib Axes
    """
    ax = one_axes(ax)
    sizes = np.unique(np.abs(np.asarray(t, dtype=float)))
    curves = rates.operating_curve("vi", sizes)
    for i, (size, rate, missed) in enumerate(zip(sizes, curves.false_positive, curves.false_negative, strict=True)):
        shade = str(0.55 * i / max(sizes.size - 1, 1))
        ax.plot(rate, missed, color=shade, linestyle=DASHES[i % len(DASHES)], linewidth=1.4, label=f"true t = {size:g}")
    if false_positive_rate is not None:
        ax.axvline(false_positive_rate, color=DARK, linewidth=0.8, linestyle=":")
        at = rates.operating_curve("vi", sizes, false_positive=[false_positive_rate]).false_negative[:, 0]
        ax.plot(np.full(sizes.size, false_positive_rate), at, "o", color=DARK, markersize=4)
    ax.axvline(rates.NO_PRUNING_RATE, color=SOFT, linewidth=0.8)
    where = {"rotation": 90, "ha": "right", "va": "top", "fontsize": "small", "color": MIDDLE}
    ax.annotate("plain ARD", (0.95 * rates.NO_PRUNING_RATE, 0.98), xycoords=("data", "axes fraction"), **where)
    ax.set_xscale("log")
    ax.set_xlabel("probability that a column without meaning is kept")
    ax.set_ylabel("probability that a true term is missed")
    ax.set_ylim(-0.02, 1.02)
    ax.legend(fontsize="small", ncols=5, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    quiet(ax)
    return ax
