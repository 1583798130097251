"""An episode's document holds everything to check it: replayed, it comes out the same or is refused."""

import copy
import json
from typing import Any

import pytest

from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.lab.episodes.agents import careless, reference
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.document import episode_document, replay
from toolkit.lab.episodes.episode import close, play
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES


def document(regime: str = "faults_p025", seed: int = 3) -> dict[str, Any]:
    episode = play(load_task("test:7"), REGIMES[regime], seed, reference, traced=True)
    return json.loads(json.dumps(episode_document(episode)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("regime", REGIMES)
def test_an_episode_comes_out_the_same(regime: str) -> None:
    for agent in (reference, careless):
        for number in range(25):
            played = play(load_task(f"validation:{number}"), REGIMES[regime], number, agent, traced=True)
            again = replay(json.loads(json.dumps(episode_document(played))))
            assert again.world == played.world
            assert again.exposures == played.exposures


@pytest.mark.parametrize(
    "arguments",
    [
        *({"order_id": {1, 2}}, {"order_id": float("nan")}, {"order_id": "\ud800"}, ("O-1",)),
        *({1: "O-1"}, {True: "O-1", "order_id": "O-1"}, {"order_id": ("O-1",)}),
    ],
)
def test_what_json_has_no_word_for_is_recorded_and_not_played_again(arguments: Any) -> None:
    desk = Desk(load_task("test:7"), REGIMES["clean"], 0, traced=True)
    desk.call("get_order", arguments)
    text = json.dumps(episode_document(close(desk)), ensure_ascii=False, allow_nan=False)
    recorded = json.loads(text.encode())
    assert [call["verbatim"] for call in recorded["calls"]] == [False]
    with pytest.raises(IncompleteError, match="call 0 cannot be made again"):
        replay(recorded)


CHANGED = {
    "answer": lambda d: d["calls"][0]["answer"].update(revision=9),
    "fault": lambda d: d["calls"][0].update(fault="outage"),
    "draw": lambda d: d["calls"][0].update(draw="00" * 32),
    "key": lambda d: d["calls"][0]["key"].__setitem__(2, 5),
    "arguments": lambda d: d["calls"][2]["arguments"].update(order_id="O-1"),
    "a call left out": lambda d: d["calls"].pop(3),
    "success": lambda d: d.update(true_success=not d["true_success"]),
    "reward": lambda d: d.update(observed_reward=1 - d["observed_reward"]),
    "exposure": lambda d: d["exposures"].pop(),
    "schedule": lambda d: d.update(schedule_seed="4"),
    "regime": lambda d: d.update(regime="clean"),
    "a field added": lambda d: d.update(note="trust me"),
    "a field removed": lambda d: d.pop("ended"),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=list(CHANGED))
def test_a_changed_document_is_refused(change: Any) -> None:
    changed = copy.deepcopy(document())
    change(changed)
    with pytest.raises(VerificationError, match="came out otherwise"):
        replay(changed)


DAMAGED = {
    "no task": lambda d: d.pop("task"),
    "another task's name": lambda d: d.update(task="test:8"),
    "a task that is none": lambda d: d.update(task="nowhere:1"),
    "a regime that is none": lambda d: d.update(regime="windy"),
    "a seed that is none": lambda d: d.update(schedule_seed="x"),
    "a seed out of range": lambda d: d.update(schedule_seed=str(1 << 64)),
    "calls that are none": lambda d: d.update(calls=[1, 2]),
    "a call without a tool": lambda d: d["calls"][0].pop("tool"),
    "calls in an object": lambda d: d.update(calls={"a": 1}),
    "a number for calls": lambda d: d.update(calls=3),
    "a list for a task": lambda d: d.update(task=["test:7"]),
    "no number": lambda d: d.update(budget=float("nan")),
    "no number in an answer": lambda d: d["calls"][0]["answer"].update(revision=float("inf")),
    "a list for a regime": lambda d: d.update(regime=["clean"]),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_document_is_refused(damage: Any) -> None:
    damaged = copy.deepcopy(document())
    damage(damaged)
    with pytest.raises(DamagedError):
        replay(damaged)


def test_an_episode_without_calls_cannot_be_played_again() -> None:
    played = play(load_task("test:7"), REGIMES["clean"], 0, reference)
    with pytest.raises(IncompleteError):
        replay(episode_document(played))
