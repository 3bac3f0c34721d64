"""Sphinx configuration: `sphinx-build -W --keep-going -b html docs build/docs`."""

from __future__ import annotations

import os
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging
from sphinx_gallery.sorting import ExplicitOrder

import ardea

# One thread for BLAS, and no window: the gallery runs the same everywhere.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")

project = "Ardea"
author = "The Ardea team"
copyright = "2026, The Ardea team"
release = version = ardea.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples/*", "_templates/*"]
templates_path = ["_templates"]
default_role = "literal"

html_theme = "furo"
html_title = f"Ardea {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["ardea.css"]
html_math_renderer = "mathml"

# Headings of two levels may be linked to; `$…$` and `$$…$$` are formulas.
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/.*\.py",
    "within_subsection_order": ExplicitOrder(
        [
            "diabetes.py",
            "compressed_sensing.py",
            "lorenz.py",
            "hare_and_lynx.py",
            "yeast.py",
            "series_file.py",
            "gaps.py",
            "inputs.py",
            "second_order.py",
            "constants.py",
            "rivals.py",
            "kuramoto_sivashinsky.py",
            "field_2d.py",
            "pysindy_optimizer.py",
            "dask_rows.py",
        ]
    ),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": True,
    "min_reported_time": 0,
    "reset_modules": ("matplotlib",),
    "write_computation_times": False,
}

# Docstrings are written to be read in a terminal: |μ| is a magnitude and coef_ an attribute, not a substitution and a
# link. Both are escaped outside of literals, doctests and tables.
LITERAL = re.compile(r"(``.+?``|`.+?`_?)")
BAR = re.compile(r"(?<!\\)\|")
ATTRIBUTE = re.compile(r"(?<=\w)_(?![\w`])")


def escaped(line: str) -> str:
    """Return a line of a docstring with bars and trailing underscores escaped outside of literals."""
    if line.lstrip().startswith((">>>", "...", ".. ")) or set(line.strip()) <= set("= -"):
        return line
    parts = LITERAL.split(line)
    parts[::2] = [ATTRIBUTE.sub(r"\\_", BAR.sub(r"\\|", part)) for part in parts[::2]]
    return "".join(parts)


def escape_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape every line that is neither a doctest nor its output."""
    in_doctest = False
    for number, line in enumerate(lines):
        in_doctest = line.lstrip().startswith(">>>") or (in_doctest and bool(line.strip()))
        if not in_doctest:
            lines[number] = escaped(line)


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class inherits from scikit-learn, which documents it itself."""
    function = obj.fget if isinstance(obj, property) else obj
    module = getattr(function, "__module__", None)
    return True if module is not None and not module.startswith("ardea") else None


def mark_record(app: Any, doctree: Any) -> None:
    """Tables of single experiments of the paper are reached from its page, not from the sidebar."""
    if app.env.docname.startswith("reproduction/") and app.env.docname.endswith("/table"):
        app.env.metadata[app.env.docname]["orphan"] = True


BARE_FRACTION = re.compile(r"frac\s*\d")


def formula(node: nodes.Element, *, block: bool) -> str:
    """Return a formula as MathML, which browsers draw themselves: no script, no network."""
    warn = logging.getLogger(__name__).warning
    if BARE_FRACTION.search(node.astext()):
        warn("write \\frac{1}{2}: \\frac12 is read as 12 over what follows", location=node)
    try:
        return str(tex2mathml(node.astext(), as_block=block))
    except MathError as error:
        warn("a formula cannot be drawn: %s", error, location=node)
        return ""


def visit_formula(translator: Any, node: nodes.Element) -> None:
    """Write a formula in a line."""
    translator.body.append(f'<span class="math">{formula(node, block=False)}</span>')
    raise nodes.SkipNode


def visit_formula_block(translator: Any, node: nodes.Element) -> None:
    """Write a formula of its own; a wide one scrolls on a narrow screen."""
    translator.body.append(f'<div class="math">{formula(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Add the writer of formulas and connect the hooks; the first runs before numpydoc's."""
    app.add_html_math_renderer("mathml", (visit_formula, None), (visit_formula_block, None))
    app.connect("autodoc-process-docstring", escape_docstring, priority=100)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("doctree-read", mark_record)
