"""A measurement in a process of its own, on one thread, and results that survive an interruption."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401  # its BLAS is the one that counts, and has to be loaded to be seen
from threadpoolctl import threadpool_info, threadpool_limits

Record = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = dict.fromkeys(
    (
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)
PACKAGES = ("ardea", "numpy", "scipy", "scikit-learn", "fastrvm", "abess", "skglm", "pysindy")


def measured(case: str, method: str, *, repeat: int, seed: int, limit: float) -> Record:
    """Run :mod:`benchmarks.measure` and return its record; `timeout` or `error` in it where there is no result."""
    command = [sys.executable, "-m", "benchmarks.measure", case, method]
    command += ["--repeat", str(repeat), "--seed", str(seed), "--limit", str(limit)]
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False
    )
    record: Record = {"case": case, "method": method}
    if done.returncode == 0:
        record = json.loads(done.stdout.splitlines()[-1])
    elif done.returncode == -signal.SIGALRM:
        record["timeout"] = limit
    else:
        last = done.stderr.strip().splitlines()[-1:] or ["nothing on stderr"]
        record["error"] = f"exit {done.returncode}: {last[0]}"
    if record.get("cpu", 0.0) > limit:
        record["timeout"] = limit
    return {**record, "elapsed": time.perf_counter() - start}


def summary(record: Record) -> str:
    """Return one line about a record."""
    name = f"{record['case']:18} {record['method']:21}"
    if "timeout" in record:
        return f"{name} > {record['timeout']:g} s"
    for state in ("skipped", "error"):
        if state in record:
            return f"{name} {state}: {record[state]}"
    return f"{name} {record['cpu']:.4g} s"


@contextmanager
def cpu_limit(limit: float) -> Iterator[None]:
    """Raise a TimeoutError after so many seconds of CPU time."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not finished within {limit:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    # Again every few seconds, in case code that must not raise was interrupted.
    signal.setitimer(signal.ITIMER_VIRTUAL, limit, 5.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def save_json(path: Path, content: Any) -> None:
    """Write to a temporary file and rename it, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    temporary.replace(path)


def machine() -> dict[str, str]:
    """Return processor, BLAS and versions."""
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    # Several packages bring their own; NumPy's comes first.
    libraries.sort(key=lambda library: "numpy" not in library["filepath"])
    blas = [f"{b['internal_api']} {b['version']} ({b['architecture']})" for b in libraries]
    return {
        "cpu": f"{_cpu_model()}, {os.cpu_count()} cores (one thread used)",
        "blas": blas[0] if blas else "not known",
        "python": f"{platform.python_version()} on {platform.system()}",
        "outer loop": _outer_loop(),
        **{package: _version(package) for package in PACKAGES},
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _outer_loop() -> str:
    """Return which of Ardea's two loops is in use."""
    try:
        from ardea.core.loop import loop_in_use
    except ImportError:
        return "not known"
    return str(loop_in_use())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def trials_command(description: str | None, out: Path, seed: int, run: Any, report: Any, kinds: Any = None) -> None:
    """Run trials as the command line asks, save and print them; or print what was saved.

    `run(trials, seed, jobs)` returns the records, `report` the page of what is saved. Where records are of several
    `kinds`, those of one may be made anew: `run(trials, seed, jobs, kinds)`.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60, help="draws of every design")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--jobs", type=int, default=1, help="parallel processes")
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--table", action="store_true", help="print the saved results, run nothing")
    if kinds:
        parser.add_argument("--only", choices=kinds, help="make the records of this kind anew, keep the others")
    options = parser.parse_args()
    if options.trials < 2:
        parser.error("--trials must be at least 2: the standard error needs two.")
    if not options.table:
        others = _records_kept(options) if kinds and options.only else []
        with threadpool_limits(1):
            which = [[options.only] if options.only else kinds] if kinds else []
            records = run(options.trials, options.seed, options.jobs, *which)
        settings = {"trials": options.trials, "seed": options.seed, "machine": machine()}
        save_json(options.out, {"settings": settings, "records": others + records})
    print(report(json.loads(options.out.read_text())))


def _records_kept(options: argparse.Namespace) -> list[Record]:
    """Return the saved records of other kinds, which must be of the same draws."""
    saved = json.loads(options.out.read_text(encoding="utf-8"))
    drawn = saved["settings"]["trials"], saved["settings"]["seed"]
    if drawn != (options.trials, options.seed):
        raise SystemExit(f"The saved records are of {drawn[0]} trials from seed {drawn[1]}: ask for the same.")
    return [one for one in saved["records"] if one["kind"] != options.only]
