"""A home for commands that read or damage one small study."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from toolkit.places import HOME_VARIABLE, Home


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home of its own with the published study alone, and every registration and card."""
    for name in ("prereg", "cards", "registers/published"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    return Home(tmp_path)
