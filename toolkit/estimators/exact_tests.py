"""Exact tests that differences lie about zero, and p-values adjusted for how many tests there are.

All three tests weigh each difference, let chance choose every sign alike, and ask how often the positive
weights would add up to as much as they did. No draw is made and nothing is rounded: every p is a fraction.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

ALTERNATIVES = ("two-sided", "greater", "less")
# Zeros of the signed-rank test: left out before ranking (Wilcoxon), or after it (Pratt).
ZEROS = ("dropped", "ranked")
# Up to this many differences the sums of each half are listed; with more, all sums are counted at once.
LISTED = 30
# Bits of the longest such count: 64 MiB.
LARGEST = 2**29


@dataclass(frozen=True)
class ExactTest:
    """An exact test."""

    p_value: Fraction  # its p
    units: int  # how many differences there are
    differing: int  # how many of them are not zero: the others say nothing


def sign_flip_test(differences: Sequence[int], alternative: str = ALTERNATIVES[0]) -> ExactTest:
    """Exact sign-flip test of a zero mean: all 2^n signs.

    Differences are one a unit, whole numbers over a denominator that does not matter; the alternative says
    where the mean lies: `two-sided`, `greater` or `less`. Too many different sums to be counted are refused.

    Source: Fisher's randomization test: under the null hypothesis each difference is symmetric about zero.
    """
    sizes = [abs(d) for d in differences if d]
    positive = sum(d for d in differences if d > 0)
    return ExactTest(_p(differences, sizes, positive, alternative), len(differences), len(sizes))


def wilcoxon_test(
    differences: Sequence[int], alternative: str = ALTERNATIVES[0], zeros: str = ZEROS[0]
) -> ExactTest:
    """Exact signed-rank test of symmetry about zero; tied sizes share the mean of their ranks.

    As `sign_flip_test`; zeros are `dropped` before ranking, or `ranked` with the others, which counts for
    neither sign.

    Source: Wilcoxon 1945; Pratt 1959 for zeros that are ranked. The distribution is that of the ranks as they
    are tied, given their sizes.
    """
    if zeros not in ZEROS:
        raise ValueError(f"expected zeros {' or '.join(ZEROS)}, found {zeros}")
    ranked = sorted(abs(d) for d in differences if d or zeros == ZEROS[1])
    # Twice the mean rank of a tied size: its first and its last place, from 1, added.
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for place, size in enumerate(ranked, 1):
        first.setdefault(size, place)
        last[size] = place
    signed = [(first[abs(d)] + last[abs(d)]) * (1 if d > 0 else -1) for d in differences if d]
    positive = sum(rank for rank in signed if rank > 0)
    p = _p(differences, [abs(rank) for rank in signed], positive, alternative)
    return ExactTest(p, len(differences), len(signed))


def mcnemar_test(differences: Sequence[int], alternative: str = ALTERNATIVES[0]) -> ExactTest:
    """McNemar's exact test of two binary outcomes on the same units, whose differences are -1, 0 or 1.

    The alternative `greater` is that the first succeeds more often.

    Source: McNemar 1947, exact: of the discordant pairs, as many favour the first as of fair coins fall
    heads.
    """
    if not set(differences) <= {-1, 0, 1}:
        raise ValueError("expected differences of binary outcomes: -1, 0 or 1")
    discordant = sum(d != 0 for d in differences)
    p = _p(differences, [1] * discordant, sum(d > 0 for d in differences), alternative)
    return ExactTest(p, len(differences), discordant)


def holm(p_values: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Adjusted p-values, in order, that bound the chance of any false rejection, however the tests depend.

    Source: Holm 1979, step-down.
    """
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted, largest = [Fraction(0)] * len(order), Fraction(0)
    for rank, at in enumerate(order):
        largest = max(largest, min(Fraction(1), (len(order) - rank) * p_values[at]))
        adjusted[at] = largest
    return tuple(adjusted)


def benjamini_hochberg(p_values: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Adjusted p-values, in order, that bound the expected share of false rejections among all.

    The tests are independent, or positively dependent.

    Source: Benjamini and Hochberg 1995, step-up.
    """
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted, smallest = [Fraction(1)] * len(order), Fraction(1)
    for rank in range(len(order), 0, -1):
        at = order[rank - 1]
        smallest = min(smallest, Fraction(len(order), rank) * p_values[at])
        adjusted[at] = smallest
    return tuple(adjusted)


def _p(differences: Sequence[int], sizes: Sequence[int], positive: int, alternative: str) -> Fraction:
    """Return how often random signs give positive sizes that add up to as much as was observed."""
    if not differences:
        raise ValueError("expected one difference at least, found none")
    negative = sum(sizes) - positive
    if alternative == "two-sided":
        tail = _reaching(sizes, max(positive, negative))
        return min(Fraction(1), Fraction(2 * tail, 2 ** len(sizes)))
    if alternative not in ALTERNATIVES:
        raise ValueError(f"expected {', '.join(ALTERNATIVES)}, found {alternative}")
    # All signs turned, the positive sum is the negative one: both tails are alike.
    return Fraction(_reaching(sizes, positive if alternative == "greater" else negative), 2 ** len(sizes))


def _reaching(sizes: Sequence[int], least: int) -> int:
    """Return how many subsets of some whole numbers have a sum of at least `least`."""
    if len(sizes) <= LISTED:
        half = len(sizes) // 2
        second = sorted(_sums(sizes[half:]))
        return sum(len(second) - bisect_left(second, least - s) for s in _sums(sizes[:half]))
    # Digit k of `counts` is how many subsets have the sum k; a digit is wide enough never to be carried.
    width, unit = len(sizes) + 1, gcd(*sizes)
    if sum(sizes) // unit * width > LARGEST:
        raise ValueError(f"the {len(sizes)} differences have too many different sums to count them exactly")
    counts = 1
    for size in sizes:
        counts += counts << size // unit * width
    # In base b the sum of the digits is the remainder by b - 1, which it does not reach.
    return (counts >> -(-least // unit) * width) % ((1 << width) - 1)


def _sums(sizes: Sequence[int]) -> list[int]:
    """Return the sums of all subsets."""
    sums = [0]
    for size in sizes:
        sums += [s + size for s in sums]
    return sums
