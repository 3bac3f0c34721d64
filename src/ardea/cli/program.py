"""All commands with their options, and what happens when one of them fails. Loads nothing but argparse."""

from __future__ import annotations

import argparse
import csv
import importlib
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ardea import __version__
from ardea.cli.console import FAILED, INTERRUPTED, Failure, complain, make_writable
from ardea.paper.runner import add_options as _reproduce

# Numbers beyond these have squares that are no numbers, and nobody counts further (derived: double precision).
SMALLEST, LARGEST, MOST = 1e-150, 1e150, 10**15
METHODS = ("sparse", "ard", "vi", "r", "m", "l", "map")
CRITERIA = ("evidence", "aicc", "aic", "bic", "ebic", "ebic2", "cv", "stability")
# What data, files and missing packages raise; anything else is a mistake of ours and shows where it arose.
EXPECTED = (Failure, ValueError, OSError, ImportError, NotImplementedError, MemoryError)
EPILOGS = {
    "ardea": """\
examples:
  ardea demo                                       see it work, on data it makes itself
  ardea fit houses.csv --target price              few terms, with intervals
  ardea predict run/model.ardea new.csv            predictions of a saved model
  ardea discover pendulum.csv --time t             equations of motion from a time series
  ardea rates --false-terms 1 --columns 250        what a strength means
  ardea fit houses.csv --target price --out run    model, table, figure and report in run/

exit codes: 0 done, 1 something is wrong with the data or the model, 2 wrong use, 130 interrupted.
ARDEA_TRACEBACK=1 shows where an error arose; NO_COLOR=1 turns colour off.
""",
    "demo": """\
examples:
  ardea demo
  ardea demo --seed 7 --plot lorenz.svg
""",
    "fit": """\
DATA is CSV or other text (.tsv, .txt; also .gz, .bz2, .xz), NPY, NPZ or Excel; Parquet with ardea[frames], NetCDF and
Zarr with ardea[fields]. The default, --method sparse, is told how many meaningless terms you accept, and nothing else.
Columns are given by name or by number from 0. Rows with empty cells (also NA, nan, - and the like) in columns in use
are left out. A column of at most 20 different texts becomes one column for each text but the first. Separators, decimal
commas, headers and units are inferred, and what was inferred is said. Nothing is written without --out.

examples:
  ardea fit houses.csv --target price
  ardea fit houses.csv --target price --drop id,date --false-terms 0.1
  ardea fit lab.csv --target yield --drop 'Date,"Residence time, s"'   quotes keep commas
  ardea fit lab.csv --target yield --categorical operator --na missing
  ardea fit houses.csv --target price --search --criterion ebic     try many strengths
  ardea fit houses.csv --target price --keep area --no-intercept
  ardea fit houses.csv --target price --json | jq .equations
  ardea fit houses.csv --target price --out run                     open run/report.html
  ardea fit year.parquet --target power --memory "500 MB"           larger than memory: read in blocks
""",
    "predict": """\
DATA is a table of any kind that `ardea fit` reads. Its columns are found by name: their order does not matter, others
are ignored, and only those that the model has kept need to be there. Files without a header must have as many columns
as the one that the model was fitted to; only the target may be lacking, if it was the first or last. A row with an
empty cell, or a text that the model does not know, has an empty prediction, so that rows keep their places. The
standard deviation is that of a new observation.

examples:
  ardea predict run/model.ardea new.csv                          CSV to standard output
  ardea predict run/model.ardea new.csv --out predictions.csv
  ardea predict run/model.ardea new.csv --level .68 --json
""",
    "discover": """\
DATA is a table with one row per time (CSV and other text, NPY, Excel; Parquet with ardea[frames]): every column but the
time is a state, empty fields are gaps, and times may be dates. Or it holds arrays (NPZ; NetCDF and Zarr with
ardea[fields]): a field u with its coordinates x and times t, space axes first, or a table of states. Nothing is written
without --out. Of a table larger than --memory up to 50 stretches of 400 rows are kept, spread over the whole of it; it
needs --time.

examples:
  ardea discover pendulum.csv --time t
  ardea discover lynx.csv --time year --states hare,lynx --degree 2
  ardea discover car.csv --step 0.01 --states v --inputs throttle,brake
  ardea discover runs.csv --time t --series run           several experiments in one file
  ardea discover population.csv --map                     x[k+1] = f(x[k])
  ardea discover swing.csv --time t --states angle --second-order    only positions measured
  ardea discover lynx.csv --time year --noise proportional
  ardea discover wave.npz --time t --space x              partial differential equation of a field
  ardea discover pendulum.csv --time t --out run          open run/report.html
""",
    "simulate": """\
MODEL holds equations of motion that `ardea discover --out` or ardea.save wrote. Prints CSV: times and states.

examples:
  ardea simulate run/model.ardea --until 10                as the data began
  ardea simulate run/model.ardea --start 1,0 --until 10
  ardea simulate run/model.ardea --start 1,0 --until 10 --step 0.01
""",
    "rates": """\
A column that explains nothing has a t-statistic (coefficient over standard error) that is N(0, 1). Every method keeps
the columns whose |t| exceeds a cut z; they differ in how their strength sets z. So the number of false terms you accept
says what the strength must be, and the t-statistic of a true term says how likely it is missed. All this is exact for
orthogonal columns.

examples:
  ardea rates --false-terms 1 --columns 250
  ardea rates --false-terms 1 --columns 250 --t 3,4,6      expected numbers for three true terms
  ardea rates --method vi --strength 4 --columns 250       what alpha = 4 lets through
  ardea rates --method m --strength 0.1 --rho 100 --sigma 0.5 --columns 50
  ardea rates --false-terms 1 --columns 250 --plot curves.svg
""",
    "report": """\
The page is one file that needs no network: formula, table with intervals, figures, warnings, data fingerprint.
SOURCE is a model that ardea.save or --out wrote; with --data it is checked against those rows. Or SOURCE is data, with
the options of `ardea fit` (--target) or `ardea discover` (--time).

examples:
  ardea report run/model.ardea --out report.html
  ardea report run/model.ardea --data new.csv --target price --out report.html
  ardea report houses.csv --target price --search --out report.html
  ardea report pendulum.csv --time t --out report.html
""",
    "completion": """\
In zsh, run `autoload bashcompinit && bashcompinit` first.

examples:
  ardea completion > ~/.local/share/bash-completion/completions/ardea
""",
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


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within bounds."""
    return reader(int, lambda value: least <= value <= most, f"a whole number from {least} to {most}")


def _has_names(text: str) -> bool:
    parts = next(csv.reader([text], skipinitialspace=True), [""])
    return all(part.strip() for part in parts)


# Which columns a list means, their names tell: it is handed on as it is.
names = reader(str, _has_names, "a list of names with commas between them")
numbers = reader(
    lambda text: [float(part) for part in text.split(",")],
    lambda found: all(map(math.isfinite, found)),
    "a list of numbers with commas between them",
)
positive = reader(float, lambda value: SMALLEST <= value <= LARGEST, f"a number from {SMALLEST:g} to {LARGEST:g}")
NOISES = ("additive", "proportional", "auto")
noises = reader(
    lambda text: text if text in NOISES else [positive(part) for part in text.split(",")],
    bool,
    f"one of {', '.join(NOISES)}, or standard deviations with commas between them",
)
share = reader(float, lambda value: SMALLEST <= value < 1, "a number between 0 and 1")


# Options --------------------------------------------------------------------------------------------------------------


def _add_lists(group: Any, **helps: str) -> None:
    for name, text in helps.items():
        group.add_argument(f"--{name}", action="append", type=names, metavar="A,B,…", help=text)


def _add_fit(parser: argparse.ArgumentParser, noise: Callable[[str], Any] = positive) -> None:
    group = parser.add_argument_group("regression")
    group.add_argument("--target", metavar="COLUMN", help="the column to explain: its name, or its number from 0")
    _add_lists(
        group,
        columns="columns to explain it with, by name or number from 0 (default: all others)",
        drop="columns to leave out, such as dates: names or numbers; quote a name that has commas; may be repeated",
        categorical="columns of texts or codes to encode, or `none` (default: those of at most 20 texts)",
        keep="columns that belong to the model: never dropped",
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
    group.add_argument("--noise", type=noise, metavar="SIGMA", help="noise of the target, if known (else learned)")


def _add_discover(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("equations of motion")
    group.add_argument("--time", metavar="COLUMN", help="the column (or array) of times: numbers, or dates")
    group.add_argument("--step", type=positive, metavar="DT", help="time between rows, where there is no such column")
    group.add_argument(
        "--time-unit", choices=("s", "min", "h", "d"), help="unit for times that are dates (default: by their step)"
    )
    _add_lists(
        group,
        states="columns or arrays that obey equations: names or numbers (default: all others)",
        inputs="columns that drive the system from outside",
        space="arrays with the coordinates of a field's space axes",
    )
    group.add_argument("--series", metavar="COLUMN", help="column whose value tells several series apart")
    most = whole(1, MOST)
    group.add_argument("--degree", type=most, metavar="N", help="highest power of the states (default: 3, many: 2)")
    group.add_argument(
        "--form",
        choices=("trajectory", "weak", "derivative"),
        help="how data and equations meet (default: trajectory; fields and large libraries: weak)",
    )
    group.add_argument("--map", action="store_true", help="discrete time: x[k+1] = f(x[k])")
    group.add_argument(
        "--second-order", action="store_true", help="only positions are measured: find x'' from x and x'"
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    """Add what `discover` shares with `fit` by name."""
    group = parser.add_argument_group("noise and false terms (trajectory form)")
    group.add_argument(
        "--noise",
        type=noises,
        metavar="KIND or S,S,…",
        help="additive, proportional (to the state) or auto (default); or standard deviations, if they are known",
    )
    group.add_argument(
        "--false-terms", type=positive, metavar="N", help="false terms accepted in all equations together (0.02)"
    )


def _add_text(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how the table is written (default: inferred, and said)")
    group.add_argument("--header", choices=("auto", "yes", "no"), default="auto", help="whether it begins with names")
    group.add_argument("--decimal", choices=(",", "."), metavar=", or .", help="what stands before decimals")
    group.add_argument(
        "--na",
        action="append",
        metavar="TEXT",
        help="what stands in empty cells, besides NA, nan, -, … (none: not these)",
    )
    group.add_argument("--sheet", metavar="NAME", help="of an Excel file: its name, or its number from 0 (the first)")
    group.add_argument("--memory", default="1 GB", metavar="SIZE", help="larger tables are read in parts (1 GB)")


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    _add_level(group)
    group.add_argument("--json", action="store_true", help="print JSON for machines instead of text")
    group.add_argument("--out", type=Path, metavar="DIR", help="also write model, table, figures and report there")


def _add_level(parser: Any) -> None:
    parser.add_argument("--level", type=share, default=0.95, metavar="P", help="probability of intervals (.95)")


# Commands -------------------------------------------------------------------------------------------------------------


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=whole(0, 2**32 - 1), default=0, help="seed of the generated data (default: 0)")
    place = Path("ardea-demo.png")
    parser.add_argument("--plot", type=Path, default=place, metavar="FILE", help=f"where to draw Lorenz 63 ({place})")
    parser.add_argument("--no-plot", action="store_true", help="print only")


def _fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help="the table")
    _add_fit(parser)
    _add_text(parser)
    _add_output(parser)


def _predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="a saved model, such as run/model.ardea")
    parser.add_argument("data", type=Path, metavar="DATA", help="a table with the model's columns")
    _add_text(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write CSV there instead of printing it")
    parser.add_argument("--json", action="store_true", help="print JSON for machines instead of CSV")
    _add_level(parser)


def _discover(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help="the time series or field")
    _add_discover(parser)
    _add_search(parser)
    _add_text(parser)
    _add_output(parser)


def _simulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="saved equations of motion")
    parser.add_argument(
        "--start",
        type=numbers,
        metavar="X,Y,…",
        help="states at time 0; of second order: positions, then their rates (default: as the data began)",
    )
    parser.add_argument("--until", type=positive, required=True, metavar="T", help="last time; of a map, steps")
    parser.add_argument("--step", type=positive, metavar="DT", help="time between rows (default: 100 rows)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write CSV there instead of printing it")


def _rates(parser: argparse.ArgumentParser) -> None:
    most = whole(1, MOST)
    parser.add_argument("--columns", type=most, default=100, metavar="D", help="columns to choose from (default: 100)")
    parser.add_argument("--false-terms", type=positive, metavar="N", help="false terms you accept (default: 1)")
    parser.add_argument("--method", choices=METHODS[2:], help="with --strength: which method's")
    parser.add_argument("--strength", type=positive, metavar="S", help="alpha, lam or tau, instead of --false-terms")
    parser.add_argument("--t", type=numbers, metavar="T,T,…", help="t-statistics |ξ|√ρ/σ of the true terms")
    parser.add_argument("--rho", type=positive, default=1.0, help="squared norm of a column (default: 1)")
    parser.add_argument("--sigma", type=positive, default=1.0, help="noise (default: 1)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the operating curves (.png, .svg or .pdf)")
    parser.add_argument("--json", action="store_true", help="print JSON for machines instead of text")


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="SOURCE", help="a saved model, or data")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the page (.html)")
    parser.add_argument("--data", type=Path, metavar="DATA", help="rows to check a saved model against")
    parser.add_argument("--title", help="title of the page")
    _add_level(parser)
    _add_fit(parser, noises)
    _add_discover(parser)
    _add_text(parser)


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=lambda options: print(completion(), end=""))


COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], str]] = {
    "demo": (_demo, "see it work, on data it makes itself"),
    "fit": (_fit, "explain one column of a table by few others, with intervals"),
    "predict": (_predict, "predict new rows with a saved model, with intervals"),
    "discover": (_discover, "find equations of motion in a time series or a field"),
    "simulate": (_simulate, "run saved equations of motion from a start"),
    "rates": (_rates, "what a strength means: expected false and missed terms"),
    "report": (_report, "write one HTML page about a model"),
    "reproduce": (_reproduce, "make the tables and figures of the paper, as published or corrected"),
    "completion": (_completion, "completion of commands and options for bash (and zsh)"),
}


def build_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, with the options of one command where that is asked for, else of all."""
    return _parser_and_commands(asked)[0]


def _parser_and_commands(asked: str | None) -> tuple[argparse.ArgumentParser, Any]:
    description = "Sparse Bayesian regression and equations of motion: few terms, honest error bars."
    parser = argparse.ArgumentParser("ardea", None, description, EPILOGS["ardea"], formatter_class=HelpFormatter)
    parser.add_argument("--version", action="version", version=f"ardea {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name, (add_options, what) in COMMANDS.items():
        told: dict[str, Any] = {
            "help": what,
            "description": f"{what[0].upper()}{what[1:]}.",
            "epilog": EPILOGS.get(name),
        }
        command = commands.add_parser(name, formatter_class=HelpFormatter, **told)
        if asked in {None, name}:
            add_options(command)
    return parser, commands


def completion() -> str:
    """Return a script for bash: commands first, then options after a dash, else files."""
    _, commands = _parser_and_commands(None)
    options = {
        name: dict.fromkeys(re.findall("--[a-z-]+", one.format_help())) for name, one in commands.choices.items()
    }
    cases = "\n".join(f"    {name}) words='{' '.join(flags)}' ;;" for name, flags in options.items())
    return f"""# bash completion for ardea, written by `ardea completion`
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


def _run_of(command: str) -> Callable[[argparse.Namespace], None]:
    """Return what runs a command, from the module that is loaded for it."""
    places = {"simulate": "predict.simulate", "fit": "models.run", "discover": "models.run", "report": "models.report"}
    module, _, name = places.get(command, f"{command}.run").partition(".")
    return getattr(importlib.import_module(f"ardea.cli.{module}"), name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    make_writable()
    command = ""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        asked = given[0] if given and given[0] in COMMANDS else None
        options = build_parser(asked).parse_args(given)
        command = options.command
        run = getattr(options, "run", None) or _run_of(command)
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
        complain(command, str(error) or type(error).__name__)
        return FAILED
    return code
