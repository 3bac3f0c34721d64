"""What is raised where a model cannot be saved or read."""

from __future__ import annotations

from typing import Any


class ModelFileError(ValueError):
    """A model cannot be saved, or a file cannot be read as one; the message says why and what to do."""


def require(condition: Any, where: str, what: str) -> None:
    """Refuse a file unless the condition holds; `where` is not `what`."""
    if not condition:
        raise ModelFileError(f"{where} is not {what}. The file is damaged; get it again.")
