"""What is made of a saved model: predictions of new rows, runs from a new start, and pages about it."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from scipy import stats

from ardea.cli import EXPECTED, Failure, as_options, kept_warnings, print_json, print_remarks, print_warnings, visible
from ardea.cli.models import (
    Found,
    columns_of,
    discovered,
    header_record,
    helped,
    series_of,
    table_notes,
    table_of,
    text_settings,
    told_of,
    write_page,
)
from ardea.cli.outputs import as_csv, print_or_write, told_written, write_file
from ardea.cli.regressions import arrays, fitted, multiplied
from ardea.cli.starts import start_of
from ardea.core.problem import Array
from ardea.dynamics.series import IN_UTC, Clock, input_curve
from ardea.names import counted
from ardea.saving import load
from ardea.show.answers import contradicted
from ardea.show.motion import is_field, verdict
from ardea.show.report import doubts_of_fit
from ardea.tables.columns import Columns, notation_of
from ardea.tables.dates import compact_dates, in_utc, names_time
from ardea.tables.endings import KNOWN, PACKED, is_dataset
from ardea.tables.reading import TextTable, open_table
from ardea.tables.rows import Rows
from ardea.tables.series import Choice, Series, read_series
from ardea.tables.table import MOST_PROBLEMS, Refused, Table, composed, joined_names, shortened, unknown

# Rows that are read at a time (a convention: a few megabytes of a usual table).
ROWS = 50_000
# What is said of rows that a model was not held against, and whether it holds there.
NOTHING: tuple[str, bool | None] = ("", True)
# Columns of predictions, how a table was read, and what of it gives reason for doubt.
Predicted = tuple[dict[str, Array], list[str], list[str]]
# How columns of one name are told apart.
NUMBERED = re.compile(r".+#[0-9]+")
# How files of pages end.
PAGES = (".html", ".htm", ".xhtml")
# Steps of a curve where none is told (a convention: enough to draw it).
CURVE = 100
# A share of a step: a last one that ends so little after --until is one of it (derived: rounding of a million steps).
ROUNDING = 1e-9
# Digits of times that a step of few digits gives, and spacings of numbers by which a sum of products misses these
# (derived: double precision holds 15 digits; three roundings).
NEAT_DIGITS, LAST_BITS = 14, 4


def run(options: argparse.Namespace) -> None:
    """Load, predict, and print or write."""
    if options.out is not None and options.out.is_dir():
        raise Failure(f"--out {options.out} is a directory: name a file, such as predictions.csv.")
    model = load(options.model)
    if hasattr(model, "simulate"):
        raise Failure(f"{options.model} holds equations of motion. To run them: {_run_command(model, options.model)}")
    files, passed = _files_of(options.data)
    tables, wrong = _predicted_files(model, files, options)
    parts = [one for one, _, _ in tables.values()]
    columns = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
    which = {file: "" if file == options.data else f"{file.name}: " for file in tables}
    remarks = [*passed, *(which[file] + one for file, (_, read, _) in tables.items() for one in read)]
    notes = [which[file] + one for file, (_, _, told) in tables.items() for one in told]
    first = next(iter(columns.values()))
    if empty := int(np.isnan(first).sum()):
        notes.append(
            f"{empty} of {len(first)} rows have empty cells or unknown texts in columns of the model: no prediction."
        )
    if options.data not in tables:  # a folder
        rows = [len(one[name]) for one in parts for name in [*columns][:1]]
        columns = {"file": np.repeat([file.name for file in tables], rows), **columns}
    if options.json:
        out = [] if options.out is None else [str(options.out)]
        if options.out is not None:
            write_file(options.out, as_csv(columns))
        head = {**header_record(options), "model": str(options.model), "rows": len(first), "rows_without": empty}
        print_json({**head, "predictions": columns, "remarks": remarks, "warnings": notes, "files": out})
    else:
        print_or_write(columns, options.out)
        print_remarks(options.data, remarks)
        print_warnings(notes)
    if wrong:
        raise Failure("\n".join([f"no predictions for {len(wrong)} of {len(files)} tables:", *wrong]))


def _run_command(model: Any, path: Path) -> str:
    """Return a command that runs equations of motion over the time of their data."""
    known, driven = model.joint_, len(getattr(model.model_, "names", [])) > len(model.equations_)
    until = ["--start", "X,Y,…", "--until", "T"] if known is None else ["--until", text_of(model, known.last.time)]
    return shlex.join(["ardea", "simulate", str(path), *until, *(["--inputs", "FILE"] if driven else [])])


def _files_of(place: Path) -> tuple[list[Path], list[str]]:
    """Return the tables of a folder by their names, and which files are none; a file, or a folder as a table, alone.

    Hidden files and those that office programs hold open are no tables.
    """
    if not place.is_dir() or place.suffix == ".zarr" or is_dataset(place):
        return [place], []
    there = sorted(one for one in place.iterdir() if one.is_file())
    found = [one for one in there if one.suffix.lower() in (*KNOWN, *PACKED) and not one.name.startswith((".", "~$"))]
    if not found:
        raise Failure(f"The folder {place} holds no table. Tables end in {', '.join(KNOWN)}.")
    others = [one.name for one in there if one not in found]
    return found, [f"no tables, and left out: {shortened(others)}"] if others else []


def _predicted_files(
    model: Any, files: list[Path], options: argparse.Namespace
) -> tuple[dict[Path, Predicted], list[str]]:
    """Return what is predicted for every table, and what is wrong with others; of a single one it is raised."""
    found, wrong = dict[Path, Predicted](), list[str]()
    for file in files:
        try:
            found[file] = _predicted_file(model, file, argparse.Namespace(**{**vars(options), "data": file}))
        except EXPECTED as error:
            if file == options.data:
                raise
            wrong.append(str(error))
    if not found:
        raise Failure("\n".join(wrong))
    return found, wrong


def _predicted_file(model: Any, file: Path, options: argparse.Namespace) -> Predicted:
    """Return the predictions for one table, how it was read, and warnings."""
    table = open_table(file, **text_settings(options, model))
    with kept_warnings() as notes, helped(options):
        columns, remarks, doubts = predicted(model, table, options.level)
    return columns, [*table.remarks, *remarks], [*doubts, *notes]


def predicted(model: Any, table: Table, level: float) -> Predicted:
    """Return prediction, standard deviation and ends of the interval of every row, NaN where cells are empty.

    And how the table was read, and what of it gives reason for doubt.
    """
    names = list(model.equations_[0].vocabulary.names)
    kept = sorted({j for one in model.equations_ for j in one.support})
    values, remarks, doubts = _values(model, table, [names[j] for j in kept])
    # Columns that were dropped have coefficients of zero: nothing depends on what stands there.
    X = np.zeros((len(values), len(names)))
    X[:, kept] = values
    if np.isinf(X).any():
        column = names[int(np.flatnonzero(np.isinf(X).any(axis=0))[0])]
        raise Failure(f"{table.path}: column {column!r} holds infinities.")
    mean, std = _mean_and_std(model, X, names)
    half = float(stats.norm.ppf(0.5 + level / 2)) * std
    percent = f"{100 * level:g}%"
    parts = {"prediction": mean, "std": std, f"low {percent}": mean - half, f"high {percent}": mean + half}
    if mean.ndim > 1:
        parts = {f"{name} y{t}": one[:, t] for name, one in parts.items() for t in range(mean.shape[1])}
    return parts, remarks, doubts


def _mean_and_std(model: Any, X: Array, names: list[str]) -> tuple[Array, Array]:
    """Return what the model predicts for rows without gaps, NaN for the others."""
    import pandas as pd

    whole, several = ~np.isnan(X).any(axis=1), len(model.equations_)
    mean, std = (np.full((len(X), several) if several > 1 else len(X), np.nan) for _ in range(2))
    if whole.any():
        rows = pd.DataFrame(X[whole], columns=names) if hasattr(model, "feature_names_in_") else X[whole]
        mean[whole], std[whole] = (one.reshape(mean[whole].shape) for one in model.predict(rows, return_std=True))
    return mean, std


def _values(model: Any, table: Table, kept: list[str]) -> tuple[Array, list[str], list[str]]:
    """Return the columns that a model has kept, encoded as they were when it was fitted; remarks and doubts."""
    import pandas as pd

    notes = table_notes(model)
    used = columns_of(kept, notes)
    remarks = _matched(table, used, notes)
    table.keep_dots = True  # the numbers fitted may tell what they mean
    frames = [*table.frames(ROWS, used or table.names[:1])]
    if not kept or not frames:
        return np.empty((sum(map(len, frames)), len(kept))), remarks, []
    signs = notes["signs"] if hasattr(model, "table_") else None  # which one fitted in Python does not know
    before = {"levels": notes["levels"], "signs": signs, "within": ends_of(model)}
    columns = Columns(table, used, categorical=(), **before)
    values = columns.read(pd.concat(frames, ignore_index=True))
    known = dict(zip(columns.names, values.T, strict=True))
    known |= multiplied(known, {name: notes["products"][name] for name in kept if name in notes["products"]})
    return np.column_stack([known[name] for name in kept]), [*remarks, *columns.remarks], columns.doubts()


def ends_of(model: Any) -> dict[str, Any]:
    """Return the least and the greatest value that every column of a model had in the rows of its fit."""
    ranges = getattr(getattr(model, "best_estimator_", model), "_ranges", None)
    return {} if ranges is None else dict(zip(model.equations_[0].vocabulary.names, ranges.T.tolist(), strict=True))


def _matched(table: Table, needed: list[str], notes: dict[str, Any]) -> list[str]:
    """Refuse a table that lacks columns, and name all of them; return what was inferred.

    Where neither file has names, columns are matched by position: both must have as many, but for a target that was the
    first or the last.
    """
    width, fitted, target, said = len(table.names), notes["columns"], notes["target"], list[str]()
    by_position = not notes["header"] and not table.headed
    if by_position and fitted not in (width, table.width):  # a last column that is there, but empty, has no name
        there = f"column of the model's file, its target {target}, is not there"
        if width == fitted - 1 and target == f"x{width}":
            said.append(f"the last {there}: as expected")
        elif width == fitted - 1 and target == "x0" and isinstance(table, TextTable):
            table.names = [f"x{j + 1}" for j in range(width)]
            said.append(f"the first {there}: columns are counted from x1")
        else:
            raise Failure(
                f"{table.path} has {counted(width, 'column')}, but the model was fitted to a file of {fitted}, the "
                f"target {target} among them. Neither has a header, so columns are matched by position: give a file "
                "with all columns (the target's may be empty), or put names above both."
            )
    if isinstance(table, TextTable):
        table.names = composed(table.names, {*needed}.difference(table.names))
    if missing := [name for name in needed if name not in table.names]:
        raise _lacking(table, missing, everything=len(missing) == len(needed), named=notes["header"])
    return said


def _lacking(table: Table, missing: list[str], everything: bool, named: bool) -> Exception:
    """Return the error of a table without columns that a model needs: perhaps one of both files has no names."""
    names, data = ", ".join(missing), [name for name in table.names if notation_of(name)]
    if not table.headed:
        return Failure(f"no header was found in {table.path}, and the model needs {names}: put names above it.")
    if not named:
        return Failure(
            f"The model was fitted to a file without names, and needs {names} (counted from x0); {table.path} has "
            f"names ({shortened(table.names)}): remove them, or name its columns so."
        )
    if everything and data:
        first = f"no header was found in {table.path}: its first line holds numbers such as {data[0]}"
        return Failure(f"{first}. The model needs {names}: put names above it.")
    errors = [unknown(name, table.names, f"{table.path} has no column") for name in missing[:MOST_PROBLEMS]]
    more = [f"and lacks {len(missing) - len(errors)} more columns of the model"] * (len(missing) > len(errors))
    told = [
        f"The model's file had several columns {name.rpartition('#')[0]!r}, told apart as {name!r} and so on: other "
        "programs number them otherwise. Name the columns of this file as in that one."
        for name in [one for one in missing if NUMBERED.fullmatch(one)][:1]
    ]
    return Refused([*(line for one in errors for line in one.said), *more, *told], errors[0].known)


def simulate(options: argparse.Namespace) -> None:
    """Load, simulate, and print or write."""
    model = load(options.model)
    if not hasattr(model, "simulate"):
        raise Failure(f"{options.model} holds a regression: use ardea predict {options.model} DATA.")
    if is_field(model):
        raise Failure(_run_of_field(model, options.model))
    names = model.model_.states if hasattr(model.model_, "states") else model.feature_names_
    begin = None
    if options.begin is not None:
        begin = number_of(model, in_zone(options.begin, options.zone), "--from")
    start = start_of(model, options, table_notes(model)["starts"], begin)
    t = _times_of_run(model, options, start.time if begin is None else begin)
    u = _inputs_of(model, options, t)
    with kept_warnings() as notes:
        states = np.asarray(model.simulate(start.states, t, u))
    time = table_notes(model)["time"] or "t"
    times = model.dates(t[: len(states)])
    columns = {time: in_utc(times) if clock_of(model).zoned else times, **dict(zip(names, states.T, strict=True))}
    print_or_write(columns, options.out, exact=time)
    if start.told:
        print(f"{start.told}, at {time} = {text_of(model, start.time)}.", file=sys.stderr)
    print_warnings([*notes, *(as_options(one) for one in model.warnings_ if "explain misfit" in one)])


def _run_of_field(model: Any, path: Path) -> str:
    """Return how a field is run, which takes Python."""
    shape = " × ".join(str(len(points)) for points in model.model_.space)
    return (
        f"{path} holds equations of a field. These are run in Python:\n"
        f"from ardea import load\nmodel = load({str(path)!r})\n"
        f"run = model.simulate(start, t)  # start: the field on the {shape} points at t[0]\n"
        "Where it is not periodic, boundary=(left, right) gives the values at both ends (docs/fields)."
    )


def _times_of_run(model: Any, options: argparse.Namespace, begin: float) -> Array:
    """Return the times to print, until --until."""
    until = number_of(model, in_zone(options.until, options.zone), "--until")
    if not until > begin:
        known = options.start is None and options.begin is None
        where = "the first row of the data, at" if known else "the start,"
        raise Failure(f"--until {text_of(model, until)} is not after {where} {text_of(model, begin)}.")
    if model.discrete_time:
        return np.arange(round(begin), np.floor(until) + 1)
    if options.step is None:
        return _neat(np.linspace(begin, until, CURVE + 1))
    steps = np.floor((until - begin) / options.step + ROUNDING)
    if steps < 1:
        ends = f"{text_of(model, begin)} to {text_of(model, until)}"
        raise Failure(f"--step {options.step:g} is longer than the run, which goes from {ends}: give a smaller one.")
    return np.minimum(_neat(begin + options.step * np.arange(steps + 1)), until)


def _neat(t: Array) -> Array:
    """Return times as they are written, 0.3 for 0.30000000000000004, where this changes the last bits alone."""
    rounded = np.array([float(f"{one:.{NEAT_DIGITS}g}") for one in t.tolist()])
    return np.where(np.abs(rounded - t) <= LAST_BITS * np.spacing(np.abs(t).max()), rounded, t)


def _inputs_of(model: Any, options: argparse.Namespace, t: Array) -> Any:
    """Return the inputs of a model from the file that holds them: as a function of time, of a map step by step."""
    names = getattr(model.model_, "names", [])[len(model.equations_) :]
    if bool(names) != (options.inputs is not None):
        if not names:
            raise Failure("The equations have no inputs: leave out --inputs.")
        file = "--inputs FILE, a table with the times and these columns"
        raise Failure(f"The equations have inputs ({', '.join(names)}): give {file}.")
    if not names:
        return None
    table = open_table(options.inputs, **text_settings(options, model))
    notes = table_notes(model)
    used = columns_of(names, notes)
    others = [name for name in table.names if name not in used]
    likely = [*filter(names_time, others)]
    with suppress(ValueError):  # unless the file lacks them
        likely = [notes["time"]] if notes["time"] and table.columns([notes["time"]]) else likely
    time = options.time or next(iter(likely), others[0] if len(others) == 1 else None)
    if time is None and not model.discrete_time:
        raise Failure(f"{options.inputs}: say which column holds the times: --time COLUMN ({shortened(others)}).")
    settings = {**text_settings(options, model), "levels": notes["levels"]}
    with helped(options):
        series = read_series(options.inputs, Choice(time, [joined_names(used)]), **settings)
    if np.any(gaps := np.isnan(series.x)):
        rows = "; ".join(
            f"{name} in row {np.argmax(gap) + 1}" for name, gap in zip(names, gaps.T, strict=True) if gap.any()
        )
        told = " ".join(one.removesuffix(" It was taken as empty.") for one in series.doubts) or f"empty are {rows}."
        raise Failure(f"{options.inputs}: inputs must be known in every row. {told[0].upper()}{told[1:]}")
    if model.discrete_time:
        return series.x
    require_zones(model, series, options.inputs)
    known = np.asarray(model.elapsed(series.t), dtype=float)
    near = 1e-9 * (known[-1] - known[0])  # rounding
    last = np.inf if len(model.model_.held) == len(names) else known[-1]  # what is held stays what it is
    if t[0] < known[0] - near or t[-1] > last + near:
        ends = " to ".join(text_of(model, one) for one in known[[0, -1]])
        raise Failure(f"{options.inputs} has inputs from {ends}: let --from and --until lie between.")
    if t[-1] > known[-1] + near:
        print_remarks(options.inputs, [f"after the last row, {text_of(model, known[-1])}, inputs stay what they are"])
    return input_curve(known, series.x, model.model_.held)


# Times and their zones ------------------------------------------------------------------------------------------------


def in_zone(moment: float | datetime, zone: str | None) -> float | datetime:
    """Return a date that names no zone as one of the zone that --zone names; others as they are."""
    local = zone is not None and isinstance(moment, datetime) and moment.tzinfo is None
    return moment.replace(tzinfo=ZoneInfo(zone)) if local else moment  # type: ignore[union-attr, arg-type]


def number_of(model: Any, moment: float | datetime, option: str) -> float:
    """Return a time in the unit of the model; 20240531 is a date where the times of the data were dates."""
    date: Any = moment
    if not isinstance(moment, datetime):
        compact = None if model.time_origin_ is None else compact_dates(np.array([moment]))
        if compact is None:
            return moment
        date = compact[0].item()
    if model.time_origin_ is None:
        raise Failure(f"{date} is a date, but the times of the data were numbers: give a number in their unit.")
    require_zone(model, date.tzinfo is not None, f"{option} {date.isoformat()}")
    moment_in_utc = date.astimezone(UTC).replace(tzinfo=None) if date.tzinfo else date
    return float(model.elapsed(np.array([moment_in_utc], dtype="datetime64[us]"))[0])


def text_of(model: Any, number: float) -> str:
    """Return a time as text."""
    (text,) = map(str, model.dates(np.array([number])))
    return f"{text.removesuffix('.000000')}{IN_UTC * clock_of(model).zoned}"


def require_zone(model: Any, zoned: bool, what: str) -> None:
    """Refuse dates that name a time zone where those of the data did not, or the other way round."""
    if clock_of(model).zoned and not zoned:
        raise Failure(
            f"{what} has no time zone, and the times of the data had one: add it, such as {IN_UTC} for UTC in "
            f"2024-05-31T12:00{IN_UTC}, or name it with --zone, such as --zone Europe/Berlin."
        )
    if zoned and not clock_of(model).zoned:
        raise Failure(f"{what} has a time zone, and the times of the data had none: leave it out.")


def require_zones(model: Any, series: Series, path: Path) -> None:
    """Refuse a file whose dates name time zones where those of the data did not, or the other way round."""
    times = series.t[0] if isinstance(series.t, list) else series.t
    if model.time_origin_ is not None and np.asarray(times).dtype.kind == "M":
        require_zone(model, series.zoned, f"The column of times {series.time!r} of {path}")


def clock_of(model: Any) -> Clock:
    """Return how the times of a model are counted."""
    return Clock(model.time_unit_, model.time_origin_)


# Reports --------------------------------------------------------------------------------------------------------------


def report(options: argparse.Namespace) -> None:
    """Load or fit a model, and write one page about it."""
    if options.out.is_dir():
        raise Failure(f"--out {options.out} is a directory: name a file, such as report.html.")
    device = options.out.exists() and not options.out.is_file()  # such as /dev/stdout
    if options.out.suffix.lower() not in PAGES and not device:
        page, ends = shlex.quote(str(options.out.with_suffix(".html"))), ", ".join(PAGES)
        needed = f"a report is a page of HTML, whose name ends in {ends}: --out {page}. Browsers print it to PDF."
        raise Failure(f"--out {options.out}: {needed}")
    if not options.source.exists():
        raise Failure(f"There is no file {options.source}.")
    is_data = options.source.is_dir() or options.source.suffix.lower() in (*KNOWN, *PACKED)
    with kept_warnings() as notes:
        found = _fitted_for_report(options) if is_data else _loaded(options)
    notes = told_of(found, notes)
    saved, there = None if is_data else str(options.source), options.out.is_file()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    moving = hasattr(found.model, "simulate")
    source: Any = found.source
    with kept_warnings() as drawn:
        told = verdict(found.model, found.data, source.space) if moving and found.data and not is_data else NOTHING
        write_page(found, options.out, options, notes, title=options.title, saved=saved, checked=told)
        rows = [] if is_data or moving else contradictions(found)
    print(told_written(options.out, there))
    print(*filter(None, [visible(told[0])]), sep="\n", end="\n" * bool(told[0]))
    print_remarks(options.data, getattr(found.source, "remarks", []))
    print_warnings([*rows, *notes, *(one for one in drawn if one not in notes)])


def contradictions(found: Found) -> list[str]:
    """Return for which targets of a regression the rows contradict the model."""
    return doubts_of_fit(found.model, found.equations, found.data, contradicted)


def _fitted_for_report(options: argparse.Namespace) -> Found:
    """Fit data with the options of `fit` or of `discover`."""
    if options.data is not None:
        raise Failure("--data goes with a saved model; this source is data itself.")
    options.data = options.source
    dynamic = options.time is not None or options.step is not None or options.map
    if dynamic and options.target is not None:
        raise Failure("--target is for a regression, and --time (--step, --map) for equations: leave one of them out.")
    if not dynamic and options.target is None:
        raise Failure("This source is data: give --target for a regression, or --time (--step, --map) for equations.")
    return discovered(options) if dynamic else fitted(options)


def _loaded(options: argparse.Namespace) -> Found:
    """Load a model, and the rows to check it against where they are named."""
    model = load(options.source)
    if options.data is None:
        return Found(model, targets=[options.target] if options.target else None)
    notes = table_notes(model)
    if hasattr(model, "simulate"):
        options.map = options.map or bool(getattr(model, "discrete_time", False))
        if options.step is None and not options.map:
            options.time = options.time or notes["time"] or None
        if notes["series"] and options.series is None and notes["series"] in table_of(options, model).names:
            options.series = notes["series"]
        states = list(map(str, model.feature_names_))
        options.states = options.states or [joined_names(states)]
        if acting := getattr(model.model_, "names", states)[len(states) :]:
            options.inputs = options.inputs or [joined_names(columns_of(acting, notes))]
        series = series_of(options)
        require_zones(model, series, options.data)
        return Found(model, series, (series.x, series.t, series.u))
    options.target = options.target or notes["target"] or None
    if options.target is None:
        raise Failure("Say which column of --data the model should explain: --target COLUMN.")
    table = table_of(options, model)
    target = table.target(options.target)
    columns = columns_of(model.equations_[0].vocabulary.names, notes)
    rows = Rows(table, [target], columns, memory=options.memory, missing="drop", levels=notes["levels"])
    if not rows.fits:
        raise Failure(f"{options.data} is larger than --memory: check the model against fewer rows.")
    return Found(model, rows, arrays(rows, notes["products"]), rows.target_names)
