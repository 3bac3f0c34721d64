"""Linear algebra of states along a chain of steps.

r_i depends on the states at both ends of step i, by the blocks R_a and R_b of R = ∂r/∂X. With W the weights of the
samples and Q⁻¹ the precisions of the steps, the states have the Hessian

    H = W + RᵀQ⁻¹R = LLᵀ,

block tridiagonal, so that all is O(points). It is kept as a band: row i of an array of shape (points·n, 2n) holds
H_ii, H_{i+1,i}, …, which is LAPACK's lower band, transposed. Its loops are compiled (``_chain.pyx``); without a
compiler, and where ``ARDEA_LOOP=numpy`` is in the environment, their NumPy twins here give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from ardea.core.evidence import Tied
from ardea.core.lazy import cached_property, compiled_module, numpy_is_asked_for
from ardea.core.problem import Array

compiled = compiled_module("dynamics._chain")

# The share of a column that is its own, below which that is rounding error.
DEPENDENT = 1e-11
# A share of a row of equations: what elimination leaves of it below is rounding error.
NOTHING = 1e-9
# Directions with less than this share of the largest information are rounding error (κ² of the last level).
RESOLVED = 1e-10
# Where all squared pivots of a Cholesky factor are above this, so are the eigenvalues above the last (four digits to
# spare, a convention: a pivot may exceed the smallest eigenvalue).
CLEARLY_RESOLVED = 1e-6
# Above so many states BLAS outweighs the calls of NumPy: with 4 states the compiled loops take .4 to .7 times as long,
# with 16 as long, with 24 up to twice as long (measured). LAPACK solves with a band column by column; with 40 states
# and 160 columns, block by block takes a third of the time.
LARGEST_COMPILED = 16
# A border is gone through in parts of so many numbers (1 MB): what stays in the cache costs arithmetic alone. Whole,
# with 40 states and 160 coefficients, memory takes twice as long as that (measured).
MOST_AT_ONCE = 2**17


class NumpyLoops:
    """The loops in NumPy."""

    @staticmethod
    def step_blocks(J_a: Array, J_m: Array, J_b: Array, h: Array) -> tuple[Array, Array]:
        """Return ∂r/∂x_a and ∂r/∂x_b of every step, from ∂f/∂x at its start, in its middle and at its end."""
        one, h = np.eye(J_m.shape[1]), h[:, None, None]
        before = -one - h / 6 * (J_a + 2 * J_m + h / 2 * (J_m @ J_a))
        return before, one - h / 6 * (J_b + 2 * J_m - h / 2 * (J_m @ J_b))

    @staticmethod
    def pulled(before: Array, after: Array, precisions: Array, rows: Array) -> Array:
        """Return RᵀQ⁻¹ rows, for rows of shape (steps, n, p)."""
        weighted = precisions[:, :, None] * rows
        out = np.zeros((len(rows) + 1, *rows.shape[1:]))
        out[:-1] = before.transpose(0, 2, 1) @ weighted
        out[1:] += after.transpose(0, 2, 1) @ weighted
        return out

    @staticmethod
    def hessian(before: Array, after: Array, weights: Array, precisions: Array) -> Array:
        """Return the band of H."""
        points, n = weights.shape
        own, below = hessian_blocks(before, after, weights, precisions)
        out = np.zeros((points, n, 2 * n))
        for column in range(n):
            out[:, column, : n - column] = own[:, column:, column]
            out[:-1, column, n - column : 2 * n - column] = below[:, :, column]
        return out.reshape(points * n, 2 * n)

    @staticmethod
    def forward(factor: Array, rows: Array, solved: int) -> Array:
        """Return L⁻¹ rows of the first ones, and what these leave of those after them."""
        own, n = _by_lapack(lapack.dtbtrs, factor[:solved], rows[:solved], uplo="L"), factor.shape[1] // 2
        if solved == len(rows):
            return own
        rest = rows[solved:] - _block_below(factor[solved - n : solved]) @ own[-n:]
        return np.concatenate([own, rest])

    @staticmethod
    def carried_back(gain: Array, own: Array) -> Array:
        """Return V_i = own_i + G_iᵀV_{i+1}G_i, from the last to the first."""
        out = own.copy()
        for i in range(len(gain) - 1, -1, -1):
            out[i] += gain[i].T @ out[i + 1] @ gain[i]
        return out


def hessian_blocks(before: Array, after: Array, weights: Array, precisions: Array) -> tuple[Array, Array]:
    """Return H_ii and H_{i+1,i}."""
    points, n = weights.shape
    own = np.zeros((points, n, n))
    own[:, np.arange(n), np.arange(n)] = weights
    weighted = precisions[:, :, None] * before
    own[:-1] += before.transpose(0, 2, 1) @ weighted
    own[1:] += after.transpose(0, 2, 1) @ (precisions[:, :, None] * after)
    return own, after.transpose(0, 2, 1) @ weighted


def _by_lapack(solver: Any, factor: Array, rows: Array, **options: Any) -> Array:
    """Return what a solver of LAPACK makes of some columns; of none it would write past its memory."""
    return np.asarray(solver(factor.T, rows, **options)[0]) if rows.shape[1] else rows


def _block_below(band: Array) -> Array:
    """Return L_{i+1,i} of the rows of point i."""
    n = len(band)
    return np.column_stack([band[column, n - column : 2 * n - column] for column in range(n)])


def loops(n_states: int) -> Any:
    """Return the loops in use for so many states."""
    slow = compiled is None or n_states > LARGEST_COMPILED or numpy_is_asked_for()
    return NumpyLoops if slow else compiled


@dataclass(frozen=True, eq=False)
class Chain:
    """States with weights, tied by steps."""

    before: Array  # (steps, n, n): R_a
    after: Array  # (steps, n, n): R_b
    weights: Array  # (points, n), zero where there is no sample
    precisions: Array  # (steps, n), zero where there is no step

    def pulled(self, rows: Array) -> Array:
        """Return RᵀQ⁻¹ rows as (points·n, p), for rows of shape (steps, n, p)."""
        out = loops(rows.shape[1]).pulled(self.before, self.after, self.precisions, np.ascontiguousarray(rows))
        return np.asarray(out).reshape(self.weights.size, rows.shape[2])

    def reduced(
        self, factor: Factor, border: Callable[[slice], Array], k: int, target: Array, pull: Array
    ) -> tuple[Array, Array, Array]:
        """Return S = BᵀQ⁻¹B − UᵀU, b = BᵀQ⁻¹t − Uᵀv and v: what k coefficients explain where the states give way.

        B = ∂r/∂ξ, t a target of the steps and p a pull on the states, both of shape (…, n): U = L⁻¹RᵀQ⁻¹B and
        v = L⁻¹(RᵀQ⁻¹t + p). `border` returns B of some steps, (steps, n, k); U goes by, and is not kept. The diagonal
        of S is not below the rounding error of the difference.
        """
        points, n = self.weights.shape
        length, (inner, outer) = max(1, MOST_AT_ONCE // (n * (k + 1))), np.zeros((2, k + 1, k + 1))
        v, left = np.empty((points, n)), np.zeros((n, k + 1))
        for first in range(0, points, length):
            nodes, steps = slice(first, min(first + length, points)), slice(first, min(first + length, points - 1))
            root = np.sqrt(self.precisions[steps])
            rows = np.empty((*root.shape, k + 1))
            rows[:, :, 0], rows[:, :, 1:] = target[steps], border(steps)
            rows *= root[:, :, None]
            inner += _gram(rows)
            pulled = np.asarray(loops(n).pulled(self.before[steps], self.after[steps], root, rows))
            pulled[0] += left
            pulled[: nodes.stop - first, :, 0] += pull[nodes]
            half = factor.forward(pulled.reshape(-1, k + 1), nodes).reshape(pulled.shape)
            half, left = half[: nodes.stop - first], half[-1]
            outer, v[nodes] = outer + _gram(half), half[:, :, 0]
        out = (inner - outer)[1:]
        diagonal = np.maximum(out[:, 1:].diagonal(), 0.0) + 1e-14 * inner.diagonal()[1:]
        S, b = out[:, 1:], out[:, 0]
        S.flat[:: k + 1] = np.where(diagonal > 0, diagonal, 1.0)
        return S, b, v

    def left(self, rows: Array, pull: Array) -> Array | None:
        """Return Q⁻¹(rows − RH⁻¹(RᵀQ⁻¹ rows + pull)), what rows leave where the states give way; (steps, n, p).

        `pull` of shape (points·n, p) acts on the states. None where H is not positive.
        """
        if self.factor is None:
            return None
        x = self.factor.solved(self.pulled(rows) + pull).reshape(*self.weights.shape, -1)
        return np.asarray(self.precisions[:, :, None] * (rows - self.before @ x[:-1] - self.after @ x[1:]))

    @cached_property
    def band(self) -> Array:
        """The band of H."""
        return np.asarray(loops(self.weights.shape[1]).hessian(self.before, self.after, self.weights, self.precisions))

    @cached_property
    def blocks(self) -> tuple[Array, Array]:
        """The blocks of H, H_ii and H_{i+1,i}."""
        return hessian_blocks(self.before, self.after, self.weights, self.precisions)

    @cached_property
    def factor(self) -> Factor | None:
        """The Cholesky factor of H; None where H is not positive."""
        return self.damped(0.0)

    def damped(self, damping: Array | float) -> Factor | None:
        """Return the factor of H with something on its diagonal, (points, n)."""
        if self.weights.shape[1] > LARGEST_COMPILED:
            return Factor.of(*self.blocks, damping)
        band = self.band.copy()
        if np.any(damping):
            band[:, 0] += np.ravel(damping)
        factor, info = lapack.dpbtrf(band.T, lower=1, overwrite_ab=1)
        return None if info else BandFactor(factor.T, self.weights.shape[1])

    @property
    def log_determinant(self) -> float:
        """ln|H|; NaN where H is not positive."""
        return float("nan") if self.factor is None else 2 * float(np.sum(np.log(self.factor.pivots)))

    @cached_property
    def spread(self) -> tuple[Array, Array] | None:
        """RV at the start and at the end of every step, V = H⁻¹, (steps, n, n); None where H is not positive."""
        if self.factor is None:
            return None
        within, across = self.factor.covariances
        start = self.before @ within[:-1] + self.after @ across
        return start, self.before @ across.transpose(0, 2, 1) + self.after @ within[1:]

    def used(self) -> tuple[Array, Array]:
        """Return ∂ ln|H|/∂ ln w of the weights and of the precisions of every state, tr W_lV and tr Q_l⁻¹RVRᵀ.

        They are NaN where H is not positive.
        """
        if self.factor is None or self.spread is None:
            return np.full(self.weights.shape[1], np.nan), np.full(self.weights.shape[1], np.nan)
        start, end = self.spread
        of_steps = np.einsum("skl,skl->sk", start, self.before) + np.einsum("skl,skl->sk", end, self.after)
        of_samples = np.einsum("ik,ikk->k", self.weights, self.factor.covariances[0])
        return of_samples, np.sum(self.precisions * of_steps, axis=0)


class Factor:
    """L of H = LLᵀ, in blocks: BLAS sees them transposed, as it likes their order in memory."""

    def __init__(self, own: Array, below: Array) -> None:
        self._blocks = own, below

    @classmethod
    def of(cls, own: Array, below: Array, damping: Array | float) -> Factor | None:
        """Return the factor of blocks with something on the diagonal: L_{i+1,i} = H_{i+1,i}L_ii⁻ᵀ, and on from there.

        None where H is not positive.
        """
        own, below = own.copy(), below.copy()
        own[:, np.arange(own.shape[1]), np.arange(own.shape[1])] += damping
        for i in range(len(own)):
            if i:
                blas.dsyrk(-1.0, below[i - 1].T, beta=1.0, c=own[i].T, trans=1, overwrite_c=1)
            if lapack.dpotrf(own[i].T, overwrite_a=1)[1]:
                return None
            if i < len(below):
                blas.dtrsm(1.0, own[i].T, below[i].T, trans_a=1, overwrite_b=1)
        return cls(own, below)

    @cached_property
    def blocks(self) -> tuple[Array, Array]:
        """L_ii (points, n, n), and L_{i+1,i}."""
        return self._blocks

    @property
    def pivots(self) -> Array:
        """The diagonal of L."""
        return np.einsum("ikk->ik", self.blocks[0])

    def forward(self, rows: Array, nodes: slice = slice(None)) -> Array:
        """Return L⁻¹ rows of some nodes, (nodes·n, p); of one more node, what these leave of it."""
        first, last, _ = nodes.indices(len(self.blocks[0]))
        return self._by_blocks(rows, range(first, last))

    def backward(self, rows: Array) -> Array:
        """Return L⁻ᵀ rows."""
        return self._by_blocks(rows, range(len(self.blocks[0]) - 1, -1, -1))

    def solved(self, rows: Array) -> Array:
        """Return H⁻¹ rows."""
        return self.backward(self.forward(rows))

    def _by_blocks(self, rows: Array, nodes: range) -> Array:
        """Return x = L⁻¹ rows, x_i = L_ii⁻¹(rows_i − L_{i,i−1}x_{i−1}), or L⁻ᵀ rows where the nodes go backward."""
        (own, below), forward = self.blocks, nodes.step > 0
        out = np.array(rows, order="C").reshape(-1, own.shape[1], rows.shape[1])
        if not out.size:
            return rows
        places = range(len(out))[:: nodes.step]
        for place, i in zip(places, nodes, strict=False):
            blas.dtrsm(1.0, own[i].T, out[place].T, side=1, trans_a=not forward, overwrite_b=1)
            if 0 <= (following := place + nodes.step) < len(out):
                between = below[i if forward else i - 1].T
                blas.dgemm(-1.0, out[place].T, between, 1.0, out[following].T, trans_b=not forward, overwrite_c=1)
        return out.reshape(rows.shape)

    @cached_property
    def covariances(self) -> tuple[Array, Array]:
        """The blocks V_ii and V_{i+1,i} of V = H⁻¹, the covariance of the states.

        With H = LLᵀ in blocks and G_i = L_{i+1,i}L_ii⁻¹ they follow from the last to the first:
        V_ii = (L_iiL_iiᵀ)⁻¹ + G_iᵀV_{i+1,i+1}G_i, V_{i+1,i} = −V_{i+1,i+1}G_i.
        """
        own, below = self.blocks
        inverse = np.linalg.inv(own)
        gain = below @ inverse[:-1]
        within = np.asarray(loops(own.shape[1]).carried_back(gain, inverse.transpose(0, 2, 1) @ inverse))
        return within, -within[1:] @ gain


class BandFactor(Factor):
    """That of few states, as a band of shape (points·n, 2n)."""

    def __init__(self, band: Array, n: int) -> None:
        self.band, self.n = band, n

    @cached_property
    def blocks(self) -> tuple[Array, Array]:
        """L_ii and L_{i+1,i}."""
        n, band = self.n, self.band.reshape(-1, self.n, 2 * self.n)
        own, below = np.zeros((2, len(band), n, n))
        for column in range(n):
            own[:, column:, column] = band[:, column, : n - column]
            below[:, :, column] = band[:, column, n - column : 2 * n - column]
        return own, below[:-1]

    @property
    def pivots(self) -> Array:
        """The diagonal of L."""
        return self.band[:, 0]

    def forward(self, rows: Array, nodes: slice = slice(None)) -> Array:
        """Return L⁻¹ rows of some nodes; of one more node, what these leave of it."""
        first, last, _ = nodes.indices(len(self.band) // self.n)
        band = self.band[first * self.n : last * self.n]
        return np.asarray(loops(self.n).forward(band, np.ascontiguousarray(rows), len(band)))

    def backward(self, rows: Array) -> Array:
        """Return L⁻ᵀ rows."""
        return _by_lapack(lapack.dtbtrs, self.band, rows, uplo="L", trans="T")

    def solved(self, rows: Array) -> Array:
        """Return H⁻¹ rows."""
        return _by_lapack(lapack.dpbtrs, self.band, rows, lower=1)


# The border


def _gram(rows: Array) -> Array:
    """Return AᵀA with all axes but the last as rows of A."""
    flat = rows.reshape(-1, rows.shape[-1])
    return np.asarray(flat.T @ flat)


def rooted(S: Array, b: Array) -> tuple[Array, Array]:
    """Return A and p with AᵀA = S and Aᵀp = b, whatever the units of the coefficients."""
    unit = np.sqrt(np.maximum(S.diagonal(), np.finfo(float).tiny))
    scaled, goal = S / np.outer(unit, unit), b / unit
    factor, failed = lapack.dpotrf(scaled, lower=1, clean=1)
    if b.size and not failed and np.all(factor.diagonal() ** 2 > CLEARLY_RESOLVED):
        return factor.T * unit, np.asarray(lapack.dtrtrs(factor, goal, lower=1)[0])
    values, vectors = np.linalg.eigh(scaled)
    root = np.sqrt(np.maximum(values, RESOLVED * np.max(values, initial=0.0)))
    return np.asarray((vectors * root).T * unit), np.asarray(vectors.T @ goal / root)


def solved_damped(information: Array, pull: Array, damping: float) -> Array:
    """Return S⁻¹b, damped, whatever the units of the coefficients."""
    unit = np.sqrt(np.maximum(information.diagonal(), np.finfo(float).tiny))
    scaled = information / np.outer(unit, unit)
    scaled.flat[:: len(unit) + 1] += damping + 1e-12
    if not len(unit):
        return np.empty(0)
    goal = pull / unit
    _, solution, info = lapack.dposv(scaled, goal[:, None], lower=1)
    return np.asarray((np.linalg.lstsq(scaled, goal, rcond=None)[0] if info else solution[:, 0]) / unit)


def triangle(columns: Array) -> Array:
    """Return R of the QR decomposition of some columns; dependent ones stand on a diagonal next to nothing."""
    size = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    least = np.where(size > 0, DEPENDENT * size, 1.0)
    if len(columns) < len(size):
        return np.diag(np.where(size > 0, size, 1.0))
    R = np.asarray(np.linalg.qr(columns, mode="r"))
    np.fill_diagonal(R, np.where(np.abs(R.diagonal()) > least, R.diagonal(), least))
    return R


def eliminated(rows: Array, values: Array, signs: Array) -> Tied:
    """Return all solutions w of rows · w = values, as w₀ + Zv; w₀ is infinite where there is none.

    Gauss and Jordan: each row in turn is divided by its largest factor and taken out of all others.
    """
    left = np.column_stack([rows, values]).astype(float)
    pivots: dict[int, int] = {}
    for number in range(len(left)):
        sizes = np.abs(left[number, :-1])
        if sizes.max(initial=0.0) <= NOTHING * max(np.abs(rows[number]).max(initial=0.0), np.finfo(float).tiny):
            continue
        # The last of the largest: those before it stay free.
        pivot = int(len(sizes) - 1 - np.argmax(sizes[::-1] > (1 - NOTHING) * sizes.max()))
        left[number] /= left[number, pivot]
        others = np.arange(len(left)) != number
        left[others] -= np.outer(left[others, pivot], left[number])
        left[others, pivot] = 0.0
        pivots[number] = pivot
        left[:, :-1][np.abs(left[:, :-1]) < NOTHING] = 0.0
    free = np.setdiff1d(np.arange(rows.shape[1]), list(pivots.values()))
    directions, offset = np.zeros((rows.shape[1], free.size)), np.zeros(rows.shape[1])
    directions[free, np.arange(free.size)] = 1.0
    for number, pivot in pivots.items():
        directions[pivot], offset[pivot] = -left[number, free], left[number, -1]
    if np.any(np.abs(np.delete(left[:, -1], list(pivots))) > NOTHING * np.abs(values).max(initial=0.0)):
        offset = np.full(rows.shape[1], np.inf)
    return Tied(offset, directions, signs)
