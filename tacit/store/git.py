"""The only module that runs git.

What must stay true:
- nothing but git itself runs: no shell, no hooks, no filters, no pager, no signing program, whatever the
  user's or the repository's configuration says;
- text from people is never an option: refs are written out in full, paths go through stdin or behind `--`;
- a commit never touches the user's index or work tree. `git fast-import` gets the bytes, writes objects and
  moves the branch in one process, and refuses by itself when the branch has moved on meanwhile;
- what it writes is on disk when we return, which git alone does not promise.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from tacit.config import without_secret
from tacit.errors import GitError
from tacit.store import files

_SETTINGS = {
    "core.fsync": "all",
    "core.fsyncMethod": "fsync",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.quotePath": "false",
    "core.logAllRefUpdates": "true",
    "core.filesRefLockTimeout": "2000",
    "core.packedRefsTimeout": "2000",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "core.alternateRefsCommand": "",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "log.showSignature": "false",
    "log.showRoot": "true",
    "log.mailmap": "false",
    "diff.external": "",
    "diff.ignoreSubmodules": "all",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "diff.orderFile": "/dev/null",
    "grep.patternType": "default",
    "i18n.logOutputEncoding": "UTF-8",
    "trailer.separators": ":",
    "fastimport.unpackLimit": "100",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
}
_OPTIONS = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    # protocol.ext.allow of the repository beats our protocol.allow, this list beats both; and a missing
    # object is never fetched: that would run whatever command the repository names as its remote.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ASKPASS": "true",
    "LC_ALL": "C",
}
_CLAIMS = "refs/tacit/claims/"
_PLACES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)
_HEAD = re.compile(rb"(ref: refs/\S+|[0-9a-f]{40,64})\s*")
_MANY_LOOSE = 6700  # git's own measure
_MANY_PATHS = 200
_COARSE = 0.05  # seconds by which the times of a disk may lag behind the clock
_NO_GIT = "git is not installed, or not on PATH. Install it and try again."
IDENTITY = "tacit <tacit@localhost>"
PLAIN, EXECUTABLE, SYMLINK = "100644", "100755", "120000"


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a commit: its new bytes, or None when it goes."""

    path: str
    data: bytes | None
    mode: str = PLAIN


@dataclass(frozen=True, slots=True)
class Planned:
    """One commit to make."""

    message: str
    changes: Sequence[Change]
    when: datetime  # of the commit: history is searched by it, so it only moves forward
    about: datetime | None = None  # of what it holds, where that is older


@dataclass(frozen=True, slots=True)
class Blob:
    mode: str
    name: str


class Ref(NamedTuple):
    name: str
    target: str
    kind: str  # commit, tag, tree or blob


class Object(NamedTuple):
    name: str
    kind: str
    data: bytes


_AT_ONCE = 400  # questions before the first answer is read: more would fill both pipes, and both would wait


class Objects:
    """Asks a `cat-file --batch` that runs."""

    def __init__(self, questions: IO[bytes], answers: IO[bytes]) -> None:
        self._questions, self._answers = questions, answers

    def read(self, name: str) -> Object:
        return next(self.many([name]))

    def many(self, names: Iterable[str]) -> Iterator[Object]:
        """In the order they were asked for. GitError for one that is missing."""
        waiting = iter(names)
        while some := list(islice(waiting, _AT_ONCE)):
            self._questions.write("".join(f"{name}\n" for name in some).encode())
            self._questions.flush()
            for name in some:
                found = _next_object(self._answers)
                if found is None:
                    what = f"Object {name[:10]} is missing: only a part of the history is here."
                    raise GitError(f"{what} See: tacit doctor")
                yield found


def _next_object(stream: IO[bytes]) -> Object | None:
    """None at the end, and for an object that is not there."""
    name, *rest = stream.readline().decode().split(" ")
    if len(rest) != 2:
        return None
    data = stream.read(int(rest[1]))
    stream.read(1)
    return Object(name, rest[0], data)


class Git:
    """One repository. Cheap to make; every method is one git process unless it says otherwise."""

    def __init__(self, root: Path, index: str | None = None) -> None:
        """`index`: another one than the repository's own, such as the one a hook is asked about."""
        self.root = root
        self._index = {} if index is None else {"GIT_INDEX_FILE": index}

    @property
    def directory(self) -> Path:
        dotgit = self.root / ".git"
        if dotgit.is_file():  # a linked work tree: the file says where the repository is
            return Path(os.path.join(self.root, dotgit.read_text().partition("gitdir:")[2].strip()))
        return dotgit

    @property
    def common(self) -> Path:
        """What all work trees of the repository share: config, refs, objects, hooks."""
        return common_directory(self.directory)

    @property
    def algorithm(self) -> str:
        """What this repository names its objects with; read from its config, without a process."""
        try:
            text = (self.common / "config").read_text(errors="replace")
        except OSError:
            text = ""
        return "sha256" if re.search(r"objectformat\s*=\s*sha256", text, re.IGNORECASE) else "sha1"

    def run(self, *arguments: str, stdin: bytes = b"", timeout: float = 60.0) -> bytes:
        done = self.attempt(*arguments, stdin=stdin, timeout=timeout)
        if done.returncode:
            raise GitError(
                f"git {arguments[0]} failed.", without_secret(done.stderr.decode("utf-8", "replace"))
            )
        return done.stdout

    def attempt(
        self, *arguments: str, stdin: bytes = b"", timeout: float = 60.0
    ) -> subprocess.CompletedProcess[bytes]:
        command = ["git", *_OPTIONS, "--no-pager", *arguments]
        try:
            return subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                env=self._environment(),
                cwd=self.root,
                timeout=timeout,
                check=False,
            )
        except FileNotFoundError as error:
            raise GitError(_NO_GIT) from error
        except ValueError as error:
            raise GitError("git cannot be asked about text that holds a NUL or is no Unicode.") from error
        except subprocess.TimeoutExpired as error:
            raise GitError(f"git {arguments[0]} took longer than {timeout:.0f} s and was stopped.") from error

    def _environment(self) -> dict[str, str]:
        # GIT_DIR is always given: git then neither searches parent folders nor trusts core.worktree.
        place = {"GIT_DIR": str(self.root / ".git"), "GIT_WORK_TREE": str(self.root)}
        return {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT, **place, **self._index}

    # ------------------------------------------------------------ asking

    def head(self) -> str | None:
        """The commit HEAD stands at, None before the first one."""
        return self.resolve("HEAD")

    def resolve(self, revision: str) -> str | None:
        done = self.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
        return done.stdout.decode().strip() or None

    def branch(self) -> str | None:
        """The branch HEAD is on, None when it is detached. Read from the file: no process."""
        try:
            text = (self.directory / "HEAD").read_text()
        except (OSError, UnicodeDecodeError):
            return None
        found = re.fullmatch(r"ref: refs/heads/(\S+)\s*", text)
        return found[1] if found else None

    def tree(self, revision: str, *folders: str) -> dict[str, Blob]:
        """Path to blob below the folders (all of it when none is named)."""
        out = self.run("ls-tree", "-r", "-z", "--full-tree", revision, "--", *folders)
        entries: dict[str, Blob] = {}
        for line in _split(out):
            meta, _, path = line.partition(b"\t")
            mode, _, name = meta.decode().split(" ")
            entries[os.fsdecode(path)] = Blob(mode, name)
        return entries

    def staged(self) -> set[str]:
        """Paths whose index entry is not what HEAD has: somebody's work in progress."""
        if self.head() is None:
            return {os.fsdecode(path) for path in _split(self.run("ls-files", "-z", "--cached"))}
        done = self.attempt("diff-index", "--cached", "--name-only", "-z", "HEAD", "--")
        if done.returncode:
            raise GitError(
                "The index of this repository cannot be read.", done.stderr.decode("utf-8", "replace")
            )
        return {os.fsdecode(path) for path in _split(done.stdout)}

    def not_checked_out(self) -> set[str]:
        """Paths that a sparse checkout leaves out: absent from the disk, yet not deleted."""
        if not (self.directory / "info" / "sparse-checkout").exists():
            return set()
        out = self.run("ls-files", "-z", "-t", "--cached")
        return {os.fsdecode(line[2:]) for line in _split(out) if line.startswith(b"S ")}

    def index_entries(self, paths: Collection[str]) -> dict[str, Blob]:
        """What the index has of these paths; of an index that cannot be read, nothing."""
        if self._index_has_none_of(paths):
            return {}
        few = paths if len(paths) < _MANY_PATHS else ()  # all of it, then: a command line has a limit
        out = self.attempt("ls-files", "-z", "--stage", "--", *few).stdout if paths else b""
        entries = {}
        for line in _split(out):
            meta, _, path = line.partition(b"\t")
            mode, name, _ = meta.decode().split(" ")
            entries[os.fsdecode(path)] = Blob(mode, name)
        return {path: entries[path] for path in paths if path in entries}

    def _index_has_none_of(self, paths: Collection[str]) -> bool:
        """Told from the file, without a process: up to version 3 it holds whole names. Most often we commit
        one new transcript, of which it knows nothing."""
        try:
            data = (self.directory / "index").read_bytes()
        except OSError:
            return not (self.directory / "index").exists()
        return data[4:8] in (b"\0\0\0\2", b"\0\0\0\3") and not any(os.fsencode(p) in data for p in paths)

    def untracked(self, *folders: str) -> list[str]:
        """Files git does not know and .gitignore does not exclude. A folder that ends in a slash is
        somebody's repository inside ours."""
        out = self.run("ls-files", "-z", "--others", "--exclude-standard", "--", *folders)
        return [os.fsdecode(path) for path in _split(out)]

    def present(self, *folders: str) -> list[str]:
        """What `untracked` lists, and what the index has."""
        out = self.run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *folders)
        return [os.fsdecode(path) for path in _split(out)]

    def blob_name(self, data: bytes) -> str:
        """What these bytes are called in this repository."""
        return blob_name(data, self.algorithm)

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """The bytes of many blobs in one process; one that cannot be read is left out."""
        out = self.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
        found, position = {}, 0
        while position < len(out):
            end = out.index(b"\n", position)
            name, *rest = out[position:end].decode().split(" ")
            position = end + 1
            if rest[0] == "blob":
                size = int(rest[1])
                found[name] = out[position : position + size]
                position += size + 1
        return found

    @contextmanager
    def objects(self) -> Iterator[Objects]:
        """Objects by name, from one process that answers as long as it is asked."""
        with self._talking("cat-file", "--batch") as (stdin, stdout):
            yield Objects(stdin, stdout)

    def every_object(self) -> Iterator[Object]:
        """All objects of the repository, also those that nothing leads to any more, one at a time."""
        arguments = ("cat-file", "--batch", "--batch-all-objects", "--unordered", "--buffer")
        with self._talking(*arguments) as (stdin, stdout):
            stdin.close()
            while (found := _next_object(stdout)) is not None:
                yield found

    @contextmanager
    def _talking(self, *arguments: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """A git that is spoken to for a while. What it complains of goes to a file without a name: a pipe
        that nobody reads would stop it."""
        command = ["git", *_OPTIONS, "--no-pager", *arguments]
        with tempfile.TemporaryFile() as complaints:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    env=self._environment(),
                    cwd=self.root,
                )
            except FileNotFoundError as error:
                raise GitError(_NO_GIT) from error
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                yield process.stdin, process.stdout
            except BaseException:
                process.kill()
                raise
            finally:
                with suppress(OSError):
                    process.stdin.close()
                process.stdout.close()
                process.wait()

    def exist(self, names: Collection[str]) -> set[str]:
        """Which of these objects the repository has."""
        stdin = "".join(f"{name}\n" for name in names).encode()
        out = self.run("cat-file", "--batch-check", stdin=stdin, timeout=600) if names else b""
        rows = [line.split(" ") for line in out.decode().splitlines()]
        return {row[0] for row in rows if row[1] != "missing"}

    def refs(self) -> list[Ref]:
        """Every ref of this work tree and what it stands at; those that only name another ref left out."""
        form = "%(objectname)%00%(objecttype)%00%(symref)%00%(refname)"
        out = self.run("for-each-ref", f"--format={form}")
        rows = [os.fsdecode(line).split("\0") for line in out.split(b"\n") if line]
        return [Ref(name, target, kind) for target, kind, symbolic, name in rows if not symbolic]

    def commits(self, names: Collection[str]) -> Iterator[tuple[str, str, list[str]]]:
        """Name, tree and parents of all that leads to these commits, parents first."""
        if not names:
            return
        stdin = "".join(f"{name}\n" for name in names).encode()
        arguments = ("log", "--topo-order", "--reverse", "--stdin", "--format=%H %T %P")
        for line in self.run(*arguments, stdin=stdin, timeout=600).decode().splitlines():
            name, tree, *parents = line.split()
            yield name, tree, parents

    def staged_blobs(self) -> list[tuple[str, Blob]]:
        """All that the index has. Raises when it is in the middle of a merge."""
        found = []
        for line in _split(self.run("ls-files", "-z", "--stage")):
            meta, _, path = line.partition(b"\t")
            mode, name, stage = meta.decode().split(" ")
            if stage != "0":
                raise GitError("There are conflicts in the index. Resolve them, commit, and try again.")
            found.append((os.fsdecode(path), Blob(mode, name)))
        return found

    def remotes(self) -> list[tuple[str, str]]:
        """Name and address of each."""
        out = self.attempt("config", "--local", "-z", "--get-regexp", r"^remote\..*\.url$").stdout
        pairs = [line.partition("\n") for line in out.decode("utf-8", "replace").split("\0") if line]
        return [(key[len("remote.") : -len(".url")], without_secret(url)) for key, _, url in pairs]

    def work_trees(self) -> list[Path]:
        """The linked ones that are there, beside the home itself. Read from files: no process. Those that a
        copied repository names are still the old one's."""
        found = []
        for file in sorted(self.common.glob("worktrees/*/gitdir")):
            place = Path(os.path.join(file.parent, file.read_text().strip())).parent
            if (place / ".git").is_file() and Git(place).directory.resolve() == file.parent.resolve():
                found.append(Path(os.path.normpath(place)))
        return found

    def forget_torn_work_trees(self, place: str) -> None:
        """Those at a path with this in it that were only half made: as long as one has no HEAD, git takes the
        whole repository for damaged."""
        for file in self.common.glob("worktrees/*/gitdir"):
            head = file.with_name("HEAD")
            made = head.read_bytes().strip(b"0\n") if head.exists() else b""
            if not made and place in file.read_text():
                shutil.rmtree(file.parent)

    def forget_work_tree(self, ending: str) -> None:
        """What the repository knows of work trees at a place with this ending, also where they are no longer
        there, or are those of the repository that this one was copied from."""
        for file in self.common.glob("worktrees/*/gitdir"):
            if file.read_text().strip().endswith(f"/{ending}/.git"):
                shutil.rmtree(file.parent)

    def add_work_tree(self, place: Path, branch: str, commit: str) -> None:
        """A linked work tree without any file, on a branch that is made, or set back, to the commit."""
        self.run("worktree", "add", "--quiet", "--force", "--no-checkout", "-B", branch, str(place), commit)

    def read_tree(self, commit: str) -> None:
        """The index as the commit has it; no file is touched."""
        self.run("read-tree", commit, timeout=600)

    def trailer(self, commit: str, key: str) -> str:
        """The value of a trailer of this key; empty where the message has none."""
        form = f"--format=%(trailers:key={key},valueonly)"
        return self.run("log", "-1", form, commit).decode("utf-8", "replace").strip()

    def changed_between(self, old: str, new: str, *folders: str) -> list[str]:
        """Paths in which two commits differ."""
        out = self.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, "--", *folders)
        return [os.fsdecode(path) for path in _split(out)]

    def read(self, revision: str, path: str) -> bytes | None:
        done = self.attempt("cat-file", "blob", f"{revision}:{path}")
        return done.stdout if done.returncode == 0 else None

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self.attempt("merge-base", "--is-ancestor", older, newer).returncode == 0

    def in_progress(self) -> str | None:
        """What the user is in the middle of, in words, or None."""
        names = {
            "MERGE_HEAD": "a merge",
            "rebase-merge": "a rebase",
            "rebase-apply": "a rebase",
            "CHERRY_PICK_HEAD": "a cherry-pick",
            "REVERT_HEAD": "a revert",
        }
        here = self.directory
        return next((what for name, what in names.items() if (here / name).exists()), None)

    # ------------------------------------------------------------ writing

    def commit(self, planned: Sequence[Planned]) -> list[str]:
        """Make these commits, in order, on the current branch. Returns their names."""
        branch = self.branch()
        if branch is None:
            raise GitError("HEAD is detached. Go back to a branch with: git switch main")
        ref = f"refs/heads/{branch}"
        born = (self.common / ref).exists() or self.resolve(ref) is not None
        stream = b"".join(_stream(ref, planned, born))
        started = time.time()
        done = self.attempt(
            "fast-import", "--quiet", "--done", "--date-format=raw", stdin=stream, timeout=600
        )
        if done.returncode:
            raise GitError(f"The commit on {branch} was not made.", done.stderr.decode("utf-8", "replace"))
        self.sync(ref, since=started)
        return done.stdout.decode().split()

    def sync(self, ref: str = "refs/heads/main", since: float | None = None) -> None:
        """git syncs what it writes but never the folders: a name that is not on disk is lost in a power cut.
        `since`: also the folders in which objects have appeared from that moment on."""
        here = self.common
        folders = [here / folder for folder in PurePosixPath(ref).parents] + [here / "objects"]
        if since is not None:
            with os.scandir(here / "objects") as entries:
                new = [e.path for e in entries if e.is_dir() and e.stat().st_mtime >= since - _COARSE]
            folders = [*map(Path, new), *folders]
        for folder in folders:
            if folder.is_dir():
                files.fsync_directory(folder)

    def pack(self) -> bool:
        """Put loose objects into a pack when there are many, as git would by itself. The pack is on disk
        under its name before the first loose object goes. Returns whether it was time."""
        sample = self.common / "objects" / "17"  # names are hashes: one of 256 folders tells for all
        if not sample.is_dir() or sum(1 for _ in sample.iterdir()) * 256 < _MANY_LOOSE:
            return False
        self.run("repack", "-l", "-q", timeout=600)
        files.fsync_directory(self.common / "objects" / "pack")
        self.run("prune-packed", "--quiet", timeout=600)
        return True

    def update_index(self, entries: Iterable[tuple[str, Blob | None]]) -> bool:
        """Tell the user's index about paths we committed (None: gone), so that `git status` stays clean.
        Best effort: when somebody holds the index, it is left alone and False comes back."""
        gone = Blob("0", "0" * (64 if self.algorithm == "sha256" else 40))
        lines = (f"{(blob or gone).mode} {(blob or gone).name}\t{path}" for path, blob in entries)
        stdin = b"".join(os.fsencode(line) + b"\0" for line in lines)
        return self.attempt("update-index", "-z", "--index-info", stdin=stdin).returncode == 0

    def set_ref(self, ref: str, new: str | None, old: str | None = None) -> None:
        """Create (old None), move or delete (new None) a ref, only if it is what we think it is."""
        expected = old if old is not None else "0" * len(new or "")
        arguments = ["-d", ref, expected] if new is None else [ref, new, expected]
        self.run("update-ref", "--no-deref", *arguments)
        self.sync(ref)

    def take_in(self, pack: Path) -> None:
        """Make the objects of a pack file part of the repository."""
        command = ["git", *_OPTIONS, "--no-pager", "index-pack", "--stdin"]
        with pack.open("rb") as stream:
            done = subprocess.run(
                command,
                stdin=stream,
                capture_output=True,
                env=self._environment(),
                cwd=self.root,
                check=False,
            )
        if done.returncode:
            raise GitError("New objects could not be written.", done.stderr.decode("utf-8", "replace"))
        files.fsync_directory(self.common / "objects" / "pack")

    def move_refs(self, moves: Iterable[tuple[str, str | None, str | None]]) -> None:
        """Many refs at once: name, new (None: it goes), old (None: there was none). All or, as long as git
        is not stopped in the middle, none."""
        if not (moves := list(moves)):
            return
        zero = "0" * (64 if self.algorithm == "sha256" else 40)
        lines = (
            f"delete {ref}\0{old or zero}\0" if new is None else f"update {ref}\0{new}\0{old or zero}\0"
            for ref, new, old in moves
        )
        stdin = b"".join(map(os.fsencode, lines))
        self.run("update-ref", "--no-deref", "--stdin", "-z", stdin=stdin, timeout=600)
        for folder in {str(PurePosixPath(ref).parent) for ref, _, _ in moves}:
            self.sync(f"{folder}/x")

    def drop_unreachable(self) -> None:
        """Keep what refs, logs and indexes lead to, in one pack, and nothing else. The new pack is on disk
        under its name before an old one goes, which one call alone would not promise."""
        folder = self.common / "objects" / "pack"
        for options in (("-a", "-l", "-q"), ("-a", "-d", "-l", "-q")):
            self.run("repack", *options, timeout=3600)
            files.fsync_directory(folder)
        self.run("prune", "--expire=now", timeout=3600)

    def forget_resolved(self) -> None:
        """The index remembers both sides of conflicts that were resolved, and may be split in two files of
        which one is older: what stood there would stay."""
        index = self.directory / "index"
        data = index.read_bytes() if index.exists() else b""
        if b"REUC" in data or b"link" in data:
            self.run("update-index", "--clear-resolve-undo", "--no-split-index")
            for file in self.directory.glob("sharedindex.*"):
                file.unlink()

    def drop_old_folders(self) -> None:
        """The index keeps names of folders in which nothing is any more, until a tree is made of it."""
        self.attempt("write-tree", timeout=600)

    def leave_out(self, paths: Iterable[str]) -> None:
        """Paths that a sparse checkout leaves out, after they were told to the index."""
        stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
        self.run("update-index", "-z", "--skip-worktree", "--stdin", stdin=stdin)

    def push(self, remote: str) -> str:
        """Push the current branch and the memory tags; returns what went wrong, in git's words. This is the
        one call that goes out, so it uses the user's own git settings and credentials."""
        branch = self.branch()
        if branch is None:
            return "HEAD is detached"
        refs = [f"refs/heads/{branch}", "refs/tags/memory/*:refs/tags/memory/*", *self._moving_tags()]
        said = [self._push_large(remote, branch), self._go_out("push", "--quiet", "--", remote, *refs)]
        return "\n".join(filter(None, said))

    def _push_large(self, remote: str, branch: str) -> str:
        """What the pre-push hook of git-lfs would do; hooks are never run, so it is asked directly. When it
        fails the branch is pushed all the same: most of a memory is text."""
        if shutil.which("git-lfs") is None or not (self.common / "lfs" / "objects").is_dir():
            return ""
        place = self.root / remote
        is_path = "/" in remote and place.is_dir()
        where = place.resolve().as_uri() if is_path else remote  # git-lfs takes addresses only
        said = self._go_out("lfs", "push", "--", where, branch)
        return f"attachments were not sent: {said}" if said else ""

    def _go_out(self, *arguments: str) -> str:
        return self._ask_out(*arguments)[1]

    def _ask_out(self, *arguments: str) -> tuple[str, str]:
        """What git found out there, and what went wrong."""
        command = ["git", "-C", str(self.root), "-c", f"core.hooksPath={os.devnull}", *arguments]
        foreign = {name: value for name, value in os.environ.items() if name not in _PLACES}
        environment = {**foreign, "GIT_DIR": str(self.root / ".git"), "GIT_TERMINAL_PROMPT": "0"}
        try:
            done = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return "", f"git {arguments[0]} took longer than 120 s and was stopped"
        except (OSError, ValueError) as error:
            return "", without_secret(str(error))
        said = without_secret(done.stderr.decode("utf-8", "replace").strip())
        found = done.stdout.decode("utf-8", "replace")
        return found, (said or f"git {arguments[0]} failed") if done.returncode else ""

    def keep_blob(self, data: bytes) -> str:
        """Bytes that no commit has need of; git drops them after some weeks."""
        return self.run("hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()

    def claim(self, remote: str, name: str, owner: str) -> bool | str:
        """Say on the remote that something is ours to do: a ref that only one can make. True: it is ours, now
        or from before; False: somebody else's; in words: it could not be asked."""
        ref = f"{_CLAIMS}{name}"
        blob = self.keep_blob(owner.encode())
        # The empty expectation: the push is refused where the ref is there.
        said = self._go_out("push", "--quiet", f"--force-with-lease={ref}:", "--", remote, f"{blob}:{ref}")
        if not said:
            return True
        there = self.claims(remote)
        return said if isinstance(there, str) or name not in there else there[name] == blob

    def claims(self, remote: str) -> dict[str, str] | str:
        """What is claimed on the remote, with the blob that names the owner; in words: it could not be
        asked."""
        told, wrong = self._ask_out("ls-remote", "--", remote, f"{_CLAIMS}*")
        rows = (line.split("\t") for line in told.splitlines())
        return wrong or {row[1].removeprefix(_CLAIMS): row[0] for row in rows if len(row) == 2}

    def _moving_tags(self) -> list[str]:
        """Tags of a day or week that may not be over, as refspecs that leave them out: they still move with
        HEAD, and a tag that was pushed could only be moved by force."""
        periods = ("refs/tags/memory/daily/", "refs/tags/memory/weekly/")
        out = self.run("for-each-ref", "--points-at=HEAD", "--format=^%(refname)", *periods)
        return out.decode("utf-8", "surrogateescape").split()

    def hooks_elsewhere(self) -> str:
        """core.hooksPath as the user's own git sees it; where it is set, the hooks of this repository are
        not run. Asked with the user's settings, as nothing but the setting is read."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        command = ["git", "-C", str(self.root), "config", "--get", "core.hooksPath"]
        done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
        return done.stdout.decode("utf-8", "replace").strip()

    def init(self, branch: str) -> None:
        """A new repository, or a damaged one completed. Never touches what is there."""
        self.run("init", "--quiet", f"--initial-branch={branch}", "--template=")
        # git syncs neither what it writes here nor the folders: without this a power cut in the first
        # seconds leaves a HEAD and a config of no bytes.
        files.fsync_file(self.directory / "HEAD")
        here = self.common
        files.fsync_file(here / "config")
        for name in ("refs/heads", "refs/tags", "refs", "objects/info", "objects/pack", "objects", ""):
            files.fsync_directory(here / name)
        files.fsync_directory(self.root)

    def looks_sound(self) -> bool:
        """A glance at the files without which git takes this for no repository, or its branch for one
        without commits. No process."""
        try:
            head, config = (self.directory / "HEAD").read_bytes(), (self.common / "config").stat().st_size
        except OSError:
            return False
        return config > 0 and _HEAD.fullmatch(head) is not None and not self._branch_is_empty()

    def _branch_is_empty(self) -> bool:
        """What a power cut leaves of a branch; one without commits has no file at all."""
        ref = self.common / "refs" / "heads" / (self.branch() or "")
        return ref.is_file() and ref.stat().st_size == 0


def require_installed() -> None:
    if shutil.which("git") is None:
        raise GitError(_NO_GIT)


def common_directory(directory: Path) -> Path:
    """A linked work tree has a git directory of its own, which names the one that it shares."""
    try:
        shared = (directory / "commondir").read_text().strip()
    except OSError:
        return directory
    return Path(os.path.normpath(directory / shared))


def blob_name(data: bytes, algorithm: str = "sha1") -> str:
    """What git calls these bytes, without asking git: no filter of the user's can interfere."""
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _split(out: bytes) -> list[bytes]:
    return [piece for piece in out.split(b"\0") if piece]


def _stream(ref: str, planned: Sequence[Planned], born: bool) -> Iterator[bytes]:
    for number, plan in enumerate(planned, 1):
        message = plan.message.encode("utf-8", "replace")
        yield f"commit {ref}\nmark :{number}\nauthor {_stamp(plan.about or plan.when)}\n".encode()
        yield f"committer {_stamp(plan.when)}\n".encode()
        yield b"data %d\n%s\n" % (len(message), message)
        if number == 1 and born:
            yield f"from {ref}^0\n".encode()
        for change in plan.changes:
            yield from _file(change)
        yield b"\nget-mark :%d\n" % number
    yield b"done\n"


def _stamp(when: datetime) -> str:
    return f"{IDENTITY} {max(0, int(when.timestamp()))} {when.strftime('%z')[:5] or '+0000'}"


def _file(change: Change) -> Iterator[bytes]:
    if change.data is None:
        yield b"D %s\n" % _quoted(change.path)
    else:
        yield b"M %s inline %s\n" % (change.mode.encode(), _quoted(change.path))
        yield b"data %d\n" % len(change.data)
        yield change.data
        yield b"\n"


def _quoted(path: str) -> bytes:
    plain = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + plain + b'"'
