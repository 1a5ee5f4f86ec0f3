"""One installed host and one gateway for all end-to-end tests."""

from __future__ import annotations

import os

import pytest

from tests.e2e.npm import Installed, Missing, installed


@pytest.fixture(scope="session")
def openclaw() -> Installed:
    try:
        return installed()
    except Missing as why:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(why))
