"""Codes for what is missing: the few values of a column that are far from all others, such as −999."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ardea.core.problem import Array
from ardea.names import counted

# A value is far out that is this many times the range of all others away from them (a convention), if it is repeated or
# the usual code of a program: data that grow by any factor do not do that.
FAR_OUT = 5.0
# Different codes of one column (97, 98 and 99 of questionnaires), and the share of the rows that all have at most,
# since what most rows have is no exception: conventions.
MOST_CODES, MOST_MISSING = 3, 1 / 3
# What instruments and programs write for what is missing: nines, the last whole numbers of 2 and 4 bytes (an unsigned
# one, too), what is beyond any unit, as 1e30 is. A negative one needs not be far from numbers that are not; −1 only
# FAR_OUT times as far from so many different whole ones, such as ages, as these are from each other (conventions).
NINES = np.array([10.0**n - 1 for n in range(2, 10)])
WHOLE = np.array([2.0**15, 2.0**15 - 1, 2.0**16 - 1, 2.0**31, 2.0**31 - 1, 999.25])
BEYOND, AMOUNTS = 1e20, 5
# Points of a scale of answers, which begins at 1; the codes of questionnaires beyond it; each has at most so many times
# the rows of a point on average, since the levels of a design have as many (conventions). A gap before them that an
# ordinary column has with this probability is none by chance (measured: of 51,000 columns of counts, dice, ages and
# answers without codes, 1 is told).
FEWEST_POINTS, MOST_POINTS, ANSWERS, AS_OFTEN = 3, 10, np.array([-9.0, -8.0, -7.0, -1.0, 7.0, 8.0, 9.0]), 0.5
BY_CHANCE = 1e-4


class Codes(NamedTuple):
    """Values of a column that are far from all others, each with its number of rows, and the range of the others."""

    values: list[tuple[float, int]]
    low: float
    high: float

    def told(self, name: str, do: str) -> str:
        """Return what is said of them, and what to do."""
        said = " and ".join(f"{value:g} in {counted(rows, 'row')}" for value, rows in self.values)
        options = " ".join(f"--na{' ' if value >= 0 else '='}{value:g}" for value, _ in self.values)
        what = "that stands" if len(self.values) == 1 else "these stand"
        others = f"unlike all its other values, {self.low:.4g} to {self.high:.4g}"
        return f"{name} is {said}, {others}. If {what} for a missing reading, {do} ({options} on the command line)"


def codes_of(column: Array, is_sure: Callable[[float, int], bool]) -> Codes | None:
    """Return the values of a column that look like codes for what is missing; None where none does.

    `is_sure` tells by a value and its number of rows whether it is one, if it is far from all others.
    """
    found, rest = list[tuple[float, int]](), column
    while len(found) < MOST_CODES:
        far = [(value, int(np.sum(rest == value))) for value in _far(rest).tolist()]
        if not far or not all(is_sure(*one) for one in far):
            break
        found += far
        if sum(rows for _, rows in found) > MOST_MISSING * column.size:
            return None
        rest = rest[~np.isin(rest, [value for value, _ in far])]
    return Codes(sorted(found), float(rest.min()), float(rest.max())) if found else None


def _far(column: Array) -> Array:
    """Return the few values at one end of a column that are far from all others."""
    low, high = column.min(), column.max()
    for far in (column < (low + high) / 2, column > (low + high) / 2):
        own, rest = column[far], column[~far]
        if not own.size or not rest.size or np.ptp(rest) == 0:
            continue
        distance = max(rest.min() - own.max(), own.min() - rest.max())
        if distance > FAR_OUT * np.ptp(rest) and (values := np.unique(own)).size <= MOST_CODES:
            return values
    others = column[column != low]
    alone = low < 0 and others.size > 0 and others.min() >= 0 and np.ptp(others) > 0
    amounts = np.unique(others) if alone and low == -1 and not np.any(others % 1) else others[:0]
    below = amounts.size >= AMOUNTS and amounts[0] - low > FAR_OUT * np.median(np.diff(amounts))
    return np.array([low]) if below or (alone and is_usual(low)) else _beyond_scale(column, low, high)


def _beyond_scale(column: Array, low: float, high: float) -> Array:
    """Return codes that lie beyond answers on a scale of 1, 2, … K, with a gap that is none by chance.

    Counts of all usual kinds are log-concave: between K, in n rows, and a code c, in r rows, a value v would have at
    least λ_v = n^(1 − t) r^t rows on average, where t = (v − K)/(c − K). No row has any with probability exp(−Σλ_v).
    """
    none = np.empty(0)
    if low not in (1, *ANSWERS) or not FEWEST_POINTS <= high <= MOST_POINTS:
        return none
    values, counts = np.unique(column, return_counts=True)
    points = next(k for k in range(MOST_POINTS + 1) if k + 1 not in values or k == MOST_POINTS)
    scale = (values >= 1) & (values <= points)
    codes = values[~scale]
    usual = 0 < codes.size <= MOST_CODES and np.isin(codes, ANSWERS).all() and points >= FEWEST_POINTS
    if not usual or counts[~scale].max() > AS_OFTEN * counts[scale].mean():
        return none
    for end, beyond in ((points, codes[codes > points]), (1, codes[codes < 1])):
        if beyond.size:
            code = beyond[np.argmin(np.abs(beyond - end))]
            rows, coded = (float(np.log(counts[values == one][0])) for one in (end, code))
            between = np.linspace(rows, coded, int(abs(code - end)) + 1)[1:-1]
            if np.exp(-np.sum(np.exp(between))) > BY_CHANCE:
                return none
    return codes


def is_usual(value: float) -> bool:
    """Whether a value is one that programs write for what is missing."""
    return bool(abs(value) >= BEYOND or np.isin(abs(value), NINES) or np.isin(abs(value), WHOLE))
