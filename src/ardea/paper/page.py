"""The report page: printed, replayed and corrected numbers side by side, figures, every claim, the misprints.

The words are in page.md.jinja. authors.csv holds numbers of the paper and of its authors, to set beside ours: Table 1
as printed, and the means of the per-trial results that the authors published with their code (snagcliffs/SparseARD,
MIT, saved_results/), another run of theirs; for Lorenz 63 summed over the three equations; for ks ℓ² and ℓ¹ are
against coefficients of the wrong sign.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ardea.paper import claims
from ardea.paper.catalogue import EXPERIMENTS, comparison, experiment_named, markdown, method_means
from ardea.paper.experiment import FLOAT_FORMAT, VARIANTS, Experiment, Scale, Settings, duration
from ardea.paper.regressions import METHODS, METRICS, OURS
from ardea.tables.writing import write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

# Convention: records beyond this size (bytes) go to the page's folder as means and standard errors.
LARGEST_COPY = 60_000
# Convention: ℓ² errors closer than this are called equal; the authors' numbers have about seven digits.
L2_TOLERANCE = 1e-3


class Output(NamedTuple):
    """What one run of `reproduce` left behind."""

    experiment: Experiment
    settings: Settings
    folder: Path
    records: DataFrame
    environment: dict[str, Any]

    @property
    def shown(self) -> DataFrame:
        """The rows that the paper's figure shows."""
        return self.experiment.shown(self.records)


Outputs = dict[tuple[str, str], Output]


def read_outputs(out: Path, scale: Scale) -> Outputs:
    """Return the outputs of all experiments in a folder, at one scale and seed 0."""
    import pandas as pd

    found: Outputs = {}
    for experiment in EXPERIMENTS:
        for variant in experiment.core_seconds:
            settings = experiment.settings(scale, variant)
            folder = experiment.folder(out, settings)
            if (folder / "records.csv").exists():
                records = pd.read_csv(folder / "records.csv")
                environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
                found[experiment.name, variant] = Output(experiment, settings, folder, records, environment)
    return found


def write_page(out: Path, to: Path, scale: Scale, authors: Path | None = None) -> Path:
    """Write README.md from the results in `out` to a folder, with copies of the small ones where that is another.

    `authors` are the authors' per-trial results (CSV), to count how many rows of the replay equal theirs.
    """
    outputs = read_outputs(out, scale)
    if not outputs:
        raise ValueError(f"{out} holds no results at {scale} scale: run `ardea reproduce all --scale {scale}`.")
    for output in outputs.values() if to.resolve() != out.resolve() else ():
        target = to / output.folder.relative_to(out)
        names = ("table.md", "figure.png", "environment.json", "records.csv")
        contents = {name: (output.folder / name).read_bytes() for name in names}
        target.mkdir(parents=True, exist_ok=True)
        if len(contents["records.csv"]) > LARGEST_COPY:
            means = summary(output.records, output.experiment.keys)
            text = means.to_csv(index=False, float_format=FLOAT_FORMAT, lineterminator="\n")
            contents["summary.csv"] = text.encode()
            del contents["records.csv"]
        for name, content in contents.items():
            write_whole(target / name, content)
    return write_whole(to / "README.md", page_text(outputs, out, scale, authors))


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
    form.filters |= {"duration": duration, "cell": lambda text: text.replace("|", r"\|"), "means": method_means}
    judged = [(claim, *_verdict(outputs, claim)) for claim in stored("claims.csv").itertuples()]
    saved_runs = stored("authors.csv")["experiment"].unique()
    return form.from_string((files("ardea.paper") / "page.md.jinja").read_text(encoding="utf-8")).render(
        out=out,
        scale=scale,
        outputs=outputs,
        methods=list(METHODS),
        numbers=[(experiment_named(name), _numbers(outputs, name)) for name in saved_runs],
        comparison=comparison,
        replay=None if authors is None else _replay(outputs, saved_runs, authors),
        claims=judged,
        tally=Counter(verdict for _, verdict, _ in judged),
    )


def stored(name: str) -> DataFrame:
    """Return a table that comes with the package."""
    import pandas as pd

    return pd.read_csv(files("ardea.paper") / name, dtype={"section": str})


def _verdict(outputs: Outputs, claim: Any) -> tuple[str, str]:
    """Return verdict and evidence of a row of claims.csv; its column `check` names a function in claims.py."""
    found = [outputs[claim.experiment, v] for v in VARIANTS[::-1] if (claim.experiment, v) in outputs]
    check = getattr(claims, claim.check)
    return claims.verdict([check(output.records if claim.rows == "all" else output.shown) for output in found])


def _numbers(outputs: Outputs, name: str) -> str:
    """Return a table: the means of every source side by side, one row per method."""
    import pandas as pd

    theirs = stored("authors.csv").query("experiment == @name").groupby("source", sort=False)
    sources = {source: part.set_index("method")[list(METRICS)] for source, part in theirs}
    for variant, title in zip(VARIANTS[::-1], ("replayed", "corrected"), strict=True):
        if (name, variant) in outputs:
            sources[title] = method_means(outputs[name, variant].shown)
    cells = {source: means.map("{:.3g}".format).agg(" / ".join, axis=1) for source, means in sources.items()}
    table = pd.DataFrame(cells).reindex([*METHODS, *OURS]).dropna(how="all").fillna("–")
    rows = [[f"{method} (ours)" if method in OURS else method, *row] for method, *row in table.itertuples()]
    return markdown(["method", *sources], rows)


def _replay(outputs: Outputs, names: Iterable[str], authors: Path) -> dict[str, tuple[int, int, list[str]]]:
    """Return for every experiment that was replayed how far it agrees with the authors' file."""
    import pandas as pd

    theirs = pd.read_csv(authors)
    replayed = {name: outputs[name, "published"].records for name in names if (name, "published") in outputs}
    return {name: agreement(records, theirs[theirs["experiment"] == name]) for name, records in replayed.items()}


def agreement(replayed: DataFrame, theirs: DataFrame) -> tuple[int, int, list[str]]:
    """Return how many rows of a replay equal the authors', how many were compared, and which differ.

    `theirs` has the columns trial, dimension, method, l2, l1, added, missed.
    """
    keys = [key for key in ("trial", "dimension", "method") if key in replayed]
    both = replayed.merge(theirs, on=keys, suffixes=("", "_theirs"))
    same = (both["l2"] - both["l2_theirs"]).abs() <= L2_TOLERANCE
    same &= (both["added"] == both["added_theirs"]) & (both["missed"] == both["missed_theirs"])
    different = [f"trial {row.trial}, {row.method}" for row in both[~same].itertuples()]
    return int(same.sum()), len(both), different
