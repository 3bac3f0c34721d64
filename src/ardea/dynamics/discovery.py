"""Equations of motion from data, with error bars and without an oracle.

data (`series`, `fields`) → rows, whitened, and a search for every equation (`rows`, `field_equation`, `search`), or one
for all on the likelihood of the trajectory (`course`) → `Equation`, from which all that is read follows, and runs of
the model (`models`, `simulation`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ardea.core.compression import CompressedRows
from ardea.core.problem import Array, Problem, require
from ardea.core.subsets import Propose, Support
from ardea.dynamics.answers import AmbiguityWarning, Answers, Found, KnowledgeWarning, MisfitWarning
from ardea.dynamics.course import LeftOpen, Wishes
from ardea.dynamics.field_equation import field_equations
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.fields import FieldWishes, read_fields
from ardea.dynamics.found import FoundStates, found_states
from ardea.dynamics.knowledge import Knowledge
from ardea.dynamics.laws import Reader, check_shared, libraries_of, refuted_laws, set_apart, told_knowledge
from ardea.dynamics.libraries import Library, Polynomials
from ardea.dynamics.models import FieldModel, Motion, StateModel
from ardea.dynamics.parametric import as_library
from ardea.dynamics.readings import said_of_inputs, said_of_spoiled, said_of_states
from ardea.dynamics.rows import Differentiation, Form, given_equations, state_equations
from ardea.dynamics.search import EquationRows, FoundRows, found_rows
from ardea.dynamics.series import SAME_TIME, Clock, Series, checked_series
from ardea.dynamics.simulation import SimulationWarning
from ardea.dynamics.states import Joint, ends_off
from ardea.dynamics.told import (
    LEAST_EXCITATION,
    doubts_about,
    far_from_zero,
    no_candidate_fits,
    said_of_expansions,
    said_of_misfit,
    said_of_unknown,
    said_of_waves,
    told_of,
)
from ardea.dynamics.trajectory import NOISE_POWERS
from ardea.equation import Equation
from ardea.estimators.advice import AdviceWarning, warn_caller
from ardea.estimators.base import BaseARD
from ardea.methods.task import ard_supports
from ardea.names import counted

# What parameters may be, if they are given.
CHOICES = {
    "form": ("trajectory", "weak", "derivative"),
    "noise": (*NOISE_POWERS, "auto"),
    "differentiation": ("finite", "smoothed", "spectral"),
}
# What is to be said of the data: always, and where models tie.
Told = tuple[list[str], list[str] | None]  # of the data; of what doubts may come from (None: all from the first)
# Candidates of all equations together up to which the trajectory form takes all of them: their information then takes
# about half a second. Of more it begins with those that the weak form leaves open and adds what the scores of all speak
# for, unless the derivatives of all steps by the first are more numbers than this: then a search would take longer than
# about a minute. Measured on chains of 12 to 16 oscillators: as exact as with all of them, and five times as fast.
MOST_CANDIDATES, LARGEST_BORDER = 1000, 10_000_000


class Discovery(Answers, BaseEstimator):
    """Find sparse equations of motion x′ = Θ(x)ξ, maps x_{i+1} = Θ(x_i)ξ or field equations from noisy data.

    Parameters
    ----------
    library : Library, FieldTerms or dict, optional
        The candidate terms, ours or PySINDy's. None: polynomials of degree 3 (2 for more than ten states), for fields
        u^p ∂^q u with p, q ≤ 4. A dict {state: library} gives equations libraries of their own.
    form : {"trajectory", "weak", "derivative"}, optional
        How data and equations are compared. "trajectory": the likelihood of the samples, given states that follow the
        equations; times may be uneven and values missing. "weak": integrals against smooth windows. "derivative":
        derivatives at the samples. None: "trajectory" for series unless it would take too long, else "weak". With more
        than 1,000 candidates, the search on the trajectory begins with those that the weak form proposes.
    regressor : estimator of ardea, optional
        Proposes terms in the weak form, with ``fit_intercept=False``. None: ARD at α = 1 and 16, backward elimination.
    discrete_time : bool, default=False
        Whether the data are a map x_{i+1} = f(x_i).
    differentiation : {"finite", "smoothed", "spectral"}, default="finite"
        How derivatives are computed with form="derivative".
    order : int, default=6
        The order of finite differences.
    derivative_order : {1, 2}, default=1
        2: only positions were measured, and equations x″ = Θ(x, x′)ξ are sought; for fields equations of u_tt.
    false_terms : float, optional
        How many false terms you accept in all equations together, on average (trajectory form). None: 0.02.
    known : dict, optional
        Certain terms, {state: {term: coefficient}}; None: the coefficient is estimated (trajectory form).
    constraints : list of str, optional
        Laws that the coefficients obey exactly (trajectory form). Equations, "x: x y + y: x y = 0" or "x: 1 = 2", name
        a coefficient by its equation and its term; "x: x < 0" is a sign; "S: * + I: * + R: * = 0" holds for every term.
        If the data contradict a law, there is a warning.
    shared : "structure" or dict, optional
        Several trajectories have the same terms but coefficients, and constants inside terms, of their own (trajectory
        form). {state: [terms]} names those whose coefficients are common; "K of x/(K + x)" is a constant.
        `experiments_` has a model for each; the model itself is the first.
    noise : {"additive", "counts", "proportional", "auto"}, default="auto"
        Whether the noise of the samples has the same size everywhere, grows with the root of the state, as for counts,
        or is proportional to the state. "auto" takes the likeliest (trajectory form).
    noise_std : array of shape (states,) or float, optional
        The standard deviation of the noise of the samples, if you know it (trajectory form).
    n_jobs : int, optional
        How many equations are searched in parallel (joblib).
    verbose : int, default=0
        1 shows progress and the time left on standard error.

    Attributes
    ----------
    equations_ : list of Equation
        Terms, coefficients, covariance, noise and rivals of every equation.
    coef_ : ndarray of shape (equations, terms)
        The coefficients; zero for terms that are not in the model.
    coef_std_ : ndarray of shape (equations, terms)
        Their standard errors; zero for terms that are not in the model.
    coef_covariance_ : list of ndarray
        The covariance of the coefficients of every equation.
    feature_names_ : list of str
        The names of the states.
    time_unit_ : {"s", "min", "h", "d"} or None
        The unit of time, if times were dates or you gave it. None: that of your times.
    time_origin_ : str or None
        The date that counts as zero: the first of the data, if times were dates. It ends in +00:00, and is in UTC, if
        these named their time zones.
    warnings_ : list of str
        The warnings of the fit.
    form_ : {"trajectory", "weak", "derivative"}
        The form that was used.
    rows_used_ : int
        The number of rows that the equations rest on.
    misfit_ : ndarray of shape (states,) or None
        The noise that every equation leaves (without process noise), divided by the noise of the samples. From 1.5 on,
        most likely no candidate fits. None for maps, and for series in weak or derivative form.
    noise_kind_ : {"additive", "counts", "proportional", "mixed"} or None
        How the noise of the samples grows with the state, see `noise`. "mixed": not alike for all. None: unknown.
    process_noise_ : ndarray of shape (states,)
        The standard deviation, over a unit of time, of noise that moves the system itself; zero if the data need none.
    process_growth_ : ndarray of shape (2, states)
        With which power of |x| that noise grows (0: not at all), and the |x| at which it is `process_noise_`.
    states_ : list of DataFrame
        Times, states and their standard deviations, one frame for every series (trajectory form).
    experiments_ : list of Discovery or None
        With `shared`: a model for every trajectory.
    model_ : StateModel or FieldModel
        What `simulate` and `predict` run.
    joint_ : Joint or None
        How the coefficients of all equations and the states depend on each other (trajectory form).
    searched_ : Found
        The data and the fit behind the equations. A model read from a file does not have them.

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
        form: Form | None = None,
        regressor: Any = None,
        discrete_time: bool = False,
        *,
        differentiation: Differentiation = "finite",
        order: int = 6,
        derivative_order: int = 1,
        false_terms: float | None = None,
        known: Any = None,
        constraints: Any = None,
        shared: Any = None,
        noise: str = "auto",
        noise_std: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.library = library
        self.form = form
        self.regressor = regressor
        self.discrete_time = discrete_time
        self.differentiation = differentiation
        self.order = order
        self.derivative_order = derivative_order
        self.false_terms = false_terms
        self.known = known
        self.constraints = constraints
        self.shared = shared
        self.noise = noise
        self.noise_std = noise_std
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
        split: bool = False,
        known_fields: Mapping[str, Any] | None = None,
        equations: Sequence[str] | None = None,
    ) -> Discovery:
        """Find the equations.

        Parameters
        ----------
        x : array of shape (times, states), DataFrame, or a list of them
            States; rows with NaN are gaps. Several trajectories as a list.
        t : array of shape (times,), float, or a list of arrays
            Times, or the step between samples. Uneven times are allowed. An xarray field brings its own. Dates and
            durations (of pandas, polars, xarray, NumPy) are counted in `time_unit` from the first. Dates that name
            their time zones are counted in UTC, in which `dates` returns them (NumPy's dates have no zone).
        x_dot : like x, optional
            Derivatives, if they were measured.
        u : array of shape (times, inputs) or a list of them, optional
            Control inputs, taken as known without error. Those that mostly stay what they were, as switches do, are
            held from one time to the next; others are interpolated.
        feature_names : list of str, optional
            Names of states, then of inputs; a DataFrame brings its own.
        space : tuple of arrays or steps, optional
            Coordinates of the space axes, or the distance of points: x is then a field of shape (len(x₁), …, len(t)),
            with an optional last axis of fields, or a list of such fields, several runs on one grid in space.
        time_unit : {"s", "min", "h", "d"}, optional
            Unit of time for dates; by default the longest that is not longer than their median step. Where times are
            numbers, the unit they are in.
        split : bool
            A complex field becomes two real ones, its real and its imaginary part (u and v, or `feature_names`).
        known_fields : dict of arrays, optional
            Fields that act on those measured and are known without error, such as a potential {"V": V}, of the same
            grid, with or without the time axis; of several runs a list, if they differ. They have no equation, and no
            derivatives among the candidates.
        equations : list of str, optional
            The fields whose equations are wanted; all that were measured by default.

        Returns
        -------
        self
        """
        self._check_parameters(space)
        given = FieldWishes(space, split, known_fields, equations)
        # Many small matrices: threads of BLAS would only wait for each other. Use n_jobs for several equations.
        with threadpool_limits(1):
            if space is not None or isinstance(self.library, FieldTerms) or hasattr(x, "coords"):
                if x_dot is not None or u is not None:
                    raise ValueError("Fields have no x_dot and no inputs u: see known_fields for what acts on them.")
                return self._concluded(*self._found_fields(x, t, feature_names, time_unit, given))
            if given != FieldWishes():
                raise ValueError("split, known_fields and equations are for fields (space=…).")
            return self._concluded(*self._found_states(x, t, x_dot, u, feature_names, time_unit))

    def _concluded(self, found: Found, model: Motion, clock: Clock, told: Told) -> Discovery:
        """Take over what was found, and warn."""
        (gaps, far), equations = told, found.equations(model.lefts, model.vocabulary)
        open_still, misfits = self._said(found, equations)
        if far is None:
            open_still, misfits = [], []
        open_still = [*gaps, *clock.dated(open_still), *(far if far and (open_still or misfits) else [])]
        joint = found.joint(equations) if isinstance(found, FoundStates) else None
        self._adopt(model, equations, clock, [], joint)
        self.searched_ = found
        refuted: list[str] = []
        if isinstance(found, FoundStates) and isinstance(model, StateModel) and joint is not None:
            driven = bool(np.any(found.process_noise))
            if (open_still or misfits or driven) and not model.n_inputs:
                misfits += _blown_up(self.model_, joint, found.times[0], driven)
            if found.likelihood.knowledge.laws:
                refuted = refuted_laws(found.pursuit, found.fit)
        misfits = clock.dated(misfits)
        self.warnings_ = [*open_still, *misfits, *refuted]
        self.experiments_ = self._told_apart(model, clock) if self.shared else None
        still = open_still[len(gaps) :]  # the others were said before the search
        _warn(still, AmbiguityWarning)
        _warn(misfits, MisfitWarning)
        _warn(refuted, KnowledgeWarning)
        return self

    def _check_parameters(self, space: Any) -> None:
        for name, known in CHOICES.items():
            if (given := getattr(self, name)) not in (*known, *[None] * (name == "form")):
                choices = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
                raise ValueError(f"{name}={given!r} is not known: choose {choices}.")
        if self.derivative_order not in (1, 2):
            raise ValueError(f"derivative_order={self.derivative_order!r} must be 1 or 2.")
        fields = space is not None or isinstance(self.library, FieldTerms)
        if self.derivative_order == 2 and not fields and (self.discrete_time or self.form in ("weak", "derivative")):
            raise ValueError("derivative_order=2 is for flows in trajectory form: leave form and discrete_time out.")
        if self.shared is not None:
            check_shared(self.shared)
        if self.false_terms is not None and not (isinstance(self.false_terms, Real) and self.false_terms > 0):
            raise ValueError(f"false_terms must be a number above 0, got {self.false_terms!r}.")
        several = isinstance(given := self.library and as_library(self.library), Mapping)
        for library in given.values() if several else [given]:
            if library is not None and not isinstance(library, Library if several else Library | FieldTerms):
                raise TypeError(
                    "library must be one of ardea.dynamics (Polynomials, Fourier, Custom, FieldTerms), a sum or "
                    f"product of them, or a dict of such for every state, got {type(library).__name__}."
                )
        if space is not None and isinstance(given, Library | Mapping):
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

    def _searched_rows(self, equations: Sequence[EquationRows], thorough: bool = True) -> FoundRows:
        return found_rows(equations, self._propose, self.n_jobs, bool(self.verbose), thorough)

    def _found_states(
        self, x: Any, t: Any, x_dot: Any, u: Any, names: Sequence[str] | None, time_unit: str | None
    ) -> tuple[Found, StateModel, Clock, Told]:
        t = 1.0 if t is None and self.discrete_time else t  # the steps of a map are its time
        series, all_names, clock = checked_series(x, t, x_dot, u, names, time_unit)
        n, order = series[0].x.shape[1], self.derivative_order
        n_states = n * order + series[0].inputs.shape[1]
        library: Any = (self.library and as_library(self.library)) or Polynomials(Polynomials().degree_for(n_states))
        several = isinstance(library, Mapping)
        library, own = libraries_of(library, all_names[:n], n_states) if several else (library, [library] * n)
        rows, d = sum(len(one.x) for one in series), library.n_terms(n_states)
        # What stretches hold of every row, about 800 bytes as measured, and the columns.
        require(8 * (rows * (100 + d) + 4 * d**2), f"A search among {d} terms over {rows} rows")
        self.form_ = self.form or ("trajectory" if self.regressor is None or order == 2 else "weak")
        if x_dot is not None:
            self.form_ = "derivative"
        every = np.vstack([one.x for one in series])
        reach = np.maximum(np.nanmax(np.abs(every), axis=0), np.finfo(float).tiny)
        model = StateModel(library, all_names, np.zeros((n, d)), reach, bool(self.discrete_time), order)
        model.check_names(x_dot)
        inside, told = bool(model.vocabulary.constants), self.known or self.constraints or self.shared or several
        if (inside or self.false_terms is not None) and self.form_ != "trajectory":
            what = "A library with unknown constants inside terms" if inside else "false_terms"
            raise ValueError(f"{what} is for the trajectory form: leave form, regressor and x_dot out.")
        knowledge, marked, terms = None, series, library
        if told:
            reader = Reader.of(model, own)
            knowledge = told_knowledge(reader, self.known, self.constraints)
            knowledge.check_affordable(self.form_, MOST_CANDIDATES)
            if self.shared:
                marked, terms, knowledge = set_apart(self.shared, series, library, reader, knowledge)
        spoiled = said_of_spoiled(series, all_names)
        said = clock.dated([*spoiled, *said_of_states(series, all_names), *said_of_inputs(series, all_names)])
        _warn(said, AmbiguityWarning)  # before a search that may take minutes
        found: Found
        if x_dot is not None:
            found = self._searched_rows(given_equations(series, library))
        elif self.form_ == "trajectory" and (n * d <= MOST_CANDIDATES or order == 2 or inside or knowledge):
            found = self._pursued(marked, terms, knowledge=knowledge)
        else:
            equations = state_equations(self._stretches(series), library, bool(self.discrete_time))
            found = self._searched_rows(equations, thorough=self.form_ != "trajectory")
            if self.form_ == "trajectory":
                found = self._continued(found, series, library)
        moving = [ratio >= LEAST_EXCITATION for ratio in found.excitation]
        middle, wide = np.nanmean(every, axis=0), np.nanstd(every, axis=0)
        far = far_from_zero(middle, wide, library.degrees(n_states), all_names, moving)
        far += [] if self.discrete_time else ends_off(series, all_names)
        model = replace(model, held=found.held or series[0].held)
        return found, model, clock, (said, None if spoiled else far)

    def _continued(self, found: FoundRows, series: Sequence[Series], library: Library) -> Found:
        """Return what the trajectory says of candidates that the weak form leaves open, where that is affordable."""
        n, d = len(found.results), found.results[0].rows.n_terms
        coefficients, candidates, support = np.zeros((n, d)), set[int](), []
        for equation, result in enumerate(found.results):
            coefficients[equation, list(result.support)] = result.fit.coefficients
            support += [equation * d + j for j in result.support]
            candidates |= {equation * d + j for terms in (result.support, *result.runners_up) for j in terms}
        rows = sum(len(one.x) for one in series)
        if self.form is None and rows * n * len(candidates) > LARGEST_BORDER:
            self.form_ = "weak"
            return found
        return self._pursued(series, library, LeftOpen(tuple(sorted(candidates)), tuple(support), coefficients))

    def _pursued(
        self,
        series: Sequence[Series],
        library: Library,
        left_open: LeftOpen | None = None,
        knowledge: Knowledge | None = None,
    ) -> FoundStates:
        order, told = self.derivative_order, self.noise_std
        if told is not None:
            told, n = np.asarray(told, dtype=float), series[0].x.shape[1]
            if told.shape not in ((), (n,)) or not np.all(told > 0):
                raise ValueError(
                    f"noise_std must be a number above 0 or one for each of the {counted(n, 'state')}, got "
                    f"{told.tolist()}."
                )
            told = np.tile(np.broadcast_to(told, (n,)), order)  # rates of change have no samples
        maps, shown = bool(self.discrete_time), bool(self.verbose)
        wishes = Wishes(maps, order, self.false_terms, self.noise, told, shown, left_open, knowledge)
        return found_states(series, library, self._propose, wishes)

    def _said(self, found: Found, equations: Sequence[Equation]) -> tuple[list[str], list[str]]:
        """Set what is known of rows, noise and misfit; return what is to be warned of: what is open, what misfits."""
        self.misfit_ = self.process_noise_ = self.process_growth_ = self.rows_used_ = self.noise_kind_ = None
        curved = isinstance(found, FoundStates) and max(found.likelihood.degrees, default=0) > 1
        every = [tuple(range(equations[0].n_candidates))] * curved
        ladders = found.results[0].rows.ladders if isinstance(found, FoundRows) else every
        dense = said_of_expansions(equations, ladders, self.known or {})
        unknown = said_of_unknown(equations)
        if isinstance(found, FoundRows):
            self.misfit_ = found.misfit(equations)
            moves = [result.moves for result in found.results]
            still = np.logical_not(moves)
            others = doubts_about(list(compress(equations, still)), list(compress(found.excitation, still)))
            open_still = [*said_of_waves(equations, moves), *others, *unknown, *found.unfinished(equations)]
            misfits = [] if self.misfit_ is None else said_of_misfit(equations, self.misfit_, found.results)
            return open_still, [*misfits, *dense]
        self.misfit_, self.process_noise_ = None if self.discrete_time else found.misfit, found.process_noise
        self.process_growth_, self.rows_used_, self.noise_kind_ = found.process_growth, found.n_rows, found.noise_kind
        large = found.remaining > found.largest_misfit
        single = len(equations) == self.derivative_order == 1 and not self.discrete_time
        alone = " One state alone cannot oscillate without a delay: try derivative_order=2." * single
        pairs = compress(zip(equations, found.remaining, strict=True), large)
        misfits = [no_candidate_fits(*one, "state", alone) for one in pairs]
        odd = found.odd_noise(self.noise_std)
        if odd:  # then it, and not what was found, is what does not fit
            misfits = []
        misfits += found.not_among(equations) or ([] if misfits else found.dependent(equations))
        # What does not fit is no noise of a state that hardly moves.
        open_still = doubts_about(equations, np.where(large, np.inf, found.excitation).tolist(), alone)
        open_still += [*unknown, *found.tied(equations), *found.odd_samples(equations)]
        open_still += found.likelihood.inside.open_constants(equations)
        return open_still, [*odd, *found.driven(equations), *misfits, *dense]

    def _found_fields(
        self, x: Any, t: Any, names: Sequence[str] | None, time_unit: str | None, given: FieldWishes
    ) -> tuple[Found, FieldModel, Clock, Told]:
        if self.discrete_time or self.form not in (None, "weak"):
            raise ValueError("Fields are found in weak form, and not in discrete time.")
        asked = self.known or self.constraints or self.shared or self.noise not in ("additive", "auto")
        if asked or self.false_terms is not None or self.noise_std is not None:
            raise ValueError(
                "known, constraints, shared, false_terms, noise and noise_std are for states, and fields have none of "
                "them yet: leave them out. The noise of fields is read off the samples, and has one size everywhere."
            )
        runs, clock = read_fields(x, t, given, names, time_unit)
        library, self.form_ = FieldTerms() if self.library is None else self.library, "weak"
        model, equations = field_equations(runs, library, given.equations, self.derivative_order)
        told = told_of(runs, library.powers)
        _warn(told[0], AmbiguityWarning)
        return self._searched_rows(equations), model, clock, told


def _warn(texts: Sequence[str], category: type[Warning]) -> None:
    for text in texts:
        warn_caller(text, category)


def _blown_up(model: Any, joint: Joint, times: Array, driven: bool) -> list[str]:
    """Return what is to be warned of a model that cannot be run over its own rows, without noise that moves states."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SimulationWarning)
        model.simulate(joint.first.mean, times[times >= joint.first.time - SAME_TIME * joint.step], None)
    return [f"Run over its own rows{' without that noise' * driven}, {one.message}." for one in caught]


def regressor_supports(regressor: Any, problem: Problem, unit: Array) -> list[Support]:
    """Return the support that an estimator of ours finds on all rows of the problem, as the only proposal."""
    rows, d = problem.columns.shape
    factor = np.zeros((rows + 2, d + 2))  # of [1 A z]; the column of ones is not used
    factor[1:-1, 1:-1] = problem.columns.take(np.arange(d)) / unit
    factor[1:-1, -1], factor[-1, -1] = problem.target, np.sqrt(problem.rest)
    compressed = CompressedRows(factor, d, problem.n_rows, round(problem.n_rows))
    with warnings.catch_warnings():
        # Of a step on the way, not of the equations.
        warnings.simplefilter("ignore", AdviceWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = clone(regressor).fit(compressed, None)
    return [tuple(np.flatnonzero(found.support_).tolist())]
