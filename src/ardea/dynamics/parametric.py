"""Libraries of functions: waves, functions of one's own, and those with unknown constants inside.

Constants are those of x/(K + x), exp(−kx), sin(ωx), x^p, and of functions of one's own. Libraries add with ``+`` and
multiply with ``*``. A search has values all over the range of a constant among its candidates; a term that is chosen
then has its constant estimated together with its coefficient (`inside`). Libraries of PySINDy are read as these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, reduce
from itertools import combinations, permutations
from numbers import Integral
from operator import add, mul
from string import Formatter
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from ardea.dynamics.formulas import Formula, OfOneState, OwnFormula, Ratio, WithConstants
from ardea.dynamics.libraries import Library, Polynomials
from ardea.dynamics.terms import OwnFunction, Term, Wave
from ardea.names import counted, is_plain_name

Bounds = tuple[float, float] | None
# A convention: Hill functions of higher powers are steps.
LARGEST_POWER = 20
# Conventions: monomials of the common terms are of the largest degree, up to five, with at most so many of them.
MOST_MONOMIALS, LARGEST_DEGREE = 35, 5


class Family(Library):
    """Formulas of some states, each applied to all of them; fields of the type `Bounds` are ranges of constants."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]  # of subclasses, which are dataclasses
            if one.type == "Bounds" and (given := getattr(self, one.name)) is not None:
                object.__setattr__(self, one.name, _checked_range(one.name, given))

    def formulas(self, n_states: int) -> Iterator[tuple[Formula, Sequence[int]]]:
        """Yield formulas and the states that each is of: by default those of one state, of every state in turn."""
        for state in range(n_states):
            for formula in self.of_one_state():
                yield formula, (state,)

    def of_one_state(self) -> Sequence[Formula]:
        """Return the formulas of a state."""
        raise NotImplementedError

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return a term for every formula and choice of states."""
        return tuple(Term.of(WithConstants.of(formula, states)) for formula, states in self.formulas(n_states))


@dataclass(frozen=True)
class Parametric(Family):
    """A function of one's own of states and of constants that are not known.

    Its positional arguments are states, but for those that have a range: these are constants. A function of one state
    is applied to every state, one of two states to every ordered pair, and so on.

    Parameters
    ----------
    function : callable
        Takes states, then constants, and works on arrays, value by value.
    name : str
        How it is written: ``{}`` stands for the only state, ``{0}``, ``{1}``, … for the first, the second and so on;
        constants stand there by their names.
    derivatives : sequence of callables, optional
        Derivatives by each argument, of the same arguments. By default they are computed by complex step or, where that
        does not agree with central differences, by these. Those given are compared with these on the data.
    **ranges : (float, float)
        Least and greatest value of every constant.

    Examples
    --------
    >>> library = Parametric(lambda x, K: x / (K + x), "{}/(K + {})", K=(0.1, 10))
    >>> library.names(["x", "y"])
    ['x/(K + x)', 'y/(K + y)']
    >>> Parametric(lambda x, y, K: x * y / (K + x), "{0} {1}/(K + {0})", K=(0.1, 10)).names(["x", "y"])
    ['x y/(K + x)', 'y x/(K + y)']
    """

    formula: OwnFormula
    n_arguments: int

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        derivatives: Sequence[Callable[..., Any]] | None = None,
        **ranges: tuple[float, float],
    ) -> None:
        arguments = list(inspect.signature(function).parameters)
        constants = [one for one in arguments if one in ranges]
        if not constants or arguments[len(arguments) - len(constants) :] != constants or set(ranges) - set(arguments):
            raise ValueError(
                f"{name}: the function has the arguments {', '.join(arguments)}, and ranges were given for "
                f"{', '.join(ranges) or 'none'}. States come first, then constants, each with a range."
            )
        if len(constants) == len(arguments):
            raise ValueError(f"{name}: the function takes no state.")
        if derivatives is not None and len(derivatives) != len(arguments):
            raise ValueError(f"{name}: give one derivative for each of {', '.join(arguments)}.")
        _check_name(name, len(arguments) - len(constants))
        given = tuple(_checked_range(one, ranges[one]) for one in constants)
        slopes = None if derivatives is None else tuple(derivatives)
        object.__setattr__(self, "formula", OwnFormula(function, name, tuple(constants), given, slopes))
        object.__setattr__(self, "n_arguments", len(arguments) - len(constants))

    def formulas(self, n_states: int) -> Iterator[tuple[Formula, Sequence[int]]]:
        """Yield the function for every ordered choice of states."""
        for states in permutations(range(n_states), self.n_arguments):
            yield self.formula, states


@dataclass(frozen=True)
class Saturation(Family):
    """x^n/(K^n + x^n), the same times another state, and 1/(K^n + x^n): rates that saturate, Hill functions.

    Parameters
    ----------
    powers : sequence of int
        The powers n: 1 is Michaelis and Menten's, and Holling's second, 2 his third.
    K : (float, float), optional
        Range of the constant. None: from 0.02 to 4 times the largest value of x. States that are negative are left out.

    Examples
    --------
    >>> Saturation().names(["x"])
    ['x/(K + x)', '1/(K + x)', 'x^2/(K^2 + x^2)', '1/(K^2 + x^2)']
    >>> "x y/(K + x)" in Saturation().names(["x", "y"])
    True
    """

    powers: tuple[int, ...] = (1, 2)
    K: Bounds = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "powers", tuple(self.powers))
        for power in self.powers:
            check_scalar(power, "powers", Integral, min_val=1, max_val=LARGEST_POWER)

    def n_listed(self, n_states: int) -> int:
        """Return the number of terms."""
        return len(self.powers) * n_states * (n_states + 1)

    def formulas(self, n_states: int) -> Iterator[tuple[Formula, Sequence[int]]]:
        """Yield them power by power and state by state."""
        for n in self.powers:
            for x in range(n_states):
                yield Ratio((n,), (n,), n, self.K), (x,)
                yield Ratio((0,), (n,), n, self.K), (x,)
                for y in range(n_states):
                    if x < y:
                        yield Ratio((n, 1), (n, 0), n, self.K), (x, y)
                    elif y < x:
                        yield Ratio((1, n), (0, n), n, self.K), (y, x)


@dataclass(frozen=True)
class Rational(Family):
    """θ/(K + φ), θ a monomial of a numerator, φ one of a denominator.

    Parameters
    ----------
    numerator, denominator : Polynomials
        Where the monomials are from; the constant 1 of the denominator is K.
    K : (float, float), optional
        Range of the constant. None: from 0.02 to 4 times the largest value of φ. Denominators that are negative are
        left out.

    Examples
    --------
    >>> Rational(Polynomials(1), Polynomials(2)).names(["x"])
    ['1/(K + x)', '1/(K + x^2)', 'x/(K + x)', 'x/(K + x^2)']
    """

    numerator: Polynomials = field(default_factory=lambda: Polynomials(2))
    denominator: Polynomials = field(default_factory=lambda: Polynomials(1))
    K: Bounds = None

    def n_listed(self, n_states: int) -> int:
        """Return the number of quotients, at most."""
        return self.numerator.n_listed(n_states) * self.denominator.n_listed(n_states)

    def formulas(self, n_states: int) -> Iterator[tuple[Formula, Sequence[int]]]:
        """Yield every quotient."""
        for above in self.numerator.terms(n_states):
            for below in self.denominator.terms(n_states):
                if not below.is_constant:
                    states = sorted({*above.arguments, *below.arguments})
                    powers = [{factor.index: power for factor, power in term.factors} for term in (above, below)]
                    top, bottom = (tuple(own.get(state, 0) for state in states) for own in powers)
                    yield Ratio(top, bottom, 1, self.K), states


@dataclass(frozen=True)
class Decay(Family):
    """exp(−kx) of every state.

    Parameters
    ----------
    k : (float, float), optional
        Range of the rate. None: from 0.1 to 10 over the largest value of x.

    Examples
    --------
    >>> Decay().names(["x"])
    ['exp(-k x)']
    """

    k: Bounds = None

    def of_one_state(self) -> Sequence[Formula]:
        """Return the one formula."""
        return (OfOneState("exponential", ("k",), self.k),)


@dataclass(frozen=True)
class Oscillation(Family):
    """sin(ωx), cos(ωx) and sin(ωx + φ) of every state; ω is written w, φ is written p.

    Parameters
    ----------
    w : (float, float), optional
        Range of the frequency. None: from 0.5 to 12 over the largest value of x.
    phase : bool
        Whether sin(ωx + φ) is there.

    Examples
    --------
    >>> Oscillation().names(["x"])
    ['sin(w x)', 'cos(w x)', 'sin(w x + p)']
    """

    w: Bounds = None
    phase: bool = True

    def of_one_state(self) -> Sequence[Formula]:
        """Return sine and cosine, and the one with a phase."""
        waves = OfOneState("sine", ("w",), self.w), OfOneState("cosine", ("w",), self.w)
        return (*waves, OfOneState("sine with a phase", ("w", "p"), self.w)) if self.phase else waves


@dataclass(frozen=True)
class Power(Family):
    """x^p of every state that stays above zero, p any number.

    Parameters
    ----------
    p : (float, float), optional
        Range of the power. None: from 0.2 to 4.

    Examples
    --------
    >>> Power().names(["x"])
    ['x^p']
    """

    p: Bounds = None

    def of_one_state(self) -> Sequence[Formula]:
        """Return the one formula."""
        return (OfOneState("power", ("p",), self.p),)


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


@dataclass(frozen=True)
class CommonTerms(Library):
    """The terms of most textbook models in one library, for when little is known of a system.

    Monomials up to degree 5 (of three states 4, of more 3 or less), `Saturation()` and `Decay()` with their unknown
    constants, sines and cosines of x and 2x, those of x times a state, and of one state times those of another. With
    three states and more a search among all of them takes from half a minute to some minutes.

    Examples
    --------
    >>> names = CommonTerms().names(["x", "v"])
    >>> [term in names for term in ("x^2 v", "x v/(K + x)", "exp(-k x)", "sin(x)", "v cos(x)", "sin(x) cos(v)")]
    [True, True, True, True, True, True]
    """

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return them kind by kind."""
        waves, states = Fourier(1), Polynomials(1, include_constant=False)
        pairs = combinations(waves.terms(n_states), 2)
        crossed = [one * other for one, other in pairs if set(one.arguments).isdisjoint(other.arguments)]
        parts = [Polynomials(_common_degree(n_states)), Fourier(2), states * waves, Saturation(), Decay()]
        return (*(term for part in parts for term in part.terms(n_states)), *crossed)


def _common_degree(n_states: int) -> int:
    sizes = {degree: Polynomials(degree).n_listed(n_states) for degree in range(1, LARGEST_DEGREE + 1)}
    return max(1, *(degree for degree, size in sizes.items() if size <= MOST_MONOMIALS))


def _check_name(name: str, n_states: int) -> None:
    """Refuse a name that does not say where every state stands."""
    try:
        fields = [one for _, one, _, _ in Formatter().parse(name) if one is not None]
    except ValueError:
        fields = []
    counted = n_states if len(fields) == n_states else 1  # {} of the only state may come several times
    if fields and not any(fields) and n_states == counted:
        return
    if not fields or set(fields) != {str(i) for i in range(n_states)}:
        places = ", ".join(f"{{{i}}}" for i in range(n_states))
        raise ValueError(
            f"The name {name!r} must say where the function's {'state stands' if n_states == 1 else 'states stand'}: "
            f"write {places}{' or {}' * (n_states == 1)}, and constants by their names, for example "
            f"{'{}/(K + {})' if n_states == 1 else '{0} {1}/(K + {0})'!r}."
        )


def _checked_range(name: str, given: Any) -> tuple[float, float]:
    """Return a range as two numbers."""
    low, high = (float(one) for one in given) if np.shape(given) == (2,) else (np.nan, np.nan)
    if not (is_plain_name(name) and low < high and np.isfinite(high - low)):
        raise ValueError(f"{name}={given!r} must be the least and the greatest value of the constant, two numbers.")
    return low, high


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
