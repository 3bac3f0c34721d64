"""A Θ that is never made dense: a sparse matrix or a linear operator, its flat columns projected out on the fly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from ardea.core.compression import RowCounts, one_per_target, root_weights, rounding_share
from ardea.core.problem import Array, Coordinates, FlatRows, Index, Problem, power_of_two

# Columns with this share of their norm or less left after projection are measured one by one.
CANCELLED_SHARE = 1e-4
# Columns of an operator that are made dense together, to measure them: a convention.
COLUMNS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class ProjectedColumns:
    """Columns of (Θ − UVᵀ)·factor: an operator less its projection on the orthonormal flat basis U, V = ΘᵀU.

    The difference is never formed as a whole, so a sparse Θ stays sparse although centring it would fill it.
    """

    source: Operator
    basis: Array  # U
    loadings: Array  # V
    factor: Array  # of every column; zero where nothing is left of it
    square_norms: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.shape

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""
        return (self.source.take(index) - self.basis @ self.loadings[index].T) * self.factor[index]

    def correlate(self, vectors: Array) -> Array:
        """Return Aᵀ vectors."""
        product = self.source.correlate(vectors) - self.loadings @ (self.basis.T @ vectors)
        return product * (self.factor if vectors.ndim == 1 else self.factor[:, None])

    def restrict(self, index: Index) -> ProjectedColumns:
        """Return the design with the chosen columns only."""
        part = self.source.restrict(index)
        return ProjectedColumns(part, self.basis, self.loadings[index], self.factor[index], self.square_norms[index])


class Operator:
    """Columns given by a `scipy.sparse.linalg.LinearOperator`, to be passed as X.

    Only products with the operator and its adjoint are used; no column is stored unless it becomes active. For `fit`,
    `predict` and `score`; scikit-learn's own tools (pipelines, cross-validation) need arrays.

    Parameters
    ----------
    op : LinearOperator
        Real, of shape (n_samples, n_features), with `matmat` and `rmatmat` (or `matvec` and `rmatvec`).
    column_norms : array-like of shape (n_features,)
        Euclidean norms of its columns. They cannot be had from the operator cheaply; for many transforms they are
        known (all equal to one, say).

    Examples
    --------
    Three cosines out of 512, seen at 128 of 512 places:

    >>> import numpy as np
    >>> from scipy.fft import dct, idct
    >>> from scipy.sparse.linalg import LinearOperator
    >>> from ardea import Operator, SparseARD
    >>> rng = np.random.default_rng(0)
    >>> places = np.sort(rng.choice(512, 128, replace=False))
    >>> def synthesis(xi):
    ...     return idct(xi, norm="ortho", axis=0)[places]
    >>> def analysis(v):
    ...     full = np.zeros((512, *v.shape[1:]))
    ...     full[places] = v
    ...     return dct(full, norm="ortho", axis=0)
    >>> op = LinearOperator((128, 512), matvec=synthesis, rmatvec=analysis, matmat=synthesis, rmatmat=analysis)
    >>> norms = np.sqrt((synthesis(np.eye(512)) ** 2).sum(axis=0))
    >>> y = synthesis(np.bincount([3, 70, 200], weights=[5.0, -4.0, 3.0], minlength=512)) + 0.01 * rng.normal(size=128)
    >>> model = SparseARD(fit_intercept=False).fit(Operator(op, norms), y)
    >>> np.flatnonzero(model.support_)
    array([  3,  70, 200])
    """

    def __init__(self, op: Any, column_norms: ArrayLike) -> None:
        self.op: LinearOperator = aslinearoperator(op)
        self.column_norms = np.asarray(column_norms, dtype=float)
        self.shape: tuple[int, int] = self.op.shape
        if np.issubdtype(np.dtype(self.op.dtype or float), np.complexfloating):
            raise ValueError("The operator is complex: give its real and imaginary parts as separate rows.")
        if self.column_norms.shape != (self.shape[1],):
            raise ValueError(
                f"column_norms has shape {self.column_norms.shape}; the operator has {self.shape[1]} columns."
            )
        if not np.all(np.isfinite(self.column_norms) & (self.column_norms >= 0)):
            raise ValueError("column_norms must be finite and not negative.")
        # Wrong norms give wrong models: three columns are compared with those given.
        some = np.unique(np.linspace(0, self.shape[1] - 1, min(3, self.shape[1])).astype(np.intp))
        for j, norm in zip(some, norms_of(self.take(some)), strict=True):
            if not np.isclose(norm, self.column_norms[j], rtol=1e-6, atol=1e-300):
                raise ValueError(
                    f"column_norms says {self.column_norms[j]:.6g} for column {j}, but its norm is {norm:.6g}."
                )

    def __repr__(self) -> str:
        return f"Operator(shape={self.shape})"

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""
        return columns_of(self.op, index)

    def correlate(self, vectors: Array) -> Array:
        """Return Θᵀ vectors."""
        if vectors.size == 0:  # SciPy's operators cannot take it
            return np.zeros((self.shape[1], *vectors.shape[1:]))
        adjoint = self.op.rmatvec if vectors.ndim == 1 else self.op.rmatmat
        return np.asarray(adjoint(vectors), dtype=float)

    def restrict(self, index: Index) -> Operator:
        """Return the chosen columns only."""
        matrix, chosen = matrix_of(self.op), sparse.eye_array(self.shape[1], format="csc")[:, index]
        part = self.op @ aslinearoperator(sparse.csr_array(chosen)) if matrix is None else matrix[:, index]
        return Operator(part, self.column_norms[index])

    def weighted(self, root: Array) -> Operator:
        """Return the same with every row multiplied by its root weight."""
        matrix, weights = matrix_of(self.op), sparse.diags_array(root)
        if matrix is not None:
            return sparse_operator(weights @ matrix)
        op = aslinearoperator(weights) @ self.op
        parts = np.array_split(np.arange(op.shape[1]), max(1, op.shape[1] // COLUMNS_AT_ONCE))
        return Operator(op, np.concatenate([norms_of(columns_of(op, part)) for part in parts]))


def sparse_operator(matrix: Any) -> Operator:
    """Return the operator of a sparse matrix."""
    matrix = sparse.csc_array(matrix)
    scale = power_of_two(abs(matrix).max(axis=0).toarray().ravel())  # squares must not overflow
    scaled = matrix @ sparse.diags_array(1 / scale)
    return Operator(matrix, np.sqrt(scaled.multiply(scaled).sum(axis=0)) * scale)


def matrix_of(op: LinearOperator) -> Any:
    """Return the sparse matrix behind an operator; None where there is none."""
    matrix = getattr(op, "A", None)
    return matrix if sparse.issparse(matrix) else None


def columns_of(op: LinearOperator, index: Index) -> Array:
    """Return the chosen columns of an operator as a dense array."""
    matrix = matrix_of(op)
    if matrix is not None:
        return np.asarray(matrix[:, index].toarray())
    if index.size == 0:  # SciPy's operators cannot take it
        return np.zeros((op.shape[0], 0))
    units = np.zeros((op.shape[1], index.size))
    units[index, np.arange(index.size)] = 1.0
    return np.asarray(op.matmat(units), dtype=float)


def norms_of(columns: Array) -> Array:
    """Return the norm of every column, whose squares may overflow."""
    scale = power_of_two(np.abs(columns).max(axis=0, initial=0.0))
    return np.linalg.norm(columns / scale, axis=0) * scale


def pose_implicit(
    source: Operator,
    Y: Array,
    weight: Array | None,
    *,
    intercept: bool,
    keep: Sequence[int] = (),
    n_distinct: float = np.inf,
) -> tuple[list[Problem], Coordinates]:
    """Pose an operator without making it dense; without `n_distinct` rows count as different."""
    m = Y.shape[0]
    root = root_weights(weight, m)
    source = source if weight is None else source.weighted(root[:, 0])
    kept = np.asarray(keep, dtype=np.intp)
    flat = FlatRows(np.column_stack([root[:, : int(intercept)], source.take(kept)]), intercept, keep)
    loadings = source.correlate(flat.basis)
    norms = _projected_norms(source, flat, loadings)
    norms[kept] = 0.0
    unit = power_of_two(norms)
    columns = ProjectedColumns(source, flat.basis, loadings, (norms > 0) / unit, (norms / unit) ** 2)
    counts = RowCounts(float(root[:, 0] @ root[:, 0]), m, min(float((root > 0).sum()), n_distinct))
    return one_per_target(columns, unit, root * Y, flat, source.correlate(flat.unload.T).T, counts)


def _projected_norms(source: Operator, flat_rows: FlatRows, loadings: Array) -> Array:
    """Return ‖θ_j − UUᵀθ_j‖ as √(‖θ_j‖² − ‖Uᵀθ_j‖²) where that keeps its digits, column by column where it does not."""
    raw = source.column_norms
    coarse = power_of_two(raw)
    square = (raw / coarse) ** 2
    left = square - ((loadings / coarse[:, None]) ** 2).sum(axis=1)
    share = rounding_share(source.shape[0])
    for j in np.flatnonzero((left <= CANCELLED_SHARE * square) & (raw > 0)):
        column = flat_rows.projected(source.take(np.array([j]))) / coarse[j]
        size = float(np.linalg.norm(column))
        left[j] = size**2 if size > share * np.sqrt(square[j]) else 0.0
    return np.sqrt(np.maximum(left, 0.0)) * coarse
