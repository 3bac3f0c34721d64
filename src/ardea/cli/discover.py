"""``ardea discover DATA --time t``: equations of motion from a time series or a field."""

from __future__ import annotations

import argparse
import io
import sys
import time
from math import comb
from pathlib import Path
from typing import Any

from ardea.cli.console import BOLD, Failure, painted, print_json, print_warnings, spoken_warnings, working
from ardea.cli.fit import sum_record
from ardea.cli.options import HelpFormatter, add_discover_options, add_output_options, add_text_options
from ardea.cli.outputs import check_folder, header_record, print_files, write_outputs
from ardea.cli.series import Series, read_series
from ardea.core.memory import require
from ardea.progress import duration
from ardea.readers import DEFAULT_MEMORY
from ardea.show.fits import equations_of

# d × d matrices that a search among d terms holds at a time.
GRAM_COPIES = 4
EPILOG = """\
DATA is a table with one row per time (CSV, NPY; Parquet with ardea[frames]): every column but the time is a state,
empty fields are gaps, and times may be dates. Or it holds arrays (NPZ; NetCDF and Zarr with ardea[fields]): a field u
with its coordinates x and times t, space axes first, or a table of states. Nothing is written without --out.
Of a table larger than --memory up to 50 stretches of 400 rows are kept, spread over the whole of it; it needs --time in
numbers and no gaps.

examples:
  ardea discover pendulum.csv --time t
  ardea discover lynx.csv --time year --states hare,lynx --degree 2
  ardea discover car.csv --step 0.01 --states v --inputs throttle,brake
  ardea discover runs.csv --time t --series run           several experiments in one file
  ardea discover population.csv --map                     x[k+1] = f(x[k])
  ardea discover wave.npz --time t --space x              partial differential equation of a field
  ardea discover pendulum.csv --time t --out run          open run/report.html
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "discover",
        help="find equations of motion in a time series or a field",
        description="Find the equations that a time series or a field obeys, with intervals.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="the time series or field")
    add_discover_options(parser)
    parser.add_argument(
        "--memory",
        default=DEFAULT_MEMORY,
        metavar="SIZE",
        help=f"of larger tables, stretches are read ({DEFAULT_MEMORY})",
    )
    add_text_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Find the equations, print them, and write where asked."""
    check_folder(options.out)
    start = time.monotonic()
    with spoken_warnings() as notes:
        series = read_series(options.data, options)
        model = found_model(series, options)
    seconds = time.monotonic() - start
    if not options.json:
        print(as_text(model, series, options, seconds))
        print_warnings(notes)
    files: list[Path] = []
    if options.out is not None:
        working("Simulating and drawing")
        files = write_outputs(model, options, notes, data=(series.x, series.t, series.u))
    if options.json:
        print_json(as_record(model, series, options, notes, files))
    else:
        print_files(files)
    return 0


def found_model(series: Series, options: argparse.Namespace) -> Any:
    """Return the fitted Discovery that the options ask for."""
    from ardea.dynamics import Discovery
    from ardea.dynamics.field_terms import FieldTerms
    from ardea.dynamics.libraries import Polynomials

    library: Any = None
    if options.degree is not None:
        library = Polynomials(options.degree) if series.space is None else FieldTerms(powers=options.degree)
    if series.space is not None and (options.map or options.form != "weak"):
        raise Failure("Fields are found in weak form and continuous time: leave out --form and --map.")
    _require_room(series, library)
    working(f"Searching: {series.described()}")
    model = Discovery(library, form=options.form, discrete_time=options.map, verbose=int(sys.stderr.isatty()))
    return model.fit(
        series.x, series.t, u=series.u, feature_names=series.names, space=series.space, time_unit=series.time_unit
    )


def _require_room(series: Series, library: Any) -> None:
    """Refuse a library of more terms than memory has room for, before any is listed."""
    if library is None:
        return
    if series.space is None:
        degree = library.degree
        terms = comb(len(series.names) + degree, degree)
    else:
        axes, fields, degree = len(series.space), len(series.names), library.powers
        terms = fields * comb(fields + degree, degree) * comb(axes + library.derivatives, axes)
    advice = "Give a smaller --degree, or fewer --states."
    require(8 * GRAM_COPIES * terms**2, f"A library of terms up to degree {degree}", advice)


def as_text(model: Any, series: Series, options: argparse.Namespace, seconds: float) -> str:
    """Return the equations as a person reads them."""
    text = io.StringIO()
    model.print(options.level, file=text)
    percent = f"{100 * options.level:g} %"
    n_terms = len(model.get_feature_names())
    lines = [painted(f"{options.data}: {series.described()}", BOLD), "", text.getvalue()]
    many = len(model.equations_)
    counted = f"{model.complexity} terms in {many} equation{'s' * (many > 1)}"
    lines += [f"{counted}, chosen from {n_terms} candidates for each; ± is half the {percent} interval."]
    noise = ", ".join(f"{one.name} {one.noise:.2g}" for one in model.equations_[:8])
    lines += [f"Noise seen by the equations: {noise}{', …' * (len(model.equations_) > 8)}. Took {duration(seconds)}."]
    return "\n".join(lines)


def as_record(model: Any, series: Series, options: argparse.Namespace, notes: list[str], files: list[Path]) -> Any:
    """Return the equations as machines read them."""
    equations = []
    for equation in equations_of(model):
        rivals = [{"terms": list(rival.terms), "excess": rival.excess} for rival in equation.rivals]
        equivalents = [list(terms) for terms in equation.equivalents]
        equations.append({**sum_record(equation, options.level), "rivals": rivals, "equivalents": equivalents})
    return {
        **header_record(options),
        "read": series.described(),
        "names": series.names,
        "candidates": model.get_feature_names(),
        "equations": equations,
        "latex": model.latex(),
        "warnings": notes,
        "files": [str(file) for file in files],
    }
