"""What the first rows of a text tell: whether they hold names or numbers, and what dots in them may mean."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, pairwise

from ardea.tables.notation import NOTATIONS, notation_of


def doubtful_dots(rows: list[list[str]], names: list[str]) -> list[str]:
    """Tell of columns in which every dot has one to three digits before and three behind, as thousands have."""
    remarks = []
    for j, name in enumerate(names):
        dots = [row[j] for row in rows if j < len(row) and "." in row[j]]
        if dots and all(notation_of(cell) == "dots" for cell in dots):
            read = f"dots in column {name!r} were read as decimal points ({dots[0]})"
            remarks.append(f"{read}; if they group thousands, give --decimal ,")
    return remarks


def lines_above(rows: list[list[str]]) -> int:
    """Return how many rows stand above the table, such as a title: they have fewer cells than nearly all others.

    Empty cells at the end of a row count for nothing above names, else of a row without a number. Names may lack one
    cell; numbers follow them.
    """
    filled = [len("\0".join(row).rstrip("\0").split("\0")) for row in rows]
    lengths = [len(row) if any(map(notation_of, row)) else short for row, short in zip(rows, filled, strict=True)]
    width = Counter(lengths).most_common(1)[0][0]
    names = next((k for k, row in enumerate(rows[:-1]) if filled[k] >= width), 0)
    under = chain(*rows[names + 1 : names + 3])  # units may stand between
    if all(rows[names]) and not any(map(notation_of, rows[names])) and any(map(notation_of, under)):
        return names
    for number, (length, below) in enumerate(zip(lengths, rows[1:], strict=False)):
        if length >= width or (length == width - 1 and any(map(notation_of, below))):
            return number
    return 0


def is_whole(cell: str) -> bool:
    """Whether a cell holds a whole number."""
    return re.fullmatch(NOTATIONS["whole"], cell) is not None


def counts_on(first: list[str], body: list[list[str]]) -> bool:
    """Whether a row of numbers looks like names: whole numbers in steps of one, above none that are whole."""
    if not body or not all(map(is_whole, first)):
        return False
    whole = [int(cell) for cell in first]
    # 0, 1 above two columns may be the first values of a series; three such numbers, or two years, are names.
    if len(whole) < 2 or (len(whole) == 2 and whole[0] < 1000) or any(b - a != 1 for a, b in pairwise(whole)):
        return False
    return not any(is_whole(cell) for row in body for cell in row)
