"""Evaluation sets: which rows belong together, the tasks that they are of, and what a complete one has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from toolkit.decisions.keys import OPTIONAL, SPANS, Key, Named, Value, keys
from toolkit.decisions.section import Section, identifier
from toolkit.decisions.terms import OF_TOOLKIT, Terms
from toolkit.errors import RuleError
from toolkit.registers.schema import TABLES

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
    """Which rows of `evaluations` belong to a registered set, and what a complete one has.

    Args:
        name: its name.
        where: columns that the rows must match.
        tasks, schedules: its size; 0 where none was registered.
        spans: names of the spans of a frozen document that it restates.
        attributes: what its tasks are, where it is not of all tasks of the rows.
    """

    name: str
    where: dict[str, str]
    tasks: int
    schedules: int
    spans: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)

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
