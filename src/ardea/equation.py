"""One fitted equation: left side, kept terms, numbers with their uncertainty, rivals; and how it is written.

Every estimator, search and discovery has a list of these, `equations_`. Whatever shows or stores a model reads only
that. All numbers of an equation follow from its :class:`KeptTerms`, the smallest set of values that determines them,
so that no two of them can disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ardea.core.evidence import Estimate, Posterior, Tied, posterior, sharpened
from ardea.core.lazy import cached_property
from ardea.core.loop import Fit
from ardea.core.problem import Array, Coordinates, DenseColumns, FlatColumns, Index, Problem
from ardea.names import (
    ColumnNames,
    Constant,
    Left,
    Rival,
    Vocabulary,
    Wording,
    counted,
    import_sympy,
    is_plain_name,
    latex_name,
    latex_number,
    printable,
    rounded,
)

# A difference of criteria below this leaves the choice between two models open: odds of exp(6/2) = 20 to 1.
CLOSE = 6.0
# A convention: how many rivals an equation of motion keeps.
N_RIVALS = 8
# Problems of so many numbers or fewer are kept as they are; larger ones are compressed to k + 1 rows. Measured: below,
# the QR costs more than it saves.
SMALL_BLOCK = 2**14
IntervalKind = Literal["posterior", "refit", "selective"]
# Below so many standard deviations intervals that do not allow for the choice of the terms hold the truth less often
# than they say (measured: docs/promises_table.md).
WEAK = 3.0


@dataclass(frozen=True, eq=False)
class KeptTerms:
    """The values from which all numbers of an equation are derived."""

    active: Index  # penalised candidates that were kept
    problem: Problem  # of these columns alone, dense and small, in normalised coordinates
    prior_variance: Array | None  # γ in these coordinates; None for least squares
    noise: float | None  # σ² in these coordinates; None to take that of least squares
    noise_known: bool  # whether σ² was told
    n_parameters: float  # coefficients that were estimated from the same rows, for the degrees of freedom
    unit: Array  # what one unit of each coefficient is worth in the user's units
    target_unit: float  # the same for the target
    flat: FlatColumns  # the terms with a flat prior
    rate: float | None = None  # how often chance keeps a column; None where nothing is known of it
    log_volume: float = 0.0  # ln|V| where the rows had the covariance σ²V and were whitened
    tied: Tied | None = None  # where laws tie the coefficients: the problem is one of the free parameters

    @classmethod
    def of_rows(
        cls,
        terms: Index,
        rows: Problem,
        unit: Array,
        target_unit: float,
        n_parameters: float,
        noise: float | None = None,
        tied: Tied | None = None,
    ) -> KeptTerms:
        """Return terms that are known by least squares on some rows, whose noise may be told."""
        flat, told = FlatColumns.empty(rows.n_columns), noise is not None
        return cls(terms, rows, None, noise, told, n_parameters, unit, target_unit, flat, tied=tied)

    @cached_property
    def posterior(self) -> Estimate:
        """The posterior at γ and σ², or least squares where there is no prior.

        ARD learns σ² = RSS/ν from ν = m − Σ_j (1 − Σ_jj/γ_j) rows: a term takes the share of one that the data decide.
        The posterior is then Student's with ν degrees. For strong terms that is least squares'; σ² that was told leaves
        it Gaussian.
        """
        if self.prior_variance is None or self.noise is None:
            return self._least_squares(max(self.problem.n_rows - self.n_parameters, 1.0))
        covariance = self._solved.covariance * self.unit[:, None] * self.unit
        decided = float(np.sum(1 - self._solved.variance / self.prior_variance))
        degrees = np.inf if self.noise_known else max(self.problem.n_rows - decided, 1.0)
        return Estimate(self._solved.mean * self.unit, covariance, self.noise * self.target_unit**2, degrees)

    @cached_property
    def _solved(self) -> Posterior:
        """The posterior in the problem's own coordinates."""
        if self.prior_variance is None or self.noise is None:
            raise ValueError("Least squares has no prior variances.")
        return sharpened(self.problem, posterior(self.problem, self.prior_variance, self.noise))

    @cached_property
    def refit(self) -> Estimate | None:
        """Least squares on the kept columns, Student's t where σ² was learned; None with too few rows."""
        if self.prior_variance is None:
            return self.posterior
        degrees = self.problem.n_rows - self.n_parameters
        return None if degrees < 0 or (degrees == 0 and not self.noise_known) else self._least_squares(degrees)

    def _least_squares(self, degrees: float) -> Estimate:
        every = np.arange(self.problem.n_columns)
        mean, rss = self.problem.least_squares(every)
        told = self.noise if self.noise_known else None
        noise = (rss + self.problem.floor) / degrees if told is None else told
        inverse = np.linalg.pinv(self.problem.columns.take(every))
        covariance = noise * (inverse @ inverse.T) * np.outer(self.unit, self.unit)
        degrees = degrees if told is None else float(np.inf)
        estimate = Estimate(mean * self.unit, covariance, noise * self.target_unit**2, degrees)
        return estimate if self.tied is None else self.tied.of(estimate)

    @property
    def support(self) -> Index:
        """All kept candidates, in order."""
        return np.sort(np.concatenate([self.active, self.flat.kept])) if self.flat.kept.size else self.active

    @property
    def log_evidence(self) -> float:
        """−½(m ln 2π + log|Σ_y| + yᵀΣ_y⁻¹y) in the user's units; NaN for least squares."""
        if self.prior_variance is None:
            return float("nan")
        constant = self.problem.n_rows * (np.log(2 * np.pi) + 2 * np.log(self.target_unit))
        return float(-0.5 * (constant + self.log_volume + self._solved.cost))

    def prior_variances(self, n_candidates: int) -> Array:
        """Return γ of every candidate in the user's units: zero where dropped, infinite where the prior is flat."""
        gamma = np.zeros(n_candidates)
        if self.prior_variance is not None:
            gamma[self.active] = (np.sqrt(self.prior_variance) * self.unit) ** 2
        gamma[self.flat.kept] = np.inf
        return gamma

    def flat_mean(self, penalised: Array) -> Array:
        """Return the mean of the flat coefficients given those of the penalised ones, shape (p,) or (n, p)."""
        return np.asarray(self.flat.target_loadings - penalised @ self.flat.loadings.T)

    def with_flat(self, estimate: Estimate) -> Estimate:
        """Return the estimate of all kept terms, in the order of the support, from that of the penalised ones."""
        flat = self.flat
        if flat.kept.size == 0:
            return estimate
        first = int(flat.intercept)
        cross = -flat.loadings[first:] @ estimate.covariance
        own = estimate.noise_variance * flat.inverse_gram[first:, first:]
        joint = np.block([[estimate.covariance, cross.T], [cross, own - cross @ flat.loadings[first:].T]])
        mean = np.concatenate([estimate.mean, self.flat_mean(estimate.mean)[first:]])
        order = np.argsort(np.concatenate([self.active, flat.kept]), kind="stable")
        return replace(estimate, mean=mean[order], covariance=joint[np.ix_(order, order)])

    def intercept(self, estimate: Estimate) -> tuple[float, float]:
        """Return mean and standard deviation of the intercept."""
        row = self.flat.loadings[0]
        variance = estimate.noise_variance * self.flat.inverse_gram[0, 0] + row @ estimate.covariance @ row
        return float(self.flat_mean(estimate.mean)[0]), float(np.sqrt(variance))

    def prediction_variance(self, active: Array, kept: Array) -> Array:
        """Return the variance of a new observation, given the rows of the penalised and of the always kept columns."""
        flat = np.column_stack([np.ones((active.shape[0], int(self.flat.intercept))), kept])
        estimate = self.posterior
        centred = active - flat @ self.flat.loadings
        spread = np.einsum("ij,jk,ik->i", centred, estimate.covariance, centred, optimize=True)
        own = np.einsum("ij,jk,ik->i", flat, self.flat.inverse_gram, flat, optimize=True)
        return np.asarray(estimate.noise_variance * (1 + np.maximum(own, 0.0)) + np.maximum(spread, 0.0))


def kept_terms(
    problem: Problem, fit: Fit, coordinates: Coordinates, target: int, *, noise_known: bool, rate: float | None = None
) -> KeptTerms:
    """Return what a fit keeps of one target's problem; `rate` is how often chance keeps a column."""
    active = fit.posterior.active
    k = active.size
    part, chosen = problem, active
    if problem.columns.shape[0] * k > SMALL_BLOCK:
        part, chosen = problem.restrict(active), np.arange(k)
    return KeptTerms(
        active=active,
        problem=replace(part, columns=DenseColumns(part.columns.take(chosen))),
        prior_variance=fit.gamma[active],
        noise=fit.noise,
        noise_known=noise_known,
        n_parameters=k,
        unit=coordinates.coefficient_unit(target)[active],
        target_unit=float(coordinates.targets[target]),
        flat=coordinates.flat.of(active, target),
        rate=rate,
        log_volume=coordinates.log_volume,
    )


@dataclass(frozen=True, eq=False)
class Equation:
    """One fitted equation.

    Attributes
    ----------
    left : Left
        What it is for.
    vocabulary : Vocabulary
        How the candidate terms are written.
    kept : KeptTerms
        The values from which all numbers follow.
    rivals : tuple of Rival
        The next best models, closest first.
    equivalents : tuple of tuples of str
        Models without one of these terms that explain the data as well: the data do not decide between them.
    """

    left: Left
    vocabulary: Vocabulary
    kept: KeptTerms
    rivals: tuple[Rival, ...] = ()
    equivalents: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def support(self) -> tuple[int, ...]:
        """Candidates kept, in order."""
        return tuple(int(j) for j in self.kept.support if j < self.n_candidates)

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.vocabulary.names[j] for j in self.support)

    @property
    def weak_terms(self) -> list[str]:
        """Names of the terms that were chosen, and are fewer than three standard deviations from zero."""
        weak = np.isin(self.support, self.kept.active) & (np.abs(self.coefficients) < WEAK * self.std)
        return [name for name, one in zip(self.terms, weak, strict=True) if one]

    @property
    def name(self) -> str:
        """The target, state or field that the equation is for."""
        return self.left.name

    @property
    def n_candidates(self) -> int:
        """Number of terms to choose from."""
        return len(self.vocabulary.names)

    @cached_property
    def parameters(self) -> Estimate:
        """Posterior of the kept terms, then of the constants inside them."""
        return self.kept.with_flat(self.kept.posterior)

    @cached_property
    def posterior(self) -> Estimate:
        """Posterior of the kept terms: the numbers that are shown everywhere."""
        return self._of_terms(self.parameters)

    @cached_property
    def refit(self) -> Estimate | None:
        """Least squares on the kept terms; None with too few rows."""
        return None if self.kept.refit is None else self._of_terms(self.kept.with_flat(self.kept.refit))

    def _of_terms(self, estimate: Estimate) -> Estimate:
        if (k := len(self.support)) == estimate.mean.size:
            return estimate
        return replace(estimate, mean=estimate.mean[:k], covariance=estimate.covariance[:k, :k])

    @cached_property
    def letters(self) -> dict[int, str]:
        """The constants inside the kept terms, by their place among all; letters that repeat are numbered."""
        kept = [int(j) - self.n_candidates for j in self.kept.support[len(self.support) :]]
        given = [self.vocabulary.constants[q][1] for q in kept]
        numbers = [given[: i + 1].count(letter) for i, letter in enumerate(given)]
        named = zip(kept, given, numbers, strict=True)
        return {q: letter if given.count(letter) == 1 else f"{letter}{number}" for q, letter, number in named}

    @property
    def constants(self) -> dict[str, Constant]:
        """Unknown constants inside the kept terms, by their letters; K1, K2, … where several have the same."""
        return self.constants_at(0.95)

    def constants_at(self, level: float) -> dict[str, Constant]:
        """Return the constants with intervals of another level."""
        k, ends, out = len(self.support), self.parameters.interval(level).tolist(), {}
        for i, (q, letter) in enumerate(self.letters.items(), start=k):
            term = self.vocabulary.names[self.vocabulary.constants[q][0]]
            mean, std = float(self.parameters.mean[i]), float(self.parameters.std[i])
            out[letter] = Constant(term, mean, std, (ends[i][0], ends[i][1]))
        return out

    @cached_property
    def _words(self) -> Vocabulary:
        """The vocabulary with the letters and values of the constants found."""
        if not isinstance(self.vocabulary, Wording) or not self.letters:
            return self.vocabulary
        values = self.parameters.mean[len(self.support) :].tolist()
        pairs = zip(self.letters.items(), values, strict=True)
        return self.vocabulary.with_constants({q: (letter, value) for (q, letter), value in pairs})

    @property
    def coefficients(self) -> Array:
        """Posterior means of the kept terms."""
        return self.posterior.mean

    @property
    def std(self) -> Array:
        """Their standard deviations."""
        return self.posterior.std

    @property
    def covariance(self) -> Array:
        """Their covariance."""
        return self.posterior.covariance

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the posterior, infinite for a Gaussian."""
        return self.posterior.degrees

    @property
    def noise(self) -> float:
        """Standard deviation of the noise."""
        return float(np.sqrt(self.posterior.noise_variance))

    @property
    def intercept(self) -> float | None:
        """Posterior mean of the intercept; None where there is none."""
        return self.kept.intercept(self.kept.posterior)[0] if self.kept.flat.intercept else None

    @property
    def intercept_std(self) -> float | None:
        """Its standard deviation."""
        return self.kept.intercept(self.kept.posterior)[1] if self.kept.flat.intercept else None

    def estimate(self, kind: IntervalKind = "posterior") -> Estimate:
        """Return the posterior, or ("refit" and "selective") least squares on the kept terms."""
        if kind == "posterior":
            return self.posterior
        if self.refit is None:
            raise ValueError(
                f"The {kind} interval needs more rows than terms; this model keeps "
                f"{counted(len(self.support), 'term')}. "
                "Use kind='posterior', or a sparser model."
            )
        return self.refit

    def interval(self, level: float = 0.95, kind: IntervalKind = "posterior") -> Array:
        """Return the ends of the intervals of the kept terms, shape (k, 2)."""
        estimate = self.estimate(kind)
        ends = estimate.interval(level)
        if kind == "selective":
            if self.kept.rate is None:
                raise ValueError(
                    "Selective intervals need to know how terms were chosen: fit with a calibrated strength "
                    "(false_terms=…), or use kind='posterior' or 'refit'."
                )
            chosen = np.isin(self.support, self.kept.active)  # others were always kept
            ends[chosen] = estimate.interval_if_kept(level, self.kept.rate)[chosen]
        return ends if self.kept.tied is None else self.kept.tied.within(ends)

    def spread(self, values: Any, fill: float = 0.0) -> Array:
        """Return values of the kept terms as an array over all candidates, `fill` elsewhere."""
        spread = np.full((self.n_candidates, *np.shape(values)[1:]), fill)
        spread[list(self.support)] = values
        return spread

    def close_rivals(self, within: float = CLOSE) -> list[Rival]:
        """Return the models that the data do not clearly rule out."""
        return [rival for rival in self.rivals if rival.excess < within]

    def with_names(self, names: Sequence[str]) -> Equation:
        """Return the same equation with other names for its columns, one for every candidate.

        Inside a pipeline columns lose their names unless `set_output` asks for frames. The steps before know them:
        ``pipeline[-1].equations_[0].with_names(pipeline[:-1].get_feature_names_out())``.
        """
        if not isinstance(self.vocabulary, ColumnNames):
            raise ValueError("The terms of an equation of motion are named by its states: give feature_names to fit.")
        given = [names] if isinstance(names, str) else list(map(str, names))
        if len(given) != self.n_candidates:
            raise ValueError(
                f"{counted(len(given), 'name was', 'names were')} given for {counted(self.n_candidates, 'column')}: "
                "give one for each."
            )
        return replace(self, vocabulary=ColumnNames(given))

    # Writing

    def __repr__(self) -> str:
        return self.formula()

    def formula(self, precision: int | None = None) -> str:
        """Return the equation as text; see `right_hand_side`."""
        return f"{self.left.text} = {self.right_hand_side(precision)}"

    def right_hand_side(self, precision: int | None = None) -> str:
        """Return the terms as text; numbers to two digits of their standard deviation, or `precision` decimals."""
        number = rounded if precision is None else lambda value, error: f"{value:.{precision}f}"
        text = self._sum(lambda j: f" {printable(self._words.names[j])}", number) or "0"
        return text + "".join(f", {letter} = {number(one.value, one.std)}" for letter, one in self.constants.items())

    def with_intervals(self, level: float = 0.95) -> str:
        """Return the terms as text with intervals: `(-9.988 ± 0.020) x + (1.5000 ± 0.0020) y`."""
        parts = [] if self.intercept is None else [rounded(self.intercept, self.intercept_std or 0.0)]
        rows = zip(self.support, self.coefficients, self.posterior.half_widths(level), strict=True)
        for j, value, width in rows:
            number = f"({rounded(value, width)} ± {rounded(width, width)})" if width > 0 else rounded(value, 0.0)
            constant = j == self.vocabulary.constant
            parts.append(number if constant else f"{number} {printable(self._words.names[j])}")
        text = " + ".join(parts) or "0"
        for letter, one in self.constants_at(level).items():
            width = (one.interval[1] - one.interval[0]) / 2
            text += f", {letter} = {rounded(one.value, width)}" + f" ± {rounded(width, width)}" * (width > 0)
        return text

    def latex(self) -> str:
        """Return the equation in LaTeX."""
        right = self._sum(lambda j: "\\, " + self._words.latex(j), lambda *number: latex_number(rounded(*number)))
        for letter, one in self.constants.items():
            right += f", \\quad {latex_name(letter)} = {latex_number(rounded(one.value, one.std))}"
        return f"{self.left.latex} = {right or '0'}"

    def sympy(self) -> Any:
        """Return the right-hand side as a SymPy expression; numbers keep all digits (needs the extra `symbolic`)."""
        sympy = import_sympy()
        if len(set(self.terms)) != len(self.terms):
            raise ValueError("Two kept columns have the same name: rename them, or fit arrays without names.")
        pairs = zip(self.support, self.coefficients.tolist(), strict=True)
        parts = [sympy.Float(value) * self._words.sympy(j) for j, value in pairs]
        return sympy.Add(*parts, *([] if self.intercept is None else [sympy.Float(self.intercept)]))

    def python(self, name: str = "predict") -> str:
        """Return the source of a plain function of the variables; see `python_function`."""
        return python_function([self], name)

    def rows(self, level: float = 0.95, kind: IntervalKind = "posterior") -> list[tuple[Any, ...]]:
        """Return of every kept term its name, coefficient, standard deviation and ends of the interval."""
        estimate, ends = self.estimate(kind), self.interval(level, kind)
        numbers = np.column_stack([estimate.mean, estimate.std, ends]).tolist()
        constants = self.constants_at(level).items()
        inside = [(f"{letter} of {one.term}", one.value, one.std, *one.interval) for letter, one in constants]
        return [*((name, *row) for name, row in zip(self.terms, numbers, strict=True)), *inside]

    def table(self, level: float = 0.95, kind: IntervalKind = "posterior") -> dict[str, list[Any]]:
        """Return the same as columns of a table, by their titles."""
        titles = ("term", "coef", "std", f"{100 * level:g}% low", f"{100 * level:g}% high")
        rows = self.rows(level, kind)
        return {title: [row[place] for row in rows] for place, title in enumerate(titles)}

    def _sum(self, factor: Callable[[int], str], number: Callable[[float, float], str] = rounded) -> str:
        """Join signed numbers, given with their errors, and terms: `-1.5 x + 2.0 y - 3.0`."""
        factors = ["" if j == self.vocabulary.constant else factor(j) for j in self.support]
        rows = [*zip(self.coefficients.tolist(), self.std.tolist(), factors, strict=True)]
        if self.intercept is not None:
            rows.insert(0, (self.intercept, self.intercept_std or 0.0, ""))
        text = ""
        for value, error, written in rows:
            sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
            text += sign + number(abs(value), error) + written
        return text


def python_function(equations: Sequence[Equation], name: str = "predict") -> str:
    """Return the source of a plain function of the variables in some equations; only functions such as sin need NumPy.

    Arguments bear the names of the variables where all of these are valid and different names in Python, else x and
    their position. Several equations give a tuple. Numbers are written with all digits. Nothing but numbers and names
    gets into the code, whatever the variables are called.
    """
    if not is_plain_name(name):
        raise ValueError(f"name={name!r} is not a valid name for a function in Python.")
    vocabulary = equations[0].vocabulary
    arguments = vocabulary.arguments(sorted({j for equation in equations for j in equation.support}))
    # !a leaves no character that could end a comment.
    remarks = [f"    # {ours}: {theirs!a}" for ours, theirs in arguments.items() if ours != theirs]
    # Numbers by repr, which gives the same bits when read.
    sums = [
        one._sum(partial(_factor_in_python, one._words), lambda value, _: repr(value)) or "0.0" for one in equations
    ]
    if any("np." in one for one in sums):
        remarks.append("    import numpy as np")
    body = [f"    return {sums[0]}"]
    if len(sums) > 1:
        body = ["    return (", *(f"        {one}," for one in sums), "    )"]
    return "\n".join([f"def {name}({', '.join(arguments)}):", *remarks, *body]) + "\n"


def _factor_in_python(words: Vocabulary, j: int) -> str:
    return f" * {words.python(j)}"
