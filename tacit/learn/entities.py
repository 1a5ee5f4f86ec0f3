"""Named things: the projects, people and owner that a home knows, and which of them a text mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tacit.errors import StoreError, UnsafePath
from tacit.git.conflicts import NoteTree
from tacit.home.files import Tree
from tacit.home.layout import Home
from tacit.home.listing import list_projects
from tacit.learn.model import Known
from tacit.markdown import notes
from tacit.text.words import fold, is_unspaced

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


class NameIndex:
    """Names and what each stands for. Several names may stand for one thing."""

    def __init__(self, names: Mapping[str, str]) -> None:
        # Sorted, so that the result does not depend on the order of names that fold to the same.
        self._by_folded_name = {
            fold(name): (name, target) for name, target in sorted(names.items(), reverse=True)
        }
        self._pattern = _compile_names(name for name in self._by_folded_name if len(name) > 1)

    def all_in(self, text: str) -> list[tuple[str, str]]:
        """Names with their targets, each target once, in order of appearance. If a name is part of another
        one, the longer one counts."""
        if self._pattern is None:
            return []
        names: dict[str, str] = {}
        for match in self._pattern.finditer(fold(text)):
            name, target = self._by_folded_name[match[0]]
            names.setdefault(target, name)
        return [(name, target) for target, name in names.items()]

    def one_in(self, text: str) -> str | None:
        """The only target that is named; None if there is none or more than one."""
        mentions = self.all_in(text)
        return mentions[0][1] if len(mentions) == 1 else None


def _compile_names(names: Iterator[str]) -> re.Pattern[str] | None:
    ordered = sorted(names, key=lambda name: (-len(name), name))
    patterns = [
        re.escape(name) if is_unspaced(name) else rf"(?<!\w){re.escape(name)}(?!\w)" for name in ordered
    ]
    return re.compile("|".join(patterns)) if patterns else None
