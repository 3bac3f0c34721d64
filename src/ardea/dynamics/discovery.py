"""Equations of motion from data, with error bars and without an oracle.

data (`states`, `fields`) → rows → for every equation a tournament of supports, each with its own whitening (`search`) →
coefficients, covariance, rivals (`equations`) → a model that can be read and simulated (`models`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from ardea.core.memory import require
from ardea.dynamics.equations import CLOSE, FoundEquation, Rival, latex_equation, summary_line, sympy_sum
from ardea.dynamics.field_equation import search_fields
from ardea.dynamics.fields import read_fields
from ardea.dynamics.libraries import FieldTerms, Library, default_library
from ardea.dynamics.models import FieldModel, StateModel
from ardea.dynamics.pieces import Differentiation
from ardea.dynamics.right_hand_side import RightHandSide
from ardea.dynamics.search import Effort, Found, Propose
from ardea.dynamics.states import RowScheme, Searched, checked_trajectories, search_states
from ardea.dynamics.subsets import Model, Support, System, ard_supports, regressor_supports
from ardea.dynamics.times import calendar, dates_to_times, per_unit
from ardea.dynamics.tournament import Contender, Tournament
from ardea.equation import ShowsTerms

Array = NDArray[np.float64]
Form = Literal["weak", "derivative"]

N_RIVALS = 8
# A state that varies less than this many times its noise says nothing of its equation.
LEAST_EXCITATION = 2.0
# Rivals closer than this are warned of; one that is ahead by more shows that the search has not come to rest.
INDISTINGUISHABLE = 1.0


class AmbiguityWarning(UserWarning):
    """The data do not tell two models apart."""


class Discovery(ShowsTerms, BaseEstimator):
    """Find sparse equations x′ = Θ(x)ξ (or x_{i+1} = Θ(x_i)ξ) from noisy data.

    Parameters
    ----------
    library : Library or FieldTerms, optional
        Candidate terms. None: polynomials of degree 3 (2 above ten states); for fields u^p ∂^q u, p, q ≤ 4.
    form : {"weak", "derivative"}, default="weak"
        Weak form (integrals against windows, which needs no derivative of noisy data), or derivatives at the samples.
    regressor : estimator of ardea, optional
        Proposes terms on every whitened system. None: ARD at α = 1 and 16 and backward elimination.
    discrete_time : bool, default=False
        The data are a map x_{i+1} = f(x_i).
    differentiation : {"finite", "smoothed", "spectral"}, default="finite"
        How derivatives are taken with form="derivative".
    order : int, default=6
        Order of finite differences.
    n_jobs : int, optional
        Equations found in parallel (joblib).
    verbose : int, default=0
        1 shows progress and the time left on standard error.

    Attributes
    ----------
    equations_ : list of FoundEquation
        Terms, coefficients, covariance, noise and rivals of every equation.
    coef_std_ : ndarray of shape (equations, terms)
        Standard errors, zero for terms that are not in the model.
    coef_covariance_ : list of ndarray
        Covariance of the coefficients found, one per equation.
    feature_names_ : list of str
        Names of the states.
    time_unit_ : {"s", "min", "h", "d"} or None
        Unit of time, where times were dates or it was told. None: that of the times given.
    warnings_ : list of str
        What the fit has warned of.

    Examples
    --------
    >>> from ardea.dynamics import Discovery, systems
    >>> t, x = systems.lorenz63().noisy(0.01, seed=0)
    >>> model = Discovery().fit(x, t, feature_names=["x", "y", "z"])
    >>> [sorted(equation.terms) for equation in model.equations_]
    [['x', 'y'], ['x', 'x z', 'y'], ['x y', 'z']]
    """

    def __init__(
        self,
        library: Any = None,
        form: Form = "weak",
        regressor: Any = None,
        discrete_time: bool = False,
        *,
        differentiation: Differentiation = "finite",
        order: int = 6,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.library = library
        self.form = form
        self.regressor = regressor
        self.discrete_time = discrete_time
        self.differentiation = differentiation
        self.order = order
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        x: Any,
        t: Any = None,
        x_dot: Any = None,
        u: Any = None,
        feature_names: Sequence[str] | None = None,
        space: Any = None,
        time_unit: str | None = None,
    ) -> Discovery:
        """Find the equations.

        Parameters
        ----------
        x : array of shape (times, states), DataFrame, or a list of them
            States; rows with NaN are gaps. Several trajectories as a list.
        t : array of shape (times,), float, or a list of arrays
            Times, or the step between samples. Uneven times are allowed. An xarray field brings its own. Dates and
            durations (of pandas, polars, xarray, NumPy) are counted in `time_unit` from the first.
        x_dot : like x, optional
            Derivatives, if they were measured.
        u : array of shape (times, inputs) or a list of them, optional
            Control inputs, taken as known without error.
        feature_names : list of str, optional
            Names of states, then of inputs; a DataFrame brings its own.
        space : tuple of arrays, optional
            Coordinates of the space axes: x is then a field of shape (len(x₁), …, len(t)), with an optional last axis
            of fields.
        time_unit : {"s", "min", "h", "d"}, optional
            Unit of time for dates; by default the longest that is not longer than their median step. Where times are
            numbers, the unit they are in.

        Returns
        -------
        self
        """
        self._check_parameters(space)
        # Many small matrices: threads of BLAS would only wait for each other. Use n_jobs for several equations.
        with threadpool_limits(1):
            return self._fit(x, t, x_dot, u, feature_names, space, time_unit)

    def _fit(
        self, x: Any, t: Any, x_dot: Any, u: Any, feature_names: Sequence[str] | None, space: Any, time_unit: str | None
    ) -> Discovery:
        self.model_: StateModel | FieldModel
        self.time_unit_: str | None
        if space is not None or isinstance(self.library, FieldTerms) or hasattr(x, "coords"):
            searched, self.model_, self.time_unit_ = self._fit_fields(x, t, x_dot, u, feature_names, space, time_unit)
        else:
            searched, self.model_, self.time_unit_ = self._fit_states(x, t, x_dot, u, feature_names, time_unit)
        self.feature_names_ = self.model_.unknowns
        terms = self.model_.term_names
        self.equations_ = [
            _described(one, name, terms, unit, self._propose)
            for one, name, unit in zip(searched.found, self.feature_names_, searched.noise_unit, strict=True)
        ]
        self._found = searched.found
        coefficients = self.model_.coefficients
        self.coef_std_ = np.zeros_like(coefficients)
        for row, equation in enumerate(self.equations_):
            coefficients[row, list(equation.support)] = equation.coefficients
            self.coef_std_[row, list(equation.support)] = equation.std
        self.coef_ = coefficients
        self.coef_covariance_ = [equation.covariance for equation in self.equations_]
        self.warnings_: list[str] = self._doubts(searched.excitation)
        for doubt in self.warnings_:
            warnings.warn(doubt, AmbiguityWarning, stacklevel=3)
        return self

    def _check_parameters(self, space: Any) -> None:
        if self.form not in ("weak", "derivative"):
            raise ValueError(f"form={self.form!r} is not known: choose 'weak' or 'derivative'.")
        if self.differentiation not in ("finite", "smoothed", "spectral"):
            raise ValueError(
                f"differentiation={self.differentiation!r} is not known: choose 'finite', 'smoothed' or 'spectral'."
            )
        if self.library is not None and not isinstance(self.library, Library | FieldTerms):
            raise TypeError(
                "library must be one of ardea.dynamics (Polynomials, Fourier, Custom, FieldTerms) or a sum or product "
                f"of them, got {type(self.library).__name__}."
            )
        if space is not None and isinstance(self.library, Library):
            raise TypeError("Fields (space=...) need a library of FieldTerms.")

    def _propose(self, system: System) -> list[Support]:
        return ard_supports(system) if self.regressor is None else regressor_supports(self.regressor, system)

    def _fit_states(
        self, x: Any, t: Any, x_dot: Any, u: Any, names: Sequence[str] | None, time_unit: str | None
    ) -> tuple[Searched, StateModel, str | None]:
        trajectories, all_names, unit = checked_trajectories(x, t, x_dot, u, names, time_unit)
        n_states = trajectories[0].x.shape[1]
        library: Library = default_library(len(all_names)) if self.library is None else self.library
        rows, d = sum(len(one.x) for one in trajectories), library.n_terms(len(all_names))
        # What pieces hold of every row, about 800 bytes as measured, and the whitened columns.
        require(8 * (rows * (100 + d) + 4 * d**2), f"A search among {d} terms over {rows} rows")
        searched = search_states(trajectories, library, self._scheme(), self._propose, self._effort())
        everything = np.vstack([one.x for one in trajectories])
        reach = np.maximum(np.nanmax(np.abs(everything), axis=0), np.finfo(float).tiny)
        zeros = np.zeros((n_states, d))
        return searched, StateModel(library, all_names, zeros, reach, bool(self.discrete_time)), unit

    def _fit_fields(
        self, x: Any, t: Any, x_dot: Any, u: Any, names: Sequence[str] | None, space: Any, time_unit: str | None
    ) -> tuple[Searched, FieldModel, str | None]:
        if x_dot is not None or u is not None or self.discrete_time or self.form != "weak":
            raise ValueError("Fields are found in weak form, without x_dot, inputs u or discrete time.")
        data, unit = read_fields(x, t, space, names, time_unit)
        library = FieldTerms() if self.library is None else self.library
        searched = search_fields(data, library, self._propose, self._effort())
        zeros = np.zeros((data.n_fields, library.n_terms(data.n_fields, len(data.space))))
        return searched, FieldModel(library, data.names, data.axes, zeros, data.space, data.reach), unit

    def _effort(self) -> Effort:
        return Effort(self.n_jobs, bool(self.verbose))

    def _scheme(self) -> RowScheme:
        return RowScheme(self.form, bool(self.discrete_time), self.differentiation, self.order)

    def _doubts(self, excitation: Array) -> list[str]:
        """Return what is to be warned of: models that the data or the search leave open, states that hardly move."""
        doubts = []
        for equation in self.equations_:
            left, chosen = self.model_.left(equation.name), ", ".join(equation.terms)
            rivals = equation.close_rivals(INDISTINGUISHABLE)
            others = [*equation.equivalents, *(rival.terms for rival in rivals)]
            if rivals and rivals[0].excess < -INDISTINGUISHABLE:
                doubts.append(
                    f"The search for {left} has not come to rest: by its own criterion [{', '.join(rivals[0].terms)}] "
                    f"is {rivals[0].compared} of [{chosen}]. Often no candidate holds: see that times, order of the "
                    "rows and library are right (docs/warnings/ambiguity)."
                )
            elif others:
                doubts.append(
                    f"The data hardly tell two models of {left} apart: [{chosen}] and [{', '.join(others[0])}]. Longer "
                    "or richer data would (docs/warnings/ambiguity)."
                )
        for name, ratio in zip(self.feature_names_, excitation, strict=True):
            if ratio < LEAST_EXCITATION:
                doubts.append(
                    f"{name} varies only {ratio:.1f} times as much as its noise: the data are too little excited (a "
                    "fixed point?) to find its equation (docs/warnings/ambiguity)."
                )
        return doubts

    # Reading the model

    def coefficients(self) -> Array:
        """Return ξ, shape (equations, terms)."""
        check_is_fitted(self)
        return self.coef_

    @property
    def complexity(self) -> int:
        """Number of terms in all equations."""
        check_is_fitted(self)
        return int(np.count_nonzero(self.coef_))

    def get_feature_names(self) -> list[str]:
        """Return the names of all candidate terms."""
        check_is_fitted(self)
        return self.model_.term_names

    def equations(self, precision: int | None = None) -> list[str]:
        """Return the right-hand sides as text; coefficients to two digits of their standard errors.

        Parameters
        ----------
        precision : int, optional
            Fixed number of decimal places instead.
        """
        check_is_fitted(self)
        return [equation.right_hand_side(precision) for equation in self.equations_]

    def print(self, level: float = 0.95, file: Any = None) -> None:
        """Print the equations with intervals, and close rivals where there are some."""
        check_is_fitted(self)
        for equation in self.equations_:
            print("\n".join(summary_line(equation, self.model_.left(equation.name), level)), file=file)
        if told := self._unit_told():
            print(told, file=file)

    def _unit_told(self) -> str:
        """Return a sentence on the unit of time, where it is known."""
        rate = per_unit(getattr(self, "time_unit_", None))
        if not rate or getattr(self.model_, "discrete_time", False):
            return ""
        return f"Time is counted in {rate.removeprefix('per ')}s: rates of change are {rate}."

    def _elapsed(self, t: Any) -> Any:
        """Return times in the unit of the model: dates from the first of them, numbers as they are."""
        dates = calendar(t)
        if dates is None:
            return t
        unit = getattr(self, "time_unit_", None)
        if unit is None:
            raise ValueError("The model was fitted to times in numbers: give numbers in their unit here, not dates.")
        return dates_to_times(dates, unit)

    def _elapsed_each(self, x: Any, t: Any) -> Any:
        """Return the times of one series, or of each of several."""
        several = isinstance(x, list | tuple) and isinstance(t, list | tuple)
        return [self._elapsed(one) for one in t] if several else self._elapsed(t)

    def latex(self) -> str:
        r"""Return the equations as LaTeX, an `aligned` environment."""
        check_is_fitted(self)
        terms = self.model_.latex_terms
        lines = [
            latex_equation(self.model_.latex_left(equation.name), equation, terms).replace(" = ", " &= ", 1)
            for equation in self.equations_
        ]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def sympy(self) -> list[Any]:
        """Return the right-hand sides as SymPy expressions (needs the extra `symbolic`)."""
        check_is_fitted(self)
        return [sympy_sum(one.coefficients, self.model_.sympy_terms(one.support)) for one in self.equations_]

    # Using the model

    @property
    def right_hand_side_(self) -> RightHandSide:
        """The model of states as a function: `right_hand_side_.row(x)` takes microseconds."""
        check_is_fitted(self)
        if not isinstance(self.model_, StateModel):
            raise AttributeError("right_hand_side_ is for models of states; fields have predict and simulate.")
        return self.model_.right_hand_side

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
        return self.model_.predict(x, u)

    def sample(self, n: int, random_state: Any = None) -> Array:
        """Draw coefficients from their Gaussian posterior, shape (n, equations, terms); zeros stay zero."""
        check_is_fitted(self)
        generator = check_random_state(random_state)
        draws = np.zeros((n, *self.coef_.shape))
        for row, equation in enumerate(self.equations_):
            if equation.support:
                values = generator.multivariate_normal(equation.coefficients, equation.covariance, n)
                draws[:, row, list(equation.support)] = values
        return draws

    def simulate(
        self,
        x0: ArrayLike,
        t: Any,
        u: Any = None,
        n_samples: int = 0,
        random_state: Any = None,
        level: float = 0.95,
        x0_std: ArrayLike | None = None,
    ) -> Any:
        """Integrate the model from a start; with `n_samples` also with coefficients drawn from their posterior.

        Parameters
        ----------
        x0 : array of shape (states,), or a field of shape (n_x,)
            Start.
        t : array of shape (times,), or int for a map
            Times of the output, or the number of steps. Dates are counted from the first of them in `time_unit_`.
        u : callable or array, optional
            Inputs as a function of time, or sampled at `t` (interpolated by a cubic spline).
        n_samples : int
            Number of draws. 0: the solution alone is returned.
        random_state : int, RandomState or None
            Seed of the draws.
        level : float
            Share of the draws inside the bands.
        x0_std : array like x0, optional
            Standard deviations of the start, where it is a noisy row (`[one.noise for one in model.equations_]`):
            every draw then begins at a point of its own. Without it the start counts as exact.

        Returns
        -------
        ndarray of shape (times, states) or (n_x, times), or Bands
            Bands have `lower`, `median`, `upper`, `samples` and `to_frame()`. They hold the state without the noise of
            a measurement. A model that blows up stops with a `SimulationWarning` and returns what it reached. Fields
            are taken as periodic in space.
        """
        check_is_fitted(self)
        t = self._elapsed(t)
        if n_samples == 0:
            if x0_std is not None:
                raise ValueError("x0_std is for draws: give n_samples as well.")
            return self.model_.simulate(self.coef_, x0, t, u).x
        generator = check_random_state(random_state)
        draws = self.sample(n_samples, generator)
        starts = None if x0_std is None else _drawn_starts(x0, x0_std, n_samples, generator)
        return self.model_.simulate_bands(draws, x0, t, u, level, starts)

    def score(self, x: Any, t: Any, x_dot: Any = None, u: Any = None) -> float:
        """Return R², the share of variance explained: of x_dot where given, else of the rows of the form fitted.

        In the weak form −∫φ′x is compared with ∫φ Θ(x)ξ: noise is averaged out as in the fit, so that the score says
        something of the model and not of the noise.
        """
        check_is_fitted(self)
        if not isinstance(self.model_, StateModel):
            raise NotImplementedError("score() is for models of states; compare predict(u) with u_t for fields.")
        trajectories, *_ = checked_trajectories(x, self._elapsed_each(x, t), x_dot, u, self.model_.names)
        if x_dot is not None:
            pairs = [(one.x_dot, self._slopes(one)) for one in trajectories]
        else:
            pairs = [
                (piece.D @ piece.x, piece.V @ self._slopes(piece)) for piece in self._scheme().pieces(trajectories)
            ]
        observed, modelled = (np.vstack(parts) for parts in zip(*pairs, strict=True))
        spread = np.sum((observed - observed.mean(axis=0)) ** 2, axis=0)
        lost = np.sum((observed - modelled) ** 2, axis=0)
        return float(np.mean(1 - lost / np.where(spread > 0, spread, 1.0)))

    def _slopes(self, data: Any) -> Array:
        return self.predict(data.x, data.inputs if data.inputs.shape[1] else None)

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
        check_is_fitted(self)
        if not hasattr(self, "_found"):
            raise ValueError("inclusion() needs the data, which a loaded model does not have: fit again.")
        generator = check_random_state(random_state)
        chosen = np.zeros(self.coef_.shape)
        for row, found in enumerate(self._found):
            A, z = found.equation.system(found.fit)
            for _ in range(n_resamples):
                rows = generator.randint(0, z.size, z.size)
                system = System.of(A[rows], z[rows], floor=found.fit.floor)
                chosen[row, list(system.select(ard_supports(system))[0].support)] += 1
        return chosen / n_resamples

    # Showing the model

    def report(self, path: Any, x: Any = None, t: Any = None, u: Any = None, **details: Any) -> Any:
        """Write one self-contained HTML page about the model; see :func:`~ardea.show.report.report_page`."""
        from ardea.show.report import write_report

        return write_report(self, path, data=None if x is None else (x, self._elapsed_each(x, t), u), **details)

    def plot_coefficients(self, axes: Any = None, **details: Any) -> Any:
        """Draw the terms of every equation with error bars; see :func:`ardea.show.plots.plot_coefficients`."""
        from ardea.show.plots import plot_coefficients

        return plot_coefficients(self, axes, **details)

    def plot_residuals(self, axes: Any = None) -> Any:
        """Draw the whitened residuals of every equation; see :func:`ardea.show.plots.plot_equation_residuals`."""
        from ardea.show.plots import plot_equation_residuals

        return plot_equation_residuals(self, axes)

    def plot_simulation(self, x0: ArrayLike, t: Any, n_samples: int = 100, **details: Any) -> Any:
        """Draw a run of the model with bands; see :func:`ardea.show.plots.plot_simulation`."""
        from ardea.show.plots import plot_simulation

        return plot_simulation(self, x0, t, n_samples=n_samples, **details)

    def plot_phase(self, x0: ArrayLike | None = None, t: Any = None, n_samples: int = 20, **details: Any) -> Any:
        """Draw a run of the model in the plane of two states; see :func:`ardea.show.plots.plot_phase`."""
        from ardea.show.plots import plot_phase

        return plot_phase(self, x0, t, n_samples=n_samples, **details)


def _drawn_starts(x0: ArrayLike, x0_std: ArrayLike, n: int, generator: Any) -> Array:
    start, deviations = np.asarray(x0, dtype=float), np.asarray(x0_std, dtype=float)
    if deviations.shape not in ((), start.shape) or not np.all(deviations >= 0):
        raise ValueError(f"x0_std must be one number or one for each entry of x0 ({start.shape}), none below zero.")
    return np.asarray(start + deviations * generator.standard_normal((n, *start.shape)))


def _described(
    found: Found, name: str, term_names: Sequence[str], noise_unit: float, propose: Propose
) -> FoundEquation:
    """Return coefficients, covariance and rivals of an equation found."""
    A, z = found.equation.system(found.fit)
    columns = A[:, list(found.support)]
    inverse = np.linalg.pinv(columns)
    coefficients = inverse @ z
    residual = z - columns @ coefficients
    degrees = max(float(found.equation.n_rows) - found.n_parameters, 1.0)
    variance = float(residual @ residual) / degrees
    system = System.of(A, z, found.equation.n_rows, found.fit.floor)
    chosen = system.model(found.support)
    rivals = tuple(
        Rival(tuple(term_names[j] for j in support), excess)
        for support, excess in _compared(found, chosen, system.neighbours(chosen)[:N_RIVALS], propose)
    )
    return FoundEquation(
        name=name,
        terms=tuple(term_names[j] for j in found.support),
        support=found.support,
        coefficients=coefficients,
        covariance=variance * (inverse @ inverse.T),
        degrees=degrees,
        noise=noise_unit * float(np.sqrt(variance)),
        criterion=chosen.criterion,
        rivals=rivals,
        equivalents=tuple(tuple(term_names[j] for j in support) for support in found.equivalents),
    )


def _compared(
    found: Found, chosen: Model, neighbours: Sequence[Model], propose: Propose
) -> list[tuple[Support, float]]:
    """Return by how much the criterion of the neighbours exceeds that of the model chosen, closest first.

    On the whitening of the model chosen that is a guide only: a neighbour that comes close there is fitted with a
    whitening of its own, and so is the model chosen, as in the tournament.
    """
    tournament = Tournament(found.equation, propose)
    own = tournament.settled(Contender(found.support, found.fit, np.nan))
    compared = []
    for model in neighbours:
        excess = model.criterion - chosen.criterion
        if excess < CLOSE:
            excess = tournament.settled(Contender(model.support, found.fit, np.nan)).score - own.score
        compared.append((model.support, float(excess)))
    return sorted(compared, key=lambda one: one[1])
