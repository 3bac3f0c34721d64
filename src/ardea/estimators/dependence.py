"""Rows whose errors are not independent and of equal size: how it is noticed, and how they are made so.

Let the errors of the rows have the covariance σ²V (`errors`). With LVLᵀ = I the rows L[1 X y] are independent and have
the noise variance σ² (generalised least squares); any method can be fitted to them. Terms and V are learned in turn:

1) given the terms, V from what they leave of y (`errors`);
2) given V, SparseARD on L[1 X y]; until the terms stay the same.

If there are several starts, the one of better evidence is taken, terms priced as in SparseARD.

*Dependence.* Rows are tested in their order and by group. Least squares gives the coefficient of a column x the
variance that independent errors would, times v = 1 + Σ ρ_e(s, t) ρ_x(s, t) over pairs of rows: dependence harms where
it is in the errors *and* in the columns. In order, v is the mean over frequencies of the product of two periodograms,
of the errors and of the columns (averaged), each of mean 1; by group it follows from the two intraclass correlations.
What the fitted terms took away from the errors, a share h of the power at a frequency if those are independent, is
given back. Rows are said to depend on each other where v is large and independent errors would hardly ever be as
correlated. For these, sums over pairs of rows are a quadratic form of random signs: its variance is known, whatever the
variances of the rows, and its tail is that of the χ² that has the skewness of its eigenvalues.

*Size.* If only the signs of the errors r were random, a column x that explains nothing would have a t-statistic of
variance v = Σ x²r²/(σ²Σ x²) and pass the cut z with probability 2Φ(−z/√v). Averaged over the columns this tells how
many false terms errors of these sizes let in: many where large errors fall on the rows that decide over a column,
because variance grows with it, because of single rows, or, over all ways to deal errors to rows, because of heavy
tails. Sizes are said to be unequal where that is much more than was asked for, or v of a kept column is large, and
normal errors of equal size would hardly ever grow as much with a column, with the distance of a row from the mean of
all columns or with what is predicted, or have as heavy tails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy import fft, sparse, special, stats

from ardea.core.compression import CompressedRows, ranges_of
from ardea.core.evidence import NoiseRule
from ardea.core.implicit import Operator
from ardea.core.loop import STATUS_ADVICE, Fit
from ardea.core.problem import EPS, Array, Index, Problem, require
from ardea.equation import Equation
from ardea.estimators.advice import Advice, DependentRowsWarning, FewRowsWarning, UnequalErrorsWarning
from ardea.estimators.errors import (
    LARGEST_ERROR,
    MOST_TAKEN,
    Errors,
    GroupErrors,
    SeriesErrors,
    UnequalErrors,
    normal_scores,
)
from ardea.estimators.inputs import CheckedRows, Whitened, dense
from ardea.methods.task import Task, Wish, tasks_of
from ardea.methods.task import sparse as sparse_ard
from ardea.names import printable
from ardea.rates import DEFAULT_FALSE_TERMS, rate_for

RowKind = Literal["independent", "series", "groups", "unequal"]
ROW_KINDS: tuple[RowKind, ...] = get_args(RowKind)
# Probability of an alarm where rows are independent and of equal size, the share of rows below which dependence is
# worth a word (intervals are then 10 % too narrow), and the fewest rows tested: conventions.
ALARM, WORTH_A_WORD, FEWEST_TESTED = 1e-3, 0.8, 20
# Rows k apart count 0.3ᵏ in the test (measured: of 0.1, 0.3, 0.5, 0.7 and the columns' own correlations it finds most
# series of 100 rows, since false terms imitate slow errors).
NEIGHBOURS = 0.3
# False terms relative to those asked for, and the variance of a coefficient relative to that of equal sizes (95 %
# intervals then hold 88 %), from which unequal sizes are worth a word; shuffles of errors over the rows for which false
# terms are counted: conventions.
WORTH_SIZES, SHUFFLES = 1.6, 20
# Fewest groups for columns that are constant within them: with 20 neither false terms nor intervals hold, with 80 both
# do (measured, `benchmarks.dependence`), and with 40 (150 fits each of 5, 20 and 50 columns) within 1.4 times and 90 %.
FEW_GROUPS = 40
# Rows for every column above which all columns are taken out of errors before their sizes are looked at: a convention.
ROWS_PER_COLUMN = 4
# Rows and columns that are looked at, so that large fits do not wait for it: conventions.
MOST_TESTED_ROWS, MOST_TESTED_COLUMNS = 4096, 64
# The terms stay the same after two or three rounds (measured); beyond this many they alternate between equals.
MOST_ROUNDS = 10
ERRORS: dict[RowKind, type[Errors]] = {"series": SeriesErrors, "groups": GroupErrors, "unequal": UnequalErrors}


# Rows made independent ------------------------------------------------------------------------------------------------


def independent_rows(
    rows: CheckedRows,
    kind: RowKind,
    intercept: bool,
    keep: Sequence[int],
    noise_variance: float | None,
    max_iter: int,
    tol: float,
) -> CheckedRows:
    """Return the rows as they are where they are told to be independent, else L times them, with L learned."""
    if kind == "independent":
        return rows
    _check_rows(rows, kind)
    if kind == "unequal" and noise_variance is not None:
        raise ValueError("rows='unequal' learns how large errors are: leave noise_variance out.")
    given = rows, intercept, keep, noise_variance, max_iter, tol
    tried = [_settled(first, *given) for first in ERRORS[kind].of(rows).starts(*_beside(rows, keep, intercept))]
    _, errors, terms = min(tried, key=lambda one: one[0])
    if (more := errors.refined()) is not None:
        _, errors, _ = _settled(more.learned(*_beside(rows, [*keep, *terms], intercept)), *given)
    return _times(errors, rows)


def _settled(
    errors: Errors,
    rows: CheckedRows,
    intercept: bool,
    keep: Sequence[int],
    noise_variance: float | None,
    max_iter: int,
    tol: float,
) -> tuple[float, Errors, list[int]]:
    """Learn terms and errors in turn until the terms stay the same; return their cost as well."""
    terms = [-1]  # none yet
    for _ in range(MOST_ROUNDS):
        problems, coordinates = _times(errors, rows).pose(intercept=intercept, keep=keep)
        (task,) = tasks_of(problems, coordinates, noise_variance, max_iter, tol)
        fit = sparse_ard(task, Wish(false_terms=DEFAULT_FALSE_TERMS))
        if terms == (terms := fit.posterior.active.tolist()):
            break
        errors = errors.learned(*_beside(rows, [*keep, *terms], intercept))
    scale = coordinates.log_volume + 2 * task.problem.n_rows * np.log(coordinates.targets[0])
    return _cost(task, fit) + scale + 2 * errors.correlation.size, errors, terms


def _cost(task: Task, fit: Fit) -> float:
    """Return −2 ln(evidence) with terms priced as in the elimination of SparseARD."""
    k = fit.posterior.active.size
    excess = task.excess(DEFAULT_FALSE_TERMS, k)
    return float(fit.posterior.cost + k * (excess - np.log1p(excess)))


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
    if kind == "series" and (rows.used is not None or (rows.weight is not None and np.any(rows.weight != 1))):
        raise ValueError("rows='series' takes no sample_weight: rows that count twice, or not at all, tear a series.")


def _beside(rows: CheckedRows, columns: Sequence[int], intercept: bool) -> tuple[Array, Array]:
    """Return an orthonormal basis of some columns and the constant, and y, in units of its largest value."""
    y, ones = rows.Y[:, 0], np.ones((rows.Y.shape[0], int(intercept)))
    basis = _basis(np.column_stack([ones, dense(rows.X[:, sorted(set(columns))])]))
    return basis, y / max(float(np.abs(y).max()), np.finfo(float).tiny)


def _basis(columns: Array) -> Array:
    """Return orthonormal columns of the same span."""
    scale = np.abs(columns).max(axis=0, initial=0.0)
    basis, size, _ = np.linalg.svd(columns / np.where(scale > 0, scale, 1.0), full_matrices=False)
    return np.asarray(basis[:, size > size.max(initial=0.0) * np.sqrt(EPS)])


def _times(errors: Errors, rows: CheckedRows) -> CheckedRows:
    """Return L times the rows; the rows themselves where L = I."""
    if errors.independent:
        return rows
    m, d = rows.X.shape
    require(8 * 3 * m * d, f"{m} rows and {d} columns made independent")
    X = errors.whitened(dense(rows.X))
    how = Whitened(errors.whitened(np.ones(m)), errors.log_volume, errors.correlation, rows)
    return replace(rows, X=X, Y=errors.whitened(errors.drawn_in(rows.Y)), ranges=ranges_of(X), whitened=how)


# The test -------------------------------------------------------------------------------------------------------------


class Harm(NamedTuple):
    """How dependence changes variances of coefficients, on average over the columns."""

    inflation: float  # v
    chance: float  # probability of as large a v where rows are independent
    correlation: float  # of the errors: of neighbours, or within a group


def harm_in_order(columns: Array, errors: Array, fitted: Array) -> Harm:
    """Return what dependence between rows that are near each other does.

    Parameters
    ----------
    columns : array of shape (m, d)
        Columns of the model, none of them constant.
    errors : array of shape (m,)
        Residuals, in the order of the rows.
    fitted : array of shape (m, q)
        Orthonormal columns that were fitted to the same rows.

    Returns
    -------
    Harm

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> walks, nothing = np.cumsum(rng.normal(size=(200, 4)), axis=0), np.empty((200, 0))
    >>> harm_in_order(walks, rng.normal(size=200), nothing).chance > 0.01
    True
    >>> harm_in_order(walks, np.cumsum(rng.normal(size=200)), nothing).chance < 1e-6
    True
    """
    m, errors = errors.size, errors - errors.mean()
    square = float(errors @ errors)
    taken = (np.abs(fft.fft(fitted, axis=0)) ** 2).sum(axis=1) / m
    own = _of_mean_one(np.abs(fft.fft(errors)) ** 2 / (1 - np.minimum(taken, MOST_TAKEN)))
    power = _of_mean_one(np.abs(fft.fft(columns, axis=0)) ** 2).mean(axis=1)
    near = _of_mean_one(np.abs(1 - NEIGHBOURS * np.exp(2j * np.pi * np.arange(m) / m)) ** -2)
    products = fft.ifft(np.abs(fft.fft(errors**2)) ** 2).real  # Σ_t e²_t e²_{t+k}
    variance = 2 * float(fft.ifft(near).real[1:] ** 2 @ products[1:]) / square**2
    eigenvalues = near[1:] - 1
    squares, cubes = float((eigenvalues**2).sum()), float((eigenvalues**3).sum())
    chance = _tail(float(near @ own) / (m - 1) - 1, variance, squares, cubes)
    return Harm(float(power @ own) / (m - 1), chance, float(errors[1:] @ errors[:-1]) / square)


def _of_mean_one(power: Array) -> Array:
    """Return powers at all frequencies, divided by their mean; none at frequency zero."""
    power[0] = 0.0
    return np.asarray(power * (len(power) - 1) / power.sum(axis=0))


def harm_by_groups(columns: Array, errors: Array, fitted: Array, codes: Index) -> Harm:
    """Return what dependence between rows of one group does; see `harm_in_order`."""
    errors, columns = errors - errors.mean(), columns - columns.mean(axis=0)
    m, square = errors.size, float(errors @ errors)
    sizes = np.bincount(codes).astype(float)
    pairs, triples = float((sizes * (sizes - 1)).sum()), float((sizes * (sizes - 1) * (sizes - 2)).sum())
    if pairs == 0:
        return Harm(1.0, 1.0, 0.0)
    together = sparse.csr_array((np.ones(codes.size), (codes, np.arange(codes.size))))

    def products(block: Array) -> Array:
        """Return the sum of products of two rows of one group."""
        return np.asarray(((together @ block) ** 2).sum(axis=0) - (block**2).sum(axis=0))

    taken = float(products(fitted).sum()) * square / (m - fitted.shape[1])
    found = float(products(errors[:, None])[0]) + taken
    chance = _tail(found, 2 * float(products(errors[:, None] ** 2)[0]), pairs, triples)
    correlation = found * m / (pairs * square)
    of_columns = float(np.mean(products(columns) * m / (pairs * (columns**2).sum(axis=0))))
    return Harm(1 + pairs / m * correlation * of_columns, chance, correlation)


def _tail(value: float, variance: float, squares: float, cubes: float) -> float:
    """Return the chance of a larger quadratic form of mean 0 whose eigenvalues have these sums of squares and cubes."""
    if variance <= 0:
        return 1.0
    z = value / np.sqrt(variance)
    if cubes <= 0:
        return float(special.ndtr(-z))
    degrees = squares**3 / cubes**2
    return float(special.chdtrc(degrees, max(degrees + z * np.sqrt(2 * degrees), 0.0)))


class Sizes(NamedTuple):
    """What errors of unequal size do to columns that explain nothing, and to intervals."""

    excess: float  # how many times as many false terms as equal sizes would let in
    chance: float  # probability of as unequal sizes where errors are normal
    column: int  # the column that suffers most
    inflation: float  # v of this column
    carried: float  # so many rows have most of it, (Σ x²r²)²/Σ x⁴r⁴
    of_kept: float  # the largest v of a column that was kept: intervals are √v times too narrow

    @property
    def harmful(self) -> bool:
        """Whether sizes are unequal beyond doubt, and harm."""
        return self.chance < ALARM and max(self.excess, self.of_kept) > WORTH_SIZES


def unequal_sizes(
    columns: Array,
    errors: Array,
    fitted: Array,
    rate: float,
    kept: Sequence[int] | Index = (),
    predicted: Array | None = None,
) -> Sizes:
    """Return how many times as many false terms errors of these sizes let in; see `harm_in_order`.

    `rate` is the probability with which a column that explains nothing is to be kept, `kept` says which columns were,
    and `predicted` what they predict. The fit took a share h of every error away: errors are divided by √(1 − h).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> incomes, nothing = rng.lognormal(size=(200, 4)), np.empty((200, 0))
    >>> unequal_sizes(incomes, rng.normal(size=200), nothing, 0.05).chance > 0.01
    True
    >>> found = unequal_sizes(incomes, incomes[:, 2] * rng.normal(size=200), nothing, 0.05)
    >>> found.column, found.chance < 1e-6, found.excess > 2
    (2, True, True)
    """
    if ROWS_PER_COLUMN * (columns.shape[1] + fitted.shape[1]) <= errors.size:
        # What a term that was dropped does in straight lines is no error.
        fitted = np.linalg.qr(np.column_stack([fitted, columns]))[0]
        errors = errors - fitted @ (fitted.T @ errors)
    squares = errors**2 / _left(fitted)
    squares /= squares.mean()
    shares = (columns - columns.mean(axis=0)) ** 2
    shares /= shares.mean(axis=0)
    grows_with = [shares.mean(axis=1), *([] if predicted is None else [(predicted - predicted.mean()) ** 2])]
    growth = (np.minimum(shares, LARGEST_ERROR**2), *(normal_scores(one[:, None]) for one in grows_with))
    tails = float(stats.kurtosistest(errors, alternative="greater").pvalue)
    chance = min(1.0, (len(growth) + 1) * min(tails, *(_grows(one, squares, fitted) for one in growth)))
    cut, rng = -special.ndtri(rate / 2), np.random.default_rng(0)

    def excess(v: Array) -> float:
        return float(2 * special.ndtr(-cut / np.sqrt(np.maximum(v, EPS))).mean() / rate)

    v = squares @ shares / errors.size
    others = rng.permuted(np.tile(squares, (SHUFFLES, 1)), axis=1) if chance < ALARM else squares[None]
    column = int(np.argmax(v))
    carried = shares[:, column] * squares
    harm = max(excess(v), excess(others @ shares / errors.size))
    of_kept = float(v[np.asarray(kept, dtype=np.intp)].max(initial=0.0))
    return Sizes(harm, chance, column, float(v[column]), float(carried.sum() ** 2 / (carried @ carried)), of_kept)


def _left(fitted: Array) -> Array:
    """Return the share 1 − h that a fit left of the variance of every error."""
    return np.maximum(1 - (fitted**2).sum(axis=1), 1 - MOST_TAKEN)


def _grows(columns: Array, squares: Array, fitted: Array) -> float:
    """Return the chance of squared errors that grow as much with any of some columns where they are independent.

    Over all ways to deal squares s to the rows, T = Σ zs of centred z and s has the mean 0, the variance
    Σ z² Σ s²/(m − 1) and the third moment Σ z³ Σ s³ m/((m − 1)(m − 2)): its tail is that of the gamma distribution with
    these. Squares, and columns, are bounded, for which it holds far out. By a fit that took QQᵀ away errors became
    correlated by ρ, and their squares by ρ²: the variance is then at most Σᵢ zᵢ²(1 + Σⱼ ρᵢⱼ²)/Σ z² times as large.
    """
    columns = columns[:, np.ptp(columns, axis=0) > np.sqrt(EPS)]  # not as where halves of the rows are 0 and 1
    if columns.shape[1] == 0 or np.ptp(squares) <= np.sqrt(EPS):
        return 1.0
    m, squares, left = squares.size, np.minimum(squares, LARGEST_ERROR**2), _left(fitted)
    z, s = columns - columns.mean(axis=0), squares - squares.mean()
    products = (fitted @ (fitted.T @ (fitted / left[:, None])) * fitted).sum(axis=1)  # Σⱼ (QQᵀ)ᵢⱼ²/(1 − hⱼ)
    correlated = (products - (1 - left) ** 2 / left) / left
    variance = (z**2 * (1 + correlated[:, None])).sum(axis=0) * (s @ s) / (m - 1)
    skewness = (z**3).sum(axis=0) * (s**3).sum() * m / ((m - 1) * (m - 2)) / variance**1.5
    return float(min(1.0, stats.pearson3.sf(s @ z / np.sqrt(variance), skewness).min() * z.shape[1]))


def rows_advice(
    rows: CheckedRows, kind: RowKind, problem: Problem, fit: Fit, equation: Equation, target: int
) -> tuple[float, list[Advice]]:
    """Return the effective number of rows as they were given, and what to tell of rows that harm the fit.

    The number is NaN where no test can be trusted.
    """
    given = rows if rows.whitened is None else rows.whitened.original
    m, in_memory = given.Y.shape[0], not isinstance(given.X, CompressedRows)
    total = float(m if given.weight is None else given.weight.sum())
    sound = fit.status not in STATUS_ADVICE and fit.noise > NoiseRule(low_floor=True).floor(problem) * (1 + 1e-9)
    if not (in_memory and sound and m >= FEWEST_TESTED) or problem.too_many(fit.posterior.active.size):
        return np.nan, []
    before, after = (_sample(one, equation, target) for one in (given, rows))
    if before is None or after is None:
        return total, []
    harms, few = _harms(before), _few_groups(before) if kind == "groups" else []
    effective = total / max([1.0, *(harm.inflation for harm in harms.values())])
    for of, harm in (harms if rows is given else _harms(after)).items():
        if harm.chance < ALARM and harm.inflation * WORTH_A_WORD > 1:
            left = effective if rows is given else total / harm.inflation
            return effective, [*few, (_told(of, harm, kind, total, left), DependentRowsWarning)]
    once = after.distinct
    looked_at = after.columns[once], after.errors[once], after.fitted[once]
    kept = np.flatnonzero(np.isin(after.places, equation.kept.support))
    rate, predicted = rate_for(DEFAULT_FALSE_TERMS, rows.n_columns), after.predicted[once] if kept.size else None
    sizes = unequal_sizes(*looked_at, rate, kept, predicted)
    if sizes.harmful:
        name = equation.vocabulary.names[after.places[sizes.column]]
        return effective, [*few, (_told_of_sizes(sizes, name, kind), UnequalErrorsWarning)]
    return effective, few


class Sample(NamedTuple):
    """Rows that are looked at."""

    columns: Array  # none of them constant
    places: Index  # which they are
    errors: Array
    predicted: Array  # by the terms
    fitted: Array  # orthonormal columns that were fitted to the rows
    groups: Index | None
    ordered: bool  # whether the order of the rows may tell something

    @property
    def distinct(self) -> Index:
        """Rows that differ, which those of a bootstrap do not: their errors are not independent."""
        key = np.column_stack([self.columns, self.errors]) @ np.random.default_rng(0).normal(size=self.places.size + 1)
        return np.sort(np.unique(key, return_index=True)[1])


def _sample(rows: CheckedRows, equation: Equation, target: int) -> Sample | None:
    """Return the first of the rows with some columns, those that were kept among them; None where too few differ.

    A row that is given several times is looked at once. If rows are sorted by y, so are their errors: their order tells
    nothing.
    """
    part, support = slice(0, MOST_TESTED_ROWS), np.array(equation.kept.support, dtype=np.intp)
    index = np.union1d(_spread(rows.n_columns), support)
    columns, kept = (_columns_of(rows, some)[part] for some in (index, support))
    y, constant = rows.Y[part, target], np.ones(columns.shape[0])
    if rows.whitened is not None:
        constant = rows.whitened.constant[part]
    predicted = kept @ equation.coefficients
    errors = y - predicted - (equation.intercept or 0.0) * constant
    new = np.append(True, (np.diff(columns, axis=0) != 0).any(axis=1) | (np.diff(y) != 0))
    index, steps = index[np.ptp(columns, axis=0) > 0], np.diff(y)
    columns = columns[:, np.ptp(columns, axis=0) > 0][new]
    if columns.shape[1] == 0 or new.sum() < FEWEST_TESTED or np.ptp(errors[new]) == 0:
        return None
    columns, errors = columns / np.abs(columns).max(axis=0), errors[new] / np.abs(errors).max()
    # Fitted to more rows than are looked at, they took less from these.
    fitted = (_basis(np.column_stack([constant, kept])) * np.sqrt(y.size / rows.Y.shape[0]))[new]
    groups = None if rows.groups is None else rows.groups[part][new]
    return Sample(
        columns, index, errors, predicted[new], fitted, groups, not (np.all(steps >= 0) or np.all(steps <= 0))
    )


def _harms(sample: Sample) -> dict[str, Harm]:
    """Return what dependence by group, where there are any, and in the order of the rows does."""
    looked_at = sample.columns, sample.errors, sample.fitted
    harms = {} if sample.groups is None else {"groups": harm_by_groups(*looked_at, sample.groups)}
    return harms | {"order": harm_in_order(*looked_at)} if sample.ordered else harms


def _spread(n_columns: int) -> Index:
    return np.unique(np.linspace(0, n_columns - 1, MOST_TESTED_COLUMNS).astype(np.intp))


def _columns_of(rows: CheckedRows, index: Index) -> Array:
    X = rows.X
    return X.take(index) if isinstance(X, Operator) else dense(X[:MOST_TESTED_ROWS, index])


def _told(of: str, harm: Harm, kind: RowKind, total: float, effective: float) -> str:
    """Return a warning with what to do."""
    where = "rows of one group" if of == "groups" else "neighbouring rows"
    left = "" if kind == "independent" else f" after rows={kind!r} has been applied"
    do: dict[RowKind, str] = {
        "independent": "Use rows='groups'."
        if of == "groups"
        else "If the rows are in the order of time, use rows='series'; if they come in blocks, say which with groups= "
        "and use rows='groups'.",
        "series": "Add columns for a trend or a season, if there may be one, or take fewer rows per unit of time.",
        "groups": "If the rows are in the order of time, use rows='series'.",
        "unequal": "Errors that depend on each other harm more: use rows='series' or rows='groups' instead.",
    }
    curved = "A term that is missing, the square of a slow column for example, looks the same (plot_residuals())."
    return (
        f"Errors of {where} are correlated ({harm.correlation:.2f}){left}, and so are the columns: {total:g} rows tell "
        f"about as much as {effective:.0f} independent ones. More false terms than asked for are kept, and intervals "
        f"are too narrow. {do[kind]} {curved} (docs/warnings/dependent_rows)"
    )


def _few_groups(sample: Sample) -> list[Advice]:
    """Return what to tell of columns that are constant within few groups."""
    if sample.groups is None:
        return []
    labels, first, codes = np.unique(sample.groups, return_index=True, return_inverse=True)
    constant = int(np.all(sample.columns == sample.columns[first][codes], axis=0).sum())
    if constant == 0 or labels.size >= FEW_GROUPS:
        return []
    text = (
        f"{constant} of the columns are constant within groups, so that {labels.size} groups tell about them as much "
        f"as {labels.size} rows: more false terms than asked for may be kept among them, and their intervals are too "
        "narrow. "
        f"From {FEW_GROUPS} groups on both hold. Add groups, or leave such columns out. (docs/warnings/few_rows)"
    )
    return [(text, FewRowsWarning)]


def _told_of_sizes(sizes: Sizes, name: str, kind: RowKind) -> str:
    """Return a warning with what to do."""
    left = "" if kind == "independent" else f" after rows={kind!r} has been applied"
    do = "Use rows='unequal', or take" if kind == "independent" else "Take"
    more = f"About {sizes.excess:.2g} times as many false terms as asked for may be kept, and intervals"
    harm = f"{more if sizes.excess > WORTH_SIZES else 'Intervals'} are too narrow."
    return (
        f"Errors are of unequal size{left}. In the rows that decide over {printable(name)} their variance is "
        f"{sizes.inflation:.2g} times the mean, and about {max(sizes.carried, 1.0):.0f} rows carry it. {harm} "
        f"{do} logarithms of what varies over orders of magnitude; look at the largest residuals (plot_residuals()), "
        "and mend or drop rows that are wrong. (docs/warnings/unequal_errors)"
    )
