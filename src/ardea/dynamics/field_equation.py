"""Equations of fields, ∂_t^m u_g = Σ ξ_i θ_i, m = 1 or 2, in weak form, whitened, for a given support.

1. *Smooth.* Least-squares splines along every axis give û and the noise level s of every field.
2. *Windows.* Test functions φ on a lattice of centres; the business of `windows`.
3. *Columns* ⟨φ, θ_i(û)⟩ and target y = −⟨ψ, û_g⟩, ψ = (−1)^(m+1) ∂_t^m φ, by parts (`field_terms`). All come
   from the same û, for which integration by parts is an identity, so no term is favoured by how it is written. Noise
   in û adds its covariance to the mean of products, its variance in u_x to u_x²: `Jets` take it out. In û_c of 5. it
   is that of e less that of ê.
4. *Noise.* To first order an error e of the fields changes a row, y − Σ ξ_i column_i, by Σ_f ⟨w_f, e_f⟩ with
   w_f = −Σ_j A_fj ∂^j φ, less ψ for the equation's own field. What is left in û of white noise is its projection P
   on the splines, so the rows' noise has covariance C = Σ_f s_f² W_f P_f W_fᵀ = RRᵀ.
5. *Passes* at a fixed support, from ξ = 0 and ê = 0: û_c = û − ê; A = R⁻¹G(û_c), z = R⁻¹(y(û_c) + Σ W_f ê_f); ξ by
   least squares; q = ‖z − Aξ‖²/(N − k); ê_f = s_f² P_f W_fᵀ R⁻ᵀ(z − Aξ)/max(q, 1); until ξ settles. √q is then the
   noise of the fields in units of s: much above 1, the library lacks something. The rows of such a model have the
   covariance qC, of which noise is C: were all of the residual taken for noise, û_c would be a field without motion.

The sums over û are taken once on the whole grid. What a pass changes is smooth: ê, W, and the difference of the sums at
û_c and at û live on the thinned grid of `place_windows`. Sums against unit-norm test functions are √D times smaller
there (D the product of the thinning factors).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import partial
from itertools import combinations
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import linalg

from ardea.core.lazy import cached_property
from ardea.core.problem import Array, misfit, penalty
from ardea.core.subsets import Support
from ardea.dynamics.field_terms import (
    LARGEST_GROWTH,
    FieldTerms,
    Jets,
    WeakSum,
    ladders,
    noise_weights,
    plain,
    weak_form,
)
from ardea.dynamics.fields import Fields
from ardea.dynamics.models import FieldModel
from ardea.dynamics.search import EquationRows, RowsFit
from ardea.dynamics.terms import FieldTerm, Jet, Orders
from ardea.dynamics.told import MANY_POWERS, room_of
from ardea.dynamics.windows import FEWEST_FUNCTIONS, HIGHEST_ORDER, NoiseCovariance, Windows, noise_roots
from ardea.names import check_candidates

# From orders j of the test function to A_j on the thinned grid.
Weights = dict[Orders, Array]
# Per field, ê as spline coefficients.
Errors = dict[int, Array]

# A model is clearly better than none that lowers N ln RSS by so many times its price. Measured: wrong models with R²
# below zero of Allen–Cahn on 48 × 48 points, 10 and 15 % noise: 2.1 or less; the truth of Cahn–Hilliard with 100 %
# noise, whose R² is below zero: 3.6 or more. Of 108 draws of Allen–Cahn with 10 to 25 % noise 54 are exact, 47 without.
CLEARLY = 3.0
# Convention: fitted values that move by less than this share have settled; it is far below their standard errors.
SETTLED = 1e-3
# Convention: C gets this share of its diagonal added, against rounding; far below any noise that is known.
JITTER = 1e-6
# How much of ln RSS counts below the level of the noise. Measured: with 1, rough terms win at 100 % noise.
BELOW_NOISE = 0.25
# Derived: some thousand roundings of 1e-16, of splines and sums.
ROUNDING = 1e-12
# What is said where the candidates leave less of the squares of u_tt than this times what they leave of u_t. Measured
# on 19 cases of `benchmarks/field_misfit.py` that lack the truth and 9 of waves, noise of .1 to 5 %: .65 or more; .14
# or less.
WAVES = " The candidates explain ({0})_tt better than ({0})_t, as where waves run both ways: try derivative_order=2."
WAVES_LEAVE = 0.33
# What else is said of a misfit.
MISSED = " With much noise the search may have missed the right terms, too: try a smaller library."
# What is not a candidate with derivative_order=2.
DAMPED = " Damping, a term u_t, is no candidate: measure u_t as a field of its own (docs/fields)."
# Relative error of the rows from sums and splines, measured on the equations of `systems` without noise.
TRUNCATION = 1e-5
# How many times a column counts whose noise shall count for everything. Measured: 30 to 1000 times put the truth among
# the first three models in 17 of 17 draws of Cahn–Hilliard with 10 % noise.
LOUDER = 100.0


class WhitenedRun(NamedTuple):
    """Rows of a run, whitened: A of some terms, z, the factor R of their covariance, weights of the noise by field."""

    A: Array
    z: Array
    factor: Array
    weights: dict[int, Weights]


def columns_of(windows: Windows, forms: Sequence[WeakSum], jets: Jets) -> Array:
    """Return the columns Σ c ⟨∂^α φ, monomial⟩ of several terms; every monomial is tested once."""
    wanted: dict[FieldTerm, dict[Orders, list[tuple[int, float]]]] = {}
    for column, form in enumerate(forms):
        for (orders, monomial), coefficient in form.items():
            wanted.setdefault(monomial, {}).setdefault(orders, []).append((column, coefficient))
    columns = np.zeros((windows.n_functions, len(forms)))
    for monomial, uses in wanted.items():
        in_time = windows.tested_in_time(np.broadcast_to(jets.monomial(monomial), windows.grid))
        for orders, members in uses.items():
            tested = windows.tested_in_space(in_time, orders)
            for column, coefficient in members:
                columns[:, column] += coefficient * tested
    return columns


def empty_terms(windows: Windows, forms: Sequence[WeakSum], jets: Jets) -> tuple[list[int], list[int]]:
    """Return the terms that are not finite somewhere, and those that are zero up to rounding.

    A column Σ c ⟨∂^α φ, m⟩ is at most Σ |c| max|m| Σ|∂^α φ|, and the sums have errors of some roundings of that.
    """
    largest: dict[FieldTerm, float] = {}
    for monomial in {monomial for form in forms for _, monomial in form}:
        largest[monomial] = float(np.max(np.abs(jets.monomial(monomial))))
    lost = [i for i, form in enumerate(forms) if not all(np.isfinite(largest[m]) for _, m in form)]
    usable = [{} if i in lost else form for i, form in enumerate(forms)]
    bounds = [
        sum(
            abs(c)
            * largest[m]
            * prod(float(np.abs(axis.shapes[q]).sum()) for axis, q in zip(windows.axes, (*orders, 0), strict=True))
            for (orders, m), c in form.items()
        )
        for form in usable
    ]
    sizes = np.max(np.abs(columns_of(windows, usable, jets)), axis=0)
    return lost, [i for i, bound in enumerate(bounds) if sizes[i] <= ROUNDING * bound and i not in lost]


class FieldRun:
    """The rows of ∂_t^m u_g over all test functions of one run, `n_rows` of them, whitened at a fit.

    Columns of terms that are None are zero.
    """

    def __init__(self, data: Fields, terms: Sequence[FieldTerm | None], field: int, order: int) -> None:
        self.data, self.field, self.order, self.n_rows = data, field, order, data.windows.n_functions
        self.terms = terms
        self._forms = [{} if term is None else weak_form(term, len(data.space)) for term in terms]
        self._weights = [{} if term is None else noise_weights(term) for term in terms]
        self._plain, self._scale = (0,) * len(data.space), float(np.sqrt(prod(data.factors)))
        jets = Jets(data.sampled, data.covariance)
        self._columns = columns_of(data.windows, self._forms, jets)
        in_time = data.windows.tested_in_time(jets(Jet(field, self._plain)), order)
        self._target = (-1) ** order * data.windows.tested_in_space(in_time, self._plain)

    def compared(self, coefficients: Array) -> tuple[Array, Array]:
        """Return both sides of the rows, −⟨ψ, û_g⟩ and Σ ξ_i ⟨φ, θ_i(û)⟩."""
        return self._target, self._columns @ coefficients

    @cached_property
    def _thinned_jets(self) -> Jets:
        """The derivatives of û on the thinned grid."""
        data = self.data
        return Jets(partial(data.derivative, factors=data.factors), partial(data.covariance, factors=data.factors))

    @cached_property
    def _thinned_columns(self) -> Array:
        """Columns of all terms at û on the thinned grid."""
        return columns_of(self.data.thinned, self._forms, self._thinned_jets)

    @cached_property
    def _covariances(self) -> list[NoiseCovariance]:
        """One per field."""
        data = self.data
        return [
            NoiseCovariance(data.thinned, errors, self.order, noise_roots(splines, errors, data.factors))
            for splines, errors in zip(data.splines, data.errors, strict=True)
        ]

    @cached_property
    def _at_rest(self) -> Array:
        """All columns, and the target last, whitened as if no term had noise."""
        rows, factor = np.column_stack([self._columns, self._target]), self._factor({self.field: {}})
        return np.asarray(linalg.solve_triangular(factor, rows, lower=True, check_finite=False))

    @property
    def floor(self) -> float:
        """Truncation error of the target in units of its noise, the same for all supports."""
        return TRUNCATION**2 * float(self._at_rest[:, -1] @ self._at_rest[:, -1])

    def unexplained(self) -> float:
        """Return the share of the target that all terms together leave."""
        A, z = self._at_rest[:, :-1], self._at_rest[:, -1]
        norms = np.linalg.norm(A, axis=0)
        scaled = A[:, norms > 0] / norms[norms > 0]
        left = z - scaled @ np.linalg.lstsq(scaled, z, rcond=None)[0]
        return float(left @ left / (z @ z))

    def whitened(self, fit: RowsFit, errors: Errors, terms: Sequence[int]) -> WhitenedRun:
        """Return A of some terms, z, R, and the weights of the noise in every field, at a fit and its errors here."""
        data, chosen = self.data, list(terms)
        jets = self._thinned_jets.minus({i: partial(data.errors[i].derivative, own) for i, own in errors.items()})
        weights = self._noise_weights(fit, Jets(jets))  # errors act on what is there, noise included
        factor = self._factor(weights)
        columns, target = self._columns[:, chosen], self._target
        if errors:
            forms = [self._forms[i] for i in chosen]
            columns = columns + self._scale * (columns_of(data.thinned, forms, jets) - self._thinned_columns[:, chosen])
            target = target + self._scale * self._error_in_target(errors, weights)
        rows = linalg.solve_triangular(factor, np.column_stack([columns, target]), lower=True, check_finite=False)
        return WhitenedRun(rows[:, :-1], rows[:, -1], factor, weights)

    def growth(self, fit: RowsFit) -> float:
        """Return the exponent by which the shortest waves grow while the field is watched, along the worst axis.

        Linearised at û, e_t = Σ_j (−1)^|j| ∂^j(A_j e), and a wave e^(iκx) along one axis grows, in the mean over the
        grid, at the rate Σ (−1)^(j/2) κ^j A_j over even j ≥ 2, or by its root where m = 2. κ = πk/length for k splines.
        """
        data, weights = self.data, self._noise_weights(fit, self._thinned_jets)[self.field]
        means = {orders: float(np.mean(weight)) for orders, weight in weights.items()}
        rates = []
        for axis, (along, smoother) in enumerate(zip(data.space, data.splines[self.field].smoothers, strict=False)):
            wave = np.pi * smoother.n_basis / (along[-1] - along[0])
            even = {sum(orders): mean for orders, mean in means.items() if sum(orders) == orders[axis]}
            rates.append(sum((-1) ** (j // 2) * wave**j * mean for j, mean in even.items() if j >= 2 and j % 2 == 0))
        return float(max(*rates, 0.0) ** (1 / self.order) * (data.t[-1] - data.t[0]))

    def errors(self, at: WhitenedRun, residual: Array) -> Errors:
        """Return ê of every field."""
        pulled = linalg.solve_triangular(at.factor, residual, lower=True, trans="T", check_finite=False)
        return {index: self._estimated_error(index, loads, pulled) for index, loads in at.weights.items()}

    def _factor(self, weights: dict[int, Weights]) -> Array:
        """Return R, lower triangular."""
        upper = sum(
            self.data.left[index] ** 2 * self._covariances[index].upper(loads, derived=index == self.field)
            for index, loads in weights.items()
        )
        upper.flat[:: self.n_rows + 1] *= 1 + JITTER
        return linalg.cholesky(upper.T, lower=True, overwrite_a=True, check_finite=False)

    def _noise_weights(self, fit: RowsFit, jets: Jets) -> dict[int, Weights]:
        """Return A_fj of the equation, Σ_i ξ_i times those of the terms, per field on the thinned grid."""
        total: dict[tuple[int, Orders], dict[FieldTerm, float]] = defaultdict(lambda: defaultdict(float))
        for term, coefficient in zip(fit.support, fit.coefficients, strict=True):
            for key, polynomial in self._weights[term].items():
                for monomial, factor in polynomial.items():
                    total[key][monomial] += float(coefficient) * factor
        grid = self.data.thinned.grid
        weights: dict[int, Weights] = {self.field: {}}
        for (index, orders), sums in total.items():
            if index >= self.data.n_measured:
                continue  # known without error
            weights.setdefault(index, {})[orders] = np.broadcast_to(jets.total(sums), grid)
        return weights

    def _estimated_error(self, index: int, weights: Weights, pulled: Array) -> Array:
        """Return ê = s² P Wᵀ R⁻ᵀ residual of one field as spline coefficients."""
        data = self.data
        error = np.zeros(data.thinned.grid)
        for orders, weight in weights.items():
            error -= weight * data.thinned.spread(pulled, (*orders, 0))
        if index == self.field:
            error += (-1) ** self.order * data.thinned.spread(pulled, (*self._plain, self.order))
        return self._covariances[index].estimated(error * (data.left[index] ** 2 / self._scale))

    def _error_in_target(self, errors: Errors, weights: dict[int, Weights]) -> Array:
        """Return y(û_c) − y(û) + Σ_f W_f ê_f on the thinned grid; the parts with ψ cancel."""
        thinned = self.data.thinned
        total = np.zeros(self.n_rows)
        for index, coefficients in errors.items():
            error = self.data.errors[index].derivative(coefficients, self._plain)
            for orders, weight in weights.get(index, {}).items():
                total -= thinned.tested_in_space(thinned.tested_in_time(weight * error), orders)
        return total


class FieldEquation(EquationRows):
    """The equation of ∂_t^m u_g over all test functions of one run or of several.

    `library` lists the candidate terms, with derivatives up to order 6; `field` says which equation, g, and `order` is
    m. There are `n_terms` candidates and `n_rows` test functions.

    Examples
    --------
    A wave that moves and decays, u_t = −u_x + .1 u_xx, with 1 % noise:

    >>> from ardea.dynamics import FieldTerms
    >>> x, t = np.linspace(0, 20, 120), np.linspace(0, 4, 100)
    >>> u = sum(np.exp(-0.1 * k**2 * t) * np.sin(k * (x[:, None] - t)) for k in (0.5, 1.0, 1.7))
    >>> u = u + 0.01 * np.random.default_rng(0).normal(size=u.shape)
    >>> library = FieldTerms(2, 2)
    >>> equation = FieldEquation([Fields(u, (x,), t)], library)
    >>> fit = equation.fitted((library.names().index("u_x"), library.names().index("u_xx")))
    >>> fit.coefficients.round(2).tolist()
    [-1.0, 0.1]
    """

    # Measured on the equations of `systems` at 100 % noise: passes that have not settled after so many run away, and
    # where N ln RSS still falls by more than this in a pass, it goes on falling.
    MOST_PASSES: ClassVar[int] = 16
    STILL_FALLING: ClassVar[float] = 5.0
    LISTS_EQUIVALENTS: ClassVar[bool] = True
    KNOWS_NOISE: ClassVar[bool] = True

    def __init__(self, runs: Sequence[Fields], library: FieldTerms, field: int = 0, order: int = 1) -> None:
        if library.derivatives > HIGHEST_ORDER:
            raise ValueError(
                f"test functions carry derivatives up to order {HIGHEST_ORDER}, the library has {library.derivatives}"
            )
        self._terms = library.terms(runs[0].n_fields, len(runs[0].space), runs[0].n_known)
        left_out, self.told = self._left_out(runs[0])
        kept = [None if i in left_out else term for i, term in enumerate(self._terms)]
        # All powers of one thing, or so many of them with the highest.
        some = [(*others, one[-1]) for one in ladders(kept) for others in combinations(one[:-1], MANY_POWERS - 1)]
        self.ladders = [*ladders(kept), *some]
        own = [(i, _pure(term)) for i, term in enumerate(kept) if term is not None]
        # Of a field of hardly more than one shape u says as much as u_xx, where no noise but that of u_t counts.
        self.simplest = [(i,) for i, jet in own if jet is not None and jet.field == field]
        self.runs = [FieldRun(data, kept, field, order) for data in runs]
        self.field, self.order = field, order
        self.n_terms, self.n_rows = len(self._terms), sum(run.n_rows for run in self.runs)
        self.noise_unit = float(np.sqrt(np.mean([data.noise[field] ** 2 for data in runs])))
        self.excitation = float(max(data.excitation[field] for data in runs))
        self.structure = float(
            max(data.noise[field] / data.spread[field] * (field in data.structured) for data in runs)
        )

    @property
    def hint(self) -> str:
        """What else may be wrong where nothing fits: at last, axes that were swapped, which need show nowhere else."""
        *space, times = self.runs[0].data.windows.grid
        swapped = " Is the last axis time?" * (times in space)
        if self.order == 2:
            return DAMPED + swapped
        twice = [FieldRun(run.data, run.terms, self.field, 2) for run in self.runs]
        shares = [float(np.mean([run.unexplained() for run in runs])) for runs in (self.runs, twice)]
        waves = WAVES.format(self.runs[0].data.names[self.field]) if shares[1] < WAVES_LEAVE * shares[0] else MISSED
        return waves + swapped

    def _left_out(self, data: Fields) -> tuple[set[int], tuple[str, ...]]:
        """Return the terms that cannot be candidates, and what is said of them."""
        forms = [weak_form(term, len(data.space)) for term in self._terms]
        broken = [i for i, form in enumerate(forms) if any(_has_slopes_of(data.rough, m) for _, m in form)]
        lost, zero = empty_terms(data.windows, forms, Jets(data.derivative))
        rough = ", ".join(data.names[i] for i in data.rough)
        shocks = f"has derivatives of {rough}, which jumps or changes faster than its grid shows,"
        reasons = ((broken, shocks), (lost, "is not finite on the whole grid"), (zero, "is zero up to rounding"))
        told = [
            f"{len(terms)} of the candidates, such as {self._terms[terms[0]].name(data.names, data.axes)}: each {why} "
            "and was left out (python -m ardea.explain ambiguity)."
            for terms, why in reasons
            if terms
        ]
        return {i for terms, _ in reasons for i in terms}, tuple(told)

    def of_motion(self, support: Support) -> tuple[FieldEquation, Support] | None:
        """Return u_t = −c·∇u; None for no support, and for one with more than ∇u, which is not equal to it.

        With m = 2 too the fields decide, not u_tt = c² u_xx, which all waves of one speed obey.
        """
        data = [run.data for run in self.runs]
        slopes = [FieldTerm.of(Jet(self.field, tuple(map(int, orders)))) for orders in np.eye(len(data[0].space))]
        if not support or (self.order == 1 and {self._terms[j] for j in support} > set(slopes)):
            return None
        motion = FieldEquation(data, FieldTerms(0, 1), self.field)
        return motion, tuple(map(motion._terms.index, slopes))

    def loud(self) -> list[RowsFit]:
        """Return fits with one derivative of the highest orders alone, the field's own, far too large.

        At ξ = 0 the noise of ∂_t u alone counts, and the noise in columns of high order hides what they explain. Where
        the noise of such a column counts for everything, short waves are left out.
        """
        tops = {i: jet.orders for i, term in enumerate(self._terms) if (jet := _pure(term)) and jet.field == self.field}
        highest = max(map(sum, tops.values()), default=0)
        A, z = self.system(RowsFit((), np.zeros(0), np.inf))
        sizes = np.linalg.norm(A, axis=0)
        chosen = [i for i, orders in tops.items() if sum(orders) >= highest - 1 and sizes[i] > 0]
        return [RowsFit((i,), np.array([LOUDER * np.linalg.norm(z) / sizes[i]]), np.inf) for i in chosen]

    def stands(self, fit: RowsFit) -> bool:
        """Whether ξ has settled, it is not worse than none, and short waves do not run away.

        Terms that amplify noise can explain all of the rows as noise. They are worse than none by R², and not clearly
        better where rows are whitened; right derivatives of high order in much noise are.
        """
        price = penalty("ebic2", self.n_rows, self.n_terms, len(fit.support))
        useful = fit.gain > CLEARLY * price or self.explained(fit.support, fit.coefficients) >= 0
        return fit.settled and useful and max(run.growth(fit) for run in self.runs) < LARGEST_GROWTH

    def explained(self, support: Sequence[int], coefficients: Array) -> float:
        """Return R² of the two sides of the rows at û, as `score` counts it."""
        every = np.zeros(self.n_terms)
        every[list(support)] = coefficients
        sides = [run.compared(every) for run in self.runs]
        lost = sum(float(np.sum((left - right) ** 2)) for left, right in sides)
        return 1.0 - lost / sum(float(np.sum(left**2)) for left, _ in sides)

    def same(self, support: Support, other: Support) -> bool:
        """Whether the terms of one support are sums of those of another: (u^2)_xx is 2 u u_xx + 2 u_x^2."""
        sums = [plain(self._terms[j]) for j in (*support, *other)]
        monomials = list(dict.fromkeys(monomial for one in sums for monomial in one))
        rows = np.array([[one.get(monomial, 0.0) for monomial in monomials] for one in sums])
        return bool(np.linalg.matrix_rank(rows) == np.linalg.matrix_rank(rows[len(support) :]))

    def system(self, fit: RowsFit) -> tuple[Array, Array]:
        """Return A and z of all candidate terms, whitened at a fit."""
        parts = self._whitened(fit, range(self.n_terms))
        return np.vstack([one.A for one in parts]), np.concatenate([one.z for one in parts])

    def passed(self, fit: RowsFit) -> RowsFit:
        """Return the fit after one more pass; it has settled where the fitted values moved by less than `SETTLED`.

        RSS above its expectation N − k at the noise level s that smoothing found counts as it is. Below, it counts on
        the logarithmic scale by a quarter: a model that seems to fit better than the noise allows mostly has terms that
        amplify noise (C grows with their coefficients), not better ones.
        """
        parts = self._whitened(fit, fit.support)
        A, z = np.vstack([one.A for one in parts]), np.concatenate([one.z for one in parts])
        norms = np.linalg.norm(A, axis=0)
        norms = np.where(norms > 0, norms, 1.0)
        coefficients = np.linalg.lstsq(A / norms, z, rcond=None)[0] / norms
        residual = z - A @ coefficients
        moved = np.linalg.norm(A @ (coefficients - fit.coefficients))
        settled = bool(fit.errors) and bool(moved <= SETTLED * np.linalg.norm(A @ coefficients))
        rss, expected = float(residual @ residual), self.n_rows - len(fit.support)
        none, floor = float(z @ z), sum(run.floor for run in self.runs)
        gain = misfit(none, self.n_rows, floor) - misfit(rss, self.n_rows, floor)
        noise = residual / max(rss / expected, 1.0)  # what lies above the noise is misfit
        own = np.split(noise, np.cumsum([run.n_rows for run in self.runs])[:-1])
        errors = [run.errors(part, left) for run, part, left in zip(self.runs, parts, own, strict=True)]
        shares = residual**2 / max(rss, np.finfo(float).tiny) * (BELOW_NOISE if rss < expected else 1.0)
        rss = max(rss, expected * (rss / expected) ** BELOW_NOISE)
        return RowsFit(fit.support, coefficients, rss, errors, floor, settled, shares=shares, gain=gain)

    def _whitened(self, fit: RowsFit, terms: Sequence[int]) -> list[WhitenedRun]:
        errors = fit.errors or [{}] * len(self.runs)
        return [run.whitened(fit, own, terms) for run, own in zip(self.runs, errors, strict=True)]


def field_equations(
    runs: Sequence[Fields], library: FieldTerms, wanted: Sequence[str] | None = None, order: int = 1
) -> tuple[FieldModel, list[FieldEquation]]:
    """Return the model of some runs, without numbers yet, and the equations to be found, all or those wanted."""
    data, reach = runs[0], np.max([one.reach for one in runs], axis=0)
    measured = data.names[: data.n_measured]
    listed = measured if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    if not listed or not set(listed) <= set(measured):
        raise ValueError(f"equations must name fields that were measured ({', '.join(measured)}), got {listed}.")
    chosen = [number for number, name in enumerate(measured) if name in listed]
    _check_rows(runs, chosen)
    zeros = np.zeros((len(chosen), library.n_terms(data.n_fields, len(data.space), data.n_known)))
    solved = [measured[field] for field in chosen]
    model = FieldModel(library, data.names, data.axes, zeros, data.space, reach, solved, data.n_known, order)
    check_candidates(model.vocabulary.names)
    return model, [FieldEquation(runs, library, field, order) for field in chosen]


def _check_rows(runs: Sequence[Fields], chosen: Sequence[int]) -> None:
    if sum(one.windows.n_functions for one in runs) < FEWEST_FUNCTIONS:
        raise ValueError(
            f"{room_of(runs)}, too few to find an equation (at least {FEWEST_FUNCTIONS}): take more points along an "
            "axis with few test functions, or add runs (a list of fields)."
        )
    for number in chosen:
        if not any(one.moving[number] for one in runs):
            name = runs[0].names[number]
            raise ValueError(
                f"The field {name} is at rest, the same at all times, so it has no equation to find: give it as a "
                f'known field, known_fields={{"{name}": …}}, or leave it out.'
            )


def compared_rows(model: FieldModel, runs: Sequence[Fields]) -> tuple[Array, Array]:
    """Return both sides of the rows of all equations over some runs, shape (rows, equations)."""
    data = runs[0]
    terms = model.library.terms(data.n_fields, len(data.space), data.n_known)
    left, right = [], []
    for name, row in zip(model.solved, model.coefficients, strict=True):
        kept = [term if value else None for term, value in zip(terms, row, strict=True)]
        sides = [FieldRun(one, kept, model.fields.index(name), model.order).compared(row) for one in runs]
        left.append(np.concatenate([side for side, _ in sides]))
        right.append(np.concatenate([side for _, side in sides]))
    return np.column_stack(left), np.column_stack(right)


def _has_slopes_of(fields: Collection[int], monomial: FieldTerm) -> bool:
    """Whether a product holds derivatives of one of some fields: near a jump they say nothing."""
    jets = [jet for jet, _ in monomial.factors if isinstance(jet, Jet)]
    return any(jet.field in fields and any(jet.orders) for jet in jets)


def _pure(term: FieldTerm) -> Jet | None:
    """Return the derivative along one axis that a term is, if it is one."""
    jet, power = term.factors[0] if len(term.factors) == 1 else (None, 0)
    pure = isinstance(jet, Jet) and power == jet.power == 1 and max(jet.orders) == sum(jet.orders) > 0
    return jet if isinstance(jet, Jet) and pure else None
