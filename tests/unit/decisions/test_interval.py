"""Registered intervals and the evidence beside a verdict."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.unit.decisions.study import RULES, SmallStudy, rule
from toolkit.decisions.intervals import Interval, evidence_of, registered_interval
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.values import Missing

SPEC = load_rulebook(RULES + rule("H", "mean(gap) > 0")).intervals["gap_95"]


def published(**facts: Any) -> SmallStudy:
    row = {
        "endpoint": "gap",
        "level": Decimal("0.950000"),
        "low": Decimal("-0.0100"),
        "high": Decimal("0.0700"),
        "estimate": Decimal("0.0300"),
        "decimals": 4,
        "method": "percentile bootstrap",
        "resamples": 10000,
        "resampled": "seed pairs",
        **facts,
    }
    return SmallStudy({"intervals": [row]})


def test_a_published_interval_is_used_exactly_as_printed() -> None:
    interval = registered_interval(SPEC, Fraction("0.03001"), published())
    assert isinstance(interval, Interval)
    ends = (Fraction("-0.01"), Fraction("0.07"))
    assert (interval.low, interval.high, interval.source) == (*ends, "published")


MEAN = Fraction("0.03")
COARSE = {"estimate": Decimal(0), "decimals": 0}


@pytest.mark.parametrize(
    ("mean", "facts", "reason"),
    [
        (MEAN, {"level": Decimal("0.90")}, "no 95% interval of gap was published"),
        (MEAN, {"endpoint": "other"}, "no 95% interval of gap was published"),
        (MEAN, {"method": "guess"}, "was made by"),
        (MEAN, {"resamples": 1}, "was made by"),
        (MEAN, {"resampled": "episodes"}, "was made by"),
        (MEAN, COARSE, "belongs to an estimate of 0"),  # that would fit everything
        (Fraction("0.0300501"), {}, "belongs to an estimate of 0.03"),
        (Fraction("0.0302"), {}, "belongs to an estimate of 0.03"),
    ],
)
def test_another_interval_is_not_taken(mean: Fraction, facts: dict[str, Any], reason: str) -> None:
    answer = registered_interval(SPEC, mean, published(**facts))
    assert isinstance(answer, Missing)
    assert reason in answer.reasons[0]


def test_half_a_printed_digit_is_still_the_same_estimate() -> None:
    assert isinstance(registered_interval(SPEC, Fraction("0.03005"), published()), Interval)


def test_a_missing_mean_has_no_interval() -> None:
    gap = Missing(not_run=True, reasons=("never",))
    assert registered_interval(SPEC, gap, published()) == gap


@pytest.mark.parametrize(
    ("low", "high", "threshold", "expected"),
    [
        ("-0.01", "0.07", "0.03", "includes_zero"),
        ("0", "0.07", "0.03", "includes_zero"),
        ("0.01", "0.07", "0.03", "includes_threshold"),
        ("0.03", "0.07", "0.03", "includes_threshold"),
        ("0.01", "0.03", "0.03", "includes_threshold"),
        ("0.04", "0.07", "0.03", "excludes_zero"),
        ("0.01", "0.07", None, "excludes_zero"),
        ("-0.07", "-0.01", None, "excludes_zero"),
    ],
)
def test_evidence_says_what_lies_inside(low: str, high: str, threshold: str | None, expected: str) -> None:
    interval = Interval("i", "gap", Fraction("0.95"), Fraction(low), Fraction(high), "published", "")
    assert evidence_of(interval, Fraction(threshold) if threshold else None) == expected


@pytest.mark.parametrize("interval", [None, Missing(not_run=False, reasons=("gone",))])
def test_without_an_interval_nothing_is_estimated(interval: Missing | None) -> None:
    assert evidence_of(interval, None) == "not_estimated"
