"""What an experiment is: a name, sizes at every scale, a trial, and what to make of its rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ardea.versions import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

Scale = Literal["quick", "paper"]
Variant = Literal["corrected", "published"]
# What a trial computes: the methods of the paper, or ours on the same data.
Part = Literal["paper", "beyond"]
SCALES: tuple[Scale, ...] = ("quick", "paper")
VARIANTS: tuple[Variant, ...] = ("corrected", "published")
Row = dict[str, Any]


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

    @property
    def published(self) -> bool:
        """Whether the authors' code is replayed."""
        return self.variant == "published"

    def fingerprint(self, name: str) -> str:
        """Return a short hash of everything that the records of experiment `name` depend on, the version included."""
        content = [name, __version__, self.scale, self.variant, self.part, self.seed, dict(self.sizes)]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def every_row(records: DataFrame) -> DataFrame:
    """Return all records: what most figures show."""
    return records


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
    sizes : mapping of name to pair
        What decides the size, at quick and at paper scale; "trials" is one of them.
    trial : callable
        Pure function of (settings, trial number): the rows of one trial, flat dicts.
    keys, metrics : tuples of str
        Columns that name a row within its trial, and columns that were measured.
    table : callable
        Records → Markdown.
    draw : callable
        (records shown, Matplotlib figure): draws into it.
    core_seconds : mapping of variant to pair
        Measured processor time of all trials at quick and at paper scale. A variant that is not named does not exist:
        where σ is known and the columns are orthogonal, or nothing is fitted, there is only one.
    figure_size : tuple
        Width and height in inches.
    beyond : bool
        Whether our methods can be run on the same data.
    shown : callable
        Records → those that the paper's figure shows.
    """

    name: str
    label: str
    what: str
    sizes: Mapping[str, tuple[Any, Any]]
    trial: Callable[[Settings, int], list[Row]]
    keys: tuple[str, ...]
    metrics: tuple[str, ...]
    table: Callable[[DataFrame], str]
    draw: Callable[[DataFrame, Any], None]
    core_seconds: Mapping[Variant, tuple[float, float]]
    figure_size: tuple[float, float] = (7.2, 3.2)
    beyond: bool = False
    shown: Callable[[DataFrame], DataFrame] = every_row

    def settings(self, scale: Scale, variant: Variant, seed: int = 0, part: Part = "paper") -> Settings:
        """Return the settings of a run."""
        sizes = {name: pair[SCALES.index(scale)] for name, pair in self.sizes.items()}
        return Settings(scale, variant, part, seed, sizes)

    def parts(self, settings: Settings, beyond: bool) -> list[Settings]:
        """Return the settings of every part that is to be run: the paper's, and ours where asked and defined."""
        ours = beyond and self.beyond and not settings.published
        return [settings] + ([replace(settings, part="beyond")] if ours else [])
