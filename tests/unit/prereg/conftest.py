"""Two authorities on loopback, and a draft for them to timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.forge.server import Authority
from tests.unit.prereg.drafts import source, write_draft
from toolkit.prereg import authority as asking

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.prereg.timestamping import Online


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(asking, "PAUSE_S", 0.001)


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Online, Online]]:
    with Authority("A") as one, Authority("B") as other:
        yield source(one, "Authority A"), source(other, "Authority B")


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    return write_draft(tmp_path)
