"""What tacit keeps beside the files: logs, caches, records of sessions.

Logs are changed in place, each line in as many bytes as it had: others may be adding to them at this moment,
and some remember how far they have read. A line that goes altogether becomes spaces, which every reader of
ours passes over.
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

from tacit.model.changes import ChangeSet
from tacit.store import files, proposals, transcripts
from tacit.store.forgetting.sessions import Sessions
from tacit.store.forgetting.what import Forgetting
from tacit.store.forgetting.words import SHOWN, WORD
from tacit.store.home import Home

_INDEX = "memory.db"
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
    def __init__(self, home: Home, what: Forgetting, mirrors: Sequence[Path] = ()) -> None:
        """`mirrors`: folders outside the home with copies for hosts."""
        self._home, self._what, self._mirrors = home, what, mirrors

    def look(self) -> Counter[str]:
        """How many lines or files of each kind hold it."""
        found: Counter[str] = Counter()
        for kind, file in self._files():
            found[kind] += self._hits(kind, file)
        return +found

    def clean(self) -> None:
        for kind, file in self._files():
            if self._hits(kind, file):
                self._clean(kind, file)
        # The index reads everything again; the answers of the gate are kept by hashes of what was asked.
        for name in ("changed.jsonl", "gate/cache.jsonl"):
            with suppress(FileNotFoundError):
                os.truncate(self._home.private / name, 0)

    def _files(self) -> Iterator[tuple[str, Path]]:
        for here, _, names in os.walk(self._home.private):
            for name in sorted(names):
                file = Path(here, name)
                top = file.relative_to(self._home.private).parts[0]
                if not name.startswith(_INDEX) and file.is_file() and not file.is_symlink():
                    yield _KINDS.get(top, "other files"), file
        for folder in self._mirrors:
            yield from (("context copies", file) for file in sorted(folder.glob("*/ETHOS_CONTEXT.md*")))

    def _hits(self, kind: str, file: Path) -> int:
        data = file.read_bytes()
        if _is_log(file):
            return sum(self._changed(line) is not None for line in data.splitlines())
        if kind == "context copies":
            return int(self._is_copy_of_theirs(file) or self._what.holds(data))
        return int(self._changed(data) is not None)

    def _clean(self, kind: str, file: Path) -> None:
        if kind == "context copies" or files.is_temporary(file.name):
            file.unlink()
        elif _is_log(file):
            self._blank(file)
        elif kind == "session records":
            self._rerecord(file)
        elif kind == "proposals":
            self._repropose(file)
        else:
            new = self._changed(file.read_bytes()) or b""
            files.replace(file, new, mode=file.stat().st_mode & 0o777)

    def _changed(self, data: bytes, by: str = SHOWN) -> bytes | None:
        """Without it; empty when nothing is left; None when it was not there."""
        if not self._what.may_be_in_log(data):
            return None
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            new = self._what.text(data)
            return None if new == data else new
        kept = self._what.line(value, by)
        if kept == value:
            return None
        return b"" if kept is None else json.dumps(kept, separators=(",", ":")).encode()

    def _blank(self, file: Path) -> None:
        fd = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            at = 0
            for line in file.read_bytes().splitlines(keepends=True):
                bare = line.rstrip(b"\r\n")
                new = self._changed(bare)
                if new is not None:
                    if len(new) > len(bare):
                        new = self._changed(bare, "") or b""
                    os.pwrite(fd, new.ljust(len(bare)) if len(new) <= len(bare) else b" " * len(bare), at)
                at += len(line)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _is_copy_of_theirs(self, file: Path) -> bool:
        keys = self._what.keys if isinstance(self._what, Sessions) else set()
        return any(file.parent.name == hashlib.sha256(key.encode()).hexdigest()[:16] for key in keys)

    def _rerecord(self, file: Path) -> None:
        value = json.loads(file.read_bytes())
        kept = self._what.line(value, WORD)
        file.unlink()
        if isinstance(kept, dict):
            name = self._what.mentions.names.get(str(value.get("path")))
            kept["name"] = name or kept.get("name")
            fresh = transcripts.record_file(self._home, str(kept.get("opening", {}).get("session_id", "")))
            files.replace(fresh, json.dumps(kept, indent=1).encode())

    def _repropose(self, file: Path) -> None:
        """What else was proposed in the same breath stays."""
        known = next(
            (one for one in proposals.waiting(self._home) if file.name.endswith(f"-{one.id}.json")), None
        )
        file.unlink()
        if known is not None and self._keeps(replace(known, changes=())):
            rest = tuple(change for change in known.changes if self._keeps_value(asdict(change)))
            if rest:
                proposals.offer(self._home, replace(known, changes=rest))

    def _keeps(self, proposal: ChangeSet) -> bool:
        return self._keeps_value(asdict(proposal))

    def _keeps_value(self, value: object) -> bool:
        plain = json.loads(json.dumps(value))
        return bool(self._what.line(plain, SHOWN) == plain)


def _is_log(file: Path) -> bool:
    return file.name.endswith((".jsonl", ".log", ".log.1")) or file.name == "set-aside"


def drop_index(home: Home) -> None:
    """All files of the index, also those of one that was set aside. The next question makes it anew."""
    for file in home.private.glob(f"{_INDEX}*"):
        file.unlink(missing_ok=True)
