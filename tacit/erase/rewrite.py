"""Rewrite the history into one pack. The new objects are not reachable yet.

What must stay true:
- an object that neither contains it nor refers to anything that does keeps its bytes, and so its name;
- a rewritten commit changes only where it must: dates, order and everything else stay the same;
- the same history always gets the same new names, so an interrupted run can simply be repeated.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from tacit.erase.erasure import Erasure
from tacit.erase.history import HistorySurvey, WorkTreeHead, is_file, is_folder, parse_tag, parse_tree
from tacit.errors import GitError
from tacit.git.objects import add_pack, walk_commits
from tacit.git.refs import Ref
from tacit.git.repository import Blob, Git

_SIGNATURE = re.compile(rb"^-----BEGIN (?:PGP|SSH|SIGNED) .*\Z", re.DOTALL | re.MULTILINE)
_COMMIT_NAME = re.compile(rb"(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])")
_SIGNATURE_FIELDS = (b"gpgsig ", b"gpgsig-sha256 ", b"mergetag ")
_PERSON_FIELDS = (b"author ", b"committer ", b"tagger ")
_SHORT_DIGITS = 7  # digits of an abbreviated commit name
_NOTES_PREFIX = "refs/notes/"
_TAGS_PREFIX = "refs/tags/"
_TYPE_CODES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}  # in a pack
_CHUNK_BYTES = 1 << 20


@dataclass(slots=True)
class RewriteResult:
    """Maps old names to new ones."""

    commits: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    refs: list[tuple[Ref, str | None]] = field(default_factory=list)  # with its new target
    indexes: list[tuple[WorkTreeHead, list[tuple[str, Blob | None]]]] = field(default_factory=list)
    _short: dict[bytes, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        return self.commits.get(name) or self.tags.get(name) or name

    def keep(self, name: str, new: str) -> None:
        self.commits[name] = new
        self._short[name[:_SHORT_DIGITS].encode()] = name

    def rename(self, message: bytes) -> bytes:
        """Replace names of commits in a message by the new ones."""
        return _COMMIT_NAME.sub(self._rename_match, message)

    def _rename_match(self, match: re.Match[bytes]) -> bytes:
        old = self._short.get(match[0][:_SHORT_DIGITS])
        if old is None or not old.startswith(match[0].decode()):
            return match[0]
        return self.commits[old][: len(match[0])].encode()


class HistoryRewriter:
    def __init__(self, git: Git, what: Erasure, survey: HistorySurvey) -> None:
        self._git, self._erasure, self._survey = git, what, survey
        self._width = 32 if git.algorithm == "sha256" else 20
        self._trees: dict[tuple[str, str], str | None] = {}
        self._blobs: dict[tuple[str, str], str | None] = {}
        self._top_trees: dict[str, tuple[str, str]] = {}  # old and new tree of each commit
        self.done = RewriteResult()

    def write(self) -> RewriteResult:
        """Write all new objects. They are not reachable yet, so an interruption loses nothing."""
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
        notes = [
            ref.target for ref in roots.refs if ref.name.startswith(_NOTES_PREFIX) and ref.kind == "commit"
        ]
        note_commits = list(walk_commits(self._git, notes))
        note_names = {name for name, _, _ in note_commits}
        for name, tree, parents in self._survey.graph:
            if name not in note_names:
                self._rewrite_commit(name, parents, self._rewrite_tree(tree, ""), tree)
        for name, tree, parents in note_commits:  # last: they are named after the commits they are about
            self._rewrite_commit(name, parents, self._rewrite_notes(tree), tree)
        self.done.refs = [
            (ref, new) for ref in roots.everything if (new := self._rewrite_ref(ref)) != ref.target
        ]
        self.done.indexes = [
            (head, entries) for head in roots.heads if (entries := list(self._rewrite_index(head)))
        ]

    # ------------------------------------------------------------ files

    def _rewrite_blob(self, path: str, name: str) -> str | None:
        if (path, name) not in self._blobs:
            old = self._objects.read(name).data
            new = self._erasure.file(path, old)
            self._blobs[path, name] = (
                None if new is None else name if new == old else self._pack.add("blob", new)
            )
        return self._blobs[path, name]

    def _rewrite_tree(self, name: str, folder: str) -> str | None:
        """The new tree; None if it becomes empty."""
        if (name, folder) not in self._survey.trees:
            return name
        if (name, folder) not in self._trees:
            entries = parse_tree(self._objects.read(name).data, self._width)
            new = [
                entry
                for mode, raw, target in entries
                for entry in self._rewrite_entry(folder, mode, raw, target)
            ]
            if len({entry_name for _, entry_name, _ in new}) < len(new):
                raise GitError(f"Two files in {folder or 'the home'} would get the same name. Rename one.")
            empty = not new and folder != ""
            self._trees[name, folder] = None if empty else self._pack.add("tree", build_tree(new))
        return self._trees[name, folder]

    def _rewrite_entry(
        self, folder: str, mode: bytes, raw: bytes, target: str
    ) -> Iterator[tuple[bytes, bytes, str]]:
        path = folder + os.fsdecode(raw)
        new: str | None = target
        if is_folder(mode):
            new = self._rewrite_tree(target, f"{path}/")
        elif is_file(mode) and (path, target) in self._survey.files:
            new = self._rewrite_blob(path, target)
        if new is not None:
            # A parent folder may be renamed too; its own entry handles that.
            yield mode, os.fsencode(self._erasure.path(path).rpartition("/")[2]), new

    def _rewrite_notes(self, name: str) -> str:
        """Git notes are files named after a commit, in folders by the first digits of its name."""
        entries = [
            (self._rename_note(path), mode, self._rewrite_blob(path, target) if is_file(mode) else target)
            for path, mode, target in self._list_flat(name, "")
        ]
        present = [(path, mode, target) for path, mode, target in entries if target is not None]
        return self._build_nested(present)

    def _list_flat(self, name: str, folder: str) -> Iterator[tuple[str, bytes, str]]:
        for mode, raw, target in parse_tree(self._objects.read(name).data, self._width):
            path = folder + os.fsdecode(raw)
            if is_folder(mode):
                yield from self._list_flat(target, f"{path}/")
            else:
                yield path, mode, target

    def _rename_note(self, path: str) -> str:
        new = self.done.commits.get(path.replace("/", ""))
        if new is None:
            return path
        letters = iter(new)
        return "".join(letter if letter == "/" else next(letters) for letter in path)

    def _build_nested(self, entries: list[tuple[str, bytes, str]]) -> str:
        own_entries = [(mode, os.fsencode(path), target) for path, mode, target in entries if "/" not in path]
        subfolders: dict[str, list[tuple[str, bytes, str]]] = {}
        for path, mode, target in entries:
            folder, slash, rest = path.partition("/")
            if slash:
                subfolders.setdefault(folder, []).append((rest, mode, target))
        own_entries += [
            (b"40000", os.fsencode(folder), self._build_nested(children))
            for folder, children in subfolders.items()
        ]
        return self._pack.add("tree", build_tree(own_entries))

    # ------------------------------------------------------------ commits and tags

    def _rewrite_commit(self, name: str, parents: list[str], tree: str | None, old_tree: str) -> None:
        assert tree is not None  # the root tree of a commit may be empty, but it exists
        new_parents = list(dict.fromkeys(self.done.commits.get(parent, parent) for parent in parents))
        self._top_trees[name] = (old_tree, tree)
        if name not in self._survey.commits and tree == old_tree and new_parents == parents:
            return
        if self._is_empty_now(parents, tree, old_tree):
            self.done.keep(name, new_parents[0])
            return
        raw = self._objects.read(name).data
        new = self._build_commit(raw, tree)
        if new != raw:
            self.done.keep(name, self._pack.add("commit", new))

    def _is_empty_now(self, parents: list[str], tree: str, old_tree: str) -> bool:
        """Whether a commit became empty. One that was already empty was made on purpose."""
        if not self._erasure.drops_commits or len(parents) != 1 or parents[0] not in self._top_trees:
            return False
        old_parent_tree, new_parent_tree = self._top_trees[parents[0]]
        return new_parent_tree == tree and old_parent_tree != old_tree

    def _build_commit(self, raw: bytes, tree: str) -> bytes:
        head, gap, message = raw.partition(b"\n\n")
        lines: list[bytes] = []
        for line in _split_fields(head):
            new = self._rewrite_field(line, tree)
            if not new.startswith(b"parent ") or new not in lines:  # two parents may have become the same
                lines.append(new)
        message = self._rewrite_message(message)
        if b"\n".join(lines) + gap + message != raw:
            lines = [
                line for line in lines if not line.startswith(_SIGNATURE_FIELDS)
            ]  # signatures of the old content
        return b"\n".join(lines) + gap + message

    def _rewrite_field(self, line: bytes, tree: str) -> bytes:
        key, _, value = line.partition(b" ")
        if key == b"tree":
            return b"tree " + tree.encode()
        if key == b"parent":
            return b"parent " + self.done.commits.get(value.decode(), value.decode()).encode()
        return self._rewrite_person(line)

    def _rewrite_person(self, line: bytes) -> bytes:
        if not line.startswith(_PERSON_FIELDS) or b">" not in line:
            return line
        person, _, when = line.rpartition(b">")
        key, _, name = person.partition(b" ")
        return key + b" " + os.fsencode(self._erasure.person(os.fsdecode(name))) + b">" + when

    def _rewrite_message(self, message: bytes) -> bytes:
        return self.done.rename(self._erasure.message(message))

    def _rewrite_ref(self, ref: Ref) -> str | None:
        match ref.kind:
            case "commit":
                return self.done.commits.get(ref.target, ref.target)
            case "tag":
                return self._rewrite_tag(ref.target)
            case "tree":
                return self._rewrite_tree(ref.target, "") or ref.target
        return self._rewrite_blob("", ref.target)

    def _rewrite_tag(self, name: str) -> str:
        raw = self._objects.read(name).data
        target, kind = parse_tag(raw)
        new = self._rewrite_ref(Ref("", target, kind)) or target
        head, gap, message = raw.partition(b"\n\n")
        lines = head.split(b"\n")
        lines[0] = b"object " + new.encode()
        lines = [self._rewrite_tag_name(self._rewrite_person(line)) for line in lines]
        rewritten = b"\n".join(lines) + gap + self._rewrite_message(message)
        if rewritten == raw:
            return name
        unsigned = b"\n".join(lines) + gap + self._rewrite_message(_SIGNATURE.sub(b"", message))
        self.done.tags[name] = self._pack.add("tag", unsigned)
        return self.done.tags[name]

    def _rewrite_tag_name(self, line: bytes) -> bytes:
        if not line.startswith(b"tag "):
            return line
        name = self._erasure.ref(_TAGS_PREFIX + os.fsdecode(line[4:]))
        return b"tag " + os.fsencode(name.removeprefix(_TAGS_PREFIX))

    # ------------------------------------------------------------ indexes

    def _rewrite_index(self, head: WorkTreeHead) -> Iterator[tuple[str, Blob | None]]:
        for path, blob in head.index:
            if path not in self._survey.staged:
                continue
            new = self._rewrite_blob(path, blob.name)
            new_path = self._erasure.path(path)
            if new_path != path or new is None:
                yield path, None
            if new is not None:
                yield new_path, Blob(blob.mode, new)


def _split_fields(head: bytes) -> list[bytes]:
    """The header fields of a commit; a line that begins with a space continues the previous one."""
    fields: list[bytes] = []
    for line in head.split(b"\n"):
        if line.startswith(b" ") and fields:
            fields[-1] += b"\n" + line
        else:
            fields.append(line)
    return fields


# ---------------------------------------------------------------- the pack file


class Pack:
    """Writes objects to a pack file one by one; only their names are held in memory. The file has a temporary
    name in the pack folder, so git removes it by itself if it is never finished."""

    def __init__(self, git: Git) -> None:
        self._git, self._algorithm = git, git.algorithm
        self._written_names: set[str] = set()
        folder = git.common / "objects" / "pack"
        folder.mkdir(0o700, exist_ok=True)
        self._path = folder / f"tmp_forget_{secrets.token_hex(6)}"
        self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
        self._file.write(struct.pack(">4sII", b"PACK", 2, 0))

    def add(self, kind: str, data: bytes) -> str:
        """Add an object; returns its name."""
        head = b"%s %d\0" % (kind.encode(), len(data))
        name = hashlib.new(self._algorithm, head + data, usedforsecurity=False).hexdigest()
        if name not in self._written_names:
            self._written_names.add(name)
            self._file.write(_encode_header(_TYPE_CODES[kind], len(data)) + zlib.compress(data))
        return name

    def close(self) -> None:
        """Finish the pack and add its objects to the repository."""
        self._file.seek(4)
        self._file.write(struct.pack(">II", 2, len(self._written_names)))
        self._file.seek(0)
        checksum = hashlib.new(self._algorithm, usedforsecurity=False)
        while chunk := self._file.read(_CHUNK_BYTES):
            checksum.update(chunk)
        self._file.write(checksum.digest())
        self._file.close()
        if self._written_names:
            add_pack(self._git, self._path)
        self._path.unlink()

    def drop(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


def _encode_header(kind: int, size: int) -> bytes:
    """Encode type and size: four bits of the size next to the type, then seven per byte, lowest first."""
    first, size = kind << 4 | size & 15, size >> 4
    data = bytearray()
    while size:
        data.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    data.append(first)
    return bytes(data)


def build_tree(entries: list[tuple[bytes, bytes, str]]) -> bytes:
    """Sorts in git's order, where a folder counts as a name that ends in a slash."""
    ordered = sorted(entries, key=lambda entry: entry[1] + (b"/" if is_folder(entry[0]) else b""))
    return b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(target)) for mode, name, target in ordered)
