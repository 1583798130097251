"""Charts: what their words say, and that their marks stand where the axis says."""

import re
import time
from fractions import Fraction
from importlib.resources import files
from itertools import pairwise
from math import isclose
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.decisions.measure import CurvePoint
from toolkit.rules.terms import Picture, Predicted, Predictor
from toolkit.rules.values import Missing, Value
from toolkit.site.charts import svg
from toolkit.site.charts.curves import learning_curves, success_by_step, timeline, training_steps
from toolkit.site.charts.estimates import (
    Comparison,
    Estimate,
    Measured,
    condition_by_task,
    forest,
    luck_shares,
    members,
    predicted_and_seen,
    ratios,
    reward_table,
    seed_differences,
)
from toolkit.site.charts.plots import Axis, Bar, Dot, Scale, apart, held, spanned, swarm, tick_texts
from toolkit.site.charts.svg import NARROW, WIDE, Chart
from toolkit.site.exhibits.theory import condition_by_success
from toolkit.structs import replace

BAR = Bar(Fraction(95, 100), Fraction(-1, 100), Fraction(8, 100), "computed (bootstrap of seed pairs; tasks)")
RATIO = Measured("A ratio", "checkpoint", "ratio", "trace paired / trace independent")
STEP = {
    "grad_norm": 1.0,
    "entropy": 0.5,
    "clipped": 0.0,
    **{f"importance_weight_{which}": value for which, value in (("mean", 1.0), ("min", 0.5), ("max", 2.0))},
    "seconds": 9.0,
    "generation": 6.0,
    "begun": 0.0,
}
PICTURE = Picture(
    id="gains",
    title="Two places",
    up="ratio of gains",
    across=(Predictor("drift ratio", "rank"), Predictor("trace ratio", "")),
    points=(
        Predicted("here", "Adam", (Fraction(9, 10), Fraction(1, 2)), "x", "x_95"),
        Predicted("there", "sign", (Fraction(1), Fraction(3, 4)), "y", ""),
        Predicted("nowhere", "sign", (Fraction(1), Fraction(1)), "z", "z_95"),
    ),
)
SEEN = {"x": Fraction(19, 20), "y": Fraction(21, 20), "z": Missing(not_run=True, reasons=())}


def picture(**seen: Value) -> Chart | None:
    bars = {"x_95": BAR, "z_95": None}
    return predicted_and_seen(PICTURE, SEEN | seen, bars, ("Rank correlation: +1.00", ""), "s")


def spread(*values: int, arms: tuple[str, ...] = ("paired", "independent"), absent: int = 0) -> Estimate:
    members = tuple((str(i), Fraction(value, 100)) for i, value in enumerate(values))
    whole = Estimate("H2a", "Some rule", "miss", "Some AUC", "fraction", threshold=Fraction(3, 100))
    whole = replace(whole, arms=arms, member="seed", members=members, absent=absent)
    return (
        whole
        if absent
        else replace(whole, mean=Fraction(sum(values), 100 * len(values)), bar=BAR, says="includes zero")
    )


def row(rule: str, mean: Fraction | None = None, unit: str = "fraction", **more: Any) -> Estimate:
    """Return a row of a forest, with an interval if it has a mean."""
    bar = None if mean is None else BAR
    return Estimate(rule, "One", "miss", unit=unit, mean=mean, **{"bar": bar, **more})


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
    counted = [CurvePoint("paired", "seed 0", s, Fraction(s + 50, 200), s + 50, 200) for s in (0, 20)]
    steps = [{**STEP, "step": n, "loss": 0.1 * n} for n in (1, 2)]
    found = (
        seed_differences(spread(5, -1, 6)),
        seed_differences(spread(*range(20))),
        learning_curves(points, "C2", "successes / episodes"),
        members(RATIO, (Dot(("a@20",), 0.7, 0.6, 0.8),), "bars: 95%, tasks resampled"),
        forest([row("H1", Fraction(0), threshold=Fraction(3, 100))], "s"),
        ratios("A ratio", (Dot(("a", 20), 0.7, 0.6, 0.8), Dot(("base", 0), 0.9)), "bars: 95%"),
        condition_by_task("a@20", "score²", (("t:0", 0.1, 0.2), ("t:1", 0.3, 0.2))),
        luck_shares("C2", (Dot(("r", "paired", 0), 0.4, 0.3, 0.5),), "bars: 95%"),
        success_by_step((("clean", 0, 1, 2), ("clean", 20, 2, 2), ("final", 20, 1, 2)), "r"),
        picture(),
        reward_table("r, step 0", "Luck share 0.5", ((True, False), (True, True)), (0, 1)),
        *training_steps(steps),
        learning_curves(tuple(counted), "C2", "successes / episodes"),
        condition_by_success(((0.1, 0.1, 0.2), (0.9, 0.3, 0.2))),
    )
    return [drawn(chart) for chart in found]


MINUS = "\N{MINUS SIGN}"
# The last mark of each chart: what it says, and the rows that it carries.
MARKS = [
    (
        f"mean of 3 seeds: +0.0333, 95% interval [{MINUS}0.0100, +0.0800]",
        "mean,0.03333333333333333,-0.01,0.08",
    ),
    (
        f"mean of 20 seeds: +0.0950, 95% interval [{MINUS}0.0100, +0.0800]",
        "mean,0.095,-0.01,0.08",
    ),
    ("paired, mean, step 20: 35.00%", "paired,mean,20,0.35,,"),
    ("checkpoint a@20: 0.700 [0.600, 0.800]", "a@20,0.7,0.6,0.8"),
    (f"H1, One: 0, 95% interval [{MINUS}0.0100, +0.0800]; miss", "H1,miss,0.0,-0.01,0.08"),
    ("base at step 0: ratio 0.900", "base,0,0.9,,"),
    ("task t:1: L 0.3, R 0.2 (score²)", "t:1,0.3,0.2"),
    ("luck share of r at step 0: 0.400 [0.300, 0.500]", "r,paired,0,0.4,0.3,0.5"),
    ("final, step 20: 1 of 2, 50.0%", "final,20,1,2"),
    ("2 there: drift ratio 1.000, trace ratio 0.750; seen 1.050", "2,there,1.0,0.75,1.05,,"),
    ("schedule 1, rollout 2: success", "1,2,1"),
    ("Loss, step 2: 0.2", "2,0.2"),
    ("Gradient norm, step 2: 1", "2,1.0"),
    ("Entropy, step 2: 0.5", "2,0.5"),
    ("Share of tokens clipped, step 2: 0", "2,0.0"),
    ("Importance weight, step 2: 1", "2,1.0"),
    ("Seconds a step, step 2: 9", "2,9.0"),
    (
        "paired, seed 0, step 0: 25.00%, 50 of 200; paired, seed 0, step 20: 35.00%, 70 of 200",
        "paired,seed 0,0,0.25,50,200\npaired,seed 0,20,0.35,70,200",
    ),
    (
        "; ".join(f"R, score spread: 0.2 at success probability p {x}" for x in (0.1, 0.9)),
        "&quot;R, score spread&quot;,0.1,0.2\n&quot;R, score spread&quot;,0.9,0.2",
    ),
]


def test_a_mark_says_and_carries_the_rows_that_it_stands_for() -> None:
    marked = [re.findall(r'aria-label="([^"]*)" data-row="([^"]*)"', c.wide)[-1] for c in every_chart()]
    assert marked == MARKS


PAIRED = "Paired above independent in"
TENTH, HUNDREDTH = Fraction(1, 10), Fraction(1, 100)
LIMIT = 'class="limit"'


def unequal(**seeds: int) -> Chart | None:
    """Draw curves of arms of so many seeds."""
    points = [
        CurvePoint(arm, f"seed {i}", 0, Fraction(i + 1, 4)) for arm, n in seeds.items() for i in range(n)
    ]
    return learning_curves(tuple(points), "C4", "successes / episodes")


def series(*values: float, **compared: tuple[Any, ...]) -> Chart | None:
    """Draw members `a`, `b` of a ratio, or of luck shares where a rule compares them with a number."""
    what = Measured("Luck shares", "run", "fraction", "luck share") if compared else RATIO
    dots = tuple(
        Dot((name,), value, value - 0.1, value + 0.4) for name, value in zip("ab", values, strict=False)
    )
    return members(what, dots, "bars: 95%", tuple(Comparison(*one) for one in compared.values()))


def later() -> Chart | None:
    dots = (Dot(("base@0",), 0.8), Dot(("a@20",), 0.7), Dot(("a@40",), 0.9))
    compared = (Comparison("last", "<", 0.8, "base@0", 0, 1), Comparison("rest", "<", 0.8, "base@0", 1, 2))
    return members(RATIO, dots, "no intervals", compared)


def luck(later: float) -> Chart | None:
    shares = (Dot(("a", "paired", 0), 0.3), Dot(("b", "paired", 0), 0.5), Dot(("a", "paired", 100), later))
    return luck_shares("C2", shares, "no intervals")


BOTH = replace(spread(5, -1, 6), bounds=(-TENTH, TENTH), says="inside ±0.1")
ZERO = replace(spread(5, -1, 6), threshold=None, bounds=(Fraction(0),), says="not above zero")
CLEAN = spread(5, 6, arms=("clean",))
FOREST = [row("H1", Fraction(0)), row("H2"), row("H3", Fraction(2), "steps"), row("H4", Fraction(1, 50))]
BOUNDED = [
    row("H1", Fraction(0), bounds=(-HUNDREDTH, HUNDREDTH), says="not so"),
    row("H2", Fraction(0), threshold=Fraction(3, 100), says="includes zero"),
]
# A chart, the end of its title, and what it says or draws; after a minus, what it does not.
SAYS: list[tuple[Chart | None, str, tuple[str, ...]]] = [
    (
        seed_differences(spread(5, -1, 6)),
        f"{PAIRED} 2 of 3 seeds; mean +0.0333, 95% interval includes zero",
        (LIMIT,),
    ),
    (
        seed_differences(spread(5, 0, -1)),
        f"{PAIRED} 1 of 3 seeds, equal in 1; mean +0.0133, 95% interval includes zero",
        ('aria-label="seed 1: 0"', "- +0.0000", f"- {MINUS}0.0000"),
    ),
    (seed_differences(spread(5, 6, absent=1)), f"{PAIRED} 2 of 3 seeds, 1 missing", ("- mean of",)),
    (
        seed_differences(CLEAN),
        "Clean: 0.05 to 0.06 over 2 seeds; mean +0.0550, 95% interval includes zero",
        (),
    ),
    # A bound at zero is the line of zero.
    (
        seed_differences(ZERO),
        f"{PAIRED} 2 of 3 seeds; mean +0.0333, 95% interval not above zero",
        (f"- {LIMIT}",),
    ),
    (seed_differences(BOTH), "+0.0333, 95% interval inside ±0.1", (f"Dashed lines: {MINUS}0.1 and 0.1.",)),
    (unequal(paired=3, clean=2), "", ("Thin lines are 2 to 3 seeds",)),
    (series(0.7, 1.2), "1 of 2 checkpoints below 1; 1 interval reaches 1", ("Dashed line: 1",)),
    (
        series(0.30, 0.45, all=("each", ">=", 0.15, None, 2, 2)),
        "Luck share 0.300 to 0.450 in all 2 runs, at or above 0.15",
        ("Dashed line in colour: 0.15", LIMIT),
    ),
    (
        series(0.30, 0.45, some=("each", ">", 0.4, None, 1, 2)),
        "Luck share 0.300 to 0.450 in 2 runs, 1 of them above 0.4",
        (),
    ),
    (
        later(),
        "The last checkpoint is not below the first (base@0, 0.800); 1 of 2 later checkpoints below it",
        ("Dotted line: base@0, the first, 0.800", ">base@0 0.800<", 'class="first"'),
    ),
    (
        forest(FOREST, "mine"),
        "The interval of each of 2 rules includes zero",
        (
            *('aria-label="H1, One: 0, 95% interval', "Without an interval, and not drawn: H2."),
            *("In another unit, and not drawn: H3.", "computed (bootstrap of seed pairs; tasks)"),
        ),
    ),
    (
        forest(BOUNDED, "mine"),
        "of each of 2 rules includes zero; that of H1 is not so",
        ('class="limit tick"',),
    ),
    (
        picture(),
        "Two places",
        (
            "1 here: drift ratio 0.900, trace ratio 0.500; seen 0.950, 95% interval",
            *(
                "2 there: drift ratio 1.000, trace ratio 0.750; seen 1.050",
                "Rank correlation: +1.00. Bars: int",
            ),
            "Not drawn, as nothing was seen: nowhere.",
        ),
    ),
    *(
        (luck(end), f"{went}: 0.30 to 0.50 at step 0, {end:.2f} at step 100", ())
        for end, went in ((0.6, "higher in the end"), (0.1, "lower in the end"), (0.4, "Luck shares overlap"))
    ),
]


@pytest.mark.parametrize(("chart", "title", "parts"), SAYS, ids=[title[-30:] for _, title, _ in SAYS])
def test_a_chart_says_what_it_shows(chart: Chart | None, title: str, parts: tuple[str, ...]) -> None:
    assert drawn(chart).title.endswith(title)
    whole = f"{drawn(chart).caption} {drawn(chart).svg}"
    for part in parts:
        assert (part.removeprefix("- ") in whole) != part.startswith("- "), part


def test_a_chart_has_a_line_or_a_tick_for_every_threshold_and_bound() -> None:
    assert drawn(seed_differences(BOTH)).wide.count(LIMIT) == 3  # both bounds, and a threshold of its own
    wide = drawn(forest(BOUNDED, "mine")).wide
    assert wide.count('class="limit tick"') == 3
    bars = re.findall(r'd="M([\d.]+) [\d.]+L([\d.]+) [\d.]+" class="bar"', wide)
    assert len(bars) == 2
    assert all(float(start) < float(end) for start, end in bars)
    assert picture().wide.count('class="mark') == len(PICTURE.across) * 2
    assert picture(x=SEEN["z"], y=SEEN["z"]) is None


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=25))
def test_dots_that_share_a_row_never_touch(values: list[int]) -> None:
    offsets = swarm([float(value) for value in values], 3.0)
    placed = list(zip(values, offsets, strict=True))
    for i, (one, row) in enumerate(placed):
        assert all(other_row != row or abs(other - one) >= 3 for other, other_row in placed[:i])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_labels_keep_their_order_and_their_distance_and_stay_within_their_ends(places: list[float]) -> None:
    order = sorted(range(len(places)), key=lambda i: places[i])
    for moved in (apart(places, 0.1), held(places, 0.1, 0.0, 1.0)):
        assert all(moved[high] - moved[low] >= 0.1 - 1e-9 for low, high in pairwise(order))
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in moved)


@pytest.mark.parametrize(
    ("bars", "says", "title"),
    [
        (
            (-1, -1, -1),
            ("above -1", "not above -1", "above -1"),
            "of each of 3 rules includes zero; 2 of 3 keep registered bounds",
        ),
        ((-1, 0, 1), (), "intervals of 2 of 3 rules include zero"),
        ((), (), None),
    ],
)
def test_a_forest_counts_intervals_that_hold_or_touch_zero_and_rules_that_keep_their_bounds(
    bars: tuple[int, ...], says: tuple[str, ...], title: str | None
) -> None:
    rows = [row("none")]
    for i, low in enumerate(bars):
        bar, bounds = replace(BAR, low=Fraction(low, 100)), (Fraction(-1),) if says else ()
        rows.append(row(str(i), Fraction(1), bar=bar, bounds=bounds, says=says[i] if says else ""))
    chart = forest(rows, "mine")
    assert (chart and chart.title.removeprefix("The ").removeprefix("interval ")) == title


SETS = tuple(
    (name, step, k + step, 100)
    for name, k in (("clean", 50), ("faults", 49), ("challenge", 20))
    for step in (0, 20, 40)
) + tuple((f"{name}, final", 40, k, 100) for name, k in (("clean", 91), ("faults", 90), ("flips", 90)))


def names_of(drawing: str) -> list[ET.Element]:
    return [t for t in ET.fromstring(drawing).iter("text") if "name" in t.get("class", "").split()]  # noqa: S314


def test_a_line_leads_from_every_name_to_its_point_in_its_colour() -> None:
    chart = drawn(success_by_step(SETS, "r"))
    named = {str(t.text).rpartition(" ")[0]: t.get("class", "").split()[-1] for t in names_of(chart.wide)}
    assert named.keys() == {name for name, *_ in SETS}
    assert len(set(named.values())) == len(named)
    leaders = [p.get("class", "") for p in ET.fromstring(chart.wide).iter("path")]  # noqa: S314
    for name, look in named.items():
        assert f"leader {look}" in leaders
        assert re.search(rf'aria-label="{name}, step 40: [^>]*class="mark {look}\b', chart.wide)


def test_more_sets_than_colours_differ_in_shape() -> None:
    chart = drawn(success_by_step(tuple((f"set {i}", 0, i, 20) for i in range(9)), "r"))
    looks = re.findall(r'<(\w+) [^>]*class="mark (k\d)', chart.wide)
    assert len(looks) == len(set(looks)) == 9


def test_every_drawing_uses_the_looks_that_the_style_knows() -> None:
    style = (files("toolkit.site") / "assets" / "charts.css").read_text("utf-8")
    known = set(re.findall(r"\.([a-z][\w-]*)", style))
    for chart in every_chart():
        used = {look for looks in re.findall(r'class="([^"]*)"', chart.svg) for look in looks.split()}
        assert used <= known | {"bold", "wide", "narrow", "mark", "dot"}, (chart.title, used - known)
        assert "fill=" not in chart.svg
        assert "stroke=" not in chart.svg


def test_hostile_names_stay_text_and_a_huge_one_leaves_a_drawing_its_size() -> None:
    hostile = "</svg><script>alert(1)</script>"
    chart = drawn(ratios(hostile, (Dot((hostile, 20), 0.7),), hostile))
    assert "<script" not in chart.svg
    assert chart.svg.count("</svg>") == 2
    assert "&lt;script&gt;" in chart.svg
    huge = drawn(ratios("A ratio", (Dot(("x" * 5000, 20), 0.7),), "no intervals"))
    assert max(len(words) for words in re.findall(r">([^<]+)</text>", huge.svg)) < 100


NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda n: round(n, 6))
POSITIVE = st.floats(1e-3, 1e3)
NAME = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=60)


def bars(*values: float) -> Chart:
    dots = tuple(Dot((f"<b>{v}</b>",), v, v - 0.1, v + 0.1) for v in values)
    chart = members(Measured("Bars & <i>", "run", "fraction", "luck & skill"), dots, "no intervals")
    assert chart is not None
    return chart


def across(drawing: str) -> list[tuple[float, float]]:
    """Return what the axis along the bottom says: numbers, and where they stand."""
    groups = [g for g in ET.fromstring(drawing).iter("g") if g.get("text-anchor") == "middle"]  # noqa: S314
    ticks = [str(words.text) for group in groups for words in group]
    (way,) = re.findall(r'd="([^"]*)" class="grid"', drawing)
    lines = re.findall(r"M([\d.]+)", way)
    return [(float(words), float(x)) for words, x in zip(ticks, lines, strict=True)]


def dots(drawing: str) -> list[float]:
    """Return where the dot of each mark stands."""
    parts = ET.fromstring(drawing).iter()  # noqa: S314
    marks = [part for part in parts if part.get("class", "").startswith("mark")]
    circles = (mark if mark.tag == "circle" else mark.find("circle") for mark in marks)
    return [float(circle.get("cx", "")) for circle in circles if circle is not None]


@given(st.lists(NUMBERS, min_size=2, max_size=9, unique=True), st.booleans())
def test_greater_numbers_stand_further_along(values: list[float], is_ratio: bool) -> None:
    scale = spanned(values, 20, 700, Axis("", is_ratio=is_ratio))
    places = [scale.at(value) for value in sorted(values)]
    assert all(a <= b for a, b in pairwise(places))
    assert 20 <= places[0] < places[-1] <= 700


@given(st.lists(NUMBERS, min_size=1, max_size=9))
@example([1e-6])
def test_ticks_are_round_inside_and_told_apart(values: list[float]) -> None:
    scale = spanned(values, 0, 600, Axis(""))
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 10
    assert all(scale.low - 1e-6 <= tick <= scale.high + 1e-6 for tick in ticks)
    words = tick_texts(ticks, "plain")
    assert len(set(words)) == len(words)
    for tick, word in zip(ticks, words, strict=True):
        assert isclose(float(word.replace("\N{MINUS SIGN}", "-")), tick, rel_tol=1e-6, abs_tol=1e-7)


@given(st.lists(POSITIVE, min_size=1, max_size=9))
def test_half_and_twice_stand_evenly_about_one(values: list[float]) -> None:
    scale = spanned(values, 0, 600, Axis("", is_ratio=True))
    assert scale.is_ratio
    assert scale.low < 1 < scale.high
    assert isclose(scale.at(2) - scale.at(1), scale.at(1) - scale.at(0.5))
    ticks = scale.ticks()
    assert len(ticks) >= 2
    assert len(set(tick_texts(ticks, "plain"))) == len(ticks)


@given(st.lists(st.floats(0.05, 20), min_size=1, max_size=9))
def test_a_dot_stands_where_the_axis_says_its_number(values: list[float]) -> None:
    chart = ratios("A ratio", tuple(Dot(("a", k), v) for k, v in enumerate(values)), "no intervals")
    assert chart is not None
    for drawing in (chart.wide, chart.narrow):
        (low, start), *_, (high, end) = across(drawing)
        scale = Scale(low, high, start, end, is_ratio=True)
        placed = list(zip(values, dots(drawing), strict=True))
        assert all(abs(scale.at(value) - x) < 0.7 + abs(scale.at(value) - start) / 100 for value, x in placed)


@given(st.lists(st.tuples(NAME, st.floats(0.01, 5)), min_size=1, max_size=6), NAME)
def test_words_stay_inside_a_drawing(named: list[tuple[str, float]], figure: str) -> None:
    what = Measured("What", "run", "ratio", figure)
    chart = members(what, tuple(Dot((name,), value) for name, value in named), "no intervals")
    assert chart is not None
    for drawing, width in ((chart.wide, WIDE), (chart.narrow, NARROW)):
        assert f'width="{width}"' in drawing
        parts = ET.fromstring(drawing)  # noqa: S314
        anchors = {text: group.get("text-anchor", "") for group in parts.iter("g") for text in group}
        for text in parts.iter("text"):
            x, wide = float(text.get("x", "")), svg.width_of(str(text.text), 11)
            anchor = text.get("text-anchor") or anchors.get(text, "")
            left = x - {"middle": wide / 2, "end": wide}.get(anchor, 0)
            assert left >= -3, text.text
            assert left + wide <= width + 3, text.text


def test_a_drawing_knows_nothing_of_the_machines_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    marks = (
        ("runs", "", "2026-11-20T20:00:00+00:00", "2026-11-21T01:00:00+00:00", "ten runs"),
        ("token", "A", "2026-11-20T00:00:00+00:00", "", "a token"),
    )
    shown = []
    for zone in ("UTC", "Asia/Tokyo", "UTC"):  # and back
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        shown.append(drawn(timeline(marks, "2026-11-20T00:00:00+00:00", "title", "caption")).svg)
    assert shown[0] == shown[1]
    assert 'aria-label="2026-11-20 20:00:00 to 2026-11-21 01:00:00: ten runs"' in shown[1]
    assert 'aria-label="2026-11-20: a token"' in shown[1]
