"""Figures and axes: their size, their colours, and how they become files."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

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
# Longer names are cut in labels; a convention.
LONGEST_LABEL = 24

_OFFSCREEN: ContextVar[bool] = ContextVar("offscreen", default=False)


def _new_figure(width: float, height: float) -> Any:
    """Return an empty figure: of pyplot, or of no window where it is for a file."""
    if _OFFSCREEN.get():
        from matplotlib.figure import Figure

        return Figure(figsize=(width, height), layout="constrained")
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


def one_axes(ax: Any, width: float = WIDTH, height: float = HEIGHT) -> Any:
    """Return the Axes given, or a new one."""
    return _new_figure(width, height).subplots() if ax is None else ax


def panels(axes: Any, rows: int, columns: int, *, width: float, height: float, **sharing: Any) -> Any:
    """Return an array of Axes of shape (rows, columns): those given, or new ones of a size each."""
    if axes is None:
        figure = _new_figure(width * columns, height * rows)
        return figure.subplots(rows, columns, squeeze=False, **sharing)
    given = np.asarray(axes, dtype=object)
    if given.size != rows * columns:
        raise ValueError(f"axes must be {rows * columns} Axes ({rows} × {columns}); got {given.size}.")
    return given.reshape(rows, columns)


def finished(ax: Any, title: str, *, legend: bool = False, right: Any = None, **settings: Any) -> Any:
    """Give an Axes its sentence, labels and a legend above, that of a second axis too; take needless lines away."""
    ax.set(**settings)
    ax.set_title(title, fontsize="medium", loc="left", pad=22 if legend else 6)
    ax.spines[["top", "right"]].set_visible(False)
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


def as_label(name: str, length: int = LONGEST_LABEL) -> str:
    r"""Return a name as a label: on one line, not too long, and never read as a formula.

    Examples
    --------
    >>> print(as_label("cost in $"), as_label("a column with far too long a name"))
    cost in \$ a column with far too l…
    """
    name = " ".join(printable(name).split())
    shown = name if len(name) <= length else name[: length - 1] + "…"
    return shown.replace("$", r"\$")


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
    token = _OFFSCREEN.set(True)
    try:
        axes = draw()
    finally:
        _OFFSCREEN.reset(token)
    np.ravel(axes)[0].figure.savefig(content, format=kind, dpi=DPI)
    return content.getvalue()
