"""Effective sizes and the two limits of the condition: enumerated schedules, explicit scores."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import estimators

# A schedule is good or bad, with these chances of success: luck explains a known share of the rewards.
GOOD, BAD = Fraction(9, 10), Fraction(3, 10)
BETWEEN = ((GOOD - BAD) / 2) ** 2
MEAN = (GOOD + BAD) / 2
LUCK = BETWEEN / (MEAN * (1 - MEAN))


def variance(figure: object, size: int, *, paired: bool) -> Fraction:
    """Return the variance of a figure of a group's rewards, over every schedule and every outcome."""
    moments = [Fraction(0), Fraction(0)]
    schedules = [(s,) * size for s in (GOOD, BAD)] if paired else list(product((GOOD, BAD), repeat=size))
    for schedule in schedules:
        for rewards in product((0, 1), repeat=size):
            chance = Fraction(1, len(schedules))
            for success, reward in zip(schedule, rewards, strict=True):
                chance *= success if reward else 1 - success
            value = figure(rewards)
            moments[0] += chance * value
            moments[1] += chance * value**2
    return moments[1] - moments[0] ** 2


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_paired_mean_varies_as_that_of_fewer_independent_rewards(size: int) -> None:
    one = variance(lambda r: Fraction(r[0]), 1, paired=True)
    of_group = variance(lambda r: Fraction(sum(r), len(r)), size, paired=True)
    assert estimators.effective_group_size(size, LUCK) == one / of_group
    assert estimators.effective_group_size(size, Fraction(0)) == size
    assert estimators.effective_group_size(size, Fraction(1)) == 1


def test_a_paired_contrast_is_worth_that_many_independent_ones() -> None:
    def contrast(rewards: tuple[int, ...]) -> Fraction:
        return Fraction(rewards[0] - rewards[1])

    independent, paired = (variance(contrast, 2, paired=design) for design in (False, True))
    replicates = estimators.contrast_replicates(LUCK)
    # An average of n independent contrasts has the variance of one, over n.
    assert independent / replicates == paired
    assert estimators.contrast_replicates(Fraction(0)) == 1
    assert estimators.contrast_replicates(Fraction(1)) is None


def test_a_batch_of_equal_variance_has_equal_variance() -> None:
    """In the bandit, where the traces are exact: variances of batch means."""
    trace = estimators.bandit(Fraction(1, 2), 8, Fraction(1, 10)).mean_centred_trace
    batch = estimators.equal_variance_batch(24, trace.paired / trace.independent)
    assert trace.independent / batch == trace.paired / 24
    assert batch < 24  # the bandit's paired gradient varies more
    assert estimators.equal_variance_batch(24, 0.5) == 48


def explicit_ratio(outcomes: list[int], scores: np.ndarray) -> float:
    """Return L/R from vectors, as the paper writes them."""
    centred = scores - scores.mean(axis=0)
    r = np.array(outcomes)
    left = ((r[:, None] * centred).sum(axis=0) ** 2).sum()
    return float(left / (r * (centred**2).sum(axis=1)).sum())


@given(st.integers(2, 9), st.data())
def test_silent_successes_have_the_ratio_k_whatever_the_failures(size: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, size - 1))
    scores = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(size, 3))
    scores[:k] = 0
    outcomes = [1] * k + [0] * (size - k)
    assert estimators.silent_condition(k, size).ratio == k
    assert explicit_ratio(outcomes, scores) == pytest.approx(k, rel=1e-9)
    # Orthogonal failures of one length, to the last digit.
    sides = estimators.exact_condition(outcomes, np.diag([0.0] * k + [5.0] * (size - k)))
    exact = estimators.silent_condition(k, size, 5)
    assert (sides.left, sides.right) == pytest.approx((float(exact.left), float(exact.right)), rel=1e-12)


def test_without_a_success_or_a_failure_there_is_no_ratio() -> None:
    conditions = (estimators.orthogonal_condition, estimators.silent_condition)
    assert [condition(0, 8).ratio for condition in conditions] == [None, None]
    assert estimators.silent_condition(8, 8).ratio is None
