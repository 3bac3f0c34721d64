"""What the residuals of a fit tell: errors of rows that depend on each other, or are of unequal size.

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
all columns or with what is predicted, or have as heavy tails. Rows of high leverage show little of their errors, since
they are fitted away; the test of growth knows how little. A few gross errors let no false terms in, but hide true ones:
they, too, are told, where they double the noise of all other rows.

*Copies.* A row that is there w times has one error, and brings v = Σ w²/Σ w over all rows. Two independent rows may be
equal, too, where columns and y have few values. They are taken for copies if chance does not do that: if pairs of rows
that agree in y nearly always agree in all columns; if pairs that agree in all columns nearly always agree in y,
although y differs in other pairs; or if every row is there twice, or thrice, or a multiple of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import copysign, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, linalg, sparse, special

from ardea.core.compression import BLOCK_BYTES, digests, odd_numbers
from ardea.core.problem import EPS, Array, Index

# Probability of an alarm where rows are independent and of equal size: a convention.
ALARM = 1e-3
# Chance above which rows count as independent, and v as 1: a convention. It saves a look at the columns.
PERHAPS = 0.05
# Rows k apart count 0.3ᵏ in the test (measured: of 0.1, 0.3, 0.5, 0.7 and the columns' own correlations it finds most
# series of 100 rows, since false terms imitate slow errors).
NEIGHBOURS = 0.3
# False terms relative to those asked for, and the variance of a coefficient relative to that of equal sizes (95 %
# intervals then hold 88 %), from which unequal sizes are worth a word: conventions. Shuffles of errors over the rows in
# which false terms are counted: of 0.3 promised in each, 30 ± 18 %.
WORTH_SIZES, SHUFFLES = 1.6, 100
# Deviation of the noise relative to that of most rows from which a few gross errors are worth a word, how many rows (or
# which share of them) must have half of the squares, and from how many deviations on a row is one of them: conventions.
WORTH_GROSS, GROSS_ROWS, GROSS_SHARE, GROSS = 2.0, 5, 0.02, 5.0
# How many rows are looked at, from how many times the mean leverage on they are far out (the usual convention), the
# fewest degrees of freedom left without them, and deviations by which they must move estimates: conventions.
FAR_ROWS, FAR, FEWEST_LEFT, WORTH_MOVING = 10, 3.0, 5, 2.0
# Probability of an alarm about them, if the ten numbers of rows were ten tests; they are about three (measured).
FAR_ALARM = 5e-3
# Chance of growth without the row that adds most to it counts so often (measured: errors of Student's t with five
# degrees then hardly ever alarm, and those that grow with a column no less often).
HEAVY = 0.03
# The median of |N(0,1)|.
MEDIAN = float(special.ndtri(0.75))
# Rows for every column above which all columns are taken out of errors before their sizes are looked at: a convention.
ROWS_PER_COLUMN = 4
# Where columns are more, those that explain errors by so many standard deviations: a convention.
CLEARLY = 3.0
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
# A skewness below which a distribution is symmetric: its tail differs from a normal one by less than 1e-3 of itself.
SYMMETRIC = 1e-4


def unusual(look: Any, rate: float, neighbours: Any) -> bool:
    """Whether some statistic of a compiled look (``_looks.pyx``) comes near to where a test looks on, or alarms.

    If none does, `harm_in_order` counts rows as independent, and `unequal_sizes` finds no harm.
    """
    near, (q, m) = 1 + MARGIN, (len(look.rows) - 2, look.rows.shape[1])
    if near * max(look.false_terms / rate, look.of_kept) > WORTH_SIZES or near * look.noise > WORTH_GROSS:
        return True
    if _tail_of_kurtosis(look.kurtosis, m) < near * ALARM:
        return True
    if look.theirs.size and _of_far_rows(look.theirs, look.left, m - q)[1].min() < near * FAR_ALARM:
        return True
    count, power, of_squares, squares, cubes = _near(m)
    value, variance = neighbours(fft.rfft(look.rows, overwrite_x=True), count, power, of_squares)
    return _of_pairs(value, variance, squares, cubes) < near * PERHAPS


class Harm(NamedTuple):
    """How dependence changes variances of coefficients, on average over the columns."""

    inflation: float  # v; 1 where independent rows are not unlikely to look like this
    chance: float  # probability of as correlated errors where rows are independent
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
    >>> harm_in_order(walks, rng.normal(size=200), nothing).inflation
    1.0
    >>> harm_in_order(walks, np.cumsum(rng.normal(size=200)), nothing).chance < 1e-6
    True
    """
    m, errors = errors.size, errors - errors.sum() / errors.size
    square, (count, near, of_squares, squares, cubes) = float(errors @ errors), _near(m)
    both = np.empty((m, 2 + fitted.shape[1]))
    both[:, 0], both[:, 1], both[:, 2:] = errors, errors**2, fitted
    power = _squared(fft.rfft(both, axis=0, overwrite_x=True))
    taken = power[:, 2:] @ np.full(fitted.shape[1], 1 / m)
    own = _of_mean_one(power[:, 0] / (1 - np.minimum(taken, MOST_TAKEN)), count, m)
    variance = float(of_squares @ power[:, 1]) / square**2
    chance = _of_pairs(float(near @ own) / (m - 1) - 1, variance, squares, cubes)
    correlation = float(errors[1:] @ errors[:-1]) / square
    if chance > PERHAPS:
        return Harm(1.0, chance, correlation)
    power = _of_mean_one(_squared(fft.rfft(columns, axis=0)), count, m).mean(axis=1)
    return Harm(float(count @ (power * own)) / (m - 1), chance, correlation)


class Near(NamedTuple):
    """What the test of neighbours needs at every frequency up to one half, whatever the errors of m rows are."""

    number: Array  # how often it stands among all m: twice, but for zero and the half
    power: Array  # of the weights w_k of rows that are k apart, of mean 1, times that number
    of_squares: Array  # of power of squared errors: what it adds to the variance 2Σ w_k²e²_t e²_{t+k}
    squares: float  # Σ (w − 1)², over all m frequencies
    cubes: float


@lru_cache(maxsize=8)
def _near(m: int) -> Near:
    """Return what the test of m rows needs."""
    count = np.full(m // 2 + 1, 2.0)
    count[0] = 1.0
    if m % 2 == 0:
        count[-1] = 1.0
    near = np.abs(1 - NEIGHBOURS * np.exp(2j * np.pi * np.arange(count.size) / m)) ** -2
    near = _of_mean_one(near, count, m)
    weights = fft.irfft(near, m) ** 2
    weights[0] = 0.0
    squares, cubes = (float(count[1:] @ (near[1:] - 1) ** n) for n in (2, 3))
    return Near(count, count * near, 2 * count * fft.rfft(weights).real / m, squares, cubes)


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


def _of_pairs(value: float, variance: float, squares: float, cubes: float) -> float:
    """Return the chance of a larger quadratic form of mean 0 whose eigenvalues have these sums of squares and cubes."""
    return 1.0 if variance <= 0 else _tail(value / sqrt(variance), sqrt(8) * cubes / squares**1.5)


def _tail(z: float, skewness: float) -> float:
    """Return the chance of more than z of a χ², or its mirror image, moved to mean 0, variance 1 and a skewness."""
    skewness = skewness if abs(skewness) > SYMMETRIC else SYMMETRIC
    degrees = 8 / skewness**2
    beyond = max(degrees + copysign(z, skewness * z) * sqrt(2 * degrees), 0.0)
    return float(special.chdtrc(degrees, beyond) if skewness > 0 else special.chdtr(degrees, beyond))


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
    shares = _squared_distances(columns, ones)
    scale = ones @ shares
    v = squares @ shares / scale
    cut = -float(special.ndtri(rate / 2))
    harm = 2 * float(special.ndtr(-cut / np.sqrt(np.maximum(v, EPS))).sum()) / (v.size * rate)
    of_kept = float(v[np.asarray(kept, dtype=np.intp)].max(initial=0.0))
    noise, gross = _gross(errors)
    tails = growth = 1.0
    if max(harm, of_kept) > WORTH_SIZES or gross.size or _heavy_tails(errors) < ALARM:
        tails, growth = _chances(columns, shares * (m / scale), errors, fitted, predicted)
    harm, of_kept = (harm, of_kept) if growth < ALARM else (1.0, 1.0)
    if tails < ALARM:
        signed = np.sqrt(squares) * np.sign(errors)
        dealt = np.random.default_rng(0).permuted(np.tile(signed, (SHUFFLES, 1)), axis=1)
        summed = dealt @ (columns - ones @ columns / m)
        harm = max(harm, float((np.abs(summed) > cut * np.sqrt(scale)).mean() / rate))
    gross = gross if min(tails, growth) < ALARM else gross[:0]
    column = int(v.argmax())
    carried = shares[:, column] * squares
    carried_by = float(ones @ carried) ** 2 / float(carried @ carried)
    return Sizes(harm, of_kept, min(tails, growth), column, float(v[column]), carried_by, noise, gross, far, moved)


def _squared_distances(columns: Array, ones: Array) -> Array:
    """Return (x − x̄)² of every column x."""
    distances = columns - ones @ columns / ones.size
    return np.square(distances, out=distances)


def _gross(errors: Array) -> tuple[float, Index]:
    """Return the deviation of the noise relative to that of most rows, and the rows that alone make it so large."""
    m, total, sizes = errors.size, float(errors @ errors), np.abs(errors)
    usual = max(float(np.partition(sizes, m // 2)[m // 2]) / MEDIAN, EPS * float(sizes.max()))
    noise = sqrt(total / m) / usual
    if noise < WORTH_GROSS:
        return noise, np.empty(0, dtype=np.intp)
    most = max(GROSS_ROWS, int(GROSS_SHARE * m))
    order = np.argsort(-sizes)
    few = 2 * float(errors[order[:most]] @ errors[order[:most]]) > total
    return noise, order[: int((sizes > GROSS * usual).sum())] if few else order[:0]


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
    noise, chances = _of_far_rows(theirs, float(left @ left), m - q)
    best = int(np.argmin(chances))
    if chances[best] > FAR_ALARM:
        return far[:0], 0.0
    far, k = far[: best + 1], best + 1
    others = np.delete(left, far)
    kurtosis = max(3.0, others.size * float((others**4).sum()) / float(others @ others) ** 2)
    heavy = _tail((theirs[best] / noise[best] - k) / sqrt(k * (kurtosis - 1)), sqrt(8 / k))
    shift = fitted[far].T @ linalg.cho_solve((root[:k, :k], True), left[far], check_finite=False)
    moved = float(np.linalg.norm(shift) / np.sqrt(noise[best]))
    return far if number.size * heavy < FAR_ALARM and moved > WORTH_MOVING else far[:0], moved


def _of_far_rows(theirs: Array, square: float, free: int) -> tuple[Array, Array]:
    """Return the noise without 1, 2, … far rows, and chances of as large a share of all squares as theirs is."""
    number = np.arange(1, theirs.size + 1)
    noise = np.maximum(square - theirs, EPS) / (free - number)
    return noise, theirs.size * special.fdtrc(number, free - number, theirs / (number * noise))


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
    return 1.0 if square <= 0 else _tail_of_kurtosis(m * float(squares @ squares) / square**2, m)


def _tail_of_kurtosis(kurtosis: float, m: int) -> float:
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


def _grows(columns: Array, errors: Array, fitted: Array) -> float:
    """Return the chance of squared errors that grow as much with any of some columns where errors are normal.

    For sizes ln σ² = α + βz and small β the most powerful test is by T = Σ zr²/Σ r², with r = Me what a fit has left
    of the errors e, M = I − FFᵀ. T exceeds c if and only if eᵀAe > 0, A = M diag(a) M with a = z − c. For normal e of
    variance one this has the mean tr A, the variance 2 tr A² and the third moment 8 tr A³: its tail is that of a χ²
    with these. With the leverages h, the diagonal of FFᵀ, and G₁, G₂ = Fᵀdiag(a)F, Fᵀdiag(a²)F,

        tr A = Σ a(1 − h),   tr A² = Σ a²(1 − 2h) + ‖G₁‖²,   tr A³ = Σ a³(1 − 3h) + 3 tr G₁G₂ − tr G₁³.

    That is computed for the column that looks largest with (1 − h)² in the place of M's squares. One large error, as
    heavy tails have them, would pass for growth: it must show without the row that adds most.
    """
    columns = columns[:, np.ptp(columns, axis=0) > np.sqrt(EPS)]  # not as where halves of the rows are 0 and 1
    square = float(errors @ errors)
    if columns.shape[1] == 0 or square <= 0:
        return 1.0
    leverage = (fitted**2).sum(axis=1)
    beyond = columns - errors**2 @ columns / square
    mean = (1 - leverage) @ beyond
    j = int(np.argmin(mean / np.sqrt((1 - leverage) ** 2 @ beyond**2)))
    a = beyond[:, j]
    chance = columns.shape[1] * _tail_of_growth(a, leverage, fitted)
    if chance > ALARM:
        return min(chance, 1.0)
    rest = np.delete(np.arange(errors.size), np.argmax(a * errors**2))
    z, left = columns[rest, j], errors[rest]
    without = _tail_of_growth(z - left**2 @ z / (left @ left), leverage[rest], fitted[rest])
    return min(1.0, max(chance, HEAVY * without))


def _tail_of_growth(a: Array, leverage: Array, fitted: Array) -> float:
    """Return P(eᵀAe > 0)."""
    first, second = (fitted.T @ (one[:, None] * fitted) for one in (a, a**2))
    squares = float(a**2 @ (1 - 2 * leverage) + (first**2).sum())
    cubes = float(a**3 @ (1 - 3 * leverage) + 3 * (first * second).sum() - (first @ first * first).sum())
    if squares <= EPS * float(a @ a):
        return 1.0
    mean = float((1 - leverage) @ a)
    return _tail(-mean / sqrt(2 * squares), 8 * cubes / (2 * squares) ** 1.5)


def copied_rows(X: Any, y: Array) -> tuple[int, float]:
    """Return how many rows are copies of others, and v; none, and 1, where chance or a few may explain equal rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    >>> copied_rows(X, y), copied_rows(np.tile(X, (5, 1)), np.tile(y, 5))
    ((0, 1.0), (200, 5.0))
    >>> copied_rows(X > 0, np.round(y))
    (0, 1.0)
    """
    (m, d), in_y = X.shape, _equal_pairs(y)[1]
    factors, height = odd_numbers(d + 1), max(1, BLOCK_BYTES // (8 * d))
    few, alike = (m / WORTH_A_WORD - m) / 2, in_y
    for width in (min(FIRST_COLUMNS, d), d):  # which mostly show that rows differ
        if alike <= few:
            return 0, 1.0
        blocks = [X[start : start + height, :width] for start in range(0, m, height)]
        cells = np.concatenate([digests(block, factors[:width]) for block in blocks])
        counts, alike = _equal_pairs(cells + digests(y[:, None], factors[d:]))
    if alike <= few:
        return 0, 1.0
    in_columns = _equal_pairs(cells)[1]
    differ = 1 - (in_y - alike) / max(m * (m - 1) / 2 - in_columns, 1.0)
    mostly = max(alike / max(in_y - alike, 1.0), differ * alike / max(in_columns - alike, 1.0)) >= MOSTLY
    every = counts.size >= MOSTLY and np.gcd.reduce(counts) > 1
    return (m - counts.size, 1 + 2 * alike / m) if mostly or every else (0, 1.0)


def _equal_pairs(values: Any) -> tuple[Index, float]:
    """Return how often every value is there, and how many pairs of values are equal."""
    ordered = np.sort(values)
    steps = ordered[1:] != ordered[:-1]
    if steps.all():
        return np.ones(ordered.size, dtype=np.intp), 0.0
    counts = np.diff(np.flatnonzero(steps), prepend=-1, append=ordered.size - 1)
    often = counts.astype(float)
    return counts, float(often @ (often - 1)) / 2
