"""Values as a tree of JSON and numbered array entries, and back."""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ardea.persistence.archive import ARRAY_NAME
from ardea.persistence.kinds import kind_named, kind_of
from ardea.persistence.refusal import ModelFileError, require
from ardea.priors import Convex, Prior

# Arrays of text without the type object are names of methods and parameters.
LONGEST_NAME = 64
# What numpy.lib.format writes in version 1.0 for the types that a model holds.
NPY_START = re.compile(
    rb"\x93NUMPY\x01\x00(?s:..)\{'descr': '([<|][fiub][1248])', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18},? ?)*)\), \} *\n"
)
SCALAR_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


class Writer:
    """Turns a model into a tree and a list of array entries."""

    def __init__(self) -> None:
        self.arrays: list[bytes] = []

    def encoded(self, value: Any, where: str) -> Any:
        """Return the tree of a value; `where` names it in messages."""
        if isinstance(value, np.generic) and not isinstance(value, np.str_):
            return self._scalar(value, where)
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return str(value) if isinstance(value, str) else value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if type(value) in {list, range}:
            return [self.encoded(item, f"{where}[{i}]") for i, item in enumerate(value)]
        if type(value) is tuple:
            return {"tuple": [self.encoded(item, f"{where}[{i}]") for i, item in enumerate(value)]}
        if type(value) is dict and all(isinstance(key, str) for key in value):
            return {"dict": {str(key): self.encoded(item, f"{where}[{key!r}]") for key, item in value.items()}}
        kind = kind_of(value)
        if kind is not None:
            parts = kind.parts(value).items()
            return {
                "kind": type(value).__name__,
                "fields": {name: self.encoded(item, f"{where}.{name}") for name, item in parts},
            }
        if hasattr(value, "__array__") and not isinstance(value, type):
            return self._array(np.asarray(value), where)
        raise ModelFileError(_why_not(value, where))

    def _scalar(self, value: np.generic, where: str) -> Any:
        if value.dtype.name not in SCALAR_TYPES:
            raise ModelFileError(_why_not(value, where))
        return {"scalar": value.dtype.name, "value": self.encoded(value.item(), where)}

    def _array(self, array: np.ndarray[Any, Any], where: str) -> Any:
        if array.dtype.kind in "OU":
            return self._strings(array, where)
        if array.dtype.name not in SCALAR_TYPES:
            raise ModelFileError(f"{where} is an array of type {array.dtype}, which the format does not hold.")
        buffer = io.BytesIO()
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        npy.write_array(buffer, little, version=(1, 0), allow_pickle=False)
        self.arrays.append(buffer.getvalue())
        return {"array": len(self.arrays) - 1}

    @staticmethod
    def _strings(array: np.ndarray[Any, Any], where: str) -> Any:
        items = array.tolist()
        is_object = array.dtype.kind == "O"
        if array.ndim != 1 or not all(isinstance(item, str) for item in items):
            raise ModelFileError(f"{where} is an array of objects; only one-dimensional arrays of text are stored.")
        if not is_object and max(map(len, items), default=0) > LONGEST_NAME:
            raise ModelFileError(f"{where} holds text of more than {LONGEST_NAME} characters: give it the type object.")
        return {"strings": [str(item) for item in items], "object": is_object}


def _why_not(value: Any, where: str) -> str:
    what = getattr(value, "__name__", type(value).__name__)
    custom = isinstance(value, Prior | Convex) or what == "Custom"
    if custom or isinstance(value, FunctionType | BuiltinFunctionType | MethodType | np.ufunc):
        return (
            f"{where} is code of your own ({what}). Code is not stored, since a file from a stranger must not run any. "
            "Use one of ardea.priors, or keep the code that fits the model."
        )
    return f"{where} is of type {what}, which the format does not hold. Give numbers, text, lists or arrays."


class Reader:
    """Turns a tree and array entries into a model; every array entry is read once."""

    def __init__(self, archive: zipfile.ZipFile, digests: list[Any]) -> None:
        self.archive = archive
        self.digests = digests
        self.used: set[int] = set()

    def decoded(self, tree: Any, where: str) -> Any:
        """Return the value of a tree; `where` names it in messages."""
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        if isinstance(tree, list):
            return [self.decoded(item, f"{where}[{i}]") for i, item in enumerate(tree)]
        readers: dict[frozenset[str], Callable[[dict[str, Any], str], Any]] = {
            frozenset({"float"}): self._float,
            frozenset({"scalar", "value"}): self._scalar,
            frozenset({"array"}): self._array,
            frozenset({"strings", "object"}): self._strings,
            frozenset({"tuple"}): self._tuple,
            frozenset({"dict"}): self._dict,
            frozenset({"kind", "fields"}): self._object,
        }
        reader = readers.get(frozenset(tree))
        if reader is None:
            raise ModelFileError(f"{where} is of no known form. Get the file again.")
        return reader(tree, where)

    def _float(self, tree: dict[str, Any], where: str) -> float:
        require(tree["float"] in {"inf", "-inf", "nan"}, where, "a float")
        return float(tree["float"])

    def _scalar(self, tree: dict[str, Any], where: str) -> Any:
        name, value = tree["scalar"], self.decoded(tree["value"], where)
        require(name in SCALAR_TYPES and isinstance(value, bool | int | float), where, "a number")
        scalar = np.dtype(name).type(value)
        require(scalar == value or value != value, where, "a number of its type")
        return scalar

    def _array(self, tree: dict[str, Any], where: str) -> Any:
        number = tree["array"]
        require(type(number) is int and 0 <= number < len(self.digests), where, "an array of the file")
        require(number not in self.used, where, "an array of its own")
        self.used.add(number)
        content = self.archive.read(ARRAY_NAME.format(number))
        if hashlib.sha256(content).hexdigest() != self.digests[number]:
            raise ModelFileError(f"the checksum of {where} is wrong: the file is damaged. Get it again.")
        return array_from(content, where)

    def _strings(self, tree: dict[str, Any], where: str) -> Any:
        items, is_object = tree["strings"], tree["object"]
        require(isinstance(items, list) and all(isinstance(item, str) for item in items), where, "text")
        require(is_object or max(map(len, items), default=0) <= LONGEST_NAME, where, "text of ordinary length")
        return np.array(items, dtype=object if is_object else str)

    def _tuple(self, tree: dict[str, Any], where: str) -> tuple[Any, ...]:
        require(isinstance(tree["tuple"], list), where, "a tuple")
        return tuple(self.decoded(tree["tuple"], where))

    def _dict(self, tree: dict[str, Any], where: str) -> dict[str, Any]:
        require(isinstance(tree["dict"], dict), where, "a dict")
        return {key: self.decoded(item, f"{where}[{key!r}]") for key, item in tree["dict"].items()}

    def _object(self, tree: dict[str, Any], where: str) -> Any:
        name = tree["kind"]
        kind = kind_named(name) if isinstance(name, str) else None
        if kind is None:
            raise ModelFileError(
                f"{where} is a {str(name)[:LONGEST_NAME]!r}, which this version of ardea does not know."
            )
        require(isinstance(tree["fields"], dict), where, "a set of fields")
        parts = {key: self.decoded(item, f"{where}.{key}") for key, item in tree["fields"].items()}
        try:
            return kind.build(parts, where)
        except ModelFileError:
            raise
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"{where} is not a valid {name}: {error}") from error


def array_from(content: bytes, where: str) -> Any:
    """Return the array in an .npy entry whose declared size is that of its bytes."""
    match = NPY_START.match(content)
    if match is None:
        raise ModelFileError(f"{where} is not an array of numbers. The file is damaged; get it again.")
    dtype = np.dtype(match[1].decode())
    shape = tuple(int(size) for size in match[3].split(b",") if size.strip())
    body = len(content) - match.end()
    require(dtype.name in SCALAR_TYPES, where, "an array of numbers")
    require(int.from_bytes(content[8:10], "little") == match.end() - 10, where, "an array with a whole header")
    require(
        len(shape) <= 4 and math.prod(shape) * dtype.itemsize == body, where, f"an array of the {body} bytes stored"
    )
    flat = np.frombuffer(content, dtype, offset=match.end()).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if match[2] == b"True" else "C")
