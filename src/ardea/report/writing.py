"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write beside the place and rename, so that nobody ever sees half a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "page.html", "<p>").read_text(encoding="utf-8")
    '<p>'
    """
    place = Path(path)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)
    return place
