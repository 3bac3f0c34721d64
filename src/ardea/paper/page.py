"""The command ``reproduce NAME|all|list|report``; and the report page.

The page says what was claimed, what we found, numbers with their errors, every sentence, the misprints.

The words are in page.md.jinja. authors.csv holds Table 1 as printed and the per-trial results that the authors
published with their code (snagcliffs/SparseARD, MIT, saved_results/), another run of theirs; of lorenz96 the trial is
the equation; for ks ℓ² and ℓ¹ are against coefficients of the wrong sign.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ardea.dynamics.differences import difference_weights
from ardea.paper import example_claims, inference, tables, theory_claims
from ardea.paper.catalogue import EXPERIMENTS, experiment_named
from ardea.paper.experiment import (
    CHOICES,
    METHODS,
    READINGS,
    SCALES,
    SLIPS,
    VARIANTS,
    Experiment,
    Scale,
    Settings,
    duration,
    run,
    store_of,
)
from ardea.paper.inference import Finding, steadiness, uncorrected, verdict
from ardea.paper.regressions import METRICS, WIDE_GRIDS
from ardea.paper.replay import TSBR_THRESHOLD
from ardea.tables import write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

# Convention: ℓ² errors closer than this are called equal; the authors' numbers have about seven digits.
L2_TOLERANCE = 1e-3
# Experiments whose trials decide verdicts, not closed forms.
RESAMPLED = ("kappa", "linear", "fourier", "lorenz63", "lorenz96", "ks")
CHECKS = vars(theory_claims) | vars(example_claims)
# Kinds of sentences that are counted apart.
KINDS = {
    "theory": "results of theory (Secs. 1–5, App. C)",
    "example": "results on examples (Secs. 5–7)",
    "expectation": "expectations and conjectures, tested here",
    "misprint": "as printed; [misprints](#misprints)",
}
COPIED = ("table.md", "figure.svg", "environment.json", "records.csv.gz")


class Output(NamedTuple):
    """What one run of `reproduce` left behind."""

    experiment: Experiment
    settings: Settings
    folder: Path
    records: DataFrame
    environment: dict[str, Any]

    @property
    def shown(self) -> DataFrame:
        """The rows that the paper's figure shows: of the published code those without a correction."""
        return uncorrected(self.experiment.shown(self.records))

    @property
    def theirs(self) -> DataFrame:
        """Those of them in trials that the authors ran, too."""
        return self.shown[self.shown["trial"] < self.settings.sizes.get("published_trials", self.settings.n_trials)]


Outputs = dict[tuple[str, str], Output]


def read_outputs(out: Path, scale: Scale) -> Outputs:
    """Return the outputs of all experiments in a folder, at one scale and seed 0."""
    import pandas as pd

    found: Outputs = {}
    for experiment in EXPERIMENTS:
        for variant in VARIANTS:
            settings = experiment.settings(scale, variant)
            folder = experiment.folder(out, settings)
            if (folder / "records.csv.gz").exists():
                records = pd.read_csv(folder / "records.csv.gz")
                environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
                found[experiment.name, variant] = Output(experiment, settings, folder, records, environment)
    return found


def write_page(out: Path, to: Path, scale: Scale) -> Path:
    """Write README.md from the results in `out` to a folder, with copies where that is another one."""
    outputs = read_outputs(out, scale)
    if not outputs:
        raise ValueError(f"{out} holds no results at {scale} scale: run `ardea reproduce all --scale {scale}`.")
    for output in outputs.values() if to.resolve() != out.resolve() else ():
        target = to / output.folder.relative_to(out)
        target.mkdir(parents=True, exist_ok=True)
        for name in COPIED:
            write_whole(target / name, (output.folder / name).read_bytes())
    return write_whole(to / "README.md", page_text(outputs, out, scale))


def page_text(outputs: Outputs, out: Path, scale: Scale) -> str:
    """Return the whole page as Markdown. At quick scale nothing is compared with the paper: its data are others."""
    from jinja2 import Environment, StrictUndefined

    form = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    form.filters |= {"duration": duration, "cell": _cell}
    compared = scale == "paper"
    theirs = dict(iter(stored("authors.csv").groupby("experiment"))) if compared else {}
    asked = stored("claims.csv").itertuples() if compared else ()
    judged = [(claim, *judgement(outputs, theirs, claim)) for claim in asked]
    names = [one.name for one in EXPERIMENTS if one.name in set(stored("authors.csv")["experiment"])]
    bound = {n: _as_in_the_paper(outputs[n, "corrected"].records) for n in names if (n, "corrected") in outputs}
    return form.from_string((files("ardea.paper") / "page.md.jinja").read_text(encoding="utf-8")).render(
        out=out,
        compared=compared,
        outputs=outputs,
        slips=SLIPS,
        readings=READINGS,
        printed=printed_distance(theirs["linear"]) if compared else None,
        choices=CHOICES,
        tables=tables,
        inference=inference,
        numbers={name: (experiment_named(name), _numbers(outputs, theirs, name)) for name in names},
        ablations={name: _ablation(outputs, name) for name in names},
        bound=bound,
        replay={
            n: agreement(outputs[n, "published"].records, theirs[n]) for n in theirs if (n, "published") in outputs
        },
        claims=judged,
        tally=tables.tally([(KINDS[kind], word) for kind in KINDS for one, word, *_ in judged if one.kind == kind]),
        misprints=list(stored("misprints.csv").itertuples(index=False)),
        mean=lambda name, variant, method, metric: (
            outputs[name, variant].shown.groupby("method")[metric].mean()[method]
        ),
        paired=lambda name, metric, kept: inference.by_trial(outputs[name, "corrected"].shown, metric)[kept].dropna(),
        wider=lambda name: (
            (name, "corrected") in outputs and "TSBR" in set(outputs[name, "corrected"].records["method"])
        ),
        methods=list(METHODS),
        tsbr_threshold=TSBR_THRESHOLD,
        lam=len(WIDE_GRIDS.lam) - 1,
        eta=len(WIDE_GRIDS.eta),
        orthogonal={key: one.records for key, one in outputs.items() if key[0].startswith("orthogonal")},
        ends=[float(np.linalg.norm(difference_weights(points, 1))) for points in (range(7), range(-3, 4))],
        fourth=float(np.linalg.norm(difference_weights(tuple(range(-4, 5)), 4))) / (32 * np.pi / 512) ** 4,
        known=lambda *names: all((name, variant) in outputs for name in names for variant in VARIANTS),
    )


def stored(name: str) -> DataFrame:
    """Return a table that comes with the package."""
    import pandas as pd

    return pd.read_csv(files("ardea.paper") / name, dtype={"section": str})


def _cell(text: str) -> str:
    """Return what stands in a cell of a table: bars escaped, and the sign of a number a minus."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text).replace("|", r"\|")


def _asked(outputs: Outputs, theirs: dict[str, DataFrame], name: str, rows: str) -> dict[str, DataFrame | None]:
    """Return the records of an experiment that a sentence is asked of, by source."""
    found: dict[str, DataFrame | None] = {}
    if rows != "all" and name in theirs:
        own = theirs[name]
        found["authors"] = experiment_named(name).shown(own[own["source"] == "authors"])
    for variant, title in (("published", "replay"), ("corrected", "corrected")):
        run = outputs.get((name, variant))
        if run is not None:
            found[title] = {"shown": run.shown, "theirs": run.theirs, "all": uncorrected(run.records)}[rows]
    return found


def judgement(outputs: Outputs, theirs: dict[str, DataFrame], claim: Any) -> tuple[str, str, str]:
    """Return verdict, evidence and margin of a row of claims.csv; its column `check` names a function.

    The authors' own records count; where they lack what the sentence is about, the replay of their code. `rows` says
    whether all rows count, those of the paper's figure (`shown`), or of these the trials that the authors ran
    (`theirs`). A sentence about two experiments is asked of the records of both.
    """
    import pandas as pd

    check, names = CHECKS[claim.check], claim.experiment.split(" + ")
    asked = [_asked(outputs, theirs, name, claim.rows) for name in names]
    found: list[tuple[str, Finding]] = []
    for title in ("authors", "replay", "corrected"):
        parts = [part for part in (one.get(title) for one in asked) if part is not None]
        if len(parts) < len(names) or (title == "replay" and found):
            continue
        several = len(names) > 1
        named = [part.assign(experiment=name) for part, name in zip(parts, names, strict=True)]
        records = pd.concat(named) if several else parts[0]
        finding = check(records)
        if finding is not None:
            drawn = claim.rows != "all" and claim.experiment in RESAMPLED
            steady = steadiness(check, records) if drawn else np.nan
            told = "" if np.isnan(steady) else f"the same in {100 * steady:.0f} % of resamples"
            margin = ", ".join(text for text in (finding.margin, told) if text)
            found.append((title, finding._replace(margin=margin)))
    return verdict(found)


def _as_in_the_paper(records: DataFrame) -> DataFrame:
    """Return the rows of the paper's data and choice, before metrics are summed over equations."""
    for column, value in (("criterion", "oracle"), ("rows", "sample")):
        records = records[records[column] == value] if column in records else records
    return records


def _numbers(outputs: Outputs, theirs: dict[str, DataFrame], name: str) -> str:
    """Return a table: for every method of the paper the means of every source, with standard errors."""
    experiment, sources = experiment_named(name), {}
    if name in theirs:
        for source, part in theirs[name].groupby("source", sort=False):
            sources[str(source)] = experiment.shown(part)
    if (name, "published") in outputs:
        sources["replayed"] = outputs[name, "published"].shown
    if (name, "corrected") in outputs:
        run = outputs[name, "corrected"]
        if run.theirs["trial"].nunique() < run.shown["trial"].nunique():
            sources["corrected, the authors' trials"] = run.theirs
        sources["corrected"] = run.shown
    cells = {source: inference.mean_cells(records) for source, records in sources.items()}
    trials = {source: records["trial"].nunique() for source, records in sources.items()}
    rows = [
        [method, source, *cells[source].loc[method, list(METRICS)], "–" if "printed" in source else str(trials[source])]
        for method in METHODS
        for source in sources
        if method in cells[source].index
    ]
    return tables.markdown(["method", "source", *tables.METRIC_NAMES.values(), "trials"], rows)


def printed_distance(theirs: DataFrame) -> tuple[float, int]:
    """Return how many standard errors Table 1 is off the authors' records at most, and how many numbers it has."""
    own = theirs[theirs["source"] == "authors"].groupby("method")[list(METRICS)]
    printed = theirs[theirs["source"] != "authors"].set_index("method")[list(METRICS)]
    gaps = ((printed - own.mean()) / own.sem()).abs()
    return float(gaps.max(axis=None)), gaps.size


def _ablation(outputs: Outputs, name: str) -> str:
    """Return what each correction alone does; nothing where it was not run."""
    runs = [outputs[name, variant] for variant in VARIANTS[::-1] if (name, variant) in outputs]
    if len(runs) < 2 or "all" not in set(runs[0].records["correction"]):
        return ""
    published, corrected = (run.experiment.shown(run.records) for run in runs)
    return tables.ablation_table(published, corrected)


def agreement(replayed: DataFrame, theirs: DataFrame) -> tuple[int, int, list[str]]:
    """Return how many rows of a replay equal the authors', how many were compared, and which differ.

    `theirs` has the columns trial, dimension, method, l2, l1, added, missed.
    """
    keys = [key for key in ("trial", "dimension", "method") if key in replayed]
    theirs = theirs[theirs["source"] == "authors"] if "source" in theirs else theirs
    both = uncorrected(replayed).merge(theirs, on=keys, suffixes=("", "_theirs"))
    same = (both["l2"] - both["l2_theirs"]).abs() <= L2_TOLERANCE
    same &= (both["added"] == both["added_theirs"]) & (both["missed"] == both["missed_theirs"])
    different = [f"trial {row.trial}, {row.method}" for row in both[~same].itertuples()]
    return int(same.sum()), len(both), different


# The command.


def reproduce(options: argparse.Namespace) -> int:
    """Do what the command line asks for and return the exit code."""
    if options.name == "report":
        print(write_page(options.out, options.to or options.out, options.scale))
        return 0
    try:
        (_list if options.name == "list" else _run_experiments)(options)
    except KeyboardInterrupt:
        print("Stopped. Finished trials are kept; the same command goes on from there.", file=sys.stderr)
        return 130  # convention of shells
    return 0


def _run_experiments(options: argparse.Namespace) -> None:
    if options.variant == "published" and options.seed != 0:
        raise ValueError("--seed is for the corrected variant: the published one replays the authors' seed.")
    if not 0 <= options.seed < 2**32:
        raise ValueError(f"--seed must be a whole number from 0 to 2**32 - 1; got {options.seed}.")
    if options.jobs == 0:
        raise ValueError("--jobs must not be 0: give a number of processes, or -1 for all cores.")
    chosen = EXPERIMENTS if options.name == "all" else [experiment_named(options.name)]
    chosen = [experiment for experiment in chosen if options.variant in experiment.core_seconds]
    if not chosen:
        why = "σ is known and nothing in the authors' code changes it. Run the corrected one."
        raise ValueError(f"{options.name} has no published variant: {why}")
    for experiment in chosen:
        start = time.monotonic()
        settings = experiment.settings(options.scale, options.variant, options.seed)
        asked = {"jobs": options.jobs, "beyond": options.beyond, "command": _command(options)}
        folder = run(experiment, settings, options.out, **asked)
        if options.name != "all":
            print((folder / "table.md").read_text(encoding="utf-8"))
        print(f"{experiment.name}: {folder} ({duration(time.monotonic() - start)})")


def _command(options: argparse.Namespace) -> str:
    parts = ["ardea reproduce", options.name, f"--scale {options.scale}", f"--variant {options.variant}"]
    parts += ["--beyond"] * options.beyond + [f"--jobs {options.jobs}"] * (options.jobs is not None)
    return " ".join(parts + [f"--seed {options.seed}"] * (options.seed != 0))


def _list(options: argparse.Namespace) -> None:
    """Print what there is, how long it takes here, and what is done, at the scale and variant asked for."""
    print(f"Experiments at {options.scale} scale, {options.variant} variant; results in {options.out}.")
    print("Time is for one core: measured from the trials recorded here, else an estimate (~).\n")
    print(f"{'name':<20}{'state':<16}{'time':<14}{'in the paper':<18}what")
    for experiment in EXPERIMENTS:
        if options.variant not in experiment.core_seconds:
            continue
        settings = experiment.settings(options.scale, options.variant, options.seed)
        total, store = settings.n_trials, store_of(options.out, experiment, settings)
        seconds = [trial.seconds for trial in store.finished(total).values()]
        state = "done" if len(seconds) == total else f"{len(seconds)} of {total}" if seconds else "not run"
        guess = experiment.core_seconds[options.variant][SCALES.index(options.scale)]
        cost = duration(sum(seconds) / len(seconds) * total) if seconds else f"~ {duration(guess)}"
        print(f"{experiment.name:<20}{state:<16}{cost:<14}{experiment.label:<18}{experiment.what}")
