"""Which commits, trees and files of the history hold what is to be forgotten, and what leads to them.

What must stay true: nothing that something leads to is overlooked. Refs of all kinds, heads of work trees,
logs (the older stashes are nowhere else) and indexes all count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tacit.store.forgetting.pack import is_file, is_folder, tree_entries
from tacit.store.forgetting.what import Forgetting, folders_of
from tacit.store.git import Blob, Git, Objects, Ref

LOGGED = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ([^\t\n]*)(?:\t([^\n]*))?\n")
_OWN_REFS = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")  # of each work tree


@dataclass(frozen=True, slots=True)
class Head:
    """A work tree, and what only it leads to."""

    git: Git
    detached: str | None
    index: tuple[tuple[str, Blob], ...]
    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Roots:
    refs: tuple[Ref, ...]
    heads: tuple[Head, ...]
    logged: frozenset[str]

    @property
    def everything(self) -> tuple[Ref, ...]:
        return (*self.refs, *(ref for head in self.heads for ref in head.refs))


@dataclass(slots=True)
class Survey:
    """What changes, and what leads to it."""

    roots: Roots
    graph: list[tuple[str, str, list[str]]]  # all commits: name, tree and parents, parents first
    commits: set[str] = field(default_factory=set)  # that are rewritten
    refs: set[str] = field(default_factory=set)
    stashes: int = 0
    files: set[tuple[str, str]] = field(default_factory=set)  # path and blob
    staged: set[str] = field(default_factory=set)
    loose: int = 0  # objects that hold it and that nothing leads to
    similar: int = 0  # versions of files that say it in another spelling, and keep it
    trees: set[tuple[str, str]] = field(default_factory=set)  # by object and place, that are rewritten


def roots_of(git: Git) -> Roots:
    heads = tuple(
        _head(git if at == 0 else Git(root), at > 0) for at, root in enumerate([git.root, *git.work_trees()])
    )
    logged = {name for file in logs(git) for name in _logged_in(file)}
    return Roots(tuple(git.refs()), heads, frozenset(git.exist(sorted(logged))))


def _head(git: Git, linked: bool) -> Head:
    own = tuple(ref for ref in git.refs() if ref.name.startswith(_OWN_REFS)) if linked else ()
    index = tuple(git.staged_blobs()) if (git.directory / "index").exists() else ()
    return Head(git, git.head() if git.branch() is None else None, index, own)


def logs(git: Git) -> list[Path]:
    folders = [git.common / "logs", *git.common.glob("worktrees/*/logs")]
    return [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]


def _logged_in(file: Path) -> set[str]:
    found = LOGGED.findall(file.read_bytes())
    return {name.decode() for line in found for name in line[:2] if name.strip(b"0")}


# ---------------------------------------------------------------- looking


class History:
    def __init__(self, git: Git, what: Forgetting) -> None:
        self._git, self._what = git, what
        self._width = 32 if git.algorithm == "sha256" else 20
        self._similar = 0

    def look(self) -> Survey:
        """Once for what holds it; once more for what names a file that is called otherwise by now."""
        roots = roots_of(self._git)
        with self._git.objects() as objects:
            found = self._holding()
            seen = self._walk(objects, roots, found)
            self._learn(objects, roots, seen)
            self._what.settle()
            if self._what.mentions.paths:
                found = self._holding()
                seen = self._walk(objects, roots, found)
            return self._surveyed(objects, roots, found, seen)

    def _holding(self) -> Mapping[str, set[str]]:
        kinds: dict[str, set[str]] = {"commit": set(), "tree": set(), "blob": set(), "tag": set()}
        similar = 0
        for name, kind, data in self._git.every_object():
            if kind != "tree" and self._what.holds(data):
                kinds[kind].add(name)
            elif kind == "blob" and self._what.is_like("", data):
                similar += 1
        self._similar = similar
        return kinds

    def _tips(self, objects: Objects, roots: Roots) -> tuple[set[str], set[str], set[str]]:
        """Commits, trees and tags that something names."""
        commits = {*roots.logged, *(head.detached for head in roots.heads if head.detached)}
        trees: set[str] = set()
        tags: set[str] = set()
        for ref in roots.everything:
            name, kind = ref.target, ref.kind
            while kind == "tag":
                tags.add(name)
                name, kind = tagged(objects.read(name).data)
            if kind in ("commit", "tree"):
                (commits if kind == "commit" else trees).add(name)
        return commits, trees, tags

    def _walk(self, objects: Objects, roots: Roots, found: Mapping[str, set[str]]) -> _Forest:
        commits, trees, tags = self._tips(objects, roots)
        graph = list(self._git.commits(commits))
        forest = _Forest(objects, self._what, found["blob"], self._width, graph, tags)
        forest.walk(dict.fromkeys([*(tree for _, tree, _ in graph), *sorted(trees)]))
        return forest

    def _learn(self, objects: Objects, roots: Roots, forest: _Forest) -> None:
        staged = {(path, blob.name) for head in roots.heads for path, blob in head.index}
        pairs = sorted({*forest.found, *(pair for pair in staged if pair[1] in forest.wanted)})
        for (path, _), blob in zip(pairs, objects.many(name for _, name in pairs), strict=True):
            self._what.learn(path, blob.data)
        for head in roots.heads:
            for folder, names in folders_of(path for path, _ in head.index).items():
                self._what.learn_names(folder, names)

    def _surveyed(
        self, objects: Objects, roots: Roots, found: Mapping[str, set[str]], forest: _Forest
    ) -> Survey:
        survey = Survey(roots, forest.graph, files=forest.found, trees=forest.dirty())
        limited = not self._what.may_change("")  # then messages stay as they are
        for name, tree, parents in forest.graph:
            says = name in found["commit"] and not limited
            if says or (tree, "") in survey.trees or not survey.commits.isdisjoint(parents):
                survey.commits.add(name)
        survey.refs = {
            ref.name for ref in roots.everything if self._moves(objects, ref, survey, found, limited)
        }
        survey.stashes = len(survey.commits & _logged_in_stash(self._git))
        survey.staged = {
            path
            for head in roots.heads
            for path, blob in head.index
            if self._what.may_change(path) and (blob.name in found["blob"] or self._what.path(path) != path)
        }
        reached = {name for _, name in forest.found} | forest.names() | forest.tags | forest.seen_blobs
        staged = {blob.name for head in roots.heads for _, blob in head.index}
        holding = found["commit"] | found["blob"] | found["tag"]
        survey.similar = self._similar
        survey.loose = 0 if limited else len(holding - reached - staged)
        return survey

    def _moves(
        self, objects: Objects, ref: Ref, survey: Survey, found: Mapping[str, set[str]], limited: bool
    ) -> bool:
        name, kind = ref.target, ref.kind
        if self._what.ref(ref.name) != ref.name:
            return True
        while kind == "tag":
            if name in found["tag"] and not limited:
                return True
            name, kind = tagged(objects.read(name).data)
        return name in survey.commits or (name, "") in survey.trees or name in found["blob"]


def _logged_in_stash(git: Git) -> set[str]:
    file = git.common / "logs" / "refs" / "stash"
    return _logged_in(file) if file.is_file() else set()


def tagged(data: bytes) -> tuple[str, str]:
    lines = data.split(b"\n", 2)
    return lines[0].split(b" ")[1].decode(), lines[1].split(b" ")[1].decode()


class _Forest:
    """All trees of the history, each once for every place where it stands."""

    def __init__(
        self,
        objects: Objects,
        what: Forgetting,
        wanted: set[str],
        width: int,
        graph: list[tuple[str, str, list[str]]],
        tags: set[str],
    ) -> None:
        self._objects, self._what, self._width = objects, what, width
        self.wanted, self.graph, self.tags = wanted, graph, tags
        self.found: set[tuple[str, str]] = set()
        self.seen_blobs: set[str] = set()
        self._above: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._hit: set[tuple[str, str]] = set()
        self._renamed: dict[str, bool] = {}

    def names(self) -> set[str]:
        return {name for name, _, _ in self.graph}

    def walk(self, tops: Iterable[str]) -> None:
        level = [(tree, "") for tree in tops]
        self._above.update((key, []) for key in level)
        while level:
            below: list[tuple[str, str]] = []
            for key, tree in zip(level, self._objects.many(name for name, _ in level), strict=True):
                below += self._look_into(key, tree.data)
            level = below

    def _look_into(self, key: tuple[str, str], data: bytes) -> Iterator[tuple[str, str]]:
        folder, entries = key[1], tree_entries(data, self._width)
        if any(self._is_renamed(folder + os.fsdecode(raw)) for _, raw, _ in entries):
            self._what.learn_names(folder, [os.fsdecode(raw) for _, raw, _ in entries])
        for mode, raw, target in entries:
            path = folder + os.fsdecode(raw)
            if is_folder(mode):
                child = (target, f"{path}/")
                if child not in self._above:
                    self._above[child] = []
                    yield child
                self._above[child].append(key)
            elif is_file(mode) and target in self.wanted:
                self.seen_blobs.add(target)
                if self._what.may_change(path):
                    self.found.add((path, target))
                    self._hit.add(key)
            if self._is_renamed(path):
                self._hit.add(key)
                if is_file(mode):
                    self.found.add((path, target))

    def _is_renamed(self, path: str) -> bool:
        """Asked once for each path, however many trees have it."""
        if path not in self._renamed:
            self._renamed[path] = self._what.path(path) != path
        return self._renamed[path]

    def dirty(self) -> set[tuple[str, str]]:
        """Those that change: where something was found, and all that leads there."""
        found, waiting = set(self._hit), list(self._hit)
        while waiting:
            for above in self._above[waiting.pop()]:
                if above not in found:
                    found.add(above)
                    waiting.append(above)
        return found
