"""What readings say before a search: which are copies, filled in, cut off, rounded or no readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ardea.core.lazy import cached_property, explained
from ardea.core.problem import Array, Index
from ardea.dynamics.collocation import unknown_inputs
from ardea.dynamics.series import HELD, Series
from ardea.estimators.codes import codes_of, is_usual
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
# Derived: of 2⁶⁴ different steps, the square root of all digests of so many bytes, two are taken for one by chance.
DIGEST = 16
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


@dataclass(frozen=True, eq=False)
class Readings:
    """The readings of a state or an input in every series, with their times, and without gaps."""

    name: str
    parts: list[tuple[Array, Array]]

    @classmethod
    def of(cls, series: Sequence[Series], names: Sequence[str]) -> list[Readings]:
        """Return those of all states, then of all inputs."""
        every = [(one.t, one.values, np.isfinite(one.values)) for one in series]
        parts = [[(t[seen[:, j]], values[seen[:, j], j]) for t, values, seen in every] for j in range(len(names))]
        return list(map(cls, names, parts))

    @cached_property
    def counts(self) -> tuple[Array, Index]:
        """The different values, ascending, and in how many rows each is."""
        values, counts = np.unique(np.concatenate([column for _, column in self.parts]), return_counts=True)
        return values, counts

    @cached_property
    def runs(self) -> tuple[Array, Array, Index, Array, Index]:
        """Of runs of equal readings their value, end and length, how far what is around them is, and in which series.

        It is in last digits. Rounded readings come again where a state turns or rests: then what is around is near.
        """
        unit, out = float(np.min(np.diff(self.counts[0]), initial=np.inf)), []
        for number, (t, column) in enumerate(self.parts):
            ends = np.flatnonzero(np.append(np.diff(column) != 0, True)[: column.size])
            steps = np.abs(np.diff(column[ends]))
            around = np.minimum(np.append(np.inf, steps), np.append(steps, np.inf))
            around = around / unit if steps.size else np.zeros(ends.size)
            out.append((column[ends], t[ends], np.diff(np.append(-1, ends)), around, np.full(ends.size, number)))
        values, until, sizes, around, series = map(np.concatenate, zip(*out, strict=True))
        return values, until, sizes, around, series

    @cached_property
    def held(self) -> int:
        """In how many rows the reading before is repeated, as by what is filled in; 0 if all were measured.

        A reading is rounded to the one before with a chance of at most 1 in the units to what is around it.
        """
        values, _, sizes, around, _ = self.runs
        far = around > MANY_UNITS
        again = values[far & (sizes > 1)]
        few = again.size < max(FEWEST_HELD, TIMES_CHANCE * np.sum(1 / around[far]))
        usual = np.unique(again, return_counts=True)[1].max(initial=0)
        return 0 if few or usual > max(1, MOST_USUAL * again.size) else int(np.sum(sizes - 1))

    @cached_property
    def unit(self) -> float | None:
        """The unit of readings that mostly stay what they were, of at least three values."""
        steps, changes = np.diff(self.counts[0]), np.concatenate([np.diff(column) for _, column in self.parts])
        if steps.size < 2 or np.mean(changes == 0) <= COARSE:
            return None
        whole = steps / steps.min()
        return float(steps.min()) if np.all(np.abs(whole - np.round(whole)) < 1e-6 * whole) else None

    @cached_property
    def no_reading(self) -> str:
        """What is said of values far from all others: repeated, or between others in time."""
        values, counts = self.counts
        if len(values) < 3 or np.max(np.diff(values)) < np.ptp(values) / 2:  # then none is far from the others
            return ""
        columns = [column for _, column in self.parts]

        def is_sure(value: float, rows: int) -> bool:
            few = rows <= MOST_CODED * counts.sum() or is_usual(value)  # an input may switch
            return few and (rows > 1 or any(value in column[1:-1] for column in columns))

        codes = codes_of(np.concatenate(columns), is_sure)
        return "" if codes is None else codes.told(self.name, "set it to NaN")


@explained("ambiguity")
def said_of_spoiled(series: Sequence[Series], names: Sequence[str]) -> Iterator[str]:
    """Yield what is to be warned of states that are copies, never change, switch, or hold what looks like no reading.

    All doubts about equations may come from them.
    """
    every = np.concatenate([one.values for one in series])
    for i, j in combinations(range(every.shape[1]), 2):
        if alike := copied(every[:, i], every[:, j], names[i], names[j]):
            yield f"{alike} in every row: no data tell which of them acts. Leave one out"
    for state in Readings.of(series, names)[: series[0].x.shape[1]]:
        values, counts = state.counts
        if len(values) == 1:
            yield (
                f"{state.name} is {values[0]:g} in every row: it is at rest (a fixed point), or no state. Every term "
                "with it repeats one without it, so that no equation is settled. Leave it out (on the command line "
                "--states names the others)"
            )
        elif len(values) == 2 and counts.sum() > 2 * len(values):
            yield (
                f"{state.name} has only the values {values[0]:g} and {values[1]:g}: a switch is an input, not a state. "
                "Give it as u (--inputs on the command line)"
            )
        elif state.no_reading:
            yield state.no_reading


@explained("ambiguity")
def said_of_states(series: Sequence[Series], names: Sequence[str]) -> Iterator[str]:
    """Yield what is to be warned of readings that are held, rounded coarsely, cut off, stuck, or come twice."""
    states = Readings.of(series, names)[: series[0].x.shape[1]]
    yield from given_twice([_steps(one) for one in series], [len(one.x) for one in series], "series", "series", "rows")
    yield from _many(series)
    yield from _sums(series, names)
    yield from list(_repeated(series)) or _filled_in(states)
    for state in states:
        if state.held:
            continue
        if state.unit is not None:
            yield (
                f"{state.name} is rounded to {state.unit:.3g} and mostly stays the same from row to row: what rounding "
                "leaves is then no noise that averages out. Take finer readings, or see whether every second row gives "
                "the same equation"
            )
        elif not state.no_reading:
            yield from _cut_off(state, states)


def _many(series: Sequence[Series]) -> Iterator[str]:
    """Yield what is to be warned of states that are many for their rows, or look like the points of a field."""
    every = np.concatenate([one.x for one in series])
    every = every[np.all(np.isfinite(every), axis=1)]
    rows, n = every.shape
    if n < FEWEST_POINTS:
        return
    moves = every - every.mean(axis=0)
    moves -= moves.mean(axis=1, keepdims=True)
    if np.mean(np.diff(moves, axis=1) ** 2) < SMOOTH * 2 * np.mean(moves**2):
        yield (
            f"The {n} states change little from one to the next, as the points of a field do. If they are one, give it "
            "as a field, with the coordinates x of its points: fit(u, t, space=(x,)), u of shape (points, times); on "
            "the command line a table with columns t, x and u, or an .npz file of u, x and the times, and --space x"
        )
    if rows < ROWS_PER_STATE * n:
        yield (
            f"There are {n} states and {rows} rows: so many states cannot be told apart by so few rows, and terms may "
            "be found by chance. Take fewer states or more rows"
        )


def steps_of(steps: Array, moving: NDArray[np.bool_]) -> dict[int, bytes]:
    """Return what rows of steps hold, as digests, for those that move and hold no NaN."""
    known = np.flatnonzero(moving & np.all(np.isfinite(steps), axis=1))
    return {row: blake2b(steps[row].tobytes(), digest_size=DIGEST).digest() for row in known.tolist()}


def _steps(one: Series) -> dict[int, bytes]:
    steps = np.hstack([one.x[:-1], one.x[1:], one.inputs[:-1]])
    return steps_of(steps, np.any(one.x[:-1] != one.x[1:], axis=1))


def given_twice(
    steps: Sequence[dict[int, bytes]], lengths: Sequence[int], one: str, many: str, rows: str
) -> Iterator[str]:
    """Yield what is to be warned of series that repeat each other: rows that are in both, with the same row next.

    Given are the steps from row to row and the numbers of rows of all, and what one of them, many, and rows are called.
    """
    out, owner = [], dict[bytes, tuple[int, int]]()
    for number, keys in enumerate(steps):
        earlier = [(owner[key][0], row - owner[key][1]) for row, key in keys.items() if key in owner]
        if earlier:
            (first, _), shared = Counter(earlier).most_common(1)[0]
            if shared >= max(FEWEST_SHARED, SHARE_SHARED * (min(lengths[number], lengths[first]) - 1)):
                out.append((first, number, shared + 1))
        owner |= {key: (number, row) for row, key in keys.items() if key not in owner}
    for first, second, shared in out[:1]:
        more = f" (and {counted(len(out) - 1, f'more {one}', f'more {many}')} of others)" if len(out) > 1 else ""
        yield (
            f"{one.capitalize()} {second + 1} has {shared} {rows} of {one} {first + 1} again{more}: {rows} that are "
            "given twice count twice, which makes intervals too narrow and may add terms. Give every run once, in "
            "parts that do not overlap"
        )


def _sums(series: Sequence[Series], names: Sequence[str]) -> Iterator[str]:
    """Yield what is to be said of states and inputs whose sum, with some factors, is the same in every row."""
    every = np.concatenate([one.values for one in series])
    every = every[np.all(np.isfinite(every), axis=1)]
    wide = np.ptp(every, axis=0) if len(every) else np.zeros(len(names))
    if len(names) < 3 or len(every) <= len(names) + 2 or np.any(wide == 0):
        return
    _, values, directions = np.linalg.svd((every - every.mean(axis=0)) / wide, full_matrices=False)
    factors = np.where(np.abs(directions[-1]) > np.sqrt(COPIED), directions[-1] / wide, 0.0)
    used = np.flatnonzero(factors)
    if values[-1] > COPIED * values[0] or used.size < 3:
        return
    factors /= factors[used[0]]
    sizes = ["" if abs(size - 1) < np.sqrt(COPIED) else f"{size:.6g} " for size in np.abs(factors)]
    parts = [(" - " if factors[j] < 0 else " + ") + sizes[j] + names[j] for j in used.tolist()]
    value = float(np.mean(every @ factors))
    value = 0.0 if abs(value) < COPIED * np.abs(every * factors).max() else value
    why = (
        "equations can be written in several ways that fit alike, of which a short one is shown. Leave one of these "
        "states out for a single way"
        if used[-1] < series[0].x.shape[1]
        else "an input follows the states, as in a closed loop, and no data tell what it does from what they do. Add "
        "runs in which it moves on its own, or take the equations for those of the closed loop"
    )
    yield f"{''.join(parts).removeprefix(' + ')} is {value:.6g} in every row: {why}"


def _filled_in(states: Sequence[Readings]) -> Iterator[str]:
    """Yield what is to be warned of states that were read less often than others and filled in."""
    for state in states:
        if state.held:
            yield (
                f"{printable(state.name)} repeats the reading before it in {state.held} rows, and moves by far more "
                "than its last digit in between: most likely it was read less often, and filled in. Set what was "
                "filled in to NaN: taken as readings, it makes terms and intervals wrong"
            )


def _repeated(series: Sequence[Series]) -> Iterator[str]:
    """Yield what is to be warned of rows that repeat the one before in every state, where readings hardly repeat.

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
    if times.size >= FEWEST_TWICE and fine and not stuck and near < 2 * times.size:
        yield (
            f"{times.size} rows repeat the row before them in every state, the first at t = {times[0]:.6g}, and hardly "
            "any reading comes twice elsewhere: if rows were written twice, leave the second out, and see whether the "
            "times after it are right"
        )


def _cut_off(state: Readings, states: Sequence[Readings]) -> Iterator[str]:
    """Yield what is to be warned of fine readings that are the same in many rows: at a bound, or one after another."""
    values, counts = state.counts
    usual = int(counts[1:-1].max(initial=0))
    if len(values) < 3 or 2 * np.sum(counts[1:-1] == 1) < np.sum(counts[1:-1]):  # then readings are rounded
        return
    ends = {"largest": -1, "least": 0}
    ends = {which: end for which, end in ends.items() if counts[end] >= max(FEWEST_CUT, TIMES_CUT * usual)}
    for which, end in ends.items():
        what, rests = f"{which} value, {values[end]:.6g}, in {counts[end]} rows", _rests(state, values[end])
        if rests:
            yield (
                f"{state.name} stays at its {what}, all {rests}. If it is at rest there, these readings are right. If "
                "they are cut off, by the range of a sensor or a limit of detection, set them to NaN: as numbers they "
                "make coefficients and intervals wrong"
            )
            continue
        yield (
            f"{state.name} is at its {what}: if readings are cut off there, by the range of a sensor or a limit of "
            "detection, set them to NaN. As numbers they make coefficients and intervals wrong"
        )
    values, until, sizes, around, series = state.runs
    stuck = np.flatnonzero((around > MANY_UNITS) & (sizes >= FEWEST_STUCK))
    if not ends and stuck.size:
        longest = max(stuck[series[stuck] == series[stuck[0]]], key=sizes.__getitem__)
        value, rows = values[longest], sizes[longest]
        same = int(sum(np.sum(column == value) for one in states for _, column in one.parts)) - rows
        where = f", in the file, as it is the value of {counted(same, 'other reading')}, too"
        do = where if same else f" (--na={np.format_float_positional(value, trim='-')} on the command line)"
        yield (
            f"{state.name} is {value:.6g} in {rows} rows in a row, up to t = {until[longest]:.6g}: if its sensor was "
            f"stuck, set these readings to NaN{do}"
        )


def _rests(state: Readings, value: float) -> str:
    """Return where a state stays at a value from the first row of a series on, or up to the last; "" if it moves on."""
    values, _, sizes, _, series = state.runs
    held = (values == value) & (sizes > 1)
    ends = {"start": np.diff(series, prepend=-1) != 0, "end": np.diff(series, append=series[-1] + 1) != 0}
    if not np.all((ends["start"] | ends["end"])[values == value]):
        return ""
    return "at the " + " or the ".join(which for which, own in ends.items() if np.any(own & held)) + " of a series"


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


@explained("ambiguity")
def said_of_inputs(series: Sequence[Series], names: Sequence[str]) -> Iterator[str]:
    """Yield what is to be warned of: inputs with gaps, values that look like no readings, inputs that never change."""
    inputs, rows = Readings.of(series, names)[series[0].x.shape[1] :], sum(len(one.x) for one in series)
    yield from _switched_unseen(series, [one.name for one in inputs])
    unknown = [(one.t, first, last) for one in series for first, last in unknown_inputs(one)]
    cut = sum(last - first - 1 for _, first, last in unknown)
    for t, before, after in unknown[:1]:
        left_out = f"the {counted(cut, 'row')} in between {'is' if cut == 1 else 'are'} left out, and " if cut else ""
        more = f" (and in {counted(len(unknown) - 1, 'other gap')})" if len(unknown) > 1 else ""
        yield (
            f"Between t = {t[before]:.6g} and {t[after]:.6g}{more} there are no readings of inputs, and these move too "
            f"fast to be interpolated: {left_out}the rows before and after are taken as series of their own. If the "
            "inputs are known there, add them, in rows with NaN for states that are not"
        )
    for one in inputs:
        values, counts = one.counts
        if (missing := rows - counts.sum() - cut) > 0:
            yield (
                f"The input {one.name} is missing in {missing} of {rows} rows, and was interpolated there: where it "
                "may have moved meanwhile, leave these rows out and give the parts as a list of series"
            )
        if len(values) == 1:
            yield f"The input {one.name} never changes: what it does cannot be told from a constant"
        elif one.no_reading:
            yield one.no_reading


def _switched_unseen(series: Sequence[Series], names: Sequence[str]) -> Iterator[str]:
    """Yield what is to be said of inputs that switch where there are no rows."""
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
    for name, gaps in found.items():
        yield (
            f"The input {name} changes {in_a_row(gaps[:3])}{f' and in {len(gaps) - 3} more gaps' * (len(gaps) > 3)}, "
            "where there are no rows, and is taken to change at the end. If it is known when it did, add rows with "
            "that input and NaN for the states; else give the parts as a list of series"
        )
