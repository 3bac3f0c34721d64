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
all columns or with what is predicted, or have as heavy tails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import fft, sparse, special, stats

from ardea.core.problem import EPS, Array, Index

# Probability of an alarm where rows are independent and of equal size: a convention.
ALARM = 1e-3
# Rows k apart count 0.3ᵏ in the test (measured: of 0.1, 0.3, 0.5, 0.7 and the columns' own correlations it finds most
# series of 100 rows, since false terms imitate slow errors).
NEIGHBOURS = 0.3
# False terms relative to those asked for, and the variance of a coefficient relative to that of equal sizes (95 %
# intervals then hold 88 %), from which unequal sizes are worth a word; shuffles of errors over the rows for which false
# terms are counted: conventions.
WORTH_SIZES, SHUFFLES = 1.6, 20
# Rows for every column above which all columns are taken out of errors before their sizes are looked at: a convention.
ROWS_PER_COLUMN = 4
# Where columns are more, those that explain errors by so many standard deviations: a convention.
CLEARLY = 3.0
# Squares beyond c² count as c² where sizes are learned or tested: a convention.
LARGEST_ERROR = 2.5
# Share of an error, or of the power at a frequency, that a fit may take away and that is made up for: a convention.
MOST_TAKEN = 0.95
# A skewness below which a distribution is symmetric: its tail differs from a normal one by less than 1e-3 of itself.
SYMMETRIC = 1e-4


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
    chance = _of_pairs(float(near @ own) / (m - 1) - 1, variance, squares, cubes)
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
    chance = _of_pairs(found, 2 * float(products(errors[:, None] ** 2)[0]), pairs, triples)
    correlation = found * m / (pairs * square)
    of_columns = float(np.mean(products(columns) * m / (pairs * (columns**2).sum(axis=0))))
    return Harm(1 + pairs / m * correlation * of_columns, chance, correlation)


def _of_pairs(value: float, variance: float, squares: float, cubes: float) -> float:
    """Return the chance of a larger quadratic form of mean 0 whose eigenvalues have these sums of squares and cubes."""
    return 1.0 if variance <= 0 else float(_tail(value / np.sqrt(variance), np.sqrt(8) * cubes / squares**1.5))


def _tail(z: Array | float, skewness: Array | float) -> Array:
    """Return the chance of more than z of a χ², or its mirror image, moved to mean 0, variance 1 and a skewness."""
    skewness = np.where(np.abs(skewness) > SYMMETRIC, skewness, SYMMETRIC)
    degrees = 8 / skewness**2
    beyond = np.maximum(degrees + np.sign(skewness) * z * np.sqrt(2 * degrees), 0.0)
    return np.where(skewness > 0, special.chdtrc(degrees, beyond), special.chdtr(degrees, beyond))


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
    # What a dropped term does in straight lines is no error: that of all columns or, of many, of those that show it.
    dropped = columns - fitted @ (fitted.T @ columns)
    size = np.linalg.norm(dropped, axis=0)
    free = size > np.sqrt(EPS) * np.linalg.norm(columns, axis=0)
    dropped = dropped[:, free] / size[free]
    if ROWS_PER_COLUMN * (dropped.shape[1] + fitted.shape[1]) > errors.size:
        dropped = dropped[:, np.abs(errors @ dropped) > CLEARLY * np.std(errors)]
    if dropped.shape[1] and ROWS_PER_COLUMN * (dropped.shape[1] + fitted.shape[1]) <= errors.size:
        fitted = np.linalg.qr(np.column_stack([fitted, dropped]))[0]
        errors = errors - fitted @ (fitted.T @ errors)
    left = np.maximum(1 - (fitted**2).sum(axis=1), 1 - MOST_TAKEN)
    squares = errors**2 / left
    squares /= squares.mean()
    shares = (columns - columns.mean(axis=0)) ** 2
    shares /= shares.mean(axis=0)
    grows_with = [shares.mean(axis=1), *([] if predicted is None else [(predicted - predicted.mean()) ** 2])]
    growth = (np.minimum(shares, LARGEST_ERROR**2), *(normal_scores(one[:, None]) for one in grows_with))
    tails = float(stats.kurtosistest(errors, alternative="greater").pvalue)
    correlated = _correlated(fitted, left)
    chance = min(1.0, (len(growth) + 1) * min(tails, *(_grows(one, squares, correlated) for one in growth)))
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


def normal_scores(X: Array) -> Array:
    """Return columns as they would be if they were normal: their ranks, as quantiles of a normal distribution."""
    return np.asarray(special.ndtri((stats.rankdata(X, axis=0) - 0.5) / X.shape[0]))


def _correlated(fitted: Array, left: Array) -> Array:
    """Return Σⱼ ρᵢⱼ² of errors from which a fit took QQᵀ, ρᵢⱼ² = (QQᵀ)ᵢⱼ²/(1 − hᵢ)/(1 − hⱼ)."""
    products = (fitted @ (fitted.T @ (fitted / left[:, None])) * fitted).sum(axis=1)
    return np.asarray((products - (1 - left) ** 2 / left) / left)


def _grows(columns: Array, squares: Array, correlated: Array) -> float:
    """Return the chance of squared errors that grow as much with any of some columns where they are independent.

    Over all ways to deal squares s to the rows, T = Σ zs of centred z and s has the mean 0, the variance
    Σ z² Σ s²/(m − 1) and the third moment Σ z³ Σ s³ m/((m − 1)(m − 2)): its tail is that of a χ² with these. Squares
    and columns are bounded, for which it holds far out. By a fit errors became correlated by ρ, and their squares by
    ρ²: the variance is then at most Σᵢ zᵢ²(1 + Σⱼ ρᵢⱼ²)/Σ z² times as large.
    """
    columns = columns[:, np.ptp(columns, axis=0) > np.sqrt(EPS)]  # not as where halves of the rows are 0 and 1
    if columns.shape[1] == 0 or np.ptp(squares) <= np.sqrt(EPS):
        return 1.0
    m, squares = squares.size, np.minimum(squares, LARGEST_ERROR**2)
    z, s = columns - columns.mean(axis=0), squares - squares.mean()
    z_square = z**2
    variance = (1 + correlated) @ z_square * (s @ s) / (m - 1)
    skewness = np.einsum("ij,ij->j", z_square, z) * (s**3).sum() * m / ((m - 1) * (m - 2)) / variance**1.5
    return float(min(1.0, _tail(s @ z / np.sqrt(variance), skewness).min() * z.shape[1]))
