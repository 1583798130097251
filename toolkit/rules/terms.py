"""Words, scores, attributes, sets of tasks and the picture that a rules file declares."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from toolkit.errors import RuleError
from toolkit.registers.columns import ATTEMPTS, TREATMENTS, WORDS, MissingData, Table
from toolkit.registers.schema import TABLES
from toolkit.rules.sections import (
    IDENTIFIER,
    OPTIONAL,
    SPANS,
    Key,
    Listed,
    Named,
    Section,
    Value,
    alike,
    identifier,
    keys,
)

SCALED = "group"
TAKEN = frozenset(
    name for table in ("evaluations", "episodes", "runs", "task_pools") for name in TABLES[table].column_names
)
"""Columns whose names would be two things in a `where`, or in a mapping."""
RESERVED = ("pool", "all")  # a pool names a split, and to loaders that name means all of them
WORDS_OF = keys(*(Key(name, Value.TEXTS, f"its {name}s", OPTIONAL) for name in WORDS))
SCORES = keys(Key("range", Value.RANGE, "the lowest and the highest score of an episode"))
MISSING = keys(
    Key("counts_as", Value.TEXT, "what episodes without an outcome count as", choices=TREATMENTS),
    Key("most", Value.DECIMAL, "share of an evaluation's episodes that may be missing, from 0, below 1"),
    Key("attempts", Value.TEXT, "which of several attempts counts", next(iter(ATTEMPTS)), ATTEMPTS),
)


@dataclass(frozen=True)
class Terms:
    """What the values of some columns can be."""

    words: dict[str, tuple[str, ...]] = field(default_factory=dict)  # column → words, where not the toolkit's
    scaling: str = SCALED  # of rewards, where an endpoint does not say it; empty where no run says any
    scores: tuple[Fraction, Fraction] | None = None  # lowest and highest of an episode, if there are any
    missing: MissingData | None = None  # of episodes without an outcome; None where every one has its own
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # attribute of a task → its words

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that a run can have."""
        return self.words.get("arm", WORDS["arm"])

    def table(self, register: str) -> Table:
        """Return a register's table in these words."""
        return TABLES[register].with_words(self.words)


OF_TOOLKIT = Terms()


def read_terms(
    content: dict[str, Any],
    cells: list[Any],
    scores: dict[str, Any] | None = None,
    missing: dict[str, Any] | None = None,
    attributes: dict[str, Any] | None = None,
) -> Terms:
    """Read the words that a registration declares."""
    said = Section(content, "words", WORDS_OF).rest()
    words = {name: said[name] for name in WORDS if name in content}
    for name, chosen in words.items():
        _check_words(name, chosen, "words")
    scaled = any(isinstance(cell, dict) and "scale_rewards" in cell for cell in cells)
    return Terms(
        words,
        SCALED if scaled else "",
        Section(scores, "scores", SCORES).rest()["range"] if scores else None,
        _missing_data(missing) if missing else None,
        _attributes(attributes or {}),
    )


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


def _attributes(content: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    section = Section(content, "attributes", alike(content, Value.TEXTS))
    declared = {identifier(name, "attributes"): section.texts(name) for name in content}
    for name, chosen in declared.items():
        if name in TAKEN:
            raise section.wrong("an attribute of tasks has the name of a column", found=name)
        _check_words(name, chosen, "attributes")
    return declared


def _missing_data(missing: dict[str, Any]) -> MissingData:
    section = Section(missing, "missing", MISSING)
    read = MissingData(**section.rest())
    if not 0 <= read.most < 1:
        raise section.wrong("the share that may be missing is at least 0, and below 1", found=read.most)
    return read


PLACE = ("phase", "pool", "regime")
SIZED, NOT_SIZED = SIZES = ("registered", "not registered")
SET = keys(
    Key("where", Named(Value.TEXT), "text columns of `evaluations`, attributes, and what they say", OPTIONAL),
    Key("size", Value.TEXT, "whether its size was registered", OPTIONAL, SIZES),
    Key("tasks", Value.WHOLE, "tasks of a complete evaluation, from 1", only=("size", (OPTIONAL, SIZED))),
    Key("schedules", Value.WHOLE, "schedules a task, from 1", only=("size", (OPTIONAL, SIZED))),
    SPANS,
)


@dataclass(frozen=True)
class EvaluationSet:
    """Which rows of `evaluations` belong to a registered set, and what a complete one has."""

    name: str  # its name
    where: dict[str, str]  # columns that the rows must match
    tasks: int  # tasks, schedules: its size; 0 where none was registered
    schedules: int
    spans: tuple[str, ...] = ()  # names of the spans of a frozen document that it restates
    attributes: Mapping[str, str] = field(default_factory=dict)  # of its tasks, where it is not of all

    @property
    def expect(self) -> dict[str, int]:
        """What a complete row holds; nothing where the set's size was not registered."""
        return {"episodes": self.tasks * self.schedules} if self.tasks else {}


def read_set(name: str, content: object, terms: Terms = OF_TOOLKIT) -> EvaluationSet:
    """Read one evaluation set; what its `where` says of declared attributes chooses tasks."""
    section = Section(content, f"sets.{identifier(name, 'sets')}", SET)
    said = section.strings("where")
    attributes = {key: value for key, value in said.items() if key in terms.attributes}
    where = {key: value for key, value in said.items() if key not in attributes}
    check_conditions("evaluations", where, section, terms)
    for key, value in attributes.items():
        if value not in terms.attributes[key]:
            problem = f"attribute {key!r} of a task never says {value!r}"
            raise section.wrong(problem, expected=", ".join(terms.attributes[key]))
    sized = section.text("size") != NOT_SIZED
    if attributes and not (sized and {*PLACE} <= where.keys()):
        raise section.wrong(
            "a set of some tasks says which evaluations it is of, and how many tasks they are",
            expected=f"{', '.join(PLACE)} in its where; tasks and schedules",
        )
    tasks, schedules = section.whole("tasks"), section.whole("schedules")
    if sized and min(tasks, schedules) < 1:
        raise section.wrong("an evaluation set has tasks and schedules")
    spans = section.texts("spans")
    section.done()
    return EvaluationSet(name, where, tasks, schedules, spans, attributes)


def check_sizes(sets: Iterable[EvaluationSet]) -> None:
    """Check that no set of some tasks is larger than the set of all that it is a part of."""
    sized = [each for each in sets if each.tasks]
    for whole in sized:
        for part in sized:
            is_part = whole.where == part.where and whole.attributes.items() < part.attributes.items()
            if is_part and (part.tasks > whole.tasks or part.schedules != whole.schedules):
                raise RuleError(
                    "a set of some tasks is no part of the set that it belongs to",
                    expected=f"at most {whole.tasks} tasks x {whole.schedules} schedules, as of {whole.name}",
                    found=f"{part.tasks} x {part.schedules}",
                    where=f"sets.{part.name}",
                )


def check_conditions(register: str, conditions: Mapping[str, str], section: Section, terms: Terms) -> None:
    """Check that columns of a register can say what is asked of them."""
    check_columns(register, tuple(conditions), section, terms, numbers=False)
    for name, value in conditions.items():
        column = terms.table(register).column(name)
        if column and column.choices and value not in column.choices:
            problem = f"column {name!r} of {register!r} never says {value!r}"
            raise section.wrong(problem, expected=", ".join(column.choices))


def check_columns(
    register: str, columns: tuple[str, ...], section: Section, terms: Terms = OF_TOOLKIT, *, numbers: bool
) -> None:
    """Check that a register has columns, of numbers or of text."""
    table = TABLES[register]
    for name in columns:
        column = table.column(name)
        if column is None and name in terms.attributes:
            raise section.wrong(
                f"{name!r} is an attribute of tasks, which chooses the tasks of a set",
                expected="a set with the attribute in its `where`, and with the number of these tasks",
            )
        if column is None:
            problem = f"register {register!r} has no column {name!r}"
            declared = [f"attribute {attribute}" for attribute in terms.attributes]
            raise section.wrong(problem, expected=", ".join([*table.column_names, *declared]))
        if column.type.is_number != numbers:
            raise section.wrong(
                f"column {name!r} of {register!r} is of the wrong type",
                expected=f"a column of {'numbers' if numbers else 'text'}",
                found=column.type.value,
            )


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
    """Something that predicts."""

    name: str  # what it is, in words
    statistic: str  # the statistic that says how well it predicts; empty where none does


@dataclass(frozen=True)
class Predicted:
    """A statistic, and what was predicted of it."""

    name: str  # what it is about, in words
    kind: str  # what it is grouped with
    predicted: tuple[Fraction, ...]  # the numbers of the picture's predictors, in their order
    statistic: str  # what is seen
    interval: str  # its interval; empty where none is shown


@dataclass(frozen=True)
class Picture:
    """A picture of predictions and what came of them."""

    id: str  # its name
    title: str  # what it shows
    up: str  # what is seen, in words
    across: tuple[Predictor, ...]  # what predicts
    points: tuple[Predicted, ...]  # in the order in which they are numbered


def read_picture(name: str, content: object) -> Picture:
    """Read one picture."""
    section = Section(content, f"pictures.{identifier(name, 'pictures')}", PICTURE)
    across, points = f"{section.where}.across", f"{section.where}.points"
    picture = Picture(
        name,
        across=tuple(Predictor(**Section(part, across, ACROSS).rest()) for part in section.tables("across")),
        points=tuple(Predicted(**Section(part, points, POINT).rest()) for part in section.tables("points")),
        **section.rest(),
    )
    short = [point.name for point in picture.points if len(point.predicted) != len(picture.across)]
    if short or not picture.across or not picture.points:
        raise section.wrong(
            "every point of a picture has a number for each of its predictors",
            expected=f"{len(picture.across)} numbers, at least one",
            found=", ".join(short) or f"{len(picture.points)} points",
        )
    return picture
