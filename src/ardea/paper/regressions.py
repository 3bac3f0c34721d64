"""Trials that compare the methods on one regression problem after another, strengths chosen from the authors' grids.

The metrics are those of the paper: ℓ² and ℓ¹ distance of the coefficients from the truth, terms added and missed.
First the comparison, then the data of the five examples. Seed 0 is the authors' stream of random numbers.
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
from scipy.integrate import odeint

from ardea.core.problem import Array
from ardea.dynamics import Discovery, FieldTerms, Polynomials, systems
from ardea.dynamics.differences import finite_difference
from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD
from ardea.paper.experiment import Row, Settings
from ardea.paper.replay import COARSE, FINE, Grids, published_difference, replayed
from ardea.priors import CappedLinear

METRICS = ("l2", "l1", "added", "missed")
METHODS = ("ARD", "ARDvi", "ARDr", "M-STSBL", "L-STSBL", "MAP-STSBL")
OURS = ("SparseARD", "Discovery")
# Coefficients of a method, and what else its row says (strength, seconds, whether a fit warned).
Fit = tuple[Array, Row]


class Regression(NamedTuple):
    """One problem with its truth."""

    theta: Array
    y: Array
    coef: Array
    criterion: Literal["aicc", "oracle"]  # chooses a strength; the oracle, least added + missed, knows the truth
    names: Mapping[str, Any] = {}  # which problem of its trial it is
    unit: float | None = None  # of λ; None: ‖y‖²
    found: Callable[[], Array] | None = None  # what Discovery, without derivatives and oracle, makes of the same data


@dataclass(frozen=True)
class Study:
    """Data, and the strengths to choose from."""

    data: Callable[[Settings, int], Iterable[Regression]]  # the problems of a trial
    grids: Grids  # the authors' strengths, λ in the unit of the problem
    replay_tol: float = FINE  # on γ of plain ARD in the published variant
    replay_sign: float = 1.0  # −1 where the authors scored against coefficients of the wrong sign

    def trial(self, settings: Settings, number: int) -> list[Row]:
        """Return one row per problem and method."""
        sign = self.replay_sign if settings.published else 1.0
        return [
            {**problem.names, "method": method} | scores(coef, sign * problem.coef) | details
            for problem in self.data(settings, number)
            for method, (coef, details) in self._fits(settings, problem).items()
        ]

    def _fits(self, settings: Settings, problem: Regression) -> dict[str, Fit]:
        """Return the fit of every method: ours, those of the published code, or those of the estimators."""
        if settings.variant == "beyond":
            found: dict[str, Fit] = {} if problem.found is None else {"Discovery": (problem.found(), {})}
            return {"SparseARD": _timed(SparseARD(fit_intercept=False), problem)} | found
        truth = problem.coef != 0 if problem.criterion == "oracle" else None
        unit = float(problem.y @ problem.y) if problem.unit is None else problem.unit
        grids = replace(self.grids, lam=[unit * factor for factor in self.grids.lam])
        if settings.published:
            coefficients = replayed(problem.theta, problem.y, grids, truth, self.replay_tol)
            return {method: (coef, {"warned": 0}) for method, coef in coefficients.items()}
        return {
            method: _timed(ARDSearch(estimator, strengths, problem.criterion, truth), problem)
            for method, (estimator, strengths) in searches(grids).items()
        }


def searches(grids: Grids) -> dict[str, tuple[Any, Any]]:
    """Return estimator(s) and strengths for every method, the strongest first: of equal scores the sparsest wins."""
    priors = [CappedLinear(lam, grids.eta, over_noise=True) for lam in sorted(grids.lam, reverse=True) if lam > 0]
    regularised = [ARDr(prior=prior, fit_intercept=False) for prior in priors]
    return {
        "ARD": (ARD(fit_intercept=False), None),
        "ARDvi": (ARDvi(fit_intercept=False), grids.alpha),
        # A prior is not a number to sort, so every λ is an estimator of its own, and ARD stands for λ = 0.
        "ARDr": ([*regularised, ARD(fit_intercept=False)], [{"eta": [np.inf]}] * len(priors) + [None]),
        "M-STSBL": (MSTSBL(fit_intercept=False), grids.tau_m),
        "L-STSBL": (LSTSBL(fit_intercept=False), grids.tau_l),
        "MAP-STSBL": (MAPSTSBL(fit_intercept=False), grids.tau_map),
    }


def _timed(model: Any, problem: Regression) -> Fit:
    """Fit a model or a search; return its coefficients, the strength chosen, processor seconds, whether it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        model.fit(problem.theta, problem.y)
        details: Row = {"seconds": time.process_time() - start, "warned": int(bool(caught))}
    best = getattr(model, "best_estimator_", model)
    prior = getattr(best, "prior", None)
    strength: Any = prior.lam if isinstance(prior, CappedLinear) else getattr(model, "best_strength_", np.nan)
    return best.coef_, details if np.isnan(strength) else {"strength": float(strength)} | details


def scores(coef: Array, truth: Array) -> Row:
    """Return the paper's four metrics."""
    return {
        "l2": float(np.linalg.norm(coef - truth)),
        "l1": float(np.abs(coef - truth).sum()),
        "added": int(((coef != 0) & (truth == 0)).sum()),
        "missed": int(((coef == 0) & (truth != 0)).sum()),
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


FOURIER = Study(fourier, replace(LINEAR.grids, lam=(0, 1e-2, 1e-1, 1, 1e1, 1e2)), replay_tol=COARSE)


# Lorenz 63: 251 rows, noise of 1 % of the standard deviation of all states and times together (as the authors ran it),
# quintic library, sixth-order differences, choice by oracle.

QUINTIC = Polynomials(5)


def lorenz63(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield the three equations of trial `number`: start and noise are drawn.

    The corrected variant also chooses by AICc, as the paper could not.
    """
    system, stream = systems.lorenz63(), np.random.RandomState(settings.seed)
    for _ in range(number + 1):
        start, noise = np.array([0.0, 0.0, 15.0]) + 5 * stream.randn(3), stream.randn(system.n_rows, 3)
    clean = system.simulate(start)[1]
    x = clean + 0.01 * np.std(clean) * noise
    theta, found = QUINTIC.evaluate(x), cache(lambda: Discovery(QUINTIC).fit(x, system.dt).coef_)
    slopes = (published_difference if settings.published else finite_difference)(x, system.dt)
    choices: tuple[Any, ...] = ("oracle", "aicc") if settings.variant == "corrected" else ("oracle",)
    for criterion, (i, coef) in product(choices, enumerate(system.true_coefficients(QUINTIC))):
        names = {"criterion": criterion, "dimension": i}
        yield Regression(theta, slopes[:, i], coef, criterion, names, found=partial(lambda i: found()[i], i))


LORENZ63 = Study(
    lorenz63,
    Grids(
        alpha=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        lam=(0, 1e-1, 1, 1e1, 1e2, 1e3, 1e4),
        tau_l=(np.inf, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1, 2, 5, 10),
    ),
)


# Lorenz 96: 200 rows (the text says 201 in two places, the authors ran 200), 1 % noise, quadratic library, choice by
# oracle. A trial is one equation.

QUADRATIC = Polynomials(2)


def lorenz96_states(states: int, seed: int, published: bool) -> Array:
    """Return the noisy states; in chaos the solver and its tolerance (the authors': loose) decide the end."""
    system = systems.lorenz96(states)
    if published:
        clean = odeint(lambda x, _: np.array(system.flow(*x)), system.x0, system.t)
    else:
        _, clean = system.simulate()
    noise = np.random.RandomState(seed).randn(*clean.shape)
    return np.asarray(clean + 0.01 * np.std(clean) * noise)


@lru_cache(maxsize=2)
def _lorenz96_found(states: int, seed: int) -> Array:
    """Return what Discovery finds for all equations: once, not in every trial of a process."""
    x = lorenz96_states(states, seed, published=False)
    return Discovery(QUADRATIC).fit(x, systems.lorenz96(states).dt).coef_


def lorenz96(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield equation `number`."""
    n, seed = settings.sizes["states"], settings.seed
    system, x = systems.lorenz96(n), lorenz96_states(n, seed, settings.published)
    slopes = (published_difference if settings.published else finite_difference)(x, system.dt)
    coef = system.true_coefficients(QUADRATIC)[number]
    theta = QUADRATIC.evaluate(x)
    yield Regression(theta, slopes[:, number], coef, "oracle", found=lambda: _lorenz96_found(n, seed)[number])


LORENZ96 = Study(
    lorenz96,
    Grids(
        alpha=(1, 2, 4, 8, 10, 16, 32, 64, 128, 256, 512),
        lam=(0, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2),
        tau_l=(np.inf, 1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1, 2, 5, 10),
        tau_map=(0, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3, 1e4),
    ),
)


# Kuramoto–Sivashinsky: 0.1 % noise, 25 terms, sixth-order differences, choice by oracle. Samples of the rows as in the
# paper; then all rows at once, which compression makes as cheap as a sample.

FIELD_TERMS = FieldTerms(powers=4, derivatives=4)


def ks_field(seed: int, n_x: int, n_t: int) -> Array:
    """Return the noisy field of shape (n_x, n_t)."""
    system = systems.kuramoto_sivashinsky(n_x)
    _, clean = system.simulate() if n_t == system.n_rows else system.simulate(t=system.t[:n_t])
    return np.asarray(clean + 0.001 * np.std(clean) * np.random.RandomState(seed).randn(*clean.shape))


@lru_cache(maxsize=2)
def _ks_rows(seed: int, published: bool, n_x: int, n_t: int) -> tuple[Array, Array]:
    """Return Θ and y at every point of the grid, time slowest: row = t·n_x + x."""
    system, u = systems.kuramoto_sivashinsky(n_x), ks_field(seed, n_x, n_t)
    in_time: Callable[..., Array] = published_difference if published else finite_difference
    in_space = published_difference if published else partial(finite_difference, periodic=True)
    slopes = in_time(u.T, system.dt)
    along = [np.ones_like(u)] + [in_space(u, system.length / n_x, derivative=order) for order in range(1, 5)]
    return FIELD_TERMS.evaluate([u.T], lambda field, orders: along[orders[0]].T), slopes.ravel()


def ks(settings: Settings, number: int) -> Iterator[Regression]:
    """Yield sample `number` of the rows; the trial after the last sample has all rows."""
    n_x, n_t = settings.sizes["n_x"], settings.sizes["n_t"]
    theta, y = _ks_rows(settings.seed, settings.published, n_x, n_t)
    system = systems.kuramoto_sivashinsky(n_x)
    coef = system.true_coefficients(FIELD_TERMS)[0]
    if number == settings.sizes["trials"] - 1:

        def found() -> Array:
            return Discovery(FIELD_TERMS).fit(ks_field(settings.seed, n_x, n_t), system.dt, space=system.space).coef_[0]

        if not settings.published:
            yield Regression(theta, y, coef, "oracle", {"rows": "all"}, found=found)
        return
    stream = np.random.RandomState(settings.seed)
    stream.randn(n_x, n_t)  # the noise of the field
    for _ in range(number + 1):
        sample = stream.choice(y.size, settings.sizes["sample"], replace=False)
    # The published code scales λ by ‖y‖² of all rows, the corrected one by that of the sample.
    unit = float(y @ y) if settings.published else None
    yield Regression(theta[sample], y[sample], coef, "oracle", {"rows": "sample"}, unit)


KS = Study(ks, LORENZ63.grids, replay_sign=-1.0)
