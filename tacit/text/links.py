"""Links between notes: what a note points to, and what a link may call it.

    [[Mara]]  [[Mara|her]]  [[Mara#Family]]  [[people/mara]]
    [her](../people/mara.md)  knowledge/people/mara.md

A name in brackets stands for every note that is called so: by its file's name, with as many of the folders
above it as the link has, by its title, or by `name` and `aliases` of its frontmatter; a project by its folder
too. Case and accents do not count. A path leads to one file. What stands in code is code, but for paths.
A note in archive/ is still called by the path that it had in knowledge/, and its own links lead from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from tacit.model.links import Pointer
from tacit.text.frontmatter import names_in
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
_MOST = 500  # links of one note
_DEEPEST = 6  # folders by which a link may name a note
_MOST_ALIASES = 50


def links_of(path: str, text: str) -> tuple[Pointer, ...]:
    """Each target once, where it first stands."""
    if ".md" not in text and "[[" not in text and ".txt" not in text and ".markdown" not in text:
        return ()
    found: dict[str, Pointer] = {}
    for pointer in _pointers(path, text):
        if pointer.target != path:
            found.setdefault(pointer.target, pointer)
        if len(found) >= _MOST:
            break
    return tuple(found.values())


def _pointers(path: str, text: str) -> Iterator[Pointer]:
    for line in scan(text):
        if line.kind in ("code", "fence", "blank"):
            continue
        shown = _CODE.sub(" ", line.text) if "`" in line.text else line.text
        for link in _LINK.finditer(shown):
            name, relative = link[1], link[2] or link[3]
            target = called(name) if name else _beside(path, unquote(relative))
            if target:
                yield Pointer(target, link[0] if name else relative, line.number)
        for link in _PATH.finditer(line.text):
            yield Pointer(link[0], link[0], line.number)


def called(name: str) -> str:
    """A name as links are looked up by it; empty for none."""
    bare = _ENDS.sub("", fold(name).strip().removeprefix("./").strip("/"))
    return f"[[{' '.join(bare.split())}]]" if bare.strip() else ""


def names_of(path: str, title: str, fields: Mapping[str, object]) -> tuple[str, ...]:
    """All that a link may call the note at this path."""
    parts = _ENDS.sub("", path).split("/")
    by_place = ["/".join(parts[-deep:]) for deep in range(1, min(len(parts), _DEEPEST) + 1)]
    project = [parts[-2]] if path.startswith("knowledge/projects/") and parts[-1] == "context" else []
    said = [*names_in(fields.get("name")), *names_in(fields.get("aliases")), *names_in(fields.get("alias"))]
    found = map(called, (*by_place, *project, title, *said[:_MOST_ALIASES]))
    before = [_KNOWLEDGE + path.removeprefix(_ARCHIVE)] if path.startswith(_ARCHIVE) else []
    return tuple(dict.fromkeys((*(name for name in found if name), *before)))


def _beside(path: str, link: str) -> str:
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
