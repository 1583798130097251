"""Advantages and the group gradient."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.estimators import group_gradient, leave_one_out, mean_centred, standardized

groups = st.lists(st.integers(0, 1), min_size=2, max_size=8).map(lambda r: np.array(r, dtype=float))


@given(groups)
def test_advantages_follow_their_definitions(rewards: np.ndarray) -> None:
    size = len(rewards)
    others = [(rewards.sum() - r) / (size - 1) for r in rewards]
    assert mean_centred(rewards) == pytest.approx(rewards - rewards.mean())
    assert leave_one_out(rewards) == pytest.approx(rewards - np.array(others))
    spread = np.sqrt(((rewards - rewards.mean()) ** 2).sum() / (size - 1))
    assert standardized(rewards) == pytest.approx((rewards - rewards.mean()) / (spread + 1e-4))


def test_a_constant_group_gives_no_gradient_at_all() -> None:
    assert (standardized(np.full((3, 8), 0.1)) == 0).all()


def test_groups_stand_along_the_last_axis() -> None:
    rewards = np.random.default_rng(1).random((4, 5, 8))
    for advantage in (mean_centred, leave_one_out, standardized):
        assert advantage(rewards)[2, 3] == pytest.approx(advantage(rewards[2, 3]))


def test_the_group_gradient_is_the_mean_of_products() -> None:
    rng = np.random.default_rng(2)
    advantages, scores = rng.normal(size=8), rng.normal(size=(8, 3))
    by_hand = sum(a * s for a, s in zip(advantages, scores, strict=True)) / 8
    assert group_gradient(advantages, scores) == pytest.approx(by_hand)
