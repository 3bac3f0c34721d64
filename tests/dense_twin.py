"""The slow truth: every quantity recomputed from its definition with m×m matrices, and subset searches done in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from ardea.core.problem import DenseColumns, Problem


def as_problem(theta, y) -> Problem:
    """Pose (Θ, y) as it stands: no intercept, no scaling, no compression."""
    theta, y = np.asarray(theta, dtype=float), np.asarray(y, dtype=float)
    return Problem(DenseColumns(theta), y, 0.0, len(y))


def orthogonal_columns(rng, m, square_norms):
    """Return m rows of orthogonal columns with the squared norms given."""
    q, _ = np.linalg.qr(rng.normal(size=(m, len(square_norms))))
    return q * np.sqrt(square_norms)


def without_flat(flat, *arrays):
    """Return the arrays in an orthonormal basis of the complement of the flat columns."""
    u, s, _ = np.linalg.svd(flat)
    rank = int((s > 1e-12 * s[0]).sum())
    return tuple(u[:, rank:].T @ array for array in arrays)


def sigma_y(theta, gamma, noise):
    return noise * np.eye(theta.shape[0]) + (theta * gamma) @ theta.T


def log_determinant(theta, gamma, noise) -> float:
    return float(np.linalg.slogdet(sigma_y(theta, gamma, noise))[1])


def quadratic(theta, y, gamma, noise) -> float:
    return float(y @ np.linalg.solve(sigma_y(theta, gamma, noise), y))


def cost(theta, y, gamma, noise) -> float:
    """L = log|Σ_y| + yᵀΣ_y⁻¹y."""
    return log_determinant(theta, gamma, noise) + quadratic(theta, y, gamma, noise)


def slopes(theta, gamma, noise):
    """M_j = θ_jᵀΣ_y⁻¹θ_j."""
    return np.einsum("ij,ij->j", theta, np.linalg.solve(sigma_y(theta, gamma, noise), theta))


def scores(theta, y, gamma, noise):
    """q_j = θ_jᵀΣ_y⁻¹y."""
    return theta.T @ np.linalg.solve(sigma_y(theta, gamma, noise), y)


def noise_slope(theta, y, gamma, noise) -> float:
    """∂L/∂σ² = tr Σ_y⁻¹ − ‖Σ_y⁻¹y‖²."""
    inverse = np.linalg.inv(sigma_y(theta, gamma, noise))
    return float(np.trace(inverse) - (inverse @ y) @ (inverse @ y))


def posterior_moments(theta, y, gamma, noise):
    """Return mean and covariance of all d coefficients (zero where γ = 0)."""
    gain = (theta * gamma).T @ np.linalg.inv(sigma_y(theta, gamma, noise))
    return gain @ y, np.diag(gamma) - gain @ (theta * gamma)


def evidence_violation(theta, y, gamma, noise, *, extra_slope=0.0) -> float:
    """Return the largest relative violation of q² = M + g′ (γ > 0) and q² ≤ M + g′ (γ = 0)."""
    ratio = scores(theta, y, gamma, noise) ** 2 / (slopes(theta, gamma, noise) + extra_slope) - 1
    return float(np.where(gamma > 0, np.abs(ratio), np.maximum(ratio, 0.0)).max(initial=0.0))


def exact_slopes_and_scores(theta, y, gamma, noise):
    """M_j and q_j in rational arithmetic: no rounding at all before the last conversion."""
    rows = [[Fraction(float(x)) for x in row] for row in theta]
    target = [Fraction(float(x)) for x in y]
    variances, s = [Fraction(float(g)) for g in gamma], Fraction(float(noise))
    m = len(rows)

    def entry(i, j):
        return sum(v * a * b for v, a, b in zip(variances, rows[i], rows[j], strict=True)) + (s if i == j else 0)

    matrix = [[entry(i, j) for j in range(m)] for i in range(m)]
    solved = _solved(matrix, rows)
    columns = range(len(variances))
    exact_slopes = [float(sum(rows[i][j] * solved[i][j] for i in range(m))) for j in columns]
    exact_scores = [float(sum(target[i] * solved[i][j] for i in range(m))) for j in columns]
    return np.array(exact_slopes), np.array(exact_scores)


def _solved(matrix, right):
    """Solve a symmetric positive definite system of fractions by Gauss–Jordan elimination."""
    m = len(matrix)
    table = [[*matrix[i], *right[i]] for i in range(m)]
    for i in range(m):
        pivot = table[i][i]
        table[i] = [x / pivot for x in table[i]]
        for k in range(m):
            if k != i and table[k][i]:
                factor = table[k][i]
                table[k] = [a - factor * b for a, b in zip(table[k], table[i], strict=True)]
    return [row[m:] for row in table]


def lasso_objective(theta, y, weights, xi, ridge=0.0, shift=0.0) -> float:
    finite = np.where(xi == 0, 0.0, weights)
    return float(0.5 * np.sum((y - theta @ xi) ** 2) + np.sum(finite * np.abs(xi) + 0.5 * ridge * xi**2 - shift * xi))


def lasso_violation(theta, y, weights, xi, ridge=0.0, shift=0.0) -> float:
    """Return the largest violation of the KKT conditions, relative to ‖θ_j‖‖y‖."""
    gradient = theta.T @ (y - theta @ xi) + shift - ridge * xi
    on = xi != 0
    violation = np.maximum(np.abs(gradient) - weights, 0.0)
    violation[on] = np.abs(gradient[on] - weights[on] * np.sign(xi[on]))
    return float((violation / np.maximum(np.linalg.norm(theta, axis=0) * np.linalg.norm(y), 1e-300)).max())


def lasso_gap(theta, y, weights, xi) -> float:
    """Return the largest violation of the KKT conditions above rounding error, relative to the weights."""
    gradient = theta.T @ (y - theta @ xi)
    rounding = 8 * np.finfo(float).eps * np.linalg.norm(theta, axis=0) * np.linalg.norm(y)
    violation = np.abs(gradient) - weights
    violation[xi != 0] = np.abs(gradient - weights * np.sign(xi))[xi != 0]
    return float((np.maximum(violation - rounding, 0.0) / (weights + rounding)).max())


def frozen_gain(mean, covariance, threshold, removed) -> float:
    """Return Στ_S − ½μ_SᵀP_SSμ_S with P = Σ⁻¹ (Eq. sparse_xi_MAP).

    This is the log-posterior gained by removing S while the kept coordinates stay where they are.
    """
    precision = np.linalg.inv(covariance)[np.ix_(removed, removed)]
    return float(threshold[removed].sum() - 0.5 * mean[removed] @ precision @ mean[removed])


def reoptimised_gain(mean, covariance, threshold, removed) -> float:
    """Return Στ_S − ½μ_Sᵀ(Σ_SS)⁻¹μ_S: the same with the kept coordinates free to follow."""
    block = covariance[np.ix_(removed, removed)]
    return float(threshold[removed].sum() - 0.5 * mean[removed] @ np.linalg.solve(block, mean[removed]))


def subsets(k) -> Iterator[np.ndarray]:
    return (np.array(mask) for mask in product([False, True], repeat=k))


def best_removal(gain: Callable, mean, covariance, threshold):
    """Return the set whose removal gains most, over all 2^k sets, and that gain."""
    gains = [(gain(mean, covariance, threshold, mask), mask) for mask in subsets(mean.size)]
    best, mask = max(gains, key=lambda pair: pair[0])
    return mask, best


def conditioned_on_zero(mean, covariance, removed):
    """Return mean and covariance of the kept coordinates of a Gaussian given that the removed ones are zero."""
    kept = ~removed
    cross = covariance[np.ix_(kept, removed)]
    gain = cross @ np.linalg.inv(covariance[np.ix_(removed, removed)])
    return mean[kept] - gain @ mean[removed], covariance[np.ix_(kept, kept)] - gain @ cross.T
