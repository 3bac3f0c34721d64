"""The command line: all commands with their options, and what happens when one fails. Loads nothing but argparse.

Each command has a module that is loaded to run it.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from datetime import datetime
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

from ardea import __version__
from ardea.cli.console import FAILED, INTERRUPTED, Failure, complain, make_writable, visible
from ardea.names import in_a_row
from ardea.paper.runner import add_options as add_reproduce

# Numbers beyond these have squares that are no numbers, and nobody counts further (derived: double precision).
SMALLEST, LARGEST, MOST = 1e-150, 1e150, 10**15
METHODS = ("sparse", "ard", "vi", "r", "m", "l", "map")
CRITERIA = ("evidence", "aicc", "aic", "bic", "ebic", "ebic2", "cv", "stability")
# What data, files and missing packages raise; anything else is a mistake of ours and shows where it arose.
EXPECTED = (Failure, ValueError, OSError, ImportError, NotImplementedError, MemoryError)
# What stands below the options in the help of commands: what data may be, and examples.
HELP = Path(__file__).parent / "help"
# Lines left out, at most (a convention: no one leaves out more by their numbers).
MOST_LINES = 10**6
# Options that are not part of the command that does the same again.
NOT_REPEATED = ("--json", "--memory")


STATES = "--states A,B chooses the columns that obey equations; --drop-lines leaves out lines of the file."
EXPLAINED = "`ardea fit` explains one column, --target COLUMN"
MOVING = "`ardea discover` finds equations of motion, and takes --time COLUMN"
# Options of other commands, or of none, with what does here what they are looked for.
INSTEAD = {
    ("fit", "--time"): f"{EXPLAINED}; {MOVING}.",
    ("fit", "--states"): f"{EXPLAINED}, and takes --columns A,B; {MOVING}.",
    ("discover", "--target"): f"{MOVING}; {EXPLAINED}.",
    ("discover", "--drop"): STATES,
    ("discover", "--columns"): STATES,
}


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


# What may stand for a value -------------------------------------------------------------------------------------------


def reader(convert: Callable[[str], Any], is_sound: Callable[[Any], bool], what: str) -> Callable[[str], Any]:
    """Return a reader of what stands for a value, which says what that must be."""

    def read(text: str) -> Any:
        try:
            value = convert(text)
            sound = is_sound(value)
        except (ValueError, csv.Error):
            sound = False
        if not sound:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return read


def whole(least: int, most: int = MOST) -> Callable[[str], int]:
    """Return a reader of whole numbers within bounds."""
    return reader(int, lambda value: least <= value <= most, f"a whole number from {least} to {most}")


# Which columns a list means, their names tell: it is handed on as it is.
names = reader(
    str,
    lambda text: all(part.strip() for part in next(csv.reader([text], skipinitialspace=True), [""])),
    "a list of names with commas between them",
)
numbers = reader(
    lambda text: [float(part) for part in text.split(",")],
    lambda found: all(map(math.isfinite, found)),
    "a list of numbers with commas between them",
)
positive = reader(float, lambda value: SMALLEST <= value <= LARGEST, f"a number from {SMALLEST:g} to {LARGEST:g}")
NOISES = ("additive", "counts", "proportional", "auto")
noises = reader(
    lambda text: text if text in NOISES else [positive(part) for part in text.split(",")],
    bool,
    f"one of {', '.join(NOISES)}, or standard deviations with commas between them",
)


def line_numbers(text: str) -> set[int]:
    """Return the lines that a list such as 3-5,62 means.

    Examples
    --------
    >>> sorted(line_numbers("3-5,62"))
    [3, 4, 5, 62]
    """
    ends = [[int(end) for end in part.split("-", 1)] for part in text.split(",")]
    if sum(one[-1] - one[0] for one in ends) > MOST_LINES or min(map(min, ends)) < 1:
        raise ValueError
    return {number for one in ends for number in range(one[0], one[-1] + 1)}


lines = reader(str, lambda text: bool(line_numbers(text)), "a list of lines, counted from 1, such as 62 or 3-5,62")


def _moment(text: str) -> float | datetime:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text)


moment = reader(
    _moment,
    lambda value: isinstance(value, datetime) or abs(value) <= LARGEST,
    "a number, or a date such as 2024-05-31 or 2024-05-31T12:00 (with +02:00 where the data have zones)",
)
share = reader(float, lambda value: SMALLEST <= value < 1, "a number between 0 and 1")


# Options --------------------------------------------------------------------------------------------------------------

Option = tuple[str, dict[str, Any]]
Options = list[Option | str]  # a text begins a group


def option(usage: str, text: str, read: Callable[[str], Any] = str, **settings: Any) -> Option:
    """Return an option or argument: how it is written, what it means, how its value is read."""
    name, _, value = usage.partition(" ")
    return name, {"help": text, "type": read, "metavar": value or None, **settings}


def several(name: str, text: str) -> Option:
    """Return an option that takes a list of names, and may be repeated."""
    return option(f"{name} A,B,…", text, names, action="append")


def flag(name: str, text: str) -> Option:
    """Return an option without a value."""
    return name, {"help": text, "action": "store_true"}


FALSE_TERMS = "terms without meaning that you accept on average (default: .3, of vi, r, m, l and map 1)"
DROP = "columns to leave out, such as dates: names or numbers; quote a name that has commas; may be repeated"
MISSING = "rows with empty cells: leave them out (default), or stop"
ROWS = (
    "what errors of rows are like: dependent in the order of time (series) or by --groups, or of unequal size "
    "(default: independent, of equal size; with --groups: by them)"
)
CHOSEN_BY = f"for --search: {', '.join(CRITERIA)} (default: evidence)"
REGRESSION: Options = [
    "regression",
    option("--target COLUMN", "the column to explain: its name, or its number from 0"),
    several("--columns", "columns to explain it with, by name or number from 0 (default: all others)"),
    several("--drop", DROP),
    several("--categorical", "columns of codes or texts to encode beside those of at most 20 texts; `none`: no column"),
    several("--keep", "columns that belong to the model: never dropped"),
    option("--missing", MISSING, choices=("drop", "refuse"), default="drop"),
    option("--method", "which estimator (default: sparse)", choices=METHODS, default="sparse"),
    option("--false-terms N", FALSE_TERMS, positive),
    option("--strength S", "alpha, lam or tau of --method vi, r, m, l or map, instead of --false-terms", positive),
    flag("--search", "try 15 models, from many terms to few, and choose by --criterion"),
    option("--criterion NAME", CHOSEN_BY, choices=CRITERIA, default="evidence"),
    flag("--no-intercept", "the model passes through zero"),
    flag("--interactions", "also products of two columns"),
    option("--rows", ROWS, choices=("independent", "series", "groups", "unequal")),
    option("--groups COLUMN", "column that tells which rows belong together: subjects, batches, several series"),
]
POWERS = option("--degree N", "also powers of columns up to this one, such as 2 for squares (default: 1)", whole(1))
NOISE_OF_TARGET = ("--noise SIGMA", "noise of the target, if known (else learned)")
MOTION: Options = [
    "equations of motion",
    option("--time COLUMN", "the column (or array) of times: numbers, or dates; or DATE,TIME"),
    option("--step DT", "time between rows, where there is no such column", positive),
    option("--time-unit", "unit for times that are dates (default: by their step)", choices=("s", "min", "h", "d")),
    several("--states", "columns or arrays that obey equations: names or numbers (default: all others)"),
    several("--inputs", "columns that drive the system from outside"),
    several("--space", "arrays with the coordinates of a field's space axes"),
    option("--series COLUMN", "column whose value tells several series apart"),
    option("--degree N", "highest power of the states (default: 3, many: 2)", whole(1)),
    option(
        "--form",
        "how data and equations meet (default: trajectory; fields: weak)",
        choices=("trajectory", "weak", "derivative"),
    ),
    flag("--map", "discrete time: x[k+1] = f(x[k])"),
    flag("--second-order", "only positions are measured: find x'' from x and x'"),
]
KNOWN_NOISE = "additive, counts, proportional (to the state) or auto (default); or standard deviations, if known"
NOISE: Options = [
    "noise and false terms (trajectory form)",
    option("--noise KIND or S,S,…", KNOWN_NOISE, noises),
    option("--false-terms N", "false terms accepted in all equations together (0.02)", positive),
]
TEXT: Options = [
    "how the table is written (default: inferred, and said)",
    option("--header", "whether it begins with names", choices=("auto", "yes", "no"), default="auto"),
    option("--decimal , or .", "what stands before decimals", choices=(",", ".")),
    option("--na TEXT", "what stands in empty cells, besides NA, nan, -, … (none: not these)", action="append"),
    option("--drop-lines N,N-M,…", "lines of the file to leave out, such as one of totals", lines),
    option("--sheet NAME", "of an Excel file: its name, or its number from 0 (the first)"),
    option("--memory SIZE", "larger tables are read in parts (1 GB)", default="1 GB"),
]
LEVEL = option("--level P", "probability of intervals (.95)", share, default=0.95)
JSON = flag("--json", "print JSON for machines instead of text")
OUTPUT: Options = [
    "output",
    LEVEL,
    JSON,
    option("--out DIR", "also write model, table, figures and report there", Path),
]
CSV_FILE = option("--out FILE", "write CSV there instead of printing it", Path)


# Commands -------------------------------------------------------------------------------------------------------------

DEMO = Path("ardea-demo")
# What a command does, the function in `ardea.cli` that does it, and its options; a text begins a group of them.
COMMANDS: dict[str, tuple[str, str, Options]] = {
    "demo": (
        "see it work, on data it makes itself",
        ".demo:run",
        [
            option("--seed", "seed of the generated data (default: 0)", whole(0, 2**32 - 1), default=0),
            option("--out DIR", f"where to put pictures and data ({DEMO})", Path, default=DEMO),
        ],
    ),
    "fit": (
        "explain one column of a table by few others, with intervals",
        ".regressions:run",
        [
            option("data DATA", "the table", Path),
            *(*REGRESSION, POWERS, option(*NOISE_OF_TARGET, positive), *TEXT, *OUTPUT),
        ],
    ),
    "predict": (
        "predict new rows with a saved model, with intervals",
        ".predict:run",
        [
            option("model MODEL", "a saved model, such as run/model.ardea", Path),
            option("data DATA", "a table with the model's columns, or a folder of such tables", Path),
            CSV_FILE,
            flag("--json", "print JSON for machines instead of CSV"),
            LEVEL,
            *TEXT,
        ],
    ),
    "discover": (
        "find equations of motion in a time series or a field",
        ".models:run",
        [option("data DATA", "the time series or field", Path), *MOTION, *NOISE, *TEXT, *OUTPUT],
    ),
    "simulate": (
        "run saved equations of motion from a start",
        ".predict:simulate",
        [
            option("model MODEL", "saved equations of motion", Path),
            option(
                "--start X,Y,…",
                "states at the first time; of second order: positions, then their rates (default: as in the data)",
                numbers,
            ),
            option(
                "--from T",
                "first time, a number or a date, with its zone where the data have zones (default: as they began; with "
                "--start 0)",
                moment,
                dest="begin",
            ),
            option("--until T", "last time, written like the first; of a map, steps", moment, required=True),
            option(
                "--step DT",
                "time between rows; the last row is the last step that is not after --until (default: 100 steps to it)",
                positive,
            ),
            option("--inputs FILE", "a table with the inputs of the equations, and times", Path),
            option("--time COLUMN", "its column of times (default: by its name)"),
            CSV_FILE,
            *TEXT,
        ],
    ),
    "rates": (
        "how many false and missed terms are to be expected",
        ".rates:run",
        [
            option("--columns D", "columns to choose from (default: 100)", whole(1), default=100),
            option("--false-terms N", "false terms you accept (default: 1)", positive),
            option("--method", "with --strength: which method's", choices=METHODS[2:]),
            option("--strength S", "alpha, lam or tau, instead of --false-terms", positive),
            option("--t T,T,…", "t-statistics |ξ|√ρ/σ of the true terms", numbers),
            option("--rho", "squared norm of a column (default: 1)", positive, default=1.0),
            option("--sigma", "noise (default: 1)", positive, default=1.0),
            option("--plot FILE", "draw the operating curves (.png, .svg or .pdf)", Path),
            JSON,
        ],
    ),
    "report": (
        "write one HTML page about a model",
        ".predict:report",
        [
            option("source SOURCE", "a saved model, or data", Path),
            option("--out FILE", "where to write the page (.html)", Path, required=True),
            option("--data DATA", "rows to check a saved model against", Path),
            option("--title", "title of the page"),
            LEVEL,
            *(*REGRESSION, option(*NOISE_OF_TARGET, noises), *MOTION, *TEXT),
        ],
    ),
    "reproduce": ("make the tables and figures of the paper, as published or corrected", "", []),
    "completion": ("completion of commands and options for bash (and zsh)", ":complete", []),
}


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Give a parser the options of a command."""
    group: Any = parser
    for one in COMMANDS[command][2]:
        if isinstance(one, str):
            group = parser.add_argument_group(one)
        else:
            group.add_argument(one[0], **one[1])
    if command == "reproduce":
        add_reproduce(parser)


def option_names(command: str) -> list[str]:
    """Return the options of a command."""
    parser = argparse.ArgumentParser()
    add_options(parser, command)
    return list(dict.fromkeys(re.findall("--[a-z-]+", parser.format_help())))


def build_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, with the options of one command where that is asked for, else of all."""
    description = "Sparse Bayesian regression and equations of motion: few terms, honest error bars."
    settings: dict[str, Any] = {"formatter_class": HelpFormatter, "allow_abbrev": False}
    below = {page.stem: page.read_text(encoding="utf-8") for page in HELP.glob("*.txt")}
    parser = argparse.ArgumentParser("ardea", None, description, below["ardea"], **settings)
    parser.add_argument("--version", action="version", version=f"ardea {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name, (what, _, _) in COMMANDS.items():
        told: dict[str, Any] = {"description": f"{what[0].upper()}{what[1:]}.", "epilog": below.get(name)}
        command = commands.add_parser(name, help=what, **settings, **told)
        if asked in {None, name}:
            add_options(command, name)
    return parser


def read_options(given: Sequence[str]) -> argparse.Namespace:
    """Return what the arguments of a command mean; explain those that mean nothing, and leave."""
    asked = given[0] if given and given[0] in COMMANDS else None
    parser = build_parser(asked)
    if asked is None:
        return parser.parse_args(given)
    known, options = option_names(asked), argparse.Namespace()
    wrong = [one for one in given[1:] if one.startswith("--") and one.partition("=")[0] not in known]
    if not wrong or {"-h", "--help"} & {*given}:  # else these are told before what is lacking
        options, wrong = parser.parse_known_args(given)
    if wrong:
        refuse(given, wrong, options)
    return options


def refuse(given: Sequence[str], wrong: Sequence[str], options: argparse.Namespace) -> NoReturn:
    """Print the usage of a command and what is wrong with its arguments, and leave."""
    command = given[0]
    parser = argparse.ArgumentParser(f"ardea {command}", formatter_class=HelpFormatter)
    add_options(parser, command)
    named = dict.fromkeys(one.partition("=")[0] for one in wrong if one.startswith("-"))
    said = [f"there is no option {one}. {_meant(command, one)}" for one in named]
    others = [one for one in wrong if not one.startswith("-")]
    if others and not named:
        said.append(_left_over(given, others, options))
    parser.error(visible("\n  ".join(said)))


def _meant(command: str, option: str) -> str:
    """Return what an option that a command does not have may stand for."""
    if (command, option) in INSTEAD:
        return INSTEAD[command, option]
    own = option_names(command)
    if owners := [f"`ardea {name}`" for name in COMMANDS if option in option_names(name)]:
        return f"It is one of {in_a_row(owners)}."
    close = [one for one in own if one.startswith(option)] or get_close_matches(option, own, 1)
    return f"Did you mean {' or '.join(close)}?" if close else f"See ardea {command} --help."


def _left_over(given: Sequence[str], others: Sequence[str], options: argparse.Namespace) -> str:
    """Return what is said of texts that belong to no option: parts of a name with blanks, most often."""
    last = first = list(given).index(others[0])
    while last + 1 < len(given) and given[last + 1] in others:
        last += 1
    while not given[first].startswith("-") and first > 0:
        first -= 1
    option, _, begun = given[first].partition("=")
    words = [*filter(None, [begun]), *given[first + 1 : last + 1]]
    arguments = [one[0] for one in COMMANDS[given[0]][2] if isinstance(one, tuple) and not one[0].startswith("-")]
    taken = [str(getattr(options, name, None)) for name in arguments]
    example = f": {option} {shlex.quote(' '.join(words))}" if first > 0 and not {*taken} & {*words} else ""
    told = in_a_row([repr(one) for one in others])
    return f"{told} {'belong' if len(others) > 1 else 'belongs'} to no option. Names with blanks need quotes{example}"


def command_line(options: argparse.Namespace, **changed: Any) -> str:
    """Return a command that does the same again, some options changed, from those that differ from their defaults."""
    options = argparse.Namespace(**{**vars(options), **changed})
    first = getattr(options, "source", None) or options.data
    parts = ["ardea", options.command, str(first)]
    for option, settings in (one for one in COMMANDS[options.command][2] if isinstance(one, tuple)):
        value = getattr(options, option.strip("-").replace("-", "_"))
        if value in (None, False, first, settings.get("default")) or option in NOT_REPEATED:
            continue
        if option == "--noise" and isinstance(value, list):
            value = ",".join(map(repr, value))
        for one in value if isinstance(value, list) else [value]:
            dashed = str(one).startswith("-")  # would be taken for an option
            parts += [f"{option}={one}"] if dashed else [option, *([] if one is True else [str(one)])]
    return shlex.join(parts)


def complete(_: argparse.Namespace) -> None:
    """Print a script for bash: commands first, then options after a dash, else files."""
    options = {name: option_names(name) for name in COMMANDS}
    cases = "\n".join(f"    {name}) words='{' '.join(flags)}' ;;" for name, flags in options.items())
    script = f"""# bash completion for ardea, written by `ardea completion`
_ardea() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words='{" ".join(options)} --help --version'
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    if [[ "$current" != -* ]]; then
      COMPREPLY=($(compgen -f -- "$current"))
      return
    fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o filenames -F _ardea ardea
"""
    print(script, end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    make_writable()
    command = ""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        options = read_options(given)
        command = options.command
        run = getattr(options, "run", None) or resolve_name(f"ardea.cli{COMMANDS[command][1]}")
        code = int(run(options) or 0)
        sys.stdout.flush()
    except KeyboardInterrupt:
        complain(command, "interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe has gone (`| head`). Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except EXPECTED as error:
        if os.environ.get("ARDEA_TRACEBACK"):
            raise
        absent = error.filename if isinstance(error, FileNotFoundError) else None
        complain(command, f"There is no file {absent}." if absent else str(error) or type(error).__name__)
        return FAILED
    return code
