"""Pieces of HTML. Whatever comes from the user passes through `escaped`."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from ardea.show.report.style import CSS

# The page may load nothing from anywhere: what it needs is in it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
# Shows the model of a point of the path in the box below it; without it the table says the same.
SCRIPT = """
for (const figure of document.querySelectorAll(".path")) {
  const box = document.getElementById(figure.dataset.box);
  for (const model of figure.querySelectorAll(".model")) {
    const show = () => {
      box.textContent = model.getAttribute("aria-label");
      figure.querySelectorAll(".shown").forEach((one) => one.classList.remove("shown"));
      model.classList.add("shown");
    };
    for (const event of ["mouseenter", "focus", "click"]) model.addEventListener(event, show);
  }
}
"""


@dataclass(frozen=True)
class Section:
    """A section of the page: its anchor, heading and HTML."""

    anchor: str
    heading: str
    body: str


def escaped(text: object) -> str:
    """Return text that cannot become markup.

    Examples
    --------
    >>> escaped("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    # Control characters have no place in HTML.
    shown = "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in str(text))
    return html.escape(shown)


def paragraph(text: object) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escaped(text)}</p>"


def code(text: str) -> str:
    """Return a block of code, reachable by keyboard since it may scroll."""
    return f'<pre tabindex="0"><code>{escaped(text)}</code></pre>'


def listing(items: Sequence[object]) -> str:
    """Return a list of plain texts."""
    return "<ul>" + "".join(f"<li>{escaped(item)}</li>" for item in items) + "</ul>"


def table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    chosen: int | None = None,
    words: bool = True,
) -> str:
    """Return a table whose first column names the rows; one row may be marked as chosen.

    Examples
    --------
    >>> '<th scope="row">age</th><td>1</td>' in table("Terms", ["term", "coef"], [["age", 1]])
    True
    """
    head = "".join(f'<th scope="col">{escaped(name)}</th>' for name in header)
    body = []
    for number, (first, *rest) in enumerate(rows):
        mark = ' class="chosen"' if number == chosen else ""
        cells = "".join(f"<td>{escaped(cell)}</td>" for cell in rest)
        body.append(f'<tr{mark}><th scope="row">{escaped(first)}</th>{cells}</tr>')
    kind = ' class="words"' if words else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption)}"><table{kind}>'
        f"<caption>{escaped(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def figure(picture: str, caption: str) -> str:
    """Return a figure with its caption; `picture` is HTML."""
    return f"<figure>{picture}<figcaption>{escaped(caption)}</figcaption></figure>"


def warnings_list(items: Sequence[tuple[str, str]]) -> str:
    """Return doubts as a list, each with a heading in bold."""
    lines = "".join(f"<li><strong>{escaped(short)}</strong> {escaped(rest)}</li>" for short, rest in items)
    return f'<div class="warnings"><ul>{lines}</ul></div>'


def document(title: str, sections: Sequence[Section], *, version: str) -> str:
    """Return the whole page."""
    links = "".join(f'<li><a href="#{one.anchor}">{escaped(one.heading)}</a></li>' for one in sections)
    body = "\n".join(
        f'<section id="{one.anchor}" aria-labelledby="{one.anchor}-heading">'
        f'<h2 id="{one.anchor}-heading">{escaped(one.heading)}</h2>\n{one.body}</section>'
        for one in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="generator" content="Ardea {escaped(version)}">
<title>{escaped(title)}</title>
<style>
{CSS}
</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><h1>{escaped(title)}</h1></header>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<main id="main">
{body}
</main>
<footer><p>Written by Ardea {escaped(version)}. This page is one file and loads nothing from the network.</p></footer>
<script>{SCRIPT}</script>
</body>
</html>
"""
