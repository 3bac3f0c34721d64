"""Rows whose errors are not independent and of equal size: how it is noticed, and how they are made so.

Let the errors of the rows have the covariance σ²V (`errors`). With LVLᵀ = I the rows L[1 X y] are independent and have
the noise variance σ² (generalised least squares); any method can be fitted to them. Terms and V are learned in turn:

1) given the terms, V from what they leave of y (`errors`);
2) given V, SparseARD on L[1 X y]; until the terms stay the same.

If there are several starts, the one of better evidence is taken, terms priced as in SparseARD.

In groups whose rows all have the same y errors are the same, too, and V is singular. Every group then counts as one
row, with the means of its columns.

What is left of y after a fit is tested for all this (`residuals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from ardea.core.compression import CompressedRows, digests, odd_numbers, ranges_of
from ardea.core.implicit import Operator
from ardea.core.lazy import compiled_module, numpy_is_asked_for
from ardea.core.loop import STATUS_ADVICE, Fit
from ardea.core.problem import EPS, TINY, Array, Index, Problem, require
from ardea.equation import CLOSE, Equation
from ardea.estimators.advice import (
    Advice,
    DependentRowsWarning,
    FewRowsWarning,
    PiledUpWarning,
    SuspectDataWarning,
    TwoValuesWarning,
    UnequalErrorsWarning,
    has_noise,
)
from ardea.estimators.errors import (
    Errors,
    GroupErrors,
    SeriesErrors,
    agreeing_groups,
    one_of_each_group,
)
from ardea.estimators.inputs import CheckedRows, RowKind, Whitened, dense
from ardea.estimators.residuals import (
    ALARM,
    FIRST_COLUMNS,
    MODEST,
    WORTH_A_WORD,
    Harm,
    basis_of,
    centred_groups,
    equal_pairs,
    far_rows,
    harm_between,
    harm_by_groups,
    harm_in_order,
    harm_within,
    may_share,
    piled_up,
    shared_values,
    stands_for_others,
    unusual,
)
from ardea.estimators.resting import MOST_OF_IT, unsupported
from ardea.estimators.sizes import GROSS_ROWS, false_terms_if_dealt, missing_product, unequal_sizes
from ardea.estimators.told import (
    few_groups_advice,
    told_of_bands,
    told_of_blocks,
    told_of_centred,
    told_of_copies,
    told_of_dependence,
    told_of_few,
    told_of_piles,
    told_of_product,
    told_of_sizes,
    told_of_two,
    told_of_value,
    told_of_worst,
)
from ardea.estimators.unequal import UnequalErrors, banded
from ardea.estimators.weights import copied_rows, weights_advice
from ardea.estimators.wild import wild_advice
from ardea.methods.task import Limits, Wish, tasks_of
from ardea.methods.task import sparse as sparse_ard
from ardea.rates import DEFAULT_FALSE_TERMS, rate_for

compiled = compiled_module("estimators._looks")

# The fewest rows tested: a convention.
FEWEST_TESTED = 20
# Square of a step, in units of its median, from which it may be a change of level, and the fewest blocks, and rows of
# each: conventions.
JUMP, FEWEST_BLOCKS = 3.0, 3
# R² that is worth a word (a convention): gross errors of y, and levels of a series, bring it just below zero.
BELOW_MEAN = -0.1
# Rows and columns that are looked at, so that large fits do not wait for it: conventions.
MOST_TESTED_ROWS, MOST_TESTED_COLUMNS = 2048, 64
# The terms stay the same after two or three rounds (measured); beyond this many they alternate between equals.
MOST_ROUNDS = 10
ERRORS: dict[RowKind, type[Errors]] = {"series": SeriesErrors, "groups": GroupErrors, "unequal": UnequalErrors}


# Rows made independent ------------------------------------------------------------------------------------------------


def independent_rows(
    rows: CheckedRows, kind: RowKind, intercept: bool, keep: Sequence[int], limits: Limits
) -> CheckedRows:
    """Return the rows as they are where they are told to be independent, else L times them, with L learned."""
    if kind != "independent":
        _check_rows(rows, kind)
    if kind == "independent" or len(rows.Y) < 2:
        return rows
    if kind == "unequal" and limits[0] is not None:
        raise ValueError("rows='unequal' learns how large errors are: leave noise_variance out.")
    if kind == "groups" and (means := agreeing_groups(rows)) is not None:
        return means
    given = rows, intercept, keep, limits
    tried = [_settled(first, *given) for first in ERRORS[kind].of(rows).starts(*_beside(rows, keep, intercept))]
    _, errors, terms = min(tried, key=lambda one: one[0])
    if (more := errors.refined()) is not None:
        _, errors, _ = _settled(more.learned(*_beside(rows, [*keep, *terms], intercept)), *given)
    return _times(errors, rows)


def _settled(
    errors: Errors, rows: CheckedRows, intercept: bool, keep: Sequence[int], limits: Limits
) -> tuple[float, Errors, list[int]]:
    """Learn terms and errors in turn until the terms stay the same; return their cost as well."""
    terms = [-1]  # none yet
    for _ in range(MOST_ROUNDS):
        problems, coordinates = _times(errors, rows).pose(intercept=intercept, keep=keep)
        (task,) = tasks_of(problems, coordinates, limits)
        fit = sparse_ard(task, Wish(false_terms=DEFAULT_FALSE_TERMS))
        if terms == (terms := fit.posterior.active.tolist()):
            break
        errors = errors.learned(*_beside(rows, [*keep, *terms], intercept))
    scale = coordinates.log_volume + 2 * task.problem.n_rows * np.log(coordinates.targets[0])
    return task.priced(fit, DEFAULT_FALSE_TERMS) + scale + 2 * errors.n_learned, errors, terms


def _check_rows(rows: CheckedRows, kind: RowKind) -> None:
    if isinstance(rows.X, CompressedRows | Operator):
        raise ValueError(
            f"rows={kind!r} needs rows in memory. Streams, Dask collections, compressed rows and operators do not have "
            "them: fit a part of the rows as an array."
        )
    if rows.Y.shape[1] != 1:
        raise ValueError(f"rows={kind!r} takes one target, whose errors it learns: fit one model per column of y.")
    if kind == "unequal" and rows.weight is not None and np.any(rows.weight != 1):
        raise ValueError("rows='unequal' takes no sample_weight: repeat the rows that count several times.")
    if kind == "unequal" and _two_values(rows.Y[:, 0]) is not None:
        raise ValueError(
            "y has only two values, and rows='unequal' would take the rarer one for gross errors: leave it out, or fit "
            "a logistic regression."
        )
    if kind == "series" and (rows.used is not None or (rows.weight is not None and np.any(rows.weight != 1))):
        raise ValueError("rows='series' takes no sample_weight: rows that count twice, or not at all, tear a series.")


def _beside(rows: CheckedRows, columns: Sequence[int], intercept: bool) -> tuple[Array, Array]:
    """Return an orthonormal basis of some columns and the constant, and y, in units of its largest value."""
    y, ones = rows.Y[:, 0], np.ones((rows.Y.shape[0], int(intercept)))
    chosen = dense(rows.X[:, sorted(set(columns))])
    basis = basis_of(ones, chosen / np.maximum(np.abs(chosen).max(axis=0, initial=0.0), TINY))
    return basis, y / max(float(np.abs(y).max()), TINY)


def _times(errors: Errors, rows: CheckedRows) -> CheckedRows:
    """Return L times the rows; the rows themselves where L = I."""
    if errors.independent:
        return rows
    m, d = rows.X.shape
    require(8 * 3 * m * d, f"{m} rows and {d} columns made independent")
    X = errors.whitened(dense(rows.X))
    how = Whitened(errors.whitened(np.ones(m)), errors.log_volume, errors.correlation, rows)
    v, Y = errors.inflation(X, how.constant), errors.whitened(errors.drawn_in(rows.Y))
    weight = np.full(m, 1 / v) if v * WORTH_A_WORD > 1 else rows.weight
    return replace(rows, X=X, Y=Y, weight=weight, ranges=ranges_of(X), whitened=how)


# The test -------------------------------------------------------------------------------------------------------------


def rows_advice(
    rows: CheckedRows, kind: RowKind, problem: Problem, fit: Fit, equation: Equation, target: int
) -> tuple[float, list[Advice]]:
    """Return the effective number of rows as they were given, and what to tell of rows that harm the fit.

    The number is NaN where no test can be trusted.
    """
    given, slips, apart = rows.given, list[Advice](), list[Advice]()
    if isinstance(given.X, np.ndarray) and given.weight is None and fit.status not in STATUS_ADVICE:
        far = far_rows(given.X, ranges_of(given.X) if given.ranges is None else given.ranges)
        slips, apart = wild_advice(given, far, kind, equation, target) if far.size else (slips, apart)
    if slips:  # alone: residuals that are odd may come from these rows
        return np.nan, slips + (_worse_than_mean(given, equation, target, kind) if kind == "unequal" else [])
    if centred := centred_groups(given.X, given.Y[:, target], given.groups):
        return given.total - centred, [(told_of_centred(centred, given.total), DependentRowsWarning)]
    alone = _alone(given, kind)
    if kind == "groups" and rows.weight is not given.weight:  # groups that agree
        rows = one_of_each_group(rows)
    given = rows.given
    number, told = _residuals_advice(rows, kind, problem, fit, equation, target)
    told = alone + (told or apart)
    if isinstance(given.X, CompressedRows | Operator) or fit.status in STATUS_ADVICE:
        return number, told
    if given.weight is not None and has_noise(problem, fit):
        told += weights_advice(given, equation, target)
    equal = equal_pairs(y := given.Y[:, target])
    if not equal[1]:
        return number, told
    if (place := stands_for_others(equal[0])) is not None:
        told = [(told_of_value(float(np.unique(y)[place]), int(equal[0][place]), y.size), SuspectDataWarning), *told]
    if any(piles := piled_up(equal[0])):
        told = [(told_of_piles(piles, y), PiledUpWarning), *told]
    if given.total <= equal[0].size * (1 + EPS * y.size) or (copies := copied_rows(given.X, y, equal)) is None:
        return number, told
    text = told_of_copies(copies, y.size, given.X.shape[1], equation.vocabulary.names)
    return np.fmin(number, given.total / copies.inflation), [(text, SuspectDataWarning), *told]


def _residuals_advice(
    rows: CheckedRows, kind: RowKind, problem: Problem, fit: Fit, equation: Equation, target: int
) -> tuple[float, list[Advice]]:
    """Return what the residuals tell: the effective number of rows, and what harms the fit."""
    given, total = rows.given, rows.given.total
    sound = fit.status not in STATUS_ADVICE and has_noise(problem, fit)
    untested = isinstance(given.X, CompressedRows) or len(given.Y) < FEWEST_TESTED
    if untested or not sound or problem.too_many(fit.posterior.active.size):
        return np.nan, []
    look = _look(rows, equation, target) if rows is given and rows.weight is None and rows.groups is None else None
    if look is not None:
        return total, _on_few_rows(rows, equation, target) if look.carried > MOST_OF_IT else []
    before = _sample(given, equation, target)
    after = before if rows is given else _sample(rows, equation, target)
    if before is None or after is None:
        return total, []
    harms, few = _harms(before), few_groups_advice(before.groups, before.columns) if kind == "groups" else []
    few += _worse_than_mean(given, equation, target, kind) if kind in ("series", "unequal") else []
    effective = min(rows.total, total / max([1.0, *(harm.inflation for harm in harms.values())]))
    for of, harm in (harms if rows is given else _harms(after)).items():
        if harm.chance < ALARM and harm.inflation * WORTH_A_WORD > 1:
            left = effective if rows is given else total / harm.inflation
            return effective, [*few, (told_of_dependence(of, harm, kind, total, left), DependentRowsWarning)]
    if (values := _two_values(given.Y[:, target])) is not None:
        return effective, [*few, _on_two_values(values, problem, after, equation)]
    if kind == "series" and given.groups is None and (breaks := _blocks(given, equation)).size:
        return effective, [*few, (told_of_blocks(breaks, total), DependentRowsWarning)]
    told = few + _sizes_advice(rows, kind, after, equation, target)
    return effective, told + _on_few_rows(rows, equation, target)


def _look(rows: CheckedRows, equation: Equation, target: int) -> Any:
    """Return one look at all statistics, compiled, where it shows that no test of errors will have anything to tell."""
    if compiled is None or numpy_is_asked_for() or rows.ranges is None:
        return None
    index, columns = _looked_at(rows, support := np.asarray(equation.kept.support, dtype=np.intp))
    few = columns[:, :FIRST_COLUMNS]  # rows may be replicates; one column, or a few, mostly say no
    if (_enough(few[:, 0]) and _enough(digests(few, odd_numbers(few.shape[1])))) or may_share(columns):
        return None
    y, rate = rows.Y[:MOST_TESTED_ROWS, target], rate_for(DEFAULT_FALSE_TERMS, rows.n_columns)
    some = index.size < rows.n_columns
    ranges, places = (rows.ranges[:, index], np.searchsorted(index, support)) if some else (rows.ranges, support)
    kept = places, equation.coefficients, equation.intercept or 0.0, y.size / rows.Y.shape[0]
    look = compiled.look(np.ascontiguousarray(columns), y, ranges, *kept, -float(special.ndtri(rate / 2)))
    ordinary = look is not None and not unusual(look, rate, compiled.neighbours, compiled.largest)
    return look if ordinary else None


def _on_two_values(values: tuple[float, float], problem: Problem, sample: Sample, equation: Equation) -> Advice:
    """Return what to tell of a target of two values: its errors are skewed, and only signs of normal ones random."""
    rate = equation.kept.rate or rate_for(DEFAULT_FALSE_TERMS, problem.n_candidates)
    leverage = np.einsum("ij,ij->i", sample.fitted, sample.fitted)
    excess = false_terms_if_dealt(sample.columns, sample.errors, leverage, rate)
    return told_of_two(*values, excess, rate * problem.n_candidates), TwoValuesWarning


def _sizes_advice(rows: CheckedRows, kind: RowKind, sample: Sample, equation: Equation, target: int) -> list[Advice]:
    """Return what to tell of errors of unequal size."""
    once = sample.distinct
    looked_at = sample.columns, sample.errors, sample.fitted, sample.predicted
    columns, errors, fitted, predicted = (one[once] for one in looked_at)
    rate = rate_for(DEFAULT_FALSE_TERMS, rows.n_columns)
    sizes = unequal_sizes(columns, errors, fitted, rate, sample.kept, predicted if sample.kept.size else None)
    if sizes.harmful and rows.given.weight is not None:  # which may say how precise a row is
        root = np.sqrt(rows.given.weight[sample.numbers[once]])
        as_precise = unequal_sizes(columns * root[:, None], errors * root, fitted, rate, sample.kept, None)
        sizes = sizes if as_precise.harmful else as_precise
    if sizes.gross.size and 2 * np.unique(rows.Y[:, target], return_counts=True)[1].max() > len(rows.Y):
        # Most of y is one value, as of rare counts: rows with another are no slips.
        sizes = sizes._replace(gross=sizes.gross[:0])
    names = equation.vocabulary.names
    if not sizes.harmful:
        band = banded(rows, sample.numbers, sample.places, sample.errors) if kind == "unequal" else None
        return [] if band is None else [(told_of_bands(names[sample.places[band]]), UnequalErrorsWarning)]
    if (found := missing_product(columns, errors, fitted, sample.kept)) is not None:
        one, other, share = found
        return [(told_of_product(names[sample.places[one]], names[sample.places[other]], share), UnequalErrorsWarning)]
    name = names[sample.places[sizes.column]]
    return [(told_of_sizes(sizes, name, kind, rows.numbers[sample.numbers[once]]), UnequalErrorsWarning)]


def _on_few_rows(rows: CheckedRows, equation: Equation, target: int) -> list[Advice]:
    """Return what to tell of terms that were chosen because of a few rows far out."""
    support = np.asarray(equation.kept.support, dtype=np.intp)
    chosen = np.searchsorted(support, equation.kept.active)  # both are in order
    if rows.given.weight is not None or not chosen.size or isinstance(rows.X, Operator):
        return []
    constant = np.ones(len(rows.Y)) if rows.constant is None else rows.constant
    columns, given = dense(rows.X[:, support]), dense(rows.given.X[:, support])
    two = np.array([_two_values(column) is not None for column in given.T])
    intercept = constant[:, None][:, : equation.intercept is not None]
    found = unsupported(columns, intercept, rows.Y[:, target], chosen, two)
    names = [equation.vocabulary.names[support[one.column]] for one in found]
    return [(told_of_few(found, names, rows.numbers), FewRowsWarning)] if found else []


def _two_values(y: Array) -> tuple[float, float] | None:
    """Return the two values of y, where it has no others."""
    low, high = float(y.min()), float(y.max())
    return (low, high) if low < high and y[-1] in (low, high) and bool(((y == low) | (y == high)).all()) else None


class Sample(NamedTuple):
    """Rows that are looked at."""

    columns: Array  # none of them constant
    places: Index  # which they are
    kept: Index  # which of them were kept
    errors: Array
    predicted: Array  # by the terms
    fitted: Array  # orthonormal columns that were fitted to the rows
    groups: Index | None
    ordered: bool  # whether the order of the rows may tell something
    within: bool  # whether that within groups may
    numbers: Index  # which rows they are, of those that count

    @property
    def distinct(self) -> Index:
        """Rows that differ, which those of a bootstrap do not: their errors are not independent."""
        ordered = np.sort(self.errors)
        if (ordered[1:] > ordered[:-1]).all():
            return np.arange(ordered.size)
        # Rows that differ may have the same error.
        cells = digests(np.column_stack([self.columns, self.errors]), odd_numbers(self.places.size + 1))
        return np.sort(np.unique(cells, return_index=True)[1])


def _sample(rows: CheckedRows, equation: Equation, target: int) -> Sample | None:
    """Return the first of the rows with some columns, those that were kept among them; None where too few differ.

    A row that is given several times is looked at once. If rows are sorted by y, so are their errors: their order tells
    nothing.
    """
    part, support = slice(0, MOST_TESTED_ROWS), np.asarray(equation.kept.support, dtype=np.intp)
    index, columns = _looked_at(rows, support)
    y, m = rows.Y[part, target], rows.Y.shape[0]
    low, high = ranges_of(columns) if rows.ranges is None or y.size < m else rows.ranges[:, index]
    largest, places = np.maximum(np.maximum(high, -low), TINY), np.searchsorted(index, support)
    kept = columns[:, places] / largest[places]
    if largest.max() > MODEST or largest.min() < 1 / MODEST:
        columns = columns / largest
    constant = np.ones(y.size) if rows.constant is None else rows.constant[part]
    predicted = kept @ (equation.coefficients * largest[places])
    errors = y - predicted - (equation.intercept or 0.0) * constant
    fitted = basis_of(constant, kept)
    if y.size < m:  # fitted to more rows than are looked at, they took less from these
        fitted *= np.sqrt(y.size / m)
    vary, steps, numbers = high > low, y[1:] - y[:-1], np.arange(y.size)
    if not steps.all():
        new = np.append(True, (steps != 0) | (columns[1:] != columns[:-1]).any(axis=1))
        every = numbers, columns, errors, predicted, fitted
        numbers, columns, errors, predicted, fitted = (one[new] for one in every)
    least, most = (float(errors.min()), float(errors.max())) if errors.size else (0.0, 0.0)
    if not vary.any() or errors.size < FEWEST_TESTED or least == most:
        return None
    if not vary.all():
        columns, index, places = columns[:, vary], index[vary], (np.cumsum(vary) - 1)[places[vary[places]]]
    errors = errors / max(most, -least)
    ordered = bool(steps.min() < 0 < steps.max())
    groups, within = None if rows.groups is None else rows.groups[numbers], ordered
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        steps = np.diff(y[numbers[order]])[groups[order][1:] == groups[order][:-1]]
        within = ordered and bool((steps < 0).any() and (steps > 0).any())
    return Sample(columns, index, places, errors, predicted, fitted, groups, ordered, within, numbers)


def _harms(sample: Sample) -> dict[str, Harm]:
    """Return what dependence by group, or of rows with equal columns, and in the order of the rows does."""
    looked_at, groups = (sample.columns, sample.errors, sample.fitted), sample.groups
    harms: dict[str, Harm] = {}
    if groups is not None:
        # First: a series says of groups that differ in level as well what is to be said, and not the other way round.
        if sample.within:
            harms["within"] = harm_within(*looked_at, groups)
        harms["groups"] = harm_by_groups(*looked_at, groups)
        if sample.ordered:
            harms["larger"] = harm_between(*looked_at, groups)
    else:
        cells = digests(sample.columns, odd_numbers(sample.places.size))
        same = digests(sample.errors[:, None], odd_numbers(1))
        # Not copies in y, too.
        if _enough(cells) and not _enough(cells ^ same):
            harms["replicates"] = harm_by_groups(*looked_at, np.unique(cells, return_inverse=True)[1])
        if not _enough(same):
            once = sample.distinct
            columns, errors, fitted = (one[once] for one in looked_at)
            if (shared := shared_values(columns)) is not None:
                harms["shared"] = harm_by_groups(columns, errors, fitted, shared)
    if sample.ordered:
        harms["order" if groups is None else "across"] = harm_in_order(*looked_at)
    return harms


def _enough(cells: Any) -> bool:
    """Whether so many pairs are equal that errors they share would be worth a word."""
    return equal_pairs(cells)[1] > (cells.size / WORTH_A_WORD - cells.size) / 2


def _looked_at(rows: CheckedRows, support: Index) -> tuple[Index, Array]:
    """Return the columns that are looked at, spread over all of them, with those that were kept; and their numbers."""
    X, n = rows.X, rows.n_columns
    index = np.arange(n)
    if n > MOST_TESTED_COLUMNS:
        index = np.union1d(np.linspace(0, n - 1, MOST_TESTED_COLUMNS).astype(np.intp), support)
    if isinstance(X, Operator):
        return index, X.take(index)[:MOST_TESTED_ROWS]
    part = X[:MOST_TESTED_ROWS] if index.size == n else X[:MOST_TESTED_ROWS, index]
    return index, np.asarray(part, dtype=float) if isinstance(part, np.ndarray) else dense(part)


def _worse_than_mean(rows: CheckedRows, equation: Equation, target: int, kind: RowKind) -> list[Advice]:
    """Return what to tell of terms that explain changes or most rows, while y is further off than its mean.

    If errors hardly forget those before, as those of a random walk or of a trend that is missing, the constant is told
    by the first rows alone. Rows far out hardly count where errors are of unequal size.
    """
    support, y = np.asarray(equation.kept.support, dtype=np.intp), rows.Y[:, target]
    if not support.size or equation.intercept is None:
        return []
    errors = y - dense(rows.X[:, support]) @ equation.coefficients - equation.intercept
    explained = 1 - float(errors @ errors) / max(float(np.sum((y - y.mean()) ** 2)), TINY)
    if explained >= BELOW_MEAN:
        return []
    if kind == "unequal":
        worst = np.argsort(-np.abs(errors))[:GROSS_ROWS]
        shares = errors[worst] ** 2 / float(errors @ errors)
        return [(told_of_worst(explained, shares, rows.numbers[worst]), UnequalErrorsWarning)]
    text = (
        "With rows='series' the terms explain how y changes from row to row, but predictions of y itself are further "
        f"off than its mean (R² = {explained:.2f} on the rows fitted). A trend, a season or another slow column is "
        "probably missing: add one, and do not predict with this model. If the rows are not in the order of time, "
        "leave rows= out (python -m ardea.explain dependent_rows)."
    )
    return [(text, DependentRowsWarning)]


def _blocks(rows: CheckedRows, equation: Equation) -> Index:
    """Return where columns change their levels, if rows that share one explain errors better than a series does."""
    steps = np.diff(_looked_at(rows, np.empty(0, dtype=np.intp))[1], axis=0)
    if len(steps) + 1 < len(rows.Y):
        return np.empty(0, dtype=np.intp)
    squares = (steps**2 / np.maximum((steps**2).mean(axis=0), TINY)).mean(axis=1)
    breaks = 1 + np.flatnonzero(squares > JUMP * np.median(squares))
    if not FEWEST_BLOCKS < breaks.size < len(rows.Y) / FEWEST_BLOCKS:
        return breaks[:0]
    flat, y = _beside(rows, equation.support, equation.intercept is not None)
    codes = np.searchsorted(breaks, np.arange(y.size), side="right")
    gains = [one.learned(flat, y).gain(flat, y) for one in (SeriesErrors.of(rows), GroupErrors(codes, np.ones(y.size)))]
    return breaks if gains[1] - gains[0] > CLOSE else breaks[:0]


def _alone(rows: CheckedRows, kind: RowKind) -> list[Advice]:
    """Return what to tell of labels that say nothing: all of them different, or (of groups) all the same."""
    if rows.groups is None or kind not in ("series", "groups"):
        return []
    sizes = GroupErrors.of(rows).sizes
    if sizes.max() > 1 and (sizes.size > 1 or kind == "series"):
        return []
    one = "the same label, and what they share is the intercept" if sizes.size == 1 else "different labels"
    text = (
        f"All {rows.groups.size} rows have {one}: rows={kind!r} changes nothing. Are these groups= those of the "
        "patient, batch or site? Else leave both out (python -m ardea.explain few_rows)."
    )
    return [(text, FewRowsWarning)]
