"""Weak signals in many columns: the risk of SparseARD and ARDvi next to that of predicting the mean.

    python -m benchmarks.weak [--trials 100] [--seed 5000]

The design is that of Hastie, Tibshirani & Tibshirani, "Best subset, forward stepwise or lasso?" (Statistical Science,
2020): rows N(0, Σ) with Σ_ij = ρ^|i−j|, ρ = .35, five coefficients of 1 (beta-type 2), and σ² by the ratio of signal to
noise, SNR = βᵀΣβ/σ². The relative risk (β̂ − β)ᵀΣ(β̂ − β)/βᵀΣβ is 1 for the mean of y and 0 for the truth. Some
minutes on one core; means and standard errors are saved in ``benchmarks/results/weak.json``, from which
``python docs/pages.py`` writes the table in docs/regressions_table.md.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ardea import ARDvi, SparseARD
from benchmarks.cases import Array
from benchmarks.process import Record, machine, save_json

RESULT = Path(__file__).parent / "results" / "weak.json"
SHAPES = ((100, 10), (500, 100), (50, 1000), (100, 1000))
# Of the paper: ten values from .05 to 6 in equal steps of the logarithm, of which every other one.
RATIOS = (0.05, 0.14, 0.42, 1.22, 3.52, 6.0)
CORRELATION, TERMS = 0.35, 5
METHODS = {"SparseARD": SparseARD, "ARDvi": ARDvi}


def covariance(columns: Array) -> Array:
    """Return Σ of some columns."""
    return np.asarray(CORRELATION ** np.abs(np.subtract.outer(columns, columns)), dtype=float)


def draw(rows: int, columns: int, ratio: float, seed: int) -> tuple[Array, Array, Array]:
    """Return X, y and the true coefficients."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    for j in range(1, columns):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * X[:, j]
    truth = (np.arange(columns) < TERMS).astype(float)
    sigma = np.sqrt(covariance(np.arange(TERMS)).sum() / ratio)
    return X, X @ truth + sigma * rng.normal(size=rows), truth


def relative_risk(coef: Array, truth: Array) -> float:
    """Return (β̂ − β)ᵀΣ(β̂ − β)/βᵀΣβ."""
    error, index = coef - truth, np.flatnonzero((coef != 0) | (truth != 0))
    signal = truth[index] @ covariance(index) @ truth[index]
    return float(error[index] @ covariance(index) @ error[index] / signal)


def cell(rows: int, columns: int, ratio: float, seeds: range) -> list[Record]:
    """Return the mean risk of every method, its standard error, and the mean number of terms."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
    for seed in seeds:
        X, y, truth = draw(rows, columns, ratio, seed)
        for name, make in METHODS.items():
            model: Any = make()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of weak evidence, which is what is measured
                coef = model.fit(X, y).coef_
            found[name].append((relative_risk(coef, truth), float((coef != 0).sum())))
    records = []
    for name, values in found.items():
        risk, terms = np.array(values).T
        error = float(risk.std(ddof=1) / np.sqrt(risk.size))
        record = {"rows": rows, "columns": columns, "ratio": ratio, "method": name}
        records.append(record | {"risk": float(risk.mean()), "error": error, "terms": float(terms.mean())})
    return records


def main() -> None:
    """Measure all cells and save them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=5000, help="seed of the first draw")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.trials)
    plan = tqdm([(*shape, ratio) for shape in SHAPES for ratio in RATIOS])
    with threadpool_limits(1):
        records = [record for one in plan for record in cell(*one, seeds)]
    settings = {"trials": options.trials, "seed": options.seed, "machine": machine()}
    save_json(RESULT, {"settings": settings, "records": records})


if __name__ == "__main__":
    main()
