"""The only outer loop of the package: from one state to the next until the certificate holds; working sets.

Its steps are compiled (``_compiled.pyx``), or taken by their NumPy twin (:mod:`ardea.core.reweighted`): without a
compiler, for settings that the compiled ones cannot take, and where ``ARDEA_LOOP=numpy`` is in the environment. Both
give the same numbers (tested).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from ardea.core.evidence import Flat, Posterior, Setting, sharpened
from ardea.core.lazy import compiled_module, numpy_is_asked_for
from ardea.core.problem import Array, DenseColumns, Index
from ardea.core.reweighted import NumpySteps, State

compiled = compiled_module("core._compiled")

# Majorisation steps before the first Newton step: enough to choose the basin the paper's algorithm would choose.
FIRST_NEWTON = 15
NEXT_NEWTON = 3
# A fit that twice in this many steps has neither halved its gap nor lowered its cost by this share is at rounding level
# (measured: of 610 fits to columns of condition 1 to 1e7, up to 207 steps long, none is taken for one that is not).
# Once is not enough: with inflation and σ² learned the cost may rise on the way.
STALL_WINDOW, STALLS = 20, 2
STALL_SHARE = 1e-10
# A plain fit with σ² at its floor beside more terms than this share of the rows has collapsed for good (measured: none
# of 1,874 random problems that ended well, half of them without noise, had such a step; with 0.5 two of 1,459 had one).
INTERPOLATING_SHARE = 0.7
# A working set pays from this many columns, and this many times the rows, on.
LEAST_COLUMNS = 2000
LEAST_RATIO = 3
# It begins with this many times the rows.
FIRST_RATIO = 1
MAX_ROUNDS = 20
# Seconds between two lines about the progress of a fit: a convention.
TELLING = 5.0
# What hears of every step: its number, the number of terms, and the gap.
Watch = Callable[[int, int, float], None]


# What a fit returns


class Status(Enum):
    """How a fit ended, the gravest last."""

    EMPTY_TARGET = "empty target"
    CONVERGED = "converged"
    WEAK = "shrunk, since chance might explain y as well"
    LEFT_OUT = "all columns together explain more"
    OVERSHRUNK = "noise inflated by shrinkage"
    RESCUED = "rescued from a collapse"
    STALLED = "stalled at rounding error"
    MAX_ITER = "max_iter reached"
    COLLAPSED = "collapsed"


def worst(*statuses: Status) -> Status:
    """Return the status of several stages that the user most needs to hear of."""
    return max(statuses, key=list(Status).index)


# What to do where a warning is due, with fields max_iter, gap, tol, terms, rows to fill in.
STATUS_ADVICE = {
    Status.MAX_ITER: (
        "The fit stopped at max_iter={max_iter} before both γ and σ² had settled to tol={tol:.1e} "
        "(kkt_gap_={gap:.1e}). Raise max_iter, or tol if that is close enough for you "
        "(python -m ardea.explain convergence)."
    ),
    Status.STALLED: (
        "The fit can no longer be improved (kkt_gap_={gap:.1e}, tol={tol:.1e}): the columns are so nearly dependent "
        "that what is left is rounding error. Remove columns that repeat others, give noise_variance, or raise tol "
        "(python -m ardea.explain convergence)."
    ),
    Status.COLLAPSED: (
        "The fit keeps {terms} on {rows}: the model is close to interpolating the data, and its noise variance "
        "cannot be trusted. Give noise_variance, ask for fewer terms (SparseARD, or a larger strength), or add rows "
        "(python -m ardea.explain collapse)."
    ),
    Status.RESCUED: (
        "On the way the fit kept more than a quarter as many terms as there are rows, where the noise variance cannot "
        "be learned from the data alone. The model returned keeps {terms} on {rows}; its noise variance errs on "
        "the high side. Give noise_variance if you know it, or add rows (python -m ardea.explain collapse)."
    ),
    Status.OVERSHRUNK: (
        "The prior shrinks the coefficients so much that the learned noise variance is more than four times that of "
        "least squares on the same terms. Give eta (beyond which γ is not penalised), another prior, or "
        "noise_variance (python -m ardea.explain convergence)."
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

    def in_units(self, n_rows: float, unit: Array, target_unit: float, log_volume: float = 0.0) -> Trace:
        """Return the trace in the user's units, given those of the target and of the statistic of every column.

        `log_volume` is that of the coordinates.
        """
        units = [float(unit[one.column]) for one in self.dropped]
        dropped = tuple(
            replace(one, statistic=one.statistic * each, threshold=one.threshold * each)
            for one, each in zip(self.dropped, units, strict=True)
        )
        cost = self.cost + 2 * n_rows * np.log(target_unit) + log_volume
        return Trace(cost, self.noise_variance * target_unit**2, self.n_terms, dropped)

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


class Progress:
    """Tells on standard error where a long fit stands."""

    def __init__(self, name: str) -> None:
        self.name, self.begun = name, time.monotonic()
        self.last = self.begun

    def __call__(self, n_iter: int, n_terms: int, gap: float) -> None:
        """Take note of a step; tell of it where nothing has been told for some seconds."""
        now = time.monotonic()
        if now - self.last < TELLING:
            return
        self.last = now
        stands = f"at step {n_iter}: number of terms {n_terms}, kkt_gap {gap:.1e}"
        print(f"{self.name}, after {now - self.begun:.0f} s, is {stands}", file=sys.stderr, flush=True)


# The loop


def loop_in_use() -> str:
    """Return "compiled" or "numpy"."""
    return "numpy" if compiled is None or numpy_is_asked_for() else "compiled"


def solve(
    setting: Setting,
    *,
    start: Array | None = None,
    max_iter: int = 500,
    tol: float = 1e-6,
    progress: Watch | None = None,
) -> Fit:
    """Iterate from γ = `start` (default: 0) until the certificate is at most tol; `progress` hears of every step."""
    begin = _initial_delta(setting, start), setting.noise_rule.start(setting.problem)
    limits = start is not None, max_iter, tol, progress
    try:
        fit = _iterated(setting, compiled_steps(setting, *begin) or NumpySteps(setting, *begin), *limits)
    except ArithmeticError:  # the compiled steps leave some cases to their twin
        fit = _iterated(setting, NumpySteps(setting, *begin), *limits)
    return replace(fit, status=Status.COLLAPSED) if _has_collapsed(setting, fit) else fit


def compiled_steps(setting: Setting, delta: Array, noise: float) -> Any:
    """Return the compiled steps; None where they are not in use, cannot take the setting, or get no memory."""
    problem, prior = setting.problem, setting.prior.capped_linear
    columns, d = problem.columns, problem.n_columns
    if loop_in_use() != "compiled" or prior is None or problem.total == 0:
        return None
    if not isinstance(columns, DenseColumns) or min(columns.shape) == 0:
        return None
    free = isinstance(setting.prior, Flat)
    lam, eta = (None if free else np.full(d, values, dtype=float) for values in prior[:2])
    try:
        return compiled.Steps(setting, lam, eta, prior[2], np.ascontiguousarray(delta), noise)
    except MemoryError:  # the twin asks for less at once
        return None


def _iterated(setting: Setting, steps: Any, started: bool, max_iter: int, tol: float, progress: Watch | None) -> Fit:
    """Take majorisation steps, and Newton steps where they are due, until the certificate holds."""
    history: list[tuple[float, float, int]] = []
    wait, since, stalls, settled, n_iter = FIRST_NEWTON, 0, 0, False, 0
    earlier_gap = earlier_cost = np.inf
    while True:
        cost, kkt_gap, noise_gap, noise, k = steps.certify(tol)
        gap = max(kkt_gap, noise_gap)
        history.append((cost, noise, k))
        if progress is not None:
            progress(n_iter, k, gap)
        if setting.problem.total == 0:
            status = Status.EMPTY_TARGET
            break
        if gap <= tol and (n_iter > 0 or started):
            status = Status.CONVERGED
            break
        if setting.gives_up and _interpolates(setting, noise, k):
            status = Status.COLLAPSED
            break
        if n_iter >= max_iter:
            status = Status.MAX_ITER
            break
        if n_iter % STALL_WINDOW == 0:
            stalls = stalls + 1 if gap > 0.5 * earlier_gap and cost > earlier_cost - STALL_SHARE * abs(cost) else 0
            if stalls == STALLS:
                status = Status.STALLED
                break
            earlier_gap, earlier_cost = gap, cost
        n_iter += 1
        due = setting.newton and (settled or since >= wait)
        if due and steps.newton(tol):
            since, wait, settled = 0, NEXT_NEWTON, False
        else:
            wait = 2 * wait if due else wait
            settled = steps.majorise() and not due
            since += 1
    gamma = setting.inflation * steps.variances()
    *parts, condition = steps.posterior_parts()
    post = sharpened(setting.problem, Posterior(*parts), condition)
    costs, noises, terms = (np.array(column) for column in zip(*history, strict=True))
    return Fit(gamma, noise, post, kkt_gap, n_iter, status, Trace(costs, noises, terms))


def _initial_delta(setting: Setting, start: Any) -> Array:
    given = start is not None and setting.problem.total > 0
    delta = start / setting.inflation if given else np.zeros(setting.problem.n_columns)
    lower, upper = setting.prior.bounds
    within = delta if setting.prior.convex is None else np.minimum(np.maximum(delta, lower), upper)
    return np.where(setting.problem.square_norms > 0, within, 0.0)


def at_floor(setting: Setting, noise: float) -> bool:
    """Whether a learned σ² has fallen to the least that its rule allows."""
    rule, problem = setting.noise_rule, setting.problem
    return rule.learned and problem.total > 0 and noise <= rule.floor(problem) * (1 + 1e-9)


def _interpolates(setting: Setting, noise: float, n_terms: int) -> bool:
    """Whether nothing is left for the noise beside so many terms, of columns that are enough to interpolate."""
    problem = setting.problem
    return n_terms > INTERPOLATING_SHARE * problem.n_distinct and problem.wide and at_floor(setting, noise)


def _has_collapsed(setting: Setting, fit: Fit) -> bool:
    """Whether a learned σ² cannot be trusted: too many terms, and columns enough to interpolate or no noise left."""
    problem, k = setting.problem, fit.posterior.active.size
    if not setting.noise_rule.learned or not problem.too_many(k):
        return False
    nothing_left = at_floor(setting, fit.noise)
    plain = not nothing_left and bool((setting.inflation <= 1).all())
    return problem.too_many(k, plain=plain) and (problem.wide or nothing_left)


def solve_wide(setting: Setting, *, start: Array | None = None, tol: float = 1e-6, **limits: Any) -> Fit:
    """Solve on a working set where columns far outnumber rows, else as `solve` does, whose limits these are.

    Only with inflation and without a prior on γ: plain ARD keeps a third of all columns, so that nearly all can enter.
    """
    rows, d = setting.problem.columns.shape
    prior = setting.prior.capped_linear
    few = d < LEAST_COLUMNS or d < LEAST_RATIO * rows or setting.problem.total == 0
    if few or prior is None or np.any(prior[0]) or not (setting.inflation > 1).all():
        return solve(setting, start=start, tol=tol, **limits)
    chosen = _first_working_set(setting, start, FIRST_RATIO * rows)
    earlier: Fit | None = None
    for _ in range(MAX_ROUNDS):
        within = None if start is None else start[chosen]
        fit = solve(setting.restrict(chosen), start=within, tol=tol, **limits).on(d, chosen)
        here = State(setting, fit.gamma / setting.inflation, fit.noise)
        fit = replace(fit if earlier is None else fit.after(earlier), kkt_gap=here.kkt_gap)
        c, q = here.weights_and_scores
        beyond = (q**2 > c * (1 + tol)) & (setting.problem.square_norms > 0)
        beyond[chosen] = False
        if not beyond.any() or fit.status in {Status.MAX_ITER, Status.STALLED}:
            return fit
        setting = replace(setting, noise_rule=replace(setting.noise_rule, initial=fit.noise))
        start, chosen, earlier = fit.gamma, np.union1d(chosen, np.flatnonzero(beyond)), fit
    return replace(fit, status=Status.MAX_ITER)


def _first_working_set(setting: Setting, start: Array | None, size: int) -> Index:
    problem = setting.problem
    rho = problem.square_norms
    score = problem.correlations**2 / np.where(rho > 0, rho, np.inf) / setting.inflation
    largest = np.argpartition(-score, min(size, score.size - 1))[:size]
    return np.union1d(largest, np.flatnonzero(start) if start is not None else largest[:0])
