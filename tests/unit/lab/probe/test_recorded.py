"""What was recorded of a task's rollouts: whole, and possible."""

import math

import pytest

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.probe.adapter import Coordinates
from toolkit.lab.probe.design import TRANSITION, RolloutSet
from toolkit.lab.probe.recorded import Recorded, Transcript, check_number

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


@pytest.mark.parametrize(
    ("reward", "weight", "problem"),
    [
        *((reward, 1.0, "not an outcome") for reward in (0.5, -1, 2, math.nan)),
        *((0.0, weight, "not a ratio") for weight in (-0.1, math.nan, math.inf)),
    ],
)
def test_what_is_no_outcome_or_no_ratio_is_named(reward: float, weight: float, problem: str) -> None:
    with pytest.raises(DamagedError, match=problem) as caught:
        Recorded((ONE, ONE), (1, reward), (1, weight))
    assert caught.value.where == "rollout 1"


@pytest.mark.parametrize(
    ("number", "error", "text"),
    [
        (3, IncompleteError, "fewer rollouts than a group"),
        (12, IncompleteError, "lacks 1 of its schedules"),
        (4, IncompleteError, "lacks 3 of its schedules"),
        (15, IncompleteError, "a schedule of a task lacks rollouts"),
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
)
def test_a_transcript_that_has_no_score_is_refused(
    tokens: tuple[int, ...], chosen: tuple[bool, ...], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem) as stopped:
        Transcript(tokens, chosen)
    assert stopped.value.remedy


def test_a_choice_is_predicted_at_the_token_before_it() -> None:
    assert Transcript((5, 6, 7, 8), (False, True, False, True)).choices == ((0, 6), (2, 8))


def test_coordinates_lie_end_to_end_and_their_hash_is_of_their_lines() -> None:
    coordinates = Coordinates(("a.weight", "b.weight"), ((2, 3), (4,)))
    assert coordinates.places == {"a.weight": slice(0, 6), "b.weight": slice(6, 10)}
    assert coordinates.size == 10
    # printf 'a.weight 2,3\nb.weight 4\n' | sha256sum
    assert coordinates.names_sha256 == "c91446d8674f066e01ae16693330302b596acd0570ba811751652ea370bda1e5"
