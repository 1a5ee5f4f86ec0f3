"""Prints docs/architecture.md, made from tools/architecture.md and from the code: `make docs`.

The layers come from tools/layers.py, what it says about packages and modules from their docstrings.
The pictures in the template are written by hand; `unknown_names` finds what they name and the code lacks.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.layers import LAYERS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tacit"
TEMPLATE = ROOT / "tools" / "architecture.md"
# A line of a picture: some indentation, the full name of a function, class or module below tacit, a comment.
PICTURE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^(?:◄─)? *([a-z_]\w*(?:\.\w+)+)(?:  |$)", re.MULTILINE)


def docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""


def summary(file: Path) -> str:
    """The first sentence of a module's docstring."""
    return " ".join(docstring(file).split("\n\n")[0].split()).partition(". ")[0].rstrip(".:")


def paragraph(file: Path) -> str:
    """A package's docstring without code samples and lists."""
    parts = docstring(file).split("\n\n")
    return " ".join(" ".join(part.split()) for part in parts if not part.startswith(" "))


def module_lines(folder: Path, indent: str = "") -> Iterator[str]:
    for path in sorted(folder.iterdir(), key=lambda path: path.stem):
        if (path / "__init__.py").exists():
            yield f"{indent}- `{path.name}/`: {summary(path / '__init__.py')}"
            yield from module_lines(path, indent + "  ")
        elif path.suffix == ".py" and path.stem not in {"__init__", "__main__"}:
            yield f"{indent}- `{path.stem}`: {summary(path)}"


def layers() -> str:
    """One line per layer, the highest first; in each, packages import only from those after them."""
    width = max(map(len, LAYERS)) + 2
    rows: list[str] = []
    for title, names in reversed(LAYERS.items()):
        row = f"{title:{width}}"
        for name in reversed([name for name in names if name.strip("_") not in {"", "main"}]):
            if len(row) + len(name) > 110:
                rows.append(row.rstrip())
                row = " " * width
            row += f"{name}  "
        rows.append(row.rstrip())
    return "\n".join(["```", *rows, "```", ""])


def folders() -> list[Path]:
    """The packages, those of the highest layer first."""
    names = [name for layer in reversed(LAYERS.values()) for name in reversed(layer) if name]
    return [PACKAGE / name for name in names if (PACKAGE / name / "__init__.py").exists()]


def packages() -> str:
    return "\n".join(
        f"**{folder.name}**: {paragraph(folder / '__init__.py')}\n" for folder in reversed(folders())
    )


def modules() -> str:
    text = [line for folder in folders() for line in (f"### {folder.name}", "", *module_lines(folder), "")]
    single = [path for path in sorted(PACKAGE.glob("*.py")) if not path.stem.startswith("__")]
    return "\n".join(
        [*text, "### Beside the packages", "", *(f"- `{path.stem}`: {summary(path)}" for path in single), ""]
    )


GENERATED: dict[str, Callable[[], str]] = {"layers": layers, "packages": packages, "modules": modules}


def render() -> str:
    """The page: the template with each comment that names a generated part replaced by that part."""
    page = TEMPLATE.read_text("utf-8")
    for name, make in GENERATED.items():
        page = page.replace(f"<!-- {name} -->\n", make())
    return page


def unknown_names(page: str) -> list[str]:
    """Names in the pictures of the page that the code does not have."""
    names = [name for picture in PICTURE.findall(page) for name in NAMED.findall(picture)]
    return [name for name in names if not _is_defined(name)]


def unknown_in_docstrings() -> list[str]:
    """Modules and classes that a package's docstring names in backticks and the package does not have."""
    unknown: list[str] = []
    for folder in sorted(path for path in PACKAGE.iterdir() if (path / "__init__.py").exists()):
        named = re.findall(r"`([a-z_/]+\.py|[A-Z][a-z]\w+)`", docstring(folder / "__init__.py"))
        source = "\n".join(file.read_text("utf-8") for file in folder.rglob("*.py"))
        classes = set(re.findall(r"^class (\w+)", source, re.MULTILINE))
        unknown += [
            f"{folder.name}: {name}"
            for name in named
            if not (folder / name).exists() and not (PACKAGE.parent / name).exists() and name not in classes
        ]
    return unknown


def _is_defined(name: str) -> bool:
    path, parts = PACKAGE, name.split(".")
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    if parts and path.joinpath(f"{parts[0]}.py").exists():
        file = path / f"{parts.pop(0)}.py"
    else:
        file = path / "__init__.py"
    tree: ast.AST | None = ast.parse(file.read_text("utf-8")) if file.exists() else None
    for part in parts:
        tree = (
            next((node for node in ast.iter_child_nodes(tree) if _defines(node, part)), None)
            if tree
            else None
        )
    return tree is not None


def _defines(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name) and node.target.id == name
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name


if __name__ == "__main__":
    sys.stdout.write(render())
