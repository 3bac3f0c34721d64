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

import numpy as np
from scipy import sparse

from ardea.core.columns import Array, Columns, DenseColumns, Index, SparseColumns
from ardea.core.factor import Rows, factor_by_gram, factor_by_qr, power_of_two, shortened, triangle
from ardea.core.problem import EPS, Coordinates, Flat, Problem

# No d×d matrix above this number of columns.
COMPRESSION_COLUMN_LIMIT = 5000


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

    @classmethod
    def from_arrays(cls, X: Array | sparse.sparray, Y: Array, weight: Array | None = None) -> Compression:
        """Compress arrays in memory, by the Gram matrix where its conditioning allows, else by QR; in row blocks."""
        m, d = X.shape
        total = float(m if weight is None else weight.sum())
        rows = Rows(X, Y, weight)
        factor = None
        if d > COMPRESSION_COLUMN_LIMIT or m <= rows.width:
            factor = rows.weighted(slice(None), np.zeros(rows.width - 1))
        elif m > 2 * rows.width:
            factor = factor_by_gram(rows)
        return cls(factor_by_qr(rows) if factor is None else factor, d, total, m)

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
            shortened(stacked),
            self.n_features,
            self.total_weight + other.total_weight,
            self.n_samples + other.n_samples,
        )

    def pose(self, *, intercept: bool, keep: Sequence[int] = ()) -> tuple[list[Problem], Coordinates]:
        """Project out the flat columns and return one normalised problem per target, with the way back."""
        d = self.n_features
        rows, spanned = self.factor, self.factor.shape[0]
        if spanned > 1 + d and d <= COMPRESSION_COLUMN_LIMIT:
            spanned = 1 + d
            rows = triangle(rows) if rows[spanned:, :spanned].any() else rows
        theta, targets = rows[:spanned, 1 : 1 + d], rows[:spanned, 1 + d :]
        flat_columns = np.concatenate([[0] if intercept else [], 1 + np.asarray(keep, dtype=float)]).astype(np.intp)
        basis, unload, inverse_gram = _flat_basis(rows[:spanned, flat_columns])
        flat = Flat(
            np.asarray(keep, dtype=np.intp), intercept, unload @ theta, unload @ targets, inverse_gram, basis.shape[1]
        )
        share = _rounding_share(self.n_samples)
        theta, column_scale = _normalised(theta, basis, flat.kept, share)
        columns = DenseColumns(theta)
        rest_rows = rows[spanned:, 1 + d :]
        n_rows = _free_rows(self.total_weight, basis)
        problems, scales = _one_per_target(columns, targets, basis, rest_rows, n_rows, share)
        return problems, Coordinates(column_scale, scales, flat, self.total_weight, self.n_samples)


def pose_sparse(
    X: sparse.csc_array, Y: Array, weight: Array | None, *, intercept: bool, keep: Sequence[int] = ()
) -> tuple[list[Problem], Coordinates]:
    """Pose a sparse Θ without making it dense: for d ≥ m, or too many columns for a d×d factor."""
    m = X.shape[0]
    root = np.ones(m) if weight is None else np.sqrt(weight)
    peak = np.maximum(_sparse_peak(X), np.finfo(float).tiny)
    scale = power_of_two(peak)
    matrix = sparse.csc_array(sparse.diags_array(root) @ X @ sparse.diags_array(1 / scale))
    kept = np.asarray(keep, dtype=np.intp)
    flat_rows = np.column_stack([root[:, None][:, : int(intercept)], matrix[:, kept].toarray() * scale[kept]])
    basis, unload, inverse_gram = _flat_basis(flat_rows)
    loadings = matrix.T @ basis
    targets = root[:, None] * Y
    flat = Flat(kept, intercept, (matrix.T @ unload.T).T * scale, unload @ targets, inverse_gram, basis.shape[1])
    square_norms = _projected_square_norms(matrix, basis, loadings)
    square_norms[kept] = 0.0
    unit = np.where(square_norms > 0, power_of_two(np.sqrt(square_norms)), 1.0)
    columns = SparseColumns(
        sparse.csc_array(matrix @ sparse.diags_array(1 / unit)),
        basis,
        loadings / unit[:, None],
        square_norms / unit**2,
    )
    total = float(m if weight is None else weight.sum())
    no_rest = np.empty((0, Y.shape[1]))
    problems, scales = _one_per_target(columns, targets, basis, no_rest, _free_rows(total, basis), _rounding_share(m))
    return problems, Coordinates(scale * unit, scales, flat, total, m)


def _free_rows(total_weight: float, basis: Array) -> float:
    """Return m less the flat directions; half of m where weights add up to less than those (the estimator warns)."""
    return max(total_weight - basis.shape[1], total_weight / 2)


def _rounding_share(n_samples: int) -> float:
    """Return the share of its raw norm below which a projected column is rounding error of a constant one."""
    return EPS * (32 + float(np.sqrt(n_samples)))


def _one_per_target(
    columns: Columns, targets: Array, basis: Array, rest_rows: Array, n_rows: float, rounding_share: float
) -> tuple[list[Problem], Array]:
    raw = np.vstack([targets, rest_rows])
    scales = np.maximum(power_of_two(np.abs(raw).max(axis=0, initial=0.0)), np.finfo(float).tiny)
    z = _projected(targets / scales, basis)
    rest = ((rest_rows / scales) ** 2).sum(axis=0)
    total = (z**2).sum(axis=0) + rest
    # A target that is constant (or zero) leaves rounding error only: make it exactly zero.
    vanishing = total <= rounding_share**2 * (((targets / scales) ** 2).sum(axis=0) + rest)
    unit = np.where(vanishing, 1.0, power_of_two(np.sqrt(total)))
    z = np.where(vanishing, 0.0, z / unit)
    rest = np.where(vanishing, 0.0, rest / unit**2)
    problems = [Problem(columns, np.ascontiguousarray(z[:, t]), float(rest[t]), n_rows) for t in range(z.shape[1])]
    return problems, scales * unit


def _normalised(theta: Array, basis: Array, kept: Index, rounding_share: float) -> tuple[Array, Array]:
    """Return Θ less its projection on the flat basis, in columns of norm near one, and the scale of each column."""
    coarse = power_of_two(np.abs(theta).max(axis=0, initial=0.0))
    scaled = theta / coarse
    raw_norm = np.linalg.norm(scaled, axis=0)
    scaled = _projected(scaled, basis)
    norm = np.linalg.norm(scaled, axis=0)
    dead = norm <= rounding_share * raw_norm
    dead[kept] = True
    unit = np.where(dead, 1.0, power_of_two(norm))
    scaled /= unit
    scaled[:, dead] = 0.0
    return scaled, coarse * unit


def _projected(rows: Array, basis: Array) -> Array:
    """Return rows − UUᵀrows, twice, since once leaves rounding error of the size of what was removed."""
    if basis.shape[1] == 0:
        return rows.copy()
    once = rows - basis @ (basis.T @ rows)
    twice: Array = once - basis @ (basis.T @ once)
    return twice


def _flat_basis(flat_rows: Array) -> tuple[Array, Array, Array]:
    """Return an orthonormal basis U of F's range, F⁺ and (FᵀF)⁺."""
    scale = power_of_two(np.abs(flat_rows).max(axis=0, initial=0.0))
    u, s, vt = np.linalg.svd(flat_rows / scale, full_matrices=False)
    rank = int((s > s.max(initial=0.0) * 1e-12).sum())
    half = (vt[:rank].T / s[:rank]) / scale[:, None]
    return u[:, :rank], half @ u[:, :rank].T, half @ half.T


def _sparse_peak(X: sparse.csc_array) -> Array:
    peak: Array = abs(X).max(axis=0).toarray().ravel()
    return peak


def _projected_square_norms(matrix: sparse.csc_array, basis: Array, loadings: Array) -> Array:
    """Return ‖S_j − UV_jᵀ‖² as ‖S_j‖² − ‖V_j‖² where that keeps its digits, column by column where it does not."""
    raw: Array = matrix.multiply(matrix).sum(axis=0)
    norms = raw - (loadings**2).sum(axis=1)
    for j in np.flatnonzero(norms <= 1e-4 * raw):
        column = matrix[:, [j]].toarray().ravel() - basis @ loadings[j]
        norms[j] = (
            column @ column if np.linalg.norm(column) > _rounding_share(matrix.shape[0]) * np.sqrt(raw[j]) else 0.0
        )
    return np.maximum(norms, 0.0)
