"""Trajectories as given by the user: checked, cut into pieces, and searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ardea.dynamics.libraries import Library
from ardea.dynamics.pieces import (
    FEWEST_ROWS,
    Differentiation,
    Piece,
    derivative_piece,
    map_piece,
    noise_levels,
    stretches,
    weak_piece,
    window_radius,
)
from ardea.dynamics.search import Effort, Found, GivenRows, Propose, find_alone, find_together
from ardea.dynamics.times import as_numbers
from ardea.names import default_names

Array = NDArray[np.float64]

FEWEST_EQUATION_ROWS = 12
# Radii of the windows relative to the one that the spectrum gives.
RELATIVE_RADII = (1.0, 0.5)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One series: times, states, inputs, and derivatives where they were given."""

    t: Array
    x: Array
    inputs: Array
    x_dot: Array | None


@dataclass(frozen=True)
class RowScheme:
    """How rows are made of trajectories."""

    form: str
    discrete_time: bool
    differentiation: Differentiation
    order: int

    def pieces(self, trajectories: Sequence[Trajectory]) -> list[Piece]:
        """Cut the trajectories and build the rows of every piece."""
        parts = [part for one in trajectories for part in stretches(one.t, one.x, one.inputs)]
        if self.discrete_time:
            built = [map_piece(*part) for part in parts]
        elif self.form == "derivative":
            built = [derivative_piece(*part, self.differentiation, self.order) for part in parts]
        else:
            long_enough = [part for part in parts if part[0].size >= FEWEST_ROWS]
            if not long_enough:
                longest = max((part[0].size for part in parts), default=0)
                raise ValueError(
                    f"The longest stretch without a gap has {longest} rows; a window of the weak form needs at least "
                    f"{FEWEST_ROWS}. Take more samples, or form='derivative'."
                )
            radius = window_radius([(part[0], part[1]) for part in long_enough])
            built = [weak_piece(*part, [radius * share for share in RELATIVE_RADII]) for part in long_enough]
        return [piece for piece in built if piece is not None]


@dataclass(frozen=True, eq=False)
class Searched:
    """What the search found, with the unit of every equation's noise and how much each state moves in that unit."""

    found: list[Found]
    noise_unit: Array
    excitation: Array


def search_states(
    trajectories: Sequence[Trajectory], library: Library, scheme: RowScheme, propose: Propose, effort: Effort
) -> Searched:
    """Find every equation: alone, then all together where that is affordable."""
    n_states = trajectories[0].x.shape[1]
    if trajectories[0].x_dot is not None:
        found = find_alone(_given_derivatives(trajectories, library), propose, effort)
        return Searched(found, np.ones(n_states), np.full(n_states, np.inf))
    pieces = scheme.pieces(trajectories)
    rows = sum(piece.n_rows for piece in pieces)
    if rows < FEWEST_EQUATION_ROWS:
        raise ValueError(
            f"The data give {rows} independent rows, too few to find an equation (at least {FEWEST_EQUATION_ROWS}): "
            "take more samples or longer series."
        )
    spread = np.sqrt(np.mean([piece.x.var(axis=0) for piece in pieces], axis=0))
    # Differences say nothing of the noise of a map.
    noise = np.where(spread > 0, spread, 1.0) if scheme.discrete_time else noise_levels(pieces)
    excitation = np.full(n_states, np.inf) if scheme.discrete_time else spread / noise
    return Searched(find_together(pieces, library, noise, propose, effort), noise, excitation)


def _given_derivatives(trajectories: Sequence[Trajectory], library: Library) -> list[GivenRows]:
    states = np.vstack([np.hstack([one.x, one.inputs]) for one in trajectories])
    slopes = np.vstack([one.x_dot for one in trajectories if one.x_dot is not None])
    sound = np.all(np.isfinite(states), axis=1) & np.all(np.isfinite(slopes), axis=1)
    theta = library.evaluate(states[sound])
    return [GivenRows(theta, slope) for slope in slopes[sound].T]


def checked_trajectories(
    x: Any, t: Any, x_dot: Any, u: Any, feature_names: Sequence[str] | None, time_unit: str | None = None
) -> tuple[list[Trajectory], list[str], str | None]:
    """Return the data as checked trajectories, names of states and inputs, and the unit of time where it is known."""
    if t is None:
        raise ValueError(
            "t is needed: the times of the rows, or the step between them (t=x.index where a frame has them there)."
        )
    several = isinstance(x, list | tuple)
    states = list(x) if several else [x]
    if not states:
        raise ValueError("x is an empty list: give at least one trajectory.")
    frame_names = [str(name) for name in states[0].columns] if hasattr(states[0], "columns") else None
    arrays = [_rows(one, "x") for one in states]
    derivatives = [None] * len(arrays) if x_dot is None else [_rows(one, "x_dot") for one in _listed(x_dot, several)]
    inputs = (
        [np.empty((len(one), 0)) for one in arrays] if u is None else [_rows(one, "u") for one in _listed(u, several)]
    )
    one_step = np.isscalar(t) or isinstance(t, timedelta)
    times = _listed(t, several) if several and not one_step else [t] * len(arrays)
    for name, given in (("t", times), ("x_dot", derivatives), ("u", inputs)):
        if len(given) != len(arrays):
            raise ValueError(f"{name} has {len(given)} trajectories, x has {len(arrays)}.")
    times, unit = as_numbers(times, time_unit)
    trajectories = []
    for number, (states_of_one, time, slope, control) in enumerate(
        zip(arrays, times, derivatives, inputs, strict=True)
    ):
        where = f" of trajectory {number}" if several else ""
        trajectories.append(_checked(states_of_one, time, slope, control, where))
    widths = {(one.x.shape[1], one.inputs.shape[1]) for one in trajectories}
    if len(widths) > 1:
        raise ValueError("All trajectories must have the same states and inputs.")
    n_states, n_inputs = widths.pop()
    return trajectories, _names(feature_names, frame_names, n_states, n_inputs), unit


def _listed(value: Any, several: bool) -> list[Any]:
    return list(value) if several else [value]


def _rows(values: ArrayLike, name: str) -> Array:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must have shape (times, states), got {array.shape}; for fields give space=(x₁, …) as well."
        )
    return array


def _checked(x: Array, t: Any, x_dot: Array | None, inputs: Array, where: str) -> Trajectory:
    m = len(x)
    if np.ndim(t) == 0:
        step = _number(t, where)
        if not step > 0 or not np.isfinite(step):
            raise ValueError(f"t{where} as a step must be a positive number, got {t!r}.")
        times = np.asarray(step * np.arange(m), dtype=np.float64)
    else:
        times = _number(t, where).ravel()
    if times.size != m:
        raise ValueError(f"t{where} has {times.size} entries, x has {m} rows.")
    if not np.all(np.diff(times[np.isfinite(times)]) > 0):
        raise ValueError(f"t{where} must ascend strictly: sort the rows and drop repeated times.")
    if np.any(np.isinf(x)):
        raise ValueError(f"x{where} holds infinities: remove those rows, or set them to NaN to leave a gap.")
    if not np.any(np.all(np.isfinite(x), axis=1)):
        raise ValueError(f"x{where} has no row without NaN.")
    for name, other in (("x_dot", x_dot), ("u", inputs)):
        if other is not None and len(other) != m:
            raise ValueError(f"{name}{where} has {len(other)} rows, x has {m}.")
    if x_dot is not None and x_dot.shape != x.shape:
        raise ValueError(f"x_dot{where} has shape {x_dot.shape}, x has {x.shape}.")
    return Trajectory(times, x, inputs, x_dot)


def _number(t: Any, where: str) -> Any:
    try:
        return np.asarray(t, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"t{where} must be numbers or dates (datetime64, such as pandas.to_datetime makes of text): {error}"
        ) from error


def _names(given: Sequence[str] | None, frame: list[str] | None, n_states: int, n_inputs: int) -> list[str]:
    inputs = [f"u{i}" for i in range(n_inputs)]
    if given is None:
        return (frame or list(default_names(n_states))) + inputs
    names = [str(name) for name in given]
    if len(names) == n_states:
        names += inputs
    if len(names) != n_states + n_inputs or len(set(names)) != len(names):
        raise ValueError(
            f"feature_names must be {n_states} different names (or {n_states + n_inputs} with the inputs), got {names}."
        )
    return names
