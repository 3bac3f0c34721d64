"""``ardea fit``: a table, its columns, their powers and products, and the estimator asked for; what is said of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from ardea.cli import Failure, working
from ardea.cli.models import Found, answer, equation_record, helped, in_words_of_file, table_of, written
from ardea.cli.options import METHODS
from ardea.core.problem import require
from ardea.equation import WEAK
from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from ardea.names import check_candidates, counted, sized
from ardea.show.answers import OFTEN_SMALLER, Summary
from ardea.show.fits import r_squared
from ardea.show.report import chosen_how
from ardea.tables.levels import level_names
from ardea.tables.rows import Rows
from ardea.tables.table import SHOWN_NAMES, Refused, Table, all_named, all_of, shortened

# R² from which on a column that was computed from y is likelier than so good a model (a convention).
NEARLY_ALL = 0.9995
# Attributes of an estimator that its record holds.
RECORDED = ("log_evidence", "kkt_gap", "effective_rows", "error_correlation")
ESTIMATORS: tuple[Any, ...] = (SparseARD, ARD, ARDvi, ARDr, MSTSBL, LSTSBL, MAPSTSBL)
KINDS: dict[str, Any] = dict(zip(METHODS, ESTIMATORS, strict=True))
# What the name of a column that is made of others holds: a text, a product, a power.
PARTS_OF_NAMES = "=·^"
Products = dict[str, list[str]]  # the columns that are multiplied, by the name of the product


def run(options: argparse.Namespace) -> None:
    """Fit a table, and print or write what was found."""
    answer(options, fitted, _text, _record)


def fitted(options: argparse.Namespace) -> Found:
    """Fit a table; the model knows what that looked like."""
    with helped(options):
        rows = _rows(options)
        products = products_of(rows.names, rows.levels, options.degree or 1, options.interactions)
        data = arrays(rows, products) if rows.fits else None
    (target,) = rows.targets
    names = [*rows.names, *products]
    if products and data is None:
        raise Failure(f"--degree and --interactions need all rows at once: give more --memory than {options.memory}.")
    if data is not None and np.ptp(data[1]) == 0:
        rows_told = "in the only row" if len(data[1]) == 1 else "in every row"
        raise Failure(f"{target} is {data[1][0]:g} {rows_told}: there is nothing to explain.")
    columns = len(names)
    if options.false_terms is not None and options.false_terms >= columns:
        raise Failure(
            f"--false-terms {options.false_terms:g} accepts every one of the {columns} columns as a term without "
            f"meaning: give less than {columns}."
        )
    kept = all_named(options.keep, [*names, *rows.levels], f"{options.data} has no column")
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
    (target, dropped, chosen, told, group), *_ = all_of(partial(_named, table, options), partial(estimator, options))
    if target in dropped:
        raise Failure(f"--drop names the target, {target!r}: leave it out there, or explain another column.")
    kept = {part.strip() for text in options.keep or [] for part in (text, *text.split(","))}
    if both := [one for one in dropped if one in kept]:
        raise Failure(f"--keep and --drop both name {shortened(both)}: leave out one of them.")
    apart = {*dropped, target, *group}
    columns = [name for name in chosen or table.names if name not in apart]
    if not columns:
        raise Failure(f"{table.path}: no column is left to explain {target!r} with.")
    told = None if told is None else [name for name in told if name in columns]
    named = [*chosen, *(options.keep or []), *(told or [])]
    settings = {"missing": options.missing, "categorical": told, "wanted": named}
    return Rows(table, [target], columns, memory=options.memory, **settings)


def _named(table: Table, options: argparse.Namespace) -> list[Any]:
    """Return which columns the options name, all of them at once: target, --drop, --columns, --categorical, --groups.

    Of --categorical None where it is not given; of --groups none or one.
    """
    texts = options.categorical if options.categorical != ["none"] else []
    plain = [one for one in options.keep or [] if not set(one) & set(PARTS_OF_NAMES)]
    *found, _ = all_of(
        partial(_target, table, options),
        partial(table.columns, options.drop),
        partial(table.columns, options.columns),
        lambda: None if texts is None else table.columns(texts),
        lambda: [table.column(one) for one in (options.groups,) if one],
        partial(table.columns, plain),
    )
    return found


def _target(table: Table, options: argparse.Namespace) -> str:
    if options.target is None:
        there = shortened(table.names, SHOWN_NAMES)
        raise Refused(["Say which column to explain: --target COLUMN."], [f"There are {there}."])
    return table.target(options.target)


def _text(found: Found, rows: Rows, options: argparse.Namespace) -> list[str]:
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


def _record(found: Found, rows: Rows, options: argparse.Namespace) -> dict[str, Any]:
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
        "equations": [equation_record(equation, options.level) for equation in found.equations],
        **{name: getattr(one, f"{name}_") for name in RECORDED},
    }


# Columns and estimators -----------------------------------------------------------------------------------------------


def products_of(names: Sequence[str], levels: Mapping[str, Sequence[str]], degree: int, pairs: bool) -> Products:
    """Return powers of columns of numbers up to a degree, and products of any two columns if wanted.

    Columns that stand for texts have no powers, and those of one text no products: both would tell nothing new.

    Examples
    --------
    >>> list(products_of(["T", "pH", "by=Bob", "by=Cy"], {"by": ["Ann", "Bob", "Cy"]}, 2, True))
    ['T^2', 'pH^2', 'T · pH', 'T · by=Bob', 'T · by=Cy', 'pH · by=Bob', 'pH · by=Cy']
    """
    owner = {name: column for column, texts in levels.items() for name in level_names(column, texts)}
    numbers = [name for name in names if name not in owner]
    found = {f"{_factor(name)}^{power}": [name] * power for name in numbers for power in range(2, degree + 1)}
    for one, other in combinations(names, 2) if pairs else ():
        if owner.get(one, one) != owner.get(other, other):
            found[f"{one} · {other}"] = [one, other]
    check_candidates([*names, *found])
    return found


def _factor(name: str) -> str:
    return name if name.isidentifier() else f"({name})"


def multiplied(values: Mapping[str, Any], products: Products) -> dict[str, Any]:
    """Return every product of columns, by its name."""
    return {name: np.prod([values[one] for one in factors], axis=0) for name, factors in products.items()}


def arrays(rows: Rows, products: Products) -> tuple[Any, Any]:
    """Return X, with names and products of columns, and y."""
    import pandas as pd

    X, y = rows.arrays()
    require(8 * len(X) * len(products), f"A table with {len(products)} products of columns", "Choose with --columns.")
    known = dict(zip(rows.names, X.T, strict=True))
    return pd.DataFrame(known | multiplied(known, products), columns=[*rows.names, *products]), y


def estimator(options: argparse.Namespace, keep: Sequence[str] = ()) -> Any:
    """Return the estimator that the options ask for, not fitted."""
    kind = KINDS[options.method]
    how = options.rows or ("groups" if options.groups else "independent")
    settings: dict[str, Any] = {"fit_intercept": not options.no_intercept, "rows": how}
    if options.noise is not None:
        told = options.noise[0] if isinstance(options.noise, list) else options.noise
        if isinstance(told, str):
            raise Failure("--noise is a standard deviation with --target.")
        settings["noise_variance"] = told**2
    if keep:
        settings["always_keep"] = list(keep)
    if options.false_terms is not None:
        if options.method == "ard":
            raise Failure("--method ard has no strength, so --false-terms means nothing: use --method sparse.")
        settings["false_terms"] = options.false_terms
    if options.strength is not None:
        if kind.method.strength in (None, "false_terms") or options.false_terms is not None:
            raise Failure("--strength is alpha, lam or tau of --method vi, r, m, l or map, instead of --false-terms.")
        settings[kind.method.strength] = options.strength
    if not options.search and options.criterion is not None:
        raise Failure("--criterion chooses among the models of --search: give --search as well, or leave it out.")
    if not options.search:
        return kind(**settings)
    if options.strength is not None or options.false_terms is not None:
        raise Failure("--search tries strengths itself: leave out --false-terms and --strength.")
    criterion = options.criterion or "evidence"
    return ARDSearch(kind(**settings), criterion=criterion, random_state=0, verbose=int(sys.stderr.isatty()))
