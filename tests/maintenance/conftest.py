from __future__ import annotations

from pathlib import Path

import pytest

from tests.maintenance.life import Life


@pytest.fixture
def life(home: Path) -> Life:
    return Life(home)
