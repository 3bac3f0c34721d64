"""Columns by name: names that can be printed, lists of them, and the ones that come closest to a wrong one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from ardea.names import printable

# Names that a message lists, and that are compared letter by letter with a wrong one (conventions: a line, a second).
SHOWN_NAMES, MOST_COMPARED = 20, 5000


def safe_name(name: str) -> str:
    r"""Return a name in one line that a terminal can print: control characters are written as escapes.

    Examples
    --------
    >>> safe_name("Temp\n (°C)"), safe_name("a\x1b[31m")
    ('Temp (°C)', 'a\\x1b[31m')
    """
    return printable(" ".join(name.split()))


def sound_names(fields: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names that are there, printable and different, and what had to be changed.

    Examples
    --------
    >>> sound_names(["a", "", "a"])[0]
    ['a', 'x1', 'a.2']
    """
    remarks, names, taken, used = [], [], set(fields), set[str]()
    for j, given in enumerate(fields):
        name = safe_name(given) or f"x{j}"
        if name in used or (name != given and name in taken):
            name = next(f"{name}.{n}" for n in range(2, len(fields) + 2) if f"{name}.{n}" not in taken)
        names.append(name)
        used.add(name)
        taken.add(name)
        if name != given.strip():
            remarks.append(f"column {j + 1} is named {name!r} in place of {given!r}")
    if len(remarks) > 3:  # a convention: more lines would bury the rest
        remarks = [f"{len(remarks)} columns without a usable name were renamed, such as {remarks[0]}"]
    return names, remarks


def named(entry: str | int, names: Sequence[str], where: str) -> str:
    """Return a column given by name, or by number (from 0; −1 is the last) where no column bears it as a name.

    Examples
    --------
    >>> named("price", ["area", "price"], "a.csv has no column"), named("-2", ["area", "price"], "")
    ('price', 'area')
    """
    if entry in names:
        return str(entry)
    if not isinstance(entry, bool) and re.fullmatch("-?[0-9]{1,9}", str(entry)):
        number = int(entry)
        if -len(names) <= number < len(names):
            return names[number]
    raise unknown(entry, names, where)


def split_names(text: str) -> list[str]:
    """Return the names in a list with commas between them; quotes keep a name with commas together.

    Examples
    --------
    >>> split_names('x, "Residence time, s",z')
    ['x', 'Residence time, s', 'z']
    """
    return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]


def joined_names(names: Iterable[str]) -> str:
    """Return names as one list that `split_names` takes apart again.

    Examples
    --------
    >>> joined_names(["Date", "Residence time, s"])
    'Date,"Residence time, s"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def listed(texts: Iterable[str] | None, names: Sequence[str], where: str) -> list[str]:
    """Return the columns that lists name; a text that is a column's name as a whole is that column.

    Examples
    --------
    >>> listed(["time, s", "b,-1"], ["time, s", "b", "c"], "")
    ['time, s', 'b', 'c']
    """
    found: list[str] = []
    for text in texts or []:
        parts = [text] if text in names else split_names(text)
        found += [named(part, names, where) for part in parts]
    return found


def unknown(name: str | int, known: Iterable[str], where: str) -> ValueError:
    """Return the error of a name that a file does not have, with the names that come closest.

    Examples
    --------
    >>> str(unknown("prize", ["price", "area"], "a.csv has no column"))
    "a.csv has no column 'prize'. Did you mean 'price'? There are price, area."
    """
    names = list(known)
    close = _closest(str(name), names)
    meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    return ValueError(f"{where} {name!r}.{meant} There are {shown or 'none'}.")


def _closest(name: str, names: Sequence[str]) -> list[str]:
    """Return up to three names that differ in case only, or contain it or lie in it, or are spelt much alike."""
    small = name.strip().lower()
    same = [one for one in names if one.lower() == small]
    part = [one for one in names if small and (small in one.lower() or one.lower() in small)]
    lowered = {one.lower(): one for one in reversed(names)}
    alike = [lowered[one] for one in get_close_matches(small, list(lowered)[:MOST_COMPARED], 3)]
    return same or list(dict.fromkeys([*(part if len(small) > 1 else []), *alike]))[:3]
