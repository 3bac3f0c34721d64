"""``python -m ardea.paper reproduce …``: the command by itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ardea.paper.command import add_parser, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m ardea.paper")
    add_parser(parser.add_subparsers(required=True, metavar="COMMAND"))
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
