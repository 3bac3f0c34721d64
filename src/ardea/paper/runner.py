"""The command ``reproduce NAME|all|list|report``: run trials, record each as it ends, make outputs from the records.

Trials go through joblib: processes on this machine by default, a Dask cluster under
``joblib.parallel_config(backend="dask")``. The parent process alone writes records, so workers need no shared disk.
A trial's file is there completely or not at all, whatever kills the process; two runs into one folder write the same
file twice. It carries a checksum: a damaged file is put aside and its trial run again. Loaded with the command line,
so whatever takes long to import is imported where it is used.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ardea import __version__
from ardea.paper.experiment import BEYOND, FLOAT_FORMAT, SCALES, VARIANTS, Experiment, Row, Settings, duration
from ardea.tables import write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")
DESCRIPTION = """\
Make the tables and figures of Rudy & Sapsis, 'Sparse Methods for Automatic
Relevance Determination', from seeds. May be stopped at any moment: the same
command goes on where it was."""
EPILOG = """\
Every experiment gets a folder under --out: records of all trials, table,
figure, and what it was made with. The records are all that report needs.

examples:
  ardea reproduce list                         what there is, how long it takes
  ardea reproduce linear --scale quick         Table 1 in seconds, few trials
  ardea reproduce linear --variant published   Table 1 as the authors made it
  ardea reproduce linear --beyond              ours, too, and wider grids
  ardea reproduce all --jobs 2                 all 15 experiments
  ardea reproduce report --to page             one page from all results
"""


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
    from joblib import Parallel, delayed
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
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

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
    from ardea.core.loop import loop_in_use

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


# The command.


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of ``reproduce``; :func:`reproduce` does what they ask for."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    add = parser.add_argument
    add("name", help="an experiment, or: all, list (what there is), report (page from all results)")
    add("--scale", choices=SCALES, default="paper", help="quick: seconds (default: paper)")
    add("--variant", choices=VARIANTS, default="corrected", help="which algorithm (default: corrected)")
    add("--beyond", action="store_true", help="add what is not in the paper: ours; corrections one by one")
    add("--jobs", type=int, metavar="N", help="parallel jobs (default: joblib's, one)")
    add("--out", type=Path, default="reproduction", metavar="DIR", help="results (default: reproduction)")
    add("--to", type=Path, metavar="DIR", help="report: where to write it (default: --out)")
    add("--seed", type=int, default=0, help="seed of the data (default 0, the authors'); corrected only")
    parser.set_defaults(run=reproduce)


def reproduce(options: argparse.Namespace) -> int:
    """Do what the command line asks for and return the exit code."""
    if options.name == "report":
        from ardea.paper.page import write_page

        print(write_page(options.out, options.to or options.out, options.scale))
        return 0
    try:
        (_list if options.name == "list" else _run_experiments)(options)
    except KeyboardInterrupt:
        print("Stopped. Finished trials are kept; the same command goes on from there.", file=sys.stderr)
        return 130  # convention of shells
    return 0


def _run_experiments(options: argparse.Namespace) -> None:
    from ardea.paper.catalogue import EXPERIMENTS, experiment_named

    if options.variant == "published" and options.seed != 0:
        raise ValueError("--seed is for the corrected variant: the published one replays the authors' seed.")
    if not 0 <= options.seed < 2**32:
        raise ValueError(f"--seed must be a whole number from 0 to 2**32 - 1; got {options.seed}.")
    if options.jobs == 0:
        raise ValueError("--jobs must not be 0: give a number of processes, or -1 for all cores.")
    chosen = EXPERIMENTS if options.name == "all" else [experiment_named(options.name)]
    chosen = [experiment for experiment in chosen if options.variant in experiment.core_seconds]
    if not chosen:
        why = "σ is known and nothing in the authors' code changes it. Run the corrected one."
        raise ValueError(f"{options.name} has no published variant: {why}")
    for experiment in chosen:
        start = time.monotonic()
        settings = experiment.settings(options.scale, options.variant, options.seed)
        asked = {"jobs": options.jobs, "beyond": options.beyond, "command": _command(options)}
        folder = run(experiment, settings, options.out, **asked)
        if options.name != "all":
            print((folder / "table.md").read_text(encoding="utf-8"))
        print(f"{experiment.name}: {folder} ({duration(time.monotonic() - start)})")


def _command(options: argparse.Namespace) -> str:
    parts = ["ardea reproduce", options.name, f"--scale {options.scale}", f"--variant {options.variant}"]
    parts += ["--beyond"] * options.beyond + [f"--jobs {options.jobs}"] * (options.jobs is not None)
    return " ".join(parts + [f"--seed {options.seed}"] * (options.seed != 0))


def _list(options: argparse.Namespace) -> None:
    """Print what there is, how long it takes here, and what is done, at the scale and variant asked for."""
    from ardea.paper.catalogue import EXPERIMENTS

    print(f"Experiments at {options.scale} scale, {options.variant} variant; results in {options.out}.")
    print("Time is for one core: measured from the trials recorded here, else an estimate (~).\n")
    print(f"{'name':<20}{'state':<16}{'time':<14}{'in the paper':<18}what")
    for experiment in EXPERIMENTS:
        if options.variant not in experiment.core_seconds:
            continue
        settings = experiment.settings(options.scale, options.variant, options.seed)
        total, store = settings.n_trials, store_of(options.out, experiment, settings)
        seconds = [trial.seconds for trial in store.finished(total).values()]
        state = "done" if len(seconds) == total else f"{len(seconds)} of {total}" if seconds else "not run"
        guess = experiment.core_seconds[options.variant][SCALES.index(options.scale)]
        cost = duration(sum(seconds) / len(seconds) * total) if seconds else f"~ {duration(guess)}"
        print(f"{experiment.name:<20}{state:<16}{cost:<14}{experiment.label:<18}{experiment.what}")
