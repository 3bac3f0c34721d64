"""Compression: what is left of (Theta, y), however many rows they had.

With w the row weights (counts), the upper triangle R of a QR factorisation of √w·[1 Θ Y] holds everything that
Eq. (neg_log_likelihood), the tangent weights c, the weighted lasso and the noise rule ask of the data:

- Σ_y acts on the rows outside the range of Θ as σ²I, so log|Σ_y| = (m − r) ln σ² + log|σ²I_r + RΓRᵀ|;
- ‖y − Θξ‖² = ‖z − Rξ‖² + rest, with z the part of y in that range and `rest` the squared norm of what is not.

Rows may come all at once, in blocks, or from several machines; factors are merged by a QR of their stack. Columns
with a flat prior (the intercept, `always_keep`) are projected out, which integrates them out exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from ardea.core.columns import Array
from ardea.core.factor import Rows, factor_by_gram, factor_by_qr, shortened, triangle
from ardea.core.pose import FlatRows, pose_dense
from ardea.core.problem import Coordinates, Problem
from ardea.core.ranges import merged_ranges, ranges_of

# No d×d matrix above this number of columns.
COMPRESSION_COLUMN_LIMIT = 5000
# Shorter blocks than this many times their width go to QR at once: it costs little, and needs no second thought.
GRAM_HEIGHT = 8


@dataclass(frozen=True)
class Compression:
    """R-factor of √w·[1 Θ Y], or those rows themselves while they are fewer than its columns.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(1000, 3)), rng.normal(size=(1000, 1))
    >>> whole = Compression.from_arrays(X, y)
    >>> halves = Compression.from_arrays(X[:300], y[:300]).merge(Compression.from_arrays(X[300:], y[300:]))
    >>> whole.factor.shape, halves.n_samples
    ((5, 5), 1000)
    >>> bool(np.allclose(whole.factor.T @ whole.factor, halves.factor.T @ halves.factor))
    True
    """

    factor: Array
    n_features: int
    total_weight: float
    n_samples: int
    ranges: Array | None = None

    @classmethod
    def from_arrays(
        cls, X: Array | sparse.sparray, Y: Array, weight: Array | None = None, ranges: Array | None = None
    ) -> Compression:
        """Compress arrays in memory, by the Gram matrix where its conditioning allows, else by QR; in row blocks.

        `ranges`, least and greatest value of every column, are computed where they are not given.
        """
        m, d = X.shape
        total = float(m if weight is None else weight.sum())
        rows = Rows(X, Y, weight)
        factor = None
        if d > COMPRESSION_COLUMN_LIMIT or m <= rows.width:
            factor = rows.weighted(slice(None), np.zeros(rows.width - 1))
        elif m > GRAM_HEIGHT * rows.width:
            factor = factor_by_gram(rows)
        return cls(
            factor_by_qr(rows) if factor is None else factor, d, total, m, ranges_of(X) if ranges is None else ranges
        )

    @classmethod
    def from_blocks(cls, blocks: Iterable[tuple[Array, Array, Array | None]]) -> Compression:
        """Compress blocks (X, Y, weight) one after another, in memory O(d²)."""
        merged: Compression | None = None
        for X, Y, weight in blocks:
            block = cls.from_arrays(X, Y, weight)
            merged = block if merged is None else merged.merge(block)
        if merged is None:
            raise ValueError("No block of rows was given: pass at least one.")
        return merged

    @property
    def n_targets(self) -> int:
        """Number of right-hand sides."""
        return self.factor.shape[1] - 1 - self.n_features

    def merge(self, other: Compression) -> Compression:
        """Return the compression of both sets of rows together."""
        if other.factor.shape[1] != self.factor.shape[1] or other.n_features != self.n_features:
            raise ValueError(
                f"Blocks differ in shape: {self.n_features} columns and {self.n_targets} targets against "
                f"{other.n_features} and {other.n_targets}. Give every block the same columns."
            )
        stacked = np.vstack([self.factor, other.factor])
        return Compression(
            shortened(stacked) if self.n_features <= COMPRESSION_COLUMN_LIMIT else stacked,
            self.n_features,
            self.total_weight + other.total_weight,
            self.n_samples + other.n_samples,
            None if self.ranges is None or other.ranges is None else merged_ranges(self.ranges, other.ranges),
        )

    def pose(self, *, intercept: bool, keep: Sequence[int] = ()) -> tuple[list[Problem], Coordinates]:
        """Project out the flat columns and return one normalised problem per target, with the way back."""
        d = self.n_features
        rows, spanned = self.factor, self.factor.shape[0]
        if spanned > 1 + d and d <= COMPRESSION_COLUMN_LIMIT:
            spanned = 1 + d
            rows = triangle(rows) if rows[spanned:, :spanned].any() else rows
        flat_columns = np.concatenate([[0] if intercept else [], 1 + np.asarray(keep, dtype=float)]).astype(np.intp)
        return pose_dense(
            rows[:spanned, 1 : 1 + d],
            rows[:spanned, 1 + d :],
            FlatRows(rows[:spanned, flat_columns], intercept, keep),
            rest_rows=rows[spanned:, 1 + d :],
            total_weight=self.total_weight,
            n_samples=self.n_samples,
        )


@dataclass(frozen=True)
class CompressedRows:
    """Rows that exist only as their compression: stands in for X, with None for y.

    Made by `ardea.distributed.compress` (Dask collections), `ardea.tables` (files) and `ardea.estimators.projections`.

    Attributes
    ----------
    compression : Compression
        The factor of [1 X Y].
    names : tuple of str or None
        Columns of X.
    one_target : bool
        Whether y had one axis.
    """

    compression: Compression
    names: tuple[str, ...] | None = None
    one_target: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns that X had."""
        return self.compression.n_samples, self.compression.n_features

    def __getitem__(self, rows: Any) -> NoReturn:
        raise ValueError(
            "These rows were compressed where they lie, so single rows are no longer there. Criteria that resample "
            "('cv', 'stability') need arrays in memory: use 'evidence', or a sample of the rows."
        )
