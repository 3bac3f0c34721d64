"""One target to fit: the problem in normalised coordinates and the ways to solve it that the methods combine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import special

from ardea import rates
from ardea.core.loop import Fixed, Learned, at_floor, solve_wide
from ardea.core.problem import Array, Problem
from ardea.core.result import Fit, Status, worst
from ardea.core.reweighted import GammaPrior, NoiseRule, Setting
from ardea.methods.thresholds import Calibrated, Given, Rule, Strength, sequential
from ardea.priors import Flat

# Between a known σ² and ‖y‖²: further apart, the squares of q = θᵀy/σ² are no numbers.
FARTHEST_NOISE = 1e100
# An F test against all columns refutes a fit below this probability.
REFUTED = 1e-6


@dataclass(frozen=True)
class Task:
    """One target's problem and what every method needs to solve it.

    Attributes
    ----------
    problem : Problem
        In normalised coordinates.
    unit : ndarray of shape (d,)
        What one unit of each coefficient is worth in the user's units.
    noise_unit : float
        The same for σ².
    noise_variance : float or None
        Known σ², in the user's units.
    max_iter, tol : int, float
        Limits of the outer loop.
    """

    problem: Problem
    unit: Array
    noise_unit: float
    noise_variance: float | None
    max_iter: int
    tol: float
    _screened: dict[float, Fit] = field(default_factory=dict, init=False, repr=False)

    def false_positive_rate(self, false_terms: float) -> float:
        """Return false_terms per candidate column, at most the rate of plain ARD."""
        return float(min(false_terms / max(self.problem.n_candidates, 1), rates.NO_PRUNING_RATE))

    def _noise_rule(self, initial: float | None) -> NoiseRule:
        if self.noise_variance is None:
            return Learned(initial)
        share = self.noise_variance / self.noise_unit
        if self.problem.total > 0 and not 1 / FARTHEST_NOISE <= share <= FARTHEST_NOISE:
            raise ValueError(
                f"noise_variance={self.noise_variance:g} is {share:.0e} times the square of y, beyond what can be "
                "computed with. Is it in the square of y's unit? Change the units, or leave it out to have it learned."
            )
        return Fixed(max(share, np.finfo(float).tiny))

    def run(
        self,
        problem: Problem | None = None,
        noise: float | None = None,
        *,
        prior: GammaPrior | None = None,
        inflation: Array | None = None,
        start: Array | None = None,
    ) -> Fit:
        """Run the outer loop, without a prior also from least squares where the data refute the first result."""
        fit = self.run_once(problem, noise, prior=prior, inflation=inflation, start=start)
        return self._not_refuted(self.problem if problem is None else problem, fit, inflation) if prior is None else fit

    def run_once(
        self,
        problem: Problem | None = None,
        noise: float | None = None,
        *,
        prior: GammaPrior | None = None,
        inflation: Array | None = None,
        start: Array | None = None,
    ) -> Fit:
        """Run the outer loop; where inflation meets a collapse, once more with the noise rule at the inflated noise."""
        problem = self.problem if problem is None else problem
        alpha = np.ones(problem.n_columns) if inflation is None else inflation
        setting = Setting(
            problem,
            Flat() if prior is None else prior,
            self._noise_rule(noise),
            inflation=alpha,
        )
        fit = self._off_the_floor(setting, solve_wide(setting, start=start, max_iter=self.max_iter, tol=self.tol))
        if fit.status is Status.COLLAPSED and inflation is not None:
            setting = replace(setting, noise_scale=np.ones(problem.n_columns))
            again = solve_wide(setting, max_iter=self.max_iter, tol=self.tol)
            fit = again if again.status is Status.COLLAPSED else replace(again, status=Status.RESCUED)
        return fit

    def _off_the_floor(self, setting: Setting, fit: Fit) -> Fit:
        """Run on with a lower floor of σ² where a wide problem ended at its high one without a collapse."""
        problem = setting.problem
        if not at_floor(setting, fit) or not problem.wide or problem.too_many(fit.posterior.active.size):
            return fit
        lower = replace(setting, noise_rule=Learned(fit.noise, low_floor=True))
        again = solve_wide(lower, start=fit.gamma, max_iter=self.max_iter, tol=self.tol)
        if problem.too_many(again.posterior.active.size):
            return fit
        return replace(again, trace=fit.trace.then(again.trace), n_iter=fit.n_iter + again.n_iter)

    def _not_refuted(self, problem: Problem, fit: Fit, inflation: Array | None) -> Fit:
        """Run again from least squares where an F test against all columns refutes the fit; return the better.

        Columns that are nearly the same may explain y by their difference, though each alone explains nothing: there
        the loop ends in a local optimum. With r compressed rows, RSS_k of the fit and RSS_r outside of them,

            F = (RSS_k − RSS_r)/(r − k) / (RSS_r/(m − r)),

        or, with σ² known, (RSS_k − RSS_r)/σ² against χ² of r − k degrees. A collapse is not taken, whatever its cost:
        where rows repeat each other, RSS_r = 0 refutes every other fit.
        """
        rule = self._noise_rule(None)
        rows, k = problem.columns.shape[0], fit.posterior.active.size
        degrees, excess = problem.n_rows - rows, fit.posterior.rss - problem.rest
        if problem.total == 0 or rows <= k or degrees < 1 or excess <= 0:
            return fit
        if isinstance(rule, Learned):
            noise = max(problem.rest / degrees, rule.floor(problem))
            chance = special.fdtrc(rows - k, degrees, excess / (rows - k) / noise)
        else:
            noise = fit.noise
            chance = special.chdtrc(rows - k, excess / noise)
        if chance > REFUTED:
            return fit
        coefficients, _ = problem.least_squares(np.arange(problem.n_columns))
        again = self.run_once(problem, noise, inflation=inflation, start=coefficients**2)
        if again.status is Status.COLLAPSED or not again.trace.cost[-1] < fit.trace.cost[-1]:
            return fit
        return replace(again, trace=fit.trace.then(again.trace), n_iter=fit.n_iter + again.n_iter)

    @cached_property
    def plain(self) -> Fit:
        """Plain ARD on all columns: where ARDr and the thresholding methods begin, whatever their strength."""
        return self.run()

    def screened(self, false_terms: float) -> Fit:
        """ARDvi at an inflation that lets at least one false column through: columns worth a second look.

        It starts from plain ARD where that does not collapse. On ill-conditioned columns (κ = 1e4) it would else end in
        a local optimum of ten false terms in one problem of seven.
        """
        false_terms = max(1.0, false_terms)
        if false_terms not in self._screened:
            near = None if self.collapses else self.plain
            self._screened[false_terms] = self.run_inflated(None, false_terms, near)
        return self._screened[false_terms]

    @property
    def collapses(self) -> bool:
        """Whether plain ARD drives σ² to zero and keeps about m columns, from which no threshold comes back.

        It does with as many columns as rows or more. It also does with fewer, where rows repeat each other (weights
        above one, bootstrap samples), so that fewer different rows than columns are left.
        """
        return self.problem.wide or self.plain.status is Status.COLLAPSED

    def screen_where_collapsing(self, calibrated: bool, false_terms: float) -> Fit | None:
        """Return the screened fit where plain ARD, with which calibrated methods else begin, would collapse.

        A strength that the user gave is applied to plain ARD all the same, as in the paper.
        """
        return self.screened(false_terms) if calibrated and self.collapses else None

    def threshold(self, rule: Rule, screened: Fit | None = None) -> Fit:
        """Threshold ARD sequentially, among all columns or those that an earlier fit kept."""
        if screened is None:
            return sequential(self.problem, rule, self.run, self.plain)
        columns = screened.posterior.active
        first = self.run(self.problem.restrict(columns), screened.noise)
        fit = sequential(self.problem, rule, self.run, first, columns)
        return replace(
            fit,
            trace=screened.trace.then(fit.trace),
            n_iter=screened.n_iter + fit.n_iter,
            status=worst(fit.status, screened.status),
        )

    def strength(self, method: rates.Method, given: Array | None, false_terms: float, unit_power: int) -> Strength:
        """Return the user's strengths in these coordinates, or the calibrated ones."""
        if given is None:
            return Calibrated(method, self.false_positive_rate(false_terms))
        with np.errstate(over="ignore", under="ignore"):  # infinity and zero are then the right strengths
            return Given(given / self.unit**unit_power)

    def price(self, false_terms: float) -> Given:
        """Return one calibrated price of MAP for every column: subset searches weigh the correlations themselves."""
        tau = rates.strength_for("map", self.false_positive_rate(false_terms))
        return Given(np.full(self.problem.n_columns, float(tau)))

    def run_inflated(self, alpha: Array | None, false_terms: float, near: Fit | None = None) -> Fit:
        """Run with inflation α, or (None) with the one calibrated to `false_terms`, from a fit nearby where given."""
        if alpha is None:
            calibrated = rates.strength_for("vi", self.false_positive_rate(false_terms))
            alpha = np.full(self.problem.n_columns, float(calibrated))
        if near is None:
            return self.run(inflation=alpha)
        return self.run(inflation=alpha, start=near.gamma, noise=near.noise)
