"""What is said of arguments that a command does not know: what may have been meant, below the usage of that command."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from ardea.cli import COMMANDS, HelpFormatter, add_options, option_names
from ardea.cli.console import visible
from ardea.names import in_a_row

STATES = "--states A,B chooses the columns that obey equations; --drop-lines leaves out lines of the file."
EXPLAINED = "`ardea fit` explains one column, --target COLUMN"
MOVING = "`ardea discover` finds equations of motion, and takes --time COLUMN"
# Options of other commands, or of none, with what does here what they are looked for.
INSTEAD = {
    ("fit", "--time"): f"{EXPLAINED}; {MOVING}.",
    ("fit", "--states"): f"{EXPLAINED}, and takes --columns A,B; {MOVING}.",
    ("discover", "--target"): f"{MOVING}; {EXPLAINED}.",
    ("discover", "--drop"): STATES,
    ("discover", "--columns"): STATES,
}


def refuse(given: Sequence[str], wrong: Sequence[str], options: argparse.Namespace) -> NoReturn:
    """Print the usage of a command and what is wrong with its arguments, and leave."""
    command = given[0]
    parser = argparse.ArgumentParser(f"ardea {command}", formatter_class=HelpFormatter)
    add_options(parser, command)
    named = dict.fromkeys(one.partition("=")[0] for one in wrong if one.startswith("-"))
    said = [f"there is no option {one}. {_meant(command, one)}" for one in named]
    others = [one for one in wrong if not one.startswith("-")]
    if others and not named:
        said.append(_left_over(given, others, options))
    parser.error(visible("\n  ".join(said)))


def _meant(command: str, option: str) -> str:
    """Return what an option that a command does not have may stand for."""
    if (command, option) in INSTEAD:
        return INSTEAD[command, option]
    own = option_names(command)
    if owners := [f"`ardea {name}`" for name in COMMANDS if option in option_names(name)]:
        return f"It is one of {in_a_row(owners)}."
    close = [one for one in own if one.startswith(option)] or get_close_matches(option, own, 1)
    return f"Did you mean {' or '.join(close)}?" if close else f"See ardea {command} --help."


def _left_over(given: Sequence[str], others: Sequence[str], options: argparse.Namespace) -> str:
    """Return what is said of texts that belong to no option: parts of a name with blanks, most often."""
    last = first = list(given).index(others[0])
    while last + 1 < len(given) and given[last + 1] in others:
        last += 1
    while not given[first].startswith("-") and first > 0:
        first -= 1
    option, _, begun = given[first].partition("=")
    words = [*filter(None, [begun]), *given[first + 1 : last + 1]]
    arguments = [one[0] for one in COMMANDS[given[0]][2] if isinstance(one, tuple) and not one[0].startswith("-")]
    taken = [str(getattr(options, name, None)) for name in arguments]
    example = f": {option} {shlex.quote(' '.join(words))}" if first > 0 and not {*taken} & {*words} else ""
    told = in_a_row([repr(one) for one in others])
    return f"{told} {'belong' if len(others) > 1 else 'belongs'} to no option. Names with blanks need quotes{example}"
