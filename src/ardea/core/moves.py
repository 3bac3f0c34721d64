"""What one term more, one less, or another in its place does to the residual sum of squares of a support.

With Q an orthonormal basis of the support's columns, r = y − QQᵀy and u_i the unit vector in their span that is
orthogonal to all but column i, every move by one term costs one product with the columns:

    add j:            RSS − (rᵀa_j)²/‖a_j − QQᵀa_j‖²
    drop i:           RSS + (u_iᵀy)²
    exchange i for j: RSS + (u_iᵀy)² − (rᵀa_j + (u_iᵀy)(u_iᵀa_j))²/(‖a_j − QQᵀa_j‖² + (u_iᵀa_j)²)

Columns that come and go together (`Problem.owners`) are a block b, and a column that goes alone is a block of one. With
what others explain taken out, Gram matrix G and correlations c, a block lowers RSS by c_bᵀ G_bb⁻¹ c_b.

A search takes thousands of such small steps: for single columns in memory they are compiled (``_subsets.pyx``), and
the functions here are their NumPy twins, which give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from scipy.linalg import lapack

from ardea.core.problem import TINY, Array, Index, Problem

# A column is in the span of others when at most this share of its norm is left outside: half a million times rounding.
DEPENDENT = 1e-10
# Below this share, ‖a_j‖² − ‖Qᵀa_j‖² has lost four of its sixteen digits: what is left of a_j is formed and measured.
CANCELLED = 1e-4


@dataclass(frozen=True, eq=False)
class Moves:
    """What every move from a support does to RSS; inf where a column is in the support, zero, or in its span."""

    additions: Array  # of each column (d,)
    removals: Array  # of each term (k,)
    exchanges: Array  # of each term for each column (k, d)


# Single columns


def rss_by_reflections(problem: Problem, support: Index) -> float:
    """Return ‖y − QQᵀy‖² as the squared norm of the last rows of Hy, H the reflections of a QR of the columns.

    What a column in the span of those before it adds to Q is rounding error and explains nothing.
    """
    target = problem.target
    reflections, scales, _, _ = lapack.dgeqrf(problem.columns.take(support))
    rotated, _, _ = lapack.dormqr("L", "T", reflections, scales, target[:, None], max(1, target.size))
    spanned = reflections.diagonal() ** 2 <= DEPENDENT**2 * problem.square_norms[support[: target.size]]
    outside = rotated[support.size :, 0]
    return float(outside @ outside) + float(np.sum(rotated[: spanned.size, 0][spanned] ** 2))


def independent_moves(problem: Problem, chosen: Index, q: Array, triangle: Array) -> Moves:
    """Return the moves from columns that are independent, given their QR decomposition."""
    columns, square = problem.columns, problem.square_norms
    # 1) What is left of y, made orthogonal twice
    residual = problem.target - q @ (q.T @ problem.target)
    residual -= q @ (q.T @ residual)
    correlation, loads = columns.correlate(residual), columns.correlate(q).T
    # 2) What is left of every column, formed where the difference of squares has lost its digits
    outside = square - np.einsum("ij,ij->j", loads, loads)
    candidate = square > 0
    candidate[chosen] = False
    close = np.flatnonzero(candidate & (outside < CANCELLED * square))
    left = columns.take(close) - q @ loads[:, close]
    outside[close], correlation[close] = np.einsum("ij,ij->j", left, left), residual @ left
    free = candidate & (outside > DEPENDENT**2 * square)
    outside = np.where(free, outside, 0.0)
    additions = np.where(free, -(correlation**2) / np.where(free, outside, 1.0), np.inf)
    if chosen.size == 0:
        return Moves(additions, np.empty(0), np.empty((0, square.size)))
    # 3) u_i = QR⁻ᵀe_i, of norm one
    inverse = lapack.dtrtri(triangle)[0]
    inverse = inverse / np.sqrt(np.einsum("ij,ij->i", inverse, inverse))[:, None]
    heights, across = inverse @ (q.T @ problem.target), inverse @ loads
    # 4) Exchanges
    room, removals = outside + across**2, heights**2
    possible = candidate & (room > DEPENDENT**2 * square)
    gain = (correlation + heights[:, None] * across) ** 2 / np.where(possible, room, np.inf)
    return Moves(additions, removals, np.where(possible, removals[:, None] - gain, np.inf))


# Blocks of columns


def explained(gram: Array, correlations: Array) -> Array:
    """Return c_bᵀ G_bb⁻¹ c_b of blocks of columns of norm one, by elimination; −inf where nothing is left of them."""
    out: Array = np.empty(0)
    for i in range(correlations.shape[-1]):
        c, room = correlations[..., i], gram[..., i, i]
        free = room > 2 * DEPENDENT
        gain = np.divide(c**2, room, out=np.full(c.shape, -np.inf), where=free)
        out = gain if i == 0 else np.where(free, np.maximum(out, 0.0) + gain, out)
        if i + 1 < correlations.shape[-1]:
            share = np.divide(gram[..., i], room[..., None], out=np.zeros(correlations.shape), where=free[..., None])
            correlations = correlations - share * c[..., None]
            gram = gram - share[..., None] * gram[..., i, None, :]
    return out


def blocks_leave(rows: Array, loads: Array, blocks: list[Index]) -> Iterator[tuple[Index, float]]:
    """Yield the block of columns that goes next, until one is left, and what that adds to RSS."""
    left = np.ones(len(rows), dtype=bool)
    for _ in range(1, sum(map(len, blocks))):
        found = []
        for width in blocks:
            own = rows[width] / np.maximum(np.linalg.norm(rows[width], axis=2, keepdims=True), TINY)
            costs = np.maximum(explained(own @ own.transpose(0, 2, 1), own @ loads), 0.0)
            costs[~left[width[:, 0]]] = np.inf
            found.append((float(costs.min()), width[costs.argmin()]))
        cost, gone = min(found, key=itemgetter(0))
        yield gone, cost
        for i in gone:
            direction = rows[i] / np.sqrt(max(float(rows[i] @ rows[i]), TINY))
            rows -= np.multiply.outer(rows @ direction, direction)
        left[gone] = False


def block_moves(problem: Problem, support: Index, owners: Index, basis: tuple[Index, Array, Array]) -> Moves:
    """Return the moves of blocks: U, a basis of what only one of them explains, stands for u in the formulas above."""
    columns, square = problem.columns, problem.square_norms
    kept, q, triangle = basis
    inverse = lapack.dtrtri(triangle)[0] if kept.size else triangle
    leading = np.flatnonzero(owners[support] == support)
    alone = [np.linalg.qr(q @ inverse[owners[kept] == j].T)[0] for j in support[leading]]
    U = np.column_stack([q[:, :0], *alone])
    number = np.repeat(np.arange(leading.size), [one.shape[1] for one in alone])
    of_one = (number[:, None] == np.arange(leading.size)).astype(float)  # sums over the columns of U of one block
    unit = 1 / np.sqrt(np.where(square > 0, square, np.inf))[:, None]
    residual, heights = problem.target - q @ (q.T @ problem.target), U.T @ problem.target
    loads, across = columns.correlate(q) * unit, columns.correlate(U) * unit
    correlation = columns.correlate(residual) * unit[:, 0]
    removals, additions = np.full(support.size, np.inf), np.full(square.size, np.inf)
    removals[leading], exchanges = heights**2 @ of_one, np.full((support.size, square.size), np.inf)
    for index in problem.blocks:
        own, c, more = loads[index], correlation[index], across[index]
        room = _gram_of(problem, index, unit) - own @ own.transpose(0, 2, 1)
        additions[index[:, 0]] = -explained(room, c)
        rooms = room[..., None] + (more[:, :, None] * more[:, None]) @ of_one
        gains = explained(np.moveaxis(rooms, -1, 0), np.moveaxis(c[..., None] + (more * heights) @ of_one, -1, 0))
        exchanges[np.ix_(leading, index[:, 0])] = removals[leading, None] - gains
    additions[support], exchanges[:, support] = np.inf, np.inf
    return Moves(additions, removals, exchanges)


def _gram_of(problem: Problem, blocks: Index, unit: Array) -> Array:
    """Return the Gram matrices of blocks of one width, of columns of norm one."""
    if blocks.shape[1] == 1:
        return np.sign(unit[blocks])
    own = (problem.columns.take(blocks.ravel()).T * unit[blocks.ravel()]).reshape(*blocks.shape, -1)
    return own @ own.transpose(0, 2, 1)
