"""What a fit is given and what it returns: priors, noise rule and setting; posterior, trace and status.

The posterior is one factorisation of the active block. With Z = Θ_a Γ_a^{1/2} over the k active columns (γ > 0) and
B = ZᵀZ + σ²I (k × k),

- w = B⁻¹Zᵀy,  μ = Γ^{1/2} w,  Σ = σ² Γ^{1/2} B⁻¹ Γ^{1/2}              (Eq. xi_posterior)
- log|Σ_y| = (m − k) ln σ² + log|B|
- yᵀΣ_y⁻¹y = ‖y − Zw‖²/σ² + ‖w‖², the minimum of Eq. (convex_loss_equiv), hence exact to second order in w.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from ardea.core.problem import EPS, Array, Index, Problem

# Pivots of Cholesky below this share of the diagonal have lost half their digits.
SAFE_PIVOT = 1e-8
# With a larger condition number of B, scaled to unit diagonal, Cholesky has cost the factor more than four digits.
SHARP_CONDITION = 1e4


@dataclass(frozen=True)
class Posterior:
    """Gaussian posterior of the active coefficients given γ and σ².

    Attributes
    ----------
    active : ndarray of int
        The k columns with γ > 0.
    root : ndarray of shape (k,)
        √γ of them.
    noise : float
        σ².
    triangle : ndarray of shape (k, k)
        Lower Cholesky factor of B.
    w : ndarray of shape (k,)
        Whitened mean, μ/√γ; also Γ^{1/2}ΘᵀΣ_y⁻¹y.
    residual : ndarray of shape (r,)
        y − Θμ in the rows of the problem.
    rss : float
        ‖y − Θμ‖² over all rows.
    log_determinant : float
        log|Σ_y| over all rows.
    """

    active: Index
    root: Array
    noise: float
    triangle: Array
    w: Array
    residual: Array
    rss: float
    log_determinant: float

    @cached_property
    def mean(self) -> Array:
        """μ of the active coefficients."""
        return self.root * self.w

    @cached_property
    def inverse(self) -> Array:
        """B⁻¹."""
        return _inverse_from_cholesky(self.triangle)

    @cached_property
    def covariance(self) -> Array:
        """Σ of the active coefficients."""
        return self.noise * np.outer(self.root, self.root) * self.inverse

    @cached_property
    def variance(self) -> Array:
        """Σ_jj of the active coefficients."""
        return self.noise * self.root**2 * self.inverse.diagonal()

    @cached_property
    def own_precision(self) -> Array:
        """1/Σ_jj − 1/γ_j: what the data say of each active coefficient, the others integrated out."""
        inflation = self.noise * self.inverse.diagonal()  # Σ_jj/γ_j, in (0, 1]
        return np.maximum(1 - inflation, EPS) / (inflation * self.root**2)

    @property
    def quadratic(self) -> float:
        """yᵀΣ_y⁻¹y."""
        return self.rss / self.noise + float(self.w @ self.w)

    @property
    def cost(self) -> float:
        """L(γ) = log|Σ_y| + yᵀΣ_y⁻¹y (Eq. neg_log_likelihood), without prior terms."""
        return self.log_determinant + self.quadratic

    @cached_property
    def n_undetermined(self) -> float:
        """Σ_j Σ_jj/γ_j: how many of the k coefficients the prior determines rather than the data."""
        return self.noise * float(np.trace(self.inverse))


def posterior(problem: Problem, gamma: Array, noise: float) -> Posterior:
    """Return the posterior at prior variances `gamma` (d,) and noise variance `noise`."""
    active = np.flatnonzero(gamma > 0)
    root = np.sqrt(gamma[active])
    vectors = problem.active.vectors(active) * root
    matrix = problem.active.gram(active) * np.outer(root, root)
    matrix.flat[:: active.size + 1] += noise
    return _with_factor(problem, active, root, noise, vectors, cholesky_lower(matrix, vectors, noise))


def sharpened(problem: Problem, post: Posterior) -> Posterior:
    """Return the posterior with all the digits that the columns have, for a result that is reported.

    Cholesky of B has an error of ε·cond(B), a QR of [Z; σI] one of ε·√cond(B): it takes over where that matters. The
    loop can do without: its steps are checked by a certificate of its own.
    """
    if _scaled_condition(post.triangle) <= SHARP_CONDITION:
        return post
    vectors = problem.columns.take(post.active) * post.root
    return _with_factor(problem, post.active, post.root, post.noise, vectors, _lower_by_qr(vectors, post.noise))


def _with_factor(
    problem: Problem, active: Index, root: Array, noise: float, vectors: Array, triangle: Array
) -> Posterior:
    """Return the posterior, given Z and the factor of B."""
    w = _solve(triangle, root * problem.correlations[active])
    # One step of refinement with the residual taken from the columns themselves, not from their Gram matrix.
    w += _solve(triangle, vectors.T @ (problem.target - vectors @ w) - noise * w)
    residual = problem.target - vectors @ w
    log_determinant = (problem.n_rows - active.size) * np.log(noise)
    log_determinant += 2 * float(np.log(triangle.diagonal()).sum())
    rss = float(residual @ residual) + problem.rest
    return Posterior(active, root, noise, triangle, w, residual, rss, float(log_determinant))


def cholesky_lower(matrix: Array, vectors: Array, noise: float) -> Array:
    """Return the lower Cholesky factor of B, from a QR of [Z; σI] where B is too ill-conditioned for Cholesky."""
    k = matrix.shape[0]
    if k == 0:
        return matrix
    try:
        lower: Array = linalg.cholesky(matrix, lower=True, check_finite=False)
    except linalg.LinAlgError:
        pass
    else:
        if np.all(lower.diagonal() ** 2 >= SAFE_PIVOT * matrix.diagonal()):
            return lower
    return _lower_by_qr(vectors, noise)


def _lower_by_qr(vectors: Array, noise: float) -> Array:
    k = vectors.shape[1]
    stacked = np.vstack([vectors, np.sqrt(noise) * np.eye(k)])
    (upper,) = linalg.qr(stacked, mode="r", check_finite=False)
    upper = upper[:k] * np.where(upper[:k].diagonal() < 0, -1.0, 1.0)[:, None]
    return np.asarray(upper.T)


def _scaled_condition(triangle: Array) -> float:
    """Return an estimate of the condition number of B scaled to unit diagonal, from its factor."""
    if triangle.shape[0] == 0:
        return 1.0
    reciprocal, _ = linalg.lapack.dtrcon(triangle / np.linalg.norm(triangle, axis=1)[:, None], uplo="L")
    return 1 / max(float(reciprocal) ** 2, np.finfo(float).tiny)


def _solve(triangle: Array, rhs: Array) -> Array:
    if triangle.shape[0] == 0:
        return rhs
    solution: Array = linalg.cho_solve((triangle, True), rhs, check_finite=False)
    return solution


def _inverse_from_cholesky(triangle: Array) -> Array:
    if triangle.shape[0] == 0:
        return triangle
    lower, _ = linalg.lapack.dpotri(triangle, lower=1)
    inverse: Array = np.tril(lower) + np.tril(lower, -1).T
    return inverse


class Prior:
    """Prior p(γ) ∝ exp(−(g + f)/2) with g concave and f convex (Eq. gamma_prior); subclasses define g and f.

    `value` and `slope` are those of g; `curvature` is taken by differences where it is not given. The noise variance is
    passed along for priors that scale with it.
    """

    @property
    def convex(self) -> Any:
        """The convex part f (see :class:`ConvexPart`), or None where it is zero."""
        return None

    @property
    def scales_with_noise(self) -> bool:
        """Whether g depends on σ²."""
        return False

    def capped_linear(self) -> tuple[Array | float, Array | float, bool] | None:
        """Return (lam, eta, over_noise) where the whole prior is lam·min(γ, eta), as the compiled loop needs it."""
        return None

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

    def capped_linear(self) -> tuple[Array | float, Array | float, bool]:
        """Return a slope of zero."""
        return 0.0, np.inf, False

    def curvature(self, gamma: Array, noise: float) -> Array:
        """Return zero."""
        return np.zeros_like(gamma)


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
class Setting:
    """What stays fixed during the loop.

    Attributes
    ----------
    problem : Problem
        The data.
    prior : Prior
        g and f.
    noise_rule : NoiseRule
        How σ² follows.
    inflation : ndarray of shape (d,)
        α for every column; all ones but for ARDvi.
    noise_scale : ndarray of shape (d,), optional
        The noise rule sees the posterior at noise_scale·δ. None: α, so that it sees γ. Ones put it at the inflated
        noise (the remedy for a collapse when d > m); large numbers take the prior's shrinkage out of it.
    newton : bool
        Whether Newton steps may be taken.
    """

    problem: Problem
    prior: Prior
    noise_rule: NoiseRule
    inflation: Array
    noise_scale: Array | None = None
    newton: bool = True

    @property
    def noise_factors(self) -> Array:
        """`noise_scale`, or what it stands for where it is None."""
        return self.inflation if self.noise_scale is None else self.noise_scale

    @property
    def uniform_inflation(self) -> bool:
        """Whether one α serves all columns, so that a common objective exists."""
        return bool(np.all(self.inflation == self.inflation[:1]))

    @property
    def has_cost(self) -> bool:
        """Whether the loop descends one objective: at fixed noise, or where σ² too is stationary in it."""
        if not self.noise_rule.learned:
            return self.uniform_inflation
        plain = np.all(self.inflation == 1) and np.all(self.noise_factors == 1)
        return bool(plain) and not self.prior.scales_with_noise


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
        """What to do, with fields max_iter, gap, tol, k, rows to fill in."""
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
