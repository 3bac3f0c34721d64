"""Derivatives of sampled data: finite differences of any order, Fourier, and smoothing splines; and of functions.

Finite-difference weights come from their order conditions: the formula must be exact for all polynomials through
the points of the stencil. The spline smoother is the first step of the recipe for fields: orthonormal spline bases
per axis, their number chosen by generalised cross-validation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import count, takewhile
from math import factorial, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, linalg, sparse
from scipy.interpolate import BSpline

from ardea.core.lazy import cached_property
from ardea.core.problem import Array, Index

# Convention: steps that differ by less than this share are equal.
UNIFORM = 1e-8
# Derived: the fourth derivative of a field, the highest in a library, is still a cubic spline.
SPLINE_DEGREE = 7
# Convention: numbers of splines tried are 12, then 1.25 times as many each, up to a fraction of the number of points.
FEWEST_SPLINES = 12
SPLINE_GROWTH = 1.25
# Measured on the fields of `ardea.dynamics.systems`: as many splines as cross-validation takes oversmooth, three times
# as many break the quadrature of the weak form.
SPLINES_PER_GCV = 2.0
# Convention: a numerical derivative takes steps as at this share of the largest value where values are smaller.
LEAST_OF_SIZE = 1e-3
# Convention: the most splines as a share of the points.
SPLINE_CAP = 0.7


@lru_cache(maxsize=256)
def difference_weights(offsets: tuple[int, ...], derivative: int = 1) -> Array:
    """Return weights w with Σ_j w_j f(offset_j) ≈ f^(derivative)(0), exact to the last digit, not to be changed.

    The error is of order n − derivative, one more where the offsets are symmetric and n − derivative is odd.

    Examples
    --------
    >>> difference_weights((-1, 0, 1), 2)
    array([ 1., -2.,  1.])
    """
    exact = np.array([[Fraction(int(offset)) for offset in offsets]], dtype=object)
    weights: Array = _lagrange_weights(exact, derivative)[0].astype(float)
    weights.flags.writeable = False
    return weights


def _lagrange_weights(offsets: NDArray[Any], derivative: int) -> NDArray[Any]:
    """Return the weights of many stencils at once, shape (stencils, n); floats or fractions.

    The order conditions Σ_j w_j offset_j^i = derivative!·[i = derivative], i < n, have one solution for n different
    offsets: the derivatives at 0 of the Lagrange polynomials,
    w_j = derivative! · [x^derivative] Π_{k≠j} (x − offset_k)/(offset_j − offset_k).
    """
    n_stencils, n = offsets.shape
    weights = np.empty_like(offsets)
    for j in range(n):
        # Coefficients of Π_{k≠j} (x − offset_k)/(offset_j − offset_k), lowest power first.
        coefficients = np.zeros((n_stencils, n), dtype=offsets.dtype)
        coefficients[:, 0] = 1
        for k in set(range(n)) - {j}:
            gap = offsets[:, j] - offsets[:, k]
            coefficients = (np.roll(coefficients, 1, axis=1) - offsets[:, [k]] * coefficients) / gap[:, None]
        weights[:, j] = factorial(derivative) * coefficients[:, derivative]
    return weights


def finite_difference(
    values: ArrayLike,
    step_or_points: float | ArrayLike,
    *,
    derivative: int = 1,
    order: int = 6,
    axis: int = 0,
    periodic: bool = False,
) -> Array:
    """Return a derivative of sampled values along an axis, by finite differences.

    Central stencils inside, one-sided stencils of the same order at the ends. Periodic values use central stencils
    throughout. Where the points are not uniform, every row has its own stencil of order + derivative points.

    Parameters
    ----------
    values : array-like
        Samples.
    step_or_points : float or array-like of shape (n,)
        The step between points, or the points themselves, ascending.
    derivative : int
        Which derivative.
    order : int
        Order of the error: halving the step divides the error by 2**order.
    axis : int
        Along which axis.
    periodic : bool
        Whether the point after the last is the first again; needs a uniform step.

    Returns
    -------
    array of the shape of `values`
        The derivative at the same points.

    Examples
    --------
    >>> t = np.linspace(0, 1, 21)
    >>> bool(np.max(np.abs(finite_difference(t**6, t) - 6 * t**5)) < 1e-11)
    True
    """
    rows = np.moveaxis(np.asarray(values, dtype=float), axis, 0)
    n = len(rows)
    matrix = difference_matrix(n, step_or_points, derivative=derivative, order=order, periodic=periodic)
    return np.moveaxis((matrix @ rows.reshape(n, -1)).reshape(rows.shape), 0, axis)


def difference_matrix(
    n: int, step_or_points: float | ArrayLike, *, derivative: int = 1, order: int = 6, periodic: bool = False
) -> sparse.csr_array:
    """Return D of `finite_difference` for n values: D @ values is the derivative, so D Dᵀ the covariance of its noise.

    Examples
    --------
    >>> difference_matrix(3, 0.5, derivative=2, order=2, periodic=True).toarray().tolist()
    [[-8.0, 4.0, 4.0], [4.0, -8.0, 4.0], [4.0, 4.0, -8.0]]
    """
    if derivative < 1 or order < 1:
        raise ValueError(f"derivative and order must be at least 1, got {derivative} and {order}")
    points = np.asarray(step_or_points, dtype=float)
    if points.ndim and (points.ndim != 1 or len(points) < 2 or not np.all(np.diff(points) > 0)):
        raise ValueError("points must be one-dimensional, at least two, and strictly ascending")
    if points.ndim and len(points) != n:
        raise ValueError(f"{len(points)} points for {n} values")
    uneven = points.ndim > 0 and np.ptp(np.diff(points)) > UNIFORM * np.mean(np.diff(points))
    if uneven and periodic:
        raise ValueError("periodic differences need a uniform step; leave periodic=False for uneven points")
    # Offsets −h … h; symmetry gives one order for even derivatives.
    half, width = (derivative + order - (derivative + 1) % 2) // 2, derivative + order
    needed = 2 * half + 1 if periodic else width
    if n < needed:
        raise ValueError(f"derivative {derivative} of order {order} needs at least {needed} points, got {n}")
    rows, central = np.arange(n), np.arange(-half, half + 1)
    inside = (periodic | ((rows >= half) & (rows < n - half))) & ~np.full(n, uneven)
    middle, others = rows[inside], rows[~inside]
    # The others have one stencil each, as central as the ends allow.
    columns = np.clip(others - width // 2, 0, n - width)[:, None] + np.arange(width)
    if uneven:
        return _matrix(n, others, columns, _lagrange_weights(points[columns] - points[:, None], derivative))
    at_ends = [difference_weights(tuple(offsets), derivative) for offsets in columns - others[:, None]]
    weights = np.tile(difference_weights(tuple(central), derivative), (len(middle), 1))
    unit = _matrix(n, middle, (middle[:, None] + central) % n, weights) + _matrix(n, others, columns, at_ends)
    step = float(points[-1] - points[0]) / (n - 1) if points.ndim else float(points)
    return unit * step**-derivative


def _matrix(n: int, rows: Index, columns: Index, weights: ArrayLike) -> sparse.csr_array:
    """Return the matrix with one stencil per row."""
    entries = np.ravel(weights), (np.repeat(rows, columns.shape[1]), columns.ravel())
    return sparse.csr_array(entries, shape=(n, n))


def spectral_derivative(values: Array, length: float, derivative: int = 1) -> Array:
    """Return a derivative of samples of one period by FFT along the first axis: every mode times (ik)^derivative.

    For odd derivatives the highest mode of an even n, whose phase is unknown, is set to 0.

    Examples
    --------
    >>> x = 2 * np.pi * np.arange(16) / 16
    >>> bool(np.allclose(spectral_derivative(np.sin(3 * x), 2 * np.pi), 3 * np.cos(3 * x)))
    True
    """
    n = len(values)
    symbol = (2j * np.pi / length * np.arange(n // 2 + 1)) ** derivative
    if derivative % 2 and n % 2 == 0:
        symbol[-1] = 0.0
    return fft.irfft(symbol * fft.rfft(values.T), n=n).T


@dataclass(frozen=True, eq=False)
class SplineSmoother:
    """Least-squares projection onto clamped B-splines along one axis.

    With B the splines at the points (n × k) and B = QR, the projection is QQᵀ, and the q-th derivative of the smoothed
    values is D_q Qᵀ u with D_q = B^(q) R⁻¹, D_0 = Q. For a field, apply one smoother per axis:
    û = Q_x Q_xᵀ u Q_t Q_tᵀ. The splines are of degree 7, their knots spread as the points are; `fit` chooses how many.

    Examples
    --------
    >>> t = np.linspace(0, 1, 60)
    >>> smoother = SplineSmoother.fit(np.sin(5 * t), t)
    >>> bool(np.max(np.abs(smoother.smooth(np.sin(5 * t), derivative=1) - 5 * np.cos(5 * t))) < 1e-6)
    True
    """

    points: Array
    n_basis: int
    at: Array | None = None  # where smoothed values are wanted; None: at the points

    def __post_init__(self) -> None:
        if not SPLINE_DEGREE + 1 <= self.n_basis <= len(self.points):
            raise ValueError(
                f"splines of degree {SPLINE_DEGREE} on {len(self.points)} points: n_basis must lie between "
                f"{SPLINE_DEGREE + 1} and {len(self.points)}, got {self.n_basis}"
            )

    @classmethod
    def fit(
        cls,
        values: Array,
        points: Array,
        axis: int = 0,
        *,
        cap: float = SPLINE_CAP,
        factor: float = SPLINES_PER_GCV,
        least: int = SPLINE_DEGREE + 1,
        at: Array | None = None,
    ) -> SplineSmoother:
        """Choose the number of splines for finite values along an axis; all lines along it share one number.

        Of k = 8, of 12, then 1.25 times as many each, up to cap·n, generalised cross-validation takes the least
        ‖u − P_k u‖²/(1 − k/n)²; the smoother has factor·k, so that what it removes is noise alone, but at least `least`
        and at most cap·n. A factor of 1 has the least error in the values but bends the signal.
        """
        lines = np.moveaxis(values, axis, 0).reshape(len(points), -1)
        candidates, largest = cls._candidates(points, cap)
        best = min(candidates, key=lambda one: float(np.sum(one.cross_validation(lines)))).n_basis
        return cls(points, min(largest, max(least, int(factor * best))), at)

    @classmethod
    def splines(cls, lines: Array, points: Array) -> list[BSpline]:
        """Return every column of values, smoothed with as many splines as are best for it, as a function."""
        candidates, _ = cls._candidates(points, SPLINE_CAP)
        best = np.argmin([one.cross_validation(lines) for one in candidates], axis=0)
        chosen = [candidates[number] for number in best]
        return [
            BSpline(one._knots, one._banded(line)[1], SPLINE_DEGREE) for one, line in zip(chosen, lines.T, strict=True)
        ]

    @classmethod
    def _candidates(cls, points: Array, cap: float) -> tuple[list[SplineSmoother], int]:
        """Return smoothers of increasing numbers of splines, and the largest number."""
        largest = max(int(cap * len(points)), SPLINE_DEGREE + 1)
        numbers = (int(FEWEST_SPLINES * SPLINE_GROWTH**i) for i in count())
        tried = [SPLINE_DEGREE + 1, *takewhile(lambda number: number <= largest, numbers)]
        return [cls(points, number) for number in tried], largest

    def cross_validation(self, lines: Array) -> Array:
        """Return ‖u − P_k u‖²/(1 − k/n)² of every line, from the banded normal equations: no dense basis is formed.

        It is infinite for more splines than points that come in bursts can tell apart.
        """
        try:
            splines, coefficients = self._banded(lines)
        except np.linalg.LinAlgError:
            return np.full(lines.shape[1], np.inf)
        share = self.n_basis / len(self.points)
        return np.asarray(np.sum((lines - splines @ coefficients) ** 2, axis=0) / (1 - share) ** 2)

    def _banded(self, lines: Array) -> tuple[sparse.csr_array, Array]:
        """Return the splines at the points and the coefficients of the lines, with work that grows with the points."""
        splines = BSpline.design_matrix(self.points, self._knots, SPLINE_DEGREE)
        gram = (splines.T @ splines).tocsr()
        band = np.zeros((SPLINE_DEGREE + 1, self.n_basis))
        for below in range(SPLINE_DEGREE + 1):
            band[below, : self.n_basis - below] = gram.diagonal(-below)
        return splines, linalg.solveh_banded(band, splines.T @ lines, lower=True, check_finite=False)

    @property
    def basis(self) -> Array:
        """Q of shape (n, k): orthonormal columns that span the splines at the points."""
        return self._orthogonal[0]

    def derivative_basis(self, derivative: int) -> Array:
        """Return D_q, k columns: the q-th derivative, where values are wanted, of functions with the values Q."""
        if not 0 <= derivative <= SPLINE_DEGREE:
            raise ValueError(f"these splines have derivatives 0 to {SPLINE_DEGREE}, not {derivative}")
        if derivative not in self._bases:
            splines = self._splines.derivative(derivative)(self.points if self.at is None else self.at)
            triangle = self._orthogonal[1]
            self._bases[derivative] = linalg.solve_triangular(triangle, splines.T, trans="T", check_finite=False).T
        return self._bases[derivative]

    def smooth(self, values: Array, derivative: int = 0) -> Array:
        """Return the smoothed values, or a derivative of them, along the first axis, where they are wanted."""
        return np.asarray(self.derivative_basis(derivative) @ (self.basis.T @ values))

    @cached_property
    def _bases(self) -> dict[int, Array]:
        """D_q by q."""
        return {0: self.basis} if self.at is None else {}

    @cached_property
    def _knots(self) -> Array:
        """Knots at the means of `degree` neighbours among k sites spread as the points are.

        Every spline then has its own site in the middle of its support. Evenly spread knots crowd the splines at the
        ends, where for k near n the derivatives blow up (errors a thousand times the signal).
        """
        where = np.linspace(0, len(self.points) - 1, self.n_basis)
        sites = np.interp(where, np.arange(len(self.points)), self.points)
        inside = np.convolve(sites[1:-1], np.full(SPLINE_DEGREE, 1 / SPLINE_DEGREE), mode="valid")
        first, last = sites[:1].repeat(SPLINE_DEGREE + 1), sites[-1:].repeat(SPLINE_DEGREE + 1)
        return np.concatenate([first, inside[: self.n_basis - SPLINE_DEGREE - 1], last])

    @cached_property
    def _splines(self) -> BSpline:
        return BSpline(self._knots, np.eye(self.n_basis), SPLINE_DEGREE)

    @cached_property
    def _orthogonal(self) -> tuple[Array, Array]:
        q, r = linalg.qr(self._splines(self.points), mode="economic", check_finite=False)
        return q, r


def bend_of(curve: Array) -> int:
    """Return the corner of the best line of two segments through both ends of a curve."""
    n = curve.size
    if n < 3:
        return 0
    place = np.arange(n, dtype=float)
    misfit = np.full(n, np.inf)
    for i in range(1, n - 1):
        left = curve[0] + (curve[i] - curve[0]) * place[: i + 1] / i
        right = curve[i] + (curve[-1] - curve[i]) * (place[i:] - i) / (n - 1 - i)
        misfit[i] = np.sum((curve[: i + 1] - left) ** 2) + np.sum((curve[i:] - right) ** 2)
    return int(np.argmin(misfit))


# Fields


@dataclass(frozen=True, eq=False)
class TensorSplines:
    """Products of splines along every axis, space first, then time: one smoother per axis."""

    smoothers: list[SplineSmoother]

    @classmethod
    def fit(
        cls,
        values: Array,
        points: Sequence[Array],
        grid: Sequence[Array | None],
        least: int,
        seen: NDArray[np.bool_] | None = None,
    ) -> TensorSplines:
        """Choose the number of splines along every axis, at least so many; `grid` says where values are wanted.

        Where not all values were `seen`, the lines along an axis with the fewest that were not decide.
        """
        smoothers = []
        for axis, (where, at) in enumerate(zip(points, grid, strict=True)):
            lines, share = _fullest(values, seen, axis)
            smoothers.append(SplineSmoother.fit(lines, where, cap=SPLINE_CAP * share, least=least, at=at))
        return cls(smoothers)

    def noise(self, values: Array, coefficients: Array) -> float:
        """Return s, s² = ‖u − û‖²/(N − Π k): what the splines leave, per degree of freedom."""
        left = values.size - prod(smoother.n_basis for smoother in self.smoothers)
        return float(np.linalg.norm(values - self.values(coefficients)) / np.sqrt(left))

    def values(self, coefficients: Array) -> Array:
        """Return what coefficients say at the points."""
        return on_axes([smoother.basis for smoother in self.smoothers], coefficients)

    def coefficients(self, values: Array) -> Array:
        """Return the projection of values on the splines as coefficients."""
        return on_axes([smoother.basis.T for smoother in self.smoothers], values)

    def derivative(self, coefficients: Array, orders: Sequence[int], factors: Sequence[int] | None = None) -> Array:
        """Return a space derivative, at every d-th point where factors are given."""
        return on_axes(self.bases(orders, factors), coefficients)

    def bases(self, orders: Sequence[int], factors: Sequence[int] | None = None) -> list[Array]:
        """Return the matrix of every axis that makes values of a space derivative out of coefficients."""
        bases = [smoother.derivative_basis(order) for smoother, order in zip(self.smoothers, (*orders, 0), strict=True)]
        return bases if factors is None else [basis[::d] for basis, d in zip(bases, factors, strict=True)]

    def thinned(self, factors: Sequence[int]) -> TensorSplines:
        """Return splines at every d-th point: at most as many as here, and as those points carry."""
        grid = [smoother.points if smoother.at is None else smoother.at for smoother in self.smoothers]
        points = [where[::factor] for where, factor in zip(grid, factors, strict=True)]
        return TensorSplines(
            [
                SplineSmoother(where, min(smoother.n_basis, int(SPLINE_CAP * len(where))))
                for smoother, where in zip(self.smoothers, points, strict=True)
            ]
        )


@dataclass(frozen=True, eq=False)
class SmoothedField:
    """Splines of a field and their coefficients, its noise s, where it is known, and the share ρ of samples there."""

    splines: TensorSplines
    coefficients: Array
    noise: float
    known: NDArray[np.bool_] | None = None  # None: everywhere
    density: float = 1.0

    @classmethod
    def of(cls, values: Array, points: Sequence[Array], grid: Sequence[Array | None], least: int) -> SmoothedField:
        """Return a field without gaps smoothed by splines, at least so many along every axis."""
        splines = TensorSplines.fit(values, points, grid, least)
        coefficients = splines.coefficients(values)
        return cls(splines, coefficients, splines.noise(values, coefficients))


def _fullest(values: Array, seen: NDArray[np.bool_] | None, axis: int) -> tuple[Array, float]:
    """Return the lines along an axis, without those that lack more than the median one, and the share they have."""
    lines = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    if seen is None:
        return lines, 1.0
    lacking = np.mean(~np.moveaxis(seen, axis, 0).reshape(lines.shape), axis=0)
    fullest = lacking <= np.median(lacking)
    return lines[:, fullest], 1 - float(np.mean(lacking[fullest]))


def outer(vectors: Sequence[Array]) -> Array:
    """Return the product of one vector per axis."""
    return reduce(np.multiply.outer, vectors)


def along_axis(matrix: Array, values: Array, axis: int) -> Array:
    """Return the values multiplied by a matrix along one axis."""
    if axis == values.ndim - 1:
        return values @ matrix.T
    shape = values.shape
    flat = values.reshape(prod(shape[:axis]), shape[axis], -1)
    return (matrix @ flat).reshape(*shape[:axis], len(matrix), *shape[axis + 1 :])


def on_axes(matrices: Sequence[Array], values: Array) -> Array:
    """Return the values multiplied by one matrix along every axis, the last axis first."""
    for axis in reversed(range(len(matrices))):
        values = along_axis(matrices[axis], values, axis)
    return values


def slope_of(function: Callable[..., Any], argument: int) -> Callable[..., Any]:
    """Return the derivative of a function by one of its arguments: its own, or a numerical one."""
    own = getattr(function, "partial_derivative", None)
    return NumericalPartial(function, argument) if own is None else own(argument)


@dataclass(frozen=True)
class NumericalPartial:
    """Partial derivative of a callable, by complex step where that is right, else by central differences.

    A complex step has no rounding error but is wrong for functions that are not analytic (`abs`) or that drop the
    imaginary part. It is taken if it agrees with the central difference within 1 % of the largest derivative;
    otherwise the central difference stands, with a relative error of about 1e-10.
    """

    function: Callable[..., Any]
    argument: int

    def __call__(self, *columns: NDArray[Any]) -> NDArray[Any]:
        """Return the derivative, one value per row."""
        size = np.abs(columns[self.argument])
        step = np.cbrt(np.finfo(float).eps) * np.maximum(size, LEAST_OF_SIZE * (np.max(size, initial=0.0) or 1.0))
        central = (self._shifted(columns, step) - self._shifted(columns, -step)) / (2 * step)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
                exact = np.imag(self._shifted(columns, 1e-30j)) / 1e-30
        except (TypeError, ValueError):
            return central
        agrees = np.max(np.abs(exact - central), initial=0.0) <= 1e-2 * np.max(np.abs(central), initial=0.0)
        return np.asarray(exact if agrees else central)

    def _shifted(self, columns: Sequence[NDArray[Any]], shift: Any) -> NDArray[Any]:
        moved = [column + shift if i == self.argument else column for i, column in enumerate(columns)]
        return np.broadcast_to(np.asarray(self.function(*moved)), columns[0].shape)
