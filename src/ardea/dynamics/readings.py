"""What readings say before a search: which are copies, filled in, cut off, rounded or no readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ardea.core.problem import Array, Index
from ardea.dynamics.collocation import unknown_inputs
from ardea.dynamics.series import HELD, Series
from ardea.estimators.advice import codes_of, is_usual
from ardea.names import counted, in_a_row, printable

# What is left of a copy is rounding error (a convention).
COPIED = 1e-9
# A value far from all others in more than this share of the rows is no code, unless it looks like one (a convention).
MOST_CODED = 0.2
# Readings are coarse that stay the same in more than this share of the steps (a convention).
COARSE = 0.5
# Readings may be cut off where they are at their largest or least value in at least so many rows, and in so many times
# more than at any other, or stuck where they are the same in so many rows in a row (conventions).
FEWEST_CUT, TIMES_CUT, FEWEST_STUCK = 4, 3, 6
# Readings were held that repeat the one before, while what comes before and after differs by more than so many units of
# the last digit, in so many runs and so many times more than rounding makes, unless many have one value, as between
# pulses (conventions).
MANY_UNITS, FEWEST_HELD, TIMES_CHANCE, MOST_USUAL = 5.0, 4, 3.0, 0.2
# Series are the same where so many rows with the next, that move, and this share of the shorter one are in both, one
# after another (conventions).
FEWEST_SHARED, SHARE_SHARED = 6, 0.5
# Rows were written twice where at least so many repeat the one before, and this share of the other readings comes once
# (conventions).
FEWEST_TWICE, FINE = 2, 0.9
# An input that switches over a step of more than this many median steps may have switched anywhere (a convention).
LONG_STEP = 4.0
# States are many where there are fewer rows than so many for each. They look like points of a field where at least so
# many change by so little from one to the next, in units of two that have nothing in common (conventions).
ROWS_PER_STATE, FEWEST_POINTS, SMOOTH = 2, 13, 0.1
# Where steps are even, up to this ratio of their upper quartile to their median, one lost row shows (conventions).
EVEN, LOST_ROW = 1.2, 1.5


def said_of_spoiled(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Return what is to be warned of states that are copies, never change, switch, or hold what looks like no reading.

    All doubts about equations may come from them.
    """
    every = np.concatenate([np.hstack([one.x, one.inputs]) for one in series])
    out = [
        f"{alike} in every row: no data tell which of them acts. Leave one out (python -m ardea.explain ambiguity)."
        for i, j in combinations(range(every.shape[1]), 2)
        if (alike := copied(every[:, i], every[:, j], names[i], names[j]))
    ]
    for state, name in enumerate(names[: series[0].x.shape[1]]):
        columns = [one.x[np.isfinite(one.x[:, state]), state] for one in series]
        values = np.unique(np.concatenate(columns))
        if len(values) == 1:
            out.append(
                f"{name} is {values[0]:g} in every row: it is at rest (a fixed point), or no state. Every term with it "
                "repeats one without it, so that no equation is settled. Leave it out (on the command line --states "
                "names the others) (python -m ardea.explain ambiguity)."
            )
        elif len(values) == 2 and sum(map(len, columns)) > 2 * len(values):
            out.append(
                f"{name} has only the values {values[0]:g} and {values[1]:g}: a switch is an input, not a state. Give "
                "it as u (--inputs on the command line) (python -m ardea.explain ambiguity)."
            )
        elif no_reading := _no_reading(name, columns, values):
            out.append(no_reading)
    return out


def said_of_states(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Return what is to be warned of readings that are held, rounded coarsely, cut off, stuck, or come twice."""
    every = [[one.x[np.isfinite(one.x[:, state]), state] for one in series] for state in range(series[0].x.shape[1])]
    held = {name: rows for name, columns in zip(names, every, strict=False) if (rows := _held(columns))}
    out = _given_twice(series) + _many(series) + _sums(series, names) + (_repeated(series) or _filled_in(held))
    for state, (name, columns) in enumerate(zip(names, every, strict=False)):
        values = np.unique(np.concatenate(columns))
        if name in held:
            continue
        if (unit := _coarse(columns, values)) is not None:
            out.append(
                f"{name} is rounded to {unit:.3g} and mostly stays the same from row to row: what rounding leaves is "
                "then no noise that averages out. Take finer readings, or see whether every second row gives the same "
                "equation (python -m ardea.explain ambiguity)."
            )
        elif not _no_reading(name, columns, values):
            out += _cut_off(name, series, state)
    return out


def _many(series: Sequence[Series]) -> list[str]:
    """Return what is to be warned of states that are many for their rows, or look like the points of a field."""
    every = np.concatenate([one.x for one in series])
    every = every[np.all(np.isfinite(every), axis=1)]
    rows, n = every.shape
    if n < FEWEST_POINTS:
        return []
    out, moves = [], every - every.mean(axis=0)
    moves -= moves.mean(axis=1, keepdims=True)
    if np.mean(np.diff(moves, axis=1) ** 2) < SMOOTH * 2 * np.mean(moves**2):
        out.append(
            f"The {n} states change little from one to the next, as the points of a field do. If they are one, give it "
            "as a field, with the coordinates x of its points: fit(u, t, space=(x,)), u of shape (points, times); on "
            "the command line an .npz file of u, x and the times, and --space x (python -m ardea.explain ambiguity)."
        )
    if rows < ROWS_PER_STATE * n:
        out.append(
            f"There are {n} states and {rows} rows: so many states cannot be told apart by so few rows, and terms may "
            "be found by chance. Take fewer states or more rows (python -m ardea.explain ambiguity)."
        )
    return out


def _given_twice(series: Sequence[Series]) -> list[str]:
    """Return what is to be warned of series that repeat each other: rows that are in both, with the same row next."""
    out, owner = [], dict[bytes, tuple[int, int]]()
    for number, one in enumerate(series):
        steps = np.ascontiguousarray(np.hstack([one.x[:-1], one.x[1:], one.inputs[:-1]]))
        moving = np.flatnonzero(np.all(np.isfinite(steps), axis=1) & np.any(one.x[:-1] != one.x[1:], axis=1))
        keys = {row: steps[row].tobytes() for row in moving.tolist()}
        earlier = [(owner[key][0], row - owner[key][1]) for row, key in keys.items() if key in owner]
        if earlier:
            (first, _), shared = Counter(earlier).most_common(1)[0]
            if shared >= max(FEWEST_SHARED, SHARE_SHARED * (min(len(one.x), len(series[first].x)) - 1)):
                out.append((first, number, shared + 1))
        owner |= {key: (number, row) for row, key in keys.items() if key not in owner}
    if not out:
        return []
    first, second, rows = out[0]
    more = f" (and {counted(len(out) - 1, 'more series')} of others)" if len(out) > 1 else ""
    return [
        f"Series {second + 1} has {rows} rows of series {first + 1} again{more}: rows that are given twice count "
        "twice, which makes intervals too narrow and may add terms. Give every run once, in parts that do not overlap "
        "(python -m ardea.explain ambiguity)."
    ]


def _sums(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Return what is to be said of states and inputs whose sum, with some factors, is the same in every row."""
    every = np.concatenate([np.hstack([one.x, one.inputs]) for one in series])
    every = every[np.all(np.isfinite(every), axis=1)]
    sizes = np.ptp(every, axis=0) if len(every) else np.zeros(len(names))
    if len(names) < 3 or len(every) <= len(names) + 2 or np.any(sizes == 0):
        return []
    _, values, directions = np.linalg.svd((every - every.mean(axis=0)) / sizes, full_matrices=False)
    factors = np.where(np.abs(directions[-1]) > np.sqrt(COPIED), directions[-1] / sizes, 0.0)
    used = np.flatnonzero(factors)
    if values[-1] > COPIED * values[0] or used.size < 3:
        return []
    factors /= factors[used[0]]
    parts = [(" - " if factors[j] < 0 else " + ") + _factor(abs(factors[j])) + names[j] for j in used.tolist()]
    value = float(np.mean(every @ factors))
    value = 0.0 if abs(value) < COPIED * np.abs(every * factors).max() else value
    why = (
        "equations can be written in several ways that fit alike, of which a short one is shown. Leave one of these "
        "states out for a single way"
        if used[-1] < series[0].x.shape[1]
        else "an input follows the states, as in a closed loop, and no data tell what it does from what they do. Add "
        "runs in which it moves on its own, or take the equations for those of the closed loop"
    )
    text = "".join(parts).removeprefix(" + ")
    return [f"{text} is {value:.6g} in every row: {why} (python -m ardea.explain ambiguity)."]


def _factor(size: float) -> str:
    return "" if abs(size - 1) < np.sqrt(COPIED) else f"{size:.6g} "


def _runs(columns: Sequence[Array]) -> list[tuple[Index, Index, Array]]:
    """Return where runs of equal readings end, how long they are, and how far what is around them is, in last digits.

    Rounded readings come again where a state turns or rests: then what is around them is near.
    """
    values, out = np.unique(np.concatenate(columns)), []
    unit = float(np.min(np.diff(values), initial=np.inf))
    for column in columns:
        ends = np.append(np.flatnonzero(np.diff(column) != 0), column.size - 1)
        steps = np.abs(np.diff(column[ends]))
        around = np.minimum(np.append(np.inf, steps), np.append(steps, np.inf))
        out.append((ends, np.diff(np.append(-1, ends)), around / unit if steps.size else np.zeros(1)))
    return out


def _held(columns: Sequence[Array]) -> int:
    """Return in how many rows a state repeats the reading before, as what is filled in does; 0 if it was measured.

    A reading is rounded to the one before with a chance of at most 1 in the units to what is around it.
    """
    if min(map(len, columns)) == 0:
        return 0
    runs = _runs(columns)
    far = [around > MANY_UNITS for *_, around in runs]
    chance = sum(float(np.sum(1 / around[own])) for (*_, around), own in zip(runs, far, strict=True))
    every = [x[ends[own & (size > 1)]] for x, (ends, size, _), own in zip(columns, runs, far, strict=True)]
    number, usual = sum(map(len, every)), np.unique(np.concatenate(every), return_counts=True)[1].max(initial=0)
    few = number < max(FEWEST_HELD, TIMES_CHANCE * chance)
    return 0 if few or usual > max(1, MOST_USUAL * number) else sum(int(np.sum(size - 1)) for _, size, _ in runs)


def _filled_in(held: Mapping[str, int]) -> list[str]:
    """Return what is to be warned of states that were read less often than others and filled in."""
    return [
        f"{printable(name)} repeats the reading before it in {rows} rows, and moves by far more than its last digit "
        "in between: most likely it was read less often, and filled in. Set what was filled in to NaN: taken as "
        "readings, it makes terms and intervals wrong (python -m ardea.explain ambiguity)."
        for name, rows in held.items()
    ]


def _repeated(series: Sequence[Series]) -> list[str]:
    """Return what is to be warned of rows that repeat the one before in every state, where readings hardly repeat.

    Many in a row are those of a sensor that is stuck. Where as many rows differ by no more than two of the least
    differences there are, readings are rounded.
    """
    twice = [np.append(False, np.all(one.x[1:] == one.x[:-1], axis=1)) for one in series]
    times = np.concatenate([one.t[own] for one, own in zip(series, twice, strict=True)])
    others = np.concatenate([one.x[~own] for one, own in zip(series, twice, strict=True)])
    fine = all(len(np.unique(column)) >= FINE * column.size for column in others.T)
    least = [np.diff(np.unique(column[np.isfinite(column)])).min(initial=np.inf) for column in others.T]
    near = sum(np.sum(np.all(np.abs(np.diff(one.x, axis=0)) < 2.5 * np.array(least), axis=1)) for one in series)
    stuck = any(own.size >= FEWEST_STUCK and sliding_window_view(own, FEWEST_STUCK).all(axis=1).any() for own in twice)
    if times.size < FEWEST_TWICE or not fine or stuck or near >= 2 * times.size:
        return []
    return [
        f"{times.size} rows repeat the row before them in every state, the first at t = {times[0]:.6g}, and hardly any "
        "reading comes twice elsewhere: if rows were written twice, leave the second out, and see whether the times "
        "after it are right (python -m ardea.explain ambiguity)."
    ]


def _cut_off(name: str, series: Sequence[Series], state: int) -> list[str]:
    """Return what is to be warned of fine readings that are the same in many rows: at a bound, or one after another."""
    rows = [np.isfinite(one.x[:, state]) for one in series]
    columns = [one.x[own, state] for one, own in zip(series, rows, strict=True)]
    values, counts = np.unique(np.concatenate(columns), return_counts=True)
    usual = int(counts[1:-1].max(initial=0))
    if len(values) < 3 or 2 * np.sum(counts[1:-1] == 1) < np.sum(counts[1:-1]):  # then readings are rounded
        return []
    out = [
        f"{name} is at its {which} value, {values[end]:.6g}, in {counts[end]} rows: if readings are cut off there, by "
        "the range of a sensor or a limit of detection, set them to NaN. As numbers they make coefficients and "
        "intervals wrong (python -m ardea.explain ambiguity)."
        for which, end in (("largest", -1), ("least", 0))
        if counts[end] >= max(FEWEST_CUT, TIMES_CUT * usual)
    ]
    for one, own, column, (ends, lengths, far) in zip(series, rows, columns, _runs(columns), strict=True):
        lengths = np.where(far > MANY_UNITS, lengths, 0)
        if not out and lengths.max(initial=0) >= FEWEST_STUCK:
            last = int(ends[lengths.argmax()])
            out.append(
                f"{name} is {column[last]:.6g} in {lengths.max()} rows in a row, up to t = {one.t[own][last]:.6g}: if "
                "its sensor was stuck, set these readings to NaN (python -m ardea.explain ambiguity)."
            )
    return out


def copied(x: Array, y: Array, one: str, other: str) -> str:
    """Return what is said of two columns of which one is a + b times the other in every row."""
    both = np.isfinite(x) & np.isfinite(y)
    if not np.array_equal(np.isfinite(x), np.isfinite(y)) or np.count_nonzero(both) <= 2:
        return ""
    x, y = x[both], y[both]
    least, largest = int(x.argmin()), int(x.argmax())
    if x[least] == x[largest]:
        return ""
    b = (y[largest] - y[least]) / (x[largest] - x[least])
    a = y[least] - b * x[least]
    if b == 0 or not np.allclose(y, a + b * x, 0, COPIED * np.ptp(y)):
        return ""
    if abs(a) <= COPIED * np.abs(y).max():
        return f"{one} and {other} are the same{'' if abs(b - 1) <= COPIED else f' but for a factor of {b:.6g}'}"
    share = "" if abs(abs(b) - 1) <= COPIED else f"{abs(b):.6g} "
    return f"{other} is {a:.6g} {'-' if b < 0 else '+'} {share}{one}"


def _no_reading(name: str, columns: Sequence[Array], values: Array) -> str:
    """Return what is said of values far from all others: repeated, or between others in time."""
    if len(values) < 3 or np.max(np.diff(values)) < np.ptp(values) / 2:  # then none is far from the others
        return ""

    def is_sure(value: float, rows: int) -> bool:
        few = rows <= MOST_CODED * sum(map(len, columns)) or is_usual(value)  # an input may switch
        return few and (rows > 1 or any(value in column[1:-1] for column in columns))

    codes = codes_of(np.concatenate(columns), is_sure)
    return "" if codes is None else f"{codes.told(name, 'set it to NaN')} (python -m ardea.explain ambiguity)."


def _coarse(columns: Sequence[Array], values: Array) -> float | None:
    """Return the unit of readings that mostly stay what they were, of at least three values."""
    changes = np.concatenate([np.diff(column) for column in columns])
    if len(values) < 3 or np.mean(changes == 0) <= COARSE:
        return None
    unit = float(np.min(np.diff(values)))
    whole = np.diff(values) / unit
    return unit if np.all(np.abs(whole - np.round(whole)) < 1e-6 * whole) else None


def said_of_inputs(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Return what is to be warned of: inputs with gaps, values that look like no readings, inputs that never change."""
    names, rows = names[series[0].x.shape[1] :], sum(len(one.x) for one in series)
    unknown = [(one, *rows) for one in series for rows in unknown_inputs(one)]
    out, cut = [], sum(last - first - 1 for _, first, last in unknown)
    for place, name in enumerate(names):
        columns = [one.inputs[np.isfinite(one.inputs[:, place]), place] for one in series]
        values, missing = np.unique(np.concatenate(columns)), rows - sum(map(len, columns)) - cut
        if missing > 0:
            out.append(
                f"The input {name} is missing in {missing} of {rows} rows, and was interpolated there: where it may "
                "have moved meanwhile, leave these rows out and give the parts as a list of series "
                "(python -m ardea.explain ambiguity)."
            )
        if len(values) == 1:
            out.append(
                f"The input {name} never changes: what it does cannot be told from a constant "
                "(python -m ardea.explain ambiguity)."
            )
        elif no_reading := _no_reading(name, columns, values):
            out.append(no_reading)
    return _switched_unseen(series, names) + _moved_unseen(unknown, cut) + out


def _moved_unseen(unknown: Sequence[tuple[Series, int, int]], lost: int) -> list[str]:
    """Return what is to be said of gaps in which inputs that move are not known, and of so many rows in them."""
    gaps = [(one.t[first], one.t[last]) for one, first, last in unknown]
    if not gaps:
        return []
    left_out = f"the {counted(lost, 'row')} in between {'is' if lost == 1 else 'are'} left out, and " if lost else ""
    first = f"t = {gaps[0][0]:.6g} and {gaps[0][1]:.6g}"
    more = f" (and in {counted(len(gaps) - 1, 'other gap')})" if len(gaps) > 1 else ""
    return [
        f"Between {first}{more} there are no readings of inputs, and these move too fast to be interpolated: "
        f"{left_out}the rows before and after are taken as series of their own. If the inputs are known there, add "
        "them, in rows with NaN for states that are not (python -m ardea.explain ambiguity)."
    ]


def _switched_unseen(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Return what is to be said of inputs that switch where there are no rows."""
    found: dict[str, list[str]] = {}
    for one in series:
        steps = np.diff(one.t)
        usual = float(np.nanmedian(steps)) if steps.size else 0.0
        even = steps.size and np.nanquantile(steps, 0.75) < EVEN * usual
        long = steps > (LOST_ROW if even else LONG_STEP) * usual
        for name, column in zip(names, one.inputs.T, strict=True):
            changed = np.diff(column) != 0
            for row in np.flatnonzero(changed & long) if np.mean(changed) < HELD else []:
                found.setdefault(name, []).append(f"between t = {one.t[row]:.6g} and {one.t[row + 1]:.6g}")
    return [
        f"The input {name} changes {in_a_row(gaps[:3])}{f' and in {len(gaps) - 3} more gaps' * (len(gaps) > 3)}, where "
        "there are no rows, and is taken to change at the end. If it is known when it did, add rows with that input "
        "and NaN for the states; else give the parts as a list of series (python -m ardea.explain ambiguity)."
        for name, gaps in found.items()
    ]
