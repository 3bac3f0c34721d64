"""What the residuals of a fit tell: errors of rows that depend on each other; of unequal sizes, `sizes` tells.

*Dependence.* Rows are tested in their order, by group, and in their order within groups. Least squares gives the
coefficient of a column x the variance that independent errors would, times v = 1 + Σ ρ_e(s, t) ρ_x(s, t) over pairs of
rows: dependence harms where it is in the errors *and* in the columns. In order, v is the mean over frequencies of the
product of two periodograms, of the errors and of the columns (averaged), each of mean 1; by group it follows from the
two intraclass correlations. What the fitted terms took away from the errors, a share h of the power at a frequency if
those are independent, is given back. Rows are said to depend on each other where v is large and independent errors
would hardly ever be as correlated. For these, sums over pairs of rows are a quadratic form of random signs: its
variance is known, whatever the variances of the rows (for neighbours bounded by the kurtosis, which dependence leaves
alone), and its tail is that of the χ² that has the skewness of its eigenvalues. In order there are two such sums: one
of all pairs of rows that are near each other, and, for seasons, the largest of those of all pairs that are k apart, k
up to a third of the rows. The first counts three times: as it is, with every other sign turned, and for neighbours that
differ alone, as differences do. The signs of products of rows k apart are independent: its tail is normal at most,
times the number of k. Neighbours within a group are compared with all orders of its rows, since rows of a group may be
alike without being a series.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import copysign, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, linalg, sparse, special

from ardea.core.problem import EPS, TINY, Array, Index
from ardea.estimators.advice import FIRST_ROWS, MOST_NUMBERS

# Probability of an alarm where rows are independent and of equal size: a convention.
ALARM = 1e-3
# Chance above which rows count as independent, and v as 1: a convention. It saves a look at the columns.
PERHAPS = 0.05
# Lags are looked at up to this share of the rows (a convention): a season must have been seen three times.
LONGEST_LAG = 1 / 3
# A season is the first lag with so much of the largest z (a convention): its multiples are correlated, too.
AS_LARGE = 0.7
# Rows k apart count 0.3ᵏ in the test (measured: of 0.1, 0.3, 0.5, 0.7 and the columns' own correlations it finds most
# series of 100 rows, since false terms imitate slow errors).
NEIGHBOURS = 0.3
# False terms relative to those asked for, and the variance of a coefficient relative to that of equal sizes (95 %
# intervals then hold 88 %), from which unequal sizes are worth a word: conventions.
WORTH_SIZES = 1.6
# Deviation of the noise relative to that of most rows from which a few gross errors are worth a word: a convention.
WORTH_GROSS = 2.0
# How many rows are looked at, from how many times the mean leverage on they are far out (the usual convention), and the
# fewest degrees of freedom left without them: conventions.
FAR_ROWS, FAR, FEWEST_LEFT = 10, 3.0, 5
# Probability of an alarm about them, if the ten numbers of rows were ten tests; they are about three (measured).
FAR_ALARM = 5e-3
# The median of |N(0,1)|.
MEDIAN = float(special.ndtri(0.75))
# Share of an error, or of the power at a frequency, that a fit may take away and that is made up for: a convention.
MOST_TAKEN = 0.95
# Fourth powers of columns within this size, and its inverse, are numbers.
MODEST = 1e70
# Reciprocal condition of a Gram matrix from which on an orthonormal basis has ten digits: 1e6 roundings.
WELL_CONDITIONED = 1e-6
# Sums in another order differ by less than this share: what comes as near to a limit is computed once more.
MARGIN = 1e-6
# The share of rows below which dependence is worth a word: intervals are then 10 % too narrow (a convention).
WORTH_A_WORD = 0.8
# Columns whose digests are looked at before those of all: a convention.
FIRST_COLUMNS = 4
# Pairs of equal rows for every pair that is equal in part from which on rows are copies, and the fewest: a convention.
# If both kinds of pairs were equally likely, as many of the one and none of the other would come by chance of 2⁻¹⁰.
MOSTLY = 10
# Share of the rows at one end of y from which a pile is worth a word, and the fewest values between both ends, so that
# a scale of few steps has no piles: conventions.
PILED_SHARE, FEWEST_BETWEEN = 0.05, 10
# Fewest groups whose rows add up to zero, and the least share of the rows that they are: conventions.
FEWEST_CENTRED, CENTRED_SHARE = 5, 0.05
# Fewest groups that are looked at as a series, and the share of its variation that is between groups from which on a
# column is one of theirs: conventions.
FEWEST_GROUPS, MOSTLY_BETWEEN = 20, 0.5
# Columns of more values than these that repeat may be those of a site that has many rows, where cells are at most such
# a share of the rows. Columns that are looked at, and how many times the cells of one those of two may be: conventions.
FEWEST_VALUES, SHARED, MOST_TRIED, NESTED = 4, 0.5, 16, 1.5
# Squared range of a column, in units of its variance and of ln m, from which it is looked at: that of m normal numbers
# is hardly ever above, and at most 8 where m is large.
WIDE = 14.0
# A row is far out that is so many times as far from the medians as all others, and at most so many are: conventions.
APART, MOST_APART = 3.0, 3
# A skewness below which a distribution is symmetric: its tail differs from a normal one by less than 1e-3 of itself.
SYMMETRIC = 1e-4


def unusual(look: Any, rate: float, neighbours: Any, largest: Any) -> bool:
    """Whether some statistic of a compiled look (``_looks.pyx``) comes near to where a test looks on, or alarms.

    If none does, `harm_in_order` counts rows as independent, and `unequal_sizes` finds no harm.
    """
    near, (q, m) = 1 + MARGIN, (len(look.rows) - 2, look.rows.shape[1])
    if near * max(look.false_terms / rate, look.of_kept) > WORTH_SIZES or near * look.noise > WORTH_GROSS:
        return True
    if tail_of_kurtosis(look.kurtosis, m) < near * ALARM:
        return True
    if look.theirs.size and of_far_rows(look.theirs, look.left, m - q)[1].min() < near * FAR_ALARM:
        return True
    transforms = fft.rfft(look.rows, overwrite_x=True)
    test = _near(m)
    values, variance, sizes = neighbours(transforms, *test[:4])  # leaves the powers in place of transforms
    if test.chance(values, variance, sizes, look.kurtosis) < near * PERHAPS:
        return True
    squared = transforms[1, 0].real
    return bool(
        _of_lags(largest(fft.irfft(transforms[:2], m, overwrite_x=True), lags_of(m), squared), m) < near * ALARM
    )


def far_rows(X: Array, ranges: Array) -> Index:
    """Return the few rows that are far from all others in the columns whose range is wide.

    The first rows tell what is usual, and all of them where these would call a column wide.
    """
    (m, d), none = X.shape, np.empty(0, dtype=np.intp)
    if m < 2 * FEWEST_LEFT or m * d > MOST_NUMBERS:
        return none
    first, width, limit = X[:FIRST_ROWS], ranges[1] - ranges[0], sqrt(WIDE * log(m))
    wide = np.flatnonzero(width > limit * _usual(first)[2])
    wide = wide[~((first[:, wide] == ranges[0, wide]) | (first[:, wide] == ranges[1, wide])).all(axis=0)]
    if not wide.size:
        return none
    centre, away, usual = _usual(X[:, wide])
    if not (still := width[wide] > limit * usual).all():
        wide, centre, away, usual = wide[still], centre[still], away[:, still], usual[still]
    if not wide.size:
        return none
    usual = np.where(usual > 0, usual, away.mean(axis=0))
    apart = (X[:, wide] - centre) / np.maximum(usual, EPS * width[wide])
    # All columns together, and each alone: tails of the others do not hide what is far out in one.
    distances = np.column_stack([np.sqrt(np.einsum("ij,ij->i", apart, apart)), np.abs(apart)])
    order = np.argpartition(-distances, MOST_APART, axis=0)[: 1 + MOST_APART]
    order = np.take_along_axis(order, np.argsort(-np.take_along_axis(distances, order, 0), axis=0), 0)
    sizes = np.take_along_axis(distances, order, 0)
    gaps = sizes[:-1] / np.maximum(sizes[1:], EPS)
    clear = int(np.argmax(gaps.max(axis=0)))  # where a gap is clearest
    last = np.flatnonzero(gaps[:, clear] > APART)
    return order[: last[-1] + 1, clear] if last.size else none


def _usual(rows: Array) -> tuple[Array, Array, Array]:
    """Return the medians of columns, distances from them, and the deviation of normal numbers as far away."""
    middle = len(rows) // 2
    centre = np.partition(rows, middle, axis=0)[middle]
    away = np.abs(rows - centre)
    return centre, away, np.partition(away, middle, axis=0)[middle] / MEDIAN


class Harm(NamedTuple):
    """How dependence changes variances of coefficients, on average over the columns."""

    inflation: float  # v; 1 where independent rows are not unlikely to look like this
    chance: float  # probability of as correlated errors where rows are independent
    correlation: float  # of the errors: of rows that are so far apart, or within a group
    lag: int = 1


def harm_in_order(columns: Array, errors: Array, fitted: Array) -> Harm:
    """Return what dependence between rows that are near each other does, given columns none of which is constant.

    `fitted` are orthonormal columns that were fitted to the same rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> walks, nothing = np.cumsum(rng.normal(size=(200, 4)), axis=0), np.empty((200, 0))
    >>> harm_in_order(walks, rng.normal(size=200), nothing).inflation
    1.0
    >>> harm_in_order(walks, np.cumsum(rng.normal(size=200)), nothing).chance < 1e-6
    True
    """
    m, errors = errors.size, errors - errors.sum() / errors.size
    square, test = float(errors @ errors), _near(m)
    both, squares = np.empty((m, 2 + fitted.shape[1])), errors**2
    both[:, 0], both[:, 1], both[:, 2:] = errors, squares, fitted
    power = _squared(fft.rfft(both, axis=0, overwrite_x=True))
    taken = power[:, 2:] @ np.full(fitted.shape[1], 1 / m)
    own = _of_mean_one(power[:, 0] / (1 - np.minimum(taken, MOST_TAKEN)), test.number, m)
    variance, sizes = (float(of @ power[:, 1]) / square**2 for of in (test.of_squares, test.of_sizes))
    kurtosis = m * float(squares @ squares) / square**2
    chance = test.chance((test.power @ own / (m - 1) - 1).tolist(), variance, sizes, kurtosis)
    lags = fft.irfft(np.column_stack([own, power[:, 1]]), m, axis=0).T
    z = np.abs(_at_lags(lags, square))
    far = float(_of_lags(z.max(), m))
    lag = 1 + int(np.argmax(z > AS_LARGE * z.max())) if far < ALARM else 1
    correlation = float(errors[lag:] @ errors[:-lag]) / square
    if chance > PERHAPS and far > ALARM:
        return Harm(1.0, min(chance, far), correlation, lag)
    power = _of_mean_one(_squared(fft.rfft(columns, axis=0)), test.number, m).mean(axis=1)
    return Harm(float(test.number @ (power * own)) / (m - 1), min(chance, far), correlation, lag)


def basis_of(constant: Array, columns: Array) -> Array:
    """Return orthonormal columns of the span of a constant (of one or no column) and others, of size one at most.

    By Cholesky of the Gram matrix where that has digits left, else by SVD.
    """
    m = columns.shape[0]
    constant = constant.reshape(m, -1)
    constant = constant / np.sqrt(np.maximum(np.einsum("ij,ij->j", constant, constant), TINY))
    left = columns - constant @ (constant.T @ columns)
    size = np.sqrt(np.einsum("ij,ij->j", left, left))
    if not (live := size > EPS * m).all():
        left, size = left[:, live], size[live]
    if size.size == 0:
        return constant
    left /= size
    root, info = linalg.lapack.dpotrf(left.T @ left)
    if info == 0 and linalg.lapack.dtrcon(root)[0] ** 2 > WELL_CONDITIONED:
        return np.concatenate([constant, left @ linalg.lapack.dtrtri(root)[0]], axis=1)
    basis, size, _ = np.linalg.svd(left, full_matrices=False)
    return np.concatenate([constant, basis[:, size > size[0] * np.sqrt(EPS)]], axis=1)


def lags_of(m: int) -> int:
    """Return how many lags of m rows are looked at."""
    return int(m * LONGEST_LAG)


def _at_lags(lags: Array, square: float) -> Array:
    """Return z of the correlation at lag 1, 2, …, from sums of products of errors, and of their squares, by lag."""
    (own, variance), number = lags, lags_of(lags.shape[1])
    own = own[1 : 1 + number] / own[0] + 1 / (lags.shape[1] - 1)  # errors of mean zero are correlated by −1/(m − 1)
    return own * square / np.sqrt(np.maximum(variance[1 : 1 + number], EPS * variance[0]))


def _of_lags(z: Any, m: int) -> Any:
    """Return the chance of a larger |z| at some lag."""
    return 2 * lags_of(m) * special.ndtr(-z)


class Near(NamedTuple):
    """What the tests of neighbours need at every frequency up to one half, whatever the errors of m rows are.

    Rows that are k apart have the weight w_k = 0.3ᵏ and, where neighbours differ, (−0.3)ᵏ or, as those of differences,
    −0.3 for k = 1 only.
    """

    number: Array  # how often it stands among all m: twice, but for zero and the half
    power: Array  # of the three weights, of mean 1, times that number
    of_squares: Array  # of power of squared errors: what it adds to the variance 2Σ w_k²e²_t e²_{t+k}, the largest
    of_sizes: Array  # of the same: adds to E s_t s_{t+k}/(E s)² for variances s, on average over k = 3 to 6
    sums: list[tuple[float, float]]  # Σ (w − 1)² and Σ (w − 1)³ of each, over all m frequencies

    def chance(self, values: Sequence[float], variance: float, sizes: float, kurtosis: float) -> float:
        """Return the chance that one of the sums is as unlikely, given their variance for random signs.

        Errors that depend on each other raise it, as rows of unequal variance s_t do: by E s²/(E s)² at most, which is
        a third of the kurtosis of normal errors or, where s changes slowly, `sizes`.
        """
        variance = min(variance, max(kurtosis / 3, sizes, 1.0) * float(self.of_squares[0]))
        each = [_of_pairs(one, variance, *of) for one, of in zip(values, self.sums, strict=True)]
        return min(len(each) * min(each), 1.0)


@lru_cache(maxsize=8)
def _near(m: int) -> Near:
    """Return what the tests of m rows need."""
    count = np.full(m // 2 + 1, 2.0)
    count[0] = 1.0
    if m % 2 == 0:
        count[-1] = 1.0
    turn = np.exp(2j * np.pi * np.arange(count.size) / m)
    series = [np.abs(1 - weight * turn) ** -2 for weight in (NEIGHBOURS, -NEIGHBOURS)]
    each = [_of_mean_one(power, count, m) for power in (*series, 1 - 2 * NEIGHBOURS * turn.real)]
    weights = fft.irfft(each[0], m) ** 2
    weights[0] = 0.0
    squares, cubes = ([float(count[1:] @ (one[1:] - 1) ** n) for one in each] for n in (2, 3))
    of_squares = 2 * count * fft.rfft(weights).real / m
    of_sizes = count * np.mean([(turn**k).real for k in (3, 4, 5, 6)], axis=0)
    return Near(count, count * np.array(each), of_squares, of_sizes, list(zip(squares, cubes, strict=True)))


def _squared(numbers: Any) -> Array:
    return np.asarray(numbers.real**2 + numbers.imag**2)


def _of_mean_one(power: Array, count: Array, m: int) -> Array:
    """Return powers at frequencies that count so often, m in all, divided by their mean; none at frequency zero."""
    power[0] = 0.0
    power *= (m - 1) / (count @ power)
    return power


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
    chance = _of_pairs(found, 2 * float(products(errors[:, None] ** 2)[0]), pairs, triples)
    correlation = found * m / (pairs * square)
    if chance > PERHAPS:
        return Harm(1.0, chance, correlation)
    of_columns = float(np.mean(products(columns) * m / (pairs * (columns**2).sum(axis=0))))
    return Harm(1 + pairs / m * correlation * of_columns, chance, correlation)


def harm_within(columns: Array, errors: Array, fitted: Array, codes: Index) -> Harm:
    """Return what dependence of neighbours in one group does, in order of appearance; see `harm_in_order`.

    Neighbours must be more alike, or differ more, than other rows of their group: what is told of is the chance of a
    sum of their products as far off if the errors of every group were dealt to its rows at random.
    """
    order = np.argsort(codes, kind="stable")
    errors, codes = errors[order] - errors.mean(), codes[order]
    chance = _chance_within(errors, codes)
    products = (errors[1:] * errors[:-1])[codes[1:] == codes[:-1]]
    correlation = float(products.sum()) * errors.size / (max(products.size, 1) * float(errors @ errors))
    if chance > PERHAPS:
        return Harm(1.0, chance, correlation)
    return Harm(harm_in_order(columns[order], errors, fitted[order]).inflation, chance, correlation)


def harm_between(columns: Array, errors: Array, fitted: Array, codes: Index) -> Harm:
    """Return what dependence of groups that follow each other does to columns that mostly differ between groups.

    Groups in larger ones, such as classes in schools, are a series of their own, in the order of their appearance.
    """
    first, codes = np.unique(codes, return_index=True, return_inverse=True)[1:]
    together = sparse.csr_array((np.ones(codes.size), (codes, np.arange(codes.size))))[np.argsort(first)]
    root = np.sqrt(together.sum(axis=1))[:, None]
    apart = columns - columns.mean(axis=0)
    sums, taken = together @ apart / root, together @ fitted / root
    between = sums[:, (sums**2).sum(axis=0) > MOSTLY_BETWEEN * (apart**2).sum(axis=0)]
    if first.size < FEWEST_GROUPS or not between.shape[1]:
        return Harm(1.0, 1.0, 0.0)
    return harm_in_order(between, (together @ errors[:, None] / root)[:, 0], taken)


def _chance_within(errors: Array, codes: Index) -> float:
    """Return the chance of a sum of products of neighbours in one group as far off, over all orders within groups.

    Let n errors e of a group have the mean 0, S = Σ e² and Q = Σ e⁴. In random order R = Σ e_t e_{t+1} has the mean
    −S/n. R² sums over pairs of pairs, of which n − 1 are the same, 2(n − 2) share a row and (n − 2)(n − 3) none, with
    means (S² − Q)/n(n − 1), (2Q − S²)/n(n − 1)(n − 2) and (3S² − 6Q)/n(n − 1)(n − 2)(n − 3); in all

        E R² = (S² − Q)/n + (S² − 2Q)/n(n − 1).
    """
    n = np.maximum(np.bincount(codes), 1).astype(float)
    apart = errors - (np.bincount(codes, errors) / n)[codes]
    S, Q = np.bincount(codes, apart**2), np.bincount(codes, apart**4)
    variance = float(((S**2 - Q) / n + (S**2 - 2 * Q) / np.maximum(n * (n - 1), 1.0) - (S / n) ** 2).sum())
    beyond = float((apart[1:] * apart[:-1])[codes[1:] == codes[:-1]].sum() + (S / n).sum())
    return float(2 * special.ndtr(-abs(beyond) / sqrt(variance))) if variance > EPS * float(S @ S) else 1.0


def _of_pairs(value: float, variance: float, squares: float, cubes: float) -> float:
    """Return the chance of a larger quadratic form of mean 0 whose eigenvalues have these sums of squares and cubes."""
    return 1.0 if variance <= 0 else tail(value / sqrt(variance), sqrt(8) * cubes / squares**1.5)


def tail(z: float, skewness: float) -> float:
    """Return the chance of more than z of a χ², or its mirror image, moved to mean 0, variance 1 and a skewness."""
    skewness = skewness if abs(skewness) > SYMMETRIC else SYMMETRIC
    degrees = 8 / skewness**2
    beyond = max(degrees + copysign(z, skewness * z) * sqrt(2 * degrees), 0.0)
    return float(special.chdtrc(degrees, beyond) if skewness > 0 else special.chdtr(degrees, beyond))


def of_far_rows(theirs: Array, square: float, free: int) -> tuple[Array, Array]:
    """Return the noise without 1, 2, … far rows, and chances of as large a share of all squares as theirs is."""
    number = np.arange(1, theirs.size + 1)
    noise = np.maximum(square - theirs, EPS) / (free - number)
    return noise, theirs.size * special.fdtrc(number, free - number, theirs / (number * noise))


def tail_of_kurtosis(kurtosis: float, m: int) -> float:
    """Return the chance of a larger kurtosis of m normal numbers."""
    mean, deviation, degrees = _kurtosis(m)
    below = 1 + (kurtosis - mean) / deviation * np.sqrt(2 / (degrees - 4))
    third = np.cbrt((1 - 2 / degrees) / below)
    return float(special.ndtr((third - 1 + 2 / (9 * degrees)) / np.sqrt(2 / (9 * degrees))))


@lru_cache(maxsize=8)
def _kurtosis(m: int) -> tuple[float, float, float]:
    """Return mean and deviation of the kurtosis of m normal numbers, and the degrees of the χ²."""
    variance = 24 * m * (m - 2) * (m - 3) / ((m + 1) ** 2 * (m + 3) * (m + 5))
    skewness = 6 * (m * m - 5 * m + 2) / ((m + 7) * (m + 9))
    skewness *= float(np.sqrt(6 * (m + 3) * (m + 5) / (m * (m - 2) * (m - 3))))
    degrees = 6 + 8 / skewness * (2 / skewness + float(np.sqrt(1 + 4 / skewness**2)))
    return 3 * (m - 1) / (m + 1), float(np.sqrt(variance)), degrees


def piled_up(counts: Index) -> tuple[int, int]:
    """Return how many values are equal to the smallest, and to the largest; 0 where no more than chance would bring.

    `counts` says how often every value is there, in their order. Numbers that are counts or rounded repeat at other
    values, too.

    Examples
    --------
    >>> piled_up(equal_pairs(np.maximum(np.random.default_rng(0).normal(size=100), -0.5))[0])
    (31, 0)
    >>> piled_up(equal_pairs(np.random.default_rng(0).poisson(0.5, size=100))[0])
    (0, 0)
    """
    if counts.size < 2 + FEWEST_BETWEEN:
        return 0, 0
    between = int(counts[1:-1].max())
    enough = max(MOSTLY * between, PILED_SHARE * counts.sum())
    low, high = (int(end) if end >= enough else 0 for end in counts[[0, -1]])
    return low, high


def stands_for_others(counts: Array | Index) -> int | None:
    """Return which value, neither the least nor the largest, is there so often that it may stand for missing ones.

    `counts` says how often every value is there, in their order.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> stands_for_others(equal_pairs(np.where(y > 1, y.mean(), y))[0]) is None
    False
    >>> stands_for_others(equal_pairs(np.round(y))[0]) is None
    True
    """
    if counts.size < 2 + FEWEST_BETWEEN:
        return None
    most = 1 + int(np.argmax(counts[1:-1]))
    others, total = np.delete(counts, most).max(), counts.sum()
    return most if max(MOSTLY * others, PILED_SHARE * total) <= counts[most] < total / 2 else None


def repeating(columns: Array) -> Index:
    """Return the columns whose values repeat without being levels or small counts, those of most values first."""
    ordered = np.sort(columns, axis=0)
    values = 1 + np.count_nonzero(ordered[1:] != ordered[:-1], axis=0)
    some = np.flatnonzero((values > FEWEST_VALUES) & (values < len(columns)))
    return some[np.argsort(-values[some], kind="stable")]


def may_share(columns: Array) -> bool:
    """Whether the first rows look as if `shared_values` might find groups."""
    return repeating(columns[:FIRST_ROWS]).size > 1


def shared_values(columns: Array) -> Index | None:
    """Return groups of rows that have the same values in two columns or more, such as those of one school or batch.

    Of columns that repeat, those belong together whose values make hardly more cells than those of one alone.
    """
    m, some = len(columns), repeating(columns)
    codes: dict[int, Index] = {int(j): np.unique(columns[:, j], return_inverse=True)[1] for j in some[:MOST_TRIED]}
    for first, cells in codes.items():
        number, belong = 1 + int(cells.max()), 1
        for other in (j for j in codes if j != first):
            joint = np.unique(cells * m + codes[other], return_inverse=True)[1]
            if (more := 1 + int(joint.max())) <= min(NESTED * number, SHARED * m):
                cells, number, belong = joint, more, belong + 1
        if belong > 1 and number <= SHARED * m:
            return cells
    return None


def centred_groups(X: Any, y: Array, groups: Index | None) -> int:
    """Return how many groups of rows, as given or of neighbours, have had their means taken away: all sums are zero."""
    if not isinstance(X, np.ndarray):
        return 0
    order = slice(None) if groups is None else np.argsort(groups, kind="stable")
    ends = np.flatnonzero(_sums_vanish(y := y[order]) & (y != 0))
    if ends.size < (fewest := max(FEWEST_CENTRED, CENTRED_SHARE * y.size)):
        return 0
    columns = X[order, :FIRST_COLUMNS]
    ends = ends[_sums_vanish(columns)[ends].all(axis=1) & (columns[ends] != 0).any(axis=1)]
    return 0 if ends.size < fewest else int(ends.size)


def _sums_vanish(columns: Array) -> NDArray[np.bool_]:
    """Whether the sums up to every row are zero."""
    rounded = EPS * len(columns) * np.abs(columns).max(axis=0, initial=0.0)
    return np.asarray(np.abs(np.cumsum(columns, axis=0)) <= rounded)


def equal_pairs(values: Any) -> tuple[Index, float]:
    """Return how often every value is there, and how many pairs of values are equal."""
    ordered = np.sort(values)
    steps = ordered[1:] != ordered[:-1]
    if steps.all():
        return np.ones(ordered.size, dtype=np.intp), 0.0
    counts = np.diff(np.flatnonzero(steps), prepend=-1, append=ordered.size - 1)
    often = counts.astype(float)
    return counts, float(often @ (often - 1)) / 2
