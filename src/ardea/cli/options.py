"""All commands with their options, as data."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

# Numbers beyond these have squares that are no numbers, and nobody counts further (derived: double precision).
SMALLEST, LARGEST, MOST = 1e-150, 1e150, 10**15
METHODS = ("sparse", "ard", "vi", "r", "m", "l", "map")
CRITERIA = ("evidence", "aicc", "aic", "bic", "ebic", "ebic2", "cv", "stability")
# Lines left out, at most (a convention: no one leaves out more by their numbers).
MOST_LINES = 10**6

# What may stand for a value -------------------------------------------------------------------------------------------


def reader(convert: Callable[[str], Any], is_sound: Callable[[Any], bool], what: str) -> Callable[[str], Any]:
    """Return a reader of what stands for a value, which says what that must be."""

    def read(text: str) -> Any:
        try:
            value = convert(text)
            sound = is_sound(value)
        except (ValueError, csv.Error, argparse.ArgumentTypeError):
            sound = False
        if not sound:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return read


def whole(least: int, most: int = MOST) -> Callable[[str], int]:
    """Return a reader of whole numbers within bounds."""
    return reader(int, lambda value: least <= value <= most, f"a whole number from {least} to {most}")


place = reader(lambda text: Path(text) if text else None, bool, "the name of a file or folder")
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
states = reader(
    str,
    lambda text: all(math.isfinite(float(part.rpartition("=")[2])) for part in text.split(",")),
    "a list of numbers with commas between them, such as 1,0 or x=1,v=0",
)
positive = reader(float, lambda value: SMALLEST <= value <= LARGEST, f"a number above 0 ({SMALLEST:g} to {LARGEST:g})")
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


def _is_zone(name: str) -> bool:
    from zoneinfo import available_timezones

    return name in available_timezones()


zone = reader(str, _is_zone, "a time zone, such as Europe/Berlin or America/New_York")
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
    option("--criterion NAME", CHOSEN_BY, choices=CRITERIA),
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
    several("--space", "arrays, or columns, with the coordinates of a field's space axes"),
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
    option("--zone NAME", "zone of dates that name none, such as Europe/Berlin, if its clocks changed", zone),
    option("--sheet NAME", "of an Excel file: its name, or its number from 0 (the first)"),
    option("--memory SIZE", "larger tables are read in parts (1 GB)", default="1 GB"),
]
LEVEL = option("--level P", "probability of intervals (.95)", share, default=0.95)
JSON = flag("--json", "print JSON for machines instead of text")
OUTPUT: Options = [
    "output",
    LEVEL,
    JSON,
    option("--out DIR", "also write model, table, figures and report there", place),
]
CSV_FILE = option("--out FILE", "write CSV there instead of printing it", place)


# Commands -------------------------------------------------------------------------------------------------------------

DEMO = Path("ardea-demo")
# What a command does, the function in `ardea` that does it, and its options; a text begins a group of them.
COMMANDS: dict[str, tuple[str, str, Options]] = {
    "demo": (
        "see it work, on data it makes itself",
        "cli.demo:run",
        [
            option("--seed", "seed of the generated data (default: 0)", whole(0, 2**32 - 1), default=0),
            option("--out DIR", f"where to put pictures and data ({DEMO})", place, default=DEMO),
        ],
    ),
    "fit": (
        "explain one column of a table by few others, with intervals",
        "cli.regressions:run",
        [
            option("data DATA", "the table", Path),
            *(*REGRESSION, POWERS, option(*NOISE_OF_TARGET, positive), *TEXT, *OUTPUT),
        ],
    ),
    "predict": (
        "predict new rows with a saved model, with intervals",
        "cli.predict:run",
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
        "cli.models:run",
        [option("data DATA", "the time series or field", Path), *MOTION, *NOISE, *TEXT, *OUTPUT],
    ),
    "simulate": (
        "run saved equations of motion from a start",
        "cli.predict:simulate",
        [
            option("model MODEL", "saved equations of motion", Path),
            option(
                "--start X,Y,…",
                "states at the first time, such as 1,0 or x=1,v=0; of second order: positions, then their rates "
                "(default: as in the data)",
                states,
            ),
            option("--series RUN", "begin as this run of the data: what stands in the column that tells runs apart"),
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
            option("--inputs FILE", "a table with the inputs of the equations, and times", place),
            option("--time COLUMN", "its column of times (default: by its name)"),
            CSV_FILE,
            *TEXT,
        ],
    ),
    "rates": (
        "how many false and missed terms are to be expected",
        "cli.rates:run",
        [
            option("--columns D", "columns to choose from (default: 100)", whole(1), default=100),
            option("--false-terms N", "false terms you accept (default: 1)", positive),
            option("--method", "with --strength: which method's", choices=METHODS[2:]),
            option("--strength S", "alpha, lam or tau, instead of --false-terms", positive),
            option("--t T,T,…", "t-statistics |ξ|√ρ/σ of the true terms", numbers),
            option("--rho", "squared norm of a column (default: 1)", positive, default=1.0),
            option("--sigma", "noise (default: 1)", positive, default=1.0),
            option("--plot FILE", "draw the operating curves (.png, .svg or .pdf)", place),
            JSON,
        ],
    ),
    "report": (
        "write one HTML page about a model",
        "cli.predict:report",
        [
            option("source SOURCE", "a saved model, or data", Path),
            option("--out FILE", "where to write the page (.html)", place, required=True),
            option("--data DATA", "rows to check a saved model against", place),
            option("--title", "title of the page"),
            LEVEL,
            *(*REGRESSION, option(*NOISE_OF_TARGET, noises), *MOTION, *TEXT),
        ],
    ),
    "reproduce": (
        "make the tables and figures of the paper, as published or corrected",
        "paper.page:reproduce",
        [
            option("name NAME", "an experiment, or: all, list (what there is), report (page from all results)"),
            option("--scale", "quick: seconds (default: paper)", choices=("quick", "paper"), default="paper"),
            option(
                "--variant",
                "which algorithm (default: corrected)",
                choices=("corrected", "published"),
                default="corrected",
            ),
            flag("--beyond", "add what is not in the paper: ours; corrections one by one"),
            option("--jobs N", "parallel jobs (default: joblib's, one)", int),
            option("--out DIR", "results (default: reproduction)", place, default=Path("reproduction")),
            option("--to DIR", "report: where to write it (default: --out)", place),
            option("--seed", "seed of the data (default 0, the authors'); corrected only", int, default=0),
        ],
    ),
    "completion": ("completion of commands and options for bash (and zsh)", "cli:complete", []),
}


# Words ----------------------------------------------------------------------------------------------------------------

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
    "Are these groups= those": "Are these --groups those",
    "leave rows= out": "leave --rows out",
    "fit(X, y, groups=…), one": "--groups COLUMN, with one",
    " on the command line)": ")",
    "(plot_residuals())": "(--out DIR draws them)",
    "give the parts as a list of series": "tell the parts apart by a column, which --series names",
    "give x0, the state at t[0]": "give --start, the states at --from",
    "give x0, the fields at t[0],": "give, in Python, x0, the fields at t[0],",
    "let t begin there, or give x0": "leave --from out, or give --start",
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
