"""The house, read from its source: which room may import which, and how large its parts may be."""

from __future__ import annotations

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import ardea

ROOT = Path(ardea.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FORBIDDEN_NAMES = {"utils", "util", "misc", "helpers", "helper", "common", "tools", "stuff"}
LARGEST_FILE, LARGEST_FUNCTION = 500, 60
USUAL_FUNCTION, USUAL_SHARE = 18, 0.9

# The rooms from the bottom up: when a module is loaded, it imports from its own room and from those below. A module at
# the top of the package is a room too.
ROOMS = [
    {"core", "names"},
    {"rates", "priors"},
    {"methods"},
    {"equation"},
    {"tables"},
    {"show", "distributed"},
    {"estimators"},
    {"dynamics"},
    {"saving", "pysindy", "explain"},
    {"paper"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
# What the core may use besides the standard library, and what any module may load at once. The rest (pandas,
# matplotlib, extras) is imported by the functions that use it.
CORE_PACKAGES = {"numpy", "scipy", "ardea"}
LOADED_PACKAGES = CORE_PACKAGES | {"sklearn", "joblib", "threadpoolctl"}
BEHIND_AN_EXTRA = {"distributed", "pysindy"}


def module_name(path):
    """Return ardea.core.problem for …/ardea/core/problem.py."""
    parts = ("ardea", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def room_of(module):
    """Return core for ardea.core.problem."""
    return module.split(".")[1] if "." in module else "ardea"


def is_for_types(statement):
    return isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test)


def statements(body, inside_functions):
    """Yield the imports that run: when the module is loaded, or at any time; never those for type checkers."""
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif is_for_types(statement):
            yield from statements(statement.orelse, inside_functions)
        elif inside_functions or not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for block in ("body", "orelse", "finalbody", "handlers"):
                yield from statements(getattr(statement, block, []), inside_functions)


def imported(module, inside_functions):
    """Return the full names of all modules that a module imports."""
    package = module if MODULES[module].stem == "__init__" else module.rpartition(".")[0]
    names = set()
    for statement in statements(TREES[module].body, inside_functions):
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


LOADED = {name: imported(name, inside_functions=False) for name in MODULES}
EVER = {name: imported(name, inside_functions=True) for name in MODULES}


def packages(names):
    return {name.split(".")[0] for name in names}


def functions():
    """Return the names of all functions, how many lines they have, and how many without their docstring."""
    found = []
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                whole = node.end_lineno - node.lineno + 1
                told = node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node) else 0
                found.append((f"{name}.{node.name}", whole, whole - told))
    return found


def test_the_reader_of_imports_sees_what_is_there():
    assert "ardea.core.problem" in LOADED["ardea.core.loop"]
    assert "numpy" in LOADED["ardea.rates"]
    assert "pandas" in EVER["ardea.show.answers"] - LOADED["ardea.show.answers"]


def test_every_room_has_its_place():
    assert {room_of(name) for name in MODULES} - {"ardea"} == LEVEL.keys(), "give a new room a place in ROOMS"


def test_imports_point_one_way():
    for module in MODULES.keys() - {"ardea"}:
        own = room_of(module)
        rooms = {room_of(name) for name in LOADED[module] if name.split(".")[0] == "ardea"} - {own, "ardea"}
        assert {room for room in rooms if LEVEL[room] >= LEVEL[own]} == set(), module


def test_no_import_hides_a_cycle():
    """Imports inside functions keep the start fast or an extra optional; they never lead back to where they stand.

    The package itself (`ardea`) hands out names of all rooms when they are asked for, so it is not part of the graph.
    """
    graph = {name: {i for i in imports if i in MODULES and i not in {name, "ardea"}} for name, imports in EVER.items()}
    graph.pop("ardea")
    list(TopologicalSorter(graph).static_order())  # raises CycleError otherwise


def test_core_is_numpy_and_scipy():
    for module in (name for name in MODULES if room_of(name) == "core"):
        assert packages(EVER[module]) <= CORE_PACKAGES | sys.stdlib_module_names, module


def test_only_light_packages_are_loaded_at_once():
    for module in (name for name in MODULES if room_of(name) not in BEHIND_AN_EXTRA):
        assert packages(LOADED[module]) <= LOADED_PACKAGES | sys.stdlib_module_names, module


def test_no_private_attribute_of_others_is_read():
    for module in (name for name in MODULES if room_of(name) in {"show", "tables", "cli"}):
        private = {
            f"{ast.unparse(node.value)}.{node.attr}"
            for node in ast.walk(TREES[module])
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__")
        }
        assert {name for name in private if name.split(".")[0] not in {"self", "cls"}} == set(), module


def test_no_work_left_lying():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert not [mark for mark in ("TODO", "FIXME", "XXX", "HACK") if mark in text], path


def test_files_are_named_for_what_they_do():
    stems = {part for path in ROOT.rglob("*") for part in path.relative_to(ROOT).with_suffix("").parts}
    assert not {stem.strip("_") for stem in stems} & FORBIDDEN_NAMES


def test_every_module_says_what_it_is():
    assert [module for module, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_files_and_functions_can_be_read_at_once():
    sources = [path for path in ROOT.rglob("*") if path.suffix in {".py", ".pyx", ".pxi"}]
    lengths = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n") for path in sources}
    assert {name: length for name, length in lengths.items() if length > LARGEST_FILE} == {}
    assert [one for one in functions() if one[1] > LARGEST_FUNCTION] == []
    usual = [code <= USUAL_FUNCTION for *_, code in functions()]
    assert sum(usual) >= USUAL_SHARE * len(usual)
