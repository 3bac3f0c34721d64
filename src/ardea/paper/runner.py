"""Run the trials that are missing, record each as it ends, then make the outputs from the records alone.

Trials go through joblib: processes on this machine by default, a Dask cluster under
``joblib.parallel_config(backend="dask")``. The parent process alone writes records, so workers need no shared disk.
A trial's file is there completely or not at all, whatever kills the process; two runs into one folder write the same
file twice. It carries a checksum: a damaged file is put aside and its trial run again.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from joblib import Parallel, delayed

from ardea.core.loop import loop_in_use
from ardea.paper.experiment import Experiment, ExperimentError, Row, Settings
from ardea.tables.writing import write_whole
from ardea.versions import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")
# Convention: a figure of 7 inches is legible on a page and stays below 60 kB.
DPI = 110
_NO_FOLDER = "a part of this path is a file, not a folder. Choose another with --out."
_NOT_WRITABLE = "the folder cannot be written to. Choose another with --out."
REASONS = {
    errno.ENOSPC: "the disk is full. Finished trials are kept: free some space and run the same command again.",
    errno.EDQUOT: "your quota is used up. Finished trials are kept: free some space and run it again.",
    errno.EACCES: _NOT_WRITABLE,
    errno.EPERM: _NOT_WRITABLE,
    errno.EROFS: "the file system is read-only. Choose another folder with --out.",
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
}


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
        """Return a finished trial, or None where there is none or its file is damaged."""
        try:
            checksum, body = self.path(number).read_text(encoding="utf-8").rstrip("\n").split("\n")
        except (FileNotFoundError, ValueError):
            return None
        return Trial(*json.loads(body).values()) if checksum == _checksum(body) else None

    def finished(self, n_trials: int) -> dict[int, Trial]:
        """Return the finished trials by number."""
        found = map(self.load, range(n_trials))
        return {trial.number: trial for trial in found if trial is not None}

    def put_damaged_aside(self, n_trials: int) -> list[Path]:
        """Rename files that cannot be read to `….damaged` and return their new paths."""
        aside = []
        for path in map(self.path, range(n_trials)):
            if path.exists() and self.load(int(path.stem)) is None:
                with suppress(FileNotFoundError):  # another run into the same folder was faster
                    aside.append(path.replace(path.with_suffix(".json.damaged")))
        return aside


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, with the folders that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def to_csv(records: DataFrame) -> str:
    """Return records as CSV, floats to ten digits."""
    text: str = records.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return text


def from_csv(text: str) -> DataFrame:
    """Return the records of a CSV written by `to_csv`.

    Examples
    --------
    >>> import pandas as pd
    >>> print(from_csv(to_csv(pd.DataFrame([{"method": "ARD", "l2": 0.5}]))))
      method   l2
    0    ARD  0.5
    """
    import pandas as pd

    return pd.read_csv(io.StringIO(text))


def folder_of(out: Path, experiment: Experiment, settings: Settings) -> Path:
    """Return where an experiment's outputs go."""
    seed = "" if settings.seed == 0 else f"-seed{settings.seed}"
    return out / experiment.name / f"{settings.variant}-{settings.scale}{seed}"


def store_of(out: Path, experiment: Experiment, settings: Settings) -> TrialStore:
    """Return the finished trials of one part of an experiment."""
    return TrialStore(folder_of(out, experiment, settings) / "trials" / settings.fingerprint(experiment.name))


def run(
    experiment: Experiment,
    settings: Settings,
    out: Path,
    *,
    jobs: int | None = None,
    beyond: bool = False,
    progress: bool | None = None,
    command: str = "",
) -> Path:
    """Run what is missing of an experiment, write its outputs into a folder under `out`, and return that folder.

    `jobs` None leaves the number to joblib (one, or what `parallel_config` says); `beyond` adds our own methods;
    `progress` None shows a bar on a terminal only; `command` is noted in environment.json.
    """
    import pandas as pd

    folder = folder_of(out, experiment, settings)
    with explained(folder):
        parts = experiment.parts(settings, beyond)
        trials = [trial for part in parts for trial in _trials(experiment, part, out, jobs, progress)]
        records = pd.DataFrame([{"trial": trial.number} | row for trial in trials for row in trial.rows])
        seconds = sum(trial.seconds for trial in trials)
        write_outputs(folder, experiment, settings, records, _environment(experiment, settings, seconds, command))
    return folder


def _trials(
    experiment: Experiment, settings: Settings, out: Path, jobs: int | None, progress: bool | None
) -> list[Trial]:
    """Return all trials of a part, running those that have no sound record."""
    from tqdm import tqdm

    store, n_trials = store_of(out, experiment, settings), settings.n_trials
    for path in store.put_damaged_aside(n_trials):
        print(f"A record was damaged; it is kept as {path} and its trial is run again.", file=sys.stderr)
    done = store.finished(n_trials)
    missing = [number for number in range(n_trials) if number not in done]
    title = experiment.name if settings.part == "paper" else f"{experiment.name} (beyond)"
    hidden = None if progress is None else not progress
    with tqdm(total=n_trials, initial=len(done), desc=title, unit=" trials", disable=hidden) as bar:
        for trial in _computed(experiment, settings, missing, jobs):
            store.save(trial)
            done[trial.number] = trial
            bar.update()
    return [done[number] for number in sorted(done)]


def _computed(experiment: Experiment, settings: Settings, numbers: list[int], jobs: int | None) -> Iterator[Trial]:
    """Yield trials as they end, in any order."""
    few = jobs if jobs is None else min(jobs, max(1, len(numbers)))
    parallel = Parallel(n_jobs=few, batch_size=1, return_as="generator_unordered")
    yield from parallel(delayed(timed_trial)(experiment.trial, settings, number) for number in numbers)


def timed_trial(trial: Callable[[Settings, int], list[Row]], settings: Settings, number: int) -> Trial:
    """Run one trial on one BLAS thread, and count its processor time.

    What the fits warn of is in the rows (column `warned`), not on the screen.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.thread_time()
        rows = trial(settings, number)
        return Trial(number, time.thread_time() - start, rows)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn what a disk, or the end of a worker, can do to us into one line that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in REASONS:
            raise
        raise ExperimentError(f"{folder}: {REASONS[error.errno]}") from error
    except BrokenProcessPool as error:
        raise ExperimentError(
            "a worker process was killed, perhaps for want of memory. Finished trials are kept: run the same command "
            "again, with fewer --jobs."
        ) from error


def write_outputs(
    folder: Path, experiment: Experiment, settings: Settings, records: DataFrame, environment: dict[str, Any]
) -> None:
    """Write environment.json, table.md, the figure and records.csv; the last says that all the rest is there."""
    text = to_csv(records)
    records = from_csv(text)
    write(folder / "environment.json", json.dumps(environment, indent=2) + "\n")
    heading = f"# {experiment.name} ({settings.variant}, {settings.scale} scale)\n\n{experiment.label}: "
    write(folder / "table.md", f"{heading}{experiment.what}\n\n{experiment.table(records)}\n")
    for name, content in figure_files(experiment, records, f"{experiment.label} ({settings.variant})").items():
        write(folder / name, content)
    write(folder / "records.csv", text)


def figure_files(experiment: Experiment, records: DataFrame, title: str) -> dict[str, bytes]:
    """Return the figure as PNG and SVG, the same bytes for the same records."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from PIL import Image  # comes with matplotlib

    with rc_context({"svg.hashsalt": experiment.name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=experiment.figure_size, layout="constrained")
        figure.suptitle(title, fontsize="small", color="0.4")
        experiment.draw(experiment.shown(records), figure)
        vector, pixels, grey = io.BytesIO(), io.BytesIO(), io.BytesIO()
        figure.savefig(vector, format="svg", metadata={"Date": None})
        figure.savefig(pixels, format="png", dpi=DPI)
    Image.open(pixels).convert("L").save(grey, format="png", optimize=True)  # nothing is drawn in colour
    return {"figure.svg": vector.getvalue(), "figure.png": grey.getvalue()}


def _environment(experiment: Experiment, settings: Settings, seconds: float, command: str) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "label": experiment.label,
        "variant": settings.variant,
        "scale": settings.scale,
        "seed": settings.seed,
        "sizes": dict(settings.sizes),
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
