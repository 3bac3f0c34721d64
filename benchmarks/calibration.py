"""Expected against measured false terms of every estimator that can be calibrated.

``python -m benchmarks.calibration [--trials 60] [--seed 0] [--jobs 1]`` fits each estimator at ``false_terms`` of .3, 1
and 3 on orthogonal, Gaussian, correlated and wide designs (:mod:`benchmarks.problems`), with σ² learned unless a design
says otherwise, saves the means and prints them as Markdown. About five minutes on one core. ``--table`` prints the
saved results.

A false term is a kept column whose true coefficient is zero. With k true terms among d columns, false_terms·(d − k)/d
are expected.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ardea import LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD
from benchmarks.problems import DESIGNS, SIGNALS, Problem, calibration_problem
from benchmarks.process import ROOT, Record, trials_command
from benchmarks.tables import markdown

RESULTS = ROOT / "benchmarks" / "results" / "calibration.json"
FALSE_TERMS = (0.3, 1.0, 3.0)
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "ARDvi": ARDvi,
    "ARDr": ARDr,
    "MSTSBL": MSTSBL,
    "LSTSBL": LSTSBL,
    "MAPSTSBL": MAPSTSBL,
    "MAPSTSBL backward": lambda **parameters: MAPSTSBL(search="backward", **parameters),
    "SparseARD": SparseARD,
}
TITLES = {
    "strong": "Strong terms: 10 of ±U[0.5, 2], σ = 0.1 std(Θξ)",
    "weak": "Weak terms: 10 of ±U[0.5, 2], σ = std(Θξ)",
    "none": "No terms: ξ = 0, σ = 1",
}
# A cell is marked where more than this share of its fits warned.
MARKED_SHARE = 0.05


def counts(problem: Problem, noise_known: bool) -> list[tuple[int, int, bool]]:
    """Return (false terms, missed terms, whether it warned) for every false_terms and estimator, in that order."""
    found = []
    for false_terms in FALSE_TERMS:
        for make in ESTIMATORS.values():
            model = make(
                false_terms=false_terms, noise_variance=problem.sigma**2 if noise_known else None, fit_intercept=False
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                support = model.fit(problem.X, problem.y).support_
            true = problem.coef != 0
            found.append((int((support & ~true).sum()), int((~support & true).sum()), bool(caught)))
    return found


def one_trial(design: str, signal: str, seed: int) -> list[tuple[int, int, bool]]:
    """Draw one problem and fit everything to it."""
    return counts(calibration_problem(design, signal, seed), DESIGNS[design].noise_known)


def cells(design: str, signal: str, trials: Sequence[list[tuple[int, int, bool]]]) -> list[Record]:
    """Return the means over the trials of one design and signal, one record per false_terms and estimator."""
    problem = calibration_problem(design, signal, 0)
    share_false = float(np.mean(problem.coef == 0))
    results = np.array(trials, dtype=float)  # trials × (false_terms, estimator) × (added, missed, warned)
    mean, error = results.mean(axis=0), results.std(axis=0, ddof=1) / np.sqrt(len(trials))
    names = [(false_terms, estimator) for false_terms in FALSE_TERMS for estimator in ESTIMATORS]
    return [
        {
            "design": design,
            "signal": signal,
            "false_terms": false_terms,
            "estimator": estimator,
            "expected": false_terms * share_false,
            "added": mean[i, 0],
            "added_error": error[i, 0],
            "missed": mean[i, 1],
            "warned": mean[i, 2],
        }
        for i, (false_terms, estimator) in enumerate(names)
    ]


def run(trials: int, seed: int, jobs: int) -> list[Record]:
    """Run everything, saying how far it is. Trial t uses the seed `seed` + t."""
    groups = [(signal, design) for signal in SIGNALS for design in DESIGNS]
    records: list[Record] = []
    start = time.perf_counter()
    for number, (signal, design) in enumerate(groups, start=1):
        found = Parallel(n_jobs=jobs)(delayed(one_trial)(design, signal, seed + trial) for trial in range(trials))
        records += cells(design, signal, found)
        gone = time.perf_counter() - start
        print(f"[{number}/{len(groups)}] {signal}, {design}: {gone:.0f} s gone", flush=True)
    return records


def cell_text(record: Record) -> str:
    """Return "added ± s.e. (missed)", with a star where many fits warned."""
    digits = 0 if record["added"] >= 20 else 2
    text = f"{record['added']:.{digits}f} ± {record['added_error']:.2f}"
    if record["signal"] != "none":
        text += f" ({record['missed']:.1f})"
    return text + "*" * (record["warned"] > MARKED_SHARE)


def signal_table(records: Sequence[Record]) -> str:
    """Return the table of one signal: a row per design and false_terms, a column per estimator."""
    rows = []
    for design in dict.fromkeys(record["design"] for record in records):
        for false_terms in FALSE_TERMS:
            row = [r for r in records if (r["design"], r["false_terms"]) == (design, false_terms)]
            name = design if false_terms == FALSE_TERMS[0] else ""
            rows.append([name, f"{row[0]['expected']:.2f}", *map(cell_text, row)])
    return markdown(("design", "expected", *dict.fromkeys(r["estimator"] for r in records)), rows)


def report(results: dict[str, Any]) -> str:
    """Return the whole page from saved results."""
    settings, records = results["settings"], results["records"]
    parts = [
        f"False terms: mean ± standard error over {settings['trials']} trials, in brackets the mean number missed; "
        f"seed {settings['seed']}. A star: more than {MARKED_SHARE:.0%} of the fits warned."
    ]
    for signal, title in TITLES.items():
        parts.append(f"### {title}\n\n{signal_table([r for r in records if r['signal'] == signal])}")
    return "\n\n".join(parts)


if __name__ == "__main__":
    trials_command(__doc__, RESULTS, 0, run, report)
