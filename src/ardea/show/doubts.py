"""Doubts about a model, in plain sentences: what the fit warned of, and what its numbers and residuals say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from ardea.core.problem import Array
from ardea.equation import CLOSE, Equation
from ardea.show.fits import autocorrelation

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


def of_model(model: Any, equations: Sequence[Equation], level: float, notes: Sequence[str] = ()) -> list[str]:
    """Return what the fit warned of, each warning once, then doubts that the numbers give reason for."""
    warned = [*notes, *getattr(model, "warnings_", ())]
    told = list(dict.fromkeys(" ".join(note.split()) for note in warned))
    for equation in equations:
        # A warning about the choice between two models names the equation.
        settled = not any(equation.left.text in note for note in told)
        told += of_equation(equation, level, with_rivals=settled)
    return told


def of_equation(equation: Equation, level: float, *, with_rivals: bool = True) -> list[str]:
    """Return doubts that the numbers of an equation give reason for.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> rng = np.random.default_rng(0)
    >>> model = SparseARD(false_terms=1e-9).fit(rng.normal(size=(50, 3)), rng.normal(size=50))
    >>> of_equation(model.equations_[0], 0.95)
    ['No candidate term explains y.']
    """
    left = equation.left.text
    if not equation.terms:
        return [f"No candidate term explains {left}."]
    told = []
    low, high = equation.interval(level).T
    unsure = [name for name, sure in zip(equation.terms, (low > 0) | (high < 0), strict=True) if not sure]
    if unsure:
        told.append(f"Zero lies inside the interval of {listed(unsure)}: the data do not tell the sign.")
    for first, second in _entangled(equation):
        told.append(
            f"The estimates of {first} and {second} depend strongly on each other: their sum is known better than "
            "either, and another sample of the data might keep only one of them."
        )
    rivals = equation.close_rivals() if with_rivals else []
    if rivals:
        told.append(
            f"Another model of {left} fits almost as well: {rivals[0].compared}. A difference of {CLOSE:g} or more "
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


def of_residuals(residual: Array, left: str) -> list[str]:
    """Return doubts that residuals, in units of their standard deviation and in row order, give reason for."""
    m, told = residual.size, of_far_rows(residual, left)
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


def of_far_rows(residual: Array, left: str) -> list[str]:
    """Return how many residuals, in units of their standard deviation, are too large to be noise."""
    far = int(np.sum(np.abs(residual) > FAR_OUT))
    rows = "1 row lies" if far == 1 else f"{far} rows lie"
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
