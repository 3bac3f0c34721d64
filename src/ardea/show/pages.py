"""From facts to HTML: templates that escape whatever comes from the user, rows of tables, and drawings as SVG."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea.equation import Equation
from ardea.names import printable, rounded
from ardea.show.canvas import figure_bytes

if TYPE_CHECKING:
    from jinja2 import Environment

# A convention: longer names are cut in tables.
LONGEST_NAME = 60
# Half the width of the picture of an interval in `pieces.html`, and how far its ends may reach from the middle.
MIDDLE, REACH = 48, 44


@dataclass(frozen=True)
class Row:
    """One term of a table as text; `at` is where its interval begins, has its middle and ends in the picture."""

    name: str
    coef: str
    std: str
    low: str = ""
    high: str = ""
    at: tuple[str, ...] = ()


def term_row(name: str, coef: float, std: float, low: float, high: float) -> Row:
    """Return a term as text, to two digits of its standard deviation.

    Examples
    --------
    >>> term_row("x", -1.00034, 0.0025, -1.0052, -0.9954).low
    '-1.0052'
    """
    ends = np.array([low, coef, high])
    size = np.abs(ends).max()
    at = MIDDLE + REACH * (ends / size if size > 0 else ends) if np.isfinite(size) else ()
    shown = [rounded(value, std) for value in (coef, std, low, high)]
    return Row(name, shown[0], shown[1], shown[2], shown[3], tuple(f"{place:.1f}" for place in at))


def term_rows(equation: Equation, level: float) -> list[Row]:
    """Return all terms of an equation, and its intercept where there is one."""
    rows = [term_row(*row) for row in zip(*equation.table(level).values(), strict=True)]
    if equation.intercept is not None:
        error = equation.intercept_std or 0.0
        rows.append(Row("constant", rounded(equation.intercept, error), rounded(error, error)))
    return rows


def percent(level: float) -> str:
    """Return a probability as it is read: 0.95 is 95 %."""
    return f"{100 * level:g} %"


def render(template: str, **facts: Any) -> str:
    """Return a template filled with facts: escaped unless it calls them safe, control characters shown as text."""
    return _environment().get_template(template).render(**facts)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ardea.show"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cut"] = lambda name: name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return environment


def _shown(value: Any) -> Any:
    """Leave markup and macros of ours as they are; show control characters of anything else as text."""
    return value if hasattr(value, "__html__") else "\n".join(map(printable, str(value).split("\n")))


def svg(draw: Callable[[], Any], name: str, alternative: str) -> str:
    """Return what a function draws as an svg element; `name` is unique on the page, `alternative` says what is seen."""
    import matplotlib

    # Text stays text; the same figure gives the same bytes; no background, so that dark pages can invert it.
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": name, "savefig.transparent": True}
    with matplotlib.rc_context(settings | {"font.family": "sans-serif"}):
        drawn = figure_bytes(draw, "svg").decode()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    drawn = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', drawn)
    drawn = re.sub(r'(xlink:href|href)="#([^"]*)"', rf'\1="#{name}-\2"', drawn)
    drawn = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", drawn)
    return drawn.replace("<svg", f'<svg role="img" aria-label="{escape(printable(alternative))}"', 1)
