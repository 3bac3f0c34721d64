"""What a search came to: equations with their numbers, residuals, and how stable the choice of terms is.

`FoundRows` comes from rows that were whitened equation by equation (weak form, derivatives, fields), `FoundStates` from
the likelihood of the trajectory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from ardea.core.problem import Array, DenseColumns, FlatColumns, Index, Problem
from ardea.core.subsets import Support, model, neighbours, posed, select
from ardea.dynamics.joint import Joint
from ardea.dynamics.libraries import Library
from ardea.dynamics.nodes import noise_degrees, sample_noise
from ardea.dynamics.pursuit import Pursuit, Wishes, pursued
from ardea.dynamics.search import Propose, SearchResult, scored, whitened
from ardea.dynamics.series import Series
from ardea.dynamics.trajectory import LEAST_NOISE, Fit, Likelihood, Linearised
from ardea.equation import CLOSE, Equation, KeptTerms, Left, Rival
from ardea.names import Vocabulary

# A convention: how many rivals are kept.
N_RIVALS = 8
# A convention: how often chance alone may raise a warning of misfit.
BY_CHANCE = 1e-3
TINY, EPSILON = float(np.finfo(float).tiny), float(np.finfo(float).eps)
# A share of the usual step: times that differ by less are the same, up to rounding.
SAME_TIME = 1e-6


def _kept(support: Index, problem: Problem, unit: Array, target_unit: float, **others: Any) -> KeptTerms:
    settings = {"prior_variance": None, "noise": None, "noise_known": False, **others}
    flat = FlatColumns.empty(support.size)
    return KeptTerms(active=support, problem=problem, unit=unit, target_unit=target_unit, flat=flat, **settings)


@dataclass(frozen=True, eq=False)
class FoundRows:
    """Equations found on whitened rows."""

    results: list[SearchResult]
    propose: Propose

    @property
    def excitation(self) -> list[float]:
        """How much every state varies in units of its noise."""
        return [result.excitation for result in self.results]

    def equations(self, lefts: Sequence[Left], vocabulary: Vocabulary) -> list[Equation]:
        """Return the equations: least squares on their whitened terms, and their rivals."""
        return [_of_rows(result, left, vocabulary) for result, left in zip(self.results, lefts, strict=True)]

    def residuals(self, equations: Sequence[Equation]) -> list[Array]:
        """Return the whitened residuals of every equation, in units of their standard deviation."""
        residuals = []
        for result, equation in zip(self.results, equations, strict=True):
            A, z = result.rows.system(result.fit)
            residual = z - A[:, list(equation.support)] @ equation.coefficients
            scale = float(np.sqrt(residual @ residual / equation.degrees))
            residuals.append(residual / max(scale, TINY))
        return residuals

    def inclusion(self, n_resamples: int, generator: Any) -> Array:
        """Return how often every term is chosen when the independent rows of the whitened systems are resampled."""
        chosen = np.zeros((len(self.results), self.results[0].rows.n_terms))
        for row, result in enumerate(self.results):
            A, z = result.rows.system(result.fit)
            for _ in range(n_resamples):
                rows = generator.randint(0, z.size, z.size)
                problem, unit = posed(A[rows], z[rows], floor=result.fit.floor)
                chosen[row, list(select(problem, self.propose(problem, unit))[0].support)] += 1
        return np.asarray(chosen / n_resamples)


def _of_rows(result: SearchResult, left: Left, vocabulary: Vocabulary) -> Equation:
    support, (problem, unit) = np.array(result.support, dtype=np.intp), whitened(result.rows, result.fit)
    kept = _kept(support, problem.restrict(support), unit[support], result.noise_unit, n_parameters=result.n_parameters)
    named = _names_of(vocabulary)
    rivals = tuple(Rival(named(terms), excess) for terms, excess in _rivals_of_rows(result, problem))
    return Equation(left, vocabulary, kept, rivals, tuple(named(terms) for terms in result.equivalents))


def _names_of(vocabulary: Vocabulary) -> Any:
    return lambda terms: tuple(vocabulary.names[j] for j in terms)


def _rivals_of_rows(result: SearchResult, problem: Problem) -> list[tuple[Support, float]]:
    """Return the neighbours of the winner and by how much their criterion exceeds its own, closest first.

    On the whitening of the winner that is a guide only: a neighbour that comes close there is fitted with a whitening
    of its own, and so is the winner, as in the tournament.
    """
    chosen = model(problem, result.support)
    own = scored(result.rows, result.support, result.fit)
    compared = []
    for other in neighbours(problem, chosen)[:N_RIVALS]:
        excess = other.criterion - chosen.criterion
        if excess < CLOSE:
            excess = scored(result.rows, other.support, result.fit).score - own.score
        compared.append((other.support, float(excess)))
    return sorted(compared, key=lambda one: one[1])


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
        return Linearised(self.likelihood, self.fit.point, self.likelihood.weights(self.fit.point), self.fit.support)

    @property
    def excitation(self) -> list[float]:
        """How much every measured state varies in units of its noise."""
        measured = len(self.sample_noise)
        size = self.fit.point.noise[:measured] * np.sqrt(
            np.mean(self.likelihood.sizes(self.fit.point.states)[:, :measured] ** 2, axis=0)
        )
        return list(self.fit.point.states[:, :measured].std(axis=0) / np.maximum(size, TINY))

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
        d, named, out = self.likelihood.d, _names_of(vocabulary), []
        equations, terms = np.divmod(np.array(self.fit.support, dtype=np.intp), d)
        rivals = self._rivals()
        for number, left in enumerate(lefts):
            own = np.flatnonzero(equations == number + self._first)
            kept = self._kept(terms[own], self.covariance[np.ix_(own, own)], number)
            close = tuple(Rival(named(support), excess) for support, excess in rivals[number])
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
        size = float(np.sqrt(np.mean(of.sizes(self.fit.point.states)[:, measured] ** 2)))
        problem = Problem(DenseColumns(rows), target, degrees, of.n_samples)
        told = of.told is not None
        return _kept(
            support,
            problem,
            unit,
            float(self.fit.point.noise[measured] * size),
            n_parameters=of.n_samples - degrees,
            noise=1.0 if told else None,
            noise_known=told,
        )

    def _rivals(self) -> list[list[tuple[Support, float]]]:
        """Return for every equation its other terms in models that differ in it alone, and how much worse these are."""
        d, first, best = self.likelihood.d, self._first, self.pursuit.score(self.fit)
        found: list[dict[Support, float]] = [{} for _ in range(self.likelihood.n - first)]
        rivals = {support: self.pursuit.score(fit) - best for support, fit in self.pursuit.met.items()}
        for support, excess in (*rivals.items(), *self.pursuit.near(self.linear)):
            changed = {j // d for j in set(support) ^ set(self.fit.support)}
            if len(changed) == 1:
                (equation,) = changed
                terms = tuple(j % d for j in support if j // d == equation)
                found[equation - first].setdefault(terms, float(excess))
        return [sorted(one.items(), key=lambda item: item[1])[:N_RIVALS] for one in found]

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
                drawn = Problem(
                    problem.columns, target, problem.rest, problem.n_rows, problem.floor, price=problem.price
                )
                chosen[list(select(drawn, self.pursuit.propose(drawn, unit))[0].support)] += 1
        return np.asarray(chosen.reshape(-1, of.d) / n_resamples)


def found_states(series: Sequence[Series], library: Library, propose: Propose, wishes: Wishes) -> FoundStates:
    """Find the equations of some series on the likelihood of their trajectories."""
    pursuit, exact = pursued(series, library, propose, wishes)
    noise = sample_noise(series)
    measured = len(noise)
    floor = np.maximum(noise, LEAST_NOISE * pursuit.best.point.states[:, :measured].std(axis=0))
    rows = int(np.sum(np.any(pursuit.of.nodes.seen, axis=1)))
    misfit = exact[:measured] / np.maximum(floor, TINY)
    return FoundStates(pursuit, pursuit.best, noise, misfit, rows, [one.t for one in series])


# What Discovery asks of either: equations, excitation, residuals, inclusion.
Found = FoundRows | FoundStates
