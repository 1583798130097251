"""Drawings: accessible, drawn once, the same wherever they were kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from toolkit.website.charts.drawing import STEP, Chart, draw, drawings, drawn_once

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"


def bars(*values: int) -> Chart:
    import altair as alt

    data = alt.Data(values=[{"name": f"<b>{v}</b>", "value": v} for v in values])
    return draw(alt.Chart(data).mark_bar().encode(x="value:Q", y="name:N"), "Bars & <i>", "Two bars.", 60)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return drawings().folder


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


def test_what_was_drawn_is_not_drawn_again(kept: Path) -> None:
    calls = []

    @drawn_once
    def make(*values: int) -> Chart | None:
        calls.append(values)
        return bars(*values)

    first, again, other = make(1, 2), make(1, 2), make(1, 3)
    assert first == again != other
    assert calls == [(1, 2), (1, 3)]
    assert len(list(kept.iterdir())) == 2


def test_a_kept_drawing_that_cannot_be_read_is_drawn_again(kept: Path) -> None:
    make = drawn_once(bars)
    first = make(4)
    for damaged in (b"", b"{", b"[]", b'{"title": 1}', b"\xff", b"null"):
        for path in kept.iterdir():
            path.write_bytes(damaged)
        assert make(4) == first


def test_a_home_that_cannot_be_written_draws_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toolkit").write_text("a file where the folder would be", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert drawn_once(bars)(5) == bars(5)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_a_drawing_knows_nothing_of_the_machines_clock(zone: str, tmp_path: Path) -> None:
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
            env={**os.environ, "TZ": place, "XDG_CACHE_HOME": str(tmp_path / str(number))},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for number, place in enumerate(("UTC", zone))
    }
    assert drawn["UTC"] == drawn[zone]
    assert 'aria-label="2026-11-20 20:00:00 to 2026-11-21 01:00:00: ten runs"' in drawn[zone]
    assert 'aria-label="2026-11-20: a token"' in drawn[zone]


def test_a_kept_drawing_that_says_something_else_is_drawn_again(kept: Path) -> None:
    make = drawn_once(bars)
    first, _ = make(7), make(8)
    one, other = kept.iterdir()
    texts = one.read_bytes(), other.read_bytes()
    for forged in (texts[0].replace(b"<svg", b"<script>x</script><svg"), texts[1]):
        one.write_bytes(forged)
        other.write_bytes(forged)
        assert make(7) == first
