"""The pages of the documentation: their blocks run and print what is shown, their tables are those of the records."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import ardea

DOCS = Path(__file__).parents[2] / "docs"
_specification = importlib.util.spec_from_file_location("pages", DOCS / "pages.py")
pages = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(pages)


@pytest.mark.parametrize("name", [*pages.RUN_PAGES, *pages.TABLE_PAGES])
def test_page_shows_what_its_blocks_print_and_its_records_hold(name):
    shown, today = pages.regenerated(name)
    assert shown == today, "run python docs/pages.py"


@pytest.mark.parametrize("name", pages.RUN_PAGES)
def test_every_python_block_is_run(name):
    """A block that the pattern does not see would rot."""
    text = (DOCS / name).read_text(encoding="utf-8")
    assert len(re.findall("^```python", text, re.MULTILINE)) == sum(
        m["code"] is not None for m in pages.BLOCK.finditer(text)
    )


def test_links_between_pages_lead_somewhere():
    """Sphinx checks the pages of the site; this holds where Sphinx is not installed as well."""
    made = {"gallery/index"}  # by sphinx-gallery
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert target in made or (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]
)
def test_files_that_a_page_names_are_there(page):
    """Paths in code type that begin with a folder of the repository; generated ones and those of readers begin else."""
    folders = r"(?:src|tests|docs|benchmarks|conda|\.ci)"
    for name in re.findall(rf"`({folders}/[\w./-]+)`", page.read_text(encoding="utf-8")):
        assert (DOCS.parent / name).exists(), f"{page.name} names {name}"


def test_contributing_names_every_page_that_is_made():
    line = re.search(
        r"python docs/pages.py {5,}#(.*\n.*)", (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    )[1]
    made = {name.removesuffix(".md") for name in (*pages.RUN_PAGES, *pages.TABLE_PAGES)}
    assert made == set(re.findall(r"\w+", line)) - {"outputs", "tables", "in"} | {"tables"}


def test_version_to_cite_is_the_version():
    assert f"version: {ardea.__version__}\n" in (DOCS.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version = {{{ardea.__version__}}}" in (DOCS / "citing.md").read_text(encoding="utf-8")
