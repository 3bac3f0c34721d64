"""Many fits at once: the same bits as one after another, no leak, no deadlock with the threads of BLAS.

The default suite runs a few hundred fits; ``pytest -m slow tests/whole/test_load.py`` runs 10,000 in threads and
10,000 in processes.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.model_selection import GridSearchCV

from ardea import ARDSearch, ARDvi, SparseARD
from ardea.dynamics import Discovery, Polynomials, systems
from conftest import FAMILY, sparse_data

STATM = Path("/proc/self/statm")
# Resident memory may grow by so much between the first tenth of the fits and the last: the allocator's own.
GROWTH_MB = 6.0
# Seconds after which a run that should take a few counts as stuck.
STUCK = 150
MANY = [300, pytest.param(10_000, marks=pytest.mark.slow)]

# Small problems leave few rows; what the warnings say is not what is tested here. (They are not safe in threads.)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
needs_statm = pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")


def resident_mb():
    """Return the resident memory of this process."""
    gc.collect()
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def small_fit(number):
    """Return all numbers of one of 42 small fits, of every kind in turn; every third is wide."""
    kind = FAMILY[number % 7]
    m, d = (40, 8) if number % 3 else (20, 30)
    data = sparse_data(seed=number % 14, m=m, d=d, k=2)
    model = kind().fit(data.X, data.y)
    mean, deviation = model.predict(data.X, return_std=True)
    return np.concatenate([model.coef_, [model.noise_variance_, model.log_evidence_], mean, deviation]).tobytes()


def many_fits(numbers):
    """Return the fits of a batch, and which process it ran in with how much memory at the end."""
    fits = [small_fit(number) for number in numbers]
    return fits, os.getpid(), resident_mb()


@pytest.fixture(scope="module")
def alone():
    """The 42 fits, one after another."""
    return {number: small_fit(number) for number in range(42)}


@needs_statm
@pytest.mark.parametrize("count", MANY)
def test_many_fits_in_threads(count, alone):
    with ThreadPoolExecutor(4) as pool:
        first = list(pool.map(small_fit, range(count // 10)))
        before = resident_mb()
        rest = list(pool.map(_is_right(alone), range(count // 10, count)))
        growth = resident_mb() - before
    assert all(fit == alone[number % 42] for number, fit in enumerate(first))
    assert all(rest)
    assert growth < GROWTH_MB


def _is_right(alone):
    """Return a function that fits and compares at once, so that no result is held."""
    return lambda number: small_fit(number) == alone[number % 42]


@needs_statm
@pytest.mark.parametrize("count", MANY)
def test_many_fits_in_processes(count, alone):
    batches = np.array_split(np.arange(count), 20)
    told = Parallel(n_jobs=2, backend="loky")(delayed(many_fits)(batch.tolist()) for batch in batches)
    memory = {}
    for batch, (fits, process, resident) in zip(batches, told, strict=True):
        assert all(fit == alone[number % 42] for number, fit in zip(batch, fits, strict=True))
        memory.setdefault(process, []).append(resident)
    for resident in memory.values():
        early = resident[len(resident) // 4]
        assert resident[-1] - early < GROWTH_MB


# Threads of BLAS ------------------------------------------------------------------------------------------------------

# BLAS has threads of its own before the processes begin, in the parent and in its children, and they fit in threads.
SCRIPT = """
import faulthandler, multiprocessing, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from ardea import SparseARD

faulthandler.dump_traceback_later({stuck}, exit=True)
threadpool_limits(2, user_api="blas")


def fit(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 40))
    return SparseARD().fit(X, X[:, 0] - X[:, 1] + rng.normal(size=300)).coef_.tobytes()


def child(seed):
    threadpool_limits(2, user_api="blas")
    large = np.ones((300, 300))
    assert (large @ large)[0, 0] == 300
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(fit, [seed, seed + 1]))


if __name__ == "__main__":
    large = np.ones((600, 600))
    assert (large @ large)[0, 0] == 600
    here = [child(seed) for seed in range(2)]
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        there = pool.map(child, range(2))
    assert here == there, "fits differ between processes"
    print("same bits")
"""


SLOW_STARTS = [pytest.param(start, marks=pytest.mark.slow) for start in ("spawn", "forkserver")]


@pytest.mark.parametrize("start", ["fork", *SLOW_STARTS])
def test_no_deadlock_with_threads_of_blas(start, tmp_path):
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {start} here")
    script = tmp_path / "many.py"
    script.write_text(SCRIPT.format(stuck=STUCK))
    run = subprocess.run(
        [sys.executable, "-W", "ignore", script, start],
        capture_output=True,
        text=True,
        timeout=STUCK + 30,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    )
    assert (run.returncode, run.stdout.strip()) == (0, "same bits"), run.stderr


# Nested parallelism ---------------------------------------------------------------------------------------------------


def searched(seed, criterion, n_jobs):
    """Return the scores and coefficients of a search that runs jobs of its own."""
    data = sparse_data(seed=seed, m=60, d=10)
    search = ARDSearch(SparseARD(), [0.1, 1.0], criterion, n_resamples=4, cv=3, n_jobs=n_jobs, random_state=0)
    search.fit(data.X, data.y)
    return search.path_["score"].tobytes(), search.best_estimator_.coef_.tobytes()


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("criterion", ["cv", "stability"])
def test_searches_within_parallel_jobs(backend, criterion):
    expected = [searched(seed, criterion, None) for seed in range(4)]
    nested = Parallel(n_jobs=2, backend=backend)(delayed(searched)(seed, criterion, 2) for seed in range(4))
    assert nested == expected


@pytest.mark.parametrize(
    "model",
    [ARDvi(), ARDSearch(ARDvi(), criterion="stability", n_resamples=3, n_jobs=2, random_state=0)],
    ids=["model", "search"],
)
def test_grid_search_with_jobs(model):
    data = sparse_data(m=90, d=10)
    grid = {"alpha": [1.0, 4.0, 9.0]} if isinstance(model, ARDvi) else {"strengths": [[4.0, 9.0], [1.0, 2.0]]}
    one, two = (GridSearchCV(model, grid, cv=3, n_jobs=jobs).fit(data.X, data.y) for jobs in (None, 2))
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(one.predict(data.X), two.predict(data.X))


def test_one_model_asked_by_many_threads():
    """A stream is solved when first asked for, here by eight threads at once."""
    data = sparse_data(m=200, d=20)
    expected = SparseARD().fit(data.X, data.y).predict(data.X)
    for _ in range(20):
        stream = SparseARD().partial_fit(data.X, data.y)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _, model=stream: model.predict(data.X), range(8)))
        for answer in answers:
            np.testing.assert_array_equal(answer, answers[0])
        np.testing.assert_allclose(answers[0], expected, rtol=1e-10)


# Discovery ------------------------------------------------------------------------------------------------------------


def discovered(seed):
    """Return the coefficients that a discovery finds in a short noisy oscillation, in two forms."""
    t, x = systems.linear_oscillator().noisy(0.01, seed=seed)
    form = ("trajectory", "weak")[seed % 2]
    return Discovery(Polynomials(2), form=form).fit(x[::4], t[::4]).coefficients().tobytes()


def test_discovery_in_threads():
    expected = [discovered(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(discovered, range(3))) == expected
