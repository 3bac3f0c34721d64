"""Equations that were found, and how they are written: text, LaTeX, SymPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Array = NDArray[np.float64]

# Rivals whose criterion is this close leave the choice open (odds below 20 to 1).
CLOSE = 6.0
# So many significant digits of the standard error are shown; a coefficient without error shows this many of its own.
DIGITS_OF_ERROR, DIGITS = 2, 5


@dataclass(frozen=True)
class Rival:
    """Another model of the same equation, and by how much its criterion is larger.

    A close one is fitted with a whitening of its own, as the chosen model is. If it is better even then (`excess` below
    zero), the search has not come to rest.
    """

    terms: tuple[str, ...]
    excess: float

    @property
    def compared(self) -> str:
        """Where it stands: "4.2 behind", or "3.0 ahead"."""
        rounded = round(self.excess, 1)
        return f"{-rounded:.1f} ahead" if rounded < 0 else f"{abs(rounded):.1f} behind"


@dataclass(frozen=True, eq=False)
class FoundEquation:
    """One equation of the model.

    Attributes
    ----------
    name : str
        The state or field on the left.
    terms : tuple of str
        Names of the terms found.
    support : tuple of int
        Their places in the library.
    coefficients, std : ndarray of shape (k,)
        Estimates and standard errors.
    covariance : ndarray of shape (k, k)
        Of the coefficients.
    degrees : float
        Degrees of freedom, N − k.
    noise : float
        Noise of the state as the equation sees it, in its units.
    criterion : float
        EBIC2 without ln|C|.
    rivals : tuple of Rival
        The next best models, closest first.
    equivalents : tuple of tuples of str
        Models without one of these terms that explain the data as well: the data do not decide between them.
    """

    name: str
    terms: tuple[str, ...]
    support: tuple[int, ...]
    coefficients: Array
    covariance: Array
    degrees: float
    noise: float
    criterion: float
    rivals: tuple[Rival, ...]
    equivalents: tuple[tuple[str, ...], ...] = ()

    @property
    def std(self) -> Array:
        """Standard errors of the coefficients."""
        return np.sqrt(self.covariance.diagonal())

    def half_widths(self, level: float = 0.95) -> Array:
        """Return half the width of the intervals at a level (Student's t)."""
        return self.std * float(student.ppf(0.5 + level / 2, max(self.degrees, 1.0)))

    def right_hand_side(self, precision: int | None = None) -> str:
        """Return the terms as text; coefficients to two digits of their standard error, or `precision` digits.

        Examples
        --------
        >>> import numpy as np
        >>> values, covariance = np.array([-9.98812, 1.5]), np.diag([1e-4, 1e-6])
        >>> found = FoundEquation("x", ("x", "y"), (1, 2), values, covariance, 90, 0.1, 0, ())
        >>> found.right_hand_side()
        '-9.988 x + 1.5000 y'
        """
        return _sum(
            [(value, self.number(i, precision), term) for i, (value, term) in enumerate(self._pairs())], times=" "
        )

    def with_intervals(self, level: float = 0.95) -> str:
        """Return the terms as text with intervals: `(-9.988 ± 0.020) x + (1.5000 ± 0.0020) y`."""
        widths = self.half_widths(level)
        parts = []
        for i, (value, term) in enumerate(self._pairs()):
            places = _places(widths[i], DIGITS_OF_ERROR)
            number = (
                f"({_fixed(value, places)} ± {_fixed(widths[i], places)})"
                if places is not None
                else f"{value:.{DIGITS}g}"
            )
            parts.append(number if term == "1" else f"{number} {term}")
        return " + ".join(parts) or "0"

    def number(self, i: int, precision: int | None = None) -> str:
        """Return the size of a coefficient as text."""
        size = abs(float(self.coefficients[i]))
        if precision is not None:
            return f"{size:.{precision}f}"
        places = _places(float(self.std[i]), DIGITS_OF_ERROR)
        return f"{size:.{DIGITS}g}" if places is None else _fixed(size, places)

    def close_rivals(self, within: float = CLOSE) -> list[Rival]:
        """Return the models that the data do not clearly rule out."""
        return [rival for rival in self.rivals if rival.excess < within]

    def _pairs(self) -> list[tuple[float, str]]:
        return list(zip(self.coefficients.tolist(), self.terms, strict=True))


def latex_equation(left: str, equation: FoundEquation, latex_terms: Sequence[str]) -> str:
    """Return the equation in LaTeX, given the LaTeX names of all terms of the library."""
    parts = [
        (float(value), equation.number(i), "1" if equation.terms[i] == "1" else latex_terms[j])
        for i, (value, j) in enumerate(zip(equation.coefficients, equation.support, strict=True))
    ]
    return f"{left} = {_sum(parts, times=chr(92) + ', ')}"


def summary_line(equation: FoundEquation, left: str, level: float) -> list[str]:
    """Return the lines that `print` shows of one equation: with intervals, and with close rivals."""
    lines = [f"{left} = {equation.with_intervals(level)}"]
    for terms in equation.equivalents:
        lines.append(f"    the data do not tell it from: {', '.join(terms)}")
    rivals = equation.close_rivals()
    if rivals:
        listed = "; ".join(f"{', '.join(rival.terms) or 'no term'} ({rival.compared})" for rival in rivals[:3])
        open_by = (
            "the search has not come to rest" if rivals[0].compared.endswith("ahead") else "not settled by the data"
        )
        lines.append(f"    {open_by}; by the criterion (clear from {CLOSE:g} on): {listed}")
    return lines


def sympy_sum(coefficients: Array, factors: Sequence[Any]) -> Any:
    """Return Σ coefficient · factor, SymPy floats times SymPy factors."""
    total: Any = 0
    for value, factor in zip(coefficients.tolist(), factors, strict=True):
        total = total + value * factor
    return total


def _sum(parts: Sequence[tuple[float, str, str]], *, times: str) -> str:
    """Join signed numbers and terms: `-1.5 x + 2.0 y - 3.0`."""
    text = ""
    for value, size, term in parts:
        sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
        text += sign + (size if term == "1" else f"{size}{times}{term}")
    return text or "0"


def _places(error: float, digits: int) -> int | None:
    """Return how many decimal places show so many digits of an error (negative: rounded to tens)."""
    if not np.isfinite(error) or error <= 0:
        return None
    return digits - 1 - int(np.floor(np.log10(error)))


def _fixed(value: float, places: int) -> str:
    if places > 9 or (value != 0 and abs(value) >= 1e7):
        return f"{value:.{max(DIGITS, places + int(np.floor(np.log10(abs(value)))) + 1) if value else DIGITS}g}"
    return f"{round(value, places):.{max(places, 0)}f}"
