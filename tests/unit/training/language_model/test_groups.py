"""The register of groups against what each rollout's script came to on a desk of the test's own."""

import numpy as np
import pytest

from tests.unit.training.language_model.trained import Trained
from toolkit.estimators import mean_centred, standardized


@pytest.fixture(params=["paired", "independent"])
def run(request: pytest.FixtureRequest) -> Trained:
    return request.getfixturevalue(request.param)


def test_outcomes_are_those_of_the_rollouts_own_desks(run: Trained) -> None:
    for group, slot, part in run.rollouts:
        assert group["true_successes"][slot] == part.episode.true_success
        assert group["observed_rewards"][slot] == bool(part.episode.observed_reward)
        assert group["schedule_seeds"][slot] == part.episode.schedule.seed


def test_there_are_successes_and_failures_to_tell_apart(run: Trained) -> None:
    outcomes = {part.episode.true_success for _, _, part in run.rollouts}
    endings = {part.episode.ended for _, _, part in run.rollouts}
    assert outcomes == {True, False}
    assert endings == {"finished", "budget_exceeded", "stopped"}


def test_exposed_counts_the_rollouts_that_met_a_fault(run: Trained) -> None:
    for number, group in enumerate(run.groups):
        parts = [part for _, _, part in run.rollouts[8 * number : 8 * number + 8]]
        assert group["exposed"] == sum(bool(part.episode.exposures) for part in parts)
    assert any(group["exposed"] for group in run.groups)


def test_advantages_are_those_of_the_estimator(run: Trained) -> None:
    for group in run.groups:
        expected = standardized(np.array(group["observed_rewards"], float))
        np.testing.assert_allclose(group["advantages"], expected, rtol=2e-6, atol=1e-7)
    assert any(not group["zero_variance"] for group in run.groups)


def test_advantages_that_are_not_scaled_are_centred_alone(flips: dict[str, Trained]) -> None:
    groups = flips["independent"].groups
    for group in groups:
        expected = mean_centred(np.array(group["observed_rewards"], float))
        np.testing.assert_allclose(group["advantages"], expected, rtol=2e-6, atol=1e-7)
    assert any(not group["zero_variance"] for group in groups)


def test_a_flip_changes_the_reward_and_never_the_true_outcome(flips: dict[str, Trained]) -> None:
    for run in flips.values():
        flipped = [part.episode.flipped for _, _, part in run.rollouts]
        assert any(flipped)
        for (group, slot, _), is_flipped in zip(run.rollouts, flipped, strict=True):
            assert group["true_successes"][slot]
            assert group["observed_rewards"][slot] != is_flipped


def test_flips_make_spurious_groups_in_the_independent_design_alone(flips: dict[str, Trained]) -> None:
    spurious = {arm: [group["spurious"] for group in run.groups] for arm, run in flips.items()}
    varied = [len(set(group["observed_rewards"])) > 1 for group in flips["independent"].groups]
    assert spurious["independent"] == varied
    assert any(varied)
    assert not any(spurious["paired"])


def test_a_group_of_equal_rewards_is_flagged_and_has_no_gradient(
    flips: dict[str, Trained], paired: Trained
) -> None:
    groups = [*flips["paired"].groups, *flips["independent"].groups, *paired.groups]
    for group in groups:
        assert group["zero_variance"] == (len(set(group["observed_rewards"])) == 1)
        assert group["zero_variance"] == (not any(group["advantages"]))
    assert {group["zero_variance"] for group in groups} == {True, False}


def test_a_group_that_failed_in_part_is_not_spurious(paired: Trained) -> None:
    mixed = [group for group in paired.groups if not group["zero_variance"]]
    assert mixed
    assert not any(group["spurious"] for group in mixed)


def test_without_another_engine_there_are_no_importance_weights(paired: Trained) -> None:
    assert all("importance_weights" not in group for group in paired.groups)
