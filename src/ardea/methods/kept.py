"""What is known of the kept terms: the few values from which all numbers of an equation are derived."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, special

from ardea.core.evidence import Posterior, posterior, sharpened
from ardea.core.problem import Array, Coordinates, DenseColumns, FlatColumns, Index, Problem
from ardea.core.result import Fit

# Problems of so many numbers or fewer are kept as they are; larger ones are compressed to k + 1 rows. Measured: below,
# the QR costs more than it saves.
SMALL_BLOCK = 2**14


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimate of some coefficients: Gaussian, or Student's t where `degrees` is finite.

    Attributes
    ----------
    mean, covariance : ndarray of shape (k,), (k, k)
        Of the coefficients.
    noise_variance : float
        σ² behind them.
    degrees : float
        Degrees of freedom, infinite for a Gaussian.
    """

    mean: Array
    covariance: Array
    noise_variance: float
    degrees: float

    @property
    def std(self) -> Array:
        """Standard deviations."""
        return np.sqrt(self.covariance.diagonal())

    def half_widths(self, level: float = 0.95) -> Array:
        """Return half the widths of the intervals."""
        tail = 0.5 + level / 2
        finite = np.isfinite(self.degrees)
        return self.std * float(special.stdtrit(self.degrees, tail) if finite else special.ndtri(tail))

    def interval(self, level: float = 0.95) -> Array:
        """Return the ends of the intervals, shape (k, 2)."""
        half = self.half_widths(level)
        return np.column_stack([self.mean - half, self.mean + half])

    def sample(self, n: int, generator: Any) -> Array:
        """Return n draws, shape (n, k)."""
        # In units of each deviation, so that coefficients of very different size are drawn alike.
        deviation = self.std
        safe = np.where(deviation > 0, deviation, 1.0)
        values, vectors = linalg.eigh(self.covariance / np.outer(safe, safe))
        half = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn: Array = self.mean + generator.standard_normal((n, values.size)) @ half.T * deviation
        return drawn


@dataclass(frozen=True, eq=False)
class KeptTerms:
    """The values from which all numbers of an equation are derived."""

    active: Index  # penalised candidates that were kept
    problem: Problem  # of these columns alone, dense and small, in normalised coordinates
    prior_variance: Array | None  # γ in these coordinates; None for least squares
    noise: float | None  # σ² in these coordinates; None to take that of least squares
    noise_known: bool  # whether σ² was told
    n_parameters: float  # coefficients that were estimated from the same rows, for the degrees of freedom
    unit: Array  # what one unit of each coefficient is worth in the user's units
    target_unit: float  # the same for the target
    flat: FlatColumns  # the terms with a flat prior

    @cached_property
    def posterior(self) -> Estimate:
        """The posterior at γ and σ², or least squares where there is no prior."""
        if self.prior_variance is None or self.noise is None:
            return self._least_squares(max(self.problem.n_rows - self.n_parameters, 1.0))
        covariance = self._solved.covariance * self.unit[:, None] * self.unit
        return Estimate(self._solved.mean * self.unit, covariance, self.noise * self.target_unit**2, np.inf)

    @cached_property
    def _solved(self) -> Posterior:
        """The posterior in the problem's own coordinates."""
        if self.prior_variance is None or self.noise is None:
            raise ValueError("Least squares has no prior variances.")
        return sharpened(self.problem, posterior(self.problem, self.prior_variance, self.noise))

    @cached_property
    def refit(self) -> Estimate | None:
        """Least squares on the kept columns, Student's t where σ² was learned; None with too few rows."""
        if self.prior_variance is None:
            return self.posterior
        degrees = self.problem.n_rows - self.n_parameters
        return None if degrees < 0 or (degrees == 0 and not self.noise_known) else self._least_squares(degrees)

    def _least_squares(self, degrees: float) -> Estimate:
        every = np.arange(self.active.size)
        mean, rss = self.problem.least_squares(every)
        told = self.noise if self.noise_known else None
        noise = rss / degrees if told is None else told
        inverse = np.linalg.pinv(self.problem.columns.take(every))
        covariance = noise * (inverse @ inverse.T) * np.outer(self.unit, self.unit)
        return Estimate(
            mean * self.unit, covariance, noise * self.target_unit**2, degrees if told is None else float(np.inf)
        )

    @property
    def support(self) -> Index:
        """All kept candidates, in order."""
        return np.sort(np.concatenate([self.active, self.flat.kept])) if self.flat.kept.size else self.active

    @property
    def log_evidence(self) -> float:
        """−½(m ln 2π + log|Σ_y| + yᵀΣ_y⁻¹y) in the user's units; NaN for least squares."""
        if self.prior_variance is None:
            return float("nan")
        constant = self.problem.n_rows * (np.log(2 * np.pi) + 2 * np.log(self.target_unit))
        return float(-0.5 * (constant + self._solved.cost))

    def prior_variances(self, n_candidates: int) -> Array:
        """Return γ of every candidate in the user's units: zero where dropped, infinite where the prior is flat."""
        gamma = np.zeros(n_candidates)
        if self.prior_variance is not None:
            gamma[self.active] = (np.sqrt(self.prior_variance) * self.unit) ** 2
        gamma[self.flat.kept] = np.inf
        return gamma

    def flat_mean(self, penalised: Array) -> Array:
        """Return the mean of the flat coefficients given those of the penalised ones, shape (p,) or (n, p)."""
        return np.asarray(self.flat.target_loadings - penalised @ self.flat.loadings.T)

    def with_flat(self, estimate: Estimate) -> Estimate:
        """Return the estimate of all kept terms, in the order of the support, from that of the penalised ones."""
        flat = self.flat
        if flat.kept.size == 0:
            return estimate
        first = int(flat.intercept)
        cross = -flat.loadings[first:] @ estimate.covariance
        own = estimate.noise_variance * flat.inverse_gram[first:, first:]
        joint = np.block([[estimate.covariance, cross.T], [cross, own - cross @ flat.loadings[first:].T]])
        mean = np.concatenate([estimate.mean, self.flat_mean(estimate.mean)[first:]])
        order = np.argsort(np.concatenate([self.active, flat.kept]), kind="stable")
        return replace(estimate, mean=mean[order], covariance=joint[np.ix_(order, order)])

    def intercept(self, estimate: Estimate) -> tuple[float, float]:
        """Return mean and standard deviation of the intercept."""
        row = self.flat.loadings[0]
        variance = estimate.noise_variance * self.flat.inverse_gram[0, 0] + row @ estimate.covariance @ row
        return float(self.flat_mean(estimate.mean)[0]), float(np.sqrt(variance))

    def prediction_variance(self, active: Array, kept: Array) -> Array:
        """Return the variance of a new observation, given the rows of the penalised and of the always kept columns."""
        flat = np.column_stack([np.ones((active.shape[0], int(self.flat.intercept))), kept])
        estimate = self.posterior
        centred = active - flat @ self.flat.loadings
        spread = np.einsum("ij,jk,ik->i", centred, estimate.covariance, centred, optimize=True)
        own = np.einsum("ij,jk,ik->i", flat, self.flat.inverse_gram, flat, optimize=True)
        return np.asarray(estimate.noise_variance * (1 + own) + np.maximum(spread, 0.0))


def kept_terms(problem: Problem, fit: Fit, coordinates: Coordinates, target: int, *, noise_known: bool) -> KeptTerms:
    """Return what a fit keeps of one target's problem."""
    active = fit.posterior.active
    k = active.size
    large = problem.columns.shape[0] * k > SMALL_BLOCK
    part = problem.restrict(active) if large else replace(problem, columns=problem.columns.restrict(active))
    return KeptTerms(
        active=active,
        problem=replace(part, columns=DenseColumns(part.columns.take(np.arange(k)))),
        prior_variance=fit.gamma[active],
        noise=fit.noise,
        noise_known=noise_known,
        n_parameters=k,
        unit=coordinates.coefficient_unit(target)[active],
        target_unit=float(coordinates.targets[target]),
        flat=coordinates.flat.of(active, target),
    )
