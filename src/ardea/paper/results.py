"""The outputs of all experiments in a folder, read back for the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ardea.paper import lorenz63
from ardea.paper.authors import Means
from ardea.paper.catalogue import EXPERIMENTS, experiment_named
from ardea.paper.experiment import Experiment, Scale, Variant
from ardea.paper.ks import SAMPLE
from ardea.paper.records import Records, from_csv
from ardea.paper.runner import folder_of
from ardea.paper.study import METRICS
from ardea.paper.tables import methods_in


@dataclass(frozen=True)
class Results:
    """The outputs of all experiments in a folder, at one scale and seed 0."""

    out: Path
    scale: Scale

    def folder(self, experiment: Experiment, variant: Variant) -> Path | None:
        """Return where the outputs of an experiment are, None where there are none."""
        if variant not in experiment.variants:
            return None
        folder = folder_of(self.out, experiment, experiment.settings(self.scale, variant))
        return folder if (folder / "records.csv").exists() else None

    def records(self, name: str, variant: Variant) -> Records | None:
        """Return the rows of an experiment."""
        key = (name, variant)
        if key not in self._loaded:
            folder = self.folder(experiment_named(name), variant)
            text = None if folder is None else (folder / "records.csv").read_text(encoding="utf-8")
            self._loaded[key] = None if text is None else from_csv(text)
        return self._loaded[key]

    @cached_property
    def _loaded(self) -> dict[tuple[str, Variant], Records | None]:
        return {}

    def environment(self, experiment: Experiment, variant: Variant) -> dict[str, Any]:
        """Return what is known of the run."""
        folder = self.folder(experiment, variant)
        if folder is None:
            return {}
        content: dict[str, Any] = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
        return content

    def available(self) -> Iterator[tuple[Experiment, Variant, Path]]:
        """Yield the experiments that have outputs."""
        for experiment in EXPERIMENTS:
            for variant in experiment.variants:
                folder = self.folder(experiment, variant)
                if folder is not None:
                    yield experiment, variant, folder


def means(records: Records) -> Means:
    """Return the four metrics of every method, averaged."""
    averages = {}
    for method in methods_in(records):
        l2, l1, added, missed = (float(records.where(method=method).column(metric).mean()) for metric in METRICS)
        averages[method] = (l2, l1, added, missed)
    return averages


def shown_rows(name: str, records: Records) -> Records:
    """Return the rows that the paper's figure shows."""
    if name == "lorenz63":
        return lorenz63.by_oracle(records)
    return records.where(rows=SAMPLE) if name == "ks" else records
