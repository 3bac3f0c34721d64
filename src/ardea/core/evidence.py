"""Slopes of the evidence cost and the certificate that a fit is a fixed point.

At (γ, σ²), for every column θ_j,

- M_j = θ_jᵀΣ_y⁻¹θ_j = ∂ log|Σ_y|/∂γ_j, the tangent weight c_j of Alg. 1, line 3;
- q_j = θ_jᵀΣ_y⁻¹y, with −q_j² = ∂ yᵀΣ_y⁻¹y/∂γ_j.

A fixed point of Alg. 1 has q² = M where γ > 0 and q² ≤ M where γ = 0: the KKT conditions of min L(γ), γ ≥ 0.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ardea.core.columns import Array, Index
from ardea.core.posterior import Posterior
from ardea.core.problem import Problem

# Schur complements below this share of ρ_j, or with B worse conditioned than this, are evaluated as a minimum instead.
SAFE_SHARE = 1e-3
SAFE_CONDITION = 1e7
COLUMNS_AT_ONCE = 1024


def log_determinant_slopes(problem: Problem, post: Posterior) -> Array:
    """Return M_j for every column, never negative.

    Active columns: (1 − σ²(B⁻¹)_jj)/γ_j where γ_jρ_j > 1e-3 σ². Others: the Schur complement (ρ_j − ‖L⁻¹Zᵀθ_j‖²)/σ²
    where it keeps its digits; where it would cancel, `minimum_form`.
    """
    rho = problem.square_norms
    if post.active.size == 0:
        return rho / post.noise
    cross = post.root[:, None] * problem.active.gram_rows(post.active)
    half = linalg.solve_triangular(post.triangle, cross, lower=True, check_finite=False)
    schur = rho - np.einsum("ij,ij->j", half, half)
    slopes = schur / post.noise
    condition = float((post.root**2 * rho[post.active]).sum()) / post.noise
    doubtful = (schur < SAFE_SHARE * rho) | (condition > SAFE_CONDITION)
    gamma = post.root**2
    explained = 1.0 - post.noise * post.inverse.diagonal()
    settled = gamma * rho[post.active] > SAFE_SHARE * post.noise
    slopes[post.active[settled]] = explained[settled] / gamma[settled]
    doubtful[post.active[settled]] = False
    index = np.flatnonzero(doubtful & (rho > 0))
    slopes[index] = minimum_form(problem, post, index)
    slopes[rho == 0] = 0.0
    return slopes


def minimum_form(problem: Problem, post: Posterior, index: Index) -> Array:
    """Return M_j = min_w ‖θ_j − Zw‖²/σ² + ‖w‖², evaluated at a refined minimiser.

    The error is of second order in that of w, and no term can go negative: exact where every difference of large
    numbers has lost its digits (σ² → 0).
    """
    z = problem.active.vectors(post.active) * post.root
    slopes = np.empty(index.size)
    for start in range(0, index.size, COLUMNS_AT_ONCE):
        part = slice(start, start + COLUMNS_AT_ONCE)
        theta = problem.columns.take(index[part])
        w = linalg.cho_solve((post.triangle, True), z.T @ theta, check_finite=False)
        correction = z.T @ (theta - z @ w) - post.noise * w
        w += linalg.cho_solve((post.triangle, True), correction, check_finite=False)
        outside = theta - z @ w
        slopes[part] = np.einsum("ij,ij->j", outside, outside) / post.noise + np.einsum("ij,ij->j", w, w)
    return slopes


def scores(problem: Problem, post: Posterior) -> Array:
    """Return q_j for every column: θ_jᵀ(y − Θμ)/σ², which is μ_j/γ_j on the active ones."""
    q: Array = problem.columns.correlate(post.residual) / post.noise
    q[post.active] = post.w / post.root
    return q
