"""How well Discovery finds equations of motion: dysts, ODEBench, Lorenz 63, gaps, short series, positions, real data.

    python -m benchmarks.equations run CASE [--names A,B] [--noises .01,.1] [--draws N] [--seed N] [--told]
                                        [--form weak|derivative|trajectory|default] [--jobs 2] [--limit SECONDS]
    python -m benchmarks.equations table [--wrong]      # Markdown of all that was recorded; with what went wrong
    python -m benchmarks.equations page                 # the same of fresh seeds, in docs/equations_table.md
    python -m benchmarks.equations compare A B          # which trials one file of records has right and the other wrong

Cases are those of `benchmarks.equation_cases`, `quick` (a few minutes), or `all`. Draw i has the seed `--seed` + i.
Seeds below 1000 are for tuning, the default among them; tables that are published come from `--seed 1000`, which
nobody tunes on.

Every trial is a line of `--records` (results/equations.jsonl.gz); a run that was stopped goes on from there, and
trials recorded with other code are done again. Only public names of `ardea.dynamics` are used. Recorded are: whether
the supports are `exact`; the terms that are `false` and `missed`; of the `right` terms, how many 95 % intervals hold
the truth (`held`), and their z-scores; in exact models the variance that is reported and the squared error, both over
the Cramér–Rao bound; `t_bound`, the least |coefficient|/standard error that the data allow (`benchmarks.cramer_rao`);
of unknown `constants` inside terms, whether each interval holds the truth;
where the model is wrong, whether the truth is among the rivals it names; and what the model says of itself (form,
misfit, rows used, process noise, warnings). A fit that raises, or takes more than `--limit` seconds of CPU time, has
failed and is recorded so.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ardea.dynamics import Discovery
from benchmarks.equation_cases import CASES, Bound, Sample, Trial, trials_of
from benchmarks.equation_tables import FIRST_FRESH, compared, tables
from benchmarks.process import ROOT, Record, cpu_limit

RECORDS = ROOT / "benchmarks" / "results" / "equations.jsonl.gz"
PAGE = ROOT / "docs" / "equations_table.md"
SOURCES = ("core", "dynamics", "equation.py")
KEY = ("case", "name", "variant", "noise", "seed", "form")
# What a model says of itself beyond its equations.
REPORTED = ("misfit_", "rows_used_", "process_noise_")
# What no table reads, and packed records do without.
UNREAD = ("z", "warnings", "raised", "noise_found", "misfit", "rows_used", "process_noise")
LIMIT, TUNING_SEED, LONGEST_WARNING = 120.0, 1, 300


# Running


def run(options: argparse.Namespace) -> None:
    """Do the trials that are not recorded yet."""
    code = source_stamp()
    trials = planned(options)
    done = {_key(record) for record in recorded(options.records) if record["code"] == code}
    missing = [trial for trial in trials if _key({**asdict(trial), "form": options.form}) not in done]
    work = partial(measured, form=options.form, limit=options.limit)
    bar = tqdm(total=len(trials), initial=len(trials) - len(missing), desc=options.case, unit="trials", disable=None)
    with threadpool_limits(1), bar:
        for record in mapped(work, missing, options.jobs):
            append(options.records, {**record, "code": code})
            bar.update()
    keys = {_key({**asdict(trial), "form": options.form}) for trial in trials}
    print(tables([record for record in recorded(options.records) if _key(record) in keys]))


def planned(options: argparse.Namespace) -> list[Trial]:
    """Return the trials that the options ask for."""
    names = options.names.split(",") if options.names else []
    noises = [float(noise) for noise in options.noises.split(",")] if options.noises else []
    cases = list(CASES) if options.case == "all" else [options.case]
    asked = {"names": names, "noises": noises, "draws": options.draws, "seed": options.seed, "told": options.told}
    return [trial for case in cases for trial in trials_of(case, **asked)]


def mapped(work: Any, trials: Sequence[Any], jobs: int) -> Iterator[Record]:
    """Yield the records of some trials, in any order."""
    if jobs == 1:
        yield from map(work, trials)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(work, trials)


def source_stamp() -> str:
    """Return a stamp of the code under test."""
    digest = hashlib.sha256()
    for name in SOURCES:
        path = ROOT / "src" / "ardea" / name
        for file in [path] if path.is_file() else sorted([*path.rglob("*.py"), *path.rglob("*.pyx")]):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def measured(trial: Trial, form: str, limit: float) -> Record:
    """Run one trial; whatever is raised is a result as well."""
    record: Record = {**asdict(trial), "form": form}
    try:
        sample = CASES[trial.case].sample(trial)
    except Exception as error:
        return record | {"exact": False, "seconds": 0.0, "failed": f"no data: {error!r}"}
    start = time.process_time()
    try:
        with cpu_limit(limit), warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            model = fitted(sample, form)
        record["seconds"] = time.process_time() - start
        if record["seconds"] > limit:
            raise TimeoutError(f"took {record['seconds']:.3g} s of CPU time, more than {limit:g} s")
        record |= judged(model, sample) | said(model, raised)
    except Exception as error:
        record |= {"exact": False, "failed": f"{type(error).__name__}: {error}"}
        record.setdefault("seconds", time.process_time() - start)
    return record | at_bound(sample, record)


def fitted(sample: Sample, form: str) -> Discovery:
    """Fit Discovery through its public names."""
    options: dict[str, Any] = {**sample.options} | ({} if form == "default" else {"form": form})
    return Discovery(sample.library, **options).fit(sample.x, sample.t, feature_names=list(sample.names))


# Judging


def judged(model: Discovery, sample: Sample) -> Record:
    """Compare the equations with the truth."""
    pairs = list(zip(model.equations_, sample.truth, strict=True))
    found = {equation.left.text: _numbers(equation) for equation, _ in pairs}
    right = [one for equation, true in pairs for one in _right(equation, true)]
    wrong = [(equation, set(true)) for equation, true in pairs if set(equation.terms) != set(true)]
    record: Record = {
        "exact": not wrong,
        "equations": f"{len(pairs) - len(wrong)}/{len(pairs)}",
        "false": sum(len(set(equation.terms) - true) for equation, true in wrong),
        "missed": sum(len(true - set(equation.terms)) for equation, true in wrong),
        "right": len(right),
        "held": sum(low <= value <= high for value, _, _, low, high in right),
        "z": [round((mean - value) / std, 3) if std > 0 else None for value, mean, std, _, _ in right],
        "error": float(np.mean([abs(mean / value - 1) for value, mean, *_ in right])) if right else None,
        "found": found,
    }
    for equation, known in zip(model.equations_, sample.constants, strict=bool(sample.constants)):
        ends = [(known[letter], *one.interval) for letter, one in equation.constants.items() if letter in known]
        record["constants"] = [*record.get("constants", []), *(low <= value <= high for value, low, high in ends)]
    if wrong:
        record["wrong"] = [equation.left.text for equation, _ in wrong]
        record["truth_named"] = all(true in [set(rival.terms) for rival in one.rivals] for one, true in wrong)
    return record


def _numbers(equation: Any) -> dict[str, list[float]]:
    """Return mean and standard deviation of every term."""
    pairs = zip(equation.coefficients.tolist(), equation.std.tolist(), strict=True)
    return {term: [float(f"{value:.6g}") for value in pair] for term, pair in zip(equation.terms, pairs, strict=True)}


def _right(equation: Any, true: Mapping[str, float]) -> Iterator[tuple[float, float, float, float, float]]:
    """Yield truth, mean, standard deviation and interval of every true term that was found."""
    rows = zip(equation.terms, equation.coefficients, equation.std, equation.interval(0.95), strict=True)
    for term, mean, std, (low, high) in rows:
        if term in true:
            yield true[term], float(mean), float(std), float(low), float(high)


def said(model: Discovery, raised: Sequence[warnings.WarningMessage]) -> Record:
    """Return what the model says of itself, and how often it warned."""
    record: Record = {"form_used": getattr(model, "form_", None)}
    for name in REPORTED:
        value = getattr(model, name, None)
        record[name.removesuffix("_")] = None if value is None else np.asarray(value, dtype=float).tolist()
    record["noise_found"] = [float(equation.noise) for equation in model.equations_]
    record["warnings"] = [text[:LONGEST_WARNING] for text in model.warnings_]
    record["raised"] = sorted({f"{one.category.__name__}: {str(one.message)[:80]}" for one in raised})
    return record


def at_bound(sample: Sample, record: Record) -> Record:
    """Return the least t that the data allow, and variances and squared errors of an exact model over the bound."""
    if sample.bound is None:
        return {}
    try:
        bound = sample.bound()
    except (ValueError, np.linalg.LinAlgError) as error:
        return {"bound_failed": repr(error)}
    statistics = [abs(value) / np.sqrt(bound[row][term]) for row, term, value in _true(sample) if bound[row][term] > 0]
    return {"t_bound": float(min(statistics)), **(_over(bound, sample, record) if record["exact"] else {})}


def _true(sample: Sample) -> Iterator[tuple[int, str, float]]:
    for row, terms in enumerate(sample.truth):
        for term, value in terms.items():
            yield row, term, value


def _over(bound: Bound, sample: Sample, record: Record) -> Record:
    equations = list(record["found"].values())
    ratios = [
        (equations[row][term][1] ** 2 / bound[row][term], (equations[row][term][0] - value) ** 2 / bound[row][term])
        for row, term, value in _true(sample)
        if bound[row][term] > 0
    ]
    reported, actual = zip(*ratios, strict=True)
    return {"variance_over_bound": list(reported), "error_over_bound": list(actual)}


# Records


def _key(record: Record) -> tuple[Any, ...]:
    return tuple(record[part] for part in KEY)


def append(path: Path, record: Record) -> None:
    """Add a line to the records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "at", encoding="utf-8") if path.suffix == ".gz" else path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


def recorded(path: Path, key: Callable[[Record], tuple[Any, ...]] | None = None) -> list[Record]:
    """Return the last record of every trial."""
    key = key or _key
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return list({key(record): record for record in map(json.loads, file)}.values())


def _unread(record: Record) -> tuple[str, ...]:
    """Return what no table reads of a record; equations are shown of the pelts alone, bounds of the efficiency."""
    return (
        *UNREAD,
        *(() if record["case"] == "hare_lynx" else ("found",)),
        *(() if record["case"] == "efficiency" else ("variance_over_bound", "error_over_bound")),
    )


def rewrite_page(path: Path) -> None:
    """Write the tables of fresh seeds into the page; the records are packed in one piece."""
    records = recorded(path)
    kept = [{name: value for name, value in record.items() if name not in _unread(record)} for record in records]
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept)
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))
    written = tables([record for record in records if record["seed"] >= FIRST_FRESH], wrong=True)
    head = PAGE.read_text(encoding="utf-8").partition("<!-- tables -->")[0]
    PAGE.write_text(f"{head}<!-- tables -->\n\n{written}", encoding="utf-8")


def main(arguments: Iterable[str] | None = None) -> None:
    """Run, show or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="command", required=True)
    runs = parts.add_parser("run", help="do the trials that are not recorded yet")
    runs.add_argument("case", choices=[*CASES, "quick", "all"])
    runs.add_argument("--names")
    runs.add_argument("--noises")
    runs.add_argument("--draws", type=int)
    runs.add_argument("--seed", type=int, default=TUNING_SEED)
    runs.add_argument("--form", default="default", choices=["default", "weak", "derivative", "trajectory"])
    runs.add_argument("--jobs", type=int, default=1)
    runs.add_argument("--limit", type=float, default=LIMIT, help="seconds of CPU time of a fit")
    runs.add_argument("--told", action="store_true", help="also trials that tell the size or the kind of the noise")
    shows = parts.add_parser("table", help="print Markdown")
    shows.add_argument("--wrong", action="store_true", help="list the trials that went wrong")
    pages = parts.add_parser("page", help="write the page of the documentation")
    for part in (runs, shows, pages):
        part.add_argument("--records", type=Path, default=RECORDS)
    both = parts.add_parser("compare", help="compare two files of records")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    options = parser.parse_args(None if arguments is None else list(arguments))
    if options.command == "run":
        run(options)
    elif options.command == "table":
        print(tables(recorded(options.records), wrong=options.wrong))
    elif options.command == "page":
        rewrite_page(options.records)
    else:
        print(compared(recorded(options.before), recorded(options.after)))


if __name__ == "__main__":
    main()
