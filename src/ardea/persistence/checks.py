"""Checks of whole models read from a file: that all their parts agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea.core.compression import Compression
from ardea.estimators.base import BaseARD
from ardea.estimators.search import ARDSearch, Path
from ardea.persistence.refusal import ModelFileError, require


def check_regressor(model: BaseARD, where: str) -> None:
    """Check parameters, and that all attributes agree on the numbers of columns, targets and terms."""
    model._check_parameters()
    state = vars(model)
    output = state.get("_sklearn_output_config", {})
    require(
        isinstance(output, dict) and set(output.values()) <= {"default", "pandas", "polars", None}, where, "a model"
    )
    if "coef_" not in state and "_stream" not in state:
        return
    d, one = state.get("n_features_in_"), state.get("_one_target")
    if not isinstance(d, int) or not isinstance(one, bool):
        raise ModelFileError(f"{where} lacks what every fitted model has. The file is damaged; get it again.")
    targets = _check_stream(state["_stream"], d, where) if "_stream" in state else None
    if "coef_" in state:
        targets = len(state["equations_"])
    require(not one or targets == 1, where, "a model of one target")
    names = state.get("feature_names_in_")
    sound = names is None or (isinstance(names, np.ndarray) and names.dtype == object and names.shape == (d,))
    require(sound, where, f"a model with {d} names")
    _check_ranges(state.get("_ranges"), d, where)
    model._strength(d)


def _check_ranges(ranges: Any, d: int, where: str) -> None:
    """Check the least and greatest value of every column, where they are known."""
    sound = ranges is None or (isinstance(ranges, np.ndarray) and ranges.dtype == float and ranges.shape == (2, d))
    require(sound, where, f"a model with the ranges of {d} columns")


def _check_stream(stream: Any, d: int, where: str) -> int:
    """Check the state of a stream and return its number of targets."""
    if not isinstance(stream, Compression) or stream.factor.ndim != 2 or stream.factor.shape[0] < 1:
        raise ModelFileError(f"{where}._stream is not the state of a stream. The file is damaged; get it again.")
    sound = stream.n_features == d and stream.n_targets >= 1 and stream.total_weight > 0 and stream.n_samples >= 1
    require(sound, f"{where}._stream", f"a stream of {d} columns")
    _check_ranges(stream.ranges, d, f"{where}._stream")
    return stream.n_targets


def check_search(search: ARDSearch, where: str) -> None:
    """Check that a fitted search has its best model and the path that it was chosen from."""
    state = vars(search)
    models = search.estimator if isinstance(search.estimator, list | tuple) else [search.estimator]
    require(models and all(isinstance(model, BaseARD) for model in models), where, "a search over estimators of ardea")
    best, path = state.get("best_estimator_"), state.get("path_")
    if not isinstance(best, BaseARD) or not isinstance(path, Path) or "coef_" not in vars(best):
        raise ModelFileError(f"{where} lacks what every fitted search has. The file is damaged; get it again.")
    lengths = {len(column) for column in path.values()}
    index = state.get("best_index_")
    require(len(lengths) == 1 and isinstance(index, int) and 0 <= index < min(lengths), where, "a search with its path")
    require(state.get("n_features_in_") == best.n_features_in_, where, "a search of its own best model")
