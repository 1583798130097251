"""The grader: field by field, collateral damage found, the overlay as good as the whole world."""

from typing import Any

import pytest

from tests.unit.lab.episodes.play import code, task_with
from toolkit.lab.backoffice.records import Order, Product, Shipment, Ticket
from toolkit.lab.backoffice.world import World
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.episode import Difference, changed, close, differences, succeeded
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.tasks.task import Call, Task
from toolkit.noise.regimes import REGIMES
from toolkit.structs import replace

CLEAN = REGIMES["clean"]


def carried_out(task: Task, *more: Call | tuple[str, dict[str, Any]]) -> Desk:
    """Make the calls of the plan, and then further ones."""
    at = Desk(task, CLEAN, 0)
    for tool, arguments in (*task.plan, *more):
        assert code(at.call(tool, arguments)) is None
    return at


@pytest.mark.parametrize("template", ["cancel_pending", "ship_reserved", "open_ticket_no_order"])
def test_doing_nothing_fails_and_leaves_the_world_unchanged(template: str) -> None:
    at = Desk(task_with(template), CLEAN, 0)
    assert not succeeded(at.task, at.world)
    assert not changed(at.world)
    assert close(at).ended == "stopped"


def test_every_record_that_is_missing_is_named() -> None:
    task = task_with("ship_reserved")
    (key,) = (key for key, record in task.expected.items() if isinstance(record, Shipment))
    world = World(task.base, {name: record for name, record in task.expected.items() if name != key}, 1)
    assert differences(task, world) == [Difference(key, "record", task.expected[key], None)]


@pytest.mark.parametrize("template", ["partial_refund", "open_ticket", "open_ticket_no_order"])
def test_a_duplicated_write_is_a_failure(template: str) -> None:
    task = task_with(template)
    write = task.plan[-1]
    if write.tool == "issue_refund":
        write = write._replace(arguments={**write.arguments, "amount_cents": 1})
    at = carried_out(task, write)
    assert not succeeded(task, at.world)
    assert differences(task, at.world)


def test_a_change_of_another_record_is_collateral_damage() -> None:
    task = task_with("cancel_pending")
    customer = task.base.customers[0][0].customer_id
    ticket = {"customer_id": customer, "category": "other", "priority": "low", "summary": "unasked"}
    orders = (record for record in task.base.records.values() if isinstance(record, Order))
    other = next(o for o in orders if o.status in {"pending", "paid"} and o.order_id not in task.expected)
    address = {"street": "1 A Road", "city": "Bath", "postal_code": "B", "country": "C"}
    for call, record, field in (
        (("create_ticket", ticket), customer, "record"),
        (("update_shipping_address", {"order_id": other.order_id, **address}), other.order_id, "address"),
    ):
        at = carried_out(task, call)
        assert not succeeded(task, at.world)
        assert [(d.record, d.field) for d in differences(task, at.world)] == [(record, field)]


# What is free text, and the records' own keys, which a write cannot change.
UNGRADED = {"ticket_id", "summary"}


def _otherwise(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    if value is None:
        return "something"
    # Lines, or stock by warehouse: the last field of the last one.
    *others, last = value
    name = last._fields[-1]
    return (*others, last._replace(**{name: _otherwise(getattr(last, name))}))


def one_field_off() -> list[tuple[Task, str, str]]:
    """Return, for each kind of record, one task that changes such a record, the record and each field."""
    cases, seen = [], set()
    for number in range(200):
        task = load_task(f"train:{number}")
        for key, record in task.expected.items():
            if type(record) not in seen:
                seen.add(type(record))
                cases += [(task, key, name) for name in record._fields if name not in UNGRADED]
    assert seen == {Order, Product, Shipment, Ticket}
    return cases


@pytest.mark.parametrize(("task", "key", "name"), one_field_off(), ids=lambda value: str(value)[:20])
def test_an_end_state_with_one_field_off_is_a_failure(task: Task, key: str, name: str) -> None:
    right = task.expected[key]
    value = getattr(right, name)
    wrong = value._replace(street="elsewhere") if name == "address" else _otherwise(value)
    world = World(task.base, {**task.expected, key: right._replace(**{name: wrong})}, 1)
    assert not succeeded(task, world)
    assert differences(task, world)


def test_an_accent_may_be_composed_or_not() -> None:
    task = task_with("address_change")
    order_id = next(c.arguments["order_id"] for c in task.plan if c.tool == "update_shipping_address")
    order = task.expected[order_id]
    assert isinstance(order, Order)
    composed, other = (
        order._replace(address=order.address._replace(street=s)) for s in ("1 Rué", "1 Rue\u0301")
    )
    accented = replace(task, expected={order_id: composed})
    assert succeeded(accented, World(task.base, {order_id: other}, 1))


def test_a_missing_write_is_named_with_both_sides() -> None:
    at = Desk(task_with("cancel_pending"), CLEAN, 0)
    order_id = at.task.plan[-1].arguments["order_id"]
    assert differences(at.task, at.world) == [Difference(order_id, "status", "cancelled", "pending")]


def test_text_is_compared_after_normalization() -> None:
    task = task_with("address_change")
    (write,) = (call for call in task.plan if call.tool == "update_shipping_address")
    at = Desk(task, CLEAN, 0)
    spaced = {
        k: f"  {v.upper()} ".replace(" ", "  ") if k != "order_id" else v for k, v in write.arguments.items()
    }
    at.call("update_shipping_address", spaced)
    assert at.world.changes != task.expected
    assert succeeded(task, at.world)


def test_the_summary_and_the_identifier_of_a_ticket_do_not_count_but_its_category_does() -> None:
    task = task_with("open_ticket_no_order")
    write = task.plan[-1]
    for change in ({"summary": "other words"}, {"priority": "low"}, {"category": "other"}):
        at = Desk(task, CLEAN, 0)
        at.call("create_ticket", {**write.arguments, **change})
        same = all(write.arguments[name] == value for name, value in change.items())
        assert succeeded(task, at.world) == ("summary" in change or same)


def test_the_order_of_two_tickets_does_not_matter() -> None:
    task = task_with("open_ticket", "open_ticket")
    writes = [call for call in task.plan if call.tool == "create_ticket"]
    at = Desk(task, CLEAN, 0)
    for call in reversed(writes):
        at.call(call.tool, call.arguments)
    assert at.world.changes != task.expected
    assert succeeded(task, at.world)


def test_a_change_that_is_taken_back_leaves_the_world_unchanged() -> None:
    task = task_with("address_change")
    order_id = next(c.arguments["order_id"] for c in task.plan if c.tool == "update_shipping_address")
    address = task.base.records[order_id].address._asdict()  # type: ignore[union-attr]
    at = Desk(task, CLEAN, 0)
    at.call("update_shipping_address", {"order_id": order_id, **address, "street": "9 Other Road"})
    assert changed(at.world)
    at.call("update_shipping_address", {"order_id": order_id, **address})
    assert not changed(at.world)
    assert close(at).world_changed is False


def test_a_flip_turns_the_reward_of_a_success_and_not_its_truth() -> None:
    regime = REGIMES["flips_q010"]
    task = task_with("cancel_pending")
    rewards = {}
    for seed in range(200):
        at = Desk(task, regime, seed)
        for call in task.plan:
            at.call(call.tool, call.arguments)
        done = close(at)
        assert done.true_success
        assert done.flipped == (at.schedule.grader().gate < 0.10)
        rewards[done.flipped] = done.observed_reward
    assert rewards == {True: 0, False: 1}


def test_a_failure_is_never_flipped() -> None:
    for seed in range(60):
        done = close(Desk(task_with("cancel_pending"), REGIMES["flips_q010"], seed))
        assert (done.true_success, done.flipped, done.observed_reward) == (False, False, 0)
