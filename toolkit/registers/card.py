"""Dataset cards: the parts of a README that follow from the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.task_tables import SPLIT_BY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.registers.columns import Column, Table, Type

WHOLE = "train"


def dataset_card(source: str, rows: Mapping[str, int]) -> str:
    """Return a dataset repository's README.

    Args:
        source: the card's text, with `{{configs}}`, `{{dataset_info}}`, `{{tables}}` and `{{schema_version}}`
            where the generated parts go.
        rows: table name → number of rows; the first table in schema order is the default configuration.
    """
    tables = [table for name, table in TABLES.items() if name in rows]
    parts = {
        "{{configs}}": _configs(tables),
        "{{dataset_info}}": _dataset_info(tables),
        "{{tables}}": "\n".join(table_text(table, rows[table.name]) for table in tables),
        "{{schema_version}}": SCHEMA_VERSION,
    }
    for mark, part in parts.items():
        source = source.replace(mark, part)
    return source


def table_text(table: Table, rows: int | None = None) -> str:
    """Return a Markdown section on one table: what a row is, its key, its columns."""
    counted = "" if rows is None else f" {rows} rows."
    lines = [
        f"### `{table.name}`",
        "",
        f"{table.meaning}{counted} Key: {', '.join(f'`{name}`' for name in table.key)}.",
        "",
        "| column | type | unit | meaning |",
        "| --- | --- | --- | --- |",
        *(f"| `{c.name}` | {_shown(c.type)} | {c.unit or ''} | {_meaning(c)} |" for c in table.columns),
        "",
    ]
    return "\n".join(lines)


def splits(table: Table) -> tuple[str, ...]:
    """Return the names of a table's splits; a table that is not split is one called `train`."""
    column = table.column(SPLIT_BY.get(table.name, ""))
    return (WHOLE,) if column is None or column.choices is None else column.choices


def _meaning(column: Column) -> str:
    extra = []
    if column.choices:
        extra.append("one of " + ", ".join(f"`{choice}`" for choice in column.choices))
    if column.nullable:
        extra.append("may be null")
    return column.meaning.replace("|", "\\|") + (f" ({'; '.join(extra)})" if extra else "")


def _configs(tables: list[Table]) -> str:
    lines = ["configs:"]
    for position, table in enumerate(tables):
        lines.append(f"- config_name: {table.name}")
        if position == 0:
            lines.append("  default: true")
        lines.append("  data_files:")
        for split in splits(table):
            pattern = f"{split}-*" if table.name in SPLIT_BY else "*"
            lines += [f"  - split: {split}", f"    path: {table.name}/{pattern}.parquet"]
    return "\n".join(lines)


def _dataset_info(tables: list[Table]) -> str:
    lines = ["dataset_info:"]
    for table in tables:
        lines += [f"- config_name: {table.name}", "  features:"]
        for column in table.columns:
            lines += [f"  - name: {column.name}", f"    {_feature(column.type)}"]
    return "\n".join(lines)


def _feature(kind: Type) -> str:
    return f"dtype: {kind.value}" if kind.element is None else f"list: {kind.element.value}"


def _shown(kind: Type) -> str:
    """Return a type for a reader; Markdown would take what stands in angle brackets for HTML."""
    return f"`{kind.value}`" if kind.is_list else kind.value
