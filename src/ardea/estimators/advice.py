"""Warnings that say what to do: each has a page under docs/warnings.

A fit is looked at once it has ended, on what it computed anyway. With ρ the squared norms of the columns (flat ones
projected out) and r_ij their correlations:

- few rows: fewer than five degrees of freedom are left for σ², whose relative error √(2/ν) is then above 63 %;
- near duplicates: |r_ij| > .999 between two columns that were both kept;
- alternatives: a dropped column j with |r_ij| > .95 to a kept one, such that j in place of i raises
  m ln RSS (or RSS/σ², σ² known) by less than 2.

A prediction is looked at before it is made: values beyond the range of the rows fitted by more than its width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ardea.core.problem import Array, Index, Problem
from ardea.core.result import Posterior

FEW_DEGREES = 5
NEAR_DUPLICATE = 0.999
ALTERNATIVE, HARDLY_WORSE = 0.95, 2.0
# Beyond this many terms no one asks which of them could be exchanged, and the answer would cost as much as the fit.
MOST_TERMS = 100
NAMED = 3


class CollapseWarning(ConvergenceWarning):
    """The learned noise variance cannot be trusted: the model nearly interpolates the data (docs/warnings/collapse)."""


class AdviceWarning(UserWarning):
    """What a user should know of a sound fit, or of a prediction."""


class ConstantTargetWarning(AdviceWarning):
    """There is nothing to explain: y is constant, or the columns always kept explain all of it."""


class FewRowsWarning(AdviceWarning):
    """Hardly any rows are left to learn the noise variance from (docs/warnings/few_rows)."""


class DuplicateColumnsWarning(AdviceWarning):
    """Two columns that were both kept are nearly the same (docs/warnings/duplicate_columns)."""


class AlternativesWarning(AdviceWarning):
    """A dropped column would explain the data as well as a kept one (docs/warnings/alternatives)."""


class ExtrapolationWarning(AdviceWarning):
    """Rows to predict lie far outside those fitted (docs/warnings/extrapolation)."""


Advice = tuple[str, type[Warning]]


@dataclass(frozen=True)
class Pair:
    """Two columns, their correlation, and what exchanging the first for the second costs."""

    kept: int
    other: int
    correlation: float
    cost: float


def correlations(problem: Problem, active: Index) -> Array:
    """Return r_ij of the kept columns with all others, k × d; zero with themselves and with columns of zeros."""
    norms = np.sqrt(np.maximum(problem.square_norms, np.finfo(float).tiny))
    correlation = problem.active.gram_rows(active) / norms
    correlation /= norms[active][:, None]
    correlation[np.arange(active.size), active] = 0.0
    return correlation


def near_duplicates(correlation: Array, active: Index) -> list[Pair]:
    """Return the pairs of kept columns that are nearly the same, the closest first.

    Examples
    --------
    >>> from ardea.core.problem import DenseColumns
    >>> columns = np.eye(3)[:, [0, 1, 0]] + [[0, 0, 0], [0, 0, 0.01], [0, 0, 0]]
    >>> problem = Problem(DenseColumns(columns), np.ones(3), 0.0, 3)
    >>> [(pair.kept, pair.other) for pair in near_duplicates(correlations(problem, np.arange(3)), np.arange(3))]
    [(0, 2)]
    """
    among = correlation[:, active]
    first, second = np.nonzero(np.triu(np.abs(among) > NEAR_DUPLICATE, 1))
    pairs = [
        Pair(int(active[i]), int(active[j]), float(among[i, j]), np.nan) for i, j in zip(first, second, strict=True)
    ]
    return sorted(pairs, key=lambda pair: -abs(pair.correlation))


def alternatives(problem: Problem, post: Posterior, correlation: Array, known_noise: float | None) -> list[Pair]:
    """Return pairs (kept, dropped) of correlated columns that the data hardly tell apart, the closest first.

    With Q an orthonormal basis of the kept columns, r the residual of y and u_i the unit vector in their span that is
    orthogonal to all but column i, the exchange of i for j changes the residual sum of squares by

        (u_iᵀy)² − (rᵀa_j + (u_iᵀy)(u_iᵀa_j))²/(‖a_j − QQᵀa_j‖² + (u_iᵀa_j)²).
    """
    active = post.active
    dropped = np.ones(problem.n_columns, dtype=bool)
    dropped[active] = False
    place, others = np.nonzero((np.abs(correlation) > ALTERNATIVE) & dropped)
    if others.size == 0:
        return []
    q, triangle = np.linalg.qr(problem.active.vectors(active))
    inverse = np.linalg.pinv(triangle)
    directions = (q @ inverse.T) / np.linalg.norm(inverse, axis=1)
    loads = q.T @ problem.target
    residual = problem.target - q @ loads
    rss = float(residual @ residual) + problem.rest
    candidates, where = np.unique(others, return_inverse=True)
    columns = problem.columns.take(candidates)
    heights, across = directions.T @ problem.target, directions.T @ columns
    outside = columns - q @ (q.T @ columns)
    room = np.einsum("ij,ij->j", outside, outside)[where] + across[place, where] ** 2
    gain = ((residual @ outside)[where] + heights[place] * across[place, where]) ** 2
    change = heights[place] ** 2 - np.divide(gain, room, out=np.zeros_like(gain), where=room > 0)
    if known_noise is None:
        tiny = np.finfo(float).tiny
        cost = problem.n_rows * np.log(np.maximum(rss + change, tiny) / max(rss, tiny))
    else:
        cost = change / known_noise
    pairs = [
        Pair(int(active[i]), int(j), float(correlation[i, j]), float(c))
        for i, j, c in zip(place, others, cost, strict=True)
        if c < HARDLY_WORSE
    ]
    return sorted(pairs, key=lambda pair: pair.cost)


def fit_advice(
    problem: Problem, post: Posterior, n_flat: int, known_noise: float | None, names: Sequence[str]
) -> list[Advice]:
    """Return what a user should know of a fit that ended well, as messages and their categories."""
    if problem.total == 0:
        text = "y is constant, or the columns always kept explain all of it: there is nothing to explain, and no noise."
        return [(text, ConstantTargetWarning)]
    told: list[Advice] = []
    degrees, n_terms = problem.n_rows - post.active.size, post.active.size + n_flat
    if known_noise is None and degrees < FEW_DEGREES:
        told.append(
            (
                f"{n_terms} {'term leaves' if n_terms == 1 else 'terms leave'} {degrees:g} degrees of freedom for the "
                "noise variance: "
                "intervals and the number of false terms are guesses. Add rows, or give noise_variance "
                "(docs/warnings/few_rows).",
                FewRowsWarning,
            )
        )
    if not 0 < post.active.size <= MOST_TERMS:
        return told
    correlation = correlations(problem, post.active)
    if max(correlation.max(), -correlation.min()) <= ALTERNATIVE:
        return told
    if twins := near_duplicates(correlation, post.active):
        told.append(
            (
                f"Columns kept side by side are nearly the same: {_listed(twins, names)}. Their coefficients mean "
                "little one by one: drop one of each, or read their sum (docs/warnings/duplicate_columns).",
                DuplicateColumnsWarning,
            )
        )
    if rivals := alternatives(problem, post, correlation, known_noise):
        told.append(
            (
                f"The data hardly tell kept terms from dropped ones: {_listed(rivals, names)}. Do not read the choice "
                "as a finding (docs/warnings/alternatives).",
                AlternativesWarning,
            )
        )
    return told


def _listed(pairs: Sequence[Pair], names: Sequence[str]) -> str:
    said = [f"{names[pair.kept]} and {names[pair.other]} (correlation {pair.correlation:.4f})" for pair in pairs]
    return "; ".join(said[:NAMED]) + (f"; and {len(said) - NAMED} more" if len(said) > NAMED else "")


def extrapolation_advice(fitted: Array, met: Array, names: Sequence[str]) -> str | None:
    """Return what to say of ranges met in prediction that lie far outside those fitted; None where none does.

    Parameters
    ----------
    fitted, met : ndarray of shape (2, k)
        Least and greatest value of every kept column.
    names : sequence of str
        Names of the kept columns.

    Examples
    --------
    >>> fitted = np.array([[0.0], [1.0]])
    >>> extrapolation_advice(fitted, np.array([[0.0], [1.9]]), ["height"])
    >>> extrapolation_advice(fitted, np.array([[0.5], [180.0]]), ["height"])[:68]
    'Prediction far outside the rows fitted: height reaches 180, fitted i'
    """
    (low, high), (lowest, highest) = fitted, met
    width = high - low
    beyond = np.maximum(low - lowest, highest - high)
    far = np.flatnonzero((beyond > width) & (width > 0))
    if far.size == 0:
        return None
    said = [
        f"{names[i]} reaches {lowest[i] if low[i] - lowest[i] > highest[i] - high[i] else highest[i]:.4g}, "
        f"fitted in [{low[i]:.4g}, {high[i]:.4g}]"
        for i in far[np.argsort(-beyond[far] / width[far])]
    ]
    more = f"; and {far.size - NAMED} more" if far.size > NAMED else ""
    return (
        f"Prediction far outside the rows fitted: {'; '.join(said[:NAMED])}{more}. The standard deviation says nothing "
        "of whether the model holds there (docs/warnings/extrapolation)."
    )
