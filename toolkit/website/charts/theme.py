"""How every chart looks."""

from collections.abc import Iterable
from itertools import cycle
from typing import Any

# vl-convert carries this font, so that text is measured alike on every machine.
FONT = "Liberation Sans"

# Okabe and Ito's palette: told apart by colour-blind readers and in print.
ARM_COLOURS = {
    "paired": "#0072b2",
    "independent": "#d55e00",
    "clean": "#555555",
    "blocking": "#009e73",
    "blocking_paired": "#cc79a7",
}
OTHERS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
INK = "#1b1f24"
FAINT = "#8a929c"
GRID = "#e5e8ec"
PAPER = "#ffffff"
ACCENT = "#0072b2"
LIMIT = "#d55e00"
# The two sides of the exact condition: neither is an arm, so neither has an arm's colour.
LEFT = "#009e73"
RIGHT = "#cc79a7"


def colours(arms: Iterable[str]) -> dict[str, str]:
    """Return the colour of every arm, in the order in which charts list them: first those known here."""
    present = dict.fromkeys(arms)
    known = {arm: colour for arm, colour in ARM_COLOURS.items() if arm in present}
    return known | dict(zip((arm for arm in present if arm not in known), cycle(OTHERS), strict=False))


def config() -> dict[str, Any]:
    """Return the Vega-Lite configuration shared by all charts."""
    return {
        "font": FONT,
        "background": "transparent",
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "group",
            "fontSize": 14,
            "fontWeight": "bold",
            "color": INK,
            "subtitleColor": INK,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
            "offset": 12,
        },
        "axis": {
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelColor": INK,
            "titleColor": INK,
            "gridColor": GRID,
            "domainColor": FAINT,
            "tickColor": FAINT,
        },
        "text": {"font": FONT, "fontSize": 11, "color": INK},
    }
