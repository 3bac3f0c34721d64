"""Saving and loading models: no pickle, and nothing in a file is ever run.

A file (`ardea.tables.archive`) holds the least from which a model follows: the parameters of the estimator, and for
every equation the small problem of its kept terms, their prior variances and the noise variance. Coefficients,
covariances, intervals and evidence are computed from them by the same code as after a fit, so that no two numbers of a
file can disagree. Files are read by the same and later versions of Ardea; a file of a later format version is refused.
"""

from __future__ import annotations

import os
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ardea import priors
from ardea.core.compression import CompressedRows
from ardea.core.result import Dropped, Trace
from ardea.dynamics.discovery import Discovery
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Fourier, Library, Polynomials, ProductOfLibraries, SumOfLibraries
from ardea.equation import Equation, Left
from ardea.estimators.base import BaseARD
from ardea.estimators.family import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD
from ardea.estimators.search import ARDSearch, Path
from ardea.names import ColumnNames, default_names
from ardea.saving.equations import (
    SMALLEST,
    discovery_from_record,
    discovery_to_record,
    kept_from_record,
    kept_to_record,
    sound_equation,
)
from ardea.tables.archive import (
    LARGEST_WHOLE,
    LONGEST_QUOTE,
    ModelFileError,
    Part,
    opened_archive,
    require,
    write_archive,
)

__all__ = ["ModelFileError", "load", "save"]

KINDS = (ARD, ARDvi, ARDr, MSTSBL, LSTSBL, MAPSTSBL, SparseARD, ARDSearch, Discovery)
PRIORS = (
    *(priors.Flat, priors.CappedLinear, priors.Linear, priors.Tanh, priors.Log, priors.Gamma),
    *(priors.Bounds, priors.NegativeLog, priors.Both),
)
LIBRARIES = (Polynomials, Fourier, SumOfLibraries, ProductOfLibraries, FieldTerms)
# What the parameters of a model can be made of; code of a user's own is not among it.
MADE: dict[str, type] = {cls.__name__: cls for cls in (*KINDS, *PRIORS, *LIBRARIES)}
# The columns of a path: text, numbers of any size, whole numbers, truth values.
PATH_COLUMNS = {
    **dict.fromkeys(("method", "varied"), "U"),
    "strength": "f",
    "k": "i",
    **dict.fromkeys(("cost", "log_evidence", "noise_variance", "evidence", "aicc", "aic", "bic", "ebic", "ebic2"), "f"),
    "support": "b",
    "coef": "f",
    "score": "f",
    "eligible": "b",
}


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    The same model gives the same bytes. The file appears whole or not at all: it is written beside its place and
    renamed. A stream of blocks (`partial_fit`) is stored as it is and can be continued after loading.

    Parameters
    ----------
    model : estimator of ardea, ARDSearch or ardea.dynamics.Discovery
        Fitted. Priors of `ardea.priors` and libraries of `ardea.dynamics` are stored; functions of your own are code
        and are refused. Attributes of your own are not stored. A `Discovery` is stored without its data, so `inclusion`
        cannot be asked of it afterwards.
    path : path
        Where to write. An existing file is replaced.

    Raises
    ------
    ModelFileError
        If the model holds something that the format does not.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import ardea
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> model = ardea.SparseARD().fit(X, 2 * X[:, 3] + rng.normal(size=100))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "model.ardea"
    ...     ardea.save(model, file)
    ...     again = ardea.load(file)
    >>> bool(np.all(again.predict(X) == model.predict(X)))
    True
    """
    write_archive(path, _to_record(model), take_apart)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is run, and no more memory is used than a few times its size. Everything is checked before the
    model is returned.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator of ardea, ARDSearch or Discovery
        Equal to the model saved: the same predictions, intervals and draws, bit by bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, cut short, of a later format, or holds anything but a model.
    """
    with opened_archive(path, put_together) as part:
        return _from_record(part)


def _to_record(model: Any) -> dict[str, Any]:
    """Return the tree of a fitted model: its parameters, and what the fit found."""
    name = type(model).__name__
    if type(model) not in KINDS:
        raise ModelFileError(
            f"A {name} cannot be saved: only fitted estimators of ardea can. In a pipeline, save its last step."
        )
    check_is_fitted(model)
    record = {"kind": name, "parameters": model.get_params(deep=False)}
    if table := getattr(model, "table_", None):
        levels = [{"column": column, "texts": list(texts)} for column, texts in table["levels"].items()]
        record["table"] = {**table, "levels": levels}
    to_record, _ = RECORDS.get(name, (regression_to_record, None))
    return record | to_record(model)


def _from_record(part: Part) -> Any:
    """Return the model of a tree."""
    name = part.text("kind", {kind.__name__ for kind in KINDS})
    model = put_together(name, part.value("parameters", "a set of values with names", dict))
    _, from_record = RECORDS.get(name, (None, regression_from_record))
    model = from_record(model, part)
    if "table" in part:
        model.table_ = _table_from_record(part.part("table"))
    return model


def _table_from_record(part: Part) -> dict[str, Any]:
    """Return what a model knows of the table that it was fitted to (`ardea fit`), to read others like it."""
    levels = {one.text("column"): one.texts("texts") for one in part.parts("levels")}
    header, columns = part.truth("header"), part.whole("columns", 1)
    return {"target": part.text("target"), "header": header, "columns": columns, "levels": levels}


# Regressions


def regression_to_record(model: BaseARD) -> dict[str, Any]:
    """Return what a fit found: of a stream its compressed rows, else of every target its kept terms."""
    record: dict[str, Any] = {"n_features": int(model.n_features_in_), "one_target": bool(model._one_target)}
    if (names := getattr(model, "feature_names_in_", None)) is not None:
        record["names"] = [str(name) for name in names]
    if (output := getattr(model, "_sklearn_output_config", {}).get("transform")) is not None:
        record["output"] = output
    if model._stream is not None:
        return record | {"stream": _stream_to_record(model._stream)}
    if model._ranges is not None:
        record["ranges"] = model._ranges
    estimates = [estimate for one in model.equations_ for estimate in (one.posterior, one.refit or one.posterior)]
    if not all(np.isfinite(estimate.covariance).all() for estimate in estimates):
        raise ModelFileError(
            "The covariance of the coefficients overflows, so the model cannot be saved: fit it with columns, or y, in "
            "other units."
        )
    each: Any = (model.kkt_gap_, model.n_iter_, model.trace_)
    gaps, counts, traces = ([one] for one in each) if model._one_target else each
    targets = [
        kept_to_record(one.kept, one.n_candidates) | {"kkt_gap": gap, "n_iter": n, "trace": _trace_to_record(trace)}
        for one, gap, n, trace in zip(model.equations_, gaps, counts, traces, strict=True)
    ]
    return record | {"targets": targets, "warnings": list(model.warnings_)}


def regression_from_record(model: BaseARD, part: Part) -> BaseARD:
    """Return the model with what a fit sets."""
    model._check_parameters()
    d = model.n_features_in_ = part.whole("n_features", 1)
    one = model._one_target = part.truth("one_target")
    if "names" in part:
        model.feature_names_in_ = np.array(part.texts("names", d), dtype=object)
    if "output" in part:
        model.set_output(transform=part.text("output", {"default", "pandas", "polars"}))
    if "stream" in part:
        stream = _stream_from_record(part.part("stream"), d, one)
        model._stream, model._ranges = stream, stream.ranges
        model._checked(d)
        return model
    model._stream, model._ranges = None, _ranges(part, d)
    model.warnings_ = part.texts("warnings")
    targets = part.parts("targets")
    require(len(targets) == 1 if one else targets, part.where, "a model of its targets")
    kept = [kept_from_record(target, d) for target in targets]
    model._checked(d)
    vocabulary = ColumnNames(model._names())
    lefts = ["y"] if one else default_names(len(kept), "y")
    equations = [
        sound_equation(Equation(Left(left), vocabulary, terms), part.where)
        for left, terms in zip(lefts, kept, strict=True)
    ]
    traces = [_trace_from_record(target.part("trace"), d) for target in targets]
    gaps = [target.number("kkt_gap", 0.0) for target in targets]
    model._set_attributes(equations, gaps, [target.whole("n_iter") for target in targets], traces)
    return model


def _ranges(part: Part, n_features: int) -> Any:
    """Return least and greatest value of every column; None where they are not known."""
    if "ranges" not in part:
        return None
    ranges = part.array("ranges", (2, n_features))
    require(np.all(ranges[0] <= ranges[1]), f"{part.where}.ranges", "made of a least and a greatest value")
    return ranges


def _trace_to_record(trace: Trace) -> dict[str, Any]:
    dropped = np.array([(one.column, one.round, one.statistic, one.threshold) for one in trace.dropped], dtype=float)
    return {
        "steps": np.array([trace.cost, trace.noise_variance, trace.n_terms], dtype=float),
        "dropped": dropped.reshape(-1, 4),
    }


def _trace_from_record(part: Part, n_features: int) -> Trace:
    cost, noise, n_terms = part.array("steps", (3, None))
    dropped = part.array("dropped", (None, 4))
    columns, rounds = dropped[:, 0], dropped[:, 1]
    for counts, largest in ((n_terms, n_features), (columns, n_features - 1), (rounds, LARGEST_WHOLE)):
        sound = (counts >= 0) & (counts <= largest) & (counts == np.round(counts))
        require(np.all(sound), part.where, "a trace of columns and rounds")
    rows = ((int(column), int(number), *rest) for column, number, *rest in dropped.tolist())
    return Trace(cost, noise, n_terms.astype(np.intp), tuple(Dropped(*row) for row in rows))


def _stream_to_record(stream: CompressedRows) -> dict[str, Any]:
    kept = ("factor", "total_weight", "n_samples", "ranges", "distinct")
    return {name: value for name in kept if (value := getattr(stream, name)) is not None}


def _stream_from_record(part: Part, n_features: int, one_target: bool) -> CompressedRows:
    """Return the compressed rows of a stream: √w·[1 Θ Y] or its triangle, so the first column's norm is √Σw."""
    factor = part.array("factor", (None, None))
    n_targets = factor.shape[1] - 1 - n_features
    require(
        factor.shape[0] and (n_targets == 1 if one_target else n_targets >= 1), part.where, "a stream of its columns"
    )
    weight = part.number("total_weight", SMALLEST)
    require(np.isclose(factor[:, 0] @ factor[:, 0], weight, rtol=1e-9), part.where, "a stream of its weight")
    n_samples = part.whole("n_samples", 1)
    distinct = part.whole("distinct", 1, n_samples) if "distinct" in part else None
    return CompressedRows(factor, n_features, weight, n_samples, _ranges(part, n_features), distinct)


# Searches


def search_to_record(search: ARDSearch) -> dict[str, Any]:
    """Return the best model and the path that it was chosen from."""
    path = {name: column.tolist() if column.dtype.kind == "U" else column for name, column in search.path_.items()}
    told = search.warnings_[: len(search.warnings_) - len(search.best_estimator_.warnings_)]
    return {"best": _to_record(search.best_estimator_), "path": path, "warnings": told}


def search_from_record(search: ARDSearch, part: Part) -> ARDSearch:
    """Return the search with what a fit sets; which model is the best follows from the path."""
    search._checked_models()
    best = _from_record(part.part("best"))
    require(isinstance(best, BaseARD) and "equations_" in vars(best), f"{part.where}.best", "a fitted estimator")
    search.n_features_in_ = best.n_features_in_
    if hasattr(best, "feature_names_in_"):
        search.feature_names_in_ = best.feature_names_in_
    path = _path_from_record(part.part("path"), best.n_features_in_)
    same = path["method"][path.best] == type(best).__name__ and np.array_equal(path["coef"][path.best], best.coef_)
    require(same, part.where, "a search with the path of its best model")
    search._set_attributes(path, best, part.texts("warnings"))
    return search


def _path_from_record(part: Part, n_features: int) -> Path:
    """Return the path; criteria may be infinite, the strength of a method that has none is not a number."""
    n = part.size("method")
    path = Path()
    for name, kind in PATH_COLUMNS.items():
        shape = (n, n_features) if name in {"support", "coef"} else (n,)
        path[name] = np.array(part.texts(name, n)) if kind == "U" else part.array_of(name, shape, kind)
    sound = n and not np.isnan(path["score"]).any() and np.isfinite(path["coef"]).all()
    require(sound and np.all(path["coef"][path["support"]] != 0), part.where, "a path of models")
    return path


RECORDS: dict[str, tuple[Any, Any]] = {
    "ARDSearch": (search_to_record, search_from_record),
    "Discovery": (discovery_to_record, discovery_from_record),
}


# Parameters


def take_apart(value: Any, where: str) -> tuple[str, dict[str, Any]]:
    """Return the class and the arguments of an estimator, a prior or a library."""
    name = type(value).__name__
    if MADE.get(name) is type(value):
        return name, {argument: getattr(value, argument) for argument in signature(type(value)).parameters}
    what = getattr(value, "__name__", name)
    if callable(value) or isinstance(value, priors.Prior | priors.Convex | Library):
        raise ModelFileError(
            f"{where} is code of your own ({what}). Code is not stored, since a file from a stranger must not run any. "
            "Use one of ardea.priors, or keep the code that fits the model."
        )
    raise ModelFileError(
        f"{where} is of type {what}, which the format does not hold. Give numbers, text, lists or arrays."
    )


def put_together(name: str, arguments: dict[str, Any]) -> Any:
    """Return an estimator, a prior or a library."""
    require(name in MADE, name[:LONGEST_QUOTE], "a class that this version of ardea knows")
    require(arguments.keys() == signature(MADE[name]).parameters.keys(), name, "a class with these arguments")
    return MADE[name](**arguments)
