"""Functions that a library lacks: whether one of them would be clearly better than what was found.

Each function of a state is put next to the terms found, in the linearisation at the fit, and the needless go one by
one. Those that look best are fitted themselves; only what a fit gains is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ardea.core.problem import Array
from ardea.core.subsets import Model, backward_path, model
from ardea.dynamics.collocation import Fit, Point
from ardea.dynamics.inside import Listed
from ardea.dynamics.pursuit import MOST_ALONE, Pursuit
from ardea.dynamics.terms import OwnFunction, Term
from ardea.dynamics.trajectory import Likelihood
from ardea.equation import CLOSE

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
SHARES = (0.5, 0.7, 1.0, 1.4)
# A state is on both sides of zero that is so many deviations of its noise below and above it (a convention).
BOTH_SIDES = 3.0
# So many of them are fitted, those that look best (a bound on work).
MOST_FITTED = 3

# By how much a function is better, in which equation, its name, and which terms there it makes needless.
Better = tuple[float, int, str, tuple[int, ...]]


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
    functions = common_functions(point.states, noise)
    more = of.library + Listed(tuple(functions))
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
        paths += [one for one in backward_path(problem, (*mine, place)) if place in one.support]
    best = {max(one.support): one for one in sorted(paths, key=lambda one: -one.criterion)}  # of every function
    least = np.inf if pursuit.with_process else model(problem, mine).criterion - CLOSE
    likely = sorted((one for one in best.values() if one.criterion < least), key=lambda one: one.criterion)
    for one in likely[:MOST_FITTED]:
        equation, term = divmod(every[max(one.support)], wider.d)
        values = problem.least_squares(np.array(one.support))[0] * posed[1][list(one.support)]
        at = np.zeros(of.n * wider.d)
        at[[every[j] for j in one.support]] = values
        gain = _gain(pursuit, fit, wider, replace(start, coefficients=at.reshape(of.n, wider.d)))
        gone = tuple(int(terms[j]) for j in mine if j not in one.support and rows[j] == equation)
        yield gain, equation, more.listed(of.n + of.n_inputs)[term].name(names), gone


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


def _gain(pursuit: Pursuit, fit: Fit, wider: Likelihood, start: Point) -> float:
    """Return by how much a model is better than the one found, without noise of the process or with it."""
    support = tuple(np.flatnonzero(start.coefficients).tolist())
    fits = [wider.fitted(support, start, [*pursuit.levels[2:-1:2], pursuit.levels[-1]])]
    fits += [wider.learned(support, start)] if pursuit.with_process else []
    return pursuit.score(fit) - min(one.deviance for one in fits) - pursuit.price * len(support)
