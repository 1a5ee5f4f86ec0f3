"""A home to take turns in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import tacit as product
from tacit.health.access import trust
from tacit.home.layout import Home
from tacit.memory import Memory
from tests.embeddings.conftest import serve
from tests.memory.homes import live_in, opened, settle

__all__ = ["serve"]


@pytest.fixture(scope="session")
def _lived(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Path:
    root = tmp_path_factory.mktemp("lived") / "home"
    product.init(root)
    live_in(root)
    return root


def _copy(lived: Path, root: Path) -> Path:
    shutil.copytree(lived, root, symlinks=True)
    trust(Home(root))
    return root


@pytest.fixture
def garden(_lived: Path, tmp_path: Path) -> Path:
    """A home with notes, topics and conversations, all its own."""
    return _copy(_lived, tmp_path / "garden")


@pytest.fixture(scope="module")
def lived(_lived: Path, tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """The same, open, for tests that only look."""
    return opened(_copy(_lived, tmp_path_factory.mktemp("looked-at") / "garden"))


@pytest.fixture
def plain(home: Path) -> Path:
    """A home with nothing in it but what `tacit init` writes."""
    settle(home)
    return home
