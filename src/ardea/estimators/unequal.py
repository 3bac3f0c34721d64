"""Errors of rows of unequal size: V of independent rows, learned from their tails and from what their sizes follow.

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
3) *Sizes.* ln h/h₀ is a sum of broken lines in normal scores z: z, |z|, max(z, 0), min(z, 0) and steps, of the
   columns, of the distance of a row from their means (errors that grow with leverage), and of f (errors that grow with
   y). For a lognormal column z is its logarithm, and h a power of it. Lines enter one by one, the one whose correlation
   with ρ(u) = min(u², c²) is most significant; their coefficients solve Σ z(ρ(u) − E ρ) = 0.

Sizes are learned after the terms have come to rest: the effect of a term that is missing looks like a larger error.

h may still be wrong: rows taken for precise that are not make chance look significant. With x the columns of L[1 X],
free of the first, the variance of a coefficient is that of least squares times v = Σ x²ψ²/(σ²Σ x²) (White's sandwich,
1980). Averaged over the columns, v says how many rows tell as much as one ought to. Each row counts 1/v, if worth it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, special

from ardea.core.problem import EPS, TINY, Array, Index, require
from ardea.estimators.errors import Errors
from ardea.estimators.inputs import CheckedRows, dense
from ardea.estimators.residuals import MEDIAN, MOST_TAKEN
from ardea.estimators.sizes import normal_scores

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
# Where sizes may jump, in normal scores: from one to five sixths of the rows, or so, lie below (a convention).
JUMPS = (-1.0, -0.5, 0.0, 0.5, 1.0)
# Bands of a column that are compared after sizes were learned, and the probability of an alarm where nothing is left.
# Measured: 5 of 900 sound fits (six kinds of errors, 200 × 20), 83 % of bands of a fifth of the rows five times as
# large; eight or fourteen bands find less.
BANDS, BAND_ALARM = 10, 1e-2
# Steps of a Huber regression, and of the coefficients of sizes, and when they end; each gains a digit in about three.
MOST_STEPS, STEP = 100, 1e-6


@dataclass(frozen=True)
class UnequalErrors(Errors):
    """Independent errors of unequal size: V = diag(h²), and y less what is drawn in."""

    lines: Array  # broken lines in the normal scores of the columns and of the distances of rows, centred
    far: Array  # h₀
    size: Array  # h
    excess: Array  # y − y*, in units of the largest |y|
    squares: Array  # ψ²/σ², less what fitting took of them
    sizes_learned: bool = False
    correlation = np.empty(0)

    @classmethod
    def of(cls, rows: CheckedRows) -> UnequalErrors:
        """Return errors of equal size, none of them large."""
        m, d = rows.X.shape
        require(8 * 25 * m * d, f"{m} rows and {d} columns of errors of unequal size")
        X = dense(rows.X)
        X = X[:, np.ptp(X, axis=0) > 0]
        if X.shape[1] == 0:
            return cls(np.empty((m, 0)), np.ones(m), np.ones(m), np.zeros(m), np.ones(m))
        lines = _broken_lines(np.column_stack([X, _distances(X)]))
        return cls(lines, np.maximum(1.0, _robust_distances(X) * MEDIAN / FAR), np.ones(m), np.zeros(m), np.ones(m))

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

    def inflation(self, white: Array, constant: Array) -> float:
        """Return v, where sizes are learned."""
        if not self.sizes_learned:
            return 1.0
        apart = white / np.maximum(np.abs(white).max(axis=0), TINY)
        apart -= np.outer(constant, constant @ apart / (constant @ constant))
        np.square(apart, out=apart)
        sums = apart.sum(axis=0)
        return float(np.mean(self.squares @ apart / sums, where=sums > EPS)) if sums.max(initial=0.0) > EPS else 1.0

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
        fitted, scale, taken = _huber(found.whitened(flat), found.whitened(y))
        if scale <= EPS:  # most rows are fitted exactly
            return replace(found, size=np.ones(y.size), squares=np.ones(y.size))
        u = (found.whitened(y) - fitted) / scale
        drawn = np.clip(u, -DRAWN_IN, DRAWN_IN) / np.mean(np.abs(u) < DRAWN_IN)
        # In units in which σ² is the mean square of the errors drawn in.
        size = found.size * np.sqrt(np.mean(drawn**2) / np.mean((drawn * found.size) ** 2))
        squares = drawn**2 / (1 - taken)
        excess = (u - drawn) * scale * found.size
        return replace(found, size=size, excess=excess, squares=squares / squares.mean())


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
    """Return z, |z|, max(z, 0), min(z, 0) and jumps of the normal scores z of columns, centred."""
    scores = np.apply_along_axis(normal_scores, 0, X)
    jumps = [(scores > jump).astype(float) for jump in JUMPS]
    lines = np.hstack([scores, np.abs(scores), np.maximum(scores, 0.0), np.minimum(scores, 0.0), *jumps])
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
        t = np.where(new, np.abs(lines.T @ squares) / np.sqrt(np.where(new, left, 1.0) * max(squares.var(), TINY)), 0.0)
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


def banded(rows: CheckedRows, numbers: Index, places: Index, errors: Array) -> int | None:
    """Return along which of some columns errors still change, with sizes learned; None if that may be chance.

    Squares are compared between bands of as many rows, cut off at LARGEST_ERROR: Σ m_b(mean − mean_b)²/variance is χ².
    """
    u = errors * MEDIAN / max(float(np.median(np.abs(errors))), TINY)
    squares = np.minimum(u**2, LARGEST_ERROR**2)
    squares -= squares.mean()
    columns = dense(rows.given.X[: numbers[-1] + 1])[np.ix_(numbers, places)]
    parts = np.array_split(squares[np.argsort(columns, axis=0, kind="stable")], BANDS)
    apart = sum(len(part) * part.mean(axis=0) ** 2 for part in parts) / max(float(squares.var()), TINY)
    column = int(np.argmax(apart))
    return column if columns.shape[1] * special.chdtrc(BANDS - 1, apart[column]) < BAND_ALARM else None
