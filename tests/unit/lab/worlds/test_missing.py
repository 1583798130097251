"""What a study needs to be played again, where its world's package is not here, or is another."""

from typing import Any

import pytest

from tests.conftest import CHECKOUT
from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab.worlds import world
from toolkit.registers.study import open_study, specification_document


def test_a_study_says_its_worlds() -> None:
    assert world.worlds_of(open_study(CHECKOUT / "registers/bfcl")) == ["bfcl_turns", "bfcl_scenarios"]
    assert world.worlds_of(open_study(CHECKOUT / "registers/coupled")) == []


@pytest.mark.parametrize("kind", [IncompleteError, DamagedError])
def test_what_is_missing_is_said_and_stops_nothing(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise kind("not here", remedy="pip install it")

    monkeypatch.setattr(world, "open_world", refuse)
    lack = world.missing(open_study(CHECKOUT / "registers/bfcl"))
    assert (lack is not None, str(lack)) == (True, "not here\n  what to do: pip install it")
    assert world.missing(open_study(CHECKOUT / "registers/coupled")) is None


@pytest.mark.parametrize("said", [None, "", "{", "[1]", "[" * 100_000, '"text"'])
def test_a_specification_that_is_none_says_nothing(said: str | None) -> None:
    assert specification_document({"specification": said}) == {}
    assert specification_document({}) == {}
