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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from ardea.core.evidence import Tied
from ardea.core.lazy import cached_property
from ardea.core.moves import DEPENDENT
from ardea.core.problem import Array, DenseColumns, Index, Problem
from ardea.core.subsets import ROUNDING, Model, Propose, Support, given, model, neighbours, select
from ardea.dynamics.chain import eliminated
from ardea.methods.task import wide_supports

# A bound on work: subsets of tied terms among which those are looked for that have one free parameter.
MOST_SUBSETS = 20_000
# Up to so many columns those of all equations are selected together: beyond, that takes seconds (a convention).
MOST_TOGETHER = 250


@dataclass(frozen=True)
class Law:
    """One linear equation between coefficients, or the sign of one, as it was told."""

    text: str
    parts: tuple[tuple[int, float], ...]  # candidates and their factors
    value: float = 0.0
    sign: int = 0  # of the only candidate; 0 for an equation
    term: str = ""  # of which the text says it, where it says the same of several
    inside: bool = False  # whether it is about constants inside terms: it then holds where all of these are there

    @property
    def told(self) -> str:
        """The text, and of which term."""
        return f"{self.text}, of {self.term}," if self.term else self.text

    def row(self, size: int) -> Array:
        """Return the factors of all candidates."""
        row = np.zeros(size)
        for candidate, factor in self.parts:
            row[candidate] += factor
        return row


class Common(NamedTuple):
    """A candidate with one coefficient for all series, and the text that says so."""

    candidate: int
    text: str
    inside: bool = False  # whether it is a constant inside a term


@dataclass(frozen=True, eq=False)
class OfSeries:
    """Where candidates are those of several series, term j in series k with number at[k, j] of its equation."""

    base: Knowledge  # of the terms, as of one series
    at: Index  # (series, terms)
    common: tuple[Common, ...]

    @property
    def number(self) -> int:
        """Number of series."""
        return len(self.at)

    @cached_property
    def origin(self) -> tuple[Index, Index]:
        """Series and term of every candidate of an equation."""
        place = np.argsort(self.at.ravel())
        return place // self.base.d, place % self.base.d

    def placed(self, term: int, series: int) -> int:
        """Return the candidate of a term in a series."""
        row, j = divmod(term, self.base.d)
        return row * self.at.size + int(self.at[series, j])

    def spread(self, terms: Iterable[int]) -> Support:
        """Return the candidates of some terms in all series."""
        return tuple(sorted(self.placed(j, k) for j in terms for k in range(self.number)))

    def terms(self, support: Iterable[int]) -> Support:
        """Return the terms of some candidates."""
        rows, term = [divmod(j, self.at.size) for j in support], self.origin[1]
        return tuple(sorted({row * self.base.d + int(term[j]) for row, j in rows}))


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known of the n·d coefficients of all equations."""

    n: int
    d: int
    allowed: NDArray[np.bool_]  # (n·d,): whether a term is among the candidates of its equation
    laws: tuple[Law, ...] = ()
    asked: Support = ()  # terms that are kept whatever the data say
    one_of: tuple[Support, ...] = ()  # of each of these some term is kept
    of_series: OfSeries | None = None  # where terms have coefficients of their own in every series
    _tied: dict[tuple[Support, bool], Tied | None] = field(default_factory=dict)

    @classmethod
    def nothing(cls, n: int, d: int) -> Knowledge:
        """Return that nothing is known."""
        return cls(n, d, np.ones(n * d, dtype=bool))

    @property
    def empty(self) -> bool:
        """Whether all candidates are free."""
        return not self.laws and not self.asked and not self.one_of and self.of_series is None

    def over(self, at: Index, common: Sequence[Common] = ()) -> Knowledge:
        """Return the same for every one of several series, whose coefficients differ but for some that are common.

        Given is the number of term j in series k among the candidates of an equation, at[k, j].
        """
        whole = OfSeries(self, at, tuple(common))
        placed = whole.placed
        laws = [
            replace(law, parts=tuple((placed(j, k), factor) for j, factor in law.parts))
            for k in range(len(at))
            for law in self.laws
        ]
        laws += [
            Law(one.text, ((placed(one.candidate, k), 1.0), (placed(one.candidate, 0), -1.0)), inside=one.inside)
            for one in common
            for k in range(1, len(at))
        ]
        allowed = self.allowed.reshape(self.n, self.d)[:, whole.origin[1]].ravel()
        one_of = tuple(whole.spread(one) for one in self.one_of)
        return Knowledge(self.n, at.size, allowed, tuple(laws), whole.spread(self.asked), one_of, whole)

    @cached_property
    def _equations(self) -> tuple[Array, Array]:
        """C and c."""
        equations = [law for law in self.laws if not law.sign and not law.inside]
        size = self.n * self.d
        matrix = np.where(self.allowed, np.reshape([law.row(size) for law in equations], (len(equations), size)), 0.0)
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
        alone, bound = set(self.asked).difference(*self.chosen_with), self._bound
        return self.trimmed(j for j in self.candidates if int(self.owner[j]) in bound or j in alone)

    @cached_property
    def chosen_with(self) -> tuple[Support, ...]:
        """Terms of which one is to be kept: alone, where laws tie it to others and of these there is a choice."""
        tied = np.any(self._equations[0] != 0, axis=0)
        return *((j,) for j in self.asked if tied[j] and int(self.owner[j]) not in self._bound), *self.one_of

    @property
    def _bound(self) -> set[int]:
        return {int(self.owner[law.parts[0][0]]) for law in self.laws if law.value and not law.inside}

    @property
    def candidates(self) -> Support:
        """All candidates."""
        return tuple(np.flatnonzero(self.allowed).tolist())

    def check_affordable(self, form: str, most: int) -> None:
        """Refuse what a form cannot use, or what is about too many candidates."""
        if form != "trajectory":
            raise ValueError(
                "known, constraints, shared and a library for every state act in trajectory form: leave form, "
                "regressor and x_dot out."
            )
        if len(self.candidates) > most:
            raise ValueError(
                f"known, constraints, shared and a library for every state are for up to {most} candidates in all "
                f"equations together, there are {len(self.candidates)}: give smaller libraries, library={{state: …}}."
            )

    @cached_property
    def groups(self) -> Index:
        """Of every equation, the first of those whose terms are tied to its own, directly or through others."""
        between = np.abs(self._equations[0]).reshape(-1, self.n, self.d).sum(axis=2)
        return _components(between)

    def with_kept(self, candidates: Support) -> Support:
        """Return those of some candidates that are allowed, with those of the same equations that are always kept."""
        candidates = tuple(j for j in candidates if self.allowed[j])
        if not self.kept:
            return candidates
        met = {int(self.groups[j // self.d]) for j in candidates}
        return tuple(sorted({*candidates, *(j for j in self.kept if int(self.groups[j // self.d]) in met)}))

    # What laws leave of a support

    def tied(self, support: Support, inside: bool = True) -> Tied | None:
        """Return how the coefficients of a support, and constants inside its terms, are tied; None: each is free.

        Not `inside`: of the changes of constants it is only known that those of given ones are zero.
        """
        key = (support, inside)
        if key not in self._tied:
            (C, c), chosen, met = self._equations, list(support), set(support)
            rows = np.any(C[:, chosen] != 0, axis=1)
            within = [law for law in self.laws if law.inside and met.issuperset(j for j, _ in law.parts)]
            within = [one if inside else replace(one, value=0.0) for one in within if inside or len(one.parts) == 1]
            more = np.array([[dict(law.parts).get(j, 0.0) for j in support] for law in within])
            equations = np.vstack([C[np.ix_(rows, chosen)], more.reshape(len(within), len(chosen))])
            values = np.array([*c[rows], *(law.value for law in within)])
            free = not len(equations) and not self.signs[chosen].any()
            self._tied[key] = None if free else eliminated(equations, values, self.signs[chosen])
        return self._tied[key]

    def possible(self, support: Support) -> bool:
        """Whether the coefficients of a support can obey all laws."""
        (C, c), tied = self._equations, self.tied(support)
        met = np.any(C[:, list(support)] != 0, axis=1)
        if any(set(one).isdisjoint(support) for one in self.chosen_with if not self.signs[one[0]]):
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

    def choices(self, support: Support, whole: bool = False) -> tuple[float, float]:
        """Return how many choices of one parameter, and of one for every series, a support is; `whole`: kept ones, too.

        With F choices of P parameters in K series, (P − F)/(K − 1) of them are of K.
        """
        count = Knowledge.n_free if whole else Knowledge.n_chosen
        if self.of_series is None:
            return count(self, support), 0.0
        choices = count(self.of_series.base, self.of_series.terms(support))
        several = (count(self, support) - choices) / (self.of_series.number - 1)
        return choices - several, several

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
        wrong = [j for j in support if self.signs[j] and not coefficients.ravel()[j] * self.signs[j] > 0]
        return set(wrong if self.of_series is None else self.of_series.spread(self.of_series.terms(wrong)))

    # Regressions

    def posed(self, problem: Problem, unit: Array, candidates: Support, group_price: float = 0.0) -> Posed:
        """Return the regression on what is free of some candidates."""
        source = problem, unit, candidates
        if self.empty:
            return Posed(self, problem, unit, tuple((j,) for j in candidates), None, source)
        held = tuple(j for j in self.kept if j in set(candidates))
        owners = range(len(candidates)) if problem.owners is None else problem.owners
        goes_with = {j: candidates[one] for j, one in zip(candidates, owners, strict=True) if candidates[one] != j}
        moves, bases = self._ways(tuple(j for j in candidates if j not in set(held)), goes_with)
        place = {candidate: i for i, candidate in enumerate(candidates)}
        root = problem.columns.take(np.arange(len(candidates))) / unit
        parts = [root[:, [place[j] for j in move]] @ Z for move, Z in zip(moves, bases, strict=True)]
        columns = np.column_stack([np.empty((len(root), 0)), *parts])
        tied, own = self.tied(held, inside=False), root[:, [place[j] for j in held]]
        target = problem.target if tied is None else problem.target - own @ tied.offset
        q, _ = np.linalg.qr(own if tied is None else own @ tied.directions)
        left, size = columns - q @ (q.T @ columns), np.linalg.norm(columns, axis=0)
        norms = np.linalg.norm(left, axis=0)
        dependent = norms <= DEPENDENT * size
        scale = 1 / np.where(dependent, 1.0, norms)
        left[:, dependent] = 0.0
        floor = max(problem.floor, ROUNDING * problem.total)
        target = target - q @ (q.T @ target)
        inner = replace(problem, columns=DenseColumns(left * scale), target=target, floor=floor, owners=None)
        widths = np.array([Z.shape[1] for Z in bases], dtype=np.intp)
        if np.any(widths > 1):
            owners = np.repeat(np.cumsum(widths) - widths, widths)
            price = np.concatenate(
                [np.full(f, group_price / f if group_price and f > 1 else problem.price) for f in widths]
            )
            inner = replace(inner, owners=owners, price=price)
        each = tuple(move for move, width in zip(moves, widths, strict=True) for _ in range(width))
        return Posed(self, inner, scale, each, [way for Z in bases for way in Z.T], source)

    def _ways(self, candidates: Support, goes_with: Mapping[int, int]) -> tuple[list[Support], list[Array]]:
        """Return sets of candidates that are chosen together, and the directions that are then free."""
        if self.of_series is None:
            found = self.moves(tuple(j for j in candidates if j not in goes_with))
            more = [tuple(j for j, owner in goes_with.items() if owner in move) for move, _ in found]
            bases = [block_diag(way[:, None], np.eye(len(own))) for (_, way), own in zip(found, more, strict=True)]
            return [(*move, *own) for (move, _), own in zip(found, more, strict=True)], bases
        of = self.of_series
        moves = [of.spread(move) for move, _ in of.base.moves(of.terms(j for j in candidates if j not in goes_with))]
        moves = [tuple(sorted({*one, *(j for j, owner in goes_with.items() if owner in one)})) for one in moves]
        tied = [self.tied(move, inside=False) for move in moves]
        bases = [np.eye(len(move)) if one is None else one.directions for move, one in zip(moves, tied, strict=True)]
        return moves, bases

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
            every = eliminated(rows, np.zeros(len(rows)), np.zeros(len(tied))).directions.T
            return [(tuple(np.array(tied)[e != 0].tolist()), e[e != 0]) for e in every]
        for size in range(2, rank + 2):
            for subset in combinations(range(len(tied)), size):
                basis = eliminated(rows[:, subset], np.zeros(len(rows)), np.zeros(size)).directions
                if basis.shape[1] == 1 and np.all(basis):
                    out.append((tuple(tied[i] for i in subset), basis[:, 0]))
        return out

    # Doubts

    def without(self, text: str) -> Knowledge:
        """Return all but what one text tells."""
        if (of := self.of_series) is not None:
            return of.base.without(text).over(of.at, [one for one in of.common if one.text != text])
        laws = tuple(law for law in self.laws if law.text != text)
        return Knowledge(self.n, self.d, self.allowed, laws, self.asked, self.one_of)


@dataclass(frozen=True, eq=False)
class Posed:
    """A regression on moves: sets of candidates that have a free parameter, a column, or in series a block of them."""

    knowledge: Knowledge
    problem: Problem
    unit: Array  # what one unit of each of its coefficients is worth
    moves: tuple[Support, ...]  # of every column
    ways: list[Array] | None  # of every column how it changes the candidates of its move; None: each is one
    source: tuple[Problem, Array, Support]  # the regression on the candidates themselves, its units, and these

    @property
    def groups(self) -> Index:
        """Of every column, the equations that it belongs to, as the first of those that are tied."""
        first = np.array([move[0] for move in self.moves], dtype=np.intp) // self.knowledge.d
        return np.asarray(self.knowledge.groups[first])

    def restrict(self, columns: Index) -> Posed:
        """Return the regression on some of the moves, whole blocks of them."""
        ways = None if self.ways is None else [self.ways[j] for j in columns]
        moves = tuple(self.moves[j] for j in columns)
        return replace(self, problem=self.problem.restrict(columns), unit=self.unit[columns], moves=moves, ways=ways)

    def selected(self, propose: Propose, starts: Sequence[Support], wide: bool) -> list[Model]:
        """Return models from what is proposed, and from starts, best first; `wide`: terms that act only together.

        Where columns are many, those of every equation are selected next to the first start's terms in the others.
        """
        if self.problem.n_columns <= MOST_TOGETHER or np.all((groups := self.groups) == groups[0]):
            return self._selected(self.problem, self.unit, propose, starts, wide)
        own = np.array(starts[0] if starts else (), dtype=np.intp)
        best, found = list[int](), list[Model]()
        for group in np.unique(groups):
            inside, others = np.flatnonzero(groups == group), own[groups[own] != group]
            part, mine = given(self.problem, inside, others), np.flatnonzero(np.isin(inside, own)).tolist()
            part = part.restrict(np.arange(inside.size))
            chosen = self._selected(part, self.unit[inside], propose, [tuple(mine)], wide)[0]
            best += inside[list(chosen.support)].tolist()
            found.append(model(self.problem, (*others.tolist(), *inside[list(chosen.support)].tolist())))
        return sorted([*found, model(self.problem, best)], key=lambda one: one.criterion)

    def _selected(
        self, problem: Problem, unit: Array, propose: Propose, starts: Sequence[Support], wide: bool
    ) -> list[Model]:
        hidden = wide_supports(problem) if wide else []
        return select(problem, [*propose(problem, unit), *starts, *hidden])

    def neighbours_within(self, inside: Index, others: Index, own: Index) -> list[tuple[Support, float]]:
        """Return neighbours of a model in some of its moves next to the others, and how much worse they are."""
        part = given(self.problem, inside, others)
        mine = model(part, np.flatnonzero(np.isin(inside, own)))
        return [
            ((*others.tolist(), *inside[list(one.support)].tolist()), one.criterion - mine.criterion)
            for one in neighbours(part, mine)
        ]

    def support(self, moves: Iterable[int]) -> Support:
        """Return the candidates of some moves, and those that are always kept."""
        found = (set(self.knowledge.kept) & set(self.source[2])).union(*(self.moves[j] for j in moves))
        for wanted in self.knowledge.chosen_with:
            ways = [number for number, move in enumerate(self.moves) if not set(wanted).isdisjoint(move)]
            if ways and found.isdisjoint(wanted):  # with what explains most
                found.update(self.moves[min(ways, key=lambda one: model(self.problem, [one]).rss)])
        return tuple(sorted(found))

    def own(self, support: Support) -> Support:
        """Return moves that have the same candidates as a support, each with a free parameter of its own."""
        if self.ways is None:
            place = {move[0]: number for number, move in enumerate(self.moves)}
            return tuple(place[candidate] for candidate in support)
        inside, found = set(support), list[int]()
        basis = np.empty((0, self.knowledge.n * self.knowledge.d))
        owners = range(len(self.moves)) if self.problem.owners is None else self.problem.owners
        for number, (move, way, owner) in enumerate(zip(self.moves, self.ways, owners, strict=True)):
            if owner == number and inside.issuperset(move):
                row = np.zeros((1, basis.shape[1]))
                row[0, list(move)] = way
                if np.linalg.matrix_rank(more := np.vstack([basis, row])) > len(basis):
                    basis, found = more, [*found, number]
        return self.problem.together(found)

    def coefficients(self, support: Support) -> Array:
        """Return the least-squares coefficients of a support as (n, d)."""
        problem, unit, candidates = self.source
        values = np.zeros(self.knowledge.n * self.knowledge.d)
        if support:
            place = {candidate: i for i, candidate in enumerate(candidates)}
            chosen, tied = np.array([place[j] for j in support]), self.knowledge.tied(support, inside=False)
            if tied is None:
                values[list(support)] = problem.least_squares(chosen)[0] * unit[chosen]
            else:
                root = problem.columns.take(chosen) / unit[chosen]
                scaled = root @ tied.directions
                size = np.maximum(np.linalg.norm(scaled, axis=0), np.finfo(float).tiny)
                free = np.linalg.lstsq(scaled / size, problem.target - root @ tied.offset, rcond=None)[0] / size
                values[list(support)] = tied.offset + tied.directions @ free
        return values.reshape(self.knowledge.n, self.knowledge.d)

    def of(self, chosen: Model) -> tuple[Support, Array]:
        """Return the candidates of a model and their coefficients."""
        support = self.support(chosen.support)
        return support, self.coefficients(support)


def _components(matrix: Array) -> Index:
    """Return of every column the first that rows of a matrix tie it to."""
    owner = np.arange(matrix.shape[1])
    for row in matrix:
        together = owner[row != 0]
        if together.size:
            owner[np.isin(owner, together)] = together.min()
    return owner
