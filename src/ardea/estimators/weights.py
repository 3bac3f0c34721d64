"""Rows that do not count as they should: weights that are no counts, and rows less the means of their groups.

A weight says how many equal rows a row stands for. With h_i the leverage of all w_i rows, e_i/(1 − h_i) does then not
depend on w_i. If w_i says how precise a row is, √w_i e_i/√(1 − h_i) does not. The correlation of normal scores tells
whether the size of either does: over all ways to deal errors to rows its variance is 1/(m − 1).

The weights of a survey say neither: errors do not depend on them, and they are no counts. A coefficient then has the
variance of (Σw)²/Σw² rows (Kish), fewer than m.

Rows less the means of their groups ("within", as for fixed effects) add up to zero in every group: a group of n rows
tells about as much as n − 1.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from ardea.core.problem import EPS, TINY, Array, Index
from ardea.equation import Equation
from ardea.estimators.advice import Advice, DependentRowsWarning, SuspectDataWarning
from ardea.estimators.inputs import CheckedRows, dense
from ardea.estimators.residuals import ALARM, MOST_TAKEN, WORTH_A_WORD, basis_of
from ardea.estimators.sizes import normal_scores

# The fewest rows whose errors are looked at: a convention.
FEWEST_LOOKED_AT = 20
# Conventions: fewest groups whose rows add up to zero, the least share of the rows that they are, so that it is worth a
# word, and how many columns are looked at.
FEWEST_CENTRED, CENTRED_SHARE, FIRST_COLUMNS = 5, 0.05, 4


def centred_advice(rows: CheckedRows, target: int) -> list[Advice]:
    """Return what to tell of rows less the means of their groups: of the groups given, or of neighbouring rows."""
    X, y = rows.X, rows.Y[:, target]
    if not isinstance(X, np.ndarray) or y.size < FEWEST_LOOKED_AT:
        return []
    order = slice(None) if rows.groups is None else np.argsort(rows.groups, kind="stable")
    number = _groups_of_zero(y[order][:, None], np.arange(y.size))
    number = _groups_of_zero(X[order, :FIRST_COLUMNS], number)
    if number.size < max(FEWEST_CENTRED, CENTRED_SHARE * y.size):
        return []
    text = (
        f"y and the columns add up to zero in {number.size} groups of rows, as if the means of groups had been taken "
        f"from them: {y.size} rows then tell about as much as {y.size - number.size}. More false terms than asked for "
        "are kept, and intervals are too narrow. Fit the columns as they were with the labels as groups= and "
        "rows='groups', or with an indicator of every group in always_keep (python -m ardea.explain dependent_rows)."
    )
    return [(text, DependentRowsWarning)]


def _groups_of_zero(columns: Array, ends: Index) -> Index:
    """Return the rows among some up to which all columns add up to zero, but for rounding, and are not zero."""
    rounded = EPS * len(columns) * np.abs(columns).max(axis=0, initial=0.0)
    zero = (np.abs(np.cumsum(columns, axis=0)[ends]) <= rounded).all(axis=1) & (columns[ends] != 0).any(axis=1)
    return ends[zero]


def weights_advice(rows: CheckedRows, equation: Equation, target: int) -> list[Advice]:
    """Return what to tell of weights that are no counts."""
    counted = np.flatnonzero(np.asarray(rows.weight))
    weight, m = np.asarray(rows.weight)[counted], counted.size
    if not np.ptp(weight):
        return []
    total, kish = float(weight.sum()), float(weight.sum()) ** 2 / float(weight @ weight)
    errors, left = _errors(rows, equation, target, counted, weight)
    whole = bool(np.all(weight == np.round(weight)))
    if not whole and m >= FEWEST_LOOKED_AT:
        # As Kish's number, by the errors: Σ w²e²x² is the variance of Σ wex, and with counts Σ we² Σ wx²/Σ w.
        shown = total * float(weight @ errors**2) / max(float(weight**2 @ errors**2), TINY)
        grows = _chance(-np.abs(errors) * np.sqrt(weight / left), weight) < ALARM
        if grows and max(kish, shown) < WORTH_A_WORD * total:
            text = (
                "Errors are not smaller where weights are larger, so that the weights do not say how precise a row is: "
                f"as those of a survey, {m} rows of such weights tell about as much as {kish:.0f} of equal ones, but "
                f"the weights add up to {total:.4g}. More false terms than asked for are kept, and intervals are too "
                "narrow. Take w * w.sum() / (w**2).sum(), or leave the weights out "
                "(python -m ardea.explain suspect_data)."
            )
            return [(text, SuspectDataWarning)]
    if min(abs(total / m - 1), abs(total / kish - 1)) < EPS * m:  # scaled as they should be
        return []
    falls = m >= FEWEST_LOOKED_AT and _chance(np.abs(errors) / left, weight) < ALARM
    if not (falls or (total * WORTH_A_WORD > m and not whole)):
        return []
    why = "errors are smaller where weights are larger, as those of means of several readings are: " * falls
    text = (
        f"The weights of {m} rows add up to {total:.4g}, and {why}a weight says how many equal rows a row stands for. "
        "If yours say how precise a row is (readings behind a mean, 1/σ²), divide them by their mean; if they say how "
        "many people it stands for, take w * w.sum() / (w**2).sum(): else false terms are kept and intervals are too "
        "narrow (python -m ardea.explain suspect_data)."
    )
    return [(text, SuspectDataWarning)]


def _errors(rows: CheckedRows, equation: Equation, target: int, counted: Index, weight: Array) -> tuple[Array, Array]:
    """Return the errors of the rows that count, in units of the largest, and 1 − h."""
    root, kept = np.sqrt(weight), np.asarray(equation.kept.support, dtype=np.intp)
    columns = dense(rows.X[:, kept])[counted]
    errors = rows.Y[counted, target] - columns @ equation.coefficients - (equation.intercept or 0.0)
    errors /= max(float(np.abs(errors).max()), TINY)
    columns = columns * root[:, None]
    basis = basis_of(root, columns / np.maximum(np.abs(columns).max(axis=0, initial=0.0), TINY))
    return errors, np.maximum(1 - np.einsum("ij,ij->i", basis, basis), 1 - MOST_TAKEN)


def _chance(sizes: Array, weight: Array) -> float:
    """Return the chance of sizes that fall as much with the weight."""
    if not np.ptp(sizes):
        return 1.0
    scores = normal_scores(sizes), normal_scores(weight)
    return float(special.ndtr(np.corrcoef(*scores)[0, 1] * np.sqrt(weight.size - 1)))
