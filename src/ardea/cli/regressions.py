"""What `ardea fit` makes of a table: columns, their powers and products, and the estimator asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ardea.cli import METHODS
from ardea.cli.console import Failure
from ardea.core.problem import require
from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from ardea.names import check_candidates
from ardea.tables.columns import level_names
from ardea.tables.rows import Rows

ESTIMATORS: tuple[Any, ...] = (SparseARD, ARD, ARDvi, ARDr, MSTSBL, LSTSBL, MAPSTSBL)
KINDS: dict[str, Any] = dict(zip(METHODS, ESTIMATORS, strict=True))
Products = dict[str, list[str]]  # the columns that are multiplied, by the name of the product


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
