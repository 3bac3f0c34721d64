"""What found equations are used for: values of the right-hand side and runs, of states or of fields."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ardea.dynamics.differences import finite_difference
from ardea.dynamics.field_library import FieldTerms
from ardea.dynamics.field_simulation import simulate_field
from ardea.dynamics.libraries import Library, Wording
from ardea.dynamics.right_hand_side import RightHandSide
from ardea.dynamics.simulation import Bands, SimulationWarning, simulate_draws, simulate_states
from ardea.equation import Left

Array = NDArray[np.float64]

# A simulation stops where a state exceeds its largest value in the data a hundred times (a convention); the absolute
# error of the integrator is this share of that value, a hundred times rounding error of a state squared.
BLOW_UP = 100.0
RELATIVE_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class StateModel:
    """x′ = Θ(x, u)ξᵀ, or x_{k+1} = Θ(x_k, u_k)ξᵀ.

    Attributes
    ----------
    library : Library
        Candidate terms.
    names : list of str
        States, then inputs.
    coefficients : ndarray of shape (n_states, n_terms)
        ξ.
    reach : ndarray of shape (n_states,)
        Largest |x| in the data.
    discrete_time : bool
        Whether the model is a map.
    """

    library: Library
    names: list[str]
    coefficients: Array
    reach: Array
    discrete_time: bool

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return len(self.names) - len(self.coefficients)

    @property
    def lefts(self) -> list[Left]:
        """The left-hand sides."""
        return [Left(name, "next" if self.discrete_time else "rate") for name in self.names[: len(self.coefficients)]]

    @cached_property
    def vocabulary(self) -> Wording:
        """How the candidate terms are written."""
        return self.library.vocabulary(self.names)

    @cached_property
    def right_hand_side(self) -> RightHandSide:
        """The model as a function; `.row(x)` takes microseconds."""
        return self.with_coefficients(self.coefficients)

    def with_coefficients(self, coefficients: Array) -> RightHandSide:
        """Return the right-hand side with other coefficients."""
        return RightHandSide(self.library, coefficients, len(self.coefficients), self.n_inputs)

    def predict(self, x: ArrayLike, u: ArrayLike | None = None) -> Array:
        """Return x′, or the next state."""
        return self.right_hand_side(x, u)

    def simulate(self, coefficients: Array, x0: ArrayLike, t: Any, u: Any) -> Array:
        """Integrate from a start, with these or other coefficients."""
        model = self.right_hand_side if coefficients is self.coefficients else self.with_coefficients(coefficients)
        return simulate_states(model, x0, t, inputs=u, **self._settings)

    def simulate_bands(
        self, draws: Array, x0: ArrayLike, t: Any, u: Any, level: float, starts: Array | None = None
    ) -> Bands:
        """Integrate with every draw of the coefficients, from one start or from a start for every draw."""
        begin = x0 if starts is None else starts
        samples = simulate_draws(self.with_coefficients(draws), begin, t, inputs=u, **self._settings)
        times = np.arange(samples.shape[1]) if self.discrete_time else t
        return Bands.of(samples, times, level)

    @property
    def _settings(self) -> dict[str, Any]:
        """When a simulation stops, and how accurate it is."""
        return {
            "discrete_time": self.discrete_time,
            "limit": BLOW_UP * self.reach,
            "atol": RELATIVE_TOLERANCE * self.reach,
        }


@dataclass(frozen=True, eq=False)
class FieldModel:
    """u_t = Σ ξ_i m(u) ∂^β u.

    Attributes
    ----------
    library : FieldTerms
        Candidate terms.
    fields, axes : list of str
        Names of fields and of space axes.
    coefficients : ndarray of shape (n_fields, n_terms)
        ξ.
    space : tuple of ndarray
        Coordinates of the space axes.
    reach : ndarray of shape (n_fields,)
        Largest |u| in the data.
    """

    library: FieldTerms
    fields: list[str]
    axes: list[str]
    coefficients: Array
    space: tuple[Array, ...]
    reach: Array

    @property
    def lefts(self) -> list[Left]:
        """The left-hand sides."""
        return [Left(name, "field") for name in self.fields]

    @cached_property
    def vocabulary(self) -> Wording:
        """How the candidate terms are written."""
        return self.library.vocabulary(self.fields, self.axes)

    def predict(self, x: ArrayLike, u: ArrayLike | None = None) -> Array:
        """Return u_t of fields on the grid, derivatives by differences of sixth order (one-sided at the ends)."""
        grid = tuple(len(points) for points in self.space)
        values = np.asarray(x, dtype=float)
        trailing = values.shape[len(grid) :]
        if values.shape[: len(grid)] != grid:
            raise ValueError(f"x must begin with the shape of the grid, {grid}, got {values.shape}.")
        several = len(self.fields) > 1
        if several and (not trailing or trailing[-1] != len(self.fields)):
            raise ValueError(f"x must have a last axis of {len(self.fields)} fields.")
        fields = [values[..., i] for i in range(len(self.fields))] if several else [values]

        def derivative(field: int, orders: tuple[int, ...]) -> Array:
            out = fields[field]
            for axis, order in enumerate(orders):
                if order:
                    out = finite_difference(out, self.space[axis], derivative=order, axis=axis)
            return out

        used = np.flatnonzero(np.any(self.coefficients != 0, axis=0))
        columns = self.library.evaluate(fields, derivative, n_axes=len(grid), terms=used.tolist())
        slopes = [(columns @ row[used]).reshape(fields[0].shape) for row in self.coefficients]
        return np.stack(slopes, axis=-1) if several else slopes[0]

    def simulate(self, coefficients: Array, x0: ArrayLike, t: Any, u: Any) -> Array:
        """Integrate from a field at t[0], periodic in space."""
        if len(self.fields) > 1 or len(self.axes) > 1:
            raise NotImplementedError("simulate() knows fields of one component in one space dimension only.")
        return simulate_field(self.library, coefficients, x0, self.space[0], t, limit=BLOW_UP * float(self.reach[0]))

    def simulate_bands(
        self, draws: Array, x0: ArrayLike, t: Any, u: Any, level: float, starts: Array | None = None
    ) -> Bands:
        """Integrate with every draw of the coefficients, from one start or from a start for every draw."""
        times = np.asarray(t, dtype=float)
        samples = np.full((len(draws), len(self.space[0]), len(times)), np.nan)
        each = [x0] * len(draws) if starts is None else starts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)
            for sample, xi, start in zip(samples, draws, each, strict=True):
                run = self.simulate(xi, start, times, u)
                sample[:, : run.shape[1]] = run
        return Bands.of(samples, times, level, time_axis=1)


# What Discovery asks of either: lefts, vocabulary, coefficients, predict, simulate, simulate_bands.
Motion = StateModel | FieldModel
