"""The product as seen from outside: its command, its socket and the files of a home. Imports nothing of it.

Every process gets an environment of its own: an empty home folder, no git identity, no locale of the machine,
and a clock that stands still (see clock/sitecustomize.py).
"""

from __future__ import annotations

import atexit
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.launcher import Launcher

HERE = Path(__file__).parent
NOW = "2026-03-10T09:30:00+00:00"
ZONE = os.environ.get("BLACKBOX_TZ", "UTC")  # nothing may depend on these two; set them to see that
LANGUAGE = os.environ.get("BLACKBOX_LANG", "C.UTF-8")


def environment(folder: Path, now: str = NOW, **more: str) -> dict[str, str]:
    """`folder` becomes $HOME. It must exist."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "TZ": ZONE,
        "LANG": LANGUAGE,
        "USER": "tester",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTHONPATH": str(HERE / "clock"),
        "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
        "BLACKBOX_NOW": now,
        **more,
    }


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@dataclass(frozen=True, slots=True)
class Commands:
    """Runs `tacit` in one home."""

    home: Path
    now: str = NOW
    more: Mapping[str, str] = field(default_factory=dict)

    def __call__(
        self, *arguments: str, stdin: str = "", cwd: Path | None = None, now: str = "", **more: str
    ) -> Result:
        folder = self.home.parent
        named = {"TACIT_HOME": str(self.home), **self.more, **more}
        request = {
            "arguments": arguments,
            "stdin": stdin,
            "env": environment(folder, now or self.now, **named),
            "cwd": str(cwd or folder),
        }
        return Result(**_launcher().ask(request))

    def checked(self, *arguments: str, **rest: Any) -> Result:
        """A step that other steps stand on."""
        result = self(*arguments, **rest)
        assert result.code == 0, (arguments, result)
        return result


@cache
def _launcher() -> Launcher:
    folder = tempfile.TemporaryDirectory(prefix="blackbox-")
    launcher = Launcher(environment(Path(folder.name)), Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(launcher.close)
    return launcher


def copy_home(home: Path, folder: Path) -> Commands:
    """A home of one's own. A copied home counts as foreign until `tacit init` ran in it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(home.parent, folder, symlinks=True, dirs_exist_ok=True)
    commands = Commands(folder / home.name)
    commands.checked("init", "--quiet", str(commands.home))
    return commands


def write(home: Path, path: str, text: str) -> Path:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def git(home: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(home), *arguments],
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(home.parent), "GIT_CONFIG_NOSYSTEM": "1", "TZ": ZONE},
    )
    return done.stdout.decode()


def messages_of(home: Path) -> list[str]:
    """Commit messages, newest first."""
    return [text.strip("\n") for text in git(home, "log", "--format=%B%x00").split("\0") if text.strip()]


def files_of(home: Path, without: tuple[str, ...] = (".git/", ".tacit/")) -> list[str]:
    names = (str(file.relative_to(home)) for file in home.rglob("*") if file.is_file())
    return sorted(name for name in names if not name.startswith(without))


def mode_of(file: Path) -> str:
    return f"{file.stat().st_mode & 0o777:04o}"


def work(
    folder: Path,
    job: Mapping[str, Any],
    *,
    python: str = sys.executable,
    now: str = NOW,
    cwd: Path | None = None,
) -> list[Any]:
    """Let worker.py do a job with the product that this interpreter has."""
    done = subprocess.run(
        [python, str(HERE / "worker.py")],
        input=json.dumps(job).encode(),
        stdout=subprocess.PIPE,
        env=environment(folder, now),
        cwd=cwd or folder,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


# ---------------------------------------------------------------- the socket


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("tacit", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    kind: str
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def ask(home: Path, method: str, path: str, body: object = None) -> Answer:
    connection = UnixConnection(home / ".tacit" / "daemon.sock")
    try:
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, path, body=raw)
        response = connection.getresponse()
        kind = response.headers.get("Content-Type", "")
        return Answer(response.status, kind, response.read().decode())
    finally:
        connection.close()
