"""What was predicted across, what was seen up: a point a place, and a panel for each thing that predicts."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import cycle

from toolkit.decisions.values import fixed
from toolkit.website.charts import marks
from toolkit.website.charts.drawing import Chart, drawn
from toolkit.website.charts.scale import Axis
from toolkit.website.charts.scatter import Panel, Spot, scatter
from toolkit.website.charts.theme import OTHERS


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
    if not scene.points:
        return None
    kinds = list(dict.fromkeys(point.kind for point in scene.points))
    colour_of = dict(zip(kinds, cycle(OTHERS), strict=False))
    panels = [
        Panel(
            Axis(predictor.name, is_ratio=True),
            predictor.how_well,
            tuple(
                Spot(
                    float(point.predicted[at]),
                    float(point.seen),
                    f"{number} {sentence(scene, point)}",
                    ((number, point.name, *point.predicted, point.seen, *_ends(point)),),
                    colour_of[point.kind],
                    point.bar,
                    str(number),
                )
                for number, point in enumerate(scene.points, 1)
            ),
            has_one=True,
        )
        for at, predictor in enumerate(scene.across)
    ]
    draw = scatter(panels, Axis(scene.up, is_ratio=True), list(colour_of.items()))
    columns = ("number", "place", *(predictor.name for predictor in scene.across), "seen", "low", "high")
    return drawn(scene.title, _caption(scene), columns, draw, about=f"Study {study}: {scene.up}")


def _ends(point: Point) -> tuple[object, ...]:
    return (point.bar.low, point.bar.high) if point.bar else ("", "")


def sentence(scene: Scene, point: Point) -> str:
    """Return what a point says: its place, what was predicted, what was seen."""
    pairs = zip(scene.across, point.predicted, strict=True)
    words = ", ".join(f"{predictor.name} {fixed(x, 3)}" for predictor, x in pairs)
    bar = f", {point.bar.name} [{fixed(point.bar.low, 3)}, {fixed(point.bar.high, 3)}]" if point.bar else ""
    return f"{point.name}: {words}; seen {fixed(point.seen, 3)}{bar}"


def _caption(scene: Scene) -> str:
    sentences = [marks.capital(predictor.how_well) for predictor in scene.across if predictor.how_well]
    made = next((point.bar.made for point in scene.points if point.bar), "")
    sentences += [f"Bars: intervals, {made}"] if made else []
    sentences += ["Dashed: seen as predicted", "Solid line: no difference between the designs"]
    sentences += [f"Not drawn, as nothing was seen: {marks.listed(scene.lacking)}"] if scene.lacking else []
    return ". ".join(sentences) + "."
