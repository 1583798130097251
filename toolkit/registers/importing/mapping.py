"""The mapping: which column of somebody's table is which column of the registers."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.registers.columns import Column
from toolkit.registers.episode_counts import OUTCOMES
from toolkit.registers.manifest import STUDY_NAME
from toolkit.registers.row_tables import EPISODES, TASK_POOLS
from toolkit.registers.schema import RUNS

LANGUAGE = 1
REQUIRED = (*("condition", "arm", "seed", "role", "status"), *("phase", "pool", "regime", "step", "task"))
"""What a mapping has to say; run names and schedules follow from the rest where it does not say them."""

COMPUTED = ("episodes", "run_id", "missing", "excluded")
OF_RUNS = {column.name: column for column in RUNS.columns if column.name != "episodes"}
OF_EPISODES = {column.name: column for column in EPISODES.columns if column.name not in COMPUTED}
OF_TASKS = {name: column for name in ("prompt",) if (column := TASK_POOLS.column(name))}
TARGETS: Mapping[str, Column] = {**OF_TASKS, **OF_EPISODES, **OF_RUNS}
"""The columns of registers that can be taken from a table."""


@dataclass(frozen=True)
class TableMapping:
    """How a table of episodes becomes registers."""

    study: str  # name of the study
    registration: str  # name of the registration that it belongs to
    columns: dict[str, str]  # column of the registers → column of the table
    constants: dict[str, str]  # column of the registers → what it is in every row
    values: dict[str, dict[str, str]]  # column or attribute → word of the table → word of the registers
    text: str  # the mapping as it was read
    attributes: dict[str, str] = field(default_factory=dict)  # attribute of a task → column of the table

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns of registers that it gives."""
        return (*self.columns, *self.constants)

    @property
    def read(self) -> dict[str, str]:
        """Column of the registers, or attribute → the column of the table that is read for it."""
        return {**self.columns, **self.attributes}


def read_mapping(path: Path) -> TableMapping:
    """Read a mapping file."""
    text = read_text(path)
    try:
        return parse_mapping(text)
    except DamagedError as error:
        raise error.restated(where=path) from None


def parse_mapping(text: str) -> TableMapping:
    """Return the mapping that a text holds."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedError("the mapping is not TOML", found=error) from None
    if document.pop("language", None) != LANGUAGE:
        raise DamagedError("the mapping is written in another version of its language", expected=LANGUAGE)
    values = document.pop("values", {})
    mapping = TableMapping(
        study=_name(document, "study"),
        registration=_name(document, "registration"),
        columns=_texts(document.pop("columns", {}), "columns"),
        constants=_texts(document.pop("constants", {}), "constants"),
        values={name: _texts(words, f"values.{name}") for name, words in _table(values, "values").items()},
        text=text,
        attributes=_texts(document.pop("attributes", {}), "attributes"),
    )
    if document:
        raise DamagedError("the mapping has keys that it cannot have", found=", ".join(sorted(document)))
    _check(mapping)
    return mapping


def _check(mapping: TableMapping) -> None:
    unknown = sorted({*mapping.targets, *mapping.values} - set(TARGETS) - set(mapping.attributes))
    if unknown:
        raise DamagedError(
            "the mapping names a column that the registers do not take from a table",
            expected=", ".join(TARGETS),
            found=", ".join(unknown),
            remedy="`toolkit registers schema runs episodes` says what each column means",
        )
    absent = [name for name in REQUIRED if name not in mapping.targets]
    if not set(OUTCOMES) & set(mapping.targets):
        absent.append(OUTCOMES[0])
    wrong = (
        ("an attribute of tasks has the name of a column", set(mapping.attributes) & set(TARGETS)),
        ("a column is mapped, and is a constant too", set(mapping.columns) & set(mapping.constants)),
        ("the mapping translates a column that is not mapped", set(mapping.values) - set(mapping.read)),
    )
    for problem, names in wrong:
        if names:
            raise DamagedError(problem, found=", ".join(sorted(names)))
    if absent:
        raise DamagedError(
            "the mapping leaves out what registers need",
            expected=", ".join(REQUIRED),
            found=f"no {', no '.join(absent)}",
            remedy="name the table's column under [columns], or the one value of all rows under [constants]",
        )


def _name(document: dict[str, Any], key: str) -> str:
    value = document.pop(key, None)
    if not isinstance(value, str) or not STUDY_NAME.fullmatch(value):
        raise DamagedError(
            f"{key!r} of the mapping is no name",
            expected="letters, digits, hyphens and underscores, at most 64",
            found=repr(value),
        )
    return value


def _table(content: object, where: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise DamagedError(f"[{where}] is no table", found=repr(content))
    return content


def _texts(content: object, where: str) -> dict[str, str]:
    """Return a table of texts; whole numbers and truth values may stand without quotes."""
    texts = {}
    for name, value in _table(content, where).items():
        if not isinstance(value, str | int) or value == "":
            raise DamagedError(
                f"{name!r} under [{where}] has no value that a mapping can have",
                expected="text, a whole number, true or false",
                found=repr(value),
            )
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts
