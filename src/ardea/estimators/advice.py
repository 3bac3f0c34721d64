"""Warnings and refusals of data that say what to do; each warning has a page under docs/warnings.

A fit is looked at once it has ended, on what it computed anyway. With ρ the squared norms of the columns (flat ones
projected out) and r_ij their correlations:

- few rows: fewer than five degrees of freedom are left for σ², whose relative error √(2/ν) is then above 63 %;
- tiny noise: σ² is at its floor, 1e-16 of the mean square of y, below which rounding error decides;
- redundant: a column in `always_keep` that is a sum of those before it;
- near duplicates: |r_ij| > .999 between two columns that were both kept;
- alternatives: a dropped column j with |r_ij| > .95 to a kept one, such that j in place of i raises
  m ln RSS (or RSS/σ², σ² known) by less than 6.

A prediction is looked at before it is made: values beyond the range of the rows fitted by more than its width.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ardea.core.evidence import FLOOR_TALL, FLOOR_WIDE, NoiseRule
from ardea.core.loop import STATUS_ADVICE, Fit, Status
from ardea.core.problem import Array, Coordinates, Index, Problem
from ardea.core.subsets import moves
from ardea.equation import CLOSE
from ardea.names import counted

# The relative error of σ², √(2/ν), is above 63 % with fewer degrees of freedom than these.
FEW_DEGREES = 5
# Correlations from which columns count as nearly the same, and as alternatives: conventions (of columns chosen in place
# of true ones that are correlated with them by .98 or more, nine of ten are named: docs/promises_table.md).
NEAR_DUPLICATE, ALTERNATIVE = 0.999, 0.95
# Beyond this many terms no one asks which of them could be exchanged, and the answer would cost as much as the fit.
MOST_TERMS = 100
# Pairs and columns named in one message: a convention.
NAMED, MOST_NAMED = 3, 5


class CollapseWarning(ConvergenceWarning):
    """The learned noise variance cannot be trusted: the model nearly interpolates the data (docs/warnings/collapse)."""


class AdviceWarning(UserWarning):
    """What a user should know of a sound fit, or of a prediction."""


class ConstantTargetWarning(AdviceWarning):
    """There is nothing to explain: y is constant, or the columns always kept explain all of it."""


class FewRowsWarning(AdviceWarning):
    """Hardly any rows, or groups, are left to learn the noise variance from (docs/warnings/few_rows)."""


class WeakEvidenceWarning(AdviceWarning):
    """Chance might explain y as well as the terms kept, so that they were shrunk (docs/warnings/weak_evidence)."""


class TinyNoiseWarning(AdviceWarning):
    """The noise is so small beside y that rounding errors decide (docs/warnings/tiny_noise)."""


class DependentRowsWarning(AdviceWarning):
    """Errors of the rows depend on each other, and so do the columns (docs/warnings/dependent_rows)."""


class UnequalErrorsWarning(AdviceWarning):
    """Errors are of unequal size, and large where a column is decided over (docs/warnings/unequal_errors)."""


class DuplicateColumnsWarning(AdviceWarning):
    """Two columns that were both kept are nearly the same (docs/warnings/duplicate_columns)."""


class AlternativesWarning(AdviceWarning):
    """A dropped column would explain the data as well as a kept one (docs/warnings/alternatives)."""


class ExtrapolationWarning(AdviceWarning):
    """Rows to predict lie far outside those fitted (docs/warnings/extrapolation)."""


Advice = tuple[str, type[Warning]]


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the line outside the package that asked for something.

    `functools` stands between a fitted attribute that is computed when it is read and the line that reads it.
    """
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("ardea.", "functools")):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


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
    """Return the pairs of kept columns that are nearly the same, the closest first."""
    among = correlation[:, active]
    close = np.argwhere(np.triu(np.abs(among) > NEAR_DUPLICATE, 1))
    pairs = [Pair(int(active[i]), int(active[j]), float(among[i, j]), np.nan) for i, j in close]
    return sorted(pairs, key=lambda pair: -abs(pair.correlation))


def alternatives(problem: Problem, active: Index, correlation: Array, known_noise: float | None) -> list[Pair]:
    """Return pairs (kept, dropped) of correlated columns that the data hardly tell apart, the closest first."""
    dropped = np.ones(problem.n_columns, dtype=bool)
    dropped[active] = False
    place, others = np.nonzero((np.abs(correlation) > ALTERNATIVE) & dropped)
    if others.size == 0:
        return []
    looked_at = np.concatenate([active, np.unique(others)])
    part = replace(problem, columns=problem.columns.restrict(looked_at))
    where = active.size + np.searchsorted(looked_at[active.size :], others)
    change = moves(part, np.arange(active.size)).exchanges[place, where]
    if known_noise is None:
        rss = max(problem.least_squares(active)[1], np.finfo(float).tiny)
        with np.errstate(divide="ignore"):
            cost = problem.n_rows * np.log(np.maximum(1 + change / rss, np.finfo(float).tiny))
    else:
        cost = change / known_noise
    pairs = [
        Pair(int(active[i]), int(j), float(correlation[i, j]), float(c))
        for i, j, c in zip(place, others, cost, strict=True)
        if c < CLOSE
    ]
    return sorted(pairs, key=lambda pair: pair.cost)


def fit_advice(
    problem: Problem,
    fit: Fit,
    coordinates: Coordinates,
    *,
    known_noise: bool,
    limits: dict[str, Any],
    names: Sequence[str],
) -> list[Advice]:
    """Return what a user should know of a fit, as messages and their categories.

    `limits` are the `max_iter` and `tol` of the fit. A fit that did not end well says so, and nothing else.
    """
    k, m = fit.posterior.active.size + coordinates.flat.kept.size, coordinates.total_weight
    collapsed = fit.status in {Status.COLLAPSED, Status.RESCUED}
    passed = collapsed and not fit.posterior.active.size  # a search on few rows may end without any term after it
    if (advice := STATUS_ADVICE.get(fit.status)) is not None and not passed:
        differ = problem.n_distinct + coordinates.flat_rank
        rows = counted(m, "row") + (f", {differ:g} of them different" if problem.n_distinct < problem.n_rows else "")
        text = advice.format(gap=fit.kkt_gap, terms=counted(k, "term"), rows=rows, **limits)
        return [(text, CollapseWarning if collapsed else ConvergenceWarning)]
    if m <= k + 1 and m < coordinates.n_samples:
        text = (
            f"The weights add up to {counted(m, 'row')} for {counted(k, 'term')}. Weights are counts: if yours are "
            "relative, scale them to add up to the number of independent rows (python -m ardea.explain collapse)."
        )
        return [(text, CollapseWarning)]
    if problem.total == 0:
        text = "y is constant, or the columns always kept explain all of it: there is nothing to explain, and no noise."
        return [(text, ConstantTargetWarning)]
    told = [] if known_noise else _on_few_rows(problem, fit, coordinates) + _on_tiny_noise(problem, fit)
    told += _on_weak_evidence(problem, k) if fit.status is Status.WEAK else []
    told += _on_redundant_columns(coordinates, names)
    return told + _on_similar_columns(problem, fit, fit.noise if known_noise else None, names)


def _on_few_rows(problem: Problem, fit: Fit, coordinates: Coordinates) -> list[Advice]:
    degrees = problem.n_rows - fit.posterior.active.size
    if degrees >= FEW_DEGREES:
        return []
    n_terms = fit.posterior.active.size + coordinates.flat_rank
    text = (
        f"{counted(n_terms, 'term leaves', 'terms leave')} {counted(degrees, 'degree')} of freedom for the noise "
        "variance: intervals and the number of false terms are guesses. Add rows, or give noise_variance "
        "(python -m ardea.explain few_rows)."
    )
    return [(text, FewRowsWarning)]


def _on_weak_evidence(problem: Problem, n_terms: int) -> list[Advice]:
    text = (
        f"The evidence that anything explains y is weak: among {counted(problem.n_candidates, 'column')} of noise "
        f"some would now and then do as well as the {counted(n_terms, 'term')} kept. The estimates were shrunk. Do not "
        "read the choice as a finding; add rows, or leave out columns (python -m ardea.explain weak_evidence)."
    )
    return [(text, WeakEvidenceWarning)]


def _on_tiny_noise(problem: Problem, fit: Fit) -> list[Advice]:
    if fit.noise > NoiseRule(low_floor=True).floor(problem) * (1 + 1e-9):
        return _on_held_noise(problem, fit)
    text = (
        f"The terms explain y up to {np.sqrt(FLOOR_TALL):.0e} of its size. Below that, rounding errors decide: σ² is "
        "held there, and finer terms and intervals mean nothing. If y was computed without noise, ignore the "
        "intervals; else subtract from y what you know of it, and fit the rest (python -m ardea.explain tiny_noise)."
    )
    return [(text, TinyNoiseWarning)]


def _on_held_noise(problem: Problem, fit: Fit) -> list[Advice]:
    """Tell of σ² at the floor that columns in excess of the rows have, where a lower one led to a collapse."""
    if not np.isclose(fit.noise, NoiseRule().floor(problem), rtol=1e-9, atol=0.0):
        return []
    text = (
        f"σ² is held at {FLOOR_WIDE:.0e} of the mean square of y: with more columns than rows, a smaller one would let "
        "this method interpolate the data. The noise may be smaller, and the intervals too wide. Use SparseARD, or "
        "give noise_variance (python -m ardea.explain collapse)."
    )
    return [(text, CollapseWarning)]


def _on_redundant_columns(coordinates: Coordinates, names: Sequence[str]) -> list[Advice]:
    redundant = [names[int(j)] for j in coordinates.flat.redundant]
    if not redundant:
        return []
    beside = "the intercept and " * coordinates.flat.intercept
    text = (
        f"{', '.join(redundant[:NAMED])}{', …' * (len(redundant) > NAMED)} in always_keep: beside {beside}the columns "
        "kept before, nothing is left to say (a constant column says what the intercept says, a copy what its original "
        "says). The coefficient was set to zero. Leave such columns out "
        "(python -m ardea.explain duplicate_columns)."
    )
    return [(text, DuplicateColumnsWarning)]


def _on_similar_columns(problem: Problem, fit: Fit, known_noise: float | None, names: Sequence[str]) -> list[Advice]:
    active = fit.posterior.active
    if not 0 < active.size <= MOST_TERMS:
        return []
    correlation = correlations(problem, active)
    if max(correlation.max(), -correlation.min()) <= ALTERNATIVE:
        return []
    told: list[Advice] = []
    if twins := near_duplicates(correlation, active):
        text = (
            f"Columns kept side by side are nearly the same: {_listed(twins, names)}. Their coefficients mean "
            "little one by one: drop one of each, or read their sum (python -m ardea.explain duplicate_columns)."
        )
        told.append((text, DuplicateColumnsWarning))
    if rivals := alternatives(problem, active, correlation, known_noise):
        text = (
            f"The data hardly tell kept terms from dropped ones: {_listed(rivals, names)}. Do not read the choice "
            "as a finding (python -m ardea.explain alternatives)."
        )
        told.append((text, AlternativesWarning))
    return told


def _listed(pairs: Sequence[Pair], names: Sequence[str]) -> str:
    said = [f"{names[pair.kept]} and {names[pair.other]} (correlation {pair.correlation:.4f})" for pair in pairs]
    return "; ".join(said[:NAMED]) + (f"; and {len(said) - NAMED} more" if len(said) > NAMED else "")


def extrapolation_advice(fitted: Array, met: Array, names: Sequence[str]) -> str | None:
    """Return what to say of ranges met in prediction that lie far outside those fitted; None where none does.

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
        "of whether the model holds there (python -m ardea.explain extrapolation)."
    )


# Data that cannot be fitted


def not_numbers(what: str, data: Any) -> str | None:
    """Name the columns of a data frame that hold text or dates."""
    if not hasattr(data, "columns") or not hasattr(data, "dtypes"):
        return None
    kinds = enumerate(zip(data.columns, data.dtypes, strict=True))
    strange = [str(name) for j, (name, kind) in kinds if not _is_numeric(_column(data, j), kind)]
    if not strange:
        return None
    columns = "columns=" * hasattr(data, "iloc")
    return (
        f"Not numbers: column{'s' * (len(strange) > 1)} {listed(strange)} of {what}. Turn text and dates into numbers "
        f"first, or drop them ({what}.drop({columns}[…]))."
    )


def listed(names: Sequence[str]) -> str:
    """Return the first of some names for a message."""
    return ", ".join(repr(name) for name in names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def _column(data: Any, j: int) -> Any:
    """Return a column of a pandas or polars frame by its place."""
    return data.iloc[:, j] if hasattr(data, "iloc") else data[:, j]


def _is_numeric(column: Any, kind: Any) -> bool:
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric() or str(kind) == "Boolean")
    if getattr(kind, "kind", "O") in "biuf":
        return True
    return as_numbers(column) is not None and getattr(kind, "kind", "O") == "O"


def as_numbers(data: Any) -> Array | None:
    """Return data as numbers, what is missing as NaN; None where they hold something else."""
    try:
        return np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        if not hasattr(data, "iloc"):
            return None
    try:  # pandas.NA is no number for NumPy
        return np.asarray(data.astype(object).where(data.notna(), np.nan), dtype=np.float64)
    except (TypeError, ValueError):
        return None


def words(what: str, data: Any) -> str | None:
    """Say where the first text is that is not a number."""
    for place, cell in np.ndenumerate(np.asarray(data, dtype=object)):
        if isinstance(cell, str) and as_numbers(cell) is None:
            return (
                f"{what} holds text: {str(cell)!r} in row {place[0]}. Turn it into numbers first; for two kinds of "
                "rows these may be 0 and 1."
            )
    return None


def not_finite(what: str, data: Any) -> str | None:
    """Say where the first NaN or infinity is, and in how many rows there are any."""
    if np.iscomplexobj(data):
        return None
    values = as_numbers(data)
    if values is None or values.ndim not in (1, 2) or values.size == 0:
        return None
    unsound = ~np.isfinite(values.reshape(len(values), -1))
    if not unsound.any():
        return None
    row, column = np.argwhere(unsound)[0]
    names = getattr(data, "columns", None)
    name = "" if values.ndim == 1 else f", column {str(names[column]) if names is not None else int(column)!r}"
    kind = "NaN" if np.isnan(values.reshape(len(values), -1)[row, column]) else "infinity"
    count = int(unsound.any(axis=1).sum())
    rows = "in this row only" if count == 1 else f"{count} rows have such cells"
    package = type(data).__module__.partition(".")[0]
    how = {"pandas": ".dropna()", "polars": ".drop_nans().drop_nulls()"}.get(package)
    return (
        f"Input {what} contains NaN or infinity: {kind} in row {row}{name}; {rows}. Leave those rows out of X and of "
        f"y{f' (with {how} on the table that holds both)' if how else ''}, or fill the cells."
    )
