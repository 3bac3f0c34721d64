"""Equations of motion: residuals, simulations with bands, phase portraits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ardea.core.problem import Array
from ardea.dynamics.discovery import Discovery
from ardea.dynamics.models import FieldModel
from ardea.dynamics.times import calendar
from ardea.show.plots.canvas import DARK, LIGHT, MANY_POINTS, POINT, SOFT, as_label, one_axes, panels, quiet
from ardea.show.plots.rows import draw_quantiles

LARGEST_NUMBER = 6
GRID_POINTS = 200
SUBSTEPS = 5


def plot_equation_residuals(model: Discovery, axes: Any = None) -> Any:
    """Draw the residuals of every equation (the first six): in order, and against normal quantiles.

    Residuals are whitened: where the equation is right they are independent, of equal size, and Gaussian if the noise
    is. Equations that were solved together share their rows and are drawn once.

    Parameters
    ----------
    model : Discovery
        Fitted, not loaded from a file.
    axes : array of Axes, optional
        Where to draw, two for every group; a new figure by default.

    Returns
    -------
    array of Axes of shape (groups of equations, 2)
    """
    groups = _same_rows(model)[:LARGEST_NUMBER]
    places = panels(axes, len(groups), 2, width=3.5, height=2.3)
    for (left, right), (names, residual) in zip(places, groups, strict=True):
        left.plot(residual, **POINT, rasterized=residual.size > MANY_POINTS)
        for height, dash in ((0, "-"), (-2, ":"), (2, ":")):
            left.axhline(height, color=DARK, linewidth=0.8, linestyle=dash)
        shown = f"{', '.join(map(as_label, names[:3]))}{', …' * (len(names) > 3)}"
        left.set_title(shown, fontsize="medium", loc="left")
        left.set_ylabel("residual")
        left.set_xlabel("row of the whitened system")
        draw_quantiles(right, residual)
        quiet(left)
        quiet(right)
    return places


def _same_rows(model: Discovery) -> list[tuple[list[str], Array]]:
    """Return residuals with the names of all equations that share them."""
    groups: list[tuple[list[str], Array]] = []
    for name, residual in zip(model.feature_names_, model.residuals(), strict=True):
        for names, known in groups:
            if known.shape == residual.shape and np.allclose(known, residual, atol=1e-3):
                names.append(name)
                break
        else:
            groups.append(([name], residual))
    return groups


def plot_simulation(
    model: Discovery,
    x0: ArrayLike,
    t: Any,
    *,
    n_samples: int = 100,
    x: ArrayLike | None = None,
    u: Any = None,
    level: float = 0.95,
    random_state: Any = None,
    x0_std: ArrayLike | None = None,
    axes: Any = None,
) -> Any:
    """Draw the found equations run from a start, with bands from the posterior of the coefficients, next to data.

    Parameters
    ----------
    model : Discovery
        Fitted.
    x0, t, u
        As for `Discovery.simulate`.
    n_samples : int, default=100
        Draws for the bands; 0 for none.
    x : array, optional
        Data at the same times, shown as dots (of a field: as a picture of its own).
    level : float, default=0.95
        Share of the draws inside the bands.
    random_state : int, RandomState or None
        Seed of the draws.
    x0_std : array of shape (states,), optional
        Standard deviations of the start, where it is a noisy row: every draw then begins at a point of its own.
        Without it the start counts as exact, and the bands hold the uncertainty of the coefficients alone.
    axes : array of Axes, optional
        One for every state (the first six); a new figure by default.

    Returns
    -------
    array of Axes
    """
    check_is_fitted(model)
    if isinstance(model.model_, FieldModel):
        return _plot_field(model, x0, t, x, axes)
    run = np.asarray(model.simulate(x0, t, u))
    bands = model.simulate(x0, t, u, n_samples, random_state, level, x0_std) if n_samples else None
    times = _drawn_times(model, t)
    names = model.feature_names_[:LARGEST_NUMBER]
    places = panels(axes, len(names), 1, width=5.2, height=1.35, sharex=True).ravel()
    for i, (place, name) in enumerate(zip(places, names, strict=True)):
        if bands is not None:
            label = f"{100 * level:g} % band"
            place.fill_between(times, bands.lower[:, i], bands.upper[:, i], color=LIGHT, linewidth=0, label=label)
        if x is not None:
            place.plot(times, np.asarray(x)[:, i], **POINT, label="data", zorder=1.5)
        place.plot(times[: len(run)], run[:, i], color=DARK, linewidth=1, label="model")
        place.set_ylabel(as_label(name))
        quiet(place)
    places[-1].set_xlabel(_time_label(model, t))
    if _are_dates(t):
        from matplotlib.dates import ConciseDateFormatter

        places[-1].xaxis.set_major_formatter(ConciseDateFormatter(places[-1].xaxis.get_major_locator()))
    # On the right: a power of ten that the axis leaves out stands above its left end.
    places[0].legend(fontsize="small", ncols=3, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    return places


def _drawn_times(model: Discovery, t: Any) -> Any:
    """Return the times as they are drawn: dates stay dates, and a number of steps becomes the steps."""
    if _are_dates(t):
        return calendar(t)
    return np.arange(int(t) + 1) if np.ndim(t) == 0 else np.asarray(model.elapsed(t), dtype=float)


def _are_dates(t: Any) -> bool:
    dates = calendar(t)
    return dates is not None and dates.dtype.kind == "M"


def _time_label(model: Discovery, t: Any) -> str:
    if getattr(model.model_, "discrete_time", False):
        return "k"
    unit = getattr(model, "time_unit_", None)
    return f"t ({unit})" if unit and not _are_dates(t) else "t"


def _plot_field(model: Discovery, x0: ArrayLike, t: Any, x: ArrayLike | None, axes: Any) -> Any:
    """Draw a field over space and time: data, model and their difference."""
    run = np.asarray(model.simulate(x0, t))
    times, space = _drawn_times(model, t)[: run.shape[-1]], model.model_.space[0]  # type: ignore[union-attr]
    pictures = [("model", run)]
    if x is not None:
        data = np.asarray(x, dtype=float)[:, : run.shape[-1]]
        pictures = [("data", data), *pictures, ("data − model", data - run)]
    places = panels(axes, 1, len(pictures), width=2.6, height=2.6, sharey=True).ravel()
    reach = max(float(np.abs(picture).max()) for _, picture in pictures[:2])
    for place, (name, picture) in zip(places, pictures, strict=True):
        drawn = place.pcolormesh(
            times, space, picture, cmap="gray", vmin=-reach, vmax=reach, shading="nearest", rasterized=True
        )
        place.set_title(name, fontsize="medium")
        place.set_xlabel(_time_label(model, t))
    places[0].set_ylabel(model.model_.axes[0])  # type: ignore[union-attr]
    places[0].figure.colorbar(drawn, ax=list(places), label=as_label(model.feature_names_[0]))
    return places


def plot_phase(
    model: Discovery,
    x0: ArrayLike | None = None,
    t: Any = None,
    *,
    states: tuple[int, int] | None = None,
    n_samples: int = 20,
    x: ArrayLike | None = None,
    level: float = 0.95,
    random_state: Any = None,
    ax: Any = None,
) -> Any:
    """Draw a run of the found equations in the plane of two states, with runs drawn from the posterior around it.

    A model of one state is drawn as its right-hand side against the state, with a band.

    Parameters
    ----------
    model : Discovery
        Fitted, of states.
    x0, t
        Start and times, as for `Discovery.simulate`; needed from two states on.
    states : pair of int, optional
        Which states; the first and the last by default.
    n_samples : int, default=20
        Draws from the posterior.
    x : array of shape (rows, states), optional
        Data, shown as dots.
    level : float, default=0.95
        Share of the draws inside the band (one state).
    random_state : int, RandomState or None
        Seed of the draws.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model)
    if isinstance(model.model_, FieldModel):
        raise ValueError("A phase portrait is for models of states; a field has plot_simulation.")
    ax = one_axes(ax, 4.2, 3.8)
    if len(model.feature_names_) == 1:
        return _plot_phase_line(model, x, n_samples, level, random_state, ax)
    if x0 is None or t is None:
        raise ValueError("Give x0 and t: a start, and the times to run the model for.")
    times = t if model.model_.discrete_time else _finer(np.asarray(model.elapsed(t), dtype=float))
    first, second = (0, len(model.feature_names_) - 1) if states is None else states
    if n_samples:
        drawn = model.simulate(x0, times, None, n_samples, random_state, level).samples
        for i, sample in enumerate(drawn):
            label = f"{n_samples} draws" if i == 0 else None
            ax.plot(sample[:, first], sample[:, second], color=LIGHT, linewidth=1.5, label=label)
    if x is not None:
        data = np.asarray(x)
        ax.plot(data[:, first], data[:, second], **POINT, label="data", zorder=2.5)
    run = np.asarray(model.simulate(x0, times))
    dots = {"linestyle": "none", "marker": "s", "markersize": 2} if model.model_.discrete_time else {"linewidth": 1}
    ax.plot(run[:, first], run[:, second], color=DARK, label="model", **dots)
    ax.set_xlabel(as_label(model.feature_names_[first]))
    ax.set_ylabel(as_label(model.feature_names_[second]))
    ax.legend(fontsize="small", ncols=3, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    quiet(ax)
    return ax


def _finer(t: Array) -> Array:
    """Return the times with others between them, so that curves look round."""
    return np.interp(np.arange(0, t.size - 1 + 1e-9, 1 / SUBSTEPS), np.arange(t.size), t)


def _plot_phase_line(model: Discovery, x: Any, n_samples: int, level: float, random_state: Any, ax: Any) -> Any:
    states: Any = model.model_
    reach = float(states.reach[0])
    low, high = (-reach, reach) if x is None else (float(np.nanmin(x)), float(np.nanmax(x)))
    grid = np.linspace(low, high, GRID_POINTS)[:, None]
    if n_samples:
        draws = np.array([states.with_coefficients(xi)(grid)[:, 0] for xi in model.sample(n_samples, random_state)])
        lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        ax.fill_between(grid[:, 0], lower, upper, color=LIGHT, linewidth=0, label=f"{100 * level:g} % band")
    ax.plot(grid[:, 0], model.predict(grid)[:, 0], color=DARK, linewidth=1.2, label="model")
    name = as_label(model.feature_names_[0])
    if states.discrete_time:
        ax.plot(grid[:, 0], grid[:, 0], color=SOFT, linestyle=":", linewidth=0.8, label="no change")
        if x is not None:
            series = np.asarray(x, dtype=float).reshape(-1)
            ax.plot(series[:-1], series[1:], **POINT, label="data")
    else:
        ax.axhline(0, color=SOFT, linestyle=":", linewidth=0.8)
    ax.set_xlabel(f"{name}[k]" if states.discrete_time else name)
    ax.set_ylabel(f"{name}[k+1]" if states.discrete_time else states.left(name))
    ax.legend(fontsize="small", framealpha=0.9)
    quiet(ax)
    return ax
