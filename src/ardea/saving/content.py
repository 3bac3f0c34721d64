"""What a file holds of a model, and when it is sound.

The classes of these values are the format: a value is written as the arguments of its class, and read by giving them to
it again, after they were compared with the types that the class declares, with their sizes, and with bounds. Other
arguments of a class are another version of the format.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from math import inf
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from ardea import priors
from ardea.core.compression import CompressedRows
from ardea.core.evidence import Tied
from ardea.core.loop import Dropped, Trace
from ardea.core.problem import Array, Columns, DenseColumns, FlatColumns, Problem
from ardea.dynamics.discovery import Discovery
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Fourier, Library, Polynomials, ProductOfLibraries, SumOfLibraries
from ardea.dynamics.models import FieldModel, StateModel
from ardea.dynamics.parametric import Decay, Oscillation, Power, Rational, Saturation
from ardea.dynamics.series import SECONDS
from ardea.dynamics.states import Joint, KnownState
from ardea.equation import KeptTerms
from ardea.estimators.family import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD
from ardea.estimators.search import ARDSearch
from ardea.names import Rival
from ardea.tables.archive import LONGEST_QUOTE, ModelFileError, require

# Numbers are finite unless told otherwise; whole numbers are those that floats hold exactly.
SMALLEST, LARGEST, LARGEST_WHOLE = float(np.finfo(float).tiny), float(np.finfo(float).max), 2**53
# Bound of the small problems, so that no product of two of their squares overflows; fits give numbers around 1.
LARGEST_IN_PROBLEM = 1e70
# Repeated terms of sums and products are left out, so a library may list more terms than it has.
LARGEST_REPETITION = 100


@dataclass(frozen=True)
class Model:
    """A fitted model."""

    parameters: Any  # the estimator, of which its parameters are stored
    found: Regression | Choice | Motion
    table: Table | None


@dataclass(frozen=True)
class Table:
    """What `ardea fit` notes of the table that it read, to read others like it."""

    target: str
    header: bool
    columns: int
    decimal: str | None
    na: list[str]  # cells that hold nothing, besides the usual ones
    levels: list[list[str]]  # a column of categories, and these
    products: list[list[str]]  # a product of columns, and these


@dataclass(frozen=True)
class Regression:
    """What an estimator found in its rows, or the rows of a stream."""

    one_target: bool
    single: bool  # whether X was in single precision
    names: list[str] | None
    output: Literal["default", "pandas", "polars"] | None
    found: Targets | CompressedRows


@dataclass(frozen=True)
class Targets:
    """What a fit found, target by target."""

    support: NDArray[np.bool_]  # of all columns: no file claims more of them than it has room for
    kept: list[KeptTerms]
    kkt_gap: list[float]
    n_iter: list[int]
    trace: list[Trace]
    effective_rows: list[float | None]  # None where no test could be trusted
    error_correlation: Array
    ranges: Array | None
    warnings: list[str]


@dataclass(frozen=True)
class Choice:
    """What a search chose, and from what."""

    best: Model
    path: dict[str, Any]
    warnings: list[str]


@dataclass(frozen=True)
class Motion:
    """What a discovery found, equation by equation."""

    model: StateModel | FieldModel  # its coefficients are 1 for terms that are kept, 0 for others
    kept: list[KeptTerms]
    rivals: list[tuple[Rival, ...]]
    equivalents: list[tuple[tuple[str, ...], ...]]
    joint_: Joint | None
    time_unit_: str | None
    time_origin_: str | None
    form_: Literal["trajectory", "weak", "derivative"]
    rows_used_: int | None
    noise_kind_: Literal["additive", "counts", "proportional", "mixed"] | None
    misfit_: Array | None
    process_noise_: Array | None
    process_growth_: Array | None
    warnings_: list[str]


# Shapes of arrays and lengths of lists: a letter is the same size in all arguments of a class.
SIZES: dict[type, dict[str, str]] = {
    **{cls: {} for cls in (Model, Table, Regression, Choice, Dropped, Rival)},
    Targets: dict.fromkeys(("kept", "kkt_gap", "n_iter", "trace", "effective_rows"), "t")
    | {"support": "td", "ranges": "2d"},
    Motion: dict.fromkeys(("kept", "rivals", "equivalents", "misfit_", "process_noise_"), "n")
    | {"process_growth_": "2n"},
    KeptTerms: {"active": "k", "prior_variance": "c", "unit": "c"},
    Tied: {"offset": "k", "directions": "kf", "signs": "k"},
    Problem: {"target": "r"},
    DenseColumns: {"matrix": "rk"},
    FlatColumns: {"kept": "f", "loadings": "pk", "target_loadings": "p", "inverse_gram": "pp"},
    Trace: {"cost": "s", "noise_variance": "s", "n_terms": "s"},
    CompressedRows: {"factor": "rc", "ranges": "2d", "digests": "h"},
    StateModel: {"coefficients": "nd", "reach": "n", "constants": "nc"},
    FieldModel: {"coefficients": "nd", "reach": "f", "fields": "f", "solved": "n", "axes": "a", "space": "a"},
    Joint: {"correlation": "kk"},
    KnownState: {"mean": "n", "gain": "nk", "covariance": "nn"},
}
# Least and largest value of the arguments of these names.
BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("matrix", "target"), (-LARGEST_IN_PROBLEM, LARGEST_IN_PROBLEM)),
    **dict.fromkeys(("rest", "floor", "n_parameters"), (0.0, LARGEST_IN_PROBLEM)),
    **dict.fromkeys(("n_rows", "noise", "prior_variance"), (SMALLEST, LARGEST_IN_PROBLEM)),
    **dict.fromkeys(("unit", "target_unit", "reach", "total_weight", "step"), (SMALLEST, LARGEST)),
    **dict.fromkeys(("misfit_", "process_noise_", "process_growth_"), (0.0, LARGEST)),
    **dict.fromkeys(("active", "kept", "n_terms"), (0, LARGEST_WHOLE)),
    **dict.fromkeys(("n_features", "n_samples"), (1, LARGEST_WHOLE)),
    "distinct": (0.0, inf),
    "correlation": (-1.0, 1.0),
    "order": (1, 2),
    "signs": (-1.0, 1.0),
}
ESTIMATORS = (ARD, ARDvi, ARDr, MSTSBL, LSTSBL, MAPSTSBL, SparseARD, ARDSearch, Discovery)
PRIORS = (
    *(priors.Flat, priors.CappedLinear, priors.Linear, priors.Tanh, priors.Log, priors.Gamma),
    *(priors.Bounds, priors.NegativeLog, priors.Both),
)
LIBRARIES = (
    *(Polynomials, Fourier, SumOfLibraries, ProductOfLibraries, FieldTerms),
    *(Saturation, Rational, Decay, Oscillation, Power),
)
# What a file can be made of; code of a user's own is not among it.
MADE: dict[str, type] = {cls.__name__: cls for cls in (*ESTIMATORS, *PRIORS, *LIBRARIES, *SIZES)}
# Their arguments, and the types of these where they are checked.
ARGUMENTS: dict[str, dict[str, Any]] = {
    name: {argument.name: argument.annotation for argument in signature(cls, eval_str=cls in SIZES).parameters.values()}
    for name, cls in MADE.items()
}


def take_apart(value: Any, where: str) -> tuple[str, dict[str, Any]]:
    """Return the class and the arguments of what a file can be made of."""
    name = type(value).__name__
    if MADE.get(name) is type(value):
        return name, {argument: getattr(value, argument) for argument in ARGUMENTS[name]}
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
    """Return what a class makes of its arguments, checked where it is one of the values of a file."""
    require(name in MADE, name[:LONGEST_QUOTE], "a class that this version of ardea knows")
    cls = MADE[name]
    require(arguments.keys() == ARGUMENTS[name].keys(), name, "a class with these arguments")
    if cls in SIZES:
        _check_arguments(cls, arguments)
    value = cls(**arguments)
    require(_is_sound(value), name, "made of values that belong together")
    return value


def _check_arguments(cls: type, arguments: dict[str, Any]) -> None:
    """Refuse arguments of other types, sizes or values than a class has."""
    types, met = ARGUMENTS[cls.__name__], {"2": 2}
    for name, value in arguments.items():
        what = f"{cls.__name__}.{name}"
        require(_is_a(value, types[name]), what, "of its type")
        if name in BOUNDS and isinstance(value, float | int | np.ndarray):
            least, largest = BOUNDS[name]
            require(np.all((value >= least) & (value <= largest)), what, "within its bounds")
        if value is not None and (sizes := SIZES[cls].get(name)):
            shape = value.shape if isinstance(value, np.ndarray) else (len(value),)
            same = all(size == met.setdefault(letter, size) for letter, size in zip(sizes, shape, strict=True))
            require(same, what, "of its size")


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; arrays are finite, and whole numbers count something or point at it."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return any(_is_a(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin in {list, tuple}:
        return type(value) is origin and all(_is_a(one, inner[0]) for one in value)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype == get_args(inner[1])[0] and bool(np.isfinite(value).all())
    if hint is int:
        return type(value) is int and 0 <= value <= LARGEST_WHOLE
    if hint is float:
        return type(value) in {int, float} and value == value
    return hint is Any or isinstance(value, DenseColumns if hint is Columns else origin or hint)


def is_covariance(matrix: Any) -> bool:
    """Whether a matrix is symmetric without negative eigenvalues, beyond rounding."""
    scale = np.sqrt(np.maximum(matrix.diagonal(), SMALLEST))
    scaled = matrix / np.outer(scale, scale)
    symmetric = np.allclose(scaled, scaled.T, 0, 1e-10)  # and finite
    return bool(symmetric and np.linalg.eigvalsh(scaled).min(initial=0.0) >= -1e-10 * len(matrix))


def _is_increasing(values: Any) -> bool:
    """Whether numbers increase."""
    return bool(np.all(np.diff(values) > 0))


def _in_order(ranges: Array | None) -> bool:
    """Whether ranges, where there are any, go from a least to a greatest value."""
    return ranges is None or bool(np.all(ranges[0] <= ranges[1]))


def _is_sound(value: Any) -> Any:
    """Whether the arguments of a value, each sound alone, belong together."""
    match value:
        case Targets():
            columns = [dropped.column for trace in value.trace for dropped in trace.dropped]
            sound = value.kept and all(kept.prior_variance is not None for kept in value.kept)
            return sound and max(columns, default=0) < value.support.shape[1] and _in_order(value.ranges)
        case KeptTerms(active=active, flat=flat):
            alone = _is_increasing(active) and not np.intersect1d(active, flat.kept).size
            shape = (active.size, value.problem.n_columns)
            fits = shape[0] == shape[1] if value.tied is None else value.tied.directions.shape == shape
            return alone and fits and shape[1] == flat.loadings.shape[1] == value.unit.size
        case Problem():
            return len(value.target) == value.columns.shape[0]
        case FlatColumns(kept=kept):
            sound = _is_increasing(kept) and len(value.loadings) == kept.size + value.intercept
            return sound and is_covariance(value.inverse_gram)
        case CompressedRows(factor=factor):  # √w·[1 Θ Y] or its triangle: the first column's norm is √Σw
            weight = np.isclose(factor[:, 0] @ factor[:, 0], value.total_weight, rtol=1e-9)
            seen = value.digests
            counted = seen is None or (0 < seen.size <= value.n_samples and _is_increasing(seen))
            return weight and counted and _in_order(value.ranges) and value.n_targets >= 1
        case StateModel(variables=names):
            flow = value.n_inputs > max(value.held, default=-1) and not (value.discrete_time and value.order == 2)
            return flow and _sound_names(value, names, len(names))
        case FieldModel(fields=fields, axes=axes):
            grid = 1 <= len(axes) <= 3 and all(one.ndim == 1 and _is_increasing(one) for one in value.space)
            measured = fields[: len(fields) - value.n_known]
            return (
                grid
                and 0 <= value.n_known < len(fields)
                and set(value.solved) <= set(measured)
                and _sound_names(value, [*fields, *axes], len(fields), len(axes))
            )
        case Motion():
            least_squares = all(kept.prior_variance is None for kept in value.kept)
            return least_squares and _is_clock(value.time_unit_, value.time_origin_)
        case KnownState():
            return np.isfinite(value.time) and is_covariance(value.covariance)
    return True


def _is_clock(unit: str | None, origin: str | None) -> bool:
    """Whether times can be counted in this unit from this date."""
    try:
        dated = origin is None or not np.isnat(np.datetime64(origin, "us"))
    except ValueError:
        return False
    return dated and (unit in SECONDS if unit is not None else origin is None)


def _sound_names(model: StateModel | FieldModel, names: list[str], *sizes: int) -> bool:
    """Whether names differ, and a library of so many variables is not larger than the equations."""
    n, d = model.coefficients.shape
    return n >= 1 and len(set(names)) == len(names) and model.library.n_listed(*sizes) <= LARGEST_REPETITION * d
