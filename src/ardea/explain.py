"""What a warning means and what to do about it, without a network: ``python -m ardea.explain misfit``.

The texts are the pages docs/warnings/*.md of the site. A wheel holds them in the folder `explained` (see setup.py); in
a checkout they are read where they stand.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Sequence
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
    """Return Markdown without its marks: links and bold are their words, paragraphs and lists fill the lines."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "")
    parts = re.split(r"\n(?=[-*] |\d+\. )|\n\n", text.strip())
    shown = []
    for part in parts:
        indent = re.match(r"(?:[-*] |\d+\. )?", part.strip())
        told = {"subsequent_indent": " " * (indent.end() if indent else 0), "break_on_hyphens": False}
        shown.append(textwrap.fill(" ".join(part.split()), WIDTH, **told))  # type: ignore[arg-type]
    return "\n\n".join(shown)


def main(names: Sequence[str]) -> int:
    """Print what warnings mean; without a name, which there are."""
    if not names:
        print(f"python -m ardea.explain NAME, with one of: {', '.join(pages())}")
    for name in names:
        try:
            print(explanation(name))
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
