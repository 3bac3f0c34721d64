"""Simulation of models of states: ordinary differential equations and maps, one run, or many draws with their bands.

When a model blows up, `simulate_states` stops with a `SimulationWarning` that says when.
`simulate_draws` runs many draws of the coefficients as one large system, and `Bands` sums draws up. Fields are
simulated in `ardea.dynamics.field_simulation`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import LSODA
from scipy.optimize import brentq

from ardea.core.problem import Array, Index
from ardea.dynamics.right_hand_side import RightHandSide
from ardea.dynamics.series import calendar, input_curve
from ardea.estimators.advice import warn_caller
from ardea.names import counted, default_names

if TYPE_CHECKING:
    import pandas as pd

Inputs = Callable[[float], Array]
# Convention: tolerance of a step, relative and as a share of the largest value in the data. LSODA is then accurate to
# 1e-8 over the rows of `ardea.dynamics.systems`.
TOLERANCE = 1e-10
# Convention: a simulation stops where a state or a field exceeds its largest value in the data so many times.
BLOW_UP = 100.0
# Convention: steps after which a run counts as hopeless, about ten seconds for a small system.
MOST_STEPS = 1_000_000
# Convention: where a solution ends, it is followed until a new attempt comes no closer than this share of what is left.
LEAST_PROGRESS = 1e-3

STOPS = {
    "limit": "|x| passed its limit at t = {t:.8g}: the model blows up",
    "collapse": "the step size collapsed at t = {t:.8g}: the solution is singular there",
    "budget": "the simulation was given up at t = {t:.6g} after many steps; simulate over a shorter time",
}


# Runge–Kutta steps in a step of the data, whose own error the fit has found small: theirs is 4⁴ times smaller.
STEPS_OF_NOISE = 4


class SimulationWarning(UserWarning):
    """A simulation stopped before its last time."""


@dataclass(frozen=True, eq=False)
class Driven:
    """Noise that moves a system: its deviation over a unit of time (of a map, over a step), and a usual step.

    It grows with a power of |x|, and is as given where |x| is as usual.
    """

    noise: Array
    power: Array
    usual: Array
    step: float
    generator: Any


def warn_stopped(why: str, n_reached: int, n_times: int) -> None:
    """Issue the warning of a simulation that stopped early."""
    warn_caller(f"{why} ({n_reached} of {n_times} times reached)", SimulationWarning)


def simulate_states(rhs: RightHandSide, x0: ArrayLike, t: Any, **settings: Any) -> Array:
    """Simulate one run, with the settings of `simulate_draws`; x at the times reached, shape (n_reached, n_states).

    There are fewer times, with a `SimulationWarning` that says why and when, if the solution left its limit, became
    singular, or took too long.

    Examples
    --------
    >>> from ardea.dynamics import Polynomials
    >>> decay = RightHandSide(Polynomials(1), [[0.0, -1.0]], n_states=1)
    >>> t = np.array([0.0, 1.0, 2.0])
    >>> bool(np.allclose(simulate_states(decay, [1.0], t, limit=10.0, atol=1e-12)[:, 0], np.exp(-t), rtol=1e-8))
    True
    >>> doubling = RightHandSide(Polynomials(1), [[0.0, 2.0]], n_states=1)
    >>> simulate_states(doubling, [1.0], 5, limit=100.0, atol=1.0, discrete_time=True)[:, 0]
    array([ 1.,  2.,  4.,  8., 16.])
    """
    x, stops = simulate_draws(rhs, x0, t, **settings)
    reached = int(np.sum(~np.isnan(x[0, :, 0])))
    if stops:
        warn_stopped(stops[0], reached, x.shape[1])
    return x[0, :reached]


def simulate_draws(
    rhs: RightHandSide,
    x0: ArrayLike,
    t: Any,
    *,
    limit: ArrayLike,
    atol: ArrayLike,
    rtol: float = TOLERANCE,
    discrete_time: bool = False,
    inputs: Callable[[float], ArrayLike] | ArrayLike | None = None,
    held: Sequence[int] = (),
    driven: Driven | None = None,
) -> tuple[Array, dict[int, str]]:
    """Integrate x' = f(x, u) by LSODA, which notices where equations are stiff; or iterate x_{n+1} = f(x_n, u_n).

    All draws of the coefficients are one large system, in which they share their steps. The tolerances of a step hold
    for each: LSODA bounds the largest error of all states. A draw whose |x| passes the limit is taken out, and the
    others go on. Returned are x of shape (n_draws, n_times, n_states), NaN where a draw was stopped, and why draws
    stopped, by their number.

    x0, at t[0], is for all draws or for each, and limit and atol for all states or for each. One iteration of a map
    leads from each time to the next; t may then be the number of states wanted, x0 included. inputs are u(t), or values
    at the times t (a map needs none for the last), between them a cubic spline or, if `held`, the last value. What is
    `driven` by noise is integrated by Runge–Kutta steps of fixed length, with a Gaussian increment after each.
    """
    times = checked_times(np.arange(float(t)) if discrete_time and np.ndim(t) == 0 else t)
    bound = np.broadcast_to(np.asarray(limit, dtype=float), rhs.n_states)
    if np.shape(x0) not in ((rhs.n_states,), (rhs.n_draws, rhs.n_states)):
        raise ValueError(f"x0 must have shape ({rhs.n_states},), one number for every state, got {np.shape(x0)}")
    start = checked_start(x0, bound)
    u = _inputs_at(inputs, times, rhs.n_inputs, between=not discrete_time, held=held)
    x = np.full((rhs.n_draws, len(times), rhs.n_states), np.nan)
    x[:, 0] = start
    with np.errstate(all="ignore"):
        if driven is not None:
            _drive(rhs, x, times, u, driven, discrete_time)
            stops: dict[int, str] = {}
        elif discrete_time:
            stops = _iterate(rhs, x, times, u, bound)
        else:
            absolute = np.broadcast_to(np.asarray(atol, dtype=float), rhs.n_states)
            stops = _integrate(rhs, x, times, u, (rtol, absolute), bound)
    inside = np.logical_and.accumulate(np.all(np.abs(x) <= bound, axis=2), axis=1)
    return np.where(inside[:, :, None], x, np.nan), stops


def _iterate(rhs: RightHandSide, x: Array, t: Array, u: Inputs | None, bound: Array) -> dict[int, str]:
    """Fill in x, and return why draws stopped."""
    stops: dict[int, str] = {}
    for i, now in enumerate(t[:-1]):
        x[:, i + 1] = rhs.stacked(x[:, i], None if u is None else u(now))
        for draw in np.flatnonzero(~np.all(np.abs(x[:, i + 1]) <= bound, axis=1)):
            stops.setdefault(int(draw), STOPS["limit"].format(t=t[i + 1]))
        if len(stops) == len(x):
            break
    return stops


def _drive(rhs: RightHandSide, x: Array, t: Array, u: Inputs | None, driven: Driven, discrete_time: bool) -> None:
    """Fill in x, moved by noise."""
    counts = np.ones(len(t) - 1) if discrete_time else np.ceil(STEPS_OF_NOISE * np.diff(t) / driven.step)
    if counts.sum() > MOST_STEPS:
        raise ValueError(f"The noise of the process takes {counts.sum():.0f} steps: simulate over a shorter time.")
    slope, state = partial(_slope, rhs, u), x[:, 0]
    for i, count in enumerate(counts.astype(int)):
        h = (t[i + 1] - t[i]) / count
        for k in range(count):
            now, before = t[i] + k * h, state
            state = slope(now, state) if discrete_time else state + h * _mean_slope(slope, now, state, h)
            spread = driven.noise * (np.abs(before) / driven.usual) ** driven.power
            spread = spread * (1.0 if discrete_time else np.sqrt(h))
            state = state + spread * driven.generator.standard_normal(state.shape)
        x[:, i + 1] = state


def _mean_slope(slope: Callable[[float, Array], Array], now: float, state: Array, h: float) -> Array:
    """Return the mean slope over a step, by Runge and Kutta's classical rule."""
    first = slope(now, state)
    second = slope(now + h / 2, state + h / 2 * first)
    third = slope(now + h / 2, state + h / 2 * second)
    return (first + 2 * second + 2 * third + slope(now + h, state + h * third)) / 6


def _integrate(
    rhs: RightHandSide, x: Array, t: Array, u: Inputs | None, tolerances: tuple[float, Array], bound: Array
) -> dict[int, str]:
    """Fill in x, and return why draws stopped."""
    stops: dict[int, str] = {}
    alive, state, now = np.arange(len(x)), x[:, 0], float(t[0])
    while len(alive) and now < t[-1]:
        slope = partial(_slope, rhs.of_draws(alive), u)
        first = int(np.searchsorted(t, now, side="right"))
        leg = _until_stop(slope, now, state, t[first:], tolerances, bound)
        x[alive, first : first + leg.values.shape[1]] = leg.values
        stops |= {int(draw): STOPS[leg.reason].format(t=leg.stopped) for draw in alive[leg.leaving]}
        alive, state, now = alive[~leg.leaving], leg.state[~leg.leaving], leg.now
    return stops


class _Leg(NamedTuple):
    """Where LSODA came to: time and states there, the solution at the output times passed, who stops, why and when."""

    now: float
    state: Array
    values: Array
    leaving: NDArray[np.bool_]
    reason: str
    stopped: float


def _slope(rhs: RightHandSide, u: Inputs | None, now: float, state: Array) -> Array:
    return rhs.stacked(state, None if u is None else u(now))


def _until_stop(
    slope: Callable[[float, Array], Array],
    now: float,
    state: Array,
    t: Array,
    tolerances: tuple[float, Array],
    bound: Array,
) -> _Leg:
    """Integrate the states of all draws, shape (draws, states), to the last time or until one of them has to stop.

    SciPy's `solve_ivp` does not get past a singularity: LSODA takes steps of length zero there, for ever.
    """
    begin, shape, done, reason = now, state.shape, 0, "budget"
    parts = [np.empty((state.size, 0))]

    def flat(s: float, y: Array) -> Array:
        return slope(s, y.reshape(shape)).ravel()

    # Draws do not act on each other, so the Jacobian of all is a band of blocks.
    band = {"lband": shape[1] - 1, "uband": shape[1] - 1} if shape[0] > 1 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # LSODA's own words on a failure
        absolute = np.tile(tolerances[1], shape[0])
        solver = LSODA(flat, now, state.ravel(), t[-1], rtol=tolerances[0], atol=absolute, **band)
        for _ in range(MOST_STEPS):
            solver.step()
            # A step to a value that is not finite has no error bound, for no draw: it does not count.
            if solver.status == "failed" or solver.t == now or not np.all(np.isfinite(solver.y)):
                reason = "collapse"
                break
            now, state = float(solver.t), solver.y.reshape(shape)
            passed = int(np.searchsorted(t, now, side="right"))
            if passed > done:
                parts.append(solver.dense_output()(t[done:passed]))
                done = passed
            reason = "" if np.all(np.abs(state) <= bound) else "limit"
            if reason or solver.status == "finished":
                break
            reason = "budget"
    leaving = ~np.all(np.abs(state) <= bound, axis=1) | (reason == "budget")
    if reason == "collapse":
        lost = ~np.all(np.isfinite(solver.y.reshape(shape)), axis=1)
        speed = np.nan_to_num(np.abs(slope(now, state)) / (np.abs(state) + tolerances[1]), nan=np.inf).max(axis=1)
        leaving = lost if lost.any() else speed == speed.max()
        # A step that was too long into nowhere is tried again, with short steps, as long as that leads on.
        leaving &= not (lost.any() and now - begin > LEAST_PROGRESS * (t[-1] - begin))
    stopped = _crossing(solver, bound) if reason == "limit" else now
    return _Leg(now, state, np.moveaxis(np.hstack(parts).reshape(*shape, -1), 1, 2), leaving, reason, stopped)


def _crossing(solver: LSODA, bound: Array) -> float:
    """Return when |x| passes its limit within the last step."""
    between = solver.dense_output()

    def excess(s: float) -> float:
        largest = float(np.max(np.abs(between(s).reshape(-1, len(bound))) / bound))
        return min(largest, 2.0) - 1.0 if np.isfinite(largest) else 1.0

    if not excess(solver.t_old) <= 0 < excess(solver.t):
        return float(solver.t_old)
    return float(brentq(excess, solver.t_old, solver.t, xtol=1e-14, rtol=1e-13))


@dataclass(frozen=True, eq=False, repr=False)
class Bands:
    """Pointwise quantiles of many simulations.

    Attributes
    ----------
    t : array of shape (n_times,)
        The times; dates where dates were asked for.
    lower, median, upper : array of shape (n_times, n_states), or (n_x, …, n_times) for a field, fields last
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
        Axis of lower, median and upper along which time runs: 0, for a field the number of space axes.
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
            f"<{100 * self.level:g} % bands of shape {self.median.shape}, {len(self.t)} times from {_short(self.t[0])} "
            f"to {_short(self.t[-1])}, {counted(len(self.samples), 'sample')} of which {stopped}>"
        )

    def at(self, rows: Index | None, t: Any) -> Bands:
        """Return bands of states at some of their times (None: at all), which are called as given, such as dates."""
        chosen: Any = slice(None) if rows is None else rows
        names = ("lower", "median", "upper", "n_running")
        parts = {name: getattr(self, name)[chosen] for name in names}
        dates = calendar(t)
        return replace(self, t=np.asarray(t if dates is None else dates), samples=self.samples[:, chosen], **parts)

    def to_frame(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return lower, median and upper as a pandas frame, one row per time.

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
        >>> found = Bands.of(np.arange(10.0).reshape(5, 2, 1), np.array([0.0, 1.0]))
        >>> list(found.to_frame(["y"]).columns)
        ['y lower', 'y median', 'y upper', 'n_running']
        """
        import pandas as pd

        parts = {"lower": self.lower, "median": self.median, "upper": self.upper}
        rows = {part: np.moveaxis(values, self.time_axis, 0).reshape(len(self.t), -1) for part, values in parts.items()}
        width = rows["median"].shape[1]
        known = default_names(width) if names is None else names
        if len(known) != width:
            raise ValueError(f"names must be {counted(width, 'name')}, got {len(known)}")
        columns = {f"{name} {part}": values[:, i] for i, name in enumerate(known) for part, values in rows.items()}
        return pd.DataFrame(columns, index=pd.Index(self.t, name="t")).assign(n_running=self.n_running)

    @classmethod
    def of(cls, samples: Array, t: ArrayLike, level: float = 0.95, time_axis: int = 0) -> Bands:
        """Return the bands of samples at the same times; a warning counts those that stopped.

        Parameters
        ----------
        samples : array of shape (n_samples, n_times, n_states), for fields (n_samples, n_x, …, n_times), fields last
            The samples, NaN where one was stopped.
        t : array of shape (n_times,)
            The times.
        level : float
            Share of the samples inside the bands.
        time_axis : int
            Axis of each sample along which time runs.

        Examples
        --------
        >>> found = Bands.of(np.arange(10.0).reshape(5, 2, 1), [0.0, 1.0], level=0.5)
        >>> found
        <50 % bands of shape (2, 1), 2 times from 0 to 1, 5 samples of which none stopped early>
        >>> found.lower[1], found.upper[1]
        (array([3.]), array([7.]))
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}")
        others = tuple(axis for axis in range(1, samples.ndim) if axis != 1 + time_axis)
        running: Any = np.isfinite(samples).all(axis=others)
        n_running, n_stopped = running.sum(axis=0), int(np.sum(~running[:, -1]))
        if n_stopped:
            message = f"{n_stopped} of {len(samples)} samples stopped before the last time; bands hold the others only"
            warn_caller(message, SimulationWarning)
        ordered, counts = np.sort(samples, axis=0), np.expand_dims(n_running, [axis - 1 for axis in others])
        tail = (1 - level) / 2
        lower, median, upper = (_quantile(ordered, counts, q) for q in (tail, 0.5, 1 - tail))
        return cls(np.asarray(t, dtype=float), lower, median, upper, level, n_stopped, n_running, samples, time_axis)


def _short(time: Any) -> str:
    return str(time) if isinstance(time, np.datetime64 | np.timedelta64) else f"{time:g}"


def _quantile(ordered: Array, counts: Index, q: float) -> Array:
    """Return a quantile of the first `counts` values along axis 0, linear between order statistics."""
    position = np.broadcast_to(q * np.maximum(counts - 1, 0), ordered.shape[1:])[None]
    below = np.floor(position).astype(np.intp)
    low = np.take_along_axis(ordered, below, axis=0)
    high = np.take_along_axis(ordered, np.ceil(position).astype(np.intp), axis=0)
    return np.asarray((low + (position - below) * (high - low))[0])


# Checks of what is given


def checked_times(t: ArrayLike) -> Array:
    """Return ascending times."""
    times = np.asarray(t, dtype=float)
    if times.ndim != 1 or not len(times) or not np.all(np.isfinite(times)) or not np.all(np.diff(times) > 0):
        raise ValueError("t must be one-dimensional, finite and strictly ascending")
    return times


def checked_start(x0: ArrayLike, limit: float | Array) -> Array:
    """Return a start that is finite and within the limit."""
    start = np.atleast_1d(np.asarray(x0, dtype=float))
    if not np.all(np.isfinite(start)):
        raise ValueError("the start must be finite")
    if not np.all(np.abs(start) <= limit):
        ends = ", ".join(f"±{one:.4g}" for one in np.ravel(limit))
        raise ValueError(f"the start lies outside the limits of the simulation, {ends} in the order of the states")
    return start


def _inputs_at(inputs: Any, t: Array, n_inputs: int, *, between: bool, held: Sequence[int]) -> Inputs | None:
    """Return u as a function of time: the user's, a spline through rows, or (for maps) the row of each time."""
    if (inputs is None) != (n_inputs == 0):
        raise ValueError(
            f"the equations have {counted(n_inputs, 'input')}; "
            + ("give as u their values, a row for every time, or a function of time" if n_inputs else "leave u out")
        )
    if inputs is None:
        return None
    if callable(inputs):
        return lambda s: _called(inputs, s, n_inputs)
    rows = np.asarray(inputs, dtype=float)
    rows = rows[:, None] if rows.ndim == 1 else rows
    needed = len(t) if between else len(t) - 1
    if rows.ndim != 2 or rows.shape[1] != n_inputs or len(rows) < needed or (between and len(rows) > needed):
        raise ValueError(f"inputs must have shape ({needed}, {n_inputs}), one row for each time, got {rows.shape}")
    if not np.all(np.isfinite(rows)):
        raise ValueError("inputs must be finite")
    if between and len(t) > 1:
        return input_curve(t, rows, held)
    return lambda s: rows[int(np.searchsorted(t, s))]


def _called(inputs: Callable[[float], ArrayLike], s: float, n_inputs: int) -> Array:
    values = np.atleast_1d(np.asarray(inputs(s), dtype=float))
    if values.shape != (n_inputs,):
        raise ValueError(f"inputs(t) must return {n_inputs} values, got shape {values.shape}")
    return values


def drawn_starts(x0: ArrayLike, x0_std: ArrayLike, n: int, generator: Any) -> Array:
    """Return a start for every draw, with standard deviations of its entries."""
    start, deviations = np.asarray(x0, dtype=float), np.asarray(x0_std, dtype=float)
    if deviations.shape not in ((), start.shape) or not np.all(deviations >= 0):
        raise ValueError(f"x0_std must be one number or one for each entry of x0 ({start.shape}), none below zero.")
    return np.asarray(start + deviations * generator.standard_normal((n, *start.shape)))
