"""From an Altair chart to an inline drawing with its words."""

import json
import math
import multiprocessing
import os
import re
import textwrap
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from html import escape
from typing import Any

from toolkit.website.charts.theme import config

WIDTH = 640
HALF = 400
"""Width of a drawing that stands beside another."""
LINE = 86
"""Letters of a heading that fit the width."""
SMALLER = 100
MOST_LINES = 3
STEP = 8
"""What widths are multiples of."""
MANY = 40
"""Charts that are drawn sooner by several processes, although these have to be started."""
_drawings: dict[str, str] = {}
"""What this process has drawn, by specification: pages share charts, and so do versions of the site."""


@dataclass(frozen=True)
class Chart:
    """A drawn chart.

    Args:
        title: states the finding.
        caption: what it shows, in words: every mark, and the unit of resampling of every interval.
        specification: the Vega-Lite specification as JSON, for readers whose browser runs scripts.
    """

    title: str
    caption: str
    specification: str

    @property
    def svg(self) -> str:
        """The drawing, which needs no script; it has a role, a name and a description."""
        draw_all([self])
        names = f"<title>{escape(self.title)}</title><desc>{escape(self.caption)}</desc>"
        body = _drawings[self.specification].replace("<svg ", '<svg role="img" ', 1)
        return re.sub(r"(<svg [^>]*>)", lambda match: match[1] + names, body, count=1)

    @property
    def document(self) -> Any:
        """The specification, as what its JSON says."""
        return json.loads(self.specification)


def draw(
    chart: Any, title: str, caption: str, height: int | None = None, *, subtitle: str = "", width: int = WIDTH
) -> Chart:
    """Draw an Altair chart.

    Args:
        chart: the chart, without size, title and configuration.
        title: states the finding.
        caption: what it shows, in words.
        height: of the plot, in pixels; None where its facets or steps say.
        subtitle: what is measured, under the title.
        width: of the plot, in pixels.
    """
    return drawn(specified(chart, title, height, subtitle, width), title, caption)


def specified(
    chart: Any, title: str, height: int | None = None, subtitle: str = "", width: int = WIDTH
) -> dict[str, Any]:
    """Return an Altair chart's specification; arguments as `draw`."""
    size = {} if height is None else {"width": width, "height": height}
    # Held to the schema by a test: it takes longer than drawing.
    specification: dict[str, Any] = (
        chart.properties(title=heading(title, subtitle, width), **size)
        .configure(**config())
        .to_dict(validate=False)
    )
    return specification


def heading(title: str, subtitle: str = "", width: int = WIDTH) -> dict[str, Any]:
    """Return a title over a subtitle, in lines that fit the drawing."""
    under = {"subtitle": lines(subtitle, SMALLER * width // WIDTH)} if subtitle else {}
    return {"text": lines(title, LINE * width // WIDTH), **under}


def drawn(specification: dict[str, Any], title: str, caption: str) -> Chart:
    """Draw a finished specification: for charts of one form, which Altair made once."""
    return Chart(title, caption, json.dumps(specification, sort_keys=True, separators=(",", ":")))


def draw_all(charts: Iterable[Chart]) -> None:
    """Draw charts that were not drawn yet, many of them by a process for each processor."""
    waiting = sorted({chart.specification for chart in charts} - _drawings.keys())
    if len(waiting) < MANY or os.cpu_count() == 1:
        _drawings.update(zip(waiting, map(_drawing, waiting), strict=True))
        return
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as processes:
        _drawings.update(zip(waiting, processes.map(_drawing, waiting, chunksize=8), strict=True))


def lines(text: str, wide: int = LINE) -> list[str]:
    """Return a heading as lines that fit the drawing; a word that is longer than a line is cut."""
    return textwrap.wrap(text, wide, max_lines=MOST_LINES, placeholder=" …") or [""]


def _drawing(specification: str) -> str:
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(specification, vl_version="6.4")
    return _widened(svg)


def _widened(svg: str) -> str:
    """Round a drawing's width up: the same text is not measured to the same pixel every time."""

    def whole(match: re.Match[str]) -> str:
        width = math.ceil(int(match[1]) / STEP) * STEP
        return f'width="{width}" height="{match[2]}" viewBox="0 0 {width} {match[2]}"'

    return re.sub(r'width="(\d+)" height="(\d+)" viewBox="0 0 \1 \2"', whole, svg, count=1)
