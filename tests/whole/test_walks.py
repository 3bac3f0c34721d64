"""How many of our files a call crosses, in which order, and that no file is entered again from one below it.

``python tests/whole/test_walks.py`` prints the three walks that CONTRIBUTING.md draws.
"""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
import pytest

import ardea
from ardea.cli import main
from ardea.dynamics import Discovery, systems

ROOT = f"{Path(ardea.__file__).parent}/"
LAZY = f"{ROOT}core/lazy.py"  # stands in for functools, and is no file that a reader enters
LONGEST = {"regression": 14, "field": 18, "command line": 31}


def our_file(frame):
    """Return the file of ours that a frame runs in, where it is a function; None for other files and for imports."""
    code = frame.f_code
    ours = code.co_filename.startswith(ROOT) and code.co_filename != LAZY and code.co_name != "<module>"
    return code.co_filename.removeprefix(ROOT) if ours else None


def walk(call):
    """Return the files in the order in which a call enters them, and which of them enters which."""
    call()  # what is imported when it is first asked for
    order, enters = {}, {}

    def record(frame, event, _):
        entered = our_file(frame) if event == "call" else None
        if entered is None:
            return
        order.setdefault(entered)
        caller = frame.f_back
        while caller is not None and our_file(caller) is None:
            caller = caller.f_back
        if caller is not None and our_file(caller) != entered:
            enters.setdefault(our_file(caller), set()).add(entered)

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(order), enters


@cache
def regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    y = 2 * X[:, 3] - X[:, 1] + rng.normal(size=200)
    return walk(lambda: ardea.SparseARD().fit(X, y))


@cache
def field():
    system = systems.burgers()
    (t, u), space = system.noisy(0.01, seed=0), system.space
    return walk(lambda: Discovery().fit(u, t, space=space))


@cache
def command_line():
    t, x = systems.linear_oscillator().noisy(0.01, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "series.csv"
        np.savetxt(path, np.column_stack([t, x]), delimiter=",", header="t,x,v", comments="")
        return walk(lambda: main(["discover", str(path), "--time", "t"]))


WALKS = {"regression": regression, "field": field, "command line": command_line}


@pytest.mark.parametrize("name", WALKS)
def test_a_call_crosses_few_files(name, capsys):
    order, _ = WALKS[name]()
    assert len(order) <= LONGEST[name], " → ".join(order)


@pytest.mark.parametrize("make", [regression, field])
def test_a_fit_never_comes_back_to_a_file_above(make):
    _, enters = make()
    list(TopologicalSorter(enters).static_order())  # raises CycleError otherwise


if __name__ == "__main__":
    for title, make in WALKS.items():
        print(f"{title}: {' → '.join(make()[0])}", file=sys.stderr)
