"""The R-factor of √w·[1 Θ Y] from rows in memory, block by block: by Gram matrix, by Cholesky-QR twice, or by QR.

With C the centred columns, chol(CᵀC) = R costs half of one Gram product but its error grows with cond(C)². Where the
condition number of the unit-norm columns is at most 2e3, that is all. Up to 1e7 a second pass repairs it: Q = CR⁻¹ is
nearly orthonormal, and chol(QᵀQ)·R has the accuracy of QR. Beyond, Householder QR of the blocks.

Every block has a shift near the column means taken off before anything is multiplied, so that a large offset costs no
digits and a constant column is exactly zero; it is put back into the first row of R, which holds the means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ardea.core.columns import Array

GRAM_CONDITION_LIMIT = 2e3
TWO_PASS_CONDITION_LIMIT = 1e7
# Centring a Gram matrix by subtraction may cost two digits, not more.
CENTRING_SHARE = 1e-2
BLOCK_BYTES = 2**20
# Least rows of a block whose Gram product is taken.
GRAM_ROWS = 512
# Rows whose means serve as shift: near the column means is enough.
SHIFT_ROWS = 64


def power_of_two(size: Array) -> Array:
    """Return the power of two just above each size (1 for zero): dividing by it is exact."""
    _, exponent = np.frexp(size)
    return np.where(size > 0, np.ldexp(1.0, exponent), 1.0)


def triangle(rows: Array) -> Array:
    """Return the upper triangle of a QR factorisation."""
    width = rows.shape[1]
    packed, *_ = linalg.lapack.dgeqrf(rows, lwork=64 * width)
    return np.triu(packed[:width])


def shortened(rows: Array) -> Array:
    """Return the R-factor once it is half as tall as the rows, so that growing by single rows stays cheap."""
    return triangle(rows) if rows.shape[0] > 2 * rows.shape[1] else rows


@dataclass(frozen=True)
class Rows:
    """X, Y and weights in memory, read block by block."""

    X: Any
    Y: Array
    weight: Array | None

    @property
    def width(self) -> int:
        """Number of columns of [1 X Y]."""
        return int(1 + self.X.shape[1] + self.Y.shape[1])

    @cached_property
    def _readable(self) -> Any:
        return self.X.tocsr() if sparse.issparse(self.X) else self.X

    def blocks(self, least_rows: int) -> Iterator[Array]:
        """Yield √w·[1, X − shift, Y − shift] in blocks that stay in cache but are tall enough for BLAS.

        All blocks share one buffer: each is gone when the next is asked for.
        """
        m = self.X.shape[0]
        size = min(m, max(least_rows, BLOCK_BYTES // (8 * self.width)))
        buffer = np.empty((size, self.width))
        for start in range(0, m, size):
            yield self.weighted(slice(start, start + size), self.shift, buffer)

    def shifted(self, part: slice, shift: Array, buffer: Array | None = None) -> Array:
        """Return the part of [1, X − shift, Y − shift], in the buffer where one is given."""
        block = self._readable[part]
        d = self.X.shape[1]
        rows = np.empty((block.shape[0], self.width)) if buffer is None else buffer[: block.shape[0]]
        rows[:, 0] = 1.0
        np.subtract(block.toarray() if sparse.issparse(block) else block, shift[:d], out=rows[:, 1 : 1 + d])
        np.subtract(self.Y[part], shift[d:], out=rows[:, 1 + d :])
        return rows

    def weighted(self, part: slice, shift: Array, buffer: Array | None = None) -> Array:
        """Return the part of √w·[1, X − shift, Y − shift], in the buffer where one is given."""
        rows = self.shifted(part, shift, buffer)
        if self.weight is not None:
            rows *= np.sqrt(self.weight[part])[:, None]
        return rows

    @cached_property
    def shift(self) -> Array:
        """Means of the first rows; where those are constant, their exact value."""
        first = self.shifted(slice(0, SHIFT_ROWS), np.zeros(self.width - 1))[:, 1:]
        constant = (first == first[0]).all(axis=0)
        return np.where(constant, first[0], first.mean(axis=0))


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
        gram = _gram(rows.blocks(GRAM_ROWS), rows.width)
        centred = gram[1:, 1:] - gram[0, 1:, None] * (gram[0, 1:] / gram[0, 0])
    raw, left = gram.diagonal()[1:], centred.diagonal()
    live = raw > 0
    in_range = np.isfinite(gram).all() and np.all((raw[live] > 1e-280) & (raw[live] < 1e280))
    if not in_range or np.any(left[live] < CENTRING_SHARE * raw[live]):
        return None
    upper, condition = _scaled_cholesky(centred if live.all() else centred[np.ix_(live, live)])
    mean_row = gram[0] / np.sqrt(gram[0, 0])
    if upper is not None and condition > GRAM_CONDITION_LIMIT:
        upper = _second_pass(rows, live, mean_row, upper) if condition < TWO_PASS_CONDITION_LIMIT else None
    if upper is None:
        return None
    factor = np.zeros((rows.width, rows.width))
    factor[0] = mean_row
    factor[0, 1:] += mean_row[0] * rows.shift
    if live.all():
        factor[1:, 1:] = upper
    else:
        factor[1:, 1:][np.ix_(live, live)] = upper
    return factor


def _gram(blocks: Iterator[Array], width: int) -> Array:
    """Return the upper triangle of the sum of BᵀB over the blocks, accumulated in place (zeros below)."""
    gram = np.zeros((width, width), order="F")
    for block in blocks:
        gram = linalg.blas.dsyrk(1.0, block.T, beta=1.0, c=gram, overwrite_c=1)
    return gram


def _scaled_cholesky(gram: Array) -> tuple[Array | None, float]:
    """Return the Cholesky factor of a Gram matrix (upper triangle given) and the condition of its unit-norm columns."""
    if not gram.size:
        return gram, 1.0
    norm = np.sqrt(gram.diagonal())
    upper, info = linalg.lapack.dpotrf(gram / (norm[:, None] * norm), clean=1)
    if info != 0:
        return None, np.inf
    reciprocal, _ = linalg.lapack.dtrcon(upper)
    return upper * norm, 1 / max(float(reciprocal), np.finfo(float).tiny)


def _second_pass(rows: Rows, live: NDArray[np.bool_], mean_row: Array, upper: Array) -> Array | None:
    """Return chol(QᵀQ)·R with Q = CR⁻¹."""
    mean = mean_row[1:] / mean_row[0]

    def orthonormal(block: Array) -> Array:
        centred = (block[:, 1:] - block[:, :1] * mean)[:, live]
        return np.asarray(linalg.blas.dtrsm(1.0, upper, centred.T, trans_a=1).T)

    gram = _gram((orthonormal(block) for block in rows.blocks(GRAM_ROWS)), upper.shape[1])
    correction, condition = _scaled_cholesky(gram)
    return correction @ upper if correction is not None and condition < 10 else None
