"""Run every Python block of docs/pysindy_table.md, in order, and write what it prints into the text block below it.

``python -m benchmarks.pysindy_page`` rewrites the page; ``--check`` only tells whether it is up to date.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "pysindy_table.md"
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n.*?```\n)?", re.DOTALL)


def regenerated(text: str) -> str:
    """Return the page with the output of every block as it is today."""
    space: dict[str, object] = {"__name__": "page"}

    def with_output(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match["code"], str(PAGE), "exec"), space)
        lines = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
        return f"```python\n{match['code']}```\n" + (f"\n```text\n{lines}\n```\n" if lines else "")

    return BLOCK.sub(with_output, text)


def main() -> int:
    """Rewrite or check the page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if the page is out of date")
    options = parser.parse_args()
    before = PAGE.read_text(encoding="utf-8")
    after = regenerated(before)
    if options.check:
        print("up to date" if after == before else "out of date: run python -m benchmarks.pysindy_page")
        return int(after != before)
    temporary = PAGE.with_suffix(".tmp")
    temporary.write_text(after, encoding="utf-8")
    os.replace(temporary, PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
