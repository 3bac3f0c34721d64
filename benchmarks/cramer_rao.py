"""The Cramér–Rao bound of the coefficients of x' = Θ(x)ξ, whose states are measured with Gaussian noise at given times.

To first order around the true motion x_{i+1} = Φ_i(x_i, ξ) the data say, with A_i = ∂Φ_i/∂x and B_i = ∂Φ_i/∂ξ,

    y_{i+1} − A_i y_i = B_i δξ + e_{i+1} − A_i e_i,   e ~ N(0, diag s²),

that is z = B δξ + D e with D block bidiagonal. Nothing of the unknown start is left in it, and it is equivalent to the
likelihood of all states and of ξ together. The Fisher information is therefore Bᵀ(D diag(s²) Dᵀ)⁻¹B. The matrix in the
middle is block tridiagonal and well conditioned, however chaotic the motion is; sensitivities to the first state,
which grow with e^{λt}, never occur. A and B are integrated by `scipy.integrate.solve_ivp` from the variational
equations A' = (∂f/∂x)A, B' = (∂f/∂x)B + ∂f/∂ξ, with ∂f/∂x by complex steps, which have no truncation error. Nothing of
the package is used but the values of the library's terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.linalg import cho_solve_banded, cholesky_banded

from benchmarks.motions import Motion, kept

Array = NDArray[np.float64]

COMPLEX_STEP = 1e-30
# Relative and absolute tolerance of the sensitivities: the bound is wanted to a few digits.
TOLERANCE = 1e-8
# The motion counts as exact to this share of the noise; else states that decay to nothing and grow again would be known
# to any digit.
EXACT = 1e-6
# Numbers integrated at once, so that memory stays below some 100 MB.
AT_ONCE = 200_000


def information(motion: Motion, x: Array, t: Array, s: Any) -> Array:
    """Return the Fisher information of the coefficients of the true terms from one series.

    Parameters
    ----------
    motion : Motion
        The equations.
    x, t : arrays of shape (rows, n) and (rows,)
        States without noise, and times.
    s : float or array that broadcasts to (rows, n)
        Standard deviations of the noise; very large where nothing was measured.
    """
    A, B = sensitivities(motion, x, t)
    variances = np.broadcast_to(np.square(s), x.shape)
    steps, n = A.shape[:2]
    # D diag(s²) Dᵀ: on the diagonal A_i S_i A_iᵀ + S_{i+1}, beside it −S_{i+1} A_{i+1}ᵀ.
    diagonal = np.einsum("iab,ib,icb->iac", A, variances[:-1], A)
    unit = float(np.median(variances))
    diagonal[:, np.arange(n), np.arange(n)] += variances[1:] + EXACT**2 * np.min(variances)
    beside = -variances[1:-1, :, None] * np.swapaxes(A[1:], 1, 2)
    factor = cholesky_banded(_banded(diagonal / unit, beside / unit), lower=False)
    flat = B.reshape(steps * n, -1)
    return np.asarray(flat.T @ cho_solve_banded((factor, False), flat)) / unit


def _banded(diagonal: Array, beside: Array) -> Array:
    """Return a symmetric block tridiagonal matrix in LAPACK's upper banded form."""
    steps, n = diagonal.shape[:2]
    band = np.zeros((2 * n, steps * n))
    for a in range(n):
        for b in range(n):
            if a <= b:
                band[2 * n - 1 + a - b, b::n] = diagonal[:, a, b]
            band[n - 1 + a - b, n + b :: n] = beside[:, a, b]
    return band


def variances(motion: Motion, series: list[tuple[Array, Array, Any]]) -> list[dict[str, float]]:
    """Return the least variance of every true coefficient by name, one mapping for every equation.

    `series` holds (x, t, s) of all series. The result is kept in the cache of the motions.
    """
    key = ("bound", motion, *(part if isinstance(part, np.ndarray) else float(part) for one in series for part in one))
    flat = kept(key, lambda: _variances(sum(information(motion, *one) for one in series)))
    numbers = iter(flat.tolist())
    return [{term: next(numbers) for term in terms} for terms in motion.truth]


def _variances(fisher: Any) -> Array:
    unit = 1 / np.sqrt(np.diag(fisher))
    return np.asarray(np.diag(np.linalg.pinv(fisher * np.outer(unit, unit), rcond=1e-14, hermitian=True)) * unit**2)


def sensitivities(motion: Motion, x: Array, t: Array) -> tuple[Array, Array]:
    """Return ∂x_{i+1}/∂x_i, shape (steps, n, n), and ∂x_{i+1}/∂ξ of the true terms, shape (steps, n, terms)."""
    n, p = x.shape[1], sum(len(terms) for terms in motion.truth)
    chunk = max(1, AT_ONCE // (n * (1 + n + p)))
    parts = [_integrated(motion, x[i : i + chunk], np.diff(t[i : i + chunk + 1])) for i in range(0, len(t) - 1, chunk)]
    A, B = zip(*parts, strict=True)
    return np.concatenate(A), np.concatenate(B)


def _integrated(motion: Motion, x: Array, steps: Array) -> tuple[Array, Array]:
    """Integrate all steps at once, each in units of its own length."""
    rows, n = len(steps), x.shape[1]
    equations, columns = motion.term_columns()
    p = len(equations)
    start = np.zeros((rows, n, 1 + n + p))
    start[:, :, 0] = x[:rows]
    start[:, np.arange(n), 1 + np.arange(n)] = 1.0

    def slope(_: float, flat: Array) -> Array:
        state = flat.reshape(rows, n, 1 + n + p)
        now = state[:, :, 0]
        out = np.empty_like(state)
        out[:, :, 0] = motion.flow(now.T).T
        out[:, :, 1:] = jacobian(motion, now) @ state[:, :, 1:]
        out[:, equations, 1 + n + np.arange(p)] += motion.library.evaluate(now)[:, columns]
        return (out * steps[:, None, None]).ravel()

    solution = solve_ivp(
        slope, (0.0, 1.0), start.ravel(), method="DOP853", t_eval=[1.0], rtol=TOLERANCE, atol=TOLERANCE
    )
    end = solution.y[:, -1].reshape(rows, n, 1 + n + p)
    return end[:, :, 1 : 1 + n], end[:, :, 1 + n :]


def jacobian(motion: Motion, x: Array) -> Array:
    """Return ∂f/∂x at every row of x, shape (rows, n, n), by complex steps."""
    n = x.shape[1]
    out = np.empty((len(x), n, n))
    for state in range(n):
        moved = x.T.astype(complex)
        moved[state] += 1j * COMPLEX_STEP
        out[:, :, state] = motion.flow(moved).imag.T / COMPLEX_STEP
    return out
