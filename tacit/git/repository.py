"""The only module that runs git.

What must stay true:
- only git itself runs: no shell, hooks, filters, pager or signing program, whatever the configuration of the
  user or the repository says;
- the bytes of a path with a filter are never written: they would be the plain text of encrypted content;
- user text is never taken for an option: refs are written out in full, paths go through stdin or after `--`;
- a commit never touches the user's index or work tree. `git fast-import` gets the bytes, writes the objects
  and moves the branch in one process, and refuses by itself if the branch has moved in the meantime;
- everything written is on disk when a call returns; git alone does not guarantee that.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from tacit.config import mask_secret
from tacit.errors import Filtered, GitError, NotCheckedOut
from tacit.git.index_file import list_assumed_unchanged
from tacit.home import files
from tacit.home.layout import origin_of

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
    "core.sharedRepository": "0600",  # even if the repository or a folder's ACL is set to be shared
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
    # The repository's protocol.ext.allow overrides our protocol.allow; this list overrides both. A missing
    # object is never fetched, because that would run any command the repository names as its remote.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ASKPASS": "true",
    "LC_ALL": "C",
}
# These tell git where to find the user's own attribute rules, which apply in all repositories.
_USER_VARIABLES = (
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_ATTR_NOSYSTEM",
    "GIT_ATTR_SOURCE",
)
_USER_VARIABLE_PREFIXES = (
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
)
_UNSET_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM")
_ATTRIBUTES_FILE = ".gitattributes"
_FILTER_SEPARATOR = " of "  # filter names have no spaces
LFS_FILTER = "lfs"  # the only filter whose work we do ourselves
_CLAIMS_PREFIX = "refs/tacit/claims/"
_LOCATION_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)
_HEAD_PATTERN = re.compile(rb"(ref: refs/\S+|[0-9a-f]{40,64})\s*")
_MAX_LOOSE_OBJECTS = 6700  # git's own threshold
_MAX_PATH_ARGS = 200
_UMASK = 0o077  # only the owner may read what git writes
_MTIME_SLACK_S = 0.05  # file times may lag behind the clock
_NOT_FETCHED_HINT = (
    " This is a partial clone, and what is needed was never fetched. Get it with: git fetch --refetch"
)
_NO_GIT_MESSAGE = "git is not installed, or not on PATH. Install it and try again."
IDENTITY = "tacit <tacit@localhost>"
PLAIN, EXECUTABLE, SYMLINK = "100644", "100755", "120000"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a commit: its new bytes, or None if it is removed."""

    path: str
    data: bytes | None
    mode: str = PLAIN


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """One commit to make."""

    message: str
    changes: Sequence[FileChange]
    when: datetime  # commit date: history is searched by it, so it only moves forward
    about: datetime | None = None  # date of the content, if older


@dataclass(frozen=True, slots=True)
class Blob:
    mode: str
    name: str


class Ref(NamedTuple):
    name: str
    target: str
    kind: str  # commit, tag, tree or blob


class GitObject(NamedTuple):
    name: str
    kind: str
    data: bytes


_MAX_PENDING = 400  # names sent before an answer is read: more could fill both pipes and block both sides


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
                git_object = _read_object(self._answers)
                if git_object is None:
                    problem = f"Object {name[:10]} is missing: only a part of the history is here."
                    raise GitError(f"{problem} See: tacit doctor")
                yield git_object


def _read_object(stream: IO[bytes]) -> GitObject | None:
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
        self._index_variables = {} if index is None else {"GIT_INDEX_FILE": index}

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
                umask=_UMASK,
                timeout=timeout,
                check=False,
            )
        except FileNotFoundError as error:
            raise GitError(_NO_GIT_MESSAGE) from error
        except ValueError as error:
            raise GitError("git cannot be asked about text that holds a NUL or is no Unicode.") from error
        except subprocess.TimeoutExpired as error:
            raise GitError(f"git {arguments[0]} took longer than {timeout:.0f} s and was stopped.") from error

    def _environment(self) -> dict[str, str]:
        # With GIT_DIR set, git neither searches parent folders nor trusts core.worktree.
        location = {"GIT_DIR": str(self.root / ".git"), "GIT_WORK_TREE": str(self.root)}
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            **_ENVIRONMENT,
            **location,
            **self._index_variables,
        }

    # ------------------------------------------------------------ reading

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
        for line in _split_nul(out):
            meta, _, path = line.partition(b"\t")
            mode, _, name = meta.decode().split(" ")
            entries[os.fsdecode(path)] = Blob(mode, name)
        return entries

    def staged(self) -> set[str]:
        """Paths whose index entry differs from HEAD: the user's work in progress."""
        if self.head() is None:
            return {os.fsdecode(path) for path in _split_nul(self.run("ls-files", "-z", "--cached"))}
        result = self.attempt("diff-index", "--cached", "--name-only", "-z", "HEAD", "--")
        if result.returncode:
            raise GitError(
                "The index of this repository cannot be read.", result.stderr.decode("utf-8", "replace")
            )
        return {os.fsdecode(path) for path in _split_nul(result.stdout)}

    def not_checked_out(self) -> set[str]:
        """Paths that are absent from the disk but not deleted: a sparse checkout leaves them out, they are
        assumed unchanged, or nothing was ever checked out."""
        return {path for path in self._list_unwritten() if not os.path.lexists(self.root / path)}

    def _list_unwritten(self) -> Collection[str]:
        if (self.directory / "index").exists():
            return self._list_skip_worktree() | list_assumed_unchanged(str(self.root))
        return self.tree("HEAD") if self.directory.is_dir() and self.head() else ()

    def _list_skip_worktree(self) -> set[str]:
        """Paths with the skip-worktree flag. Starts no process if the index cannot contain it."""
        try:
            with (self.directory / "index").open("rb") as file:
                is_plain = file.read(8)[4:] == b"\0\0\0\2"
        except OSError:
            is_plain = True
        if is_plain and not (self.directory / "info" / "sparse-checkout").exists():
            return set()
        out = self.run("ls-files", "-z", "-t", "--cached")
        return {os.fsdecode(line[2:]) for line in _split_nul(out) if line.startswith(b"S ")}

    def known(self, paths: Collection[str]) -> set[str]:
        """Which of these paths are in HEAD or the index."""
        committed = self.tree("HEAD", *paths) if paths and self.head() else {}
        return {*committed, *self.index_entries(paths)}

    def lacks_objects(self) -> bool:
        """Whether this is a partial clone, where missing objects are normal. Read from the config."""
        try:
            text = (self.common / "config").read_text(errors="replace").lower()
        except OSError:
            return False
        return "partialclone" in text or "promisor" in text

    def filters(self, paths: Iterable[str]) -> dict[str, str]:
        """The filter that the user's own git would apply to each path; paths without one are left out.
        An archived file without a filter has that of its original path, as "NAME of PATH"."""
        origins = {path: origin_of(path) for path in paths}
        own_filters = self._own_filters(dict.fromkeys((*origins, *origins.values())))
        inherited = {
            path: inherited_filter(own_filters[origin], origin) if own_filters[origin] != LFS_FILTER else ""
            for path, origin in origins.items()
            if origin in own_filters and path not in own_filters
        }
        return {path: name for path in origins if (name := own_filters.get(path) or inherited.get(path))}

    def _own_filters(self, paths: Iterable[str]) -> dict[str, str]:
        """Uses the user's settings, because there are also rules outside the repository. Runs no filter."""
        stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
        if not stdin:
            return {}
        with self._index_with_rules() as index:
            pieces = self._check_filters(stdin, index).split(b"\0")[:-1]
        filters = {
            os.fsdecode(path): os.fsdecode(name) for path, name in zip(pieces[::3], pieces[2::3], strict=True)
        }
        return {path: name for path, name in filters.items() if name not in ("unspecified", "unset")}

    @contextmanager
    def _index_with_rules(self) -> Iterator[dict[str, str]]:
        """git needs an index to read rules that are not on disk. If nothing was checked out, no index has
        them, so a temporary one is made from HEAD."""
        if self._can_read_rules() or self.head() is None:
            yield {}
            return
        with tempfile.TemporaryDirectory() as folder:
            index = os.path.join(folder, "index")
            Git(self.root, index).read_tree("HEAD")
            yield {"GIT_INDEX_FILE": index}

    def _can_read_rules(self) -> bool:
        """Whether git finds all rules on disk or in the index. A quick check without a process."""
        index = self.root / self._index_variables.get("GIT_INDEX_FILE", self.directory / "index")
        try:
            with index.open("rb") as file:
                return (
                    os.path.lexists(self.root / _ATTRIBUTES_FILE)
                    or os.fsencode(_ATTRIBUTES_FILE) in file.read()
                )
        except OSError:
            return False

    def _check_filters(self, stdin: bytes, index: Mapping[str, str]) -> bytes:
        settings = {key: value for key, value in _SETTINGS.items() if key != "core.attributesFile"}
        settings["core.sparseCheckoutCone"] = "false"  # otherwise rules in excluded folders are ignored
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = ["git", *options, "check-attr", "-z", "--stdin", "filter"]
        ours = {key: value for key, value in self._environment().items() if key not in _UNSET_VARIABLES}
        theirs = {
            name: value
            for name, value in os.environ.items()
            if name in _USER_VARIABLES or name.startswith(_USER_VARIABLE_PREFIXES)
        }
        try:
            result = subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                env={**ours, **theirs, **index},
                cwd=self.root,
                timeout=60,
                check=False,
            )
        except FileNotFoundError as error:
            raise GitError(_NO_GIT_MESSAGE) from error
        except subprocess.TimeoutExpired as error:
            raise GitError("git check-attr took longer than 60 s and was stopped.") from error
        if result.returncode:
            message = (
                "git cannot tell which files have filters, so nothing was committed. Mend what it names."
            )
            raise GitError(message, mask_secret(result.stderr.decode("utf-8", "replace")))
        return result.stdout

    def held_back(self, paths: Iterable[str]) -> dict[str, str]:
        """The paths that we never commit, with their filters."""
        return {path: name for path, name in self.filters(paths).items() if name != LFS_FILTER}

    def unchanged(self, filters: Mapping[str, str]) -> set[str]:
        """Which of these paths are the same as in HEAD, by the sizes and times in git's index. Filters are
        switched off, because git would run them for files whose times prove nothing."""
        # On the command line the name of a setting ends at the first equals sign.
        paths = [path for path, name in filters.items() if "=" not in name.partition(_FILTER_SEPARATOR)[0]]
        tracked = self.index_entries(paths)
        if not tracked or self.head() is None:
            return set()
        overrides = [
            part
            for name in sorted(
                {*(name.partition(_FILTER_SEPARATOR)[0] for name in filters.values()), LFS_FILTER}
            )
            for setting in ("clean=", "process=", "required=false")
            for part in ("-c", f"filter.{name}.{setting}")
        ]
        changed: set[str] = set()
        names = list(tracked)
        for batch in (
            names[start : start + _MAX_PATH_ARGS] for start in range(0, len(names), _MAX_PATH_ARGS)
        ):
            out = self.run(
                *overrides, "diff-index", "--name-only", "-z", "--no-renames", "HEAD", "--", *batch
            )
            changed.update(map(os.fsdecode, _split_nul(out)))
        return tracked.keys() - changed

    def index_entries(self, paths: Collection[str]) -> dict[str, Blob]:
        """The index entries of these paths; empty if the index cannot be read."""
        if self._index_has_none_of(paths):
            return {}
        pathspecs = (
            paths if len(paths) < _MAX_PATH_ARGS else ()
        )  # else list everything: command lines have a limit
        out = self.attempt("ls-files", "-z", "--stage", "--", *pathspecs).stdout if paths else b""
        entries = {}
        for line in _split_nul(out):
            meta, _, path = line.partition(b"\t")
            mode, name, _ = meta.decode().split(" ")
            entries[os.fsdecode(path)] = Blob(mode, name)
        return {path: entries[path] for path in paths if path in entries}

    def _index_has_none_of(self, paths: Collection[str]) -> bool:
        """Reads the file, without a process: up to version 3 it holds whole names. Usually we commit one new
        transcript, which the index does not have."""
        try:
            data = (self.directory / "index").read_bytes()
        except OSError:
            return not (self.directory / "index").exists()
        return data[4:8] in (b"\0\0\0\2", b"\0\0\0\3") and not any(
            os.fsencode(path) in data for path in paths
        )

    def untracked(self, *folders: str) -> list[str]:
        """Files that git does not track and .gitignore does not exclude. A folder that ends in a slash is
        another repository inside ours."""
        out = self.run("ls-files", "-z", "--others", "--exclude-standard", "--", *folders)
        return [os.fsdecode(path) for path in _split_nul(out)]

    def present(self, *folders: str) -> list[str]:
        """The files that `untracked` lists, and those in the index."""
        out = self.run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *folders)
        return [os.fsdecode(path) for path in _split_nul(out)]

    def blob_name(self, data: bytes) -> str:
        """The object name of these bytes in this repository."""
        return blob_name(data, self.algorithm)

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
        with self._open_process("cat-file", "--batch") as (stdin, stdout):
            yield ObjectReader(stdin, stdout)

    def every_object(self) -> Iterator[GitObject]:
        """All objects of the repository, including unreachable ones, one at a time."""
        arguments = ("cat-file", "--batch", "--batch-all-objects", "--unordered", "--buffer")
        with self._open_process(*arguments) as (stdin, stdout):
            stdin.close()
            while (git_object := _read_object(stdout)) is not None:
                yield git_object

    @contextmanager
    def _open_process(self, *arguments: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """A git process with open pipes. Its stderr goes to an unnamed file: a pipe that is not read would
        block it."""
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
                    umask=_UMASK,
                )
            except FileNotFoundError as error:
                raise GitError(_NO_GIT_MESSAGE) from error
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
        """Every ref of this work tree and its target; symbolic refs are left out."""
        form = "%(objectname)%00%(objecttype)%00%(symref)%00%(refname)"
        out = self.run("for-each-ref", f"--format={form}")
        rows = [os.fsdecode(line).split("\0") for line in out.split(b"\n") if line]
        return [Ref(name, target, kind) for target, kind, symbolic, name in rows if not symbolic]

    def commits(self, names: Collection[str]) -> Iterator[tuple[str, str, list[str]]]:
        """Name, tree and parents of these commits and all their ancestors, parents first."""
        if not names:
            return
        stdin = "".join(f"{name}\n" for name in names).encode()
        arguments = ("log", "--topo-order", "--reverse", "--stdin", "--format=%H %T %P")
        for line in self.run(*arguments, stdin=stdin, timeout=600).decode().splitlines():
            name, tree, *parents = line.split()
            yield name, tree, parents

    def staged_blobs(self) -> list[tuple[str, Blob]]:
        """Everything in the index. Raises in the middle of a merge."""
        entries = []
        for line in _split_nul(self.run("ls-files", "-z", "--stage")):
            meta, _, path = line.partition(b"\t")
            mode, name, stage = meta.decode().split(" ")
            if stage != "0":
                raise GitError("There are conflicts in the index. Resolve them, commit, and try again.")
            entries.append((os.fsdecode(path), Blob(mode, name)))
        return entries

    def remotes(self) -> list[tuple[str, str]]:
        """Name and address of each."""
        out = self.attempt("config", "--local", "-z", "--get-regexp", r"^remote\..*\.url$").stdout
        pairs = [line.partition("\n") for line in out.decode("utf-8", "replace").split("\0") if line]
        return [(key[len("remote.") : -len(".url")], mask_secret(url)) for key, _, url in pairs]

    def work_trees(self) -> list[Path]:
        """The existing linked work trees, without the home itself. Read from files, without a process. Those
        listed in a copied repository still belong to the original."""
        paths = []
        for file in sorted(self.common.glob("worktrees/*/gitdir")):
            path = Path(os.path.join(file.parent, file.read_text().strip())).parent
            if (path / ".git").is_file() and Git(path).directory.resolve() == file.parent.resolve():
                paths.append(Path(os.path.normpath(path)))
        return paths

    def forget_torn_work_trees(self, place: str) -> None:
        """Drop half-created work trees whose path contains `place`: as long as one has no HEAD, git treats
        the whole repository as damaged."""
        for file in self.common.glob("worktrees/*/gitdir"):
            head = file.with_name("HEAD")
            commit = head.read_bytes().strip(b"0\n") if head.exists() else b""
            if not commit and place in file.read_text():
                shutil.rmtree(file.parent)

    def forget_work_tree(self, ending: str) -> None:
        """Drop the records of work trees at a path with this ending, even if the work trees no longer exist
        or belong to the repository that this one was copied from."""
        for file in self.common.glob("worktrees/*/gitdir"):
            if file.read_text().strip().endswith(f"/{ending}/.git"):
                shutil.rmtree(file.parent)

    def add_work_tree(self, place: Path, branch: str, commit: str) -> None:
        """A linked work tree without files, on a branch that is created at, or reset to, the commit."""
        self.run("worktree", "add", "--quiet", "--force", "--no-checkout", "-B", branch, str(place), commit)

    def read_tree(self, commit: str) -> None:
        """Set the index to the commit; files are not touched."""
        self.run("read-tree", commit, timeout=600)

    def trailer(self, commit: str, key: str) -> str:
        """The value of the trailer with this key; empty if the message has none."""
        form = f"--format=%(trailers:key={key},valueonly)"
        return self.run("log", "-1", form, commit).decode("utf-8", "replace").strip()

    def changed_between(self, old: str, new: str, *folders: str) -> list[str]:
        """Paths that differ between two commits."""
        out = self.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, "--", *folders)
        return [os.fsdecode(path) for path in _split_nul(out)]

    def read(self, revision: str, path: str) -> bytes | None:
        result = self.attempt("cat-file", "blob", f"{revision}:{path}")
        return result.stdout if result.returncode == 0 else None

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

    # ------------------------------------------------------------ writing

    def commit(self, planned: Sequence[CommitPlan]) -> list[str]:
        """Make these commits, in order, on the current branch; returns their names."""
        branch = self.branch()
        if branch is None:
            raise GitError("HEAD is detached. Go back to a branch with: git switch main")
        self.refuse_filtered(planned)
        ref = f"refs/heads/{branch}"
        has_parent = (self.common / ref).exists() or self.resolve(ref) is not None
        stream = b"".join(_import_stream(ref, planned, has_parent))
        started = time.time()
        result = self.attempt(
            "fast-import", "--quiet", "--done", "--date-format=raw", stdin=stream, timeout=600
        )
        if result.returncode:
            raise GitError(f"The commit on {branch} was not made.", result.stderr.decode("utf-8", "replace"))
        self.sync(ref, since=started)
        return result.stdout.decode().split()

    def refuse_filtered(self, planned: Sequence[CommitPlan]) -> None:
        """Raise Filtered if bytes of a path with a filter would be written."""
        changes = (change for plan in planned for change in plan.changes)
        if filters := self.held_back(
            dict.fromkeys(change.path for change in changes if change.data is not None)
        ):
            raise Filtered(filters)

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

    def pack(self) -> bool:
        """Pack loose objects when there are many, as git would by itself. The pack is on disk under its name
        before the first loose object is removed. Returns whether it packed."""
        sample = self.common / "objects" / "17"  # names are hashes, so one of 256 folders represents all
        if not sample.is_dir() or sum(1 for _ in sample.iterdir()) * 256 < _MAX_LOOSE_OBJECTS:
            return False
        self.run("repack", "-l", "-q", timeout=600)
        files.fsync_directory(self.common / "objects" / "pack")
        self.run("prune-packed", "--quiet", timeout=600)
        return True

    def update_index(self, entries: Iterable[tuple[str, Blob | None]]) -> bool:
        """Update the user's index with paths we committed (None: removed), so that `git status` stays clean.
        Best effort: if another process holds the index, leaves it alone and returns False."""
        updates = dict(entries)
        absent = self._list_skip_worktree() | {
            path for path in list_assumed_unchanged(str(self.root)) if not os.path.lexists(self.root / path)
        }
        skipped = [(path, blob) for path, blob in updates.items() if blob is not None and path in absent]
        present = [(path, blob) for path, blob in updates.items() if blob is None or path not in absent]
        removed = Blob("0", "0" * (64 if self.algorithm == "sha256" else 40))
        lines = (f"{(blob or removed).mode} {(blob or removed).name}\t{path}" for path, blob in present)
        stdin = b"".join(os.fsencode(line) + b"\0" for line in lines)
        is_updated = self.attempt("update-index", "-z", "--index-info", stdin=stdin).returncode == 0
        return is_updated and all(self._update_skipped(path, blob) for path, blob in skipped)

    def _update_skipped(self, path: str, blob: Blob) -> bool:
        """Set the skip-worktree flag of a path that is not checked out, in the same process: without the flag
        it would count as deleted."""
        entry = f"{blob.mode},{blob.name},{path}"
        options = ("--add", "--cacheinfo", entry, "--skip-worktree", "--", path)
        return self.attempt("update-index", *options).returncode == 0

    def set_ref(self, ref: str, new: str | None, old: str | None = None) -> None:
        """Create (old None), move or delete (new None) a ref, only if it still has the expected value."""
        expected = old if old is not None else "0" * len(new or "")
        arguments = ["-d", ref, expected] if new is None else [ref, new, expected]
        self.run("update-ref", "--no-deref", *arguments)
        self.sync(ref)

    def take_in(self, pack: Path) -> None:
        """Add the objects of a pack file to the repository."""
        command = ["git", *_OPTIONS, "--no-pager", "index-pack", "--stdin"]
        with pack.open("rb") as stream:
            result = subprocess.run(
                command,
                stdin=stream,
                capture_output=True,
                env=self._environment(),
                cwd=self.root,
                umask=_UMASK,
                check=False,
            )
        if result.returncode:
            raise GitError("New objects could not be written.", result.stderr.decode("utf-8", "replace"))
        files.fsync_directory(self.common / "objects" / "pack")

    def move_refs(self, moves: Iterable[tuple[str, str | None, str | None]]) -> None:
        """Move many refs at once: name, new (None: delete), old (None: did not exist). All or none, unless
        git is stopped in the middle."""
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
        """Keep only objects reachable from refs, logs and indexes, in one pack. The new pack is on disk under
        its name before an old one is removed; a single repack would not guarantee that."""
        folder = self.common / "objects" / "pack"
        for options in (("-a", "-l", "-q"), ("-a", "-d", "-l", "-q")):
            self.run("repack", *options, timeout=3600)
            files.fsync_directory(folder)
        self.run("prune", "--expire=now", timeout=3600)

    def forget_resolved(self) -> None:
        """The index remembers both sides of resolved conflicts, and may be split in two files, one of them
        older: erased content would stay in them."""
        index = self.directory / "index"
        data = index.read_bytes() if index.exists() else b""
        if b"REUC" in data or b"link" in data:
            self.run("update-index", "--clear-resolve-undo", "--no-split-index")
            for file in self.directory.glob("sharedindex.*"):
                file.unlink()

    def drop_old_folders(self) -> None:
        """The index keeps the names of empty folders until a tree is written from it."""
        self.attempt("write-tree", timeout=600)

    def leave_out(self, paths: Iterable[str]) -> None:
        """Set skip-worktree for paths that a sparse checkout leaves out and the index already has."""
        stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
        self.run("update-index", "-z", "--skip-worktree", "--stdin", stdin=stdin)

    def push(self, remote: str) -> str:
        """Push the current branch and the memory tags; returns git's error message. This talks to a remote,
        so it uses the user's own git settings and credentials."""
        branch = self.branch()
        if branch is None:
            return "HEAD is detached"
        refs = [f"refs/heads/{branch}", "refs/tags/memory/*:refs/tags/memory/*", *self._exclude_moving_tags()]
        problems = [self._push_lfs(remote, branch), self._call_remote("push", "--quiet", "--", remote, *refs)]
        return "\n".join(filter(None, problems))

    def _push_lfs(self, remote: str, branch: str) -> str:
        """Do what the pre-push hook of git-lfs would do, as hooks are never run. If it fails, the branch is
        pushed all the same: most of a memory is text."""
        if shutil.which("git-lfs") is None or not (self.common / "lfs" / "objects").is_dir():
            return ""
        folder = self.root / remote
        is_path = "/" in remote and folder.is_dir()
        address = folder.resolve().as_uri() if is_path else remote  # git-lfs accepts only URLs and names
        problem = self._call_remote("lfs", "push", "--", address, branch)
        return f"attachments were not sent: {problem}" if problem else ""

    def _call_remote(self, *arguments: str) -> str:
        return self._query_remote(*arguments)[1]

    def _query_remote(self, *arguments: str) -> tuple[str, str]:
        """Run git with access to remotes; returns its output and its error message."""
        command = ["git", "-C", str(self.root), "-c", f"core.hooksPath={os.devnull}", *arguments]
        inherited = {name: value for name, value in os.environ.items() if name not in _LOCATION_VARIABLES}
        environment = {**inherited, "GIT_DIR": str(self.root / ".git"), "GIT_TERMINAL_PROMPT": "0"}
        try:
            result = subprocess.run(
                command, capture_output=True, env=environment, timeout=120, check=False, umask=_UMASK
            )
        except subprocess.TimeoutExpired:
            return "", f"git {arguments[0]} took longer than 120 s and was stopped"
        except (OSError, ValueError) as error:
            return "", mask_secret(str(error))
        stderr = mask_secret(result.stderr.decode("utf-8", "replace").strip())
        stdout = result.stdout.decode("utf-8", "replace")
        return stdout, (stderr or f"git {arguments[0]} failed") if result.returncode else ""

    def keep_blob(self, data: bytes, path: str) -> str | None:
        """Store bytes that no commit refers to; git drops them after some weeks. None: the path has a filter,
        so nothing is stored."""
        return None if self.held_back([path]) else self._write_blob(data)

    def _write_blob(self, data: bytes) -> str:
        return self.run("hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()

    def claim(self, remote: str, name: str, owner: str) -> bool | str:
        """Take a lease on the remote by creating a ref, which only one client can do. True: we hold it, now
        or from before; False: another client does; text: why the remote could not be asked."""
        ref = f"{_CLAIMS_PREFIX}{name}"
        blob = self._write_blob(owner.encode())
        # The expected value is empty, so the push is refused if the ref exists.
        problem = self._call_remote(
            "push", "--quiet", f"--force-with-lease={ref}:", "--", remote, f"{blob}:{ref}"
        )
        if not problem:
            return True
        claims = self.claims(remote)
        return problem if isinstance(claims, str) or name not in claims else claims[name] == blob

    def claims(self, remote: str) -> dict[str, str] | str:
        """The leases on the remote, each with the blob that names its owner; text: why the remote could not
        be asked."""
        listing, problem = self._query_remote("ls-remote", "--", remote, f"{_CLAIMS_PREFIX}*")
        rows = (line.split("\t") for line in listing.splitlines())
        return problem or {row[1].removeprefix(_CLAIMS_PREFIX): row[0] for row in rows if len(row) == 2}

    def _exclude_moving_tags(self) -> list[str]:
        """Refspecs that exclude tags of a day or week that may not be over: these still move with HEAD, and
        a pushed tag could only be moved by force."""
        periods = ("refs/tags/memory/daily/", "refs/tags/memory/weekly/")
        out = self.run("for-each-ref", "--points-at=HEAD", "--format=^%(refname)", *periods)
        return out.decode("utf-8", "surrogateescape").split()

    def hooks_elsewhere(self) -> str:
        """core.hooksPath as the user's own git sees it; if set, the hooks of this repository are not run.
        Uses the user's settings, which is safe because only this setting is read."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        command = ["git", "-C", str(self.root), "config", "--get", "core.hooksPath"]
        result = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
        return result.stdout.decode("utf-8", "replace").strip()

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


def require_checked_out(root: Path, path: str) -> None:
    """Raise NotCheckedOut for a file that is in git but not on disk: creating it would replace it."""
    if (root / ".git").exists() and path in Git(root).not_checked_out():
        raise NotCheckedOut(path)


def split_filter(filter_name: str) -> tuple[str, str]:
    """The name of a filter, and the file that it is inherited from (empty if it is the path's own)."""
    name, _, path = filter_name.partition(_FILTER_SEPARATOR)
    return name, path


def inherited_filter(filter_name: str, path: str) -> str:
    """The name of a filter that is inherited from another file."""
    return f"{split_filter(filter_name)[0]}{_FILTER_SEPARATOR}{path}"


def require_installed() -> None:
    if shutil.which("git") is None:
        raise GitError(_NO_GIT_MESSAGE)


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


def _split_nul(out: bytes) -> list[bytes]:
    return [piece for piece in out.split(b"\0") if piece]


def _import_stream(ref: str, planned: Sequence[CommitPlan], has_parent: bool) -> Iterator[bytes]:
    for number, plan in enumerate(planned, 1):
        message = plan.message.encode("utf-8", "replace")
        yield f"commit {ref}\nmark :{number}\nauthor {_format_author(plan.about or plan.when)}\n".encode()
        yield f"committer {_format_author(plan.when)}\n".encode()
        yield b"data %d\n%s\n" % (len(message), message)
        if number == 1 and has_parent:
            yield f"from {ref}^0\n".encode()
        for change in plan.changes:
            yield from _import_change(change)
        yield b"\nget-mark :%d\n" % number
    yield b"done\n"


def _format_author(when: datetime) -> str:
    return f"{IDENTITY} {max(0, int(when.timestamp()))} {when.strftime('%z')[:5] or '+0000'}"


def _import_change(change: FileChange) -> Iterator[bytes]:
    if change.data is None:
        yield b"D %s\n" % _quote_path(change.path)
    else:
        yield b"M %s inline %s\n" % (change.mode.encode(), _quote_path(change.path))
        yield b"data %d\n" % len(change.data)
        yield change.data
        yield b"\n"


def _quote_path(path: str) -> bytes:
    plain = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + plain + b'"'
