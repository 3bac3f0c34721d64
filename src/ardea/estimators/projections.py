"""Fewer rows: Cy = CΘξ for a matrix C with few rows (Eq. subsampling), applied block by block.

Compression (:mod:`ardea.core.compression`) keeps all that the rows say and costs one pass over them. A projection
throws information away: with n of m rows left, standard errors grow by √(m/n). It is here for those who want a sample,
or whose later steps need rows.

C = [C₁ C₂ …] acts on blocks of rows, C[1 Θ y] = Σ_b C_b[1 Θ y]_b, so one pass suffices and nothing of C is stored:

==================  =====================================================  ==============================
projection          C                                                      cost of m rows of d columns
==================  =====================================================  ==============================
`RowSample(n)`      n different unit vectors, uniformly (the paper's)      m numbers drawn, n rows copied
`SparseSigns(n)`    every row of Θ goes to one of n rows, with a sign      m·d
`OwnMatrix(C)`      any matrix, dense or sparse                            C @ Θ and CCᵀ
==================  =====================================================  ==============================

The projected noise has covariance σ²CCᵀ, so the rows are whitened: with any W for which WCCᵀWᵀ = I they become
WC[1 Θ y], whose noise is white with variance σ² again. Error rates and σ² then mean what they mean on all rows, for
every C. A sample has CCᵀ = I, sparse signs have the number of rows that went to each as a diagonal; of a matrix of
one's own CCᵀ is computed, and C itself is orthogonalised where that has lost too many digits.
Only the space that the rows of C span matters: AC leads to the same model as C for every invertible A, and rows that
are combinations of others are left out, so that rank(C) rows count. The column of ones is projected with Θ, so an
intercept stays exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ardea.core.compression import CompressedRows
from ardea.core.lazy import cached_property
from ardea.core.problem import EPS, Array, triangle
from ardea.estimators.inputs import checked_positive
from ardea.names import counted

# What a projection keeps of some rows: C_b times the rows of [1 Θ Y], and the key of every row kept (`RowSample`), the
# diagonal of CCᵀ so far (`SparseSigns`) or the number of rows so far (`OwnMatrix`).
Part = tuple[Array, Array]
# Eigenvalues of CCᵀ have an error of EPS times the largest. Those above this share of it are known to ten digits.
CLEAR_SHARE = 1e-6


class Projection:
    """A matrix C that can be applied block by block."""

    def apply(self, start: int, rows: Array) -> Part:
        """Return C_b times a block of rows, the first of which is row `start` of all."""
        raise NotImplementedError

    def merge(self, one: Part, other: Part) -> Part:
        """Return the part of two blocks together: their sum."""
        return one[0] + other[0], one[1] + other[1]

    def finish(self, part: Part) -> Array:
        """Return WC[1 Θ Y]: whitened, without rows that depend on others."""
        raise NotImplementedError


@dataclass(frozen=True)
class RandomProjection(Projection):
    """A projection to n rows that is drawn."""

    n: int
    seed: int = 0

    def __post_init__(self) -> None:
        checked_positive("n", self.n, whole=True)

    def drawn(self, start: int, count: int) -> Array:
        """Return uniform numbers of the rows from `start` on: the same however the rows are cut."""
        stream = np.random.PCG64(self.seed)
        stream.advance(start)
        return np.random.Generator(stream).random(count)


class RowSample(RandomProjection):
    """n rows chosen uniformly without replacement; all rows where there are fewer.

    Every row draws a number, and the n smallest win: the same rows, however the data are cut into blocks.
    """

    def apply(self, start: int, rows: Array) -> Part:
        """Return the rows of the block with the smallest keys."""
        return self._smallest(rows, self.drawn(start, len(rows)))

    def merge(self, one: Part, other: Part) -> Part:
        """Return the winners of both."""
        return self._smallest(np.vstack([one[0], other[0]]), np.concatenate([one[1], other[1]]))

    def finish(self, part: Part) -> Array:
        """Return the rows, which are rows of the data."""
        return part[0]

    def _smallest(self, rows: Array, keys: Array) -> Part:
        if len(keys) <= self.n:
            return rows, keys
        kept = np.sort(np.argpartition(keys, self.n)[: self.n])
        return rows[kept], keys[kept]


class SparseSigns(RandomProjection):
    """Every row is added to, or taken from, one of n rows, both at random (a count sketch)."""

    def apply(self, start: int, rows: Array) -> Part:
        """Return the sums."""
        drawn = (2 * self.n * self.drawn(start, len(rows))).astype(np.intp)
        place, sign = drawn // 2, 1.0 - 2.0 * (drawn % 2)
        C = sparse.csr_array((sign, (place, np.arange(len(rows)))), shape=(self.n, len(rows)))
        return C @ rows, np.bincount(place, minlength=self.n).astype(float)

    def finish(self, part: Part) -> Array:
        """Return the sums, each divided by the root of how many rows it holds; CCᵀ is diagonal."""
        rows, counts = part
        used = counts > 0
        return np.asarray(rows[used] / np.sqrt(counts[used])[:, None])


@dataclass(frozen=True, eq=False)
class OwnMatrix(Projection):
    """A matrix of one's own, dense or sparse, of shape (n, rows).

    Its rows may be correlated, of any scale, and dependent: rank(C) rows are left. A sparse matrix stays sparse, unless
    its rows are so close to dependent (condition number 1e3 to 1e14) that CCᵀ cannot tell them apart.
    """

    matrix: Any

    def __post_init__(self) -> None:
        C = self.matrix if sparse.issparse(self.matrix) else np.asarray(self.matrix)
        if C.ndim != 2 or C.dtype.kind not in "biuf":
            raise ValueError(f"The matrix must hold numbers in two dimensions; got {C.dtype} of shape {C.shape}.")
        entries: Any = C.data if sparse.issparse(C) else C
        if not np.isfinite(entries).all():
            raise ValueError("The matrix holds NaN or infinity.")
        if not entries.any():
            raise ValueError("The matrix is zero: nothing would be left of the rows.")

    def apply(self, start: int, rows: Array) -> Part:
        """Return the columns of C that belong to the rows, times the rows."""
        stop, width = start + len(rows), self.matrix.shape[1]
        if stop > width:
            raise ValueError(f"The matrix has {counted(width, 'column')}, but there are more rows than that.")
        _, C = self._factors
        return C[:, start:stop] @ rows, np.array(len(rows))

    def finish(self, part: Part) -> Array:
        """Return the whitened rows."""
        rows, count = part
        if count != self.matrix.shape[1]:
            columns, rows_met = counted(self.matrix.shape[1], "column"), counted(int(count), "row")
            raise ValueError(f"The matrix has {columns}, but X has {rows_met}.")
        return np.asarray(self._factors[0] @ rows)

    @cached_property
    def _factors(self) -> tuple[Array, Any]:
        """Return W and B: the rows of WB are orthonormal and span those of C.

        1) Rows of C are scaled to norm one.
        2) CCᵀ = UΛUᵀ. Where every λ is either clear of rounding error or rounding error, W = Λ^(−1/2)Uᵀ and B = C.
        3) Else B holds orthonormal rows from a QR factorisation of Cᵀ with pivoting, and W = I.
        """
        C = self._in_range()
        gram = C @ C.T
        gram = gram.toarray() if sparse.issparse(gram) else gram
        norm = np.sqrt(np.where(gram.diagonal() > 0, gram.diagonal(), 1.0))
        values, vectors = np.linalg.eigh(gram / norm[:, None] / norm)
        clear = values > CLEAR_SHARE * values[-1]
        if np.all(values[~clear] <= len(values) * EPS * values[-1]):
            return vectors[:, clear].T / np.sqrt(values[clear])[:, None] / norm, C
        dense = C.toarray() if sparse.issparse(C) else C
        basis, upper, _ = linalg.qr(dense.T / norm, mode="economic", pivoting=True)
        sizes = np.abs(upper.diagonal())
        rank = int((sizes > max(C.shape) * EPS * sizes[0]).sum())
        return np.eye(rank), basis[:, :rank].T

    def _in_range(self) -> Any:
        """Return C, every row multiplied by a power of two, so that squares neither overflow nor vanish."""
        if not sparse.issparse(self.matrix):
            C = np.asarray(self.matrix, dtype=float)
            _, exponent = np.frexp(np.abs(C).max(axis=1, keepdims=True))
            return np.ldexp(C, -exponent)
        C = sparse.csc_array(self.matrix, dtype=float, copy=True)
        C.sum_duplicates()
        _, exponent = np.frexp(abs(C).max(axis=1).toarray().ravel())
        C.data = np.ldexp(C.data, -exponent[C.indices])
        return C


def project(blocks: Iterable[tuple[Any, Any]], projection: Projection, *, names: Any = None) -> CompressedRows:
    """Return the rows Cy = CΘξ, ready for an estimator's `fit` (as X, with None for y).

    Parameters
    ----------
    blocks : iterable of (X, y)
        Blocks of rows in order: ``[(X, y)]`` for arrays, ``open_rows(path, target).blocks()`` for a file,
        ``zip(X.blocks, y.blocks)`` for Dask arrays (one block is computed at a time).
    projection : Projection
        C.
    names : sequence of str, optional
        Columns of X.

    Returns
    -------
    CompressedRows
        n_samples and the weight of all rows are the number of rows that are left.

    Examples
    --------
    >>> from ardea import SparseARD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100_000, 10))
    >>> y = X[:, 2] - 2 * X[:, 7] + 3 + 0.1 * rng.normal(size=100_000)
    >>> model = SparseARD().fit(project([(X, y)], SparseSigns(500)), None)
    >>> np.flatnonzero(model.support_), round(model.intercept_, 1)
    (array([2, 7]), 3.0)
    """
    part: Part | None = None
    start, n_features, one_target = 0, 0, True
    for X, y in blocks:
        rows, n_features, one_target = _checked(X, y, start)
        block = projection.apply(start, rows)
        part = block if part is None else projection.merge(part, block)
        start += len(rows)
    if part is None:
        raise ValueError("No block of rows was given: pass at least one.")
    rows = projection.finish(part)
    n, width = rows.shape
    factor = triangle(rows) if n > 2 * width else rows
    columns = None if names is None else tuple(names)
    return CompressedRows(factor, n_features, float(n), n, names=columns, one_target=one_target)


def _checked(X: Any, y: Any, start: int) -> tuple[Array, int, bool]:
    """Return the rows [1 X y] of a block, the number of columns of X, and whether there is one target."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if X.ndim != 2 or len(X) != len(y):
        raise ValueError(f"A block has X of shape {X.shape} and y of shape {y.shape}: give equally many rows.")
    rows = np.column_stack([np.ones(len(X)), X, y])
    if not np.isfinite(rows).all():
        raise ValueError(f"The rows {start} to {start + len(X) - 1} hold NaN or infinity.")
    return rows, X.shape[1], y.ndim == 1
