"""Archives that are cut, changed, bloated or not model files at all are refused, and cost next to no memory."""

from __future__ import annotations

import io
import json
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

from ardea import MSTSBL, SparseARD
from ardea.saving import ModelFileError, load, save
from ardea.saving.content import FORMAT_VERSION
from conftest import sparse_data

DATA = sparse_data()


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    save(MSTSBL(tau=0.5).fit(DATA.X, DATA.y), path)
    return path.read_bytes()


def entries_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(entries, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return buffer.getvalue()


def with_header(content, change):
    """Change the header of a file, keeping the archive sound."""
    entries = entries_of(content)
    header = json.loads(entries["header.json"])
    header = change(header) or header
    entries["header.json"] = json.dumps(header).encode()
    return archive_of(entries.items())


def with_array(content, number, data):
    """Replace an array entry."""
    return archive_of((entries_of(content) | {f"arrays/{number}.npy": data}).items())


def refused(content, folder, match=r"."):
    (folder / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match=match):
        load(folder / "model")


def test_every_cut_is_refused(content, tmp_path):
    for length in [*range(0, 200, 7), *range(200, len(content), 411), len(content) - 1]:
        refused(content[:length], tmp_path)


def test_every_changed_byte_is_refused_or_harmless(content, tmp_path):
    """Entry by entry the archive has checksums; what they do not cover (dates) does not matter."""
    (tmp_path / "model").write_bytes(content)
    whole = load(tmp_path / "model")
    accepted = 0
    places = {*range(0, len(content), 29), *range(len(content) - 120, len(content))}
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 0x41
        (tmp_path / "model").write_bytes(changed)
        try:
            model = load(tmp_path / "model")
        except ModelFileError:
            continue
        accepted += 1
        assert model.predict(DATA.X).tobytes() == whole.predict(DATA.X).tobytes()
    assert accepted < len(places) / 4


def test_the_message_names_the_file(tmp_path):
    refused(b"not a zip", tmp_path, match=r"model: this is not a model file\. Give a file that ardea\.save wrote")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_later_formats_are_refused(content, tmp_path):
    def later(header):
        header |= {"format_version": FORMAT_VERSION + 1, "ardea_version": "9.0", "model": {"something": "new"}}

    refused(with_header(content, later), tmp_path, match=r"format version 2, written by ardea 9\.0.*later ardea")


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, None, True])
def test_bad_versions(content, version, tmp_path):
    refused(with_header(content, lambda h: {**h, "format_version": version}), tmp_path)


def test_pickles_are_not_read(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    refused(pickle.dumps(Bomb()), tmp_path, match="not a model file")
    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    model = SparseARD().fit(DATA.X, DATA.y)
    save(model, tmp_path / "model")
    refused(with_array((tmp_path / "model").read_bytes(), 0, buffer.getvalue()), tmp_path, match="array of numbers")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "arrays/9999.npy", "arrays/../../x", "header.json/", "C:\\x"])
def test_entries_that_do_not_belong(content, name, tmp_path):
    changed = archive_of([*entries_of(content).items(), (name, b"x")])
    refused(changed, tmp_path, match="does not belong")
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_repeated_entries(content, tmp_path):
    entries = entries_of(content)
    refused(archive_of([*entries.items(), ("arrays/0.npy", entries["arrays/0.npy"])]), tmp_path, match="same name")


def test_compressed_entries(content, tmp_path):
    refused(archive_of(entries_of(content).items(), zipfile.ZIP_DEFLATED), tmp_path, match="compressed")


def test_a_zip_bomb_is_not_unpacked(content, tmp_path):
    entries = entries_of(content) | {"arrays/0.npy": bytes(50_000_000)}
    bomb = archive_of(entries.items(), zipfile.ZIP_DEFLATED)
    assert len(bomb) < 200_000
    tracemalloc.start()
    refused(bomb, tmp_path, match="compressed")
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_entries_that_overlap(content, tmp_path):
    """Many entries that share the same bytes would be read many times."""
    big = archive_of([("header.json", b"{}"), ("arrays/0.npy", bytes(100_000))])
    with zipfile.ZipFile(io.BytesIO(big)) as archive:
        last = archive.infolist()[-1]
    buffer = io.BytesIO(big)
    with zipfile.ZipFile(buffer, "a") as archive:
        for i in range(1, 50):
            twin = zipfile.ZipInfo(f"arrays/{i}.npy")
            twin.header_offset, twin.file_size, twin.compress_size = last.header_offset, last.file_size, last.file_size
            twin.CRC = last.CRC
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
        archive._didModify = True
    refused(buffer.getvalue(), tmp_path, match="larger than the file|damaged")


def npy_bytes(shape, body, descr="<f8", order="False"):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


BAD_ARRAYS = {
    "too large a shape": npy_bytes("(1000000000000,)", bytes(96)),
    "a shape that overflows": npy_bytes("(4294967296, 4294967296)", bytes(96)),
    "too small a shape": npy_bytes("(3,)", bytes(96)),
    "a negative shape": npy_bytes("(-1,)", bytes(96)),
    "empty but vast": npy_bytes("(0, 1000000000000)", b""),
    "objects": npy_bytes("(12,)", bytes(96), "|O"),
    "text": npy_bytes("(12,)", bytes(96), "<U2"),
    "records": npy_bytes("(12,)", bytes(96), "<f8,<f8"),
    "complex": npy_bytes("(6,)", bytes(96), "<c16"),
    "code": npy_bytes("(12,) + (1,)", bytes(96)),
    "five axes": npy_bytes("(1, 1, 1, 1, 12)", bytes(96)),
    "nothing": b"",
    "half a header": npy_bytes("(12,)", bytes(96))[:40],
    "a wrong length of header": npy_bytes("(12,)", bytes(96))[:8] + b"\x00\x00" + npy_bytes("(12,)", bytes(96))[10:],
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_arrays(content, case, tmp_path):
    variances = json.loads(entries_of(content)["header.json"])["model"]["found"]["found"]["kept"][0]["prior_variance"]
    tracemalloc.start()
    refused(with_array(content, variances["#array"], BAD_ARRAYS[case]), tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


START = b'{"format": "ardea model", "format_version": 1, "model": '
BAD_HEADERS = {
    "not JSON": b"{",
    "not text": b"\xff\xfe",
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "a huge number": b'{"format": "ardea model", "format_version": ' + b"9" * 10_000 + b"}",
    "NaN": START + b"NaN}",
    "only a number": START + b"3}",
    "no kind": START + b"{}}",
    "a prior": START + b'{"#made": "Flat"}}',
    "an unfitted model": START + b'{"kind": "ARD", "parameters": {}}}',
    "an unfitted model of its own": START + b'{"#made": "ARD"}}',
    "an unknown class": START + b'{"kind": "os.system", "parameters": {"command": "true"}}}',
    "an unknown class inside": START + b'{"kind": "ARD", "parameters": {"tol": {"#made": "os.system"}}}}',
    "a strange key": START + b'{"kind": "ARD", "parameters": {"tol": {"#code": "1"}}}}',
    "two keys": START + b'{"kind": "ARD", "parameters": {"tol": {"#float": "nan", "#tuple": []}}}}',
    "an array that is not there": START + b'{"kind": "ARD", "parameters": {"tol": {"#array": 0}}}}',
}


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_bad_headers(case, tmp_path):
    refused(archive_of([("header.json", BAD_HEADERS[case])]), tmp_path)


def test_an_empty_archive(tmp_path):
    refused(archive_of([]), tmp_path, match="not a model file")
    refused(archive_of([("a", b"")]), tmp_path, match="zip file without a model")
