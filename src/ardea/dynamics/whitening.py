"""Rows of equations D x_i = VΘ(x)ξ_i with noise in every state, whitened jointly at given supports.

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

from ardea.core.subsets import ROUNDING, Support
from ardea.dynamics.libraries import Library
from ardea.dynamics.rows import Stretch, noise_levels, spread
from ardea.dynamics.search import Propose, Search, SearchResult, Tournament, search_alone
from ardea.dynamics.series import Series

Array = NDArray[np.float64]

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
# Equations whose noise, in units of s, exceeds that of the median one so many times lack a term: they would spoil the
# others, and stay alone. Measured: 1.5 and 6 lead to the same 54 supports.
MISFIT = 3.0
# Largest joint covariance (rows of all equations of a stretch). Measured: its Cholesky factor takes half a second.
LARGEST_JOINT = 2500
# Above this share of the noise of the rows, truncation error makes a joint fit overconfident (a convention). Measured:
# with four times more and four times less as many of the 54 supports are exact.
LARGEST_TRUNCATION = 0.02
# Rounds of revisions per equation, a bound on work. Measured: 1 and 6 lead to the same 54 supports.
LARGEST_REVISIONS = 3
# Twelve independent rows carry the three terms that a quarter of them allows (`core.problem.LARGEST_SHARE`).
FEWEST_EQUATION_ROWS = 12


@dataclass(frozen=True, eq=False)
class JointFit:
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
        ê of every stretch, in the units of the states.
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


class JointRows:
    """The rows of the equations of some of the states over all stretches.

    Parameters
    ----------
    stretches : sequence of Stretch
        Data and their linear rows.
    library : Library
        Candidate terms of states and inputs.
    states : sequence of int
        Which equations.
    noise : ndarray of shape (n,)
        s_l.
    """

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
    floor = max(sum(one.floor for one in whitened), ROUNDING * float(z @ z))
    return JointFit(supports, tuple(coefficients), float(residual @ residual), errors, floor)


class FirstPass:
    """The pass that every fit from ξ = 0, ê = 0 begins with: J = 0, so C and A of all terms are the same for all.

    Parameters
    ----------
    rows : JointRows
        What is fitted.
    """

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

    def _covariance(self) -> Array:
        stretch, states, variance = self.stretch, self.joint.states, self.joint.noise**2
        N = stretch.n_rows
        C = np.empty((len(states) * N, len(states) * N))
        for a, i in enumerate(states):
            for b, j in enumerate(states[: a + 1]):
                shared = (self.slopes[a] * self.slopes[b]) @ variance
                if a == b:
                    half = (stretch.V * (0.5 * shared) - stretch.D * (variance[i] * self.slopes[a][:, i])) @ stretch.V.T
                    block = variance[i] * stretch.gram_of_D + half + half.T
                else:
                    block = (stretch.V * shared - stretch.D * (variance[i] * self.slopes[b][:, i])) @ stretch.V.T
                    block -= (stretch.V * (variance[j] * self.slopes[a][:, j])) @ stretch.D.T
                C[a * N : (a + 1) * N, b * N : (b + 1) * N] = block
        own = np.zeros(self.joint.n_states) if stretch.truncation is None else stretch.truncation
        C.flat[:: C.shape[0] + 1] += np.repeat(own[states], N) + JITTER * np.trace(C) / C.shape[0]
        self.floor = FLOOR_MARGIN * float(N * own[states].sum() / np.trace(C)) * C.shape[0]
        return C

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
                columns = self.joint.library.evaluate(self.values, support)
                stacked[part, start : start + len(support)] = stretch.V @ columns
            start += len(support)
        solved = self._solved(stacked)
        return solved[:, :-1], solved[:, -1]

    def candidates(self, which: int) -> Array:
        """Return A of all candidate terms of one equation; its rows before that equation's are zero."""
        N, q = self.stretch.n_rows, len(self.joint.states)
        out = np.zeros((q * N, self.joint.n_terms), order="F")
        weighted = self.stretch.V @ self.joint.library.evaluate(self.values)
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
        return estimate * self.joint.noise**2


class EquationRows:
    """The rows of one equation among others whose supports are held: what the search sees.

    Parameters
    ----------
    joint : JointRows
        All of them.
    which : int
        The one searched.
    supports : sequence of tuples
        Supports of all; that of the one searched is replaced.
    start : JointFit, optional
        Where fits begin.
    system_at_start : tuple of A and z, optional
        The system at that fit, where it is known.
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
    """The rows of an equation with derivatives given: y = Θ(x)ξ with white noise; nothing to whiten.

    Parameters
    ----------
    theta : ndarray of shape (rows, d)
        Θ(x).
    y : ndarray of shape (rows,)
        Derivative of the state.
    """

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


def search_given(series: Sequence[Series], library: Library, search: Search) -> list[SearchResult]:
    """Find every equation alone where derivatives were given."""
    values = np.vstack([one.values for one in series])
    slopes = np.vstack([one.x_dot for one in series if one.x_dot is not None])
    sound = np.all(np.isfinite(values), axis=1) & np.all(np.isfinite(slopes), axis=1)
    theta = library.evaluate(values[sound])
    return search.each(search_alone, [GivenRows(theta, slope) for slope in slopes[sound].T])


def search_states(
    stretches: Sequence[Stretch], library: Library, search: Search, discrete_time: bool = False
) -> list[SearchResult]:
    """Find the equations of all states alone, then together those that fit, where the covariance is affordable."""
    n_rows = sum(stretch.n_rows for stretch in stretches)
    if n_rows < FEWEST_EQUATION_ROWS:
        raise ValueError(
            f"The data give {n_rows} independent rows, too few to find an equation (at least {FEWEST_EQUATION_ROWS}): "
            "take more samples or longer series."
        )
    parts = [stretch.data for stretch in stretches]
    deviation = spread(parts)
    # Differences say nothing of the noise of a map.
    noise = np.where(deviation > 0, deviation, 1.0) if discrete_time else noise_levels(parts)
    results = _alone_then_together(stretches, library, noise, search)
    excitation = np.full(len(noise), np.inf) if discrete_time else deviation / noise
    return [
        replace(result, noise_unit=float(unit), excitation=float(ratio))
        for result, unit, ratio in zip(results, noise, excitation, strict=True)
    ]


def _alone_then_together(
    stretches: Sequence[Stretch], library: Library, noise: Array, search: Search
) -> list[SearchResult]:
    every = range(len(noise))
    results = search.each(search_alone, [EquationRows(JointRows(stretches, library, [one], noise)) for one in every])
    level = np.sqrt([result.fit.rss / result.rows.n_rows for result in results])
    states = [state for state in every if level[state] <= MISFIT * np.median(level)]
    affordable = len(states) * max(stretch.n_rows for stretch in stretches) <= LARGEST_JOINT
    if len(states) < 2 or not affordable or _truncated(stretches, noise):
        return results
    choices = [(results[state].support, *results[state].runners_up) for state in states]
    together = _revised(JointRows(stretches, library, states, noise), choices, search.propose)
    n_parameters = sum(len(rows.support) for rows in together)
    for state, rows in zip(states, together, strict=True):
        results[state] = SearchResult(rows, rows.support, rows.start, n_parameters)
    return results


def _revised(joint: JointRows, choices: Sequence[Sequence[Support]], propose: Propose) -> list[EquationRows]:
    """Change one support at a time, always the one whose change lowers the joint score most, until none does.

    Revising them in a fixed order would let a right equation make up for the fault of a wrong one. For every equation
    the choices are the support to begin with, then others worth a look.
    """
    current = joint.each(joint.fitted([first for first, *_ in choices]))
    for _ in range(LARGEST_REVISIONS * len(current)):
        best, changed, gain = None, current[0], 0.0
        for rows, others in zip(current, choices, strict=True):
            tournament = Tournament(rows, propose)
            winner = tournament.around([rows.support, *others])[0]
            lowered = tournament.looked_at(rows.support).score - winner.score
            if lowered > gain:
                best, changed, gain = winner, rows, lowered
        if best is None:
            break
        current = joint.each(changed.fitted(best.support, best.fit))
    return current


def _truncated(stretches: Sequence[Stretch], noise: Array) -> bool:
    """Whether truncation error, which the equations share in ways unknown, is of the order of the noise of the rows."""
    for stretch in stretches:
        if stretch.truncation is not None:
            rows = noise**2 * np.trace(stretch.gram_of_D) / stretch.n_rows
            if np.any(stretch.truncation > LARGEST_TRUNCATION * rows):
                return True
    return False
