"""Pictures of equations of motion: residuals, smoothed states, simulations with bands, phase portraits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from ardea.core.problem import Array
from ardea.equation import Equation
from ardea.show import canvas
from ardea.show.fits import draw_quantiles, draw_scatter, equations_of, plot_coefficients, plot_pareto

# So many states or equations fill a page; a convention.
MOST_PANELS = 6
# Lines of a name on the left of a panel of 1.4 inches, and letters of each that have room there (measured).
SIDEWAYS = 3, 13
# Points of a curve that is to look round: on a line of states, and between two samples of a trajectory.
GRID_POINTS, SUBSTEPS = 200, 5
# A convention: a band says nothing of a state any more that is wider than so many of its deviations (± one).
WIDE = 2.0
# Conventions: so many fields are drawn, and each at so many times if it has two dimensions.
MOST_FIELDS, SNAPSHOTS = 3, 3
# Runs in reports are cut to so many numbers, half a minute of work (measured on `systems.lambda_omega`).
MOST_NUMBERS = 10**6
# A convention: no line is drawn across a step longer than so many median steps.
GAP = 4.0
# Derived: the ends of a 95 % band of so many draws are known to 0.35 standard deviations, a tenth of its width.
N_DRAWS = 60
# Conventions: runs that a portrait can show, and rows that a run is compared with, since chaos forgets its start.
N_PHASE_DRAWS, LONGEST_RUN = 20, 400
# Conventions: inches of a panel over time, and of what all of them share: title, legend, and the axis of time.
PANEL, AROUND = 1.3, 1.1
# A convention: a difference is drawn in colours for so many times its root mean square about zero.
SEEN_RMS = 3.0
# Equations hold for rows where they explain so much of how these change (a convention).
HOLDS = 0.5


@canvas.picture(model=("Discovery", "Fitted."))
def plot_equation_residuals(model: Any, axes: Any = None) -> Any:
    """Draw the residuals of every equation (the first six): in order, and against normal quantiles.

    Residuals are whitened: where the equation is right they are independent, of equal size, and Gaussian if the noise
    is. Equations that were solved together share their rows and are drawn once.
    """
    groups: list[tuple[list[str], Array]] = []
    for equation, residual in zip(equations_of(model), model.residuals(), strict=True):
        text = equation.left.text
        for names, known in groups:
            if known.shape == residual.shape and np.allclose(known, residual, atol=1e-3):
                names.append(text)
                break
        else:
            groups.append(([text], residual))
    shown = groups[:MOST_PANELS]
    places = canvas.panels(axes, len(shown), 2, width=3.5, height=2.5)
    for (left, right), (names, residual) in zip(places, shown, strict=True):
        of = f"{', '.join(map(canvas.as_label, names[:3]))}{', …' * (len(names) > 3)}: "
        draw_scatter(left, np.arange(residual.size), residual, of, xlabel="row", ylabel="residual / its noise")
        draw_quantiles(right, residual)
    return places


@canvas.picture(
    model=("Discovery", "Fitted in trajectory form."), x=("array", "The samples of that series, shown as dots.")
)
def plot_states(
    model: Any, x: ArrayLike | None = None, *, series: int = 0, level: float = 0.95, axes: Any = None
) -> Any:
    """Draw the states as the found equations see them through the samples, with bands.

    With derivative_order=2 rates of change, which were not measured, are drawn below the positions.

    Examples
    --------
    >>> from ardea.dynamics import Discovery, systems
    >>> from ardea.show import plot_states
    >>> t, x = systems.linear_oscillator().noisy(0.05, seed=0)
    >>> model = Discovery().fit(x, t, feature_names=["p", "q"])
    >>> [ax.get_ylabel() for ax in plot_states(model, x)]
    ['p', 'q']
    """
    check_is_fitted(model)
    frame, many = model.states_[series], len(model.model_.states)
    samples = np.empty((len(frame), 0)) if x is None else np.asarray(x, dtype=float).reshape(len(frame), -1)
    states, std = np.split(frame.drop(columns="time").to_numpy(), [many], axis=1)
    half = ndtri(0.5 + level / 2) * std
    words = "The states behind the samples", "smoothed state", "samples"
    look = {"marker": "s", "markersize": 2} if model.discrete_time else {}
    ends, times = (states - half, states + half), frame["time"].to_numpy()
    return _draw_series(model, times, states, ends, samples, words, level, axes, **look)


@canvas.picture(model=("Discovery", "Fitted."))
def plot_simulation(
    model: Any,
    x0: ArrayLike | None,
    t: Any,
    n_samples: int = 100,
    *,
    x: ArrayLike | None = None,
    u: Any = None,
    level: float = 0.95,
    random_state: Any = None,
    x0_std: ArrayLike | None = None,
    boundary: Any = None,
    axes: Any = None,
) -> Any:
    """Draw the found equations run from a start, with bands from the posterior of the coefficients, next to data.

    Fields are drawn without bands: data, run and difference over space and time or, in two dimensions, at three times.

    Examples
    --------
    >>> from ardea.dynamics import Discovery, systems
    >>> from ardea.show import plot_simulation
    >>> t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    >>> model = Discovery().fit(x, t, feature_names=["p", "q"])
    >>> [ax.get_ylabel() for ax in plot_simulation(model, x[0], t[:20], n_samples=5, x=x[:20], random_state=0)]
    ['p', 'q']
    """
    check_is_fitted(model)
    if is_field(model):
        return _plot_field(model, x0, t, x, u, boundary, axes)
    bands = model.simulate(x0, t, u, n_samples, random_state, level, x0_std) if n_samples else None
    ends = None if bands is None else (bands.lower, bands.upper)
    run, times = np.asarray(model.simulate(x0, t, u)), _drawn_times(model, t)
    begin = "the start of the picture" if x0 is not None else "the first row of the data"
    forgotten = None if bands is None else _forgotten(bands, run)
    title = f"The found equations, run from {begin}"
    title += "\nFrom the dotted line on the band is as wide as the states vary." * (forgotten is not None)
    places = _draw_series(model, times, run, ends, x, (title, "model", "data"), level, axes)
    for place in places if forgotten is not None else ():
        place.axvline(times[forgotten], color=canvas.DARK, linewidth=0.8, linestyle=":")
    return places


def _forgotten(bands: Any, run: Array) -> int | None:
    """Return the first row from which on bands are as wide as states vary, as chaos makes them; None for none."""
    n, states = run.shape
    width = np.asarray(bands.upper)[:n, :states] - np.asarray(bands.lower)[:n, :states]
    wide = np.flatnonzero(np.median(width / (WIDE * run.std(axis=0)), axis=1) > 1)
    return int(wide[0]) if wide.size and np.any(run.std(axis=0) > 0) else None


def _draw_series(
    model: Any, times: Any, states: Array, ends: Any, x: Any, words: Any, level: float, axes: Any, **look: Any
) -> Any:
    """Draw states against time, one below the other; `words` are a title and what lines and dots are."""
    title, line, dots = words
    names = model.model_.states[:MOST_PANELS]
    numbers = np.asarray(model.elapsed(times), dtype=float)
    steps = np.diff(numbers)
    gaps = np.flatnonzero(steps > GAP * np.median(steps) if steps.size else steps) + 1  # no line leads across one

    def cut(values: Any) -> Array:
        """Return rows, NaN for those that a run did not reach and in gaps."""
        rows = np.full((len(numbers), *np.shape(values)[1:]), np.nan)
        rows[: len(values)] = values
        return np.insert(rows, gaps, np.nan, axis=0)

    along = model.dates(cut(numbers)) if _are_dates(times) else cut(numbers)
    drawn, samples = cut(states), cut([]) if x is None else cut(np.asarray(x, dtype=float).reshape(len(times), -1))
    height = PANEL + AROUND / len(names)
    places = canvas.panels(axes, len(names), 1, width=canvas.WIDTH, height=height, sharex=True).ravel()
    for i, (place, label) in enumerate(zip(places, canvas.as_labels(names, *SIDEWAYS), strict=True)):
        if ends is not None:
            low, high = (cut(one)[:, i] for one in ends)
            canvas.draw_band(place, along, low, high, level)
        if samples.ndim > 1 and i < samples.shape[1]:
            place.plot(along, samples[:, i], **canvas.POINT, label=dots, zorder=1.5)
        place.plot(along, drawn[:, i], color=canvas.MODEL, linewidth=1, label=line, **look)
        canvas.finished(place, "", ylabel=label)
        canvas.show_around(place, "y", np.append(drawn[:, i], samples[:, i : i + 1] if samples.ndim > 1 else samples))
    places[-1].set_xlabel(_time_label(model, times))
    if _are_dates(times):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        few = AutoDateLocator(minticks=2, maxticks=canvas.MOST_TICKS + 2)
        places[-1].xaxis.set(major_locator=few, major_formatter=ConciseDateFormatter(few))
    canvas.finished(places[0], title, legend=True)
    return places


def is_field(model: Any) -> bool:
    """Whether the equations are about fields over space."""
    return hasattr(model.model_, "space")


def _are_dates(t: Any) -> bool:
    times = np.asarray(t)
    return times.dtype.kind == "M" or (times.dtype.kind == "O" and times.size > 0 and isinstance(times.flat[0], date))


def _drawn_times(model: Any, t: Any) -> Any:
    """Return the times as they are drawn: dates stay dates, and a number of steps becomes the steps."""
    if _are_dates(t):
        return np.asarray(t)
    return np.arange(int(t)) if np.ndim(t) == 0 else np.asarray(model.elapsed(t), dtype=float)


def _time_label(model: Any, t: Any) -> str:
    if model.discrete_time:
        return "k"
    name = canvas.as_label(getattr(model, "table_", {}).get("time") or "t")
    if _are_dates(t):
        return f"{name} (UTC)" if (model.time_origin_ or "").endswith("+00:00") else name
    return f"{name} ({model.time_unit_})" if model.time_unit_ else name


def first_run(model: Any, x: ArrayLike, t: ArrayLike) -> tuple[Array, Array]:
    """Return fields and times, as far as running the equations takes seconds."""
    n_axes, values, times = len(model.model_.space), np.asarray(x), np.asarray(t)
    if np.iscomplexobj(values):
        values = np.stack([values.real, values.imag], axis=-1)
    times = times if times.ndim else times * np.arange(values.shape[n_axes])
    many = max(MOST_NUMBERS // (values.size // len(times)), 2)
    return values[(slice(None),) * n_axes + (slice(many),)], times[:many]


def _plot_field(model: Any, x0: Any, t: Any, x: ArrayLike | None, u: Any, boundary: Any, axes: Any) -> Any:
    """Draw fields, one below the other: data, model and their difference.

    In one dimension these are drawn over space and time, in more as snapshots at a few times, in the middle of a third
    axis.
    """
    run, drawn, n_axes = np.asarray(model.simulate(x0, t, u, boundary=boundary)), model.model_, len(model.model_.space)
    times = _drawn_times(model, t)[: run.shape[n_axes]]
    run = run if run.ndim > n_axes + 1 else run[..., None]
    chosen = [drawn.fields.index(name) for name in drawn.solved][:MOST_FIELDS]
    columns = {"The found equation": run[..., : len(chosen)]}
    if x is not None:
        data = np.asarray(x, dtype=float)
        data = (data if data.ndim > n_axes + 1 else data[..., None])[..., : len(times), :]
        data = data[..., chosen] if data.shape[-1] > 1 else data
        columns = {"Data": data, **columns, "Difference": data - columns["The found equation"]}
    when = [slice(None)] if n_axes == 1 else np.linspace(0, len(times) - 1, SNAPSHOTS + 1).astype(int)[1:]
    rows = [(field, moment) for field in range(len(chosen)) for moment in when]
    places = canvas.panels(axes, len(rows), len(columns), width=2.6, height=2.6, sharex=True, sharey=True)
    for (field, moment), line in zip(rows, places, strict=True):
        pictures = [_seen(values[..., field], n_axes, moment) for values in columns.values()]
        name = canvas.as_label(drawn.solved[field])
        told = name if n_axes == 1 else f"{name} at t = {times[moment]:.3g}"
        _draw_row(line, pictures, (times if n_axes == 1 else drawn.space[1], drawn.space[0]), told)
        line[0].set_ylabel(drawn.axes[0])
    for place, name in zip(places[0], columns, strict=True):
        rms = f": {np.sqrt(np.nanmean(columns[name] ** 2)):.2g} RMS" if name == "Difference" else ""
        canvas.finished(place, f"{name}{rms}")
    for place in places[-1]:
        place.set_xlabel(_time_label(model, t) if n_axes == 1 else drawn.axes[1])
    return places if len(rows) > 1 else places[0]


def _seen(values: Array, n_axes: int, moment: Any) -> Array:
    """Return a plane of a field: over space and time, or over two axes of space at a time."""
    middle = [n // 2 for n in values.shape[2:-1]]
    return values if n_axes == 1 else np.asarray(values[(slice(None), slice(None), *middle, moment)])


def _draw_row(places: Any, pictures: list[Array], points: Any, told: str) -> None:
    """Draw planes of one field in the same colours, and a difference in those of a range of its own about zero."""
    low, high = min(map(np.nanmin, pictures[:2])), max(map(np.nanmax, pictures[:2]))
    reach = SEEN_RMS * float(np.sqrt(np.nanmean(pictures[-1] ** 2))) or 1.0
    ranges = [(low, high), (low, high), (-reach, reach)]
    for place, picture, (least, most) in zip(places, pictures, ranges, strict=False):
        # Of all colours these keep their order in grey and for the colour-blind.
        look = {"cmap": "cividis", "vmin": least, "vmax": most, "shading": "nearest", "rasterized": True}
        mesh = place.pcolormesh(*points, picture, **look)
        if place is not places[0] or len(places) == 1:
            place.figure.colorbar(mesh, ax=place, label=told)


@canvas.picture(model=("Discovery", "Fitted."))
def plot_phase(
    model: Any,
    x0: ArrayLike | None = None,
    t: Any = None,
    n_samples: int = 20,
    *,
    states: tuple[int, int] | None = None,
    x: ArrayLike | None = None,
    level: float = 0.95,
    random_state: Any = None,
    ax: Any = None,
) -> Any:
    """Draw a run of the found equations in the plane of two states, with runs drawn from the posterior around it.

    A model of one state is drawn as its right-hand side against the state, with a band.
    """
    check_is_fitted(model)
    if is_field(model):
        raise ValueError("A phase portrait is for models of states; a field has plot_simulation.")
    many = len(model.model_.states)
    if many > 1 and (t is None or (x0 is None and model.joint_ is None)):
        raise ValueError("Give x0 and t: a start, and the times to run the model for.")
    ax = canvas.one_axes(ax, 4.2, 3.8)
    if many == 1:
        return _plot_line(model, x, n_samples, level, random_state, ax)
    times = t
    if not model.discrete_time:  # others between them, so that curves look round
        known = np.asarray(model.elapsed(t), dtype=float)
        times = np.interp(np.arange(0, known.size - 1 + 1e-9, 1 / SUBSTEPS), np.arange(known.size), known)
    draws = model.simulate(x0, times, None, n_samples, random_state, level).samples if n_samples else []
    return _plot_plane(model, model.simulate(x0, times), draws, x, list(states or (0, many - 1)), ax)


def _plot_plane(model: Any, run: ArrayLike, draws: Any, x: Any, plane: list[int], ax: Any) -> Any:
    """Draw runs and data in the plane of two states."""
    for i, sample in enumerate(draws):
        label = f"{len(draws)} draws" if i == 0 else None
        ax.plot(*sample[:, plane].T, color=canvas.LIGHT, linewidth=1.5, label=label)
    if x is not None and max(plane) < np.asarray(x).reshape(len(x), -1).shape[1]:
        ax.plot(*np.asarray(x)[:, plane].T, **canvas.POINT, label="data", zorder=2.5)
    dots = {"linestyle": "none", "marker": "s", "markersize": 2} if model.discrete_time else {"linewidth": 1}
    ax.plot(*np.asarray(run)[:, plane].T, color=canvas.MODEL, label="model", **dots)
    for axis, i in zip("xy", plane, strict=True):
        canvas.show_around(ax, axis, np.asarray(run)[:, i])
    first, second = (canvas.as_label(model.model_.states[i]) for i in plane)
    told = f"The found equations in the plane of {first} and {second}"
    return canvas.finished(ax, told, legend=True, xlabel=first, ylabel=second)


def _plot_line(model: Any, x: Any, n_samples: int, level: float, random_state: Any, ax: Any) -> Any:
    """Draw the right-hand side of one equation against its state."""
    reach = float(model.model_.reach[0])
    low, high = (-reach, reach) if x is None else (float(np.nanmin(x)), float(np.nanmax(x)))
    grid = np.linspace(low, high, GRID_POINTS)[:, None]
    if n_samples:
        curves = model.sample(n_samples, random_state)[:, 0] @ model.model_.library.evaluate(grid).T
        lower, upper = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
        canvas.draw_band(ax, grid[:, 0], lower, upper, level)
    ax.plot(grid[:, 0], model.predict(grid)[:, 0], color=canvas.MODEL, linewidth=1.2, label="model")
    if model.discrete_time:
        ax.plot(grid, grid, color=canvas.SOFT, linestyle=":", linewidth=0.8, label="no change")
    else:
        ax.axhline(0, color=canvas.SOFT, linestyle=":", linewidth=0.8)
    if model.discrete_time and x is not None:
        series = np.asarray(x, dtype=float).reshape(-1)
        ax.plot(series[:-1], series[1:], **canvas.POINT, label="data")
    left = model.equations_[0].left
    name = canvas.as_label(left.name)
    labels = {"xlabel": f"{name}[k]" if model.discrete_time else name, "ylabel": canvas.as_label(left.text)}
    return canvas.finished(ax, f"What the found equation makes of {name}", legend=True, **labels)


@canvas.picture(
    model=("Discovery", "Fitted to several trajectories with `shared`."),
    covariate=("array", "What differs between the trajectories; their number by default."),
)
def plot_variation(model: Any, covariate: ArrayLike | None = None, *, level: float = 0.95, axes: Any = None) -> Any:
    """Draw how the coefficient of every term varies over experiments, with intervals."""
    frame = model.variation(covariate, level)
    along = "trajectory" if covariate is None else "covariate"
    groups = list(frame.groupby(["equation", "term"], sort=False))
    columns = min(len(groups), 3)
    places = canvas.panels(axes, -(-len(groups) // columns), columns, width=2.6, height=2.2)
    for place, ((equation, term), rows) in zip(places.flat, groups, strict=False):
        low, high = (rows[name].to_numpy() for name in rows.columns[-2:])
        value = rows["coef"].to_numpy()
        errors = np.maximum(np.array([value - low, high - value]), 0.0)
        place.errorbar(rows[along], value, errors, fmt="o", markersize=3, capsize=2, color=canvas.MODEL)
        sentence = f"{canvas.as_label(term)} in ({canvas.as_label(equation)})'"
        canvas.finished(place, sentence, xlabel=along, ylabel="coefficient")
    for place in places.flat[len(groups) :]:
        place.set_axis_off()
    return places


@canvas.picture(experiments=("NextExperiments", "What `Discovery.distinguish` returns."))
def plot_experiments(experiments: Any, *, axes: Any = None) -> Any:
    """Draw the runs of a model and of its rivals from every start proposed, with the noise of the samples."""
    shape = len(experiments.starts), len(experiments.noise)
    places, labels = canvas.panels(axes, *shape, width=3.6, height=2.3), ["model"]
    labels += [f"rival {number + 1}" for number in range(len(experiments.rivals))]
    for number, runs in enumerate(experiments.runs):
        far = f"Experiment {number + 1}: at least {experiments.differences[number].min():.1f} times the noise apart"
        for state in range(shape[1]):
            place, mean, noise = places[number, state], runs[0, :, state], experiments.noise[state]
            place.fill_between(experiments.t, mean - noise, mean + noise, color=canvas.BAND)
            for one, label in enumerate(labels):
                look = {"linestyle": canvas.DASHES[one % len(canvas.DASHES)], "label": label}
                place.plot(experiments.t, runs[one, :, state], color=canvas.OTHER if one else canvas.MODEL, **look)
            legend = number == 0 and state == shape[1] - 1
            words = {"xlabel": "time", "ylabel": canvas.as_label(experiments.names[state])}
            canvas.finished(place, far if state == 0 else "", legend=legend, **words)
    return places


# All of these on a page -----------------------------------------------------------------------------------------------


def drawings_of_motion(model: Any, equations: Sequence[Equation], data: Any, level: float) -> Iterator[canvas.Drawing]:
    """Yield the drawings of equations of motion; runs from the first row next to the data, where that row is whole."""
    caption = "Terms with their intervals; the numbers are in the tables of terms."
    yield "coefficients", caption, partial(plot_coefficients, model, level=level)
    if any(one.rivals for one in equations):
        caption = "The chosen model of every equation (at 0) and its rivals. Names lead to the table of rivals."
        yield "pareto", caption, partial(plot_pareto, model)
    if hasattr(model, "searched_"):
        kind = "Residuals of the equations" if model.form_ != "trajectory" else "Samples less states"
        caption = f"{kind}, in units of their noise, in order and against normal quantiles."
        yield "residuals", caption, partial(plot_equation_residuals, model)
    smoothed = hasattr(model, "states_")
    if smoothed:
        first = "; of several series the first" * (len(model.states_) > 1)
        caption = f"The states behind the samples, with bands of {canvas.percent(level)}{first}."
        whole = None if data is None else _first(data[0])
        yield "states", caption, partial(plot_states, model, whole, level=level)
    if obstacle(model, data):
        return
    if is_field(model):
        x, t = first_run(model, *map(_first, data[:2]))
        caption = "The equations run from the smoothed data of the first time, next to the data. "
        walls = "Where the field breaks off at its ends, the run is given the values there; else it is periodic."
        caption += walls if len(model.model_.space) == 1 else "Space is taken as periodic, which is wrong near walls."
        yield "simulation", caption, partial(plot_simulation, model, None, t, x=x)
        return
    x, t, u = _first_series(data)
    n = len(x)
    times = np.arange(n) if model.discrete_time else t * np.arange(n) if t.ndim == 0 else t[:n]
    settings: dict[str, Any] = {"x": x, "level": level, "random_state": 0}
    noise = None if model.discrete_time or smoothed else np.array([one.noise for one in equations])
    start = None if smoothed else x[0]
    caption = (
        "The equations run from the first row, with bands from the uncertainty of coefficients and start (not of a "
        f"measurement), next to the first {n} rows. Where bands are wide, as chaos makes them, a run says little."
    )
    run = settings | {"u": u, "n_samples": N_DRAWS, "x0_std": noise}
    yield "simulation", caption, partial(plot_simulation, model, start, times, **run)
    if u is None:
        caption = "The same in the plane of two states (of one state: its equation), with runs from the posterior."
        yield "phase", caption, partial(plot_phase, model, start, times, n_samples=N_PHASE_DRAWS, **settings)


def _first_series(data: Any) -> tuple[Array, Array, Array | None]:
    """Return the rows, times and inputs of the first trajectory that a run is compared with."""
    x, t, u = (_first(one) for one in (*data, None)[:3])
    x = np.asarray(x, dtype=float)[:LONGEST_RUN]
    x = x[:, None] if x.ndim == 1 else x
    return x, np.asarray(t), None if u is None else np.asarray(u)[: len(x)]


def _first(one: Any) -> Any:
    return one[0] if isinstance(one, list | tuple) else one


def verdict(model: Any, data: Any, space: Any = None) -> tuple[str, bool | None]:
    """Return in a sentence whether equations hold for rows that they may not come from, and whether; None: unknown."""
    x, t, u = data
    parts = [(x, t, u)]
    if isinstance(x, list):
        times, inputs = (one if isinstance(one, list) else [one] * len(x) for one in (t, u))
        parts = list(zip(x, times, inputs, strict=True))
    grid = {} if space is None else {"space": space}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which the drawings tell
            scores = np.array([model.scores(*one, u=known, **grid) for *one, known in parts])
    except (ValueError, NotImplementedError) as error:
        return f"These rows were not checked against the equations: {error}", None
    series, equation = np.unravel_index(np.argmin(np.nan_to_num(scores, nan=-np.inf)), scores.shape)
    name, least = model.equations_[equation].left.text, scores[series, equation]
    where = f" in series {series + 1} of {len(scores)}" if len(scores) > 1 else ""
    share = f"of how they change at least R² = {least:.3g} is explained ({name}{where})"
    if least >= HOLDS:
        return f"The equations hold for these rows: {share}.", True
    return (
        f"The equations do not hold for these rows: {share.replace('at least', 'only')}. Are they of the same kind, in "
        "the same units, as those of the fit? (Where hardly anything moves, or noise is large, R² says little.)"
    ), False


def obstacle(model: Any, data: Any) -> str | None:
    """Return why equations of motion cannot be run from the first row."""
    if data is None:
        return "A comparison with the data needs the data: pass them to the report."
    if is_field(model):
        return None
    if not np.isfinite(_first_series(data)[0][0]).all():
        return "The first row has a gap, so the equations were not run from it."
    # Nobody measures rates of change; a smoothed trajectory has them.
    if hasattr(model, "states_") or len(model.model_.states) == len(model.equations_):
        return None
    return "Rates of change at the first row are not known, so the equations were not run from it."
