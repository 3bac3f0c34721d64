"""Rows that lie far from all others and that these contradict: a value typed in another unit, a point that slipped.

Such a row decides the fit and leaves no residual. Heavy tails bring rows as far out, but there y follows the same law.
So terms are chosen and fitted without the far rows R. If these follow the law, the errors e of their predictions have
the covariance σ²K, K = I + A_R(AᵀA)⁻¹A_Rᵀ with the columns A of the terms, and eᵀK⁻¹e/(kσ²) is Fisher's F. If a single
value is beyond those of all others, y must moreover be what these lead to expect at a value among theirs: chance, and
errors that grow, hit so narrow a range in few cases.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy import special

from ardea.core.compression import ranges_of
from ardea.core.loop import STATUS_ADVICE
from ardea.core.problem import EPS, TINY, Array, Index
from ardea.equation import Equation
from ardea.estimators.advice import Advice, SuspectDataWarning
from ardea.estimators.inputs import CheckedRows, RowKind
from ardea.estimators.residuals import ALARM, FEWEST_LEFT, tail
from ardea.methods.task import Wish, tasks_of
from ardea.methods.task import sparse as sparse_ard
from ardea.names import printable
from ardea.rates import DEFAULT_FALSE_TERMS

# The limits of a fit without far rows: the defaults of estimators.
LIMITS = (None, 500, 1e-6)
# Share of the columns in which a row must be far from all others to be called so, unless in one: a convention.
WHOLE = 0.25
# Deviations by which a value that y leads to expect may lie beyond all others: a convention.
SLACK = 3.0


def wild_advice(
    rows: CheckedRows, far: Index, kind: RowKind, equation: Equation, target: int
) -> tuple[list[Advice], list[Advice]]:
    """Return what to tell of values that look like slips, and of rows far out that all others contradict."""
    enough = len(rows.Y) - far.size - len(equation.support) >= FEWEST_LEFT
    law = _law_without(rows, far, equation, target) if enough else None
    if law is None:
        return [], []
    low, high = ranges_of(np.delete(rows.X, far, axis=0))
    slips, apart = list[Advice](), list[Advice]()
    for row, error in zip(far.tolist(), law.errors.tolist(), strict=True):
        x = rows.X[row]
        away = np.maximum(x - high, low - x) / np.where(high > low, high - low, np.inf)
        beyond, j = int((away > 1).sum()), int(np.argmax(away))
        name = printable(equation.vocabulary.names[j])
        said = f"{name} is {x[j]:.5g}, in the other rows {low[j]:.4g} to {high[j]:.4g}"
        if beyond == 1 and j in law.terms:
            slope = float(law.coefficients[law.terms.index(j)])
            expected, slack = x[j] + error / slope, SLACK * law.noise / abs(slope)
            if low[j] - slack <= expected <= high[j] + slack:
                slips.append((_told_of_cell(row, said, expected), SuspectDataWarning))
        elif beyond > max(1.0, WHOLE * x.size) and kind != "unequal":
            apart.append((_told_of_row(row, said, beyond, x.size), SuspectDataWarning))
    return slips, apart


def _told_of_cell(row: int, said: str, expected: float) -> str:
    return (
        f"Row {row} looks like a slip: {said}, and y is what these lead to expect at about "
        f"{expected:.3g}. A point may have slipped, or the value is in another unit: correct it. Leave it out of X and "
        "y if you cannot. If it is right, the effect of the column is no straight line: take its logarithm "
        "(python -m ardea.explain suspect_data)."
    )


def _told_of_row(row: int, said: str, beyond: int, columns: int) -> str:
    return (
        f"Row {row} decides the fit, and contradicts all others: it lies far from them in {beyond} of {columns} "
        f"columns ({said}), and y is not what they lead to expect there. If it is in another unit, correct it. Leave "
        "it out of X and y if you cannot, or use rows='unequal', in which far rows count less "
        "(python -m ardea.explain suspect_data)."
    )


class Law(NamedTuple):
    """What the other rows say of a few."""

    terms: list[int]
    coefficients: Array
    noise: float
    errors: Array  # of the few, as the others predict them


def _law_without(rows: CheckedRows, far: Index, equation: Equation, target: int) -> Law | None:
    """Return what all rows but a few say of these; None where these do not contradict the others."""
    rest = np.delete(np.arange(len(rows.Y)), far)
    part = rows.subset(rest)
    part = replace(part, Y=part.Y[:, [target]], ranges=ranges_of(part.X))
    keep, intercept = equation.kept.flat.kept.tolist(), equation.intercept is not None
    problems, coordinates = part.pose(intercept=intercept, keep=keep)
    (task,) = tasks_of(problems, coordinates, LIMITS)
    fit = sparse_ard(task, Wish(false_terms=DEFAULT_FALSE_TERMS))
    terms = sorted({*keep, *fit.posterior.active.tolist()})
    A, y = np.column_stack([rows.X[:, terms], np.ones((len(rows.Y), int(intercept)))]), rows.Y[:, target]
    free, unit = rest.size - A.shape[1], np.maximum(np.abs(A).max(axis=0), TINY)
    if fit.status in STATUS_ADVICE or free < FEWEST_LEFT:
        return None
    inverse = np.linalg.pinv(A[rest] / unit)
    solved = inverse @ y[rest]
    errors = y - A / unit @ solved
    left, few = errors[rest], A[far] / unit @ inverse
    square = max(float(left @ left) / free, EPS * float(np.square(y).max()), TINY)
    F = float(errors[far] @ np.linalg.solve(np.eye(far.size) + few @ few.T, errors[far])) / (far.size * square)
    kurtosis = max(3.0, rest.size * float((left**4).sum()) / max(float(left @ left) ** 2, TINY))
    heavy = tail((F - 1) * sqrt(far.size / (kurtosis - 1)), sqrt(8 / far.size))
    if max(float(special.fdtrc(far.size, free, F)), heavy) > ALARM:
        return None
    return Law(terms, solved / unit, sqrt(square), errors[far])
