"""Search over supports of equations whose noise covariance depends on the support itself.

Every support S is fitted with its own whitening (passes until ξ settles) and scored by N ln(RSS/N) + 2[k ln N +
2 ln C(d, k)], without ln|C|: RSS/N is the noise of the states in the data's own units, comparable between whitenings,
whereas with ln|C| overfitted supports win.

1) *Proposals.* On a whitened problem, ARD and backward elimination propose supports (`methods.task`), or an estimator.
2) *Tournament.* Starts are all sparse models on the backward paths of the problem of the empty model, and its best
   small models. Around the best support, what the selection on its own whitened problem proposes, its neighbours there,
   and what several terms more at once make of it, are fitted too, until the best of all that were ever met is one
   whose surroundings have been searched, or the budget of fits is spent, which is told.
3) *All equations*, each alone. Of those of fields, models are listed between which the data do not decide.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed

from ardea.core.problem import Array, Index, Problem, misfit, penalty, posed
from ardea.core.subsets import Model, Propose, Support, model, neighbours, select, small_models, small_supports
from ardea.equation import CLOSE, N_RIVALS, Equation, KeptTerms
from ardea.methods.task import wide_supports
from ardea.names import Left, Rival, Vocabulary

# "Measured", here and in `rows`, means: on 54 draws (18 ODEs and maps of `systems` at 1, 3 and 10 %
# noise), of which 52 supports were exact while equations of states were still revised together in the end.

# Bounds on the work of one tournament: terms of a start (measured: 4 and 16 lead to the same 54 supports), and fits
# (measured: 100 right equations of the fields of `systems` took 39 at most).
LARGEST_START, MOST_FITS = 8, 150
# The surroundings of so many are, even where nothing near the best is better. Measured on all systems at 5 % noise, two
# draws each: with 1, one more support is lost. A first look takes so many passes. Measured: with one less, and with one
# and two more, one support of 54 is lost.
LEAST_EXPANDED, QUICK_PASSES = 3, 3
# Supports whose criterion at another's whitening exceeds that other's by more than this (odds of 400 to 1) are not
# tried themselves, and at most so many are. Measured: 6 and 24, and 3 and 12 of them, lead to the same 54 supports.
MARGIN, NEIGHBOURS = 12.0, 6
# The whitening of a model with a false term favours that term: removals are tried unless they raise RSS more than this.
LARGEST_LOSS = 2.5  # measured: 1.25 and 5 lead to the same 54 supports
# Conventions: two models of a field cannot be told apart when their N ln RSS differ by less than so many standard
# deviations of the difference, or by less than `CLOSE`; models named as equally good have so many terms more at most
# (where a field only moves, one more: the front of u_t = u_xx + u - u^2 obeys u_t = -c u_x); so many without a certain
# term of the best one are fitted, to see whether they are as good; so many supports, the closest, are left open to a
# search on the likelihood of the trajectory; so many of the best small models, and of those with several terms more,
# are tried.
EQUALLY_GOOD, MORE_TERMS, TRIED_WITHOUT, RUNNERS_UP, SMALL_TRIED = 1.5, 1, 2, 4, 3
# The best models at the whitening of much noise that are looked at, and of small ones there those of every size.
# Measured: in 17 draws of Cahn–Hilliard with 10 % noise the truth was the first to third. With 13 and 26 rows for 30
# candidates it, a pair, was the best pair in 37 of 40, and not among the best of all sizes.
LOUDEST, OF_EVERY_SIZE = 3, 1
# Where another search follows, of how many sizes the best model is looked at.
FEW_SIZES = 4
# A convention, measured on public systems whose terms are not among the candidates: 26 of 26 leave more than this times
# the noise of their samples. What leaves as many times less is no better.
LARGEST_MISFIT = 1.5


# 0) Rows of one equation


@dataclass(frozen=True, eq=False)
class RowsFit:
    """An equation at one support, with ξ on it."""

    support: Support
    coefficients: Array
    rss: float  # ‖z − Aξ‖²
    errors: Any = ()  # ê, held as the equation likes; empty before the first pass
    floor: float = 0.0  # RSS that truncation error alone leaves
    settled: bool = False  # whether another pass would hardly change it
    score: float = np.inf  # by which supports are compared
    shares: Array | float = 0.0  # of the rows, r²/RSS, as they count in ln RSS
    gain: float = np.inf  # by how much N ln RSS is less than without terms, where rows are whitened alike


class EquationRows(ABC):
    """N rows of one equation with d candidate terms, which can be fitted, each time with its own whitening."""

    n_rows: int
    n_terms: int
    # What one unit of noise in the whitened rows is worth in the units of the state, and how much the state varies in
    # units of its noise.
    noise_unit: float = 1.0
    excitation: float = np.inf
    structure: float = 0.0  # the share of a field that this is where it is structure, or rounding that goes on
    told: tuple[str, ...] = ()  # what is to be said of the candidates
    simplest: Sequence[Support] = ()  # supports that are always tried
    ladders: Sequence[Support] = ()  # candidates that are all, or the highest, powers of one thing, times the same
    # With far too much noise the passes never settle: a bound on work.
    MOST_PASSES: ClassVar[int] = 12  # measured: 6 and 24 lead to the same 54 supports
    # Where N ln RSS falls by more than this in a pass, another follows, however many were asked for.
    STILL_FALLING: ClassVar[float] = np.inf
    LISTS_EQUIVALENTS: ClassVar[bool] = False  # whether models are listed between which the data do not decide
    # Whether `noise_unit` is the noise of the samples, with which what an equation leaves can be compared.
    KNOWS_NOISE: ClassVar[bool] = False

    @property
    def hint(self) -> str:
        """What else may be wrong where nothing fits."""
        return ""

    @abstractmethod
    def system(self, fit: RowsFit) -> tuple[Array, Array]:
        """Return A and z of all candidate terms, whitened at a fit."""

    @abstractmethod
    def passed(self, fit: RowsFit) -> RowsFit:
        """Return the fit after one more pass."""

    def of_motion(self, support: Support) -> tuple[EquationRows, Support] | None:
        """Return the equation of a field that only moves, and its terms, where they may stand in for a support."""
        return None

    def loud(self) -> list[RowsFit]:
        """Return fits that amplify noise, to whose whitening supports are proposed, as to that of the empty model."""
        return []

    def stands(self, fit: RowsFit) -> bool:
        """Whether the score of a fit whose passes have ended can be believed."""
        return True

    def explained(self, support: Sequence[int], coefficients: Array) -> float:
        """Return R² of the two sides of the rows, less than zero where it is worse than none."""
        return 1.0

    def fits(self, fit: RowsFit) -> bool:
        """Whether a fit leaves no more than the noise of the samples allows, where that is known."""
        degrees = self.n_rows - len(fit.support)
        return not self.KNOWS_NOISE or fit.rss + fit.floor <= LARGEST_MISFIT**2 * (degrees + fit.floor)

    def same(self, support: Support, other: Support) -> bool:
        """Whether the terms of one support are sums of those of another, whatever the data."""
        return False

    def fitted(self, support: Support, start: RowsFit | None = None, passes: int | None = None) -> RowsFit:
        """Return the fit at a support, its passes repeated from `start` (default ξ = 0, ê = 0) until ξ settles.

        They stop after `passes`, unless RSS is still falling: a fit that has not come to rest says nothing of its
        support.
        """
        current, done, gain = _started(support, start), 0, np.inf
        asked = self.MOST_PASSES if passes is None else passes
        while not current.settled and done < self.MOST_PASSES and (done < asked or gain > self.STILL_FALLING):
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    following = self.passed(current)
            except np.linalg.LinAlgError:  # the coefficients, and C with them, have run away
                break
            if not np.isfinite(following.rss):
                break
            gain = self.n_rows * log_fall(current, following)
            current, done = following, done + 1
        return current


def _started(support: Support, start: RowsFit | None) -> RowsFit:
    """Return ξ = 0, ê = 0, or what an earlier fit knows."""
    if start is None:
        return RowsFit(support, np.zeros(len(support)), np.inf)
    if start.support == support:
        return start
    known = dict(zip(start.support, start.coefficients.tolist(), strict=True))
    return RowsFit(support, np.array([known.get(term, 0.0) for term in support]), np.inf, start.errors)


def log_fall(before: RowsFit, after: RowsFit) -> float:
    """Return by how much ln RSS falls."""
    tiny = np.finfo(float).tiny
    return float(np.log(max(before.rss, tiny) / max(after.rss, tiny)))


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The fit that won the search for one equation, and supports without one of its terms that explain it as well."""

    rows: EquationRows
    fit: RowsFit
    equivalents: tuple[Support, ...] = ()
    runners_up: tuple[Support, ...] = ()  # the closest that were met
    rivals: tuple[tuple[Support, float], ...] = ()  # neighbours, and by how much their criterion is higher
    unfinished: bool = False  # whether the budget of fits ended the search
    moves: bool = False  # whether a field is one shape that only moves, whatever its equation

    @property
    def support(self) -> Support:
        """Of the winner."""
        return self.fit.support


def whitened(rows: EquationRows, fit: RowsFit) -> tuple[Problem, Array]:
    """Return the problem of all candidate terms, whitened at a fit, and what one unit of each coefficient is worth."""
    return posed(*rows.system(fit), rows.n_rows, fit.floor)


def scored(rows: EquationRows, support: Support, start: RowsFit | None = None, passes: int | None = None) -> RowsFit:
    """Fit a support with a whitening of its own and score it."""
    fit, n_rows = rows.fitted(support, start, passes), rows.n_rows
    known = misfit(fit.rss, n_rows, fit.floor) if np.isfinite(fit.rss) else np.inf
    return replace(fit, score=float(known + penalty("ebic2", n_rows, rows.n_terms, len(support))))


# 2) Tournament


@dataclass(eq=False)
class Tournament:
    """All supports of one equation met so far, with their fits and scores."""

    rows: EquationRows
    propose: Propose
    thorough: bool = True  # whether several are expanded where nothing near the best is better
    met: dict[Support, RowsFit] = field(default_factory=dict)
    ended: set[Support] = field(default_factory=set)  # whose passes were taken to the end
    fallen: set[Support] = field(default_factory=set)  # whose scores then proved to be no good (`stands`)
    expanded: set[Support] = field(default_factory=set)  # whose surroundings were searched
    n_fits: int = 0

    @property
    def ranking(self) -> list[RowsFit]:
        """The fits of all supports met, best first; where one that stands fits, those that do not come last."""
        yields = any(self.rows.fits(self.met[support]) for support in self.ended - self.fallen)
        return sorted(self.met.values(), key=lambda one: (yields and one.support in self.fallen, one.score))

    @property
    def unfinished(self) -> bool:
        """Whether the best of all supports is one whose surroundings were not searched."""
        return self.ranking[0].support not in self.expanded

    def run(self) -> list[RowsFit]:
        """Return all supports met, best first; called again, it goes on from what was met meanwhile.

        With far too much noise, scores fall for a few passes and then rise: where the budget ends the search, those
        whose surroundings were searched come first.
        """
        if not self.met:
            self._begin()
        while self.n_fits < MOST_FITS:
            least = LEAST_EXPANDED if self.thorough else 1
            if not (left := self._left()) or (not self.unfinished and len(self.expanded) >= least):
                break
            best = self.settled(left[0].support, left[0])
            if self._left()[0] is not best:
                continue  # another look than the first one
            self.expanded.add(best.support)
            for support in self.near(best):
                self.settled(support, best)
        if self.unfinished:
            return sorted(self.ranking, key=lambda one: one.support not in self.expanded)
        return self.ranking

    def _left(self) -> list[RowsFit]:
        return [one for one in self.ranking if one.support not in self.expanded]

    def _begin(self) -> None:
        problem, found = self._models_at(self.looked_at(()))
        if not self.thorough:  # the best of the sizes that look best
            sizes = {len(one.support): one for one in reversed(found)}
            found = sorted(sizes.values(), key=attrgetter("criterion"))[:FEW_SIZES]
        starts = [*self.rows.simplest, *(one.support for one in (*found, *_small(problem, ())))]
        for fit in self.rows.loud():
            problem, models = self._models_at(fit)
            small = small_supports(problem, *_blocks(problem, ()), OF_EVERY_SIZE)
            starts += [*(one.support for one in models[:LOUDEST]), *(support for _, support in small)]
        for support in starts:
            if len(support) <= LARGEST_START:
                self.looked_at(support)

    def _models_at(self, fit: RowsFit) -> tuple[Problem, list[Model]]:
        """Return the problem whitened at a fit, and the models on its backward paths, best first."""
        problem, unit = whitened(self.rows, fit)
        return problem, select(problem, [*self.propose(problem, unit), *wide_supports(problem)])

    def fitted(self, support: Support, start: RowsFit | None = None, passes: int | None = None) -> RowsFit:
        """Return a support fitted anew, from nothing by default: numbers then do not depend on the way to it."""
        self.met[support] = scored(self.rows, support, start, passes)
        self.n_fits += 1
        if passes is None or self.met[support].settled:
            self.ended.add(support)
            self.fallen |= set() if self.rows.stands(self.met[support]) else {support}
        return self.met[support]

    def looked_at(self, support: Support) -> RowsFit:
        """Return a support fitted and scored after a few passes, once."""
        return self.met[support] if support in self.met else self.fitted(support, passes=QUICK_PASSES)

    def settled(self, support: Support, start: RowsFit) -> RowsFit:
        """Return a support with its passes taken to the end, once."""
        return self.met[support] if support in self.ended else self.fitted(support, start)

    def near(self, one: RowsFit) -> list[Support]:
        """Return supports nearby that the whitening of this one does not clearly rule out, closest first."""
        problem, unit = whitened(self.rows, one)
        own, proposed = model(problem, one.support), select(problem, [*self.propose(problem, unit), one.support])
        tried = [*proposed[:2], *neighbours(problem, own), *_small(problem, own.support)]
        best_first = sorted(tried, key=attrgetter("criterion"))
        hopeful = [other for other in best_first if other.criterion < own.criterion + MARGIN]
        smaller = [other for other in tried if len(other.support) < len(own.support)]
        drops = [other for other in smaller if other.rss < LARGEST_LOSS * own.rss]
        return list(dict.fromkeys(other.support for other in (*hopeful[:NEIGHBOURS], *drops)))


def _small(problem: Problem, kept: Support) -> list[Model]:
    """Return the best models that have few terms besides some that are kept."""
    return small_models(problem, *_blocks(problem, kept), SMALL_TRIED)


def _blocks(problem: Problem, kept: Support) -> tuple[Index, Index]:
    """Return the columns that may be added to some that are kept, and these."""
    others = np.array(kept, dtype=np.intp)
    return np.setdiff1d(np.flatnonzero(problem.square_norms), others), others


# 3) All equations


def searched(rows: EquationRows, propose: Propose, thorough: bool = True) -> SearchResult:
    """Return the winner of an equation's tournament, and what comes close to it.

    Where one of those that come close is better, the tournament goes on from it. Where another search follows, which
    looks for rivals itself, none are named.
    """
    tournament, fresh = Tournament(rows, propose, thorough), set[Support]()
    while True:
        first, *others = tournament.run()
        best = tournament.met[first.support] if first.support in fresh else tournament.fitted(first.support)
        fresh.add(best.support)
        moves = only_moves(rows, best)
        # Of a search that its budget ended nothing is known to be best, nor to be as good.
        listed = rows.LISTS_EQUIVALENTS and tournament.n_fits < MOST_FITS
        equal = equivalents(tournament, best, MORE_TERMS + moves) if listed else []
        rivals = close_rivals(tournament, best) if thorough else []
        if tournament.ranking[0].support == best.support or tournament.n_fits >= MOST_FITS:
            break
    alike, met = (tuple(one.support for one in some) for some in (equal, others[:RUNNERS_UP]))
    return SearchResult(rows, best, alike, met, tuple(rivals), tournament.unfinished, moves)


def equivalents(tournament: Tournament, best: RowsFit, more: int = MORE_TERMS) -> list[RowsFit]:
    """Return models of a field that lack a term of the best one and yet fit as well: the data do not decide.

    A single travelling wave is the standard case: u_t = −c u_x, and every equation with this wave as a solution fits
    as well. Term by term of the best model, the search is repeated without it, for at most so many terms `more`. A
    model is equivalent when its N ln(RSS + floor) exceeds that of the best by no more than chance may (`as_good`). Best
    first.

    Examples
    --------
    A single soliton moves, u_t = −u_x, and solves u_t = −u u_x − u_xxx as well:

    >>> from ardea.dynamics.field_equation import FieldEquation, FieldTerms, Fields
    >>> from ardea.methods.task import ard_supports
    >>> x, t = np.linspace(0, 20, 100), np.linspace(0, 6, 80)
    >>> u = 3 / np.cosh((x[:, None] - 7 - t) / 2) ** 2 + 0.02 * np.random.default_rng(0).normal(size=(100, 80))
    >>> library = FieldTerms(1, 3)
    >>> tournament = Tournament(FieldEquation([Fields(u, (x,), t)], library), ard_supports)
    >>> best = tournament.run()[0]
    >>> [[library.names()[j] for j in model.support] for model in [best, *equivalents(tournament, best)]]
    [['u_x'], ['u u_x', 'u_xxx']]
    """
    equation = tournament.rows
    A, z = equation.system(best)
    found: dict[Support, RowsFit] = {}
    for term in best.support:
        others = [j for j in range(equation.n_terms) if j != term]
        problem, unit = posed(A[:, others], z, equation.n_rows, best.floor)
        models = select(problem, tournament.propose(problem, unit))
        for one in [one for one in models if len(one.support) <= len(best.support) + more][:TRIED_WITHOUT]:
            support = tuple(others[j] for j in one.support)
            if equation.same(best.support, support):
                continue
            found[support] = tournament.settled(support, tournament.looked_at(support))
    return sorted((one for one in found.values() if as_good(one, best, equation)), key=attrgetter("score"))


def as_good(fit: RowsFit, other: RowsFit, rows: EquationRows) -> bool:
    """Whether a fit is as good as another, maybe of another order, by D = N ln((RSS + floor)/(N + floor)).

    Whitened rows are independent, and the difference of two D is to first order a sum over them of the differences of
    N r²/(RSS + floor), with √N times the standard deviation of these (Vuong's test). What truncation leaves, the floor,
    is known of no row, and two models that have nothing in common differ by 2√N.
    """
    n, both = rows.n_rows, (fit, other)
    own, others = (misfit(one.rss, n, one.floor) - misfit(float(n), n, one.floor) for one in both)
    chance = [one.rss / (one.rss + one.floor) for one in both]
    spread = min(n * float(np.std(chance[0] * fit.shares - chance[1] * other.shares)) + 2 * (1 - min(chance)), 2.0)
    return bool(own - others < max(CLOSE, EQUALLY_GOOD * np.sqrt(n) * spread))


def only_moves(rows: EquationRows, fit: RowsFit) -> bool:
    """Whether a field that only moves explains the data as well as a fit does, and clearly better than one at rest."""
    if (motion := rows.of_motion(fit.support)) is None:
        return False
    moved, still = (motion[0].fitted(support) for support in (motion[1], ()))
    return as_good(moved, fit, rows) and not as_good(still, moved, rows)


def close_rivals(tournament: Tournament, best: RowsFit) -> list[tuple[Support, float]]:
    """Return the neighbours of the winner and by how much their criterion exceeds its own, closest first.

    On the whitening of the winner that is a guide only: a neighbour that comes close there is fitted with a whitening
    of its own, as the winner was.
    """
    problem, _ = whitened(tournament.rows, best)
    chosen, compared = model(problem, best.support), []
    for other in neighbours(problem, chosen)[:N_RIVALS]:
        excess = other.criterion - chosen.criterion
        if excess < CLOSE:
            excess = tournament.settled(other.support, best).score - best.score
        compared.append((other.support, float(excess)))
    return sorted(compared, key=lambda one: one[1])


# 4) What was found


@dataclass(frozen=True, eq=False)
class FoundRows:
    """Equations found on whitened rows."""

    results: list[SearchResult]
    propose: Propose
    held = ()  # nothing is said of inputs

    @property
    def excitation(self) -> list[float]:
        """How much every state varies in units of its noise."""
        return [result.rows.excitation for result in self.results]

    def equations(self, lefts: Sequence[Left], vocabulary: Vocabulary) -> list[Equation]:
        """Return the equations: least squares on their whitened terms, and their rivals."""
        return [_of_rows(result, left, vocabulary) for result, left in zip(self.results, lefts, strict=True)]

    def misfit(self, equations: Sequence[Equation]) -> Array | None:
        """Return the noise of every equation over that of the samples, √((RSS + floor)/(N − k + floor)), where known.

        Truncation error, the floor, counts as noise of the samples.
        """
        if not self.results[0].rows.KNOWS_NOISE:
            return None
        noise, degrees = np.array([(one.noise, one.degrees) for one in equations]).T
        units, floors = np.array([(one.rows.noise_unit, one.fit.floor) for one in self.results]).T
        return np.asarray(noise / units * np.sqrt(degrees / (degrees + floors)))

    def unfinished(self, equations: Sequence[Equation]) -> list[str]:
        """Return what is to be warned of: candidates that were left out, and searches that were stopped."""
        return [*self.results[0].rows.told] + [
            f"The search for {equation.left.text} was stopped after {MOST_FITS} fits: models that were not tried may "
            "be better. Most likely no candidate fits, or noise is too large; a smaller library may help "
            "(python -m ardea.explain ambiguity)."
            for result, equation in zip(self.results, equations, strict=True)
            if result.unfinished
        ]

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


def found_rows(
    equations: Sequence[EquationRows], propose: Propose, n_jobs: int | None, shown: bool = False, thorough: bool = True
) -> FoundRows:
    """Return what is found for every equation, in so many processes, with progress shown if wanted."""
    from tqdm import tqdm

    tasks = (delayed(searched)(equation, propose, thorough) for equation in equations)
    results = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    told = tqdm(results, total=len(equations), unit="equations", disable=not shown)
    return FoundRows(list(told), propose)


def _of_rows(result: SearchResult, left: Left, vocabulary: Vocabulary) -> Equation:
    support, (problem, unit) = np.array(result.support, dtype=np.intp), whitened(result.rows, result.fit)
    kept = KeptTerms.of_rows(support, problem.restrict(support), unit[support], result.rows.noise_unit, support.size)
    names = vocabulary.names
    rivals = tuple(Rival(tuple(names[j] for j in terms), excess) for terms, excess in result.rivals)
    return Equation(left, vocabulary, kept, rivals, tuple(tuple(names[j] for j in one) for one in result.equivalents))
