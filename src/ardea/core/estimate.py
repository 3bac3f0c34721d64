"""Estimates of coefficients: mean, covariance, intervals and draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, special

from ardea.core.problem import Array


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
        values, vectors = linalg.eigh(self.correlation)
        half = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn: Array = self.mean + generator.standard_normal((n, values.size)) @ half.T * self.std
        return drawn
