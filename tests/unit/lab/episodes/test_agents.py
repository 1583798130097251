"""The reference agent solves everything that can be solved; noise really hurts an agent that ignores it."""

import json
from functools import cache
from itertools import pairwise
from statistics import mean
from typing import Any

import pytest

from tests.golden import measure_agents
from tests.unit.lab.episodes.play import only
from toolkit.lab.episodes.agents import careless, reference
from toolkit.lab.episodes.episode import play
from toolkit.lab.tasks.pools import POOLS, load_task, tasks
from toolkit.noise.regimes import REGIMES
from toolkit.noise.tools import Fault
from toolkit.seeds import evaluation_seed

AGENTS = {"reference": reference, "careless": careless}


@cache
def success(agent: str, fault: Fault) -> float:
    """Return an agent's success under one fault type alone, on 150 tasks × 4 schedules."""
    return mean(
        play(task, only(fault, 0.25), evaluation_seed(task.task_id, schedule), AGENTS[agent]).true_success
        for task in (load_task(f"validation:{n}") for n in range(150))
        for schedule in range(4)
    )


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


def test_the_reference_learns_from_answers_alone() -> None:
    """Played against answers recorded beforehand, without any world, it makes the same calls."""
    task = load_task("test:5")
    recorded = play(task, REGIMES["faults_p025"], 7, reference, traced=True).trace or ()
    answers = iter(recorded)
    made: list[tuple[str, Any]] = []

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        made.append((tool, arguments))
        return next(answers).answer

    reference(task.prompt, call)
    assert made == [(record.tool, record.arguments) for record in recorded]


@pytest.mark.parametrize(
    ("fault", "careless_at_most", "reference_at_least"),
    [
        ("transient", 0.30, 0.95),
        ("rate_limit", 0.30, 0.75),
        ("stale_read", 0.89, 0.99),
        ("truncation", 0.89, 0.99),
        ("timeout_after_commit", 0.89, 0.99),
        ("field_dropout", 0.85, 0.98),
    ],
)
def test_every_fault_alone_costs_a_careless_agent_and_can_be_recovered_from(
    fault: Fault, careless_at_most: float, reference_at_least: float
) -> None:
    assert success("careless", fault) <= careless_at_most
    assert success("reference", fault) >= reference_at_least


def test_an_outage_cannot_be_recovered_from() -> None:
    assert success("reference", "outage") == success("careless", "outage") <= 0.30


@pytest.mark.parametrize(
    ("agent", "regime"),
    [*(("reference", name) for name in REGIMES), ("careless", "faults_p025"), ("careless", "held_out_types")],
)
def test_the_measured_figures_still_hold(agent: str, regime: str) -> None:
    pinned = json.loads(measure_agents.FILE.read_text(encoding="utf-8"))
    assert measure_agents.measure(agent, regime) == pinned[agent][regime]


def test_the_reference_waits_as_long_as_it_is_told() -> None:
    waits = 0
    for number in range(60):
        episode = play(load_task(f"test:{number}"), REGIMES["faults_p025"], number, reference, traced=True)
        trace = episode.trace or ()
        for told, then in pairwise(trace):
            if then.tool == "wait":
                assert then.arguments == {"seconds": told.answer["error"]["retry_after"]}
                waits += 1
    assert waits > 5
