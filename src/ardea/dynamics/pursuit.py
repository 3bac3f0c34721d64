"""Search over supports of all equations together, on the likelihood of the trajectory.

At a fit, the Fisher information and the score of all candidates make one regression (`Linearised.problem`), on which
the moves of the core are tried; what looks good is fitted itself, and so on from the best fit, until nothing near it is
better. Supports are compared by −2 ln p(y) plus a price per term: the square of the normal quantile at which, of all
candidates together, `false_terms` would be kept by chance.

Starts are selections at the first levels of q, where the states are still free: there the regression is that of the
steps of smoothed samples, weighted as their noise asks. What comes before and after is `course`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from ardea.core.problem import Array
from ardea.core.subsets import Mask, Model, Propose, Support, model, neighbours, small_models
from ardea.dynamics.collocation import Fit, Point
from ardea.dynamics.few import few_models
from ardea.dynamics.knowledge import Posed
from ardea.dynamics.trajectory import Likelihood, Linearised

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
# How much worse than the best a fit may become before it is given up.
HOPELESS = 200.0
# Without noise, so many times the noise of the best (a convention).
LARGE_FACTOR = 10.0
# Of every equation so many small models are fitted, where they look as good as what is there.
SMALL_MODELS = 2
# Odds of 4 to 1. Of models within these the one with the lowest degrees is taken: powers stand in for each other where
# a state is far from zero, or noise is large. Up to so many samples they are enough to believe in noise of the process.
SLIGHT_GAIN, FEW_SAMPLES = 3.0, 200


@dataclass(eq=False)
class Pursuit:
    """All supports met on one likelihood."""

    of: Likelihood
    start: Point  # smoothed samples
    levels: list[Array]
    price: float
    propose: Propose
    candidates: Support
    promised: bool = False  # whether the user has said how many false terms are accepted
    with_process: bool = False
    narrow: bool = False  # whether an earlier search has left only these candidates open
    told: Callable[[], object] = bool  # called after every fit
    group_price: float = 0.0  # of a term with a coefficient for every series
    error: Array | float = 0.0  # of the steps, that counts as noise of the process
    met: dict[Support, Fit] = field(default_factory=dict)
    exact: Fit | None = None  # with noise of the process: the best without
    elsewhere: list[Fit] = field(default_factory=list)  # those of all searches, with noise of any kind
    expanded: set[Support] = field(default_factory=set, init=False)  # those whose surroundings have been searched

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

    @property
    def rivals(self) -> list[Fit]:
        """All supports met, each with the noise that is the likeliest for it, best first."""
        likeliest: dict[Support, Fit] = {}
        for fit in sorted([*self.met.values(), *self.elsewhere], key=self.score):
            likeliest.setdefault(fit.support, fit)
        return list(likeliest.values())

    def begin(self, start: Point, candidates: Support) -> None:
        """Fit what selections at the first levels find: of every equation alone, then of all from what these give.

        Those of an equation alone are from all candidates, and are open afterwards.
        """
        found, views, chosen, ends = dict[Support, Point](), [], list[Support](), list[Support]()
        for level in self.levels[:FIRST_LEVELS]:
            if len(set(chosen)) < len(chosen):  # two levels agree
                break
            point = replace(start, process=level)
            views.append(self._apart(self.of.linearised(point, ()), candidates))
            ranked = self.alone(*views[-1])
            chosen += [one[0] for one in ranked]
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
            ends.append(support)
        for terms in self._simpler(candidates, ends):
            for support, coefficients, _ in self.alone(*views[min(1, len(views) - 1)], terms):
                found.setdefault(support, replace(start, coefficients=coefficients))
        for support, at in found.items() or [(self.of.knowledge.kept, start)]:
            self.fit(support, at, self.levels)

    def _simpler(self, candidates: Support, chosen: Sequence[Support]) -> list[Mask]:
        """Return which terms are simpler than those chosen: of lower degrees, and without constants inside.

        Products of noisy states stand in for straight lines, constants inside terms for all.
        """
        degrees, plain = np.array(self.of.degrees), np.arange(self.of.d) < self.of.inside.n_plain
        mine, every = (
            int(degrees[np.array(some, dtype=np.intp) % self.of.d].max(initial=0))
            for some in ([j for support in chosen for j in support], candidates)
        )
        found = [degrees <= one for one in range(1, mine)]
        return found + [plain & (degrees <= one) for one in range(1, every + 1) if self.of.inside.n_constants]

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
        self, linear: Linearised, parts: list[Posed | None], terms: Mask | None = None
    ) -> list[tuple[Support, Array, float]]:
        """Return the supports that are best for every equation alone, of all terms or of those that are marked.

        Each equation then has noise of its own: one that nothing fits does not hide the terms of the others.
        """
        support: Support = self.of.knowledge.kept
        coefficients = np.zeros((self.of.n, self.of.d))
        for every in parts:
            if every is None:
                return []
            open_to = [terms is None or all(terms[j % self.of.d] for j in move) for move in every.moves]
            posed = every if all(open_to) else every.restrict(np.flatnonzero(open_to))
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
        looks.append(self._few_terms)
        for _ in range(MOST_EXPANDED):
            if (fit := self.best).support in self.expanded:
                break
            self.expanded.add(fit.support)
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
            for support, coefficients, gain in self.ranked(view, wide=not self.narrow)[: 1 if self.narrow else None]:
                least = self.score(fit) - gain if set(support) < set(fit.support) else np.inf
                self._tried(support, replace(fit.point, coefficients=coefficients), least)
        if self.with_process or self.narrow or self.best is not fit:
            return
        # One equation that is hardly known may have taken all places with what looks better and is not.
        unmet = [(excess, support) for support, excess in self.near(views[0]) if support not in self.met]
        for excess, support in sorted(unmet)[:NEIGHBOURS]:
            if excess < 0:
                self._tried(support, fit.point)

    def _each_anew(self, fit: Fit) -> None:
        """Try what looks best for every equation, of all its candidates, next to the others as they are."""
        linear, d = self.of.linearised(fit.point, fit.support), self.of.d
        for equation in np.unique(np.array(self.candidates) // d):
            every = self.of.inside.beside(self.of.inside.open(int(equation)), fit.support)
            candidates = np.array(sorted({*every, *fit.support}))
            posed = self.posed(linear, tuple(candidates.tolist()))
            if posed is None:
                return
            inside, around = (np.flatnonzero((candidates // d == equation) == own) for own in (True, False))
            mine = model(posed.problem, np.flatnonzero(np.isin(candidates, fit.support)))
            for best in small_models(posed.problem, inside, around, 1, ALL_TRIPLES):
                support, values = self._led(posed, best, linear)
                if best.criterion < mine.criterion and support not in self.met:
                    self.candidates = tuple(sorted({*self.candidates, *self.of.inside.opened(support)}))
                    self._tried(support, replace(fit.point, coefficients=values))

    def _few_terms(self, fit: Fit) -> None:
        """Try sets of few terms of every equation, with the constants that suit them, next to the others as they are.

        From the states of the fit, which those of a wrong model lead astray, and from those at the first level of q.
        """
        inside, together, d = self.of.inside, self.of.knowledge.groups, self.of.d
        if not inside.states:
            return
        points = [fit.point]
        if not self.with_process:
            points.append(self.of.descended(replace(fit.point, process=self.levels[0]), fit.support)[0])
        equations = np.unique(np.array(self.candidates, dtype=np.intp) // d).tolist()
        for point, equation in product(points, equations):
            mine = tuple(j for j in self.candidates if together[j // d] == together[equation])
            every = tuple(sorted({*mine, *inside.kin(mine, fit.support), *fit.support}))
            if (posed := self.posed(self.of.linearised(point, fit.support), every)) is None:
                continue
            own, at = posed.own(fit.support), point.coefficients
            for support, coefficients, gain in few_models(posed, inside, own, equation, at, self.cost):
                least = self.score(fit) - gain if support == fit.support else np.inf
                self._tried(support, replace(point, coefficients=coefficients), least)

    def _rivals_again(self, fit: Fit) -> None:
        for one in self.ranking[1:3]:
            if self.score(one) < self.score(fit) + MARGIN:
                self.fit(one.support, replace(fit.point, coefficients=one.point.coefficients), self.levels)

    def _loosened(self, fit: Fit) -> None:
        point = fit.point
        noiseless = self.of.noiseless(point)
        several, kept = self.of.knowledge.of_series, self.of.knowledge.kept
        free = [j for j in fit.support if noiseless and j not in kept]
        # Nothing is likelier, but what is shorter may be as likely.
        for gone in {(j,) if several is None else several.spread(several.terms([j])) for j in free}:
            self._tried(tuple(j for j in fit.support if j not in gone), point)
        for level in [] if self.with_process or noiseless else self.levels[-2:0:-2]:
            point, linear = self.of.descended(replace(point, process=level), fit.support)
            for support, coefficients, gain in self.ranked(linear, wide=True)[:MOST_LOOSENED]:
                if gain > 0:
                    self._tried(support, replace(point, noise=fit.point.noise, coefficients=coefficients))

    def _tried(self, support: Support, start: Point, expected: float = np.inf) -> None:
        """Fit a support that was not met, or given up from worse states, from states that are close.

        A part of a larger model that is clearly worse than the larger one expects has ended at worse states.
        """
        settled, _ = self.of.inside.settled(support, start.coefficients)
        known = self.met.get(self.of.knowledge.trimmed(settled))
        if known is None or not np.isfinite(known.deviance) or self.score(known) > expected + SLIGHT_GAIN:
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
        beside = self.of.inside.beside(self.candidates, linear.support)
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
