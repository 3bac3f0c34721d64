"""Equations of motion from data, with error bars and without an oracle.

data → pieces without gaps → rows D x = VΘ(x)ξ (weak form, derivatives, or a map) → for every equation a tournament of
supports, each with its own whitening → coefficients, covariance, rivals.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ardea.dynamics.equations import FoundEquation, Rival, latex_equation, summary_line, sympy_sum
from ardea.dynamics.libraries import Library, default_feature_names, default_library
from ardea.dynamics.pieces import (
    FEWEST_ROWS,
    Differentiation,
    Piece,
    derivative_piece,
    map_piece,
    noise_levels,
    stretches,
    weak_piece,
    window_radius,
)
from ardea.dynamics.products import latex_symbol
from ardea.dynamics.search import Found, GivenRows, find_alone, find_together
from ardea.dynamics.simulation import Bands, RightHandSide, bands, simulate_draws, simulate_map, simulate_ode
from ardea.dynamics.subsets import Support, System, ard_supports, regressor_supports

Array = NDArray[np.float64]
Form = Literal["weak", "derivative"]

N_RIVALS = 8
FEWEST_EQUATION_ROWS = 12
# Radii of the windows relative to the one that the spectrum gives.
RELATIVE_RADII = (1.0, 0.5)
# A state that varies less than this many times its noise says nothing of its equation.
LEAST_EXCITATION = 2.0
# A simulation stops where a state exceeds its largest value in the data so many times.
BLOW_UP = 100.0
RELATIVE_TOLERANCE = 1e-10


class AmbiguityWarning(UserWarning):
    """The data do not tell two models apart."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One series: times, states, inputs, and derivatives where they were given."""

    t: Array
    x: Array
    inputs: Array
    x_dot: Array | None


class Discovery(BaseEstimator):
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
    ) -> None:
        self.library = library
        self.form = form
        self.regressor = regressor
        self.discrete_time = discrete_time
        self.differentiation = differentiation
        self.order = order
        self.n_jobs = n_jobs

    def fit(
        self,
        x: Any,
        t: Any,
        x_dot: Any = None,
        u: Any = None,
        feature_names: Sequence[str] | None = None,
        space: Any = None,
    ) -> Discovery:
        """Find the equations.

        Parameters
        ----------
        x : array of shape (times, states), DataFrame, or a list of them
            States; rows with NaN are gaps. Several trajectories as a list.
        t : array of shape (times,), float, or a list of arrays
            Times, or the step between samples. Uneven times are allowed.
        x_dot : like x, optional
            Derivatives, if they were measured.
        u : array of shape (times, inputs) or a list of them, optional
            Control inputs, taken as known without error.
        feature_names : list of str, optional
            Names of states, then of inputs; a DataFrame brings its own.
        space : tuple of arrays, optional
            Coordinates of the space axes: x is then a field of shape (len(x₁), …, len(t)), with an optional last axis
            of fields.

        Returns
        -------
        self
        """
        self._check_parameters()
        trajectories, names = _trajectories(x, t, x_dot, u, feature_names)
        self.n_states_ = trajectories[0].x.shape[1]
        everything = np.vstack([one.x for one in trajectories])
        self._range = np.maximum(np.nanmax(np.abs(everything), axis=0), np.finfo(float).tiny)
        self.n_inputs_ = trajectories[0].inputs.shape[1]
        self.feature_names_ = names[: self.n_states_]
        self._all_names = names
        self.library_: Library = default_library(len(names)) if self.library is None else self.library
        found = self._searched(trajectories)
        terms = self.library_.names(names)
        self.equations_ = [
            _described(one, name, terms, unit)
            for one, name, unit in zip(found, self.feature_names_, self.noise_unit_, strict=True)
        ]
        self._found = found
        self._set_arrays()
        self._warn()
        return self

    def _check_parameters(self) -> None:
        if self.form not in ("weak", "derivative"):
            raise ValueError(f"form={self.form!r} is not known: choose 'weak' or 'derivative'.")
        if self.differentiation not in ("finite", "smoothed", "spectral"):
            raise ValueError(
                f"differentiation={self.differentiation!r} is not known: choose 'finite', 'smoothed' or 'spectral'."
            )
        if self.library is not None and not isinstance(self.library, Library):
            raise TypeError(
                "library must be one of ardea.dynamics (Polynomials, Fourier, Custom, FieldTerms) or a sum or product "
                f"of them, got {type(self.library).__name__}."
            )

    def _proposed(self, system: System) -> list[Support]:
        return regressor_supports(self.regressor, system)

    def _searched(self, trajectories: Sequence[Trajectory]) -> list[Found]:
        """Find every equation: alone, then all together where that is affordable."""
        propose = ard_supports if self.regressor is None else self._proposed
        if trajectories[0].x_dot is not None:
            self.noise_unit_ = np.ones(self.n_states_)
            return find_alone(self._given_derivatives(trajectories), propose, self.n_jobs)
        self.pieces_ = self._pieces(trajectories)
        rows = sum(piece.n_rows for piece in self.pieces_)
        if rows < FEWEST_EQUATION_ROWS:
            raise ValueError(
                f"The data give {rows} independent rows, too few to find an equation (at least {FEWEST_EQUATION_ROWS}):"
                " take more samples or longer series."
            )
        spread = self._spread()
        self.noise_unit_ = np.where(spread > 0, spread, 1.0) if self.discrete_time else noise_levels(self.pieces_)
        return find_together(self.pieces_, self.library_, self.noise_unit_, propose, self.n_jobs)

    def _spread(self) -> Array:
        return np.sqrt(np.mean([piece.x.var(axis=0) for piece in self.pieces_], axis=0))

    def _given_derivatives(self, trajectories: Sequence[Trajectory]) -> list[GivenRows]:
        states = np.vstack([np.hstack([trajectory.x, trajectory.inputs]) for trajectory in trajectories])
        slopes = np.vstack([trajectory.x_dot for trajectory in trajectories if trajectory.x_dot is not None])
        sound = np.all(np.isfinite(states), axis=1) & np.all(np.isfinite(slopes), axis=1)
        theta = self.library_.evaluate(states[sound])
        return [GivenRows(theta, slopes[sound, state]) for state in range(self.n_states_)]

    def _pieces(self, trajectories: Sequence[Trajectory]) -> list[Piece]:
        """Cut the trajectories and build the rows of every piece."""
        parts = [part for one in trajectories for part in stretches(one.t, one.x, one.inputs)]
        if self.discrete_time:
            built = [map_piece(*part) for part in parts]
        elif self.form == "derivative":
            built = [derivative_piece(*part, self.differentiation, self.order) for part in parts]
        else:
            long_enough = [part for part in parts if part[0].size >= FEWEST_ROWS]
            if not long_enough:
                longest = max((part[0].size for part in parts), default=0)
                raise ValueError(
                    f"The longest stretch without a gap has {longest} rows; a window of the weak form needs at least "
                    f"{FEWEST_ROWS}. Take more samples, or form='derivative'."
                )
            self.window_ = window_radius([(part[0], part[1]) for part in long_enough])
            radii = [self.window_ * share for share in RELATIVE_RADII]
            built = [weak_piece(*part, radii) for part in long_enough]
        return [piece for piece in built if piece is not None]

    def _set_arrays(self) -> None:
        shape = (len(self.equations_), self.library_.n_terms(len(self._all_names)))
        self.coef_, self.coef_std_ = np.zeros(shape), np.zeros(shape)
        for row, equation in enumerate(self.equations_):
            self.coef_[row, list(equation.support)] = equation.coefficients
            self.coef_std_[row, list(equation.support)] = equation.std
        self.coef_covariance_ = [equation.covariance for equation in self.equations_]

    def _warn(self) -> None:
        open_choices = [equation for equation in self.equations_ if equation.close_rivals(1.0)]
        for equation in open_choices:
            rival = equation.rivals[0]
            warnings.warn(
                f"The data hardly tell two models of {equation.name}' apart: [{', '.join(equation.terms)}] and "
                f"[{', '.join(rival.terms)}] (criterion +{rival.excess:.1f}). Longer or richer data would.",
                AmbiguityWarning,
                stacklevel=3,
            )
        if self.discrete_time or not hasattr(self, "pieces_"):
            return
        for name, ratio in zip(self.feature_names_, self._spread() / self.noise_unit_, strict=True):
            if ratio < LEAST_EXCITATION:
                warnings.warn(
                    f"{name} varies only {ratio:.1f} times as much as its noise: the data are too little excited (a "
                    "fixed point?) to find its equation.",
                    AmbiguityWarning,
                    stacklevel=3,
                )

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
        return self.library_.names(self._all_names)

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
            left = f"({equation.name})[k+1]" if self.discrete_time else f"({equation.name})'"
            print("\n".join(summary_line(equation, left, level)), file=file)

    def latex(self) -> str:
        r"""Return the equations as LaTeX, an `aligned` environment."""
        check_is_fitted(self)
        terms = self.library_.latex_names(self._all_names)
        lines = [
            latex_equation(self._latex_left(equation.name), equation, terms).replace(" = ", " &= ", 1)
            for equation in self.equations_
        ]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def _latex_left(self, name: str) -> str:
        symbol = latex_symbol(name)
        return f"{symbol}_{{k+1}}" if self.discrete_time else f"\\dot{{{symbol}}}"

    def sympy(self) -> list[Any]:
        """Return the right-hand sides as SymPy expressions (needs the extra `symbolic`)."""
        check_is_fitted(self)
        try:
            import sympy
        except ImportError as error:
            raise ImportError("sympy() needs SymPy: pip install 'ardea[symbolic]'.") from error
        symbols = [sympy.Symbol(name) for name in self._all_names]
        factors = [term.sympy(symbols) for term in self.library_.terms(len(symbols))]
        return [
            sympy_sum(equation.coefficients, [factors[j] for j in equation.support]) for equation in self.equations_
        ]

    # Using the model

    @property
    def right_hand_side_(self) -> RightHandSide:
        """The model as a function of states and inputs: `right_hand_side_.row(x)` takes microseconds."""
        check_is_fitted(self)
        if not hasattr(self, "_right_hand_side"):
            self._right_hand_side = RightHandSide(self.library_, self.coef_, self.n_states_, self.n_inputs_)
        return self._right_hand_side

    def predict(self, x: ArrayLike, u: ArrayLike | None = None) -> Array:
        """Return x′ (for a map the next state) at every row of x.

        Parameters
        ----------
        x : array of shape (rows, states)
            States.
        u : array of shape (rows, inputs), optional
            Inputs.
        """
        return self.right_hand_side_(x, u)

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
        t: ArrayLike,
        u: Any = None,
        n_samples: int = 0,
        random_state: Any = None,
        level: float = 0.95,
    ) -> Any:
        """Integrate the model from a start; with `n_samples` also with coefficients drawn from their posterior.

        Parameters
        ----------
        x0 : array of shape (states,)
            Start.
        t : array of shape (times,), or int for a map
            Times of the output, or the number of steps.
        u : callable or array, optional
            Inputs as a function of time, or sampled at `t` (interpolated by a cubic spline).
        n_samples : int
            Number of draws. 0: the states alone are returned.
        random_state : int, RandomState or None
            Seed of the draws.
        level : float
            Share of the draws inside the bands.

        Returns
        -------
        ndarray of shape (times, states), or Bands
            Bands have `lower`, `median`, `upper` and `samples`. A model that blows up stops with a `SimulationWarning`
            and returns what it reached.
        """
        check_is_fitted(self)
        limit = BLOW_UP * self._range
        if n_samples == 0:
            if self.discrete_time:
                return simulate_map(self.right_hand_side_, x0, t, inputs=u, limit=limit).x
            atol = RELATIVE_TOLERANCE * self._range
            return simulate_ode(self.right_hand_side_, x0, t, inputs=u, limit=limit, atol=atol).x
        draws = self.sample(n_samples, random_state)
        if self.discrete_time:
            return bands(lambda xi: self._mapped(xi, x0, t, u, limit), draws, np.arange(np.size(t)), level=level)
        runs = simulate_draws(self.library_, draws, x0, t, n_inputs=self.n_inputs_, inputs=u, limit=limit)
        return Bands.of(runs, np.asarray(t, dtype=float), level)

    def _mapped(self, coefficients: Array, x0: ArrayLike, t: Any, u: Any, limit: Array) -> Any:
        model = RightHandSide(self.library_, coefficients, self.n_states_, self.n_inputs_)
        return simulate_map(model, x0, t, inputs=u, limit=limit)

    def score(self, x: Any, t: Any, x_dot: Any = None, u: Any = None) -> float:
        """Return R², the share of variance explained: of x_dot where given, else of the rows of the form fitted.

        In the weak form, −∫φ′x is compared with ∫φ Θ(x)ξ: noise is averaged out as in the fit, so that the score says
        something of the model and not of the noise.
        """
        check_is_fitted(self)
        trajectories, _ = _trajectories(x, t, x_dot, u, self._all_names)
        if x_dot is not None:
            pairs = [(one.x_dot, self.predict(one.x, one.inputs if self.n_inputs_ else None)) for one in trajectories]
        else:
            pairs = [
                (piece.D @ piece.x, piece.V @ self.predict(piece.x, piece.inputs if self.n_inputs_ else None))
                for piece in self._pieces(trajectories)
            ]
        observed, modelled = (np.vstack(parts) for parts in zip(*pairs, strict=True))
        spread = np.sum((observed - observed.mean(axis=0)) ** 2, axis=0)
        lost = np.sum((observed - modelled) ** 2, axis=0)
        return float(np.mean(1 - lost / np.where(spread > 0, spread, 1.0)))

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
        generator = check_random_state(random_state)
        chosen = np.zeros(self.coef_.shape)
        for row, found in enumerate(self._found):
            A, z = found.equation.system(found.fit)
            for _ in range(n_resamples):
                rows = generator.randint(0, z.size, z.size)
                system = System.of(A[rows], z[rows], floor=found.fit.floor)
                chosen[row, list(system.select(ard_supports(system))[0].support)] += 1
        return chosen / n_resamples


def _described(found: Found, name: str, term_names: Sequence[str], noise_unit: float) -> FoundEquation:
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
        Rival(tuple(term_names[j] for j in model.support), model.criterion - chosen.criterion)
        for model in system.neighbours(chosen)[:N_RIVALS]
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
    )


def _trajectories(
    x: Any, t: Any, x_dot: Any, u: Any, feature_names: Sequence[str] | None
) -> tuple[list[Trajectory], list[str]]:
    """Return the data as checked trajectories, and the names of states and inputs."""
    several = isinstance(x, list | tuple)
    states = list(x) if several else [x]
    if not states:
        raise ValueError("x is an empty list: give at least one trajectory.")
    frame_names = [str(name) for name in states[0].columns] if hasattr(states[0], "columns") else None
    arrays = [_rows(one, "x") for one in states]
    derivatives = [None] * len(arrays) if x_dot is None else [_rows(one, "x_dot") for one in _listed(x_dot, several)]
    inputs = (
        [np.empty((len(one), 0)) for one in arrays] if u is None else [_rows(one, "u") for one in _listed(u, several)]
    )
    times = _listed(t, several) if several and not np.isscalar(t) else [t] * len(arrays)
    for name, given in (("t", times), ("x_dot", derivatives), ("u", inputs)):
        if len(given) != len(arrays):
            raise ValueError(f"{name} has {len(given)} trajectories, x has {len(arrays)}.")
    trajectories = []
    for number, (states_of_one, time, slope, control) in enumerate(
        zip(arrays, times, derivatives, inputs, strict=True)
    ):
        where = f" of trajectory {number}" if several else ""
        trajectories.append(_checked(states_of_one, time, slope, control, where))
    widths = {(one.x.shape[1], one.inputs.shape[1]) for one in trajectories}
    if len(widths) > 1:
        raise ValueError("All trajectories must have the same states and inputs.")
    n_states, n_inputs = widths.pop()
    return trajectories, _names(feature_names, frame_names, n_states, n_inputs)


def _listed(value: Any, several: bool) -> list[Any]:
    return list(value) if several else [value]


def _rows(values: ArrayLike, name: str) -> Array:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must have shape (times, states), got {array.shape}; for fields give space=(x₁, …) as well."
        )
    return array


def _checked(x: Array, t: Any, x_dot: Array | None, inputs: Array, where: str) -> Trajectory:
    m = len(x)
    if np.isscalar(t):
        step = float(t)  # type: ignore[arg-type]
        if not step > 0 or not np.isfinite(step):
            raise ValueError(f"t{where} as a step must be a positive number, got {t!r}.")
        times = np.asarray(step * np.arange(m), dtype=np.float64)
    else:
        times = np.asarray(t, dtype=np.float64).ravel()
    if times.size != m:
        raise ValueError(f"t{where} has {times.size} entries, x has {m} rows.")
    if not np.all(np.diff(times[np.isfinite(times)]) > 0):
        raise ValueError(f"t{where} must ascend strictly: sort the rows and drop repeated times.")
    if np.any(np.isinf(x)):
        raise ValueError(f"x{where} holds infinities: remove those rows, or set them to NaN to leave a gap.")
    if not np.any(np.all(np.isfinite(x), axis=1)):
        raise ValueError(f"x{where} has no row without NaN.")
    for name, other in (("x_dot", x_dot), ("u", inputs)):
        if other is not None and len(other) != m:
            raise ValueError(f"{name}{where} has {len(other)} rows, x has {m}.")
    if x_dot is not None and x_dot.shape != x.shape:
        raise ValueError(f"x_dot{where} has shape {x_dot.shape}, x has {x.shape}.")
    return Trajectory(times, x, inputs, x_dot)


def _names(given: Sequence[str] | None, frame: list[str] | None, n_states: int, n_inputs: int) -> list[str]:
    inputs = [f"u{i}" for i in range(n_inputs)]
    if given is None:
        return (frame or default_feature_names(n_states)) + inputs
    names = [str(name) for name in given]
    if len(names) == n_states:
        names += inputs
    if len(names) != n_states + n_inputs or len(set(names)) != len(names):
        raise ValueError(
            f"feature_names must be {n_states} different names (or {n_states + n_inputs} with the inputs), got {names}."
        )
    return names
