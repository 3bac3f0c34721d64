"""What the package says about itself: bounds, extras, versions, imports, the conda recipe, the files it installs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions, requires
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ardea
from ardea.explain import explanation, pages

ROOT = Path(__file__).parents[2]
MODULES = sorted(Path(ardea.__file__).parent.rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
DEVELOPMENT_EXTRAS = {"bench", "docs", "test"}
USER_EXTRAS = set(EXTRAS) - DEVELOPMENT_EXTRAS - {"all"}
RECIPE = yaml.safe_load((ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8"))
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
COMES_WITH = {"joblib": "scikit-learn", "threadpoolctl": "scikit-learn", "pillow": "matplotlib"}
OWNERS = packages_distributions()
GROUPS = {"build": PYPROJECT["build-system"]["requires"], "runtime": PROJECT["dependencies"], **EXTRAS}


def bounds_of(requirements):
    """Return the requirement {name: ">=bound"} of packages other than Ardea."""
    parsed = [Requirement(text) for text in requirements]
    return {canonicalize_name(one.name): str(one.specifier) for one in parsed if one.name != "ardea"}


DECLARED = set().union(*(bounds_of(GROUPS[group]) for group in ("runtime", *USER_EXTRAS)))


def closure(extra):
    """Return the extra and all extras that it names, those of the named ones included."""
    named = {name for text in EXTRAS[extra] if Requirement(text).name == "ardea" for name in Requirement(text).extras}
    return {extra}.union(*(closure(name) for name in named))


def parsed(path):
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_packages(path):
    """Return the top-level names that a module imports anywhere in it, also through import_module("…")."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names |= {part.value for part in node.args if isinstance(part, ast.Constant)}
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("group", GROUPS)
def test_every_requirement_has_one_plain_lower_bound(group):
    for name, bound in bounds_of(GROUPS[group]).items():
        assert re.fullmatch(r">=\d+(\.\d+)*", bound), f"{name}{bound}"


def test_a_package_has_the_same_bound_wherever_it_is_named():
    named = {pair for requirements in GROUPS.values() for pair in bounds_of(requirements).items()}
    assert len({name for name, _ in named}) == len(named)


def test_all_has_every_user_extra_and_test_has_all():
    assert closure("all") == {"all", *USER_EXTRAS}
    assert closure("test") >= closure("all")
    assert not bounds_of(EXTRAS["all"])


def test_messages_name_extras_that_exist():
    for path in MODULES:
        named = re.findall(r"ardea\[([\w,]+)\]", path.read_text(encoding="utf-8"))
        assert {extra for group in named for extra in group.split(",")} <= USER_EXTRAS | {"all"}, path.name


def test_warnings_name_pages_that_exist_and_pages_can_be_read_in_a_terminal():
    for path in MODULES:
        named = re.findall(r"ardea\.explain (\w+)\)|@explained\(\"(\w+)\"\)", path.read_text(encoding="utf-8"))
        assert {"".join(one) for one in named} <= pages().keys(), path.name
    for short in pages():
        text = explanation(short)
        assert explanation(text.partition(" ")[0]) == text  # the name of the class leads to the same page
        assert "](" not in text
        assert max(map(len, text.splitlines())) <= 120
        assert not re.search(r"\*\*\w|\w\*\*|\$", re.sub("`[^`]*`", "", text))
        assert "\\" not in text, f"{short}: formulas of these pages are shown as they stand, in a terminal"
    suspect = explanation("suspect_data")
    assert "how often a row was counted                   `w`\n" in suspect  # a table is one
    assert "`w * w.sum() / (w**2).sum()`" in suspect  # and code stays as it is
    assert "Then u_t = -c u_x holds" in " ".join(explanation("ambiguity").split())
    with pytest.raises(ValueError, match="No warning is called 'nothing'"):
        explanation("nothing")


def test_modules_import_only_what_is_declared():
    for path in MODULES:
        for package in imported_packages(path) - sys.stdlib_module_names - {"ardea"}:
            owners = {canonicalize_name(owner) for owner in OWNERS.get(package, [])}
            assert owners & (DECLARED | set(COMES_WITH)), f"{path.name} imports {package}, which no requirement brings"


@pytest.mark.parametrize("package", COMES_WITH)
def test_what_is_used_but_not_declared_comes_with_what_is(package):
    assert COMES_WITH[package] in DECLARED
    brought = [Requirement(text) for text in requires(COMES_WITH[package])]
    assert package in {canonicalize_name(one.name) for one in brought if one.marker is None}


def test_the_version_is_the_same_everywhere():
    found = {
        "installed": ardea.__version__,
        "CITATION.cff": yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"],
        "conda/meta.yaml": RECIPE["package"]["version"],
        "docs/citing.md": re.search(r"version = \{(.+)\}", (ROOT / "docs" / "citing.md").read_text(encoding="utf-8"))[
            1
        ],
    }
    assert found == dict.fromkeys(found, PROJECT["version"])


def test_the_conda_recipe_asks_for_the_same():
    def as_recipe(bounds):
        return {f"{CONDA_NAMES.get(name, name)} {bound}" for name, bound in bounds.items()}

    required = RECIPE["requirements"]
    optional = {name: bound for extra in USER_EXTRAS for name, bound in bounds_of(EXTRAS[extra]).items()}
    assert set(required["run"]) == as_recipe(
        bounds_of(PROJECT["dependencies"]) | {"python": PROJECT["requires-python"]}
    )
    assert set(required["host"]) == {"python", "pip"} | as_recipe(bounds_of(GROUPS["build"]))
    assert set(required["run_constrained"]) == as_recipe(optional)
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert RECIPE["build"]["entry_points"] == scripts
    assert RECIPE["about"]["license"] == PROJECT["license"]
    assert RECIPE["about"]["summary"] == PROJECT["description"]


def test_types_are_checked_for_the_lowest_python():
    assert PROJECT["requires-python"] == f">={PYPROJECT['tool']['mypy']['python_version']}"


def test_the_type_marker_is_installed():
    assert files("ardea").joinpath("py.typed").is_file()


def test_the_command_is_installed():
    [script] = [point for point in distribution("ardea").entry_points if point.group == "console_scripts"]
    assert (script.name, script.value) == ("ardea", PROJECT["scripts"]["ardea"])
    assert callable(script.load())


def test_the_licence_is_installed():
    assert distribution("ardea").metadata.get_all("License-File") == PROJECT["license-files"]
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])
