"""PySINDy's STLSQ on the data and terms of `benchmarks.discovery`, tuned by the truth.

With finite differences (plain, or smoothed by a Savitzky–Golay filter of 11 or 21 points), and in PySINDy's weak form.
Smoothing, size of the subdomains, threshold, ridge penalty and normalisation are those of a grid with the fewest wrong
terms, which only the truth can tell.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_filter

from ardea.dynamics.systems import Pde
from benchmarks.process import Record

Array = NDArray[np.float64]

SAVGOL_POINTS = (None, 11, 21)
RIDGES, N_THRESHOLDS = (0.05, 1e-5), 16
# Half the length of PySINDy's subdomains as a share of the whole (its default is 1/20), and their number.
SHARES, N_DOMAINS = (1 / 20, 1 / 10), 200


def compared(system: Pde, coefficients: Array) -> Record:
    """Compare coefficients with the truth."""
    truth = system.true_coefficients()
    kept, true = coefficients != 0, truth != 0
    return {
        "exact": bool(np.array_equal(kept, true)),
        "equations": f"{int(np.sum(np.all(kept == true, axis=1)))}/{len(truth)}",
        "added": int(np.sum(kept & ~true)),
        "missed": int(np.sum(true & ~kept)),
        "error": float(np.mean(np.abs(coefficients - truth)[true] / np.abs(truth[true]))),
    }


def with_differences(system: Pde, t: Array, x: Array) -> Record:
    """STLSQ on derivatives by finite differences of the data, plain or smoothed."""
    return tuned(system, (_differences(system, t, x, points) for points in SAVGOL_POINTS))


def _differences(system: Pde, t: Array, x: Array, points: int | None) -> tuple[Array, Array]:
    """Return terms and derivatives at the samples."""
    import pysindy

    if points:
        for axis in (0, 1):
            x = savgol_filter(x, points, 3, axis=axis)
    library = pysindy.PDELibrary(
        _powers(system), derivative_order=_library(system).derivatives, spatial_grid=system.space[0], include_bias=True
    )
    terms = np.asarray(library.fit_transform(x[..., None])).reshape(x.size, -1)
    slopes = np.asarray(pysindy.FiniteDifference(axis=1)._differentiate(x[..., None], t)).reshape(-1, 1)
    return terms[:, _order(library, system)], slopes


def with_weak_form(system: Pde, t: Array, x: Array, seed: int) -> Record:
    """STLSQ on the integrals of PySINDy's weak library."""
    return tuned(system, (_integrals(system, t, x, share, seed) for share in SHARES))


def _integrals(system: Pde, t: Array, x: Array, share: float, seed: int) -> tuple[Array, Array]:
    """Return weak terms and derivatives."""
    import pysindy

    np.random.seed(seed)  # noqa: NPY002  # PySINDy places its subdomains by the global generator
    library = pysindy.WeakPDELibrary(
        _powers(system),
        derivative_order=_library(system).derivatives,
        spatiotemporal_grid=np.stack(np.meshgrid(system.space[0], t, indexing="ij"), axis=-1),
        include_bias=True,
        K=N_DOMAINS,
        H_xt=[share * system.length, share * (t[-1] - t[0])],
    )
    terms = np.asarray(library.fit_transform(x[..., None]))[:, _order(library, system)]
    return terms, np.asarray(library.convert_u_dot_integral(x[..., None]))


def _library(system: Pde) -> Any:
    """Return the library, whose type the kind of the system decides."""
    return system.library


def _powers(system: Pde) -> Any:
    import pysindy

    return pysindy.PolynomialLibrary(degree=_library(system).powers, include_bias=False)


def _order(library: Any, system: Pde) -> list[int]:
    """Return where our terms stand in PySINDy's library of a field: `u^2 u_xx` is `u^2u_11` there."""
    theirs = library.get_feature_names(["u"])
    return [theirs.index(name.replace(" ", "").replace("x", "1")) for name in system.library.names(["u"])]


def tuned(system: Pde, data: Iterable[tuple[Array, Array]]) -> Record:
    """Return the comparison of the STLSQ model with the fewest wrong terms, over all data and settings."""
    records = [compared(system, coefficients) for terms, slopes in data for coefficients in stlsq_models(terms, slopes)]
    return min(records, key=lambda record: (record["added"] + record["missed"], record["error"]))


def stlsq_models(terms: Array, slopes: Array) -> Iterator[Array]:
    """Yield the coefficients of STLSQ over the grid of settings."""
    import pysindy

    terms, slopes = squeezed(terms, slopes)
    size = float(np.mean(np.linalg.norm(slopes, axis=0)))
    grids = {False: np.geomspace(0.002, 3.0, N_THRESHOLDS), True: size * np.geomspace(1e-3, 1.0, N_THRESHOLDS)}
    for normalise, ridge in product((False, True), RIDGES):
        for threshold in grids[normalise]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "Sparsity parameter is too big", ill-conditioned Gram matrices
                model = pysindy.STLSQ(threshold=threshold, alpha=ridge, normalize_columns=normalise)
                yield np.asarray(model.fit(terms, slopes).coef_)


def squeezed(terms: Array, slopes: Array) -> tuple[Array, Array]:
    """Return fewer rows, those of a QR factorisation: what optimizers do depends on the Gram matrix alone."""
    if not (np.all(np.isfinite(terms)) and np.all(np.isfinite(slopes))):
        raise ValueError("terms or derivatives are not finite")
    if len(terms) <= terms.shape[1] + slopes.shape[1]:
        return terms, slopes
    rows: Array = np.linalg.qr(np.hstack([terms, slopes]), mode="r")  # type: ignore[assignment]
    return rows[:, : terms.shape[1]], rows[:, terms.shape[1] :]
