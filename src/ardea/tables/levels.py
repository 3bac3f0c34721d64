"""Columns of texts: one column of 0 and 1 for every text but the first, which is the reference."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array, Index
from ardea.tables.notation import NUMERAL, SWITCHED_ON
from ardea.tables.table import safe_name, shortened


def indicators(codes: Index, texts: Sequence[str], levels: Sequence[str]) -> tuple[Array, NDArray[np.bool_]]:
    """Return 1 where a cell holds a text, for all but the first of them, NaN for gaps; and where it holds another.

    Cells are given as numbers of texts, −1 for a gap. Gaps are a text like others where the levels have an empty one.
    """
    place = dict(zip(levels, np.eye(len(levels)), strict=True))
    gap = np.full(len(levels), np.nan)
    rows = np.array([*(place.get(text, gap) for text in texts), place.get("", gap)])
    return rows[codes, 1:], np.array([*(text not in place for text in texts), False])[codes]


def rank(text: str) -> tuple[bool, str, str]:
    """Return where a text stands among others: of a switch what is off comes first, whatever the case."""
    return SWITCHED_ON.fullmatch(text.casefold()) is not None, text.casefold(), text


def level_names(column: str, levels: Sequence[str]) -> list[str]:
    """Return the names of the columns that stand for the texts of a column: all but the first, its reference."""
    return [safe_name(f"{column}={level}") for level in levels[1:]]


def told_of_levels(column: str, texts: Sequence[str]) -> list[str]:
    """Return how a column of texts was read."""
    names = level_names(column, texts)
    encoded = f"holds {len(texts)} texts: encoded as {shortened(names)}, against {texts[0]!r}" if names else ""
    if not texts[0]:
        encoded = f"holds {texts[1]!r} or nothing: encoded as {names[0]}, which is 0 where cells are empty"
    alike = Counter(text.casefold() for text in texts)
    twins = [text for text in texts if alike[text.casefold()] > 1]
    told = [f"column {column!r} {encoded or 'is the same in every row and was left out'}"]
    return told + ([f"texts of column {column!r} differ in case alone: {shortened(twins)}"] if twins else [])


def doubt_of_levels(column: str, texts: Sequence[str]) -> list[str]:
    """Warn of texts that may be numbers, as most of them begin with digits."""
    numerals = [text for text in texts if NUMERAL.match(text)]
    if 2 * len(numerals) <= len(texts):
        return []
    told = f"Column {column!r} holds texts that begin with digits, such as {numerals[0]!r}, and each has its own term"
    return [f"{told}: if they are numbers, write them as such; if they are names, --categorical {shlex.quote(column)}."]
