"""The classes that a file may hold, and how each is taken apart and put together again.

A new class is added to `KINDS`: a dataclass by `record`, an estimator by `estimator` with a check of its attributes.
Those of `ardea.dynamics` are in `ardea.persistence.dynamics`, which is imported when a file or a model asks for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ardea import priors
from ardea.core.compression import Compression
from ardea.core.problem import DenseColumns, Problem
from ardea.core.result import Dropped, Trace
from ardea.estimators.family import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD
from ardea.estimators.search import ARDSearch, Path
from ardea.persistence.checks import check_regressor, check_search
from ardea.persistence.refusal import ModelFileError, require

# Attributes of regressors that do not end with an underscore; requests for metadata concern fitting and are not stored.
PRIVATE_ATTRIBUTES = frozenset({"_one_target", "_ranges", "_stream", "_sklearn_output_config"})
NOT_STORED = frozenset({"_metadata_request"})


@dataclass(frozen=True)
class Kind:
    """How the objects of one class are taken apart and put together again."""

    cls: type
    parts: Callable[[Any], dict[str, Any]]
    build: Callable[[dict[str, Any], str], Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_array(kinds: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, np.ndarray) and value.dtype.kind in kinds


def is_tuple_of(item: type) -> Callable[[Any], bool]:
    """Return the check of a tuple whose items are all of one type."""
    return lambda value: isinstance(value, tuple) and all(isinstance(one, item) for one in value)


# By how the dataclasses below annotate their fields.
FIELD_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Array": _is_array("fi"),
    "Array | None": lambda value: value is None or _is_array("f")(value),
    "Index": _is_array("i"),
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "int": lambda value: isinstance(value, int | np.integer) and not isinstance(value, bool),
    "int | None": lambda value: value is None or type(value) is int,
    "float": _is_number,
    "float | None": lambda value: value is None or _is_number(value),
    "Columns": lambda value: isinstance(value, DenseColumns),
    "Problem": lambda value: isinstance(value, Problem),
    "tuple[Dropped, ...]": is_tuple_of(Dropped),
    "tuple[str, ...]": is_tuple_of(str),
    "tuple[int, ...]": is_tuple_of(int),
}


def record(cls: type, field_checks: dict[str, Callable[[Any], bool]] | None = None) -> Kind:
    """Return the kind of a dataclass: its fields, checked by their annotations."""
    known = FIELD_CHECKS | (field_checks or {})
    checks = {field.name: (known[str(field.type)], str(field.type)) for field in fields(cls) if field.init}

    def build(parts: dict[str, Any], where: str) -> Any:
        require(parts.keys() == checks.keys(), where, f"a whole {cls.__name__}")
        for name, (check, annotation) in checks.items():
            require(check(parts[name]), f"{where}.{name}", f"of type {annotation}")
        return cls(**parts)

    return Kind(cls, lambda value: {name: getattr(value, name) for name in checks}, build)


def _prior(cls: type, *arguments: str) -> Kind:
    """Return the kind of a prior that numbers describe."""

    def build(parts: dict[str, Any], where: str) -> Any:
        require(parts.keys() == set(arguments), where, f"a whole {cls.__name__}")
        for name, value in parts.items():
            kind = np.asarray(value).dtype.kind
            require(
                kind in ("b" if name == "over_noise" else "fiu"), f"{where}.{name}", "a number or an array of numbers"
            )
        return cls(**parts)

    return Kind(cls, lambda value: {name: getattr(value, name) for name in arguments}, build)


def _built_both(parts: dict[str, Any], where: str) -> priors.Both:
    concave, part = parts.get("concave"), parts.get("part")
    if not isinstance(concave, priors.Prior) or not isinstance(part, priors.Convex):
        raise ModelFileError(f"{where} is not a pair of priors. The file is damaged; get it again.")
    return priors.Both(concave, part)


def _built_columns(parts: dict[str, Any], where: str) -> DenseColumns:
    matrix: Any = parts.get("matrix")
    require(_is_array("f")(matrix) and matrix.ndim == 2, f"{where}.matrix", "a matrix")
    return DenseColumns(matrix)


def _built_path(parts: dict[str, Any], where: str) -> Path:
    columns = parts.get("columns")
    sound = isinstance(columns, dict) and all(isinstance(column, np.ndarray) for column in columns.values())
    require(sound and columns, where, "a path")
    return Path(columns or {})


def estimator(
    cls: type,
    check: Callable[[Any, str], None],
    private: frozenset[str] = PRIVATE_ATTRIBUTES,
    not_stored: frozenset[str] = NOT_STORED,
) -> Kind:
    """Return the kind of an estimator: parameters of its constructor, and attributes that `fit` set."""

    def parts(model: Any) -> dict[str, Any]:
        parameters = model.get_params(deep=False)
        names = vars(model).keys() - parameters.keys() - not_stored
        strange = sorted(name for name in names if not _is_attribute(cls, name, private))
        if strange:
            raise ModelFileError(
                f"{cls.__name__} has the attribute {strange[0]!r}, which the format does not hold: delete it."
            )
        return {
            "parameters": parameters,
            "attributes": {name: vars(model)[name] for name in vars(model) if name in names},
        }

    def build(found: dict[str, Any], where: str) -> Any:
        parameters, attributes = found.get("parameters"), found.get("attributes")
        if not isinstance(parameters, dict) or not isinstance(attributes, dict):
            raise ModelFileError(f"{where} lacks parameters or attributes. The file is damaged; get it again.")
        unknown = sorted(parameters.keys() - cls().get_params(deep=False).keys())
        require(not unknown, where, f"a {cls.__name__} of this version (it has {unknown[:1]})")
        model = cls(**parameters)
        for name in attributes:
            require(_is_attribute(cls, name, private), f"{where}[{name[:40]!r}]", "an attribute of a model")
        model.__dict__.update(attributes)
        check(model, where)
        return model

    return Kind(cls, parts, build)


def _is_attribute(cls: type, name: str, private: frozenset[str]) -> bool:
    public = name.isidentifier() and name.endswith("_") and not name.startswith("_") and not hasattr(cls, name)
    return public or name in private


REGRESSORS = (ARD, ARDvi, ARDr, MSTSBL, LSTSBL, MAPSTSBL, SparseARD)
RECORDS = (Dropped, Trace, Problem, Compression)
KINDS: dict[str, Kind] = {
    **{cls.__name__: estimator(cls, check_regressor) for cls in REGRESSORS},
    "ARDSearch": estimator(ARDSearch, check_search),
    **{cls.__name__: record(cls) for cls in RECORDS},
    "DenseColumns": Kind(DenseColumns, lambda columns: {"matrix": columns.matrix}, _built_columns),
    "Path": Kind(Path, lambda path: {"columns": dict(path)}, _built_path),
    "Flat": _prior(priors.Flat),
    "CappedLinear": _prior(priors.CappedLinear, "lam", "eta", "over_noise"),
    "Linear": _prior(priors.Linear, "lam", "over_noise"),
    "Tanh": _prior(priors.Tanh, "lam", "eta"),
    "Log": _prior(priors.Log, "lam", "eta"),
    "Gamma": _prior(priors.Gamma, "shape", "rate"),
    "Bounds": _prior(priors.Bounds, "lower", "upper"),
    "NegativeLog": _prior(priors.NegativeLog, "weight"),
    "Both": Kind(priors.Both, lambda both: {"concave": both.concave, "part": both.part}, _built_both),
}


def kind_named(name: str) -> Kind | None:
    """Return the kind of that name, None where there is none."""
    if name in KINDS:
        return KINDS[name]
    from ardea.persistence.dynamics import DYNAMICS_KINDS

    return DYNAMICS_KINDS.get(name)


def kind_of(value: Any) -> Kind | None:
    """Return the kind of an object: its very class, since a subclass may be code of the user's own."""
    if not type(value).__module__.startswith("ardea."):
        return None
    kind = kind_named(type(value).__name__)
    return kind if kind is not None and type(value) is kind.cls else None
