"""Terms of a field equation under a test function: integration by parts, and how noise in the fields enters.

A jet is a derivative ∂^β u_f of a field; the field itself has β = 0. A differential monomial is a product of powers of
jets, for instance u² u_x³. Two sums of them are derived here for a term θ = m(u) ∂^β u_f, exactly and once:

- `weak_form`: ⟨φ, θ⟩ = Σ c ⟨∂^α φ, monomial⟩ with derivatives moved to φ as far as they go. While a monomial has one
  jet w = ∂_a v of highest order and power one, v^k w M = ∂_a(v^{k+1}) M/(k+1) gives

      ⟨φ, v^k w M⟩ = −[⟨∂_a φ, v^{k+1} M⟩ + ⟨φ, v^{k+1} ∂_a M⟩]/(k+1).

  It stops where M holds other jets of the order of v, since ∂_a M would then bring back the order of w. For u^p ∂^q u
  with q ≤ 4 at most u_xx is left.
- `noise_weights`: to first order in errors e_g of the fields, the error of ⟨φ, θ⟩ is Σ_g Σ_j ⟨A_gj ∂^j φ, e_g⟩ with
  A_fj = (−1)^|β| C(β, j) ∂^{β−j} m for j ≤ β, and at j = 0 in addition ∂m/∂u_g ∂^β u_f.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import comb, prod
from typing import TypeVar

from ardea.dynamics.field_library import FieldTerm

Orders = tuple[int, ...]
# A derivative of a field: which field, and the orders along the space axes.
Jet = tuple[int, Orders]
# Sorted jets with their powers.
Monomial = tuple[tuple[Jet, int], ...]
Polynomial = dict[Monomial, float]
# Coefficients of ⟨∂^orders φ, monomial⟩.
WeakSum = dict[tuple[Orders, Monomial], float]
# Per field and orders of the test function, the weight of an error of that field.
NoiseWeights = dict[tuple[int, Orders], Polynomial]

Key = TypeVar("Key")


def term_monomial(term: FieldTerm) -> Monomial:
    """Return a term of a library as a differential monomial.

    Examples
    --------
    >>> term_monomial(FieldTerm((2,), 0, (3,)))
    (((0, (0,)), 2), ((0, (3,)), 1))
    """
    factors = _powers_of_fields(term)
    if term.field is not None:
        factors[term.field, term.orders] = factors.get((term.field, term.orders), 0) + 1
    return _monomial(factors)


def weak_form(term: FieldTerm) -> WeakSum:
    """Return the sum Σ c ⟨∂^α φ, monomial⟩ that equals ⟨φ, θ⟩.

    Examples
    --------
    u u_x is −⟨φ_x, u²⟩/2:

    >>> weak_form(FieldTerm((1,), 0, (1,)))
    {((1,), (((0, (0,)), 2),)): -0.5}
    """
    total: WeakSum = {}
    for key, coefficient in _by_parts(term_monomial(term), (0,) * len(term.orders)):
        add_to(total, key, coefficient)
    return total


def noise_weights(term: FieldTerm) -> NoiseWeights:
    """Return A_gj of the term: the weights of ∂^j φ times the error of field g.

    Examples
    --------
    For u_xx it is φ_xx with weight 1, and for u u_x it is φ_x with weight −u (the rest cancels):

    >>> noise_weights(FieldTerm((0,), 0, (2,)))
    {(0, (2,)): {(): 1.0}}
    >>> noise_weights(FieldTerm((1,), 0, (1,)))
    {(0, (1,)): {(((0, (0,)), 1),): -1.0}}
    """
    powers = _powers_of_fields(term)
    outer = _monomial(powers)
    weights: NoiseWeights = {}

    def add(field: int, orders: Orders, polynomial: Polynomial, factor: float) -> None:
        entry = weights.setdefault((field, orders), {})
        for monomial, coefficient in polynomial.items():
            add_to(entry, monomial, factor * coefficient)

    if term.field is not None:
        sign = (-1.0) ** sum(term.orders)
        for orders in product(*(range(order + 1) for order in term.orders)):
            left = tuple(order - j for order, j in zip(term.orders, orders, strict=True))
            add(term.field, orders, _derivatives(outer, left), sign * prod(map(comb, term.orders, orders)))
    factor = {} if term.field is None else {(term.field, term.orders): 1}
    none = (0,) * len(term.orders)
    for jet, power in powers.items():
        rest = {**powers, jet: power - 1}
        add(jet[0], none, {_product(_monomial(rest), _monomial(factor)): 1.0}, float(power))
    return {key: polynomial for key, polynomial in weights.items() if polynomial}


def add_to(total: dict[Key, float], key: Key, value: float) -> None:
    """Add a value to an entry of a sum; entries that vanish are left out."""
    value += total.get(key, 0.0)
    if value:
        total[key] = value
    else:
        total.pop(key, None)


def _powers_of_fields(term: FieldTerm) -> dict[Jet, int]:
    none = (0,) * len(term.orders)
    return {(field, none): power for field, power in enumerate(term.exponents) if power}


def _monomial(factors: dict[Jet, int]) -> Monomial:
    return tuple(sorted((jet, power) for jet, power in factors.items() if power))


def _product(left: Monomial, right: Monomial) -> Monomial:
    factors = dict(left)
    for jet, power in right:
        factors[jet] = factors.get(jet, 0) + power
    return _monomial(factors)


def _raised(jet: Jet, axis: int, by: int) -> Jet:
    """Return the jet with its order along an axis changed."""
    field, orders = jet
    return field, (*orders[:axis], orders[axis] + by, *orders[axis + 1 :])


@lru_cache(maxsize=4096)
def _derivative(monomial: Monomial, axis: int) -> tuple[tuple[Monomial, float], ...]:
    """Return ∂_a of a monomial by the product rule."""
    total: Polynomial = {}
    for jet, power in monomial:
        rest = _monomial({**dict(monomial), jet: power - 1})
        add_to(total, _product(rest, ((_raised(jet, axis, 1), 1),)), float(power))
    return tuple(total.items())


def _derivatives(monomial: Monomial, orders: Orders) -> Polynomial:
    """Return a mixed derivative of a monomial."""
    total: Polynomial = {monomial: 1.0}
    for axis, order in enumerate(orders):
        for _ in range(order):
            following: Polynomial = {}
            for member, coefficient in total.items():
                for derived, factor in _derivative(member, axis):
                    add_to(following, derived, coefficient * factor)
            total = following
    return total


def _by_parts(monomial: Monomial, test: Orders) -> Iterator[tuple[tuple[Orders, Monomial], float]]:
    """Yield the parts of ⟨∂^test φ, monomial⟩ after all integrations."""
    found = _integrable(monomial)
    if found is None:
        yield (test, monomial), 1.0
        return
    axis, power, raised, rest = found
    more = (*test[:axis], test[axis] + 1, *test[axis + 1 :])
    pieces = [(more, _product(raised, rest), 1.0)]
    pieces += [(test, _product(raised, derived), factor) for derived, factor in _derivative(rest, axis)]
    for orders, piece, factor in pieces:
        for key, coefficient in _by_parts(piece, orders):
            yield key, -factor * coefficient / power


def _integrable(monomial: Monomial) -> tuple[int, int, Monomial, Monomial] | None:
    """Return axis, k + 1, v^{k+1} and M where the monomial is v^k ∂_a v M with M of lower order than v."""
    highest = max((sum(orders) for (_, orders), _ in monomial), default=0)
    top = [(jet, power) for jet, power in monomial if sum(jet[1]) == highest]
    if highest == 0 or len(top) > 1 or top[0][1] > 1:
        return None
    jet = top[0][0]
    for axis, order in enumerate(jet[1]):
        if not order:
            continue
        lower = _raised(jet, axis, -1)
        rest = {other: power for other, power in monomial if other not in (jet, lower)}
        if all(sum(orders) < highest - 1 for _, orders in rest):
            power = dict(monomial).get(lower, 0) + 1
            return axis, power, ((lower, power),), _monomial(rest)
    return None
