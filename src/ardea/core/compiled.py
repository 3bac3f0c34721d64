"""The way to the compiled outer loop, where it is installed and the setting is one it knows.

``ARDEA_LOOP=numpy`` in the environment forces the NumPy twin. Both give the same numbers (tested).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea.core.columns import Array, DenseColumns
from ardea.core.evidence import LOST_DIGITS, SAFE_CONDITION, SAFE_EXPLAINED, SAFE_SHARE
from ardea.core.noise import Fixed, Learned
from ardea.core.posterior import SAFE_PIVOT, Posterior, posterior, sharpened
from ardea.core.result import Fit, Status, Trace
from ardea.core.weighted_lasso import RELATIVE_SLACK, SINGULAR_PIVOT

if TYPE_CHECKING:
    from ardea.core.reweighted import Setting

_loop: Any
try:
    _loop = import_module("ardea.core._loop")
except ImportError:  # installed without a compiler
    _loop = None


# The trace of the compiled loop has room for no more.
MOST_STEPS = 10**6


def loop_in_use() -> str:
    """Return "compiled" or "numpy"."""
    forced = os.environ.get("ARDEA_LOOP", "") == "numpy"
    return "numpy" if forced or _loop is None else "compiled"


def run(
    setting: Setting,
    delta: Array,
    noise: float,
    *,
    started: bool,
    max_iter: int,
    tol: float,
    schedule: dict[str, float],
) -> Fit | None:
    """Run the compiled loop from δ = `delta`; None where it is not in use, or the setting needs the twin."""
    problem, rule = setting.problem, setting.noise_rule
    prior = setting.prior.capped_linear()
    columns = problem.columns
    if not isinstance(columns, DenseColumns) or not isinstance(rule, Fixed | Learned) or prior is None:
        return None
    if min(columns.shape) == 0 or problem.total == 0 or loop_in_use() != "compiled":
        return None
    d = problem.n_columns
    lam, eta = np.zeros(d), np.full(d, np.inf)
    lam[:], eta[:] = prior[0], prior[1]
    loop = _built(
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
        schedule
        | {
            "safe_share": SAFE_SHARE,
            "safe_explained": SAFE_EXPLAINED,
            "lost_digits": LOST_DIGITS,
            "safe_pivot": SAFE_PIVOT,
            "safe_condition": SAFE_CONDITION,
            "slack": RELATIVE_SLACK,
            "singular_pivot": SINGULAR_PIVOT,
        },
    )
    if loop is None:
        return None
    most_steps = min(max_iter, MOST_STEPS)
    outcome, delta, noise, gap, n_iter, steps = loop.run(np.ascontiguousarray(delta), noise, started, most_steps, tol)
    if outcome == _loop.Outcome.FALLBACK:
        return None
    status = {
        _loop.Outcome.CONVERGED: Status.CONVERGED,
        _loop.Outcome.MAX_ITER: Status.MAX_ITER,
        _loop.Outcome.STALLED: Status.STALLED,
    }[_loop.Outcome(outcome)]
    gamma = setting.inflation * delta
    if np.all(setting.inflation == 1):
        active, root, triangle, w, residual, rss, log_determinant = loop.posterior_parts()
        post = Posterior(active, root, noise, triangle, w, residual, rss, log_determinant)
    else:
        post = posterior(problem, gamma, noise)
    cost, noises, terms = steps
    return Fit(gamma, noise, sharpened(problem, post), gap, n_iter, status, Trace(cost, noises, terms.astype(int)))


def _built(*arguments: Any) -> Any:
    """Return the loop with its work space, or None where that cannot be had: the twin asks for less at once."""
    try:
        return _loop.Loop(*arguments)
    except MemoryError:
        return None
