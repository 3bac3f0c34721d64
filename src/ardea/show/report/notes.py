"""Warnings kept as text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """Keep warnings as text, each once, instead of printing them where they arise.

    Examples
    --------
    >>> with kept_warnings() as notes:
    ...     warnings.warn("too few rows", stacklevel=1)
    >>> notes
    ['too few rows']
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(" ".join(str(one.message).split()) for one in caught)
