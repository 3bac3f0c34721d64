"""How a fit went."""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea.core.problem import Array
from ardea.core.result import Trace
from ardea.show.plots.canvas import DARK, SOFT, one_axes
from ardea.show.report.described import estimator_of


def plot_trace(model: Any, ax: Any = None, *, target: int = 0) -> Any:
    """Draw the objective (left) and the number of terms (right) at every step, with the certificate.

    The objective is −2 log evidence without constants, plus the prior's terms, at the noise used in the loop; it falls
    within a round. Thresholding methods start a new round, with fewer columns, after every drop (dotted lines); its
    first steps may lie above the picture.

    Parameters
    ----------
    model : estimator of ardea or ARDSearch
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    target : int, default=0
        Which target, where there are several.

    Returns
    -------
    matplotlib Axes
    """
    ax = one_axes(ax)
    fitted = estimator_of(model)
    trace = ([fitted.trace_] if isinstance(fitted.trace_, Trace) else fitted.trace_)[target]
    gap = float(np.atleast_1d(fitted.kkt_gap_)[target])
    steps = np.arange(1, trace.cost.size + 1)
    rounds = _rounds(trace.cost)
    for start, stop in rounds:
        label = "objective" if start == 0 else None
        part = slice(start, stop)
        ax.plot(steps[part], trace.cost[part], color=DARK, marker="o", markersize=2.5, linewidth=1.2, label=label)
        if start > 0:
            ax.axvline(start + 0.5, color=SOFT, linewidth=0.8, linestyle=":")
    _fit_to_settled(ax, trace.cost, rounds)
    right = ax.twinx()
    right.step(steps, trace.n_terms, where="mid", color=SOFT, linestyle="--", label="terms")
    right.set_ylim(bottom=0)
    right.yaxis.get_major_locator().set_params(integer=True)
    right.set_ylabel("terms")
    ax.set_xlabel("step")
    ax.set_ylabel("objective (−2 log evidence + const.)")
    reached = "≤" if gap <= fitted.tol else "> "
    ax.set_title(f"certificate: kkt_gap = {gap:.1e} {reached} tol = {fitted.tol:.0e}", fontsize="medium")
    handles = [*ax.get_lines()[:1], *right.get_lines()]
    ax.legend(handles, [line.get_label() for line in handles], loc="upper right", fontsize="small", framealpha=0.9)
    ax.xaxis.get_major_locator().set_params(integer=True)
    return ax


def _rounds(cost: Array) -> list[tuple[int, int]]:
    """Return where rounds begin and end: within one the objective never rises beyond rounding."""
    rounding = 1e-9 * max(float(np.abs(cost).max(initial=0.0)), 1.0)
    starts = [0, *(np.flatnonzero(np.diff(cost) > rounding) + 1).tolist()]
    return list(zip(starts, [*starts[1:], cost.size], strict=True))


def _fit_to_settled(ax: Any, cost: Array, rounds: list[tuple[int, int]]) -> None:
    """Leave the first steps of later rounds out of the axis: they begin far up, with all terms at zero."""
    settled = np.concatenate([cost[start + (start > 0) : stop] for start, stop in rounds])
    if settled.size and np.ptp(settled) > 0:
        margin = 0.08 * float(np.ptp(settled))
        ax.set_ylim(float(settled.min()) - margin, float(settled.max()) + margin)
