"""Data larger than memory: rates, growth with rows on a cluster, cost of merging, and what projections cost on KS.

``python -m benchmarks.large rates`` measures one core: NumPy's Gram product, compression, and merging of factors, one
by one and in trees of growing size. ``… cluster [--rows 20000000]`` fits up to so many rows × 50 columns, made in
blocks on two workers of 1.5 GB, against Gram products of the same blocks. ``… ks`` compares all rows of
Kuramoto–Sivashinsky with samples and projections. ``… draw`` draws what was measured, ``… tables`` prints it again.
Results are in ``large_data.json``, the picture is ``docs/large.png``.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from ardea import SparseARD
from ardea.core.compression import CompressedRows
from ardea.core.problem import Array
from ardea.distributed.compress import FAN_IN
from ardea.estimators.projections import Projection, RowSample, SparseSigns, project
from benchmarks.process import machine, save_json
from benchmarks.tables import machine_line, markdown

RESULTS = Path("benchmarks/results/large_data.json")
PICTURE = Path("docs/large.png")
COLUMNS, BLOCK_ROWS = 50, 250_000
TRUE = {3: 1.0, 17: -0.5, 30: 0.02, 44: 2.0}
NOISE = 1.0
WORKER_MEMORY = "1500MB"
# Kuramoto–Sivashinsky: noise in the field, noise in the slope alone.
KS_CASES = {"10 % in u_t": (0.0, 0.1), "1e-6 in u": (1e-6, 0.0), "1e-5 in u": (1e-5, 0.0)}


def saved() -> dict[str, Any]:
    """Return what was measured before."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def keep(name: str, content: Any) -> None:
    """Put one result among the others."""
    save_json(RESULTS, {**saved(), "machine": machine(), name: content})


# One core -------------------------------------------------------------------------------------------------------------


def best_time(function: Callable[[], Any], repeat: int = 3) -> float:
    """Return the least CPU time of a call."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def rates_of(columns: int) -> dict[str, float]:
    """Return rates of one core on a block of 128 MB, and the time to merge eight factors of that width."""
    rng = np.random.default_rng(0)
    rows = 2**27 // (8 * columns)
    X, Y = rng.normal(size=(rows, columns)), rng.normal(size=(rows, 1))
    gram = best_time(lambda: (X.T @ X, X.T @ Y))
    compression = best_time(lambda: CompressedRows.from_arrays(X, Y))
    factor = CompressedRows.from_arrays(X, Y)
    merge = best_time(lambda: reduce(CompressedRows.merge, [factor] * FAN_IN))
    flops = rows * columns**2
    return {
        "columns": columns,
        "gram_rows": rows / gram,
        "gram_gflops": flops / gram / 1e9,
        "rows": rows / compression,
        "gflops": flops / compression / 1e9,
        "gigabytes": X.nbytes / compression / 1e9,
        "ratio": gram / compression,
        "merge_eight": merge,
    }


def tree_time(columns: int, blocks: int) -> dict[str, float]:
    """Return the CPU time of all merges of a tree on one core, and of its longest branch."""
    rng = np.random.default_rng(0)
    rows = 10 * columns
    factor = CompressedRows.from_arrays(rng.normal(size=(rows, columns)), rng.normal(size=(rows, 1)))
    level = [factor] * blocks
    total = longest = 0.0
    while len(level) > 1:
        times = []
        merged = []
        for start in range(0, len(level), FAN_IN):
            begin = time.process_time()
            merged.append(reduce(CompressedRows.merge, level[start : start + FAN_IN]))
            times.append(time.process_time() - begin)
        total, longest, level = total + sum(times), longest + max(times), merged
    return {"columns": columns, "blocks": blocks, "total": total, "longest": longest}


def measure_rates() -> None:
    """Measure one core and print the tables."""
    rates = [rates_of(columns) for columns in (25, 50, 200, 500)]
    trees = [tree_time(50, blocks) for blocks in (64, 512, 4096, 20_000)]
    trees += [tree_time(500, blocks) for blocks in (8, 64, 512)]
    keep("rates", {"columns": rates, "trees": trees})
    print(rates_table(rates), trees_table(trees), sep="\n\n")


def rates_table(rates: list[dict[str, float]]) -> str:
    """Return the rates of one core."""
    header = ("columns", "Gram, rows/s", "compression, rows/s", "Gflop/s", "GB/s", "share of Gram", "merge of eight")
    return markdown(
        header,
        [
            [
                f"{r['columns']:.0f}",
                f"{r['gram_rows']:.3g}",
                f"{r['rows']:.3g}",
                f"{r['gflops']:.1f}",
                f"{r['gigabytes']:.2f}",
                f"{r['ratio']:.2f}",
                f"{1e3 * r['merge_eight']:.3g} ms",
            ]
            for r in rates
        ],
    )


def trees_table(trees: list[dict[str, float]]) -> str:
    """Return the cost of whole trees, a block, and along the longest branch."""
    return markdown(
        ("columns", "blocks", "all merges", "a block", "longest branch"),
        [
            [
                f"{t['columns']:.0f}",
                f"{t['blocks']:.0f}",
                f"{t['total']:.3g} s",
                f"{1e3 * t['total'] / t['blocks']:.3g} ms",
                f"{1e3 * t['longest']:.3g} ms",
            ]
            for t in trees
        ],
    )


# A cluster ------------------------------------------------------------------------------------------------------------


def made(block_id: tuple[int, ...] = (0, 0)) -> Array:
    """Return one block of [X y], from a stream of its own; uniform numbers, since making normal ones takes longer."""
    rng = np.random.Generator(np.random.SFC64([0, block_id[0]]))
    rows = np.empty((BLOCK_ROWS, COLUMNS + 1))
    rng.random(out=rows)
    rows[:, -1] *= NOISE * np.sqrt(12)
    for column, coefficient in TRUE.items():
        rows[:, -1] += coefficient * rows[:, column]
    return rows


def table_of(n_rows: int) -> Any:
    """Return [X y] as a Dask array that is made block by block where it is asked for."""
    import dask.array as da

    chunks = ((BLOCK_ROWS,) * (n_rows // BLOCK_ROWS), (COLUMNS + 1,))
    return da.map_blocks(made, chunks=chunks, meta=np.empty((0, 0)))


class Watch:
    """Peak resident memory of this process (client and scheduler) and of the workers, and their CPU time."""

    def __init__(self, client: Any) -> None:
        self.client, self.over = client, threading.Event()
        self.client_peak = self.worker_peak = 0.0
        self.threads = [threading.Thread(target=self._look, daemon=True)]

    def _look(self) -> None:
        import psutil

        own = psutil.Process()
        workers = [psutil.Process(pid) for pid in self.client.run(os.getpid).values()]
        while not self.over.wait(0.1):
            self.client_peak = max(self.client_peak, own.memory_info().rss / 1e6)
            self.worker_peak = max(self.worker_peak, *(worker.memory_info().rss / 1e6 for worker in workers))

    def cpu(self) -> float:
        """Return the CPU time that the workers have used so far."""
        return float(sum(self.client.run(time.process_time).values()))

    def __enter__(self) -> Watch:
        self._wall, self._cpu = time.perf_counter(), self.cpu()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.elapsed, self.used = time.perf_counter() - self._wall, self.cpu() - self._cpu
        self.over.set()


def gram_of(block: Array) -> Array:
    """Return the Gram matrix of a block, as an array of one block."""
    X, y = block[:, :-1], block[:, -1:]
    return np.column_stack([X.T @ X, X.T @ y])[None]


def cluster_point(client: Any, n_rows: int, repeat: int) -> dict[str, Any]:
    """Fit, take plain Gram products, and only make the same blocks; least CPU time of some repeats."""
    import dask.array as da

    table = table_of(n_rows)
    shape = (COLUMNS, COLUMNS + 1)
    looked_at = table.map_blocks(lambda block: block[:1, :1], chunks=(1, 1), meta=np.empty((0, 0))).sum()
    gram = da.map_blocks(
        gram_of, table, chunks=((1,) * table.numblocks[0], *shape), new_axis=2, meta=np.empty((0, 0, 0))
    ).sum(axis=0)
    models: list[SparseARD] = []
    jobs: dict[str, Callable[[], Any]] = {
        "cpu_making": looked_at.compute,
        "cpu_gram": gram.compute,
        "cpu": lambda: models.append(SparseARD().fit(table[:, :-1], table[:, -1])),
    }
    watches: dict[str, list[Watch]] = {name: [] for name in jobs}
    for _ in range(repeat):
        for name, job in jobs.items():
            with Watch(client) as watch:
                job()
            watches[name].append(watch)
    least = {name: min(watch.used for watch in found) for name, found in watches.items()}
    fits = watches["cpu"]
    point = {
        "rows": n_rows,
        "blocks": table.numblocks[0],
        "wall": min(watch.elapsed for watch in fits),
        **least,
        "ratio": (least["cpu_gram"] - least["cpu_making"]) / (least["cpu"] - least["cpu_making"]),
        "client_mb": max(watch.client_peak for watch in fits),
        "worker_mb": max(watch.worker_peak for watch in fits),
        "support": np.flatnonzero(models[0].support_).tolist(),
        "error": float(np.abs(models[0].coef_[list(TRUE)] - list(TRUE.values())).max()),
    }
    print(json.dumps(point), flush=True)
    return point


def measure_cluster(largest: int, repeat: int, check: bool) -> None:
    """Fit growing numbers of rows on two workers of 1.5 GB; to check, only the largest, and nothing is saved."""
    from distributed import Client, LocalCluster

    sizes = [largest // 2**p for p in range(0 if check else 4, -1, -1)]
    sizes = [max(1, size // BLOCK_ROWS) * BLOCK_ROWS for size in sizes]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=WORKER_MEMORY, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        cluster_point(client, 2 * BLOCK_ROWS, 1)  # imports
        points = [cluster_point(client, size, repeat) for size in sizes]
    print(cluster_table(points))
    if not check:
        keep("cluster", {"points": points, "load": os.getloadavg()[1]})
        return
    last = points[-1]
    assert last["support"] == sorted(TRUE), "wrong support"
    assert last["client_mb"] < 1000, "the client holds too much"
    assert last["ratio"] > 0.5, "less than half the rate of Gram products"


def cluster_table(points: list[dict[str, Any]]) -> str:
    """Return the fits on a cluster."""
    header = ("rows", "GB", "wall", "CPU: fit", "Gram", "making", "share of Gram", "client MB", "worker MB", "support")
    right = sorted(TRUE)
    return markdown(
        header,
        [
            [
                f"{p['rows'] / 1e6:g} million",
                f"{8e-9 * p['rows'] * COLUMNS:.2g}",
                f"{p['wall']:.3g} s",
                f"{p['cpu']:.3g} s",
                f"{p['cpu_gram']:.3g} s",
                f"{p['cpu_making']:.3g} s",
                f"{p['ratio']:.2f}",
                f"{p['client_mb']:.0f}",
                f"{p['worker_mb']:.0f}",
                "right" if p["support"] == right else str(p["support"]),
            ]
            for p in points
        ],
    )


# Kuramoto–Sivashinsky -------------------------------------------------------------------------------------------------


def ks_rows(field_noise: float, slope_noise: float, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return Θ, y and the true coefficients: 548,864 rows, 25 terms, sixth-order differences.

    Noise in the field (a share of its deviation) is in every column and in y; y is then the difference in time. Noise
    in the slope alone is added to y = Θξ (a share of its deviation): there the model is right.
    """
    from ardea.dynamics import FieldTerms, systems
    from ardea.dynamics.differences import finite_difference

    system, library = systems.kuramoto_sivashinsky(), FieldTerms()
    _, u = system.simulate()
    rng = np.random.default_rng(seed)
    u = u + field_noise * np.std(u) * rng.normal(size=u.shape)
    step = system.length / u.shape[0]
    slopes = {(q,): finite_difference(u, step, derivative=q, periodic=True) for q in range(1, 5)}
    theta = library.evaluate([u], lambda field, orders: slopes[orders])
    true = system.true_coefficients(library)[0]
    if slope_noise == 0:
        return theta, finite_difference(u, system.dt, axis=1).ravel(), true
    y = theta @ true
    return theta, y + slope_noise * np.std(y) * rng.normal(size=y.size), true


def ks_trials(theta: Array, y: Array, true: Array, make: Callable[[int], Projection] | None, trials: int) -> Any:
    """Return the mean of terms added, missed, l2 error, relative standard error and seconds over seeds."""
    found = []
    for seed in range(trials if make else 1):
        start = time.process_time()
        model = SparseARD(fit_intercept=False)
        model.fit(theta, y) if make is None else model.fit(project([(theta, y)], make(seed)), None)
        support, truth = model.support_, true != 0
        found.append(
            [
                (support & ~truth).sum(),
                (truth & ~support).sum(),
                np.linalg.norm(model.coef_ - true),
                np.median(model.coef_std_[truth & support]) if (truth & support).any() else np.nan,
                time.process_time() - start,
            ]
        )
    return np.nanmean(found, axis=0).tolist()


def measure_ks(trials: int) -> None:
    """Compare all rows with samples and projections of them."""
    records = []
    for case, noises in KS_CASES.items():
        theta, y, true = ks_rows(*noises)
        kinds: list[tuple[str, int, Any]] = [("all rows", len(y), None)]
        for n in (250, 2500, 25_000):
            kinds += [("row sample", n, RowSample), ("sparse signs", n, SparseSigns)]
        for name, n, kind in kinds:
            make = None if kind is None else lambda seed, kind=kind, n=n: kind(n, seed)
            values = ks_trials(theta, y, true, make, trials)
            records.append([case, name, n, *values])
            print(records[-1], flush=True)
    keep("ks", records)
    print(ks_table(records))


def ks_table(records: list[list[Any]]) -> str:
    """Return what projections cost on KS."""
    header = ("noise", "rows used", "number", "added", "missed", "l2 error", "posterior deviation", "CPU time")
    return markdown(
        header,
        [
            [case, name, f"{n}", f"{a:.1f}", f"{miss:.1f}", f"{l2:.2g}", f"{std:.2g}", f"{seconds:.2g} s"]
            for case, name, n, a, miss, l2, std, seconds in records
        ],
    )


# The picture ----------------------------------------------------------------------------------------------------------


def draw() -> None:
    """Draw growth with rows on the cluster, and the cost of merging."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    results = saved()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    points = results["cluster"]["points"]
    rows = [p["rows"] for p in points]
    for key, label, style in (
        ("cpu", "fit (rows made and compressed)", "ko-"),
        ("cpu_gram", "rows made, plain Gram products", "s--"),
        ("cpu_making", "rows made, no more", "^:"),
    ):
        times = [p[key] for p in points]
        slope = np.polyfit(np.log(rows), np.log(times), 1)[0]
        left.loglog(rows, times, style, label=f"{label}: exponent {slope:.2f}")
    left.set(xlabel=f"rows (of {COLUMNS} columns)", ylabel="CPU time of both workers (s)")
    trees = results["rates"]["trees"]
    for columns, colour in ((50, "black"), (500, "tab:blue")):
        chosen = [t for t in trees if t["columns"] == columns]
        blocks = [t["blocks"] for t in chosen]
        for key, label, style in (("total", "all merges", "o-"), ("longest", "longest branch", "^:")):
            times = [t[key] for t in chosen]
            right.loglog(blocks, times, style, color=colour, label=f"{columns} columns, {label}")
    right.set(xlabel="blocks", ylabel="CPU time of merging (s)")
    for panel in (left, right):
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(visible=True, alpha=0.3)
        panel.legend(fontsize=8)
    temporary = PICTURE.with_name("large.tmp.png")
    figure.savefig(temporary, dpi=150)
    temporary.replace(PICTURE)


def tables() -> str:
    """Return all tables that were measured."""
    results = saved()
    parts = [machine_line(results["machine"])]
    if "rates" in results:
        parts += [rates_table(results["rates"]["columns"]), trees_table(results["rates"]["trees"])]
    if "cluster" in results:
        parts.append(cluster_table(results["cluster"]["points"]))
    if "ks" in results:
        parts.append(ks_table(results["ks"]))
    return "\n\n".join(parts)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rates", "cluster", "ks", "draw", "tables"))
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeat", type=int, default=3, help="repeats on the cluster, the least time of which counts")
    parser.add_argument(
        "--check", action="store_true", help="fail where support, memory or rate are not as they should"
    )
    parser.add_argument("--trials", type=int, default=10, help="seeds of every projection")
    options = parser.parse_args()
    actions: dict[str, Callable[[], None]] = {
        "rates": measure_rates,
        "cluster": lambda: measure_cluster(options.rows, options.repeat, options.check),
        "ks": lambda: measure_ks(options.trials),
        "draw": draw,
        "tables": lambda: print(tables()),
    }
    actions[options.what]()


if __name__ == "__main__":
    main()
