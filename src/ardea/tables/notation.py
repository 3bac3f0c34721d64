"""How numbers are written: what stands before decimals, between thousands, and beside them."""

from __future__ import annotations

import re
from collections import Counter

# Numbers written against the mark of a file are slips where they are at most so many for each that tells it: a file has
# one mark, and more would be columns from another one (a convention).
MINORITY = 0.25
# Of decimals to three places a tenth has fewer, if zeros at the end are left out: that of 60 or more at most one in 60
# has other than three places, one comma being a slip among thousands, is then rare (0.9⁶⁰ + 6 · 0.9⁵⁹ = 1.4 %).
RARE = 1 / 60

_EXPONENT = "(?:[eE][+-]?[0-9]+)?"
_GROUPED = "[+-]?[1-9][0-9]{0,2}"
_BLANK = "[ \u00a0\u2009\u202f]"  # narrow, or not to be broken
# 1 234 567,8 with blanks between thousands.
SPACED = re.compile(rf"{_GROUPED}(?:{_BLANK}[0-9]{{3}})+(?:[.,][0-9]*)?")
# How numbers are written, by what the comma or dot in them tells; the first that fits holds.
NOTATIONS = {
    "whole": "[+-]?[0-9]+",
    "dots": rf"{_GROUPED}\.[0-9]{{3}}",  # 1.775: decimals, or thousands where the comma stands before decimals
    "point": rf"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+){_EXPONENT}",  # 1.5: can only stand before decimals
    "plain": rf"[+-]?[0-9]+{_EXPONENT}|[+-]?(?:inf|infinity|INF|Infinity|Inf)",
    "either": rf"{_GROUPED},[0-9]{{3}}{_EXPONENT}",  # 1,234: decimals or thousands
    "comma": rf"[+-]?(?:0?|[0-9]{{4,}}),[0-9]+{_EXPONENT}",  # 0,5 and 1234,5: decimals, not even thousands with a slip
    "decimal": rf"[+-]?(?:[0-9]+,[0-9]*|,[0-9]+|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+(?:,[0-9]*)?){_EXPONENT}",
    "thousands": rf"{_GROUPED}(?:,[0-9]{{3}})+(?:\.[0-9]*)?{_EXPONENT}",
}
NOTATION = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in NOTATIONS.items()))
# Which of them are numbers, by what stands before decimals; without a mark a comma makes no number.
READ_WITH = {
    None: {"whole", "dots", "point", "plain"},
    ".": {"whole", "dots", "point", "plain", "thousands", "either"},
    ",": {"whole", "dots", "plain", "comma", "decimal", "either"},
}
ROLES = {True: "stand before decimals", False: "group thousands"}
# (1,200.50) is what accountants write for −1,200.50.
IN_BRACKETS = re.compile(r"^\(([$€£¥]?\s?[0-9][0-9., ]*%?)\)$")
# Numbers with a sign of a currency before them, or with it, with per cent or with a unit behind them.
SIGNED = re.compile(r"([$€£¥])\s*[+-]?[0-9][0-9., ]*|[+-]?[0-9][0-9., ]*?\s*([%‰$€£¥]|[A-Za-zµμΩ°²³/·]+)")


def tidied(cell: str) -> str:
    """Return a cell without blanks around it or between thousands, and with a hyphen for a minus or for brackets."""
    cell = cell.strip().replace("−", "-")
    cell = IN_BRACKETS.sub(r"-\1", cell)
    return re.sub(_BLANK, "", cell) if SPACED.fullmatch(cell) else cell


def notation_of(cell: str) -> str:
    """Return how a number is written, by its name in `NOTATIONS`; nothing where a cell holds no number."""
    found = NOTATION.fullmatch(tidied(cell))
    return str(found.lastgroup) if found else ""


def sign_of(cell: str) -> str:
    """Return the sign or the unit of a number.

    Examples
    --------
    >>> sign_of("$1,200"), sign_of("101.3 kPa")
    ('$', 'kPa')
    """
    found = SIGNED.fullmatch(cell.strip())
    return (found[1] or found[2]) if found else ""


def told_by(kinds: Counter[str]) -> dict[str, int]:
    """Return how many numbers can only have been written with each mark before decimals."""
    return {",": kinds["comma"] + kinds["decimal"], ".": kinds["thousands"] + kinds["point"]}


def decided(kinds: Counter[str]) -> str | None:
    """Return what stands before decimals, by what most numbers can only be; None where nothing, or no clear majority.

    Examples
    --------
    >>> decided(Counter(point=40, either=79, decimal=1)), decided(Counter(either=79, decimal=1))
    ('.', None)
    """
    (less, _), (more, mark) = sorted((count, mark) for mark, count in told_by(kinds).items())
    doubtful = mark == "," and not kinds["comma"] and more < RARE * kinds["either"]
    return None if less > MINORITY * more or not more or doubtful else mark
