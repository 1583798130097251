"""The published world as the embedded policy meets it: its plans, its faults, and what is told of them."""

from collections.abc import Iterator

import pytest

from toolkit.lab.policies.agent import AMBIGUOUS, INDIRECT, PLAIN
from toolkit.lab.policies.loglinear import Policy, untrained
from toolkit.lab.worlds.foreign import ForeignTask
from toolkit.lab.worlds.published import foreign
from toolkit.lab.worlds.published.episodes import CONDITIONS, Agent, play, stage
from toolkit.lab.worlds.published.faults import FaultyShop, Schedule, evaluation_seed
from toolkit.lab.worlds.world import play as play_policy
from toolkit.noise.regimes import REGIMES, Mixture, Regime

SAMPLES = range(24)


@pytest.fixture(scope="module")
def world(plain) -> Iterator[foreign.Published]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foreign, "_made", lambda: plain)
        yield foreign.Published()


class Recording(FaultyShop):
    """A shop that remembers what it was asked."""

    def call(self, tool, arguments):
        self.made = [*getattr(self, "made", ()), (tool, dict(arguments))]
        return super().call(tool, arguments)


def desk(world: foreign.Published, task: ForeignTask, regime: Regime | str = "clean", seed: int = 0):
    return world.desk(task, REGIMES[regime] if isinstance(regime, str) else regime, seed)


def test_every_plan_fulfils_its_task(world) -> None:
    for task in world.tasks("diagnostic"):
        at = desk(world, task)
        for request in task.requests:
            for call in request.plan:
                assert "error" not in at.call(call.tool, call.arguments)
            at.call("finish", {})
        episode = at.close()
        assert (episode.true_success, episode.ended, episode.calls) == (True, "finished", task.calls)


def test_the_plan_is_what_the_authors_agent_does(world, plain, words) -> None:
    for task, theirs in zip(world.tasks("test")[:40], plain["test"], strict=False):
        at = stage(theirs, words)
        shop = Recording(at.make, Schedule(0, CONDITIONS["clean"]))
        Agent(at, shop, recovers=False).play()
        planned = [(call.tool, dict(call.arguments)) for request in task.requests for call in request.plan]
        assert sorted(planned, key=str) == sorted(shop.made, key=str)
        assert task.budget == at.budget


@pytest.mark.parametrize("regime", ["clean", "faults_p010", "faults_p025", "faults_p025_outage_free"])
def test_a_regime_has_the_authors_faults(world, plain, words, regime) -> None:
    for theirs in plain["test"][:40]:
        seed, at = evaluation_seed(theirs["task_id"], 1), stage(theirs, words)
        mine, own = foreign.condition(REGIMES[regime]), CONDITIONS[regime]
        assert play(at, mine, seed, recovers=True) == play(at, own, seed, recovers=True)


def test_how_an_order_is_named_says_how_directly(world, plain) -> None:
    levels = {"id": set(), "description": set()}
    for task, theirs in zip(world.tasks("test"), plain["test"], strict=True):
        for request in task.requests:
            (level,) = {*request.levels} - {PLAIN} or {PLAIN}
            levels[theirs["reference"]].add((request.template == "partial_refund", level))
            assert len(request.levels) == len(request.plan)
            assert sum(each != PLAIN for each in request.levels) <= 1
    assert levels["id"] == {(False, PLAIN), (True, PLAIN)}
    assert {(True, INDIRECT), (False, AMBIGUOUS)} <= levels["description"]
    assert not {(True, AMBIGUOUS), (False, INDIRECT)} & levels["description"]


def test_an_outage_looks_like_a_transient_failure_and_lands_once(world) -> None:
    (task, *_), told = world.tasks("diagnostic"), []
    for fault in ("transient", "outage"):
        at = desk(world, task, Regime("always", "", 1.0, Mixture({fault: 1})))
        call = task.requests[0].plan[0]
        told.append([at.call(call.tool, call.arguments) for _ in range(2)])
        assert [each.fault for each in at.close().exposures] == [fault] * (2 if fault == "transient" else 1)
    assert told[0] == told[1]
    assert told[0][0]["error"]["code"] == "temporarily_unavailable"


def test_a_limit_says_how_long_it_is_and_ends_after_that_wait(world) -> None:
    task = world.tasks("diagnostic")[0]
    at = desk(world, task, Regime("always", "", 1.0, Mixture({"rate_limit": 1})))
    call = task.requests[0].plan[0]
    seconds = at.call(call.tool, call.arguments)["error"]["retry_after"]
    assert seconds in (15, 30, 45, 60)
    assert at.call("wait", {"seconds": seconds - 1})["revision"] == 0
    assert at.call(call.tool, call.arguments)["error"]["retry_after"] == 1


def test_a_call_beyond_the_budget_ends_the_episode(world) -> None:
    task = world.tasks("diagnostic")[0]
    at = desk(world, task)
    answers = [at.call("get_order", {"order_id": "O0001"}) for _ in range(task.budget + 2)]
    assert [each.get("error", {}).get("code") for each in answers[-3:]] == [
        None,
        "budget_exceeded",
        "episode_over",
    ]
    assert at.close().calls == task.budget


def test_a_success_is_flipped_as_the_authors_schedule_says(world) -> None:
    task = world.tasks("diagnostic")[0]
    for seed in range(30):
        at = desk(world, task, "flips_q010", seed)
        for request in task.requests:
            for call in request.plan:
                at.call(call.tool, call.arguments)
        episode = at.close()
        assert episode.true_success
        assert episode.flipped == Schedule(seed, CONDITIONS["clean"]._replace(q=0.1)).flips()


def test_an_episode_of_the_policy_comes_out_again(world) -> None:
    policy, regime = Policy(untrained(16), 16), REGIMES["faults_p025"]

    def outcomes() -> list[tuple[bool, int, str]]:
        played = [play_policy(policy, "diagnostic:1", regime, 5, n, world="published")[1] for n in SAMPLES]
        return [(each.true_success, each.calls, each.ended) for each in played]

    assert outcomes() == outcomes()
    assert {success for success, *_ in outcomes()} == {True, False}
