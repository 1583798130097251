"""Trace codes: what called for a recovery, and whether it was made."""

import pytest

from tests.unit.lab.episodes.play import CUSTOMER, OTHER, PAID, cancel, desk, meeting, only, read
from toolkit.noise.draws import Schedule
from toolkit.noise.regimes import Mixture, Regime, retry_after


def test_a_retry_after_a_transient_failure_is_noted() -> None:
    at = desk(only("transient"))
    read(at)
    assert (at.recovery.called_for, at.recovery.made) == ({"retry_after_transient": 1}, {})
    at.call("check_inventory", {"product_id": "P-1"})
    assert at.recovery.made == {}
    read(at)
    assert at.recovery.made == {"retry_after_transient": 1}


@pytest.mark.parametrize("times", [1, 2])
def test_every_fault_is_recovered_from_once(times: int) -> None:
    at = meeting(only("transient", 0.5), {PAID: ("transient",) * times + (None,)})
    for _ in range(3):
        read(at)
    assert at.recovery.called_for == at.recovery.made == {"retry_after_transient": times}


def test_a_wait_after_a_rate_limit_is_noted_once_it_is_over_and_a_retry_is_none() -> None:
    def is_long(schedule: Schedule) -> bool:
        return retry_after(schedule.draw("get_order", PAID, 0)) > 1

    at = meeting(only("rate_limit"), {}, also=is_long)
    left = read(at)["error"]["retry_after"]
    read(at)
    at.call("wait", {"seconds": left - 1})
    assert (at.recovery.called_for, at.recovery.made) == ({"wait_after_rate_limit": 1}, {})
    at.call("wait", {"seconds": 1})
    assert at.recovery.made == {"wait_after_rate_limit": 1}


def test_a_retry_that_a_rate_limit_blocks_is_none() -> None:
    regime = Regime("both", "for tests", 1.0, Mixture({"transient": 1, "rate_limit": 1}))
    at = meeting(regime, {PAID: ("transient",), OTHER: ("rate_limit",)})
    for key in (PAID, OTHER, PAID):
        read(at, key)
    assert at.recovery.called_for == {"retry_after_transient": 1, "wait_after_rate_limit": 1}
    assert at.recovery.made == {}


def test_a_read_after_a_stale_read_is_noted_where_the_read_was_really_stale() -> None:
    at = meeting(only("stale_read", 0.5), {PAID: ("stale_read", "stale_read")})
    read(at)
    assert at.recovery.called_for == {}
    cancel(at)
    read(at)
    assert (at.recovery.called_for, at.recovery.made) == ({"reread_after_stale": 1}, {})
    read(at)
    assert at.recovery.made == {"reread_after_stale": 1}


def test_the_next_page_after_a_cut_list_is_noted_and_the_same_page_is_none() -> None:
    at = meeting(only("truncation", 0.5), {CUSTOMER: ("truncation", None)}, "list_orders")
    cut = at.call("list_orders", {"customer_id": CUSTOMER})
    at.call("list_orders", {"customer_id": CUSTOMER})
    assert (at.recovery.called_for, at.recovery.made) == ({"paginate_after_truncation": 1}, {})
    at.call("list_orders", {"customer_id": CUSTOMER, "offset": cut["next_offset"]})
    assert at.recovery.made == {"paginate_after_truncation": 1}


def test_a_stale_read_that_differs_in_its_revision_only_calls_for_nothing() -> None:
    at = desk(only("stale_read"))
    cancel(at)
    assert read(at, OTHER)["revision"] == 0
    assert at.recovery.called_for == {}
    assert [exposure.changed for exposure in at.exposures] == [False]


def test_outages_and_held_out_faults_have_no_code() -> None:
    for fault in ("outage", "timeout_after_commit", "field_dropout"):
        at = desk(only(fault))
        read(at)
        cancel(at)
        assert at.exposures
        assert at.recovery.called_for == {}
