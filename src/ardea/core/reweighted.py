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

from ardea.core.evidence import Posterior, Setting, posterior, scaled_condition, slopes_and_scores
from ardea.core.lasso import penalised_step, weighted_lasso
from ardea.core.lazy import cached_property
from ardea.core.problem import EPS, TINY, Array

MAX_NEWTON_STEPS = 20
# A majorisation step that moves no γ by more than this, in units of σ²/ρ + γ, may be followed by Newton at once.
SETTLED_CHANGE = 0.1


@dataclass(frozen=True, eq=False)
class State:
    """What changes, δ = γ/α and σ², and where it stands: all that follows from them, computed when it is asked for."""

    setting: Setting
    delta: Array
    noise: float
    last: Array | None = None  # the lasso solution that led here; None after a Newton step

    @cached_property
    def post(self) -> Posterior:
        """The posterior at (δ, s)."""
        return posterior(self.setting.problem, self.delta, self.noise)

    @cached_property
    def rule_post(self) -> Posterior:
        """The posterior that the noise rule looks at."""
        factors = self.setting.noise_factors
        if not self.setting.noise_rule.learned or np.all(factors == 1):
            return self.post
        return posterior(self.setting.problem, factors * self.delta, self.noise)

    @cached_property
    def next_noise(self) -> float:
        """σ² by the noise rule."""
        return self.setting.noise_rule.update(self.setting.problem, self.rule_post)

    @property
    def noise_gap(self) -> float:
        """How far σ² is from its rule."""
        return abs(self.next_noise / self.noise - 1)

    @property
    def xi(self) -> Array:
        """Coefficients that the next lasso starts from."""
        if self.last is not None:
            return self.last
        xi = np.zeros_like(self.delta)
        xi[self.post.active] = self.post.mean
        return xi

    @cached_property
    def weights_and_scores(self) -> tuple[Array, Array]:
        """Tangent weights c and scores q of all columns."""
        slopes, q = slopes_and_scores(self.setting.problem, self.post)
        return self.setting.inflation * slopes + self.setting.prior.slope(self.delta, self.noise), q

    @property
    def kkt_gap(self) -> float:
        """Max |q²/(c + f′) − 1| on the support and its positive part off it (and at a bound of f, one-sided)."""
        convex, (c, q) = self.setting.prior.convex, self.weights_and_scores
        with np.errstate(divide="ignore", invalid="ignore"):
            denominator = c if convex is None else c + convex.slope(self.delta)
            ratio = np.where(np.isfinite(denominator), q**2 / denominator, 0.0) - 1
        lower, upper = self.setting.prior.bounds
        ratio = np.where(self.delta <= lower, np.maximum(ratio, 0.0), ratio)
        ratio = np.where(self.delta >= upper, np.minimum(ratio, 0.0), ratio)
        return float(np.max(np.abs(ratio[self.setting.problem.square_norms > 0]), initial=0.0))

    @cached_property
    def cost(self) -> float:
        """The objective at the noise used in the loop; column-wise inflation has none: the evidence cost."""
        setting = self.setting
        alpha = float(setting.inflation[0]) if setting.inflation.size and setting.uniform_inflation else 1.0
        cost = setting.problem.n_rows * np.log(alpha) + self.post.log_determinant + self.post.quadratic / alpha
        cost += float(setting.prior.value(self.delta, self.noise).sum())
        if setting.prior.convex is not None:
            cost += float(setting.prior.convex.value(self.delta).sum())
        return float(cost)

    @cached_property
    def violation(self) -> float:
        """Max |F_i| over the active columns and the noise rule (no other column is touched); see `newton`.

        F is scaled by δ, so that a column on its way out counts less the smaller it gets.
        """
        post = self.post
        explained = 1.0 - post.noise * post.inverse.diagonal()
        force = post.w**2 - self.setting.inflation[post.active] * explained - self.prior_terms[0]
        force = np.where(self.held_at_bound(force), 0.0, force)
        violation = max(float(np.max(np.abs(force), initial=0.0)), self.noise_gap)
        return violation if np.isfinite(violation) else np.inf

    @cached_property
    def prior_terms(self) -> tuple[Array, Array]:
        """δ(g′ + f′) and δ²(g″ + f″) of the active columns."""
        prior, convex, active, delta = self.setting.prior, self.setting.prior.convex, self.post.active, self.delta
        slope = prior.slope(delta, self.noise)
        curvature = prior.curvature(delta, self.noise)
        if convex is not None:
            step = 1e-6 * delta + TINY
            slope = slope + convex.slope(delta)
            curvature = curvature + (convex.slope(delta + step) - convex.slope(delta)) / step
        return delta[active] * slope[active], delta[active] ** 2 * curvature[active]

    def held_at_bound(self, force: Array) -> NDArray[np.bool_]:
        """Return which active columns sit at a bound of the convex part and are pushed against it."""
        active = self.post.active
        lower, upper = (np.broadcast_to(bound, self.delta.shape)[active] for bound in self.setting.prior.bounds)
        delta = self.delta[active]
        return np.asarray(((delta <= lower) & (force <= 0)) | ((delta >= upper) & (force >= 0)))


def majorise(state: State) -> State:
    """Take one majorisation step."""
    problem, convex, (c, _) = state.setting.problem, state.setting.prior.convex, state.weights_and_scores
    if convex is None:
        root = np.sqrt(c)
        xi = weighted_lasso(problem, state.noise * root, state.xi)
        active = xi != 0
        delta = np.zeros_like(xi)
        delta[active] = np.abs(xi[active]) / root[active]
    else:
        dead = problem.square_norms == 0
        c = np.where(dead, 1.0, c)
        xi = penalised_step(problem, c, state.noise, convex, state.xi)
        delta = np.where(dead, 0.0, convex.minimiser(np.abs(xi), c))
    moved = replace(state, delta=delta, last=xi)
    return replace(moved, noise=moved.next_noise)


def newton(state: State, tol: float) -> State:
    """Take projected Newton steps on the active set until its conditions hold to tol, as long as one is acceptable.

    In relative changes p = Δδ/δ and u = Δs/s, everything comes from B⁻¹ and w (see :mod:`ardea.core.evidence`). With
    m̂ = I − sB⁻¹, the scaled conditions are F_i = αm̂_ii − w_i² + δg′ + δf′ = 0 and F_s = 0 (noise rule).
    """
    for _ in range(MAX_NEWTON_STEPS):
        step = _newton_direction(state)
        moved = None if step is None else _damped(state, *step)
        if moved is None:
            break
        state = moved
        if state.violation <= tol / 10:
            break
    return state


def _damped(state: State, p: Array, u: float) -> State | None:
    """Return the longest of 1, ½, ¼, ⅛ of a step that makes progress and, where a cost exists, does not raise it."""
    active, rounding = state.post.active, 8 * EPS * abs(state.cost)
    for fraction in (1.0, 0.5, 0.25, 0.125):
        delta = np.zeros_like(state.delta)
        delta[active] = np.maximum(state.delta[active] * (1 + fraction * p), 0.0)
        delta = np.clip(delta, *state.setting.prior.bounds) * (state.delta > 0)
        trial = State(state.setting, delta, state.noise * float(np.exp(np.clip(fraction * u, -1, 1))))
        accepted = trial.violation < state.violation
        if state.setting.has_cost:
            falls = trial.cost < state.cost - rounding
            accepted = falls or (accepted and trial.cost <= state.cost + rounding)
        if accepted:
            return trial
    return None


def _newton_direction(state: State) -> tuple[Array, float] | None:
    """Return (p, u), or None where the conditions have no descent direction of this kind here."""
    post = state.post
    k, s, w = post.active.size, post.noise, post.w
    if k == 0:
        return None
    alpha = np.sqrt(state.setting.inflation[post.active])
    explained = np.eye(k) - s * post.inverse
    slope, curvature = state.prior_terms
    residual = alpha**2 * explained.diagonal() - w**2 + slope
    hessian = 2 * np.outer(w, w) * explained - np.outer(alpha, alpha) * explained**2
    hessian.flat[:: k + 1] += curvature
    if not np.isfinite(hessian).all():
        return None
    held = state.held_at_bound(-residual)
    residual[held] = 0.0
    hessian[held] = hessian[:, held] = 0.0
    hessian[held, held] = 1.0
    factor = _positive_cholesky(hessian)
    p = -linalg.cho_solve(factor, residual, check_finite=False)
    if state.next_noise == s:
        return p, 0.0  # fixed, or held at its floor
    # Bordered system: one scalar unknown u = Δs/s, eliminated.
    rule_post, m = state.rule_post, state.setting.problem.n_rows
    to_noise = np.where(held, 0.0, _mixed_slope(post, alpha**2))
    from_gamma = np.where(held, 0.0, _mixed_slope(rule_post, np.ones(k)))
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
    size = float(np.abs(matrix.diagonal()).mean()) + TINY
    damping, (lower, info) = 0.0, linalg.lapack.dpotrf(matrix, lower=1)
    while info != 0:
        damping = max(10 * damping, 1e-6 * size)
        lower, info = linalg.lapack.dpotrf(matrix + damping * np.eye(matrix.shape[0]), lower=1)
    return lower, True


class NumpySteps:
    """The steps from one state on: the reference for the compiled ones, and all there is without a compiler."""

    def __init__(self, setting: Setting, delta: Array, noise: float) -> None:
        self.state = State(setting, delta, noise, np.zeros_like(delta))

    def certify(self, tol: float) -> tuple[float, float, float, float, int]:
        """Return where the state stands: the cost, both gaps, σ², and the number of active columns."""
        here = self.state
        return here.cost, here.kkt_gap, here.noise_gap, here.noise, here.post.active.size

    def majorise(self) -> bool:
        """Take one majorisation step; return whether it moved next to nothing."""
        before, self.state = self.state, majorise(self.state)
        return _settled(before, self.state)

    def newton(self, tol: float) -> bool:
        """Take Newton steps; return whether one was accepted."""
        before, self.state = self.state, newton(self.state, tol)
        return self.state is not before

    def variances(self) -> Array:
        """Return δ."""
        return self.state.delta

    def posterior_parts(self) -> tuple[Any, ...]:
        """Return what makes the posterior at γ = αδ and σ², where the last certificate stands, and its condition."""
        here, setting = self.state, self.state.setting
        gamma = setting.inflation * here.delta
        post = here.post if setting.plain else posterior(setting.problem, gamma, here.noise)
        return *(getattr(post, part.name) for part in fields(Posterior)), scaled_condition(post.triangle)


def _settled(before: State, after: State) -> bool:
    """Whether a step left the support alone and moved no γ by much, on a scale without units."""
    if np.any((before.delta > 0) != (after.delta > 0)):
        return False
    rho = after.setting.problem.square_norms
    change = np.abs(after.delta - before.delta) * rho / (after.noise + after.delta * rho)
    return bool(np.max(change, initial=0.0) <= SETTLED_CHANGE)
