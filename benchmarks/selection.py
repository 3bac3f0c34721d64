"""Every criterion by every method on the paper's Linear and Fourier problems, next to the defaults and the oracle.

``python -m benchmarks.selection [--linear-trials 100] [--fourier-trials 30] [--seed 1000]`` fits one path of
:class:`ardea.ARDSearch` (default grid) per method and trial and lets every criterion that costs nothing choose from it.
Cross-validation and stability selection run their own searches, for a few methods and fewer trials (``EXPENSIVE``); the
tables say how many. Some two hours on one core, half of it the paths of ARDr on Fourier, where columns are vetted one
by one. Trial t draws the problem with seed + t.

Every finished part is a line of the file ``--records``: a run that was stopped goes on from there, unless Ardea's
source has changed since. The means are saved in ``benchmarks/results/selection.json``, and docs/selection_table.md is
written; ``--table`` writes it again from the means.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from benchmarks.cases import Array, Data
from benchmarks.problems import PAPER_PROBLEMS
from benchmarks.process import ROOT, Record, machine, save_json
from benchmarks.tables import markdown

RESULTS = ROOT / "benchmarks" / "results" / "selection.json"
PAGE = ROOT / "docs" / "selection_table.md"
RECORDS = Path(tempfile.gettempdir()) / "ardea-selection.jsonl"
METHODS: dict[str, Callable[..., Any]] = {
    "ARDvi": ARDvi,
    "ARDr": ARDr,
    "MSTSBL": MSTSBL,
    "LSTSBL": LSTSBL,
    "MAPSTSBL": MAPSTSBL,
    "MAPSTSBL backward": lambda **parameters: MAPSTSBL(search="backward", **parameters),
    "SparseARD": SparseARD,
}
CHEAP = ("evidence", "aicc", "aic", "bic", "ebic", "ebic2")
# criterion: the methods it is run for, and at most how many trials of each problem.
EXPENSIVE: dict[str, tuple[tuple[str, ...], dict[str, int]]] = {
    "cv": (("ARDvi", "MSTSBL", "SparseARD"), {"linear": 30, "fourier": 6}),
    "stability": (("ARDvi", "MSTSBL", "SparseARD"), {"linear": 10, "fourier": 4}),
}
DEFAULT, ORACLE = "default", "oracle"
TRUE_SUPPORT = "least squares on the true support"
MEASURES = ("l2", "l1", "added", "missed")


def measures(coef: Array, truth: Array) -> dict[str, float]:
    """Return ‖ξ̂ − ξ‖₂, ‖ξ̂ − ξ‖₁ and the terms added and missed."""
    return {
        "l2": float(np.linalg.norm(coef - truth)),
        "l1": float(np.abs(coef - truth).sum()),
        "added": int(((coef != 0) & (truth == 0)).sum()),
        "missed": int(((coef == 0) & (truth != 0)).sum()),
    }


def choices(search: ARDSearch, truth: Array) -> dict[str, Array]:
    """Return the coefficients that every cheap criterion, and the oracle, choose from a path."""
    path = search.path_
    eligible = path["eligible"]
    if not eligible.any():
        eligible = path["k"] == path["k"].min()
    index = {name: int(np.argmin(np.where(eligible, path[name], np.inf))) for name in CHEAP}
    index[ORACLE] = int(np.argmin((path["support"] != (truth != 0)).sum(axis=1)))
    return {name: path["coef"][place] for name, place in index.items()}


def path_part(method: str) -> Callable[[Data, int], dict[str, Array]]:
    """Return the part that fits one path and chooses by every cheap criterion."""

    def part(data: Data, seed: int) -> dict[str, Array]:
        X, y, truth = data
        return choices(ARDSearch(METHODS[method](fit_intercept=False)).fit(X, y), truth)

    return part


def search_part(method: str, criterion: str) -> Callable[[Data, int], dict[str, Array]]:
    """Return the part that runs a search of its own for an expensive criterion."""

    def part(data: Data, seed: int) -> dict[str, Array]:
        X, y, _ = data
        search = ARDSearch(METHODS[method](fit_intercept=False), criterion=criterion, random_state=seed).fit(X, y)
        return {criterion: search.best_estimator_.coef_}

    return part


def default_part(make: Callable[..., Any]) -> Callable[[Data, int], dict[str, Array]]:
    """Return the part that fits an estimator with its defaults: no search."""

    def part(data: Data, seed: int) -> dict[str, Array]:
        X, y, _ = data
        return {DEFAULT: make(fit_intercept=False).fit(X, y).coef_}

    return part


def true_support_part(data: Data, seed: int) -> dict[str, Array]:
    """Fit least squares on the true support."""
    X, y, truth = data
    coef = np.zeros_like(truth)
    coef[truth != 0] = np.linalg.lstsq(X[:, truth != 0], y, rcond=None)[0]
    return {ORACLE: coef}


def parts(problem: str, trial: int) -> Iterator[tuple[str, str, Callable[[Data, int], dict[str, Array]]]]:
    """Yield (method, name of the part, function) of all that one trial needs."""
    yield TRUE_SUPPORT, "truth", true_support_part
    yield "ARD", "default", default_part(ARD)
    for method, make in METHODS.items():
        yield method, "default", default_part(make)
    for method in METHODS:
        yield method, "path", path_part(method)
    for criterion, (methods, trials) in EXPENSIVE.items():
        if trial < trials[problem]:
            for method in methods:
                yield method, criterion, search_part(method, criterion)


def one_part(data: Data, seed: int, part: Callable[[Data, int], dict[str, Array]]) -> Record:
    """Return what a part measures, by criterion, and its CPU time. Warnings (RSS criteria, collapse) are expected."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = part(data, seed)
    seconds = time.process_time() - start
    return {"seconds": seconds, "chosen": {name: measures(coef, data[2]) for name, coef in chosen.items()}}


def source_digest() -> str:
    """Return a fingerprint of the modules of Ardea in use, so that one table never mixes two versions of them."""
    digest = hashlib.sha256()
    for name in sorted(sys.modules):
        if name.split(".")[0] == "ardea":
            digest.update(Path(str(sys.modules[name].__file__)).read_bytes())
    return digest.hexdigest()[:16]


def earlier(path: Path, digest: str) -> list[Record]:
    """Return the records of an interrupted run of the same source; a last line cut short is dropped."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")
    records = [json.loads(line) for line in lines[:-1]]
    if any(record["source"] != digest for record in records):
        raise SystemExit(f"{path} was made with other source: remove it to start again.")
    if lines[-1]:
        temporary = path.with_suffix(".tmp")
        temporary.write_text("".join(line + "\n" for line in lines[:-1]))
        temporary.replace(path)
    return records


def run(trials: dict[str, int], seed: int, path: Path, methods: Sequence[str] | None = None) -> list[Record]:
    """Run what is not yet in the file, appending a line after every part."""
    digest = source_digest()
    records = earlier(path, digest)
    done = {(r["problem"], r["seed"], r["method"], r["part"]) for r in records}
    plan = [(problem, trial) for problem, count in trials.items() for trial in range(count)]
    start = time.perf_counter()
    path.parent.mkdir(parents=True, exist_ok=True)
    for number, (problem, trial) in enumerate(plan, start=1):
        data = PAPER_PROBLEMS[problem](seed + trial)
        for method, name, part in parts(problem, trial):
            key = (problem, seed + trial, method, name)
            if key in done or (methods and method not in methods):
                continue
            record = dict(zip(("problem", "seed", "method", "part"), key, strict=True), source=digest)
            record |= one_part(data, seed + trial, part)
            records.append(record)
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
        print(f"[{number}/{len(plan)}] {problem} {trial}: {time.perf_counter() - start:.0f} s gone", flush=True)
    wanted = {(problem, seed + trial) for problem, trial in plan}
    return [record for record in records if (record["problem"], record["seed"]) in wanted]


def means(records: Sequence[Record]) -> list[Record]:
    """Return the means of every measure by problem, method and criterion."""
    groups: dict[tuple[str, str, str], dict[int, Record]] = {}
    for record in records:
        for criterion, found in record["chosen"].items():
            key = (record["problem"], record["method"], criterion)
            groups.setdefault(key, {})[record["seed"]] = {**found, "seconds": record["seconds"]}
    rows = []
    for (problem, method, criterion), found in groups.items():
        row = {"problem": problem, "method": method, "criterion": criterion, **averaged(list(found.values()))}
        if criterion in EXPENSIVE:
            cheap = groups[problem, method, "evidence"]
            row["evidence"] = averaged([cheap[seed] for seed in found])
        rows.append(row)
    return rows


def averaged(found: Sequence[Record]) -> Record:
    """Return the number of trials, mean CPU time, and mean and standard error of every measure."""
    row: Record = {"trials": len(found), "seconds": float(np.mean([one["seconds"] for one in found]))}
    for name in MEASURES:
        values = np.array([one[name] for one in found], dtype=float)
        row[name] = float(values.mean())
        row[f"{name}_error"] = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None
    return row


def problem_table(rows: Sequence[Record]) -> str:
    """Return the table of one problem: a row per method, a column per criterion that saw all trials."""
    criteria = (DEFAULT, *CHEAP, ORACLE)
    found = {(row["method"], row["criterion"]): row for row in rows}
    lines = [
        [method, *(_cell(found.get((method, criterion))) for criterion in criteria)]
        for method in dict.fromkeys(row["method"] for row in rows)
    ]
    return markdown(("method", *criteria), lines)


def expensive_table(rows: Sequence[Record]) -> str:
    """Return cross-validation and stability selection next to the evidence on the same trials."""
    lines = [
        [
            row["method"],
            row["criterion"],
            str(row["trials"]),
            _cell(row),
            _cell(row["evidence"]),
            f"{row['seconds'] / row['evidence']['seconds']:.0f}",
        ]
        for row in rows
        if "evidence" in row
    ]
    return markdown(
        ("method", "criterion", "trials", "chosen by it", "by evidence, same trials", "times the cost"), lines
    )


def _cell(row: Record | None) -> str:
    if row is None:
        return "–"
    return f"{row['l2']:.3f} / {row['l1']:.2f} / {row['added']:.2f} / {row['missed']:.2f}"


def report(results: dict[str, Any]) -> str:
    """Return the page from saved results."""
    rows = results["rows"]
    sections = ["# Selection: all cells", "Made by `python -m benchmarks.selection`."]
    sections.append("Cells hold the mean of ‖error‖₂ / ‖error‖₁ / terms added / terms missed.")
    for problem in dict.fromkeys(row["problem"] for row in rows):
        here = [row for row in rows if row["problem"] == problem]
        sections.append(f"## {problem.capitalize()}: {max(row['trials'] for row in here)} trials")
        sections += [problem_table(here), expensive_table(here)]
    return "\n\n".join(sections) + "\n"


def main() -> None:
    """Run, save and write the page; or write it from what was saved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linear-trials", type=int, default=100)
    parser.add_argument("--fourier-trials", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1000, help="seed of the first trial")
    parser.add_argument("--records", type=Path, default=RECORDS, help="finished parts")
    parser.add_argument("--methods", nargs="*", choices=METHODS, help="run these again, keep the other rows as saved")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="write the page from the saved results, run nothing")
    options = parser.parse_args()
    if options.linear_trials + options.fourier_trials < 1:
        parser.error("ask for at least one trial.")
    if not options.table:
        trials = {"linear": options.linear_trials, "fourier": options.fourier_trials}
        with threadpool_limits(1):
            records = run(trials, options.seed, options.records, options.methods)
        settings = {"trials": trials, "seed": options.seed, "source": records[0]["source"], "machine": machine()}
        rows = means(records)
        if options.methods:
            fresh = {(row["problem"], row["method"], row["criterion"]): row for row in rows}
            saved = json.loads(options.out.read_text())["rows"]
            rows = [fresh.get((row["problem"], row["method"], row["criterion"]), row) for row in saved]
        save_json(options.out, {"settings": settings, "rows": rows})
    if options.out == RESULTS:
        PAGE.write_text(report(json.loads(options.out.read_text())), encoding="utf-8")


if __name__ == "__main__":
    main()
