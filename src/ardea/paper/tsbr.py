"""Threshold sparse Bayesian regression of Zhang & Lin (Proc. R. Soc. A 474:20180305), beside which M-STSBL is set.

As their published code does it (sheng-sheng-sheng/SubTSBR): evidence maximised one column at a time, from none (Tipping
& Faul, AISTATS 2003), with σ² learned; drop |μ_j| < τ and fit what is left anew, until nothing goes. τ is the user's;
here it is that of their example, the constants those of SparseBayes 2.0, which they call. (Σ_j Σ_jj/μ_j² chooses among
subsamples only.)
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ardea.core.problem import Array, Problem
from ardea.paper.replay import Outcome, posed

TSBR_THRESHOLD = 0.1
FIRST_NOISE_SHARE = 0.01  # of var(y)
ALIGNED = 0.999  # cosine from which on a column is not added beside another
LEAST_CHANGE = 1e-3  # of log γ
NOISE_EACH_STEP, NOISE_STEPS, LEAST_NOISE_CHANGE = 10, 5, 1e-6  # σ² in the first steps, then at every fifth; of log σ²
LEAST_NOISE = 1e-6  # of var(y)
MOST_STEPS = 10_000


def one_column_at_a_time(problem: Problem, variance: float) -> Outcome:
    """Return the fit where no change of one γ_j raises the evidence; `variance` is var(y).

    Beside the other columns the evidence of γ_j is ½(q²γ/(1 + γs) − log(1 + γs)), which is greatest at
    γ = (q² − s)/s² or, where q² < s, at zero. Of all columns that with the largest gain moves; removals go first. With
    S_j = θ_jᵀΣ_y⁻¹θ_j and Q_j = θ_jᵀΣ_y⁻¹y of all columns, s_j = S_j/(1 − γ_jS_j), and q_j likewise.
    """
    theta, y = problem.columns.take(np.arange(problem.n_columns)), problem.target
    norms, gamma, noise = np.sqrt(problem.square_norms), np.zeros(problem.n_columns), FIRST_NOISE_SHARE * variance
    aligned = np.abs(theta.T @ theta) > ALIGNED * np.outer(norms, norms)
    inverse, dual = _inverse(theta, gamma, noise)
    for step in range(MOST_STEPS):
        inner, outer, used = (theta * dual).sum(axis=0), dual.T @ y, gamma > 0
        beside = np.maximum(1 - gamma * inner, np.finfo(float).eps)
        s, q = inner / beside, outer / beside
        best = np.maximum(q**2 - s, 0.0) / np.maximum(s, np.finfo(float).tiny) ** 2
        gain = _evidence(best, s, q) - _evidence(gamma, s, q)
        gain[~used & aligned[used].any(axis=0)] = 0.0
        if (gone := used & (best == 0)).any():
            gain[~gone] = 0.0
        j = int(np.argmax(gain))
        still = gain[j] <= 0 or (used[j] and best[j] > 0 and abs(np.log(best[j] / gamma[j])) < LEAST_CHANGE)
        if not still:
            change, gamma[j] = best[j] - gamma[j], best[j]
            inverse -= change / (1 + change * inner[j]) * np.outer(dual[:, j], dual[:, j])
            dual -= change / (1 + change * inner[j]) * np.outer(dual[:, j], dual[:, j] @ theta)
        if still or step < NOISE_EACH_STEP or step % NOISE_STEPS == 0:
            rss = noise**2 * float(np.sum((inverse @ y) ** 2)) + problem.rest
            degrees = problem.n_rows - float(gamma @ (theta * dual).sum(axis=0))
            before, noise = noise, max(rss / degrees, LEAST_NOISE * variance)
            inverse, dual = _inverse(theta, gamma, noise)
            if still and abs(np.log(noise / before)) < LEAST_NOISE_CHANGE:
                break
    return Outcome(problem, gamma * (dual.T @ y), gamma, noise)


def _inverse(theta: Array, gamma: Array, noise: float) -> tuple[Array, Array]:
    """Return Σ_y⁻¹ and Σ_y⁻¹Θ."""
    used = gamma > 0
    covariance = noise * np.eye(theta.shape[0]) + (theta[:, used] * gamma[used]) @ theta[:, used].T
    inverse = linalg.inv(covariance, check_finite=False)
    return inverse, inverse @ theta


def _evidence(gamma: Array, s: Array, q: Array) -> Array:
    """Return what γ_j adds to the log evidence, given s_j and q_j."""
    return np.asarray(q**2 * gamma / (1 + gamma * s) - np.log1p(gamma * s)) / 2


def threshold_sparse_bayes(theta: Array, y: Array) -> Array:
    """Return the coefficients that Zhang & Lin's method finds."""
    coef, columns = np.zeros(theta.shape[1]), np.arange(theta.shape[1])
    while columns.size:
        mean = one_column_at_a_time(posed(theta[:, columns], y), float(np.var(y))).xi
        kept = columns[np.abs(mean) >= TSBR_THRESHOLD]
        if kept.size == columns.size:
            coef[columns] = mean
            break
        columns = kept
    return coef
