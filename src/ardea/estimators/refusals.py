"""What is said of data that cannot be fitted: words, dates, gaps, and where they are; and of rows in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ardea.core.problem import Array

# Columns named in one message: a convention.
MOST_NAMED = 5
# Share of neighbours whose labels are in the wrong order from which rows are not in order: a convention.
BACKWARDS = 0.1


def listed(names: Sequence[str]) -> str:
    """Return the first of some names for a message."""
    return ", ".join(repr(name) for name in names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def not_numbers(what: str, data: Any) -> str | None:
    """Name the columns of a data frame that hold text, dates or categories, whatever these are called."""
    if _is_category(getattr(data, "dtype", None)):
        return f"{what} holds categories, which are no amounts: use {what}.astype(float) if they are."
    if not hasattr(data, "columns") or not hasattr(data, "dtypes"):
        return None
    kinds = enumerate(zip(data.columns, data.dtypes, strict=True))
    strange = [str(name) for j, (name, kind) in kinds if not _is_numeric(_column(data, j), kind)]
    if not strange:
        return None
    columns = "columns=" * hasattr(data, "iloc")
    coded = any(map(_is_category, data.dtypes))
    return (
        f"Not numbers: column{'s' * (len(strange) > 1)} {listed(strange)} of {what}. Turn text and dates into numbers "
        f"first, {'categories into columns of 0 and 1 (pandas.get_dummies), ' * coded}or drop them "
        f"({what}.drop({columns}[…]))."
    )


def one_axis(what: str, data: Any) -> str | None:
    """Say how to pass one row or one column of a frame, which pandas gives as a series."""
    if getattr(data, "ndim", 2) != 1 or not hasattr(data, "iloc"):
        return None
    return (
        f"{what} is a single row or column of a table, and must have rows and columns: pass table.iloc[[0]] for one "
        "row, or table[['a']] for one column, with two brackets."
    )


def in_another_order(X: Any, **others: Any) -> str | None:
    """Say which data of pandas have the labels of X in another order: rows are taken by their place."""
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "is_unique"):
        return None
    given: list[tuple[str, Any]] = [(name, getattr(data, "index", None)) for name, data in others.items()]
    moved = [name for name, own in given if hasattr(own, "is_unique") and not index.equals(own) and _same(index, own)]
    if not moved:
        return None
    return (
        f"{' and '.join(moved)} {'has' if len(moved) == 1 else 'have'} the row labels of X in another order. Rows are "
        f"paired by their place, not by their labels: if that is not what you want, pass {moved[0]}.loc[X.index] "
        "(python -m ardea.explain suspect_data)."
    )


def not_in_order(X: Any, groups: Any) -> str | None:
    """Say that the labels of rows given as a series, times or numbers, rise and fall, within groups if there are any.

    Few steps back are those of labels that begin anew, such as hours of the day.
    """
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "is_unique") or getattr(index.dtype, "kind", "O") not in "iufmM":
        return None
    labels = np.asarray(index)
    if groups is not None and len(groups) == labels.size:
        codes = np.unique(np.asarray(groups).astype(str), return_inverse=True)[1]
        order = np.argsort(codes, kind="stable")
        labels, apart = labels[order], np.diff(codes[order]) > 0
    else:
        apart = np.zeros(max(labels.size - 1, 0), dtype=bool)
    rises, falls = ((step & ~apart).sum() for step in (labels[1:] > labels[:-1], labels[1:] < labels[:-1]))
    if min(rises, falls) <= BACKWARDS * labels.size:
        return None
    return (
        "rows='series' takes rows in the order in which they are given, and their labels in X.index are not in order. "
        "If these say when a row was read, sort both first: X.sort_index() and y.sort_index() (train_test_split "
        "shuffles rows unless it gets shuffle=False). If the order is right, ignore this "
        "(python -m ardea.explain dependent_rows)."
    )


def _same(index: Any, other: Any) -> bool:
    """Whether two indexes hold the same labels, each once."""
    return index.size == other.size and index.is_unique and other.is_unique and bool(other.isin(index).all())


def _is_category(kind: Any) -> bool:
    """Whether a type is that of categories in pandas: numbers there are codes."""
    return str(kind) == "category"


def _column(data: Any, j: int) -> Any:
    """Return a column of a pandas or polars frame by its place."""
    return data.iloc[:, j] if hasattr(data, "iloc") else data[:, j]


def _is_numeric(column: Any, kind: Any) -> bool:
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric() or str(kind) == "Boolean")
    if getattr(kind, "kind", "O") in "biuf":
        return True
    return not _is_category(kind) and as_numbers(column) is not None and getattr(kind, "kind", "O") == "O"


def words(what: str, data: Any) -> str | None:
    """Say where the first text is that is not a number."""
    for place, cell in np.ndenumerate(np.asarray(data, dtype=object)):
        if isinstance(cell, str) and as_numbers(cell) is None:
            return (
                f"{what} holds text: {str(cell)!r} in row {place[0]}. Turn it into numbers first; for two kinds of "
                "rows these may be 0 and 1."
            )
    return None


def not_finite(what: str, data: Any) -> str | None:
    """Say where the first NaN or infinity is, and in how many rows there are any."""
    if np.iscomplexobj(data):
        return None
    values = as_numbers(data)
    if values is None or values.ndim not in (1, 2) or values.size == 0:
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
    package = type(data).__module__.partition(".")[0]
    how = {"pandas": ".dropna()", "polars": ".drop_nans().drop_nulls()"}.get(package)
    return (
        f"Input {what} contains NaN or infinity: {kind} in row {row}{name}; {rows}. Leave those rows out of X and of "
        f"y{f' (with {how} on the table that holds both)' if how else ''}, or fill the cells."
    )


def as_numbers(data: Any) -> Array | None:
    """Return data as numbers, what is missing as NaN; None where they hold something else."""
    try:
        return np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        if not hasattr(data, "iloc"):
            return None
    try:  # pandas.NA is no number for NumPy
        return np.asarray(data.astype(object).where(data.notna(), np.nan), dtype=np.float64)
    except (TypeError, ValueError):
        return None
