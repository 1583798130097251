"""The reference agent solves everything that can be solved; noise really hurts an agent that ignores it."""

import json

import pytest

from tests.golden import measure_agents
from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.episode import play
from toolkit.lab.tasks.pools import POOLS, tasks
from toolkit.noise.regimes import REGIMES


@pytest.mark.parametrize("pool", POOLS)
def test_the_reference_solves_every_clean_task_by_the_calls_of_the_plan(pool: str) -> None:
    for task in tasks(pool):
        episode = play(task, REGIMES["clean"], 0, reference, traced=True)
        assert (episode.true_success, episode.ended) == (True, "finished"), episode.task.prompt
        made = [(call.tool, call.arguments) for call in (episode.trace or ())[:-1]]
        assert made == [(call.tool, call.arguments) for call in episode.task.plan]


@pytest.mark.parametrize("pool", ["validation", "test", "diagnostic", "diagnostic_128"])
def test_the_challenge_is_always_recovered_from_within_budget(pool: str) -> None:
    for task in tasks(pool):
        episode = play(task, REGIMES["challenge"], 0, reference)
        assert (episode.true_success, episode.ended) == (True, "finished")
        first_attempts = {(e.tool, e.resource) for e in episode.exposures}
        assert len(first_attempts) == len(episode.exposures)
        assert episode.calls == len(task.plan) + len(first_attempts)


@pytest.mark.parametrize(
    ("agent", "regime"),
    [
        *(("reference", name) for name in ("faults_p025", "held_out_types")),
        *(("careless", name) for name in ("faults_p025", "held_out_types")),
        *(
            pytest.param("reference", name, marks=pytest.mark.slow)
            for name in sorted(REGIMES.keys() - {"faults_p025", "held_out_types"})
        ),
    ],
)
def test_the_measured_figures_still_hold(agent: str, regime: str) -> None:
    pinned = json.loads(measure_agents.FILE.read_text(encoding="utf-8"))
    assert measure_agents.measure(agent, regime) == pinned[agent][regime]
