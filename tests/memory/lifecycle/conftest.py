from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory.lifecycle.life import Life


@pytest.fixture
def life(home: Path) -> Life:
    return Life(home)
