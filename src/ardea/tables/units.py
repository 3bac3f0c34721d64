"""Numbers of one column that stand in different units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ardea.names import counted, in_a_row
from ardea.tables.notation import FEW
from ardea.tables.table import Table

# Units of one column that a message names (a convention).
MOST_UNITS = 5


def told_units(
    table: Table, column: str, units: Counter[str], unit_of: Callable[[str], str | None]
) -> tuple[str, list[int]]:
    """Say in which units the numbers of a column are, and return the lines with others than most, if they are few.

    Given are how many numbers have which unit ("" for none), and what tells the unit of a cell.
    """
    j, lines = table.names.index(column), dict[str | None, list[int]]()
    for line, row in table.numbered_rows():
        lines.setdefault(unit_of(row[j]) if j < len(row) else None, []).append(line)
    counts = units.most_common()
    first = {unit: f" (first in line {found[0]})" for unit, found in lines.items()}
    shown = [
        f"{unit or 'no unit'} in {counted(count, 'cell')}{first.get(unit, '')}" for unit, count in counts[:MOST_UNITS]
    ]
    shown += [f"{len(counts) - MOST_UNITS} more"] if len(counts) > MOST_UNITS else []
    others = sorted(line for unit, _ in counts[1:] for line in lines.get(unit, []))
    told = f"column {column!r} mixes numbers in different units: {in_a_row(shown)}. Write all of them in one unit"
    return told, others if len(others) <= max(1, FEW * units.total()) else []
