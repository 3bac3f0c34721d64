"""Whether an equation that was found has the form of the truth, up to the values of its constants.

Forms may be written in many ways: a + b x/(K + x) and c + d/(K + x) are the same curves. So texts are not compared.
The terms found are fitted to the true right-hand side, coefficients by least squares and constants inside terms by
Gauss–Newton from where they were found, at random points of a box three times as wide as the data. The form is right if
that leaves nothing but rounding error and no part of it is superfluous: every coefficient is needed, and no column is a
combination of the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Array = NDArray[np.float64]

N_POINTS = 400
# Shares of the norm (conventions): what rounding error and the last steps of Gauss–Newton leave, a coefficient that is
# needed, and columns that depend on each other.
LEFT, NEEDED, DEPENDENT = 1e-8, 1e-6, 1e-11
WIDER = 3.0


def box(x: Array) -> Array:
    """Return random points around the data, each state by itself; states that are positive stay so."""
    generator, low, high = np.random.default_rng(0), x.min(axis=0), x.max(axis=0)
    share = generator.random((N_POINTS, x.shape[1]))
    width = (WIDER - 1) / 2 * (high - low)
    even = low - width + share * (high - low + 2 * width)
    positive = np.maximum(low, 1e-300)
    return np.where(low > 0, positive / WIDER * (WIDER**2 * np.maximum(high / positive, 1.0)) ** share, even)


def is_right(terms: Sequence[str], constants: Mapping[str, float], truth: str, states: Sequence[str], x: Array) -> bool:
    """Return whether some terms, with constants by letter, are the truth up to numbers; x are the data."""
    points = box(x)
    with np.errstate(all="ignore"):
        target = _function([truth], states, [])(points, [])[:, 0]
        columns = _function(terms, states, list(constants))
        start = np.array(list(constants.values()))
        used = np.isfinite(target) & np.all(np.isfinite(columns(points, start)), axis=1)
        points, target = points[used], target[used]
        if not terms or not target.size:
            return not terms and not np.any(target)

        def residual(logarithms: Array) -> Array:
            values = columns(points, np.sign(start) * np.exp(logarithms))
            return np.nan_to_num(values @ _fitted(values, target) - target, nan=1e6) / np.linalg.norm(target)

        ends = np.log(np.abs(start))
        if start.size:
            options = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "x_scale": "jac", "max_nfev": 200}
            ends = least_squares(residual, ends, jac="3-point", **options).x
        values = columns(points, np.sign(start) * np.exp(ends))
        shares = _fitted(values, target) * np.linalg.norm(values, axis=0) / np.linalg.norm(target)
        scaled = values / np.linalg.norm(values, axis=0)
        independent = np.linalg.svd(scaled, compute_uv=False)[-1] > DEPENDENT
        return bool(np.linalg.norm(residual(ends)) < LEFT and np.all(np.abs(shares) > NEEDED) and independent)


def _fitted(columns: Array, target: Array) -> Array:
    size = np.linalg.norm(columns, axis=0)
    if not np.all(np.isfinite(size)):  # constants on a wrong way
        return np.full(len(size), np.nan)
    return np.asarray(np.linalg.lstsq(columns / size, target, rcond=1e-14)[0] / size)


def _function(texts: Sequence[str], states: Sequence[str], letters: Sequence[str]) -> Any:
    """Return what evaluates texts as columns, of points and constants."""
    import sympy

    symbols = {name: sympy.Symbol(name) for name in (*states, *letters)}
    expressions = [sympy.sympify(as_python(text), locals=symbols) for text in texts]
    functions = [sympy.lambdify(list(symbols.values()), one, "numpy") for one in expressions]

    def columns(points: Array, constants: Sequence[float] | Array) -> Array:
        values = [function(*points.T, *constants) for function in functions]
        return np.column_stack([np.broadcast_to(value, len(points)) for value in values])

    return columns


def as_python(term: str) -> str:
    """Return a term as code: `x^2 y/(K + x)` is written `x**2*y/(K + x)`; a blank between factors is a product."""
    return re.sub(r"(?<=[\w)]) (?=[\w(])", "*", term.replace("^", "**"))


def lettered(equation: Any) -> list[str]:
    """Return the terms of an equation with the letters that their constants have in it."""
    out = []
    for term in equation.terms:
        own = [letter for letter, constant in equation.constants.items() if constant.term == term]
        text = term
        for letter in own:
            text = re.sub(rf"\b{letter.rstrip('0123456789')}\b", letter, text)
        out.append(text)
    return out
