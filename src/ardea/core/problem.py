"""Compression: what is left of (Theta, y), however many rows they had.

With w the row weights (counts), the upper triangle R of a QR factorisation of √w·[1 Θ Y] holds everything that
Eq. (neg_log_likelihood), the tangent weights c, the weighted lasso and the noise rule ask of the data:

- Σ_y acts on the rows outside the range of Θ as σ²I, so log|Σ_y| = (m − r) ln σ² + log|σ²I_r + RΓRᵀ|;
- ‖y − Θξ‖² = ‖z − Rξ‖² + rest, with z the part of y in that range and `rest` the squared norm of what is not.

Rows may come all at once, in blocks, or from several machines; factors are merged by a QR of their stack. Columns
with a flat prior (the intercept, `always_keep`) are projected out, which integrates them out exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ardea.core.columns import ActiveColumns, Array, Columns, DenseColumns, Index, SparseColumns

EPS = float(np.finfo(np.float64).eps)
# A centred column below this share of its raw norm is rounding error of a constant column.
ROUNDING_SHARE = 32 * EPS
# Above this condition number of the unit-norm columns the Gram matrix loses more than half the digits that QR keeps.
GRAM_CONDITION_LIMIT = 2e3
BLOCK_BYTES = 2**23
# No d×d matrix above this number of columns.
COMPRESSION_COLUMN_LIMIT = 5000


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
    """

    columns: Columns
    target: Array
    rest: float
    n_rows: float

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

    def restrict(self, index: Index) -> Problem:
        """Return the same data with the chosen columns only, compressed again where that is smaller."""
        columns = self.columns.restrict(index)
        if columns.shape[0] <= 2 * (index.size + 1):
            return replace(self, columns=columns)
        stacked = np.column_stack([columns.take(np.arange(index.size)), self.target])
        triangle = _triangle(stacked)
        k = index.size
        return Problem(
            DenseColumns(triangle[:k, :k]),
            triangle[:k, k],
            self.rest + float(triangle[k, k] ** 2),
            self.n_rows,
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
    """

    kept: Index
    intercept: bool
    loadings: Array
    target_loadings: Array
    inverse_gram: Array


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
        width = 1 + d + Y.shape[1]
        factor = None
        if d > COMPRESSION_COLUMN_LIMIT:
            factor = _weighted_rows(X, Y, weight)
        elif m > 2 * width:
            factor = _factor_by_gram(X, Y, weight, total)
        if factor is None:
            factor = _reduced(_weighted_rows(*block) for block in _row_blocks(X, Y, weight, width))
        return cls(factor, d, total, m)

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
            _shortened(stacked),
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
            rows = _triangle(rows) if rows[spanned:, :spanned].any() else rows
        theta, targets = rows[:spanned, 1 : 1 + d], rows[:spanned, 1 + d :]
        flat_columns = np.concatenate([[0] if intercept else [], 1 + np.asarray(keep, dtype=float)]).astype(np.intp)
        basis, unload, inverse_gram = _flat_basis(rows[:spanned, flat_columns])
        flat = Flat(np.asarray(keep, dtype=np.intp), intercept, unload @ theta, unload @ targets, inverse_gram)
        theta, column_scale = _normalised(theta, basis, flat.kept)
        columns = DenseColumns(theta)
        rest_rows = rows[spanned:, 1 + d :]
        n_rows = _free_rows(self.total_weight, basis)
        problems, scales = _one_per_target(columns, targets, basis, rest_rows, n_rows)
        return problems, Coordinates(column_scale, scales, flat, self.total_weight, self.n_samples)


def pose_sparse(
    X: sparse.csc_array, Y: Array, weight: Array | None, *, intercept: bool, keep: Sequence[int] = ()
) -> tuple[list[Problem], Coordinates]:
    """Pose a sparse Θ without making it dense: for d ≥ m, or too many columns for a d×d factor."""
    m = X.shape[0]
    root = np.ones(m) if weight is None else np.sqrt(weight)
    peak = np.maximum(_sparse_peak(X), np.finfo(float).tiny)
    scale = _power_of_two(peak)
    matrix = sparse.csc_array(sparse.diags_array(root) @ X @ sparse.diags_array(1 / scale))
    kept = np.asarray(keep, dtype=np.intp)
    flat_rows = np.column_stack([root[:, None][:, : int(intercept)], matrix[:, kept].toarray() * scale[kept]])
    basis, unload, inverse_gram = _flat_basis(flat_rows)
    loadings = matrix.T @ basis
    targets = root[:, None] * Y
    flat = Flat(kept, intercept, (matrix.T @ unload.T).T * scale, unload @ targets, inverse_gram)
    square_norms = _projected_square_norms(matrix, basis, loadings)
    square_norms[kept] = 0.0
    unit = np.where(square_norms > 0, _power_of_two(np.sqrt(square_norms)), 1.0)
    columns = SparseColumns(
        sparse.csc_array(matrix @ sparse.diags_array(1 / unit)),
        basis,
        loadings / unit[:, None],
        square_norms / unit**2,
    )
    total = float(m if weight is None else weight.sum())
    no_rest = np.empty((0, Y.shape[1]))
    problems, scales = _one_per_target(columns, targets, basis, no_rest, _free_rows(total, basis))
    return problems, Coordinates(scale * unit, scales, flat, total, m)


def _free_rows(total_weight: float, basis: Array) -> float:
    """Return m less the flat directions; half of m where weights add up to less than those (the estimator warns)."""
    return max(total_weight - basis.shape[1], total_weight / 2)


def _one_per_target(
    columns: Columns, targets: Array, basis: Array, rest_rows: Array, n_rows: float
) -> tuple[list[Problem], Array]:
    raw = np.vstack([targets, rest_rows])
    scales = np.maximum(_power_of_two(np.abs(raw).max(axis=0, initial=0.0)), np.finfo(float).tiny)
    z = _projected(targets / scales, basis)
    rest = ((rest_rows / scales) ** 2).sum(axis=0)
    total = (z**2).sum(axis=0) + rest
    # A target that is constant (or zero) leaves rounding error only: make it exactly zero.
    vanishing = total <= ROUNDING_SHARE**2 * (((targets / scales) ** 2).sum(axis=0) + rest)
    unit = np.where(vanishing, 1.0, _power_of_two(np.sqrt(total)))
    z = np.where(vanishing, 0.0, z / unit)
    rest = np.where(vanishing, 0.0, rest / unit**2)
    problems = [Problem(columns, np.ascontiguousarray(z[:, t]), float(rest[t]), n_rows) for t in range(z.shape[1])]
    return problems, scales * unit


def _normalised(theta: Array, basis: Array, kept: Index) -> tuple[Array, Array]:
    """Return Θ less its projection on the flat basis, in columns of norm near one, and the scale of each column."""
    coarse = _power_of_two(np.abs(theta).max(axis=0, initial=0.0))
    scaled = theta / coarse
    raw_norm = np.linalg.norm(scaled, axis=0)
    scaled = _projected(scaled, basis)
    norm = np.linalg.norm(scaled, axis=0)
    dead = norm <= ROUNDING_SHARE * raw_norm
    dead[kept] = True
    unit = np.where(dead, 1.0, _power_of_two(norm))
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
    scale = _power_of_two(np.abs(flat_rows).max(axis=0, initial=0.0))
    u, s, vt = np.linalg.svd(flat_rows / scale, full_matrices=False)
    rank = int((s > s.max(initial=0.0) * 1e-12).sum())
    half = (vt[:rank].T / s[:rank]) / scale[:, None]
    return u[:, :rank], half @ u[:, :rank].T, half @ half.T


def _power_of_two(size: Array) -> Array:
    """Return the power of two just above each size (1 for zero): dividing by it is exact."""
    _, exponent = np.frexp(size)
    return np.where(size > 0, np.ldexp(1.0, exponent), 1.0)


def _triangle(rows: Array) -> Array:
    (triangle,) = linalg.qr(rows, mode="r", check_finite=False)
    return np.ascontiguousarray(triangle[: rows.shape[1]])


def _shortened(rows: Array) -> Array:
    """Return the R-factor once it is half as tall as the rows, so that growing by single rows stays cheap."""
    return _triangle(rows) if rows.shape[0] > 2 * rows.shape[1] else rows


def _reduced(blocks: Iterator[Array]) -> Array:
    """Return the R-factor of all blocks stacked, or the stack itself while that is short."""
    held = _shortened(next(blocks))
    for block in blocks:
        held = _shortened(np.vstack([held, block]))
    return held


def _row_blocks(X: Any, Y: Array, weight: Array | None, width: int) -> Iterator[tuple[Array, Array, Array | None]]:
    """Cut the rows into blocks small enough that their copies do not matter and large enough for BLAS."""
    m = X.shape[0]
    size = max(4 * width, BLOCK_BYTES // (8 * width), 1)
    rows: Any = X.tocsr() if sparse.issparse(X) else X
    for start in range(0, m, size):
        part = slice(start, start + size)
        block = rows[part].toarray() if sparse.issparse(X) else np.asarray(rows[part], dtype=np.float64)
        yield block, Y[part], None if weight is None else weight[part]


def _weighted_rows(X: Array, Y: Array, weight: Array | None) -> Array:
    rows = np.empty((X.shape[0], 1 + X.shape[1] + Y.shape[1]))
    rows[:, 0] = 1.0
    rows[:, 1 : 1 + X.shape[1]] = X
    rows[:, 1 + X.shape[1] :] = Y
    if weight is not None:
        rows *= np.sqrt(weight)[:, None]
    return rows


def _factor_by_gram(X: Array | sparse.sparray, Y: Array, weight: Array | None, total: float) -> Array | None:
    """Return the R-factor from the Gram matrix of the centred columns, or None where QR is needed.

    Two passes over the rows: means and peaks, then the Gram matrix of the centred, scaled blocks. The Cholesky factor
    of that matrix, under the row √Σw·(1, means), is the R-factor of √w·[1 Θ Y].
    """
    width = 1 + X.shape[1] + Y.shape[1]
    mean, peak = np.zeros(width - 1), np.zeros(width - 1)
    for block, target, w in _row_blocks(X, Y, weight, width):
        rows = np.column_stack([block, target])
        mean += (rows if w is None else rows * w[:, None]).sum(axis=0)
        np.maximum(peak, np.abs(rows).max(axis=0), out=peak)
    mean /= total
    scale = _power_of_two(peak)
    gram = np.zeros((width - 1, width - 1))
    for block, target, w in _row_blocks(X, Y, weight, width):
        rows = (np.column_stack([block, target]) - mean) / scale
        if w is not None:
            rows *= np.sqrt(w)[:, None]
        gram += rows.T @ rows
    live = np.sqrt(gram.diagonal()) > ROUNDING_SHARE * np.sqrt(total) * (peak / scale)
    triangle = _well_conditioned_cholesky(gram[np.ix_(live, live)])
    if triangle is None:
        return None
    factor = np.zeros((width, width))
    factor[0, 0] = np.sqrt(total)
    factor[0, 1:] = np.sqrt(total) * mean
    factor[1:, 1:][np.ix_(live, live)] = triangle * scale[live]
    return factor


def _well_conditioned_cholesky(gram: Array) -> Array | None:
    if not gram.size:
        return gram
    norm = np.sqrt(gram.diagonal())
    try:
        triangle = linalg.cholesky(gram / np.outer(norm, norm), check_finite=False)
    except linalg.LinAlgError:
        return None
    rcond, _ = linalg.lapack.dtrcon(triangle)
    return triangle * norm if rcond * GRAM_CONDITION_LIMIT >= 1 else None


def _sparse_peak(X: sparse.csc_array) -> Array:
    peak: Array = abs(X).max(axis=0).toarray().ravel()
    return peak


def _projected_square_norms(matrix: sparse.csc_array, basis: Array, loadings: Array) -> Array:
    """Return ‖S_j − UV_jᵀ‖² as ‖S_j‖² − ‖V_j‖² where that keeps its digits, column by column where it does not."""
    raw: Array = matrix.multiply(matrix).sum(axis=0)
    norms = raw - (loadings**2).sum(axis=1)
    for j in np.flatnonzero(norms <= 1e-4 * raw):
        column = matrix[:, [j]].toarray().ravel() - basis @ loadings[j]
        norms[j] = column @ column if np.linalg.norm(column) > ROUNDING_SHARE * np.sqrt(raw[j]) else 0.0
    return np.maximum(norms, 0.0)
