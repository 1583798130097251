"""A study of one's own, to be damaged."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a copy of the published study."""
    return shutil.copytree(CHECKOUT / "registers" / "published", tmp_path / "published")
