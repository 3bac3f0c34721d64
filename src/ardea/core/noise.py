"""Rules for the noise variance σ²: fixed, learned, or the authors' (for replaying the paper only)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy import linalg

from ardea.core.columns import Array, Index
from ardea.core.posterior import Posterior
from ardea.core.problem import Problem

# Share of ‖y‖²/m below which σ² is not let fall: rounding error for m > d; where d ≥ m the joint optimum can collapse.
FLOOR_TALL = 1e-16
FLOOR_WIDE = 1e-6
# σ² of a target that is zero (others have ‖y‖² near 1): ρ/σ² and multiples of it must stay numbers.
LEAST_NOISE = 1e-100


class NoiseRule(Protocol):
    """How σ² starts and how it follows γ."""

    @property
    def learned(self) -> bool:
        """Whether σ² is a variable of the fit."""

    def start(self, problem: Problem) -> float:
        """Return σ² before the first step."""

    def update(self, problem: Problem, post: Posterior) -> float:
        """Return the next σ² given the posterior at the present one."""


@dataclass(frozen=True)
class Fixed:
    """σ² is known."""

    value: float
    learned: ClassVar[bool] = False

    def start(self, problem: Problem) -> float:
        """Return the known value."""
        return self.value

    def update(self, problem: Problem, post: Posterior) -> float:
        """Return the known value."""
        return self.value


@dataclass(frozen=True)
class Learned:
    """σ² ← ‖y − Θμ‖²/(m − k + Σ_j Σ_jj/γ_j) over the k active columns, the stationary point of L in σ².

    `initial` (None: ‖y‖²/m) starts it, e.g. where an earlier fit of the same y ended. Where d ≥ m the floor is high,
    because the joint optimum may collapse; `low_floor` says that it has been seen not to.
    """

    initial: float | None = None
    low_floor: bool = False
    learned: ClassVar[bool] = True

    def start(self, problem: Problem) -> float:
        """Return `initial`, or ‖y‖²/m: as if no column explained anything."""
        start = problem.total / problem.n_rows if self.initial is None else self.initial
        return max(start, self.floor(problem))

    def update(self, problem: Problem, post: Posterior) -> float:
        """Return the next σ², not below the floor."""
        degrees = problem.n_rows - post.active.size + post.n_undetermined
        floor = self.floor(problem)
        return max(post.rss / degrees, floor) if degrees > 0 else floor

    def floor(self, problem: Problem) -> float:
        """Return the smallest σ² allowed."""
        share = FLOOR_TALL if self.low_floor or problem.n_rows > problem.n_columns else FLOOR_WIDE
        return max(share * problem.total / problem.n_rows, LEAST_NOISE)


@dataclass(frozen=True)
class AuthorsRule:
    """The rule of the authors' published code, with its defects, so that their numbers can be replayed.

    m > d: ‖y − Θμ‖²/(m − d + Σ_j Σ_jj/γ_j) with d counting pruned columns. m ≤ d: the least L over 101 values of σ²
    with exponents from ln var(y) − 10 to ln var(y) *to base ten*, at coefficients held fixed; the largest of them lies
    below the true σ² in every one of the paper's linear trials.
    """

    target_variance: float
    initial: float = 1.0
    learned: ClassVar[bool] = True

    def start(self, problem: Problem) -> float:
        """Return σ² = 1, as the authors started."""
        return self.initial

    def update(self, problem: Problem, post: Posterior) -> float:
        """Return the next σ² as the authors' code does, at the posterior mean."""
        if problem.n_rows > problem.n_columns:
            return post.rss / (problem.n_rows - problem.n_columns + post.n_undetermined)
        return self.on_grid(problem, post.active, post.root, post.rss)

    def on_grid(self, problem: Problem, active: Index, root: Array, rss: float) -> float:
        """Return the σ² of the grid with the least log|σ²I + ZZᵀ| + rss/σ², Z = Θ_a Γ_a^{1/2} (`root` is √γ_a)."""
        top = np.log(self.target_variance)
        grid: Array = np.logspace(top - 10, top, 101)
        gram = problem.active.gram(active) * np.outer(root, root)
        eigenvalues = np.maximum(linalg.eigvalsh(gram, check_finite=False), 0.0) if active.size else np.empty(0)
        costs = (problem.n_rows - active.size) * np.log(grid) + rss / grid
        costs += np.log(eigenvalues[:, None] + grid).sum(axis=0)
        return float(grid[int(np.argmin(costs))])
