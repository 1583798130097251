"""Trace codes: what called for a recovery, and whether it was made."""

from tests.unit.episodes.play import an_order, desk, first_faulty, only, seed_where
from toolkit.backoffice.records import Order
from toolkit.noise.draws import Schedule
from toolkit.noise.faults import Mixture, retry_after
from toolkit.noise.regimes import REGIMES, Regime

ORDER = {"customer": next(k for k, v in desk(REGIMES["clean"]).task.base.orders_of.items() if len(v) > 2)}


def test_a_retry_after_a_transient_failure_is_noted() -> None:
    at = desk(only("transient"))
    order = an_order(at.task, "paid")
    at.call("get_order", {"order_id": order})
    assert (at.recovery.called_for, at.recovery.made) == ({"retry_after_transient": 1}, {})
    at.call("check_inventory", {"product_id": "P-1"})
    assert at.recovery.made == {}
    at.call("get_order", {"order_id": order})
    assert at.recovery.made == {"retry_after_transient": 1}


def test_one_fault_is_recovered_from_once() -> None:
    order = an_order(desk(REGIMES["clean"]).task, "paid")
    regime = only("transient", 0.5)
    at = desk(regime, first_faulty(regime, "get_order", order))
    for _ in range(3):
        at.call("get_order", {"order_id": order})
    assert at.recovery.made == {"retry_after_transient": 1}


def test_two_faults_are_recovered_from_twice() -> None:
    order = an_order(desk(REGIMES["clean"]).task, "paid")
    regime = only("transient", 0.5)
    at = desk(regime, first_faulty(regime, "get_order", order, 2))
    for _ in range(3):
        at.call("get_order", {"order_id": order})
    assert (at.recovery.called_for, at.recovery.made) == (
        {"retry_after_transient": 2},
        {"retry_after_transient": 2},
    )


def test_a_wait_after_a_rate_limit_is_noted_once_it_is_over_and_a_retry_is_none() -> None:
    order = an_order(desk(REGIMES["clean"]).task, "paid")

    def is_long(schedule: Schedule) -> bool:
        return retry_after(schedule.draw("get_order", order, 0)) > 1

    at = desk(only("rate_limit"), seed_where(is_long))
    left = at.call("get_order", {"order_id": order})["error"]["retry_after"]
    at.call("get_order", {"order_id": order})
    at.call("wait", {"seconds": left - 1})
    assert (at.recovery.called_for, at.recovery.made) == ({"wait_after_rate_limit": 1}, {})
    at.call("wait", {"seconds": 1})
    assert at.recovery.made == {"wait_after_rate_limit": 1}


def test_a_retry_that_a_rate_limit_blocks_is_none() -> None:
    task = desk(REGIMES["clean"]).task
    order = an_order(task, "paid")
    regime = Regime("both", "for tests", 1.0, Mixture({"transient": 1, "rate_limit": 1}))
    other = next(key for key in task.base.records if key.startswith("O-") and key != order)

    def is_both(schedule: Schedule) -> bool:
        fates = [regime.fault("read", 0, schedule.draw("get_order", key, 0)) for key in (order, other)]
        return fates == ["transient", "rate_limit"]

    at = desk(regime, seed_where(is_both))
    for key in (order, other, order):
        at.call("get_order", {"order_id": key})
    assert at.recovery.called_for == {"retry_after_transient": 1, "wait_after_rate_limit": 1}
    assert at.recovery.made == {}


def test_a_read_after_a_stale_read_is_noted_where_the_read_was_really_stale() -> None:
    order = an_order(desk(REGIMES["clean"]).task, "paid")
    regime = only("stale_read", 0.5)
    seed = seed_where(lambda s: all(s.draw("get_order", order, n).gate < 0.5 for n in (0, 1)))
    at = desk(regime, seed)
    at.call("get_order", {"order_id": order})
    assert at.recovery.called_for == {}
    at.call("cancel_order", {"order_id": order, "reason": "r"})
    at.call("get_order", {"order_id": order})
    assert (at.recovery.called_for, at.recovery.made) == ({"reread_after_stale": 1}, {})
    at.call("get_order", {"order_id": order})
    assert at.recovery.made == {"reread_after_stale": 1}


def test_the_next_page_after_a_cut_list_is_noted_and_the_same_page_is_none() -> None:
    regime = only("truncation", 0.5)
    at = desk(regime, first_faulty(regime, "list_orders", ORDER["customer"]))
    cut = at.call("list_orders", {"customer_id": ORDER["customer"]})
    at.call("list_orders", {"customer_id": ORDER["customer"]})
    assert (at.recovery.called_for, at.recovery.made) == ({"paginate_after_truncation": 1}, {})
    at.call("list_orders", {"customer_id": ORDER["customer"], "offset": cut["next_offset"]})
    assert at.recovery.made == {"paginate_after_truncation": 1}


def test_a_stale_read_that_differs_in_its_revision_only_calls_for_nothing() -> None:
    task = desk(REGIMES["clean"]).task
    order = an_order(task, "paid")
    other = next(k for k, r in task.base.records.items() if isinstance(r, Order) and k != order)
    at = desk(only("stale_read"))
    at.call("cancel_order", {"order_id": order, "reason": "r"})
    shown = at.call("get_order", {"order_id": other})
    assert shown["revision"] == 0
    assert at.recovery.called_for == {}
    assert [exposure.changed for exposure in at.exposures] == [False]


def test_outages_and_held_out_faults_have_no_code() -> None:
    for fault in ("outage", "timeout_after_commit", "field_dropout"):
        at = desk(only(fault))
        order = an_order(at.task, "paid")
        at.call("get_order", {"order_id": order})
        at.call("cancel_order", {"order_id": order, "reason": "r"})
        assert at.exposures
        assert at.recovery.called_for == {}
