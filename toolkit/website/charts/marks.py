"""Marks and words that several charts share."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from toolkit.website.charts.theme import INK

COARSE = 0.05  # below it, ticks lie closer than two digits can tell apart
LABEL = 40
SHARE = 0.72  # of the room between two steps
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


@dataclass(frozen=True)
class Limits:
    """The bounds that a rule asks its interval to keep.

    Args:
        lower: the interval is to lie above it; None where it has no such bound.
        upper: the interval is to lie below it; None where it has no such bound.
        kept: whether it does, by the rule's own criteria.
    """

    lower: Fraction | None
    upper: Fraction | None
    kept: bool

    @property
    def places(self) -> tuple[Fraction, ...]:
        """The bounds, upwards."""
        return tuple(bound for bound in (self.lower, self.upper) if bound is not None)

    @property
    def words(self) -> str:
        """Where the interval is to lie."""
        if self.lower is None or self.upper is None:
            side, bound = ("below", self.upper) if self.lower is None else ("above", self.lower)
            return f"{side} {'zero' if not bound else plain(bound)}"
        if self.lower == -self.upper:
            return f"inside ±{plain(self.upper)}"
        return f"inside [{plain(self.lower)}, {plain(self.upper)}]"


def with_interval(value: float, low: float | None, high: float | None) -> str:
    """Return a value and the interval that it has, if any, in words."""
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")


def reaching_one(intervals: Sequence[tuple[float | None, float | None]]) -> str:
    """Return how many intervals reach one, to end a title; nothing where there are none."""
    whole = [(low, high) for low, high in intervals if low is not None and high is not None]
    across = sum(low <= 1 <= high for low, high in whole)
    return f"; {across or 'no'} interval{'s reach' if across > 1 else ' reaches'} 1" if whole else ""


def marked(threshold: Fraction | None, limits: Limits | None) -> tuple[Fraction, ...]:
    """Return where a threshold and bounds are marked; zero has a line of its own."""
    bounds = limits.places if limits else ()
    return tuple(dict.fromkeys(value for value in (threshold, *bounds) if value))


def vertical(at: float, colour: str = INK, dash: Sequence[int] = (1, 0)) -> Any:
    """Return a line from top to bottom."""
    import altair as alt

    mark = alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(color=colour, strokeDash=list(dash))
    return mark.encode(x="at:Q")


def about_steps(
    values: Sequence[dict[str, Any]], steps: Sequence[int], y: Any, name: str, colour_of: dict[str, str]
) -> tuple[list[Any], Any]:
    """Return intervals and dots about the ticks of some steps, and the colours that they have.

    Args:
        values: dots, at `at`; `low` and `high`, None without an interval; `label` says it in words.
        steps: the steps, whose ticks stand at 0, 1, 2 and so on.
        y: the channel of the dots.
        name: the field that colours them.
        colour_of: colours by what the field holds.
    """
    import altair as alt

    named = alt.Axis(values=list(range(len(steps))), labelExpr=f"{list(steps)}[datum.value]", grid=False)
    x = alt.X("at:Q", title="step", axis=named, scale=alt.Scale(domain=[-0.5, len(steps) - 0.5], nice=False))
    colours = alt.Scale(domain=list(colour_of), range=list(colour_of.values()))
    colour = alt.Color(f"{name}:N", legend=None, scale=colours)
    layers = []
    spans = [value for value in values if value["low"] is not None]
    if spans:
        span = alt.Chart(alt.Data(values=spans)).mark_rule(strokeWidth=3, opacity=0.5)
        layers.append(span.encode(x=x, y=alt.Y("low:Q", scale=y["scale"]), y2="high:Q", color=colour))
    dots = alt.Chart(alt.Data(values=values)).mark_circle(size=60, opacity=1)
    return [*layers, dots.encode(x=x, y=y, color=colour, tooltip=["label:N"])], colour


def beside(positions: Sequence[int]) -> list[float]:
    """Return where dots stand whose ticks are given: those of one tick side by side about it, in order."""
    held = Counter(positions)
    so_far = Counter[int]()
    places = []
    for at in positions:
        places.append(at + (so_far[at] - (held[at] - 1) / 2) * SHARE / max(held.values()))
        so_far[at] += 1
    return places


def signs(values: Sequence[float]) -> str:
    """Return the expression of an axis's labels over some values: with their signs; zero has none."""
    form = "+.2f" if max(map(abs, values)) >= COARSE else "+.3f"
    return f"abs(datum.value) < 1e-9 ? '0' : format(datum.value, '{form}')"


def signed(value: Fraction | float, form: str = ".4f") -> str:
    """Return a number with its sign, and the minus that axes write; zero has no sign."""
    return "0" if value == 0 else f"{float(value):+{form}}".replace("-", MINUS)


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
