"""What is to be said of samples, which equations would not show, and of models that the data leave open."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ardea.core.problem import Array
from ardea.dynamics.collocation import Nodes
from ardea.dynamics.models import BEATEN, listed
from ardea.dynamics.series import HELD, Series
from ardea.equation import Equation
from ardea.names import counted, printable

# A convention: a state that varies less than this many times its noise says nothing of its equation.
LEAST_EXCITATION = 2.0
# Rivals closer than this (odds below 5 to 3) are warned of, those that exchange terms up to the second (odds below e to
# 1): a term more or less has its price.
INDISTINGUISHABLE, SIMILAR = 1.0, 2.0
# A state this many deviations from zero is told of (a convention; measured on two coupled bodies with a constant added:
# at 7 to 9 none of six models is wrong, at 14 to 18 one, at 28 to 37 five).
FAR_FROM_ZERO = 10.0
# A value is far out that is this many times the range of all others away from them, and repeated or between others in
# time: data that grow by any factor do not do that (a convention).
FAR_OUT = 5.0
# Readings are coarse that stay the same in more than this share of the steps (a convention).
COARSE = 0.5
# A state is at rest from where its samples stay within so many deviations of their noise of the mean of so many last
# ones (conventions: chance takes a thousand samples of five states no further).
AT_REST, LAST_ROWS = 5.0, 10
# A sample is far off that lies so many robust deviations from its state, if at most this share of all do (conventions:
# normal noise never does, and what many do is no mistake of a few). Fewer samples than the last do not tell.
FAR_OFF, MOST_FAR_OFF, FEWEST_JUDGED = 8.0, 0.02, 20
# An input that switches over a step of more than this many median steps may have switched anywhere (a convention).
LONG_STEP = 4.0


def far_from_zero(
    middle: Array, spread: Array, degrees: Sequence[int], names: Sequence[str], moving: Sequence[bool]
) -> list[str]:
    """Return what is to be said where models tie: the states so far from zero that their powers look alike.

    Given are the mean and the standard deviation of every state.
    """
    return [
        f"{name} varies by {wide:.2g} around {at:.6g}: its powers and the constant look alike there. Subtract a "
        f"reference value, such as {at:.3g}, from {name}, so that terms are told apart (docs/warnings/ambiguity)."
        for name, at, wide, moves in zip(names, middle, spread, moving, strict=False)
        if max(degrees, default=0) > 1 and moves and 0 < FAR_FROM_ZERO * wide < abs(at)
    ]


def said_of_states(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Return what is to be warned of: values that look like no readings, coarse rounding, states that switch."""
    out = []
    for state, name in enumerate(names[: series[0].x.shape[1]]):
        columns = [one.x[np.isfinite(one.x[:, state]), state] for one in series]
        values, counts = np.unique(np.concatenate(columns), return_counts=True)
        if len(values) == 2 and counts.sum() > 2 * len(values):
            out.append(
                f"{name} has only the values {values[0]:g} and {values[1]:g}: a switch is an input, not a state. Give "
                "it as u (--inputs on the command line) (docs/warnings/ambiguity)."
            )
        elif (far := _far_out(columns, values)) is not None:
            times, others = counted(int(counts[values == far][0]), "row"), values[values != far]
            out.append(
                f"{name} is {far:g} in {times}, far from all its other values, {others[0]:.4g} to {others[-1]:.4g}. "
                f"If that stands for a missing reading, set it to NaN (--na {far:g} on the command line) "
                "(docs/warnings/ambiguity)."
            )
        elif (unit := _coarse(columns, values)) is not None:
            out.append(
                f"{name} is rounded to {unit:.3g} and mostly stays the same from row to row: what rounding leaves is "
                "then no noise that averages out. Take finer readings, or see whether every second row gives the same "
                "equation (docs/warnings/ambiguity)."
            )
    return out


def _far_out(columns: Sequence[Array], values: Array) -> float | None:
    """Return the value far from all others, if there is one."""
    for far, rest in ((values[0], values[1:]), (values[-1], values[:-1])):
        if len(rest) < 2 or not np.min(np.abs(rest - far)) > FAR_OUT * np.ptp(rest):
            continue
        found = [np.flatnonzero(column == far) for column in columns]
        between = any(
            np.any((rows > 0) & (rows < len(column) - 1)) for rows, column in zip(found, columns, strict=True)
        )
        if between or sum(map(len, found)) > 1:
            return float(far)
    return None


def _coarse(columns: Sequence[Array], values: Array) -> float | None:
    """Return the unit of readings that mostly stay what they were, of at least three values."""
    changes = np.concatenate([np.diff(column) for column in columns])
    if len(values) < 3 or np.mean(changes == 0) <= COARSE:
        return None
    unit = float(np.min(np.diff(values)))
    whole = np.diff(values) / unit
    return unit if np.all(np.abs(whole - np.round(whole)) < 1e-6 * whole) else None


def said_of_inputs(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Return what is to be warned of: inputs with gaps, and inputs that never change."""
    names, rows = names[series[0].x.shape[1] :], sum(len(one.x) for one in series)
    inputs = np.vstack([one.inputs for one in series])
    gaps = [
        f"The input {name} is missing in {count} of {rows} rows, and was interpolated there: where it may have moved "
        "meanwhile, leave these rows out and give the parts as a list of series (docs/warnings/ambiguity)."
        for name, count in zip(names, np.isnan(inputs).sum(axis=0), strict=True)
        if count
    ]
    gaps += _switched_unseen(series, names)
    return gaps + [
        f"The input {name} never changes: what it does cannot be told from a constant (docs/warnings/ambiguity)."
        for name, column in zip(names, inputs.T, strict=True)
        if np.nanmin(column, initial=np.inf) == np.nanmax(column, initial=-np.inf)
    ]


def _switched_unseen(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Return what is to be said of inputs that switch where there are no rows."""
    out = []
    for one in series:
        steps = np.diff(one.t)
        long = steps > LONG_STEP * np.nanmedian(steps)
        for name, column in zip(names, one.inputs.T, strict=True):
            changed = np.diff(column) != 0
            for row in np.flatnonzero(changed & long) if np.mean(changed) < HELD else []:
                out.append(
                    f"The input {name} changes between t = {one.t[row]:.6g} and {one.t[row + 1]:.6g}, where there "
                    "are no rows, and is taken to change at the end. If it is known when it did, add rows with that "
                    "input and NaN for the states; else give the parts as a list of series (docs/warnings/ambiguity)."
                )
    return out


def at_rest(nodes: Nodes, noise: Array, n_candidates: int) -> list[str]:
    """Return what is to be warned of where most rows say where the system comes to rest, and few how it moves."""
    rest, n_rows = 0, int(np.sum(np.any(nodes.seen, axis=1)))
    for rows in nodes.stretches:
        y = np.where(nodes.seen[rows], nodes.y[rows], np.nan)[np.any(nodes.seen[rows], axis=1), : len(noise)]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a state without a sample in the last rows
            end = np.nanmean(y[-LAST_ROWS:], axis=0)
        away = np.abs(y - end) > AT_REST * noise
        rest += int(np.sum(np.cumsum(np.any(away, axis=1)[::-1]) == 0))
    moving = n_rows - rest
    if rest < n_rows / 2 or not 0 < moving < n_candidates:
        return []
    return [
        f"The states come to rest: in {rest} of {n_rows} rows all of them stay, within their noise, where they end. "
        f"The other {moving} rows are few for {n_candidates} candidates for each equation: others may explain them as "
        "well. Add series from other starts, or take a smaller library (docs/warnings/ambiguity)."
    ]


def far_off(nodes: Nodes, errors: Array, names: Sequence[str]) -> list[str]:
    """Return what is to be warned of single samples: whose errors, scaled to be alike, are far beyond the rest."""
    out = []
    for state, name in enumerate(names[: errors.shape[1]]):
        seen = np.flatnonzero(nodes.seen[:, state])
        size = np.abs(errors[seen, state])
        usual = 1.4826 * float(np.median(size)) if seen.size >= FEWEST_JUDGED else 0.0
        far = seen[size > FAR_OFF * usual] if usual > 0 else seen[:0]
        if 0 < far.size <= max(1, MOST_FAR_OFF * seen.size):
            times = [f"t = {nodes.t[node]:.6g} ({np.abs(errors[node, state]) / usual:.0f} times)" for node in far[:3]]
            more = f" and {far.size - 3} more" * (far.size > 3)
            out.append(
                f"{name} lies many times its usual noise off its curve at {', '.join(times)}{more}. If these readings "
                "are mistakes, set them to NaN: they widen or shift the intervals (docs/warnings/ambiguity)."
            )
    return out


# Models


def doubts_about(equations: Sequence[Equation], excitation: Sequence[float]) -> list[str]:
    """Return what is to be warned of: models that the data or the search leave open, states that hardly move."""
    doubts = []
    for equation in equations:
        left, chosen = equation.left.text, listed(equation.terms)
        rivals = [
            one
            for one in equation.close_rivals(SIMILAR)
            if one.excess < INDISTINGUISHABLE or _exchanged(one.terms, equation.terms)
        ]
        others = [*equation.equivalents, *(rival.terms for rival in rivals)]
        if rivals and rivals[0].excess < -BEATEN:
            doubts.append(
                f"The best model found for {left}, [{chosen}], is not better than its neighbours: "
                f"{rivals[0].compared}. Most likely the right term is not among the candidates: see that times, order "
                "of the rows and library are right (docs/warnings/ambiguity)."
            )
        elif others:
            doubts.append(
                f"The data hardly tell two models of {left} apart: [{chosen}] and [{listed(others[0])}]. Longer "
                "or richer data would (docs/warnings/ambiguity)."
            )
    for equation, ratio in zip(equations, excitation, strict=True):
        if ratio < LEAST_EXCITATION:
            doubts.append(
                f"{printable(equation.name)} varies only {ratio:.1f} times as much as its noise, too little to find "
                "its equation. Is it at rest (a fixed point), sampled too rarely, or are there outliers, such as -999 "
                "for missing values? (docs/warnings/ambiguity)"
            )
    return doubts


def _exchanged(some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether each of two models has a term that the other lacks."""
    return bool(set(some) - set(others)) and bool(set(others) - set(some))
