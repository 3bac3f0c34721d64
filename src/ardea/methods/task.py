"""One target to fit, and the methods as functions of it: each combines inflation, prior and threshold of one loop.

==================  =======================================  =============================================
method              first                                    then
==================  =======================================  =============================================
`plain`             ARD                                      –
`inflated`          ARD at the inflated noise ασ²            –
`penalised`         ARD                                      ARD with a prior on γ, from there
`thresholded`       ARD                                      drop columns by a rule, refit, repeat
`sparse`            `inflated`: candidates                   `thresholded` among them, by backward search
==================  =======================================  =============================================

This is what ``start="paper"`` runs. ``start="safe"`` adds what is not in the paper: a fit that an F test against all
columns refutes is run again from least squares (`Task._not_refuted`); `inflated` that collapses, with the noise rule at
the inflated noise (`Task.run`); calibrated methods begin with `inflated` where plain ARD would collapse. Fits to the
columns that are left, or at another strength, begin at the fit before instead of at γ = 0: it takes two to four steps
instead of eight to the same fixed point. It leaves out that `thresholded` fits the kept columns once more where ARD has
pruned columns but no threshold has dropped any (`Task._pruned_go`), and steps of ARD after a collapse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from ardea import rates
from ardea.core.evidence import Flat, NoiseRule, Prior, Setting
from ardea.core.lazy import cached_property
from ardea.core.loop import Dropped, Fit, Status, Trace, Watch, at_floor, solve_wide, worst
from ardea.core.problem import TINY, Array, Coordinates, Index, Problem
from ardea.core.subsets import Support, forward_path
from ardea.methods.thresholds import (
    BARRED,
    SEARCHES,
    SUSPECT,
    Calibrated,
    Judge,
    Rule,
    Search,
    by_chance,
    by_likelihood,
    by_magnitude,
    calibrated_prior,
    chance_beside_all,
    overlooks_much,
    refuted,
)
from ardea.priors import Both, CappedLinear, Convex, in_coordinates

# Where a method begins: as the paper's algorithms, or with a second try where the data show that this has failed.
Start = Literal["paper", "safe"]
STARTS: tuple[Start, ...] = get_args(Start)
# Between a known σ² and ‖y‖²: further apart, the squares of q = θᵀy/σ² overflow.
FARTHEST_NOISE = 1e100
# ARDr warns where its prior has driven σ² this far above that of least squares on the same support (a convention: the
# standard deviation has doubled).
OVERSHRUNK_RATIO = 4.0
# Candidates are let in at a rate of at least one false term (measured: with correlated columns in excess of the rows, a
# rate of .3 misses twice as many true terms).
FEWEST_SCREENED = 1.0
# Measured on 100 × 150 to 200 × 1000, a quarter as many true terms as rows: 1e-2 is worse, 500 steps no better.
QUIET, QUIET_STEPS = 1e-3, 10
# The second start of SparseARD must be better by this (odds of 20 to 1): the better of two starts would keep up to 1.4
# times as many false terms as asked for (measured; with 6 or 12 no more than without).
CLEARLY_BETTER = 6.0
# How often the prior of ARDr or the inflation of ARDvi are calibrated at most; two or three times are the rule.
MOST_CALIBRATIONS = 20


# A known σ² or None, in the user's units, and the limits of the outer loop: max_iter and tol.
Limits = tuple[float | None, int, float]


@dataclass(frozen=True)
class Task:
    """One target's problem and what every method needs to solve it."""

    problem: Problem  # in normalised coordinates
    unit: Array  # what one unit of each coefficient is worth in the user's units
    noise_unit: float  # the same for σ²
    noise_variance: float | None  # known σ², in the user's units
    max_iter: int  # limits of the outer loop
    tol: float
    start: Start = "safe"
    progress: Watch | None = None  # what hears of every step
    _screened: dict[float, Fit] = field(default_factory=dict, init=False, repr=False)

    def false_positive_rate(self, false_terms: float) -> float:
        """Return false_terms per candidate column, at most the rate of plain ARD."""
        return rates.rate_for(false_terms, self.problem.n_candidates)

    def degrees(self, n_terms: int) -> float:
        """Return how many rows the noise of so many terms is learned from; infinite where it is known."""
        return np.inf if self.noise_variance is not None else max(self.problem.n_rows - n_terms, 1.0)

    def excess(self, false_terms: float, n_terms: int) -> float:
        """Return z² − 1 at the cut of one of so many terms."""
        return 2 * rates.calibrated("map", self.false_positive_rate(false_terms), self.degrees(n_terms))

    def priced(self, fit: Fit, false_terms: float) -> float:
        """Return −2 ln(evidence) with terms priced as in the elimination of `sparse`.

        A column at its cut lowers −2 ln(evidence) by z² − 1 − ln z², as on orthogonal columns.
        """
        k = fit.posterior.active.size
        excess = self.excess(false_terms, k)
        return float(fit.posterior.cost + k * (excess - np.log1p(excess)))

    @cached_property
    def plain(self) -> Fit:
        """Plain ARD on all columns: where ARDr and the thresholding methods begin, whatever their strength."""
        return self.run()

    @property
    def collapses(self) -> bool:
        """Whether plain ARD drives σ² to zero, as where columns interpolate the rows: no threshold comes back."""
        return self.problem.wide or self.plain.status is Status.COLLAPSED

    def run(
        self,
        problem: Problem | None = None,
        noise: float | None = None,
        *,
        prior: Prior | None = None,
        inflation: Array | None = None,
        start: Array | None = None,
        once: bool = False,
    ) -> Fit:
        """Run the outer loop: once, or also from least squares where the data refute a first result without a prior."""
        problem = self.problem if problem is None else problem
        alpha = np.ones(problem.n_columns) if inflation is None else inflation
        plain = prior is None and inflation is None and self.start == "safe"
        setting = Setting(problem, prior or Flat(), self._noise_rule(noise), inflation=alpha, gives_up=plain)
        fit = self._off_the_floor(setting, self._solved(setting, start))
        if self.start == "paper":
            return fit
        if fit.status is Status.COLLAPSED and inflation is not None:
            again = self._solved(replace(setting, rule_inflated=True))
            fit = again if again.status is Status.COLLAPSED else replace(again, status=Status.RESCUED)
        return fit if once or prior is not None else self._not_refuted(problem, fit, inflation)

    def _solved(self, setting: Setting, start: Array | None = None) -> Fit:
        return solve_wide(setting, start=start, max_iter=self.max_iter, tol=self.tol, progress=self.progress)

    def _noise_rule(self, initial: float | None) -> NoiseRule:
        if self.noise_variance is None:
            return NoiseRule(initial=initial)
        share = self.noise_variance / self.noise_unit
        if self.problem.total > 0 and not 1 / FARTHEST_NOISE <= share <= FARTHEST_NOISE:
            raise ValueError(
                f"noise_variance={self.noise_variance:g} is {share:.0e} times the square of y, beyond what can be "
                "computed with. Is it in the square of y's unit? Change the units, or leave it out to have it learned."
            )
        return NoiseRule(max(share, TINY))

    def _off_the_floor(self, setting: Setting, fit: Fit) -> Fit:
        """Run on with a lower floor of σ² where a wide problem ended at its high one without a collapse."""
        problem = setting.problem
        if not problem.wide or not at_floor(setting, fit.noise) or problem.too_many(fit.posterior.active.size):
            return fit
        lower = replace(setting, noise_rule=NoiseRule(initial=fit.noise, low_floor=True))
        again = self._solved(lower, fit.gamma)
        return fit if problem.too_many(again.posterior.active.size) else again.after(fit)

    def _not_refuted(self, problem: Problem, fit: Fit, inflation: Array | None) -> Fit:
        """Run again from least squares where an F test against all columns refutes the fit; return the better.

        Columns that are nearly the same may explain y by their difference, though each alone explains nothing: there
        the loop ends in a local optimum. A collapse is not taken, whatever its cost.
        """
        if chance_beside_all(problem, fit, self.noise_variance is not None) > SUSPECT or fit.status is Status.STALLED:
            return fit
        coefficients, rss = problem.least_squares(np.arange(problem.n_columns))
        noise = max(rss / (problem.n_rows - problem.n_candidates), self._noise_rule(None).floor(problem))
        again = self.run(problem, noise, inflation=inflation, start=coefficients**2, once=True)
        if again.status is Status.COLLAPSED or not again.trace.cost[-1] < fit.trace.cost[-1]:
            return fit
        return again.after(fit)

    def run_inflated(
        self, alpha: Array | None, false_terms: float, near: Fit | None = None, barred: Sequence[int] = ()
    ) -> Fit:
        """Run with inflation α, or (None) with the one calibrated to `false_terms`, from a fit nearby where given."""
        start, noise = (None, None) if near is None else (near.gamma, near.noise)
        if alpha is not None:
            return self.run(inflation=alpha, start=start, noise=noise)
        k, rate, earlier = 1, self.false_positive_rate(false_terms), None
        for _ in range(MOST_CALIBRATIONS):
            inflation = np.full(self.problem.n_columns, rates.calibrated("vi", rate, self.degrees(k)))
            inflation[list(barred)] = BARRED
            fit = self.run(inflation=inflation, start=start, noise=noise)
            fit = fit if earlier is None else fit.after(earlier)
            before, k = k, max(1, fit.posterior.active.size)
            if k <= before or np.isinf(self.degrees(k)) or fit.status is Status.STALLED:
                break
            if self.start == "safe":
                start, noise, earlier = fit.gamma, fit.noise, fit
        return fit

    def vetted(self, fit: Fit, wish: Wish, again: Callable[[list[int], Fit], Fit]) -> Fit:
        """Return a calibrated fit without columns that are together no more than chance; `again` goes on."""
        barred, learned = list[int](), self.noise_variance is None and wish.calibrated
        while learned and fit.status is not Status.STALLED and (kept := fit.posterior.active).size:
            post = self.run(self.problem.restrict(kept), fit.noise).posterior
            drop = by_chance(post, wish.calibrated_for(self, "map")).drop
            if not drop.any():
                break
            barred.extend(kept[post.active[drop]].tolist())
            fit = again(barred, fit)
        return fit

    def screened(self, false_terms: float) -> Fit:
        """ARDvi at an inflation that lets at least one false column through: columns worth a second look.

        It starts from plain ARD where that does not collapse. On ill-conditioned columns (κ = 1e4) it would else end in
        a local optimum of ten false terms in one problem of seven.
        """
        false_terms = max(FEWEST_SCREENED, false_terms)
        if false_terms not in self._screened:
            near = None if self.collapses else self.plain
            self._screened[false_terms] = self.run_inflated(None, false_terms, near)
        return self._screened[false_terms]

    def quiet(self, false_terms: float) -> Fit | None:
        """ARDvi from σ² held at `QUIET` of the mean square of y: beside more noise many true terms hide each other."""
        if self.noise_variance is not None or self.start == "paper" or self.problem.total == 0:
            return None
        held = QUIET * self.problem.total / self.problem.n_rows * self.noise_unit
        begin = replace(self, noise_variance=held, max_iter=QUIET_STEPS).run_inflated(None, false_terms)
        interpolates = begin.posterior.active.size > self.problem.n_distinct / 2
        return None if interpolates else self.run_inflated(None, false_terms, begin)

    def screened_where_collapsing(self, wish: Wish) -> Fit | None:
        """Return the screened fit where plain ARD would collapse, unless the user gave a strength, as in the paper."""
        screens = self.start == "safe" and wish.calibrated and self.collapses
        return self.screened(wish.false_terms) if screens else None

    def threshold(self, rule: Rule, screened: Fit | None = None, known: Fit | None = None) -> Fit:
        """Threshold ARD sequentially (Algs. 4–6), among all columns or those that an earlier fit kept."""
        if screened is None:
            return self.sequential(rule, self.plain, np.arange(self.problem.n_columns), known)
        columns = screened.posterior.active
        fit = self.sequential(rule, self._refit(screened, columns, columns), columns).after(screened)
        return replace(fit, status=worst(fit.status, screened.status))

    def sequential(self, rule: Rule, first: Fit, columns: Index, known: Fit | None = None) -> Fit:
        """Judge the fit on some columns, refit on those left, until none is dropped or a `known` fit has the same."""
        problem, fit, before, rounds = self.problem, first, first, 0
        while True:
            active = fit.posterior.active
            verdict = rule(fit.posterior, problem.square_norms[columns[active]], columns[active])
            if not verdict.drop.any() and not self._pruned_go(rule, np.delete(columns, active)):
                break
            rounds += 1
            gone = tuple(
                Dropped(int(columns[active[i]]), rounds, float(verdict.statistic[i]), float(verdict.threshold[i]))
                for i in np.flatnonzero(verdict.drop)
            )
            before = replace(fit, trace=fit.trace.then(Trace(dropped=gone)))
            left = active[~verdict.drop]
            columns = columns[left]
            if known is not None and np.array_equal(columns, known.posterior.active):
                return known
            fit = self._refit(fit, left, columns).after(before)
        if first.status is Status.COLLAPSED:
            large = problem.too_many(fit.posterior.active.size)
            fit = replace(fit, status=Status.COLLAPSED if large else Status.RESCUED)
        return fit.on(problem.n_columns, columns)

    def _refit(self, fit: Fit, left: Index, columns: Index) -> Fit:
        """Fit some columns of the problem, those `left` of an earlier fit."""
        start = fit.gamma[left] if self.start == "safe" else None
        return self.run(self.problem.restrict(columns), fit.noise, start=start)

    def _pruned_go(self, rule: Rule, pruned: Index) -> bool:
        """Whether columns that ARD has pruned count as dropped, so that the rest is fitted once more.

        They do in Algs. 4–6, whose sets are of all columns, unless τ (0, or infinity for L-STSBL) keeps every column.
        """
        if self.start == "safe" or pruned.size == 0:
            return False
        strength = rule.strength if isinstance(rule, Rule) else None
        if not isinstance(strength, np.ndarray):
            return True
        return bool(np.any((strength[pruned] > 0) & np.isfinite(strength[pruned])))


def tasks_of(
    problems: Sequence[Problem], coordinates: Coordinates, limits: Limits, start: Start = "safe"
) -> list[Task]:
    """Return one task per target, or say why there is nothing to solve."""
    flat, m = coordinates.flat, coordinates.total_weight
    if flat.kept.size and m <= coordinates.flat_rank:
        raise ValueError(
            f"The {flat.kept.size} columns in always_keep (and the intercept) fit the {m:g} rows exactly, so "
            "nothing is left to learn from. Keep fewer columns, or add rows."
        )
    squares = [one * one for one in coordinates.targets.tolist()]
    if not all(TINY <= one < np.inf for one in squares):
        raise ValueError("The square of y overflows or underflows (beyond 1e±150): give y in another unit.")
    return [
        Task(problem, coordinates.coefficient_unit(t), squares[t], *limits, start) for t, problem in enumerate(problems)
    ]


@dataclass(frozen=True)
class Wish:
    """What a user asks of a method, checked: one strength per column, or the expected number of false terms."""

    strength: Array | None = None  # α, λ or τ of every column in the user's units; None where it is to be calibrated
    false_terms: float = 1.0  # expected number of false terms, for a calibrated strength
    width: Array | None = None  # η of ARDr
    prior: Prior | Convex | None = None  # of ARDr, in place of λ and η
    search: Search = "diagonal"  # of MAPSTSBL

    @property
    def calibrated(self) -> bool:
        """Whether the strength follows from `false_terms`."""
        return self.strength is None and self.prior is None

    def threshold(self, task: Task, method: rates.Method, unit_power: int) -> Array | Calibrated:
        """Return the strengths of a rule in the problem's coordinates."""
        if self.strength is None:
            return self.calibrated_for(task, method, one_price=self.search != "diagonal")
        with np.errstate(over="ignore", under="ignore"):  # infinity and zero are then the right strengths
            return self.strength / task.unit**unit_power

    def calibrated_for(self, task: Task, method: rates.Method, *, one_price: bool = False) -> Calibrated:
        """Return the strength calibrated to `false_terms`."""
        rate, screened = task.false_positive_rate(self.false_terms), self.false_terms < FEWEST_SCREENED
        return Calibrated(method, rate, task.degrees(0), task.problem.n_candidates, screened, one_price)


@dataclass(frozen=True)
class Method:
    """What an estimator is: how it is solved, and the name and range of its strength."""

    solution: Callable[[Task, Wish, Fit | None], Fit]  # from a task, a wish, and the fit of a strength nearby or None
    strength: str | None = None  # name of the parameter that decides how many terms are kept
    zero_allowed: bool = True  # which extreme strengths make sense
    infinity_allowed: bool = False
    sparse_first: bool = False  # whether small strengths keep few terms
    unit_power: int = 0  # how the statistics of its threshold change with the unit of a coefficient

    def solve(self, task: Task, wish: Wish, near: Fit | None) -> Fit:
        """Solve a task as wished; a fit nearby is a start of ours, not of the paper."""
        fit = self.solution(task, wish, near if task.start == "safe" else None)
        if fit.status is Status.COLLAPSED and not task.problem.too_many(fit.posterior.active.size):
            return replace(fit, status=Status.RESCUED)  # it collapsed on the way, not at the end
        looked_at = wish.calibrated and task.noise_variance is None and task.start == "safe"
        overlooks = looked_at and overlooks_much(task.problem, fit, wish.false_terms)
        return replace(fit, status=worst(fit.status, Status.LEFT_OUT)) if overlooks else fit


def plain(task: Task, wish: Wish, near: Fit | None = None) -> Fit:
    """ARD (Alg. 1)."""
    return task.plain


def inflated(task: Task, wish: Wish, near: Fit | None = None) -> Fit:
    """ARDvi (Alg. 2)."""
    first = task.run_inflated(wish.strength, wish.false_terms, near)
    return task.vetted(first, wish, lambda barred, at: task.run_inflated(None, wish.false_terms, at, barred).after(at))


def _thresholded(
    judge: Judge, method: rates.Method, power: int, task: Task, wish: Wish, near: Fit | None = None
) -> Fit:
    rule = Rule(judge, wish.threshold(task, method, power))
    return task.threshold(rule, task.screened_where_collapsing(wish))


magnitude = partial(_thresholded, by_magnitude, "m", 1)  # M-STSBL (Alg. 4)
likelihood = partial(_thresholded, by_likelihood, "l", -1)  # L-STSBL (Alg. 5)


def maximum_a_posteriori(task: Task, wish: Wish, near: Fit | None = None) -> Fit:
    """MAP-STSBL (Alg. 6)."""
    return _thresholded(SEARCHES[wish.search], "map", 0, task, wish)


def sparse(task: Task, wish: Wish, near: Fit | None = None) -> Fit:
    """SparseARD: candidates by ARDvi, then MAP backward elimination among them; the same from a second start.

    That is plain ARD or, where it would collapse, ARDvi from where it ends with hardly any noise (`Task.quiet`). The
    second is taken where its evidence is clearly better, at the price per term that the elimination has, unless an F
    test against all columns refutes one of them alone.
    """
    strength = wish.calibrated_for(task, "map", one_price=True)
    rule = Rule(SEARCHES["backward"], strength)
    fit = task.threshold(rule, task.screened(wish.false_terms))
    quiet = task.quiet(max(FEWEST_SCREENED, wish.false_terms)) if task.collapses else None
    if quiet is not None or not task.collapses:
        second = task.threshold(rule, quiet, fit)
        better = task.priced(second, wish.false_terms) < task.priced(fit, wish.false_terms) - CLEARLY_BETTER
        worse = [refuted(task.problem, one, task.noise_variance is not None) for one in (fit, second)]
        if better if worse[0] == worse[1] else worse[0]:
            fit = second
    return strength.shrunk_where_weak(task.problem, fit)


def penalised(task: Task, wish: Wish, near: Fit | None = None) -> Fit:
    """ARDr (Alg. 3), from ARD's γ."""
    screened = task.screened_where_collapsing(wish)
    first = task.plain if screened is None else screened
    if wish.calibrated:
        fit = task.vetted(_calibrated(task, wish, first), wish, lambda barred, at: _calibrated(task, wish, at, barred))
    else:
        fit = _run_on(task, _given_prior(task, wish), first)
    status = worst(fit.status, Status.RESCUED if first.status is Status.COLLAPSED else first.status)
    if task.noise_variance is None and fit.noise > OVERSHRUNK_RATIO * _least_squares_noise(task, fit):
        status = worst(status, Status.OVERSHRUNK)
    return replace(fit, status=status)


def _run_on(task: Task, prior: Prior, begin: Fit) -> Fit:
    """Run on from a fit under a prior."""
    return task.run(noise=begin.noise, prior=prior, start=begin.gamma).after(begin)


def _calibrated(task: Task, wish: Wish, begin: Fit, barred: Sequence[int] = ()) -> Fit:
    """Run, calibrate the prior again to the σ² found (ARD's is too small by the false columns it keeps), repeat."""
    for _ in range(MOST_CALIBRATIONS):
        excess = task.excess(wish.false_terms, max(1, begin.posterior.active.size))
        width = None if wish.width is None else wish.width / task.unit**2
        fit = _run_on(task, calibrated_prior(task.problem, begin, excess, width, barred), begin)
        if fit.status is Status.STALLED or np.array_equal(fit.gamma > 0, begin.gamma > 0):
            break
        begin = fit
    return fit


def _given_prior(task: Task, wish: Wish) -> Prior:
    """Return the user's prior in the problem's coordinates."""
    if isinstance(wish.prior, Prior):
        whole = wish.prior
    elif wish.prior is not None:
        whole = Both(Flat(), wish.prior)
    else:
        lam = 0.0 if wish.strength is None else wish.strength
        whole = CappedLinear(lam, np.inf if wish.width is None else wish.width)
    return in_coordinates(whole, task.unit**2, task.noise_unit)


def _least_squares_noise(task: Task, fit: Fit) -> float:
    """Return ‖y − Θξ‖²/(m − k) with ξ by least squares on the support, or the floor of σ² where that is higher."""
    degrees = task.problem.n_rows - fit.posterior.active.size
    if degrees <= 0:
        return np.inf
    _, rss = task.problem.least_squares(fit.posterior.active)
    return max(rss / degrees, NoiseRule().floor(task.problem))


# Supports worth a look

# ARD proposes at its own noise and at this many times that. Measured (see `dynamics.search`): 4 and 64 lead to the same
# 54 supports. It stops early and leaves a share to noise (conventions: 6 s instead of 16 where columns look alike).
INFLATION, LEFT_TO_NOISE, ARD_STEPS, ARD_TOLERANCE = 16.0, 1e-11, 200, 1e-4
# Where columns are many: shares of the variance at which the noise is held, with its inflation, and the length of a
# forward selection. Conventions that span noise of 3 to 30 % and equations of any usual length.
HELD_NOISE, HELD_INFLATION = (1e-1, 1e-2, 1e-3), 4.0
FORWARD_LENGTH = 30


def ard_supports(problem: Problem, _unit: Array | None = None) -> list[Support]:
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
    target, rest = problem.target / np.sqrt(problem.total), problem.rest / problem.total + LEFT_TO_NOISE
    normalised = Problem(problem.columns, target, rest, problem.n_rows)
    task = Task(normalised, np.ones(d), 1.0, noise, ARD_STEPS, ARD_TOLERANCE)
    gamma = task.run(inflation=np.full(d, inflation), once=True).gamma
    return tuple(np.flatnonzero(gamma).tolist())
