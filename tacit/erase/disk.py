"""Erase from files on disk: the work trees, and the logs, caches and records in `.tacit`.

Logs are edited in place, and each line keeps its length: other processes may be appending, and some remember
how far they have read. A removed line becomes spaces, which all our readers skip.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath

from tacit.erase.erasure import RESERVED_FOLDERS, Erasure, group_by_folder, iterate_numbered
from tacit.erase.spellings import PLACEHOLDER, PLACEHOLDER_WORD
from tacit.erase.targets import SessionErasure
from tacit.errors import UnsafePath
from tacit.home import files
from tacit.home.layout import Home
from tacit.learn import window_proposals
from tacit.learn.model import ChangeSet
from tacit.markdown import notes
from tacit.transcripts import writer

_EXCERPT_CHARS = 30  # shown before and after the match
_INDEX_PREFIX = "memory.db"
_KINDS = {
    "receipts": "receipts",
    "gate": "gate log",
    "spool": "spool",
    "proposals": "proposals",
    "sessions": "session records",
    "context": "context copies",
    "daemon.log": "daemon log",
    "daemon.log.1": "daemon log",
}


@dataclass(frozen=True, slots=True)
class ErasurePlace:
    """One file that changes, or one line of it."""

    path: str
    line: int  # 0: the whole file
    excerpt: str
    becomes: str  # changed, removed, or its new path


class WorkTree:
    def __init__(self, root: Path, what: Erasure) -> None:
        self.root, self._erasure = root, what
        self._tree = files.Tree(root)
        self.unreadable: list[str] = []
        self.foreign: list[str] = []  # other repositories inside ours
        self.similar: list[str] = []  # files with the same content in another form, which stays

    def learn(self) -> None:
        paths, copies = [], set()
        for path, data, is_link in self._read_contents():
            paths.append(path)
            if not is_link and self._erasure.may_change(path):
                copies.add(self._find_copy(path, data))
                if self._erasure.holds(data):
                    self._erasure.learn(path, data)
        for folder, names in group_by_folder(path for path in paths if path not in copies).items():
            self._erasure.learn_names(folder, names)

    def _find_copy(self, path: str, data: bytes) -> str | None:
        """The new file, if a kill came after it was written and before the old one was removed."""
        new_path = self._erasure.path(path)
        if new_path == path:
            return None
        existing = list(takewhile(lambda name: (self.root / name).is_file(), iterate_numbered(new_path)))
        if not existing:
            return None
        new = self._erasure.file(path, data)
        return next((name for name in existing if (self.root / name).read_bytes() == new), None)

    def look(self) -> list[ErasurePlace]:
        """Also fills `similar`."""
        self.similar = []
        places: list[ErasurePlace] = []
        for path, data, is_link in self._read_contents():
            places += self._find_places(path, data)
            new = self._erasure.file(path, data)
            if not is_link and new is not None and self._erasure.is_like(self._erasure.path(path), new):
                self.similar.append(path)
        return places

    def _find_places(self, path: str, data: bytes) -> Iterator[ErasurePlace]:
        if not self._erasure.may_change(path):
            return
        new, new_path = self._erasure.file(path, data), self._erasure.path(path)
        if new is None:
            yield ErasurePlace(path, 0, "", "removed")
        elif new_path != path:
            yield ErasurePlace(path, 0, "", new_path)
        if new is not None and new != data:
            yield from _find_lines(path, data, self._erasure)

    def change(self) -> None:
        for path, data, is_link in list(self._read_contents(only_affected=True)):
            new, new_path = self._erasure.file(path, data), self._erasure.path(path)
            if is_link:
                self._replace_link(path, new_path, new)
            elif new is None:
                self._tree.remove(path, files.digest(data))
                self._remove_empty_folders(path)
            else:
                self._replace(path, new_path, data, new)

    def _read_contents(self, only_affected: bool = False) -> Iterator[tuple[str, bytes, bool]]:
        self.unreadable, self.foreign = [], []
        for path in self._walk_paths(""):
            try:
                is_link = os.path.islink(self.root / path)
                data = os.fsencode(os.readlink(self.root / path)) if is_link else self._tree.read(path)
            except FileNotFoundError:
                continue
            except (OSError, UnsafePath) as error:
                self.unreadable.append(f"{path} ({getattr(error, 'why', None) or error})")
                continue
            if not only_affected or next(self._find_places(path, data), None):
                yield path, data, is_link

    def _walk_paths(self, folder: str) -> Iterator[str]:
        entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
        if folder and any(entry.name == ".git" for entry in entries):
            self.foreign.append(folder)
            return
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if path in (".git", ".tacit"):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk_paths(path)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield path

    def _replace(self, path: str, new_path: str, data: bytes, new: bytes) -> None:
        info = os.lstat(self.root / path)
        mode = stat.S_IMODE(info.st_mode)
        if new_path == path:
            self._tree.write(path, new, files.digest(data), mode)
        else:
            self._tree.put(new_path, new, mode)
            self._tree.remove(path, files.digest(data))
            self._remove_empty_folders(path)
        # Keep the time of the file: newer notes come first.
        os.utime(self.root / new_path, ns=(info.st_atime_ns, info.st_mtime_ns))

    def _replace_link(self, path: str, new_path: str, target: bytes | None) -> None:
        (self.root / path).unlink()
        if target is not None:
            (self.root / new_path).symlink_to(os.fsdecode(target))

    def _remove_empty_folders(self, path: str) -> None:
        """Remove parent folders that are empty now."""
        for folder in PurePosixPath(path).parents:
            if str(folder) in RESERVED_FOLDERS:
                return
            with suppress(OSError):
                os.rmdir(self.root / folder)


def _find_lines(path: str, data: bytes, erasure: Erasure) -> Iterator[ErasurePlace]:
    places = [
        ErasurePlace(path, data.count(b"\n", 0, start) + 1, _excerpt(data, start, end), "changed")
        for start, end in erasure.spans(data)
    ]
    yield from places or [ErasurePlace(path, 0, "", "changed")]  # it mentions a renamed file


def _excerpt(data: bytes, start: int, end: int) -> str:
    before = notes.decode(data[max(0, start - 4 * _EXCERPT_CHARS) : start]).rpartition("\n")[2]
    after = notes.decode(data[end : end + 4 * _EXCERPT_CHARS]).partition("\n")[0]
    text = " ".join(notes.decode(data[start:end]).split())
    return (before[-_EXCERPT_CHARS:] + text + after[:_EXCERPT_CHARS]).strip()


# ---------------------------------------------------------------- files in .tacit


class Derived:
    def __init__(
        self, home: Home, what: Erasure, mirrors: Sequence[Path] = (), trees: Sequence[Path] = ()
    ) -> None:
        """`mirrors`: folders outside the home with context files for hosts. `trees`: linked work trees,
        including those that `tacit rebuild` makes in `.tacit`; only their own `.tacit` is handled here."""
        self._home, self._erasure, self._mirrors = home, what, mirrors
        self._trees = [Path(os.path.realpath(tree)) for tree in trees]

    def look(self) -> Counter[str]:
        """How many lines or files of each kind contain it."""
        counts: Counter[str] = Counter()
        for kind, file in self._list_files():
            counts[kind] += self._count_hits(kind, file)
        return +counts

    def clean(self) -> None:
        for kind, file in self._list_files():
            if self._count_hits(kind, file):
                self._clean_file(kind, file)
        # The index reads everything again; the gate's cache is keyed by hashes of questions.
        for private in self._list_folders():
            for name in ("changed.jsonl", "gate/cache.jsonl"):
                with suppress(FileNotFoundError):
                    os.truncate(private / name, 0)

    def drop_indexes(self) -> None:
        """Drop the indexes of work trees; the home's index is dropped under its own lock."""
        for tree in self._trees:
            drop_index(Home(tree))

    def _list_folders(self) -> list[Path]:
        return [self._home.private, *(tree / ".tacit" for tree in self._trees)]

    def _list_files(self) -> Iterator[tuple[str, Path]]:
        for private in self._list_folders():
            for folder_path, folders, names in os.walk(private):
                folders[:] = [name for name in folders if not self._is_tree(Path(folder_path, name))]
                for name in sorted(names):
                    file = Path(folder_path, name)
                    top = file.relative_to(private).parts[0]
                    if not name.startswith(_INDEX_PREFIX) and file.is_file() and not file.is_symlink():
                        yield _KINDS.get(top, "other files"), file
        for folder in self._mirrors:
            yield from (("context copies", file) for file in sorted(folder.glob("*/ETHOS_CONTEXT.md*")))

    def _is_tree(self, folder: Path) -> bool:
        return bool(self._trees) and Path(os.path.realpath(folder)) in self._trees

    def _count_hits(self, kind: str, file: Path) -> int:
        data = file.read_bytes()
        if _is_log(file):
            return sum(self._erase_data(line) is not None for line in data.splitlines())
        if kind == "context copies":
            return int(self._is_session_copy(file) or self._erasure.holds(data))
        return int(self._erase_data(data) is not None)

    def _clean_file(self, kind: str, file: Path) -> None:
        if kind == "context copies" or files.is_temporary(file.name):
            file.unlink()
        elif _is_log(file):
            self._clean_log(file)
        elif kind == "session records":
            self._rewrite_record(file)
        elif kind == "proposals":
            self._rewrite_proposal(file)
        else:
            new = self._erase_data(file.read_bytes()) or b""
            files.replace(file, new, mode=file.stat().st_mode & 0o777)

    def _erase_data(self, data: bytes, placeholder: str = PLACEHOLDER) -> bytes | None:
        """The data without it; empty if nothing is left; None if nothing changes."""
        if not self._erasure.may_be_in_log(data):
            return None
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            new = self._erasure.text(data)
            return None if new == data else new
        erased = self._erasure.line(value, placeholder)
        if erased == value:
            return None
        return b"" if erased is None else json.dumps(erased, separators=(",", ":")).encode()

    def _clean_log(self, file: Path) -> None:
        fd = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            offset = 0
            for line in file.read_bytes().splitlines(keepends=True):
                bare = line.rstrip(b"\r\n")
                new = self._erase_data(bare)
                if new is not None:
                    if len(new) > len(bare):
                        new = self._erase_data(bare, "") or b""
                    os.pwrite(fd, new.ljust(len(bare)) if len(new) <= len(bare) else b" " * len(bare), offset)
                offset += len(line)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _is_session_copy(self, file: Path) -> bool:
        keys = self._erasure.keys if isinstance(self._erasure, SessionErasure) else set()
        return any(file.parent.name == hashlib.sha256(key.encode()).hexdigest()[:16] for key in keys)

    def _rewrite_record(self, file: Path) -> None:
        value = json.loads(file.read_bytes())
        record = self._erasure.line(value, PLACEHOLDER_WORD)
        file.unlink()
        if isinstance(record, dict):
            name = self._erasure.mentions.names.get(str(value.get("path")))
            record["name"] = name or record.get("name")
            new_file = writer.state_file(self._home, str(record.get("opening", {}).get("session_id", "")))
            files.replace(new_file, json.dumps(record, indent=1).encode())

    def _rewrite_proposal(self, file: Path) -> None:
        """Keep the other changes of the same proposal."""
        proposal = next(
            (
                candidate
                for candidate in window_proposals.list_waiting(self._home)
                if file.name.endswith(f"-{candidate.id}.json")
            ),
            None,
        )
        file.unlink()
        if proposal is not None and self._is_kept(replace(proposal, changes=())):
            remaining = tuple(change for change in proposal.changes if self._is_kept_value(asdict(change)))
            if remaining:
                window_proposals.offer(self._home, replace(proposal, changes=remaining))

    def _is_kept(self, proposal: ChangeSet) -> bool:
        return self._is_kept_value(asdict(proposal))

    def _is_kept_value(self, value: object) -> bool:
        plain = json.loads(json.dumps(value))
        return bool(self._erasure.line(plain, PLACEHOLDER) == plain)


def _is_log(file: Path) -> bool:
    return file.name.endswith((".jsonl", ".log", ".log.1")) or file.name == "set-aside"


def drop_index(home: Home) -> None:
    """Delete all files of the index, including a quarantined one. The next search rebuilds it."""
    for file in home.private.glob(f"{_INDEX_PREFIX}*"):
        file.unlink(missing_ok=True)
