"""Marks and words that several charts share."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions.values import fixed

LABEL = 40
MINUS = "\u2212"


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
        return f"{self.name} [{signed(self.low)}, {signed(self.high)}]"

    @property
    def name(self) -> str:
        """What it is called: by its level."""
        return f"{float(100 * self.level):g}% interval"

    @property
    def holds_zero(self) -> bool:
        """Whether zero lies in it."""
        return self.low <= 0 <= self.high


def with_interval(value: float, low: float | None, high: float | None) -> str:
    """Return a value and the interval that it has, if any, in words."""
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")


def reaching_one(intervals: Sequence[tuple[float | None, float | None]]) -> str:
    """Return how many intervals reach one, to end a title; nothing where there are none."""
    whole = [(low, high) for low, high in intervals if low is not None and high is not None]
    across = sum(low <= 1 <= high for low, high in whole)
    return f"; {across or 'no'} interval{'s reach' if across > 1 else ' reaches'} 1" if whole else ""


def marked(threshold: Fraction | None, bounds: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return where a threshold and bounds are marked; zero has a line of its own."""
    return tuple(dict.fromkeys(value for value in (threshold, *bounds) if value))


def signed(value: Fraction | float, digits: int = 4) -> str:
    """Return a number with its sign, and the minus that axes write; zero has no sign."""
    return "0" if value == 0 else fixed(value, digits, signed=True).replace("-", MINUS)


def plain(value: Fraction | float, form: str = "g") -> str:
    """Return a number with the minus that axes write."""
    return f"{float(value):{form}}".replace("-", MINUS)


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


def held(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places for labels as `apart` does, moved up and down so that they stay between two ends.

    Where there is no room for all of them, they go beyond the lower end.
    """
    moved = apart(places, gap)
    order = sorted(range(len(places)), key=lambda i: moved[i])
    for k, i in enumerate(order):
        moved[i] = max(moved[i], low + k * gap)
    for k, i in enumerate(reversed(order)):
        moved[i] = min(moved[i], high - k * gap)
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
