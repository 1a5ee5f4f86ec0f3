"""One installed host and one gateway for all end-to-end tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Ran, eventually
from tests.e2e.grown import grow
from tests.e2e.host import Host, Turn
from tests.e2e.npm import Installed, Missing, installed
from tests.faults.fulldisk import tmpfs
from tests.faults.machine import Impossible

_REAL_INIT = socket.socket.__init__
PATIENCE = 300.0  # seconds for a command that runs the host's own several times


@pytest.fixture(scope="session")
def openclaw() -> Installed:
    try:
        return installed()
    except Missing as why:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(why))


def host_in(folder: Path, openclaw: Installed) -> Host:
    """Its model and its messenger listen on loopback, which only this may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "__init__", _REAL_INIT)
        return Host(openclaw, folder)


@dataclass(frozen=True, slots=True)
class Commands:
    """`tacit openclaw …` as the owner of a host types it."""

    host: Host
    home: Path

    def __call__(self, *arguments: str) -> Ran:
        command = [sys.executable, "-P", "-m", "tacit", "openclaw", *arguments, "--home", str(self.home)]
        done = subprocess.run(
            command,
            env=self.host.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True, slots=True)
class Gateway:
    """A host with a grown workspace, to which tacit was added while it ran."""

    host: Host
    home: Path
    tacit: Commands
    bulk: Turn  # of the main session, before
    said: Ran  # by the install
    disk: Disk


@dataclass(frozen=True, slots=True)
class Disk:
    """What the home is on: small, so that it can be filled; or why that cannot be had here."""

    root: Path
    why_not_small: str = ""


@contextmanager
def disk_in(folder: Path) -> Iterator[Disk]:
    with ExitStack() as stack:
        try:
            disk = Disk(stack.enter_context(tmpfs(folder / "disk", "size=64m")))
        except Impossible as why:
            disk = Disk(folder, str(why))
        yield disk


@contextmanager
def added(openclaw: Installed, folder: Path) -> Iterator[Gateway]:
    host = host_in(folder, openclaw)
    grow(host.workspace)
    host.write_config()
    with disk_in(folder) as disk, host.running():
        home = disk.root / "tacit"
        bulk = host.agent("Good morning")
        said = Commands(host, home)("install", "--yes")
        assert said.code == 0, said.stderr
        # Anybody may write to this host, so who its owner is has to be said.
        config = home / "memory-config.yaml"
        config.write_text(config.read_text().replace("owners: []", 'owners: ["telegram:111"]'))
        assert eventually((home / ".tacit/daemon.json").exists), host.log[-3000:]
        yield Gateway(host, home, Commands(host, home), bulk, said, disk)


@pytest.fixture(scope="session")
def gateway(openclaw: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with added(openclaw, tmp_path_factory.mktemp("openclaw")) as made:
        yield made
