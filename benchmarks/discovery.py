"""How much noise the weak form of Discovery stands on every system, next to PySINDy tuned by the truth.

    python -m benchmarks.discovery run [--systems a,b] [--noises .01,.03] [--draws N] [--seed 1000] [--peers]
    python -m benchmarks.discovery run coverage      # 95 % intervals over 100 draws of Lorenz 63
    python -m benchmarks.discovery table             # Markdown of all that was recorded
    python -m benchmarks.discovery picture           # docs/discovery_noise.png
    python -m benchmarks.discovery page              # output and tables of docs/discovery.md

Draw i has noise of seed `--seed` + i. Without options: `PLAN`. Every trial is a line of `results/discovery.jsonl.gz`; a
run that was stopped goes on from there; trials recorded with other code that finds equations are done again.
`table` also writes the means to `results/discovery.json`. Times are CPU times of one thread.

A trial of Discovery (form="weak"; `benchmarks.equations` has the trajectory form) is told the library and nothing else.
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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ardea.core.subsets import Support, penalty
from ardea.dynamics import AmbiguityWarning, Discovery, Polynomials, systems
from ardea.dynamics.systems import ALL_MAPS, ALL_ODES, ALL_PDES, Pde, System
from benchmarks.discovery_peers import compared, with_differences, with_weak_form
from benchmarks.process import ROOT, Record, cpu_limit, machine, save_json
from benchmarks.pysindy_page import regenerated
from benchmarks.tables import machine_line, markdown, seconds

Array = NDArray[np.float64]

RECORDS = ROOT / "benchmarks" / "results" / "discovery.jsonl.gz"
RESULTS = RECORDS.with_name("discovery.json")
PAGE = ROOT / "docs" / "discovery.md"
TABLES_BEGIN, TABLES_END = "<!-- tables -->", "<!-- end of tables -->"
PICTURE = ROOT / "docs" / "discovery_noise.png"
ALL_SYSTEMS: dict[str, Callable[[], System]] = {**ALL_ODES, **ALL_MAPS, **ALL_PDES}
TUNED_ON = ("lorenz63", "lorenz96", "selkov", "cubic_oscillator", "van_der_pol", "hopf", "logistic_map")
DISCOVERY, DIFFERENCES, WEAK = "Discovery", "STLSQ", "weak STLSQ"
FIRST_SEED, PEER_DRAWS, COVERAGE_DRAWS = 1000, 3, 100

SEARCHING = (
    *("differences", "field_equation", "field_terms", "fields", "libraries", "rows", "search", "series", "terms"),
    "whitening",
)
# CPU seconds after which a trial counts as failed.
LIMIT, PEER_LIMIT = 40.0, 300.0
# Noise level: number of draws.
PLAN_STATES = {0.01: 10, 0.03: 5, 0.05: 5, 0.1: 5, 0.2: 5}
PLAN_FIELDS = {0.001: 3, 0.01: 3, 0.1: 3, 0.25: 3, 0.5: 3}
PLAN = {
    "lorenz63": {**PLAN_STATES, 0.01: 20, 0.03: 10},
    "lorenz96": {0.01: 1, 0.05: 1, 0.1: 1},
}


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
    trials = []
    for name in names:
        plan = PLAN.get(name, PLAN_FIELDS if name in ALL_PDES else PLAN_STATES)
        if options.noises:
            plan = {float(noise): plan.get(float(noise), 5) for noise in options.noises.split(",")}
        for noise, draws in plan.items():
            for draw in range(options.draws or draws):
                methods = [DISCOVERY]
                if options.peers and draw < PEER_DRAWS:
                    methods += [DIFFERENCES] if name in ALL_MAPS else [DIFFERENCES, WEAK]
                trials += [Trial(method, name, noise, options.seed + draw) for method in methods]
    return trials


def run_systems(options: argparse.Namespace) -> None:
    """Do the trials that are not recorded yet."""
    code = source_stamp()
    done = {_key(record) for record in recorded() if record["method"] != DISCOVERY or record["code"] == code}
    trials = planned(options)
    missing = [trial for trial in trials if _key(asdict(trial)) not in done]
    for trial in tqdm(missing, "discovery", len(trials), initial=len(trials) - len(missing), disable=None):
        _append({**asdict(trial), "code": code, **measured(trial)})


def source_stamp() -> str:
    """Return a stamp of the code under test: all of `ardea.dynamics` that finds equations."""
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


def with_discovery(system: System, t: Array, x: Array, level: float) -> Record:
    """Fit Discovery, told only the library."""
    space = {"space": system.space} if isinstance(system, Pde) else {}
    model = Discovery(system.library, form="weak", discrete_time=system.kind == "map")
    start = time.process_time()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model.fit(x, t, feature_names=list(system.feature_names), **space)
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


# Coverage


def run_coverage(options: argparse.Namespace) -> None:
    """Count how often 95 % intervals hold the true coefficients of Lorenz 63 (1 % noise, quintic library)."""
    system, draws = systems.lorenz63(), options.draws or COVERAGE_DRAWS
    truth = system.true_coefficients(Polynomials(5))
    held, exact = [], 0
    for seed in tqdm(range(options.seed, options.seed + draws), "coverage", unit="draws", disable=None):
        t, x = system.noisy(0.01, seed)
        model = Discovery(Polynomials(5), form="weak").fit(x, t, feature_names=list(system.feature_names))
        exact += bool(np.array_equal(model.coef_ != 0, truth != 0))
        for equation, row in zip(model.equations_, truth, strict=True):
            if set(equation.support) == set(np.flatnonzero(row).tolist()):
                distance = np.abs(equation.coefficients - row[list(equation.support)])
                held += (distance <= equation.posterior.half_widths(0.95)).tolist()
    _save("coverage", {"draws": draws, "exact": exact, "intervals": len(held), "held": float(np.mean(held))})


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


def _save(part: str, content: Any) -> None:
    save_json(RESULTS, {**_saved(), part: content})


# Tables


def tables() -> str:
    """Return all tables; save the means."""
    records = recorded()
    own = [record for record in records if record["method"] == DISCOVERY]
    saved = {**_saved(), "machine": machine(), "systems": means(records)}
    save_json(RESULTS, saved)
    stamps = ", ".join(sorted({record["code"] for record in own}))
    parts = [f"{machine_line(saved['machine'])} Code of `ardea.dynamics`: {stamps}."]
    for title, names in (("ODEs and maps", [*ALL_ODES, *ALL_MAPS]), ("PDEs", list(ALL_PDES))):
        chosen = [record for record in records if record["system"] in names]
        if chosen:
            parts += [f"### {title}", noise_table(chosen), detail_table(chosen), peer_table(chosen)]
    parts += ["### Wrong supports", failure_table(own)]
    if "coverage" in saved:
        parts += ["### Coverage of the intervals", coverage_line(saved["coverage"])]
    return "\n\n".join(parts)


def coverage_line(coverage: Record) -> str:
    """Return the sentence about the intervals."""
    return (
        f"Lorenz 63, 1 % noise, quintic library: {100 * coverage['held']:.1f} % of {coverage['intervals']} intervals "
        f"of 95 % hold the true coefficient; {coverage['exact']} of {coverage['draws']} draws have the exact support."
    )


def rewrite_page() -> None:
    """Run the code of docs/discovery.md, and write what it prints and the tables of today into the page."""
    before, rest = regenerated(PAGE.read_text(encoding="utf-8")).split(TABLES_BEGIN)
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


def _label(name: str) -> str:
    return name + ("" if name in TUNED_ON else " *")


def noise_table(records: Sequence[Record]) -> str:
    """Return exact supports of Discovery by noise, with the mean t of the weakest true term; * marks held-out systems.

    "Stands" is the largest noise up to which at least nine of ten draws were exact.
    """
    own = [record for record in records if record["method"] == DISCOVERY]
    noises, rows = _noises(own), []
    for name, group in _by_system(own).items():
        cells, stands, broken = [], "–", False
        for noise in noises:
            draws = [record for record in group if record["noise"] == noise]
            t = [record["t"] for record in draws if "t" in record]
            cells.append(f"{_count(draws)} (t {np.mean(t):.3g})" if t else _count(draws))
            broken |= bool(draws) and np.mean([record["exact"] for record in draws]) < 0.9
            stands = stands if broken or not draws else f"{100 * noise:g} %"
        rows.append([_label(name), *cells, stands])
    return markdown(["exact (t of the weakest term)", *(f"{100 * noise:g} %" for noise in noises), "stands"], rows)


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
        rows.append([_label(name), *errors, spread, f"{seconds(min(times))}–{seconds(max(times))}"])
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
        rows.append([_label(name), *cells])
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

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    groups = {"ODEs and maps": [*ALL_ODES, *ALL_MAPS], "PDEs": list(ALL_PDES)}
    shared = on_shared_draws(recorded())
    for panel, (title, names) in zip(panels, groups.items(), strict=True):
        chosen = [record for record in shared if record["system"] in names]
        for method, style in STYLES.items():
            noises = _noises([record for record in chosen if record["method"] == method])
            shares = [_mean_share(chosen, method, noise) for noise in noises]
            panel.plot(100 * np.array(noises), shares, **style, label=LABELS[method])
        panel.set(xscale="log", xlabel="noise, % of the standard deviation", ylim=(-0.03, 1.03))
        panel.set_title(f"{len({record['system'] for record in chosen})} {title}")
        ticks = [100 * noise for noise in _noises(chosen)]
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        panel.set_xticks([], minor=True)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("share of draws with the exact support")
    panels[0].legend(fontsize=8, loc="lower left")
    figure.savefig(path, dpi=150)


def _mean_share(records: Sequence[Record], method: str, noise: float) -> float:
    groups = _by_system([r for r in records if r["method"] == method and r["noise"] == noise])
    return float(np.mean([np.mean([record["exact"] for record in group]) for group in groups.values()]))


def main() -> None:
    """Run, print the tables, or draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="do the trials that are missing")
    run.add_argument("what", nargs="?", default="systems", choices=("systems", "coverage"))
    run.add_argument("--systems", help="names, separated by commas (default: all)")
    run.add_argument("--noises", help="fractions of the standard deviation, separated by commas")
    run.add_argument("--draws", type=int, help="draws at every noise")
    run.add_argument("--seed", type=int, default=FIRST_SEED, help="seed of the first draw")
    run.add_argument("--peers", action="store_true", help=f"PySINDy too, on the first {PEER_DRAWS} draws")
    commands.add_parser("table", help="print the tables")
    commands.add_parser("picture", help="draw docs/discovery_noise.png")
    commands.add_parser("page", help="rewrite the output and the tables of docs/discovery.md")
    options = parser.parse_args()
    with threadpool_limits(1):
        if options.command == "table":
            print(tables())
        elif options.command == "picture":
            picture()
        elif options.command == "page":
            rewrite_page()
        else:
            {"systems": run_systems, "coverage": run_coverage}[options.what](options)


if __name__ == "__main__":
    main()
