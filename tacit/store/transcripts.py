"""Live conversations: appended durably, sealed once, found again after a crash.

What must stay true:
- `append` returns only after the record is on disk; when it raises, the record is not part of the file;
- one writer per transcript: the flock on the file itself, freed by the kernel when the writer dies, tells
  a live session from one that a crash left open;
- sealing changes the frontmatter and nothing else, and happens once.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tacit.errors import Busy, DiskError, SessionError, StoreError, UnsafePath
from tacit.model.problems import Problem
from tacit.model.turns import Closing, KnowledgeChange, Opening, Transcript, Turn
from tacit.store import files
from tacit.store.home import CONVERSATIONS, Home
from tacit.text import transcript as form
from tacit.text.transcript import Place, Written

_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Record:
    """What .tacit/sessions holds about a session until its transcript is committed."""

    opening: Opening
    path: str | None = None
    name: str = ""
    detached: bool = False  # no process lives between its messages (the command line captures it)
    sha256: str | None = None  # set when it is sealed and its commit has to wait


def load(home: Home, path: str) -> Transcript:
    data = files.Tree(home.root).read(path)
    return form.parse(data.decode("utf-8", "surrogateescape"), path)


def turns(home: Home, record: Record) -> tuple[Turn, ...]:
    """What was said so far in an open session."""
    if record.path is None:
        return ()
    text = files.Tree(home.root).read(record.path).decode("utf-8", "surrogateescape")
    return form.read(text, record.opening, record.path)


def attempt_load(home: Home, path: str) -> Transcript:
    """The transcript, or an empty one whose problem says why it cannot be read."""
    try:
        return load(home, path)
    except (StoreError, OSError) as error:
        return Transcript(path, problems=(Problem(path, str(error)),))


def errors_of(transcript: Transcript) -> list[Problem]:
    """What keeps a transcript from being taken for one."""
    found = [problem for problem in transcript.problems if problem.level == "error"]
    if not transcript.fields and not found:
        return [Problem(transcript.path, "does not begin with frontmatter (`---`).", "See docs/format.md.")]
    return found


def ended_of(file: Path) -> datetime | None:
    found = re.search(rb"\nended: (\S+)", _head_of(file))
    try:
        return datetime.fromisoformat(found[1].decode()) if found else None
    except ValueError:
        return None


def is_sealed(file: Path) -> bool:
    """Sealed transcripts have an end; we wrote the head, so nobody has to parse it to tell."""
    return b"\nended: " in _head_of(file)


def _head_of(file: Path) -> bytes:
    with file.open("rb") as opened:
        head = opened.read(64 * 1024)
        while b"\n---" not in head and (more := opened.read(65536)):  # a very long name of a session
            head += more
    return head.partition(b"\n---")[0]


# ---------------------------------------------------------------- whose session


def own_name(session_id: str, session_key: str, key_of: Callable[[str], str | None]) -> str:
    """The id of the session that a host means by this id under this key. An id is of the key that used it
    first: who gives it with another key means another session, and always the same one. Otherwise what is
    said in one place could be read in another. `key_of` tells whose an id is, None: nobody's."""
    return next(name for name in own_names(session_id, session_key) if key_of(name) in (None, session_key))


def own_names(session_id: str, session_key: str) -> Iterator[str]:
    """The id itself, and what stands for it where it is another key's. Without end: somebody may have taken
    these as well."""
    yield session_id
    for number in itertools.count():
        made = hashlib.sha256(f"{number} {session_key}".encode("utf-8", "surrogatepass")).hexdigest()
        yield f"{session_id}-{made[:12]}"


# ---------------------------------------------------------------- records of open sessions


def record_file(home: Home, session_id: str) -> Path:
    return home.sessions / f"{form.safe_name(session_id)}.json"


def save_record(home: Home, record: Record) -> None:
    value = asdict(record)
    value["opening"]["started"] = record.opening.started.isoformat()
    data = json.dumps(value, indent=1).encode()
    files.make_directories(home.sessions)
    files.replace(record_file(home, record.opening.session_id), data)


def find_record(home: Home, session_id: str) -> Record | None:
    return _read_record(record_file(home, session_id))


def records(home: Home) -> list[Record]:
    """Those that can be read, and for those that cannot, what their transcripts say themselves."""
    found = _record_files(home)
    damaged = any(record is None and file.exists() for file, record in found.items())
    return [*_readable(found), *(strays(home) if damaged else ())]


def _record_files(home: Home) -> dict[Path, Record | None]:
    return {file: _read_record(file) for file in sorted(home.sessions.glob("*.json"))}


def _readable(found: Mapping[Path, Record | None]) -> list[Record]:
    return [record for record in found.values() if record is not None]


def drop_record(home: Home, record: Record) -> None:
    """Done with this transcript. The session may go on in a new part by now, and that record stays."""
    current = find_record(home, record.opening.session_id)
    if current is None or current.path == record.path:
        # Not synced: one that comes back after a power cut is found to be committed, and dropped again.
        record_file(home, record.opening.session_id).unlink(missing_ok=True)


def _read_record(file: Path) -> Record | None:
    try:
        value = json.loads(file.read_bytes())
        opening = _known(Opening, value.pop("opening"))
        opening["started"] = datetime.fromisoformat(opening["started"])
        record = Record(opening=Opening(**opening), **_known(Record, value))
        return record if record.path is None or _is_transcript(record.path) else None
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None  # a record is a convenience: the transcript itself is found by `strays`


def _is_transcript(path: str) -> bool:
    """Whether it can be one of ours: a record may come from anywhere, and what it names is rewritten."""
    try:
        return files.parts_of(path)[:2] == CONVERSATIONS.split("/") and path.endswith(".md")
    except UnsafePath:
        return False


def _known(kind: type, value: dict[str, Any]) -> dict[str, Any]:
    """Without what a newer tacit may have added: a downgrade must not end open sessions."""
    return {key: item for key, item in value.items() if key in kind.__dataclass_fields__}  # type: ignore[attr-defined]


def strays(home: Home) -> Iterator[Record]:
    """Unsealed transcripts that no record names: .tacit was deleted, or never travelled with the files."""
    known = {record.path for record in _readable(_record_files(home))}
    for path in files.Tree(home.root).files(CONVERSATIONS):
        if path.endswith(".md") and path not in known and _may_be_open(home.root / path):
            parsed = attempt_load(home, path)
            if "marks" in parsed.fields:
                yield Record(form.opening_of(parsed), path, name_of(parsed))


def _may_be_open(file: Path) -> bool:
    # A sealed one is read-only unless it came by a clone, so most need not be opened.
    return bool(file.stat().st_mode & 0o200) and not is_sealed(file)


def name_of(transcript: Transcript) -> str:
    return form.slug(str(transcript.fields.get("topic") or transcript.title))


# ---------------------------------------------------------------- one live transcript


class Live:
    """A conversation that is being written. Safe to use from several threads."""

    def __init__(self, home: Home, record: Record, *, wait: float = 5.0) -> None:
        self._home, self.record = home, record
        self._tree = files.Tree(home.root)
        self._mutex = threading.Lock()
        self._fd, self._inode, self._where = -1, -1, ""
        self._closed = False
        self._process = os.getpid()
        self._size = 0  # bytes that are known to be on disk
        self._suspect = False
        self._place = Place(0, None, record.opening.started.date())
        self._torn = False
        if record.path is not None:
            self._open(record.path, wait)

    def append(self, hint: str, write: Callable[[Place], Written], started: datetime | None = None) -> int:
        """Keep one record and return its number. `write` renders it for its place in the file; `hint` names
        the file if this is its first record, and `started` is then when the conversation began."""
        self._require_own()
        with self._mutex, files.explained("keep this message"):
            if self._closed:
                raise SessionError("This session is closed. Continue it with Memory.session(session_id=…).")
            if self._fd < 0 and started is not None:
                self.record = replace(self.record, opening=replace(self.record.opening, started=started))
                self._place = Place(0, None, started.date())
            if self._fd >= 0 or not self._create(hint, write):
                self._add(write(self._place))
            return self._place.number

    def turns(self) -> tuple[Turn, ...]:
        if self.record.path is None:
            return ()
        return form.read(self._text(), self.record.opening, self.record.path)

    def seal(self, closing: Closing, changes: Sequence[KnowledgeChange] = ()) -> str:
        """Write the final frontmatter, make the file read-only, and return its hash. `changes` are the notes
        the conversation changed."""
        self._require_own()
        with self._mutex, files.explained("seal the transcript"):
            if self.record.path is None or self._fd < 0:
                raise SessionError("There is nothing to seal: the session is closed or has no message.")
            final = form.finish(self._text(), self.record.opening, closing, changes)
            data = final.encode("utf-8", "surrogateescape")
            self._replace_sealed(self.record.path, data)
            return files.digest(data)

    def _replace_sealed(self, path: str, data: bytes) -> None:
        try:
            self._tree.put(path, data, mode=0o400)
        finally:
            # Also when only the last sync failed: our descriptor is then of a file that has no name any
            # more, and nothing may be acknowledged into it.
            if (self._home.root / path).exists() and is_sealed(self._home.root / path):
                self._release()

    def close(self) -> None:
        """Let go of the file. Whoever opens the home next takes the session for one left open by a crash."""
        with self._mutex:
            self._release()

    def detach(self) -> None:
        """Let go of the file for another process to go on with; until it does, nobody seals it."""
        self._require_own()
        with self._mutex:
            if self._fd >= 0 and not self.record.detached:
                self.record = replace(self.record, detached=True)
                save_record(self._home, self.record)
            self._release()

    def _require_own(self) -> None:
        # A child made by fork shares the file and its lock, but not what we know of them.
        if os.getpid() != self._process:
            raise SessionError(
                "This session belongs to the process that began it. Begin one in this process."
            )

    def _release(self) -> None:
        self._closed = True
        if self._fd >= 0:
            if os.getpid() == self._process:
                fcntl.flock(self._fd, fcntl.LOCK_UN)  # closing is not enough while a child has the file too
            os.close(self._fd)
            self._fd = -1

    def _text(self) -> str:
        if self._fd < 0 and self.record.path is not None:
            data = (self._home.root / self.record.path).read_bytes()
        else:
            data = _read_at(self._fd, self._size)
        return data.decode("utf-8", "surrogateescape")

    def _open(self, path: str, wait: float) -> None:
        file = self._home.root / path
        with self._tree.folder(path) as (folder, name):
            fd = os.open(name, _APPEND, dir_fd=folder)
        try:
            files.flock_within(
                fd, wait, f"Session {self.record.opening.session_id} is being written elsewhere."
            )
            if os.fstat(fd).st_ino != os.stat(file).st_ino:
                raise Busy("The session was sealed just now. Start it again to continue in a new part.")
            self._take(fd, path)
            self._size = os.fstat(fd).st_size
            self._place, self._torn = form.place_after(self._text(), self.record.opening.started)
        except BaseException as error:
            self._fd = -1
            os.close(fd)
            if isinstance(error, ValueError):
                what = f"{self.record.path} has no head of tacit's any more, so nothing is added to it."
                raise SessionError(f"{what} Restore it, or begin a session with another id.") from error
            raise

    def _create(self, hint: str, write: Callable[[Place], Written]) -> bool:
        """Begin the file with its first record; False when another process began it meanwhile."""
        name = form.slug(hint)
        with files.locked(self._home.private / "sessions.lock"):
            opening = self._own_opening()
            begun = _begun(self._home, opening.session_id)
            if begun is None:
                first = write(self._place)
                data = (form.begin(opening, hint) + first.text).encode()
                path = _free_path(self._home, opening, name)
                record = replace(self.record, opening=opening, path=path, name=name)
                save_record(self._home, record)
                self._take(_create_locked(self._tree, str(record.path), data), str(record.path))
                self.record, self._size, self._place = record, len(data), first.place
                return True
        self.record = begun
        self._open(str(begun.path), wait=5.0)
        return False

    def _own_opening(self) -> Opening:
        """Another key may have begun a session with our id since we looked."""

        def key_of(session_id: str) -> str | None:
            begun = _begun(self._home, session_id)
            return begun.opening.session_key if begun else None

        opening = self.record.opening
        return replace(opening, session_id=own_name(opening.session_id, opening.session_key, key_of))

    def _add(self, record: Written) -> None:
        if self._suspect or not self._in_place():
            self._refuse_sealed()
            self._rewrite()
        data = ((form.TORN if self._torn else "") + record.text).encode()
        try:
            written = os.write(self._fd, data)
            if written != len(data):
                raise DiskError(
                    "Could not keep this message: the disk is full. Free some space and try again."
                )
            os.fdatasync(self._fd)
        except BaseException:
            # What was not acknowledged must not be there, or a second try would keep it twice. And after
            # a failed sync the kernel may have dropped pages of this file: the next record gets a new one.
            self._suspect = True
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)
        self._place, self._torn = record.place, False

    def _in_place(self) -> bool:
        """Whether the name still leads to our file: `git stash -u` or a sync tool may have taken it away."""
        try:
            return os.stat(self._where).st_ino == self._inode
        except FileNotFoundError:
            return False

    def _take(self, fd: int, path: str) -> None:
        """This is our file now. Where it is and which it is are asked for at every message, so kept."""
        self._fd, self._inode = fd, os.fstat(fd).st_ino
        self._where = f"{self._home.root}/{path}"

    def _refuse_sealed(self) -> None:
        """Our file was taken away, and its lock with it: another process may have sealed what it found."""
        file = self._home.root / str(self.record.path)
        if file.exists() and is_sealed(file):
            self._release()
            what = f"{self.record.path} was sealed by another process."
            raise SessionError(f"{what} Go on in a new part with Memory.session(session_id=…).")

    def _rewrite(self) -> None:
        assert self.record.path is not None
        fresh = _put_locked(self._tree, self.record.path, _read_at(self._fd, self._size))
        os.close(self._fd)
        self._take(fresh, self.record.path)
        _sync_folder(self._tree, self.record.path)
        self._suspect = False


def _read_at(fd: int, size: int) -> bytes:
    pieces, position = [], 0
    while position < size and (piece := os.pread(fd, size - position, position)):
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


def _begun(home: Home, session_id: str) -> Record | None:
    record = find_record(home, session_id)
    if record is None or record.path is None or record.opening.session_id != session_id:
        return None
    file = home.root / record.path
    return record if file.exists() and not is_sealed(file) else None


def _free_path(home: Home, opening: Opening, name: str) -> str:
    again = 0
    while (home.root / (path := form.file_path(opening, name, again))).exists():
        again += 1
    return path


def _create_locked(tree: files.Tree, path: str, data: bytes) -> int:
    """A new file that appears whole, synced and already locked by us, or not at all."""
    fd = _put_locked(tree, path, data)
    try:
        _sync_folder(tree, path)
    except BaseException:
        os.close(fd)
        with suppress(OSError), tree.folder(path) as (folder, name):
            os.unlink(name, dir_fd=folder)  # not acknowledged, and a second try must not keep it twice
        raise
    return fd


def _put_locked(tree: files.Tree, path: str, data: bytes) -> int:
    with tree.folder(path, make=True) as (folder, name):
        temporary = files.temporary_name(name)
        fd = os.open(temporary, _APPEND | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            files.write_all(fd, data)
            os.fsync(fd)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.close(fd)
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
    return fd


def _sync_folder(tree: files.Tree, path: str) -> None:
    with tree.folder(path) as (folder, _):
        os.fsync(folder)
