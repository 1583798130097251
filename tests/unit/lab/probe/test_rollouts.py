"""What a log-linear probe plays and scores: seeds, outcomes, finite differences, blocks of coordinates."""

import math

import numpy as np
import pytest

from tests.unit.lab.probe import small
from tests.unit.lab.probe.small import CLEAN, FAULTY, SURFACE_TOKENS, parameters
from toolkit.errors import DamagedError, UsageError
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Policy, layout
from toolkit.lab.policies.score import score
from toolkit.lab.probe import rollouts as module
from toolkit.lab.probe.design import ACTIONS, ALL
from toolkit.lab.probe.rollouts import coordinate_blocks, coordinate_names, play_and_score

ACTION_COUNT = len(layout(0).actions)
SINGLE = 2.0**-23
SETS = pytest.mark.parametrize("rollouts", [CLEAN, FAULTY], ids=lambda one: one.noise)


def log_probability(values: list[float], played: Rollout) -> float:
    """Return the log-probability of a rollout's choices, at other parameters."""
    policy = Policy(values, SURFACE_TOKENS)
    chosen = [policy.action(choice.on).probabilities[at] for choice, at in played.decisions]
    chosen += [policy.token(choice.on).probabilities[at] for choice, at in played.tokens]
    return math.fsum(map(math.log, chosen))


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


def test_scores_are_finite_differences_of_log_probabilities() -> None:
    found, start, step = small.scored("transition").scores, list(parameters()), 1e-5
    listed = [one for one in small.replayed(FAULTY) if one[0][1] in {0, 5, 15}]
    assert len(listed) == 9
    for number, (at, played, _) in enumerate(listed):
        for coordinate in range(number % 11, len(start), 11):
            above, below = list(start), list(start)
            above[coordinate] += step
            below[coordinate] -= step
            slope = (log_probability(above, played) - log_probability(below, played)) / (2 * step)
            assert found[at][coordinate] == pytest.approx(slope, rel=4 * SINGLE, abs=1e-6)


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
