"""The look of the page: colours as variables for light and dark, then rules for screen, phone and paper."""

from __future__ import annotations

# Every pair of text and background below has a contrast of at least 4.5 (a test computes it).
LIGHT = {
    "page": "#ffffff",
    "panel": "#f3f5f6",
    "text": "#16191c",
    "muted": "#545c63",
    "line": "#c3cad0",
    "accent": "#0b5a83",
    "alert": "#8a2d0c",
    "alert-panel": "#fdf1ea",
}
DARK = {
    "page": "#14181b",
    "panel": "#1f2529",
    "text": "#e8ecef",
    "muted": "#a9b3ba",
    "line": "#465058",
    "accent": "#7cc4ea",
    "alert": "#f5b08c",
    "alert-panel": "#33231b",
}
TEXT_ON = (
    ("text", "page"),
    ("text", "panel"),
    ("muted", "page"),
    ("muted", "panel"),
    ("accent", "page"),
    ("accent", "panel"),
    ("alert", "page"),
    ("alert", "alert-panel"),
    ("text", "alert-panel"),
)


def _variables(palette: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in palette.items())


RULES = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 1rem/1.55 system-ui, sans-serif; }
header, nav, main, footer { max-width: 58rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p, li { max-width: 44rem; overflow-wrap: anywhere; }
a { color: var(--accent); }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; margin: .6rem 0 0; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--page); padding: .3rem .6rem; }
.formula { font: 1.1rem/1.7 Georgia, 'Times New Roman', serif; background: var(--panel); padding: .8rem 1rem;
  border-left: 3px solid var(--accent); overflow-wrap: anywhere; max-width: none; margin: .8rem 0; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; font-size: .95rem; }
caption { text-align: left; color: var(--muted); padding-bottom: .3rem; }
th, td { padding: .25rem .8rem .25rem 0; text-align: right; border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child, td:first-child, .words th, .words td { text-align: left; }
.words td { overflow-wrap: anywhere; min-width: 4.5rem; }
.words td:nth-child(4) { min-width: 9rem; }
thead th { color: var(--muted); font-weight: 600; }
tr.chosen th, tr.chosen td { background: var(--panel); font-weight: 600; }
pre { background: var(--panel); padding: .8rem 1rem; overflow-x: auto; font-size: .9rem; line-height: 1.45; }
figure { margin: 1rem 0; }
figure svg { max-width: 100%; height: auto; display: block; }
figcaption { color: var(--muted); font-size: .92rem; max-width: 44rem; }
.warnings { background: var(--alert-panel); border-left: 3px solid var(--alert); padding: .2rem 1rem; }
.warnings strong { color: var(--alert); }
.path text { fill: var(--muted); font: 12px system-ui, sans-serif; }
.path .axis { stroke: var(--line); fill: none; }
.path .line { stroke: var(--muted); fill: none; stroke-width: 1.2; }
.path .strip { fill: transparent; }
.path .dot { fill: var(--page); stroke: var(--text); stroke-width: 1.5; }
.path .out .dot { stroke: var(--line); }
.path .chosen .dot { fill: var(--accent); stroke: var(--accent); }
.path .model { cursor: pointer; outline: none; }
.path .model:hover .strip, .path .model:focus .strip, .path .shown .strip { fill: var(--line); fill-opacity: .45; }
output { display: block; min-height: 3.2rem; background: var(--panel); padding: .5rem 1rem; overflow-wrap: anywhere; }
footer { color: var(--muted); font-size: .9rem; padding-top: 2rem; padding-bottom: 3rem; }
"""
# Figures are drawn in greys on nothing, so that inverting them is all that dark asks for.
DARK_RULES = "figure svg.drawn { filter: invert(.93); }"
NARROW_RULES = (
    ".path text { font-size: 21px; } "
    "h1 { font-size: 1.35rem; } th, td { padding-right: .5rem; } .formula { font-size: 1rem; padding: .6rem; }"
)
PRINT_RULES = (
    "nav, .skip, output { display: none; } header, main, footer { max-width: none; padding: 0; } "
    "h2, h3 { break-after: avoid; } figure, table, pre { break-inside: avoid; } .scroll { overflow: visible; } "
    "pre { white-space: pre-wrap; } details > * { display: block; }"
)
CSS = "\n".join(
    [
        f":root {{ color-scheme: light dark; {_variables(LIGHT)} }}",
        RULES.strip(),
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} {DARK_RULES} }}",
        f"@media (max-width: 36rem) {{ {NARROW_RULES} }}",
        f"@media print {{ {PRINT_RULES} }}",
    ]
)
