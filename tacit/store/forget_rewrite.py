"""Writing the history anew: objects into a pack, then refs, indexes and logs over to them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tacit.store import files
from tacit.store.forget_history import LOGGED, Head, Survey, logs, tagged
from tacit.store.forget_pack import Pack, is_file, is_folder, tree_entries, tree_of
from tacit.store.forget_what import Forgetting
from tacit.store.git import Blob, Git, Ref

_SIGNATURE = re.compile(rb"^-----BEGIN (?:PGP|SSH|SIGNED) .*\Z", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(rb"(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])")
_SIGNED = (b"gpgsig ", b"gpgsig-sha256 ", b"mergetag ")
_PEOPLE = (b"author ", b"committer ", b"tagger ")
_SHORT = 7  # digits with which people and git name a commit
_NOTES, _REPLACED = "refs/notes/", "refs/replace/"


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
        noted = {name for name, _, _ in self._git.commits(notes)}
        heads = {head.detached for head in roots.heads if head.detached}
        tips = {*map(self._peeled, roots.everything), *heads, *roots.logged} - noted - {""}
        for name, tree, parents in self._git.commits(tips):
            self._commit(name, parents, self._tree(tree, ""), tree)
        for name, tree, parents in self._git.commits(notes):
            self._commit(name, parents, self._notes(tree), tree)
        self.done.refs = [(ref, new) for ref in roots.everything if (new := self._ref(ref)) != ref.target]
        self.done.indexes = [(head, entries) for head in roots.heads if (entries := list(self._index(head)))]

    def _peeled(self, ref: Ref) -> str:
        """The commit that a ref leads to; empty when it leads to none."""
        name, kind = ref.target, ref.kind
        while kind == "tag":
            name, kind = tagged(self._objects.read(name).data)
        return name if kind == "commit" else ""

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
            new = _unique(
                [entry for mode, raw, target in entries for entry in self._entry(folder, mode, raw, target)]
            )
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
        return key + b" " + os.fsencode(self._what.name(os.fsdecode(name))) + b">" + when

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
            b"tag " + os.fsencode(self._what.name(os.fsdecode(line[4:])))
            if line.startswith(b"tag ")
            else line
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


def _unique(entries: list[tuple[bytes, bytes, str]]) -> list[tuple[bytes, bytes, str]]:
    """Two names that differed in what is forgotten only must not become one file."""
    taken: dict[bytes, tuple[bytes, bytes, str]] = {}
    for mode, name, target in entries:
        free, number = name, 1
        while free in taken and taken[free][2] != target:
            number += 1
            free = b"%s-%d" % (name, number)
        taken[free] = (mode, free, target)
    return list(taken.values())


# ---------------------------------------------------------------- over to the new ones


def move_refs(git: Git, what: Forgetting, survey: Survey, done: Rewritten) -> None:
    own = {ref for head in survey.roots.heads for ref in head.refs}
    targets = dict(done.refs)
    moves: list[tuple[str, str | None, str | None]] = []
    for ref in survey.roots.refs:
        new, name = targets.get(ref, ref.target), _renamed_ref(what, ref.name, done)
        if name != ref.name:
            moves += [(ref.name, None, ref.target), *([(name, new, None)] if new else [])]
        elif new != ref.target:
            moves.append((name, new, ref.target))
    if moves:
        git.move_refs(moves)
    for head in survey.roots.heads:
        _move_head(
            head, what, done, [(ref, new) for ref, new in done.refs if ref in own and ref in head.refs]
        )


def _renamed_ref(what: Forgetting, name: str, done: Rewritten) -> str:
    if name.startswith(_REPLACED):  # it is called like the commit in whose place it stands
        return _REPLACED + done.of(name.removeprefix(_REPLACED))
    return what.name(name)


def _move_head(head: Head, what: Forgetting, done: Rewritten, own: list[tuple[Ref, str | None]]) -> None:
    moves: list[tuple[str, str | None, str | None]] = [(ref.name, new, ref.target) for ref, new in own]
    if head.detached and done.of(head.detached) != head.detached:
        moves.append(("HEAD", done.of(head.detached), head.detached))
    if moves:
        head.git.move_refs(moves)
    file = head.git.directory / "HEAD"
    text = file.read_text(errors="surrogateescape")
    if text.startswith("ref: ") and what.name(text) != text:
        files.replace(file, os.fsencode(what.name(text)), mode=0o644)


def tell_indexes(survey: Survey, done: Rewritten) -> list[Path]:
    """Returns those that somebody holds."""
    held = []
    for head, entries in done.indexes:
        away = head.git.not_checked_out()
        gone, here = [e for e in entries if e[1] is None], [e for e in entries if e[1] is not None]
        if not head.git.update_index([*gone, *here]):
            held.append(head.git.directory / "index")
            continue
        if sparse := [path for path, _ in here if path in away]:
            head.git.leave_out(sparse)
        if gone:
            head.git.drop_old_folders()
    for head in survey.roots.heads:
        head.git.forget_resolved()
    return held


def rewrite_logs(git: Git, what: Forgetting, done: Rewritten) -> None:
    """The same moves, between the new commits. What our own update of the refs added goes again: without it
    `git stash list` would have one stash more."""
    for file in logs(git):
        old = file.read_bytes()
        lines = []
        for line in old.splitlines(keepends=True):
            found = LOGGED.fullmatch(line)
            lines.append(_relogged(found, what, done) if found else what.text(line))
        if (new := b"".join(lines)) != old:
            files.replace(file, new, mode=file.stat().st_mode & 0o777)
        with suppress(ValueError):
            _rename_log(git, what, file)


def _relogged(found: re.Match[bytes], what: Forgetting, done: Rewritten) -> bytes:
    before, after = found[1].decode(), found[2].decode()
    if done.of(before) == after and before != after:
        return b""
    message = b"" if found[4] is None else b"\t" + done.renamed(what.message(found[4]))
    who = os.fsencode(what.name(os.fsdecode(found[3])))
    return b"%s %s %s%s\n" % (done.of(before).encode(), done.of(after).encode(), who, message)


def _rename_log(git: Git, what: Forgetting, file: Path) -> None:
    name = str(file.relative_to(git.common / "logs"))
    if what.name(name) != name:
        file.unlink()


def rewrite_shallow(git: Git, done: Rewritten) -> None:
    """Where only a part of the history was cloned, this names the commits at its edge."""
    file = git.common / "shallow"
    if file.is_file():
        new = "".join(f"{done.of(name)}\n" for name in file.read_text().split())
        files.replace(file, new.encode(), mode=0o644)
