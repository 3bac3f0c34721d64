"""The authors' published algorithm with its defects, for comparison with their numbers. Use the estimators instead.

What differs from :mod:`ardea.estimators.family`, all of it read off the behaviour of the published code. Points can be
put right one by one (`right`, given a name in `experiment.CORRECTIONS`); with all of them it is the algorithm of the
estimators with ``start="paper"``, up to which optimum of a nonconvex problem is reached.

- σ² starts at 1 and follows :func:`authors_noise`: a misplaced grid where m ≤ d, d in place of k where m > d. On
  the grid the cost is taken at the lasso solution, not at the posterior mean;
- a fit stops when no γ moves by more than an absolute tolerance, which depends on the units, or after 500 steps;
- the coefficients reported are those of the last lasso;
- thresholding refits from γ = 0 on the columns kept, passes σ² on, and goes on while any column goes, also one that
  was zero already;
- MAP-STSBL is diagonal in its first round only. From the second on a greedy search grows the removed set while the
  *total* criterion is negative, and columns with γ = 0 stay.

The steps themselves (tangent weights, weighted lasso, posterior) are those of the core. The method of Zhang & Lin,
beside which the paper sets M-STSBL, comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ardea.core.evidence import NoiseRule, Setting, posterior, slopes_and_scores
from ardea.core.lasso import weighted_lasso
from ardea.core.loop import solve
from ardea.core.problem import Array, DenseColumns, Index, Problem
from ardea.dynamics.differences import difference_weights, finite_difference
from ardea.paper.experiment import METHODS
from ardea.priors import Flat

# Read off the published code: its bound on steps, its default tolerance, and that of its sweeps.
MAX_STEPS = 500
FINE, COARSE = 1e-8, 1e-5
# Derived: tighter than the published tolerance, because where σ² is known the fixed point itself is computed.
FIXED_NOISE_TOL = 1e-9

# Derived: the change of γ_j in units of σ²/ρ_j + γ_j, which no change of units alters; as fine as the published sweeps
# where that quantity is near one.
FREE_TOL = 1e-5
# Whether a point of the published code is put right.
Right = Callable[[str], bool]
# Columns of a fit that a threshold removes, given the fit, τ and the round (from 1).
Removal = Callable[["Outcome", float, int], NDArray[np.bool_]]


@dataclass(frozen=True)
class Outcome:
    """A fit of the published code: its data, the last lasso solution ξ, γ, and σ²."""

    problem: Problem
    xi: Array
    gamma: Array
    noise: float

    @property
    def at_the_mean(self) -> Outcome:
        """The same with the posterior mean at σ² in the place of the lasso solution."""
        post, xi = posterior(self.problem, self.gamma, self.noise), np.zeros(self.gamma.size)
        xi[post.active] = post.mean
        return replace(self, xi=xi)

    @property
    def aicc(self) -> float:
        """AICc as the published code evaluates it: L + 2k + (2k² + 2k)/(m − k − 1), k counting σ²."""
        m, k = self.problem.n_rows, int((self.gamma > 0).sum()) + 1
        if m - k - 1 <= 0:
            return np.inf
        cost = posterior(self.problem, self.gamma, self.noise).cost
        return cost + 2 * k + (2 * k**2 + 2 * k) / (m - k - 1)


def fit_learning_noise(
    problem: Problem,
    noise: float,
    tol: float,
    *,
    variance: float,
    alpha: float = 1.0,
    lam: float = 0.0,
    eta: float = np.inf,
    start: Array | None = None,
    right: Right = lambda name: False,
) -> Outcome:
    """Run Algs. 1–3 as published, `variance` is var(y); g = λσ⁻² min(γ, η) where `lam` is given."""
    d, rho = problem.n_columns, problem.square_norms
    rule_is_right = right("noise count" if problem.n_rows > d else "noise grid")
    gamma, xi = np.zeros(d) if start is None else start, np.zeros(d)
    for step in range(MAX_STEPS):
        # In γ/α the inflated noise αs is s and the tangent weight is multiplied by α (see core.reweighted).
        post = posterior(problem, gamma / alpha, noise)
        c = alpha * slopes_and_scores(problem, post)[0] + lam / noise * (gamma < eta)
        xi = weighted_lasso(problem, noise * np.sqrt(c), xi)
        moved = alpha * np.abs(xi) / np.sqrt(c)
        unit, bound = (rho / (noise + moved * rho), FREE_TOL) if right("tolerance") else (1.0, tol)
        change, gamma = float((np.abs(moved - gamma) * unit).max()), moved
        if step > 0 and change <= bound:
            break
        if rule_is_right:
            noise = NoiseRule().update(problem, posterior(problem, gamma, noise))
        else:
            noise = authors_noise(variance, problem, gamma, xi, noise)
    fit = Outcome(problem, xi, gamma, noise)
    return fit.at_the_mean if right("estimate") else fit


def fit_at_known_noise(problem: Problem, noise: float, alpha: float = 1.0) -> Outcome:
    """Return the fixed point itself: at known σ² the published loop runs into it (1500 steps, tolerance 1e-8)."""
    setting = Setting(problem, Flat(), NoiseRule(noise), inflation=np.full(problem.n_columns, alpha))
    fit = solve(setting, max_iter=5000, tol=FIXED_NOISE_TOL)
    xi = np.zeros(problem.n_columns)
    inflated = posterior(problem, fit.gamma, alpha * noise)
    xi[inflated.active] = inflated.mean
    return Outcome(problem, xi, fit.gamma, noise)


def threshold(first: Outcome, removal: Removal, tau: float, refit: Callable[[Problem, float], Outcome]) -> Outcome:
    """Run Algs. 4–6 as published, from a fit of all columns; `refit` fits fewer, given σ² to start from."""
    problem, columns, fit, rounds = first.problem, np.arange(first.problem.n_columns), first, 1
    while (drop := removal(fit, tau, rounds)).any():
        columns, rounds = columns[~drop], rounds + 1
        if not columns.size:
            break
        fit = refit(replace(problem, columns=problem.columns.restrict(columns)), fit.noise)
    xi, gamma = np.zeros((2, problem.n_columns))
    if columns.size:
        xi[columns], gamma[columns] = fit.xi, fit.gamma
    return Outcome(problem, xi, gamma, fit.noise)


def authors_noise(variance: float, problem: Problem, gamma: Array, xi: Array, noise: float) -> float:
    """Return the next σ² as the published code does; `variance` is var(y).

    m > d: ‖y − Θμ‖²/(m − d + Σ_j Σ_jj/γ_j) with d counting pruned columns. m ≤ d: the least log|σ²I + ΘΓΘᵀ| + rss/σ²
    at ξ over 101 values of σ² with exponents from ln var(y) − 10 to ln var(y) *to base ten*; the largest of them lies
    below the true σ² in every one of the paper's linear trials.
    """
    if problem.n_rows > problem.n_columns:
        post = posterior(problem, gamma, noise)
        return post.rss / (problem.n_rows - problem.n_columns + post.n_undetermined)
    active = np.flatnonzero(gamma > 0)
    residual = problem.target - problem.active.vectors(active) @ xi[active]
    rss = float(residual @ residual) + problem.rest
    grid: Array = np.logspace(np.log(variance) - 10, np.log(variance), 101)
    root = np.sqrt(gamma[active])
    gram = problem.active.gram(active) * np.outer(root, root)
    eigenvalues = np.maximum(linalg.eigvalsh(gram, check_finite=False), 0.0) if active.size else np.empty(0)
    costs = (problem.n_rows - active.size) * np.log(grid) + rss / grid
    costs += np.log(eigenvalues[:, None] + grid).sum(axis=0)
    return float(grid[int(np.argmin(costs))])


def small_magnitude(fit: Outcome, tau: float, rounds: int) -> NDArray[np.bool_]:
    """Remove |ξ_j| ≤ τ (M-STSBL)."""
    return np.abs(fit.xi) <= tau


def likely_zero(fit: Outcome, tau: float, rounds: int) -> NDArray[np.bool_]:
    """Remove N(0 | ξ_j, Σ_jj) ≥ τ, and whatever has no variance (L-STSBL)."""
    post = posterior(fit.problem, fit.gamma, fit.noise)
    density = np.full(fit.xi.size, np.inf)
    variance = post.covariance.diagonal()
    density[post.active] = np.exp(-0.5 * fit.xi[post.active] ** 2 / variance) / np.sqrt(2 * np.pi * variance)
    return density >= tau


def cheap_to_remove(fit: Outcome, tau: float, rounds: int) -> NDArray[np.bool_]:
    """Remove ½ξ_j²(Σ⁻¹)_jj < τ in the first round, by the greedy search afterwards (MAP-STSBL)."""
    active = np.flatnonzero(fit.gamma > 0)
    precision = fit.problem.active.gram(active) / fit.noise + np.diag(1 / fit.gamma[active])
    scaled = precision * np.outer(fit.xi[active], fit.xi[active])
    if rounds == 1:
        statistic = np.zeros(fit.xi.size)
        statistic[active] = 0.5 * scaled.diagonal()
        return statistic < tau
    drop = np.zeros(fit.xi.size, dtype=bool)
    drop[active[_grown_while_total_is_negative(scaled, tau)]] = True
    return drop


def improbable(fit: Outcome, tau: float, rounds: int) -> NDArray[np.bool_]:
    """Remove ½ξ_j²/Σ_jj < τ: the diagonal rule as App. C prints it, with the marginal variance."""
    post = posterior(fit.problem, fit.gamma, fit.noise)
    statistic = np.zeros(fit.xi.size)
    statistic[post.active] = 0.5 * fit.xi[post.active] ** 2 / post.variance
    return statistic < tau


def _grown_while_total_is_negative(scaled: Array, tau: float) -> Index:
    """Grow S by the column with the least ½Σ_SS scaled − τ|S| while that total is not positive."""
    removed: list[int] = []
    total, cost = 0.0, 0.5 * scaled.diagonal() - tau
    while (total := total + float(cost.min(initial=np.inf))) <= 0:
        removed.append(int(np.argmin(cost)))
        cost = cost + scaled[:, removed[-1]]
        cost[removed] = np.inf
    return np.array(removed, dtype=np.intp)


@dataclass(frozen=True)
class Grids:
    """Strengths as the authors ran them; the first of each stands for plain ARD."""

    alpha: Sequence[float]
    lam: Sequence[float]
    tau_l: Sequence[float]
    tau_m: Sequence[float] = (0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1)
    tau_map: Sequence[float] = (0, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3)
    eta: Sequence[float] = (0.1,)


def replayed(
    theta: Array,
    y: Array,
    grids: Grids,
    truth: NDArray[np.bool_] | None,
    tol: float,
    right: Right,
    methods: Sequence[str] = METHODS,
) -> dict[str, Array]:
    """Return the coefficients that the published code reports for every method asked for.

    λ is already multiplied by whatever the authors multiplied it by. With `truth` (which terms are there) the choice is
    by added + missed, the first of ties, else by AICc. `tol` on γ is that of plain ARD; that of the sweeps is 1e-5.
    """
    problem, fitted = posed(theta, y), partial(fit_learning_noise, variance=float(np.var(y)), right=right)
    begin = problem.total / problem.n_rows if right("noise start") else 1.0
    first = fitted(problem, begin, tol)

    def best(fit: Callable[..., Outcome], strengths: Iterable[Any]) -> Array:
        candidates = [first, *map(fit, strengths)]
        kept = [int((fit.xi != 0).sum()) for fit in candidates]
        scores = [fit.aicc if truth is None else int(((fit.xi != 0) != truth).sum()) for fit in candidates]
        if right("choice"):
            if truth is None:
                scores = [np.inf if problem.too_many(k) else s for s, k in zip(scores, kept, strict=True)]
            return candidates[int(np.lexsort((kept, scores))[0])].xi
        return candidates[int(np.argmin(scores))].xi

    def inflated(alpha: float) -> Outcome:
        return fitted(problem, begin, COARSE, alpha=alpha)

    def regularised(prior: tuple[float, float]) -> Outcome:
        return fitted(problem, first.noise, COARSE, lam=prior[0], eta=prior[1], start=first.gamma)

    def thresholded(removal: Removal) -> Callable[[float], Outcome]:
        # MAP-STSBL loses its tolerance with the misplaced argument and falls back to the default.
        refit = partial(fitted, tol=FINE if removal is cheap_to_remove else COARSE)
        first_rule = removal is cheap_to_remove and right("MAP recursion")
        rule = (lambda fit, tau, rounds: removal(fit, tau, 1)) if first_rule else removal
        return lambda tau: threshold(first, rule, tau, refit)

    found: dict[str, Callable[[], Array]] = {
        "ARD": lambda: first.xi,
        "ARDvi": lambda: best(inflated, grids.alpha[1:]),
        "ARDr": lambda: best(regularised, product(grids.lam[1:], grids.eta)),
        "M-STSBL": lambda: best(thresholded(small_magnitude), grids.tau_m[1:]),
        "L-STSBL": lambda: best(thresholded(likely_zero), grids.tau_l[1:]),
        "MAP-STSBL": lambda: best(thresholded(cheap_to_remove), grids.tau_map[1:]),
    }
    return {method: found[method]() for method in methods}


def published_difference(values: Array, step: float, derivative: int = 1) -> Array:
    """Return a derivative along the first axis as published: central stencils of sixth order, forward ones at the ends.

    Where ours moves one window of points along the ends, the published code begins a forward stencil at every row (and
    mirrors it at the other end). That of the fourth derivative has nine points, hence order five.
    """
    forward = difference_weights(tuple(range(min(derivative + 6, 9))), derivative)
    result = finite_difference(values, 1.0, derivative=derivative)
    for rows, given, sign in ((result, values, 1), (result[::-1], values[::-1], (-1) ** derivative)):
        for i in range((derivative + 5) // 2):
            rows[i] = sign * np.tensordot(forward, given[i : i + forward.size], axes=1)
    return result / step**derivative


def posed(theta: Array, y: Array) -> Problem:
    """Return the data as a problem in the user's own units; compressed where rows outnumber columns."""
    m, d = theta.shape
    return Problem(DenseColumns(theta), y, 0.0, m).restrict(np.arange(d))


# Zhang & Lin ----------------------------------------------------------------------------------------------------------

# Threshold sparse Bayesian regression (Proc. R. Soc. A 474:20180305), beside which M-STSBL is set, as their published
# code does it (sheng-sheng-sheng/SubTSBR): evidence maximised one column at a time, from none (Tipping & Faul, AISTATS
# 2003), with σ² learned; drop |μ_j| < τ and fit what is left anew, until nothing goes. τ is the user's; here it is that
# of their example, the constants those of SparseBayes 2.0, which they call. (Σ_j Σ_jj/μ_j² chooses among subsamples
# only.)
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
