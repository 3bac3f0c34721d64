"""One factorisation of the active block: posterior mean, covariance, log-determinant, residual.

With Z = Θ_a Γ_a^{1/2} over the k active columns (γ > 0) and B = ZᵀZ + σ²I (k × k),

- w = B⁻¹Zᵀy,  μ = Γ^{1/2} w,  Σ = σ² Γ^{1/2} B⁻¹ Γ^{1/2}              (Eq. xi_posterior)
- log|Σ_y| = (m − k) ln σ² + log|B|
- yᵀΣ_y⁻¹y = ‖y − Zw‖²/σ² + ‖w‖², the minimum of Eq. (convex_loss_equiv), hence exact to second order in w.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from ardea.core.columns import Array, Index
from ardea.core.problem import EPS, Problem

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
