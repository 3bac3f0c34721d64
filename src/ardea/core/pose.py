"""From rows to problems: project out the flat columns, normalise, remember the way back.

Three kinds of Θ: an array (one copy of it is made, normalised and column-major), a sparse matrix, and a linear operator
(neither is ever made dense).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ardea.core.columns import Array, Columns, DenseColumns, Index, ProjectedColumns, Source
from ardea.core.factor import power_of_two
from ardea.core.problem import EPS, Coordinates, Flat, Problem

BLOCK_BYTES = 2**20
# Columns with this share of their norm or less left after projection are measured one by one.
CANCELLED_SHARE = 1e-4


class FlatRows:
    """The rows of the flat columns F, weighted: an orthonormal basis of their range, F⁺ and (FᵀF)⁺."""

    def __init__(self, rows: Array, intercept: bool, keep: Sequence[int]) -> None:
        self.intercept = intercept
        self.kept: Index = np.asarray(keep, dtype=np.intp)
        self.basis: Array = rows
        self.unload: Array = rows.T
        self.inverse_gram: Array = np.zeros((0, 0))
        if rows.shape[1] == 0:
            return
        scale = power_of_two(np.abs(rows).max(axis=0, initial=0.0))
        u, s, vt = np.linalg.svd(rows / scale, full_matrices=False)
        rank = int((s > s.max(initial=0.0) * 1e-12).sum())
        half = (vt[:rank].T / s[:rank]) / scale[:, None]
        self.basis = u[:, :rank]
        self.unload = half @ self.basis.T
        self.inverse_gram = half @ half.T

    def projected(self, rows: Array) -> Array:
        """Return rows − UUᵀrows, twice, since once leaves rounding error of the size of what was removed."""
        if self.basis.shape[1] == 0:
            return rows
        once = rows - self.basis @ (self.basis.T @ rows)
        twice: Array = once - self.basis @ (self.basis.T @ once)
        return twice

    def flat(self, loadings: Array, target_loadings: Array) -> Flat:
        """Return what the coordinates remember of F."""
        rank = self.basis.shape[1]
        return Flat(self.kept, self.intercept, loadings, target_loadings, self.inverse_gram, rank)


def pose_dense(
    theta: Array,
    targets: Array,
    flat_rows: FlatRows,
    *,
    rest_rows: Array | None = None,
    root: Array | None = None,
    total_weight: float,
    n_samples: int,
) -> tuple[list[Problem], Coordinates]:
    """Pose an array Θ (rows still to be multiplied by `root` where that is given; targets already are)."""
    share = _rounding_share(n_samples)
    m, d = theta.shape
    matrix = np.empty((m, d), order="F")
    scale, loadings = np.empty(d), np.empty((flat_rows.unload.shape[0], d))
    width = max(8, BLOCK_BYTES // (8 * max(m, 1)))
    for start in range(0, d, width):
        part = slice(start, start + width)
        block = np.array(theta[:, part], dtype=np.float64, order="C")  # one layout, so that sums run in one order
        if root is not None:
            block *= root[:, None]
        loadings[:, part] = flat_rows.unload @ block
        coarse = power_of_two(np.maximum(block.max(axis=0, initial=0.0), -block.min(axis=0, initial=0.0)))
        block /= coarse
        raw = np.einsum("ij,ij->j", block, block)
        block = flat_rows.projected(block)
        left = np.einsum("ij,ij->j", block, block)
        live = left > share**2 * raw
        unit = np.where(live, power_of_two(np.sqrt(left)), 1.0)
        np.multiply(block, live / unit, out=matrix[:, part])
        scale[part] = coarse * unit
    matrix[:, flat_rows.kept] = 0.0
    flat = flat_rows.flat(loadings, flat_rows.unload @ targets)
    rest_rows = np.empty((0, targets.shape[1])) if rest_rows is None else rest_rows
    n_rows = _free_rows(total_weight, flat.rank)
    problems, scales = _one_per_target(DenseColumns(matrix), targets, flat_rows, rest_rows, n_rows, share)
    return problems, Coordinates(scale, scales, flat, total_weight, n_samples)


def pose_array(
    X: Any, Y: Array, weight: Array | None, *, intercept: bool, keep: Sequence[int] = ()
) -> tuple[list[Problem], Coordinates]:
    """Pose an array with d ≥ m, or too many columns for a d×d factor: Θ is kept."""
    root = np.ones(X.shape[0]) if weight is None else np.sqrt(weight)
    flat = np.column_stack([root[:, None][:, : int(intercept)], root[:, None] * X[:, list(keep)]])
    return pose_dense(
        X,
        root[:, None] * Y,
        FlatRows(flat, intercept, keep),
        root=None if weight is None else root,
        total_weight=float(root @ root),
        n_samples=X.shape[0],
    )


def pose_implicit(
    source: Source, Y: Array, weight: Array | None, *, intercept: bool, keep: Sequence[int] = ()
) -> tuple[list[Problem], Coordinates]:
    """Pose a sparse matrix or an operator without making it dense."""
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
    problems, scales = _one_per_target(
        columns, targets, flat_rows, np.empty((0, Y.shape[1])), _free_rows(total, flat.rank), _rounding_share(m)
    )
    return problems, Coordinates(unit, scales, flat, total, m)


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


def _rounding_share(n_samples: int) -> float:
    """Return the share of its raw norm below which a projected column is rounding error of a constant one."""
    return EPS * (32 + float(np.sqrt(n_samples)))


def _free_rows(total_weight: float, rank: int) -> float:
    """Return m less the flat directions; half of m where weights add up to less than those (the estimator warns)."""
    return max(total_weight - rank, total_weight / 2)


def _one_per_target(
    columns: Columns, targets: Array, flat_rows: FlatRows, rest_rows: Array, n_rows: float, rounding_share: float
) -> tuple[list[Problem], Array]:
    raw = np.vstack([targets, rest_rows])
    scales = np.maximum(power_of_two(np.abs(raw).max(axis=0, initial=0.0)), np.finfo(float).tiny)
    z = flat_rows.projected(targets / scales)
    rest = ((rest_rows / scales) ** 2).sum(axis=0)
    total = (z**2).sum(axis=0) + rest
    # A target that is constant (or zero) leaves rounding error only: make it exactly zero.
    vanishing = total <= rounding_share**2 * (((targets / scales) ** 2).sum(axis=0) + rest)
    unit = np.where(vanishing, 1.0, power_of_two(np.sqrt(total)))
    z = np.where(vanishing, 0.0, z / unit)
    rest = np.where(vanishing, 0.0, rest / unit**2)
    problems = [Problem(columns, np.ascontiguousarray(z[:, t]), float(rest[t]), n_rows) for t in range(z.shape[1])]
    return problems, scales * unit


def _projected_norms(source: Source, flat_rows: FlatRows, loadings: Array) -> Array:
    """Return ‖θ_j − UUᵀθ_j‖ as √(‖θ_j‖² − ‖Uᵀθ_j‖²) where that keeps its digits, column by column where it does not."""
    raw = source.norms
    coarse = power_of_two(raw)
    square = (raw / coarse) ** 2
    left = square - ((loadings / coarse[:, None]) ** 2).sum(axis=1)
    share = _rounding_share(source.shape[0])
    for j in np.flatnonzero((left <= CANCELLED_SHARE * square) & (raw > 0)):
        column = flat_rows.projected(source.take(np.array([j]))) / coarse[j]
        size = float(np.linalg.norm(column))
        left[j] = size**2 if size > share * np.sqrt(square[j]) else 0.0
    return np.sqrt(np.maximum(left, 0.0)) * coarse
