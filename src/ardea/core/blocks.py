"""Which few blocks of columns explain a target, where the columns of a block come and go together.

A block b of f columns has a price of its own: chance lowers RSS by a multiple of χ² with f degrees of freedom. With the
columns of the chosen blocks taken out of all others, Gram matrix G and correlations c, a block lowers RSS by
c_bᵀ G_bb⁻¹ c_b. Models are those of `subsets`, with numbers of blocks as their support.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from scipy import linalg

from ardea.core.problem import Array, Index, Problem
from ardea.core.subsets import (
    ADDITIONS,
    DEPENDENT,
    LARGEST_SUBSET,
    MOST_SUBSETS,
    PROGRESS,
    ROUNDING,
    Model,
    Support,
    misfit,
    model,
)

# Where subsets of a size are too many, so many of the size before are taken further (a bound on work).
WIDEST = 40


@dataclass(frozen=True, eq=False)
class Blocks:
    """A problem whose columns come in blocks."""

    problem: Problem
    members: tuple[Support, ...]  # columns of every block
    prices: Array  # of every block

    @cached_property
    def _padded(self) -> Index:
        """Columns of every block in as many places as the largest has; −1 where there is none."""
        out = np.full((len(self.members), max(map(len, self.members), default=0)), -1, dtype=np.intp)
        for row, own in zip(out, self.members, strict=True):
            row[: len(own)] = own
        return out

    def columns(self, chosen: Iterable[int]) -> Index:
        """Return the columns of some blocks."""
        return np.array([j for b in chosen for j in self.members[b]], dtype=np.intp)

    def criterion(self, rss: float, chosen: Sequence[int]) -> float:
        """Return m ln(RSS/m) and the prices."""
        floor = max(self.problem.floor, ROUNDING * self.problem.total)
        return float(misfit(rss, self.problem.n_rows, floor) + self.prices[list(chosen)].sum())

    def model(self, chosen: Iterable[int]) -> Model:
        """Return some blocks with their residual sum of squares and criterion."""
        blocks = tuple(sorted(int(b) for b in chosen))
        rss = model(self.problem, self.columns(blocks)).rss
        return Model(blocks, self.criterion(rss, blocks), rss)

    @cached_property
    def _gram(self) -> tuple[Array, Array]:
        """Gram matrix and correlations of columns of unit length, a little off where these depend on each other."""
        n = self.problem.n_columns
        norms = np.sqrt(np.where(self.problem.square_norms > 0, self.problem.square_norms, 1.0))
        columns = self.problem.columns.take(np.arange(n)) / norms
        return columns.T @ columns + DEPENDENT * np.eye(n), columns.T @ self.problem.target

    def _gains(self, subsets: Index, others: Sequence[int]) -> Array:
        """Return by how much subsets of blocks, one per row, lower RSS next to others.

        With L the Cholesky factor of the others' Gram matrix, G − (L⁻¹G_o)ᵀ(L⁻¹G_o) is what they leave of G.
        """
        (gram, c), own = self._gram, self.columns(others)
        half = np.empty((0, len(c)))
        if own.size:
            factor = np.linalg.cholesky(gram[np.ix_(own, own)])
            half = linalg.solve_triangular(factor, gram[own], lower=True)
            c = c - half.T @ linalg.solve_triangular(factor, c[own], lower=True)
        index = self._padded[subsets].reshape(len(subsets), subsets.shape[1] * self._padded.shape[1])
        there = index >= 0  # places without a column explain nothing
        part, outside = np.where(there, c[index], 0.0), half.T[index]
        inside = gram[index[:, :, None], index[:, None, :]] - outside @ outside.transpose(0, 2, 1)
        inside = np.where(there[:, :, None] & there[:, None, :], inside, 0.0)
        inside += (DEPENDENT + ~there)[:, :, None] * np.eye(index.shape[1])
        return np.einsum("ij,ij->i", part, np.linalg.solve(inside, part[:, :, None])[:, :, 0])

    def neighbours(self, mine: Model, among: Sequence[int] | None = None) -> list[Model]:
        """Return the models one addition (of the best), removal or exchange away, best first; of some blocks only."""
        allowed = list(range(len(self.members))) if among is None else list(among)
        out = [b for b in allowed if b not in mine.support]
        found = [tuple(b for b in mine.support if b != one) for one in mine.support if one in allowed]
        if out:
            subsets = np.array(out, dtype=np.intp)[:, None]
            best = np.argsort(-self._gains(subsets, mine.support) + self.prices[out], kind="stable")[:ADDITIONS]
            found += [(*mine.support, out[i]) for i in best]
            for rest in found[: len(mine.support)]:
                gains = self._gains(subsets, rest) - self.prices[out]
                found.append((*rest, out[int(np.argmax(gains))]))
        return sorted((self.model(one) for one in dict.fromkeys(found)), key=lambda one: one.criterion)

    def selected(self, starts: Iterable[Support]) -> list[Model]:
        """Return all models met, best first: from every start, and from none, the best move while that is better."""
        pool: dict[Support, Model] = {}
        for start in dict.fromkeys([(), *(tuple(sorted(one)) for one in starts)]):
            current = self.model(start)
            while current.support not in pool:
                pool[current.support] = current
                near = self.neighbours(current)
                if near and near[0].criterion < current.criterion - PROGRESS * abs(current.criterion):
                    current = near[0]
        return sorted(pool.values(), key=lambda one: one.criterion)

    def small(self, inside: Sequence[int], others: Sequence[int], number: int) -> list[Model]:
        """Return the best models that have few of some blocks besides others that are kept.

        Of every size all subsets are tried, or, where these are too many, the best of the size before with one more.
        """
        block, kept = np.array(inside, dtype=np.intp), [int(b) for b in others]
        found: list[Support] = []
        subsets = np.empty((1, 0), dtype=np.intp)
        for size in range(1, min(LARGEST_SUBSET, len(block)) + 1):
            if comb(len(block), size) * self._padded.shape[1] <= MOST_SUBSETS:
                subsets = block[np.array(list(combinations(range(len(block)), size)))]
            else:
                longer = {tuple(sorted({*one, b})) for one in subsets[:WIDEST].tolist() for b in block.tolist()}
                subsets = np.array(sorted(one for one in longer if len(one) == size), dtype=np.intp)
            subsets = subsets[np.argsort(-self._gains(subsets, kept) + self.prices[subsets].sum(axis=1))]
            found += [(*kept, *one) for one in subsets[:number].tolist()]
        return sorted((self.model(one) for one in found), key=lambda one: one.criterion)[:number]
