"""Chart of a chronology: freeze, additions, runs and records over time."""

from collections.abc import Sequence
from datetime import UTC, datetime, time
from typing import Any

from toolkit.website.charts.drawing import WIDTH, Chart, draw
from toolkit.website.charts.theme import ACCENT, INK, LIMIT

LANE = 36
LETTER = 6.0  # pixels, at the size of the config's text
GAP = 12
DAYS = 4  # of a longer time, ticks name days alone

Mark = tuple[str, str, str, str, str]
"""(lane, label, from, until, what); times in ISO 8601, `until` empty for a moment."""


def timeline(marks: tuple[Mark, ...], frozen: str, title: str, caption: str) -> Chart | None:
    """Draw everything dated on one axis of time: a lane a kind, a dot a moment, a bar a span.

    Args:
        marks: what is dated, in order.
        frozen: by when the freeze was, as ISO 8601: a vertical line.
        title: what the order of freeze and runs says.
        caption: what is drawn, in words.
    """
    import altair as alt

    if not marks:
        return None
    lanes = list(dict.fromkeys(lane for lane, *_ in marks))
    x = alt.X(
        "at:T",
        title="time, UTC",
        scale=alt.Scale(type="utc", nice=True),
        axis=alt.Axis(grid=True, labelOverlap=True, tickCount=6, format=_format(marks)),
    )
    y = alt.Y(
        "lane:N",
        sort=lanes,
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=200, grid=True, offset=14),
    )
    values = [
        {"lane": lane, "at": at, "until": until or at, "said": _said(at, until, what)}
        for lane, _, at, until, what in marks
    ]
    # Each mark says in words when it was: left to itself, the drawing names ends by the machine's own clock.
    base = alt.Chart(alt.Data(values=values)).encode(
        x=x, y=y, tooltip=alt.Tooltip("said:N", title="UTC"), description="said:N"
    )
    rule = alt.Chart(alt.Data(values=[{"at": frozen, "label": "frozen by"}])).encode(x=x)
    layers = [
        rule.mark_rule(color=LIMIT, strokeDash=[5, 4]),
        base.mark_rule(strokeWidth=7, color=ACCENT, opacity=0.55).encode(x2="until:T"),
        base.mark_circle(size=70, color=ACCENT, opacity=1),
        rule.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=INK).encode(
            y=alt.value(0), text="label:N"
        ),
        *_labels(marks, x, y),
    ]
    return draw(alt.layer(*layers), title, caption, LANE * len(lanes) + 10)


def _said(at: str, until: str, what: str) -> str:
    return f"{_utc(at)}{f' to {_utc(until)}' if until else ''}: {what}"


def _utc(text: str) -> str:
    """Return a moment in UTC; midnight, which stands for a day, as the day."""
    at = datetime.fromisoformat(text).astimezone(UTC)
    return f"{at:%Y-%m-%d}" if at.time() == time() else f"{at:%Y-%m-%d %H:%M:%S}"


def _labels(marks: Sequence[Mark], x: Any, y: Any) -> list[Any]:
    """Return the names above the marks; names that would run into each other stand as one."""
    import altair as alt

    start, end = _span(marks)
    scale = WIDTH / max(end - start, 1)
    placed: list[dict[str, Any]] = []
    last: dict[str, dict[str, Any]] = {}
    for lane, label, at, _, _ in marks:
        if not label:
            continue
        position = (_seconds(at) - start) * scale
        before = last.get(lane)
        if before and position - before["reached"] < LETTER * len(label) / 2 + GAP:
            before["label"] += f", {label}"
        else:
            before = last[lane] = {"lane": lane, "at": at, "place": position, "label": label}
            placed.append(before)
        half = LETTER * len(before["label"]) / 2
        before["reached"] = before["place"] + half * (2 if before["place"] < half else 1)
    layers = []
    for align in ("left", "center", "right"):
        chosen = [
            {key: name[key] for key in ("lane", "at", "label")} for name in placed if _align(name) == align
        ]
        if chosen:
            text = alt.Chart(alt.Data(values=chosen)).mark_text(align=align, dy=-12, color=INK, limit=WIDTH)
            layers.append(text.encode(x=x, y=y, text="label:N"))
    return layers


def _align(label: dict[str, Any]) -> str:
    """Return how a name stands to its mark, so that it stays within the plot."""
    half = LETTER * len(label["label"]) / 2
    return "left" if label["place"] < half else "right" if label["place"] > WIDTH - half else "center"


def _format(marks: Sequence[Mark]) -> str:
    start, end = _span(marks)
    return "%b %d" if end - start > DAYS * 86400 else "%b %d %H:%M"


def _span(marks: Sequence[Mark]) -> tuple[float, float]:
    return min(_seconds(at) for _, _, at, *_ in marks), max(
        _seconds(until or at) for _, _, at, until, _ in marks
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
