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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from ardea.core.problem import Array, Index
from ardea.dynamics.formulas import WithConstants
from ardea.dynamics.knowledge import Common, Knowledge, Law, OfSeries
from ardea.dynamics.libraries import Inside, Library, Member
from ardea.dynamics.terms import CompiledTerms, Term


def unknown_in(term: Term) -> list[WithConstants]:
    """Return the factors of a term that hold unknown constants."""
    return [factor for factor, _ in term.factors if isinstance(factor, WithConstants)]


def shared_out(term: Term, values: Sequence[float]) -> list[tuple[WithConstants, list[float]]]:
    """Return the factors of a term that hold unknown constants, each with its own of some values."""
    left = iter(values)
    return [(factor, [next(left) for _ in factor.letters]) for factor in unknown_in(term)]


def replaced(term: Term, by: Callable[[WithConstants, list[float]], object], values: Sequence[float]) -> Term:
    """Return a term with something else for its factors that hold constants, given the values of these."""
    out, put = Term(), [by(factor, own) for factor, own in shared_out(term, values)]
    for factor, exponent in term.factors:
        new = put.pop(0) if isinstance(factor, WithConstants) else factor
        for _ in range(exponent):
            out = out * Term.of(new)
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

    def inside(self, n_states: int) -> Inside:
        """Return which candidates are what."""
        return Inside(self.library.listed(self.n_variables), self.members, self.equations)

    def over(self, number: int) -> tuple[Unfolded, Index]:
        """Return those of several series with constants of their own, and the number of term j in series k, [k, j]."""
        inside, first = self.inside(self.n_variables), self.n_variables
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


def unfolded(
    library: Library, states: Array, equations: Sequence[int], knowledge: Knowledge | None = None
) -> tuple[Unfolded, Knowledge | None]:
    """Return the candidates of a search with constants inside terms for some equations, and what is known of them.

    Given are states and inputs in the data, (rows, variables), and what is known of the terms of the library.
    """
    if isinstance(library, PerSeries) and knowledge is not None and (several := knowledge.of_series) is not None:
        alone, _ = unfolded(library.of, states[:, : -library.n_series], equations)
        inside, (whole, at) = alone.inside(alone.n_variables), alone.over(library.n_series)
        return whole, _told(inside, several.base).over(at, _common(inside, several))
    terms = library.listed(states.shape[1])
    members, reach = [], np.maximum(np.abs(states).max(axis=0), np.finfo(float).tiny)
    firsts = np.cumsum([0, *(len(term.letters) for term in terms)]).tolist()
    for place, term in enumerate(terms):
        factors = unknown_in(term)
        if not factors or not all(one.formula.fits([states[:, i] for i in one.arguments]) for one in factors):
            continue
        ranges = [one for factor in factors for one in factor.formula.ranges([reach[i] for i in factor.arguments])]
        grid = list(product(*(one.values for one in ranges)))
        for one, own in shared_out(term, grid[len(grid) // 2]):
            one.formula.check([states[:, i] for i in one.arguments], own)
        with np.errstate(all="ignore"):
            columns = CompiledTerms([replaced(term, _held, one) for one in grid], states.shape[1]).values(states.T)
            sizes = np.sqrt(np.mean(columns**2, axis=1))
        sound = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
        chosen = (tuple(grid[k] for k in sound), tuple(float(sizes[k]) for k in sound), _degree(term))
        kin = tuple((one.formula.kin(one.arguments), letter) for one in factors for letter in one.letters)
        members += [Member(term, place, firsts[place], tuple(ranges), *chosen, kin)] if sound.size else []
    out = Unfolded(library, tuple(members), states.shape[1], tuple(equations))
    return out, None if knowledge is None else _told(out.inside(out.n_variables), knowledge)


def _told(inside: Inside, knowledge: Knowledge) -> Knowledge:
    """Return what is known of terms, and of constants behind them, as knowledge of the candidates.

    A law between coefficients of one term holds for all values of its constants, which are then one. A term whose
    coefficient is given is free from the start, and is not on the grid.
    """
    n, d, width = knowledge.n, inside.d, knowledge.d
    allowed = knowledge.allowed.reshape(n, width)[:, inside.reported]
    allowed &= (inside.equation < 0) | (inside.equation == np.arange(n)[:, None])
    laws, asked = list[Law](), list[int]()
    for law in knowledge.laws:
        found = _laws(inside, law, width)
        if not found and not law.term:
            raise ValueError(f"{law.told} is about a term that was left out: its state is negative in the data.")
        laws += found
    for row, j in {divmod(j, d) for law in laws if law.value and not law.inside for j, _ in law.parts}:
        allowed[row, (inside.value >= 0) & (inside.reported == inside.reported[j])] = False
        asked += [row * d + j + k for k in range(1 + (inside.number(j) if inside.member[j] >= 0 else 0))]
    certain = [(row, inside.places(row, term)) for row, term in (divmod(j, width) for j in knowledge.asked)]
    if not all(own.size for _, own in certain):
        raise ValueError("A term in known was left out: its state is negative in the data.")
    asked += [row * d + int(own[0]) for row, own in certain if own.size == 1]
    one_of = tuple(tuple((row * d + own).tolist()) for row, own in certain if own.size > 1)
    return Knowledge(n, d, allowed.ravel(), tuple(laws), tuple(sorted(asked)), one_of)


def _common(inside: Inside, several: OfSeries) -> list[Common]:
    """Return what is common to several series, told of terms and of constants behind them, of the candidates."""
    told = [(*divmod(one.candidate, several.base.d), one.text) for one in several.common]
    found = [(row * inside.d, j, text) for row, term, text in told for j in inside.places(row, term)]
    return [Common(first + int(j), text, bool(inside.tangent[j])) for first, j, text in found]


def _laws(inside: Inside, law: Law, width: int) -> list[Law]:
    """Return a law for every value of the constants of its term, for it free, and that these are one."""
    d, out = inside.d, list[Law]()
    parts = [(*divmod(j, width), factor) for j, factor in law.parts]
    terms, places = {term for _, term, _ in parts}, [inside.places(row, term) for row, term, _ in parts]
    if len(terms) > 1 and min(terms) < inside.n_reported and any(np.any(inside.member[one] >= 0) for one in places):
        raise ValueError(
            f"{law.told} ties the coefficient of a term with an unknown constant inside to another: a law may be "
            "about one such term in several equations, or about constants (docs/knowledge)."
        )
    if law.value:  # of a term whose constants are free
        places = [one[inside.value[one] < 0] for one in places]
    for same in zip(*places, strict=False):
        candidates = [row * d + int(j) for j, (row, _, _) in zip(same, parts, strict=True)]
        pairs = zip(candidates, (factor for *_, factor in parts), strict=True)
        out.append(replace(law, parts=tuple(pairs), inside=bool(inside.tangent[same[0]])))
        if inside.equation[same[0]] >= 0 and not inside.tangent[same[0]]:
            for k, (one, other) in product(range(inside.number(same[0])), pairwise(candidates)):
                both = ((one + 1 + k, 1.0), (other + 1 + k, -1.0))
                out.append(Law(law.text, both, term=law.term, inside=True))
    return out
