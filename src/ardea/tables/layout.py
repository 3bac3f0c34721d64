"""How the lines of a text are laid out: what separates columns, which lines stand above them, which hold names."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from ardea.tables.columns import NOTATIONS, notation_of, sign_of

# Cells of a row that are looked at to choose a separator (a convention; very wide tables would take seconds else).
SAMPLE_CELLS = 200
# A line of text longer than this is none (a convention: 100,000 columns of 17 digits take 2 MB).
LONGEST_LINE = 2**26
# First of all that may fit wins where two separators explain a file equally well; None stands for blanks.
SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", None: "blanks"}


def separated(lines: list[str]) -> tuple[str | None, list[int], list[list[str]]]:
    """Return the separator under which most lines have equally many fields, most of them numbers; line ends; rows.

    Of two under which as many have, the first line tells: the fewer names it lacks, up to two, the better. Blanks make
    no table of one that names and all rows below them are under another separator, unless of numbers alone.
    """
    is_table = False
    best: tuple[float, int, float] = (-1.0, 0, -1.0)
    found: tuple[str | None, list[int], list[list[str]]] = (",", [], [])
    for separator in SEPARATORS:
        ended = [(end, row) for end, row in fields_of(lines, separator) if len(row) > 1 or any(row)]
        rows = [row for _, row in ended]
        if not rows or (separator is None and len(rows) > 1 and len(rows[0]) == 1 and all(map(sign_of, lines[1:]))):
            continue  # blanks stand before units
        width, count = Counter(map(len, rows)).most_common(1)[0]
        body = [row for row in rows[1:] or rows if len(row) == width]
        cells = [cell for row in body for cell in row[:SAMPLE_CELLS]]
        numbers = sum(not cell or notation_of(cell) != "" for cell in cells) / max(1, len(cells))
        if separator is None and is_table and numbers < 1:
            break
        below = rows[lines_above(rows) :]
        is_table |= width > 1 and {*map(len, below)} == {width} and not any(cell[:1].isdigit() for cell in below[0])
        lacking = min(max(width - len(rows[0]), 0), 2)
        score = (round(count / len(rows), 1) if width > 1 else -0.5, -lacking, numbers)
        if score > best:
            best, found = score, (separator, [end for end, _ in ended], rows)
    return found


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


def fields_of(lines: Iterable[str], separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield how many lines were read so far, and the cells of every row: quoted cells may go across lines."""
    if separator is None:
        yield from enumerate(map(str.split, lines), 1)
        return
    csv.field_size_limit(2 * LONGEST_LINE)
    reader = csv.reader(lines, delimiter=separator)
    for row in reader:
        yield reader.line_num, [cell.strip() for cell in row]


def doubtful_dots(rows: list[list[str]], names: list[str]) -> list[str]:
    """Tell of columns in which every dot has one to three digits before and three behind, as thousands have."""
    remarks = []
    for j, name in enumerate(names):
        dots = [row[j] for row in rows if j < len(row) and "." in row[j]]
        if dots and all(notation_of(cell) == "dots" for cell in dots):
            read = f"dots in column {name!r} were read as decimal points ({dots[0]})"
            remarks.append(f"{read}; if they group thousands, give --decimal ,")
    return remarks


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
