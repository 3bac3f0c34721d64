"""From a model to the terminal and into files, whatever it is about; and ``ardea discover``."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from ardea import __version__
from ardea.cli import (
    BOLD,
    Failure,
    as_options,
    command_line,
    how_read,
    kept_warnings,
    painted,
    print_json,
    print_warnings,
    visible,
    working,
)
from ardea.cli.advice import advice
from ardea.cli.options import line_numbers
from ardea.cli.outputs import (
    FIGURE_FORMATS,
    FIGURES,
    coefficients_csv,
    files_in,
    remove_earlier,
    told_written,
    whole_folder,
)
from ardea.cli.starts import starts_of
from ardea.core.problem import require
from ardea.dynamics import Discovery, FieldTerms, Polynomials
from ardea.equation import Equation
from ardea.names import counted, in_a_row, sized
from ardea.saving import save
from ardea.show import figure_bytes, plot_coefficients, plot_path, write_report
from ardea.show.fits import equations_of
from ardea.tables import write_whole
from ardea.tables.arrays import FEWEST_POINTS
from ardea.tables.dates import in_utc, names_time
from ardea.tables.endings import ending_of
from ardea.tables.levels import level_names
from ardea.tables.reading import open_table
from ardea.tables.rows import Rows
from ardea.tables.series import Choice, Series, read_series
from ardea.tables.table import ARRAYS, Table, TableError, all_of, shortened

# What a model notes of a table, to read others like it.
NOTHING_NOTED: dict[str, Any] = {"target": "", "time": "", "header": True, "columns": 0, "decimal": None, "na": []}
NOTHING_NOTED |= {"levels": {}, "products": {}, "signs": {}, "starts": {}, "series": ""}
# Lines that find the equation of a field in a table with a column for every point.
MATRIX = """import pandas as pd
from ardea.dynamics import Discovery
table = pd.read_csv({!r}, index_col={!r})
x = table.columns.astype(float).to_numpy()
model = Discovery().fit(table.to_numpy().T, table.index.to_numpy(), space=(x,))
model.print()"""
# Candidates named in a line (a convention), and the degree of the polynomials where none was told.
MOST_TRIED, USUAL_DEGREE = 12, 3
# A convention: of 20 rows of Lorenz 63 with 5 % noise no equations were exact (docs/equations_table.md, short).
FEW_ROWS = 50
# d × d matrices that a search among d terms holds at a time: the Gram matrix, its factor, and copies of both.
GRAM_COPIES = 4
# How noise grows with the state, in words.
GROWING = {"counts": "as of counts", "proportional": "proportional to the state", "mixed": "of a kind for each"}
# Attributes of a regression that its record holds, and of a discovery.
OF_ROWS, SAID = (
    ("effective_rows", "error_correlation"),
    ("form", "rows_used", "misfit", "noise_kind", "process_noise"),
)
ALONE = re.compile(r"(?<![\w'.(=-])y(?![\w'=-])")  # what the library calls the target
COUNTED_ROWS = re.compile(r"\brow(s?) (\d+(?:, \d+)*)(, …)?, counted from 0")


@dataclass(frozen=True)
class Found:
    """A model, the rows or series that it is about, these as arrays, and the names of its targets."""

    model: Any
    source: Rows | Series | None = None
    data: Any = None
    targets: list[str] | None = None

    @property
    def equations(self) -> list[Equation]:
        """Return what was found, under the names of the targets."""
        return list(self.model.equations_) if self.targets is None else equations_of(self.model, self.targets)


def answer(options: argparse.Namespace, find: Callable[..., Found], text: Callable[..., Any], record: Any) -> None:
    """Find a model, write files where asked, and print: for a person, or all of it at once for machines.

    `text` and `record` say what was found: as lines, of which the first is a title, and as JSON has it. Files come
    first: a reader that leaves early (`| head`) ends the program.
    """
    before = [] if options.out is None else files_in(options.out)
    with kept_warnings() as notes:
        found = find(options)
    source: Any = found.source
    notes = told_of(found, notes)
    with kept_warnings() as drawn:
        files = [] if options.out is None else write_outputs(found, options, notes)
        removed = remove_earlier(before, files) if before else []
    notes += drawn
    if options.json:
        what = record(found, source, options)
        places = {"files": list(map(str, files)), "removed": list(map(str, removed))}
        print_json({**header_record(options), **what, "warnings": notes, **places})
        return
    title, *rest = text(found, source, options)
    print(painted(title, BOLD), *map(visible, [*rest, *how_read(options.data, source.remarks)]), sep="\n")
    print_warnings(notes)
    for file in files:
        print(visible(told_written(file, file in before)))
    if removed:
        print(visible(f"removed {in_a_row([one.name for one in removed])} of an earlier run in {options.out}"))


def header_record(options: argparse.Namespace) -> dict[str, Any]:
    """Return what every JSON begins with."""
    return {"ardea": __version__, "command": options.command, "data": str(options.data), "level": options.level}


def equation_record(found: Equation, level: float) -> dict[str, Any]:
    """Return an equation as machines read it."""
    return {
        "left": found.left.text,
        "formula": found.formula(),
        "intercept": found.intercept,
        "intercept_std": found.intercept_std,
        "noise_std": found.noise,
        "terms": [dict(zip(("name", "coef", "std", "low", "high"), row, strict=True)) for row in found.rows(level)],
    }


def told_of(found: Found, notes: Sequence[str]) -> list[str]:
    """Return what is said of a model besides its numbers: doubts about its data, and warnings."""
    return [*getattr(found.source, "doubts", ()), *in_words_of_file(notes, found.source)]


def in_words_of_file(told: Iterable[str], source: Any) -> list[str]:
    """Return messages with options for parameters, and with lines of a file for rows of X where these came from one."""
    said = []
    for text in map(as_options, told):
        row = re.match(r"Row (\d+)", text) if isinstance(source, Rows) else None
        if row is not None and (line := source.line_of(int(row[1]))) is not None:
            text = text.replace(row[0], f"Line {line}", 1)
            text = text.replace("Leave it out of X and y", f"Leave it out with --drop-lines {line}")
        if isinstance(source, Rows):
            text = _with_target(COUNTED_ROWS.sub(partial(_counted_lines, source), text), source)
        said.append(text)
    return said


def _with_target(text: str, rows: Rows) -> str:
    """Return a message with the name of the target for y, unless a column has that word in its name."""
    if len(rows.targets) > 1 or any(ALONE.search(name) for name in rows.table.names):
        return text
    return ALONE.sub(lambda _: rows.targets[0], text)


def _counted_lines(rows: Rows, found: re.Match[str]) -> str:
    """Return lines of a file for rows counted from 0; the same where it has none."""
    lines = [rows.line_of(int(row)) for row in re.findall(r"\d+", found[2])]
    return found[0] if None in lines else f"line{found[1]} {', '.join(map(str, lines))}{found[3] or ''}"


# What is read ---------------------------------------------------------------------------------------------------------


def text_settings(options: argparse.Namespace, model: Any = None) -> dict[str, Any]:
    """Return how the options say that a table is written, else how they did when a model was fitted."""
    before = table_notes(model)
    told = {"header": options.header, "decimal": options.decimal or before["decimal"], "sheet": options.sheet}
    dropped = line_numbers(options.drop_lines) if options.drop_lines else ()
    na = dict.fromkeys([*before["na"], *(options.na or [])])
    return {**told, "zone": options.zone, "na": tuple(na), "drop_lines": dropped}


def table_notes(model: Any) -> dict[str, Any]:
    """Return what a model knows of the table that it was fitted to; nothing of one fitted in Python."""
    return NOTHING_NOTED | getattr(model, "table_", {})


def written(options: argparse.Namespace) -> dict[str, Any]:
    """Return what a model notes of how a table is written."""
    return {**NOTHING_NOTED, "decimal": options.decimal, "na": list(options.na or [])}


def table_of(options: argparse.Namespace, model: Any = None) -> Table:
    """Open a table as the options say that it is written, or as they said of the one that a model was fitted to."""
    return open_table(options.data, **text_settings(options, model))


def columns_of(names: Sequence[str], notes: dict[str, Any]) -> list[str]:
    """Return the columns of a table that columns of a model are made of, each once."""
    encoded = {name: column for column, texts in notes["levels"].items() for name in level_names(column, texts)}
    factors = [one for name in names for one in notes["products"].get(name, [name])]
    return list(dict.fromkeys(encoded.get(name, name) for name in factors))


# What is said of them ------------------------------------------------------------------------------------------------


@contextmanager
def helped(options: argparse.Namespace) -> Iterator[None]:
    """Add to what is wrong with a table the command that would work."""
    try:
        yield
    except TableError as error:
        if not (error.columns or error.lines or error.zone or error.runs or error.space):
            raise
        raise Failure(f"{error}\n  {advice(error, options, lambda texts: table_of(options).columns(texts))}") from error


# Equations of motion --------------------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> None:
    """Find equations of motion, and print or write them."""
    answer(options, discovered, _text, _record)


def discovered(options: argparse.Namespace) -> Found:
    """Find the equations of a time series or a field."""
    series = series_of(options)
    library: Any = None
    order = 2 if options.second_order else 1
    if options.degree is not None:
        library = Polynomials(options.degree) if series.space is None else FieldTerms(powers=options.degree)
        _require_room(series, library, order)
    if series.space is not None and (options.map or options.form not in (None, "weak")):
        raise Failure("Fields are found in weak form and continuous time: leave out --form and --map.")
    working(f"Searching: {series.described()}")
    noise = {"noise" if isinstance(options.noise, str) else "noise_std": options.noise}
    model = Discovery(
        library,
        form=options.form,
        discrete_time=options.map,
        false_terms=options.false_terms,
        derivative_order=order,
        verbose=int(sys.stderr.isatty()),
        **noise,
    )
    settings = {"u": series.u, "feature_names": series.names, "space": series.space, "time_unit": options.time_unit}
    model.fit(series.x, in_utc(series.t) if series.zoned else series.t, **settings)
    clock = options.time if "," in (options.time or "") and options.time != series.time else series.time
    noted = {"levels": series.levels, "time": clock, "series": options.series or ""}
    noted["starts"] = starts_of(model, series) if series.labels else {}
    model.table_ = {**written(options), **noted}
    model.warnings_ = in_words_of_file(model.warnings_, series)
    return Found(model, series, (series.x, series.t, series.u))


def series_of(options: argparse.Namespace) -> Series:
    """Read what the options name."""
    if options.time is not None and options.step is not None:
        raise Failure("Give --time or --step, not both.")
    if options.time is None and options.step is None and not options.map:
        table, lists = table_of(options), (options.states, options.inputs, [*filter(None, [options.series])])
        all_of(partial(_refuse_without_time, table, options), *(partial(table.columns, one) for one in lists))
    _refuse_matrix(options)
    with helped(options):
        series = read_series(options.data, choice_of(options), memory=options.memory, **text_settings(options))
        if series.space is None:
            series.require_samples(options.data)
    return series if series.t is not None else replace(series, t=options.step or 1.0)


def _refuse_without_time(table: Table, options: argparse.Namespace) -> None:
    near = next(filter(names_time, table.names), None)
    tried = "" if near is None else f"\nTry: {command_line(options, time=near)}"
    raise Failure(f"Say when the rows were taken: --time COLUMN, or --step DT (or --map for discrete time).{tried}")


def _refuse_matrix(options: argparse.Namespace) -> None:
    """Refuse a table whose columns are named by ascending numbers, as the points of a field, unless they are chosen."""
    if options.states or options.inputs or options.space or options.time is None or ending_of(options.data) in ARRAYS:
        return
    table = table_of(options)
    if table.once or not table.headed:
        return
    times = table.columns([options.time])
    names = [name for name in table.names if name not in times]
    points = [float(name) for name in names if re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", name)]
    if len(points) == len(names) >= FEWEST_POINTS and all(a < b for a, b in pairwise(points)):
        raise Failure(
            f"{options.data}: the columns are named {shortened(names, 3)}, as the points of a field. Such a table is "
            f"read in Python:\n{MATRIX.format(str(options.data), times[0])}\n"
            "If they are states of a system, choose them with --states."
        )


def choice_of(options: argparse.Namespace) -> Choice:
    """Return which columns or arrays the options name."""
    return Choice(options.time, options.states or (), options.inputs or (), options.series, options.space or ())


def _require_room(series: Series, library: Any, order: int) -> None:
    """Refuse a library of more terms than memory has room for, before any is listed."""
    if series.space is None:
        degree = library.degree
        terms = comb(order * len(series.names) + degree, degree)
    else:
        axes, fields, degree = len(series.space), len(series.names), library.powers
        terms = fields * comb(fields + degree, degree) * comb(axes + library.derivatives, axes)
    advice = "Give a smaller --degree, or fewer --states."
    require(8 * GRAM_COPIES * terms**2, f"A library of terms up to degree {degree}", advice)


def _text(found: Found, series: Series, options: argparse.Namespace) -> list[str]:
    """Return the equations as a person reads them: a title, and the lines below what is said of the table."""
    model, text = found.model, io.StringIO()
    model.print(options.level, file=text)
    size = f"{counted(model.complexity, 'term')} in {counted(len(found.equations), 'equation')}"
    chosen = f"chosen from {counted(len(model.get_feature_names()), 'candidate')} for each"
    noise = shortened([f"{one.name} {sized(one.noise)}" for one in found.equations], 8)
    grown = f" ({GROWING[model.noise_kind_]}; here at the mean)" if model.noise_kind_ in GROWING else ""
    return [
        f"{options.data}: {series.described()}",
        "",
        text.getvalue(),
        f"{size}, {chosen}; ± is half the {100 * options.level:g} % interval.",
        f"Noise seen by the equations{grown}: {noise}.",
        *_process_noise(model),
        *_what_may_help(model, series, options),
    ]


def _switches(series: Series) -> list[str]:
    """Return inputs that are only ever 0 or 1, so that their powers are themselves."""
    if not series.n_inputs:
        return []
    u = np.vstack(series.u if isinstance(series.u, list) else [series.u])
    pairs = zip(series.names[-series.n_inputs :], u.T, strict=True)
    return [name for name, column in pairs if np.isin(column[~np.isnan(column)], (0, 1)).all()]


def _in_steps(series: Series) -> bool:
    """Whether the times of states are whole numbers with one step, as those that count generations are."""
    times = series.t if isinstance(series.t, list) else [series.t]
    arrays = [np.asarray(t) for t in times if series.space is None and np.size(t) > 1]
    steps = [np.diff(t) for t in arrays if t.dtype.kind in "fiu" and not np.any(t % 1)]
    return 0 < len(steps) == len(times) and all(np.all(step == steps[0][0]) for step in steps)


def _what_may_help(model: Any, series: Series, options: argparse.Namespace) -> list[str]:
    """Return what was tried where no candidates fit, and what to try next; for few rows, how to make more of them."""
    told, doubted = [], any("explain misfit" in one for one in model.warnings_)
    if doubted:
        degree = "" if options.degree is None else f" (--degree {options.degree})"
        powers = tuple(f"{written}^" for name in _switches(series) for written in (name, f"({name})"))
        tried = [name for name in model.get_feature_names() if not any(power in name for power in powers)]
        told.append(f"Tried, and not enough{degree}: {shortened(tried, MOST_TRIED)}.")
        field = series.space is not None
        hints = {
            "what acts from outside (--inputs A,B)": options.inputs or field,
            "x'' where only positions were measured (--second-order)": options.second_order or options.map or field,
            "u_tt, as of waves (--second-order)": options.second_order or not field,
            "steps in place of time, x[k+1] = f(x[k]) (--map)": options.map or not _in_steps(series),
            "a higher --degree": (options.degree or 0) > USUAL_DEGREE or (field and options.degree is None),
            "fewer or other --states": False,
            "in Python sines, fractions and functions of your own (docs/constants)": field,
            "in Python products of derivatives, functions of your own and known fields (docs/fields)": not field,
        }
        told.append(f"What may help: {'; '.join(hint for hint, done in hints.items() if not done)}.")
    elif not options.map and _in_steps(series) and not all(one.terms for one in model.equations_):
        told.append(
            "The times are whole numbers in even steps. If the states jump from one to the next, as generations do, "
            f"find a map, x[k+1] = f(x[k]): {command_line(options, map=True)}"
        )
    if model.rows_used_ is not None and model.rows_used_ < FEW_ROWS:
        fewer = "fewer candidates (--degree 2), " * (options.degree is None or options.degree > 2)
        told.append(
            f"{model.rows_used_} rows are few: only strong terms can be told from chance. What helps: several runs of "
            f"the same system in one file (--series COLUMN), {fewer}and noise that is known (--noise, such as "
            "proportional, or its size)."
        )
    return told


def _process_noise(model: Any) -> list[str]:
    """Return a sentence on noise that moves the system itself, where there is some."""
    pairs = zip(model.feature_names_, model.process_noise_ if model.process_noise_ is not None else [], strict=False)
    moved = [f"{name} {noise:.2g}" for name, noise in pairs if noise > 0]
    over = "a step" if model.discrete_time else "a unit of time"
    return [f"Noise that moves the system itself, over {over}: {', '.join(moved[:8])}."] if moved else []


def _record(found: Found, series: Series, options: argparse.Namespace) -> dict[str, Any]:
    """Return the equations as machines read them."""
    equations = [
        {
            **equation_record(one, options.level),
            "rivals": [{"terms": list(rival.terms), "excess": rival.excess} for rival in one.rivals],
            "equivalents": [list(terms) for terms in one.equivalents],
        }
        for one in found.equations
    ]
    return {
        "read": series.described(),
        "remarks": series.remarks,
        "names": series.names,
        "candidates": found.model.get_feature_names(),
        **{name: getattr(found.model, f"{name}_", None) for name in SAID},
        "equations": equations,
        "latex": found.model.latex(),
    }


# Files ----------------------------------------------------------------------------------------------------------------


def write_outputs(found: Found, options: argparse.Namespace, notes: Sequence[str]) -> list[Path]:
    """Write all files of a fit or a discovery into the folder that the options name, and return their places."""
    folder: Path = options.out
    with whole_folder(folder):
        save(found.model, folder / "model.ardea")
        table = write_whole(folder / "coefficients.csv", coefficients_csv(found.equations, options.level))
        figures = _figures(found, folder, options.level)
        page = write_page(found, folder / "report.html", options, notes)
    return [folder / "model.ardea", table, *figures, page]


def write_page(found: Found, page: Path, options: argparse.Namespace, notes: Sequence[str], **more: Any) -> Path:
    """Write one page about what was found."""
    read = [] if found.source is None else found.source.remarks
    details = {"data": found.data, "targets": found.targets, "source": options.data, "notes": notes, "read": read}
    details["reading"] = _reading(found, options)
    return write_report(found.model, page, level=options.level, command=command_line(options), **details, **more)


def _reading(found: Found, options: argparse.Namespace) -> str | None:
    """Return lines of Python that read the data, and groups of rows; None where more was given to `fit`."""
    told = {
        name: value for name, value in text_settings(options, found.model).items() if value not in (None, (), "auto")
    }
    path, settings = str(options.data), "".join(f", {name}={value!r}" for name, value in told.items())
    if isinstance(found.source, Rows):
        rows, notes = found.source, table_notes(found.model)
        products = "".join(
            f"\nX[{name!r}] = {' * '.join(f'X[{one!r}]' for one in factors)}"
            for name, factors in notes["products"].items()
        )
        series = options.rows == "series"
        column = rows.table.column(options.groups) if options.groups else None
        shared = f"\ngroups = rows.groups({column!r}, {series})" if column or series else ""
        chosen = f"{list(rows.targets)}, {rows.columns}, missing='drop', levels={notes['levels']}"
        return (
            "from ardea.tables.reading import open_table\nfrom ardea.tables.rows import Rows\n\n"
            f"rows = Rows(open_table({path!r}{settings}), {chosen})\n"
            f"X, y = rows.arrays()\nX = pd.DataFrame(X, columns=rows.names){products}{shared}"
        )
    if isinstance(found.source, Series) and not options.time_unit:
        step = "" if options.step is None and not options.map else f"\nt = {options.step or 1.0}"
        return (
            "from pathlib import Path\nfrom ardea.tables.series import Choice, read_series\n\n"
            f"series = read_series(Path({path!r}), {choice_of(options)}{settings})\n"
            f"x, t, u, space = series.x, series.t, series.u, series.space{step}"
        )
    return None


def _figures(found: Found, folder: Path, level: float) -> list[Path]:
    """Draw the coefficients and what led to them."""
    model = found.model
    drawings = dict.fromkeys(FIGURES[:1], partial(plot_coefficients, model, level=level, targets=found.targets))
    if hasattr(model, "path_"):
        drawings |= dict.fromkeys(FIGURES[1:], partial(plot_path, model))
    return [
        write_whole(folder / f"{name}.{kind}", figure_bytes(draw, kind))
        for name, draw in drawings.items()
        for kind in FIGURE_FORMATS
    ]
