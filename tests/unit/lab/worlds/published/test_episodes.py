"""The scripted agents of the published study have its authors' figures, to the last digit."""

import json
from pathlib import Path

import pytest

from toolkit.lab.worlds.published.episodes import (
    AGENTS,
    CONDITIONS,
    POOLS,
    Figures,
    figures,
    play,
    reference,
    stage,
)
from toolkit.lab.worlds.published.faults import Condition, evaluation_seed

GOLDEN = json.loads((Path(__file__).parents[4] / "golden/published_agents.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def stages(plain, words):
    return [stage(task, words) for task in plain["test"]]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("condition", ["C2_p0.25", "heldout_types_p0.25"])
def test_an_agent_has_the_published_figures(stages, condition, agent) -> None:
    found = figures(stages, CONDITIONS[condition], recovers=AGENTS[agent])
    assert list(found) == GOLDEN["test"][condition][agent]


@pytest.mark.slow
def test_both_agents_have_all_published_figures(plain, words) -> None:
    said: list[str] = []
    found = reference(plain, words, said.append)
    assert list(Figures._fields) == GOLDEN["columns"]
    assert {p: {c: {a: list(f) for a, f in b.items()} for c, b in found[p].items()} for p in found} == {
        pool: GOLDEN[pool] for pool in POOLS
    }
    assert len(said) == 12


def test_an_episode_is_the_same_whenever_it_is_played(stages) -> None:
    seed = evaluation_seed("test-00000", 1)
    once, again = (play(stages[0], CONDITIONS["C2_p0.25"], seed, recovers=True) for _ in range(2))
    assert once == again
    assert once != play(stages[0], CONDITIONS["C2_p0.25"], seed + 1, recovers=True)


def test_under_the_challenge_every_first_write_fails_and_one_agent_writes_again(stages) -> None:
    challenge, at = Condition(is_challenge=True), stages[0]
    naive, recovering = (play(at, challenge, 1, recovers=recovers) for recovers in (False, True))
    resources = {
        (call["tool"], call["args"].get("order_id"), call["args"].get("sku"))
        for call in at.task["oracle_plan"]
    }
    assert (naive.success, recovering.success) == (False, True)
    assert naive.exposures == recovering.exposures == ("transient",) * len(resources)


def test_a_budget_ends_an_episode(stages) -> None:
    hopeless = Condition(1.0, {"transient": 1.0})
    played = play(stages[0], hopeless, 1, recovers=True)
    assert (played.budget_exceeded, played.success, played.calls) == (True, False, stages[0].budget + 1)
    assert max(at.budget for at in stages) == 21
