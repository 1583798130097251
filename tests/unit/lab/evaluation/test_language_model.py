"""Evaluation sets and the diagnostic, held as conversations: the same rows, block by block."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from toolkit.errors import UsageError
from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.episode import play
from toolkit.lab.evaluation.language_model import Sampling, blocks, diagnose, diagnose_block, evaluate
from toolkit.lab.evaluation.play import SharedSamples
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.policies.language_model.conversation import Conversation, Turn
from toolkit.lab.policies.language_model.opening import ScriptedEngine
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.registers.row_tables import EPISODES, LUCK_SHARE, OF_IMPORTS
from toolkit.seeds import evaluation_seed, sample_seed, shared_seed

ENGINE = ScriptedEngine("reference")
NOISY = EvaluationSet("final", "validation", "faults_p025", 24, 3)
SAMPLING = Sampling("r", 0, 5)
SHARED = SharedSamples("study f00d")


@dataclass
class Mute:
    """Says nothing, and remembers with which seeds it was to say it."""

    shares_samples: bool = True
    seeds: list[list[int]] = field(default_factory=list)

    def turns(self, conversations: Sequence[Conversation]) -> list[Turn]:
        self.seeds.append([conversation.seed for conversation in conversations])
        return [Turn(()) for _ in conversations]


def test_tasks_come_in_blocks_of_one_size() -> None:
    assert blocks(11, 8) == (range(8), range(8, 11))
    assert blocks(65, 1) == (range(64), range(64, 65))
    assert blocks(3, 64) == blocks(3, 100) == (range(1), range(1, 2), range(2, 3))


def test_a_row_says_what_became_of_the_agents_own_episode() -> None:
    rows = evaluate(ENGINE, NOISY, SAMPLING)
    assert [(row["task"], row["schedule"]) for row in rows] == [(t, k) for t in range(24) for k in range(3)]
    assert {frozenset(row) for row in rows} == {frozenset(EPISODES.column_names) - {*OF_IMPORTS}}
    for row in rows:
        task = load_task(f"validation:{row['task']}")
        own = play(task, REGIMES["faults_p025"], evaluation_seed(task.task_id, row["schedule"]), reference)
        found = (row["true_success"], row["calls"], row["ended"], row["schedule_seed"])
        assert found == (own.true_success, own.calls, own.ended, own.schedule.seed)


def test_the_conversations_of_a_block_are_held_side_by_side() -> None:
    engine = Mute()
    evaluate(engine, NOISY, SAMPLING)
    assert [len(seeds) for seeds in engine.seeds] == [63, 9]


def test_what_is_sampled_follows_from_run_step_set_task_and_schedule() -> None:
    engine = Mute()
    evaluate(engine, NOISY._replace(tasks=1), SAMPLING)
    expected = [sample_seed(5, 0, "final/faults_p025", ("validation:0", k, 0)) for k in range(3)]
    assert engine.seeds == [expected]


def test_tasks_of_one_request_are_played_under_seeds_of_their_own_place() -> None:
    engine = Mute()
    alone = NOISY._replace(tasks=2, schedules=2, sub_requests=1)
    rows = evaluate(engine, alone, SAMPLING)
    played = [(task, schedule) for task in alone.positions for schedule in (0, 1)]
    assert [(row["task"], row["schedule"]) for row in rows] == played
    expected = [sample_seed(5, 0, "final/faults_p025", (f"validation:{t}", k, 0)) for t, k in played]
    assert engine.seeds == [expected]


@pytest.mark.parametrize("sampling", [Sampling("r", 0, SHARED), Sampling("other run", 80, SHARED, 3)])
def test_shared_samples_follow_from_set_task_and_schedule_alone(sampling: Sampling) -> None:
    engine = Mute()
    evaluate(engine, NOISY._replace(tasks=30), sampling)
    places = [(f"validation:{task}", schedule, 0) for task in range(30) for schedule in range(3)]
    expected = [shared_seed("study f00d", "final/faults_p025", place) for place in places]
    assert [seed for seeds in engine.seeds for seed in seeds] == expected


def test_an_engine_that_cannot_share_samples_is_refused() -> None:
    engine = Mute(shares_samples=False)
    with pytest.raises(UsageError, match="cannot share its samples") as raised:
        evaluate(engine, NOISY, Sampling("r", 0, SHARED))
    assert raised.value.found == "Mute"
    assert engine.seeds == []
    evaluate(engine, NOISY, SAMPLING)


def test_a_table_holds_eight_outcomes_under_each_of_its_eight_schedules() -> None:
    rows = diagnose_block(ENGINE, "faults_p025", "diagnostic", range(3), SAMPLING)
    assert [(row["task"], row["schedule"]) for row in rows] == [(t, k) for t in range(3) for k in range(8)]
    for row in rows:
        assert set(row) == set(LUCK_SHARE.column_names)
        task = load_task(f"diagnostic:{row['task']}")
        seed = evaluation_seed(task.task_id, row["schedule"])
        own = play(task, REGIMES["faults_p025"], seed, reference)
        assert row["schedule_seed"] == seed
        assert row["true_successes"] == [own.true_success] * 8


def test_the_samples_of_a_table_are_drawn_apart() -> None:
    engine = Mute()
    diagnose(engine, "faults_p025", "diagnostic", 1, SAMPLING)
    (seeds,) = engine.seeds
    assert len(set(seeds)) == 64
    assert seeds[9] == sample_seed(5, 0, "diagnostic", ("diagnostic:0", 1, 1))
