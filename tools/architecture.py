"""Writes the list of packages and modules in docs/architecture.md from their docstrings: `make docs`."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- packages: made by `make docs` -->\n", "<!-- /packages -->\n"


def summary(file: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".:").replace("|", "\\|")


def rows(folder: Path) -> list[str]:
    files = sorted(folder.rglob("*.py"), key=lambda file: file.relative_to(folder).with_suffix("").parts)
    names = {file: str(file.relative_to(folder).with_suffix("")).removesuffix("/__init__") for file in files}
    return [f"| `{name}` | {summary(file)} |" for file, name in names.items() if name != "__init__"]


def packages(root: Path) -> str:
    single = sorted(file for file in root.glob("*.py") if file.name != "__main__.py")
    table = ["| module | what it is for |", "|---|---|"]
    text = [*table, *(f"| `{file.stem}` | {summary(file)} |" for file in single if file.stem != "__init__")]
    for folder in sorted(path for path in root.iterdir() if (path / "__init__.py").exists()):
        about = f"{summary(folder / '__init__.py')}."
        text += ["", f"### {folder.name}", "", about, "", *table, *rows(folder)]
    return "\n".join(text) + "\n"


def written(page: str, root: Path) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{packages(root)}\n{END}{after}"


if __name__ == "__main__":
    sys.stdout.write(written(PAGE.read_text("utf-8"), ROOT / "tacit"))
