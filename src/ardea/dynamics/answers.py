"""What can be asked of equations while the data behind them are at hand, such as which experiment to do next.

With runs x of the model and x′ of a rival from the same start, noise s of the samples and the same times as output,
Σ (x − x′)²/s² over states and times is what new samples are expected to say against the rival, in units of −2 ln p. The
starts are chosen one after the other: each makes the least of these sums over all rivals, with those of the starts
before it, as large as it can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ardea.core.problem import Array
from ardea.dynamics.field_equation import compared_rows
from ardea.dynamics.fields import FieldWishes, read_fields
from ardea.dynamics.found import FoundStates
from ardea.dynamics.models import EquationsOfMotion, FieldModel, Motion, StateModel
from ardea.dynamics.rows import Differentiation, Form, Stretch, stretch_rows
from ardea.dynamics.search import FoundRows
from ardea.dynamics.series import Clock, Series, checked_series
from ardea.dynamics.simulation import simulate_draws
from ardea.equation import CLOSE

if TYPE_CHECKING:
    import pandas as pd

# Bounds on work (conventions): starts that are tried for every input, and rivals that are told apart.
N_STARTS, MOST_RIVALS = 128, 4


@dataclass(frozen=True, eq=False)
class NextExperiments:
    """Experiments that would tell rival models apart.

    Attributes
    ----------
    starts : array of shape (experiments, states)
        Where to begin.
    inputs : list of int or None
        Which of the inputs given to take.
    differences : array of shape (experiments, rivals)
        How far the runs of the model and of every rival are apart: root mean square over times and states, in units of
        the noise of the samples.
    rivals : list of str
        The rivals' equations, as far as they differ from the model's.
    t : array of shape (times,)
        Times of the runs.
    runs : array of shape (experiments, 1 + rivals, times, states)
        Runs of the model and of its rivals; NaN from where one stops.
    noise : array of shape (states,)
        Standard deviation of the samples' noise.
    names : list of str
        Names of the states.
    """

    starts: Array
    inputs: list[int] | None
    differences: Array
    rivals: list[str]
    t: Array
    runs: Array
    noise: Array
    names: list[str]

    def to_frame(self) -> pd.DataFrame:
        """Return starts, inputs where there is a choice, and differences from every rival, one row per experiment."""
        import pandas as pd

        frame = pd.DataFrame(self.starts, columns=self.names)
        if self.inputs is not None:
            frame["input"] = self.inputs
        for number, rival in enumerate(self.rivals):
            frame[rival] = self.differences[:, number]
        return frame

    def plot(self, axes: Any = None) -> Any:
        """Draw the runs of the model and of its rivals from every start; see :func:`ardea.show.plot_experiments`."""
        from ardea.show.motion import plot_experiments

        return plot_experiments(self, axes=axes)


def distinguishing(
    found: FoundStates,
    model: StateModel,
    n: int,
    bounds: Any,
    t: Any,
    u: Sequence[ArrayLike] | None,
    within: float,
    generator: Any,
) -> NextExperiments:
    """Return n starts, and inputs, from which the model and its rivals run apart."""
    rivals = _rivals(found, within, len(model.lefts))
    if not rivals:
        raise ValueError(
            f"No rival is within {within:g} of the model: the data tell all others apart. Give a larger `within` to "
            "look at those further away."
        )
    times = found.times[0] if t is None else np.asarray(t, dtype=float)
    places = _starts(model, found, bounds, generator)
    several = [None] if u is None else [np.asarray(one, dtype=float) for one in u]
    models = [model.parameters, *(values for values, _ in rivals)]
    # (inputs, models, starts, times, states)
    runs = np.array([[_run(model, one, places, times, inputs) for one in models] for inputs in several])
    measured = len(found.sample_noise)
    noise = found.noise[:measured]
    gaps = (runs[:, 1:] - runs[:, :1])[..., :measured] / noise
    apart = np.nansum(gaps**2, axis=(3, 4))  # as long as both run
    said = apart.transpose(0, 2, 1).reshape(-1, len(rivals))  # of every input and start
    chosen: list[int] = []
    for _ in range(min(n, len(said))):
        total = said + said[chosen].sum(axis=0)
        total[chosen] = -1.0
        chosen.append(int(np.argmax(total.min(axis=1))))
    which, start = np.divmod(chosen, len(places))
    return NextExperiments(
        starts=places[start],
        inputs=None if u is None else which.tolist(),
        differences=np.sqrt(said[chosen] / (len(times) * measured)),
        rivals=[_told(support, found, model) for _, support in rivals],
        t=times,
        runs=runs[which, :, start],
        noise=noise,
        names=model.states,
    )


def _rivals(found: FoundStates, within: float, n_equations: int) -> list[tuple[Array, tuple[int, ...]]]:
    """Return coefficients, with constants behind them, and candidates of models that are hardly worse, best first."""
    pursuit, best = found.pursuit, found.pursuit.score(found.fit)
    if not pursuit.with_process:
        for support, excess in pursuit.near(found.linear):
            if excess < within and support not in pursuit.met:
                pursuit.fit(support, found.fit.point, pursuit.levels[-2:])
    first = found.likelihood.n - n_equations
    close = [one for one in pursuit.rivals if one.support != found.fit.support]
    close = [one for one in close if pursuit.score(one) < best + within]
    return [(found.parameters(one)[first:], one.support) for one in close[:MOST_RIVALS]]


def _told(support: tuple[int, ...], found: FoundStates, model: StateModel) -> str:
    """Return the equations of a rival that differ from the model's."""
    d, names, first = found.likelihood.d, model.vocabulary.names, found.likelihood.n - len(model.lefts)
    changed = sorted({j // d for j in set(support) ^ set(found.fit.support)})
    return "; ".join(f"{model.lefts[one - first].text}: {found.worded(support, one, names)}" for one in changed)


def _starts(model: StateModel, found: FoundStates, bounds: Any, generator: Any) -> Array:
    """Return starts that fill the bounds evenly, those of the states by default."""
    states = found.fit.point.states
    low, high = states.min(axis=0), states.max(axis=0)
    if bounds is not None:
        unknown = [name for name in bounds if name not in model.states]
        if unknown:
            raise ValueError(f"bounds: there is no state {unknown[0]!r}, only {', '.join(map(repr, model.states))}.")
        ends = [bounds.get(name, (a, b)) for name, a, b in zip(model.states, low, high, strict=True)]
        low, high = np.array(ends, dtype=float).T
        if not np.all(low <= high):
            raise ValueError("bounds must be {state: (least, largest)}.")
    points = qmc.Sobol(len(low), seed=generator).random(N_STARTS)
    return np.asarray(low + points * (high - low))


def _run(model: StateModel, parameters: Array, starts: Array, t: Array, u: Array | None) -> Array:
    """Return runs of one model from all starts, (starts, times, states)."""
    d = model.coefficients.shape[1]
    constants = None if model.constants is None else parameters[:, d:]
    one = replace(model, coefficients=parameters[:, :d], constants=constants)
    steps = np.arange(float(len(t))) if model.discrete_time else t
    everywhere = one.with_parameters(np.repeat(parameters[None], len(starts), axis=0))
    return simulate_draws(everywhere, starts, steps, inputs=u, **one.settings)[0]


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
        experiments, found = list[Any](), cast(Any, self.searched_)
        for series in range(len(found.times)) if isinstance(found, FoundStates) else ():
            one, own = copy(self), replace(found, series=series)
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
        if trajectory is None:
            return self.coef_
        experiments = self._experiments("coefficients(trajectory=…)")
        if not -len(experiments) <= trajectory < len(experiments):
            raise ValueError(f"trajectory={trajectory!r}: there are {len(experiments)}, counted from 0.")
        return np.asarray(experiments[trajectory].coef_)

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
        parts = [
            pd.DataFrame(equation.table(level)).assign(equation=equation.name, trajectory=number)
            for number, one in enumerate(experiments)
            for equation in one.equations_
        ]
        frame, numbers = pd.concat(parts, ignore_index=True), parts[0].columns[1:-2]
        first = ["equation", "term", "trajectory"]
        if values is not None:
            frame["covariate"] = values[frame["trajectory"]]
            first.append("covariate")
        frame["place"] = frame["equation"].map(self.feature_names_.index)
        frame = frame.sort_values(["place", "term", "trajectory"], kind="stable", ignore_index=True)
        return frame[[*first, *numbers]]

    def _experiments(self, asked: str) -> list[Any]:
        check_is_fitted(self)
        if self.experiments_ is None:
            raise ValueError(f"{asked} is for trajectories that differ: fit several with shared='structure'.")
        return self.experiments_

    def _stretches(self, series: Sequence[Series]) -> list[Stretch]:
        form = "derivative" if self.form == "derivative" else "weak"
        return stretch_rows(series, form, bool(self.discrete_time), self.differentiation, self.order)

    def score(self, x: Any, t: Any = None, x_dot: Any = None, u: Any = None, space: Any = None) -> float:
        """Return R², the share of variance explained, on these or other data; the mean of all equations.

        Compared are x_dot, where given, with what the equations say of it, else the two sides of the rows of the form
        fitted. In the weak form these are −∫φ′x and ∫φ Θ(x)ξ: noise is averaged out as in the fit, so that the score
        says something of the model and not of the noise. Of fields the sides are smoothed as in the fit, too.

        Parameters
        ----------
        x, t, x_dot, u : see `fit`
            Of fields, u are those that are known: {"V": V}.
        space : see `fit`, optional
            Where fields are on another grid than those of the fit.
        """
        return float(np.mean(self.scores(x, t, x_dot, u, space)))

    def scores(self, x: Any, t: Any = None, x_dot: Any = None, u: Any = None, space: Any = None) -> Array:
        """Return R² of every equation; see `score`."""
        check_is_fitted(self)
        if self.experiments_ is not None:
            raise ValueError("Trajectories have coefficients of their own: ask the models in experiments_ for theirs.")
        fields = isinstance(self.model_, FieldModel)
        if getattr(self.model_, "order", 1) == 2 and not fields:
            raise ValueError(
                "score() compares rates of change, which positions do not have (derivative_order=2): compare "
                "simulate(…) with the positions, or read misfit_."
            )
        observed, modelled = self._field_sides(x, t, x_dot, u, space) if fields else self._sides(x, t, x_dot, u)
        # Rows of the weak form have signs of their own, and no mean.
        weak = fields or (x_dot is None and self.form != "derivative")
        spread = np.sum((observed - (0.0 if weak else observed.mean(axis=0))) ** 2, axis=0)
        lost = np.sum((observed - modelled) ** 2, axis=0)
        return np.asarray(1 - lost / np.where(spread > 0, spread, 1.0))

    def _sides(self, x: Any, t: Any, x_dot: Any, u: Any) -> tuple[Array, Array]:
        assert isinstance(self.model_, StateModel)
        trajectories = [self._ordered(one) for one in x] if isinstance(x, list | tuple) else self._ordered(x)
        series, *_ = checked_series(trajectories, self.elapsed(t), x_dot, u, self.model_.names)
        if x_dot is not None:
            pairs = [(one.x_dot, self._slopes(one)) for one in series]
        else:
            pairs = [(one.D @ one.data.x, one.V @ self._slopes(one.data)) for one in self._stretches(series)]
        observed, modelled = (np.vstack(parts) for parts in zip(*pairs, strict=True))
        return observed, modelled

    def _field_sides(self, x: Any, t: Any, x_dot: Any, u: Any, space: Any) -> tuple[Array, Array]:
        assert isinstance(self.model_, FieldModel)
        if x_dot is not None:
            raise ValueError("Fields have no x_dot.")
        own = self.model_.space if space is None and not hasattr(x, "coords") else space
        names = self.model_.fields[: len(self.model_.fields) - self.model_.n_known]
        first = x[0] if isinstance(x, list | tuple) else x
        given = FieldWishes(own, np.iscomplexobj(first), u)
        runs, _ = read_fields(x, None if t is None else self.elapsed(t), given, names)
        if runs[0].names != self.model_.fields:
            raise ValueError(f"u must have the known fields, {', '.join(self.model_.fields[len(names) :]) or 'none'}.")
        return compared_rows(self.model_, runs)

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
        if self.shared:
            raise ValueError(
                "distinguish() is not known for shared=…: a rival would need coefficients of its own in every "
                "trajectory. Fit one trajectory alone, or all without shared, and ask that model."
            )
        if not isinstance(found, FoundStates) or not isinstance(self.model_, StateModel):
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
