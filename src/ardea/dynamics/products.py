"""A library term is a product of powers of atoms; its name, its derivative and its values follow from that alone.

An atom is a state x_l or a function of states such as sin(x_l). Differentiating a product gives a sum of products,
so Jacobians need no code of their own: they are values of other products.
"""

from __future__ import annotations

import importlib
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Values may be complex, so that a complex step through a library gives a derivative to all digits.
Values = NDArray[Any]
# Below this many products, one row is faster in Python floats than in NumPy calls.
SCALAR_PRODUCTS = 48


class Function(ABC):
    """A function of one or several states that can stand as a factor of a term."""

    @abstractmethod
    def __call__(self, *columns: Values) -> Values:
        """Return the values, one for every row of the columns."""

    @abstractmethod
    def name(self, *arguments: str) -> str:
        """Return the name, given the names of the arguments."""

    @abstractmethod
    def latex(self, *arguments: str) -> str:
        """Return the LaTeX form, given that of the arguments."""

    @abstractmethod
    def sympy(self, *arguments: Any) -> Any:
        """Return the SymPy expression of SymPy arguments."""

    @abstractmethod
    def python(self, *arguments: str) -> str:
        """Return a call in Python, with NumPy as `np`."""

    @abstractmethod
    def partial(self, argument: int) -> tuple[float, Function]:
        """Return c and g with ∂f/∂(argument) = c·g."""


@dataclass(frozen=True)
class Atom:
    """A state (no function), or a function of the states listed."""

    states: tuple[int, ...]
    function: Function | None = None

    def name(self, feature_names: Sequence[str]) -> str:
        """Return x, or sin(x)."""
        arguments = [feature_names[state] for state in self.states]
        return arguments[0] if self.function is None else self.function.name(*arguments)

    def latex(self, feature_names: Sequence[str]) -> str:
        """Return the LaTeX form."""
        arguments = [latex_symbol(feature_names[state]) for state in self.states]
        return arguments[0] if self.function is None else self.function.latex(*arguments)

    def sympy(self, symbols: Sequence[Any]) -> Any:
        """Return the SymPy form."""
        arguments = [symbols[state] for state in self.states]
        return arguments[0] if self.function is None else self.function.sympy(*arguments)

    def python(self, feature_names: Sequence[str]) -> str:
        """Return the Python form."""
        arguments = [feature_names[state] for state in self.states]
        return arguments[0] if self.function is None else self.function.python(*arguments)

    def derivative(self, state: int) -> list[tuple[float, Term]]:
        """Return ∂/∂x_state as a sum of coefficient times term."""
        if self.function is None:
            return [(1.0, Term())] if state == self.states[0] else []
        inner = [self.function.partial(i) for i, argument in enumerate(self.states) if argument == state]
        return [(factor, Term.function(function, self.states)) for factor, function in inner]

    def sort_key(self) -> tuple[bool, tuple[int, ...], str]:
        """States first, then functions, each in the order of the states they hold."""
        return self.function is not None, self.states, self.name([f"x{i}" for i in range(max(self.states) + 1)])


@dataclass(frozen=True)
class Term:
    """Product of atoms with positive integer exponents; the empty product is the constant 1.

    Attributes
    ----------
    atoms : tuple of (Atom, int)
        Sorted: states first, then functions.

    Examples
    --------
    >>> x, y = Term.state(0), Term.state(1)
    >>> (x * y * x).name(["x", "y"])
    'x^2 y'
    >>> [(factor, term.name(["x", "y"])) for factor, term in (x * y * x).derivative(0)]
    [(2.0, 'x y')]
    """

    atoms: tuple[tuple[Atom, int], ...] = ()

    @classmethod
    def state(cls, index: int) -> Term:
        """Return the term x_index."""
        return cls(((Atom((index,)), 1),))

    @classmethod
    def function(cls, function: Function, states: tuple[int, ...]) -> Term:
        """Return the term f(states)."""
        return cls(((Atom(states, function), 1),))

    @classmethod
    def monomial(cls, states: Iterable[int]) -> Term:
        """Return the product of the states listed in ascending order, with repetition."""
        exponents: dict[int, int] = {}
        for state in states:
            exponents[state] = exponents.get(state, 0) + 1
        return cls(tuple((Atom((state,)), exponent) for state, exponent in exponents.items()))

    @property
    def powers(self) -> dict[int, int]:
        """Exponent of every state that stands as a plain factor."""
        return {atom.states[0]: exponent for atom, exponent in self.atoms if atom.function is None}

    @property
    def is_constant(self) -> bool:
        """Whether this is the term 1."""
        return not self.atoms

    @property
    def degree(self) -> int:
        """Number of factors."""
        return sum(exponent for _, exponent in self.atoms)

    def __mul__(self, other: Term) -> Term:
        exponents = dict(self.atoms)
        for atom, exponent in other.atoms:
            exponents[atom] = exponents.get(atom, 0) + exponent
        return Term(tuple(sorted(exponents.items(), key=lambda item: item[0].sort_key())))

    def first_factor(self) -> Term:
        """Return the first atom alone."""
        return Term(((self.atoms[0][0], 1),))

    def without_one(self, position: int) -> Term:
        """Return the term with one factor fewer of the atom at that position."""
        atom, exponent = self.atoms[position]
        left = ((atom, exponent - 1),) if exponent > 1 else ()
        return Term(self.atoms[:position] + left + self.atoms[position + 1 :])

    def derivative(self, state: int) -> list[tuple[float, Term]]:
        """Return ∂/∂x_state as a sum of coefficient times term (product and chain rule)."""
        return [
            (exponent * factor, self.without_one(position) * inner)
            for position, (atom, exponent) in enumerate(self.atoms)
            for factor, inner in atom.derivative(state)
        ]

    def name(self, feature_names: Sequence[str]) -> str:
        """Return the name that PySINDy's users know: `1`, `x`, `x^2 y`, `x sin(y)`."""
        parts = [atom.name(feature_names) + (f"^{e}" if e > 1 else "") for atom, e in self.atoms]
        return " ".join(parts) or "1"

    def latex(self, feature_names: Sequence[str]) -> str:
        """Return the LaTeX form."""
        parts = [_latex_power(atom.latex(feature_names), exponent) for atom, exponent in self.atoms]
        return " ".join(parts) or "1"

    def sympy(self, feature_names: Sequence[str]) -> Any:
        """Return the SymPy expression of symbols with these names."""
        sympy = import_sympy()
        symbols = [sympy.Symbol(name) for name in feature_names]
        product: Any = sympy.Integer(1)
        for atom, exponent in self.atoms:
            product = product * atom.sympy(symbols) ** exponent
        return product

    def python(self, feature_names: Sequence[str]) -> str:
        """Return the product in Python: `1.0`, `x**2 * np.sin(y)`."""
        parts = [atom.python(feature_names) + (f"**{e}" if e > 1 else "") for atom, e in self.atoms]
        return " * ".join(parts) or "1.0"


def latex_symbol(name: str) -> str:
    r"""Return a LaTeX symbol for a feature name.

    Examples
    --------
    >>> latex_symbol("x"), latex_symbol("x12"), latex_symbol("wind_speed")
    ('x', 'x_{12}', '\\mathrm{wind\\_speed}')
    """
    numbered = re.fullmatch(r"([A-Za-z])_?(\d+)", name)
    if numbered:
        return f"{numbered[1]}_{{{numbered[2]}}}"
    if len(name) == 1 or name.startswith("\\"):
        return name
    return "\\mathrm{" + re.sub(r"([_&%#$])", r"\\\1", name) + "}"


def _latex_power(base: str, exponent: int) -> str:
    if exponent == 1:
        return base
    return f"\\left({base}\\right)^{{{exponent}}}" if "\\left" in base else f"{base}^{{{exponent}}}"


class Products:
    """Values of a list of terms, each one multiplication away from an earlier one.

    Every term of degree above one is (its first atom) times (the rest of it). Terms needed on the way but not asked
    for get rows of their own at the end. Neighbouring products that share the first atom and whose other factors lie
    next to each other are one NumPy call; for the full list of monomials in graded order these are n_states calls
    per degree.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.n_terms = len(terms)
        row_of = {term: row for row, term in enumerate(terms)}
        if len(row_of) != len(terms):
            raise ValueError("the list of terms holds a term twice")
        ordered = sorted(_closure(terms), key=lambda term: (term.degree, row_of.get(term, len(terms))))
        for term in ordered:
            row_of.setdefault(term, len(row_of))
        self._n_rows = len(row_of)
        self._constants = [row_of[term] for term in ordered if term.degree == 0]
        atoms = [(row_of[term], term.atoms[0][0]) for term in ordered if term.degree == 1]
        self._states = [(row, atom.states[0]) for row, atom in atoms if atom.function is None]
        self._functions = [(row, atom.function, atom.states) for row, atom in atoms if atom.function is not None]
        self._steps = [
            (row_of[term], row_of[term.first_factor()], row_of[term.without_one(0)])
            for term in ordered
            if term.degree > 1
        ]
        self._runs = _runs(self._steps)
        self._copies = [(a, b, s) for a, _, b, s in _runs([(row, -1, state) for row, state in self._states])]
        self._scalar = not self._functions and len(self._steps) <= SCALAR_PRODUCTS

    def evaluate(self, X: Values) -> Values:
        """Return the values, shape (rows, n_terms), columns contiguous."""
        if self._scalar and len(X) == 1 and X.dtype == np.float64:
            return self._evaluate_row(X[0].tolist())
        return self.evaluate_rows(X.T).T

    def evaluate_rows(self, columns: Values) -> Values:
        """Return the values, shape (n_terms, rows), of states of shape (n_states, rows)."""
        values = np.empty((self._n_rows, columns.shape[1]), dtype=np.result_type(columns.dtype, np.float64))
        values[self._constants] = 1.0
        for start, stop, state in self._copies:
            values[start:stop] = columns[state : state + stop - start]
        for row, function, states in self._functions:
            values[row] = function(*(columns[state] for state in states))
        for start, atom, stop, rest in self._runs:
            np.multiply(values[atom], values[rest : rest + stop - start], out=values[start:stop])
        return values[: self.n_terms]

    def _evaluate_row(self, x: list[float]) -> Values:
        values = [1.0] * self._n_rows
        for row, state in self._states:
            values[row] = x[state]
        for row, atom, rest in self._steps:
            values[row] = values[atom] * values[rest]
        return np.array([values[: self.n_terms]])


class Gradients:
    """First derivatives of a list of terms by every state, as combinations of other products."""

    def __init__(self, terms: Sequence[Term], n_states: int) -> None:
        self.shape = (len(terms), n_states)
        row_of: dict[Term, int] = {}
        entries = []
        for index, term in enumerate(terms):
            for state in sorted({state for atom, _ in term.atoms for state in atom.states}):
                for factor, reduced in term.derivative(state):
                    entries.append((row_of.setdefault(reduced, len(row_of)), index, state, factor))
        self._products = Products(list(row_of))
        columns = list(zip(*entries, strict=True)) or [(), (), (), ()]
        self._reduced, self._term, self._state = (np.array(column, dtype=np.intp) for column in columns[:3])
        self._factor = np.array(columns[3], dtype=float)
        self._layers = _first_second_third(list(zip(columns[1], columns[2], strict=True)))

    def jacobian(self, X: Values) -> Values:
        """Return ∂θ_i/∂x_l, shape (rows, n_terms, n_states)."""
        reduced = self._products.evaluate_rows(X.T)
        out = np.zeros((*self.shape, len(X)), dtype=reduced.dtype)
        for layer in self._layers:
            values = self._factor[layer, None] * reduced[self._reduced[layer]]
            out[self._term[layer], self._state[layer]] += values
        return np.moveaxis(out, -1, 0)

    def combine(self, X: Values, coefficients: Values) -> Values:
        """Return Σ_i ξ_i ∂θ_i/∂x_l, shape (rows, n_states)."""
        weights = np.zeros((self._products.n_terms, self.shape[1]), dtype=np.result_type(coefficients, np.float64))
        np.add.at(weights, (self._reduced, self._state), self._factor * coefficients[self._term])
        return np.asarray(self._products.evaluate(X) @ weights)


def _closure(terms: Iterable[Term]) -> list[Term]:
    """Return the terms with all terms that their products need."""
    found: dict[Term, None] = {}
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        if term not in found:
            found[term] = None
            if term.degree > 1:
                waiting += [term.first_factor(), term.without_one(0)]
    return list(found)


def _runs(steps: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Merge (row, atom, rest), (row+1, atom, rest+1), … into (start, atom, stop, rest of the first).

    A run ends before it would need one of its own results.
    """
    runs: list[tuple[int, int, int, int]] = []
    for row, atom, rest in steps:
        if runs:
            start, shared, stop, first = runs[-1]
            if (row, atom, rest) == (stop, shared, first + stop - start) and not start <= rest < stop:
                runs[-1] = (start, shared, row + 1, first)
                continue
        runs.append((row, atom, row + 1, rest))
    return runs


def _first_second_third(keys: Sequence[tuple[int, int]]) -> list[NDArray[np.intp]]:
    """Split positions so that no key stands twice in a part: first occurrences, second occurrences, …."""
    seen: dict[tuple[int, int], int] = {}
    layers: list[list[int]] = []
    for position, key in enumerate(keys):
        layer = seen[key] = seen.get(key, -1) + 1
        if layer == len(layers):
            layers.append([])
        layers[layer].append(position)
    return [np.array(layer, dtype=np.intp) for layer in layers]


@dataclass(frozen=True)
class Wave(Function):
    """sin(kx) or cos(kx)."""

    kind: str
    frequency: int

    def __call__(self, *columns: Values) -> Values:
        """Return sin(kx) or cos(kx)."""
        angle = columns[0] if self.frequency == 1 else self.frequency * columns[0]
        return np.asarray(np.sin(angle) if self.kind == "sin" else np.cos(angle))

    def name(self, *arguments: str) -> str:
        """Return sin(x), sin(2 x)."""
        return f"{self.kind}({self._inner(arguments[0])})"

    def latex(self, *arguments: str) -> str:
        """Return the LaTeX form."""
        return f"\\{self.kind}\\left({self._inner(arguments[0])}\\right)"

    def sympy(self, *arguments: Any) -> Any:
        """Return the SymPy form."""
        return getattr(import_sympy(), self.kind)(self.frequency * arguments[0])

    def python(self, *arguments: str) -> str:
        """Return np.sin(2 * x)."""
        angle = arguments[0] if self.frequency == 1 else f"{self.frequency} * {arguments[0]}"
        return f"np.{self.kind}({angle})"

    def partial(self, argument: int) -> tuple[float, Function]:
        """Return k, cos(kx) for sin(kx) and −k, sin(kx) for cos(kx)."""
        if self.kind == "sin":
            return float(self.frequency), Wave("cos", self.frequency)
        return -float(self.frequency), Wave("sin", self.frequency)

    def _inner(self, argument: str) -> str:
        return argument if self.frequency == 1 else f"{self.frequency} {argument}"


@dataclass(frozen=True)
class UserFunction(Function):
    """A callable of `arity` columns with a name template and, if known, its partial derivatives."""

    function: Callable[..., Any]
    arity: int
    template: str | Callable[..., str]
    derivatives: tuple[Callable[..., Any], ...] | None = None

    def __call__(self, *columns: Values) -> Values:
        """Return the values; a constant result counts for every row."""
        values = np.asarray(self.function(*columns))
        if values.shape not in ((), columns[0].shape):
            raise ValueError(
                f"the library function {self.generic_name} returned shape {values.shape} for columns of shape "
                f"{columns[0].shape}; it must return one value per row"
            )
        return values

    def name(self, *arguments: str) -> str:
        """Fill in the template."""
        return self.template.format(*arguments) if isinstance(self.template, str) else self.template(*arguments)

    @property
    def generic_name(self) -> str:
        """The name with its arguments called a0, a1, …."""
        return self.name(*(f"a{i}" for i in range(self.arity)))

    def latex(self, *arguments: str) -> str:
        """Return the LaTeX form of a name such as exp(x); other names as they stand."""
        name = self.name(*arguments)
        call = re.fullmatch(r"([A-Za-z]\w*)\((.*)\)", name)
        if not call:
            return name
        head = f"\\{call[1]}" if call[1] in _LATEX_FUNCTIONS else "\\operatorname{" + call[1].replace("_", "\\_") + "}"
        return f"{head}\\left({call[2]}\\right)"

    def sympy(self, *arguments: Any) -> Any:
        """Return SymPy's function of that name if there is one, else an undefined function."""
        sympy = import_sympy()
        head = self.generic_name.partition("(")[0]
        if head in _SYMPY_FUNCTIONS and len(arguments) == 1:
            return getattr(sympy, _SYMPY_FUNCTIONS[head])(*arguments)
        return sympy.Function(head if head.isidentifier() else self.generic_name)(*arguments)

    def python(self, *arguments: str) -> str:
        """Return a call of NumPy's function, else of a function that bears the name of the one given."""
        head = getattr(self.function, "__name__", "")
        if not head.isidentifier():
            raise ValueError(f"{self.generic_name} stands for a function without a name, which code cannot call")
        return f"{'np.' * isinstance(self.function, np.ufunc)}{head}({', '.join(arguments)})"

    def partial(self, argument: int) -> tuple[float, Function]:
        """Return the derivative given, else a numerical one."""
        name = f"d{argument} {self.generic_name}".replace("{", "{{").replace("}", "}}")
        if self.derivatives is not None:
            return 1.0, UserFunction(self.derivatives[argument], self.arity, name)
        return 1.0, UserFunction(NumericalPartial(self.function, argument), self.arity, name)


@dataclass(frozen=True)
class NumericalPartial:
    """Partial derivative of a callable, by complex step where that is right, else by central differences.

    A complex step has no rounding error but is wrong for functions that are not analytic (`abs`) or that drop the
    imaginary part. It is taken if it agrees with the central difference within 1 % of the largest derivative;
    otherwise the central difference stands, with a relative error of about 1e-10.
    """

    function: Callable[..., Any]
    argument: int

    def __call__(self, *columns: Values) -> Values:
        """Return the derivative, one value per row."""
        step = np.cbrt(np.finfo(float).eps) * (1.0 + np.abs(columns[self.argument]))
        central = (self._shifted(columns, step) - self._shifted(columns, -step)) / (2 * step)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
                exact = np.imag(self._shifted(columns, 1e-30j)) / 1e-30
        except (TypeError, ValueError):
            return central
        agrees = np.max(np.abs(exact - central), initial=0.0) <= 1e-2 * np.max(np.abs(central), initial=0.0)
        return np.asarray(exact if agrees else central)

    def _shifted(self, columns: Sequence[Values], shift: Any) -> Values:
        moved = [column + shift if i == self.argument else column for i, column in enumerate(columns)]
        return np.broadcast_to(np.asarray(self.function(*moved)), columns[0].shape)


_LATEX_FUNCTIONS = {"sin", "cos", "tan", "exp", "log", "sinh", "cosh", "tanh", "arctan", "arcsin", "arccos"}
_SYMPY_FUNCTIONS = {name: name for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "sinh", "cosh", "tanh", "sign")}
_SYMPY_FUNCTIONS |= {"abs": "Abs", "absolute": "Abs"}


def import_sympy() -> Any:
    """Return the module sympy, or say how to get it."""
    try:
        return importlib.import_module("sympy")
    except ImportError as error:
        raise ImportError("SymPy is needed for symbolic terms: pip install 'ardea[symbolic]'") from error
