"""The pools: sizes, laws, disjointness, and that nothing but the name of a task enters it."""

import json
from collections import Counter

import pytest
from scipy import stats

from tests.conftest import CHECKOUT
from toolkit.canonical import canonical
from toolkit.errors import UsageError
from toolkit.lab.backoffice.records import Customer, Order, Shipment, Ticket
from toolkit.lab.backoffice.tools import TOOLS, execute
from toolkit.lab.backoffice.world import snapshot, untouched
from toolkit.lab.episodes.brief import read_prompt
from toolkit.lab.tasks.pools import POOLS, load_task, pool_sha256, positions, tasks
from toolkit.lab.tasks.task import Task, budget, task_document
from toolkit.lab.tasks.templates import FORMS, REQUESTS_PER_TASK, WEIGHTS


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


def test_no_two_pools_share_a_customer_or_a_world_seed(pools: dict[str, list[Task]]) -> None:
    seen: dict[object, str] = {}
    for name, pool in pools.items():
        for task in pool:
            people = [record for record in task.base.records.values() if isinstance(record, Customer)]
            marks = {task.world_seed, *(c.customer_id for c in people), *(c.email for c in people)}
            for mark in marks | {c.name.split()[1] for c in people}:
                assert seen.setdefault(mark, name) == name


def test_no_two_tasks_share_a_world_seed_a_customer_or_a_prompt(every: list[Task]) -> None:
    identifiers = [key for task in every for key in task.base.records if key.startswith("C-")]
    for marks in ([task.world_seed for task in every], [task.prompt for task in every], identifiers):
        assert len(set(marks)) == len(marks)


def test_sub_requests_and_templates_follow_their_weights(pools: dict[str, list[Task]]) -> None:
    drawn = [task for name in ("train", "validation", "test") for task in pools[name]]
    numbers = Counter(len(task.templates) for task in drawn)
    assert fits([numbers[n] for n, _ in REQUESTS_PER_TASK], [weight for _, weight in REQUESTS_PER_TASK])
    templates = Counter(template for task in drawn for template in task.templates)
    assert fits([templates[name] for name, _ in WEIGHTS], [weight for _, weight in WEIGHTS])


def fits(counts: list[int], weights: list[int]) -> bool:
    expected = [sum(counts) * weight / sum(weights) for weight in weights]
    return bool(stats.chisquare(counts, expected).pvalue > 1e-3)


def test_tasks_of_a_number_of_sub_requests_are_found_in_order(pools: dict[str, list[Task]]) -> None:
    for name, pool in pools.items():
        by_number = [positions(name, number) for number, _ in REQUESTS_PER_TASK]
        asked = [len(read_prompt(task.prompt).errands) for task in pool]
        for number, found in enumerate(by_number, start=1):
            assert found == tuple(at for at, requests in enumerate(asked) if requests == number)
        assert sorted(at for found in by_number for at in found) == list(positions(name))


def test_every_form_of_every_template_is_met(every: list[Task]) -> None:
    met = {pair for task in every for pair in zip(task.templates, task.forms, strict=True)}
    assert met == {(template, form.name) for template, forms in FORMS.items() for form in forms}


def test_the_diagnostic_pools_have_two_to_four_writes(pools: dict[str, list[Task]]) -> None:
    for name in ("diagnostic", "diagnostic_128"):
        assert {task.writes for task in pools[name]} == {2, 3, 4}


def test_plans_take_about_6_6_calls_on_average(pools: dict[str, list[Task]]) -> None:
    drawn = [len(task.plan) for name in ("train", "validation", "test") for task in pools[name]]
    assert 6.5 < sum(drawn) / len(drawn) < 6.7


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


def test_tasks_change_orders_and_make_shipments_and_tickets_alone(every: list[Task]) -> None:
    for task in every:
        base = task.base.records
        assert any(base.get(key) != record for key, record in task.expected.items())
        assert {type(record) for record in task.expected.values()} >= ({Order} if task.writes > 3 else set())
        new = task.expected.keys() - base.keys()
        assert all(isinstance(task.expected[key], Shipment | Ticket) for key in new)
        orders = [(r.customer_id, r.placed_on) for r in base.values() if isinstance(r, Order)]
        assert len(set(orders)) == len(orders), "an order is named by its date"


def test_a_task_is_the_same_alone_and_in_its_pool(pools: dict[str, list[Task]]) -> None:
    for name in POOLS:
        for task in (pools[name][0], pools[name][-1]):
            assert load_task(task.task_id) == task


def test_the_digest_covers_prompt_world_plan_and_expectation(pools: dict[str, list[Task]]) -> None:
    document = task_document(pools["validation"][0])
    assert {"prompt", "world", "plan", "expected", "budget"} <= document.keys()
    assert json.loads(canonical(document)) == document


WRONG = "| train| train:| train:-1| train:2000| train:٣| train:1:2| nowhere:0| train:0x1| train: 1"


@pytest.mark.parametrize("name", WRONG.split("| "))
def test_a_name_that_is_no_task_is_wrong_usage(name: str) -> None:
    with pytest.raises(UsageError):
        load_task(name)


def test_a_pool_that_is_none_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="there is no pool"):
        next(tasks("nowhere"))
