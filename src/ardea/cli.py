"""The command line: ``ardea demo``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ardea.versions import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="ardea", description="Sparse Bayesian regression: few terms, honest error bars."
    )
    parser.add_argument("--version", action="version", version=f"ardea {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="find the few terms behind 150 noisy rows, out of 300 columns")
    demo.add_argument("--seed", type=int, default=0, help="seed of the generated data (default: 0)")
    options = parser.parse_args(arguments)
    from ardea.demo import run_demo

    print(run_demo(options.seed))
    return 0
