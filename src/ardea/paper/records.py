"""Records on disk: one file per trial, written whole or not at all; and the rows of many trials as one table.

A trial's file is there completely or not at all, whatever kills the process (`ardea.tables.writing`); two runs
into one folder write the same file twice. It carries a checksum: a damaged file is put aside and its trial run again.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ardea.core.problem import Array
from ardea.tables import writing

Value = str | int | float
Row = dict[str, Value]


class Records(list[Row]):
    """Rows of many trials, with the few questions that tables and figures ask.

    Examples
    --------
    >>> records = Records([{"method": "ARD", "l2": 1.0}, {"method": "ARD", "l2": 2.0}, {"method": "ARDvi", "l2": 0.5}])
    >>> records.distinct("method")
    ['ARD', 'ARDvi']
    >>> float(records.where(method="ARD").column("l2").mean())
    1.5
    """

    def where(self, **conditions: Value) -> Records:
        """Return the rows whose columns have these values."""
        return Records(row for row in self if all(row.get(name) == value for name, value in conditions.items()))

    def column(self, name: str) -> Array:
        """Return one column as numbers."""
        return np.array([float(row[name]) for row in self])

    def distinct(self, name: str) -> list[Any]:
        """Return the values of a column, each once, in order of appearance."""
        return list(dict.fromkeys(row[name] for row in self if name in row))


@dataclass(frozen=True)
class TrialResult:
    """The rows of one trial and the seconds of processor time it took."""

    number: int
    seconds: float
    rows: list[Row]


class TrialStore:
    """The finished trials of one experiment at one setting: a folder of small files.

    Parameters
    ----------
    folder : Path
        Where the files are; named by the fingerprint of the setting, so that settings never mix.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, number: int) -> Path:
        """Return where a trial's file is."""
        return self.folder / f"{number:05d}.json"

    def save(self, result: TrialResult) -> None:
        """Write a finished trial."""
        body = json.dumps({"trial": result.number, "seconds": round(result.seconds, 4), "rows": result.rows})
        write_whole(self.path(result.number), f"{_checksum(body)}\n{body}\n")

    def load(self, number: int) -> TrialResult | None:
        """Return a finished trial, or None where there is none or its file is damaged."""
        try:
            checksum, body = self.path(number).read_text(encoding="utf-8").rstrip("\n").split("\n")
        except (FileNotFoundError, ValueError):
            return None
        if checksum != _checksum(body):
            return None
        content = json.loads(body)
        return TrialResult(content["trial"], content["seconds"], content["rows"])

    def finished(self, n_trials: int) -> dict[int, TrialResult]:
        """Return the finished trials by number."""
        found = ((number, self.load(number)) for number in range(n_trials))
        return {number: result for number, result in found if result is not None}

    def count(self, n_trials: int) -> int:
        """Return how many trials have a file, whole or not."""
        return sum(self.path(number).exists() for number in range(n_trials)) if self.folder.exists() else 0

    def put_damaged_aside(self, n_trials: int) -> list[Path]:
        """Rename files that cannot be read to `….damaged` and return their new paths."""
        aside = []
        for number in range(n_trials):
            path = self.path(number)
            if path.exists() and self.load(number) is None:
                with suppress(FileNotFoundError):  # another run into the same folder was faster
                    aside.append(path.replace(path.with_suffix(".json.damaged")))
        return aside


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, with the folders that it lies in."""
    os.makedirs(path.parent, exist_ok=True)
    writing.write_whole(path, content)


def to_csv(rows: Iterable[Row]) -> str:
    """Return rows as CSV; columns in order of first appearance, floats to ten digits."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_shown(row.get(name, "")) for name in names] for row in rows)
    return text.getvalue()


def from_csv(text: str) -> Records:
    """Return the rows of a CSV written by `to_csv`.

    Examples
    --------
    >>> from_csv(to_csv([{"method": "ARD", "added": 3, "l2": 0.5}]))
    [{'method': 'ARD', 'added': 3, 'l2': 0.5}]
    """
    return Records({name: _parsed(cell) for name, cell in row.items() if cell != ""} for row in _csv_rows(text))


def _csv_rows(text: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(io.StringIO(text))


def _shown(value: Value) -> Value:
    return f"{value:.10g}" if isinstance(value, float) else value


def _parsed(cell: str) -> Value:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def summary(records: Records, keys: tuple[str, ...], metrics: tuple[str, ...]) -> list[Row]:
    """Return mean and standard error over trials of every metric, one row per combination of keys."""
    groups: dict[tuple[Value, ...], Records] = {}
    for row in records:
        groups.setdefault(tuple(row.get(key, "") for key in keys), Records()).append(row)
    rows: list[Row] = []
    for names, group in groups.items():
        means: Row = dict(zip(keys, names, strict=True)) | {"n": len(group)}
        for metric in metrics:
            values = group.column(metric)
            means[metric] = float(values.mean())
            means[f"{metric}_se"] = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0
        rows.append(means)
    return rows
