"""Doubts about a model, in plain language: a short statement, and what it means or what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from ardea.core.problem import Array
from ardea.dynamics.discovery import Discovery
from ardea.estimators.base import BaseARD
from ardea.show.report.described import Sum, column_names

Concern = tuple[str, str]

LARGEST_SHARE = 0.25
# Estimates whose errors are correlated this much can hardly be told apart.
NEARLY_SAME = 0.95
FAR_OUT = 5.0
# A test that fires by chance once in a thousand pages.
RARE = 3.3
FEWEST_ROWS = 20
MOST_NAMED = 5


def of_fit(notes: Sequence[str]) -> list[Concern]:
    """Return what reading the rows and the fit itself have said."""
    return [("While reading and fitting:", note) for note in notes]


def of_estimator(fitted: BaseARD, sums: Sequence[Sum], notes: Sequence[str]) -> list[Concern]:
    """Return doubts that the model alone gives reason for; not what the fit has warned of already."""
    doubts: list[Concern] = []
    gaps = np.atleast_1d(fitted.kkt_gap_)
    if np.any(gaps > fitted.tol) and not any("converge" in note for note in notes):
        doubts.append(
            (
                "The fit has not fully converged.",
                f"Its certificate kkt_gap is {gaps.max():.1e}, above tol = {fitted.tol:.0e}. Raise max_iter.",
            )
        )
    for found, terms in zip(sums, fitted.equations_, strict=True):
        doubts += _of_terms(found, terms, column_names(fitted))
    return doubts


def _of_terms(found: Sum, terms: Any, names: Sequence[str]) -> list[Concern]:
    doubts: list[Concern] = []
    rows = float(terms.kept.problem.n_rows)
    k = len(found.lines)
    if k == 0:
        doubts.append((f"No column explains {found.left}.", "The constant alone is the best model for these data."))
    if k > LARGEST_SHARE * rows:
        doubts.append(
            (
                f"{k} terms on {rows:g} rows are many.",
                "The noise, and with it every interval, cannot be trusted. Ask for fewer terms or add rows.",
            )
        )
    unsure = [line.name for line in found.lines if line.low <= 0 <= line.high]
    if unsure:
        doubts.append(
            (f"The sign is not settled for {_listed(unsure)}.", "Zero lies inside the interval of every such term.")
        )
    doubts += [
        (
            f"{names[a]} and {names[b]} are hard to tell apart.",
            "Their estimates depend strongly on each other: the sum is known better than either, and another sample "
            "of the data might keep only one of them.",
        )
        for a, b in _entangled(terms)
    ]
    return doubts


def _entangled(terms: Any) -> list[tuple[int, int]]:
    gaussian = terms.posterior if terms.refit is None else terms.refit
    covariance = terms.covariance(gaussian)
    deviation = np.sqrt(covariance.diagonal())
    safe = np.where(deviation > 0, deviation, np.inf)
    pairs = np.argwhere(np.triu(np.abs(covariance / np.outer(safe, safe)) > NEARLY_SAME, 1))
    return [(int(terms.support[a]), int(terms.support[b])) for a, b in pairs[:MOST_NAMED]]


def of_residuals(residual: Array, left: str) -> list[Concern]:
    """Return doubts that residuals, in units of their standard deviation and in row order, give reason for."""
    from ardea.show.plots.rows import autocorrelation

    m = residual.size
    if m < FEWEST_ROWS:
        return []
    doubts: list[Concern] = []
    far = int(np.sum(np.abs(residual) > FAR_OUT))
    if far:
        doubts.append(
            (
                f"{far} row{'s' * (far > 1)} of {left} lie far off.",
                f"More than {FAR_OUT:g} standard deviations from the model: look for wrong entries or rare events.",
            )
        )
    lagged = autocorrelation(residual, 1)
    if abs(lagged) > RARE / np.sqrt(m):
        doubts.append(
            (
                f"Neighbouring rows of {left} depend on each other.",
                f"Residuals one row apart correlate by {lagged:.2f}. Intervals assume independent rows and are too "
                f"{'narrow' if lagged > 0 else 'wide'}; a term may be missing.",
            )
        )
    skew, tails = float(stats.skew(residual)), float(stats.kurtosis(residual))
    if abs(skew) > RARE * np.sqrt(6 / m) or abs(tails) > RARE * np.sqrt(24 / m):
        doubts.append(
            (
                f"The noise of {left} is not Gaussian.",
                "The chosen terms are little affected; single predictions may lie outside their band more or less "
                "often than it says.",
            )
        )
    return doubts


def of_discovery(model: Discovery, notes: Sequence[str]) -> list[Concern]:
    """Return doubts about found equations: models that the data do not rule out."""
    doubts: list[Concern] = []
    for equation in model.equations_:
        left = equation.left.text
        if not equation.terms:
            doubts.append((f"No term was found for {left}.", "It stays constant as far as the data tell."))
        for terms in equation.equivalents:
            doubts.append(
                (f"The data do not decide about {left}.", f"They are explained as well by {_listed(terms, 20)}.")
            )
        rivals = equation.close_rivals()
        if rivals:
            best = rivals[0]
            doubts.append(
                (
                    f"The terms of {left} are not quite settled.",
                    f"By the criterion there is a model about as good: {best.compared}. Longer or cleaner data would "
                    "decide.",
                )
            )
    said = {note for note in notes if "tell two models" in note}  # said above, in more words
    return [*doubts, *of_fit([note for note in notes if note not in said or not doubts])]


def _listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
