"""The command line: arguments into calls. `program` knows all commands; each has a module that is loaded to run it."""

from ardea.cli.program import main

__all__ = ["main"]
