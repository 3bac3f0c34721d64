"""Hostile and damaged input: tables, arrays, saved models and command lines.

Every outcome is a success or one clear error of the documented type. No crash, no hang, no code that runs, no file
outside its folder, no memory without bound. A few examples of each kind run with the other tests; `pytest -m fuzz` goes
on for `ARDEA_FUZZ_SECONDS` (default 20) with each of them. What it once found is kept in the corpus at the end.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import gzip
import io
import itertools
import json
import os
import pickle
import resource
import shutil
import signal
import socket
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyarrow import parquet

import ardea
from ardea.cli import main
from ardea.cli.demo import demo_data, demo_fits, regression_text
from ardea.dynamics import Discovery, systems
from ardea.tables.reading import open_table
from ardea.tables.rows import open_rows
from ardea.tables.series import Choice, read_series
from ardea.tables.table import read_arrays

SECONDS = float(os.environ.get("ARDEA_FUZZ_SECONDS", "20"))
QUICK = 25  # examples of each kind in the default suite
LONGEST = 30  # seconds for one example: a hang
MEMORY = 3 * 2**30  # addresses beyond those in use: libraries reserve far more than they touch
SOURCE = Path(ardea.__file__).parent
READERS = (ValueError, OSError, MemoryError)
fuzz = pytest.mark.fuzz
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


# What holds for every example -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def confined():
    """Fail after some seconds; refuse memory beyond a bound. Warnings are not what is looked for here."""

    def too_long(*_):
        raise AssertionError(f"took more than {LONGEST} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    handler = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


class Trap:
    """Writes a file when it is unpickled."""

    canary = "/tmp/ardea-fuzzing-canary"

    def __reduce__(self):
        return open, (self.canary, "w")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder two levels down; afterwards nothing outside it has changed and no trap has sprung."""
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    Path(Trap.canary).unlink(missing_ok=True)
    yield inside
    assert not Path(Trap.canary).exists(), "a pickle was loaded"
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")) == ["a/b"]
    assert os.listdir(tmp_path) == ["a"]


def examine(strategy, check, seconds):
    """Try examples: `QUICK` fixed ones for no seconds, else until the time is over."""
    end, number = time.monotonic() + seconds, 0

    def one_example(example):
        if not seconds or time.monotonic() < end:
            with confined():
                check(example)

    while number == 0 or time.monotonic() < end:
        rules = settings(
            max_examples=200 if seconds else QUICK,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        seed(number)(rules(given(strategy)(one_example)))()
        number += 1


# A run of every kind by the default suite, and a long one on demand.
both = pytest.mark.parametrize("seconds", [0, pytest.param(SECONDS, marks=fuzz)], ids=["quick", "long"])


def told(function, *expected):
    """Run something that may fail with an error of the documented type and a text; return its result or None."""
    try:
        return function()
    except expected as error:
        if not str(error).strip():
            raise AssertionError("an error without a word") from error
        return None


def command(*arguments, codes=(0, 1, 2)):
    """Run a command line; failure is a message (its lines indented), wrong use a line after the usage; no traceback."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(map(str, arguments)))
    except SystemExit as stop:  # argparse
        code = stop.code
        assert code in (0, 2)
    lines = [line for line in err.getvalue().splitlines() if not line.startswith(("warning: ", "  "))]
    assert code in codes, (arguments, err.getvalue())
    assert "Traceback" not in err.getvalue()
    if code == 1:
        assert len(lines) == 1, lines
        assert lines[0].startswith("ardea "), lines
    return code, out.getvalue(), err.getvalue()


# Mutations ------------------------------------------------------------------------------------------------------------

PIECES = [
    *(bytes([one]) for one in (0, 9, 10, 13, 34, 39, 44, 59, 127, 128, 255)),
    *(b"\r\n", b"\xef\xbb\xbf", b"\xff\xfe", b'""', b'"\n"', b"nan", b"inf", b"-", b"1e999", b"1e-999", b"0x1p3"),
    *("²", "١", "\x85", "\u2028", "−", "1_000", "1,5", "é", "#"),
    *(b"9" * 5000, b"," * 3000, b'"' * 99, b"a" * 200_000, b"\x80" * 40),
]
PIECES = [one.encode() if isinstance(one, str) else one for one in PIECES]


@st.composite
def mutations(draw, originals):
    """Return bytes of one of the originals with a few edits."""
    content = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 4]))):
        place = draw(st.integers(0, max(len(content) - 1, 0)))
        length = draw(st.sampled_from([0, 1, 1, 2, 4, 8, 40, 4000]))
        kind = draw(st.sampled_from(["replace", "insert", "delete", "repeat", "cut", "number"]))
        if kind == "replace":
            content[place : place + 1] = draw(st.binary(min_size=1, max_size=4))
        elif kind == "insert":
            content[place:place] = draw(st.sampled_from(PIECES))
        elif kind == "delete":
            del content[place : place + length]
        elif kind == "repeat":
            content[place:place] = content[place : place + length]
        elif kind == "number":
            value = draw(st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63]))
            content[place : place + 8] = value.to_bytes(8, "little")
        else:
            del content[place:]
    return bytes(content)


# Text -----------------------------------------------------------------------------------------------------------------

TABLES = [
    b"a,b,y\n1,2,3\n4,5,6\n7,8,9.5\n1,0,2\n3,3,1\n",
    b'"a";"b c";y\r\n1;2;"3"\r\n4;5;6\r\n',
    b"1\t2\t3\n4\t5\t6\n7\t8\t9\n",
    b"  1 2 3\n4  5 6\n\n7 8 9\n",
    b"\xef\xbb\xbft,x\n0,1\n1,2\n2,4\n3,8\n",
]
CELLS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text(max_size=6),
    st.sampled_from(["", " ", '"', "nan", "1e999", "²", "١", "1_0", "0x1", '"1\n2"', "\0", "−1"]),
)
TEXTS = st.one_of(
    mutations(TABLES),
    st.binary(max_size=200),
    st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=5).map(
        lambda rows: "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")
    ),
)


def reference(path):
    """Return the rows of a text file as Python reads them with the separator and the names that were inferred."""
    written = open_table(path)
    text = path.read_bytes().decode(written.encoding, "replace").removeprefix("\ufeff")
    lines: list[str] = []
    for line in io.StringIO(text, newline=None):
        lines += [line] if line.strip() and not written.comments.holds(line, begun=bool(lines)) else []
    lines = lines[written.skipped :]
    rows = (
        [line.split() for line in lines]
        if written.separator is None
        else csv.reader(lines, delimiter=written.separator)
    )
    return [[cell.strip().replace("−", "-") for cell in row[: len(written.names)]] for row in rows]


def holds(found, cells):
    """Whether a column has the numbers that Python reads, or 1 and 0 for marks: one text, or nothing."""
    try:
        return all(one == float(cell) for one, cell in zip(found, cells, strict=True) if "," not in cell)
    except ValueError:
        return set(found) <= {0.0, 1.0} and len({cell for one, cell in zip(found, cells, strict=True) if one}) == 1


@both
def test_text(folder, seconds):
    path = folder / "t.csv"

    def check(content):
        path.write_bytes(content)
        blocks = told(lambda: list(open_rows(path, 0, memory="50 MB").blocks()), *READERS)
        if blocks:
            table = np.vstack([np.column_stack([y, X]) for X, y in blocks])
            rows = reference(path)
            assert len(rows) == len(table)
            if len(rows[0]) == table.shape[1]:  # no texts were encoded
                assert all(map(holds, table.T.tolist(), itertools.zip_longest(*rows, fillvalue="")))
        told(lambda: read_series(path, Choice(), memory="100 MB"), *READERS)
        command("fit", path, "--target", "0", "--memory", "50 MB")
        command("discover", path, "--step", "1", "--degree", "1", "--memory", "50 MB")

    examine(TEXTS, check, seconds)


@both
def test_packed_text(folder, seconds):
    path = folder / "t.csv.gz"

    def check(content):
        path.write_bytes(content)
        told(lambda: list(open_rows(path, 0, memory="50 MB").blocks()), *READERS)
        told(lambda: read_series(path, Choice(), memory="100 MB"), *READERS)
        command("fit", path, "--target", "0", "--memory", "50 MB")

    examine(mutations([gzip.compress(one * 50, mtime=0) for one in TABLES]), check, seconds)


# Arrays ---------------------------------------------------------------------------------------------------------------


def npy(array, **settings):
    content = io.BytesIO()
    np.save(content, array, **settings)
    return content.getvalue()


def npy_of_header(text, body=b"\0" * 96, version=1):
    header = text.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 if version == 1 else 4, "little") + header + body


def mostly(usual, strange):
    """Draw what is usual four times out of five, so that not every example stumbles over its first fault."""
    return st.integers(0, 4).flatmap(lambda die: st.sampled_from(usual if die else strange))


SIZES = mostly(list(range(13)), [-1, -(2**63), 2**31, 2**40, 2**63, 10**30])
HEADERS = st.builds(
    lambda descr, order, shape, tail: f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}{tail}\n",
    mostly(["'<f8'", "'>i2'", "'|b1'"], ["'|O'", "'O'", "'<U9'", "'<M8[s]'", "[('a', '<f8')]", "'<c16'", "'|V3'", "7"]),
    mostly(["True", "False"], ["1", "None", "(("]),
    st.one_of(
        st.tuples(SIZES, SIZES).map(str),
        st.lists(SIZES, max_size=4).map(lambda sizes: str(tuple(sizes))),
        mostly(["(4, 3)"], ["(True, 3)", "3", "(1.5, 2)", "(" * 300 + ")" * 300]),
    ),
    mostly(["", " " * 50], ["\n", "}", "'" * 3, "(" * 3000, "\0"]),
)
ARRAYS = [
    npy(np.arange(120.0).reshape(40, 3)),
    npy(np.asfortranarray(np.arange(40, dtype=np.int16).reshape(8, 5))),
    npy(np.arange(6.0)),
    npy(np.array([[Trap(), 1.0]], dtype=object), allow_pickle=True),
    pickle.dumps(Trap()),
]
NPYS = st.one_of(
    mutations(ARRAYS), st.builds(npy_of_header, HEADERS, st.just(bytes(range(64)) * 20), mostly([1, 2], [0, 3, 255]))
)


@both
def test_npy(folder, seconds):
    path = folder / "t.npy"

    def check(content):
        path.write_bytes(content)
        blocks = told(lambda: list(open_rows(path, 0, memory="50 MB").blocks()), *READERS)
        if blocks:
            assert np.array_equal(np.vstack([np.column_stack([y, X]) for X, y in blocks]), np.load(path).astype(float))
        told(lambda: read_series(path, Choice(), memory="100 MB"), *READERS)
        command("fit", path, "--target", "0")
        if sum(len(y) for _, y in blocks or []) < 20:  # the search among terms takes its time, whatever they mean
            command("discover", path, "--step", "1", "--degree", "1")

    examine(NPYS, check, seconds)


def archive(entries, compression=zipfile.ZIP_DEFLATED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as packed:
        for name, body in entries:
            packed.writestr(name, body)
    return content.getvalue()


MEMBERS = ["x.npy", "t.npy", "y", "../../escape.npy", f"{Trap.canary}.npy", "a/../../../b.npy", "é.npy", ".npy"]
SOUND = archive([("t.npy", npy(np.arange(8.0))), ("x.npy", npy(np.arange(24.0).reshape(8, 3)))])
NPZS = st.one_of(
    mutations([SOUND, archive([("x.npy", npy(np.arange(50.0)))], zipfile.ZIP_LZMA)]),
    st.lists(st.tuples(st.sampled_from(MEMBERS), NPYS), min_size=1, max_size=3, unique_by=lambda pair: pair[0]).map(
        archive
    ),
)


@both
def test_npz(folder, seconds):
    path = folder / "t.npz"

    def check(content):
        path.write_bytes(content)
        told(lambda: read_arrays(path), *READERS)
        command("fit", path, "--target", "t")
        command("discover", path, "--time", "t", "--degree", "1")

    examine(NPZS, check, seconds)


# Parquet: Arrow is C++, and might take the process with it; pytest then names this test ------------------------------


def damaged(content, rng):
    """Return the bytes with a few edits, half of them in the metadata, which stand at the end."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        place, kind = rng.integers(len(content)), rng.integers(5)
        if rng.random() < 0.5:
            place = len(content) - 1 - rng.integers(min(len(content), 900))
        if kind < 2:
            content[place] = rng.integers(256)
        elif kind == 2:
            del content[place : place + rng.integers(1, 9)]
        elif kind == 3:
            content[place:place] = rng.bytes(rng.integers(1, 9))
        else:
            content[place : place + 4] = (2**31 - 1).to_bytes(4, "little")
    return bytes(content)


@both
def test_parquet(folder, seconds):
    columns = {"a": np.arange(50.0), "b": np.arange(50) % 7, "y": np.linspace(0, 1, 50)}
    parquet.write_table(pa.table(columns), folder / "sound1")
    parquet.write_table(pa.table(columns), folder / "sound2", compression="none", use_dictionary=False)
    parquet.write_table(pa.table({"a": [1.0, None] * 9, "s": ["u", "v"] * 9}), folder / "sound3", row_group_size=5)
    originals = [one.read_bytes() for one in sorted(folder.glob("sound*"))]
    path, end, number = folder / "t.parquet", time.monotonic() + seconds, 0
    while number < QUICK if not seconds else time.monotonic() < end:
        path.write_bytes(damaged(originals[number % len(originals)], np.random.default_rng(number)))
        with confined():
            told(lambda: list(open_rows(path, 0, memory="50 MB").blocks()), *READERS)
            told(lambda: read_series(path, Choice(), memory="100 MB"), *READERS)
            command("fit", path, "--target", "0")
        number += 1


# Saved models ---------------------------------------------------------------------------------------------------------


def oscillator():
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    return x[::4], t[::4]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Files of several kinds of models."""
    place = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = X[:, 1] + 0.1 * rng.normal(size=40)
    kinds = {
        "plain": ardea.SparseARD().fit(X, y),
        "targets": ardea.ARDr().fit(X, np.column_stack([y, X[:, 2] - y])),
        "stream": ardea.ARD().partial_fit(X, y),
        "search": ardea.ARDSearch(ardea.ARDvi()).fit(X, y),
        "motion": Discovery().fit(*oscillator()),
    }
    for name, model in kinds.items():
        ardea.save(model, place / name)
    return {name: (place / name).read_bytes() for name in kinds}


def used(model):
    """Ask a loaded model for what a user would; a refusal is fine."""
    if isinstance(model, Discovery):
        told(lambda: model.predict(np.zeros((2, 2))), ValueError)
        told(lambda: [model.equations(), model.latex()], ValueError)
    else:
        best = getattr(model, "best_estimator_", model)
        told(lambda: best.predict(np.zeros((2, best.n_features_in_)), return_std=True), ValueError)
        told(lambda: [repr(model), str(best.summary())], ValueError)


@both
def test_bytes_of_models(folder, seconds, models):
    path = folder / "model.ardea"

    def check(content):
        path.write_bytes(content)
        model = told(lambda: ardea.load(path), ardea.ModelFileError)
        if model is not None:
            used(model)
        command("report", path, "--out", folder / "page.html")

    examine(mutations(list(models.values())), check, seconds)


# Command lines --------------------------------------------------------------------------------------------------------

FILES = ["t.csv", "m.npy", "model.ardea", "none.csv"]
NAMES = [*FILES, "a", "b", "y", "t", "0", "-1", "99", "²", "", ",", "a,b", "a,a", "nan"]
NUMBERS = ["0", "1", "-1", "0.5", "2", "1e-320", "1e400", "nan", "inf", "1e151", "1" + "0" * 400, "٣", "1,2", "--1"]
FLAGS = [
    *("--target", "--columns", "--drop", "--method", "--false-terms", "--strength", "--search", "--criterion"),
    *("--no-intercept", "--keep", "--noise", "--memory", "--level", "--json", "--out", "--time", "--step", "--map"),
    *("--header", "--decimal", "--na", "--categorical", "--start", "--until", "--missing"),
    *("--time-unit", "--states", "--inputs", "--series", "--space", "--degree", "--form", "--help", "--version"),
    *("--t", "--rho", "--sigma", "--data", "--title", "--scale", "--variant", "--jobs", "--seed", "--to", "--authors"),
]
WORDS = ["sparse", "ard", "vi", "r", "m", "l", "map", "weak", "derivative", "bic", "quick", "published", "bash", "1 MB"]
TOKENS = st.one_of(
    st.sampled_from(NAMES + WORDS),
    st.sampled_from(NUMBERS),
    st.sampled_from(FLAGS),
    st.text(st.characters(exclude_characters="/."), max_size=5),
)
STARTS = [
    ["fit", "t.csv", "--target", "y"],
    ["fit", "t.csv"],
    ["discover", "m.npy", "--time", "0", "--degree", "1"],
    ["discover", "t.csv", "--map", "--degree", "1"],
    ["rates"],
    ["rates", "--method", "m", "--strength", "2"],
    ["report", "model.ardea", "--out", "page.html"],
    ["report", "t.csv", "--target", "y", "--out", "page.html"],
    ["reproduce", "list", "--scale", "quick"],
    ["reproduce", "report", "--scale", "quick"],
    ["completion"],
    ["simulate", "model.ardea", "--start", "1,0", "--until", "2"],
    ["predict", "model.ardea", "t.csv"],
    [],
]


@st.composite
def command_lines(draw):
    words = list(draw(st.sampled_from(STARTS)))
    for token in draw(st.lists(TOKENS, max_size=5)):
        if words and draw(st.integers(0, 4)) == 0:
            words[draw(st.integers(0, len(words) - 1))] = token
        else:
            words.append(token)
    return words


@pytest.fixture
def workplace(folder, models):
    """Files for command lines to name; figures cost time and are not what is tried here."""
    rows = np.random.default_rng(0).normal(size=(30, 3))
    lines = ["a,b,y", *(",".join(map(repr, row)) for row in rows.tolist())]
    (folder / "t.csv").write_text("\n".join(lines))
    x, t = oscillator()
    np.save(folder / "m.npy", np.column_stack([t, x]))
    (folder / "model.ardea").write_bytes(models["plain"])
    return folder


@both
def test_command_lines(workplace, seconds, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    kept = {path.name: path.read_bytes() for path in workplace.iterdir()}

    def check(words):
        if words[:1] == ["demo"]:
            return
        command(*words)
        for path in workplace.iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, content in kept.items():
            (workplace / name).write_bytes(content)

    examine(command_lines(), check, seconds)


# What the source never does -------------------------------------------------------------------------------------------

CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
ATTRIBUTES = {("os", "system"), ("os", "popen"), ("yaml", "load"), ("joblib", "load"), ("np", "loads")}
NEVER_IMPORTED = {
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "subprocess", "pty"),
    *("socket", "ssl", "urllib", "urllib3", "http", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "telnetlib"),
    *("xmlrpc", "socketserver", "webbrowser", "ctypes", "cffi"),
}


def forbidden(tree):
    """Yield what a module must not do, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] in NEVER_IMPORTED)
        elif isinstance(node, ast.ImportFrom):
            if not node.level and (node.module or "").split(".")[0] in NEVER_IMPORTED:
                yield node.module
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in CALLS:
                yield called.id
            if ast.unparse(called).endswith("import_module"):
                names = [part.value for part in node.args if isinstance(part, ast.Constant)]
                yield from (name for name in names if name.split(".")[0] in NEVER_IMPORTED)
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                if (called.value.id, called.attr) in ATTRIBUTES:
                    yield ast.unparse(called)
                if called.value.id in {"np", "numpy"} and called.attr == "load":
                    safe = [word for word in node.keywords if word.arg == "allow_pickle"]
                    if not safe or ast.unparse(safe[0].value) != "False":
                        yield "np.load without allow_pickle=False"
            for word in node.keywords:
                if word.arg in {"allow_pickle", "shell"} and ast.unparse(word.value) != "False":
                    yield f"{word.arg}={ast.unparse(word.value)}"


def test_source_neither_runs_text_nor_unpickles_nor_calls_out():
    for path in SOURCE.rglob("*.py"):
        assert list(forbidden(ast.parse(path.read_text(encoding="utf-8")))) == [], path


@pytest.mark.parametrize(
    "line",
    [
        "eval('1')",
        "import pickle",
        "from urllib import request",
        "import socket as s",
        "import_module('http.client')",
        "np.load(f, allow_pickle=True)",
        "np.load(f)",
        "run(c, shell=True)",
        "os.system('x')",
        "yaml.load(f)",
    ],
)
def test_the_search_for_them_finds_them(line):
    assert list(forbidden(ast.parse(line)))


@pytest.mark.usefixtures("no_figures")
def test_no_network_at_run_time(workplace, monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    command("fit", "t.csv", "--target", "y", "--out", "fitted", codes=(0,))
    command("discover", "m.npy", "--time", "0", "--degree", "1", "--out", "found", codes=(0,))
    command("report", "fitted/model.ardea", "--out", "page.html", codes=(0,))
    command("rates", "--plot", "curves.svg", codes=(0,))
    X, y, coef = demo_data(0)
    assert regression_text(demo_fits(X, y), coef)  # the first half of `ardea demo`; the second is a discovery


# The corpus: what was found, made small -------------------------------------------------------------------------------


def fails(*arguments, match=""):
    """Assert that a command fails with one line that holds `match`."""
    with confined():
        _, out, err = command(*arguments, codes=(1,))
    assert match in err, err
    assert out == ""


TEXT_CORPUS = {
    "a gzip stream with a damaged body": (
        "t.csv.gz",
        (lambda packed: packed[:20] + b"\xff" * 8 + packed[28:])(gzip.compress(b"a,y\n" + b"1,2\n" * 500, mtime=0)),
        "cannot be read as text",
    ),
    "quotes that swallow the end of a line": ("t.csv", b'a,y\n1,"2\n",3\n', "3 columns"),
    "a quote alone": ("t.csv", b'"', "has no column 'y'"),
    "a quote that is never closed": ("t.csv", b'a,y\n1,2\n3,"4\n5,6\n', "line 3"),
    "a number whose square is none": ("t.csv", b"a,y\n1,2\n1e200,3\n", "too large to be squared"),
    "digits that are no digits": ("t.csv", "a,y\n²,1\n2,2\n3,4\n".encode(), "not a number"),
    "a line of other length among short ones": ("t.csv", b"a,y\n1,2\n" + b"1," * 99 + b"\n", "100 columns"),
}


@pytest.mark.parametrize("case", TEXT_CORPUS)
def test_text_corpus(folder, case):
    name, content, message = TEXT_CORPUS[case]
    (folder / name).write_bytes(content)
    fails("fit", folder / name, "--target", "0" if name.endswith("gz") else "y", match=message)
    fails("discover", folder / name, "--step", "1", "--memory", "1 kB", match="ardea")


def test_a_first_line_of_too_many_columns(folder):
    path = folder / "t.csv"
    for separator in (b",", b" "):
        path.write_bytes((b"1" + separator) * 50_000 + b"1\n")
        with confined(), pytest.raises(ValueError, match=r"memory=2500000 bytes is too little"):
            open_rows(path, 0, memory="2.5 MB")


def test_a_small_packed_file_of_many_rows(folder):
    """A megabyte of numbers in two kilobytes: `fit` compresses the rows, `discover` says what is wrong."""
    (folder / "t.csv.gz").write_bytes(gzip.compress(b"a,y\n" + b"0,1\n1,0\n" * 125_000))
    with confined():
        code, out, _ = command("fit", folder / "t.csv.gz", "--target", "y", "--memory", "2 MB", codes=(0,))
    assert code == 0
    assert "250000 rows" in out
    fails("discover", folder / "t.csv.gz", "--step", "1", "--memory", "2 MB", match="is larger than --memory")


NPY_CORPUS = {
    "no rows, and columns without end": ("(0, 10000000000000)", "10000000000000 columns"),
    "a shape below zero": ("(-1, 3)", "shape is (-1, 3)"),
    "a shape beyond the file": ("(1000000000, 3)", "cut short"),
    "a shape beyond all numbers": (f"({10**30}, 3)", "cut short"),
    "brackets without end": ("(" * 3000, "cannot be read as an array of numbers"),
}


@pytest.mark.parametrize("case", NPY_CORPUS)
def test_npy_corpus(folder, case):
    shape, message = NPY_CORPUS[case]
    content = npy_of_header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n")
    (folder / "t.npy").write_bytes(content)
    fails("fit", folder / "t.npy", "--target", "0", match=message)
    fails("discover", folder / "t.npy", "--step", "1")
    (folder / "t.npz").write_bytes(archive([("t.npy", content)]))
    fails("fit", folder / "t.npz", "--target", "t")


def test_npy_larger_than_the_limit_on_addresses(folder):
    """Read in blocks, not mapped as a whole."""
    table = np.lib.format.open_memmap(folder / "t.npy", mode="w+", dtype=float, shape=(MEMORY // 8, 2))
    table[-1] = 1.0
    del table
    with confined():
        rows = open_rows(folder / "t.npy", 1, memory="20 MB")
        first, _ = next(rows.blocks())
    assert rows.table.n_rows == MEMORY // 8
    assert not first.any()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i2", "|b1"])
def test_npy_of_every_layout(folder, order, dtype):
    table = np.random.default_rng(0).integers(0, 2, size=(101, 4)).astype(dtype)
    np.save(folder / "t.npy", np.asarray(table, order=order))
    blocks = list(open_rows(folder / "t.npy", 2, columns=[3, 0], memory=3000).blocks())
    assert len(blocks) > 3
    assert np.array_equal(np.vstack([X for X, _ in blocks]), table[:, [3, 0]])
    assert np.array_equal(np.concatenate([y for _, y in blocks]), table[:, 2])


def test_npz_corpus(folder, monkeypatch):
    path = folder / "t.npz"
    bomb = npy_of_header("{'descr': '<f8', 'fortran_order': False, 'shape': (12500000, 1), }\n", b"\0" * 10**8)
    path.write_bytes(archive([("t.npy", bomb)]))
    del bomb
    assert path.stat().st_size < 2 * 10**5
    monkeypatch.setattr("ardea.core.problem.available", lambda: 10**7)
    fails("fit", path, "--target", "t", match="unpacked, needs about 100 MB of memory; 10 MB are available")
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    packed = archive([("x.npy", npy(np.arange(50.0)))], zipfile.ZIP_LZMA)
    path.write_bytes(packed.replace(b"\x5d\x00\x00\x80\x00", b"\x5d\xff\xff\xff\x7f"))  # a window of 2 GB
    fails("fit", path, "--target", "x", match="not packed as NumPy does")
    path.write_bytes(archive([("../../escape.npy", npy(np.arange(5.0))), ("t.npy", npy(np.arange(5.0)))]))
    with confined():
        command("fit", path, "--target", "t", codes=(0,))
    path.write_bytes(archive([("t.npy", npy(np.array([Trap()], dtype=object), allow_pickle=True))]))
    fails("fit", path, "--target", "t", match="cannot be read as arrays of numbers")
    path.write_bytes(archive([("t", b"no array")]))
    fails("fit", path, "--target", "t", match="no array")


@pytest.mark.parametrize(
    "codecs",
    [
        {"compressor": None, "filters": [{"id": "pickle", "protocol": 5}]},
        {"compressor": {"id": "pickle", "protocol": 5}, "filters": None},
        {"compressor": {"id": "pickle", "protocol": 5}, "filters": [{"id": "vlen-utf8"}], "dtype": "|O"},
    ],
)
def test_zarr_is_never_unpickled(folder, codecs):
    """Older packages behind zarr would do so."""
    group = folder / "t.zarr"
    (group / "u").mkdir(parents=True)
    (group / ".zgroup").write_text('{"zarr_format": 2}')
    array = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<f8", "fill_value": 0, "order": "C"} | codecs
    (group / "u" / ".zarray").write_text(json.dumps(array))
    (group / "u" / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["u"]}')
    (group / "u" / "0").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="pickle"):
        open_rows(group, 0)
    fails("discover", group, "--time", "u", match="pickle")


def test_parquet_corpus(folder):
    path = folder / "t.parquet"
    parquet.write_table(pa.table({}), path)
    fails("fit", path, "--target", "0")
    parquet.write_table(pa.Table.from_arrays([pa.array([1.0, 2.0])] * 2, names=["a", "a"]), path)
    fails("fit", path, "--target", "a")
    fails("discover", path, "--step", "1", match="cannot be read as Parquet")
    parquet.write_table(pa.table({"a": np.arange(50.0), "y": np.arange(50.0)}), path, compression="none")
    content = bytearray(path.read_bytes())
    content[10:60] = b"\xff" * 50
    path.write_bytes(content)
    fails("fit", path, "--target", "y", match=f"{path} cannot be read as Parquet")


COMMAND_CORPUS = {
    "a memory beyond all numbers": (["fit", "t.csv", "--target", "y", "--memory", "1e400"], 0),
    "a memory of a dot": (["fit", "t.csv", "--target", "y", "--memory", "."], 1),
    "a column ²": (["fit", "t.csv", "--target", "²"], 1),
    "a column --5": (["fit", "t.csv", "--target=--5"], 1),
    "a column of too many digits": (["fit", "t.csv", "--target", "9" * 5000], 1),
    "a noise whose square is none": (["fit", "t.csv", "--target", "y", "--noise", "1e300"], 2),
    "columns beyond all numbers": (["rates", "--columns", "1" + "0" * 400], 2),
    "a t that is no number": (["rates", "--t", "nan"], 2),
    "a seed below zero": (["demo", "--seed", "-1"], 2),
    "a seed of an experiment below zero": (["reproduce", "merits", "--seed", "-1"], 1),
    "letters that are none": (["fit", "\udcff.csv", "--target", "y"], 1),
    "a null": (["fit", "a\0b.csv", "--target", "y"], 1),
    "a name too long": (["fit", "a" * 5000 + ".csv", "--target", "y"], 1),
    "a folder for a file": (["report", "model.ardea", "--out", "."], 1),
    "a folder that is a file": (["fit", "t.csv", "--target", "y", "--out", "t.csv"], 1),
}


@pytest.mark.parametrize("case", COMMAND_CORPUS)
def test_command_corpus(workplace, case):
    arguments, expected = COMMAND_CORPUS[case]
    with confined():
        command(*arguments, codes=(expected,))


def test_reports_do_not_replace_devices(workplace):
    """As root, renaming a page over /dev/null would be the end of it."""
    os.mkfifo(workplace / "pipe")
    reader = os.open(workplace / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    command("rates", "--plot", "pipe", codes=(1,))  # not the name of a figure
    command("report", "model.ardea", "--out", "/dev/null", codes=(0,))
    assert not Path("/dev/null").is_file()
    os.close(reader)
