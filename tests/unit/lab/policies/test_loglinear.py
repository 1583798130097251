"""The log-linear policy: its exponential, its choices, scores and slips."""

import math
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.agent import Rollout, slip
from toolkit.lab.policies.loglinear import ACTIONS, SHIFTS, START, Policy, exp, layout
from toolkit.lab.tasks.pools import load_task, tasks
from toolkit.lab.tasks.task import Call
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

TOKENS = 4


def rollout(policy: Policy, number: int, regime: str = "faults_p025") -> Rollout:
    """Play one validation task and return what the policy chose."""
    task = load_task(f"validation:{number}")
    played = Rollout(policy, number)
    play(task, REGIMES[regime], evaluation_seed(task.task_id, 0), played)
    return played


def careful() -> Policy:
    """Return a policy that makes every call and recovers from every fault that can be recovered from."""
    wanted = dict.fromkeys(("read", "write", "refused"), "go")
    wanted |= dict.fromkeys(("timeout", "stale", "dropout"), "reread")
    wanted |= {"transient": "retry", "rate_limit": "wait_as_told", "outage": "skip", "truncated": "paginate"}
    parameters = [40.0 if wanted[feature[0]] == action else 0.0 for feature, action in layout(0).actions]
    return Policy(parameters, 0)


def test_the_start_is_a_distribution_over_the_actions_that_are_allowed() -> None:
    assert {kind: set(START[kind]) for kind in ACTIONS} == {kind: set(a) for kind, a in ACTIONS.items()}
    assert [math.fsum(START[kind].values()) for kind in ACTIONS] == pytest.approx([1.0] * len(ACTIONS))
    assert set(SHIFTS) <= set(layout(0).actions)


def test_a_policy_with_another_number_of_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="the policy has"):
        Policy([0.0], TOKENS)


@pytest.mark.parametrize("number", range(0, 60, 6))
def test_a_careful_policy_makes_the_reference_agents_calls_on_clean_tasks(number: int) -> None:
    task = load_task(f"train:{number}")
    mine = play(task, REGIMES["clean"], 0, Rollout(careful(), 0), traced=True)
    theirs = play(task, REGIMES["clean"], 0, reference, traced=True)
    calls = [(c.tool, c.arguments) for c in mine.trace or () if c.tool != "finish"]
    assert calls == [(c.tool, c.arguments) for c in theirs.trace or () if c.tool != "finish"]


def test_a_careful_policy_recovers_from_everything_but_outages() -> None:
    regime = REGIMES["faults_p025_outage_free"]
    played = [
        play(task, regime, evaluation_seed(task.task_id, 0), Rollout(careful(), 0))
        for task in islice(tasks("validation"), 100)
    ]
    assert {e.ended for e in played if not e.true_success} <= {"budget_exceeded"}


ORDERS = [
    {"order_id": "O-1", "status": "paid"},
    {"order_id": "O-2", "status": "shipped"},
    {"order_id": "O-3", "status": "paid"},
]
LOOKED_AT = {"order_id": "O-1", "lines": [{"unit_price_cents": 500, "quantity": 3}]}
REFUND = Call("issue_refund", {"order_id": "O-1", "amount_cents": 500, "reason": "r"})


CUSTOMERS = [{"customer_id": "C-1"}, {"customer_id": "C-2"}]
WHOLE = {"amount_cents": 1500}
CANCEL = Call("cancel_order", {"order_id": "O-1", "reason": "r"})


@pytest.mark.parametrize(
    ("call", "orders", "order", "changed"),
    [
        (CANCEL, ORDERS, {}, {"order_id": "O-3"}),
        (Call("get_order", {"order_id": "O-2"}), ORDERS, {}, {"order_id": "O-1"}),
        (Call("list_orders", {"customer_id": "C-1"}), [], {}, {"customer_id": "C-2"}),
        (REFUND, ORDERS, LOOKED_AT, WHOLE),
        (Call("issue_refund", {**REFUND.arguments, **WHOLE}), ORDERS, LOOKED_AT, {"amount_cents": 500}),
        (REFUND, [], {}, {"amount_cents": 50}),
    ],
    ids=["same status", "any order", "namesake", "line for unit", "unit for line", "decimal point"],
)
def test_what_is_taken_in_place_of_the_right_call(call, orders, order, changed) -> None:
    assert slip(call, orders, CUSTOMERS, order) == Call(call.tool, {**call.arguments, **changed})


def test_what_can_only_be_forgotten_is_forgotten() -> None:
    assert slip(CANCEL, [], [], {}) is None


# Bits as this toolkit computes them: another machine, Python or library has to find the same.
BITS = {
    -700.0: "0x1.14f2b0fb9307fp-1010",
    -1.0: "0x1.78b56362cef38p-2",
    0.0: "0x1.0000000000000p+0",
    0.5: "0x1.a61298e1e069cp+0",
    1.0: "0x1.5bf0a8b14576ap+1",
    10.0: "0x1.5829dcf950560p+14",
}


@given(st.floats(-700, 700))
def test_is_within_one_unit_of_the_library(x: float) -> None:
    assert abs(exp(x) - math.exp(x)) <= 2 * math.ulp(math.exp(x))


@pytest.mark.parametrize(("x", "bits"), BITS.items())
def test_gives_the_same_bits_everywhere(x: float, bits: str) -> None:
    assert exp(x).hex() == bits


@pytest.mark.parametrize("x", [701.0, -701.0, math.inf, math.nan])
def test_refuses_what_is_out_of_range(x: float) -> None:
    with pytest.raises(OverflowError):
        exp(x)
