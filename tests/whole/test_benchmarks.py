"""What benchmarks judge by: forms of equations, and the scores of a run on two small systems."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
X = np.linspace(0.1, 2.0, 50)[:, None]


@pytest.fixture
def benchmark(monkeypatch):
    """Return what imports a benchmark."""
    pytest.importorskip("sympy")
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: import_module(f"benchmarks.{name}")


@pytest.mark.parametrize(
    ("terms", "constants", "right"),
    [
        (["1", "x0/(K + x0)"], {"K": 1.0}, True),
        (["1", "1/(K + x0)"], {"K": 1.0}, True),  # the same curves in other words
        (["1", "x0/(K + x0)", "1/(K + x0)"], {"K": 1.0}, False),  # one too many
        (["1", "x0", "x0/(K + x0)"], {"K": 1.0}, False),  # x0 is not needed
        (["x0/(K + x0)"], {"K": 1.0}, False),  # the constant is missed
        (["1", "x0^2/(K^2 + x0^2)"], {"K": 1.0}, False),
    ],
)
def test_a_form_is_right_however_it_is_written(benchmark, terms, constants, right):
    assert benchmark("right_form").is_right(terms, constants, "2 + 3*x0/(x0 + 0.7)", ["x0"], X) is right


def test_products_and_powers_are_read_as_the_libraries_write_them(benchmark):
    assert benchmark("right_form").as_python("x^2 y/(K + x) sin(2 x)") == "x**2*y/(K + x)*sin(2*x)"


def test_scoreboards_run_go_on_and_tell(benchmark, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(benchmark("motions"), "CACHE", tmp_path / "cache")
    asked = ["run", "odebench", "--methods", "Ardea", "--names", "ode1,ode3", "--noises", "0.01"]
    told = []
    for _ in range(2):
        benchmark("scoreboards").main([*asked, "--records", str(tmp_path / "records.jsonl.gz")])
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]  # times, too: nothing is done twice
    assert "| Ardea | 2 of 2 | 2 of 2 | 2 of 2 | 0 |" in told[0]
    assert "Not run with Ardea: ode2, " in told[0]


def test_stability_records_the_tests_of_groups_that_are_there(benchmark, tmp_path):
    stability = benchmark("stability")
    assert all(group.path.is_file() for group in stability.GROUPS)
    (tmp_path / "test_some.py").write_text("def test_right():\n    pass\n\n\ndef test_wrong():\n    assert 0\n")
    assert stability.run_here(str(tmp_path / "records.jsonl"), str(tmp_path / "test_some.py")) == 1
    noted = (tmp_path / "records.jsonl").read_text()
    assert noted.count('"passed"') == noted.count('"failed"') == 1
