"""Commands that work where a table cannot be used as it is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from ardea.cli import command_line
from ardea.names import in_a_row
from ardea.tables.table import TableError, joined_names

Columns = Callable[[Sequence[str]], list[str]]
# What to do with dates in a regression besides leaving them out.
OF_DATES = "To explain by time as well, write {} as a number, such as the days (or seconds) since the first row."
# Different cells that a command takes as empty, each by an option (a convention: a line).
MOST_TOKENS = 5


def advice(error: TableError, options: argparse.Namespace, columns: Columns) -> str:
    """Return what would help; `columns` tells which columns of the table lists name."""
    target = getattr(options, "target", None)
    changed: dict[str, Any] = {}
    if error.lines:
        changed["drop_lines"] = ",".join([*filter(None, [options.drop_lines]), *map(str, error.lines)])
    if error.zone:
        name = "Leave such lines out, and name" if changed else "Name"
        named = command_line(options, **changed, zone=error.zone)
        return f"{name} the zone of these times, {error.zone} or another whose clocks change then: {named}"
    if error.space:
        field = f"To read it as a field: {command_line(options, space=[joined_names([error.space])])}"
        return f"{field}\n  If {error.space!r} tells runs apart: {command_line(options, series=error.space)}"
    if error.runs and not error.columns:
        return f"If {error.runs[0]!r} tells several runs apart: {command_line(options, series=error.runs[0])}"
    if 0 < len(error.tokens) <= MOST_TOKENS:
        changed["na"] = [*(options.na or []), *error.tokens]
    if changed and error.useless:  # what helps the other columns goes with what helps these
        options = argparse.Namespace(**{**vars(options), **changed})
    elif changed:
        leave = f"leave out line {in_a_row([*map(str, error.lines)])} and " if error.lines else ""
        what = "To leave such lines out"
        if "na" in changed:
            what = f"Correct these lines, or {leave}take such cells as empty"
        return f"{what}: {command_line(options, **changed)}"
    elif error.tokens and not error.useless:
        return "Correct these lines."
    if options.command in ("predict", "simulate"):
        return "The model needs these columns as they were when it was fitted."
    if target in error.columns:
        return f"The target {target!r} must hold numbers, or two texts, of which one then counts as 1."
    if target is not None:
        tried = f"Try: {command_line(options, drop=[*(options.drop or []), joined_names(error.columns)])}"
        if error.runs and options.groups is None:
            others = [name for name in error.columns if name != error.runs[0]]
            dropped = [*(options.drop or []), *([joined_names(others)] if others else [])] or None
            groups = command_line(options, drop=dropped, groups=error.runs[0])
            tried += f"\n  If {error.runs[0]!r} names what was measured several times: {groups}"
        return "\n  ".join([tried, *(OF_DATES.format(repr(name)) for name in error.clocks[:1])])
    return _advice_on_series(error, options, columns)


def _advice_on_series(error: TableError, options: argparse.Namespace, columns: Columns) -> str:
    """Return commands that leave columns out, take them for inputs, or for what tells runs apart."""
    named = columns(options.inputs) if options.inputs else []
    states = [name for name in error.others if name not in named]
    if not states:
        return "No other column is left: give one of numbers."
    inputs = [name for name in named if name not in error.columns]
    without = {"states": [joined_names(states)], "inputs": [joined_names(inputs)] if inputs else None}
    others = without if len(error.columns) > 1 else {}  # which cannot be used either
    if error.clocks:  # and the time is what they lack
        both = joined_names([*columns([options.time]), error.clocks[0]])
        return f"If date and time of day stand in two columns: {command_line(options, **others, time=both)}"
    said = []
    if error.runs and options.series is None and error.runs[0] not in named:
        name = error.runs[0]
        acting = {**others, "inputs": [joined_names([*inputs, name])]}
        said = [f"If {name!r} tells several runs apart: {command_line(options, **{**others, 'series': name})}"]
        said += [f"If it acts from outside: {command_line(options, **acting)}"]
        if len(states) == 1:
            wide = f"table.pivot(index={options.time!r}, columns={name!r}, values={states[0]!r})"
            said += [f"If it names several states, each needs a column of its own: in pandas {wide}.to_csv(…)"]
    return "\n  ".join([*said, f"{'Else' if said else 'Try'}: {command_line(options, **without)}"])
