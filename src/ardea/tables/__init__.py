"""Tables, series and fields are read by the modules of this room; here files are written, whole or not at all.

Whatever kills the process that writes, a file is there as a whole or not: it is written beside its place under a
hidden name, flushed to the disk and renamed. The writer holds a lock on the hidden file until it has its name, so that
whoever writes to the same place later can tell the leftover of a writer that was killed (nobody holds its lock) from
the work of one that is still at it, and removes the former.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

ENDING = ".part"
# Files that wait for others, and their places.
_WAITING: ContextVar[tuple[ExitStack, set[str]] | None] = ContextVar("waiting", default=None)


@contextmanager
def together() -> Iterator[None]:
    """Let files that are written in the block take their places at its end: all of them, or none after an error."""
    with ExitStack() as stack:
        token = _WAITING.set((stack, set()))
        try:
            yield
        finally:
            _WAITING.reset(token)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place when the block ends without an error; in `together`, with others.

    Links are followed. A device or pipe, which cannot be replaced, is written to as it is. Errors of the disk name
    `path`, not the hidden file.
    """
    if (waiting := _WAITING.get()) is None:
        with _placed(path, set()) as file:
            yield file
        return
    stack, places = waiting
    file = stack.enter_context(_placed(path, places))
    try:
        yield file
        file.flush()
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            os.fsync(file.fileno())  # a full disk is told before the first file has its place
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def _placed(path: str | os.PathLike[str], others: set[str]) -> Iterator[BinaryIO]:
    """Open a hidden file that takes its place at the end; an error of the disk is its own unless it names `others`."""
    place = Path(path)
    others.add(str(path))
    if place.exists() and not place.is_file() and not place.is_dir():
        with place.open("wb") as device:
            yield device
        return
    hidden: Path | None = None
    try:
        target = place.resolve()
        _remove_leftovers(target)
        hidden, handle = _locked_beside(target)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":
                os.replace(hidden, target)  # while the lock is held
        if sys.platform == "win32":
            os.replace(hidden, target)
    except BaseException as error:
        if hidden is not None:
            hidden.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename not in others:
            error.filename = str(path)
            if error.filename2 is not None:
                del error.filename2
        raise


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file that is there completely or not at all, and return its place."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


def _locked_beside(target: Path) -> tuple[Path, int]:
    """Create the hidden file of a target and lock it."""
    while True:
        hidden = target.with_name(f".{target.name}.{secrets.token_hex(6)}{ENDING}")
        handle = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        locked = _lock(handle)
        # Between its birth and its lock it looks like a leftover, and may be removed as one: then once more.
        if locked is None or (locked and hidden.exists()):
            return hidden, handle
        os.close(handle)
        hidden.unlink(missing_ok=True)


def _remove_leftovers(target: Path) -> None:
    """Remove the hidden files of writers that were killed."""
    start = f".{target.name}."
    with os.scandir(target.parent) as entries:
        hidden = [entry.path for entry in entries if entry.name.startswith(start) and entry.name.endswith(ENDING)]
    for one in hidden:
        try:
            handle = os.open(one, os.O_WRONLY)
        except OSError:  # gone, or somebody else's
            continue
        try:
            if _lock(handle):
                os.unlink(one)
        except OSError:
            continue
        finally:
            os.close(handle)


def _lock(handle: int) -> bool | None:
    """Return whether the lock was had; None where the system or the disk knows no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
