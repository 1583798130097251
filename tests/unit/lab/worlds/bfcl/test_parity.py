"""Parity with the official checker, which runs beside this world's grading on the same calls."""

from typing import Any

import pytest

from tests.conftest import Toolkit
from toolkit.errors import VerificationError
from toolkit.lab.worlds.bfcl import parity, world


@pytest.mark.parametrize("changed", [300, pytest.param(3000, marks=pytest.mark.slow)])
def test_every_answer_passes_and_changed_turns_get_one_verdict(changed: int) -> None:
    found = parity.check_parity(changed)
    assert found.answers == dict.fromkeys(("base", "miss_func", "miss_param", "long_context"), 200)
    assert found.changed == changed
    # A check that always passes, or always fails, would compare nothing.
    assert changed / 6 < found.passing < changed * 5 / 6


@pytest.mark.parametrize(
    "grade",
    [
        lambda *_: True,
        lambda self, turn, state, *_: state.graded() == self.graded(turn + 1),
        lambda self, turn, _state, shown, _made: set(self.told[turn]) <= set(shown),
    ],
    ids=["everything passes", "answers are not compared", "states are not compared"],
)
def test_another_grading_is_noticed(grade: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.Truth, "fulfilled", grade)
    with pytest.raises(VerificationError, match="does not grade as the official checker does"):
        parity.check_parity(100)


def test_the_command_says_what_was_compared(toolkit: Toolkit) -> None:
    result = toolkit("world", "check", "bfcl", "--changes", "20", "--json")
    document = result.json()
    assert document["answers"]["base"] == 200
    assert (document["verdict"], document["changed"]) == ("verified", 20)


def test_a_world_that_is_not_there_is_refused(toolkit: Toolkit) -> None:
    toolkit("world", "check", "nowhere").refused(2, "no foreign world", "bfcl")
