"""The right-hand side of equations: a library with coefficients, as a function."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ardea.core.lazy import cached_property
from ardea.core.problem import Array, Index
from ardea.dynamics.inside import freed
from ardea.dynamics.libraries import Library, Listed, Polynomials
from ardea.names import counted, default_names

# Up to so many multiplications, one row is faster in Python floats than in NumPy calls (measured on Lorenz 96 with 4 to
# 40 states: 5 against 9 µs for 48, equal for 84, 25 against 9 for 240).
FLOAT_OPERATIONS = 84


class RightHandSide:
    """f(x, u) = Θ([x, u])ξᵀ for one ξ, or for many draws of it; only terms in some equation are evaluated.

    The library is of the states followed by the inputs u and by constants, of shape (constants, 1 or n_draws).
    Coefficients have shape (n_states, n_terms), mostly zeros, or with draws (n_draws, n_states, n_terms).

    Examples
    --------
    >>> from ardea.dynamics import Polynomials
    >>> rhs = RightHandSide(Polynomials(2), [[0.0, 1.0, -1.0]], n_states=1)  # x' = x − x²
    >>> rhs([[0.5], [1.0]])
    array([[0.25],
           [0.  ]])
    """

    def __init__(
        self,
        library: Library,
        coefficients: ArrayLike,
        n_states: int,
        n_inputs: int = 0,
        constants: Array | None = None,
    ) -> None:
        self.n_states, self.n_inputs = n_states, n_inputs
        self._constants = np.empty((0, 1)) if constants is None else constants
        every = n_states + n_inputs + len(self._constants)
        draws = np.asarray(coefficients, dtype=float).reshape(-1, n_states, library.n_terms(every))
        self._given = library, draws
        equations, columns = np.nonzero(np.any(draws != 0, axis=0))
        used, position = np.unique(columns, return_inverse=True)
        self._terms = library.compiled(every, used.tolist())
        self._slots = self._terms.slots[position]
        # One row of weights for each coefficient that is not zero, one column for each draw.
        self._weights = np.ascontiguousarray(draws[:, equations, columns].T)
        self._equations, self._starts = np.unique(equations, return_index=True)

    @property
    def n_draws(self) -> int:
        """Number of draws of ξ."""
        return self._weights.shape[1]

    def __call__(self, X: ArrayLike, inputs: ArrayLike | None = None) -> Array:
        """Return f at every row of states and inputs; with draws, row i belongs to draw i."""
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_states:
            raise ValueError(f"states must have shape (rows, {self.n_states}), got {X.shape}")
        if (inputs is None) != (self.n_inputs == 0):
            raise ValueError(
                f"the equations have {counted(self.n_inputs, 'input')}; give them if there are any, and only then"
            )
        u = np.empty((len(X), 0)) if inputs is None else np.asarray(inputs, dtype=float).reshape(len(X), -1)
        if u.shape[1] != self.n_inputs:
            raise ValueError(f"inputs must have shape ({len(X)}, {self.n_inputs}), got {u.shape}")
        return self.columns(np.hstack([X, u]).T).T

    def columns(self, columns: Array) -> Array:
        """Return f, shape (n_states, rows), of states and inputs of shape (n_states + n_inputs, rows), unchecked."""
        out = np.zeros((self.n_states, columns.shape[1]))
        if len(self._constants):
            more = np.broadcast_to(self._constants, (len(self._constants), columns.shape[1]))
            columns = np.vstack([columns, more])
        if len(self._starts):
            parts = self._terms.on_slots(columns).take(self._slots, axis=0) * self._weights
            out[self._equations] = np.add.reduceat(parts, self._starts, axis=0)
        return out

    def row(self, x: Array, inputs: Array | None = None) -> Array:
        """Return f at one state of shape (n_states,), in microseconds; nothing is checked."""
        z = x if inputs is None else np.concatenate([x, inputs])
        if self._sums is None:
            return self.columns(z[:, None])[:, 0]
        values = z.tolist()
        if self._terms.constant is not None:
            values.append(1.0)
        for _, first, rest in self._terms.products:
            values.append(values[first] * values[rest])
        return np.array([sum([weight * values[slot] for weight, slot in one]) for one in self._sums])

    def stacked(self, x: Array, inputs: Array | None = None) -> Array:
        """Return f at the state of every draw, shape (n_draws, n_states), all with the same inputs; unchecked."""
        if len(x) == 1:
            return self.row(x[0], inputs)[None]
        columns = x.T if inputs is None else np.vstack([x.T, np.tile(inputs[:, None], len(x))])
        return self.columns(columns).T

    def of_draws(self, draws: Index) -> RightHandSide:
        """Return the right-hand side of some of the draws."""
        library, coefficients = self._given
        constants = self._constants if self._constants.shape[1] == 1 else self._constants[:, draws]
        return RightHandSide(library, coefficients[draws], self.n_states, self.n_inputs, constants)

    @cached_property
    def _sums(self) -> list[list[tuple[float, int]]] | None:
        """Weights and slots of every equation in Python numbers, where these are faster."""
        operations = len(self._terms.products) + len(self._slots)
        if self.n_draws != 1 or len(self._constants) or self._terms.functions or operations > FLOAT_OPERATIONS:
            return None
        sums: list[list[tuple[float, int]]] = [[] for _ in range(self.n_states)]
        lengths = np.diff(self._starts, append=len(self._slots))
        weights, slots = self._weights[:, 0].tolist(), self._slots.tolist()
        for equation, weight, slot in zip(np.repeat(self._equations, lengths), weights, slots, strict=True):
            sums[equation].append((weight, slot))
        return sums


def with_rates(library: Library, coefficients: Array, n: int, n_inputs: int, constants: Array) -> RightHandSide:
    """Return x′ = v, v′ = Θξᵀ from draws of the coefficients of n equations, in a library that surely holds v."""
    library = library + Polynomials(1, include_constant=False)
    every = default_names(2 * n + n_inputs + len(constants))
    names = library.names(every)
    full = np.zeros((len(coefficients), 2 * n, len(names)))
    full[:, n:, : coefficients.shape[2]] = coefficients
    for state, name in enumerate(every[n : 2 * n]):
        full[:, state, names.index(name)] = 1.0
    return RightHandSide(library, full, 2 * n, n_inputs, constants)


def to_run(library: Library, draws: Array, means: Array, n_variables: int) -> tuple[Library, Array, Array]:
    """Return a library of variables and constants, coefficients for it, and its constants, (constants, draws).

    Given are draws of the coefficients and behind them the constants of every equation, (draws, n, terms + constants),
    and the means of these, (n, constants).
    """
    listed = library.listed(n_variables)
    coefficients, constants = draws[:, :, : len(listed)], _kept_positive(draws[:, :, len(listed) :], means)
    terms = [term for term in listed if not term.letters]
    columns = [coefficients[:, :, [j for j, term in enumerate(listed) if not term.letters]]]
    firsts = np.cumsum([0, *(len(term.letters) for term in listed)])
    held: list[Array] = []
    for j, term in enumerate(listed):
        for equation in np.flatnonzero(np.any(coefficients[:, :, j], axis=0)) if term.letters else ():
            terms.append(freed(term, [n_variables + len(held) + k for k in range(len(term.letters))]))
            held += list(constants[:, equation, firsts[j] : firsts[j + 1]].T)
            columns.append(
                np.where(np.arange(coefficients.shape[1]) == equation, coefficients[:, :, j], 0.0)[:, :, None]
            )
    return Listed(tuple(terms)), np.concatenate(columns, axis=2), np.array(held).reshape(-1, len(coefficients))


def _kept_positive(draws: Array, means: Array) -> Array:
    """Return draws of constants; where the mean is positive they stay so: K exp((Kᵢ − K)/K), to first order Kᵢ.

    Nothing is divided by zero, then, however little is known of a constant.
    """
    safe = np.where(means > 0, means, 1.0)
    return np.asarray(np.where(means > 0, safe * np.exp((draws - safe) / safe), draws))
