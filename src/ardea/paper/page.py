"""The report page: printed, replayed and corrected numbers side by side, figures, every claim, the misprints.

The words are in page.md.jinja. authors.csv holds numbers of the paper and of its authors, to set beside ours: Table 1
as printed, and the means of the per-trial results that the authors published with their code (snagcliffs/SparseARD,
MIT, saved_results/), another run of theirs; for Lorenz 63 summed over the three equations; for ks ℓ² and ℓ¹ are
against coefficients of the wrong sign.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ardea.paper.catalogue import EXPERIMENTS, experiment_named
from ardea.paper.claims import Claim, all_claims
from ardea.paper.experiment import VARIANTS, Experiment, ExperimentError, Scale, Variant, duration
from ardea.paper.regressions import METHODS, METRICS, OURS
from ardea.paper.runner import folder_of, from_csv, to_csv, write
from ardea.paper.showing import comparison, markdown, method_means

if TYPE_CHECKING:
    from pandas import DataFrame

# Convention: records beyond this size (characters) go to the page's folder as means and standard errors.
LARGEST_COPY = 60_000
# Convention: ℓ² errors closer than this are called equal; the authors' numbers have about seven digits.
L2_TOLERANCE = 1e-3
COPIED = ("table.md", "figure.png", "environment.json")


@dataclass(frozen=True)
class Output:
    """What one run of `reproduce` left behind."""

    experiment: Experiment
    variant: Variant
    folder: Path
    records: DataFrame
    environment: dict[str, Any]


Outputs = dict[tuple[str, Variant], Output]


def read_outputs(out: Path, scale: Scale) -> Outputs:
    """Return the outputs of all experiments in a folder, at one scale and seed 0."""
    found: Outputs = {}
    for experiment in EXPERIMENTS:
        for variant in experiment.core_seconds:
            folder = folder_of(out, experiment, experiment.settings(scale, variant))
            if (folder / "records.csv").exists():
                records = from_csv((folder / "records.csv").read_text(encoding="utf-8"))
                environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
                found[experiment.name, variant] = Output(experiment, variant, folder, records, environment)
    return found


def write_page(out: Path, to: Path, scale: Scale, authors: Path | None = None) -> Path:
    """Write README.md from the results in `out` to a folder, with copies of the small ones where that is another.

    `authors` are the authors' per-trial results (CSV), to count how many rows of the replay equal theirs.
    """
    outputs = read_outputs(out, scale)
    if not outputs:
        raise ExperimentError(f"{out} holds no results at {scale} scale: run `ardea reproduce all --scale {scale}`.")
    if to.resolve() != out.resolve():
        for output in outputs.values():
            _copy(output, to / output.folder.relative_to(out))
    write(to / "README.md", page_text(outputs, out, scale, authors))
    return to / "README.md"


def _copy(output: Output, target: Path) -> None:
    for name in COPIED:
        if (output.folder / name).exists():
            write(target / name, (output.folder / name).read_bytes())
    text = (output.folder / "records.csv").read_text(encoding="utf-8")
    if len(text) <= LARGEST_COPY:
        write(target / "records.csv", text)
    else:
        write(target / "summary.csv", to_csv(summary(output.records, output.experiment.keys)))


def summary(records: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return mean and standard error over trials of every metric, one row per combination of keys."""
    groups = records.drop(columns="trial").groupby(list(keys), sort=False)
    table = groups.size().to_frame("n")
    for metric in groups.mean(numeric_only=True):
        table[metric] = groups[metric].mean()
        table[f"{metric}_se"] = groups[metric].sem().fillna(0.0)
    return table.reset_index()


def page_text(outputs: Outputs, out: Path, scale: Scale, authors: Path | None = None) -> str:
    """Return the whole page as Markdown."""
    from jinja2 import Environment, StrictUndefined

    form = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    form.filters |= {"duration": duration, "cell": lambda text: text.replace("|", r"\|")}
    template = (files("ardea.paper") / "page.md.jinja").read_text(encoding="utf-8")
    claims = [(claim, *_verdict(outputs, claim)) for claim in all_claims()]
    return form.from_string(template).render(
        out=out,
        scale=scale,
        outputs=list(outputs.values()),
        noise_grid=_noise_grid(outputs),
        collapse=_collapse(outputs, scale),
        numbers=[table for name in _saved_runs() for table in _numbers(outputs, name, scale)],
        replay=None if authors is None else _replay(outputs, authors),
        claims=claims,
        tally=Counter(verdict for _, verdict, _ in claims),
    )


def authors_numbers() -> DataFrame:
    """Return Table 1 as printed and the means of the authors' saved runs."""
    return from_csv((files("ardea.paper") / "authors.csv").read_text(encoding="utf-8"))


def _saved_runs() -> list[str]:
    return list(authors_numbers()["experiment"].unique())


def _shown(outputs: Outputs, name: str, variant: Variant) -> DataFrame | None:
    """Return the rows that the paper's figure shows, None where there are none."""
    output = outputs.get((name, variant))
    return None if output is None else output.experiment.shown(output.records)


def _noise_grid(outputs: Outputs) -> dict[str, Any] | None:
    """Return what the noise rule does to plain ARD, ARDvi and the best of the paper's methods (linear)."""
    found: dict[str, Any] = {}
    for variant in VARIANTS:
        records = _shown(outputs, "linear", variant)
        if records is None:
            return None
        means = method_means(records).loc[list(METHODS)]
        best = means["l2"].idxmin()
        found[variant] = dict(means.loc[["ARD", "ARDvi"], "added"]) | {"best": best, "error": means.loc[best, "l2"]}
    return found


def _collapse(outputs: Outputs, scale: Scale) -> dict[str, Any] | None:
    """Return what learning σ² does to plain ARD where columns outnumber rows (Fourier)."""
    records = _shown(outputs, "fourier", "corrected")
    if records is None:
        return None
    plain, last = (records[records["method"] == method] for method in ("ARD", "MAP-STSBL"))
    n_terms = experiment_named("fourier").settings(scale, "corrected").sizes["terms"]
    added, warned, empty = plain["added"].mean(), int(plain["warned"].sum()), int((last["missed"] == n_terms).sum())
    return {"added": added, "warned": warned, "empty": empty, "trials": len(plain)}


def _numbers(outputs: Outputs, name: str, scale: Scale) -> list[tuple[str, str]]:
    """Return a title and a table: the means of every source side by side, one row per method."""
    table = authors_numbers().query("experiment == @name")
    sources = {source: part.set_index("method")[list(METRICS)] for source, part in table.groupby("source", sort=False)}
    for title, variant in (("replayed", VARIANTS[1]), ("corrected", VARIANTS[0])):
        records = _shown(outputs, name, variant)
        if records is not None:
            sources[title] = method_means(records)
    present = [method for method in (*METHODS, *OURS) if any(method in source.index for source in sources.values())]
    rows = [
        [f"{method} (ours)" if method in OURS else method, *(_cell(source, method) for source in sources.values())]
        for method in present
    ]
    experiment = experiment_named(name)
    tables = [(f"### {name} ({experiment.label})", markdown(["method", *sources], rows))]
    if name == "ks" and (name, "corrected") in outputs:
        records, sizes = outputs[name, "corrected"].records, experiment.settings(scale, "corrected").sizes
        title = f"All {sizes['n_x'] * sizes['n_t']:,} rows at once (corrected):"
        tables.append((title, comparison(records[records["rows"] == "all"])))
    return tables


def _cell(source: DataFrame, method: str) -> str:
    return " / ".join(f"{value:.3g}" for value in source.loc[method]) if method in source.index else "–"


def agreement(experiment: str, replayed: DataFrame, theirs: DataFrame) -> tuple[int, int, list[str]]:
    """Return how many rows of a replay equal the authors', how many were compared, and which differ.

    `theirs` has the columns experiment, trial, dimension, method, l2, l1, added, missed.
    """
    keys = [key for key in ("trial", "dimension", "method") if key in replayed]
    both = replayed.merge(theirs[theirs["experiment"] == experiment], on=keys, suffixes=("", "_theirs"))
    same = (both["l2"] - both["l2_theirs"]).abs() <= L2_TOLERANCE
    same &= (both["added"] == both["added_theirs"]) & (both["missed"] == both["missed_theirs"])
    different = [f"trial {row.trial}, {row.method}" for row in both[~same].itertuples()]
    return int(same.sum()), len(both), different


def _replay(outputs: Outputs, authors: Path) -> dict[str, tuple[int, int, list[str]]]:
    """Return for every experiment that was replayed how far it agrees with the authors' file."""
    theirs = from_csv(authors.read_text(encoding="utf-8"))
    replayed = {name: outputs[name, "published"].records for name in _saved_runs() if (name, "published") in outputs}
    return {name: agreement(name, records, theirs) for name, records in replayed.items()}


def _verdict(outputs: Outputs, claim: Claim) -> tuple[str, str]:
    found = [outputs.get((claim.experiment, variant)) for variant in VARIANTS[::-1]]
    return claim.verdict(*(o and (o.records if claim.rows == "all" else o.experiment.shown(o.records)) for o in found))
