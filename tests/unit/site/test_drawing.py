"""Drawings: accessible, without style or script; axes say where numbers stand, and words have room."""

import os
import re
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from math import isclose
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.site.charts import svg
from toolkit.site.charts.curves import success_by_step
from toolkit.site.charts.scale import Axis, Scale, spanned, tick_texts
from toolkit.site.charts.series import Measured, Member, Ratio, members, ratios
from toolkit.site.charts.svg import NARROW, WIDE, Chart

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda n: round(n, 6))
POSITIVE = st.floats(1e-3, 1e3)
NAME = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=60)


def bars(*values: float) -> Chart:
    dots = tuple(Member(f"<b>{v}</b>", v, v - 0.1, v + 0.1) for v in values)
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


def test_a_drawing_has_a_name_and_every_mark_a_sentence() -> None:
    drawn = ET.fromstring(bars(1, 2).wide)  # noqa: S314 - our own drawing
    assert (drawn.get("role"), drawn.get("aria-label")) == ("group", bars(1, 2).title)
    marks = [part for part in drawn.iter("g") if part.get("class", "").startswith("mark")]
    assert [mark.get("role") for mark in marks] == ["img", "img"]
    assert [mark.get("aria-label") for mark in marks] == [
        "run <b>1</b>: 1.000 [0.900, 1.100]",
        "run <b>2</b>: 2.000 [1.900, 2.100]",
    ]


def test_a_drawing_for_a_file_has_its_title_its_words_and_its_style() -> None:
    alone = ET.fromstring(bars(1, 2).alone)  # noqa: S314
    named = [alone.findtext(f"{{http://www.w3.org/2000/svg}}{name}") for name in ("title", "desc")]
    assert named == [bars(1, 2).title, bars(1, 2).caption]


def test_a_drawing_has_no_inline_style_and_no_script() -> None:
    assert not re.search(r"\sstyle=|<style|<script|\son\w+=", bars(1).svg)


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
    chart = ratios(
        "A ratio", tuple(Ratio("a", k, v, None, None) for k, v in enumerate(values)), "no intervals"
    )
    assert chart is not None
    for drawing in (chart.wide, chart.narrow):
        (low, start), *_, (high, end) = across(drawing)
        scale = Scale(low, high, start, end, is_ratio=True)
        placed = list(zip(values, dots(drawing), strict=True))
        assert all(abs(scale.at(value) - x) < 0.7 + abs(scale.at(value) - start) / 100 for value, x in placed)


@given(st.lists(st.tuples(NAME, st.floats(0.01, 5)), min_size=1, max_size=6), NAME)
def test_words_stay_inside_a_drawing(named: list[tuple[str, float]], figure: str) -> None:
    what = Measured("What", "run", "ratio", figure)
    chart = members(what, tuple(Member(name, value) for name, value in named), "no intervals")
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


@given(st.lists(st.integers(0, 100), min_size=2, max_size=8))
def test_names_at_the_ends_of_lines_stand_apart(ends: list[int]) -> None:
    points = tuple((f"set {k}", step, end, 100) for k, end in enumerate(ends) for step in (0, 20))
    chart = success_by_step(points, "r")
    assert chart is not None
    for drawing in filter(None, (chart.wide, chart.narrow)):
        places = sorted(
            float(t.get("y", ""))
            for t in ET.fromstring(drawing).iter("text")  # noqa: S314
            if t.get("class", "").startswith("name")
        )
        assert len(places) == len(ends)
        assert all(b - a >= 12 for a, b in pairwise(places))


@pytest.mark.parametrize("value", [Fraction(1, 3), 0.1, 7])
def test_a_row_is_csv_that_gives_the_number_back(value: float) -> None:
    assert float(svg.csv_lines([("a, b", value)]).rpartition(",")[2]) == float(value)


def test_a_drawing_knows_nothing_of_the_machines_clock() -> None:
    zone = "Asia/Tokyo"
    told = (
        "from toolkit.site.charts.timeline import timeline\n"
        "marks = (('runs', '', '2026-11-20T20:00:00+00:00', '2026-11-21T01:00:00+00:00', 'ten runs'),\n"
        "         ('token', 'A', '2026-11-20T00:00:00+00:00', '', 'a token'))\n"
        "chart = timeline(marks, '2026-11-20T00:00:00+00:00', 'title', 'caption')\n"
        "print(chart.svg)"
    )
    drawn = {
        place: subprocess.run(
            [sys.executable, "-c", told],
            env={**os.environ, "TZ": place},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for place in ("UTC", zone)
    }
    assert drawn["UTC"] == drawn[zone]
    assert 'aria-label="2026-11-20 20:00:00 to 2026-11-21 01:00:00: ten runs"' in drawn[zone]
    assert 'aria-label="2026-11-20: a token"' in drawn[zone]
