"""Everything that users, hosts and scripts rely on, tested from outside.

The tests in this folder know commands, JSON, files, the daemon's socket, the public Python contract and exit
codes. They import no inner module, so they hold while the inside is rebuilt. After a change that is meant:

    pytest tests/blackbox --update-snapshots

Then read `git diff tests/blackbox/snapshots` before you commit it. To compare the prompts of two checkouts on
larger question sets, see compare.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blackbox.outside import Commands, copy_home
from tests.blackbox.small_home import build
from tests.blackbox.snapshots import Snapshots


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write snapshots anew")


@pytest.fixture(scope="session")
def snapshots(request: pytest.FixtureRequest) -> Snapshots:
    return Snapshots(update=bool(request.config.getoption("--update-snapshots", default=False)))


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """The small home, for tests that only read."""
    commands = Commands(tmp_path_factory.mktemp("prepared") / "home")
    build(commands)
    return commands


@pytest.fixture
def tacit_command(prepared: Commands, tmp_path: Path) -> Commands:
    """A copy of the small home, for tests that write."""
    return copy_home(prepared.home, tmp_path / "copy")
