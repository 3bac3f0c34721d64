"""Terms m(u) ∂^β u of fields: how they are written and evaluated, their weak form, and how noise enters them.

A jet is a derivative ∂^β u_f of a field; the field itself has β = 0. A differential monomial is a product of powers of
jets, for instance u² u_x³. Two sums of them are derived here for a term θ = m(u) ∂^β u_f, exactly and once:

- `weak_form`: ⟨φ, θ⟩ = Σ c ⟨∂^α φ, monomial⟩ with derivatives moved to φ as far as they go. While a monomial has one
  jet w = ∂_a v of highest order and power one, v^k w M = ∂_a(v^{k+1}) M/(k+1) gives

      ⟨φ, v^k w M⟩ = −[⟨∂_a φ, v^{k+1} M⟩ + ⟨φ, v^{k+1} ∂_a M⟩]/(k+1).

  It stops where M holds other jets of the order of v, since ∂_a M would then bring back the order of w. For u^p ∂^q u
  with q ≤ 4 at most u_xx is left.
- `noise_weights`: to first order in errors e_g of the fields, the error of ⟨φ, θ⟩ is Σ_g Σ_j ⟨A_gj ∂^j φ, e_g⟩, where
  every jet w = ∂^β u_g of θ adds (−1)^|β| C(β, j) ∂^{β−j}(∂θ/∂w) to A_gj, j ≤ β.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import combinations_with_replacement, product
from math import comb, prod
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from ardea.core.problem import Array
from ardea.dynamics.libraries import Library
from ardea.dynamics.terms import CompiledTerms, FieldTerm, FunctionOfFields, Jet, Orders, Term, Values
from ardea.names import Wording, checked_names

Key = TypeVar("Key")
# Derived: an equation under which short waves grow by more than exp of this while a field is watched is ill-posed
# there: waves of the size of rounding errors come to order one.
LARGEST_GROWTH = -float(np.log(np.finfo(float).eps))

# Coefficients of ⟨∂^orders φ, monomial⟩.
WeakSum = dict[tuple[Orders, FieldTerm], float]
# Per field and orders of the test function, the weight of an error of that field.
NoiseWeights = dict[tuple[int, Orders], dict[FieldTerm, float]]


@dataclass(frozen=True)
class FieldTerms:
    """Terms u^p ∂^q u of one or several fields: monomials times derivatives.

    The factor with q = 0 is 1, not u. For one field and one space axis these are (powers + 1)(derivatives + 1) terms,
    with the defaults the 25 of the paper (Eq. KS_features), in its order: all powers with the factor 1, then all
    powers with u_x, then with u_xx, …. With several fields the monomials run over all total degrees up to `powers` in
    graded order, and the derivatives over all fields and all mixed derivatives of total order up to `derivatives`:
    order by order, then field by field.

    Parameters
    ----------
    powers : int
        Largest total degree of the monomial.
    derivatives : int
        Largest total order of the derivative.
    conservative : bool
        Whether second derivatives of powers, (u^2)_xx up to (u^powers)_xx, and products of two first derivatives, such
        as u_x^2, are candidates too.
    functions : Library, optional
        Functions of the fields, the known ones too, that are candidates as well. Written ``FieldTerms() + Custom(…)``.

    Examples
    --------
    >>> FieldTerms(powers=1, derivatives=2).names(["u"])
    ['1', 'u', 'u_x', 'u u_x', 'u_xx', 'u u_xx']
    >>> FieldTerms(powers=0, derivatives=2).names(["u"], ["x", "y"])
    ['1', 'u_x', 'u_y', 'u_xx', 'u_xy', 'u_yy']
    >>> FieldTerms(powers=2, derivatives=2, conservative=True).names()[-2:]
    ['(u^2)_xx', 'u_x^2']
    >>> from ardea.dynamics import Custom
    >>> (FieldTerms(powers=0, derivatives=1) + Custom([np.sin])).names(["u", "v"])
    ['1', 'u_x', 'v_x', 'sin(u)', 'sin(v)']
    """

    powers: int = 4
    derivatives: int = 4
    conservative: bool = False
    functions: Library | None = None

    def __add__(self, other: Library) -> FieldTerms:
        if not isinstance(other, Library):
            return NotImplemented
        return replace(self, functions=other if self.functions is None else self.functions + other)

    __radd__ = __add__

    def __post_init__(self) -> None:
        check_scalar(self.powers, "powers", Integral, min_val=0)
        check_scalar(self.derivatives, "derivatives", Integral, min_val=0)

    def terms(self, n_fields: int = 1, n_axes: int = 1, n_known: int = 0) -> tuple[FieldTerm, ...]:
        """Return the terms in the order of the columns; of the last fields, so many that are known, no derivatives."""
        return _field_terms(self, n_fields, n_axes, n_known)

    def n_terms(self, n_fields: int = 1, n_axes: int = 1, n_known: int = 0) -> int:
        """Return the number of terms."""
        return len(self.terms(n_fields, n_axes, n_known))

    def n_listed(self, n_fields: int, n_axes: int) -> int:
        """Return a bound on the number of terms, without listing them."""
        plain = comb(n_fields + self.powers, n_fields) * comb(n_axes + self.derivatives, n_axes) * n_fields
        plain += 0 if self.functions is None else self.functions.n_listed(n_fields)
        return plain + self.conservative * (self.powers + n_fields * n_axes) * n_fields * n_axes**2

    def names(self, field_names: Sequence[str] = ("u",), axis_names: Sequence[str] = ("x",)) -> list[str]:
        """Return the names of the terms: `1`, `u`, `u^2`, `u_x`, `u u_x`, `u^2 u_xxxx`."""
        return self.vocabulary(checked_names(field_names), checked_names(axis_names)).names

    def vocabulary(
        self, field_names: Sequence[str] = ("u",), axis_names: Sequence[str] = ("x",), n_known: int = 0
    ) -> Wording:
        """Return how the terms are written for fields and space axes of these names, which differ."""
        return Wording(self.terms(len(field_names), len(axis_names), n_known), (field_names, axis_names))

    def evaluate(
        self,
        fields: Sequence[ArrayLike],
        derivative: Callable[[int, tuple[int, ...]], ArrayLike],
        *,
        n_axes: int = 1,
        terms: Sequence[int] | None = None,
        n_known: int = 0,
    ) -> Values:
        """Return the columns of the terms, one row for every grid point.

        Parameters
        ----------
        fields : sequence of arrays
            All of one shape, for instance (n_x, n_t).
        derivative : callable
            `derivative(field, orders)` returns that derivative of that field, in the shape of the fields. It is
            called once for every derivative that the chosen terms need.
        n_axes : int
            Number of space axes.
        terms : sequence of int, optional
            Indices of the columns wanted.
        n_known : int
            How many of the last fields are known, and so without derivatives.

        Returns
        -------
        array of shape (grid points, n_terms) or (grid points, len(terms))
            Grid points in C order; columns are contiguous in memory.
        """
        listed = self.terms(len(fields), n_axes, n_known)
        chosen = listed if terms is None else [listed[i] for i in terms]
        sums = [plain(term) for term in chosen]
        monomials = list(dict.fromkeys(monomial for one in sums for monomial in one))
        place: dict[Jet, int] = {}
        for jet, _ in (factor for monomial in monomials for factor in monomial.factors):
            place.setdefault(jet, len(place))

        def values_of(jet: Any) -> Any:
            if isinstance(jet, FunctionOfFields):
                return jet.values(lambda one: np.asarray(fields[one.field], dtype=float))
            return derivative(jet.field, jet.orders) if any(jet.orders) else fields[jet.field]

        given = [values_of(jet) for jet in place]
        columns = np.array([np.ravel(values) for values in given], dtype=float).reshape(len(place), np.size(fields[0]))
        powers = [sorted(place[jet] for jet, power in one.factors for _ in range(power)) for one in monomials]
        values = CompiledTerms([Term.monomial(one) for one in powers], len(place)).values(columns)
        if not any(term.derived_power for term in chosen):
            return values.T
        where = {monomial: row for row, monomial in enumerate(monomials)}
        return np.array([sum(c * values[where[one]] for one, c in parts.items()) for parts in sums]).T


@lru_cache(maxsize=64)
def _field_terms(library: FieldTerms, n_fields: int, n_axes: int, n_known: int) -> tuple[FieldTerm, ...]:
    factors, measured = [FieldTerm()], n_fields - n_known
    for order in range(1, library.derivatives + 1):
        factors += [FieldTerm.of(Jet(i, orders)) for i in range(measured) for orders in _exponents(n_axes, order)]
    fields = [Jet(i, (0,) * n_axes) for i in range(n_fields)]
    exponents = [e for degree in range(library.powers + 1) for e in _exponents(n_fields, degree)]
    monomials = [FieldTerm(tuple((jet, n) for jet, n in zip(fields, e, strict=True) if n)) for e in exponents]
    terms = [monomial * factor for factor in factors for monomial in monomials]
    terms += _conservative_terms(library.powers, measured, n_axes) if library.conservative else []
    more = () if library.functions is None else library.functions.terms(n_fields)
    return tuple(dict.fromkeys([*terms, *(FieldTerm.of_states(term, n_axes) for term in more)]))


def _conservative_terms(powers: int, n_fields: int, n_axes: int) -> list[FieldTerm]:
    """Return the second derivatives of powers, then the products of two first derivatives."""
    listed = [
        FieldTerm.of(Jet(i, orders, power))
        for orders in _exponents(n_axes, 2)
        for i in range(n_fields)
        for power in range(2, powers + 1)
    ]
    slopes = [FieldTerm.of(Jet(i, orders)) for i in range(n_fields) for orders in _exponents(n_axes, 1)]
    return listed + [one * other for one, other in combinations_with_replacement(slopes, 2)]


def plain(term: FieldTerm) -> dict[FieldTerm, float]:
    """Return a term as a sum of products of jets, such as 2 u u_xx + 2 u_x^2 for (u^2)_xx."""
    derived = term.derived_power
    return {term: 1.0} if derived is None else _derivatives(derived.base, derived.orders)


def ladders(terms: Sequence[FieldTerm | None]) -> list[tuple[int, ...]]:
    """Return the places of terms that are all powers of one field, times the same.

    Examples
    --------
    >>> library = FieldTerms(2, 1)
    >>> [[library.names()[j] for j in ladder] for ladder in ladders(library.terms())]
    [['1', 'u', 'u^2'], ['u_x', 'u u_x', 'u^2 u_x']]
    """
    listed = [term for term in terms if term is not None]
    fields = {jet for term in listed for jet, _ in term.factors if isinstance(jet, Jet) and not any(jet.orders)}
    places: dict[tuple[Jet, frozenset[object]], list[int]] = {}
    for j, term in enumerate(terms):
        for field in fields:
            if term is None:
                continue
            rest = frozenset(factor for factor in term.factors if factor[0] != field)
            places.setdefault((field, rest), []).append(j)
    return [tuple(found) for found in places.values() if len(found) > 1]


def _exponents(n: int, total: int) -> list[tuple[int, ...]]:
    """Return all exponents of n variables with the total degree given, in graded order."""
    return [tuple(chosen.count(i) for i in range(n)) for chosen in combinations_with_replacement(range(n), total)]


# Values


class Jets:
    """Derivatives of fields on a grid, and products of their powers, each power computed once.

    Where they have noise of covariance c(v, w) = covariance(v, w), products are those whose mean is that of the product
    without it (Hermite): H(wM) = w H(M) − Σ_v c(w, v) H(∂M/∂v), such as u_x² − c(u_x, u_x). Functions stay as they are.
    """

    def __init__(
        self, jet: Callable[[Jet], Array], covariance: Callable[[Jet, Jet], Array | float] | None = None
    ) -> None:
        self._jet, self._covariance = jet, covariance
        self._noises: dict[tuple[Jet, Jet], Array | float] = {}
        self._values: dict[tuple[Any, int], Array] = {}

    def __call__(self, jet: Jet | FunctionOfFields, power: int = 1) -> Array:
        """Return a power of a jet or of a function."""
        if (jet, power) not in self._values:
            values = self._first(jet) if power == 1 else self(jet, power - 1) * self(jet)
            if power > 1 and np.any(noise := self._noise(jet, jet)):
                values = values - (power - 1) * noise * (self(jet, power - 2) if power > 2 else 1.0)
            self._values[jet, power] = values
        return self._values[jet, power]

    def _first(self, jet: Jet | FunctionOfFields) -> Array:
        return jet.values(self) if isinstance(jet, FunctionOfFields) else self._jet(jet)

    def monomial(self, monomial: FieldTerm) -> Array | float:
        """Return a product of powers of jets; 1 for the empty one."""
        if self._covariance and len(monomial.factors) > 1:
            return self._unbiased(monomial, {})
        total: Array | float = 1.0
        for jet, power in monomial.factors:
            total = self(jet, power) * total
        return total

    def _unbiased(self, monomial: FieldTerm, known: dict[FieldTerm, Array | float]) -> Array | float:
        """Return a product of noisy jets; its factors, products of several jets too, are known once computed."""
        if len(monomial.factors) < 2:
            return self.monomial(monomial)
        if monomial not in known:
            jet, rest = monomial.factors[0][0], monomial.without_one(0)
            known[monomial] = self(jet) * self._unbiased(rest, known)
            for place, (other, power) in enumerate(rest.factors):
                if np.any(noise := self._noise(jet, other)):
                    known[monomial] -= power * noise * self._unbiased(rest.without_one(place), known)
        return known[monomial]

    def _noise(self, one: Jet | FunctionOfFields, other: Jet | FunctionOfFields) -> Array | float:
        if not (self._covariance and isinstance(one, Jet) and isinstance(other, Jet)):
            return 0.0
        if (one, other) not in self._noises:
            self._noises[one, other] = self._covariance(one, other)
        return self._noises[one, other]

    def minus(self, errors: Mapping[int, Callable[[Orders], Array]]) -> Jets:
        """Return the jets of fields less some errors, given by field as their derivatives: these are noise no more."""
        error = cache(lambda jet: errors[jet.field](jet.orders))

        def left(one: Jet, other: Jet) -> Array | float:
            found = np.mean(error(one) * error(other)) if {one.field, other.field} <= set(errors) else 0.0
            return self._noise(one, other) - float(found)

        def less(jet: Jet) -> Array:
            return self(jet) - error(jet) if jet.field in errors else self(jet)

        return Jets(less, left if self._covariance else None)

    def total(self, polynomial: Mapping[FieldTerm, float]) -> Array | float:
        """Return a sum of monomials with their coefficients."""
        return sum(coefficient * self.monomial(monomial) for monomial, coefficient in polynomial.items())


# Weak form and noise


def weak_form(term: FieldTerm, n_axes: int = 1) -> WeakSum:
    """Return the sum Σ c ⟨∂^α φ, monomial⟩ that equals ⟨φ, θ⟩, with so many space axes.

    Examples
    --------
    u u_x is −⟨φ_x, u²⟩/2:

    >>> ((orders, monomial), number), = weak_form(FieldTerms(1, 1).terms()[3]).items()
    >>> orders, monomial.name("u", "x"), number
    ((1,), 'u^2', -0.5)
    """
    derived = term.derived_power
    if derived is not None:
        return {(derived.orders, derived.base): (-1.0) ** sum(derived.orders)}
    return _collected(_by_parts(term, (0,) * n_axes))


def noise_weights(term: FieldTerm) -> NoiseWeights:
    """Return A_gj of the term: the weights of ∂^j φ times the error of field g.

    Examples
    --------
    For u u_x it is φ_x with weight −u (the rest cancels):

    >>> (key, weight), = noise_weights(FieldTerms(1, 1).terms()[3]).items()
    >>> key, {monomial.name("u", "x"): number for monomial, number in weight.items()}
    ((0, (1,)), {'u': -1.0})
    """
    derived, parts = term.derived_power, []
    if derived is not None:
        weight = {derived.base.without_one(0): derived.power * (-1.0) ** sum(derived.orders)}
        return {(derived.field, derived.orders): weight}
    for position, (jet, power) in enumerate(term.factors):
        rest = term.without_one(position)
        if isinstance(jet, FunctionOfFields):
            parts += [(((field, jet.orders), rest * inner), power * number) for field, number, inner in jet.slopes()]
            continue
        for orders in product(*(range(order + 1) for order in jet.orders)):
            factor = power * (-1.0) ** sum(jet.orders) * prod(map(comb, jet.orders, orders))
            left = tuple(order - j for order, j in zip(jet.orders, orders, strict=True))
            parts += [(((jet.field, orders), one), factor * c) for one, c in _derivatives(rest, left).items()]
    weights: NoiseWeights = {}
    for (key, monomial), coefficient in _collected(parts).items():
        weights.setdefault(key, {})[monomial] = coefficient
    return weights


def _collected(parts: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    """Return the sums of all parts with the same key; those that vanish are left out."""
    total: dict[Key, float] = defaultdict(float)
    for key, value in parts:
        total[key] += value
    return {key: value for key, value in total.items() if value}


@lru_cache(maxsize=4096)
def _derivatives(monomial: FieldTerm, orders: Orders) -> dict[FieldTerm, float]:
    """Return a mixed derivative of a monomial."""
    total = {monomial: 1.0}
    for axis in (axis for axis, order in enumerate(orders) for _ in range(order)):
        total = _collected((one, c * factor) for member, c in total.items() for factor, one in member.derivative(axis))
    return total


def _by_parts(monomial: FieldTerm, test: Orders) -> Iterator[tuple[tuple[Orders, FieldTerm], float]]:
    """Yield the parts of ⟨∂^test φ, monomial⟩ after all integrations."""
    found = _integrable(monomial)
    if found is None:
        yield (test, monomial), 1.0
        return
    axis, power, raised, rest = found
    more = (*test[:axis], test[axis] + 1, *test[axis + 1 :])
    pieces = [(more, rest, 1.0), *((test, derived, factor) for factor, derived in rest.derivative(axis))]
    for orders, piece, factor in pieces:
        for key, coefficient in _by_parts(raised * piece, orders):
            yield key, -factor * coefficient / power


def _integrable(monomial: FieldTerm) -> tuple[int, int, FieldTerm, FieldTerm] | None:
    """Return axis, k + 1, v^{k+1} and M where the monomial is v^k ∂_a v M with M of lower order than v."""
    highest = max((sum(jet.orders) for jet, _ in monomial.factors), default=0)
    top = [(jet, power) for jet, power in monomial.factors if sum(jet.orders) == highest]
    if highest == 0 or len(top) > 1 or top[0][1] > 1:
        return None
    jet = top[0][0]
    for axis, order in enumerate(jet.orders):
        if not order:
            continue
        lower = jet.raised(axis, -1)
        rest = FieldTerm(tuple(one for one in monomial.factors if one[0] not in (jet, lower)))
        if all(sum(other.orders) < highest - 1 for other, _ in rest.factors):
            power = dict(monomial.factors).get(lower, 0) + 1
            return axis, power, FieldTerm(((lower, power),)), rest
    return None
