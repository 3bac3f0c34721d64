"""What an experiment is: a name, sizes at every scale, a trial, and what to make of its rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ardea import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

Scale = Literal["quick", "paper"]
# Whose methods a trial runs: those of the paper, done right or as its authors did, or ours on the same data.
Variant = Literal["corrected", "published", "beyond"]
SCALES: tuple[Scale, ...] = ("quick", "paper")
VARIANTS: tuple[Variant, ...] = ("corrected", "published")  # of an experiment; ours are rows of the corrected one
Row = dict[str, Any]
# Convention: records are written to ten digits.
FLOAT_FORMAT = "%.10g"


@dataclass(frozen=True)
class Settings:
    """All that decides the outcome of a trial, besides its number."""

    scale: Scale
    variant: Variant
    seed: int  # of the data
    sizes: Mapping[str, Any]  # numbers of trials, rows, columns, terms, … at this scale

    @property
    def published(self) -> bool:
        """Whether the authors' code is replayed."""
        return self.variant == "published"

    def fingerprint(self, name: str) -> str:
        """Return a short hash of everything that the records of experiment `name` depend on, the version included."""
        content = [name, __version__, self.scale, self.variant, self.seed, dict(self.sizes)]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    A variant that `core_seconds` does not name does not exist: where σ is known and the columns are orthogonal, or
    nothing is fitted, there is only one.
    """

    name: str  # as on the command line
    label: str  # the paper's LaTeX label(s)
    what: str  # one line
    sizes: Mapping[str, tuple[Any, Any]]  # at quick and at paper scale; "trials" is one of them
    trial: Callable[[Settings, int], list[Row]]  # pure function of (settings, trial number): flat dicts
    table: Callable[[DataFrame], str]  # records → Markdown
    draw: Callable[[DataFrame, Any], None]  # draws the records shown into a Matplotlib figure
    core_seconds: Mapping[Variant, tuple[float, float]]  # measured, of all trials at quick and at paper scale
    figure_size: tuple[float, float] = (7.2, 3.2)  # in inches
    beyond: bool = False  # whether our methods can be run on the same data
    shown: Callable[[DataFrame], DataFrame] = lambda records: records  # those that the paper's figure shows

    def settings(self, scale: Scale, variant: Variant, seed: int = 0) -> Settings:
        """Return the settings of a run."""
        sizes = {name: pair[SCALES.index(scale)] for name, pair in self.sizes.items()}
        return Settings(scale, variant, seed, sizes)

    def folder(self, out: Path, settings: Settings) -> Path:
        """Return where the outputs go."""
        variant = "published" if settings.published else "corrected"
        seed = "" if settings.seed == 0 else f"-seed{settings.seed}"
        return out / self.name / f"{variant}-{settings.scale}{seed}"


def duration(seconds: float) -> str:
    """Return a length of time in words short enough for a table."""
    if seconds < 1:
        return "< 1 s"
    (hours, minutes), rest = divmod(round(seconds) // 60, 60), round(seconds) % 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
