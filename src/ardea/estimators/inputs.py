"""What the user passed, checked: one kind of rows for arrays, frames, sparse matrices, operators and Dask collections.

Every refusal has a message that says what to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, validate_data

from ardea.core.compression import (
    COMPRESSION_COLUMN_LIMIT,
    CompressedRows,
    distinct_rows,
    is_lazy,
    n_distinct,
    pose_array,
    ranges_of,
)
from ardea.core.implicit import Operator, pose_implicit, sparse_operator
from ardea.core.problem import Array, Coordinates, Problem, require
from ardea.estimators.advice import DependentRowsWarning, SuspectDataWarning, warn_caller
from ardea.estimators.refusals import (
    as_numbers,
    in_another_order,
    listed,
    not_finite,
    not_in_order,
    not_numbers,
    one_axis,
    words,
)
from ardea.methods.task import Method, Wish
from ardea.methods.thresholds import SEARCHES
from ardea.names import counted, default_names
from ardea.priors import Convex, Prior

# Squares of smaller numbers lose digits, and vanish below 1e-162; y is held to the same bound.
SMALLEST_COLUMN = 1e-150
RowKind = Literal["independent", "series", "groups", "unequal"]
ROW_KINDS: tuple[RowKind, ...] = get_args(RowKind)


@dataclass(frozen=True)
class Whitened:
    """What rows were made independent with: L[1 X y] stands in for them, with LVLᵀ = I (`dependence`)."""

    constant: Array  # L1
    log_volume: float  # ln|V|
    correlation: Array  # what V was made of
    original: CheckedRows


@dataclass(frozen=True)
class CheckedRows:
    """Rows as a fit needs them: finite numbers that belong together; rows without weight are gone."""

    X: Any  # ndarray, sparse matrix, Operator or CompressedRows
    Y: Array  # one column per target; empty where X is compressed
    weight: Array | None  # counts
    ranges: Array | None  # least and greatest value of every column
    one_target: bool  # whether y had one axis
    used: NDArray[np.bool_] | None = None  # which of the rows given count, where not all do
    names: Sequence[str] | None = None  # of the columns, where they have any
    single: bool = False  # whether X came in single precision
    groups: NDArray[np.intp] | None = None  # the group of every row, numbered from 0, where they were told
    whitened: Whitened | None = None  # what was done to rows that depend on each other
    told: tuple[str, ...] = ()  # what the user was warned of before the fit

    @classmethod
    def of_compressed(cls, rows: CompressedRows) -> CheckedRows:
        """Take rows that were checked when they were compressed."""
        nothing = np.empty((0, rows.n_targets))
        return cls(rows, nothing, None, rows.ranges, rows.one_target, names=rows.names)

    @property
    def given(self) -> CheckedRows:
        """The rows before they were made independent."""
        return self if self.whitened is None else self.whitened.original

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def operations(self) -> float:
        """What a Gram matrix of the columns, or of the rows, costs; everything else is a small multiple of it."""
        m, d = self.X.shape
        return float(m) * d * min(m, d)

    def subset(self, rows: NDArray[np.intp]) -> CheckedRows:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        groups = None if self.groups is None else np.unique(self.groups[rows], return_inverse=True)[1]
        white = None if self.whitened is None else replace(self.whitened, constant=self.whitened.constant[rows])
        return replace(self, X=self.X[rows], Y=self.Y[rows], weight=weight, used=None, groups=groups, whitened=white)

    def compressed(self) -> CompressedRows:
        """Return what a stream adds up."""
        if isinstance(self.X, Operator):
            raise ValueError("An Operator cannot be added to a stream of rows; use fit.")
        if isinstance(self.X, CompressedRows):
            return self.X
        if sparse.issparse(self.X) and self.n_columns > COMPRESSION_COLUMN_LIMIT:
            raise ValueError(f"A stream of sparse blocks needs at most {COMPRESSION_COLUMN_LIMIT} columns; use fit.")
        return CompressedRows.from_arrays(self.X, self.Y, self.weight, self.ranges, self.constant)

    @property
    def constant(self) -> Array | None:
        """What stands in for the column of ones."""
        return None if self.whitened is None else self.whitened.constant

    @property
    def total(self) -> float:
        """How many rows there are, as their weights add up."""
        return float(len(self.Y) if self.weight is None else self.weight.sum())

    @property
    def numbers(self) -> NDArray[np.intp]:
        """Which of the rows given these are."""
        return np.arange(len(self.Y)) if self.used is None else np.flatnonzero(self.used)

    def pose(self, *, intercept: bool, keep: Sequence[int]) -> tuple[list[Problem], Coordinates]:
        """Return one problem per target, with the way back."""
        problems, coordinates = self._posed(intercept=intercept, keep=keep)
        if self.whitened is not None:
            coordinates = replace(coordinates, log_volume=self.whitened.log_volume)
        return problems, coordinates

    def _posed(self, *, intercept: bool, keep: Sequence[int]) -> tuple[list[Problem], Coordinates]:
        """Compress where rows outnumber columns, else keep Θ as it is."""
        X, Y, weight = self.X, self.Y, self.weight
        m, d = X.shape
        self._refuse_tiny_columns()
        if isinstance(X, Operator):
            return pose_implicit(X, Y, weight, intercept=intercept, keep=keep)
        # Peaks of memory as measured on several shapes; ill-conditioned columns may need half as much again.
        if isinstance(X, CompressedRows) or (m > d and d <= COMPRESSION_COLUMN_LIMIT):
            require(8 * 11 * (1 + d + Y.shape[1]) ** 2, f"Compressing {d} columns")
            return self.compressed().pose(intercept=intercept, keep=keep)
        if sparse.issparse(X):
            different = n_distinct(distinct_rows(X.tocsr(), Y))
            return pose_implicit(sparse_operator(X), Y, weight, intercept=intercept, keep=keep, n_distinct=different)
        copies = 1.2 if weight is None else 2.2
        require(8 * (copies * m * d + 4 * min(m, d) ** 2), f"A fit of {m} rows and {d} columns")
        return pose_array(X, Y, weight, intercept=intercept, keep=keep, constant=self.constant)

    def _refuse_tiny_columns(self) -> None:
        """Refuse columns whose squares vanish: they would count as zeros, however well they explain y."""
        if self.ranges is None:
            return
        largest = np.maximum(self.ranges[1], -self.ranges[0])
        if largest.min(initial=SMALLEST_COLUMN) >= SMALLEST_COLUMN:
            return
        tiny = np.flatnonzero((largest < SMALLEST_COLUMN) & (largest > 0))
        if tiny.size == 0:
            return
        names = default_names(self.n_columns) if self.names is None else self.names
        named = listed([str(names[int(j)]) for j in tiny])
        raise ValueError(
            f"No number is above {SMALLEST_COLUMN:g} in the columns {named}: their squares are lost to "
            "rounding. Give these columns in another unit, or leave them out."
        )


def checked_rows(model: Any, X: Any, y: Any, sample_weight: Any, groups: Any = None, *, first: bool) -> CheckedRows:
    """Check what was passed to `fit` or (not the first block) `partial_fit`, and set or compare the model's columns."""
    if groups is not None and (isinstance(X, CompressedRows) or any(map(is_lazy, (X, y, groups)))):
        raise ValueError("groups needs rows in memory: leave it out, or fit a part of the rows as an array.")
    _refuse_queries_and_repeated_names(X=X, y=y, sample_weight=sample_weight)
    if any(map(is_lazy, (X, y, sample_weight))):
        from ardea.distributed.compress import LazyRows, compressed

        lazy = LazyRows.of(X, y, sample_weight)
        meet_columns(model, lazy.X.shape[1], lazy.names, first=first)
        if first and hasattr(model, "_checked"):
            model._checked(lazy.X.shape[1])  # before anything is computed
        return replace(CheckedRows.of_compressed(compressed(lazy, verbose=model.verbose)), single=is_single(lazy.X))
    if isinstance(X, CompressedRows):
        if y is not None or sample_weight is not None:
            raise ValueError("Compressed rows hold y and the weights already: pass None for both.")
        meet_columns(model, X.shape[1], X.names, first=first)
        return CheckedRows.of_compressed(X)
    told: list[tuple[str, type[Warning]]] = []
    if hasattr(X, "index") and (advice := in_another_order(X, y=y, sample_weight=sample_weight, groups=groups)):
        told.append((advice, SuspectDataWarning))
    if getattr(model, "rows", None) == "series" and (advice := not_in_order(X, groups)):
        told.append((advice, DependentRowsWarning))
    for text, category in told:
        warn_caller(text, category)
    if sparse.issparse(y):
        raise ValueError("y is a sparse matrix: pass an array, y.toarray().ravel() for one target.")
    X, y, ranges = _checked_arrays(model, X, y, first=first)
    if np.iscomplexobj(y):
        raise ValueError("Complex data not supported: fit the real and the imaginary part of y separately.")
    plain = isinstance(y, np.ndarray) and y.dtype.kind in "fiub"
    if (numbers := np.asarray(y, dtype=np.float64) if plain else as_numbers(y)) is None:
        raise ValueError(words("y", y))
    y = numbers
    names = getattr(model, "feature_names_in_", None)
    rows = CheckedRows(X, y.reshape(y.shape[0], -1), None, ranges, y.ndim == 1, names=names, single=is_single(X))
    rows = replace(rows, told=tuple(text for text, _ in told)) if told else rows
    if groups is not None:
        rows = replace(rows, groups=_checked_groups(groups, y.shape[0]))
    return rows if sample_weight is None else _weighted(rows, sample_weight)


def _checked_groups(groups: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the group of every row, numbered from 0."""
    _refuse_names("groups", groups, "column itself")
    labels = np.asarray(groups)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"groups has the shape {labels.shape}, and X has {counted(n_rows, 'row')}: give one label for every row."
        )
    missing = [label is None or label != label for label in labels.tolist()]
    if any(missing):
        raise ValueError(f"groups has no label for row {missing.index(True)}: give one for every row.")
    return np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)[1].astype(np.intp)


def _checked_arrays(model: Any, X: Any, y: Any, *, first: bool) -> tuple[Any, Any, Array | None]:
    """Return X and y as numbers, and the range of every column."""
    for name, data in (("X", X), ("y", y)):
        _refuse_names(name, data, "numbers themselves")
        _refuse_masks_and_dates(name, data)
    if isinstance(X, Operator):
        y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
        check_consistent_length(X, y)
    ranges = _ranges_where_sound(X, y) if first else None
    if isinstance(X, Operator) or ranges is not None:
        meet_columns(model, X.shape[1], None, first=True)
        return X, y, ranges
    if not sparse.issparse(X) and getattr(X, "dtype", None) not in (np.float64, np.float32):
        require(8 * np.prod(getattr(X, "shape", 0), dtype=float), "X as 64-bit numbers")
    X, y = _validated(model, X, first=first, y=y, multi_output=True, y_numeric=True)
    return X, y, ranges_of(X)


def checked_new_rows(model: Any, X: Any) -> Any:
    """Check what was passed to `predict`; sparse rows are returned so that they can be cut into blocks."""
    _refuse_queries_and_repeated_names(X=X)
    if isinstance(X, Operator):
        if X.shape[1] == model.n_features_in_:
            return X
        raise ValueError(
            f"The operator has {counted(X.shape[1], 'column')}; the model was fitted to {model.n_features_in_}."
        )
    _refuse_masks_and_dates("X", X)
    X = _validated(model, X, first=False)
    return X.tocsr() if sparse.issparse(X) else X


def is_single(X: Any) -> bool:
    """Whether an array, a sparse matrix or a data frame holds numbers of single precision only."""
    if hasattr(X, "dtypes"):
        return all(kind == np.float32 for kind in X.dtypes)
    return bool(getattr(X, "dtype", None) == np.float32)


def in_single(values: Any, *, keep_zeros: bool = False) -> Any:
    """Return numbers in single precision, or as they are where it cannot hold them.

    `keep_zeros`: nor where a number would become zero, which is how a dropped term looks.
    """
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(values)
    lost = np.isinf(narrow) | ((narrow == 0) & (np.asarray(values) != 0) & keep_zeros)
    return values if lost.any() else narrow


def _validated(model: Any, X: Any, *, first: bool, **target: Any) -> Any:
    """Return what scikit-learn's checks pass.

    Words and dates in a data frame are refused (some would turn into numbers); of NaN and infinity it is said where.
    """
    y, types = target.get("y"), (np.float64, np.float32)
    if advice := one_axis("X", X) or not_numbers("X", X) or not_numbers("y", y):
        raise ValueError(advice)
    try:
        found: Any = validate_data(model, X, reset=first, accept_sparse=("csr", "csc"), dtype=types, **target)
        if y is not None and not np.isfinite(found[1]).all():
            raise ValueError("y has None among objects, which become NaN after scikit-learn's look at them.")
        return found
    except (TypeError, ValueError) as error:
        said = (tell(*one) for tell in (not_finite, words) for one in (("X", X), ("y", y)))
        if (advice := next(filter(None, said), None)) is None:
            raise
        raise ValueError(advice) from error


def _ranges_where_sound(X: Any, y: Any) -> Array | None:
    """Return the range of every column of arrays that scikit-learn's checks would pass unchanged; None for others.

    The range of a column is finite only if all its values are, and needed anyway: this saves the pass of those checks.
    """
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.dtype != np.float64 or y.dtype != np.float64:
        return None
    if X.ndim != 2 or y.ndim not in {1, 2} or X.shape[0] != y.shape[0] or 0 in X.shape or 0 in y.shape:
        return None
    ranges = ranges_of(X)
    with np.errstate(over="ignore", invalid="ignore"):
        return ranges if np.isfinite(ranges).all() and np.isfinite(y.sum()) else None


def meet_columns(model: Any, n_columns: int, names: Sequence[str] | None, *, first: bool) -> None:
    """Remember the columns of the first rows; refuse later rows that have others."""
    known = getattr(model, "feature_names_in_", None)
    if first:
        model.n_features_in_ = n_columns
        vars(model).pop("feature_names_in_", None)
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
    elif n_columns != model.n_features_in_ or not (known is None or names is None or list(known) == list(names)):
        raise ValueError("The columns are not those of the first block, in the same order.")


def _weighted(rows: CheckedRows, sample_weight: Any) -> CheckedRows:
    """Return the rows that count, with their weights."""
    _refuse_names("sample_weight", sample_weight, "numbers themselves")
    _refuse_masks_and_dates("sample_weight", sample_weight)
    weight = _check_sample_weight(sample_weight, rows.X, dtype=np.float64, ensure_non_negative=True)
    used = weight > 0
    if not used.any():
        raise ValueError("All sample weights are zero: at least one row must count.")
    if used.all() or isinstance(rows.X, Operator):
        return replace(rows, weight=weight)
    counted_rows = replace(rows, weight=weight).subset(np.flatnonzero(used))
    return replace(counted_rows, ranges=ranges_of(counted_rows.X), used=used)


def _refuse_queries_and_repeated_names(X: Any, **others: Any) -> None:
    """Refuse LazyFrames of polars, which hold no rows yet, records, and frames of no column or several of one name."""
    for name, data in {"X": X, **others}.items():
        kind = type(data)
        if kind.__name__ == "LazyFrame" and kind.__module__.partition(".")[0] == "polars":
            raise ValueError(f"{name} is a polars LazyFrame, a query that has not run yet. Pass {name}.collect().")
        if isinstance(data, np.ndarray) and data.dtype.names:
            raise ValueError(f"{name} is an array of records. Pass pd.DataFrame({name}), or an array of numbers.")
    columns: Any = getattr(X, "columns", None)
    if isinstance(getattr(X, "shape", None), tuple) and columns is not None and X.shape[1] == 0:
        raise ValueError("X has no columns: there is nothing to explain y with. Was everything filtered out?")
    if getattr(columns, "is_unique", None) is not False:  # polars has no such names; what Dask delays has no answer
        return
    repeated = [str(name) for name, count in Counter(columns).items() if count > 1]
    raise ValueError(
        f"Several columns of X have the same name: {listed(repeated)}. Rename them, so that results can be told "
        "apart, or pass X.to_numpy()."
    )


def _refuse_names(what: str, data: Any, wanted: str) -> None:
    """Refuse the name of a column in the place of it."""
    if isinstance(data, str):
        raise ValueError(f"{what}={data!r} is a text: give the {wanted}, such as table[{data!r}].")


def _refuse_masks_and_dates(what: str, data: Any) -> None:
    """Refuse masked cells, which mean that a value is missing, and dates, which are no numbers of a unit."""
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        first = tuple(int(i) for i in np.argwhere(np.ma.getmaskarray(data))[0])
        raise ValueError(
            f"{what} has {counted(int(np.ma.count_masked(data)), 'masked cell')}, the first at {first}: what is "
            f"masked is missing. Leave such rows out, or fill the cells ({what}.filled(…))."
        )
    if _holds_dates(data):
        raise ValueError(
            f"{what} holds dates or times. Turn them into numbers of a unit first, for example days: "
            f"({what} - {what}.min()) / np.timedelta64(1, 'D')."
        )


def _holds_dates(data: Any) -> bool:
    """Whether an array, a series, or the first row of a list holds dates, times or durations."""
    kind: Any = getattr(data, "dtype", None)
    if getattr(kind, "kind", None) in ("m", "M"):
        return True
    if hasattr(kind, "is_temporal"):  # polars
        return bool(kind.is_temporal())
    if getattr(kind, "kind", None) == "O" and not sparse.issparse(data):
        return any(map(_is_date, np.asarray(data).flat))
    while isinstance(data, list | tuple) and data:
        if any(map(_is_date, data)):
            return True
        data = data[0]
    return False


def _is_date(value: Any) -> bool:
    return isinstance(value, np.datetime64 | np.timedelta64 | date | time | timedelta) or (
        type(value).__name__ == "Period"  # of pandas, which is not loaded for this
    )


def checked_wish(params: Mapping[str, Any], method: Method, n_columns: int) -> Wish:
    """Return what an estimator's parameters ask of its method, one strength per column."""
    given, eta, prior = params.get(method.strength or ""), params.get("eta"), params.get("prior")
    strength = width = None
    if method.strength is not None and method.strength != "false_terms":
        strength = checked_strength(method.strength, given, n_columns, method.zero_allowed, method.infinity_allowed)
    if eta is not None:
        width = checked_strength("eta", eta, n_columns, zero_allowed=False, infinity_allowed=True)
        if width is None:
            raise ValueError("eta='calibrated' is not known: calibrate lam, and give eta as a number.")
    if prior is not None and not isinstance(prior, Prior | Convex):
        raise ValueError(
            f"prior={prior!r} is not a prior: give one of ardea.priors, or wrap your functions in "
            "ardea.priors.Concave or ardea.priors.Convex."
        )
    search = params.get("search", "diagonal")
    if search not in SEARCHES:
        raise ValueError(f"search={search!r} is not known: choose one of {', '.join(map(repr, SEARCHES))}.")
    return Wish(strength, params.get("false_terms", 1.0), width, prior, search)


def checked_strength(name: str, value: Any, n_columns: int, zero_allowed: bool, infinity_allowed: bool) -> Array | None:
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
            f"{name} has shape {array.shape}, but X has {counted(n_columns, 'column')}: give one number, or one per "
            "column."
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
            raise ValueError(f"The mask always_keep has length {len(entries)}; X has {counted(n_columns, 'column')}.")
        return [int(j) for j in np.flatnonzero(entries)]
    numbers = sorted(_column_number(entry, n_columns, names) for entry in entries)
    if len(set(numbers)) < len(numbers):
        raise ValueError("always_keep names a column twice. If it is a mask, write True and False, not 1 and 0.")
    return numbers


def _column_number(entry: Any, n_columns: int, names: NDArray[Any] | None) -> int:
    if isinstance(entry, str):
        known = [] if names is None else list(names)
        if entry not in known:
            where = "X has no column names" if names is None else f"X has the columns {', '.join(map(str, known[:20]))}"
            raise ValueError(f"always_keep names the column {entry!r}, but {where}.")
        return known.index(entry)
    number = int(entry) if isinstance(entry, Integral) and not isinstance(entry, bool) else n_columns
    if not -n_columns <= number < n_columns:
        raise ValueError(f"always_keep has {entry!r}; X has {counted(n_columns, 'column')}, numbered from 0.")
    return number % n_columns


def dense(block: Any) -> Array:
    """Return columns as an array of their own."""
    return np.array(block.toarray() if hasattr(block, "toarray") else block, dtype=float)
