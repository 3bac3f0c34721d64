"""Weighted lasso (Alg. 1, line 4), solved exactly by a warm-started active set.

Objective: ½‖y − Θξ‖² + Σ_j λ_j|ξ_j| + ½Σ_j D_jξ_j² − Σ_j h_jξ_j, with λ_j = η_j/2 = σ²√c_j of the paper. The ridge D
and the shift h are zero there; they carry the curvature of a convex prior, below.

Steps, from any sign pattern:

1. minimise on the face of the signed active set (a linear system);
2. if a coefficient would change sign on the way, go to the first sign change, drop that column, repeat 1;
3. add columns with |correlation| > λ; stop when there are none.

The objective falls at every step, so no face returns and the number of steps is finite.

With a convex prior f on γ the step is (Alg. 3, line 5)

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

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ardea.core.problem import EPS, TINY, Array, Index, Problem

# A face is singular when a pivot of its unit-diagonal Gram matrix falls below this.
SINGULAR_PIVOT = 1e-7
RELATIVE_SLACK = 1e-10
# Share of the way from Newton's ridge to that of the tangent in ξ².
TRUST = (0.0, 0.01, 0.1, 1.0)
# Proximal Newton steps; a handful is the rule.
MAX_STEPS = 100


def weighted_lasso(
    problem: Problem, weights: Array, start: Array | None = None, *, ridge: Any = 0.0, shift: Any = 0.0
) -> Array:
    """Return ξ (d,) that minimises ½‖y − Θξ‖² + Σ weights·|ξ| (+ ½ ridge·ξ² − shift·ξ).

    A weight may be zero (the coefficient is then free) or infinite (it stays zero); a zero column stays at zero;
    of several equal columns one is used.
    """
    search = _ActiveSet(problem, weights, ridge, shift)
    if start is not None:
        index = np.flatnonzero((start != 0) & search.usable)
        search.add(index, start[index], start[index])
    best_objective, single = np.inf, False
    limit = 20 * (min(problem.columns.shape) + 10)
    while search.n_faces < limit:
        search.minimise_on_face()
        correlation = search.correlations()
        violators = search.violators(correlation)
        if violators.size == 0:
            break
        objective = search.objective(correlation)
        # Several columns enter at once until that no longer pays; then one at a time, which cannot cycle.
        if objective >= best_objective:
            if single:
                break
            single = True
        best_objective = objective
        room = problem.columns.shape[0] - search.index.size
        batch = 1 if single else max(1, min(room, max(8, search.index.size // 2)))
        newcomers = violators[:batch]
        search.add(newcomers, correlation[newcomers], np.zeros(newcomers.size))
    coefficients = np.zeros(problem.n_columns)
    coefficients[search.index] = search.values
    return coefficients


class _ActiveSet:
    """The signed active set: columns `index`, their signs (0 where the weight is 0) and values."""

    def __init__(self, problem: Problem, weights: Array, ridge: Any, shift: Any) -> None:
        self.problem = problem
        self.weights = weights
        self.ridge, self.shift = (np.broadcast_to(part, problem.n_columns) for part in (ridge, shift))
        self.linear = problem.correlations + self.shift
        self.usable = np.isfinite(weights) & (problem.square_norms > 0)
        self.rounding = 8 * EPS * np.sqrt(problem.square_norms * problem.total)
        self.index: Index = np.empty(0, dtype=np.intp)
        self.signs = np.empty(0)
        self.values = np.empty(0)
        self.entered: Index = self.index
        self.n_faces = 0

    def add(self, index: Index, directions: Array, values: Array) -> None:
        """Put columns into the set at some values, signed as some directions."""
        self.index = np.concatenate([self.index, index])
        self.signs = np.concatenate([self.signs, np.where(self.weights[index] > 0, np.sign(directions), 0.0)])
        self.values = np.concatenate([self.values, values])
        self.entered = index

    def drop(self, positions: NDArray[np.integer[Any]]) -> None:
        """Take columns out of the set."""
        keep = np.ones(self.index.size, dtype=bool)
        keep[positions] = False
        self.index, self.signs, self.values = self.index[keep], self.signs[keep], self.values[keep]

    def minimise_on_face(self) -> None:
        """Minimise over the face, dropping columns whose sign would change (steps 1 and 2)."""
        while self.index.size:
            self.n_faces += 1
            goal = self._face_minimiser()
            if goal is None:
                self._leave_singular_face()
                continue
            wrong = (self.signs != 0) & (goal * self.signs <= 0)
            if not wrong.any():
                self.values = goal
                return
            stuck = wrong & (self.values == 0)
            if stuck.any():
                self._drop_stuck(stuck, goal)
                continue
            positions = np.flatnonzero(wrong)
            reach = self.values[positions] / (self.values[positions] - goal[positions])
            first = reach.min()
            self.values = self.values + first * (goal - self.values)
            self.drop(positions[reach <= first * (1 + EPS)])

    def _drop_stuck(self, stuck: Array, goal: Array) -> None:
        """Drop newcomers that want to leave against their sign, but never the last newcomer.

        A single newcomer always moves with its sign, so the one that moved least wrongly may stay.
        """
        positions = np.flatnonzero(stuck)
        newcomers = np.isin(self.index, self.entered) & (self.values == 0)
        if positions.size > 1 and positions.size == newcomers.sum():
            wrongness = goal[positions] * self.signs[positions]
            positions = np.delete(positions, int(np.argmax(wrongness)))
        self.drop(positions)

    def _face_minimiser(self) -> Array | None:
        """Solve (G + D)ξ = Θᵀy + h − λs on the face, refined once; None where the face is singular."""
        gram, scale = self._scaled_gram()
        triangle, info = linalg.lapack.dpotrf(gram, lower=1)
        if info != 0 or triangle.diagonal().min() < SINGULAR_PIVOT:
            return None
        solution = np.zeros(self.index.size)
        for _ in range(2):
            gap = self._face_gradient(solution)
            solution += linalg.lapack.dpotrs(triangle, gap / scale, lower=1)[0] / scale
        return solution

    def _scaled_gram(self) -> tuple[Array, Array]:
        """Return G + D on the face, scaled to unit diagonal, and its scale."""
        gram = self.problem.active.gram(self.index)
        gram.flat[:: self.index.size + 1] += self.ridge[self.index]
        scale = np.sqrt(gram.diagonal())
        return gram / np.outer(scale, scale), scale

    def _face_gradient(self, values: Array) -> Array:
        """Return Θᵀ(y − Θξ) + h − Dξ − λs on the face."""
        vectors = self.problem.active.vectors(self.index)
        gradient: Array = vectors.T @ (self.problem.target - vectors @ values)
        gradient += self.shift[self.index] - self.ridge[self.index] * values
        return gradient - self._penalty()

    def _penalty(self) -> Array:
        return np.where(self.signs == 0, 0.0, self.weights[self.index]) * self.signs

    def _leave_singular_face(self) -> None:
        """Move along a null direction of the face, downhill, to the first sign change, and drop that column."""
        gram, scale = self._scaled_gram()
        _, vectors = linalg.eigh(gram, subset_by_index=[0, 0], check_finite=False)
        direction = vectors[:, 0] / scale
        if direction @ self._face_gradient(self.values) < 0:
            direction = -direction
        shrinking = (self.signs != 0) & (direction * self.signs < 0)
        if not shrinking.any():
            direction, shrinking = -direction, (self.signs != 0) & (direction * self.signs > 0)
        if not shrinking.any():
            self.drop(np.array([self.index.size - 1]))
            return
        positions = np.flatnonzero(shrinking)
        reach = -self.values[positions] / direction[positions]
        first = int(np.argmin(reach))
        self.values = self.values + reach[first] * direction
        self.drop(positions[[first]])

    def correlations(self) -> Array:
        """Return Θᵀ(y − Θξ) + h − Dξ for every column."""
        if self.index.size == 0:
            return self.linear
        vectors = self.problem.active.vectors(self.index)
        correlation = self.problem.columns.correlate(self.problem.target - vectors @ self.values) + self.shift
        correlation[self.index] -= self.ridge[self.index] * self.values
        return correlation

    def violators(self, correlation: Array) -> Index:
        """Return the columns outside the set with |correlation| > λ, worst first."""
        size = np.abs(correlation)
        beyond = self.usable & (size > self.weights * (1 + RELATIVE_SLACK) + self.rounding)
        beyond[self.index] = False
        index = np.flatnonzero(beyond)
        # |correlation|/λ does not depend on the scale of the column.
        ratio = size[index] / (self.weights[index] + self.rounding[index] + TINY)
        return index[np.argsort(-ratio, kind="stable")]

    def objective(self, correlation: Array) -> float:
        """Return the objective less ½‖y‖²: −½ξᵀ(Θᵀy + h + correlation) + Σλ|ξ|."""
        values, index = self.values, self.index
        fit = -0.5 * values @ (self.linear[index] + correlation[index])
        return float(fit + (self._penalty() * values).sum())


def penalised_step(problem: Problem, c: Array, noise: float, convex: Any, start: Array) -> Array:
    """Return ξ that minimises ½‖y − Θξ‖² + (σ²/2) Σ h_j(ξ_j); `convex` is an `ardea.priors.Convex`."""
    zero_slope = np.zeros_like(c)
    at_zero = np.broadcast_to(np.asarray(convex.bounds[0], dtype=float), c.shape) == 0
    with np.errstate(divide="ignore"):
        zero_slope[at_zero] = 2 * np.sqrt(np.maximum(c + convex.slope(np.zeros_like(c)), 0.0))[at_zero]
    xi = start
    objective = _objective(problem, xi, c, noise, convex)
    for _ in range(MAX_STEPS):
        size = np.abs(xi)
        step = 1e-4 * size + 1e-8 * np.sqrt(problem.total)
        remainder = np.maximum(_penalty_slope(size, c, convex, zero_slope) - zero_slope, 0.0)
        beyond = _penalty_slope(size + step, c, convex, zero_slope) - zero_slope
        curvature = np.maximum(beyond - remainder, 0.0) / step
        for trust in TRUST:
            ridge = noise / 2 * (curvature + trust * np.maximum(remainder / np.maximum(size, step) - curvature, 0.0))
            shift = ridge * xi - noise / 2 * remainder * np.sign(xi)
            candidate = weighted_lasso(problem, noise / 2 * zero_slope, xi, ridge=ridge, shift=shift)
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


def _penalty_slope(size: Array, c: Array, convex: Any, zero_slope: Array) -> Array:
    gamma = convex.minimiser(size, c)
    slope = zero_slope.copy()
    live = gamma > 0
    slope[live] = 2 * size[live] / gamma[live]
    return slope


def _objective(problem: Problem, xi: Array, c: Array, noise: float, convex: Any) -> float:
    index = np.flatnonzero(xi)
    residual = problem.target - problem.active.vectors(index) @ xi[index]
    gamma = convex.minimiser(np.abs(xi), c)
    live = gamma > 0
    penalty = c[live] * gamma[live] + xi[live] ** 2 / gamma[live]
    return 0.5 * float(residual @ residual) + noise / 2 * float(penalty.sum() + convex.value(gamma).sum())
