"""What goes to the terminal: plain text, colour only where it is seen, JSON for machines."""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

FAILED, INTERRUPTED = 1, 130
BOLD, RED, YELLOW = "1", "31", "33"
# What the library says, as the command line calls it.
AS_OPTIONS = {
    "noise_variance=": "the square of --noise ",
    "noise_variance": "--noise",
    "noise_std=": "--noise ",
    "noise_std must": "--noise must",
    "form='derivative'": "--form derivative",
    "criterion='": "--criterion '",
    "memory=": "--memory ",
    "(memory=, or --memory)": "(--memory)",
    "(SparseARD, or a larger strength)": "(--method sparse, or a larger --strength)",
    "Use SparseARD,": "Use --method sparse,",
    "try derivative_order=2": "try --second-order",
    "derivative_order=2 is for": "--second-order is for",
    "leave form and discrete_time out": "leave --form and --map out",
    "leave form, regressor and x_dot out": "leave --form out",
    "known, constraints, shared, false_terms, noise and noise_std are": "--false-terms and --noise are",
    "missing='drop'": "--missing drop",
    "false_terms=": "--false-terms ",
    "always_keep": "--keep",
    **{f"rows='{kind}'": f"--rows {kind}" for kind in ("series", "groups", "unequal")},
    "with groups=": "with --groups COLUMN",
    "leave rows= out": "leave --rows out",
    "fit(X, y, groups=…), one": "--groups COLUMN, with one",
    " on the command line)": ")",
    "(plot_residuals())": "(--out DIR draws them)",
    # There is no such option: what helps in Python is named as that, and what helps nowhere else is left out.
    "(kind='selective' allows": "(in Python kind='selective' allows",
    "need derivative_order=2": "need derivative_order of 2, in Python",
    "library (Custom has": "library in Python (Custom has",
    "Raise max_iter, or tol": "In Python raise max_iter, or tol",
    "or raise tol": "or in Python raise tol",
    "Give eta (beyond": "In Python give eta (beyond",
    "real ones: fit(…, split=True)": "real ones: in Python fit(…, split=True)",
    "give boundary=(left, right)": "give, in Python, boundary=(left, right)",
    "try a smaller max_step": "in Python max_step may be smaller",
    "(scipy.stats.fisher_exact": "(in Python scipy.stats.fisher_exact",
    " (DataFrame.drop_duplicates(), or numpy.unique of X and y with axis=0)": "",
}
# The longest first, so that a phrase is taken before the name that stands in it.
PARAMETERS = re.compile("|".join(map(re.escape, sorted(AS_OPTIONS, key=len, reverse=True))))
# Control characters but the line break: a name or a cell with one could take over the terminal.
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Failure(Exception):
    """Something the user can mend."""


def visible(text: str) -> str:
    """Return text with control characters written as escapes."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def painted(text: str, code: str, stream: TextIO | None = None) -> str:
    """Return text with a colour or weight where the stream is a terminal that wants it."""
    stream = sys.stdout if stream is None else stream
    wanted = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\033[{code}m{visible(text)}\033[0m" if wanted else visible(text)


def make_writable() -> None:
    """Let every letter be printed: as an escape where the encoding lacks it, into the void where a stream is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, it stays open
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def complain(command: str, text: str) -> None:
    """Write what went wrong on standard error; lines after the first are indented."""
    lines = [" ".join(line.split()) for line in visible(as_options(text)).splitlines()]
    name = painted(f"ardea {command}".rstrip() + ":", RED, sys.stderr)
    print(f"{name} " + "\n  ".join(line for line in lines if line), file=sys.stderr)


def as_options(text: str) -> str:
    """Return a message of the library with its parameters called as the command line does.

    Examples
    --------
    >>> as_options("Give noise_variance, or try derivative_order=2.")
    'Give --noise, or try --second-order.'
    """
    return PARAMETERS.sub(lambda found: AS_OPTIONS[found[0]], text)


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """Keep warnings as text that speaks of options, each once, instead of printing them where they arise."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(as_options(" ".join(str(one.message).split())) for one in caught)


def print_warnings(notes: list[str]) -> None:
    """Write kept warnings on standard error, one line each."""
    for note in notes:
        print(f"{painted('warning:', YELLOW, sys.stderr)} {visible(' '.join(note.split()))}", file=sys.stderr)


def how_read(path: Path, remarks: Sequence[str]) -> list[str]:
    """Return the lines that say how a file was read; none where nothing is to be said."""
    return [f"How {path.name} was read:", *(f"  {visible(one)}" for one in remarks)] if remarks else []


def print_remarks(path: Path, remarks: Sequence[str]) -> None:
    """Write on standard error how a file was read."""
    for line in how_read(path, remarks):
        print(line, file=sys.stderr)


def print_json(value: Any) -> None:
    """Print for machines: strict JSON, so that numbers that are not finite become null."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value made of what JSON knows; arrays become lists."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def working(text: str) -> None:
    """Say on a terminal what takes long; elsewhere nothing."""
    if sys.stderr.isatty():
        print(f"{visible(text)} …", file=sys.stderr)
