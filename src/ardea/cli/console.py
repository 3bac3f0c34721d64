"""What goes to the terminal: plain text, colour only where it is seen, JSON for machines; examples below `--help`."""

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


# Below the options of `--help`: what data may be, and examples.
EPILOGS = {
    "ardea": """\
examples:
  ardea demo                                       see it work, on data it makes itself
  ardea fit houses.csv --target price              few terms, with intervals
  ardea predict run/model.ardea new.csv            predictions of a saved model
  ardea discover pendulum.csv --time t             equations of motion from a time series
  ardea rates --false-terms 1 --columns 250        how many terms are false, or missed
  ardea fit houses.csv --target price --out run    model, table, figure and report in run/

exit codes: 0 done, 1 something is wrong with the data or the model, 2 wrong use, 130 interrupted.
ARDEA_TRACEBACK=1 shows where an error arose; NO_COLOR=1 turns colour off.
""",
    "demo": """\
examples:
  ardea demo
  ardea demo --seed 7 --out demo7
""",
    "fit": """\
DATA is CSV or other text (.tsv, .txt; also .gz, .bz2, .xz), NPY or NPZ; Excel and Parquet with ardea[frames], NetCDF
and Zarr with ardea[fields]. The default, --method sparse, is told how many meaningless terms you accept, nothing else.
Columns are given by name or by number from 0. Rows with empty cells (also NA, nan, - and the like) in columns in use
are left out. A column of at most 20 different texts becomes one column for each text but the first. Separators, decimal
commas, headers and units are inferred, and what was inferred is said. Nothing is written without --out.

examples:
  ardea fit houses.csv --target price
  ardea fit houses.csv --target price --drop id,date --false-terms 0.1
  ardea fit lab.csv --target yield --drop 'Date,"Residence time, s"'   quotes keep commas
  ardea fit lab.csv --target yield --categorical operator --na missing
  ardea fit houses.csv --target price --search --criterion ebic     let a criterion choose among 15 models
  ardea fit houses.csv --target price --keep area --no-intercept
  ardea fit lab.csv --target yield --degree 2 --interactions        squares and products of two columns, too
  ardea fit weather.csv --target ozone --rows series                one row after another in time
  ardea fit trial.csv --target growth --groups plot                 several rows of each plot
  ardea fit houses.csv --target price --rows unequal                errors that grow, or a few that are large
  ardea fit houses.csv --target price --json | jq .equations
  ardea fit houses.csv --target price --out run                     open run/report.html
  ardea fit year.parquet --target power --memory "500 MB"           larger than memory: read in blocks
""",
    "predict": """\
DATA is a table of any kind that `ardea fit` reads. Its columns are found by name: their order does not matter, others
are ignored, and only those that the model has kept need to be there. Files without a header must have as many columns
as the one that the model was fitted to; only the target may be lacking, if it was the first or last. A row with an
empty cell, or a text that the model does not know, has an empty prediction, so that rows keep their places. The
standard deviation is that of a new observation. Of a folder all tables are predicted; a first column names the file.

examples:
  ardea predict run/model.ardea new.csv                          CSV to standard output
  ardea predict run/model.ardea new.csv --out predictions.csv
  ardea predict run/model.ardea new.csv --level .68 --json
  ardea predict run/model.ardea measured/ --out all.csv          all tables of a folder
""",
    "discover": """\
DATA is a table with one row per time (CSV and other text, NPY; Excel and Parquet with ardea[frames]): every column but
the time is a state, empty fields are gaps, and times may be dates. Or it holds arrays (NPZ; NetCDF and Zarr with
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
MODEL holds equations of motion that `ardea discover --out` or ardea.save wrote. Prints CSV: times and states. Without
--start the run begins with the states that the equations see in the data: their last ones, if --from is after the data.

examples:
  ardea simulate run/model.ardea --until 10                as the data began
  ardea simulate run/model.ardea --start 1,0 --until 10
  ardea simulate run/model.ardea --start 1,0 --until 10 --step 0.01
  ardea simulate run/model.ardea --from 2024-06-01 --until 2024-07-01          times of the data were dates
  ardea simulate run/model.ardea --until 10 --inputs throttle.csv --time t     inputs as functions of time
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
