"""Find the commits, trees and files of the history that contain what is to be forgotten.

What must stay true: no reachable object is missed. Refs of all kinds, heads of work trees, logs (older
stashes are only there) and indexes all count.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tacit.erase.erasure import Erasure, group_by_folder
from tacit.git.index import list_entries
from tacit.git.objects import list_existing, read_all_objects, walk_commits
from tacit.git.refs import Ref, list_refs
from tacit.git.repository import Blob, Git, ObjectReader
from tacit.git.work_trees import list_work_trees
from tacit.home import files

LOG_LINE = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ([^\t\n]*)(?:\t([^\n]*))?\n")
Spellings = dict[str, Counter[str]]  # other spellings, and how often they occur in each place
OBJECT_LABELS = {
    "commit": "messages of commits",
    "tag": "messages of tags",
    "tree": "names of files in the history",
    "blob": "versions of files in the history",
}
_WORKTREE_REFS = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")  # of each work tree


@dataclass(frozen=True, slots=True)
class WorkTreeHead:
    """A work tree, and what is reachable only from it."""

    git: Git
    detached: str | None
    index: tuple[tuple[str, Blob], ...]
    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class HistoryRoots:
    refs: tuple[Ref, ...]
    heads: tuple[WorkTreeHead, ...]
    logged: frozenset[str]

    @property
    def everything(self) -> tuple[Ref, ...]:
        return (*self.refs, *(ref for head in self.heads for ref in head.refs))


@dataclass(slots=True)
class HistorySurvey:
    """What has to change in the history, and what refers to it."""

    roots: HistoryRoots
    graph: list[tuple[str, str, list[str]]]  # all commits: name, tree and parents, parents first
    commits: set[str] = field(default_factory=set)  # to rewrite
    refs: set[str] = field(default_factory=set)
    stashes: int = 0
    files: set[tuple[str, str]] = field(default_factory=set)  # path and blob
    staged: set[str] = field(default_factory=set)
    loose: int = 0  # unreachable objects that contain it
    similar: int = 0  # versions of files with another spelling, which stays
    trees: set[tuple[str, str]] = field(default_factory=set)  # to rewrite, by object and folder
    spellings: Spellings = field(default_factory=dict)
    locked: set[str] = field(default_factory=set)  # encrypted objects, whose content is unknown


def find_roots(git: Git) -> HistoryRoots:
    heads = tuple(
        _read_head(git if index == 0 else Git(root), index > 0)
        for index, root in enumerate([git.root, *list_work_trees(git)])
    )
    logged = {name for file in list_ref_logs(git) for name in _read_log_names(file)}
    return HistoryRoots(tuple(list_refs(git)), heads, frozenset(list_existing(git, sorted(logged))))


def _read_head(git: Git, is_linked: bool) -> WorkTreeHead:
    own_refs = (
        tuple(ref for ref in list_refs(git) if ref.name.startswith(_WORKTREE_REFS)) if is_linked else ()
    )
    index = tuple(list_entries(git)) if (git.directory / "index").exists() else ()
    return WorkTreeHead(git, git.head() if git.branch() is None else None, index, own_refs)


def list_ref_logs(git: Git) -> list[Path]:
    folders = [git.common / "logs", *git.common.glob("worktrees/*/logs")]
    return [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]


def _read_log_names(file: Path) -> set[str]:
    matches = LOG_LINE.findall(file.read_bytes())
    return {name.decode() for line in matches for name in line[:2] if name.strip(b"0")}


# ---------------------------------------------------------------- searching


class HistorySearch:
    def __init__(self, git: Git, what: Erasure) -> None:
        self._git, self._erasure = git, what
        self._width = 32 if git.algorithm == "sha256" else 20
        self._similar: int | None = None
        self._spellings: Spellings = {}
        self._locked: set[str] = set()

    def look(self) -> HistorySurvey:
        """One pass for objects that contain it; a second for those that mention a renamed file."""
        roots = find_roots(self._git)
        with self._git.objects() as objects:
            holding = self._find_holding()
            walker = self._walk(objects, roots, holding)
            self._learn(objects, roots, walker)
            self._erasure.settle()
            if self._erasure.mentions.paths:
                holding = self._find_holding()
                walker = self._walk(objects, roots, holding)
            return self._build_survey(objects, roots, holding, walker)

    def _find_holding(self) -> Mapping[str, set[str]]:
        kinds: dict[str, set[str]] = {"commit": set(), "tree": set(), "blob": set(), "tag": set()}
        is_first = self._similar is None  # count other spellings only once: they do not depend on `learn`
        similar = 0
        for name, kind, data in read_all_objects(self._git):
            is_similar = is_first and record_spellings(
                self._spellings, self._erasure, data, OBJECT_LABELS[kind]
            )
            if kind == "blob" and files.is_encrypted(data):
                self._locked.add(name)
            if kind != "tree" and self._erasure.holds(data):
                kinds[kind].add(name)
            elif kind == "blob" and is_similar:
                similar += 1
        self._similar = similar if self._similar is None else self._similar
        return kinds

    def _find_tips(self, objects: ObjectReader, roots: HistoryRoots) -> tuple[set[str], set[str], set[str]]:
        """Commits, trees and tags that refs, heads and logs point at."""
        commits = {*roots.logged, *(head.detached for head in roots.heads if head.detached)}
        trees: set[str] = set()
        tags: set[str] = set()
        for ref in roots.everything:
            name, kind = ref.target, ref.kind
            while kind == "tag":
                tags.add(name)
                name, kind = parse_tag(objects.read(name).data)
            if kind in ("commit", "tree"):
                (commits if kind == "commit" else trees).add(name)
        return commits, trees, tags

    def _walk(
        self, objects: ObjectReader, roots: HistoryRoots, holding: Mapping[str, set[str]]
    ) -> _TreeWalker:
        commits, trees, tags = self._find_tips(objects, roots)
        graph = list(walk_commits(self._git, commits))
        walker = _TreeWalker(objects, self._erasure, holding["blob"], self._width, graph, tags)
        walker.walk(dict.fromkeys([*(tree for _, tree, _ in graph), *sorted(trees)]))
        return walker

    def _learn(self, objects: ObjectReader, roots: HistoryRoots, walker: _TreeWalker) -> None:
        staged = {(path, blob.name) for head in roots.heads for path, blob in head.index}
        pairs = sorted({*walker.found, *(pair for pair in staged if pair[1] in walker.wanted)})
        for (path, _), blob in zip(pairs, objects.many(name for _, name in pairs), strict=True):
            self._erasure.learn(path, blob.data)
        for head in roots.heads:
            for folder, names in group_by_folder(path for path, _ in head.index).items():
                self._erasure.learn_names(folder, names)

    def _build_survey(
        self, objects: ObjectReader, roots: HistoryRoots, holding: Mapping[str, set[str]], walker: _TreeWalker
    ) -> HistorySurvey:
        survey = HistorySurvey(roots, walker.graph, files=walker.found, trees=walker.dirty())
        is_limited = not self._erasure.may_change("")  # a limited erasure does not change messages
        for name, tree, parents in walker.graph:
            is_holding = name in holding["commit"] and not is_limited
            if is_holding or (tree, "") in survey.trees or not survey.commits.isdisjoint(parents):
                survey.commits.add(name)
        survey.refs = {
            ref.name for ref in roots.everything if self._is_moving(objects, ref, survey, holding, is_limited)
        }
        survey.stashes = len(survey.commits & _read_stash_names(self._git))
        survey.staged = {
            path
            for head in roots.heads
            for path, blob in head.index
            if self._erasure.may_change(path)
            and (blob.name in holding["blob"] or self._erasure.path(path) != path)
        }
        reached = {name for _, name in walker.found} | walker.names() | walker.tags | walker.seen_blobs
        staged = {blob.name for head in roots.heads for _, blob in head.index}
        holding_names = holding["commit"] | holding["blob"] | holding["tag"]
        survey.similar, survey.spellings = self._similar or 0, self._spellings
        survey.locked = self._locked
        survey.loose = 0 if is_limited else len(holding_names - reached - staged)
        return survey

    def _is_moving(
        self,
        objects: ObjectReader,
        ref: Ref,
        survey: HistorySurvey,
        holding: Mapping[str, set[str]],
        is_limited: bool,
    ) -> bool:
        name, kind = ref.target, ref.kind
        if self._erasure.ref(ref.name) != ref.name:
            return True
        while kind == "tag":
            if name in holding["tag"] and not is_limited:
                return True
            name, kind = parse_tag(objects.read(name).data)
        return name in survey.commits or (name, "") in survey.trees or name in holding["blob"]


def record_spellings(found: Spellings, what: Erasure, data: bytes, place: str) -> bool:
    spellings = list(what.spellings(data))
    for spelling in spellings:
        found.setdefault(spelling, Counter())[place] += 1
    return bool(spellings)


def _read_stash_names(git: Git) -> set[str]:
    file = git.common / "logs" / "refs" / "stash"
    return _read_log_names(file) if file.is_file() else set()


def parse_tag(data: bytes) -> tuple[str, str]:
    lines = data.split(b"\n", 2)
    return lines[0].split(b" ")[1].decode(), lines[1].split(b" ")[1].decode()


class _TreeWalker:
    """Walks all trees of the history, each once for every folder it appears as."""

    def __init__(
        self,
        objects: ObjectReader,
        erasure: Erasure,
        wanted: set[str],
        width: int,
        graph: list[tuple[str, str, list[str]]],
        tags: set[str],
    ) -> None:
        self._objects, self._erasure, self._width = objects, erasure, width
        self.wanted, self.graph, self.tags = wanted, graph, tags
        self.found: set[tuple[str, str]] = set()
        self.seen_blobs: set[str] = set()
        self._parents: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._hits: set[tuple[str, str]] = set()
        self._renamed_paths: dict[str, bool] = {}

    def names(self) -> set[str]:
        return {name for name, _, _ in self.graph}

    def walk(self, roots: Iterable[str]) -> None:
        level = [(tree, "") for tree in roots]
        self._parents.update((key, []) for key in level)
        while level:
            next_level: list[tuple[str, str]] = []
            for key, tree in zip(level, self._objects.many(name for name, _ in level), strict=True):
                next_level += self._scan_tree(key, tree.data)
            level = next_level

    def _scan_tree(self, key: tuple[str, str], data: bytes) -> Iterator[tuple[str, str]]:
        folder, entries = key[1], parse_tree(data, self._width)
        if any(self._is_renamed(folder + os.fsdecode(raw)) for _, raw, _ in entries):
            self._erasure.learn_names(folder, [os.fsdecode(raw) for _, raw, _ in entries])
        for mode, raw, target in entries:
            path = folder + os.fsdecode(raw)
            if is_folder(mode):
                child = (target, f"{path}/")
                if child not in self._parents:
                    self._parents[child] = []
                    yield child
                self._parents[child].append(key)
            elif is_file(mode) and target in self.wanted:
                self.seen_blobs.add(target)
                if self._erasure.may_change(path):
                    self.found.add((path, target))
                    self._hits.add(key)
            if self._is_renamed(path):
                self._hits.add(key)
                if is_file(mode):
                    self.found.add((path, target))

    def _is_renamed(self, path: str) -> bool:
        """Cached, because many trees have the same path."""
        if path not in self._renamed_paths:
            self._renamed_paths[path] = self._erasure.path(path) != path
        return self._renamed_paths[path]

    def dirty(self) -> set[tuple[str, str]]:
        """The trees that change: those with a hit, and all their parents."""
        keys, waiting = set(self._hits), list(self._hits)
        while waiting:
            for parent in self._parents[waiting.pop()]:
                if parent not in keys:
                    keys.add(parent)
                    waiting.append(parent)
        return keys


def parse_tree(data: bytes, width: int) -> list[tuple[bytes, bytes, str]]:
    """Mode, name and object of each entry. `width`: bytes of an object name."""
    entries, offset = [], 0
    while offset < len(data):
        space = data.index(b" ", offset)
        end = data.index(b"\0", space)
        entries.append((data[offset:space], data[space + 1 : end], data[end + 1 : end + 1 + width].hex()))
        offset = end + 1 + width
    return entries


def is_folder(mode: bytes) -> bool:
    return mode in (b"40000", b"040000")


def is_file(mode: bytes) -> bool:
    """A file or a link; anything else is another repository inside ours."""
    return mode != b"160000" and not is_folder(mode)
