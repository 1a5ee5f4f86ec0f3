"""Query the history (when a text was learned, blame, diff, an older version of a file) and undo commits."""

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
from tacit.git.attributes import (
    LFS_FILTER,
    find_blocking_filters,
    find_filters,
    is_lfs_path,
    is_lfs_pointer,
    make_lfs_pointer,
)
from tacit.git.commits import EXECUTABLE, PLAIN, CommitPlan, FileChange
from tacit.git.committer import Committer
from tacit.git.conflicts import NoteTree
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import PURGED, REVIEWED, Home

_DIFF_OPTIONS = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--ignore-submodules=all")
_COMMIT_FORMAT = "%H%x00%aI%x00%s%x00%(trailers:key=Session,valueonly,separator=%x01)%x00%an"
_SEARCH_PATHS = ("knowledge", "topics", "raw/conversations", "archive")


@dataclass(frozen=True, slots=True)
class Commit:
    name: str
    when: datetime
    subject: str
    session: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True)
class TextOccurrence:
    """A commit added a text to a file, or removed it."""

    commit: Commit
    path: str
    line: str
    appeared: bool


@dataclass(frozen=True, slots=True)
class BlameRange:
    """Consecutive lines of a file that come from one commit."""

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

    def when(self, text: str) -> list[TextOccurrence]:
        """Every commit that added or removed the text, oldest first."""
        if not text.strip():
            raise UsageError("Say what to look for: tacit history when TEXT")
        if self._git.head() is None:
            return []
        arguments = (
            "log",
            "--reverse",
            f"-S{_as_argument(text)}",
            "--format=%x02" + _COMMIT_FORMAT,
            "--patch",
            "-U0",
            *_DIFF_OPTIONS,
        )
        out = self._git.run(*arguments, "HEAD", "--", *_SEARCH_PATHS, timeout=120)
        blocks = re.split(rb"^\x02", out, flags=re.MULTILINE)[1:]  # lines of a patch begin with + or -
        return [learned for block in blocks for learned in _parse_learned(block, text)]

    def first(self, path: str, text: str) -> Commit | None:
        """The oldest commit in which the file had this text; None if it is not committed."""
        files.split_safe_path(path)
        if self._git.head() is None:
            return None
        arguments = ("log", "--reverse", f"-S{_as_argument(text)}", f"--format={_COMMIT_FORMAT}")
        out = self._git.run(*arguments, "HEAD", "--", path, timeout=120).decode("utf-8", "replace")
        return _parse_commit(out.split("\n", 1)[0]) if out.strip() else None

    def blame(self, path: str) -> list[BlameRange]:
        """The file, split into runs of lines that come from the same commit."""
        files.split_safe_path(path)
        arguments = ("--porcelain", "--no-textconv", "--ignore-revs-file=")
        result = self._git.attempt("blame", *arguments, "HEAD", "--", path)
        if result.returncode:
            raise UsageError(
                f"{path} is not in the history. Is the path relative to the home, and committed?"
            )
        return _parse_origins(result.stdout.decode("utf-8", "replace"))

    def diff(
        self, since: str, until: str = "HEAD", *, folders: tuple[str, ...] = ("knowledge",)
    ) -> list[FileDiff]:
        """What changed in the notes between two moments: a date, a span like `1 week`, a tag or a commit."""
        older, newer = self.at(since), self.at(until)
        empty = _EMPTY_TREES[len(older or newer or "") == 64]
        arguments = ("diff-tree", "-r", "-p", "-U0", *_DIFF_OPTIONS, older or empty, newer or empty)
        out = self._git.run(*arguments, "--", *folders, timeout=120)
        return list(_file_diffs(out.decode("utf-8", "replace")))

    def today(self) -> list[FileDiff]:
        midnight = self._now().replace(hour=0, minute=0, second=0, microsecond=0)
        return self.diff(midnight.isoformat())

    def recall(self, path: str, at: str) -> str:
        """The file as it was at that moment."""
        files.split_safe_path(path)
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
        out = self._git.run("log", "-1", f"--format={_COMMIT_FORMAT}", "--end-of-options", name)
        return _parse_commit(out.decode("utf-8", "replace").strip("\n"))

    # ------------------------------------------------------------ moments

    def at(self, moment: str) -> str | None:
        """The commit of a moment: the last one up to a date, or the target of a tag or name."""
        when = self._parse_moment(moment)
        if when is not None:
            return self._last_commit_until(max(0, int(when.timestamp())))
        name = moment if moment == "HEAD" else f"refs/tags/{moment}"
        commit = self._git.resolve(name) or self._git.resolve(f"refs/heads/{moment}")
        if commit is None and re.fullmatch(r"[0-9a-f]{4,64}", moment):
            commit = self._git.resolve(moment)
        if commit is None:
            hint = "Give a date (2026-02-16), a span (3 days), a tag (see: tacit history tags) or a commit."
            raise UsageError(f"{moment!r} is not a moment in the history. {hint}")
        return commit

    def _resolve_exact(self, name: str) -> str:
        """The commit with exactly this name: undo must not guess a commit from a date."""
        commit = self._git.resolve(name) if re.fullmatch(r"[0-9a-f]{4,64}", name) else None
        if commit is None or not commit.startswith(name):  # a tag or branch may look like a name
            hint = "Find its name with: tacit history when TEXT, tacit history blame PATH, or git log"
            raise UsageError(f"{name!r} is not a commit, and only commits are undone. {hint}")
        return commit

    def _last_commit_until(self, seconds: int) -> str | None:
        # Without the @, git does not read a small number as seconds since 1970.
        out = self._git.run("rev-list", "-1", f"--until=@{seconds} +0000", "HEAD")
        return out.decode().strip() or None

    def _parse_moment(self, moment: str) -> datetime | None:
        span = re.fullmatch(r"(\d{1,5}) ?(hour|day|week|month|year)s?(?: ago)?", moment)
        if span is not None:
            hours = {"hour": 1, "day": 24, "week": 168, "month": 730, "year": 8766}[span[2]]
            return self._subtract_span(timedelta(hours=hours * int(span[1])))
        if moment in ("now", "today"):
            return self._now()
        if moment == "yesterday":
            return self._subtract_span(timedelta(days=1))
        try:
            when = datetime.fromisoformat(moment)
        except ValueError:
            return None
        if len(moment) == 10:  # a bare date means the end of that day
            when = when.replace(hour=23, minute=59, second=59)
        return when if when.tzinfo else when.replace(tzinfo=self._now().tzinfo)

    def _subtract_span(self, span: timedelta) -> datetime:
        now = self._now()
        return now - min(span, now - datetime.fromtimestamp(0, now.tzinfo))

    # ------------------------------------------------------------ undo

    def undo(self, name: str) -> str:
        """Revert what a commit did to the notes in one new commit, keeping everything that came after. If a
        later edit conflicts, nothing changes."""
        commit = self._resolve_exact(name)
        committer = Committer(self._home, self._git, self._now)
        with files.hold_lock(self._home.lock):
            if reason := committer.waits_for():
                raise Busy(f"Nothing was undone: {reason}.")
            edits = self._reverse(commit)
            self._refuse_undo(commit, {edit.path for edit in edits}, committer.list_staged())
            subject = self.describe(commit).subject
            message = f"maintenance: undo {commit[:10]} ({subject})\n\nThis reverts commit {commit}.\n"
            changes = [FileChange(edit.path, edit.kept, edit.mode) for edit in edits]
            with self._apply_edits(edits):
                return committer.commit(CommitPlan(message, changes, self._now()))

    @contextmanager
    def _apply_edits(self, edits: Sequence[FileReversal]) -> Iterator[None]:
        """Write the files; restore them if one is refused or the commit is not made."""
        tree, head = NoteTree(self._home.root), self._git.head()
        applied: list[FileReversal] = []
        try:
            for edit in edits:
                _write_file(tree, edit.path, edit.now, edit.new, edit.new_rights)
                applied.append(edit)
            yield
        except BaseException:
            if self._git.head() == head:  # otherwise the commit was made, and only a later step failed
                for edit in reversed(applied):
                    with suppress(TacitError, OSError):  # edited in the meantime: keep that edit
                        _write_file(tree, edit.path, edit.new, edit.now, edit.rights)
            raise

    def _refuse_undo(self, commit: str, paths: set[str], staged: set[str]) -> None:
        if not paths:
            raise UsageError(f"There is nothing to undo: what {commit[:10]} did is gone already.")
        if staged_paths := sorted(paths & staged):
            message = f"{', '.join(staged_paths)} is staged by you, so nothing was undone."
            raise UsageError(f"{message} Commit it or take it back with: git restore --staged PATH")

    def _reverse(self, commit: str) -> list[FileReversal]:
        """The file changes that undo the commit. Raises before anything is written."""
        parent = self._git.resolve(f"{commit}^")
        if parent is None or self._git.resolve(f"{commit}^2") is not None:
            raise UsageError(f"{commit[:10]} is the first commit or a merge; it cannot be undone by itself.")
        sides = self._read_sides(parent, commit)
        if any(path.startswith("raw/") and path != PURGED for path in sides):
            raise UsageError(f"{commit[:10]} holds a sealed transcript, and those are never undone.")
        sides.pop(REVIEWED, None)
        for path, name in find_blocking_filters(self._git, sides).items():
            message = f"{path} has the git filter {name}, which tacit does not run, so nothing was undone."
            raise UsageError(f"{message} Take it back yourself with: git revert {commit[:10]}")
        reversals = [
            self._reverse_file(path, commit, before, after) for path, (before, after) in sides.items()
        ]
        return [edit for edit in reversals if edit.changes]

    def _read_sides(self, parent: str, commit: str) -> dict[str, tuple[FileSide, FileSide]]:
        out = self._git.run("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", parent, commit)
        pieces = out.split(b"\0")[:-1]
        rows = {
            os.fsdecode(path): meta.decode()[1:].split()
            for meta, path in zip(pieces[::2], pieces[1::2], strict=True)
        }
        blobs = self._git.blobs({name for row in rows.values() for name in row[2:4] if name.strip("0")})
        return {
            path: (FileSide(row[0], blobs.get(row[2])), FileSide(row[1], blobs.get(row[3])))
            for path, row in rows.items()
        }

    def _reverse_file(self, path: str, commit: str, before: FileSide, after: FileSide) -> FileReversal:
        if {before.mode, after.mode} - {_NO_FILE, PLAIN, EXECUTABLE}:
            raise UsageError(
                f"{path} is or was no plain file, so {commit[:10]} is not undone. Do it by hand."
            )
        if any(side.mode != _NO_FILE and side.data is None for side in (before, after)):
            raise UsageError(f"{path} as of {commit[:10]} cannot be read. See what is wrong: tacit doctor")
        current, permissions = self._read_file(path)
        committed_form = _committed_form(current, after.data)
        if committed_form == after.data:
            data = before.data
        elif path == PURGED and committed_form is not None and after.data is not None:
            data = self._merge(path, committed_form, after.data, before.data or b"")
        elif (
            committed_form is None or after.data is None or before.data is None or is_lfs_pointer(after.data)
        ):
            raise UsageError(
                f"{path} has changed since {commit[:10]}, so that commit cannot be taken back as it is."
            )
        else:
            data = self._merge(path, committed_form, after.data, before.data)
        mode = before.mode if permissions is None or _mode(permissions) == after.mode else _mode(permissions)
        new = self._expand_pointer(path, data)
        return FileReversal(path, current, permissions, data, new, PLAIN if mode == _NO_FILE else mode)

    def _read_file(self, path: str) -> tuple[bytes | None, int | None]:
        file = self._home.root / path
        if not file.is_file():
            return None, None
        return NoteTree(self._home.root).read(path), stat.S_IMODE(file.stat().st_mode)

    def _expand_pointer(self, path: str, data: bytes | None) -> bytes | None:
        """The bytes for the work tree: for a git-lfs pointer, the attachment itself."""
        if data is None or not is_lfs_pointer(data):
            return data
        if not is_lfs_path(path) and find_filters(self._git, [path]).get(path) != LFS_FILTER:
            return data
        match = re.search(rb"^oid sha256:([0-9a-f]{64})$", data, re.MULTILINE)
        name = match[1].decode() if match else "none"
        file = self._git.directory / "lfs" / "objects" / name[:2] / name[2:4] / name
        content = file.read_bytes() if file.is_file() else b""
        if files.digest(content) != name:
            message = f"The bytes of {path} are not on this machine, so nothing was undone."
            raise UsageError(f"{message} Get them with: git lfs fetch --all")
        return content

    def _merge(self, path: str, current: bytes, after: bytes, before: bytes) -> bytes:
        if path == PURGED:  # append-only, so later lines cannot conflict
            added = set(after.splitlines()) - set(before.splitlines())
            return b"".join(
                line for line in current.splitlines(keepends=True) if line.rstrip(b"\n") not in added
            )
        with tempfile.TemporaryDirectory(dir=self._home.private) as folder:
            names = [Path(folder, name) for name in ("now", "done", "before")]
            for name, data in zip(names, (current, after, before), strict=True):
                name.write_bytes(data)
            merged = self._git.attempt("merge-file", "-p", *map(str, names))
        if merged.returncode:
            message = f"{path} was edited in the same place since then, so nothing was undone."
            raise UsageError(f"{message} Look at it with: tacit history recall {path}, and edit it by hand.")
        return merged.stdout


@dataclass(frozen=True, slots=True)
class FileSide:
    """A file before or after a commit."""

    mode: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class FileReversal:
    """The change to one file when a commit is undone."""

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


_NO_FILE = "000000"  # git's mode of a missing file


def _mode(permissions: int) -> str:
    return EXECUTABLE if permissions & stat.S_IXUSR else PLAIN


def _committed_form(current: bytes | None, after: bytes | None) -> bytes | None:
    """The bytes on disk as git has them: a pointer if git has one."""
    needs_pointer = (
        current is not None and after is not None and is_lfs_pointer(after) and not is_lfs_pointer(current)
    )
    return make_lfs_pointer(current) if needs_pointer and current is not None else current


def _write_file(
    tree: files.Tree, path: str, old: bytes | None, new: bytes | None, permissions: int | None
) -> None:
    expected = None if old is None else files.digest(old)
    if new is not None:
        tree.write(path, new, expected, mode=permissions or 0o600)
    elif expected is not None:
        tree.remove(path, expected)


def _as_argument(text: str) -> str:
    """Encode text for a command line, so that git gets UTF-8 in any locale."""
    try:
        return os.fsdecode(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return text  # git reports the error


# The object name of the empty tree, with SHA-1 and with SHA-256.
_EMPTY_TREES = (
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
)


def _parse_commit(line: str) -> Commit:
    name, when, subject, session, author = line.split("\0")[:5]
    return Commit(name, datetime.fromisoformat(when), subject, session.split("\x01")[0], author)


def _parse_learned(block: bytes, text: str) -> Iterator[TextOccurrence]:
    head, _, patch = block.decode("utf-8", "replace").partition("\n")
    commit = _parse_commit(head)
    for diff in _file_diffs(patch):
        needle = text.split("\n", maxsplit=1)[0]
        gained = [line for line in diff.added if needle in line]
        lost = [line for line in diff.removed if needle in line]
        if len(gained) != len(lost):
            lines = gained if len(gained) > len(lost) else lost
            line = next((line for line in _content_lines(diff) if line in lines), lines[0])
            yield TextOccurrence(commit, diff.path, line.strip(), appeared=len(gained) > len(lost))


def _content_lines(diff: FileDiff) -> tuple[str, ...]:
    """The lines of an added or removed file without its frontmatter and title: these are derived from the
    conversation, and the user is looking for the conversation itself."""
    lines = diff.added or diff.removed
    if diff.what == "changed" or lines[:1] != ("---",) or "---" not in lines[1:]:
        return ()
    return tuple(line for line in lines[lines.index("---", 1) + 1 :] if not line.startswith("# "))


def _file_diffs(patch: str) -> Iterator[FileDiff]:
    for part in re.split(r"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n@@")
        lines = ("@@" + body).split("\n") if body else []
        yield FileDiff(
            _parse_diff_path(head),
            "added" if "\nnew file" in head else "removed" if "\ndeleted file" in head else "changed",
            tuple(line[1:] for line in lines if line.startswith("+")),
            tuple(line[1:] for line in lines if line.startswith("-")),
        )


def _parse_diff_path(head: str) -> str:
    """Names with quotes, newlines and the like are quoted. An empty file is named only in the first line,
    twice, after two prefixes of the same length."""
    first, *lines = head.split("\n")
    names = [line[4:].rstrip("\t") for line in lines if line.startswith(("+++ ", "--- "))]
    name = next((name for name in reversed(names) if name != "/dev/null"), first[: len(first) // 2])
    return _unquote(name)[2:]


def _unquote(name: str) -> str:
    if not name.startswith('"'):
        return name
    return re.sub(r"\\([0-7]{3}|.)", _unescape_match, name[1:-1])


def _unescape_match(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 3:
        return chr(int(code, 8))
    return {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}.get(code, code)


def _parse_origins(porcelain: str) -> list[BlameRange]:
    commits: dict[str, dict[str, str]] = {}
    runs: list[tuple[str, int, list[str]]] = []
    name, number = "", 0
    for line in porcelain.split("\n"):
        match = re.match(r"([0-9a-f]{40,64}) \d+ (\d+)", line)
        if line.startswith("\t"):
            if runs and runs[-1][0] == name:
                runs[-1][2].append(line[1:])
            else:
                runs.append((name, number, [line[1:]]))
        elif match is not None:
            name, number = match[1], int(match[2])
            commits.setdefault(name, {})
        elif line:
            key, _, value = line.partition(" ")
            commits[name][key] = value
    return [
        BlameRange(_blame_commit(name, commits[name]), first, tuple(lines)) for name, first, lines in runs
    ]


def _blame_commit(name: str, fields: dict[str, str]) -> Commit:
    zone = datetime.strptime(fields.get("author-tz", "+0000"), "%z").tzinfo
    when = datetime.fromtimestamp(int(fields["author-time"]), zone)
    return Commit(name, when, fields.get("summary", ""), author=fields.get("author", ""))
