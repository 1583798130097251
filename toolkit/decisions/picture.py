"""A registered picture: what was predicted of several statistics before the runs, beside what is seen."""

from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions.section import Section, exact_number, identifier


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
    """Read one picture.

    Raises:
        RuleError: malformed.
    """
    section = Section(content, f"pictures.{identifier(name, 'pictures')}")
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
    section = Section(content, f"{where}.across")
    predictor = Predictor(section.text("name"), section.text("statistic", ""))
    section.done()
    return predictor


def _point(content: object, where: str) -> Predicted:
    section = Section(content, f"{where}.points")
    point = Predicted(
        name=section.text("name"),
        kind=section.text("kind"),
        predicted=tuple(exact_number(text, section.where) for text in section.texts("predicted")),
        statistic=section.text("statistic"),
        interval=section.text("interval", ""),
    )
    section.done()
    return point
