"""First guesses of the states at the nodes: smoothed samples, and curves between samples that are few for a period."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.signal import resample

from ardea.core.problem import Array
from ardea.dynamics.collocation import Nodes
from ardea.dynamics.differences import SplineSmoother

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
