"""The scripted agents of the published study have its authors' figures, to the last digit."""

import pytest

from toolkit.lab.worlds.published.episodes import AGENTS, CONDITIONS, counts, play, stage
from toolkit.lab.worlds.published.faults import Condition, evaluation_seed

PLACES = [
    (pool, regime, agent) for pool in ("validation", "test") for regime in CONDITIONS for agent in AGENTS
]


@pytest.fixture(scope="session")
def stages(plain, words):
    return [stage(task, words) for task in plain["test"]]


def figures(published, *place):
    """Return the registered figures of an agent."""
    names = ("episodes", "successes", "exposed", "outages", "budget_exceeded", "calls")
    (row,) = (
        row
        for row in published.rows("reference_agents")
        if (row["pool"], row["regime"], row["agent"]) == place
    )
    return {name: row[name] for name in names}


@pytest.mark.parametrize(("regime", "agent"), [("faults_p025", "recovering"), ("held_out_types", "naive")])
def test_an_agent_has_the_published_figures(stages, published, regime, agent) -> None:
    found = counts(stages, CONDITIONS[regime], recovers=AGENTS[agent])
    assert found == figures(published, "test", regime, agent)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_both_agents_have_all_published_figures(reference, published, place) -> None:
    asked = dict(zip(("pool", "regime", "agent"), place, strict=True))
    assert reference.agent(asked) == asked | figures(published, *place)


def test_the_published_figures_are_of_every_pool_noise_and_agent(published) -> None:
    rows = published.rows("reference_agents")
    assert sorted((row["pool"], row["regime"], row["agent"]) for row in rows) == sorted(PLACES)
    # As the authors print it: 0.8525 of the test episodes under faults, in 9.035 calls.
    found = figures(published, "test", "faults_p025", "recovering")
    assert (found["successes"] / found["episodes"], found["calls"] / found["episodes"]) == (0.8525, 9.035)


def test_an_episode_is_the_same_whenever_it_is_played(stages) -> None:
    seed = evaluation_seed("test-00000", 1)
    once, again = (play(stages[0], CONDITIONS["faults_p025"], seed, recovers=True) for _ in range(2))
    assert once == again
    assert once != play(stages[0], CONDITIONS["faults_p025"], seed + 1, recovers=True)


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
