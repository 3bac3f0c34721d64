"""Search over supports of equations whose noise covariance depends on the support itself.

Every support S is fitted with its own whitening (passes until ξ settles) and scored by N ln(RSS/N) + 2[k ln N +
2 ln C(d, k)], without ln|C|: RSS/N is the noise of the states in the data's own units, comparable between whitenings,
whereas with ln|C| overfitted supports win.

1) *Proposals.* On a whitened problem, ARD and backward elimination propose supports (`ard_supports`, `wide_supports`).
2) *Tournament.* From S the selection on its whitened problem proposes the next support; a fixed point proposes itself.
   Starts: the empty model, and all sparse models on the backward paths of its problem. Results are kept by support, so
   that starts which meet share the rest of the way.
3) *What was found*: least squares on the whitened terms of the winner, and its rivals. The neighbours of the winner,
   each with a whitening of its own, say how sure the choice is.

Equations of states are then searched together (`whitening`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ardea.core.compression import CompressedRows, Compression
from ardea.core.problem import Problem
from ardea.core.subsets import (
    Model,
    Support,
    forward_path,
    misfit,
    model,
    neighbours,
    penalty,
    posed,
    select,
)
from ardea.equation import CLOSE, Equation, Left, Rival
from ardea.estimators.advice import AdviceWarning
from ardea.methods.kept import FlatPart, KeptTerms
from ardea.methods.task import Task
from ardea.names import Vocabulary, printable

Array = NDArray[np.float64]
# From a whitened problem, and what one unit of each of its coefficients is worth, to supports worth a look.
Propose = Callable[[Problem, Array], list[Support]]

# "Measured", here and in `rows` and `whitening`, means: on 54 draws (18 ODEs and maps of `systems` at 1, 3 and 10 %
# noise), of which 52 supports are exact.

# ARD proposes at its own noise and at this many times that. Measured: 4 and 64 lead to the same 54 supports. It stops
# early (a convention), since the proposals are polished anyway.
INFLATION = 16.0
ARD_STEPS, ARD_TOLERANCE = 200, 1e-4
# Where columns are many: shares of the variance at which the noise is held, with its inflation, and the length of a
# forward selection. Conventions that span noise of 3 to 30 % and equations of any usual length.
HELD_NOISE, HELD_INFLATION = (1e-1, 1e-2, 1e-3), 4.0
FORWARD_LENGTH = 30
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
# Conventions: how many rivals are kept and how many `print` shows.
N_RIVALS, SHOWN_RIVALS = 8, 3
# A convention: a state that varies less than this many times its noise says nothing of its equation.
LEAST_EXCITATION = 2.0
# Rivals closer than this (odds below 5 to 3) are warned of; one that is better by more shows that the search has not
# come to rest.
INDISTINGUISHABLE = 1.0


class Rows(Protocol):
    """Rows of one equation that can be whitened, and fitted, at any support."""

    @property
    def n_terms(self) -> int:
        """Number of candidate terms d."""

    @property
    def n_rows(self) -> float:
        """Number of rows N."""

    def beginning(self) -> Any:
        """Return what the fits of one search start from."""

    def fitted(self, support: Support, start: Any = None, passes: int | None = None) -> Any:
        """Return the fit at a support, with its `rss` and `floor`, from an earlier fit, in at most so many passes."""

    def system(self, fit: Any) -> tuple[Array, Array]:
        """Return A and z of all candidate terms, whitened as the fit says."""


@dataclass(frozen=True, eq=False)
class Scored:
    """A support, its fit with a whitening of its own, and its score."""

    support: Support
    fit: Any
    score: float


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The support that won the search for one equation.

    Attributes
    ----------
    rows : Rows
        Give the whitened system at the fit.
    support : tuple of int
        Terms.
    fit : object
        The fit behind it.
    n_parameters : int
        Coefficients estimated together with these.
    runners_up : tuple of supports
        The next best supports of its own tournament.
    equivalents : tuple of supports
        Supports without one of these terms that explain the data as well.
    noise_unit : float
        What one unit of noise in the whitened rows is worth in the units of the state.
    excitation : float
        How much the state varies, in units of its noise.
    """

    rows: Rows
    support: Support
    fit: Any
    n_parameters: int
    runners_up: tuple[Support, ...] = ()
    equivalents: tuple[Support, ...] = ()
    noise_unit: float = 1.0
    excitation: float = np.inf

    @cached_property
    def whitened(self) -> tuple[Problem, Array]:
        """The problem of all candidate terms, whitened at the fit, and what one unit of each coefficient is worth."""
        return whitened(self.rows, self.fit)


@dataclass(frozen=True)
class Search:
    """How equations are searched: who proposes, in how many processes, and whether progress is shown."""

    propose: Propose
    n_jobs: int | None = None
    shown: bool = False

    def each(self, function: Callable[[Any, Propose], SearchResult], equations: Sequence[Any]) -> list[SearchResult]:
        """Return function(equation, propose) of every equation."""
        from tqdm import tqdm

        tasks = (delayed(function)(equation, self.propose) for equation in equations)
        results = Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks)
        return list(tqdm(results, total=len(equations), unit="equations", disable=not self.shown))


def whitened(rows: Rows, fit: Any) -> tuple[Problem, Array]:
    """Return the problem of all candidate terms, whitened at a fit, and what one unit of each coefficient is worth."""
    return posed(*rows.system(fit), rows.n_rows, fit.floor)


def scored(rows: Rows, support: Support, start: Any, passes: int | None = None) -> Scored:
    """Fit a support with a whitening of its own and score it."""
    fit, n_rows = rows.fitted(support, start, passes), rows.n_rows
    known = misfit(fit.rss, n_rows, fit.floor) if np.isfinite(fit.rss) else np.inf
    return Scored(support, fit, float(known + penalty("ebic2", n_rows, rows.n_terms, len(support))))


# 1) Proposals


def ard_supports(problem: Problem, unit: Array | None = None) -> list[Support]:
    """Return the support of ARD at α = 16 and, where columns do not outnumber rows, at α = 1, whatever the units."""
    inflations = (1.0, INFLATION) if problem.n_columns < problem.n_rows else (INFLATION,)
    return [_ard_support(problem, alpha, None) for alpha in inflations] if problem.total > 0 else []


def wide_supports(problem: Problem) -> list[Support]:
    """Return supports to eliminate from where terms explain something only together.

    If each alone is hidden by another, the empty model is a fixed point of ARD. The backward path from all columns
    finds them or, where those are too many, that from ARD with σ² held at small shares of the variance, or from a
    forward selection which does not stop at the criterion.
    """
    if 2 * problem.n_columns <= problem.n_rows:
        return [tuple(range(problem.n_columns))]
    held = [_ard_support(problem, HELD_INFLATION, share) for share in HELD_NOISE] if problem.total > 0 else []
    return [*held, forward_path(problem, FORWARD_LENGTH)]


def _ard_support(problem: Problem, inflation: float, noise_share: float | None) -> Support:
    """Return the columns that ARD keeps, σ² learned or held at a share of ‖z‖²/N."""
    d = problem.n_columns
    noise = None if noise_share is None else noise_share / problem.n_rows
    target, rest = problem.target / np.sqrt(problem.total), problem.rest / problem.total
    normalised = Problem(problem.columns, target, rest, problem.n_rows)
    task = Task(normalised, np.ones(d), 1.0, noise, ARD_STEPS, ARD_TOLERANCE)
    gamma = task.run_once(inflation=np.full(d, inflation)).gamma
    return tuple(np.flatnonzero(gamma).tolist())


def regressor_supports(regressor: Any, problem: Problem, unit: Array) -> list[Support]:
    """Return the support that an estimator of ours finds on all rows of the problem, as the only proposal."""
    rows, d = problem.columns.shape
    factor = np.zeros((rows + 2, d + 2))  # of [1 A z]; the column of ones is not used
    factor[1:-1, 1:-1] = problem.columns.take(np.arange(d)) / unit
    factor[1:-1, -1], factor[-1, -1] = problem.target, np.sqrt(problem.rest)
    compression = Compression(factor, d, problem.n_rows, round(problem.n_rows))
    with warnings.catch_warnings():
        # Of a step on the way, not of the equations.
        warnings.simplefilter("ignore", AdviceWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = clone(regressor).fit(CompressedRows(compression), None)
    return [tuple(np.flatnonzero(found.support_).tolist())]


# 2) Tournament


@dataclass(eq=False)
class Tournament:
    """All supports of one equation met so far, with their scores.

    Parameters
    ----------
    rows : Rows
        What to fit.
    propose : callable
        From a whitened problem to supports worth a look.
    """

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


def search_alone(rows: Rows, propose: Propose) -> SearchResult:
    """Return the winner of an equation's own tournament."""
    ranked = Tournament(rows, propose).run()[: 1 + RUNNERS_UP]
    best = ranked[0]
    close = tuple(one.support for one in ranked[1:] if one.score < best.score + MARGIN)
    return SearchResult(rows, best.support, rows.fitted(best.support, best.fit), len(best.support), close)


# 3) What was found


def rivals_of(result: SearchResult) -> list[tuple[Support, float]]:
    """Return the neighbours of the winner and by how much their criterion exceeds its own, closest first.

    On the whitening of the winner that is a guide only: a neighbour that comes close there is fitted with a whitening
    of its own, and so is the winner, as in the tournament.
    """
    problem, _ = result.whitened
    chosen = model(problem, result.support)
    own = scored(result.rows, result.support, result.fit)
    compared = []
    for other in neighbours(problem, chosen)[:N_RIVALS]:
        excess = other.criterion - chosen.criterion
        if excess < CLOSE:
            excess = scored(result.rows, other.support, result.fit).score - own.score
        compared.append((other.support, float(excess)))
    return sorted(compared, key=lambda one: one[1])


def equation_of(result: SearchResult, left: Left, vocabulary: Vocabulary) -> Equation:
    """Return the equation that a search found: least squares on its whitened terms, and its rivals."""
    support, (problem, unit) = np.array(result.support, dtype=np.intp), result.whitened
    kept = KeptTerms(
        active=support,
        problem=problem.restrict(support),
        prior_variance=None,
        noise=None,
        noise_known=False,
        n_parameters=result.n_parameters,
        unit=unit[support],
        target_unit=result.noise_unit,
        flat=FlatPart.empty(support.size),
    )

    def named(terms: Support) -> tuple[str, ...]:
        return tuple(vocabulary.names[j] for j in terms)

    rivals = tuple(Rival(named(terms), excess) for terms, excess in rivals_of(result))
    return Equation(left, vocabulary, kept, rivals, tuple(named(terms) for terms in result.equivalents))


def open_questions(equation: Equation) -> list[str]:
    """Return what is to be said of models that the data do not rule out."""
    remarks = [f"The data do not tell it from: {_listed(terms)}." for terms in equation.equivalents]
    if rivals := equation.close_rivals():
        listed = "; ".join(rival.compared for rival in rivals[:SHOWN_RIVALS])
        if round(rivals[0].excess, 1) < 0:
            remarks.append(f"The best model found is not better than its neighbours: {listed}.")
        else:
            remarks.append(f"Other models fit almost as well: {listed}. A difference of {CLOSE:g} would be clear.")
    return remarks


def doubts_about(equations: Sequence[Equation], excitation: Sequence[float]) -> list[str]:
    """Return what is to be warned of: models that the data or the search leave open, states that hardly move."""
    doubts = []
    for equation in equations:
        left, chosen = equation.left.text, _listed(equation.terms)
        rivals = equation.close_rivals(INDISTINGUISHABLE)
        others = [*equation.equivalents, *(rival.terms for rival in rivals)]
        if rivals and rivals[0].excess < -INDISTINGUISHABLE:
            doubts.append(
                f"The best model found for {left}, [{chosen}], is not better than its neighbours: "
                f"{rivals[0].compared}. Most likely the right term is not among the candidates: see that times, order "
                "of the rows and library are right (docs/warnings/ambiguity)."
            )
        elif others:
            doubts.append(
                f"The data hardly tell two models of {left} apart: [{chosen}] and [{_listed(others[0])}]. Longer "
                "or richer data would (docs/warnings/ambiguity)."
            )
    for equation, ratio in zip(equations, excitation, strict=True):
        if ratio < LEAST_EXCITATION:
            doubts.append(
                f"{printable(equation.name)} varies only {ratio:.1f} times as much as its noise: the data are too "
                "little excited (a fixed point?) to find its equation (docs/warnings/ambiguity)."
            )
    return doubts


def _listed(terms: Sequence[str]) -> str:
    return ", ".join(map(printable, terms))


def _by_criterion(one: Model) -> float:
    return one.criterion


def _by_score(one: Scored) -> float:
    return one.score
