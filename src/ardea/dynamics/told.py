"""What a fit says of states, of all equations together, and of models that are left open."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from ardea.core.evidence import Estimate, Tied
from ardea.core.problem import Array
from ardea.dynamics.pursuit import SLIGHT_GAIN
from ardea.dynamics.series import SAME_TIME
from ardea.dynamics.simulation import SimulationWarning
from ardea.dynamics.trajectory import Linearised
from ardea.equation import CLOSE, WEAK, Equation
from ardea.names import listed, printable

# A convention: how many rivals `print` shows.
SHOWN_RIVALS = 3
# A rival that is better by this, within which the simpler is taken, or more shows that no candidate fits.
BEATEN = SLIGHT_GAIN + 0.1
# A convention: a state that varies less than this many times its noise says nothing of its equation.
LEAST_EXCITATION = 2.0
# Rivals closer than this (odds below 5 to 3) are warned of, those that exchange terms up to the second (odds below e to
# 1): a term more or less has its price.
INDISTINGUISHABLE, SIMILAR = 1.0, 2.0


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
    def at(cls, linear: Linearised, nodes: Sequence[int]) -> list[KnownState]:
        """Return the states at some nodes of a fit.

        With E the columns of the unit matrix of a node, −EᵀH⁻¹RᵀQ⁻¹B and EᵀH⁻¹E.
        """
        n, factor, k = linear.of.n, linear.chain.factor, len(linear.support)
        gain, covariance = np.zeros((len(nodes), n, k)), np.zeros((len(nodes), n, n))
        if factor is not None:
            units = np.hstack([np.eye(linear.errors.size, n, -n * node) for node in nodes])
            solved, pulled = factor.solved(units), linear.chain.pulled(linear.border.rows())
            gain = -(solved.T @ pulled).reshape(gain.shape)
            covariance = np.stack([solved[n * j : n * (j + 1), n * i : n * (i + 1)] for i, j in enumerate(nodes)])
        states, times = linear.point.states[list(nodes)], linear.of.nodes.t[list(nodes)].tolist()
        return [cls(*one) for one in zip(states, gain, covariance, times, strict=True)]


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
        return np.where(
            owner[:, None] == owner, 0.0, np.clip(correlation, -1.0, 1.0)
        )  # of tied ones ±1 but for rounding

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


def blown_up(model: Any, joint: Joint, times: Array, driven: bool) -> list[str]:
    """Return what is to be warned of a model that cannot be run over its own rows, without noise that moves states."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SimulationWarning)
        model.simulate(joint.first.mean, times[times >= joint.first.time - SAME_TIME * joint.step], None)
    return [f"Run over its own rows{' without that noise' * driven}, {one.message}." for one in caught]


def open_questions(equation: Equation) -> list[str]:
    """Return what is to be said of models that the data do not rule out."""
    remarks = [f"The data do not tell it from: {listed(terms)}." for terms in equation.equivalents]
    if rivals := equation.close_rivals():
        named = "; ".join(rival.compared for rival in rivals[:SHOWN_RIVALS])
        if rivals[0].excess < -BEATEN:
            remarks.append(f"The best model found is not better than its neighbours: {named}.")
        else:
            remarks.append(f"Other models fit about as well: {named}. A difference of {CLOSE:g} would be clear.")
    return remarks


def doubts_about(equations: Sequence[Equation], excitation: Sequence[float], hint: str = "") -> list[str]:
    """Return what is to be warned of: models that the data or the search leave open, states that hardly move.

    `hint`: what else to try where no term is found.
    """
    doubts = []
    for equation in equations:
        left, chosen = equation.left.text, listed(equation.terms)
        rivals = [
            one
            for one in equation.close_rivals(SIMILAR)
            if one.excess < INDISTINGUISHABLE or _exchanged(one.terms, equation.terms)
        ]
        others = [*equation.equivalents, *(rival.terms for rival in rivals)]
        if rivals and rivals[0].excess < -BEATEN:
            doubts.append(
                f"The best model found for {left}, [{chosen}], is not better than its neighbours: "
                f"{rivals[0].compared}. Most likely the right term is not among the candidates: see that times, order "
                "of the rows and library are right (python -m ardea.explain ambiguity)."
            )
        elif others:
            doubts.append(
                f"The data hardly tell two models of {left} apart: [{chosen}] and [{listed(others[0])}]. Longer "
                "or richer data would, unless both stand in for a term that is not among the candidates "
                "(python -m ardea.explain ambiguity)."
            )
    for equation, ratio in zip(equations, excitation, strict=True):
        if ratio >= LEAST_EXCITATION and not equation.terms:
            doubts.append(
                f"No term was found for {equation.left.text}: what moves it, if anything but noise does, is too weak "
                f"for these data, or not among the candidates.{hint} Add rows or series from other starts, or other "
                "terms (python -m ardea.explain ambiguity)."
            )
        if ratio < LEAST_EXCITATION:
            sure = bool(equation.terms) and np.all(np.abs(equation.coefficients) > WEAK * equation.std)
            so = (
                ": its equation, and others that contain it, may change with more data"
                if sure
                else ", too little to find its equation; others that contain it are in doubt"
            )
            doubts.append(
                f"{printable(equation.name)} varies only {ratio:.1f} times as much as its noise{so}. Is it at rest (a "
                "fixed point), sampled too rarely, or are there outliers, such as -999 for missing values? "
                "(python -m ardea.explain ambiguity)"
            )
    return doubts


def _exchanged(some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether each of two models has a term that the other lacks."""
    return bool(set(some) - set(others)) and bool(set(others) - set(some))
