"""What pages tell of a model: doubts in plain sentences, rows of tables, drawings, and the templates that hold them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from ardea.core.problem import Array
from ardea.equation import CLOSE, WEAK, Equation
from ardea.names import counted, printable, rounded, sized
from ardea.show.answers import OFTEN_SMALLER
from ardea.show.canvas import figure_bytes
from ardea.show.fits import autocorrelation

if TYPE_CHECKING:
    from jinja2 import Environment

# A convention: longer names are cut in tables.
LONGEST_NAME = 60
SMALLER = f"{OFTEN_SMALLER[0].upper()}{OFTEN_SMALLER[1:]}."
# Half the width of the picture of an interval in `pieces.html`, and how far its ends may reach from the middle.
MIDDLE, REACH = 48, 44
# A convention: estimates whose errors correlate this much share all but a tenth of their variance.
NEARLY_SAME = 0.95
# A convention: a Gaussian lies further out once in two million rows.
FAR_OUT = 5.0
# Derived: a standard normal exceeds it, up or down, once in a thousand.
RARE = 3.3
# Derived: with fewer rows the standard error of a correlation is above 0.2, and tests of shape mean nothing.
FEWEST_ROWS = 20
# A convention: lists longer than this are cut.
MOST_NAMED = 5


def doubts_of_model(model: Any, equations: Sequence[Equation], level: float, notes: Sequence[str] = ()) -> list[str]:
    """Return what the fit warned of, each warning once, then doubts that the numbers give reason for."""
    told = unique([*notes, *getattr(model, "warnings_", ())])
    for equation in equations:
        # A warning about the choice between two models names the equation.
        settled = not any(equation.left.text in note for note in told)
        told += doubts_of_equation(equation, level, with_rivals=settled)
    return told


def doubts_of_equation(equation: Equation, level: float, *, with_rivals: bool = True) -> list[str]:
    """Return doubts that the numbers of an equation give reason for."""
    left = equation.left.text
    if not equation.terms:
        return [f"No candidate term explains {left}."]
    told = []
    low, high = equation.interval(level).T
    unsure = [name for name, sure in zip(equation.terms, (low > 0) | (high < 0), strict=True) if not sure]
    if unsure:
        told.append(f"Zero lies inside the interval of {listed(unsure)}: the data do not tell the sign.")
    if equation.weak_terms and equation.left.kind == "value":
        told.append(f"Fewer than {WEAK:g} standard deviations from zero: {listed(equation.weak_terms)}. {SMALLER}")
    told += [
        f"The estimates of {first} and {second} depend strongly on each other: their sum is known better than either, "
        "and another sample of the data might keep only one of them."
        for first, second in _entangled(equation)
    ]
    rivals = equation.close_rivals() if with_rivals else []
    if rivals:
        told.append(
            f"Another model of {left} fits about as well: {rivals[0].compared}. A difference of {CLOSE:g} or more "
            "would be clear; longer or cleaner data would decide."
        )
    return told


def _entangled(equation: Equation) -> list[tuple[str, str]]:
    """Return pairs of columns whose estimates can hardly be told apart; terms of motion correlate anyway."""
    if equation.left.kind != "value":
        return []
    deviation = np.where(equation.std > 0, equation.std, np.inf)
    correlation = np.abs(equation.covariance / np.outer(deviation, deviation))
    pairs = np.argwhere(np.triu(correlation > NEARLY_SAME, 1))
    return [(equation.terms[a], equation.terms[b]) for a, b in pairs[:MOST_NAMED]]


def doubts_of_residuals(residual: Array, left: str) -> list[str]:
    """Return doubts that residuals, in units of their standard deviation and in row order, give reason for."""
    m, told = residual.size, far_rows(residual, left)
    if m < FEWEST_ROWS:
        return told
    lagged = autocorrelation(residual, 1)
    if abs(lagged) > RARE / np.sqrt(m):
        told.append(
            f"Neighbouring rows of {left} depend on each other: residuals one row apart correlate by {lagged:.2f}. A "
            "term may be missing, and intervals, which assume independent rows, are too "
            f"{'narrow' if lagged > 0 else 'wide'}."
        )
    skew, tails = float(stats.skew(residual)), float(stats.kurtosis(residual))
    if abs(skew) > RARE * np.sqrt(6 / m) or abs(tails) > RARE * np.sqrt(24 / m):
        told.append(
            f"The noise of {left} is not Gaussian. The choice of terms is little affected; predictions may lie outside "
            "their band more or less often than it says."
        )
    return told


def far_rows(residual: Array, left: str) -> list[str]:
    """Return how many residuals, in units of their standard deviation, are too large to be noise."""
    far = int(np.sum(np.abs(residual) > FAR_OUT))
    rows = counted(far, "row lies", "rows lie")
    off = f"{rows} more than {FAR_OUT:g} standard deviations from the model of {left}"
    return [f"{off}: look for wrong entries or rare events."] if far else []


def listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return names in a row, the first few and how many more.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def unique(messages: Iterable[str]) -> list[str]:
    """Return every message once, on one line."""
    return list(dict.fromkeys(" ".join(message.split()) for message in messages))


class Row(NamedTuple):
    """One term of a table as text; `at` is where its interval begins, has its middle and ends in the picture."""

    name: str
    coef: str
    std: str
    low: str = ""
    high: str = ""
    at: tuple[str, ...] = ()


def term_row(name: str, coef: float, std: float, low: float, high: float) -> Row:
    """Return a term as text, to two digits of its standard deviation."""
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
    environment.filters |= {
        "cut": lambda name: name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…",
        "kept": lambda names, support: listed([names[j] for j in np.flatnonzero(support)]),
        "largest": np.max,
        "sized": sized,
    }
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
    drawn = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", drawn)
    drawn = re.sub(r'<a xlink:href="([^"]*)" target="_blank">', r'<a href="\1">', drawn)  # within the page
    return drawn.replace("<svg", f'<svg role="img" aria-label="{escape(printable(alternative))}"', 1)
