"""Slopes of the evidence cost and the certificate that a fit is a fixed point.

At (γ, σ²), for every column θ_j,

- M_j = θ_jᵀΣ_y⁻¹θ_j = ∂ log|Σ_y|/∂γ_j, the tangent weight c_j of Alg. 1, line 3;
- q_j = θ_jᵀΣ_y⁻¹y, with −q_j² = ∂ yᵀΣ_y⁻¹y/∂γ_j.

A fixed point of Alg. 1 has q² = M where γ > 0 and q² ≤ M where γ = 0: the KKT conditions of min L(γ), γ ≥ 0.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ardea.core.problem import EPS, Array, Index, Problem
from ardea.core.result import Posterior

# Schur complements below this share of ρ_j, or with B worse conditioned than this, are evaluated as a minimum instead.
SAFE_SHARE = 1e-3
SAFE_CONDITION = 1e9
# 1 − σ²(B⁻¹)_jj cancels below the first of these, and below the second times the error of B⁻¹.
SAFE_EXPLAINED = 1e-6
LOST_DIGITS = 1e7
COLUMNS_AT_ONCE = 1024


def slopes_and_scores(problem: Problem, post: Posterior) -> tuple[Array, Array]:
    """Return M_j (never negative) and q_j for every column.

    M: on active columns (1 − σ²(B⁻¹)_jj)/γ_j where γ_jρ_j > 1e-3 σ²; on others the Schur complement
    (ρ_j − ‖L⁻¹Zᵀθ_j‖²)/σ². q: θ_jᵀ(y − Θμ)/σ², which is μ_j/γ_j on the active ones. Where B is ill-conditioned, or the
    complement would cancel, from `minimum_form` and `active_minimum`.
    """
    rho = problem.square_norms
    scores = problem.columns.correlate(post.residual) / post.noise
    if post.active.size == 0:
        return rho / post.noise, scores
    cross = post.root[:, None] * problem.active.gram_rows(post.active)
    half = linalg.solve_triangular(post.triangle, cross, lower=True, check_finite=False)
    schur = rho - np.einsum("ij,ij->j", half, half)
    slopes = schur / post.noise
    condition = float((post.root**2 * rho[post.active]).sum()) / post.noise
    doubtful = (schur < SAFE_SHARE * rho) | (condition > SAFE_CONDITION)
    if condition <= SAFE_CONDITION:
        gamma = post.root**2
        explained = 1.0 - post.noise * post.inverse.diagonal()
        accurate = explained > max(SAFE_EXPLAINED, LOST_DIGITS * EPS * condition)
        settled = (gamma * rho[post.active] > SAFE_SHARE * post.noise) & accurate
        slopes[post.active[settled]] = explained[settled] / gamma[settled]
        doubtful[post.active[settled]] = False
    among = np.flatnonzero(doubtful[post.active])
    slopes[post.active[among]] = active_minimum(problem, post, among)
    doubtful[post.active] = False
    index = np.flatnonzero(doubtful & (rho > 0))
    slopes[index], scores[index] = minimum_form(problem, post, index)
    slopes[rho == 0] = 0.0
    scores[post.active] = post.w / post.root
    return slopes, scores


def minimum_form(problem: Problem, post: Posterior, index: Index) -> tuple[Array, Array]:
    """Return M_j = min_v ‖θ_j − Zv‖²/σ² + ‖v‖² and q_j = vᵀw + (θ_j − Zv)ᵀ(y − Θμ)/σ², at a refined minimiser v.

    The error of M is of second order in that of v, and no term can go negative: exact where every difference of large
    numbers has lost its digits (σ² → 0). For a column in the span of the active ones θ_j − Zv nearly vanishes, and
    with it the share of q_j that the rounding error of the residual, divided by σ², would drown.
    """
    z = problem.active.vectors(post.active) * post.root
    slopes, scores = np.empty(index.size), np.empty(index.size)
    for start in range(0, index.size, COLUMNS_AT_ONCE):
        part = slice(start, start + COLUMNS_AT_ONCE)
        theta = problem.columns.take(index[part])
        v = linalg.cho_solve((post.triangle, True), z.T @ theta, check_finite=False)
        correction = z.T @ (theta - z @ v) - post.noise * v
        v += linalg.cho_solve((post.triangle, True), correction, check_finite=False)
        outside = theta - z @ v
        slopes[part] = np.einsum("ij,ij->j", outside, outside) / post.noise + np.einsum("ij,ij->j", v, v)
        scores[part] = post.w @ v + post.residual @ outside / post.noise
    return slopes, scores


def active_minimum(problem: Problem, post: Posterior, among: Index) -> Array:
    """Return M_j = min_t (‖Zt‖²/σ² + ‖e_j − t‖²)/γ_j of active columns (positions `among` them), near t = σ²B⁻¹e_j.

    This is the minimum above at v = (e_j − t)/√γ_j. There θ_j would be subtracted from itself, which leaves an error
    of ε²ρ_j/σ² however small M_j ≈ 1/γ_j is; here ‖Zt‖ ≤ σ, and nothing cancels.
    """
    z = problem.active.vectors(post.active) * post.root
    slopes = np.empty(among.size)
    for start in range(0, among.size, COLUMNS_AT_ONCE):
        part = slice(start, start + COLUMNS_AT_ONCE)
        unit = np.eye(post.active.size)[:, among[part]]
        t = post.noise * linalg.cho_solve((post.triangle, True), unit, check_finite=False)
        correction = post.noise * (unit - t) - z.T @ (z @ t)
        t += linalg.cho_solve((post.triangle, True), correction, check_finite=False)
        inside, rest = z @ t, unit - t
        least = np.einsum("ij,ij->j", inside, inside) / post.noise + np.einsum("ij,ij->j", rest, rest)
        slopes[part] = least / post.root[among[part]] ** 2
    return slopes
