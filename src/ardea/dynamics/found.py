"""What a search on the likelihood of the trajectory came to: equations, states, rivals, and what is doubtful there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from scipy import special

from ardea.core.evidence import Tied
from ardea.core.lazy import cached_property, explained
from ardea.core.problem import Array, DenseColumns, Index, Problem
from ardea.core.subsets import Propose, Support, select
from ardea.dynamics.collocation import Fit, sample_noise
from ardea.dynamics.course import Wishes, pursued, step_bias
from ardea.dynamics.libraries import Library
from ardea.dynamics.pursuit import Pursuit
from ardea.dynamics.search import LARGEST_MISFIT
from ardea.dynamics.series import SAME_TIME, Series, jumping_inputs, noise_degrees
from ardea.dynamics.states import (
    Joint,
    KnownRows,
    KnownState,
    dependent_errors,
    far_off,
    may_be_aliased,
    state_deviations,
)
from ardea.dynamics.told import SIMILAR, at_rest, hardly_told, not_given
from ardea.dynamics.trajectory import NOISE_POWERS, Likelihood, Linearised
from ardea.equation import CLOSE, N_RIVALS, Equation, KeptTerms
from ardea.names import Left, Rival, Vocabulary, compared_by, in_a_row, listed, printable

# A convention: how often chance alone may raise a warning of misfit.
BY_CHANCE = 1e-3
TINY, EPSILON = float(np.finfo(float).tiny), float(np.finfo(float).eps)
# Conventions: of states that noise moves those are named that have this share of the largest, up to which it is given.
LEAST_MOVED, FAR_MORE = 0.1, 100.0


@dataclass(frozen=True, eq=False)
class FoundStates:
    """Equations found on the likelihood of the trajectory."""

    pursuit: Pursuit
    fit: Fit
    sample_noise: Array  # of every measured state, read off differences
    misfit: Array  # noise at which the equations hold exactly, over that
    n_rows: int  # rows with a sample
    times: list[Array]  # of every series, as given
    held: tuple[int, ...]  # inputs that are held from row to row
    series: int = 0  # whose coefficients are told, where those of series differ

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood at the end."""
        return self.pursuit.of

    @property
    def noise_kind(self) -> str:
        """How the noise of the samples grows with the state; "mixed" where states differ in that."""
        return next((kind for kind, power in NOISE_POWERS.items() if np.all(self.likelihood.power == power)), "mixed")

    @property
    def largest_misfit(self) -> Array:
        """The misfit of every state from which on it is told: few rows say little of noise, and chance makes more."""
        degrees = [noise_degrees(count) for count in self.likelihood.nodes.counts[: len(self.misfit)].tolist()]
        by_chance = [np.sqrt(one / special.chdtri(one, 1 - BY_CHANCE)) for one in degrees]
        return np.maximum(by_chance, LARGEST_MISFIT)

    @property
    def _first(self) -> int:
        """The first state with an equation of its own to be found."""
        return 0 if self.likelihood.fixed is None else self.likelihood.n // 2

    @cached_property
    def linear(self) -> Linearised:
        """The likelihood linearised at the fit."""
        return self.likelihood.linearised(self.fit.point, self.fit.support)

    @property
    def excitation(self) -> list[float]:
        """How much every measured state varies in units of the noise of its samples, whatever was found for it."""
        nodes, noise = self.likelihood.nodes, np.maximum(self._least_noise, TINY)
        y = np.where(nodes.seen, nodes.y, np.nan)[:, : noise.size]
        return list(np.sqrt(np.maximum(np.nanvar(y, axis=0) - noise**2, 0.0)) / noise)

    @property
    def _least_noise(self) -> Array:
        """The noise of the samples. Differences show the motion where samples are few, fits that of the process."""
        own, maps = self.noise[: len(self.sample_noise)], self.likelihood.discrete_time
        least = own if maps else np.minimum(self.sample_noise, own)
        return self.sample_noise if self.pursuit.with_process and not maps else least

    @property
    def noise(self) -> Array:
        """The noise of every state in its own units."""
        return np.asarray(self.fit.point.noise * self.likelihood.usual_size(self.fit.point.states))

    @cached_property
    def covariance(self) -> Array:
        """Covariance of all kept coefficients."""
        Z = self.linear.directions
        return self._free_covariance if Z is None else Z @ self._free_covariance @ Z.T

    @cached_property
    def _units(self) -> Array:
        """What one unit of each coefficient in the search is worth: those of tangents stand for constants."""
        return self.likelihood.inside.units(self.fit.point.coefficients, *self.likelihood.placed(self.fit.support))

    @cached_property
    def _free_covariance(self) -> Array:
        """Covariance of the free parameters: the inverse information, and the error of the steps."""
        found, Z = self.linear.information(self.fit.support), self.linear.directions
        if found is None or not self.fit.support:
            return np.zeros((0, 0))
        root = found[0] if Z is None else found[0] @ Z
        unit = np.sqrt(np.maximum(np.einsum("ij,ij->j", root, root), TINY))
        half = np.linalg.pinv(root / unit) / unit[:, None]
        inverse = half @ half.T
        bias = step_bias(self.linear) * np.sqrt(inverse.diagonal())
        return np.asarray(inverse + np.diag(bias**2))

    @property
    def process_noise(self) -> Array:
        """Deviation of the noise of the process over a unit of time (of a map, a step); zero where there is none."""
        if not self.pursuit.with_process:
            return np.zeros(self.likelihood.n - self._first)
        step = 1.0 if self.likelihood.discrete_time else self.likelihood.nodes.usual_step
        return np.asarray(self.fit.point.usual_process[self._first :] / np.sqrt(step))

    @property
    def process_growth(self) -> Array:
        """With which power of |x| that noise grows, and the |x| at which it is as told, (2, equations)."""
        size, power = self.likelihood.usual_size(self.fit.point.states), np.zeros(self.likelihood.n)
        power += self.likelihood.power
        usual = np.where(power > 0, size ** (1 / np.where(power > 0, power, 1.0)), 1.0)
        return np.stack([power, usual])[:, self._first :]

    @cached_property
    def _states(self) -> Array:
        """The states at all nodes and their standard deviations, side by side."""
        return np.hstack([self.fit.point.states, state_deviations(self.linear, self.covariance)])

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
        """Return how all coefficients, and the states at both ends, depend on each other."""
        unit = np.sqrt(np.maximum(self.covariance.diagonal(), TINY)) * np.sign(self._units)
        nodes, order = self.likelihood.nodes, np.concatenate([own for own, _ in self._places])
        rows = np.flatnonzero(nodes.series == self.series)
        ends = KnownState.at(self.linear, rows[[0, -1]].tolist())
        first, last = (replace(one, gain=(one.gain / self._units)[:, order]) for one in ends)
        known = self._known_rows(order) if self.pursuit.with_process else None
        correlation = (self.covariance / np.outer(unit, unit))[np.ix_(order, order)]
        own = Joint.between([one.kept.support.size for one in equations], correlation)
        knowledge, several = self.likelihood.knowledge, self.likelihood.knowledge.of_series
        support = self.fit.support
        if several is not None:
            knowledge, support = several.base, several.terms(support)
            rows, terms = np.divmod(np.array(support, dtype=np.intp), knowledge.d)
            order = np.lexsort((self.likelihood.inside.report(several.at[0, terms]), rows))
        if (tied := knowledge.tied(support)) is not None:
            tied = Tied(tied.offset[order], tied.directions[order], tied.signs[order])
        return Joint(own, first, last, 1.0 if self.likelihood.discrete_time else nodes.usual_step, tied, known)

    def _known_rows(self, order: Index) -> KnownRows:
        """Return the states at all rows of the series whose coefficients are told, these in some order."""
        known = KnownRows.of(self.linear)
        own = np.full(known.time.size, True)
        if self.likelihood.knowledge.of_series is not None:
            own = known.series == self.series
        series = np.unique(known.series[own], return_inverse=True)[1]
        gain = (known.gain[own] / self._units)[:, :, order]
        return KnownRows(known.mean[own], gain, known.covariance[own], known.time[own], series)

    def equations(self, lefts: Sequence[Left], vocabulary: Vocabulary) -> list[Equation]:
        """Return the equations, each with its part of the joint covariance."""
        names, out, rivals = vocabulary.names, [], self._rivals()
        for number, (left, (own, places)) in enumerate(zip(lefts, self._places, strict=True)):
            kept = self._kept(own, places, number)
            close = tuple(Rival(tuple(names[j] for j in support), excess) for support, excess in rivals[number])
            out.append(Equation(left, vocabulary, kept, close))
        return out

    @cached_property
    def _places(self) -> list[tuple[Index, Index]]:
        """Of every equation, which of all kept coefficients are its own, and which terms of the library these are.

        Terms come in order, then constants inside them.
        """
        equations, terms = self.likelihood.placed(self.fit.support)
        reported, several, out = self.likelihood.inside.report(terms), self.likelihood.knowledge.of_series, []
        mine = np.ones(terms.size, dtype=bool)
        if several is not None:  # those of the series that is told of
            mine, reported = several.origin[0][terms] == self.series, self._per_term(reported)
        for equation in range(self._first, self.likelihood.n):
            own = np.flatnonzero((equations == equation) & mine)
            own = own[np.argsort(reported[own], kind="stable")]
            out.append((own, reported[own]))
        return out

    def _per_series(self, number: int) -> int:
        """Return a number of terms as those of one series."""
        several = self.likelihood.knowledge.of_series
        return number if several is None else number // several.number

    @property
    def _has_inputs(self) -> bool:
        """Whether there are inputs other than those that tell series apart."""
        several = self.likelihood.knowledge.of_series
        return self.likelihood.nodes.inputs.shape[1] > (0 if several is None else several.number)

    def _per_term(self, reported: Index) -> Index:
        """Return terms, and constants behind them, as those of one series."""
        inside, several = self.likelihood.inside, self.likelihood.knowledge.of_series
        n, letters = self._per_series(inside.n_reported), self._per_series(inside.n_letters)
        constants = n + (reported - inside.n_reported) % max(letters, 1)
        return reported if several is None else np.where(reported < inside.n_reported, reported % n, constants)

    def _kept(self, own: Index, support: Index, number: int) -> KeptTerms:
        """Return rows whose least squares have the free parameters of an equation, and their covariance."""
        of, tied = self.likelihood, self.likelihood.knowledge.tied(self.fit.support)
        parameters = of.knowledge.n_free(self.fit.support) + of.n * of.n_stretches
        degrees = max(of.n_samples - parameters, 1.0)
        free = self.fit.point.coefficients.ravel()[list(self.fit.support)]
        used, units = own, self._units
        if tied is not None:
            units = units[tied.free]
            free, used = free[tied.free], np.flatnonzero(np.any(tied.directions[own] != 0, axis=0))
            tied = Tied(tied.offset[own], tied.directions[np.ix_(own, used)], tied.signs[own])
        covariance = self._free_covariance[np.ix_(used, used)] * np.outer(units[used], units[used])
        unit = np.sqrt(np.maximum(covariance.diagonal(), TINY))
        values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
        rows = (vectors / np.sqrt(np.maximum(values, support.size * EPSILON))).T
        target = rows @ (free[used] / unit)
        problem = Problem(DenseColumns(rows), target, degrees, of.n_samples)
        noise = float(self.noise[number if number < len(self.sample_noise) else 0])
        return KeptTerms.of_rows(
            support, problem, unit, noise, of.n_samples - degrees, None if of.told is None else 1.0, tied
        )

    def _rivals(self) -> list[list[tuple[Support, float]]]:
        """Return for every equation its other terms in models that differ in it alone, and how much worse these are.

        Equations that laws tie to each other differ together.
        """
        d, first, best = self.likelihood.d, self._first, self.pursuit.score(self.fit)
        groups = self.likelihood.knowledge.groups
        found: list[dict[Support, float]] = [{} for _ in range(self.likelihood.n - first)]
        mine = [self.named(self.fit.support, first + number) for number in range(len(found))]
        rivals = {fit.support: self.pursuit.score(fit) - best for fit in self.pursuit.rivals}
        # With noise of the process the linearisation leaves out what the states' spread says of terms: only fits count.
        near = [] if self.pursuit.with_process else self.pursuit.near(self.linear)
        near = [one for one in near if one[1] >= 0 or one[0] not in rivals]  # a fit refutes what looks better
        for support, excess in (*rivals.items(), *near):
            changed = {j // d for j in set(support) ^ set(self.fit.support)}
            for equation in changed if len({int(groups[row]) for row in changed}) == 1 else ():
                terms = self.named(support, equation)
                if np.isfinite(excess) and not self._same(equation, mine[equation - first], terms):
                    found[equation - first].setdefault(terms, float(excess))
        return [sorted(one.items(), key=lambda item: item[1])[:N_RIVALS] for one in found]

    def parameters(self, fit: Fit) -> Array:
        """Return the coefficients of every equation of a fit, and constants inside its terms behind them."""
        inside, (equations, terms) = self.likelihood.inside, self.likelihood.placed(fit.support)
        out = np.zeros((self.likelihood.n, inside.n_reported + inside.n_letters))
        out[equations, inside.report(terms)] = fit.point.coefficients[equations, terms]
        return out

    def named(self, support: Support, equation: int) -> Support:
        """Return the terms of the library that a support has in an equation."""
        of = self.likelihood
        terms = of.inside.report(np.array([j % of.d for j in support if j // of.d == equation], dtype=np.intp))
        return tuple(sorted(set(self._per_term(terms[terms < of.inside.n_reported]).tolist())))

    def worded(self, support: Support, equation: int, names: Sequence[str]) -> str:
        """Return the names of these terms."""
        return listed([names[j] for j in self.named(support, equation)]) or "nothing"

    def _same(self, equation: int, mine: Support, other: Support) -> bool:
        """Return whether other terms of an equation are its own, or say the same."""
        of, point = self.likelihood, self.fit.point
        variables = np.hstack([point.states, of.nodes.inputs])
        return of.inside.same(of.library, variables, point.coefficients, equation, mine, other)

    @explained("ambiguity")
    def tied(self, equations: Sequence[Equation]) -> Iterator[str]:
        """Yield what is to be warned of: a model that differs in several equations at once, and fits as well."""
        first, best, groups = self._first, self.pursuit.score(self.fit), self.likelihood.knowledge.groups
        names = equations[0].vocabulary.names
        for other in self.pursuit.rivals:
            if (excess := self.pursuit.score(other) - best) > SIMILAR:
                break
            terms = {row: self.named(other.support, row) for row in range(first, self.likelihood.n)}
            mine = {row: self.named(self.fit.support, row) for row in terms}
            changed = [row for row in terms if not self._same(row, mine[row], terms[row])]
            told = {row: ", ".join(names[j] for j in terms[row]) for row in changed}
            own, others = ([(row, j) for row in changed for j in one[row]] for one in (mine, terms))
            if len({int(groups[row]) for row in changed}) > 1 and hardly_told(excess, own, others):
                parts = [f"{equations[row - first].left.text} has [{told[row]}]" for row in changed]
                yield (
                    f"The data hardly tell this model from one in which {in_a_row(parts)} ({compared_by(excess)}; "
                    f"{CLOSE:g} would be clear). Longer or richer data would"
                )
                return

    @property
    def remaining(self) -> Array:
        """Noise of the samples that the fit leaves, over that which differences show."""
        if not self.pursuit.with_process:
            return self.misfit
        return np.asarray(self.noise[: len(self.misfit)] / np.maximum(self.sample_noise, TINY))

    @explained("misfit")
    def driven(self, equations: Sequence[Equation]) -> Iterator[str]:
        """Yield what is to be warned of where noise moves the states: which, and how much of it."""
        if not self.pursuit.with_process:
            return
        nodes, measured = self.likelihood.nodes, len(self.sample_noise)
        size = self.fit.point.usual_process[self._first :] * np.sqrt(nodes.substeps)  # from row to row
        ratio = size[:measured] / np.maximum(self.noise[:measured], TINY)
        # A chaotic map has states that no step reaches. Pushes of a flow add up over rows: below this, nothing moves.
        if ratio.max() * (1.0 if self.likelihood.discrete_time else np.sqrt(self.n_rows)) < LEAST_MOVED:
            return
        moved = ratio >= LEAST_MOVED * ratio.max()
        shares = [f"{share:.2g} times" if share < FAR_MORE else "far above" for share in ratio]
        names = [printable(one.name) for one in equations]
        told = [
            f"{name} by {by:.2g} ({share} the noise of its samples)"
            for name, by, share in compress(zip(names, size, shares, strict=True), moved)
        ]
        pairs = compress(zip(names, self.misfit, strict=True), (self.misfit > self.largest_misfit) & ~moved)
        missed = [f"{name} by {times:.2g} times" for name, times in pairs]
        also = f" If they did, they would also miss {in_a_row(missed)} the noise of the samples." if missed else ""
        also += self._told_exact(equations)
        inputs = "an input is noisy, late or changes between rows, " * self._has_inputs
        yield (
            f"The states do not follow the equations exactly: over a step something else moves {in_a_row(told)}.{also} "
            "Either the system itself is noisy, or a term or a state is missing, a coefficient changes with time, "
            f"times are wrong (rows lost, for example), {inputs}or errors of neighbouring readings depend on each other"
        )

    def _told_exact(self, equations: Sequence[Equation]) -> str:
        """Return a sentence on equations that need no noise of the process, where these fit about as well."""
        exact = self.pursuit.exact
        if exact is None or self.pursuit.score(exact) > self.pursuit.score(self.fit) + CLOSE:
            return ""
        names, rows = equations[0].vocabulary.names, enumerate(equations, self._first)
        told = [f"{one.left.text}: [{self.worded(exact.support, row, names)}]" for row, one in rows]
        return f" Equations that hold exactly fit about as well: {in_a_row(told)}."

    def odd_samples(self, equations: Sequence[Equation]) -> list[str]:
        """Return what is to be warned of the samples: rows at rest, and single ones far from the states."""
        nodes, measured, maps = self.likelihood.nodes, len(self.sample_noise), self.likelihood.discrete_time
        names, sizes = [one.name for one in equations], self.likelihood.sizes(self.fit.point.states)
        states, candidates = self.fit.point.states[:, :measured], self._per_series(self.likelihood.inside.n_open)
        out = [] if maps else at_rest(nodes, states, self._least_noise, candidates)
        if not (maps or self._has_inputs or self.pursuit.with_process):  # then states move by their own turns alone
            out += may_be_aliased(nodes, states)
        if self.likelihood.noiseless(self.fit.point):  # rounding has errors of any size
            return out
        return out + far_off(nodes, (self.linear.errors / sizes)[:, :measured], sizes, names)

    @explained("misfit")
    def not_among(self, equations: Sequence[Equation]) -> Iterator[str]:
        """Yield what is to be warned of terms that were found and may stand in for another, which was not given."""
        noise, names = np.maximum(self.noise[: len(self.sample_noise)], self.sample_noise), self._state_names(equations)
        better = max(not_given(self.pursuit, self.fit, noise, self._first, names), default=None)
        if better is not None and better[0] > CLOSE:
            gain, equation, term, places = better
            left, names = equations[equation - self._first].left.text, list(equations[0].vocabulary.names)
            gone = f", in place of {in_a_row([names[place] for place in places])}," if places else ""
            yield (
                f"A term that is not among the candidates, such as {term} in the equation of {left}{gone} would be "
                f"clearly better (by {gain:.0f}; {CLOSE:g} would be clear). Those that were found may stand in for it: "
                "add such terms to the library (Custom has any function, CommonTerms() fractions, exponentials and "
                "sines)"
            )

    def dependent(self, equations: Sequence[Equation]) -> list[str]:
        """Return what is to be warned of states that follow their samples only roughly."""
        scaled, names = self.linear.errors * np.sqrt(self.linear.weights), [one.name for one in equations]
        silent = self.pursuit.with_process or self.likelihood.noiseless(self.fit.point)
        return [] if silent else dependent_errors(self.likelihood.nodes, scaled[:, : len(self.misfit)], names)

    def _state_names(self, equations: Sequence[Equation]) -> list[str]:
        """Return the names of states and inputs as they are shown."""
        names = [printable(one.name) for one in equations]
        rates = [f"{name}'" for name in names][: self._first]
        return [*names, *rates, *map(str, range(self.likelihood.n_inputs))]

    @explained("misfit")
    def odd_noise(self, told: Any) -> Iterator[str]:
        """Yield what is to be warned of noise that was given where the samples show another."""
        if told is None or self.likelihood.discrete_time:
            return
        given = np.broadcast_to(told, self.sample_noise.shape)
        ratio = np.maximum(given, TINY) / np.maximum(self.sample_noise, TINY)
        worst = int(np.argmax(np.abs(np.log(ratio)) - np.log(self.largest_misfit)))
        if max(ratio[worst], 1 / ratio[worst]) > self.largest_misfit[worst]:
            yield (
                f"noise_std={given[worst]:.3g} is {ratio[worst]:.2g} times the noise that samples show "
                f"({self.sample_noise[worst]:.3g}, read off their differences). If it is wrong, so are the intervals, "
                "and the equations may be: leave it out to have it learned"
            )

    def residuals(self, equations: Sequence[Equation]) -> list[Array]:
        """Return the samples less the states, in units of their noise; of a state that is not measured, nothing."""
        scaled = self.linear.errors * np.sqrt(self.linear.weights)
        seen = self.likelihood.nodes.seen
        if self.likelihood.knowledge.of_series is not None:
            seen = seen & (self.likelihood.nodes.series == self.series)[:, None]
        return [-scaled[seen[:, state], state] for state in range(len(equations))]

    def inclusion(self, n_resamples: int, generator: Any) -> Array:
        """Return how often every term is chosen when the regression on all candidates is given new noise."""
        if self.likelihood.knowledge.of_series is not None:
            raise ValueError("inclusion() is not known for shared=…: resample whole series and fit each.")
        if self.pursuit.with_process:
            # The linearisation leaves out what the states' spread says of terms.
            raise ValueError(
                "inclusion() is not known where the states themselves are noisy (process_noise_ above 0): read the "
                "intervals and the rivals of the equations, or resample whole series and fit each."
            )
        of = self.likelihood
        chosen = np.zeros((of.n, of.inside.n_reported))
        posed = self.pursuit.posed(self.linear)
        if posed is not None:
            for _ in range(n_resamples):
                target = posed.problem.target + generator.standard_normal(posed.problem.target.size)
                drawn = replace(posed.problem, target=target)
                best = select(drawn, self.pursuit.propose(drawn, posed.unit))[0]
                for equation in range(of.n):
                    chosen[equation, list(self.named(posed.support(best.support), equation))] += 1
        return np.asarray(chosen[self._first :] / n_resamples)


def found_states(series: Sequence[Series], library: Library, propose: Propose, wishes: Wishes) -> FoundStates:
    """Find the equations of some series on the likelihood of their trajectories.

    Inputs that jump from row to row are interpolated and, in another search, held: the likelihood decides.
    """
    jumping = () if wishes.discrete_time else jumping_inputs([one.inputs for one in series])
    held = series[0].held
    ways = {some: [replace(one, held=some) for one in series] for some in {held, (*held, *jumping)}}
    found = {some: pursued(way, library, propose, wishes) for some, way in ways.items()}
    held, (pursuit, fit, exact) = min(found.items(), key=lambda one: one[1][0].score(one[1][1]))
    of, states, measured = pursuit.of, fit.point.states, series[0].x.shape[1]
    size = of.usual_size(states)[:measured]
    noise = sample_noise(of.nodes, of.sizes(states), measured) * size
    floor = np.maximum(noise, of.floor[:measured] * size)
    rows = int(np.sum(np.any(of.nodes.seen, axis=1)))
    # The samples of a map jump: their differences say nothing of noise.
    misfit = np.full(measured, np.nan) if wishes.discrete_time else exact[:measured] / np.maximum(floor, TINY)
    return FoundStates(pursuit, fit, noise, misfit, rows, [one.t for one in series], held)
