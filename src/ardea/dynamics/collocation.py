"""Steps of the equations between neighbouring points in time, and their derivatives.

A flow x′ = f(x, u) with f = Fx + ξΘ(x, u) goes from x_a to x_b in a time h when r = 0 (Hermite–Simpson, of order h⁵):

    x_m = (x_a + x_b)/2 + h/8 (f_a − f_b),    r = x_b − x_a − h/6 (f_a + 4f_m + f_b)
    ∂r/∂x_a = −1 − h/6 (J_a + 2J_m + h/2 J_m J_a),    ∂r/∂x_b = 1 − h/6 (J_b + 2J_m − h/2 J_m J_b)
    ∂r/∂ξ_lj = −h/6 (θ_a + 4θ_m + θ_b)_j e_l − h²/12 (θ_a − θ_b)_j J_m e_l

It is implicit, so that stiff flows do not break it. For a map r = x_b − f(x_a).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ardea.core.problem import Array, Index
from ardea.dynamics.libraries import Library
from ardea.dynamics.nodes import Nodes


class RightSide:
    """f(x, u) = Fx + ξΘ(x, u) at many points, shape (n, points), and its derivative by x, shape (points, n, n)."""

    def __init__(self, library: Library, coefficients: Array, n_inputs: int = 0, fixed: Array | None = None) -> None:
        self.n, self.fixed = len(coefficients), fixed
        used = tuple(np.flatnonzero(np.any(coefficients != 0, axis=0)).tolist())
        self._terms, weights = library.compiled(self.n + n_inputs, used), coefficients[:, list(used)]
        self._weights = weights
        self._slopes, numbers = library.slopes(self.n + n_inputs, used)
        every = self.n + n_inputs
        by_state = (numbers @ weights.T).reshape(numbers.shape[0] // every, every, self.n)[:, : self.n]
        self._slope_weights = np.ascontiguousarray(by_state.transpose(2, 1, 0)).reshape(self.n**2, len(by_state))

    def values(self, columns: Array) -> Array:
        """Return f at states and inputs of shape (n + inputs, points)."""
        out = self._weights @ self._terms.values(columns)
        return np.asarray(out if self.fixed is None else out + self.fixed @ columns[: self.n])

    def jacobians(self, columns: Array) -> Array:
        """Return ∂f/∂x."""
        flat = self._slope_weights @ self._slopes.values(columns)
        out = flat.reshape(self.n, self.n, columns.shape[1]).transpose(2, 0, 1)
        return np.asarray(out if self.fixed is None else out + self.fixed)


@dataclass(frozen=True, eq=False)
class Steps:
    """All steps of states X, shape (points, n), along the nodes, linearised."""

    nodes: Nodes
    library: Library
    right: RightSide
    states: Array
    discrete_time: bool

    @cached_property
    def columns(self) -> Array:
        """States and inputs at the nodes, shape (n + inputs, points)."""
        return np.vstack([self.states.T, self.nodes.inputs.T])

    @cached_property
    def _values(self) -> Array:
        return self.right.values(self.columns)

    @cached_property
    def middles(self) -> Array:
        """States and inputs between the nodes."""
        x, f = self.states.T, self._values
        inner = (x[:, :-1] + x[:, 1:]) / 2 + self.nodes.steps / 8 * (f[:, :-1] - f[:, 1:])
        return np.vstack([inner, self.nodes.middle_inputs.T])

    @cached_property
    def residual(self) -> Array:
        """What every step leaves, r of shape (steps, n)."""
        x, f = self.states.T, self._values
        if self.discrete_time:
            return np.asarray((x[:, 1:] - f[:, :-1]).T)
        simpson = f[:, :-1] + 4 * self.right.values(self.middles) + f[:, 1:]
        return np.asarray((x[:, 1:] - x[:, :-1] - self.nodes.steps / 6 * simpson).T)

    @cached_property
    def middle_jacobians(self) -> Array:
        """J_m."""
        return self.right.jacobians(self.middles)

    @cached_property
    def derivatives(self) -> tuple[Array, Array]:
        """∂r/∂x_a and ∂r/∂x_b, shape (steps, n, n)."""
        one, J = np.eye(self.right.n), self.right.jacobians(self.columns)
        if self.discrete_time:
            return -J[:-1], np.broadcast_to(one, J[:-1].shape)
        h, J_m = self.nodes.steps[:, None, None], self.middle_jacobians
        before = -one - h / 6 * (J[:-1] + 2 * J_m + h / 2 * (J_m @ J[:-1]))
        return before, one - h / 6 * (J[1:] + 2 * J_m - h / 2 * (J_m @ J[1:]))

    def border(self, equations: Index, terms: Index) -> Array:
        """Return ∂r/∂ξ of some coefficients, shape (steps, n, coefficients)."""
        used, place = np.unique(terms, return_inverse=True)
        compiled, h = self.library.compiled(len(self.columns), tuple(used.tolist())), self.nodes.steps
        theta = compiled.values(self.columns)
        if self.discrete_time:
            out, own = np.zeros((len(h), self.right.n, len(terms))), -theta[:, :-1]
        else:
            out = (
                self.middle_jacobians[:, :, equations]
                * (-(h**2) / 12 * (theta[:, :-1] - theta[:, 1:]))[place].T[:, None]
            )
            own = -h / 6 * (theta[:, :-1] + 4 * compiled.values(self.middles) + theta[:, 1:])
        out[:, equations, np.arange(len(terms))] += own[place].T
        return out

    def truncation(self) -> Array:
        """Return r at the exact solution, of order h⁵: 16/15 of its difference to two steps of half the length.

        These meet at x_m, where the first leaves r_a = O(h⁴); with x_m such that it leaves nothing, the second leaves
        r_b + (1 + h/2 J_m) r_a.
        """
        if self.discrete_time:
            return np.zeros_like(self.residual)
        n, f, f_m, h = self.right.n, self._values, self.right.values(self.middles), self.nodes.steps
        a, m, b = self.columns[:, :-1], self.middles, self.columns[:, 1:]
        # Inputs on the parabola through their three values, states as in the middle.
        quarter_a, quarter_b = (3 * a + 6 * m - b) / 8, (3 * b + 6 * m - a) / 8
        quarter_a[:n] = (a[:n] + m[:n]) / 2 + h / 16 * (f[:, :-1] - f_m)
        quarter_b[:n] = (m[:n] + b[:n]) / 2 + h / 16 * (f_m - f[:, 1:])
        first = m[:n] - a[:n] - h / 12 * (f[:, :-1] + 4 * self.right.values(quarter_a) + f_m)
        second = b[:n] - m[:n] - h / 12 * (f_m + 4 * self.right.values(quarter_b) + f[:, 1:])
        carried = h / 2 * np.einsum("ikl,li->ki", self.middle_jacobians, first)
        return np.asarray(16 / 15 * (self.residual - (first + second + carried).T))
