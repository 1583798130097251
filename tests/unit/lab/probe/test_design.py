"""What a probe plays, scores and records, and which rollouts make a group."""

import math

import numpy as np
import pytest

from tests.unit.lab.probe import small
from tests.unit.lab.probe.small import CLEAN, DESIGN, FAULTY, SURFACE_TOKENS
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.policies.agent import Rollout, score
from toolkit.lab.policies.loglinear import Policy, layout
from toolkit.lab.probe import checkpoint as module
from toolkit.lab.probe.checkpoint import coordinate_blocks, coordinate_names, play_and_score
from toolkit.lab.probe.design import (
    ACTIONS,
    ALL,
    TRANSITION,
    RolloutSet,
    draw_groups,
    index_rows,
    paired_groups,
    read_groups,
)
from toolkit.lab.probe.lora import Coordinates
from toolkit.lab.probe.recorded import Recorded, Transcript, check_number
from toolkit.registers.arrow import Row
from toolkit.structs import replace

SIZE = FAULTY.per_schedule


def labels(group: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(at // SIZE for at in group)


# -------------------------------------------------------------------------------------- what lists are


def test_paired_groups_are_the_schedules() -> None:
    found = paired_groups(FAULTY)
    assert sorted(at for group in found for at in group) == list(range(FAULTY.rollouts))
    assert [set(labels(group)) for group in found] == [{k} for k in range(FAULTY.schedules)]


def test_lists_follow_from_the_seed_alone_by_task_and_comparator() -> None:
    assert index_rows(DESIGN) == index_rows(replace(DESIGN, level=0.5, rng_seed=1))
    assert index_rows(DESIGN) != index_rows(replace(DESIGN, root="another"))
    drawn = {draw_groups(DESIGN, name, task) for name in ("independent", "stratified") for task in (0, 1)}
    assert len(drawn) == 4


# --------------------------------------------------------------------------------------- what is refused


def rows_with(change: object, design: str = "independent") -> list[Row]:
    """Return the index rows with one list changed."""
    rows = index_rows(DESIGN)
    at = next(i for i, row in enumerate(rows) if (row["design"], row["task"], row["group"]) == (design, 1, 2))
    rows[at] = rows[at] | {"rollouts": change(rows[at]["rollouts"])}
    return rows


def test_lists_are_read_as_they_were_drawn() -> None:
    found = read_groups(index_rows(DESIGN), FAULTY)
    assert list(found) == ["paired", "independent", "stratified"]
    for task in range(FAULTY.tasks):
        assert found["paired"][task] == paired_groups(FAULTY)
        for name in ("independent", "stratified"):
            assert found[name][task] == draw_groups(DESIGN, name, task)
    assert found == small.groups()


@pytest.mark.parametrize(
    ("design", "change", "reason"),
    [
        ("independent", lambda _: [0, 1, 2, FAULTY.rollouts], "does not have"),
        ("independent", lambda _: [0, 1, 2, -1], "does not have"),
        ("independent", lambda listed: [*listed[:3], listed[0]], "names a rollout twice"),
        ("independent", lambda listed: listed[:3], "another number of rollouts"),
        ("stratified", lambda listed: [*listed, 0], "another number of rollouts"),
        ("stratified", lambda _: [0, 1, 5, 9], "two rollouts of one schedule"),
    ],
)
def test_a_list_that_no_comparator_draws_is_named(design: str, change: object, reason: str) -> None:
    with pytest.raises(DamagedError, match=reason) as caught:
        read_groups(rows_with(change, design), FAULTY)
    assert f"probe_indices, {design}, task 1, group 2" in str(caught.value)


@pytest.mark.parametrize(
    ("task", "groups", "problem", "named"),
    [
        (2, range(6), "no stratified group of a task", "task 2"),
        (1, [5], "fewer stratified groups", "5 of task 1"),
    ],
)
def test_a_task_without_groups_or_with_fewer_is_named(task, groups, problem, named) -> None:
    lacking = [("stratified", task, group) for group in groups]
    rows = [r for r in index_rows(DESIGN) if (r["design"], r["task"], r["group"]) not in lacking]
    with pytest.raises(IncompleteError, match=problem) as caught:
        read_groups(rows, FAULTY)
    assert named in str(caught.value)


# ------------------------------------------------------------------------------------------- the design


def test_sets_that_make_no_group_are_refused() -> None:
    with pytest.raises(UsageError, match="fewer than two rollouts"):
        replace(DESIGN, outcome=DESIGN.outcome._replace(per_schedule=1))
    with pytest.raises(UsageError, match="fewer schedules than rollouts") as caught:
        replace(DESIGN, transition=FAULTY._replace(schedules=SIZE - 1))
    assert f"at least {SIZE} schedules" in str(caught.value)


ACTION_COUNT = len(layout(0).actions)
SETS = pytest.mark.parametrize("rollouts", [CLEAN, FAULTY], ids=lambda one: one.noise)


@SETS
def test_rollouts_are_those_of_their_seeds(rollouts) -> None:
    found = small.scored(rollouts.noise)
    for at, played, success in small.replayed(rollouts):
        assert found.rewards[at] == float(success)
        assert found.tokens[ACTIONS][at] == len(played.decisions)
        assert found.tokens[ALL][at] == len(played.decisions) + len(played.tokens)
        np.testing.assert_array_equal(found.scores[at], np.float32(score(small.policy(), played)))
    assert (found.weights == 1).all()
    assert 0 < found.rewards.mean() < 1


def test_blocks_lie_side_by_side_and_are_named() -> None:
    whole = layout(SURFACE_TOKENS)
    blocks = coordinate_blocks(whole, (ALL, ACTIONS))
    assert blocks == {ACTIONS: slice(0, ACTION_COUNT), ALL: slice(ACTION_COUNT, whole.size)}
    names = coordinate_names(whole, ALL)
    assert len(set(names)) == len(names) == whole.size
    assert coordinate_names(whole, ACTIONS) == names[:ACTION_COUNT]
    assert all(name.startswith("action ") for name in names[:ACTION_COUNT])
    for tool, first in whole.tokens.items():
        assert names[first : first + SURFACE_TOKENS] == [f"token {tool} {v}" for v in range(SURFACE_TOKENS)]


@pytest.mark.parametrize("scored", [("all", "adapter"), ()])
def test_what_the_policy_does_not_have_is_not_scored(scored: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="not the policy's"):
        coordinate_blocks(layout(SURFACE_TOKENS), scored)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e39])
def test_a_score_that_is_not_finite_is_named(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """1e39 is finite in double precision only."""
    calls = []

    def broken(policy: Policy, rollout: Rollout) -> list[float]:
        calls.append(rollout)
        found = score(policy, rollout)
        if len(calls) == 7:  # rollout 2 of task 1
            found[3] = value
        return found

    monkeypatch.setattr(module, "score", broken)
    with np.errstate(over="ignore"), pytest.raises(DamagedError) as caught:
        play_and_score(small.policy(), CLEAN, 1, 0)
    assert "rollout 2 of task 1, coordinate 3" in str(caught.value)
    assert "probe/outcome" in str(caught.value)


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
def test_a_transcript_that_has_no_score_is_refused(tokens, chosen, problem) -> None:
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
