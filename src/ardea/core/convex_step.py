"""The inner step for a convex prior f on γ (Alg. 3, line 5).

    γ⁺ = arg min_γ min_ξ ‖y − Θξ‖²/σ² + Σ_j (ξ_j²/γ_j + c_jγ_j + f(γ_j))

Minimising over γ first leaves a penalty h_j(ξ) = min_γ ξ²/γ + c_jγ + f(γ), convex and even, with h′ = 2|ξ|/γ* there.
For f = 0 it is 2√c_j|ξ|, the lasso. In general h = ℓ|ξ| + a smooth convex remainder, ℓ = 2√(c + f′(0))₊: a proximal
Newton method, whose model is a weighted lasso with a ridge, solves it with exact zeros. Where ℓ = 0 (a lower
bound on γ, or f′(0) = −∞) there are no exact zeros.

Where h is straight the ridge h″ is zero, and with more such columns than rows the model has no minimum near. As a
minimum over γ of lines in ξ², h is concave in ξ²: its tangent there, the ridge h′/|ξ|, lies above it, so where ℓ = 0 a
step with that ridge cannot fail. Ridges between the two are tried from Newton's upwards, then shorter steps.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ardea.core.columns import Array
from ardea.core.problem import Problem
from ardea.core.weighted_lasso import weighted_lasso

# Share of the way from Newton's ridge to that of the tangent in ξ².
TRUST = (0.0, 0.01, 0.1, 1.0)


class ConvexPart(Protocol):
    """Convex f on γ in [lower, upper]."""

    @property
    def bounds(self) -> tuple[Array | float, Array | float]:
        """Smallest and largest γ allowed."""

    def value(self, gamma: Array) -> Array:
        """f(γ), elementwise."""

    def slope(self, gamma: Array) -> Array:
        """f′(γ), elementwise; one-sided at a bound."""

    def minimiser(self, size: Array, c: Array) -> Array:
        """Return arg min over γ of size²/γ + cγ + f(γ), elementwise."""


def penalised_step(
    problem: Problem, c: Array, noise: float, convex: ConvexPart, start: Array, *, max_iter: int = 100
) -> Array:
    """Return ξ that minimises ½‖y − Θξ‖² + (σ²/2) Σ h_j(ξ_j)."""
    zero_slope = np.zeros_like(c)
    at_zero = np.broadcast_to(np.asarray(convex.bounds[0], dtype=float), c.shape) == 0
    with np.errstate(divide="ignore"):
        zero_slope[at_zero] = 2 * np.sqrt(np.maximum(c + convex.slope(np.zeros_like(c)), 0.0))[at_zero]
    xi = start
    objective = _objective(problem, xi, c, noise, convex)
    for _ in range(max_iter):
        size = np.abs(xi)
        step = 1e-4 * size + 1e-8 * np.sqrt(problem.total)
        remainder = np.maximum(_penalty_slope(size, c, convex, zero_slope) - zero_slope, 0.0)
        beyond = _penalty_slope(size + step, c, convex, zero_slope) - zero_slope
        curvature = np.maximum(beyond - remainder, 0.0) / step
        for trust in TRUST:
            ridge = noise / 2 * (curvature + trust * np.maximum(remainder / np.maximum(size, step) - curvature, 0.0))
            shift = ridge * xi - noise / 2 * remainder * np.sign(xi)
            candidate = weighted_lasso(problem, noise / 2 * zero_slope, xi, ridge=ridge, shift=shift).coefficients
            lower = _objective(problem, candidate, c, noise, convex)
            if lower < objective:
                break
        direction, fraction = candidate - xi, 1.0
        while lower > objective and fraction > 1e-6:
            fraction /= 2
            candidate = xi + fraction * direction
            lower = _objective(problem, candidate, c, noise, convex)
        if not lower < objective:
            break
        settled = objective - lower <= 1e-13 * abs(objective)
        xi, objective = candidate, lower
        if settled:
            break
    return xi


def _penalty_slope(size: Array, c: Array, convex: ConvexPart, zero_slope: Array) -> Array:
    gamma = convex.minimiser(size, c)
    slope = zero_slope.copy()
    live = gamma > 0
    slope[live] = 2 * size[live] / gamma[live]
    return slope


def _objective(problem: Problem, xi: Array, c: Array, noise: float, convex: ConvexPart) -> float:
    index = np.flatnonzero(xi)
    residual = problem.target - problem.active.vectors(index) @ xi[index]
    gamma = convex.minimiser(np.abs(xi), c)
    live = gamma > 0
    penalty = c[live] * gamma[live] + xi[live] ** 2 / gamma[live]
    return 0.5 * float(residual @ residual) + noise / 2 * float(penalty.sum() + convex.value(gamma).sum())
