"""Model files: what a file holds of a model, when it is sound, and how it lies in one zip archive.

The classes of these values are the format: a value is written as the arguments of its class, and read by giving them to
it again, after they were compared with the types that the class declares, with their sizes, and with bounds. Other
arguments of a class are another version of the format.

The entries are stored uncompressed, so that nothing in a file can be larger than the file:

``header.json``
    ``format`` ("ardea model"), ``format_version``, ``ardea_version`` and ``model``, a tree of JSON values in which an
    object with one of these keys stands for something else:

    ==========  ======================================================================================================
    ``#array``  the number of an array entry; every entry is used once
    ``#float``  "inf", "-inf" or "nan"
    ``#tuple``  a tuple
    ``#made``   the name of a class, with its arguments beside it: estimators, priors, libraries, and parts of a model
    ==========  ======================================================================================================

``arrays/0.npy``, ``arrays/1.npy``, …
    64-bit floats, 64-bit whole numbers and booleans, in NumPy's format, version 1.0. Any NumPy can read them.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, Literal, Union, get_args, get_origin

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ardea import __version__, priors
from ardea.core.compression import CompressedRows
from ardea.core.evidence import Tied
from ardea.core.loop import Dropped, Trace
from ardea.core.problem import Array, Columns, DenseColumns, FlatColumns, Problem
from ardea.dynamics.discovery import Discovery
from ardea.dynamics.field_terms import FieldTerms
from ardea.dynamics.libraries import Library, Polynomials, ProductOfLibraries, SumOfLibraries
from ardea.dynamics.models import FieldModel, StateModel
from ardea.dynamics.parametric import Decay, Fourier, Oscillation, Power, Rational, Saturation
from ardea.dynamics.series import SECONDS, Clock
from ardea.dynamics.states import Joint, KnownRows, KnownState
from ardea.equation import KeptTerms
from ardea.estimators.family import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDvi, SparseARD
from ardea.estimators.search import ARDSearch
from ardea.names import Rival
from ardea.tables import whole_file

FORMAT, FORMAT_VERSION = "ardea model", 1
# What files of before lack, and is this then.
LATER: dict[str, dict[str, Any]] = {"Table": {"series": "", "starts": []}, "Joint": {"rows": None}}
HEADER_NAME, ARRAY_NAME = "header.json", "arrays/{}.npy"
LARGEST_HEADER = 2**27  # bytes; a convention: the names of ten million columns
ZIP_START = b"PK\x03\x04"  # of the zip format
LONGEST_QUOTE, MOST_AXES = 40, 3  # characters of a stranger's text in a message (a convention); axes of arrays
STORED_TYPES = {"f": "<f8", "i": "<i8", "u": "<i8", "b": "|b1"}
# Numbers are finite unless told otherwise; whole numbers are those that floats hold exactly.
SMALLEST, LARGEST, LARGEST_WHOLE = float(np.finfo(float).tiny), float(np.finfo(float).max), 2**53
# Bound of the small problems, so that no product of two of their squares overflows; fits give numbers around 1.
LARGEST_IN_PROBLEM = 1e70
# Repeated terms of sums and products are left out, so a library may list more terms than it has.
LARGEST_REPETITION = 100


class ModelFileError(ValueError):
    """A model cannot be saved, or a file cannot be read as one; the message says why and what to do."""


def require(condition: Any, where: str, what: str) -> None:
    """Refuse a file unless the condition holds; `where` is not `what`."""
    if not condition:
        raise ModelFileError(f"{where} is not {what}. The file is damaged; get it again.")


@dataclass(frozen=True)
class Model:
    """A fitted model."""

    parameters: Any  # the estimator, of which its parameters are stored
    found: Regression | Choice | Motion
    table: Table | None


@dataclass(frozen=True)
class Table:
    """What the command line notes of the table that it read, to read others like it."""

    target: str
    time: str
    header: bool
    columns: int
    decimal: str | None
    na: list[str]  # cells that hold nothing, besides the usual ones
    levels: list[list[str]]  # a column of categories, and these
    products: list[list[str]]  # a product of columns, and these
    signs: list[list[str]]  # a column, and the sign or unit of its numbers
    starts: list[list[str | float]]  # a run, its first time, and the states then
    series: str = ""  # the column that tells several series apart


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
    KnownRows: {"mean": "rn", "gain": "rnk", "covariance": "rnn", "time": "r", "series": "r"},
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
    "distinct": (0.0, math.inf),
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
        given, later = {argument: getattr(value, argument) for argument in ARGUMENTS[name]}, LATER.get(name, {})
        return name, {key: one for key, one in given.items() if key not in later or one != later[key]}
    what = getattr(value, "__name__", name)
    if callable(value) or isinstance(value, priors.Prior | priors.Convex | Library):
        instead = "a library of ardea.dynamics (Saturation, Rational, Decay, Oscillation, Power)"
        use = f"Use {instead if isinstance(value, Library) else 'one of ardea.priors'}, or keep the code that fits it."
        why = "Code is not stored, since a file from a stranger must not run any."
        raise ModelFileError(f"{where} is code of your own ({what}). {why} {use}")
    told = f"{where} is of type {what}, which the format does not hold. Give numbers, text, lists or arrays."
    raise ModelFileError(told)


def put_together(name: str, arguments: dict[str, Any]) -> Any:
    """Return what a class makes of its arguments, checked where it is one of the values of a file."""
    require(name in MADE, name[:LONGEST_QUOTE], "a class that this version of ardea knows")
    cls, arguments = MADE[name], LATER.get(name, {}) | arguments
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
    """Whether it is symmetric without negative eigenvalues, beyond rounding."""
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
            known = 0 <= value.n_known < len(fields) and set(value.solved) <= set(measured)
            return grid and known and _sound_names(value, [*fields, *axes], len(fields), len(axes))
        case Motion():
            least_squares = all(kept.prior_variance is None for kept in value.kept)
            return least_squares and _is_clock(value.time_unit_, value.time_origin_)
        case KnownState():
            return np.isfinite(value.time) and is_covariance(value.covariance)
        case KnownRows():
            return value.in_order and all(map(is_covariance, value.covariance))
    return True


def _is_clock(unit: str | None, origin: str | None) -> bool:
    """Whether times can be counted in this unit from this date."""
    try:
        dated = origin is None or not np.isnat(Clock(unit, origin).zero)
    except ValueError:
        return False
    return dated and (unit in SECONDS if unit is not None else origin is None)


def _sound_names(model: StateModel | FieldModel, names: list[str], *sizes: int) -> bool:
    """Whether names differ, and a library of so many variables is not larger than the equations."""
    n, d = model.coefficients.shape
    return n >= 1 and len(set(names)) == len(names) and model.library.n_listed(*sizes) <= LARGEST_REPETITION * d


# The archive ----------------------------------------------------------------------------------------------------------


def write_archive(path: str | os.PathLike[str], name: str, model: Any) -> None:
    """Write a tree of values, whole or not at all; equal trees give equal files. `name` is the model's in messages."""
    arrays: list[bytes] = []
    tree = _encoded(model, name, arrays)
    header = {"format": FORMAT, "format_version": FORMAT_VERSION, "ardea_version": __version__, "model": tree}
    text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
    entries = [(HEADER_NAME, text.encode()), *((ARRAY_NAME.format(i), content) for i, content in enumerate(arrays))]
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for entry, content in entries:
            archive.writestr(zipfile.ZipInfo(entry), content)  # of fixed date


def _encoded(value: Any, where: str, arrays: list[bytes]) -> Any:
    """Return a value as JSON has it, and add its arrays to the list; `where` names it in messages."""
    if isinstance(value, np.generic):
        value = value.item()
    if hasattr(value, "__array__") and not isinstance(value, type):
        array = np.asarray(value)
        if array.dtype.kind in STORED_TYPES and array.ndim <= MOST_AXES:
            buffer = io.BytesIO()
            npy.write_array(buffer, array.astype(STORED_TYPES[array.dtype.kind], copy=False), (1, 0), False)
            arrays.append(buffer.getvalue())
            return {"#array": len(arrays) - 1}
        value = array.tolist()
    if value is None or type(value) in {bool, int, str} or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is float:
        return {"#float": repr(value)}
    if type(value) in {list, range}:
        return [_encoded(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
    if type(value) is tuple:
        return {"#tuple": _encoded(list(value), where, arrays)}
    name, items = (None, value) if type(value) is dict else take_apart(value, where)
    if not all(type(key) is str and not key.startswith("#") for key in items):
        raise ModelFileError(f"{where} has keys that are not text, or begin with #: give it others.")
    inner = {key: _encoded(item, f"{where}.{key}", arrays) for key, item in items.items()}
    return inner if name is None else {"#made": name, **inner}


@contextmanager
def opened_archive(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Give the tree of a file to a block that reads it; whatever goes wrong there is the file's fault."""
    place = Path(path)
    with place.open("rb") as file:
        try:
            with np.errstate(all="ignore"):  # of numbers that no fit gives; what comes of them is checked
                yield _read_tree(file)
        except ModelFileError as error:
            raise ModelFileError(f"{place}: {error}") from error.__cause__
        except (MemoryError, OSError):
            raise
        except Exception as error:  # readers of zip and JSON, constructors and solvers raise errors of many kinds
            told = f"{place}: the file is damaged ({error}). Get it again, or save the model again."
            raise ModelFileError(told) from error


def _read_tree(file: BinaryIO) -> Any:
    """Return the tree in a file, its arrays and objects in their places."""
    if file.read(len(ZIP_START)) != ZIP_START:
        raise ModelFileError("this is not a model file. Give a file that ardea.save wrote.")
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        names = _checked_entries(archive, size)
        tree = _read_header(archive)
        expected = [ARRAY_NAME.format(i) for i in range(len(names) - 1)]
        if names != {HEADER_NAME, *expected}:
            wrong = min(names - {HEADER_NAME, *expected})[:LONGEST_QUOTE]
            raise ModelFileError(f"the entry {wrong!r} does not belong to a model. Get the file again.")
        arrays = {number: _array_from(archive.read(name), name) for number, name in enumerate(expected)}
    model = _decoded(tree, arrays)
    require(not arrays, "every array", "a part of the model")
    return model


def _checked_entries(archive: zipfile.ZipFile, size: int) -> set[str]:
    """Return the names of all entries after checking that none is more than it seems."""
    entries = archive.infolist()
    names = {entry.filename for entry in entries}
    stored = (one.compress_type == zipfile.ZIP_STORED and one.file_size == one.compress_size for one in entries)
    for sound, said in (
        (len(names) == len(entries), "two entries have the same name"),
        (all(stored) and not any(one.flag_bits & 1 for one in entries), "an entry is compressed or encrypted"),
        (all(0 <= one.header_offset < size for one in entries), "an entry lies outside the file"),
        (sum(one.file_size for one in entries) <= size, "the entries claim to be larger than the file"),
    ):
        if not sound:
            raise ModelFileError(f"{said}. ardea.save does not write such files; get it again.")
    return names


def _read_header(archive: zipfile.ZipFile) -> Any:
    """Return the model's tree from the header, of a format that this version reads."""
    if HEADER_NAME not in archive.namelist():
        raise ModelFileError("this is a zip file without a model in it. Give a file that ardea.save wrote.")
    small = archive.getinfo(HEADER_NAME).file_size <= LARGEST_HEADER
    require(small, "the header", f"of at most {LARGEST_HEADER >> 20} MiB")
    header = json.loads(archive.read(HEADER_NAME).decode())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("this is not a model file. Give a file that ardea.save wrote.")
    version = header.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise ModelFileError(
            f"the file has format version {version}, written by ardea {str(header.get('ardea_version'))[:20]}; this is "
            f"ardea {__version__}, which reads up to version {FORMAT_VERSION}. Install a later ardea."
        )
    require(type(version) is int and version >= 1 and "model" in header, "the header", "that of a model")
    return header["model"]


def _array_from(content: bytes, where: str) -> Any:
    """Return the array in an .npy entry whose declared size is that of its bytes."""
    stream = io.BytesIO(content)
    require(npy.read_magic(stream) == (1, 0), where, "an array of version 1.0")
    shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    require(dtype.str in STORED_TYPES.values(), where, "an array of numbers")
    body = len(content) - stream.tell()
    sound = len(shape) <= MOST_AXES and min(shape, default=0) >= 0 and math.prod(shape) * dtype.itemsize == body
    require(sound, where, f"an array of the {body} bytes stored")
    flat = np.frombuffer(content, dtype, offset=stream.tell()).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if by_columns else "C")


def _decoded(tree: Any, arrays: dict[int, Any]) -> Any:
    """Return the value that JSON stands for; its arrays are taken out of the dictionary."""
    if isinstance(tree, list):
        return [_decoded(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        require(not isinstance(tree, float) or math.isfinite(tree), "the header", "made of finite numbers")
        return tree
    inner = {key: _decoded(item, arrays) for key, item in tree.items()}
    if "#made" in inner:
        name = inner.pop("#made")
        require(type(name) is str and not any(key.startswith("#") for key in inner), "#made", "the name of a class")
        return put_together(name, inner)
    if not any(key.startswith("#") for key in inner):
        return inner
    require(len(inner) == 1, "the model", "made of known values")
    ((kind, value),) = inner.items()
    if kind == "#array" and type(value) is int and value in arrays:
        return arrays.pop(value)
    if kind == "#tuple" and type(value) is list:
        return tuple(value)
    require(kind == "#float" and value in {"inf", "-inf", "nan"}, f"{kind[:LONGEST_QUOTE]}", "of a known value")
    return float(value)
