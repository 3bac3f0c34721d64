"""``ardea completion bash|zsh|fish``: completion written from the parser, so that it knows every option."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from ardea.cli.options import HelpFormatter

EPILOG = """\
examples:
  ardea completion bash > ~/.local/share/bash-completion/completions/ardea
  ardea completion zsh > "${fpath[1]}/_ardea"
  ardea completion fish > ~/.config/fish/completions/ardea.fish
"""
SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Option:
    """One option of a command: its names, whether it takes a value, what the value may be."""

    flags: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Command:
    """One command: options, and the words that may stand for its argument (files where there are none)."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "completion",
        help="completion of commands and options for your shell",
        description="Print a completion script for a shell.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from ardea.cli.program import build_parser

    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](commands_of(build_parser())), end="")
    return 0


def commands_of(parser: argparse.ArgumentParser) -> list[Command]:
    """Read all commands and options off a parser."""
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in subparsers._choices_actions}
    return [_command(name, helps.get(name, ""), one) for name, one in subparsers.choices.items()]


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> Command:
    options: list[Option] = []
    words: list[str] = []
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        if action.option_strings:
            line = " ".join((action.help or "").replace("%%", "%").split())
            options.append(Option(tuple(action.option_strings), action.nargs != 0, choices, line))
        else:
            words += choices
    if name == "reproduce":
        from ardea.paper.catalogue import EXPERIMENTS

        words += ["all", "list", "report", *(experiment.name for experiment in EXPERIMENTS)]
    return Command(name, text, tuple(options), tuple(words))


def bash(commands: list[Command]) -> str:
    """Return a script for bash: options after a dash, choices after an option that has some, else files."""
    cases = []
    for command in commands:
        flags = " ".join(flag for option in command.options for flag in option.flags)
        lines = [f"    {command.name})", '      case "$previous" in']
        for option in command.options:
            if option.takes_value:
                reply = f"""$(compgen -W '{" ".join(option.choices)}' -- "$current")"""
                filled = f"COMPREPLY=({reply})" if option.choices else 'COMPREPLY=($(compgen -f -- "$current"))'
                lines.append(f"        {'|'.join(option.flags)}) {filled}; return ;;")
        lines += ["      esac", f"      words='{flags}'", f"      plain='{' '.join(command.words)}' ;;"]
        cases.append("\n".join(lines))
    names = " ".join(command.name for command in commands)
    return f"""# bash completion for ardea, written by `ardea completion bash`
_ardea() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words='' plain=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{names} --help --version' -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{chr(10).join(cases)}
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [ -n "$plain" ]; then
    COMPREPLY=($(compgen -W "$plain" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _ardea ardea
"""


def zsh(commands: list[Command]) -> str:
    """Return a script for zsh, with the help of every option."""
    listed = "\n".join(f"    {_quoted(f'{_zsh_word(one.name)}:{one.help}')}" for one in commands)
    cases = []
    for command in commands:
        specs = [_quoted(_zsh_option(flag, option)) for option in command.options for flag in option.flags]
        words = f"1: :({' '.join(command.words)})" if command.words else "*: :_files"
        body = " \\\n        ".join([*specs, _quoted(words)])
        cases.append(f"    {command.name})\n      _arguments \\\n        {body} ;;")
    return f"""#compdef ardea
# zsh completion for ardea, written by `ardea completion zsh`
_ardea() {{
  local -a commands
  commands=(
{listed}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case "$words[1]" in
{chr(10).join(cases)}
  esac
}}
if [ "$funcstack[1]" = "_ardea" ]; then
  _ardea "$@"
else
  compdef _ardea ardea
fi
"""


def _zsh_option(flag: str, option: Option) -> str:
    text = option.help.replace("[", "(").replace("]", ")").replace(":", " ")
    spec = f"{flag}[{text}]"
    if not option.takes_value:
        return spec
    return spec + (f": :({' '.join(option.choices)})" if option.choices else ": :_files")


def _zsh_word(text: str) -> str:
    return text.replace(":", "\\:")


def _quoted(text: str) -> str:
    """Return text as one word of a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def fish(commands: list[Command]) -> str:
    """Return a script for fish, with the help of every option."""
    lines = ["# fish completion for ardea, written by `ardea completion fish`"]
    for command in commands:
        lines.append(f"complete -c ardea -f -n __fish_use_subcommand -a {command.name} -d {_fish(command.help)}")
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"complete -c ardea -f {seen} -a {_fish(' '.join(command.words))}")
        for option in command.options:
            names = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.flags)
            value = " -r" if option.takes_value else ""
            value += f" -f -a {_fish(' '.join(option.choices))}" if option.choices else ""
            lines.append(f"complete -c ardea {seen} {names}{value} -d {_fish(option.help)}")
    return "\n".join(lines) + "\n"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
