"""Dataset cards: what a repository holds, and the parts of its README that follow from schema and rows."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from toolkit.errors import DamagedError
from toolkit.registers.arrow import Row
from toolkit.registers.columns import Column, Table
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.row_tables import SPLIT_BY
from toolkit.registers.schema import SCHEMA_VERSION, TABLES

CARD = "README.md"
NOTHING_FOUND = "No finding is told that these rows bear."
MARK = re.compile(r"\{\{(\w+)\}\}")
# The Hub's size categories: each is for fewer rows than its number.
_SIZES = (
    *((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M")),
    *((10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B")),
)


def repository_documents(
    source: str,
    files: Mapping[str, Mapping[str, bytes]],
    words: Mapping[str, tuple[str, ...]] | None = None,
    **facts: Any,
) -> dict[str, bytes]:
    """Return the documents of a repository by name, its card; `files` are by table and name."""
    configs = [config_of(TABLES[name].with_words(words or {}), parts) for name, parts in files.items()]
    return {CARD: dataset_card(source, configs, **facts).encode()}


def dataset_card(
    source: str,
    configs: Sequence[Config],
    *,
    registration: RegistrationRef | None = None,
    rows: Mapping[str, Sequence[Row]] = MappingProxyType({}),
    standing: str = "",
    findings: str = "",
) -> str:
    """Return a dataset repository's README, with what is known beside its tables."""
    parts = {
        "configs": _configs(configs),
        "dataset_info": _dataset_info(configs),
        "size_category": size_category(sum(config.rows for config in configs)),
        "overview": _overview(configs),
        "tables": "\n".join(table_text(config.table, config.rows) for config in configs),
        "schema_version": SCHEMA_VERSION,
    }
    if registration is not None:
        parts["registration"] = registered_text(registration)
    if rows.get("runs"):
        parts["matrix"] = matrix_text(rows["runs"])
    if rows.get("decisions"):
        parts["outcomes"] = outcomes_text(rows["decisions"], standing)
        parts["findings"] = findings or NOTHING_FOUND
    return filled(source, parts)


def filled(source: str, parts: Mapping[str, str]) -> str:
    """Return a card's text with every mark replaced by the part of its name."""

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
            f"| `{c.name}` | {kind} | {c.unit or ''} | {_cell(column_text(c))} |"
            for c in table.columns
            # Markdown would take what stands in angle brackets for HTML.
            for kind in [f"`{c.type.value}`" if c.type.is_list else c.type.value]
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
            kind, element = column.type, column.type.element
            feature = f"dtype: {kind.value}" if element is None else f"list: {element.value}"
            lines += [f"  - name: {column.name}", f"    {feature}"]
        lines.append("  splits:")
        for split in config.splits:
            lines += [f"  - name: {split.name}", f"    num_bytes: {split.bytes}"]
            lines.append(f"    num_examples: {split.rows}")
        lines += [f"  download_size: {config.file_bytes}", f"  dataset_size: {config.bytes}"]
    return "\n".join(lines)


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_TOLD = {"fault_rate": "faults, p", "flip_rate": "flips, q", "scale_rewards": "rewards scaled by"}


def registered_text(registration: RegistrationRef) -> str:
    """Return a table of the frozen files that the study belongs to."""
    lines = ["| registered | SHA-256 |", "| --- | --- |"]
    lines.append(f"| registration `{registration.name}` | `{registration.sha256}` |")
    lines += [f"| amendment `{name}` | `{sha256}` |" for name, sha256 in registration.amendments.items()]
    return "\n".join(lines)


def matrix_text(runs: Sequence[Row]) -> str:
    """Return a table of the runs: how many of each arm there are, by condition and its noise."""
    told = [name for name in _TOLD if name in runs[0]]
    cells = Counter((_place(run, told), str(run["arm"])) for run in runs)
    lines = [
        f"| {' | '.join(['condition', *(_TOLD[name] for name in told), 'runs'])} |",
        f"|{' --- |' * (len(told) + 2)}",
    ]
    for cell in sorted({cell for cell, _ in cells}):
        arms = ", ".join(f"{count} {arm}" for (at, arm), count in sorted(cells.items()) if at == cell)
        lines.append(f"| {' | '.join(cell)} | {arms} |")
    complete = sum(run["status"] == "COMPLETE" for run in runs)
    return "\n".join([*lines, "", f"{len(runs)} runs, {complete} of them with complete evidence."])


def outcomes_text(decisions: Sequence[Row], standing: str = "") -> str:
    """Return a table of decisions: verdict, evidence, estimate and interval of each rule."""
    lines = [
        "| rule | about | verdict | evidence | estimate | interval |",
        "| --- | --- | --- | --- | ---: | --- |",
    ]
    for row in decisions:
        about = row.get("title") or row["kind"]
        words = (row["rule"], about, row["verdict"], row["evidence"])
        shown = " | ".join(str(word).replace("_", " ").replace("|", "\\|") for word in words)
        estimate = "" if row["estimate"] is None else f"{row['estimate']:.4f}"
        lines.append(f"| {shown} | {estimate} | {_interval(row)} |")
    if standing:
        lines += ["", f"**The registration behind these verdicts:** {standing}"]
    return "\n".join(lines)


def _place(run: Row, told: Sequence[str]) -> tuple[str, ...]:
    values = (run[name] for name in told)
    return str(run["condition"]), *(v if isinstance(v, str) else f"{float(v):g}" for v in values)


def _interval(row: Row) -> str:
    if row["low"] is None:
        return ""
    return f"{row['level']:.0%} [{row['low']:.4f}, {row['high']:.4f}]"


WHOLE = "train"
"""The split of a table that has only one: so do the Hub's loaders call it."""


@dataclass(frozen=True)
class Split:
    """One split of a table."""

    name: str  # its name
    pattern: str  # which files of the repository are its own
    rows: int  # its rows
    bytes: int  # its size as Arrow buffers, which is what `datasets` reserves for it


@dataclass(frozen=True)
class Config:
    """One configuration of a dataset repository."""

    table: Table  # what its rows and columns are
    splits: tuple[Split, ...]  # its splits, in the order of their files
    file_bytes: int  # size of its Parquet files together

    @property
    def rows(self) -> int:
        """Rows of all splits together."""
        return sum(split.rows for split in self.splits)

    @property
    def bytes(self) -> int:
        """Size of all splits as Arrow buffers."""
        return sum(split.bytes for split in self.splits)


def config_of(table: Table, files: Mapping[str, bytes]) -> Config:
    """Return the configuration that a table's Parquet files make."""
    by_split: dict[str, list[tuple[int, int]]] = {}
    columns: list[str] = []
    for path, content in files.items():
        columns, size = _read(content)
        split = PurePosixPath(path).name.split("-", 1)[0] if table.name in SPLIT_BY else WHOLE
        by_split.setdefault(split, []).append(size)
    pattern = "{}/{}-*.parquet" if table.name in SPLIT_BY else "{}/*.parquet"
    splits = (
        Split(name, pattern.format(table.name, name), sum(r for r, _ in sizes), sum(b for _, b in sizes))
        for name, sizes in by_split.items()
    )
    return Config(table.narrowed(columns), tuple(splits), sum(map(len, files.values())))


def _read(content: bytes) -> tuple[list[str], tuple[int, int]]:
    """Return the columns of a Parquet file, its rows, and their size as Arrow buffers."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(io.BytesIO(content)).read()
    return table.column_names, (int(table.num_rows), int(table.nbytes))
