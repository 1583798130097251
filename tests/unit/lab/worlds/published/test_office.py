"""A language model meets the published study's world as its authors had it, in words that are made here."""

import hashlib
import random
from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from tests.unit.lab.training.language_model.small_model import RUN as PLAIN
from tests.unit.lab.worlds.published.made_words import TRAINED_ON, open_small
from toolkit.errors import DamagedError, UsageError
from toolkit.lab.evaluation.language_model import Sampling, diagnose_block, evaluate_block
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.evidence import check_published
from toolkit.lab.policies.language_model.conversation import Turn, opening_of
from toolkit.lab.task_pools import specified
from toolkit.lab.tasks.pools import digests_sha256
from toolkit.lab.training.rows import groups_at
from toolkit.lab.worlds.published.episodes import Agent, play
from toolkit.lab.worlds.published.faults import Condition, Schedule, evaluation_seed
from toolkit.lab.worlds.published.foreign import LANDED, condition
from toolkit.lab.worlds.published.office import Published, PublishedDesk
from toolkit.lab.worlds.world import for_model, foreign_rows, tools_for_model
from toolkit.noise.regimes import REGIMES
from toolkit.specification import LanguageModelSpecification
from toolkit.structs import replace

RUN = LanguageModelSpecification(**structs.asdict(PLAIN))

BROKEN = ("clean", "faults_p025", "faults_p025_outage_free", "held_out_types", "challenge")


@pytest.fixture(scope="module")
def world() -> Iterator[Published]:
    with pytest.MonkeyPatch.context() as patch:
        yield open_small(patch)


def begun(world: Published, number: int, regime: str = "clean", schedule: int = 0) -> PublishedDesk:
    task = world.tasks("validation")[number]
    return task.desk(REGIMES[regime], task.schedule_seed(schedule))


def test_a_model_reads_the_authors_prompt_task_and_tools(world: Published) -> None:
    task = for_model("published", "validation", 2)
    system, user = opening_of(task)
    assert system == {"role": "system", "content": "Run the shop."}
    assert user["content"].startswith("<task 100 ")
    assert tuple(tools_for_model("published")) == world.tools
    assert (task.task_id, task.name) == ("validation:2", "heldout-00002")


@pytest.mark.parametrize("regime", BROKEN)
def test_at_a_desk_an_agent_has_the_episode_that_it_has_without_one(world: Published, regime: str) -> None:
    for number, schedule in product(range(8), range(2)):
        desk = begun(world, number, regime, schedule)
        stage, seed = desk.stage, evaluation_seed(f"heldout-{number:05d}", schedule + 1)
        shop = SimpleNamespace(world=desk.shop.world, call=lambda tool, given, at=desk: at.call(tool, given))
        Agent(stage, shop, recovers=True).play()
        desk.call("finish", {"summary": "done"})
        episode = desk.close()
        own = play(stage, condition(REGIMES[regime]), seed, recovers=True)
        assert (episode.true_success, episode.calls, episode.schedule.seed) == (
            own.success,
            own.calls - 1,
            seed,
        )
        assert [each.fault for each in episode.exposures] == [LANDED[k] for k in own.exposures if k in LANDED]
        assert (episode.ended, episode.world_changed) == ("finished", True)


def test_a_call_is_charged_as_the_authors_charge_it(world: Published) -> None:
    desk = begun(world, 0)
    for tool, given, code, charged in (
        ("look_up", {}, "UNKNOWN_TOOL", 0),
        ("finish", {}, "INVALID_ARGUMENT", 0),
        ("wait", {"minutes": 3}, "INVALID_ARGUMENT", 1),
        ("wait", [3], "INVALID_ARGUMENT", 2),
        ("get_order", {"order_id": "O9999"}, "NOT_FOUND", 3),
    ):
        assert (desk.call(tool, given)["error"]["code"], desk.calls) == (code, charged)
    assert desk.call("search_customers", {"query": "@"})["next_offset"] == 5
    while desk.calls < desk.task.budget:
        assert desk.call("wait", {"seconds": 1})["waited_seconds"] == 1
    assert desk.ended is None
    assert desk.call("wait", {"seconds": 1})["error"]["code"] == "BUDGET_EXCEEDED"
    assert desk.call("finish", {"summary": "x"})["error"]["code"] == "EPISODE_FINISHED"
    assert (desk.close().ended, desk.close().true_success, desk.calls) == (
        "budget_exceeded",
        False,
        7 + 2 * 2,
    )


def test_an_answer_is_written_in_the_order_of_its_names(world: Published) -> None:
    answer = begun(world, 0).call("get_order", {"order_id": "O0001"})
    assert list(answer) == sorted(answer)
    assert list(answer["items"][0]) == ["quantity", "sku", "unit_price_cents"]


def test_arguments_that_do_not_fit_are_no_attempt(world: Published) -> None:
    """They reach nobody: the first attempt that does is the one that the challenge refuses."""
    desk = begun(world, 0, "challenge")
    refused = [
        desk.call("cancel_order", given)
        for given in ({"order": "O0001"}, {"order_id": "O0001", "reason": "x"})
    ]
    assert [answer["error"]["code"] for answer in refused] == ["INVALID_ARGUMENT", "SERVICE_UNAVAILABLE"]


def test_a_success_is_flipped_where_the_authors_draw_it(world: Published) -> None:
    flipped = 0
    for number in range(40):
        desk = begun(world, number, "flips_q010")
        for call in desk.stage.task["oracle_plan"]:
            desk.call(call["tool"], call["args"])
        episode = desk.close()
        is_drawn = Schedule(evaluation_seed(f"heldout-{number:05d}", 1), Condition(q=0.1)).flips()
        assert (episode.true_success, episode.flipped) == (True, is_drawn)
        flipped += episode.flipped
    assert 0 < flipped < 10


def seed_of(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("|".join(map(str, parts)).encode()).digest()[:8], "big")


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("arm", ["paired", "independent", "blocking", "blocking_paired"])
def test_groups_have_the_tasks_and_schedules_that_the_authors_draw(arm: str) -> None:
    run = replace(RUN, world="published", arm=arm, prompts_per_step=4, group_size=3, seed=1)
    order = list(range(TRAINED_ON))
    random.Random("rows-1").shuffle(order)  # noqa: S311 - as theirs
    for step in (1, 7):
        groups = groups_at(run, step)
        assert [group.position for group in groups] == [0, 1, 2, 3]
        for group in groups:
            is_doubled = arm.startswith("blocking")
            row = (step - 1) * 2 + group.position // 2 if is_doubled else (step - 1) * 4 + group.position
            shared = seed_of("schedule", 1, "C2", row) % 2**31
            own = [
                seed_of("independent", shared, group.position * 3 + n, step - 1, "train") for n in range(3)
            ]
            is_quiet = is_doubled and group.position % 2 == 0
            assert group.task == order[row % TRAINED_ON]
            assert group.regime == ("clean" if is_quiet else "faults_p025")
            is_paired = arm.endswith("paired") and not is_quiet
            assert group.schedule_seeds == ((shared,) * 3 if is_paired else tuple(own))


class Hasty:
    """Ends every episode at once."""

    def turns(self, conversations):
        return [Turn((("finish", {"summary": "x"}),)) for _ in conversations]


@pytest.mark.usefixtures("world")
def test_evaluations_meet_the_authors_schedules() -> None:
    sampling = Sampling("x", 0, 1, world="published")
    played = EvaluationSet("final", "test", "faults_p025", 2, 2, world="published")
    rows = evaluate_block(Hasty(), played, range(2), sampling)
    seeds = [seed_of("eval", f"test-{task:05d}", index) % 2**31 for task in range(2) for index in (1, 2)]
    assert [row["schedule_seed"] for row in rows] == seeds
    assert {(row["ended"], row["calls"], row["true_success"]) for row in rows} == {("finished", 0, False)}
    tables = diagnose_block(Hasty(), "faults_p025", "diagnostic", range(1), sampling)
    assert [row["schedule_seed"] for row in tables][:2] == [
        seed_of("eval", "diagnostic-00000", index) % 2**31 for index in (1, 2)
    ]


def test_registered_schedules_are_held_against_the_authors_seeds() -> None:
    row = {"pool": "validation", "task": 7, "schedule": 1}
    runs = {"x": replace(RUN, world="published")}

    def study(seed: int) -> Any:
        return SimpleNamespace(has=lambda _: True, rows=lambda _: [row | {"schedule_seed": seed}])

    check_published(study(seed_of("eval", "heldout-00007", 2) % 2**31), runs)
    with pytest.raises(DamagedError, match="schedule_seed"):
        check_published(study(evaluation_seed("validation:7", 1)), runs)
    check_published(study(0), {"x": RUN})


@pytest.mark.usefixtures("world")
def test_registers_have_digests_of_tasks_and_no_word_of_them() -> None:
    rows = foreign_rows("published", "diagnostic")
    assert specified("diagnostic", digests_sha256([row["sha256"] for row in rows]), "published") == rows
    assert not any("<" in str(value) for row in rows for value in row.values())
    assert rows[0]["prompt"].startswith("diagnostic-00000, ")


@pytest.mark.usefixtures("world")
def test_what_the_world_does_not_have_is_refused() -> None:
    for refused, named in (
        (lambda: foreign_rows("published", "diagnostic_128"), "no pool"),
        (lambda: for_model("bfcl_turns", "train", 0), "no language model is trained in bfcl_turns"),
    ):
        with pytest.raises(UsageError, match=named):
            refused()
