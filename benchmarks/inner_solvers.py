"""The paper's remark on inner solvers: the weighted lasso of Alg. 1 against the condition number.

½‖y − Θξ‖² + Σ λ_j|ξ_j| with λ = σ²√c (the paper's weights 2σ²√c on ‖y − Θξ‖²) as it arises in the first iterations of
ARD, on the `linear` case with condition numbers from 1 to 10⁶. Every solver starts from zero with the same limit on its
iterations; scikit-learn's take no weights and get columns divided by λ_j. The KKT gap is the largest violation of
|θ_jᵀ(y − Θξ)| ≤ λ_j (equality with the sign of ξ_j where it is not zero) relative to λ_j, by one function for all.
``python -m benchmarks.inner_solvers`` prints a table and saves ``inner_solvers.json`` and ``inner_solvers.png``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.cases import Array, linear
from benchmarks.process import machine, save_json
from benchmarks.tables import machine_line, markdown, seconds

OUTER_STEPS = 5
TOLERANCE = 1e-10
CHECK_EVERY = 100
STYLES = {
    "coordinate descent": {"marker": "s", "linestyle": "--", "color": "tab:blue"},
    "proximal gradient": {"marker": "^", "linestyle": ":", "color": "tab:red"},
    "LARS": {"marker": "D", "linestyle": "-.", "color": "tab:green"},
    "Ardea": {"marker": "o", "linestyle": "-", "color": "black"},
}


def weighted_problem(condition: float, seed: int) -> tuple[Array, Array, Array]:
    """Return Θ, y and the weights λ of ARD's iteration number OUTER_STEPS (from γ = 0, σ² = ‖y‖²/m)."""
    X, y, _ = linear(seed, condition)
    m, d = X.shape
    gamma, noise = np.zeros(d), float(y @ y / m)
    for _ in range(OUTER_STEPS):
        c = np.einsum("ij,ij->j", X, precision(X, gamma, noise) @ X)
        weights = noise * np.sqrt(c)
        gamma = np.abs(ardea_lasso(X, y, weights, 0)) / np.sqrt(c)
        # rss = σ⁴‖Σ_y⁻¹y‖² and m − k + Σ Σ_jj/γ_j = σ² tr Σ_y⁻¹
        inverse = precision(X, gamma, noise)
        noise *= float(np.sum((inverse @ y) ** 2) / np.trace(inverse))
    return X, y, weights


def precision(X: Array, gamma: Array, noise: float) -> Array:
    """Return Σ_y⁻¹, dense."""
    return np.asarray(np.linalg.inv(noise * np.eye(X.shape[0]) + (X * gamma) @ X.T), dtype=np.float64)


def coordinate_descent(X: Array, y: Array, weights: Array, max_iter: int) -> Array:
    """Lasso of scikit-learn."""
    from sklearn.linear_model import Lasso

    model = Lasso(alpha=1 / y.size, fit_intercept=False, max_iter=max_iter, tol=TOLERANCE)
    return model.fit(X / weights, y).coef_ / weights


def proximal_gradient(X: Array, y: Array, weights: Array, max_iter: int) -> Array:
    """Accelerated proximal gradient (FISTA), momentum restarted where it points uphill."""
    step = 1 / np.linalg.norm(X, 2) ** 2
    xi = ahead = np.zeros(X.shape[1])
    momentum = 1.0
    for iteration in range(max_iter):
        moved = ahead + step * (X.T @ (y - X @ ahead))
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * weights, 0.0)
        if (ahead - new) @ (new - xi) > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - xi)
        xi, momentum = new, following
        if iteration % CHECK_EVERY == 0 and kkt_gap(X, y, weights, xi) <= TOLERANCE:
            break
    return xi


def lars(X: Array, y: Array, weights: Array, max_iter: int) -> Array:
    """LassoLars of scikit-learn."""
    from sklearn.linear_model import LassoLars

    model = LassoLars(alpha=1 / y.size, fit_intercept=False, max_iter=max_iter, fit_path=False)
    return np.ravel(model.fit(X / weights, y).coef_) / weights


def ardea_lasso(X: Array, y: Array, weights: Array, max_iter: int) -> Array:
    """Active set of Ardea; it is finite and has its own bound on the number of faces."""
    from ardea.core.lasso import weighted_lasso
    from ardea.core.problem import DenseColumns, Problem

    return weighted_lasso(Problem(DenseColumns(X), y, 0.0, y.size), weights)


SOLVERS: dict[str, Callable[[Array, Array, Array, int], Array]] = {
    "coordinate descent": coordinate_descent,
    "proximal gradient": proximal_gradient,
    "LARS": lars,
    "Ardea": ardea_lasso,
}


def kkt_gap(X: Array, y: Array, weights: Array, xi: Array) -> float:
    """Return the largest violation of the optimality conditions, relative to the weights."""
    ratio = X.T @ (y - X @ xi) / weights
    return float(np.where(xi == 0, np.maximum(np.abs(ratio) - 1, 0), np.abs(ratio - np.sign(xi))).max())


def solved(name: str, problem: tuple[Array, Array, Array], *, repeat: int, max_iter: int) -> dict[str, Any]:
    """Return best CPU time, KKT gap and number of terms of one solver on one problem."""
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converging is what the gap shows
        for _ in range(repeat):
            start = time.process_time()
            xi = SOLVERS[name](*problem, max_iter)
            times.append(time.process_time() - start)
    return {"solver": name, "cpu": min(times), "gap": kkt_gap(*problem, xi), "kept": int(np.sum(xi != 0))}


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Draw time and gap against the condition number."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for panel, key, label in zip(panels, ("cpu", "gap"), ("CPU time (s)", "KKT gap, relative to λ"), strict=True):
        for name, style in STYLES.items():
            own = [record for record in records if record["solver"] == name]
            # A gap of exactly zero is drawn at rounding level.
            values = [max(record[key], np.finfo(float).eps) for record in own]
            panel.loglog([record["condition"] for record in own], values, label=name, **style)
        panel.set(xlabel="condition number κ", ylabel=label)
        panel.grid(visible=True, alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(STYLES))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def table(records: list[dict[str, Any]]) -> str:
    """Return the records as a table."""
    header = ("solver", "κ", "CPU time", "KKT gap", "terms")
    return markdown(
        header,
        [[r["solver"], f"{r['condition']:.0e}", seconds(r["cpu"]), f"{r['gap']:.1e}", str(r["kept"])] for r in records],
    )


def main() -> None:
    """Solve, print, save and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-iter", type=int, default=100_000, help="iterations (passes) every solver may make")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    records: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for name in SOLVERS:  # imports are not what is measured
            solved(name, weighted_problem(1.0, options.seed), repeat=1, max_iter=10)
        for condition in 10.0 ** np.arange(7):
            problem = weighted_problem(condition, options.seed)
            for name in SOLVERS:
                record = solved(name, problem, repeat=options.repeat, max_iter=options.max_iter)
                records.append({"condition": condition, **record})
    save_json(options.out / "inner_solvers.json", {"machine": machine(), "records": records})
    draw(records, options.out / "inner_solvers.png")
    print(f"{machine_line(machine())}\n\n{table(records)}")


if __name__ == "__main__":
    main()
