"""The command ``reproduce NAME|all|list|report``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from ardea.paper.experiment import SCALES, VARIANTS, Experiment, ExperimentError, duration

DEFAULT_OUT = Path("reproduction")
INTERRUPTED = 130
DESCRIPTION = """\
Make the tables and figures of Rudy & Sapsis, 'Sparse Methods for Automatic
Relevance Determination', from seeds. May be stopped at any moment: the same
command goes on where it was."""
EPILOG = """\
Every experiment gets a folder under --out: records of all trials, table,
figure, and what it was made with.

examples:
  ardea reproduce list                         what there is, how long it takes
  ardea reproduce linear --scale quick         Table 1 in seconds, few trials
  ardea reproduce linear --variant published   Table 1 as the authors made it
  ardea reproduce linear --beyond              our methods on the same data
  ardea reproduce all --jobs 2                 all 15: 15 minutes of one core
  ardea reproduce report --to page             one page from all results
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], formatter_class: Any
) -> argparse.ArgumentParser:
    """Add ``reproduce`` to a command line and return its parser; :func:`run` does what it asks for."""
    parser = subparsers.add_parser(
        "reproduce",
        help="make the tables and figures of the paper, as published or corrected",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=formatter_class,
    )
    parser.add_argument("name", help="an experiment, or: all, list (what there is), report (page from all results)")
    parser.add_argument("--scale", choices=SCALES, default="paper", help="quick: seconds (default: paper)")
    parser.add_argument("--variant", choices=VARIANTS, default="corrected", help="which algorithm (default: corrected)")
    parser.add_argument("--beyond", action="store_true", help="add our own methods on the same data")
    parser.add_argument("--jobs", type=int, default=None, metavar="N", help="parallel jobs (default: joblib's, one)")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, metavar="DIR", help="results (default: reproduction)")
    parser.add_argument(
        "--to", type=Path, default=None, metavar="DIR", help="report: where to write it (default: --out)"
    )
    parser.add_argument(
        "--authors", type=Path, default=None, metavar="CSV", help="report: the authors' per-trial results, to compare"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the data (default 0, the authors'); corrected only"
    )
    parser.set_defaults(run=run)
    return parser


def run(options: argparse.Namespace) -> int:
    """Do what the command line asks for and return the exit code."""
    try:
        if options.name == "list":
            print(listing(options))
        elif options.name == "report":
            _report(options)
        else:
            _run_experiments(options)
    except ExperimentError as error:
        print(f"ardea reproduce: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. Finished trials are kept; the same command goes on from there.", file=sys.stderr)
        return INTERRUPTED
    return 0


def _report(options: argparse.Namespace) -> None:
    from ardea.paper.page import write_page
    from ardea.paper.runner import explained

    to = options.to or options.out
    with explained(to):
        print(write_page(options.out, to, options.scale, options.authors))


def _run_experiments(options: argparse.Namespace) -> None:
    from ardea.paper.catalogue import EXPERIMENTS, experiment_named
    from ardea.paper.runner import run as run_experiment

    _check(options)
    chosen = [e for e in EXPERIMENTS if options.variant in e.core_seconds]
    if options.name != "all":
        chosen = [experiment_named(options.name)]
    for experiment in chosen:
        if options.variant not in experiment.core_seconds:
            raise ExperimentError(
                f"{experiment.name} has no published variant: σ is known and nothing in the authors' code changes it. "
                "Run the corrected one."
            )
        start = time.monotonic()
        settings = experiment.settings(options.scale, options.variant, options.seed)
        asked = {"jobs": options.jobs, "beyond": options.beyond, "command": _command(options)}
        folder = run_experiment(experiment, settings, options.out, **asked)
        print(f"{experiment.name}: {folder} ({duration(time.monotonic() - start)})")


def _check(options: argparse.Namespace) -> None:
    if options.variant == "published" and options.seed != 0:
        raise ExperimentError("--seed is for the corrected variant: the published one replays the authors' seed.")
    if not 0 <= options.seed < 2**32:
        raise ExperimentError(f"--seed must be a whole number from 0 to 2**32 - 1; got {options.seed}.")
    if options.jobs == 0:
        raise ExperimentError("--jobs must not be 0: give a number of processes, or -1 for all cores.")


def _command(options: argparse.Namespace) -> str:
    parts = ["ardea reproduce", options.name, f"--scale {options.scale}", f"--variant {options.variant}"]
    parts += ["--beyond"] * options.beyond + [f"--jobs {options.jobs}"] * (options.jobs is not None)
    return " ".join(parts + [f"--seed {options.seed}"] * (options.seed != 0))


def listing(options: argparse.Namespace) -> str:
    """Return what there is, how long it takes here, and what is done, at the scale and variant asked for."""
    from ardea.paper.catalogue import EXPERIMENTS

    lines = [
        f"Experiments at {options.scale} scale, {options.variant} variant; results in {options.out}.",
        "Time is for one core: measured from the trials recorded here, else an estimate (~).",
        "",
        f"{'name':<20}{'state':<16}{'time':<14}{'paper label':<40}what",
    ]
    for experiment in EXPERIMENTS:
        if options.variant in experiment.core_seconds:
            state, cost = _state(experiment, options)
            lines.append(f"{experiment.name:<20}{state:<16}{cost:<14}{experiment.label:<40}{experiment.what}")
    return "\n".join(lines)


def _state(experiment: Experiment, options: argparse.Namespace) -> tuple[str, str]:
    """Return how much is done and what all of it costs."""
    from ardea.paper.runner import store_of

    settings = experiment.settings(options.scale, options.variant, options.seed)
    total = settings.n_trials
    seconds = [trial.seconds for trial in store_of(options.out, experiment, settings).finished(total).values()]
    if not seconds:
        return "not run", "~ " + duration(experiment.core_seconds[options.variant][SCALES.index(options.scale)])
    state = "done" if len(seconds) == total else f"{len(seconds)} of {total}"
    return state, duration(sum(seconds) / len(seconds) * total)
