"""Equations D x_i = VΘ(x)ξ_i with noise in every state, at given supports: whitened jointly, corrected for errors in Θ.

Observed states are x + e, e_l ~ N(0, s_l²). With an estimate ê and x̂ = x_obs − ê, to first order in e − ê

    D x_obs,i − V Σ_l J_il ê_l = VΘ(x̂)ξ_i + Σ_l L_il e_l,      J_il = ∂(Θξ_i)/∂x_l at x̂,  L_il = δ_il D − V diag(J_il).

The same e stands in all equations, so the rows of equations i and i′ have the covariance

    C_ii′ = Σ_l s_l² L_il L_i′lᵀ
          = δ_ii′ s_i² DDᵀ − D diag(s_i²J_i′i)Vᵀ − V diag(s_i′²J_ii′)Dᵀ + V diag(Σ_l s_l²J_il J_i′l)Vᵀ.

One pass: J at (x̂, ξ) → C = RRᵀ → A = R⁻¹VΘ(x̂), z → ξ by least squares on the supports →
ê_l = s_l² Σ_i L_ilᵀ(R⁻ᵀ(z − Aξ))_i. Passes are repeated until ξ settles. RSS/N is then the noise of the states in units
of s, comparable between supports although each has its own R. Several equations together know the states far better
than one alone: on Lorenz 63 with 5 % noise the t-statistic of the weakest term rises from 4 to 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ardea.dynamics.libraries import Library
from ardea.dynamics.pieces import Piece
from ardea.dynamics.subsets import ROUNDING, Support

Array = NDArray[np.float64]

MAX_PASSES = 12
SETTLED, SETTLED_SCORE = 1e-3, 0.5
# Added to the diagonal of C, relative to its mean, against rounding.
JITTER = 1e-9
# RSS below so many times what truncation error is estimated to leave is no evidence for a term.
FLOOR_MARGIN = 4.0


@dataclass(frozen=True, eq=False)
class Fit:
    """Equations fitted at their supports.

    Attributes
    ----------
    supports : tuple of tuples of int
        Terms of every equation.
    coefficients : tuple of ndarray
        ξ on the supports.
    rss : float
        ‖z − Aξ‖².
    errors : list of ndarray
        ê of every piece, in the units of the states.
    floor : float
        RSS that truncation error alone leaves.
    settled : bool
        Whether another pass would hardly change it.
    """

    supports: tuple[Support, ...]
    coefficients: tuple[Array, ...]
    rss: float
    errors: list[Array]
    floor: float = 0.0
    settled: bool = False


class Equations:
    """The equations of some of the states over all pieces.

    Parameters
    ----------
    pieces : sequence of Piece
        Data and rows.
    library : Library
        Candidate terms of states and inputs.
    states : sequence of int
        Which equations.
    noise : ndarray of shape (n,)
        s_l.
    """

    def __init__(self, pieces: Sequence[Piece], library: Library, states: Sequence[int], noise: Array) -> None:
        self.pieces, self.library, self.states, self.noise = list(pieces), library, list(states), noise
        self.n_states = self.pieces[0].x.shape[1]
        self.n_terms = library.n_terms(self.n_states + self.pieces[0].inputs.shape[1])
        self.n_rows = len(self.states) * sum(piece.n_rows for piece in self.pieces)

    def fitted(
        self, supports: Sequence[Support], start: Fit | FirstPass | None = None, passes: int | None = None
    ) -> Fit:
        """Return the fit at the supports, its passes repeated until the coefficients settle."""
        left = MAX_PASSES if passes is None else passes
        if isinstance(start, FirstPass):
            current, left = start.fit(tuple(supports)), left - 1
        else:
            current = self._beginning(tuple(supports), start)
        for _ in range(left):
            if current.settled:
                break
            following = self._pass(current)
            if following is None:
                break
            current = replace(following, settled=self._settled(current, following))
        return current

    def _settled(self, before: Fit, after: Fit) -> bool:
        """Whether ξ hardly moves any more, and N ln RSS, by which supports are compared, neither."""
        old, new = np.concatenate(before.coefficients), np.concatenate(after.coefficients)
        if np.linalg.norm(new - old) > SETTLED * np.linalg.norm(new) or not np.isfinite(before.rss):
            return False
        tiny = np.finfo(float).tiny
        return self.n_rows * abs(np.log(max(after.rss, tiny) / max(before.rss, tiny))) < SETTLED_SCORE

    def _beginning(self, supports: tuple[Support, ...], start: Fit | None) -> Fit:
        """Return ξ = 0, ê = 0, or what an earlier fit knows."""
        if start is not None and start.supports == supports:
            return start
        if start is None:
            zeros = tuple(np.zeros(len(support)) for support in supports)
            return Fit(supports, zeros, np.inf, [np.zeros_like(piece.x) for piece in self.pieces])
        coefficients = []
        for support, known, values in zip(supports, start.supports, start.coefficients, strict=True):
            lookup = dict(zip(known, values.tolist(), strict=True))
            coefficients.append(np.array([lookup.get(j, 0.0) for j in support]))
        return Fit(supports, tuple(coefficients), np.inf, start.errors)

    def design(self, fit: Fit) -> tuple[Array, Array]:
        """Return A and z on the supports of a fit, all equations side by side."""
        rows = [block.rows(fit.supports) for block in self._blocks(fit)]
        return np.vstack([A for A, _ in rows]), np.concatenate([z for _, z in rows])

    def system(self, fit: Fit, which: int) -> tuple[Array, Array]:
        """Return A of all candidate terms of one equation and z, the terms of the other equations projected out."""
        return _system(self._blocks(fit), fit.supports, which)

    def systems(self, fit: Fit) -> list[tuple[Array, Array]]:
        """Return the systems of all equations at one fit."""
        blocks = self._blocks(fit)
        return [_system(blocks, fit.supports, which) for which in range(len(self.states))]

    def _pass(self, fit: Fit) -> Fit | None:
        """Run one pass; None where the linearisation has broken down."""
        blocks = self._blocks(fit)
        rows = [block.rows(fit.supports) for block in blocks]
        A, z = np.vstack([part for part, _ in rows]), np.concatenate([part for _, part in rows])
        if not (np.all(np.isfinite(A)) and np.all(np.isfinite(z))):
            return None
        return _least_squares(fit.supports, blocks, A, z)

    def _blocks(self, fit: Fit) -> list[_Block]:
        return [_Block(self, piece, fit, errors) for piece, errors in zip(self.pieces, fit.errors, strict=True)]


def _system(blocks: Sequence[_Block], supports: Sequence[Support], which: int) -> tuple[Array, Array]:
    others = tuple(() if i == which else support for i, support in enumerate(supports))
    known = [block.rows(others) for block in blocks]
    A, z = np.vstack([block.candidates(which) for block in blocks]), np.concatenate([z for _, z in known])
    basis, _ = np.linalg.qr(np.vstack([rows for rows, _ in known]))
    return A - basis @ (basis.T @ A), z - basis @ (basis.T @ z)


def _least_squares(supports: tuple[Support, ...], blocks: Sequence[_Block], A: Array, z: Array) -> Fit:
    """Return ξ on the supports by least squares, and the ê that follow."""
    solution = np.linalg.lstsq(A, z, rcond=None)[0] if A.shape[1] else np.empty(0)
    residual = z - A @ solution
    parts = np.split(residual, np.cumsum([block.n_rows for block in blocks])[:-1])
    errors = [block.state_errors(part) for block, part in zip(blocks, parts, strict=True)]
    coefficients = np.split(solution, np.cumsum([len(support) for support in supports])[:-1])
    floor = max(sum(block.floor for block in blocks), ROUNDING * float(z @ z))
    return Fit(supports, tuple(coefficients), float(residual @ residual), errors, floor)


class FirstPass:
    """The pass that every fit from ξ = 0, ê = 0 begins with: J = 0, so C and A of all terms are the same for all.

    Parameters
    ----------
    equations : Equations
        What is fitted.
    """

    def __init__(self, equations: Equations) -> None:
        nothing: tuple[Support, ...] = ((),) * len(equations.states)
        self.blocks = equations._blocks(equations._beginning(nothing, None))
        self.z = np.concatenate([block.rows(nothing)[1] for block in self.blocks])
        self.candidates = [
            np.vstack([block.candidates(which) for block in self.blocks]) for which in range(len(equations.states))
        ]

    def fit(self, supports: tuple[Support, ...]) -> Fit:
        """Return the fit after this pass."""
        chosen = [columns[:, support] for columns, support in zip(self.candidates, supports, strict=True)]
        return _least_squares(supports, self.blocks, np.hstack(chosen), self.z)


class _Block:
    """One piece, whitened at a fit."""

    def __init__(self, equations: Equations, piece: Piece, fit: Fit, errors: Array) -> None:
        self.equations, self.piece, self.errors = equations, piece, errors
        states = piece.x - errors
        self.values = np.hstack([states, piece.inputs]) if piece.inputs.shape[1] else states
        self.slopes = [
            self._slopes(support, coefficients)
            for support, coefficients in zip(fit.supports, fit.coefficients, strict=True)
        ]
        self.factor = linalg.cholesky(self._covariance(), lower=True, overwrite_a=True, check_finite=False)

    @property
    def n_rows(self) -> int:
        """Number of rows of all equations of the piece."""
        return len(self.factor)

    def _slopes(self, support: Support, coefficients: Array) -> Array:
        """Return J_il for all l, shape (m, n)."""
        equations = self.equations
        if not np.any(coefficients):
            return np.zeros((len(self.values), equations.n_states))
        xi = np.zeros(equations.n_terms)
        xi[list(support)] = coefficients
        return equations.library.directional(self.values, xi)[:, : equations.n_states]

    def _covariance(self) -> Array:
        piece, states, variance = self.piece, self.equations.states, self.equations.noise**2
        N = piece.n_rows
        C = np.empty((len(states) * N, len(states) * N))
        for a, i in enumerate(states):
            for b, j in enumerate(states[: a + 1]):
                shared = (self.slopes[a] * self.slopes[b]) @ variance
                if a == b:
                    half = (piece.V * (0.5 * shared) - piece.D * (variance[i] * self.slopes[a][:, i])) @ piece.V.T
                    block = variance[i] * piece.gram_of_D + half + half.T
                else:
                    block = (piece.V * shared - piece.D * (variance[i] * self.slopes[b][:, i])) @ piece.V.T
                    block -= (piece.V * (variance[j] * self.slopes[a][:, j])) @ piece.D.T
                C[a * N : (a + 1) * N, b * N : (b + 1) * N] = block
        own = np.zeros(self.equations.n_states) if piece.truncation is None else piece.truncation
        C.flat[:: C.shape[0] + 1] += np.repeat(own[states], N) + JITTER * np.trace(C) / C.shape[0]
        self.floor = FLOOR_MARGIN * float(N * own[states].sum() / np.trace(C)) * C.shape[0]
        return C

    def _solved(self, rows: Array) -> Array:
        solution: Array = linalg.solve_triangular(self.factor, rows, lower=True, overwrite_b=True, check_finite=False)
        return solution

    def rows(self, supports: Sequence[Support]) -> tuple[Array, Array]:
        """Return A on the supports, equations side by side, and z."""
        piece, N, q = self.piece, self.piece.n_rows, len(supports)
        stacked = np.zeros((q * N, sum(map(len, supports)) + 1), order="F")
        start = 0
        for a, (support, state) in enumerate(zip(supports, self.equations.states, strict=True)):
            part = slice(a * N, (a + 1) * N)
            correction = np.einsum("il,il->i", self.slopes[a], self.errors)
            stacked[part, -1] = piece.D @ piece.x[:, state] - piece.V @ correction
            if support:
                columns = self.equations.library.evaluate(self.values, support)
                stacked[part, start : start + len(support)] = piece.V @ columns
            start += len(support)
        solved = self._solved(stacked)
        return solved[:, :-1], solved[:, -1]

    def candidates(self, which: int) -> Array:
        """Return A of all candidate terms of one equation; its rows before that equation's are zero."""
        N, q = self.piece.n_rows, len(self.equations.states)
        out = np.zeros((q * N, self.equations.n_terms), order="F")
        weighted = self.piece.V @ self.equations.library.evaluate(self.values)
        tail = np.zeros(((q - which) * N, self.equations.n_terms), order="F")
        tail[:N] = weighted
        below = self.factor[which * N :, which * N :]
        out[which * N :] = linalg.solve_triangular(below, tail, lower=True, overwrite_b=True, check_finite=False)
        return out

    def state_errors(self, residual: Array) -> Array:
        """Return ê_l = s_l² Σ_i L_ilᵀ(R⁻ᵀ(z − Aξ))_i of all states."""
        pulled = linalg.solve_triangular(self.factor, residual, lower=True, trans="T", check_finite=False)
        estimate = np.zeros_like(self.errors)
        for slopes, state, part in zip(
            self.slopes, self.equations.states, pulled.reshape(-1, self.piece.n_rows), strict=True
        ):
            estimate -= slopes * (part @ self.piece.V)[:, None]
            estimate[:, state] += part @ self.piece.D
        return estimate * self.equations.noise**2


class InContext:
    """One equation among others whose supports are held: what the tournament searches.

    Parameters
    ----------
    equations : Equations
        All of them.
    which : int
        The one searched.
    supports : sequence of tuples
        Supports of all; that of the one searched is replaced.
    start : Fit, optional
        Where fits begin.
    system_at_start : tuple of A and z, optional
        The system at that fit, where it is known.
    """

    def __init__(
        self,
        equations: Equations,
        which: int,
        supports: Sequence[Support],
        start: Fit | None = None,
        system_at_start: tuple[Array, Array] | None = None,
    ) -> None:
        self.equations, self.which, self.supports, self.start = equations, which, list(supports), start
        self._system_at_start = system_at_start
        self.n_terms, self.n_rows = equations.n_terms, equations.n_rows

    def beginning(self) -> Fit | FirstPass:
        """Return what the fits of one search start from."""
        return FirstPass(self.equations) if self.start is None else self.start

    def fitted(self, support: Support, start: Fit | FirstPass | None = None, passes: int | None = None) -> Fit:
        """Return the fit with this support."""
        supports = [*self.supports[: self.which], support, *self.supports[self.which + 1 :]]
        return self.equations.fitted(supports, self.start if start is None else start, passes)

    def system(self, fit: Fit) -> tuple[Array, Array]:
        """Return A and z of all candidate terms."""
        if fit is self.start and self._system_at_start is not None:
            return self._system_at_start
        return self.equations.system(fit, self.which)
