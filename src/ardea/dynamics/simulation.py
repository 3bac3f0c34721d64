"""Simulation of found equations: ordinary differential equations, maps, one periodic field, and bands over draws.

`RightHandSide` evaluates f(x, u) = Θ([x, u])ξᵀ with the terms in use only. `simulate_ode`, `simulate_map` and
`simulate_field` return a `Simulation`; when a model blows up they stop, say when, and issue a `SimulationWarning`.
`simulate_draws` integrates many draws of the coefficients as one system; `bands` sums draws up.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy import fft
from numpy.typing import ArrayLike
from scipy import integrate
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from ardea.core.problem import Array, Index
from ardea.dynamics import etdrk4
from ardea.dynamics.libraries import FieldTerms, Library, default_feature_names
from ardea.dynamics.products import Term

Method = Literal["auto", "DOP853", "LSODA", "Radau", "BDF"]
Status = Literal["complete", "stopped"]
Inputs = Callable[[Array], Array]
_SOLVERS = {"LSODA": integrate.LSODA, "Radau": integrate.Radau, "BDF": integrate.BDF}
# Up to so many multiplications, one row is faster in Python floats than in NumPy calls.
SCALAR_OPERATIONS = 50
# Default guard: |x| may reach this many times the largest |x0|.
LIMIT_FACTOR = 1e6
# Values held at once when a solution is evaluated at many times.
BLOCK_VALUES = 2**13
# An interval of a field is cut into at most so many steps before the step size counts as collapsed.
MOST_STEPS_PER_INTERVAL = 2**15
# Tables of ETDRK4 kept, one for each length of a step.
MOST_TABLES = 64
# A field whose jump across the seam is this many times its largest jump inside is not periodic.
SEAM_FACTOR = 5.0
# Relative errors below this are rounding.
ROUNDING = 1e-13
LOWEST_RTOL = 1e-13


class SimulationWarning(UserWarning):
    """A simulation stopped before its last time."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """A solution at the times that were reached.

    Attributes
    ----------
    t : array of shape (n_reached,)
        The times asked for, as far as they were reached.
    x : array of shape (n_reached, n_states), or (n_x, n_reached) for a field
        The solution at t.
    status : {"complete", "stopped"}
        Whether all times were reached.
    message : str
        Why and when the simulation stopped; empty if complete.
    interpolate : callable or None
        For an ordinary differential equation that was simulated alone: the solution at any time reached, a number or
        an array of times, to the accuracy of the integration.
    time_axis : int
        Axis of x along which time runs: 0, or 1 for a field.
    """

    t: Array
    x: Array
    status: Status
    message: str = ""
    interpolate: Callable[[ArrayLike], Array] | None = field(default=None, repr=False)
    time_axis: int = field(default=0, repr=False)

    def __repr__(self) -> str:
        told = f"Simulation of shape {self.x.shape}, {_span(self.t)}, {self.status}"
        return f"<{told}: {self.message}>" if self.message else f"<{told}>"

    def to_frame(self, names: Sequence[str] | None = None) -> Any:
        """Return the solution as a pandas frame, one row per time (needs the extra `frames`).

        Parameters
        ----------
        names : sequence of str, optional
            Names of the states, or of the points of a field; x0, x1, … by default.
        """
        return _frame(self.t, {"": self.x}, self.time_axis, names)


# The right-hand side


class _TermValues:
    """Values of a few terms on slots: the columns, the constant if in use, functions, then products degree by degree.

    Every product is (its first factor) times (the rest), both on earlier slots, so that each degree is one NumPy call.
    """

    def __init__(self, terms: Sequence[Term], n_columns: int) -> None:
        self.n_columns = n_columns
        slot_of = {Term.state(i): i for i in range(n_columns)}
        ordered = sorted(_with_factors(terms), key=lambda term: term.degree)
        for term in ordered:
            slot_of.setdefault(term, len(slot_of))
        self.n_slots = len(slot_of)
        self.slots: Index = np.array([slot_of[term] for term in terms], dtype=np.intp)
        self.has_constant = Term() in slot_of
        atoms = [(slot_of[term], term.atoms[0][0]) for term in ordered if term.degree == 1]
        self._functions = [(slot, atom.function, atom.states) for slot, atom in atoms if atom.function is not None]
        self._products = [
            _product_level([term for term in ordered if term.degree == degree], slot_of)
            for degree in sorted({term.degree for term in ordered if term.degree > 1})
        ]

    @property
    def factors(self) -> list[tuple[int, int]] | None:
        """The two slots that each product multiplies, in the order of their slots; None if there are functions."""
        if self._functions:
            return None
        return [
            pair for _, _, first, rest in self._products for pair in zip(first.tolist(), rest.tolist(), strict=True)
        ]

    def __call__(self, columns: Array) -> Array:
        """Return the slots, shape (n_slots, rows), of columns of shape (n_columns, rows)."""
        values = np.empty((self.n_slots, columns.shape[1]))
        values[: self.n_columns] = columns
        if self.has_constant:
            values[self.n_columns] = 1.0
        for slot, function, states in self._functions:
            values[slot] = function(*(columns[state] for state in states))
        for start, stop, first, rest in self._products:
            np.multiply(values.take(first, axis=0), values.take(rest, axis=0), out=values[start:stop])
        return values


def _with_factors(terms: Iterable[Term]) -> list[Term]:
    """Return the terms and all that their products are built from."""
    found: dict[Term, None] = {}
    for term in terms:
        while term not in found:
            found[term] = None
            if term.degree > 1:
                found[term.first_factor()] = None
                term = term.without_one(0)
    return list(found)


def _product_level(terms: Sequence[Term], slot_of: dict[Term, int]) -> tuple[int, int, Index, Index]:
    """Return the slots of products of one degree, which lie next to each other, and those of their two factors."""
    start = slot_of[terms[0]]
    first = np.array([slot_of[term.first_factor()] for term in terms], dtype=np.intp)
    rest = np.array([slot_of[term.without_one(0)] for term in terms], dtype=np.intp)
    return start, start + len(terms), first, rest


class _Combinations:
    """Linear combinations Σ_k w_ek θ_k of a few terms, e = 1, …."""

    def __init__(self, terms: Sequence[Term], weights: Array, n_columns: int) -> None:
        self._values = _TermValues(terms, n_columns)
        self._weights = np.zeros((len(weights), self._values.n_slots))
        np.add.at(self._weights.T, self._values.slots, weights.T)
        factors = self._values.factors
        self._factors = factors or []
        self._sums = [[(float(row[k]), int(k)) for k in np.flatnonzero(row)] for row in self._weights]
        n_operations = len(self._factors) + np.count_nonzero(self._weights)
        self._scalar = factors is not None and n_operations <= SCALAR_OPERATIONS

    def __call__(self, columns: Array) -> Array:
        """Return shape (combinations, rows)."""
        return self._weights.dot(self._values(columns))

    def row(self, x: Array) -> Array:
        """Return shape (combinations,) at one row; a few terms are fastest in Python floats."""
        if not self._scalar:
            return self(x[:, None])[:, 0]
        values = x.tolist()
        if self._values.has_constant:
            values.append(1.0)
        for first, rest in self._factors:
            values.append(values[first] * values[rest])
        out = []
        for terms in self._sums:
            total = 0.0
            for weight, slot in terms:
                total += weight * values[slot]
            out.append(total)
        return np.array(out)


class RightHandSide:
    """f(x, u) = Θ([x, u])ξᵀ; only terms that stand in some equation are evaluated.

    Parameters
    ----------
    library : Library
        Candidate terms of the states followed by the inputs.
    coefficients : array of shape (n_states, n_terms)
        ξ, mostly zeros.
    n_states : int
        Number of states.
    n_inputs : int
        Number of inputs u.

    Examples
    --------
    >>> from ardea.dynamics import Polynomials
    >>> rhs = RightHandSide(Polynomials(2), [[0.0, 1.0, -1.0]], n_states=1)  # x' = x − x²
    >>> rhs([[0.5], [1.0]])
    array([[0.25],
           [0.  ]])
    >>> rhs.jacobian(np.array([0.25]))
    array([[0.5]])
    """

    def __init__(self, library: Library, coefficients: ArrayLike, n_states: int, n_inputs: int = 0) -> None:
        self.n_states, self.n_inputs = n_states, n_inputs
        xi = _checked_coefficients(library, coefficients, n_states, n_inputs)
        support = np.flatnonzero(xi.any(axis=0))
        self._terms = _chosen_terms(library, support, n_states + n_inputs)
        self._xi = xi[:, support]
        self._combinations = _Combinations(self._terms, self._xi, n_states + n_inputs)

    def __call__(self, X: ArrayLike, inputs: ArrayLike | None = None) -> Array:
        """Return f at every row.

        Parameters
        ----------
        X : array of shape (rows, n_states)
            States.
        inputs : array of shape (rows, n_inputs), optional
            Inputs.
        """
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_states:
            raise ValueError(f"states must have shape (rows, {self.n_states}), got {X.shape}")
        if (inputs is None) != (self.n_inputs == 0):
            raise ValueError(f"the equations have {self.n_inputs} inputs; give them if there are any, and only then")
        if inputs is None:
            return self.row(X[0])[None] if len(X) == 1 else self._combinations(X.T).T
        u = np.asarray(inputs, dtype=float).reshape(len(X), -1)
        if u.shape[1] != self.n_inputs:
            raise ValueError(f"inputs must have shape ({len(X)}, {self.n_inputs}), got {np.shape(inputs)}")
        return self._combinations(np.hstack([X, u]).T).T

    def row(self, x: Array, inputs: Array | None = None) -> Array:
        """Return f at one state of shape (n_states,); nothing is checked."""
        z = x if inputs is None else np.concatenate([x, inputs])
        return self._combinations.row(z)

    def columns(self, columns: Array) -> Array:
        """Return f, shape (n_states, rows), of states and inputs of shape (n_states + n_inputs, rows), unchecked."""
        return self._combinations(columns)

    def jacobian(self, x: Array, inputs: Array | None = None) -> Array:
        """Return ∂f_e/∂x_l at one state, shape (n_states, n_states)."""
        z = x if inputs is None else np.concatenate([x, inputs])
        return self._gradient.row(z).reshape(self.n_states, self.n_states)

    @cached_property
    def _gradient(self) -> _Combinations:
        """The derivatives of products are products: ∂f_e/∂x_l is a combination of other terms."""
        column_of: dict[Term, int] = {}
        entries = []
        for k, term in enumerate(self._terms):
            for state in {state for atom, _ in term.atoms for state in atom.states if state < self.n_states}:
                for factor, reduced in term.derivative(state):
                    entries.append((state, column_of.setdefault(reduced, len(column_of)), factor * self._xi[:, k]))
        weights = np.zeros((self.n_states, self.n_states, len(column_of)))
        for state, column, slopes in entries:
            weights[:, state, column] += slopes
        flat = weights.reshape(self.n_states**2, -1)
        return _Combinations(list(column_of), flat, self.n_states + self.n_inputs)


class _DrawsRightHandSide:
    """The same for many draws of ξ at once, each with a state of its own.

    Rows are sorted draw by draw. Only (equation, term) pairs that are not zero in all draws cost anything.
    """

    def __init__(self, library: Library, draws: Array, n_states: int, n_inputs: int) -> None:
        self.n_states, self.n_inputs = n_states, n_inputs
        used = np.any(draws != 0, axis=0)
        equations, columns = np.nonzero(used)
        support, position = np.unique(columns, return_inverse=True)
        self._values = _TermValues(_chosen_terms(library, support, n_states + n_inputs), n_states + n_inputs)
        self._slots = self._values.slots[position]
        self._xi = np.ascontiguousarray(draws[:, equations, columns].T)
        self._equations, self._starts = np.unique(equations, return_index=True)

    def columns(self, columns: Array) -> Array:
        """Return f, shape (n_states, rows); the rows are those of the first draw, of the second, …."""
        parts = self._values(columns)[self._slots].reshape(*self._xi.shape, -1) * self._xi[:, :, None]
        out = np.zeros((self.n_states, columns.shape[1]))
        if len(self._starts):
            out[self._equations] = np.add.reduceat(parts, self._starts, axis=0).reshape(len(self._starts), -1)
        return out


def _checked_coefficients(library: Library, coefficients: ArrayLike, n_states: int, n_inputs: int) -> Array:
    xi = np.asarray(coefficients, dtype=float)
    expected = (n_states, library.n_terms(n_states + n_inputs))
    if xi.shape[-2:] != expected or xi.ndim not in (2, 3):
        raise ValueError(
            f"coefficients must have shape (n_states, n_terms) = {expected} for this library with {n_states} states "
            f"and {n_inputs} inputs, got {xi.shape}"
        )
    if not np.all(np.isfinite(xi)):
        raise ValueError("coefficients must be finite")
    return xi


def _chosen_terms(library: Library, chosen: Index, n_columns: int) -> list[Term]:
    """Return the terms behind columns of Θ. Of terms with one name the library keeps the first."""
    names = default_feature_names(n_columns)
    term_of: dict[str, Term] = {}
    for term in library.terms(n_columns):
        term_of.setdefault(term.name(names), term)
    terms = list(term_of.values())
    return [terms[i] for i in chosen]


# Ordinary differential equations


class _Flow:
    """dx/dt of one or several copies of the states as a function of time, with a count of its calls.

    SciPy's compiled integrators lose exceptions, so the first one is kept and raised by `raise_error`.
    """

    def __init__(self, rhs: RightHandSide | _DrawsRightHandSide, inputs: Inputs | None, copies: int = 1) -> None:
        self._rhs, self._inputs, self._copies = rhs, inputs, copies
        self.calls = 0
        self._error: Exception | None = None

    def __call__(self, t: float, y: Array) -> Array:
        """Return dy/dt for the states of all copies, flat, state by state."""
        self.calls += 1
        try:
            if isinstance(self._rhs, RightHandSide):
                return self._rhs.row(y, self._inputs_at(t))
            return self.many(np.array([t]), y[:, None])[:, 0]
        except Exception as error:
            self._error = self._error or error
            return np.full(len(y), np.nan)

    def jacobian(self, t: float, y: Array) -> Array:
        """Return ∂(dy/dt)/∂y of one copy, zeros where it is not finite (SciPy's solvers then shorten the step)."""
        assert isinstance(self._rhs, RightHandSide)
        try:
            slopes = self._rhs.jacobian(y, self._inputs_at(t))
        except Exception as error:
            self._error = self._error or error
            return np.zeros((len(y), len(y)))
        return slopes if np.all(np.isfinite(slopes)) else np.zeros_like(slopes)

    def many(self, t: Array, y: Array) -> Array:
        """Return dy/dt of shape (len(y), times) at several times, y of the same shape."""
        states = y.reshape(self._rhs.n_states, -1)
        if self._inputs is not None:
            states = np.vstack([states, np.tile(self._inputs(t), (1, self._copies))])
        return self._rhs.columns(states).reshape(y.shape)

    def raise_error(self) -> None:
        """Raise the first exception of the right-hand side, if there was one."""
        if self._error is not None:
            raise self._error

    def _inputs_at(self, t: float) -> Array | None:
        return None if self._inputs is None else self._inputs(np.array([t]))[:, 0]


@dataclass(frozen=True, eq=False)
class _Guard:
    """When to give up: limits on |x|, right-hand-side calls, and the clock."""

    limit: Array
    max_evaluations: int
    deadline: float

    def reason(self, x: Array, calls: int, finished: bool) -> str:
        """Return why to stop after a step, or nothing."""
        if not np.all(np.abs(x) <= self.limit):
            return "limit"
        used_up = calls >= self.max_evaluations or time.monotonic() > self.deadline
        return "budget" if used_up and not finished else ""


@dataclass(frozen=True, eq=False)
class _Leg:
    """Part of a solution, by one integrator: the ends of its steps, the solution between, and why it ended."""

    t: Array
    x: Array
    between: Callable[[Array], Array]
    reason: str


_EXPLANATIONS = {
    "limit": "|x| passed its limit at t = {t:.8g}: the model blows up",
    "field limit": "|u| passed its limit near t = {t:.4g}: the model blows up",
    "collapse": "the step size collapsed at t = {t:.8g}: the solution is singular there",
    "budget": "the budget of evaluations or seconds was used up at t = {t:.8g}; raise max_evaluations or max_seconds",
    "stiff": "the equations are stiff at t = {t:.8g} and DOP853 would crawl; use method='auto' or 'LSODA'",
}


def simulate_ode(
    rhs: RightHandSide,
    x0: ArrayLike,
    t: ArrayLike,
    *,
    inputs: Callable[[float], ArrayLike] | ArrayLike | None = None,
    method: Method = "auto",
    rtol: float = 1e-8,
    atol: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    max_evaluations: int = 5_000_000,
    max_seconds: float = np.inf,
) -> Simulation:
    """Integrate x' = f(x, u) and return x at the times asked for.

    Parameters
    ----------
    rhs : RightHandSide
        f.
    x0 : array of shape (n_states,)
        State at t[0].
    t : array of shape (n_times,)
        Ascending times.
    inputs : callable or array, optional
        u(t), returning n_inputs values; or values at the times t, shape (n_times, n_inputs), between which a cubic
        spline stands.
    method : {"auto", "DOP853", "LSODA", "Radau", "BDF"}
        "auto": DOP853 (explicit, order 8); when that reports stiff equations, LSODA goes on from there.
    rtol : float
        Relative tolerance of a step.
    atol : float or array of shape (n_states,), optional
        Absolute tolerance of a step. Default: rtol/100 times the largest |x0|.
    limit : float or array of shape (n_states,), optional
        The simulation stops when |x| passes it. Default: 10⁶ times the largest |x0|, or 10⁶ if that is below 1.
    max_evaluations : int
        Largest number of evaluations of f.
    max_seconds : float
        Longest time on the clock.

    Returns
    -------
    Simulation
        With shorter arrays and status "stopped" if a guard ended it.

    Examples
    --------
    >>> from ardea.dynamics import Polynomials
    >>> decay = RightHandSide(Polynomials(1), [[0.0, -1.0]], n_states=1)
    >>> solution = simulate_ode(decay, [1.0], [0.0, 1.0, 2.0])
    >>> bool(np.allclose(solution.x[:, 0], np.exp(-solution.t), rtol=1e-7))
    True
    >>> bool(np.isclose(solution.interpolate(0.5)[0], np.exp(-0.5), rtol=1e-7))
    True
    """
    times, start = _checked_times(t), _checked_start(x0, rhs.n_states)
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
    u = _checked_inputs(inputs, times, rhs.n_inputs)
    guard = _Guard(_checked_limit(limit, start), max_evaluations, time.monotonic() + max_seconds)
    tolerances = _checked_tolerances(rtol, atol, start)
    if len(times) == 1:
        return Simulation(times, start[None], "complete")
    legs = _legs(rhs, u, start, times, method, tolerances, guard)
    simulation = _gather(legs, times, guard.limit)
    if simulation.status == "stopped":
        warnings.warn(simulation.message, SimulationWarning, stacklevel=2)
    return simulation


def _legs(
    rhs: RightHandSide,
    inputs: Inputs | None,
    x0: Array,
    t: Array,
    method: Method,
    tolerances: tuple[float, Array],
    guard: _Guard,
) -> list[_Leg]:
    """Return the legs of a solution: one, or two if the equations turn stiff."""
    flow = _Flow(rhs, inputs)
    if method in _SOLVERS:
        return [_stiff_leg(flow, method, x0, (t[0], t[-1]), tolerances, guard)]
    first = _explicit_leg(flow, x0, (t[0], t[-1]), tolerances, guard)
    if method == "DOP853" or first.reason != "stiff":
        return [first]
    span = (float(first.t[-1]), float(t[-1]))
    return [first, _stiff_leg(flow, "LSODA", first.x[-1], span, tolerances, guard)]


def _explicit_leg(
    flow: _Flow, x0: Array, span: tuple[float, float], tolerances: tuple[float, Array], guard: _Guard
) -> _Leg:
    """Integrate by the compiled DOP853, which also tells when the equations are stiff.

    It takes one absolute tolerance for all states, so it is given the states in units of their tolerances.
    """
    rtol, atol = tolerances
    unit = atol / atol.max()
    scaled = flow if np.all(unit == 1) else lambda t, y: flow(t, y * unit) / unit
    steps: list[float] = []
    states: list[Array] = []
    stopped = ""

    def after_step(t: float, y: Array) -> int:
        nonlocal stopped
        steps.append(t)
        states.append(y * unit)
        stopped = guard.reason(states[-1], flow.calls, finished=t >= span[1])
        return -1 if stopped else 0

    # Twelve evaluations a step, rejected steps included.
    most = max(1, (guard.max_evaluations - flow.calls) // 12)
    # The default of max_step is wrong in SciPy 1.17 (scipy issue 24403).
    options = {"rtol": rtol, "atol": float(atol.max()), "nsteps": min(most, 2**31 - 1), "max_step": span[1] - span[0]}
    solver = integrate.ode(scaled).set_integrator("dop853", **options)
    solver.set_solout(after_step)
    solver.set_initial_value(x0 / unit, span[0])
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", UserWarning)
        solver.integrate(span[1])
    flow.raise_error()
    code = solver.get_return_code()
    reason = stopped or {1: "", -2: "budget", -3: "collapse", -4: "stiff"}[code]
    if not reason:
        steps[-1] = span[1]
    t, x = np.array(steps), np.array(states)
    return _Leg(t, x, lambda times: _explicit_between(flow, t, x, times), reason)


def _explicit_between(flow: _Flow, t: Array, x: Array, times: Array) -> Array:
    """Return the solution at any times: from the step before each time, one shorter step of the same formula.

    k_i = f(t + c_i h, x + h Σ_j a_ij k_j),  x(t + h) = x + h Σ_i b_i k_i, all times at once. Its error is that of a
    step of DOP853 shorter than the accepted one, and at the ends of the steps the solution is met exactly.
    """
    a, b, c = integrate.DOP853.A, integrate.DOP853.B, integrate.DOP853.C
    out = np.empty((len(times), x.shape[1]))
    n_block = max(1, BLOCK_VALUES // x.shape[1])
    for begin in range(0, len(times), n_block):
        block = times[begin : begin + n_block]
        step = np.clip(np.searchsorted(t, block, side="right") - 1, 0, len(t) - 1)
        start, h = x[step].T, block - t[step]
        slopes = np.zeros((len(c), *start.shape))
        for i, fraction in enumerate(c):
            slopes[i] = flow.many(t[step] + fraction * h, start + h * np.tensordot(a[i, :i], slopes[:i], axes=1))
        out[begin : begin + n_block] = (start + h * np.tensordot(b, slopes, axes=1)).T
    return out


def _stiff_leg(
    flow: _Flow,
    method: str,
    x0: Array,
    span: tuple[float, float],
    tolerances: tuple[float, Array],
    guard: _Guard,
) -> _Leg:
    """Integrate by one of SciPy's implicit solvers with the exact Jacobian."""
    rtol, atol = tolerances
    steps, states, pieces, reason = [span[0]], [x0], [], ""
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", UserWarning)
        solver = _SOLVERS[method](flow, span[0], x0, span[1], rtol=rtol, atol=atol, jac=flow.jacobian)
        while solver.status == "running" and not reason:
            solver.step()
            flow.raise_error()
            if solver.status == "failed" or solver.t == steps[-1]:
                reason = "collapse"
            else:
                steps.append(solver.t)
                states.append(solver.y.copy())
                pieces.append(solver.dense_output())
                reason = guard.reason(solver.y, flow.calls, finished=solver.status == "finished")
    t = np.array(steps)
    between = integrate.OdeSolution(t, pieces) if pieces else None
    return _Leg(t, np.array(states), lambda times: between(times).T if between else x0[None], reason)


def _gather(legs: Sequence[_Leg], t: Array, limit: Array) -> Simulation:
    """Return the solution at the times t as far as the legs reach inside the limit."""
    last = legs[-1]
    interpolate = _Interpolation(legs)
    reached = float(last.t[-1])
    if last.reason == "limit":
        reached = _crossing(last, limit)
        interpolate = _Interpolation(legs, reached)
    inside = t[t <= reached]
    x = interpolate(inside)
    if not last.reason:
        return Simulation(t, x, "complete", interpolate=interpolate)
    message = _stop_message(last.reason, reached, len(inside), len(t))
    return Simulation(inside, x, "stopped", message, interpolate)


def _stop_message(reason: str, t: float, n_reached: int, n_times: int) -> str:
    return f"{_EXPLANATIONS[reason].format(t=t)} ({n_reached} of {n_times} times reached)"


def _crossing(leg: _Leg, limit: Array) -> float:
    """Return when |x| passes its limit inside the last step of a leg."""

    def excess(t: float) -> float:
        largest = float(np.max(np.abs(leg.between(np.array([t]))[0]) / limit))
        return min(largest, 2.0) - 1.0 if np.isfinite(largest) else 1.0

    before, after = float(leg.t[-2]), float(leg.t[-1])
    if not excess(before) <= 0 < excess(after):
        return before
    return float(brentq(excess, before, after, xtol=1e-14, rtol=1e-13))


class _Interpolation:
    """The solution at any time of its legs."""

    def __init__(self, legs: Sequence[_Leg], reached: float | None = None) -> None:
        self._legs = legs
        self.start = float(legs[0].t[0])
        self.stop = float(legs[-1].t[-1]) if reached is None else reached

    def __call__(self, t: ArrayLike) -> Array:
        times = np.asarray(t, dtype=float)
        flat = np.atleast_1d(times)
        if flat.size and not (self.start <= flat.min() and flat.max() <= self.stop):
            raise ValueError(f"the simulation covers t = {self.start:g} to {self.stop:g}")
        which = np.searchsorted([leg.t[-1] for leg in self._legs[:-1]], flat)
        out = np.empty((len(flat), self._legs[0].x.shape[1]))
        for i, leg in enumerate(self._legs):
            members = which == i
            if members.any():
                out[members] = leg.between(flat[members])
        return out[0] if times.ndim == 0 else out


# Maps


def simulate_map(
    rhs: RightHandSide,
    x0: ArrayLike,
    t: int | ArrayLike,
    *,
    inputs: Callable[[float], ArrayLike] | ArrayLike | None = None,
    limit: ArrayLike | None = None,
) -> Simulation:
    """Iterate x_{n+1} = f(x_n, u_n).

    Parameters
    ----------
    rhs : RightHandSide
        f.
    x0 : array of shape (n_states,)
        The first state.
    t : int or array of shape (n_times,)
        Number of states wanted, x0 included; or one time for each of them. One iteration leads from each time to the
        next.
    inputs : callable or array, optional
        u(t), or one row for every time; the row of the last time has no use and may be missing.
    limit : float or array of shape (n_states,), optional
        As in `simulate_ode`.

    Examples
    --------
    >>> from ardea.dynamics import Polynomials
    >>> doubling = RightHandSide(Polynomials(1), [[0.0, 2.0]], n_states=1)
    >>> simulate_map(doubling, [1.0], 5).x[:, 0]
    array([ 1.,  2.,  4.,  8., 16.])
    """
    times = np.arange(float(t)) if isinstance(t, int | np.integer) else np.asarray(t, dtype=float)
    times, start = _checked_times(times), _checked_start(x0, rhs.n_states)
    bound = _checked_limit(limit, start)
    u = _map_inputs(inputs, times, rhs.n_inputs)
    x = np.empty((len(times), len(start)))
    x[0] = start
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for i in range(len(times) - 1):
            x[i + 1] = rhs.row(x[i], None if u is None else u[i])
            if not np.all(np.abs(x[i + 1]) <= bound):
                message = _stop_message("limit", times[i + 1], i + 1, len(times))
                warnings.warn(message, SimulationWarning, stacklevel=2)
                return Simulation(times[: i + 1], x[: i + 1], "stopped", message)
    return Simulation(times, x, "complete")


# Fields


def simulate_field(
    library: FieldTerms,
    coefficients: ArrayLike,
    u0: ArrayLike,
    x: ArrayLike,
    t: ArrayLike,
    *,
    rtol: float = 1e-6,
    limit: float | None = None,
    max_steps: int = 1_000_000,
    max_seconds: float = np.inf,
) -> Simulation:
    """Integrate u_t = Σ ξ_pq u^p ∂^q u for one field, periodic in one space dimension.

    ETDRK4 takes the linear terms exactly, mode by mode, and the others on the grid without aliasing
    (`ardea.dynamics.etdrk4`). Every interval between output times is solved with n and with 2n steps; n doubles until
    a fifteenth of their difference, the error of the finer solution, is within the tolerance.

    Parameters
    ----------
    library : FieldTerms
        Candidate terms.
    coefficients : array of shape (n_terms,) or (1, n_terms)
        ξ.
    u0 : array of shape (n_x,)
        The field at t[0].
    x : array of shape (n_x,)
        Evenly spaced grid over one period, without the point that repeats the first.
    t : array of shape (n_times,)
        Ascending times. Even spacing is fastest.
    rtol : float
        The local errors of all intervals add up to at most rtol times the largest |u|.
    limit : float, optional
        The simulation stops when |u| passes it. Default: as in `simulate_ode`.
    max_steps : int
        Largest number of steps, all trials included.
    max_seconds : float
        Longest time on the clock.

    Returns
    -------
    Simulation
        `x` has shape (n_x, n_reached): space first, then time.

    Examples
    --------
    >>> from ardea.dynamics import FieldTerms
    >>> library = FieldTerms(1, 2)
    >>> heat = [float(name == "u_xx") for name in library.names()]
    >>> x = 2 * np.pi * np.arange(16) / 16
    >>> u = simulate_field(library, heat, np.cos(x), x, [0.0, 1.0]).x
    >>> bool(np.allclose(u[:, 1], np.exp(-1) * np.cos(x)))
    True
    """
    times, start = _checked_times(t), np.asarray(u0, dtype=float)
    if start.ndim != 1:
        raise ValueError(
            f"simulate_field takes one field in one space dimension, u0 of shape (n_x,), got {start.shape}"
        )
    start = _checked_start(start, len(start))
    equation = _field_equation(library, coefficients, len(start), _checked_period(x, start))
    _check_well_posed(equation, float(times[-1] - times[0]))
    bound = float(_checked_limit(limit, start)[0])
    _checked_tolerances(rtol, None, start)
    solver = _FieldSolver(equation, bound, max_steps, time.monotonic() + max_seconds)
    u, stop = solver.solve(start, times, rtol)
    if stop is None:
        return Simulation(times, u, "complete", time_axis=1)
    message = _stop_message(stop.reason, stop.t, u.shape[1], len(times))
    warnings.warn(message, SimulationWarning, stacklevel=2)
    return Simulation(times[: u.shape[1]], u, "stopped", message, time_axis=1)


@dataclass(frozen=True)
class _Stop:
    """Why and when a field could not go on."""

    reason: str
    t: float


class _FieldSolver:
    """ETDRK4 from output time to output time with a number of steps that adapts."""

    def __init__(self, equation: etdrk4.FieldEquation, limit: float, max_steps: int, deadline: float) -> None:
        self._equation, self._limit, self._deadline = equation, limit, deadline
        self._steps_left = max_steps
        self._tables: dict[float, etdrk4.Coefficients] = {}

    def solve(self, u0: Array, t: Array, rtol: float) -> tuple[Array, _Stop | None]:
        """Return the field at the times reached, shape (n_x, n_reached), and why it stopped, if it did."""
        out = np.empty((len(u0), len(t)))
        out[:, 0] = u0
        modes, n_steps, size = fft.rfft(u0), 1, float(np.max(np.abs(u0)))
        for i, interval in enumerate(np.diff(t)):
            tolerance = max(rtol * float(interval) / float(t[-1] - t[0]), ROUNDING)
            with np.errstate(over="ignore", invalid="ignore"):
                step = self._interval(modes, float(interval), n_steps, tolerance, size)
            if isinstance(step, _Stop):
                return out[:, : i + 1], _Stop(step.reason, float(t[i]) + step.t)
            modes, n_steps = step
            out[:, i + 1] = fft.irfft(modes, n=len(u0))
            size = max(size, float(np.max(np.abs(out[:, i + 1]))))
        return out, None

    def _interval(
        self, modes: etdrk4.Modes, interval: float, n_steps: int, rtol: float, size: float
    ) -> tuple[etdrk4.Modes, int] | _Stop:
        """Return the modes after an interval and the number of coarse steps to try in the next one."""
        coarse = self._advance(modes, interval, n_steps)
        while self._steps_left > 0 and time.monotonic() <= self._deadline:
            fine = self._advance(modes, interval, 2 * n_steps)
            error, reached = self._largest(fine - coarse) / 15, self._largest(fine)
            tolerance = rtol * max(size, reached)
            if error <= tolerance and reached <= self._limit:
                # Half as many steps would give about 16 times the error.
                return fine, max(1, n_steps // 2) if 32 * error < tolerance else n_steps
            blow_up = self._blow_up(modes, interval, n_steps)
            if blow_up is not None:
                return _Stop("field limit", blow_up)
            if n_steps >= MOST_STEPS_PER_INTERVAL:
                return _Stop("collapse", 0.0)
            coarse, n_steps = fine, 2 * n_steps
        return _Stop("budget", 0.0)

    def _blow_up(self, modes: etdrk4.Modes, interval: float, n_steps: int) -> float | None:
        """Return when the field passes its limit, if n and 2n steps agree on that within 2 %.

        Steps too long for the explicit part also blow up, but after a number of steps, not at a time.
        """
        if n_steps < 64:
            return None
        coarse, fine = (self._first_outside(modes, interval, n) for n in (n_steps, 2 * n_steps))
        if coarse is None or fine is None or abs(fine - coarse) > 0.02 * fine + interval / n_steps:
            return None
        return fine if fine > 16 * interval / n_steps else None

    def _first_outside(self, modes: etdrk4.Modes, interval: float, n_steps: int) -> float | None:
        for i in range(n_steps):
            modes = self._advance(modes, interval / n_steps, 1)
            if not self._largest(modes) <= self._limit:
                return interval * (i + 1) / n_steps
        return None

    def _advance(self, modes: etdrk4.Modes, interval: float, n_steps: int) -> etdrk4.Modes:
        # Rounding in t must not count as another step length.
        h = float(f"{interval / n_steps:.12g}")
        if h not in self._tables:
            if len(self._tables) >= MOST_TABLES:
                self._tables.clear()
            self._tables[h] = etdrk4.Coefficients.of(self._equation.linear, h)
        self._steps_left -= n_steps
        for _ in range(n_steps):
            modes = etdrk4.step(modes, self._equation.nonlinear, self._tables[h])
        return modes

    def _largest(self, modes: etdrk4.Modes) -> float:
        return float(np.max(np.abs(fft.irfft(modes, n=self._equation.n_x))))


def _field_equation(library: FieldTerms, coefficients: ArrayLike, n_x: int, period: float) -> etdrk4.FieldEquation:
    xi = np.asarray(coefficients, dtype=float)
    if xi.shape not in ((library.n_terms(),), (1, library.n_terms())):
        raise ValueError(f"coefficients must have shape ({library.n_terms()},) for one field, got {xi.shape}")
    if not np.all(np.isfinite(xi)):
        raise ValueError("coefficients must be finite")
    return etdrk4.FieldEquation(library.terms(), xi.ravel(), n_x, period)


def _checked_period(x: ArrayLike, u0: Array) -> float:
    """Return the period of an evenly spaced grid on which the field goes on smoothly across the seam."""
    grid = np.asarray(x, dtype=float)
    if grid.shape != u0.shape or len(grid) < 4:
        raise ValueError(f"x must hold one position for each of the {len(u0)} values of u0 (at least 4)")
    steps = np.diff(grid)
    if not np.all(steps > 0) or np.ptp(steps) > 1e-4 * np.mean(steps):
        raise ValueError("x must be evenly spaced and ascending; interpolate u0 to such a grid")
    if abs(u0[0] - u0[-1]) > SEAM_FACTOR * np.max(np.abs(np.diff(u0))):
        raise ValueError(
            "u0 jumps from the last point of x to the first: simulate_field needs a periodic field over one period"
        )
    return float(np.mean(steps)) * len(grid)


def _check_well_posed(equation: etdrk4.FieldEquation, duration: float) -> None:
    """Refuse a linear part that grows rounding errors at the highest wavenumber to order one."""
    growth = float(equation.linear[-1].real - equation.linear[0].real)
    if growth * duration > -np.log(np.finfo(float).eps):
        raise ValueError(
            f"the linear part is ill-posed: its derivatives grow the shortest waves of this grid by exp({growth:.3g} t)"
            ", so no solution can be computed; diffusion must be positive (u_xx) and u_xxxx negative"
        )


# Draws of the coefficients


def simulate_draws(
    library: Library,
    draws: ArrayLike,
    x0: ArrayLike,
    t: ArrayLike,
    *,
    n_inputs: int = 0,
    inputs: Callable[[float], ArrayLike] | ArrayLike | None = None,
    rtol: float = 1e-8,
    atol: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    max_evaluations: int = 5_000_000,
    max_seconds: float = np.inf,
) -> list[Simulation]:
    """Integrate x' = f(x, u) for many draws of the coefficients as one large system.

    All draws share their steps, and the tolerance is divided by √n_draws, so that each draw keeps its own. A draw that
    blows up is taken out and the others go on. Should the system be stiff, every draw left is integrated alone.

    Parameters
    ----------
    library : Library
        Candidate terms.
    draws : array of shape (n_draws, n_states, n_terms)
        Draws of ξ.
    x0, t, inputs, rtol, atol, limit, max_evaluations, max_seconds
        As in `simulate_ode`; evaluations of the large system are counted.
    n_inputs : int
        Number of inputs.

    Returns
    -------
    list of Simulation
        One for each draw, without `interpolate`. No warning is issued.

    Examples
    --------
    >>> from ardea.dynamics import Polynomials
    >>> draws = [[[0.0, -1.0]], [[0.0, -2.0]]]
    >>> slow, fast = simulate_draws(Polynomials(1), draws, [1.0], [0.0, 1.0])
    >>> bool(np.allclose([slow.x[1, 0], fast.x[1, 0]], np.exp([-1, -2])))
    True
    """
    times, start = _checked_times(t), _checked_start(x0, np.size(x0))
    xi = _checked_coefficients(library, draws, len(start), n_inputs)
    if xi.ndim != 3 or not len(xi):
        raise ValueError(f"draws must have shape (n_draws, n_states, n_terms), got {xi.shape}")
    u = _checked_inputs(inputs, times, n_inputs)
    bound = _checked_limit(limit, start)
    rtol, atol = _checked_tolerances(rtol, atol, start)
    guard = _Guard(bound, max_evaluations, time.monotonic() + max_seconds)
    run = _DrawsRun(library, xi, n_inputs, u, times, (rtol, atol), guard)
    return run.simulations(start)


class _DrawsRun:
    """The state of `simulate_draws`: the solution so far and the draws still under way."""

    def __init__(
        self,
        library: Library,
        draws: Array,
        n_inputs: int,
        inputs: Inputs | None,
        t: Array,
        tolerances: tuple[float, Array],
        guard: _Guard,
    ) -> None:
        self._library, self._draws, self._n_inputs, self._inputs = library, draws, n_inputs, inputs
        self._t, self._tolerances, self._guard = t, tolerances, guard
        self._x = np.full((len(draws), len(t), draws.shape[1]), np.nan)
        self._done: dict[int, Simulation] = {}

    def simulations(self, x0: Array) -> list[Simulation]:
        """Return one simulation for each draw."""
        alive = np.arange(len(self._draws))
        self._x[:, 0] = x0
        now, states, calls = float(self._t[0]), np.repeat(x0[:, None], len(alive), axis=1), 0
        while len(alive) and now < self._t[-1]:
            flow = _Flow(self._right_hand_side(alive), self._inputs, len(alive))
            flow.calls = calls
            leg = self._leg(flow, states, now)
            calls, now = flow.calls, float(leg.t[-1])
            states = leg.x[-1].reshape(states.shape)
            kept = self._keep(leg, alive, states)
            if leg.reason in ("stiff", "collapse"):
                self._one_by_one(alive[kept], x0)
                break
            if leg.reason == "budget":
                self._stop(alive[kept], "budget", now)
                break
            alive, states = alive[kept], states[:, kept]
        for draw in alive:
            self._done.setdefault(int(draw), Simulation(self._t, self._x[draw], "complete"))
        return [self._done[i] for i in range(len(self._draws))]

    def _right_hand_side(self, alive: Index) -> _DrawsRightHandSide:
        return _DrawsRightHandSide(self._library, self._draws[alive], self._draws.shape[1], self._n_inputs)

    def _leg(self, flow: _Flow, states: Array, now: float) -> _Leg:
        n_alive = states.shape[1]
        rtol, atol = self._tolerances
        shared = max(rtol / np.sqrt(n_alive), LOWEST_RTOL), np.repeat(atol / np.sqrt(n_alive), n_alive)
        guard = replace(self._guard, limit=np.repeat(self._guard.limit, n_alive))
        return _explicit_leg(flow, states.ravel(), (now, float(self._t[-1])), shared, guard)

    def _keep(self, leg: _Leg, alive: Index, states: Array) -> Array:
        """Store what a leg reached, end the draws that left their limit, and return which ones stay."""
        reached = (self._t > leg.t[0]) & (self._t <= leg.t[-1])
        x = leg.between(self._t[reached]).reshape(-1, *states.shape)
        self._x[np.ix_(alive, np.flatnonzero(reached))] = np.moveaxis(x, 2, 0)
        kept = np.all(np.abs(states) <= self._guard.limit[:, None], axis=0)
        self._stop(alive[~kept], "limit", float(leg.t[-1]))
        return kept

    def _stop(self, draws: Index, reason: str, t: float) -> None:
        for draw in draws:
            inside = np.all(np.abs(self._x[draw]) <= self._guard.limit, axis=1)
            n = int(np.argmin(inside)) if not inside.all() else len(inside)
            message = _stop_message(reason, t, n, len(self._t))
            self._done[int(draw)] = Simulation(self._t[:n], self._x[draw, :n], "stopped", message)

    def _one_by_one(self, draws: Index, x0: Array) -> None:
        for draw in draws:
            rhs = RightHandSide(self._library, self._draws[draw], len(x0), self._n_inputs)
            legs = _legs(rhs, self._inputs, x0, self._t, "auto", self._tolerances, self._guard)
            self._done[int(draw)] = replace(_gather(legs, self._t, self._guard.limit), interpolate=None)


@dataclass(frozen=True, eq=False, repr=False)
class Bands:
    """Pointwise quantiles of many simulations.

    Attributes
    ----------
    t : array of shape (n_times,)
        The times.
    lower, median, upper : array, as `Simulation.x`
        Quantiles over the samples that reached the time, NaN where none did.
    level : float
        Share of the samples between `lower` and `upper`.
    n_stopped : int
        Samples that stopped before the last time.
    n_running : array of shape (n_times,)
        Samples that reached each time.
    samples : array of shape (n_samples, …)
        All samples, NaN beyond the time at which one stopped.
    time_axis : int
        Axis of lower, median and upper along which time runs: 0, or 1 for a field.
    """

    t: Array
    lower: Array
    median: Array
    upper: Array
    level: float
    n_stopped: int
    n_running: Index
    samples: Array
    time_axis: int = 0

    def __repr__(self) -> str:
        stopped = f"{self.n_stopped} stopped early" if self.n_stopped else "none stopped early"
        return (
            f"<{100 * self.level:g} % bands of shape {self.median.shape}, {_span(self.t)}, "
            f"{len(self.samples)} samples of which {stopped}>"
        )

    def to_frame(self, names: Sequence[str] | None = None) -> Any:
        """Return lower, median and upper as a pandas frame, one row per time (needs the extra `frames`).

        Parameters
        ----------
        names : sequence of str, optional
            Names of the states, or of the points of a field; x0, x1, … by default.

        Returns
        -------
        DataFrame
            Columns "x0 lower", "x0 median", "x0 upper" and so on, and "n_running", the samples that reached the time.

        Examples
        --------
        >>> t = np.array([0.0, 1.0])
        >>> runs = [Simulation(t, np.array([[1.0], [i]]), "complete") for i in range(5)]
        >>> Bands.of(runs, t)
        <95 % bands of shape (2, 1), 2 times from 0 to 1, 5 samples of which none stopped early>
        >>> list(Bands.of(runs, t).to_frame(["y"]).columns)
        ['y lower', 'y median', 'y upper', 'n_running']
        """
        parts = {" lower": self.lower, " median": self.median, " upper": self.upper}
        return _frame(self.t, parts, self.time_axis, names).assign(n_running=self.n_running)

    @classmethod
    def of(cls, simulations: Sequence[Simulation], t: ArrayLike, level: float = 0.95) -> Bands:
        """Return the bands of simulations asked for at the same times t; a warning counts those that stopped.

        Examples
        --------
        >>> t = np.array([0.0, 1.0])
        >>> runs = [Simulation(t, np.array([[1.0], [i]]), "complete") for i in range(5)]
        >>> Bands.of(runs, t, level=0.5).lower[1], Bands.of(runs, t, level=0.5).upper[1]
        (array([1.]), array([3.]))
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}")
        if not simulations:
            raise ValueError("bands need at least one simulation")
        times = np.asarray(t, dtype=float)
        samples = np.stack([_filled(simulation, len(times)) for simulation in simulations])
        n_running = np.sum([np.arange(len(times)) < len(s.t) for s in simulations], axis=0)
        n_stopped = sum(s.status == "stopped" for s in simulations)
        if n_stopped:
            message = f"{n_stopped} of {len(samples)} samples stopped before the last time; bands hold the others only"
            warnings.warn(message, SimulationWarning, stacklevel=2)
        along_time = np.ones(samples.ndim - 1, dtype=int)
        along_time[simulations[0].time_axis] = len(times)
        ordered, counts = np.sort(samples, axis=0), n_running.reshape(along_time)
        tail = (1 - level) / 2
        lower, median, upper = (_quantile(ordered, counts, q) for q in (tail, 0.5, 1 - tail))
        axis = simulations[0].time_axis
        return cls(times, lower, median, upper, level, n_stopped, n_running, samples, axis)


def bands(simulate: Callable[[Array], Simulation], draws: ArrayLike, t: ArrayLike, level: float = 0.95) -> Bands:
    """Simulate every draw of the coefficients and return the bands.

    For ordinary differential equations ``Bands.of(simulate_draws(…), t, level)`` does the same in one integration.

    Parameters
    ----------
    simulate : callable
        Maps coefficients of shape (n_equations, n_terms) to a `Simulation` at the times t.
    draws : array of shape (n_samples, n_equations, n_terms)
        Draws of the coefficients.
    t : array of shape (n_times,)
        The times that `simulate` is asked for.
    level : float
        Share of the samples inside the bands.

    Examples
    --------
    >>> from ardea.dynamics import Polynomials
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> rates = -1 + 0.1 * np.random.default_rng(0).normal(size=200)
    >>> draws = np.stack([np.zeros(200), rates], axis=1)[:, None]
    >>> found = bands(lambda xi: simulate_ode(RightHandSide(Polynomials(1), xi, 1), [1.0], t), draws, t)
    >>> bool(found.lower[-1, 0] < np.exp(-1) < found.upper[-1, 0]), found.n_stopped
    (True, 0)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)
        simulations = [simulate(coefficients) for coefficients in np.asarray(draws, dtype=float)]
    return Bands.of(simulations, t, level)


def _quantile(ordered: Array, counts: Index, q: float) -> Array:
    """Return a quantile of the first `counts` values along axis 0, linear between order statistics."""
    position = np.broadcast_to(q * np.maximum(counts - 1, 0), ordered.shape[1:])[None]
    below = np.floor(position).astype(np.intp)
    low = np.take_along_axis(ordered, below, axis=0)
    high = np.take_along_axis(ordered, np.ceil(position).astype(np.intp), axis=0)
    return np.asarray((low + (position - below) * (high - low))[0])


def _span(t: Array) -> str:
    ends = f" from {t[0]:g} to {t[-1]:g}" if len(t) else ""
    return f"{len(t)} time{'s' * (len(t) != 1)}{ends}"


def _frame(t: Array, parts: dict[str, Array], time_axis: int, names: Sequence[str] | None) -> Any:
    """Return arrays side by side as a pandas frame with the times as index; the keys end the names of columns."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("Frames need pandas: pip install 'ardea[frames]'.") from error
    rows = {ending: np.moveaxis(values, time_axis, 0) for ending, values in parts.items()}
    width = next(iter(rows.values())).shape[1]
    known = default_feature_names(width) if names is None else [str(name) for name in names]
    if len(known) != width:
        raise ValueError(f"names must be {width} names, got {len(known)}")
    columns = {name + ending: values[:, i] for i, name in enumerate(known) for ending, values in rows.items()}
    return pandas.DataFrame(columns, index=pandas.Index(t, name="t"))


def _filled(simulation: Simulation, n_times: int) -> Array:
    """Return x with NaN for the times that were not reached."""
    missing = [(0, 0)] * simulation.x.ndim
    missing[simulation.time_axis] = (0, n_times - len(simulation.t))
    return np.pad(simulation.x, missing, constant_values=np.nan)


# Checks of what is given


def _checked_times(t: ArrayLike) -> Array:
    times = np.asarray(t, dtype=float)
    if times.ndim != 1 or not len(times) or not np.all(np.isfinite(times)) or not np.all(np.diff(times) > 0):
        raise ValueError("t must be one-dimensional, finite and strictly ascending")
    return times


def _checked_start(x0: ArrayLike, n_states: int) -> Array:
    start = np.atleast_1d(np.asarray(x0, dtype=float))
    if start.shape != (n_states,):
        raise ValueError(f"x0 must have shape ({n_states},), got {np.shape(x0)}")
    if not np.all(np.isfinite(start)):
        raise ValueError("x0 must be finite")
    return start


def _checked_limit(limit: ArrayLike | None, x0: Array) -> Array:
    if limit is None:
        limit = LIMIT_FACTOR * max(1.0, float(np.max(np.abs(x0))))
    bound = np.asarray(limit, dtype=float)
    if bound.shape not in ((), x0.shape) or not np.all(bound > 0):
        raise ValueError(f"limit must be positive, one number or one for each of the {len(x0)} states")
    bound = np.broadcast_to(bound, x0.shape)
    if not np.all(np.abs(x0) <= bound):
        raise ValueError("the start lies outside the limit; raise limit")
    return bound


def _checked_tolerances(rtol: float, atol: ArrayLike | None, x0: Array) -> tuple[float, Array]:
    if not LOWEST_RTOL <= rtol < 1:
        raise ValueError(f"rtol must be at least {LOWEST_RTOL:g} and below 1, got {rtol}")
    if atol is None:
        atol = 0.01 * rtol * (float(np.max(np.abs(x0))) or 1.0)
    absolute = np.asarray(atol, dtype=float)
    if absolute.shape not in ((), x0.shape) or not np.all(absolute > 0):
        raise ValueError(f"atol must be positive, one number or one for each of the {len(x0)} states")
    return float(rtol), np.array(np.broadcast_to(absolute, x0.shape))


def _check_inputs_given(inputs: Any, n_inputs: int) -> None:
    if (inputs is None) != (n_inputs == 0):
        raise ValueError(f"the equations have {n_inputs} inputs; give `inputs` if there are any, and only then")


def _input_rows(inputs: ArrayLike, n_rows: int, n_inputs: int) -> Array:
    rows = np.asarray(inputs, dtype=float)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != n_inputs or len(rows) < n_rows:
        raise ValueError(f"inputs must have shape ({n_rows}, {n_inputs}), one row per time, got {np.shape(inputs)}")
    if not np.all(np.isfinite(rows)):
        raise ValueError("inputs must be finite")
    return rows


def _input_values(inputs: Callable[[float], ArrayLike], t: float, n_inputs: int) -> Array:
    values = np.atleast_1d(np.asarray(inputs(t), dtype=float))
    if values.shape != (n_inputs,):
        raise ValueError(f"inputs(t) must return {n_inputs} values, got shape {values.shape}")
    return values


def _checked_inputs(inputs: Any, t: Array, n_inputs: int) -> Inputs | None:
    """Return u as a function of an array of times, giving shape (n_inputs, times)."""
    _check_inputs_given(inputs, n_inputs)
    if inputs is None:
        return None
    if callable(inputs):
        _input_values(inputs, float(t[0]), n_inputs)
        return lambda times: np.array([_input_values(inputs, float(s), n_inputs) for s in times]).T
    rows = _input_rows(inputs, len(t), n_inputs)
    if len(rows) != len(t):
        raise ValueError(f"inputs must have one row for each of the {len(t)} times, got {len(rows)}")
    if len(t) == 1:
        return lambda times: np.repeat(rows.T, len(times), axis=1)
    spline = CubicSpline(t, rows)
    return lambda times: spline(times).T


def _map_inputs(inputs: Any, t: Array, n_inputs: int) -> Array | None:
    """Return one row of inputs for every iteration."""
    _check_inputs_given(inputs, n_inputs)
    if inputs is None:
        return None
    if callable(inputs):
        return np.array([_input_values(inputs, float(s), n_inputs) for s in t[:-1]]).reshape(-1, n_inputs)
    return _input_rows(inputs, len(t) - 1, n_inputs)
