"""What was predicted across, what was seen up: a point a place, and a panel for each thing that predicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from toolkit.decisions.values import rounded
from toolkit.website.charts import marks
from toolkit.website.charts.drawing import HALF, Chart, drawn, heading
from toolkit.website.charts.theme import FAINT, INK, OTHERS, PAPER, config

HEIGHT = 360
PAD = 0.02
BOTH = 2 * HALF


@dataclass(frozen=True)
class Point:
    """A place where something was predicted and seen.

    Args:
        name: what it is, in words.
        kind: what it is coloured by.
        predicted: a prediction a panel.
        seen: what was seen.
        bar: its interval; None where it has none.
    """

    name: str
    kind: str
    predicted: tuple[Fraction, ...]
    seen: Fraction
    bar: marks.Bar | None


@dataclass(frozen=True)
class Predictor:
    """What predicts: its name, and how well, in words; empty where nothing says it."""

    name: str
    how_well: str


@dataclass(frozen=True)
class Scene:
    """Points, and the words about them.

    Args:
        title: what it shows.
        across: what predicts, a panel each.
        up: what was seen.
        points: numbered in this order.
        lacking: names of places where nothing was seen.
    """

    title: str
    across: tuple[Predictor, ...]
    up: str
    points: tuple[Point, ...]
    lacking: tuple[str, ...] = ()


def predicted_and_seen(scene: Scene, study: str) -> Chart | None:
    """Draw what was predicted against what was seen; None where nothing was."""
    import altair as alt

    if not scene.points:
        return None
    kinds = list(dict.fromkeys(point.kind for point in scene.points))
    colour = alt.Color(
        "kind:N",
        title=None,
        sort=kinds,
        scale=alt.Scale(domain=kinds, range=list(OTHERS[: len(kinds)])),
        legend=alt.Legend(orient="bottom", direction="horizontal", labelLimit=BOTH, labelColor=INK),
    )
    panels = [_panel(scene, at, colour) for at in range(len(scene.across))]
    chart = alt.hconcat(*panels, spacing=30).resolve_scale(y="shared")
    specification: dict[str, Any] = (
        chart.properties(title=heading(scene.title, f"Study {study}: {scene.up}", BOTH))
        .configure(**config())
        .to_dict(validate=False)
    )
    return drawn(specification, scene.title, _caption(scene, study))


def sentence(scene: Scene, point: Point) -> str:
    """Return what a point says: its place, what was predicted, what was seen."""
    pairs = zip(scene.across, point.predicted, strict=True)
    words = ", ".join(f"{predictor.name} {_number(x)}" for predictor, x in pairs)
    bar = f", {point.bar.name} [{_number(point.bar.low)}, {_number(point.bar.high)}]" if point.bar else ""
    return f"{point.name}: {words}; seen {_number(point.seen)}{bar}"


def _panel(scene: Scene, at: int, colour: Any) -> Any:
    import altair as alt

    values = [
        {
            "number": str(number),
            "kind": point.kind,
            "x": rounded(point.predicted[at]),
            "y": rounded(point.seen),
            "low": None if point.bar is None else rounded(point.bar.low),
            "high": None if point.bar is None else rounded(point.bar.high),
            "words": sentence(scene, point),
        }
        for number, point in enumerate(scene.points, 1)
    ]
    predictor, across = scene.across[at], _span([point.predicted[at] for point in scene.points])
    up_title, up_scale = scene.up if not at else None, alt.Scale(domain=_span(_ups(scene.points)), nice=False)
    x = alt.X("x:Q", title=predictor.name, scale=alt.Scale(domain=across, nice=False))
    y, ends = (alt.Y(f"{name}:Q", title=up_title, scale=up_scale) for name in ("y", "low"))
    base = alt.Chart(alt.Data(values=values)).encode(x=x, tooltip=["words:N"])
    same = alt.Chart(alt.Data(values=[{"x": end, "y": end} for end in across]))
    one = alt.Chart(alt.Data(values=[{"y": 1.0}]))
    layers = [
        one.mark_rule(color=INK).encode(y=y),
        same.mark_line(color=FAINT, strokeDash=[4, 3], clip=True).encode(x=x, y=y),
        base.mark_rule(strokeWidth=3, color=FAINT, clip=True).encode(y=ends, y2="high:Q"),
        base.mark_circle(size=230, opacity=1).encode(y=y, color=colour),
        base.mark_text(fontSize=9, fontWeight="bold").encode(y=y, text="number:N", color=alt.value(PAPER)),
    ]
    panel = alt.layer(*layers).properties(width=HALF, height=HEIGHT)
    if not predictor.how_well:
        return panel
    return panel.properties(
        title=alt.Title(predictor.how_well, fontSize=12, fontWeight="normal", anchor="start", color=INK)
    )


def _ups(points: Sequence[Point]) -> list[Fraction]:
    ends = [end for point in points if point.bar for end in (point.bar.low, point.bar.high)]
    return [*(point.seen for point in points), *ends]


def _span(values: Sequence[Fraction]) -> list[float]:
    """Return the ends of an axis that shows values, and one."""
    return [
        round(float(min([*values, Fraction(1)])) - PAD, 2),
        round(float(max([*values, Fraction(1)])) + PAD, 2),
    ]


def _caption(scene: Scene, study: str) -> str:
    each = "; ".join(f"{number} {sentence(scene, point)}" for number, point in enumerate(scene.points, 1))
    wells = [marks.capital(predictor.how_well) for predictor in scene.across if predictor.how_well]
    made = next((point.bar.made for point in scene.points if point.bar), "")
    sentences = [f"Study {study}", each, *wells]
    sentences += [f"Bars: intervals, {made}"] if made else []
    sentences += ["Dashed: seen as predicted", "Solid line: no difference between the designs"]
    sentences += [f"Not drawn, as nothing was seen: {marks.listed(scene.lacking)}"] if scene.lacking else []
    return ". ".join(sentences) + "."


def _number(value: Fraction) -> str:
    return f"{float(value):.3f}"
