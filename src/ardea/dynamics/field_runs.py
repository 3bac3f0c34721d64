"""Runs of a model of fields: from what users give, starts, known fields and boundaries, to a solver and back.

Periodic fields are solved by `field_simulation`, those between two walls, in one space dimension, here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from ardea.core.problem import Array
from ardea.dynamics.differences import difference_matrix
from ardea.dynamics.field_simulation import (
    STOPS,
    FieldFlow,
    SpectralEquation,
    SplitEquation,
    checked_periods,
    fields_in,
    simulate_fields,
    summed,
)
from ardea.dynamics.field_terms import Jets
from ardea.dynamics.fields import Fields
from ardea.dynamics.series import SAME_TIME
from ardea.dynamics.simulation import BLOW_UP, checked_start, checked_times, warn_stopped
from ardea.dynamics.terms import FieldTerm, Jet, Orders

if TYPE_CHECKING:
    from ardea.dynamics.models import FieldModel

# Order of one-sided differences; central ones are of one order more.
ORDER = 3
# Conventions: what differs by less than this share is equal, and how a field goes on across the seam is seen in
# differences of this order.
SAME, SEAM = 1e-9, 6
# Conventions: smoothed samples at both ends are the same if they differ by at most so many times the noise, of which
# each has no more than a sample has, by at most this share of their steps to their neighbours, and if these steps go
# on: they differ by less than themselves.
NOISE_OF_ENDS, STEP_OF_ENDS, BEND_OF_ENDS = 2.0, 0.3, 1.0
# A convention: what bends so many times as much across the seam as anywhere else has walls there.
BREAK = 3.0


def run_fields(model: FieldModel, coefficients: Array, x0: ArrayLike, t: Any, u: Any, boundary: Any) -> Array:
    """Return fields of a model with some coefficients, shape (*grid, times), with a last axis if several."""
    grid, n = tuple(len(points) for points in model.space), len(model.states)
    start = np.asarray(x0, dtype=float)
    expected = grid if n == 1 else (*grid, n)
    if start.shape != expected:
        last = f" and a last axis of {', '.join(model.states)}" * (n > 1)
        raise ValueError(f"The start must have the shape of the grid{last}, {expected}, got {start.shape}.")
    start = start[None] if n == 1 else np.moveaxis(start, -1, 0)
    times, solved = checked_times(t), [model.fields.index(name) for name in model.solved]
    terms = model.library.terms(len(model.fields), len(grid), model.n_known)
    limit = np.concatenate([BLOW_UP * model.reach[solved], np.full(n - len(solved), np.inf)])
    # Where the last point of an axis of periodic fields repeats the first, it counts once.
    twice = ends_twice(start) if boundary is None else [False] * len(grid)
    once = tuple(slice(size - again) for size, again in zip(grid, twice, strict=True))
    known = _given(model, u, times, coefficients, terms)
    given = {field: _over_time(values, times, once) for field, values in known.items()}
    asked: dict[str, Any] = {"solved": solved, "given": given, "order": model.order}
    if boundary is None:
        first, space = start[:, *once], [points[own] for points, own in zip(model.space, once, strict=True)]
        lengths = checked_periods(space, first, model.axes)
        equation = SpectralEquation(terms, coefficients, first.shape[1:], lengths, **asked)
        run = simulate_fields(equation, first, times, limit=limit)
        run = np.pad(run, [(0, 0), (0, 0), *((0, int(again)) for again in twice)], mode="wrap")
    elif len(grid) > 1:
        raise NotImplementedError("simulate() knows walls in one space dimension only: leave boundary out.")
    else:
        walled = WalledEquation(terms, coefficients, model.space[0], **asked)
        run = walled.simulate(start, times, walls_of(boundary, times, walled.thickness, len(solved)), limit=limit)
    run = np.moveaxis(run, (0, 1), (-2, -1))
    return run[..., 0] if n == 1 else run


def ends_twice(start: Array) -> list[bool]:
    """Return for every axis of space whether its last point repeats the first, a period later.

    The fields (fields, *grid) are then equal there and not next to it. A symmetric field is that as well: there the one
    that goes on more smoothly is taken.

    Examples
    --------
    >>> x = 2 * np.pi * np.arange(21) / 20
    >>> [ends_twice(np.sin(one + 1)[None]) for one in (x, x[:-1])]
    [[True], [False]]
    """
    out = []
    for axis in range(1, start.ndim):
        lines = np.moveaxis(start, axis, 0)
        inner = min(float(np.abs(lines[i + 1] - lines[i]).max()) for i in (0, -2))
        equal = float(np.abs(lines[0] - lines[-1]).max()) < SAME * inner
        symmetric = float(np.abs(lines - lines[::-1]).max()) < SAME * float(np.ptp(lines))
        bends = [np.diff([*lines[-SEAM - n : len(lines) - n], *lines[:SEAM]], SEAM, axis=0) for n in (0, 1)]
        out.append(equal and not (symmetric and np.linalg.norm(bends[0]) <= np.linalg.norm(bends[1])))
    return out


def samples_end_twice(data: Fields) -> list[bool]:
    """Return for every axis of space whether samples at its last point are those at the first again, up to noise.

    Walls with one value at both ends are not meant: there steps to the neighbours change their sign.
    """
    out, values, noise = [], data.smoothed()[..., : data.n_measured], data.noise[: data.n_measured]

    def size(differences: Array) -> Array:
        return np.asarray(np.sqrt(np.mean(differences.reshape(-1, data.n_measured) ** 2, axis=0)))

    for axis in range(len(data.space)):
        first, second, *_, before, last = np.moveaxis(values, axis, 0)
        step = np.minimum(size(second - first), size(last - before))
        seam, bend = size(last - first), size(second - first - (last - before))
        same = (seam < NOISE_OF_ENDS * noise) & (seam < STEP_OF_ENDS * step) & (bend < BEND_OF_ENDS * step)
        out.append(bool(np.all(same)))
    return out


def from_data(model: FieldModel, data: Fields, t: Any, u: Any, boundary: Any) -> tuple[Array, Any, Any]:
    """Return what a run needs as the smoothed data have it: a start, fields without an equation, values at both ends.

    What is given stays. Where samples of an axis end twice, so does the start. Values at the ends are taken where the
    fields are not periodic: they jump from the last point to the first, or break off there.
    """
    times, near = checked_times(t), SAME_TIME * (data.t[1] - data.t[0])
    if times[0] < data.t[0] - near or times[-1] > data.t[-1] + near:
        raise ValueError(
            f"The data are from {data.t[0]:g} to {data.t[-1]:g}: give x0, the fields at t[0], for other times."
        )
    curve = CubicSpline(data.t, data.smoothed(), axis=-2)
    fields = curve(times)
    solved = [model.fields.index(name) for name in model.solved]
    start = np.concatenate([curve(times[0], order)[..., solved] for order in range(model.order)], axis=-1)
    twice = samples_end_twice(data)
    for axis in np.flatnonzero(twice):
        ends = np.moveaxis(start, axis, 0)
        ends[0] = ends[-1] = (ends[0] + ends[-1]) / 2
    others = {name: fields[..., i] for i, name in enumerate(model.fields) if name not in model.solved}
    known = {name: values for name, values in others.items() if u is None} or u
    if boundary is None and len(model.space) == 1:
        walled = not twice[0] and _breaks(fields[..., solved], data.noise[solved])
        try:
            checked_periods(model.space, np.moveaxis(start, -1, 0), model.axes)
        except ValueError:
            walled = True
        if walled:
            ends = fields[..., solved] if len(solved) > 1 else fields[..., solved[0]]
            boundary = ends, ends
    return start if start.shape[-1] > 1 else start[..., 0], known, boundary


def _breaks(fields: Array, noise: Array) -> bool:
    """Whether fields (points, times, fields) bend from the last point to the first as nowhere in between, nor noise."""
    ends = np.concatenate([fields[-2:], fields[:2]])
    seam, inside = (np.sqrt(np.mean(np.diff(one, 2, axis=0) ** 2, axis=1)) for one in (ends, fields))
    return bool(np.any(seam.max(axis=0) > np.maximum(BREAK * inside.max(axis=0), NOISE_OF_ENDS * noise)))


def _given(model: FieldModel, u: Any, t: Array, coefficients: Array, terms: Sequence[FieldTerm]) -> dict[int, Array]:
    """Return fields without an equation on the grid, or on the grid and at all times."""
    used = {field for term, row in zip(terms, coefficients.T, strict=True) if np.any(row) for field in fields_in(term)}
    needed = [name for i, name in enumerate(model.fields) if i in used and name not in model.solved]
    values, grid = {} if u is None else u, tuple(len(points) for points in model.space)
    if not isinstance(values, Mapping) or not set(needed) <= set(values) <= set(model.fields) - set(model.solved):
        wanted = ", ".join(f"{name!r}: …" for name in needed)
        raise ValueError(
            f"Of fields without an equation, u must be {{{wanted}}}: values on the grid, or on the grid and at t."
            if needed
            else "All fields in the equations are solved for: leave u out."
        )
    given = {}
    for name in needed:
        given[model.fields.index(name)] = array = np.asarray(values[name], dtype=float)
        if array.shape not in (grid, (*grid, len(t))):
            raise ValueError(
                f"{name} must have the shape {grid}, or {(*grid, len(t))} with the times, got {array.shape}."
            )
    return given


def _over_time(values: Array, t: Array, part: tuple[slice, ...]) -> Callable[[float], Array]:
    """Return a part of a field on the grid, or on the grid and at all times, as a function of time."""
    if values.ndim > len(part) and len(t) > 1:
        return CubicSpline(t, values[part], axis=-1)
    still = values.reshape(values.shape[: len(part)])[part]
    return lambda _: still


# Walls


class WalledEquation(FieldFlow):
    """Equations of fields on points x, with values given at both ends, integrated by the method of lines.

    Derivatives are differences of fourth order, one-sided and of third order near the walls. With these, and values
    given at so many points of each wall as half the highest derivative, rounded up, u_x, u_xx, ±u_xxx and −u_xxxx have
    no growing modes (differences of sixth order have). Time is integrated by Radau's method, which neither diffusion
    nor dispersion makes unstable, with a banded Jacobian.

    `walls` returns the values of the fields solved for at a time, shape (2, thickness, fields): the outer points on the
    left, then on the right.

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

    def __init__(self, terms: Sequence[FieldTerm], coefficients: ArrayLike, x: Array, **fields: Any) -> None:
        super().__init__(terms, coefficients, 1, **fields)
        self.x = x
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
