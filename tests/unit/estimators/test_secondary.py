"""What a few seeds can say, against scipy and the figures computed for the published study."""

from fractions import Fraction

import pytest
from scipy import stats

from toolkit.estimators import leave_one_out_means, sign_flip, t_interval, t_quantile

H2A = [Fraction(69, 1280), Fraction(-1, 640), Fraction(15, 256)]
H3 = [Fraction(7, 96), Fraction(1, 64), Fraction(7, 96)]


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 10, 29, 100])
@pytest.mark.parametrize("probability", [0.01, 0.5, 0.6, 0.9, 0.975, 0.9995])
def test_quantiles_are_scipys(degrees: int, probability: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(
        stats.t.ppf(probability, degrees), rel=1e-8, abs=1e-8
    )


def test_t_intervals_of_the_published_study() -> None:
    assert t_interval([float(d) for d in H2A], 0.95) == pytest.approx((-0.046, 0.120), abs=5e-4)
    assert t_interval([float(d) for d in H3], 0.95) == pytest.approx((-0.028, 0.136), abs=5e-4)


def test_a_t_interval_is_scipys() -> None:
    values = [0.1, -0.3, 0.2, 0.05]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert t_interval(values, 0.9) == pytest.approx((expected.low, expected.high))


def test_sign_flips_are_scipys_permutations() -> None:
    values = [Fraction(3), Fraction(-1), Fraction(4), Fraction(2)]
    theirs = stats.permutation_test(
        ([float(v) for v in values],),
        lambda x, axis=-1: abs(x.mean(axis=axis)),
        permutation_type="samples",
        vectorized=True,
        alternative="greater",
        n_resamples=10_000,
    )
    assert float(sign_flip(values).p_value) == pytest.approx(theirs.pvalue)


def test_three_seeds_cannot_be_significant() -> None:
    assert sign_flip([Fraction(1)] * 3).p_value == sign_flip(H2A).smallest == Fraction(1, 4)
    assert sign_flip(H2A).p_value == Fraction(1, 2)


def test_means_without_each_seed_of_the_published_study() -> None:
    assert [float(m) for m in leave_one_out_means(H2A)] == pytest.approx([0.0285, 0.0562, 0.0262], abs=6e-5)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")]])
def test_too_little_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"two differences|not finite"):
        t_interval(values, 0.95)


def test_other_misfits_are_refused() -> None:
    with pytest.raises(ValueError, match="found 1"):
        sign_flip([Fraction(1)])
    with pytest.raises(ValueError, match="found 21"):
        sign_flip([Fraction(1)] * 21)
    with pytest.raises(ValueError, match="found 1"):
        leave_one_out_means([Fraction(1)])
    with pytest.raises(ValueError, match="level"):
        t_interval([0.0, 1.0], 1.0)
    with pytest.raises(ValueError, match="degree"):
        t_quantile(0.5, 0)
