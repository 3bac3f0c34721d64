"""What was found: models of states or of fields that predict and run, their equations, and what is doubtful there."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ardea.core.lazy import cached_property
from ardea.core.problem import Array, Index, require
from ardea.dynamics.differences import finite_difference
from ardea.dynamics.field_runs import from_data, run_fields
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Library
from ardea.dynamics.right_hand_side import RightHandSide, to_run, with_rates
from ardea.dynamics.series import IN_WORDS, SAME_TIME, Clock, calendar, in_order
from ardea.dynamics.simulation import (
    BLOW_UP,
    TOLERANCE,
    Bands,
    Driven,
    SimulationWarning,
    drawn_starts,
    simulate_draws,
    simulate_states,
)
from ardea.dynamics.states import Joint, KnownState
from ardea.dynamics.told import open_questions
from ardea.equation import Equation
from ardea.names import Left, LeftKind, Wording, check_candidates
from ardea.show.report import ShowsMotion


@dataclass(frozen=True, eq=False)
class StateModel:
    """x′ = Θ(x, u)ξᵀ, the map x_{k+1} = Θ(x_k, u_k)ξᵀ, or x″ = Θ(x, x′, u)ξᵀ."""

    library: Library
    names: list[str]  # measured states, then inputs
    coefficients: Array
    reach: Array  # largest |x| in the data
    discrete_time: bool
    order: int = 1
    constants: Array | None = None  # inside terms, of every equation; None where terms have none
    held: tuple[int, ...] = ()  # inputs that switch

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return len(self.names) - len(self.coefficients)

    @property
    def states(self) -> list[str]:
        """Names of all states: with order 2, rates of change follow the positions."""
        measured = self.names[: len(self.coefficients)]
        return measured + [f"{name}'" for name in measured] * (self.order - 1)

    @property
    def variables(self) -> list[str]:
        """Names of all states, then of the inputs."""
        return [*self.states, *self.names[len(self.coefficients) :]]

    @property
    def lefts(self) -> list[Left]:
        """The left-hand sides."""
        kind: LeftKind = "next" if self.discrete_time else "second" if self.order == 2 else "rate"
        return [Left(name, kind) for name in self.names[: len(self.coefficients)]]

    @cached_property
    def vocabulary(self) -> Wording:
        """How the candidate terms are written."""
        return self.library.vocabulary(self.variables)

    def check_names(self, x_dot: Any) -> None:
        """Refuse names of states or terms that stand for two things, and slopes that are states themselves."""
        if self.order == 2 and x_dot is not None:
            raise ValueError("derivative_order=2 finds rates of change itself: leave x_dot out.")
        if twice := sorted({name for name in self.variables if list(self.variables).count(name) > 1}):
            raise ValueError(f"Two states, inputs or rates of change have the name {twice[0]!r}: rename one of them.")
        check_candidates(self.vocabulary.names)

    @property
    def parameters(self) -> Array:
        """Coefficients of every equation, and constants inside its terms behind them."""
        return np.hstack([one for one in (self.coefficients, self.constants) if one is not None])

    @cached_property
    def right_hand_side(self) -> RightHandSide:
        """The model as a function; `.row(x)` takes microseconds."""
        return self.with_parameters(self.parameters)

    def with_parameters(self, parameters: Array) -> RightHandSide:
        """Return the right-hand side for coefficients, and constants behind them, or draws of both."""
        n, make, constants = len(self.coefficients), RightHandSide if self.order == 1 else with_rates, np.empty((0, 1))
        library, given = self.library, parameters.reshape(-1, n, parameters.shape[-1])
        if self.constants is not None:
            library, given, constants = to_run(library, given, self.constants, len(self.variables))
        return make(library, given, n, self.n_inputs, constants)

    def predict(self, x: ArrayLike, u: ArrayLike | None = None) -> Array:
        """Return x′, the next state, or x″."""
        return self.right_hand_side(x, u)[:, (self.order - 1) * len(self.coefficients) :]

    def simulate(self, x0: ArrayLike, t: Any, u: Any) -> Array:
        """Integrate from a start."""
        return simulate_states(self.right_hand_side, x0, t, inputs=u, **self.settings)

    def simulate_bands(
        self, draws: Array, x0: ArrayLike, t: Any, u: Any, level: float, driven: Driven | None = None
    ) -> Bands:
        """Integrate with every draw of the coefficients, from one start or from a start for every draw."""
        samples, _ = simulate_draws(self.with_parameters(draws), x0, t, inputs=u, driven=driven, **self.settings)
        return Bands.of(samples, np.arange(samples.shape[1]) if self.discrete_time else t, level)

    @property
    def settings(self) -> dict[str, Any]:
        """When a simulation stops, and how accurate it is."""
        limit, error = BLOW_UP * self.reach, TOLERANCE * self.reach
        if self.order == 2:  # nothing is known of how fast it may get
            limit, error = np.concatenate([limit, np.full_like(limit, np.inf)]), np.tile(error, 2)
        return {"discrete_time": self.discrete_time, "limit": limit, "atol": error, "held": self.held}


@dataclass(frozen=True, eq=False)
class FieldModel:
    """u_t = Σ ξ_i m(u) ∂^β u."""

    library: FieldTerms
    fields: list[str]
    axes: list[str]
    coefficients: Array
    space: tuple[Array, ...]
    reach: Array  # largest |u| in the data
    solved: list[str]  # those with an equation
    n_known: int = 0  # the last of the fields, known without error
    order: int = 1

    @property
    def lefts(self) -> list[Left]:
        """The left-hand sides."""
        return [Left(name, "field_second" if self.order == 2 else "field") for name in self.solved]

    @cached_property
    def vocabulary(self) -> Wording:
        """How the candidate terms are written."""
        return self.library.vocabulary(self.fields, self.axes, self.n_known)

    def predict(self, x: ArrayLike, u: ArrayLike | None = None) -> Array:
        """Return u_t of fields on the grid, derivatives by differences of sixth order (one-sided at the ends)."""
        grid = tuple(len(points) for points in self.space)
        values = np.asarray(x, dtype=float)
        trailing = values.shape[len(grid) :]
        if values.shape[: len(grid)] != grid:
            raise ValueError(f"x must begin with the shape of the grid, {grid}, got {values.shape}.")
        several = len(self.fields) > 1
        if several and (not trailing or trailing[-1] != len(self.fields)):
            raise ValueError(f"x must have a last axis of {len(self.fields)} fields, {', '.join(self.fields)}.")
        fields = [values[..., i] for i in range(len(self.fields))] if several else [values]

        def derivative(field: int, orders: tuple[int, ...]) -> Array:
            out = fields[field]
            for axis, order in enumerate(orders):
                if order:
                    out = finite_difference(out, self.space[axis], derivative=order, axis=axis)
            return out

        used = np.flatnonzero(np.any(self.coefficients != 0, axis=0))
        columns = self.library.evaluate(fields, derivative, n_axes=len(grid), terms=used.tolist(), n_known=self.n_known)
        slopes = [(columns @ row[used]).reshape(fields[0].shape) for row in self.coefficients]
        return np.stack(slopes, axis=-1) if len(slopes) > 1 else slopes[0]

    @property
    def states(self) -> list[str]:
        """Names of the fields that are solved for; with order 2 their rates of change follow."""
        return self.solved + [f"{name}_t" for name in self.solved] * (self.order - 1)

    def simulate(self, x0: ArrayLike, t: Any, u: Any, boundary: Any = None) -> Array:
        """Integrate from fields at t[0], periodic in space or, in one dimension, between walls with given values."""
        return run_fields(self, self.coefficients, x0, t, u, boundary)

    def simulate_bands(
        self, draws: Array, x0: ArrayLike, t: Any, u: Any, level: float, driven: None = None, boundary: Any = None
    ) -> Bands:
        """Integrate with every draw of the coefficients, from one start or from a start for every draw."""
        times, several = np.asarray(t, dtype=float), len(self.states) > 1
        grid = tuple(len(points) for points in self.space)
        shape = (len(draws), *grid, len(times), *[len(self.states)] * several)
        require(8 * 3 * prod(shape), f"Simulations with {len(draws)} draws")
        samples = np.full(shape, np.nan)
        starts: Any = x0 if np.ndim(x0) > len(grid) + several else [x0] * len(draws)
        before = (slice(None),) * len(grid)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)
            for sample, xi, start in zip(samples, draws, starts, strict=True):
                run = run_fields(self, xi, start, times, u, boundary)
                sample[(*before, slice(run.shape[len(grid)]))] = run
        return Bands.of(samples, times, level, time_axis=len(grid))


# What Discovery asks of either: lefts, vocabulary, coefficients, predict, simulate, simulate_bands.
Motion = StateModel | FieldModel


class EquationsOfMotion(ShowsMotion):
    """Equations that were found: read and run. All follows from `equations_`, and from `model_` to run them."""

    joint_: Joint | None = None  # of a trajectory: how equations and states depend on each other
    process_noise_: Any = None
    process_growth_: Any = None
    experiments_: list[Any] | None = None  # a model of every trajectory, where their coefficients differ
    false_terms: float | None

    def _adopt(
        self,
        model: Motion,
        equations: Sequence[Equation],
        clock: Clock,
        doubts: Sequence[str],
        joint: Joint | None = None,
    ) -> None:
        self.equations_, self.model_, self.joint_, self.experiments_ = list(equations), model, joint, None
        kept = [one.parameters.mean for one in equations] if joint is None else [joint.estimate(equations).mean]
        values, d = self._spread(np.concatenate(kept)[None])[0], len(model.vocabulary.names)
        self.model_ = replace(model, coefficients=values[:, :d])
        if isinstance(self.model_, StateModel) and model.vocabulary.constants:
            self.model_ = replace(self.model_, constants=values[:, d:])
        self.feature_names_ = [equation.name for equation in equations]
        self.time_unit_, self.time_origin_ = clock.unit, clock.origin
        self.warnings_ = list(doubts)

    @property
    def coef_(self) -> Array:
        """Coefficients, zero for terms that are not in the model."""
        return self.model_.coefficients

    @property
    def coef_std_(self) -> Array:
        """Standard errors, zero for terms that are not in the model."""
        return np.array([equation.spread(equation.std) for equation in self.equations_])

    @property
    def coef_covariance_(self) -> list[Array]:
        """Covariance of the coefficients found, one per equation."""
        return [equation.covariance for equation in self.equations_]

    @property
    def complexity(self) -> int:
        """Number of terms in all equations."""
        check_is_fitted(self)
        return int(np.count_nonzero(self.coef_))

    def get_feature_names(self) -> list[str]:
        """Return the names of all candidate terms."""
        check_is_fitted(self)
        return list(self.model_.vocabulary.names)

    def equations(self, precision: int | None = None) -> list[str]:
        """Return the right-hand sides as text; coefficients to two digits of their standard errors.

        Parameters
        ----------
        precision : int, optional
            Fixed number of decimal places instead.
        """
        check_is_fitted(self)
        return [equation.right_hand_side(precision) for equation in self.equations_]

    def print(self, level: float = 0.95, file: Any = None, precision: int | None = None) -> None:
        """Print the equations with intervals, close rivals where there are some, and what `false_terms` promised.

        Parameters
        ----------
        level : float
            Probability inside the intervals.
        file : text stream, optional
            Where to print; standard output by default.
        precision : int, optional
            Print coefficients to so many decimal places, without intervals.
        """
        check_is_fitted(self)
        if self.experiments_ is not None:
            for number, one in enumerate(self.experiments_):
                print(f"Trajectory {number}:", file=file)
                one.print(level, file, precision)
            return
        for equation in self.equations_:
            right = equation.with_intervals(level) if precision is None else equation.right_hand_side(precision)
            print(f"{equation.left.text} = {right}", file=file)
            for remark in open_questions(equation):
                print(f"    {remark}", file=file)
        if told := self.unit_told():
            print(told, file=file)
        if getattr(self, "false_terms", None) is not None:
            print(f"In all equations together, {self.false_terms:g} false terms are expected at most.", file=file)

    def unit_told(self) -> str:
        """Return a sentence on the unit of time, where it is known, and on trajectories, where these differ."""
        check_is_fitted(self)
        several = self.experiments_ is not None
        first = f"The first of {len(self.experiments_ or ())} trajectories, whose coefficients differ (experiments_)."
        if self.time_unit_ is None or getattr(self.model_, "discrete_time", False):
            return first * several
        unit = IN_WORDS[self.time_unit_]
        return f"{first} " * several + f"Time is counted in {unit}s: rates of change are per {unit}."

    def elapsed(self, t: Any) -> Any:
        """Return times in the unit of the model: dates counted from the first of the data, numbers as they are.

        Parameters
        ----------
        t : array of shape (times,), or a list of arrays
            Times of one series, or of each of several.
        """
        if isinstance(t, list | tuple) and any(np.ndim(one) for one in t):
            return [self.elapsed(one) for one in t]
        return self._clock.numbers(t)

    def dates(self, numbers: Any) -> Any:
        """Return times as dates, where those of the data were (in UTC, where these named zones); else as they are.

        Parameters
        ----------
        numbers : array of shape (times,)
            Times in `time_unit_` since `time_origin_`.
        """
        return self._clock.dates(numbers)

    @property
    def _clock(self) -> Clock:
        return Clock(self.time_unit_, self.time_origin_)

    def latex(self) -> str:
        r"""Return the equations as LaTeX, an `aligned` environment."""
        check_is_fitted(self)
        lines = [equation.latex().replace(" = ", " &= ", 1) for equation in self.equations_]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def sympy(self) -> list[Any]:
        """Return the right-hand sides as SymPy expressions (needs the extra `symbolic`)."""
        check_is_fitted(self)
        return [equation.sympy() for equation in self.equations_]

    # Using the model

    def predict(self, x: ArrayLike, u: ArrayLike | None = None) -> Array:
        """Return the right-hand side: x′ (for a map the next state) at every row, u_t on the grid of a field.

        Parameters
        ----------
        x : array of shape (rows, states), or a field
            Where.
        u : array of shape (rows, inputs), optional
            Inputs.
        """
        check_is_fitted(self)
        return self.model_.predict(self._ordered(x), self._ordered(u, inputs=True))

    def _ordered(self, values: Any, *, inputs: bool = False) -> Any:
        """Return states, or inputs, in the order of the model: columns of a frame by name, masked values as NaN."""
        if values is None or callable(values) or isinstance(values, KnownState) or isinstance(self.model_, FieldModel):
            return values
        names = self.model_.names[len(self.equations_) :] if inputs else self.model_.states
        return in_order(values, names, "u" if inputs else "x")

    def sample(self, n: int, random_state: Any = None) -> Array:
        """Draw coefficients from their Gaussian posterior, shape (n, equations, terms); zeros stay zero.

        In trajectory form the coefficients of all equations are drawn together, with the correlations between them.
        """
        check_is_fitted(self)
        drawn = self._spread(self._kept_draws(n, check_random_state(random_state)))
        return drawn[:, :, : len(self.model_.vocabulary.names)]

    def _kept_draws(self, n: int, generator: Any) -> Array:
        """Return draws of all kept coefficients and constants, equation by equation, (n, k)."""
        if self.joint_ is not None:
            return self.joint_.sample(self.equations_, n, generator)
        return np.hstack([one.parameters.sample(n, generator) for one in self.equations_])

    def _spread(self, kept: Array) -> Array:
        """Return draws of the kept coefficients and constants as (n, equations, terms and constants)."""
        words = self.model_.vocabulary
        draws = np.zeros((len(kept), len(self.equations_), len(words.names) + len(words.constants)))
        rows = [number for number, one in enumerate(self.equations_) for _ in one.kept.support]
        draws[:, rows, [j for one in self.equations_ for j in one.kept.support]] = kept
        return draws

    def simulate(
        self,
        x0: ArrayLike | None = None,
        t: Any = None,
        u: Any = None,
        n_samples: int = 0,
        random_state: Any = None,
        level: float = 0.95,
        x0_std: ArrayLike | None = None,
        boundary: Any = None,
    ) -> Any:
        """Integrate the model from a start; with `n_samples` also with coefficients drawn from their posterior.

        Parameters
        ----------
        x0 : array of shape (states,), or a field of shape (n_x, …), fields last, optional
            Start, at t[0]; with derivative_order=2 positions, then rates. None, in trajectory form: the smoothed state
            at the first row or, from the last row on, there; where noise moves the system, at the latest row before.
        t : array of shape (times,), or int for a map
            Times of the output, numbers or dates, or the number of steps.
        u : callable, array or dict, optional
            Inputs as a function of time, or at `t`: held from one time to the next if they mostly stay what they were,
            else interpolated. Of fields, those without an equation: {"V": V} on the grid, or on the grid and at `t`.
        n_samples : int
            Number of draws. 0: the solution alone is returned.
        random_state : int, RandomState or None
            Seed of the draws.
        level : float
            Share of the draws inside the bands.
        x0_std : array like x0, optional
            Standard deviations of a start that is a noisy row (`[one.noise for one in model.equations_]`), for draws.
        boundary : pair of numbers or arrays, optional
            Fields count as periodic. In one dimension they need not: values at the left and the right end, numbers or
            arrays over `t`, fields last; ``(u[:2], u[-2:])`` if derivatives are of third or fourth order.

        Returns
        -------
        ndarray of shape (times, states) or (n_x, …, times), fields last, or Bands
            Bands have `lower`, `median`, `upper`, `samples` and `to_frame()`, without the noise of a measurement; noise
            of the process moves every draw. A model that blows up stops with a `SimulationWarning`.
        """
        check_is_fitted(self)
        if t is None or (x0_std is not None and n_samples == 0):
            what = "Give t: the times of the output, or the number of steps of a map."
            raise ValueError(what if t is None else "x0_std is for draws: give n_samples as well.")
        asked, t = t, self.elapsed(t)
        x0, u, walls = self._given(x0, t, u, boundary)
        known = self._known_state(t, x0_std) if x0 is None else x0 if isinstance(x0, KnownState) else None
        start, (t, rows) = (x0, (t, None)) if known is None else (known.mean, self._from_known(known, t, u))
        if n_samples == 0:
            run = self.model_.simulate(start, t, u, **walls)
            return run if rows is None else run[rows[rows < len(run)]]
        generator = check_random_state(random_state)
        kept = self._kept_draws(n_samples, generator)
        if known is not None and self.joint_ is not None:
            start = known.draws(kept - self.joint_.estimate(self.equations_).mean, generator)
        elif x0_std is not None:
            start = drawn_starts(x0, x0_std, n_samples, generator)
        bands = self.model_.simulate_bands(self._spread(kept), start, t, u, level, self._driven(generator), **walls)
        return bands if rows is None and calendar(asked) is None else bands.at(rows, asked)

    def _given(self, x0: Any, t: Any, u: Any, boundary: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Return start (of fields also that of the data), inputs and boundary in the order of the model."""
        if x0 is None and isinstance(self.model_, FieldModel):
            data = self._searched("without x0 simulate").results[0].rows.runs[0].data
            x0, u, boundary = from_data(self.model_, data, t, u, boundary)
        if boundary is not None and not isinstance(self.model_, FieldModel):
            raise ValueError("boundary is for fields; states have none.")
        return self._ordered(x0), self._ordered(u, inputs=True), {} if boundary is None else {"boundary": boundary}

    def _searched(self, asked: str) -> Any:
        """Return the data and the fit behind the equations."""
        check_is_fitted(self)
        if not hasattr(self, "searched_"):
            raise ValueError(f"{asked}() needs the data, which a model read from a file does not have: fit again.")
        return self.searched_

    def _known_state(self, t: Any, x0_std: Any) -> KnownState:
        if self.joint_ is None or x0_std is not None:
            raise ValueError("Give x0, the start: only models in trajectory form know one, with its uncertainty.")
        return self.joint_.before(t)

    def _from_known(self, known: KnownState, t: Any, u: Any) -> tuple[Any, Index | None]:
        """Return times of a run from a known state, and which of them are asked for; None for all."""
        if not np.ndim(t):
            return t, None
        times, begin, near = np.asarray(t, dtype=float), known.time, SAME_TIME * getattr(self.joint_, "step", 1.0)
        first, told = float(times[0]), self._clock.dates([begin, float(times[0])])
        if first < begin - near:
            raise ValueError(f"t begins at {told[1]}, before the data ({told[0]}): give x0, the state at t[0].")
        if first > begin + near and u is not None and not callable(u):
            raise ValueError(f"u must be known from {told[0]} on, a row of the data: let t begin there, or give x0.")
        if getattr(self.model_, "discrete_time", False):
            rows = np.round(times - begin).astype(np.intp)
            return int(rows[-1]) + 1, rows
        rows = np.arange(len(times)) + int(first > begin + near)
        return (np.concatenate([[begin], times]), rows) if rows[0] else (times, None)

    def _driven(self, generator: Any) -> Any:
        """Return the noise of the process, for simulations; None where there is none."""
        noise = self.process_noise_
        if self.joint_ is None or noise is None or not np.any(noise):
            return None
        still = np.zeros(self.joint_.first.mean.size - noise.size)  # positions follow their rates exactly
        power, usual = np.hstack([np.stack([still, still + 1]), self.process_growth_])
        return Driven(np.concatenate([still, noise]), power, usual, self.joint_.step, generator)
