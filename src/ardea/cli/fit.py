"""``ardea fit DATA --target y``: few terms of a table, with intervals."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from ardea.cli.console import BOLD, Failure, kept_warnings, painted, visible, working
from ardea.cli.outputs import check_folder, equation_record, header_record, helped, print_found, table_of, write_outputs
from ardea.core.problem import Array
from ardea.equation import Summary
from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from ardea.show.fits import equations_of
from ardea.show.report import chosen_how
from ardea.tables.columns import level_names
from ardea.tables.rows import Rows
from ardea.tables.table import listed

KINDS: dict[str, Any] = {"sparse": SparseARD, "ard": ARD, "vi": ARDvi, "r": ARDr}
KINDS |= {"m": MSTSBL, "l": LSTSBL, "map": MAPSTSBL}


def run(options: argparse.Namespace) -> None:
    """Fit, print, and write where asked."""
    if options.target is None:
        raise Failure("Say which column to explain: --target COLUMN.")
    check_folder(options.out)
    with helped(options):
        rows = read_rows(options)
        data = read_data(rows)
    with kept_warnings() as notes:
        model = fitted(rows, data, options)
    remarks, doubts = told_of(rows)
    notes[:0] = doubts
    text, record = as_text(model, rows, data, remarks, options), as_record(model, rows, remarks, options)
    said, targets = [*remarks, *notes], list(rows.targets)
    print_found(text, record, notes, options.json, lambda: write_outputs(model, options, said, data, targets))


def read_rows(options: argparse.Namespace) -> Rows:
    """Return the rows that the options name, with what their columns are."""
    working(f"Reading {options.data}")
    table = table_of(options.data, options)
    where = f"{table.path} has no column"
    target = table.target(options.target)
    dropped = {*listed(options.drop, table.names, where), target}
    columns = [name for name in listed(options.columns, table.names, where) or table.names if name not in dropped]
    if not columns:
        raise Failure(f"{table.path}: no column is left to explain {target!r} with.")
    told: list[str] | None = None if options.categorical is None else []
    if options.categorical not in (None, ["none"]):
        told = [name for name in listed(options.categorical, table.names, where) if name in columns]
    return Rows(table, [target], columns, memory=options.memory, missing=options.missing, categorical=told)


def read_data(rows: Rows) -> tuple[Any, Array] | None:
    """Return X, with names, and y as a whole; None where they are more than memory holds."""
    import pandas as pd

    if not rows.fits:
        return None
    X, y = rows.arrays()
    return pd.DataFrame(X, columns=list(rows.names)), y


def told_of(rows: Rows) -> tuple[list[str], list[str]]:
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


def estimator(options: argparse.Namespace, keep: list[str]) -> Any:
    """Return the estimator that the options ask for, not fitted."""
    kind = KINDS[options.method]
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
        if kind.method.strength in (None, "false_terms") or options.false_terms is not None:
            raise Failure("--strength is alpha, lam or tau of --method vi, r, m, l or map, instead of --false-terms.")
        settings[kind.method.strength] = options.strength
    model = kind(**settings)
    if not options.search:
        return model
    if options.strength is not None or options.false_terms is not None:
        raise Failure("--search tries strengths itself: leave out --false-terms and --strength.")
    return ARDSearch(model, criterion=options.criterion, random_state=0, verbose=int(sys.stderr.isatty()))


def fitted(rows: Rows, data: tuple[Any, Array] | None, options: argparse.Namespace) -> Any:
    """Return the model; it knows what its table looked like."""
    (target,) = rows.targets
    if data is not None and np.ptp(data[1]) == 0:
        raise Failure(f"{target} is {data[1][0]:g} in every row: there is nothing to explain.")
    columns = len(rows.names)
    if options.false_terms is not None and options.false_terms >= columns:
        raise Failure(
            f"--false-terms {options.false_terms:g} accepts every one of the {columns} columns as a term without "
            f"meaning: give less than {columns}."
        )
    kept = listed(options.keep, [*rows.names, *rows.levels], f"{options.data} has no column")
    keep = [one for name in kept for one in (level_names(name, rows.levels[name]) if name in rows.levels else [name])]
    X, y = (rows.compressed(), None) if data is None else data
    model = estimator(options, keep).fit(X, y)
    table = rows.table
    model.table_ = {"target": target, "header": table.headed, "columns": len(table.names), "levels": rows.levels}
    return model


def as_text(
    model: Any, rows: Rows, data: tuple[Any, Array] | None, remarks: list[str], options: argparse.Namespace
) -> str:
    """Return the model as a person reads it."""
    one = getattr(model, "best_estimator_", model)
    (found,) = equations_of(model, list(rows.targets))
    used = rows.n_read - rows.n_left_out
    title = f"{type(one).__name__}: {len(found.terms)} of {len(rows.names)} columns explain {found.name} ({used} rows)"
    lines = [painted(title, BOLD), *map(visible, remarks)]
    if found.terms:
        lines.append(str(Summary(found.table(options.level), "")))
    else:
        lines += ["", "No column explains it: the constant alone is the best model."]
    lines += ["", found.formula(), f"noise σ = {found.noise:.4g}{_varies(found, data)}"]
    lines += [chosen_how(model)] if found.terms else []
    return "\n".join(lines)


def _varies(found: Any, data: tuple[Any, Array] | None) -> str:
    """Return how far the target varies: as the noise would be without any term."""
    if data is None or len(data[1]) < 2:
        return ""
    spread = data[1].std(ddof=1) if found.intercept is not None else np.sqrt(np.mean(data[1] ** 2))
    return f"; {visible(found.name)} itself varies by {spread:.4g}"


def as_record(model: Any, rows: Rows, remarks: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Return the model as machines read it."""
    one = getattr(model, "best_estimator_", model)
    search = None
    if hasattr(model, "path_"):
        search = {"criterion": model.criterion, "chosen": model.best_params_, "strengths": model.path_["strength"]}
    return {
        **header_record(options),
        "rows": rows.n_read - rows.n_left_out,
        "columns": len(rows.names),
        "rows_left_out": rows.n_left_out,
        "remarks": remarks,
        "method": type(one).__name__,
        "search": search,
        "equations": [equation_record(one, options.level) for one in equations_of(model, list(rows.targets))],
        "log_evidence": one.log_evidence_,
        "kkt_gap": one.kkt_gap_,
    }
