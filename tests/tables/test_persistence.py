"""Models come back from their files bit by bit; files that are not whole models are refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import stat
import tracemalloc
import zipfile
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from ardea import ARD, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD, priors
from ardea.dynamics import Custom, Discovery, Fourier, Polynomials, systems
from ardea.persistence import ModelFileError, load, save
from ardea.persistence.archive import FORMAT_VERSION
from ardea.persistence.dynamics import DATA_ATTRIBUTES
from ardea.persistence.kinds import KINDS
from conftest import FAMILY, sparse_data

DATA = sparse_data()
NEW = sparse_data(seed=1).X
# NEW lies elsewhere than the rows fitted, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ExtrapolationWarning")
TWO = np.column_stack([DATA.y, 3 * DATA.X[:, 1] - DATA.y])
FRAME = pd.DataFrame(DATA.X, columns=[f"naïve {j}\n" for j in range(12)])


def again(model, folder):
    save(model, folder / "model")
    return load(folder / "model")


def assert_same(one, other, where="model"):
    """The same types, shapes, memory layouts and bits all the way down."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert one.shape == other.shape, where
        assert one.dtype == object or one.tobytes() == other.tobytes(), where
        assert one.tolist() == other.tolist() or np.isnan(one.astype(float)).any(), where
    elif isinstance(one, float | np.generic):
        assert np.array(one).tobytes() == np.array(other).tobytes(), where
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}[{i}]")
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif type(one).__module__.startswith("ardea."):
        first, second = vars(one), vars(other)
        assert first.keys() == second.keys(), where
        for name in first:
            assert_same(first[name], second[name], f"{where}.{name}")
    elif not callable(one):
        assert one == other, where


def assert_same_answers(one, other, X=NEW):
    assert_same(one.predict(X), other.predict(X))
    assert_same(one.predict(X, return_std=True), other.predict(X, return_std=True))
    model, twin = (m.best_estimator_ if isinstance(m, ARDSearch) else m for m in (one, other))
    for kind in ("posterior", "refit"):
        assert_same(model.credible_interval(0.9, kind), twin.credible_interval(0.9, kind))
        assert str(model.summary(kind=kind)) == str(twin.summary(kind=kind))
    assert_same(model.sample(7, random_state=5), twin.sample(7, random_state=5))
    if model.get_support().any():
        assert_same(model.transform(X), twin.transform(X))


# Round trips


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("targets", [DATA.y, TWO, TWO[:, :1]], ids=["one", "two", "one column"])
def test_round_trip(kind, fit_intercept, targets, tmp_path):
    model = kind(fit_intercept=fit_intercept).fit(DATA.X, targets)
    twin = again(model, tmp_path)
    assert_same(vars(model), vars(twin))
    assert repr(model) == repr(twin)
    assert_same_answers(model, twin)


CASES = {
    "names and kept columns": lambda: SparseARD(always_keep=["naïve 3\n", "naïve 0\n"]).fit(FRAME, DATA.y),
    "a mask": lambda: SparseARD(always_keep=np.arange(12) == 4).fit(DATA.X, TWO),
    "weights and known noise": lambda: SparseARD(noise_variance=0.25).fit(DATA.X, DATA.y, np.arange(80) % 3),
    "strengths by column": lambda: ARDvi(np.linspace(1, 5, 12)).fit(DATA.X, DATA.y),
    "infinite width": lambda: ARDr(2.0, np.inf).fit(DATA.X, DATA.y),
    "numpy parameters": lambda: MSTSBL(np.float32(0.5), max_iter=np.int64(300)).fit(DATA.X, DATA.y),
    "sparse": lambda: SparseARD().fit(sparse.csr_array(DATA.X), DATA.y),
    "more columns than rows": lambda: SparseARD(noise_variance=0.25).fit(DATA.X[:9], DATA.y[:9]),
    "single precision": lambda: SparseARD().fit(DATA.X.astype(np.float32), DATA.y),
    "nothing kept": lambda: SparseARD(false_terms=1e-9).fit(DATA.X, np.arange(80) % 2 * 1.0),
    "nothing to explain": lambda: SparseARD().fit(DATA.X, np.full(80, 3.0)),
    "pandas output": lambda: SparseARD().set_output(transform="pandas").fit(FRAME, DATA.y),
}


@pytest.mark.filterwarnings("ignore::ardea.estimators.advice.ConstantTargetWarning")
@pytest.mark.parametrize("case", CASES)
def test_round_trip_of_special_cases(case, tmp_path):
    model = CASES[case]()
    twin = again(model, tmp_path)
    assert_same(vars(model), vars(twin))
    if case == "pandas output":
        pd.testing.assert_frame_equal(model.transform(FRAME), twin.transform(FRAME))
    elif case == "names and kept columns":
        assert_same(model.predict(FRAME), twin.predict(FRAME))
        assert list(model.get_feature_names_out()) == list(twin.get_feature_names_out())
    else:
        assert_same_answers(model, twin)


PRIORS = [
    priors.Flat(),
    priors.CappedLinear(3.0, eta=0.1, over_noise=True),
    priors.CappedLinear(np.linspace(0, 2, 12), eta=[0.5] * 12),
    priors.Linear(0.3),
    priors.Linear(0.3, over_noise=True),
    priors.Tanh(1.0, 0.5),
    priors.Log(1.0, 2.0),
    priors.Gamma(0.5, 0.1),
    priors.Gamma(2.0, 0.1),
    priors.Bounds(0.0, 5.0),
    priors.Bounds(upper=np.full(12, 7.0)),
    priors.NegativeLog(0.2),
    priors.Linear(0.2) & priors.Bounds(0.0, 100.0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: type(prior).__name__)
def test_priors(prior, tmp_path):
    model = ARDr(prior=prior).fit(DATA.X, DATA.y)
    twin = again(model, tmp_path)
    assert_same(vars(model), vars(twin))
    assert_same_answers(model, twin)
    refitted = twin.fit(DATA.X, DATA.y)
    assert_same(model.coef_, refitted.coef_)


@pytest.mark.parametrize("criterion", ["evidence", "cv", "stability", "oracle"])
def test_search(criterion, tmp_path):
    search = ARDSearch(
        [ARDvi(), SparseARD(always_keep=[1])],
        [{"alpha": np.array([1.0, 4.0, 16.0]), "max_iter": [100, 200]}, None],
        criterion,
        DATA.coef != 0,
        random_state=0,
        n_resamples=4,
    ).fit(DATA.X, DATA.y)
    twin = again(search, tmp_path)
    assert_same(vars(search), vars(twin))
    assert_same_answers(search, twin)
    pd.testing.assert_frame_equal(search.path_.to_frame(), twin.path_.to_frame())


@pytest.mark.parametrize("solved", [True, False])
@pytest.mark.parametrize("y", [DATA.y, TWO], ids=["one", "two"])
def test_a_stream_goes_on(solved, y, tmp_path):
    model = SparseARD(always_keep=[2]).partial_fit(DATA.X[:30], y[:30])
    if solved:
        _ = model.coef_
    twin = again(model, tmp_path)
    assert_same(vars(model), vars(twin))
    for one in (model, twin):
        one.partial_fit(DATA.X[30:], y[30:])
    assert_same_answers(model, twin)


def test_a_model_that_was_fitted_begins_a_new_stream(tmp_path):
    twin = again(SparseARD().fit(DATA.X, DATA.y), tmp_path)
    with pytest.warns(UserWarning, match="begins a new stream"):
        twin.partial_fit(DATA.X, DATA.y)


def test_equal_models_are_equal_files(tmp_path):
    for name in "ab":
        save(SparseARD().fit(DATA.X, DATA.y), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    save(load(tmp_path / "a"), tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


def test_loaded_arrays_can_be_changed(tmp_path):
    twin = again(SparseARD().fit(DATA.X, DATA.y), tmp_path)
    twin.coef_[0] = 1.0


def test_numpy_reads_the_arrays(tmp_path):
    model = SparseARD().fit(DATA.X, DATA.y)
    save(model, tmp_path / "model")
    with np.load(tmp_path / "model", allow_pickle=False) as arrays:
        found = [arrays[name] for name in arrays.files if name != "header.json"]
    assert any(np.array_equal(array, model.coef_) for array in found)


def test_every_class_that_a_model_holds_is_known():
    assert {kind.__name__ for kind in FAMILY} | {"ARDSearch"} <= KINDS.keys()
    assert all(name == kind.cls.__name__ for name, kind in KINDS.items())


# Equations of motion


@pytest.fixture(scope="module")
def lorenz():
    t, x = systems.lorenz63().noisy(0.01, seed=0)
    return t, x, Discovery().fit(x, t, feature_names=["x", "y", "z"])


def assert_same_motion(model, twin, x, t):
    stored = {name: value for name, value in vars(model).items() if name not in DATA_ATTRIBUTES}
    assert_same(stored, {name: value for name, value in vars(twin).items() if name not in DATA_ATTRIBUTES})
    assert model.equations() == twin.equations()
    assert model.latex() == twin.latex()
    assert_same(model.predict(x), twin.predict(x))
    assert_same(model.simulate(x[0], t[:20]), twin.simulate(x[0], t[:20]))


def test_discovery(lorenz, tmp_path):
    t, x, model = lorenz
    twin = again(model, tmp_path)
    assert_same_motion(model, twin, x, t)
    assert (tmp_path / "model").stat().st_size < 100_000
    twin.fit(x, t, feature_names=["x", "y", "z"])
    assert_same(model.coef_, twin.coef_)


@pytest.mark.parametrize(
    "library",
    [Polynomials(2), Polynomials(1) + Fourier(1), Polynomials(1, include_constant=False) * Polynomials(1)],
    ids=["polynomials", "sum", "product"],
)
def test_discovery_with_libraries(library, tmp_path):
    t, x = systems.lorenz63().noisy(0.0, seed=0)
    x_dot = systems.lorenz63().exact_derivative(x) + 0.1 * np.random.default_rng(0).normal(size=x.shape)
    model = Discovery(library, regressor=SparseARD(fit_intercept=False)).fit(x, t, x_dot=x_dot)
    twin = again(model, tmp_path)
    assert repr(twin.library) == repr(library)
    assert_same_motion(model, twin, x, t)


def test_libraries_of_code_are_not_stored(tmp_path):
    t, x = systems.lorenz63().noisy(0.0, seed=0)
    x_dot = systems.lorenz63().exact_derivative(x) + 0.1 * np.random.default_rng(0).normal(size=x.shape)
    model = Discovery(Polynomials(2) + Custom([lambda a: a**3])).fit(x, t, x_dot=x_dot)
    with pytest.raises(ModelFileError, match="code of your own"):
        save(model, tmp_path / "model")


def model_of(attributes):
    return attributes["model_"]["fields"]


def test_models_of_fields(tmp_path):
    system = systems.burgers()
    t, u = system.noisy(0.01, seed=0)
    model = Discovery().fit(u, t, space=system.space)
    save(model, tmp_path / "model")
    twin = load(tmp_path / "model")
    assert twin.equations() == model.equations()
    np.testing.assert_array_equal(twin.predict(u), model.predict(u))
    with pytest.raises(ValueError, match="inclusion"):
        twin.inclusion()


BAD_DISCOVERIES = {
    "a vast library": lambda a: model_of(a)["library"]["fields"].update(degree=10**6),
    "another library": lambda a: model_of(a)["library"]["fields"].update(degree=2),
    "a library of another type": lambda a: model_of(a).update(library={"kind": "Flat", "fields": {}}),
    "other names": lambda a: model_of(a)["names"].append("w"),
    "no equations": lambda a: a.update(equations_=[]),
    "a support outside": lambda a: a["equations_"][0]["fields"].update(support={"tuple": [1, 10**9]}),
    "coefficients that do not agree": lambda a: a["equations_"][0]["fields"].update(support={"tuple": [1, 3]}),
}


@pytest.mark.parametrize("case", BAD_DISCOVERIES)
def test_discoveries_whose_parts_do_not_fit(lorenz, case, tmp_path):
    save(lorenz[2], tmp_path / "model")
    changed = with_header((tmp_path / "model").read_bytes(), lambda h: BAD_DISCOVERIES[case](attributes(h)))
    refused(changed, tmp_path)


# Writing


def test_files_appear_whole_or_not_at_all(tmp_path, monkeypatch):
    save(SparseARD().fit(DATA.X, DATA.y), tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save(ARD().fit(DATA.X, DATA.y), tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_the_file_has_the_usual_mode(tmp_path):
    save(SparseARD().fit(DATA.X, DATA.y), tmp_path / "model")
    (tmp_path / "plain").write_text("")
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize(
    "model",
    [
        ARDr(prior=priors.Concave(np.log1p, lambda g: 1 / (1 + g))),
        ARDr(prior=priors.Linear(0.1) & priors.Convex(lambda g: g**2, lambda g: 2 * g)),
    ],
)
def test_code_is_not_stored(model, tmp_path):
    model.fit(DATA.X, DATA.y)
    with pytest.raises(ModelFileError, match=r"ARDr\.parameters\['prior'\].* is code of your own"):
        save(model, tmp_path / "model")
    assert not os.listdir(tmp_path)


def test_what_cannot_be_saved(tmp_path):
    class Mine(SparseARD):
        pass

    with pytest.raises(NotFittedError):
        save(SparseARD(), tmp_path / "model")
    for model in (Ridge().fit(DATA.X, DATA.y), Mine().fit(DATA.X, DATA.y), priors.Flat(), None):
        with pytest.raises(ModelFileError, match="cannot be saved"):
            save(model, tmp_path / "model")
    search = ARDSearch(ARDvi(), random_state=np.random.RandomState(0)).fit(DATA.X, DATA.y)
    with pytest.raises(ModelFileError, match=r"random_state.*RandomState"):
        save(search, tmp_path / "model")
    model = SparseARD().fit(DATA.X, DATA.y)
    model.note = "mine"
    with pytest.raises(ModelFileError, match="'note'"):
        save(model, tmp_path / "model")


# Files that are not whole models


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    save(MSTSBL(tau=0.5).fit(FRAME, DATA.y), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def plain_content(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "plain"
    save(ARDr(prior=priors.Linear(1.0) & priors.Bounds(0.0, 9.0), always_keep=[1]).fit(DATA.X, DATA.y), path)
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
    """Replace an array entry and its checksum."""
    entries = entries_of(content)
    header = json.loads(entries["header.json"])
    header["arrays"][number] = hashlib.sha256(data).hexdigest()
    entries |= {"header.json": json.dumps(header).encode(), f"arrays/{number}.npy": data}
    return archive_of(entries.items())


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
    for place in {*range(0, len(content), 29), *range(len(content) - 120, len(content))}:
        changed = bytearray(content)
        changed[place] ^= 0x41
        (tmp_path / "model").write_bytes(changed)
        try:
            model = load(tmp_path / "model")
        except ModelFileError:
            continue
        accepted += 1
        assert_same(vars(whole), vars(model))
    assert accepted < len(content) / 29 / 4  # far fewer than the places tried


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
    if version is True:  # JSON's true is no version
        return refused(with_header(content, lambda h: {**h, "format_version": True}), tmp_path)
    return refused(with_header(content, lambda h: {**h, "format_version": version}), tmp_path)


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
    refused(changed, tmp_path, match="entries are not those")
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
    tracemalloc.start()
    coefficients = json.loads(entries_of(content)["header.json"])["model"]["fields"]["attributes"]["dict"]["coef_"]
    refused(with_array(content, coefficients["array"], BAD_ARRAYS[case]), tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_wrong_checksums(content, tmp_path):
    def wrong(header):
        header["arrays"][2] = "0" * 64

    refused(with_header(content, wrong), tmp_path, match="checksum")


BAD_HEADERS = {
    "not JSON": b"{",
    "not text": b"\xff\xfe",
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "a huge number": b'{"format": "ardea model", "format_version": ' + b"9" * 10_000 + b"}",
    "NaN": b'{"format": "ardea model", "format_version": 1, "arrays": [], "model": NaN}',
    "a key twice": b'{"format": "ardea model", "format": "ardea model"}',
    "only a number": b'{"format": "ardea model", "format_version": 1, "arrays": [], "model": 3}',
    "a prior": b'{"format": "ardea model", "format_version": 1, "arrays": [], "model": {"kind": "Flat", "fields": {}}}',
    "an unfitted model": b'{"format": "ardea model", "format_version": 1, "arrays": [], '
    b'"model": {"kind": "ARD", "fields": {"parameters": {"dict": {}}, "attributes": {"dict": {}}}}}',
    "an unknown class": b'{"format": "ardea model", "format_version": 1, "arrays": [], '
    b'"model": {"kind": "os.system", "fields": {"command": "true"}}}',
}


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_bad_headers(case, tmp_path):
    refused(archive_of([("header.json", BAD_HEADERS[case])]), tmp_path)


def test_an_empty_archive(tmp_path):
    refused(archive_of([]), tmp_path, match="not a model file")
    refused(archive_of([("a", b"")]), tmp_path, match="zip file without a model")


def attributes(header):
    return header["model"]["fields"]["attributes"]["dict"]


BAD_MODELS = {
    "a method replaced": lambda h: attributes(h).update(predict=3),
    "a private name": lambda h: attributes(h).update(__class__="x"),
    "a parameter of no meaning": lambda h: h["model"]["fields"]["parameters"]["dict"].update(noise_variance="big"),
    "an unknown parameter": lambda h: h["model"]["fields"]["parameters"]["dict"].update(callback="x"),
    "too many columns": lambda h: attributes(h).update(n_features_in_=10**12),
    "no terms": lambda h: attributes(h).pop("_terms"),
    "empty terms": lambda h: attributes(h).update(_terms=[]),
    "no coefficients": lambda h: attributes(h).pop("coef_"),
    "text for a number": lambda h: attributes(h).update(log_evidence_="high"),
    "one name too few": lambda h: attributes(h)["feature_names_in_"]["strings"].pop(),
    "several targets of one": lambda h: attributes(h).update(_one_target=False),
    "the same array twice": lambda h: attributes(h).update(coef_std_=attributes(h)["coef_"]),
    "an array too few": lambda h: attributes(h).update(coef_={"array": 10**6}),
    "a field too few": lambda h: attributes(h)["_terms"][0]["fields"].pop("kept"),
    "a field of another type": lambda h: attributes(h)["_terms"][0]["fields"].update(posterior=None),
    "a scalar out of range": lambda h: attributes(h).update(kkt_gap_={"scalar": "int8", "value": 1000}),
}


@pytest.mark.parametrize("case", BAD_MODELS)
def test_models_whose_parts_do_not_fit(content, case, tmp_path):
    def change(header):
        BAD_MODELS[case](header)

    refused(with_header(content, change), tmp_path)


def test_a_stream_of_nothing(tmp_path):
    save(SparseARD().partial_fit(DATA.X, DATA.y), tmp_path / "model")
    changed = with_array((tmp_path / "model").read_bytes(), 0, npy_bytes("(0, 1000000000)", b""))

    def wide(header):
        attributes(header)["n_features_in_"] = 10**9 - 2
        attributes(header)["_stream"]["fields"]["n_features"] = 10**9 - 2

    refused(with_header(changed, wide), tmp_path, match="_stream")


def nodes(tree, path=()):
    """Yield the path of every value in a tree."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, item in items:
        yield from nodes(item, (*path, key))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["kind", "fields", "array", "dict", "tuple", "scalar", "value", "strings", "object", "float"]
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), VALUES)
def test_any_other_tree_is_refused_or_a_model(plain_content, tmp_path_factory, number, value):
    """Replace any value of the tree by any other: nothing but ModelFileError may come of it."""

    def change(header):
        paths = [path for path in nodes(header["model"]) if path]
        *parents, last = paths[number % len(paths)]
        place = header["model"]
        for key in parents:
            place = place[key]
        place[last] = value

    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes(with_header(plain_content, change))
    try:
        model = load(path)
    except ModelFileError:
        return
    assert model.predict(DATA.X[:2]).shape == (2,)
