"""Faults as the published study draws them, and what a call answers that meets one."""

from functools import partial

import pytest

from toolkit.lab.worlds.published.faults import (
    WAITS,
    WEIGHTS,
    Condition,
    Fate,
    FaultyShop,
    Schedule,
    evaluation_seed,
    event_key,
    independent_seed,
    kinds,
    training_seed,
)
from toolkit.lab.worlds.published.tools import READS, TOOLS, WRITES
from toolkit.lab.worlds.published.words import placeholders
from toolkit.lab.worlds.published.world import make_world, unpacked

PACKED = make_world(7, placeholders()).packed()
MAKE = partial(unpacked, PACKED)


def shop_of(kind: str, seed: int = 1) -> FaultyShop:
    """Return a shop in which every call that can have it meets one fault."""
    return FaultyShop(MAKE, Schedule(seed, Condition(1.0, {kind: 1.0})))


def test_seeds_are_the_first_eight_bytes_of_a_digest() -> None:
    """From `printf 'schedule|0|C2|5' | sha256sum`, and likewise."""
    assert training_seed(0, "C2", 5) == 0x9E6FA034576305A7 % 2**31
    assert independent_seed(77, 3, 12) == 0x89A9543158E0348C
    assert evaluation_seed("test-00000", 1) == 0x99469C5527502CBB % 2**31


@pytest.mark.parametrize(
    ("tool", "arguments", "key"),
    [
        ("search_customers", {"query": "anybody"}, "{}"),
        ("get_order", {"order_id": " O0001 "}, '{"order_id":"O0001"}'),
        ("cancel_order", {"order_id": "O0001", "reason": "any"}, '{"order_id":"O0001"}'),
        ("reserve_stock", {"sku": 5.0, "order_id": True}, '{"order_id":"true","sku":"5"}'),
        ("create_ticket", {"customer_id": 1.5, "order_id": "O0001"}, '{"customer_id":"1.5"}'),
        ("list_orders", {}, '{"customer_id":"None"}'),
    ],
)
def test_a_key_is_the_resource_alone(tool, arguments, key) -> None:
    assert event_key(tool, arguments) == key


def test_a_tool_meets_what_it_can() -> None:
    assert {len(kinds(tool)) for tool in READS} == {5, 6}
    assert [tool for tool in TOOLS if "truncate" in kinds(tool)] == ["search_customers", "list_orders"]
    assert [tool for tool in WRITES if "timeout_after_commit" not in kinds(tool)] == ["create_ticket"]
    assert kinds("wait") == kinds("finish") == ()


def test_a_fate_belongs_to_its_schedule_tool_resource_and_repetition() -> None:
    schedule, fates = Schedule(5, Condition(0.25)), {}
    for tool, key, repeat in ((t, k, r) for t in READS for k in map(str, range(40)) for r in range(20)):
        fates[tool, key, repeat] = schedule.fate(tool, key, repeat)
    hit = [fate for fate in fates.values() if fate]
    assert 0.22 < len(hit) / len(fates) < 0.28
    assert {fate.seconds for fate in hit} == set(WAITS)
    assert {fate.kind for fate in hit} == set(WEIGHTS)
    assert all(Schedule(5, Condition(0.25)).fate(*at) == fate for at, fate in list(fates.items())[:50])
    assert [Schedule(6, Condition(0.25)).fate(*at) for at in fates] != list(fates.values())
    more = Schedule(5, Condition(0.5))
    assert all(more.fate(*at) for at, fate in fates.items() if fate)


def test_where_no_fault_has_a_weight_there_is_none() -> None:
    assert Schedule(1, Condition(1.0, {"truncate": 1.0})).fate("get_order", "{}", 0) is None
    assert Schedule(1, Condition()).fate("get_order", "{}", 0) is None


def test_flips_are_drawn_by_the_schedule_alone() -> None:
    flips = [Schedule(seed, Condition(q=0.1)).flips() for seed in range(2000)]
    assert 0.08 < sum(flips) / len(flips) < 0.12
    assert flips == [Schedule(seed, Condition(0.25, q=0.1)).flips() for seed in range(2000)]
    assert not any(Schedule(seed, Condition(0.25)).flips() for seed in range(2000))


def test_the_challenge_fails_first_attempts_of_writes() -> None:
    fate = Schedule(1, Condition(is_challenge=True)).fate
    assert fate("cancel_order", "{}", 0) == Fate("transient")
    assert fate("cancel_order", "{}", 1) is fate("get_order", "{}", 0) is None


def test_a_rate_limit_blocks_every_tool_until_it_has_passed_and_counts_what_it_blocked() -> None:
    shop = shop_of("rate_limit")
    first = shop.call("get_order", {"order_id": "O0001"})["error"]
    assert (first["code"], first["retry_after_seconds"] in WAITS) == ("RATE_LIMITED", True)
    shop.call("wait", {"seconds": first["retry_after_seconds"] - 1})
    assert shop.call("get_customer", {"customer_id": "C0001"})["error"]["retry_after_seconds"] == 1
    shop.call("wait", {"seconds": 1})
    again = shop.call("get_customer", {"customer_id": "C0001"})["error"]["retry_after_seconds"]
    fate = Schedule(1, Condition(1.0, {"rate_limit": 1.0})).fate("get_customer", '{"customer_id":"C0001"}', 1)
    assert fate is not None
    assert fate.seconds == again
    assert shop.exposures == ["rate_limit", "rate_limit_ongoing", "rate_limit"]
    assert shop.calls == 5


def test_an_outage_lasts_for_its_tool_and_resource_only() -> None:
    shop = shop_of("outage")
    codes = {shop.call("get_order", {"order_id": "O0001"})["error"]["code"] for _ in range(3)}
    shop.call("get_order", {"order_id": "O0002"})
    assert codes == {"SERVICE_UNAVAILABLE"}
    assert shop.exposures == ["outage", "outage_ongoing", "outage_ongoing", "outage"]


def test_a_stale_read_shows_the_world_before_the_last_write() -> None:
    shop = shop_of("stale")
    name = next(each["order_id"] for each in shop.world.orders.values() if each["status"] == "pending")
    assert shop.call("get_order", {"order_id": name})["status"] == "pending"
    assert shop.exposures == []  # nothing was written: there is no older state
    address = {"street": "1 Row", "city": "Town", "postal_code": "1000"}
    shop.call("update_shipping_address", {"order_id": name, **address})
    assert shop.call("get_order", {"order_id": name})["shipping_address"] != address
    assert "error" in shop.call("cancel_order", {"order_id": name, "reason": ""})  # a refused write is none
    shop.call("cancel_order", {"order_id": name, "reason": "r"})
    seen = shop.call("get_order", {"order_id": name})
    assert (seen["status"], seen["shipping_address"]) == ("pending", address)
    assert (shop.world.orders[name]["status"], shop.exposures) == ("cancelled", ["stale"] * 2)


def test_a_truncated_page_goes_on_after_the_two_that_it_shows() -> None:
    shop = shop_of("truncate")
    page = shop.call("search_customers", {"query": "@example.com", "offset": 5})
    assert (len(page["results"]), page["next_offset"], page["truncated"]) == (2, 7, True)
    last = shop.call("search_customers", {"query": "@example.com", "offset": 38})
    assert (len(last["results"]), last["next_offset"]) == (2, None)
    shop.call("list_orders", {"customer_id": "C9999"})
    assert shop.exposures == ["truncate"] * 2


def test_a_lost_answer_is_that_of_a_write_that_was_carried_out() -> None:
    shop = shop_of("timeout_after_commit")
    name = next(each["order_id"] for each in shop.world.orders.values() if each["status"] == "pending")
    cancel = {"order_id": name, "reason": "r"}
    assert shop.call("cancel_order", cancel)["error"]["code"] == "TIMEOUT"
    assert shop.call("cancel_order", cancel)["error"]["code"] == "INVALID_STATE"
    assert (shop.world.orders[name]["status"], shop.exposures) == ("cancelled", ["timeout_after_commit"])


def test_a_dropped_field_is_one_of_an_answer_and_not_of_the_world() -> None:
    whole = FaultyShop(MAKE, Schedule(1, Condition())).call("get_order", {"order_id": "O0001"})
    seen = {
        frozenset(
            whole.keys() - shop_of("field_dropout", seed).call("get_order", {"order_id": "O0001"}).keys()
        )
        for seed in range(200)
    }
    assert seen == {frozenset([name]) for name in whole}
    assert "error" in shop_of("field_dropout").call("get_order", {"order_id": "O9999"})


def test_after_its_end_an_episode_has_no_fault() -> None:
    shop = shop_of("transient")
    shop.call("finish", {"summary": "done"})
    assert shop.call("get_order", {"order_id": "O0001"})["error"]["code"] == "EPISODE_FINISHED"
    assert (shop.exposures, shop.calls) == ([], 2)
