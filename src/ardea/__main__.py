"""``python -m ardea`` is the command ``ardea``."""

from __future__ import annotations

import sys

from ardea.cli import main

if __name__ == "__main__":
    sys.exit(main())
