"""What a search tries: the parameters of every model, from numbers, dicts of values, or the default strengths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from numbers import Real
from typing import Any

import numpy as np

from ardea import rates
from ardea.estimators.base import BaseARD

# A convention: half an hour's patience for a thousand columns.
GRID_SIZE = 15
# Expected false terms at the strong end of a default grid, a convention; the weak end is that of plain ARD.
FEWEST_FALSE_TERMS = 1e-3


def grid_of(model: BaseARD, grid: Any, n_columns: int) -> Iterator[dict[str, Any]]:
    """Yield the parameters of every model of a grid: numbers from strong to weak, others in the order given.

    The strength changes from each to the next, other parameters more slowly.
    """
    strength, name = model.method.strength, type(model).__name__
    if grid is None:
        yield from [{}] if strength is None else _default_grid(model, n_columns)
        return
    if not isinstance(grid, Mapping):
        if strength is None:
            raise ValueError(f"{name} has no strength to vary: give None, or a dict of parameters to values.")
        grid = {strength: grid}
    unknown = set(grid) - set(model.get_params())
    if unknown:
        raise ValueError(f"{name} has no parameter {', '.join(sorted(unknown))}.")
    varied = name_of_strength(model, grid)
    values = {key: _in_order(model, key, grid[key]) for key in sorted(grid, key=lambda key: key == varied)}
    for key, column in values.items():
        if not column:
            raise ValueError(f"strengths has no value for {key} of {name}: give at least one.")
    for combination in product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def name_of_strength(model: BaseARD, names: Iterable[str]) -> str:
    """Return which of some parameters is the strength; an empty text where none is."""
    return next((name for name in (model.method.strength, "false_terms") if name and name in names), "")


def _in_order(model: BaseARD, name: str, values: Any) -> list[Any]:
    """Return the values of a parameter as a list, numbers from strong to weak."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    listed = [listed] if isinstance(listed, str) or not isinstance(listed, Iterable) else list(listed)
    listed = [value.item() if isinstance(value, np.generic) else value for value in listed]
    if not all(map(is_number, listed)):
        return listed
    weak_last = name == "false_terms" or (model.method.sparse_first and name == model.method.strength)
    return sorted(listed, reverse=not weak_last)


def is_number(value: Any) -> bool:
    """Whether a value is one number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _default_grid(model: BaseARD, n_columns: int) -> Iterator[dict[str, Any]]:
    """Yield strengths from an expected .001 false terms to those of plain ARD.

    ARDvi's in α, which means the same for any data; those of the others in `false_terms`, since theirs depend on it.
    """
    for false_terms in np.geomspace(FEWEST_FALSE_TERMS, rates.NO_PRUNING_RATE * n_columns, GRID_SIZE):
        rate = min(false_terms / n_columns, rates.NO_PRUNING_RATE)
        if model.method.strength == "alpha":
            yield {"alpha": float(rates.strength_for("vi", rate))}
        else:
            yield {"false_terms": float(false_terms)}
