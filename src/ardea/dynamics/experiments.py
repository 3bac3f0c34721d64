"""Several experiments: the same terms, with coefficients of their own in each.

Inputs that are one in one series and zero in all others make terms of every series: with K series and d terms, term
k·d + j is term j in series k. What is known holds in every series, and coefficients that are common to all are tied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ardea.dynamics.knowledge import Knowledge
from ardea.dynamics.laws import Reader
from ardea.dynamics.libraries import Library
from ardea.dynamics.series import Series
from ardea.dynamics.terms import Term


@dataclass(frozen=True)
class PerSeries(Library):
    """The terms of a library in every series: its last variables say in which."""

    of: Library
    n_series: int

    def terms(self, n_states: int) -> tuple[Term, ...]:
        """Return the terms, series by series."""
        first = n_states - self.n_series
        return tuple(Term.monomial((first + k,)) * one for k in range(self.n_series) for one in self.of.terms(first))

    def degrees(self, n_states: int) -> list[int]:
        """Return the degrees in the states."""
        return self.of.degrees(n_states - self.n_series) * self.n_series


def check_shared(shared: Any) -> None:
    """Refuse what does not say what series share."""
    if shared == "structure":
        return
    lists = isinstance(shared, Mapping) and all(isinstance(one, list | tuple) for one in shared.values())
    if not lists:
        raise ValueError(
            f"shared={shared!r} is not known: give 'structure' for the same terms with coefficients of their own, or "
            "{state: [terms]} for those whose coefficients are common."
        )


def set_apart(
    shared: Any, series: Sequence[Series], library: Library, reader: Reader, knowledge: Knowledge | None
) -> tuple[list[Series], Library, Knowledge]:
    """Return series, library and knowledge with coefficients of its own for every series."""
    number = len(series)
    if number < 2:
        raise ValueError("shared=… is for several trajectories: give x and t as lists.")
    told = shared if isinstance(shared, Mapping) else {}
    common = [
        (reader.candidate(state, term, f"shared={{{state!r}: [{term!r}]}}"), f"shared={{{state!r}: [{term!r}]}}")
        for state, terms in told.items()
        for term in terms
    ]
    base = Knowledge.nothing(*reader.size) if knowledge is None else knowledge
    marks = np.eye(number)
    marked = [
        replace(one, inputs=np.hstack([one.inputs, np.tile(marks[k], (len(one.t), 1))])) for k, one in enumerate(series)
    ]
    return marked, PerSeries(library, number), base.over(number, common)
