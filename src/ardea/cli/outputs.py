"""Files that commands write: models, tables that spreadsheets read, figures and the report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea.cli import command_line, table_notes, text_settings
from ardea.equation import Equation
from ardea.saving import save
from ardea.show import figure_bytes, plot_coefficients, plot_path, write_report
from ardea.tables.rows import Rows
from ardea.tables.series import Choice, Series
from ardea.tables.writing import write_whole

if TYPE_CHECKING:
    from ardea.cli.models import Found

FIGURE_FORMATS = ("png", "svg")
# A spreadsheet takes cells that begin with these for formulas; a quote before them makes it show them as they are.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_outputs(found: Found, options: argparse.Namespace, notes: Sequence[str]) -> list[Path]:
    """Write all files of a fit or a discovery into the folder that the options name, and return their places."""
    folder: Path = options.out
    folder.mkdir(parents=True, exist_ok=True)
    save(found.model, folder / "model.ardea")
    table = write_whole(folder / "coefficients.csv", _coefficients_csv(found.equations, options.level))
    figures = _figures(found, folder, options.level)
    return [folder / "model.ardea", table, *figures, write_page(found, folder / "report.html", options, notes)]


def write_page(found: Found, page: Path, options: argparse.Namespace, notes: Sequence[str], **more: Any) -> Path:
    """Write one page about what was found."""
    read = [] if found.source is None else found.source.remarks
    details = {"data": found.data, "targets": found.targets, "source": options.data, "notes": notes, "read": read}
    details["reading"] = _reading(found, options)
    return write_report(found.model, page, level=options.level, command=command_line(options), **details, **more)


def _reading(found: Found, options: argparse.Namespace) -> str | None:
    """Return lines of Python that read the data; None where more than data were given to `fit`, such as groups."""
    told = {
        name: value for name, value in text_settings(options, found.model).items() if value not in (None, (), "auto")
    }
    path, settings = str(options.data), "".join(f", {name}={value!r}" for name, value in told.items())
    if isinstance(found.source, Rows) and not (options.groups or options.rows == "series"):
        rows, notes = found.source, table_notes(found.model)
        products = "".join(
            f"\nX[{name!r}] = {' * '.join(f'X[{one!r}]' for one in factors)}"
            for name, factors in notes["products"].items()
        )
        chosen = f"{list(rows.targets)}, {rows.columns}, missing='drop', levels={notes['levels']}"
        return (
            "from ardea.tables.reading import open_table\nfrom ardea.tables.rows import Rows\n\n"
            f"rows = Rows(open_table({path!r}{settings}), {chosen})\n"
            f"X, y = rows.arrays()\nX = pd.DataFrame(X, columns=rows.names){products}"
        )
    if isinstance(found.source, Series) and not options.time_unit:
        step = "" if options.step is None and not options.map else f"\nt = {options.step or 1.0}"
        choice = Choice(options.time, options.states or (), options.inputs or (), options.series, options.space or ())
        return (
            "from pathlib import Path\nfrom ardea.tables.series import Choice, read_series\n\n"
            f"series = read_series(Path({path!r}), {choice}{settings})\n"
            f"x, t, u, space = series.x, series.t, series.u, series.space{step}"
        )
    return None


def _coefficients_csv(equations: Sequence[Equation], level: float) -> str:
    """Return all terms as CSV, with all digits."""
    rows: list[tuple[Any, ...]] = []
    for found in equations:
        terms = [*zip(*found.table(level).values(), strict=True)]
        if found.intercept is not None:
            std = found.intercept_std or 0.0
            alone = replace(found.posterior, mean=np.array([found.intercept]), covariance=np.array([[std**2]]))
            terms.insert(0, ("intercept", found.intercept, std, *alone.interval(level)[0]))
        rows += [(found.left.text, *row) for row in terms]
    percent = f"{100 * level:g}%"
    return as_csv(rows, ["equation", "term", "coef", "std", f"low {percent}", f"high {percent}"])


def as_csv(columns: Any, titles: Sequence[str] | None = None) -> str:
    """Return columns as CSV with all digits; empty fields where there is no number.

    Texts that a spreadsheet would take for formulas (they begin with = + - @) get a quote before them.
    """
    import pandas as pd

    frame = pd.DataFrame(columns, columns=titles).rename(columns=_harmless)
    return str(frame.map(_harmless).to_csv(index=False, lineterminator="\n"))


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def _figures(found: Found, folder: Path, level: float) -> list[Path]:
    """Draw the coefficients and what led to them."""
    model = found.model
    drawings: dict[str, Callable[[], Any]] = {
        "coefficients": lambda: plot_coefficients(model, level=level, targets=found.targets)
    }
    if hasattr(model, "path_"):
        drawings["path"] = lambda: plot_path(model)
    return [
        write_whole(folder / f"{name}.{kind}", figure_bytes(draw, kind))
        for name, draw in drawings.items()
        for kind in FIGURE_FORMATS
    ]
