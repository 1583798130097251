"""What happens to a call: budget, bad input, keys, each fault type, and what of it is recorded."""

from typing import Any

import pytest

from tests.unit.lab.episodes.play import CUSTOMER, OTHER, PAID, cancel, code, desk, meeting, only, read
from toolkit.lab.backoffice.parameters import CODES
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.episode import close
from toolkit.noise.draws import Schedule
from toolkit.noise.layer import Exposure
from toolkit.noise.regimes import REGIMES, Mixture, Regime, kept, retry_after
from toolkit.noise.tools import Fault

CLEAN = REGIMES["clean"]


class TestBudget:
    def test_every_call_but_finish_is_charged(self) -> None:
        at = desk(CLEAN)
        for tool, arguments in (
            ("search_customers", {"query": "ada"}),
            ("no_such_tool", {}),
            ("get_order", {}),
            ("get_order", {"order_id": "O-0"}),
            ("wait", {"seconds": 1}),
        ):
            at.call(tool, arguments)
        assert at.calls == 5
        at.call("finish", {})
        assert at.calls == 5

    def test_the_call_beyond_the_budget_is_refused_and_ends_the_episode(self) -> None:
        at = desk(CLEAN)
        for _ in range(at.task.budget):
            assert code(read(at)) is None
        assert at.ended is None
        assert code(cancel(at)) == "budget_exceeded"
        assert at.ended == "budget_exceeded"
        assert at.calls == at.task.budget
        assert at.world.revision == 0

    def test_finish_is_still_possible_when_the_budget_is_spent(self) -> None:
        at = desk(CLEAN)
        for _ in range(at.task.budget):
            at.call("wait", {"seconds": 1})
        assert at.call("finish", {"summary": "done"}) == {"finished": True}
        assert close(at).ended == "finished"

    @pytest.mark.parametrize("tool", ["get_order", "finish", "no_such_tool", "wait"])
    def test_after_the_end_nothing_is_done(self, tool: str) -> None:
        at = desk(CLEAN)
        at.call("finish", {})
        assert code(at.call(tool, {"order_id": "O-1"})) == "episode_over"
        assert at.calls == 0
        assert at.ended == "finished"


class TestBadInput:
    @pytest.mark.parametrize(
        ("tool", "arguments", "expected"),
        [
            ("no_such_tool", {}, "unknown_tool"),
            ("", {}, "unknown_tool"),
            (None, {}, "unknown_tool"),
            (["get_order"], {}, "unknown_tool"),
            ("x" * 10_000, {}, "unknown_tool"),
            ("get_order", None, "invalid_arguments"),
            ("get_order", "O-1", "invalid_arguments"),
            ("get_order", {}, "invalid_arguments"),
            ("get_order", {"order_id": "O-1", "extra": 1}, "invalid_arguments"),
            ("get_order", {"order_id": ["O-1"]}, "invalid_arguments"),
            ("get_order", {"order_id": "O-" + "9" * 100}, "invalid_arguments"),
            ("get_order", {"order_id": "O-1"}, "not_found"),
            ("list_orders", {"customer_id": "C-1", "offset": -1}, "invalid_arguments"),
            ("wait", {"seconds": 0}, "invalid_arguments"),
            ("wait", {"seconds": 61}, "invalid_arguments"),
        ],
    )
    def test_it_gets_an_error_of_the_documented_shape(self, tool: Any, arguments: Any, expected: str) -> None:
        answer = desk(CLEAN).call(tool, arguments)
        assert set(answer) == {"error"}
        assert answer["error"]["code"] == expected
        assert expected in CODES
        assert 0 < len(answer["error"]["message"]) < 500

    @pytest.mark.parametrize("arguments", [{}, {"sumary": "typo"}, {"summary": "x" * 3000}, None, [1]])
    def test_finish_ends_the_episode_whatever_its_arguments(self, arguments: Any) -> None:
        at = desk(CLEAN)
        assert at.call("finish", arguments) == {"finished": True}
        assert at.ended == "finished"

    def test_only_a_good_call_makes_a_draw_and_waiting_and_finishing_make_none(self) -> None:
        at = desk(REGIMES["faults_p025"])
        at.call("get_order", {})
        read(at, "O-1")
        at.call("wait", {"seconds": 60})
        at.call("finish", {})
        assert [record.key for record in at.trace or ()] == [None, ("O-1", 0), None, None]

    def test_what_the_agent_changes_later_stays_in_the_trace_as_it_was(self) -> None:
        at = desk(CLEAN)
        arguments: dict[str, Any] = {"order_id": ["O-1", {"a": 1}]}
        answer = at.call("get_order", arguments)
        arguments["order_id"][1]["a"] = 2
        answer["error"]["message"] = "tampered"
        (record,) = at.trace or ()
        assert record.arguments == {"order_id": ["O-1", {"a": 1}]}
        assert record.answer["error"]["message"] != "tampered"


class TestKeys:
    def test_the_repeat_index_counts_the_draws_of_one_tool_and_resource(self) -> None:
        at = desk(CLEAN)
        calls = [("get_order", "O-1"), ("get_order", "O-2"), ("get_order", "O-1"), ("check_inventory", "P-1")]
        for tool, resource in calls:
            at.call(tool, {"order_id" if tool == "get_order" else "product_id": resource})
        assert [r.key for r in at.trace or ()] == [("O-1", 0), ("O-2", 0), ("O-1", 1), ("P-1", 0)]


class TestTransient:
    def test_it_fails_once_and_the_next_attempt_draws_afresh(self) -> None:
        at = meeting(only("transient", 0.5), {PAID: ("transient", None)})
        assert [code(read(at)), code(read(at))] == ["temporarily_unavailable", None]
        assert at.exposures == [Exposure(0, "get_order", PAID, 0, "transient", changed=True)]

    def test_a_write_that_fails_changes_nothing(self) -> None:
        at = desk(only("transient"))
        cancel(at)
        assert at.world.changes == {}


def seconds(schedule: Schedule) -> int:
    """Return how long the rate limit of the first read lasts."""
    return retry_after(schedule.draw("get_order", PAID, 0))


class TestRateLimit:
    @pytest.fixture
    def at(self) -> Desk:
        fates: dict[str, tuple[Fault | None, ...]] = {PAID: ("rate_limit", None)}
        return meeting(only("rate_limit", 0.5), fates, also=lambda schedule: seconds(schedule) > 2)

    def test_every_call_fails_until_the_wait_is_over(self, at: Desk) -> None:
        told = seconds(at.schedule)
        answers = [read(at), read(at)]
        at.call("wait", {"seconds": 1})
        answers.append(at.call("check_inventory", {"product_id": "P-1"}))
        assert [code(answer) for answer in answers] == ["rate_limited"] * 3
        assert [answer["error"]["retry_after"] for answer in answers] == [told, told, told - 1]
        at.call("wait", {"seconds": told - 1})
        assert code(read(at)) is None

    def test_no_draw_is_made_meanwhile(self, at: Desk) -> None:
        read(at)
        read(at)
        at.call("wait", {"seconds": seconds(at.schedule)})
        read(at)
        trace = at.trace or []
        assert [record.key for record in trace] == [(PAID, 0), None, None, (PAID, 1)]
        assert [record.blocked_by for record in trace] == [None, "rate_limit", None, None]

    def test_a_limit_runs_from_when_it_was_met(self, at: Desk) -> None:
        at.call("wait", {"seconds": 30})
        assert [code(read(at)), code(read(at))] == ["rate_limited"] * 2

    def test_finishing_is_not_limited(self, at: Desk) -> None:
        read(at)
        assert at.call("finish", {}) == {"finished": True}


class TestOutage:
    def test_the_request_fails_for_the_rest_of_the_episode_and_others_do_not(self) -> None:
        at = meeting(only("outage", 0.5), {PAID: ("outage", None), OTHER: (None,)})
        assert [code(read(at)) for _ in range(3)] == ["outage"] * 3
        assert code(read(at, OTHER)) is None
        trace = at.trace or []
        assert [record.key for record in trace] == [(PAID, 0), None, None, (OTHER, 0)]
        assert [record.blocked_by for record in trace] == [None, "outage", "outage", None]
        assert len(at.exposures) == 1

    def test_during_a_rate_limit_it_is_the_limit_that_fails_the_call(self) -> None:
        regime = Regime("both", "for tests", 1.0, Mixture({"outage": 1, "rate_limit": 1}))
        at = meeting(regime, {PAID: ("outage",), OTHER: ("rate_limit",)})
        codes = [code(read(at, key)) for key in (PAID, OTHER, PAID)]
        assert codes == ["outage", "rate_limited", "rate_limited"]
        assert (at.trace or [])[-1].blocked_by == "rate_limit"


class TestStaleRead:
    @pytest.fixture
    def at(self) -> Desk:
        return meeting(only("stale_read", 0.5), {PAID: (None, "stale_read", None)})

    def test_it_shows_exactly_the_state_before_the_preceding_write(self, at: Desk) -> None:
        before = read(at)
        cancel(at)
        assert read(at) == before
        after = read(at)
        assert (after["order"]["status"], after["revision"]) == ("cancelled", 1)
        assert at.exposures == [Exposure(2, "get_order", PAID, 1, "stale_read", changed=True)]

    def test_of_two_writes_only_the_last_is_hidden(self, at: Desk) -> None:
        read(at)
        address = {"street": "1 A Road", "city": "Bath", "postal_code": "B", "country": "C"}
        at.call("update_shipping_address", {"order_id": PAID, **address})
        cancel(at)
        shown = read(at)
        assert (shown["order"]["shipping_address"], shown["order"]["status"]) == (address, "paid")
        assert shown["revision"] == 1

    def test_before_any_write_it_has_no_effect_and_is_recorded_so(self) -> None:
        at = desk(only("stale_read"))
        assert read(at) == read(desk(CLEAN))
        assert [exposure.changed for exposure in at.exposures] == [False]


class TestTruncation:
    def test_a_list_is_cut_as_the_draw_says_and_goes_on_where_it_was_cut(self) -> None:
        whole = desk(CLEAN).call("list_orders", {"customer_id": CUSTOMER})
        at = meeting(only("truncation", 0.5), {CUSTOMER: ("truncation", None)}, "list_orders")
        cut = at.call("list_orders", {"customer_id": CUSTOMER})
        left = kept(at.schedule.draw("list_orders", CUSTOMER, 0), len(whole["orders"]))
        assert (cut["orders"], cut["has_more"]) == (whole["orders"][:left], True)
        rest = at.call("list_orders", {"customer_id": CUSTOMER, "offset": cut["next_offset"]})
        assert cut["orders"] + rest["orders"] == whole["orders"]
        assert not rest["has_more"]

    def test_a_list_of_one_is_not_cut_and_recorded_so(self) -> None:
        at = desk(only("truncation"))
        email = at.task.base.customers[0][0].email
        answer = at.call("search_customers", {"query": email})
        assert (len(answer["customers"]), answer["has_more"]) == (1, False)
        assert [exposure.changed for exposure in at.exposures] == [False]


class TestTimeoutAfterCommit:
    def test_the_write_is_applied_and_reported_as_a_timeout(self) -> None:
        at = desk(only("timeout_after_commit"))
        assert code(cancel(at)) == "timeout"
        shown = read(at)
        assert (shown["order"]["status"], shown["revision"]) == ("cancelled", 1)

    def test_a_write_that_is_refused_is_refused_and_recorded_so(self) -> None:
        at = desk(only("timeout_after_commit"))
        refund = {"order_id": PAID, "amount_cents": 1, "reason": "r"}
        assert code(at.call("issue_refund", refund)) == "conflict"
        assert [exposure.changed for exposure in at.exposures] == [False]


class TestFieldDropout:
    def test_a_record_loses_exactly_the_field_of_the_draw(self) -> None:
        at = desk(only("field_dropout"))
        whole = read(desk(CLEAN))["order"]
        lost = list(whole)[int(at.schedule.draw("get_order", PAID, 0).magnitude * len(whole))]
        assert read(at)["order"] == {name: value for name, value in whole.items() if name != lost}

    def test_every_record_of_a_list_loses_it(self) -> None:
        orders = desk(only("field_dropout")).call("list_orders", {"customer_id": CUSTOMER})["orders"]
        assert len({frozenset(entry) for entry in orders}) == 1
        assert len(orders[0]) == 3


def test_an_episode_that_is_closed_does_not_change_with_its_desk() -> None:
    at = desk(only("transient"))
    read(at)
    closed = close(at)
    read(at)
    assert (closed.calls, len(closed.exposures), closed.recovered) == (1, 1, {})
    assert closed.called_for == {"retry_after_transient": 1}
