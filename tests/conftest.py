"""What every test stands on: a fresh home, the command line, and no way out.

The person who runs the tests has a home folder, a git identity and a network; no test may see any of them.
"""

from __future__ import annotations

import atexit
import os
import pty
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import tacit as product
from tacit.health.access import trust
from tacit.home.layout import Home
from tacit.memory import Memory
from tests.launcher import Launcher

# The disk syncs that the product needs make time a poor judge of a test.
settings.register_profile(
    "tacit", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("tacit")

# Berlin, spelled out: a zone with summer time that needs no table of zones.
ZONE = "CET-1CEST,M3.5.0,M10.5.0/3"
_FOREIGN = ("GIT_", "XDG_", "TACIT_", "SSH_", "LC_")
_FOREIGN_NAMES = ("EMAIL", "EDITOR", "VISUAL", "PAGER", "LANG", "COLUMNS", "NO_COLOR", "FORCE_COLOR")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A worker takes a whole file, so that what its tests share is made once. Tests of the real host share
    one gateway: one worker has them all, and begins with them because they take longest."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if not nodeid.startswith("tests/e2e/") or "test_uninstall" in nodeid:
                return nodeid.partition("::")[0]
            return "tests/e2e"

    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith("tests/e2e/"))


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    stdout: str
    stderr: str


_PROGRAM = str(Path(product.__file__).parent / "__main__.py")
_LAUNCHER_LOCK = threading.Lock()  # a second command at the same moment gets a process from nothing


@cache
def _launcher() -> Launcher:
    launcher = Launcher(os.environ, Path(product.__file__).parent.parent)
    atexit.register(launcher.close)
    return launcher


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    """What Python reads as it starts, so that a launcher that runs already cannot change it."""
    return {name: value for name, value in environ.items() if name.startswith(("PYTHON", "LC_", "LANG"))}


@dataclass(frozen=True, slots=True)
class Tacit:
    """Runs the command line in a process of its own, in one home unless told otherwise."""

    home: Path

    def __call__(
        self,
        *arguments: str,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 60.0,
    ) -> Ran:
        text = stdin if isinstance(stdin, str) else stdin.decode("utf-8", "surrogateescape")
        environ = {**os.environ, "TACIT_HOME": str(self.home), **(env or {})}
        request = {
            "program": _PROGRAM,
            "arguments": arguments,
            "stdin": text,
            "env": environ,
            "cwd": str(cwd or self.home),
            "seconds": int(timeout),
        }
        if _LAUNCHER_LOCK.acquire(blocking=False):
            try:
                if _read_at_start(environ) == _read_at_start(_launcher().environment):
                    return Ran(**_launcher().ask(request))
            finally:
                _LAUNCHER_LOCK.release()
        done = subprocess.run(
            [sys.executable, "-m", "tacit", *arguments],
            input=text.encode("utf-8", "surrogateescape"),
            capture_output=True,
            env=environ,
            cwd=cwd or self.home,
            timeout=timeout,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@dataclass(frozen=True, slots=True)
class Commit:
    name: str
    message: str

    @property
    def subject(self) -> str:
        return self.message.split("\n", 1)[0]

    def trailer(self, key: str) -> list[str]:
        lines = [line.partition(": ") for line in self.message.split("\n")]
        return [value for name, _, value in lines if name == key]


@dataclass(frozen=True, slots=True)
class GitLog:
    """The commits of a home as git itself tells them, newest first."""

    home: Path

    def __call__(self, *arguments: str, root: Path | None = None) -> list[Commit]:
        command = ["git", "-C", str(root or self.home), "log", "--format=%H%x00%B%x00", *arguments]
        out = subprocess.run(command, capture_output=True, check=True).stdout.decode()
        pieces = out.split("\0")
        return [
            Commit(name.strip(), message) for name, message in zip(pieces[::2], pieces[1::2], strict=False)
        ]


@pytest.fixture(scope="session", autouse=True)
def _nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Neither the home, the git identity, the settings nor the network of whoever runs the tests."""
    nowhere = tmp_path_factory.mktemp("nobody")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_FOREIGN) or name in _FOREIGN_NAMES:
                patch.delenv(name)
        patch.setenv("HOME", str(nowhere))
        patch.setenv("XDG_CONFIG_HOME", str(nowhere / ".config"))
        patch.setenv("XDG_CACHE_HOME", str(nowhere / ".cache"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_TERMINAL_PROMPT", "0")
        patch.setenv("TZ", ZONE)
        patch.setattr(socket.socket, "__init__", _only_local_sockets(socket.socket.__init__))
        time.tzset()
        yield
    time.tzset()


def _only_local_sockets(original: object) -> object:
    def init(self: socket.socket, family: int = -1, *rest: object, **named: object) -> None:
        if named.get("fileno") is None and len(rest) < 3 and family != socket.AF_UNIX:
            raise AssertionError("a test tried to reach the network")
        assert callable(original)
        original(self, family, *rest, **named)

    return init


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Path:
    root = tmp_path_factory.mktemp("template") / "home"
    product.init(root)
    return root


@pytest.fixture
def home(_template: Path, tmp_path: Path) -> Path:
    """A home that `tacit init` made, all its own."""
    root = tmp_path / "home"
    shutil.copytree(_template, root, symlinks=True)
    trust(Home(root))  # a copy is foreign until `tacit init` was run in it
    return root


@pytest.fixture
def memory(home: Path) -> Memory:
    return product.open(home)


@pytest.fixture
def tacit(home: Path) -> Tacit:
    return Tacit(home)


@pytest.fixture
def git_log(home: Path) -> GitLog:
    return GitLog(home)


def plain_user(*command: str | Path) -> list[str]:
    """The command without root's right to pass over modes; for anybody else, the command as it is."""
    if os.geteuid() != 0:
        return [str(part) for part in command]
    if shutil.which("setpriv") is None:
        pytest.skip("root passes over modes, and setpriv is not there to take that away")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *map(str, command)]


def on_a_terminal(home: Path, *arguments: str, **environ: str) -> bytes:
    """What a command shows where a person looks at it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit", *arguments],
        env={**os.environ, "TACIT_HOME": str(home), **environ},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(60) == 0
    return shown


def eventually(holds: Callable[[], object], seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.02)
    return False
