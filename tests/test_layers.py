"""The shape of the code: imports point down, the public face is what it says."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import tacit
from tools.layers import ORDER

PACKAGE = Path(tacit.__file__).parent

PLACE = {name: place for place, name in enumerate(ORDER)}


# Heavy parts that are imported where they are needed: starting a command must stay cheap.
LATE = {
    "datetime",
    "rich.console",
    "rich.progress",
    "splintr",
    "yaml",
    "zoneinfo",
    "difflib",
    "hashlib",
    "traceback",
    "time",
    "importlib",
    "importlib.metadata",
    "numpy",
    "http.client",
    "ssl",
    "email.utils",
    "watchfiles",
    "re2",
    "cronsim",
    "tacit.cli.dispatch",
    "tacit.workspaces.folders",
    "tacit.git.conflicts",
    "tacit.privacy.redaction",
    "tacit.app",
    "tacit.transcripts",
}


def imports_of(tree: ast.AST) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(name, node.lineno) for name in names if node.module == "tacit"]
            found += [(node.module or "", node.lineno)] if node.module != "tacit" else []
    return found


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def python_files() -> list[Path]:
    return [file for file in PACKAGE.rglob("*.py") if "__pycache__" not in file.parts]


def import_graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Module to modules. Imports for type checkers and imports inside functions count."""
    graph: dict[str, set[str]] = {name: set() for name in sources}
    for name, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom):
                full = (f"{node.module}.{alias.name}" for alias in node.names)
                graph[name] |= {one if one in sources else str(node.module) for one in full}
            elif isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names}
        graph[name] &= sources.keys() - {name}
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Groups of modules that can all reach each other."""
    reach = {name: set(targets) for name, targets in graph.items()}
    while True:
        wider = {name: found.union(*(reach[one] for one in found)) for name, found in reach.items()}
        if wider == reach:
            break
        reach = wider
    groups = [{other for other in reach[name] if name in reach[other]} for name in reach]
    return [group for place, group in enumerate(groups) if group and group not in groups[:place]]


def package_of(module: str) -> str:
    name = module.partition(".")[2]
    return name if name in PLACE else name.partition(".")[0]


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return import_graph({module_of(file): file.read_text() for file in python_files()})


def test_modules_do_not_import_each_other_in_circles(graph: dict[str, set[str]]) -> None:
    assert circles(graph) == []


def test_circles_are_found_through_any_number_of_modules() -> None:
    hidden = "def f():\n    from tacit import a"
    typing = "if TYPE_CHECKING:\n    from tacit.c import C"
    found = import_graph(
        {"tacit.a": "import tacit.b", "tacit.b": typing, "tacit.c": hidden, "tacit.d": hidden}
    )
    assert circles(found) == [{"tacit.a", "tacit.b", "tacit.c"}]


def test_imports_between_packages_point_down(graph: dict[str, set[str]]) -> None:
    pairs = {(package_of(name), package_of(other)) for name, others in graph.items() for other in others}
    assert {pair for pair in pairs if PLACE[pair[1]] > PLACE[pair[0]]} == set()


def test_every_package_has_a_place(graph: dict[str, set[str]]) -> None:
    assert {package_of(name) for name in graph} == PLACE.keys()


def test_only_what_is_heavy_is_imported_inside_functions() -> None:
    hidden = []
    for file in python_files():
        if file == PACKAGE / "__init__.py":
            continue
        tree = ast.parse(file.read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                hidden += [(file.name, name) for name, _ in imports_of(function) if name not in LATE]
    assert hidden == []


def test_what_is_pure_touches_neither_files_nor_processes() -> None:
    forbidden = {"os", "pathlib", "subprocess", "shutil", "socket", "tempfile"}
    pure = {"errors", "diagnostics", "deadline", "clock", "config", "text", "markdown", "privacy"}
    for file in python_files():
        if package_of(module_of(file)) in pure or file.name == "model.py":
            roots = {name.split(".")[0] for name, _ in imports_of(ast.parse(file.read_text()))}
            assert not roots & forbidden, file


def test_other_programs_are_run_in_one_place_each() -> None:
    users = {file.name for file in python_files() if "subprocess" in file.read_text()}
    assert users == {"process.py", "home_index.py", "machine.py", "editor.py"}


def test_all_names_what_is_exported() -> None:
    assert sorted(tacit.__all__) == tacit.__all__
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None
    assert {*tacit._WHERE, "__version__", "init", "open"} == set(tacit.__all__)


def test_importing_tacit_loads_nothing_heavy() -> None:
    code = "import sys, tacit; print(' '.join(sorted(m for m in sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"yaml", "rich", "splintr", "subprocess", "dataclasses", "argparse"} & set(loaded)


def test_status_parses_no_yaml_and_runs_no_process(home: Path) -> None:
    code = (
        "import sys; from tacit.cli.main import main; code = main(sys.argv[1:]);"
        "print(sorted({'yaml', 'subprocess', 'rich', 'splintr'} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--home", str(home), "status"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
