"""What a fit says: of readings that are no states or no mistakes, of single samples, and of models left open.

At its end, functions that libraries often lack are put next to the terms found, of which the needless go one by one.
Those that look best are fitted themselves; only what a fit gains is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ardea.core.problem import Array
from ardea.core.subsets import Model, backward_path, given, model
from ardea.dynamics.collocation import Fit, Nodes, Point, unknown_inputs
from ardea.dynamics.libraries import Listed
from ardea.dynamics.pursuit import MOST_ALONE, SLIGHT_GAIN, Pursuit
from ardea.dynamics.series import HELD, Series
from ardea.dynamics.terms import OwnFunction, Term
from ardea.dynamics.trajectory import Likelihood
from ardea.equation import CLOSE, WEAK, Equation
from ardea.estimators.advice import codes_of, is_usual
from ardea.names import counted, in_a_row, listed, printable

# What is left of a copy is rounding error (a convention).
COPIED = 1e-9
# A value far from all others in more than this share of the rows is no code, unless it looks like one (a convention).
MOST_CODED = 0.2
# Readings are coarse that stay the same in more than this share of the steps (a convention).
COARSE = 0.5
# Readings may be cut off where they are at their largest or least value in at least so many rows, and in so many times
# more than at any other, or stuck where they are the same in so many rows in a row (conventions).
FEWEST_CUT, TIMES_CUT, FEWEST_STUCK = 4, 3, 6
# Rows were written twice where at least so many repeat the one before, and this share of the other readings comes once
# (conventions).
FEWEST_TWICE, FINE = 2, 0.9
# A system is at rest from where its states stay within so many deviations of noise of where they end (a convention).
AT_REST = 1.0
TINY = float(np.finfo(float).tiny)
# An input that switches over a step of more than this many median steps may have switched anywhere (a convention).
LONG_STEP = 4.0
# Where steps are even, up to this ratio of their upper quartile to their median, one lost row shows (conventions).
EVEN, LOST_ROW = 1.2, 1.5
# A convention: how many rivals `print` shows.
SHOWN_RIVALS = 3
# A rival that is better by this, within which the simpler is taken, or more shows that no candidate fits.
BEATEN = SLIGHT_GAIN + 0.1
# A convention: a state that varies less than this many times its noise says nothing of its equation.
LEAST_EXCITATION = 2.0
# Rivals closer than this (odds below 5 to 3) are warned of, those that exchange terms up to the second (odds below e to
# 1): a term more or less has its price.
INDISTINGUISHABLE, SIMILAR = 1.0, 2.0
# Functions of any state; of one that is both below and above zero; of one above zero, some with a constant inside: the
# median of that state, and shares of it.
OF_ANY: dict[str, Callable[..., Any]] = {"sin({})": np.sin, "cos({})": np.cos}
OF_BOTH: dict[str, Callable[..., Any]] = {
    "|{}|": np.abs,
    "sign({})": np.sign,
    "{0} |{0}|": lambda x: x * np.abs(x),
}
OF_POSITIVE: dict[str, Callable[..., Any]] = {"sqrt({})": np.sqrt, "log({})": np.log, "1/{}": lambda x: 1 / x}
FRACTIONS: dict[str, Callable[..., Any]] = {
    "1/({} + K)": lambda K, x: 1 / (x + K),
    "1/({}^2 + K^2)": lambda K, x: 1 / (x**2 + K**2),
    "{0} {1}/({0} + K)": lambda K, x, y: x * y / (x + K),
}
SHARES = (0.41, 0.51, 0.64, 0.8, 1.0, 1.25, 1.56)
# A state is on both sides of zero that is so many deviations of its noise below and above it (a convention).
BOTH_SIDES = 3.0
# So many of them are fitted, those that look best (a bound on work).
MOST_FITTED = 3

# By how much a function is better (less 2 ln of how many are tried), in which equation, its name, and which terms there
# it makes needless.
Better = tuple[float, int, str, tuple[int, ...]]


def said_of_spoiled(series: Sequence[Series], names: Sequence[str]) -> list[str]:
    """Return what is to be warned of states that are copies, never change, switch, or hold what looks like no reading.

    All doubts about equations may come from them.
    """
    every = np.concatenate([one.x for one in series])
    out = [
        f"{copied} in every row: no data tell which of them acts. Leave one out (python -m ardea.explain ambiguity)."
        for i, j in combinations(range(every.shape[1]), 2)
        if (copied := _copied(every[:, i], every[:, j], names[i], names[j]))
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
    """Return what is to be warned of readings that are rounded coarsely, cut off at a bound, stuck, or come twice."""
    out = _repeated(series)
    for state, name in enumerate(names[: series[0].x.shape[1]]):
        columns = [one.x[np.isfinite(one.x[:, state]), state] for one in series]
        values = np.unique(np.concatenate(columns))
        if (unit := _coarse(columns, values)) is not None:
            out.append(
                f"{name} is rounded to {unit:.3g} and mostly stays the same from row to row: what rounding leaves is "
                "then no noise that averages out. Take finer readings, or see whether every second row gives the same "
                "equation (python -m ardea.explain ambiguity)."
            )
        elif not _no_reading(name, columns, values):
            out += _cut_off(name, series, state)
    return out


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
    for one, own, column in zip(series, rows, columns, strict=True):
        ends = np.append(np.flatnonzero(np.diff(column) != 0), column.size - 1)
        lengths = np.diff(np.append(-1, ends))
        if not out and lengths.max(initial=0) >= FEWEST_STUCK:
            last = int(ends[lengths.argmax()])
            out.append(
                f"{name} is {column[last]:.6g} in {lengths.max()} rows in a row, up to t = {one.t[own][last]:.6g}: if "
                "its sensor was stuck, set these readings to NaN (python -m ardea.explain ambiguity)."
            )
    return out


def _copied(x: Array, y: Array, one: str, other: str) -> str:
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


def at_rest(nodes: Nodes, states: Array, noise: Array, n_candidates: int) -> list[str]:
    """Return what is to be warned of where most rows say where the system comes to rest, and few how it moves."""
    rest, sampled = 0, np.any(nodes.seen, axis=1)
    for rows in nodes.stretches:
        own = rows[sampled[rows]]
        away = np.any(np.abs(states[own] - states[own[-1:]]) > AT_REST * noise, axis=1)
        away |= np.any(nodes.inputs[own] != nodes.inputs[own[-1:]], axis=1)  # what an input moves is not at rest
        rest += int(np.sum(np.cumsum(away[::-1]) == 0))
    n_rows = int(sampled.sum())
    moving = n_rows - rest
    if rest < n_rows / 2 or not 0 < moving < n_candidates:
        return []
    return [
        f"The states come to rest: in {rest} of {n_rows} rows all of them stay, within their noise, where they end. "
        f"The other {moving} rows are few for {n_candidates} candidates for each equation: others may explain them as "
        "well. Add series from other starts, or take a smaller library (python -m ardea.explain ambiguity)."
    ]


def open_questions(equation: Equation) -> list[str]:
    """Return what is to be said of models that the data do not rule out."""
    remarks = [f"The data do not tell it from {_longer(terms, equation)}." for terms in equation.equivalents]
    if rivals := equation.close_rivals():
        named = "; ".join(rival.compared for rival in rivals[:SHOWN_RIVALS])
        if rivals[0].excess < -BEATEN:
            remarks.append(f"The best model found is not better than its neighbours: {named}.")
        else:
            remarks.append(f"Other models fit about as well: {named}. A difference of {CLOSE:g} would be clear.")
    return remarks


def _longer(terms: Sequence[str], equation: Equation) -> str:
    """Return the terms of a model that fits as well, and that it has more of them than another."""
    return f"[{listed(terms)}]" + ", with a term more" * (len(terms) > len(equation.terms))


def doubts_about(equations: Sequence[Equation], excitation: Sequence[float], hint: str = "") -> list[str]:
    """Return what is to be warned of: models that the data or the search leave open, states that hardly move.

    `hint`: what else to try where no term is found.
    """
    doubts = []
    for equation in equations:
        left, chosen = equation.left.text, listed(equation.terms)
        rivals = [one for one in equation.close_rivals(SIMILAR) if hardly_told(one.excess, equation.terms, one.terms)]
        others = [*equation.equivalents, *(rival.terms for rival in rivals)]
        if rivals and rivals[0].excess < -BEATEN:
            doubts.append(
                f"The best model found for {left}, [{chosen}], is not better than its neighbours: "
                f"{rivals[0].compared}. Most likely the right term is not among the candidates: see that times, order "
                "of the rows and library are right (python -m ardea.explain ambiguity)."
            )
        elif others:
            doubts.append(
                f"The data hardly tell two models of {left} apart: [{chosen}] and {_longer(others[0], equation)}. "
                "Longer or richer data would, unless both stand in for a term that is not among the candidates "
                "(python -m ardea.explain ambiguity)."
            )
    for equation, ratio in zip(equations, excitation, strict=True):
        if ratio >= LEAST_EXCITATION and not equation.terms:
            doubts.append(
                f"No term was found for {equation.left.text}: what moves it, if anything but noise does, is too weak "
                f"for these data, or not among the candidates.{hint} Add rows or series from other starts, or other "
                "terms (python -m ardea.explain ambiguity)."
            )
        if ratio < LEAST_EXCITATION:
            sure = bool(equation.terms) and np.all(np.abs(equation.coefficients) > WEAK * equation.std)
            so = (
                ": its equation, and others that contain it, may change with more data"
                if sure
                else ", too little to find its equation; others that contain it are in doubt"
            )
            doubts.append(
                f"{printable(equation.name)} varies only {ratio:.1f} times as much as its noise{so}. Is it at rest (a "
                "fixed point), sampled too rarely, or are there outliers, such as -999 for missing values? "
                "(python -m ardea.explain ambiguity)"
            )
    return doubts


def hardly_told(excess: float, mine: Collection[Any], other: Collection[Any]) -> bool:
    """Return whether the data hardly tell two models apart, given their terms."""
    exchanged = bool(set(mine).difference(other)) and bool(set(other).difference(mine))
    return excess < (SIMILAR if exchanged else INDISTINGUISHABLE)


# Functions that a library lacks


def not_given(pursuit: Pursuit, fit: Fit, noise: Array, first: int, names: Sequence[str]) -> Better:
    """Return the function that gains most in one of the equations from the first on; that of no gain where none does.

    `noise` is that of the samples of every measured state, `names` are those of states and inputs.
    """
    of = pursuit.of
    knowledge = of.knowledge
    usual = knowledge.of_series is None and not (knowledge.laws or knowledge.kept or of.inside.n_constants)
    if not usual or of.n * of.d > MOST_ALONE or pursuit.narrow or of.noiseless(fit.point):
        return 0.0, first, "", ()
    return max(_fitted(pursuit, fit, noise, first, names), default=(0.0, first, "", ()))


def _fitted(pursuit: Pursuit, fit: Fit, noise: Array, first: int, names: Sequence[str]) -> Iterator[Better]:
    of, point = pursuit.of, fit.point
    between = point.states[:0] if of.discrete_time else of.steps(point).middles[: of.n].T
    more = of.library + Listed(tuple(common_functions(np.vstack([point.states, between]), noise)))
    wider = Likelihood(of.nodes, more, of.discrete_time, of.fixed, of.power, of.told)
    rows, terms = of.placed(fit.support)
    found = tuple((rows * wider.d + terms).tolist())
    every = (*found, *(row * wider.d + place for row in range(first, of.n) for place in range(of.d, wider.d)))
    start = replace(point, coefficients=np.hstack([point.coefficients, np.zeros((of.n, wider.d - of.d))]), tilt=None)
    posed = wider.linearised(start, found).problem(every)
    if posed is None:
        return
    problem, mine, paths = replace(posed[0], price=pursuit.price), tuple(range(len(found))), list[Model]()
    for place in range(len(found), len(every)):
        beside = backward_path(given(problem, np.arange(len(found)), np.array([place])), mine)
        paths += [Model((*one.support, place), one.criterion + pursuit.price, one.rss) for one in beside]
    best = {max(one.support): one for one in sorted(paths, key=lambda one: -one.criterion)}  # of every function
    choice = 2 * float(np.log(len(every) - len(found)))
    least = np.inf if pursuit.with_process else model(problem, mine).criterion - CLOSE
    likely = sorted((one for one in best.values() if one.criterion < least), key=lambda one: one.criterion)
    first_of = {every[max(one.support)] // wider.d: one for one in reversed(likely)}  # the best of every equation
    for one in sorted(likely, key=lambda one: one not in first_of.values())[:MOST_FITTED]:
        equation, term = divmod(every[max(one.support)], wider.d)
        values = problem.least_squares(np.array(one.support))[0] * posed[1][list(one.support)]
        at = np.zeros(of.n * wider.d)
        at[[every[j] for j in one.support]] = values
        name = more.listed(of.n + of.n_inputs)[term].name(names)
        fits = fits_of(pursuit, wider, replace(start, coefficients=at.reshape(of.n, wider.d)), name.startswith("sign("))
        deviance = min(one.deviance for one in fits)
        gain = pursuit.score(fit) - deviance - pursuit.price * len(one.support) - choice
        gone = tuple(int(terms[j]) for j in mine if j not in one.support and rows[j] == equation)
        yield gain, equation, name, gone


def common_functions(states: Array, noise: Array) -> Iterator[Term]:
    """Yield functions of every state, and of pairs, that libraries often lack.

    What is above zero but for its noise has no use for an absolute value.
    """
    n = states.shape[1]
    margin = np.zeros(n)  # what is not measured has no noise of samples
    margin[: noise.size] = BOTH_SIDES * noise
    for state, (values, own) in enumerate(zip(states.T, margin, strict=True)):
        functions = dict(OF_ANY)
        if values.min() < -own and values.max() > own:
            functions |= OF_BOTH
        if values.min() > 0:
            functions |= OF_POSITIVE
        for template, function in functions.items():
            yield Term.of(OwnFunction(function, (state,), template))
        for share, (template, function) in product(SHARES if values.min() > 0 else (), FRACTIONS.items()):
            constant = float(f"{share * np.median(values):.3g}")
            pairs = [(state, other) for other in range(n) if other != state]
            for arguments in pairs if "{1}" in template else [(state,)]:
                name = template.replace("K", f"{constant:g}")
                yield Term.of(OwnFunction(partial(function, constant), arguments, name))


def fits_of(pursuit: Pursuit, wider: Likelihood, start: Point, jumps: bool) -> list[Fit]:
    """Return a model without noise of the process and, where that was found, with it.

    That with it asks for derivatives: what jumps has none.
    """
    support = tuple(np.flatnonzero(start.coefficients).tolist())
    fits = [wider.fitted(support, start, [*pursuit.levels[2:-1:2], pursuit.levels[-1]])]
    return fits + ([wider.learned(support, start)] if pursuit.with_process and not jumps else [])
