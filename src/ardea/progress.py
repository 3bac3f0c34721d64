"""A progress bar in plain text with the time left."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

WIDTH = 24


class Progress:
    """One line on a terminal that says how much is done and how long the rest will take.

    Parameters
    ----------
    title : str
        Name shown.
    total, done : int
        Steps in all, and those found finished.
    unit : str
        What a step is, in the plural.
    shown : bool, optional
        None: only where the stream is a terminal.
    stream : text stream, optional
        Where to write; standard error by default.

    Examples
    --------
    >>> Progress("fit", 8, 2, unit="blocks", shown=False).line()
    'fit [######..................] 2/8 blocks'
    """

    def __init__(
        self,
        title: str,
        total: int,
        done: int = 0,
        *,
        unit: str = "trials",
        shown: bool | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self.title, self.total, self.done, self.unit = title, total, done, unit
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty() if shown is None else shown
        self._first, self._started = done, time.monotonic()

    def __enter__(self) -> Progress:
        self._write()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            self.stream.write("\n")

    def step(self) -> None:
        """Count one more finished step."""
        self.done += 1
        self._write()

    def line(self) -> str:
        """Return what is shown."""
        filled = WIDTH * self.done // max(self.total, 1)
        bar = "#" * filled + "." * (WIDTH - filled)
        return f"{self.title} [{bar}] {self.done}/{self.total} {self.unit}{self._time_left()}"

    def _time_left(self) -> str:
        fresh = self.done - self._first
        if fresh == 0 or self.done == self.total:
            return ""
        left = (time.monotonic() - self._started) / fresh * (self.total - self.done)
        return f", {duration(left)} left"

    def _write(self) -> None:
        if self.shown:
            self.stream.write(f"\r{self.line():<79}")
            self.stream.flush()


def duration(seconds: float) -> str:
    """Return a length of time in words short enough for a table.

    Examples
    --------
    >>> duration(0.2), duration(42), duration(125), duration(8000)
    ('< 1 s', '42 s', '2 min 5 s', '2 h 13 min')
    """
    if seconds < 1:
        return "< 1 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
