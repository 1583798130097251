from itertools import combinations

import numpy as np
import pytest

from toolkit.estimators import contrast_variance, luck_share, reward_contrast


def test_the_proposition_in_both_designs() -> None:
    found = contrast_variance(0.06, 0.15)
    assert (found.independent, found.paired) == pytest.approx((0.42, 0.30))


def test_the_estimate_is_the_mean_over_all_pairs_of_siblings() -> None:
    groups = np.random.default_rng(1).normal(size=(40, 8))
    by_pairs = np.mean([(group[i] - group[j]) ** 2 for group in groups for i, j in combinations(range(8), 2)])
    assert reward_contrast(groups) == pytest.approx(by_pairs)


def test_estimates_from_groups_of_each_design_agree_with_the_proposition() -> None:
    rng = np.random.default_rng(2)
    between, within, groups = 0.5, 1.5, 200_000
    schedule = rng.normal(0, between**0.5, (groups, 4))
    policy = rng.normal(0, within**0.5, (groups, 4))
    expected = contrast_variance(between, within)
    assert reward_contrast(schedule + policy) == pytest.approx(expected.independent, rel=0.01)
    assert reward_contrast(schedule[:, :1] + policy) == pytest.approx(expected.paired, rel=0.01)


def test_the_ratio_of_the_designs_is_one_minus_the_luck_share() -> None:
    rewards = np.random.default_rng(3).random((8, 8)) < np.linspace(0.1, 0.9, 8)[:, None]
    split = luck_share(rewards)
    found = contrast_variance(split.between, split.within)
    assert split.share is not None
    assert found.paired / found.independent == pytest.approx(1 - split.share)


@pytest.mark.parametrize("groups", [[], [[1.0]], [1.0, 2.0], [[1.0, float("nan")]]])
def test_what_is_no_table_of_groups_is_refused(groups: object) -> None:
    with pytest.raises(ValueError, match=r"reward|expected"):
        reward_contrast(groups)  # type: ignore[arg-type]


@pytest.mark.parametrize("parts", [(-0.1, 1.0), (1.0, -0.1), (float("nan"), 1.0), (1.0, float("inf"))])
def test_a_variance_that_is_none_is_refused(parts: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="variances"):
        contrast_variance(*parts)
