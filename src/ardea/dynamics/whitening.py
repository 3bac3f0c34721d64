"""Rows of equations D x_i = VΘ(x)ξ_i with noise in every state, whitened jointly at given supports.

Observed states are x + e, e_l ~ N(0, s_l²). With an estimate ê and x̂ = x_obs − ê, to first order in e − ê

    D x_obs,i − V Σ_l J_il ê_l = VΘ(x̂)ξ_i + Σ_l L_il e_l,      J_il = ∂(Θξ_i)/∂x_l at x̂,  L_il = δ_il D − V diag(J_il).

The same e stands in all equations, so the rows of equations i and i′ have the covariance

    C_ii′ = Σ_l s_l² L_il L_i′lᵀ
          = δ_ii′ s_i² DDᵀ − D diag(s_i²J_i′i)Vᵀ − V diag(s_i′²J_ii′)Dᵀ + V diag(Σ_l s_l²J_il J_i′l)Vᵀ.

To second order, x̂ = x + δ, and δ = e − ê, of variance P, is uncorrelated with ê. J is taken at x̂ instead of x, so that
−Jδ + ½δᵀHδ, H the second derivatives, has the mean −½Σ_l P_l H_ll: Θ(x̂) reads Θ(x̂) − ½Σ_l P_l ∂²Θ/∂x_l² everywhere,
such as x² − P for x² (Hermite's forms). The trace of s²LᵀC⁻¹L is N: ê removes the share N/m of the noise of a state.

One pass: J at (x̂, ξ) → C = RRᵀ → A = R⁻¹VΘ(x̂), z → ξ by least squares on the supports →
ê_l = s_l² Σ_i L_ilᵀ(R⁻ᵀ(z − Aξ))_i. Passes are repeated until ξ settles. RSS/N is then the noise of the states in units
of s, comparable between supports although each has its own R. Several equations together know the states far better
than one alone: on Lorenz 63 with 5 % noise the t-statistic of the weakest term rises from 4 to 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ardea.core.problem import Array
from ardea.core.subsets import ROUNDING, Support
from ardea.dynamics.libraries import Library
from ardea.dynamics.rows import Stretch

# With far too much noise the passes never settle: a bound on work. Measured (see `search`): 6 and 24 lead to the same
# 54 supports.
MAX_PASSES = 12
# Settled: ξ moves by less than this share, and N ln RSS by less than what would change a comparison of supports.
# Measured: ten times more and ten times less lead to the same 54 supports.
SETTLED, SETTLED_SCORE = 1e-3, 0.5
# Added to the diagonal of C, relative to its mean, against rounding. Measured: 1e-7 and 1e-11 lead to the same 54
# supports.
JITTER = 1e-9
# A convention: RSS below so many times what truncation error is estimated to leave is no evidence for a term. Measured:
# 1 and 16 lead to the same 54 supports.
FLOOR_MARGIN = 4.0
# A convention: second derivatives are differences over this many standard deviations of what ê leaves of the noise.
DIFFERENCE = 0.1


@dataclass(frozen=True, eq=False)
class JointFit:
    """Equations fitted at their supports, with ξ on each of them."""

    supports: tuple[Support, ...]
    coefficients: tuple[Array, ...]
    rss: float  # ‖z − Aξ‖²
    errors: list[Array]  # ê of every stretch, in the units of the states
    floor: float = 0.0  # RSS that truncation error alone leaves
    settled: bool = False  # whether another pass would hardly change it


class JointRows:
    """The rows of the equations of some of the states over all stretches; `noise` holds s of every state."""

    def __init__(self, stretches: Sequence[Stretch], library: Library, states: Sequence[int], noise: Array) -> None:
        self.stretches, self.library, self.states, self.noise = list(stretches), library, list(states), noise
        self.n_states = self.stretches[0].data.x.shape[1]
        self.n_terms = library.n_terms(self.n_states + self.stretches[0].data.inputs.shape[1])
        self.n_rows = len(self.states) * sum(stretch.n_rows for stretch in self.stretches)

    def fitted(
        self, supports: Sequence[Support], start: JointFit | FirstPass | None = None, passes: int | None = None
    ) -> JointFit:
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

    def each(self, fit: JointFit) -> list[EquationRows]:
        """Return the rows of every equation among the others, with its system at the fit."""
        whitened = self._whitened(fit)
        return [
            EquationRows(self, which, fit.supports, fit, _system(whitened, fit.supports, which))
            for which in range(len(self.states))
        ]

    def design(self, fit: JointFit) -> tuple[Array, Array]:
        """Return A and z on the supports of a fit, all equations side by side."""
        return _stacked([one.rows(fit.supports) for one in self._whitened(fit)])

    def system(self, fit: JointFit, which: int) -> tuple[Array, Array]:
        """Return A of all candidate terms of one equation and z, the terms of the other equations projected out."""
        return _system(self._whitened(fit), fit.supports, which)

    def _settled(self, before: JointFit, after: JointFit) -> bool:
        """Whether ξ hardly moves any more, and N ln RSS, by which supports are compared, neither."""
        old, new = np.concatenate(before.coefficients), np.concatenate(after.coefficients)
        if np.linalg.norm(new - old) > SETTLED * np.linalg.norm(new) or not np.isfinite(before.rss):
            return False
        tiny = np.finfo(float).tiny
        return self.n_rows * abs(np.log(max(after.rss, tiny) / max(before.rss, tiny))) < SETTLED_SCORE

    def _beginning(self, supports: tuple[Support, ...], start: JointFit | None) -> JointFit:
        """Return ξ = 0, ê = 0, or what an earlier fit knows."""
        if start is not None and start.supports == supports:
            return start
        if start is None:
            zeros = tuple(np.zeros(len(support)) for support in supports)
            return JointFit(supports, zeros, np.inf, [np.zeros_like(one.data.x) for one in self.stretches])
        coefficients = []
        for support, known, values in zip(supports, start.supports, start.coefficients, strict=True):
            lookup = dict(zip(known, values.tolist(), strict=True))
            coefficients.append(np.array([lookup.get(j, 0.0) for j in support]))
        return JointFit(supports, tuple(coefficients), np.inf, start.errors)

    def _pass(self, fit: JointFit) -> JointFit | None:
        """Run one pass; None where the linearisation has broken down."""
        whitened = self._whitened(fit)
        A, z = _stacked([one.rows(fit.supports) for one in whitened])
        if not (np.all(np.isfinite(A)) and np.all(np.isfinite(z))):
            return None
        return _least_squares(fit.supports, whitened, A, z)

    def _whitened(self, fit: JointFit) -> list[_WhitenedStretch]:
        pairs = zip(self.stretches, fit.errors, strict=True)
        return [_WhitenedStretch(self, stretch, fit, errors) for stretch, errors in pairs]


def _stacked(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    return np.vstack([A for A, _ in parts]), np.concatenate([z for _, z in parts])


def _system(whitened: Sequence[_WhitenedStretch], supports: Sequence[Support], which: int) -> tuple[Array, Array]:
    others = tuple(() if i == which else support for i, support in enumerate(supports))
    known, z = _stacked([one.rows(others) for one in whitened])
    A = np.vstack([one.candidates(which) for one in whitened])
    basis, _ = np.linalg.qr(known)
    return A - basis @ (basis.T @ A), z - basis @ (basis.T @ z)


def _least_squares(supports: tuple[Support, ...], whitened: Sequence[_WhitenedStretch], A: Array, z: Array) -> JointFit:
    """Return ξ on the supports by least squares, and the ê that follow."""
    solution = np.linalg.lstsq(A, z, rcond=None)[0] if A.shape[1] else np.empty(0)
    residual = z - A @ solution
    parts = np.split(residual, np.cumsum([one.n_rows for one in whitened])[:-1])
    errors = [one.state_errors(part) for one, part in zip(whitened, parts, strict=True)]
    coefficients = np.split(solution, np.cumsum([len(support) for support in supports])[:-1])
    floor = sum(one.floor for one in whitened)
    return JointFit(supports, tuple(coefficients), float(residual @ residual), errors, floor)


class FirstPass:
    """The pass that every fit from ξ = 0, ê = 0 begins with: J = 0, so C and A of all terms are the same for all."""

    def __init__(self, rows: JointRows) -> None:
        nothing: tuple[Support, ...] = ((),) * len(rows.states)
        self.whitened = rows._whitened(rows._beginning(nothing, None))
        self.z = np.concatenate([one.rows(nothing)[1] for one in self.whitened])
        self.candidates = [
            np.vstack([one.candidates(which) for one in self.whitened]) for which in range(len(rows.states))
        ]

    def fit(self, supports: tuple[Support, ...]) -> JointFit:
        """Return the fit after this pass."""
        chosen = [columns[:, support] for columns, support in zip(self.candidates, supports, strict=True)]
        return _least_squares(supports, self.whitened, np.hstack(chosen), self.z)


class _WhitenedStretch:
    """One stretch, whitened at a fit."""

    def __init__(self, joint: JointRows, stretch: Stretch, fit: JointFit, errors: Array) -> None:
        self.joint, self.stretch, self.errors = joint, stretch, errors
        self.values = replace(stretch.data, x=stretch.data.x - errors).values
        # P: s is the noise in units that RSS/N settles, and an upper bound where terms are missing.
        removed = np.isin(np.arange(joint.n_states), joint.states) * stretch.n_rows / len(errors)
        scale = min(fit.rss / joint.n_rows, 1.0) if np.isfinite(fit.rss) else 0.0
        self.left = scale * joint.noise**2 * (1 - removed)
        self.variance = np.broadcast_to(joint.noise**2, errors.shape)
        if stretch.data.unsure is not None:
            self.variance = self.variance + stretch.data.unsure
        self.slopes = [
            self._slopes(support, coefficients)
            for support, coefficients in zip(fit.supports, fit.coefficients, strict=True)
        ]
        self.factor = linalg.cholesky(self._covariance(), lower=True, overwrite_a=True, check_finite=False)

    @property
    def n_rows(self) -> int:
        """Number of rows of all equations."""
        return len(self.factor)

    def _slopes(self, support: Support, coefficients: Array) -> Array:
        """Return J_il for all l, shape (m, n)."""
        joint = self.joint
        if not np.any(coefficients):
            return np.zeros((len(self.values), joint.n_states))
        xi = np.zeros(joint.n_terms)
        xi[list(support)] = coefficients
        return joint.library.directional(self.values, xi)[:, : joint.n_states]

    def _terms(self, support: Support | None = None) -> Array:
        """Return Θ(x̂) − ½ Σ_l P_l ∂²Θ/∂x_l², by second differences."""
        evaluate, left = self.joint.library.evaluate, self.left
        theta: Array = evaluate(self.values, support)
        bent = np.zeros_like(theta)
        for state in np.flatnonzero(left):
            shift = np.zeros(self.values.shape[1])
            shift[state] = DIFFERENCE * np.sqrt(left[state])
            bent += evaluate(self.values + shift, support) + evaluate(self.values - shift, support) - 2 * theta
        return theta - bent / (2 * DIFFERENCE**2)

    def _covariance(self) -> Array:
        stretch, states, N = self.stretch, self.joint.states, self.stretch.n_rows
        weighted = [self.variance * slopes for slopes in self.slopes]
        C = np.empty((len(states) * N, len(states) * N))
        for a, i in enumerate(states):
            for b, j in enumerate(states[: a + 1]):
                shared = np.sum(self.slopes[a] * weighted[b], axis=1)
                if a == b:
                    half = (stretch.V * (0.5 * shared) - stretch.D * weighted[a][:, i]) @ stretch.V.T
                    noise = self.joint.noise[i] ** 2 * stretch.gram_of_D + stretch.grams_of_unsure[i]
                    block = noise + half + half.T
                else:
                    block = (stretch.V * shared - stretch.D * weighted[b][:, i]) @ stretch.V.T
                    block -= (stretch.V * weighted[a][:, j]) @ stretch.D.T
                C[a * N : (a + 1) * N, b * N : (b + 1) * N] = block
        own = np.zeros(self.joint.n_states) if stretch.truncation is None else stretch.truncation
        C.flat[:: C.shape[0] + 1] += np.repeat(own[states], N) + JITTER * np.trace(C) / C.shape[0]
        return C

    @property
    def floor(self) -> float:
        """RSS that truncation and rounding alone leave, at J = 0: large coefficients must not make it small."""
        stretch, states = self.stretch, self.joint.states
        N = stretch.n_rows
        own = np.zeros(self.joint.n_states) if stretch.truncation is None else stretch.truncation
        rounding = ROUNDING * np.sum((stretch.D @ stretch.data.x[:, states]) ** 2, axis=0)
        variance = own[states] + self.joint.noise[states] ** 2 * np.trace(stretch.gram_of_D) / N
        return float(np.sum((FLOOR_MARGIN * N * own[states] + rounding) / variance))

    def _solved(self, rows: Array) -> Array:
        solution: Array = linalg.solve_triangular(self.factor, rows, lower=True, overwrite_b=True, check_finite=False)
        return solution

    def rows(self, supports: Sequence[Support]) -> tuple[Array, Array]:
        """Return A on the supports, equations side by side, and z."""
        stretch, N, q = self.stretch, self.stretch.n_rows, len(supports)
        stacked = np.zeros((q * N, sum(map(len, supports)) + 1), order="F")
        start = 0
        for a, (support, state) in enumerate(zip(supports, self.joint.states, strict=True)):
            part = slice(a * N, (a + 1) * N)
            correction = np.einsum("il,il->i", self.slopes[a], self.errors)
            stacked[part, -1] = stretch.D @ stretch.data.x[:, state] - stretch.V @ correction
            if support:
                stacked[part, start : start + len(support)] = stretch.V @ self._terms(support)
            start += len(support)
        solved = self._solved(stacked)
        return solved[:, :-1], solved[:, -1]

    def candidates(self, which: int) -> Array:
        """Return A of all candidate terms of one equation; its rows before that equation's are zero."""
        N, q = self.stretch.n_rows, len(self.joint.states)
        out = np.zeros((q * N, self.joint.n_terms), order="F")
        weighted = self.stretch.V @ self._terms()
        tail = np.zeros(((q - which) * N, self.joint.n_terms), order="F")
        tail[:N] = weighted
        below = self.factor[which * N :, which * N :]
        out[which * N :] = linalg.solve_triangular(below, tail, lower=True, overwrite_b=True, check_finite=False)
        return out

    def state_errors(self, residual: Array) -> Array:
        """Return ê_l = s_l² Σ_i L_ilᵀ(R⁻ᵀ(z − Aξ))_i of all states."""
        pulled = linalg.solve_triangular(self.factor, residual, lower=True, trans="T", check_finite=False)
        estimate = np.zeros_like(self.errors)
        for slopes, state, part in zip(
            self.slopes, self.joint.states, pulled.reshape(-1, self.stretch.n_rows), strict=True
        ):
            estimate -= slopes * (part @ self.stretch.V)[:, None]
            estimate[:, state] += part @ self.stretch.D
        return estimate * self.variance


class EquationRows:
    """The rows of one equation among others whose supports are held: what the search sees.

    Of `supports`, that of the equation searched is replaced. Fits begin at `start`, where the system is known.
    """

    def __init__(
        self,
        joint: JointRows,
        which: int = 0,
        supports: Sequence[Support] = ((),),
        start: JointFit | None = None,
        system_at_start: tuple[Array, Array] | None = None,
    ) -> None:
        self.joint, self.which, self.supports, self.start = joint, which, tuple(supports), start
        self._system_at_start = system_at_start
        self.n_terms, self.n_rows = joint.n_terms, joint.n_rows

    @property
    def support(self) -> Support:
        """The support held for this equation itself."""
        return self.supports[self.which]

    def beginning(self) -> JointFit | FirstPass:
        """Return what the fits of one search start from."""
        return FirstPass(self.joint) if self.start is None else self.start

    def fitted(
        self, support: Support, start: JointFit | FirstPass | None = None, passes: int | None = None
    ) -> JointFit:
        """Return the fit with this support."""
        supports = (*self.supports[: self.which], support, *self.supports[self.which + 1 :])
        return self.joint.fitted(supports, self.start if start is None else start, passes)

    def system(self, fit: JointFit) -> tuple[Array, Array]:
        """Return A and z of all candidate terms."""
        if fit is self.start and self._system_at_start is not None:
            return self._system_at_start
        return self.joint.system(fit, self.which)


class GivenRows:
    """The rows of an equation with derivatives given: y = Θ(x)ξ with white noise; nothing to whiten."""

    def __init__(self, theta: Array, y: Array) -> None:
        self.theta, self.y = theta, y
        self.n_rows, self.n_terms = theta.shape

    def beginning(self) -> None:
        """Return nothing: least squares needs no start."""

    def fitted(self, support: Support, start: object = None, passes: int | None = None) -> JointFit:
        """Return least squares on the support."""
        columns = self.theta[:, list(support)]
        coefficients: Array = np.linalg.lstsq(columns, self.y, rcond=None)[0].astype(float) if support else np.empty(0)
        residual = self.y - columns @ coefficients
        floor = ROUNDING * float(self.y @ self.y)
        return JointFit((support,), (coefficients,), float(residual @ residual), [], floor, settled=True)

    def system(self, fit: object) -> tuple[Array, Array]:
        """Return Θ and y."""
        return self.theta, self.y
