"""Search over supports of all equations together, on the likelihood of the trajectory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ardea.core.problem import Array, Problem
from ardea.core.subsets import Support, model, neighbours, select
from ardea.dynamics.trajectory import Fit, Likelihood, Linearised, Point

MARGIN, EXPANDED, NEIGHBOURS = 12.0, 8, 6


@dataclass(eq=False)
class Pursuit:
    of: Likelihood
    levels: list[Array]
    price: float
    propose: Callable[[Problem, Array], list[Support]]
    candidates: Support
    met: dict[Support, Fit] = field(default_factory=dict)
    shown: bool = False
    n_fits: int = 0

    def score(self, fit: Fit) -> float:
        return fit.deviance + self.price * len(fit.support)

    def run(self, start: Point) -> Fit:
        for support, point in self.starts(start):
            self.fit(support, point, self.levels)
        expanded: set[Support] = set()
        while len(expanded) < EXPANDED:
            left = [one for one in self.met.values() if one.support not in expanded]
            best = min(self.met.values(), key=self.score)
            if best.support in expanded or not left:
                break
            expanded.add(best.support)
            self.expand(best)
        return min(self.met.values(), key=self.score)

    def starts(self, start: Point) -> list[tuple[Support, Point]]:
        """Selections at the first levels of q, where the states are still free."""
        found: dict[Support, Point] = {}
        point = start
        for level in (self.levels[0], self.levels[1]):
            support: Support | None = None
            for _ in range(3):
                linear = Linearised(self.of, replace(point, process=level), self.of.weights(point), ())
                ranked = self.ranked(linear, () if support is None else support)
                if not ranked or ranked[0][0] == support:
                    break
                support, coefficients = ranked[0]
                if self.shown:
                    print("   start", len(support))
                for other, values in ranked[:2]:
                    found.setdefault(other, replace(start, coefficients=values))
                point, _ = self.of.descended(replace(point, coefficients=coefficients, process=level), support)
        return list(found.items())

    def ranked(self, linear: Linearised, own: Support) -> list[tuple[Support, Array]]:
        posed = linear.problem(self.candidates)
        if posed is None:
            return []
        problem, unit = replace_price(posed[0], self.price), posed[1]
        place = {j: i for i, j in enumerate(self.candidates)}
        inside = tuple(place[j] for j in own)
        models = select(problem, [*self.propose(problem, unit), inside])
        if own:
            mine = model(problem, inside)
            near = [one for one in neighbours(problem, mine) if one.criterion < mine.criterion + MARGIN]
            models = [*models[:3], *near[:NEIGHBOURS]]
        out: dict[Support, Array] = {}
        for one in models:
            values = np.zeros(self.of.n * self.of.d)
            chosen = np.array(one.support, dtype=np.intp)
            if chosen.size:
                values[np.array(self.candidates)[chosen]] = problem.least_squares(chosen)[0] * unit[chosen]
            out.setdefault(tuple(self.candidates[j] for j in one.support), values.reshape(self.of.n, self.of.d))
        return list(out.items())

    def fit(self, support: Support, start: Point, levels: Sequence[Array]) -> Fit:
        self.n_fits += 1
        fit = self.of.fitted(support, start, levels)
        if support not in self.met or fit.deviance < self.met[support].deviance:
            self.met[support] = fit
        if self.shown:
            print("   fit", len(support), round(self.score(fit), 1), fit.point.noise)
        return fit

    def expand(self, fit: Fit) -> None:
        linear = Linearised(self.of, fit.point, self.of.weights(fit.point), fit.support)
        for support, coefficients in self.ranked(linear, fit.support):
            if support not in self.met:
                self.fit(support, replace(fit.point, coefficients=coefficients), [*self.levels[2:-1:2], self.levels[-1]])


def replace_price(problem: Problem, price: float) -> Problem:
    return replace(problem, price=price)
