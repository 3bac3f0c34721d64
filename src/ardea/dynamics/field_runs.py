"""Runs of a model of fields: from what users give, starts, known fields and boundaries, to a solver and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from ardea.core.problem import Array
from ardea.dynamics.field_simulation import Given, SpectralEquation, checked_periods, fields_in, simulate_fields
from ardea.dynamics.field_walls import WalledEquation, walls_of
from ardea.dynamics.fields import Fields
from ardea.dynamics.series import SAME_TIME
from ardea.dynamics.simulation import BLOW_UP, checked_times
from ardea.dynamics.terms import FieldTerm

if TYPE_CHECKING:
    from ardea.dynamics.models import FieldModel

# Conventions: what differs by less than this share is equal, and how a field goes on across the seam is seen in
# differences of this order.
SAME, SEAM = 1e-9, 6
# Conventions: smoothed samples at both ends are the same if they differ by at most so many times the noise, of which
# each has no more than a sample has, by at most this share of their steps to their neighbours, and if these steps go
# on: they differ by less than themselves.
NOISE_OF_ENDS, STEP_OF_ENDS, BEND_OF_ENDS = 2.0, 0.3, 1.0


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
    asked: dict[str, Any] = {
        "solved": solved,
        "given": _given(model, u, times, coefficients, terms),
        "order": model.order,
    }
    if boundary is None:
        run = _periodic(model, terms, coefficients, start, times, limit, asked)
    elif len(grid) > 1:
        raise NotImplementedError("simulate() knows walls in one space dimension only: leave boundary out.")
    else:
        equation = WalledEquation(terms, coefficients, model.space[0], **asked)
        walls = walls_of(boundary, times, equation.thickness, len(solved))
        run = equation.simulate(start, times, walls, limit=limit)
    run = np.moveaxis(run, (0, 1), (-2, -1))
    return run[..., 0] if n == 1 else run


def _periodic(
    model: FieldModel,
    terms: Sequence[FieldTerm],
    coefficients: Array,
    start: Array,
    times: Array,
    limit: Array,
    asked: dict[str, Any],
) -> Array:
    """Return a run of periodic fields; where the last point of an axis repeats the first, it counts once."""
    twice = ends_twice(start)
    once = tuple(slice(n - again) for n, again in zip(start.shape[1:], twice, strict=True))
    space = [points[own] for points, own in zip(model.space, once, strict=True)]
    first = start[:, *once]
    lengths = checked_periods(space, first, model.axes)
    asked["given"] = {field: partial(_part, curve, once) for field, curve in asked["given"].items()}
    equation = SpectralEquation(terms, coefficients, first.shape[1:], lengths, **asked)
    run = simulate_fields(equation, first, times, limit=limit)
    return np.pad(run, [(0, 0), (0, 0), *((0, int(again)) for again in twice)], mode="wrap")


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
    start is not periodic.
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
    for axis in np.flatnonzero(samples_end_twice(data)):
        ends = np.moveaxis(start, axis, 0)
        ends[0] = ends[-1] = (ends[0] + ends[-1]) / 2
    others = {name: fields[..., i] for i, name in enumerate(model.fields) if name not in model.solved}
    known = {name: values for name, values in others.items() if u is None} or u
    if boundary is None and len(model.space) == 1:
        try:
            checked_periods(model.space, np.moveaxis(start, -1, 0), model.axes)
        except ValueError:
            ends = fields[..., solved] if len(solved) > 1 else fields[..., solved[0]]
            boundary = ends, ends
    return start if start.shape[-1] > 1 else start[..., 0], known, boundary


def _given(model: FieldModel, u: Any, t: Array, coefficients: Array, terms: Sequence[FieldTerm]) -> Given:
    """Return fields without an equation as functions of time, from values on the grid, at all times or at each."""
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
    given = dict[int, Callable[[float], Array]]()
    for name in needed:
        array = np.asarray(values[name], dtype=float)
        if array.shape not in (grid, (*grid, len(t))):
            raise ValueError(
                f"{name} must have the shape {grid}, or {(*grid, len(t))} with the times, got {array.shape}."
            )
        moving = array.shape != grid and len(t) > 1
        curve = CubicSpline(t, array, axis=-1) if moving else partial(_always, array.reshape(grid))
        given[model.fields.index(name)] = curve
    return given


def _part(curve: Callable[[float], Array], part: tuple[slice, ...], t: float) -> Array:
    return curve(t)[part]


def _always(values: Array, _: float) -> Array:
    return values
