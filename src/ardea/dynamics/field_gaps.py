"""Samples of fields that are missing (NaN) are filled in by the splines that fit the others.

1. *Fill.* Missing samples get the value of the nearest one that is there, then twice that of the splines fitted to the
   samples that are there. How many splines an axis takes is read off the lines with the fewest missing samples.
2. *Least squares on what is there*, min ‖M(u − Bc)‖², M the mask and B the splines, orthonormal on the whole grid: BᵀMB
   is the identity without gaps, and conjugate gradients settle it in a few steps where gaps are small.
3. *Where it is known.* A gap wider than splines are apart is not filled but guessed. So in a box of this size without a
   sample, and next to it, the field is unknown, and test functions that weigh such places are left out. What is
   scattered is used: û then has the noise of fewer samples, s²/ρ instead of s², ρ the share of those that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ardea.core.problem import Array
from ardea.dynamics.differences import SPLINE_DEGREE, SmoothedField, SplineSmoother, TensorSplines
from ardea.dynamics.windows import FEWEST_FUNCTIONS, Windows
from ardea.names import counted

# Times that missing samples are filled in by splines fitted to the others; a third time changes nothing (measured).
ROUNDS = 2
# Conventions: steps of conjugate gradients, and how far the residual falls; both are below the noise.
MOST_STEPS, SETTLED = 100, 1e-8
# Convention: boxes are at least so many samples wide.
LEAST_BOX = 3


def filled(values: Array, points: Sequence[Array], grid: Sequence[Array | None], least: int) -> SmoothedField:
    """Return a field with gaps (NaN) smoothed by splines, at least so many along every axis.

    Examples
    --------
    >>> x, t = np.linspace(0, 6, 80), np.linspace(0, 1, 60)
    >>> u = np.sin(2 * x[:, None] - t)
    >>> u[30:33, 20:24] = np.nan
    >>> field = filled(u, (x, t), (None, None), 12)
    >>> bool(np.max(np.abs(field.splines.derivative(field.coefficients, (0,)) - np.sin(2 * x[:, None] - t))) < 1e-5)
    True
    """
    seen = np.isfinite(values)
    nearest = ndimage.distance_transform_edt(~seen, return_distances=False, return_indices=True)
    full = values[tuple(nearest)]
    few = [SplineSmoother(where, SPLINE_DEGREE + 1, at) for where, at in zip(points, grid, strict=True)]
    for turn in range(ROUNDS + 1):
        splines = TensorSplines.fit(full, points, grid, least, seen) if turn else TensorSplines(few)
        coefficients = _fitted(splines, full, seen)
        smooth = splines.values(coefficients)
        full = np.where(seen, values, smooth)
    known = _known(seen, splines)
    if not np.any(known):
        raise ValueError(
            "The fields have so many gaps that samples are far from each other everywhere: take more samples."
        )
    numbers = prod(smoother.n_basis for smoother in splines.smoothers)
    left = max(np.count_nonzero(seen) - numbers * float(np.mean(known)), 1.0)
    noise = float(np.linalg.norm((full - smooth)[seen]) / np.sqrt(left))
    return SmoothedField(splines, coefficients, noise, known, float(np.mean(seen[known])) if np.any(known) else 1.0)


def _fitted(splines: TensorSplines, full: Array, seen: NDArray[np.bool_]) -> Array:
    """Return c that minimises ‖M(u − Bc)‖², by conjugate gradients from the coefficients of the filled field."""
    coefficients = splines.coefficients(full)
    residual = splines.coefficients(seen * (full - splines.values(coefficients)))
    direction, square = residual, float(np.sum(residual**2))
    target = SETTLED**2 * float(np.sum(coefficients**2))
    for _ in range(MOST_STEPS):
        if square <= target:
            break
        image = splines.coefficients(seen * splines.values(direction))
        step = square / float(np.sum(direction * image))
        coefficients, residual = coefficients + step * direction, residual - step * image
        before, square = square, float(np.sum(residual**2))
        direction = residual + square / before * direction
    return coefficients


def _known(seen: NDArray[np.bool_], splines: TensorSplines) -> NDArray[np.bool_]:
    """Return where samples are near: not in a box without any that is as wide as splines are apart, nor next to it."""
    pairs = zip(seen.shape, splines.smoothers, strict=True)
    widths = [max(LEAST_BOX, round(n / smoother.n_basis)) for n, smoother in pairs]
    empty = ~ndimage.maximum_filter(seen, widths)
    return np.asarray(~ndimage.maximum_filter(empty, [2 * width + 1 for width in widths]))


def without_gaps(windows: Windows, thinned: Windows, known: Sequence[NDArray[np.bool_]]) -> tuple[Windows, Windows]:
    """Return the test functions, on the grid and on the thinned one, that weigh only places where all is known."""
    kept, n = windows.within(np.all(known, axis=0)), windows.n_functions
    if len(kept) < FEWEST_FUNCTIONS:
        raise ValueError(
            f"The fields have so many gaps that {counted(len(kept), 'test function')} of {n} can be used, and at least "
            f"{FEWEST_FUNCTIONS} are needed: cut the domain to a part with fewer gaps."
        )
    return (windows, thinned) if len(kept) == n else (replace(windows, kept=kept), replace(thinned, kept=kept))
