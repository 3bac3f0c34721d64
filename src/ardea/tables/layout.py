"""How a text is laid out: which lines that begin with # are comments, and what its first rows tell.

A row may begin with #, too, as #DIV/0! and the name #1 do.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection
from itertools import pairwise

from ardea.tables.columns import notation_of
from ardea.tables.empties import ERRORS
from ardea.tables.notation import FEW, NOTATIONS

_ERROR = rf"(?:{'|'.join(map(re.escape, ERRORS))})(?!\w)"
# What stands before the first row.
_BEFORE = re.compile(rf"(?:[ \t]*\r?\n|(?!{_ERROR})#[^\n]*(?:\n|\Z))*".encode())


class Comments:
    """Which lines that begin with # hold no row: those before the first row, and those with more or fewer cells.

    Errors of spreadsheets are cells everywhere. Where there is one column, all others are comments; where blanks
    separate the cells, so are words behind a blank. Given are the numbers of cells that rows have.

    Examples
    --------
    >>> comments = Comments(",", {3})
    >>> [comments.holds(line) for line in ("#1,10,20", "# a break", "#DIV/0!", "1")]
    [False, True, False, False]
    """

    def __init__(self, separator: str | None = None, widths: Collection[int] = ()) -> None:
        self._separator, self._widths = separator, {*widths} - {1}

    def holds(self, line: str, begun: bool = True) -> bool:
        """Whether a line is a comment, before the first row or later."""
        if not line.startswith("#") or re.match(_ERROR, line):
            return False
        if not begun or not self._widths or (self._separator is None and line[1:2].isspace()):
            return True
        cells = line.split() if self._separator is None else next(csv.reader([line], delimiter=self._separator))
        return len(cells) not in self._widths

    def left_out(self, lines: bytes, begun: bool) -> bytes:
        """Return lines in UTF-8 without comments."""
        if not lines.startswith(b"#") and b"\n#" not in lines:
            return lines
        if not begun:
            lines = _BEFORE.sub(b"", lines, count=1)
        return re.sub(rb"(?m)^#[^\n]*\n?", lambda one: b"" if self.holds(one[0].decode()) else one[0], lines)


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
