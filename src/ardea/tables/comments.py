"""Lines that begin with #: comments, or rows whose first cell does, as #DIV/0! and the name #1 do."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection

from ardea.tables.empties import ERRORS

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
