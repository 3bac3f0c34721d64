"""Files that appear whole or not at all; the mechanism is in `ardea.persistence.writing`."""

from __future__ import annotations

from ardea.persistence.writing import write_whole

__all__ = ["write_whole"]
