"""Libraries of candidate terms: polynomials, waves, functions of one's own, their sums and products.

A library of an ordinary differential equation lists its terms for a number of states, `terms(n_states)`. Names,
values and derivatives follow from the terms (`ardea.dynamics.terms`). Two libraries add (union of their terms) and
multiply (all products of a term of one with a term of the other). Terms of fields: `ardea.dynamics.field_terms`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, reduce
from itertools import combinations, combinations_with_replacement
from math import comb, prod
from numbers import Integral
from operator import add, mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_scalar

from ardea.core.problem import Index
from ardea.dynamics.terms import CompiledTerms, OwnFunction, Term, Values, Wave
from ardea.names import Wording, checked_names, counted, default_names

# Convention: up to 10 states the default degree is 3, at most 286 candidates; above it is 2.
MANY_STATES = 10
# On so many rows, or twice as many as there are terms, chance makes no term a sum of others. Convention.
FEWEST_TRIALS = 50
# What is left of a term that is a sum of others is rounding error; T³ next to 1, T, T² leaves 1e-7 at 293 ± 2.
ROUNDING_OF_SUMS = 1e-12


class Library(ABC):
    """Candidate terms θ_i(x) of x' = Θ(x)ξ.

    A subclass gives `terms(n_states)`; all else is here. Libraries are immutable and hashable; what is derived from
    them is computed once per number of states.
    """

    @abstractmethod
    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the terms, all different, in the order of the columns of Θ."""

    def listed(self, n_states: int) -> tuple[Term, ...]:
        """Return the terms, the first of each name."""
        return _terms(self, n_states)

    def n_terms(self, n_states: int) -> int:
        """Return the number of terms for so many states."""
        return len(_terms(self, n_states))

    def n_listed(self, n_states: int) -> int:
        """Return the number of terms, repeated ones included, without listing them where that may take for ever."""
        return self.n_terms(n_states)

    def degrees(self, n_states: int) -> list[int]:
        """Return the degrees of the terms."""
        return [term.degree for term in _terms(self, n_states)]

    def names(self, feature_names: Sequence[str]) -> list[str]:
        """Return the names of the terms: `1`, `x`, `x y`, `x^2 y`, `x sin(y)`, given one name per state."""
        return self.vocabulary(feature_names).names

    def vocabulary(self, feature_names: Sequence[str]) -> Wording:
        """Return how the terms are written for states of these names."""
        names = checked_names(feature_names)
        terms = _terms(self, len(names))
        if both := {letter for term in terms for letter in term.letters} & set(names):
            raise ValueError(f"{min(both)} is the name of a state and of a constant inside a term: rename the state.")
        return Wording(terms, (names,))

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

    def slopes(self, n_states: int, terms: tuple[int, ...]) -> tuple[CompiledTerms, sparse.csr_array]:
        """Return terms φ_j and numbers, shape (n_φ·n_states, terms), with ∂θ_i/∂x_l = Σ_j numbers[(j, l), i] φ_j."""
        return _slopes(self, n_states, terms)

    def curved(self, n_states: int, terms: tuple[int, ...] | None) -> list[tuple[int, Index, CompiledTerms]]:
        """Return for every state the places of terms (of all, or of those given) not linear in it, and these terms."""
        return _curved(self, n_states, terms)

    def distinct(self, states: Values, inputs: Values) -> list[int]:
        """Return the terms that are no sum of multiples of earlier ones at these inputs, whatever the states.

        With an input that is 0 or 1, u² is u; with one that is 2 or 5, u² is 7u − 10. Every state is dealt to inputs
        on its own and at random: only inputs, and what a function makes of the range of a state, leave sums. The
        diagonal of R in Θ = QR is what a column adds to those before it.
        """
        d = self.n_terms(states.shape[1] + inputs.shape[1])
        if not inputs.size:
            return list(range(d))
        seen = np.unique(inputs, axis=0)
        rows = np.tile(seen, (-(-max(FEWEST_TRIALS, 2 * d) // len(seen)), 1))
        dealt = np.random.default_rng(0).choice(len(states), size=(len(rows), states.shape[1]))
        theta = self.evaluate(np.hstack([np.take_along_axis(states, dealt, axis=0), rows]))
        added = np.abs(np.diag(np.linalg.qr(theta, mode="r")))
        return np.flatnonzero(added > ROUNDING_OF_SUMS * np.linalg.norm(theta, axis=0)).tolist()

    def directional(self, X: ArrayLike, coefficients: ArrayLike) -> Values:
        """Return ∂(Θξ)/∂x_l of one equation at every row, shape (rows, n_states); terms with ξ_i = 0 cost nothing."""
        X, xi = _checked_states(X), np.asarray(coefficients, dtype=float)
        support = np.flatnonzero(xi)
        reduced, numbers = _slopes(self, X.shape[1], tuple(support.tolist()))
        return np.asarray(reduced.values(X.T).T @ (numbers @ xi[support]).reshape(-1, X.shape[1]))

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


@dataclass(frozen=True)
class Fourier(Library):
    """sin(k x_l) and cos(k x_l) of every state, k = 1 … n.

    Parameters
    ----------
    n : int
        Largest frequency.

    Examples
    --------
    >>> Fourier(2).names(["x"])
    ['sin(x)', 'cos(x)', 'sin(2 x)', 'cos(2 x)']
    >>> (Polynomials(1, include_constant=False) * Fourier(1)).names(["x", "v"])
    ['x sin(x)', 'x cos(x)', 'x sin(v)', 'x cos(v)', 'v sin(x)', 'v cos(x)', 'v sin(v)', 'v cos(v)']
    """

    n: int = 1

    def __post_init__(self) -> None:
        check_scalar(self.n, "n", Integral, min_val=1)

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the waves: frequency by frequency, state by state, sine before cosine."""
        return tuple(
            Term.of(Wave(kind, frequency, state))
            for frequency in range(1, self.n + 1)
            for state in range(n_states)
            for kind in ("sin", "cos")
        )

    def n_listed(self, n_states: int) -> int:
        """Return the number of waves."""
        return 2 * self.n * n_states


@dataclass(frozen=True)
class Custom(Library):
    """Functions of one's own, of one or of several states.

    A function of one column is applied to every state; a function of two to every pair x_i, x_j with i < j; and so
    on. Functions must work on arrays, value by value. Their derivatives are computed numerically.

    Parameters
    ----------
    functions : sequence of callables
        Each takes one or more columns and returns one.
    names : sequence, optional
        For every function a format template such as ``"exp({})"`` or ``"{0}/{1}"``, or a callable that turns the names
        of the states into the name of the term. Default: the name of the function, `f0`, `f1`, … for lambdas.

    Examples
    --------
    >>> library = Custom([np.exp, lambda x, y: x / y], ["exp({})", "{0}/{1}"])
    >>> library.names(["x", "y"])
    ['exp(x)', 'exp(y)', 'x/y']
    """

    functions: tuple[Callable[..., Any], ...]
    templates: tuple[str | Callable[..., str], ...]

    def __init__(
        self, functions: Iterable[Callable[..., Any]], names: Iterable[str | Callable[..., str]] | None = None
    ) -> None:
        given = tuple(functions)
        templates = tuple(_default_template(i, f) for i, f in enumerate(given)) if names is None else tuple(names)
        if len(given) != len(templates):
            raise ValueError(
                f"got {counted(len(given), 'function')} and {counted(len(templates), 'name')}; give one name for "
                "every function"
            )
        object.__setattr__(self, "functions", given)
        object.__setattr__(self, "templates", templates)

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return function by function its applications to the states."""
        return tuple(
            Term.of(OwnFunction(function, states, template))
            for function, template in zip(self.functions, self.templates, strict=True)
            for states in combinations(range(n_states), _arity(function))
        )


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
        return tuple(term for part in self.parts for term in _terms(part, n_states))

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
            products = tuple(left * right for left in products for right in _terms(part, n_states))
        return products

    def n_listed(self, n_states: int) -> int:
        """Return the number of products."""
        return prod(part.n_listed(n_states) for part in self.parts)


@lru_cache(maxsize=256)
def _terms(library: Library, n_states: int) -> tuple[Term, ...]:
    """Return the terms of the library, the first of each name."""
    names = default_names(n_states)
    first: dict[str, Term] = {}
    for term in library.terms(n_states):
        first.setdefault(term.name(names), term)
    return tuple(first.values())


@lru_cache(maxsize=2048)
def _compiled(library: Library, n_states: int, chosen: tuple[int, ...] | None) -> CompiledTerms:
    terms = _terms(library, n_states)
    return CompiledTerms(terms if chosen is None else [terms[i] for i in chosen], n_states)


@lru_cache(maxsize=2048)
def _slopes(library: Library, n_states: int, chosen: tuple[int, ...]) -> tuple[CompiledTerms, sparse.csr_array]:
    """Return terms φ_j and numbers, shape (n_φ·n_states, n_chosen), with ∂θ_i/∂x_l = Σ_j numbers[(j, l), i] φ_j."""
    terms = _terms(library, n_states)
    place: dict[Term, int] = {}
    entries = [
        (place.setdefault(reduced, len(place)) * n_states + state, column, number)
        for column, index in enumerate(chosen)
        for state in terms[index].arguments
        for number, reduced in terms[index].derivative(state)
    ]
    rows, columns, numbers = np.array(entries).reshape(-1, 3).T
    shape = (len(place) * n_states, len(chosen))
    return CompiledTerms(list(place), n_states), sparse.csr_array(
        (numbers, (rows.astype(int), columns.astype(int))), shape
    )


@lru_cache(maxsize=2048)
def _curved(library: Library, n_states: int, chosen: tuple[int, ...] | None) -> list[tuple[int, Index, CompiledTerms]]:
    terms = _terms(library, n_states)
    places: dict[int, list[int]] = {}
    indices = tuple(range(len(terms))) if chosen is None else chosen
    for place, index in enumerate(indices):
        for state in terms[index].arguments:
            if any(state in reduced.arguments for _, reduced in terms[index].derivative(state)):
                places.setdefault(state, []).append(place)
    return [
        (state, np.array(own), _compiled(library, n_states, tuple(indices[place] for place in own)))
        for state, own in places.items()
    ]


def _parts(library: Library, kind: type[SumOfLibraries] | type[ProductOfLibraries]) -> tuple[Library, ...]:
    return library.parts if isinstance(library, kind) else (library,)


def _checked_states(X: ArrayLike) -> Values:
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(f"states must have shape (rows, n_states), got {X.shape}; use x.reshape(-1, 1) for one state")
    return X


@cache
def _arity(function: Callable[..., Any]) -> int:
    """Return the number of columns a function takes: its positional parameters without a default."""
    if isinstance(function, np.ufunc):
        return function.nin
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise TypeError(f"cannot tell how many columns {function!r} takes; wrap it in a lambda") from error
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    arity = sum(p.kind in positional and p.default is p.empty for p in parameters)
    if arity == 0:
        raise ValueError(f"{function!r} takes no columns; a library function needs at least one")
    return arity


def as_library(given: Any) -> Any:
    """Return libraries of PySINDy, also in a dict, as ours, and anything else as it is."""
    if isinstance(given, Mapping):
        return {name: as_library(one) for name, one in given.items()}
    if not type(given).__module__.startswith("pysindy."):
        return given
    match type(given).__name__:
        case "PolynomialLibrary" if given.include_interaction and not given.interaction_only:
            return Polynomials(given.degree, include_constant=given.include_bias)
        case "FourierLibrary" if given.include_sin and given.include_cos:
            return Fourier(given.n_frequencies)
        case "CustomLibrary" if given.interaction_only:
            own = Custom(given.functions, given.function_names)
            return Polynomials(0) + own if given.include_bias else own
        case "ConcatLibrary":
            return reduce(add, map(as_library, given.libraries))
        case "TensoredLibrary" if given.inputs_per_library is None:
            return reduce(mul, map(as_library, given.libraries))
    raise TypeError(
        f"{given} of PySINDy has no counterpart. Taken are PolynomialLibrary, FourierLibrary and CustomLibrary with "
        "all their terms, and sums and products of these; for fields give FieldTerms and space=…."
    )


def _default_template(index: int, function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    return (name if name.isidentifier() else f"f{index}") + "(" + ", ".join(["{}"] * _arity(function)) + ")"
