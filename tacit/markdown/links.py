"""Links between notes: the targets of a note's links, and the names by which links may refer to it.

    [[Mara]]  [[Mara|her]]  [[Mara#Family]]  [[people/mara]]
    [her](../people/mara.md)  knowledge/people/mara.md

A name in brackets refers to every note with that name: the name of its file, with as many folders as the link
has, its title, or `name` and `aliases` of its frontmatter; a project also has the name of its folder. Case
and accents do not count. A path refers to one file. Links inside code do not count, except paths. A note in
archive/ keeps the path that it had in knowledge/, and its own links are resolved from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from tacit.markdown.frontmatter import parse_names
from tacit.text.lines import scan
from tacit.text.words import fold

_ENDING = r"\.(?:md|markdown|txt)"
_LINK = re.compile(
    r"\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,200})?(?:\|[^\[\]\n]{0,200})?\]\]"  # [[name#section|shown]]
    rf"|\]\((?:<([^()<>\n]{{1,400}}{_ENDING})[#>]|([^()<>\s]{{1,400}}{_ENDING})[)#\s])"  # [shown](path.md)
)
_PATH = re.compile(rf"(?<![\w./-])(?:knowledge|topics|archive|raw)/[\w./@+-]{{1,400}}{_ENDING}\b")
_CODE = re.compile(r"(?<!`)(`++).{0,400}?(?<!`)\1(?!`)")
_ENDS = re.compile(rf"{_ENDING}\Z")
_KNOWLEDGE, _ARCHIVE = "knowledge/", "archive/"
_ROOTS = ("knowledge/", "topics/", "archive/", "raw/")
_MAX_LINKS = 500  # links of one note
_MAX_FOLDERS = 6  # folders by which a link may name a note
_MAX_ALIASES = 50


class Pointer(NamedTuple):
    """A link as written in a note, not yet resolved."""

    target: str  # a path of the home, or a [[name]] that any file may have
    written: str  # as written in the note
    line: int


def find_links(path: str, text: str) -> tuple[Pointer, ...]:
    """Each target once, where it first occurs."""
    if ".md" not in text and "[[" not in text and ".txt" not in text and ".markdown" not in text:
        return ()
    pointers: dict[str, Pointer] = {}
    for pointer in _find_pointers(path, text):
        if pointer.target != path:
            pointers.setdefault(pointer.target, pointer)
        if len(pointers) >= _MAX_LINKS:
            break
    return tuple(pointers.values())


def _find_pointers(path: str, text: str) -> Iterator[Pointer]:
    for line in scan(text):
        if line.kind in ("code", "fence", "blank"):
            continue
        visible = _CODE.sub(" ", line.text) if "`" in line.text else line.text
        for link in _LINK.finditer(visible):
            name, relative = link[1], link[2] or link[3]
            target = link_target(name) if name else _resolve_path(path, unquote(relative))
            if target:
                yield Pointer(target, link[0] if name else relative, line.number)
        for link in _PATH.finditer(line.text):
            yield Pointer(link[0], link[0], line.number)


def link_target(name: str) -> str:
    """The key under which a link with this name is looked up; empty for none."""
    bare = _ENDS.sub("", fold(name).strip().removeprefix("./").strip("/"))
    return f"[[{' '.join(bare.split())}]]" if bare.strip() else ""


def list_link_names(path: str, title: str, fields: Mapping[str, object]) -> tuple[str, ...]:
    """All targets by which a link may refer to the note at this path."""
    parts = _ENDS.sub("", path).split("/")
    by_place = ["/".join(parts[-deep:]) for deep in range(1, min(len(parts), _MAX_FOLDERS) + 1)]
    project = [parts[-2]] if path.startswith("knowledge/projects/") and parts[-1] == "context" else []
    given_names = [
        *parse_names(fields.get("name")),
        *parse_names(fields.get("aliases")),
        *parse_names(fields.get("alias")),
    ]
    targets = map(link_target, (*by_place, *project, title, *given_names[:_MAX_ALIASES]))
    former_path = [_KNOWLEDGE + path.removeprefix(_ARCHIVE)] if path.startswith(_ARCHIVE) else []
    return tuple(dict.fromkeys((*(name for name in targets if name), *former_path)))


def _resolve_path(path: str, link: str) -> str:
    """The path that a link in the file at `path` leads to; empty if it leaves the home."""
    if ":" in link or link.startswith("/"):
        return ""
    home = _KNOWLEDGE + path.removeprefix(_ARCHIVE) if path.startswith(_ARCHIVE) else path
    parts = [] if link.startswith(_ROOTS) else home.split("/")[:-1]
    for part in link.split("/"):
        if part == ".." and not parts:
            return ""
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
