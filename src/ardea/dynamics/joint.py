"""How uncertain all coefficients and the first state are together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from ardea.core.estimate import Estimate
from ardea.core.problem import Array
from ardea.equation import Equation


@dataclass(frozen=True, eq=False)
class Joint:
    """What the equations, each with a covariance of its own, do not tell: how they depend on each other.

    The first state x₀ is N(start + gain (ξ − ξ̂), covariance) where the coefficients ξ are given.
    """

    correlation: Array  # (k, k), of coefficients of different equations; zero within an equation
    start: Array  # (n,)
    gain: Array  # (n, k)
    covariance: Array  # (n, n)
    time: float  # of the first state
    step: float  # the mean step of the trajectory

    @staticmethod
    def between(sizes: Sequence[int], correlation: Array) -> Array:
        """Return a correlation with zeros within the equations, which have so many terms."""
        owner = np.repeat(np.arange(len(sizes)), sizes)
        return np.where(owner[:, None] == owner, 0.0, correlation)

    def estimate(self, equations: Sequence[Equation]) -> Estimate:
        """Return the estimate of all kept coefficients, equation by equation."""
        std = np.concatenate([one.std for one in equations])
        own = linalg.block_diag(*(one.covariance for one in equations))
        mean = np.concatenate([one.coefficients for one in equations])
        degrees = min(one.degrees for one in equations)
        return Estimate(mean, own + self.correlation * np.outer(std, std), float("nan"), degrees)

    def starts(self, deviations: Array, generator: Any) -> Array:
        """Return a first state for every draw of the coefficients, given as deviations from their mean, (draws, k)."""
        own = Estimate(self.start, self.covariance, float("nan"), np.inf)
        return np.asarray(own.sample(len(deviations), generator) + deviations @ self.gain.T)
