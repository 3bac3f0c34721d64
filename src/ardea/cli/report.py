"""``ardea report MODEL|DATA``: one page about a saved model, or about one fitted for the occasion."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

from ardea.cli import discover, fit
from ardea.cli.console import Failure, print_warnings, spoken_warnings
from ardea.cli.options import HelpFormatter, add_discover_options, add_fit_options, add_text_options, share
from ardea.cli.outputs import command_line
from ardea.cli.series import read_series
from ardea.cli.tables import KNOWN, suffix_of
from ardea.dynamics.discovery import Discovery
from ardea.saving import load

EPILOG = """\
The page is one file that needs no network: formula, table with intervals, figures, warnings, data fingerprint.
SOURCE is a model that ardea.save or --out wrote; with --data it is checked against those rows. Or SOURCE is data, with
the options of `ardea fit` (--target) or `ardea discover` (--time).

examples:
  ardea report run/model.ardea --out report.html
  ardea report run/model.ardea --data new.csv --target price --out report.html
  ardea report houses.csv --target price --search --out report.html
  ardea report pendulum.csv --time t --out report.html
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        help="write one HTML page about a model",
        description="Write one self-contained HTML page about a model.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="a saved model, or data")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the page (.html)")
    parser.add_argument("--data", type=Path, metavar="DATA", help="rows to check a saved model against")
    parser.add_argument("--title", help="title of the page")
    parser.add_argument(
        "--level", type=share, default=0.95, metavar="P", help="probability of intervals (default: .95)"
    )
    add_fit_options(parser)
    add_discover_options(parser)
    add_text_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Load or fit, and write the page."""
    from ardea.show import write_report

    if options.out.is_dir():
        raise Failure(f"--out {options.out} is a directory: name a file, such as report.html.")
    suffix = suffix_of(options.source)
    with spoken_warnings() as notes:
        if suffix in KNOWN or options.source.is_dir():
            model, data, targets = _fitted(options)
        else:
            model, data, targets = _loaded(options)
    page = write_report(
        model,
        options.out,
        data=data,
        title=options.title,
        level=options.level,
        targets=targets,
        source=options.data,
        command=command_line(options),
        notes=notes,
    )
    print(f"wrote {page}")
    print_warnings(notes)
    return 0


def _fitted(options: argparse.Namespace) -> tuple[Any, Any, list[str] | None]:
    """Fit data with the options of `fit` or of `discover`."""
    if options.data is not None:
        raise Failure("--data goes with a saved model; this source is data itself.")
    options.data = options.source
    dynamic = options.time is not None or options.step is not None or options.map
    if dynamic == (options.target is not None):
        raise Failure("This source is data: give --target for a regression, or --time (--step, --map) for equations.")
    if dynamic:
        series = read_series(options.source, options)
        return discover.found_model(series, options), (series.x, series.t, series.u), None
    table = fit.read_table(options.source, options)
    _warn_of(table)
    model = fit.fitted(table, options)
    return model, (table.X, table.y) if table.in_memory else None, [table.target]


def _loaded(options: argparse.Namespace) -> tuple[Any, Any, list[str] | None]:
    """Load a model, and the rows to check it against where they are named."""
    model = load(options.source)
    if options.data is None:
        return model, None, [options.target] if options.target else None
    if isinstance(model, Discovery):
        options.states = options.states or list(map(str, model.feature_names_))
        series = read_series(options.data, options)
        return model, (series.x, series.t, series.u), None
    if options.target is None:
        raise Failure("Say which column of --data the model should explain: --target COLUMN.")
    chosen = argparse.Namespace(
        **{**vars(options), "columns": list(model.equations_[0].vocabulary.names), "drop": None}
    )
    table = fit.read_table(options.data, chosen)
    _warn_of(table)
    if not table.in_memory:
        raise Failure(f"{options.data} is larger than --memory: check the model against fewer rows.")
    return model, (table.X, table.y), [table.target]


def _warn_of(table: fit.Table) -> None:
    """Let the page and the terminal say how the rows were read."""
    for note in (*table.remarks, *table.doubts):
        warnings.warn(note, stacklevel=2)
