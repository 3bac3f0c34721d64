"""What goes to the terminal: plain text, colour only where it is seen, JSON for machines."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, TextIO

import numpy as np

FAILED, INTERRUPTED = 1, 130
BOLD, RED, YELLOW = "1", "31", "33"
SHOWN_NAMES = 20
NUMBER = re.compile("-?[0-9]{1,9}")
# What the library says, as the command line calls it.
AS_OPTIONS = {
    "noise_variance=": "the square of --noise ",
    "noise_variance": "--noise",
    "form='derivative'": "--form derivative",
    "missing='drop'": "--missing drop",
    "false_terms=": "--false-terms ",
    "always_keep": "--keep",
}


class Failure(Exception):
    """Something the user can mend; the text is shown as one line."""


def painted(text: str, code: str, stream: TextIO | None = None) -> str:
    """Return text with a colour or weight where the stream is a terminal that wants it.

    Examples
    --------
    >>> import io
    >>> painted("few terms", BOLD, io.StringIO())
    'few terms'
    """
    stream = sys.stdout if stream is None else stream
    wanted = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\033[{code}m{text}\033[0m" if wanted else text


def make_writable() -> None:
    """Let every letter be printed: as an escape where the encoding lacks it, into the void where a stream is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, it stays open
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def complain(command: str, text: str) -> None:
    """Write one line about what went wrong on standard error."""
    name = f"ardea {command}".rstrip()
    print(f"{painted(f'{name}:', RED, sys.stderr)} {as_options(' '.join(text.split()))}", file=sys.stderr)


def as_options(text: str) -> str:
    """Return a message of the library with its parameters called as the command line does.

    Examples
    --------
    >>> as_options("Take more samples, or form='derivative'.")
    'Take more samples, or --form derivative.'
    """
    for parameter, option in AS_OPTIONS.items():
        text = text.replace(parameter, option)
    return text


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """Keep warnings as text, each once, instead of printing them where they arise.

    Examples
    --------
    >>> with kept_warnings() as notes:
    ...     warnings.warn("too few rows", stacklevel=1)
    >>> notes
    ['too few rows']
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(" ".join(str(one.message).split()) for one in caught)


@contextmanager
def spoken_warnings() -> Iterator[list[str]]:
    """Keep warnings as text that speaks of options."""
    with kept_warnings() as notes:
        yield notes
    notes[:] = map(as_options, notes)


def print_warnings(notes: list[str]) -> None:
    """Write kept warnings on standard error, one line each."""
    for note in notes:
        print(f"{painted('warning:', YELLOW, sys.stderr)} {note}", file=sys.stderr)


def named(name: str, names: Sequence[str], where: str) -> str:
    """Return a column given by name, or by number where no column bears it as a name.

    Examples
    --------
    >>> named("price", ["area", "price"], "a.csv has no column"), named("-2", ["area", "price"], "")
    ('price', 'area')
    """
    if name in names:
        return name
    if NUMBER.fullmatch(name) and -len(names) <= int(name) < len(names):
        return names[int(name)]
    raise unknown(name, names, where)


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


def in_quotes(text: str) -> str:
    """Return text as one word for a shell, always in quotes.

    Examples
    --------
    >>> print(in_quotes("Date,Operator"))
    'Date,Operator'
    """
    quoted = shlex.quote(text)
    return quoted if quoted.startswith(("'", '"')) else f"'{quoted}'"


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


def unknown(name: str, known: Iterable[str], where: str) -> Failure:
    """Return the failure of a name that a file does not have, with the names that come closest.

    Examples
    --------
    >>> str(unknown("prize", ["price", "area"], "a.csv has no column"))
    "a.csv has no column 'prize'. Did you mean 'price'? There are price, area."
    """
    names = list(known)
    close = _closest(name, names)
    meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    return Failure(f"{where} {name!r}.{meant} There are {shown or 'none'}.")


def _closest(name: str, names: Sequence[str]) -> list[str]:
    """Return up to three names that differ in case only, or contain it or lie in it, or are spelt much alike."""
    small = name.strip().lower()
    same = [one for one in names if one.lower() == small]
    part = [one for one in names if small and (small in one.lower() or one.lower() in small)]
    lowered = {one.lower(): one for one in reversed(names)}
    alike = [lowered[one] for one in get_close_matches(small, list(lowered), 3)]
    return same or list(dict.fromkeys([*(part if len(small) > 1 else []), *alike]))[:3]


def print_json(value: Any) -> None:
    """Print for machines: strict JSON, so that numbers that are not finite become null."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value made of what JSON knows.

    Examples
    --------
    >>> plain({"a": np.float64(1.5), "b": (float("nan"), np.arange(2))})
    {'a': 1.5, 'b': [None, [0, 1]]}
    """
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def working(text: str) -> None:
    """Say on a terminal what takes long; elsewhere nothing."""
    if sys.stderr.isatty():
        print(f"{text} …", file=sys.stderr)
