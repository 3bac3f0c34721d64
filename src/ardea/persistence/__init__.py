"""Saving and loading models: no pickle, and nothing in a file is ever run.

A model file is a zip archive whose entries are stored uncompressed, so that nothing in it can be larger than the file:

``header.json``
    ``format`` ("ardea model"), ``format_version``, ``ardea_version``, ``arrays`` (SHA-256 of every array entry, in
    order) and ``model``, a tree of values.
``arrays/0.npy``, ``arrays/1.npy``, …
    Numbers, booleans and whole numbers, in NumPy's format, version 1.0. Any NumPy can read them.

In the tree None, booleans, text, whole numbers and finite floats stand for themselves (floats are written so that they
come back with the same bits), lists for lists, and an object with one of these keys for the rest:

=============  =====================================================================================================
``float``      "inf", "-inf" or "nan"
``scalar``     a NumPy scalar: its type, and ``value``
``array``      the number of an array entry; every entry is used once
``strings``    an array of text, with ``object`` telling whether its type is object
``tuple``      a tuple
``dict``       a dict with text for keys
``kind``       an object of one of the classes listed in this module, and ``fields``, what it is put together from
=============  =====================================================================================================

An estimator has the fields ``parameters`` (of its constructor) and ``attributes`` (what `fit` set). Files are read by
the same and later versions of Ardea; a file of a later format version is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ardea.persistence.archive import (
    ARRAY_NAME,
    FORMAT,
    FORMAT_VERSION,
    HEADER_NAME,
    ZIP_START,
    checked_entries,
    read_header,
    write_archive,
)
from ardea.persistence.kinds import kind_of
from ardea.persistence.refusal import ModelFileError
from ardea.persistence.tree import Reader, Writer
from ardea.versions import __version__

__all__ = ["ModelFileError", "load", "save"]

# What a damaged file makes the zip reader, the JSON reader and the constructors raise.
DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RuntimeError,  # also RecursionError and NotImplementedError
    TypeError,
    ValueError,
)


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    The same model gives the same bytes. The file appears whole or not at all: it is written beside its place and
    renamed. A stream of blocks (`partial_fit`) is stored with its state and can be continued after loading.

    Parameters
    ----------
    model : estimator of ardea, ARDSearch or ardea.dynamics.Discovery
        Fitted. Priors of `ardea.priors` and libraries of `ardea.dynamics` are stored; functions of your own are code
        and are refused. A `Discovery` is stored without its data, so `inclusion` cannot be asked of it afterwards.
    path : path
        Where to write. An existing file is replaced.

    Raises
    ------
    ModelFileError
        If the model holds something that the format does not.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import ardea
    >>> from ardea.persistence import load, save
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> model = ardea.SparseARD().fit(X, 2 * X[:, 3] + rng.normal(size=100))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "model.ardea"
    ...     save(model, file)
    ...     again = load(file)
    >>> bool(np.all(again.predict(X) == model.predict(X)))
    True
    """
    kind = kind_of(model)
    if kind is None or not issubclass(kind.cls, BaseEstimator):
        raise ModelFileError(
            f"A {type(model).__name__} cannot be saved: only fitted estimators of ardea can. In a pipeline, save its "
            "last step."
        )
    check_is_fitted(model)
    writer = Writer()
    tree = writer.encoded(model, type(model).__name__)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "ardea_version": __version__,
        "arrays": [hashlib.sha256(content).hexdigest() for content in writer.arrays],
        "model": tree,
    }
    text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
    entries = [(HEADER_NAME, text.encode())]
    entries += [(ARRAY_NAME.format(i), content) for i, content in enumerate(writer.arrays)]
    write_archive(Path(path), entries)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is run, and no more memory is used than a few times its size. Everything is checked before the
    model is returned.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator of ardea, ARDSearch or Discovery
        Equal to the model saved: the same predictions, intervals and draws, bit by bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, cut short, of a later format, or holds anything but a model.
    """
    place = Path(path)
    with place.open("rb") as file:
        try:
            return _read_model(file)
        except ModelFileError as error:
            raise ModelFileError(f"{place}: {error}") from error.__cause__
        except DAMAGE as error:
            raise ModelFileError(
                f"{place}: the file is damaged ({error}). Get it again, or save the model again."
            ) from error


def _read_model(file: BinaryIO) -> Any:
    if file.read(4) != ZIP_START:
        raise ModelFileError("this is not a model file. Give a file that ardea.save wrote.")
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        names = checked_entries(archive, size)
        header = read_header(archive)
        digests = header["arrays"]
        expected = {HEADER_NAME, *(ARRAY_NAME.format(i) for i in range(len(digests)))}
        if names != expected:
            wrong = sorted(names ^ expected)[0]
            raise ModelFileError(f"the entries are not those that the header lists ({wrong!r}). Get the file again.")
        reader = Reader(archive, digests)
        model = reader.decoded(header["model"], "model")
    if reader.used != set(range(len(digests))):
        raise ModelFileError("some arrays belong to nothing. Get the file again.")
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"the file holds a {type(model).__name__}, not a model.")
    check_is_fitted(model)
    return model
