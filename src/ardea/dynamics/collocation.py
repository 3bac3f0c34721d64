"""Steps of the equations between neighbouring points in time, and their derivatives.

A flow x′ = f(x, u) with f = Fx + ξΘ(x, u) goes from x_a to x_b in a time h when r = 0 (Hermite–Simpson, of order h⁵):

    x_m = (x_a + x_b)/2 + h/8 (f_a − f_b),    r = x_b − x_a − h/6 (f_a + 4f_m + f_b)
    ∂r/∂x_a = −1 − h/6 (J_a + 2J_m + h/2 J_m J_a),    ∂r/∂x_b = 1 − h/6 (J_b + 2J_m − h/2 J_m J_b)
    ∂r/∂ξ_lj = −h/6 (θ_a + 4θ_m + θ_b)_j e_l − h²/12 (θ_a − θ_b)_j J_m e_l

It is implicit, so that stiff flows do not break it. For a map r = x_b − f(x_a).

The steps lead along `Nodes`: all sample times, and points between them. Series stand one after the other. A sample that
is missing, in one state or in all, is simply not seen; a gap is bridged by points a usual step apart, up to
`LONGEST_GAP` of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

from ardea.core.lazy import cached_property
from ardea.core.problem import Array, Index
from ardea.core.subsets import Support
from ardea.dynamics.chain import loops
from ardea.dynamics.libraries import Library
from ardea.dynamics.series import Series, held_inputs, input_curve, noise_levels
from ardea.names import counted

# A convention: a gap of more usual steps than this is not bridged; a chaotic flow forgets more than that anyway.
LONGEST_GAP = 30
# A map is not followed over a missing row: between samples of it nothing can be interpolated.
BROKEN_MAP = 1.5
# Where a curve through an input's other rows misses, over as many rows left out as a gap lacks, more than this share of
# how much it varies, it is not known in the gap (a convention); gaps of up to so many steps are not looked at, others
# at so many places at most.
UNKNOWN_INPUT, SHORT_GAP, PLACES_TRIED = 0.1, 2.5, 12
# A variance of more than this many times another is more than chance makes of some dozens of rows (a convention).
STILL = 2.0
# A convention: three terms and a start leave as many rows again to judge them by.
FEWEST_ROWS = 8


@dataclass(frozen=True, eq=False)
class Nodes:
    """Points in time with what was measured there."""

    t: Array  # (points,)
    y: Array  # (points, n), zero where not seen
    seen: NDArray[np.bool_]  # (points, n), whether there is a sample
    joined: NDArray[np.bool_]  # (points − 1,), whether a step leads from a point to the next
    inputs: Array  # (points, inputs)
    middle_inputs: Array  # (points − 1, inputs)
    end_inputs: Array  # (points − 1, inputs), those of the next point but where they jump there
    series: Index  # (points,), which series each belongs to
    substeps: int = 1  # into which every usual step is cut

    @property
    def n_states(self) -> int:
        """Number of states n."""
        return self.y.shape[1]

    @cached_property
    def steps(self) -> Array:
        """Lengths of the steps, 0 where there is none: the middle of two series is between their states."""
        return np.where(self.joined, np.diff(self.t), 0.0)

    @cached_property
    def jumps(self) -> bool:
        """Whether inputs jump at points where a step ends and another begins."""
        return not np.array_equal(self.end_inputs[self.joined], self.inputs[1:][self.joined])

    @cached_property
    def usual_step(self) -> float:
        """Mean length of a step."""
        return float(np.mean(np.diff(self.t)[self.joined]))

    @cached_property
    def ends(self) -> Array:
        """The least and the largest sample of every state, (2, n); infinite of states without."""
        low = np.where(self.seen, self.y, np.inf).min(axis=0)
        return np.array([low, np.where(self.seen, self.y, -np.inf).max(axis=0)])

    @property
    def one_sign(self) -> Array:
        """1 where the samples of a state have one sign, 0 where some are zero, −1 where signs differ, or none is."""
        return np.asarray(np.prod(np.sign(self.ends), axis=0))

    @property
    def decades(self) -> Array:
        """How many decades the samples of every state go through; 0 where they have both signs, or some are zero."""
        return np.abs(np.diff(np.log10(np.abs(np.where(self.one_sign > 0, self.ends, 1.0))), axis=0)[0])

    @property
    def counts(self) -> Array:
        """Number of samples of every state."""
        return self.seen.sum(axis=0).astype(float)

    def with_constants(self, constants: Array) -> Nodes:
        """Return the nodes with constants as further inputs."""
        if not constants.size:
            return self
        parts = (self.inputs, self.middle_inputs, self.end_inputs)
        more = [np.hstack([one, np.broadcast_to(constants, (len(one), constants.size))]) for one in parts]
        return replace(self, inputs=more[0], middle_inputs=more[1], end_inputs=more[2])

    @property
    def stretches(self) -> list[Index]:
        """The points of every stretch that steps lead through."""
        return np.split(np.arange(len(self.t)), np.flatnonzero(~self.joined) + 1)


@dataclass(frozen=True, eq=False)
class Point:
    """States and coefficients, with the noise that they were found at."""

    states: Array  # (points, n)
    coefficients: Array  # (n, d), and constants inside terms (`inside`)
    noise: Array  # (n,): s, in units of |x|^power
    process: Array  # (n,), or (steps, n) where it grows with the states: q
    tilt: Array | None = None  # (n, d): the half gradient by ξ of what the states' own spread adds to −2 ln p(y)

    @property
    def usual_process(self) -> Array:
        """The root mean square of q over all steps, (n,)."""
        return np.asarray(np.sqrt(np.mean(np.atleast_2d(self.process) ** 2, axis=0)))


@dataclass(frozen=True, eq=False)
class Fit:
    """A support at its best point."""

    support: Support  # candidates of all equations, l·d + j
    point: Point
    deviance: float  # −2 ln p(y), up to a constant


def nodes_of(series: Sequence[Series], substeps: int = 1, hidden: int = 0, discrete_time: bool = False) -> Nodes:
    """Return the nodes of some series, with every usual step cut in so many; `hidden` states have no samples at all.

    The usual step of a map is the least between times, for all its steps are equal.
    """
    rows = sum(_sampled(one).size for one in series)
    if rows < FEWEST_ROWS:
        raise ValueError(
            f"The data have {counted(rows, 'row')} with samples; a search for equations needs at least {FEWEST_ROWS}."
        )
    if discrete_time:
        usual = float(np.min(np.concatenate([np.diff(one.t[np.isfinite(one.t)]) for one in series])))
    else:
        usual = _usual_step(series)
    longest = usual * (BROKEN_MAP if discrete_time else LONGEST_GAP)
    cut = [_parts(one, usual, longest, substeps, hidden) for one in series]
    parts = [part for several in cut for part in several]
    t, y, inputs = (np.concatenate([part[i] for part in parts]) for i in range(3))
    ends = np.cumsum([len(part[0]) for part in parts])
    owners = np.repeat(np.arange(len(cut)), [sum(len(part[0]) for part in several) for several in cut])
    joined = np.ones(len(t), dtype=bool)
    joined[ends - 1] = False
    middle, end = (np.concatenate([part[i] for part in parts])[:-1] for i in (3, 4))
    seen = np.isfinite(y)
    return Nodes(t, np.where(seen, y, 0.0), seen, joined[:-1], inputs, middle, end, owners, substeps)


def _usual_step(series: Sequence[Series]) -> float:
    """Return the median step, or that of the longer ones where rows come in bursts."""
    parts = [(one.t[_sampled(one)], one.x[_sampled(one)]) for one in series]
    steps = np.concatenate([np.diff(t) for t, _ in parts])
    usual = float(np.median(steps))
    while np.any(longer := steps > LONGEST_GAP * usual) and _in_bursts(parts, LONGEST_GAP * usual):
        usual = float(np.median(steps[longer]))
    return usual


def _in_bursts(parts: Sequence[tuple[Array, Array]], longest: float) -> bool:
    """Whether stretches between gaps say nothing of motion: too short, or with motion between them, but none within.

    Within, a state does not move whose variance about the means of stretches is that of differences of neighbours.
    """
    stretches = [part for t, x in parts for part in np.split(x, np.flatnonzero(np.diff(t) > longest) + 1)]
    if sum(map(len, stretches)) < FEWEST_ROWS * len(stretches):
        return True
    if len(stretches) < FEWEST_ROWS:
        return False
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a state without a sample in some stretch
        between = np.nanvar([np.nanmean(part, axis=0) for part in stretches], axis=0)
        within = np.nanmean([np.nanvar(part, axis=0, ddof=1) for part in stretches], axis=0)
        noise = np.nanmean(np.concatenate([np.diff(part, axis=0) for part in stretches]) ** 2, axis=0) / 2
    return bool(not np.any(within > STILL * noise) and np.any(between > STILL * within))


def _sampled(one: Series) -> Index:
    return np.flatnonzero(np.isfinite(one.t) & np.any(np.isfinite(one.x), axis=1))


def _parts(one: Series, usual: float, longest: float, substeps: int, hidden: int) -> list[tuple[Array, ...]]:
    """Return t, y, and inputs at the start, the middle and the end of the steps, of every stretch between long gaps."""
    rows, gaps = _sampled(one), unknown_inputs(one)
    rows = rows[~np.any([(rows > first) & (rows < last) for first, last in gaps], axis=0)] if gaps else rows
    control = _interpolated(one.t, one.inputs, one.held)
    parts: list[tuple[Array, ...]] = []
    broken = np.diff(one.t[rows]) > longest
    for first, last in gaps:
        broken |= (rows[:-1] <= first) & (rows[1:] >= last)
    for stretch in np.split(rows, np.flatnonzero(broken) + 1):
        if stretch.size < 2:
            continue
        times = one.t[stretch]
        counts = substeps * np.maximum(np.round(np.diff(times) / usual).astype(int), 1)
        start = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        t = np.append(times[start] + np.diff(times)[start] * within / counts[start], times[-1])
        y = np.full((len(t), one.x.shape[1] + hidden), np.nan)
        y[np.append(np.cumsum(counts) - counts, counts.sum()), : one.x.shape[1]] = one.x[stretch]
        following = np.append(t[1:], t[-1])
        parts.append((t, y, control(t), control((t + following) / 2), control(following, before=True)))
    return parts


def unknown_inputs(one: Series) -> list[tuple[int, int]]:
    """Return the rows before and after gaps, of rows or of readings, in which inputs that move are not known.

    A curve through the rows of an input is as good in a gap as it is where as many rows are left out. Inputs that
    switch are taken to do so at the end of a gap, which is told of where it happens.
    """
    known = np.flatnonzero(np.isfinite(one.t) & np.all(np.isfinite(one.inputs), axis=1))
    steps = np.diff(one.t[known])
    if not one.inputs.shape[1] or steps.size < FEWEST_ROWS:
        return []
    usual = float(np.median(steps))
    long = np.flatnonzero(steps > SHORT_GAP * usual)
    lacking = np.round(steps[long] / usual).astype(int) - 1
    sure = Series(one.t[known], one.x[known], one.inputs[known], held=one.held)
    unknown = {number: _loses_inputs(sure, number) for number in np.unique(lacking).tolist()}
    return [(int(known[i]), int(known[i + 1])) for i, n in zip(long, lacking.tolist(), strict=True) if unknown[n]]


def _loses_inputs(one: Series, missing: int) -> bool:
    """Return whether curves through all but some rows in a row miss these."""
    last = len(one.t) - missing - 2
    missed = []
    for first in np.unique(np.linspace(2, last - 1, PLACES_TRIED).astype(int)) if last > FEWEST_ROWS else ():
        away = np.arange(first, first + missing)
        left = np.delete(np.arange(len(one.t)), away)
        curve = input_curve(one.t[left], one.inputs[left], one.held)
        missed.append(np.max(np.abs(curve(one.t[away]) - one.inputs[away]), axis=0))
    moving = ~(held_inputs([one.inputs]) | np.isin(np.arange(one.inputs.shape[1]), one.held))
    spread = np.std(one.inputs, axis=0)
    return not missed or bool(np.any(np.median(missed, axis=0)[moving] > UNKNOWN_INPUT * spread[moving]))


def _interpolated(t: Array, values: Array, held: Sequence[int]) -> Callable[..., Array]:
    """Return known inputs as a function of time."""
    if not values.shape[1]:
        return lambda times, before=False: np.empty((len(times), 0))
    known = np.isfinite(t) & np.all(np.isfinite(values), axis=1)
    if known.sum() < 2:
        raise ValueError("u must have at least two rows without NaN.")
    return input_curve(t[known], values[known], held)


def sample_noise(nodes: Nodes, sizes: Array, measured: int) -> Array:
    """Return the noise of every measured state's samples, read off their differences, in shares of some sizes."""
    levels = []
    for state in range(measured):
        known = [np.flatnonzero(nodes.seen[:, state] & (nodes.series == one)) for one in np.unique(nodes.series)]
        known = [rows for rows in known if rows.size > 1]
        parts = [Series(nodes.t[rows], nodes.y[rows][:, [state]], np.empty((rows.size, 0))) for rows in known]
        levels.append(float(noise_levels(parts, [sizes[rows][:, [state]] for rows in known])[0]))
    return np.array(levels)


# Steps


class RightSide:
    """f(x, u) = Fx + ξΘ(x, u) at many points, shape (n, points), and its derivative by x, (n, n, points)."""

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
        """Return ∂f/∂x, shape (n, n, points), point by point in memory."""
        flat = self._slopes.values(columns).T @ self._slope_weights.T
        out = flat.reshape(columns.shape[1], self.n, self.n).transpose(1, 2, 0)
        return np.asarray(out if self.fixed is None else out + self.fixed[:, :, None])


@dataclass(frozen=True, eq=False)
class Border:
    """∂r/∂ξ of k coefficients: what each changes in r of its own equation and, through the middle of a step, in all."""

    n: int
    equations: Index
    own: Array  # (k, steps)
    through: Array | None = None  # (k, steps)
    jacobians: Array | None = None  # J_m, (steps, n, n)

    def rows(self, steps: slice = slice(None)) -> Array:
        """Return ∂r/∂ξ of some steps, (steps, n, k)."""
        own = self.own[:, steps].T
        if self.jacobians is None or self.through is None:
            out = np.zeros((len(own), self.n, len(self.equations)))
        else:
            out = self.jacobians[steps][:, :, self.equations] * self.through[:, steps].T[:, None]
        out[:, self.equations, np.arange(len(self.equations))] += own
        return out

    def along(self, change: Array) -> Array:
        """Return ∂r/∂ξ times a change of ξ, (steps, n)."""
        weights = np.zeros((self.n, len(change)))
        weights[self.equations, np.arange(len(change))] = change
        out = (weights @ self.own).T
        if self.jacobians is not None and self.through is not None:
            out += np.einsum("skl,ls->sk", self.jacobians, weights @ self.through)
        return np.asarray(out)

    def within(self, equation: int) -> Array:
        """Return what the coefficients of an equation change in its own r, (steps, coefficients)."""
        mine = self.equations == equation
        if self.jacobians is None or self.through is None:
            return self.own[mine].T
        return (self.own[mine] + self.through[mine] * self.jacobians[:, equation, equation]).T

    def combined(self, weights: Array) -> Border:
        """Return the border of ζ in ξ = Wζ, W without weights between equations."""
        through = None if self.through is None else weights.T @ self.through
        return replace(self, own=weights.T @ self.own, through=through)


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
    def ends(self) -> Array:
        """States and inputs where the steps end."""
        return np.vstack([self.states[1:].T, self.nodes.end_inputs.T])

    def at_both(self, function: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Return what a function says of the start and of the end of every step; its last axis has the points."""
        values = function(self.columns)
        return values[..., :-1], function(self.ends) if self.nodes.jumps else values[..., 1:]

    @cached_property
    def _values(self) -> tuple[Array, Array]:
        return self.at_both(self.right.values)

    @cached_property
    def middles(self) -> Array:
        """States and inputs between the nodes."""
        x, (f_a, f_b) = self.states.T, self._values
        inner = (x[:, :-1] + x[:, 1:]) / 2 + self.nodes.steps / 8 * (f_a - f_b)
        return np.vstack([inner, self.nodes.middle_inputs.T])

    @cached_property
    def _middle_values(self) -> Array:
        return self.right.values(self.middles)

    @cached_property
    def residual(self) -> Array:
        """What every step leaves, r of shape (steps, n)."""
        x, (f_a, f_b) = self.states.T, self._values
        if self.discrete_time:
            return np.asarray((x[:, 1:] - f_a).T)
        simpson = f_a + 4 * self._middle_values + f_b
        return np.asarray((x[:, 1:] - x[:, :-1] - self.nodes.steps / 6 * simpson).T)

    @cached_property
    def middle_jacobians(self) -> Array:
        """J_m, (steps, n, n)."""
        return self.right.jacobians(self.middles).transpose(2, 0, 1)

    @cached_property
    def derivatives(self) -> tuple[Array, Array]:
        """∂r/∂x_a and ∂r/∂x_b, shape (steps, n, n)."""
        J_a, J_b = (J.transpose(2, 0, 1) for J in self.at_both(self.right.jacobians))
        if self.discrete_time:
            return -J_a, np.broadcast_to(np.eye(self.right.n), J_a.shape)
        before, after = loops(self.right.n).step_blocks(J_a, self.middle_jacobians, J_b, self.nodes.steps)
        return before, after

    def border(self, equations: Index, terms: Index) -> Border:
        """Return ∂r/∂ξ of some coefficients."""
        used, place = np.unique(terms, return_inverse=True)
        own, through = self._by_terms(tuple(used.tolist()))
        if through is None:
            return Border(self.right.n, equations, own[place])
        return Border(self.right.n, equations, own[place], through[place], self.middle_jacobians)

    def pulled_border(self, rows: Array, n_terms: int) -> Array:
        """Return (∂r/∂ξ)ᵀ rows of all coefficients, shape (p, n, terms), for rows of shape (steps, n, p)."""
        own, through = self._by_terms(tuple(range(n_terms)))
        steps, n, p = rows.shape
        out = own @ rows.reshape(steps, n * p)
        if through is not None:
            out += through @ (self.middle_jacobians.transpose(0, 2, 1) @ rows).reshape(steps, n * p)
        return np.asarray(out.reshape(n_terms, n, p).transpose(2, 1, 0))

    def _by_terms(self, terms: tuple[int, ...]) -> tuple[Array, Array | None]:
        """Return what terms change in r of their own equation and, through the middle, in all; (terms, steps)."""
        compiled, h = self.library.compiled(len(self.columns), terms), self.nodes.steps
        theta_a, theta_b = self.at_both(compiled.values)
        if self.discrete_time:
            return -theta_a, None
        own = -h / 6 * (theta_a + 4 * compiled.values(self.middles) + theta_b)
        return own, -(h**2) / 12 * (theta_a - theta_b)

    def between(self, nodes: Nodes) -> Array:
        """Return the states at other nodes, with the slopes of the equations at the own ones."""
        slopes, states = self.right.values(self.columns).T, self.states
        out = np.empty((len(nodes.t), self.right.n))
        for old, new in zip(self.nodes.stretches, nodes.stretches, strict=True):
            out[new] = CubicHermiteSpline(self.nodes.t[old], states[old], slopes[old])(nodes.t[new])
        return out

    def truncation(self) -> Array:
        """Return r at the exact solution, of order h⁵: 16/15 of its difference to two steps of half the length.

        These meet at x_m, where the first leaves r_a = O(h⁴); with x_m such that it leaves nothing, the second leaves
        r_b + (1 + h/2 J_m) r_a.
        """
        if self.discrete_time:
            return np.zeros_like(self.residual)
        n, (f_a, f_b), f_m, h = self.right.n, self._values, self._middle_values, self.nodes.steps
        a, m, b = self.columns[:, :-1], self.middles, self.ends
        # Inputs on the parabola through their three values, states as in the middle.
        quarter_a, quarter_b = (3 * a + 6 * m - b) / 8, (3 * b + 6 * m - a) / 8
        quarter_a[:n] = (a[:n] + m[:n]) / 2 + h / 16 * (f_a - f_m)
        quarter_b[:n] = (m[:n] + b[:n]) / 2 + h / 16 * (f_m - f_b)
        first = m[:n] - a[:n] - h / 12 * (f_a + 4 * self.right.values(quarter_a) + f_m)
        second = b[:n] - m[:n] - h / 12 * (f_m + 4 * self.right.values(quarter_b) + f_b)
        carried = h / 2 * np.einsum("ikl,li->ki", self.middle_jacobians, first)
        return np.asarray(16 / 15 * (self.residual - (first + second + carried).T))
