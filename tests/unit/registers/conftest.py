"""A study of one's own, to be damaged."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a copy of the published study."""
    return shutil.copytree(CHECKOUT / "registers" / "published", tmp_path / "published")
