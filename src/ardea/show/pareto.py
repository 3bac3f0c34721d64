"""Fit against number of terms: what every term of a regression adds, and how far rivals of equations of motion are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea.core.moves import moves
from ardea.core.problem import Array, posed
from ardea.core.subsets import backward_path
from ardea.equation import CLOSE, Equation
from ardea.names import counted
from ardea.show import canvas
from ardea.show.fits import MOST_EQUATIONS, NAME_LINES, ROW_HEIGHT, equations_of

# Terms that were not kept and are drawn all the same, those that would help most; of those kept, so many (conventions).
MORE, MOST_STEPS = 3, 25
# Where the page about a model puts what a point stands for: which equation, and which of its terms or rivals.
ANCHOR = "#row-{}-{}"
Step = tuple[str, float, str | None]  # a label, how far along, and where a click on it leads


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
        _draw(place, one, steps, kept, valued)
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
    """Return the chosen model and its rivals, by how much larger their criterion is."""
    own = ", ".join(equation.terms) or "no term"
    chosen: Step = (canvas.as_label(own, NAME_LINES), 0.0, ANCHOR.format(number, "chosen"))
    return [chosen] + [
        (canvas.as_label(", ".join(one.terms) or "no term", NAME_LINES), one.excess, ANCHOR.format(number, i))
        for i, one in enumerate(equation.rivals)
    ], 1


def _draw(ax: Any, equation: Equation, steps: list[Step], kept: int, valued: bool) -> None:
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
        told = f"{counted(kept - 1, 'term leaves', 'terms leave')} {left} of the variation\nof {name} unexplained"
        label = "share left unexplained"
        ax.set_xscale("log" if min(along) > 0 else "linear")
    else:
        ax.axvline(CLOSE, color=canvas.DARK, linewidth=0.8, linestyle=":")
        told = f"Other models of {name}:\nright of the dotted line they are clearly worse"
        label = "difference of the criterion"
        ax.set_xscale("symlog", linthresh=CLOSE)
        ax.set_xlim(min(along) - 1, 1.5 * max(*along, 2 * CLOSE))
        ticks = [0.0, CLOSE, *(10.0**power for power in range(2, 9) if 10.0**power <= max(along))]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    canvas.finished(ax, told, legend=len(steps) > kept, xlabel=label, ylim=(min(at) - 0.7, 0.7))
