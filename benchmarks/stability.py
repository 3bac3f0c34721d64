"""The page about stability: what was tried, how often, what failed, what remains.

``python -m benchmarks.stability`` runs the groups of tests below, slow ones too and with many Hypothesis examples, and
writes ``docs/stability.md`` from what pytest reports. ``--quick`` runs what the default suite runs. A group whose file
does not exist is left out. The exit code is 1 if anything failed.

Every group is a process of its own, which notes each test as it ends: a crash or a hang costs the rest of that group,
and the page says so.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks.process import ROOT, machine
from benchmarks.tables import machine_line, markdown

PAGE = ROOT / "docs" / "stability.md"
EXAMPLES = re.compile(r"(\d+) (?:passing|failing)")


@dataclass(frozen=True)
class Group:
    """One file of tests, and what it tries in words."""

    name: str
    file: str
    words: str

    @property
    def path(self) -> Path:
        """Where the tests are."""
        return ROOT / "tests" / "whole" / self.file


GROUPS = (
    Group(
        "properties",
        "test_properties.py",
        "Problems drawn at random over shapes, ranks, units (1e±150), copied, zero and constant columns, weights, "
        "types and layouts: finite results, certificates, equivariances, descent, the same bits again, round trips.",
    ),
    Group(
        "differential",
        "test_differential.py",
        "The same numbers by another way: references of many digits, all subsets, other packages.",
    ),
    Group(
        "statistical",
        "test_statistics.py",
        "Coverage of intervals, calibration of σ² and false terms, against binomial bounds with fixed seeds.",
    ),
    Group(
        "faults",
        "test_faults.py",
        "Killed and interrupted processes, full disks, read-only folders, clocks that jump, two runs at once, too "
        "little memory.",
    ),
    Group(
        "fuzzing",
        "test_fuzzing.py",
        "Damaged and hostile tables, arrays, saved models and command lines.",
    ),
    Group(
        "load",
        "test_load.py",
        "Thousands of fits in threads and processes: no leak, no deadlock with the threads of BLAS, the same bits, "
        "also with parallel jobs inside parallel jobs.",
    ),
)


@dataclass
class Outcome:
    """One test: how it ended, why, how many Hypothesis examples it tried, and how long it took."""

    test: str
    result: str = "passed"
    reason: str = ""
    examples: int = 0
    seconds: float = 0.0

    @property
    def function(self) -> str:
        """Name of the test without its parameters, in words."""
        return self.test.split("::")[-1].split("[")[0].removeprefix("test_").replace("_", " ")


@dataclass
class Ran:
    """One group, run."""

    group: Group
    outcomes: list[Outcome]
    seconds: float
    end: str = ""

    def count(self, *results: str) -> int:
        """Return how many tests ended so."""
        return sum(outcome.result in results for outcome in self.outcomes)

    @property
    def examples(self) -> int:
        """Hypothesis examples of all tests."""
        return sum(outcome.examples for outcome in self.outcomes)


class Recorder:
    """Pytest plugin: one line of JSON per test, as it ends."""

    def __init__(self, records: Path) -> None:
        self.records = records
        self.outcomes: dict[str, Outcome] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Count the examples of properties that a test runs by itself; Hypothesis' own plugin counts the others."""
        from hypothesis.statistics import collector, describe_statistics  # not before pytest has begun

        outcome = self._outcome(item.nodeid)

        def count(statistics: dict[str, Any]) -> None:
            outcome.examples += examples_in(describe_statistics({**statistics, "nodeid": item.nodeid}))

        with collector.with_value(count):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the report of a phase of a test."""
        report = yield
        outcome = self._outcome(item.nodeid)
        outcome.seconds += report.duration
        if call.when == "call":
            outcome.examples += examples_in(getattr(item, "hypothesis_statistics", ""))
        if report.when == "call" or not report.passed:
            outcome.result, outcome.reason = ending(report)
        if report.when == "teardown":
            with self.records.open("a") as file:
                file.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
        return report

    def _outcome(self, test: str) -> Outcome:
        return self.outcomes.setdefault(test, Outcome(test))


def examples_in(statistics: str) -> int:
    """Return the number of examples in Hypothesis' description of a test.

    >>> examples_in("- during generate phase: 30 passing examples, 1 failing examples, 7 invalid examples")
    31
    """
    return sum(map(int, EXAMPLES.findall(statistics)))


def ending(report: pytest.TestReport) -> tuple[str, str]:
    """Return how a phase of a test ended, and why."""
    if hasattr(report, "wasxfail"):
        reason = report.wasxfail.removeprefix("reason: ")
        return ("remains" if report.skipped else "mended"), reason
    if report.skipped:
        place = report.longrepr
        return "skipped", str(place[2] if isinstance(place, tuple) else place).removeprefix("Skipped: ")
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash is not None else str(report.longrepr)
        return "failed", (text.strip().splitlines() or ["no message"])[0]
    return "passed", ""


def options_of(quick: bool, seed: int) -> list[str]:
    """Return what pytest is told besides the file."""
    shared = ["-q", "-p", "no:cacheprovider"]
    if quick:
        return shared
    return [*shared, "-m", "slow or not slow", "--hypothesis-profile=stability", f"--hypothesis-seed={seed}"]


def run_here(records: str, file: str, *options: str) -> int:
    """Run one file of tests in this process, where the recorder hears of each test."""
    return int(pytest.main([file, "-n", "0", *options], plugins=[Recorder(Path(records))]))


def run_group(group: Group, options: Sequence[str], limit: float) -> Ran:
    """Run a group in a process of its own and return what it noted."""
    began, end = time.perf_counter(), ""
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records.jsonl"
        call = "import sys; from benchmarks.stability import run_here; sys.exit(run_here(*sys.argv[1:]))"
        try:
            done = subprocess.run(
                [sys.executable, "-c", call, str(records), str(group.path), *options],
                cwd=ROOT,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
                timeout=limit,
                check=False,
            )
            if done.returncode not in (0, 1):
                end = f"ended with exit code {done.returncode}"
        except subprocess.TimeoutExpired:
            end = f"stopped after {limit / 60:.0f} minutes"
        lines = records.read_text().splitlines() if records.exists() else []
    if not lines and not end:
        end = "ran no test"
    return Ran(group, [Outcome(**json.loads(line)) for line in lines], time.perf_counter() - began, end)


# The page -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """The whole run, as the page tells it."""

    groups: Sequence[Ran]
    quick: bool
    seed: int
    date: str
    missing: Sequence[str] = field(default=())

    @property
    def how(self) -> str:
        """The sentence that says what was run, and with what."""
        version = importlib.metadata.version("ardea")
        profile = (
            "as in the default suite (Hypothesis profile `quick`, always the same examples; `--quick`)"
            if self.quick
            else f"slow tests included, Hypothesis profile `stability`, seed {self.seed}"
        )
        return f"Ardea {version}, {self.date}, {profile}. {machine_line(machine())}"


def page(run: Run) -> str:
    """Return the page."""
    every = [outcome for ran in run.groups for outcome in ran.outcomes]
    parts = [
        "# Stability",
        "What was tried to break Ardea, how often, what failed, and what remains. This page is made by `python -m "
        "benchmarks.stability`, which runs the tests named below and writes down what they report; nothing on it is "
        "written by hand but the descriptions.",
        run.how,
        totals(run),
        overview(run.groups),
        *(f"`{name}` has no tests yet." for name in run.missing),
        "## What failed",
        listed(run.groups, "failed", "Nothing."),
        *(f"*{ran.group.name}* {ran.end}: what came after is not known." for ran in run.groups if ran.end),
        "## What remains",
        "Defects that a test shows, which is expected to fail and says why. Limits that the tests leave out are in the "
        "list of [known limits](defects.md).",
        listed(run.groups, "remains", "Nothing."),
    ]
    if any(outcome.result == "mended" for outcome in every):
        parts += ["These were expected to fail and pass now; their marks can go:", listed(run.groups, "mended", "")]
    if any(outcome.result == "skipped" for outcome in every):
        parts += ["## Not run here", listed(run.groups, "skipped", "")]
    parts += ["## What was tried", *(details(ran) for ran in run.groups)]
    return "\n\n".join(parts) + "\n"


def totals(run: Run) -> str:
    """Return the whole in one sentence."""
    tests, examples = sum(len(ran.outcomes) for ran in run.groups), sum(ran.examples for ran in run.groups)
    failed, remain = (sum(ran.count(result) for ran in run.groups) for result in ("failed", "remains"))
    minutes = sum(ran.seconds for ran in run.groups) / 60
    return (
        f"**{tests:,} tests with {examples:,} random examples in {minutes:.0f} minutes: {failed} failed, {remain} show "
        "what remains.**"
    )


def overview(groups: Sequence[Ran]) -> str:
    """Return the table of groups."""
    rows = [
        [
            f"[{ran.group.name}](#{ran.group.name})",
            *(
                f"{number:,}"
                for number in (
                    len(ran.outcomes),
                    ran.examples,
                    ran.count("passed", "mended"),
                    ran.count("failed"),
                    ran.count("remains"),
                    ran.count("skipped"),
                )
            ),
            f"{ran.seconds:,.0f} s",
        ]
        for ran in groups
    ]
    return markdown(["group", "tests", "examples", "passed", "failed", "remain", "not run", "time"], rows)


def listed(groups: Sequence[Ran], result: str, nothing: str) -> str:
    """Return the tests that ended so, those of one function with one reason in one line."""
    found = Counter(
        (ran.group.name, outcome.function, outcome.reason)
        for ran in groups
        for outcome in ran.outcomes
        if outcome.result == result
    )
    lines = [
        f"- *{group}*, {function}{f' ({count} cases)' if count > 1 else ''}: {plain(reason) or 'no reason given'}"
        for (group, function, reason), count in found.items()
    ]
    return "\n".join(lines) or nothing


def plain(text: str) -> str:
    """Return a message so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|#$])", r"\\\1", text)


def details(ran: Ran) -> str:
    """Return what a group tries, and how often each of its tests ran."""
    functions: dict[str, list[Outcome]] = {}
    for outcome in ran.outcomes:
        functions.setdefault(outcome.function, []).append(outcome)
    rows = [
        [
            plain(name),
            f"{len(cases):,}",
            f"{sum(case.examples for case in cases):,}",
            f"{sum(case.result == 'failed' for case in cases):,}",
            f"{sum(case.seconds for case in cases):,.1f} s",
        ]
        for name, cases in functions.items()
    ]
    table = markdown(["what must hold", "tests", "examples", "failed", "time"], rows)
    return f"### {ran.group.name}\n\n{ran.group.words} (`tests/whole/{ran.group.file}`)\n\n{table}"


def save(path: Path, text: str) -> None:
    """Write beside the page and rename, so that nobody reads half of it."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the groups and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only what the default suite runs")
    parser.add_argument("--groups", default=",".join(group.name for group in GROUPS), help="which groups, by comma")
    parser.add_argument("--seed", type=int, default=0, help="seed of Hypothesis (not with --quick)")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which a group is stopped")
    parser.add_argument("--out", type=Path, default=PAGE, help="where the page goes")
    chosen = parser.parse_args(arguments)
    wanted = chosen.groups.split(",")
    if unknown := set(wanted) - {group.name for group in GROUPS}:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(g.name for g in GROUPS)}.")
    groups = [group for group in GROUPS if group.name in wanted]
    ran = []
    for group in (group for group in groups if group.path.exists()):
        print(f"== {group.name}", flush=True)
        ran.append(run_group(group, options_of(chosen.quick, chosen.seed), chosen.limit))
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    missing = [group.name for group in groups if not group.path.exists()]
    run = Run(ran, chosen.quick, chosen.seed, date, missing)
    save(chosen.out, page(run))
    print(f"{totals(run).strip('*')}\n{chosen.out}")
    return int(any(group.end or group.count("failed") for group in ran))


if __name__ == "__main__":
    sys.exit(main())
