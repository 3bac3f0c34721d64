"""The pages of the documentation: their blocks run and print what is shown, their tables are those of the records."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ardea
from ardea.dynamics import Discovery, systems

DOCS = Path(__file__).parents[2] / "docs"
_specification = importlib.util.spec_from_file_location("pages", DOCS / "pages.py")
pages = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(pages)


@pytest.mark.parametrize("name", pages.PAGES)
def test_page_shows_what_its_blocks_print_and_its_records_hold(name):
    shown, today, pictures = pages.regenerated(name)
    assert shown == today, "run python docs/pages.py"
    for picture in pictures:
        assert (pages.PICTURES / picture).exists(), "run python docs/pages.py"


@pytest.mark.parametrize("name", pages.PAGES)
def test_every_python_block_is_run(name):
    """A block that the pattern does not see would rot."""
    text = pages.PAGES[name].read_text(encoding="utf-8")
    assert len(re.findall("^ *```{?(?:python|py|console)", text, re.MULTILINE)) == len(pages.BLOCK.findall(text))


def test_every_picture_is_drawn_by_a_block_and_shown():
    texts = [path.read_text(encoding="utf-8") for path in pages.PAGES.values()]
    drawn = {name for text in texts for name in re.findall(r'savefig\("(\w+\.svg)"', text)}
    shown = {name for text in texts for name in re.findall(r"pictures/(\w+\.svg)", text)}
    assert drawn == shown == {path.name for path in pages.PICTURES.iterdir()}


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


def test_version_to_cite_is_the_version():
    assert f"version: {ardea.__version__}\n" in (DOCS.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version = {{{ardea.__version__}}}" in (DOCS / "citing.md").read_text(encoding="utf-8")


def fitted_models():
    """Yield a fitted model of every class whose page lists parameters and attributes."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    y = 2 * table["a"] + 0.5 * rng.normal(size=60)
    for name in ("ARD", "ARDvi", "ARDr", "MSTSBL", "LSTSBL", "MAPSTSBL", "SparseARD"):
        yield getattr(ardea, name)().fit(table, y)
    yield ardea.ARDSearch(ardea.ARDvi(), strengths=[4, 9]).fit(table, y)
    t, x = systems.linear_oscillator().noisy(0.05, seed=0)
    yield Discovery().fit(x, t)


def entries(text, section):
    """Return the names that a section of a docstring lists."""
    listed = re.search(rf"^{section}\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)", inspect.cleandoc(text), re.DOTALL | re.MULTILINE)
    return set(re.findall(r"^(\w+) :", listed[1], re.MULTILINE))


def test_the_reference_of_a_class_lists_all_its_parameters_and_attributes():
    for model in fitted_models():
        text = type(model).__doc__
        attributes = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
        assert entries(text, "Parameters") == set(inspect.signature(type(model)).parameters), type(model)
        assert entries(text, "Attributes") == attributes, type(model)
