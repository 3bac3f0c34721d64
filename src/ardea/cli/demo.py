"""``ardea demo``: see it work on data it makes itself."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ardea.cli.console import BOLD, painted, working
from ardea.cli.options import HelpFormatter, seed

EPILOG = """\
examples:
  ardea demo
  ardea demo --seed 7 --plot lorenz.svg
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="see it work, on data it makes itself",
        description="Find the few terms behind 150 noisy rows, out of 300 columns; then the equations of Lorenz 63.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--seed", type=seed, default=0, help="seed of the generated data (default: 0)")
    parser.add_argument(
        "--plot",
        type=Path,
        default=Path("ardea-demo.png"),
        metavar="FILE",
        help="where to draw Lorenz 63, if matplotlib is there (default: ardea-demo.png)",
    )
    parser.add_argument("--no-plot", action="store_true", help="print only")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run both parts."""
    from ardea.demo import draw_lorenz, find_lorenz, lorenz_text, next_steps, run_demo

    print(painted("1. Few terms out of many columns", BOLD), end="\n\n")
    print(run_demo(options.seed), end="\n\n")
    print(painted("2. Equations of motion from noisy data", BOLD), end="\n\n")
    working("Searching the equations of Lorenz 63")
    lorenz = find_lorenz(options.seed)
    print(lorenz_text(lorenz), end="\n\n")
    print(_drawing(lorenz, options, draw_lorenz), end="\n\n")
    print(next_steps())
    return 0


def _drawing(lorenz: Any, options: argparse.Namespace, draw: Any) -> str:
    if options.no_plot:
        return "Not drawn (--no-plot)."
    try:
        draw(lorenz, options.plot)
    except OSError as error:
        return f"Not drawn: {options.plot} cannot be written ({error.strerror}). Choose another place with --plot."
    return f"Drawn in {options.plot}: data, and the found equations run from the first row shown, with 95 % bands."
