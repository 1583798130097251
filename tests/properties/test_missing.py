"""What is missing never decides: a verdict reached with gaps is the verdict of every way to fill them."""

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decisions.study import RULES, SmallStudy, rule, small_study
from toolkit.decisions.engine import Engine
from toolkit.rules.rulebook import load_rulebook

TESTS = (
    "mean(gap) >= 0.05",
    "each(gap > 0)",
    "majority(gap >= 0)",
    "max(gap) > 0.1",
    "decreasing(gap)",
    "first(gap) > last(gap)",
    "each(within(gap, 0, 0.2))",
    "between(mean(gap), -0.1, 0.1)",
    "any(each(gap > 0), each(gap < 0))",
    "not(all(max(gap) > 0, pooled < 0.5))",
    "pooled <= 0.1",
    "any(pooled > 0.2, mean(gap) > 0)",
    "count(gap > 0) = 1",
    "passes(A)",
    "not(passes(A))",
)
chosen = st.lists(st.sampled_from(TESTS), min_size=1, max_size=3, unique=True)
successes = st.lists(st.integers(0, 10), min_size=8, max_size=8)
spurious = st.lists(st.integers(0, 10), min_size=2, max_size=2)
kinds = st.sampled_from(["hypothesis", "prediction"])
holes = st.sets(st.integers(0, 9), min_size=1)


def study(counts: list[int], groups: list[int], missing: set[int]) -> SmallStudy:
    """Return the small study with given counts, some of them missing."""
    built = small_study()
    for number, (row, count) in enumerate(zip(built.tables["evaluations"], counts, strict=True)):
        row["successes"] = None if number in missing else count
    for number, (row, count) in enumerate(zip(built.tables["groups_summary"], groups, strict=True), start=8):
        row.update(spurious=None if number in missing else count, all_correct=10)
    return built


def verdict(tests: list[str], kind: str, parts: str, registers: SmallStudy) -> str:
    """Return the verdict of a rule made of tests; rule A is always the same."""
    more = f'parts = "{parts}"' if kind == "prediction" else ""
    text = RULES + rule("A", "mean(gap) > 0", "pooled < 0.3") + rule("B", *tests, kind=kind, more=more)
    return Engine(load_rulebook(text), ("small", ""), registers).decide("B").verdict


@given(chosen, kinds, st.sampled_from(["joint", "separate"]), st.data())
def test_filling_a_gap_never_changes_a_verdict(tests: list[str], kind: str, parts: str, data: Any) -> None:
    counts, groups, missing = data.draw(successes), data.draw(spurious), data.draw(holes)
    with_gaps = verdict(tests, kind, parts, study(counts, groups, missing))
    filled = verdict(tests, kind, parts, study(counts, groups, set()))
    assert filled not in ("not_evaluable", "not_run")
    assert with_gaps in (filled, "not_evaluable")


@given(successes, spurious, kinds)
def test_a_pass_needs_every_row(counts: list[int], groups: list[int], kind: str) -> None:
    nothing = study(counts, groups, set(range(10)))
    assert verdict(["mean(gap) >= -1", "pooled >= 0"], kind, "joint", nothing) == "not_evaluable"


@given(successes)
def test_a_contrast_changes_sign_with_its_arms(counts: list[int]) -> None:
    built = study(counts, [1, 1], set())
    turned = study(counts[4:] + counts[:4], [1, 1], set())
    book = load_rulebook(RULES + rule("A", "mean(gap) > 0"))
    first, other = (
        Engine(book, ("small", ""), each).decide("A").criteria[0].value for each in (built, turned)
    )
    assert isinstance(first, Fraction)
    assert first == -other
