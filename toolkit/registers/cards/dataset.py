"""Dataset cards: the parts of a README that follow from the schema and from the rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.cards.study import matrix_text, outcomes_text, registered_text
from toolkit.registers.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.registers.arrow import Row
    from toolkit.registers.cards.config import Config
    from toolkit.registers.columns import Column, Table, Type
    from toolkit.registers.manifest import RegistrationRef

MARK = re.compile(r"\{\{(\w+)\}\}")
# The Hub's size categories: each is for fewer rows than its number.
_SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
    (10**9, "100M<n<1B"),
)


def dataset_card(
    source: str,
    configs: Sequence[Config],
    *,
    registration: RegistrationRef | None = None,
    rows: Mapping[str, Sequence[Row]] | None = None,
    is_demonstration: bool = False,
) -> str:
    """Return a dataset repository's README.

    Args:
        source: the card's text, with marks where the generated parts go: `{{configs}}`, `{{dataset_info}}`,
            `{{size_category}}`, `{{overview}}`, `{{tables}}`, `{{schema_version}}`; and for a study's card
            `{{registration}}`, `{{matrix}}` (its runs) and `{{outcomes}}` (its decisions).
        configs: what the repository holds; the first is the default configuration.
        registration: what `{{registration}}` names.
        rows: those of `runs` and `decisions`, for `{{matrix}}` and `{{outcomes}}`; a decision may have the
            rule's `title` beside its columns.
        is_demonstration: whether that registration proves nothing to others.

    Raises:
        DamagedError: a mark is unknown, or what it stands for was not given.
    """
    given = rows or {}
    parts = {
        "configs": _configs(configs),
        "dataset_info": _dataset_info(configs),
        "size_category": size_category(sum(config.rows for config in configs)),
        "overview": _overview(configs),
        "tables": "\n".join(table_text(config.table, config.rows) for config in configs),
        "schema_version": SCHEMA_VERSION,
    }
    if registration is not None:
        parts["registration"] = registered_text(registration, is_demonstration=is_demonstration)
    if given.get("runs"):
        parts["matrix"] = matrix_text(given["runs"])
    if given.get("decisions"):
        parts["outcomes"] = outcomes_text(given["decisions"])
    return filled(source, parts)


def filled(source: str, parts: Mapping[str, str]) -> str:
    """Return a card's text with every mark replaced by the part of its name.

    Raises:
        DamagedError: there is no part of that name.
    """

    def part(match: re.Match[str]) -> str:
        if match[1] not in parts:
            raise DamagedError(
                f"nothing is at hand for the card's mark {match[0]}",
                expected=", ".join(parts),
                found=match[1],
                remedy="correct the mark, or take it out",
            )
        return parts[match[1]]

    return MARK.sub(part, source)


def size_category(rows: int) -> str:
    """Return the Hub's size category of a number of rows."""
    return next((name for bound, name in _SIZES if rows < bound), "n>1B")


def table_text(table: Table, rows: int) -> str:
    """Return a section on one table, folded up: what a row is, its key, its columns."""
    lines = [
        "<details>",
        f"<summary><code>{table.name}</code>, {rows:,} rows, {len(table.columns)} columns</summary>",
        "",
        " ".join([table.meaning, f"Key: {_names(table.key)}.", *parents_text(table)]),
        "",
        "| column | type | unit | meaning |",
        "| --- | --- | --- | --- |",
        *(
            f"| `{c.name}` | {_shown(c.type)} | {c.unit or ''} | {_cell(column_text(c))} |"
            for c in table.columns
        ),
        "",
        "</details>",
        "",
    ]
    return "\n".join(lines)


def parents_text(table: Table) -> list[str]:
    """Return a sentence in Markdown on each reference of a table's rows."""
    return [
        f"{_names(parent.columns)} {'refer' if len(parent.columns) > 1 else 'refers'} to `{parent.table}`"
        + (f" where `{parent.where_present}` is not null." if parent.where_present else ".")
        for parent in table.parents
    ]


def column_text(column: Column) -> str:
    """Return what a column means, in Markdown: with its allowed values, and whether it may be null."""
    extra = []
    if column.choices:
        extra.append("one of " + ", ".join(f"`{choice}`" for choice in column.choices))
    if column.nullable:
        extra.append("may be null")
    return column.meaning + (f" ({'; '.join(extra)})" if extra else "")


def _overview(configs: Sequence[Config]) -> str:
    lines = ["| config | rows | one row is | key |", "| --- | ---: | --- | --- |"]
    for config in configs:
        table = config.table
        meaning = _cell(table.meaning.removeprefix("One row ").removesuffix("."))
        lines.append(f"| `{table.name}` | {config.rows:,} | {meaning} | {_names(table.key)} |")
    return "\n".join(lines)


def _configs(configs: Sequence[Config]) -> str:
    lines = ["configs:"]
    for position, config in enumerate(configs):
        lines.append(f"- config_name: {config.table.name}")
        if position == 0:
            lines.append("  default: true")
        lines.append("  data_files:")
        for split in config.splits:
            lines += [f"  - split: {split.name}", f"    path: {split.pattern}"]
    return "\n".join(lines)


def _dataset_info(configs: Sequence[Config]) -> str:
    lines = ["dataset_info:"]
    for config in configs:
        lines += [f"- config_name: {config.table.name}", "  features:"]
        for column in config.table.columns:
            lines += [f"  - name: {column.name}", f"    {_feature(column.type)}"]
        lines.append("  splits:")
        for split in config.splits:
            lines += [f"  - name: {split.name}", f"    num_bytes: {split.bytes}"]
            lines.append(f"    num_examples: {split.rows}")
        lines += [f"  download_size: {config.file_bytes}", f"  dataset_size: {config.bytes}"]
    return "\n".join(lines)


def _feature(kind: Type) -> str:
    return f"dtype: {kind.value}" if kind.element is None else f"list: {kind.element.value}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _shown(kind: Type) -> str:
    """Return a type for a reader; Markdown would take what stands in angle brackets for HTML."""
    return f"`{kind.value}`" if kind.is_list else kind.value
