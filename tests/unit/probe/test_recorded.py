"""What was recorded of a task's rollouts: whole, and possible."""

import math
from collections.abc import Sequence

import pytest

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.probe.adapter import Coordinates
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


@pytest.mark.parametrize(
    ("tokens", "chosen", "problem"),
    [
        ((1, 2, 3), (False, True), "says of each token"),
        ((), (), "chose no token"),
        ((1, 2), (False, False), "chose no token"),
        ((1, 2), (True, False), "no prefix"),
        ((1, -100, 3), (False, True, True), "negative"),
    ],
    ids=["lengths", "empty", "nothing-chosen", "first-chosen", "negative"],
)
def test_it_is_refused(tokens: Sequence[int], chosen: Sequence[bool], problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as stopped:
        Transcript(tuple(tokens), tuple(chosen))
    assert stopped.value.expected
    assert stopped.value.found
    assert stopped.value.remedy


def test_a_choice_is_predicted_at_the_token_before_it() -> None:
    assert Transcript((5, 6, 7, 8), (False, True, False, True)).choices == ((0, 6), (2, 8))


def test_coordinates_lie_end_to_end_and_their_hash_is_of_their_lines() -> None:
    coordinates = Coordinates(("a.weight", "b.weight"), ((2, 3), (4,)))
    assert coordinates.places == {"a.weight": slice(0, 6), "b.weight": slice(6, 10)}
    assert coordinates.size == 10
    # printf 'a.weight 2,3\nb.weight 4\n' | sha256sum
    assert coordinates.names_sha256 == "c91446d8674f066e01ae16693330302b596acd0570ba811751652ea370bda1e5"
