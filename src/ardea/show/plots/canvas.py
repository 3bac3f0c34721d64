"""Figures and axes: their size, their greys, and how they become files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

WIDTH, HEIGHT = 5.2, 3.4
# Black to light; lines differ in dashes and markers as well, so that nothing hangs on the shade alone.
DARK, MIDDLE, SOFT, LIGHT = "0.1", "0.4", "0.6", "0.82"
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
POINT = {"linestyle": "none", "marker": "o", "markersize": 2.6, "color": MIDDLE, "markeredgewidth": 0}
DPI = 200
# Above this many points a scatter is stored as a picture, so that files stay small.
MANY_POINTS = 3000

_OFFSCREEN: ContextVar[bool] = ContextVar("offscreen", default=False)


@contextmanager
def offscreen() -> Iterator[None]:
    """Make figures that belong to no window: for files only, whatever display there is."""
    token = _OFFSCREEN.set(True)
    try:
        yield
    finally:
        _OFFSCREEN.reset(token)


def new_figure(width: float = WIDTH, height: float = HEIGHT) -> Any:
    """Return an empty figure; an ImportError names the extra where matplotlib is missing."""
    try:
        if _OFFSCREEN.get():
            from matplotlib.figure import Figure

            return Figure(figsize=(width, height), layout="constrained")
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'ardea[plots]'.") from error
    return plt.figure(figsize=(width, height), layout="constrained")


def one_axes(ax: Any, width: float = WIDTH, height: float = HEIGHT) -> Any:
    """Return the Axes given, or a new one."""
    return new_figure(width, height).subplots() if ax is None else ax


def panels(axes: Any, rows: int, columns: int, *, width: float, height: float, **sharing: Any) -> Any:
    """Return an array of Axes of shape (rows, columns): those given, or new ones of a size each."""
    if axes is None:
        figure = new_figure(width * columns, height * rows)
        return figure.subplots(rows, columns, squeeze=False, **sharing)
    given = np.asarray(axes, dtype=object)
    if given.size != rows * columns:
        raise ValueError(f"axes must be {rows * columns} Axes ({rows} × {columns}); got {given.size}.")
    return given.reshape(rows, columns)


def quiet(ax: Any) -> None:
    """Leave only the lines of an Axes that carry something."""
    ax.spines[["top", "right"]].set_visible(False)


def as_label(name: str, length: int = 24) -> str:
    r"""Return a name as a label: not too long, and never read as a formula.

    Examples
    --------
    >>> print(as_label("cost in $"), as_label("a column with far too long a name"))
    cost in \$ a column with far too l…
    """
    shown = name if len(name) <= length else name[: length - 1] + "…"
    return shown.replace("$", r"\$")


def figure_of(axes: Any) -> Any:
    """Return the figure that an Axes, or an array of them, belongs to."""
    return np.ravel(np.asarray(axes, dtype=object))[0].figure


def figure_bytes(axes: Any, kind: str) -> bytes:
    """Return the figure of some Axes as the content of a file, and let go of the figure."""
    figure = figure_of(axes)
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=DPI)
    if not _OFFSCREEN.get():
        import matplotlib.pyplot as plt

        plt.close(figure)
    return content.getvalue()


def apart(heights: Any, least: float) -> Any:
    """Move labels up or down until neighbours are `least` apart, keeping their order and their middle.

    Examples
    --------
    >>> apart(np.array([0.0, 0.1, 5.0]), 1.0)
    array([-0.45,  0.55,  5.  ])
    """
    heights = np.asarray(heights, dtype=float)
    order = np.argsort(heights, kind="stable")
    groups: list[list[float]] = []  # of labels that touch: wanted middle, number
    for height in heights[order]:
        groups.append([height, 1])
        while len(groups) > 1 and _bottom(groups[-1], least) - _top(groups[-2], least) < least:
            (b, n), (a, m) = groups.pop(), groups.pop()
            groups.append([(a * m + b * n) / (m + n), m + n])
    placed = [_bottom([middle, n], least) + least * i for middle, n in groups for i in range(int(n))]
    out = np.empty(heights.size)
    out[order] = placed
    return out


def _bottom(group: list[float], least: float) -> float:
    return group[0] - least * (group[1] - 1) / 2


def _top(group: list[float], least: float) -> float:
    return group[0] + least * (group[1] - 1) / 2
