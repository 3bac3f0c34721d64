"""The only outer loop of the package: from one state to the next until the certificate holds; working sets.

Its steps are compiled (``_compiled.pyx``), or taken by their NumPy twin (:mod:`ardea.core.reweighted`): without a
compiler, for settings that the compiled ones cannot take, and where ``ARDEA_LOOP=numpy`` is in the environment. Both
give the same numbers (tested).
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from ardea.core.evidence import Posterior, posterior, sharpened
from ardea.core.problem import Array, DenseColumns, Index
from ardea.core.result import Fit, Setting, Status, Trace
from ardea.core.reweighted import NumpySteps, State

compiled: Any
try:
    compiled = import_module("ardea.core._compiled")
except ImportError:  # installed without a compiler
    compiled = None

# Majorisation steps before the first Newton step: enough to choose the basin the paper's algorithm would choose.
FIRST_NEWTON = 15
NEXT_NEWTON = 3
# A fit that in this many steps has neither halved its gap nor lowered its cost by this share is at rounding level.
STALL_WINDOW = 100
STALL_SHARE = 1e-10
# A working set pays from this many columns, and this many times the rows, on.
LEAST_COLUMNS = 2000
LEAST_RATIO = 3
# It begins with this many times the rows.
FIRST_RATIO = 1
MAX_ROUNDS = 20


def loop_in_use() -> str:
    """Return "compiled" or "numpy"."""
    forced = os.environ.get("ARDEA_LOOP", "") == "numpy"
    return "numpy" if forced or compiled is None else "compiled"


def solve(setting: Setting, *, start: Array | None = None, max_iter: int = 500, tol: float = 1e-6) -> Fit:
    """Iterate from γ = `start` (default: 0) until the certificate is at most tol."""
    begin = _initial_delta(setting, start), setting.noise_rule.start(setting.problem)
    limits = start is not None, max_iter, tol
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
    lam, eta = (np.array(np.broadcast_to(values, d), dtype=float) for values in prior[:2])
    try:
        return compiled.Steps(setting, lam, eta, prior[2], np.ascontiguousarray(delta), noise)
    except MemoryError:  # the twin asks for less at once
        return None


def _iterated(setting: Setting, steps: Any, started: bool, max_iter: int, tol: float) -> Fit:
    """Take majorisation steps, and Newton steps where they are due, until the certificate holds."""
    history: list[tuple[float, float, int]] = []
    wait, since, settled, n_iter = FIRST_NEWTON, 0, False, 0
    earlier_gap = earlier_cost = np.inf
    while True:
        cost, kkt_gap, noise_gap, noise, k = steps.certify(tol)
        gap = max(kkt_gap, noise_gap)
        history.append((cost, noise, k))
        if setting.problem.total == 0:
            status = Status.EMPTY_TARGET
            break
        if gap <= tol and (n_iter > 0 or started):
            status = Status.CONVERGED
            break
        if n_iter >= max_iter:
            status = Status.MAX_ITER
            break
        if n_iter % STALL_WINDOW == 0:
            if gap > 0.5 * earlier_gap and cost > earlier_cost - STALL_SHARE * abs(cost):
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
    plain = np.all(setting.inflation == 1)
    post = Posterior(*steps.posterior_parts()) if plain else posterior(setting.problem, gamma, noise)
    costs, noises, terms = (np.array(column) for column in zip(*history, strict=True))
    trace = Trace(costs, noises, terms)
    return Fit(gamma, noise, sharpened(setting.problem, post), kkt_gap, n_iter, status, trace)


def _initial_delta(setting: Setting, start: Any) -> Array:
    given = start is not None and setting.problem.total > 0
    delta = start / setting.inflation if given else np.zeros(setting.problem.n_columns)
    return np.where(setting.problem.square_norms > 0, np.clip(delta, *setting.prior.bounds), 0.0)


def at_floor(setting: Setting, fit: Fit) -> bool:
    """Whether a learned σ² has fallen to the least that its rule allows."""
    rule, problem = setting.noise_rule, setting.problem
    return rule.learned and problem.total > 0 and fit.noise <= rule.floor(problem) * (1 + 1e-9)


def _has_collapsed(setting: Setting, fit: Fit) -> bool:
    """Whether a learned σ² cannot be trusted: too many terms, and columns enough to interpolate or no noise left."""
    problem, nothing_left = setting.problem, at_floor(setting, fit)
    plain = not nothing_left and bool(np.all(setting.inflation <= 1))
    too_many = problem.too_many(fit.posterior.active.size, plain=plain)
    return setting.noise_rule.learned and too_many and (problem.wide or nothing_left)


def solve_wide(setting: Setting, *, start: Array | None = None, max_iter: int = 500, tol: float = 1e-6) -> Fit:
    """Solve on a working set where columns far outnumber rows, else as `solve` does.

    Only with inflation and without a prior on γ: plain ARD keeps a third of all columns, so that nearly all can enter.
    """
    rows, d = setting.problem.columns.shape
    prior = setting.prior.capped_linear
    plain = prior is not None and not np.any(prior[0]) and np.all(setting.inflation > 1)
    if not plain or d < LEAST_COLUMNS or d < LEAST_RATIO * rows or setting.problem.total == 0:
        return solve(setting, start=start, max_iter=max_iter, tol=tol)
    chosen = _first_working_set(setting, start, FIRST_RATIO * rows)
    earlier: Fit | None = None
    for _ in range(MAX_ROUNDS):
        within = None if start is None else start[chosen]
        fit = solve(setting.restrict(chosen), start=within, max_iter=max_iter, tol=tol).on(d, chosen)
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
