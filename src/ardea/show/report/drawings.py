"""Matplotlib figures as SVG inside the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ardea.show.report.page import escaped, figure

NO_DRAWINGS = "<p>Figures are missing: they need matplotlib (pip install 'ardea[plots]').</p>"


def can_draw() -> bool:
    """Whether matplotlib can be used."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def drawing(draw: Callable[[], Any], name: str, alternative: str, caption: str) -> str:
    """Return a figure of the page.

    Parameters
    ----------
    draw : callable
        Draws and returns Axes.
    name : str
        Unique on the page: identifiers in the SVG begin with it.
    alternative : str
        What the picture shows, for those who do not see it.
    caption : str
        Shown below.
    """
    import matplotlib

    from ardea.show import plots

    # Text stays text; the same figure gives the same bytes; no background, so that dark mode can invert the greys.
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": name, "savefig.transparent": True}
    settings["font.family"] = "sans-serif"
    with matplotlib.rc_context(settings), plots.offscreen():
        svg = plots.figure_bytes(draw(), "svg").decode()
    return figure(_inlined(svg, name, alternative), caption)


def _inlined(svg: str, name: str, alternative: str) -> str:
    """Return the svg element alone, with a text alternative and identifiers of its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(xlink:href|href)="#([^"]*)"', rf'\1="#{name}-\2"', svg)
    svg = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", svg)
    opening = f'<svg class="drawn" role="img" aria-label="{escaped(alternative)}"'
    return svg.replace("<svg", opening, 1)
