"""What happens to a call: budget, bad input, keys, each fault type, and what of it is recorded."""

from typing import Any

import pytest

from tests.unit.episodes.play import an_order, code, desk, first_faulty, only, seed_where, task_with
from toolkit.backoffice.refusal import CODES
from toolkit.episodes.desk import Desk, Exposure
from toolkit.episodes.episode import close
from toolkit.noise.draws import Schedule
from toolkit.noise.faults import Mixture, kept, retry_after
from toolkit.noise.regimes import REGIMES, Regime

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
        order = an_order(at.task, "paid")
        for _ in range(at.task.budget):
            assert code(at.call("get_order", {"order_id": order})) is None
        assert at.ended is None
        assert code(at.call("cancel_order", {"order_id": order, "reason": "r"})) == "budget_exceeded"
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

    def test_a_bad_call_makes_no_draw(self) -> None:
        at = desk(REGIMES["faults_p025"])
        at.call("get_order", {})
        at.call("get_order", {"order_id": "O-1"})
        assert [record.key for record in at.trace or ()] == [None, ("O-1", 0)]

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

    @pytest.mark.parametrize(
        ("tool", "one", "other"),
        [
            ("search_customers", {"query": "ada"}, {"query": "someone else", "offset": 3}),
            ("cancel_order", {"order_id": "O-1", "reason": "a"}, {"order_id": " o-1 ", "reason": "b"}),
            (
                "issue_refund",
                {"order_id": "O-1", "amount_cents": 1, "reason": "a"},
                {"order_id": "O-1", "amount_cents": "2", "reason": "quite another reason"},
            ),
            (
                "create_ticket",
                {"customer_id": "C-1", "category": "other", "priority": "low", "summary": "a"},
                {
                    "customer_id": "C-1",
                    "category": "damage",
                    "priority": "high",
                    "summary": "b",
                    "order_id": "O",
                },
            ),
            (
                "update_shipping_address",
                {"order_id": "O-1", "street": "a", "city": "b", "postal_code": "c", "country": "d"},
                {"order_id": "O-1", "street": "e", "city": "f", "postal_code": 1, "country": "h"},
            ),
        ],
    )
    def test_free_text_never_changes_a_key(
        self, tool: str, one: dict[str, Any], other: dict[str, Any]
    ) -> None:
        keys = []
        for arguments in (one, other):
            at = desk(CLEAN)
            at.call(tool, arguments)
            keys.append((at.trace or [])[0].key)
        assert keys[0] == keys[1] is not None

    def test_waiting_and_finishing_have_no_key(self) -> None:
        at = desk(REGIMES["faults_p025"])
        at.call("wait", {"seconds": 5})
        at.call("finish", {})
        assert [record.key for record in at.trace or ()] == [None, None]
        assert at.exposures == []


class TestTransient:
    def test_it_fails_once_and_the_next_attempt_draws_afresh(self) -> None:
        regime = only("transient", 0.5)
        at = desk(regime)
        order = an_order(at.task, "paid")
        at = desk(regime, first_faulty(regime, "get_order", order))
        assert code(at.call("get_order", {"order_id": order})) == "temporarily_unavailable"
        assert code(at.call("get_order", {"order_id": order})) is None
        assert at.exposures == [Exposure(0, "get_order", order, 0, "transient", changed=True)]

    def test_a_write_that_fails_changes_nothing(self) -> None:
        at = desk(only("transient"))
        at.call("cancel_order", {"order_id": an_order(at.task, "paid"), "reason": "r"})
        assert at.world.changes == {}


def _long_limit(schedule: Schedule) -> bool:
    order = an_order(desk(CLEAN).task, "paid")
    first, second = (schedule.draw("get_order", order, repeat) for repeat in (0, 1))
    return first.gate < 0.5 <= second.gate and retry_after(first) > 2


LONG = seed_where(_long_limit)


class TestRateLimit:
    regime = only("rate_limit", 0.5)

    def limited(self) -> tuple[Desk, str, int]:
        order = an_order(desk(CLEAN).task, "paid")
        at = desk(self.regime, LONG)
        answer = at.call("get_order", {"order_id": order})
        assert code(answer) == "rate_limited"
        assert answer["error"]["retry_after"] == retry_after(at.schedule.draw("get_order", order, 0))
        return at, order, answer["error"]["retry_after"]

    def test_every_call_fails_until_the_wait_is_over(self) -> None:
        at, order, seconds = self.limited()
        for tool, name, left in (
            ("get_order", "order_id", seconds),
            ("check_inventory", "product_id", seconds - 1),
        ):
            answer = at.call(tool, {name: order})
            assert (code(answer), answer["error"]["retry_after"]) == ("rate_limited", left)
            at.call("wait", {"seconds": 1})
        at.call("wait", {"seconds": seconds - 2})
        assert code(at.call("get_order", {"order_id": order})) is None

    def test_no_draw_is_made_meanwhile(self) -> None:
        at, order, seconds = self.limited()
        at.call("get_order", {"order_id": order})
        at.call("wait", {"seconds": seconds})
        at.call("get_order", {"order_id": order})
        trace = at.trace or []
        assert [record.key for record in trace] == [(order, 0), None, None, (order, 1)]
        assert [record.blocked_by for record in trace] == [None, "rate_limit", None, None]

    def test_a_limit_runs_from_when_it_was_met(self) -> None:
        order = an_order(desk(CLEAN).task, "paid")
        at = desk(self.regime, LONG)
        at.call("wait", {"seconds": 30})
        assert code(at.call("get_order", {"order_id": order})) == "rate_limited"
        assert code(at.call("get_order", {"order_id": order})) == "rate_limited"

    def test_finishing_is_not_limited(self) -> None:
        at, _, _ = self.limited()
        assert at.call("finish", {}) == {"finished": True}


class TestOutage:
    def test_the_request_fails_for_the_rest_of_the_episode_and_others_do_not(self) -> None:
        task = desk(CLEAN).task
        order = an_order(task, "paid")
        other = next(k for k in task.base.records if k.startswith("O-") and k != order)
        regime = only("outage", 0.5)
        seed = seed_where(
            lambda s: (
                s.draw("get_order", order, 0).gate < 0.5 <= s.draw("get_order", other, 0).gate
                and s.draw("get_order", order, 1).gate >= 0.5
            )
        )
        at = desk(regime, seed)
        assert [code(at.call("get_order", {"order_id": order})) for _ in range(3)] == ["outage"] * 3
        assert code(at.call("get_order", {"order_id": other})) is None
        trace = at.trace or []
        assert [record.key for record in trace] == [(order, 0), None, None, (other, 0)]
        assert [record.blocked_by for record in trace] == [None, "outage", "outage", None]
        assert len(at.exposures) == 1

    def test_during_a_rate_limit_it_is_the_limit_that_fails_the_call(self) -> None:
        task = desk(CLEAN).task
        order = an_order(task, "paid")
        other = next(k for k in task.base.records if k.startswith("O-") and k != order)
        regime = Regime("both", "for tests", 1.0, Mixture({"outage": 1, "rate_limit": 1}))

        def is_both(schedule: Schedule) -> bool:
            fates = [regime.fault("read", 0, schedule.draw("get_order", key, 0)) for key in (order, other)]
            return fates == ["outage", "rate_limit"]

        at = desk(regime, seed_where(is_both))
        codes = [code(at.call("get_order", {"order_id": key})) for key in (order, other, order)]
        assert codes == ["outage", "rate_limited", "rate_limited"]
        assert (at.trace or [])[-1].blocked_by == "rate_limit"


class TestStaleRead:
    def stale(self) -> tuple[Desk, str]:
        task = desk(CLEAN).task
        order = an_order(task, "paid")
        regime = only("stale_read", 0.5)
        seed = seed_where(
            lambda s: (
                s.draw("get_order", order, 0).gate >= 0.5
                and s.draw("get_order", order, 1).gate < 0.5
                and s.draw("get_order", order, 2).gate >= 0.5
            )
        )
        return desk(regime, seed), order

    def test_it_shows_exactly_the_state_before_the_preceding_write(self) -> None:
        at, order = self.stale()
        before = at.call("get_order", {"order_id": order})
        at.call("cancel_order", {"order_id": order, "reason": "r"})
        assert at.call("get_order", {"order_id": order}) == before
        after = at.call("get_order", {"order_id": order})
        assert (after["order"]["status"], after["revision"]) == ("cancelled", 1)
        assert at.exposures == [Exposure(2, "get_order", order, 1, "stale_read", changed=True)]

    def test_of_two_writes_only_the_last_is_hidden(self) -> None:
        at, order = self.stale()
        at.call("get_order", {"order_id": order})
        address = {"street": "1 A Road", "city": "Bath", "postal_code": "B", "country": "C"}
        at.call("update_shipping_address", {"order_id": order, **address})
        at.call("cancel_order", {"order_id": order, "reason": "r"})
        shown = at.call("get_order", {"order_id": order})
        assert shown["order"]["shipping_address"] == address
        assert shown["order"]["status"] == "paid"
        assert shown["revision"] == 1

    def test_before_any_write_it_has_no_effect_and_is_recorded_so(self) -> None:
        regime = only("stale_read")
        at, clean = desk(regime), desk(CLEAN)
        order = an_order(at.task, "paid")
        assert at.call("get_order", {"order_id": order}) == clean.call("get_order", {"order_id": order})
        assert [exposure.changed for exposure in at.exposures] == [False]


class TestTruncation:
    def test_a_list_is_cut_as_the_draw_says_and_goes_on_where_it_was_cut(self) -> None:
        task = desk(CLEAN).task
        customer = next(k for k in task.base.orders_of if len(task.base.orders_of[k]) > 2)
        whole = desk(CLEAN).call("list_orders", {"customer_id": customer})
        regime = only("truncation", 0.5)
        at = desk(regime, first_faulty(regime, "list_orders", customer))
        cut = at.call("list_orders", {"customer_id": customer})
        left = kept(at.schedule.draw("list_orders", customer, 0), len(whole["orders"]))
        assert cut["orders"] == whole["orders"][:left]
        assert cut["has_more"]
        rest = at.call("list_orders", {"customer_id": customer, "offset": cut["next_offset"]})
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
        order = an_order(at.task, "paid")
        assert code(at.call("cancel_order", {"order_id": order, "reason": "r"})) == "timeout"
        shown = at.call("get_order", {"order_id": order})
        assert (shown["order"]["status"], shown["revision"]) == ("cancelled", 1)

    def test_a_write_that_is_refused_is_refused_and_recorded_so(self) -> None:
        at = desk(only("timeout_after_commit"))
        order = an_order(at.task, "paid")
        refund = {"order_id": order, "amount_cents": 1, "reason": "r"}
        assert code(at.call("issue_refund", refund)) == "conflict"
        assert [exposure.changed for exposure in at.exposures] == [False]


class TestFieldDropout:
    def test_a_record_loses_exactly_the_field_of_the_draw(self) -> None:
        at, clean = desk(only("field_dropout")), desk(CLEAN)
        order = an_order(at.task, "paid")
        whole = clean.call("get_order", {"order_id": order})["order"]
        cut = at.call("get_order", {"order_id": order})["order"]
        lost = list(whole)[int(at.schedule.draw("get_order", order, 0).magnitude * len(whole))]
        assert cut == {name: value for name, value in whole.items() if name != lost}

    def test_every_record_of_a_list_loses_it(self) -> None:
        at = desk(only("field_dropout"))
        customer = next(k for k in at.task.base.orders_of if len(at.task.base.orders_of[k]) > 1)
        listed = at.call("list_orders", {"customer_id": customer})["orders"]
        assert len({frozenset(entry) for entry in listed}) == 1
        assert len(listed[0]) == 3


class TestChallenge:
    def test_the_first_attempt_of_every_write_request_fails_and_nothing_else(self) -> None:
        task = task_with("cancel_pending")
        at = Desk(task, REGIMES["challenge"], 0)
        order = an_order(task, "pending")
        cancel = ("cancel_order", {"order_id": order, "reason": "r"})
        assert code(at.call("get_order", {"order_id": order})) is None
        assert code(at.call(*cancel)) == "temporarily_unavailable"
        assert code(at.call(*cancel)) is None

    def test_it_is_the_same_under_every_schedule(self) -> None:
        answers = []
        for seed in (0, 1, 2**64 - 1):
            at = desk(REGIMES["challenge"], seed)
            answers.append([at.call(call.tool, call.arguments) for call in at.task.plan])
        assert answers[0] == answers[1] == answers[2]


def test_the_base_of_a_task_is_never_changed() -> None:
    at = desk(CLEAN)
    before = dict(at.task.base.records)
    for call in at.task.plan:
        at.call(call.tool, call.arguments)
    assert at.task.base.records == before


def test_an_answer_that_the_agent_changes_does_not_change_the_world() -> None:
    at = desk(CLEAN)
    order = an_order(at.task, "paid")
    shown = at.call("get_order", {"order_id": order})
    shown["order"]["status"] = "delivered"
    shown["order"]["lines"].clear()
    again = at.call("get_order", {"order_id": order})
    assert again["order"]["status"] == "paid"
    assert again["order"]["lines"]


def test_an_episode_that_is_closed_does_not_change_with_its_desk() -> None:
    at = desk(only("transient"))
    order = an_order(at.task, "paid")
    at.call("get_order", {"order_id": order})
    closed = close(at)
    at.call("get_order", {"order_id": order})
    assert (closed.calls, len(closed.exposures), closed.called_for, closed.recovered) == (
        1,
        1,
        {"retry_after_transient": 1},
        {},
    )
