"""What commands share: the table that options describe, the command that would work, and the files of `--out`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ardea import __version__
from ardea.cli.console import Failure, print_json, print_warnings, visible
from ardea.equation import Equation
from ardea.saving import save
from ardea.show import figure_bytes, plot_coefficients, plot_equation_residuals, plot_path, write_report
from ardea.show.fits import equations_of
from ardea.tables.columns import level_names
from ardea.tables.reading import open_table
from ardea.tables.table import Table, TableError, joined_names
from ardea.tables.writing import write_whole

# Different cells that a command takes as empty, each by an option (a convention: a line).
MOST_TOKENS = 5
FIGURE_FORMATS = ("png", "svg")
# Options that stand at these are not part of the command that does the same again.
USUAL = {
    "missing": "drop",
    "criterion": "evidence",
    "method": "sparse",
    "form": "weak",
    "level": 0.95,
    "header": "auto",
}
NOT_REPEATED = {"command", "source", "run", "json", "memory"}
# A spreadsheet takes cells that begin with these for formulas; a quote before them makes it show them as they are.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


# What is known of a model's table -------------------------------------------------------------------------------------


def table_of(path: Path, options: argparse.Namespace) -> Table:
    """Open a table as the options say that it is written."""
    return open_table(path, **text_settings(options))


def text_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return how a table is written, by the options."""
    told = {"header": options.header, "decimal": options.decimal, "na": tuple(options.na or ())}
    return {**told, "sheet": options.sheet}


def table_notes(model: Any) -> dict[str, Any]:
    """Return what a model knows of the table that it was fitted to; nothing of one fitted in Python."""
    return {"header": True, "columns": 0, "target": None, "levels": {}} | getattr(model, "table_", {})


def columns_of(names: Sequence[str], levels: dict[str, list[str]]) -> list[str]:
    """Return the column of a table that every column of a model comes from."""
    encoded = {name: column for column, texts in levels.items() for name in level_names(column, texts)}
    return [encoded.get(name, name) for name in names]


@contextmanager
def helped(options: argparse.Namespace) -> Iterator[None]:
    """Add to what is wrong with a table the command that would work."""
    try:
        yield
    except TableError as error:
        if not error.columns:
            raise
        if error.tokens:
            raise Failure(f"{error}\n  {_without_tokens(error.tokens, options)}") from error
        target = getattr(options, "target", None)
        if target in error.columns:
            raise Failure(f"{error}\n  The target {target!r} must hold numbers.") from error
        changed: dict[str, Any] = {"drop": [*(getattr(options, "drop", None) or []), joined_names(error.columns)]}
        if options.command == "discover":
            changed = {"states": [joined_names(error.others) or "A,B"]}
        tried = argparse.Namespace(**{**vars(options), **changed})
        raise Failure(f"{error}\n  Try: {command_line(tried)}") from error


def _without_tokens(tokens: Sequence[str], options: argparse.Namespace) -> str:
    """Return what to do about few cells that are no numbers."""
    if len(tokens) > MOST_TOKENS:
        return "Correct these lines."
    tried = argparse.Namespace(**{**vars(options), "na": [*(options.na or []), *tokens]})
    return f"Correct these lines, or take such cells as empty: {command_line(tried)}"


# Files ----------------------------------------------------------------------------------------------------------------


def check_folder(folder: Path | None) -> None:
    """Refuse a place for files that is a file itself, before anything is fitted."""
    if folder is not None and folder.exists() and not folder.is_dir():
        raise Failure(f"--out {folder} is a file: name a folder, which need not exist.")


def print_found(
    text: str, record: dict[str, Any], notes: list[str], json: bool, write: Callable[[], list[Path]]
) -> None:
    """Write files, print what was found, and say which files: for a person, or all of it at once for machines.

    Files come first: a reader that leaves early (`| head`) ends the program.
    """
    files = write()
    if json:
        print_json({**record, "warnings": notes, "files": [str(file) for file in files]})
        return
    print(text)
    print_warnings(notes)
    for file in files:
        print(visible(f"wrote {file}"))


def header_record(options: argparse.Namespace) -> dict[str, Any]:
    """Return what every JSON begins with."""
    return {"ardea": __version__, "command": options.command, "data": str(options.data), "level": options.level}


def equation_record(found: Equation, level: float) -> dict[str, Any]:
    """Return one equation for machines."""
    rows = zip(*found.table(level).values(), strict=True)
    return {
        "left": found.left.text,
        "formula": found.formula(),
        "intercept": found.intercept,
        "noise_std": found.noise,
        "terms": [dict(zip(("name", "coef", "std", "low", "high"), row, strict=True)) for row in rows],
    }


def command_line(options: argparse.Namespace) -> str:
    """Return a command that does the same again, from the options that differ from their defaults."""
    first = getattr(options, "source", None) or options.data
    parts = ["ardea", options.command, str(first)]
    for name, value in vars(options).items():
        if value is None or value is False or USUAL.get(name) == value or name in NOT_REPEATED or value == first:
            continue
        for one in value if isinstance(value, list) else [value]:
            option = "--" + name.replace("_", "-")
            dashed = str(one).startswith("-")  # would be taken for an option
            parts += [f"{option}={one}"] if dashed else [option, *([] if one is True else [str(one)])]
    return shlex.join(parts)


def write_outputs(
    model: Any, options: argparse.Namespace, notes: Sequence[str], data: Any, targets: Any = None
) -> list[Path]:
    """Write all files of a fit or a discovery and return their places; none where none are asked for."""
    folder: Path | None = options.out
    if folder is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    save(model, folder / "model.ardea")
    table = write_whole(folder / "coefficients.csv", coefficients_csv(equations_of(model, targets), options.level))
    figures = _figures(model, folder, options.level, targets)
    details = {"data": data, "targets": targets, "source": options.data, "notes": notes}
    page = folder / "report.html"
    write_report(model, page, level=options.level, command=command_line(options), **details)
    return [folder / "model.ardea", table, *figures, page]


def coefficients_csv(equations: Sequence[Equation], level: float) -> str:
    """Return all terms as CSV, with all digits."""
    percent = f"{100 * level:g}%"
    columns: dict[str, list[Any]] = {
        title: [] for title in ("equation", "term", "coef", "std", f"low {percent}", f"high {percent}")
    }
    for found in equations:
        rows = [*zip(*found.table(level).values(), strict=True)]
        if found.intercept is not None:
            rows.insert(0, ("intercept", found.intercept, None, None, None))
        for row in rows:
            for column, value in zip(columns.values(), (found.left.text, *row), strict=True):
                column.append(value)
    return as_csv(columns)


def as_csv(columns: dict[str, Any]) -> str:
    r"""Return columns as CSV with all digits; empty fields where there is no number.

    Texts that a spreadsheet would take for formulas (they begin with = + - @) get a quote before them.

    Examples
    --------
    >>> as_csv({"term": ["=1+1"], "coef": [0.1], "std": [float("nan")]})
    "term,coef,std\n'=1+1,0.1,\n"
    """
    import pandas as pd

    frame = pd.DataFrame({_harmless(title): column for title, column in columns.items()})
    return str(frame.map(_harmless).to_csv(index=False, lineterminator="\n"))


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def _figures(model: Any, folder: Path, level: float, targets: Sequence[str] | None) -> list[Path]:
    """Draw the coefficients and what led to them."""
    drawings: dict[str, Callable[[], Any]] = {
        "coefficients": lambda: plot_coefficients(model, level=level, targets=targets)
    }
    if hasattr(model, "path_"):
        drawings["path"] = lambda: plot_path(model)
    if hasattr(model, "residuals_"):
        drawings["residuals"] = lambda: plot_equation_residuals(model)
    return [
        write_whole(folder / f"{name}.{kind}", figure_bytes(draw, kind))
        for name, draw in drawings.items()
        for kind in FIGURE_FORMATS
    ]
