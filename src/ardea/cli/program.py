"""The parser of all commands, and what happens when one of them fails."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial

from ardea.cli.completion import add_parser as add_completion
from ardea.cli.console import FAILED, INTERRUPTED, Failure, complain, make_writable
from ardea.cli.demo import add_parser as add_demo
from ardea.cli.discover import add_parser as add_discover
from ardea.cli.fit import add_parser as add_fit
from ardea.cli.options import HelpFormatter
from ardea.cli.predict import add_parser as add_predict
from ardea.cli.rates import add_parser as add_rates
from ardea.cli.report import add_parser as add_report
from ardea.versions import __version__

EPILOG = """\
examples:
  ardea demo                                       see it work, on data it makes itself
  ardea fit houses.csv --target price              few terms, with intervals
  ardea predict run/model.ardea new.csv            predictions of a saved model
  ardea discover pendulum.csv --time t             equations of motion from a time series
  ardea rates --false-terms 1 --columns 250        what a strength means
  ardea fit houses.csv --target price --out run    model, table, figure and report in run/

exit codes: 0 done, 1 something is wrong with the data or the model, 2 wrong use, 130 interrupted.
ARDEA_TRACEBACK=1 shows where an error arose; NO_COLOR=1 turns colour off.
"""
# What data, files and missing packages raise; anything else is a mistake of ours and shows where it arose.
EXPECTED = (Failure, ValueError, OSError, ImportError, NotImplementedError, MemoryError)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each command has stored the function that runs it as `run`.

    Examples
    --------
    >>> options = build_parser().parse_args(["fit", "data.csv", "--target", "y"])
    >>> options.command, options.target
    ('fit', 'y')
    """
    from ardea.paper.command import add_parser as add_reproduce

    parser = argparse.ArgumentParser(
        prog="ardea",
        description="Sparse Bayesian regression and equations of motion: few terms, honest error bars.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ardea {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    reproduce = partial(add_reproduce, formatter_class=HelpFormatter)
    every = (add_demo, add_fit, add_predict, add_discover, add_rates, add_report, reproduce, add_completion)
    for add_command in every:
        add_command(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    make_writable()
    command = ""
    try:
        options = build_parser().parse_args(arguments)
        command = options.command
        code = int(options.run(options))
        sys.stdout.flush()
    except KeyboardInterrupt:
        complain(command, "interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe has gone (`| head`). Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except EXPECTED as error:
        if os.environ.get("ARDEA_TRACEBACK"):
            raise
        complain(command, str(error) or type(error).__name__)
        return FAILED
    return code
