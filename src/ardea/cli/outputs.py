"""What `--out DIR` writes: model, coefficients, figures and report, each whole or not at all."""

from __future__ import annotations

import argparse
import csv
import io
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ardea.cli.console import Failure
from ardea.saving import save
from ardea.show import figure_bytes, plot_coefficients, plot_equation_residuals, plot_path, write_report
from ardea.show.fits import equations_of
from ardea.tables.writing import write_whole
from ardea.versions import __version__

FIGURE_FORMATS = ("png", "svg")


def header_record(options: argparse.Namespace) -> dict[str, Any]:
    """Return what every JSON begins with."""
    return {"ardea": __version__, "command": options.command, "data": str(options.data), "level": options.level}


def command_line(options: argparse.Namespace) -> str:
    """Return a command that does the same again, from the options that differ from their defaults."""
    first = getattr(options, "source", None) or options.data
    parts = ["ardea", options.command, str(first)]
    unset = {
        "missing": "drop",
        "criterion": "evidence",
        "method": "sparse",
        "form": "weak",
        "level": 0.95,
    }
    for name, value in vars(options).items():
        plain = value is None or value is False or unset.get(name) == value
        if plain or name in {"command", "source", "run", "json", "memory"} or value == first:
            continue
        option = "--" + name.replace("_", "-")
        values = value if isinstance(value, list) else [value]
        for one in values:
            parts += [option] if one is True else [option, str(one)]
    return shlex.join(parts)


def check_folder(folder: Path | None) -> None:
    """Refuse a place for files that is a file itself, before anything is fitted."""
    if folder is not None and folder.exists() and not folder.is_dir():
        raise Failure(f"--out {folder} is a file: name a folder, which need not exist.")


def write_outputs(
    model: Any,
    options: argparse.Namespace,
    notes: Sequence[str],
    *,
    data: Any = None,
    targets: Sequence[str] | None = None,
) -> list[Path]:
    """Write all files of a fit or a discovery and return their places."""
    folder: Path = options.out
    folder.mkdir(parents=True, exist_ok=True)
    save(model, folder / "model.ardea")
    table = write_whole(folder / "coefficients.csv", coefficients_csv(model, options.level, targets))
    figures = _figures(model, folder, options.level, targets)
    page = write_report(
        model,
        folder / "report.html",
        data=data,
        level=options.level,
        targets=targets,
        source=options.data,
        command=command_line(options),
        notes=notes,
    )
    return [folder / "model.ardea", table, *figures, page]


def print_files(files: Sequence[Path]) -> None:
    """Say what was written."""
    for file in files:
        print(f"wrote {file}")


def coefficients_csv(model: Any, level: float, targets: Sequence[str] | None = None) -> str:
    """Return all terms as CSV, with all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    percent = f"{100 * level:g}%"
    writer.writerow(["equation", "term", "coef", "std", f"low {percent}", f"high {percent}"])
    for found in equations_of(model, targets):
        if found.intercept is not None:
            writer.writerow([found.left.text, "intercept", repr(found.intercept), "", "", ""])
        for name, *numbers in zip(*found.table(level).values(), strict=True):
            writer.writerow([found.left.text, name, *map(repr, numbers)])
    return text.getvalue()


def _figures(model: Any, folder: Path, level: float, targets: Sequence[str] | None) -> list[Path]:
    """Draw the coefficients and what led to them."""
    drawings: dict[str, Callable[[], Any]] = {
        "coefficients": lambda: plot_coefficients(model, level=level, targets=targets)
    }
    if hasattr(model, "path_"):
        drawings["path"] = lambda: plot_path(model)
    if hasattr(model, "searched_"):
        drawings["residuals"] = lambda: plot_equation_residuals(model)
    return [
        write_whole(folder / f"{name}.{kind}", figure_bytes(draw, kind))
        for name, draw in drawings.items()
        for kind in FIGURE_FORMATS
    ]
