"""How unequal the sizes of errors of a fit are, and what that does to it.

If only the signs of the errors r were random, a column x that explains nothing would have a t-statistic of
variance v = Σ x²r²/(σ²Σ x²) and pass the cut z with probability 2Φ(−z/√v). Averaged over the columns this tells how
many false terms errors of these sizes let in: many where large errors fall on the rows that decide over a column,
because variance grows with it, because of single rows, or, over all ways to deal errors to rows, because of heavy
tails. Sizes are said to be unequal where that is much more than was asked for, or v of a kept column is large, and
normal errors of equal size would hardly ever grow as much with a column, with the distance of a row from the mean of
all columns or with what is predicted, or have as heavy tails. Rows of high leverage show little of their errors, since
they are fitted away; the test of growth knows how little. A few gross errors let no false terms in, but hide true ones:
they, too, are told, where they have most of all squares or stand apart from all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from scipy import linalg, special

from ardea.core.problem import EPS, Array, Index
from ardea.estimators.residuals import (
    ALARM,
    FAR,
    FAR_ALARM,
    FAR_ROWS,
    FEWEST_LEFT,
    MEDIAN,
    MOST_TAKEN,
    WORTH_GROSS,
    WORTH_SIZES,
    of_far_rows,
    tail,
    tail_of_kurtosis,
)

# Errors are shuffled over rows until so many false terms are expected: 13 % are then one deviation, and an excess of
# 1.6 four (derived). Of few among many columns, fewer shuffles would bring that excess by chance.
EXPECTED_HITS = 60
# How many rows (or which share of them) must have half of the squares to be a few gross errors, and from how many
# deviations on a row is one of them: conventions.
GROSS_ROWS, GROSS_SHARE, GROSS = 5, 0.02, 5.0
# The largest share of the rows that may stand apart, from how many deviations of the others on, what is not counted
# for these, the noise relative to theirs that is worth a word, and the chance of an alarm: conventions. Of 1,000 draws
# each of 40 to 600 errors five at most stand apart if they are normal, Laplace's, Student's with 2 to 4 degrees or
# negative binomial, of 40 up to 4 % if exponential, lognormal or χ² with one degree, 11 to 17 % if Cauchy's (measured).
MANY_GROSS, FAR_APART, LARGE, WORTH_APART, GROSS_ALARM = 0.2, 4.0, 3.0, 1.5, 0.003
# Deviations by which far rows must move estimates to be worth a word: a convention.
WORTH_MOVING = 2.0
# Chance of growth without the row that adds most to it counts so often (measured: errors of Student's t with five
# degrees then hardly ever alarm, and those that grow with a column no less often).
HEAVY = 0.03
# Rows for every column above which all columns are taken out of errors before their sizes are looked at: a convention.
ROWS_PER_COLUMN = 4
# Columns up to which all products of two are looked at, and the share of the errors that one must explain: conventions.
MOST_MULTIPLIED, MUCH = 40, 0.5
# Where columns are more, those that explain errors by so many standard deviations: a convention.
CLEARLY = 3.0


class Sizes(NamedTuple):
    """What errors of unequal size do to columns that explain nothing, and to intervals."""

    excess: float  # how many times as many false terms as equal sizes would let in; 1 where chance may do that
    of_kept: float  # the largest v of a column that was kept: intervals are √v times too narrow; 1 likewise
    chance: float  # probability of as unequal sizes where errors are normal; 1 where they do no harm
    column: int  # the column that suffers most
    inflation: float  # v of this column
    carried: float  # so many rows have most of it, (Σ x²r²)²/Σ x⁴r⁴
    noise: float  # the standard deviation of the noise relative to that of most rows
    gross: Index  # rows with gross errors, the largest first, where a few rows make the noise as large
    far: Index  # rows far out that contradict all others, the farthest first
    moved: float  # by how many of their deviations these move the estimates at most

    @property
    def harmful(self) -> bool:
        """Whether sizes are unequal beyond doubt, and harm."""
        return bool(self.gross.size or self.far.size or max(self.excess, self.of_kept) > WORTH_SIZES)


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

    Errors that grow with a column do harm by v; of those that are merely of heavy tails v says only which rows chance
    has dealt them to, and what counts is the mean over all ways to deal them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> incomes, nothing = rng.lognormal(size=(200, 4)), np.empty((200, 0))
    >>> unequal_sizes(incomes, rng.normal(size=200), nothing, 0.05).harmful
    False
    >>> found = unequal_sizes(incomes, incomes[:, 2] * rng.normal(size=200), nothing, 0.05)
    >>> found.column, found.chance < 1e-6, found.excess > 2
    (2, True, True)
    """
    m, leverage = errors.size, np.einsum("ij,ij->i", fitted, fitted)
    far, moved = _contradicting(errors, fitted, leverage)
    squares = errors**2 / np.maximum(1 - leverage, 1 - MOST_TAKEN)
    squares *= m / squares.sum()
    ones = np.ones(m)  # a product with it is faster than a sum
    shares = columns - ones @ columns / m
    np.square(shares, out=shares)
    scale = ones @ shares
    v = squares @ shares / scale
    cut = -float(special.ndtri(rate / 2))
    harm = 2 * float(special.ndtr(-cut / np.sqrt(np.maximum(v, EPS))).sum()) / (v.size * rate)
    of_kept = float(v[np.asarray(kept, dtype=np.intp)].max(initial=0.0))
    noise, gross, by_chance = _gross(errors)
    tails = growth = 1.0
    if max(harm, of_kept) > WORTH_SIZES or gross.size or _heavy_tails(errors) < ALARM:
        tails, growth = _chances(columns, shares * (m / scale), errors, fitted, predicted)
    harm, of_kept = (harm, of_kept) if growth < ALARM else (1.0, 1.0)
    if tails < ALARM:
        harm = max(harm, false_terms_if_dealt(columns, errors, leverage, rate))
    gross = gross[:0] if by_chance and min(tails, growth) >= ALARM else gross
    column = int(v.argmax())
    carried = shares[:, column] * squares
    carried_by = float(ones @ carried) ** 2 / float(carried @ carried)
    return Sizes(harm, of_kept, min(tails, growth), column, float(v[column]), carried_by, noise, gross, far, moved)


def missing_product(columns: Array, errors: Array, fitted: Array, kept: Index) -> tuple[int, int, float] | None:
    """Return the two columns whose product explains most of the errors, and its share; None where that may be chance.

    The variance of the coefficient of a product is that of the jackknife, whatever the sizes of errors. Of many columns
    all squares are looked at, and the products of those that were kept.
    """
    apart = columns - columns.mean(axis=0)
    one, other = np.triu_indices(columns.shape[1])
    if columns.shape[1] > MOST_MULTIPLIED:
        looked_at = (one == other) | (np.isin(one, kept) & np.isin(other, kept))
        one, other = one[looked_at], other[looked_at]
    products = apart[:, one] * apart[:, other] / np.abs(apart).max(axis=0)[one] / np.abs(apart).max(axis=0)[other]
    products -= fitted @ (fitted.T @ products)
    sums, squares = errors @ products, np.maximum((products**2).sum(axis=0), EPS)
    without = (errors[:, None] - products * (sums / squares)) / np.maximum(1 - products**2 / squares, 1 - MOST_TAKEN)
    variance = np.maximum(((products * without) ** 2).sum(axis=0), EPS**2)
    chances = 2 * one.size * special.ndtr(-np.abs(sums) / np.sqrt(variance))
    shares = np.where(chances < ALARM, sums**2 / squares / float(errors @ errors), 0.0)
    best = int(np.argmax(shares)) if shares.size else 0
    return (int(one[best]), int(other[best]), float(shares[best])) if shares.max(initial=0) > MUCH else None


def false_terms_if_dealt(columns: Array, errors: Array, leverage: Array, rate: float) -> float:
    """Return how many times as many false terms are kept over all ways to deal errors to rows as at some rate.

    `leverage` is the share that the fit took away of every square.
    """
    m, cut = errors.size, -float(special.ndtri(rate / 2))
    restored = errors / np.sqrt(np.maximum(1 - leverage, 1 - MOST_TAKEN))
    restored *= sqrt(m / float(restored @ restored))
    dealt = restored[_shuffled(m, ceil(EXPECTED_HITS / (rate * columns.shape[1])))]
    apart = columns - columns.mean(axis=0)
    return float((np.abs(dealt @ apart) > cut * np.linalg.norm(apart, axis=0)).mean() / rate)


@lru_cache(maxsize=1)
def _shuffled(m: int, shuffles: int) -> Index:
    """Return ways to deal m errors to rows, always the same: fits to as many rows and columns ask for them again."""
    return np.random.default_rng(0).permuted(np.tile(np.arange(m, dtype=np.intp), (shuffles, 1)), axis=1)


def _gross(errors: Array) -> tuple[float, Index, bool]:
    """Return the noise relative to that of most rows, the rows that alone make it so large, and whether chance may.

    They are few, and have half of all squares; or up to a fifth of the rows, which stand apart.
    """
    m, total, sizes = errors.size, float(errors @ errors), np.abs(errors)
    usual = max(float(np.partition(sizes, m // 2)[m // 2]) / MEDIAN, EPS * float(sizes.max()))
    noise, order = sqrt(total / m) / usual, np.argsort(-sizes)
    first = errors[order[: max(GROSS_ROWS, int(GROSS_SHARE * m))]]
    if noise >= WORTH_GROSS and 2 * float(first @ first) > total:
        return noise, order[: int((sizes > GROSS * usual).sum())], True
    beside, standing = standing_apart(errors)
    return (beside, standing, False) if standing.size else (noise, order[:0], True)


def standing_apart(errors: Array) -> tuple[float, Index]:
    """Return the noise relative to that of the other rows, and the rows that stand apart from these, if any do.

    In tails like x^−α the ratio of the k-th largest of all distances to the next is above r with the chance r^(−αk),
    whatever the scale: there is a gap behind the k largest where that is small for α = 2, times the number of k. Terms
    that are missing widen all errors alike and close no gap. Many errors of one sign move the mean: distances are from
    the median. The heaviest skewed errors have gaps, too, but their others are skewed; those of normal ones are not.
    """
    m, none = errors.size, np.empty(0, dtype=np.intp)
    distance = np.abs(errors - np.partition(errors, m // 2)[m // 2])
    scale = float(np.partition(distance, m // 2)[m // 2]) / MEDIAN
    scale = float(np.std(errors[distance <= LARGE * scale]))  # gross errors hardly widen it, as they do the median
    order, most = np.argsort(-distance), int(MANY_GROSS * m)
    largest = distance[order[: most + 1]]
    if scale <= EPS * largest[0] or most < 1:
        return 1.0, none
    chances = most * (largest[1:] / np.maximum(largest[:-1], EPS * largest[0])) ** (2 * np.arange(1, most + 1))
    k = 1 + int(np.argmin(np.where(largest[:-1] > FAR_APART * scale, chances, 1.0)))
    others = np.delete(errors, order[:k])
    centred = others - others.mean()
    square = float(np.mean(centred**2))
    if chances[k - 1] > GROSS_ALARM or square <= 0:
        return 1.0, none
    skewness = float(np.mean(centred**3)) / square**1.5
    noise, chance = sqrt(float(np.mean(distance**2)) / square), 2 * special.ndtr(-abs(skewness) * sqrt(others.size / 6))
    return (noise, order[:k]) if noise > WORTH_APART and chance > ALARM else (1.0, none)


def _contradicting(errors: Array, fitted: Array, leverage: Array) -> tuple[Index, float]:
    """Return the few rows of highest leverage, if a fit without them would predict something else there.

    Each of several such rows hides the others: together they draw a fit to themselves, and are left with small errors.
    With S the k rows of highest leverage, r = (I − FFᵀ)e and K = (I − FFᵀ)_SS, errors of predictions from all others
    are K⁻¹r_S. For normal errors that are equal, g = r_SᵀK⁻¹r_S and Σr² − g are χ² of k and m − q − k degrees, whatever
    the columns; with the Cholesky factor of K, g is a sum of k squares, for every k at once. Without S the estimates
    move by δ = F_SᵀK⁻¹r_S, each by |δ|/σ of its deviations at most.
    """
    m, q = fitted.shape
    far = np.flatnonzero(leverage > FAR * leverage.sum() / m)
    if far.size == 0:
        return far, 0.0
    far = far[np.argsort(-leverage[far], kind="stable")][: max(min(FAR_ROWS, m - q - FEWEST_LEFT), 0)]
    far = far[leverage[far] < MOST_TAKEN]
    if far.size == 0:
        return far, 0.0
    left = errors - fitted @ (fitted.T @ errors)
    root, info = linalg.lapack.dpotrf(np.eye(far.size) - fitted[far] @ fitted[far].T, lower=1)
    number = np.arange(1, (far.size if info == 0 else info - 1) + 1)
    parts, _ = linalg.lapack.dtrtrs(root[: number.size, : number.size], left[far[: number.size]], lower=1)
    theirs = np.cumsum(parts**2)
    noise, chances = of_far_rows(theirs, float(left @ left), m - q)
    best = int(np.argmin(chances))
    if chances[best] > FAR_ALARM:
        return far[:0], 0.0
    far, k = far[: best + 1], best + 1
    others = np.delete(left, far)
    kurtosis = max(3.0, others.size * float((others**4).sum()) / float(others @ others) ** 2)
    heavy = tail((theirs[best] / noise[best] - k) / sqrt(k * (kurtosis - 1)), sqrt(8 / k))
    shift = fitted[far].T @ linalg.cho_solve((root[:k, :k], True), left[far], check_finite=False)
    moved = float(np.linalg.norm(shift) / np.sqrt(noise[best]))
    return far if number.size * heavy < FAR_ALARM and moved > WORTH_MOVING else far[:0], moved


def _chances(
    columns: Array, shares: Array, errors: Array, fitted: Array, predicted: Array | None
) -> tuple[float, float]:
    """Return the chance of as heavy tails, and of as much growth with anything, where errors are normal and equal."""
    # What a dropped term does in straight lines is no error: that of all columns or, of many, of those that show it.
    basis = fitted / np.linalg.norm(fitted, axis=0)
    dropped = columns - basis @ (basis.T @ columns)
    size = np.linalg.norm(dropped, axis=0)
    free = size > np.sqrt(EPS) * np.linalg.norm(columns, axis=0)
    dropped = dropped[:, free] / size[free]
    if ROWS_PER_COLUMN * (dropped.shape[1] + fitted.shape[1]) > errors.size:
        dropped = dropped[:, np.abs(errors @ dropped) > CLEARLY * np.std(errors)]
    if dropped.shape[1] and ROWS_PER_COLUMN * (dropped.shape[1] + fitted.shape[1]) <= errors.size:
        fitted = np.linalg.qr(np.column_stack([fitted, dropped]))[0]
    errors = errors - fitted @ (fitted.T @ errors)
    grows_with = [shares.mean(axis=1), *([] if predicted is None else [np.abs(predicted - predicted.mean())])]
    growth = (np.sqrt(shares), *(normal_scores(one)[:, None] for one in grows_with))
    chances = [_grows(one, errors, fitted) for one in growth]
    number = 1 + len(chances)
    return number * _heavy_tails(errors), number * min(chances)


def normal_scores(x: Array) -> Array:
    """Return numbers as they would be if they were normal: their ranks, as quantiles of a normal distribution."""
    ordered = np.sort(x)
    below, up_to = (np.searchsorted(ordered, x, side=side) for side in ("left", "right"))
    return np.asarray(special.ndtri((below + up_to) / (2 * x.size)))


def _heavy_tails(errors: Array) -> float:
    """Return the chance of as large a kurtosis where errors are normal.

    With b = m₄/m₂² its mean and variance are 3(m − 1)/(m + 1) and 24m(m − 2)(m − 3)/((m + 1)²(m + 3)(m + 5)). Its cube
    root, from a reciprocal χ² of the same three moments, is nearly normal (Anscombe and Glynn, 1983).
    """
    m, centred = errors.size, errors - errors.sum() / errors.size
    square, squares = float(centred @ centred), centred**2
    return 1.0 if square <= 0 else tail_of_kurtosis(m * float(squares @ squares) / square**2, m)


def _grows(columns: Array, errors: Array, fitted: Array) -> float:
    """Return the chance of squared errors that grow as much with any of some columns where errors are normal.

    For sizes ln σ² = α + βz and small β the most powerful test is by T = Σ zr²/Σ r², with r = Me what a fit has left
    of the errors e, M = I − FFᵀ. T exceeds c if and only if eᵀAe > 0, A = M diag(a) M with a = z − c. For normal e of
    variance one this has the mean tr A, the variance 2 tr A² and the third moment 8 tr A³: its tail is that of a χ²
    with these. With the leverages h, the diagonal of FFᵀ, and G₁, G₂ = Fᵀdiag(a)F, Fᵀdiag(a²)F,

        tr A = Σ a(1 − h),   tr A² = Σ a²(1 − 2h) + ‖G₁‖²,   tr A³ = Σ a³(1 − 3h) + 3 tr G₁G₂ − tr G₁³.

    That is computed for the column that looks largest with (1 − h)² in the place of M's squares. One large error, as
    heavy tails have them, would pass for growth: it must show without the row that adds most. Several would beside many
    columns: squares must follow the column more than if they were dealt to the rows at random.
    """
    columns = columns[:, np.ptp(columns, axis=0) > np.sqrt(EPS)]  # not as where halves of the rows are 0 and 1
    square = float(errors @ errors)
    if columns.shape[1] == 0 or square <= 0:
        return 1.0
    leverage = (fitted**2).sum(axis=1)
    beyond = columns - errors**2 @ columns / square
    mean, variance = (1 - leverage) @ beyond, (1 - leverage) ** 2 @ beyond**2
    shown = variance > EPS * (beyond**2).sum(axis=0)  # not where a column differs only in rows that are fitted exactly
    j = int(np.argmin(np.where(shown, mean, 0.0) / np.sqrt(np.where(shown, variance, 1.0))))
    a = beyond[:, j]
    chance = columns.shape[1] * _tail_of_growth(a, leverage, fitted)
    if chance > ALARM:
        return min(chance, 1.0)
    rest = np.delete(np.arange(errors.size), np.argmax(a * errors**2))
    z, left = columns[rest, j], errors[rest]
    without = _tail_of_growth(z - left**2 @ z / (left @ left), leverage[rest], fitted[rest])
    apart, squares = columns[:, j] - columns[:, j].mean(), errors**2 - square / errors.size
    along = float(apart @ squares) / float(np.linalg.norm(apart) * np.linalg.norm(squares))
    dealt = columns.shape[1] * float(special.ndtr(-along * sqrt(errors.size - 1)))
    return min(1.0, max(chance, HEAVY * without, HEAVY * dealt))


def _tail_of_growth(a: Array, leverage: Array, fitted: Array) -> float:
    """Return P(eᵀAe > 0)."""
    first, second = (fitted.T @ (one[:, None] * fitted) for one in (a, a**2))
    squares = float(a**2 @ (1 - 2 * leverage) + (first**2).sum())
    cubes = float(a**3 @ (1 - 3 * leverage) + 3 * (first * second).sum() - (first @ first * first).sum())
    if squares <= EPS * float(a @ a):
        return 1.0
    mean = float((1 - leverage) @ a)
    return tail(-mean / sqrt(2 * squares), 8 * cubes / (2 * squares) ** 1.5)
