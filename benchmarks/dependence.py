"""False terms and coverage of 95 % intervals where rows depend on each other or have errors of unequal size.

``python -m benchmarks.dependence [--trials 60] [--seed 1000] [--jobs 1] [--only KIND]`` fits SparseARD, with `rows=`
and without, to series (errors and columns are autoregressions of order 1), to seasons (errors and columns remember the
row one season before, or have an effect that is the same in every season; with and without a column for every month in
`always_keep`), to groups (errors and columns share a part within a group) and to rows with errors of unequal size,
saves the means and prints them as Markdown. About an hour on one core, of which ``--only unequal`` takes ten minutes.
``--table`` prints the saved results.

Three of the columns have coefficients of ±1; σ = 1. With errors of unequal size they have t = 10 or so, or there are
none at all; where errors grow with the prediction, the sum of these three columns, all coefficients are positive. A fit
warns if it says that rows depend on each other, or that errors are of unequal size.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import signal

from ardea import SparseARD
from ardea.estimators.advice import DependentRowsWarning, UnequalErrorsWarning
from benchmarks.process import ROOT, Record, trials_command
from benchmarks.tables import markdown

RESULTS = ROOT / "benchmarks" / "results" / "dependence.json"
SHAPES = ((100, 20), (100, 50), (400, 20), (400, 50))
FALSE_TERMS = (0.3, 1.0)
TRUE_TERMS = 3
SEASON_PHI = 0.8
# φ of the errors, with columns of φ = 0.9; and columns that are independent.
SERIES = ((0.0, 0.9), (0.5, 0.9), (0.8, 0.9), (0.9, 0.9), (0.9, 0.0))
# Length of the season, how errors and columns follow it, and whether there are columns for its months.
SEASONS = (
    *((f"{season} rows, {SEASON_PHI}", columns) for season in (4, 7, 12, 24) for columns in ("alike", "alike, months")),
    *(("7 rows, same", columns) for columns in ("alike", "independent", "alike, months")),
)
SEASON_SHAPES = ((100, 20), (300, 20))
# ρ of the errors and of the columns in groups of five rows; 1: columns that are constant within a group.
GROUPS = ((0.0, 0.5), (0.5, 0.0), (0.5, 0.5), (0.5, 1.0))
GROUP_SIZE = 5
# Errors and columns where sizes are unequal, and where they are not.
UNEQUAL = (
    ("1 + x", "lognormal"),
    ("exp(0.7 x)", "normal"),
    ("leverage", "lognormal"),
    ("leverage", "squares"),
    ("prediction", "lognormal"),
    ("t3", "lognormal"),
    ("t3", "dummies"),
    ("3 rows × 5", "3 rows × 10"),
    ("normal", "lognormal"),
    ("normal", "dummies"),
)
UNEQUAL_SHAPES = ((60, 5), (200, 20), (200, 100), (1000, 20))
TITLES = {"series": "Series", "seasons": "Seasons", "groups": "Groups", "unequal": "Errors of unequal size"}
ROWS = {"series": "series", "seasons": "series", "groups": "groups", "unequal": "unequal"}
WARNINGS = (DependentRowsWarning, UnequalErrorsWarning)
# Steps before a series begins, so that it is stationary: .9 to this power is 7e-10.
BURN_IN = 200
Array = NDArray[np.float64]


def autoregression(phi: float, shape: tuple[int, ...], rng: np.random.Generator, lag: int = 1) -> Array:
    """Return series of variance 1 along the first axis, of which a row remembers the one `lag` rows before."""
    steps = rng.normal(size=(shape[0] + BURN_IN * lag, *shape[1:]))
    memory = [1, *np.zeros(lag - 1), -phi]
    return np.asarray(signal.lfilter([np.sqrt(1 - phi**2)], memory, steps, axis=0)[BURN_IN * lag :])


def in_seasons(of: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return series of variance 1 along the first axis that remember the season before, or repeat half of it."""
    length, _, how = of.partition(" rows, ")
    if how != "same":
        return autoregression(float(how), shape, rng, lag=int(length))
    effect = rng.normal(size=(int(length), *shape[1:]))
    effect -= effect.mean(axis=0)
    effect /= effect.std(axis=0)
    return np.asarray((effect[np.arange(shape[0]) % int(length)] + rng.normal(size=shape)) / np.sqrt(2))


def in_groups(rho: float, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return values of variance 1 that are correlated by ρ within groups along the first axis."""
    shared = rng.normal(size=(shape[0] // GROUP_SIZE, *shape[1:])).repeat(GROUP_SIZE, axis=0)
    return np.asarray(np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.normal(size=shape))


def of_unequal_size(errors: str, columns: str, shape: tuple[int, int], rng: np.random.Generator) -> tuple[Array, Array]:
    """Return columns, and errors with a mean square of one."""
    m, d = shape
    X, e = rng.normal(size=shape), rng.standard_t(3, size=m) / np.sqrt(3) if errors == "t3" else rng.normal(size=m)
    if columns == "lognormal":
        X = np.exp(X)
    elif columns == "squares":  # half of the columns, lognormal, and their squares
        X[:, : d // 2] = np.exp(0.7 * X[:, : d // 2])
        X[:, d // 2 : 2 * (d // 2)] = X[:, : d // 2] ** 2
    elif columns == "dummies":  # 2 to 5 % ones, two at least
        X = (np.argsort(np.argsort(X, axis=0), axis=0) < np.maximum(2, rng.uniform(0.02, 0.05, size=d) * m)).astype(
            float
        )
    elif columns == "3 rows × 10":
        X[:3] *= 10
    if errors == "3 rows × 5":
        e[:3] *= 5
    sizes = {
        "1 + x": lambda: 1 + X[:, 0],
        "exp(0.7 x)": lambda: np.exp(0.7 * X[:, 0]),
        "leverage": lambda: np.linalg.norm((X - X.mean(axis=0)) / X.std(axis=0), axis=1),
        "prediction": lambda: 1 + X[:, :TRUE_TERMS].sum(axis=1),
    }
    if errors in sizes:
        size = sizes[errors]()
        e *= size / np.sqrt(np.mean(size**2))
    return X, e


def one_trial(kind: str, of_errors: Any, of_columns: Any, shape: tuple[int, int], n_true: int, seed: int) -> list[Any]:
    """Return false terms, intervals and those that hold the truth, and whether it warned, for every fit."""
    rng = np.random.default_rng([seed, *shape])
    coef, groups, months = np.zeros(shape[1]), None, np.empty((shape[0], 0))
    if kind == "unequal":
        X, errors = of_unequal_size(of_errors, of_columns, shape, rng)
        size = 10 / np.sqrt(shape[0]) / X[:, :n_true].std(axis=0)
    elif kind == "seasons":
        size, length = 1.0, int(of_errors.split()[0])
        X = rng.normal(size=shape) if of_columns == "independent" else in_seasons(of_errors, shape, rng)
        errors = in_seasons(of_errors, shape[:1], rng)
        if "months" in of_columns:
            months = np.eye(length)[np.arange(shape[0]) % length, 1:]
    else:
        draw, size = autoregression if kind == "series" else in_groups, 1.0
        X, errors = draw(of_columns, shape, rng), draw(of_errors, shape[:1], rng)
        groups = np.arange(shape[0]) // GROUP_SIZE if kind == "groups" else None
    signs = np.ones(n_true) if of_errors == "prediction" else rng.choice([-1.0, 1.0], size=n_true)
    coef[:n_true] = signs * size
    y, design = X @ coef + errors, np.column_stack([X, months])
    given = list(range(shape[1], design.shape[1])) or None
    found = []
    for false_terms in FALSE_TERMS[:1] if kind in ("seasons", "unequal") else FALSE_TERMS:
        for rows in ("independent", ROWS[kind]):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = SparseARD(false_terms=false_terms, rows=rows, always_keep=given).fit(design, y, groups=groups)
            kept = np.flatnonzero(model.support_[:n_true])
            low, high = model.credible_interval()[kept].T if kept.size else np.empty((2, 0))
            held = int(((low <= coef[kept]) & (coef[kept] <= high)).sum())
            warned = any(issubclass(one.category, WARNINGS) for one in caught)
            found.append([model.support_[n_true : shape[1]].sum(), kept.size, held, warned])
    return found


def designs() -> list[tuple[Any, ...]]:
    """Return kind, errors, columns, shape and number of true terms of every design."""
    made: list[tuple[Any, ...]] = [("series", *phi, shape, TRUE_TERMS) for phi in SERIES for shape in SHAPES]
    made += [("seasons", *of, shape, TRUE_TERMS) for of in SEASONS for shape in SEASON_SHAPES]
    made += [("groups", *rho, shape, TRUE_TERMS) for rho in GROUPS for shape in SHAPES]
    return made + [("unequal", *of, shape, k) for of in UNEQUAL for shape in UNEQUAL_SHAPES for k in (0, TRUE_TERMS)]


def run(trials: int, seed: int, jobs: int, kinds: Sequence[str]) -> list[Record]:
    """Run all designs of some kinds, saying how far it is. Trial t uses the seed `seed` + t."""
    chosen = [design for design in designs() if design[0] in kinds]
    return [record for design in chosen for record in records_of(design, trials, seed, jobs)]


def records_of(design: tuple[Any, ...], trials: int, seed: int, jobs: int) -> list[Record]:
    """Run one design."""
    kind, of_errors, of_columns, shape, n_true = design
    found = Parallel(n_jobs=jobs)(delayed(one_trial)(*design, seed + t) for t in range(trials))
    results = np.array(found, dtype=float)
    asked = FALSE_TERMS[: results.shape[1] // 2]
    records: list[Record] = []
    for i, (false_terms, rows) in enumerate([(one, rows) for one in asked for rows in ("independent", ROWS[kind])]):
        added, kept, held, warned = results[:, i].T
        said = {"kind": kind, "errors": of_errors, "columns": of_columns, "shape": shape, "rows": rows}
        records.append(
            said
            | {
                "true_terms": n_true,
                "asked": false_terms * (shape[1] - n_true) / shape[1],
                "false_terms": false_terms,
                "added": float(added.mean()),
                "added_error": float(added.std(ddof=1) / np.sqrt(trials)),
                "covered": float(held.sum() / kept.sum()) if kept.sum() else None,
                "missed": float(n_true - kept.mean()),
                "warned": float(warned.mean()),
            }
        )
    print(f"{kind} {of_errors} {of_columns}, {shape[0]} × {shape[1]}, {n_true} terms", flush=True)
    return records


def table(records: list[Record], kind: str) -> str:
    """Return the table of series or of groups: a row per design, shape and number asked for."""
    keys = ("errors", "columns", "shape", "true_terms", "false_terms", "rows")
    found = {tuple(str(r[one]) for one in keys): r for r in records if r["kind"] == kind}
    rows = []
    for *key, how in found:
        if how != "independent":
            continue
        left, right = found[*key, how], found[*key, ROWS[kind]]
        cells = [f"{one['added']:.2f} ± {one['added_error']:.2f}" for one in (left, right)]
        shares = ["–" if one["covered"] is None else f"{one['covered']:.1%}" for one in (left, right)]
        shape = f"{left['shape'][0]} × {left['shape'][1]}"
        design = [f"{left['errors']}", f"{left['columns']}", shape, f"{left['true_terms']}", f"{left['asked']:.2f}"]
        rows.append([*design, *cells, *shares, f"{left['warned']:.0%}"])
    of = {"series": "φ of the ", "groups": "ρ of the "}.get(kind, "")
    fits = ["independent", ROWS[kind]]
    header = [f"{of}errors", f"{of}columns", "rows × columns", "true terms", "false terms asked"]
    header += [f'found, `rows="{one}"`' for one in fits] + [f'95 % intervals hold, `rows="{one}"`' for one in fits]
    return markdown([*header, "of the first, warned"], rows)


def report(results: dict[str, Any]) -> str:
    """Return the tables from saved results."""
    settings, records = results["settings"], results["records"]
    first = (
        f"Means ± standard errors over {settings['trials']} draws from seed {settings['seed']} on. Made by "
        "`python -m benchmarks.dependence`."
    )
    met = {record["kind"] for record in records}
    kinds = [kind for kind in TITLES if kind in met]
    parts = [f"## {TITLES[kind]}\n\n{table(records, kind)}" for kind in kinds]
    return "\n\n".join([first, *parts])


if __name__ == "__main__":
    trials_command(__doc__, RESULTS, 1000, run, report, tuple(TITLES))
