"""What was recorded of a task's rollouts: whole, and possible."""

import math

import pytest

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.probe.design import TRANSITION, RolloutSet
from toolkit.probe.recorded import Recorded, Transcript, check_number

ONE = Transcript((1, 2, 3, 4), (False, True, False, True))
SET = RolloutSet(TRANSITION, "diagnostic", "faults_p025", 3, 4, 4)


def test_tokens_are_those_that_the_policy_chose() -> None:
    other = Transcript((1, 2, 3), (False, False, True))
    assert Recorded((ONE, other), (1, 0), (0.5, 0)).tokens.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("rewards", "weights"), [((1,), (1, 1)), ((1, 0), (1,)), ((1, 0, 1), (1, 1, 1)), ((), ())]
)
def test_lists_of_differing_lengths_are_refused(rewards: tuple, weights: tuple) -> None:
    with pytest.raises(UsageError, match="each rollout") as caught:
        Recorded((ONE, ONE), rewards, weights)
    assert caught.value.found == f"2 transcripts, {len(rewards)} rewards, {len(weights)} weights"


@pytest.mark.parametrize("reward", [0.5, -1, 2, math.nan, math.inf])
def test_a_reward_that_is_no_outcome_is_named(reward: float) -> None:
    with pytest.raises(DamagedError, match="not an outcome") as caught:
        Recorded((ONE, ONE), (1, reward), (1, 1))
    assert caught.value.where == "rollout 1"


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf, -math.inf])
def test_a_weight_that_is_no_ratio_is_named(weight: float) -> None:
    with pytest.raises(DamagedError, match="not a ratio") as caught:
        Recorded((ONE, ONE), (1, 0), (1, weight))
    assert (caught.value.where, caught.value.found) == ("rollout 1", str(weight))


def test_a_set_of_all_rollouts_is_accepted() -> None:
    check_number(16, SET, 0, 4)


@pytest.mark.parametrize(
    ("number", "error", "text"),
    [
        (0, IncompleteError, "fewer rollouts than a group"),
        (3, IncompleteError, "fewer rollouts than a group"),
        (12, IncompleteError, "lacks 1 of its schedules"),
        (4, IncompleteError, "lacks 3 of its schedules"),
        (15, IncompleteError, "a schedule of a task lacks rollouts"),
        (17, UsageError, "more rollouts than"),
        (20, UsageError, "more rollouts than"),
    ],
)
def test_another_number_of_rollouts_is_refused_with_the_reason(number: int, error: type, text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        check_number(number, SET, 2, 4)
    assert caught.value.where == "transition noise, task diagnostic:2"
    assert caught.value.expected == "16 rollouts: 4 schedules × 4"
