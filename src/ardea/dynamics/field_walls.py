"""Simulation of fields between two walls, in one space dimension, by the method of lines.

Derivatives are differences of fourth order, one-sided and of third order near the walls. With these, and values given
at so many points of each wall as half the highest derivative, rounded up, u_x, u_xx, ±u_xxx and −u_xxxx have no growing
modes (differences of sixth order have). Time is integrated by Radau's method,
which neither diffusion nor dispersion makes unstable, with a banded Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from ardea.core.problem import Array
from ardea.dynamics.differences import difference_matrix
from ardea.dynamics.field_simulation import STOPS, Given, SplitEquation, summed
from ardea.dynamics.field_terms import Jets
from ardea.dynamics.simulation import BLOW_UP, checked_start, checked_times, warn_stopped
from ardea.dynamics.terms import FieldTerm, Jet, Orders

# Order of one-sided differences; central ones are of one order more.
ORDER = 3


class WalledEquation:
    """∂_t u_g = Σ ξ_gi θ_i, or with `order` 2 ∂_t² u_g, on points x, with values given at both ends.

    `solved` are the fields with equations, `given` others as functions of time. `walls` returns the values of the
    fields solved for at a time, shape (2, thickness, fields): the outer points on the left, then on the right.

    Examples
    --------
    A rod between walls of temperatures 0 and 1 ends as a straight line:

    >>> from ardea.dynamics import FieldTerms
    >>> library, x, t = FieldTerms(0, 2), np.linspace(0, 1, 21), np.array([0.0, 4.0])
    >>> heat = [float(name == "u_xx") for name in library.names()]
    >>> equation = WalledEquation(library.terms(), heat, x)
    >>> walls = walls_of((0.0, 1.0), t, equation.thickness, 1)
    >>> u = equation.simulate(np.sin([np.pi * x]), t, walls, limit=10.0)
    >>> bool(np.max(np.abs(u[1, 0] - x)) < 1e-6)
    True
    """

    def __init__(
        self,
        terms: Sequence[FieldTerm],
        coefficients: ArrayLike,
        x: Array,
        *,
        solved: Sequence[int] = (0,),
        given: Given | None = None,
        order: int = 1,
    ) -> None:
        rows = np.asarray(coefficients, dtype=float).reshape(len(solved), -1)
        self._parts = [SplitEquation.of(terms, row, solved, 1) for row in rows]
        self._place, self._given = {field: place for place, field in enumerate(solved)}, dict(given or {})
        self.x, self.n, self.order = x, len(solved), order
        self._matrix = lru_cache(maxsize=None)(lambda q: difference_matrix(len(x), x, derivative=q, order=ORDER))
        self._highest = max([1, *(_highest(part) for part in self._parts)])
        self.thickness = (self._highest + 1) // 2

    def rates(self, fields: Array, t: float) -> Array:
        """Return what the equations say of fields of shape (fields, points)."""

        def derived(values: Array, orders: Orders) -> Array:
            return np.asarray(self._matrix(orders[0]) @ values if orders[0] else values)

        def jet_of(jet: Jet) -> Array:
            known = jet.field in self._given
            return self._given[jet.field](t) if known else derived(fields[self._place[jet.field]], jet.orders)

        jets, total = Jets(jet_of), np.zeros((self.n, len(self.x)))
        for row, part in enumerate(self._parts):
            for jet, value in part.linear.items():
                total[row] += value * jets(jet)
            for orders, products in (((0,), part.with_given), *part.products.items()):
                total[row] += derived(summed(products, jets, self.x.shape), orders)
        return total

    def simulate(
        self, start: ArrayLike, t: ArrayLike, walls: Callable[..., Array], *, limit: ArrayLike, rtol: float = 1e-8
    ) -> Array:
        """Return fields, then their rates where `order` is 2, of shape (n_reached, fields, points)."""
        times, bound = checked_times(t), np.broadcast_to(np.asarray(limit, dtype=float), self.order * self.n)
        first, inner = checked_start(start, bound[:, None]), slice(self.thickness, len(self.x) - self.thickness)
        span = float(times[0]), float(times[-1])
        size = np.abs(first).max(axis=1)
        size[: self.n] = np.maximum(size[: self.n], bound[: self.n] / BLOW_UP)
        size[self.n :] = np.maximum(size[self.n :], size[: self.n][: (self.order - 1) * self.n] / (span[1] - span[0]))

        def whole(state: Array, when: float) -> Array:
            fields = state.reshape(-1, self.order * self.n).T
            outer = np.concatenate([walls(when, q) for q in range(self.order)], axis=-1).transpose(0, 2, 1)
            return np.hstack([outer[0], fields, outer[1]])

        def flow(when: float, state: Array) -> Array:
            fields = whole(state, when)
            found = self.rates(fields[: self.n], when)
            return np.ravel((found if self.order == 1 else np.vstack([fields[self.n :], found]))[:, inner].T)

        def passed(_: float, state: Array) -> float:
            return float(np.max(np.abs(state.reshape(-1, self.order * self.n)) / bound)) - 1.0

        passed.terminal = True  # type: ignore[attr-defined]
        state = np.ravel(first[:, inner].T)
        band = min(self.order * self.n * 2 * (self._highest + ORDER), len(state) - 1)
        near = sparse.diags_array(np.ones(2 * band + 1), offsets=range(-band, band + 1), shape=(len(state), len(state)))
        atol = np.tile(rtol * size, len(state) // len(size))
        run = solve_ivp(flow, span, state, "Radau", times, events=passed, jac_sparsity=near, rtol=rtol, atol=atol)
        if len(run.t) < len(times):
            stop = run.t_events[0][0] if len(run.t_events[0]) else run.t[-1]
            warn_stopped(STOPS[len(run.t_events[0]) > 0].format(t=stop), len(run.t), len(times))
        return np.array([whole(one, when) for one, when in zip(run.y.T, run.t, strict=True)])


def _highest(part: SplitEquation) -> int:
    """Return the highest order of a derivative in an equation."""
    inside = [
        orders[0] + max((sum(jet.orders) for jet, _ in monomial.factors), default=0)
        for orders, products in (((0,), part.with_given), *part.products.items())
        for monomial in products
    ]
    return max([*(sum(jet.orders) for jet in part.linear), *inside], default=0)


def walls_of(boundary: Any, t: Array, thickness: int, n_fields: int) -> Callable[..., Array]:
    """Return values at both ends as a function of time and of the order of a time derivative.

    Each end is a number, or an array whose axes are, as far as there are any, (points,) times (, fields). Of more
    points than are needed, the outer ones are taken. Where more than one is, the axis of points must be there: one
    value at each end leaves the solution of an equation of third or fourth order open.
    """
    if not isinstance(boundary, list | tuple) or len(boundary) != 2:
        raise ValueError("boundary must be a pair, (left, right): values at both ends, numbers or arrays over t.")
    shape = (thickness, len(t)) if n_fields == 1 else (thickness, len(t), n_fields)
    outer, first, last = (slice(thickness), slice(-thickness, None)), f"u[:{thickness}]", f"u[-{thickness}:]"
    if thickness > 1 and any(np.ndim(one) < len(shape) for one in boundary):
        raise ValueError(
            f"One value at each end is too few for derivatives of these orders: give those at the outer {thickness} "
            f"points, arrays of shape {shape}, such as boundary=({first}, {last}) of fields u at the times t."
        )
    try:
        ends = [np.asarray(one, dtype=float) for one in boundary]
        ends = [one if one.ndim < len(shape) else one[part] for one, part in zip(ends, outer, strict=True)]
        both = np.array([np.broadcast_to(one, shape) for one in ends])
    except ValueError:
        sizes = " and ".join(str(np.shape(one)) for one in boundary)
        axes = "points and times" + " and fields" * (n_fields > 1)
        raise ValueError(
            f"Each end of boundary must be a number or fit the shape {shape}, {axes}: derivatives of these orders need "
            f"{thickness} points at each end. Got {sizes}."
        ) from None
    rows = np.moveaxis(both.reshape(2, thickness, len(t), n_fields), 2, 0)
    if not np.all(np.isfinite(rows)):
        raise ValueError("boundary must be finite.")
    curve = CubicSpline(t, rows) if np.any(rows != rows[0]) else None
    return lambda when, order=0: np.asarray(rows[0] * (order == 0) if curve is None else curve(when, order))
