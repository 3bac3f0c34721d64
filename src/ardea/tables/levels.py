"""Columns of texts: one column of 0 and 1 for every text but the first, which is the reference."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array, Index
from ardea.tables.notation import NUMERAL, SWITCHED_ON
from ardea.tables.table import safe_name, shortened

# Texts with at most so many rows each, on average, and at least so many of them, may name what was measured several
# times (conventions: ten visits of a patient; fewer groups tell little of how they differ).
FEW_ROWS, MANY_TEXTS = 10, 6


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


def told_nested(names: Sequence[str], X: Array, levels: Mapping[str, Sequence[str]]) -> list[str]:
    """Warn of columns that are the same in all rows of each text of another: their terms cannot be told from its terms.

    As the dose of a patient is, beside a term for every patient: it is a sum of these.
    """
    told, owners = [], {one: column for column, texts in levels.items() for one in level_names(column, texts)}
    for column, texts in levels.items():
        own, others = _places(names, owners, column)
        codes = X[:, own] @ np.arange(1, len(own) + 1)
        order = np.argsort(codes, kind="stable")
        same = np.diff(codes[order]) == 0
        if not own or not others or not same.any():
            continue
        nested = []
        for j in others:
            moved = np.diff(X[order, j]) != 0
            nested += [j] if moved.any() and not moved[same].any() else []
        if within := list(dict.fromkeys(owners.get(names[j], names[j]) for j in nested)):
            given = shlex.quote(column)
            many = f"If these rows are measurements of the same {column}: --groups {given}. " * (
                len(texts) >= MANY_TEXTS
            )
            told.append(
                f"Within each text of column {column!r}, {shortened(within)} never changes: the rows cannot tell its "
                f"effect from those of the texts, and sign and interval may be wrong. {many}To leave the texts out: "
                f"--drop {given}."
            )
    return told


def few_rows_of_texts(n_rows: int, levels: Mapping[str, Sequence[str]]) -> list[str]:
    """Tell of columns with many texts of few rows each, which may be groups."""
    few = [name for name, texts in levels.items() if len(texts) >= MANY_TEXTS and n_rows <= FEW_ROWS * len(texts)]
    return [
        f"column {name!r} has {n_rows / len(levels[name]):.2g} rows for each of its {len(levels[name])} texts: if they "
        f"name what was measured several times, --groups {shlex.quote(name)} takes fewer terms"
        for name in few
    ]


def _places(names: Sequence[str], owners: Mapping[str, str], column: str) -> tuple[list[int], list[int]]:
    """Return which columns of X stand for the texts of a column, and which for others."""
    places: tuple[list[int], list[int]] = [], []
    for j, name in enumerate(names):
        places[owners.get(name) != column].append(j)
    return places
