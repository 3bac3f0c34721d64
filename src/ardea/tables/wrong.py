"""What is wrong with rows and cells of a text, with their lines: found by reading it once more, slowly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from ardea.names import counted, in_a_row
from ardea.tables.notation import FEW, TOTALS
from ardea.tables.table import MOST_PROBLEMS, Table, TableError

# What tells the unit of a cell: "" of a plain number, None where it holds no number.
UnitOf = Callable[[str], str | None]
# Units of one column that a message names (a convention).
MOST_UNITS = 5
# So many rows, or few among all, may be called totals: where more are, it is a category (a convention).
MOST_TOTALS = 3
# So many rows tell what columns hold where others are of another length (a convention: a second).
MOST_ROWS = 10_000


def told_units(table: Table, column: str, units: Counter[str], unit_of: UnitOf) -> tuple[str, list[int]]:
    """Say in which units the numbers of a column are, and return the lines with others than most, if they are few.

    Given are how many numbers have which unit.
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


def example_of(table: Table, column: str, unit_of: UnitOf) -> str:
    """Return the first cell of a column that holds no number, with its line; nothing where a file has no lines."""
    j = table.names.index(column)
    rows = ((line, row[j]) for line, row in table.numbered_rows() if j < len(row))
    found = next(((line, cell) for line, cell in rows if cell not in table.empty and unit_of(cell) is None), None)
    return f" (line {found[0]}: {found[1]!r})" if found else ""


def uneven_or_wrong(table: Table, names: Sequence[str], unit_of: UnitOf) -> tuple[list[str], list[int]]:
    """Return all rows of other length, and all cells that are no numbers in columns of numbers; and lines to leave out.

    These are rows of other length and of totals, if nothing else is wrong and they are few.
    """
    used = [(table.names.index(name), name) for name in names]
    found, totals = list[tuple[int, str]](), set[int]()
    texts: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    numbers = dict.fromkeys(names, 0)
    for line, row in table.numbered_rows():
        if len(row) != table.width:
            quotes = (
                f" (a cell that holds {table.separator!r} needs quotes around it)" if len(row) > table.width else ""
            )
            uneven_row = f"{counted(len(row), 'column')}, but the first line has {table.width}"
            found.append((line, f"line {line}: {uneven_row}{quotes * (table.separator in set(',;|'))}"))
            continue
        for j, name in used:
            if unit_of(row[j]) == "":
                numbers[name] += 1
            elif row[j] not in table.empty:
                totals |= {line} if TOTALS.fullmatch(row[j]) else set()
                texts[name].append((line, f"line {line}, column {name!r}: {row[j]!r} is not a number"))
    uneven, n_rows = {line for line, _ in found}, max(numbers.values(), default=0)
    found += [one for name in names if 0 < len(texts[name]) <= numbers[name] + 1 for one in texts[name]]
    away = sorted({line for line, _ in found})
    alone = uneven | totals >= {*away} and len(away) <= max(1, FEW * n_rows)
    return [said for _, said in sorted(found)], away if uneven and alone else []


def told_totals(table: Table, texts: Sequence[str], n_rows: int) -> list[str]:
    """Tell of the rows that bear a name for sums or means in columns of texts, of so many rows that were read.

    They are few, unless one is called "North Total" where others are called "North".
    """
    places, found, others = (
        [(table.names.index(name), name) for name in texts],
        list[tuple[int, str, str]](),
        set[str](),
    )
    for line, row in islice(table.numbered_rows(), n_rows):
        for j, name in (one for one in places if one[0] < len(row)):
            if TOTALS.fullmatch(row[j]):
                found.append((line, name, row[j]))
            else:
                others.add(row[j])
    of_groups = any(text.rpartition(" ")[0] in others - {""} for _, _, text in found)
    if not found or (len(found) > max(MOST_TOTALS, FEW * n_rows) and not of_groups):
        return []
    lines, called = [
        [*dict.fromkeys(map(str, one))] for one in ((line for line, _, _ in found), (t for *_, t in found))
    ]
    column, many = found[0][1], len(lines) > 1
    shown = in_a_row([*map(repr, called[:MOST_PROBLEMS]), *["others"] * (len(called) > MOST_PROBLEMS)])
    rows = f"Lines {in_a_row(lines)} are" if many else f"Line {lines[0]} is"
    leave = "these are no rows like the others, leave them" if many else "that is no row like the others, leave it"
    return [f"{rows} called {shown} in column {column!r}: if {leave} out with --drop-lines {','.join(lines)}."]


def few_tokens(columns: Sequence[Any]) -> list[str]:
    """Return what stands in the wrong cells of columns, but for totals, where they are few in each, or one text."""
    few = all(one.n_wrong <= max(1, FEW * one.kinds.total()) or len(one.tokens) == 1 for one in columns)
    return list(dict.fromkeys(cell for one in columns for cell in one.tokens if few and not TOTALS.fullmatch(cell)))


def told_besides(error: TableError, table: Table, columns: Any) -> TableError:
    """Return the error of rows of other length, with what the other rows tell of columns that were not looked at."""
    import pandas as pd

    rows = [row for _, row in islice(table.numbered_rows(), MOST_ROWS) if len(row) == table.width]
    cells = pd.DataFrame(rows, columns=range(table.width), dtype=object)
    columns.look(cells[[*map(table.names.index, columns.used)]].set_axis(columns.used, axis=1))
    try:
        columns.settle()
    except TableError as more:
        problems = dict.fromkeys([*more.problems, *error.problems])
        # Where no lines help, no command does.
        unusable = (more.columns, more.others) if error.lines else ()
        ways: dict[str, Any] = {"lines": error.lines, "clocks": more.clocks, "useless": more.columns}
        return TableError(table.path, [*problems], *unusable, **(ways if error.lines else {}))
    return error


def error_of_cells(
    table: Table,
    used: Sequence[str],
    encoded: Sequence[str],
    seen: Mapping[str, Any],
    cells: Sequence[tuple[int, str, str]],
    unit_of: UnitOf,
) -> TableError:
    """Return the error of cells that cannot be used: row, column and what is wrong.

    Given are the columns in use, those of them that are encoded, and what was seen of others.
    """
    columns, listed, uneven = dict.fromkeys(name for _, name, _ in cells), table.placed(cells), list[int]()
    if all(trouble.endswith("is not a number") for _, _, trouble in cells):  # then rows may be of other length, too
        found, uneven = uneven_or_wrong(table, [name for name in used if name not in encoded], unit_of)
        listed = found if len(found) >= len(listed) else listed
    others = [name for name in used if name not in columns]
    headers = {row for row, name, trouble in cells if trouble.startswith(f"{name!r} ")}
    totals = {row for row, _, trouble in cells if TOTALS.fullmatch(trouble.removesuffix(" is not a number")[1:-1])}
    again = headers.issuperset(row for row, *_ in cells)  # the header stands there again
    away = headers if again else totals
    lines = [line for row, (line, _) in enumerate(table.numbered_rows()) if row in away] if away else []
    if again:
        return TableError(table.path, listed, columns, others, lines=lines)
    listed += [f"line {line} is called as a row of totals is" for line in lines]
    lines = sorted({*lines, *uneven})
    own = [seen[name] for name in columns if name in seen]
    mixed = [one for one in own if one.kinds["signed"] > 1 and len(one.units) > 1]
    listed = [*(told_units(table, one.name, one.units, unit_of)[0] for one in mixed), *listed]
    tokens = few_tokens(own) if len(own) == len(columns) else []
    return TableError(table.path, listed, columns, others, tokens, lines=lines)
