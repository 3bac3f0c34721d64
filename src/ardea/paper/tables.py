"""Markdown tables from records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ardea.paper.records import Records, Row
from ardea.paper.study import METHODS, METRICS, OURS


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table; bars inside cells are escaped.

    Examples
    --------
    >>> print(markdown(["method", "added"], [["ARD", "3"], ["|x|", "0"]]))
    | method | added |
    |---|---|
    | ARD | 3 |
    | \|x\| | 0 |
    """
    cells = [[cell.replace("|", r"\|") for cell in row] for row in (header, *rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def number(value: float) -> str:
    """Return a number with three or four digits that matter.

    Examples
    --------
    >>> number(0.35), number(65.38), number(0.0), number(1234.5), number(3e-5)
    ('0.350', '65.4', '0', '1234', '3.0e-05')
    """
    size = abs(value)
    if value == 0:
        return "0"
    if size < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3f}" if size < 10 else f"{value:.1f}" if size < 1000 else f"{value:.0f}"


def methods_in(records: Records) -> list[str]:
    """Return the methods that occur, in the paper's order, ours last."""
    present = records.distinct("method")
    return [method for method in (*METHODS, *OURS) if method in present] + [
        method for method in present if method not in (*METHODS, *OURS)
    ]


def summed_over_dimensions(records: Records) -> Records:
    """Return one row per trial and method, metrics summed over the dimensions of the system (as for Lorenz 63)."""
    sums: dict[tuple[object, object], Row] = {}
    for row in records:
        total = sums.setdefault((row["trial"], row["method"]), {"trial": row["trial"], "method": row["method"]})
        for metric in METRICS:
            total[metric] = float(total.get(metric, 0)) + float(row[metric])
    return Records(sums.values())


def exact(records: Records) -> int:
    """Return in how many rows the support is exactly that of the truth."""
    return int(((records.column("added") == 0) & (records.column("missed") == 0)).sum())


def comparison(records: Records) -> str:
    """Return mean errors of every method, as Table 1 of the paper, with the number of exact supports."""
    rows = []
    for method in methods_in(records):
        part = records.where(method=method)
        means = [number(float(part.column(metric).mean())) for metric in METRICS]
        rows.append([method, *means, f"{exact(part)} of {len(part)}"])
    return markdown(["method", "ℓ² error", "ℓ¹ error", "added", "missed", "exact support"], rows)


def by_level(records: Records, level: str, shown: int = 7) -> str:
    """Return mean added and missed terms with their expectation, at some levels of every strength."""
    rows = []
    for strength in records.distinct("strength"):
        part = records.where(strength=strength)
        levels = part.distinct(level)
        for index in np.unique(np.linspace(0, len(levels) - 1, min(shown, len(levels))).astype(int)):
            here = part.where(**{level: levels[index]})
            means = [
                number(float(here.column(name).mean()))
                for name in ("added", "expected_added", "missed", "expected_missed", "l2")
            ]
            rows.append([f"{strength:g}", number(levels[index]), *means])
    return markdown(["strength", level, "added", "theory", "missed", "theory", "ℓ² error"], rows)
