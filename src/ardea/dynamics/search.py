"""Search over supports of equations whose noise covariance depends on the support itself.

Every support S is fitted with its own whitening (passes until ξ settles) and scored by N ln(RSS/N) + 2[k ln N +
2 ln C(d, k)], without ln|C|: RSS/N is the noise of the states in the data's own units, comparable between whitenings,
whereas with ln|C| overfitted supports win.

1) *Proposals.* On a whitened problem, ARD and backward elimination propose supports (`methods.task`), or an estimator.
2) *Tournament.* From S the selection on its whitened problem proposes the next support; a fixed point proposes itself.
   Starts: the empty model, and all sparse models on the backward paths of its problem. Results are kept by support, so
   that starts which meet share the rest of the way.
3) *All equations.* Those of states are found alone and then revised together; of those of fields, models are listed
   between which the data do not decide.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ardea.core.compression import CompressedRows
from ardea.core.problem import Array, Problem
from ardea.core.subsets import Model, Support, misfit, model, neighbours, penalty, posed, select
from ardea.dynamics.field_equation import FieldEquation
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.fields import Fields
from ardea.dynamics.libraries import Library
from ardea.dynamics.rows import Stretch
from ardea.dynamics.series import Series, noise_levels, spread
from ardea.dynamics.whitening import EquationRows, GivenRows, JointRows
from ardea.equation import CLOSE, N_RIVALS, Equation, KeptTerms, Left, Rival
from ardea.estimators.advice import AdviceWarning
from ardea.methods.task import wide_supports
from ardea.names import Vocabulary

# Rows of one equation that can be whitened, and fitted, at any support.
Rows = EquationRows | GivenRows | FieldEquation
# From a whitened problem, and what one unit of each of its coefficients is worth, to supports worth a look.
Propose = Callable[[Problem, Array], list[Support]]

# "Measured", here and in `rows` and `whitening`, means: on 54 draws (18 ODEs and maps of `systems` at 1, 3 and 10 %
# noise), of which 52 supports are exact.

# Bounds on the work of one tournament: terms of a start, starts looked at twice and pursued, supports on one way, and
# supports whose surroundings are searched. Measured: twice and half of all lead to the same 54 supports.
LARGEST_START = 8
LOOKED_AT, PURSUED = 8, 4
LONGEST_WAY, MOST_REFINED = 8, 6
# Passes of a first and a second look. Measured: with one less, and with one and two more, one support of 54 is lost.
GLANCE_PASSES, QUICK_PASSES = 2, 3
# Supports whose criterion at another's whitening exceeds that other's by more than this (odds of 400 to 1) are not
# tried themselves, and at most so many are. Measured: 6 and 24, and 3 and 12 of them, lead to the same 54 supports.
MARGIN, NEIGHBOURS = 12.0, 6
# The whitening of a model with a false term favours that term: removals are tried unless they raise RSS more than this.
# Measured: 1.25 and 5 lead to the same 54 supports.
LARGEST_LOSS = 2.5
# Supports of the first tournament that the joint search looks at too. Measured: none and 6 lead to the same 54.
RUNNERS_UP = 3
# Equations whose noise, in units of s, exceeds that of the median one so many times lack a term: they would spoil the
# others, and stay alone. Measured: 1.5 and 6 lead to the same 54 supports.
MISFIT = 3.0
# Largest joint covariance (rows of all equations of a stretch). Measured: its Cholesky factor takes half a second.
LARGEST_JOINT = 2500
# Above this share of the noise of the rows, truncation error makes a joint fit overconfident (a convention). Measured:
# with four times more and four times less as many of the 54 supports are exact.
LARGEST_TRUNCATION = 0.02
# Rounds of revisions per equation, a bound on work. Measured: 1 and 6 lead to the same 54 supports.
LARGEST_REVISIONS = 3
# Twelve independent rows carry the three terms that a quarter of them allows (`core.problem.LARGEST_SHARE`).
FEWEST_EQUATION_ROWS = 12
# Two models of a field cannot be told apart when their N ln RSS differ by less than this times √N. Derived: with
# whitenings of their own, the difference of two equally good models has a standard deviation of up to 2√N.
EQUALLY_GOOD = 3.0
# Convention: how many models without a certain term of the best one are fitted, to see whether they are as good.
TRIED_WITHOUT = 2


@dataclass(frozen=True, eq=False)
class Scored:
    """A support, its fit with a whitening of its own, and its score."""

    support: Support
    fit: Any
    score: float


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The support that won the search for one equation."""

    rows: Rows
    support: Support
    fit: Any
    # Coefficients estimated together with these.
    n_parameters: int
    # The next best supports of its own tournament, and those without one of its terms that explain the data as well.
    runners_up: tuple[Support, ...] = ()
    equivalents: tuple[Support, ...] = ()
    # What one unit of noise in the whitened rows is worth in the units of the state, and how much the state varies in
    # units of its noise.
    noise_unit: float = 1.0
    excitation: float = np.inf


def whitened(rows: Rows, fit: Any) -> tuple[Problem, Array]:
    """Return the problem of all candidate terms, whitened at a fit, and what one unit of each coefficient is worth."""
    return posed(*rows.system(fit), rows.n_rows, fit.floor)


def scored(rows: Rows, support: Support, start: Any, passes: int | None = None) -> Scored:
    """Fit a support with a whitening of its own and score it."""
    fit, n_rows = rows.fitted(support, start, passes), rows.n_rows
    known = misfit(fit.rss, n_rows, fit.floor) if np.isfinite(fit.rss) else np.inf
    return Scored(support, fit, float(known + penalty("ebic2", n_rows, rows.n_terms, len(support))))


# 1) Proposals


def regressor_supports(regressor: Any, problem: Problem, unit: Array) -> list[Support]:
    """Return the support that an estimator of ours finds on all rows of the problem, as the only proposal."""
    rows, d = problem.columns.shape
    factor = np.zeros((rows + 2, d + 2))  # of [1 A z]; the column of ones is not used
    factor[1:-1, 1:-1] = problem.columns.take(np.arange(d)) / unit
    factor[1:-1, -1], factor[-1, -1] = problem.target, np.sqrt(problem.rest)
    compressed = CompressedRows(factor, d, problem.n_rows, round(problem.n_rows))
    with warnings.catch_warnings():
        # Of a step on the way, not of the equations.
        warnings.simplefilter("ignore", AdviceWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = clone(regressor).fit(compressed, None)
    return [tuple(np.flatnonzero(found.support_).tolist())]


# 2) Tournament


@dataclass(eq=False)
class Tournament:
    """All supports of one equation met so far, with their scores."""

    rows: Rows
    propose: Propose
    met: dict[Support, Scored] = field(default_factory=dict)
    _ranked: dict[Support, list[Model]] = field(default_factory=dict)
    _problems: dict[Support, tuple[Problem, Array]] = field(default_factory=dict)

    @cached_property
    def beginning(self) -> Any:
        """What fits start from."""
        return self.rows.beginning()

    def run(self) -> list[Scored]:
        """Return all supports met, best first."""
        empty = self.looked_at(())
        starts = [one.support for one in self.ranked(empty) if 0 < len(one.support) <= LARGEST_START]
        glances = sorted((scored(self.rows, one, self.beginning, GLANCE_PASSES) for one in starts), key=_by_score)
        for glance in glances[:LOOKED_AT]:
            self.met[glance.support] = scored(self.rows, glance.support, glance.fit, QUICK_PASSES - GLANCE_PASSES)
        for start in (empty, *sorted(self.met.values(), key=_by_score)[:PURSUED]):
            self.pursue(start)
        return self.refined(min(self.met.values(), key=_by_score))

    def around(self, supports: Sequence[Support]) -> list[Scored]:
        """Return the supports met on the way from the best of some good ones, best first."""
        self.pursue(min((self.looked_at(support) for support in supports), key=_by_score))
        return self.refined(min(self.met.values(), key=_by_score))

    def refined(self, best: Scored) -> list[Scored]:
        """Look around the best until nothing near it is better; return all supports met, best first.

        With far too much noise, scores fall for a few passes and then rise: there it stops after a while, and those
        whose passes were taken to the end come first.
        """
        finished: set[Support] = set()
        while best.support not in finished and len(finished) < MOST_REFINED:
            best = self.settled(best)
            finished.add(best.support)
            for support in self.near(best):
                self.looked_at(support)
            best = min(self.met.values(), key=_by_score)
        ranked = sorted(self.met.values(), key=_by_score)
        at_rest = best.support in finished
        return ranked if at_rest else sorted(ranked, key=lambda one: one.support not in finished)

    def looked_at(self, support: Support) -> Scored:
        """Return the support with its fit and score after a few passes, computed once."""
        if support not in self.met:
            self.met[support] = scored(self.rows, support, self.beginning, QUICK_PASSES)
        return self.met[support]

    def settled(self, one: Scored) -> Scored:
        """Return a support with its passes taken to the end."""
        self.met[one.support] = scored(self.rows, one.support, one.fit)
        return self.met[one.support]

    def ranked(self, one: Scored) -> list[Model]:
        """Return the models that the selection on the whitened problem of a support met, best first."""
        if one.support not in self._ranked:
            problem, unit = self._whitened(one)
            proposals = [*self.propose(problem, unit), one.support]
            if not one.support:
                proposals += wide_supports(problem)
            self._ranked[one.support] = select(problem, proposals)
        return self._ranked[one.support]

    def _whitened(self, one: Scored) -> tuple[Problem, Array]:
        if one.support not in self._problems:
            self._problems[one.support] = whitened(self.rows, one.fit)
        return self._problems[one.support]

    def pursue(self, one: Scored) -> None:
        """Follow proposals until one repeats."""
        for _ in range(LONGEST_WAY):
            support = self.ranked(one)[0].support
            if support in self.met:
                return
            one = self.looked_at(support)

    def near(self, one: Scored) -> list[Support]:
        """Return supports nearby that the whitening of this one does not clearly rule out, closest first."""
        problem, _ = self._whitened(one)
        own = model(problem, one.support)
        tried = [*self.ranked(one)[:2], *neighbours(problem, own)]
        hopeful = sorted((other for other in tried if other.criterion < own.criterion + MARGIN), key=_by_criterion)
        smaller = [other for other in tried if len(other.support) < len(own.support)]
        drops = [other for other in smaller if other.rss < LARGEST_LOSS * own.rss]
        return list(dict.fromkeys(other.support for other in (*hopeful[:NEIGHBOURS], *drops)))


def _by_criterion(one: Model) -> float:
    return one.criterion


def _by_score(one: Scored) -> float:
    return one.score


# 3) All equations


@dataclass(frozen=True)
class Search:
    """How equations are searched: who proposes, in how many processes, and whether progress is shown."""

    propose: Propose
    n_jobs: int | None = None
    shown: bool = False

    def each(self, function: Callable[[Any, Propose], SearchResult], equations: Sequence[Rows]) -> list[SearchResult]:
        """Return function(equation, propose) of every equation."""
        from tqdm import tqdm

        tasks = (delayed(function)(equation, self.propose) for equation in equations)
        results = Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks)
        return list(tqdm(results, total=len(equations), unit="equations", disable=not self.shown))


def _search_alone(rows: Rows, propose: Propose) -> SearchResult:
    """Return the winner of an equation's own tournament."""
    ranked = Tournament(rows, propose).run()[: 1 + RUNNERS_UP]
    best = ranked[0]
    close = tuple(one.support for one in ranked[1:] if one.score < best.score + MARGIN)
    return SearchResult(rows, best.support, rows.fitted(best.support, best.fit), len(best.support), close)


def search_given(series: Sequence[Series], library: Library, search: Search) -> list[SearchResult]:
    """Find every equation alone where derivatives were given."""
    values = np.vstack([one.values for one in series])
    slopes = np.vstack([one.x_dot for one in series if one.x_dot is not None])
    sound = np.all(np.isfinite(values), axis=1) & np.all(np.isfinite(slopes), axis=1)
    theta = library.evaluate(values[sound])
    return search.each(_search_alone, [GivenRows(theta, slope) for slope in slopes[sound].T])


def search_states(
    stretches: Sequence[Stretch], library: Library, search: Search, discrete_time: bool = False
) -> list[SearchResult]:
    """Find the equations of all states alone, then together those that fit, where the covariance is affordable."""
    n_rows = sum(stretch.n_rows for stretch in stretches)
    if n_rows < FEWEST_EQUATION_ROWS:
        raise ValueError(
            f"The data give {n_rows} independent rows, too few to find an equation (at least {FEWEST_EQUATION_ROWS}): "
            "take more samples or longer series."
        )
    parts = [stretch.data.measured for stretch in stretches]
    deviation = spread(parts)
    # Differences say nothing of the noise of a map.
    noise = np.where(deviation > 0, deviation, 1.0) if discrete_time else noise_levels(parts)
    results = _alone_then_together(stretches, library, noise, search)
    excitation = np.full(len(noise), np.inf) if discrete_time else deviation / noise
    return [
        replace(result, noise_unit=float(unit), excitation=float(ratio))
        for result, unit, ratio in zip(results, noise, excitation, strict=True)
    ]


def _alone_then_together(
    stretches: Sequence[Stretch], library: Library, noise: Array, search: Search
) -> list[SearchResult]:
    every = range(len(noise))
    results = search.each(_search_alone, [EquationRows(JointRows(stretches, library, [one], noise)) for one in every])
    level = np.sqrt([result.fit.rss / result.rows.n_rows for result in results])
    states = [state for state in every if level[state] <= MISFIT * np.median(level)]
    affordable = len(states) * max(stretch.n_rows for stretch in stretches) <= LARGEST_JOINT
    if len(states) < 2 or not affordable or _truncated(stretches, noise):
        return results
    choices = [(results[state].support, *results[state].runners_up) for state in states]
    together = _revised(JointRows(stretches, library, states, noise), choices, search.propose)
    n_parameters = sum(len(rows.support) for rows in together)
    for state, rows in zip(states, together, strict=True):
        results[state] = SearchResult(rows, rows.support, rows.start, n_parameters)
    return results


def _revised(joint: JointRows, choices: Sequence[Sequence[Support]], propose: Propose) -> list[EquationRows]:
    """Change one support at a time, always the one whose change lowers the joint score most, until none does.

    Revising them in a fixed order would let a right equation make up for the fault of a wrong one. For every equation
    the choices are the support to begin with, then others worth a look.
    """
    current = joint.each(joint.fitted([first for first, *_ in choices]))
    for _ in range(LARGEST_REVISIONS * len(current)):
        best, changed, gain = None, current[0], 0.0
        for rows, others in zip(current, choices, strict=True):
            tournament = Tournament(rows, propose)
            winner = tournament.around([rows.support, *others])[0]
            lowered = tournament.looked_at(rows.support).score - winner.score
            if lowered > gain:
                best, changed, gain = winner, rows, lowered
        if best is None:
            break
        current = joint.each(changed.fitted(best.support, best.fit))
    return current


def _truncated(stretches: Sequence[Stretch], noise: Array) -> bool:
    """Whether truncation error, which the equations share in ways unknown, is of the order of the noise of the rows."""
    for stretch in stretches:
        if stretch.truncation is not None:
            rows = noise**2 * np.trace(stretch.gram_of_D) / stretch.n_rows
            if np.any(stretch.truncation > LARGEST_TRUNCATION * rows):
                return True
    return False


def equivalents(tournament: Tournament, best: Scored) -> list[Scored]:
    """Return models of a field that lack a term of the best one and yet fit as well: the data do not decide.

    A single travelling wave is the standard case: u_t = −c u_x, and every equation with this wave as a solution fits
    as well. Term by term of the best model, the search is repeated without it, for at most one term more. A model is
    equivalent when its N ln(RSS) exceeds that of the best by less than 3√N. Best first.

    Examples
    --------
    A single soliton moves, u_t = −u_x, and solves u_t = −u u_x − u_xxx as well:

    >>> from ardea.methods.task import ard_supports
    >>> x, t = np.linspace(0, 20, 100), np.linspace(0, 6, 80)
    >>> u = 3 / np.cosh((x[:, None] - 7 - t) / 2) ** 2 + 0.02 * np.random.default_rng(0).normal(size=(100, 80))
    >>> library = FieldTerms(1, 3)
    >>> tournament = Tournament(FieldEquation(Fields(u, (x,), t), library), ard_supports)
    >>> best = tournament.run()[0]
    >>> [[library.names()[j] for j in model.support] for model in [best, *equivalents(tournament, best)]]
    [['u_x'], ['u u_x', 'u_xxx']]
    """
    equation = tournament.rows
    A, z = equation.system(best.fit)
    found: dict[Support, Scored] = {}
    for term in best.support:
        others = [j for j in range(equation.n_terms) if j != term]
        problem, unit = posed(A[:, others], z, equation.n_rows)
        models = select(problem, tournament.propose(problem, unit))
        for one in [one for one in models if len(one.support) <= len(best.support) + 1][:TRIED_WITHOUT]:
            support = tuple(others[j] for j in one.support)
            found[support] = tournament.settled(tournament.looked_at(support))
    limit = EQUALLY_GOOD * np.sqrt(equation.n_rows)
    close = [one for one in found.values() if equation.n_rows * np.log(one.fit.rss / best.fit.rss) < limit]
    return sorted(close, key=_by_score)


def search_fields(data: Fields, library: FieldTerms, search: Search) -> list[SearchResult]:
    """Find the equation of every field."""
    results = search.each(_search_field, [FieldEquation(data, library, field) for field in range(data.n_fields)])
    return [
        replace(result, noise_unit=float(noise), excitation=float(ratio))
        for result, noise, ratio in zip(results, data.noise, data.excitation, strict=True)
    ]


def _search_field(equation: FieldEquation, propose: Propose) -> SearchResult:
    tournament = Tournament(equation, propose)
    best = tournament.run()[0]
    as_good = tuple(one.support for one in equivalents(tournament, best))
    return SearchResult(equation, best.support, best.fit, len(best.support), equivalents=as_good)


# 4) What was found


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
            residuals.append(residual / max(scale, np.finfo(float).tiny))
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
    kept = KeptTerms.of_rows(support, problem.restrict(support), unit[support], result.noise_unit, result.n_parameters)

    def named(terms: Support) -> tuple[str, ...]:
        return tuple(vocabulary.names[j] for j in terms)

    rivals = tuple(Rival(named(terms), excess) for terms, excess in _rivals_of_rows(result, problem))
    return Equation(left, vocabulary, kept, rivals, tuple(named(terms) for terms in result.equivalents))


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
