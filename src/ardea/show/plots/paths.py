"""Paths of an ARDSearch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea.core.problem import Array, Index
from ardea.estimators.search import ARDSearch
from ardea.show.plots.canvas import DARK, DASHES, LIGHT, SOFT, apart, as_label, one_axes, quiet
from ardea.show.report.described import column_names, estimator_of

LARGEST_SPREAD = 100.0


def _chosen_method(search: ARDSearch) -> tuple[Index, Array]:
    """Return places in the path of the chosen model's method, by strength, and those strengths."""
    path, best = search.path_, search.best_index_
    same = (path["method"] == path["method"][best]) & np.isfinite(path["strength"])
    if not same.any():
        raise ValueError("This search has no strengths to draw a path along: its estimator has none.")
    order = np.flatnonzero(same)[np.argsort(path["strength"][same], kind="stable")]
    return order, path["strength"][order]


def _strength_axis(ax: Any, search: ARDSearch, strength: Array) -> None:
    path, best = search.path_, search.best_index_
    if np.all(strength > 0):
        ax.set_xscale("log")
    ax.set_xlabel(f"{path['varied'][best] or 'strength'} ({path['method'][best]})")
    ax.axvline(path["strength"][best], color=DARK, linestyle=":", linewidth=1)


def plot_path(search: ARDSearch, ax: Any = None) -> Any:
    """Draw the number of terms (left) and the criterion (right) against strength, and mark the chosen model.

    Parameters
    ----------
    search : ARDSearch
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = one_axes(ax)
    path, best = search.path_, search.best_index_
    order, strength = _chosen_method(search)
    ax.plot(strength, path["k"][order], color=DARK, marker="o", markersize=4, label="terms")
    right = ax.twinx()
    score = np.where(path["eligible"][order], path["score"][order], np.nan)
    right.plot(strength, score, color=SOFT, linestyle="--", marker="s", markersize=4, label=search.criterion)
    _strength_axis(ax, search, strength)
    ax.set_title(f"chosen: {path['k'][best]} terms at {path['strength'][best]:.3g}", fontsize="medium")
    ax.set_ylabel("terms kept")
    right.set_ylabel(f"criterion: {search.criterion} (smaller is better)")
    handles = [*ax.get_lines()[:1], *right.get_lines()]
    ax.legend(handles, [line.get_label() for line in handles], loc="best", fontsize="small", framealpha=0.9)
    return ax


def plot_path_coefficients(search: ARDSearch, ax: Any = None, *, max_labels: int = 12) -> Any:
    """Draw all coefficients against strength; those of the chosen model are dark and named.

    Where coefficients differ more than a hundredfold in size, each is drawn relative to its largest on the path.

    Parameters
    ----------
    search : ARDSearch
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    max_labels : int, default=12
        At most so many terms are named.

    Returns
    -------
    matplotlib Axes
    """
    ax = one_axes(ax)
    order, strength = _chosen_method(search)
    coef = search.path_["coef"][order]
    largest = np.abs(coef).max(axis=0)
    shown = np.flatnonzero(largest > 0)
    chosen = np.flatnonzero(search.path_["support"][search.best_index_])
    scale = largest if _spread(largest[chosen if chosen.size else shown]) > LARGEST_SPREAD else np.ones_like(largest)
    for j in np.setdiff1d(shown, chosen):
        ax.plot(strength, coef[:, j] / scale[j], color=LIGHT, linewidth=0.8, zorder=1)
    names = column_names(estimator_of(search))
    for i, j in enumerate(chosen):
        ax.plot(strength, coef[:, j] / scale[j], color=DARK, linestyle=DASHES[i % len(DASHES)], linewidth=1.3)
    _strength_axis(ax, search, strength)
    ax.set_ylabel("coefficient" if np.all(scale == 1) else "coefficient / its largest on the path")
    at_chosen = search.path_["coef"][search.best_index_]
    named = chosen[np.argsort(-np.abs(at_chosen[chosen] / scale[chosen]), kind="stable")][:max_labels]
    _label(ax, [names[j] for j in named], coef[:, named] / scale[named], strength)
    ax.set_title(f"chosen: {chosen.size} terms", fontsize="medium")
    quiet(ax)
    return ax


def _spread(sizes: Array) -> float:
    return float(sizes.max() / sizes.min()) if sizes.size and sizes.min() > 0 else 1.0


def _label(ax: Any, names: list[str], curves: Array, strength: Array) -> None:
    """Name curves where they end on the right, labels moved apart."""
    if not names:
        return
    low, high = ax.get_ylim()
    for name, wanted, height in zip(names, curves[-1], apart(curves[-1], 0.055 * (high - low)), strict=True):
        ax.annotate(
            as_label(name),
            (strength[-1], wanted),
            (1.03, height),
            textcoords=ax.get_yaxis_transform(),
            va="center",
            fontsize="small",
            arrowprops={"arrowstyle": "-", "color": SOFT, "linewidth": 0.5},
        )
