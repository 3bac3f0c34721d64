"""Derivatives of sampled data: finite differences of any order, Fourier, and smoothing splines.

Finite-difference weights come from their order conditions: the formula must be exact for all polynomials through
the points of the stencil. The spline smoother is the first step of the recipe for fields: orthonormal spline bases
per axis, their number chosen by generalised cross-validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, linalg, sparse
from scipy.interpolate import BSpline

from ardea.core.problem import Array

# Derived: the fourth derivative of a field, the highest in a library, is still a cubic spline.
SPLINE_DEGREE = 7
# Convention: numbers of splines tried are 12, then 1.25 times as many each, up to a fraction of the number of points.
FEWEST_SPLINES = 12
SPLINE_GROWTH = 1.25
# Measured on the fields of `ardea.dynamics.systems`: as many splines as cross-validation takes oversmooth, three times
# as many break the quadrature of the weak form.
SPLINES_PER_GCV = 2.0
# Convention: the most splines as a share of the points, in space and in time.
SPACE_CAP, TIME_CAP = 0.5, 0.7


def difference_weights(offsets: ArrayLike, derivative: int = 1) -> Array:
    """Return weights w with Σ_j w_j f(offset_j) ≈ f^(derivative)(0).

    The order conditions Σ_j w_j offset_j^i = derivative!·[i = derivative], i < n, have one solution for n different
    offsets. It is the derivative at 0 of the Lagrange polynomials,
    w_j = derivative! · [x^derivative] Π_{k≠j} (x − offset_k)/(offset_j − offset_k). The error is of order
    n − derivative, one more where the offsets are symmetric and n − derivative is odd.

    Parameters
    ----------
    offsets : array-like of shape (n,)
        Positions of the points, relative to the one where the derivative is wanted, in any order and spacing. Integers
        give weights that are exact to the last digit.
    derivative : int
        Which derivative, 0 to n − 1.

    Examples
    --------
    >>> difference_weights([-1, 0, 1], 2)
    array([ 1., -2.,  1.])
    >>> difference_weights([0, 1, 2]).tolist()
    [-1.5, 2.0, -0.5]
    """
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or len(np.unique(offsets)) != len(offsets):
        raise ValueError("offsets must be a list of different numbers")
    if not 0 <= derivative < len(offsets):
        raise ValueError(f"{len(offsets)} points give derivatives 0 to {len(offsets) - 1}, not {derivative}")
    if np.issubdtype(offsets.dtype, np.integer):
        return np.array(_integer_weights(tuple(offsets.tolist()), derivative))
    return _lagrange_weights(offsets[None, :].astype(float), derivative)[0]


@lru_cache(maxsize=256)
def _integer_weights(offsets: tuple[int, ...], derivative: int) -> tuple[float, ...]:
    exact = np.array([[Fraction(offset) for offset in offsets]], dtype=object)
    return tuple(map(float, _lagrange_weights(exact, derivative)[0]))


def _lagrange_weights(offsets: NDArray[Any], derivative: int) -> NDArray[Any]:
    """Return the weights of many stencils at once, shape (stencils, n); floats or fractions."""
    n_stencils, n = offsets.shape
    weights = np.empty_like(offsets)
    for j in range(n):
        # Coefficients of Π_{k≠j} (x − offset_k)/(offset_j − offset_k), lowest power first.
        coefficients = np.zeros((n_stencils, n), dtype=offsets.dtype)
        coefficients[:, 0] = 1
        for k in set(range(n)) - {j}:
            gap = offsets[:, j] - offsets[:, k]
            shifted = np.zeros_like(coefficients)
            shifted[:, 1:] = coefficients[:, :-1]
            coefficients = (shifted - offsets[:, [k]] * coefficients) / gap[:, None]
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
    if np.ndim(step_or_points) == 0:
        matrix = difference_matrix(n, step_or_points, derivative=derivative, order=order, periodic=periodic)
    else:
        points = _checked_points(step_or_points)
        if len(points) != n:
            raise ValueError(f"{len(points)} points for {n} values along axis {axis}")
        matrix = difference_matrix(points, derivative=derivative, order=order, periodic=periodic)
    return np.moveaxis((matrix @ rows.reshape(n, -1)).reshape(rows.shape), 0, axis)


def difference_matrix(
    points: int | ArrayLike,
    step: float | ArrayLike = 1.0,
    *,
    derivative: int = 1,
    order: int = 6,
    periodic: bool = False,
) -> sparse.csr_array:
    """Return the matrix D of `finite_difference`: D @ values is the derivative, so D Dᵀ is the covariance of its noise.

    Parameters
    ----------
    points : int or array-like of shape (n,)
        The number of uniform points, or the points themselves, ascending.
    step : float
        The step between uniform points, when their number is given.
    derivative, order, periodic
        As for `finite_difference`.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)

    Examples
    --------
    >>> difference_matrix(3, 0.5, derivative=2, order=2, periodic=True).toarray().tolist()
    [[-8.0, 4.0, 4.0], [4.0, -8.0, 4.0], [4.0, 4.0, -8.0]]
    """
    if derivative < 1 or order < 1:
        raise ValueError(f"derivative and order must be at least 1, got {derivative} and {order}")
    uneven: Array | None = None
    if np.ndim(points) == 0:
        n, spacing = int(np.asarray(points)), float(np.asarray(step))
    else:
        given = _checked_points(points)
        n, spacing = len(given), float(given[-1] - given[0]) / (len(given) - 1)
        uneven = None if _is_uniform(given) else given
    if uneven is not None and periodic:
        raise ValueError("periodic differences need a uniform step; leave periodic=False for uneven points")
    half = _half_width(derivative, order)
    needed = 2 * half + 1 if periodic else derivative + order
    if n < needed:
        raise ValueError(f"derivative {derivative} of order {order} needs at least {needed} points, got {n}")
    if uneven is not None:
        return _uneven_matrix(uneven, derivative, order)
    return _uniform_matrix(n, derivative, order, periodic) * spacing**-derivative


def _half_width(derivative: int, order: int) -> int:
    """Return h such that the central stencil −h … h has the order; symmetry gives one order for even derivatives."""
    return (derivative + order - (derivative + 1) % 2) // 2


def _uniform_matrix(n: int, derivative: int, order: int, periodic: bool) -> sparse.csr_array:
    """Return the matrix at unit step."""
    half = _half_width(derivative, order)
    width = derivative + order
    inside = np.arange(n) if periodic else np.arange(half, max(half, n - half))
    central = np.arange(-half, half + 1)
    rows = np.repeat(inside, len(central))
    columns = (inside[:, None] + central).ravel() % n
    weights = np.tile(difference_weights(central, derivative), len(inside))
    ends = np.setdiff1d(np.arange(n), inside)
    starts = np.where(ends < half, 0, n - width)
    end_columns = starts[:, None] + np.arange(width)
    end_weights = [
        difference_weights(columns - row, derivative) for row, columns in zip(ends, end_columns, strict=True)
    ]
    return sparse.csr_array(
        (
            np.concatenate([weights, *end_weights]),
            (np.concatenate([rows, np.repeat(ends, width)]), np.concatenate([columns, end_columns.ravel()])),
        ),
        shape=(n, n),
    )


def _uneven_matrix(points: Array, derivative: int, order: int) -> sparse.csr_array:
    """Return the matrix with one stencil per row, as central as the ends allow."""
    n, width = len(points), derivative + order
    starts = np.clip(np.arange(n) - width // 2, 0, n - width)
    columns = starts[:, None] + np.arange(width)
    weights = _lagrange_weights(points[columns] - points[:, None], derivative)
    rows = np.repeat(np.arange(n), width)
    return sparse.csr_array((weights.ravel(), (rows, columns.ravel())), shape=(n, n))


def _checked_points(points: ArrayLike) -> Array:
    points = np.asarray(points, dtype=float)
    if points.ndim != 1 or len(points) < 2 or not np.all(np.diff(points) > 0):
        raise ValueError("points must be one-dimensional, at least two, and strictly ascending")
    return points


def _is_uniform(points: Array) -> bool:
    steps = np.diff(points)
    return bool(np.ptp(steps) <= 1e-8 * np.mean(steps))


def spectral_derivative(values: ArrayLike, length: float, derivative: int = 1, axis: int = 0) -> Array:
    """Return a derivative of periodic samples by FFT: every Fourier mode times (ik)^derivative.

    Parameters
    ----------
    values : array-like
        Samples at `length`·i/n, i = 0 … n − 1, along the axis.
    length : float
        Period.
    derivative : int
        Which derivative. For odd ones the highest mode of an even n, whose phase is unknown, is set to 0.
    axis : int
        Along which axis.

    Examples
    --------
    >>> x = 2 * np.pi * np.arange(16) / 16
    >>> bool(np.allclose(spectral_derivative(np.sin(3 * x), 2 * np.pi), 3 * np.cos(3 * x)))
    True
    """
    rows = np.moveaxis(np.asarray(values, dtype=float), axis, -1)
    n = rows.shape[-1]
    symbol = (2j * np.pi / length * np.arange(n // 2 + 1)) ** derivative
    if derivative % 2 and n % 2 == 0:
        symbol[-1] = 0.0
    return np.moveaxis(fft.irfft(symbol * fft.rfft(rows), n=n), -1, axis)


@dataclass(frozen=True, eq=False)
class SplineSmoother:
    """Least-squares projection onto clamped B-splines along one axis.

    With B the splines at the points (n × k) and B = QR, the projection is QQᵀ, and the q-th derivative of the smoothed
    values is D_q Qᵀ u with D_q = B^(q) R⁻¹, D_0 = Q. For a field, apply one smoother per axis:
    û = Q_x Q_xᵀ u Q_t Q_tᵀ.

    Parameters
    ----------
    points : array of shape (n,)
        Where the samples lie, ascending. Knots are spread as the points are.
    n_basis : int
        Number of splines k of degree 7, 8 ≤ k ≤ n. `SplineSmoother.fit` chooses it.

    Examples
    --------
    >>> t = np.linspace(0, 1, 60)
    >>> smoother = SplineSmoother.fit(np.sin(5 * t), t)
    >>> bool(np.max(np.abs(smoother.smooth(np.sin(5 * t), derivative=1) - 5 * np.cos(5 * t))) < 1e-6)
    True
    """

    points: Array
    n_basis: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _checked_points(self.points))
        if not SPLINE_DEGREE + 1 <= self.n_basis <= len(self.points):
            raise ValueError(
                f"splines of degree {SPLINE_DEGREE} on {len(self.points)} points: n_basis must lie between "
                f"{SPLINE_DEGREE + 1} and {len(self.points)}, got {self.n_basis}"
            )

    @classmethod
    def fit(
        cls,
        values: ArrayLike,
        points: ArrayLike,
        axis: int = 0,
        *,
        cap: float = TIME_CAP,
        factor: float = SPLINES_PER_GCV,
    ) -> SplineSmoother:
        """Choose the number of splines for the values along an axis.

        Of k = 12, then 1.25 times as many each, up to cap·n, generalised cross-validation takes the least
        ‖u − P_k u‖²/(1 − k/n)²; the smoother has min(cap·n, factor·k), so that what it removes is noise alone.

        Parameters
        ----------
        values : array-like
            Samples; all lines along the axis share one number of splines.
        points : array-like of shape (n,)
            Where they lie.
        axis : int
            Along which axis.
        cap : float
            Largest number of splines as a fraction of n: .5 for space, .7 for time.
        factor : float
            How many times the number of cross-validation. 1 has the least error in the values but bends the signal.
        """
        points = _checked_points(points)
        lines = _lines(values, points, axis)
        largest = int(cap * len(points))
        if largest < SPLINE_DEGREE + 1:
            raise ValueError(
                f"smoothing splines of degree {SPLINE_DEGREE} need at least {ceil((SPLINE_DEGREE + 1) / cap)} points, "
                f"got {len(points)}"
            )
        candidates = _spline_numbers(largest)
        scores = [cls(points, k)._cross_validation(lines) for k in candidates]
        best = candidates[int(np.argmin(scores))]
        return cls(points, min(largest, int(factor * best)))

    @cached_property
    def basis(self) -> Array:
        """Q of shape (n, k): orthonormal columns that span the splines at the points."""
        return self._orthogonal[0]

    def derivative_basis(self, derivative: int) -> Array:
        """Return D_q of shape (n, k): the q-th derivative of the functions whose values are the columns of Q."""
        if derivative == 0:
            return self.basis
        if not 0 <= derivative <= SPLINE_DEGREE:
            raise ValueError(f"these splines have derivatives 0 to {SPLINE_DEGREE}, not {derivative}")
        if derivative not in self._derivatives:
            splines = self._splines.derivative(derivative)(self.points)
            self._derivatives[derivative] = linalg.solve_triangular(
                self._orthogonal[1], splines.T, trans="T", check_finite=False
            ).T
        return self._derivatives[derivative]

    def smooth(self, values: ArrayLike, axis: int = 0, derivative: int = 0) -> Array:
        """Return the smoothed values, or a derivative of them, in the shape of `values`."""
        rows = np.moveaxis(np.asarray(values, dtype=float), axis, 0)
        flat = _lines(values, self.points, axis)
        out = self.derivative_basis(derivative) @ (self.basis.T @ flat)
        return np.moveaxis(out.reshape(rows.shape), 0, axis)

    @cached_property
    def _derivatives(self) -> dict[int, Array]:
        return {}

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

    def _cross_validation(self, lines: Array) -> float:
        """Return ‖u − P_k u‖²/(1 − k/n)², from the banded normal equations: no dense basis is formed."""
        n, k = len(self.points), self.n_basis
        splines = BSpline.design_matrix(self.points, self._knots, SPLINE_DEGREE)
        gram = (splines.T @ splines).tocsr()
        band = np.zeros((SPLINE_DEGREE + 1, k))
        for below in range(min(SPLINE_DEGREE + 1, k)):
            band[below, : k - below] = gram.diagonal(-below)
        coefficients = linalg.solveh_banded(band, splines.T @ lines, lower=True, check_finite=False)
        return float(np.sum((lines - splines @ coefficients) ** 2)) / (1 - k / n) ** 2


def _spline_numbers(largest: int) -> list[int]:
    """Return 12, 15, 18, … up to the largest allowed."""
    numbers, exact = [], float(FEWEST_SPLINES)
    while exact <= largest:
        numbers.append(int(exact))
        exact *= SPLINE_GROWTH
    return numbers or [largest]


def _lines(values: ArrayLike, points: Array, axis: int) -> Array:
    """Return the values as (n, lines), checked against the points."""
    rows = np.moveaxis(np.asarray(values, dtype=float), axis, 0)
    if len(rows) != len(points):
        raise ValueError(f"{len(points)} points for {len(rows)} values along axis {axis}")
    if not np.all(np.isfinite(rows)):
        raise ValueError("smoothing splines need finite values; leave out or fill the gaps first")
    return rows.reshape(len(rows), -1)


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
