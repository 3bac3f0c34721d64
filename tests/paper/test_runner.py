"""The machinery of `reproduce`: records that survive anything, resumption, outputs from records alone, messages."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

import ardea.tables
from ardea.cli import main
from ardea.paper import experiment, page
from ardea.paper.catalogue import EXPERIMENTS, experiment_named
from ardea.paper.experiment import Experiment, Trial, TrialStore, figure_file, run, store_of, write, write_outputs

STUDIES = [f"orthogonal-{method}" for method in ("vi", "r", "r-scaled", "m", "l", "map")]
NAMES = [*STUDIES, "fpfn-curve", "rho", "kappa", "merits", "linear", "fourier", "lorenz63", "lorenz96", "ks"]
CALLS: list[int] = []


def counted_trial(settings, number):
    CALLS.append(number)
    return [{"method": "a", "value": number * settings.sizes["factor"]}, {"method": "b", "value": 0.5}]


def stopped_at_three(settings, number):
    if number == 3 and not (settings.sizes["stop"] and CALLS.count(3)):
        CALLS.append(3)
        raise KeyboardInterrupt
    return counted_trial(settings, number)


def draw_dots(rows, figure):
    figure.subplots().plot(rows["value"], "o")
    return "Dots"


@pytest.fixture
def toy():
    CALLS.clear()
    return Experiment(
        name="toy",
        label="Fig. 0",
        what="a toy",
        sizes={"trials": (5, 7), "factor": (2, 2), "stop": (True, True)},
        trial=counted_trial,
        table=lambda rows: f"{len(rows)} rows",
        draw=draw_dots,
        core_seconds={"corrected": (1, 1)},
    )


def reproduce(*arguments, **options):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    program = "import sys; from ardea.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", program, "reproduce", *map(str, arguments)]
    return subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_names_and_labels_are_those_of_the_paper():
    assert [e.name for e in EXPERIMENTS] == NAMES
    labels = [label for e in EXPERIMENTS for label in e.label.split(", ")]
    assert sorted(labels) == sorted(["Table 1", *(f"Fig. {number}" for number in range(1, 16))])
    for e in EXPERIMENTS:
        assert "trials" in e.sizes
        assert "corrected" in e.core_seconds
        assert set(e.core_seconds) <= {*experiment.VARIANTS, *experiment.BEYOND.values()}


# Records.


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "file.json"
    write(path, "old")

    def full(handle):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(ardea.tables.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write(path, "new")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_trial_comes_back_as_it_went(tmp_path):
    store = TrialStore(tmp_path)
    trial = Trial(3, 0.25, [{"method": "ARD", "l2": 0.1 + 0.2, "added": 4, "strength": float("inf")}])
    store.save(trial)
    assert store.load(3) == trial
    assert store.load(2) is None
    assert store.finished(5) == {3: trial}


@pytest.mark.parametrize("damage", [lambda text: text[:-20], lambda text: text.replace("4", "5"), lambda text: ""])
def test_damage_is_seen_and_put_aside(tmp_path, damage):
    store = TrialStore(tmp_path)
    store.save(Trial(0, 0.0, [{"added": 4}]))
    store.path(0).write_text(damage(store.path(0).read_text()))
    assert store.load(0) is None
    assert store.path(0).with_suffix(".json.damaged").exists()
    assert not store.path(0).exists()


def test_records_keep_numbers_and_words(toy, tmp_path):
    rows = pd.DataFrame(
        [{"method": "M-STSBL", "value": 1 / 3, "added": 2}, {"method": "ARD", "strength": float("inf")}]
    )
    write_outputs(tmp_path, toy, toy.settings("quick", "corrected"), rows, {})
    back = pd.read_csv(tmp_path / "records.csv.gz")
    assert back["value"][0] == pytest.approx(1 / 3, rel=1e-5)
    assert back["added"][0] == 2
    assert back["strength"][1] == float("inf")
    assert np.isnan(back["strength"][0])
    assert list(back["method"]) == ["M-STSBL", "ARD"]


def test_everything_that_changes_the_outcome_changes_the_fingerprint(toy, monkeypatch):
    base = toy.settings("quick", "corrected")
    others = [
        replace(base, seed=1),
        replace(base, variant="beyond"),
        replace(base, variant="published"),
        replace(base, sizes=dict(base.sizes) | {"factor": 3}),
        toy.settings("paper", "corrected"),
    ]
    prints = {settings.fingerprint("toy") for settings in [base, *others]} | {base.fingerprint("other")}
    monkeypatch.setattr(experiment, "__version__", "0.0.0")
    prints.add(base.fingerprint("toy"))
    assert len(prints) == 8


# Running.


def test_outputs_and_resumption(toy, tmp_path):
    settings = toy.settings("quick", "corrected")
    folder = run(toy, settings, tmp_path, command="the command")
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "records.csv.gz",
        "table.md",
        "figure.svg",
        "environment.json",
    }
    assert CALLS == [0, 1, 2, 3, 4]
    rows = pd.read_csv(folder / "records.csv.gz")
    assert list(rows[rows["method"] == "a"]["trial"]) == [0, 1, 2, 3, 4]
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["command"] == "the command"
    assert environment["seed"] == 0
    assert "Fig. 0" in (folder / "table.md").read_text()
    run(toy, settings, tmp_path)
    assert CALLS == [0, 1, 2, 3, 4]
    store_of(tmp_path, toy, settings).path(2).unlink()
    run(toy, settings, tmp_path)
    assert CALLS == [0, 1, 2, 3, 4, 2]
    run(toy, replace(settings, sizes={**settings.sizes, "trials": 6}), tmp_path)
    assert CALLS == [0, 1, 2, 3, 4, 2, 5]  # more trials are added to those that are there


def test_changed_settings_start_afresh_and_keep_the_old(toy, tmp_path):
    settings = toy.settings("quick", "corrected")
    run(toy, settings, tmp_path)
    changed = replace(settings, sizes=dict(settings.sizes) | {"factor": 10})
    folder = run(toy, changed, tmp_path)
    assert list(pd.read_csv(folder / "records.csv.gz")["value"])[2] == 10
    assert store_of(tmp_path, toy, settings).finished(5)[1].rows[0]["value"] == 2


def test_an_interruption_keeps_what_is_finished(toy, tmp_path):
    interrupted = replace(toy, trial=stopped_at_three)
    settings = toy.settings("quick", "corrected")
    with pytest.raises(KeyboardInterrupt):
        run(interrupted, settings, tmp_path)
    assert sorted(store_of(tmp_path, toy, settings).finished(5)) == [0, 1, 2]
    run(interrupted, settings, tmp_path)
    assert CALLS == [0, 1, 2, 3, 3, 4]


def test_a_full_disk_is_one_clear_line_and_loses_nothing(toy, tmp_path, monkeypatch):
    settings = toy.settings("quick", "corrected")
    whole = experiment.write

    def full(path, content):
        if path.name == "00003.json":
            raise OSError(errno.ENOSPC, "no space")
        whole(path, content)

    monkeypatch.setattr(experiment, "write", full)
    with pytest.raises(OSError, match=r"no space\. Finished trials are kept") as caught:
        run(toy, settings, tmp_path)
    assert "\n" not in str(caught.value)
    assert sorted(store_of(tmp_path, toy, settings).finished(5)) == [0, 1, 2]
    monkeypatch.undo()
    run(toy, settings, tmp_path)
    assert CALLS == [0, 1, 2, 3, 3, 4]


def test_damaged_records_are_named_kept_and_run_again(toy, tmp_path, capsys):
    settings = toy.settings("quick", "corrected")
    run(toy, settings, tmp_path)
    path = store_of(tmp_path, toy, settings).path(1)
    path.write_text(path.read_text()[:10])
    run(toy, settings, tmp_path)
    assert CALLS == [0, 1, 2, 3, 4, 1]
    message = capsys.readouterr().err
    assert "damaged" in message
    assert path.with_suffix(".json.damaged").exists()


def comparable(folder):
    """Return the records without the times in them."""
    rows = pd.read_csv(folder / "records.csv.gz")
    return rows[[name for name in rows if "seconds" not in name]]


@pytest.fixture
def no_figures(monkeypatch):
    """They cost a second each."""
    monkeypatch.setattr(experiment, "figure_file", lambda *_: b"")


@pytest.mark.usefixtures("no_figures")
def test_any_backend_gives_the_same_records(tmp_path):
    linear = experiment_named("linear")
    settings = linear.settings("quick", "corrected")
    one = run(linear, settings, tmp_path / "one", jobs=1)
    two = run(linear, settings, tmp_path / "two", jobs=2)
    with parallel_config(backend="threading", n_jobs=2):
        three = run(linear, settings, tmp_path / "three")
    for other in (two, three):
        pd.testing.assert_frame_equal(comparable(one), comparable(other), check_exact=True)


@pytest.mark.slow  # with real programs; kills, and two runs in one folder, in the default suite: whole/test_faults.py
def test_killed_and_run_twice_at_once_the_records_are_the_same(tmp_path):
    name, scale = "orthogonal-m", ("--scale", "quick")
    study = experiment_named(name)
    settings = study.settings("quick", "corrected")
    first = reproduce(name, *scale, "--out", tmp_path)
    store, deadline = store_of(tmp_path, study, settings), time.monotonic() + 60
    while not list(store.folder.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert 0 < len(store.finished(settings.sizes["trials"])) <= settings.sizes["trials"]
    both = [reproduce(name, *scale, "--out", tmp_path) for _ in range(2)]
    assert [process.communicate() and process.returncode for process in both] == [0, 0]
    undisturbed = run(study, settings, tmp_path / "undisturbed")
    disturbed = study.folder(tmp_path, settings)
    pd.testing.assert_frame_equal(comparable(disturbed), comparable(undisturbed), check_exact=True)


# Outputs.


def test_figures_come_from_records_alone_and_are_the_same_again(toy, tmp_path):
    settings = toy.settings("quick", "corrected")
    folder = run(toy, settings, tmp_path)
    rows = pd.read_csv(folder / "records.csv.gz")
    again = figure_file(toy, rows)
    assert b"<svg" in again
    assert again == (folder / "figure.svg").read_bytes()
    write_outputs(folder, toy, settings, rows[:4], {})
    assert "4 rows" in (folder / "table.md").read_text()
    assert CALLS == [0, 1, 2, 3, 4]


def test_progress_counts_what_was_done_before(toy, tmp_path, capsys, monkeypatch):
    settings = toy.settings("quick", "corrected")
    run(toy, settings, tmp_path / "quiet")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run(toy, settings, tmp_path)
    assert "5/5" in capsys.readouterr().err
    store_of(tmp_path, toy, settings).path(2).unlink()
    run(toy, settings, tmp_path)
    assert "4/5" in capsys.readouterr().err


# The command.


@pytest.mark.usefixtures("no_figures")
def test_list_says_what_is_done(tmp_path, capsys):
    assert main(["reproduce", "rho", "--scale", "quick", "--out", str(tmp_path)]) == 0
    assert main(["reproduce", "list", "--scale", "quick", "--out", str(tmp_path)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert set(NAMES) <= set(lines)
    assert " done " in lines["rho"]
    assert " not run " in lines["linear"]
    assert "Fig. 8" in lines["rho"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lorentz63"], "no experiment 'lorentz63'"),
        (["rho", "--variant", "published"], "has no published variant"),
        (["linear", "--variant", "published", "--seed", "1"], "--seed is for the corrected variant"),
        (["rho", "--jobs", "0"], "--jobs must not be 0"),
    ],
)
def test_mistakes_are_one_clear_line(arguments, message, tmp_path, capsys):
    assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_an_unusable_folder_is_one_clear_line(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main(["reproduce", "rho", "--scale", "quick", "--out", str(tmp_path / "file" / "out")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "choose another folder with --out" in line


def test_an_interrupted_command_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(page, "run", stopped)
    assert main(["reproduce", "rho", "--out", str(tmp_path)]) == 130
    assert "same command goes on" in capsys.readouterr().err
