"""Open conversations: appended durably, finalized once, found again after a crash.

What must stay true:
- `append` returns only after the record is on disk; when it raises, the record is not part of the file;
- one writer per transcript: the flock on the file itself, freed by the kernel when the writer dies, tells
  an open session from one that a crash orphaned;
- finalizing changes the frontmatter and nothing else, and happens once.
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

from tacit.diagnostics import Problem
from tacit.errors import Busy, DiskError, SessionError, StoreError, UnsafePath
from tacit.home import files
from tacit.home.layout import CONVERSATIONS, Home
from tacit.transcripts import format as form
from tacit.transcripts.format import RecordPosition, RenderedRecord
from tacit.transcripts.model import Closing, KnowledgeChange, Opening, Transcript, Turn

_OPEN_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of a session in .tacit/sessions, kept until its transcript is committed."""

    opening: Opening
    path: str | None = None
    name: str = ""
    detached: bool = False  # no process stays open between its messages (the command line captures it)
    sha256: str | None = None  # set when it is finalized and its commit has to wait


def load(home: Home, path: str) -> Transcript:
    data = files.Tree(home.root).read(path)
    return form.parse(data.decode("utf-8", "surrogateescape"), path)


def read_turns(home: Home, record: SessionState) -> tuple[Turn, ...]:
    """The turns of an open session so far."""
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


def list_errors(transcript: Transcript) -> list[Problem]:
    """Why a file cannot be read as a transcript."""
    errors = [problem for problem in transcript.problems if problem.level == "error"]
    if not transcript.fields and not errors:
        return [Problem(transcript.path, "does not begin with frontmatter (`---`).", "See docs/format.md.")]
    return errors


def read_end(file: Path) -> datetime | None:
    match = re.search(rb"\nended: (\S+)", _read_head(file))
    try:
        return datetime.fromisoformat(match[1].decode()) if match else None
    except ValueError:
        return None


def is_sealed(file: Path) -> bool:
    """Finalized transcripts have an end; we wrote the head, so there is no need to parse it."""
    return b"\nended: " in _read_head(file)


def _read_head(file: Path) -> bytes:
    with file.open("rb") as stream:
        head = stream.read(64 * 1024)
        while b"\n---" not in head and (chunk := stream.read(65536)):  # a very long name of a session
            head += chunk
    return head.partition(b"\n---")[0]


# ---------------------------------------------------------------- whose session


def resolve_session_id(session_id: str, session_key: str, key_of: Callable[[str], str | None]) -> str:
    """The id of the session that a host means by this id under this key. An id belongs to the key that used
    it first; with another key it means another session, and always the same one. Otherwise messages of one
    place could be read in another. `key_of` gives the key that an id belongs to, or None."""
    return next(
        name for name in candidate_session_ids(session_id, session_key) if key_of(name) in (None, session_key)
    )


def candidate_session_ids(session_id: str, session_key: str) -> Iterator[str]:
    """The id itself, then substitutes for when it belongs to another key. Endless, since those may be taken
    too."""
    yield session_id
    for number in itertools.count():
        digest = hashlib.sha256(f"{number} {session_key}".encode("utf-8", "surrogatepass")).hexdigest()
        yield f"{session_id}-{digest[:12]}"


# ---------------------------------------------------------------- records of open sessions


def state_file(home: Home, session_id: str) -> Path:
    return home.sessions / f"{form.safe_name(session_id)}.json"


def save_state(home: Home, record: SessionState) -> None:
    value = asdict(record)
    value["opening"]["started"] = record.opening.started.isoformat()
    data = json.dumps(value, indent=1).encode()
    files.make_directories(home.sessions)
    files.replace(state_file(home, record.opening.session_id), data)


def find_state(home: Home, session_id: str) -> SessionState | None:
    return _read_record(state_file(home, session_id))


def list_states(home: Home) -> list[SessionState]:
    """All that can be read; for the rest, the state as their transcripts give it."""
    by_file = _record_files(home)
    damaged = any(record is None and file.exists() for file, record in by_file.items())
    return [*_readable_records(by_file), *(find_orphaned(home) if damaged else ())]


def _record_files(home: Home) -> dict[Path, SessionState | None]:
    return {file: _read_record(file) for file in sorted(home.sessions.glob("*.json"))}


def _readable_records(by_file: Mapping[Path, SessionState | None]) -> list[SessionState]:
    return [record for record in by_file.values() if record is not None]


def drop_state(home: Home, record: SessionState) -> None:
    """Drop the state of this transcript. If the session went on in a new part, that part's state stays."""
    current = find_state(home, record.opening.session_id)
    if current is None or current.path == record.path:
        # Not synced: a file that comes back after a power cut turns out to be committed and is dropped again.
        state_file(home, record.opening.session_id).unlink(missing_ok=True)


def _read_record(file: Path) -> SessionState | None:
    try:
        value = json.loads(file.read_bytes())
        opening = _known_fields(Opening, value.pop("opening"))
        opening["started"] = datetime.fromisoformat(opening["started"])
        record = SessionState(opening=Opening(**opening), **_known_fields(SessionState, value))
        return record if record.path is None or _is_transcript_path(record.path) else None
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None  # this file is a convenience: `strays` finds the transcript itself


def _is_transcript_path(path: str) -> bool:
    """Whether it can be one of ours: a state file may come from anywhere, and we rewrite what it names."""
    try:
        return files.split_safe_path(path)[:2] == CONVERSATIONS.split("/") and path.endswith(".md")
    except UnsafePath:
        return False


def _known_fields(kind: type, value: dict[str, Any]) -> dict[str, Any]:
    """Drop fields that a newer tacit may have added: a downgrade must not end open sessions."""
    return {key: item for key, item in value.items() if key in kind.__dataclass_fields__}  # type: ignore[attr-defined]


def find_orphaned(home: Home) -> Iterator[SessionState]:
    """Open transcripts without a state file: .tacit was deleted, or was not copied with the files."""
    known_paths = {record.path for record in _readable_records(_record_files(home))}
    for path in files.Tree(home.root).files(CONVERSATIONS):
        if path.endswith(".md") and path not in known_paths and _may_be_open(home.root / path):
            transcript = attempt_load(home, path)
            if "marks" in transcript.fields:
                yield SessionState(form.read_opening(transcript), path, make_name(transcript))


def _may_be_open(file: Path) -> bool:
    # A finalized one is read-only unless it came with a clone, so most need not be opened.
    return bool(file.stat().st_mode & 0o200) and not is_sealed(file)


def make_name(transcript: Transcript) -> str:
    return form.make_slug(str(transcript.fields.get("topic") or transcript.title))


# ---------------------------------------------------------------- one live transcript


class TranscriptWriter:
    """Writes one conversation. Safe to use from several threads."""

    def __init__(self, home: Home, record: SessionState, *, wait: float = 5.0) -> None:
        self._home, self.record = home, record
        self._tree = files.Tree(home.root)
        self._lock = threading.Lock()
        self._fd, self._inode, self._file_path = -1, -1, ""
        self._closed = False
        self._process = os.getpid()
        self._size = 0  # bytes that are known to be on disk
        self._needs_rewrite = False
        self._cursor = RecordPosition(0, None, record.opening.started.date())
        self._is_truncated = False
        if record.path is not None:
            self._open(record.path, wait)

    def append(
        self, hint: str, write: Callable[[RecordPosition], RenderedRecord], started: datetime | None = None
    ) -> int:
        """Append one record and return its number. `write` renders it for its position; if it is the first
        record, `hint` names the file and `started` is when the conversation began."""
        self._require_same_process()
        with self._lock, files.explain_disk_errors("keep this message"):
            if self._closed:
                raise SessionError("This session is closed. Continue it with Memory.session(session_id=…).")
            if self._fd < 0 and started is not None:
                self.record = replace(self.record, opening=replace(self.record.opening, started=started))
                self._cursor = RecordPosition(0, None, started.date())
            if self._fd >= 0 or not self._create(hint, write):
                self._write_record(write(self._cursor))
            return self._cursor.number

    def turns(self) -> tuple[Turn, ...]:
        if self.record.path is None:
            return ()
        return form.read(self._read_text(), self.record.opening, self.record.path)

    def seal(self, closing: Closing, changes: Sequence[KnowledgeChange] = ()) -> str:
        """Write the final frontmatter, make the file read-only, and return its hash. `changes` are the notes
        the conversation changed."""
        self._require_same_process()
        with self._lock, files.explain_disk_errors("seal the transcript"):
            if self.record.path is None or self._fd < 0:
                raise SessionError("There is nothing to seal: the session is closed or has no message.")
            final = form.render_final(self._read_text(), self.record.opening, closing, changes)
            data = final.encode("utf-8", "surrogateescape")
            self._replace_sealed(self.record.path, data)
            return files.digest(data)

    def _replace_sealed(self, path: str, data: bytes) -> None:
        try:
            self._tree.put(path, data, mode=0o400)
        finally:
            # Also when only the last sync failed: our descriptor then belongs to a file without a name, and
            # nothing written to it may be acknowledged.
            if (self._home.root / path).exists() and is_sealed(self._home.root / path):
                self._release()

    def close(self) -> None:
        """Close the file. The next process to open the home treats the session as orphaned by a crash."""
        with self._lock:
            self._release()

    def detach(self) -> None:
        """Close the file so that another process can go on with it; until then it is not finalized."""
        self._require_same_process()
        with self._lock:
            if self._fd >= 0 and not self.record.detached:
                self.record = replace(self.record, detached=True)
                save_state(self._home, self.record)
            self._release()

    def _require_same_process(self) -> None:
        # A child made by fork shares the file and its lock, but not our state.
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

    def _read_text(self) -> str:
        if self._fd < 0 and self.record.path is not None:
            data = (self._home.root / self.record.path).read_bytes()
        else:
            data = _read_at(self._fd, self._size)
        return data.decode("utf-8", "surrogateescape")

    def _open(self, path: str, wait: float) -> None:
        file = self._home.root / path
        with self._tree.folder(path) as (folder, name):
            fd = os.open(name, _OPEN_FLAGS, dir_fd=folder)
        try:
            files.acquire_flock(
                fd, wait, f"Session {self.record.opening.session_id} is being written elsewhere."
            )
            if os.fstat(fd).st_ino != os.stat(file).st_ino:
                raise Busy("The session was sealed just now. Start it again to continue in a new part.")
            self._adopt(fd, path)
            self._size = os.fstat(fd).st_size
            self._cursor, self._is_truncated = form.find_position(
                self._read_text(), self.record.opening.started
            )
        except BaseException as error:
            self._fd = -1
            os.close(fd)
            if isinstance(error, ValueError):
                message = f"{self.record.path} has no head of tacit's any more, so nothing is added to it."
                raise SessionError(f"{message} Restore it, or begin a session with another id.") from error
            raise

    def _create(self, hint: str, write: Callable[[RecordPosition], RenderedRecord]) -> bool:
        """Create the file with its first record; False when another process created it meanwhile."""
        name = form.make_slug(hint)
        with files.hold_lock(self._home.private / "sessions.lock"):
            opening = self._claim_opening()
            other = _find_open(self._home, opening.session_id)
            if other is None:
                rendered = write(self._cursor)
                data = (form.render_opening(opening, hint) + rendered.text).encode()
                path = _free_path(self._home, opening, name)
                record = replace(self.record, opening=opening, path=path, name=name)
                save_state(self._home, record)
                self._adopt(_create_locked(self._tree, str(record.path), data), str(record.path))
                self.record, self._size, self._cursor = record, len(data), rendered.place
                return True
        self.record = other
        self._open(str(other.path), wait=5.0)
        return False

    def _claim_opening(self) -> Opening:
        """Another key may have begun a session with our id since we looked."""

        def key_of(session_id: str) -> str | None:
            other = _find_open(self._home, session_id)
            return other.opening.session_key if other else None

        opening = self.record.opening
        return replace(
            opening, session_id=resolve_session_id(opening.session_id, opening.session_key, key_of)
        )

    def _write_record(self, record: RenderedRecord) -> None:
        if self._needs_rewrite or not self._is_in_place():
            self._refuse_sealed()
            self._rewrite()
        data = ((form.TRUNCATION_LINE if self._is_truncated else "") + record.text).encode()
        try:
            written = os.write(self._fd, data)
            if written != len(data):
                raise DiskError(
                    "Could not keep this message: the disk is full. Free some space and try again."
                )
            os.fdatasync(self._fd)
        except BaseException:
            # An unacknowledged record must not stay, or a retry would write it twice. And after a failed
            # sync the kernel may have dropped pages of this file: the next record gets a new file.
            self._needs_rewrite = True
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)
        self._cursor, self._is_truncated = record.place, False

    def _is_in_place(self) -> bool:
        """Whether the path still leads to our file: `git stash -u` or a sync tool may have removed it."""
        try:
            return os.stat(self._file_path).st_ino == self._inode
        except FileNotFoundError:
            return False

    def _adopt(self, fd: int, path: str) -> None:
        """Use this as our file. Its path and inode are needed at every message, so they are cached."""
        self._fd, self._inode = fd, os.fstat(fd).st_ino
        self._file_path = f"{self._home.root}/{path}"

    def _refuse_sealed(self) -> None:
        """Our file was removed, and its lock with it: another process may have finalized what it found."""
        file = self._home.root / str(self.record.path)
        if file.exists() and is_sealed(file):
            self._release()
            message = f"{self.record.path} was sealed by another process."
            raise SessionError(f"{message} Go on in a new part with Memory.session(session_id=…).")

    def _rewrite(self) -> None:
        assert self.record.path is not None
        fd = _put_locked(self._tree, self.record.path, _read_at(self._fd, self._size))
        os.close(self._fd)
        self._adopt(fd, self.record.path)
        _sync_folder(self._tree, self.record.path)
        self._needs_rewrite = False


def _read_at(fd: int, size: int) -> bytes:
    chunks, position = [], 0
    while position < size and (chunk := os.pread(fd, size - position, position)):
        chunks.append(chunk)
        position += len(chunk)
    return b"".join(chunks)


def _find_open(home: Home, session_id: str) -> SessionState | None:
    record = find_state(home, session_id)
    if record is None or record.path is None or record.opening.session_id != session_id:
        return None
    file = home.root / record.path
    return record if file.exists() and not is_sealed(file) else None


def _free_path(home: Home, opening: Opening, name: str) -> str:
    attempt = 0
    while (home.root / (path := form.make_file_path(opening, name, attempt))).exists():
        attempt += 1
    return path


def _create_locked(tree: files.Tree, path: str, data: bytes) -> int:
    """A new file that appears whole, synced and already locked by us, or not at all."""
    fd = _put_locked(tree, path, data)
    try:
        _sync_folder(tree, path)
    except BaseException:
        os.close(fd)
        with suppress(OSError), tree.folder(path) as (folder, name):
            os.unlink(name, dir_fd=folder)  # not acknowledged, and a retry must not write it twice
        raise
    return fd


def _put_locked(tree: files.Tree, path: str, data: bytes) -> int:
    with tree.folder(path, make=True) as (folder, name):
        temporary = files.temporary_name(name)
        fd = os.open(temporary, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
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
