"""What must hold after every fault, once the next command has run."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tacit
from tacit.cli.main import main as command_line
from tacit.transcripts.model import Message, ToolCall
from tests.faults.homes import Own, git, must, own_work
from tests.faults.said import NOTE, name_in, text_of, version_of


@dataclass(frozen=True, slots=True)
class Kept:
    """What was acknowledged, and the person's work as it was before."""

    acks: tuple[str, ...] = ()
    own: Own | None = None
    past: tuple[str, ...] = ("past.question", "past.answer")
    live: frozenset[str] = frozenset()  # transcripts that a living process is still writing

    @property
    def names(self) -> list[str]:
        return [*self.past, *(ack for ack in self.acks if " " not in ack and "." in ack)]

    @property
    def version(self) -> int:
        return max((int(ack.split()[1]) for ack in self.acks if ack.startswith("note ")), default=0)

    @property
    def paths(self) -> list[str]:
        return [ack.split(" ", 1)[1] for ack in self.acks if ack.startswith(("sealed ", "committed "))]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one transcript on disk holds: the names of whole messages, and all else."""

    path: str
    names: tuple[str, ...]
    halves: tuple[str, ...]
    problems: tuple[str, ...]
    sealed: bool


def broken(home: Path, kept: Kept) -> list[str]:
    """Recover as the next command does, then name everything that is not as promised."""
    try:
        memory = tacit.open(home)
        worked = memory.commit()
    except Exception:  # noqa: BLE001 - whatever it is, the next command failed
        return [f"the next command fails: {last_line(traceback.format_exc())}"]
    found = [f"a commit still waits: {worked.waiting}"] if worked.waiting else []
    found += [f"the next command reports: {item}" for item in worked.problems if item.level == "error"]
    for check in CHECKS:
        try:
            found += check(home, kept)
        except Exception:  # noqa: BLE001 - a check that cannot be made is a check that fails
            found.append(f"{check.__name__}: {last_line(traceback.format_exc())}")
    return found


def last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


# ---------------------------------------------------------------- conversations


def read_all(home: Path) -> list[Seen]:
    files = sorted((home / "raw" / "conversations").rglob("*.md"))
    return [_read(home, str(file.relative_to(home)), _stamp(file)) for file in files]


def _stamp(file: Path) -> tuple[int, int, int]:
    info = file.stat()
    return info.st_ino, info.st_mtime_ns, info.st_size


@cache
def _read(home: Path, path: str, stamp: tuple[int, int, int]) -> Seen:
    """Cached by what changes when a file does: a long loop looks at hundreds again and again."""
    transcript = tacit.open(home).transcript(path)
    messages = [turn for turn in transcript.turns if isinstance(turn, Message)]
    tools = [turn.name for turn in transcript.turns if isinstance(turn, ToolCall)]
    names = [name for turn in messages if (name := name_in(turn.text))]
    return Seen(
        path=path,
        names=(*names, *tools),
        halves=tuple(f"{path}: {turn.text[:60]!r}" for turn in messages if name_in(turn.text) is None),
        problems=tuple(str(item) for item in transcript.problems if item.level == "error"),
        sealed=transcript.sealed,
    )


def conversations(home: Path, kept: Kept) -> Iterator[str]:
    seen = read_all(home)
    times = Counter(name for one in seen for name in one.names)
    yield from (f"LOST: {name} was acknowledged and is gone" for name in kept.names if not times[name])
    yield from (f"TWICE: {name} is there {n} times" for name, n in times.items() if n > 1)
    for one in seen:
        yield from (f"half a message: {half}" for half in one.halves)
        yield from (f"a transcript has a problem: {problem}" for problem in one.problems)
        if not one.sealed and one.path not in kept.live:
            yield f"never sealed: {one.path}"


# ---------------------------------------------------------------- notes


def notes(home: Path, kept: Kept) -> Iterator[str]:
    file = home / NOTE
    if not kept.past and not file.exists():
        return
    version = version_of(file.read_text())
    if version is None:
        yield f"TORN: {NOTE} is neither an old nor a new version"
    elif not kept.version <= version <= max(kept.version, 1) + 1:
        yield f"LOST: {NOTE} has version {version}, {kept.version} was acknowledged"


# ---------------------------------------------------------------- git


def repository(home: Path, kept: Kept) -> Iterator[str]:
    done = git(home, "fsck", "--full")
    if done.returncode:
        yield f"git fsck: {last_line((done.stderr or done.stdout).decode('utf-8', 'replace'))}"
    locks = [str(lock.relative_to(home)) for lock in (home / ".git").rglob("*.lock")]
    if locks:
        yield f"a lock was left: {', '.join(locks)}"


def committed(home: Path, kept: Kept) -> Iterator[str]:
    """Every sealed transcript is in HEAD, byte for byte, and so is every note that is not the person's."""
    names = _blobs_in_head(home)
    transcripts = {str(file.relative_to(home)) for file in (home / "raw").rglob("*.md")} - kept.live
    for path in {*transcripts, *kept.paths, *([NOTE] if (home / NOTE).exists() else [])}:
        if names.get(path) != blob_name((home / path).read_bytes()):
            yield f"not committed: {path}"


def _blobs_in_head(home: Path) -> dict[str, str]:
    out = must(home, "ls-tree", "-r", "-z", "HEAD")
    pairs = (entry.partition(b"\t") for entry in out.split(b"\0") if entry)
    return {os.fsdecode(path): meta.split()[2].decode() for meta, _, path in pairs}


def blob_name(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def proof(home: Path, kept: Kept) -> Iterator[str]:
    told = io.StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        code = command_line(["verify", "--home", str(home), "--quiet"])
    if code:
        yield f"tacit verify ends with {code}: {told.getvalue().strip()[:200]}"


def next_session(home: Path, kept: Kept) -> Iterator[str]:
    memory = tacit.open(home)
    name = f"next-{secrets.token_hex(4)}"
    session = memory.session(session_id=name, channel="test")
    session.message("user", text_of(f"{name}.question"))
    sealed = session.end()
    if sealed is None or not sealed.commit:
        yield f"the next session is not committed: {sealed.waiting if sealed else 'it has no message'}"
    elif memory.transcript(sealed.path).messages[0].text != text_of(f"{name}.question"):
        yield "the next session does not hold what was said"


# ---------------------------------------------------------------- the person's own work


def persons_work(home: Path, kept: Kept) -> Iterator[str]:
    if kept.own is None:
        return
    now = own_work(home)
    for path, data in kept.own.files.items():
        if now.files.get(path) != data:
            yield f"the person's file changed: {path}"
    if now.index != kept.own.index:
        yield "the person's index entries changed"
    if now.committed != kept.own.committed:
        yield "the person's work was swept into a commit"
    if extra := now.staged - kept.own.staged:
        yield f"the person's next commit would undo ours: {', '.join(sorted(extra))}"


CHECKS: tuple[Callable[[Path, Kept], Iterable[str]], ...] = (
    conversations,
    notes,
    repository,
    committed,
    proof,
    next_session,
    persons_work,
)


# ---------------------------------------------------------------- not broken, but not tidy


def litter(home: Path) -> list[str]:
    """Files that a fault left, that nobody needs, and that are still there after two days' work."""
    left = _leftovers(home)
    if not left:
        return []
    days_ago = time.time() - 2 * 86400
    for file in left:
        os.utime(file, (days_ago, days_ago))
    tacit.open(home).commit()
    return sorted(str(file.relative_to(home)) for file in _leftovers(home))


def _leftovers(home: Path) -> set[Path]:
    private, repository = home / ".tacit", home / ".git"
    return {
        *(file for file in home.rglob("*.tmp.*") if file.is_file()),
        *repository.glob("objects/*/tmp_*"),
        *repository.glob("fast_import_crash_*"),
        *(private / "sessions").glob("*.json"),
        *private.glob("git-busy"),
    }
