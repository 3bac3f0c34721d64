"""Rows that do not count as they should: those of weights that are no counts, and copies.

A weight says how many equal rows a row stands for. With h_i the leverage of all w_i rows, e_i/(1 − h_i) does then not
depend on w_i. If w_i says how precise a row is, √w_i e_i/√(1 − h_i) does not. The correlation of normal scores tells
whether the size of either does: over all ways to deal errors to rows its variance is 1/(m − 1).

The weights of a survey say neither: errors do not depend on them, and they are no counts. A coefficient then has the
variance of (Σw)²/Σw² rows (Kish), fewer than m. Weights that add up to fewer than the rows that differ count none.

*Copies.* A row that is there w times has one error, and brings v = Σ w²/Σ w over all rows. Two independent rows may be
equal, too, where columns and y have few values. They are taken for copies if chance does not do that: if pairs of rows
that agree in y nearly always agree in all columns; if pairs that agree in all columns nearly always agree in y,
although y differs in other pairs, and chance would not make them agree; or if every row is there twice, or thrice, or a
multiple of that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from ardea.core.compression import BLOCK_BYTES, digests, odd_numbers
from ardea.core.problem import EPS, TINY, Array, Index
from ardea.equation import Equation
from ardea.estimators.advice import FIRST_ROWS, Advice, SuspectDataWarning
from ardea.estimators.inputs import CheckedRows, dense
from ardea.estimators.residuals import (
    ALARM,
    FIRST_COLUMNS,
    MOST_TAKEN,
    MOSTLY,
    PERHAPS,
    WORTH_A_WORD,
    basis_of,
    equal_pairs,
)
from ardea.estimators.sizes import normal_scores

# The fewest rows whose errors are looked at: a convention.
FEWEST_LOOKED_AT = 20
# Conventions: of how many rows that come most often agreement says nothing, such as those of customers who bought
# nothing; and the share of the columns in which copies agree at least.
CROWDS, LEAST_SHARED = 3, 0.25


def weights_advice(rows: CheckedRows, equation: Equation, target: int) -> list[Advice]:
    """Return what to tell of weights that are no counts."""
    counted = np.flatnonzero(np.asarray(rows.weight))
    weight, m = np.asarray(rows.weight)[counted], counted.size
    differ = np.unique(rows.Y[counted, target]).size  # rows that do, at least; a row may be split into several
    # Equal rows of measured numbers are not met so often that every one of them is there twice or more.
    counts = bool(np.all(weight == np.round(weight))) and (weight.min() <= 1 or differ < m)
    if counts and not np.ptp(weight):
        return []
    total, kish = float(weight.sum()), float(weight.sum()) ** 2 / float(weight @ weight)
    errors, left = _errors(rows, equation, target, counted, weight)
    precise = _precision(errors, left, weight)
    if not counts and m >= FEWEST_LOOKED_AT:
        # As Kish's number, by the errors: Σ w²e²x² is the variance of Σ wex, and with counts Σ we² Σ wx²/Σ w.
        shown = total * float(weight @ errors**2) / max(float(weight**2 @ errors**2), TINY)
        grows = _clearly(_chance(-np.abs(errors) * np.sqrt(weight / left), weight), -precise)
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
    if not counts and len(equation.support) + 1 < total < WORTH_A_WORD * differ:  # with fewer the fit itself says so
        text = (
            f"The weights of {m} rows add up to {total:.4g}, and the fit counts no more rows than that: true terms may "
            "be dropped, and intervals are too wide. If yours are relative, or say how precise a row is (1/σ²), divide "
            "them by their mean; if those of a survey, take w * w.sum() / (w**2).sum() "
            "(python -m ardea.explain suspect_data)."
        )
        return [(text, SuspectDataWarning)]
    # In a table of frequencies common values of y, whose errors are small, have large counts; means hardly ever agree.
    frequencies = counts and 2 * differ < m
    falls = m >= FEWEST_LOOKED_AT and not frequencies and _clearly(_chance(np.abs(errors) / left, weight), precise)
    if not (falls or (total * WORTH_A_WORD > m and not counts)):
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


def _precision(errors: Array, left: Array, weight: Array) -> float:
    """Return how much likelier errors of variance σ²/w make normal ones than errors of equal variance do.

        ln L = ½ (Σ ln w − m ln(Σ we²/Σ e²)),

    and if the latter are right, E L = 1, so that L > 1/p has a chance of p at most; and the other way round.
    """
    squares = errors**2 / left
    ratio = float(weight @ squares) / max(float(squares.sum()), TINY)
    return 0.5 * (float(np.log(weight).sum()) - weight.size * float(np.log(max(ratio, TINY))))


def _clearly(chance: float, log_ratio: float) -> bool:
    """Whether a test alarms, or all but alarms where the likelihood says the same."""
    return bool(chance < ALARM or (chance < PERHAPS and log_ratio > -np.log(ALARM)))


def _chance(sizes: Array, weight: Array) -> float:
    """Return the chance of sizes that fall as much with the weight."""
    if not (np.ptp(sizes) and np.ptp(weight)):
        return 1.0
    scores = normal_scores(sizes), normal_scores(weight)
    return float(special.ndtr(np.corrcoef(*scores)[0, 1] * np.sqrt(weight.size - 1)))


class Copies(NamedTuple):
    """Rows that are copies of others: how many, v, and the columns in which they agree."""

    number: int
    inflation: float
    columns: Index


def copied_rows(X: Any, y: Array, equal: tuple[Index, float]) -> Copies | None:
    """Return what rows are copies of others in y and in all columns, or in most; None where chance may explain them.

    `equal` is what `equal_pairs` says of y.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    >>> copied_rows(X, y, equal_pairs(y)) is None
    True
    >>> copied_rows(np.tile(X, (5, 1)), np.tile(y, 5), equal_pairs(np.tile(y, 5)))
    Copies(number=200, inflation=5.0, columns=array([0, 1, 2]))
    >>> copied_rows(X > 0, np.round(y), equal_pairs(np.round(y))) is None
    True
    """
    m, d = X.shape
    few = (m / WORTH_A_WORD - m) / 2
    if equal[1] <= few:
        return None
    first, every = min(FIRST_COLUMNS, d), np.arange(d)
    if equal_pairs(_keys(X, y, every[:first])[1])[1] > few and (found := _copies(X, y, equal, every, few)) is not None:
        return found
    shared = _shared_columns(X, y)
    return _copies(X, y, equal, shared, few) if d > shared.size > LEAST_SHARED * d else None


def _shared_columns(X: Any, y: Array) -> Index:
    """Return the columns in which rows of equal y mostly agree, those that follow each other in the order of y."""
    if not isinstance(X, np.ndarray):
        return np.empty(0, dtype=np.intp)
    order = np.argsort(y, kind="stable")
    same = np.flatnonzero(y[order][1:] == y[order][:-1])
    same = same[:: max(1, same.size // FIRST_ROWS)]
    agree = (X[order[same]] == X[order[same + 1]]).mean(axis=0)
    return np.flatnonzero(agree > 1 - 1 / MOSTLY)


def _keys(X: Any, y: Array, columns: Index) -> tuple[Array, Array]:
    """Return digests of the rows of some columns, and of these with y."""
    (m, d), height = X.shape, max(1, BLOCK_BYTES // (8 * columns.size))
    factors, whole = odd_numbers(d + 1), columns.size == columns[-1] + 1
    chosen = slice(0, columns.size) if whole else columns
    blocks = [X[start : start + height, chosen] for start in range(0, m, height)]
    cells = np.concatenate([digests(block, factors[: columns.size]) for block in blocks])
    return cells, cells + digests(y[:, None], factors[d:])


def _copies(X: Any, y: Array, equal: tuple[Index, float], columns: Index, few: float) -> Copies | None:
    m, (counts_in_y, in_y) = y.size, equal
    cells, keys = _keys(X, y, columns)
    counts, alike = equal_pairs(keys)
    crowded = counts.size > CROWDS and counts.max() >= MOSTLY
    apart = np.sort(counts)[:-CROWDS] if crowded else counts
    if alike <= few or apart @ (apart - 1.0) <= (1 / WORTH_A_WORD - 1) * apart.sum():
        return None
    together, in_columns = equal_pairs(cells)
    differ = 1 - (in_y - alike) / max(m * (m - 1) / 2 - in_columns, 1.0)
    in_both = differ * alike / max(in_columns - alike, 1.0)
    if columns.size == X.shape[1]:  # others were chosen because rows of equal y agree in them
        in_both = max(in_both, alike / max(in_y - alike, 1.0))
    often = in_both >= MOSTLY
    mostly = often and _chance_of_agreeing(together, counts_in_y / m) < 2.0**-MOSTLY
    every = counts.size >= MOSTLY and np.gcd.reduce(counts) > 1
    return Copies(m - counts.size, 1 + 2 * alike / m, columns) if mostly or every else None


def _chance_of_agreeing(sizes: Index, shares: Array) -> float:
    """Return the chance that rows in groups of some sizes agree within every group, given the shares of all values.

    Pairs within a group are not independent: if y is mostly zero, even a large group may agree.
    """
    number, often = np.unique(sizes, return_counts=True)
    values, same = np.unique(shares, return_counts=True)
    return float(np.exp(often @ np.log(np.maximum((values ** number[:, None]) @ same, TINY))))
