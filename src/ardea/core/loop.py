"""The way to the outer loop: the compiled loop or its NumPy twin, and working sets for many columns.

``ARDEA_LOOP=numpy`` in the environment forces the twin (:mod:`ardea.core.reweighted`). Both give the same numbers
(tested).
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from ardea.core.evidence import (
    LOST_DIGITS,
    SAFE_CONDITION,
    SAFE_EXPLAINED,
    SAFE_PIVOT,
    SAFE_SHARE,
    Posterior,
    posterior,
    sharpened,
)
from ardea.core.lasso import RELATIVE_SLACK, SINGULAR_PIVOT
from ardea.core.problem import Array, DenseColumns, Index
from ardea.core.result import Fit, Learned, Setting, Status, Trace
from ardea.core.reweighted import SCHEDULE, State, certify, solve_in_numpy

compiled: Any
try:
    compiled = import_module("ardea.core._loop")
except ImportError:  # installed without a compiler
    compiled = None


# What the compiled loop must know of its twin, so that both take the same decisions.
CONSTANTS = SCHEDULE | {
    "safe_share": SAFE_SHARE,
    "safe_explained": SAFE_EXPLAINED,
    "lost_digits": LOST_DIGITS,
    "safe_pivot": SAFE_PIVOT,
    "safe_condition": SAFE_CONDITION,
    "slack": RELATIVE_SLACK,
    "singular_pivot": SINGULAR_PIVOT,
}
# The trace of the compiled loop has room for no more.
MOST_STEPS = 10**6
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


def run_compiled(
    setting: Setting, delta: Array, noise: float, *, started: bool, max_iter: int, tol: float
) -> Fit | None:
    """Run the compiled loop from δ = `delta`; None where it is not in use, or the setting needs the twin."""
    loop = _built(setting) if loop_in_use() == "compiled" else None
    if loop is None:
        return None
    most_steps = min(max_iter, MOST_STEPS)
    outcome, delta, noise, gap, n_iter, steps = loop.run(np.ascontiguousarray(delta), noise, started, most_steps, tol)
    if outcome == compiled.Outcome.FALLBACK:
        return None
    gamma = setting.inflation * delta
    if np.all(setting.inflation == 1):
        active, root, triangle, w, residual, rss, log_determinant = loop.posterior_parts()
        post = Posterior(active, root, noise, triangle, w, residual, rss, log_determinant)
    else:
        post = posterior(setting.problem, gamma, noise)
    cost, noises, terms = steps
    status, trace = Status[compiled.Outcome(outcome).name], Trace(cost, noises, terms.astype(int))
    return Fit(gamma, noise, sharpened(setting.problem, post), gap, n_iter, status, trace)


def _built(setting: Setting) -> Any:
    """Return the loop with its work space; None where it cannot take the setting, or gets no memory."""
    problem, rule, prior = setting.problem, setting.noise_rule, setting.prior.capped_linear()
    columns, d = problem.columns, problem.n_columns
    if not isinstance(columns, DenseColumns) or prior is None or min(columns.shape) == 0 or problem.total == 0:
        return None
    lam, eta = np.zeros(d), np.full(d, np.inf)
    lam[:], eta[:] = prior[0], prior[1]
    try:
        return compiled.Loop(
            columns.matrix,
            np.ascontiguousarray(problem.target),
            problem.rest,
            problem.n_rows,
            problem.square_norms,
            problem.correlations,
            problem.total,
            np.ascontiguousarray(setting.inflation, dtype=float),
            lam,
            eta,
            bool(lam.any()),
            prior[2],
            rule.learned,
            rule.floor(problem) if isinstance(rule, Learned) else 0.0,
            np.ascontiguousarray(setting.noise_factors, dtype=float),
            setting.has_cost,
            setting.newton,
            CONSTANTS,
        )
    except MemoryError:  # the twin asks for less at once
        return None


def solve(setting: Setting, *, start: Array | None = None, max_iter: int = 500, tol: float = 1e-6) -> Fit:
    """Iterate from γ = `start` (default: 0) until the certificate is at most tol."""
    problem = setting.problem
    noise = setting.noise_rule.start(problem)
    delta = _initial_delta(setting, start)
    started = start is not None
    fit = run_compiled(setting, delta, noise, started=started, max_iter=max_iter, tol=tol)
    if fit is None:
        fit = solve_in_numpy(setting, State(delta, noise, np.zeros(problem.n_columns)), started, max_iter, tol)
    return replace(fit, status=Status.COLLAPSED) if _has_collapsed(setting, fit) else fit


def _initial_delta(setting: Setting, start: Array | None) -> Array:
    if start is None or setting.problem.total == 0:
        delta = np.zeros(setting.problem.n_columns)
    else:
        delta = start / setting.inflation
    convex = setting.prior.convex
    if convex is not None:
        delta = np.clip(delta, *convex.bounds)
    return np.where(setting.problem.square_norms > 0, delta, 0.0)


def at_floor(setting: Setting, fit: Fit) -> bool:
    """Whether a learned σ² has fallen to the least that its rule allows."""
    rule, problem = setting.noise_rule, setting.problem
    return isinstance(rule, Learned) and problem.total > 0 and fit.noise <= rule.floor(problem) * (1 + 1e-9)


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
    prior = setting.prior.capped_linear()
    plain = prior is not None and not np.any(prior[0]) and np.all(setting.inflation > 1)
    if not plain or d < LEAST_COLUMNS or d < LEAST_RATIO * rows or setting.problem.total == 0:
        return solve(setting, start=start, max_iter=max_iter, tol=tol)
    chosen = _first_working_set(setting, start, FIRST_RATIO * rows)
    trace, n_iter = Trace(), 0
    for _ in range(MAX_ROUNDS):
        fit = _solve_on(setting, chosen, start, max_iter, tol)
        trace, n_iter = trace.then(fit.trace), n_iter + fit.n_iter
        gamma = np.zeros(d)
        gamma[chosen] = fit.gamma
        here = certify(setting, State(gamma / setting.inflation, fit.noise, np.zeros(d)))
        beyond = (here.q**2 > here.c * (1 + tol)) & (setting.problem.square_norms > 0)
        beyond[chosen] = False
        if not beyond.any() or fit.status in {Status.MAX_ITER, Status.STALLED}:
            break
        if isinstance(setting.noise_rule, Learned):
            setting = replace(setting, noise_rule=replace(setting.noise_rule, initial=fit.noise))
        start, chosen = gamma, np.union1d(chosen, np.flatnonzero(beyond))
    else:
        fit = replace(fit, status=Status.MAX_ITER)
    post = replace(fit.posterior, active=np.flatnonzero(gamma))
    return replace(fit, gamma=gamma, posterior=post, kkt_gap=here.kkt_gap, trace=trace, n_iter=n_iter)


def _first_working_set(setting: Setting, start: Array | None, size: int) -> Index:
    problem = setting.problem
    rho = problem.square_norms
    score = problem.correlations**2 / np.where(rho > 0, rho, np.inf) / setting.inflation
    largest = np.argpartition(-score, min(size, score.size - 1))[:size]
    return np.union1d(largest, np.flatnonzero(start) if start is not None else largest[:0])


def _solve_on(setting: Setting, chosen: Index, gamma: Array | None, max_iter: int, tol: float) -> Fit:
    """Solve with the chosen columns only, from γ where it is given."""
    part = replace(setting.problem, columns=setting.problem.columns.restrict(chosen))
    scale = setting.noise_scale
    inside = replace(
        setting,
        problem=part,
        inflation=setting.inflation[chosen],
        noise_scale=None if scale is None else scale[chosen],
    )
    return solve(inside, start=None if gamma is None else gamma[chosen], max_iter=max_iter, tol=tol)
