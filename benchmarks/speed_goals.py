"""Each goal for the speed of regressions as one ratio: ``python -m benchmarks.speed_goals [small] [wide] …``.

Both sides of a ratio are measured in the same process, in turns, as CPU time of one thread, so that a machine that does
something else as well changes both. `threads` measures elapsed time, in processes of its own: nothing else may run.
Exits with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402 - the threads of BLAS are set before it is loaded
from scipy.linalg import toeplitz  # noqa: E402

from benchmarks import cases  # noqa: E402
from benchmarks.cases import Array  # noqa: E402
from benchmarks.evidence import evidence_cost  # noqa: E402
from benchmarks.methods import ard_regression  # noqa: E402

SMALL = ((100, 10), (250, 20), (500, 20), (1000, 25), (2500, 25))
WIDE = ("gauss_300x1000", "gauss_500x2000", "dct_1024x4096", "gauss_1000x10000", "gauss_5000x5000")
TALL = ("gauss_20000x1000", "gauss_524288x25")
# Seconds of CPU time after which ARDRegression is not waited for any longer, as a multiple of the time of ARD.
PATIENCE = 10
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


def against_ard_regression(name: str, seed: int, faster: float) -> Iterator[Goal]:
    """ARD next to ARDRegression: time, and the cost (−2 ln of the evidence, less constants) where both end."""
    from ardea import ARD

    X, y, _ = cases.build(name, seed)
    model = ARD(fit_intercept=False)
    own = cpu(lambda: model.fit(X, y))
    peer = peer_time(name, seed, PATIENCE * own)
    ratio, note = (PATIENCE, " (not waited for)") if peer is None else (peer / own, "")
    yield Goal(f"ARDRegression / ARD, {name}{note}", ratio, faster, at_least=True)
    if peer is not None:
        other = ard_regression(X, y)
        costs = (
            evidence_cost(X, y, model.prior_variance_, float(model.noise_variance_)),
            evidence_cost(X, y, other.gamma, other.noise),
        )
        yield Goal(f"cost of ARD less that of ARDRegression, {name}", costs[0] - costs[1], 0.0)


def peer_time(name: str, seed: int, limit: float) -> float | None:
    """Return the CPU time of ARDRegression in a process of its own; None where it needs more than the limit."""
    code = (
        "import sys, time\nfrom benchmarks import cases\nfrom benchmarks.methods import ard_regression\n"
        "ard_regression(*cases.build('gauss_60x12', 0)[:2])\nX, y, _ = cases.build(sys.argv[1], int(sys.argv[2]))\n"
        "start = time.process_time()\nard_regression(X, y)\nprint(time.process_time() - start)"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, name, str(seed)], capture_output=True, text=True, timeout=3 * limit, check=True
        )
    except subprocess.TimeoutExpired:
        return None
    return float(done.stdout)


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


SECTIONS = {"small": small, "wide": wide, "tall": tall, "ill": ill}


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
