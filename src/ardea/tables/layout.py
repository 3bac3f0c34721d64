"""What the first rows of a text tell: whether they hold names or numbers, and what dots in them may mean."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise

from ardea.tables.columns import notation_of
from ardea.tables.notation import FEW, NOTATIONS


def dotted(rows: list[list[str]], width: int) -> set[int]:
    """Return columns in which every dot has one to three digits before and three behind, as thousands have."""
    dots = ([row[j] for row in rows if j < len(row) and "." in row[j]] for j in range(width))
    return {j for j, cells in enumerate(dots) if cells and all(notation_of(cell) == "dots" for cell in cells)}


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


def holds_units(row: list[str], below: list[list[str]], empty: Collection[str]) -> bool:
    """Whether a row without numbers holds units: texts, one of them above a column of numbers, but for a few cells."""
    texts = [j for j in range(len(row)) if row[j] not in empty]
    columns = [[one[j] for one in below if j < len(one) and one[j] not in empty] for j in texts]
    if any(row[j] in cells for j, cells in zip(texts, columns, strict=True)):
        return False
    return any(cells and sum(not notation_of(one) for one in cells) <= FEW * len(cells) for cells in columns)
