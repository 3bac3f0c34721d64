"""What a fit on the likelihood of a trajectory says of states, and of all equations together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from ardea.core.evidence import Estimate, Tied
from ardea.core.problem import Array
from ardea.dynamics.trajectory import Linearised
from ardea.equation import Equation


@dataclass(frozen=True, eq=False)
class KnownState:
    """A state that is N(mean + gain (ξ − ξ̂), covariance) where the coefficients ξ are given."""

    mean: Array  # (n,)
    gain: Array  # (n, k)
    covariance: Array  # (n, n)
    time: float

    def draws(self, deviations: Array, generator: Any) -> Array:
        """Return one for every draw of the coefficients, given as deviations from their mean, (draws, k)."""
        own = Estimate(self.mean, self.covariance, float("nan"), np.inf)
        return np.asarray(own.sample(len(deviations), generator) + deviations @ self.gain.T)

    @classmethod
    def at(cls, linear: Linearised, node: int) -> KnownState:
        """Return the state at a node of a fit: how it depends on the coefficients, and its covariance given these."""
        n, factor, mean = linear.of.n, linear.chain.factor, linear.point.states[node]
        time, k = float(linear.of.nodes.t[node]), len(linear.support)
        if factor is None:
            return cls(mean, np.zeros((n, k)), np.zeros((n, n)), time)
        pulled = linear.chain.pulled(linear.border.rows())
        solved = factor.solved(np.hstack([np.eye(linear.errors.size, n, -n * node), pulled]))
        own = solved[n * node : n * (node + 1)]
        return cls(mean, -own[:, n:], own[:, :n], time)


def state_deviations(linear: Linearised, covariance: Array) -> Array:
    """Return the standard deviation of every state, (points, n), given the covariance of the coefficients."""
    factor = linear.chain.factor
    if factor is None:
        return np.full(linear.errors.shape, np.nan)
    variance = np.einsum("ikk->ik", factor.covariances[0]).copy()
    if linear.support:
        solved = factor.solved(linear.chain.pulled(linear.border.rows()))
        variance += np.einsum("ij,jk,ik->i", solved, covariance, solved).reshape(variance.shape)
    return np.sqrt(variance)


def step_bias(linear: Linearised) -> Array:
    """Return what the error of the steps adds to the free parameters, in units of their standard errors."""
    factor, Z = linear.chain.factor, linear.directions
    if factor is None or not linear.support:
        return np.zeros(linear.of.knowledge.n_free(linear.support))
    error, k = linear.steps.truncation(), len(linear.support)
    S, b, _ = linear.chain.reduced(factor, linear.border.rows, k, error, np.zeros_like(linear.errors))
    S, b = (S, b) if Z is None else (Z.T @ S @ Z, Z.T @ b)
    covariance = np.linalg.pinv(S, hermitian=True)
    shift = covariance @ b
    return np.asarray(np.abs(shift) / np.sqrt(np.maximum(covariance.diagonal(), np.finfo(float).tiny)))


@dataclass(frozen=True, eq=False)
class Joint:
    """What the equations, each with a covariance of its own, do not tell: how they depend on each other and on states.

    The states are those at the first and the last row of the first series.
    """

    correlation: Array  # (k, k), of coefficients of different equations; zero within an equation
    first: KnownState
    last: KnownState
    step: float  # the mean step of the trajectory
    tied: Tied | None = None  # how laws tie the coefficients of all equations

    def before(self, times: Any) -> KnownState:
        """Return the state from which to go on: the last one if all times are past the data."""
        return self.last if np.ndim(times) and np.ravel(times)[0] > self.last.time else self.first

    @staticmethod
    def between(sizes: Sequence[int], correlation: Array) -> Array:
        """Return a correlation with zeros within the equations, which have so many terms."""
        owner = np.repeat(np.arange(len(sizes)), sizes)
        return np.where(owner[:, None] == owner, 0.0, correlation)

    def estimate(self, equations: Sequence[Equation]) -> Estimate:
        """Return the estimate of all kept coefficients, equation by equation."""
        std = np.concatenate([one.parameters.std for one in equations])
        own = linalg.block_diag(*(one.parameters.covariance for one in equations))
        mean = np.concatenate([one.parameters.mean for one in equations])
        if self.tied is not None:  # those that several equations share are the same to the last digit
            mean = self.tied.offset + self.tied.directions @ mean[self.tied.free]
        degrees = min(one.degrees for one in equations)
        return Estimate(mean, own + self.correlation * np.outer(std, std), float("nan"), degrees)

    def sample(self, equations: Sequence[Equation], n: int, generator: Any) -> Array:
        """Return n draws of all kept coefficients, (n, k)."""
        estimate = self.estimate(equations)
        tied = self.tied
        return estimate.sample(n, generator) if tied is None else tied.sample(estimate, n, generator)
