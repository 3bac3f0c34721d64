"""Arrays in files: NPY, NPZ, NetCDF and Zarr, never unpickled."""

from __future__ import annotations

import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ardea.core.memory import require

# What a damaged NPY or NPZ file makes NumPy, and the modules it reads headers and archives with, raise.
NPY_DAMAGE = (
    zipfile.BadZipFile,
    tokenize.TokenError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,  # also RecursionError, and NotImplementedError for unknown compressions
    SyntaxError,
    TypeError,
    ValueError,
)
IN_PARTS = "Give a part of it, or a table that can be read in blocks (CSV, NPY, Parquet)."


@dataclass(frozen=True)
class NamedArray:
    """An array, which may be read only when it is sliced, and the names of its axes where the file tells them."""

    values: Any
    axes: tuple[str, ...] | None = None


def read_arrays(path: Path) -> dict[str, NamedArray]:
    """Return the arrays of an NPZ, NetCDF or Zarr file by name, or the one of an NPY file under the name ""."""
    ending = path.suffix.lower()
    if ending == ".npy":
        return {"": NamedArray(NpyFile(path))}
    if ending == ".npz":
        return {name: NamedArray(values) for name, values in _archive(path).items()}
    if ending == ".zarr":
        plain = _zarr_arrays(path)
        if any(_dimensions(one) is None for one in plain.values()):
            return {name: NamedArray(values) for name, values in plain.items()}
    return _dataset(path)


class NpyFile:
    """A two-dimensional array in NumPy's format, read in slices of rows; never unpickled.

    Not mapped into memory: a map counts against limits on addresses as a whole, and a file that is cut while it is
    mapped kills the process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self.shape, self._by_columns, self.dtype = _npy_header(file)
                self._start = file.tell()
        except NPY_DAMAGE as error:
            raise ValueError(f"{path} cannot be read as an array of numbers: {error}") from error
        self.ndim = len(self.shape)
        promised, there = math.prod(self.shape) * self.dtype.itemsize, path.stat().st_size - self._start
        if promised > there:
            raise ValueError(f"{path} cannot be read: its {promised} bytes of numbers are cut short at {there}.")

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        width = math.prod(self.shape[1:])
        with self.path.open("rb") as file:
            if not self._by_columns or self.ndim == 1:
                return self._stored(file, start * width, (stop - start) * width).reshape(stop - start, *self.shape[1:])
            columns = [self._stored(file, j * self.shape[0] + start, stop - start) for j in range(width)]
            return np.column_stack(columns)

    def _stored(self, file: Any, first: int, count: int) -> NDArray[Any]:
        """Return numbers as they follow each other in the file."""
        file.seek(self._start + first * self.dtype.itemsize)
        numbers = np.fromfile(file, self.dtype, count)
        if numbers.size < count:
            raise ValueError(f"{self.path} was cut short while it was read.")
        return numbers


def _npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns lie together, and type; the file stands at the first number then."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it is of version {version[0]}.{version[1]}, which tables of numbers do not need")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = read(file)
    if dtype.hasobject or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("it holds objects, which could run code" if dtype.hasobject else f"its shape is {shape}")
    return shape, by_columns, dtype


def _archive(path: Path) -> dict[str, NDArray[Any]]:
    """Return all arrays of an NPZ file by name; never unpickled."""
    with path.open("rb") as file:
        try:
            content = np.load(file, allow_pickle=False)
            if isinstance(content, np.ndarray):
                raise ValueError("it holds one array without a name; let its name end in .npy")
            entries = content.zip.infolist()
            if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
                raise ValueError("it is not packed as NumPy does")
            # An entry never gives more bytes than the archive says it has.
            require(sum(entry.file_size for entry in entries), f"{path}, unpacked,", IN_PARTS)
            return {name: _sound(content[name], name) for name in content.files}
        except NPY_DAMAGE as error:
            raise ValueError(f"{path} cannot be read as arrays of numbers: {error}") from error


def _sound(entry: Any, name: str) -> NDArray[Any]:
    if not isinstance(entry, np.ndarray):
        raise ValueError(f"the entry {name!r} is no array")
    if entry.ndim > 1 and not entry.size:
        raise ValueError(f"the entry {name!r} of shape {entry.shape} is empty")
    return entry


def _zarr_arrays(path: Path) -> dict[str, Any]:
    """Open a Zarr array (under the name "") or the arrays of a group; any that would be unpickled is refused."""
    try:
        import zarr
    except ImportError as error:
        raise ImportError("Zarr needs the package zarr: pip install 'ardea[fields]'.") from error
    try:
        store: Any = zarr.open(path, mode="r")
        arrays = {"": store} if hasattr(store, "shape") else dict(sorted(store.arrays()))
        codecs = [codec for array in arrays.values() for codec in (*array.filters, *array.compressors)]
    except Exception as error:  # zarr raises errors of many kinds
        raise ValueError(f"{path} cannot be read as Zarr: {error}") from error
    if any("pickle" in f"{type(codec).__module__} {type(codec).__name__}".lower() for codec in codecs):
        raise ValueError(f"{path} holds pickled data, which is never read: it could run code.")
    return arrays


def _dimensions(array: Any) -> Any:
    """Return the names of the axes of a Zarr array, which xarray writes; None where there are none."""
    return getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")


def _dataset(path: Path) -> dict[str, NamedArray]:
    """Return the variables of a NetCDF or Zarr file as xarray decodes them: fill values are gaps, times are dates."""
    try:
        import xarray
    except ImportError as error:
        raise ImportError("NetCDF and Zarr need xarray: pip install 'ardea[fields]'.") from error
    engine: dict[str, Any] = {"engine": "zarr", "consolidated": False} if path.suffix.lower() == ".zarr" else {}
    try:
        with xarray.open_dataset(path, **engine) as data:
            require(data.nbytes, f"{path} as a whole", IN_PARTS)
            variables = data.variables.items()
            return {str(name): NamedArray(np.asarray(one.values), tuple(map(str, one.dims))) for name, one in variables}
    except MemoryError:
        raise
    except Exception as error:  # the packages behind xarray raise errors of many kinds
        raise ValueError(f"{path} cannot be read: {error}") from error
