"""The zip archive: entries stored uncompressed, checked before any is read; the JSON header among them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ardea.persistence.refusal import ModelFileError
from ardea.tables.writing import whole_file
from ardea.versions import __version__

FORMAT, FORMAT_VERSION = "ardea model", 1
HEADER_NAME, ARRAY_NAME = "header.json", "arrays/{}.npy"
LARGEST_HEADER = 2**27
ZIP_START = b"PK\x03\x04"
LONGEST_QUOTE = 40


def write_archive(path: Path, entries: Iterable[tuple[str, bytes]]) -> None:
    """Write the entries, whole or not at all."""
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content)  # of fixed date, so that equal models are equal files


def checked_entries(archive: zipfile.ZipFile, size: int) -> set[str]:
    """Return the names of all entries after checking that none is more than it seems."""
    entries = archive.infolist()
    names = {entry.filename for entry in entries}
    if len(names) != len(entries):
        raise ModelFileError("two entries have the same name. ardea.save does not write such files.")
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size or entry.flag_bits & 1:
            raise ModelFileError(
                f"the entry {entry.filename[:LONGEST_QUOTE]!r} is compressed or encrypted. ardea.save does not write "
                "such files."
            )
    if not all(0 <= entry.header_offset < size for entry in entries):
        raise ModelFileError("an entry lies outside the file: it is damaged. Get it again.")
    if sum(entry.file_size for entry in entries) > size:
        raise ModelFileError("the entries claim to be larger than the file. It was cut short or made to do harm.")
    return names


def read_header(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Return the header, of a format that this version reads."""
    if HEADER_NAME not in archive.namelist():
        raise ModelFileError("this is a zip file without a model in it. Give a file that ardea.save wrote.")
    if archive.getinfo(HEADER_NAME).file_size > LARGEST_HEADER:
        raise ModelFileError(
            f"the header is larger than {LARGEST_HEADER >> 20} MiB. ardea.save does not write such files."
        )
    text = archive.read(HEADER_NAME).decode()
    header = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_dict_without_repeats)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("this is not a model file. Give a file that ardea.save wrote.")
    version = header.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise ModelFileError(
            f"the file has format version {version}, written by ardea {str(header.get('ardea_version'))[:20]}; this is "
            f"ardea {__version__}, which reads up to version {FORMAT_VERSION}. Install a later ardea."
        )
    if type(version) is not int or version < 1 or not isinstance(header.get("arrays"), list) or "model" not in header:
        raise ModelFileError("the header lacks what every model has. Get the file again.")
    return header


def _no_constant(name: str) -> None:
    raise ModelFileError(f"the header holds {name}, which is not JSON.")


def _dict_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelFileError("the header gives the same key twice.")
    return found
