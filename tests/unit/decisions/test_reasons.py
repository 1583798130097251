"""Why a verdict came out: words against rules, counts against rows that another engine adds up."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.cases import load_cases
from toolkit.decisions.case import Case, rows_query
from toolkit.decisions.decision import (
    CriterionResult,
    counts_say,
    criterion_says,
    interval_says,
    missing_says,
    range_text,
    what_decided,
)
from toolkit.decisions.engine import Measured, judge
from toolkit.decisions.intervals import Interval
from toolkit.registers.query import ask
from toolkit.rules.rules import Criterion
from toolkit.rules.sections import Formula
from toolkit.rules.values import Missing, Series
from toolkit.structs import replace


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return {case.study.name: case for case in load_cases(["published", "embedded", "coupled", "bfcl"])}


def criterion(case: Case, rule: str, name: str) -> CriterionResult:
    (found,) = (c for c in case.decide(rule).criteria if c.id == name)
    return found


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("H2a", "1 of 3 criteria fails: every_seed at seed 1"),
        ("H2b", "2 of 3 criteria fail: mean, every_seed at seed 2"),
        ("H3", "both criteria hold"),
        ("H4", "2 of 2 criteria cannot be evaluated"),
        ("H5", "the criterion holds"),
        ("gate2", "the criterion fails: either_passes"),
    ],
)
def test_the_criterion_and_the_seed_that_decided_are_named(case: Case, rule: str, says: str) -> None:
    assert what_decided(case.decide(rule)) == says


def test_the_counts_of_a_criterion_are_those_of_its_rows(case: Case) -> None:
    """DuckDB adds up the rows that `explain` lists."""
    checked = 0
    for decision in case.decide_all():
        for judged in decision.criteria:
            if not judged.counts:
                continue
            (name,) = (endpoint for endpoint in decision.endpoints_read if _reads(case, judged, endpoint))
            query = rows_query(case.book.endpoints[name], case.book.plan, case.study)
            for counts in judged.counts:
                seed = "" if counts.seed is None else f" AND seed = {counts.seed}"
                rows = f"FROM ({query}) WHERE arm = '{counts.arm}'{seed}"
                sums = f"SELECT sum({counts.counted}), sum({counts.among}) {rows}"
                assert ask(case.study, sums).rows[0] == (counts.count, counts.of), (decision.rule, judged.id)
                checked += 1
    assert checked > 30


def _reads(case: Case, judged: CriterionResult, endpoint: str) -> bool:
    """Whether a test mentions an endpoint, itself or by its interval."""
    intervals = [name for name, spec in case.book.intervals.items() if spec.endpoint == endpoint]
    words = judged.test.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return any(name in words for name in (endpoint, *intervals))


def test_a_failing_seed_is_counted_by_itself(case: Case) -> None:
    judged = criterion(case, "H2a", "every_seed")
    assert judged.failing == ("1",)
    assert (
        counts_say(judged.counts)
        == "seed 1: paired 473, independent 474 of 768 episodes each, 6 steps unweighted"
    )
    assert criterion_says(judged) == (
        "each(c2_auc > 0): fails at seed 1 (-0.0016 = -1/640), holds at 2 of 3 seeds"
    )


def test_a_series_that_holds_is_told_by_its_range(case: Case) -> None:
    judged = criterion(case, "H3", "every_seed")
    assert criterion_says(judged) == (
        "each(c2_challenge > 0): holds at 3 of 3 seeds, 0.0156 = 1/64 to 0.0729 = 7/96"
    )


def test_a_test_of_rules_shows_their_verdicts(case: Case) -> None:
    judged = criterion(case, "gate2", "either_passes")
    assert criterion_says(judged) == "any(passes(H2a), passes(H2b)): H2a miss, H2b miss"


def test_what_was_measured_is_not_shown_as_a_fraction(case: Case) -> None:
    judged = case.decide("P13").criteria[0]
    assert criterion_says(judged) == "each(probe_condition_base <= 0.5): base@0 0.2749"


def test_a_comparison_shows_both_sides(cases: dict[str, Case]) -> None:
    judged = criterion(cases["embedded"], "H4", "larger_with_scaling")
    assert criterion_says(judged).endswith(": 0.0016 = 1/640 against 0.0242 = 31/1280")


@pytest.mark.parametrize(
    ("study", "rule", "says"),
    [
        ("published", "H2a", "includes zero and the threshold 0.03"),
        ("published", "P4", "includes zero"),
        ("published", "H5", "above -0.03"),
        ("published", "H1a", ""),
        ("embedded", "E1", "not above zero"),
        ("embedded", "E4", "inside ±0.01"),
        ("coupled", "D1", "below zero"),
        ("coupled", "V1", "above 10"),
        ("bfcl", "Q_turns", "inside ±0.01"),
    ],
)
def test_an_interval_speaks_in_the_terms_of_its_test(cases, study, rule, says) -> None:
    assert interval_says(cases[study].decide(rule)) == says


MARGINS = ("equivalent({i}, 0.01)", "all(lower({i}) >= -0.01, upper({i}) <= 0.01)", "lower({i}) > -0.01")
OTHERS = ("lower({i}) >= -0.01", "upper({i}) < 0.01", "0.01 >= upper({i})", "non_inferior({i}, 0.01)")


@given(low=st.integers(-2, 2), wide=st.integers(0, 4), test=st.sampled_from(MARGINS + OTHERS))
def test_a_region_is_said_exactly_where_the_test_holds(cases, low, wide, test) -> None:
    """The engine judges the same test on the same interval, whose ends lie at, inside and outside of it."""
    case = cases["bfcl"]
    decision = case.decide("Q_turns")
    assert isinstance(decision.interval, Interval)
    moved = replace(decision.interval, low=Fraction(low, 100), high=Fraction(low + wide, 100))
    written = test.format(i=moved.id)
    criterion = Criterion("q", "Q", Formula.decoded(written))
    judged = judge(criterion, Measured({}, {moved.id: moved}, {}, {}), case.book)
    said = interval_says(replace(decision, interval=moved, criteria=(judged,)))
    assert said.startswith("not ") is (judged.holds is False)
    assert said.removeprefix("not ").split()[0] in ("inside", "above", "below", "at")


@pytest.mark.parametrize(
    "test",
    ["any(lower({i}) > 0, upper({i}) < 0)", "any(lower({i}) > -1, upper({i}) < 1)", "not(lower({i}) > 0)"],
)
def test_a_test_that_is_no_region_leaves_the_interval_to_zero(cases: dict[str, Case], test: str) -> None:
    decision = cases["bfcl"].decide("Q_turns")
    assert isinstance(decision.interval, Interval)
    (judged,) = decision.criteria
    written = replace(judged, test=test.format(i=decision.interval.id))
    assert interval_says(replace(decision, criteria=(written,))) == "includes zero"


def test_seeds_are_shown_each_or_as_their_range(case: Case) -> None:
    decision = case.decide("H2a")
    assert decision.estimate is not None
    assert range_text(decision) == "-0.0016 to +0.0586"
    assert decision.estimate.members_text == "0:+0.0539, 1:-0.0016, 2:+0.0586"


def test_a_member_that_is_missing_holds_nowhere(case: Case) -> None:
    """Of three seeds one fails, one holds, and one has no value."""
    judged = criterion(case, "H2a", "every_seed")
    gap = Missing(not_run=False, reasons=("lost",))
    value = Series("seed", (("0", Fraction(1)), ("1", Fraction(-1)), ("2", gap)))
    truths = Series("seed", (("0", True), ("1", False), ("2", gap)))
    said = criterion_says(replace(judged, value=value, truths=truths))
    assert said.endswith("fails at seed 1 (-1), holds at 1 of 3 seeds")


def test_a_series_is_compared_with_a_series(case: Case) -> None:
    judged = criterion(case, "H3", "every_seed")
    number, series = Fraction(0), judged.value
    assert isinstance(series, Series)
    said = criterion_says(replace(judged, value=number, against=series, truths=None))
    assert said.endswith(": 0 against 0.0156 = 1/64 to 0.0729 = 7/96")


def test_what_is_missing_is_told_once(case: Case) -> None:
    said = missing_says(case.decide("H4"))
    assert said.startswith("missing: C4 paired seed 0 with scale_rewards none was not run, and 3 more")
    assert missing_says(case.decide("H2a")) == ""


def test_a_bound_written_first_is_read_as_the_same_bound(cases: dict[str, Case]) -> None:
    decision = cases["embedded"].decide("H5")
    (judged,) = decision.criteria
    turned = replace(judged, test="-0.03 < lower(c2_held_out_90)")
    assert interval_says(replace(decision, criteria=(turned,))) == interval_says(decision) == "above -0.03"
