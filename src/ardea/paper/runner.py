"""Run the trials that are missing, record each as it ends, then make the outputs.

Trials go through joblib: processes on this machine by default, a Dask cluster under
``joblib.parallel_config(backend="dask")``. The parent process alone writes records, so workers need no shared disk.
"""

from __future__ import annotations

import errno
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from joblib import Parallel, delayed

from ardea.paper.experiment import Experiment, ExperimentError, Settings
from ardea.paper.outputs import write_outputs
from ardea.paper.records import Records, Row, TrialResult, TrialStore
from ardea.progress import Progress


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
    """Run what is missing of an experiment and write its outputs.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    settings : Settings
        Scale, variant and seed.
    out : Path
        Folder for all experiments.
    jobs : int, optional
        Parallel jobs; None leaves it to joblib (one, or what `parallel_config` says).
    beyond : bool
        Whether to add our own methods.
    progress : bool, optional
        None: a progress bar on a terminal only.
    command : str
        Noted in environment.json.

    Returns
    -------
    Path
        The folder with records.csv, table.md, figure.png, figure.svg and environment.json.
    """
    folder = folder_of(out, experiment, settings)
    with explained(folder):
        parts = experiment.parts(settings, beyond)
        results = [result for part in parts for result in _trials(experiment, part, out, jobs, progress)]
        records = Records({"trial": result.number} | row for result in results for row in result.rows)
        seconds = sum(result.seconds for result in results)
        write_outputs(experiment, settings, folder, records, seconds=seconds, command=command)
    return folder


def _trials(
    experiment: Experiment, settings: Settings, out: Path, jobs: int | None, progress: bool | None
) -> list[TrialResult]:
    """Return all trials of a part, running those that have no sound record."""
    store = store_of(out, experiment, settings)
    for path in store.put_damaged_aside(settings.n_trials):
        print(f"A record was damaged; it is kept as {path} and its trial is run again.", file=sys.stderr)
    done = store.finished(settings.n_trials)
    missing = [number for number in range(settings.n_trials) if number not in done]
    title = experiment.name if settings.part == "paper" else f"{experiment.name} (beyond)"
    with Progress(title, settings.n_trials, len(done), shown=progress) as bar:
        for result in _computed(experiment, settings, missing, jobs):
            store.save(result)
            done[result.number] = result
            bar.step()
    return [done[number] for number in sorted(done)]


def _computed(
    experiment: Experiment, settings: Settings, numbers: list[int], jobs: int | None
) -> Iterator[TrialResult]:
    """Yield trials as they end, in any order."""
    few = jobs if jobs is None else min(jobs, max(1, len(numbers)))
    parallel = Parallel(n_jobs=few, batch_size=1, return_as="generator_unordered")
    yield from parallel(delayed(timed_trial)(experiment.trial, settings, number) for number in numbers)


def timed_trial(trial: Callable[[Settings, int], list[Row]], settings: Settings, number: int) -> TrialResult:
    """Run one trial on one BLAS thread, and count its processor time.

    What the fits warn of is in the rows (column `warned`), not on the screen.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.thread_time()
        rows = trial(settings, number)
        return TrialResult(number, time.thread_time() - start, rows)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn what a disk, or the end of a worker, can do to us into one line that says what to do."""
    try:
        yield
    except OSError as error:
        reasons = {
            errno.ENOSPC: "the disk is full. Finished trials are kept: free some space and run the same command again.",
            errno.EDQUOT: "your quota is used up. Finished trials are kept: free some space and run it again.",
            errno.EACCES: "the folder cannot be written to. Choose another with --out.",
            errno.EPERM: "the folder cannot be written to. Choose another with --out.",
            errno.EROFS: "the file system is read-only. Choose another folder with --out.",
            errno.ENOTDIR: "a part of this path is a file, not a folder. Choose another with --out.",
            errno.EEXIST: "a part of this path is a file, not a folder. Choose another with --out.",
        }
        reason = reasons.get(error.errno or 0)
        if reason is None:
            raise
        raise ExperimentError(f"{folder}: {reason}") from error
    except BrokenProcessPool as error:
        raise ExperimentError(
            "a worker process was killed, perhaps for want of memory. Finished trials are kept: run the same command "
            "again, with fewer --jobs."
        ) from error
