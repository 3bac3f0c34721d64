"""A candidate term is a product of powers of factors; its name, its derivative and its values follow from that alone.

A factor is a state x_l or a function of states such as sin(x_l). It has the states it depends on, `arguments`; it is
`written` as text, in LaTeX, or as Python with NumPy as `np`, and in `sympy`, given the names of all states; and its
`derivative` by a state is a sum of numbers times terms, so that Jacobians are values of other terms. Functions have
`values` at states of shape (n_states, rows). `CompiledTerms` computes values. Terms of fields have
jets, derivatives of fields, as factors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Index
from ardea.dynamics.differences import slope_of
from ardea.names import default_names, import_sympy, is_plain_name, latex_name

# Values may be complex, so that a complex step through a library gives a derivative to all digits.
Values = NDArray[Any]
Style = Literal["name", "latex", "python"]
Orders = tuple[int, ...]
# Values computed at once, so that they and their copies stay in the cache (measured: fastest of 2¹³ to 2¹⁷, with 56 and
# with 861 terms).
BLOCK_VALUES = 2**16
LATEX_FUNCTIONS = {"sin", "cos", "tan", "exp", "log", "sinh", "cosh", "tanh", "arctan", "arcsin", "arccos"}
BRACES = str.maketrans({"{": "{{", "}": "}}"})
SYMPY_FUNCTIONS = {"sin", "cos", "tan", "exp", "log", "sqrt", "sinh", "cosh", "tanh", "sign", "Abs"}


@dataclass(frozen=True)
class State:
    """A state x_index."""

    index: int

    @property
    def arguments(self) -> tuple[int, ...]:
        """The state itself."""
        return (self.index,)

    def written(self, style: Style, names: Sequence[str]) -> str:
        """Return x, in LaTeX x_{0} for x0."""
        return latex_name(names[self.index]) if style == "latex" else names[self.index]

    def sympy(self, names: Sequence[str]) -> Any:
        """Return its symbol."""
        return import_sympy().Symbol(names[self.index])

    def derivative(self, state: int) -> list[tuple[float, Term]]:
        """Return 1 by itself, nothing by others."""
        return [(1.0, Term())] if state == self.index else []


@dataclass(frozen=True)
class Wave:
    """sin(kx) or cos(kx)."""

    kind: str
    frequency: int
    index: int

    @property
    def arguments(self) -> tuple[int, ...]:
        """The one state."""
        return (self.index,)

    def written(self, style: Style, names: Sequence[str]) -> str:
        """Return sin(2 x), or its like."""
        call = {"name": "{}({})", "latex": "\\{}\\left({}\\right)", "python": "np.{}({})"}[style]
        times = " * " if style == "python" else " "
        angle = State(self.index).written(style, names)
        return call.format(self.kind, angle if self.frequency == 1 else f"{self.frequency}{times}{angle}")

    def sympy(self, names: Sequence[str]) -> Any:
        """Return SymPy's sine or cosine."""
        return getattr(import_sympy(), self.kind)(self.frequency * State(self.index).sympy(names))

    def values(self, columns: Values) -> Values:
        """Return sin(kx) or cos(kx)."""
        x = columns[self.index]
        angle = x if self.frequency == 1 else self.frequency * x
        return np.asarray(np.sin(angle) if self.kind == "sin" else np.cos(angle))

    def derivative(self, state: int) -> list[tuple[float, Term]]:
        """Return k cos(kx) for sin(kx) and −k sin(kx) for cos(kx)."""
        if state != self.index:
            return []
        sign, other = (1.0, "cos") if self.kind == "sin" else (-1.0, "sin")
        return [(sign * self.frequency, Term.of(Wave(other, self.frequency, self.index)))]


@dataclass(frozen=True)
class OwnFunction:
    """A user's function of some states, with a template of its name."""

    function: Callable[..., Any]
    arguments: tuple[int, ...]
    template: str | Callable[..., str]

    def written(self, style: Style, names: Sequence[str]) -> str:
        """Fill in the template; in Python, call NumPy's function or one that bears the name of the one given."""
        arguments = [State(state).written(style, names) for state in self.arguments]
        if style == "python":
            return f"{self._callable_name}({', '.join(arguments)})"
        name = self._filled(arguments)
        call = re.fullmatch(r"([A-Za-z]\w*)\((.*)\)", name)
        if style == "name" or not call:
            return name
        head = f"\\{call[1]}" if call[1] in LATEX_FUNCTIONS else "\\operatorname{" + call[1].replace("_", "\\_") + "}"
        return f"{head}\\left({call[2]}\\right)"

    def sympy(self, names: Sequence[str]) -> Any:
        """Return SymPy's function of that name if there is one, else an undefined function."""
        sympy, arguments = import_sympy(), [State(state).sympy(names) for state in self.arguments]
        head = self._generic_name.partition("(")[0]
        known = {"abs": "Abs", "absolute": "Abs"}.get(head, head)
        if known in SYMPY_FUNCTIONS and len(arguments) == 1:
            return getattr(sympy, known)(*arguments)
        return sympy.Function(head if head.isidentifier() else self._generic_name)(*arguments)

    def values(self, columns: Values) -> Values:
        """Return the values; a constant result counts for every row."""
        values = np.asarray(self.function(*(columns[state] for state in self.arguments)))
        if values.shape not in ((), columns[0].shape):
            raise ValueError(
                f"the library function {self._generic_name} returned shape {values.shape} for columns of shape "
                f"{columns[0].shape}; it must return one value per row"
            )
        return values

    def derivative(self, state: int) -> list[tuple[float, Term]]:
        """Return the derivative by each argument that is this state."""
        own = [i for i, argument in enumerate(self.arguments) if argument == state]
        name = self.template if isinstance(self.template, str) else self._generic_name.translate(BRACES)
        return [(1.0, Term.of(OwnFunction(slope_of(self.function, i), self.arguments, f"d{i} {name}"))) for i in own]

    def _filled(self, arguments: Sequence[str]) -> str:
        if not isinstance(self.template, str):
            return self.template(*arguments)
        # One state may be named several times.
        times = max(self.template.count("{}"), 1) if len(arguments) == 1 else 1
        return self.template.format(*[*arguments] * times)

    @property
    def _callable_name(self) -> str:
        head = getattr(self.function, "__name__", "")
        if not is_plain_name(head):
            raise ValueError(f"{self._generic_name} stands for a function without a name, which code cannot call")
        return f"np.{head}" if isinstance(self.function, np.ufunc) else head

    @property
    def _generic_name(self) -> str:
        return self._filled(default_names(len(self.arguments), "a"))


@dataclass(frozen=True)
class Term:
    """Product of factors with positive integer exponents; the empty product is the constant 1.

    Attributes
    ----------
    factors : tuple of (Factor, int)
        Sorted: states first, then functions.

    Examples
    --------
    >>> x, y = Term.monomial([0]), Term.monomial([1])
    >>> (x * y * x).name(["x", "y"])
    'x^2 y'
    >>> [(number, term.name(["x", "y"])) for number, term in (x * y * x).derivative(0)]
    [(2.0, 'x y')]
    """

    factors: tuple[tuple[Any, int], ...] = ()
    # How LaTeX parts the factors.
    SPACE: ClassVar[str] = "\\, "

    @classmethod
    def of(cls, factor: Any) -> Self:
        """Return the term of one factor."""
        return cls(((factor, 1),))

    @staticmethod
    def sort_key(factor: Any) -> Any:
        """States first, then functions, each in the order of the states they hold."""
        names = default_names(max(factor.arguments) + 1)
        return not isinstance(factor, State), factor.arguments, factor.written("name", names)

    @classmethod
    def monomial(cls, states: Iterable[int]) -> Term:
        """Return the product of the states listed in ascending order, with repetition."""
        exponents: dict[int, int] = {}
        for state in states:
            exponents[state] = exponents.get(state, 0) + 1
        return cls(tuple((State(state), exponent) for state, exponent in exponents.items()))

    @property
    def is_constant(self) -> bool:
        """Whether this is the term 1."""
        return not self.factors

    @property
    def degree(self) -> int:
        """Number of factors, each as often as it stands there."""
        return sum(exponent for _, exponent in self.factors)

    @property
    def arguments(self) -> list[int]:
        """The states in it, in ascending order."""
        return sorted({state for factor, _ in self.factors for state in factor.arguments})

    @property
    def letters(self) -> tuple[str, ...]:
        """The unknown constants inside its factors."""
        return tuple(letter for factor, _ in self.factors for letter in getattr(factor, "letters", ()))

    def with_constants(self, letters: Sequence[str], values: Sequence[float]) -> Self:
        """Return the term with other letters and values for the constants inside its factors."""
        left, factors = iter(zip(letters, values, strict=True)), []
        for factor, exponent in self.factors:
            own = [next(left) for _ in getattr(factor, "letters", ())]
            factors.append((factor.with_constants(*zip(*own, strict=True)) if own else factor, exponent))
        return type(self)(tuple(factors))

    def __mul__(self, other: Self) -> Self:
        exponents = dict(self.factors)
        for factor, exponent in other.factors:
            exponents[factor] = exponents.get(factor, 0) + exponent
        return type(self)(tuple(sorted(exponents.items(), key=lambda item: self.sort_key(item[0]))))

    def without_one(self, position: int) -> Self:
        """Return the term without one of the factors at that position."""
        factor, exponent = self.factors[position]
        left = ((factor, exponent - 1),) if exponent > 1 else ()
        return type(self)(self.factors[:position] + left + self.factors[position + 1 :])

    def split(self) -> tuple[Self, Self]:
        """Return the first factor and the rest."""
        return self.of(self.factors[0][0]), self.without_one(0)

    def derivative(self, state: int) -> list[tuple[float, Self]]:
        """Return ∂/∂x_state as a sum of coefficient times term (product and chain rule)."""
        return [
            (exponent * number, self.without_one(position) * inner)
            for position, (factor, exponent) in enumerate(self.factors)
            for number, inner in factor.derivative(state)
        ]

    # Writing: given are the names of the states, or those of the fields and of the axes.

    def name(self, *names: Sequence[str]) -> str:
        """Return the name that users of PySINDy know: `1`, `x`, `x^2 y`, `x sin(y)`.

        Where a factor is several words, as in `(wind speed)^2 · height`, dots stand between factors.
        """
        words = [factor.written("name", *names) for factor, _ in self.factors]
        spaced = any(" " in word for word in words)
        parts = [
            f"({word})^{e}" if e > 1 and " " in word else f"{word}^{e}" if e > 1 else word
            for word, (_, e) in zip(words, self.factors, strict=True)
        ]
        return (" · " if spaced else " ").join(parts) or "1"

    def latex(self, *names: Sequence[str]) -> str:
        """Return the LaTeX form."""
        parts = []
        for factor, exponent in self.factors:
            base = factor.written("latex", *names)
            call = f"\\left({base}\\right)" if "\\left" in base and exponent > 1 else base
            parts.append(f"{call}^{{{exponent}}}" if exponent > 1 else base)
        return self.SPACE.join(parts) or "1"

    def sympy(self, *names: Sequence[str]) -> Any:
        """Return the SymPy expression."""
        return import_sympy().Mul(*(factor.sympy(*names) ** exponent for factor, exponent in self.factors))

    def python(self, *names: Sequence[str]) -> str:
        """Return the product in Python: `1.0`, `x**2 * np.sin(y)`."""
        parts = [factor.written("python", *names) + (f"**{e}" if e > 1 else "") for factor, e in self.factors]
        return " * ".join(parts) or "1.0"

    def variables(self, *names: Sequence[str]) -> list[str]:
        """Return how the factors are written in Python."""
        return [factor.written("python", *names) for factor, _ in self.factors]


class Jet(NamedTuple):
    """A derivative ∂^orders (u_field^power), its orders along the space axes; the field itself has orders zero."""

    field: int
    orders: Orders
    power: int = 1

    def raised(self, axis: int, by: int = 1) -> Jet:
        """Return the jet with its order along an axis changed."""
        return self._replace(orders=(*self.orders[:axis], self.orders[axis] + by, *self.orders[axis + 1 :]))

    def written(self, style: Style, fields: Sequence[str], axes: Sequence[str]) -> str:
        """Return u, u_xx, (u^2)_xx, in LaTeX u_{xx}; in Python derivatives are variables of such names, u_xx, u2_xx."""
        along = "".join(axis * order for axis, order in zip(axes, self.orders, strict=True))
        name = fields[self.field] if style != "latex" else latex_name(fields[self.field])
        if not along:
            return name
        if self.power > 1:
            name = {"name": "({}^{})", "latex": "({}^{{{}}})", "python": "{}{}"}[style].format(name, self.power)
        elif style == "latex" and "_" in name:
            name = f"{{{name}}}"
        return f"{name}_{{{along}}}" if style == "latex" else f"{name}_{along}"

    def sympy(self, fields: Sequence[str], axes: Sequence[str]) -> Any:
        """Return the function u(x, …, t), or a derivative of its power."""
        sympy = import_sympy()
        space = [sympy.Symbol(name) for name in axes]
        function = sympy.Function(fields[self.field])(*space, sympy.Symbol("t")) ** self.power
        orders = [(axis, n) for axis, n in zip(space, self.orders, strict=True) if n]
        return sympy.Derivative(function, *orders) if orders else function

    def derivative(self, axis: int) -> list[tuple[float, FieldTerm]]:
        """Return ∂_a of the jet."""
        return [(1.0, FieldTerm.of(self.raised(axis)))]

    @property
    def base(self) -> FieldTerm:
        """The power of the field of which it is a derivative."""
        return FieldTerm(((Jet(self.field, (0,) * len(self.orders)), self.power),))


class FunctionOfFields(NamedTuple):
    """A function of fields, such as sin(u): a factor of terms of states, where the states are fields."""

    factor: Any
    orders: Orders  # zeros, as many as there are space axes

    def written(self, style: Style, fields: Sequence[str], _axes: Sequence[str]) -> str:
        """Return sin(u), or its like."""
        return str(self.factor.written(style, fields))

    def sympy(self, fields: Sequence[str], axes: Sequence[str]) -> Any:
        """Return the function of the functions u(x, …, t)."""
        named = {import_sympy().Symbol(name): Jet(i, self.orders).sympy(fields, axes) for i, name in enumerate(fields)}
        return self.factor.sympy(fields).subs(named)

    def values(self, field: Callable[[Jet], Values]) -> Values:
        """Return the values, given those of the fields."""
        columns = [field(Jet(i, self.orders)) for i in range(max(self.factor.arguments) + 1)]
        with np.errstate(all="ignore"):  # what is not finite is left out, and told
            return np.broadcast_to(self.factor.values(columns), columns[0].shape)

    def slopes(self) -> list[tuple[int, float, FieldTerm]]:
        """Return fields, numbers and terms: f′ by each field is the sum of numbers times terms."""
        return [
            (state, number, FieldTerm.of_states(inner, len(self.orders)))
            for state in dict.fromkeys(self.factor.arguments)
            for number, inner in self.factor.derivative(state)
        ]

    def derivative(self, axis: int) -> list[tuple[float, FieldTerm]]:
        """Return ∂_a f(u) = f′(u) ∂_a u."""
        return [
            (number, inner * FieldTerm.of(Jet(state, self.orders).raised(axis)))
            for state, number, inner in self.slopes()
        ]


@dataclass(frozen=True)
class FieldTerm(Term):
    """A differential monomial: a product of powers of jets, such as `u^2 u_xx`, and of functions. Fields stand first.

    Or a derivative of a power, such as `(u^2)_xx`, as its only factor.
    """

    SPACE: ClassVar[str] = " "

    @staticmethod
    def sort_key(factor: Any) -> Any:
        """By the order of the derivative, then by field; functions follow the fields."""
        function = isinstance(factor, FunctionOfFields)
        return sum(factor.orders), function, Term.sort_key(factor.factor) if function else factor

    @classmethod
    def of_states(cls, term: Term, n_axes: int) -> FieldTerm:
        """Return a term of states as one of fields."""
        plain = (0,) * n_axes
        return cls(
            tuple(
                (Jet(factor.index, plain) if isinstance(factor, State) else FunctionOfFields(factor, plain), power)
                for factor, power in term.factors
            )
        )

    @property
    def derived_power(self) -> Jet | None:
        """The derivative of a power that it is, if it is one."""
        first = self.factors[0][0] if self.factors else None
        return first if isinstance(first, Jet) and first.power > 1 else None


class CompiledTerms:
    """The values of some terms, at one row or at many.

    All values lie on slots: the states, the constant (`constant` is its slot, if some term needs it), `functions`, then
    `products` degree by degree: slots of a product, of its first factor, and of the rest of it, both on earlier slots,
    so that a degree is one NumPy call. The terms are on `slots`; `arguments` are the states in them.
    """

    def __init__(self, terms: Sequence[Term], n_states: int) -> None:
        if len(set(terms)) != len(terms):
            raise ValueError("the list of terms holds a term twice")
        slot_of = _slots_of_states(n_states).copy()
        by_degree = sorted(((term.degree, number, term) for number, term in enumerate(_with_parts(terms))))
        for _, _, term in by_degree:
            slot_of.setdefault(term, len(slot_of))
        self.n_states, self.n_slots = n_states, len(slot_of)
        self.arguments = sorted({state for term in terms for state in term.arguments})
        self.slots: Index = np.array([slot_of[term] for term in terms], dtype=np.intp)
        self.constant = slot_of.get(Term())
        single = [(slot_of[term], term.factors[0][0]) for degree, _, term in by_degree if degree == 1]
        self.functions = [(slot, factor) for slot, factor in single if not isinstance(factor, State)]
        higher = [(degree, term) for degree, _, term in by_degree if degree > 1]
        self.products = [(slot_of[term], *(slot_of[part] for part in term.split())) for _, term in higher]
        degrees = np.array([degree for degree, _ in higher])
        table = np.array(self.products, dtype=np.intp).reshape(-1, 3)
        self._levels = [table[degrees == degree].T for degree in np.unique(degrees)]

    def on_slots(self, columns: Values) -> Values:
        """Return all slots, shape (n_slots, rows), at states of shape (n_states, rows)."""
        values = np.empty((self.n_slots, columns.shape[1]), dtype=np.result_type(columns.dtype, np.float64))
        values[: self.n_states] = columns
        if self.constant is not None:
            values[self.constant] = 1.0
        for slot, factor in self.functions:
            values[slot] = factor.values(columns)
        for slots, first, rest in self._levels:
            out = values[slots[0] : slots[-1] + 1]
            np.multiply(values.take(first, axis=0), values.take(rest, axis=0), out=out)
        return values

    def values(self, columns: Values) -> Values:
        """Return the terms, shape (n_terms, rows)."""
        rows = columns.shape[1]
        out = np.empty((len(self.slots), rows), dtype=np.result_type(columns.dtype, np.float64))
        block = max(1, BLOCK_VALUES // self.n_slots)
        for start in range(0, rows, block):
            out[:, start : start + block] = self.on_slots(columns[:, start : start + block])[self.slots]
        return out


@lru_cache(maxsize=256)
def _slots_of_states(n_states: int) -> dict[Term, int]:
    return {Term.of(State(i)): i for i in range(n_states)}


def _with_parts(terms: Iterable[Term]) -> list[Term]:
    """Return the terms and all that their products are built from."""
    found: dict[Term, None] = {}
    for term in terms:
        while term not in found:
            found[term] = None
            if term.degree > 1:
                first, term = term.split()
                found[first] = None
    return list(found)
