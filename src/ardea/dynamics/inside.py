"""Constants inside terms as parameters of a search.

A term g(x; K) with an unknown constant stands among the candidates three times. On a *grid* of values of K it is an
ordinary term at each. Once a support holds one of these, it is *free*: a term whose K is a parameter. With
g′ = ∂g/∂K, its *tangent*,

    c g(x; K) + β g′(x; K) = c g(x; K + β/c) + O(β²),

so that a step of Gauss–Newton finds c and β as it finds all coefficients, K moves by β/c, and β is zero again. The
covariance of c and β is that of c and c(K − K̂). A free term and its tangents are in a support together, and count as so
many parameters. Every equation has constants of its own. In the array of coefficients the place of a tangent holds K.

Constants stand behind states and inputs as further columns that a term is a function of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array, Index
from ardea.core.subsets import Support
from ardea.dynamics.chain import solved_damped
from ardea.dynamics.formulas import Range, WithConstants
from ardea.dynamics.knowledge import Common, Knowledge, Law, OfSeries
from ardea.dynamics.libraries import Library
from ardea.dynamics.terms import CompiledTerms, Term
from ardea.equation import Equation

# A step changes a constant by at most this factor or, where it may be negative, this share of its range (a convention).
LARGEST_FACTOR, LARGEST_MOVE = 3.0, 0.25
# At a bound: within this share of the range (rounding). One that ends so near to it is warned of (a convention).
AT_BOUND, NEAR_END = 1e-9, 1e-4
# Columns in the span of others but for this share are the same curves (rounding error, some digits of which are lost).
SAME_CURVE = 1e-8


def unknown_in(term: Term) -> list[WithConstants]:
    """Return the factors of a term that hold unknown constants."""
    return [factor for factor, _ in term.factors if isinstance(factor, WithConstants)]


def replaced(term: Term, by: Callable[[WithConstants, list[float]], object], values: Sequence[float]) -> Term:
    """Return a term with something else for its factors that hold constants, given the values of these."""
    out, left = Term(), list(values)
    for factor, exponent in term.factors:
        if isinstance(factor, WithConstants):
            own, left = left[: len(factor.letters)], left[len(factor.letters) :]
            factor = by(factor, own)
        for _ in range(exponent):
            out = out * Term.of(factor)
    return out


def freed(term: Term, places: Sequence[int]) -> Term:
    """Return a term as a function of states and of constants in these places."""
    return replaced(term, lambda factor, own: factor.free([int(place) for place in own]), places)


@dataclass(frozen=True)
class PerSeries(Library):
    """The terms of a library in every series: its last variables say in which."""

    of: Library
    n_series: int

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the terms, series by series."""
        first = n_states - self.n_series
        return tuple(Term.monomial((first + k,)) * one for k in range(self.n_series) for one in self.of.terms(first))

    def degrees(self, n_states: int) -> list[int]:
        """Return the degrees in the states."""
        return self.of.degrees(n_states - self.n_series) * self.n_series


@dataclass(frozen=True)
class Member:
    """A term with constants inside, and where these are sought."""

    term: Term
    place: int  # among all terms
    first: int  # of its constants, among all
    ranges: tuple[Range, ...]
    grid: tuple[tuple[float, ...], ...]  # values of all constants that stand for it
    sizes: tuple[float, ...]  # root mean square of the term over the data, at each
    degree: int

    @property
    def n_constants(self) -> int:
        """Number of constants."""
        return len(self.ranges)


@dataclass(frozen=True, eq=False)  # looked up by what it is: to hash all its terms takes long
class Unfolded(Library):
    """The candidates of a search: ordinary terms, grids, and of every equation free terms with their tangents."""

    library: Library
    members: tuple[Member, ...]
    n_variables: int  # states and inputs
    equations: tuple[int, ...]  # the states whose equations are sought

    @property
    def plain(self) -> tuple[Term, ...]:
        """The ordinary terms."""
        return tuple(term for term in self.library.listed(self.n_variables) if not term.letters)

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the ordinary terms, the grids, and the free terms of every equation, each before its tangents."""
        grids = [replaced(one.term, _held, values) for one in self.members for values in one.grid]
        free, place = [], self.n_variables
        for _ in self.equations:
            for one in self.members:
                places = list(range(place, place + one.n_constants))
                place += one.n_constants
                term = freed(one.term, places)
                free += [term, *(slope for at in places for _, slope in term.derivative(at))]
        return (*self.plain, *grids, *free)

    def degrees(self, n_states: int) -> list[int]:
        """Return the degrees of the terms; of a formula its own, and nothing more for its constants."""
        terms, degrees = self.library.listed(self.n_variables), self.library.degrees(self.n_variables)
        plain = [degree for degree, term in zip(degrees, terms, strict=True) if not term.letters]
        free = [degree for one in self.members for degree in (one.degree, *[0] * one.n_constants)]
        return [*plain, *(one.degree for one in self.members for _ in one.grid), *free * len(self.equations)]

    def over(self, number: int) -> tuple[Unfolded, Index]:
        """Return those of several series with constants of their own, and the number of term j in series k, [k, j]."""
        inside, first = Inside.of(self, self.n_variables), self.n_variables
        members = tuple(
            replace(
                one,
                term=Term.monomial((first + k,)) * one.term,
                place=k * inside.n_reported + one.place,
                first=k * inside.n_letters + one.first,
            )
            for k in range(number)
            for one in self.members
        )
        blocks = [len(self.plain), sum(len(one.grid) for one in self.members)]
        blocks += [sum(1 + one.n_constants for one in self.members)] * len(self.equations)
        parts = np.split(np.arange(number * sum(blocks)), number * np.cumsum(blocks[:-1]))
        at = np.hstack([one.reshape(number, -1) for one in parts])
        return Unfolded(PerSeries(self.library, number), members, self.n_variables + number, self.equations), at


def _held(factor: WithConstants, values: list[float]) -> object:
    return factor.at(values)


def _degree(term: Term) -> int:
    others = sum(e for factor, e in term.factors if not isinstance(factor, WithConstants))
    return others + sum(factor.formula.degree for factor in unknown_in(term))


def _kin_of(term: Term) -> list[Hashable]:
    """Return of every constant what it means."""
    return [(factor.formula.kin(factor.arguments), letter) for factor in unknown_in(term) for letter in factor.letters]


def unfolded(
    library: Library, states: Array, equations: Sequence[int], knowledge: Knowledge | None = None
) -> tuple[Unfolded, Knowledge | None]:
    """Return the candidates of a search with constants inside terms for some equations, and what is known of them.

    Given are states and inputs in the data, (rows, variables), and what is known of the terms of the library.
    """
    if isinstance(library, PerSeries) and knowledge is not None and (several := knowledge.of_series) is not None:
        alone, _ = unfolded(library.of, states[:, : -library.n_series], equations)
        inside, (whole, at) = Inside.of(alone, alone.n_variables), alone.over(library.n_series)
        return whole, inside.told(several.base).over(at, inside.common(several))
    terms = library.listed(states.shape[1])
    members, reach = [], np.maximum(np.abs(states).max(axis=0), np.finfo(float).tiny)
    firsts = np.cumsum([0, *(len(term.letters) for term in terms)]).tolist()
    for place, term in enumerate(terms):
        factors = unknown_in(term)
        if not factors or not all(one.formula.fits([states[:, i] for i in one.arguments]) for one in factors):
            continue
        ranges = [one for factor in factors for one in factor.formula.ranges([reach[i] for i in factor.arguments])]
        grid = list(product(*(one.values for one in ranges)))
        _check(factors, grid[len(grid) // 2], states)
        with np.errstate(all="ignore"):
            columns = CompiledTerms([replaced(term, _held, one) for one in grid], states.shape[1]).values(states.T)
            sizes = np.sqrt(np.mean(columns**2, axis=1))
        sound = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
        chosen = (tuple(grid[k] for k in sound), tuple(float(sizes[k]) for k in sound), _degree(term))
        members += [Member(term, place, firsts[place], tuple(ranges), *chosen)] if sound.size else []
    out = Unfolded(library, tuple(members), states.shape[1], tuple(equations))
    return out, None if knowledge is None else Inside.of(out, out.n_variables).told(knowledge)


def _check(factors: Sequence[WithConstants], values: Sequence[float], states: Array) -> None:
    """See that formulas are right at some constants, one after the other."""
    left = list(values)
    for one in factors:
        own, left = left[: len(one.letters)], left[len(one.letters) :]
        one.formula.check([states[:, i] for i in one.arguments], own)


class Inside:
    """Which candidates are ordinary terms, grids, free terms and tangents, and how these change.

    Given are the terms of a library, and those with constants inside that are sought in some equations.
    """

    def __init__(self, listed: Sequence[Term], members: Sequence[Member] = (), equations: Sequence[int] = ()) -> None:
        self.members, self.states = members, equations
        ordinary = [place for place, term in enumerate(listed) if not term.letters]
        plain = self.n_plain = len(ordinary)
        self.n_open = plain + sum(len(one.grid) for one in members)
        of_grid = [(m, k) for m, one in enumerate(members) for k in range(len(one.grid))]
        free = [
            (m, k, equation)
            for equation in equations
            for m, one in enumerate(members)
            for k in range(-1, one.n_constants)
        ]
        none = [-1] * plain
        self.member: Index = np.array([*none, *(m for m, _ in of_grid), *(m for m, _, _ in free)], dtype=np.intp)
        self.value: Index = np.array([*none, *(k for _, k in of_grid), *(-1 for _ in free)], dtype=np.intp)
        order = np.array([-1] * self.n_open + [k for _, k, _ in free], dtype=np.intp)
        self.d = order.size
        self.equation: Index = np.array([-1] * self.n_open + [one for *_, one in free], dtype=np.intp)
        self.tangent: NDArray[np.bool_] = order >= 0
        self.owner: Index = np.arange(order.size) - (order + 1)
        self.free = {(equation, m): self.n_open + i for i, (m, k, equation) in enumerate(free) if k < 0}
        self.tangents: Index = np.flatnonzero(self.tangent)
        self.n_constants = self.tangents.size
        self._order = np.cumsum(self.tangent) - 1  # of a tangent among all
        ranges = [members[self.member[j]].ranges[order[j]] for j in self.tangents]
        self.low, self.high = np.zeros(order.size), np.zeros(order.size)
        self.low[self.tangents], self.high[self.tangents] = [one.low for one in ranges], [one.high for one in ranges]
        self._middle = np.array([one.values[one.number // 2] for one in ranges])
        kin = [kin for _ in equations for one in members for kin in _kin_of(one.term)]
        self._mates = [np.array([j for j, other in enumerate(kin) if other == own]) for own in kin]
        own = np.array([members[m].place for m in self.member[plain:]], dtype=np.intp)
        first = np.array([len(listed) + members[m].first for m in self.member[plain:]], dtype=np.intp)
        self.reported: Index = np.array([*ordinary, *np.where(order[plain:] < 0, own, first + order[plain:])])
        self.n_reported, self.n_letters = len(listed), sum(len(term.letters) for term in listed)

    @classmethod
    def of(cls, library: Library, n_variables: int) -> Inside:
        """Return that of the candidates of a search, or of a library of ordinary terms."""
        if isinstance(library, Unfolded):
            return cls(library.library.listed(n_variables), library.members, library.equations)
        return cls(library.listed(n_variables))

    def split(self, coefficients: Array) -> tuple[Array, Array]:
        """Return the coefficients alone, and all constants.

        Those of terms that are absent are what they are in a term of their kin: best in the same equation.
        """
        if not self.n_constants:
            return coefficients, self._middle
        equations = self.equation[self.tangents]
        values, constants = coefficients[equations, self.tangents], self._middle.copy()
        present = np.flatnonzero(coefficients[equations, self.owner[self.tangents]])
        for near in (False, True):
            for one in present:
                mates = self._mates[one]
                constants[mates[equations[mates] == equations[one]] if near else mates] = values[one]
        constants[present] = values[present]
        return np.where(self.tangent, 0.0, coefficients), constants

    def filled(self, coefficients: Array) -> Array:
        """Return coefficients with constants for terms that are absent, too."""
        out, constants = self.split(coefficients)
        out[self.equation[self.tangents], self.tangents] = constants
        return out

    def linear(self, coefficients: Array) -> Array:
        """Return coefficients with zeros for tangents."""
        return np.where(self.tangent, 0.0, coefficients)

    def advanced(self, coefficients: Array, equations: Index, terms: Index, change: Array) -> Array:
        """Return coefficients after a change of some; constants move by β/c, not too far, and within their range."""
        out = self.linear(coefficients)
        out[equations, terms] += change
        if np.any(own := self.tangent[terms]):
            rows, columns = equations[own], terms[own]
            out[rows, columns] = self._moved(
                coefficients[rows, columns], columns, out[rows, self.owner[columns]], change[own]
            )
        return out

    def arrived(self, coefficients: Array, equations: Index, terms: Index, values: Array) -> Array:
        """Return the coefficients of some terms with the constants that they lead to from others."""
        if not self.n_constants:
            return values
        before = np.zeros_like(coefficients)
        before[equations, terms] = self.filled(coefficients)[equations, terms]
        return self.advanced(before, equations, terms, (values - self.linear(before))[equations, terms])

    def _moved(self, K: Array, columns: Index, c: Array, change: Array) -> Array:
        low, high = self.low[columns], self.high[columns]
        with np.errstate(all="ignore"):
            move = np.nan_to_num(change / c)
            factor = np.exp(np.clip(move / K, -np.log(LARGEST_FACTOR), np.log(LARGEST_FACTOR)))
        width = LARGEST_MOVE * (high - low)
        after = np.where(low > 0, K * np.nan_to_num(factor, nan=1.0), K + np.clip(move, -width, width))
        return np.asarray(np.clip(after, low, high))

    def step(
        self, coefficients: Array, equations: Index, terms: Index, information: Array, pull: Array, damping: float
    ) -> Array:
        """Return a damped step −S⁻¹b that leads no constant out of its range from an end of it."""
        change = -solved_damped(information, pull, damping)
        if not np.any(self.tangent[terms]):
            return change
        K, near = coefficients[equations, terms], AT_BOUND * (self.high - self.low)[terms]
        c = coefficients[equations, self.owner[terms]]
        outward = np.where(np.sign(change) * np.sign(c) < 0, self.low[terms] + near >= K, self.high[terms] - near <= K)
        blocked = self.tangent[terms] & outward & (change != 0)
        if np.any(blocked):
            change[blocked], rest = 0.0, np.flatnonzero(~blocked)
            change[rest] = -solved_damped(information[np.ix_(rest, rest)], pull[rest], damping)
        return change

    def told(self, knowledge: Knowledge) -> Knowledge:
        """Return what is known of terms, and of constants behind them, as knowledge of the candidates.

        A law between coefficients of one term holds for all values of its constants, which are then one. A term whose
        coefficient is given is free from the start, and is not on the grid.
        """
        n, d, width = knowledge.n, self.d, knowledge.d
        allowed = knowledge.allowed.reshape(n, width)[:, self.reported]
        allowed &= (self.equation < 0) | (self.equation == np.arange(n)[:, None])
        laws, asked = list[Law](), list[int]()
        for law in knowledge.laws:
            found = self._laws(law, width)
            if not found and not law.term:
                raise ValueError(f"{law.told} is about a term that was left out: its state is negative in the data.")
            laws += found
        for row, j in {divmod(j, d) for law in laws if law.value and not law.inside for j, _ in law.parts}:
            allowed[row, (self.value >= 0) & (self.reported == self.reported[j])] = False
            asked += [row * d + j + k for k in range(1 + (self._number(j) if self.member[j] >= 0 else 0))]
        certain = [(row, self._places(row, term)) for row, term in (divmod(j, width) for j in knowledge.asked)]
        if not all(own.size for _, own in certain):
            raise ValueError("A term in known was left out: its state is negative in the data.")
        asked += [row * d + int(own[0]) for row, own in certain if own.size == 1]
        one_of = tuple(tuple((row * d + own).tolist()) for row, own in certain if own.size > 1)
        return Knowledge(n, d, allowed.ravel(), tuple(laws), tuple(sorted(asked)), one_of)

    def common(self, several: OfSeries) -> list[Common]:
        """Return what is common to several series, told of terms and of constants behind them, of the candidates."""
        told = [(*divmod(one.candidate, several.base.d), one.text) for one in several.common]
        found = [(row * self.d, j, text) for row, term, text in told for j in self._places(row, term)]
        return [Common(first + int(j), text, bool(self.tangent[j])) for first, j, text in found]

    def _places(self, row: int, term: int) -> Index:
        """Return the candidates of an equation that are a term of the library, or a constant."""
        return np.flatnonzero((self.reported == term) & np.isin(self.equation, (-1, row)))

    def _laws(self, law: Law, width: int) -> list[Law]:
        """Return a law for every value of the constants of its term, for it free, and that these are one."""
        d, out = self.d, list[Law]()
        parts = [(*divmod(j, width), factor) for j, factor in law.parts]
        terms, places = {term for _, term, _ in parts}, [self._places(row, term) for row, term, _ in parts]
        if len(terms) > 1 and min(terms) < self.n_reported and any(np.any(self.member[one] >= 0) for one in places):
            raise ValueError(
                f"{law.told} ties the coefficient of a term with an unknown constant inside to another: a law may be "
                "about one such term in several equations, or about constants (docs/knowledge)."
            )
        if law.value:  # of a term whose constants are free
            places = [one[self.value[one] < 0] for one in places]
        for same in zip(*places, strict=False):
            candidates = [row * d + int(j) for j, (row, _, _) in zip(same, parts, strict=True)]
            pairs = zip(candidates, (factor for *_, factor in parts), strict=True)
            out.append(replace(law, parts=tuple(pairs), inside=bool(self.tangent[same[0]])))
            if self.equation[same[0]] >= 0 and not self.tangent[same[0]]:
                for k, (one, other) in product(range(self._number(same[0])), pairwise(candidates)):
                    both = ((one + 1 + k, 1.0), (other + 1 + k, -1.0))
                    out.append(Law(law.text, both, term=law.term, inside=True))
        return out

    def report(self, terms: Index) -> Index:
        """Return some candidates of an equation as terms of the library and, behind all of these, its constants."""
        return self.reported[terms]

    def same(
        self, library: Library, variables: Array, coefficients: Array, equation: int, mine: Support, other: Support
    ) -> bool:
        """Return whether other terms of an equation are its own, or say the same: 1, 1/(K + x) and 1, x/(K + x).

        Then each of them, with constants as they are in terms of its kin, is in the span of those.
        """
        if mine == other or len(mine) != len(other) or not self.n_constants:
            return mine == other
        own = (self.value < 0) & ~self.tangent & np.isin(self.equation, (-1, equation))
        place = {int(self.reported[j]): int(j) for j in np.flatnonzero(own)}
        if not {*mine, *other} <= place.keys():
            return False
        constants = self.split(coefficients)[1]
        X = np.hstack([variables, np.broadcast_to(constants, (len(variables), constants.size))])
        basis, others = (library.evaluate(X, tuple(place[j] for j in terms)) for terms in (mine, other))
        basis, size = np.linalg.qr(basis / np.linalg.norm(basis, axis=0))[0], np.linalg.norm(others, axis=0)
        return bool(np.all(np.linalg.norm(others - basis @ (basis.T @ others), axis=0) <= SAME_CURVE * size))

    def open_constants(self, equations: Sequence[Equation]) -> list[str]:
        """Return what is to be warned of: constants at an end of their range, or that the data say nothing of."""
        said = []
        for state, one in zip(self.states, equations, strict=False):  # no states where there are no constants
            for q, (letter, constant) in zip(one.letters, one.constants.items(), strict=True):
                same = (self.equation == state) & (self.reported == self.n_reported + q)
                low, high = (float(ends[same][0]) for ends in (self.low, self.high))
                name, near = f"{letter} in {constant.term} of {one.left.text}", NEAR_END * (high - low)
                if not low + near < constant.value < high - near:
                    end = low if constant.value < (low + high) / 2 else high
                    said.append(
                        f"{name} ends at {end:.3g}, the limit of its range: give a wider one, if it makes sense, or "
                        "see whether a simpler term does as well (docs/constants)."
                    )
                elif constant.interval[0] <= low and constant.interval[1] >= high:
                    said.append(
                        f"{name} is not determined by the data: its interval holds its whole range, {low:.3g} to "
                        f"{high:.3g}. Data over a wider range of states would tell (docs/constants)."
                    )
        return said

    def units(self, coefficients: Array, equations: Index, terms: Index) -> Array:
        """Return what one unit of each coefficient is worth: of a tangent 1/c, so that it stands for its constant."""
        c = coefficients[equations, self.owner[terms]]
        return np.asarray(np.where(self.tangent[terms], 1 / np.where(c == 0, 1.0, c), 1.0))

    def settled(self, support: Support, coefficients: Array) -> tuple[Support, Array]:
        """Return a support with free terms for those on grids, and coefficients with their constants.

        Of several values of one constant that with the largest share stands for all.
        """
        d, placed = self.d, [divmod(j, self.d) for j in support]
        on_grid = [(row, j) for row, j in placed if self.value[j] >= 0]
        kept = {(row, j) for row, j in placed if self.value[j] < 0 and not self.tangent[j]}
        coefficients = coefficients.copy() if on_grid else coefficients
        for row, m in {(row, int(self.member[j])) for row, j in on_grid}:
            free, member = self.free[row, m], self.members[m]
            if (row, free) not in kept:
                own = [j for equation, j in on_grid if equation == row and self.member[j] == m]
                shares = [float(coefficients[row, j] * member.sizes[self.value[j]]) for j in own]
                best = self.value[own[int(np.argmax(np.abs(shares)))]]
                # Two of opposite signs are the slope by the constant rather than the term itself.
                total = sum(shares) if abs(sum(shares)) > max(map(abs, shares)) / 2 else max(shares, key=abs)
                coefficients[row, free] = total / member.sizes[best]
                coefficients[row, free + 1 : free + 1 + member.n_constants] = member.grid[best]
                kept.add((row, free))
        if any(self.equation[j] >= 0 and coefficients[row, j] == 0 for row, j in kept):  # certain, and not yet met
            coefficients = self.filled(coefficients)
        tangents = {(row, j + 1 + k) for row, j in kept if self.equation[j] >= 0 for k in range(self._number(j))}
        return tuple(sorted(row * d + j for row, j in kept | tangents)), coefficients

    def _number(self, term: int) -> int:
        """Return the number of constants of a free term."""
        return self.members[self.member[term]].n_constants

    def open(self, equation: int) -> Support:
        """Return the candidates of an equation that a search may choose from."""
        return tuple(range(equation * self.d, equation * self.d + self.n_open))

    def opened(self, support: Support) -> Support:
        """Return those of some candidates that a search may choose from anywhere."""
        return tuple(j for j in support if j % self.d < self.n_open)

    def beside(self, candidates: Support, support: Support) -> Support:
        """Return what can be chosen beside a support: terms of the kin of its own, but no other values of these."""
        d = self.d
        present = {(j // d, self.member[j % d]) for j in support if self.equation[j % d] >= 0}
        if not present:
            return candidates
        others = [j for j in candidates if self.value[j % d] < 0 or (j // d, self.member[j % d]) not in present]
        return tuple(sorted({*others, *support, *self.kin(candidates, support)}))

    def kin(self, candidates: Support, support: Support) -> set[int]:
        """Return the free terms, and their tangents, of the kin of a support's in the equations of some candidates."""
        d, open_in = self.d, {j // self.d for j in candidates}
        mates = {int(t) for j in support if self.tangent[j % d] for t in self.tangents[self._mates[self._order[j % d]]]}
        return {
            int(self.equation[t]) * d + k
            for t in mates
            if self.equation[t] in open_in
            for k in range(self.owner[t], self.owner[t] + 1 + self._number(t))
        }

    def owners(self, candidates: Support) -> Index | None:
        """Return for each of some candidates the place of that with which it goes; None where each goes alone."""
        terms = np.array(candidates, dtype=np.intp) % self.d
        if not np.any(self.tangent[terms]):
            return None
        return np.searchsorted(np.array(candidates), np.array(candidates) - terms + self.owner[terms])
