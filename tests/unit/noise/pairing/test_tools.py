"""Noise in front of the methods of an object."""

import pytest

from toolkit.errors import UsageError
from toolkit.noise.draws import Schedule
from toolkit.noise.regimes import REGIMES, Mixture, Regime
from toolkit.noise.tools import Fault
from toolkit.noise.trainers.tools import Noisy, tool


class Notes:
    """A world of texts by name."""

    def __init__(self) -> None:
        self.texts = {"a": "one\ntwo\nthree\n"}
        self.written = 0

    @tool("read", "name")
    def show(self, name: str) -> dict[str, str]:
        return {"name": name, "text": self.texts[name]}

    @tool("list", shows="names")
    def names(self) -> dict[str, list[str]]:
        return {"names": sorted(self.texts)}

    @tool("write", "name", repeatable=True)
    def put(self, name: str, text: str = "") -> dict[str, bool]:
        self.written += 1
        self.texts[name] = text
        return {"done": True}


def always(fault: Fault) -> Regime:
    return Regime("always", "", 1.0, Mixture({fault: 1}))


def test_under_no_noise_every_answer_is_the_tools() -> None:
    notes, plain = Noisy(Notes(), REGIMES["clean"], 0), Notes()
    assert [notes.show("a"), notes.names(), notes.put(name="b")] == [
        plain.show("a"),
        plain.names(),
        plain.put("b"),
    ]
    assert notes.written == 1
    assert notes.session.exposures == []


def test_a_transient_fault_is_answered_in_the_tools_place() -> None:
    notes = Noisy(Notes(), always("transient"), 0)
    assert notes.put("b", "text")["error"]["code"] == "temporarily_unavailable"
    assert notes.written == 0


def test_a_timeout_after_commit_is_applied_and_reported_as_none() -> None:
    notes = Noisy(Notes(), always("timeout_after_commit"), 0)
    assert notes.put("b", "text")["error"]["code"] == "timeout"
    assert notes.texts["b"] == "text"


def test_a_stale_read_shows_the_state_before_the_last_write() -> None:
    notes = Noisy(Notes(), always("stale_read"), 0)
    notes.put("a", "new")
    assert notes.show("a")["text"] == "one\ntwo\nthree\n"
    assert [exposure.changed for exposure in notes.session.exposures] == [True]
    notes.put("b", "other")
    assert notes.show("a")["text"] == "new"
    assert [exposure.changed for exposure in notes.session.exposures] == [True, False]


def test_a_field_is_lost_and_a_list_is_cut() -> None:
    notes = Noisy(Notes(), always("field_dropout"), 0)
    assert len(notes.show("a")) == 1
    listing = Noisy(Notes(), always("truncation"), 0)
    listing.put("b")
    listing.put("c")
    answer = listing.names()
    assert answer["has_more"]
    assert answer["names"] == ["a", "b", "c"][: len(answer["names"])]
    assert len(answer["names"]) < 3


def test_what_a_tool_raises_is_its_own() -> None:
    notes = Noisy(Notes(), always("field_dropout"), 0)
    with pytest.raises(KeyError):
        notes.show("none")
    assert [exposure.changed for exposure in notes.session.exposures] == [False]


def test_the_key_is_the_named_argument_however_it_is_passed() -> None:
    notes = Noisy(Notes(), REGIMES["faults_p025"], 3)
    notes.put("b")
    notes.put(name="b")
    keys = [call.key for call in notes.session.calls]
    assert keys[0] == ("b", 0)
    assert Schedule(3).draw("put", "b", 0).digest != Schedule(3).draw("put", "b", 1).digest


def test_a_class_that_declares_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="declares no tool"):
        Noisy(object(), REGIMES["clean"], 0)
