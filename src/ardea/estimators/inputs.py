"""Checks of what the user passed, each with a message that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.core.problem import Array

MOST_NAMED = 5


@contextmanager
def explained_where_unsound(X: Any, y: Any) -> Iterator[None]:
    """Refuse words and dates in a data frame (some would turn into numbers), and say where NaN and infinity are."""
    if advice := _not_numbers(X):
        raise ValueError(advice)
    try:
        yield
    except ValueError as error:
        advice = _not_finite("X", X) or _not_finite("y", y)
        if advice is None:
            raise
        raise ValueError(advice) from error


def _not_numbers(X: Any) -> str | None:
    """Name the columns of a data frame that hold text or dates."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return None
    strange = [str(name) for name, kind in zip(X.columns, X.dtypes, strict=True) if not _is_numeric(X[name], kind)]
    if not strange:
        return None
    listed = ", ".join(repr(name) for name in strange[:MOST_NAMED]) + (", …" if len(strange) > MOST_NAMED else "")
    return f"Not numbers: the columns {listed}. Drop them (X.drop(columns=[…])), or turn them into numbers first."


def _is_numeric(column: Any, kind: Any) -> bool:
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric() or str(kind) == "Boolean")
    if getattr(kind, "kind", "O") in "biuf":
        return True
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return getattr(kind, "kind", "O") == "O"


def _not_finite(what: str, data: Any) -> str | None:
    """Say where the first NaN or infinity is, and in how many rows there are any."""
    if np.iscomplexobj(data):
        return None
    try:
        values = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if values.ndim not in (1, 2) or values.size == 0:
        return None
    unsound = ~np.isfinite(values.reshape(len(values), -1))
    if not unsound.any():
        return None
    row, column = np.argwhere(unsound)[0]
    names = getattr(data, "columns", None)
    name = "" if values.ndim == 1 else f", column {str(names[column]) if names is not None else int(column)!r}"
    kind = "NaN" if np.isnan(values.reshape(len(values), -1)[row, column]) else "infinity"
    count = int(unsound.any(axis=1).sum())
    rows = "in this row only" if count == 1 else f"{count} rows have such cells"
    return (
        f"Input {what} contains NaN or infinity: {kind} in row {row}{name}; {rows}. Leave those rows out "
        "(X.dropna() in pandas), or fill the cells."
    )


def is_lazy(data: Any) -> bool:
    """Whether the data are a Dask collection (or an xarray object that holds one); Dask is not imported for it."""
    package = type(data).__module__.partition(".")[0]
    return package == "dask" or (package == "xarray" and getattr(data, "chunks", None) is not None)


def checked_strength(
    name: str, value: Any, n_columns: int, *, zero_allowed: bool = True, infinity_allowed: bool = False
) -> Array | None:
    """Return a strength as an array of one number per column, or None for "calibrated"."""
    if isinstance(value, str):
        if value == "calibrated":
            return None
        raise ValueError(f"{name}={value!r} is not known: give a number, one number per column, or 'calibrated'.")
    try:
        kind = np.asarray(value).dtype.kind
    except ValueError:  # rows of different lengths
        kind = "O"
    if kind not in "iuf":
        raise ValueError(f"{name}={value!r} is not a number: give a number, one per column, or 'calibrated'.")
    array = np.asarray(value, dtype=float)
    if array.shape not in {(), (n_columns,)}:
        raise ValueError(
            f"{name} has shape {array.shape}, but X has {n_columns} columns: give one number, or one per column."
        )
    if np.isnan(array).any() or (array < 0).any() or (not infinity_allowed and np.isinf(array).any()):
        allowed = "infinite or finite" if infinity_allowed else "finite"
        raise ValueError(f"{name} must be {allowed} and not negative; got {value!r}.")
    if not zero_allowed and (array == 0).any():
        raise ValueError(f"{name} must be above zero; got {value!r}.")
    return np.array(np.broadcast_to(array, (n_columns,)))


def checked_positive(name: str, value: Any, *, whole: bool = False) -> float:
    """Return a positive finite number (a whole one where asked)."""
    expected = Integral if whole else Real
    valid = isinstance(value, expected) and not isinstance(value, bool | np.bool_)
    if not valid or not np.isfinite(float(value)) or float(value) <= 0:
        kind = "whole number" if whole else "finite number"
        raise ValueError(f"{name} must be a {kind} above zero; got {value!r}.")
    return float(value)


def checked_keep(always_keep: Any, n_columns: int, names: NDArray[Any] | None) -> list[int]:
    """Return the columns to keep as numbers, from numbers, names or a boolean mask."""
    if always_keep is None:
        return []
    if isinstance(always_keep, str | Integral):
        always_keep = [always_keep]
    try:
        entries = list(always_keep)
    except TypeError:
        raise ValueError(
            f"always_keep={always_keep!r} is not known: give column numbers, names or a boolean mask."
        ) from None
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        if len(entries) != n_columns:
            raise ValueError(f"The mask always_keep has length {len(entries)}; X has {n_columns} columns.")
        return [int(j) for j in np.flatnonzero(entries)]
    return sorted({_column_number(entry, n_columns, names) for entry in entries})


def _column_number(entry: Any, n_columns: int, names: NDArray[Any] | None) -> int:
    if isinstance(entry, str):
        known = [] if names is None else list(names)
        if entry not in known:
            where = "X has no column names" if names is None else f"X has the columns {', '.join(map(str, known[:20]))}"
            raise ValueError(f"always_keep names the column {entry!r}, but {where}.")
        return known.index(entry)
    number = int(entry) if isinstance(entry, Integral) and not isinstance(entry, bool) else n_columns
    if not -n_columns <= number < n_columns:
        raise ValueError(f"always_keep has {entry!r}; X has {n_columns} columns, numbered from 0.")
    return number % n_columns
