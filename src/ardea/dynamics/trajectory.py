"""The likelihood of a trajectory: states at all nodes and coefficients together.

Samples y = x + e, e ~ N(0, s²) (s a number per state, or in proportion to √|x| or |x|); states follow the equations up
to noise of the process, whose deviation over a usual step is q. Minimised over the states X and the coefficients ξ is

    J = Σ (x − y)²/s² + Σ r²/(q² h/h̄),    r(X, ξ) the steps of `collocation`

by Gauss–Newton: the Hessian H of the states is block tridiagonal, one banded Cholesky factor, and ξ is its border:
S = H_ξξ − H_ξX H⁻¹ H_Xξ is the Fisher information of ξ, b the gradient with the states at their best. q falls from
level to level towards zero (`ladder`), where the equations hold exactly. With the states integrated out (Laplace)

    −2 ln p(y) = J + ln|H| − 2 Σ ln|∂r/∂x_b| + Σ ln s² + Σ ln q² h/h̄

is what supports, and sizes of q, are compared by. Where q stays above zero, s and q are learned from it (MacKay):
s² = Σ(x − y)²/(M − g) with g = ∂ ln|H|/∂ ln s⁻², q² alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ardea.core.lazy import cached_property
from ardea.core.problem import Array, DenseColumns, Index, Problem
from ardea.core.subsets import Support
from ardea.dynamics.chain import Chain, Factor, rooted, triangle
from ardea.dynamics.collocation import Border, Fit, Nodes, Point, RightSide, Steps
from ardea.dynamics.knowledge import Knowledge
from ardea.dynamics.libraries import Library

# The first level of q, as a share of the states' own steps, the factor between levels, and the last, as a share of
# s/N: what N steps then add up to does not matter.
FIRST_LEVEL, LEVEL_FACTOR, LAST_LEVEL, MOST_LEVELS = 0.3, 6.0, 0.1, 7
# The last level in shares of s, at least: beyond, the factor of H loses its digits (κ² = 1e10). Bounds on work.
LEAST_RATIO, MOST_ITERATIONS, MOST_DAMPINGS = 1e-5, 15, 8
# Damping of the states in units of 1/s², of the coefficients in units of their information: the first, and the least
# before none is tried again (measured on 15 flows: down to a fifth fewer steps than from the first to none at once).
FIRST_DAMPING, LEAST_DAMPING, DAMPING_FACTOR = 1e-2, 2e-4, 10.0
# J settles: half of this changes a likelihood ratio by less than a tenth of what is ever decided by. Levels of q that
# others follow only give these a start.
SETTLED, ON_THE_WAY = 0.02, 1.0
# Rounds in which s and q are learned together, and the gain in deviance that is worth another; how much q² may change;
# after so many rounds, others gain less than this (measured on 52 fits of a predator and its prey: 22 at most).
MOST_ROUNDS, LEARNED, LARGEST_CHANGE, FIRST_ROUNDS, LATE_GAIN = 12, 0.2, 16.0, 3, 25.0
# Rounds in which s alone is learned, and the share by which it may still change: H then hardly does.
MOST_NOISE_ROUNDS, SAME_NOISE = 3, 0.02
# MacKay's rule is slow where s is far below q: its change of ln s and ln q is taken up to so many times while that
# gains (measured on a driven linear flow, s = 0.01, q = 0.2: of 2.5 to 4.7 left in twelve rounds, below 0.5 is).
LARGEST_PACE = 8.0
# A convention: noise is at least this share of a state's deviation, about what solvers leave of data without noise.
LEAST_NOISE = 1e-6
# How the noise of samples grows with the state: not at all, as its root (counts have the variance x), as itself.
NOISE_POWERS = {"additive": 0.0, "counts": 0.5, "proportional": 1.0}
# Draws from which the spread of all scores is read: a share 1/√128 of it is its error.
N_DRAWS = 64
# Noise that depends on the state: the least |x|, as a share of the largest |y| where samples have both signs or are
# zero, and else of the smallest (conventions: noise of half a state's size is met in one sample of twenty).
LEAST_OF_LARGEST, LEAST_OF_SMALLEST = 1e-3, 0.5


class Likelihood:
    """Trajectories, and all candidate terms of their equations."""

    def __init__(
        self,
        nodes: Nodes,
        library: Library,
        discrete_time: bool = False,
        fixed: Array | None = None,
        power: Array | float = 0.0,  # of every state, or of all
        told: Array | None = None,
        knowledge: Knowledge | None = None,
    ) -> None:
        self.told, self.power = told, power
        mean = nodes.y.sum(axis=0) / np.maximum(nodes.counts, 1.0)
        spread = np.sqrt(np.sum(np.where(nodes.seen, nodes.y - mean, 0.0) ** 2, axis=0) / np.maximum(nodes.counts, 1.0))
        if fixed is not None:  # rates of change: at most all of the position within a step
            spread = np.where(nodes.counts > 0, spread, fixed.T @ spread / nodes.usual_step)
        self._least_size = least_sizes(nodes, spread)
        self.floor: Array = LEAST_NOISE * np.where(spread > 0, spread, 1.0) / self.usual_size(nodes.y)
        self.nodes, self.library, self.discrete_time, self.fixed = nodes, library, discrete_time, fixed
        self.inside = library.inside(nodes.n_states + nodes.inputs.shape[1])
        self.n, self.n_inputs = nodes.n_states, nodes.inputs.shape[1] + self.inside.n_constants
        self.d = library.n_terms(self.n + self.n_inputs)
        self.degrees = library.degrees(self.n + self.n_inputs)
        self.knowledge = Knowledge.nothing(self.n, self.d) if knowledge is None else knowledge
        self.n_samples = float(nodes.seen.sum())
        self.n_stretches = 1 + int(np.sum(nodes.joined == 0))
        length = np.where(nodes.joined & (not discrete_time), nodes.steps / nodes.usual_step, 1.0)
        self._shares = nodes.joined / length  # h̄/h

    def with_power(self, power: Array | float) -> Likelihood:
        """Return the same with noise proportional to another power of the states."""
        return Likelihood(self.nodes, self.library, self.discrete_time, self.fixed, power, self.told, self.knowledge)

    def steps(self, point: Point) -> Steps:
        """Return the steps at a point."""
        coefficients, constants = self.inside.split(point.coefficients)
        right = RightSide(self.library, coefficients, self.n_inputs, self.fixed)
        return Steps(self.nodes.with_constants(constants), self.library, right, point.states, self.discrete_time)

    def sizes(self, states: Array) -> Array:
        """Return what the noise is a share of, (points, n)."""
        return np.asarray(np.maximum(np.abs(states), self._least_size) ** self.power)

    def usual_size(self, states: Array) -> Array:
        """Return what one unit of noise is worth in the units of every state, (n,)."""
        return np.sqrt(np.mean(self.sizes(states) ** 2, axis=0))

    def noiseless(self, point: Point) -> bool:
        """Return whether the samples have no noise to speak of."""
        measured = self.nodes.counts > 0
        return bool(np.all(point.noise[measured] <= 2 * self.floor[measured]))

    def misfit_of(self, states: Array) -> Array:
        """Return −2 ln p of every state's samples where the states are given, at the likeliest s, less their number."""
        seen, sizes, counts = self.nodes.seen, self.sizes(states), np.maximum(self.nodes.counts, 1.0)
        errors = np.where(seen, (states - self.nodes.y) / sizes, 0.0)
        s = np.maximum(np.sqrt(np.sum(errors**2, axis=0) / counts), self.floor)
        return np.asarray(2 * np.sum(np.log(np.where(seen, s * sizes, 1.0)), axis=0))

    def linearised(self, point: Point, support: Support) -> Linearised:
        """Return the likelihood linearised at a point, with the weights of its own states."""
        return Linearised(self, point, self.weights(point), support)

    def weights(self, point: Point, everywhere: bool = False) -> Array:
        """Return 1/s² of every sample, zero where there is none; or of every state with samples, at all nodes."""
        there = self.nodes.counts > 0 if everywhere else self.nodes.seen
        return np.asarray(np.where(there, 1 / (point.noise * self.sizes(point.states)) ** 2, 0.0))

    def precisions(self, process: Array) -> Array:
        """Return 1/(q² h/h̄) of every step, zero where there is none."""
        return np.asarray(self._shares[:, None] / process**2)

    def growth(self, states: Array) -> Array:
        """Return by how much the noise of the samples at the ends of every step is above the usual, (steps, n)."""
        sizes = self.sizes(states)
        return np.asarray(np.sqrt(sizes[1:] * sizes[:-1]) / self.usual_size(states))

    def ladder(self, states: Array, noise: Array, least: Array | float = 0.0) -> list[Array]:
        """Return the levels of q, from a share of the states' own steps to next to nothing, or to what is told.

        Where noise grows with the states, so does q: one number would be nothing to large states, and free small ones.
        """
        growth = self.growth(states) if np.any(self.power) else np.ones((1, self.n))
        moves = np.diff(states, axis=0)
        if self.discrete_time:
            moves = states[1:] - states.mean(axis=0)
        moves = (moves / growth)[self.nodes.joined]
        size = noise * self.usual_size(states)
        if self.fixed is not None:  # rates without samples: what N steps of them add up to in the position
            size = np.where(
                self.nodes.counts > 0, size, self.fixed.T @ size / (self.nodes.usual_step * len(states) ** 0.5)
            )
        # Where there is no noise to speak of, nothing is lost by a q of its order, and digits are gained.
        ratio = np.where(noise <= 2 * self.floor, LAST_LEVEL, max(LAST_LEVEL / len(states), LEAST_RATIO))
        last = np.maximum(size * ratio, least)
        first = np.maximum(FIRST_LEVEL * np.sqrt(np.mean(moves**2, axis=0)), LEVEL_FACTOR * last)
        number = min(int(np.ceil(np.log(np.max(first / last)) / np.log(LEVEL_FACTOR))), MOST_LEVELS)
        return [first * (last / first) ** (k / number) * growth for k in range(number + 1)]

    def states_of(self, equation: int) -> list[int]:
        """Return the states of an equation: that of its left side and, of rates of change, the position."""
        positions = [] if self.fixed is None else np.flatnonzero(self.fixed[:, equation]).tolist()
        return [*positions, int(equation)]

    def placed(self, support: Sequence[int]) -> tuple[Index, Index]:
        """Return equations and terms of some candidates."""
        return np.divmod(np.asarray(support, dtype=np.intp), self.d)

    def on_support(self, coefficients: Array, support: Sequence[int]) -> Array:
        """Return the coefficients with zeros off the support."""
        out, chosen = np.zeros(self.n * self.d), list(support)
        out[chosen] = coefficients.ravel()[chosen]
        return out.reshape(self.n, self.d)

    def started(self, start: Point, support: Support) -> Point:
        """Return a point with the coefficients of a support alone, as what is known asks."""
        own = self.on_support(start.coefficients, support)
        return replace(start, coefficients=self.knowledge.obeying(own, support))

    @np.errstate(all="ignore")  # steps may lead far from the data: what is not finite there is none
    def descended(self, point: Point, support: Support, settled: float = SETTLED) -> tuple[Point, Linearised]:
        """Return the least J from a point at its s and q, and the linearisation there.

        A whole step after which J is as expected is the last: with off of order |Δ|³, |Δ|⁴ is left.
        """
        current, damping = self.linearised(point, support), 0.0
        for _ in range(MOST_ITERATIONS):
            following, damping = current.lowered(damping, settled)
            if following is None:
                break
            drop, off = current.objective - following.objective, abs(following.objective - following.expected)
            current = following if drop > 0 else current
            if min(drop, off) < settled and damping == 0.0:
                break
            damping = damping / DAMPING_FACTOR if damping > LEAST_DAMPING else 0.0
        return current.point, current

    def fitted(self, support: Support, start: Point, levels: Sequence[Array], limit: float = np.inf) -> Fit:
        """Return the fit of a support, q falling from level to level, and the s that it leaves.

        J grows as q falls, and the tilt goes. Where J's deviance is above the limit, the rest is not worth the time.
        """
        point = replace(self.started(start, support), tilt=None)
        for process in levels:
            settled = SETTLED if process is levels[-1] else ON_THE_WAY
            point, linear = self.descended(replace(point, process=process), support, settled)
            if self.roughly(linear.weights, linear.objective) > limit:
                return Fit(support, point, np.inf)
        for _ in range(MOST_NOISE_ROUNDS):
            noise = self._learned_noise(linear)
            if np.all(np.abs(np.log(noise / point.noise)) < SAME_NOISE):
                break
            point, linear = self.descended(replace(point, noise=noise), support)
        return Fit(support, replace(point, noise=noise), linear.deviance(noise))

    def roughly(self, weights: Array, objective: float = 0.0) -> float:
        """Return the deviance without its determinants, at the common scale of all s that is the likeliest for J."""
        excess = np.log(max(objective / self.n_samples, 1.0))
        return float(self.n_samples * excess - np.sum(np.log(weights[self.nodes.seen])))

    def held(self, support: Support, start: Point) -> Fit:
        """Return the fit of a support at the s and q of the start."""
        point, linear = self._untilted(self.started(start, support), support)
        return Fit(support, point, linear.deviance(point.noise))

    @np.errstate(all="ignore")
    def _untilted(self, point: Point, support: Support) -> tuple[Point, Linearised]:
        """Return the least −2 ln p(y) from a point at its s and q; the tilt hardly depends on the coefficients."""
        point, linear = self.descended(point, support)
        return self.descended(replace(point, tilt=linear.tilted()), support)

    def learned(self, support: Support, start: Point, limit: float = np.inf, rounds: int = MOST_ROUNDS) -> Fit:
        """Return the fit of a support with s and q learned together, as far as its deviance may come below a limit."""
        point = self.started(start, support)
        best, pace = Fit(support, point, np.inf), 1.0
        for number in range(rounds):
            if number == FIRST_ROUNDS and best.deviance > limit + LATE_GAIN:
                break
            point, linear = self._untilted(point, support)
            fit = Fit(support, point, linear.deviance(point.noise))
            gain, best = best.deviance - fit.deviance, min(best, fit, key=lambda one: one.deviance)
            if gain > LEARNED:
                noise, process = self._relearned(linear)
                pace = min(2 * pace, LARGEST_PACE) if np.isfinite(gain) else 1.0
            elif pace > 1:
                pace = 1.0
            else:
                break
            most = np.log(LARGEST_CHANGE) / 2
            point = replace(
                best.point,
                noise=np.maximum(best.point.noise * np.exp(np.clip(pace * noise, -most, most)), self.floor),
                process=best.point.process * np.exp(np.clip(pace * process, -most, most)),
            )
        return best

    def _relearned(self, linear: Linearised) -> tuple[Array, Array]:
        """Return how MacKay's rule changes ln s and ln q."""
        count = np.maximum(self.nodes.joined.sum() - np.nan_to_num(linear.chain.used()[1]), 1.0)
        left = np.sum(linear.precisions * linear.steps.residual**2, axis=0)
        process = np.log(np.maximum(left / count, 1 / LARGEST_CHANGE)) / 2
        return np.log(self._learned_noise(linear) / linear.point.noise), process

    def _learned_noise(self, linear: Linearised) -> Array:
        """Return s² = Σ(x − y)²/(M − g), g the number of parameters that each state's samples pay for."""
        point = linear.point
        if self.told is not None:
            return self.told
        errors = linear.errors / self.sizes(point.states)
        used = np.nan_to_num(linear.chain.used()[0], nan=float(self.n_stretches))
        used += self.knowledge.n_free(linear.support) / self.n
        noise = np.sqrt(np.sum(errors**2, axis=0) / np.maximum(self.nodes.counts - used, 1.0))
        return np.asarray(np.where(self.nodes.counts > 0, np.maximum(noise, self.floor), point.noise))


def least_sizes(nodes: Nodes, spread: Array) -> Array:
    """Return the least |x| of every state that its noise grows with; of one without samples by how much it varies."""
    ends = np.where(nodes.counts > 0, np.abs(nodes.ends), spread)
    least = np.where(
        nodes.one_sign > 0,
        LEAST_OF_SMALLEST * ends.min(axis=0),
        LEAST_OF_LARGEST * ends.max(axis=0),
    )
    return np.asarray(np.where(least > 0, least, 1.0))


class Linearised:
    """The likelihood, linearised at a point, with the coefficients of a support as the border."""

    def __init__(
        self, of: Likelihood, point: Point, weights: Array, support: Support, expected: float = np.inf
    ) -> None:
        self.of, self.point, self.weights, self.support, self.expected = of, point, weights, support, expected
        self.steps, self.precisions = of.steps(point), of.precisions(point.process)
        self.errors = np.where(of.nodes.seen, point.states - of.nodes.y, 0.0)

    @cached_property
    def objective(self) -> float:
        """J; infinite where it is not a number."""
        with np.errstate(all="ignore"):
            J = float(np.sum(self._parts))
            J += 0.0 if self.point.tilt is None else 2 * float(np.sum(self.point.tilt * self.point.coefficients))
        return J if np.isfinite(J) else float("inf")

    @property
    def _parts(self) -> Array:
        return np.sum(self.weights * self.errors**2, axis=0) + np.sum(self.precisions * self.steps.residual**2, axis=0)

    @cached_property
    def chain(self) -> Chain:
        """The states, tied by the steps."""
        return Chain(*self.steps.derivatives, self.weights, self.precisions)

    @cached_property
    def gradient(self) -> Array:
        """Half the gradient of J by the states, (points·n, 1)."""
        return (self.weights * self.errors).reshape(-1, 1) + self.chain.pulled(self.steps.residual[:, :, None])

    def lowered(self, damping: float, settled: float) -> tuple[Linearised | None, float]:
        """Return the linearisation after a step to lower J, if there is one, and the damping that it takes.

        A whole step that rounding error turns uphill has settled, too. One that leaves the narrow valley of a small q,
        in which the equations hold, comes back to it with the next.
        """
        for _ in range(MOST_DAMPINGS):
            following, highest = self.moved(damping), self.objective + (0.0 if damping else settled)
            if following is not None and not damping and highest < following.objective < np.inf:
                following = following.moved(damping)
            if following is not None and following.objective <= highest:
                return following, damping
            damping = max(damping * DAMPING_FACTOR, FIRST_DAMPING)
        return None, damping

    def moved(self, damping: float) -> Linearised | None:
        """Return the linearisation after one step of Gauss–Newton; None where it cannot be taken.

        With U = L⁻¹H_Xξ and v = L⁻¹g: S = H_ξξ − UᵀU, b = g_ξ − Uᵀv, Δξ = −S⁻¹b, ΔX = −L⁻ᵀ(v + UΔξ),
        and J is expected to fall by |v|² + bᵀS⁻¹b.
        """
        added = damping * self.of.weights(self.point, everywhere=True) if damping else 0.0
        factor = self.chain.damped(added) if damping else self.chain.factor
        if factor is None:
            return None
        placed = self.of.placed(self.support)
        information, pull, v = self.reduced(factor)
        if not (np.all(np.isfinite(information)) and np.all(np.isfinite(pull))):
            return None
        tied = self.of.knowledge.tied(self.support)
        free = placed if tied is None else (placed[0][tied.free], placed[1][tied.free])
        change = self.of.inside.step(self.point.coefficients, *free, information, pull, damping)
        along = change if self.directions is None else self.directions @ change
        pulled = self.chain.pulled(self.border.along(along)[:, :, None])
        states = -factor.solved(self.gradient + pulled).reshape(self.errors.shape)
        coefficients = self.of.inside.advanced(self.point.coefficients, *placed, along)
        coefficients = self.of.knowledge.obeying(coefficients, self.support)
        point = replace(self.point, states=self.point.states + states, coefficients=coefficients)
        expected = self.objective - float(np.sum(v**2) - pull @ change)
        return Linearised(self.of, point, self.weights, self.support, expected)

    @cached_property
    def directions(self) -> Array | None:
        """Z of the support's coefficients w = w₀ + Zv; None where all are free. Laws are about constants, β = c ΔK."""
        tied = self.of.knowledge.tied(self.support)
        if tied is None:
            return None
        c = 1 / self.of.inside.units(self.point.coefficients, *self.of.placed(self.support))
        return np.asarray(tied.directions * c[:, None] / c[tied.free])

    @cached_property
    def border(self) -> Border:
        """∂r/∂ξ of the support."""
        return self.steps.border(*self.of.placed(self.support))

    def slope(self, support: Sequence[int]) -> Array:
        """Return half the gradient of J's tilt by some coefficients."""
        tilt = self.point.tilt
        return np.zeros(len(support)) if tilt is None else tilt.ravel()[list(support)]

    def freed(self, S: Array, b: Array) -> tuple[Array, Array]:
        """Return S and b of the support's coefficients as those of its free parameters."""
        Z = self.directions
        return (S, b) if Z is None else (Z.T @ S @ Z, Z.T @ b)

    def reduced(self, factor: Factor) -> tuple[Array, Array, Array]:
        """Return S and b of the free parameters of the support, and v."""
        target, pull = self.steps.residual, self.weights * self.errors
        S, b, v = self.chain.reduced(factor, self.border.rows, len(self.support), target, pull)
        return *self.freed(S, b + self.slope(self.support)), v

    def information(self, support: Sequence[int]) -> tuple[Array, Array, Array] | None:
        """Return A and p of some candidates, and what every state adds to J with the states at their best.

        J at ξ + δ is the sum of that plus ‖Aδ + p‖² − ‖p‖²: S = AᵀA, b = Aᵀp. Powers of a state far from zero differ
        in their last digits, which S would square away. So S = VΛVᵀ is that of θR⁻¹, R the triangle of the QR
        decomposition of an equation's terms, and A = Λ^½VᵀR.
        """
        factor, border = self.chain.factor, self.steps.border(*self.of.placed(support))
        if factor is None:
            return None
        basis, inverse = np.zeros((2, len(support), len(support)))
        for equation in np.unique(border.equations):
            mine = np.ix_(*2 * [np.flatnonzero(border.equations == equation)])
            basis[mine] = triangle(np.sqrt(self.precisions[:, [equation]]) * border.within(equation))
            inverse[mine] = np.linalg.inv(basis[mine])
        border = border.combined(inverse)
        target, pull = self.steps.residual, self.weights * self.errors
        S, b, v = self.chain.reduced(factor, border.rows, len(support), target, pull)
        b += inverse.T @ self.slope(support)
        least = self._parts - np.sum(v**2, axis=0)
        if not all(np.all(np.isfinite(part)) for part in (S, b, least)):
            return None
        root, pull = rooted(S, b)
        return root @ basis, pull, least

    def significance(self) -> Array:
        """Return b/√S of every candidate, next to those of the support, (n, d).

        b = Bᵀv with B = ∂r/∂ξ and v what r leaves (`Chain.left`), less what the support's own B_s leaves, V, times
        (B_sᵀV)⁻¹B_sᵀv: one solution serves all candidates. S is the covariance of b under noise of r and of the
        samples, read off draws of it.
        """
        generator, samples = np.random.default_rng(0), np.sqrt(self.weights).reshape(-1, 1)
        deviation = 1 / np.sqrt(np.where(self.precisions > 0, self.precisions, np.inf))
        noise = deviation[:, :, None] * generator.standard_normal((*deviation.shape, N_DRAWS))
        rows, tried = [self.steps.residual[:, :, None], noise, self.border.rows()], N_DRAWS + 1
        pull = np.zeros((self.weights.size, tried + len(self.support)))
        pull[:, :1] = (self.weights * self.errors).reshape(-1, 1)
        pull[:, 1:tried] = samples * generator.standard_normal((samples.size, N_DRAWS))
        left = self.chain.left(np.concatenate(rows, axis=2), pull)
        if left is None:
            return np.zeros((self.of.n, self.of.d))
        v, V = left[:, :, :tried], left[:, :, tried:]
        if self.support:
            onto = rows[2].reshape(-1, len(self.support)).T @ left.reshape(-1, left.shape[2])
            v = v - V @ np.linalg.lstsq(onto[:, tried:], onto[:, :tried], rcond=None)[0]
        b = self.steps.pulled_border(v, self.of.d).reshape(tried, -1)
        b[:, list(self.support)] = 0.0
        spread = np.sqrt(np.mean(b[1:] ** 2, axis=0))
        return np.asarray((b[0] / np.where(spread > 0, spread, 1.0)).reshape(self.of.n, self.of.d))

    def tilted(self, whole: bool = False) -> Array:
        """Return half the gradient of ln|H| − 2 Σ ln|∂r/∂x_b| by the coefficients of the support or the whole, (n, d).

        ½ ∂ln|H| = Σ tr Q⁻¹(∂R_a (V_aaR_aᵀ + V_abR_bᵀ) + ∂R_b (V_baR_aᵀ + V_bbR_bᵀ)) with, to leading order in h,
        ∂R_a = ∂R_b = −h/2 e_l ∇θ_jᵀ at the middle; of a map ∂R_a = −e_l ∇θ_jᵀ at x_a. As q falls to zero, both parts
        cancel.
        """
        if (spread := self.chain.spread) is None:
            return np.zeros((self.of.n, self.of.d))
        of_a, of_b = (one.transpose(0, 2, 1) * self.precisions[:, None, :] for one in spread)
        joined, n = self.of.nodes.joined[:, None, None], self.of.n
        if self.of.discrete_time:
            where, weight = self.steps.columns[:, :-1], -of_a * joined
        else:
            half = self.of.nodes.steps[:, None, None] / 2
            where, weight = self.steps.middles, half * (np.eye(n) - of_a - of_b) * joined
        used = range(self.of.d) if whole else np.unique(self.of.placed(self.support)[1]).tolist()
        slopes, numbers = self.of.library.slopes(len(where), tuple(used))
        sums = np.zeros((len(slopes.slots), len(where), n))
        sums[:, :n] = (slopes.values(where) @ weight.reshape(len(weight), n * n)).reshape(-1, n, n)
        tilt = np.zeros((n, self.of.d))
        tilt[:, list(used)] = (numbers.T @ sums.reshape(numbers.shape[0], n)).T
        # As a straight line it promises too much of weak terms that are not there: good enough to propose them.
        return self.of.inside.linear(tilt if whole else self.of.on_support(tilt, self.support))

    def deviance(self, noise: Array) -> float:
        """Return −2 ln p(y) less (samples − n stretches) ln 2π, with other s at the same states."""
        if not np.isfinite(self.objective):
            return float("inf")
        weights = self.weights * (self.point.noise / noise) ** 2
        determinant = replace(self.chain, weights=weights).log_determinant
        fit = float(np.sum(weights * self.errors**2) + np.sum(self.precisions * self.steps.residual**2))
        joined, seen = self.of.nodes.joined, self.of.nodes.seen
        volume = determinant - 2 * np.sum(np.linalg.slogdet(self.steps.derivatives[1][joined])[1])
        deviance = fit + volume - np.sum(np.log(weights[seen])) - np.sum(np.log(self.precisions[joined]))
        return float(np.nan_to_num(deviance, nan=np.inf))

    def problem(self, candidates: Support, states: Sequence[int] | None = None) -> tuple[Problem, Array] | None:
        """Return the regression on some candidates of all equations together, at unit noise, and units of its columns.

        J(ξ) ≈ ‖Aξ − z‖² + rest with A as above and z = Aξ̂ − p. Where some states do not depend on the others, as
        without any terms, these can be looked at alone.
        """
        found = self.information(candidates)
        if found is None:
            return None
        root, pull, parts = found
        seen = self.of.nodes.counts if states is None else self.of.nodes.counts[list(states)]
        least = float(np.sum(parts if states is None else parts[list(states)]))
        unit = np.sqrt(np.maximum(np.einsum("ij,ij->j", root, root), np.finfo(float).tiny))
        target = root @ self.of.inside.linear(self.point.coefficients).ravel()[list(candidates)] - pull
        rest = least - float(pull @ pull)
        # Noise at its floor, or told, may leave less than one unit per sample: what is missing tells no models apart.
        rest, samples = max(rest, 1e-3 * least), float(np.sum(seen))
        owners, floor = self.of.inside.owners(candidates), max(samples - rest, 0.0)
        return Problem(DenseColumns(root / unit), target, rest, samples, floor, owners=owners), 1 / unit
