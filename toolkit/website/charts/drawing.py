"""A chart: its words, its rows, and its drawing for wide screens and for narrow ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from html import escape
from importlib.resources import files

from toolkit.website.charts import svg

WIDE, NARROW = 720, 350
"""Widths of a drawing, in pixels: alone on a page; on a phone, or beside others."""

Draw = Callable[[float], tuple[float, Sequence[str]]]
"""From the width of a drawing to its height and its parts."""


@dataclass(frozen=True)
class Chart:
    """A drawn chart.

    Args:
        title: states the finding.
        caption: what no mark says: the meaning of lines, and the unit of resampling of every interval.
        about: what is measured, under the title.
        columns: what its marks carry, in the order of their rows.
        wide, narrow: its drawings; `narrow` is empty where the other is narrow enough.
    """

    title: str
    caption: str
    about: str
    columns: tuple[str, ...]
    wide: str
    narrow: str

    @cached_property
    def id(self) -> str:
        """Its id on a page, the same as long as it shows the same."""
        shown = f"{self.title}{self.about}{self.caption}{self.wide}"
        return f"figure-{sha256(shown.encode()).hexdigest()[:8]}"

    @property
    def svg(self) -> str:
        """Both drawings, of which a page shows the one that fits."""
        return self.wide + self.narrow

    @property
    def alone(self) -> str:
        """The wide drawing with its title and its colours, on white, for a file."""
        style = (files("toolkit.website") / "assets" / "charts.css").read_text(encoding="utf-8")
        names = (
            f"<title>{escape(self.title)}</title><desc>{escape(self.caption)}</desc><style>{style}</style>"
        )
        opened, _, rest = self.wide.partition(">")
        opened = opened.replace(
            "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" style="background:#fff" ', 1
        )
        return f"{opened}>{names}{rest}"


def drawn(
    title: str,
    caption: str,
    columns: Sequence[str],
    draw: Draw,
    *,
    about: str = "",
    small: bool = False,
) -> Chart:
    """Return a chart, drawn for both widths.

    Args:
        title: states the finding.
        caption: what no mark says.
        columns: what its marks carry.
        about: what is measured.
        draw: draws it at a width.
        small: it stands beside others, and is narrow enough as it is.
    """
    wide = _drawing(title, NARROW if small else WIDE, draw, "" if small else " wide")
    narrow = "" if small else svg.unsaid(_drawing(title, NARROW, draw, " narrow"))
    return Chart(title, caption, about, tuple(columns), wide, narrow)


def _drawing(title: str, width: float, draw: Draw, which: str) -> str:
    height, parts = draw(width)
    high = round(height)
    return svg.tag(
        "svg",
        *parts,
        class_=f"drawing{which}",
        role="group",
        aria_label=title,
        width=width,
        height=high,
        viewBox=f"0 0 {width} {high}",
    )
