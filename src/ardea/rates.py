"""Closed-form false positive and false negative rates for orthogonal columns, and their inverses.

For a column of squared norm ρ with noise variance σ², put v = σ²/ρ. Every method keeps the column if and only if its
least-squares coefficient ρ⁻¹θᵀy, which is N(ξ, v), exceeds a cut ψ in size. With z = ψ/√v,

    FP = erfc(z/√2),      FN = ½[erf((ξ + ψ)/√(2v)) − erf((ξ − ψ)/√(2v))]

========  =========  ==============================================================================
method    strength   cut
========  =========  ==============================================================================
"vi"      α          z² = α                                                     (Eq. VI_FP_rate)
"r"       λ          z² = 1 + λv                                                (Eq. ARDr_FP_rate)
"m"       τ          z = ½(t + √(t² + 4)), t = τ/√v                             (Eq. M_STSBL_FP_rate)
"l"       τ          z² = 1 + 2w, ln(1 + 2w) − ln w − 2w = ln(4πvτ²)            (Eq. L_STSBL_FP_rate)
"map"     τ          z² = 1 + 2τ                                                (Eq. MAP_STSBL_FP_rate)
========  =========  ==============================================================================

The general FN formula of the paper's Sec. 5 prints σψ where ψ already contains σ; the form above is the right one.
For ρ → ∞ (Eq. large_rho, put right), with v = σ²/ρ,

    ψ_vi = √(αv),  ψ_map = √((1 + 2τ)v),  ψ_r → √v,  ψ_m → τ,  ψ_l → √(v(1 + ln(1/(2πvτ²)))):

all but M's go to zero. The false positive rate stays constant for vi and map, rises to .3173 for r (the paper prints
O(ρ⁻¹) for its ψ, which would make it rise to 1) and falls to zero for m and, slowly, for l.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ardea.core.problem import Array

Method = Literal["vi", "r", "m", "l", "map"]
METHODS: tuple[Method, ...] = ("vi", "r", "m", "l", "map")
# P(|N(0,1)| > 1): the rate of plain ARD, above which no method but ARDvi (with α < 1) can go.
NO_PRUNING_RATE = float(special.erfc(np.sqrt(0.5)))
# What SparseARD allows by default: one false term in three models (a convention).
DEFAULT_FALSE_TERMS = 0.3
# Below this z(1 + t) the difference of two tails cancels; Gauss's rule of so many nodes has no error left there.
SHORT_INTERVAL = 1.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def rate_for(false_terms: float, n_candidates: int) -> float:
    """Return the false positive rate that lets so many of all candidates through, at most that of plain ARD.

    Examples
    --------
    >>> rate_for(0.3, 100)
    0.003
    """
    return float(min(false_terms / max(n_candidates, 1), NO_PRUNING_RATE))


def cut(method: Method, strength: ArrayLike, *, rho: ArrayLike = 1.0, sigma: ArrayLike = 1.0) -> Array:
    """Return z = ψ/√v, the cut on the column's t-statistic.

    Examples
    --------
    >>> float(cut("vi", 4.0)), float(cut("map", 1.5))
    (2.0, 2.0)
    """
    strength, spread = _checked(method, strength, rho, sigma)
    return np.sqrt(strength) if method == "vi" else np.hypot(1.0, _root_excess(method, strength, spread))


def psi(method: Method, strength: ArrayLike, *, rho: ArrayLike = 1.0, sigma: ArrayLike = 1.0) -> Array:
    """Return ψ, the cut on |ρ⁻¹θᵀy| (Sec. 5 of the paper)."""
    return np.asarray(
        cut(method, strength, rho=rho, sigma=sigma) * np.asarray(sigma) / np.sqrt(np.asarray(rho, dtype=float))
    )


def false_positive_rate(method: Method, strength: ArrayLike, *, rho: ArrayLike = 1.0, sigma: ArrayLike = 1.0) -> Array:
    """Return the probability that a column with true coefficient zero is kept.

    Parameters
    ----------
    method : {"vi", "r", "m", "l", "map"}
        Which of the five methods.
    strength : array-like
        α, λ or τ.
    rho : array-like
        Squared norm of the column.
    sigma : array-like
        Standard deviation of the noise. All arrays broadcast.

    Returns
    -------
    ndarray
        Rates in [0, 1].

    Examples
    --------
    >>> round(float(false_positive_rate("vi", 1.0)), 4)  # plain ARD
    0.3173
    """
    return np.asarray(special.erfc(cut(method, strength, rho=rho, sigma=sigma) / np.sqrt(2)))


def false_negative_rate(
    method: Method, strength: ArrayLike, xi: ArrayLike, *, rho: ArrayLike = 1.0, sigma: ArrayLike = 1.0
) -> Array:
    """Return the probability that a column with true coefficient `xi` is dropped.

    Written as Φ(z − t) − Φ(−z − t) with t = |ξ|/√v, in logarithms, so that small rates keep their digits; where the
    interval is short, as the integral of the density over it.

    Examples
    --------
    >>> round(float(false_negative_rate("map", 2.0, xi=3.0)), 4)
    0.2225
    """
    strength, spread = _checked(method, strength, rho, sigma)
    z = cut(method, strength, rho=rho, sigma=sigma)
    with np.errstate(over="ignore"):
        z, t = np.broadcast_arrays(z, np.abs(np.asarray(xi, dtype=float)) / spread)
    short = np.minimum(z, 1.0) * (1 + np.minimum(t, 1e6)) < SHORT_INTERVAL
    return np.where(short, _short_interval(z, t), _interval(z, t))


class Expected(NamedTuple):
    """Expected numbers of terms added and missed."""

    added: Array
    missed: Array


def expected_terms(
    method: Method, strength: ArrayLike, coefficients: ArrayLike, *, rho: ArrayLike = 1.0, sigma: ArrayLike = 1.0
) -> Expected:
    """Return how many terms a method is expected to add and to miss on a whole problem.

    Parameters
    ----------
    method : {"vi", "r", "m", "l", "map"}
        Which of the five methods.
    strength : array-like
        α, λ or τ.
    coefficients : array-like
        True coefficients ξ; zeros are the terms that can be added.
    rho, sigma : array-like
        Squared norms of the columns, and the standard deviation of the noise. All arrays broadcast; the last axis is
        that of the columns and is summed over.

    Returns
    -------
    Expected
        `added` and `missed`, without the axis of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> xi = np.array([0.0] * 225 + [2.0] * 25)
    >>> added, missed = expected_terms("vi", [[1.0], [4.0], [8.0]], xi)
    >>> np.round(added, 1), np.round(missed, 1)
    (array([71.4, 10.2,  1.1]), array([ 3.9, 12.5, 19.9]))
    """
    xi = np.asarray(coefficients, dtype=float)
    if not np.all(np.isfinite(xi)):
        raise ValueError("coefficients must be finite numbers.")
    added = np.where(xi == 0, false_positive_rate(method, strength, rho=rho, sigma=sigma), 0.0)
    missed = np.where(xi != 0, false_negative_rate(method, strength, xi, rho=rho, sigma=sigma), 0.0)
    if added.ndim == 0:
        return Expected(added, missed)
    return Expected(added.sum(axis=-1), missed.sum(axis=-1))


class OperatingCurve(NamedTuple):
    """What a method trades: false negatives against false positives, with the strength that gives each pair."""

    strength: Array
    false_positive: Array
    false_negative: Array


def operating_curve(
    method: Method,
    xi: ArrayLike,
    *,
    rho: ArrayLike = 1.0,
    sigma: ArrayLike = 1.0,
    false_positive: ArrayLike | None = None,
) -> OperatingCurve:
    """Return false negative rates over a range of false positive rates.

    For one ρ every method has the same curve, since each is a cut on the same statistic; they differ in how a strength
    carries over to a column of another ρ (see :func:`false_positive_rate` with an array of ρ).

    Parameters
    ----------
    method : {"vi", "r", "m", "l", "map"}
        Which of the five methods.
    xi : array-like
        True coefficients; the rates run along a new last axis.
    rho, sigma : array-like
        Squared norm of the column and standard deviation of the noise; they broadcast with `xi`.
    false_positive : array-like, optional
        False positive rates; by default 200 from 1e-8 to 0.3173, the rate of plain ARD.

    Returns
    -------
    OperatingCurve
        `strength`, `false_positive` and `false_negative`.

    Examples
    --------
    >>> curve = operating_curve("map", 3.0, false_positive=[0.01, 0.1])
    >>> [round(float(rate), 3) for rate in curve.false_negative]
    [0.336, 0.088]
    """
    if false_positive is None:
        false_positive = np.geomspace(1e-8, NO_PRUNING_RATE, 200)
    rate = np.asarray(false_positive, dtype=float)
    xi, rho, sigma = (np.asarray(array, dtype=float)[..., None] for array in (xi, rho, sigma))
    strength = strength_for(method, rate, rho=rho, sigma=sigma)
    missed = false_negative_rate(method, strength, xi, rho=rho, sigma=sigma)
    rate, strength, missed = np.broadcast_arrays(rate, strength, missed)
    return OperatingCurve(strength, rate, missed)


def strength_for(
    method: Method,
    false_positive_rate: ArrayLike,
    *,
    rho: ArrayLike = 1.0,
    sigma: ArrayLike = 1.0,
    degrees: ArrayLike = np.inf,
) -> Array:
    """Return the strength at which a column of squared norm `rho` has the false positive rate asked for.

    With z = Φ⁻¹(1 − FP/2): α = z²; τ_MAP = (z² − 1)/2; λ = (z² − 1)/v; τ_M = √v(z − 1/z);
    τ_L = √(z²/(2πv(z² − 1))) exp(−(z² − 1)/2). Rates above .3173 (z < 1) only "vi" can reach; the others return the
    strength that prunes nothing (0, for "l" infinity).

    Where σ² is learned, `degrees` are the ν = m − k that it is learned from, the column itself among the k: at a fixed
    point of ARD σ² = RSS/ν, so that the statistic is Student's, and z is his quantile. ARDvi decides with the column
    still out, σ² = RSS₀/(ν + 1): there z²/(ν + z²) is the share of RSS₀ that the column explains, and
    α = (ν + 1)z²/(ν + z²).

    Examples
    --------
    >>> round(float(strength_for("vi", 0.05)), 4)
    3.8415
    >>> round(2 * float(strength_for("map", 0.05, degrees=10)) + 1, 4)  # 2.2281²
    4.9646
    """
    rate = np.asarray(false_positive_rate, dtype=float)
    if not np.all((rate > 0) & (rate <= 1)):
        raise ValueError("A false positive rate must lie in (0, 1].")
    _, spread = _checked(method, 1.0, rho, sigma)
    degrees = np.asarray(degrees, dtype=float)
    known, few = np.isinf(degrees), np.where(np.isinf(degrees), 1.0, degrees)
    with np.errstate(over="ignore", divide="ignore"):
        z_square = np.where(known, 2 * special.erfcinv(rate) ** 2, special.stdtrit(few, rate / 2) ** 2)
        if method == "vi":
            z_square = np.where(known, z_square, (few + 1) / (1 + few / z_square))
    return _strength_at(method, z_square, z_square - 1, spread)


@lru_cache(maxsize=1024)
def calibrated(method: Method, false_positive_rate: float, degrees: float) -> float:
    """Return `strength_for` of one column with ρ = σ = 1, which fits to as many rows and columns ask for again."""
    return float(strength_for(method, false_positive_rate, degrees=degrees))


def equivalent(
    method: Method, strength: ArrayLike, to: Method, *, rho: ArrayLike = 1.0, sigma: ArrayLike = 1.0
) -> Array:
    """Return the strength of method `to` that keeps the same columns (of this ρ) as `method` at `strength`.

    Examples
    --------
    >>> round(float(equivalent("map", 1.5, "vi")), 12)  # α = 2τ + 1, whatever ρ
    4.0
    """
    _checked(to, 0.0, rho, sigma)
    strength, spread = _checked(method, strength, rho, sigma)
    if method == "vi":
        return _strength_at(to, strength, strength - 1, spread)
    with np.errstate(over="ignore"):
        excess = _root_excess(method, strength, spread) ** 2
    return _strength_at(to, 1 + excess, excess, spread)


def _interval(z: Array, t: Array) -> Array:
    """Return P(|N(t, 1)| < z) from the logarithms of both tails."""
    with np.errstate(invalid="ignore"):
        upper, lower = special.log_ndtr(np.where(z == t, 0.0, z - t)), special.log_ndtr(-z - t)
        return np.asarray(np.exp(upper) * -np.expm1(np.where(np.isneginf(lower), -np.inf, lower - upper)))


def _short_interval(z: Array, t: Array) -> Array:
    """Return P(|N(t, 1)| < z) = 2z∫₀¹ φ(t)exp(−(zu)²/2)cosh(tzu)du, for z(1 + t) < 1 to the last digit."""
    z, t = np.minimum(z, 1.0)[..., None], np.minimum(t, 1e6)[..., None]
    u = (1 + _NODES) / 2
    with np.errstate(over="ignore", invalid="ignore"):
        density = np.exp(-(t**2) / 2 - (z * u) ** 2 / 2) * np.cosh(np.minimum(t * z * u, 1.0)) / np.sqrt(2 * np.pi)
    return np.asarray(z[..., 0] * (density @ _WEIGHTS))


def _root_excess(method: Method, strength: Array, spread: Array) -> Array:
    """Return √(z² − 1) at the cut of any method but "vi", with all its digits also where it is tiny or huge."""
    if method == "l":
        return np.sqrt(2 * _likelihood_exponent(strength, spread))
    if method == "map":
        return np.sqrt(2) * np.sqrt(strength)
    with np.errstate(over="ignore", invalid="ignore"):
        if method == "r":
            return np.where(strength == 0, 0.0, np.sqrt(strength) * spread)
        t = np.where(strength == 0, 0.0, strength / spread)
        return np.sqrt(t) * np.sqrt(0.5 * t + np.hypot(0.5 * t, 1.0))


def _strength_at(method: Method, z_square: Array, excess: Array, spread: Array) -> Array:
    """Return the strength with cut z, given z² and z² − 1, for a column of spread √v = σ/√ρ."""
    z_square, excess, spread = np.broadcast_arrays(z_square, excess, spread)
    if method == "vi":
        return np.array(z_square)
    excess = np.maximum(excess, 0.0)
    if method == "map":
        return excess / 2
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if method == "r":
            return (np.sqrt(excess) / spread) ** 2
        z = np.sqrt(1 + excess)
        if method == "m":
            return np.where(np.isinf(excess), np.inf, spread * (excess / z))
        # Half of the exponential before the division and half after: no factor underflows where the product does not.
        half = np.exp(-excess / 4)
        strength = np.sqrt((1 + 1 / excess) / (2 * np.pi)) * half / spread * half
        return np.asarray(np.where(np.isinf(excess), 0.0, strength))


def _likelihood_exponent(tau: Array, spread: Array) -> Array:
    """Return w = μ²/(2Σ) at the cut of L-STSBL: the root of ln(1 + 2w) − ln w − 2w = ln(4πvτ²), falling in w."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # The exponents of two cancel exactly, where logarithms of 1e±200 would lose digits.
        (tau_part, tau_exponent), (spread_part, spread_exponent) = np.frexp(tau), np.frexp(spread)
        level = np.log(4 * np.pi * (tau_part * spread_part) ** 2) + 2 * np.log(2) * (tau_exponent + spread_exponent)
    low, high = np.full(level.shape, -745.0), np.full(level.shape, 12.0)
    middle = (low + high) / 2
    while np.any((low < middle) & (middle < high)):  # else numbers between are used up
        w = np.exp(middle)
        above = np.log1p(2 * w) - middle - 2 * w > level
        low, high = np.where(above, middle, low), np.where(above, high, middle)
        middle = (low + high) / 2
    w = np.exp(middle)
    return np.where(np.isposinf(level), 0.0, np.where(np.isneginf(level), np.inf, w))


def _checked(method: str, strength: ArrayLike, rho: ArrayLike, sigma: ArrayLike) -> tuple[Array, Array]:
    """Return strength and √v = σ/√ρ, broadcast together; v itself may leave the range of numbers where √v does not."""
    if method not in METHODS:
        raise ValueError(f"Unknown method {method!r}: choose one of {', '.join(map(repr, METHODS))}.")
    strength = np.asarray(strength, dtype=float)
    rho, sigma = np.asarray(rho, dtype=float), np.asarray(sigma, dtype=float)
    if not np.all(strength >= 0):
        raise ValueError(f"The strength of method {method!r} must be a number >= 0.")
    if not np.all(rho > 0) or not np.all(sigma > 0):
        raise ValueError("rho and sigma must be positive.")
    with np.errstate(over="ignore"):
        strength, spread = np.broadcast_arrays(strength, sigma / np.sqrt(rho))
    return strength, spread
