"""One direction of import, as DESIGN.md draws it, read from the source itself."""

from __future__ import annotations

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ardea

ROOT = Path(ardea.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FORBIDDEN_NAMES = {"utils", "util", "misc", "helpers", "helper", "common", "tools", "stuff"}

# The rooms from the bottom up: a module imports from its own room and from those below. Single modules are rooms too.
ROOMS = [
    {"core", "versions", "progress", "names"},
    {"rates", "priors"},
    {"methods"},
    {"equation", "tables", "readers"},
    {"estimators"},
    {"distributed", "dynamics"},
    {"exports", "persistence", "pysindy", "show"},
    {"paper"},
    {"cli", "demo"},
]
# What the core may use besides the standard library.
CORE_PACKAGES = {"numpy", "scipy", "ardea"}


def module_name(path):
    """Return ardea.core.problem for …/ardea/core/problem.py."""
    parts = ("ardea", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def part_of(module):
    """Return core for ardea.core.problem."""
    return module.split(".")[1] if "." in module else "ardea"


def loaded_statements(body):
    """Yield the imports that run when a module is loaded: not those inside functions or for type checkers."""
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from loaded_statements(statement.orelse)
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for block in ("body", "orelse", "finalbody", "handlers"):
                yield from loaded_statements(getattr(statement, block, []))


def imported_modules(path):
    """Return the full names of all modules that a file imports when it is loaded."""
    package = module_name(path) if path.stem == "__init__" else module_name(path).rpartition(".")[0]
    names = set()
    for statement in loaded_statements(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
            continue
        base = statement.module or ""
        if statement.level:
            parents = package.split(".")[: len(package.split(".")) - statement.level + 1]
            base = ".".join([*parents, base]).rstrip(".")
        submodules = {f"{base}.{alias.name}" for alias in statement.names} & MODULES.keys()
        names |= submodules
        if len(submodules) < len(statement.names):
            names.add(base)
    return names


IMPORTS = {name: imported_modules(path) for name, path in MODULES.items()}


def test_the_reader_of_imports_sees_what_is_there():
    assert "ardea.rates" in IMPORTS["ardea.methods.thresholds"]
    assert "ardea.core.problem" in IMPORTS["ardea.core.result"]
    assert "numpy" in IMPORTS["ardea.rates"]
    assert len(MODULES) > 10


LEVEL = {part: level for level, parts in enumerate(ROOMS) for part in parts}


def test_every_part_has_its_place():
    parts = {part_of(name) for name in MODULES} - {"ardea"}
    assert parts <= LEVEL.keys(), "give the new part a place in ROOMS, below what uses it"


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"ardea"}))
def test_imports_point_one_way(module):
    ours = {part_of(name) for name in IMPORTS[module] if name.split(".")[0] == "ardea"}
    own = part_of(module)
    assert {part for part in ours if part != own and LEVEL[part] >= LEVEL[own]} == set()


def test_no_module_imports_itself_through_others():
    graph = {name: {i for i in imports if i in MODULES and i != name} for name, imports in IMPORTS.items()}
    list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("module", [name for name in sorted(MODULES) if part_of(name) == "core"])
def test_core_is_numpy_and_scipy(module):
    packages = {name.split(".")[0] for name in IMPORTS[module]}
    assert packages <= CORE_PACKAGES | sys.stdlib_module_names


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_runtime_dependencies_are_loaded(module):
    """Extras (pandas, matplotlib, dask, …) are imported inside the functions that need them."""
    packages = {name.split(".")[0] for name in IMPORTS[module]}
    optional = {"distributed", "plots", "pysindy"}
    if part_of(module) not in optional:
        assert packages <= CORE_PACKAGES | {"sklearn", "joblib", "threadpoolctl"} | sys.stdlib_module_names


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_work_left_lying(path):
    text = path.read_text(encoding="utf-8")
    assert not [mark for mark in ("TODO", "FIXME", "XXX", "HACK") if mark in text]


def test_files_are_named_for_what_they_do():
    stems = {part for path in ROOT.rglob("*") for part in path.relative_to(ROOT).with_suffix("").parts}
    assert not {stem.strip("_") for stem in stems} & FORBIDDEN_NAMES


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
