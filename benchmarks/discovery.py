"""How much noise Discovery tolerates on every field with known truth, next to PySINDy tuned by the truth.

    python -m benchmarks.discovery run [--systems a,b] [--noises .01,.03] [--draws N] [--seed 1000] [--peers]
    python -m benchmarks.discovery table             # Markdown of all that was recorded
    python -m benchmarks.discovery picture           # docs/discovery_noise.png
    python -m benchmarks.discovery page              # the tables of docs/fields_noise_table.md

Draw i has noise of seed `--seed` + i. Without options: `PLAN`. Every trial is a line of `results/discovery.jsonl.gz`; a
run that was stopped goes on from there; trials recorded with other code that finds equations are done again.
`results/discovery.json` holds the machine of the last run and the means, which `table` writes. Times are CPU times of
one thread.

Systems are the fields of `ardea.dynamics.systems` (ordinary differential equations and maps: `benchmarks.equations`).
A trial of Discovery is told the library and nothing else.
Recorded: whether the support is exact; the relative error of the coefficients, mean over the true terms; σ̂/σ, the noise
it reports over the true one; t, the least |coefficient|/standard error of a fit with the true support; and where the
support is wrong the score of the true support minus that of the one found: positive where the criterion prefers the
wrong one (the data decide so), negative where the search missed the better one.

The peers (`--peers`) see the same data and terms and are tuned by the truth (`benchmarks.discovery_peers`).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ardea.core.problem import penalty
from ardea.core.subsets import Support
from ardea.dynamics import AmbiguityWarning, Discovery
from ardea.dynamics.systems import ALL_PDES, Pde
from benchmarks.discovery_peers import compared, with_differences, with_weak_form
from benchmarks.process import ROOT, Record, cpu_limit, machine, save_json
from benchmarks.tables import machine_line, markdown, seconds

Array = NDArray[np.float64]

RECORDS = ROOT / "benchmarks" / "results" / "discovery.jsonl.gz"
RESULTS = RECORDS.with_name("discovery.json")
PAGE = ROOT / "docs" / "fields_noise_table.md"
TABLES_BEGIN, TABLES_END = "<!-- tables -->", "<!-- end of tables -->"
PICTURE = ROOT / "docs" / "discovery_noise.png"
ALL_SYSTEMS = ALL_PDES
DISCOVERY, DIFFERENCES, WEAK = "Discovery", "STLSQ", "weak STLSQ"
FIRST_SEED, PEER_DRAWS = 1000, 3

SEARCHING = ("differences", "field_equation", "field_terms", "fields", "search", "series", "terms")
# CPU seconds after which a trial counts as failed.
LIMIT, PEER_LIMIT = 40.0, 300.0
# Noise level: number of draws.
PLAN = {0.001: 3, 0.01: 3, 0.1: 3, 0.25: 3, 0.5: 3}


@dataclass(frozen=True)
class Trial:
    """One method on one draw."""

    method: str
    system: str
    noise: float
    seed: int


# Trials


def planned(options: argparse.Namespace) -> list[Trial]:
    """Return the trials that the options ask for."""
    names = options.systems.split(",") if options.systems else list(ALL_SYSTEMS)
    for name in names:
        if name not in ALL_SYSTEMS:
            raise SystemExit(f"{name!r} is not a system; choose from {', '.join(ALL_SYSTEMS)}")
    plan = PLAN
    if options.noises:
        plan = {float(noise): PLAN.get(float(noise), 5) for noise in options.noises.split(",")}
    trials = []
    for name in names:
        for noise, draws in plan.items():
            for draw in range(options.draws or draws):
                methods = [DISCOVERY, DIFFERENCES, WEAK] if options.peers and draw < PEER_DRAWS else [DISCOVERY]
                trials += [Trial(method, name, noise, options.seed + draw) for method in methods]
    return trials


def run_trials(options: argparse.Namespace) -> None:
    """Do the trials that are not recorded yet."""
    code = source_stamp()
    done = {_key(record) for record in recorded() if record["method"] != DISCOVERY or record["code"] == code}
    trials = planned(options)
    missing = [trial for trial in trials if _key(asdict(trial)) not in done]
    if missing:
        save_json(RESULTS, {**_saved(), "machine": machine()})
    for trial in tqdm(missing, "discovery", len(trials), initial=len(trials) - len(missing), disable=None):
        _append({**asdict(trial), "code": code, **measured(trial)})


def source_stamp() -> str:
    """Return a stamp of the code under test: all of `ardea.dynamics` that finds equations of fields."""
    files = [ROOT / "src" / "ardea" / "dynamics" / f"{name}.py" for name in SEARCHING]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def measured(trial: Trial) -> Record:
    """Run one trial; an exception is a result as well."""
    system = ALL_SYSTEMS[trial.system]()
    t, x = system.noisy(trial.noise, trial.seed)
    try:
        with cpu_limit(LIMIT if trial.method == DISCOVERY else PEER_LIMIT):
            if trial.method == DISCOVERY:
                return with_discovery(system, t, x, trial.noise)
            return with_weak_form(system, t, x, trial.seed) if trial.method == WEAK else with_differences(system, t, x)
    except (ValueError, TimeoutError, np.linalg.LinAlgError) as error:
        return {"exact": False, "failed": repr(error)}


def with_discovery(system: Pde, t: Array, x: Array, level: float) -> Record:
    """Fit Discovery, told only the library."""
    model = Discovery(system.library)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model.fit(x, t, space=system.space, feature_names=list(system.feature_names))
    spent = time.process_time() - start
    noise = level * float(np.std(system.simulate()[1]))
    record = compared(system, model.coef_)
    record |= {
        "seconds": spent,
        "noise_ratio": float(np.mean([equation.noise for equation in model.equations_])) / noise,
        "ambiguous": sum(issubclass(one.category, AmbiguityWarning) for one in raised),
        **at_truth(model, system.true_coefficients()),
    }
    if not record["exact"]:
        pairs = zip(model.equations_, system.true_terms, strict=True)
        record["wrong"] = {one.name: list(one.terms) for one, true in pairs if set(one.terms) != set(true)}
    return record


def at_truth(model: Discovery, truth: Array) -> Record:
    """Return the least t of a fit with the true supports, and its score minus that of the supports found."""
    supports: list[Support] = [tuple(np.flatnonzero(row).tolist()) for row in truth]
    found = [equation.support for equation in model.equations_]
    statistics, excess = [], 0.0
    for result, support, chosen in zip(model.searched_.results, supports, found, strict=True):
        rows, N, d = result.rows, result.rows.n_rows, result.rows.n_terms
        fit, other = rows.fitted(support), rows.fitted(chosen)
        A = rows.system(fit)[0][:, list(support)]
        variances = np.square(np.linalg.pinv(A)).sum(axis=1) * fit.rss / (N - len(support))
        statistics.append(np.abs(fit.coefficients) / np.sqrt(variances))
        excess += N * np.log((fit.rss + fit.floor) / (other.rss + other.floor))
        excess += penalty("ebic2", N, d, len(support)) - penalty("ebic2", N, d, len(chosen))
    return {"t": float(np.min(np.concatenate(statistics))), "excess_of_truth": float(excess)}


# Records


def _key(record: Record) -> tuple[str, str, float, int]:
    return record["method"], record["system"], record["noise"], record["seed"]


def _append(record: Record) -> None:
    RECORDS.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(RECORDS, "at", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


def recorded() -> list[Record]:
    """Return the last record of every trial."""
    if not RECORDS.exists():
        return []
    with gzip.open(RECORDS, "rt", encoding="utf-8") as file:
        return list({_key(record): record for record in map(json.loads, file)}.values())


def _saved() -> dict[str, Any]:
    saved: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return saved


# Tables


def tables() -> str:
    """Return all tables; save the means."""
    records = recorded()
    own = [record for record in records if record["method"] == DISCOVERY]
    saved = {**_saved(), "systems": means(records)}
    save_json(RESULTS, saved)
    stamps = ", ".join(sorted({record["code"] for record in own}))
    parts = [f"{machine_line(saved['machine'])} Code of `ardea.dynamics`: {stamps}."]
    parts += [noise_table(records), detail_table(records), peer_table(records)]
    return "\n\n".join([*parts, "## Wrong supports", failure_table(own)])


def rewrite_page() -> None:
    """Write the tables of today into docs/fields_noise_table.md."""
    before, rest = PAGE.read_text(encoding="utf-8").split(TABLES_BEGIN)
    after = rest.split(TABLES_END)[1]
    temporary = PAGE.with_suffix(".tmp")
    temporary.write_text(f"{before}{TABLES_BEGIN}\n\n{tables()}\n\n{TABLES_END}{after}", encoding="utf-8")
    temporary.replace(PAGE)


def means(records: Sequence[Record]) -> list[Record]:
    """Return one summary for every method, system and noise."""
    groups: dict[tuple[str, str, float], list[Record]] = {}
    for record in records:
        groups.setdefault((record["method"], record["system"], record["noise"]), []).append(record)
    summaries = []
    for (method, system, noise), group in groups.items():
        summary: Record = {"method": method, "system": system, "noise": noise, "draws": len(group)}
        summary["exact"] = sum(record["exact"] for record in group)
        for name in ("error", "t", "noise_ratio", "seconds"):
            chosen = [r[name] for r in group if name in r and (r["exact"] or name in ("t", "seconds"))]
            if chosen:
                summary[name] = float(np.median(chosen) if name == "seconds" else np.mean(chosen))
        summaries.append(summary)
    return summaries


def _by_system(records: Sequence[Record]) -> dict[str, list[Record]]:
    return {
        name: [record for record in records if record["system"] == name]
        for name in ALL_SYSTEMS
        if any(record["system"] == name for record in records)
    }


def _noises(records: Sequence[Record]) -> list[float]:
    return sorted({record["noise"] for record in records})


def _count(records: Sequence[Record]) -> str:
    return f"{sum(record['exact'] for record in records)}/{len(records)}" if records else "–"


def noise_table(records: Sequence[Record]) -> str:
    """Return exact supports of Discovery by noise, with the mean t of the weakest true term.

    "Tolerates" is the largest noise up to which at least nine of ten draws were exact.
    """
    own = [record for record in records if record["method"] == DISCOVERY]
    noises, rows = _noises(own), []
    for name, group in _by_system(own).items():
        cells, tolerated, broken = [], "–", False
        for noise in noises:
            draws = [record for record in group if record["noise"] == noise]
            t = [record["t"] for record in draws if "t" in record]
            cells.append(f"{_count(draws)} (t {np.mean(t):.3g})" if t else _count(draws))
            broken |= bool(draws) and np.mean([record["exact"] for record in draws]) < 0.9
            tolerated = tolerated if broken or not draws else f"{100 * noise:g} %"
        rows.append([name, *cells, tolerated])
    return markdown(["exact (t of the weakest term)", *(f"{100 * noise:g} %" for noise in noises), "tolerates"], rows)


def detail_table(records: Sequence[Record]) -> str:
    """Return coefficient error and σ̂/σ of the exact fits and the median CPU time, by noise."""
    own = [record for record in means(records) if record["method"] == DISCOVERY]
    noises, rows = _noises(own), []
    for name, group in _by_system(own).items():
        by_noise = {record["noise"]: record for record in group}
        cells = [by_noise.get(noise, {}) for noise in noises]
        errors = [f"{100 * cell['error']:.2g} %" if "error" in cell else "–" for cell in cells]
        ratios = [cell["noise_ratio"] for cell in cells if "noise_ratio" in cell]
        times = [cell["seconds"] for cell in cells if "seconds" in cell]
        spread = f"{min(ratios):.2f}–{max(ratios):.2f}" if ratios else "–"
        rows.append([name, *errors, spread, f"{seconds(min(times))}–{seconds(max(times))}"])
    return markdown(["error when exact", *(f"{100 * noise:g} %" for noise in noises), "σ̂/σ", "CPU time"], rows)


def peer_table(records: Sequence[Record]) -> str:
    """Return exact supports of Discovery, of STLSQ with differences and of the weak form, on draws that all had."""
    shared = on_shared_draws(records)
    noises, rows = _noises(shared), []
    for name, group in _by_system(shared).items():
        cells = []
        for noise in noises:
            counts = [
                _count([r for r in group if r["noise"] == noise and r["method"] == method]).split("/")[0]
                for method in (DISCOVERY, DIFFERENCES, WEAK)
            ]
            draws = sum(r["noise"] == noise and r["method"] == DISCOVERY for r in group)
            cells.append(f"{' · '.join(counts)} of {draws}" if draws else "–")
        rows.append([name, *cells])
    title = "exact: Discovery · STLSQ, differences · STLSQ, weak (both tuned by the truth)"
    return markdown([title, *(f"{100 * noise:g} %" for noise in noises)], rows)


def on_shared_draws(records: Sequence[Record]) -> list[Record]:
    """Return the records of draws that a peer was run on."""
    draws = {_key(record)[1:] for record in records if record["method"] != DISCOVERY}
    return [record for record in records if _key(record)[1:] in draws]


def failure_table(own: Sequence[Record]) -> str:
    """Return every wrong support of Discovery, with the score of the truth minus its score."""
    rows = []
    for record in own:
        where = [record["system"], f"{100 * record['noise']:g} %", str(record["seed"])]
        if "failed" in record:
            rows.append([*where, record["failed"], "", "", ""])
        for name, terms in record.get("wrong", {}).items():
            system = ALL_SYSTEMS[record["system"]]()
            true = system.true_terms[system.feature_names.index(name)]
            change = [f"+ {term}" for term in terms if term not in true] + [f"− {t}" for t in true if t not in terms]
            told = f"{record['t']:.1f}", f"{record['excess_of_truth']:.1f}", str(record["ambiguous"])
            rows.append([*where, f"{name}: {', '.join(change)}", *told])
    header = ["system", "noise", "seed", "added (+), missed (−)", "t", "score of the truth − found", "warnings"]
    return markdown(header, rows)


# Picture

STYLES = {
    DISCOVERY: {"marker": "o", "linestyle": "-", "color": "black"},
    WEAK: {"marker": "s", "linestyle": "--", "color": "tab:blue"},
    DIFFERENCES: {"marker": "^", "linestyle": ":", "color": "tab:red"},
}
LABELS = {
    DISCOVERY: "Discovery, told nothing",
    WEAK: "PySINDy weak form + STLSQ, tuned by the truth",
    DIFFERENCES: "PySINDy differences + STLSQ, tuned by the truth",
}


def picture(path: Path = PICTURE) -> None:
    """Draw the share of exact draws against noise, mean over systems, on draws that all methods had."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    shared = on_shared_draws(recorded())
    for method, style in STYLES.items():
        noises = _noises([record for record in shared if record["method"] == method])
        shares = [_mean_share(shared, method, noise) for noise in noises]
        axes.plot(100 * np.array(noises), shares, **style, label=LABELS[method])
    axes.set(xscale="log", xlabel="noise, % of the standard deviation", ylim=(-0.03, 1.03))
    axes.set(ylabel="share of draws with the exact support", title=f"{len(_by_system(shared))} PDEs")
    ticks = [100 * noise for noise in _noises(shared)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes.set_xticks([], minor=True)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower left")
    figure.savefig(path, dpi=150)


def _mean_share(records: Sequence[Record], method: str, noise: float) -> float:
    groups = _by_system([r for r in records if r["method"] == method and r["noise"] == noise])
    return float(np.mean([np.mean([record["exact"] for record in group]) for group in groups.values()]))


def main() -> None:
    """Run, print the tables, or draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="do the trials that are missing")
    run.add_argument("--systems", help="names, separated by commas (default: all)")
    run.add_argument("--noises", help="fractions of the standard deviation, separated by commas")
    run.add_argument("--draws", type=int, help="draws at every noise")
    run.add_argument("--seed", type=int, default=FIRST_SEED, help="seed of the first draw")
    run.add_argument("--peers", action="store_true", help=f"PySINDy too, on the first {PEER_DRAWS} draws")
    commands.add_parser("table", help="print the tables")
    commands.add_parser("picture", help="draw docs/discovery_noise.png")
    commands.add_parser("page", help="rewrite the tables of docs/fields_noise_table.md")
    options = parser.parse_args()
    with threadpool_limits(1):
        if options.command == "table":
            print(tables())
        elif options.command == "picture":
            picture()
        elif options.command == "page":
            rewrite_page()
        else:
            run_trials(options)


if __name__ == "__main__":
    main()
