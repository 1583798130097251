"""From an Altair chart to an inline drawing with its words, drawn once for the same input."""

from __future__ import annotations

import json
import math
import re
import textwrap
from dataclasses import asdict, dataclass
from functools import lru_cache, wraps
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from toolkit.website.charts.theme import config
from toolkit.website.shelf import Shelf, code_digest

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 640
HALF = 400
"""Width of a drawing that stands beside another."""
LINE = 86
"""Letters of a heading that fit the width."""
SMALLER = 100
MOST_LINES = 3
STEP = 8
"""What widths are multiples of."""
P = ParamSpec("P")


@dataclass(frozen=True)
class Chart:
    """A drawn chart.

    Args:
        title: states the finding.
        caption: what it shows, in words: every mark, and the unit of resampling of every interval.
        svg: the drawing, which needs no script.
        specification: the Vega-Lite specification as JSON, for readers whose browser runs scripts.
    """

    title: str
    caption: str
    svg: str
    specification: str

    @property
    def document(self) -> Any:
        """The specification, as what its JSON says."""
        return json.loads(self.specification)


def draw(
    chart: Any,
    title: str,
    caption: str,
    height: int | None = None,
    *,
    subtitle: str = "",
    width: int = WIDTH,
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
    text = json.dumps(specification, sort_keys=True, separators=(",", ":"))
    return Chart(title, caption, _accessible(_svg(text), title, caption), text)


def lines(text: str, wide: int = LINE) -> list[str]:
    """Return a heading as lines that fit the drawing; a word that is longer than a line is cut."""
    return textwrap.wrap(text, wide, max_lines=MOST_LINES, placeholder=" …") or [""]


def drawn_once(make: Callable[P, Chart | None]) -> Callable[P, Chart | None]:
    """Keep what a function draws, on disk, by its arguments and the code of all charts.

    The arguments need a `repr` that says everything that they are: numbers, texts, tuples, frozen values.
    """

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> Chart | None:
        said = repr((make.__module__, make.__qualname__, args, sorted(kwargs.items())))
        kept = drawings().take(said)
        if kept is not None:
            document = json.loads(kept)
            return None if document is None else Chart(**document)
        chart = _unchecked(make, *args, **kwargs)
        drawings().put(said, json.dumps(asdict(chart) if chart else None).encode())
        return chart

    return made


@lru_cache(maxsize=1)
def drawings() -> Shelf:
    """Return where drawings are kept: by this package's code, and by what draws."""
    return Shelf("charts", code_digest(Path(__file__).parent.glob("*.py"), ("altair", "vl-convert-python")))


def _unchecked(make: Callable[P, Chart | None], *args: P.args, **kwargs: P.kwargs) -> Chart | None:
    """Draw without holding every part to the schema: that takes longer than drawing, and a test does it."""
    from altair.utils import schemapi

    with schemapi.debug_mode(arg=False):
        return make(*args, **kwargs)


@lru_cache(maxsize=256)
def _svg(specification: str) -> str:
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(specification, vl_version="6.4")
    return _widened(svg)


def _widened(svg: str) -> str:
    """Round a drawing's width up: the same text is not measured to the same pixel every time."""

    def whole(found: re.Match[str]) -> str:
        width = math.ceil(int(found[1]) / STEP) * STEP
        return f'width="{width}" height="{found[2]}" viewBox="0 0 {width} {found[2]}"'

    return re.sub(r'width="(\d+)" height="(\d+)" viewBox="0 0 \1 \2"', whole, svg, count=1)


def _accessible(svg: str, title: str, caption: str) -> str:
    """Give the drawing a role, a name and a description; the style sheet lets it scale with the page."""
    names = f"<title>{escape(title)}</title><desc>{escape(caption)}</desc>"
    body = svg.replace("<svg ", '<svg role="img" ', 1)
    return re.sub(r"(<svg [^>]*>)", lambda match: match[1] + names, body, count=1)
