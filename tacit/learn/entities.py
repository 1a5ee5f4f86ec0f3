"""The names that a home knows: projects, people and its owner."""

from __future__ import annotations

from tacit.errors import StoreError, UnsafePath
from tacit.git.conflicts import NoteTree
from tacit.home.files import Tree
from tacit.home.layout import Home
from tacit.home.listing import list_projects
from tacit.learn.model import Known
from tacit.markdown import notes

_PEOPLE = "knowledge/people"
_OWNER = "knowledge/identity/USER.md"


def load_known_names(home: Home) -> Known:
    tree = NoteTree(home.root)
    people: dict[str, str] = {}
    for path in tree.files(_PEOPLE):
        stem = path.rpartition("/")[2].removesuffix(".md")
        if path.endswith(".md") and not stem.startswith("_"):
            for name in _person_names(tree, path, stem):
                people.setdefault(name, path)
    return Known(list_projects(str(home.root)), people, _owner_names(tree))


def _person_names(tree: Tree, path: str, stem: str) -> list[str]:
    """The name in the frontmatter, the file name, the aliases, and the first name of each."""
    try:
        fields = notes.parse(notes.decode(tree.read(path)), path).fields
    # Locked, in conflict, or deleted since it was listed: the file name must still stand for the person, or a
    # second note would be made.
    except (StoreError, OSError):
        fields = {}
    aliases = fields.get("aliases")
    variants = [str(fields.get("name") or ""), stem.replace("-", " ").title()]
    variants += [str(alias) for alias in aliases] if isinstance(aliases, list) else []
    names = [name for name in variants if name.strip()]
    return [*names, *(name.split()[0] for name in names)]


def _owner_names(tree: Tree) -> tuple[str, ...]:
    """The name in the title of USER.md, and the first name alone."""
    try:
        title = notes.find_title(notes.parse(notes.decode(tree.read(_OWNER)), _OWNER)) or ""
    # Locked, a link, or missing. A conflict is left to the caller: learning waits until it is resolved.
    except (UnsafePath, OSError):
        return ()
    return tuple(dict.fromkeys((title, title.split()[0]))) if title.strip() else ()
