"""The colours of charts, as classes that `assets/charts.css` gives a colour in light, dark and print."""

from collections.abc import Iterable
from itertools import cycle

# Okabe and Ito's palette, told apart by colour-blind readers.
ARMS = {"paired": "k0", "independent": "k1", "clean": "k6", "blocking": "k2", "blocking_paired": "k3"}
OTHERS = ("k0", "k1", "k2", "k3", "k4", "k5", "k6")
ACCENT = "k0"
FAINT = "faint"
# The two sides of the exact condition: neither is an arm, so neither has an arm's colour.
LEFT, RIGHT = "k2", "k3"


def colours(arms: Iterable[str]) -> dict[str, str]:
    """Return the colour of every arm, in the order in which charts list them: first those known here."""
    present = dict.fromkeys(arms)
    known = {arm: colour for arm, colour in ARMS.items() if arm in present}
    return known | dict(zip((arm for arm in present if arm not in known), cycle(OTHERS), strict=False))
