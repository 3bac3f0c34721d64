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

# Less than this is never looked at: a convention.
LEAST = 64 * 2**20
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
ADVICE = (
    "Give the rows in blocks (partial_fit, Dask arrays, ardea.tables; on the command line a smaller --memory), fewer "
    "rows, or fewer columns or terms."
)


def require(n_bytes: float, what: str, advice: str = ADVICE) -> None:
    """Raise MemoryError, with advice, where what is about to be allocated would not fit into the memory available."""
    if n_bytes < LEAST:
        return
    there = available()
    if there is not None and n_bytes > there:
        raise MemoryError(f"{what} needs about {_shown(n_bytes)} of memory; {_shown(there)} are available. {advice}")


def available() -> int | None:
    """Return how many bytes can be allocated before the machine swaps or a limit is hit; None where nobody tells."""
    machine = (1024 * int(line.split()[1]) for line in _lines(PROC / "meminfo") if line.startswith("MemAvailable:"))
    bounds = [*machine, *_left_of_groups(), *_left_of_addresses()]
    return max(0, min(bounds)) if bounds else None


def _shown(n_bytes: float) -> str:
    size = float(min(n_bytes, 10**300))  # beyond, a float has no room
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} EB"


def _left_of_groups() -> Iterator[int]:
    """Yield limit − usage of the process's control group and of those around it; files that can be dropped are free."""
    for line in _lines(PROC / "self" / "cgroup"):
        inner = CGROUPS / line.split(":", 2)[2].strip("/")
        for folder in (inner, *inner.parents[: len(inner.parts) - len(CGROUPS.parts)]):
            numbers = [" ".join(_lines(folder / name)) for name in ("memory.max", "memory.current")]
            if all(number.isdigit() for number in numbers):
                entries = (line.split() for line in _lines(folder / "memory.stat"))
                dropped = sum(int(entry[1]) for entry in entries if entry[0] == "inactive_file")
                yield int(numbers[0]) - int(numbers[1]) + dropped


def _left_of_addresses() -> Iterator[int]:
    """Yield what is left of the limit on addresses."""
    pages = " ".join(_lines(PROC / "self" / "statm")).split()
    if resource is not None and pages:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            yield limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
