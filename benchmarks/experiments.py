"""Lorenz at five values of ρ, 60 rows each: exact terms found together (`shared="structure"`) and from each alone.

``python -m benchmarks.experiments --draws 10 --first 100`` prints, for every noise, how often all three equations are
exact: together, and what share of the fits to one trajectory alone.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.integrate import solve_ivp

from ardea.dynamics import Discovery

RHO = (24.0, 26.0, 28.0, 31.0, 35.0)
TRUTH = [{"x", "y"}, {"x", "y", "x z"}, {"x y", "z"}]
NAMES = ["x", "y", "z"]
NOISES = (0.02, 0.1, 0.2, 0.4)
ROWS, STEP = 60, 0.05


def lorenz(rho: float, start: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the states at some times."""

    def slope(_: float, y: np.ndarray) -> list[float]:
        return [10 * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]

    return solve_ivp(slope, (t[0], t[-1]), start, t_eval=t, rtol=1e-9, atol=1e-9).y.T


def draw(noise: float, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return times and noisy states of one experiment for every ρ, each from a start on its attractor."""
    rng, t, out = np.random.default_rng(seed), STEP * np.arange(ROWS), []
    for rho in RHO:
        start = lorenz(rho, rng.normal([1.0, 1.0, 20.0]), np.array([0.0, 20.0]))[-1]
        states = lorenz(rho, start, t)
        out.append(states + noise * states.std(axis=0) * rng.normal(size=states.shape))
    return [t] * len(RHO), out


def exact(x: object, t: object, shared: str | None = None) -> bool:
    """Return whether the terms found are the right ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Discovery(shared=shared).fit(x, t, feature_names=NAMES)
    return [set(one.terms) for one in model.equations_] == TRUTH


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--noise", type=float, nargs="*", default=NOISES)
    asked = parser.parse_args()
    for noise in asked.noise:
        together, apart = [], []
        for seed in range(asked.first, asked.first + asked.draws):
            t, x = draw(noise, seed)
            together.append(exact(x, t, "structure"))
            apart += [exact(one, times) for one, times in zip(x, t, strict=True)]
        print(
            f"noise {noise:g}: together {sum(together)} of {len(together)}, apart {sum(apart)} of {len(apart)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
