"""Terms m(u) ∂^β u of fields: how they are written and evaluated, their weak form, and how noise enters them.

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

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import comb, prod
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from ardea.dynamics.terms import CompiledTerms, Term, Values
from ardea.names import Wording, checked_names, default_names, import_sympy, latex_name

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


@dataclass(frozen=True)
class FieldTerm:
    """A monomial of the fields times one derivative of one field."""

    exponents: tuple[int, ...]  # of every field in the monomial
    field: int | None  # the one differentiated; None: the factor is 1
    orders: Orders  # of the derivative along every space axis; zeros when `field` is None

    def name(self, field_names: Sequence[str], axis_names: Sequence[str]) -> str:
        """Return `1`, `u^2`, `u u_x`, `v u_xy`."""
        return " ".join(self._parts(field_names, self._derivative(field_names, axis_names), "{}^{}")) or "1"

    def latex(self, field_names: Sequence[str], axis_names: Sequence[str]) -> str:
        """Return the LaTeX form, `u^{2} u_{xx}`."""
        symbols = [latex_name(name) for name in field_names]
        bases = [f"{{{symbol}}}" if "_" in symbol else symbol for symbol in symbols]
        derivative = None if self.field is None else f"{bases[self.field]}_{{{self._axes(axis_names)}}}"
        return " ".join(self._parts(symbols, derivative, "{}^{{{}}}")) or "1"

    def sympy(self, field_names: Sequence[str], axis_names: Sequence[str]) -> Any:
        """Return the SymPy expression of functions u(x, …, t)."""
        sympy = import_sympy()
        space = [sympy.Symbol(name) for name in axis_names]
        fields = [sympy.Function(name)(*space, sympy.Symbol("t")) for name in field_names]
        product: Any = sympy.Integer(1)
        for function, exponent in zip(fields, self.exponents, strict=True):
            product = product * function**exponent
        if self.field is not None:
            order = [(axis, n) for axis, n in zip(space, self.orders, strict=True) if n]
            product = product * sympy.Derivative(fields[self.field], *order)
        return product

    def python(self, field_names: Sequence[str], axis_names: Sequence[str]) -> str:
        """Return the product in Python, derivatives as variables: `u**2 * u_xx`."""
        return " * ".join(self._parts(field_names, self._derivative(field_names, axis_names), "{}**{}")) or "1.0"

    def variables(self, field_names: Sequence[str], axis_names: Sequence[str]) -> list[str]:
        """Return the names that stand in the Python expression."""
        fields = [name for name, exponent in zip(field_names, self.exponents, strict=True) if exponent]
        derivative = self._derivative(field_names, axis_names)
        return fields if derivative is None else [*fields, derivative]

    @property
    def is_constant(self) -> bool:
        """Whether this is the term 1."""
        return self.field is None and not any(self.exponents)

    def _parts(self, fields: Sequence[str], derivative: str | None, power: str) -> list[str]:
        pairs = zip(fields, self.exponents, strict=True)
        factors = [power.format(name, exponent) if exponent > 1 else name for name, exponent in pairs if exponent]
        return factors if derivative is None else [*factors, derivative]

    def _derivative(self, field_names: Sequence[str], axis_names: Sequence[str]) -> str | None:
        return None if self.field is None else f"{field_names[self.field]}_{self._axes(axis_names)}"

    def _axes(self, axis_names: Sequence[str]) -> str:
        return "".join(axis * order for axis, order in zip(axis_names, self.orders, strict=True))


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

    Examples
    --------
    >>> FieldTerms(powers=1, derivatives=2).names(["u"])
    ['1', 'u', 'u_x', 'u u_x', 'u_xx', 'u u_xx']
    >>> FieldTerms(powers=0, derivatives=2).names(["u"], ["x", "y"])
    ['1', 'u_x', 'u_y', 'u_xx', 'u_xy', 'u_yy']
    """

    powers: int = 4
    derivatives: int = 4

    def __post_init__(self) -> None:
        check_scalar(self.powers, "powers", Integral, min_val=0)
        check_scalar(self.derivatives, "derivatives", Integral, min_val=0)

    def terms(self, n_fields: int = 1, n_axes: int = 1) -> tuple[FieldTerm, ...]:
        """Return the terms in the order of the columns."""
        return _field_terms(self, n_fields, n_axes)

    def n_terms(self, n_fields: int = 1, n_axes: int = 1) -> int:
        """Return the number of terms."""
        return len(self.terms(n_fields, n_axes))

    def n_listed(self, n_fields: int, n_axes: int) -> int:
        """Return a bound on the number of terms, without listing them."""
        return comb(n_fields + self.powers, n_fields) * comb(n_axes + self.derivatives, n_axes) * n_fields

    def names(self, field_names: Sequence[str] = ("u",), axis_names: Sequence[str] = ("x",)) -> list[str]:
        """Return the names of the terms: `1`, `u`, `u^2`, `u_x`, `u u_x`, `u^2 u_xxxx`."""
        return self.vocabulary(checked_names(field_names), checked_names(axis_names)).names

    def vocabulary(self, field_names: Sequence[str] = ("u",), axis_names: Sequence[str] = ("x",)) -> Wording:
        """Return how the terms are written for fields and space axes of these names, which differ."""
        return Wording(self.terms(len(field_names), len(axis_names)), (field_names, axis_names))

    def evaluate(
        self,
        fields: Sequence[ArrayLike],
        derivative: Callable[[int, tuple[int, ...]], ArrayLike],
        *,
        n_axes: int = 1,
        terms: Sequence[int] | None = None,
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

        Returns
        -------
        array of shape (grid points, n_terms) or (grid points, len(terms))
            Grid points in C order; columns are contiguous in memory.
        """
        columns = np.stack([np.asarray(field, dtype=float).ravel() for field in fields])
        listed = self.terms(len(columns), n_axes)
        chosen = listed if terms is None else [listed[i] for i in terms]
        monomials = _monomial_values(columns, [term.exponents for term in chosen])
        derivatives = {
            (index, orders): np.ravel(derivative(index, orders))
            for index, orders in dict.fromkeys((term.field, term.orders) for term in chosen)
            if index is not None
        }
        values = np.empty((len(chosen), columns.shape[1]))
        for row, term in zip(values, chosen, strict=True):
            factor = 1.0 if term.field is None else derivatives[term.field, term.orders]
            np.multiply(monomials[term.exponents], factor, out=row)
        return values.T


def default_field_names(n_fields: int) -> list[str]:
    """Return u; u, v; u, v, w; u0, u1, … for more than three fields."""
    return ["u", "v", "w"][:n_fields] if n_fields <= 3 else list(default_names(n_fields, "u"))


def default_axis_names(n_axes: int) -> list[str]:
    """Return x; x, y; x, y, z."""
    if n_axes > 3:
        raise ValueError(f"fields have at most 3 space axes, got {n_axes}")
    return ["x", "y", "z"][:n_axes]


@lru_cache(maxsize=64)
def _field_terms(library: FieldTerms, n_fields: int, n_axes: int) -> tuple[FieldTerm, ...]:
    none = (0,) * n_axes
    factors: list[tuple[int | None, tuple[int, ...]]] = [(None, none)]
    for order in range(1, library.derivatives + 1):
        factors += [(i, orders) for i in range(n_fields) for orders in _exponents(n_axes, order)]
    monomials = [e for degree in range(library.powers + 1) for e in _exponents(n_fields, degree)]
    return tuple(FieldTerm(exponents, index, orders) for index, orders in factors for exponents in monomials)


def _exponents(n: int, total: int) -> list[tuple[int, ...]]:
    """Return all exponents of n variables with the total degree given, in graded order."""
    return [tuple(chosen.count(i) for i in range(n)) for chosen in combinations_with_replacement(range(n), total)]


def _monomial_values(columns: Values, exponents: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], Values]:
    """Return every monomial wanted, shape (points,)."""
    wanted = list(dict.fromkeys(exponents))
    terms = [Term.monomial(i for i, exponent in enumerate(e) for _ in range(exponent)) for e in wanted]
    return dict(zip(wanted, CompiledTerms(terms, len(columns)).values(columns), strict=True))


# Weak form and noise


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
    return _collected(_by_parts(term_monomial(term), (0,) * len(term.orders)))


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
    powers, none = _powers_of_fields(term), (0,) * len(term.orders)
    parts = []
    if term.field is not None:
        for orders in product(*(range(order + 1) for order in term.orders)):
            left = tuple(order - j for order, j in zip(term.orders, orders, strict=True))
            factor = (-1.0) ** sum(term.orders) * prod(map(comb, term.orders, orders))
            derived = _derivatives(_monomial(powers), left)
            parts += [(((term.field, orders), monomial), factor * c) for monomial, c in derived.items()]
    differentiated = () if term.field is None else (((term.field, term.orders), 1),)
    for jet, power in powers.items():
        rest = _monomial({**powers, jet: power - 1})
        parts.append((((jet[0], none), _product(rest, differentiated)), float(power)))
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
def _derivative(monomial: Monomial, axis: int) -> Polynomial:
    """Return ∂_a of a monomial by the product rule."""
    return _collected(
        (_product(_monomial({**dict(monomial), jet: power - 1}), ((_raised(jet, axis, 1), 1),)), float(power))
        for jet, power in monomial
    )


def _derivatives(monomial: Monomial, orders: Orders) -> Polynomial:
    """Return a mixed derivative of a monomial."""
    total: Polynomial = {monomial: 1.0}
    for axis in (axis for axis, order in enumerate(orders) for _ in range(order)):
        derived = [(_derivative(member, axis), c) for member, c in total.items()]
        total = _collected((one, c * factor) for polynomial, c in derived for one, factor in polynomial.items())
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
    pieces += [(test, _product(raised, derived), factor) for derived, factor in _derivative(rest, axis).items()]
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
