"""Pictures: each takes and returns a Matplotlib Axes, and reads in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ardea.selection import ARDSearch


def _axes(ax: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'ardea[plots]'.") from error
    return plt.subplots(figsize=(5.2, 3.4), layout="constrained")[1] if ax is None else ax


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
    ax = _axes(ax)
    path, best = search.path_, search.best_index_
    chosen = path["method"] == path["method"][best]
    order = np.flatnonzero(chosen)[np.argsort(path["strength"][chosen], kind="stable")]
    strength = path["strength"][order]
    ax.plot(strength, path["k"][order], color="0.2", marker="o", markersize=4, label="terms")
    right = ax.twinx()
    score = np.where(path["eligible"][order], path["score"][order], np.nan)
    right.plot(strength, score, color="0.55", linestyle="--", marker="s", markersize=4, label=search.criterion)
    ax.axvline(path["strength"][best], color="0.2", linestyle=":", linewidth=1)
    ax.set_title(f"chosen: {path['k'][best]} terms at {path['strength'][best]:.3g}", fontsize="medium")
    if np.all(strength > 0):
        ax.set_xscale("log")
    name = path["varied"][best] or "strength"
    ax.set_xlabel(f"{name} ({path['method'][best]})")
    ax.set_ylabel("terms kept")
    right.set_ylabel(f"criterion: {search.criterion} (smaller is better)")
    handles = [*ax.get_lines()[:1], *right.get_lines()]
    ax.legend(handles, [line.get_label() for line in handles], loc="upper right", fontsize="small")
    return ax
