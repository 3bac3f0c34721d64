"""What the search on the likelihood of the trajectory came to: equations, states, residuals, joint uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, special

from ardea.core.evidence import Estimate
from ardea.core.problem import Array, DenseColumns, Index, Problem
from ardea.core.subsets import Support, select
from ardea.dynamics.collocation import noise_degrees
from ardea.dynamics.libraries import Library
from ardea.dynamics.pursuit import SLIGHT_GAIN, Propose, Pursuit, Wishes, pursued
from ardea.dynamics.series import Series
from ardea.dynamics.trajectory import LEAST_NOISE, Fit, Likelihood, Linearised
from ardea.equation import N_RIVALS, Equation, KeptTerms, Left, Rival
from ardea.names import Vocabulary

# A convention: how often chance alone may raise a warning of misfit.
BY_CHANCE = 1e-3
TINY, EPSILON = float(np.finfo(float).tiny), float(np.finfo(float).eps)
# A share of the usual step: times that differ by less are the same, up to rounding.
SAME_TIME = 1e-6


@dataclass(frozen=True, eq=False)
class Joint:
    """What the equations, each with a covariance of its own, do not tell: how they depend on each other.

    The first state x₀ is N(start + gain (ξ − ξ̂), covariance) where the coefficients ξ are given.
    """

    correlation: Array  # (k, k), of coefficients of different equations; zero within an equation
    start: Array  # (n,)
    gain: Array  # (n, k)
    covariance: Array  # (n, n)
    time: float  # of the first state
    step: float  # the mean step of the trajectory

    @staticmethod
    def between(sizes: Sequence[int], correlation: Array) -> Array:
        """Return a correlation with zeros within the equations, which have so many terms."""
        owner = np.repeat(np.arange(len(sizes)), sizes)
        return np.where(owner[:, None] == owner, 0.0, correlation)

    def estimate(self, equations: Sequence[Equation]) -> Estimate:
        """Return the estimate of all kept coefficients, equation by equation."""
        std = np.concatenate([one.std for one in equations])
        own = linalg.block_diag(*(one.covariance for one in equations))
        mean = np.concatenate([one.coefficients for one in equations])
        degrees = min(one.degrees for one in equations)
        return Estimate(mean, own + self.correlation * np.outer(std, std), float("nan"), degrees)

    def starts(self, deviations: Array, generator: Any) -> Array:
        """Return a first state for every draw of the coefficients, given as deviations from their mean, (draws, k)."""
        own = Estimate(self.start, self.covariance, float("nan"), np.inf)
        return np.asarray(own.sample(len(deviations), generator) + deviations @ self.gain.T)


@dataclass(frozen=True, eq=False)
class FoundStates:
    """Equations found on the likelihood of the trajectory."""

    pursuit: Pursuit
    fit: Fit
    sample_noise: Array  # of every measured state, read off differences
    misfit: Array  # noise at which the equations hold exactly, over that
    n_rows: int  # rows with a sample
    times: list[Array]  # of every series, as given

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood at the end."""
        return self.pursuit.of

    @property
    def largest_misfit(self) -> list[float]:
        """What chance makes of the misfit of every state once in a thousand times: few rows tell little of noise."""
        degrees = [noise_degrees(count) for count in self.likelihood.nodes.counts[: len(self.misfit)]]
        return [float(np.sqrt(one / special.chdtri(one, 1 - BY_CHANCE))) for one in degrees]

    @property
    def _first(self) -> int:
        """The first state with an equation of its own to be found."""
        return self.pursuit.candidates[0] // self.likelihood.d

    @cached_property
    def linear(self) -> Linearised:
        """The likelihood linearised at the fit."""
        return self.likelihood.linearised(self.fit.point, self.fit.support)

    @property
    def excitation(self) -> list[float]:
        """How much every measured state varies in units of its noise."""
        size, measured = self._noise, len(self.sample_noise)
        return list(self.fit.point.states[:, :measured].std(axis=0) / np.maximum(size[:measured], TINY))

    @property
    def _noise(self) -> Array:
        """The noise of every state in its own units."""
        return np.asarray(self.fit.point.noise * self.likelihood.usual_size(self.fit.point.states))

    @cached_property
    def covariance(self) -> Array:
        """Covariance of all kept coefficients: the inverse information, and the error of the steps."""
        found = self.linear.information(self.fit.support)
        if found is None or not self.fit.support:
            return np.zeros((0, 0))
        unit = np.sqrt(np.maximum(found[0].diagonal(), TINY))
        inverse = np.linalg.pinv(found[0] / np.outer(unit, unit), hermitian=True) / np.outer(unit, unit)
        bias = self.linear.bias() * np.sqrt(inverse.diagonal())
        return np.asarray(inverse + np.diag(bias**2))

    @property
    def process_noise(self) -> Array:
        """Deviation of the noise of the process over a unit of time (of a map, a step); zero where there is none."""
        if not self.pursuit.with_process:
            return np.zeros(self.likelihood.n - self._first)
        step = 1.0 if self.likelihood.discrete_time else self.likelihood.nodes.usual_step
        return np.asarray(self.fit.point.process[self._first :] / np.sqrt(step))

    @cached_property
    def _states(self) -> Array:
        """The states at all nodes and their standard deviations, side by side."""
        return np.hstack([self.fit.point.states, self.linear.deviations(self.covariance)])

    def states(self) -> list[Array]:
        """Return the states and their standard deviations at the rows of every series; NaN where no node lies."""
        nodes, found = self.likelihood.nodes, []
        for number, times in enumerate(self.times):
            own = np.flatnonzero(nodes.series == number)
            out = np.full((len(times), 2 * self.likelihood.n), np.nan)
            if own.size:
                same = SAME_TIME * nodes.usual_step
                place = own[np.minimum(np.searchsorted(nodes.t[own], times - same), own.size - 1)]
                met = np.abs(nodes.t[place] - times) <= same
                out[met] = self._states[place[met]]
            found.append(out)
        return found

    def joint(self, equations: Sequence[Equation]) -> Joint:
        """Return how all coefficients, and the first state, depend on each other."""
        unit = np.sqrt(np.maximum(self.covariance.diagonal(), TINY))
        gain, covariance = self.linear.start()
        nodes = self.likelihood.nodes
        return Joint(
            Joint.between([len(one.support) for one in equations], self.covariance / np.outer(unit, unit)),
            self.fit.point.states[0],
            gain,
            covariance,
            float(nodes.t[0]),
            1.0 if self.likelihood.discrete_time else nodes.usual_step,
        )

    def equations(self, lefts: Sequence[Left], vocabulary: Vocabulary) -> list[Equation]:
        """Return the equations, each with its part of the joint covariance."""
        d, names, out = self.likelihood.d, vocabulary.names, []
        equations, terms = np.divmod(np.array(self.fit.support, dtype=np.intp), d)
        rivals = self._rivals()
        for number, left in enumerate(lefts):
            own = np.flatnonzero(equations == number + self._first)
            kept = self._kept(terms[own], self.covariance[np.ix_(own, own)], number)
            close = tuple(Rival(tuple(names[j] for j in support), excess) for support, excess in rivals[number])
            out.append(Equation(left, vocabulary, kept, close))
        return out

    def _kept(self, support: Index, covariance: Array, number: int) -> KeptTerms:
        """Return rows whose least squares have these coefficients and this covariance."""
        of = self.likelihood
        parameters = len(self.fit.support) + of.n * of.n_stretches
        degrees = max(of.n_samples - parameters, 1.0)
        unit = np.sqrt(np.maximum(covariance.diagonal(), TINY))
        values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
        rows = (vectors / np.sqrt(np.maximum(values, support.size * EPSILON))).T
        target = rows @ (self.fit.point.coefficients[number + self._first, support] / unit)
        measured = number if number < len(self.sample_noise) else 0
        problem = Problem(DenseColumns(rows), target, degrees, of.n_samples)
        noise = float(self._noise[measured])
        return KeptTerms.of_rows(
            support, problem, unit, noise, of.n_samples - degrees, None if of.told is None else 1.0
        )

    def _rivals(self) -> list[list[tuple[Support, float]]]:
        """Return for every equation its other terms in models that differ in it alone, and how much worse these are."""
        d, first, best = self.likelihood.d, self._first, self.pursuit.score(self.fit)
        found: list[dict[Support, float]] = [{} for _ in range(self.likelihood.n - first)]
        rivals = {support: self.pursuit.score(fit) - best for support, fit in self.pursuit.met.items()}
        # With noise of the process the linearisation leaves out what the states' spread says of new terms.
        least = 0.0 if self.pursuit.with_process else -np.inf
        near = [(support, max(excess, least)) for support, excess in self.pursuit.near(self.linear)]
        for support, excess in (*rivals.items(), *near):
            changed = {j // d for j in set(support) ^ set(self.fit.support)}
            if len(changed) == 1:
                (equation,) = changed
                terms = tuple(j % d for j in support if j // d == equation)
                if np.isfinite(excess):
                    # Of models that tie the simplest is taken, even if another is a bit better.
                    tied = -SLIGHT_GAIN < excess < 0 and self.pursuit.few
                    found[equation - first].setdefault(terms, 0.0 if tied else float(excess))
        return [sorted(one.items(), key=lambda item: item[1])[:N_RIVALS] for one in found]

    def tied(self, equations: Sequence[Equation]) -> list[str]:
        """Return what is to be warned of: a model that differs in several equations at once, and fits as well."""
        d, first, best = self.likelihood.d, self._first, self.pursuit.score(self.fit)
        names = equations[0].vocabulary.names
        for other in self.pursuit.ranking:
            changed = sorted({j // d for j in set(other.support) ^ set(self.fit.support)})
            if self.pursuit.score(other) > best + SLIGHT_GAIN:
                break
            if len(changed) > 1:
                terms = {one: [names[j % d] for j in other.support if j // d == one] for one in changed}
                parts = [f"{equations[one - first].left.text} has [{', '.join(terms[one])}]" for one in changed]
                return [
                    f"The data hardly tell this model from one in which {' and '.join(parts)}. Longer or richer data "
                    "would (docs/warnings/ambiguity)."
                ]
        return []

    def residuals(self, equations: Sequence[Equation]) -> list[Array]:
        """Return the samples less the states, in units of their noise; of a state that is not measured, nothing."""
        scaled = self.linear.errors * np.sqrt(self.linear.weights)
        seen = self.likelihood.nodes.seen
        return [-scaled[seen[:, state], state] for state in range(len(equations))]

    def inclusion(self, n_resamples: int, generator: Any) -> Array:
        """Return how often every term is chosen when the regression on all candidates is given new noise."""
        of, chosen = self.likelihood, np.zeros(len(self.pursuit.candidates))
        posed_problem = self.pursuit.posed(self.linear)
        if posed_problem is not None:
            problem, unit = posed_problem
            for _ in range(n_resamples):
                target = problem.target + generator.standard_normal(problem.target.size)
                drawn = replace(problem, target=target)
                chosen[list(select(drawn, self.pursuit.propose(drawn, unit))[0].support)] += 1
        return np.asarray(chosen.reshape(-1, of.d) / n_resamples)


def found_states(series: Sequence[Series], library: Library, propose: Propose, wishes: Wishes) -> FoundStates:
    """Find the equations of some series on the likelihood of their trajectories."""
    pursuit, exact, noise = pursued(series, library, propose, wishes)
    measured = len(noise)
    floor = np.maximum(noise, LEAST_NOISE * pursuit.best.point.states[:, :measured].std(axis=0))
    rows = int(np.sum(np.any(pursuit.of.nodes.seen, axis=1)))
    # The samples of a map jump: their differences say nothing of noise.
    misfit = np.full(measured, np.nan) if wishes.discrete_time else exact[:measured] / np.maximum(floor, TINY)
    return FoundStates(pursuit, pursuit.best, noise, misfit, rows, [one.t for one in series])
