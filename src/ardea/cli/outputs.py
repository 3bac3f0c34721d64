"""Where results go: never over what a command reads, and said where they replace others; tables as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ardea.cli import Failure
from ardea.equation import Equation
from ardea.tables import together, write_whole

# What is drawn into the folder of results, and in which formats.
FIGURES, FIGURE_FORMATS = ("coefficients", "path"), ("png", "svg")
# Digits of printed numbers (a convention: more than an error bar needs).
PRINTED_DIGITS = 6
# A spreadsheet takes cells that begin with these for formulas; a quote before them makes it show them as they are.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def files_in(folder: Path) -> list[Path]:
    """Return what stands in the folder of results already."""
    if folder.exists() and not folder.is_dir():
        raise Failure(f"--out {folder} is a file: name a folder, which need not exist.")
    return [*folder.iterdir()] if folder.exists() else []


@contextmanager
def whole_folder(folder: Path) -> Iterator[None]:
    """Make a folder whose files take their places together; where nothing came of it, it is gone again."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with together():
            yield
    finally:
        if made:
            with suppress(OSError):  # unless something stands there
                folder.rmdir()


def remove_earlier(before: Sequence[Path], files: Sequence[Path]) -> list[Path]:
    """Remove what an earlier run drew into the folder of results, and this one did not; return it.

    Nothing is removed from a folder that held no model.
    """
    ours = {f"{name}.{kind}" for name in FIGURES for kind in FIGURE_FORMATS}
    ran = any(one.name == "model.ardea" for one in before)
    gone = [one for one in sorted(before) if ran and one.name in ours and one not in files and one.is_file()]
    for one in gone:
        one.unlink()
    return gone


def write_file(place: Path, content: str | bytes) -> str:
    """Write a file, in a folder that is made where it is not there yet, and return what to say of it."""
    there = place.is_file()
    place.parent.mkdir(parents=True, exist_ok=True)
    return told_written(write_whole(place, content), there)


def told_written(place: Path, replaced: bool) -> str:
    """Return what to say of a file that was written."""
    return f"{'replaced' if replaced else 'wrote'} {place}"


def print_or_write(columns: dict[str, Any], place: Path | None, exact: str = "") -> None:
    """Print a table, with all digits of one column at most, or write it with all digits and say so."""
    if place is None:
        print(as_csv({name: values if name == exact else _shown(values) for name, values in columns.items()}), end="")
    else:
        print(write_file(place, as_csv(columns)))


def _shown(values: Any) -> Any:
    """Return numbers with the digits that are printed."""
    return [float(f"{one:.{PRINTED_DIGITS}g}") for one in values] if values.dtype.kind == "f" else values


def coefficients_csv(equations: Sequence[Equation], level: float) -> str:
    """Return all terms as CSV, with all digits."""
    rows: list[tuple[Any, ...]] = []
    for found in equations:
        terms = found.rows(level)
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
