"""Saving and loading models: no pickle, and nothing in a file is ever run.

A file (`ardea.saving.content`) holds the least from which a model follows: the parameters of the estimator, and for
every equation the small problem of its kept terms, their prior variances and the noise variance. Coefficients,
covariances, intervals and evidence are computed from them by the same code as after a fit, so that no two numbers of a
file can disagree. Files are read by the same and later versions of Ardea; a file of a later format version is refused.
"""

from __future__ import annotations

import os
from dataclasses import fields, replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ardea.core.compression import CompressedRows
from ardea.dynamics.discovery import Discovery
from ardea.dynamics.models import StateModel
from ardea.dynamics.series import Clock
from ardea.dynamics.states import Joint
from ardea.equation import Equation
from ardea.estimators.base import BaseARD
from ardea.estimators.inputs import meet_columns
from ardea.estimators.search import EVIDENCE_CRITERIA, RSS_CRITERIA, ARDSearch, Path
from ardea.names import ColumnNames, Left, default_names
from ardea.saving.content import (
    ESTIMATORS,
    Choice,
    Model,
    ModelFileError,
    Motion,
    Regression,
    Table,
    Targets,
    is_covariance,
    opened_archive,
    require,
    write_archive,
)

__all__ = ["ModelFileError", "load", "save"]

# What a discovery says of itself besides its equations; None where it cannot tell.
SAID = tuple(one.name for one in fields(Motion) if one.name.endswith("_"))
# What a table is noted to have of each of several: a name, and what belongs to it.
LISTS = ("levels", "products", "signs", "starts")
# The columns of a path: text, numbers of any size, whole numbers, truth values.
PATH_COLUMNS: dict[str, str] = {
    **dict.fromkeys(("method", "varied"), "U"),
    **dict.fromkeys(("strength", "cost", "log_evidence", "noise_variance", "coef", "score", "split_error"), "f"),
    **dict.fromkeys((*EVIDENCE_CRITERIA, *RSS_CRITERIA), "f"),
    "k": "i",
    **dict.fromkeys(("support", "eligible"), "b"),
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
    write_archive(path, type(model).__name__, _content(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is run, and no more memory is used than a few times its size. Everything is checked before the
    model is returned.

    Parameters
    ----------
    path : path
        The file, or a folder with a `model.ardea`, as ``ardea fit --out`` writes it.

    Returns
    -------
    estimator of ardea, ARDSearch or Discovery
        Equal to the model saved: the same predictions, intervals and draws, bit by bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, cut short, of a later format, or holds anything but a model.
    """
    file = os.path.join(path, "model.ardea") if os.path.isdir(path) else path
    with opened_archive(file) as content:
        require(isinstance(content, Model), "the file", "one of a model")
        return _model(content)


def _content(model: Any) -> Model:
    """Return what a file holds of a fitted model: its parameters, and what the fit found."""
    if type(model) not in ESTIMATORS:
        raise ModelFileError(
            f"A {type(model).__name__} cannot be saved: only fitted estimators of ardea can. In a pipeline, save its "
            "last step."
        )
    check_is_fitted(model)
    found_by: Any = {ARDSearch: _choice_of, Discovery: _motion_of}.get(type(model), _regression_of)
    table = getattr(model, "table_", None)
    if table is not None:
        lists = {kind: [[name, *texts] for name, texts in table[kind].items()] for kind in LISTS}
        table = Table(**{**table, **lists})
    return Model(model, found_by(model), table)


def _model(content: Model) -> Any:
    """Return the model that a file holds."""
    model = content.parameters
    match (model, content.found):
        case (BaseARD(), Regression() as found):
            _adopt_regression(model, found)
        case (ARDSearch(), Choice() as found):
            _adopt_choice(model, found)
        case (Discovery(), Motion() as found):
            _adopt_motion(model, found)
        case _:
            raise ModelFileError("The file holds the findings of another kind of model. Get it again.")
    if (table := content.table) is not None:
        rows = [one for kind in LISTS for one in getattr(table, kind)]
        sound = all(one and isinstance(one[0], str) for one in rows)
        sound = sound and all(len(one) > 2 and str not in map(type, one[1:]) for one in table.starts)
        require(sound, "the table of the model", "one of names, each with what belongs to it")
        lists = {kind: {key: own for key, *own in getattr(table, kind)} for kind in LISTS}
        model.table_ = {**vars(table), **lists}
    return model


def _support(equations: list[Equation]) -> Any:
    return np.array([one.spread(np.ones(len(one.support))) for one in equations])


def _check_equations(equations: list[Equation], support: Any) -> None:
    """Refuse equations that keep other terms than the file says, or whose numbers overflow."""
    sound = all(map(_has_its_constants, equations)) and np.array_equal(_support(equations), support)
    require(sound, "the model", "one of the terms that it keeps")
    require(all(map(_is_finite, equations)), "the model", "one with finite coefficients")


def _has_its_constants(equation: Equation) -> bool:
    """Whether the constants of an equation are all those inside the terms that it keeps."""
    k, pairs = len(equation.support), enumerate(equation.vocabulary.constants, start=equation.n_candidates)
    return bool(equation.kept.support[k:].tolist() == [j for j, (term, _) in pairs if term in equation.support])


def _is_finite(equation: Equation) -> bool:
    """Whether no number of an equation overflows."""
    estimates = (equation.parameters, equation.refit or equation.posterior)
    numbers: list[Any] = [number for one in estimates for number in (one.mean, one.covariance)]
    numbers += [equation.noise, equation.intercept or 0.0, equation.intercept_std or 0.0]
    numbers += [] if equation.kept.prior_variance is None else [equation.kept.log_evidence]
    sound = all(np.all(one.covariance.diagonal() >= 0) for one in estimates)
    return sound and all(np.isfinite(one).all() for one in numbers)


# Regressions


def _regression_of(model: BaseARD) -> Regression:
    """Return what a fit found: of a stream its compressed rows, else of every target its kept terms."""
    names = list(getattr(model, "feature_names_in_", ())) or None
    output = getattr(model, "_sklearn_output_config", {}).get("transform")
    found = _targets(model) if model._stream is None else model._stream
    return Regression(bool(model._one_target), bool(model._single), names, output, found)


def _targets(model: BaseARD) -> Targets:
    equations = model.equations_
    if not all(map(_is_finite, equations)):
        raise ModelFileError(
            "The covariance of the coefficients overflows, so the model cannot be saved: fit it with columns, or y, in "
            "other units."
        )
    return Targets(
        support=_support(equations) > 0,
        kept=[one.kept for one in equations],
        kkt_gap=np.ravel(model.kkt_gap_).tolist(),
        n_iter=np.ravel(model.n_iter_).tolist(),
        trace=[model.trace_] if model._one_target else model.trace_,
        effective_rows=[None if np.isnan(one) else float(one) for one in np.ravel(model.effective_rows_)],
        error_correlation=model.error_correlation_,
        ranges=model._ranges,
        warnings=model.warnings_,
    )


def _adopt_regression(model: BaseARD, content: Regression) -> None:
    """Set what a fit sets."""
    model._check_parameters()
    found, one = content.found, content.one_target
    stream = found if isinstance(found, CompressedRows) else None
    n_targets, d = found.support.shape if isinstance(found, Targets) else (found.n_targets, found.n_features)
    require(n_targets == 1 or not one, "the model", "one of its targets")
    require(content.names is None or len(content.names) == d, "the model", "one of its columns")
    meet_columns(model, d, content.names, first=True)
    model._one_target, model._stream, model._ranges = one, stream, found.ranges
    model._single = content.single
    if content.output is not None:
        model.set_output(transform=content.output)
    model._checked(d)
    if isinstance(found, Targets):
        vocabulary, lefts = ColumnNames(model._names()), ["y"] if one else default_names(n_targets, "y")
        equations = [Equation(Left(left), vocabulary, kept) for left, kept in zip(lefts, found.kept, strict=True)]
        _check_equations(equations, found.support)
        model.warnings_ = found.warnings
        effective = [np.nan if one is None else one for one in found.effective_rows]
        model._set_attributes(equations, found.kkt_gap, found.n_iter, found.trace, effective, found.error_correlation)


# Searches


def _choice_of(search: ARDSearch) -> Choice:
    """Return the best model and the path that it was chosen from."""
    told = search.warnings_[: len(search.warnings_) - len(search.best_estimator_.warnings_)]
    return Choice(_content(search.best_estimator_), dict(search.path_), told)


def _adopt_choice(search: ARDSearch, content: Choice) -> None:
    """Set what a fit sets; which model is the best follows from the path."""
    models = search._checked_models()
    best = _model(content.best)
    require(isinstance(best, BaseARD) and "equations_" in vars(best), "the best model", "a fitted estimator")
    meet_columns(search, best.n_features_in_, getattr(best, "feature_names_in_", None), first=True)
    path = _path(content.path, best.n_features_in_)
    (equation,) = best.equations_
    coef = equation.spread(equation.coefficients)
    same = path["method"][path.best] == type(best).__name__ and np.array_equal(path["coef"][path.best], coef)
    require(same, "the search", "one with the path of its best model")
    params = [candidate.parameters for candidate in search._candidates(models, best.n_features_in_)]
    require(len(params) == path["k"].size, "the search", "one with the path of its strengths")
    search._set_attributes(path, params, best, content.warnings)


def _path(columns: dict[str, Any], n_features: int) -> Path:
    """Return the path; criteria may be infinite, the strength of a method that has none is not a number."""
    path = Path({name: np.array(column) for name, column in columns.items()})
    sound = {name: column.dtype.kind for name, column in path.items()} == PATH_COLUMNS
    sound = sound and all(type(text) is str for name in ("method", "varied") for text in columns[name])
    require(sound, "the path", "one of a search")
    n = path["k"].size
    shapes = {name: (n, n_features) if name in {"support", "coef"} else (n,) for name in PATH_COLUMNS}
    shapes["split_error"] = (n, path["split_error"].size // max(n, 1))
    sound = n and all(path[name].shape == shape for name, shape in shapes.items())
    sound = sound and not np.isnan(path["score"]).any() and np.isfinite(path["coef"]).all()
    require(sound and np.all(path["coef"][path["support"]] != 0), "the path", "one of models")
    return path


# Equations of motion


def _motion_of(found: Discovery) -> Motion:
    """Return the candidate terms, and the kept ones of every equation with its rivals."""
    if found.experiments_ is not None:
        raise ModelFileError("Each trajectory has coefficients of its own: save the models in experiments_.")
    equations, model = found.equations_, found.model_
    if isinstance(model, StateModel):  # its constants follow from the equations
        model = replace(model, constants=None)
    said: dict[str, Any] = {name: getattr(found, name) for name in SAID}
    return Motion(
        model=replace(model, coefficients=_support(equations)),
        kept=[one.kept for one in equations],
        rivals=[one.rivals for one in equations],
        equivalents=[one.equivalents for one in equations],
        **said,
    )


def _adopt_motion(found: Discovery, content: Motion) -> None:
    """Set what a fit sets."""
    found._check_parameters(None)
    model = content.model
    parts: Any = zip(model.lefts, content.kept, content.rivals, content.equivalents, strict=True)
    equations = [Equation(left, model.vocabulary, *rest) for left, *rest in parts]
    _check_equations(equations, model.coefficients)
    others = [rival.terms for rivals in content.rivals for rival in rivals]
    named = {*chain(*others, *chain(*content.equivalents))}
    require(named <= set(model.vocabulary.names), "the model", "one of candidate terms")
    _check_joint(content, equations)
    clock = Clock(content.time_unit_, content.time_origin_)
    found._adopt(model, equations, clock, content.warnings_, content.joint_)
    for name in SAID:
        setattr(found, name, getattr(content, name))


def _check_joint(content: Motion, equations: list[Equation]) -> None:
    """Refuse what does not say how these equations, of a trajectory, depend on each other, and only that."""
    if (joint := content.joint_) is not None:
        own = Joint.between([one.kept.support.size for one in equations], np.ones_like(joint.correlation)) == 0
        gains = [joint.first.gain, joint.last.gain, *([] if joint.rows is None else [joint.rows.gain])]
        sizes = {one.shape[-2:] for one in gains}
        sound = isinstance(content.model, StateModel) and sizes == {(len(content.model.states), len(joint.correlation))}
        sound = sound and content.process_noise_ is not None and not np.any(joint.correlation[own])
        growth = content.process_growth_
        sound = sound and growth is not None and bool(np.all(growth[0] <= 1) and np.all(growth[1] > 0))
        sound = sound and (joint.tied is None or joint.tied.offset.size == len(joint.correlation))
        require(sound and is_covariance(joint.estimate(equations).correlation), "the model", "one of a trajectory")
