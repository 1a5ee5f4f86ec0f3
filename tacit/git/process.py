"""The only module that starts git.

What must stay true:
- only git itself runs: no shell, hooks, filters, pager or signing program, even if the configuration of the
  user or the repository names some;
- user text is never taken for an option: refs are written out in full, paths go through stdin or after `--`.

Only `call_remote`, `check_attribute` and `read_user_setting` see the settings of the user.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tacit.config import mask_secret
from tacit.errors import GitError

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
_LOCATION_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)
_REMOTE_TIMEOUT_S = 120.0
_UMASK = 0o077  # only the owner may read what git writes
Result = subprocess.CompletedProcess[bytes]
NO_GIT_MESSAGE = "git is not installed, or not on PATH. Install it and try again."


def run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes | IO[bytes] = b"",
    timeout: float | None = 60.0,
    settings: Mapping[str, str] = _SETTINGS,
) -> Result:
    """Run git to its end; the caller looks at the exit code."""
    try:
        return subprocess.run(
            _command(arguments, settings),
            input=stdin if isinstance(stdin, bytes) else None,
            stdin=None if isinstance(stdin, bytes) else stdin,
            capture_output=True,
            env=environment,
            cwd=folder,
            umask=_UMASK,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitError(NO_GIT_MESSAGE) from error
    except ValueError as error:
        raise GitError("git cannot be asked about text that holds a NUL or is no Unicode.") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]} took longer than {timeout:.0f} s and was stopped.") from error


def _command(arguments: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    options = (part for key, value in settings.items() for part in ("-c", f"{key}={value}"))
    return ["git", *options, "--no-pager", *arguments]


@contextmanager
def open_pipes(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A git process with open pipes. Its stderr goes to an unnamed file: a pipe that is not read would block
    it."""
    with tempfile.TemporaryFile() as complaints:
        try:
            child = subprocess.Popen(
                _command(arguments, _SETTINGS),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=environment,
                cwd=folder,
                umask=_UMASK,
            )
        except FileNotFoundError as error:
            raise GitError(NO_GIT_MESSAGE) from error
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield child.stdin, child.stdout
        except BaseException:
            child.kill()
            raise
        finally:
            with suppress(OSError):
                child.stdin.close()
            child.stdout.close()
            child.wait()


def own_environment(root: Path, index: str | None = None) -> dict[str, str]:
    """An environment in which git sees only our settings and those of the repository at `root`. With GIT_DIR
    set, git neither searches parent folders nor trusts core.worktree."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT, **_location(root)}
    return environment if index is None else {**environment, "GIT_INDEX_FILE": index}


def _location(root: Path) -> dict[str, str]:
    return {"GIT_DIR": str(root / ".git"), "GIT_WORK_TREE": str(root)}


def call_remote(root: Path, *arguments: str) -> tuple[str, str]:
    """Run git with the user's own settings and credentials, as remotes need; returns its output and its error
    message."""
    inherited = {name: value for name, value in os.environ.items() if name not in _LOCATION_VARIABLES}
    environment = {**inherited, "GIT_DIR": str(root / ".git"), "GIT_TERMINAL_PROMPT": "0"}
    settings = {"core.hooksPath": os.devnull}
    try:
        result = run(arguments, root, environment, timeout=_REMOTE_TIMEOUT_S, settings=settings)
    except (GitError, OSError) as error:
        return "", mask_secret(str(error)).rstrip(".")
    stderr = mask_secret(result.stderr.decode("utf-8", "replace").strip())
    return result.stdout.decode("utf-8", "replace"), (
        (stderr or f"git {arguments[0]} failed") if result.returncode else ""
    )


def check_attribute(root: Path, name: str, paths: bytes, index: str | None) -> bytes:
    """The attribute of each of these paths (with NULs between), as the user's own git would see it: there are
    also rules outside the repository. Runs no filter."""
    settings = {key: value for key, value in _SETTINGS.items() if key != "core.attributesFile"}
    settings["core.sparseCheckoutCone"] = "false"  # otherwise rules in excluded folders are ignored
    ours = {key: value for key, value in own_environment(root, index).items() if key not in _UNSET_VARIABLES}
    theirs = {
        variable: value
        for variable, value in os.environ.items()
        if variable in _USER_VARIABLES or variable.startswith(_USER_VARIABLE_PREFIXES)
    }
    arguments = ("check-attr", "-z", "--stdin", name)
    result = run(arguments, root, {**ours, **theirs}, paths, settings=settings)
    if result.returncode:
        message = "git cannot tell which files have filters, so nothing was committed. Mend what it names."
        raise GitError(message, mask_secret(result.stderr.decode("utf-8", "replace")))
    return result.stdout


def read_user_setting(root: Path, key: str) -> str:
    """One setting as the user's own git sees it in this repository; empty if it is not set."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    result = run(("config", "--get", key), root, environment, settings={})
    return result.stdout.decode("utf-8", "replace").strip()
