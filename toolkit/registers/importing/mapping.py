"""mapping.toml: which column of somebody's table is which column of the registers."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.registers.columns import Column
from toolkit.registers.episode_counts import OUTCOMES
from toolkit.registers.manifest import Name
from toolkit.registers.row_tables import EPISODES, TASK_POOLS
from toolkit.registers.schema import RUNS
from toolkit.structs import Document, about, parse

REQUIRED = (*("condition", "arm", "seed", "role", "status"), *("phase", "pool", "regime", "step", "task"))
"""What a mapping has to say; run names and schedules follow from the rest where it does not say them."""

COMPUTED = ("episodes", "run_id", "missing", "excluded")
OF_RUNS = {column.name: column for column in RUNS.columns if column.name != "episodes"}
OF_EPISODES = {column.name: column for column in EPISODES.columns if column.name not in COMPUTED}
OF_TASKS = {name: column for name in ("prompt",) if (column := TASK_POOLS.column(name))}
TARGETS: Mapping[str, Column] = {**OF_TASKS, **OF_EPISODES, **OF_RUNS}
"""The columns of registers that can be taken from a table."""

Texts = dict[str, Annotated[str, Meta(min_length=1)]]
_EMPTY: Any = field(default_factory=dict)


class TableMapping(Document, frozen=True):
    """How a table of episodes becomes registers."""

    language: Literal[1]
    study: Name
    registration: Annotated[Name, about("The registration that the study belongs to.")]
    columns: Annotated[Texts, about("By column of the registers: that of the table.")] = _EMPTY
    constants: Annotated[Texts, about("By column of the registers: the one value of all rows.")] = _EMPTY
    values: Annotated[dict[str, Texts], about("By column: word of the table → word of registers.")] = _EMPTY
    attributes: Annotated[Texts, about("By attribute of a task: the column of the table.")] = _EMPTY

    def __post_init__(self) -> None:
        outcome = () if set(OUTCOMES) & set(self.targets) else OUTCOMES[:1]
        for problem, names in (
            (
                "columns that registers do not take from a table (see `toolkit registers schema runs`)",
                {*self.targets, *self.values} - set(TARGETS) - set(self.attributes),
            ),
            ("attributes of tasks with the name of a column", set(self.attributes) & set(TARGETS)),
            ("columns that are constants, too", set(self.columns) & set(self.constants)),
            ("translated columns that are not mapped", set(self.values) - set(self.read)),
            (
                "no value of what registers need, under [columns] or, for all rows, under [constants]",
                {*REQUIRED, *outcome} - set(self.targets),
            ),
        ):
            if names:
                raise ValueError(f"{problem}: {', '.join(sorted(names))}")

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
    return parse_mapping(read_text(path), path)


def parse_mapping(text: str, where: Path | None = None) -> TableMapping:
    """Return the mapping that a text holds."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedError("the mapping is not TOML", found=error, where=where) from None
    tables = {name: _as_texts(table) for name, table in document.items() if isinstance(table, dict)}
    return parse(TableMapping, document | tables, "the mapping is invalid", where)


def _as_texts(value: Any) -> Any:
    """Return whole numbers and truth values, which may stand without quotes, as text."""
    if isinstance(value, dict):
        return {key: _as_texts(inner) for key, inner in value.items()}
    return str(value).lower() if isinstance(value, int) else value
