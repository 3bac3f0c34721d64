"""What a fit says: of states at rest, of models left open, and of what fits no candidate.

At its end, functions that libraries often lack are put next to the terms found, of which the needless go one by one.
Those that look best are fitted themselves; only what a fit gains is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea.core.lazy import explained
from ardea.core.problem import LARGEST_SHARE as MOST_TERMS
from ardea.core.problem import Array
from ardea.core.subsets import Model, Support, backward_path, given, model
from ardea.dynamics.collocation import Fit, Nodes, Point
from ardea.dynamics.libraries import Listed
from ardea.dynamics.pursuit import MOST_ALONE, SLIGHT_GAIN, Pursuit
from ardea.dynamics.search import LARGEST_MISFIT, SearchResult
from ardea.dynamics.terms import Jet, OwnFunction, Term
from ardea.dynamics.trajectory import Likelihood
from ardea.dynamics.windows import FEW_FUNCTIONS
from ardea.equation import CLOSE, WEAK, Equation
from ardea.names import counted, in_a_row, listed, printable

if TYPE_CHECKING:
    from ardea.dynamics.fields import Fields

# A system is at rest from where its states stay within so many deviations of noise of where they end (a convention).
AT_REST = 1.0
# A convention: how many rivals `print` shows.
SHOWN_RIVALS = 3
# A rival that is better by this, within which the simpler is taken, or more shows that no candidate fits.
BEATEN = SLIGHT_GAIN + 0.1
# A convention: a state that varies less than this many times its noise says nothing of its equation.
LEAST_EXCITATION = 2.0
# An equation with more terms than these, and than this share of its candidates, or with all of four or more powers, or
# of fields with so many of the highest, expands something else (conventions). The lowest may be there: 1, u, u², u³ of
# a library that goes on to u⁴ are a law.
FEWEST_DENSE, LARGEST_SHARE, MANY_POWERS = 5, 0.6, 4
# Structure that a grid does not show is told from this share of a field on, where an equation leaves less: less of it
# biased coefficients by less than a standard error (measured on ten fields of `systems` on coarser grids).
LEAST_STRUCTURE = 1e-4
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
# A state this many deviations from zero is told of (a convention; measured on two coupled bodies with a constant added:
# at 7 to 9 none of six models is wrong, at 14 to 18 one, at 28 to 37 five).
FAR_FROM_ZERO = 10.0
# What is said of an equation of fields that is worse than none by its own score. Measured: none of 250 right fits to
# `systems` at 1 to 25 % noise, on fine and coarse grids; Cahn–Hilliard, rightly found, from 30 % on.
WORSE_THAN_NONE = (
    "The equation of {} has a negative score on its own data (R² = {:.2f}): what its terms make of noise is larger "
    "than what they explain. Terms may be wrong. See whether a smaller library, or data with less noise, give the same "
    "(python -m ardea.explain misfit)."
)
# Conventions: how many times as large as between neighbours the step across the seam is at most where a field is
# periodic along an axis, and at least where it is not.
PERIODIC, NOT_PERIODIC = 2.0, 6.0
# A convention: steps below this share of the deviation of a field are taken for this much.
LEAST_STEP = 1e-6


@explained("ambiguity")
def at_rest(nodes: Nodes, states: Array, noise: Array, n_candidates: int) -> Iterator[str]:
    """Yield what is to be warned of where most rows say where the system comes to rest, and few how it moves."""
    rest, sampled = 0, np.any(nodes.seen, axis=1)
    for rows in nodes.stretches:
        own = rows[sampled[rows]]
        away = np.any(np.abs(states[own] - states[own[-1:]]) > AT_REST * noise, axis=1)
        away |= np.any(nodes.inputs[own] != nodes.inputs[own[-1:]], axis=1)  # what an input moves is not at rest
        rest += int(np.sum(np.cumsum(away[::-1]) == 0))
    n_rows = int(sampled.sum())
    moving = n_rows - rest
    if rest >= n_rows / 2 and 0 < moving < n_candidates:
        yield (
            f"The states come to rest: in {rest} of {n_rows} rows all of them stay, within their noise, where they "
            f"end. The other {moving} rows are few for {n_candidates} candidates for each equation: others may explain "
            "them as well. Add series from other starts, or take a smaller library"
        )


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
    more = len(terms) - len(equation.terms)
    return f"[{listed(terms)}]" + (f", with {'a term' if more == 1 else f'{more} terms'} more" if more > 0 else "")


@explained("ambiguity")
def doubts_about(equations: Sequence[Equation], excitation: Sequence[float], hint: str = "") -> Iterator[str]:
    """Yield what is to be warned of: models that the data or the search leave open, states that hardly move.

    `hint`: what else to try where no term is found.
    """
    for equation in equations:
        left, chosen = equation.left.text, listed(equation.terms)
        rivals = [one for one in equation.close_rivals(SIMILAR) if hardly_told(one.excess, equation.terms, one.terms)]
        others = [*equation.equivalents, *(rival.terms for rival in rivals)]
        if rivals and rivals[0].excess < -BEATEN:
            yield (
                f"The best model found for {left}, [{chosen}], is not better than its neighbours: "
                f"{rivals[0].compared}. Most likely the right term is not among the candidates: see that times, order "
                "of the rows and library are right"
            )
        elif others:
            yield (
                f"The data hardly tell two models of {left} apart: [{chosen}] and {_longer(others[0], equation)}. "
                "Longer or richer data would, unless both stand in for a term that is not among the candidates"
            )
    for equation, ratio in zip(equations, excitation, strict=True):
        if ratio >= LEAST_EXCITATION and not equation.terms:
            yield (
                f"No term was found for {equation.left.text}: what moves it, if anything but noise does, is too weak "
                f"for these data, or not among the candidates.{hint} Add rows or series from other starts, or other "
                "terms"
            )
        if ratio < LEAST_EXCITATION:
            sure = bool(equation.terms) and np.all(np.abs(equation.coefficients) > WEAK * equation.std)
            so = (
                ": its equation, and others that contain it, may change with more data"
                if sure
                else ", too little to find its equation; others that contain it are in doubt"
            )
            seen = f"varies only {ratio:.1f} times as much as its noise" if ratio >= 0.05 else "looks like noise alone"
            yield (
                f"{printable(equation.name)} {seen}{so}. Is it at rest (a "
                "fixed point), sampled too rarely, or are there outliers, such as -999 for missing values?"
            )


@explained("ambiguity")
def said_of_unknown(equations: Sequence[Equation]) -> Iterator[str]:
    """Yield what is to be warned of equations none of whose coefficients is known."""
    for one in equations:
        if one.terms and np.all(np.abs(one.coefficients) < WEAK * one.std):
            yield (
                f"No coefficient of {one.left.text} is known: none is three standard deviations from zero. Its terms "
                "can hardly be told apart, or it moves faster than the samples show"
            )


@explained("misfit")
def said_of_expansions(
    equations: Sequence[Equation], ladders: Sequence[Support], known: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what is to be warned of: equations with most of their candidates, or with all powers up a ladder of them.

    `ladders` are candidates that are all, or the highest, powers of one thing, times the same. `known` terms do not
    count.
    """
    for equation in equations:
        own = set(equation.terms).difference(known.get(equation.name, ()))
        powers = [[equation.vocabulary.names[j] for j in ladder] for ladder in ladders]
        whole = next((names for names in powers if len(names) >= MANY_POWERS and own.issuperset(names)), [])
        if whole or len(own) > max(LARGEST_SHARE * equation.n_candidates, FEWEST_DENSE):
            all_of = f", all of {listed(whole)} among them" * (0 < len(whole) < len(equation.terms))
            yield (
                f"The equation of {equation.left.text} has {len(equation.terms)} of {equation.n_candidates} candidates"
                f"{all_of}: most likely they stand in for something else: a term that is not among them, such as a "
                "fraction or a sine, a state that was not measured, a coefficient that changes, or times that are wrong"
            )


@explained("ambiguity")
def said_of_waves(equations: Sequence[Equation], moves: Sequence[bool]) -> Iterator[str]:
    """Yield what is to be warned of fields that only move: whatever the law, they obey u_t = −c u_x."""
    for equation in compress(equations, moves):
        models = [equation.terms, *equation.equivalents] if equation.equivalents else []
        known = f" Here {in_a_row([f'[{listed(terms)}]' for terms in models])} fit about equally well." * bool(models)
        yield (
            f"In these data {printable(equation.name)} is one shape that only moves. Such data follow plain advection "
            "with one velocity, and every other law that has this wave as a solution just as well: they cannot tell "
            f"which holds.{known} Add runs from other starts (a list of fields), or with waves of several heights: all "
            "keep their shape and velocity if the law is advection"
        )


def no_candidate_fits(equation: Equation, ratio: float, unmeasured: str, hint: str) -> str:
    """Return what is said of an equation that leaves so many times the noise of the samples."""
    return (
        f"The equation of {equation.left.text} leaves {ratio:.1f} times the noise of the samples: most likely no "
        f"candidate fits. Try other or more terms, or a {unmeasured} that was not measured "
        f"(python -m ardea.explain misfit).{hint}"
    )


def said_of_misfit(equations: Sequence[Equation], ratios: Array, results: Sequence[SearchResult]) -> list[str]:
    """Return what is to be warned of: equations of fields that do not fit, explain less than none, or fit too well."""
    told = []
    for equation, ratio, result in zip(equations, ratios, results, strict=True):
        if ratio > LARGEST_MISFIT:
            told.append(no_candidate_fits(equation, ratio, "field", result.rows.hint))
        elif (said := result.rows.explained(equation.support, equation.coefficients)) < 0:
            told.append(WORSE_THAN_NONE.format(equation.left.text, said))
        elif ratio < 1 / LARGEST_MISFIT and not 0 < result.rows.structure < LEAST_STRUCTURE:
            why = (
                "the noise of the samples: its terms amplify noise, or the noise of neighbouring samples is not "
                "independent. Do not trust its intervals"
                if result.rows.structure == 0
                else "what smoothing takes from the samples, which goes on from one sample to the next, as structure "
                "that the grid does not show: intervals may be far too narrow. Take more points along the axis with "
                "few of them, mostly time"
            )
            told.append(
                f"The equation of {equation.left.text} leaves only {ratio:.2f} times {why} "
                "(python -m ardea.explain misfit)."
            )
    return told


def hardly_told(excess: float, mine: Collection[Any], other: Collection[Any]) -> bool:
    """Return whether the data hardly tell two models apart, given their terms."""
    exchanged = bool(set(mine).difference(other)) and bool(set(other).difference(mine))
    return excess < (SIMILAR if exchanged else INDISTINGUISHABLE)


# Functions that a library lacks


def not_given(pursuit: Pursuit, fit: Fit, noise: Array, first: int, names: Sequence[str]) -> Iterator[Better]:
    """Yield the functions that may gain most in one of the equations from the first on.

    `noise` is that of the samples of every measured state, `names` are those of states and inputs.
    """
    of, point, knowledge = pursuit.of, fit.point, pursuit.of.knowledge
    usual = knowledge.of_series is None and not (knowledge.laws or knowledge.kept or of.inside.n_constants)
    if not usual or of.n * of.d > MOST_ALONE or pursuit.narrow or of.noiseless(point):
        return
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


@explained("ambiguity")
def far_from_zero(
    middle: Array, spread: Array, degrees: Sequence[int], names: Sequence[str], moving: Sequence[bool]
) -> Iterator[str]:
    """Yield what is to be said where models tie: the states so far from zero that their powers look alike.

    Given are the mean and the standard deviation of every state.
    """
    for name, at, wide, moves in zip(names, middle, spread, moving, strict=False):
        if max(degrees, default=0) > 1 and moves and 0 < FAR_FROM_ZERO * wide < abs(at):
            yield (
                f"{name} varies by {wide:.2g} around {at:.6g}: its powers and the constant look alike there. Subtract "
                f"a reference value, such as {at:.3g}, from {name}, so that terms are told apart"
            )


# Fields


def told_of(runs: Sequence[Fields], degree: int) -> tuple[list[str], list[str]]:
    """Return what is to be said of fields: always, and, where models tie, of powers that look alike."""
    first = runs[0]
    samples = [f"Run {k}: {text}" if len(runs) > 1 else text for k, one in enumerate(runs, 1) for text in one.told]
    moving = [True] * first.n_measured
    far = far_from_zero(first.middle, first.spread, [degree + 1], first.names, moving)
    return [*samples, *first.together, *said_of_windows(runs)], far


@explained("ambiguity")
def said_of_windows(runs: Sequence[Fields]) -> Iterator[str]:
    """Yield what is to be warned of test functions: that there are few, that gaps take some, that axes look swapped."""
    used, every = sum(one.windows.n_functions for one in runs), sum(prod(one.windows.lattice) for one in runs)
    if used < FEW_FUNCTIONS:
        yield (
            f"{room_of(runs)}: hardly any model can be told from another, and none with more than "
            f"{counted(int(MOST_TERMS * used), 'term')} is tried. Take more points along an axis with few test "
            "functions, or add runs (a list of fields)"
        )
    if used < every:
        yield (
            f"The fields have gaps that are too wide to be filled in: {every - used} of {every} test functions touch "
            "them and were left out"
        )
    if swapped := swapped_axis(runs[0]):
        yield (
            "Along the last axis, which is taken for time, the fields return to their beginning, and along "
            f"{swapped}, which has as many points, they do not: see that the last axis is time"
        )


def room_of(runs: Sequence[Fields]) -> str:
    """Return how many test functions there are, and where few of them have room."""
    first, used = runs[0], sum(one.windows.n_functions for one in runs)
    along = [f"{n} along {axis}" for n, axis in zip(first.windows.lattice, [*first.axes, "t"], strict=True)]
    of_each = f", in each of {len(runs)} runs" * (len(runs) > 1)
    return (
        f"The grid has room for {counted(used, 'test function')}, the rows of an equation ({in_a_row(along)}{of_each})"
    )


def swapped_axis(data: Fields) -> str:
    """Return a space axis that looks like time, where the time axis looks like one of a periodic field; else nothing.

    Compared are the steps of smooth fields of unit deviation across the seam, from the last point to the first, with
    those between neighbours.
    """
    plain = (0,) * len(data.space)
    values = np.stack([data.derivative(Jet(i, plain)) / data.spread[i] for i in range(data.n_measured)])
    _, *space, times = values.shape

    def seam(axis: int) -> float:
        inner = float(np.sqrt(np.mean(np.diff(values, axis=axis) ** 2)))
        return float(np.sqrt(np.mean((values.take(0, axis) - values.take(-1, axis)) ** 2))) / max(inner, LEAST_STEP)

    if times not in space or seam(-1) > PERIODIC:
        return ""
    return next((name for i, name in enumerate(data.axes) if space[i] == times and seam(i + 1) > NOT_PERIODIC), "")
