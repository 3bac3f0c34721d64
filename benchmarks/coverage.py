"""Coverage of 95 % intervals by the true size of a coefficient in standard errors, as a Markdown table.

Run ``python benchmarks/coverage.py`` (about a minute). Orthonormal columns, σ = 1 known; every row of the table counts
coefficients that plain ARD kept (a dropped term has no interval).
"""

from __future__ import annotations

import argparse

import numpy as np

from ardea import ARD

TRUE_T = (1, 2, 3, 4, 6, 10, 15)
COLUMNS = 200


def coverage(true_t: float, trials: int, generator: np.random.Generator) -> tuple[float, float, float]:
    """Return the share kept, and the coverage of posterior and refit intervals among those kept."""
    kept = covered_posterior = covered_refit = 0
    for _ in range(trials):
        y = true_t + generator.normal(size=COLUMNS)
        model = ARD(noise_variance=1.0, fit_intercept=False).fit(np.eye(COLUMNS), y)
        kept += int(model.support_.sum())
        for kind in ("posterior", "refit"):
            low, high = model.credible_interval(kind=kind)[model.support_].T
            inside = int(((low <= true_t) & (true_t <= high)).sum())
            if kind == "posterior":
                covered_posterior += inside
            else:
                covered_refit += inside
    return kept / (trials * COLUMNS), covered_posterior / kept, covered_refit / kept


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=50, help=f"fits of {COLUMNS} coefficients per row")
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    print("| true t | kept | posterior covers | refit covers |\n|---:|---:|---:|---:|")
    for true_t in TRUE_T:
        kept, posterior, refit = coverage(true_t, options.trials, generator)
        print(f"| {true_t} | {kept:.1%} | {posterior:.1%} | {refit:.1%} |", flush=True)


if __name__ == "__main__":
    main()
