"""Foreign worlds: the desk, the deal of pools, and a missing package."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds import world
from toolkit.lab.worlds.foreign import ForeignDesk, ForeignTask, Request, deal, in_envelope
from toolkit.noise.regimes import REGIMES, Mixture, Regime
from toolkit.noise.tools import Fault, Tool
from toolkit.registers.study import open_study, specification_document


class Shelf:
    """A state: a list of names."""

    def __init__(self) -> None:
        self.names = ["a", "b", "c"]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        if tool == "put":
            self.names.append(arguments["name"])
            return "done"
        return {"names": list(self.names)}


class Shelves:
    """A world in which a request is fulfilled if its name was put there once."""

    declaration = in_envelope([Tool("names", "list", shows="names"), Tool("put", "write", "name")], "shelves")

    def tasks(self, _pool: str) -> Sequence[ForeignTask]:
        plans = [(Call("put", {"name": name}),) for name in "xy"]
        requests = tuple(Request(f"Put {plan[0].arguments['name']}.", "open_ticket", plan) for plan in plans)
        return (ForeignTask("test:0", "test", 0, "shelf", requests, 2, 0, (0, 1)),)

    def begin(self, _task: ForeignTask) -> Shelf:
        return Shelf()

    def fulfilled(self, _task, request, state, _shown, _made) -> bool:
        return bool(state.names.count("xy"[request]) == 1)


def desk(regime: Regime = REGIMES["clean"]) -> ForeignDesk:
    world = Shelves()
    return ForeignDesk(world, world.tasks("test")[0], regime, 0)


def always(fault: Fault) -> Regime:
    return Regime("always", "", 1.0, Mixture({fault: 1}))


def test_every_answer_stands_in_an_envelope_with_the_number_of_writes() -> None:
    at = desk()
    assert at.call("names", {}) == {"revision": 0, "result": {"names": ["a", "b", "c"]}}
    assert at.call("put", {"name": "x"}) == {"revision": 1, "result": "done"}
    assert at.call("wait", {"seconds": 1}) == {"waited": 1, "revision": 1}
    assert at.call("shelve", {})["error"]["code"] == "unknown_tool"


def test_a_stale_read_shows_the_state_and_the_number_before_the_last_write() -> None:
    at = desk(always("stale_read"))
    at.call("put", {"name": "x"})
    at.call("put", {"name": "y"})
    assert at.call("names", {}) == {"revision": 1, "result": {"names": ["a", "b", "c", "x"]}}
    assert at.call("wait", {"seconds": 1})["revision"] == 2


def test_a_cut_list_is_marked_in_the_envelope() -> None:
    answer = desk(always("truncation")).call("names", {})
    assert answer["has_more"]
    assert 1 <= len(answer["result"]["names"]) < 3


def test_a_write_that_timed_out_was_applied() -> None:
    at = desk(always("timeout_after_commit"))
    assert at.call("put", {"name": "x"})["error"]["code"] == "timeout"
    assert at.call("wait", {"seconds": 1})["revision"] == 1


def test_each_request_is_graded_when_it_ends_and_all_have_to_be_fulfilled() -> None:
    at = desk()
    at.call("put", {"name": "x"})
    assert at.call("finish", {}) == {"finished": True}
    assert at.ended is None
    at.call("put", {"name": "y"})
    at.call("finish", {})
    assert at.ended == "finished"
    assert at.call("names", {})["error"]["code"] == "episode_over"
    episode = at.close()
    assert (episode.true_success, episode.calls, episode.world_changed) == (True, 2, True)


@pytest.mark.parametrize("calls", [["x"], ["y"], ["x", None, "z"], [None, "x", "y"], []])
def test_what_is_missing_or_late_fails(calls: list[str | None]) -> None:
    at = desk()
    for name in calls:
        at.call(*("finish", {}) if name is None else ("put", {"name": name}))
    episode = at.close()
    assert not episode.true_success
    assert episode.ended == "stopped"


def test_a_call_beyond_the_budget_ends_the_episode() -> None:
    at = desk()
    assert at.task.budget == 3 + 2 * 2
    for _ in range(7):
        assert "error" not in at.call("names", {})
    assert at.call("names", {})["error"]["code"] == "budget_exceeded"
    assert at.close().ended == "budget_exceeded"


def test_a_flip_turns_a_success_and_nothing_else() -> None:
    flipped = Regime("flips", "", flip_rate=1.0)
    at = desk(flipped)
    for name in "xy":
        at.call("put", {"name": name})
        at.call("finish", {})
    episode = at.close()
    assert (episode.true_success, episode.flipped, episode.observed_reward) == (True, True, 0)
    failed = desk(flipped).close()
    assert (failed.true_success, failed.flipped) == (False, False)


def test_sources_are_dealt_out_whole_and_to_the_last() -> None:
    sources = [str(number // 3) for number in range(90)]
    dealt = deal(sources, "test")
    assert sorted(number for numbers in dealt.values() for number in numbers) == list(range(90))
    owners = {
        source: {pool for pool in dealt for n in dealt[pool] if sources[n] == source} for source in sources
    }
    assert all(len(pools) == 1 for pools in owners.values())
    assert [len(numbers) for numbers in dealt.values()] == [45, 21, 24]


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
