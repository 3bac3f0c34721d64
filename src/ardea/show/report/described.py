"""A fitted model as a few facts: what the page, the command line and the pictures all show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ardea.dynamics.discovery import Discovery
from ardea.estimators.base import BaseARD
from ardea.estimators.search import ARDSearch


@dataclass(frozen=True)
class Line:
    """One term: its name, estimate, standard error and interval."""

    name: str
    coef: float
    std: float
    low: float
    high: float

    def shown(self) -> list[str]:
        """Return coefficient, standard error and interval as text, to two digits of the standard error.

        Examples
        --------
        >>> Line("x", -1.00034, 0.0025, -1.0052, -0.9954).shown()
        ['−1.0003', '0.0025', '−1.0052', '−0.9954']
        """
        return [rounded(value, self.std) for value in (self.coef, self.std, self.low, self.high)]

    def plus_minus(self) -> str:
        """Return coefficient ± half the interval as text.

        Examples
        --------
        >>> Line("x", -235.8, 60.5, -354.6, -116.9).plus_minus()
        '−240 ± 120'
        """
        half = (self.high - self.low) / 2
        return f"{rounded(self.coef, half)} ± {rounded(half, half)}"


@dataclass(frozen=True)
class Sum:
    """One equation: what stands on the left, and the terms of the right.

    Attributes
    ----------
    left : str
        Name of the target, or the derivative of a state.
    intercept : float or None
        The constant, None where the model has none of its own.
    lines : tuple of Line
        The terms kept.
    noise : float
        Standard deviation of the noise.
    n_candidates : int
        Columns that there were to choose from.
    """

    left: str
    intercept: float | None
    lines: tuple[Line, ...]
    noise: float
    n_candidates: int

    def formula(self) -> str:
        """Return the equation as text, with four digits.

        Examples
        --------
        >>> Sum("y", 1.5, (Line("age", -0.25, 0.1, -0.45, -0.05),), 1.0, 9).formula()
        'y = 1.5 − 0.25 age'
        """
        text = "" if self.intercept is None else signed(self.intercept)
        for line in self.lines:
            product = f"{abs(line.coef):.4g}" + ("" if line.name == "1" else f" {line.name}")
            minus = line.coef < 0
            text += (" − " if minus else " + ") + product if text else ("−" if minus else "") + product
        return f"{self.left} = {text or '0'}"


def signed(value: float, digits: int = 4) -> str:
    """Return a number as text with a true minus sign."""
    return f"{value:.{digits}g}".replace("-", "−")


def rounded(value: float, error: float) -> str:
    """Return a number as text, to two digits of its error; four digits where that is zero or far from it in size."""
    places = 1 - int(np.floor(np.log10(error))) if 0 < error < np.inf else None
    if places is None or not -6 < places < 9 or abs(value) >= 1e7:
        return signed(value)
    return f"{round(value, places):.{max(places, 0)}f}".replace("-", "−")


def estimator_of(model: Any) -> BaseARD:
    """Return the fitted estimator: the model itself, or the one that a search chose."""
    check_is_fitted(model)
    chosen = model.best_estimator_ if isinstance(model, ARDSearch) else model
    if not isinstance(chosen, BaseARD):
        raise TypeError(f"A {type(model).__name__} is none of ardea's estimators, nor an ARDSearch.")
    return chosen


def false_terms_told(false_terms: float, columns: int) -> str:
    """Return what the number of false terms means, in a sentence.

    Examples
    --------
    >>> false_terms_told(0.3, 12)
    'If none of the 12 columns mattered, 0.3 of them would be kept on average (1 in 40 each).'
    """
    if columns == 1:
        return f"If the column did not matter, it would be kept in 1 of {1 / false_terms:.3g} tables."
    each = f"1 in {columns / false_terms:.3g} each"
    return f"If none of the {columns} columns mattered, {false_terms:g} of them would be kept on average ({each})."


def column_names(model: BaseARD) -> list[str]:
    """Return the names of the columns, x0, x1, … where they have none."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def described(model: Any, level: float = 0.95, targets: Sequence[str] | None = None) -> list[Sum]:
    """Return every equation of a fitted model, with the intervals to report.

    Parameters
    ----------
    model : estimator of ardea, ARDSearch or Discovery
        Fitted.
    level : float, default=0.95
        Probability inside the intervals.
    targets : list of str, optional
        Names of the targets of an estimator; y, or y0, y1, … by default.

    Returns
    -------
    list of Sum
        Intervals of estimators are those of least squares on the kept columns, or of the posterior where there are
        too few rows for that.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> model = SparseARD().fit(X, 1 + 2 * X[:, 3] + 0.01 * X[:, 0])
    >>> [line.name for line in described(model)[0].lines]
    ['x0', 'x3']
    """
    if isinstance(model, Discovery):
        return _equations(model, level)
    fitted = estimator_of(model)
    if targets is None:
        targets = [one.name for one in fitted.equations_]
    sums = []
    for name, one in zip(targets, fitted.equations_, strict=True):
        rows = zip(one.terms, one.coefficients.tolist(), one.std.tolist(), *one.interval(level).T.tolist(), strict=True)
        sums.append(Sum(name, one.intercept, tuple(Line(*row) for row in rows), one.noise, one.n_candidates))
    return sums


def _equations(model: Discovery, level: float) -> list[Sum]:
    check_is_fitted(model)
    sums = []
    for equation in model.equations_:
        half = equation.posterior.half_widths(level)
        rows = zip(equation.terms, equation.coefficients.tolist(), equation.std.tolist(), half.tolist(), strict=True)
        lines = tuple(Line(name, coef, std, coef - width, coef + width) for name, coef, std, width in rows)
        left = equation.left.text
        sums.append(Sum(left, None, lines, float(equation.noise), model.coef_.shape[1]))
    return sums
