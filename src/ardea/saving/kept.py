"""The kept terms of an equation as values of a file, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ardea.core.problem import DenseColumns, FlatColumns, Problem
from ardea.equation import Equation, KeptTerms
from ardea.tables.archive import Part, require

PROBLEM_VALUES = ("rest", "n_rows", "floor", "distinct")
FLAT_VALUES = ("intercept", "loadings", "target_loadings", "inverse_gram")
# Bounds of the small problems, so that no product of two of their squares overflows; fits give numbers around 1.
LARGEST_IN_PROBLEM = 1e70
SMALLEST = float(np.finfo(float).tiny)


def kept_to_record(kept: KeptTerms, n_candidates: int) -> dict[str, Any]:
    """Return the kept terms: γ of every candidate, or for least squares which are kept, and the problem of these."""
    problem, k = kept.problem, kept.active.size
    record: dict[str, Any] = {name: float(getattr(problem, name)) for name in PROBLEM_VALUES}
    record |= {"columns": problem.columns.take(np.arange(k)), "target": problem.target}
    record |= {"unit": kept.unit, "target_unit": float(kept.target_unit)}
    gamma = np.zeros(n_candidates)
    gamma[kept.active] = 1.0 if kept.prior_variance is None else kept.prior_variance
    if kept.prior_variance is None:
        told = {"noise": kept.noise} if kept.noise_known else {}
        return record | {"support": gamma > 0, "n_parameters": float(kept.n_parameters), **told}
    record |= {"prior_variance": gamma, "noise": kept.noise, "noise_known": kept.noise_known}
    return record | {"always_kept": kept.flat.kept} | {name: getattr(kept.flat, name) for name in FLAT_VALUES}


def kept_from_record(part: Part, n_candidates: int, *, least_squares: bool = False) -> KeptTerms:
    """Return the kept terms, every value of them within bounds."""
    gamma, noise, noise_known = None, None, False
    if least_squares:
        active = np.flatnonzero(part.array_of("support", (n_candidates,), "b"))
        flat = FlatColumns.empty(active.size)
        n_parameters = part.number("n_parameters", 0.0)
        if "noise" in part:
            noise, noise_known = part.number("noise", SMALLEST, LARGEST_IN_PROBLEM), True
    else:
        every = part.array("prior_variance", (n_candidates,), 0.0, LARGEST_IN_PROBLEM)
        active = np.flatnonzero(every)
        gamma, flat = every[active], _flat_from_record(part, active, n_candidates)
        noise, noise_known = part.number("noise", SMALLEST, LARGEST_IN_PROBLEM), part.truth("noise_known")
        n_parameters = active.size
    problem = problem_from_record(part, active.size)
    unit, target_unit = part.array("unit", active.shape, SMALLEST), part.number("target_unit", SMALLEST)
    return KeptTerms(active, problem, gamma, noise, noise_known, n_parameters, unit, target_unit, flat)


def _flat_from_record(part: Part, active: Any, n_candidates: int) -> FlatColumns:
    intercept, always = part.truth("intercept"), part.indices("always_kept", n_candidates)
    require(not np.intersect1d(active, always).size, part.where, "a model with one prior for every term")
    p = int(intercept) + always.size
    loadings, target_loadings = part.array("loadings", (p, active.size)), part.array("target_loadings", (p,))
    return FlatColumns(always, intercept, loadings, target_loadings, covariance_from_record(part, "inverse_gram", p))


def problem_from_record(part: Part, n_columns: int) -> Problem:
    """Return a small problem, every value of it within bounds."""
    target = part.array("target", (None,), -LARGEST_IN_PROBLEM, LARGEST_IN_PROBLEM)
    columns = part.array("columns", (target.size, n_columns), -LARGEST_IN_PROBLEM, LARGEST_IN_PROBLEM)
    rest, floor = (part.number(name, 0.0, LARGEST_IN_PROBLEM) for name in ("rest", "floor"))
    n_rows, distinct = part.number("n_rows", SMALLEST, LARGEST_IN_PROBLEM), part.number("distinct", 0.0, math.inf)
    return Problem(DenseColumns(columns), target, rest, n_rows, floor, distinct)


def covariance_from_record(part: Part, name: str, size: int) -> Any:
    """Return a symmetric matrix without negative eigenvalues, beyond rounding."""
    matrix = part.array(name, (size, size))
    scale = np.sqrt(np.maximum(matrix.diagonal(), SMALLEST))
    scaled = matrix / np.outer(scale, scale)
    sound = np.allclose(scaled, scaled.T, 0, 1e-10) and np.linalg.eigvalsh(scaled).min(initial=0.0) >= -1e-10 * size
    require(sound, f"{part.where}.{name}", "a covariance")
    return matrix


def sound_equation(equation: Equation, where: str) -> Equation:
    """Return an equation unless its numbers overflow."""
    for estimate in (equation.posterior, equation.refit or equation.posterior):
        sound = np.isfinite(estimate.mean).all() and np.isfinite(estimate.covariance).all()
        require(sound and np.all(estimate.covariance.diagonal() >= 0), where, "a model with finite coefficients")
    numbers = [equation.noise, equation.intercept or 0.0, equation.intercept_std or 0.0]
    numbers += [] if equation.kept.prior_variance is None else [equation.kept.log_evidence]
    require(np.isfinite(numbers).all(), where, "a model with finite coefficients")
    return equation
