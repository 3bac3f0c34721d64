"""What a fit is given and what it returns: prior, noise rule and setting; trace, status and fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from ardea.core.evidence import Posterior
from ardea.core.problem import Array, Index, Problem

# Share of ‖y‖²/m below which σ² is not let fall: rounding error for m > d; where d ≥ m the joint optimum can collapse.
FLOOR_TALL = 1e-16
FLOOR_WIDE = 1e-6
# σ² of a target that is zero (others have ‖y‖² near 1): ρ/σ² and multiples of it must stay numbers.
LEAST_NOISE = 1e-100


class Prior:
    """Prior p(γ) ∝ exp(−(g + f)/2) with g concave and f convex (Eq. gamma_prior); subclasses define g and f.

    `value` and `slope` are those of g; `curvature` is taken by differences where it is not given. The noise variance is
    passed along for priors that scale with it.
    """

    convex: Any = None  # the convex part f (see `ardea.priors.Convex`), or None where it is zero
    scales_with_noise: Any = False  # whether g depends on σ²
    capped_linear: Any = None  # (lam, eta, over_noise) where the whole prior is lam·min(γ, eta): for the compiled loop

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Smallest and largest γ allowed."""
        return (0.0, np.inf) if self.convex is None else self.convex.bounds

    def value(self, gamma: Array, noise: float) -> Array:
        """Return g(γ), elementwise."""
        return np.zeros_like(gamma)

    def slope(self, gamma: Array, noise: float) -> Array:
        """Return g′(γ), elementwise."""
        return np.zeros_like(gamma)

    def curvature(self, gamma: Array, noise: float) -> Array:
        """Return g″(γ), elementwise, by differences."""
        step = 1e-6 * gamma + np.finfo(float).tiny
        with np.errstate(invalid="ignore", over="ignore"):
            rise = (self.slope(gamma + step, noise) - self.slope(gamma, noise)) / step
        return np.where(gamma > 0, rise, 0.0)


class Flat(Prior):
    """No prior: plain ARD."""

    capped_linear = (0.0, np.inf, False)


@dataclass(frozen=True)
class NoiseRule:
    """σ² is `known`, or learned: σ² ← ‖y − Θμ‖²/(m − k + Σ_j Σ_jj/γ_j) over the k active columns.

    That is the stationary point of L in σ². `initial` (None: ‖y‖²/m) starts it, e.g. where an earlier fit of the same y
    ended. Where d ≥ m the floor is high, because the joint optimum may collapse; `low_floor` says that it has been seen
    not to.
    """

    known: float | None = None
    initial: float | None = None
    low_floor: bool = False

    @property
    def learned(self) -> bool:
        """Whether σ² is not known."""
        return self.known is None

    def start(self, problem: Problem) -> float:
        """Return the known value, `initial`, or ‖y‖²/m: as if no column explained anything."""
        if self.known is not None:
            return self.known
        start = problem.total / problem.n_rows if self.initial is None else self.initial
        return max(start, self.floor(problem))

    def update(self, problem: Problem, post: Posterior) -> float:
        """Return the next σ², where it is learned not below the floor."""
        if self.known is not None:
            return self.known
        degrees = problem.n_rows - post.active.size + post.n_undetermined
        floor = self.floor(problem)
        return max(post.rss / degrees, floor) if degrees > 0 else floor

    def floor(self, problem: Problem) -> float:
        """Return the smallest σ² that may be learned."""
        share = FLOOR_TALL if self.low_floor or not problem.wide else FLOOR_WIDE
        return max(share * problem.total / problem.n_rows, LEAST_NOISE)


@dataclass(frozen=True)
class Setting:
    """What stays fixed during the loop.

    The noise rule sees the posterior at γ = αδ, or (`rule_inflated`) at δ, which puts it at the inflated noise: the
    remedy for a collapse when d > m.
    """

    problem: Problem
    prior: Prior  # g and f
    noise_rule: NoiseRule
    inflation: Array  # α for every column; all ones but for ARDvi
    rule_inflated: bool = False
    newton: bool = True  # whether Newton steps may be taken

    @property
    def noise_factors(self) -> Array:
        """What δ is multiplied by before the noise rule sees it."""
        return np.ones_like(self.inflation) if self.rule_inflated else self.inflation

    @property
    def uniform_inflation(self) -> bool:
        """Whether one α serves all columns, so that a common objective exists."""
        return bool(np.all(self.inflation == self.inflation[:1]))

    @property
    def has_cost(self) -> bool:
        """Whether the loop descends one objective: at fixed noise, or where σ² too is stationary in it."""
        if not self.noise_rule.learned:
            return self.uniform_inflation
        return bool(np.all(self.inflation == 1)) and not self.prior.scales_with_noise

    def restrict(self, index: Index) -> Setting:
        """Return the setting with the chosen columns only."""
        part = replace(self.problem, columns=self.problem.columns.restrict(index))
        return replace(self, problem=part, inflation=self.inflation[index])


class Status(Enum):
    """How a fit ended, the gravest last."""

    EMPTY_TARGET = "empty target"
    CONVERGED = "converged"
    OVERSHRUNK = "noise inflated by shrinkage"
    RESCUED = "rescued from a collapse"
    STALLED = "stalled at rounding error"
    MAX_ITER = "max_iter reached"
    COLLAPSED = "collapsed"


def worst(*statuses: Status) -> Status:
    """Return the status of several stages that the user most needs to hear of."""
    return max(statuses, key=list(Status).index)


# What to do where a warning is due, with fields max_iter, gap, tol, k, rows to fill in.
STATUS_ADVICE = {
    Status.MAX_ITER: (
        "The fit stopped at max_iter={max_iter} before both γ and σ² had settled to tol={tol:.1e} "
        "(kkt_gap_={gap:.1e}). Raise max_iter, or tol if that is close enough for you (docs/warnings/convergence)."
    ),
    Status.STALLED: (
        "The fit can no longer be improved (kkt_gap_={gap:.1e}, tol={tol:.1e}): the columns are so nearly dependent "
        "that what is left is rounding error. Remove columns that repeat others, give noise_variance, or raise tol "
        "(docs/warnings/convergence)."
    ),
    Status.COLLAPSED: (
        "The fit keeps {k} terms on {rows}: the model is close to interpolating the data, and its noise variance "
        "cannot be trusted. Give noise_variance, ask for fewer terms (SparseARD, or a larger strength), or add rows "
        "(docs/warnings/collapse)."
    ),
    Status.RESCUED: (
        "On the way the fit kept more than a quarter as many terms as there are rows, where the noise variance cannot "
        "be learned from the data alone. The model returned keeps {k} terms on {rows}; its noise variance errs on "
        "the high side. Give noise_variance if you know it, or add rows (docs/warnings/collapse)."
    ),
    Status.OVERSHRUNK: (
        "The prior shrinks the coefficients so much that the learned noise variance is more than four times that of "
        "least squares on the same terms. Give eta (beyond which γ is not penalised), another prior, or "
        "noise_variance (docs/warnings/convergence)."
    ),
}


@dataclass(frozen=True)
class Dropped:
    """One column that a threshold removed: in which round, its statistic, and the threshold it failed."""

    column: int
    round: int
    statistic: float
    threshold: float


@dataclass(frozen=True)
class Trace:
    """What happened on the way.

    Attributes
    ----------
    cost : ndarray
        Objective at every step of the loop (all rounds one after another), at the noise used in the loop.
    noise_variance : ndarray
        σ² at every step.
    n_terms : ndarray
        Number of active columns at every step.
    dropped : tuple of Dropped
        For thresholding: every column removed, in order.
    """

    cost: Array = field(default_factory=lambda: np.empty(0))
    noise_variance: Array = field(default_factory=lambda: np.empty(0))
    n_terms: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    dropped: tuple[Dropped, ...] = ()

    def in_units(self, n_rows: float, unit: Array, target_unit: float) -> Trace:
        """Return the trace in the user's units, given those of the target and of the statistic of every column."""
        dropped = tuple(
            replace(
                one,
                statistic=float(one.statistic * unit[one.column]),
                threshold=float(one.threshold * unit[one.column]),
            )
            for one in self.dropped
        )
        cost = self.cost + 2 * n_rows * np.log(target_unit)
        return replace(self, cost=cost, noise_variance=self.noise_variance * target_unit**2, dropped=dropped)

    def then(self, later: Trace) -> Trace:
        """Return this trace followed by a later one."""
        return Trace(
            np.concatenate([self.cost, later.cost]),
            np.concatenate([self.noise_variance, later.noise_variance]),
            np.concatenate([self.n_terms, later.n_terms]),
            self.dropped + later.dropped,
        )


@dataclass(frozen=True)
class Fit:
    """End of one run of the outer loop, in the problem's own coordinates."""

    gamma: Array  # prior variances, exactly zero off the support
    noise: float  # σ², un-inflated
    posterior: Posterior  # at γ and the un-inflated σ²
    kkt_gap: float  # certificate, at the noise used in the loop
    n_iter: int  # steps of the outer loop
    status: Status
    trace: Trace

    def after(self, earlier: Fit) -> Fit:
        """Return this fit with the steps of an earlier one, from which it went on, before its own."""
        return replace(self, trace=earlier.trace.then(self.trace), n_iter=earlier.n_iter + self.n_iter)

    def on(self, n_columns: int, columns: Index) -> Fit:
        """Return a fit on some columns of a problem as a fit on all of them, the others exactly zero.

        The residual of its posterior stays in the rows of the smaller problem.
        """
        gamma = np.zeros(n_columns)
        gamma[columns] = self.gamma
        return replace(self, gamma=gamma, posterior=replace(self.posterior, active=columns[self.posterior.active]))
