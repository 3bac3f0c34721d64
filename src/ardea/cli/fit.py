"""``ardea fit DATA --target y``: few terms of a table, with intervals."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ardea.cli.console import (
    BOLD,
    Failure,
    in_quotes,
    joined_names,
    listed,
    named,
    painted,
    print_json,
    print_warnings,
    spoken_warnings,
    working,
)
from ardea.cli.options import HelpFormatter, add_fit_options, add_output_options, add_text_options
from ardea.cli.outputs import check_folder, header_record, print_files, write_outputs
from ardea.cli.tables import ARRAYS, NamedArray, read_arrays, suffix_of
from ardea.core.memory import require
from ardea.core.problem import Array
from ardea.equation import Equation
from ardea.names import printable
from ardea.readers import CellError, NotNumbersError, RowFile, bytes_of, open_rows
from ardea.show.fits import equations_of
from ardea.show.pages import term_rows
from ardea.show.report import chosen_how

EPILOG = """\
DATA is CSV (also .tsv, .txt, .gz), NPY or NPZ; Parquet with ardea[frames], Zarr with ardea[fields].
The default, --method sparse, is told how many meaningless terms you accept, and nothing else.
Intervals are of least squares on the columns kept. Nothing is written without --out.
Columns are given by name or by number from 0. Rows with empty cells (also NA, NaN) in columns in use are left out.
Decimal commas are found out in files separated by semicolons or tabs.

examples:
  ardea fit houses.csv --target price
  ardea fit houses.csv --target price --drop id,date --false-terms 0.1
  ardea fit lab.csv --target yield --drop 'Date,"Residence time, s"'   quotes keep commas
  ardea fit houses.csv --target price --search --criterion ebic     try many strengths
  ardea fit houses.csv --target price --keep area --no-intercept
  ardea fit houses.csv --target price --json | jq .equations
  ardea fit houses.csv --target price --out run                     open run/report.html
  ardea fit year.parquet --target power --memory "500 MB"           larger than memory: read in blocks
"""
NUMBERS_PER_BYTE_OF_TEXT = 0.5
BYTES_IN_MEMORY = 24
LARGE_FILE = 10**7


@dataclass(frozen=True)
class Table:
    """What the estimator is given: arrays, or compressed rows in place of X with no y.

    Attributes
    ----------
    X, y : arrays, or CompressedRows and None
        Rows.
    target : str
        Name of the target.
    names : list of str
        Names of the columns of X.
    shape : tuple of int
        Rows and columns.
    n_left_out : int
        Rows that were left out since they have gaps.
    remarks, doubts : list of str
        How the file was read; and what of it gives reason for doubt.
    """

    X: Any
    y: Any
    target: str
    names: list[str]
    shape: tuple[int, int]
    n_left_out: int = 0
    remarks: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    @property
    def in_memory(self) -> bool:
        """Whether single rows are there, for diagnostics."""
        return self.y is not None


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "fit",
        help="explain one column of a table by few others, with intervals",
        description="Explain one column of a table by few of the others, with intervals.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="the table")
    add_fit_options(parser)
    add_text_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit, print, and write where asked."""
    if options.target is None:
        raise Failure("Say which column to explain: --target COLUMN.")
    check_folder(options.out)
    table = read_table(options.data, options)
    with spoken_warnings() as notes:
        model = fitted(table, options)
    notes[:0] = table.doubts
    if not options.json:
        print(as_text(model, table, options))
        print_warnings(notes)
    files: list[Path] = []
    if options.out is not None:
        rows = (table.X, table.y) if table.in_memory else None
        files = write_outputs(model, options, [*table.remarks, *notes], data=rows, targets=[table.target])
    if options.json:
        print_json(as_record(model, table, options, notes, files))
    else:
        print_files(files)
    return 0


def estimator(options: argparse.Namespace, keep: list[str] | list[int] | None = None) -> Any:
    """Return the estimator that the options ask for, not fitted."""
    import ardea

    kinds: dict[str, Any] = {
        "sparse": ardea.SparseARD,
        "ard": ardea.ARD,
        "vi": ardea.ARDvi,
        "r": ardea.ARDr,
        "m": ardea.MSTSBL,
        "l": ardea.LSTSBL,
        "map": ardea.MAPSTSBL,
    }
    kind = kinds[options.method]
    settings: dict[str, Any] = {"fit_intercept": not options.no_intercept}
    if options.noise is not None:
        settings["noise_variance"] = options.noise**2
    if keep:
        settings["always_keep"] = keep
    if options.false_terms is not None:
        if options.method == "ard":
            raise Failure("--method ard has no strength, so --false-terms means nothing: use --method sparse.")
        settings["false_terms"] = options.false_terms
    if options.strength is not None:
        if kind.strength_name in (None, "false_terms") or options.false_terms is not None:
            raise Failure("--strength is alpha, lam or tau of --method vi, r, m, l or map, instead of --false-terms.")
        settings[kind.strength_name] = options.strength
    model = kind(**settings)
    if not options.search:
        return model
    if options.strength is not None or options.false_terms is not None:
        raise Failure("--search tries strengths itself: leave out --false-terms and --strength.")
    return ardea.ARDSearch(model, criterion=options.criterion, random_state=0, verbose=int(sys.stderr.isatty()))


def fitted(table: Table, options: argparse.Namespace) -> Any:
    """Return the model, with the names of the columns."""
    _check_task(table, options)
    keep = listed(options.keep, table.names, f"{options.data} has no column")
    if not table.in_memory:
        return estimator(options, keep).fit(table.X, None)
    import pandas as pd

    return estimator(options, keep).fit(pd.DataFrame(table.X, columns=table.names), table.y)


def _check_task(table: Table, options: argparse.Namespace) -> None:
    """Refuse what has no answer: a target that never changes, more false terms than there are columns."""
    if table.in_memory and np.ptp(table.y) == 0:
        raise Failure(f"{table.target} is {table.y[0]:g} in every row: there is nothing to explain.")
    columns = len(table.names)
    if options.false_terms is not None and options.false_terms >= columns:
        raise Failure(
            f"--false-terms {options.false_terms:g} accepts every one of the {columns} columns as a term without "
            f"meaning: give less than {columns}."
        )


def read_table(path: Path, options: argparse.Namespace) -> Table:
    """Read the target and the columns that the options name, or compress them where they exceed --memory."""
    memory = bytes_of(options.memory)
    if suffix_of(path) in ARRAYS and suffix_of(path) != ".zarr":
        return _table_of_arrays(read_arrays(path), path, options)
    every = open_rows(path, 0, decimal=options.decimal)
    names = [*every.target_names, *every.names]
    target, columns = _chosen(names, path, options)
    rows = open_rows(path, target, columns=columns, memory=memory, missing=options.missing, decimal=options.decimal)
    try:
        X, y = _read_rows(path, rows, memory)
    except NotNumbersError as error:
        raise _not_numbers(path, target, error.names) from error
    except CellError as error:
        advice = f"Leave it out with --drop {in_quotes(joined_names([error.column]))}, or empty the cell."
        raise Failure(f"{error} {advice}") from error
    return Table(X, y, target, columns, X.shape, rows.n_left_out, *_told_of(rows))


def _not_numbers(path: Path, target: str, names: tuple[str, ...]) -> Failure:
    """Return the failure of columns with text, with an option to copy."""
    if target in names:
        return Failure(f"{path}: the target {target!r} does not hold numbers.")
    return Failure(f"{path}: not numbers: {', '.join(names)}. Try --drop {in_quotes(joined_names(names))}")


def _told_of(rows: RowFile) -> tuple[list[str], list[str]]:
    """Return how rows were read, and what of it gives reason for doubt."""
    remarks, doubts = list(rows.remarks), []
    if n := rows.n_left_out:
        verbs = "rows have empty cells and were" if n > 1 else "rows has empty cells and was"
        remarks.append(f"{n} of {rows.n_read} {verbs} left out")
    if 2 * n > rows.n_read:
        doubts.append(
            f"More than half of the rows were left out. Most empty cells are in {rows.emptiest()}: leaving out such "
            "columns (--drop) keeps more rows."
        )
    return remarks, doubts


def _read_rows(path: Path, rows: RowFile, memory: int) -> tuple[Any, Array | None]:
    """Return X and y, or compressed rows and None where they are more than memory holds."""
    needed = _bytes_needed(path, rows)
    if needed > memory:
        return rows.compressed(), None
    if path.is_file() and path.stat().st_size > LARGE_FILE:
        working(f"Reading {path}")
    require(min(memory, needed), f"{path} as a whole")
    blocks = _gathered(rows, memory)
    if blocks is None:  # text that is packed, or of short numbers, holds more than its size tells
        return rows.compressed(), None
    return np.vstack([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])


def _gathered(rows: Any, memory: int) -> list[tuple[Array, Array]] | None:
    """Return all blocks, None where they are more than memory holds."""
    blocks, numbers = [], 0
    for X, y in rows.blocks():
        blocks.append((X, y))
        numbers += X.size + y.size
        if BYTES_IN_MEMORY * numbers > memory:
            return None
    return blocks


def _bytes_needed(path: Path, rows: Any) -> float:
    """Return about how much memory all rows take at once; of text, from the size of the file."""
    if rows.n_rows is not None:
        return float(BYTES_IN_MEMORY * rows.n_rows * (len(rows.names) + 1))
    expansion = 10 if path.suffix == ".gz" else 1
    return expansion * path.stat().st_size * NUMBERS_PER_BYTE_OF_TEXT * BYTES_IN_MEMORY


def _chosen(names: list[str], path: Path, options: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the target and the columns to explain it with."""
    target = named(options.target, names, f"{path} has no column")
    dropped = set(listed(options.drop, names, f"{path} has no column"))
    wanted = listed(options.columns, names, f"{path} has no column") or names
    columns = [name for name in wanted if name != target and name not in dropped]
    if not columns:
        raise Failure(f"{path}: no column is left to explain {target!r} with.")
    return target, columns


def _table_of_arrays(arrays: dict[str, NamedArray], path: Path, options: argparse.Namespace) -> Table:
    """Put arrays with as many rows side by side; of an array with two axes, columns are name[0], name[1] and so on."""
    columns: dict[str, Array] = {}
    for name, array in arrays.items():
        if array.values.ndim not in (1, 2) or array.values.dtype.kind not in "fiub":
            raise Failure(f"{path}: {name!r} holds {array.values.dtype} of shape {array.values.shape}, not columns.")
        values = array.values.astype(float)
        parts = {name: values} if values.ndim == 1 else {f"{name}[{j}]": one for j, one in enumerate(values.T)}
        columns |= parts
    target, names = _chosen(list(columns), path, options)
    if len({columns[name].size for name in (target, *names)}) > 1:
        raise Failure(f"{path}: the arrays have different numbers of rows.")
    rows = ArrayRows(path, columns, target, names, options.missing)
    ((X, y),) = rows.blocks()
    return Table(X, y, target, names, X.shape, rows.n_left_out, *_told_of(rows))


class ArrayRows(RowFile):
    """Columns in memory, as one block."""

    def __init__(self, path: Path, columns: dict[str, Array], target: str, names: list[str], missing: Any) -> None:
        self._columns = columns
        super().__init__(path, target, names, sys.maxsize, missing)

    def _opened(self) -> list[str]:
        self.n_rows = len(next(iter(self._columns.values())))
        return list(self._columns)

    def _tables(self, numbers: list[int]) -> Iterator[Array]:
        yield np.column_stack([self._columns[self._every[j]] for j in numbers])


def as_text(model: Any, table: Table, options: argparse.Namespace) -> str:
    """Return the model as a person reads it."""
    one = getattr(model, "best_estimator_", model)
    (found,) = equations_of(model, [table.target])
    rows, columns = table.shape
    title = f"{type(one).__name__}: {len(found.terms)} of {columns} columns explain {table.target} ({rows} rows)"
    percent = f"{100 * options.level:g} %"
    lines = [painted(title, BOLD), *table.remarks, ""]
    if found.terms:
        lines += text_table(
            ["term", "coef", "std. error", f"{percent} low", f"{percent} high"],
            [
                [printable(row.name), row.coef, row.std, row.low, row.high]
                for row in term_rows(found, options.level)
                if row.low
            ],
        )
    else:
        lines += ["No column explains it: the constant alone is the best model."]
    lines += ["", found.formula(), f"noise σ = {found.noise:.4g}{_explained(table, found.intercept is not None)}"]
    lines += [chosen_how(model)] if found.terms else []
    return "\n".join(lines)


def _explained(table: Table, centred: bool) -> str:
    """Return how far the target varies: as the noise would be without any term."""
    if not table.in_memory or len(table.y) < 2:
        return ""
    spread = table.y.std(ddof=1) if centred else np.sqrt(np.mean(table.y**2))
    return f"; {table.target} itself varies by {spread:.4g}"


def text_table(header: list[str], rows: list[list[str]]) -> list[str]:
    r"""Return lines of a table: names to the left, numbers to the right.

    Examples
    --------
    >>> print("\n".join(text_table(["term", "coef"], [["age", "1.5"], ["x", "-20"]])))
    term  coef
    ----  ----
    age    1.5
    x      -20
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    cells = [header, ["-" * width for width in widths], *rows]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()
        for row in cells
    ]


def as_record(model: Any, table: Table, options: argparse.Namespace, notes: list[str], files: list[Path]) -> Any:
    """Return the model as machines read it."""
    one = getattr(model, "best_estimator_", model)
    return {
        **header_record(options),
        "rows": table.shape[0],
        "columns": table.shape[1],
        "rows_left_out": table.n_left_out,
        "remarks": table.remarks,
        "method": type(one).__name__,
        "search": None
        if not hasattr(model, "path_")
        else {"criterion": model.criterion, "chosen": model.best_params_, "strengths": model.path_["strength"]},
        "equations": [sum_record(one, options.level) for one in equations_of(model, [table.target])],
        "log_evidence": one.log_evidence_,
        "kkt_gap": one.kkt_gap_,
        "warnings": notes,
        "files": [str(file) for file in files],
    }


def sum_record(found: Equation, level: float) -> dict[str, Any]:
    """Return one equation for machines."""
    rows = zip(*found.table(level).values(), strict=True)
    return {
        "left": found.left.text,
        "formula": found.formula(),
        "intercept": found.intercept,
        "noise_std": found.noise,
        "terms": [dict(zip(("name", "coef", "std", "low", "high"), row, strict=True)) for row in rows],
    }
