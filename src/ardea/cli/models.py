"""``ardea fit``, ``discover`` and ``report``: from data to a model, and from a model to the terminal and into files."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np

from ardea import __version__
from ardea.cli import command_with, table_notes, text_settings, written
from ardea.cli.console import (
    BOLD,
    Failure,
    as_options,
    how_read,
    kept_warnings,
    painted,
    print_json,
    print_remarks,
    print_warnings,
    visible,
    working,
)
from ardea.cli.outputs import write_outputs, write_page
from ardea.cli.regressions import arrays, estimator, products_of
from ardea.cli.times import require_zones
from ardea.core.problem import require
from ardea.dynamics import Discovery, FieldTerms, Polynomials
from ardea.equation import WEAK, Equation
from ardea.names import counted, sized
from ardea.saving import load
from ardea.show.answers import OFTEN_SMALLER, Summary
from ardea.show.fits import equations_of, r_squared
from ardea.show.report import chosen_how
from ardea.tables.columns import level_names
from ardea.tables.dates import in_utc, names_time
from ardea.tables.reading import KNOWN, PACKED, open_table
from ardea.tables.rows import Rows
from ardea.tables.series import Choice, Series, read_series
from ardea.tables.table import SHOWN_NAMES, Table, TableError, joined_names, listed, shortened

# Candidates named in a line (a convention), and the degree of the polynomials where none was told.
MOST_TRIED, USUAL_DEGREE = 12, 3
# A convention: of 20 rows of Lorenz 63 with 5 % noise no equations were exact (docs/equations_table.md, short).
FEW_ROWS = 50
# d × d matrices that a search among d terms holds at a time: the Gram matrix, its factor, and copies of both.
GRAM_COPIES = 4
# Attributes of a regression that its record holds, and of a discovery.
OF_ROWS, SAID = (
    ("effective_rows", "error_correlation"),
    ("form", "rows_used", "misfit", "noise_kind", "process_noise"),
)
# How noise grows with the state, in words.
GROWING = {"counts": "as of counts", "proportional": "proportional to the state", "mixed": "of a kind for each"}
# Different cells that a command takes as empty, each by an option (a convention: a line).
MOST_TOKENS = 5
# R² from which on a column that was computed from y is likelier than so good a model (a convention).
NEARLY_ALL = 0.9995


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


def run(options: argparse.Namespace) -> None:
    """Find a model, write files where asked, and print: for a person, or all of it at once for machines.

    Files come first: a reader that leaves early (`| head`) ends the program.
    """
    if options.out is not None and options.out.exists() and not options.out.is_dir():
        raise Failure(f"--out {options.out} is a file: name a folder, which need not exist.")
    with kept_warnings() as notes:
        found = discovered(options) if options.command == "discover" else fitted(options)
    source: Any = found.source
    notes[:] = [*source.doubts, *in_words_of_file(notes, source)]
    files = [] if options.out is None else write_outputs(found, options, notes)
    if options.json:
        record = (_motion_record if options.command == "discover" else _regression_record)(found, source, options)
        print_json({**header_record(options), **record, "warnings": notes, "files": list(map(str, files))})
        return
    title, *rest = (_motion_text if options.command == "discover" else _regression_text)(found, source, options)
    print(painted(title, BOLD), *map(visible, [*rest, *how_read(options.data, source.remarks)]), sep="\n")
    print_warnings(notes)
    for file in files:
        print(visible(f"wrote {file}"))


def report(options: argparse.Namespace) -> None:
    """Load or fit a model, and write one page about it."""
    if options.out.is_dir():
        raise Failure(f"--out {options.out} is a directory: name a file, such as report.html.")
    if not options.source.exists():
        raise Failure(f"There is no file {options.source}.")
    is_data = options.source.is_dir() or options.source.suffix.lower() in (*KNOWN, *PACKED)
    with kept_warnings() as notes:
        found = _fitted_for_report(options) if is_data else _loaded(options)
    source: Any = found.source
    notes[:] = notes if source is None else [*source.doubts, *in_words_of_file(notes, source)]
    print(f"wrote {write_page(found, options.out, options, notes, title=options.title)}")
    print_remarks(options.data, [] if source is None else source.remarks)
    print_warnings(notes)


def _fitted_for_report(options: argparse.Namespace) -> Found:
    """Fit data with the options of `fit` or of `discover`."""
    if options.data is not None:
        raise Failure("--data goes with a saved model; this source is data itself.")
    options.data = options.source
    dynamic = options.time is not None or options.step is not None or options.map
    if dynamic == (options.target is not None):
        raise Failure("This source is data: give --target for a regression, or --time (--step, --map) for equations.")
    return discovered(options) if dynamic else fitted(options)


def _loaded(options: argparse.Namespace) -> Found:
    """Load a model, and the rows to check it against where they are named."""
    model = load(options.source)
    if options.data is None:
        return Found(model, targets=[options.target] if options.target else None)
    if hasattr(model, "simulate"):
        states = list(map(str, model.feature_names_))
        options.states = options.states or [joined_names(states)]
        if acting := getattr(model.model_, "names", states)[len(states) :]:
            options.inputs = options.inputs or [joined_names(columns_of(acting, table_notes(model)))]
        series = series_of(options)
        require_zones(model, series, options.data)
        return Found(model, series, (series.x, series.t, series.u))
    if options.target is None:
        raise Failure("Say which column of --data the model should explain: --target COLUMN.")
    table = table_of(options, model)
    target, notes = table.target(options.target), table_notes(model)
    columns = columns_of(model.equations_[0].vocabulary.names, notes)
    rows = Rows(table, [target], columns, memory=options.memory, missing="drop", levels=notes["levels"])
    if not rows.fits:
        raise Failure(f"{options.data} is larger than --memory: check the model against fewer rows.")
    return Found(model, rows, arrays(rows, notes["products"]), rows.target_names)


# Tables ---------------------------------------------------------------------------------------------------------------


def table_of(options: argparse.Namespace, model: Any = None) -> Table:
    """Open a table as the options say that it is written, or as they said of the one that a model was fitted to."""
    return open_table(options.data, **text_settings(options, model))


def columns_of(names: Sequence[str], notes: dict[str, Any]) -> list[str]:
    """Return the columns of a table that columns of a model are made of, each once."""
    encoded = {name: column for column, texts in notes["levels"].items() for name in level_names(column, texts)}
    factors = [one for name in names for one in notes["products"].get(name, [name])]
    return list(dict.fromkeys(encoded.get(name, name) for name in factors))


# What is said of them ------------------------------------------------------------------------------------------------


def in_words_of_file(told: Iterable[str], source: Any) -> list[str]:
    """Return messages with options for parameters, and with lines of a file for rows of X where these came from one."""
    return [_in_lines(as_options(one), source) if isinstance(source, Rows) else as_options(one) for one in told]


def _in_lines(text: str, rows: Rows) -> str:
    found = re.match(r"Row (\d+)", text)
    line = None if found is None else rows.line_of(int(found[1]))
    if found is None or line is None:
        return text
    left_out = f"Leave it out with --drop-lines {line}"
    return text.replace(found[0], f"Line {line}", 1).replace("Leave it out of X and y", left_out)


@contextmanager
def helped(options: argparse.Namespace) -> Iterator[None]:
    """Add to what is wrong with a table the command that would work."""
    try:
        yield
    except TableError as error:
        if not error.columns and not error.lines:
            raise
        raise Failure(f"{error}\n  {_advice(error, options)}") from error


def _advice(error: TableError, options: argparse.Namespace) -> str:
    """Return what would help."""
    target = getattr(options, "target", None)
    if error.lines:
        lines = [*filter(None, [options.drop_lines]), *map(str, error.lines)]
        return f"To leave such lines out: {command_with(options, drop_lines=','.join(lines))}"
    if 0 < len(error.tokens) <= MOST_TOKENS:
        tried = command_with(options, na=[*(options.na or []), *error.tokens])
        return f"Correct these lines, or take such cells as empty: {tried}"
    if error.tokens:
        return "Correct these lines."
    if target in error.columns:
        return f"The target {target!r} must hold numbers, or two texts, of which one then counts as 1."
    if target is not None:
        return f"Try: {command_with(options, drop=[*(options.drop or []), joined_names(error.columns)])}"
    return _advice_on_series(error, options)


def _advice_on_series(error: TableError, options: argparse.Namespace) -> str:
    """Return commands that leave columns out, take them for inputs, or for what tells runs apart."""
    named = table_of(options).columns(options.inputs) if options.inputs else []
    states = [name for name in error.others if name not in named]
    if not states:
        return "No other column is left: give one of numbers."
    inputs = [name for name in named if name not in error.columns]
    without = {"states": [joined_names(states)], "inputs": [joined_names(inputs)] if inputs else None}
    others = without if len(error.columns) > 1 else {}  # which cannot be used either
    if error.clocks:  # and the time is what they lack
        both = joined_names([*table_of(options).columns([options.time]), error.clocks[0]])
        return f"If date and time of day stand in two columns: {command_with(options, **others, time=both)}"
    said = []
    if error.runs and options.series is None and error.runs[0] not in named:
        name = error.runs[0]
        acting = {**others, "inputs": [joined_names([*inputs, name])]}
        said = [f"If {name!r} tells several runs apart: {command_with(options, **{**others, 'series': name})}"]
        said += [f"If it acts from outside: {command_with(options, **acting)}"]
        if len(states) == 1:
            wide = f"table.pivot(index={options.time!r}, columns={name!r}, values={states[0]!r})"
            said += [f"If it names several states, each needs a column of its own: in pandas {wide}.to_csv(…)"]
    return "\n  ".join([*said, f"{'Else' if said else 'Try'}: {command_with(options, **without)}"])


# Regressions ----------------------------------------------------------------------------------------------------------


def fitted(options: argparse.Namespace) -> Found:
    """Fit a table; the model knows what that looked like."""
    if options.target is None:
        there = shortened(table_of(options).names, SHOWN_NAMES)
        raise Failure(f"Say which column to explain: --target COLUMN. There are {there}.")
    with helped(options):
        rows = _rows(options)
        products = products_of(rows.names, rows.levels, options.degree or 1, options.interactions)
        data = arrays(rows, products) if rows.fits else None
    (target,) = rows.targets
    names = [*rows.names, *products]
    if products and data is None:
        raise Failure(f"--degree and --interactions need all rows at once: give more --memory than {options.memory}.")
    if data is not None and np.ptp(data[1]) == 0:
        raise Failure(f"{target} is {data[1][0]:g} in every row: there is nothing to explain.")
    columns = len(names)
    if options.false_terms is not None and options.false_terms >= columns:
        raise Failure(
            f"--false-terms {options.false_terms:g} accepts every one of the {columns} columns as a term without "
            f"meaning: give less than {columns}."
        )
    kept = listed(options.keep, [*names, *rows.levels], f"{options.data} has no column")
    keep = [one for name in kept for one in (level_names(name, rows.levels[name]) if name in rows.levels else [name])]
    table = rows.table
    groups = rows.groups(table.column(options.groups) if options.groups else None, options.rows == "series")
    model = estimator(options, keep).fit(*((rows.compressed(), None) if data is None else data), groups=groups)
    seen = {"target": target, "header": table.headed, "columns": len(table.names)}
    model.table_ = {**written(options), **seen, "levels": rows.levels, "products": products, "signs": rows.signs}
    model.warnings_ = in_words_of_file(model.warnings_, rows)
    return Found(model, rows, data, rows.target_names)


def _rows(options: argparse.Namespace) -> Rows:
    """Return the rows that the options name, with what their columns are."""
    working(f"Reading {options.data}")
    table = table_of(options)
    target = table.target(options.target)
    if target in table.columns(options.drop):
        raise Failure(f"--drop names the target, {target!r}: leave it out there, or explain another column.")
    dropped = {*table.columns(options.drop), target, *(table.column(one) for one in (options.groups,) if one)}
    columns = [name for name in table.columns(options.columns) or table.names if name not in dropped]
    if not columns:
        raise Failure(f"{table.path}: no column is left to explain {target!r} with.")
    told: list[str] | None = None if options.categorical is None else []
    if options.categorical not in (None, ["none"]):
        told = [name for name in table.columns(options.categorical) if name in columns]
    named = [*table.columns(options.columns), *(options.keep or []), *(told or [])]
    settings = {"missing": options.missing, "categorical": told, "wanted": named}
    return Rows(table, [target], columns, memory=options.memory, **settings)


def _regression_text(found: Found, rows: Rows, options: argparse.Namespace) -> list[str]:
    """Return the model as a person reads it: a title, and the lines below what is said of the table."""
    kind = type(getattr(found.model, "best_estimator_", found.model)).__name__
    (equation,) = found.equations
    used, spread, explained = rows.n_read - rows.n_left_out, "", list[str]()
    if found.data is not None and used > 1:  # as the noise would be without any term
        y = found.data[1]
        share = r_squared(found.model, *found.data)[0]
        explained = [f"R² = {share:.4f}, on the rows that were fitted"]
        if share > NEARLY_ALL:
            explained.append(
                "That is nearly all of it: see that no column was computed from y (--drop leaves one out)."
            )
        varies = y.std(ddof=1) if equation.intercept is not None else np.sqrt(np.mean(y**2))
        spread = f"; {equation.name} itself varies by {sized(varies)}"
    rows_used = f"{used} of {rows.n_read} rows" if rows.n_left_out else counted(used, "row")
    terms = ["", "No column explains it: the constant alone is the best model."]
    if equation.terms:
        terms = [str(Summary(equation.table(options.level), ""))]
    return [
        f"{kind}: {len(equation.terms)} of {equation.n_candidates} columns explain {equation.name} ({rows_used})",
        *terms,
        "",
        equation.formula(),
        *explained,
        f"noise σ = {sized(equation.noise)}{spread}",
        *([f"|t| < {WEAK:g}: {shortened(equation.weak_terms)}; {OFTEN_SMALLER}"] if equation.weak_terms else []),
        *([chosen_how(found.model)] if equation.terms else []),
    ]


def _regression_record(found: Found, rows: Rows, options: argparse.Namespace) -> dict[str, Any]:
    """Return the model as machines read it."""
    model = found.model
    one, search = getattr(model, "best_estimator_", model), None
    if hasattr(model, "path_"):
        search = {"criterion": model.criterion, "chosen": model.best_params_, "strengths": model.path_["strength"]}
    return {
        "rows": rows.n_read - rows.n_left_out,
        "columns": found.equations[0].n_candidates,
        "r_squared": None if found.data is None else r_squared(found.model, *found.data)[0],
        "rows_left_out": rows.n_left_out,
        "remarks": rows.remarks,
        "method": type(one).__name__,
        "search": search,
        "equations": [_equation_record(equation, options.level) for equation in found.equations],
        **{name: getattr(one, f"{name}_") for name in ("log_evidence", "kkt_gap", *OF_ROWS)},
    }


# Equations of motion --------------------------------------------------------------------------------------------------


def discovered(options: argparse.Namespace) -> Found:
    """Find the equations of a time series or a field."""
    series = series_of(options)
    library: Any = None
    order = 2 if options.second_order else 1
    if options.degree is not None:
        library = Polynomials(options.degree) if series.space is None else FieldTerms(powers=options.degree)
        _require_room(series, library, order)
    if series.space is not None and (options.map or options.second_order or options.form not in (None, "weak")):
        raise Failure("Fields are found in weak form and continuous time: leave out --form, --map and --second-order.")
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
    model.table_ = {**written(options), "levels": series.levels, "time": series.time}
    return Found(model, series, (series.x, series.t, series.u))


def series_of(options: argparse.Namespace) -> Series:
    """Read what the options name."""
    if options.time is not None and options.step is not None:
        raise Failure("Give --time or --step, not both.")
    if options.time is None and options.step is None and not options.map:
        near = next(filter(names_time, table_of(options).names), None)
        tried = "" if near is None else f"\nTry: {command_with(options, time=near)}"
        raise Failure(f"Say when the rows were taken: --time COLUMN, or --step DT (or --map for discrete time).{tried}")
    choice = Choice(options.time, options.states or (), options.inputs or (), options.series, options.space or ())
    with helped(options):
        series = read_series(options.data, choice, memory=options.memory, **text_settings(options))
        if series.space is None:
            series.require_samples(options.data)
    return series if series.t is not None else replace(series, t=options.step or 1.0)


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


def _motion_text(found: Found, series: Series, options: argparse.Namespace) -> list[str]:
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
        *_what_may_help(model, options),
    ]


def _what_may_help(model: Any, options: argparse.Namespace) -> list[str]:
    """Return what was tried where no candidates fit, and what to try next; for few rows, how to make more of them."""
    told, doubted = [], any("explain misfit" in one for one in model.warnings_)
    if doubted:
        degree = "" if options.degree is None else f" (--degree {options.degree})"
        told.append(f"Tried, and not enough{degree}: {shortened(model.get_feature_names(), MOST_TRIED)}.")
        hints = {
            "what acts from outside (--inputs A,B)": options.inputs,
            "x'' where only positions were measured (--second-order)": options.second_order or options.map,
            "a higher --degree": (options.degree or 0) > USUAL_DEGREE,
            "fewer or other --states": False,
            "in Python sines, fractions and functions of your own (docs/constants)": False,
        }
        told.append(f"What may help: {'; '.join(hint for hint, done in hints.items() if not done)}.")
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


def _motion_record(found: Found, series: Series, options: argparse.Namespace) -> dict[str, Any]:
    """Return the equations as machines read them."""
    equations = [
        {
            **_equation_record(one, options.level),
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


# Files and records ----------------------------------------------------------------------------------------------------


def header_record(options: argparse.Namespace) -> dict[str, Any]:
    """Return what every JSON begins with."""
    return {"ardea": __version__, "command": options.command, "data": str(options.data), "level": options.level}


def _equation_record(found: Equation, level: float) -> dict[str, Any]:
    rows = zip(*found.table(level).values(), strict=True)
    return {
        "left": found.left.text,
        "formula": found.formula(),
        "intercept": found.intercept,
        "intercept_std": found.intercept_std,
        "noise_std": found.noise,
        "terms": [dict(zip(("name", "coef", "std", "low", "high"), row, strict=True)) for row in rows],
    }
