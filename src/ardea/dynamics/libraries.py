"""Libraries of candidate terms, and which candidates of a search hold unknown constants.

A library of an ordinary differential equation lists its terms for a number of states, `terms(n_states)`. Names,
values and derivatives follow from the terms (`ardea.dynamics.terms`). Two libraries add (union of their terms) and
multiply (all products of a term of one with a term of the other). Here are polynomials; libraries of functions are in
`ardea.dynamics.parametric`, terms of fields in `ardea.dynamics.field_terms`. How constants inside terms become
parameters is in `ardea.dynamics.inside`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, prod
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_scalar

from ardea.core.problem import Array, Index
from ardea.core.subsets import Support
from ardea.dynamics.chain import solved_damped
from ardea.dynamics.formulas import Range
from ardea.dynamics.terms import CompiledTerms, Term, Values
from ardea.equation import Equation
from ardea.names import Wording, checked_names, default_names

# Convention: up to 10 states the default degree is 3, at most 286 candidates; above it is 2.
MANY_STATES = 10
# A step changes a constant by at most this factor or, where it may be negative, this share of its range (a convention).
LARGEST_FACTOR, LARGEST_MOVE = 3.0, 0.25
# At a bound: within this share of the range (rounding). One that ends so near to it is warned of (a convention).
AT_BOUND, NEAR_END = 1e-9, 1e-4
# Columns in the span of others but for this share are the same curves (rounding error, some digits of which are lost).
SAME_CURVE = 1e-8


class Library(ABC):
    """Candidate terms θ_i(x) of x' = Θ(x)ξ.

    A subclass gives `terms(n_states)`; all else is here. Libraries are immutable and hashable; what is derived from
    them is computed once per number of states.
    """

    @abstractmethod
    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the terms, all different, in the order of the columns of Θ."""

    @lru_cache(maxsize=256)  # noqa: B019  (libraries are small, and look-ups by what they are)
    def listed(self, n_states: int) -> tuple[Term, ...]:
        """Return the terms, the first of each name."""
        names = default_names(n_states)
        first: dict[str, Term] = {}
        for term in self.terms(n_states):
            first.setdefault(term.name(names), term)
        return tuple(first.values())

    def n_terms(self, n_states: int) -> int:
        """Return the number of terms for so many states."""
        return len(self.listed(n_states))

    def n_listed(self, n_states: int) -> int:
        """Return the number of terms, repeated ones included, without listing them where that may take for ever."""
        return self.n_terms(n_states)

    def degrees(self, n_states: int) -> list[int]:
        """Return the degrees of the terms."""
        return [term.degree for term in self.listed(n_states)]

    def names(self, feature_names: Sequence[str]) -> list[str]:
        """Return the names of the terms: `1`, `x`, `x y`, `x^2 y`, `x sin(y)`, given one name per state."""
        return self.vocabulary(feature_names).names

    def vocabulary(self, feature_names: Sequence[str]) -> Wording:
        """Return how the terms are written for states of these names."""
        names = checked_names(feature_names)
        terms = self.listed(len(names))
        if both := {letter for term in terms for letter in term.letters} & set(names):
            raise ValueError(f"{min(both)} is the name of a state and of a constant inside a term: rename the state.")
        return Wording(terms, (names,))

    def inside(self, n_states: int) -> Inside:
        """Return which candidates are what."""
        return Inside(self.listed(n_states))

    def evaluate(self, X: ArrayLike, terms: Sequence[int] | None = None) -> Values:
        """Return Θ(X).

        Parameters
        ----------
        X : array of shape (rows, n_states)
            States. Complex values are allowed.
        terms : sequence of int, optional
            Indices of the columns wanted; the others are not computed. A tuple is looked up fastest.

        Returns
        -------
        array of shape (rows, n_terms) or (rows, len(terms))
            Columns are contiguous in memory.
        """
        X = _checked_states(X)
        return self.compiled(X.shape[1], terms).values(X.T).T

    def compiled(self, n_states: int, terms: Sequence[int] | None = None) -> CompiledTerms:
        """Return what computes all terms, or those with the indices given, for so many states."""
        return _compiled(self, n_states, None if terms is None else tuple(terms))

    @lru_cache(maxsize=2048)  # noqa: B019
    def slopes(self, n_states: int, terms: tuple[int, ...]) -> tuple[CompiledTerms, sparse.csr_array]:
        """Return terms φ_j and numbers, shape (n_φ·n_states, terms), with ∂θ_i/∂x_l = Σ_j numbers[(j, l), i] φ_j."""
        listed = self.listed(n_states)
        place: dict[Term, int] = {}
        entries = [
            (place.setdefault(reduced, len(place)) * n_states + state, column, number)
            for column, index in enumerate(terms)
            for state in listed[index].arguments
            for number, reduced in listed[index].derivative(state)
        ]
        rows, columns, numbers = np.array(entries).reshape(-1, 3).T
        places, shape = (rows.astype(int), columns.astype(int)), (len(place) * n_states, len(terms))
        return CompiledTerms(list(place), n_states), sparse.csr_array((numbers, places), shape)

    def __add__(self, other: Library) -> Library:
        if not isinstance(other, Library):
            return NotImplemented
        return SumOfLibraries((*_parts(self, SumOfLibraries), *_parts(other, SumOfLibraries)))

    def __mul__(self, other: Library) -> Library:
        if not isinstance(other, Library):
            return NotImplemented
        return ProductOfLibraries((*_parts(self, ProductOfLibraries), *_parts(other, ProductOfLibraries)))


@dataclass(frozen=True)
class Polynomials(Library):
    """All monomials up to a total degree, in graded order: 1, x0, x1, x0^2, x0 x1, x1^2, ….

    Parameters
    ----------
    degree : int, optional
        Largest total degree. None: 3, above 10 states 2.
    include_constant : bool
        Whether the term 1 is there.

    Examples
    --------
    >>> library = Polynomials(2)
    >>> library.names(["x", "y"])
    ['1', 'x', 'y', 'x^2', 'x y', 'y^2']
    >>> library.evaluate([[2.0, 3.0]])
    array([[1., 2., 3., 4., 6., 9.]])
    """

    degree: int | None = None
    include_constant: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if self.degree is not None:
            check_scalar(self.degree, "degree", Integral, min_val=0 if self.include_constant else 1)

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the monomials."""
        degree = self.degree_for(n_states)
        lowest = 0 if self.include_constant else 1
        return tuple(
            Term.monomial(states)
            for total in range(lowest, degree + 1)
            for states in combinations_with_replacement(range(n_states), total)
        )

    def n_listed(self, n_states: int) -> int:
        """Return the number of monomials, the constant included."""
        return comb(n_states + self.degree_for(n_states), n_states)

    def degree_for(self, n_states: int) -> int:
        """Return the degree in use for so many states."""
        return self.degree if self.degree is not None else (3 if n_states <= MANY_STATES else 2)


@dataclass(frozen=True, eq=False)
class Listed(Library):
    """Some terms."""

    given: tuple[Term, ...]

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the terms."""
        return self.given


@dataclass(frozen=True)
class SumOfLibraries(Library):
    """Union of libraries; a term whose name is already there is left out. Written ``a + b``."""

    parts: tuple[Library, ...]

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the terms of the parts, one after the other."""
        return tuple(term for part in self.parts for term in part.listed(n_states))

    def n_listed(self, n_states: int) -> int:
        """Return the number of terms in all parts."""
        return sum(part.n_listed(n_states) for part in self.parts)


@dataclass(frozen=True)
class ProductOfLibraries(Library):
    """All products of one term of each part; a product whose name is already there is left out. Written ``a * b``."""

    parts: tuple[Library, ...]

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the products, the last part running fastest."""
        products: tuple[Term, ...] = (Term(),)
        for part in self.parts:
            products = tuple(left * right for left in products for right in part.listed(n_states))
        return products

    def n_listed(self, n_states: int) -> int:
        """Return the number of products."""
        return prod(part.n_listed(n_states) for part in self.parts)


@lru_cache(maxsize=2048)
def _compiled(library: Library, n_states: int, chosen: tuple[int, ...] | None) -> CompiledTerms:
    terms = library.listed(n_states)
    return CompiledTerms(terms if chosen is None else [terms[i] for i in chosen], n_states)


def _parts(library: Library, kind: type[SumOfLibraries] | type[ProductOfLibraries]) -> tuple[Library, ...]:
    return library.parts if isinstance(library, kind) else (library,)


def _checked_states(X: ArrayLike) -> Values:
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(f"states must have shape (rows, n_states), got {X.shape}; use x.reshape(-1, 1) for one state")
    return X


# Constants inside terms


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
    kin: tuple[Hashable, ...]  # of every constant what it means

    @property
    def n_constants(self) -> int:
        """Number of constants."""
        return len(self.ranges)


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
        kin = [kin for _ in equations for one in members for kin in one.kin]
        self._mates = [np.array([j for j, other in enumerate(kin) if other == own]) for own in kin]
        own = np.array([members[m].place for m in self.member[plain:]], dtype=np.intp)
        first = np.array([len(listed) + members[m].first for m in self.member[plain:]], dtype=np.intp)
        self.reported: Index = np.array([*ordinary, *np.where(order[plain:] < 0, own, first + order[plain:])])
        self.n_reported, self.n_letters = len(listed), sum(len(term.letters) for term in listed)

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

    def places(self, row: int, term: int) -> Index:
        """Return the candidates of an equation that are a term of the library, or a constant."""
        return np.flatnonzero((self.reported == term) & np.isin(self.equation, (-1, row)))

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
        tangents = {(row, j + 1 + k) for row, j in kept if self.equation[j] >= 0 for k in range(self.number(j))}
        return tuple(sorted(row * d + j for row, j in kept | tangents)), coefficients

    def number(self, term: int) -> int:
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
            for k in range(self.owner[t], self.owner[t] + 1 + self.number(t))
        }

    def owners(self, candidates: Support) -> Index | None:
        """Return for each of some candidates the place of that with which it goes; None where each goes alone."""
        terms = np.array(candidates, dtype=np.intp) % self.d
        if not np.any(self.tangent[terms]):
            return None
        return np.searchsorted(np.array(candidates), np.array(candidates) - terms + self.owner[terms])
