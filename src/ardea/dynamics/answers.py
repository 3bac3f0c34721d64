"""What can be asked of equations while the data behind them are at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ardea.core.problem import Array
from ardea.dynamics.found import FoundStates
from ardea.dynamics.models import EquationsOfMotion, StateModel
from ardea.dynamics.rows import Differentiation, Form, Stretch, stretch_rows
from ardea.dynamics.search import FoundRows
from ardea.dynamics.series import Series, checked_series

# What a search came to: equations, excitation, residuals, inclusion.
Found = FoundRows | FoundStates


class Answers(EquationsOfMotion):
    """Equations, and the data that they were found in."""

    searched_: Found
    form: Form | None
    discrete_time: bool
    differentiation: Differentiation
    order: int

    def _stretches(self, series: Sequence[Series]) -> list[Stretch]:
        form = "derivative" if self.form == "derivative" else "weak"
        return stretch_rows(series, form, bool(self.discrete_time), self.differentiation, self.order)

    def score(self, x: Any, t: Any, x_dot: Any = None, u: Any = None) -> float:
        """Return R², the share of variance explained: of x_dot where given, else of the rows of the form fitted.

        In the weak form −∫φ′x is compared with ∫φ Θ(x)ξ: noise is averaged out as in the fit, so that the score says
        something of the model and not of the noise.
        """
        check_is_fitted(self)
        if not isinstance(self.model_, StateModel):
            raise NotImplementedError("score() is for models of states; compare predict(u) with u_t for fields.")
        trajectories = [self._ordered(one) for one in x] if isinstance(x, list | tuple) else self._ordered(x)
        series, *_ = checked_series(trajectories, self.elapsed(t), x_dot, u, self.model_.names)
        if x_dot is not None:
            pairs = [(one.x_dot, self._slopes(one)) for one in series]
        else:
            pairs = [(one.D @ one.data.x, one.V @ self._slopes(one.data)) for one in self._stretches(series)]
        observed, modelled = (np.vstack(parts) for parts in zip(*pairs, strict=True))
        # Rows of the weak form have signs of their own, and no mean.
        centre = observed.mean(axis=0) if x_dot is not None or self.form == "derivative" else 0.0
        spread = np.sum((observed - centre) ** 2, axis=0)
        lost = np.sum((observed - modelled) ** 2, axis=0)
        return float(np.mean(1 - lost / np.where(spread > 0, spread, 1.0)))

    def _slopes(self, data: Series) -> Array:
        return self.predict(data.x, data.inputs if data.inputs.shape[1] else None)

    @property
    def states_(self) -> list[Any]:
        """The smoothed states at the rows of every series, as frames: time, states, their standard deviations."""
        import pandas as pd

        found = getattr(self, "searched_", None)
        if not isinstance(found, FoundStates) or not isinstance(self.model_, StateModel):
            raise AttributeError("states_ is there after a fit in trajectory form; a file does not keep it.")
        names = self.model_.states
        columns = ["time", *names, *(f"{name} std" for name in names)]
        pairs = zip(found.times, found.states(), strict=True)
        return [
            pd.DataFrame(values, columns=columns[1:]).assign(time=self._clock.dates(times))[columns]
            for times, values in pairs
        ]

    def inclusion(self, n_resamples: int = 50, random_state: Any = None) -> Array:
        """Return how often every term is chosen when the independent rows of the whitened systems are resampled.

        Parameters
        ----------
        n_resamples : int
            Number of bootstrap samples.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        ndarray of shape (equations, terms)
            Frequencies in [0, 1].
        """
        return self._searched("inclusion").inclusion(n_resamples, check_random_state(random_state))

    def residuals(self) -> list[Array]:
        """Return the residuals of every equation in units of their standard deviation.

        In trajectory form the samples less the states, else those of the whitened rows. Where an equation is right they
        are independent, of equal size, and Gaussian if the noise is.
        """
        return self._searched("residuals").residuals(self.equations_)

    def _searched(self, asked: str) -> Found:
        check_is_fitted(self)
        if not hasattr(self, "searched_"):
            raise ValueError(f"{asked}() needs the data, which a model read from a file does not have: fit again.")
        return self.searched_
