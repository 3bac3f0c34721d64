"""Model files: a tree of plain values in one zip archive, checked value by value as it is taken.

The entries are stored uncompressed, so that nothing in a file can be larger than the file:

``header.json``
    ``format`` ("ardea model"), ``format_version``, ``ardea_version`` and ``model``, a tree of JSON values in which an
    object with one of these keys stands for something else:

    ==========  ======================================================================================================
    ``#array``  the number of an array entry; every entry is used once
    ``#float``  "inf", "-inf" or "nan"
    ``#tuple``  a tuple
    ``#made``   the name of an estimator, prior or library, with its arguments beside it
    ==========  ======================================================================================================

``arrays/0.npy``, ``arrays/1.npy``, …
    64-bit floats, 64-bit whole numbers and booleans, in NumPy's format, version 1.0. Any NumPy can read them.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from ardea import __version__
from ardea.tables.writing import whole_file

FORMAT, FORMAT_VERSION = "ardea model", 1
HEADER_NAME, ARRAY_NAME = "header.json", "arrays/{}.npy"
LARGEST_HEADER = 2**27  # bytes; a convention: the names of ten million columns
ZIP_START = b"PK\x03\x04"  # of the zip format
LONGEST_QUOTE = 40  # characters of a stranger's text in a message; a convention
# Numbers are finite unless told otherwise; whole numbers are those that floats hold exactly.
LARGEST, LARGEST_WHOLE = float(np.finfo(float).max), 2**53
# What numpy.lib.format writes in version 1.0 for the types that are stored.
NPY_START = re.compile(
    rb"\x93NUMPY\x01\x00(?s:..)\{'descr': '(<f8|<i8|\|b1)', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18},? ?)*)\), \} *\n"
)
STORED_TYPES = {"f": "<f8", "i": "<i8", "u": "<i8", "b": "|b1"}
# How an object is taken apart, given its place in the tree, into the name of its class and its arguments; and back.
TakeApart = Callable[[Any, str], tuple[str, dict[str, Any]]]
PutTogether = Callable[[str, dict[str, Any]], Any]


class ModelFileError(ValueError):
    """A model cannot be saved, or a file cannot be read as one; the message says why and what to do."""


def require(condition: Any, where: str, what: str) -> None:
    """Refuse a file unless the condition holds; `where` is not `what`."""
    if not condition:
        raise ModelFileError(f"{where} is not {what}. The file is damaged; get it again.")


# Writing


def write_archive(path: str | os.PathLike[str], model: dict[str, Any], take_apart: TakeApart) -> None:
    """Write a tree of values, whole or not at all; equal trees give equal files."""
    arrays: list[bytes] = []
    tree = _encoded(model, str(model["kind"]), arrays, take_apart)
    header = {"format": FORMAT, "format_version": FORMAT_VERSION, "ardea_version": __version__, "model": tree}
    text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
    entries = [(HEADER_NAME, text.encode()), *((ARRAY_NAME.format(i), content) for i, content in enumerate(arrays))]
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content)  # of fixed date


def _encoded(value: Any, where: str, arrays: list[bytes], take_apart: TakeApart) -> Any:
    """Return a value as JSON has it, and add its arrays to the list; `where` names it in messages."""
    if isinstance(value, np.generic):
        value = value.item()
    if hasattr(value, "__array__") and not isinstance(value, type):
        array = np.asarray(value)
        if array.dtype.kind in STORED_TYPES and array.ndim <= 2:
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
        return [_encoded(item, f"{where}[{i}]", arrays, take_apart) for i, item in enumerate(value)]
    if type(value) is tuple:
        return {"#tuple": _encoded(list(value), where, arrays, take_apart)}
    name, items = (None, value) if type(value) is dict else take_apart(value, where)
    if not all(type(key) is str and not key.startswith("#") for key in items):
        raise ModelFileError(f"{where} has keys that are not text, or begin with #: give it others.")
    inner = {key: _encoded(item, f"{where}.{key}", arrays, take_apart) for key, item in items.items()}
    return inner if name is None else {"#made": name, **inner}


# Reading


@contextmanager
def opened_archive(path: str | os.PathLike[str], put_together: PutTogether) -> Iterator[Part]:
    """Give the tree of a file to a block that takes every value; whatever goes wrong there is the file's fault."""
    place = Path(path)
    with place.open("rb") as file:
        try:
            with np.errstate(all="ignore"):  # of numbers that no fit gives; what comes of them is checked
                model = Part(_read_tree(file, put_together), "model")
                yield model
            model.check_all_taken()
        except ModelFileError as error:
            raise ModelFileError(f"{place}: {error}") from error.__cause__
        except (MemoryError, OSError):
            raise
        except Exception as error:  # readers of zip and JSON, constructors and solvers raise errors of many kinds
            raise ModelFileError(
                f"{place}: the file is damaged ({error}). Get it again, or save the model again."
            ) from error


def _read_tree(file: BinaryIO, put_together: PutTogether) -> Any:
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
    model = _decoded(tree, arrays, put_together)
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
    match = NPY_START.match(content)
    if match is None:
        raise ModelFileError(f"{where} is not an array of numbers. The file is damaged; get it again.")
    dtype = np.dtype(match[1].decode())
    shape = tuple(int(size) for size in match[3].split(b",") if size.strip())
    body = len(content) - match.end()
    require(int.from_bytes(content[8:10], "little") == match.end() - 10, where, "an array with a whole header")
    sound = len(shape) <= 2 and math.prod(shape) * dtype.itemsize == body
    require(sound, where, f"an array of the {body} bytes stored")
    flat = np.frombuffer(content, dtype, offset=match.end()).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if match[2] == b"True" else "C")


def _decoded(tree: Any, arrays: dict[int, Any], put_together: PutTogether) -> Any:
    """Return the value that JSON stands for; its arrays are taken out of the dictionary."""
    if isinstance(tree, list):
        return [_decoded(item, arrays, put_together) for item in tree]
    if not isinstance(tree, dict):
        require(not isinstance(tree, float) or math.isfinite(tree), "the header", "made of finite numbers")
        return tree
    inner = {key: _decoded(item, arrays, put_together) for key, item in tree.items()}
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


class Part:
    """A part of a model's tree: every value is checked when it is taken, and every value must be taken."""

    def __init__(self, values: Any, where: str) -> None:
        require(isinstance(values, dict), where, "a set of values with names")
        self._values: dict[str, Any] = dict(values)
        self._inner: list[Part] = []
        self.where = where

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def size(self, name: str) -> int:
        """Return the size of a list or an array that is still to be taken."""
        value = self._values.get(name)
        return len(value) if isinstance(value, list) else np.size(value) if isinstance(value, np.ndarray) else 0

    def check_all_taken(self) -> None:
        """Refuse a file that holds more than was taken."""
        left = next(iter(self._values), "")[:LONGEST_QUOTE]
        require(not self._values, f"{self.where}.{left}", "a value of such a model")
        for part in self._inner:
            part.check_all_taken()

    def value(self, name: str, what: str = "there", *kinds: type) -> Any:
        """Return a value of one of some types, of any where none is given."""
        sound = name in self._values and (not kinds or type(self._values[name]) in kinds)
        require(sound, f"{self.where}.{name}", what)
        return self._values.pop(name)

    def text(self, name: str, choices: Collection[str] | None = None) -> str:
        """Return a text, one of the choices where they are given."""
        value: str = self.value(name, "text", str)
        require(choices is None or value in choices, f"{self.where}.{name}", "one of the known names")
        return value

    def texts(self, name: str, size: int | None = None) -> list[str]:
        """Return a list of texts, so many where that is given."""
        values: list[str] = self.value(name, "a list of texts", list)
        sound = all(type(value) is str for value in values) and size in {None, len(values)}
        require(sound, f"{self.where}.{name}", "a list of texts, one for each")
        return values

    def truth(self, name: str) -> bool:
        """Return True or False."""
        value: bool = self.value(name, "true or false", bool)
        return value

    def whole(self, name: str, least: int = 0, largest: int = LARGEST_WHOLE) -> int:
        """Return a whole number within bounds."""
        value: int = self.value(name, "a whole number", int)
        require(least <= value <= largest, f"{self.where}.{name}", f"a whole number from {least} to {largest}")
        return value

    def number(self, name: str, least: float = -LARGEST, largest: float = LARGEST) -> float:
        """Return a number within bounds."""
        value = float(self.value(name, "a number", float, int))
        require(least <= value <= largest, f"{self.where}.{name}", f"a number from {least:g} to {largest:g}")
        return value

    def array_of(self, name: str, shape: tuple[int | None, ...], kind: str) -> Any:
        """Return an array of a shape, None for any size, of floats ("f"), whole numbers ("i") or truth values ("b")."""
        value = self.value(name, "an array", np.ndarray)
        fits = len(shape) == value.ndim and all(n in {None, m} for n, m in zip(shape, value.shape, strict=True))
        require(value.dtype.kind == kind and fits, f"{self.where}.{name}", f"an array of shape {shape}")
        return value

    def array(
        self,
        name: str,
        shape: tuple[int | None, ...],
        least: float = -LARGEST,
        largest: float = LARGEST,
        kind: str = "f",
    ) -> Any:
        """Return an array of numbers within bounds."""
        value = self.array_of(name, shape, kind)
        require(np.all((value >= least) & (value <= largest)), f"{self.where}.{name}", "made of numbers within bounds")
        return value

    def indices(self, name: str, size: int) -> Any:
        """Return increasing whole numbers below a size."""
        value = self.array(name, (None,), 0, size - 1, "i")
        require(np.all(np.diff(value) > 0), f"{self.where}.{name}", "made of increasing numbers")
        return value.astype(np.intp)

    def part(self, name: str) -> Part:
        """Return a part of this part."""
        return self._within(self.value(name), name)

    def parts(self, name: str) -> list[Part]:
        """Return a list of parts."""
        values = self.value(name, "a list", list)
        return [self._within(value, f"{name}[{number}]") for number, value in enumerate(values)]

    def _within(self, values: Any, name: str) -> Part:
        self._inner.append(Part(values, f"{self.where}.{name}"))
        return self._inner[-1]
