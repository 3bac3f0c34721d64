"""Functions of states and of constants that are not known, such as x/(K + x).

A `Formula` is called with states, then constants, value by value. It knows its derivatives by each of them
(`partial_derivative`), how it is written, and where its constants are sought (`ranges`), given the largest size of its
states in the data. `WithConstants` is a factor of a term that holds such a function.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ardea.dynamics.differences import NumericalPartial, slope_of
from ardea.dynamics.terms import OwnFunction, State, Style, Term, Values
from ardea.names import import_sympy, is_plain_name, latex_name

# Values of a constant that stand for its whole range among the candidates: neighbours of x/(K + x) a factor 2 apart
# have correlations above 0.98 over two decades of x.
N_VALUES = 8
# A constant of a state of size 1 is sought here where no range is given: below, x/(K + x) is a constant, above it is a
# straight line and a parabola, up to a few percent.
LEAST_SHARE, LARGEST_SHARE = 0.02, 4.0
# A rate k of exp(−kx) alike, and a frequency: there columns are new whenever ωx changes by about 1.
SLOWEST, FASTEST = 0.1, 10.0
LEAST_ANGLE, LARGEST_ANGLE, N_ANGLES = 0.5, 12.0, 16
LEAST_POWER, LARGEST_POWER = 0.2, 4.0
# So little keeps powers of zero finite.
TINY = 1e-300
# Derivatives that differ by more than this share from numerical ones, whose error is about 1e-10, are wrong.
WRONG_SLOPE = 1e-5


class Range(NamedTuple):
    """Where a constant is sought, and how many values stand for it."""

    low: float
    high: float
    number: int = N_VALUES
    even: bool = False  # whether values differ by a number, not by a factor

    @property
    def values(self) -> tuple[float, ...]:
        """Values that stand for the range."""
        spread = np.linspace if self.even or self.low <= 0 else np.geomspace
        return tuple(float(f"{value:.4g}") for value in spread(self.low, self.high, self.number))


class Formula(ABC):
    """A function of states, then of constants. Immutable and hashable."""

    constants: tuple[str, ...]

    @abstractmethod
    def __call__(self, *columns: Values) -> Values:
        """Return the values."""

    @abstractmethod
    def written(self, style: Style, states: Sequence[str], constants: Sequence[str]) -> str:
        """Return it as text, in LaTeX or in Python."""

    @abstractmethod
    def sympy(self, states: Sequence[Any], constants: Sequence[Any]) -> Any:
        """Return it as an expression of SymPy."""

    @abstractmethod
    def ranges(self, reach: Sequence[float]) -> list[Range]:
        """Return where the constants are sought, for states of this size."""

    def partial_derivative(self, argument: int) -> Callable[..., Any]:
        """Return the derivative by a state or a constant."""
        return NumericalPartial(self, argument)

    def fits(self, states: Sequence[Values]) -> bool:
        """Return whether it can be evaluated at such states."""
        return True

    def check(self, states: Sequence[Values], constants: Sequence[float]) -> None:
        """Compare derivatives that were given with numerical ones."""
        columns = [*states, *(np.full(len(states[0]), value) for value in constants)]
        for i, given in enumerate(getattr(self, "derivatives", None) or ()):
            numerical, own = NumericalPartial(self, i)(*columns), np.asarray(given(*columns))
            if not np.allclose(own, numerical, rtol=WRONG_SLOPE, atol=WRONG_SLOPE * np.max(np.abs(numerical))):
                raise ValueError(
                    f"The derivative given for argument {i + 1} is not that of the function: at the "
                    f"first row it is {np.ravel(own)[0]:.6g}, and differences say {numerical[0]:.6g}."
                )

    @property
    def degree(self) -> int:
        """How complicated it is, next to a product of so many states."""
        return 2

    def kin(self, states: Sequence[int]) -> Hashable:
        """Return what formulas of some states have in common whose constants of one letter mean the same."""
        return self, tuple(states)


@dataclass(frozen=True)
class Held:
    """A formula, or a derivative of it, as a function of states alone: its constants are held."""

    function: Callable[..., Any]
    values: tuple[float, ...]

    def __call__(self, *states: Values) -> Values:
        """Return the values."""
        return np.asarray(self.function(*states, *self.values))

    def partial_derivative(self, argument: int) -> Callable[..., Any]:
        """Return the derivative by a state."""
        return Held(slope_of(self.function, argument), self.values)


@dataclass(frozen=True)
class WithConstants:
    """A formula of some states as a factor of a term: with letters for its constants in text, values in code."""

    formula: Formula
    arguments: tuple[int, ...]
    letters: tuple[str, ...]
    held: tuple[float, ...]

    @classmethod
    def of(cls, formula: Formula, states: Sequence[int]) -> WithConstants:
        """Return it with its constants at the middle of the ranges for states of size 1."""
        middle = [one.values[one.number // 2] for one in formula.ranges([1.0] * len(states))]
        return cls(formula, tuple(states), formula.constants, tuple(middle))

    def written(self, style: Style, names: Sequence[str]) -> str:
        """Return it as text."""
        states = [State(state).written(style, names) for state in self.arguments]
        if style == "python":
            return self.formula.written(style, states, list(map(repr, self.held)))
        return self.formula.written(
            style, states, [latex_name(one) if style == "latex" else one for one in self.letters]
        )

    def sympy(self, names: Sequence[str]) -> Any:
        """Return it with the values of its constants."""
        numbers = list(map(import_sympy().Float, self.held))
        return self.formula.sympy([State(state).sympy(names) for state in self.arguments], numbers)

    def values(self, columns: Values) -> Values:
        """Return the values where its constants are held."""
        return self.at(self.held).values(columns)

    def derivative(self, state: int) -> list[tuple[float, Term]]:
        """Return that of the function with its constants held."""
        return self.at(self.held).derivative(state)

    def with_constants(self, letters: Sequence[str], values: Sequence[float]) -> WithConstants:
        """Return it with other letters and values."""
        return replace(self, letters=tuple(letters), held=tuple(values))

    def at(self, constants: Sequence[float]) -> OwnFunction:
        """Return the function of the states alone with other constants."""
        fields = [f"{{{i}}}" for i in range(len(self.arguments))]
        text = self.formula.written("name", fields, [repr(float(value)) for value in constants])
        return OwnFunction(Held(self.formula, tuple(constants)), self.arguments, text)

    def free(self, places: Sequence[int]) -> OwnFunction:
        """Return the function of states and constants, which stand behind the states in these places."""
        fields = [f"{{{i}}}" for i in range(len(self.arguments) + len(places))]
        text = self.formula.written("name", fields[: len(self.arguments)], fields[len(self.arguments) :])
        return OwnFunction(self.formula, (*self.arguments, *places), text)


# Formulas


def _monomial(columns: Sequence[Values], exponents: Sequence[int]) -> Values:
    """Return the product of powers; powers of NumPy are slow."""
    factors = [column for column, e in zip(columns, exponents, strict=True) for _ in range(e)]
    return np.asarray(reduce(np.multiply, factors)) if factors else np.asarray(1.0)


def _product(style: Style, names: Sequence[str], exponents: Sequence[int]) -> str:
    power = {"name": "{}^{}", "latex": "{}^{{{}}}", "python": "{}**{}"}[style]
    parts = [name if e == 1 else power.format(name, e) for name, e in zip(names, exponents, strict=True) if e]
    return {"name": " ", "latex": "\\, ", "python": " * "}[style].join(parts) or "1"


@dataclass(frozen=True)
class Ratio(Formula):
    """Π x^a/(K^m + Π x^b); a product below that is negative counts as its size, so that nothing is divided by zero."""

    numerator: tuple[int, ...]
    denominator: tuple[int, ...]
    power: int
    given: tuple[float, float] | None = None
    constants = ("K",)

    def below(self, *columns: Values) -> Values:
        """Return what stands below."""
        return np.asarray(columns[-1] ** self.power + np.abs(_monomial(columns[:-1], self.denominator)))

    def __call__(self, *columns: Values) -> Values:
        """Return the values."""
        return np.asarray(_monomial(columns[:-1], self.numerator) / self.below(*columns))

    def partial_derivative(self, argument: int) -> Callable[..., Any]:
        """Return the derivative by the quotient rule."""
        return RatioSlope(self, argument)

    def written(self, style: Style, states: Sequence[str], constants: Sequence[str]) -> str:
        """Return x y/(K + x)."""
        top = _product(style, states, self.numerator)
        below = f"{_product(style, constants, (self.power,))} + {_product(style, states, self.denominator)}"
        if style == "latex":
            return f"\\frac{{{top}}}{{{below}}}"
        return f"{top} / ({below})" if style == "python" else f"{top}/({below})"

    def sympy(self, states: Sequence[Any], constants: Sequence[Any]) -> Any:
        """Return the quotient."""
        top, below = (
            prod((one**e for one, e in zip(states, exponents, strict=True)), start=import_sympy().Integer(1))
            for exponents in (self.numerator, self.denominator)
        )
        return top / (constants[0] ** self.power + below)

    def ranges(self, reach: Sequence[float]) -> list[Range]:
        """Return the range given, or the one in which the quotient is neither constant nor a straight line."""
        if self.given is not None:
            return [Range(*self.given)]
        size = float(_monomial([np.asarray(one) for one in reach], self.denominator)) ** (1 / self.power)
        return [Range(LEAST_SHARE * size, LARGEST_SHARE * size)]

    def fits(self, states: Sequence[Values]) -> bool:
        """Return whether what stands below is positive, up to noise."""
        return _positive(_monomial(states, self.denominator))

    @property
    def degree(self) -> int:
        """All exponents."""
        return sum(self.numerator) + sum(self.denominator)

    def kin(self, states: Sequence[int]) -> Hashable:
        """Return what stands below."""
        pairs = zip(states, self.denominator, strict=True)
        return self.power, tuple((state, e) for state, e in pairs if e)


@dataclass(frozen=True)
class RatioSlope:
    """Derivative of a quotient u/v by one of its arguments: u′/v − uv′/v²."""

    ratio: Ratio
    argument: int

    def __call__(self, *columns: Values) -> Values:
        """Return the values."""
        ratio, i = self.ratio, self.argument
        below, top = ratio.below(*columns), _monomial(columns[:-1], ratio.numerator)
        if i == len(columns) - 1:
            return np.asarray(-top * ratio.power * columns[-1] ** (ratio.power - 1) / below**2)
        out = _slope(columns[:-1], ratio.numerator, i) / below if ratio.numerator[i] else 0.0
        if ratio.denominator[i]:
            sign = np.sign(_monomial(columns[:-1], ratio.denominator))
            out = out - sign * top * _slope(columns[:-1], ratio.denominator, i) / below**2
        return np.asarray(out)


def _slope(columns: Sequence[Values], exponents: Sequence[int], i: int) -> Values:
    """Return the derivative of a product of powers by one of its factors."""
    lower = [one - (place == i) for place, one in enumerate(exponents)]
    return np.asarray(exponents[i] * _monomial(columns, lower))


def _positive(values: Values) -> bool:
    """Return whether values that are positive but for noise stay so."""
    return bool(np.nanmin(values) > -0.2 * np.nanmax(np.abs(values)))


class Shape(NamedTuple):
    """A function of one state, and how it is written with the state as {0} and its constants as {1}, …."""

    function: Callable[..., Any]
    texts: dict[Style, str]
    ranges: Callable[[float], list[Range]]  # for a state of this size


def _power(x: Values, p: Values) -> Values:
    """Return x^p; of a negative state that of its size, with its sign. SymPy's states are above zero."""
    if isinstance(x, Symbolic):
        return x**p
    sign = np.where(np.real(x) < 0, -1.0, 1.0)
    return np.asarray(sign * (sign * x + TINY) ** p)


def _wave(name: Literal["sin", "cos"], *phase: Range) -> Shape:
    """Return sin(ωx), or its like, with frequencies from half a radian over the data to two full turns."""
    wave, more = getattr(np, name), " + {2}" * len(phase)
    return Shape(
        lambda x, w, *p: wave(w * x + (p[0] if p else 0.0)),
        {
            "name": f"{name}({{1}} {{0}}{more})",
            "latex": f"\\{name}\\left({{1}}\\, {{0}}{more}\\right)",
            "python": f"np.{name}({{1}} * {{0}}{more})",
        },
        lambda size: [Range(LEAST_ANGLE / size, LARGEST_ANGLE / size, N_ANGLES, True), *phase],
    )


SHAPES = {
    "exponential": Shape(
        lambda x, k: np.exp(-k * x),
        {"name": "exp(-{1} {0})", "latex": "e^{{-{1}\\, {0}}}", "python": "np.exp(-{1} * {0})"},
        lambda size: [Range(SLOWEST / size, FASTEST / size)],
    ),
    "sine": _wave("sin"),
    "cosine": _wave("cos"),
    "sine with a phase": _wave("sin", Range(-np.pi, np.pi, 5, True)),
    "power": Shape(
        _power,
        {"name": "{0}^{1}", "latex": "{0}^{{{1}}}", "python": "{0}**{1}"},
        lambda size: [Range(LEAST_POWER, LARGEST_POWER)],
    ),
}


@dataclass(frozen=True)
class OfOneState(Formula):
    """One of `SHAPES`; `given` is the range of its first constant, where that is told."""

    shape: str
    constants: tuple[str, ...]
    given: tuple[float, float] | None = None

    def __call__(self, *columns: Values) -> Values:
        """Return the values."""
        return np.asarray(SHAPES[self.shape].function(*columns))

    def written(self, style: Style, states: Sequence[str], constants: Sequence[str]) -> str:
        """Return exp(-k x), or its like."""
        return SHAPES[self.shape].texts[style].format(*states, *constants)

    def sympy(self, states: Sequence[Any], constants: Sequence[Any]) -> Any:
        """Return what the function makes of symbols."""
        return of_symbols(SHAPES[self.shape].function, states, constants)

    def ranges(self, reach: Sequence[float]) -> list[Range]:
        """Return the range given, or the one in which the function is neither flat nor gone."""
        first, *others = SHAPES[self.shape].ranges(reach[0])
        return [first if self.given is None else first._replace(low=self.given[0], high=self.given[1]), *others]

    def fits(self, states: Sequence[Values]) -> bool:
        """Return whether a state of which there are powers is positive, up to noise."""
        return self.shape != "power" or _positive(states[0])

    def kin(self, states: Sequence[int]) -> Hashable:
        """Return the letter, and the state."""
        return self.constants[0], tuple(states)


# What functions of NumPy are called among Python's operators, and by SymPy, where that is not the same.
OPERATORS = {"divide": "truediv", "power": "pow", "float_power": "pow", "subtract": "sub", "multiply": "mul"}
OPERATORS |= {"negative": "neg", "positive": "pos"}
OF_SYMPY = {"absolute": "Abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}


class Symbolic(NDArrayOperatorsMixin):
    """An expression of SymPy that functions of NumPy act on."""

    def __init__(self, expression: Any) -> None:
        self.expression = expression

    @staticmethod
    def plain(value: Any) -> Any:
        """Return the expression, or a number."""
        return value.expression if isinstance(value, Symbolic) else value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Return what SymPy, or an operator, of the same name makes of the expressions."""
        name = ufunc.__name__
        act = getattr(operator, OPERATORS.get(name, name), None)
        act = act or getattr(import_sympy(), OF_SYMPY.get(name, name), None)
        if act is None or method != "__call__" or options:
            return NotImplemented
        return Symbolic(act(*map(self.plain, inputs)))


def of_symbols(function: Callable[..., Any], states: Sequence[Any], constants: Sequence[Any]) -> Any:
    """Return what a function makes of symbols and numbers of SymPy."""
    return import_sympy().sympify(Symbolic.plain(function(*map(Symbolic, [*states, *constants]))))


@dataclass(frozen=True)
class OwnFormula(Formula):
    """A user's function of states and constants, with a template of its name."""

    function: Callable[..., Any]
    template: str
    constants: tuple[str, ...]
    given: tuple[tuple[float, float], ...]
    derivatives: tuple[Callable[..., Any], ...] | None = None

    def __call__(self, *columns: Values) -> Values:
        """Return the values."""
        return np.asarray(self.function(*columns))

    def partial_derivative(self, argument: int) -> Callable[..., Any]:
        """Return the derivative that was given, or a numerical one."""
        return NumericalPartial(self, argument) if self.derivatives is None else self.derivatives[argument]

    def written(self, style: Style, states: Sequence[str], constants: Sequence[str]) -> str:
        """Fill in the template; in Python, call a function that bears the name of the one given."""
        if style == "python":
            head = getattr(self.function, "__name__", "")
            if not is_plain_name(head):
                raise ValueError(f"{self.template} stands for a function without a name, which code cannot call")
            return f"{head}({', '.join([*states, *constants])})"
        text = self.template
        for name, letter in zip(self.constants, constants, strict=True):
            text = re.sub(rf"\b{re.escape(name)}\b", letter.replace("{", "{{").replace("}", "}}"), text)
        return text.format(*states, *([states[0]] * text.count("{}") if len(states) == 1 else []))

    def sympy(self, states: Sequence[Any], constants: Sequence[Any]) -> Any:
        """Return what the function makes of symbols or, where it cannot, an undefined function."""
        try:
            return of_symbols(self.function, states, constants)
        except (TypeError, AttributeError, ValueError):
            head = getattr(self.function, "__name__", "")
            return import_sympy().Function(head if is_plain_name(head) else "f")(*states, *constants)

    def ranges(self, reach: Sequence[float]) -> list[Range]:
        """Return the ranges given; of several constants fewer values each."""
        count = {1: N_VALUES, 2: 5}.get(len(self.given), 4)
        return [Range(*one, count) for one in self.given]
