"""All models of few terms of an equation, where terms have constants inside.

On a grid, a term whose constant lies between two values looks worse than sums of wrong terms, so that searches that go
from a model to its neighbours stop early. In a regression on candidates, a column is linear in its term, and the term a
smooth function of its constants: columns between those of the grid are cubic splines through these. So every set of a
few terms is judged, each with the constants that suit it best, found one term after the other on that finer grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from ardea.core.moves import DEPENDENT
from ardea.core.problem import TINY, Array, Index, Problem, misfit
from ardea.core.subsets import ROUNDING, Support, given, model
from ardea.dynamics.knowledge import Posed
from ardea.dynamics.libraries import Inside

# Values between two of a grid, of all constants of a term together at most so many (conventions: neighbours then have
# correlations above 0.999).
FINER, MOST_VALUES = (4, 2, 1), 100
# Terms of a set, of all of which are tried (a convention: a third term is added to the best pairs, so many sets).
MOST_TERMS, MOST_SETS = 3, 3000
# How often the constants of a set are improved in turn, and how many products are formed at once (bounds on work).
SWEEPS, AT_ONCE = 2, 200_000
# Sets that look worse than a model by more than this are not fitted, and of an equation at most so many (conventions).
WORTH_A_FIT, MOST_FITTED = 6.0, 4


# Criterion, terms and columns of a set.
Judged = tuple[float, tuple[int, ...], tuple[int, ...]]


class Move(NamedTuple):
    """Candidates that come together."""

    candidates: Support
    ways: Array  # how each column of their block changes them, (columns, candidates)

    @classmethod
    def of(cls, posed: Posed, block: Index) -> Move:
        """Return that of a block of columns."""
        candidates = tuple(sorted({j for column in block.tolist() for j in posed.moves[column]}))
        ways = np.zeros((len(block), len(candidates)))
        for row, column in zip(ways, block.tolist(), strict=True):
            own = np.searchsorted(candidates, posed.moves[column])
            row[own] = 1.0 if posed.ways is None else posed.ways[column]
        return cls(candidates, ways)


class Values(NamedTuple):
    """The columns of one term at values of its constants: between those of a grid, and at those of its kin, freely."""

    columns: Array  # (values, rows, columns of a block)
    constants: Array  # (values of the grid, constants)
    cost: float  # the price of the term
    move: Move  # at a value of the grid
    kin: Move | None  # at the last value: the free term with its tangents

    def led(self, value: int, found: Array, inside: Inside, at: Array) -> tuple[Array, Index, Index]:
        """Return coefficients with those of the term, and the equations and terms that these are."""
        move = self.move if self.kin is None or value < len(self.columns) - 1 else self.kin
        rows, terms = np.divmod(np.array(move.candidates, dtype=np.intp), at.shape[1])
        own, out = found[: len(move.ways)] @ move.ways, at.copy()
        if move is self.kin:
            values = np.zeros_like(at)
            values[rows, terms] = own
            out[rows, terms] = inside.arrived(at, rows, terms, values)[rows, terms]
            return out, rows, terms
        if self.constants.size:
            members = inside.member[terms].tolist()
            terms = np.array([inside.free[row, m] for row, m in zip(rows.tolist(), members, strict=True)])
        for k, constant in enumerate(self.constants[value]):
            out[rows, terms + 1 + k] = constant
        out[rows, terms] = own
        return out, rows, terms


def finer(columns: Array, constants: Array, shape: Sequence[int]) -> tuple[Array, Array]:
    """Return columns and constants between those on a grid of this shape, and on it."""
    if int(np.prod(shape)) != len(columns) or min(shape, default=1) < 2:
        return columns, constants
    factor = next((one for one in FINER if np.prod([one * (size - 1) + 1 for size in shape]) <= MOST_VALUES), FINER[-1])
    size = np.sqrt(np.sum(columns**2, axis=(1, 2), keepdims=True))
    size = np.where(size > 0, size, 1.0)
    parts = []
    for part in (columns / size, np.log(size), constants):  # sizes may go through decades
        part = part.reshape(*shape, -1)
        for axis, number in enumerate(shape):
            part = CubicSpline(np.arange(number), part, axis=axis)(
                np.linspace(0, number - 1, factor * (number - 1) + 1)
            )
        parts.append(part.reshape(-1, part.shape[-1]))
    return parts[0].reshape(-1, *columns.shape[1:]) * np.exp(parts[1])[:, :, None], parts[2]


def few_models(
    posed: Posed, inside: Inside, own: Support, equation: int, at: Array, cost: Callable[[Support], float]
) -> list[tuple[Support, Array, float]]:
    """Return supports with few other terms in an equation, their coefficients and what they gain, the best first.

    Given are a regression on all candidates of the equation and of those that laws tie to it, the moves of a model, its
    coefficients `at`, and the price of a support. What looks clearly worse than the model is left out.
    """
    blocks = _blocks(posed, inside, own, equation)
    if not blocks:
        return []
    members, around = ([j for j in own if _is_of(posed, equation, j) == mine] for mine in (True, False))
    columns = np.unique(np.concatenate([block for one in blocks.values() for block in one]))
    inner = given(posed.problem, columns, np.array(around, dtype=np.intp))
    raw = dict(
        zip(columns.tolist(), (inner.columns.take(np.arange(columns.size)) / posed.unit[columns]).T, strict=True)
    )
    terms = [_values(posed, inside, block, raw, cost) for block in blocks.values()]
    keys, had = list(blocks), dict.fromkeys(_key(posed, inside, posed.moves[j]) for j in members)
    sets, place = Sets.of(inner, terms), [keys.index(key) for key in had if key in blocks]
    start = [_nearest(terms[number], inside, at) + int(sets.first[number]) for number in place]
    rest = set(posed.support(own)).difference(*(posed.moves[j] for j in members))
    rest.update(*(posed.moves[j] for j in around))
    mine, out = model(posed.problem, own).criterion, list[tuple[Support, Array, float]]()
    for score, chosen, numbers in sorted([*sets.few(), *sets.around(place, start)], key=lambda one: one[0]):
        if score > mine + WORTH_A_FIT or len(out) == MOST_FITTED:
            break
        values = [numbers[i] - int(sets.first[one]) for i, one in enumerate(chosen)]
        out.append((*_led(inner, [terms[one] for one in chosen], values, inside, at, rest), mine - score))
    return out


def _is_of(posed: Posed, equation: int, column: int) -> bool:
    """Return whether a column has a term of an equation."""
    return any(j // posed.knowledge.d == equation for j in posed.moves[column])


def _key(posed: Posed, inside: Inside, move: Support) -> tuple[tuple[int, int], ...]:
    """Return the equations and terms of a move, whatever its constants are."""
    placed = [divmod(j, posed.knowledge.d) for j in move]
    return tuple(sorted({(row, int(inside.reported[j])) for row, j in placed if not inside.tangent[j]}))


def _blocks(
    posed: Posed, inside: Inside, own: Support, equation: int
) -> dict[tuple[tuple[int, int], ...], list[Index]]:
    """Return the columns of every term: on its grid, then as one of the kin of those of a model."""
    out = dict[tuple[tuple[int, int], ...], list[Index]]()
    d, mine = posed.knowledge.d, set(own)
    blocks = [block for some in posed.problem.blocks for block in some if _is_of(posed, equation, int(block[0]))]
    free = [bool(inside.equation[posed.moves[block[0]][0] % d] >= 0) for block in blocks]
    for block, of_kin in sorted(zip(blocks, free, strict=True), key=lambda one: one[1]):
        key = _key(posed, inside, posed.moves[block[0]])
        if not of_kin:
            out.setdefault(key, []).append(block)
        elif key in out and mine.isdisjoint(block.tolist()):
            out[key].append(block)
    return out


def _values(
    posed: Posed, inside: Inside, blocks: Sequence[Index], raw: dict[int, Array], cost: Callable[[Support], float]
) -> Values:
    """Return the columns of a term between the values on its grid, too."""
    moves, d = [Move.of(posed, block) for block in blocks], posed.knowledge.d
    first = [move.candidates[0] % d for move in moves]
    kin = moves[-1] if inside.equation[first[-1]] >= 0 else None
    parts = [np.column_stack([raw[j] for j in block.tolist()]) for block in blocks]
    number = len(blocks) - (kin is not None)
    columns, constants = np.array(parts[:number]), np.empty((number, 0))
    if inside.value[first[0]] >= 0:
        member = inside.members[inside.member[first[0]]]
        grid = np.array([member.grid[inside.value[j]] for j in first[:number]])
        columns, constants = finer(columns, grid, [one.number for one in member.ranges])
    if kin is not None:
        wide = parts[-1].shape[1]
        columns = np.pad(columns, ((0, 0), (0, 0), (0, wide - columns.shape[2])))
        columns = np.concatenate([columns, parts[-1][None]])
    free, _ = inside.settled(moves[0].candidates, np.zeros((posed.knowledge.n, d)))
    return Values(columns, constants, cost(free), moves[0], kin)


def _nearest(term: Values, inside: Inside, at: Array) -> int:
    """Return the value of a term's constants that is closest to that in a model."""
    if not term.constants.size:
        return 0
    row, j = divmod(term.move.candidates[0], at.shape[1])
    place = inside.free[row, int(inside.member[j])] + 1
    apart = term.constants - at[row, place : place + term.constants.shape[1]]
    return int(np.argmin(np.sum((apart / np.maximum(np.ptp(term.constants, axis=0), TINY)) ** 2, axis=1)))


def _led(
    inner: Problem, terms: Sequence[Values], values: Sequence[int], inside: Inside, at: Array, rest: Iterable[int]
) -> tuple[Support, Array]:
    """Return the candidates that some terms are, next to the rest, with their coefficients and constants."""
    columns = [term.columns[value] for term, value in zip(terms, values, strict=True)]
    found, support = np.linalg.lstsq(np.hstack(columns), inner.target, rcond=None)[0], set(rest)
    ends, out, d = np.cumsum([one.shape[1] for one in columns]), at, at.shape[1]
    for term, value, own in zip(terms, values, np.split(found, ends[:-1]), strict=True):
        out, rows, places = term.led(value, own, inside, out)
        support.update((rows * d + places).tolist())
    return tuple(sorted(support)), out


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of terms, a row of numbers of columns for each: what they lower RSS by, and which columns do so best."""

    problem: Problem  # less what all other terms explain
    gram: Array
    correlations: Array
    members: Index  # (values of all terms, columns of a block)
    first: Index  # of the values of every term
    costs: Array  # of every term

    @classmethod
    def of(cls, problem: Problem, terms: Sequence[Values]) -> Sets:
        """Return those of some terms; a column of zeros stands in places that are empty."""
        wide = max(one.columns.shape[2] for one in terms)
        blocks = [np.pad(one.columns, ((0, 0), (0, 0), (0, wide - one.columns.shape[2]))) for one in terms]
        columns = np.concatenate(blocks).transpose(1, 0, 2).reshape(len(problem.target), -1)
        norms = np.linalg.norm(columns, axis=0)
        columns = columns / np.where(norms > 0, norms, 1.0)
        gram = columns.T @ columns
        gram[np.diag_indices_from(gram)] = 1 + DEPENDENT
        numbers = [len(one.columns) for one in terms]
        members = np.arange(columns.shape[1]).reshape(-1, wide)
        first = np.cumsum([0, *numbers])
        return cls(problem, gram, columns.T @ problem.target, members, first, np.array([one.cost for one in terms]))

    def gains(self, chosen: Index) -> Array:
        """Return what sets of columns, (…, terms), lower RSS by."""
        places = self.members[chosen].reshape(-1, chosen.shape[-1] * self.members.shape[1])
        out = np.empty(len(places))
        for start in range(0, len(places), many := max(AT_ONCE // places.shape[1] ** 2, 1)):
            own = places[start : start + many]
            c = self.correlations[own]
            found = np.linalg.solve(self.gram[own[:, :, None], own[:, None, :]], c[:, :, None])[:, :, 0]
            out[start : start + many] = np.einsum("ij,ij->i", c, found)
        return out.reshape(chosen.shape[:-1])

    def values(self, terms: Index) -> tuple[Index, Index]:
        """Return the columns of every one of some terms, padded by repeating the first."""
        sizes = self.first[terms + 1] - self.first[terms]
        reach = np.arange(int(sizes.max(initial=1)))
        return self.first[terms][:, None] + np.where(reach < sizes[:, None], reach, 0), sizes

    def improved(self, terms: Index, chosen: Index, places: Iterable[int]) -> tuple[Index, Array]:
        """Return sets with the best columns of the terms in some places, one after the other, and what they gain."""
        gain = self.gains(chosen)
        for place in places:
            options, sizes = self.values(terms[:, place])
            rows = np.flatnonzero(sizes > 1)
            tried = np.repeat(chosen[rows, None], options.shape[1], axis=1)
            tried[:, :, place] = options[rows]
            gains = self.gains(tried)
            best = gains.argmax(axis=1)
            chosen[rows, place], gain[rows] = options[rows, best], gains[np.arange(len(rows)), best]
        return chosen, gain

    def best(self, terms: Index, chosen: Index) -> list[Judged]:
        """Return criterion, terms and columns of sets, their constants improved, each set once."""
        if not len(terms):
            return []
        places = [place for _ in range(SWEEPS) for place in range(terms.shape[1])]
        chosen, gain = self.improved(terms, chosen.copy(), places)
        floor = max(self.problem.floor, ROUNDING * self.problem.total)
        score = misfit(self.problem.total - gain, self.problem.n_rows, floor) + self.costs[terms].sum(axis=1)
        found = dict[frozenset[int], Judged]()
        for k in np.argsort(score, kind="stable").tolist():
            judged = (float(score[k]), tuple(terms[k].tolist()), tuple(chosen[k].tolist()))
            found.setdefault(frozenset(judged[1]), judged)
        return list(found.values())

    def pairs(self) -> tuple[Index, Index]:
        """Return all pairs of terms with the best columns of each."""
        one, other = np.triu_indices(len(self.members), 1)
        owner = np.repeat(np.arange(len(self.costs)), np.diff(self.first))
        apart = owner[one] != owner[other]
        chosen = np.column_stack([one[apart], other[apart]])
        gain = self.gains(chosen)
        pair = owner[chosen] @ np.array([len(self.costs), 1])
        order = np.lexsort((-gain, pair))
        kept = order[np.unique(pair[order], return_index=True)[1]]
        kept = kept[np.argsort(-gain[kept])]
        return owner[chosen[kept]], chosen[kept]

    def few(self) -> list[Judged]:
        """Return criterion, terms and columns of all sets of few terms."""
        number = len(self.costs)
        alone = np.arange(number)[:, None]
        found = self.best(alone, self.first[:-1][:, None])
        terms, chosen = self.pairs()
        while terms.shape[1] <= min(MOST_TERMS, number):
            found += self.best(terms, chosen)
            terms, chosen = self.longer(terms, chosen)
        return found

    def longer(self, terms: Index, chosen: Index) -> tuple[Index, Index]:
        """Return sets, the best first of those given, with one term more."""
        number = len(self.costs)
        kept = max(MOST_SETS // number, 1)
        terms, chosen = terms[:kept], chosen[:kept]
        more = np.tile(np.arange(number), len(terms))
        terms, chosen = (np.repeat(one, number, axis=0) for one in (terms, chosen))
        new = ~np.any(terms == more[:, None], axis=1)
        terms = np.column_stack([terms, more])[new]
        chosen = np.column_stack([chosen, self.first[more]])[new]
        return terms, self.improved(terms, chosen, [terms.shape[1] - 1])[0]

    def around(self, own: Sequence[int], chosen: Sequence[int]) -> list[Judged]:
        """Return the same of a set with one term, or two, exchanged for another or left out."""
        found, at = [], dict(zip(own, chosen, strict=True))
        others = [one for one in range(len(self.costs)) if one not in at]
        for gone in (0, 1, 2) if own else ():
            left = list(combinations(own, max(len(own) - gone, 0)))
            sets = [(*one, other) for one in left for other in others if gone]
            for some in ([one for one in left if one], sets):
                columns = [[at.get(one, int(self.first[one])) for one in terms] for terms in some]
                found += self.best(np.array(some, dtype=np.intp), np.array(columns, dtype=np.intp))
        return found
