"""The names that a home knows: projects, people, and its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.model.changes import Known
from tacit.store.files import Tree
from tacit.text import notes

if TYPE_CHECKING:
    from tacit.memory.memory import Memory

_PEOPLE = "knowledge/people"
_OWNER = "knowledge/identity/USER.md"


def known(memory: Memory) -> Known:
    tree = Tree(memory.home.root)
    people: dict[str, str] = {}
    for path in tree.files(_PEOPLE):
        stem = path.rpartition("/")[2].removesuffix(".md")
        if path.endswith(".md") and not stem.startswith("_"):
            for name in _names(tree, path, stem):
                people.setdefault(name, path)
    return Known(memory.turns.present.projects(), people, _owners(tree))


def _names(tree: Tree, path: str, stem: str) -> list[str]:
    """As its frontmatter names the person, as the file is called, and by the first name."""
    fields = notes.parse(notes.decode(tree.read(path)), path).fields
    aliases = fields.get("aliases")
    said = [str(fields.get("name") or ""), stem.replace("-", " ").title()]
    said += [str(alias) for alias in aliases] if isinstance(aliases, list) else []
    names = [name for name in said if name.strip()]
    return [*names, *(name.split()[0] for name in names)]


def _owners(tree: Tree) -> tuple[str, ...]:
    """The name in the title of USER.md, and the first name alone."""
    try:
        title = notes.title(notes.parse(notes.decode(tree.read(_OWNER)), _OWNER)) or ""
    except OSError:
        return ()
    return tuple(dict.fromkeys((title, title.split()[0]))) if title.strip() else ()
