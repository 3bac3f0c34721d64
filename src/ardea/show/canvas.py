"""Figures and axes: their size, their colours, and how they become files."""

from __future__ import annotations

import inspect
import io
import textwrap
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pkgutil import resolve_name
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from ardea.names import printable

# Inches; a convention: a picture fills the column of a journal or of a page.
WIDTH, HEIGHT = 5.2, 3.4
# Blue and vermilion of Okabe and Ito's palette, which colour-blind readers tell apart. What differs in colour differs
# in dashes or markers too, so that nothing is lost in grey.
MODEL, OTHER, BAND = "#0072b2", "#d55e00", "#c5dff0"
DARK, MIDDLE, SOFT, LIGHT = "0.1", "0.4", "0.6", "0.82"
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
POINT = {"linestyle": "none", "marker": "o", "markersize": 2.6, "color": MIDDLE, "markeredgewidth": 0}
# A convention of print: 200 dots an inch.
DPI = 200
# A scatter of more points is stored as a picture: each takes 90 bytes of SVG (measured).
MANY_POINTS = 3000
# Steps between labels of an axis, so that five digits each have room in a panel of 2.9 inches (measured).
MOST_TICKS = 4
# Of the range of data and model, so much is shown on both sides of it (a convention).
ROOM = 0.6
# Longer names are cut in labels, or go on in a next line; a convention.
LONGEST_LABEL = 24
# Inches: the width of a letter as labels are set, what ticks and a label on the left of an Axes take, and what stands
# beside labels of ticks that are names (measured).
LETTER, BESIDE, TICK = 0.077, 0.95, 0.2
GLYPHLESS = (
    "The font of the figures lacks letters of some names: install one that has them, such as Noto Sans CJK. "
    "SVG and pages show them in a font of the browser."
)

# What parameters mean: their type, and what to give. `picture` writes it into the docstrings.
PARAMETERS = {
    "model": ("estimator of ardea, ARDSearch or Discovery", "Fitted; what it offers decides what can be drawn."),
    "search": ("ARDSearch", "Fitted."),
    "X": ("array", "Rows, those of the fit or new ones."),
    "y": ("array", "What was observed there."),
    "ax": ("matplotlib Axes", "Where to draw; a new figure by default. Of several equations: one for each."),
    "axes": ("array of Axes", "Where to draw, one for every panel; a new figure by default."),
    "level": ("float", "Probability inside intervals and bands."),
    "target": ("int", "Which target, where there are several."),
    "targets": ("list of str", "Names of the targets of an estimator."),
    "equations": ("list of int", "Which equations (targets) to draw; by default the first twelve."),
    "max_terms": ("int", "At most so many terms of an equation are drawn, those of the largest |t|."),
    "false_positive_rate": ("float", "A rate to mark, such as `false_terms` / columns."),
    "x0": ("array", "Start, as for `Discovery.simulate`."),
    "t": ("array or number of steps", "Times, as for `Discovery.simulate`."),
    "u": ("array, callable or dict", "Inputs, or known fields, as for `Discovery.simulate`."),
    "n_samples": ("int", "Draws from the posterior; 0 for none."),
    "x": ("array", "Data at the same times, shown as dots (of a field: as a picture of its own)."),
    "random_state": ("int or RandomState", "Seed of the draws."),
    "boundary": ("pair", "Values at both ends of a field that is not periodic, as for `Discovery.simulate`."),
    "x0_std": ("array", "Standard deviations of a noisy start: every draw then begins at a point of its own."),
    "series": ("int", "Which series, where there are several."),
    "states": ("pair of int", "Which states; the first and the last by default."),
}

# What makes a new figure: pyplot, which may show it in a window, or nobody but us, where it is for a file.
_MAKER: ContextVar[str] = ContextVar("maker", default="matplotlib.pyplot:figure")
Draw = TypeVar("Draw", bound=Callable[..., Any])
Drawing = tuple[str, str, Callable[[], Any]]  # of a page: its identifier there, a caption, what draws


def picture(**own: tuple[str, str]) -> Callable[[Draw], Draw]:
    """Complete the docstring of a function that draws: its parameters (its own, else those above), what it returns."""

    def completed(draw: Draw) -> Draw:
        told = []
        for name, parameter in inspect.signature(draw).parameters.items():
            kind, meaning = (PARAMETERS | own)[name]
            default = "" if parameter.default is parameter.empty else f", default={parameter.default!r}"
            told.append(f"{name} : {kind}{default.replace('default=None', 'optional')}\n    {meaning}")
        summary, heading, examples = (inspect.getdoc(draw) or "").partition("\n\nExamples\n")
        parameters = "\n\nParameters\n----------\n" + "\n".join(told)
        draw.__doc__ = f"{summary}{parameters}\n\nReturns\n-------\nAxes, or an array of them{heading}{examples}"
        return draw

    return completed


def one_axes(ax: Any, width: float = WIDTH, height: float = HEIGHT) -> Any:
    """Return the Axes given, or a new one."""
    return panels(ax, 1, 1, width=width, height=height)[0, 0]


def panels(axes: Any, rows: int, columns: int, *, width: float, height: float, **sharing: Any) -> Any:
    """Return an array of Axes of shape (rows, columns): those given, or new ones of a size each."""
    if axes is None:
        figure = resolve_name(_MAKER.get())(figsize=(width * columns, height * rows), layout="constrained")
        return figure.subplots(rows, columns, squeeze=False, **sharing)
    given = np.asarray(axes, dtype=object)
    if given.size != rows * columns:
        raise ValueError(f"axes must be {rows * columns} Axes ({rows} × {columns}); got {given.size}.")
    return given.reshape(rows, columns)


def finished(ax: Any, title: str, *, legend: bool = False, right: Any = None, **settings: Any) -> Any:
    """Give an Axes its sentence, labels and a legend above, that of a second axis too; take needless lines away."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set(**settings)
    lines = [textwrap.fill(line, _letters_above(ax), break_long_words=False) for line in title.split("\n")]
    ax.set_title("\n".join(lines), fontsize="medium", loc="left", pad=22 if legend else 6)
    ax.spines[["top", "right"]].set_visible(False)
    if hasattr(ax.xaxis.get_major_formatter(), "set_powerlimits"):  # numbers, and not dates: no label meets the next
        ax.ticklabel_format(axis="x", scilimits=(-3, 4), useMathText=True)
        ax.locator_params(axis="x", nbins=MOST_TICKS)
        ax.xaxis.get_offset_text().set(x=1.02, ha="left")  # a power of ten: on the right of the label, not upon it
    elif ax.get_xscale() == "log" and np.divide(*ax.get_xlim()[::-1]) < 10:  # labels are 0.2 and 0.5, not 2 × 10⁻¹
        ax.xaxis.set(major_locator=LogLocator(subs=(1, 2, 5)), minor_locator=NullLocator(), major_formatter="{x:g}")
    handles, labels = ax.get_legend_handles_labels()
    if right is not None:
        others, other_labels = right.get_legend_handles_labels()
        handles, labels = handles + others, labels + other_labels
        right.spines["top"].set_visible(False)
        ax.yaxis.label.set_color(MODEL)
        right.yaxis.label.set_color(OTHER)
    if legend:
        # On the right: a power of ten that the axis leaves out stands above its left end.
        ax.legend(handles, labels, fontsize="small", ncols=5, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    return ax


def _letters_above(ax: Any) -> int:
    """Return how many letters of a title have room above an Axes, so that none ends beyond its panel."""
    figure, place = ax.figure, ax.get_subplotspec()
    share = ax.get_position().width if place is None else 1 / place.get_gridspec().ncols
    labels = "\n".join(label.get_text() for label in ax.get_yticklabels()).split("\n")
    beside = max(BESIDE, TICK + LETTER * max(map(len, labels)))
    return max(LONGEST_LABEL, int((share * figure.bbox.width / figure.dpi - beside) / LETTER))


def percent(level: float) -> str:
    """Return a probability as it is read: 0.95 is 95 %."""
    return f"{100 * level:g} %"


def draw_band(ax: Any, along: ArrayLike, low: ArrayLike, high: ArrayLike, level: float) -> None:
    """Draw the band that holds a share of what is expected."""
    ax.fill_between(along, low, high, color=BAND, linewidth=0, label=f"{percent(level)} band")


def as_label(name: str, lines: int = 1, letters: int = LONGEST_LABEL) -> str:
    r"""Return a name as a label: on one line or a few, not too long, and never read as a formula.

    Examples
    --------
    >>> print(as_label("cost in $"), as_label("a column with far too long a name"))
    cost in \$ a column with far too…
    """
    shown = textwrap.wrap(printable(name), letters)
    if len(shown) > lines:
        last = shown[lines - 1]
        whole = last if len(last) < letters else last.rpartition(" ")[0]  # words; of one that is too long its beginning
        shown = [*shown[: lines - 1], f"{whole or last[: letters - 1]}…"]
    return "\n".join(shown).replace("$", r"\$")


def as_labels(names: Sequence[str], lines: int = 1, letters: int = LONGEST_LABEL) -> list[str]:
    """Return names as labels, numbered where cutting has made them the same.

    Examples
    --------
    >>> as_labels(["temperature of the first room", "temperature of the first hall", "y"])
    ['temperature of the… (1)', 'temperature of the… (2)', 'y']
    """
    labels = [as_label(name, lines, letters) for name in names]
    own = [[at for at, other in enumerate(labels) if other == label] for label in labels]
    return [
        f"{label} ({same.index(at) + 1})" if len({names[i] for i in same}) > 1 else label
        for at, (label, same) in enumerate(zip(labels, own, strict=True))
    ]


def stacked(labels: Sequence[str]) -> Any:
    """Return places for labels below each other, by how many lines each has: one a line, the first at 0."""
    lines = np.array([label.count("\n") + 1 for label in labels])
    return -(np.cumsum(lines) - (lines + lines[:1].sum()) / 2)


def show_around(ax: Any, axis: str, values: ArrayLike) -> None:
    """End an axis where values do, and some way beyond, whatever else is drawn there: bands may reach very far."""
    low, high = np.nanmin(values), np.nanmax(values)
    room, (begin, end) = ROOM * (high - low), getattr(ax, f"get_{axis}lim")()
    if room > 0:
        getattr(ax, f"set_{axis}lim")(max(begin, low - room), min(end, high + room))


def apart(heights: ArrayLike, least: float) -> Any:
    """Move labels up or down until neighbours are `least` apart, as little as that takes, keeping their order."""
    heights = np.asarray(heights, dtype=float)
    order = np.argsort(heights, kind="stable")
    steps = least * np.arange(heights.size)
    placed = np.empty(heights.size)
    placed[order] = isotonic_regression(heights[order] - steps).x + steps
    return placed


def figure_bytes(draw: Callable[[], Any], kind: str) -> bytes:
    """Return what a function draws as the content of a file; no window opens.

    Parameters
    ----------
    draw : callable
        Draws and returns Axes.
    kind : {"png", "svg", "pdf"}
        Format.

    Returns
    -------
    bytes

    Examples
    --------
    >>> from ardea.show import plot_operating_curves
    >>> figure_bytes(plot_operating_curves, "png")[1:4]
    b'PNG'
    """
    content = io.BytesIO()
    token = _MAKER.set("matplotlib.figure:Figure")
    with warnings.catch_warnings(record=True) as told:
        warnings.filterwarnings("always", "Glyph .* missing from ", UserWarning)
        try:
            axes = draw()
        finally:
            _MAKER.reset(token)
        np.ravel(axes)[0].figure.savefig(content, format=kind, dpi=DPI)
    lacking = [str(one.message).startswith("Glyph ") for one in told]
    for said in (one.message for one, glyph in zip(told, lacking, strict=True) if not glyph):
        warnings.warn(said, stacklevel=2)
    if any(lacking):
        warnings.warn(GLYPHLESS, stacklevel=2)
    return content.getvalue()
