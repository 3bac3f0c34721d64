"""What can be asked of equations while the data behind them are at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ardea.core.problem import Array
from ardea.dynamics.found import FoundStates
from ardea.dynamics.models import EquationsOfMotion, Motion, StateModel
from ardea.dynamics.next_experiment import NextExperiments, distinguishing
from ardea.dynamics.rows import Differentiation, Form, Stretch, stretch_rows
from ardea.dynamics.search import FoundRows
from ardea.dynamics.series import Clock, Series, checked_series
from ardea.equation import CLOSE

# What a search came to: equations, excitation, residuals, inclusion.
Found = FoundRows | FoundStates


class AmbiguityWarning(UserWarning):
    """The data do not tell two models apart."""


class MisfitWarning(UserWarning):
    """The equations found do not follow the samples."""


class KnowledgeWarning(UserWarning):
    """The data refute a law that was told."""


class Answers(EquationsOfMotion):
    """Equations, and the data that they were found in."""

    searched_: Found
    form: Form | None
    discrete_time: bool
    differentiation: Differentiation
    order: int

    shared: Any

    def _told_apart(self, model: Motion, clock: Clock) -> list[Any]:
        """Return a model of every trajectory, where their coefficients differ."""
        experiments = list[Any]()
        for own in self.searched_.of_every_series() if isinstance(self.searched_, FoundStates) else ():
            one = copy(self)
            equations = own.equations(model.lefts, model.vocabulary)
            one._adopt(model, equations, clock, self.warnings_, own.joint(equations))
            one.searched_ = own
            experiments.append(one)
        return experiments

    def coefficients(self, trajectory: int | None = None) -> Array:
        """Return ξ, shape (equations, terms).

        Parameters
        ----------
        trajectory : int, optional
            Of which trajectory, where those of trajectories differ (`shared`); the first by default.
        """
        check_is_fitted(self)
        return self.coef_ if trajectory is None else self._experiments("coefficients(trajectory=…)")[trajectory].coef_

    def variation(self, covariate: Any = None, level: float = 0.95) -> Any:
        """Return how coefficients vary from trajectory to trajectory (`shared`), as a frame.

        Parameters
        ----------
        covariate : array of shape (trajectories,), optional
            What differs between the experiments, such as a temperature: a column of the frame.
        level : float
            Of the intervals.

        Returns
        -------
        DataFrame
            One row for every term and trajectory: equation, term, trajectory, covariate, coefficient, standard
            deviation, interval.
        """
        import pandas as pd

        experiments = self._experiments("variation()")
        values = None if covariate is None else np.ravel(np.asarray(covariate))
        if values is not None and len(values) != len(experiments):
            raise ValueError(f"covariate must have one value for each of the {len(experiments)} trajectories.")
        parts = []
        for number, one in enumerate(experiments):
            for equation in one.equations_:
                part = pd.DataFrame(equation.table(level))
                part.insert(0, "equation", equation.name)
                part.insert(2, "trajectory", number)
                if values is not None:
                    part.insert(3, "covariate", values[number])
                parts.append(part)
        frame = pd.concat(parts, ignore_index=True)
        order = {name: number for number, name in enumerate(self.feature_names_)}
        keys = frame.assign(place=frame["equation"].map(order))
        return frame.loc[keys.sort_values(["place", "term", "trajectory"], kind="stable").index].reset_index(drop=True)

    def _experiments(self, asked: str) -> list[Any]:
        check_is_fitted(self)
        if self.experiments_ is None:
            raise ValueError(f"{asked} is for trajectories that differ: fit several with shared='structure'.")
        return self.experiments_

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
        if self.experiments_ is not None:
            raise ValueError("Trajectories have coefficients of their own: ask the models in experiments_ for theirs.")
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

    def distinguish(
        self,
        n: int = 3,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        t: ArrayLike | None = None,
        u: Sequence[ArrayLike] | None = None,
        within: float = CLOSE,
        random_state: Any = None,
    ) -> NextExperiments:
        """Return starts for new experiments in which this model and its closest rivals differ most.

        Parameters
        ----------
        n : int
            Number of experiments.
        bounds : dict, optional
            Where a start may lie, {state: (least, largest)}; where the states of the data lie by default.
        t : array of shape (times,), optional
            Times of the samples; those of the first series by default.
        u : list of arrays of shape (times, inputs), optional
            Inputs that could be applied, sampled at `t`, for models that have some: each is tried with every start.
        within : float
            Rivals whose criterion is larger by up to this are told apart.
        random_state : int, RandomState or None
            Seed of the starts that are tried.

        Returns
        -------
        NextExperiments
            With `starts`, `differences` in units of noise, `to_frame()` and `plot()`. Rivals are run with the
            coefficients that they have now; with new data these would adapt, so that differences are upper bounds.
        """
        found = self._searched("distinguish")
        if not isinstance(found, FoundStates) or not isinstance(self.model_, StateModel) or self.shared:
            raise ValueError("distinguish() is for one set of equations, found in trajectory form.")
        if (u is None) == bool(self.model_.n_inputs):
            raise ValueError("u is a list of inputs to choose from: give it where the model has inputs, and only then.")
        times = None if t is None else self.elapsed(t)
        return distinguishing(found, self.model_, n, bounds, times, u, within, random_state)

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
