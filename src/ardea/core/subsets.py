"""Which few columns of a problem explain its target: the criteria, and the moves between supports.

With m rows, d columns and k terms of residual sum of squares RSS (least squares on the support), a support is judged by
m ln(RSS/m) plus a penalty (`penalty`); the search over supports takes the one called "ebic2" and k ≤ m/4.

With Q an orthonormal basis of the support's columns, r = y − QQᵀy and u_i the unit vector in their span that is
orthogonal to all but column i, every move by one term costs one product with the columns:

    add j:            RSS − (rᵀa_j)²/‖a_j − QQᵀa_j‖²
    drop i:           RSS + (u_iᵀy)²
    exchange i for j: RSS + (u_iᵀy)² − (rᵀa_j + (u_iᵀy)(u_iᵀa_j))²/(‖a_j − QQᵀa_j‖² + (u_iᵀa_j)²)

Columns that come and go together (`Problem.owners`) are a block b, and a column that goes alone is a block of one. With
what others explain taken out, Gram matrix G and correlations c, a block lowers RSS by c_bᵀ G_bb⁻¹ c_b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import comb
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

from ardea.core.problem import TINY, Array, DenseColumns, Index, Problem, blocks_of, misfit, penalty

Support = tuple[int, ...]
Mask = NDArray[np.bool_]
# From a problem, and what one unit of each of its coefficients is worth, to supports worth a look.
Propose = Callable[[Problem, Array], list[Support]]

# A column is in the span of others when at most this share of its norm is left outside: half a million times rounding.
DEPENDENT = 1e-10
# Below this share, ‖a_j‖² − ‖Qᵀa_j‖² has lost four of its sixteen digits: what is left of a_j is formed and measured.
CANCELLED = 1e-4
# RSS below this share of ‖y‖² is rounding error of y and of the columns, and models that reach it are equally good.
# Derived: a residual is a difference of sums whose terms have 16 digits and cancel by some orders of magnitude, so that
# eight digits of its norm are sure. With 1e-18, equations of data without noise had false terms of 1e-10.
ROUNDING = 1e-16
# A move must lower the criterion by this share of it, or rounding error could lead in a circle.
PROGRESS = 1e-9
# How many of the best additions are neighbours, and how many of the models proposed are polished. Measured on 54 draws
# of known equations (`dynamics.search`): 1 and 6 lead to the same supports.
ADDITIONS, POLISHED = 3, 3
# Where the best model has more terms than this, the way from none to it is not gone term by term: it costs k products.
LONGEST_WAY = 40
# Bounds on work: columns of the subsets that are all tried, and how many there may be of a size (a few milliseconds).
LARGEST_SUBSET, MOST_SUBSETS = 5, 6000
# Where they are more, the best of the size before are taken further, a few at least, to about so many (conventions).
MOST_LONGER, NARROWEST = 20_000, 20

_by_criterion = attrgetter("criterion")


@dataclass(frozen=True)
class Model:
    """A support with the residual sum of squares of least squares on it, and its criterion."""

    support: Support
    criterion: float
    rss: float


@dataclass(frozen=True, eq=False)
class Moves:
    """What every move from a support does to RSS; inf where a column is in the support, zero, or in its span."""

    additions: Array  # of each column (d,)
    removals: Array  # of each term (k,)
    exchanges: Array  # of each term for each column (k, d)


def criterion(problem: Problem, rss: float, support: Support) -> float:
    """Return the criterion of a support with this residual sum of squares."""
    price, k = problem.price, len(support)
    if price is None:
        cost = penalty("ebic2", problem.n_rows, problem.n_columns, k)
    else:
        cost = price[list(support)].sum() if isinstance(price, np.ndarray) else price * k
    return float(misfit(rss, problem.n_rows, max(problem.floor, ROUNDING * problem.total)) + cost)


def _explained(gram: Array, correlations: Array) -> Array:
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


def model(problem: Problem, support: Iterable[int]) -> Model:
    """Return a support with its residual sum of squares and criterion."""
    chosen = problem.together(support)
    rss = _rss(problem, chosen)
    return Model(chosen, criterion(problem, rss, chosen), rss)


def _rss(problem: Problem, support: Support) -> float:
    """Return ‖y − QQᵀy‖² as the squared norm of the last rows of Hy, H the reflections of a QR of the columns.

    What a column in the span of those before it adds to Q is rounding error and explains nothing.
    """
    if not support:
        return problem.total
    target, chosen = problem.target, np.array(support, dtype=np.intp)
    reflections, scales, _, _ = lapack.dgeqrf(problem.columns.take(chosen))
    rotated, _, _ = lapack.dormqr("L", "T", reflections, scales, target[:, None], max(1, target.size))
    dependent = reflections.diagonal() ** 2 <= DEPENDENT**2 * problem.square_norms[chosen[: target.size]]
    outside = rotated[len(support) :, 0]
    return float(outside @ outside) + float(np.sum(rotated[: dependent.size, 0][dependent] ** 2)) + problem.rest


def backward_path(problem: Problem, support: Iterable[int]) -> list[Model]:
    """Return the nested models from a support to a single term; the cheapest term goes first.

    Of columns that depend on each other only as many are kept at the start as are independent.
    """
    chosen, q, triangle = _basis(problem, problem.together(support))
    if not chosen.size:
        return []
    # Row j of R⁻¹: its product with Qᵀz is coefficient j, its square norm the variance. A term that goes takes its
    # direction out of all rows.
    rows, _ = lapack.dtrtri(triangle)
    loads = q.T @ problem.target
    residual = problem.target - q @ loads
    blocks = None if problem.owners is None else blocks_of(problem.owners[chosen])
    leaving = _singles_leave(rows, loads) if blocks is None else _blocks_leave(rows, loads, blocks)
    rss, left = float(residual @ residual) + problem.rest, chosen.tolist()
    path = [(tuple(left), rss)]
    for gone, cost in leaving:
        rss += cost
        out = chosen[gone].tolist()
        left = [j for j in left if j not in out]
        path.append((problem.together(left) if blocks else tuple(left), rss))
    return [Model(one, criterion(problem, rss, one), rss) for one, rss in path]


def _singles_leave(rows: Array, loads: Array) -> Iterator[tuple[list[int], float]]:
    """Yield the column that goes next, until one is left, and what that adds to RSS."""
    places = list(range(len(rows)))
    while len(places) > 1:
        heights, squares = rows @ loads, np.einsum("ij,ij->i", rows, rows)
        costs = heights * heights / np.maximum(squares, TINY)
        i = int(costs.argmin())
        direction = rows[i] / np.sqrt(max(squares[i], TINY))
        yield [places[i]], float(costs[i])
        places[i], rows[i] = places[-1], rows[-1]
        places, rows = places[:-1], rows[:-1]
        rows -= np.multiply.outer(rows @ direction, direction)


def _blocks_leave(rows: Array, loads: Array, blocks: list[Index]) -> Iterator[tuple[Index, float]]:
    """Yield the block of columns that goes next, until one is left, and what that adds to RSS."""
    left = np.ones(len(rows), dtype=bool)
    for _ in range(1, sum(map(len, blocks))):
        found = []
        for width in blocks:
            own = rows[width] / np.maximum(np.linalg.norm(rows[width], axis=2, keepdims=True), TINY)
            costs = np.maximum(_explained(own @ own.transpose(0, 2, 1), own @ loads), 0.0)
            costs[~left[width[:, 0]]] = np.inf
            found.append((float(costs.min()), width[costs.argmin()]))
        cost, gone = min(found, key=itemgetter(0))
        yield gone, cost
        for i in gone:
            direction = rows[i] / np.sqrt(max(float(rows[i] @ rows[i]), TINY))
            rows -= np.multiply.outer(rows @ direction, direction)
        left[gone] = False


def _basis(problem: Problem, support: Sequence[int] | Index) -> tuple[Index, Array, Array]:
    """Return a support without the columns in the span of others, and Q and R of what is left."""
    chosen = np.asarray(support, dtype=np.intp)
    if chosen.size <= problem.columns.shape[0]:
        q, triangle = _orthonormal(problem.columns.take(chosen))
        if np.all(triangle.diagonal() ** 2 > DEPENDENT**2 * problem.square_norms[chosen]):
            return chosen, q, triangle
    kept, vectors = _independent(problem, chosen)
    return kept, *_orthonormal(vectors)


def _independent(problem: Problem, support: Sequence[int] | Index) -> tuple[Index, Array]:
    """Return a support without the columns in the span of others, and its vectors."""
    chosen = np.asarray(support, dtype=np.intp)
    vectors = problem.columns.take(chosen)
    if chosen.size == 0:
        return chosen, vectors
    _, triangle, order = linalg.qr(vectors, mode="economic", pivoting=True, check_finite=False)
    pivots = np.abs(triangle.diagonal())
    kept = np.sort(order[: int((pivots > DEPENDENT * max(pivots[0], TINY)).sum())])
    return chosen[kept], vectors[:, kept]


def forward_path(problem: Problem, length: int) -> Support:
    """Return the terms that are added one after the other, each the best addition, whatever the criterion says."""
    support: Support = ()
    while len(support) < min(length, problem.largest):
        alone = problem.owners is None
        changes = (_outside(problem, *_basis(problem, support)[:2]) if alone else moves(problem, support)).additions
        j = int(np.argmin(changes))
        if not np.isfinite(changes[j]):
            break
        support = problem.together((*support, j))
    return support


def moves(problem: Problem, support: Sequence[int] | Index) -> Moves:
    """Return what every addition, removal and exchange does to RSS; those of a block are at the place of its owner."""
    chosen = np.asarray(support, dtype=np.intp)
    if problem.owners is not None:
        return _block_moves(problem, chosen, problem.owners)
    kept, q, triangle = _basis(problem, chosen)
    inner, needed = _independent_moves(problem, kept, q, triangle), np.isin(chosen, kept)
    if np.all(needed):
        return inner
    # A term in the span of others goes for nothing, and its exchange is an addition.
    removals, exchanges = np.zeros(chosen.size), np.tile(inner.additions, (chosen.size, 1))
    removals[needed], exchanges[needed] = inner.removals, inner.exchanges
    exchanges[:, chosen] = np.inf
    return Moves(inner.additions, removals, exchanges)


def _block_moves(problem: Problem, support: Index, owners: Index) -> Moves:
    """Return the moves of blocks: U, a basis of what only one of them explains, stands for u in the formulas above."""
    columns, square = problem.columns, problem.square_norms
    kept, q, triangle = _basis(problem, support)
    inverse = lapack.dtrtri(triangle)[0] if kept.size else triangle
    leading = np.flatnonzero(owners[support] == support)
    alone = [_orthonormal(q @ inverse[owners[kept] == j].T)[0] for j in support[leading]]
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
        additions[index[:, 0]] = -_explained(room, c)
        rooms = room[..., None] + (more[:, :, None] * more[:, None]) @ of_one
        gains = _explained(np.moveaxis(rooms, -1, 0), np.moveaxis(c[..., None] + (more * heights) @ of_one, -1, 0))
        exchanges[np.ix_(leading, index[:, 0])] = removals[leading, None] - gains
    additions[support], exchanges[:, support] = np.inf, np.inf
    return Moves(additions, removals, exchanges)


def _gram_of(problem: Problem, blocks: Index, unit: Array) -> Array:
    """Return the Gram matrices of blocks of one width, of columns of norm one."""
    if blocks.shape[1] == 1:
        return np.sign(unit[blocks])
    own = (problem.columns.take(blocks.ravel()).T * unit[blocks.ravel()]).reshape(*blocks.shape, -1)
    return own @ own.transpose(0, 2, 1)


def _independent_moves(problem: Problem, chosen: Index, q: Array, triangle: Array) -> Moves:
    columns, square = problem.columns, problem.square_norms
    candidate, outside, correlation, additions = _outside(problem, chosen, q)
    if chosen.size == 0:
        return Moves(additions, np.empty(0), np.empty((0, square.size)))
    inverse = lapack.dtrtri(triangle)[0]
    directions = (q @ inverse.T) / np.sqrt(np.einsum("ij,ij->i", inverse, inverse))
    heights, across = directions.T @ problem.target, columns.correlate(directions).T
    room = outside + across**2
    possible = candidate & (room > DEPENDENT**2 * square)
    gain = (correlation + heights[:, None] * across) ** 2 / np.where(possible, room, np.inf)
    removals = heights**2
    return Moves(additions, removals, np.where(possible, removals[:, None] - gain, np.inf))


class _Outside(NamedTuple):
    """What is left of the columns outside a support, and what each would add to it."""

    candidate: Mask
    square: Array  # ‖a_j − QQᵀa_j‖², zero where that is rounding error
    correlation: Array  # with what is left of y
    additions: Array  # what they do to RSS


def _outside(problem: Problem, chosen: Index, q: Array) -> _Outside:
    columns, square = problem.columns, problem.square_norms
    loads = columns.correlate(q).T
    outside = square - np.einsum("ij,ij->j", loads, loads)
    residual = problem.target - q @ (q.T @ problem.target)
    residual -= q @ (q.T @ residual)
    correlation = columns.correlate(residual)
    candidate = (square > 0) & ~np.isin(np.arange(square.size), chosen)
    close = np.flatnonzero(candidate & (outside < CANCELLED * square))
    left = columns.take(close) - q @ loads[:, close]
    outside[close] = np.einsum("ij,ij->j", left, left)
    correlation[close] = residual @ left
    free = candidate & (outside > DEPENDENT**2 * square)
    additions = np.where(free, -(correlation**2) / np.where(free, outside, 1.0), np.inf)
    return _Outside(candidate, np.where(free, outside, 0.0), correlation, additions)


def _orthonormal(columns: Array) -> tuple[Array, Array]:
    """Return Q and R of a few columns: LAPACK alone, since the checks around it take longer than the work."""
    k = columns.shape[1]
    if k == 0:
        return columns, np.empty((0, 0))
    reflections, scales, _, _ = lapack.dgeqrf(columns)
    triangle = np.triu(reflections[:k])
    q, _, _ = lapack.dorgqr(reflections, scales)
    return q, triangle


def _one_away(problem: Problem, support: Support, most: int) -> list[list[Support]]:
    """Return supports with one of the best columns added, without each term, and with each exchanged for the best.

    Of each kind those come first that leave the least RSS, at most `most`.
    """
    change = moves(problem, support)
    others = change.exchanges.argmin(axis=1) if support else np.empty(0, dtype=np.intp)
    exchanges = change.exchanges[np.arange(len(support)), others]
    room = min(ADDITIONS, most) if len(support) < problem.largest else 0

    def best(costs: Array, number: int) -> list[int]:
        order = [costs.argmin()] if number == 1 and costs.size else costs.argsort(kind="stable")[:number]
        return [int(i) for i in order if np.isfinite(costs[i])]

    return [
        [(*support, j) for j in best(change.additions, room)],
        [support[:i] + support[i + 1 :] for i in best(change.removals, most)],
        [(*support[:i], *support[i + 1 :], int(others[i])) for i in best(exchanges, most)],
    ]


def best_move(problem: Problem, start: Model) -> Model:
    """Return the best model one addition, removal or exchange away.

    The best of each kind is fitted: RSS less a gain is rounding error where next to nothing is unexplained.
    """
    options = chain.from_iterable(_one_away(problem, start.support, 1))
    return min((model(problem, option) for option in options), key=_by_criterion, default=start)


def neighbours(problem: Problem, chosen: Model) -> list[Model]:
    """Return the model without each of its terms, with each exchanged for the best other, and with the best added.

    These are the rivals of a chosen model: how much worse they are says how sure the choice is.
    """
    near = chain.from_iterable(_one_away(problem, chosen.support, max(len(chosen.support), ADDITIONS)))
    return sorted((model(problem, one) for one in near), key=_by_criterion)


def given(problem: Problem, block: Index, others: Index) -> Problem:
    """Return the regression on some columns besides others that are kept: what these explain is taken out.

    Columns in their span are zero.
    """
    q = _basis(problem, others)[1]
    columns, target = problem.columns.take(block), problem.target - q @ (q.T @ problem.target)
    columns = columns - q @ (q.T @ columns)
    square = np.einsum("ij,ij->j", columns, columns)
    columns[:, square <= DEPENDENT**2 * problem.square_norms[block]] = 0.0
    floor = max(problem.floor, ROUNDING * problem.total)
    return replace(problem.among(block), columns=DenseColumns(columns), target=target, floor=floor)


def small_models(problem: Problem, block: Index, others: Index, number: int, most: int = MOST_SUBSETS) -> list[Model]:
    """Return the best models that have few of some columns, up to five blocks, besides others that are kept.

    With what the others explain taken out, Gram matrix G (of columns of norm one) and correlations c, a subset S lowers
    RSS by c_Sᵀ G_SS⁻¹ c_S, and one column j more by (c_j − G_jS G_SS⁻¹ c_S)²/(G_jj − G_jS G_SS⁻¹ G_Sj) besides. All
    subsets of a size are tried, or, where these are more than `most`, the best of the size before with one column more.
    """
    if not len(block):
        return []
    inner = given(problem, block, others)
    grams = BlockGrams.of(inner)
    found: list[tuple[float, Support]] = []
    subsets, gain = np.empty((1, 0), dtype=np.intp), np.zeros(1)
    few, kept, names = max(number, NARROWEST, MOST_LONGER // len(block)), others.tolist(), block.tolist()
    for size in range(1, min(LARGEST_SUBSET, grams.n_blocks) + 1):
        every = comb(grams.n_blocks, size + 1) <= most
        subsets, gain = grams.one_longer(subsets, gain, most if every else few)
        if not len(subsets):  # all others are in the span of those
            break
        best, lowered = subsets[:number], gain[:number] + grams.prices[subsets[:number]].sum(axis=1)
        for own, less in zip(grams.members[best].reshape(len(best), -1).tolist(), lowered.tolist(), strict=True):
            support = tuple(sorted((*kept, *(names[j] for j in own if j >= 0))))
            found.append((criterion(problem, inner.total - less, support), support))
    return [model(problem, support) for _, support in sorted(found)[:number]]


@dataclass(frozen=True, eq=False)
class BlockGrams:
    """Gram matrix G and correlations c of columns of norm one, of blocks that their first columns name."""

    columns: Array
    correlations: Array
    gram: Array  # with rows of the columns that have been met
    met: Mask  # which these are
    wide: list[Index]  # blocks of several columns
    members: Index  # of every column those of its block; −1 in places without one, and of columns that name no block
    prices: Array  # of the block that a column names

    @classmethod
    def of(cls, problem: Problem) -> BlockGrams:
        """Return those of all columns, and of one of zeros where blocks have several, which stands in empty places."""
        norms, blocks, price = np.sqrt(problem.square_norms), problem.blocks, problem.price
        columns = problem.columns.take(np.arange(norms.size)) / np.where(norms > 0, norms, 1.0)
        wide = [own for own in blocks if own.shape[1] > 1]
        if wide:
            columns = np.column_stack([columns, np.zeros(len(columns))])
        members = np.full((columns.shape[1], blocks[-1].shape[1]), -1, dtype=np.intp)
        for own in blocks:
            members[own[:, 0], : own.shape[1]] = own
        prices = np.zeros(len(members))
        if isinstance(price, np.ndarray):
            prices = np.where(members >= 0, np.append(price, 0.0)[members], 0.0).sum(axis=1)
        gram, met = np.empty((len(members), len(members))), np.zeros(len(members), dtype=bool)
        return cls(columns, columns.T @ problem.target, gram, met, wide, members, prices)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(np.sum(self.members[:, 0] >= 0))

    def rows_of(self, columns: Index) -> Array:
        """Return G, with the rows of some columns at least."""
        new = columns[~self.met[columns]]
        self.gram[new] = self.columns[:, new].T @ self.columns
        self.gram[new, new] += DEPENDENT
        self.met[new] = True
        return self.gram

    def one_longer(self, subsets: Index, gain: Array, most: int) -> tuple[Index, Array]:
        """Return subsets with one block more, and what they lower RSS by, less their prices: the best, best first."""
        n, size = subsets.shape
        places = self.members[subsets].reshape(n, size * self.members.shape[1])
        gram = self.rows_of(np.unique(places) if size else np.concatenate([places[0], *map(np.ravel, self.wide)]))
        inside, across = gram[places[:, :, None], places[:, None, :]], gram[places]
        if self.wide:  # 1 for what is in no place
            inside = inside + (places < 0)[:, :, None] * np.eye(places.shape[1])
        explained = np.linalg.inv(inside) @ across
        left = self.correlations - np.einsum("is,isj->ij", self.correlations[places], explained)
        room = DEPENDENT + np.any(self.columns, axis=0) - np.einsum("isj,isj->ij", across, explained)
        free = room > 2 * DEPENDENT
        free[np.arange(n)[:, None], subsets] = False
        longer = np.divide(left**2, room, out=np.full(room.shape, -np.inf), where=free)
        if self.wide:
            longer[:, (self.members[:, 0] < 0) | (self.members[:, 1] >= 0)] = -np.inf
        for own in self.wide:
            rooms = gram[own[:, :, None], own[:, None]] - np.einsum(
                "isbp,isbq->ibpq", across[:, :, own], explained[:, :, own]
            )
            met = (subsets[:, :, None] == own[:, 0]).any(axis=1)
            longer[:, own[:, 0]] = np.where(met, -np.inf, _explained(rooms, left[:, own]))
        longer += gain[:, None] - self.prices
        # A subset is met once for each of its blocks that may come last.
        within = min(most * (size + 1), int(np.isfinite(longer).sum()))
        best = np.argpartition(-longer, within - 1, axis=None)[:within] if within else np.empty(0, dtype=np.intp)
        old, new = np.unravel_index(best, longer.shape)
        together = np.sort(np.column_stack([subsets[old], new]), axis=1)
        # As numbers of base len(gram): rows of digits are compared one by one, and slowly.
        once = np.unique(together @ len(gram) ** np.arange(size + 1)[::-1], return_index=True)[1]
        order = once[np.argsort(-longer[old, new][once])][:most]
        return together[order], longer[old, new][order]


def select(problem: Problem, proposals: Iterable[Support]) -> list[Model]:
    """Return all models met, best first: the proposals, their backward paths, and the best of them polished.

    To polish a model, it is moved to its best neighbour while that lowers the criterion.
    """
    pool: dict[Support, Model] = {(): model(problem, ())}
    for proposal in dict.fromkeys(proposals):
        for one in backward_path(problem, proposal):
            if len(one.support) <= problem.largest:
                pool.setdefault(one.support, one)
    starts = sorted(pool.values(), key=_by_criterion)[:POLISHED]
    moved: dict[Support, Model] = {}  # ways from several starts soon meet
    starts += [pool[()]] if len(starts[0].support) <= LONGEST_WAY else []
    for current in {one.support: one for one in starts}.values():
        while True:
            if current.support not in moved:
                moved[current.support] = best_move(problem, current)
            neighbour = moved[current.support]
            if neighbour.criterion >= current.criterion - PROGRESS * abs(current.criterion):
                break
            current = neighbour
        pool[current.support] = current
    return sorted(pool.values(), key=_by_criterion)
