"""Elements of a drawing, as text."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape

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
    """Return what stands for rows: it says them in a sentence, and carries them as lines of CSV.

    Args:
        sentence: what a reader is told who points at it.
        rows: what it shows, in the order of the chart's columns.
        shapes: what is drawn.
        look: classes beside `mark`.
    """
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
