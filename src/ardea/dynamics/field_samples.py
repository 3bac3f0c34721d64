"""What the samples of fields show before an equation is sought: mistakes, structure that is no noise, swapped axes.

*Structure.* What splines leave of a field is taken for noise, and noise is white. The part R_a = (1 − P_a)u outside the
splines of one axis is what is finer than these along it. Of white noise, neighbours in R_a along another axis are as
independent as the samples are, whatever P_a is: their correlation is zero, with a standard deviation of one over the
root of the degrees of freedom. Structure that the grid does not resolve along axis a goes on along the other axes.

*Mistakes.* A sample is one if it lies beyond all its neighbours in space and time by more than they differ from each
other, and by many times the noise. A shock moves between its neighbours, and never beyond them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import ndimage

from ardea.core.problem import Array
from ardea.dynamics.differences import TensorSplines, along_axis
from ardea.names import in_a_row

# Conventions: how many times as large as between neighbours the step across the seam is at most where a field is
# periodic along an axis, and at least where it is not.
PERIODIC, NOT_PERIODIC = 2.0, 6.0
# A convention: steps below this share of the deviation of a field are taken for this much.
LEAST_STEP = 1e-6
# What splines leave is structure if so much of it goes on to the next sample, by so many standard deviations. Measured
# on the ten equations of the noise tables with white noise of .01 to 100 %: .014 and 2.9 at most; on fields of
# Kuramoto–Sivashinsky on a fourth to an eighth of their points .7 to 1 and 16 to 63.
LEAST_STRUCTURE, LEAST_SURE = 0.3, 5.0
# What splines leave is noise, with a kurtosis of 3; near a shock it is ringing, and far more. Measured on all fields of
# `systems`: 3.1 at most where there is noise and no shock, 15 to 99 with a shock and noise of up to 10 %. Without noise
# they leave less than this share of the field, unless there is a shock.
LARGEST_KURTOSIS, LEAST_ROUGH = 6.0, 1e-3
# Derived: what six neighbours say of a sample misses it near a jump by half of that, and by an eighth if the jump takes
# two steps, 1/4 of the largest of these; by (2 sin(π/n))⁵/20 of a step where there are n samples in a wave, 1/9 at 5.
LEAST_JUMP = 0.2
# A convention: how noise grows with |u| is read off so many groups of samples.
GROUPS = 20
# Conventions: a mistake lies beyond all samples so near it by six times the noise, so about eight times off the field,
# by so many times their range, which is four times the noise where the field is smooth, and by this share of the
# deviation of the field, below which readings may be rounded. Measured on all fields of `systems`: none with white
# noise of up to 100 %, noise of 10 % of u itself, or shocks; 10 of 10 of eight deviations.
NEAR, BEYOND, RANGES, LEAST_BEYOND = 2, 6.0, 1.5, 0.02
# Derived: the median of |second difference| of white noise of deviation 1, √6 times that of a normal variable.
MEDIAN_OF_BENDS = 0.6745 * 6**0.5
# A convention: so many mistakes are named.
NAMED = 3
# Conventions: values nearer than this share of their range are the same, and steps that are whole numbers of the least
# of them within this much are those of rounded values.
SAME_VALUE, WHOLE = 1e-9, 0.01
# Derived: a rounded peak is one unit above all others near it, and a mistake is more.
UNITS_BEYOND = 1.5


def swapped_axis(fields: Sequence[Array], axes: Sequence[str]) -> str:
    """Return a space axis that looks like time, where the time axis looks like one of a periodic field; else nothing.

    Given are smooth fields of unit deviation. Compared are their steps across the seam, from the last point to the
    first, with those between neighbours.
    """
    *space, times = fields[0].shape
    values = np.stack(fields)

    def seam(axis: int) -> float:
        inner = float(np.sqrt(np.mean(np.diff(values, axis=axis) ** 2)))
        return float(np.sqrt(np.mean((values.take(0, axis) - values.take(-1, axis)) ** 2))) / max(inner, LEAST_STEP)

    if times not in space or seam(values.ndim - 1) > PERIODIC:
        return ""
    return next((name for i, name in enumerate(axes) if space[i] == times and seam(i + 1) > NOT_PERIODIC), "")


def unresolved_axes(values: Array, splines: TensorSplines) -> list[int]:
    """Return the axes along which a field without gaps has structure that its splines leave.

    Examples
    --------
    Waves of 2.4 points along the first axis and of 50 along the second:

    >>> from ardea.dynamics.differences import SmoothedField
    >>> x, t = np.arange(60.0), np.arange(100.0)
    >>> u = np.sin(2.6 * x[:, None] - 0.12 * t) + 0.01 * np.random.default_rng(0).normal(size=(60, 100))
    >>> unresolved_axes(u, SmoothedField.of(u, (x, t), (None, None), 24).splines)
    [0]
    """
    found = []
    for axis, smoother in enumerate(splines.smoothers):
        basis, n = smoother.basis, values.shape[axis]
        left = values - along_axis(basis @ basis.T, values, axis)
        others = [other for other in range(values.ndim) if other != axis]
        least = max(LEAST_STRUCTURE, LEAST_SURE / np.sqrt((1 - smoother.n_basis / n) * left.size))
        if any(_going_on(left, other) > least for other in others):
            found.append(axis)
    return found


def _going_on(left: Array, axis: int) -> float:
    """Return the correlation of neighbours along an axis."""
    lines = np.moveaxis(left, axis, 0)
    square = np.sum(lines[1:] ** 2) + np.sum(lines[:-1] ** 2)
    return float(2 * np.sum(lines[1:] * lines[:-1]) / square) if square else 0.0


def said_of_structure(name: str, axes: Sequence[str], share: float) -> str:
    """Return what is to be warned of structure along some axes that counts as noise of this share of the field."""
    where = in_a_row(axes)
    return (
        f"What is taken for noise of {name}, {100 * share:.2g} % of its standard deviation, is not independent between "
        f"samples: either {name} changes faster along {where} than its grid shows, or samples were smoothed or filled "
        f"in along another axis. Terms, coefficients and intervals may then be wrong, however well the equation fits. "
        f"Take more points along {where}, or every second one of smoothed samples (python -m ardea.explain ambiguity)."
    )


def unit_of(values: Array) -> float:
    """Return the unit to which all values are rounded, 0 if to none.

    Examples
    --------
    >>> wave = np.sin(np.arange(50.0))
    >>> round(unit_of(wave.round(2)), 12), unit_of(wave)
    (0.01, 0.0)
    """
    steps = np.diff(np.unique(values[np.isfinite(values)]))
    steps = steps[steps > SAME_VALUE * steps.sum()]
    units = steps / steps.min()
    return float(steps.min()) if np.abs(units - np.round(units)).max() < WHOLE else 0.0


def said_of_rounding(name: str, unit: float, noise: float) -> str:
    """Return what is to be warned of rounded samples whose errors of rounding are no independent noise."""
    return (
        f"{name} is rounded to {unit:.3g}, and neighbours mostly are by the same amount: what rounding leaves does not "
        f"average out, and counts as noise of {noise:.2g}. Terms may be missing or wrong. Take finer readings (python "
        "-m ardea.explain ambiguity)."
    )


def mistakes_in(values: Array, unit: float = 0.0) -> NDArray[np.intp]:
    """Return where single samples lie far beyond all others near them, one row of indices for each.

    `unit` is that to which values are rounded, 0 if to none.

    Examples
    --------
    >>> x, t = np.linspace(0, 6, 80), np.linspace(0, 1, 60)
    >>> u = np.sin(2 * x[:, None] - t) + 0.01 * np.random.default_rng(0).normal(size=(80, 60))
    >>> u[30, 20] += 3.0
    >>> mistakes_in(u).tolist()
    [[30, 20]]
    """
    bends = [np.diff(values, 2, axis=axis) for axis in range(values.ndim)]
    noise = min(float(np.nanmedian(np.abs(bend))) / MEDIAN_OF_BENDS for bend in bends)
    size, width = float(np.nanstd(values)), 2 * NEAR + 1
    least = max(BEYOND * noise, LEAST_BEYOND * size, UNITS_BEYOND * unit)
    around = sliding_window_view(np.pad(values, NEAR, constant_values=np.nan), (width,) * values.ndim)
    found = []
    for sign in (1.0, -1.0):
        upward = np.where(np.isnan(values), -np.inf, sign * values)
        places = np.argwhere((ndimage.maximum_filter(upward, width) == upward) & np.isfinite(upward))
        near = sign * around[tuple(places.T)].reshape(len(places), -1)
        own = near[:, near.shape[1] // 2].copy()
        near[:, near.shape[1] // 2] = np.nan
        # A shock may just have come in at a corner, which has no neighbours on both sides.
        known = np.any((places > 0) & (places < np.array(values.shape) - 1), axis=1)
        known &= np.sum(np.isfinite(near), axis=1) > width
        near, own, places = near[known], own[known], places[known]
        beyond = own - np.nanmax(near, axis=1)
        range_of_others = np.nanmax(near, axis=1) - np.nanmin(near, axis=1)
        found.append(places[beyond > np.maximum(RANGES * range_of_others, least)])
    return np.concatenate(found)


def said_of_mistakes(name: str, places: NDArray[np.intp], points: Sequence[Array], axes: Sequence[str]) -> str:
    """Return what is to be warned of samples far beyond all others near them."""
    told = [
        ", ".join(f"{axis} = {where[i]:.6g}" for axis, where, i in zip(axes, points, place, strict=True))
        for place in places[:NAMED]
    ]
    rest = len(places) - len(told)
    more = f"; and {rest} more" if rest else ""
    return (
        f"Single samples of {name} are far beyond all samples near them, {len(places)} in all: at {'; '.join(told)}"
        f"{more}. Set mistakes to NaN: as numbers they change terms and intervals (python -m ardea.explain ambiguity)."
    )


def may_jump(values: Array) -> bool:
    """Return whether some sample is far from a curve through three neighbours on both sides along an axis of space."""
    along = [axis for axis in range(values.ndim - 1) if values.shape[axis] > 6]
    sizes = [[float(np.nanmax(np.abs(np.diff(values, n, axis=axis)))) for n in (1, 6)] for axis in along]
    return any(sixth / 20 > LEAST_JUMP * first for first, sixth in sizes)


def kurtosis(values: Array) -> float:
    """Return E r⁴/(E r²)², 3 for normal variables."""
    square = values**2
    return float(np.mean(square**2) / np.mean(square) ** 2)


def said_of_growth(name: str) -> str:
    """Return what is to be warned of noise that is larger where |u| is."""
    return (
        f"The noise of {name} grows with |{name}|, and one size is taken for all samples: intervals may be too narrow "
        f"or too wide. See whether a part of the domain with {name} of one size gives the same equation (python -m "
        "ardea.explain ambiguity)."
    )


def evened(left: Array, smooth: Array) -> Array:
    """Return what splines leave in units of its size where |û| is as large: noise that grows with |u| is even then."""
    groups = np.array_split(np.argsort(np.abs(smooth), axis=None), GROUPS)
    out = left.ravel().copy()
    for group in groups:
        out[group] /= max(float(np.sqrt(np.mean(out[group] ** 2))), float(np.finfo(float).tiny))
    return out
