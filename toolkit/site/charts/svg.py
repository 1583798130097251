"""Charts as text: elements of a drawing, colours, and a chart with its words and its rows."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import cycle

# Okabe and Ito's palette, told apart by colour-blind readers.
ARMS = {"paired": "k0", "independent": "k1", "clean": "k6", "blocking": "k2", "blocking_paired": "k3"}
OTHERS = ("k0", "k1", "k2", "k3", "k4", "k5", "k6")
ACCENT = "k0"
FAINT = "faint"
# The two sides of the exact condition: neither is an arm, so neither has an arm's colour.
LEFT, RIGHT = "k2", "k3"


LETTER = 0.56
"""Width of a letter of the site's fonts, in parts of its size: a little more than they have on average."""
SIZE = 12


def tag(name: str, /, *children: str, **attributes: object) -> str:
    """Return an element; `class_` is the attribute `class`, `data_row` is `data-row`."""
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{named}>{''.join(children)}</{name}>" if children else f"<{name}{named}/>"


def line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    """Return a straight line."""
    return grid([(x1, y1, x2, y2)], look)


def grid(ways: Iterable[tuple[float, float, float, float]], look: str = "grid") -> str:
    """Return straight lines, each from one place to another, as one element."""
    return tag(
        "path", d="".join(f"M{_text(a)} {_text(b)}L{_text(c)} {_text(d)}" for a, b, c, d in ways), class_=look
    )


def path(points: Sequence[tuple[float, float]], look: str, *, closed: bool = False) -> str:
    """Return a line through points."""
    way = "L".join(f"{_text(x)} {_text(y)}" for x, y in points)
    return tag("path", d=f"M{way}{'Z' if closed else ''}", class_=look)


def text(words: str, x: float, y: float, look: str | None = None, anchor: str | None = None) -> str:
    """Return words that begin at a place, or end or have their middle there."""
    return tag("text", escape(words), x=round(x), y=round(y), class_=look, text_anchor=anchor)


def texts(words: Iterable[tuple[str, float, float]], look: str, anchor: str) -> str:
    """Return words, each at its place, that look alike and end or have their middle there."""
    return tag("g", *(text(*one) for one in words), class_=look, text_anchor=anchor)


def dot(x: float, y: float, shape: str = "circle", size: float = 4.5) -> str:
    """Return a dot of a shape: `circle`, `diamond`, `square` or `triangle`."""
    if shape == "circle":
        return tag("circle", cx=x, cy=y, r=size, class_="dot")
    corners = {
        "diamond": ((0, -1.4), (1.1, 0), (0, 1.4), (-1.1, 0)),
        "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
        "triangle": ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
    }[shape]
    return path([(x + size * dx, y + size * dy) for dx, dy in corners], "dot", closed=True)


def mark(sentence: str, rows: Iterable[Sequence[object]], *shapes: str, look: str = "") -> str:
    """Return what stands for rows: it says them in a sentence, and carries them as lines of CSV."""
    looks = f"mark {look}".strip()
    said = f'role="img" aria-label="{escape(sentence)}" data-row="{escape(csv_lines(rows))}"'
    if len(shapes) == 1:  # a shape alone needs nothing around it
        return shapes[0].replace(' class="', f' {said} class="{looks} ', 1)
    return f'<g {said} class="{looks}">{"".join(shapes)}</g>'


def unsaid(drawing: str) -> str:
    """Return a drawing whose marks leave sentences and rows to those of another one, in its order."""
    return re.sub(r' role="img" aria-label="[^"]*" data-row="[^"]*"', "", drawing)


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV, without an end of line after the last."""
    held = io.StringIO()
    csv.writer(held, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return held.getvalue().removesuffix("\n")


def _cell(value: object) -> object:
    return float(value) if isinstance(value, Fraction) else value


def width_of(words: str, size: float = SIZE) -> float:
    """Return about how wide words are, in pixels."""
    return len(words) * size * LETTER


def cut(words: str, width: float, size: float = SIZE) -> str:
    """Return words that fit a width."""
    most = max(4, int(width / (size * LETTER)))
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


def _text(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else escape(str(value))


def colours(arms: Iterable[str]) -> dict[str, str]:
    """Return the colour of every arm, in the order in which charts list them: first those known here."""
    present = dict.fromkeys(arms)
    known = {arm: colour for arm, colour in ARMS.items() if arm in present}
    return known | dict(zip((arm for arm in present if arm not in known), cycle(OTHERS), strict=False))


def in_turn(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for every name, by their order."""
    return dict(zip(dict.fromkeys(names), cycle(OTHERS), strict=False))


WIDE, NARROW = 720, 350
"""Widths of a drawing, in pixels: alone on a page; on a phone, or beside others."""

Draw = Callable[[float], tuple[float, Sequence[str]]]
"""From the width of a drawing to its height and its parts."""


@dataclass(frozen=True)
class Chart:
    """A drawn chart."""

    title: str  # states the finding
    caption: str  # what no mark says: the meaning of lines, and the unit of resampling of every interval
    about: str  # what is measured, under the title
    columns: tuple[str, ...]  # what its marks carry, in the order of their rows
    wide: str  # wide, narrow: its drawings; `narrow` is empty where the other is narrow enough
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
        style = (files("toolkit.site") / "assets" / "charts.css").read_text(encoding="utf-8")
        names = (
            f"<title>{escape(self.title)}</title><desc>{escape(self.caption)}</desc><style>{style}</style>"
        )
        opened, _, rest = self.wide.partition(">")
        opened = opened.replace(
            "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" style="background:#fff" ', 1
        )
        return f"{opened}>{names}{rest}"


def drawn(
    title: str, caption: str, columns: Sequence[str], draw: Draw, *, about: str = "", small: bool = False
) -> Chart:
    """Return a chart, drawn for both widths."""
    wide = _drawing(title, NARROW if small else WIDE, draw, "" if small else " wide")
    narrow = "" if small else unsaid(_drawing(title, NARROW, draw, " narrow"))
    return Chart(title, caption, about, tuple(columns), wide, narrow)


def _drawing(title: str, width: float, draw: Draw, which: str) -> str:
    height, parts = draw(width)
    return picture(parts, f"drawing{which}", width, round(height), role="group", aria_label=title)


def picture(parts: Sequence[str], look: str, width: float, height: float, **attributes: object) -> str:
    """Return a drawing of a width and a height."""
    size = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}"}
    return tag("svg", *parts, class_=look, **attributes, **size)
