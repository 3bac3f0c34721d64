"""States before a search and after it.

Before it: smoothed samples, and curves between samples that are few for a period. After it: what is known of the states
at the ends, given the coefficients, and how the coefficients of all equations depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg
from scipy.interpolate import make_interp_spline
from scipy.signal import resample

from ardea.core.evidence import Estimate, Tied
from ardea.core.problem import Array
from ardea.dynamics.collocation import Nodes
from ardea.dynamics.differences import SplineSmoother
from ardea.equation import Equation

if TYPE_CHECKING:
    from ardea.dynamics.trajectory import Linearised

# Fewer samples than this are interpolated: cross-validation of splines of degree seven needs more.
FEWEST_SMOOTHED = 24
# Squared correlations of residuals, added up over so many lags, above which they are not noise. Measured on 82 flows at
# 1 to 20 % noise: up to 0.1 where smoothing works, 0.3 to 0.5 where samples are too few for it.
LAGS, MEMORY = 20, 0.2
# Steps that differ by less than this share are even.
UNEVEN = 1e-3
# Of samples at uneven times, at most so many: the limits of frequencies that are tried, in shares of half their mean
# rate, the ridge in shares of their variance, and the share that samples left out may be missed by (conventions).
MOST_UNEVEN, BAND_LIMITS, UNEVEN_RIDGE, MOST_MISSED = 1000, (1.0, 0.85, 0.7, 0.55, 0.4, 0.3), 0.01, 0.5


# Before a search


def smoothed_logarithms(nodes: Nodes, states: Array, discrete_time: bool) -> Array:
    """Return the states as `smoothed`, some of them as logarithms: else what large samples leave hides small ones."""
    logarithms = np.log(np.where(np.logical_and(nodes.seen, states), np.abs(nodes.y), 1.0))
    out = smoothed(replace(nodes, y=np.where(states, logarithms, nodes.y)), 0, discrete_time)
    return np.asarray(np.where(states, np.sign(nodes.y.sum(axis=0)) * np.exp(np.where(states, out, 0.0)), out))


def smoothed(nodes: Nodes, hidden: int = 0, discrete_time: bool = False) -> Array:
    """Return a first guess of the states at the nodes: splines through each state's own samples; of a map the samples.

    The last `hidden` states are the rates of change of the first.
    """
    out = np.zeros_like(nodes.y)
    shown = nodes.n_states - hidden
    for part in nodes.stretches:
        clocks, clock = np.unique(nodes.seen[part, :shown], axis=1, return_inverse=True)
        for number, seen in enumerate(clocks.T):
            own, states = part[seen], np.flatnonzero(clock.ravel() == number)
            inside = np.clip(nodes.t[part], *nodes.t[own[[0, -1]]]) if own.size else nodes.t[part]
            smoothers = _splines(nodes.t[own], nodes.y[np.ix_(own, states)], 0 if discrete_time else own.size)
            for state, spline in zip(states, smoothers, strict=True):
                out[part, state] = spline(inside)
                if state < hidden:
                    out[part, shown + state] = spline(inside, 1)
    return out


def _splines(t: Array, values: Array, n_smoothed: int) -> list[Callable[..., Array]]:
    """Return splines through the samples of states with one clock, smoothed where they are enough."""
    if n_smoothed >= FEWEST_SMOOTHED:
        return [*SplineSmoother.splines(values, t)]
    if t.size > 1:
        return [make_interp_spline(t, line, k=min(3, t.size - 1)) for line in values.T]

    def constant(value: float) -> Callable[..., Array]:
        return lambda times, derivative=0: np.full(len(times), 0.0 if derivative else value)

    return [constant(line[0] if t.size else 0.0) for line in values.T]


def undersampled(nodes: Nodes, states: Array, size: Array) -> bool:
    """Return whether smoothing leaves more than some size of a state, and what it leaves has a memory.

    Noise has none: the squares of its first L correlations add up to about L/N. An oscillation of few samples a period
    has; at uneven times, where correlations do not show it, `band_limited` decides.
    """
    left = np.where(nodes.seen, nodes.y - states, 0.0)
    variance = np.sum(left**2, axis=0) / np.maximum(nodes.counts, 1.0)
    lags = range(1, min(LAGS, len(left) - 1) + 1)
    products = np.array([np.sum(left[lag:] * left[:-lag], axis=0) for lag in lags]) / len(left)
    memory = np.sum((products / np.maximum(variance, np.finfo(float).tiny)) ** 2, axis=0)
    uneven = np.ptp(nodes.steps[nodes.joined]) > UNEVEN * nodes.usual_step
    return bool(np.any((variance > size**2) & (uneven | (memory > MEMORY + 2 * LAGS / len(left)))))


def may_be_aliased(nodes: Nodes, states: Array) -> bool:
    """Return whether a state turns more often than every second row of even times, as in fewer than four a period."""
    for part in nodes.stretches:
        rows = part[np.any(nodes.seen[part], axis=1)]
        steps, moves = np.diff(nodes.t[rows]), np.diff(states[rows], axis=0)
        turns = np.sum(moves[1:] * moves[:-1] < 0, axis=0)
        if rows.size > FEWEST_SMOOTHED and np.ptp(steps) < UNEVEN * steps[0] and np.any(turns > rows.size / 2):
            return True
    return False


def band_limited(nodes: Nodes) -> Array | None:
    """Return states at the nodes without any frequency above half that of the samples; None where these explain little.

    Samples that are few for every period look like noise to a smoothing spline, and are not. Of every stretch with even
    times, the line through its ends is taken off, and the rest continued as an odd function, so that it is periodic.
    """
    out = np.empty_like(nodes.y)
    for part in nodes.stretches:
        rows = part[np.all(nodes.seen[part], axis=1)]
        times, gaps = nodes.t[rows], np.diff(rows)
        if rows.size <= FEWEST_SMOOTHED:
            return None
        if np.any(gaps != gaps[0]) or np.ptp(np.diff(times)) > UNEVEN * (times[1] - times[0]):
            found = _band_limited(times, nodes.y[rows], nodes.t[part])
            if found is None:
                return None
            out[part] = found
            continue
        line = make_interp_spline(times[[0, -1]], nodes.y[rows[[0, -1]]], k=1)
        rest = nodes.y[rows] - line(times)
        periodic = np.vstack([rest, -rest[-2:0:-1]])
        out[part] = line(nodes.t[part]) + resample(periodic, gaps[0] * len(periodic), axis=0)[: len(part)]
    return out


def _band_limited(t: Array, y: Array, times: Array) -> Array | None:
    """Return the smoothest curves without frequencies above a limit at some times, for samples at uneven ones.

    With K(t, t′) = sinc(b(t − t′)/h), h the mean step, these are K(times, t)(K + λ)⁻¹y. The limit b is the one that
    misses samples least when each is left out: by ((K + λ)⁻¹y)_i/(K + λ)⁻¹_ii. None where all limits miss the half.
    """
    if t.size > MOST_UNEVEN:
        return None
    middle, h, best = y.mean(axis=0), (t[-1] - t[0]) / (t.size - 1), (MOST_MISSED, 0.0, y)
    for limit in BAND_LIMITS:
        inverse = np.linalg.inv(np.sinc(limit * (t[:, None] - t) / h) + UNEVEN_RIDGE * np.eye(t.size))
        weights = inverse @ (y - middle)
        missed = np.sum((weights / inverse.diagonal()[:, None]) ** 2, axis=0) / np.sum((y - middle) ** 2, axis=0)
        best = min(best, (float(missed.max()), limit, weights), key=lambda one: one[0])
    _, limit, weights = best
    return middle + np.sinc(limit * (times[:, None] - t) / h) @ weights if limit else None


# After it


@dataclass(frozen=True, eq=False)
class KnownState:
    """A state that is N(mean + gain (ξ − ξ̂), covariance) where the coefficients ξ are given."""

    mean: Array  # (n,)
    gain: Array  # (n, k)
    covariance: Array  # (n, n)
    time: float

    def draws(self, deviations: Array, generator: Any) -> Array:
        """Return one for every draw of the coefficients, given as deviations from their mean, (draws, k)."""
        own = Estimate(self.mean, self.covariance, float("nan"), np.inf)
        return np.asarray(own.sample(len(deviations), generator) + deviations @ self.gain.T)

    @classmethod
    def at(cls, linear: Linearised, nodes: Sequence[int]) -> list[KnownState]:
        """Return the states at some nodes of a fit.

        With E the columns of the unit matrix of a node, −EᵀH⁻¹RᵀQ⁻¹B and EᵀH⁻¹E.
        """
        n, factor, k = linear.of.n, linear.chain.factor, len(linear.support)
        gain, covariance = np.zeros((len(nodes), n, k)), np.zeros((len(nodes), n, n))
        if factor is not None:
            units = np.hstack([np.eye(linear.errors.size, n, -n * node) for node in nodes])
            solved, pulled = factor.solved(units), linear.chain.pulled(linear.border.rows())
            gain = -(solved.T @ pulled).reshape(gain.shape)
            covariance = np.stack([solved[n * j : n * (j + 1), n * i : n * (i + 1)] for i, j in enumerate(nodes)])
        states, times = linear.point.states[list(nodes)], linear.of.nodes.t[list(nodes)].tolist()
        return [cls(*one) for one in zip(states, gain, covariance, times, strict=True)]


def state_deviations(linear: Linearised, covariance: Array) -> Array:
    """Return the standard deviation of every state, (points, n), given the covariance of the coefficients."""
    factor = linear.chain.factor
    if factor is None:
        return np.full(linear.errors.shape, np.nan)
    variance = np.einsum("ikk->ik", factor.covariances[0]).copy()
    if linear.support:
        solved = factor.solved(linear.chain.pulled(linear.border.rows()))
        variance += np.einsum("ij,jk,ik->i", solved, covariance, solved).reshape(variance.shape)
    return np.sqrt(variance)


@dataclass(frozen=True, eq=False)
class Joint:
    """What the equations, each with a covariance of its own, do not tell: how they depend on each other and on states.

    The states are those at the first and the last row of the first series.
    """

    correlation: Array  # (k, k), of coefficients of different equations; zero within an equation
    first: KnownState
    last: KnownState
    step: float  # the mean step of the trajectory
    tied: Tied | None = None  # how laws tie the coefficients of all equations

    def before(self, times: Any) -> KnownState:
        """Return the state from which to go on: the last one if all times are past the data."""
        return self.last if np.ndim(times) and np.ravel(times)[0] > self.last.time else self.first

    @staticmethod
    def between(sizes: Sequence[int], correlation: Array) -> Array:
        """Return a correlation with zeros within the equations, which have so many terms."""
        owner = np.repeat(np.arange(len(sizes)), sizes)
        return np.where(
            owner[:, None] == owner, 0.0, np.clip(correlation, -1.0, 1.0)
        )  # of tied ones ±1 but for rounding

    def estimate(self, equations: Sequence[Equation]) -> Estimate:
        """Return the estimate of all kept coefficients, equation by equation."""
        std = np.concatenate([one.parameters.std for one in equations])
        own = linalg.block_diag(*(one.parameters.covariance for one in equations))
        mean = np.concatenate([one.parameters.mean for one in equations])
        if self.tied is not None:  # those that several equations share are the same to the last digit
            mean = self.tied.offset + self.tied.directions @ mean[self.tied.free]
        degrees = min(one.degrees for one in equations)
        return Estimate(mean, own + self.correlation * np.outer(std, std), float("nan"), degrees)

    def sample(self, equations: Sequence[Equation], n: int, generator: Any) -> Array:
        """Return n draws of all kept coefficients, (n, k)."""
        estimate = self.estimate(equations)
        tied = self.tied
        return estimate.sample(n, generator) if tied is None else tied.sample(estimate, n, generator)
