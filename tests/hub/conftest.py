"""A Hub of one's own for every test, and an environment that knows no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hub.server import FixtureHub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FixtureHub]:
    with FixtureHub() as hub:
        meet(hub, tmp_path, monkeypatch)
        yield hub


def meet(hub: FixtureHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process meet a Hub, although the Hub's client read its environment when it was imported."""
    import huggingface_hub.constants as read

    for name, value in hub.environment(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(read, "HF_HUB_DISABLE_XET", hub.cas is None)
    monkeypatch.setattr(read, "HF_TOKEN_PATH", str(folder / "hf" / "token"))
