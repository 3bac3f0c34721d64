"""PySINDy's optimizers on the data of `benchmarks.scoreboards`, as they are and tuned by the truth.

As they are: polynomials of the flow's own degree (dysts) or of degree 3 (ODEBench), PySINDy's finite differences and
the optimizer's own settings. Tuned: data plain or smoothed by a Savitzky–Golay filter of 11 or 21 points, polynomials
also in PySINDy's weak form, for ODEBench also sines and cosines among the candidates, and a grid of the optimizer's
settings; of all models that is taken which the truth calls the best. PySINDy has no terms with unknown constants
inside.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_filter

from ardea.dynamics import Fourier, Polynomials
from benchmarks.discovery_peers import N_DOMAINS, N_THRESHOLDS, SAVGOL_POINTS, SHARES, squeezed, stlsq_models
from benchmarks.motions import Motion

Array = NDArray[np.float64]
Data = tuple[Array, Array]

FROLS_PRICES = np.geomspace(1e-8, 1e-1, 8)


@dataclass(frozen=True, eq=False)
class Method:
    """An optimizer, and whether it is tuned by the truth."""

    optimizer: str
    tuned: bool


@dataclass(frozen=True, eq=False)
class Peer:
    """Coefficients of one model, (n, terms), on a library without unknown constants."""

    library: Any
    names: list[str]
    coefficients: Array


OPTIMIZERS = ("STLSQ", "SR3", "FROLS") if find_spec("pysindy") else ()
METHODS = {f"{one}{' tuned' if tuned else ''}": Method(one, tuned) for one in OPTIMIZERS for tuned in (False, True)}


def peer_model(
    method: Method, motion: Motion, y: Array, seed: int, errors: Callable[[Motion, Peer], tuple[float, float]]
) -> Peer:
    """Return the model of a method; where it is tuned, the one with the least errors."""
    own = isinstance(motion.library, Polynomials)
    libraries = [motion.library] if own else [Polynomials(3), Polynomials(3) + Fourier(1)]
    blanks = [Peer(library, list(library.names(motion.states)), np.empty(0)) for library in libraries]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Sparsity parameter is too big", ill-conditioned Gram matrices
        if not method.tuned:
            data = _differences(libraries[0], motion, y, None)
            return replace(blanks[0], coefficients=_as_it_is(method.optimizer, *data))
        found = [
            replace(blank, coefficients=coefficients)
            for blank in blanks
            for data in _data(blank.library, motion, y, seed)
            for coefficients in _models(method.optimizer, *data)
        ]
        return min(found, key=lambda one: errors(motion, one))


def _as_it_is(optimizer: str, terms: Array, slopes: Array) -> Array:
    import pysindy

    return np.asarray(getattr(pysindy, optimizer)().fit(*squeezed(terms, slopes)).coef_)


def _models(optimizer: str, terms: Array, slopes: Array) -> Iterator[Array]:
    """Yield the coefficients of an optimizer over a grid of its settings."""
    import pysindy

    if optimizer == "STLSQ":
        yield from stlsq_models(terms, slopes)
        return
    rows = squeezed(terms, slopes)
    if optimizer == "SR3":  # a threshold of √(2λν), as the thresholds of STLSQ
        for normalise in (False, True):
            size = float(np.mean(np.linalg.norm(slopes, axis=0))) if normalise else 3.0
            for threshold in size * np.geomspace(1e-3, 1.0, N_THRESHOLDS):
                settings = {"reg_weight_lam": threshold**2 / 2, "normalize_columns": normalise, "unbias": True}
                yield np.asarray(pysindy.SR3(**settings, max_iter=100).fit(*rows).coef_)
        return
    for price in FROLS_PRICES:
        yield np.asarray(pysindy.FROLS(kappa=price, alpha=1e-5, max_iter=20).fit(*rows).coef_)


def _data(library: Any, motion: Motion, y: Array, seed: int) -> Iterator[Data]:
    for points in SAVGOL_POINTS:
        yield _differences(library, motion, y, points)
    if isinstance(library, Polynomials):
        for share in SHARES:
            yield _integrals(library, motion, y, share, seed)


def _differences(library: Any, motion: Motion, y: Array, points: int | None) -> Data:
    """Return terms and slopes at the samples."""
    import pysindy

    x = savgol_filter(y, points, 3, axis=0) if points else y
    return library.evaluate(x), np.asarray(pysindy.FiniteDifference()._differentiate(x, motion.t))


def _integrals(library: Polynomials, motion: Motion, y: Array, share: float, seed: int) -> Data:
    """Return the integrals of PySINDy's weak library."""
    import pysindy

    np.random.seed(seed)  # noqa: NPY002  # PySINDy places its subdomains by the global generator
    degree = library.degree_for(len(motion.states))
    weak = pysindy.WeakPDELibrary(
        pysindy.PolynomialLibrary(degree=degree, include_bias=False),
        spatiotemporal_grid=motion.t,
        include_bias=True,
        K=N_DOMAINS,
        H_xt=[share * float(np.ptp(motion.t))],
    )
    terms = np.asarray(weak.fit_transform(y))
    theirs = weak.get_feature_names(list(motion.states))
    order = [theirs.index(name) for name in library.names(motion.states)]
    return terms[:, order], np.asarray(weak.convert_u_dot_integral(y))
