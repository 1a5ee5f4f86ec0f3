"""Writing the history anew, into one pack. Nothing leads to the new objects yet.

What must stay true:
- an object that holds nothing of it and leads to nothing that does keeps its name: the same bytes;
- of a rewritten commit only what has to change does: dates, order and everything else are as they were;
- the same history gives the same new names every time, so what was cut short can simply be done again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tacit.errors import GitError
from tacit.store.forgetting.history import Head, Survey, tagged
from tacit.store.forgetting.pack import Pack, is_file, is_folder, tree_entries, tree_of
from tacit.store.forgetting.what import Forgetting
from tacit.store.git import Blob, Git, Ref

_SIGNATURE = re.compile(rb"^-----BEGIN (?:PGP|SSH|SIGNED) .*\Z", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(rb"(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])")
_SIGNED = (b"gpgsig ", b"gpgsig-sha256 ", b"mergetag ")
_PEOPLE = (b"author ", b"committer ", b"tagger ")
_SHORT = 7  # digits with which people and git name a commit
_NOTES = "refs/notes/"


@dataclass(slots=True)
class Rewritten:
    """Old names to new ones."""

    commits: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    refs: list[tuple[Ref, str | None]] = field(default_factory=list)  # and what it stands at now
    indexes: list[tuple[Head, list[tuple[str, Blob | None]]]] = field(default_factory=list)
    _short: dict[bytes, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        return self.commits.get(name) or self.tags.get(name) or name

    def keep(self, name: str, new: str) -> None:
        self.commits[name] = new
        self._short[name[:_SHORT].encode()] = name

    def renamed(self, message: bytes) -> bytes:
        """Where a message names a commit, it names the new one."""
        return _NAMED.sub(self._renamed, message)

    def _renamed(self, found: re.Match[bytes]) -> bytes:
        old = self._short.get(found[0][:_SHORT])
        if old is None or not old.startswith(found[0].decode()):
            return found[0]
        return self.commits[old][: len(found[0])].encode()


class Rewriting:
    def __init__(self, git: Git, what: Forgetting, survey: Survey) -> None:
        self._git, self._what, self._survey = git, what, survey
        self._width = 32 if git.algorithm == "sha256" else 20
        self._trees: dict[tuple[str, str], str | None] = {}
        self._blobs: dict[tuple[str, str], str | None] = {}
        self._tops: dict[str, tuple[str, str]] = {}  # the tree of a commit, before and now
        self.done = Rewritten()

    def write(self) -> Rewritten:
        """All new objects. Nothing leads to them yet, so nothing is lost when this is cut short."""
        pack = Pack(self._git)
        try:
            with self._git.objects() as objects:
                self._objects, self._pack = objects, pack
                self._write_all()
            pack.close()
        except BaseException:
            pack.drop()
            raise
        return self.done

    def _write_all(self) -> None:
        roots = self._survey.roots
        notes = [ref.target for ref in roots.refs if ref.name.startswith(_NOTES) and ref.kind == "commit"]
        noted = list(self._git.commits(notes))
        is_note = {name for name, _, _ in noted}
        for name, tree, parents in self._survey.graph:
            if name not in is_note:
                self._commit(name, parents, self._tree(tree, ""), tree)
        for name, tree, parents in noted:  # last: they are called like the commits they are about
            self._commit(name, parents, self._notes(tree), tree)
        self.done.refs = [(ref, new) for ref in roots.everything if (new := self._ref(ref)) != ref.target]
        self.done.indexes = [(head, entries) for head in roots.heads if (entries := list(self._index(head)))]

    # ------------------------------------------------------------ files

    def _blob(self, path: str, name: str) -> str | None:
        if (path, name) not in self._blobs:
            old = self._objects.read(name).data
            new = self._what.file(path, old)
            self._blobs[path, name] = (
                None if new is None else name if new == old else self._pack.add("blob", new)
            )
        return self._blobs[path, name]

    def _tree(self, name: str, folder: str) -> str | None:
        """None when nothing is left in it."""
        if (name, folder) not in self._survey.trees:
            return name
        if (name, folder) not in self._trees:
            entries = tree_entries(self._objects.read(name).data, self._width)
            new = [entry for mode, raw, target in entries for entry in self._entry(folder, mode, raw, target)]
            if len({called for _, called, _ in new}) < len(new):
                raise GitError(f"Two files in {folder or 'the home'} would get the same name. Rename one.")
            empty = not new and folder != ""
            self._trees[name, folder] = None if empty else self._pack.add("tree", tree_of(new))
        return self._trees[name, folder]

    def _entry(self, folder: str, mode: bytes, raw: bytes, target: str) -> Iterator[tuple[bytes, bytes, str]]:
        path = folder + os.fsdecode(raw)
        new: str | None = target
        if is_folder(mode):
            new = self._tree(target, f"{path}/")
        elif is_file(mode) and (path, target) in self._survey.files:
            new = self._blob(path, target)
        if new is not None:
            # A folder above may be called otherwise too: that is the affair of its own entry.
            yield mode, os.fsencode(self._what.path(path).rpartition("/")[2]), new

    def _notes(self, name: str) -> str:
        """Notes of git are files that have the name of a commit, in folders by its first letters."""
        entries = [
            (self._renoted(path), mode, self._blob(path, target) if is_file(mode) else target)
            for path, mode, target in self._flat(name, "")
        ]
        kept = [(path, mode, target) for path, mode, target in entries if target is not None]
        return self._nested(kept)

    def _flat(self, name: str, folder: str) -> Iterator[tuple[str, bytes, str]]:
        for mode, raw, target in tree_entries(self._objects.read(name).data, self._width):
            path = folder + os.fsdecode(raw)
            if is_folder(mode):
                yield from self._flat(target, f"{path}/")
            else:
                yield path, mode, target

    def _renoted(self, path: str) -> str:
        new = self.done.commits.get(path.replace("/", ""))
        if new is None:
            return path
        rest = iter(new)
        return "".join(letter if letter == "/" else next(rest) for letter in path)

    def _nested(self, entries: list[tuple[str, bytes, str]]) -> str:
        here = [(mode, os.fsencode(path), target) for path, mode, target in entries if "/" not in path]
        below: dict[str, list[tuple[str, bytes, str]]] = {}
        for path, mode, target in entries:
            folder, slash, rest = path.partition("/")
            if slash:
                below.setdefault(folder, []).append((rest, mode, target))
        here += [(b"40000", os.fsencode(folder), self._nested(inside)) for folder, inside in below.items()]
        return self._pack.add("tree", tree_of(here))

    # ------------------------------------------------------------ commits and tags

    def _commit(self, name: str, parents: list[str], tree: str | None, was: str) -> None:
        assert tree is not None  # the top of a commit may be empty, but it is there
        new_parents = list(dict.fromkeys(self.done.commits.get(parent, parent) for parent in parents))
        self._tops[name] = (was, tree)
        if name not in self._survey.commits and tree == was and new_parents == parents:
            return
        if self._is_empty_now(parents, tree, was):
            self.done.keep(name, new_parents[0])
            return
        raw = self._objects.read(name).data
        new = self._rewritten(raw, tree)
        if new != raw:
            self.done.keep(name, self._pack.add("commit", new))

    def _is_empty_now(self, parents: list[str], tree: str, was: str) -> bool:
        """Not one that never held anything: somebody made that one on purpose."""
        if not self._what.drops_commits or len(parents) != 1 or parents[0] not in self._tops:
            return False
        before, now = self._tops[parents[0]]
        return now == tree and before != was

    def _rewritten(self, raw: bytes, tree: str) -> bytes:
        head, gap, message = raw.partition(b"\n\n")
        lines: list[bytes] = []
        for line in _fields(head):
            new = self._field(line, tree)
            if not new.startswith(b"parent ") or new not in lines:  # two may have become one
                lines.append(new)
        message = self._message(message)
        if b"\n".join(lines) + gap + message != raw:
            lines = [line for line in lines if not line.startswith(_SIGNED)]  # they sign what was
        return b"\n".join(lines) + gap + message

    def _field(self, line: bytes, tree: str) -> bytes:
        key, _, value = line.partition(b" ")
        if key == b"tree":
            return b"tree " + tree.encode()
        if key == b"parent":
            return b"parent " + self.done.commits.get(value.decode(), value.decode()).encode()
        return self._person(line)

    def _person(self, line: bytes) -> bytes:
        if not line.startswith(_PEOPLE) or b">" not in line:
            return line
        who, _, when = line.rpartition(b">")
        key, _, name = who.partition(b" ")
        return key + b" " + os.fsencode(self._what.person(os.fsdecode(name))) + b">" + when

    def _message(self, message: bytes) -> bytes:
        return self.done.renamed(self._what.message(message))

    def _ref(self, ref: Ref) -> str | None:
        match ref.kind:
            case "commit":
                return self.done.commits.get(ref.target, ref.target)
            case "tag":
                return self._tag(ref.target)
            case "tree":
                return self._tree(ref.target, "") or ref.target
        return self._blob("", ref.target)

    def _tag(self, name: str) -> str:
        raw = self._objects.read(name).data
        target, kind = tagged(raw)
        new = self._ref(Ref("", target, kind)) or target
        head, gap, message = raw.partition(b"\n\n")
        lines = head.split(b"\n")
        lines[0] = b"object " + new.encode()
        lines = [self._tag_name(self._person(line)) for line in lines]
        written = b"\n".join(lines) + gap + self._message(message)
        if written == raw:
            return name
        unsigned = b"\n".join(lines) + gap + self._message(_SIGNATURE.sub(b"", message))
        self.done.tags[name] = self._pack.add("tag", unsigned)
        return self.done.tags[name]

    def _tag_name(self, line: bytes) -> bytes:
        return (
            b"tag " + os.fsencode(self._what.ref(os.fsdecode(line[4:]))) if line.startswith(b"tag ") else line
        )

    # ------------------------------------------------------------ indexes

    def _index(self, head: Head) -> Iterator[tuple[str, Blob | None]]:
        for path, blob in head.index:
            if path not in self._survey.staged:
                continue
            new = self._blob(path, blob.name)
            place = self._what.path(path)
            if place != path or new is None:
                yield path, None
            if new is not None:
                yield place, Blob(blob.mode, new)


def _fields(head: bytes) -> list[bytes]:
    """Lines of a commit above its message; a line that begins with a space belongs to the one before."""
    fields: list[bytes] = []
    for line in head.split(b"\n"):
        if line.startswith(b" ") and fields:
            fields[-1] += b"\n" + line
        else:
            fields.append(line)
    return fields
