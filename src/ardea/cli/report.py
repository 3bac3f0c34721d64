"""``ardea report MODEL|DATA``: one page about a saved model, or about one fitted for the occasion."""

from __future__ import annotations

import argparse
from typing import Any

from ardea.cli import discover, fit
from ardea.cli.console import Failure, kept_warnings, print_warnings
from ardea.cli.outputs import columns_of, command_line, helped, table_notes, table_of
from ardea.saving import load
from ardea.show import write_report
from ardea.tables.reading import KNOWN, PACKED
from ardea.tables.rows import Rows


def run(options: argparse.Namespace) -> None:
    """Load or fit, and write the page."""
    if options.out.is_dir():
        raise Failure(f"--out {options.out} is a directory: name a file, such as report.html.")
    if not options.source.exists():
        raise Failure(f"There is no file {options.source}.")
    is_data = options.source.is_dir() or options.source.suffix.lower() in (*KNOWN, *PACKED)
    with kept_warnings() as notes:
        model, data, targets, remarks = _fitted(options) if is_data else _loaded(options)
    notes[:0] = remarks
    details = {"title": options.title, "targets": targets, "source": options.data, "notes": notes}
    page = write_report(model, options.out, data=data, level=options.level, command=command_line(options), **details)
    print(f"wrote {page}")
    print_warnings(notes)


def _fitted(options: argparse.Namespace) -> tuple[Any, Any, list[str] | None, list[str]]:
    """Fit data with the options of `fit` or of `discover`."""
    if options.data is not None:
        raise Failure("--data goes with a saved model; this source is data itself.")
    options.data = options.source
    dynamic = options.time is not None or options.step is not None or options.map
    if dynamic == (options.target is not None):
        raise Failure("This source is data: give --target for a regression, or --time (--step, --map) for equations.")
    if dynamic:
        series, unit = discover.series_of(options)
        model = discover.found_model(series, unit, options)
        return model, (series.x, series.t, series.u), None, [*series.remarks, *series.doubts]
    with helped(options):
        rows = fit.read_rows(options)
        data = fit.read_data(rows)
    model = fit.fitted(rows, data, options)
    remarks, doubts = fit.told_of(rows)
    return model, data, list(rows.targets), [*remarks, *doubts]


def _loaded(options: argparse.Namespace) -> tuple[Any, Any, list[str] | None, list[str]]:
    """Load a model, and the rows to check it against where they are named."""
    model = load(options.source)
    if options.data is None:
        return model, None, [options.target] if options.target else None, []
    if hasattr(model, "simulate"):
        options.states = options.states or list(map(str, model.feature_names_))
        series, _ = discover.series_of(options)
        return model, (series.x, series.t, series.u), None, [*series.remarks, *series.doubts]
    if options.target is None:
        raise Failure("Say which column of --data the model should explain: --target COLUMN.")
    table = table_of(options.data, options)
    target = table.target(options.target)
    levels = table_notes(model)["levels"]
    names = list(model.equations_[0].vocabulary.names)
    columns = list(dict.fromkeys(columns_of(names, levels)))
    rows = Rows(table, [target], columns, memory=options.memory, missing="drop", levels=levels)
    data = fit.read_data(rows)
    if data is None:
        raise Failure(f"{options.data} is larger than --memory: check the model against fewer rows.")
    remarks, doubts = fit.told_of(rows)
    return model, data, [target], [*remarks, *doubts]
