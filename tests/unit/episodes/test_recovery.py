"""Trace codes: what called for a recovery, and whether it was made."""

from __future__ import annotations

from tests.unit.episodes.play import an_order, desk, first_faulty, only, seed_where
from toolkit.noise.regimes import REGIMES

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


def test_a_wait_after_a_rate_limit_is_noted_and_a_retry_is_none() -> None:
    at = desk(only("rate_limit"))
    order = an_order(at.task, "paid")
    at.call("get_order", {"order_id": order})
    at.call("get_order", {"order_id": order})
    assert (at.recovery.called_for, at.recovery.made) == ({"wait_after_rate_limit": 1}, {})
    at.call("wait", {"seconds": 1})
    assert at.recovery.made == {"wait_after_rate_limit": 1}


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


def test_outages_and_held_out_faults_have_no_code() -> None:
    for fault in ("outage", "timeout_after_commit", "field_dropout"):
        at = desk(only(fault))
        order = an_order(at.task, "paid")
        at.call("get_order", {"order_id": order})
        at.call("cancel_order", {"order_id": order, "reason": "r"})
        assert at.exposures
        assert at.recovery.called_for == {}
