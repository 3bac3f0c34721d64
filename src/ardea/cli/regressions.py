"""What `ardea fit` makes of a table: columns and their products, the estimator asked for, how much is explained."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ardea.cli.console import Failure
from ardea.cli.program import METHODS
from ardea.core.problem import require
from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from ardea.tables.products import Products, multiplied
from ardea.tables.rows import Rows

ESTIMATORS: tuple[Any, ...] = (SparseARD, ARD, ARDvi, ARDr, MSTSBL, LSTSBL, MAPSTSBL)
KINDS: dict[str, Any] = dict(zip(METHODS, ESTIMATORS, strict=True))


def arrays(rows: Rows, products: Products) -> tuple[Any, Any]:
    """Return X, with names and products of columns, and y."""
    import pandas as pd

    X, y = rows.arrays()
    require(8 * len(X) * len(products), f"A table with {len(products)} products of columns", "Choose with --columns.")
    known = dict(zip(rows.names, X.T, strict=True))
    return pd.DataFrame(known | multiplied(known, products), columns=[*rows.names, *products]), y


def estimator(options: argparse.Namespace, keep: list[str]) -> Any:
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
        settings["always_keep"] = keep
    if options.false_terms is not None:
        if options.method == "ard":
            raise Failure("--method ard has no strength, so --false-terms means nothing: use --method sparse.")
        settings["false_terms"] = options.false_terms
    if options.strength is not None:
        if kind.method.strength in (None, "false_terms") or options.false_terms is not None:
            raise Failure("--strength is alpha, lam or tau of --method vi, r, m, l or map, instead of --false-terms.")
        settings[kind.method.strength] = options.strength
    if not options.search:
        return kind(**settings)
    if options.strength is not None or options.false_terms is not None:
        raise Failure("--search tries strengths itself: leave out --false-terms and --strength.")
    return ARDSearch(kind(**settings), criterion=options.criterion, random_state=0, verbose=int(sys.stderr.isatty()))
