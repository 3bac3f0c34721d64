"""Libraries of candidate terms of fields: monomials times derivatives, u^p ∂^q u."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ardea.dynamics.libraries import Wording, check_count, checked_names
from ardea.dynamics.terms import CompiledTerms, Term, Values
from ardea.names import default_names, import_sympy, latex_name


@dataclass(frozen=True)
class FieldTerm:
    """A monomial of the fields times one derivative of one field.

    Attributes
    ----------
    exponents : tuple of int
        Exponent of every field in the monomial.
    field : int or None
        Which field is differentiated; None: the factor is 1.
    orders : tuple of int
        Order of the derivative along every space axis; zeros when `field` is None.
    """

    exponents: tuple[int, ...]
    field: int | None
    orders: tuple[int, ...]

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
        check_count("powers", self.powers, 0)
        check_count("derivatives", self.derivatives, 0)

    def terms(self, n_fields: int = 1, n_axes: int = 1) -> tuple[FieldTerm, ...]:
        """Return the terms in the order of the columns."""
        return _field_terms(self, n_fields, n_axes)

    def n_terms(self, n_fields: int = 1, n_axes: int = 1) -> int:
        """Return the number of terms."""
        return len(self.terms(n_fields, n_axes))

    def names(self, field_names: Sequence[str] = ("u",), axis_names: Sequence[str] = ("x",)) -> list[str]:
        """Return the names of the terms: `1`, `u`, `u^2`, `u_x`, `u u_x`, `u^2 u_xxxx`."""
        return self.vocabulary(field_names, axis_names).names

    def vocabulary(self, field_names: Sequence[str] = ("u",), axis_names: Sequence[str] = ("x",)) -> Wording:
        """Return how the terms are written for fields and space axes of these names."""
        fields, axes = checked_names(field_names), checked_names(axis_names)
        return Wording(self.terms(len(fields), len(axes)), (fields, axes))

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
        values = np.empty((len(chosen), columns.shape[1]))
        rows: dict[tuple[int | None, tuple[int, ...]], list[int]] = {}
        for row, term in enumerate(chosen):
            rows.setdefault((term.field, term.orders), []).append(row)
        for (field_index, orders), members in rows.items():
            factor = 1.0 if field_index is None else np.ravel(derivative(field_index, orders))
            for row in members:
                np.multiply(monomials[chosen[row].exponents], factor, out=values[row])
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
