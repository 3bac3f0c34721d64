"""``ardea predict MODEL DATA``: predictions of a saved model for new rows, with intervals."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from ardea.cli.console import Failure, print_json, print_warnings, spoken_warnings, unknown
from ardea.cli.options import HelpFormatter, add_text_options, share
from ardea.cli.outputs import header_record
from ardea.cli.tables import Columns, read_columns
from ardea.core.problem import Array
from ardea.dynamics.discovery import Discovery
from ardea.readers import DEFAULT_MEMORY, bytes_of
from ardea.saving import load
from ardea.tables.writing import write_whole

EPILOG = """\
DATA is CSV (also .tsv, .txt, .gz) or NPY; Parquet with ardea[frames]. Its columns are found by name: their order does
not matter, others are ignored, and only those that the model has kept need to be there. A row with an empty cell among
them has an empty prediction, so that rows keep their places. The standard deviation is that of a new observation.

examples:
  ardea predict run/model.ardea new.csv                          CSV to standard output
  ardea predict run/model.ardea new.csv --out predictions.csv
  ardea predict run/model.ardea new.csv --level .68 --json
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "predict",
        help="predict new rows with a saved model, with intervals",
        description="Predict new rows with a model that `ardea fit --out` or ardea.save wrote.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a saved model, such as run/model.ardea")
    parser.add_argument("data", type=Path, metavar="DATA", help="a table with the model's columns")
    add_text_options(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write CSV there instead of printing it")
    parser.add_argument("--json", action="store_true", help="print JSON for machines instead of CSV")
    parser.add_argument(
        "--level", type=share, default=0.95, metavar="P", help="probability of intervals (default: .95)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Load, predict, and print or write."""
    if options.out is not None and options.out.is_dir():
        raise Failure(f"--out {options.out} is a directory: name a file, such as predictions.csv.")
    model = load(options.model)
    if isinstance(model, Discovery):
        raise Failure(f"{options.model} holds equations of motion, which are run in Python: model.simulate(x0, t).")
    table = read_columns(options.data, bytes_of(DEFAULT_MEMORY), options.decimal)
    with spoken_warnings() as notes:
        columns = predicted(model, table, options.level)
    if table.written is not None:
        notes[:0] = table.written.remarks()
    empty = int(np.isnan(next(iter(columns.values()))).sum())
    rows = len(next(iter(columns.values())))
    if empty:
        notes.append(f"{empty} of {rows} rows have empty cells in columns of the model: no prediction.")
    text = as_csv(columns)
    if options.out is not None:
        write_whole(options.out, text)
    if options.json:
        files = [] if options.out is None else [str(options.out)]
        head = {**header_record(options), "model": str(options.model), "rows": rows, "rows_without": empty}
        print_json({**head, "predictions": columns, "warnings": notes, "files": files})
        return 0
    print(text, end="") if options.out is None else print(f"wrote {options.out}")
    print_warnings(notes)
    return 0


def predicted(model: Any, table: Columns, level: float) -> dict[str, Array]:
    """Return prediction, standard deviation and ends of the interval of every row, NaN where cells are empty."""
    import pandas as pd

    names = model.equations_[0].vocabulary.names
    kept = sorted({j for one in model.equations_ for j in one.support})
    _check_names([names[j] for j in kept], table)
    n_rows = len(next(iter(table.values.values())))
    # Columns that were dropped have coefficients of zero: nothing depends on what stands there.
    X = np.zeros((n_rows, len(names)))
    for j in kept:
        X[:, j] = table.numbers(names[j])
    infinite = [names[j] for j in kept if np.isinf(X[:, j]).any()]
    if infinite:
        raise Failure(f"{table.path}: column {infinite[0]!r} holds infinities.")
    whole = ~np.isnan(X).any(axis=1)
    several = len(model.equations_)
    mean, std = (np.full((n_rows, several) if several > 1 else n_rows, np.nan) for _ in range(2))
    if whole.any():
        rows = pd.DataFrame(X[whole], columns=names) if hasattr(model, "feature_names_in_") else X[whole]
        mean[whole], std[whole] = (one.reshape(mean[whole].shape) for one in model.predict(rows, return_std=True))
    half = float(stats.norm.ppf(0.5 + level / 2)) * std
    percent = f"{100 * level:g}%"
    parts = {"prediction": mean, "std": std, f"low {percent}": mean - half, f"high {percent}": mean + half}
    return dict(_single(parts))


def _single(parts: dict[str, Array]) -> Iterator[tuple[str, Array]]:
    """Yield columns, numbered where there are several targets."""
    for name, values in parts.items():
        if values.ndim == 1:
            yield name, values
        else:
            yield from ((f"{name} y{t}", column) for t, column in enumerate(values.T))


def _check_names(needed: Sequence[str], table: Columns) -> None:
    """Refuse a table that lacks columns, and name all of them."""
    missing = [name for name in needed if name not in table.values]
    if len(missing) == 1:
        raise unknown(missing[0], table.values, f"{table.path} has no column")
    if missing:
        raise Failure(f"{table.path} lacks columns of the model: {', '.join(missing)}.")


def as_csv(columns: dict[str, Array]) -> str:
    r"""Return columns as CSV with all digits; empty fields where there is no number.

    Examples
    --------
    >>> as_csv({"prediction": np.array([1.5, np.nan]), "std": np.array([0.1, np.nan])})
    'prediction,std\n1.5,0.1\n,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        writer.writerow(["" if np.isnan(value) else repr(value) for value in row])
    return text.getvalue()
