"""The command line: what arguments mean, what happens when a command fails, and what goes to the terminal.

The commands and their options are declared in `options`; each has a module that is loaded to run it. Text is plain,
with colour only where it is seen, and JSON for machines. Loads nothing but argparse.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import re
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn, TextIO

from ardea import __version__
from ardea.cli.options import AS_OPTIONS, COMMANDS, INSTEAD
from ardea.names import in_a_row

FAILED, INTERRUPTED = 1, 130
BOLD, RED, YELLOW = "1", "31", "33"
# The longest first, so that a phrase is taken before the name that stands in it.
PARAMETERS = re.compile("|".join(map(re.escape, sorted(AS_OPTIONS, key=len, reverse=True))))
# Control characters but the line break: a name or a cell with one could take over the terminal.
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# What stands below the options in the help of commands: what data may be, and examples.
HELP = Path(__file__).parent / "help"
# Options and arguments that name what is read, and what is written; files that are written into a folder.
INPUTS, OUTPUTS = ("data", "model", "source", "inputs"), ("out", "plot")
RESULTS = ("model.ardea", "coefficients.csv", "report.html")
# Options that are not part of the command that does the same again.
NOT_REPEATED = ("--json", "--memory")


class Failure(ValueError):
    """Something the user can mend."""


# What data, files and missing packages raise; anything else is a mistake of ours and shows where it arose.
EXPECTED = (ValueError, OSError, ImportError, NotImplementedError, MemoryError)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keep examples as they are written, and leave room for long option names."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(shutil.get_terminal_size().columns, 110))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap paragraphs; an example (an indented line) that is too long has its remark on the next line."""
        parts: list[str] = []
        for kind, lines in groupby(text.splitlines(), key=lambda line: line[:1].isspace() if line else None):
            if kind is None:
                parts += lines
            elif kind:
                parts += [line if len(line) <= width else re.sub(r"(?<=\S) {2,}", "\n      ", line) for line in lines]
            else:
                parts.append(textwrap.fill(" ".join(lines), width))
        return textwrap.indent("\n".join(parts), indent)


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Give a parser the options of a command."""
    group: Any = parser
    for one in COMMANDS[command][2]:
        if isinstance(one, str):
            group = parser.add_argument_group(one)
        else:
            group.add_argument(one[0], **one[1])


def option_names(command: str) -> list[str]:
    """Return the options of a command."""
    declared = (one[0] for one in COMMANDS[command][2] if isinstance(one, tuple))
    return [*(name for name in declared if name.startswith("--")), "--help"]


def build_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, with the options of one command where that is asked for, else of all."""
    description = "Sparse Bayesian regression and equations of motion: few terms, honest error bars."
    settings: dict[str, Any] = {"formatter_class": HelpFormatter, "allow_abbrev": False}
    below = {page.stem: page.read_text(encoding="utf-8") for page in HELP.glob("*.txt")}
    parser = argparse.ArgumentParser("ardea", None, description, below["ardea"], **settings)
    parser.add_argument("--version", action="version", version=f"ardea {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name, (what, _, _) in COMMANDS.items():
        told: dict[str, Any] = {"description": f"{what[0].upper()}{what[1:]}.", "epilog": below.get(name)}
        command = commands.add_parser(name, help=what, **settings, **told)
        if asked in {None, name}:
            add_options(command, name)
    return parser


def read_options(given: Sequence[str]) -> argparse.Namespace:
    """Return what the arguments of a command mean; explain those that mean nothing, and leave."""
    given, asked = with_numbers(given), given[0] if given and given[0] in COMMANDS else None
    parser = build_parser(asked)
    if asked is None:
        if given and not given[0].startswith("-"):
            close = get_close_matches(given[0], COMMANDS, 1)
            meant = f"Did you mean {close[0]}? " if close else ""
            parser.error(visible(f"there is no command {given[0]!r}. {meant}There are {in_a_row([*COMMANDS])}."))
        return parser.parse_args(given)
    known, options = option_names(asked), argparse.Namespace()
    wrong = [one for one in given[1:] if one.startswith("--") and one.partition("=")[0] not in known]
    if not wrong or {"-h", "--help"} & {*given}:  # else these are told before what is lacking
        options, wrong = parser.parse_known_args(given)
    if wrong:
        refuse(given, wrong, options)
    return options


def with_numbers(given: Sequence[str]) -> list[str]:
    """Return arguments in which a number below zero, or a list that begins with one, belongs to the option before it.

    Examples
    --------
    >>> with_numbers(["simulate", "--start", "-1.0,0", "--until", "5"])
    ['simulate', '--start=-1.0,0', '--until', '5']
    """
    joined: list[str] = []
    for one in given:
        if re.match(r"-[.\d]", one) and joined and re.fullmatch("--[a-z-]+", joined[-1]):
            joined[-1] += f"={one}"
        else:
            joined.append(one)
    return joined


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


def command_line(options: argparse.Namespace, **changed: Any) -> str:
    """Return a command that does the same again, some options changed, from those that differ from their defaults."""
    options = argparse.Namespace(**{**vars(options), **changed})
    declared = [one for one in COMMANDS[options.command][2] if isinstance(one, tuple)]
    given = [getattr(options, name) for name, _ in declared if not name.startswith("-")]
    first, parts = given[0], ["ardea", options.command, *map(str, given)]
    for option, settings in (one for one in declared if one[0].startswith("-")):
        value = getattr(options, settings.get("dest", option.strip("-").replace("-", "_")))
        if value in (None, False, first, settings.get("default")) or option in NOT_REPEATED:
            continue
        if isinstance(value, list) and not isinstance(value[0], str):  # numbers
            value = ",".join(map(repr, value))
        for one in value if isinstance(value, list) else [value]:
            dashed = str(one).startswith("-")  # would be taken for an option
            parts += [f"{option}={one}"] if dashed else [option, *([] if one is True else [str(one)])]
    return shlex.join(parts)


def complete(_: argparse.Namespace) -> None:
    """Print a script for bash: commands first, then options after a dash, else files."""
    options = {name: option_names(name) for name in COMMANDS}
    cases = "\n".join(f"    {name}) words='{' '.join(flags)}' ;;" for name, flags in options.items())
    script = f"""# bash completion for ardea, written by `ardea completion`
_ardea() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words='{" ".join(options)} --help --version'
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    if [[ "$current" != -* ]]; then
      COMPREPLY=($(compgen -f -- "$current"))
      return
    fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o filenames -F _ardea ardea
"""
    print(script, end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    make_writable()
    command, options = "", argparse.Namespace()
    try:
        given = sys.argv[1:] if arguments is None else arguments
        options = read_options(given)
        command = options.command
        spare_inputs(options)
        code = int(resolve_name(f"ardea.{COMMANDS[command][1]}")(options) or 0)
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
        complain(command, _told(error, options))
        return FAILED
    return code


def spare_inputs(options: argparse.Namespace) -> None:
    """Refuse to write over what a command reads, under whatever name."""
    given = vars(options)
    read = [given[name] for name in INPUTS if isinstance(given.get(name), Path)]
    for option, place in ((f"--{name}", given[name]) for name in OUTPUTS if isinstance(given.get(name), Path)):
        there = [one for one in (place, *(place / name for name in RESULTS)) if one.is_file()]
        for one, own in ((one, own) for one in there for own in read if own.exists()):
            if one.samefile(own) or own.resolve() in one.resolve().parents:
                told = f"{one} is a file that this command reads, and {option} {place} would replace it"
                raise Failure(f"{told}: name another place.")


def _told(error: BaseException, options: argparse.Namespace) -> str:
    """Return what an error says; of one of the disk what is the matter with which file."""
    if not isinstance(error, OSError) or error.filename is None or error.strerror is None:
        return str(error) or type(error).__name__
    if isinstance(error, FileNotFoundError):
        return f"There is no file {error.filename}."
    place = getattr(options, "out", None)
    ours = place is not None and place in (one := Path(error.filename), *one.parents)
    return f"{error.filename}: {error.strerror}.{' Name another place with --out.' * ours}"


# What goes to the terminal --------------------------------------------------------------------------------------------


def visible(text: str) -> str:
    """Return text with control characters written as escapes."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def painted(text: str, code: str, stream: TextIO | None = None) -> str:
    """Return text with a colour or weight where the stream is a terminal that wants it."""
    stream = sys.stdout if stream is None else stream
    wanted = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\033[{code}m{visible(text)}\033[0m" if wanted else visible(text)


def make_writable() -> None:
    """Let every letter be printed: as an escape where the encoding lacks it, into the void where a stream is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, it stays open
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def complain(command: str, text: str) -> None:
    """Write what went wrong on standard error; lines after the first are indented."""
    lines = [" ".join(line.split()) for line in visible(as_options(text)).splitlines()]
    name = painted(f"ardea {command}".rstrip() + ":", RED, sys.stderr)
    print(f"{name} " + "\n  ".join(line for line in lines if line), file=sys.stderr)


def as_options(text: str) -> str:
    """Return a message of the library with its parameters called as the command line does.

    Examples
    --------
    >>> as_options("Give noise_variance, or try derivative_order=2.")
    'Give --noise, or try --second-order.'
    """
    return PARAMETERS.sub(lambda found: AS_OPTIONS[found[0]], text)


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """Keep warnings as text that speaks of options, each once, instead of printing them where they arise."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(as_options(" ".join(str(one.message).split())) for one in caught)


def print_warnings(notes: list[str]) -> None:
    """Write kept warnings on standard error, one line each."""
    for note in notes:
        print(f"{painted('warning:', YELLOW, sys.stderr)} {visible(' '.join(note.split()))}", file=sys.stderr)


def how_read(path: Path, remarks: Sequence[str]) -> list[str]:
    """Return the lines that say how a file was read; none where nothing is to be said."""
    return [f"How {path.name} was read:", *(f"  {visible(one)}" for one in remarks)] if remarks else []


def print_remarks(path: Path, remarks: Sequence[str]) -> None:
    """Write on standard error how a file was read."""
    for line in how_read(path, remarks):
        print(line, file=sys.stderr)


def print_json(value: Any) -> None:
    """Print for machines: strict JSON, so that numbers that are not finite become null."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value made of what JSON knows; arrays become lists."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def working(text: str) -> None:
    """Say on a terminal what takes long; elsewhere nothing."""
    if sys.stderr.isatty():
        print(f"{visible(text)} …", file=sys.stderr)
