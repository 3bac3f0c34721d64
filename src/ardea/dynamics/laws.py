"""Laws in words: terms that are certain, equations between coefficients, signs. Read, and refused where they clash.

``"x: x y + y: x y = 0"`` says of the coefficients of x y in the equations of x and of y that they add up to zero,
``"x: x < 0"`` that one is negative, and ``"S: * + I: * + R: * = 0"`` says the same of every term, one after the other.

Several experiments have the same terms, with coefficients, and constants inside them, of their own in each: inputs that
are one in one series and zero in all others make terms of every series. What is known holds in every series, and
coefficients or constants that are common to all are tied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import reduce
from numbers import Real
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ardea.core.subsets import Support
from ardea.dynamics.chain import NOTHING
from ardea.dynamics.collocation import Fit
from ardea.dynamics.inside import PerSeries
from ardea.dynamics.knowledge import Common, Knowledge, Law
from ardea.dynamics.libraries import Library, Polynomials
from ardea.dynamics.models import StateModel
from ardea.dynamics.pursuit import Pursuit
from ardea.dynamics.series import Series
from ardea.equation import CLOSE
from ardea.names import printable

PLAIN = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
FACTOR = re.compile(rf"^\s*([+-]?)\s*({PLAIN})?\s*\*?\s*(.*?)\s*$")
RELATION = re.compile(r"^(.*?)(<=|>=|=|<|>)(.*)$")
EXAMPLE = "write, for example, 'x: x y + y: x y = 0', 'x: 1 = 2' or 'x: x < 0'"
EVERY = "*"
# A convention: how often chance alone may refute any of the laws.
BY_CHANCE = 1e-3
# A convention: levels of q from which on a fit begins anew where a law is left out.
LEVELS_AGAIN = 3


@dataclass(frozen=True, eq=False)
class Reader:
    """Names of states and terms, and which terms the equation of every state may have."""

    states: Sequence[str]
    terms: Sequence[str]
    allowed: NDArray[np.bool_]  # (states, terms)
    first: int  # equations before that of the first state
    n_terms: int  # behind them come the constants inside them, "K of x/(K + x)"

    @classmethod
    def of(cls, model: StateModel, libraries: Sequence[Library]) -> Reader:
        """Return that of a model whose equations have libraries of their own."""
        terms, states = model.vocabulary.names, [left.name for left in model.lefts]
        names = {library: set(library.names(model.variables)) for library in libraries}
        of_constants = [(f"{letter} of {terms[j]}", terms[j]) for j, letter in model.vocabulary.constants]
        owners = [*terms, *(term for _, term in of_constants)]
        allowed = np.array([[term in names[library] for term in owners] for library in libraries])
        every = [*terms, *(name for name, _ in of_constants)]
        return cls(states, every, allowed, len(states) * (model.order - 1), len(terms))

    @property
    def size(self) -> tuple[int, int]:
        """Number of equations, and of terms that each can have."""
        return self.first + len(self.states), len(self.terms)

    def candidate(self, state: str, term: str, told: str) -> int:
        """Return the number of a term in the equation of a state."""
        equation, place = self._state(state, told), self._place(term, told)
        if not self.allowed[equation, place]:
            raise ValueError(f"{told}: {term!r} is not in the library of {state}.")
        return (self.first + equation) * len(self.terms) + place

    def _state(self, state: str, told: str) -> int:
        if state not in self.states:
            raise ValueError(f"{told}: there is no state {state!r}.{_near(state, self.states)}")
        return list(self.states).index(state)

    def _place(self, term: str, told: str) -> int:
        if term not in self.terms:
            raise ValueError(f"{told}: there is no term {term!r} in the library.{_near(term, self.terms)}")
        return list(self.terms).index(term)

    def known(self, known: Mapping[str, Mapping[str, float | None]]) -> tuple[list[Law], list[int]]:
        """Return terms with a known coefficient as laws, and those that are certain without."""
        if not isinstance(known, Mapping) or not all(isinstance(one, Mapping) for one in known.values()):
            raise TypeError("known must be a dict of dicts, {state: {term: coefficient or None}}.")
        laws, kept = list[Law](), list[int]()
        for state, terms in known.items():
            for term, value in terms.items():
                told = f"known={{{state!r}: {{{term!r}: {value!r}}}}}"
                candidate = self.candidate(state, term, told)
                if value is None:
                    if candidate % len(self.terms) >= self.n_terms:
                        raise ValueError(f"{told}: a constant inside a term is estimated unless you give its value.")
                    kept.append(candidate)
                elif not isinstance(value, Real) or not np.isfinite(value):
                    raise ValueError(f"{told}: give a finite number, or None for one to be estimated.")
                else:
                    laws.append(Law(told, ((candidate, 1.0),), float(value)))
        return laws, kept

    def constraint(self, text: str) -> list[Law]:
        """Return the laws of one text."""
        told = f"constraint {text!r}"
        if not isinstance(text, str) or (found := RELATION.match(text)) is None:
            raise ValueError(f"{told} has no =, < or >: {EXAMPLE}.")
        left, relation, right = found.groups()
        try:
            value = float(right)
        except ValueError:
            raise ValueError(
                f"{told}: the right side must be a number, all terms stand on the left: {EXAMPLE}."
            ) from None
        parts = self._parts(left, told)
        if relation != "=" and (len(parts) > 1 or value != 0):
            raise ValueError(f"{told}: a sign is that of one coefficient, compared with 0: {EXAMPLE}.")
        sign = 0 if relation == "=" else int(np.sign(parts[0][0])) * (1 if ">" in relation else -1)
        if all(term != EVERY for *_, term in parts):
            return [self._law(told, parts, value, sign)]
        if any(term != EVERY for *_, term in parts):
            raise ValueError(f"{told}: * stands for every term, one after the other: write it for all terms, or none.")
        rows = [self._state(state, told) for _, state, _ in parts]
        met = [term for place, term in enumerate(self.terms[: self.n_terms]) if self.allowed[rows, place].any()]
        out = []
        for term in met:
            own = [one for one, row in zip(parts, rows, strict=True) if self.allowed[row, list(self.terms).index(term)]]
            law = self._law(told, [(factor, state, term) for factor, state, _ in own], value, sign)
            out.append(replace(law, term=printable(term)))
        return out

    def _law(self, told: str, parts: Sequence[tuple[float, str, str]], value: float, sign: int) -> Law:
        own = tuple((self.candidate(s, term, told), factor) for factor, s, term in parts)
        inside = {j % len(self.terms) >= self.n_terms for j, _ in own}
        if len(inside) > 1 or (sign and True in inside):
            raise ValueError(f"{told}: a law is about coefficients or about constants; these have ranges, no signs.")
        return Law(told, own, value, sign)

    def _parts(self, left: str, told: str) -> list[tuple[float, str, str]]:
        """Return factor, state and term of every part of a sum."""
        pieces = left.split(":")
        if len(pieces) < 2:
            raise ValueError(f"{told}: a coefficient is named by its equation and its term: {EXAMPLE}.")
        heads, terms = [pieces[0]], []
        for piece in pieces[1:-1]:
            # What follows the last + or − belongs to the next coefficient.
            cut = max(piece.rfind("+"), piece.rfind("-"))
            if cut < 0:
                raise ValueError(f"{told}: put + or − between coefficients: {EXAMPLE}.")
            terms.append(piece[:cut].strip())
            heads.append(piece[cut:])
        terms.append(pieces[-1].strip())
        out = []
        for head, term in zip(heads, terms, strict=True):
            sign, number, state = FACTOR.match(head).groups()  # type: ignore[union-attr]
            if number and not state:  # a state that is called like a number
                number, state = None, number
            out.append(((-1.0 if sign == "-" else 1.0) * float(number or 1.0), state, term))
        return out


def libraries_of(
    library: Mapping[str, Library], states: Sequence[str], n_variables: int
) -> tuple[Library, list[Library]]:
    """Return the library of all equations together, and that of each."""
    default = Polynomials(Polynomials().degree_for(n_variables))
    for name in library:
        if name not in states:
            raise ValueError(f"library={{{name!r}: …}}: there is no state {name!r}.{_near(name, states)}")
    own = [library.get(name) or default for name in states]
    return reduce(add, dict.fromkeys(own)), own


def told_knowledge(reader: Reader, known: Any, constraints: Any) -> Knowledge:
    """Return what users tell, or raise what is wrong with it."""
    laws, kept = reader.known(known or {})
    if isinstance(constraints, str):
        raise TypeError("constraints must be a list of texts, one for every law.")
    for text in constraints or ():
        laws += reader.constraint(text)
    n, d = reader.allowed.shape
    allowed = np.zeros((reader.first + n, d), dtype=bool)
    allowed[reader.first :] = reader.allowed
    knowledge = Knowledge(reader.first + n, d, allowed.ravel(), tuple(laws), tuple(sorted(set(kept))))
    _check_equations([law for law in laws if not law.sign], allowed.size)
    _check_signs(laws, allowed.size)
    return knowledge


def _check_equations(laws: Sequence[Law], size: int) -> None:
    """Refuse a law that follows from those before it, or contradicts them."""
    rows = np.zeros((0, size))
    for number, law in enumerate(laws):
        row = law.row(size)
        if not row.any():
            raise ValueError(f"{law.told} says nothing: its coefficients cancel.")
        factors = np.linalg.lstsq(rows.T, row, rcond=None)[0] if len(rows) else np.empty(0)
        if np.linalg.norm(row - factors @ rows) <= NOTHING * np.linalg.norm(row):
            before = [one for one, factor in zip(laws, factors, strict=False) if abs(factor) > NOTHING]
            follows = sum(factor * one.value for one, factor in zip(laws[:number], factors, strict=True))
            scale = max(abs(law.value), *(abs(one.value) for one in before))
            clash = abs(follows - law.value) > NOTHING * scale
            others = " and ".join(one.told for one in before)
            raise ValueError(
                f"{law.told} contradicts {others}: only one of them can hold."
                if clash
                else f"{law.told} already follows from {others}: leave one of them out."
            )
        rows = np.vstack([rows, row])


def _check_signs(laws: Sequence[Law], size: int) -> None:
    """Refuse signs that are told twice, or that no coefficients other than zero can have."""
    signs, equations = [law for law in laws if law.sign], [law for law in laws if not law.sign]
    seen: dict[int, Law] = {}
    for law in signs:
        before = seen.setdefault(law.parts[0][0], law)
        if before is not law:
            same = before.sign == law.sign
            raise ValueError(f"{law.told} {'repeats' if same else 'contradicts'} {before.told}: leave one of them out.")
    for number, law in enumerate(signs):
        together = _tied_to(law, equations, signs[:number])
        if together and not _can_hold([*together, law], size):
            others = " and ".join(one.told for one in together)
            raise ValueError(f"{law.told} contradicts {others}: together they leave nothing but zero.")


def _tied_to(law: Law, equations: Sequence[Law], signs: Sequence[Law]) -> list[Law]:
    """Return the equations that a coefficient is part of, directly or through others, and signs of these."""
    met, found = {law.parts[0][0]}, list[Law]()
    while more := [one for one in equations if one not in found and met & {j for j, _ in one.parts}]:
        found += more
        met |= {j for one in more for j, _ in one.parts}
    return [*found, *(one for one in signs if one.parts[0][0] in met)] if found else []


def _can_hold(laws: Sequence[Law], size: int) -> bool:
    """Return whether coefficients obey some laws with every sign that they tell: the largest t ≤ 1 with s w ≥ t."""
    used = sorted({j for law in laws for j, _ in law.parts})
    equations = [law for law in laws if not law.sign]
    A = np.array([[*law.row(size)[used], 0.0] for law in equations])
    signs = [[*(-law.sign * (np.array(used) == law.parts[0][0])), 1.0] for law in laws if law.sign]
    bounds = [*[(None, None)] * len(used), (None, 1.0)]
    values = np.array([law.value for law in equations])
    values = values / np.abs(values).max(initial=np.finfo(float).tiny)
    goal = [*np.zeros(len(used)), -1.0]
    found = optimize.linprog(goal, np.array(signs), np.zeros(len(signs)), A, values, bounds)
    return bool(found.status == 0 and -found.fun > NOTHING)


def refuted_laws(pursuit: Pursuit, fit: Fit) -> list[str]:
    """Return what is to be warned of: laws without which the data are far likelier.

    Where these are several, a wrong one may make right ones look wrong: they are tested again without the worst.
    """
    told = pursuit.of.knowledge
    texts = list(dict.fromkeys(law.text for law in told.laws))
    if not texts:
        return []
    mine, limit = _without(pursuit, told, fit.support, fit), BY_CHANCE / len(texts)
    found = {text: refuted for text in texts if (refuted := _refuted(mine, text, limit)) is not None}
    if len(found) > 1:
        worst = max(found, key=lambda text: found[text][0])
        freer = _without(pursuit, told.without(worst), _with_terms(mine, worst), fit)
        freer.search(thorough=False)
        found = {text: one for text, one in found.items() if text == worst or _refuted(freer, text, limit) is not None}
    return [
        f"The data refute {text}: without it, {by}. Leave it out, or see whether units, names and library are "
        "right (python -m ardea.explain knowledge)."
        for text, (_, by) in found.items()
    ]


def _refuted(mine: Pursuit, text: str, by_chance: float) -> tuple[float, str] | None:
    """Return what the best fit gains without a text, and this in words; None where that is not clear.

    The deviance falls by χ² of as many degrees of freedom as there are free parameters more, where a law holds.
    """
    told, fit = mine.of.knowledge, mine.best
    freer, support = told.without(text), _with_terms(mine, text)
    free, more = _without(mine, freer, support, fit), freer.n_free(support) - told.n_free(fit.support)
    gain = fit.deviance - free.best.deviance
    limit = float(special.chdtri(max(more, 1), by_chance))
    if more > 0 and gain > limit and _broken(told, text, free.best):
        return gain, f"−2 ln p falls by {gain:.1f}, by chance alone hardly by more than {limit:.1f}"
    # Other terms may stand in for what a wrong law forbids. Those that are better with the law, too, say nothing of it.
    free.search(thorough=False)
    mine.fit(free.best.support, free.best.point, mine.levels[-LEVELS_AGAIN:])
    gain = _whole_score(mine) - _whole_score(free)
    if gain < CLOSE or not _broken(told, text, free.best):
        return None
    return gain, f"other terms fit better, by {gain:.1f} ({CLOSE:g} would be clear)"


def _with_terms(pursuit: Pursuit, text: str) -> Support:
    """Return the best support with the terms that a text is about, as it may be without this."""
    told, plain, d = pursuit.of.knowledge, pursuit.of.inside.n_plain, pursuit.of.d
    parts = [j for law in told.laws if law.text == text for j, _ in law.parts]
    return told.without(text).trimmed({*pursuit.best.support, *(j for j in parts if told.allowed[j] and j % d < plain)})


def _without(pursuit: Pursuit, knowledge: Knowledge, support: Support, fit: Fit) -> Pursuit:
    """Return the search where other laws hold, with one support fitted; noise of the process may be due to a law."""
    of = copy(pursuit.of)
    of.knowledge = knowledge
    after = replace(pursuit, of=of, met={})
    after.fit(support, fit.point, pursuit.levels[-LEVELS_AGAIN:])
    if not pursuit.with_process:
        return after
    exact = replace(after, with_process=False, met={})
    exact.fit(support, fit.point, pursuit.levels)
    return min(after, exact, key=lambda one: one.best.deviance)


def _whole_score(pursuit: Pursuit) -> float:
    """Return the score of the best fit, with a price for all that is free in it."""
    fit = pursuit.best
    return fit.deviance + pursuit.cost(fit.support, whole=True)


def _broken(knowledge: Knowledge, text: str, fit: Fit) -> bool:
    """Return whether a fit breaks what a text tells."""
    values = fit.point.coefficients.ravel()
    for law in knowledge.laws:
        total = sum(factor * values[j] for j, factor in law.parts)
        if law.text == text and (total * law.sign < 0 if law.sign else total != law.value):
            return True
    return False


def _near(name: str, names: Sequence[str]) -> str:
    """Return a sentence on names that are close."""
    same = [one for one in names if sorted(one.split()) == sorted(name.split())]
    close = same or get_close_matches(name, list(names), 3, 0.5)
    if close:
        return f" Did you mean {' or '.join(map(repr, close))}?"
    return f" There are {', '.join(map(repr, names[:10]))}{', …' if len(names) > 10 else ''}."


def check_shared(shared: Any) -> None:
    """Refuse what does not say what series share."""
    if shared == "structure":
        return
    lists = isinstance(shared, Mapping) and all(isinstance(one, list | tuple) for one in shared.values())
    if not lists:
        raise ValueError(
            f"shared={shared!r} is not known: give 'structure' for the same terms with coefficients of their own, or "
            "{state: [terms]} for those whose coefficients are common."
        )


def set_apart(
    shared: Any, series: Sequence[Series], library: Library, reader: Reader, knowledge: Knowledge | None
) -> tuple[list[Series], Library, Knowledge]:
    """Return series, library and knowledge with coefficients of its own for every series."""
    number = len(series)
    if number < 2:
        raise ValueError("shared=… is for several trajectories: give x and t as lists.")
    told = shared if isinstance(shared, Mapping) else {}
    texts = [(state, term, f"shared={{{state!r}: [{term!r}]}}") for state, terms in told.items() for term in terms]
    common = [Common(reader.candidate(state, term, text), text) for state, term, text in texts]
    base = Knowledge.nothing(*reader.size) if knowledge is None else knowledge
    marks = np.eye(number)
    marked = [
        replace(one, inputs=np.hstack([one.inputs, np.tile(marks[k], (len(one.t), 1))])) for k, one in enumerate(series)
    ]
    return marked, PerSeries(library, number), base.over(np.arange(number * base.d).reshape(number, -1), common)
