"""Words, scores, attributes, sets of tasks and the picture that a rules file declares."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, ClassVar

from toolkit.errors import RuleError
from toolkit.registers.columns import WORDS, MissingData
from toolkit.registers.columns import Table as Register
from toolkit.registers.schema import TABLES
from toolkit.rules.sections import IDENTIFIER, Range, Spans, Table, Text, Texts, identifier
from toolkit.structs import UNSET, Document, UnsetType, about, as_builtins, one_of, replace

SCALED = "group"
TAKEN = frozenset(
    name for table in ("evaluations", "episodes", "runs", "task_pools") for name in TABLES[table].column_names
)
"""Columns whose names would be two things in a `where`, or in a mapping."""
RESERVED = ("pool", "all")  # a pool names a split, and to loaders that name means all of them


class Words(Document, frozen=True):
    """The study's own words by column, which are those of `WORDS`."""

    arm: Annotated[Texts | UnsetType, about("its arms")] = UNSET
    regime: Annotated[Texts | UnsetType, about("its regimes")] = UNSET
    pool: Annotated[Texts | UnsetType, about("its pools")] = UNSET


class Scores(Document, frozen=True):
    """The scores of episodes."""

    range: Annotated[Range, about("the lowest and the highest score of an episode")]


@dataclass(frozen=True)
class Terms:
    """What the values of some columns can be."""

    words: dict[str, tuple[str, ...]] = field(default_factory=dict)  # column → words, where not the toolkit's
    scaling: str = SCALED  # of rewards, where an endpoint does not say it; empty where no run says any
    scores: Range | None = None  # lowest and highest of an episode, if there are any
    missing: MissingData | None = None  # of episodes without an outcome; None where every one has its own
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # attribute of a task → its words

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that a run can have."""
        return self.words.get("arm", WORDS["arm"])

    def table(self, register: str) -> Register:
        """Return a register's table in these words."""
        return TABLES[register].with_words(self.words)


OF_TOOLKIT = Terms()


def terms_of(
    words: Words,
    scores: Scores | None,
    missing: MissingData | None,
    attributes: Mapping[str, Texts],
    *,
    scaled: bool,
) -> Terms:
    """Return the words that a registration declares."""
    own = {name: tuple(chosen) for name, chosen in as_builtins(words).items()}
    for name, chosen in own.items():
        _check_words(name, chosen, "words")
    for name, chosen in attributes.items():
        if identifier(name, "attributes") in TAKEN:
            raise RuleError("an attribute of tasks has the name of a column", found=name, where="attributes")
        _check_words(name, chosen, "attributes")
    if missing and not 0 <= missing.most < 1:
        problem = "the share that may be missing is at least 0, and below 1"
        raise RuleError(problem, found=missing.most, where="missing")
    return Terms(own, SCALED if scaled else "", scores.range if scores else None, missing, attributes)


def _check_words(name: str, chosen: tuple[str, ...], where: str) -> None:
    # The words of a pool name splits, and those of an arm stand in tables of columns.
    wrong = [word for word in chosen if not IDENTIFIER.fullmatch(word) or (name, word) == RESERVED]
    if wrong or not chosen or len(set(chosen)) != len(chosen):
        raise RuleError(
            f"the words of {name!r} are not a list of words, each once",
            expected="letters, digits and underscores, a letter first, at most 60; no pool is called all",
            found=", ".join(wrong or chosen) or "none",
            where=where,
        )


PLACE = ("phase", "pool", "regime")
SIZED, NOT_SIZED = SIZES = ("registered", "not registered")


class EvaluationSet(Table, frozen=True, kw_only=True):
    """Which rows of `evaluations` belong to a registered set, and what a complete one has."""

    where: Annotated[
        dict[str, str], about("text columns of `evaluations`, attributes, and what they say")
    ] = {}
    size: Annotated[str, one_of(SIZES, "whether its size was registered")] = SIZED
    tasks: Annotated[int, about("tasks of a complete evaluation, from 1")] = 0
    schedules: Annotated[int, about("schedules a task, from 1")] = 0
    spans: Spans = ()
    attributes: Mapping[str, str] = {}  # of its tasks, where it is not of all

    derived = ("id", "attributes")
    only: ClassVar = dict.fromkeys(("tasks", "schedules"), ("size", ("", SIZED)))

    @property
    def expect(self) -> dict[str, int]:
        """What a complete row holds; nothing where the set's size was not registered."""
        return {"episodes": self.tasks * self.schedules} if self.tasks else {}


def read_set(declared: EvaluationSet, terms: Terms = OF_TOOLKIT) -> EvaluationSet:
    """Return an evaluation set whose `attributes` are what its `where` says of those declared."""
    at = f"sets.{declared.id}"
    attributes = {key: value for key, value in declared.where.items() if key in terms.attributes}
    where = {key: value for key, value in declared.where.items() if key not in attributes}
    check_conditions("evaluations", where, at, terms)
    for key, value in attributes.items():
        if value not in terms.attributes[key]:
            problem = f"attribute {key!r} of a task never says {value!r}"
            raise RuleError(problem, expected=", ".join(terms.attributes[key]), where=at)
    sized = declared.size == SIZED
    if attributes and not (sized and {*PLACE} <= where.keys()):
        raise RuleError(
            "a set of some tasks says which evaluations it is of, and how many tasks they are",
            expected=f"{', '.join(PLACE)} in its where; tasks and schedules",
            where=at,
        )
    if sized and min(declared.tasks, declared.schedules) < 1:
        raise RuleError("an evaluation set has tasks and schedules", where=at)
    return replace(declared, where=where, attributes=attributes)


def check_sizes(sets: Iterable[EvaluationSet]) -> None:
    """Check that no set of some tasks is larger than the set of all that it is a part of."""
    sized = [each for each in sets if each.tasks]
    for whole in sized:
        for part in sized:
            is_part = whole.where == part.where and whole.attributes.items() < part.attributes.items()
            if is_part and (part.tasks > whole.tasks or part.schedules != whole.schedules):
                raise RuleError(
                    "a set of some tasks is no part of the set that it belongs to",
                    expected=f"at most {whole.tasks} tasks x {whole.schedules} schedules, as of {whole.id}",
                    found=f"{part.tasks} x {part.schedules}",
                    where=f"sets.{part.id}",
                )


def check_conditions(register: str, conditions: Mapping[str, str], where: str, terms: Terms) -> None:
    """Check that columns of a register can say what is asked of them."""
    check_columns(register, tuple(conditions), where, terms, numbers=False)
    for name, value in conditions.items():
        column = terms.table(register).column(name)
        if column and column.choices and value not in column.choices:
            problem = f"column {name!r} of {register!r} never says {value!r}"
            raise RuleError(problem, expected=", ".join(column.choices), where=where)


def check_columns(
    register: str, columns: tuple[str, ...], where: str, terms: Terms = OF_TOOLKIT, *, numbers: bool
) -> None:
    """Check that a register has columns, of numbers or of text."""
    table = TABLES[register]
    for name in columns:
        column = table.column(name)
        if column is None and name in terms.attributes:
            raise RuleError(
                f"{name!r} is an attribute of tasks, which chooses the tasks of a set",
                expected="a set with the attribute in its `where`, and with the number of these tasks",
                where=where,
            )
        if column is None:
            problem = f"register {register!r} has no column {name!r}"
            declared = [f"attribute {attribute}" for attribute in terms.attributes]
            raise RuleError(problem, expected=", ".join([*table.column_names, *declared]), where=where)
        if column.type.is_number != numbers:
            raise RuleError(
                f"column {name!r} of {register!r} is of the wrong type",
                expected=f"a column of {'numbers' if numbers else 'text'}",
                found=column.type.value,
                where=where,
            )


class Predictor(Document, frozen=True):
    """Something that predicts."""

    name: Annotated[Text, about("what predicts, in words")]
    statistic: Annotated[Text, about("the statistic that says how well it predicts")] = ""


class Predicted(Document, frozen=True):
    """A statistic, and what was predicted of it."""

    name: Annotated[Text, about("what it is about, in words")]
    kind: Annotated[Text, about("what it is grouped with")]
    predicted: Annotated[
        tuple[Fraction, ...],
        about("what each of `across` predicts, in order, in the unit of `statistic`"),
    ]
    statistic: Annotated[Text, about("the statistic that is seen")]
    interval: Annotated[Text, about("its interval, where one is shown")] = ""


class Picture(Table, frozen=True, kw_only=True):
    """A picture of predictions and what came of them."""

    title: Annotated[Text, about("what it shows")]
    up: Annotated[Text, about("what is seen, in words")]
    across: Annotated[tuple[Predictor, ...], about("what predicts, at least one")]
    points: Annotated[tuple[Predicted, ...], about("in the order in which they are numbered, at least one")]


def check_picture(picture: Picture) -> None:
    """Check that a picture has points, each with a number for each of its predictors."""
    short = [point.name for point in picture.points if len(point.predicted) != len(picture.across)]
    if short or not picture.across or not picture.points:
        raise RuleError(
            "every point of a picture has a number for each of its predictors",
            expected=f"{len(picture.across)} numbers, at least one",
            found=", ".join(short) or f"{len(picture.points)} points",
            where=f"pictures.{picture.id}",
        )
