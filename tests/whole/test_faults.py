"""What may happen to a run: killed, interrupted, no room, no right to write, clocks that jump, company, no memory.

After each: no file is half-written, nothing that was left behind is taken for data, and the next run is right, that is,
equal to one that was left in peace. A Dask worker that is killed is in test_distributed.py; experiments at the level of
single records are in paper/test_runner.py.

Commands run in children of a server process that has everything imported: they start in milliseconds and can be killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import ardea
from ardea.cli import main, models
from ardea.core import problem as memory
from ardea.dynamics import systems
from ardea.paper import experiment
from ardea.paper.experiment import Experiment
from ardea.show import report
from ardea.tables import ENDING, whole_file, write_whole
from conftest import WHOLE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
LIMIT = 120  # seconds; nothing here takes a tenth of it on a quiet machine
CLONE_NEWNS = 0x00020000  # a mount namespace, linux/sched.h
SAVED = "save"  # not a command, but ardea.save


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A table, a time series and a saved model."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = 1.5 + 2 * X[:, 1] - X[:, 4] + 0.3 * rng.normal(size=60)
    np.save(folder / "table.npy", np.column_stack([X, y]))
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    np.save(folder / "motion.npy", np.column_stack([t, x])[::4])
    ardea.save(ardea.SparseARD().fit(X, y), folder / "model.ardea")
    return folder


def arguments_of(command, data, out):
    """Return the command line that writes into `out`."""
    return {
        "fit": ["fit", data / "table.npy", "--target", "6", "--out", out],
        "discover": ["discover", data / "motion.npy", "--time", "0", "--degree", "1", "--out", out],
        "report": ["report", data / "model.ardea", "--out", out / "page.html"],
        "reproduce": ["reproduce", "merits", "--scale", "quick", "--out", out],
        SAVED: [SAVED, data / "table.npy", out / "model.ardea"],
    }[command]


READ_ONLY = "Read-only file system|file system is read-only"
COMMANDS = ("fit", "discover", "report", "reproduce", SAVED)


# What a child does to itself.


def killed_before_rename(number):
    _at_rename(number, before=lambda: os.kill(os.getpid(), signal.SIGKILL))


def killed_after_rename(number):
    _at_rename(number, after=lambda: os.kill(os.getpid(), signal.SIGKILL))


def interrupted_before_rename(number):
    _at_rename(number, before=lambda: signal.raise_signal(signal.SIGINT))


def interrupted_after_rename(number):
    _at_rename(number, after=lambda: signal.raise_signal(signal.SIGINT))


def killed_in_the_middle_of_writing(number):
    """Die when the file has some of its bytes."""
    _at_write(number, lambda: os.kill(os.getpid(), signal.SIGKILL))


def interrupted_in_the_middle_of_writing(number):
    _at_write(number, lambda: signal.raise_signal(signal.SIGINT))


def _at_rename(number, before=lambda: None, after=lambda: None):
    rename, left = os.replace, [number]

    def replace(*places):
        left[0] -= 1
        if left[0] == 0:
            before()
        rename(*places)
        if left[0] == 0:
            after()

    os.replace = replace


def _at_write(number, act):
    opened, left = os.fdopen, [number]

    def fdopen(handle, mode="r", *rest):
        file = opened(handle, mode, *rest)
        if "w" in mode:
            left[0] -= 1
            if left[0] == 0:
                os.write(handle, b"half of")
                act()
        return file

    os.fdopen = fdopen


def files_no_larger_than(n_bytes):
    """A full disk, as far as one process can have one: writing beyond raises OSError."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def read_only(_):
    """What os.open does on a read-only file system; root may write wherever a mode forbids it."""
    opened = os.open

    def refusing(path, flags, *rest, **settings):
        if flags & (os.O_CREAT | os.O_WRONLY):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(path, flags, *rest, **settings)

    os.open = refusing


def little_memory(n_bytes):
    """Leave this many bytes of addresses."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + n_bytes, now + n_bytes))


def marked(marker):
    """Tell that the command begins."""
    marker.touch()


def no_output(_):
    sys.stdout = None


def no_error_output(_):
    sys.stderr = None


def full_output(_):
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def ascii_only(_):
    sys.stdout.reconfigure(encoding="ascii")


def without_figures():
    """They cost a second each."""
    models.figure_bytes = lambda draw, kind: WHOLE[f".{kind}"]
    report.svg = lambda *_: ""
    experiment.figure_file = lambda *_: b"<svg/>"


def child(arguments, out, err, fault, detail, figures):
    """Run a command with a fault in it; its output goes into pipes."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    if not figures:
        without_figures()
    if fault is not None:
        fault(detail)
    if arguments[0] == SAVED:
        table = np.load(arguments[1])
        ardea.save(ardea.SparseARD().fit(table[:, :6], table[:, 6]), arguments[2])
        return
    code = main(list(map(str, arguments)))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def start(forkserver, arguments, fault=None, detail=None, figures=False):
    """Start a command in a child, with a fault or without."""
    (out, out_end), (err, err_end) = forkserver.Pipe(duplex=False), forkserver.Pipe(duplex=False)
    process = forkserver.Process(target=child, args=(arguments, out_end, err_end, fault, detail, figures))
    process.start()
    out_end.close()
    err_end.close()
    process.streams = out, err
    return process


def drained(pipe):
    """Return all that was written into a pipe, and close it."""
    with pipe, os.fdopen(os.dup(pipe.fileno())) as stream:
        return stream.read()


class Ended:
    """How a child ended, and what it wrote to its streams."""

    def __init__(self, process):
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            pytest.fail("the command hangs")
        self.code = process.exitcode
        self.out, self.err = map(drained, process.streams)

    def assert_one_line(self, *words):
        """Assert failure with one line on standard error that holds all the words."""
        assert self.code == 1, self.err
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("ardea "), self.err
        for word in words:
            assert re.search(word, self.err), self.err


@pytest.fixture
def run(forkserver):
    """A function that runs a command in a child, with a fault or without, and tells how it ended."""

    def to_the_end(arguments, fault=None, detail=None, figures=False):
        return Ended(start(forkserver, arguments, fault, detail, figures))

    return to_the_end


def content(folder):
    """Return all files but the hidden ones; of those with times in them, what does not depend on time."""
    found = {}
    for path in sorted(one for one in folder.rglob("*") if one.is_file() and not one.name.startswith(".")):
        name = path.relative_to(folder).as_posix()
        found[name] = path.read_bytes()
        if path.name == "environment.json":
            known = json.loads(path.read_text())
            found[name] = {key: value for key, value in known.items() if key not in ("core_seconds", "written")}
        elif path.suffix == ".json":
            body = json.loads(path.read_text().split("\n")[1])
            found[name] = {"trial": body["trial"], "rows": timeless(body["rows"])}
        elif path.name == "records.csv.gz":
            found[name] = timeless(pd.read_csv(path).fillna("").to_dict("records"))
        elif path.suffix in WHOLE:  # figures tell dates and times
            found[name] = found[name].rstrip().endswith(WHOLE[path.suffix])
        elif path.name == "table.md":
            found[name] = len(path.read_text().splitlines())  # it tells times too
    return found


def timeless(rows):
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]


def hidden(folder):
    return [path for path in folder.rglob(".*") if path.is_file()]


@pytest.fixture(scope="module")
def undisturbed(forkserver, data, tmp_path_factory):
    """A function that returns what a command writes when it is left in peace, and into which folder."""
    known = {}

    def of(command, figures=False):
        if (command, figures) not in known:
            out = tmp_path_factory.mktemp(f"{command}-{figures}")
            done = Ended(start(forkserver, arguments_of(command, data, out), figures=figures))
            assert done.code == 0, done.err
            known[command, figures] = out, content(out)
        return known[command, figures]

    return of


@pytest.fixture
def fresh(undisturbed):
    """A function that empties the folder of a command, so that the same command line can be run again."""

    def of(command, figures=False):
        out, expected = undisturbed(command, figures)
        shutil.rmtree(out)
        out.mkdir()
        return out, expected

    return of


def assert_whole_so_far(out, expected):
    """Every file that is there has its final content: it is there completely."""
    for name, value in content(out).items():
        assert value == expected[name], name


def assert_next_run_is_right(run, command, data, out, expected, figures=False):
    again = run(arguments_of(command, data, out), figures=figures)
    assert again.code == 0, again.err
    assert content(out) == expected
    assert hidden(out) == []


# Killed ---------------------------------------------------------------------------------------------------------------

KILLS = [(killed_before_rename, 1), (killed_after_rename, 1), (killed_in_the_middle_of_writing, 2)]


@pytest.mark.parametrize("command", COMMANDS)
def test_killed_around_a_rename(command, run, fresh, data):
    out, expected = fresh(command)
    for fault, number in KILLS:
        dead = run(arguments_of(command, data, out), fault, number)
        alone = command in ("report", SAVED)  # one file, so there is no second
        assert dead.code == (0 if alone and number > 1 else -signal.SIGKILL), dead.err
        assert_whole_so_far(out, expected)
    assert_next_run_is_right(run, command, data, out, expected)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "fault", [killed_before_rename, killed_after_rename, killed_in_the_middle_of_writing], ids=lambda f: f.__name__
)
def test_killed_around_every_rename(command, fault, run, fresh, data):
    """Each kill in a fresh folder, with figures, until a run gets through."""
    for number in range(1, 50):
        out, expected = fresh(command, figures=True)
        dead = run(arguments_of(command, data, out), fault, number, figures=True)
        if dead.code == 0:
            break
        assert dead.code == -signal.SIGKILL, dead.err
        assert_whole_so_far(out, expected)
        assert_next_run_is_right(run, command, data, out, expected, figures=True)
    assert 1 < number < 49


def kill_at(seconds, forkserver, arguments):
    process = start(forkserver, arguments)
    time.sleep(seconds)
    process.kill()
    return Ended(process)


def test_killed_at_any_moment(forkserver, run, fresh, data):
    out, expected = fresh("fit")
    for seconds in np.random.default_rng(0).uniform(0, 0.5, size=4):
        kill_at(seconds, forkserver, arguments_of("fit", data, out))
        assert_whole_so_far(out, expected)
    assert_next_run_is_right(run, "fit", data, out, expected)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_at_many_moments(command, forkserver, run, fresh, data):
    rng = np.random.default_rng(COMMANDS.index(command))
    started = time.monotonic()
    out, expected = fresh(command)
    assert_next_run_is_right(run, command, data, out, expected)
    longest = time.monotonic() - started
    for moments in rng.uniform(0, longest, size=(5, 4)):
        out, expected = fresh(command)
        for seconds in moments:
            kill_at(seconds, forkserver, arguments_of(command, data, out))
            assert_whole_so_far(out, expected)
        assert_next_run_is_right(run, command, data, out, expected)


def test_an_older_model_outlives_the_kill_of_its_successor(run, data, tmp_path):
    path = tmp_path / "model.ardea"
    X = np.load(data / "table.npy")
    ardea.save(ardea.ARD().fit(X[:, :6], X[:, 6]), path)
    before = path.read_bytes()
    for fault in (killed_before_rename, killed_in_the_middle_of_writing):
        assert run([SAVED, data / "table.npy", path], fault, 1).code == -signal.SIGKILL
        assert path.read_bytes() == before
        assert type(ardea.load(path)) is ardea.ARD
        assert len(hidden(tmp_path)) == 1  # and not one for every kill
    assert run([SAVED, data / "table.npy", path]).code == 0
    assert path.read_bytes() == (data / "model.ardea").read_bytes()
    assert hidden(tmp_path) == []


def test_outputs_of_an_experiment_are_there_once_its_records_are(run, fresh, data):
    """Killed between its files, an experiment is not taken for finished by the report."""
    out, _ = fresh("reproduce")
    before = 5 + len(list(out.rglob("trials/*/*")))
    for number in range(before, 12):
        shutil.rmtree(out)
        if run(arguments_of("reproduce", data, out), killed_after_rename, number).code == 0:
            break
        finished = list(out.rglob("records.csv.gz"))
        told = run(["reproduce", "report", "--scale", "quick", "--out", out])
        if finished:
            assert told.code == 0, told.err
        else:
            told.assert_one_line("holds no results")


# Interrupted ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "fault",
    [interrupted_before_rename, interrupted_after_rename, interrupted_in_the_middle_of_writing],
    ids=lambda fault: fault.__name__,
)
def test_interrupted(command, fault, run, fresh, data):
    out, expected = fresh(command)
    stopped = run(arguments_of(command, data, out), fault, 1)
    if command == SAVED:
        assert stopped.code == 1
        assert "KeyboardInterrupt" in stopped.err
    else:
        assert stopped.code == 130, stopped.err
        assert stopped.err.count("\n") == 1, stopped.err
        assert "Traceback" not in stopped.err
    assert hidden(out) == []
    assert_whole_so_far(out, expected)
    if fault is interrupted_in_the_middle_of_writing:
        assert_next_run_is_right(run, command, data, out, expected)


def test_interrupted_from_outside_at_any_moment(forkserver, run, fresh, data, tmp_path):
    """From the moment the command is read on; while Python still imports, nobody can answer."""
    out, expected = fresh("reproduce")
    for number, seconds in enumerate(np.random.default_rng(1).uniform(0, 0.6, size=4)):
        marker = tmp_path / str(number)
        process = start(forkserver, arguments_of("reproduce", data, out), marked, marker)
        while process.is_alive() and not marker.exists():
            time.sleep(0.01)
        time.sleep(0.01 + seconds)
        with contextlib.suppress(ProcessLookupError):  # it may be done
            os.kill(process.pid, signal.SIGINT)
        stopped = Ended(process)
        assert stopped.code in (0, 130), stopped.err
        assert_whole_so_far(out, expected)
        assert hidden(out) == []
    assert_next_run_is_right(run, "reproduce", data, out, expected)


# No room, no right to write -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_no_room(command, run, fresh, data):
    out, expected = fresh(command)
    full = run(arguments_of(command, data, out), files_no_larger_than, 100)
    if command == SAVED:
        assert full.code == 1
        assert "OSError" in full.err
    else:
        full.assert_one_line(re.escape(str(out)))
    assert hidden(out) == []
    assert_whole_so_far(out, expected)
    assert_next_run_is_right(run, command, data, out, expected)


@pytest.mark.parametrize("command", COMMANDS)
def test_read_only(command, run, fresh, data):
    out, expected = fresh(command)
    refused = run(arguments_of(command, data, out), read_only)
    if command == SAVED:
        assert "Read-only" in refused.err
    else:
        refused.assert_one_line(READ_ONLY, re.escape(str(out)))
    assert content(out) == {}
    assert hidden(out) == []
    assert_next_run_is_right(run, command, data, out, expected)


def on_a_small_disk(disk, commands, answers):
    """Send, for every command on a full disk of 8 kB and then on the same disk read-only, code, error and files.

    The disk stands in a mount namespace of this process, so it is gone with it. None is sent where that is not allowed.
    """
    without_figures()
    mounts = [["--make-rprivate", "/"], ["-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)]]
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) or any(map(mount_fails, mounts)):
        answers.send(None)
        return
    full = [tried(one, disk) for one in commands]
    assert not mount_fails(["-o", "remount,ro", str(disk)])
    answers.send((full, [tried(one, disk) for one in commands]))


def mount_fails(arguments):
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode != 0


def tried(arguments, disk):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(map(str, arguments)))
    return code, err.getvalue(), {str(path): path.stat().st_size for path in disk.rglob("*") if path.is_file()}


def test_a_real_disk_full_and_read_only(forkserver, data, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    commands = [arguments_of(one, data, disk / one) for one in ("fit", "discover", "reproduce")]
    commands.append(["report", data / "model.ardea", "--out", disk / "page.html"])
    here, there = forkserver.Pipe(duplex=False)
    process = forkserver.Process(target=on_a_small_disk, args=(disk, commands, there))
    process.start()
    there.close()
    assert here.poll(LIMIT), "the commands hang"
    answer = here.recv()
    process.join(LIMIT)
    if answer is None:
        pytest.skip("no right to mount")
    full, locked = answer
    for returned, err, files in full:
        assert returned == 1
        assert err.count("\n") == 1
        assert re.search("No space left on device|disk is full", err), err
        assert not [name for name in files if name.endswith(ENDING)]
        assert all(size > 0 for size in files.values())
    for returned, err, files in locked:
        assert returned == 1
        assert err.count("\n") == 1
        assert re.search(READ_ONLY, err), err
        assert files == full[-1][2]


# Streams --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [no_output, no_error_output, ascii_only], ids=lambda fault: fault.__name__)
def test_streams_that_are_closed_or_lack_letters(fault, run):
    done = run(["rates"], fault)
    assert (done.code, done.err) == (0, "")
    assert fault is not ascii_only or r"\u03c1 = 1 at noise" in done.out
    assert run(["rates", "--false-terms", "1e100"], fault).code == 1


def test_output_to_a_full_disk(run):
    full = run(["rates"], full_output)
    full.assert_one_line("No space left on device")


# Files that appear whole ----------------------------------------------------------------------------------------------


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(tmp_path):
    path = tmp_path / "file"
    dead = tmp_path / f".file.0123456789ab{ENDING}"
    dead.write_text("half of it")
    others = [tmp_path / ".file.txt", tmp_path / f".file2.0123456789ab{ENDING}"]
    for other in others:
        other.write_text("not mine")
    with whole_file(path) as slow:
        slow.write(b"slow")
        assert not dead.exists()
        write_whole(path, "quick")
        assert path.read_text() == "quick"
        assert len(hidden(tmp_path)) == 1 + len(others)
    assert path.read_text() == "slow"
    assert sorted(hidden(tmp_path)) == sorted(others)


def test_an_error_of_the_disk_names_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "none" / "file", "text")
    assert caught.value.filename == str(tmp_path / "none" / "file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "folder", "text")
    assert os.listdir(tmp_path) == ["folder"]


def test_links_are_followed_and_pipes_stay_pipes(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen = []
    reader = threading.Thread(target=lambda: seen.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through")
    reader.join(LIMIT)
    assert seen == ["through"]
    assert pipe.is_fifo()


# Company --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "report", "reproduce"])
def test_two_runs_into_one_folder(command, forkserver, fresh, data):
    out, expected = fresh(command)
    both = [start(forkserver, arguments_of(command, data, out)) for _ in range(2)]
    for one in map(Ended, both):
        assert one.code == 0, one.err
    assert content(out) == expected
    assert hidden(out) == []


def test_many_threads_save_to_one_place(data, tmp_path):
    """All of them to the same file: the last one wins, none disturbs another."""
    model, path = ardea.load(data / "model.ardea"), tmp_path / "model.ardea"
    errors = []

    def save_often():
        try:
            for _ in range(10):
                ardea.save(model, path)
                assert path.read_bytes() == (data / "model.ardea").read_bytes()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save_often) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert errors == []
    assert os.listdir(tmp_path) == ["model.ardea"]


# Trials of a small experiment -----------------------------------------------------------------------------------------


def row_of(settings, number):
    return [{"method": "a", "value": number * number}]


def row_of_a_mortal(settings, number):
    """As above, but the first process that comes to trial 2 is killed."""
    marker = Path(settings.sizes["marker"])
    if number == 2 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return row_of(settings, number)


def small(trial, **sizes):
    return Experiment(
        name="small",
        label="Fig. 0",
        what="nothing",
        sizes={"trials": (5, 5)} | {name: (value, value) for name, value in sizes.items()},
        trial=trial,
        table=lambda rows: f"{len(rows)} rows",
        draw=lambda rows, figure: None,
        core_seconds={"corrected": (1, 1)},
    )


@pytest.mark.slow
def test_a_worker_of_reproduce_is_killed(tmp_path):
    mortal = small(row_of_a_mortal, marker=str(tmp_path / "marker"))
    settings = mortal.settings("quick", "corrected")
    with pytest.raises(OSError, match=r"worker process was killed.*Finished trials are kept") as caught:
        experiment.run(mortal, settings, tmp_path, jobs=2)
    assert "\n" not in str(caught.value)
    folder = experiment.run(mortal, settings, tmp_path, jobs=2)
    assert list(pd.read_csv(folder / "records.csv.gz")["value"]) == [0, 1, 4, 9, 16]


def test_no_more_processes_than_trials(tmp_path, monkeypatch):
    asked = []
    parallel = joblib.Parallel
    monkeypatch.setattr(
        experiment, "Parallel", lambda n_jobs, **rest: asked.append(n_jobs) or parallel(n_jobs=1, **rest)
    )
    one = small(row_of)
    experiment.run(one, one.settings("quick", "corrected"), tmp_path, jobs=10**6)
    assert asked == [5]


def test_a_damaged_record_that_another_run_has_put_aside(tmp_path, monkeypatch, capsys):
    one = small(row_of)
    settings = one.settings("quick", "corrected")
    experiment.run(one, settings, tmp_path)
    store = experiment.store_of(tmp_path, one, settings)
    store.path(1).write_text("damaged")
    replace = Path.replace

    def after_the_other_run(path, target):
        path.unlink()
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", after_the_other_run)
    assert store.load(1) is None
    assert capsys.readouterr().err == ""


# Clocks ---------------------------------------------------------------------------------------------------------------

JUMPS = {"back to 1970": 0.0, "to the year 2100": 4102444800.0}


@pytest.mark.parametrize("jump", JUMPS)
def test_clock_jumps(jump, tmp_path, monkeypatch, capsys):
    """In the middle of the run: trials, their times and the time left do not notice; the date is that of the clock."""
    real = time.time()

    class Clock(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.fromtimestamp(JUMPS[jump], zone)

    def trial(settings, number):
        if number == 2:
            monkeypatch.setattr(time, "time", lambda: JUMPS[jump])
            monkeypatch.setattr(experiment, "datetime", Clock)
        return row_of(settings, number)

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    one = small(trial)
    settings = one.settings("quick", "corrected")
    folder = experiment.run(one, settings, tmp_path)
    shown = capsys.readouterr().err
    assert list(pd.read_csv(folder / "records.csv.gz")["value"]) == [0, 1, 4, 9, 16]
    environment = json.loads((folder / "environment.json").read_text())
    assert datetime.fromisoformat(environment["written"]).replace(tzinfo=UTC).timestamp() == JUMPS[jump]
    assert 0 <= environment["core_seconds"] < 60
    assert "-" not in shown.replace("corrected-quick", "")
    assert not re.search(r"\d+ h", shown)
    for record in experiment.store_of(tmp_path, one, settings).folder.iterdir():
        os.utime(record, (real + 1e9, real + 1e9))  # written in a future that did not come
    again = small(lambda settings, number: pytest.fail("a finished trial is run again"))
    assert experiment.run(again, settings, tmp_path) == folder


@pytest.mark.parametrize("jump", JUMPS)
def test_models_saved_at_any_time_are_the_same(jump, data, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: JUMPS[jump])
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(JUMPS[jump]))
    ardea.save(ardea.load(data / "model.ardea"), tmp_path / "model.ardea")
    assert (tmp_path / "model.ardea").read_bytes() == (data / "model.ardea").read_bytes()


# Memory ---------------------------------------------------------------------------------------------------------------


def pretend(monkeypatch, tmp_path, files):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")


MACHINE = {"proc/meminfo": "MemTotal: 99 kB\nMemAvailable:    8000000 kB\n"}
GROUPS = {
    "nobody tells": ({}, None),
    "machine": (MACHINE, 8_192_000_000),
    "version 2": (
        MACHINE
        | {
            "proc/self/cgroup": "0::/user/job\n",
            "cgroup/user/job/memory.max": "3000000000\n",
            "cgroup/user/job/memory.current": "1000000000\n",
            "cgroup/user/job/memory.stat": "anon 5\ninactive_file 400000000\n",
        },
        2_400_000_000,
    ),
    "version 2, the limit further out": (
        MACHINE
        | {
            "proc/self/cgroup": "0::/user/job\n",
            "cgroup/user/job/memory.max": "max\n",
            "cgroup/user/job/memory.current": "5\n",
            "cgroup/user/memory.max": "1000\n",
            "cgroup/user/memory.current": "2000\n",
        },
        0,
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_what_is_available(case, monkeypatch, tmp_path):
    files, expected = GROUPS[case]
    pretend(monkeypatch, tmp_path, files)
    assert memory.available() == expected
    if expected is None:
        memory.require(10**30, "Anything")
    else:
        memory.require(expected, "Just as much")
        with pytest.raises(MemoryError, match=r"Too much needs about .* are available\. Give the rows in blocks"):
            memory.require(max(expected, memory.LEAST) + 1, "Too much")


def test_small_requests_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: pytest.fail("looked"))
    memory.require(memory.LEAST - 1, "Little")


def test_a_request_beyond_all_numbers():
    with pytest.raises(MemoryError, match="EB of memory"):
        memory.require(10**1000, "A library of degree 10¹⁵")


@pytest.fixture
def large(tmp_path):
    """A table of 800 MB that takes no room on the disk."""
    path = tmp_path / "large.npy"
    table = np.lib.format.open_memmap(path, mode="w+", dtype=float, shape=(10**7, 10))
    del table
    return path


def test_memory_limit_is_one_clear_line(run, large, tmp_path):
    out = tmp_path / "out"
    arguments = ["fit", large, "--target", "0", "--memory", "10 GB", "--out", out]
    run(arguments, little_memory, 500 * 2**20).assert_one_line("needs about 3.2 GB", "available", "--memory")
    arguments = ["discover", large, "--time", "0", "--memory", "10 GB", "--out", out]
    run(arguments, little_memory, 500 * 2**20).assert_one_line("B")
    assert not out.exists()


def test_blocks_get_by_with_little_memory(run, tmp_path):
    rows = np.random.default_rng(0).normal(size=(200_000, 10))
    rows[:, 0] = rows[:, 3] + 0.1 * rows[:, 0]
    np.save(tmp_path / "rows.npy", rows)
    done = run(["fit", tmp_path / "rows.npy", "--target", "0", "--memory", "8 MB"], little_memory, 100 * 2**20)
    assert done.code == 0, done.err
    assert "x3" in done.out


def test_a_library_without_end_is_refused(data, capsys):
    for degree in ("60000", "1000000000000000"):
        arguments = ["discover", str(data / "motion.npy"), "--time", "0", "--degree", degree]
        assert main(arguments) == 1
        assert "smaller --degree" in capsys.readouterr().err
