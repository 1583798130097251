"""Chart of a chronology: freeze, additions, runs and records over time."""

from collections.abc import Sequence
from datetime import UTC, datetime, time

from toolkit.site.charts import svg
from toolkit.site.charts.plots import Scale
from toolkit.site.charts.svg import ACCENT, WIDE, Chart, drawn

LANE = 38
GAP = 12
TICK = 110
DAY = 86400
EVEN = (3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY)
"""Seconds from tick to tick, of which the first that leaves room is taken."""

Mark = tuple[str, str, str, str, str]
"""(lane, label, from, until, what); times in ISO 8601, `until` empty for a moment."""


def timeline(marks: tuple[Mark, ...], frozen: str, title: str, caption: str) -> Chart | None:
    """Draw everything dated on one axis of time: a lane a kind, a dot a moment, a bar a span."""
    if not marks:
        return None
    lanes = list(dict.fromkeys(lane for lane, *_ in marks))

    def draw(width: float) -> tuple[float, list[str]]:
        is_wide = width >= WIDE
        left = max(svg.width_of(lane) for lane in lanes) + 14 if is_wide else 8
        moments = [_seconds(frozen), *(_seconds(at) for mark in marks for at in mark[2:4] if at)]
        start, end = min(moments), max(moments)
        x = Scale(start, max(end, start + 1), left, width - 12)
        lane_height = LANE if is_wide else LANE + 16
        top, bottom = 24.0, 24.0 + lane_height * len(lanes)
        parts = _ticks(x, top, bottom)
        at = x.at(_seconds(frozen))
        parts.append(svg.line(at, top - 6, at, bottom, "limit"))
        anchor = "end" if at > width - 60 else None
        parts.append(svg.text("frozen by", at + (-4 if anchor else 4), 14, "soft", anchor))
        for number, lane in enumerate(lanes):
            y = top + lane_height * (number + 1) - 10
            place = (left - 14, y + 4, None, "end") if is_wide else (0, y - 26, "soft", None)
            parts.append(svg.text(lane, *place))
            of = [mark for mark in marks if mark[0] == lane]
            parts += [_mark(mark, x, y) for mark in of]
            parts += _labels(of, x, y - 10, width)
        return bottom + 26, parts

    return drawn(title, caption, ("lane", "label", "from", "until", "what"), draw)


def _mark(mark: Mark, x: Scale, y: float) -> str:
    _, _, at, until, what = mark
    shapes = [svg.dot(x.at(_seconds(at)), y)]
    if until:
        shapes.insert(0, svg.line(x.at(_seconds(at)), y, x.at(_seconds(until)), y, "bar"))
    says = f"{_utc(at)}{f' to {_utc(until)}' if until else ''}: {what}"
    return svg.mark(says, [mark], *shapes, look=ACCENT)


def _ticks(x: Scale, top: float, bottom: float) -> list[str]:
    most = max(1.0, (x.end - x.start) / TICK)
    step = next((seconds for seconds in EVEN if (x.high - x.low) / seconds <= most), EVEN[-1])
    form = "%b %d" if step >= DAY else "%b %d %H:%M"
    moments = [number * step for number in range(-int(-x.low // step), int(x.high // step) + 1)]
    named = [(f"{datetime.fromtimestamp(at, UTC):{form}}", x.at(at), bottom + 16) for at in moments]
    return [svg.grid((at, top, at, bottom) for _, at, _ in named), svg.texts(named, "tick", "middle")]


def _utc(text: str) -> str:
    """Return a moment in UTC; midnight, which stands for a day, as the day."""
    at = datetime.fromisoformat(text).astimezone(UTC)
    return f"{at:%Y-%m-%d}" if at.time() == time() else f"{at:%Y-%m-%d %H:%M:%S}"


def _labels(marks: Sequence[Mark], x: Scale, y: float, width: float) -> list[str]:
    """Return the names above the marks of a lane; names that would run into each other stand as one."""
    placed: list[tuple[float, float, str]] = []  # from, to, words
    for at, label in ((x.at(_seconds(at)), label) for _, label, at, _, _ in marks if label):
        start, end, words = _room(at, label, width)
        while placed and start < placed[-1][1] + GAP:
            before, until, held = placed.pop()
            start, end, words = _room((before + until) / 2, f"{held}, {words}", width)
        placed.append((start, end, words))
    return [
        svg.text(svg.cut(words, width), (start + end) / 2, y, "soft", "middle")
        for start, end, words in placed
    ]


def _room(at: float, words: str, width: float) -> tuple[float, float, str]:
    """Return where words about a place begin and end, moved so that they stay in the drawing."""
    half = min(svg.width_of(words), width - 4) / 2
    middle = min(max(at, half + 2), width - half - 2)
    return middle - half, middle + half, words


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
