"""False terms and coverage of 95 % intervals where rows depend on each other, with and without `rows=`.

``python -m benchmarks.dependence [--trials 60] [--seed 1000] [--jobs 1]`` fits SparseARD to series (errors and columns
are autoregressions of order 1) and to groups (errors and columns share a part within a group), saves the means and
prints them as Markdown. About half an hour on one core. ``--table`` prints the saved results.

Three of the columns have coefficients of ±1; σ = 1. A fit warns if it says that rows depend on each other.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import signal

from ardea import SparseARD
from ardea.estimators.advice import DependentRowsWarning
from benchmarks.process import ROOT, Record, trials_command
from benchmarks.tables import markdown

RESULTS = ROOT / "benchmarks" / "results" / "dependence.json"
SHAPES = ((100, 20), (100, 50), (400, 20), (400, 50))
FALSE_TERMS = (0.3, 1.0)
TRUE_TERMS = 3
# φ of the errors, with columns of φ = 0.9; and columns that are independent.
SERIES = ((0.0, 0.9), (0.5, 0.9), (0.8, 0.9), (0.9, 0.9), (0.9, 0.0))
# ρ of the errors and of the columns in groups of five rows; 1: columns that are constant within a group.
GROUPS = ((0.0, 0.5), (0.5, 0.0), (0.5, 0.5), (0.5, 1.0))
GROUP_SIZE = 5
# Rows before a series begins, so that it is stationary: .9 to this power is 7e-10.
BURN_IN = 200
Array = NDArray[np.float64]


def autoregression(phi: float, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return series of variance 1 along the first axis."""
    steps = rng.normal(size=(shape[0] + BURN_IN, *shape[1:]))
    return np.asarray(signal.lfilter([np.sqrt(1 - phi**2)], [1, -phi], steps, axis=0)[BURN_IN:])


def in_groups(rho: float, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return values of variance 1 that are correlated by ρ within groups along the first axis."""
    shared = rng.normal(size=(shape[0] // GROUP_SIZE, *shape[1:])).repeat(GROUP_SIZE, axis=0)
    return np.asarray(np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.normal(size=shape))


def one_trial(kind: str, of_errors: float, of_columns: float, shape: tuple[int, int], seed: int) -> list[list[float]]:
    """Return false terms, intervals and those that hold the truth, and whether it warned, for every fit."""
    rng = np.random.default_rng([seed, *shape])
    draw = autoregression if kind == "series" else in_groups
    X, errors = draw(of_columns, shape, rng), draw(of_errors, shape[:1], rng)
    coef = np.zeros(shape[1])
    coef[:TRUE_TERMS] = rng.choice([-1.0, 1.0], size=TRUE_TERMS)
    groups = np.arange(shape[0]) // GROUP_SIZE if kind == "groups" else None
    found = []
    for false_terms in FALSE_TERMS:
        for rows in ("independent", kind):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = SparseARD(false_terms=false_terms, rows=rows).fit(X, X @ coef + errors, groups=groups)
            kept = np.flatnonzero(model.support_[:TRUE_TERMS])
            low, high = model.credible_interval()[kept].T
            held = int(((low <= coef[kept]) & (coef[kept] <= high)).sum())
            warned = any(issubclass(one.category, DependentRowsWarning) for one in caught)
            found.append([model.support_[TRUE_TERMS:].sum(), kept.size, held, warned])
    return found


def run(trials: int, seed: int, jobs: int) -> list[Record]:
    """Run everything, saying how far it is. Trial t uses the seed `seed` + t."""
    designs = [("series", *phi) for phi in SERIES] + [("groups", *rho) for rho in GROUPS]
    records: list[Record] = []
    for kind, of_errors, of_columns in designs:
        for shape in SHAPES:
            job = delayed(one_trial)
            found = Parallel(n_jobs=jobs)(job(kind, of_errors, of_columns, shape, seed + t) for t in range(trials))
            results = np.array(found, dtype=float)
            names = [(false_terms, rows) for false_terms in FALSE_TERMS for rows in ("independent", kind)]
            for i, (false_terms, rows) in enumerate(names):
                added, kept, held, warned = results[:, i].T
                design = {"kind": kind, "errors": of_errors, "columns": of_columns, "shape": shape, "rows": rows}
                records.append(
                    design
                    | {
                        "asked": false_terms * (shape[1] - TRUE_TERMS) / shape[1],
                        "false_terms": false_terms,
                        "added": float(added.mean()),
                        "added_error": float(added.std(ddof=1) / np.sqrt(trials)),
                        "covered": float(held.sum() / kept.sum()),
                        "missed": float(TRUE_TERMS - kept.mean()),
                        "warned": float(warned.mean()),
                    }
                )
            print(f"{kind} {of_errors:g} {of_columns:g}, {shape[0]} × {shape[1]}", flush=True)
    return records


def table(records: list[Record], kind: str) -> str:
    """Return the table of series or of groups: a row per design, shape and number asked for."""
    found = {
        (r["errors"], r["columns"], *r["shape"], r["false_terms"], r["rows"]): r for r in records if r["kind"] == kind
    }
    rows = []
    for *key, how in found:
        if how != "independent":
            continue
        left, right = found[*key, how], found[*key, kind]
        cells = [f"{one['added']:.2f} ± {one['added_error']:.2f}" for one in (left, right)]
        shares = [f"{one['covered']:.1%}" for one in (left, right)]
        design = [f"{key[0]:g}", f"{key[1]:g}", f"{key[2]} × {key[3]}", f"{left['asked']:.2f}"]
        rows.append([*design, *cells, *shares, f"{left['warned']:.0%}"])
    of = "φ" if kind == "series" else "ρ"
    fits = ["independent", kind]
    header = [f"{of} of the errors", f"{of} of the columns", "rows × columns", "false terms asked"]
    header += [f'found, `rows="{one}"`' for one in fits] + [f'95 % intervals hold, `rows="{one}"`' for one in fits]
    return markdown([*header, "of the first, warned"], rows)


def report(results: dict[str, Any]) -> str:
    """Return the tables from saved results."""
    settings, records = results["settings"], results["records"]
    first = (
        f"Means ± standard errors over {settings['trials']} draws from seed {settings['seed']} on. Made by "
        "`python -m benchmarks.dependence`."
    )
    parts = [f"## {kind.capitalize()}\n\n{table(records, kind)}" for kind in ("series", "groups")]
    return "\n\n".join([first, *parts])


if __name__ == "__main__":
    trials_command(__doc__, RESULTS, 1000, run, report)
