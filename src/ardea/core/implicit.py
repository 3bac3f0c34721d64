"""A Θ that is never made dense: a sparse matrix or a linear operator, its flat columns projected out on the fly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from ardea.core.compression import FlatRows, RowCounts, one_per_target, root_weights, rounding_share
from ardea.core.problem import Array, Coordinates, Index, Problem, power_of_two

# Columns with this share of their norm or less left after projection are measured one by one.
CANCELLED_SHARE = 1e-4
# Columns of an operator that are made dense together, to measure them: a convention.
COLUMNS_AT_ONCE = 256
_NONE: Index = np.empty(0, dtype=np.intp)


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
    def column_norms(self) -> Array:
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
        self._check_some_norms()

    def __repr__(self) -> str:
        return f"Operator(shape={self.shape})"

    def _check_some_norms(self) -> None:
        """Compare three columns with the norms given: wrong norms give wrong models."""
        some = np.unique(np.linspace(0, self.shape[1] - 1, 3).astype(np.intp)) if self.shape[1] else _NONE
        for j, norm in zip(some, np.linalg.norm(self.take(some), axis=0), strict=True):
            if not np.isclose(norm, self.column_norms[j], rtol=1e-6, atol=1e-300):
                raise ValueError(
                    f"column_norms says {self.column_norms[j]:.6g} for column {j}, but its norm is {norm:.6g}."
                )

    def _derived(self, op: LinearOperator, norms: Array | None) -> Operator:
        """Return another operator made from this one; norms that are not known are those of its columns."""
        made = object.__new__(Operator)
        made.op, made.shape = op, op.shape
        if norms is None:
            parts = np.array_split(np.arange(op.shape[1]), max(1, op.shape[1] // COLUMNS_AT_ONCE))
            norms = np.concatenate([np.linalg.norm(made.take(part), axis=0) for part in parts])
        made.column_norms = norms
        return made

    def weighted(self, root: Array) -> Operator:
        """Return the same with every row multiplied by its root weight."""
        return self._derived(aslinearoperator(sparse.diags_array(root)) @ self.op, None)

    def take(self, index: Index) -> Array:
        """Return the chosen columns as a dense array."""
        if index.size == 0:
            return np.zeros((self.shape[0], 0))
        units = np.zeros((self.shape[1], index.size))
        units[index, np.arange(index.size)] = 1.0
        return np.asarray(self.op.matmat(units), dtype=float)

    def correlate(self, vectors: Array) -> Array:
        """Return Θᵀ vectors."""
        if vectors.size == 0:  # SciPy's operators cannot take it
            return np.zeros((self.shape[1], *vectors.shape[1:]))
        adjoint = self.op.rmatvec if vectors.ndim == 1 else self.op.rmatmat
        return np.asarray(adjoint(vectors), dtype=float)

    def restrict(self, index: Index) -> Operator:
        """Return the chosen columns only."""
        chosen = sparse.csr_array(sparse.eye_array(self.shape[1], format="csc")[:, index])
        return self._derived(self.op @ aslinearoperator(chosen), self.column_norms[index])


Source = SparseSource | Operator


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
    root = root_weights(weight, m)
    source = source if weight is None else source.weighted(root[:, 0])
    kept = np.asarray(keep, dtype=np.intp)
    flat = FlatRows(np.column_stack([root[:, : int(intercept)], source.take(kept)]), intercept, keep)
    loadings = source.correlate(flat.basis)
    norms = _projected_norms(source, flat, loadings)
    norms[kept] = 0.0
    unit = np.where(norms > 0, power_of_two(norms), 1.0)
    columns = ProjectedColumns(source, flat.basis, loadings, (norms / unit) ** 2, unit)
    counts = RowCounts(float(root[:, 0] @ root[:, 0]), m, m if n_distinct is None else n_distinct)
    return one_per_target(columns, unit, root * Y, flat, source.correlate(flat.unload.T).T, counts)


def _projected_norms(source: Source, flat_rows: FlatRows, loadings: Array) -> Array:
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
