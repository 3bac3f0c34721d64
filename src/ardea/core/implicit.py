"""A Θ that is never made dense: a sparse matrix or a linear operator, its flat columns projected out on the fly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse

from ardea.core.compression import FlatRows, free_rows, one_per_target, rounding_share
from ardea.core.problem import Array, Coordinates, Index, Problem, power_of_two

# Columns with this share of their norm or less left after projection are measured one by one.
CANCELLED_SHARE = 1e-4


class Source(Protocol):
    """A Θ that is never made dense: a sparse matrix or a linear operator."""

    shape: tuple[int, int]

    @property
    def norms(self) -> Array:
        """Norm of every column."""

    def weighted(self, root: Array) -> Source:
        """Return the same with every row multiplied by its root weight."""

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""

    def correlate(self, vectors: Array) -> Array:
        """Return Θᵀ vectors."""

    def restrict(self, index: Index) -> Source:
        """Return the chosen columns only."""


class ProjectedColumns:
    """Columns of (Θ − UVᵀ)/unit: a source less its projection on the orthonormal flat basis U, V = ΘᵀU.

    The difference is never formed as a whole, so a sparse Θ stays sparse although centring it would fill it.
    """

    def __init__(self, source: Source, basis: Array, loadings: Array, square_norms: Array, unit: Array) -> None:
        self.source = source
        self.basis = basis
        self.loadings = loadings
        self.square_norms = square_norms
        self.unit = unit
        self._factor = np.where(square_norms > 0, 1 / unit, 0.0)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.shape

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""
        return (self.source.take(index) - self.basis @ self.loadings[index].T) * self._factor[index]

    def correlate(self, vectors: Array) -> Array:
        """Return Aᵀ vectors."""
        product = self.source.correlate(vectors) - self.loadings @ (self.basis.T @ vectors)
        return product * (self._factor if vectors.ndim == 1 else self._factor[:, None])

    def restrict(self, index: Index) -> ProjectedColumns:
        """Return the design with the chosen columns only."""
        return ProjectedColumns(
            self.source.restrict(index), self.basis, self.loadings[index], self.square_norms[index], self.unit[index]
        )


class SparseSource:
    """Columns of a sparse matrix, scaled by powers of two so that their squares do not overflow."""

    def __init__(self, matrix: sparse.csc_array, scale: Array | None = None) -> None:
        if scale is None:
            scale = power_of_two(abs(matrix).max(axis=0).toarray().ravel())
            matrix = sparse.csc_array(matrix @ sparse.diags_array(1 / scale))
        self.matrix = matrix
        self.scale = scale
        self.shape: tuple[int, int] = matrix.shape

    @cached_property
    def norms(self) -> Array:
        """Norm of every column."""
        return np.sqrt(self.matrix.multiply(self.matrix).sum(axis=0)) * self.scale

    def weighted(self, root: Array) -> SparseSource:
        """Return the columns with every row multiplied by its root weight."""
        return SparseSource(sparse.csc_array(sparse.diags_array(root) @ self.matrix), self.scale)

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""
        return np.asarray(self.matrix[:, index].toarray() * self.scale[index])

    def correlate(self, vectors: Array) -> Array:
        """Return Aᵀ vectors."""
        product: Array = self.matrix.T @ vectors
        return product * (self.scale if vectors.ndim == 1 else self.scale[:, None])

    def restrict(self, index: Index) -> SparseSource:
        """Return the chosen columns only."""
        return SparseSource(self.matrix[:, index], self.scale[index])


def pose_implicit(
    source: Source,
    Y: Array,
    weight: Array | None,
    *,
    intercept: bool,
    keep: Sequence[int] = (),
    n_distinct: int | None = None,
) -> tuple[list[Problem], Coordinates]:
    """Pose a sparse matrix or an operator without making it dense; without `n_distinct` all rows count as different."""
    m = Y.shape[0]
    root = np.ones(m) if weight is None else np.sqrt(weight)
    source = source if weight is None else source.weighted(root)
    kept = np.asarray(keep, dtype=np.intp)
    flat_rows = FlatRows(np.column_stack([root[:, None][:, : int(intercept)], source.take(kept)]), intercept, keep)
    loadings, targets = source.correlate(flat_rows.basis), root[:, None] * Y
    flat = flat_rows.flat(source.correlate(flat_rows.unload.T).T, flat_rows.unload @ targets)
    norms = _projected_norms(source, flat_rows, loadings)
    norms[kept] = 0.0
    unit = np.where(norms > 0, power_of_two(norms), 1.0)
    columns = ProjectedColumns(source, flat_rows.basis, loadings, (norms / unit) ** 2, unit)
    total = float(root @ root)
    sizes = free_rows(total, flat.rank), free_rows(m if n_distinct is None else n_distinct, flat.rank)
    problems, scales = one_per_target(columns, targets, flat_rows, np.empty((0, Y.shape[1])), sizes, rounding_share(m))
    return problems, Coordinates(unit, scales, flat, total, m)


def _projected_norms(source: Source, flat_rows: FlatRows, loadings: Array) -> Array:
    """Return ‖θ_j − UUᵀθ_j‖ as √(‖θ_j‖² − ‖Uᵀθ_j‖²) where that keeps its digits, column by column where it does not."""
    raw = source.norms
    coarse = power_of_two(raw)
    square = (raw / coarse) ** 2
    left = square - ((loadings / coarse[:, None]) ** 2).sum(axis=1)
    share = rounding_share(source.shape[0])
    for j in np.flatnonzero((left <= CANCELLED_SHARE * square) & (raw > 0)):
        column = flat_rows.projected(source.take(np.array([j]))) / coarse[j]
        size = float(np.linalg.norm(column))
        left[j] = size**2 if size > share * np.sqrt(square[j]) else 0.0
    return np.sqrt(np.maximum(left, 0.0)) * coarse
