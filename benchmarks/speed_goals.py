"""Each goal for the speed of regressions as one ratio: ``python -m benchmarks.speed_goals [small] [wide] …``.

Both sides of a ratio are measured in the same process, in turns, as CPU time of one thread, so that a machine that does
something else as well changes both. Exits with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402 - the threads of BLAS are set before it is loaded
from scipy.linalg import toeplitz  # noqa: E402

from benchmarks import cases  # noqa: E402
from benchmarks.cases import Array  # noqa: E402
from benchmarks.evidence import evidence_cost  # noqa: E402

SMALL = ((100, 10), (250, 20), (500, 20), (1000, 25), (2500, 25))
WIDE = ("gauss_300x1000", "gauss_500x2000", "dct_1024x4096", "gauss_1000x10000", "gauss_5000x5000")
TALL = ("gauss_20000x1000", "gauss_524288x25")
# Elapsed time after which ARDRegression is not waited for any longer: in times of ARD, in seconds (beyond twice the
# goal), and what its start may take.
PATIENCE, MOST_WAITED, STARTING = 20.0, 120.0, 30.0
ILL_SECONDS = 1.0


class Goal(NamedTuple):
    """What was measured, the bound on it, and whether it is one from below."""

    name: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def told(self) -> str:
        """Return a line."""
        sign = "≥" if self.at_least else "≤"
        return f"{self.name:58} {self.value:8.2f}  goal {sign} {self.bound:g}{'' if self.met else '  MISSED'}"


def cpu(function: Callable[[], Any], repeat: int = 1) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    for _ in range(repeat):
        function()
    return (time.process_time() - start) / repeat


def in_turns(functions: dict[str, Callable[[], Any]], rounds: int, repeat: int) -> dict[str, float]:
    """Return the median time of each, measured in turns."""
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(cpu(function, repeat))
    return {name: float(np.median(each)) for name, each in times.items()}


def small(seed: int) -> Iterator[Goal]:
    """Small fits next to Ridge, whose checks are the floor, and the share of the tests of residuals."""
    from sklearn.linear_model import Ridge

    from ardea import ARD, SparseARD
    from ardea.estimators.dependence import rows_advice

    tested = {"all": rows_advice, "none": lambda *_: (np.nan, [])}
    for m, d in SMALL:
        X, y, _ = cases.gauss(m, d, d // 3, seed)
        fits = {"Ridge": Ridge(), "ARD": ARD(), "SparseARD": SparseARD()}
        times = in_turns({name: partial(model.fit, X, y) for name, model in fits.items()}, 25, 5)
        yield Goal(f"ARD / Ridge, {m} × {d}", times["ARD"] / times["Ridge"], 1.5)
        yield Goal(f"SparseARD / Ridge, {m} × {d}", times["SparseARD"] / times["Ridge"], 2.5)
        times = in_turns({name: partial(fit_with, tests, X, y) for name, tests in tested.items()}, 25, 5)
        yield Goal(f"share of ARD that tests rows, %, {m} × {d}", 100 * (1 - times["none"] / times["all"]), 10)


def fit_with(tests: Callable[..., Any], X: Array, y: Array) -> None:
    """Fit ARD with other tests of the rows."""
    from ardea import ARD
    from ardea.estimators import base

    own, base.rows_advice = base.rows_advice, tests
    try:
        ARD().fit(X, y)
    finally:
        base.rows_advice = own


# What a process of its own runs: ARDRegression on a case, its CPU time, and the cost that it ends with.
PEER = """
import sys, time
from benchmarks import cases
from benchmarks.evidence import evidence_cost
from benchmarks.methods import ard_regression
ard_regression(*cases.build("gauss_60x12", 0)[:2])
X, y, _ = cases.build(sys.argv[1], int(sys.argv[2]))
start = time.process_time()
found = ard_regression(X, y)
print(time.process_time() - start, evidence_cost(X, y, found.gamma, found.noise))
"""


def against_ard_regression(name: str, seed: int, faster: float) -> Iterator[Goal]:
    """ARD next to ARDRegression: time, and the cost (−2 ln of the evidence, less constants) where both end."""
    from ardea import ARD

    X, y, _ = cases.build(name, seed)
    model = ARD(fit_intercept=False)
    own = cpu(lambda: model.fit(X, y))
    try:
        command = [sys.executable, "-c", PEER, name, str(seed)]
        patience = max(2 * faster, min(MOST_WAITED / own, PATIENCE))
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience * own + STARTING, check=True)
    except subprocess.TimeoutExpired:
        yield Goal(f"ARDRegression / ARD, {name} ({own:.2f} s; not waited for)", patience, faster, at_least=True)
        return
    peer, cost = map(float, done.stdout.split())
    yield Goal(f"ARDRegression / ARD, {name} ({own:.2f} s)", peer / own, faster, at_least=True)
    own_cost = evidence_cost(X, y, model.prior_variance_, float(model.noise_variance_))
    yield Goal(f"cost of ARD less that of ARDRegression, {name}", own_cost - cost, 0.0)


def wide(seed: int) -> Iterator[Goal]:
    """Plain ARD with at least as many columns as rows."""
    for name in WIDE:
        yield from against_ard_regression(name, seed, 2.0)


def tall(seed: int) -> Iterator[Goal]:
    """Many rows: Gram products are the floor."""
    from ardea import ARD, SparseARD

    for name in TALL:
        X, y, _ = cases.build(name, seed)
        fits = {
            "Gram": lambda X=X: X.T @ X,
            "ARD": lambda X=X, y=y: ARD(fit_intercept=False).fit(X, y),
            "SparseARD": lambda X=X, y=y: SparseARD(fit_intercept=False).fit(X, y),
        }
        times = in_turns(fits, 3, 1)
        yield Goal(f"ARD / one Gram product, {name}", times["ARD"] / times["Gram"], 2.5)
        yield Goal(f"SparseARD / ARD, {name}", times["SparseARD"] / times["ARD"], 1.0)
        yield from against_ard_regression(name, seed, 4.0)


def ill(seed: int) -> Iterator[Goal]:
    """Columns that are nearly dependent: the slowest of all estimators."""
    from ardea import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD

    rng, rows = np.random.default_rng(seed), np.arange(300)
    for d in (30, 35, 40):
        columns = {
            "Vandermonde [-1, 1]": np.vander(np.linspace(-1, 1, 300), d, increasing=True),
            "Vandermonde [0, 1]": np.vander(np.linspace(0, 1, 300), d, increasing=True),
            "Hilbert": 1 / (rows[:, None] + np.arange(d) + 1.0),
            "Toeplitz": toeplitz(0.999 ** np.arange(300.0))[:, :d],
        }
        for name, X in columns.items():
            slowest, which = 0.0, ""
            for dense in (False, True):
                truth = rng.normal(size=d) * (dense or (np.arange(d) % 7 == 1))
                for noise in (0.0, 1e-8, 1e-2):
                    y = X @ truth
                    y = y + noise * y.std() * rng.normal(size=300)
                    for model in (ARD(), ARDvi(), ARDr(), MSTSBL(), LSTSBL(), MAPSTSBL(), SparseARD()):
                        taken = cpu(lambda model=model, X=X, y=y: model.fit(X, y))
                        if taken > slowest:
                            slowest, which = taken, type(model).__name__
            yield Goal(f"seconds of the slowest ({which}), {name} 300 × {d}", slowest, ILL_SECONDS)


# What a process of its own runs while the machine is busy: the elapsed time of 200 fits.
TWO_HUNDRED = """
import time, warnings
from ardea import SparseARD
from benchmarks import cases
warnings.simplefilter("ignore")
X, y, _ = cases.gauss(750, 25, 8, 0)
for i in range(210):
    start = time.perf_counter()
    SparseARD().fit(X, y)
    if i >= 10:
        print(time.perf_counter() - start)
"""


def threads(seed: int) -> Iterator[Goal]:
    """Fit on a busy machine with default threads of BLAS, in many threads of Python, and very often."""
    from ardea import SparseARD

    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        command = [sys.executable, "-c", TWO_HUNDRED]
        default, one = (
            np.array(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split(), float)
            for env in (free, free | {"OPENBLAS_NUM_THREADS": "1"})
        )
    finally:
        for process in busy:
            process.kill()
    yield Goal("busy machine, default threads / one thread, median", float(np.median(default) / np.median(one)), 1.3)
    yield Goal("busy machine, worst of 200 / worst with one thread", float(default.max() / one.max()), 3.0)
    X, y, _ = cases.gauss(100, 10, 3, seed)

    def many(number: int) -> None:
        for _ in range(number):
            SparseARD().fit(X, y)

    def side_by_side() -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(many, [500] * 8))

    yield Goal("8 threads × 500 fits / one thread × 4000, CPU time", cpu(side_by_side) / cpu(lambda: many(4000)), 1.3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many(10_000)
    yield Goal("memory after 10,000 more fits, kB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 256)


SECTIONS = {"small": small, "wide": wide, "tall": tall, "ill": ill, "threads": threads}


def main() -> None:
    """Print one line for every goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], default=list(SECTIONS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    missed = 0
    for section in options.sections:
        for goal in SECTIONS[section](options.seed):
            print(goal.told(), flush=True)
            missed += not goal.met
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
