"""States before a search and after it.

Before it: smoothed samples, and curves between samples that are few for a period. After it: what is known of the states
at the ends, given the coefficients, how the coefficients of all equations depend on each other, and what samples say
that the states miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import linalg
from scipy.interpolate import PPoly, make_interp_spline
from scipy.signal import resample
from scipy.stats import norm, pearson3

from ardea.core.evidence import Estimate, Tied
from ardea.core.lazy import explained
from ardea.core.problem import Array, Index
from ardea.dynamics.collocation import Nodes
from ardea.dynamics.differences import SplineSmoother
from ardea.dynamics.series import SAME_TIME, Series
from ardea.equation import Equation
from ardea.names import printable

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
# A sample is far off that lies so many robust deviations from its state, and from a curve through its neighbours, if at
# most this share of all do (conventions: normal noise never does, and what many do is no mistake of a few). Fewer
# samples than the next do not tell, and series of fewer than the last not each for itself.
FAR_OFF, MOST_FAR_OFF, FEWEST_JUDGED, FEWEST_ALONE = 8.0, 0.1, 20, 60
# Errors of neighbouring samples depend on each other where sums of their products, over so many lags, exceed what
# chance makes of them by so many deviations (about once in ten thousand states), each error counted up to the last many
# deviations (conventions).
SUMMED, DEPENDENT, LARGEST_ERROR = (1, 2, 6, 18), 4.0, 3.0
# The first or last reading is off where a cubic through the next ones misses it as far: so many rows together, and at
# most so many of them to see what is usual (conventions).
END_ROWS, MOST_WINDOWS = 8, 1000
# Noise changes that is so many times as large after one of some shares of the rows as before (conventions).
CHANGED, CUTS = 3.0, (0.25, 0.5, 0.75)
# Of a window around a sample, its place.
MIDDLE = END_ROWS // 2
# A quarter of all errors is smaller than this many deviations, if they are normal. What is usual is at least the last
# share of what a fit leaves (a convention): of rounded readings curves miss many by nothing at all.
QUARTER, NORMAL_QUARTER, LEAST_USUAL = 0.25, 0.3186, 0.1
TINY = float(np.finfo(float).tiny)


# Before a search


def smoothed_logarithms(nodes: Nodes, states: Array, discrete_time: bool) -> Array:
    """Return the states as `smoothed`, some of them as logarithms: else what large samples leave hides small ones.

    Zeros have no logarithm: what is around them tells.
    """
    seen = nodes.seen & ~(states & (nodes.y == 0))
    logarithms = np.log(np.where(seen & states, np.abs(nodes.y), 1.0))
    out = smoothed(replace(nodes, y=np.where(states, logarithms, nodes.y), seen=seen), 0, discrete_time)
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
    return [PPoly([[line.sum()]], [0.0, 1.0]) for line in values.T]  # constants: the only sample, if any


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


@explained("ambiguity")
def may_be_aliased(nodes: Nodes, states: Array) -> Iterator[str]:
    """Yield what is to be warned of a state that turns more often than every second row of even times."""
    for part in nodes.stretches:
        rows = part[np.any(nodes.seen[part], axis=1)]
        steps, moves = np.diff(nodes.t[rows]), np.diff(states[rows], axis=0)
        turns = np.sum(moves[1:] * moves[:-1] < 0, axis=0)
        if rows.size > FEWEST_SMOOTHED and np.ptp(steps) < UNEVEN * steps[0] and np.any(turns > rows.size / 2):
            yield (
                "There are fewer than four rows in a period: a motion that is faster by whole turns from row to row "
                "has the same samples, so that other equations may be the true ones. Take readings more often, or at "
                "uneven times"
            )
            return


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


@dataclass(frozen=True, eq=False)
class KnownRows:
    """The states at every row, as a `KnownState` each: where noise moves the system, a run goes on from the latest."""

    mean: Array  # (r, n)
    gain: Array  # (r, n, k)
    covariance: Array  # (r, n, n)
    time: Array  # (r,)
    series: Index  # (r,)

    @classmethod
    def of(cls, linear: Linearised) -> KnownRows:
        """Return the states at all rows of a fit; as `KnownState.at`, with the blocks of H⁻¹ on its diagonal."""
        nodes, factor, n = linear.of.nodes, linear.chain.factor, linear.of.n
        rows = np.flatnonzero(np.any(nodes.seen, axis=1))
        covariance, gain = np.zeros((rows.size, n, n)), np.zeros((rows.size, n, len(linear.support)))
        if factor is not None:
            covariance = factor.covariances[0][rows]
        if factor is not None and linear.support:
            gain = -factor.solved(linear.chain.pulled(linear.border.rows())).reshape(len(nodes.t), n, -1)[rows]
        return cls(linear.point.states[rows], gain, covariance, nodes.t[rows], nodes.series[rows])

    @property
    def in_order(self) -> bool:
        """Whether the series are numbered from 0, one after the other, and the times of each ascend."""
        later = np.diff(self.series)
        return bool(
            self.series.size and self.series[0] == 0 and np.all((later == 1) | (np.diff(self.time) > 0) & (later == 0))
        )

    def of_series(self, number: int) -> list[KnownState]:
        """Return the states at the rows of one series."""
        own = np.flatnonzero(self.series == number)
        times = self.time.tolist()
        return [KnownState(self.mean[row], self.gain[row], self.covariance[row], times[row]) for row in own]


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

    The states are those at the first and the last row of the first series and, where noise moves them, at all rows.
    """

    correlation: Array  # (k, k), of coefficients of different equations; zero within an equation
    first: KnownState
    last: KnownState
    step: float  # the mean step of the trajectory
    tied: Tied | None = None  # how laws tie the coefficients of all equations
    rows: KnownRows | None = None  # where noise moves the states

    def before(self, times: Any, series: int = 0) -> KnownState:
        """Return the state from which to go on: the latest that is known at the first of the times or before it.

        Where no noise moves the states, those between the first row and the last follow from the first.
        """
        known = [self.first, self.last] if self.rows is None else self.rows.of_series(series)
        begin = np.ravel(times)[0] + SAME_TIME * self.step if np.ndim(times) else -np.inf
        return next((one for one in reversed(known) if one.time <= begin), known[0])

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


# Samples that the states miss


@explained("ambiguity")
def far_off(nodes: Nodes, errors: Array, sizes: Array, names: Sequence[str]) -> Iterator[str]:
    """Yield what is to be warned of single samples and of noise that changes; long series have noise of their own."""
    for state, name in enumerate(names[: errors.shape[1]]):
        every = np.flatnonzero(nodes.seen[:, state])
        parts = [every[nodes.series[every] == number] for number in np.unique(nodes.series[every])]
        parts = parts if min(map(len, parts), default=0) >= FEWEST_ALONE else [every]
        parts = [seen for seen in parts if seen.size >= FEWEST_JUDGED]
        left = [np.abs(errors[seen, state]) for seen in parts]
        missed = [_missed(_times(nodes, seen), nodes.y[seen, state], MIDDLE) for seen in parts]
        if (louder := _noisier(left, missed)) is not None:
            noisy, quiet = (nodes.series[parts[number][0]] + 1 for number in louder[:2])
            yield (
                f"The noise of {printable(name)} in series {noisy} is {louder[2]:.1f} times that in series {quiet}, "
                "and is taken to be the same in all: intervals and terms may be wrong. See whether the quieter series "
                "alone give the same equations"
            )
        shares = [sizes[seen[MIDDLE:-MIDDLE], state] for seen in parts]
        found = list(map(_far, parts, left, missed, shares))
        if changed := next((own for *_, own in found if own), None):
            row, ratio = changed
            times = f"{max(ratio, 1 / ratio):.1f} times {'larger' if ratio > 1 else 'smaller'}"
            yield (
                f"The noise of {printable(name)} is {times} from about {_time(nodes, row)} on, and is taken to be the "
                "same everywhere: intervals may be too wide or too narrow. See whether the quieter rows alone give the "
                "same equations"
            )
        far = [one for own, changed in found if not changed for one in own]
        if 0 < len(far) <= max(1, MOST_FAR_OFF * every.size):
            shown = ", ".join(f"{_time(nodes, row)} ({ratio:.0f} times)" for row, ratio in far[:3])
            more = f" and {len(far) - 3} more" * (len(far) > 3)
            yield (
                f"{name} lies many times its usual noise off its curve at {shown}{more}. If these readings are "
                "mistakes, set them to NaN: they widen or shift the intervals, and several of them change the terms"
            )


def _times(nodes: Nodes, rows: Index) -> Array:
    """Return times of some rows that ascend through all series."""
    steps = np.diff(nodes.t[rows])
    return np.append(0.0, np.cumsum(np.where(steps > 0, steps, nodes.usual_step)))


def _time(nodes: Nodes, node: int) -> str:
    """Return when a node is and, of several series, in which."""
    return f"t = {nodes.t[node]:.6g}" + (f" of series {nodes.series[node] + 1}" if nodes.series[-1] > 0 else "")


def _noisier(left: Sequence[Array], missed: Sequence[Array]) -> tuple[int, int, float] | None:
    """Return which of several series is the noisiest, which the quietest and by how much, where noise clearly differs.

    Both by what the states miss and by what cubics through neighbours miss: a model may fit one series alone.
    """
    if len(left) < 2:
        return None
    medians = np.array([list(map(np.median, errors)) for errors in (left, missed)])
    noisy, quiet = int(np.argmax(medians[0])), int(np.argmin(medians[0]))
    ratio = float(np.min(medians[:, noisy] / np.maximum(medians[:, quiet], TINY)))
    return (noisy, quiet, ratio) if ratio > CHANGED else None


def _far(
    seen: Index, left: Array, missed: Array, shares: Array
) -> tuple[list[tuple[int, float]], tuple[int, float] | None]:
    """Return samples of some rows, in shares of some sizes far from the states and their neighbours, and how far.

    A wrong model misses many samples, a right one follows fast motion: what is far from both curves is neither. Where
    noise changes, from which node on it is how many times as large.
    """
    off, around = missed / shares, np.pad(missed, MIDDLE)
    # A sample far off spoils the curves of its neighbours: a quarter of these may be left to tell what is usual.
    usual = 1.4826 * float(np.median(left))
    usual = float(np.clip(np.quantile(off, QUARTER) / NORMAL_QUARTER, LEAST_USUAL * usual, usual))
    alone = missed >= np.max(sliding_window_view(around, 2 * MIDDLE + 1), axis=1)
    large = np.pad(left > FAR_OFF * usual, 1)
    beside = ~(large[2:] | large[:-2])  # near the ends, where several rows are off, the curve is
    beside[MIDDLE:-MIDDLE] = (off > FAR_OFF * usual) & alone
    far = np.flatnonzero(large[1:-1] & beside) if usual > 0 else seen[:0]
    changed = _noise_changes(left, off, far) if far.size else None
    at = None if changed is None else (int(seen[changed[0]]), changed[1])
    return [(int(seen[row]), float(left[row] / usual)) for row in far], at


def _noise_changes(errors: Array, missed: Array, far: Index) -> tuple[int, float] | None:
    """Return from which row on noise is how many times as large, if both what a fit and what cubics miss say so.

    Few samples that are far off do not move medians; many spoil those of the cubics around them, or those of the fit.
    All of them lie where noise is larger.
    """
    cuts = []
    for share in CUTS:
        row = int(share * errors.size)
        if min(row, errors.size - row) >= FEWEST_JUDGED:
            after = [np.median(errors[row:]), np.median(missed[row - MIDDLE :])]
            before = [np.median(errors[:row]), np.median(missed[: row - MIDDLE])]
            logarithms = np.log(np.maximum(after, TINY) / np.maximum(before, TINY))
            louder = logarithms * (1 if np.all(far >= row) else -1 if np.all(far < row) else 0)
            if np.all(louder > np.log(CHANGED)):
                cuts.append((float(np.min(louder)), row, float(np.exp(logarithms[0]))))
    return max(cuts)[1:] if cuts else None


@explained("misfit")
def dependent_errors(nodes: Nodes, errors: Array, names: Sequence[str]) -> Iterator[str]:
    """Yield what is to be warned of states whose samples are missed by what is no noise: errors follow each other.

    With errors e of variance one, Q = Σ_k Σ_i e_i e_{i+k} over K lags has the variance of its number N of products and
    the skewness 3(K − 1)/√N: long runs are rare, and large. It is told by the normal deviate of the same chance.
    """
    for state, name in enumerate(names[: errors.shape[1]]):
        rows = [own[nodes.seen[own, state]] for own in nodes.stretches]
        parts = [errors[own, state] for own in rows if own.size > 1]
        usual = np.sqrt(np.mean(np.concatenate(parts) ** 2)) if parts else 0.0
        if not usual > 0:
            continue
        scaled = [np.clip(part / usual, -LARGEST_ERROR, LARGEST_ERROR) for part in parts]
        excess = 0.0
        for most in SUMMED:
            pairs = [(part[lag:], part[:-lag]) for part in scaled for lag in range(1, most + 1) if part.size > 4 * most]
            total, number = sum(float(a @ b) for a, b in pairs), max(sum(a.size for a, _ in pairs), 1)
            chance = pearson3.sf(total / np.sqrt(number), 3 * (most - 1) / np.sqrt(number))
            excess = max(excess, float(norm.isf(max(chance, TINY))))
        if excess > DEPENDENT:
            yield (
                f"What the samples of {printable(name)} leave is not noise: errors of rows near each other go the same "
                f"way more than chance allows (as rare as {excess:.1f} standard deviations). Most likely terms stand "
                "in for one that is not among the candidates, or the errors of neighbouring readings depend on each "
                "other. Do not trust the intervals; try other terms"
            )


@explained("ambiguity")
def ends_off(series: Sequence[Series], names: Sequence[str]) -> Iterator[str]:
    """Yield what is to be said of first and last samples that a cubic through the next ones misses by far."""
    for one, (state, name) in product(series, enumerate(names[: series[0].x.shape[1]])):
        seen = np.isfinite(one.x[:, state]) & np.isfinite(one.t)
        t, y = one.t[seen], one.x[seen, state]
        for row, missed in ((0, _missed(t, y)), (-1, _missed(t[::-1], y[::-1]))) if t.size >= FEWEST_JUDGED else ():
            usual = 1.4826 * float(max(np.median(missed), np.median(missed[1:FEWEST_JUDGED])))
            if missed[0] > FAR_OFF * usual > missed[1]:
                yield (
                    f"{name} at t = {t[row]:.6g} ({y[row]:.4g}) lies {missed[0] / usual:.0f} times farther off its "
                    "next readings than is usual. If that is a mistake and no fast start, set it to NaN: equations "
                    "bend to reach it"
                )


def _missed(t: Array, y: Array, place: int = 0) -> Array:
    """Return by how much cubics through their neighbours miss samples, in units of the noise that this has by chance.

    One sample of every window is left out: one inside it or, of no more windows than tell what is usual, the first.
    With V the powers of the times of the others, the cubic is e₁ᵀV⁺y there: 1 and −e₁ᵀV⁺ are the weights.
    """
    times, values = (sliding_window_view(one, END_ROWS + (place > 0)) for one in (t, y))
    if place == 0:
        spread = np.linspace(0, len(times) - 1, MOST_WINDOWS).astype(int)
        few = np.union1d(np.arange(min(FEWEST_JUDGED, len(times))), spread)
        times, values = times[few], values[few]
    scaled = (times - times[:, place, None]) / (times[:, -1:] - times[:, :1])
    others = np.delete(np.arange(times.shape[1]), place)
    cubic = np.linalg.pinv(scaled[:, others, None] ** np.arange(4))[:, 0]
    missed = values[:, place] - np.einsum("ij,ij->i", cubic, values[:, others])
    return np.asarray(np.abs(missed) / np.sqrt(1 + np.einsum("ij,ij->i", cubic, cubic)))
