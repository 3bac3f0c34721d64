"""What a fit returns: numbers, a trace, and a status whose text says what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from ardea.core.columns import Array
from ardea.core.posterior import Posterior


class Status(Enum):
    """How a fit ended; `advice` is the text of the warning (empty where none is needed)."""

    CONVERGED = "converged"
    EMPTY_TARGET = "empty target"
    MAX_ITER = "max_iter reached"
    STALLED = "stalled at rounding error"
    COLLAPSED = "collapsed"
    RESCUED = "rescued from a collapse"
    OVERSHRUNK = "noise inflated by shrinkage"

    @property
    def advice(self) -> str:
        """What to do, with fields max_iter, gap, tol, k, m to fill in."""
        return _ADVICE.get(self, "")


def worst(*statuses: Status) -> Status:
    """Return the status of several stages that the user most needs to hear of."""
    return max(statuses, key=_GRAVITY.index)


_GRAVITY = [
    Status.EMPTY_TARGET,
    Status.CONVERGED,
    Status.OVERSHRUNK,
    Status.RESCUED,
    Status.STALLED,
    Status.MAX_ITER,
    Status.COLLAPSED,
]
_ADVICE = {
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
        "The fit keeps {k} terms on {m:g} rows: the model is close to interpolating the data, and its noise variance "
        "cannot be trusted. Give noise_variance, ask for fewer terms (SparseARD, or a larger strength), or add rows "
        "(docs/warnings/collapse)."
    ),
    Status.RESCUED: (
        "On the way the fit kept more than a quarter as many terms as there are rows, where the noise variance cannot "
        "be learned from the data alone. The model returned keeps {k} terms on {m:g} rows; its noise variance errs on "
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
    n_terms: Array = field(default_factory=lambda: np.empty(0))
    dropped: tuple[Dropped, ...] = ()

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
    """End of one run of the outer loop, in the problem's own coordinates.

    Attributes
    ----------
    gamma : ndarray of shape (d,)
        Prior variances, exactly zero off the support.
    noise : float
        σ², un-inflated.
    posterior : Posterior
        At γ and the un-inflated σ².
    kkt_gap : float
        Certificate, at the noise used in the loop.
    n_iter : int
        Steps of the outer loop.
    status : Status
        How it ended.
    trace : Trace
        What happened on the way.
    """

    gamma: Array
    noise: float
    posterior: Posterior
    kkt_gap: float
    n_iter: int
    status: Status
    trace: Trace
