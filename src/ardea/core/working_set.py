"""Many more columns than rows: the loop runs on the columns that can enter, and all of them are checked at the end.

1) Working set W: the columns with the largest q²/M at γ = 0, i.e. (θᵀy)²/ρ.
2) Solve on W.
3) Evaluate q² ≤ αM on every column; add those that violate it to W and go to 2, from where it ended, until none does.

The certificate of 3) covers all columns, so the result is a fixed point of the whole problem.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ardea.core.columns import Array, Index
from ardea.core.noise import Learned
from ardea.core.result import Fit, Status, Trace
from ardea.core.reweighted import Setting, State, certify, solve

# A working set pays from this many columns, and this many times the rows, on.
LEAST_COLUMNS = 2000
LEAST_RATIO = 3
# It begins with this many times the rows.
FIRST_RATIO = 1
MAX_ROUNDS = 20


def solve_wide(setting: Setting, *, start: Array | None = None, max_iter: int = 500, tol: float = 1e-6) -> Fit:
    """Solve on a working set where columns far outnumber rows, else as `solve` does.

    Only with inflation and without a prior on γ: plain ARD keeps a third of all columns, so that nearly all can enter.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea.core.columns import DenseColumns
    >>> from ardea.core.noise import Fixed
    >>> from ardea.core.problem import Problem
    >>> from ardea.priors import Flat
    >>> rng = np.random.default_rng(0)
    >>> theta = rng.normal(size=(50, 3000))
    >>> problem = Problem(DenseColumns(theta), 3 * theta[:, 7] + 0.1 * rng.normal(size=50), 0.0, 50)
    >>> fit = solve_wide(Setting(problem, Flat(), Fixed(0.01), inflation=np.full(3000, 16.0)))
    >>> np.flatnonzero(fit.gamma), bool(fit.kkt_gap <= 1e-6)
    (array([7]), True)
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
