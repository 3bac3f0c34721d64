"""What an experiment is: a name, sizes for every scale, a trial, and what to make of its rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ardea.paper.records import Records, Row
from ardea.versions import __version__

Scale = Literal["quick", "paper"]
Variant = Literal["corrected", "published"]
# What a trial computes: the methods of the paper, or ours on the same data.
Part = Literal["paper", "beyond"]
SCALES: tuple[Scale, ...] = ("quick", "paper")
VARIANTS: tuple[Variant, ...] = ("corrected", "published")


class ExperimentError(Exception):
    """Something the user can mend; the message is one line that says how."""


@dataclass(frozen=True)
class Settings:
    """All that decides the outcome of a trial, besides its number.

    Attributes
    ----------
    scale, variant, part : str
        How large, which algorithm, whose methods.
    seed : int
        Of the data.
    sizes : mapping
        Numbers of trials, rows, columns, terms, … at this scale.
    """

    scale: Scale
    variant: Variant
    part: Part
    seed: int
    sizes: Mapping[str, Any]

    @property
    def n_trials(self) -> int:
        """How many trials the experiment has."""
        return int(self.sizes["trials"])

    def fingerprint(self, name: str) -> str:
        """Return a short hash of everything that the records of experiment `name` depend on, the version included."""
        content = [name, __version__, self.scale, self.variant, self.part, self.seed, dict(self.sizes)]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Attributes
    ----------
    name : str
        As on the command line.
    label : str
        The paper's LaTeX label(s).
    what : str
        One line.
    sizes : mapping of scale to mapping
        Settings at every scale; "trials" is one of them.
    trial : callable
        Pure function of (settings, trial number): the rows of one trial, flat dicts.
    keys : tuple of str
        Columns that name a row within its trial.
    metrics : tuple of str
        Columns that were measured.
    table : callable
        Records → Markdown.
    draw : callable
        (records, Matplotlib figure): draws into it.
    core_seconds : mapping
        Estimated processor time of all trials, by (scale, variant).
    figure_size : tuple
        Width and height in inches.
    variants : tuple of str
        Those that exist. Where σ is known and the columns are orthogonal, or nothing is fitted, there is only one.
    beyond : bool
        Whether our methods can be run on the same data.
    """

    name: str
    label: str
    what: str
    sizes: Mapping[Scale, Mapping[str, Any]]
    trial: Callable[[Settings, int], list[Row]]
    keys: tuple[str, ...]
    metrics: tuple[str, ...]
    table: Callable[[Records], str]
    draw: Callable[[Records, Any], None]
    core_seconds: Mapping[tuple[Scale, Variant], float]
    figure_size: tuple[float, float] = (7.2, 3.2)
    variants: tuple[Variant, ...] = ("corrected",)
    beyond: bool = False

    def settings(self, scale: Scale, variant: Variant, seed: int = 0, part: Part = "paper") -> Settings:
        """Return the settings of a run."""
        return Settings(scale, variant, part, seed, self.sizes[scale])

    def parts(self, settings: Settings, beyond: bool) -> list[Settings]:
        """Return the settings of every part that is to be run: the paper's, and ours where asked and defined."""
        ours = beyond and self.beyond and settings.variant == "corrected"
        return [settings] + ([replace(settings, part="beyond")] if ours else [])
