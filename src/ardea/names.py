"""How terms and numbers are written: in text, LaTeX, SymPy and Python, safe whatever a user calls a column."""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

# Convention: an error is shown with two digits, a number without an error with five.
DIGITS_OF_ERROR, DIGITS = 2, 5
# Columns of which one line each is printed (a convention: more lines would bury the rest).
MOST_LINES = 3


@dataclass(frozen=True)
class ColumnNames:
    r"""The vocabulary of a regression: every term is a column.

    Examples
    --------
    >>> columns = ColumnNames(("age", "blood pressure"))
    >>> columns.latex(1), columns.arguments([0])
    ('\\mathrm{blood\\ pressure}', {'x0': 'age'})
    """

    names: Sequence[str]
    constant: int | None = None
    constants: tuple[tuple[int, str], ...] = ()  # no column has an unknown constant inside

    @cached_property
    def _plain(self) -> bool:
        """Whether all names can be used in Python as they are."""
        return len(set(self.names)) == len(self.names) and all(map(is_plain_name, self.names))

    def latex(self, j: int) -> str:
        """Return the name in LaTeX."""
        return latex_name(self.names[j])

    def sympy(self, j: int) -> Any:
        """Return the column as a symbol."""
        return import_sympy().Symbol(self.names[j])

    def python(self, j: int) -> str:
        """Return the name of the column, or x and its number where some name is not one in Python."""
        return self.names[j] if self._plain else f"x{j}"

    def arguments(self, support: Sequence[int]) -> dict[str, str]:
        """Return the kept columns."""
        return {self.python(j): self.names[j] for j in support}


@dataclass(frozen=True, eq=False)
class Wording:
    """How the terms of a library are written once its states, or its fields and axes, have names.

    Attributes
    ----------
    terms : tuple of Term or FieldTerm
        The candidate terms.
    spelling : tuple of sequences of str
        The names of the states; or the names of the fields and those of the axes.

    Examples
    --------
    >>> from ardea.dynamics import Fourier, Polynomials
    >>> words = (Polynomials(2) + Fourier(1)).vocabulary(["x", "y"])
    >>> words.names[4], words.latex(3), words.python(6), words.constant
    ('x y', 'x^{2}', 'np.sin(x)', 0)
    """

    terms: tuple[Any, ...]
    spelling: tuple[Sequence[str], ...]

    @cached_property
    def names(self) -> list[str]:
        """Names of all terms: `1`, `x`, `x^2 y`, `x sin(y)`."""
        return [term.name(*self.spelling) for term in self.terms]

    @property
    def constant(self) -> int | None:
        """Which term is the constant 1, if there is one."""
        return next((j for j, term in enumerate(self.terms) if term.is_constant), None)

    @cached_property
    def constants(self) -> tuple[tuple[int, str], ...]:
        """Unknown constants inside terms: which term, and the letter."""
        return tuple((j, letter) for j, term in enumerate(self.terms) for letter in getattr(term, "letters", ()))

    def with_constants(self, known: Mapping[int, tuple[str, float]]) -> Wording:
        """Return it with letters and values for some of the constants."""
        terms = list(self.terms)
        for j in {self.constants[q][0] for q in known}:
            pairs = [known[q] for q, (term, _) in enumerate(self.constants) if term == j]
            terms[j] = terms[j].with_constants(*zip(*pairs, strict=True))
        return Wording(tuple(terms), self.spelling)

    def latex(self, j: int) -> str:
        """Return a term in LaTeX."""
        return str(self.terms[j].latex(*self.spelling))

    def sympy(self, j: int) -> Any:
        """Return a term as a SymPy expression."""
        return self.terms[j].sympy(*self.spelling)

    def python(self, j: int) -> str:
        """Return a term as a Python expression in the names of `arguments`."""
        return str(self.terms[j].python(*self._plain))

    def arguments(self, support: Sequence[int]) -> dict[str, str]:
        """Return the variables in Python, each with the name it stands for.

        All states, in their order: a row of the data can be given as it is. They keep their names if Python can read
        all of them, else they are x0, x1, …. Of fields, those in these terms; derivatives are variables of their own,
        u_x, u_xx, ….
        """
        if len(self.spelling) == 1:
            return dict(zip(self._plain[0], self.spelling[0], strict=True))
        pairs = [
            pair
            for j in support
            for pair in zip(self.terms[j].variables(*self._plain), self.terms[j].variables(*self.spelling), strict=True)
        ]
        return dict(sorted(set(pairs), key=pairs.index))

    @cached_property
    def _plain(self) -> list[Sequence[str]]:
        """The names if Python reads all of them, and no two as one, else letters with numbers; x' is x_dot."""
        several = len(self.spelling) > 1
        plain: list[Sequence[str]] = []
        for names, letter in zip(self.spelling, ("x", "a"), strict=False):
            own = [f"{name[:-1]}_dot" if name.endswith("'") and not several else name for name in names]
            sound = all(is_plain_name(name) and name != "np" and not ("_" in name and several) for name in own)
            plain.append(own if sound and len(set(own)) == len(own) else default_names(len(names), letter))
        return plain


# How the candidate terms of an equation are written.
Vocabulary = ColumnNames | Wording


def checked_names(names: Sequence[str]) -> list[str]:
    """Return different names."""
    if isinstance(names, str):
        raise TypeError(f"names must be a list of strings, got the single string {names!r}")
    names = list(names)
    if not names or len(set(names)) != len(names):
        raise ValueError(f"names must be given and differ from each other, got {names}")
    return names


def check_candidates(names: Sequence[str]) -> None:
    """See that no two candidate terms have one name."""
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise ValueError(f"Two candidates would be called {doubled[0]!r}: give the states other names.")


@lru_cache(maxsize=16)
def default_names(n: int, letter: str = "x") -> tuple[str, ...]:
    """Return x0, x1, …: names where the user gave none."""
    return tuple(f"{letter}{j}" for j in range(n))


def default_field_names(n_fields: int) -> list[str]:
    """Return u; u, v; u, v, w; u0, u1, … for more than three fields."""
    return ["u", "v", "w"][:n_fields] if n_fields <= 3 else list(default_names(n_fields, "u"))


def default_axis_names(n_axes: int) -> list[str]:
    """Return x; x, y; x, y, z."""
    if n_axes > 3:
        raise ValueError(f"fields have at most 3 space axes, got {n_axes}")
    return ["x", "y", "z"][:n_axes]


def rounded(value: float, error: float) -> str:
    """Return a number as text, to two digits of its error; five digits of its own where it has none.

    Examples
    --------
    >>> rounded(-9.98812, 0.01), rounded(1234.5, 100.0), rounded(0.1, 0.0)
    ('-9.988', '1230', '0.1')
    """
    if not math.isfinite(error) or error <= 0:
        return f"{value:.{DIGITS}g}"
    places = DIGITS_OF_ERROR - 1 - math.floor(math.log10(error))
    if places > 9 or (value != 0 and abs(value) >= 1e7):
        own = places + math.floor(math.log10(abs(value))) + 1 if value else DIGITS
        return f"{value:.{max(DIGITS_OF_ERROR, own)}g}"
    return f"{round(value, places):.{max(places, 0)}f}"


def sized(value: float) -> str:
    """Return a size without an error, such as that of noise, to four digits.

    Examples
    --------
    >>> sized(0.532617), sized(11213.4)
    ('0.5326', '11210')
    """
    return f"{float(f'{value:.4g}'):g}"


def latex_number(text: str) -> str:
    r"""Return a number that was written as text in LaTeX: powers of ten as such.

    Examples
    --------
    >>> latex_number("2.9e-10"), latex_number("-1e+08"), latex_number("0.25")
    ('2.9 \\times 10^{-10}', '-1 \\times 10^{8}', '0.25')
    """
    digits, mark, power = text.partition("e")
    return f"{digits} \\times 10^{{{int(power)}}}" if mark else text


def counted(number: float, noun: str, many: str = "") -> str:
    """Return a number of things; `many` is their plural where an s does not make it.

    Examples
    --------
    >>> counted(1, "row"), counted(3.5, "row"), counted(0, "trajectory", "trajectories")
    ('1 row', '3.5 rows', '0 trajectories')
    """
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {noun if number == 1 else many or noun + 's'}"


def nor_others(more: int) -> str:
    """Return how a sentence on one that does not do something goes on where more do not."""
    return "" if not more else ", nor does 1 other" if more == 1 else f", nor do {more} others"


def printable(text: str) -> str:
    r"""Return a text with its control characters escaped, safe for a terminal.

    Examples
    --------
    >>> printable("wind speed"), printable("a\x1b[2Jb")
    ('wind speed', 'a\\x1b[2Jb')
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def latex_name(name: str) -> str:
    r"""Return a LaTeX symbol for a name; one that ends with a prime is a rate of change.

    Examples
    --------
    >>> latex_name("x"), latex_name("x12"), latex_name("wind_speed"), latex_name("x'")
    ('x', 'x_{12}', '\\mathrm{wind\\_speed}', '\\dot{x}')
    """
    if name.endswith("'") and name.strip("'"):
        return f"\\dot{{{latex_name(name[:-1])}}}"
    numbered = re.fullmatch(r"([A-Za-z])_?(\d+)", name)
    if numbered:
        return f"{numbered[1]}_{{{numbered[2]}}}"
    if len(name) == 1 and name.isalpha():
        return name
    special_characters = {"\\": r"\backslash{}", "^": r"\hat{}", "~": r"\sim{}", " ": r"\ "}
    escaped = "".join(special_characters.get(c, f"\\{c}" if c in "_&%#${}" else c) for c in printable(name))
    return f"\\mathrm{{{escaped}}}"


def is_plain_name(name: str) -> bool:
    """Whether Python reads the text as one name, the same one, that may be assigned to."""
    normal = unicodedata.normalize("NFKC", name) == name
    return normal and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")


def import_sympy() -> Any:
    """Return SymPy, or say how to install it."""
    try:
        import sympy
    except ImportError as error:
        raise ImportError("SymPy is not installed: pip install 'ardea[symbolic]'.") from error
    return sympy


# Left-hand sides, other models by their terms, and constants inside terms

LeftKind = Literal["value", "rate", "second", "next", "field", "field_second"]
# How each is written in text and in LaTeX.
LEFTS: dict[LeftKind, tuple[str, str]] = {
    "value": ("{}", "{}"),
    "rate": ("({})'", "\\dot{{{}}}"),
    "second": ("({})''", "\\ddot{{{}}}"),
    "next": ("({})[k+1]", "{}_{{k+1}}"),
    "field": ("({})_t", "{}_t"),
    "field_second": ("({})_tt", "{}_{{tt}}"),
}


@dataclass(frozen=True)
class Left:
    """The left-hand side: a value, a rate of change, the next value of a map, or the rate of change of a field.

    Examples
    --------
    >>> Left("x", "rate").text, Left("y").text, Left("u", "field").latex
    ("(x)'", 'y', 'u_t')
    """

    name: str
    kind: LeftKind = "value"

    @property
    def text(self) -> str:
        """As text."""
        return LEFTS[self.kind][0].format(printable(self.name))

    @property
    def latex(self) -> str:
        """In LaTeX."""
        name = latex_name(self.name)
        # LaTeX refuses a second subscript unless the first is inside braces.
        subscripted = self.kind in ("next", "field", "field_second") and "_{" in name
        return LEFTS[self.kind][1].format(f"{{{name}}}" if subscripted else name)


@dataclass(frozen=True)
class Rival:
    """Another model of the same equation, and by how much its criterion is larger (negative: smaller).

    Examples
    --------
    >>> Rival(("x y",), 0.83).compared
    'x y (0.8 worse)'
    """

    terms: tuple[str, ...]
    excess: float

    @property
    def compared(self) -> str:
        """Its terms, and where it stands."""
        return f"{', '.join(map(printable, self.terms)) or 'no term'} ({compared_by(self.excess)})"


def compared_by(excess: float) -> str:
    """Return how much worse or better a model is whose criterion is larger by so much."""
    rounded = round(excess, 1)
    return f"{-rounded:.1f} better" if rounded < 0 else f"{abs(rounded):.1f} worse"


@dataclass(frozen=True)
class Constant:
    """An unknown constant inside a term, as it was estimated.

    Attributes
    ----------
    term : str
        The term.
    value, std : float
        Posterior mean and standard deviation.
    interval : (float, float)
        Ends of the interval of 95 %.
    """

    term: str
    value: float
    std: float
    interval: tuple[float, float]


def listed(terms: Sequence[str]) -> str:
    """Return names of terms in a row."""
    return ", ".join(map(printable, terms))


def in_a_row(parts: Sequence[str]) -> str:
    """Return parts of a sentence with commas, and an "and" before the last."""
    return " and ".join([", ".join(parts[:-1])] * (len(parts) > 1) + [*parts[-1:]])


def words_of(name: str) -> list[str]:
    """Return the words of a name in small letters.

    Examples
    --------
    >>> words_of("respondentID"), words_of("Sample No."), words_of("x1")
    (['respondent', 'id'], ['sample', 'no'], ['x'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|#", name)]


def told_once(told: Iterable[tuple[str, str]]) -> list[str]:
    """Return what is told of columns, in one line where it is the same of many, but for its cells.

    Examples
    --------
    >>> told_once([(name, f"blanks in column {name!r} group thousands (1 2{name})") for name in "5678"])
    ["blanks in column '5' group thousands (1 25), and so on in 3 more columns"]
    """
    kinds = defaultdict[str, list[str]](list)
    for name, said in told:
        kinds[re.sub(r"\([^)]*\)|[0-9]\S*", "", said.replace(repr(name), ""))].append(said)
    more = {kind: f"{said[0]}, and so on in {len(said) - 1} more columns" for kind, said in kinds.items()}
    return [one for kind, said in kinds.items() for one in (said if len(said) <= MOST_LINES else [more[kind]])]
