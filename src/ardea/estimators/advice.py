"""Warnings and refusals of data that say what to do; each warning has a page under docs/warnings.

A fit is looked at once it has ended, on what it computed anyway. With ρ the squared norms of the columns (flat ones
projected out) and r_ij their correlations:

- few rows: fewer than five degrees of freedom are left for σ², whose relative error √(2/ν) is then above 63 %;
- known noise: RSS/σ² is hardly ever as far from its degrees of freedom, and RSS 1.6 times larger or smaller;
- tiny noise: σ² is at its floor, 1e-16 of the mean square of y, below which rounding error decides;
- redundant: a column in `always_keep` that is a sum of those before it;
- near duplicates: |r_ij| > .999 between two columns that were both kept;
- alternatives: a dropped column j with |r_ij| > .95 to a kept one, such that j in place of i raises
  m ln RSS (or RSS/σ², σ² known) by less than 6.

Rows are looked at as they were given: values far from all others of their column, and rows that are sums of the others.
A prediction is looked at before it is made: values beyond the range of the rows fitted by more than its width.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.exceptions import ConvergenceWarning

from ardea.core.compression import ranges_of
from ardea.core.evidence import FLOOR_TALL, FLOOR_WIDE, NoiseRule
from ardea.core.loop import STATUS_ADVICE, Fit, Status
from ardea.core.problem import EPS, TINY, Array, Coordinates, Index, Problem
from ardea.core.subsets import moves
from ardea.equation import CLOSE
from ardea.estimators.codes import ANSWERS, FAR_OUT, MOST_POINTS, NINES, codes_of, is_usual
from ardea.methods.thresholds import SUSPECT, overlooked
from ardea.names import counted

if TYPE_CHECKING:
    from ardea.estimators.inputs import CheckedRows

# The relative error of σ², √(2/ν), is above 63 % with fewer degrees of freedom than these.
FEW_DEGREES = 5
# Variance of residuals relative to the one given, or its inverse, from which that is worth a word, and the probability
# of an alarm where the number is right: conventions.
WORTH_NOISE, NOISE_ALARM = 1.6, 1e-4
# Correlations from which columns count as nearly the same, and as alternatives: conventions (of columns chosen in place
# of true ones that are correlated with them by .98 or more, nine of ten are named: docs/promises_table.md).
NEAR_DUPLICATE, ALTERNATIVE = 0.999, 0.95
# Beyond this many terms no one asks which of them could be exchanged, and the answer would cost as much as the fit.
MOST_TERMS = 100
NAMED = 3  # pairs and columns named in one message: a convention
# A column without a value between these shares of its range in its first rows is looked at closely: others have no code
# (derived: all values but a code fill at most 1/(1 + FAR_OUT) of the range).
EDGE, FIRST_ROWS = 0.2, 64
# Share of a value within which it is the sum of the others, and of the range of a column for their mean: totals of
# rounded numbers (a convention). Fewest rows, since 3 = 1 + 2; tables of more numbers are not added up for means.
ROUNDED, FEWEST_ROWS, MOST_NUMBERS = 1e-3, 5, 10**6
# Share of the largest value that is rounding of a straight line; of the rows from which on, and up to which, values
# were filled in (all of them are a count or a formula); and of the runs of equal values that differ, of which there are
# so many at least: conventions.
EPS_OF_LINES, LEAST_FILLED, MOST_FILLED, DIFFERENT, FEWEST_READ = 8 * EPS, 0.2, 0.9, 0.9, 15


class CollapseWarning(ConvergenceWarning):
    """The learned noise variance cannot be trusted: the model nearly interpolates the data (docs/warnings/collapse)."""


class AdviceWarning(UserWarning):
    """What a user should know of a sound fit, or of a prediction."""


class ConstantTargetWarning(AdviceWarning):
    """Nothing to explain: y is constant, or columns always kept explain all of it (docs/warnings/constant_target)."""


class FewRowsWarning(AdviceWarning):
    """Hardly any rows are left to learn the noise variance, or a term, from (docs/warnings/few_rows)."""


class WeakEvidenceWarning(AdviceWarning):
    """Chance might explain y as well as the terms kept, so that they were shrunk (docs/warnings/weak_evidence)."""


class ManyTermsWarning(AdviceWarning):
    """Columns that were left out explain much of y together (docs/warnings/many_terms)."""


class TinyNoiseWarning(AdviceWarning):
    """The noise is so small beside y that rounding errors decide (docs/warnings/tiny_noise)."""


class DependentRowsWarning(AdviceWarning):
    """Errors of the rows depend on each other, and so do the columns (docs/warnings/dependent_rows)."""


class UnequalErrorsWarning(AdviceWarning):
    """Errors are of unequal size, and large where a column is decided over (docs/warnings/unequal_errors)."""


class TwoValuesWarning(AdviceWarning):
    """The target has only two values, and is fitted as a probability (docs/warnings/two_values)."""


class PiledUpWarning(AdviceWarning):
    """Many values of y are equal to the smallest or the largest, as at a limit (docs/warnings/piled_up)."""


class KnownNoiseWarning(AdviceWarning):
    """The residuals contradict the noise variance that was given (docs/warnings/known_noise)."""


class DuplicateColumnsWarning(AdviceWarning):
    """Two columns that were both kept are nearly the same (docs/warnings/duplicate_columns)."""


class AlternativesWarning(AdviceWarning):
    """A dropped column would explain the data as well as a kept one (docs/warnings/alternatives)."""


class SuspectDataWarning(AdviceWarning):
    """Codes for missing values, sums, copies, or weights that are no counts (docs/warnings/suspect_data)."""


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
    norms = np.sqrt(np.maximum(problem.square_norms, TINY))
    kept = problem.columns.take(active) / norms[active]
    correlation = problem.columns.correlate(kept).T / norms
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
        rss = max(problem.least_squares(active)[1], TINY)
        with np.errstate(divide="ignore"):
            cost = problem.n_rows * np.log(np.maximum(1 + change / rss, TINY))
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
        text = (
            "y is constant (or varies in its last digits only: subtract a constant from it), or the columns always "
            "kept explain all of it: there is nothing to explain, and no noise "
            "(python -m ardea.explain constant_target)."
        )
        return [(text, ConstantTargetWarning)]
    if known_noise:
        told = _on_known_noise(problem, fit)
    else:
        told = _on_few_rows(problem, fit, coordinates) + _on_tiny_noise(problem, fit)
    told += _on_weak_evidence(problem, fit.posterior.active.size) if fit.status is Status.WEAK else []
    told += _on_left_out(problem, fit, counted(k, "term"), m) if fit.status is Status.LEFT_OUT else []
    told += _on_redundant_columns(coordinates, names)
    return told + _on_similar_columns(problem, fit, fit.noise if known_noise else None, names)


def _on_few_rows(problem: Problem, fit: Fit, coordinates: Coordinates) -> list[Advice]:
    degrees = problem.n_rows - fit.posterior.active.size
    if degrees >= FEW_DEGREES:
        return []
    terms = counted(fit.posterior.active.size + coordinates.flat.kept.size, "term")
    terms += " and the intercept" * coordinates.flat.intercept
    left = counted(degrees, "degree of freedom is", "degrees of freedom are")
    text = (
        f"After {terms} {left} left for the noise variance: intervals and the number of false terms are guesses. "
        "Add rows, or give noise_variance (python -m ardea.explain few_rows)."
    )
    return [(text, FewRowsWarning)]


def _on_known_noise(problem: Problem, fit: Fit) -> list[Advice]:
    """Tell of σ² that RSS/σ² of the kept and of all columns contradict: χ², but for 2 ln d by chance for a kept one.

    Where columns are too many to know the latter, a large one of the kept only says that terms were dropped.
    """
    active, m, d = fit.posterior.active, problem.n_rows, problem.n_columns
    found = [(m - active.size, 2 * active.size * np.log(d), problem.least_squares(active)[1] / fit.noise)]
    if whole := m - d >= FEW_DEGREES:
        found.append((m - d, 0.0, problem.least_squares(np.arange(d))[1] / fit.noise))
    ratio = found[0][2] / max(found[0][0], 1)
    if all(r * WORTH_NOISE < n and special.chdtr(n, r + gift) < NOISE_ALARM for n, gift, r in found):
        harm = "True terms may be missed, and intervals are too wide: the number is too large"
    elif whole and all(r > WORTH_NOISE * n and special.chdtrc(n, r) < NOISE_ALARM for n, _, r in found):
        harm = "Terms that explain noise are kept, and intervals are too narrow: it is too small, or terms are missing"
    else:
        return []
    text = (
        f"The residuals contradict noise_variance: they have {ratio:.2g} times the variance given. {harm}. "
        "Is it the variance, not the standard deviation, and in units of y? Correct it, or leave it out to have it "
        "learned (on the command line --noise is the standard deviation; python -m ardea.explain known_noise)."
    )
    return [(text, KnownNoiseWarning)]


def _on_weak_evidence(problem: Problem, n_terms: int) -> list[Advice]:
    text = (
        f"The evidence that anything explains y is weak: among {counted(problem.n_candidates, 'column')} of noise "
        f"some would now and then do as well as the {counted(n_terms, 'term')} kept. The estimates were shrunk, so "
        "that posterior intervals are too narrow (kind='selective' allows for the choice). Do not read it as a "
        "finding; add rows, or leave out columns (python -m ardea.explain weak_evidence)."
    )
    return [(text, WeakEvidenceWarning)]


def _on_left_out(problem: Problem, fit: Fit, terms: str, m: float) -> list[Advice]:
    share = min(overlooked(problem, fit), 0.99)
    text = (
        f"All columns together explain {share:.0%} of the variance that the {terms} kept leave to noise (F test: "
        f"p < {SUSPECT:g}). Columns left out matter, and {counted(m, 'row')} are too few to say which: do not take the "
        "terms kept for all that matter. To predict, fit all columns (with always_keep, or by ridge regression); to "
        "find which matter, add rows or leave out columns (python -m ardea.explain many_terms)."
    )
    return [(text, ManyTermsWarning)]


def has_noise(problem: Problem, fit: Fit) -> bool:
    """Whether errors are more than rounding."""
    return fit.noise > NoiseRule(low_floor=True).floor(problem) * (1 + 1e-9)


def _on_tiny_noise(problem: Problem, fit: Fit) -> list[Advice]:
    if has_noise(problem, fit):
        return _on_held_noise(problem, fit)
    text = (
        f"The terms explain y up to {np.sqrt(FLOOR_TALL):.0e} of its size. Below that, rounding errors decide: σ² is "
        "held there, and finer terms and intervals mean nothing. If y was computed without noise, ignore the "
        "intervals; else subtract from y what you know of it, and fit the rest (python -m ardea.explain tiny_noise)."
    )
    return [(text, TinyNoiseWarning)]


def _on_held_noise(problem: Problem, fit: Fit) -> list[Advice]:
    """Tell of σ² at the floor that columns in excess of the rows have, where a lower one led to a collapse."""
    floor = NoiseRule().floor(problem)
    if abs(fit.noise - floor) > 1e-9 * floor:
        return []
    text = (
        f"σ² is held at {FLOOR_WIDE:.0e} of the mean square of y: with more columns than rows, a smaller one would let "
        "this method interpolate the data. The noise may be smaller, and the intervals too wide. Use SparseARD, or "
        "give noise_variance (python -m ardea.explain collapse)."
    )
    return [(text, CollapseWarning)]


def _on_redundant_columns(coordinates: Coordinates, names: Sequence[str]) -> list[Advice]:
    if coordinates.flat.kept.size == 0:
        return []
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


# Values and rows that look like no readings


def _is_product(column: Array, X: Array) -> bool:
    """Whether a column is zero exactly where an indicator is, as a product with it is."""
    zero = column == 0
    same = X[:, ((X == 0) == zero[:, None]).all(axis=0)]
    return bool(zero.any() and (np.ptp(same[~zero], axis=0) == 0).any())


def readings_advice(rows: CheckedRows, names: Sequence[str], targets: Sequence[str]) -> list[Advice]:
    """Return what to tell of columns with codes for what is missing, and of a row of sums or means.

    Of rows only the first and the last are looked at, where spreadsheets put totals. With S_j the sum of column j over
    m rows, a row z is the sum of the others where 2z_j = S_j, and their mean where mz_j = S_j.
    """
    X, Y = rows.X, rows.Y
    if not isinstance(X, np.ndarray) or rows.ranges is None:
        return []
    low, high = np.concatenate([rows.ranges, ranges_of(Y)], axis=1)
    first = np.concatenate([X[:FIRST_ROWS], Y[:FIRST_ROWS]], axis=1)
    told = list(_on_codes(X, Y, first, low, high, [names, targets])) or list(_on_filled(X, Y, targets))
    if len(told) > NAMED:
        told = [*told[:NAMED], f"{len(told) - NAMED} more columns have such values"]
    if not told and len(X) >= FEWEST_ROWS and len(X) * low.size <= MOST_NUMBERS:
        told = [_on_ends(X, Y, first, low, high)]
    return [(f"{one} (python -m ardea.explain suspect_data).", SuspectDataWarning) for one in told if one]


def _on_codes(
    X: Array, Y: Array, first: Array, low: Array, high: Array, names: Sequence[Sequence[str]]
) -> Iterator[str]:
    edge, split = EDGE * (high - low), X.shape[1]
    suspect = ~np.logical_or.reduce((first > low + edge) & (first < high - edge), axis=0)
    suspect |= np.isin(-low, [1.0, *NINES])
    suspect |= (np.isin(low, ANSWERS) & (high <= MOST_POINTS)) | ((low == 1) & np.isin(high, ANSWERS))  # on a scale
    for j in np.flatnonzero(suspect):
        if _two_valued(first[:, j], low[j], high[j]):
            continue
        column, name = (X[:, j], names[0][int(j)]) if j < split else (Y[:, j - split], names[1][int(j) - split])
        codes = codes_of(column, lambda value, rows: rows > 1 or is_usual(value))
        if codes is not None and not _is_product(column, X):
            yield codes.told(name, "leave these rows out")


def _on_filled(X: Array, Y: Array, targets: Sequence[str]) -> Iterator[str]:
    """Say of which targets values were filled in between readings: on straight lines, or as the reading before.

    Numbers that are measured hardly ever lie on the line through their neighbours. Whole and rounded ones do, and
    repeat, but not in runs alone. Rows that repeat in most columns are copies.
    """
    for y, name in zip(Y.T, targets, strict=True):
        steps, least, m = np.diff(y), EPS_OF_LINES * float(np.abs(y).max(initial=0.0)), y.size
        moves = np.abs(steps) > least
        on_line = int(np.count_nonzero((np.abs(np.diff(steps)) <= least) & moves[1:] & moves[:-1]))
        runs = 1 + int(np.count_nonzero(moves))
        if not LEAST_FILLED * m < max(on_line, m - runs) < MOST_FILLED * m:
            continue
        if np.unique(y).size < max(DIFFERENT * runs, FEWEST_READ) or steps.min() >= 0 or steps.max() <= 0:  # sorted
            continue
        held = int(np.count_nonzero(~moves & (2 * (X[1:] != X[:-1]).sum(axis=1) > X.shape[1])))
        if max(on_line, held) > LEAST_FILLED * m:
            how = "on a straight line between their neighbours" if on_line > held else "the same as in the row before"
            yield (
                f"{max(on_line, held)} of {m} values of {name} are {how}, as if filled in between readings. Errors of "
                "such rows are not new ones: fit the rows that were read"
            )


def _two_valued(first: Array, low: Array, high: Array) -> NDArray[np.bool_]:
    """Whether the first rows have only the least and the greatest value, as those of indicators do."""
    return np.asarray(((first == low) | (first == high)).all(axis=0))


def _on_ends(X: Array, Y: Array, first: Array, low: Array, high: Array) -> str:
    """Return what is said of a first or last row that is the sum or the mean of the others in most columns."""
    m, ones = len(X), np.ones(len(X))  # a product with it is faster than a sum
    total, wide = np.concatenate([ones @ X, ones @ Y]), ROUNDED * m * (high - low)
    for row in (m - 1, 0):
        own = np.concatenate([X[row], Y[row]])
        # Runs at the centre of a design are repeated.
        if own.size > 2 and (np.abs(m * own - total) <= wide).all() and (X[row] == X).all(axis=1).sum() == 1:
            return _told_of_row(row, m, "the means of the others in all columns, and is no reading")
        at_end = (own == low) | (own == high)  # as a total is, unless signs are mixed
        if not np.count_nonzero(at_end):
            continue
        values = ~_two_valued(first, low, high)
        if 2 * (at_end & values).sum() > values.sum() > 1 and (said := _beyond(np.column_stack([X, Y]), row, total)):
            return _told_of_row(row, m, said)
    return ""


def _beyond(table: Array, row: int, total: Array) -> str:
    """Return in how many columns of more than two values a row is the sum of the others, or far from them."""
    own, rest = table[row], np.delete(table, row, axis=0)
    low, high = rest.min(axis=0), rest.max(axis=0)
    values = ~np.all((rest == low) | (rest == high), axis=0)
    added = values & (np.abs(2 * own - total) <= ROUNDED * np.abs(own)) & (own != 0)
    far = values & (np.maximum(low - own, own - high) > FAR_OUT * (high - low))
    n, sums, beyond = int(values.sum()), int(added.sum()), int((added | far).sum())
    if beyond < 2 or 2 * beyond <= n:
        return ""
    if 2 * sums > beyond:
        return f"the sums of the others in {sums} of {n} columns: it is no reading, and decides the fit"
    return f"values far from those of all other rows in {beyond} of {n} columns, and decides the fit"


def _told_of_row(row: int, m: int, what: str) -> str:
    return f"Row {row}, the {'first' if row == 0 else 'last'} of {m}, holds {what}. Leave it out of X and y"
