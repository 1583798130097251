"""Drawings: accessible, drawn once, the same in every process."""

import os
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from toolkit.website.charts import drawing
from toolkit.website.charts.drawing import STEP, Chart, draw, draw_all

SVG = "{http://www.w3.org/2000/svg}"


def bars(*values: int) -> Chart:
    import altair as alt

    data = alt.Data(values=[{"name": f"<b>{v}</b>", "value": v} for v in values])
    return draw(alt.Chart(data).mark_bar().encode(x="value:Q", y="name:N"), "Bars & <i>", "Two bars.", 60)


def test_a_drawing_has_a_role_a_name_and_a_description() -> None:
    drawn = ET.fromstring(bars(1, 2).svg)  # noqa: S314 - our own drawing
    assert drawn.get("role") == "img"
    assert [drawn.findtext(SVG + name) for name in ("title", "desc")] == ["Bars & <i>", "Two bars."]


def test_a_width_is_a_whole_number_of_steps() -> None:
    """So that text which is measured a pixel longer in another process leaves the drawing as it is."""
    for value in (1, 11, 111_111):
        found = re.search(r'<svg [^>]*width="(\d+)" height="\d+" viewBox="0 0 (\d+) ', bars(value).svg)
        assert found is not None
        assert found[1] == found[2]
        assert int(found[1]) % STEP == 0


def test_a_drawing_has_no_inline_style_and_no_script() -> None:
    assert not re.search(r"\sstyle=|<style|<script|\son\w+=", bars(1).svg)


@pytest.mark.parametrize("most", [1, 100], ids=["by several processes", "here"])
def test_what_was_drawn_is_not_drawn_again(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MANY", most)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    charts = [bars(most, value) for value in (1, 2, 1)]
    draw_all(charts)
    monkeypatch.setattr(drawing, "_drawing", lambda _: pytest.fail("drawn anew"))
    assert charts[0].svg == charts[2].svg != charts[1].svg


def test_a_drawing_knows_nothing_of_the_machines_clock() -> None:
    zone = "Asia/Tokyo"
    told = (
        "from toolkit.website.charts.timeline import timeline\n"
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
