"""What a warning means and what to do about it, without a network: ``python -m ardea.explain misfit``.

The texts are the pages docs/warnings/*.md of the site. A wheel holds them in the folder `explained` (see setup.py); in
a checkout they are read where they stand.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from itertools import zip_longest
from pathlib import Path

PACKAGE = Path(__file__).parent
# Letters of a line: a convention of terminals.
WIDTH = 88


def pages() -> dict[str, Path]:
    """Return the page of every warning that has one, by its short name."""
    folder = PACKAGE / "explained"
    folder = folder if folder.exists() else PACKAGE.parents[1] / "docs" / "warnings"
    return {page.stem: page for page in sorted(folder.glob("*.md")) if page.stem != "index"}


def explanation(name: str) -> str:
    """Return what a warning means and what to do about it, as plain text.

    Parameters
    ----------
    name : str
        The short name that the warning gives, or that of its class.

    Returns
    -------
    str

    Examples
    --------
    >>> print(explanation("FewRowsWarning").partition(".")[0])
    FewRowsWarning (on the site: warnings/few_rows)
    <BLANKLINE>
    What happened
    """
    known = pages()
    plain = {short.replace("_", ""): short for short in known}
    short = plain.get(re.sub("warning$|_", "", name.strip().lower()))
    if short is None:
        raise ValueError(f"No warning is called {name!r}. There are {', '.join(known)}.")
    title, _, text = known[short].read_text(encoding="utf-8").partition("\n")
    return f"{title.lstrip('# ')} (on the site: warnings/{short})\n\n{_plain(text)}"


def _plain(text: str) -> str:
    """Return Markdown without its marks: paragraphs and lists fill the lines, tables and code stay as they are."""
    parts = re.split(r"\n(?=[-*] |\d+\. )|\n\n", text.strip())
    return "\n\n".join(_block(part) for part in parts)


def _block(part: str) -> str:
    """Return a paragraph, an item of a list, a table or code as a terminal shows it."""
    if part.startswith("```"):
        return "\n".join(f"    {line}" for line in part.splitlines() if not line.startswith("```"))
    if part.startswith("|"):
        rows = [[_words(cell) for cell in line.strip("| ").split(" | ")] for line in part.splitlines()]
        del rows[1]  # the line below the heads
        width = min(max(len(row[0]) for row in rows), WIDTH // 2) + 2
        lines = [[textwrap.wrap(row[0], width - 2), textwrap.wrap("  ".join(row[1:]), WIDTH - width)] for row in rows]
        cells = (zip_longest(*one, fillvalue="") for one in lines)
        return "\n".join(f"{left:{width}}{right}".rstrip() for one in cells for left, right in one)
    plain = _words(" ".join(part.split()))
    return textwrap.fill(plain, WIDTH, subsequent_indent=len(re.findall(r"^(?:[-*] |\d+\. )?", plain)[0]) * " ")


def _words(text: str) -> str:
    """Return a text without the marks of links, emphasis and formulas; code stays as it is."""
    code = re.findall(r"`[^`]*`", text)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "`", text))
    plain = re.sub(r"(\*\*?|\$)(?=\S)([^*$]*[^*$\s])\1", r"\2", plain)
    return re.sub("`", lambda _: code.pop(0), plain)


def overview() -> str:
    """Return all short names, each with the first sentence of its page."""
    texts = {name: explanation(name).partition("What happened. ")[2] for name in pages()}
    firsts = {name: re.split(r"(?<=[.])\s", " ".join(text.split()), maxsplit=1)[0] for name, text in texts.items()}
    width = max(map(len, firsts)) + 2
    lines = [
        textwrap.fill(f"{name:{width}}{told}", WIDTH, subsequent_indent=width * " ") for name, told in firsts.items()
    ]
    return "\n".join(["python -m ardea.explain NAME prints what a warning means and what to do:", "", *lines])


if __name__ == "__main__":
    try:
        print("\n\n".join(explanation(name) for name in sys.argv[1:]) or overview(), flush=True)
    except ValueError as error:
        sys.exit(str(error))
    except BrokenPipeError:  # the reader has gone (`| head`); Python would complain once more when it closes the stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
