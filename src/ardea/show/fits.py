"""Pictures of a fit and of a choice: terms and what each adds, predictions, residuals; a search, what methods trade."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from ardea import rates
from ardea.core.problem import Array, Index, posed
from ardea.core.subsets import backward_path, moves
from ardea.equation import CLOSE, Equation
from ardea.names import counted, rounded
from ardea.show import canvas

# A convention: numbers that differ more than this in size are not drawn on one axis.
LARGEST_SPREAD = 100.0
# So many equations are drawn where nobody chose some; a convention: four rows of three fill a page.
MOST_EQUATIONS = 12
# Inches between two terms: a line of text at matplotlib's usual size.
ROW_HEIGHT = 0.24
# Inches beside panels of terms (looked at).
BETWEEN = 0.15
# Lines of a term's name.
NAME_LINES = 3
# A convention of time-series plots.
LONGEST_LAG = 20
# How the chosen strength is marked.
CHOSEN = {"color": canvas.DARK, "linestyle": ":", "linewidth": 1}
# Derived: a line of small text (10 points) as a share of an Axes of 2.5 inches; a convention: so many labels at most.
LINE, MOST_LABELS = 0.055, 12
# Terms that were not kept and are drawn all the same, those that would help most; of those kept, so many (conventions).
MORE, MOST_STEPS = 3, 25
# Where the page about a model puts what a point stands for: which equation, and which of its terms or rivals.
ANCHOR = "#row-{}-{}"
# Conventions for pages: so many targets have figures of their own, and in tables of more numbers terms that were not
# kept are not looked for again.
MOST_TARGETS, MOST_NUMBERS = 5, 10**7
Step = tuple[str, float, str | None]  # a label, how far along, and where a click on it leads


def equations_of(model: Any, targets: Sequence[str] | None = None) -> list[Equation]:
    """Return the equations of a fitted model, their targets named if names are given."""
    check_is_fitted(model)
    if not hasattr(model, "equations_"):
        raise TypeError(f"A {type(model).__name__} is none of ardea's estimators, searches or discoveries.")
    if targets is None:
        return list(model.equations_)
    pairs = zip(model.equations_, targets, strict=True)
    return [replace(one, left=replace(one.left, name=name)) for one, name in pairs]


@canvas.picture()
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

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> from ardea.show import plot_coefficients
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> plot_coefficients(SparseARD().fit(X[:, :7], X[:, 2] - X[:, 5] + X[:, 7])).get_xlabel()
    'coefficient'
    """
    every = equations_of(model, targets)
    chosen = every[:MOST_EQUATIONS] if equations is None else [every[i] for i in equations]
    labels = [[canvas.as_label(term, NAME_LINES).split("\n") for term in one.terms[:max_terms]] for one in chosen]
    lines = [[line for label in own for line in label] for own in labels]
    columns, longest = min(len(chosen), 3), max((len(line) for own in lines for line in own), default=0)
    width = 3.0 + 2 * BETWEEN + canvas.LETTER * longest if len(chosen) > 1 else canvas.WIDTH
    size = {"width": width, "height": 0.9 + ROW_HEIGHT * max(1, *map(len, lines))}
    axes = canvas.panels(ax, -(-len(chosen) // columns), columns, **size)
    if ax is None and columns > 1:  # numbers on the right keep away from the names of the next panel
        axes[0, 0].figure.get_layout_engine().set(w_pad=BETWEEN)
    for place, one in zip(axes.flat, chosen, strict=False):
        _draw_terms(place, one, level, max_terms)
    for place in axes.flat[len(chosen) :]:
        place.set_axis_off()
    return axes if len(chosen) > 1 else axes[0, 0]


def _draw_terms(ax: Any, equation: Equation, level: float, max_terms: int) -> None:
    """Draw the terms of the largest |t|."""
    t = np.abs(equation.coefficients) / np.maximum(equation.std, np.finfo(float).tiny)
    drawn = np.sort(np.argsort(-t, kind="stable")[:max_terms])
    coef, std, ends = (values[drawn] for values in (equation.coefficients, equation.std, equation.interval(level)))
    in_errors = _spread(np.abs(coef[coef != 0])) > LARGEST_SPREAD and bool(np.all(std > 0))
    unit = std if in_errors else np.ones_like(coef)
    labels = canvas.as_labels([equation.terms[i] for i in drawn], NAME_LINES)
    at = canvas.stacked(labels)
    bars = np.abs(ends - coef[:, None]).T / unit
    ax.axvline(0.0, color=canvas.SOFT, linewidth=0.8, linestyle=":")
    ax.errorbar(coef / unit, at, xerr=bars, fmt="o", color=canvas.MODEL, markersize=4, capsize=2.5, linewidth=1.2)
    ax.set_yticks(at, labels)
    for y, value, half in zip(at, coef, np.ptp(ends, axis=1) / 2, strict=True):
        told = f"{rounded(value, half)} ± {rounded(half, half)}"
        ax.annotate(told, (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    told = f"{canvas.as_label(equation.left.text)}: {len(equation.terms)} of {equation.n_candidates} terms kept"
    told += f", {len(equation.terms) - drawn.size} of them not drawn" * (len(equation.terms) > drawn.size)
    told += f"\n(bars: {canvas.percent(level)} intervals)" * (drawn.size > 0)
    label = "coefficient / standard error" if in_errors else "coefficient"
    canvas.finished(ax, told, xlabel=label, ylim=(min(at, default=0) - 0.7, 0.7))


def _spread(sizes: Array) -> float:
    """Return how many times the smallest size goes into the largest; 1 where one of them is zero."""
    return float(sizes.max() / sizes.min()) if sizes.size and sizes.min() > 0 else 1.0


@canvas.picture()
def plot_prediction(
    model: Any,
    X: Any,
    y: Any,
    ax: Any = None,
    *,
    level: float = 0.95,
    target: int = 0,
    targets: Sequence[str] | None = None,
) -> Any:
    """Draw observed against predicted values, with the band in which a new observation is expected."""
    ax = canvas.one_axes(ax, 4.2, 3.8)
    name = canvas.as_label(equations_of(model, targets)[target].name)
    observed, mean, std = against_rows(model, X, y, target)
    half = ndtri(0.5 + level / 2) * std
    order = np.argsort(mean, kind="stable")
    canvas.draw_band(ax, mean[order], (mean - half)[order], (mean + half)[order], level)
    ax.plot(mean[order], mean[order], color=canvas.MODEL, linewidth=1, label="observed = predicted")
    ax.plot(mean, observed, **canvas.POINT, rasterized=observed.size > canvas.MANY_POINTS)
    inside = f"{100 * np.mean(np.abs(observed - mean) <= half):.3g} % of {observed.size} rows"
    told = f"{inside} lie in the {canvas.percent(level)} band"
    return canvas.finished(ax, told, legend=True, xlabel=f"{name}, predicted", ylabel=f"{name}, observed")


@canvas.picture()
def plot_residuals(model: Any, X: Any, y: Any, axes: Any = None, *, target: int = 0) -> Any:
    """Draw residuals: against predictions, against normal quantiles, and their autocorrelation in row order."""
    first, second, third = places = canvas.panels(axes, 1, 3, width=2.9, height=2.8).ravel()
    observed, mean, std = against_rows(model, X, y, target)
    residual = (observed - mean) / std
    draw_scatter(first, mean, residual, xlabel="predicted", ylabel="residual / its deviation")
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


def r_squared(model: Any, X: Any, y: Any) -> list[float]:
    """Return the share of the variation of every target that is explained; without an intercept, of its square."""
    found = []
    for target, equation in enumerate(model.equations_):
        observed, mean, _ = against_rows(model, X, y, target)
        spread = observed - (observed.mean() if equation.intercept is not None else 0.0)
        total, left = float(spread @ spread), observed - mean
        found.append(1 - float(left @ left) / total if total > 0 else 0.0)
    return found


def draw_scatter(ax: Any, along: ArrayLike, residual: Array, of: str = "", **labels: Any) -> None:
    """Draw residuals (of what) in units of their deviation, with lines at two of these."""
    ax.plot(along, residual, **canvas.POINT, rasterized=residual.size > canvas.MANY_POINTS)
    for height, dash in ((0, "-"), (-2, ":"), (2, ":")):
        ax.axhline(height, color=canvas.DARK, linewidth=0.8, linestyle=dash)
    within = 100 * np.mean(np.abs(residual) <= 2)
    told = f"{within:.3g} % within ±2".replace(" ", "\N{NO-BREAK SPACE}")  # in one line
    canvas.finished(ax, f"{of}{told}\n(95 % if Gaussian)", **labels)


def draw_quantiles(ax: Any, residual: Array) -> None:
    """Draw ordered residuals against normal quantiles; noise that is Gaussian lies on the line."""
    ordered = np.sort(residual)
    expected = ndtri((np.arange(1, ordered.size + 1) - 0.5) / ordered.size)
    reach = max(3.0, float(np.abs(ordered).max(initial=0.0)), float(np.abs(expected).max(initial=0.0)))
    ax.plot([-reach, reach], [-reach, reach], color=canvas.MODEL, linewidth=0.8)
    ax.plot(expected, ordered, **canvas.POINT, rasterized=ordered.size > canvas.MANY_POINTS)
    canvas.finished(ax, "Gaussian noise lies\non the line", xlabel="normal quantile", ylabel="ordered residual")


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
    told = "Independent rows stay\nbetween the dotted lines"
    canvas.finished(ax, told, xlabel="lag in rows", ylabel="autocorrelation", ylim=(-reach, reach))


def autocorrelation(residual: Array, lag: int) -> float:
    """Return the correlation of a series with itself, so many rows later."""
    centred = residual - residual.mean()
    power = float(centred @ centred)
    return float(centred[lag:] @ centred[:-lag]) / power if power > 0 else 0.0


@canvas.picture()
def plot_path(search: Any, ax: Any = None) -> Any:
    """Draw the number of terms (left) and the criterion (right) against strength, and mark the chosen model.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import ARDSearch, ARDvi
    >>> from ardea.show import plot_path
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> search = ARDSearch(ARDvi(), strengths=[1, 4, 16]).fit(X[:, :7], X[:, 2] - X[:, 5] + X[:, 7])
    >>> plot_path(search).get_ylabel()
    'terms kept'
    """
    ax, order, strength = _along_path(search, ax)
    path, best = search.path_, search.best_index_
    ax.plot(strength, path["k"][order], color=canvas.MODEL, marker="o", markersize=4, label="terms")
    right = ax.twinx()
    score = np.where(path["eligible"][order], path["score"][order], np.nan)
    right.plot(strength, score, color=canvas.OTHER, linestyle="--", marker="s", markersize=4, label=search.criterion)
    ax.axvline(path["strength"][best], **CHOSEN)
    ax.yaxis.get_major_locator().set_params(integer=True)
    right.set_ylabel(f"{search.criterion} (smaller is better)")
    at = f"{path['varied'][best]} = {path['strength'][best]:.3g}"
    told = f"{counted(int(path['k'][best]), 'term')} at {at}: the best {search.criterion}"
    return canvas.finished(ax, told, legend=True, right=right, ylabel="terms kept")


@canvas.picture()
def plot_path_coefficients(search: Any, ax: Any = None) -> Any:
    """Draw all coefficients against strength; those of the chosen model are coloured and named.

    Where coefficients differ more than a hundredfold in size, each is drawn relative to its largest on the path.
    """
    ax, order, strength = _along_path(search, ax)
    coef = search.path_["coef"][order]
    largest = np.abs(coef).max(axis=0)
    shown = np.flatnonzero(largest > 0)
    chosen = np.flatnonzero(search.path_["support"][search.best_index_])
    scale = largest if _spread(largest[chosen if chosen.size else shown]) > LARGEST_SPREAD else np.ones_like(largest)
    for j in np.setdiff1d(shown, chosen):
        ax.plot(strength, coef[:, j] / scale[j], color=canvas.LIGHT, linewidth=0.8, zorder=1)
    for i, j in enumerate(chosen):
        look = {"color": canvas.MODEL, "linestyle": canvas.DASHES[i % len(canvas.DASHES)], "linewidth": 1.3}
        ax.plot(strength, coef[:, j] / scale[j], **look)
    ax.axvline(search.path_["strength"][search.best_index_], **CHOSEN)
    at_chosen = np.abs(search.path_["coef"][search.best_index_][chosen] / scale[chosen])
    named = chosen[np.argsort(-at_chosen, kind="stable")][:MOST_LABELS]
    names = search.equations_[0].vocabulary.names
    _label(ax, [names[j] for j in named], coef[-1, named] / scale[named], strength[-1])
    told = f"The chosen model (dotted line) keeps {chosen.size} of {coef.shape[1]} terms"
    label = "coefficient" if np.all(scale == 1) else "coefficient / its largest on the path"
    return canvas.finished(ax, told, ylabel=label)


@canvas.picture(t=("sequence of float", "t-statistics |ξ|√ρ/σ of true terms, one curve each."))
def plot_operating_curves(
    t: Sequence[float] = (2.0, 3.0, 4.0, 5.0), ax: Any = None, *, false_positive_rate: float | None = None
) -> Any:
    """Draw the probability to miss a true term against that to keep a false one.

    For one column norm the curves are those of every method: each is a cut on the same statistic.
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
    kept, lost = "probability that an irrelevant column is kept", "probability that a true term is missed"
    told = "Fewer false terms cost more true terms, the weak ones first"
    return canvas.finished(ax, told, legend=True, xscale="log", ylim=(-0.02, 1.02), xlabel=kept, ylabel=lost)


def _along_path(search: Any, ax: Any) -> tuple[Any, Index, Array]:
    """Return an Axes over strength, places in the path of the chosen model's method, and their strengths, sorted."""
    check_is_fitted(search)
    path, best = search.path_, search.best_index_
    same = (path["method"] == path["method"][best]) & np.isfinite(path["strength"])
    if not same.any():
        raise ValueError("This search has no strengths to draw a path along: its estimator has none.")
    order = np.flatnonzero(same)[np.argsort(path["strength"][same], kind="stable")]
    strength, ax = path["strength"][order], canvas.one_axes(ax)
    ax.set_xlabel(f"{path['varied'][best]} ({path['method'][best]})")
    if np.all(strength > 0):
        ax.set_xscale("log")
    return ax, order, strength


def _label(ax: Any, names: list[str], ends: Array, last: float) -> None:
    """Name curves where they end on the right, labels moved apart."""
    low, high = ax.get_ylim()
    line = {"arrowstyle": "-", "color": canvas.SOFT, "linewidth": 0.5}
    look = {"textcoords": ax.get_yaxis_transform(), "va": "center", "fontsize": "small", "arrowprops": line}
    labels = [canvas.as_label(name, NAME_LINES) for name in names]
    room = LINE * (high - low) * max((label.count("\n") + 1 for label in labels), default=1)
    for label, wanted, height in zip(labels, ends, canvas.apart(ends, room), strict=True):
        ax.annotate(label, (last, wanted), (1.03, height), **look)


# Fit against number of terms ------------------------------------------------------------------------------------------


@canvas.picture()
def plot_pareto(model: Any, X: Any = None, y: Any = None, axes: Any = None, *, targets: Any = None) -> Any:
    """Draw fit against number of terms.

    Of a regression: the share of the variation of y that is left when terms are added one by one, the most useful
    first; with rows (X, y), also terms that were not kept, below a line. Of equations of motion: how much larger the
    criterion of every rival is; from 6 on the difference is clear.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> from ardea.show import plot_pareto
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> ax = plot_pareto(SparseARD().fit(X[:, :7], X[:, 2] - X[:, 5] + 0.1 * X[:, 7]))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['no term', '+ x2', '+ x5']
    """
    equations = equations_of(model, targets)[:MOST_EQUATIONS]
    valued = equations[0].left.kind == "value"
    found = [_ladder(one, i, X, y) if valued else _rivals(one, i) for i, one in enumerate(equations)]
    lines = max(sum(label.count("\n") + 1 for label, _, _ in steps) for steps, _ in found)
    size = {"width": canvas.WIDTH, "height": 1.3 + ROW_HEIGHT * lines}
    places = canvas.panels(axes, len(found), 1, **size).ravel()
    for place, one, (steps, kept) in zip(places, equations, found, strict=True):
        _draw_steps(place, one, steps, kept, valued)
    return places if len(found) > 1 else places[0]


def _ladder(equation: Equation, number: int, X: Any, y: Any) -> tuple[list[Step], int]:
    """Return what is left after every term, the most useful first, and how many of them were kept."""
    kept = equation.kept
    names, active = equation.vocabulary.names, kept.active.tolist()
    path = backward_path(kept.problem, range(len(active)))[::-1]
    steps: list[Step] = [("no term", 1.0, None)]
    before: set[int] = set()
    for one in path:
        (new,) = set(one.support) - before or {one.support[0]}
        before |= {new}
        place = equation.support.index(active[new])
        label = f"+ {canvas.as_label(names[active[new]], NAME_LINES)}"
        steps.append((label, one.rss / kept.problem.total, ANCHOR.format(number, place)))
    more = [] if X is None else _not_kept(equation, X, np.asarray(y, dtype=float).reshape(len(y), -1)[:, number])
    return [*steps[-MOST_STEPS:], *more], min(len(steps), MOST_STEPS)


def _not_kept(equation: Equation, X: Any, y: Array) -> list[Step]:
    """Return the terms that would explain most of what is left, one after another."""
    rows = np.asarray(X, dtype=float)
    if equation.intercept is not None:
        rows, y = rows - rows.mean(axis=0), y - y.mean()
    problem, _ = posed(rows, y)
    support, found = list(equation.support), list[Step]()
    for _ in range(min(MORE, problem.n_columns - len(support))):
        change = moves(problem, support).additions
        support.append(int(change.argmin()))
        left = problem.least_squares(np.array(support))[1] / problem.total
        found.append((f"+ {canvas.as_label(equation.vocabulary.names[support[-1]], NAME_LINES)}", left, None))
    return found


def _rivals(equation: Equation, number: int) -> tuple[list[Step], int]:
    """Return the chosen model and its rivals, by how much larger their criterion is.

    Where names are so long that labels would be cut, rivals are named by what they add and leave out.
    """
    models = [equation.terms, *(one.terms for one in equation.rivals)]
    names = [", ".join(terms) or "no term" for terms in models]
    if any(canvas.as_label(name, NAME_LINES).endswith("…") for name in names):
        names[1:] = [_beside(terms, equation.terms) for terms in models[1:]]
    excess = [0.0, *(one.excess for one in equation.rivals)]
    places = ["chosen", *range(len(equation.rivals))]
    links = [ANCHOR.format(number, place) for place in places]
    return [*zip(canvas.as_labels(names, NAME_LINES), excess, links, strict=True)], 1


def _beside(terms: Sequence[str], chosen: Sequence[str]) -> str:
    """Return terms by how they differ from the chosen ones."""
    added = [f"with {one}" for one in terms if one not in chosen]
    return ", ".join([*added, *(f"without {one}" for one in chosen if one not in terms)])


def _draw_steps(ax: Any, equation: Equation, steps: list[Step], kept: int, valued: bool) -> None:
    labels, along, links = zip(*steps, strict=True)
    at = canvas.stacked(labels)
    ax.plot(along[:kept], at[:kept], "-o" if valued else "o", color=canvas.MODEL, markersize=5, label="chosen model")
    ax.plot(along[kept:], at[kept:], "s", color=canvas.OTHER, markersize=4, label="not kept" if valued else "rivals")
    ax.set_yticks(at, labels)
    for tick, link in zip(ax.get_yticklabels(), links, strict=True):
        tick.set_url(link)
    name = canvas.as_label(equation.left.text)
    if valued:
        left = f"{100 * along[kept - 1]:.2g} %"
        told = f"{counted(kept - 1, 'term leaves', 'terms leave')} {left} of the variation of {name}\n"
        told += "unexplained, in the rows of the fit"
        label = "share left unexplained"
        ax.set_xscale("log" if min(along) > 0 else "linear")
    else:
        ax.axvline(CLOSE, color=canvas.DARK, linewidth=0.8, linestyle=":")
        told = f"Other models of {name}:\nright of the dotted line they are clearly worse"
        label = "difference of the criterion"
        ax.set_xscale("symlog", linthresh=CLOSE)
        ax.set_xlim(min(along) - 1, 1.5 * max(*along, 2 * CLOSE))
        ticks = [0.0, CLOSE / 3, 2 * CLOSE / 3, CLOSE, 20.0, *(10.0**power for power in range(2, 9))]
        ticks = [tick for tick in ticks if tick <= max(*along, 2 * CLOSE)]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        ax.set_xticks([], minor=True)
    canvas.finished(ax, told, legend=len(steps) > kept, xlabel=label, ylim=(min(at) - 0.7, 0.7))


# All of these on a page -----------------------------------------------------------------------------------------------


def drawings_of_rows(model: Any, equations: Sequence[Equation], data: Any, level: float) -> Iterator[canvas.Drawing]:
    """Yield the drawings of a regression."""
    names = [one.name for one in equations]
    if any(one.terms for one in equations):
        caption = "Terms with their intervals; the numbers are in the table of terms."
        yield "coefficients", caption, partial(plot_coefficients, model, level=level, targets=names)
        rows = data if data is not None and np.size(data[0]) <= MOST_NUMBERS else (None, None)
        caption = "What every term adds, the most useful first. Names lead to the table of terms."
        yield "pareto", caption, partial(plot_pareto, model, *rows, targets=names)
    if hasattr(model, "path_") and np.isfinite(model.path_["strength"]).any():
        caption = "Terms kept and criterion along the path; the dotted line is the chosen model."
        yield "path", caption, partial(plot_path, model)
        caption = "Coefficients along the path; those of the chosen model are named."
        yield "coefficient-path", caption, partial(plot_path_coefficients, model)
    for i, name in enumerate(names[:MOST_TARGETS] if data is not None else []):
        of = f" of {name}" if len(names) > 1 else ""
        caption = f"Observed against predicted values{of}; the band is where a new observation is expected."
        draw = partial(plot_prediction, model, *data, level=level, target=i, targets=names)
        yield f"prediction-{i}", caption, draw
        caption = f"Residuals{of}: against predictions and normal quantiles, and their autocorrelation in row order."
        yield f"residuals-{i}", caption, partial(plot_residuals, model, *data, target=i)
