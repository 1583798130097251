"""Differences of arms that share their samples, and what sharing saves: by hand and simulated."""

import math
from statistics import mean, stdev, variance

import numpy as np
import pytest
from scipy import stats

from toolkit.estimators import coupled_difference, draw_seeds, variance_ratio

OWN = [0.11, -0.05, 0.06, -0.02, 0.02, -0.02, 0.05, -0.01, 0.0]
SHARED = [0.0, 0.01, 0.0, 0.02, -0.01, 0.0, 0.01, 0.02, 0.0]


def ratio(own: object = OWN, shared: object = SHARED, level: float = 0.95, resamples: int = 999) -> object:
    return variance_ratio(own, shared, level, resamples, 1)  # type: ignore[arg-type]


def test_a_difference_is_that_of_the_seeds() -> None:
    first, second = [0.5, 0.75, 0.25, 0.5], [0.25, 0.75, 0.0, 0.25]
    each = [0.25, 0.0, 0.25, 0.25]
    found = coupled_difference(first, second)
    assert (found.seeds, found.mean) == (4, mean(each))
    assert found.sd == pytest.approx(stdev(each))
    assert found.variance == pytest.approx(variance(each))
    assert found.standard_error == pytest.approx(stats.sem(each))
    assert found.correlation == pytest.approx(stats.pearsonr(first, second).statistic)
    expected = variance(first) + variance(second) - 2 * float(np.cov(first, second)[0, 1])
    assert found.variance == pytest.approx(expected)
    assert coupled_difference([0.5, 0.5], [0.1, 0.2]).correlation is None


def test_a_ratio_is_that_of_the_variances_and_its_interval_that_of_drawn_seeds() -> None:
    found = variance_ratio(OWN, SHARED, 0.9, 999, 7)
    assert (found.own, found.shared) == pytest.approx((variance(OWN), variance(SHARED)))
    assert found.ratio == pytest.approx(variance(OWN) / variance(SHARED))
    rows = [([OWN[at] for at in row], [SHARED[at] for at in row]) for row in draw_seeds(9, 999, 7).tolist()]
    drawn = sorted(variance(d) / variance(e) if len(set(e)) > 1 else math.inf for d, e in rows)
    tail = stats.norm.sf(stats.t.ppf(0.95, 8) * (9 / 8) ** 0.5)
    expected = [drawn[int(np.ceil(share * 999)) - 1] for share in (tail, 1 - tail)]
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.low < found.ratio < found.high


def test_the_scale_of_the_differences_does_not_matter_and_seeds_stay_together() -> None:
    found = ratio(10 * np.array(OWN), 10 * np.array(SHARED))
    assert found.low == pytest.approx(ratio().low)
    same = ratio(3 * np.array(SHARED), SHARED)
    assert (same.low, same.ratio, same.high) == pytest.approx((9, 9, 9))


def test_too_many_resamples_without_variation_leave_the_interval_open() -> None:
    found = ratio(shared=[0.0] * 8 + [0.01])
    assert found.high is None
    assert found.low > 1


def samples(kind: str, rng: np.random.Generator, seeds: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return differences of either sampling, and the true ratio of their variances."""
    if kind == "related":
        own = rng.standard_normal(seeds)
        return own, 0.15 * own + 0.2 * rng.standard_normal(seeds), 1 / (0.15**2 + 0.2**2)
    if kind == "heavy":
        return rng.standard_t(5, seeds), 0.25 * rng.standard_t(5, seeds), 16.0
    if kind == "mostly zero":
        shared = rng.poisson(0.15, seeds) - rng.poisson(0.15, seeds)
        return rng.binomial(64, 0.5, seeds) - rng.binomial(64, 0.5, seeds), shared, 32 / 0.3
    return rng.standard_normal(seeds), 0.25 * rng.standard_normal(seeds), 16.0


def covered(kind: str, seeds: int, studies: int = 1000) -> tuple[float, float]:
    """Return how often the interval, and the F interval of independent normal samples, hold the ratio."""
    rng = np.random.default_rng(1)
    below, above = stats.f.ppf([0.025, 0.975], seeds - 1, seeds - 1)
    held, of_f, asked = 0, 0, 0
    while asked < studies:
        own, shared, true = samples(kind, rng, seeds)
        if np.ptp(shared) == 0:
            continue
        asked += 1
        found = variance_ratio(own, shared, 0.95, 999, asked)
        held += found.low <= true and (found.high is None or true <= found.high)
        of_f += found.ratio / above <= true <= found.ratio / below
    return held / studies, of_f / studies


@pytest.mark.parametrize("seeds", [8, *(pytest.param(more, marks=pytest.mark.slow) for more in (12, 20, 40))])
@pytest.mark.parametrize(
    ("kind", "held", "of_f"),
    [
        ("normal", (0.93, 0.98), (0.94, 0.95)),
        ("related", (0.93, 0.98), (0.98, 0.99)),
        ("mostly zero", (0.93, 0.98), (0.85, 0.95)),
        ("heavy", (0.91, 0.96), (0.81, 0.87)),
    ],
)
def test_the_coverage_is_the_one_that_is_written_down(kind, seeds, held, of_f) -> None:
    for found, (least, most) in zip(covered(kind, seeds), (held, of_f), strict=True):
        assert least - 0.01 <= found <= most + 0.01
