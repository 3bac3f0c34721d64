"""Whether 1.234 and 1,234 are little more than one or more than a thousand, by the numbers that stand around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ardea.tables.notation import MARKS, ROLES


class Sizes:
    """Sizes of the numbers of a column, some of which have a dot, or a comma, before their last three digits.

    With marked numbers of m to M as decimals and whole ones of u to U: the mark groups thousands only where U < 1000,
    since 1999 would be 1.999. Then the whole numbers end where the others begin, 1000 m / U is near 1, and read as
    decimals all others lie below the whole ones, by a factor u / M. The mark groups thousands where the former gap is
    the smaller one. `within` are the least and the greatest of numbers known before.
    """

    def __init__(self, within: Sequence[float] | None = None) -> None:
        self.within, self.cell = within, ""
        self._marked = self._whole = (np.inf, 0.0)
        self._n = self._inside_decimals = self._inside_thousands = 0

    def add(self, kinds: Mapping[str, str]) -> None:
        """Take cells, each with the name of its notation."""
        for cell, kind in kinds.items():
            if kind == "whole" and (size := abs(float(cell))):
                self._whole = min(size, self._whole[0]), max(size, self._whole[1])
            elif kind in MARKS:
                number = float(cell.replace(",", "."))
                self._marked = min(abs(number), self._marked[0]), max(abs(number), self._marked[1])
                self.cell, self._n = self.cell or cell, self._n + 1
                if self.within is not None:
                    low, high = self.within
                    self._inside_decimals += low <= number <= high
                    self._inside_thousands += low <= 1000 * number <= high

    @property
    def mixed(self) -> bool:
        """Whether 999 stands beside 1.234, but neither 1999, which would be 1.999, nor zeros alone."""
        return 0 < self._whole[1] < 1000 and self._n > 0

    @property
    def _among_known(self) -> bool | None:
        """Whether the mark groups thousands, by one reading under which numbers lie among those known; else None."""
        decimals, thousands = self._inside_decimals, self._inside_thousands
        return None if (decimals and thousands) or 2 * max(decimals, thousands) < self._n else thousands > 0

    @property
    def groups_thousands(self) -> bool | None:
        """Whether the mark groups thousands: by numbers known before, else by the whole numbers; None if unclear."""
        if not self._n:
            return None
        if self._among_known is not None:
            return self._among_known
        gap = 1000 * self._marked[0] / self._whole[1] if self.mixed else np.inf
        return True if gap < self._whole[0] / self._marked[1] else None

    def told(self, name: str, kind: str, thousands: bool) -> str:
        """Return how marked numbers of a column were read, why, and the option that reads them otherwise."""
        why = ""
        if self.within is not None:
            known = f"the numbers fitted, {self.within[0]:g} to {self.within[1]:g}"
            either = "both ways" if self._inside_decimals and self._inside_thousands else "neither way"
            why = f"; read {either} they lie among {known}"
            if self._among_known == thousands:
                why = f", as only so they lie among {known}"
        elif thousands and self.groups_thousands:
            why = f", as the numbers without go up to {self._whole[1]:g}"
        other = MARKS[kind][not thousands]
        role = f"{MARKS[kind].name} in column {name!r} {ROLES[not thousands]}"
        return f"{role} ({self.cell} was read as {self._number(thousands)}){why}; if not, give --decimal {other}"

    def doubt(self, name: str, kind: str, thousands: bool) -> str:
        """Return what is to be warned of where whole numbers stand beside marked ones, and nothing tells the mark."""
        return (
            f"Column {name!r} holds whole numbers beside {self.cell}, which was read as {self._number(thousands)}: "
            f"one of them may be wrong by a factor of 1000. If so, give --decimal {MARKS[kind][not thousands]}."
        )

    def contrary(self, name: str, thousands: bool) -> str:
        """Return what is to be warned of where the rest of the file tells another mark than the sizes do."""
        known = "the whole numbers beside it"
        if self.within is not None and self._among_known is not None:
            known = f"the numbers fitted, {self.within[0]:g} to {self.within[1]:g}"
        return (
            f"Column {name!r} holds {self.cell}, which was read as {self._number(thousands)}, as the rest of the file "
            f"is written; but {self._number(not thousands)} would suit {known}. If that is meant, correct the column."
        )

    def _number(self, thousands: bool) -> str:
        return f"{float(self.cell.replace(',', '.')) * (1000 if thousands else 1):.10g}"
