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
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ardea.core.lazy import cached_property, compiled_module, numpy_is_asked_for
from ardea.core.problem import (
    EPS,
    LARGEST_SHARE,
    TINY,
    Array,
    Columns,
    Coordinates,
    DenseColumns,
    FlatColumns,
    FlatRows,
    Problem,
    power_of_two,
    triangle,
)

compiled = compiled_module("core._subsets")

# No d×d matrix above this number of columns.
COMPRESSION_COLUMN_LIMIT = 5000
# Shorter blocks than this many times their width go to QR at once: it costs little, and needs no second thought.
GRAM_HEIGHT = 8
GRAM_CONDITION_LIMIT = 2e3
TWO_PASS_CONDITION_LIMIT = 1e7
# Centring a Gram matrix by subtraction may cost two digits, not more.
CENTRING_SHARE = 1e-2
BLOCK_BYTES = 2**20
# Least rows of a block whose Gram product is taken.
GRAM_ROWS = 512
# Up to so many numbers the calls of NumPy take longer than what they compute (measured: 35 of 45 µs for 500).
FEW_NUMBERS = 2**12
# Rows whose means serve as shift. Where none is larger than the deviation beside it, which costs one bit, it is zero.
SHIFT_ROWS = 64
# Narrow rows are folded to rows of about this many values, which NumPy reduces several times faster.
FOLDED_WIDTH = 2048


class RowCounts(NamedTuple):
    """How many rows there are: as their weights add up, as they were given, and those that differ (`n_distinct`)."""

    weight: float
    given: int
    distinct: float


@dataclass(frozen=True)
class CompressedRows:
    """Rows that exist only as their compression: stands in for X, with None for y."""

    factor: Array  # R-factor of √w·[1 X Y], or those rows themselves while they are fewer than its columns
    n_features: int
    total_weight: float
    n_samples: int
    ranges: Array | None = None  # least and greatest value of every column of X
    digests: NDArray[np.int64] | None = None  # of rows that differ; None where as many as can matter do
    names: tuple[str, ...] | None = None  # columns of X
    one_target: bool = True  # whether y had one axis

    @classmethod
    def from_arrays(
        cls,
        X: Array | sparse.sparray,
        Y: Array,
        weight: Array | None = None,
        ranges: Array | None = None,
        constant: Array | None = None,
    ) -> CompressedRows:
        """Compress arrays in memory, by the Gram matrix where its conditioning allows, else by QR; in row blocks.

        `ranges`, least and greatest value of every column, are computed where they are not given. `constant` stands in
        for the column of ones.
        """
        m, d = X.shape
        total = float(m if weight is None else weight.sum())
        rows = Rows(X, Y, weight, constant)
        ranges, digests = ranges_of(X) if ranges is None else ranges, distinct_rows(X, Y)
        if d > COMPRESSION_COLUMN_LIMIT or m <= rows.width:
            whole = rows.weighted(slice(None), np.zeros(rows.width - 1))
            return cls(whole, d, total, m, ranges, digests)
        factor = factor_by_gram(rows) if m > GRAM_HEIGHT * rows.width else None
        return cls(factor_by_qr(rows) if factor is None else factor, d, total, m, ranges, digests)

    @classmethod
    def from_blocks(cls, blocks: Iterable[tuple[Array, Array, Array | None]]) -> CompressedRows:
        """Compress blocks (X, Y, weight) one after another, in memory O(d²)."""
        compressed = (cls.from_arrays(*block) for block in blocks)
        first = next(compressed, None)
        if first is None:
            raise ValueError("No block of rows was given: pass at least one.")
        return reduce(cls.merge, compressed, first)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns that X had."""
        return self.n_samples, self.n_features

    @property
    def n_targets(self) -> int:
        """Number of right-hand sides."""
        return self.factor.shape[1] - 1 - self.n_features

    def merge(self, other: CompressedRows) -> CompressedRows:
        """Return the compression of both sets of rows together."""
        if other.factor.shape[1] != self.factor.shape[1] or other.n_features != self.n_features:
            raise ValueError(
                f"Blocks differ in shape: {self.n_features} columns and {self.n_targets} targets against "
                f"{other.n_features} and {other.n_targets}. Give every block the same columns."
            )
        stacked = np.vstack([self.factor, other.factor])
        return replace(
            self,
            factor=shortened(stacked) if self.n_features <= COMPRESSION_COLUMN_LIMIT else stacked,
            total_weight=self.total_weight + other.total_weight,
            n_samples=self.n_samples + other.n_samples,
            ranges=None if self.ranges is None or other.ranges is None else merged_ranges(self.ranges, other.ranges),
            digests=self._digests_with(other),
        )

    def _digests_with(self, other: CompressedRows) -> NDArray[np.int64] | None:
        """Return the digests of rows that differ in either; None where they are as many as can matter."""
        if self.digests is None or other.digests is None:
            return None
        both = np.union1d(self.digests, other.digests)
        return both if both.size < most_counted(self.n_features, self.n_targets) else None

    def pose(self, *, intercept: bool, keep: Sequence[int] = ()) -> tuple[list[Problem], Coordinates]:
        """Project out the flat columns and return one normalised problem per target, with the way back."""
        d = self.n_features
        rows, spanned = self.factor, self.factor.shape[0]
        if spanned > 1 + d and d <= COMPRESSION_COLUMN_LIMIT:
            spanned = 1 + d
            rows = triangle(rows) if rows[spanned:, :spanned].any() else rows
        return pose_dense(
            rows[:spanned, 1 : 1 + d],
            rows[:spanned, 1 + d :],
            rows[:spanned, :1],
            RowCounts(self.total_weight, self.n_samples, n_distinct(self.digests)),
            intercept=intercept,
            keep=keep,
            rest_rows=rows[spanned:, 1 + d :],
        )


def is_lazy(data: Any) -> bool:
    """Whether the data are a Dask collection (or an xarray object that holds one); Dask is not imported for it."""
    package = type(data).__module__.partition(".")[0]
    return package == "dask" or (package == "xarray" and getattr(data, "chunks", None) is not None)


def pose_dense(
    theta: Array,
    targets: Array,
    ones: Array,
    counts: RowCounts,
    *,
    intercept: bool,
    keep: Sequence[int],
    rest_rows: Array | None = None,
) -> tuple[list[Problem], Coordinates]:
    """Pose an array Θ, targets and ones, all of them weighted; `rest_rows` are those of the targets outside of Θ."""
    beside = ones[:, : int(intercept)]
    flat = FlatRows(np.concatenate([beside, theta[:, list(keep)]], axis=1) if keep else beside, intercept, keep)
    share = rounding_share(counts.given)
    m, d = theta.shape
    matrix = np.empty((m, d), order="F")
    unit, loadings = np.empty(d), np.empty((flat.unload.shape[0], d))
    width = max(8, BLOCK_BYTES // (8 * max(m, 1)))
    for start in range(0, d, width):
        part = slice(start, start + width)
        block = np.array(theta[:, part], dtype=np.float64, order="C")  # one layout, so that sums run in one order
        loadings[:, part] = flat.unload @ block
        matrix[:, part], _, unit[part] = normalised(block, block[:0], flat, share)
    if keep:
        matrix[:, flat.kept] = 0.0
    return one_per_target(DenseColumns(matrix), unit, targets, flat, loadings, counts, rest_rows)


def pose_array(
    X: Any,
    Y: Array,
    weight: Array | None,
    *,
    intercept: bool,
    keep: Sequence[int] = (),
    constant: Array | None = None,
) -> tuple[list[Problem], Coordinates]:
    """Pose an array with d ≥ m, or too many columns for a d×d factor: Θ is kept."""
    root = root_weights(weight, X.shape[0])
    counts = RowCounts(float(root[:, 0] @ root[:, 0]), X.shape[0], n_distinct(distinct_rows(X, Y)))
    theta = X if weight is None else root * X
    ones = root if constant is None else root * constant[:, None]
    return pose_dense(theta, root * Y, ones, counts, intercept=intercept, keep=keep)


def root_weights(weight: Array | None, n_rows: int) -> Array:
    """Return √w as a column."""
    return np.ones((n_rows, 1)) if weight is None else np.sqrt(weight)[:, None]


def normalised(rows: Array, outside: Array, flat: FlatRows, share: float) -> tuple[Array, Array, Array]:
    """Return columns less what flat ones explain, the squares of their rows `outside` of those, and units of both.

    A unit is a power of two near the norm. Of a constant column rounding error is left: it is made exactly zero.
    """
    if rows.size <= FEW_NUMBERS and compiled is not None and not numpy_is_asked_for():
        found: tuple[Array, Array, Array] = compiled.normalised(rows, outside, np.asfortranarray(flat.basis), share)
        return found
    coarse = np.maximum(power_of_two(np.abs(np.concatenate([rows, outside])).max(axis=0, initial=0.0)), TINY)
    rows, outside = rows / coarse, outside / coarse
    raw, rest = (np.einsum("ij,ij->j", one, one) for one in (rows, outside))
    rows = flat.projected(rows)
    left = np.einsum("ij,ij->j", rows, rows) + rest
    live = left > share**2 * (raw + rest)
    fine = np.where(live, power_of_two(np.sqrt(left)), 1.0)
    return rows * (live / fine), rest * (live / fine) / fine, coarse * fine


def rounding_share(n_samples: int) -> float:
    """Return the share of its raw norm below which a projected column is rounding error of a constant one."""
    return EPS * (32 + float(np.sqrt(n_samples)))


def one_per_target(
    columns: Columns,
    unit: Array,
    targets: Array,
    flat: FlatRows,
    loadings: Array,
    counts: RowCounts,
    rest_rows: Array | None = None,
) -> tuple[list[Problem], Coordinates]:
    """Return a problem for every target, and the way back: `unit` of the columns, `loadings` on the flat ones."""
    outside, rank = targets[:0] if rest_rows is None else rest_rows, flat.basis.shape[1]
    z, rest, sizes = normalised(targets, outside, flat, rounding_share(counts.given))
    # Less the flat directions; where weights add up to less than one row beside those (the estimator warns), half of
    # them, or one.
    free, distinct = (max(count - rank, min(1.0, count / 2)) for count in (counts.weight, counts.distinct))
    problems = [
        Problem(columns, np.ascontiguousarray(z[:, t]), float(rest[t]), free, distinct=distinct)
        for t in range(z.shape[1])
    ]
    remembered = FlatColumns(flat.kept, flat.intercept, loadings, flat.unload @ targets, flat.inverse_gram)
    return problems, Coordinates(unit, sizes, remembered, rank, counts.weight, counts.given)


def ranges_of(X: Any) -> Array:
    """Return the least and the greatest value of every column, shape (2, d); (∞, −∞) without rows."""
    m, d = X.shape
    if m == 0:
        return np.stack([np.full(d, np.inf), np.full(d, -np.inf)])
    if sparse.issparse(X):
        return np.stack([X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()]).astype(float)
    height = BLOCK_BYTES // (X.itemsize * max(d, 1))  # so that a block is read from memory only once
    if m > 2 * height > 0 and X.flags.c_contiguous:
        return reduce(merged_ranges, (ranges_of(X[start : start + height]) for start in range(0, m, height)))
    ranges, number = np.empty((2, d)), m * d // FOLDED_WIDTH
    if X.flags.c_contiguous and 1 < number <= m // 2:
        height = m // number
        folded, last = X[: number * height].reshape(number, -1), X[m - height :].reshape(-1)
        low, high = np.minimum(folded.min(axis=0), last), np.maximum(folded.max(axis=0), last)
        low, high = low.reshape(height, d), high.reshape(height, d)
    else:
        low = high = X
    np.minimum.reduce(low, axis=0, out=ranges[0])
    np.maximum.reduce(high, axis=0, out=ranges[1])
    return ranges


def distinct_rows(X: Any, Y: Array) -> NDArray[np.int64] | None:
    """Return the digests of the rows of [X Y] that differ, in order; None where they are as many as can matter.

    The digest of a row is the sum, modulo 2⁶⁴, of its numbers' bits mixed with an odd random number of their column:
    equal rows have the same, whatever block they are in, and others the same with a chance of about 2⁻⁴⁰.
    """
    m, (d, t) = X.shape[0], (X.shape[1], Y.shape[1])
    factors, most = odd_numbers(d + t), most_counted(d, t)
    if m >= most and t and not (np.diff(np.sort(Y[:most, 0])) == 0).any():
        return None
    height = min(most, max(1, BLOCK_BYTES // (8 * max(d, 1))))
    found = np.empty(0, dtype=np.int64)
    for start in range(0, m, height):
        part = slice(start, start + height)
        each = digests(X[part], factors[:d]) + digests(Y[part], factors[d:])
        found = np.union1d(found, each)
        if found.size >= most:
            return None
    return found


@lru_cache(maxsize=16)
def odd_numbers(number: int) -> NDArray[np.int64]:
    """Return the random numbers of so many columns, always the same."""
    return np.random.default_rng(0).integers(-(2**63), 2**63 - 1, size=number) | 1


def digests(rows: Any, factors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the digest of every row; zeros add nothing, so that sparse rows have that of dense ones."""
    if sparse.issparse(rows):
        rows = rows.tocsr()
        rows.sum_duplicates()
        cells = _mixed(rows.data, factors[rows.indices])
        return np.asarray(sparse.csr_array((cells, rows.indices, rows.indptr), shape=rows.shape).sum(axis=1))
    return np.asarray(_mixed(rows, factors).sum(axis=1))


def _mixed(numbers: Any, factors: NDArray[np.int64]) -> NDArray[np.int64]:
    bits = np.add(numbers, 0.0, dtype=np.float64, order="C").view(np.int64)  # −0 + 0 = 0
    bits ^= bits >> 32  # short numbers have their digits in the upper half only
    bits *= factors
    bits ^= bits >> 29
    return bits


def most_counted(n_features: int, n_targets: int) -> int:
    """Return from how many different rows on no bound on the number of terms depends on more (`Problem.too_many`)."""
    return int((1 + n_features + n_targets) / LARGEST_SHARE)


def n_distinct(digests: NDArray[np.int64] | None) -> float:
    """Return how many rows differ; infinity where they were not counted, or found to be as many as can matter."""
    return np.inf if digests is None else digests.size


def merged_ranges(one: Array, other: Array) -> Array:
    """Return the ranges of the rows of both."""
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])


def shortened(rows: Array) -> Array:
    """Return the R-factor once it is half as tall as the rows, so that growing by single rows stays cheap."""
    return triangle(rows) if rows.shape[0] > 2 * rows.shape[1] else rows


@dataclass(frozen=True)
class Rows:
    """X, Y, weights and the constant column u (ones, unless the rows were whitened) in memory, read block by block."""

    X: Any
    Y: Array
    weight: Array | None
    constant: Array | None = None

    @property
    def width(self) -> int:
        """Number of columns of [u X Y]."""
        return int(1 + self.X.shape[1] + self.Y.shape[1])

    @cached_property
    def _readable(self) -> Any:
        return self.X.tocsr() if sparse.issparse(self.X) else self.X

    def blocks(self, least_rows: int, zeros: int = 0) -> Iterator[Array]:
        """Yield √w·[u, X − u·shift, Y − u·shift] in blocks that stay in cache but are tall enough for BLAS.

        So many columns of zeros are appended. Blocks share their memory, since new memory costs as much as a product:
        use each before the next.
        """
        m, size = self.X.shape[0], max(least_rows, BLOCK_BYTES // (8 * self.width))
        memory = np.empty((min(size, m), self.width + zeros))
        memory[:, self.width :] = 0.0
        for start in range(0, m, size):
            block = memory[: min(size, m - start)]
            self.weighted(slice(start, start + size), self.shift, block[:, : self.width])
            yield block

    def weighted(self, part: slice, shift: Array, memory: Array | None = None) -> Array:
        """Return the part of √w·[u, X − u·shift, Y − u·shift], in some memory where given."""
        block, d = self._readable[part], self.X.shape[1]
        rows = np.empty((block.shape[0], self.width)) if memory is None else memory
        rows[:, 0] = 1.0 if self.constant is None else self.constant[part]
        rows[:, 1 : 1 + d], rows[:, 1 + d :] = _dense(block), self.Y[part]
        if shift.any():
            rows[:, 1:] -= shift if self.constant is None else rows[:, :1] * shift
        if self.weight is not None:
            rows *= np.sqrt(self.weight[part])[:, None]
        return rows

    def gram(self) -> Array:
        """Return the Gram matrix of √w·[u, X − u·shift, Y − u·shift]; BLAS is fastest for widths that 4 divides."""
        width = self.width
        blocks = self.blocks(max(GRAM_ROWS, 4 * width), -width % 4)  # sums then cost little beside products
        return np.asarray(reduce(np.add, (block.T @ block for block in blocks)))[:width, :width]

    @cached_property
    def shift(self) -> Array:
        """Means of the first rows; where those are constant, their exact value. Zeros where all of them are small."""
        first = np.empty((min(SHIFT_ROWS, self.X.shape[0]), self.width - 1))  # one layout: sums run in one order
        first[:, : self.X.shape[1]] = _dense(self._readable[:SHIFT_ROWS])
        first[:, self.X.shape[1] :] = self.Y[:SHIFT_ROWS]
        mean, perhaps = first.sum(axis=0) / first.shape[0], first[0] == first[-1]
        if perhaps.any():
            mean = np.where((first == first[0]).all(axis=0), first[0], mean)
        with np.errstate(over="ignore"):
            small = 2 * first.shape[0] * mean**2 <= np.einsum("ij,ij->j", first, first)
        return np.zeros_like(mean) if small.all() else mean


def _dense(block: Any) -> Any:
    return block.toarray() if sparse.issparse(block) else block


def factor_by_qr(rows: Rows) -> Array:
    """Return the R-factor by QR of one block after another (the rows themselves while they are few)."""
    held = np.empty((0, rows.width))
    for block in rows.blocks(4 * rows.width):
        held = shortened(np.vstack([held, block]))
    held[:, 1:] += np.outer(held[:, 0], rows.shift)
    return held


def factor_by_gram(rows: Rows) -> Array | None:
    """Return the R-factor from one or two passes of Gram products, or None where QR is needed.

    1) One pass: the Gram matrix of the shifted rows, constant column included. Its Schur complement on that column is
       the Gram matrix of the centred columns.
    2) Cholesky, scaled to unit columns; conditioning decides whether that is enough.
    3) Otherwise once more on Q = CR⁻¹.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gram = rows.gram()
        centred = gram[1:, 1:] - gram[0, 1:, None] * (gram[0, 1:] / gram[0, 0])
    raw, left = gram.diagonal()[1:], centred.diagonal()
    in_range = (raw > 1e-280) & (raw < 1e280) & (gram[0, 0] < 1e280)  # then so are all products of two columns
    whole, live = in_range.all(), raw > 0
    if not (whole or (in_range | (raw == 0)).all()) or (left < CENTRING_SHARE * raw).any():
        return None
    upper, condition = _scaled_cholesky(centred if whole else centred[np.ix_(live, live)])
    mean_row = gram[0] / np.sqrt(gram[0, 0])
    if upper is not None and condition > GRAM_CONDITION_LIMIT:
        upper = _second_pass(rows, live, mean_row, upper) if condition < TWO_PASS_CONDITION_LIMIT else None
    if upper is None:
        return None
    factor = np.zeros((rows.width, rows.width))
    factor[0] = mean_row
    factor[0, 1:] += mean_row[0] * rows.shift
    if whole:
        factor[1:, 1:] = upper
    else:
        factor[1:, 1:][np.ix_(live, live)] = upper
    return factor


def _scaled_cholesky(gram: Array) -> tuple[Array | None, float]:
    """Return the Cholesky factor of a Gram matrix (upper triangle given) and the condition of its unit-norm columns."""
    if not gram.size:
        return gram, 1.0
    norm = np.sqrt(gram.diagonal())
    upper, info = linalg.lapack.dpotrf(gram / (norm[:, None] * norm), clean=1)
    if info != 0:
        return None, np.inf
    reciprocal, _ = linalg.lapack.dtrcon(upper)
    return upper * norm, 1 / max(float(reciprocal), TINY)


def _second_pass(rows: Rows, live: NDArray[np.bool_], mean_row: Array, upper: Array) -> Array | None:
    """Return chol(QᵀQ)·R with Q = CR⁻¹."""
    mean = mean_row[1:] / mean_row[0]

    def orthonormal(block: Array) -> Array:
        centred = (block[:, 1:] - block[:, :1] * mean)[:, live]
        return np.asarray(linalg.blas.dtrsm(1.0, upper, centred.T, trans_a=1).T)

    blocks = map(orthonormal, rows.blocks(GRAM_ROWS))
    correction, condition = _scaled_cholesky(reduce(np.add, (Q.T @ Q for Q in blocks)))
    return correction @ upper if correction is not None and condition < 10 else None
