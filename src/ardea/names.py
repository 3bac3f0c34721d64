"""How terms and numbers are written: in text, LaTeX, SymPy and Python, safe whatever a user calls a column."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

# Convention: an error is shown with two digits, a number without an error with five.
DIGITS_OF_ERROR, DIGITS = 2, 5


class Vocabulary(Protocol):
    """How the candidate terms are written: in text, LaTeX, SymPy and Python."""

    @property
    def names(self) -> Sequence[str]:
        """Names of all candidates."""

    @property
    def constant(self) -> int | None:
        """Which candidate is the constant 1; None where there is none."""

    def latex(self, j: int) -> str:
        """Return a candidate in LaTeX."""

    def sympy(self, j: int) -> Any:
        """Return a candidate as a SymPy expression."""

    def python(self, j: int) -> str:
        """Return a candidate as a Python expression in the names of `arguments`."""

    def arguments(self, support: Sequence[int]) -> dict[str, str]:
        """Return the Python names of the variables in these terms, each with the name it stands for."""


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


@lru_cache(maxsize=16)
def default_names(n: int, letter: str = "x") -> tuple[str, ...]:
    """Return x0, x1, …: names where the user gave none."""
    return tuple(f"{letter}{j}" for j in range(n))


def rounded(value: float, error: float) -> str:
    """Return a number as text, to two digits of its error; five digits of its own where it has none.

    Examples
    --------
    >>> rounded(-9.98812, 0.01), rounded(1234.5, 100.0), rounded(0.1, 0.0)
    ('-9.988', '1230', '0.1')
    """
    if not np.isfinite(error) or error <= 0:
        return f"{value:.{DIGITS}g}"
    places = DIGITS_OF_ERROR - 1 - int(np.floor(np.log10(error)))
    if places > 9 or (value != 0 and abs(value) >= 1e7):
        own = places + int(np.floor(np.log10(abs(value)))) + 1 if value else DIGITS
        return f"{value:.{max(DIGITS, own)}g}"
    return f"{round(value, places):.{max(places, 0)}f}"


def printable(text: str) -> str:
    r"""Return a text with its control characters escaped, safe for a terminal.

    Examples
    --------
    >>> printable("wind speed"), printable("a\x1b[2Jb")
    ('wind speed', 'a\\x1b[2Jb')
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def latex_name(name: str) -> str:
    r"""Return a LaTeX symbol for a name.

    Examples
    --------
    >>> latex_name("x"), latex_name("x12"), latex_name("wind_speed")
    ('x', 'x_{12}', '\\mathrm{wind\\_speed}')
    """
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
