"""The steps of the outer loop (:mod:`ardea.core.loop`) in NumPy: state → state.

Objective at noise s = σ² (Eqs. neg_log_likelihood and ARDr_neg_log_likelihood), with a prior g + f on γ:

    L(γ) = log|Σ_y| + yᵀΣ_y⁻¹y + Σ_j g(γ_j) + f(γ_j),      Σ_y = sI + ΘΓΘᵀ

One majorisation step (Algs. 1–3):
    1) c = M + g′(γ)                             tangent of the concave part
    2) ξ = arg min ‖y − Θξ‖² + Σ 2s√c_j|ξ_j|     weighted lasso (with f: :mod:`ardea.core.lasso`)
    3) γ_j = |ξ_j|/√c_j
    4) σ² by the noise rule

Near a fixed point a projected Newton step on the same conditions (M + g′ + f′ = q², and the noise rule) ends the slow
tail. It is taken only where it makes progress and does not raise the cost: the fixed points are those of 1)–4).

Variance inflation (Alg. 2) asks for the fixed points at noise αs. Dividing γ by α there, γ = αδ,

    log|αsI + ΘΓΘᵀ| + yᵀ(αsI + ΘΓΘᵀ)⁻¹y = m ln α + log|sI + ΘΔΘᵀ| + (1/α) yᵀ(sI + ΘΔΘᵀ)⁻¹y,

so inflation multiplies the tangent weight: c = αM at (δ, s), same lasso. In this form α may differ from column to
column. The state holds δ; γ = αδ is what is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ardea.core.evidence import Posterior, posterior, slopes_and_scores
from ardea.core.lasso import penalised_step, weighted_lasso
from ardea.core.problem import EPS, Array, Problem
from ardea.core.result import Setting

MAX_NEWTON_STEPS = 20
# A majorisation step that moves no γ by more than this, in units of σ²/ρ + γ, may be followed by Newton at once.
SETTLED_CHANGE = 0.1


@dataclass(frozen=True)
class State:
    """What changes: δ = γ/α, σ², and the lasso solution the next one starts from."""

    delta: Array
    noise: float
    xi: Array


@dataclass(frozen=True)
class Certificate:
    """Where a state stands: posterior at (δ, s), tangent weights c, scores q, and the two gaps."""

    post: Posterior
    c: Array
    q: Array
    kkt_gap: float
    noise_gap: float
    cost: float


def certify(setting: Setting, state: State) -> Certificate:
    """Evaluate the KKT conditions at a state, over all columns."""
    problem = setting.problem
    post = posterior(problem, state.delta, state.noise)
    slopes, q = slopes_and_scores(problem, post)
    c = setting.inflation * slopes + setting.prior.slope(state.delta, state.noise)
    noise_gap = abs(_next_noise(setting, state, post) / state.noise - 1)
    return Certificate(post, c, q, _kkt_gap(setting, state.delta, c, q), noise_gap, _cost(setting, state, post))


def _kkt_gap(setting: Setting, delta: Array, c: Array, q: Array) -> float:
    """Return max |q²/(c + f′) − 1| on the support and its positive part off it (and at a bound of f, one-sided)."""
    convex = setting.prior.convex
    live = setting.problem.square_norms > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        denominator = c if convex is None else c + convex.slope(delta)
        ratio = np.where(np.isfinite(denominator), q**2 / denominator, 0.0) - 1
    lower, upper = setting.prior.bounds
    ratio = np.where(delta <= lower, np.maximum(ratio, 0.0), ratio)
    ratio = np.where(delta >= upper, np.minimum(ratio, 0.0), ratio)
    return float(np.max(np.abs(ratio[live]), initial=0.0))


def _cost(setting: Setting, state: State, post: Posterior) -> float:
    """Return the objective at the noise used in the loop; column-wise inflation has none: the evidence cost."""
    alpha = float(setting.inflation[0]) if setting.inflation.size and setting.uniform_inflation else 1.0
    cost = setting.problem.n_rows * np.log(alpha) + post.log_determinant + post.quadratic / alpha
    cost += float(setting.prior.value(state.delta, state.noise).sum())
    if setting.prior.convex is not None:
        cost += float(setting.prior.convex.value(state.delta).sum())
    return float(cost)


def _noise_posterior(setting: Setting, state: State, post: Posterior) -> Posterior:
    """Return the posterior that the noise rule looks at."""
    if not setting.noise_rule.learned or np.all(setting.noise_factors == 1):
        return post
    return posterior(setting.problem, setting.noise_factors * state.delta, state.noise)


def _next_noise(setting: Setting, state: State, post: Posterior) -> float:
    return setting.noise_rule.update(setting.problem, _noise_posterior(setting, state, post))


def majorise(setting: Setting, state: State, c: Array) -> State:
    """Take one majorisation step from a state whose tangent weights are c."""
    problem, convex = setting.problem, setting.prior.convex
    root = np.sqrt(c)
    if convex is None:
        xi = weighted_lasso(problem, state.noise * root, state.xi).coefficients
        active = xi != 0
        delta = np.zeros_like(xi)
        delta[active] = np.abs(xi[active]) / root[active]
    else:
        dead = problem.square_norms == 0
        c = np.where(dead, 1.0, c)
        xi = penalised_step(problem, c, state.noise, convex, state.xi)
        delta = np.where(dead, 0.0, convex.minimiser(np.abs(xi), c))
    moved = State(delta, state.noise, xi)
    return replace(moved, noise=_next_noise(setting, moved, posterior(problem, delta, state.noise)))


def newton(setting: Setting, state: State, here: Certificate, tol: float) -> State | None:
    """Take projected Newton steps on the active set until its conditions hold to tol; None where none is acceptable.

    In relative changes p = Δδ/δ and u = Δs/s, everything comes from B⁻¹ and w (see :mod:`ardea.core.result`). With
    m̂ = I − sB⁻¹, the scaled conditions are F_i = αm̂_ii − w_i² + δg′ + δf′ = 0 and F_s = 0 (noise rule).
    """
    post, cost, best = here.post, here.cost, None
    violation = _violation(setting, state, post)
    for _ in range(MAX_NEWTON_STEPS):
        step = _newton_direction(setting, state, post)
        if step is None:
            break
        accepted = _damped(setting, state, post, step, violation, cost)
        if accepted is None:
            break
        state, post, violation, cost = accepted
        best = state
        if violation <= tol / 10:
            break
    return best


def _damped(
    setting: Setting, state: State, post: Posterior, step: tuple[Array, float], violation: float, cost: float
) -> tuple[State, Posterior, float, float] | None:
    """Return the longest of 1, ½, ¼, ⅛ of a step that makes progress and, where a cost exists, does not raise it."""
    p, u = step
    active, rounding = post.active, 8 * EPS * abs(cost)
    for fraction in (1.0, 0.5, 0.25, 0.125):
        delta = np.zeros_like(state.delta)
        delta[active] = np.maximum(state.delta[active] * (1 + fraction * p), 0.0)
        delta = np.clip(delta, *setting.prior.bounds) * (state.delta > 0)
        noise = state.noise * float(np.exp(np.clip(fraction * u, -1, 1)))
        trial = State(delta, noise, state.xi)
        trial_post = posterior(setting.problem, delta, noise)
        trial_violation = _violation(setting, trial, trial_post)
        trial_cost = _cost(setting, trial, trial_post)
        accepted = trial_violation < violation
        if setting.has_cost:
            falls = trial_cost < cost - rounding
            accepted = falls or (accepted and trial_cost <= cost + rounding)
        if accepted:
            xi = np.zeros_like(delta)
            xi[trial_post.active] = trial_post.mean
            return replace(trial, xi=xi), trial_post, trial_violation, trial_cost
    return None


def _violation(setting: Setting, state: State, post: Posterior) -> float:
    """Return max |F_i| over the active columns and the noise rule (no other column is touched).

    F is scaled by δ, so that a column on its way out counts less the smaller it gets.
    """
    explained = 1.0 - post.noise * post.inverse.diagonal()
    force = post.w**2 - setting.inflation[post.active] * explained - _prior_terms(setting, state, post)[0]
    force = np.where(_held_at_bound(setting, state, post, force), 0.0, force)
    noise_gap = abs(_next_noise(setting, state, post) / state.noise - 1)
    violation = max(float(np.max(np.abs(force), initial=0.0)), noise_gap)
    return violation if np.isfinite(violation) else np.inf


def _held_at_bound(setting: Setting, state: State, post: Posterior, force: Array) -> NDArray[np.bool_]:
    """Return which active columns sit at a bound of the convex part and are pushed against it."""
    lower, upper = (np.broadcast_to(bound, state.delta.shape)[post.active] for bound in setting.prior.bounds)
    delta = state.delta[post.active]
    return np.asarray(((delta <= lower) & (force <= 0)) | ((delta >= upper) & (force >= 0)))


def _prior_terms(setting: Setting, state: State, post: Posterior) -> tuple[Array, Array]:
    """Return δ(g′ + f′) and δ²(g″ + f″) of the active columns."""
    prior, convex, active, delta = setting.prior, setting.prior.convex, post.active, state.delta
    slope = prior.slope(delta, state.noise)
    curvature = prior.curvature(delta, state.noise)
    if convex is not None:
        step = 1e-6 * delta + np.finfo(float).tiny
        slope = slope + convex.slope(delta)
        curvature = curvature + (convex.slope(delta + step) - convex.slope(delta)) / step
    return delta[active] * slope[active], delta[active] ** 2 * curvature[active]


def _newton_direction(setting: Setting, state: State, post: Posterior) -> tuple[Array, float] | None:
    """Return (p, u), or None where the conditions have no descent direction of this kind here."""
    k, s, w = post.active.size, post.noise, post.w
    if k == 0:
        return None
    alpha = np.sqrt(setting.inflation[post.active])
    inverse = post.inverse
    explained = np.eye(k) - s * inverse
    slope, curvature = _prior_terms(setting, state, post)
    residual = alpha**2 * explained.diagonal() - w**2 + slope
    hessian = 2 * np.outer(w, w) * explained - np.outer(alpha, alpha) * explained**2
    hessian.flat[:: k + 1] += curvature
    if not np.isfinite(hessian).all():
        return None
    held = _held_at_bound(setting, state, post, -residual)
    residual[held] = 0.0
    hessian[held] = hessian[:, held] = 0.0
    hessian[held, held] = 1.0
    factor = _positive_cholesky(hessian)
    p = -linalg.cho_solve(factor, residual, check_finite=False)
    rule_post = _noise_posterior(setting, state, post)
    if setting.noise_rule.update(setting.problem, rule_post) == s:
        return p, 0.0  # fixed, or held at its floor
    # Bordered system: one scalar unknown u = Δs/s, eliminated.
    to_noise = np.where(held, 0.0, _mixed_slope(post, alpha**2))
    from_gamma = np.where(held, 0.0, _mixed_slope(rule_post, np.ones(k)))
    m = setting.problem.n_rows
    degrees = m - k + rule_post.n_undetermined
    noise_residual = degrees - rule_post.rss / s
    trace_square = m - k + s**2 * float((rule_post.inverse**2).sum())
    pull = rule_post.rss / s - s * float(rule_post.w @ rule_post.inverse @ rule_post.w)
    noise_slope = degrees - trace_square + 2 * pull - rule_post.rss / s
    response = linalg.cho_solve(factor, to_noise, check_finite=False)
    schur = noise_slope - float(from_gamma @ response)
    if schur <= 0:
        return p, 0.0
    u = -(noise_residual + float(from_gamma @ p)) / schur
    return p - response * u, u


def _mixed_slope(post: Posterior, alpha: Array) -> Array:
    """Return s·δ_i ∂²/∂δ_i∂s of α log|Σ_y| + yᵀΣ_y⁻¹y: −α(sB⁻¹ − s²B⁻²)_ii + 2s w_i(B⁻¹w)_i."""
    s, inverse = post.noise, post.inverse
    square = np.einsum("ij,ij->i", inverse, inverse)
    mixed: Array = 2 * s * post.w * (inverse @ post.w) - alpha * (s * inverse.diagonal() - s**2 * square)
    return mixed


def _positive_cholesky(matrix: Array) -> tuple[Array, bool]:
    """Return the Cholesky factor of a symmetric matrix, with as little added to its diagonal as makes it positive."""
    size = float(np.abs(matrix.diagonal()).mean()) + np.finfo(float).tiny
    damping = 0.0
    while True:
        damped = matrix + damping * np.eye(matrix.shape[0])
        try:
            return linalg.cho_factor(damped, lower=True, check_finite=False)
        except linalg.LinAlgError:
            damping = max(10 * damping, 1e-6 * size)


class NumpySteps:
    """The steps from one state on: the reference for the compiled ones, and all there is without a compiler."""

    def __init__(self, setting: Setting, delta: Array, noise: float) -> None:
        self.setting = setting
        self.state = State(delta, noise, np.zeros_like(delta))

    def certify(self, tol: float) -> tuple[float, float, float, float, int]:
        """Return where the state stands: the cost, both gaps, σ², and the number of active columns."""
        self.here = here = certify(self.setting, self.state)
        return here.cost, here.kkt_gap, here.noise_gap, self.state.noise, here.post.active.size

    def majorise(self) -> bool:
        """Take one majorisation step; return whether it moved next to nothing."""
        before, self.state = self.state, majorise(self.setting, self.state, self.here.c)
        return _settled(self.setting.problem, before, self.state)

    def newton(self, tol: float) -> bool:
        """Take Newton steps; return whether one was accepted."""
        polished = newton(self.setting, self.state, self.here, tol)
        self.state = self.state if polished is None else polished
        return polished is not None

    def variances(self) -> Array:
        """Return δ."""
        return self.state.delta

    def posterior_parts(self) -> tuple[Any, ...]:
        """Return what makes the posterior of the last certificate."""
        return tuple(getattr(self.here.post, part.name) for part in fields(Posterior))


def _settled(problem: Problem, before: State, after: State) -> bool:
    """Whether a step left the support alone and moved no γ by much, on a scale without units."""
    if np.any((before.delta > 0) != (after.delta > 0)):
        return False
    rho = problem.square_norms
    change = np.abs(after.delta - before.delta) * rho / (after.noise + after.delta * rho)
    return bool(np.max(change, initial=0.0) <= SETTLED_CHANGE)
