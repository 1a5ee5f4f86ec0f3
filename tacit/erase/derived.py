"""Derived files that tacit keeps: logs, caches, session records.

Logs are edited in place, and each line keeps its length: other processes may be appending, and some remember
how far they have read. A removed line becomes spaces, which all our readers skip.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from tacit.erase.sessions import SessionErasure
from tacit.erase.spellings import PLACEHOLDER, PLACEHOLDER_WORD
from tacit.erase.target import Erasure
from tacit.home import files
from tacit.home.layout import Home
from tacit.learn import window_proposals
from tacit.learn.model import ChangeSet
from tacit.transcripts import writer

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
