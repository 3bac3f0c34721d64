"""Search over supports of all equations together, on the likelihood of the trajectory.

At a fit, the Fisher information and the score of all candidates make one regression (`Linearised.problem`), on which
the moves of the core are tried; what looks good is fitted itself, and so on from the best fit, until nothing near it is
better. Supports are compared by −2 ln p(y) plus a price per term: the square of the normal quantile at which, of all
candidates together, `false_terms` would be kept by chance.

Starts are selections at the first levels of q, where the states are still free: there the regression is that of the
steps of smoothed samples, weighted as their noise asks. Afterwards steps are made shorter if their error matters
(`refined`), and noise of the process, or noise that grows with the states, is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ardea.core.problem import Array
from ardea.core.subsets import Model, Propose, Support, model, neighbours, small_models
from ardea.dynamics.collocation import Fit, Point
from ardea.dynamics.knowledge import Posed
from ardea.dynamics.trajectory import LEVEL_FACTOR, NOISE_POWERS, Likelihood, Linearised, step_bias

# Of candidates that an earlier search has closed, those that promise to gain this share of a term's price are opened
# again, at most so many of every equation, and the search goes on at most so many times (conventions: terms that stand
# in for another take most of its gain).
OPENED, MOST_OPENED, MOST_OPENINGS = 0.7, 8, 4
# Up to so many candidates in all equations together every equation is searched anew next to the others, all subsets of
# three of up to a hundred candidates: that takes some seconds. Measured on competing species, 91 candidates each: the
# best pairs do not lead to the three right terms.
MOST_ALONE, ALL_TRIPLES = 5000, 162_000
# A neighbour whose deviance may exceed that of a fit by up to this is fitted itself, the closest so many; fits whose
# surroundings are searched, selections followed at a first level, first levels, and models tried that look better from
# one of larger q (bounds on work, conventions).
MARGIN, NEIGHBOURS, MOST_EXPANDED, MOST_SELECTED, FIRST_LEVELS, MOST_LOOSENED = 12.0, 6, 10, 3, 3, 3
# Of so many small models of an equation those of the lowest degrees that look as good are fitted besides (conventions).
MOST_TIED, SIMPLEST = 20, 2
# How often s and q are learned anew because the support has changed; the gain at which the first fits look for noise of
# the process at once, and the loss at which others than the best are not tried with it; how much worse what is found
# with it must be without it to stay there, and how much worse than the best a fit may become before it is given up.
MOST_RELEARNED, LARGE_GAIN, HOPELESS = 3, 50.0, 200.0
# Without noise, so many times the noise of the best (a convention).
LARGE_FACTOR = 10.0
# Of every equation so many small models are fitted, where they look as good as what is there.
SMALL_MODELS = 2
# Error of the steps, in standard errors of a coefficient, above which steps are made shorter; the shortest; how many of
# the best supports are fitted again.
LARGEST_BIAS, MOST_SUBSTEPS, MOST_REFINED = 0.1, 8, 3
# How much deviance noise of the process, or noise that grows with the states, must save to be believed in (odds of 400
# to 1). Up to so many samples, which cannot save that much, odds of 4 to 1 are enough; noise of the process is tried
# even where no level of q is likelier than the last. Of models within these odds the one with the lowest degrees is
# taken: powers stand in for each other where a state is far from zero, or noise is large.
CLEAR_GAIN, SLIGHT_GAIN, FEW_SAMPLES = 12.0, 3.0, 200
# Noise that grows with the states is not tried where, at the states found, it is less likely by this: a fit of its own
# hardly gains so much (a convention).
WORTH_A_FIT = 30.0
# How often kinds of noise are proposed again from the states that the best of them has (a bound on work).
MOST_KINDS = 3


@dataclass(eq=False)
class Pursuit:
    """All supports met on one likelihood."""

    of: Likelihood
    levels: list[Array]
    price: float
    propose: Propose
    candidates: Support
    promised: bool = False  # whether the user has said how many false terms are accepted
    with_process: bool = False
    narrow: bool = False  # whether an earlier search has left only these candidates open
    told: Callable[[], object] = bool  # called after every fit
    start: Point | None = None  # smoothed samples
    group_price: float = 0.0  # of a term with a coefficient for every series
    met: dict[Support, Fit] = field(default_factory=dict)

    def score(self, fit: Fit) -> float:
        """Return deviance and price."""
        return fit.deviance + self.cost(fit.support)

    def cost(self, support: Support, whole: bool = False) -> float:
        """Return the price of what was chosen in a support; `whole`: of what was told as well."""
        single, several = self.of.knowledge.choices(support, whole)
        return self.price * single + self.group_price * several

    @property
    def few(self) -> bool:
        """Whether samples are so few that chance often decides between models."""
        return self.of.n_samples <= FEW_SAMPLES

    @property
    def best(self) -> Fit:
        """The best support met."""
        return self.chosen(list(self.met.values()))

    def chosen(self, fits: Sequence[Fit]) -> Fit:
        """Return the best of some fits, the simplest of those that the data do not tell apart.

        What is a part of the best is no tie where a number of false terms is promised: its price is all a term pays.
        """
        best = min(fits, key=self.score)
        least, whole = self.score(best) + SLIGHT_GAIN, set(best.support)
        tied = [fit for fit in fits if self.score(fit) <= least and not (self.promised and set(fit.support) < whole)]
        return min(tied, key=lambda fit: (self.degree(fit.support), self.score(fit)))

    def degree(self, support: Support) -> int:
        """Return the degrees of all terms together."""
        return sum(self.of.degrees[j % self.of.d] for j in support)

    @property
    def ranking(self) -> list[Fit]:
        """All supports met, best first."""
        return sorted(self.met.values(), key=self.score)

    def begin(self, start: Point, candidates: Support) -> None:
        """Fit what selections at the first levels find: of every equation alone, then of all from what these give.

        Those of an equation alone are from all candidates, and are open afterwards.
        """
        found: dict[Support, Point] = {}
        views = []
        for level in self.levels[:FIRST_LEVELS]:
            point = replace(start, process=level)
            views.append(self._apart(self.of.linearised(point, ()), candidates))
            ranked = self.alone(*views[-1])
            self.candidates = tuple(sorted({*self.candidates, *(j for one in ranked for j in one[0])}))
            support: Support = ()
            for _ in range(MOST_SELECTED):
                if not ranked or ranked[0][0] == support:
                    break
                support, coefficients, _ = ranked[0]
                for other, values, _ in ranked[:2]:
                    found.setdefault(other, replace(start, coefficients=values))
                point, linear = self.of.descended(replace(point, coefficients=coefficients), support)
                ranked = self.ranked(linear)
        # Products of noisy states stand in for straight lines: models of lower degrees are tried, too.
        degrees = np.array(self.of.degrees)[np.array(candidates, dtype=np.intp) % self.of.d]
        for degree in range(1, int(degrees.max(initial=0))):
            for support, coefficients, _ in self.alone(*views[min(1, len(views) - 1)], degree):
                found.setdefault(support, replace(start, coefficients=coefficients))
        for support, at in found.items() or [(self.of.knowledge.kept, start)]:
            self.fit(support, at, self.levels)

    def _apart(self, linear: Linearised, candidates: Support) -> tuple[Linearised, list[Posed | None]]:
        """Return the regressions of every equation alone, of states that do not yet depend on each other."""
        together, parts = self.of.knowledge.groups, []
        groups = together[np.array(candidates, dtype=np.intp) // self.of.d]
        for group in np.unique(groups):  # equations that laws tie to each other are one
            own = tuple(np.array(candidates)[groups == group].tolist())
            states = [state for one in np.flatnonzero(together == group).tolist() for state in self.of.states_of(one)]
            parts.append(self.posed(linear, own, states))
        return linear, parts

    def alone(
        self, linear: Linearised, parts: list[Posed | None], degree: int | None = None
    ) -> list[tuple[Support, Array, float]]:
        """Return the supports that are best for every equation alone, of all terms or of those up to a degree.

        Each equation then has noise of its own: one that nothing fits does not hide the terms of the others.
        """
        support: Support = self.of.knowledge.kept
        coefficients = np.zeros((self.of.n, self.of.d))
        for every in parts:
            if every is None:
                return []
            low = [
                degree is None or all(self.of.degrees[j % self.of.d] <= degree for j in move) for move in every.moves
            ]
            posed = every if all(low) else every.restrict(np.flatnonzero(low))
            best = posed.selected(self.propose, (), wide=True)[:1]
            small = small_models(posed.problem, np.arange(len(posed.moves)), np.empty(0, dtype=np.intp), 1)
            found, values = self._led(posed, min([*best, *small], key=lambda one: one.criterion), linear)
            support, coefficients = tuple(sorted({*support, *found})), coefficients + values
        return [(support, coefficients, 0.0)]

    def search(self, thorough: bool = True) -> Fit:
        """Look around the best fit until nothing near it is better.

        1) Its neighbours, as the linearisation there sees them. 2) Its closest rivals, fitted again from its states.
        3) What looks better at larger q, where the states are freer and the linearisation reaches further. The last two
        are left out where another search has been thorough.
        """
        looks = [self._neighbours, self._rivals_again, self._loosened][: 3 if thorough and not self.narrow else 1]
        if self.narrow and self.of.n * self.of.d <= MOST_ALONE:
            looks.append(self._each_anew)
        expanded: set[Support] = set()
        while len(expanded) < MOST_EXPANDED and self.best.support not in expanded:
            fit = self.best
            expanded.add(fit.support)
            for look in looks:
                look(fit)
                if self.best.support != fit.support:
                    break
        return self.best

    def opened(self) -> Pursuit:
        """Return the search at its end, with closed candidates opened that the best fits on the way speak for.

        What was opened and not taken is closed again.
        """
        pursuit = self
        for _ in range(MOST_OPENINGS):
            fit = pursuit.search()
            gains = self.of.linearised(fit.point, fit.support).significance() ** 2
            gains.flat[list({*self.candidates, *fit.support})] = 0.0
            gains[:, self.of.inside.n_open :] = 0.0
            order = np.argsort(-gains, axis=1)[:, :MOST_OPENED]
            rows, places = np.nonzero(np.take_along_axis(gains, order, axis=1) > OPENED * self.price)
            more = rows * self.of.d + order[rows, places]
            following = tuple(sorted({*self.candidates, *fit.support, *more.tolist()}))
            if not more.size or following == pursuit.candidates:
                return pursuit
            pursuit = replace(pursuit, candidates=following)
        pursuit.search()
        return pursuit

    def _neighbours(self, fit: Fit) -> None:
        views = [self.of.linearised(fit.point, fit.support)]
        if self.with_process:  # what the states' own spread says of terms that are not there
            tilted = replace(fit.point, tilt=views[0].tilted(whole=True))
            views.append(self.of.linearised(tilted, fit.support))
        for view in views:
            # With many states every fit is long: only what looks best, often in several equations at once, is tried.
            for support, coefficients, _ in self.ranked(view, wide=not self.narrow)[: 1 if self.narrow else None]:
                self._tried(support, replace(fit.point, coefficients=coefficients))

    def _each_anew(self, fit: Fit) -> None:
        """Try what looks best for every equation, of all its candidates, next to the others as they are."""
        linear, d = self.of.linearised(fit.point, fit.support), self.of.d
        for equation in np.unique(np.array(self.candidates) // d):
            every = self.of.inside.beside(self.of.inside.open([int(equation)], d), fit.support, d)
            candidates = np.array(sorted({*every, *fit.support}))
            posed = self.posed(linear, tuple(candidates.tolist()))
            if posed is None:
                return
            inside, around = (np.flatnonzero((candidates // d == equation) == own) for own in (True, False))
            mine = model(posed.problem, np.flatnonzero(np.isin(candidates, fit.support)))
            for best in small_models(posed.problem, inside, around, 1, ALL_TRIPLES):
                support, values = self._led(posed, best, linear)
                if best.criterion < mine.criterion and support not in self.met:
                    self.candidates = tuple(sorted({*self.candidates, *self.of.inside.opened(support, d)}))
                    self._tried(support, replace(fit.point, coefficients=values))

    def _rivals_again(self, fit: Fit) -> None:
        for one in self.ranking[1:3]:
            if self.score(one) < self.score(fit) + MARGIN:
                self.fit(one.support, replace(fit.point, coefficients=one.point.coefficients), self.levels)

    def _loosened(self, fit: Fit) -> None:
        point = fit.point
        for level in [] if self.with_process else self.levels[-2:0:-2]:
            point, linear = self.of.descended(replace(point, process=level), fit.support)
            for support, coefficients, gain in self.ranked(linear, wide=True)[:MOST_LOOSENED]:
                if gain > 0:
                    self._tried(support, replace(point, noise=fit.point.noise, coefficients=coefficients))

    def _tried(self, support: Support, start: Point) -> None:
        """Fit a support that was not met, from states that are close."""
        settled, _ = self.of.inside.settled(support, start.coefficients)
        if self.of.knowledge.trimmed(settled) not in self.met:
            self.fit(support, start, [*self.levels[2:-1:2], self.levels[-1]])

    def fit(self, support: Support, start: Point, levels: Sequence[Array]) -> None:
        """Fit a support, and keep it if it is better than before; terms of a wrong sign are left out of it."""
        support, coefficients = self.of.inside.settled(support, start.coefficients)
        start = replace(start, coefficients=coefficients)
        knowledge, support = self.of.knowledge, self.of.knowledge.trimmed(support)
        if not knowledge.possible(support):
            return
        if self.with_process:
            fit = self.of.held(support, start)
        else:
            fit = self.of.fitted(support, start, levels, self._limit(self.cost(support)))
        self.told()
        if wrong := knowledge.wrong_signs(fit.point.coefficients, support):
            self.fit(tuple(j for j in support if j not in wrong), start, levels)
            fit = replace(fit, deviance=np.inf)
        if support not in self.met or fit.deviance < self.met[support].deviance:
            self.met[support] = fit

    def _limit(self, cost: float) -> float:
        """Return the rough deviance from which on a support of some cost is not worth a fit."""
        if not self.met:
            return np.inf
        best = self.best
        price = self.cost(best.support) - cost
        # Without noise J is what iterations leave, up to a factor.
        loss = 2 * self.of.n_samples * np.log(LARGE_FACTOR) if self.of.noiseless(best.point) else HOPELESS
        return self.of.roughly(self.of.weights(best.point)) + price + loss

    def posed(
        self, linear: Linearised, candidates: Support | None = None, states: Sequence[int] | None = None
    ) -> Posed | None:
        """Return the regression on all candidates, or on those of states that do not depend on the others."""
        knowledge = self.of.knowledge
        beside = self.of.inside.beside(self.candidates, linear.support, self.of.d)
        every = knowledge.with_kept(beside if candidates is None else candidates)
        found = linear.problem(every, states)
        if found is None:
            return None
        return knowledge.posed(replace(found[0], price=self.price), found[1], every, self.group_price)

    def ranked(self, linear: Linearised, wide: bool = False) -> list[tuple[Support, Array, float]]:
        """Return supports worth a fit, best first, with their coefficients in the linearisation and what they gain.

        `wide`: neighbours, and terms that explain something only together, are looked for, too.
        """
        posed = self.posed(linear)
        if posed is None:
            return []
        own = posed.own(linear.support)
        models = posed.selected(self.propose, [own], wide=not own or wide)[:3]
        mine = model(posed.problem, own)
        small = self._small(posed, own) if wide else []
        near = [*neighbours(posed.problem, mine), *(one for few in small for one in few[:SMALL_MODELS])] if wide else []
        near = [one for one in near if one.criterion < mine.criterion + MARGIN and one.support != own]
        near.sort(key=lambda one: one.criterion)
        tied = [one for few in small for one in few if one.criterion < mine.criterion + SLIGHT_GAIN]
        simple = sorted(tied, key=lambda one: self.degree(posed.support(one.support)))
        found = {one.support: one for one in (*models, *near[:NEIGHBOURS], *simple[:SIMPLEST])}
        ordered = sorted(found.values(), key=lambda one: one.criterion)
        return [(*self._led(posed, one, linear), mine.criterion - one.criterion) for one in ordered]

    def _led(self, posed: Posed, one: Model, linear: Linearised) -> tuple[Support, Array]:
        """Return the candidates of a model, their coefficients, and the constants that these lead to."""
        support, values = posed.of(one)
        return support, self.of.inside.arrived(linear.point.coefficients, *self.of.placed(support), values)

    def _small(self, posed: Posed, own: Support) -> list[list[Model]]:
        """Return, for every equation, models with another few terms in it, best first."""
        equations, found = posed.groups, []
        for equation in np.unique(equations):
            others = np.array([j for j in own if equations[j] != equation], dtype=np.intp)
            found.append(small_models(posed.problem, np.flatnonzero(equations == equation), others, MOST_TIED))
        return found

    def near(self, linear: Linearised) -> list[tuple[Support, float]]:
        """Return the neighbours of a fit in every equation, and how much worse they look from there."""
        posed = self.posed(linear)
        if posed is None:
            return []
        equations, own, found = posed.groups, np.array(posed.own(linear.support), dtype=np.intp), []
        for equation in np.unique(equations):
            inside = equations[own] == equation
            near = posed.neighbours_within(np.flatnonzero(equations == equation), own[~inside], own[inside])
            found += [(posed.support(moves), excess) for moves, excess in near]
        return found


def _is_step_error(of: Likelihood, point: Point) -> bool:
    """Return whether what looks like noise of the process is the error of the steps."""
    return bool(np.all(_step_error(of, point) > point.process / 2))


def _step_error(of: Likelihood, point: Point) -> Array:
    """Return the root mean square of the error of the steps in every state."""
    return np.sqrt(np.mean(of.steps(point).truncation()[of.nodes.joined] ** 2, axis=0))


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
    error = _step_error(new, starts[0]) * (bias * (substeps / finer) ** 4 > 2 * largest)
    levels = new.ladder(starts[0].states, fit.point.noise, error)
    after = replace(pursuit, of=new, levels=levels, met={})
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
    noise = np.maximum(best.noise * pursuit.of.usual_size(best.states) / new.usual_size(best.states), new.floor)
    levels = new.ladder(best.states, noise, pursuit.levels[-1])
    after = replace(pursuit, of=new, levels=levels, met={})
    for one in fits:
        after.fit(one.support, replace(one.point, noise=noise), levels[-2:])
    return after


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
    others = [] if pursuit.narrow else ranked[1 : 3 * MOST_REFINED if few else MOST_REFINED]
    learned += [_learned(pursuit, _likeliest(pursuit, other)) for other in others]
    best = pursuit.chosen(learned)
    needed = min(gain, SLIGHT_GAIN) if few else gain
    if few and pursuit.degree(best.support) < pursuit.degree(ranked[0].support):
        needed = -SLIGHT_GAIN
    # Less than was left to the last level says nothing of the process: digits end there.
    if pursuit.score(best) > pursuit.score(ranked[0]) - needed or np.all(best.point.process <= pursuit.levels[-1]):
        return pursuit
    for _ in range(MOST_RELEARNED):
        after = replace(pursuit, with_process=True, met={})
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


def _learned(pursuit: Pursuit, fit: Fit) -> Fit:
    """Return a fit with s and q learned, from its own states and, where these have collapsed, from smoothed samples."""
    starts = [replace(fit.point, process=pursuit.levels[1])]
    if pursuit.start is not None and pursuit.start.states.shape == fit.point.states.shape:
        starts.append(replace(pursuit.start, coefficients=fit.point.coefficients, process=pursuit.levels[1]))
    return min((pursuit.of.learned(fit.support, one) for one in starts), key=lambda one: one.deviance)


def _likeliest(pursuit: Pursuit, fit: Fit) -> Fit:
    """Return a fit at the level of q that is the likeliest for it."""
    point, tried = fit.point, [fit]
    for level in pursuit.levels[-2:0:-1]:
        point, linear = pursuit.of.descended(replace(point, process=level), fit.support)
        tried.append(Fit(fit.support, point, linear.deviance(point.noise)))
        if tried[-1].deviance > min(one.deviance for one in tried) + HOPELESS:
            break
    return min(tried, key=lambda one: one.deviance)
