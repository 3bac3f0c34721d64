"""Pictures of a choice: the path of a search, and what any method trades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ardea import rates
from ardea.core.problem import Array, Index
from ardea.show import canvas
from ardea.show.fits import LARGEST_SPREAD

# Derived: a line of small text (10 points) as a share of an Axes of 2.5 inches; a convention: so many labels at most.
LINE, MOST_LABELS = 0.055, 12


def plot_path(search: Any, ax: Any = None) -> Any:
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

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import ARDSearch, ARDvi
    >>> from ardea.show import plot_path
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> search = ARDSearch(ARDvi(), strengths=[1, 4, 16]).fit(X, X[:, 2] + X[:, 5] ** 2)
    >>> plot_path(search).get_ylabel()
    'terms kept'
    """
    order, strength = _chosen_method(search)
    ax = canvas.one_axes(ax)
    path, best = search.path_, search.best_index_
    ax.plot(strength, path["k"][order], color=canvas.MODEL, marker="o", markersize=4, label="terms")
    right = ax.twinx()
    score = np.where(path["eligible"][order], path["score"][order], np.nan)
    right.plot(strength, score, color=canvas.OTHER, linestyle="--", marker="s", markersize=4, label=search.criterion)
    _strength_axis(ax, search, strength)
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.set_ylabel("terms kept")
    right.set_ylabel(f"{search.criterion} (smaller is better)")
    chosen = f"{path['k'][best]} terms at {path['varied'][best]} = {path['strength'][best]:.3g}"
    return canvas.finished(ax, f"{chosen} have the best {search.criterion}", legend=True, right=right)


def plot_path_coefficients(search: Any, ax: Any = None) -> Any:
    """Draw all coefficients against strength; those of the chosen model are coloured and named.

    Where coefficients differ more than a hundredfold in size, each is drawn relative to its largest on the path.

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
    order, strength = _chosen_method(search)
    ax = canvas.one_axes(ax)
    coef = search.path_["coef"][order]
    largest = np.abs(coef).max(axis=0)
    shown = np.flatnonzero(largest > 0)
    chosen = np.flatnonzero(search.path_["support"][search.best_index_])
    scale = largest if _spread(largest[chosen if chosen.size else shown]) > LARGEST_SPREAD else np.ones_like(largest)
    for j in np.setdiff1d(shown, chosen):
        ax.plot(strength, coef[:, j] / scale[j], color=canvas.LIGHT, linewidth=0.8, zorder=1)
    for i, j in enumerate(chosen):
        ax.plot(
            strength,
            coef[:, j] / scale[j],
            color=canvas.MODEL,
            linestyle=canvas.DASHES[i % len(canvas.DASHES)],
            linewidth=1.3,
        )
    _strength_axis(ax, search, strength)
    ax.set_ylabel("coefficient" if np.all(scale == 1) else "coefficient / its largest on the path")
    at_chosen = search.path_["coef"][search.best_index_]
    named = chosen[np.argsort(-np.abs(at_chosen[chosen] / scale[chosen]), kind="stable")][:MOST_LABELS]
    names = search.equations_[0].vocabulary.names
    _label(ax, [names[j] for j in named], coef[-1, named] / scale[named], strength[-1])
    canvas.finished(ax, f"The chosen model (dotted line) keeps {chosen.size} of {coef.shape[1]} terms")
    return ax


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
    ax = canvas.one_axes(ax)
    sizes = np.unique(np.abs(np.asarray(t, dtype=float)))
    curves = rates.operating_curve("vi", sizes)
    for i, (size, rate, missed) in enumerate(zip(sizes, curves.false_positive, curves.false_negative, strict=True)):
        dash = canvas.DASHES[i % len(canvas.DASHES)]
        ax.plot(rate, missed, color=canvas.MODEL, linestyle=dash, linewidth=1.4, label=f"true t = {size:g}")
    if false_positive_rate is not None:
        ax.axvline(false_positive_rate, color=canvas.DARK, linewidth=0.8, linestyle=":")
        at = rates.operating_curve("vi", sizes, false_positive=[false_positive_rate]).false_negative[:, 0]
        ax.plot(np.full(sizes.size, false_positive_rate), at, "o", color=canvas.OTHER, markersize=4)
    ax.axvline(rates.NO_PRUNING_RATE, color=canvas.SOFT, linewidth=0.8)
    where = {"rotation": 90, "ha": "right", "va": "top", "fontsize": "small", "color": canvas.MIDDLE}
    ax.annotate("plain ARD", (0.95 * rates.NO_PRUNING_RATE, 0.98), xycoords=("data", "axes fraction"), **where)
    ax.set_xscale("log")
    ax.set_xlabel("probability that an irrelevant column is kept")
    ax.set_ylabel("probability that a true term is missed")
    ax.set_ylim(-0.02, 1.02)
    return canvas.finished(ax, "Fewer false terms cost more true terms, the weak ones first", legend=True)


def _chosen_method(search: Any) -> tuple[Index, Array]:
    """Return places in the path of the chosen model's method, by strength, and those strengths."""
    check_is_fitted(search)
    path, best = search.path_, search.best_index_
    same = (path["method"] == path["method"][best]) & np.isfinite(path["strength"])
    if not same.any():
        raise ValueError("This search has no strengths to draw a path along: its estimator has none.")
    order = np.flatnonzero(same)[np.argsort(path["strength"][same], kind="stable")]
    return order, path["strength"][order]


def _strength_axis(ax: Any, search: Any, strength: Array) -> None:
    path, best = search.path_, search.best_index_
    if np.all(strength > 0):
        ax.set_xscale("log")
    ax.set_xlabel(f"{path['varied'][best]} ({path['method'][best]})")
    ax.axvline(path["strength"][best], color=canvas.DARK, linestyle=":", linewidth=1)


def _spread(sizes: Array) -> float:
    return float(sizes.max() / sizes.min()) if sizes.size and sizes.min() > 0 else 1.0


def _label(ax: Any, names: list[str], ends: Array, last: float) -> None:
    """Name curves where they end on the right, labels moved apart."""
    low, high = ax.get_ylim()
    for name, wanted, height in zip(names, ends, canvas.apart(ends, LINE * (high - low)), strict=True):
        ax.annotate(
            canvas.as_label(name),
            (last, wanted),
            (1.03, height),
            textcoords=ax.get_yaxis_transform(),
            va="center",
            fontsize="small",
            arrowprops={"arrowstyle": "-", "color": canvas.SOFT, "linewidth": 0.5},
        )
