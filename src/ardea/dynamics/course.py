"""The course of a search on the likelihood of a trajectory: starts, the search, and what is tried at its end.

Starts are smoothed samples (as logarithms too, where these go through many decades) and, where samples are few for
every period, states between them. At its end a search is taken further: on steps so short that their error does not
matter, with noise that grows with the states, and with noise of the process, where the likelihood is clearly for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import special

from ardea.core.problem import Array
from ardea.core.subsets import Propose, Support
from ardea.dynamics.collocation import Fit, Point, nodes_of, sample_noise
from ardea.dynamics.inside import unfolded
from ardea.dynamics.knowledge import Knowledge
from ardea.dynamics.libraries import Library
from ardea.dynamics.pursuit import FEW_SAMPLES, HOPELESS, MOST_ALONE, SLIGHT_GAIN, Pursuit
from ardea.dynamics.series import Series
from ardea.dynamics.states import band_limited, smoothed, smoothed_logarithms, undersampled
from ardea.dynamics.trajectory import LEVEL_FACTOR, NOISE_POWERS, Likelihood, Linearised

# Where smoothing leaves more than this share of a state's deviation, and it is not noise, samples are few for every
# period. A search then starts from states between them, with steps so many times shorter and noise of this share
# (conventions).
LOUD, SUBSTEPS_BETWEEN, QUIET = 0.5, 4, 0.1
# Samples of one sign that go through more than so many decades are looked at as logarithms, too (a convention: with
# noise in proportion, splines then lose the smallest ones).
MANY_DECADES = 2.0
# A convention: noise in shares of the deviation that the search for a map begins with.
NOISE_OF_MAPS = 0.03
# Where what an earlier search prefers leaves so many times the noise of the samples, every equation alone is searched
# on smoothed states (a convention).
POOR_START = 1.5
# Derived: r has the error h⁵x⁽⁵⁾/2880 of Simpson's rule and about twice that of the middle.
FIFTH, STEP_ERROR = 5, 3 / 2880
# How often s and q are learned anew because the support has changed; the gain at which the first fits look for noise of
# the process at once, and the loss at which others than the best are not tried with it where the best misses samples by
# more than their noise (else CLEAR_GAIN is: learning s and q gains little but where states have collapsed).
MOST_RELEARNED, LARGE_GAIN = 3, 50.0
# How much deviance noise of the process, or noise that grows with the states, must save to be believed in (odds of 400
# to 1); with few samples, which cannot save that much, a slight gain is enough, and noise of the process is tried even
# where no level of q is likelier than the last.
CLEAR_GAIN = 12.0
# Error of the steps, in standard errors of a coefficient, above which steps are made shorter; the shortest; how many of
# the best supports are fitted again.
LARGEST_BIAS, MOST_SUBSTEPS, MOST_REFINED = 0.1, 8, 3
# Noise that grows with the states is not tried where, at the states found, it is less likely by this: a fit of its own
# hardly gains so much (a convention).
WORTH_A_FIT = 30.0
# How often kinds of noise are proposed again from the states that the best of them has (a bound on work).
MOST_KINDS = 3
# On so many rows, or twice as many as there are terms, chance makes no term a sum of others. Convention.
FEWEST_TRIALS = 50
# What is left of a term that is a sum of others is rounding error; T³ next to 1, T, T² leaves 1e-7 at 293 ± 2.
ROUNDING_OF_SUMS = 1e-12
# The expected number of false terms, where it is not told.
FALSE_TERMS = 0.02


@dataclass(frozen=True, eq=False)
class LeftOpen:
    """What an earlier search leaves open where candidates are many: some of them, and the model that it prefers."""

    candidates: Support
    support: Support
    coefficients: Array  # (n, d)


@dataclass(frozen=True)
class Wishes:
    """How equations are searched, as far as users decide."""

    discrete_time: bool = False
    order: int = 1
    false_terms: float | None = None  # None: nothing is promised
    noise: str = "auto"
    noise_std: Array | None = None
    shown: bool = False
    left_open: LeftOpen | None = None
    knowledge: Knowledge | None = None

    @property
    def any_noise(self) -> bool:
        """Whether the data decide how noise grows with the states."""
        return self.noise == "auto" and self.noise_std is None


def price_of(false_terms: float, n_candidates: int, n_samples: float, together: int = 1) -> float:
    """Return what a term must lower the deviance by, so that chance keeps so many of all candidates.

    M ln(1 + fF/M), F the quantile of Fisher's distribution with M degrees of freedom for the f coefficients that a term
    has together (for one, F = z² with Student's z): the gain in M ln RSS of a regression with learned noise. With
    1/(1 + fF/M) = x, which has the Beta distribution of M/2 and f/2, it is −M ln x.
    """
    p = min(false_terms / n_candidates, 1.0)
    degrees = max(n_samples * 0.75, 1.0)
    return float(-degrees * np.log(special.betaincinv(degrees / 2, together / 2, p)))


def pursued(series: Sequence[Series], library: Library, propose: Propose, wishes: Wishes) -> tuple[Pursuit, Fit, Array]:
    """Find the equations of some series; return the search at its end, its fit, and the noise without that of q."""
    from tqdm import tqdm

    hidden = series[0].x.shape[1] * (wishes.order - 1)
    nodes = nodes_of(series, 1, hidden, wishes.discrete_time)
    states = smoothed(nodes, hidden, wishes.discrete_time)
    data = np.hstack([states, nodes.inputs])
    if any(term.letters for term in library.listed(data.shape[1])):
        library, knowledge = unfolded(library, data, range(hidden, nodes.n_states), wishes.knowledge)
        wishes = replace(wishes, knowledge=knowledge)

    def on(substeps: int, power: Array | float) -> Likelihood:
        nodes = nodes_of(series, substeps, hidden, wishes.discrete_time)
        fixed = np.eye(nodes.n_states, k=hidden) if hidden else None  # F of x′ = v: rates of change are states
        return Likelihood(nodes, library, wishes.discrete_time, fixed, power, wishes.noise_std, wishes.knowledge)

    with tqdm(unit="fits", disable=not wishes.shown) as bar:
        of, many = on(1, NOISE_POWERS.get(wishes.noise, 0.0)), (nodes.decades > MANY_DECADES) & (hidden == 0)
        starts = [(of, states)]
        if np.any(many) and (np.any(of.power) or wishes.any_noise):
            own = of.with_power(many.astype(float)) if wishes.any_noise else of
            starts = [(own, smoothed_logarithms(nodes, many, wishes.discrete_time)), *starts[own is of :]]
        if wishes.any_noise and of.n_samples <= FEW_SAMPLES:  # terms that are wrong fit noise of the wrong kind
            one_sign = nodes.one_sign >= 0
            starts += [
                (of.with_power(np.where(one_sign, power, 0.0)), states) for power in (0.5, 1.0) if np.any(one_sign)
            ]
        spread = np.nanstd(np.concatenate([one.x for one in series]), axis=0)

        def between(loud: float) -> list[tuple[Likelihood, Array]]:
            """Return a start from states between the samples, where smoothing leaves so much that is not noise."""
            if wishes.discrete_time or hidden or not undersampled(of.nodes, states, loud * spread):
                return []
            finer = on(SUBSTEPS_BETWEEN, of.power)
            curves = band_limited(finer.nodes)
            return [] if curves is None else [(finer, curves)]

        starts, found = [*between(LOUD), *starts], list[tuple[Pursuit, Array]]()

        def search(likelihood: Likelihood, begun: Array, so_far: Pursuit | None) -> None:
            pursuit = replace(_beginning(likelihood, begun, hidden, propose, wishes), told=bar.update)
            found.append(_pursued(pursuit, on, wishes, so_far))

        for likelihood, begun in starts:
            if any(_kinds(one.of) == _kinds(likelihood) and one.start.states is begun for one, _ in found):
                continue  # an earlier search has come to this kind of noise
            search(likelihood, begun, min((one for one, _ in found), key=lambda one: one.score(one.best), default=None))
            ends = [(_kinds(one.of), one.best.support) for one, _ in found]
            if _explained(*found[-1], likelihood, spread) or len(set(ends)) < len(ends):  # or two starts agree
                break
        if all(np.any(left[: len(spread)] > LOUD * spread) and one.of.nodes.substeps == 1 for one, left in found):
            for likelihood, begun in between(0.0):
                search(likelihood, begun, None)
        return _decided(found)


def _decided(found: Sequence[tuple[Pursuit, Array]]) -> tuple[Pursuit, Fit, Array]:
    """Return the search to be believed of several, and its fit: supports compete, each with its likeliest noise.

    Noise that grows with the states must be clearly likelier.
    """
    fits = [fit for one, _ in found for fit in one.met.values()]
    any_of = replace(found[0][0], elsewhere=fits)
    best = any_of.chosen(any_of.rivals).support

    def price(one: tuple[Pursuit, Array]) -> float:
        return one[0].score(one[0].met[best]) + SLIGHT_GAIN * bool(np.any(one[0].of.power))

    pursuit, left = min((one for one in found if best in one[0].met), key=price)
    return replace(pursuit, elsewhere=fits), pursuit.met[best], left


def _explained(pursuit: Pursuit, left: Array, begun: Likelihood, spread: Array) -> bool:
    """Return whether a search has ended with no more noise than samples have, which is clearly not additive.

    Other starts would not lead to less. Chance does not explain loud samples by little noise.
    """
    of, best, measured = pursuit.of, pursuit.best.point, len(spread)
    if begun.nodes.substeps > 1:
        return bool(np.all(left[:measured] < LOUD / 2 * spread))
    additive, own = (float(np.sum(one.misfit_of(best.states))) for one in (of.with_power(0.0), of))
    if additive < own + WORTH_A_FIT or pursuit.with_process or of.noiseless(best):
        return False
    sampled = sample_noise(of.nodes, of.sizes(best.states), measured)
    return bool(np.all(best.noise[:measured] < POOR_START * sampled))


def _pursued(
    pursuit: Pursuit, on: Callable[[int, Array | float], Likelihood], wishes: Wishes, so_far: Pursuit | None
) -> tuple[Pursuit, Array]:
    """Return a search from its start at its end, and the noise at which the equations hold exactly."""

    def has_rival(one: Pursuit) -> bool:
        """Return whether noise of another kind explains without noise of the process what this kind does not."""
        return so_far is not None and not so_far.with_process and one.score(one.best) > least + CLEAR_GAIN

    start, least = pursuit.start, np.inf if so_far is None else so_far.score(so_far.best)
    if wishes.left_open is None:
        pursuit.begin(start, pursuit.candidates)
        if pursuit.of.inside.n_constants:  # values on a grid do not yet fit: that is no noise of the process
            pursuit.search()
        early = pursuit if has_rival(pursuit) else with_process(pursuit, LARGE_GAIN)
    else:
        early = pursuit = _continued(pursuit, wishes.left_open)
    if early.with_process:
        # What it has found may do without it.
        for one in early.ranking[: 2 * MOST_REFINED]:
            point = replace(start, states=one.point.states, coefficients=one.point.coefficients)
            pursuit.fit(one.support, point, pursuit.levels)
        if pursuit.score(pursuit.best) > early.score(early.best) + HOPELESS:
            return _pushed_in_proportion(pursuit, early) if wishes.any_noise else early, _size(pursuit)
    if not pursuit.narrow:
        pursuit.search()
    pursuit = refined(pursuit, on)
    if wishes.any_noise:
        pursuit = with_growing_noise(pursuit)
    last = pursuit if has_rival(pursuit) else with_process(pursuit)
    if last.with_process and wishes.any_noise:
        last = _pushed_in_proportion(pursuit, last)
    if early.with_process and early.score(early.best) < last.score(last.best) - CLEAR_GAIN:
        last = early
    return last, _size(pursuit)


def _continued(pursuit: Pursuit, known: LeftOpen) -> Pursuit:
    """Return a search from what an earlier one prefers and, where that is poor, from smoothed states."""
    start = pursuit.start
    pursuit.fit(known.support, replace(start, coefficients=known.coefficients), pursuit.levels[-2:])
    pursuit = pursuit.opened()
    candidates = range(pursuit.of.n * pursuit.of.d)
    if np.any(pursuit.best.point.noise > POOR_START * start.noise) and len(candidates) <= MOST_ALONE:
        pursuit.begin(start, tuple(candidates))
        pursuit = pursuit.opened()
    return pursuit


def _beginning(of: Likelihood, states: Array, hidden: int, propose: Propose, wishes: Wishes) -> Pursuit:
    """Return a search that starts from some states, with the error of the present steps as noise of the process."""
    size = of.usual_size(states)
    if wishes.noise_std is not None:
        noise = wishes.noise_std
    elif wishes.discrete_time:  # differences say nothing of the noise of a map
        noise = NOISE_OF_MAPS * states.std(axis=0) / size
    elif of.nodes.substeps > 1:  # samples that are few for every period
        noise = QUIET * states.std(axis=0) / size
    else:
        sampled = sample_noise(of.nodes, of.sizes(of.nodes.y), of.n - hidden)
        noise = np.concatenate([sampled, (states.std(axis=0) / size)[of.n - hidden :]])
    noise = np.maximum(noise, of.floor)
    everything = tuple(j for j in of.inside.opened(of.knowledge.candidates) if j >= hidden * of.d)
    if wishes.knowledge is None and not of.inside.n_constants:
        own = set(distinct(of.library, states, of.nodes.inputs))
        everything = tuple(j for j in everything if j % of.d in own)
    candidates = everything if wishes.left_open is None else wishes.left_open.candidates
    error: Array | float = 0.0
    if not wishes.discrete_time and len(states) > FIFTH:
        unbroken = np.all(sliding_window_view(of.nodes.joined, FIFTH), axis=1)
        differences = (np.diff(states, FIFTH, axis=0) / of.growth(states)[FIFTH // 2 : -(FIFTH // 2)])[unbroken]
        error = STEP_ERROR * np.sqrt(np.sum(differences**2, axis=0) / max(len(differences), 1))
    levels = of.ladder(states, noise, error)
    several = of.knowledge.of_series
    choices = len(everything) if several is None else len(several.terms(everything))
    asked, promised = wishes.false_terms or FALSE_TERMS, wishes.false_terms is not None
    price = price_of(asked, choices, of.n_samples)
    group_price = 0.0 if several is None else price_of(asked, choices, of.n_samples, several.number)
    start = Point(states, np.zeros((of.n, of.d)), noise, levels[0])
    narrow = wishes.left_open is not None
    return Pursuit(
        of, start, levels, price, propose, candidates, promised, narrow=narrow, group_price=group_price, error=error
    )


def distinct(library: Library, states: Array, inputs: Array) -> list[int]:
    """Return the terms that are no sum of multiples of earlier ones at these inputs, whatever the states.

    With an input that is 0 or 1, u² is u; with one that is 2 or 5, u² is 7u − 10. Every state is dealt to inputs
    on its own and at random: only inputs, and what a function makes of the range of a state, leave sums. The
    diagonal of R in Θ = QR is what a column adds to those before it.
    """
    d = library.n_terms(states.shape[1] + inputs.shape[1])
    if not inputs.size:
        return list(range(d))
    seen = np.unique(inputs, axis=0)
    rows = np.tile(seen, (-(-max(FEWEST_TRIALS, 2 * d) // len(seen)), 1))
    dealt = np.random.default_rng(0).choice(len(states), size=(len(rows), states.shape[1]))
    theta = library.evaluate(np.hstack([np.take_along_axis(states, dealt, axis=0), rows]))
    added = np.abs(np.diag(np.linalg.qr(theta, mode="r")))
    return np.flatnonzero(added > ROUNDING_OF_SUMS * np.linalg.norm(theta, axis=0)).tolist()


def _size(pursuit: Pursuit) -> Array:
    """Return the noise of every state in its own units."""
    point = pursuit.best.point
    return np.asarray(point.noise * pursuit.of.usual_size(point.states))


def step_bias(linear: Linearised) -> Array:
    """Return what the error of the steps adds to the free parameters, in units of their standard errors."""
    factor = linear.chain.factor
    if factor is None or not linear.support:
        return np.zeros(linear.of.knowledge.n_free(linear.support))
    error, k = linear.steps.truncation(), len(linear.support)
    S, b, _ = linear.chain.reduced(factor, linear.border.rows, k, error, np.zeros_like(linear.errors))
    S, b = linear.freed(S, b)
    covariance = np.linalg.pinv(S, hermitian=True)
    shift = covariance @ b
    return np.asarray(np.abs(shift) / np.sqrt(np.maximum(covariance.diagonal(), np.finfo(float).tiny)))


def _is_step_error(of: Likelihood, point: Point) -> bool:
    """Return whether what looks like noise of the process is the error of the steps."""
    return bool(np.all(_step_error(of, point) > point.usual_process / 2))


def _step_error(of: Likelihood, point: Point, growth: Array | float = 1.0) -> Array:
    """Return the root mean square of the error of the steps in every state, in shares of what q grows with."""
    return np.sqrt(np.mean((of.steps(point).truncation() / growth)[of.nodes.joined] ** 2, axis=0))


def refined(pursuit: Pursuit, on: Callable[[int, Array | float], Likelihood]) -> Pursuit:
    """Return the search with q next to nothing, on steps so short that their error does not matter."""
    fit, of, substeps = pursuit.best, pursuit.of, pursuit.of.nodes.substeps
    last = of.ladder(fit.point.states, fit.point.noise)[-1]
    exact = replace(fit.point, process=last)
    bias = float(np.max(step_bias(of.linearised(exact, fit.support)), initial=0.0))
    # The error falls with the fourth power of the steps. It is part of the intervals, all of them without noise.
    largest = 1.0 if of.noiseless(fit.point) else LARGEST_BIAS
    finer = min(MOST_SUBSTEPS, substeps * max(1, int(np.ceil((bias / largest) ** 0.25))))
    if finer == substeps and (substeps > 1 or np.all(pursuit.levels[-1] < LEVEL_FACTOR * last)):
        return pursuit
    new = of if finer == substeps else on(finer, of.power)
    ranked = pursuit.ranking[:MOST_REFINED]
    starts = [replace(one.point, states=of.steps(one.point).between(new.nodes)) for one in ranked]
    # What error is left where steps cannot be shorter counts as noise of the process.
    error = _step_error(new, starts[0], new.growth(starts[0].states)) * (bias * (substeps / finer) ** 4 > 2 * largest)
    levels = new.ladder(starts[0].states, fit.point.noise, error)
    after = replace(pursuit, of=new, levels=levels, error=error, met={})
    for one, start in zip(ranked, starts, strict=True):
        # At the noise of the best so far: what another fit was left with says nothing of its support on shorter steps.
        noise = after.best.point.noise if after.met else start.noise
        after.fit(one.support, replace(start, noise=noise), levels[-1:] if pursuit.narrow else levels[-3:])
    if not pursuit.narrow:
        after.search(thorough=of.noiseless(fit.point))
    return refined(after, on)


def with_growing_noise(pursuit: Pursuit) -> Pursuit:
    """Return the search with noise that grows with the states, where the likelihood is clearly for it.

    Kinds are proposed as the states of the best fit so far see them: one for all states, and for each its own.
    """
    fit, of = pursuit.best, pursuit.of
    if of.noiseless(fit.point):
        return pursuit
    first, best, met = list[Pursuit](), pursuit, {_kinds(of)}
    for _ in range(MOST_KINDS):
        new = {_kinds(one): one for one in _likely_kinds(best) if _kinds(one) not in met}
        if not new:
            break
        met |= set(new)
        first += [_again(pursuit, one, [fit]) for one in new.values()]
        best = min([pursuit, *first], key=lambda one: one.best.deviance)
    if best.best.deviance >= fit.deviance - CLEAR_GAIN:
        return pursuit
    # Which of them is right may depend on terms that only it shows: each is searched.
    found = [_again(pursuit, one.of, pursuit.ranking[:MOST_REFINED]) for one in first]
    for one in found:
        one.search()
    return min(found, key=lambda one: one.score(one.best))


def _kinds(of: Likelihood) -> tuple[float, ...]:
    return tuple(np.broadcast_to(of.power, of.n).tolist())


def _likely_kinds(pursuit: Pursuit) -> list[Likelihood]:
    """Return the likelihoods with noise of other kinds that are worth a fit at the states of the best."""
    of, states, powers = pursuit.of, pursuit.best.point.states, list(NOISE_POWERS.values())
    tried = [of.with_power(power) for power in powers]
    misfits = np.array([one.misfit_of(states) for one in tried])
    worth = float(np.sum(of.misfit_of(states))) + WORTH_A_FIT
    found = [one for one, own in zip(tried, misfits, strict=True) if own.sum() < worth]
    # Every state with the noise that is the likeliest for it, where that is clearly more than one kind for all.
    if np.min(misfits.sum(axis=1)) - np.sum(misfits.min(axis=0)) > CLEAR_GAIN:
        found.append(of.with_power(np.array(powers)[misfits.argmin(axis=0)]))
    return found


def _again(pursuit: Pursuit, new: Likelihood, fits: Sequence[Fit]) -> Pursuit:
    """Return some fits on a likelihood of the same nodes whose noise has other units."""
    best = fits[0].point
    noise = _in_units(best, pursuit.of, new)
    levels = new.ladder(best.states, noise, pursuit.error)
    start = replace(pursuit.start, noise=_in_units(pursuit.start, pursuit.of, new))
    after = replace(pursuit, of=new, levels=levels, met={}, start=start)
    for one in fits:
        after.fit(one.support, replace(one.point, noise=noise), levels[-2:])
    return after


def _in_units(point: Point, of: Likelihood, new: Likelihood) -> Array:
    """Return the noise of a point in the units of another likelihood."""
    return np.asarray(np.maximum(point.noise * of.usual_size(point.states) / new.usual_size(point.states), new.floor))


def with_process(pursuit: Pursuit, gain: float = CLEAR_GAIN) -> Pursuit:
    """Return the search with noise of the process, where the likelihood gains so much by it.

    Supports are compared at the same s and q, which are learned for the best of them, again while that changes.
    """
    of, few = pursuit.of, pursuit.few
    ranked = [pursuit.best, *(one for one in pursuit.ranking if one is not pursuit.best)]
    if of.noiseless(ranked[0].point):  # none of the process either
        return pursuit
    likely = _likeliest(pursuit, ranked[0])
    if not few if likely is ranked[0] else _is_step_error(of, likely.point):
        return pursuit
    learned = [_learned(pursuit, likely)]
    if pursuit.score(learned[0]) > pursuit.score(ranked[0]) + LARGE_GAIN:
        return pursuit
    worth = LARGE_GAIN if _collapsed(pursuit, ranked[0]) else CLEAR_GAIN
    learned += _rivals_learned(pursuit, ranked[1 : 3 * MOST_REFINED if few else MOST_REFINED], learned[0], worth)
    best = pursuit.chosen(learned)
    needed = min(gain, SLIGHT_GAIN) if few else gain
    if few and pursuit.degree(best.support) < pursuit.degree(ranked[0].support):
        needed = -SLIGHT_GAIN
    # Less than was left to the last level says nothing of the process: digits end there.
    if pursuit.score(best) > pursuit.score(ranked[0]) - needed or np.all(best.point.process <= pursuit.levels[-1]):
        return pursuit
    for _ in range(MOST_RELEARNED):
        after = replace(pursuit, with_process=True, met={}, exact=ranked[0])
        for one in learned:
            after.fit(one.support, replace(one.point, noise=best.point.noise, process=best.point.process), [])
        found = after.search()
        before, best = best, of.learned(found.support, found.point)
        if best.support == before.support:
            break
        learned = [best]
    if _is_step_error(of, best.point):
        return pursuit
    # Rivals are compared at the q of the best, and so is it: its own place stays what it was there.
    after.met[best.support] = replace(best, deviance=after.met[best.support].deviance)
    return after


def _pushed_in_proportion(pursuit: Pursuit, found: Pursuit) -> Pursuit:
    """Return a search with noise of the process or, where that is clearly likelier, one in which it grows with x."""
    of, power = pursuit.of, np.where(pursuit.of.nodes.one_sign > 0, 1.0, 0.0)
    if np.any(of.power) or not np.any(power):
        return found
    fits, least = found.ranking[:MOST_REFINED], found.score(found.best) - CLEAR_GAIN
    other = _again(pursuit, of.with_power(power), fits)
    if min(other.score(_learned(other, one)) for one in other.ranking) > least:
        return found
    other = with_process(other)
    return other if other.score(other.best) < least else found


def _rivals_learned(pursuit: Pursuit, rivals: Sequence[Fit], learned: Fit, worth: float) -> list[Fit]:
    """Return rivals of a fit with s and q learned, of those that are worse by no more than that may gain."""
    found = [learned]
    for rival in () if pursuit.narrow else rivals:
        likely, best = _likeliest(pursuit, rival), min(map(pursuit.score, found))
        if pursuit.score(likely) < best + worth:
            found.append(_learned(pursuit, likely, best - pursuit.cost(likely.support)))
    return found[1:]


def _learned(pursuit: Pursuit, fit: Fit, limit: float = np.inf) -> Fit:
    """Return a fit with s and q learned, from its own states and, where these have collapsed, from smoothed samples."""
    process, start = pursuit.levels[1], pursuit.start
    starts = [replace(fit.point, process=process)]
    if start.states.shape == fit.point.states.shape and _collapsed(pursuit, fit):
        starts.append(replace(start, coefficients=fit.point.coefficients, process=process))
    return min((pursuit.of.learned(fit.support, one, limit) for one in starts), key=lambda one: one.deviance)


def _collapsed(pursuit: Pursuit, fit: Fit) -> bool:
    """Return whether the states of a fit miss the samples by more than these are smoothed by."""
    return bool(np.any(fit.point.noise > POOR_START * pursuit.start.noise))


def _likeliest(pursuit: Pursuit, fit: Fit) -> Fit:
    """Return a fit at the level of q that is the likeliest for it."""
    point, tried = fit.point, [fit]
    for level in pursuit.levels[-2:0:-1]:
        point, linear = pursuit.of.descended(replace(point, process=level), fit.support)
        tried.append(Fit(fit.support, point, linear.deviance(point.noise)))
        if tried[-1].deviance > min(one.deviance for one in tried) + HOPELESS:
            break
    return min(tried, key=lambda one: one.deviance)
