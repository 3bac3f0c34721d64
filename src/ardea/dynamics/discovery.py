"""Equations of motion from data, with error bars and without an oracle.

data (`series`, `fields`) → rows (`rows`) → whitening and search for every equation (`whitening`, `field_equation`,
`search`) → `Equation`, from which all that is read follows, and runs of the model (`models`, `simulation`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from ardea.core.memory import require
from ardea.core.problem import Array
from ardea.core.subsets import posed, select
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.fields import read_fields
from ardea.dynamics.libraries import Library, default_library
from ardea.dynamics.models import EquationsOfMotion, FieldModel, Motion, StateModel, doubts_about, equation_of
from ardea.dynamics.rows import Differentiation, Form, Stretch, stretch_rows
from ardea.dynamics.search import (
    Propose,
    Search,
    SearchResult,
    ard_supports,
    regressor_supports,
    search_fields,
    search_given,
    search_states,
)
from ardea.dynamics.series import Series, checked_series
from ardea.equation import Equation
from ardea.estimators.base import BaseARD


class AmbiguityWarning(UserWarning):
    """The data do not tell two models apart."""


class Discovery(EquationsOfMotion, BaseEstimator):
    """Find sparse equations x′ = Θ(x)ξ (or x_{i+1} = Θ(x_i)ξ) from noisy data.

    Parameters
    ----------
    library : Library or FieldTerms, optional
        Candidate terms. None: polynomials of degree 3 (2 above ten states); for fields u^p ∂^q u, p, q ≤ 4.
    form : {"weak", "derivative"}, default="weak"
        Weak form (integrals against windows, which needs no derivative of noisy data), or derivatives at the samples.
    regressor : estimator of ardea, optional
        Proposes terms on every whitened problem, with ``fit_intercept=False``: the constant is a term of the library.
        None: ARD at α = 1 and 16 and backward elimination.
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
    equations_ : list of Equation
        Terms, coefficients, covariance, noise and rivals of every equation.
    coef_ : ndarray of shape (equations, terms)
        Coefficients, zero for terms that are not in the model.
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
    searched_ : list of SearchResult
        The data and the fit behind every equation. A model read from a file does not have them.

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
            results: list[SearchResult]
            model: Motion
            if space is not None or isinstance(self.library, FieldTerms) or hasattr(x, "coords"):
                results, model, unit = self._found_fields(x, t, x_dot, u, feature_names, space, time_unit)
            else:
                results, model, unit = self._found_states(x, t, x_dot, u, feature_names, time_unit)
            pairs = zip(results, model.lefts, strict=True)
            equations = [equation_of(result, left, model.vocabulary) for result, left in pairs]
        doubts = doubts_about(equations, [result.excitation for result in results])
        self._adopt(model, equations, unit, doubts)
        self.searched_ = results
        for doubt in doubts:
            warnings.warn(doubt, AmbiguityWarning, stacklevel=2)
        return self

    @classmethod
    def of(
        cls,
        model: Motion,
        equations: Sequence[Equation],
        time_unit: str | None = None,
        doubts: Sequence[str] = (),
        **parameters: Any,
    ) -> Discovery:
        """Return the model of some equations, whose coefficients replace the model's: what a file is read into."""
        found = cls(**parameters)
        found._adopt(model, equations, time_unit, doubts)
        return found

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
        if self.regressor is not None and not isinstance(self.regressor, BaseARD):
            raise TypeError(f"regressor must be one of ardea's estimators, got {type(self.regressor).__name__}.")
        if self.regressor is not None and self.regressor.fit_intercept:
            name = type(self.regressor).__name__
            raise ValueError(
                f"{name} would fit an intercept, which no equation shows: the constant is a term of the library. Give "
                f"{name}(fit_intercept=False)."
            )

    @property
    def _propose(self) -> Propose:
        return ard_supports if self.regressor is None else partial(regressor_supports, self.regressor)

    def _search(self) -> Search:
        return Search(self._propose, self.n_jobs, bool(self.verbose))

    def _stretches(self, series: Sequence[Series]) -> list[Stretch]:
        return stretch_rows(series, self.form, bool(self.discrete_time), self.differentiation, self.order)

    def _found_states(
        self, x: Any, t: Any, x_dot: Any, u: Any, names: Sequence[str] | None, time_unit: str | None
    ) -> tuple[list[SearchResult], StateModel, str | None]:
        t = 1.0 if t is None and self.discrete_time else t  # the steps of a map are its time
        series, all_names, unit = checked_series(x, t, x_dot, u, names, time_unit)
        library: Library = default_library(len(all_names)) if self.library is None else self.library
        rows, d = sum(len(one.x) for one in series), library.n_terms(len(all_names))
        # What stretches hold of every row, about 800 bytes as measured, and the whitened columns.
        require(8 * (rows * (100 + d) + 4 * d**2), f"A search among {d} terms over {rows} rows")
        if x_dot is not None:
            results = search_given(series, library, self._search())
        else:
            results = search_states(self._stretches(series), library, self._search(), bool(self.discrete_time))
        largest = np.nanmax(np.abs(np.vstack([one.x for one in series])), axis=0)
        reach = np.maximum(largest, np.finfo(float).tiny)
        zeros = np.zeros((len(results), d))
        return results, StateModel(library, all_names, zeros, reach, bool(self.discrete_time)), unit

    def _found_fields(
        self, x: Any, t: Any, x_dot: Any, u: Any, names: Sequence[str] | None, space: Any, time_unit: str | None
    ) -> tuple[list[SearchResult], FieldModel, str | None]:
        if x_dot is not None or u is not None or self.discrete_time or self.form != "weak":
            raise ValueError("Fields are found in weak form, without x_dot, inputs u or discrete time.")
        data, unit = read_fields(x, t, space, names, time_unit)
        library = FieldTerms() if self.library is None else self.library
        results = search_fields(data, library, self._search())
        zeros = np.zeros((data.n_fields, library.n_terms(data.n_fields, len(data.space))))
        return results, FieldModel(library, data.names, data.axes, zeros, data.space, data.reach), unit

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
        generator, propose = check_random_state(random_state), self._propose
        results = self._searched("inclusion")
        chosen = np.zeros(self.coef_.shape)
        for row, result in enumerate(results):
            A, z = result.rows.system(result.fit)
            for _ in range(n_resamples):
                rows = generator.randint(0, z.size, z.size)
                problem, unit = posed(A[rows], z[rows], floor=result.fit.floor)
                chosen[row, list(select(problem, propose(problem, unit))[0].support)] += 1
        return chosen / n_resamples

    def residuals(self) -> list[Array]:
        """Return the whitened residuals of every equation, in units of their standard deviation.

        Where an equation is right they are independent, of equal size, and Gaussian if the noise is.
        """
        residuals = []
        for result, equation in zip(self._searched("residuals"), self.equations_, strict=True):
            A, z = result.rows.system(result.fit)
            residual = z - A[:, list(equation.support)] @ equation.coefficients
            scale = float(np.sqrt(residual @ residual / equation.degrees))
            residuals.append(residual / max(scale, np.finfo(float).tiny))
        return residuals

    def _searched(self, asked: str) -> list[SearchResult]:
        check_is_fitted(self)
        if not hasattr(self, "searched_"):
            raise ValueError(f"{asked}() needs the data, which a model read from a file does not have: fit again.")
        return self.searched_
