"""What errors of rows may be like: the covariance σ²V of a series, of groups, and of rows of unequal size.

LVLᵀ = I, and σ² is the mean square of the errors. In a series V is that of a stationary autoregression, given by its
partial autocorrelations π₁ … π_p; in groups V_st = ρ for two rows of one group, and 0 for rows of two groups. Both are
learned by restricted likelihood: with q orthonormal columns F of the model and S² the sum of squares that they leave of
Ly, the least (m − q) ln S² + ln|V| + ln|FᵀV⁻¹F|; the order p by AIC.

Rows of unequal size are independent: V is diagonal, with the square roots h. One thing is assumed, and two are learned.

1) *Far rows.* How large errors are in the few rows that lie far out cannot be seen in few rows: such rows are fitted
   closely whatever they say. So h begins as h₀ = max(1, D/D₀), with D² the mean over the columns of squared distances
   from the median in units of their median. If errors are in fact equal, far rows count too little, and tests and
   intervals are on the safe side: it costs power. (Such weights are those of Mallows.)
2) *Tails.* With f the Huber regression on F, s the median size of (y − f)/h (in units of that of a normal) and
   ψ(u) = min(max(u, −k), k), errors u = (y − f)/(hs) are drawn in: the model is fitted to y* = f + hs ψ(u)/P(|u| < k).
   Least squares on y* is the Huber regression, and its variance for errors of like size the asymptotic one,
   E ψ²/(E ψ′)². In a column x with no part in y, the sum Σ xψ(u) has, for symmetric errors of whatever sizes, a
   variance of at most k²Σ x²: no few rows can make it significant.
3) *Sizes.* ln h/h₀ is a sum of broken lines in normal scores z: z, |z|, max(z, 0), min(z, 0), of the columns, of the
   distance of a row from their means (errors that grow with leverage), and of f (errors that grow with y). For a
   lognormal column z is its logarithm, and h a power of it. Lines enter one by one, the one whose correlation with
   ρ(u) = min(u², c²) is most significant; their coefficients solve Σ z(ρ(u) − E ρ) = 0.

Sizes are learned after the terms have come to rest: the effect of a term that is missing looks like a larger error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, optimize, sparse, special

from ardea.core.compression import ranges_of, root_weights
from ardea.core.lazy import cached_property
from ardea.core.problem import EPS, TINY, Array, Index, require
from ardea.estimators.inputs import CheckedRows, Whitened, dense
from ardea.estimators.residuals import MEDIAN, MOST_TAKEN
from ardea.estimators.sizes import normal_scores

# Partial autocorrelations stay within ±0.999: beyond, a series of thousands of rows cannot be told from a random walk.
LARGEST = 0.999
FARTHEST = float(np.arctanh(LARGEST))
# Intraclass correlations stay below 1 by the variance within groups in which y agrees up to this share of its range (a
# convention). Beyond, rows of a group tell as much as one (`dependence`).
AGREEING = 1e-6
LEAST_OWN = AGREEING**2
# 10 log₁₀ m orders at most (a convention), one for every ten rows; two in a row that do not pay end the search, after
# the order that Yule and Walker's equations favour.
ROWS_PER_ORDER, UNPAID = 10, 2
# Up to so many partial autocorrelations are learned once more, all together; more would take seconds (a convention).
MOST_TOGETHER = 4
# Errors beyond this many σ are drawn in: Huber's own choice, 95 % efficient for normal errors.
DRAWN_IN = 1.345
# Squares beyond c² count as c² where sizes are learned (a convention), and what that leaves of a normal's variance.
LARGEST_ERROR = 2.5
EXPECTED_SQUARE = float(special.chdtr(3, LARGEST_ERROR**2) + LARGEST_ERROR**2 * special.chdtrc(1, LARGEST_ERROR**2))
# D₀, in units of what D is for normal columns, 1/MEDIAN (measured: 1.5 keeps the promises on 60 rows of skewed columns
# and with three rows ten times as far out, and leaves normal columns alone).
FAR = 1.5
# Probability that a line enters where sizes are equal; lines at most; factor between a size and the mean: conventions.
SPURIOUS, MOST_LINES, FARTHEST_SIZE = 0.05, 3, 1e3
# Sizes and the errors that show them are learned in turn so often (measured: more changes nothing).
SIZE_ROUNDS = 2
# Steps of a Huber regression, and of the coefficients of sizes, and when they end; each gains a digit in about three.
MOST_STEPS, STEP = 100, 1e-6


class Errors:
    """Errors of rows."""

    correlation: Any  # what V was made of, where rows depend on each other

    @property
    def independent(self) -> bool:
        """Whether V = I, and y stays as it is."""
        return bool(self.correlation.size == 0)

    @property
    def log_volume(self) -> float:
        """ln|V|."""
        raise NotImplementedError

    def whitened(self, block: Array) -> Array:
        """Return L times a block of columns."""
        raise NotImplementedError

    @classmethod
    def of(cls, rows: CheckedRows) -> Errors:
        """Return independent errors of equal size."""
        raise NotImplementedError

    def learned(self, flat: Array, y: Array) -> Errors:
        """Return the errors that y leaves beside some orthonormal columns."""
        raise NotImplementedError

    def starts(self, flat: Array, y: Array) -> list[Errors]:
        """Return where learning begins, given the columns of no term at all.

        Independent rows would keep false terms that imitate correlated errors; V of no term at all can take true terms
        for them.
        """
        return [self, self.learned(flat, y)]

    def refined(self) -> Errors | None:
        """Return errors of which more is learned once the terms have come to rest."""
        return None

    def drawn_in(self, Y: Array) -> Array:
        """Return y without the part of large errors that would decide alone."""
        return Y


@dataclass(frozen=True)
class SeriesErrors(Errors):
    """Errors of one or several series: a stationary autoregression, the same for all of them."""

    order: Index  # the rows, one series after another
    place: Index  # how many rows of its series come before each of these
    partial: tuple[float, ...] = ()  # partial autocorrelations

    @classmethod
    def of(cls, rows: CheckedRows) -> SeriesErrors:
        """Return independent errors of a series, or of one for every group."""
        m = rows.X.shape[0]
        codes = np.zeros(m, dtype=np.intp) if rows.groups is None else rows.groups
        order = np.argsort(codes, kind="stable")
        first = np.searchsorted(codes[order], codes[order])
        return cls(order, np.arange(m) - first)

    @cached_property
    def predictors(self) -> tuple[list[Array], Array]:
        """Best predictions from 0, 1, … p rows before, and the variances that they leave (Durbin–Levinson)."""
        weights, left = [np.empty(0)], [1.0]
        for partial in self.partial:
            weights.append(_longer(weights[-1], partial))
            left.append(left[-1] * (1 - partial**2))
        return weights, np.array(left)

    @property
    def correlation(self) -> Array:
        """Coefficients of the autoregression."""
        return self.predictors[0][-1]

    @property
    def log_volume(self) -> float:
        """ln|V|."""
        return float(np.log(self.predictors[1][self._known]).sum())

    @property
    def _known(self) -> Index:
        """How many rows before each are used for its prediction."""
        return np.minimum(self.place, len(self.partial))

    def whitened(self, block: Array) -> Array:
        """Return L times a block of columns: errors of prediction from the rows before, divided by their deviation."""
        weights, left = self.predictors
        ordered, white = block[self.order], np.empty(block.shape)
        for known, weight in enumerate(weights):
            rows = np.flatnonzero(self._known == known)
            part = ordered[rows]
            for lag, one in enumerate(weight, 1):
                part -= one * ordered[rows - lag]
            white[self.order[rows]] = part / np.sqrt(left[known])
        return white

    def learned(self, flat: Array, y: Array) -> SeriesErrors:
        """Return the errors that y leaves beside some orthonormal columns."""
        m, current = y.size, replace(self, partial=())
        best, least = current, _restricted(current, flat, y)
        most = max(1, min(int(10 * np.log10(m)), m // ROWS_PER_ORDER))
        at_least = self._likely_order(y - flat @ (flat.T @ y), most)
        for p in range(1, most + 1):
            before = current.partial
            at = optimize.minimize_scalar(
                lambda z, before=before: _restricted(self._at((*np.arctanh(before), z)), flat, y),
                bounds=(-FARTHEST, FARTHEST),
                method="bounded",
            )
            current = self._at((*np.arctanh(before), at.x))
            if at.fun + 2 * p < least:
                best, least = current, at.fun + 2 * p
            elif p >= max(len(best.partial), at_least) + UNPAID:
                break
        return best._together(flat, y) if 2 <= len(best.partial) <= MOST_TOGETHER else best

    def _likely_order(self, errors: Array, most: int) -> int:
        """Return the order of least AIC by Yule and Walker: seasons act on a late row and on none before it."""
        ordered = errors[self.order]
        lags = [float(ordered @ ordered)]
        for lag in range(1, most + 1):
            rows = np.flatnonzero(self.place >= lag)
            lags.append(float(ordered[rows] @ ordered[rows - lag]))
        criterion, left, weights = [0.0], 1.0, np.empty(0)
        correlation = np.array(lags) / max(lags[0], TINY)
        for p in range(1, most + 1):
            one = float(np.clip((correlation[p] - weights @ correlation[p - 1 : 0 : -1]) / left, -LARGEST, LARGEST))
            weights = _longer(weights, one)
            left *= 1 - one**2
            criterion.append(errors.size * np.log(left) + 2 * p)
        return int(np.argmin(criterion))

    def _at(self, angles: Sequence[float]) -> SeriesErrors:
        return replace(self, partial=tuple(np.tanh(angles).tolist()))

    def _together(self, flat: Array, y: Array) -> SeriesErrors:
        """Return the errors with all partial autocorrelations learned at once, from those found one by one."""
        at = optimize.minimize(
            lambda angles: _restricted(self._at(angles), flat, y),
            np.arctanh(self.partial),
            method="L-BFGS-B",
            bounds=[(-FARTHEST, FARTHEST)] * len(self.partial),
        )
        return self._at(at.x)


def _longer(weights: Array, partial: float) -> Array:
    """Return the best prediction from one row more, given its partial autocorrelation (Durbin–Levinson)."""
    return np.append(weights - partial * weights[::-1], partial)


@dataclass(frozen=True)
class GroupErrors(Errors):
    """Errors of which rows of one group share a part: V = (1 − ρ)I + ρ11ᵀ within a group."""

    codes: Index  # the group of every row
    weight: Array  # how often each row counts
    shared: float = 0.0  # ρ

    @classmethod
    def of(cls, rows: CheckedRows) -> GroupErrors:
        """Return independent errors of rows in groups."""
        if rows.groups is None:
            raise ValueError("rows='groups' needs the groups: fit(X, y, groups=…), one label for every row.")
        return cls(rows.groups, root_weights(rows.weight, rows.X.shape[0])[:, 0] ** 2)

    @cached_property
    def sizes(self) -> Array:
        """How many rows each group has."""
        return np.bincount(self.codes, self.weight).astype(float)

    @property
    def correlation(self) -> Array:
        """The intraclass correlation."""
        return np.array([self.shared] if self.shared > 0 else [])

    @property
    def log_volume(self) -> float:
        """ln|V|."""
        own = np.log1p(-self.shared)
        return float(((self.sizes - 1) * own + np.log1p(self.shared * (self.sizes - 1))).sum())

    def whitened(self, block: Array) -> Array:
        """Return L times a block of columns, L = (I − θ11ᵀ/n)/√(1 − ρ) within a group of n rows."""
        own = 1 - self.shared
        taken = (1 - np.sqrt(own / (own + self.shared * self.sizes)))[self.codes]
        return np.asarray((block - self.means(block) * (taken if block.ndim == 1 else taken[:, None])) / np.sqrt(own))

    def means(self, block: Array) -> Array:
        """Return the mean of every row's group."""
        shares = self.weight / self.sizes[self.codes]
        return np.asarray((sparse.csr_array((shares, (self.codes, np.arange(self.codes.size)))) @ block)[self.codes])

    def learned(self, flat: Array, y: Array) -> GroupErrors:
        """Return the errors that y leaves beside some orthonormal columns."""
        independent = replace(self, shared=0.0)
        if self.sizes.max() <= 1:  # no two rows share an error
            return independent
        at = optimize.minimize_scalar(
            lambda z: _restricted(replace(self, shared=float(np.tanh(z))), flat, y, self.weight),
            bounds=(0.0, float(np.arctanh(1 - LEAST_OWN))),
            method="bounded",
        )
        better = at.fun < _restricted(independent, flat, y, self.weight)
        return replace(self, shared=float(np.tanh(at.x))) if better else independent


def agreeing_groups(rows: CheckedRows) -> CheckedRows | None:
    """Return rows that are means of their groups and count as one together; None where y differs within some group."""
    errors, y = GroupErrors.of(rows), rows.Y[:, 0]
    first = np.unique(errors.codes, return_index=True)[1]
    apart = float(np.abs(y - y[first][errors.codes]).max())
    if errors.sizes.max() <= 1 or apart > AGREEING * np.ptp(y) or np.ptp(y) == 0:
        return None
    X, Y = errors.means(dense(rows.X)), errors.means(rows.Y)
    weight = errors.weight / np.maximum(errors.sizes, 1.0)[errors.codes]
    how = Whitened(np.ones(y.size), 0.0, np.ones(1), rows)
    return replace(rows, X=X, Y=Y, weight=weight, ranges=ranges_of(X), whitened=how)


def one_of_each_group(rows: CheckedRows) -> CheckedRows:
    """Return the first row of every group."""
    first = np.sort(np.unique(np.asarray(rows.groups), return_index=True)[1])
    numbers = np.arange(rows.Y.shape[0]) if rows.used is None else np.flatnonzero(rows.used)
    used = np.isin(np.arange(numbers[-1] + 1), numbers[first])
    return replace(rows.subset(first), used=used, weight=None, whitened=None)


def _restricted(errors: Errors, flat: Array, y: Array, weight: Array | None = None) -> float:
    """Return −2 ln of the restricted likelihood, up to a constant, at the best σ²."""
    root = root_weights(weight, y.size)
    (triangle,) = linalg.qr(root * errors.whitened(np.column_stack([flat, y])), mode="r", check_finite=False)
    q, m = flat.shape[1], float((root**2).sum())
    diagonal: Array = np.abs(triangle.diagonal())
    left = max(float(diagonal[q]) ** 2, m * EPS**2)
    return float((m - q) * np.log(left) + errors.log_volume + 2 * np.log(diagonal[:q]).sum())


@dataclass(frozen=True)
class UnequalErrors(Errors):
    """Independent errors of unequal size: V = diag(h²), and y less what is drawn in."""

    lines: Array  # broken lines in the normal scores of the columns and of the distances of rows, centred
    far: Array  # h₀
    size: Array  # h
    excess: Array  # y − y*, in units of the largest |y|
    sizes_learned: bool = False
    correlation = np.empty(0)

    @classmethod
    def of(cls, rows: CheckedRows) -> UnequalErrors:
        """Return errors of equal size, none of them large."""
        m, d = rows.X.shape
        require(8 * 12 * m * d, f"{m} rows and {d} columns of errors of unequal size")
        X = dense(rows.X)
        X = X[:, np.ptp(X, axis=0) > 0]
        if X.shape[1] == 0:
            return cls(np.empty((m, 0)), np.ones(m), np.ones(m), np.zeros(m))
        lines = _broken_lines(np.column_stack([X, _distances(X)]))
        return cls(lines, np.maximum(1.0, _robust_distances(X) * MEDIAN / FAR), np.ones(m), np.zeros(m))

    @property
    def independent(self) -> bool:
        """Whether V = I, and y stays as it is."""
        return not self.excess.any() and bool(np.all(self.size == 1))

    @property
    def log_volume(self) -> float:
        """ln|V|."""
        return 2 * float(np.log(self.size).sum())

    def whitened(self, block: Array) -> Array:
        """Return L times a block of columns: rows divided by the size of their errors."""
        return np.asarray(block / (self.size if block.ndim == 1 else self.size[:, None]))

    def drawn_in(self, Y: Array) -> Array:
        """Return y*."""
        return np.asarray(Y - np.abs(Y).max(axis=0) * self.excess[:, None])

    def starts(self, flat: Array, y: Array) -> list[Errors]:
        """Return errors drawn in beside no term: beside others, false terms of few rows would hide large errors."""
        return [self.learned(flat, y)]

    def refined(self) -> Errors | None:
        """Return errors whose sizes are learned."""
        return None if self.sizes_learned else replace(self, sizes_learned=True)

    def learned(self, flat: Array, y: Array) -> UnequalErrors:
        """Return sizes, where they are to be learned, and tails; see the head of the module."""
        found = replace(self, size=self.far, excess=np.zeros(y.size))
        for _ in range(SIZE_ROUNDS if self.sizes_learned else 0):
            fitted, scale, taken = _huber(found.whitened(flat), found.whitened(y))
            if scale > EPS:
                errors = (y - fitted * found.size) / self.far / np.sqrt(1 - taken)
                lines = np.hstack([self.lines, _broken_lines((fitted * found.size)[:, None])])
                found = replace(found, size=self.far * _sizes(lines, errors / scale))
        fitted, scale, _ = _huber(found.whitened(flat), found.whitened(y))
        if scale <= EPS:  # most rows are fitted exactly
            return replace(found, size=np.ones(y.size))
        u = (found.whitened(y) - fitted) / scale
        drawn = np.clip(u, -DRAWN_IN, DRAWN_IN) / np.mean(np.abs(u) < DRAWN_IN)
        # In units in which σ² is the mean square of the errors drawn in.
        size = found.size * np.sqrt(np.mean(drawn**2) / np.mean((drawn * found.size) ** 2))
        return replace(found, size=size, excess=(u - drawn) * scale * found.size)


def _distances(X: Array) -> Array:
    """Return how far every row is from the mean, in deviations of the columns: the mean of their squares."""
    Z = X / np.abs(X).max(axis=0)
    Z -= Z.mean(axis=0)
    return np.asarray((Z**2 / (Z**2).mean(axis=0)).mean(axis=1))


def _robust_distances(X: Array) -> Array:
    """Return D: how far every row is from the medians, in median distances of rows that are not there."""
    away = np.abs(X - np.median(X, axis=0))
    with np.errstate(invalid="ignore"):
        usual = np.nanmedian(np.where(away > 0, away, np.nan), axis=0)
    return np.sqrt(((away / usual) ** 2).mean(axis=1))


def _broken_lines(X: Array) -> Array:
    """Return z, |z|, max(z, 0) and min(z, 0) of the normal scores z of columns, centred."""
    scores = np.apply_along_axis(normal_scores, 0, X)
    lines = np.hstack([scores, np.abs(scores), np.maximum(scores, 0.0), np.minimum(scores, 0.0)])
    return np.asarray(lines - lines.mean(axis=0))


def _huber(flat: Array, y: Array) -> tuple[Array, float, Array]:
    """Return what some columns fit to y by Huber's regression, the scale of its errors, and the share taken of each."""
    basis = linalg.qr(flat, mode="economic", check_finite=False)[0] if flat.shape[1] else flat
    fitted = basis @ (basis.T @ y)
    degrees = max(y.size - basis.shape[1], 1)
    for _ in range(MOST_STEPS):
        errors = y - fitted
        scale = float(np.median(np.abs(errors))) / MEDIAN * np.sqrt(y.size / degrees)
        step = basis @ (basis.T @ np.clip(errors, -DRAWN_IN * scale, DRAWN_IN * scale))
        fitted = fitted + step
        if np.abs(step).max() <= STEP * scale:
            break
    return fitted, scale, np.minimum((basis**2).sum(axis=1), MOST_TAKEN)


def _sizes(lines: Array, errors: Array) -> Array:
    """Return h: lines enter while the best is significant, as one of all."""
    m, chosen = errors.size, list[int]()
    log_size = np.full(m, np.log(np.median(np.abs(errors)) / MEDIAN))
    norms = (lines**2).sum(axis=0)
    cut = -special.ndtri(SPURIOUS / 2 / max(lines.shape[1], 1))
    for _ in range(min(MOST_LINES, lines.shape[1])):
        log_size = _along(lines[:, chosen], errors, log_size)
        squares = _squares(errors, log_size)
        basis = linalg.qr(lines[:, chosen], mode="economic")[0] if chosen else np.empty((m, 0))
        left = norms - ((basis.T @ lines) ** 2).sum(axis=0)
        squares -= squares.mean() + basis @ (basis.T @ squares)
        new = left > STEP * norms
        t = np.where(new, np.abs(lines.T @ squares) / np.sqrt(np.where(new, left, 1.0) * squares.var()), 0.0)
        if not t.max() > cut:
            break
        chosen.append(int(np.argmax(t)))
    log_size = _along(lines[:, chosen], errors, log_size)
    far = np.log(FARTHEST_SIZE)
    size = np.exp(np.clip(log_size - log_size.mean(), -far, far))
    return np.asarray(size / np.sqrt(np.mean(size**2)))


def _along(lines: Array, errors: Array, log_size: Array) -> Array:
    """Return ln h + constant, a sum of some lines and a constant for which Σ z(ρ(u) − E ρ) = 0."""
    columns = np.column_stack([np.ones(errors.size), lines])
    inverse = np.linalg.pinv(columns)
    at = inverse @ log_size
    for _ in range(MOST_STEPS):
        step = inverse @ (_squares(errors, columns @ at) - EXPECTED_SQUARE) / 2
        at += np.clip(step, -1.0, 1.0)
        if np.abs(step).max() <= STEP:
            break
    return np.asarray(columns @ at)


def _squares(errors: Array, log_size: Array) -> Array:
    """Return ρ(u)."""
    with np.errstate(over="ignore"):
        return np.minimum((errors * np.exp(-log_size)) ** 2, LARGEST_ERROR**2)
