"""The command line: one module per command, argparse only, so that it works on the base install."""

from ardea.cli.program import main

__all__ = ["main"]
