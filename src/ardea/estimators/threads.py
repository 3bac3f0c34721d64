"""Threads of BLAS: one where work is small.

Threads that wait for each other cost more than they bring where a product takes less than a millisecond. On a busy
machine they wait for the scheduler, and a fit of five milliseconds takes a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

# Floating-point operations up to which one thread is used: a tenth of a second of one core.
MOST_FOR_ONE = 1e9

_lock = Lock()
_inside = 0  # how many hold BLAS at one thread now, from whatever threads of Python
_before: list[int] = []  # what it was set to before the first of them


@cache
def _libraries() -> list[Any]:
    """Return the libraries of BLAS that are loaded. Looking for them takes some ten milliseconds."""
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def threads_for(operations: float = 0.0) -> Iterator[None]:
    """Let BLAS work with one thread if so few operations are ahead, and set it back afterwards.

    BLAS has one setting for the whole process: the first to come changes it, the last to leave sets it back.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with threads_for(1e6):
    ...     {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}
    {1}
    """
    global _inside
    if operations > MOST_FOR_ONE:
        yield
        return
    with _lock:
        if _inside == 0:
            _before[:] = [library.num_threads for library in _libraries()]
            _set([1] * len(_before))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _set(_before)


def _set(numbers: list[int]) -> None:
    for library, now, number in zip(_libraries(), _before, numbers, strict=True):
        if now > 1:
            library.set_num_threads(number)
