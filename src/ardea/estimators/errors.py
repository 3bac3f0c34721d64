"""What errors of rows may be like: the covariance σ²V of a series and of groups; that of unequal sizes is in `unequal`.

LVLᵀ = I, and σ² is the mean square of the errors. In a series V is that of a stationary autoregression, given by its
partial autocorrelations π₁ … π_p; in groups V_st = ρ for two rows of one group, and 0 for rows of two groups. Both are
learned by restricted likelihood: with q orthonormal columns F of the model and S² the sum of squares that they leave of
Ly, the least (m − q) ln S² + ln|V| + ln|FᵀV⁻¹F|; the order p by AIC. A season has a π of its own, with zeros before it:
of all lags up to a third of the rows the one at which Ly is correlated most, at the price of AIC for one of so many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, optimize, sparse

from ardea.core.compression import ranges_of, root_weights
from ardea.core.lazy import cached_property
from ardea.core.problem import EPS, TINY, Array, Index
from ardea.estimators.inputs import CheckedRows, Whitened, dense
from ardea.estimators.residuals import lags_of

# Partial autocorrelations stay within ±0.999: beyond, a series of thousands of rows cannot be told from a random walk.
LARGEST = 0.999
FARTHEST = float(np.arctanh(LARGEST))
# Intraclass correlations stay below 1 by the variance within groups in which y agrees up to this share of its range (a
# convention). Beyond, rows of a group tell as much as one (`dependence`).
AGREEING = 1e-6
LEAST_OWN = AGREEING**2
# Derived: thousands of roundings for every row, and far less than a difference of likelihoods that says anything.
ROUNDED = 1e-10
# 10 log₁₀ m orders at most (a convention), one for every ten rows; two in a row that do not pay end the search, after
# the order that Yule and Walker's equations favour.
ROWS_PER_ORDER, UNPAID = 10, 2
# Seasons at most, multiples of one lag among them: a convention.
MOST_SEASONS = 4
# Up to so many partial autocorrelations are learned once more, all together; more would take seconds (a convention).
MOST_TOGETHER = 4


class Errors:
    """Errors of rows, of which every kind says how they begin, are learned, and make rows independent."""

    correlation: Any  # what V was made of, where rows depend on each other
    log_volume: Any  # ln|V|
    of: Callable[[CheckedRows], Errors]  # independent errors of equal size
    learned: Callable[[Array, Array], Errors]  # the errors that y leaves beside some orthonormal columns
    whitened: Callable[[Array], Array]  # L times a block of columns

    @property
    def independent(self) -> bool:
        """Whether V = I, and y stays as it is."""
        return bool(self.correlation.size == 0)

    @property
    def n_learned(self) -> int:
        """How many numbers were learned of V."""
        return int(self.correlation.size)

    def inflation(self, white: Array, constant: Array) -> float:
        """Return how much larger variances of coefficients are than V says, given L times the columns and the constant.

        1 where V is not doubted.
        """
        return 1.0

    def starts(self, flat: Array, y: Array) -> list[Errors]:
        """Return where learning begins, given the columns of no term at all.

        Independent rows would keep false terms that imitate correlated errors; V of no term at all can take true terms
        for them.
        """
        return [self, self.learned(flat, y)]

    def gain(self, flat: Array, y: Array) -> float:
        """Return 2 ln of the restricted likelihood, less its price by AIC, up to a constant."""
        return -_restricted(self, flat, y) - 2 * self.n_learned

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
    def n_learned(self) -> int:
        """How many partial autocorrelations are not zero."""
        return int(np.count_nonzero(self.partial))

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
            for lag in 1 + np.flatnonzero(weight):
                part -= weight[lag - 1] * ordered[rows - lag]
            white[self.order[rows]] = part / np.sqrt(left[known])
        return white

    def learned(self, flat: Array, y: Array) -> SeriesErrors:
        """Return the errors that y leaves beside some orthonormal columns."""
        m, current = y.size, replace(self, partial=())
        best, least = current, _restricted(current, flat, y)
        most = max(1, min(int(10 * np.log10(m)), m // ROWS_PER_ORDER))
        at_least = self._likely_order(y - flat @ (flat.T @ y), most)
        for p in range(1, most + 1):
            current, cost = current._with(p, flat, y)
            if cost + 2 * p < least:
                best, least = current, cost + 2 * p
            elif p >= max(len(best.partial), at_least) + UNPAID:
                break
        best = best._with_seasons(flat, y)
        return best._together(flat, y) if 2 <= best.n_learned <= MOST_TOGETHER else best

    def _with(self, lag: int, flat: Array, y: Array) -> tuple[SeriesErrors, float]:
        """Return the errors with the best partial autocorrelation at some lag, and −2 ln of their likelihood."""
        padded = np.pad(self.partial, (0, max(lag - len(self.partial), 0)))

        def at(z: float) -> SeriesErrors:
            padded[lag - 1] = np.tanh(z)
            return replace(self, partial=tuple(padded.tolist()))

        found = optimize.minimize_scalar(
            lambda z: _restricted(at(z), flat, y), bounds=(-FARTHEST, FARTHEST), method="bounded"
        )
        return at(found.x), float(found.fun)

    def _with_seasons(self, flat: Array, y: Array) -> SeriesErrors:
        """Return the errors with partial autocorrelations at the lags of seasons."""
        best, number = self, lags_of(int(self.place.max()) + 1)
        price = 2 * (1 + np.log(max(number, 1)))
        for _ in range(MOST_SEASONS):
            lag, score = best._season(flat, y, number)
            if score < price:  # about what the season would gain
                break
            longer, cost = best._with(lag, flat, y)
            if cost + price >= _restricted(best, flat, y):
                break
            best = longer
        return best

    def _season(self, flat: Array, y: Array, number: int) -> tuple[int, float]:
        """Return the lag, of so many, at which Ly less its fit is correlated most, and z²; none that was learned."""
        basis, _ = linalg.qr(self.whitened(flat), mode="economic", check_finite=False)
        white = self.whitened(y)
        ordered, z = (white - basis @ (basis.T @ white))[self.order], np.zeros(1 + number)
        learned = np.flatnonzero(self.partial) + 1
        for lag in np.setdiff1d(np.arange(1, 1 + number), learned):
            pairs = (ordered[lag:] * ordered[:-lag])[self.place[lag:] >= lag]
            z[lag] = abs(pairs.sum()) / max(float(np.linalg.norm(pairs)), TINY)
        return int(np.argmax(z)), float(z.max() ** 2)

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

    def _together(self, flat: Array, y: Array) -> SeriesErrors:
        """Return the errors with all partial autocorrelations learned at once, from those found one by one."""
        partial = np.array(self.partial)
        learned = np.flatnonzero(partial)

        def at(angles: Array) -> SeriesErrors:
            partial[learned] = np.tanh(angles)
            return replace(self, partial=tuple(partial.tolist()))

        found = optimize.minimize(
            lambda angles: _restricted(at(angles), flat, y),
            np.arctanh(partial[learned]),
            method="L-BFGS-B",
            bounds=[(-FARTHEST, FARTHEST)] * learned.size,
        )
        return at(found.x)


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
        # Beside an indicator of every group nothing tells ρ: the likelihood is flat, but for rounding.
        better = at.fun < _restricted(independent, flat, y, self.weight) - ROUNDED * y.size
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
    used = np.isin(np.arange(rows.numbers[-1] + 1), rows.numbers[first])
    return replace(rows.subset(first), used=used, weight=None, whitened=None)


def _restricted(errors: Errors, flat: Array, y: Array, weight: Array | None = None) -> float:
    """Return −2 ln of the restricted likelihood, up to a constant, at the best σ²."""
    root = root_weights(weight, y.size)
    (triangle,) = linalg.qr(root * errors.whitened(np.column_stack([flat, y])), mode="r", check_finite=False)
    q, m = flat.shape[1], float((root**2).sum())
    diagonal: Array = np.abs(triangle.diagonal())
    left = max(
        float(diagonal[q]) ** 2 if q < diagonal.size else 0.0, m * EPS**2
    )  # no row is left where columns fit all
    return float((m - q) * np.log(left) + errors.log_volume + 2 * np.log(diagonal[:q]).sum())
