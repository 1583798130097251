"""The pools: sizes, laws, disjointness, and that nothing but the name of a task enters it."""

import json

import pytest

from tests.conftest import CHECKOUT
from toolkit.errors import UsageError
from toolkit.lab.backoffice.tools import TOOLS, execute
from toolkit.lab.backoffice.world import snapshot, untouched
from toolkit.lab.episodes.brief import read_prompt
from toolkit.lab.tasks.pools import POOLS, load_task, pool_sha256, positions, tasks
from toolkit.lab.tasks.task import Task, budget
from toolkit.lab.tasks.templates import REQUESTS_PER_TASK


@pytest.fixture(scope="module")
def pools() -> dict[str, list[Task]]:
    return {name: list(tasks(name)) for name in POOLS}


@pytest.fixture(scope="module")
def every(pools: dict[str, list[Task]]) -> list[Task]:
    return [task for pool in pools.values() for task in pool]


def test_the_pools_have_their_sizes_and_are_those_that_are_pinned(pools: dict[str, list[Task]]) -> None:
    assert [len(pool) for pool in pools.values()] == [2000, 300, 300, 16, 128]
    pinned = json.loads((CHECKOUT / "tests/golden/pools.json").read_text(encoding="utf-8"))
    assert {name: pool_sha256(pool) for name, pool in pools.items()} == pinned


def test_tasks_of_a_number_of_sub_requests_are_found_in_order(pools: dict[str, list[Task]]) -> None:
    for name, pool in pools.items():
        by_number = [positions(name, number) for number, _ in REQUESTS_PER_TASK]
        asked = [len(read_prompt(task.prompt).errands) for task in pool]
        for number, found in enumerate(by_number, start=1):
            assert found == tuple(at for at, requests in enumerate(asked) if requests == number)
        assert sorted(at for found in by_number for at in found) == list(positions(name))


def test_the_budget_is_7_plus_2n_at_most_21_and_lets_every_write_be_sent_twice(every: list[Task]) -> None:
    assert [budget(n) for n in (1, 2, 6, 7, 8)] == [9, 11, 19, 21, 21]
    for task in every:
        assert task.writes == sum(TOOLS[call.tool].kind == "write" for call in task.plan)
        assert len(task.plan) + task.writes <= task.budget == budget(task.writes)


def test_a_plan_carried_out_call_by_call_gives_the_expected_end_state(every: list[Task]) -> None:
    """The generator carries out writes alone; here reads are made too, and every call must be legal."""
    for task in every[::7]:
        world = untouched(task.base)
        for call in task.plan:
            tool = TOOLS[call.tool]
            arguments = {p.name: call.arguments.get(p.name, p.default) for p in tool.parameters}
            world, _ = execute(tool, world, arguments)
        assert snapshot(world) == {**task.base.records, **task.expected}
        assert world.revision == task.writes


def test_a_task_is_the_same_alone_and_in_its_pool(pools: dict[str, list[Task]]) -> None:
    for name in POOLS:
        for task in (pools[name][0], pools[name][-1]):
            assert load_task(task.task_id) == task


WRONG = "| train| train:| train:-1| train:2000| train:٣| train:1:2| nowhere:0| train:0x1| train: 1"


@pytest.mark.parametrize("name", WRONG.split("| "))
def test_a_name_that_is_no_task_is_wrong_usage(name: str) -> None:
    with pytest.raises(UsageError):
        load_task(name)


def test_a_pool_that_is_none_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="there is no pool"):
        next(tasks("nowhere"))
