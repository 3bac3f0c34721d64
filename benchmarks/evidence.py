"""The cost L = log|Σ_y| + yᵀΣ_y⁻¹y, Σ_y = σ²I + ΘΓΘᵀ: one function for all methods, independent of Ardea."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from benchmarks.cases import Array


def evidence_cost(X: Array, y: Array, gamma: Array, noise: float) -> float:
    """Return L at prior variances γ and noise variance σ².

    With k active columns, Z = Θ_a Γ_a^½ (m×k). For k ≤ m, R from a QR of [Z; σI] gives ZᵀZ + σ²I = RᵀR without
    squaring the condition number, log|Σ_y| = (m − k) ln σ² + 2 Σ ln|R_ii|, and yᵀΣ_y⁻¹y is the least of
    ‖y − Zw‖²/σ² + ‖w‖². For k > m the m×m matrix is smaller.
    """
    m = y.size
    active = np.flatnonzero(gamma > 0)
    k = active.size
    if k == 0:
        return float(m * np.log(noise) + y @ y / noise)
    Z = X[:, active] * np.sqrt(gamma[active])
    if k > m:
        covariance = Z @ Z.T
        covariance.flat[:: m + 1] += noise
        factor = linalg.cholesky(covariance, lower=True, overwrite_a=True)
        white = linalg.solve_triangular(factor, y, lower=True)
        return float(2 * np.log(factor.diagonal()).sum() + white @ white)
    (triangle,) = linalg.qr(np.vstack([Z, np.sqrt(noise) * np.eye(k)]), mode="r", overwrite_a=True)
    triangle = triangle[:k]
    w = np.zeros(k)
    for _ in range(2):  # the second pass is one step of iterative refinement
        gradient = Z.T @ (y - Z @ w) - noise * w
        half = linalg.solve_triangular(triangle, gradient, trans="T")
        w += linalg.solve_triangular(triangle, half)
    residual = y - Z @ w
    log_determinant = (m - k) * np.log(noise) + 2 * np.log(np.abs(triangle.diagonal())).sum()
    return float(log_determinant + residual @ residual / noise + w @ w)
