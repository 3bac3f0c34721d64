"""Comparison of the methods on one regression problem after another: data × methods × strengths × metric.

The metrics are those of the paper: ℓ² and ℓ¹ distance of the coefficients from the truth, terms added and missed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array
from ardea.estimators.family import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD
from ardea.estimators.search import ARDSearch
from ardea.paper.experiment import Settings
from ardea.paper.records import Row, Value
from ardea.paper.replay import FINE, Grids, replayed
from ardea.priors import CappedLinear

METRICS = ("l2", "l1", "added", "missed")
METHODS = ("ARD", "ARDvi", "ARDr", "M-STSBL", "L-STSBL", "MAP-STSBL")
OURS = ("SparseARD", "Discovery")
BLOCK_ROWS = 65_536


@dataclass(frozen=True)
class Regression:
    """One problem with its truth: Θ, y, ξ, what names it within its trial, and the unit of λ (default: ‖y‖²)."""

    theta: Array
    y: Array
    coef: Array
    names: Mapping[str, Value] = field(default_factory=dict)
    unit: float | None = None

    @property
    def lam_unit(self) -> float:
        """What the authors multiply λ by."""
        return float(self.y @ self.y) if self.unit is None else self.unit

    @property
    def truth(self) -> NDArray[np.bool_]:
        """Which coefficients are not zero."""
        return self.coef != 0


@dataclass(frozen=True)
class Fitted:
    """What a method returned: coefficients, chosen strength, seconds, and whether a fit warned."""

    coef: Array
    strength: float | None = None
    seconds: float | None = None
    warned: bool = False

    def details(self) -> Row:
        """Return what is known besides the coefficients."""
        known = {"strength": self.strength, "seconds": self.seconds, "warned": int(self.warned)}
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True)
class Discovered:
    """One equation that Discovery found, next to the truth."""

    coef: Array
    truth: Array
    names: Mapping[str, Value]


@dataclass(frozen=True)
class Study:
    """Data, strengths and the rule that chooses among them.

    Attributes
    ----------
    data : callable
        (settings, trial number) → the problems of that trial.
    grids : callable
        Problem → the authors' strengths for it.
    criterion : {"aicc", "oracle"}
        AICc, or least added + missed (which knows the truth), as in the paper.
    replay_tol : float
        Tolerance on γ of plain ARD in the published variant.
    replay_sign : float
        −1 where the authors scored against coefficients of the wrong sign.
    discovered : callable, optional
        (settings, trial number) → what Discovery, which needs no derivatives and no oracle, finds from the same noisy
        data; for the part "beyond".
    """

    data: Callable[[Settings, int], Iterable[Regression]]
    grids: Callable[[Regression], Grids]
    criterion: Literal["aicc", "oracle"]
    replay_tol: float = FINE
    replay_sign: float = 1.0
    discovered: Callable[[Settings, int], Iterable[Discovered]] | None = None

    def trial(self, settings: Settings, number: int) -> list[Row]:
        """Return one row per problem and method."""
        rows = [row for problem in self.data(settings, number) for row in self._rows(settings, problem)]
        if settings.part == "beyond" and self.discovered is not None:
            rows += [
                dict(found.names) | {"method": "Discovery"} | scores(found.coef, found.truth)
                for found in self.discovered(settings, number)
            ]
        return rows

    def _rows(self, settings: Settings, problem: Regression) -> list[Row]:
        if settings.part == "beyond":
            fits = ours(problem)
        elif settings.variant == "published":
            fits = self.published(problem)
        else:
            fits = self.corrected(problem)
        sign = self.replay_sign if settings.variant == "published" and settings.part == "paper" else 1.0
        return [
            dict(problem.names) | {"method": method} | scores(fit.coef, sign * problem.coef) | fit.details()
            for method, fit in fits.items()
        ]

    def published(self, problem: Regression) -> dict[str, Fitted]:
        """Return the coefficients of the published code."""
        truth = problem.truth if self.criterion == "oracle" else None
        coefficients = replayed(problem.theta, problem.y, self.grids(problem), truth=truth, tol=self.replay_tol)
        return {method: Fitted(coefficients[method]) for method in METHODS}

    def corrected(self, problem: Regression) -> dict[str, Fitted]:
        """Return the coefficients of the estimators, strengths chosen from the authors' grids."""
        grids = self.grids(problem)
        return {method: self._searched(problem, *search) for method, search in searches(grids).items()}

    def _searched(self, problem: Regression, estimator: Any, strengths: Any) -> Fitted:
        truth = problem.truth if self.criterion == "oracle" else None
        search = ARDSearch(estimator, strengths, self.criterion, truth)
        seconds, warned = _timed(lambda: search.fit(problem.theta, problem.y))
        best = search.best_estimator_
        prior = getattr(best, "prior", None)
        strength = float(prior.lam) if isinstance(prior, CappedLinear) else search.best_strength_  # type: ignore[arg-type]
        return Fitted(best.coef_, None if np.isnan(strength) else strength, seconds, warned)


def searches(grids: Grids) -> dict[str, tuple[Any, Any]]:
    """Return estimator(s) and strengths for every method, the strongest first: of equal scores the sparsest wins."""
    priors = [CappedLinear(lam, grids.eta, over_noise=True) for lam in sorted(grids.lam, reverse=True) if lam > 0]
    regularised: Sequence[Any] = [ARDr(prior=prior, fit_intercept=False) for prior in priors]
    return {
        "ARD": (ARD(fit_intercept=False), None),
        "ARDvi": (ARDvi(fit_intercept=False), grids.alpha),
        # A prior is not a number to sort, so every λ is an estimator of its own, and ARD stands for λ = 0.
        "ARDr": ([*regularised, ARD(fit_intercept=False)], [{"eta": [np.inf]}] * len(priors) + [None]),
        "M-STSBL": (MSTSBL(fit_intercept=False), grids.tau_m),
        "L-STSBL": (LSTSBL(fit_intercept=False), grids.tau_l),
        "MAP-STSBL": (MAPSTSBL(fit_intercept=False), grids.tau_map),
    }


def ours(problem: Regression) -> dict[str, Fitted]:
    """Return our rows on the same Θ and y, nothing told: SparseARD. Further methods of ours join here."""
    model = SparseARD(fit_intercept=False)
    seconds, warned = _timed(lambda: _fit_in_blocks(model, problem))
    return {"SparseARD": Fitted(model.coef_, None, seconds, warned)}


def _fit_in_blocks(model: SparseARD, problem: Regression) -> Array:
    """Fit at once where that is small, else block after block."""
    rows = problem.theta.shape[0]
    if rows <= BLOCK_ROWS:
        model.fit(problem.theta, problem.y)
    else:
        for start in range(0, rows, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            model.partial_fit(problem.theta[part], problem.y[part])
    coef: Array = model.coef_
    return coef


def _timed(fit: Callable[[], Any]) -> tuple[float, bool]:
    """Return the processor seconds of a fit and whether it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        fit()
        return time.process_time() - start, bool(caught)


def scores(coef: Array, truth: Array) -> dict[str, Value]:
    """Return the paper's four metrics.

    Examples
    --------
    >>> import numpy as np
    >>> scores(np.array([3.0, 1.0, 0.0]), np.array([3.0, 0.0, 2.0]))
    {'l2': 2.23606797749979, 'l1': 3.0, 'added': 1, 'missed': 1}
    """
    return {
        "l2": float(np.linalg.norm(coef - truth)),
        "l1": float(np.abs(coef - truth).sum()),
        "added": int(((coef != 0) & (truth == 0)).sum()),
        "missed": int(((coef == 0) & (truth != 0)).sum()),
    }
