"""The shape of the code: imports point down, the public face is what it says."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import tacit

PACKAGE = Path(tacit.__file__).parent

# Lower numbers are below. Neighbours on a row do not import each other, except on row 0.
ROWS = {
    "model": 0,
    "errors": 0,
    "config": 0,
    "version": 0,
    "text": 1,
    "net": 2,
    "store": 3,
    "sample": 3,
    "index": 3,
    "embed": 3,
    "llm": 3,
    "starter": 3,
    "cards": 3,
    "capture": 4,
    "hosts": 4,
    "search": 4,
    "sessions": 4,
    "watch": 4,
    "context": 4,
    "lifecycle": 4,
    "memory": 5,
    "workspace": 5,
    "app": 6,
    "evaluation": 7,
    "ways": 7,
    "api": 7,
    "relay": 7,
    "aio": 8,
    "client": 8,
    "daemon": 8,
    "openclaw": 8,
    "cli": 9,
    "__main__": 10,
    "": 11,
}

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
    "tacit.api",
    "tacit.cli.dispatch",
    "tacit.context.history",
    "tacit.embed.choose",
    "tacit.lifecycle.commits",
    "tacit.llm.chat",
    "tacit.llm.choose",
    "tacit.llm.items",
    "tacit.llm.local",
    "tacit.llm.prices",
    "tacit.llm.tasks",
    "tacit.store.breakers",
    "tacit.store.ledger",
    "tacit.search.searcher",
    "tacit.search.snapshot",
    "tacit.memory.bootstrap",
    "tacit.memory.known",
    "tacit.memory.lifecycle",
    "tacit.memory.live",
    "tacit.memory.remember",
    "tacit.memory.turns",
    "tacit.store.workspaces",
    "tacit.store",
    "tacit.store.gatelog",
    "tacit.text.redact",
    "tacit.watch.gate",
    "tacit.workspace",
    "tacit.app",
}


def part_of(file: Path) -> str:
    relative = file.relative_to(PACKAGE)
    return "" if str(relative) == "__init__.py" else relative.parts[0].removesuffix(".py")


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


def wrong_imports(file: Path, source: str) -> list[str]:
    part = part_of(file)
    row = ROWS[part]
    wrong = []
    for name, line in imports_of(ast.parse(source)):
        if not name.startswith("tacit."):
            continue
        target = name.split(".")[1]
        if target == part or target not in ROWS:
            continue
        if ROWS[target] > row or (ROWS[target] == row and row != 0):
            wrong.append(f"{file.name}:{line} {part} -> {target}")
    return wrong


def python_files() -> list[Path]:
    return [file for file in PACKAGE.rglob("*.py") if "__pycache__" not in file.parts]


def test_imports_point_down() -> None:
    found = [wrong for file in python_files() for wrong in wrong_imports(file, file.read_text())]
    assert found == []


def test_the_rule_catches_upward_and_sideways_imports_also_inside_functions() -> None:
    store = PACKAGE / "store" / "x.py"
    assert wrong_imports(store, "from tacit.memory import Memory")
    assert wrong_imports(store, "def f():\n    import tacit.cli.main")
    assert wrong_imports(PACKAGE / "text" / "x.py", "from tacit import store")
    assert not wrong_imports(store, "from tacit.text import notes")


def test_every_part_has_a_row() -> None:
    assert {part_of(file) for file in python_files()} <= ROWS.keys()


def test_only_what_is_heavy_is_imported_inside_functions() -> None:
    hidden = []
    for file in python_files():
        if file.parent == PACKAGE and file.name == "__init__.py":
            continue
        tree = ast.parse(file.read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                hidden += [(file.name, name) for name, _ in imports_of(function) if name not in LATE]
    assert hidden == []


def test_rows_0_and_1_touch_neither_files_nor_processes() -> None:
    forbidden = {"os", "pathlib", "subprocess", "shutil", "socket", "tempfile"}
    for file in python_files():
        if ROWS[part_of(file)] <= 1 and part_of(file) != "":
            roots = {name.split(".")[0] for name, _ in imports_of(ast.parse(file.read_text()))}
            assert not roots & forbidden, file


def test_other_programs_are_run_in_one_place_each() -> None:
    users = {file.name for file in python_files() if "subprocess" in file.read_text()}
    assert users == {"git.py", "ripgrep.py", "command.py", "editor.py"}


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
