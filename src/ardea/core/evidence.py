"""The evidence at (γ, σ²): what is assumed of both (prior, noise rule, setting), the posterior, and slopes in γ.

The posterior is one factorisation of the active block. With Z = Θ_a Γ_a^{1/2} over the k active columns (γ > 0) and
B = ZᵀZ + σ²I (k × k),

- w = B⁻¹Zᵀy,  μ = Γ^{1/2} w,  Σ = σ² Γ^{1/2} B⁻¹ Γ^{1/2}              (Eq. xi_posterior)
- log|Σ_y| = (m − k) ln σ² + log|B|
- yᵀΣ_y⁻¹y = ‖y − Zw‖²/σ² + ‖w‖², the minimum of Eq. (convex_loss_equiv), hence exact to second order in w.

For every column θ_j,

- M_j = θ_jᵀΣ_y⁻¹θ_j = ∂ log|Σ_y|/∂γ_j, the tangent weight c_j of Alg. 1, line 3;
- q_j = θ_jᵀΣ_y⁻¹y, with −q_j² = ∂ yᵀΣ_y⁻¹y/∂γ_j.

A fixed point of Alg. 1 has q² = M where γ > 0 and q² ≤ M where γ = 0: the KKT conditions of min L(γ), γ ≥ 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, special

from ardea.core.lazy import cached_property
from ardea.core.problem import EPS, TINY, Array, Index, Problem

# Pivots of Cholesky below this share of the diagonal have lost half their digits.
SAFE_PIVOT = 1e-8
# With a larger condition number of B, scaled to unit diagonal, Cholesky has cost the factor more than four digits.
SHARP_CONDITION = 1e4
# Schur complements below this share of ρ_j, or with B worse conditioned than this, are evaluated as a minimum instead.
SAFE_SHARE = 1e-3
SAFE_CONDITION = 1e9
# 1 − σ²(B⁻¹)_jj cancels below the first of these, and below the second times the error of B⁻¹.
SAFE_EXPLAINED = 1e-6
LOST_DIGITS = 1e7
COLUMNS_AT_ONCE = 1024
# Share of ‖y‖²/m below which σ² is not let fall: rounding error for m > d; where d ≥ m the joint optimum can collapse.
FLOOR_TALL = 1e-16
FLOOR_WIDE = 1e-6
# Intervals of estimates that were kept: |t| counts as at least this share above the cut, an end is at most so far from
# the estimate, in its standard deviations, and is found by so many halvings (conventions).
JUST_KEPT, FURTHEST, HALVINGS = 0.999, 40.0, 50
# σ² of a target that is zero (others have ‖y‖² near 1): ρ/σ² and multiples of it must stay numbers.
LEAST_NOISE = 1e-100
# A bound on work: how often draws are repeated whose signs are known to be others.
MOST_REDRAWN = 1000


@dataclass(frozen=True)
class Posterior:
    """Gaussian posterior of the active coefficients given γ and σ²."""

    active: Index  # the k columns with γ > 0
    root: Array  # √γ of them
    noise: float  # σ²
    triangle: Array  # lower Cholesky factor of B, k × k
    w: Array  # whitened mean, μ/√γ; also Γ^{1/2}ΘᵀΣ_y⁻¹y
    residual: Array  # y − Θμ in the rows of the problem
    rss: float  # ‖y − Θμ‖² over all rows
    log_determinant: float  # log|Σ_y| over all rows

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
        return np.asarray(self.noise * (self.root[:, None] * self.root) * self.inverse)

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
    if "active" in vars(problem):  # a loop has met its columns before
        vectors = problem.active.vectors(active) * root
        matrix = problem.active.gram(active) * np.outer(root, root)
    else:
        vectors = problem.columns.take(active) * root
        matrix = vectors.T @ vectors
    matrix.flat[:: active.size + 1] += noise
    return _with_factor(problem, active, root, noise, vectors, cholesky_lower(matrix, vectors, noise))


def sharpened(problem: Problem, post: Posterior, condition: float | None = None) -> Posterior:
    """Return the posterior with all the digits that the columns have, for a result that is reported.

    Cholesky of B has an error of ε·cond(B), a QR of [Z; σI] one of ε·√cond(B): it takes over where that matters. The
    loop can do without: its steps are checked by a certificate of its own.
    """
    if (scaled_condition(post.triangle) if condition is None else condition) <= SHARP_CONDITION:
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
    if matrix.shape[0] == 0:
        return matrix
    lower, info = linalg.lapack.dpotrf(matrix, lower=1)
    if info == 0 and (lower.diagonal() ** 2 >= SAFE_PIVOT * matrix.diagonal()).all():
        return np.asarray(lower)
    return _lower_by_qr(vectors, noise)


def _lower_by_qr(vectors: Array, noise: float) -> Array:
    k = vectors.shape[1]
    stacked = np.vstack([vectors, np.sqrt(noise) * np.eye(k)])
    (upper,) = linalg.qr(stacked, mode="r", check_finite=False)
    upper = upper[:k] * np.where(upper[:k].diagonal() < 0, -1.0, 1.0)[:, None]
    return np.asarray(upper.T)


def scaled_condition(triangle: Array) -> float:
    """Return an estimate of the condition number of B scaled to unit diagonal, from its factor."""
    if triangle.shape[0] == 0:
        return 1.0
    size = np.sqrt(np.einsum("ij,ij->i", triangle, triangle))
    reciprocal, _ = linalg.lapack.dtrcon(triangle / size[:, None], uplo="L")
    return 1 / max(float(reciprocal) ** 2, TINY)


def _solve(triangle: Array, rhs: Array) -> Array:
    if rhs.size == 0:
        return rhs
    solution, _ = linalg.lapack.dpotrs(triangle, rhs, lower=1)
    return np.asarray(solution)


def _inverse_from_cholesky(triangle: Array) -> Array:
    if triangle.shape[0] == 0:
        return triangle
    lower, _ = linalg.lapack.dpotri(triangle, lower=1)  # zeros above the diagonal, as in the factor
    inverse: Array = lower + lower.T
    inverse.flat[:: inverse.shape[0] + 1] = lower.diagonal()
    return inverse


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
    half, _ = linalg.lapack.dtrtrs(post.triangle, cross, lower=1)
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
        v = _solve(post.triangle, z.T @ theta)
        v += _solve(post.triangle, z.T @ (theta - z @ v) - post.noise * v)
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
    unit = np.eye(post.active.size)[:, among]
    t = post.noise * _solve(post.triangle, unit)
    t += _solve(post.triangle, post.noise * (unit - t) - z.T @ (z @ t))
    inside, rest = z @ t, unit - t
    least = np.einsum("ij,ij->j", inside, inside) / post.noise + np.einsum("ij,ij->j", rest, rest)
    return np.asarray(least / post.root[among] ** 2)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimate of some coefficients: Gaussian, or Student's t where `degrees` of freedom are finite."""

    mean: Array  # (k,)
    covariance: Array  # (k, k)
    noise_variance: float  # σ² behind them
    degrees: float

    @property
    def std(self) -> Array:
        """Standard deviations."""
        return np.sqrt(self.covariance.diagonal())

    @property
    def correlation(self) -> Array:
        """Correlation of the coefficients."""
        safe = np.where(self.std > 0, self.std, 1.0)
        return np.asarray(self.covariance / np.outer(safe, safe))

    def half_widths(self, level: float = 0.95) -> Array:
        """Return half the widths of the intervals."""
        return self.std * self._quantile(0.5 + level / 2)

    def _quantile(self, probability: float) -> float:
        finite = np.isfinite(self.degrees)
        return float(special.stdtrit(self.degrees, probability) if finite else special.ndtri(probability))

    def interval(self, level: float = 0.95) -> Array:
        """Return the ends of the intervals, shape (k, 2)."""
        half = self.half_widths(level)
        return np.column_stack([self.mean - half, self.mean + half])

    def interval_if_kept(self, level: float, rate: float) -> Array:
        """Return intervals of estimates that are known because chance lets a share `rate` of them be so large, (k, 2).

        T = (estimate − mean)/std is Student's, F; only |t| > c is met, c its quantile at `rate`. The ends θ are where
        P(T ≤ t − θ | |T + θ| > c) = (F(−c − θ) + F(t − θ) − F(c − θ))/(F(−c − θ) + F(θ − c)), t > c, is (1 ± level)/2:
        they hold the truth as often as `level` says among estimates that are met.

        Examples
        --------
        >>> one = Estimate(np.array([3.2, 9.0]), np.eye(2), 1.0, np.inf)
        >>> one.interval_if_kept(0.95, rate=0.003).round(2)
        array([[-0.42,  4.73],
               [ 7.04, 10.96]])
        """
        F = partial(special.stdtr, self.degrees) if np.isfinite(self.degrees) else special.ndtr
        t = np.abs(self.mean) / np.where(self.std > 0, self.std, TINY)
        c = np.minimum(self._quantile(1 - rate / 2), JUST_KEPT * t)
        ends = []
        for share in ((1 + level) / 2, (1 - level) / 2):
            low, high = t - FURTHEST, t + FURTHEST
            for _ in range(HALVINGS):
                theta = (low + high) / 2
                below, above = F(-c - theta), F(theta - c)
                left = (below + above - F(theta - t)) / (below + above) > share  # falls as θ grows
                low, high = np.where(left, theta, low), np.where(left, high, theta)
            ends.append((low + high) / 2)
        sign = np.sign(self.mean)
        return np.sort(np.column_stack(ends) * (sign * self.std)[:, None], axis=1)

    def sample(self, n: int, generator: Any) -> Array:
        """Return n draws, shape (n, k)."""
        # In units of each deviation, so that coefficients of very different size are drawn alike. The symmetric root of
        # the correlations is the only one: signs of eigenvectors, and draws with them, differ between processors.
        values, vectors = linalg.eigh(self.correlation)
        half = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        drawn: Array = self.mean + generator.standard_normal((n, values.size)) @ half * self.std
        return drawn


@dataclass(frozen=True, eq=False)
class Tied:
    """Coefficients w = w₀ + Zv that linear equations between them leave only some free parameters v."""

    offset: Array  # (k,): w₀
    directions: Array  # (k, f): Z
    signs: Array  # (k,): 1 or −1 where the sign of a coefficient is known, else 0

    @property
    def free(self) -> Index:
        """Coefficients that are a parameter each, v = w there; those of all equations together have them."""
        alone = (np.count_nonzero(self.directions, axis=1) == 1) & (self.offset == 0)
        return np.argmax(alone[:, None] & (self.directions == 1.0), axis=0).astype(np.intp)

    def of(self, free: Estimate) -> Estimate:
        """Return the estimate of the coefficients, given that of the free parameters."""
        covariance = self.directions @ free.covariance @ self.directions.T
        return replace(free, mean=self.offset + self.directions @ free.mean, covariance=covariance)

    def sample(self, estimate: Estimate, n: int, generator: Any) -> Array:
        """Return n draws of coefficients that are tied as they should be and have the signs that are known, (n, k)."""
        chosen = self.free
        free = replace(estimate, mean=estimate.mean[chosen], covariance=estimate.covariance[np.ix_(chosen, chosen)])
        signs = np.where(self.signs * estimate.mean > 0, self.signs, 0.0)
        drawn, left = np.empty((n, self.offset.size)), np.arange(n)
        for _ in range(MOST_REDRAWN):
            drawn[left] = self.offset + free.sample(left.size, generator) @ self.directions.T
            left = left[np.any(drawn[left] * signs < 0, axis=1)]
            if not left.size:
                return drawn
        drawn[left] = estimate.mean  # so many signs in doubt at once that no draw has them all
        return drawn

    def within(self, ends: Array) -> Array:
        """Return ends of intervals of the first coefficients, cut at zero where the sign is known."""
        (low, high), signs = ends.T, self.signs[: len(ends)]
        return np.column_stack(
            [np.where(signs > 0, np.maximum(low, 0.0), low), np.where(signs < 0, np.minimum(high, 0.0), high)]
        )


# What a fit assumes


class Prior:
    """Prior p(γ) ∝ exp(−(g + f)/2) with g concave and f convex (Eq. gamma_prior); subclasses define g and f.

    `value` and `slope` are those of g; `curvature` is taken by differences where it is not given. The noise variance is
    passed along for priors that scale with it.
    """

    convex: Any = None  # the convex part f (see `ardea.priors.Convex`), or None where it is zero
    scales_with_noise: Any = False  # whether g depends on σ²
    capped_linear: Any = None  # (lam, eta, over_noise) where the whole prior is lam·min(γ, eta): for the compiled loop

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Smallest and largest γ allowed."""
        return (0.0, np.inf) if self.convex is None else self.convex.bounds

    def value(self, gamma: Array, noise: float) -> Array:
        """Return g(γ), elementwise."""
        return np.zeros_like(gamma)

    def slope(self, gamma: Array, noise: float) -> Array:
        """Return g′(γ), elementwise."""
        return np.zeros_like(gamma)

    def curvature(self, gamma: Array, noise: float) -> Array:
        """Return g″(γ), elementwise, by differences."""
        step = 1e-6 * gamma + TINY
        with np.errstate(invalid="ignore", over="ignore"):
            rise = (self.slope(gamma + step, noise) - self.slope(gamma, noise)) / step
        return np.where(gamma > 0, rise, 0.0)


class Flat(Prior):
    """No prior: plain ARD."""

    capped_linear = (0.0, np.inf, False)


@dataclass(frozen=True)
class NoiseRule:
    """σ² is `known`, or learned: σ² ← ‖y − Θμ‖²/(m − k + Σ_j Σ_jj/γ_j) over the k active columns.

    That is the stationary point of L in σ². `initial` (None: ‖y‖²/m) starts it, e.g. where an earlier fit of the same y
    ended. Where d ≥ m the floor is high, because the joint optimum may collapse; `low_floor` says that it has been seen
    not to.
    """

    known: float | None = None
    initial: float | None = None
    low_floor: bool = False

    @property
    def learned(self) -> bool:
        """Whether σ² is not known."""
        return self.known is None

    def start(self, problem: Problem) -> float:
        """Return the known value, `initial`, or ‖y‖²/m: as if no column explained anything."""
        if self.known is not None:
            return self.known
        start = problem.total / problem.n_rows if self.initial is None else self.initial
        return max(start, self.floor(problem))

    def update(self, problem: Problem, post: Posterior) -> float:
        """Return the next σ², where it is learned not below the floor."""
        if self.known is not None:
            return self.known
        degrees = problem.n_rows - post.active.size + post.n_undetermined
        floor = self.floor(problem)
        return max(post.rss / degrees, floor) if degrees > 0 else floor

    def floor(self, problem: Problem) -> float:
        """Return the smallest σ² that may be learned."""
        share = FLOOR_TALL if self.low_floor or not problem.wide else FLOOR_WIDE
        return max(share * problem.total / problem.n_rows, LEAST_NOISE)


@dataclass(frozen=True)
class Setting:
    """What stays fixed during the loop.

    The noise rule sees the posterior at γ = αδ, or (`rule_inflated`) at δ, which puts it at the inflated noise: the
    remedy for a collapse when d > m.
    """

    problem: Problem
    prior: Prior  # g and f
    noise_rule: NoiseRule
    inflation: Array  # α for every column; all ones but for ARDvi
    rule_inflated: bool = False
    newton: bool = True  # whether Newton steps may be taken
    gives_up: bool = False  # whether the loop ends once σ² has collapsed, or polishes the interpolation

    @property
    def noise_factors(self) -> Array:
        """What δ is multiplied by before the noise rule sees it."""
        return np.ones_like(self.inflation) if self.rule_inflated else self.inflation

    @cached_property
    def plain(self) -> bool:
        """Whether no column is inflated."""
        return bool((self.inflation == 1).all())

    @property
    def uniform_inflation(self) -> bool:
        """Whether one α serves all columns, so that a common objective exists."""
        return bool((self.inflation == self.inflation[:1]).all())

    @property
    def has_cost(self) -> bool:
        """Whether the loop descends one objective: at fixed noise, or where σ² too is stationary in it."""
        if not self.noise_rule.learned:
            return self.uniform_inflation
        return self.plain and not self.prior.scales_with_noise

    def restrict(self, index: Index) -> Setting:
        """Return the setting with the chosen columns only."""
        part = replace(self.problem, columns=self.problem.columns.restrict(index))
        return replace(self, problem=part, inflation=self.inflation[index])
