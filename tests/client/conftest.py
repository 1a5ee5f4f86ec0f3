"""Homes whose path is short enough for a socket."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tacit as product
from tacit.health.access import trust
from tacit.home.layout import Home
from tests.memory.homes import live_in


@pytest.fixture(scope="session")
def _garden(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Path:
    root = tmp_path_factory.mktemp("garden") / "home"
    product.init(root)
    live_in(root)
    return root


@pytest.fixture
def another(_garden: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """As many copies of a home that somebody lived in as a test wants, all alike."""

    def copy() -> Path:
        root = tmp_path_factory.mktemp("g") / "h"
        shutil.copytree(_garden, root, symlinks=True)
        trust(Home(root))
        return root

    return copy


@pytest.fixture
def garden(another: Callable[[], Path]) -> Path:
    return another()
