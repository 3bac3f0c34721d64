"""A model against rows: predictions with bands, residuals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import stats

from ardea.core.problem import Array
from ardea.show.plots.canvas import DARK, LIGHT, MANY_POINTS, MIDDLE, POINT, SOFT, one_axes, panels, quiet
from ardea.show.report.described import estimator_of

LONGEST_LAG = 20


def predictions(model: Any, X: Any) -> tuple[Array, Array]:
    """Return mean and standard deviation of a new observation at rows that may come without names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        mean, std = estimator_of(model).predict(X, return_std=True)
    return np.asarray(mean), np.asarray(std)


def _one_target(values: Any, target: int) -> Array:
    array = np.asarray(values, dtype=float)
    return array if array.ndim == 1 else array[:, target]


def plot_prediction(model: Any, X: Any, y: Any, ax: Any = None, *, level: float = 0.95, target: int = 0) -> Any:
    """Draw observed against predicted values, with the band in which a new observation is expected.

    Parameters
    ----------
    model : estimator of ardea or ARDSearch
        Fitted.
    X, y : arrays
        Rows, those of the fit or new ones.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    level : float, default=0.95
        Probability inside the band.
    target : int, default=0
        Which target, where there are several.

    Returns
    -------
    matplotlib Axes
    """
    ax = one_axes(ax, 4.2, 3.8)
    mean, std = (_one_target(one, target) for one in predictions(model, X))
    observed = _one_target(y, target)
    half = float(stats.norm.ppf(0.5 + level / 2)) * std
    order = np.argsort(mean, kind="stable")
    ax.fill_between(
        mean[order],
        (mean - half)[order],
        (mean + half)[order],
        color=LIGHT,
        linewidth=0,
        label=f"{100 * level:g} % band",
    )
    ax.plot(mean[order], mean[order], color=DARK, linewidth=1, label="observed = predicted")
    ax.plot(mean, observed, **POINT, rasterized=observed.size > MANY_POINTS)
    inside = np.mean(np.abs(observed - mean) <= half)
    ax.set_title(f"{100 * inside:.3g} % of {observed.size} rows in the {100 * level:g} % band", fontsize="medium")
    ax.set_xlabel("predicted")
    ax.set_ylabel("observed")
    ax.legend(fontsize="small", framealpha=0.9, loc="upper left")
    quiet(ax)
    return ax


def plot_residuals(model: Any, X: Any, y: Any, axes: Any = None, *, target: int = 0) -> Any:
    """Draw residuals: against predictions, against normal quantiles, and their autocorrelation in row order.

    Parameters
    ----------
    model : estimator of ardea or ARDSearch
        Fitted.
    X, y : arrays
        Rows, those of the fit or new ones.
    axes : three Axes, optional
        Where to draw; a new figure by default.
    target : int, default=0
        Which target, where there are several.

    Returns
    -------
    array of three Axes
    """
    first, second, third = places = panels(axes, 1, 3, width=2.9, height=2.8).ravel()
    mean, std = (_one_target(one, target) for one in predictions(model, X))
    residual = (_one_target(y, target) - mean) / std
    first.plot(mean, residual, **POINT, rasterized=residual.size > MANY_POINTS)
    for height, dash in ((0, "-"), (-2, ":"), (2, ":")):
        first.axhline(height, color=DARK, linewidth=0.8, linestyle=dash)
    first.set_xlabel("predicted")
    first.set_ylabel("residual / its standard deviation")
    draw_quantiles(second, residual)
    draw_autocorrelation(third, residual)
    for place in places:
        quiet(place)
    return places


def draw_quantiles(ax: Any, residual: Array) -> None:
    """Draw ordered residuals against normal quantiles; noise that is Gaussian lies on the line."""
    ordered = np.sort(residual)
    expected = stats.norm.ppf((np.arange(1, ordered.size + 1) - 0.5) / ordered.size)
    reach = max(3.0, float(np.abs(ordered).max(initial=0.0)), float(np.abs(expected).max(initial=0.0)))
    ax.plot([-reach, reach], [-reach, reach], color=DARK, linewidth=0.8)
    ax.plot(expected, ordered, **POINT, rasterized=ordered.size > MANY_POINTS)
    ax.set_xlabel("normal quantile")
    ax.set_ylabel("ordered residual")


def draw_autocorrelation(ax: Any, residual: Array) -> None:
    """Draw the autocorrelation in row order; rows that are independent stay between the dotted lines."""
    lags = np.arange(1, max(2, min(LONGEST_LAG, residual.size // 4) + 1))
    ax.vlines(lags, 0, [autocorrelation(residual, int(lag)) for lag in lags], color=MIDDLE, linewidth=2)
    bound = 2 / np.sqrt(residual.size)
    ax.axhline(0, color=DARK, linewidth=0.8)
    for height in (-bound, bound):
        ax.axhline(height, color=SOFT, linewidth=0.8, linestyle=":")
    ax.set_ylim(*(side * max(0.3, 1.1 * float(np.abs(ax.get_ylim()).max())) for side in (-1, 1)))
    ax.set_xlabel("lag in rows")
    ax.set_ylabel("autocorrelation")


def autocorrelation(residual: Array, lag: int) -> float:
    """Return the correlation of a series with itself, so many rows later.

    Examples
    --------
    >>> autocorrelation(np.array([1.0, -1.0] * 50), 1)
    -0.99
    """
    centred = residual - residual.mean()
    power = float(centred @ centred)
    return float(centred[lag:] @ centred[:-lag]) / power if power > 0 else 0.0
