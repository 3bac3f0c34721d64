"""Which experiment to do next: starts, or inputs, from which rival models run apart.

With runs x of the model and x′ of a rival from the same start, noise s of the samples and the same times as output,
Σ (x − x′)²/s² over states and times is what new samples are expected to say against the rival, in units of −2 ln p. The
starts are chosen one after the other: each makes the least of these sums over all rivals, with those of the starts
before it, as large as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc

from ardea.core.problem import Array
from ardea.dynamics.found import FoundStates
from ardea.dynamics.models import StateModel, listed
from ardea.dynamics.simulation import simulate_draws

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
    models = [model.coefficients, *(values for values, _ in rivals)]
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
    """Return coefficients and terms of models that are hardly worse, best first."""
    pursuit, best = found.pursuit, found.pursuit.score(found.fit)
    if not pursuit.with_process:
        for support, excess in pursuit.near(found.linear):
            if excess < within and support not in pursuit.met:
                pursuit.fit(support, found.fit.point, pursuit.levels[-2:])
    first = found.likelihood.n - n_equations
    close = [one for one in pursuit.ranking if one.support != found.fit.support]
    close = [one for one in close if pursuit.score(one) < best + within]
    return [(one.point.coefficients[first:], one.support) for one in close[:MOST_RIVALS]]


def _told(support: tuple[int, ...], found: FoundStates, model: StateModel) -> str:
    """Return the equations of a rival that differ from the model's."""
    d, names, first = found.likelihood.d, model.vocabulary.names, found.likelihood.n - len(model.lefts)
    changed = sorted({j // d for j in set(support) ^ set(found.fit.support)})
    return "; ".join(
        f"{model.lefts[one - first].text}: {listed([names[j % d] for j in support if j // d == one]) or 'nothing'}"
        for one in changed
    )


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


def _run(model: StateModel, coefficients: Array, starts: Array, t: Array, u: Array | None) -> Array:
    """Return runs of one model from all starts, (starts, times, states)."""
    one = replace(model, coefficients=coefficients)
    steps = np.arange(float(len(t))) if model.discrete_time else t
    runs, _ = simulate_draws(one.for_starts(len(starts)), starts, steps, inputs=u, **one.settings)
    return runs
