"""Questions to the past: when was this learned, where does it come from, what changed, what was it then."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tacit.errors import Busy, TacitError, UsageError
from tacit.store import files, lfs
from tacit.store.committer import Committer
from tacit.store.git import EXECUTABLE, PLAIN, Change, Git, Planned
from tacit.store.home import PURGED, REVIEWED, Home

_DIFF = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--ignore-submodules=all")
_SUBJECTS = "%H%x00%aI%x00%s%x00%(trailers:key=Session,valueonly,separator=%x01)%x00%an"
_SEARCHED = ("knowledge", "topics", "raw/conversations", "archive")


@dataclass(frozen=True, slots=True)
class Commit:
    name: str
    when: datetime
    subject: str
    session: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True)
class Learned:
    """A text appeared in (or left) a file with a commit."""

    commit: Commit
    path: str
    line: str
    appeared: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """Lines of a file that came with one commit."""

    commit: Commit
    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileDiff:
    path: str
    what: str  # added | changed | removed
    added: tuple[str, ...]
    removed: tuple[str, ...]


class History:
    def __init__(self, home: Home, git: Git, now: Callable[[], datetime]) -> None:
        self._home, self._git, self._now = home, git, now

    # ------------------------------------------------------------ questions

    def when(self, text: str) -> list[Learned]:
        """Every commit in which the text came or went, oldest first."""
        if not text.strip():
            raise UsageError("Say what to look for: tacit history when TEXT")
        if self._git.head() is None:
            return []
        arguments = (
            "log",
            "--reverse",
            f"-S{_as_argument(text)}",
            "--format=%x02" + _SUBJECTS,
            "--patch",
            "-U0",
            *_DIFF,
        )
        out = self._git.run(*arguments, "HEAD", "--", *_SEARCHED, timeout=120)
        blocks = re.split(rb"^\x02", out, flags=re.MULTILINE)[1:]  # lines of a patch begin with + or -
        return [found for block in blocks for found in _learned(block, text)]

    def first(self, path: str, text: str) -> Commit | None:
        """The oldest commit in which a file had this text; None: it is not committed."""
        files.parts_of(path)
        if self._git.head() is None:
            return None
        arguments = ("log", "--reverse", f"-S{_as_argument(text)}", f"--format={_SUBJECTS}")
        out = self._git.run(*arguments, "HEAD", "--", path, timeout=120).decode("utf-8", "replace")
        return _commit(out.split("\n", 1)[0]) if out.strip() else None

    def blame(self, path: str) -> list[Origin]:
        """The file in runs of lines that came together."""
        files.parts_of(path)
        arguments = ("--porcelain", "--no-textconv", "--ignore-revs-file=")
        done = self._git.attempt("blame", *arguments, "HEAD", "--", path)
        if done.returncode:
            raise UsageError(
                f"{path} is not in the history. Is the path relative to the home, and committed?"
            )
        return _origins(done.stdout.decode("utf-8", "replace"))

    def diff(
        self, since: str, until: str = "HEAD", *, folders: tuple[str, ...] = ("knowledge",)
    ) -> list[FileDiff]:
        """What changed in the notes between two moments: a date, a span like `1 week`, a tag or a commit."""
        older, newer = self.at(since), self.at(until)
        empty = _EMPTY_TREES[len(older or newer or "") == 64]
        arguments = ("diff-tree", "-r", "-p", "-U0", *_DIFF, older or empty, newer or empty)
        out = self._git.run(*arguments, "--", *folders, timeout=120)
        return list(_file_diffs(out.decode("utf-8", "replace")))

    def today(self) -> list[FileDiff]:
        midnight = self._now().replace(hour=0, minute=0, second=0, microsecond=0)
        return self.diff(midnight.isoformat())

    def recall(self, path: str, at: str) -> str:
        """The file as it was then."""
        files.parts_of(path)
        commit = self.at(at)
        data = self._git.read(commit, path) if commit else None
        if data is None:
            raise UsageError(f"{path} did not exist at {at}.")
        return data.decode("utf-8", "replace")

    def last_commit_of(self, *kinds: str) -> datetime | None:
        if self._git.head() is None:
            return None
        pattern = "^(" + "|".join(kinds) + "): "
        out = self._git.run("log", "-1", "--extended-regexp", f"--grep={pattern}", "--format=%cI", "HEAD")
        return datetime.fromisoformat(out.decode().strip()) if out.strip() else None

    def describe(self, name: str) -> Commit:
        out = self._git.run("log", "-1", f"--format={_SUBJECTS}", "--end-of-options", name)
        return _commit(out.decode("utf-8", "replace").strip("\n"))

    # ------------------------------------------------------------ moments

    def at(self, moment: str) -> str | None:
        """The commit of a moment: the last one not after a date, or the one a tag or name stands for."""
        when = self._time(moment)
        if when is not None:
            return self._last_until(max(0, int(when.timestamp())))
        name = moment if moment == "HEAD" else f"refs/tags/{moment}"
        found = self._git.resolve(name) or self._git.resolve(f"refs/heads/{moment}")
        if found is None and re.fullmatch(r"[0-9a-f]{4,64}", moment):
            found = self._git.resolve(moment)
        if found is None:
            hint = "Give a date (2026-02-16), a span (3 days), a tag (see: tacit history tags) or a commit."
            raise UsageError(f"{moment!r} is not a moment in the history. {hint}")
        return found

    def _named(self, name: str) -> str:
        """The commit of this name and no other: nobody undoes whatever happened last on some day."""
        found = self._git.resolve(name) if re.fullmatch(r"[0-9a-f]{4,64}", name) else None
        if found is None or not found.startswith(name):  # a tag or branch may look like a name
            hint = "Find its name with: tacit history when TEXT, tacit history blame PATH, or git log"
            raise UsageError(f"{name!r} is not a commit, and only commits are undone. {hint}")
        return found

    def _last_until(self, seconds: int) -> str | None:
        # Without the @, git takes a small number for something else than seconds since 1970.
        out = self._git.run("rev-list", "-1", f"--until=@{seconds} +0000", "HEAD")
        return out.decode().strip() or None

    def _time(self, moment: str) -> datetime | None:
        span = re.fullmatch(r"(\d{1,5}) ?(hour|day|week|month|year)s?(?: ago)?", moment)
        if span is not None:
            hours = {"hour": 1, "day": 24, "week": 168, "month": 730, "year": 8766}[span[2]]
            return self._ago(timedelta(hours=hours * int(span[1])))
        if moment in ("now", "today"):
            return self._now()
        if moment == "yesterday":
            return self._ago(timedelta(days=1))
        try:
            when = datetime.fromisoformat(moment)
        except ValueError:
            return None
        if len(moment) == 10:  # a bare date means the end of that day
            when = when.replace(hour=23, minute=59, second=59)
        return when if when.tzinfo else when.replace(tzinfo=self._now().tzinfo)

    def _ago(self, span: timedelta) -> datetime:
        now = self._now()
        return now - min(span, now - datetime.fromtimestamp(0, now.tzinfo))

    # ------------------------------------------------------------ undo

    def undo(self, name: str) -> str:
        """Take back what a commit did to the notes, keeping all that came after. One new commit; when a
        later edit is in the way, nothing changes."""
        commit = self._named(name)
        committer = Committer(self._home, self._git, self._now)
        with files.locked(self._home.lock):
            if why := committer.waits_for():
                raise Busy(f"Nothing was undone: {why}.")
            edits = self._reverse(commit)
            self._refuse_undo(commit, {edit.path for edit in edits}, committer.staged())
            subject = self.describe(commit).subject
            message = f"maintenance: undo {commit[:10]} ({subject})\n\nThis reverts commit {commit}.\n"
            changes = [Change(edit.path, edit.kept, edit.mode) for edit in edits]
            with self._written(edits):
                return committer.commit(Planned(message, changes, self._now()))

    @contextmanager
    def _written(self, edits: Sequence[Reversal]) -> Iterator[None]:
        """The files as they become; as they were again when one is refused or the commit is not made."""
        tree, head = files.Tree(self._home.root), self._git.head()
        done: list[Reversal] = []
        try:
            for edit in edits:
                _put(tree, edit.path, edit.now, edit.new, edit.new_rights)
                done.append(edit)
            yield
        except BaseException:
            if self._git.head() == head:  # else the commit was made, and only what follows it failed
                for edit in reversed(done):
                    with suppress(TacitError, OSError):  # somebody edits it at this moment: theirs stays
                        _put(tree, edit.path, edit.new, edit.now, edit.rights)
            raise

    def _refuse_undo(self, commit: str, paths: set[str], staged: set[str]) -> None:
        if not paths:
            raise UsageError(f"There is nothing to undo: what {commit[:10]} did is gone already.")
        if theirs := sorted(paths & staged):
            what = f"{', '.join(theirs)} is staged by you, so nothing was undone."
            raise UsageError(f"{what} Commit it or take it back with: git restore --staged PATH")

    def _reverse(self, commit: str) -> list[Reversal]:
        """What undoing changes. Raises before anything is written."""
        parent = self._git.resolve(f"{commit}^")
        if parent is None or self._git.resolve(f"{commit}^2") is not None:
            raise UsageError(f"{commit[:10]} is the first commit or a merge; it cannot be undone by itself.")
        sides = self._sides(parent, commit)
        if any(path.startswith("raw/") and path != PURGED for path in sides):
            raise UsageError(f"{commit[:10]} holds a sealed transcript, and those are never undone.")
        sides.pop(REVIEWED, None)
        found = [self._reversal(path, commit, before, done) for path, (before, done) in sides.items()]
        return [edit for edit in found if edit.changes]

    def _sides(self, parent: str, commit: str) -> dict[str, tuple[Side, Side]]:
        out = self._git.run("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", parent, commit)
        pieces = out.split(b"\0")[:-1]
        rows = {
            os.fsdecode(path): meta.decode()[1:].split()
            for meta, path in zip(pieces[::2], pieces[1::2], strict=True)
        }
        blobs = self._git.blobs({name for row in rows.values() for name in row[2:4] if name.strip("0")})
        return {
            path: (Side(row[0], blobs.get(row[2])), Side(row[1], blobs.get(row[3])))
            for path, row in rows.items()
        }

    def _reversal(self, path: str, commit: str, before: Side, done: Side) -> Reversal:
        if {before.mode, done.mode} - {_NONE, PLAIN, EXECUTABLE}:
            raise UsageError(
                f"{path} is or was no plain file, so {commit[:10]} is not undone. Do it by hand."
            )
        if any(side.mode != _NONE and side.data is None for side in (before, done)):
            raise UsageError(f"{path} as of {commit[:10]} cannot be read. See what is wrong: tacit doctor")
        now, rights = self._on_disk(path)
        at_disk = _as_kept(now, done.data)
        if at_disk == done.data:
            kept = before.data
        elif path == PURGED and at_disk is not None and done.data is not None:
            kept = self._merged(path, at_disk, done.data, before.data or b"")
        elif at_disk is None or done.data is None or before.data is None or lfs.is_pointer(done.data):
            raise UsageError(
                f"{path} has changed since {commit[:10]}, so that commit cannot be taken back as it is."
            )
        else:
            kept = self._merged(path, at_disk, done.data, before.data)
        mode = before.mode if rights is None or _mode(rights) == done.mode else _mode(rights)
        new = self._unfolded(path, kept)
        return Reversal(path, now, rights, kept, new, PLAIN if mode == _NONE else mode)

    def _on_disk(self, path: str) -> tuple[bytes | None, int | None]:
        file = self._home.root / path
        if not file.is_file():
            return None, None
        return files.Tree(self._home.root).read(path), stat.S_IMODE(file.stat().st_mode)

    def _unfolded(self, path: str, kept: bytes | None) -> bytes | None:
        """What belongs into the work tree: for an attachment that git-lfs keeps, its bytes."""
        if kept is None or not (lfs.is_tracked(path) and lfs.is_pointer(kept)):
            return kept
        found = re.search(rb"^oid sha256:([0-9a-f]{64})$", kept, re.MULTILINE)
        name = found[1].decode() if found else "none"
        file = self._git.directory / "lfs" / "objects" / name[:2] / name[2:4] / name
        data = file.read_bytes() if file.is_file() else b""
        if files.digest(data) != name:
            what = f"The bytes of {path} are not on this machine, so nothing was undone."
            raise UsageError(f"{what} Get them with: git lfs fetch --all")
        return data

    def _merged(self, path: str, now: bytes, done: bytes, before: bytes) -> bytes:
        if path == PURGED:  # only ever added to, so lines that came later do not stand in the way
            added = set(done.splitlines()) - set(before.splitlines())
            return b"".join(line for line in now.splitlines(keepends=True) if line.rstrip(b"\n") not in added)
        with tempfile.TemporaryDirectory(dir=self._home.private) as folder:
            names = [Path(folder, name) for name in ("now", "done", "before")]
            for name, data in zip(names, (now, done, before), strict=True):
                name.write_bytes(data)
            merged = self._git.attempt("merge-file", "-p", *map(str, names))
        if merged.returncode:
            what = f"{path} was edited in the same place since then, so nothing was undone."
            raise UsageError(f"{what} Look at it with: tacit history recall {path}, and edit it by hand.")
        return merged.stdout


@dataclass(frozen=True, slots=True)
class Side:
    """A file before or after a commit."""

    mode: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Reversal:
    """What undoing a commit does to one file."""

    path: str
    now: bytes | None  # on disk
    rights: int | None
    kept: bytes | None  # in the new commit
    new: bytes | None  # on disk afterwards; git-lfs keeps only a pointer in the commit
    mode: str

    @property
    def changes(self) -> bool:
        return self.now != self.new or (self.rights is not None and _mode(self.rights) != self.mode)

    @property
    def new_rights(self) -> int:
        rights = 0o600 if self.rights is None else self.rights
        return rights | (rights & 0o444) >> 2 if self.mode == EXECUTABLE else rights & ~0o111


_NONE = "000000"  # git's mode of a file that is not there


def _mode(rights: int) -> str:
    return EXECUTABLE if rights & stat.S_IXUSR else PLAIN


def _as_kept(now: bytes | None, done: bytes | None) -> bytes | None:
    """The bytes on disk as git has them: a pointer where it has one."""
    folded = now is not None and done is not None and lfs.is_pointer(done) and not lfs.is_pointer(now)
    return lfs.pointer(now) if folded and now is not None else now


def _put(tree: files.Tree, path: str, old: bytes | None, new: bytes | None, rights: int | None) -> None:
    expected = None if old is None else files.digest(old)
    if new is not None:
        tree.write(path, new, expected, mode=rights or 0o600)
    elif expected is not None:
        tree.remove(path, expected)


def _as_argument(text: str) -> str:
    """Text as the locale spells it for other programs; the bytes are UTF-8 either way."""
    try:
        return os.fsdecode(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return text  # git refuses it in words


# What git calls a tree without files, in repositories with SHA-1 and with SHA-256 names.
_EMPTY_TREES = (
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
)


def _commit(line: str) -> Commit:
    name, when, subject, session, author = line.split("\0")[:5]
    return Commit(name, datetime.fromisoformat(when), subject, session.split("\x01")[0], author)


def _learned(block: bytes, text: str) -> Iterator[Learned]:
    head, _, patch = block.decode("utf-8", "replace").partition("\n")
    commit = _commit(head)
    for diff in _file_diffs(patch):
        needle = text.split("\n", maxsplit=1)[0]
        gained = [line for line in diff.added if needle in line]
        lost = [line for line in diff.removed if needle in line]
        if len(gained) != len(lost):
            lines = gained if len(gained) > len(lost) else lost
            said = next((line for line in _body(diff) if line in lines), lines[0])
            yield Learned(commit, diff.path, said.strip(), appeared=len(gained) > len(lost))


def _body(diff: FileDiff) -> tuple[str, ...]:
    """The lines of a file that came or went whole, without its frontmatter and title: those are made from
    what was said, and who asks wants what was said."""
    lines = diff.added or diff.removed
    if diff.what == "changed" or lines[:1] != ("---",) or "---" not in lines[1:]:
        return ()
    return tuple(line for line in lines[lines.index("---", 1) + 1 :] if not line.startswith("# "))


def _file_diffs(patch: str) -> Iterator[FileDiff]:
    for part in re.split(r"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n@@")
        lines = ("@@" + body).split("\n") if body else []
        yield FileDiff(
            _diff_path(head),
            "added" if "\nnew file" in head else "removed" if "\ndeleted file" in head else "changed",
            tuple(line[1:] for line in lines if line.startswith("+")),
            tuple(line[1:] for line in lines if line.startswith("-")),
        )


def _diff_path(head: str) -> str:
    """Names with quotes, newlines and the like come quoted. A file without lines is named in the first only,
    twice and after one of two prefixes of the same length."""
    first, *lines = head.split("\n")
    named = [line[4:].rstrip("\t") for line in lines if line.startswith(("+++ ", "--- "))]
    name = next((name for name in reversed(named) if name != "/dev/null"), first[: len(first) // 2])
    return _unquoted(name)[2:]


def _unquoted(name: str) -> str:
    if not name.startswith('"'):
        return name
    return re.sub(r"\\([0-7]{3}|.)", _unescaped, name[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 3:
        return chr(int(code, 8))
    return {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}.get(code, code)


def _origins(porcelain: str) -> list[Origin]:
    commits: dict[str, dict[str, str]] = {}
    runs: list[tuple[str, int, list[str]]] = []
    name, number = "", 0
    for line in porcelain.split("\n"):
        found = re.match(r"([0-9a-f]{40,64}) \d+ (\d+)", line)
        if line.startswith("\t"):
            if runs and runs[-1][0] == name:
                runs[-1][2].append(line[1:])
            else:
                runs.append((name, number, [line[1:]]))
        elif found is not None:
            name, number = found[1], int(found[2])
            commits.setdefault(name, {})
        elif line:
            key, _, value = line.partition(" ")
            commits[name][key] = value
    return [Origin(_blamed(name, commits[name]), first, tuple(lines)) for name, first, lines in runs]


def _blamed(name: str, facts: dict[str, str]) -> Commit:
    zone = datetime.strptime(facts.get("author-tz", "+0000"), "%z").tzinfo
    when = datetime.fromtimestamp(int(facts["author-time"]), zone)
    return Commit(name, when, facts.get("summary", ""), author=facts.get("author", ""))
