"""The tasks of a log: numbered within their pools, each with one text and one value of every attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.columns import Column, Type, attributes_text
from toolkit.registers.importing.attempts import MOST_TASKS
from toolkit.registers.importing.mapping import OF_TASKS, TableMapping
from toolkit.registers.importing.source import ROW, as_words, converted, refused

if TYPE_CHECKING:
    import polars as pl

Attributes = Mapping[str, tuple[str, ...]]
"""Attribute of a task → the words that are declared for it."""
ATTRIBUTES = "attributes"
TOLD_OF_TASKS = (*OF_TASKS, ATTRIBUTES)


def with_attributes(
    rows: pl.DataFrame, source: pl.DataFrame, mapping: TableMapping, declared: Attributes
) -> pl.DataFrame:
    """Return rows with the attributes of their tasks as one text, where any are registered."""
    import polars as pl

    if {*mapping.attributes} != {*declared}:
        raise DamagedError(
            "the mapping gives other attributes of tasks than those that the registration declares",
            expected=", ".join(declared) or "none",
            found=", ".join(mapping.attributes) or "none",
            remedy="name the column of each under [attributes] of the mapping; those of the rules are frozen",
        )
    if not declared:
        return rows
    cells = pl.DataFrame([_attribute(source, mapping, name, declared[name]) for name in declared])
    said = cells.unique(maintain_order=True)
    texts = [attributes_text(row) for row in said.to_dicts()]
    told = cells.join(
        said.with_columns(pl.Series(ATTRIBUTES, texts)), on=cells.columns, how="left", maintain_order="left"
    )
    return rows.with_columns(as_words(told[ATTRIBUTES]))


def _attribute(source: pl.DataFrame, mapping: TableMapping, name: str, words: tuple[str, ...]) -> pl.Series:
    column = Column(name, "An attribute of the task.", Type.STRING)
    cells = converted(source, column, mapping.attributes[name], mapping.values.get(name, {}))
    unknown = ~cells.is_in(words)
    if unknown.any():
        raise refused(source, unknown, column, mapping.attributes[name], ", ".join(words))
    return cells


def numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks by pool, numbered: by their number where all have one, else by their name."""
    import polars as pl

    told = [name for name in TOLD_OF_TASKS if name in rows.columns]
    tasks = rows.group_by("pool", "task", *told).agg(pl.col(ROW).min()).sort(ROW)
    twice = tasks.filter(tasks.select("pool", "task").is_duplicated())
    if twice.height:
        first, *others = twice.to_dicts()
        same = (row for row in others if (row["pool"], row["task"]) == (first["pool"], first["task"]))
        other = next(same)
        differ = [name for name in told if first[name] != other[name]]
        raise DamagedError(
            f"a task has two texts under {', '.join(differ)}",
            expected="one text a task",
            found=f"task {first['task']!r} of pool {first['pool']!r}: "
            + "; ".join(f"{row[differ[0]]!r} in row {row[ROW]}" for row in (first, other)),
        )
    tasks = tasks.drop(ROW)
    name = pl.col("task").cast(pl.String)
    tasks = tasks.sort("pool", name.cast(pl.Int64, strict=False), name, nulls_last=True)
    tasks = tasks.with_columns(index=(pl.col("task").cum_count().over("pool") - 1).cast(pl.Int32))
    if tasks["index"].max() >= MOST_TASKS:  # type: ignore[operator]
        raise DamagedError(
            "a pool has more tasks than a register can number", expected=f"at most {MOST_TASKS}"
        )
    return tasks
