"""The report page: printed, replayed and corrected numbers side by side, figures, every claim, the misprints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ardea.paper import claims_examples, claims_theory
from ardea.paper.authors import SAVED_RUNS, TABLE_1, Means, agreement
from ardea.paper.catalogue import experiment_named
from ardea.paper.changes import what_changes
from ardea.paper.claims import Claim
from ardea.paper.experiment import VARIANTS, Experiment, ExperimentError, Scale
from ardea.paper.misprints import MISPRINTS
from ardea.paper.records import Records, from_csv, summary, to_csv, write_whole
from ardea.paper.results import Results, means, shown_rows
from ardea.paper.study import OURS
from ardea.paper.tables import comparison, markdown
from ardea.progress import duration

CLAIMS: tuple[Claim, ...] = (*claims_theory.CLAIMS, *claims_examples.CLAIMS)
# Records beyond this size go to the page's folder as means and standard errors.
LARGEST_COPY = 60_000
# Why rows of a replay differ from the authors', where any do.
DIFFERENCES = {
    "linear": (
        "In the linear rows that differ, the authors' LARS leaves one coefficient at rounding size where an exact "
        "lasso has zero. It counts as a term, and where AICc is close it changes the choice between ARD and the "
        "smallest λ."
    ),
    "fourier": (
        "In the Fourier row that differs, plain ARD interpolates the data (237 terms, σ² near the bottom of the grid): "
        "the search that starts there follows rounding errors."
    ),
}
COPIED = ("table.md", "figure.png", "environment.json")


def write_page(out: Path, to: Path, scale: Scale, authors: Path | None = None) -> Path:
    """Write README.md to a folder, with copies of the small outputs where that is another folder.

    Parameters
    ----------
    out : Path
        Folder with the results of `reproduce`.
    to : Path
        Folder for the page.
    scale : {"quick", "paper"}
        Which results.
    authors : Path, optional
        The authors' per-trial results (CSV), to count how many rows of the replay equal theirs.

    Returns
    -------
    Path
        The page.
    """
    results = Results(out, scale)
    if not list(results.available()):
        raise ExperimentError(f"{out} holds no results at {scale} scale: run `ardea reproduce all --scale {scale}`.")
    if to.resolve() != out.resolve():
        for experiment, _, folder in results.available():
            _copy(experiment, folder, to / folder.relative_to(out))
    page = to / "README.md"
    write_whole(page, page_text(results, authors))
    return page


def _copy(experiment: Experiment, source: Path, target: Path) -> None:
    for name in COPIED:
        if (source / name).exists():
            write_whole(target / name, (source / name).read_bytes())
    records = (source / "records.csv").read_text(encoding="utf-8")
    if len(records) <= LARGEST_COPY:
        write_whole(target / "records.csv", records)
        return
    rows = summary(from_csv(records), experiment.keys, experiment.metrics)
    write_whole(target / "summary.csv", to_csv(rows))


def page_text(results: Results, authors: Path | None = None) -> str:
    """Return the whole page as Markdown."""
    sections = [
        _heading(results),
        what_changes(results),
        _tables(results),
        _replay(results, authors),
        _figures(results),
        _claims(results),
        _misprints(),
        _times(results),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _heading(results: Results) -> str:
    environments = [results.environment(experiment, variant) for experiment, variant, _ in results.available()]
    versions = sorted({environment["ardea"] for environment in environments})
    commands = sorted({environment["command"] for environment in environments if environment["command"]})
    lines = [
        "# The paper, reproduced",
        "",
        "Rudy & Sapsis, *Sparse Methods for Automatic Relevance Determination*, every table and figure, twice. "
        "*Published* replays the authors' code with its defects; *corrected* is the right algorithm on the same data "
        "(`ardea`'s estimators, the authors' strengths and model choice). This page is written by "
        "`ardea reproduce report`; every number on it that is not marked as printed or as the authors' comes from "
        "the records.",
        "",
        f"Made by ardea {', '.join(versions)} at {results.scale} scale with",
        "",
        "```",
        *commands,
        "```",
    ]
    return "\n".join(lines)


def _tables(results: Results) -> str:
    lines = [
        "## Numbers side by side",
        "",
        "Means of ℓ² error / ℓ¹ error / terms added / terms missed. *Authors* are the runs they published with their "
        "code; Table 1 was printed from another run. Lorenz 63 sums over its three equations.",
    ]
    for name, theirs in SAVED_RUNS.items():
        sources: dict[str, Means] = {"printed (Table 1)": TABLE_1} if name == "linear" else {}
        sources["authors"] = theirs
        for title, records in (
            ("replayed", results.records(name, "published")),
            ("corrected", results.records(name, "corrected")),
        ):
            if records:
                sources[title] = means(shown_rows(name, records))
        methods = [*theirs, *(method for method in OURS if method in sources.get("corrected", {}))]
        rows = [
            [
                f"{method} (ours)" if method in OURS else method,
                *(_cell(source.get(method)) for source in sources.values()),
            ]
            for method in methods
        ]
        lines += ["", f"### {name} ({experiment_named(name).label})", "", markdown(["method", *sources], rows)]
        if name == "ks":
            whole = (results.records(name, "corrected") or Records()).where(rows="all")
            if whole:
                lines += ["", f"All {_rows_of_field(results):,} rows at once (corrected):", "", comparison(whole)]
    return "\n".join(lines)


def _rows_of_field(results: Results) -> int:
    sizes = experiment_named("ks").sizes[results.scale]
    return int(sizes["n_x"]) * int(sizes["n_t"])


def _cell(values: Sequence[float] | None) -> str:
    return "–" if values is None else " / ".join(f"{value:.3g}" for value in values)


def _replay(results: Results, authors: Path | None) -> str:
    if authors is None:
        return ""
    rows, notes = [], []
    for name in SAVED_RUNS:
        records = results.records(name, "published")
        if records:
            equal, compared, different = agreement(name, records, authors)
            rows.append([name, f"{equal} of {compared}", "; ".join(different) or "–"])
    for name, text in DIFFERENCES.items():
        if any(row[0] == name and row[2] != "–" for row in rows):
            notes += ["", text]
    return "\n".join(
        [
            "## How far the replay equals the authors' runs",
            "",
            "Rows (trial × equation × method) whose ℓ² error is within .001 and whose counts are equal.",
            "",
            markdown(["experiment", "equal", "different"], rows),
            *notes,
        ]
    )


def _figures(results: Results) -> str:
    lines = ["## Figures", "", "Box plots: quartiles and median, whiskers at minimum and maximum."]
    for experiment, variant, folder in results.available():
        if (folder / "figure.png").exists():
            path = folder.relative_to(results.out).as_posix()
            title = f"{experiment.label} ({variant})"
            lines += [
                "",
                f"**{title}**: {experiment.what} ([table]({path}/table.md))",
                "",
                f"![{title}]({path}/figure.png)",
            ]
    return "\n".join(lines)


def _claims(results: Results) -> str:
    rows = []
    for claim in CLAIMS:
        published, corrected = (results.records(claim.experiment, variant) for variant in VARIANTS[::-1])
        verdict, evidence = claim.verdict(published, corrected)
        rows.append([claim.section, claim.sentence, f"**{verdict}**", evidence])
    counts = {
        word: sum(row[2] == f"**{word}**" for row in rows) for word in dict.fromkeys(row[2].strip("*") for row in rows)
    }
    tally = ", ".join(f"{count} {word}" for word, count in counts.items())
    return "\n".join(
        [
            "## Every sentence that states a result",
            "",
            f"Shortened, in the order of the paper: {tally}. Statements about other work, definitions and opinions are "
            "left out. Two statements are not tested here: that Alg. 3 never decreases the likelihood (true of the "
            "corrected sign; `tests/test_reweighted.py`), and that LARS solves ill-conditioned lassos far faster than "
            "other solvers (see `docs/speed.md` for the inner solvers).",
            "",
            markdown(["section", "sentence", "verdict", "evidence"], rows),
        ]
    )


def _misprints() -> str:
    return "\n".join(["## Misprints", "", markdown(["where", "printed", "should be"], MISPRINTS)])


def _times(results: Results) -> str:
    rows, totals = [], {"corrected": 0.0, "published": 0.0}
    for experiment, variant, _ in results.available():
        environment = results.environment(experiment, variant)
        totals[variant] += environment["core_seconds"]
        rows.append([experiment.name, variant, duration(environment["core_seconds"]), environment["machine"]])
    spent = ", ".join(f"{variant} {duration(seconds)}" for variant, seconds in totals.items() if seconds)
    heading = ["## Time", "", f"Processor time of all trials on one core of a shared machine: {spent}.", ""]
    return "\n".join([*heading, markdown(["experiment", "variant", "time", "machine"], rows)])
