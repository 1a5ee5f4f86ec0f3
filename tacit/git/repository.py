"""A repository: run git in it, and read commits, trees and blobs.

Everything written is on disk when a call returns; git alone does not guarantee that.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from tacit.config import mask_secret
from tacit.errors import GitError
from tacit.git import process
from tacit.home import files

_HEAD_PATTERN = re.compile(rb"(ref: refs/\S+|[0-9a-f]{40,64})\s*")
_MTIME_SLACK_S = 0.05  # file times may lag behind the clock
_NOT_FETCHED_HINT = (
    " This is a partial clone, and what is needed was never fetched. Get it with: git fetch --refetch"
)
_MAX_PENDING = 400  # names sent before an answer is read: more could fill both pipes and block both sides


@dataclass(frozen=True, slots=True)
class Blob:
    mode: str
    name: str


class GitObject(NamedTuple):
    name: str
    kind: str
    data: bytes


class ObjectReader:
    """Reads objects through a running `cat-file --batch`."""

    def __init__(self, questions: IO[bytes], answers: IO[bytes]) -> None:
        self._questions, self._answers = questions, answers

    def read(self, name: str) -> GitObject:
        return next(self.many([name]))

    def many(self, names: Iterable[str]) -> Iterator[GitObject]:
        """In the order of the names. Raises GitError if one is missing."""
        waiting = iter(names)
        while batch := list(islice(waiting, _MAX_PENDING)):
            self._questions.write("".join(f"{name}\n" for name in batch).encode())
            self._questions.flush()
            for name in batch:
                git_object = read_object(self._answers)
                if git_object is None:
                    problem = f"Object {name[:10]} is missing: only a part of the history is here."
                    raise GitError(f"{problem} See: tacit doctor")
                yield git_object


def read_object(stream: IO[bytes]) -> GitObject | None:
    """None at the end of the stream, and for a missing object."""
    name, *fields = stream.readline().decode().split(" ")
    if len(fields) != 2:
        return None
    data = stream.read(int(fields[1]))
    stream.read(1)
    return GitObject(name, fields[0], data)


class Git:
    """One repository. Cheap to make; every method is one git process unless it says otherwise."""

    def __init__(self, root: Path, index: str | None = None) -> None:
        """`index`: use this index instead of the repository's own, for example the one a hook checks."""
        self.root = root
        self.index = index

    @property
    def directory(self) -> Path:
        dotgit = self.root / ".git"
        if dotgit.is_file():  # a linked work tree: the file says where the repository is
            return Path(os.path.join(self.root, dotgit.read_text().partition("gitdir:")[2].strip()))
        return dotgit

    @property
    def common(self) -> Path:
        """The directory that all work trees of the repository share: config, refs, objects, hooks."""
        return common_directory(self.directory)

    @property
    def algorithm(self) -> str:
        """The hash of object names; read from the config, without a process."""
        try:
            text = (self.common / "config").read_text(errors="replace")
        except OSError:
            text = ""
        return "sha256" if re.search(r"objectformat\s*=\s*sha256", text, re.IGNORECASE) else "sha1"

    def run(self, *arguments: str, stdin: bytes = b"", timeout: float = 60.0) -> bytes:
        result = self.attempt(*arguments, stdin=stdin, timeout=timeout)
        if result.returncode:
            stderr = mask_secret(result.stderr.decode("utf-8", "replace"))
            hint = _NOT_FETCHED_HINT if "promisor remote" in stderr else ""
            raise GitError(f"git {arguments[0]} failed.{hint}", stderr)
        return result.stdout

    def attempt(
        self, *arguments: str, stdin: bytes | IO[bytes] = b"", timeout: float | None = 60.0
    ) -> process.Result:
        return process.run(
            arguments, self.root, process.own_environment(self.root, self.index), stdin, timeout
        )

    def open_pipes(self, *arguments: str) -> AbstractContextManager[tuple[IO[bytes], IO[bytes]]]:
        """Start git and keep talking to it."""
        return process.open_pipes(arguments, self.root, process.own_environment(self.root, self.index))

    def head(self) -> str | None:
        """The commit HEAD points at, None before the first one."""
        return self.resolve("HEAD")

    def resolve(self, revision: str) -> str | None:
        result = self.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
        return result.stdout.decode().strip() or None

    def branch(self) -> str | None:
        """The branch HEAD is on, None when it is detached. Read from the file: no process."""
        try:
            text = (self.directory / "HEAD").read_text()
        except (OSError, UnicodeDecodeError):
            return None
        match = re.fullmatch(r"ref: refs/heads/(\S+)\s*", text)
        return match[1] if match else None

    def tree(self, revision: str, *folders: str) -> dict[str, Blob]:
        """Path to blob below the folders; the whole tree if none is given."""
        out = self.run("ls-tree", "-r", "-z", "--full-tree", revision, "--", *folders)
        entries: dict[str, Blob] = {}
        for line in split_nul(out):
            meta, _, path = line.partition(b"\t")
            mode, _, name = meta.decode().split(" ")
            entries[os.fsdecode(path)] = Blob(mode, name)
        return entries

    def read(self, revision: str, path: str) -> bytes | None:
        result = self.attempt("cat-file", "blob", f"{revision}:{path}")
        return result.stdout if result.returncode == 0 else None

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """The bytes of many blobs in one process; unreadable ones are left out."""
        names = list(names)
        if self.lacks_objects():
            return self._read_available_blobs(names)
        return _parse_blobs(
            self.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
        )

    def _read_available_blobs(self, names: Sequence[str]) -> dict[str, bytes]:
        """In a partial clone git gives up at the first object that was never fetched, so the list is halved
        until the rest can be read."""
        stdin = "".join(f"{name}\n" for name in names).encode()
        result = self.attempt("cat-file", "--batch", stdin=stdin)
        if not result.returncode:
            return _parse_blobs(result.stdout)
        half = len(names) // 2
        if not half:
            return {}
        return self._read_available_blobs(names[:half]) | self._read_available_blobs(names[half:])

    @contextmanager
    def objects(self) -> Iterator[ObjectReader]:
        """Read objects by name through one process that stays open."""
        with self.open_pipes("cat-file", "--batch") as (stdin, stdout):
            yield ObjectReader(stdin, stdout)

    def blob_name(self, data: bytes) -> str:
        """The object name of these bytes in this repository."""
        return blob_name(data, self.algorithm)

    def changed_between(self, old: str, new: str, *folders: str) -> list[str]:
        """Paths that differ between two commits."""
        out = self.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, "--", *folders)
        return [os.fsdecode(path) for path in split_nul(out)]

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self.attempt("merge-base", "--is-ancestor", older, newer).returncode == 0

    def in_progress(self) -> str | None:
        """The operation that the user is in the middle of, in words, or None."""
        names = {
            "MERGE_HEAD": "a merge",
            "rebase-merge": "a rebase",
            "rebase-apply": "a rebase",
            "CHERRY_PICK_HEAD": "a cherry-pick",
            "REVERT_HEAD": "a revert",
        }
        directory = self.directory
        return next((description for name, description in names.items() if (directory / name).exists()), None)

    def lacks_objects(self) -> bool:
        """Whether this is a partial clone, where missing objects are normal. Read from the config."""
        try:
            text = (self.common / "config").read_text(errors="replace").lower()
        except OSError:
            return False
        return "partialclone" in text or "promisor" in text

    def sync(self, ref: str = "refs/heads/main", since: float | None = None) -> None:
        """git syncs files but never folders, so a power cut can lose a file's name. `since`: also sync the
        folders in which objects have appeared since then."""
        common = self.common
        folders = [common / folder for folder in PurePosixPath(ref).parents] + [common / "objects"]
        if since is not None:
            with os.scandir(common / "objects") as entries:
                new = [
                    entry.path
                    for entry in entries
                    if entry.is_dir() and entry.stat().st_mtime >= since - _MTIME_SLACK_S
                ]
            folders = [*map(Path, new), *folders]
        for folder in folders:
            if folder.is_dir():
                files.fsync_directory(folder)

    def init(self, branch: str) -> None:
        """Create a repository, or complete a damaged one. Never touches existing files."""
        # git init writes our core.sharedRepository into the config, so it gets a neutral value here.
        setting = ("-c", "core.sharedRepository=umask")
        self.run(*setting, "init", "--quiet", f"--initial-branch={branch}", "--template=")
        # git syncs neither these files nor their folders: without this, a power cut in the first seconds
        # leaves HEAD and config empty.
        files.fsync_file(self.directory / "HEAD")
        common = self.common
        files.fsync_file(common / "config")
        for name in ("refs/heads", "refs/tags", "refs", "objects/info", "objects/pack", "objects", ""):
            files.fsync_directory(common / name)
        files.fsync_directory(self.root)

    def looks_sound(self) -> bool:
        """A quick check, without a process, of the files without which git does not recognize the repository
        or sees a branch without commits."""
        try:
            head, config = (self.directory / "HEAD").read_bytes(), (self.common / "config").stat().st_size
        except OSError:
            return False
        return config > 0 and _HEAD_PATTERN.fullmatch(head) is not None and not self._branch_is_empty()

    def _branch_is_empty(self) -> bool:
        """A power cut leaves an empty branch file; a branch without commits has no file at all."""
        ref = self.common / "refs" / "heads" / (self.branch() or "")
        return ref.is_file() and ref.stat().st_size == 0


def require_installed() -> None:
    if shutil.which("git") is None:
        raise GitError(process.NO_GIT_MESSAGE)


def common_directory(directory: Path) -> Path:
    """A linked work tree has its own git directory, which names the shared one."""
    try:
        shared = (directory / "commondir").read_text().strip()
    except OSError:
        return directory
    return Path(os.path.normpath(directory / shared))


def blob_name(data: bytes, algorithm: str = "sha1") -> str:
    """The object name of these bytes, computed without git, so that no filter can interfere."""
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _parse_blobs(out: bytes) -> dict[str, bytes]:
    """The blobs in the output of `cat-file --batch`."""
    blobs, position = {}, 0
    while position < len(out):
        end = out.index(b"\n", position)
        name, *fields = out[position:end].decode().split(" ")
        position = end + 1
        if fields[0] == "blob":
            size = int(fields[1])
            blobs[name] = out[position : position + size]
            position += size + 1
    return blobs


def split_nul(out: bytes) -> list[bytes]:
    return [piece for piece in out.split(b"\0") if piece]
