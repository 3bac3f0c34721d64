"""Fields as given by the user: checked, named, and searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.dynamics.fields import SmoothedFields, WeakField, rivals
from ardea.dynamics.libraries import FieldTerms, default_axis_names, default_field_names
from ardea.dynamics.search import Effort, Found, Propose
from ardea.dynamics.states import Searched
from ardea.dynamics.tournament import Tournament

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FieldData:
    """Fields on a grid.

    Attributes
    ----------
    values : ndarray
        Shape (n_x, …, n_t), or with a last axis of fields.
    space : tuple of ndarray
        Coordinates of the space axes.
    t : ndarray
        Times.
    fields, axes : list of str
        Names of fields and of space axes.
    """

    values: Array
    space: tuple[Array, ...]
    t: Array
    fields: list[str]
    axes: list[str]

    @property
    def n_fields(self) -> int:
        """Number of fields."""
        return len(self.fields)

    @property
    def reach(self) -> Array:
        """Largest |u| of every field."""
        stacked = self.values.reshape(-1, self.n_fields)
        return np.maximum(np.abs(stacked).max(axis=0), np.finfo(float).tiny)

    @classmethod
    def checked(cls, x: Any, t: Any, space: Any, names: Sequence[str] | None) -> FieldData:
        """Return the data in one form; an xarray DataArray (space first, then time) brings coordinates and names."""
        if hasattr(x, "coords") and hasattr(x, "dims"):
            return cls._from_xarray(x, t, space, names)
        if space is None:
            raise ValueError("Fields need space=(x₁, …), the coordinates of the space axes.")
        coordinates = tuple(np.asarray(points, dtype=np.float64) for points in _listed(space))
        return cls._of(np.asarray(x, dtype=np.float64), t, coordinates, names, default_axis_names(len(coordinates)))

    @classmethod
    def _from_xarray(cls, x: Any, t: Any, space: Any, names: Sequence[str] | None) -> FieldData:
        *axes, time = [str(name) for name in x.dims]
        coordinates = tuple(np.asarray(x.coords[name], dtype=np.float64) for name in axes)
        coordinates = coordinates if space is None else tuple(np.asarray(points, dtype=np.float64) for points in space)
        times = np.asarray(x.coords[time], dtype=np.float64) if t is None else t
        own = [str(x.name)] if names is None and getattr(x, "name", None) else names
        return cls._of(np.asarray(x.values, dtype=np.float64), times, coordinates, own, axes)

    @classmethod
    def _of(
        cls, values: Array, t: Any, space: tuple[Array, ...], names: Sequence[str] | None, axes: list[str]
    ) -> FieldData:
        grid = tuple(points.size for points in space)
        if values.ndim not in (len(grid) + 1, len(grid) + 2) or values.shape[: len(grid)] != grid:
            raise ValueError(
                f"A field must have shape {(*grid, 'times')}: space axes first, then time, then an optional axis of "
                f"fields; got {values.shape}."
            )
        n_times = values.shape[len(grid)]
        given = np.asarray(t, dtype=np.float64)
        times = given * np.arange(n_times) if given.ndim == 0 else given.ravel()
        if times.size != n_times:
            raise ValueError(f"t has {times.size} entries, the field has {n_times} times.")
        if not np.all(np.isfinite(values)):
            raise ValueError("Fields must be finite on the whole grid: cut the domain, or fill the gaps.")
        n_fields = values.shape[-1] if values.ndim == len(grid) + 2 else 1
        fields = default_field_names(n_fields) if names is None else [str(name) for name in names]
        if len(fields) != n_fields:
            raise ValueError(f"feature_names must be {n_fields} names, got {fields}.")
        return cls(values, space, np.asarray(times, dtype=np.float64), fields, axes)


def search_fields(data: FieldData, library: FieldTerms, propose: Propose, effort: Effort) -> Searched:
    """Find the equation of every field."""
    smoothed = SmoothedFields(data.values, data.space, data.t)
    equations = [WeakField(smoothed, library, field) for field in range(data.n_fields)]
    found = effort.each(_field_found, equations, propose)
    spread = data.values.reshape(-1, data.n_fields).std(axis=0)
    return Searched(found, smoothed.noise, spread / smoothed.noise)


def _field_found(equation: WeakField, propose: Propose) -> Found:
    tournament = Tournament(equation, propose)
    best = tournament.run()[0]
    close = rivals(tournament, best)
    equivalents = tuple(one.support for one in close)
    return Found(equation, best.support, best.fit, len(best.support), equivalents=equivalents)


def _listed(space: Any) -> list[Any]:
    single = isinstance(space, np.ndarray) and space.ndim == 1
    return [space] if single else list(space)
