"""Charts: findings in words made from the data, intervals with what was resampled, one set of colours."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.decisions.curves import CurvePoint
from toolkit.website.charts import differences, theme
from toolkit.website.charts.curves import learning_curves
from toolkit.website.charts.differences import Spread, seed_differences
from toolkit.website.charts.forest import ForestRow, forest
from toolkit.website.charts.luck import Luck, luck_shares, reward_table
from toolkit.website.charts.marks import Bar, apart, swarm
from toolkit.website.charts.members import Dot, members
from toolkit.website.charts.probe import Ratio, condition_by_task, ratios

if TYPE_CHECKING:
    from toolkit.website.charts.drawing import Chart

BAR = Bar(Fraction(95, 100), Fraction(-1, 100), Fraction(8, 100), "computed (bootstrap of seed pairs; tasks)")
COLOURS = {
    *theme.ARM_COLOURS.values(),
    *theme.OTHERS,
    *(theme.INK, theme.FAINT, theme.GRID, theme.PAPER, theme.ACCENT, theme.LIMIT),
}


@pytest.fixture(autouse=True)
def kept_nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "charts"))


def spread(*values: int, arms: tuple[str, ...] = ("paired", "independent"), absent: int = 0) -> Spread:
    members = tuple((str(i), Fraction(value, 100)) for i, value in enumerate(values))
    mean = None if absent else Fraction(sum(values), 100 * len(values))
    bar = None if absent else BAR
    return Spread("Some AUC", "fraction", arms, "seed", members, absent, mean, bar, Fraction(3, 100))


def drawn(chart: Chart | None) -> Chart:
    assert chart is not None
    return chart


def every_chart() -> list[Chart]:
    points = tuple(
        CurvePoint(arm, series, step, Fraction(step + 50, 200))
        for arm in ("paired", "independent")
        for series in ("seed 0", "mean")
        for step in (0, 20)
    )
    row = ForestRow("H1", "One", "miss", "fraction", Fraction(0), BAR, Fraction(3, 100))
    found = (
        seed_differences(spread(5, -1, 6)),
        seed_differences(spread(*range(20))),
        learning_curves(points, "C2", "successes / episodes"),
        members(
            "A ratio", "checkpoint", "ratio", (Dot("a@20", 0.7, 0.6, 0.8),), "bars: 95%, tasks resampled"
        ),
        forest((row,), "s"),
        ratios("A ratio", (Ratio("a", 20, 0.7, 0.6, 0.8), Ratio("base", 0, 0.9, None, None)), "bars: 95%"),
        condition_by_task("a@20", "score²", (("t:0", 0.1, 0.2), ("t:1", 0.3, 0.2))),
        luck_shares("C2", (Luck("r", "paired", 0, 0.4, 0.3, 0.5),), "bars: 95%"),
        reward_table("r, step 0", "Luck share 0.5", ((True, False), (True, True)), (0, 1)),
    )
    return [drawn(chart) for chart in found]


def test_a_title_counts_the_seeds_that_it_speaks_of() -> None:
    assert drawn(seed_differences(spread(5, -1, 6))).title == (
        "Paired above independent in 2 of 3 seeds; mean +0.0333, interval includes zero"
    )


def test_a_tie_is_no_advantage() -> None:
    assert "above independent in 1 of 3 seeds, equal in 1" in drawn(seed_differences(spread(5, 0, -1))).title


def test_a_missing_seed_is_counted_and_there_is_no_mean() -> None:
    chart = drawn(seed_differences(spread(5, 6, absent=1)))
    assert chart.title == "Paired above independent in 2 of 3 seeds, 1 missing"
    assert "mean" not in re.sub(r"<desc>.*?</desc>", "", chart.svg)


def test_one_arm_is_compared_with_nothing() -> None:
    assert "above" not in drawn(seed_differences(spread(5, 6, arms=("clean",)))).title


def test_a_caption_names_the_interval_and_what_was_resampled() -> None:
    caption = drawn(seed_differences(spread(5, -1, 6))).caption
    assert "95% interval [-0.0100, +0.0800] of the mean, computed (bootstrap of seed pairs; tasks)" in caption
    assert "Dashed line: registered threshold +0.03" in caption


def test_twenty_seeds_need_no_more_room_than_a_few() -> None:
    height = re.search(r'<svg [^>]*height="(\d+)', drawn(seed_differences(spread(*range(20)))).svg)
    assert height
    assert int(height[1]) < 300


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=25))
def test_dots_that_share_a_row_never_touch(values: list[int]) -> None:
    offsets = swarm([float(value) for value in values], 3.0)
    placed = list(zip(values, offsets, strict=True))
    for i, (one, row) in enumerate(placed):
        assert all(other_row != row or abs(other - one) >= 3 for other, other_row in placed[:i])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_labels_keep_their_order_and_their_distance(places: list[float]) -> None:
    moved = apart(places, 0.2)
    order = sorted(range(len(places)), key=lambda i: places[i])
    for low, high in pairwise(order):
        assert moved[high] - moved[low] >= 0.2 - 1e-9


def test_labels_that_are_apart_stay_where_they_are() -> None:
    assert apart([0.9, 0.1, 0.5], 0.2) == [0.9, 0.1, 0.5]


def test_curves_are_named_where_they_end_and_have_no_legend() -> None:
    chart = every_chart()[2]
    assert "role-legend" not in chart.svg
    assert "paired 35.0%" in chart.svg
    assert "independent 35.0%" in chart.svg


def test_arms_of_different_size_are_not_said_to_have_the_same_seeds() -> None:
    points = tuple(
        CurvePoint(arm, f"seed {seed}", 0, Fraction(seed + 1, 4))
        for arm, seeds in (("paired", 3), ("clean", 2))
        for seed in range(seeds)
    )
    chart = drawn(learning_curves(points, "C4", "successes / episodes"))
    assert "Thin lines are 2 to 3 seeds" in chart.caption


def test_curves_that_meet_are_not_said_to_be_apart() -> None:
    assert every_chart()[2].title == "Paired above independent at 0 of 2 steps, equal at 2, on average"


def test_a_checkpoint_is_called_as_the_registration_calls_it() -> None:
    chart = every_chart()[3]
    assert ">a@20<" in chart.svg
    assert chart.title == "1 checkpoint below 1; no interval reaches 1"


def test_the_line_at_one_is_explained() -> None:
    assert "Dashed line: 1" in every_chart()[3].caption
    assert "Dashed line: 1" in every_chart()[5].caption


def test_an_interval_that_reaches_one_is_counted() -> None:
    dots = (Dot("a", 0.7, 0.6, 1.1), Dot("b", 1.2, 1.1, 1.3))
    chart = drawn(members("A ratio", "checkpoint", "ratio", dots, "bars: 95%, tasks resampled"))
    assert chart.title == "1 of 2 checkpoints below 1; 1 interval reaches 1"


def test_a_forest_draws_an_estimate_of_zero_and_names_what_it_leaves_out() -> None:
    rows = (
        ForestRow("H1", "One", "miss", "fraction", Fraction(0), BAR, None),
        ForestRow("H2", "Two", "pass", "", None, None, None),
        ForestRow("H3", "Three", "pass", "steps", Fraction(2), BAR, None),
        ForestRow("H4", "Four", "pass", "fraction", Fraction(1, 50), BAR, None),
    )
    chart = drawn(forest(rows, "mine"))
    assert "H1 miss, +0.0000, 95% interval" in chart.caption
    assert "Without an interval, and not drawn: H2." in chart.caption
    assert "In another unit, and not drawn: H3." in chart.caption
    assert "computed (bootstrap of seed pairs; tasks)" in chart.caption
    assert chart.title == "The interval of each of 2 rules includes zero"


def test_no_interval_gives_no_forest() -> None:
    assert forest((ForestRow("H2", "Two", "pass", "", None, None, None),), "mine") is None


def test_every_drawing_uses_the_colours_that_dark_mode_knows() -> None:
    for chart in every_chart():
        found = set(re.findall(r"#[0-9a-f]{6}\b", chart.svg.lower()))
        assert found <= COLOURS, (chart.title, found - COLOURS)
        assert not re.search(r'(?:fill|stroke)="(?:rgb|black|white|#[0-9a-fA-F]{3}")', chart.svg), chart.title


def test_every_drawing_says_in_words_what_it_shows() -> None:
    for chart in every_chart():
        assert chart.caption
        assert "<desc>" in chart.svg
        assert 'role="img"' in chart.svg


def test_hostile_names_stay_text() -> None:
    hostile = "</svg><script>alert(1)</script>"
    chart = drawn(ratios(hostile, (Ratio(hostile, 20, 0.7, None, None),), hostile))
    assert "<script" not in chart.svg
    assert chart.svg.count("</svg>") == 1
    assert "&lt;script&gt;" in chart.svg


def test_a_drawing_is_kept_while_its_values_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    first = seed_differences(spread(4, -2, 6))
    monkeypatch.setattr(differences, "draw", lambda *_, **__: pytest.fail("drawn anew"))
    assert seed_differences(spread(4, -2, 6)) == first


def test_a_huge_name_leaves_a_drawing_its_size() -> None:
    chart = drawn(ratios("A ratio", (Ratio("x" * 5000, 20, 0.7, None, None),), "no intervals"))
    width = re.search(r'<svg [^>]*width="(\d+)', chart.svg)
    assert width
    assert int(width[1]) < 1200
