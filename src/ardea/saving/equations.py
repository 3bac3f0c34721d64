"""Kept terms and equations of motion as values of a file, and back."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from ardea.core.problem import DenseColumns, FlatColumns, Problem
from ardea.dynamics.discovery import Discovery
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.found import Joint
from ardea.dynamics.libraries import Library
from ardea.dynamics.models import FieldModel, StateModel
from ardea.dynamics.series import SECONDS
from ardea.equation import Equation, KeptTerms, Left, Rival
from ardea.names import Vocabulary
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


# Equations of motion

# Repeated terms of sums and products are left out, so a library may list more terms than it has.
LARGEST_REPETITION = 100
MOTION_VALUES = ("library", "reach", "names", "discrete_time", "order", "fields", "axes", "space")
# What a fit says of itself, besides its equations.
FIT_VALUES = ("form_", "rows_used_", "misfit_", "process_noise_")
FORMS = ("trajectory", "weak", "derivative")


def discovery_to_record(found: Discovery) -> dict[str, Any]:
    """Return the candidate terms, and the kept ones of every equation with its rivals."""
    model = found.model_
    record = {name: getattr(model, name) for name in MOTION_VALUES if hasattr(model, name)}
    record |= {} if found.time_unit_ is None else {"time_unit": found.time_unit_}
    record |= {name: getattr(found, name) for name in FIT_VALUES if hasattr(found, name)}
    if (joint := found.joint_) is not None:
        record["joint"] = {field.name: getattr(joint, field.name) for field in fields(joint)}
    equations = [
        kept_to_record(one.kept, one.n_candidates)
        | {"rivals": [{"terms": list(rival.terms), "excess": rival.excess} for rival in one.rivals]}
        | {"equivalents": [{"terms": list(terms)} for terms in one.equivalents]}
        for one in found.equations_
    ]
    return record | {"equations": equations, "warnings": found.warnings_}


def discovery_from_record(found: Discovery, part: Part) -> Discovery:
    """Return the model with what a fit sets."""
    found._check_parameters(None)
    parts = part.parts("equations")
    require(parts, part.where, "a model with equations")
    model = _motion_from_record(part, (len(parts), parts[0].size("support")))
    equations = [_equation_from_record(*pair, model.vocabulary) for pair in zip(parts, model.lefts, strict=True)]
    unit = part.text("time_unit", SECONDS) if "time_unit" in part else None
    loaded = Discovery.of(model, equations, unit, part.texts("warnings"), **found.get_params(deep=False))
    form: Any = part.text("form_", FORMS)
    loaded.form_, loaded.joint_ = form, None
    if "rows_used_" in part:
        loaded.rows_used_ = part.whole("rows_used_", 1)
    for name in ("misfit_", "process_noise_"):
        if name in part:
            setattr(loaded, name, part.array(name, (len(equations),), 0.0))
    if "joint" in part:
        require(
            isinstance(model, StateModel) and hasattr(loaded, "process_noise_"), part.where, "a model of a trajectory"
        )
        loaded.joint_ = _joint_from_record(part.part("joint"), model, equations)
    return loaded


def _joint_from_record(part: Part, model: Any, equations: list[Equation]) -> Joint:
    """Return how equations depend on each other; what each of them says of itself is not in it."""
    sizes, n = [len(one.support) for one in equations], len(model.states)
    correlation, gain = part.array("correlation", (sum(sizes),) * 2, -1.0, 1.0), part.array("gain", (n, sum(sizes)))
    own = Joint.between(sizes, np.ones_like(correlation)) == 0
    require(not np.any(correlation[own]), part.where, "made of correlations between equations")
    start, covariance = part.array("start", (n,)), covariance_from_record(part, "covariance", n)
    joint = Joint(correlation, start, gain, covariance, part.number("time"), part.number("step", SMALLEST))
    whole = Part({"correlation": joint.estimate(equations).correlation}, part.where)
    covariance_from_record(whole, "correlation", sum(sizes))
    return joint


def _motion_from_record(part: Part, shape: tuple[int, int]) -> StateModel | FieldModel:
    """Return what is moving, after checking that its library is not larger than its equations."""
    library, reach = part.value("library"), part.array("reach", shape[:1], SMALLEST)
    largest = LARGEST_REPETITION * shape[1]
    if "space" not in part:
        names = part.texts("names")
        discrete_time, order = part.truth("discrete_time"), part.whole("order", 1, 2)
        sound = isinstance(library, Library) and len(names) >= shape[0] and not (discrete_time and order == 2)
        model = StateModel(library, names, np.zeros(shape), reach, discrete_time, order)
        sound = sound and len(set(model.variables)) == len(model.variables)
        require(sound and library.n_listed(len(model.variables)) <= largest, part.where, "a model of its states")
        return model
    fields, axes, space = part.texts("fields"), part.texts("axes"), part.value("space", "a tuple", tuple)
    sound = isinstance(library, FieldTerms) and len({*fields, *axes}) == len(fields) + len(axes)
    sound = sound and len(fields) == shape[0] and 1 <= len(axes) == len(space) <= 3
    require(sound and library.n_listed(len(fields), len(axes)) <= largest, part.where, "a model of fields")
    grids = Part(dict(zip(axes, space, strict=True)), f"{part.where}.space")
    points = tuple(grids.array(name, (None,)) for name in axes)
    require(all(np.all(np.diff(one) > 0) for one in points), grids.where, "made of increasing points")
    return FieldModel(library, fields, axes, np.zeros(shape), points, reach)


def _equation_from_record(part: Part, left: Left, vocabulary: Vocabulary) -> Equation:
    """Return an equation of motion: least squares on its kept terms."""
    kept = kept_from_record(part, len(vocabulary.names), least_squares=True)
    rivals = tuple(Rival(_terms(one, vocabulary), one.number("excess")) for one in part.parts("rivals"))
    equivalents = tuple(_terms(one, vocabulary) for one in part.parts("equivalents"))
    return sound_equation(Equation(left, vocabulary, kept, rivals, equivalents), part.where)


def _terms(part: Part, vocabulary: Vocabulary) -> tuple[str, ...]:
    terms = tuple(part.texts("terms"))
    require(set(terms) <= set(vocabulary.names), part.where, "made of candidate terms")
    return terms
