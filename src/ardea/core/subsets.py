"""Which few columns of a problem explain its target: the criteria, and the moves between supports.

With m rows, d columns and k terms of residual sum of squares RSS (least squares on the support), a support is judged by
m ln(RSS/m) plus a penalty (`penalty`); the search over supports takes the one called "ebic2" and k ≤ m/4. What a
move by one term does to RSS is in `core.moves`. Loops over single columns are compiled (``_subsets.pyx``): without a
compiler, for columns that are not in memory, and where ``ARDEA_LOOP=numpy`` is in the environment, their NumPy twins
run instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import comb
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

from ardea.core.lazy import compiled_module, numpy_is_asked_for
from ardea.core.moves import (
    CANCELLED,
    DEPENDENT,
    Moves,
    block_moves,
    blocks_leave,
    explained,
    independent_moves,
    rss_by_reflections,
)
from ardea.core.problem import TINY, Array, DenseColumns, Index, Problem, blocks_of, misfit, penalty

compiled = compiled_module("core._subsets")

Support = tuple[int, ...]
Mask = NDArray[np.bool_]
# From a problem, and what one unit of each of its coefficients is worth, to supports worth a look.
Propose = Callable[[Problem, Array], list[Support]]

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


# Loops


def loops(problem: Problem | None = None) -> Any:
    """Return the compiled loops, if they can take a problem."""
    if compiled is None or numpy_is_asked_for():
        return None
    dense = problem is None or (isinstance(problem.columns, DenseColumns) and min(problem.columns.shape) > 0)
    return compiled if dense else None  # BLAS prints a complaint about matrices without any rows


def _arrays(problem: Problem, support: Sequence[int] | Index) -> tuple[Array, Array, Array, Index]:
    """Return what compiled loops ask for: columns, target, squared norms, and a support."""
    target, square = np.ascontiguousarray(problem.target), problem.square_norms
    return problem.columns.matrix, target, square, np.asarray(support, dtype=np.intp)  # type: ignore[attr-defined]


def rss_of(problem: Problem, support: Sequence[int]) -> float:
    """Return the residual sum of squares of least squares on a support."""
    if not support:
        return problem.total
    if fast := loops(problem):
        return float(fast.rss(*_arrays(problem, support), DEPENDENT)) + problem.rest
    return rss_by_reflections(problem, np.array(support, dtype=np.intp)) + problem.rest


def moves(problem: Problem, support: Sequence[int] | Index) -> Moves:
    """Return what every addition, removal and exchange does to RSS; those of a block are at the place of its owner."""
    chosen = np.asarray(support, dtype=np.intp)
    if problem.owners is not None:
        return block_moves(problem, chosen, problem.owners, basis(problem, chosen))
    found = (fast := loops(problem)) and fast.moves(*_arrays(problem, chosen), DEPENDENT, CANCELLED)
    if found:
        return Moves(*found)
    kept, q, triangle = basis(problem, chosen)
    inner, needed = independent_moves(problem, kept, q, triangle), np.isin(chosen, kept)
    if np.all(needed):
        return inner
    # A term in the span of others goes for nothing, and its exchange is an addition.
    removals, exchanges = np.zeros(chosen.size), np.tile(inner.additions, (chosen.size, 1))
    removals[needed], exchanges[needed] = inner.removals, inner.exchanges
    exchanges[:, chosen] = np.inf
    return Moves(inner.additions, removals, exchanges)


def leaving(problem: Problem, support: Sequence[int]) -> tuple[Index, float, Iterator[tuple[Index, float]]]:
    """Return the independent ones of some columns, RSS, and which go next until one is left, with what that adds.

    Row j of R⁻¹: its product with Qᵀy is coefficient j, its square norm the variance. A term that goes takes its
    direction out of all rows.
    """
    chosen, q, triangle = basis(problem, support)
    if not chosen.size:
        return chosen, problem.total, iter(())
    rows = np.ascontiguousarray(lapack.dtrtri(triangle)[0])
    loads = q.T @ problem.target
    residual = problem.target - q @ loads
    going: Iterator[tuple[Index, float]]
    if problem.owners is None and (fast := loops()):
        order, added = fast.leaving(rows, loads)
        going = zip(order[:, None], added.tolist(), strict=True)
    else:
        owners = np.arange(len(rows)) if problem.owners is None else problem.owners[chosen]
        going = blocks_leave(rows, loads, blocks_of(owners))
    return chosen, float(residual @ residual) + problem.rest, ((chosen[gone], cost) for gone, cost in going)


def basis(problem: Problem, support: Sequence[int] | Index) -> tuple[Index, Array, Array]:
    """Return a support without the columns in the span of others, and Q and R of what is left."""
    chosen = np.asarray(support, dtype=np.intp)
    if chosen.size <= problem.columns.shape[0]:
        q, triangle = _orthonormal(problem.columns.take(chosen))
        if np.all(triangle.diagonal() ** 2 > DEPENDENT**2 * problem.square_norms[chosen]):
            return chosen, q, triangle
    vectors = problem.columns.take(chosen)
    _, triangle, order = linalg.qr(vectors, mode="economic", pivoting=True, check_finite=False)
    pivots = np.abs(triangle.diagonal())
    kept = np.sort(order[: int((pivots > DEPENDENT * max(pivots[0], TINY)).sum())])
    return chosen[kept], *_orthonormal(vectors[:, kept])


def _orthonormal(columns: Array) -> tuple[Array, Array]:
    """Return Q and R of a few columns: LAPACK alone, since the checks around it take longer than the work."""
    k = columns.shape[1]
    if k == 0:
        return columns, np.empty((0, 0))
    reflections, scales, _, _ = lapack.dgeqrf(columns)
    triangle = np.triu(reflections[:k])
    q, _, _ = lapack.dorgqr(reflections, scales)
    return q, triangle


# Models


@dataclass(frozen=True)
class Model:
    """A support with the residual sum of squares of least squares on it, and its criterion."""

    support: Support
    criterion: float
    rss: float


def criterion(problem: Problem, rss: float, support: Support) -> float:
    """Return the criterion of a support with this residual sum of squares."""
    price, k = problem.price, len(support)
    if price is None:
        cost = penalty("ebic2", problem.n_rows, problem.n_columns, k)
    else:
        cost = price[list(support)].sum() if isinstance(price, np.ndarray) else price * k
    return float(misfit(rss, problem.n_rows, max(problem.floor, ROUNDING * problem.total)) + cost)


def model(problem: Problem, support: Iterable[int]) -> Model:
    """Return a support with its residual sum of squares and criterion."""
    chosen = problem.together(support)
    rss = rss_of(problem, chosen)
    return Model(chosen, criterion(problem, rss, chosen), rss)


def backward_path(problem: Problem, support: Iterable[int]) -> list[Model]:
    """Return the nested models from a support to a single term; the cheapest term goes first.

    Of columns that depend on each other only as many are kept at the start as are independent.
    """
    chosen, rss, going = leaving(problem, problem.together(support))
    if not chosen.size:
        return []
    left = chosen.tolist()
    path = [(tuple(left), rss)]
    for gone, cost in going:
        rss += cost
        for j in gone.tolist():
            left.remove(j)
        path.append((tuple(left) if problem.owners is None else problem.together(left), rss))
    return [Model(one, criterion(problem, rss, one), rss) for one, rss in path]


def forward_path(problem: Problem, length: int) -> Support:
    """Return the terms that are added one after the other, each the best addition, whatever the criterion says."""
    support: Support = ()
    while len(support) < min(length, problem.largest):
        changes = moves(problem, support).additions
        j = int(np.argmin(changes))
        if not np.isfinite(changes[j]):
            break
        support = problem.together((*support, j))
    return support


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
    q = basis(problem, others)[1]
    columns, target = problem.columns.take(block), problem.target - q @ (q.T @ problem.target)
    columns = columns - q @ (q.T @ columns)
    square = np.einsum("ij,ij->j", columns, columns)
    columns[:, square <= DEPENDENT**2 * problem.square_norms[block]] = 0.0
    floor = max(problem.floor, ROUNDING * problem.total)
    return replace(problem.among(block), columns=DenseColumns(columns), target=target, floor=floor)


def small_models(problem: Problem, block: Index, others: Index, number: int, most: int = MOST_SUBSETS) -> list[Model]:
    """Return the best models that have few of some columns besides others that are kept, of all sizes together."""
    return [model(problem, support) for _, support in small_supports(problem, block, others, number, most)[:number]]


def small_supports(
    problem: Problem, block: Index, others: Index, number: int, most: int = MOST_SUBSETS
) -> list[tuple[float, Support]]:
    """Return the best supports of every size that have few of some columns, up to five blocks, besides others.

    Each comes with its criterion, best first, and none has more terms than a search considers. With what the others
    explain taken out, Gram matrix G (of columns of norm one) and correlations c, a subset S lowers RSS by
    c_Sᵀ G_SS⁻¹ c_S. All subsets of a size are tried, or, where these are more than `most`, the best of the size before
    with one column more.
    """
    if not len(block):
        return []
    inner = given(problem, block, others)
    grams = BlockGrams.of(inner)
    found: list[tuple[float, Support]] = []
    subsets, gain = np.empty((1, 0), dtype=np.intp), np.zeros(1)
    few, kept, names = max(number, NARROWEST, MOST_LONGER // len(block)), others.tolist(), block.tolist()
    for size in range(1, min(LARGEST_SUBSET, grams.n_blocks, problem.largest - len(kept)) + 1):
        every = comb(grams.n_blocks, size + 1) <= most
        subsets, gain = grams.one_longer(subsets, gain, most if every else few)
        if not len(subsets):  # all others are in the span of those
            break
        best, lowered = subsets[:number], gain[:number] + grams.prices[subsets[:number]].sum(axis=1)
        for own, less in zip(grams.members[best].reshape(len(best), -1).tolist(), lowered.tolist(), strict=True):
            support = tuple(sorted((*kept, *(names[j] for j in own if j >= 0))))
            if len(support) <= problem.largest:
                found.append((criterion(problem, inner.total - less, support), support))
    return sorted(found)


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

    def _longer(self, subsets: Index) -> Array:
        """Return what one block more lowers RSS by, of every subset; −inf where there is none or nothing left of it.

        Column j next to a subset S: (c_j − G_jS G_SS⁻¹ c_S)²/(G_jj − G_jS G_SS⁻¹ G_Sj), and blocks alike.
        """
        n, size = subsets.shape
        places = self.members[subsets].reshape(n, size * self.members.shape[1])
        gram = self.rows_of(np.unique(places) if size else np.concatenate([places[0], *map(np.ravel, self.wide)]))
        norms = DEPENDENT + np.any(self.columns, axis=0)
        if not self.wide and (fast := loops()):
            return np.asarray(fast.longer(gram, self.correlations, norms, np.ascontiguousarray(subsets), 2 * DEPENDENT))
        inside, across = gram[places[:, :, None], places[:, None, :]], gram[places]
        if self.wide:  # 1 for what is in no place
            inside = inside + (places < 0)[:, :, None] * np.eye(places.shape[1])
        taken = np.linalg.inv(inside) @ across
        left = self.correlations - np.einsum("is,isj->ij", self.correlations[places], taken)
        room = norms - np.einsum("isj,isj->ij", across, taken)
        free = room > 2 * DEPENDENT
        free[np.arange(n)[:, None], subsets] = False
        longer = np.divide(left**2, room, out=np.full(room.shape, -np.inf), where=free)
        if self.wide:
            longer[:, (self.members[:, 0] < 0) | (self.members[:, 1] >= 0)] = -np.inf
        for own in self.wide:
            among = gram[own[:, :, None], own[:, None]]
            rooms = among - np.einsum("isbp,isbq->ibpq", across[:, :, own], taken[:, :, own])
            met = (subsets[:, :, None] == own[:, 0]).any(axis=1)
            longer[:, own[:, 0]] = np.where(met, -np.inf, explained(rooms, left[:, own]))
        return longer

    def one_longer(self, subsets: Index, gain: Array, most: int) -> tuple[Index, Array]:
        """Return subsets with one block more, and what they lower RSS by, less their prices: the best, best first."""
        size, longer = subsets.shape[1], self._longer(subsets)
        longer += gain[:, None] - self.prices
        # A subset is met once for each of its blocks that may come last.
        within = min(most * (size + 1), int(np.isfinite(longer).sum()))
        best = np.argpartition(-longer, within - 1, axis=None)[:within] if within else np.empty(0, dtype=np.intp)
        old, new = np.unravel_index(best, longer.shape)
        together = np.sort(np.column_stack([subsets[old], new]), axis=1)
        # As numbers of base d: rows of digits are compared one by one, and slowly.
        once = np.unique(together @ len(self.gram) ** np.arange(size + 1)[::-1], return_index=True)[1]
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
