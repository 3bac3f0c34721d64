"""Search over supports of an equation whose noise covariance depends on the support itself.

Every support S is fitted with its own whitening (passes until ξ settles) and scored by N ln(RSS/N) + 2[k ln N +
2 ln C(d, k)], without ln|C|: RSS/N is the noise of the states in the data's own units, comparable between whitenings,
whereas with ln|C| overfitted supports win. From S the selection on its whitened system proposes the next support; a
fixed point proposes itself. Starts: the empty model, and all sparse models on the backward paths of its system. Results
are kept by support, so that starts which meet share the rest of the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ardea.dynamics.subsets import Model, Support, System, penalty, wide_supports

Array = NDArray[np.float64]

LARGEST_START = 8
# Of all starts so many are looked at twice, and so many of those are pursued.
LOOKED_AT, PURSUED = 8, 4
LONGEST_WAY, MOST_REFINED = 8, 6
GLANCE_PASSES, QUICK_PASSES = 2, 3
# Supports whose criterion at another's whitening exceeds that other's by more than this are not tried themselves.
MARGIN, NEIGHBOURS = 12.0, 6
LARGEST_LOSS = 2.5


class Fitted(Protocol):
    """A fit at one support."""

    @property
    def coefficients(self) -> Array:
        """ξ on the support."""

    @property
    def rss(self) -> float:
        """‖z − Aξ‖² with its own whitening."""

    @property
    def floor(self) -> float:
        """RSS that truncation error alone leaves."""


class Whitenable(Protocol):
    """An equation that can be fitted at any support."""

    @property
    def n_terms(self) -> int:
        """Number of candidate terms d."""

    @property
    def n_rows(self) -> float:
        """Number of rows N."""

    def beginning(self) -> Any:
        """Return what the fits of one search start from."""

    def fitted(self, support: Support, start: Any = None, passes: int | None = None) -> Any:
        """Return the fit at a support, from an earlier fit or a beginning, with at most so many passes."""

    def system(self, fit: Any) -> tuple[Array, Array]:
        """Return A and z of all candidate terms, whitened as the fit says."""


@dataclass(frozen=True, eq=False)
class Contender:
    """A support, its fit and its score."""

    support: Support
    fit: Any
    score: float


class Tournament:
    """All supports met so far, with their scores.

    Parameters
    ----------
    equation : Whitenable
        What to fit.
    propose : callable
        From a small system to supports worth a look (`subsets.ard_supports`).
    """

    def __init__(self, equation: Whitenable, propose: Callable[[System], list[Support]]) -> None:
        self.equation, self.propose = equation, propose
        self.beginning = equation.beginning()
        self.met: dict[Support, Contender] = {}
        self._ranked: dict[Support, list[Model]] = {}
        self._systems: dict[Support, System] = {}

    def run(self) -> list[Contender]:
        """Return all supports met, best first."""
        empty = self.contender(())
        starts = [model.support for model in self.ranked(empty) if 0 < len(model.support) <= LARGEST_START]
        glances = sorted((self._fitted(support, self.beginning, GLANCE_PASSES) for support in starts), key=_by_score)
        for glance in glances[:LOOKED_AT]:
            self.met[glance.support] = self._fitted(glance.support, glance.fit, QUICK_PASSES - GLANCE_PASSES)
        for contender in (empty, *sorted(self.met.values(), key=_by_score)[:PURSUED]):
            self.pursue(contender)
        return self.refined(min(self.met.values(), key=_by_score))

    def around(self, supports: Sequence[Support]) -> list[Contender]:
        """Return the supports met on the way from the best of some good ones, best first."""
        self.pursue(min((self.contender(support) for support in supports), key=_by_score))
        return self.refined(min(self.met.values(), key=_by_score))

    def refined(self, best: Contender) -> list[Contender]:
        """Look around the best until nothing near it is better; return all supports met, best first.

        With far too much noise, scores fall for a few passes and then rise: there it stops after a while, and those
        whose passes were taken to the end come first.
        """
        finished: set[Support] = set()
        while best.support not in finished and len(finished) < MOST_REFINED:
            best = self.settled(best)
            finished.add(best.support)
            for support in self.neighbours(best):
                self.contender(support)
            best = min(self.met.values(), key=_by_score)
        ranked = sorted(self.met.values(), key=_by_score)
        at_rest = best.support in finished
        return ranked if at_rest else sorted(ranked, key=lambda contender: contender.support not in finished)

    def contender(self, support: Support) -> Contender:
        """Return the support with its fit and score after a few passes, computed once."""
        if support not in self.met:
            self.met[support] = self._fitted(support, self.beginning, QUICK_PASSES)
        return self.met[support]

    def settled(self, contender: Contender) -> Contender:
        """Return the contender with its passes taken to the end."""
        self.met[contender.support] = self._fitted(contender.support, contender.fit)
        return self.met[contender.support]

    def _fitted(self, support: Support, start: Any, passes: int | None = None) -> Contender:
        fit, n_rows = self.equation.fitted(support, start, passes), self.equation.n_rows
        rss = fit.rss + max(fit.floor, np.finfo(float).tiny)
        misfit = n_rows * np.log(rss / n_rows) if np.isfinite(rss) else np.inf
        return Contender(support, fit, float(misfit + penalty(n_rows, self.equation.n_terms, len(support))))

    def ranked(self, contender: Contender) -> list[Model]:
        """Return the models that the selection on the contender's whitened system met, best first."""
        if contender.support not in self._ranked:
            system = self._system(contender)
            proposals = [*self.propose(system), contender.support]
            if not contender.support:
                proposals += wide_supports(system)
            self._ranked[contender.support] = system.select(proposals)
        return self._ranked[contender.support]

    def _system(self, contender: Contender) -> System:
        if contender.support not in self._systems:
            A, z = self.equation.system(contender.fit)
            self._systems[contender.support] = System.of(A, z, self.equation.n_rows, contender.fit.floor)
        return self._systems[contender.support]

    def pursue(self, contender: Contender) -> None:
        """Follow proposals until one repeats."""
        for _ in range(LONGEST_WAY):
            support = self.ranked(contender)[0].support
            if support in self.met:
                return
            contender = self.contender(support)

    def neighbours(self, contender: Contender) -> list[Support]:
        """Return supports near the contender that its own whitening does not clearly rule out, closest first.

        The whitening of a model with a false term favours that term: removals are tried unless they raise RSS
        more than 2.5 times.
        """
        system = self._system(contender)
        own = system.model(contender.support)
        near = [*self.ranked(contender)[:2], *system.neighbours(own)]
        hopeful = sorted((model for model in near if model.criterion < own.criterion + MARGIN), key=_by_criterion)
        smaller = [model for model in near if len(model.support) < len(own.support)]
        drops = [model for model in smaller if model.rss < LARGEST_LOSS * own.rss]
        return list(dict.fromkeys(model.support for model in (*hopeful[:NEIGHBOURS], *drops)))


def _by_criterion(model: Model) -> float:
    return model.criterion


def _by_score(contender: Contender) -> float:
    return contender.score
