"""One measurement: ``python -m benchmarks.measure CASE METHOD --repeat N --seed S`` prints one line of JSON.

Alone in its process, so that its memory and its caches are its own. :mod:`benchmarks.run` sets one thread.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import resource
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cases
from benchmarks.cases import Array
from benchmarks.evidence import evidence_cost
from benchmarks.methods import FLOORS, METHODS, OPERATOR, Outcome

# Tall and wide, since packages choose their path (and numba compiles) by shape.
WARM_UP = ("gauss_60x12", "gauss_30x60")
WARM_UP_OPERATOR = ("dct_32x64",)
# Short fits are repeated beyond N until they have had this much time, but not without end.
LEAST_SECONDS = 0.3
MOST_REPEATS = 30
# Elapsed seconds allowed for one CPU second.
WALL_MARGIN = 1.2


def problem(name: str, method: str, seed: int) -> tuple[Any, Array, Array, Array]:
    """Return what the method gets as X, then y, the true coefficients and X as a dense array."""
    X, y, true = cases.build(name, seed)
    if method != OPERATOR:
        return X, y, true, X
    from ardea import Operator

    transform = cases.operator(name, seed)
    if transform is None:
        raise ValueError(f"Case {name} has no fast transform: {OPERATOR} is for the dct cases.")
    return Operator(transform, np.linalg.norm(X, axis=0)), y, true, X


def warm_up(function: Callable[[Any, Array], Outcome], method: str) -> None:
    """Run the method on tiny data: imports and just-in-time compilation are not what is measured."""
    for name in WARM_UP_OPERATOR if method == OPERATOR else WARM_UP:
        X, y, *_ = problem(name, method, 0)
        function(X, y)


def resident_mb(field: str) -> float:
    """Return VmRSS (resident memory) or VmHWM (its peak) in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


class PeakMemory:
    """Peak resident memory above what was resident at the start, in MB."""

    def __init__(self) -> None:
        gc.collect()
        try:
            ctypes.CDLL(None).malloc_trim(0)  # freed memory that is still resident would hide later needs
            Path("/proc/self/clear_refs").write_text("5")
            self._start, self._linux = resident_mb("VmRSS"), True
        except (OSError, AttributeError):
            self._start, self._linux = self._largest(), False

    @staticmethod
    def _largest() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def extra(self) -> float:
        """Return the peak since the start."""
        return max(0.0, (resident_mb("VmHWM") if self._linux else self._largest()) - self._start)


def allow(seconds: float) -> None:
    """Let the system end the process after this many seconds (0: never), whatever native code it is in.

    SIGALRM kept at its default action. A limit on CPU time (RLIMIT_CPU) would make the CPU clock advance in ticks of
    4 ms; the margin is for a machine that is also doing something else.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, WALL_MARGIN * seconds)


def timed_runs(
    function: Callable[[Any, Array], Outcome], X: Any, y: Array, repeat: int, limit: float
) -> tuple[Outcome, list[float], float]:
    """Return the first outcome, the CPU time of every run, and the peak extra memory of the first."""
    times: list[float] = []
    memory = PeakMemory()
    while True:
        allow(limit)
        start = time.process_time()
        result = function(X, y)
        times.append(time.process_time() - start)
        if len(times) == 1:
            outcome, peak = result, memory.extra()
        enough = len(times) >= repeat and (sum(times) > LEAST_SECONDS or len(times) >= MOST_REPEATS)
        # A repeat that might be ended by the limit would take the runs that are done with it.
        if enough or sum(times) + 2 * max(times) > limit:
            allow(0)
            return outcome, times, peak


def judged(outcome: Outcome, X: Array, y: Array, true: Array) -> dict[str, float | int | None]:
    """Return cost, terms kept, added and missed, and the l2 error."""
    kept = outcome.coef != 0
    cost = None
    if outcome.gamma is not None and outcome.noise is not None:
        cost = evidence_cost(X, y, outcome.gamma, outcome.noise)
    return {
        "cost": cost,
        "kept": int(kept.sum()),
        "added": int((kept & (true == 0)).sum()),
        "missed": int((~kept & (true != 0)).sum()),
        "l2": float(np.linalg.norm(outcome.coef - true)),
    }


def measure(name: str, method: str, *, repeat: int, seed: int, limit: float) -> dict[str, Any]:
    """Return the measurement, or why there is none."""
    function = {**METHODS, **FLOORS}[method]
    record: dict[str, Any] = {"case": name, "method": method}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            warm_up(function, method)
        except ImportError as missing:
            return {**record, "skipped": str(missing)}
        caught.clear()
        X, y, true, dense = problem(name, method, seed)
        outcome, times, peak = timed_runs(function, X, y, repeat, limit)
        record["warnings"] = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    record |= {"rows": y.size, "columns": true.size, "cpu": min(times), "runs": len(times), "extra_mb": peak}
    return record if method in FLOORS else record | judged(outcome, dense, y, true)


def main() -> None:
    """Print the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("method", choices=[*METHODS, *FLOORS])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=300.0, help="CPU seconds one run may take")
    options = parser.parse_args()
    record = measure(options.case, options.method, repeat=options.repeat, seed=options.seed, limit=options.limit)
    print(json.dumps(record))


if __name__ == "__main__":
    main()
