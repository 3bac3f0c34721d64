"""What an experiment is: a name, sizes at every scale, a trial, and what to make of its rows; how one is run.

Trials are recorded as they end, and outputs are made from the records. Trials go through joblib: processes on this
machine by default, a Dask cluster under ``joblib.parallel_config(backend="dask")``. The parent process alone writes
records, so workers need no shared disk. A trial's file is there completely or not at all, whatever kills the process;
two runs into one folder write the same file twice. It carries a checksum: a damaged file is put aside and its trial run
again.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from ardea import __version__
from ardea.core.loop import loop_in_use
from ardea.tables import write_whole

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
PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")
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


# Records.


class Trial(NamedTuple):
    """The rows of one trial and the seconds of processor time it took."""

    number: int
    seconds: float
    rows: list[Row]


@dataclass(frozen=True)
class TrialStore:
    """The finished trials of one experiment at one setting: a folder of small files, named by the fingerprint."""

    folder: Path

    def path(self, number: int) -> Path:
        """Return where a trial's file is."""
        return self.folder / f"{number:05d}.json"

    def save(self, trial: Trial) -> None:
        """Write a finished trial."""
        body = json.dumps({"trial": trial.number, "seconds": round(trial.seconds, 4), "rows": trial.rows})
        write(self.path(trial.number), f"{_checksum(body)}\n{body}\n")

    def load(self, number: int) -> Trial | None:
        """Return a finished trial, None where there is none; a damaged file is renamed to `….damaged`."""
        path = self.path(number)
        if not path.exists():
            return None
        checksum, _, body = path.read_text(encoding="utf-8", errors="replace").rstrip("\n").partition("\n")
        if checksum == _checksum(body):
            return Trial(*json.loads(body).values())
        with suppress(OSError):  # another run into the same folder was faster, or it may only be read
            aside = path.replace(path.with_suffix(".json.damaged"))
            print(f"A record was damaged; it is kept as {aside} and its trial is run again.", file=sys.stderr)
        return None

    def finished(self, n_trials: int) -> dict[int, Trial]:
        """Return the finished trials by number."""
        found = map(self.load, range(n_trials))
        return {trial.number: trial for trial in found if trial is not None}


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, with the folders that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def store_of(out: Path, experiment: Experiment, settings: Settings) -> TrialStore:
    """Return the finished trials of one part of an experiment."""
    return TrialStore(experiment.folder(out, settings) / "trials" / settings.fingerprint(experiment.name))


# Running.


def run(
    experiment: Experiment,
    settings: Settings,
    out: Path,
    *,
    jobs: int | None = None,
    beyond: bool = False,
    command: str = "",
) -> Path:
    """Run what is missing of an experiment, write its outputs into a folder under `out`, and return that folder.

    `jobs` None leaves the number to joblib (one, or what `parallel_config` says); `beyond` adds what is not in the
    paper: to the corrected variant our own methods and wider grids, to the published one the corrections one by one.
    `command` is noted in environment.json.
    """
    import pandas as pd

    folder, parts, more = experiment.folder(out, settings), [settings], BEYOND[settings.variant]
    if beyond and more in experiment.core_seconds:
        parts.append(replace(settings, variant=more))
    try:
        trials = [trial for part in parts for trial in _trials(experiment, part, out, jobs)]
        records = pd.DataFrame([{"trial": trial.number} | row for trial in trials for row in trial.rows])
        seconds = sum(trial.seconds for trial in trials)
        write_outputs(folder, experiment, settings, records, _environment(experiment, settings, seconds, command))
    except OSError as error:
        mend = "Finished trials are kept: mend this, or choose another folder with --out, and run the command again."
        raise OSError(f"{folder}: {error.strerror or error}. {mend}") from error
    except BrokenProcessPool as error:
        again = "Finished trials are kept: run the same command again, with fewer --jobs."
        raise OSError(f"a worker process was killed, perhaps for want of memory. {again}") from error
    return folder


def _trials(experiment: Experiment, settings: Settings, out: Path, jobs: int | None) -> list[Trial]:
    """Return all trials of a part, running those that have no sound record; they end in any order."""
    from tqdm import tqdm

    store, n_trials = store_of(out, experiment, settings), settings.n_trials
    done = store.finished(n_trials)
    missing = [number for number in range(n_trials) if number not in done]
    few = jobs if jobs is None else min(jobs, max(1, len(missing)))
    parallel = Parallel(n_jobs=few, batch_size=1, return_as="generator_unordered")
    title = experiment.name if settings.variant in VARIANTS else f"{experiment.name} ({settings.variant})"
    # disable=None: a bar on a terminal only.
    with tqdm(total=n_trials, initial=len(done), desc=title, unit=" trials", disable=None) as bar:
        for trial in parallel(delayed(timed_trial)(experiment.trial, settings, number) for number in missing):
            store.save(trial)
            done[trial.number] = trial
            bar.update()
    return [done[number] for number in sorted(done)]


def timed_trial(trial: Callable[[Settings, int], list[Row]], settings: Settings, number: int) -> Trial:
    """Run one trial on one BLAS thread, and count its processor time.

    What the fits warn of is in the rows (column `warned`), not on the screen.
    """
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.thread_time()
        rows = trial(settings, number)
        return Trial(number, time.thread_time() - start, rows)


def write_outputs(
    folder: Path, experiment: Experiment, settings: Settings, records: DataFrame, environment: dict[str, Any]
) -> None:
    """Write environment.json, table.md, the figure and the records; the last say that all the rest is there."""
    import pandas as pd

    text = records.to_csv(index=False, lineterminator="\n", float_format=FLOAT_FORMAT)
    records = pd.read_csv(io.StringIO(text))
    write(folder / "environment.json", json.dumps(environment, indent=2) + "\n")
    heading = f"# {experiment.name} ({settings.variant}, {settings.scale} scale)\n\n{experiment.label}: "
    write(folder / "table.md", f"{heading}{experiment.what}\n\n{experiment.table(records)}\n")
    write(folder / "figure.svg", figure_file(experiment, records))
    write(folder / "records.csv.gz", gzip.compress(text.encode(), mtime=0))


def figure_file(experiment: Experiment, records: DataFrame) -> bytes:
    """Return the figure as SVG, the same bytes for the same records."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": experiment.name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=experiment.figure_size, layout="constrained")
        title = experiment.draw(experiment.shown(records), figure)
        figure.suptitle(title, fontsize="medium", wrap=True)
        vector = io.BytesIO()
        figure.savefig(vector, format="svg", metadata={"Date": None})
    return vector.getvalue()


def _environment(experiment: Experiment, settings: Settings, seconds: float, command: str) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        **{name: getattr(settings, name) for name in ("variant", "scale", "seed", "sizes")},
        "fingerprint": settings.fingerprint(experiment.name),
        "command": command,
        "core_seconds": round(seconds, 1),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "ardea": __version__,
        "loop": loop_in_use(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def duration(seconds: float) -> str:
    """Return a length of time in words short enough for a table."""
    if seconds < 1:
        return "< 1 s"
    (hours, minutes), rest = divmod(round(seconds) // 60, 60), round(seconds) % 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
