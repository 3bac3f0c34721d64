"""Options that several commands share, and the look of their help."""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import textwrap
from itertools import groupby
from pathlib import Path

from ardea.cli.console import split_names
from ardea.readers import DEFAULT_MEMORY

METHODS = ("sparse", "ard", "vi", "r", "m", "l", "map")
SMALLEST, LARGEST, MOST = 1e-150, 1e150, 10**15
CRITERIA = ("evidence", "aicc", "aic", "bic", "ebic", "ebic2", "cv", "stability")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keep examples as they are written, and leave room for long option names."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(shutil.get_terminal_size().columns, 110))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap paragraphs; an example (an indented line) that is too long has its remark on the next line."""
        parts: list[str] = []
        for kind, lines in groupby(text.splitlines(), key=lambda line: line[:1].isspace() if line else None):
            if kind is None:
                parts += lines
            elif kind:
                parts += [line if len(line) <= width else re.sub(r"(?<=\S) {2,}", "\n      ", line) for line in lines]
            else:
                parts.append(textwrap.fill(" ".join(lines), width))
        return textwrap.indent("\n".join(parts), indent)


def names(text: str) -> str:
    """Return a list of names with commas between them as it is: which columns it means, their names tell.

    Examples
    --------
    >>> names("x, y,z")
    'x, y,z'
    """
    try:
        sound = all(found := split_names(text)) and found
    except csv.Error:
        sound = False
    if not sound:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of names with commas between them")
    return text


def positive(text: str) -> float:
    """Return a number above zero whose square is one, too."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number above zero")
    if not SMALLEST <= value <= LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is not a number from {SMALLEST:g} to {LARGEST:g}")
    return value


def whole(text: str) -> int:
    """Return a whole number above zero."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above zero")
    if value > MOST:
        raise argparse.ArgumentTypeError(f"{text} is more than {MOST:g}")
    return value


def seed(text: str) -> int:
    """Return a seed of random numbers."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not a seed: whole numbers from 0 to 2**32 - 1 are")
    return value


def share(text: str) -> float:
    """Return a number between 0 and 1."""
    value = positive(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"{text} does not lie between 0 and 1")
    return value


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is fitted to a table."""
    group = parser.add_argument_group("regression")
    group.add_argument("--target", metavar="COLUMN", help="the column to explain: its name, or its number from 0")
    group.add_argument(
        "--columns",
        action="append",
        type=names,
        metavar="A,B,…",
        help="columns to explain it with, by name or number from 0 (default: all others)",
    )
    group.add_argument(
        "--drop",
        action="append",
        type=names,
        metavar="A,B,…",
        help="columns to leave out, such as dates: names or numbers; quote a name that has commas; may be repeated",
    )
    group.add_argument(
        "--missing",
        choices=("drop", "refuse"),
        default="drop",
        help="rows with empty cells: leave them out (default), or stop",
    )
    group.add_argument("--method", choices=METHODS, default="sparse", help="which estimator (default: sparse)")
    group.add_argument(
        "--false-terms",
        type=positive,
        metavar="N",
        help="terms without meaning that you accept on average (default: .3, of vi, r, m, l and map 1)",
    )
    group.add_argument("--strength", type=positive, metavar="S", help="alpha, lam or tau itself, instead")
    group.add_argument("--search", action="store_true", help="try 15 strengths and choose by --criterion")
    group.add_argument(
        "--criterion",
        choices=CRITERIA,
        default="evidence",
        metavar="NAME",
        help=f"for --search: {', '.join(CRITERIA)} (default: evidence)",
    )
    group.add_argument("--no-intercept", action="store_true", help="the model passes through zero")
    group.add_argument(
        "--keep",
        action="append",
        type=names,
        metavar="A,B,…",
        help="columns that belong to the model: never dropped",
    )
    group.add_argument(
        "--noise", type=positive, metavar="SIGMA", help="noise of the target, if known (default: learned)"
    )
    group.add_argument(
        "--memory", default=DEFAULT_MEMORY, metavar="SIZE", help=f"larger files are read in blocks ({DEFAULT_MEMORY})"
    )


def add_discover_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is looked for in a time series or field."""
    group = parser.add_argument_group("equations of motion")
    group.add_argument("--time", metavar="COLUMN", help="the column (or array) of times: numbers, or dates")
    group.add_argument("--step", type=positive, metavar="DT", help="time between rows, where there is no such column")
    group.add_argument(
        "--time-unit", choices=("s", "min", "h", "d"), help="unit for times that are dates (default: by their step)"
    )
    group.add_argument(
        "--states",
        action="append",
        type=names,
        metavar="A,B,…",
        help="columns or arrays that obey equations: names or numbers (default: all others)",
    )
    group.add_argument(
        "--inputs", action="append", type=names, metavar="A,B,…", help="columns that drive the system from outside"
    )
    group.add_argument("--series", metavar="COLUMN", help="column whose value tells several series apart")
    group.add_argument(
        "--space",
        action="append",
        type=names,
        metavar="X,…",
        help="arrays with the coordinates of a field's space axes",
    )
    group.add_argument("--degree", type=whole, metavar="N", help="highest power of the states (default: 3, many: 2)")
    group.add_argument("--form", choices=("weak", "derivative"), default="weak", help="default: weak")
    group.add_argument("--map", action="store_true", help="discrete time: x[k+1] = f(x[k])")


def add_text_options(parser: argparse.ArgumentParser) -> None:
    """Add what says how numbers are written in a text."""
    parser.add_argument(
        "--decimal",
        choices=(",", "."),
        metavar=", or .",
        help="what stands before decimals in a text (default: found out)",
    )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add what is printed and where files go."""
    group = parser.add_argument_group("output")
    group.add_argument("--level", type=share, default=0.95, metavar="P", help="probability of intervals (default: .95)")
    group.add_argument("--json", action="store_true", help="print JSON for machines instead of text")
    group.add_argument("--out", type=Path, metavar="DIR", help="also write model, table, figures and report there")
