"""The classes of `ardea.dynamics` that a file may hold: models of motion, their equations and libraries."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from typing import Any

import numpy as np

from ardea.dynamics.discovery import Discovery
from ardea.dynamics.equations import FoundEquation, Rival
from ardea.dynamics.libraries import FieldTerms, Fourier, Library, Polynomials, ProductOfLibraries, SumOfLibraries
from ardea.dynamics.models import FieldModel, StateModel
from ardea.dynamics.times import SECONDS
from ardea.persistence.kinds import NOT_STORED, Kind, estimator, is_tuple_of, record
from ardea.persistence.refusal import ModelFileError, require

# Repeated terms of sums and products are left out, so a library may list more than it has.
LARGEST_REPETITION = 100
# The data and what was made of them; only `inclusion` needs them.
DATA_ATTRIBUTES = frozenset({"_found"})


def _check_discovery(found: Discovery, where: str) -> None:
    """Check parameters, and that equations, model and coefficients agree."""
    found._check_parameters(None)
    state = vars(found)
    coef: Any = state.get("coef_")
    model, equations = state.get("model_"), state.get("equations_")
    if not isinstance(model, StateModel | FieldModel) or not isinstance(equations, list):
        raise ModelFileError(f"{where} lacks what every fitted model has. The file is damaged; get it again.")
    require(coef is model.coefficients or np.array_equal(coef, model.coefficients), f"{where}.coef_", "its model's")
    found.coef_ = model.coefficients
    require(state.get("feature_names_") == model.unknowns, where, "a model with names of its unknowns")
    deviations: Any = state.get("coef_std_")
    require(np.shape(deviations) == found.coef_.shape, f"{where}.coef_std_", f"of shape {found.coef_.shape}")
    require(len(equations) == len(found.coef_), where, "a model with one equation for each unknown")
    for number, equation in enumerate(equations):
        _check_equation(equation, found.coef_[number], f"{where}.equations_[{number}]")
    unit, notes = state.get("time_unit_"), state.get("warnings_", [])
    require(unit is None or (isinstance(unit, str) and unit in SECONDS), f"{where}.time_unit_", "a unit of time")
    require(_is_list_of_str(notes), f"{where}.warnings_", "a list of texts")
    covariances = state.get("coef_covariance_")
    shapes = [equation.covariance.shape for equation in equations]
    require(isinstance(covariances, list) and [np.shape(one) for one in covariances] == shapes, where, "whole")


def _check_coefficients(model: StateModel | FieldModel, n_terms: int, n_unknowns: int, where: str) -> None:
    coef = model.coefficients
    sound = coef.ndim == 2 and coef.dtype == float and coef.shape == (n_unknowns, n_terms)
    require(sound, f"{where}.coefficients", f"a matrix of {n_unknowns} by {n_terms}")
    require(model.reach.shape == (n_unknowns,), f"{where}.reach", "one number for each unknown")


def _built_states(parts: dict[str, Any], where: str) -> StateModel:
    model: StateModel = STATES.build(parts, where)
    names, n_states = model.names, len(model.coefficients)
    require(bool(names) and len(set(names)) == len(names) >= n_states >= 1, where, "a model of its states and inputs")
    columns = model.coefficients.shape[-1]
    require(_listed_terms(model.library, len(names)) <= LARGEST_REPETITION * columns, where, "a model of its library")
    _check_coefficients(model, model.library.n_terms(len(names)), n_states, where)
    return model


def _built_fields(parts: dict[str, Any], where: str) -> FieldModel:
    model: FieldModel = FIELDS.build(parts, where)
    n_fields, n_axes, library = len(model.fields), len(model.axes), model.library
    require(1 <= n_fields <= 50 and 1 <= n_axes <= 3 and len(model.space) == n_axes, where, "a model of its fields")
    listed = comb(n_fields + library.powers, library.powers) * comb(n_axes + library.derivatives, n_axes) * n_fields
    require(listed <= LARGEST_REPETITION * model.coefficients.shape[-1], where, "a model of its library")
    _check_coefficients(model, library.n_terms(n_fields, n_axes), n_fields, where)
    return model


def _check_equation(equation: Any, row: Any, where: str) -> None:
    if not isinstance(equation, FoundEquation):
        raise ModelFileError(f"{where} is not an equation. The file is damaged; get it again.")
    k, support = len(equation.support), list(equation.support)
    inside = len(set(support)) == k == len(equation.terms) and all(0 <= j < row.size for j in support)
    require(inside and equation.covariance.shape == (k, k), where, f"an equation of {k} terms")
    require(equation.coefficients.shape == (k,) and np.array_equal(row[support], equation.coefficients), where, "whole")


def _listed_terms(library: Library, n_states: int) -> int:
    """Return how many terms a library lists, repeated ones included, without listing them."""
    if isinstance(library, Polynomials):
        degree = library.degree_for(n_states)
        return comb(n_states + degree, degree)
    if isinstance(library, Fourier):
        return 2 * library.n * n_states
    counts = [_listed_terms(part, n_states) for part in library.parts] if isinstance(library, SumOfLibraries | ProductOfLibraries) else []
    if isinstance(library, SumOfLibraries):
        return sum(counts)
    product = 1
    for count in counts:
        product *= count
    return product


def _is_list_of_str(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


PARTS = {
    "tuple[Library, ...]": is_tuple_of(Library),
    "tuple[Rival, ...]": is_tuple_of(Rival),
    "tuple[tuple[str, ...], ...]": lambda value: isinstance(value, tuple) and all(map(is_tuple_of(str), value)),
    "tuple[Array, ...]": is_tuple_of(np.ndarray),
    "list[str]": _is_list_of_str,
    "Library": lambda value: isinstance(value, Library),
    "FieldTerms": lambda value: isinstance(value, FieldTerms),
}
RECORDS = (Rival, FoundEquation, Polynomials, Fourier, SumOfLibraries, ProductOfLibraries, FieldTerms)
STATES, FIELDS = record(StateModel, PARTS), record(FieldModel, PARTS)
DYNAMICS_KINDS: dict[str, Kind] = {
    "Discovery": estimator(Discovery, _check_discovery, frozenset(), NOT_STORED | DATA_ATTRIBUTES),
    "StateModel": replace(STATES, build=_built_states),
    "FieldModel": replace(FIELDS, build=_built_fields),
    **{cls.__name__: record(cls, PARTS) for cls in RECORDS},
}
