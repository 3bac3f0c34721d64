"""Model files: a tree of plain values in one zip archive; what each value must be is in `ardea.saving.content`.

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
from collections.abc import Callable, Iterator
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


def write_archive(path: str | os.PathLike[str], name: str, model: Any, take_apart: TakeApart) -> None:
    """Write a tree of values, whole or not at all; equal trees give equal files. `name` is the model's in messages."""
    arrays: list[bytes] = []
    tree = _encoded(model, name, arrays, take_apart)
    header = {"format": FORMAT, "format_version": FORMAT_VERSION, "ardea_version": __version__, "model": tree}
    text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
    entries = [(HEADER_NAME, text.encode()), *((ARRAY_NAME.format(i), content) for i, content in enumerate(arrays))]
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for entry, content in entries:
            archive.writestr(zipfile.ZipInfo(entry), content)  # of fixed date


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
def opened_archive(path: str | os.PathLike[str], put_together: PutTogether) -> Iterator[Any]:
    """Give the tree of a file to a block that reads it; whatever goes wrong there is the file's fault."""
    place = Path(path)
    with place.open("rb") as file:
        try:
            with np.errstate(all="ignore"):  # of numbers that no fit gives; what comes of them is checked
                yield _read_tree(file, put_together)
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
    stream = io.BytesIO(content)
    require(npy.read_magic(stream) == (1, 0), where, "an array of version 1.0")
    shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    require(dtype.str in STORED_TYPES.values(), where, "an array of numbers")
    body = len(content) - stream.tell()
    sound = len(shape) <= 2 and min(shape, default=0) >= 0 and math.prod(shape) * dtype.itemsize == body
    require(sound, where, f"an array of the {body} bytes stored")
    flat = np.frombuffer(content, dtype, offset=stream.tell()).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if by_columns else "C")


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
