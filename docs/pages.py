"""Write what the blocks of the pages print and draw, and the tables made from saved records, into the pages.

``python docs/pages.py`` rewrites the README and every page of this folder; names of pages as arguments rewrite only
those, ``--check`` only tells whether they are up to date. A Python block is followed by a text block with what it
prints and warns of; a console block holds one `ardea` command and its output. A picture ``pictures/name.svg`` is drawn
by a block that saves ``name.svg``. A table stands between ``<!-- table: name -->`` and ``<!-- end of table -->`` and
comes from ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt

from ardea.cli import main as ardea_command

matplotlib.use("agg")
os.environ["SOURCE_DATE_EPOCH"] = "0"  # pictures bear no date

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))  # where benchmarks is
from benchmarks import growth, tables  # noqa: E402

RESULTS = DOCS.parent / "benchmarks" / "results"
PICTURES = DOCS / "pictures"
# Its blocks take minutes: ``python -m benchmarks.pysindy_page`` runs them.
MADE_ELSEWHERE = "pysindy_table.md"
PAGES = {
    str(path.relative_to(DOCS.parent)): path
    for path in [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("warnings/*.md"))]
    if path.name != MADE_ELSEWHERE
}
# The bytes of a picture depend on nothing but what it shows.
STEADY = {"svg.hashsalt": "ardea"}
BLOCK = re.compile(
    r"```python\n(?P<code>.*?)```\n(?:\n```text\n.*?```\n)?|```console\n\$ ardea (?P<command>[^\n]*)\n.*?```\n",
    re.DOTALL,
)
TABLE = re.compile(r"<!-- table: (?P<name>\w+) -->\n.*?<!-- end of table -->", re.DOTALL)
Record = dict[str, Any]
# Of the lines of a warning.
WIDTH = 100
# Keeps a number and its unit, or numbers that belong together, on one line of a narrow cell.
NO_BREAK = "\u00a0"
# Seconds after which a fit of a comparison counts as not finished.
TIME_LIMIT = 30


def with_outputs(text: str, name: str) -> tuple[str, dict[str, bytes]]:
    """Return a page with the output of every block as it is today, run in order in a new folder, and the pictures."""
    space: dict[str, object] = {"__name__": "page"}

    def with_output(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if match["command"] is None:
                exec(compile(match["code"], name, "exec", dont_inherit=True), space)
            elif ardea_command(shlex.split(match["command"])) != 0:
                raise RuntimeError(f"{name}: `ardea {match['command']}` failed.")
        shown = [*printed.getvalue().splitlines(), *warned(caught)]
        lines = "\n".join(line.rstrip() for line in shown)
        if match["command"] is not None:
            return f"```console\n$ ardea {match['command']}\n{lines}\n```\n"
        return f"```python\n{match['code']}```\n" + (f"\n```text\n{lines}\n```\n" if lines else "")

    if BLOCK.search(text) is None:
        return text, {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), matplotlib.rc_context(STEADY):
        text = BLOCK.sub(with_output, text)
        plt.close("all")
        return text, {path.name: path.read_bytes() for path in Path(folder).glob("*.svg")}


def warned(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return warnings as lines, each warning once."""
    texts = dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in caught)
    return [line for text in texts for line in textwrap.wrap(text, WIDTH)]


def with_tables(text: str) -> str:
    """Return a page with its tables as the saved records have them."""
    return TABLE.sub(
        lambda match: f"<!-- table: {match['name']} -->\n{TABLES[match['name']]()}\n<!-- end of table -->", text
    )


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: bool = False) -> str:
    """Return a table; numbers are aligned to the right."""
    header = list(header)
    rule = ["---", *(["---:" if numbers else "---"] * (len(header) - 1))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *map(list, rows)])


def seconds(value: float, limit: float = float("inf")) -> str:
    """Return a time with its unit."""
    if value > limit:
        return unbroken(f"> {limit:g} s")
    return unbroken(f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms")


def unbroken(text: str) -> str:
    """Return a text that stays on one line."""
    return text.replace(" ", NO_BREAK)


def selection(problem: str, method: str, criterion: str) -> Record:
    """Return one record of ``python -m benchmarks.selection``."""
    records = json.loads((RESULTS / "selection.json").read_text(encoding="utf-8"))["rows"]
    wanted = (problem, method, criterion)
    return next(one for one in records if (one["problem"], one["method"], one["criterion"]) == wanted)


def errors(record: Record) -> str:
    """Return ‖error‖₂ / ‖error‖₁ / added / missed."""
    return unbroken(f"{record['l2']:.3f} / {record['l1']:.2f} / {record['added']:.1f} / {record['missed']:.1f}")


def defaults_table() -> str:
    """Return every method at its calibrated default."""
    methods = ["ARD", "ARDvi", "ARDr", "MSTSBL", "LSTSBL", "MAPSTSBL", "MAPSTSBL backward", "SparseARD"]
    rows = [[f"`{m}`", *(errors(selection(p, m, "default")) for p in ("linear", "fourier"))] for m in methods]
    truth = "least squares on the true support"
    rows.append([truth, *(errors(selection(problem, truth, "oracle")) for problem in ("linear", "fourier"))])
    return markdown(["", "Linear", "Fourier"], rows)


def criteria_table() -> str:
    """Return every criterion for SparseARD, with the time of one search."""
    trials = {"linear": selection("linear", "ARD", "default"), "fourier": selection("fourier", "ARD", "default")}

    def cell(problem: str, criterion: str) -> str:
        record = selection(problem, "SparseARD", criterion)
        fewer = record["trials"] != trials[problem]["trials"]
        return f"{errors(record)}; {seconds(record['seconds'])}" + (f" ({record['trials']} draws)" if fewer else "")

    criteria = ["default", "evidence", "ebic", "aicc", "bic", "aic", "ebic2", "cv", "stability", "oracle"]
    names = ["none: `false_terms=0.3`", *(f"`{criterion}`" for criterion in criteria[1:])]
    rows = [[n, cell("linear", c), cell("fourier", c)] for n, c in zip(names, criteria, strict=True)]
    return markdown(["criterion", "Linear", "Fourier"], rows)


def calibration_table() -> str:
    """Return the false terms of SparseARD for every design and signal of ``python -m benchmarks.calibration``."""
    records = json.loads((RESULTS / "calibration.json").read_text(encoding="utf-8"))["records"]
    chosen = [one for one in records if one["estimator"] == "SparseARD" and one["false_terms"] == 1.0]
    cells = {(one["design"], one["signal"]): f"{one['added']:.2f} ± {one['added_error']:.2f}" for one in chosen}
    designs = dict.fromkeys(one["design"] for one in chosen)
    rows = [[design, *(cells[design, signal] for signal in ("none", "strong", "weak"))] for design in designs]
    return markdown(["columns", "no true term", "strong terms", "weak terms"], rows, numbers=True)


def speed() -> tuple[dict[str, str], list[Record]]:
    """Return the machine and the records of ``python -m benchmarks.run``."""
    saved = json.loads((RESULTS / "speed.json").read_text(encoding="utf-8"))
    return saved["settings"]["machine"], saved["records"]


def peers() -> dict[tuple[str, str], Record]:
    """Return the same records by case and method."""
    return {(one["case"], one["method"]): one for one in speed()[1]}


def growth_table() -> str:
    """Return the exponents of ``python -m benchmarks.growth``."""
    return growth.table(json.loads((RESULTS / "growth.json").read_text(encoding="utf-8"))["curves"])


def outcome(record: Record) -> str:
    """Return terms added / missed and CPU time of one fit."""
    time = float("inf") if record.get("kept") is None else record["cpu"]
    terms = "" if time > TIME_LIMIT else unbroken(f"{record['added']} / {record['missed']}") + "; "
    return terms + seconds(time, limit=TIME_LIMIT)


def headline_table() -> str:
    """Return three lines for the README: a wide regression, real tables, and fields with much noise."""
    one, (tables, _, found) = peers(), finished()
    fields = json.loads((RESULTS / "discovery.json").read_text(encoding="utf-8"))["systems"]

    def real_mean(method: str) -> str:
        r2, terms = (sum(found[table, method][what] for table in tables) / len(tables) for what in ("r2", "terms"))
        return f"`{method}`: R² {r2:.3f} with {terms:.0f} terms"

    def exact(method: str) -> str:
        noisy = [field for field in fields if field["method"] == method and field["noise"] == 0.25]
        return f"{sum(field['exact'] for field in noisy)} of {sum(field['draws'] for field in noisy)}"

    rows = [
        [
            "50 true terms among 900 columns, 250 rows: false / missed terms; CPU time",
            *(f"`{name}`: {outcome(one['fourier', name])}" for name in ("SparseARD", "ARDRegression")),
        ],
        [
            f"{len(tables)} real tables: R² on rows left out, with how many terms",
            *map(real_mean, ("SparseARD", "LassoCV")),
        ],
        [
            "10 partial differential equations from fields with 25 % noise: right equations",
            f"`Discovery`: {exact('Discovery')}",
            f"PySINDy's weak form, tuned with the truth: {exact('weak STLSQ')}",
        ],
    ]
    return markdown(["", "Ardea", "in comparison"], rows)


def peers_table() -> str:
    """Return terms added / missed and CPU time of every package on every case of ``python -m benchmarks.run``."""
    found = peers()
    methods = [
        "SparseARD",
        "ARD",
        "ARDRegression",
        "fastrvm",
        "abess",
        "skglm",
        "LassoCV",
        "LassoLarsIC",
        "STLSQ",
    ]
    rows = [
        [
            f"{case.split('_')[0]} " + unbroken(f"{one['rows']} × {one['columns']}"),
            *(outcome(found.get((case, method), {})) for method in methods),
        ]
        for (case, own), one in found.items()
        if own == "SparseARD"
    ]
    return markdown(["", *methods], rows, numbers=True)


def weak_table() -> str:
    """Return the relative risk of every method for every shape and ratio of ``python -m benchmarks.weak``."""
    records = json.loads((RESULTS / "weak.json").read_text(encoding="utf-8"))["records"]
    cells = {(one["rows"], one["columns"], one["ratio"], one["method"]): one for one in records}
    ratios = dict.fromkeys(one["ratio"] for one in records)
    rows = [
        [f"{unbroken(f'{m} × {d}')}, {method}", *(f"{cells[m, d, ratio, method]['risk']:.2f}" for ratio in ratios)]
        for m, d, method in dict.fromkeys((one["rows"], one["columns"], one["method"]) for one in records)
    ]
    return markdown(["signal to noise", *(f"{ratio:g}" for ratio in ratios)], rows, numbers=True)


def real() -> tuple[list[str], list[str], dict[tuple[str, str], Record]]:
    """Return tables, methods and records of ``python -m benchmarks.real_tables``."""
    records = json.loads((RESULTS / "real_tables.json").read_text(encoding="utf-8"))["records"]
    found = {(one["table"], one["method"]): one for one in records}
    return list(dict.fromkeys(table for table, _ in found)), list(dict.fromkeys(method for _, method in found)), found


def finished() -> tuple[list[str], list[str], dict[tuple[str, str], Record]]:
    """Return the same, of the tables that every method was done with in time."""
    tables, methods, found = real()
    return [table for table in tables if all((table, method) in found for method in methods)], methods, found


def real_table() -> str:
    """Return R² and the number of terms of every method on every real table."""
    tables, methods, found = real()
    rows = []
    for table in tables:
        shape = found[table, methods[0]]
        here = [found.get((table, method)) for method in methods]
        cells = ["–" if one is None else f"{one['r2']:.3f}; {one['terms']:.0f}" for one in here]
        rows.append([f"{table} " + unbroken(f"{shape['rows']} × {shape['columns']}"), *map(unbroken, cells)])
    return markdown(["", *methods], rows, numbers=True)


def real_means_table() -> str:
    """Return the means over the real tables that every method was done with in time."""
    tables, methods, found = finished()

    def mean(method: str, what: str) -> float | None:
        values = [found[table, method][what] for table in tables]
        return None if None in values else sum(values) / len(values)

    rows = []
    for method in methods:
        coverage = mean(method, "coverage")
        numbers = [f"{mean(method, 'r2'):.3f}", f"{mean(method, 'terms'):.0f}", f"{mean(method, 'alike'):.2f}"]
        inside = "–" if coverage is None else f"{100 * coverage:.1f} %"
        rows.append([method, *numbers, unbroken(inside), seconds(mean(method, "seconds") or 0.0)])
    header = ["", "R²", "terms", "supports alike", "inside 95 %", "CPU time"]
    return markdown(header, rows, numbers=True)


def coverage_table() -> str:
    """Return how often intervals of SparseARD hold the truth, by its t, of all shapes of ``benchmarks.promises``."""
    lines = (RESULTS / "promises_coverage.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    kept = [sum(column) for column in zip(*(one["kept"] for one in records), strict=True)]
    total = sum(one["trials"] for one in records)
    rows = [["kept", *(f"{100 * one / total:.0f} %" for one in kept)]]
    for kind in ("posterior", "refit", "selective"):
        held = [sum(column) for column in zip(*(one[kind] for one in records), strict=True)]
        rows.append([f"`{kind}` holds", *(f"{100 * a / b:.0f} %" for a, b in zip(held, kept, strict=True))])
    return markdown(["true t", *("1", "2", "3", "4", "6", "10")], rows, numbers=True)


TABLES: dict[str, Callable[[], str]] = {
    "coverage": coverage_table,
    "defaults": defaults_table,
    "criteria": criteria_table,
    "calibration": calibration_table,
    "headline": headline_table,
    "machine": lambda: tables.machine_line(speed()[0]),
    "speed": lambda: tables.overview(speed()[1]),
    "speed_cases": lambda: tables.case_tables(speed()[1]),
    "growth": growth_table,
    "peers": peers_table,
    "weak": weak_table,
    "real": real_table,
    "real_means": real_means_table,
}


def regenerated(name: str) -> tuple[str, str, dict[str, bytes]]:
    """Return a page as it is and as it should be, and the pictures that its blocks draw."""
    text = PAGES[name].read_text(encoding="utf-8")
    shown, pictures = with_outputs(text, name)
    return text, with_tables(shown), pictures


def write(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def main() -> int:
    """Rewrite or check the pages; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help="such as docs/start.md; all by default")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if a page is out of date")
    options = parser.parse_args()
    stale = []
    for name in options.pages or PAGES:
        before, after, pictures = regenerated(name)
        if after != before:
            stale.append(name)
        if not options.check:
            write(PAGES[name], after.encode())
            for picture, content in pictures.items():
                write(PICTURES / picture, content)
    print("up to date" if not stale else ("out of date: " if options.check else "rewritten: ") + ", ".join(stale))
    return int(options.check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
