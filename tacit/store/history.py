"""Questions to the past: when was this learned, where does it come from, what changed, what was it then."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tacit.errors import UsageError
from tacit.store import files
from tacit.store.git import Change, Git, Planned
from tacit.store.home import Home

_DIFF = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color")
_SUBJECTS = "%H%x00%aI%x00%s%x00%(trailers:key=Session,valueonly,separator=%x01)"
_SEARCHED = ("knowledge", "topics", "raw/conversations", "archive")


@dataclass(frozen=True, slots=True)
class Commit:
    name: str
    when: datetime
    subject: str
    session: str = ""


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
        arguments = ("log", "--reverse", f"-S{text}", "--format=%x02" + _SUBJECTS, "--patch", "-U0", *_DIFF)
        out = self._git.run(*arguments, "HEAD", "--", *_SEARCHED, timeout=120)
        return [found for block in out.split(b"\x02")[1:] for found in _learned(block, text)]

    def blame(self, path: str) -> list[Origin]:
        """The file in runs of lines that came together."""
        files.parts_of(path)
        done = self._git.attempt("blame", "--porcelain", "--no-textconv", "HEAD", "--", path)
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
        arguments = ("diff-tree", "-r", "-p", "-U0", *_DIFF, older or _EMPTY_TREE, newer or _EMPTY_TREE)
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
            out = self._git.run("rev-list", "-1", f"--until={int(when.timestamp())}", "HEAD")
            return out.decode().strip() or None
        name = moment if moment == "HEAD" else f"refs/tags/{moment}"
        found = self._git.resolve(name) or self._git.resolve(f"refs/heads/{moment}")
        if found is None and re.fullmatch(r"[0-9a-f]{4,64}", moment):
            found = self._git.resolve(moment)
        if found is None:
            hint = "Give a date (2026-02-16), a span (3 days), a tag (see: tacit history tags) or a commit."
            raise UsageError(f"{moment!r} is not a moment in the history. {hint}")
        return found

    def _time(self, moment: str) -> datetime | None:
        span = re.fullmatch(r"(\d{1,5}) ?(hour|day|week|month|year)s?(?: ago)?", moment)
        if span is not None:
            hours = {"hour": 1, "day": 24, "week": 168, "month": 730, "year": 8766}[span[2]]
            return self._now() - timedelta(hours=hours * int(span[1]))
        if moment == "yesterday":
            return self._now() - timedelta(days=1)
        try:
            when = datetime.fromisoformat(moment)
        except ValueError:
            return None
        if len(moment) == 10:  # a bare date means the end of that day
            when += timedelta(days=1, seconds=-1)
        return when if when.tzinfo else when.replace(tzinfo=self._now().tzinfo)

    # ------------------------------------------------------------ undo

    def undo(self, name: str) -> str:
        """Take back what a commit did to the notes, keeping all that came after. One new commit; when a
        later edit is in the way, nothing changes."""
        commit = self.at(name)
        if commit is None:
            raise UsageError("There is no commit yet.")
        with files.locked(self._home.lock):
            edits = self._reverse(commit)
            tree = files.Tree(self._home.root)
            changes = [self._apply(tree, path, old, new) for path, old, new in edits]
            subject = self.describe(commit).subject
            message = f"maintenance: undo {commit[:10]} ({subject})\n\nThis reverts commit {commit}.\n"
            made = self._git.commit([Planned(message, changes, self._now())])
        return made[0]

    def _reverse(self, commit: str) -> list[tuple[str, bytes | None, bytes | None]]:
        """Per file: what is on disk now and what it becomes. Raises before anything is written."""
        parent = self._git.resolve(f"{commit}^")
        if parent is None or self._git.resolve(f"{commit}^2") is not None:
            raise UsageError(f"{commit[:10]} is the first commit or a merge; it cannot be undone by itself.")
        out = self._git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", parent, commit)
        paths = [os.fsdecode(path) for path in out.split(b"\0") if path]
        if any(path.startswith("raw/") for path in paths):
            raise UsageError(f"{commit[:10]} holds a sealed transcript, and those are never undone.")
        return [(path, *self._reversed_file(path, commit, parent)) for path in paths]

    def _reversed_file(self, path: str, commit: str, parent: str) -> tuple[bytes | None, bytes | None]:
        file = self._home.root / path
        now = file.read_bytes() if file.is_file() else None
        done, before = self._git.read(commit, path), self._git.read(parent, path)
        if now == done:
            return now, before
        if now is None or done is None or before is None:
            raise UsageError(
                f"{path} has changed since {commit[:10]}, so that commit cannot be taken back as it is."
            )
        return now, self._merged(path, now, done, before)

    def _merged(self, path: str, now: bytes, done: bytes, before: bytes) -> bytes:
        with tempfile.TemporaryDirectory(dir=self._home.private) as folder:
            names = [Path(folder, name) for name in ("now", "done", "before")]
            for name, data in zip(names, (now, done, before), strict=True):
                name.write_bytes(data)
            merged = self._git.attempt("merge-file", "-p", *map(str, names))
        if merged.returncode:
            what = f"{path} was edited in the same place since then, so nothing was undone."
            raise UsageError(f"{what} Look at it with: tacit history recall {path}, and edit it by hand.")
        return merged.stdout

    def _apply(self, tree: files.Tree, path: str, old: bytes | None, new: bytes | None) -> Change:
        expected = None if old is None else files.digest(old)
        if new is not None:
            tree.write(path, new, expected)
        elif expected is not None:
            tree.remove(path, expected)
        return Change(path, new)


_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def _commit(line: str) -> Commit:
    name, when, subject, session = line.split("\0")[:4]
    return Commit(name, datetime.fromisoformat(when), subject, session.split("\x01")[0])


def _learned(block: bytes, text: str) -> Iterator[Learned]:
    head, _, patch = block.decode("utf-8", "replace").partition("\n")
    commit = _commit(head)
    for diff in _file_diffs(patch):
        needle = text.split("\n", maxsplit=1)[0]
        gained = [line for line in diff.added if needle in line]
        lost = [line for line in diff.removed if needle in line]
        if len(gained) != len(lost):
            lines = gained if len(gained) > len(lost) else lost
            yield Learned(commit, diff.path, lines[0].strip(), appeared=len(gained) > len(lost))


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
    for prefix in ("+++ b/", "--- a/"):
        for line in head.split("\n"):
            if line.startswith(prefix):
                return line[len(prefix) :].rstrip("\t")
    first = head.split("\n", maxsplit=1)[0]
    return first[: len(first) // 2].removeprefix("a/")


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
    return Commit(name, datetime.fromtimestamp(int(facts["author-time"]), zone), facts.get("summary", ""))
