"""The problem a solver receives: what is left of (Theta, y) after compression, and the way back to the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from ardea.core.columns import ActiveColumns, Array, Columns, DenseColumns, Index

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Problem:
    """One right-hand side after compression: minimise over γ (and σ²) with these alone.

    Attributes
    ----------
    columns : Columns
        r × d design A with AᵀA = ΘᵀΘ (flat columns projected out).
    target : ndarray of shape (r,)
        Part of y in the rows kept, z.
    rest : float
        Squared norm of y outside them.
    n_rows : float
        m: sum of the weights, less the number of flat directions projected out.
    floor : float
        Residual sum of squares that rounding or truncation leaves: nothing below it tells models apart.
    """

    columns: Columns
    target: Array
    rest: float
    n_rows: float
    floor: float = 0.0

    @property
    def n_columns(self) -> int:
        """Number of columns d."""
        return self.columns.shape[1]

    @property
    def square_norms(self) -> Array:
        """ρ, the squared norms of the columns."""
        return self.columns.square_norms

    @cached_property
    def correlations(self) -> Array:
        """Θᵀy."""
        return self.columns.correlate(self.target)

    @cached_property
    def total(self) -> float:
        """‖y‖²."""
        return float(self.target @ self.target) + self.rest

    @cached_property
    def active(self) -> ActiveColumns:
        """Cache of the columns met so far and their Gram rows."""
        return ActiveColumns(self.columns)

    def least_squares(self, index: Index) -> tuple[Array, float]:
        """Return the least-squares coefficients of the chosen columns and the residual sum of squares over all rows."""
        vectors = self.columns.take(index)
        coefficients: Array = np.linalg.lstsq(vectors, self.target, rcond=None)[0].astype(np.float64, copy=False)
        residual = self.target - vectors @ coefficients
        return coefficients, float(residual @ residual) + self.rest

    def restrict(self, index: Index) -> Problem:
        """Return the same data with the chosen columns only, compressed again where that is smaller."""
        columns = self.columns.restrict(index)
        if columns.shape[0] <= 2 * (index.size + 1):
            return replace(self, columns=columns)
        k = index.size
        stacked = np.column_stack([columns.take(np.arange(k)), self.target])
        (triangle,) = linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)
        return Problem(
            DenseColumns(triangle[:k, :k]),
            triangle[:k, k],
            self.rest + float(triangle[k, k] ** 2),
            self.n_rows,
            self.floor,
        )


@dataclass(frozen=True)
class Flat:
    """The columns F with a flat prior (intercept first, then `always_keep`) and what they explain.

    Attributes
    ----------
    kept : ndarray of int
        Columns of Θ in F.
    intercept : bool
        Whether the first column of F is the constant one.
    loadings : ndarray of shape (p, d)
        Least-squares coefficients of Θ's columns on F; for the intercept alone, the column means.
    target_loadings : ndarray of shape (p, n_targets)
        The same for y.
    inverse_gram : ndarray of shape (p, p)
        (FᵀWF)⁻¹, a pseudo-inverse where F is rank deficient.
    rank : int
        Rank of F.
    """

    kept: Index
    intercept: bool
    loadings: Array
    target_loadings: Array
    inverse_gram: Array
    rank: int


@dataclass(frozen=True)
class Coordinates:
    """How to go back from a problem's coordinates to the user's.

    Columns and targets are divided by powers of two near their norms, so that results do not depend on the units
    and numbers near 1e±150 do not overflow when squared: ξ = ξ̃ · target/columns.
    """

    columns: Array
    targets: Array
    flat: Flat
    total_weight: float
    n_samples: int

    def coefficient_unit(self, target: int) -> Array:
        """Return what one unit of each coefficient is worth in the user's units."""
        return self.targets[target] / self.columns
