"""What an experiment is: a name, sizes at every scale, a trial, and what to make of its rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ardea import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

Scale = Literal["quick", "paper"]
# Whose methods a trial runs: the paper's algorithms done right, or as their authors did; and beyond the paper, what is
# ours on the same data, or the published code with one point after the other put right.
Variant = Literal["corrected", "published", "beyond", "ablation"]
SCALES: tuple[Scale, ...] = ("quick", "paper")
VARIANTS: tuple[Variant, ...] = ("corrected", "published")
BEYOND: dict[Variant, Variant] = {"corrected": "beyond", "published": "ablation"}
Row = dict[str, Any]
METHODS = ("ARD", "ARDvi", "ARDr", "M-STSBL", "L-STSBL", "MAP-STSBL")
# Convention: records are written to six digits.
FLOAT_FORMAT = "%.6g"
# Where the published code departs from the paper, or from arithmetic: name, and what is put right.
SLIPS = {
    "noise grid": "σ² = rss/(m − k + Σ Σ_jj/γ_j) instead of a grid with mixed logarithms, where m ≤ d",
    "noise count": "the k active columns instead of all d in the rule for σ², where m > d",
    "MAP recursion": "the paper's diagonal rule in every round, instead of a greedy search from the second on",
    "signs": "errors against u_t = −uu_x − u_xx − u_xxxx (Eq. (63)) instead of all signs positive",
}
# What the paper can be read either way about; an ablation takes it with the slips.
READINGS = {
    "estimate": (
        "posterior means at σ² (errors are of “the mean posterior estimate”, Sec. 6.1) instead of the last lasso at "
        "the inflated noise (Alg. 2 has ασ² throughout)"
    )
}
# What the paper leaves open, where the corrected variant does otherwise than the published code, without either being
# wrong; grids only in rows of their own.
CHOICES = {
    "noise start": "σ² starts at the mean square of y instead of 1",
    "tolerance": "a fit stops on a change of γ that does not depend on units",
    "choice": (
        "of equal scores the sparsest instead of the first; AICc, which the paper gives without a cap, only for models "
        "with fewer than m/4 terms, the sparsest where none has so few"
    ),
    "differences": "differences at the ends (KS: periodic) as accurate as inside, instead of forward ones",
    "integration": "the trajectory integrated to 1e-12 instead of odeint's default",
    "unit of λ": "λ in units of ‖y‖² of the rows fitted instead of all rows",
    "grids": "strengths extended and refined, λ × η for ARDr",
}
CORRECTIONS = SLIPS | READINGS | CHOICES


@dataclass(frozen=True)
class Settings:
    """All that decides the outcome of a trial, besides its number."""

    scale: Scale
    variant: Variant
    seed: int  # of the data
    sizes: Mapping[str, Any]  # numbers of trials, rows, columns, terms, … at this scale
    corrections: tuple[str, ...] = ()  # of the published code, in an ablation

    @property
    def published(self) -> bool:
        """Whether the authors' code is run, with or without corrections."""
        return self.variant in ("published", "ablation")

    @property
    def n_trials(self) -> int:
        """How many trials there are; a variant may have fewer than the rest."""
        return int(self.sizes.get(f"{self.variant}_trials", self.sizes["trials"]))

    def right(self, name: str) -> bool:
        """Whether one of CORRECTIONS is made."""
        return not self.published or name in self.corrections

    def correcting(self, *names: str) -> Settings:
        """Return the same with these corrections and no others."""
        return replace(self, corrections=names)

    def fingerprint(self, name: str) -> str:
        """Return a short hash of everything that a record of experiment `name` depends on, the version included.

        How many trials there are is not among it, so that more can be added.
        """
        sizes = {key: value for key, value in self.sizes.items() if not key.endswith("trials")}
        content = [name, __version__, self.scale, self.variant, self.seed, sizes]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    A variant that `core_seconds` does not name does not exist: where σ is known and the columns are orthogonal, or
    nothing is fitted, there is only one.
    """

    name: str  # as on the command line
    label: str  # which table or figure of the paper it is
    what: str  # one line
    sizes: Mapping[str, tuple[Any, Any]]  # at quick and at paper scale; "trials" is one of them
    trial: Callable[[Settings, int], list[Row]]  # pure function of (settings, trial number): flat dicts
    table: Callable[[DataFrame], str]  # records → Markdown
    draw: Callable[[DataFrame, Any], str]  # draws the records shown into a Matplotlib figure, returns its title
    core_seconds: Mapping[Variant, tuple[float, float]]  # measured, of all trials at quick and at paper scale
    figure_size: tuple[float, float] = (7.2, 3.2)  # in inches
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
