"""The report page: printed, replayed and corrected numbers side by side, figures, every claim, the misprints.

The words are in page.md.jinja. authors.csv holds numbers of the paper and of its authors, to set beside ours: Table 1
as printed, and the means of the per-trial results that the authors published with their code (snagcliffs/SparseARD,
MIT, saved_results/), another run of theirs; for Lorenz 63 summed over the three equations; for ks ℓ² and ℓ¹ are
against coefficients of the wrong sign.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
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
            for path in folder.glob("records.csv*"):  # packed where it is a copy
                records = pd.read_csv(path)
                environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
                found[experiment.name, variant] = Output(experiment, settings, folder, records, environment)
    return found


def write_page(out: Path, to: Path, scale: Scale, authors: Path | None = None) -> Path:
    """Write README.md from the results in `out` to a folder, and copies where that is another, to make it again from.

    `authors` are the authors' per-trial results (CSV), to count how many rows of the replay equal theirs.
    """
    outputs = read_outputs(out, scale)
    if not outputs:
        raise ValueError(f"{out} holds no results at {scale} scale: run `ardea reproduce all --scale {scale}`.")
    for output in outputs.values() if to.resolve() != out.resolve() else ():
        target = to / output.folder.relative_to(out)
        target.mkdir(parents=True, exist_ok=True)
        for name in ("table.md", "figure.png", "environment.json"):
            write_whole(target / name, (output.folder / name).read_bytes())
        text = output.records.to_csv(index=False, lineterminator="\n", float_format=FLOAT_FORMAT)
        write_whole(target / "records.csv.gz", gzip.compress(text.encode(), mtime=0))
    return write_whole(to / "README.md", page_text(outputs, out, scale, authors))


def page_text(outputs: Outputs, out: Path, scale: Scale, authors: Path | None = None) -> str:
    """Return the whole page as Markdown."""
    import pandas as pd
    from jinja2 import Environment, StrictUndefined

    form = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    form.filters |= {"duration": duration, "cell": lambda text: text.replace("|", r"\|"), "means": method_means}
    theirs = {} if authors is None else dict(iter(pd.read_csv(authors).groupby("experiment")))
    replayed = [(name, one.records) for (name, variant), one in outputs.items() if variant == "published"]
    saved_runs = stored("authors.csv")["experiment"].unique()
    judged = [(claim, *_verdict(outputs, claim)) for claim in stored("claims.csv").itertuples()]
    return form.from_string((files("ardea.paper") / "page.md.jinja").read_text(encoding="utf-8")).render(
        out=out,
        scale=scale,
        outputs=outputs,
        methods=list(METHODS),
        numbers=[(experiment_named(name), _numbers(outputs, name)) for name in saved_runs],
        comparison=comparison,
        replay={name: agreement(records, theirs[name]) for name, records in replayed if name in theirs},
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
