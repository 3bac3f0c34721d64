"""Pictures of a fit: terms with intervals, predictions with bands, residuals, and how the fit went."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from ardea.core.problem import Array
from ardea.equation import Equation
from ardea.names import rounded
from ardea.show import canvas

# A convention: numbers that differ more than this in size are not drawn on one axis.
LARGEST_SPREAD = 100.0
# So many equations are drawn where nobody chose some; a convention: four rows of three fill a page.
MOST_EQUATIONS = 12
# Inches between two terms: a line of text at matplotlib's usual size.
ROW_HEIGHT = 0.24
# A convention of time-series plots.
LONGEST_LAG = 20


def equations_of(model: Any, targets: Sequence[str] | None = None) -> list[Equation]:
    """Return the equations of a fitted model, their targets named if names are given."""
    check_is_fitted(model)
    if not hasattr(model, "equations_"):
        raise TypeError(f"A {type(model).__name__} is none of ardea's estimators, searches or discoveries.")
    if targets is None:
        return list(model.equations_)
    pairs = zip(model.equations_, targets, strict=True)
    return [replace(one, left=replace(one.left, name=name)) for one, name in pairs]


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
        Where to draw: one for every equation (target). New by default.
    level : float, default=0.95
        Probability inside the intervals.
    max_terms : int, default=40
        At most so many terms of an equation are drawn, those of the largest |t|.
    equations : list of int, optional
        Which equations (targets) to draw; by default the first twelve.
    targets : list of str, optional
        Names of the targets of an estimator.

    Returns
    -------
    Axes of one equation, or an array of them for several

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> from ardea.show import plot_coefficients
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> plot_coefficients(SparseARD().fit(X, X[:, 2] + X[:, 5] ** 2)).get_xlabel()
    'coefficient'
    """
    every = equations_of(model, targets)
    chosen = every[:MOST_EQUATIONS] if equations is None else [every[i] for i in equations]
    tallest = max(min(len(one.support), max_terms) for one in chosen)
    height = 0.9 + ROW_HEIGHT * max(tallest, 1)
    if len(chosen) == 1:
        return _draw_terms(canvas.one_axes(np.ravel(ax)[0], height=height), chosen[0], level, max_terms)
    columns = min(len(chosen), 3)
    axes = canvas.panels(ax, -(-len(chosen) // columns), columns, width=3.5, height=height)
    for place, one in zip(axes.flat, chosen, strict=False):
        _draw_terms(place, one, level, max_terms)
    for place in axes.flat[len(chosen) :]:
        place.set_axis_off()
    return axes


def _draw_terms(ax: Any, equation: Equation, level: float, max_terms: int) -> Any:
    coef, std, ends = equation.coefficients, equation.std, equation.interval(level)
    t = np.abs(coef) / np.maximum(std, np.finfo(float).tiny)
    drawn = np.sort(np.argsort(-t, kind="stable")[:max_terms])
    coef, std, ends = coef[drawn], std[drawn], ends[drawn]
    sizes = np.abs(coef[coef != 0])
    in_errors = bool(sizes.size and sizes.max() > LARGEST_SPREAD * sizes.min() and np.all(std > 0))
    unit = std if in_errors else np.ones_like(coef)
    at = np.arange(drawn.size)[::-1]
    bars = np.abs(ends - coef[:, None]).T / unit
    ax.axvline(0.0, color=canvas.SOFT, linewidth=0.8, linestyle=":")
    ax.errorbar(coef / unit, at, xerr=bars, fmt="o", color=canvas.MODEL, markersize=4, capsize=2.5, linewidth=1.2)
    ax.set_yticks(at, [canvas.as_label(equation.terms[i]) for i in drawn])
    ax.set_ylim(-0.7, max(drawn.size, 1) - 0.3)
    for y, value, half in zip(at, coef, np.ptp(ends, axis=1) / 2, strict=True):
        told = f"{rounded(value, half)} ± {rounded(half, half)}"
        ax.annotate(told, (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    ax.set_xlabel("coefficient / standard error" if in_errors else "coefficient")
    left_out = len(equation.terms) - drawn.size
    kept = f"{canvas.as_label(equation.left.text)}: {len(equation.terms)} of {equation.n_candidates} terms kept"
    beyond = f", {left_out} of them not drawn" if left_out else ""
    return canvas.finished(ax, f"{kept}{beyond}\n(bars: {100 * level:g} % intervals)" if drawn.size else kept)


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
    ax = canvas.one_axes(ax, 4.2, 3.8)
    observed, mean, std = against_rows(model, X, y, target)
    half = float(stats.norm.ppf(0.5 + level / 2)) * std
    order = np.argsort(mean, kind="stable")
    low, high = (mean - half)[order], (mean + half)[order]
    band = f"{100 * level:g} % band"
    ax.fill_between(mean[order], low, high, color=canvas.BAND, linewidth=0, label=band)
    ax.plot(mean[order], mean[order], color=canvas.MODEL, linewidth=1, label="observed = predicted")
    ax.plot(mean, observed, **canvas.POINT, rasterized=observed.size > canvas.MANY_POINTS)
    ax.set_xlabel("predicted")
    ax.set_ylabel("observed")
    inside = np.mean(np.abs(observed - mean) <= half)
    return canvas.finished(ax, f"{100 * inside:.3g} % of {observed.size} rows lie in the {band}", legend=True)


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
    first, second, third = places = canvas.panels(axes, 1, 3, width=2.9, height=2.8).ravel()
    observed, mean, std = against_rows(model, X, y, target)
    residual = (observed - mean) / std
    draw_scatter(first, mean, residual)
    first.set_xlabel("predicted")
    first.set_ylabel("residual / its deviation")
    draw_quantiles(second, residual)
    draw_autocorrelation(third, residual)
    return places


def against_rows(model: Any, X: Any, y: Any, target: int = 0) -> tuple[Array, Array, Array]:
    """Return what was observed of a target at rows, its prediction, and the deviation of a new observation."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        predicted = model.predict(X, return_std=True)
    observed, mean, std = (np.asarray(one, dtype=float) for one in (y, *predicted))
    several = mean.ndim == 2
    return tuple(one[:, target] if several else one.reshape(len(mean)) for one in (observed, mean, std))  # type: ignore[return-value]


def draw_scatter(ax: Any, along: ArrayLike, residual: Array) -> None:
    """Draw residuals in units of their deviation, with lines at two of these."""
    ax.plot(along, residual, **canvas.POINT, rasterized=residual.size > canvas.MANY_POINTS)
    for height, dash in ((0, "-"), (-2, ":"), (2, ":")):
        ax.axhline(height, color=canvas.DARK, linewidth=0.8, linestyle=dash)
    canvas.finished(ax, f"{100 * np.mean(np.abs(residual) <= 2):.3g} % lie within ±2\n(95 % if Gaussian)")


def draw_quantiles(ax: Any, residual: Array) -> None:
    """Draw ordered residuals against normal quantiles; noise that is Gaussian lies on the line."""
    ordered = np.sort(residual)
    expected = stats.norm.ppf((np.arange(1, ordered.size + 1) - 0.5) / ordered.size)
    reach = max(3.0, float(np.abs(ordered).max(initial=0.0)), float(np.abs(expected).max(initial=0.0)))
    ax.plot([-reach, reach], [-reach, reach], color=canvas.MODEL, linewidth=0.8)
    ax.plot(expected, ordered, **canvas.POINT, rasterized=ordered.size > canvas.MANY_POINTS)
    ax.set_xlabel("normal quantile")
    ax.set_ylabel("ordered residual")
    canvas.finished(ax, "Gaussian noise lies\non the line")


def draw_autocorrelation(ax: Any, residual: Array) -> None:
    """Draw the autocorrelation in row order; rows that are independent stay between the dotted lines."""
    lags = np.arange(1, max(2, min(LONGEST_LAG, residual.size // 4) + 1))
    bars = np.array([autocorrelation(residual, int(lag)) for lag in lags])
    bound = 2 / np.sqrt(residual.size)
    ax.vlines(lags, 0, bars, color=canvas.MIDDLE, linewidth=2)
    ax.axhline(0, color=canvas.DARK, linewidth=0.8)
    for height in (-bound, bound):
        ax.axhline(height, color=canvas.OTHER, linewidth=0.8, linestyle=":")
    reach = 1.1 * max(0.27, bound, float(np.abs(bars).max()))
    ax.set_ylim(-reach, reach)
    ax.set_xlabel("lag in rows")
    ax.set_ylabel("autocorrelation")
    canvas.finished(ax, "Independent rows stay\nbetween the dotted lines")


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
    check_is_fitted(model)
    fitted = getattr(model, "best_estimator_", model)
    trace = (fitted.trace_ if isinstance(fitted.trace_, list) else [fitted.trace_])[target]
    gap = float(np.atleast_1d(fitted.kkt_gap_)[target])
    ax = canvas.one_axes(ax)
    cost, steps = trace.cost, np.arange(1, trace.cost.size + 1)
    # Within a round the objective never rises beyond rounding; the next one begins far up, with all terms at zero.
    starts = np.flatnonzero(np.diff(cost) > 1e-9 * max(float(np.abs(cost).max(initial=0.0)), 1.0)) + 1
    line = {"color": canvas.MODEL, "marker": "o", "markersize": 2.5, "label": "objective"}
    ax.plot(np.insert(steps, starts, 0), np.insert(cost, starts, np.nan), **line)
    for start in starts:
        ax.axvline(start + 0.5, color=canvas.SOFT, linewidth=0.8, linestyle=":")
    settled = np.delete(cost, starts)
    if np.ptp(settled) > 0:
        ax.set_ylim(*(settled.min() - 0.08 * np.ptp(settled), settled.max() + 0.08 * np.ptp(settled)))
    right = ax.twinx()
    right.step(steps, trace.n_terms, where="mid", color=canvas.OTHER, linestyle="--", label="terms")
    right.set_ylim(bottom=0)
    right.set_ylabel("terms")
    ax.set_xlabel("step")
    ax.set_ylabel("objective (−2 log evidence + const.)")
    for axis in (ax.xaxis, right.yaxis):
        axis.get_major_locator().set_params(integer=True)
    ended, than = ("converged", "≤") if gap <= fitted.tol else ("did not converge", ">")
    return canvas.finished(
        ax, f"The fit {ended}: kkt_gap = {gap:.1e} {than} tol = {fitted.tol:.0e}", legend=True, right=right
    )
