"""The data sets, each a function seed -> (X, y, true coefficients). No case has an intercept.

Names are those of :data:`CASES`; ``gauss_MxD`` and ``dct_MxD`` are understood for any number of rows and columns, with
``_kK`` behind them for K true terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct
from scipy.integrate import solve_ivp
from scipy.sparse.linalg import LinearOperator

Array = NDArray[np.float64]
Data = tuple[Array, Array, Array]

STENCIL_POINTS = 7  # a first derivative on 7 points is of order 6
TIME_STEP = 0.05
FORCING = 8.0
TRUE_TERMS = {"gauss_5000x5000": 100, "dct_1024x4096": 100}
DEFAULT_TRUE_TERMS = 40


def sparse_coefficients(d: int, n_true: int, rng: np.random.Generator) -> Array:
    """Return d coefficients, `n_true` of them from N(0, 1) and the others zero."""
    coefficients = np.zeros(d)
    coefficients[rng.choice(d, n_true, replace=False)] = rng.normal(size=n_true)
    return coefficients


def with_noise(X: Array, coefficients: Array, share: float, rng: np.random.Generator) -> Data:
    """Return the case whose noise is `share` times the standard deviation of the signal."""
    signal = X @ coefficients
    return X, signal + share * signal.std() * rng.normal(size=signal.size), coefficients


def spectrum_matrix(singular_values: Array, rng: np.random.Generator) -> Array:
    """Return a square matrix with these singular values and the singular vectors of a Gaussian one."""
    left, _, right = np.linalg.svd(rng.normal(size=(singular_values.size, singular_values.size)))
    return np.ascontiguousarray(left * singular_values @ right)


def linear(seed: int, condition: float = 100.0) -> Data:
    """250×250 with a logarithmic spectrum from 1/condition to 1, 25 terms, 10 % noise."""
    rng = np.random.default_rng(seed)
    X = spectrum_matrix(np.logspace(-np.log10(condition), 0, 250), rng)
    return with_noise(X, sparse_coefficients(250, 25, rng), 0.1, rng)


def fourier(seed: int) -> Data:
    """250×900: cos(i x₁)cos(j x₂) for i, j = 0…29 at points uniform in [0, π]², 50 terms, 10 % noise."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, np.pi, size=(250, 2))
    first, second = (np.cos(np.outer(points[:, axis], np.arange(30))) for axis in (0, 1))
    X = (first[:, :, None] * second[:, None, :]).reshape(250, 900)
    return with_noise(X, sparse_coefficients(900, 50, rng), 0.1, rng)


def gauss(m: int, d: int, n_true: int, seed: int) -> Data:
    """Independent N(0, 1) entries, 10 % noise."""
    rng = np.random.default_rng(seed)
    return with_noise(rng.standard_normal((m, d)), sparse_coefficients(d, n_true, rng), 0.1, rng)


def l63(seed: int) -> Data:
    """251×56: second equation of Lorenz 63, quintic monomials of a state with 1 % noise.

    The start is drawn as in the paper; noise is 1 % of the standard deviation of the whole array.
    """
    rng = np.random.default_rng(seed)

    def flow(_: float, s: Array) -> list[float]:
        return [10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]]

    states = noisy_trajectory(flow, rng.normal((0.0, 0.0, 15.0), 5.0), 251, rng)
    terms = {(0,): 28.0, (1,): -1.0, (0, 2): -1.0}
    return equation(states, target=1, degree=5, terms=terms)


def l96(seed: int, target: int = 20) -> Data:
    """200×861: one equation of Lorenz 96 in 40 dimensions, monomials to degree 2 of a state with 1 % noise."""
    rng = np.random.default_rng(seed)

    def flow(_: float, x: Array) -> Array:
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + FORCING

    states = noisy_trajectory(flow, np.exp(-((np.arange(40) - 20) ** 2) / 16), 200, rng)
    ahead, before, second = (target + 1) % 40, (target - 1) % 40, (target - 2) % 40
    terms: dict[tuple[int, ...], float] = {(): FORCING, (target,): -1.0}
    for other, value in ((ahead, 1.0), (second, -1.0)):
        terms[tuple(sorted((other, before)))] = value
    return equation(states, target, degree=2, terms=terms)


def noisy_trajectory(flow: Callable[..., object], start: Array, rows: int, rng: np.random.Generator) -> Array:
    """Integrate to 1e-12 and add noise of 1 % of the standard deviation of the whole array."""
    times = TIME_STEP * np.arange(rows)
    solution = solve_ivp(flow, (0, times[-1]), start, method="DOP853", t_eval=times, rtol=1e-12, atol=1e-12)
    states: Array = solution.y.T
    return states + 0.01 * states.std() * rng.normal(size=states.shape)


def equation(states: Array, target: int, degree: int, terms: dict[tuple[int, ...], float]) -> Data:
    """Return the regression of a state's derivative on all monomials; a term is named by its factors, in order."""
    n = states.shape[1]
    monomials = [f for k in range(degree + 1) for f in combinations_with_replacement(range(n), k)]
    X = np.column_stack([states[:, list(factors)].prod(axis=1) for factors in monomials])
    coefficients = np.array([terms.get(factors, 0.0) for factors in monomials])
    return np.ascontiguousarray(X), derivative(states[:, target]), coefficients


def derivative(values: Array) -> Array:
    """Differentiate by 6th-order differences, central inside and one-sided at the ends."""
    half = STENCIL_POINTS // 2
    result = np.empty_like(values)
    for row in range(values.size):
        first = min(max(row - half, 0), values.size - STENCIL_POINTS)
        result[row] = stencil(first - row) @ values[first : first + STENCIL_POINTS]
    return result / TIME_STEP


def stencil(first: int) -> Array:
    """Return the weights at offsets first, first + 1, …: exact for every power up to the sixth (order conditions)."""
    offsets = np.arange(first, first + STENCIL_POINTS, dtype=float)
    slopes_at_zero = np.zeros(STENCIL_POINTS)
    slopes_at_zero[1] = 1.0
    return np.linalg.solve(np.vander(offsets, increasing=True).T, slopes_at_zero)


def dct_case(m: int, d: int, n_true: int, seed: int) -> Data:
    """Rows sampled from an orthonormal inverse cosine transform, 1 % noise."""
    rng = np.random.default_rng(seed)
    places = sampled_rows(m, d, rng)
    X = np.ascontiguousarray(idct(np.eye(d), norm="ortho", axis=0)[places])
    return with_noise(X, sparse_coefficients(d, n_true, rng), 0.01, rng)


def sampled_rows(m: int, d: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return m of d rows, in order."""
    return np.sort(rng.choice(d, m, replace=False))


def dct_operator(m: int, d: int, seed: int) -> LinearOperator:
    """Return the matrix of :func:`dct_case` as a fast transform."""
    places = sampled_rows(m, d, np.random.default_rng(seed))

    def synthesis(coefficients: Array) -> Array:
        return idct(coefficients, norm="ortho", axis=0)[places]

    def analysis(values: Array) -> Array:
        full = np.zeros((d, *values.shape[1:]))
        full[places] = values
        return dct(full, norm="ortho", axis=0)

    return LinearOperator(
        (m, d), matvec=synthesis, rmatvec=analysis, matmat=synthesis, rmatmat=analysis, dtype=np.float64
    )


CASES: dict[str, Callable[[int], Data] | None] = {
    "linear": linear,
    "l63": l63,
    "l96": l96,
    "fourier": fourier,
    "tall": partial(gauss, 2500, 25, 10),
    "gauss_20000x1000": None,
    "gauss_524288x25": None,
    "gauss_1000x10000": None,
    "gauss_5000x5000": None,
    "dct_1024x4096": None,
}


def sized(name: str) -> tuple[str, int, int] | None:
    """Return (kind, rows, columns) of a name like gauss_1000x10000 or gauss_1000x500_k20, or None."""
    match = re.fullmatch(r"(gauss|dct)_(\d+)x(\d+)(?:_k\d+)?", name)
    return (match[1], int(match[2]), int(match[3])) if match else None


def build(name: str, seed: int) -> Data:
    """Return X, y and the true coefficients of a case."""
    named = CASES.get(name)
    if named is not None:
        return named(seed)
    size = sized(name)
    if size is None:
        raise ValueError(f"Case {name!r} is not known: choose from {', '.join(CASES)}, or gauss_MxD, dct_MxD.")
    kind, m, d = size
    told = re.search(r"_k(\d+)$", name)
    n_true = int(told[1]) if told else TRUE_TERMS.get(name, min(DEFAULT_TRUE_TERMS, 2 * d // 5))
    return (gauss if kind == "gauss" else dct_case)(m, d, n_true, seed)


def operator(name: str, seed: int) -> LinearOperator | None:
    """Return the case's matrix as a fast transform, or None where there is none."""
    size = sized(name)
    return dct_operator(size[1], size[2], seed) if size and size[0] == "dct" else None
