"""Equations of fields, ∂_t u_g = Σ ξ_i θ_i with θ_i = m(u) ∂^β u_f, in weak form, whitened, for a given support.

1. *Smooth.* Least-squares splines along every axis give û and the noise level s of every field (`differences`).
2. *Windows.* Test functions φ on a lattice of centres (`field_windows`).
3. *Columns* ⟨φ, θ_i(û)⟩ and target y = −⟨∂_t φ, û_g⟩, by parts (`field_columns`). All come from the same û, for which
   integration by parts is an identity, so no term is favoured by how it is written.
4. *Noise.* To first order an error e of the fields changes a row, y − Σ ξ_i column_i, by Σ_f ⟨w_f, e_f⟩ with
   w_f = −Σ_j A_fj ∂^j φ, less ∂_t φ for the equation's own field. What is left in û of white noise is its projection P
   on the splines, so the rows' noise has covariance C = Σ_f s_f² W_f P_f W_fᵀ = RRᵀ.
5. *Passes* at a fixed support, from ξ = 0 and ê = 0: û_c = û − ê; A = R⁻¹G(û_c), z = R⁻¹(y(û_c) + Σ W_f ê_f); ξ by
   least squares; ê_f = s_f² P_f W_fᵀ R⁻ᵀ(z − Aξ); until ξ settles. √(‖z − Aξ‖²/N) is then the noise of the fields in
   units of s.

The sums over û are taken once on the whole grid. What a pass changes is smooth: ê, W, and the difference of the sums at
û_c and at û live on the thinned grid of `place_windows`. Sums against unit-norm test functions are √D times smaller
there (D the product of the thinning factors).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from ardea.dynamics.differences import SPACE_CAP, TIME_CAP, SplineSmoother, smoothed_field
from ardea.dynamics.field_columns import (
    Jet,
    Monomial,
    NoiseWeights,
    Orders,
    WeakSum,
    add_to,
    noise_weights,
    weak_form,
)
from ardea.dynamics.field_windows import (
    HIGHEST_ORDER,
    NoiseCovariance,
    Windows,
    along_axis,
    place_windows,
    spectral_radii,
)
from ardea.dynamics.libraries import FieldTerms
from ardea.dynamics.subsets import Support, System
from ardea.dynamics.tournament import Contender, Tournament

Array = NDArray[np.float64]
# From orders j of the test function to A_j on the thinned grid.
Weights = dict[Orders, Array]
# Per field, ê as spline coefficients.
Errors = dict[int, Array]

MAX_PASSES = 8
SETTLED = 1e-3
STILL_FALLING = 5.0
# C gets this share of its diagonal added, against rounding.
JITTER = 1e-6
# Steps of a uniform grid differ by less than this share.
UNIFORM = 1e-6
TRIED_RIVALS = 2
# How much of ln RSS counts below the level of the noise.
BELOW_NOISE = 0.25
# Relative error of the rows from sums and splines.
TRUNCATION = 1e-5
# Noise below this share of a field's deviation is rounding error.
LEAST_NOISE = 1e-12
# Two models cannot be told apart when their N ln RSS differ by less than this times √N. With whitenings of their own,
# the difference of two equally good models has a standard deviation of up to 2√N.
MARGIN = 3.0


class Jets:
    """Derivatives of fields on a grid, and products of their powers, each computed once."""

    def __init__(self, jet: Callable[[Jet], Array]) -> None:
        self._jet = jet
        self._values: dict[tuple[Jet, int], Array] = {}

    def __call__(self, jet: Jet, power: int = 1) -> Array:
        """Return a power of a jet."""
        if (jet, power) not in self._values:
            self._values[jet, power] = self._jet(jet) if power == 1 else self(jet, power - 1) * self(jet)
        return self._values[jet, power]

    def monomial(self, monomial: Monomial) -> Array | float:
        """Return a product of powers of jets; 1 for the empty one."""
        total: Array | float = 1.0
        for jet, power in monomial:
            total = self(jet, power) * total
        return total


class SplineField:
    """One field as splines: û from the samples, and the space of its errors on the thinned grid.

    Parameters
    ----------
    values : ndarray
        Samples, time last.
    axes : sequence of ndarray
        Where they lie.

    Attributes
    ----------
    smooth : ndarray
        û at the samples.
    noise : float
        s.
    """

    def __init__(self, values: Array, axes: Sequence[Array]) -> None:
        self._caps = [SPACE_CAP] * (len(axes) - 1) + [TIME_CAP]
        self.smoothers = [
            SplineSmoother.fit(values, points, axis, cap=cap)
            for axis, (points, cap) in enumerate(zip(axes, self._caps, strict=True))
        ]
        self.smooth, variance = smoothed_field(values, self.smoothers)
        self.noise = max(float(np.sqrt(variance)), LEAST_NOISE * float(values.std()))
        if self.noise == 0:
            raise ValueError("a field is constant: it has no equation to find; leave it out")
        self._coefficients = _on_axes([smoother.basis.T for smoother in self.smoothers], self.smooth)

    def thin(self, factors: Sequence[int]) -> None:
        """Keep every d-th sample for errors: at most as many splines as û has, and as those samples carry."""
        self.error_smoothers = [
            SplineSmoother(s.points[::factor], min(s.n_basis, int(cap * len(s.points[::factor]))))
            for s, factor, cap in zip(self.smoothers, factors, self._caps, strict=True)
        ]

    def jet(self, orders: Orders, factors: Sequence[int]) -> Array:
        """Return a space derivative of û at every d-th sample."""
        bases = [
            smoother.derivative_basis(order)[::factor]
            for smoother, order, factor in zip(self.smoothers, (*orders, 0), factors, strict=True)
        ]
        return _on_axes(bases, self._coefficients)

    def error_jet(self, coefficients: Array, orders: Orders) -> Array:
        """Return a space derivative of ê on the thinned grid."""
        bases = [s.derivative_basis(order) for s, order in zip(self.error_smoothers, (*orders, 0), strict=True)]
        return _on_axes(bases, coefficients)

    def projected(self, error: Array) -> Array:
        """Return the spline coefficients of an error on the thinned grid."""
        return _on_axes([smoother.basis.T for smoother in self.error_smoothers], error)


class SmoothedFields:
    """Fields on a uniform grid, smoothed, with test functions; shared by the equations of all fields.

    Parameters
    ----------
    fields : array-like
        Shape (n_x, …, n_t) for one field, or with a last axis of fields.
    space : sequence of array-like
        Coordinates of every space axis, uniform.
    t : array-like
        Times, uniform.

    Attributes
    ----------
    noise : ndarray of shape (n_fields,)
        Standard deviation s of the noise of every field.
    windows, thinned : Windows
        Test functions on the grid and on the thinned grid.

    Examples
    --------
    >>> x, t = np.linspace(0, 6, 80), np.linspace(0, 1, 60)
    >>> u = np.sin(2 * x[:, None] - t) + 0.01 * np.random.default_rng(0).normal(size=(80, 60))
    >>> data = SmoothedFields(u, (x,), t)
    >>> data.noise.round(3).tolist()
    [0.01]
    """

    def __init__(self, fields: ArrayLike, space: Sequence[ArrayLike], t: ArrayLike) -> None:
        names = [f"space[{axis}]" for axis in range(len(space))] + ["t"]
        axes = [_uniform_points(points, name) for points, name in zip([*space, t], names, strict=True)]
        values = _one_per_field(np.asarray(fields, dtype=float), tuple(len(points) for points in axes))
        self.n_fields, self.n_space = len(values), len(space)
        self.splines = [SplineField(u, axes) for u in values]
        self.noise = np.array([spline.noise for spline in self.splines])
        steps = [(points[-1] - points[0]) / (len(points) - 1) for points in axes]
        n_splines = [min(spline.smoothers[axis].n_basis for spline in self.splines) for axis in range(len(axes))]
        radii = spectral_radii([spline.smooth for spline in self.splines], n_splines)
        self.windows, self.thinned, self.factors = place_windows(values[0].shape, steps, radii)
        self.scale = float(np.sqrt(prod(self.factors)))
        for spline in self.splines:
            spline.thin(self.factors)
        self.covariances = [
            NoiseCovariance(self.thinned, [smoother.basis for smoother in spline.error_smoothers[:-1]])
            for spline in self.splines
        ]

    @property
    def plain(self) -> Orders:
        """Orders of a field that is not differentiated."""
        return (0,) * self.n_space

    def full_jets(self) -> Jets:
        """Return the derivatives of û on the grid; they live as long as the object returned."""
        return Jets(lambda jet: self.splines[jet[0]].jet(jet[1], (1,) * len(self.factors)))

    @cached_property
    def thinned_jets(self) -> Jets:
        """The derivatives of û on the thinned grid."""
        return Jets(lambda jet: self.splines[jet[0]].jet(jet[1], self.factors))

    def corrected_jets(self, errors: Errors) -> Jets:
        """Return the derivatives of û_c = û − ê on the thinned grid."""

        def jet(which: Jet) -> Array:
            index, orders = which
            base = self.thinned_jets(which)
            return base - self.splines[index].error_jet(errors[index], orders) if index in errors else base

        return Jets(jet)


@dataclass(frozen=True, eq=False)
class FieldFit:
    """An equation at one support.

    Attributes
    ----------
    support : tuple of int
        Terms.
    coefficients : ndarray of shape (k,)
        ξ on the support.
    rss : float
        ‖z − Aξ‖² where that is above its expectation N − k at the noise level s that smoothing found. Below, it counts
        on the logarithmic scale by a quarter: a model that seems to fit better than the noise allows mostly has terms
        that amplify noise (C grows with their coefficients), not better ones.
    noise_ratio : float
        √(‖z − Aξ‖²/N), the noise of the fields in units of s. Much above 1, the library lacks something.
    errors : dict
        Per field, ê as spline coefficients on the thinned grid.
    floor : float
        RSS that the truncation error of sums and splines alone may leave; it matters for data without noise.
    settled : bool
        Whether another pass would hardly change it.
    """

    support: Support
    coefficients: Array
    rss: float
    noise_ratio: float
    errors: Errors = field(repr=False)
    floor: float = 0.0
    settled: bool = False


class WeakField:
    """The equation of ∂_t u_g over all test functions; what `Tournament` searches.

    Parameters
    ----------
    data : SmoothedFields
        Fields and test functions.
    library : FieldTerms
        Candidate terms, derivatives up to order 6.
    field : int
        Which equation, g.

    Attributes
    ----------
    n_terms, n_rows : int
        Number of candidate terms and of test functions.

    Examples
    --------
    A wave that moves and decays, u_t = −u_x + .1 u_xx, with 1 % noise:

    >>> from ardea.dynamics import FieldTerms
    >>> x, t = np.linspace(0, 20, 120), np.linspace(0, 4, 100)
    >>> u = sum(np.exp(-0.1 * k**2 * t) * np.sin(k * (x[:, None] - t)) for k in (0.5, 1.0, 1.7))
    >>> u = u + 0.01 * np.random.default_rng(0).normal(size=u.shape)
    >>> library = FieldTerms(2, 2)
    >>> equation = WeakField(SmoothedFields(u, (x,), t), library)
    >>> fit = equation.fitted((library.names().index("u_x"), library.names().index("u_xx")))
    >>> fit.coefficients.round(2).tolist()
    [-1.0, 0.1]
    """

    def __init__(self, data: SmoothedFields, library: FieldTerms, field: int = 0) -> None:
        if library.derivatives > HIGHEST_ORDER:
            raise ValueError(
                f"test functions carry derivatives up to order {HIGHEST_ORDER}, the library has {library.derivatives}"
            )
        if not 0 <= field < data.n_fields:
            raise ValueError(f"field must lie between 0 and {data.n_fields - 1}, got {field}")
        self.data, self.library, self.field = data, library, field
        terms = library.terms(data.n_fields, data.n_space)
        self.n_terms, self.n_rows = len(terms), data.windows.n_functions
        self._forms = [weak_form(term) for term in terms]
        self._weights = [noise_weights(term) for term in terms]
        jets = data.full_jets()
        self._columns = _columns(data.windows, self._forms, jets)
        in_time = data.windows.tested_in_time(jets((field, data.plain)), order=1)
        self._target = -data.windows.tested_in_space(in_time, data.plain)

    @cached_property
    def _thinned_columns(self) -> Array:
        """Columns of all terms at û on the thinned grid."""
        return _columns(self.data.thinned, self._forms, self.data.thinned_jets)

    def beginning(self) -> None:
        """Return nothing: fits start from ξ = 0, ê = 0."""

    def fitted(self, support: Support, start: FieldFit | None = None, passes: int | None = None) -> FieldFit:
        """Return the fit at a support, its passes repeated until the coefficients settle.

        Parameters
        ----------
        support : tuple of int
            Terms.
        start : FieldFit, optional
            Where the passes start; default ξ = 0, ê = 0.
        passes : int, optional
            Stop after so many, unless N ln(RSS) still falls by more than `STILL_FALLING` per pass: with much noise the
            correction of the fields takes longer, and a fit that has not come to rest says nothing of its support.
        """
        current, done, gain = self._start(support, start), 0, np.inf
        while not current.settled and done < MAX_PASSES and (passes is None or done < passes or gain > STILL_FALLING):
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    following = self._pass(current)
            except np.linalg.LinAlgError:  # the coefficients, and C with them, have run away
                break
            if not np.isfinite(following.rss):
                break
            gain = self.n_rows * np.log(current.rss / following.rss)
            current, done = following, done + 1
        return current

    def _start(self, support: Support, start: FieldFit | None) -> FieldFit:
        """Return ξ = 0, ê = 0, or what an earlier fit knows."""
        if start is not None and start.support == support:
            return start
        known = {} if start is None else dict(zip(start.support, start.coefficients, strict=True))
        coefficients = np.array([known.get(term, 0.0) for term in support])
        return FieldFit(support, coefficients, np.inf, np.inf, {} if start is None else start.errors)

    def system(self, fit: FieldFit) -> tuple[Array, Array]:
        """Return A and z of all candidate terms, whitened at a fit."""
        A, z, _, _ = self._whitened(fit, range(self.n_terms))
        return A, z

    def covariance(self, fit: FieldFit) -> Array:
        """Return the covariance of the coefficients at a fit, (AᵀA)⁻¹ RSS/(N − k)."""
        A, _, _, _ = self._whitened(fit, fit.support)
        norms = _norms(A)
        inverse = np.linalg.pinv(A / norms) / norms[:, None]
        return inverse @ inverse.T * fit.rss / (self.n_rows - len(fit.support))

    @cached_property
    def _floor(self) -> float:
        """Truncation error of the target in units of its noise, the same for all supports."""
        factor = self._factor({self.field: {}})
        whitened = linalg.solve_triangular(factor, self._target, lower=True, check_finite=False)
        return TRUNCATION**2 * float(whitened @ whitened)

    def _pass(self, fit: FieldFit) -> FieldFit:
        """Run one pass; it has settled where the fitted values moved by less than `SETTLED`."""
        A, z, factor, weights = self._whitened(fit, fit.support)
        norms = _norms(A)
        coefficients = np.linalg.lstsq(A / norms, z, rcond=None)[0] / norms
        residual = z - A @ coefficients
        moved = np.linalg.norm(A @ (coefficients - fit.coefficients))
        settled = bool(fit.errors) and bool(moved <= SETTLED * np.linalg.norm(A @ coefficients))
        pulled = linalg.solve_triangular(factor, residual, lower=True, trans="T", check_finite=False)
        errors = {index: self._estimated_error(index, loads, pulled) for index, loads in weights.items()}
        ratio = float(np.linalg.norm(residual) / np.sqrt(self.n_rows))
        rss = _discounted(float(residual @ residual), self.n_rows - len(fit.support))
        return FieldFit(fit.support, coefficients, rss, ratio, errors, self._floor, settled)

    def _whitened(self, fit: FieldFit, terms: Iterable[int]) -> tuple[Array, Array, Array, dict[int, Weights]]:
        """Return A of some terms, z, R, and the weights of the noise in every field."""
        data, chosen = self.data, list(terms)
        jets = data.corrected_jets(fit.errors)
        weights = self._noise_weights(fit, jets)
        factor = self._factor(weights)
        columns, target = self._columns[:, chosen], self._target
        if fit.errors:
            forms = [self._forms[i] for i in chosen]
            columns = columns + data.scale * (_columns(data.thinned, forms, jets) - self._thinned_columns[:, chosen])
            target = target + data.scale * self._error_in_target(fit.errors, weights)
        rows = linalg.solve_triangular(factor, np.column_stack([columns, target]), lower=True, check_finite=False)
        return rows[:, :-1], rows[:, -1], factor, weights

    def _factor(self, weights: dict[int, Weights]) -> Array:
        """Return R, lower triangular."""
        upper = sum(
            self.data.noise[index] ** 2 * self.data.covariances[index].upper(loads, derived=index == self.field)
            for index, loads in weights.items()
        )
        upper.flat[:: self.n_rows + 1] *= 1 + JITTER
        return linalg.cholesky(upper.T, lower=True, overwrite_a=True, check_finite=False)

    def _noise_weights(self, fit: FieldFit, jets: Jets) -> dict[int, Weights]:
        """Return A_fj of the equation, Σ_i ξ_i times those of the terms, per field on the thinned grid."""
        total: NoiseWeights = {}
        for term, coefficient in zip(fit.support, fit.coefficients, strict=True):
            for key, polynomial in self._weights[term].items():
                entry = total.setdefault(key, {})
                for monomial, factor in polynomial.items():
                    add_to(entry, monomial, float(coefficient) * factor)
        grid = self.data.thinned.grid
        weights: dict[int, Weights] = {self.field: {}}
        for (index, orders), polynomial in total.items():
            if polynomial:
                weight = sum(c * jets.monomial(monomial) for monomial, c in polynomial.items())
                weights.setdefault(index, {})[orders] = np.broadcast_to(weight, grid)
        return weights

    def _estimated_error(self, index: int, weights: Weights, pulled: Array) -> Array:
        """Return ê = s² P Wᵀ R⁻ᵀ residual of one field as spline coefficients."""
        data = self.data
        error = np.zeros(data.thinned.grid)
        for orders, weight in weights.items():
            error -= weight * data.thinned.spread(pulled, (*orders, 0))
        if index == self.field:
            error -= data.thinned.spread(pulled, (*data.plain, 1))
        return data.splines[index].projected(error * (data.noise[index] ** 2 / data.scale))

    def _error_in_target(self, errors: Errors, weights: dict[int, Weights]) -> Array:
        """Return y(û_c) − y(û) + Σ_f W_f ê_f on the thinned grid; the parts with ∂_t φ cancel."""
        thinned = self.data.thinned
        total = np.zeros(self.n_rows)
        for index, coefficients in errors.items():
            error = self.data.splines[index].error_jet(coefficients, self.data.plain)
            for orders, weight in weights.get(index, {}).items():
                total -= thinned.tested_in_space(thinned.tested_in_time(weight * error), orders)
        return total


def rivals(tournament: Tournament, best: Contender) -> list[Contender]:
    """Return models that lack a term of the best one and yet fit as well; where there are any, the data do not decide.

    A single travelling wave is the standard case: u_t = −c u_x, and every equation with this wave as a solution fits
    as well. Term by term of the best model, the search is repeated without it, for at most one term more. A model is
    a rival when its N ln(RSS) exceeds that of the best by less than 3√N.

    Parameters
    ----------
    tournament : Tournament
        The search that found the best model; the rivals are added to what it met.
    best : Contender
        The model chosen.

    Returns
    -------
    list of Contender
        Best first.

    Examples
    --------
    A single soliton moves, u_t = −u_x, and solves u_t = −u u_x − u_xxx as well:

    >>> from ardea.dynamics import FieldTerms
    >>> from ardea.dynamics.subsets import ard_supports
    >>> x, t = np.linspace(0, 20, 100), np.linspace(0, 6, 80)
    >>> u = 3 / np.cosh((x[:, None] - 7 - t) / 2) ** 2 + 0.02 * np.random.default_rng(0).normal(size=(100, 80))
    >>> library = FieldTerms(1, 3)
    >>> tournament = Tournament(WeakField(SmoothedFields(u, (x,), t), library), ard_supports)
    >>> best = tournament.run()[0]
    >>> [[library.names()[j] for j in model.support] for model in [best, *rivals(tournament, best)]]
    [['u_x'], ['u u_x', 'u_xxx']]
    """
    equation = tournament.equation
    A, z = equation.system(best.fit)
    found: dict[Support, Contender] = {}
    for term in best.support:
        others = [j for j in range(equation.n_terms) if j != term]
        system = System.of(A[:, others], z, equation.n_rows)
        models = [m for m in system.select(tournament.propose(system)) if len(m.support) <= len(best.support) + 1]
        for model in models[:TRIED_RIVALS]:
            support = tuple(others[j] for j in model.support)
            found[support] = tournament.settled(tournament.contender(support))
    limit = MARGIN * np.sqrt(equation.n_rows)
    close = [c for c in found.values() if equation.n_rows * np.log(c.fit.rss / best.fit.rss) < limit]
    return sorted(close, key=lambda contender: contender.score)


def _columns(windows: Windows, forms: Sequence[WeakSum], jets: Jets) -> Array:
    """Return the columns Σ c ⟨∂^α φ, monomial⟩ of several terms; every monomial is tested once."""
    wanted: dict[Monomial, dict[Orders, list[tuple[int, float]]]] = {}
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


def _discounted(rss: float, expected: float) -> float:
    """Return the RSS, its logarithm raised towards that of its expectation where it is below."""
    return max(rss, expected * (rss / expected) ** BELOW_NOISE)


def _norms(A: Array) -> Array:
    """Return the norms of the columns, 1 for zero columns."""
    norms = np.linalg.norm(A, axis=0)
    return np.where(norms > 0, norms, 1.0)


def _on_axes(matrices: Sequence[Array], values: Array) -> Array:
    """Return the values multiplied by one matrix along every axis, the last axis first."""
    for axis in reversed(range(len(matrices))):
        values = along_axis(matrices[axis], values, axis)
    return values


def _uniform_points(points: ArrayLike, name: str) -> Array:
    array = np.asarray(points, dtype=float)
    if array.ndim != 1 or len(array) < 2 or not np.all(np.diff(array) > 0):
        raise ValueError(f"{name} must be one-dimensional and strictly ascending")
    steps = np.diff(array)
    if np.ptp(steps) > UNIFORM * np.mean(steps):
        raise ValueError(f"{name} is not uniform; interpolate the fields to a uniform grid first")
    return array


def _one_per_field(fields: Array, grid: tuple[int, ...]) -> list[Array]:
    if fields.shape == grid:
        return [fields]
    if fields.ndim == len(grid) + 1 and fields.shape[:-1] == grid and fields.shape[-1]:
        return [np.ascontiguousarray(fields[..., i]) for i in range(fields.shape[-1])]
    raise ValueError(
        f"space and t say the grid is {grid}: give fields of this shape, or with a last axis of fields; "
        f"got {fields.shape}"
    )
