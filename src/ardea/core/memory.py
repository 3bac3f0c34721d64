"""A clear MemoryError before the machine swaps: what is about to be allocated against what is there.

Asked only where an allocation of many megabytes is ahead, so that small work costs nothing. Available is the least of
what the kernel could give without swapping, what is left of the limits of the control groups (containers, batch jobs),
and what is left of the limit on addresses (``ulimit -v``). Where the system tells none of them nothing is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

# Less than this is never looked at.
LEAST = 64 * 2**20
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Version 2 writes "max" for no limit, version 1 a number near 2⁶³.
NO_LIMIT = 2**60
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
ADVICE = (
    "Give the rows in blocks (partial_fit, Dask arrays, ardea.tables; on the command line a smaller --memory), fewer "
    "rows, or fewer columns or terms."
)


def require(n_bytes: float, what: str, advice: str = ADVICE) -> None:
    """Raise MemoryError where an allocation would not fit into the memory available.

    Parameters
    ----------
    n_bytes : number
        Size of what is about to be allocated, copies included.
    what : str
        What needs it, for the message.
    advice : str
        What to do instead.

    Examples
    --------
    >>> require(10**6, "A small table")
    >>> require(10**18, "A table of 10¹⁷ numbers")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    MemoryError: A table of 10¹⁷ numbers needs about 1 EB of memory; ... available. Give the rows in blocks ...
    """
    if n_bytes < LEAST:
        return
    there = available()
    if there is not None and n_bytes > there:
        raise MemoryError(f"{what} needs about {shown(n_bytes)} of memory; {shown(there)} are available. {advice}")


def available() -> int | None:
    """Return how many bytes can be allocated before the machine swaps or a limit is hit; None where nobody tells."""
    bounds = [bound for bound in (_of_machine(), *_of_groups(), _of_process()) if bound is not None]
    return max(0, min(bounds)) if bounds else None


def shown(n_bytes: float) -> str:
    """Return a size as people read it.

    Examples
    --------
    >>> shown(999), shown(1.5e9), shown(2e21)
    ('999 bytes', '1.5 GB', '2e+03 EB')
    """
    size, unit = float(min(n_bytes, 10**300)), 0  # beyond, a float has no room
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {UNITS[unit]}"


def _of_machine() -> int | None:
    for line in _lines(PROC / "meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return None


def _of_groups() -> Iterator[int]:
    """Yield what is left of the limit of every control group that the process is in, of either version."""
    for line in _lines(PROC / "self" / "cgroup"):
        _, controllers, place = line.split(":", 2)
        if controllers == "":
            yield from _left(CGROUPS, place, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _left(CGROUPS / "memory", place, *names)


def _left(root: Path, place: str, limit: str, usage: str, cache: str) -> Iterator[int]:
    """Yield limit − usage of a group and of those around it; pages of files that can be dropped are not usage."""
    inner = root / place.strip("/")
    for folder in (inner, *inner.parents):
        most, used = _number(folder / limit), _number(folder / usage)
        if most is not None and used is not None and most < NO_LIMIT:
            entries = (line.split() for line in _lines(folder / "memory.stat"))
            yield most - used + sum(int(entry[1]) for entry in entries if entry[0] == cache)
        if folder == root:
            return


def _of_process() -> int | None:
    """Return what is left of the limit on addresses."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = next(iter(_lines(PROC / "self" / "statm")), "").split()
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE")


def _number(path: Path) -> int | None:
    text = next(iter(_lines(path)), "").strip()
    return int(text) if text.isdigit() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
