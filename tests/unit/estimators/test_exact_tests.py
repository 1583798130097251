"""Exact tests: against every sign listed, and the same tests of scipy; adjusted p-values by hand."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from toolkit.estimators import (
    benjamini_hochberg,
    exact_tests,
    holm,
    mcnemar_test,
    sign_flip,
    sign_flip_test,
    wilcoxon_test,
)
from toolkit.estimators.exact_tests import ALTERNATIVES, ZEROS, ExactTest

F = Fraction
some = st.lists(st.integers(-6, 6), min_size=1, max_size=9)
alternatives = st.sampled_from(ALTERNATIVES)
DRAWN = np.random.default_rng(5)


def listed(weights: Sequence[Fraction], observed: Sequence[int], alternative: str) -> Fraction:
    """Return p by listing every sign of some weights."""
    at = sum(w * np.sign(d) for w, d in zip(weights, observed, strict=True))
    sums = [
        sum(w * s for w, s in zip(weights, signs, strict=True))
        for signs in product((1, -1), repeat=len(weights))
    ]
    reached = {
        "two-sided": [abs(s) >= abs(at) for s in sums],
        "greater": [s >= at for s in sums],
        "less": [s <= at for s in sums],
    }[alternative]
    return Fraction(sum(reached), len(sums))


def ranks(differences: Sequence[int], zeros: str) -> list[Fraction]:
    """Return the midrank of each difference, by counting those before it; none of a zero."""
    among = [abs(d) for d in differences if d or zeros == "ranked"]
    return [
        Fraction(2 * sum(a < abs(d) for a in among) + sum(a == abs(d) for a in among) + 1, 2) if d else F(0)
        for d in differences
    ]


@given(some, alternatives)
def test_a_sign_flip_is_every_sign_listed(differences: list[int], alternative: str) -> None:
    made = sign_flip_test(differences, alternative)
    assert made.p_value == listed([F(abs(d)) for d in differences], differences, alternative)
    assert (made.units, made.differing) == (len(differences), sum(d != 0 for d in differences))


@given(st.lists(st.integers(-6, 6), min_size=2, max_size=9))
def test_two_sided_it_is_the_one_that_decides_nothing(differences: list[int]) -> None:
    assert sign_flip_test(differences).p_value == sign_flip([F(d, 7) for d in differences]).p_value


@given(some, alternatives, st.sampled_from(ZEROS))
def test_signed_ranks_are_every_sign_of_midranks_listed(differences, alternative, zeros) -> None:
    made = wilcoxon_test(differences, alternative, zeros)
    assert made.p_value == listed(ranks(differences, zeros), differences, alternative)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("size", [5, 12, 40])
def test_signed_ranks_without_ties_are_those_of_scipy(alternative: str, size: int) -> None:
    differences = (DRAWN.permutation(size) + 1) * DRAWN.choice([-1, 1], size, p=[0.4, 0.6])
    theirs = stats.wilcoxon(differences, alternative=alternative, method="exact").pvalue
    assert float(wilcoxon_test(differences.tolist(), alternative).p_value) == pytest.approx(theirs, rel=1e-9)


@given(st.lists(st.sampled_from((-1, 0, 1)), min_size=1, max_size=70), alternatives)
def test_mcnemar_is_the_binomial_test_of_scipy_and_the_sign_flip_of_the_same(
    differences: list[int], alternative: str
) -> None:
    made = mcnemar_test(differences, alternative)
    if made.differing:
        theirs = stats.binomtest(differences.count(1), made.differing, alternative=alternative).pvalue
        assert float(made.p_value) == pytest.approx(theirs, rel=1e-9)
    assert made == sign_flip_test(differences, alternative)


@pytest.mark.parametrize("size", [31, 61])
@pytest.mark.parametrize("unit", [1, 6])
def test_counting_all_sums_gives_what_listing_them_does(monkeypatch, size, unit) -> None:
    """Beyond what is listed an oracle counts sums in a table, one difference after another."""
    differences = [int(d) * unit for d in DRAWN.integers(-20, 25, size)]
    counts = {0: 1}
    for d in differences:
        after: dict[int, int] = {}
        for total, number in counts.items():
            for signed in (total + d, total - d):
                after[signed] = after.get(signed, 0) + number
        counts = after
    expected = Fraction(sum(n for total, n in counts.items() if total >= sum(differences)), 2**size)
    assert sign_flip_test(differences, "greater").p_value == expected
    few = differences[:14]
    by_listing = [sign_flip_test(few, a) for a in ALTERNATIVES]
    monkeypatch.setattr(exact_tests, "LISTED", 3)
    assert [sign_flip_test(few, a) for a in ALTERNATIVES] == by_listing


def test_what_says_nothing_has_p_one() -> None:
    for made in (sign_flip_test([0, 0]), wilcoxon_test([0, 0]), mcnemar_test([0, 0])):
        assert made == ExactTest(F(1), 2, 0)
    assert sign_flip_test([2, -2]).p_value == 1


def test_adjusted_by_hand() -> None:
    """Five of 0.01, 0.04, 0.03, 0.005, 0.9: sorted 0.005, 0.01, 0.03, 0.04, 0.9.

    Holm: 5 × 0.005, 4 × 0.01, 3 × 0.03, then 2 × 0.04, raised to 0.09 before it, and 0.9. Benjamini-Hochberg:
    5/5 × 0.9, 5/4 × 0.04, 5/3 × 0.03, 5/2 × 0.01, 5/1 × 0.005.
    """
    p = [F("0.01"), F("0.04"), F("0.03"), F("0.005"), F("0.9")]
    assert holm(p) == (F("0.04"), F("0.09"), F("0.09"), F("0.025"), F("0.9"))
    assert benjamini_hochberg(p) == (F("0.025"), F("0.05"), F("0.05"), F("0.025"), F("0.9"))
    assert holm([F("0.7"), F("0.6")]) == (1, 1)
    assert holm([F("0.2")]) == benjamini_hochberg([F("0.2")]) == (F("0.2"),)


@given(st.lists(st.fractions(0, 1, max_denominator=99), min_size=1, max_size=8))
def test_benjamini_hochberg_is_that_of_scipy(p: list[Fraction]) -> None:
    theirs = stats.false_discovery_control([float(one) for one in p])
    assert [float(one) for one in benjamini_hochberg(p)] == pytest.approx(theirs.tolist())
    assert all(a <= b for a, b in zip(benjamini_hochberg(p), holm(p), strict=True))
