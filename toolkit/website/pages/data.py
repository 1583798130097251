"""The data page: every study's registers, what a column means, how to load them, and a box to ask them."""

from collections.abc import Iterator
from typing import Any

from toolkit.registers.columns import Table
from toolkit.registers.schema import SCHEMA_VERSION
from toolkit.registers.study import Study
from toolkit.website.examples import examples
from toolkit.website.material import Material
from toolkit.website.page import Page
from toolkit.website.registers import LARGEST_TABLE, carried, every_study, manifest_copy, table_bytes


def pages(material: Material) -> Iterator[Page]:
    """Yield the data page, where there is any study."""
    studies = every_study(material)
    if not studies:
        return
    cases = {case.study.name: case for case in material.cases}
    asked: list[dict[str, Any]] = [
        {
            "study": study.name,
            "is_summary": study.is_summary,
            "examples": examples(study, cases.get(study.name)),
            "left_out": [table.name for table in study.tables if not carried(study, table.name)],
        }
        for study in studies
        if _any_carried(study)
    ]
    # The box opens on the study that holds rows: published figures are few.
    asked.sort(key=lambda entry: entry["study"] not in {s.name for s in studies if s.has("episodes")})
    yield Page(
        "data.html",
        "data.html",
        "Data: registers, columns, and a question of your own",
        "data",
        {
            "studies": [_study(study) for study in studies],
            "asked": asked,
            "largest_table": LARGEST_TABLE,
            "schema_version": SCHEMA_VERSION,
        },
        ("query",),
    )


def _any_carried(study: Study) -> bool:
    return any(carried(study, table.name) for table in study.tables)


def _study(study: Study) -> dict[str, Any]:
    tables = [_table(study, table) for table in study.tables]
    return {
        "name": study.name,
        "evidence": study.manifest.evidence,
        "schema_version": study.manifest.schema_version,
        "code_version": study.manifest.code_version,
        "logical_sha256": study.manifest.logical_sha256,
        "registration": study.manifest.registration,
        "manifest": manifest_copy(study.name),
        "tables": tables,
        "left_out": [table for table in tables if not table["carried"]],
        "bytes": sum(table["bytes"] for table in tables),
        "rows": sum(table["rows"] for table in tables),
        "card": "README.md" in study.manifest.files,
        "split": _split(study, tables[0]["name"]) if tables else "train",
    }


def _split(study: Study, table: str) -> str:
    """Return the split that a table's files make: the first part of their names, or `train`."""
    first = study.manifest.tables[table].files[0].rpartition("/")[2]
    return first.partition("-")[0] if "-00000-of-" in first else "train"


def _table(study: Study, table: Table) -> dict[str, Any]:
    entry = study.manifest.tables[table.name]
    return {
        "name": table.name,
        "meaning": table.meaning,
        "key": table.key,
        "rows": entry.rows,
        "bytes": table_bytes(study, table.name),
        "files": len(entry.files),
        "sha256": entry.row_sha256,
        "carried": carried(study, table.name),
        "columns": table.columns,
        "command": f'toolkit sql "SELECT * FROM {table.name} LIMIT 10" --study {study.name}',
    }
