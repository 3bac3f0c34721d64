"""What is known of the coefficients beforehand, and what it leaves free.

Candidates are numbered l·d + j, term j of equation l. Equalities between coefficients, Cw = c, tie those of a support:

    w = w₀ + Zv,

with w₀ and Z from the rows of C among the support, brought to the form in which every row has a coefficient of its own.
Fit, information, covariance and draws live in the free parameters v, so that equalities hold to rounding.

A search cannot add one term that is tied to others: it adds the smallest sets that have a free parameter between them
(the elementary vectors of the null space of C), for "x: x y + y: x y = 0" both terms at once. Terms of a known value,
terms that are always kept, and those tied to them, are no choice: what they explain is taken out of the regression.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from ardea.core.evidence import Tied
from ardea.core.problem import Array, DenseColumns, Index, Problem
from ardea.core.subsets import DEPENDENT, ROUNDING, Model, Support

# A share of a row of C: what elimination leaves of it below is rounding error.
NOTHING = 1e-9
# A bound on work: subsets of tied terms among which those are looked for that have one free parameter.
MOST_SUBSETS = 20_000


@dataclass(frozen=True)
class Law:
    """One linear equation between coefficients, or the sign of one, as it was told."""

    text: str
    parts: tuple[tuple[int, float], ...]  # candidates and their factors
    value: float = 0.0
    sign: int = 0  # of the only candidate; 0 for an equation
    term: str = ""  # of which the text says it, where it says the same of several

    @property
    def told(self) -> str:
        """The text, and of which term."""
        return f"{self.text}, of {self.term}," if self.term else self.text


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known of the n·d coefficients of all equations."""

    n: int
    d: int
    allowed: NDArray[np.bool_]  # (n·d,): whether a term is among the candidates of its equation
    laws: tuple[Law, ...] = ()
    asked: Support = ()  # terms that are kept whatever the data say
    _tied: dict[Support, Tied | None] = field(default_factory=dict)

    @classmethod
    def nothing(cls, n: int, d: int) -> Knowledge:
        """Return that nothing is known."""
        return cls(n, d, np.ones(n * d, dtype=bool))

    @property
    def empty(self) -> bool:
        """Whether all candidates are free."""
        return not self.laws and not self.asked

    @cached_property
    def _equations(self) -> tuple[Array, Array]:
        """C and c."""
        equations = [law for law in self.laws if not law.sign]
        matrix = np.zeros((len(equations), self.n * self.d))
        for row, law in zip(matrix, equations, strict=True):
            for candidate, factor in law.parts:
                row[candidate] += factor
        matrix[:, ~self.allowed] = 0.0
        return matrix, np.array([law.value for law in equations])

    @cached_property
    def signs(self) -> Array:
        """1 or −1 for every candidate whose sign is known, else 0."""
        signs = np.zeros(self.n * self.d)
        for law in self.laws:
            if law.sign:
                signs[law.parts[0][0]] = law.sign
        return signs

    @cached_property
    def owner(self) -> Index:
        """Of every candidate, the first that it is tied to."""
        return _components(self._equations[0])

    @cached_property
    def kept(self) -> Support:
        """Terms that are no choice: tied to a number, or kept whatever the data say and not tied to a choice."""
        bound = {int(self.owner[law.parts[0][0]]) for law in self.laws if law.value}
        alone = set(self.asked) - set(self.chosen_with)
        return self.trimmed(j for j in self.candidates if int(self.owner[j]) in bound or j in alone)

    @cached_property
    def chosen_with(self) -> Support:
        """Terms to be kept that laws tie to others, of which there is a choice."""
        bound = {int(self.owner[law.parts[0][0]]) for law in self.laws if law.value}
        tied = np.any(self._equations[0] != 0, axis=0)
        return tuple(j for j in self.asked if tied[j] and int(self.owner[j]) not in bound)

    @property
    def candidates(self) -> Support:
        """All candidates."""
        return tuple(np.flatnonzero(self.allowed).tolist())

    @cached_property
    def groups(self) -> Index:
        """Of every equation, the first of those whose terms are tied to its own, directly or through others."""
        between = np.abs(self._equations[0]).reshape(-1, self.n, self.d).sum(axis=2)
        return _components(between)

    def with_kept(self, candidates: Support) -> Support:
        """Return some candidates with those of the same equations that are always kept."""
        if not self.kept:
            return candidates
        met = {int(self.groups[j // self.d]) for j in candidates}
        return tuple(sorted({*candidates, *(j for j in self.kept if int(self.groups[j // self.d]) in met)}))

    # What laws leave of a support

    def tied(self, support: Support) -> Tied | None:
        """Return how the coefficients of a support are tied; None where each is free."""
        if support not in self._tied:
            (C, c), chosen = self._equations, list(support)
            rows = np.any(C[:, chosen] != 0, axis=1)
            free = not rows.any() and not self.signs[chosen].any()
            self._tied[support] = None if free else _solved(C[np.ix_(rows, chosen)], c[rows], self.signs[chosen])
        return self._tied[support]

    def possible(self, support: Support) -> bool:
        """Whether the coefficients of a support can obey all laws."""
        (C, c), tied = self._equations, self.tied(support)
        met = np.any(C[:, list(support)] != 0, axis=1)
        if not {j for j in self.chosen_with if not self.signs[j]} <= set(support):
            return False
        return not np.any(c[~met]) and (tied is None or bool(np.all(np.isfinite(tied.offset))))

    def n_free(self, support: Support) -> int:
        """Return the number of free parameters of a support."""
        tied = self.tied(support)
        return len(support) if tied is None else tied.directions.shape[1]

    def n_chosen(self, support: Support) -> int:
        """Return the number of free parameters that were chosen, and so have a price."""
        held = set(self.kept)
        return self.n_free(support) - (self.n_free(tuple(j for j in support if j in held)) if held else 0)

    def trimmed(self, support: Iterable[int]) -> Support:
        """Return a support without terms that laws force to zero next to the others."""
        chosen = tuple(sorted(support))
        tied = self.tied(chosen)
        if tied is None:
            return chosen
        alive = np.any(tied.directions != 0, axis=1) | (tied.offset != 0)
        return tuple(candidate for candidate, one in zip(chosen, alive, strict=True) if one)

    def obeying(self, coefficients: Array, support: Support) -> Array:
        """Return (n, d) coefficients with those of a support that are not free set as the laws ask."""
        tied = self.tied(support)
        if tied is None:
            return coefficients
        out, chosen = coefficients.ravel().copy(), np.array(support, dtype=np.intp)
        out[chosen] = tied.offset + tied.directions @ out[chosen[tied.free]]
        return out.reshape(coefficients.shape)

    def wrong_signs(self, coefficients: Array, support: Support) -> set[int]:
        """Return the terms of a support whose coefficients have another sign than is known, or none."""
        return {j for j in support if self.signs[j] and not coefficients.ravel()[j] * self.signs[j] > 0}

    # Regressions

    def posed(self, problem: Problem, unit: Array, candidates: Support) -> Posed:
        """Return the regression on what is free of some candidates."""
        if self.empty:
            return Posed(self, problem, unit, tuple((j,) for j in candidates), None, (problem, unit, candidates))
        held = tuple(j for j in self.kept if j in set(candidates))
        moves = self.moves(tuple(j for j in candidates if j not in set(held)))
        place = {candidate: i for i, candidate in enumerate(candidates)}
        root = problem.columns.take(np.arange(len(candidates))) / unit
        columns = np.column_stack([np.empty((len(root), 0)), *(root[:, [place[j] for j in s]] @ e for s, e in moves)])
        tied, own = self.tied(held), root[:, [place[j] for j in held]]
        target = problem.target if tied is None else problem.target - own @ tied.offset
        q, _ = np.linalg.qr(own if tied is None else own @ tied.directions)
        left, size = columns - q @ (q.T @ columns), np.linalg.norm(columns, axis=0)
        norms = np.linalg.norm(left, axis=0)
        dependent = norms <= DEPENDENT * size
        scale = 1 / np.where(dependent, 1.0, norms)
        left[:, dependent] = 0.0
        floor = max(problem.floor, ROUNDING * problem.total)
        inner = replace(problem, columns=DenseColumns(left * scale), target=target - q @ (q.T @ target), floor=floor)
        sets = tuple(move for move, _ in moves)
        return Posed(self, inner, scale, sets, [way for _, way in moves], (problem, unit, candidates))

    def moves(self, candidates: Support) -> list[tuple[Support, Array]]:
        """Return the smallest sets of candidates that have a free parameter, and how it moves them."""
        owner, tied = self.owner[list(candidates)], np.any(self._equations[0] != 0, axis=0)
        out: list[tuple[Support, Array]] = []
        for first in np.unique(owner):
            own = tuple(np.array(candidates)[owner == first].tolist())
            out += self._elementary(own) if tied[own[0]] else [(own, np.ones(1))]
        return out

    def _elementary(self, tied: Support) -> list[tuple[Support, Array]]:
        rows = self._equations[0][:, list(tied)]
        rows = rows[np.any(rows != 0, axis=1)]
        rank = int(np.linalg.matrix_rank(rows))
        out: list[tuple[Support, Array]] = []
        if sum(comb(len(tied), size) for size in range(1, rank + 2)) > MOST_SUBSETS:
            every = _solved(rows, np.zeros(len(rows)), np.zeros(len(tied))).directions.T
            return [(tuple(np.array(tied)[e != 0].tolist()), e[e != 0]) for e in every]
        for size in range(2, rank + 2):
            for subset in combinations(range(len(tied)), size):
                basis = _solved(rows[:, subset], np.zeros(len(rows)), np.zeros(size)).directions
                if basis.shape[1] == 1 and np.all(basis):
                    out.append((tuple(tied[i] for i in subset), basis[:, 0]))
        return out

    # Doubts

    def without(self, text: str) -> Knowledge:
        """Return all but what one text tells."""
        return Knowledge(self.n, self.d, self.allowed, tuple(law for law in self.laws if law.text != text), self.asked)


@dataclass(frozen=True, eq=False)
class Posed:
    """A regression whose columns are moves: sets of candidates that have one free parameter."""

    knowledge: Knowledge
    problem: Problem
    unit: Array  # what one unit of each of its coefficients is worth
    moves: tuple[Support, ...]
    ways: list[Array] | None  # of every move how it changes its candidates; None: each is one candidate
    source: tuple[Problem, Array, Support]  # the regression on the candidates themselves, its units, and these

    @property
    def groups(self) -> Index:
        """Of every column, the equations that it belongs to, as the first of those that are tied."""
        first = np.array([move[0] for move in self.moves], dtype=np.intp) // self.knowledge.d
        return np.asarray(self.knowledge.groups[first])

    def support(self, columns: Iterable[int]) -> Support:
        """Return the candidates of some columns, and those that are always kept."""
        found = (set(self.knowledge.kept) & set(self.source[2])).union(*(self.moves[j] for j in columns))
        for candidate in self.knowledge.chosen_with:
            ways = [column for column, move in enumerate(self.moves) if candidate in move]
            if ways and candidate not in found:  # with what explains most
                found.update(self.moves[max(ways, key=lambda one: abs(self.problem.correlations[one]))])
        return tuple(sorted(found))

    def columns(self, support: Support) -> Support:
        """Return columns that have the same candidates as a support, each with a free parameter of its own."""
        if self.ways is None:
            place = {move[0]: column for column, move in enumerate(self.moves)}
            return tuple(place[candidate] for candidate in support)
        inside, found = set(support), list[int]()
        basis = np.empty((0, self.knowledge.n * self.knowledge.d))
        for column, (move, way) in enumerate(zip(self.moves, self.ways, strict=True)):
            if inside.issuperset(move):
                row = np.zeros((1, basis.shape[1]))
                row[0, list(move)] = way
                if np.linalg.matrix_rank(more := np.vstack([basis, row])) > len(basis):
                    basis, found = more, [*found, column]
        return tuple(found)

    def coefficients(self, support: Support) -> Array:
        """Return the least-squares coefficients of a support as (n, d)."""
        problem, unit, candidates = self.source
        values = np.zeros(self.knowledge.n * self.knowledge.d)
        if support:
            place = {candidate: i for i, candidate in enumerate(candidates)}
            chosen, tied = np.array([place[j] for j in support]), self.knowledge.tied(support)
            if tied is None:
                values[list(support)] = problem.least_squares(chosen)[0] * unit[chosen]
            else:
                root = problem.columns.take(chosen) / unit[chosen]
                scaled = root @ tied.directions
                size = np.maximum(np.linalg.norm(scaled, axis=0), np.finfo(float).tiny)
                free = np.linalg.lstsq(scaled / size, problem.target - root @ tied.offset, rcond=None)[0] / size
                values[list(support)] = tied.offset + tied.directions @ free
        return values.reshape(self.knowledge.n, self.knowledge.d)

    def of(self, model: Model) -> tuple[Support, Array]:
        """Return the candidates of a model and their coefficients."""
        support = self.support(model.support)
        return support, self.coefficients(support)


def _components(matrix: Array) -> Index:
    """Return of every column the first that rows of a matrix tie it to."""
    owner = np.arange(matrix.shape[1])
    for row in matrix:
        together = owner[row != 0]
        if together.size:
            owner[np.isin(owner, together)] = together.min()
    return owner


def _solved(rows: Array, values: Array, signs: Array) -> Tied:
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
