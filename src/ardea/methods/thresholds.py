"""Rules that say which columns of a fit are dropped (Algs. 4–6): posterior → verdict.

Each compares a statistic of every active column with a threshold and says which columns go. How both change with the
unit of a coefficient: magnitudes with its first power, densities with its inverse, the costs of MAP not at all.

MAP drops the set S that maximises the posterior of Eq. (sparse_xi_posterior), searched in one of four ways:

- "diagonal": ½μ_j²(Σ⁻¹)_jj < τ, one column at a time (Eq. single_thresh_criteria, Alg. 6).
- "greedy": grow S by the column that most increases Στ − ½μ_SᵀP_SSμ_S, P = Σ⁻¹, until none does.
- "forward-backward": the same, and after every growth take columns out of S while that increases it.
- "backward": the kept coordinates are re-optimised when a column goes (the paper freezes them), which costs
  ½μ_Sᵀ(Σ_SS)⁻¹μ_S: remove the column with the largest τ_j − ½μ_j²/Σ_jj > 0, condition the Gaussian on
  ξ_j = 0, repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ardea import rates
from ardea.core.evidence import NoiseRule, Posterior, posterior, slopes_and_scores
from ardea.core.lazy import compiled_module, numpy_is_asked_for
from ardea.core.loop import Fit, Status, worst
from ardea.core.problem import TINY, Array, Index, Problem
from ardea.priors import CappedLinear

compiled = compiled_module("core._subsets")

# Of columns screened at a higher rate the orders of up to so many are counted: more would only cost true terms
# (measured). A convention: the share of the false terms asked for that groups of any size may add.
MOST_ORDERED, SELDOM = 3, 1e-3
# A model is weak where chance would do as well this often, as a share of what was asked for: a convention. How much it
# is then shrunk was measured (benchmarks/weak.py, other seeds): with twice as much weak signals are lost, with half as
# much some models still predict worse than the mean where columns are many.
WEAK, SHRINKAGE = 0.03, 4.0
# An F test against all columns refutes a fit below this probability: a convention, rare enough for a million fits.
REFUTED = 1e-6
# Below this one a second start is tried (measured on 50 × 40 with 38 true terms and the like: with 1e-6 up to all fits
# lose some, with 1e-3 and 1e-2 equally few), and it is told where all columns moreover explain so much of σ² (a
# convention; of sixteen real tables it is told of two, docs/comparison.md).
SUSPECT, WORTH_TELLING = 1e-3, 0.1
# The strength, or the factor of one, that keeps a column out whatever it explains.
BARRED = 1e12
Search = Literal["diagonal", "greedy", "forward-backward", "backward"]


@dataclass(frozen=True)
class Verdict:
    """Which active columns to drop, with the statistic and the threshold that decided."""

    drop: NDArray[np.bool_]
    statistic: Array
    threshold: Array


# From a posterior, ρ and a threshold of its active columns.
Judge = Callable[[Posterior, Array, Array], Verdict]


@dataclass(frozen=True)
class Calibrated:
    """The strength at which every column has the same false positive rate (closed form of :mod:`ardea.rates`).

    The closed form holds for orthogonal columns, where ρ_j/σ² is what the data say of ξ_j. Off-orthogonal that is the
    precision left when the prior is taken out of the marginal posterior and the other columns are integrated out,

        s_j = 1/Σ_jj − 1/γ_j = θ_jᵀ(Σ_y − γ_jθ_jθ_jᵀ)⁻¹θ_j,

    and it takes the place of ρ_j/σ². At a fixed point of ARD (q² = M) every active column then has
    |μ_j| = (t_j − 1/t_j)/√s_j and μ_j²/Σ_jj = t_j² − 1, with t_j the statistic of the column against the others, which
    is N(0, 1) for a false one: t_j < z decides, for every method. MAP's diagonal rule looks at (Σ⁻¹)_jj instead of
    1/Σ_jj, so its price is multiplied by Σ_jj(Σ⁻¹)_jj, the column's variance inflation; subset searches weigh the
    correlations themselves, so that they have one price.

    With σ² learned from n_rows − k degrees of freedom, z is Student's quantile.
    """

    method: rates.Method
    false_positive_rate: float
    n_rows: float = np.inf  # infinite where σ² is known
    n_candidates: int = 1
    screened: bool = False  # whether columns were screened at a higher rate
    one_price: bool = False

    def __call__(self, post: Posterior, rho: Array) -> Array:
        """Return the strengths at the present posterior."""
        degrees = self.degrees(post)
        if self.method == "map":
            price = rates.calibrated("map", self.false_positive_rate, degrees)
            if self.one_price:
                return np.full(rho.size, price)
            return np.asarray(price * (post.variance * (rho / post.noise + 1 / post.root**2)))
        return rates.strength_for(self.method, self.false_positive_rate, rho=post.own_precision, degrees=degrees)

    def degrees(self, post: Posterior) -> float:
        """Return ν."""
        return max(self.n_rows - post.active.size, 1.0)

    def orders(self, number: Any, gain: Any, degrees: float) -> Any:
        """Return n_l of `by_chance`."""
        at_least = special.gammaln(np.minimum(number, MOST_ORDERED) + 1.0) if self.screened else 0.0
        with np.errstate(over="ignore"):
            return np.exp(np.maximum(special.gammaln(number + 1.0) * gain / (degrees + gain), at_least))

    def chance(self, post: Posterior) -> float:
        """Return how near all terms together are to chance: 1 at the cuts of the calibration, near 0 for clear terms.

        That is r = n_k P(F_{k,ν} > X/k) / P(χ²_k > k z²) of `by_chance` for the whole model, X = μᵀΣ⁻¹μ + k; with σ²
        known, P(χ²_k > X) in the place of F. It is not more than the number of the C(d, k) groups that would do as well
        by chance, as a share of the number of false terms asked for.
        """
        k, rate, d = post.active.size, self.false_positive_rate, self.n_candidates
        if k == 0:
            return 0.0
        half = post.triangle.T @ post.w  # Σ⁻¹ = Γ^{-1/2}LLᵀΓ^{-1/2}/σ², μ = Γ^{1/2}w
        gain, degrees, cut = float(half @ half) / post.noise + k, self.degrees(post), special.chdtri(1, rate)
        if np.isinf(degrees):
            as_good, orders = special.chdtrc(k, gain), 1.0
        else:
            as_good, orders = special.fdtrc(k, degrees, gain / k), float(self.orders(k, gain, degrees))
        if as_good == 0:
            return 0.0
        with np.errstate(divide="ignore", over="ignore"):
            return float(min(as_good * orders / special.chdtrc(k, k * cut), as_good * special.binom(d, k) / (rate * d)))

    def shrunk_where_weak(self, problem: Problem, fit: Fit) -> Fit:
        """Return a fit with smaller coefficients where chance might explain y as well as its terms do (`chance`).

        Chance favours terms whose estimates are too large: a model that only just passes predicts worse than the mean
        of y. With r above r₀ = 0.03 every coefficient is multiplied by about u = (1 + 4r₀)/(1 + 4r), a fifth at the
        cut: the share of it that the data decide, f_j = 1 − Σ_jj/γ_j, becomes u f_j by

            γ_j ← u f_j / ((1 − u f_j) s_j),    s_j = 1/Σ_jj − 1/γ_j,

        and σ² follows by the noise rule. Measured in benchmarks/weak.py.
        """
        post = fit.posterior
        near = self.chance(post)
        if near <= WEAK or fit.status is Status.COLLAPSED:
            return fit
        decided = (1 + SHRINKAGE * WEAK) / (1 + SHRINKAGE * near) * (1 - post.variance / post.root**2)
        gamma = np.zeros_like(fit.gamma)
        gamma[post.active] = decided / (1 - decided) / post.own_precision
        known = None if np.isfinite(self.n_rows) else fit.noise
        noise = NoiseRule(known).update(problem, posterior(problem, gamma, fit.noise))
        status = worst(fit.status, Status.WEAK)
        return replace(fit, gamma=gamma, noise=noise, posterior=posterior(problem, gamma, noise), status=status)


@dataclass(frozen=True)
class Rule:
    """A judge of the posterior, ρ and a threshold of the active columns, and where these thresholds come from."""

    judge: Judge
    strength: Array | Calibrated  # one for every column of the whole problem, or the rate that they should have

    def __call__(self, post: Posterior, rho: Array, columns: Index) -> Verdict:
        """Judge the active columns, given their ρ and their numbers in the whole problem."""
        strength = self.strength
        if not isinstance(strength, Calibrated):
            return self.judge(post, rho, strength[columns])
        verdict = self.judge(post, rho, strength(post, rho))
        return by_chance(post, strength) if not verdict.drop.any() and np.isfinite(strength.n_rows) else verdict


def by_magnitude(post: Posterior, rho: Array, threshold: Array) -> Verdict:
    """Drop |μ_j| < τ (Alg. 4)."""
    statistic = np.abs(post.mean)
    return Verdict(statistic < threshold, statistic, threshold)


def by_likelihood(post: Posterior, rho: Array, threshold: Array) -> Verdict:
    """Drop N(0 | μ_j, Σ_jj) > τ (Alg. 5)."""
    log_density = -(post.mean**2) / (2 * post.variance) - 0.5 * np.log(2 * np.pi * post.variance)
    with np.errstate(divide="ignore"):
        drop = log_density > np.log(threshold)
    return Verdict(drop, np.exp(log_density), threshold)


def by_diagonal(post: Posterior, rho: Array, threshold: Array) -> Verdict:
    """Drop ½μ_j²(Σ⁻¹)_jj < τ (Alg. 6)."""
    statistic = 0.5 * post.mean**2 * (rho / post.noise + 1 / post.root**2)
    return Verdict(statistic < threshold, statistic, threshold)


def backward_elimination(mean: Array, covariance: Array, threshold: Array) -> Verdict:
    """Remove, one after another, the column whose removal costs least, while that is below its threshold.

    Removing j conditions the posterior on ξ_j = 0: with v = Σ_:j, μ ← μ − vμ_j/v_j and Σ ← Σ − vvᵀ/v_j. The cost
    ½μ_j²/Σ_jj is the fall of the log-posterior when all other coordinates are free to follow.
    """
    order, statistic = _eliminated(mean, covariance, threshold)
    drop = np.zeros(mean.size, dtype=bool)
    drop[order] = True
    return Verdict(drop, statistic, threshold)


def _eliminated(mean: Array, covariance: Array, threshold: Array, *, every: bool = False) -> tuple[Index, Array]:
    """Return which columns go, in order, and what each cost then, or would cost the last; ∞ for those of no variance.

    They go while they cost less than their threshold, or `every` one of them.
    """
    if compiled is not None and not numpy_is_asked_for():
        used_up = np.array(mean), np.array(covariance, order="C")
        found: tuple[Index, Array] = compiled.eliminated(*used_up, threshold, every)
        return found
    order, alive = list[int](), np.ones(mean.size, dtype=bool)
    statistic, never = np.full(mean.size, np.inf), np.full(mean.size, np.inf)
    while alive.any():
        possible = alive & ((variance := covariance.diagonal()) > 0)
        cost = np.divide(0.5 * mean**2, variance, out=never.copy(), where=possible)
        statistic[alive] = cost[alive]
        j = int(np.subtract(threshold, cost, out=-never, where=possible).argmax())
        if not possible[j] or not (every or threshold[j] > cost[j]):
            break
        column = covariance[:, j] / covariance[j, j]
        mean, covariance = mean - column * mean[j], covariance - np.outer(column, covariance[j])
        alive[j] = False
        order.append(j)
    return np.array(order, dtype=np.intp), statistic


def by_chance(post: Posterior, strength: Calibrated) -> Verdict:
    """Drop the weakest column where it and the next few are together no more than chance.

    σ² is learned from rows that columns were chosen to explain: a few false ones may then hold each other up, each
    beyond its own cut beside the others. In the order of backward elimination, the first l, whose costs c_i add up to
    X = Σ(2c_i + 1), are kept where

        n_l P(F_{l,ν} > X/l) ≤ P(χ²_l > l z²),

    z the normal quantile of the rate: together they must be as rare as l at their cuts would be with σ² known. n_l is
    the number of orders in which they may have come, each of which gave those left out another chance: (l!)^R², R² the
    share of the rest that they explain, since nothing changes for the others where that is small. Where columns were
    screened at a higher rate than the one asked for, at least the orders of up to three.
    Many true columns leave too few rows for that: it is also enough that, beside the other k − l terms, one of the
    C(d − k + l, l) groups would do as well with a chance of a thousandth of what was asked for.
    """
    k = post.active.size
    rate, degrees, d = strength.false_positive_rate, strength.degrees(post), strength.n_candidates
    cut = special.chdtri(1, rate)
    order, statistic = _eliminated(post.mean, post.covariance, np.zeros(k), every=True)
    number, gain = np.arange(1.0, order.size + 1), np.cumsum(2 * statistic[order] + 1)
    with np.errstate(invalid="ignore"):
        orders = strength.orders(number, gain, degrees)
    groups = special.binom(d - k + number, number)
    allowed = np.fmax(special.chdtrc(number, number * cut) / orders, SELDOM * rate * d / groups)
    drop = np.zeros(k, dtype=bool)
    drop[order[:1]] = (special.fdtrc(number, degrees, gain / number) > allowed).any()
    return Verdict(drop, statistic, np.full(k, cut / 2))


def chance_beside_all(problem: Problem, fit: Fit, noise_known: bool) -> float:
    """Return the p-value of an F test of a fit's terms against all columns of the problem; 1 where there is none.

    With r columns that are not zero, and RSS_r of least squares on them,

        F = (RSS_k − RSS_r)/(r − k) / (RSS_r/(m − r)),

    or, with σ² known, (RSS_k − RSS_r)/σ² against χ² of r − k degrees. Columns that interpolate the rows that differ
    have RSS_r = 0 and refute nothing, nor do rounding errors. Only where the part of y outside of the compressed rows,
    the least that RSS_r can be, would refute a fit are all columns fitted.
    """
    r, k, rss = problem.n_candidates, fit.posterior.active.size, fit.posterior.rss
    degrees = problem.n_rows - r
    if problem.total == 0 or problem.wide or r <= k or degrees < 1:
        return 1.0

    def chance(rss_r: float) -> float:
        if noise_known:
            return float(special.chdtrc(r - k, max(rss - rss_r, 0.0) / fit.noise))
        noise = max(rss_r / degrees, NoiseRule().floor(problem))
        return float(special.fdtrc(r - k, degrees, max(rss - rss_r, 0.0) / (r - k) / noise))

    least = chance(problem.rest)
    return least if least > SUSPECT else chance(problem.least_squares(np.arange(problem.n_columns))[1])


def refuted(problem: Problem, fit: Fit, noise_known: bool) -> bool:
    """Whether all columns together clearly explain what a fit leaves to noise."""
    return chance_beside_all(problem, fit, noise_known) < REFUTED


def overlooks_much(problem: Problem, fit: Fit, false_terms: float) -> bool:
    """Whether all columns together explain much of what a fit leaves to noise, as chance does less often than asked."""
    if chance_beside_all(problem, fit, noise_known=False) >= min(SUSPECT, false_terms):
        return False
    return overlooked(problem, fit) > WORTH_TELLING


def overlooked(problem: Problem, fit: Fit) -> float:
    """Return the share of the noise variance beside a fit's terms that least squares on all columns explain."""
    least = problem.least_squares(np.arange(problem.n_columns))[1] / (problem.n_rows - problem.n_candidates)
    return 1 - least * (problem.n_rows - fit.posterior.active.size) / fit.posterior.rss


def calibrated_prior(
    problem: Problem, first: Fit, excess: float, width: Array | None, barred: Sequence[int]
) -> CappedLinear:
    """Return λ_j = (z² − 1)s_j and η_j = (z² − 1)/s_j, with s_j the precision of column j against the others.

    On orthogonal columns s_j = ρ_j/σ² and ψ² = v + min(λv², η) with v = 1/s_j: any η ≥ (z² − 1)v has the same cut.
    The least of them stops the penalty where ARD's γ = (t² − 1)/s is that of a column at the cut.
    """
    post = posterior(problem, first.gamma, first.noise)
    precision, _ = slopes_and_scores(problem, post)  # s_j = M_j where γ_j = 0
    precision[post.active] = post.own_precision
    free = excess / np.where(precision > 0, precision, 1.0)
    price, width = excess * precision, np.maximum(free if width is None else width, TINY)
    price[list(barred)] *= BARRED
    width[list(barred)] *= BARRED
    return CappedLinear(price, width)


def by_growth(post: Posterior, rho: Array, threshold: Array, *, backward: bool) -> Verdict:
    """Grow S greedily on the paper's criterion, Στ_S − ½μ_SᵀP_SSμ_S with the kept coordinates frozen at μ."""
    half = post.triangle / post.root[:, None]
    precision = half @ half.T / post.noise  # Σ⁻¹ = Γ^{-1/2}BΓ^{-1/2}/σ²
    scaled = precision * np.outer(post.mean, post.mean)  # ½·sum over S×S of this is the cost of removing S
    removed = np.zeros(post.mean.size, dtype=bool)
    statistic = 0.5 * scaled.diagonal()
    while not removed.all():
        # Gain of adding j to S, given S.
        cost = 0.5 * scaled.diagonal() + scaled[:, removed].sum(axis=1)
        gain = np.where(removed, -np.inf, threshold - cost)
        j = int(np.argmax(gain))
        if gain[j] <= 0:
            break
        removed[j] = True
        statistic[j] = cost[j]
        while backward:
            saving = scaled[:, removed].sum(axis=1) - 0.5 * scaled.diagonal() - threshold
            back = np.where(removed, saving, -np.inf)
            best = int(np.argmax(back))
            if back[best] <= 1e-12 * (1 + threshold[best]):
                break
            removed[best] = False
    return Verdict(removed, statistic, threshold)


SEARCHES: dict[Search, Callable[[Posterior, Array, Array], Verdict]] = {
    "diagonal": by_diagonal,
    "greedy": partial(by_growth, backward=False),
    "forward-backward": partial(by_growth, backward=True),
    "backward": lambda post, rho, threshold: backward_elimination(post.mean, post.covariance, threshold),
}
