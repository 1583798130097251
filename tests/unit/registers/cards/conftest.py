"""Repositories with fresh documents, made once for all tests of cards."""

from pathlib import Path

import pytest

from tests.described import STUDIES, lay, shipped


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a folder a shipped study: its tables and its card."""
    return {name: lay(shipped(name), tmp_path_factory.mktemp(name)) for name in STUDIES}
