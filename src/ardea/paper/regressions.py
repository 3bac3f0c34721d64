"""Trials that compare the methods on one regression problem after another, strengths chosen from grids.

The metrics are those of the paper: ℓ² and ℓ¹ distance of the coefficients from the truth, terms added and missed; and
the ℓ¹ norm of the coefficients that were added. First the comparison, then the data of the five examples. Seed 0 is
the authors' stream of random numbers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.integrate import odeint

from ardea.core.problem import Array
from ardea.dynamics import Discovery, FieldTerms, Polynomials, systems
from ardea.dynamics.differences import finite_difference
from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from ardea.estimators.projections import OwnMatrix, Projection, SparseSigns
from ardea.methods.task import Start
from ardea.paper.experiment import METHODS, READINGS, SLIPS, Row, Settings
from ardea.paper.replay import COARSE, FINE, Grids, published_difference, replayed, threshold_sparse_bayes
from ardea.priors import CappedLinear, Gamma, Log, Prior, Tanh

METRICS = ("l2", "l1", "added", "missed")
# Rows of their own: the paper's methods with what is not the paper's, and methods that are not.
WIDE, SECOND = "wide grid", "second start"
PRIORS = ("ARDr, tanh", "ARDr, log", "ARDr, gamma")
OURS = (
    *(f"{method}, {WIDE}" for method in METHODS[1:]),
    *(f"{method}, {SECOND}" for method in METHODS),
    *PRIORS,
    "TSBR",
    "SparseARD",
    "ARDSearch",
    "Discovery",
)
# Of an ablation: all that departs from the paper, or from a reading of it, put right, and none of the choices that it
# leaves open.
SLIPS_ALONE = "all slips"
# Coefficients of a method, and what else its row says (strength, seconds, whether a fit warned).
Fit = tuple[Array, Row]
# Half octaves and half decades, far beyond the authors' ends: no choice is at an end of these. λ goes on until a larger
# one changes nothing: from there on every γ_j < η is zero, in the quintic library only at 1e16 ‖y‖².
WIDE_GRIDS = Grids(
    alpha=(*2.0 ** np.arange(0, 16.5, 0.5),),
    lam=(0, *10.0 ** np.array([-4, -2, -1, 0, 1, 2, 4, 8, 12, 16, 20])),
    tau_l=(np.inf, *10.0 ** -np.array([300, 200, 100, 50, 30, 20, 15]), *10.0 ** np.arange(-12, 2.5, 0.5)),
    tau_m=(0, *10.0 ** np.arange(-6, 2.5, 0.5)),
    tau_map=(0, *10.0 ** np.arange(-2, 6.5, 0.5)),
    eta=(*10.0 ** np.array([-6, -5, -4, -3, -2.5, -2, -1.5, -1, -0.5, 0, 1, 2]),),
)
# Other priors of the hierarchy (Sec. 3.2), the strongest first: a price of up to `lam` per term, or a gamma density.
PRIOR_GRIDS: dict[str, list[Prior]] = {
    "ARDr, tanh": [Tanh(lam, eta) for lam in (100.0, 30.0, 10.0, 3.0, 1.0) for eta in (1e-3, 1e-2, 1e-1, 1.0)],
    "ARDr, log": [Log(lam, eta) for lam in (10.0, 3.0, 1.0, 0.3) for eta in (1e-4, 1e-3, 1e-2, 1e-1, 1.0)],
    "ARDr, gamma": [Gamma(shape, rate) for shape in (0.1, 0.25, 0.5, 0.75, 1.0) for rate in (100.0, 10.0, 1.0, 0.1)],
}


class Regression(NamedTuple):
    """One problem with its truth."""

    theta: Array
    y: Array
    coef: Array
    criterion: Literal["aicc", "oracle"]  # chooses a strength; the oracle, least added + missed, knows the truth
    names: Mapping[str, Any] = {}  # which problem of its trial it is
    unit: float | None = None  # of λ; None: ‖y‖²
    found: Callable[[], Array] | None = None  # what Discovery, without derivatives and oracle, makes of the same data
    theirs: bool = False  # whether data are not the paper's, so that its methods are run on them beyond it

    @property
    def truth(self) -> Any:
        """What the oracle knows."""
        return self.coef != 0 if self.criterion == "oracle" else None


@dataclass(frozen=True)
class Study:
    """Data, and the strengths to choose from."""

    data: Callable[[Settings, int], Iterable[Regression]]  # the problems of a trial
    grids: Grids  # the authors' strengths, λ in the unit of the problem
    touched: tuple[str, ...]  # corrections of the published code that change something here
    replay_tol: float = FINE  # on γ of plain ARD in the published variant
    replay_sign: float = 1.0  # −1 where the authors scored against coefficients of the wrong sign
    priors: bool = False  # whether other priors are tried
    only_together: tuple[str, ...] = ()  # corrections that an ablation makes only with others, to save time

    def trial(self, settings: Settings, number: int) -> list[Row]:
        """Return one row per problem and method; of an ablation, for every point of the published code put right."""
        if settings.variant != "ablation":
            return self._rows(settings, number, {"correction": "none"} if settings.published else {})
        rows = (self._rows(settings.correcting(*names), number, {"correction": n}) for n, names in self.cases.items())
        return [row for part in rows for row in part]

    @property
    def cases(self) -> dict[str, tuple[str, ...]]:
        """The cases of an ablation: every point alone, then all slips, then all slips and all choices but the grids."""
        together = {SLIPS_ALONE: tuple(name for name in self.touched if name in SLIPS | READINGS)}
        alone = {name: (name,) for name in self.touched if name not in self.only_together}
        return alone | together | {"all": tuple(name for name in self.touched if name != "grids")}

    def _rows(self, settings: Settings, number: int, names: Row) -> list[Row]:
        sign = 1.0 if settings.right("signs") else self.replay_sign
        return [
            {**problem.names, **names, "method": method} | scores(coef, sign * problem.coef) | details
            for problem in self.data(settings, number)
            for method, (coef, details) in self._fits(settings, problem).items()
        ]

    def _fits(self, settings: Settings, problem: Regression) -> dict[str, Fit]:
        """Return the fit of every method: of the published code, of the estimators, or ours."""
        unit = float(problem.y @ problem.y) if problem.unit is None else problem.unit
        own, wide = (replace(g, lam=[unit * factor for factor in g.lam]) for g in (self.grids, WIDE_GRIDS))
        if settings.published:
            grids = wide if "grids" in settings.corrections else own
            found = replayed(
                problem.theta,
                problem.y,
                grids,
                problem.truth,
                self.replay_tol,
                settings.right,
                affected(settings.corrections, problem.theta.shape),
            )
            return {method: (coef, {}) for method, coef in found.items()}
        paper = searches(own, problem)
        if settings.variant == "corrected":
            return {method: _timed(model, problem) for method, model in paper.items()}
        widely = searches(wide, problem)
        models: dict[str, Any] = {f"{method}, {WIDE}": widely[method] for method in METHODS[1:]}
        models |= {f"{method}, {SECOND}": one for method, one in searches(own, problem, "safe").items()}
        models |= paper if problem.theirs else {}
        if self.priors:
            models |= {name: _regularised(PRIOR_GRIDS[name], problem) for name in PRIORS}
        models |= {"SparseARD": SparseARD(fit_intercept=False), "ARDSearch": ARDSearch(ARDvi(fit_intercept=False))}
        fits = {method: _timed(model, problem) for method, model in models.items()}
        fits["TSBR"] = (threshold_sparse_bayes(problem.theta, problem.y), {})
        return fits if problem.found is None else fits | {"Discovery": (problem.found(), {})}


def affected(corrections: tuple[str, ...], shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return the methods that a correction of the published code can change; the others need not be run again.

    Without inflation the last lasso and the posterior mean are the same at a fixed point (Sec. 4.2).
    """
    few_rows = shape[0] <= shape[1]  # then the other rule for σ² is used only once a threshold has dropped columns
    methods = {"MAP recursion": METHODS[5:], "estimate": METHODS[1:2], "choice": METHODS[1:], "grids": METHODS[1:]}
    methods |= {"noise count": METHODS[3:]} if few_rows else {}
    return methods.get(corrections[0], METHODS) if len(corrections) == 1 else METHODS


def searches(grids: Grids, problem: Regression, start: Start = "paper") -> dict[str, ARDSearch]:
    """Return the search of every method, the strongest first: of equal scores the sparsest wins."""
    priors = [CappedLinear(*pair, over_noise=True) for pair in product(sorted(grids.lam, reverse=True)[:-1], grids.eta)]
    plain: Any = {"fit_intercept": False, "start": start}
    strengths = {
        "ARDvi": (ARDvi(**plain), grids.alpha),
        "M-STSBL": (MSTSBL(**plain), grids.tau_m),
        "L-STSBL": (LSTSBL(**plain), grids.tau_l),
        "MAP-STSBL": (MAPSTSBL(**plain), grids.tau_map),
    }
    found = {name: ARDSearch(*pair, problem.criterion, problem.truth) for name, pair in strengths.items()}
    found["ARD"] = ARDSearch(ARD(**plain), None, problem.criterion, problem.truth)
    found["ARDr"] = _regularised(priors, problem, start)
    return {method: found[method] for method in METHODS}


def _regularised(priors: list[Any], problem: Regression, start: Start = "paper") -> ARDSearch:
    """Return a search over priors on γ; ARD stands for none."""
    models = [ARDr(fit_intercept=False, start=start), ARD(fit_intercept=False, start=start)]
    return ARDSearch(models, [{"prior": priors}, None], problem.criterion, problem.truth)


def _timed(model: Any, problem: Regression) -> Fit:
    """Fit a model or a search; return its coefficients, the strength chosen, processor seconds, whether it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        model.fit(problem.theta, problem.y)
        details: Row = {"seconds": round(time.process_time() - start, 4), "warned": int(bool(caught))}
    if not isinstance(model, ARDSearch):
        return model.coef_, details
    return model.coef_, details | _chosen(model)


def _chosen(search: ARDSearch) -> Row:
    """Return the strength chosen, and whether its grid binds.

    It does where the strongest value, or the least or largest η, was chosen and no model with another scores as well.
    The weakest strength is plain ARD, which is no end.
    """
    path, best = search.path_, search.best_index_
    listed = [params.get("prior") for params in search.cv_results_["params"]]
    priors = [prior for prior in listed if isinstance(prior, CappedLinear)]
    columns = {"strength": [*(prior.lam for prior in priors), 0.0], "eta": [*(prior.eta for prior in priors), np.nan]}
    if not priors:
        columns = {"strength": path["strength"].tolist()}
    score = np.where(path["eligible"], path["score"], np.inf) if path["eligible"].any() else path["k"]
    if len(listed) == 1 or len(columns["strength"]) != len(listed):
        return {}
    row: Row = {"bound": 0}
    for name, column in columns.items():
        values = np.array(column, dtype=float)
        ends = {values[0]} if name == "strength" else {np.nanmin(values), np.nanmax(values)}
        row[name] = float(values[best])
        if values[best] in ends and len(set(column[:-1])) > 1:
            row["bound"] |= int(score[best] < score[values != values[best]].min())
    return row


def scores(coef: Array, truth: Array) -> Row:
    """Return the paper's four metrics, and the ℓ¹ norm of what was added."""
    return {
        "l2": float(np.linalg.norm(coef - truth)),
        "l1": float(np.abs(coef - truth).sum()),
        "added": int(((coef != 0) & (truth == 0)).sum()),
        "missed": int(((coef == 0) & (truth != 0)).sum()),
        "added_l1": float(np.abs(coef[truth == 0]).sum()),
    }


# Linear: n rows and columns, condition number 100, 10 % noise, choice by AICc.

CONDITION = 100
LINEAR_NOISE = 0.1


def linear(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield trial `number`: a Gaussian matrix for the singular vectors, the support, the coefficients, the noise.

    Singular values are spread evenly on a log scale.
    """
    n, n_terms = settings.sizes["columns"], settings.sizes["terms"]
    stream = np.random.RandomState(settings.seed)
    for _ in range(number + 1):
        matrix, support = stream.randn(n, n), stream.choice(n, n_terms, replace=False)
        coefficients, noise = stream.randn(n_terms), stream.randn(n)
    left, _, right = np.linalg.svd(matrix)
    theta = left @ np.diag(np.logspace(-np.log10(CONDITION), 0, n)) @ right
    yield _noisy(theta, support, coefficients, noise, LINEAR_NOISE)


def _noisy(theta: Array, support: Array, values: Array, noise: Array, share: float, **rest: Any) -> Regression:
    coef = np.zeros(theta.shape[1])
    coef[support] = values
    clean = theta @ coef
    return Regression(theta, clean + share * np.std(clean) * noise, coef, "aicc", **rest)


LINEAR = Study(
    linear,
    Grids(
        alpha=(1, 2, 4, 8, 10, 16, 32, 64, 128),
        lam=(0, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2),
        tau_l=(np.inf, 1e-4, 1e-3, 1e-2, 1e-1, 1, 2, 5, 10),
    ),
    ("noise grid", "noise count", "noise start", "MAP recursion", "tolerance", "estimate", "choice", "grids"),
    priors=True,
)


# Fourier: a function on [0, π]² in cosine modes, more columns than rows, 10 % noise, choice by AICc.


def cosine_modes(points: Array, n_modes: int) -> Array:
    """Return cos(i x₁) cos(j x₂), i, j = 0 … n_modes − 1, as columns; j runs fastest."""
    first, second = (np.cos(points[:, [axis]] * np.arange(n_modes)) for axis in (0, 1))
    return np.asarray((first[:, :, None] * second[:, None, :]).reshape(points.shape[0], -1))


def fourier(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield trial `number`: points, support, coefficients, noise. Here λ is not in units of ‖y‖²."""
    m, n_modes, n_terms = (settings.sizes[name] for name in ("rows", "modes", "terms"))
    stream = np.random.RandomState(settings.seed)
    for _ in range(number + 1):
        points, support = np.pi * stream.rand(m, 2), stream.choice(n_modes**2, n_terms, replace=False)
        coefficients, noise = stream.randn(n_terms), stream.randn(m)
    yield _noisy(cosine_modes(points, n_modes), support, coefficients, noise, 0.1, unit=1.0)


FOURIER = replace(
    LINEAR,
    data=fourier,
    grids=replace(LINEAR.grids, lam=(0, 1e-2, 1e-1, 1, 1e1, 1e2)),
    replay_tol=COARSE,
    only_together=("grids",),
)


# Lorenz 63: 251 rows, noise of 1 % of the standard deviation of all states and times together (as the authors ran it),
# quintic library, sixth-order differences, choice by oracle.

QUINTIC = Polynomials(5)


# How strengths are chosen for the three equations of a trial, and of which errors: as the authors did; by AICc, as the
# paper could not; on y whose errors are Gaussian, of the same variance, and depend on each other as differences of
# noise do, or not at all; and on y without the error that noise inside the features makes, so with that of differences.
DIFFERENCED, INDEPENDENT = "Gaussian errors, differenced", "Gaussian errors, independent"
OF_DIFFERENCES = "errors of differences alone"
CASES: list[tuple[str, Any]] = list(product(("", DIFFERENCED, INDEPENDENT, OF_DIFFERENCES), ("oracle", "aicc")))


def lorenz63(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield the three equations of trial `number`: start and noise are drawn. In the corrected variant all cases."""
    system, stream = systems.lorenz63(), np.random.RandomState(settings.seed)
    for _ in range(number + 1):
        start, noise = np.array([0.0, 0.0, 15.0]) + 5 * stream.randn(3), stream.randn(system.n_rows, 3)
    clean = system.simulate(start)[1]
    x = clean + 0.01 * np.std(clean) * noise
    theta, found = QUINTIC.evaluate(x), cache(lambda: Discovery(QUINTIC).fit(x, system.dt).coef_)
    slopes = _difference(settings)(x, system.dt)
    white = np.random.default_rng([settings.seed, number]).standard_normal(slopes.shape)
    errors = {INDEPENDENT: white, DIFFERENCED: finite_difference(white, system.dt)}
    hidden = theta - QUINTIC.evaluate(clean)
    cases = CASES if settings.variant == "corrected" else CASES[:1]
    for (kind, criterion), (i, coef) in product(cases, enumerate(system.true_coefficients(QUINTIC))):
        fitted, y = theta @ coef, slopes[:, i]
        if kind == OF_DIFFERENCES:
            y = y + hidden @ coef
        elif kind:
            y = fitted + np.std(y - fitted) * errors[kind][:, i] / np.std(errors[kind][:, i])
        names = {"criterion": f"{criterion}, {kind}" if kind else criterion, "dimension": i}
        yield Regression(theta, y, coef, criterion, names, found=partial(lambda i: found()[i], i))


def _difference(settings: Settings) -> Callable[..., Array]:
    return finite_difference if settings.right("differences") else published_difference


LORENZ63 = Study(
    lorenz63,
    Grids(
        alpha=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        lam=(0, 1e-1, 1, 1e1, 1e2, 1e3, 1e4),
        tau_l=(np.inf, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1, 2, 5, 10),
    ),
    ("noise count", "noise start", "MAP recursion", "tolerance", "estimate", "choice", "differences", "grids"),
)


# Lorenz 96: 200 rows (the text says 201 in two places, the authors ran 200), 1 % noise, quadratic library, choice by
# oracle. A trial is one equation of one trajectory: the authors' (start 0), then others from standard normal starts.

QUADRATIC = Polynomials(2)


@lru_cache(maxsize=2)
def lorenz96_states(states: int, seed: int, start: int, accurate: bool) -> Array:
    """Return the noisy states; in chaos the solver and its tolerance (the authors': loose) decide the end."""
    system, stream = systems.lorenz96(states), np.random.RandomState(seed + start)
    x0 = system.x0 if start == 0 else stream.randn(states)
    if accurate:
        _, clean = system.simulate(x0)
    else:
        clean = odeint(lambda x, _: np.array(system.flow(*x)), x0, system.t)
    return np.asarray(clean + 0.01 * np.std(clean) * stream.randn(*clean.shape))


@lru_cache(maxsize=2)
def _lorenz96_found(states: int, seed: int, start: int) -> Array:
    """Return what Discovery finds for all equations: once, not in every trial of a process."""
    x = lorenz96_states(states, seed, start, accurate=True)
    return Discovery(QUADRATIC).fit(x, systems.lorenz96(states).dt).coef_


def lorenz96(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield equation `number`, counted through all trajectories."""
    n, seed = settings.sizes["states"], settings.seed
    start, i = divmod(number, n)
    system, x = systems.lorenz96(n), lorenz96_states(n, seed, start, settings.right("integration"))
    slopes = _difference(settings)(x, system.dt)
    coef, theta = system.true_coefficients(QUADRATIC)[i], QUADRATIC.evaluate(x)
    found: Callable[[], Array] = lambda: _lorenz96_found(n, seed, start)[i]  # noqa: E731
    yield Regression(theta, slopes[:, i], coef, "oracle", {"start": start}, found=found)


LORENZ96 = Study(
    lorenz96,
    Grids(
        alpha=(1, 2, 4, 8, 10, 16, 32, 64, 128, 256, 512),
        lam=(0, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2),
        tau_l=(np.inf, 1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1, 2, 5, 10),
        tau_map=(0, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3, 1e4),
    ),
    ("noise grid", *LORENZ63.touched[:-1], "integration", "grids"),
)


# Kuramoto–Sivashinsky: 0.1 % noise, 25 terms, sixth-order differences, choice by oracle. Samples of the rows as in the
# paper; beyond it projections of all rows by other matrices C, and all rows at once, which compression makes as cheap.

FIELD_TERMS = FieldTerms(powers=4, derivatives=4)
# Rows of the field that each row of the Gaussian C combines.
COMBINED = 20


def ks_field(seed: int, n_x: int, n_t: int) -> Array:
    """Return the noisy field of shape (n_x, n_t)."""
    system = systems.kuramoto_sivashinsky(n_x)
    _, clean = system.simulate() if n_t == system.n_rows else system.simulate(t=system.t[:n_t])
    return np.asarray(clean + 0.001 * np.std(clean) * np.random.RandomState(seed).randn(*clean.shape))


@lru_cache(maxsize=2)
def _ks_rows(seed: int, accurate: bool, n_x: int, n_t: int) -> tuple[Array, Array]:
    """Return Θ and y at every point of the grid, time slowest: row = t·n_x + x."""
    system, u = systems.kuramoto_sivashinsky(n_x), ks_field(seed, n_x, n_t)
    in_time: Callable[..., Array] = finite_difference if accurate else published_difference
    in_space = partial(finite_difference, periodic=True) if accurate else published_difference
    slopes = in_time(u.T, system.dt)
    along = [np.ones_like(u)] + [in_space(u, system.length / n_x, derivative=order) for order in range(1, 5)]
    return FIELD_TERMS.evaluate([u.T], lambda field, orders: along[orders[0]].T), slopes.ravel()


def ks(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield sample `number` of the rows; beyond the paper also projections, and in trial 0 all rows."""
    n_x, n_t, size = (settings.sizes[name] for name in ("n_x", "n_t", "sample"))
    theta, y = _ks_rows(settings.seed, settings.right("differences"), n_x, n_t)
    system = systems.kuramoto_sivashinsky(n_x)
    coef = system.true_coefficients(FIELD_TERMS)[0]
    stream = np.random.RandomState(settings.seed)
    stream.randn(n_x, n_t)  # the noise of the field
    for _ in range(number + 1):
        sample = stream.choice(y.size, size, replace=False)
    # The published code scales λ by ‖y‖² of all rows, the corrected one by that of the sample.
    unit = None if settings.right("unit of λ") else float(y @ y)
    yield Regression(theta[sample], y[sample], coef, "oracle", {"rows": "sample"}, unit)
    if settings.variant != "beyond":
        return
    for title, C in {"signs": SparseSigns(size, number), "Gaussian": _combined(size, y.size, number)}.items():
        rows = C.finish(C.apply(0, np.column_stack([theta, y])))
        yield Regression(rows[:, :-1], rows[:, -1], coef, "oracle", {"rows": title}, theirs=True)
    if number == 0:

        def found() -> Array:
            return Discovery(FIELD_TERMS).fit(ks_field(settings.seed, n_x, n_t), system.dt, space=system.space).coef_[0]

        yield Regression(theta, y, coef, "oracle", {"rows": "all"}, found=found, theirs=True)


def _combined(n: int, n_rows: int, seed: int) -> Projection:
    """Return a C of n rows with a few normal entries each, at random places."""
    generator = np.random.default_rng(seed)
    places = generator.choice(n_rows, (n, COMBINED))
    entries = generator.standard_normal(places.size)
    row = np.repeat(np.arange(n), COMBINED)
    return OwnMatrix(sparse.csr_array((entries, (row, places.ravel())), shape=(n, n_rows)))


KS = Study(ks, LORENZ63.grids, (*LORENZ63.touched[:-1], "unit of λ", "signs", "grids"), replay_sign=-1.0)
