"""A registered picture: what was predicted of several statistics before the runs, beside what is seen."""

from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions.keys import OPTIONAL, Key, Listed, Value, keys
from toolkit.decisions.section import Section, identifier

ACROSS = keys(
    Key("name", Value.TEXT, "what predicts, in words"),
    Key("statistic", Value.TEXT, "the statistic that says how well it predicts", OPTIONAL),
)
POINT = keys(
    Key("name", Value.TEXT, "what it is about, in words"),
    Key("kind", Value.TEXT, "what it is grouped with"),
    Key("predicted", Value.DECIMALS, "what each of `across` predicts, in order, in the unit of `statistic`"),
    Key("statistic", Value.TEXT, "the statistic that is seen"),
    Key("interval", Value.TEXT, "its interval, where one is shown", OPTIONAL),
)
PICTURE = keys(
    Key("title", Value.TEXT, "what it shows"),
    Key("up", Value.TEXT, "what is seen, in words"),
    Key("across", Listed(ACROSS), "what predicts, at least one"),
    Key("points", Listed(POINT), "in the order in which they are numbered, at least one"),
)


@dataclass(frozen=True)
class Predictor:
    """Something that predicts.

    Args:
        name: what it is, in words.
        statistic: the statistic that says how well it predicts; empty where none does.
    """

    name: str
    statistic: str


@dataclass(frozen=True)
class Predicted:
    """A statistic, and what was predicted of it.

    Args:
        name: what it is about, in words.
        kind: what it is grouped with.
        predicted: the numbers of the picture's predictors, in their order.
        statistic: what is seen.
        interval: its interval; empty where none is shown.
    """

    name: str
    kind: str
    predicted: tuple[Fraction, ...]
    statistic: str
    interval: str


@dataclass(frozen=True)
class Picture:
    """A picture of predictions and what came of them.

    Args:
        id: its name.
        title: what it shows.
        up: what is seen, in words.
        across: what predicts.
        points: in the order in which they are numbered.
    """

    id: str
    title: str
    up: str
    across: tuple[Predictor, ...]
    points: tuple[Predicted, ...]


def read_picture(name: str, content: object) -> Picture:
    """Read one picture."""
    section = Section(content, f"pictures.{identifier(name, 'pictures')}", PICTURE)
    picture = Picture(
        id=name,
        title=section.text("title"),
        up=section.text("up"),
        across=tuple(_predictor(part, section.where) for part in section.tables("across")),
        points=tuple(_point(part, section.where) for part in section.tables("points")),
    )
    section.done()
    short = [point.name for point in picture.points if len(point.predicted) != len(picture.across)]
    if short or not picture.across or not picture.points:
        raise section.wrong(
            "every point of a picture has a number for each of its predictors",
            expected=f"{len(picture.across)} numbers, at least one",
            found=", ".join(short) or f"{len(picture.points)} points",
        )
    return picture


def _predictor(content: object, where: str) -> Predictor:
    section = Section(content, f"{where}.across", ACROSS)
    predictor = Predictor(section.text("name"), section.text("statistic"))
    section.done()
    return predictor


def _point(content: object, where: str) -> Predicted:
    section = Section(content, f"{where}.points", POINT)
    point = Predicted(
        name=section.text("name"),
        kind=section.text("kind"),
        predicted=section.exacts("predicted"),
        statistic=section.text("statistic"),
        interval=section.text("interval"),
    )
    section.done()
    return point
