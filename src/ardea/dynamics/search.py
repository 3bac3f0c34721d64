"""From rows to supports: every equation alone, then all equations together.

Alone, each equation runs a full tournament. Together the states are known far better, since every equation says
something about the same errors: the supports found alone are then revised, one at a time, with the others held, until
none changes. Equations that misfit (the library lacks their truth) would spoil the others and stay alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ardea.dynamics.errors_in_variables import Equations, Fit, InContext
from ardea.dynamics.libraries import Library
from ardea.dynamics.pieces import Piece
from ardea.dynamics.subsets import ROUNDING, Support, System
from ardea.dynamics.tournament import MARGIN, Contender, Tournament, Whitenable
from ardea.progress import Progress

Array = NDArray[np.float64]
Propose = Callable[[System], list[Support]]

LARGEST_REVISIONS = 3
RUNNERS_UP = 3
# Equations whose noise, in units of s, exceeds that of the median one so many times stay alone.
MISFIT = 3.0
# Largest joint covariance (rows of all equations of a piece).
LARGEST_JOINT = 2500
# Above this share of the noise of the rows, truncation error makes a joint fit overconfident.
LARGEST_TRUNCATION = 0.02


@dataclass(frozen=True, eq=False)
class Found:
    """An equation, the support that won, and its fit.

    Attributes
    ----------
    equation : Whitenable
        Gives the whitened system at the fit.
    support : tuple of int
        Terms.
    fit : object
        The fit behind it.
    n_parameters : int
        Coefficients estimated together with these.
    runners_up : tuple of supports
        The next best supports of its own tournament.
    equivalents : tuple of supports
        Supports without one of these terms that explain the data as well.
    """

    equation: Whitenable
    support: Support
    fit: Any
    n_parameters: int
    runners_up: tuple[Support, ...] = ()
    equivalents: tuple[Support, ...] = ()


class GivenRows:
    """An equation with derivatives given: y = Θ(x)ξ with white noise; nothing to whiten.

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

    def fitted(self, support: Support, start: Any = None, passes: int | None = None) -> GivenFit:
        """Return least squares on the support."""
        columns = self.theta[:, list(support)]
        coefficients: Array = np.linalg.lstsq(columns, self.y, rcond=None)[0].astype(float) if support else np.empty(0)
        residual = self.y - columns @ coefficients
        return GivenFit(coefficients, float(residual @ residual), ROUNDING * float(self.y @ self.y))

    def system(self, fit: GivenFit) -> tuple[Array, Array]:
        """Return Θ and y."""
        return self.theta, self.y


@dataclass(frozen=True, eq=False)
class GivenFit:
    """Least squares on a support."""

    coefficients: Array
    rss: float
    floor: float


@dataclass(frozen=True)
class Effort:
    """How equations are searched: in how many processes, and whether progress is shown."""

    n_jobs: int | None = None
    shown: bool = False

    def each(self, function: Callable[[Any, Propose], Any], equations: Sequence[Any], propose: Propose) -> list[Any]:
        """Return function(equation, propose) of every equation."""
        done = []
        with Progress("equations", len(equations), unit="equations", shown=self.shown) as bar:
            tasks = (delayed(function)(equation, propose) for equation in equations)
            for result in Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks):
                done.append(result)
                bar.step()
        return done


def find_alone(equations: Sequence[Whitenable], propose: Propose, effort: Effort) -> list[Found]:
    """Return the winner of every equation's own tournament."""
    ranked = effort.each(_first, equations, propose)
    return [
        Found(
            equation,
            first[0].support,
            equation.fitted(first[0].support, first[0].fit),
            len(first[0].support),
            tuple(contender.support for contender in first[1:]),
        )
        for equation, first in zip(equations, ranked, strict=True)
    ]


def find_together(
    pieces: Sequence[Piece], library: Library, noise: Array, propose: Propose, effort: Effort
) -> list[Found]:
    """Return the equations of all states, revised together where they fit and the joint covariance is affordable."""
    n_states = pieces[0].x.shape[1]
    alone = find_alone(
        [InContext(Equations(pieces, library, [state], noise), 0, [()]) for state in range(n_states)], propose, effort
    )
    level = np.sqrt([found.fit.rss / found.equation.n_rows for found in alone])
    states = [state for state in range(n_states) if level[state] <= MISFIT * np.median(level)]
    affordable = len(states) * max(piece.n_rows for piece in pieces) <= LARGEST_JOINT
    if len(states) < 2 or not affordable or _truncated(pieces, noise):
        return alone
    together = Equations(pieces, library, states, noise)
    final = revised(together, [(alone[state].support, *alone[state].runners_up) for state in states], propose)
    n_parameters = sum(len(one.supports[one.which]) for one in final)
    for state, equation in zip(states, final, strict=True):
        support = equation.supports[equation.which]
        alone[state] = Found(equation, support, equation.start, n_parameters)
    return alone


def _truncated(pieces: Sequence[Piece], noise: Array) -> bool:
    """Whether truncation error, which the equations share in ways unknown, is of the order of the noise of the rows."""
    for piece in pieces:
        if piece.truncation is not None:
            rows = noise**2 * np.trace(piece.gram_of_D) / piece.n_rows
            if np.any(piece.truncation > LARGEST_TRUNCATION * rows):
                return True
    return False


def revised(together: Equations, choices: Sequence[Sequence[Support]], propose: Propose) -> list[InContext]:
    """Change one support at a time, always the one whose change lowers the joint score most, until none does.

    Revising them in a fixed order would let a right equation make up for the fault of a wrong one.

    Parameters
    ----------
    together : Equations
        All equations.
    choices : sequence of sequences of supports
        For every equation the support to begin with, then others worth a look.
    propose : callable
        From a small system to supports.
    """
    supports = [first for first, *_ in choices]
    current = _each_in_context(together, supports, together.fitted(supports))
    for _ in range(LARGEST_REVISIONS * len(supports)):
        best, place, gain = None, 0, 0.0
        for candidate, equation in enumerate(current):
            tournament = Tournament(equation, propose)
            winner = tournament.around([supports[candidate], *choices[candidate]])[0]
            lowered = tournament.contender(supports[candidate]).score - winner.score
            if lowered > gain:
                best, place, gain = winner, candidate, lowered
        if best is None:
            break
        supports[place] = best.support
        current = _each_in_context(together, supports, together.fitted(supports, best.fit))
    return current


def _each_in_context(together: Equations, supports: Sequence[Support], fit: Fit) -> list[InContext]:
    """Return every equation among the others, with its system at the fit."""
    return [InContext(together, place, supports, fit, system) for place, system in enumerate(together.systems(fit))]


def _first(equation: Whitenable, propose: Propose) -> list[Contender]:
    ranked = Tournament(equation, propose).run()[: 1 + RUNNERS_UP]
    return [contender for contender in ranked if contender.score < ranked[0].score + MARGIN]
