"""Marks and words that several charts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.website.charts.theme import INK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

COARSE = 0.05  # below it, ticks lie closer than two digits can tell apart
LABEL = 40


@dataclass(frozen=True)
class Bar:
    """An interval as it is drawn.

    Args:
        level: confidence level.
        low, high: its ends.
        made: where it comes from, how it was made, and what was resampled.
    """

    level: Fraction
    low: Fraction
    high: Fraction
    made: str

    @property
    def words(self) -> str:
        """The interval in words."""
        return f"{float(100 * self.level):g}% interval [{float(self.low):+.4f}, {float(self.high):+.4f}]"

    @property
    def holds_zero(self) -> bool:
        """Whether zero lies in it."""
        return self.low <= 0 <= self.high


def vertical(at: float, colour: str = INK, dash: Sequence[int] = (1, 0)) -> Any:
    """Return a line from top to bottom."""
    import altair as alt

    mark = alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(color=colour, strokeDash=list(dash))
    return mark.encode(x="at:Q")


def digits(values: Sequence[float], *, signed: bool = True) -> str:
    """Return the format of an axis over some values."""
    return ("+" if signed else "") + (".2f" if max(map(abs, values)) >= COARSE else ".3f")


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Return places for labels, in the same order, none closer to the next than a gap.

    Labels that would overlap are moved apart about their middle.
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    clusters: list[tuple[float, list[int]]] = []
    for i in order:
        clusters.append((places[i], [i]))
        while len(clusters) > 1:
            (one, low), (other, high) = clusters[-2:]
            if other - one >= gap * (len(low) + len(high)) / 2 - 1e-12:
                break
            together = [*low, *high]
            clusters[-2:] = [(sum(places[j] for j in together) / len(together), together)]
    moved = list(places)
    for middle, held in clusters:
        for k, i in enumerate(held):
            moved[i] = middle + gap * (k - (len(held) - 1) / 2)
    return moved


def swarm(values: Sequence[float], width: float) -> list[int]:
    """Return how many dots' heights each value is moved off its line, so that no two dots touch."""
    placed: list[tuple[float, int]] = []
    offsets = [0] * len(values)
    for i in sorted(range(len(values)), key=lambda i: (values[i], i)):
        tried = 0
        while any(at == _spread(tried) and abs(value - values[i]) < width for value, at in placed):
            tried += 1
        offsets[i] = _spread(tried)
        placed.append((values[i], offsets[i]))
    return offsets


def short(text: str, most: int = LABEL) -> str:
    """Return a label that leaves room for the drawing."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def capital(text: str) -> str:
    """Return a text that begins a sentence."""
    return text[:1].upper() + text[1:]


def listed(parts: Sequence[str]) -> str:
    """Return parts as one enumeration."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _spread(tried: int) -> int:
    """Return the order in which places about a line are tried: 0, 1, -1, 2, -2."""
    return (tried + 1) // 2 * (1 if tried % 2 else -1)
